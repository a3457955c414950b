"""A project at a service that accepts few writes an hour, so that its commits wait."""
import json
import random

import fixture

PENDING = 4


def text(size, seed):
    """Lines that no two chunks share."""
    dice, out = random.Random(seed), []
    while sum(map(len, out)) < size:
        out.append(f'{dice.getrandbits(256):064x}\n')
    return ''.join(out)


class SlowProject(fixture.Fixture):
    def begin(self, limits):
        self.api = self.serve(limits)
        self.project = json.loads(self.playfs('init', 'slow', '--json', '--site', self.api.origin).stdout)['project']
        return self.mount(self.api.origin)

    def work(self, mount):
        return mount.directory / 'projects' / self.project / 'work'

    def status(self, mount):
        return json.loads((self.work(mount).parent / 'status.json').read_text())

    def run_json(self, mount, *words):
        done = self.playfs(*words, '--json', self.work(mount), check=False)
        return done.returncode, json.loads(done.stdout)

    def commit_without_waiting(self, mount, message):
        code, document = self.run_json(mount, 'commit', '--no-wait', '-m', message)
        self.assertEqual((code, document['outcome']), (PENDING, 'pending'))
