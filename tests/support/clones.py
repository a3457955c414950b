"""A fixture with a project and a clone of it."""
import json

import fixture

DONE, FAILED, USAGE, BRANCHED, NOT_FOUND, UNREACHABLE = 0, 1, 2, 3, 5, 7


class Clones(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = json.loads(self.playfs('init', 'garden', '--json', '--site', self.api.origin).stdout)['project']
        self.work = self.clone()

    def clone(self, name='work', who='ann', project=None, *words):
        directory = self.home / name
        self.playfs('clone', project or self.project, directory, '--site', self.api.origin, *words, who=who)
        return directory

    def run_in(self, *words, at=None, check=True, **options):
        return self.playfs(*words, cwd=at or self.work, check=check, **options)

    def json(self, *words, code=DONE, **options):
        done = self.run_in(*words, '--json', check=False, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def commit(self, message, *words, **options):
        return self.json('commit', '-m', message, *words, **options)['revision']

    def staged(self, **options):
        return {each['path']: each['change'] for each in self.json('status', **options)['staged']}

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def files(self, revision=None):
        return self.api.get('revisions', revision or self.head())['manifest']['files']

    def read(self, path, revision=None):
        return self.playfs('cat', revision or self.head(), path, '--site', self.api.origin, text=False).stdout
