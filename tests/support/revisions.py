"""A project with revisions by other clients, made through the Data API alone, beside mounts of it."""
import json

import fixture


class Revisions(fixture.SharedProject):
    def revision(self, parents, texts, state=None):
        """Publishes a revision without moving head; its id. Instead of a text there may be a whole entry."""
        files = {name: {'inline': text} if isinstance(text, str) else text for name, text in texts.items()}
        return self.api.create('revisions', project=self.project, parents=parents, state={} if state is None else state,
                               manifest={'files': files})['id']

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def set_head(self, revision):
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})

    def head_texts(self):
        files = self.api.get('revisions', self.head())['manifest']['files']
        return {name: entry['inline'] for name, entry in files.items()}

    def status(self):
        return json.loads(self.playfs('status', '--json', self.tree).stdout)

    def staged(self):
        return [each['path'] for each in self.status()['staged']]

    def conflicts(self):
        return [each['path'] for each in self.status()['conflicts']]

    def fails(self, *words):
        """The exit code of a command on the tree."""
        return self.playfs(*words, self.tree, check=False).returncode
