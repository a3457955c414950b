#!/usr/bin/env python3
"""A file of any size in one project, whose comparison with what is published would take hours, costs no other one."""
import hashlib
import os

import fixture
from projects import publish

HUGE = 1 << 40


@fixture.needs_fuse
class HugeFiles(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.process, self.directory = mount.process, mount.directory / 'projects'
        self.calm = publish(self.api, 'calm', {'f': 'f\n'})
        # By another client, so that sizes may be in other units, and only the content tells whether it differs.
        self.foreign = []
        for number in range(4):
            project = self.api.create('projects', name=f'foreign{number}')['id']
            entry = {'inline': 'f\n', 'h': hashlib.sha256(b'f\n').hexdigest(), 's': 2}
            self.set_head(project, entry)
            self.foreign.append(project)

    def set_head(self, project, entry):
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='m', state={},
                                   manifest={'files': {'f': entry}})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})

    def test_it_is_listed_refused_and_in_nobodys_way(self):
        (self.directory / self.calm / 'work/new').write_text('new\n')
        for project in self.foreign:
            os.truncate(self.directory / project / 'work/f', HUGE)
        for project in self.foreign:
            self.assertIn('f', self.command('cat', self.directory / project / 'status').stdout)
            self.set_head(project, {'inline': 'next\n'})
        self.playfs('commit', '-m', 'Calm', self.directory / self.calm / 'work')
        self.command('ls', self.directory.parent / 'threads')
        done = self.playfs('commit', '-m', 'Huge', self.directory / self.foreign[0] / 'work', check=False)
        self.assertIn('a published file has at most', done.stderr)
        self.process.terminate()
        self.assertEqual(self.process.wait(fixture.COMMAND_LIMIT), 0)


if __name__ == '__main__':
    fixture.main()
