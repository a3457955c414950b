#!/usr/bin/env python3
"""Strangers who publish texts that are expensive to merge: the CPU and memory of others who commit to that project."""
import hashlib
import json
import os
import random
import unittest

import projects
import fixture

FEW, MANY = 8, 32  # files: few already cost more than a merge may
LINES = 40_000
CHUNK = 7000  # JSON escapes line breaks
TOO_MANY_LINES = 900_000
MAY_GROW = 64 << 20  # of a commit, as promised


def cpu(mount):
    """Seconds that the mount's process has computed."""
    with open(f'/proc/{mount.process.pid}/stat', encoding='utf-8') as stat:
        fields = stat.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


@fixture.needs_fuse
class LargeMerges(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.random = random.Random(1)

    def entry(self, lines, choice):
        text = ''.join(self.random.choice(choice) for _ in range(lines))
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {'h': digest, 's': len(text), 'c': projects.store(self.api, 'f', text, digest, CHUNK)}

    def project(self, name, files, sides):
        """A project where a stranger changed the same files in head and in a revision beside it."""
        project = projects.publish(self.api, name, {'mine': 'mine\n'})
        parent = self.api.get('projects', project)['latest_revision']
        mine = self.api.get('revisions', parent)['manifest']['files']

        def publish(parent, side):
            manifest = {'files': {**mine, **{f'f{number}': side for number in range(files)}}}
            return self.api.create('revisions', project=project, parents=[parent], agent='mallory', message='m',
                                   manifest=manifest, state={})['id']

        base, *tips = sides
        base = publish(parent, base)
        head, beside = (publish(base, side) for side in tips)
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': head})
        return project, beside

    def commit_beside(self, mount, project, beside):
        """Commits a file of ours, which nobody else has. What it costs the mount in seconds."""
        work = mount.directory / 'projects' / project / 'work'
        (work / 'new').write_text('ours\n')
        before = cpu(mount)
        self.playfs('commit', '-m', 'Ours', work)
        spent = cpu(mount) - before
        branches = json.loads(self.playfs('branches', '--json', work).stdout)['branches']
        self.assertEqual([each['revision'] for each in branches], [beside], 'it could not be merged')
        return spent

    def test_many_files_cost_what_one_merge_may_cost(self):
        sides = [self.entry(LINES, ('a\n', 'b\n')) for _ in range(3)]
        few, many = self.project('few', FEW, sides), self.project('many', MANY, sides)
        mount = self.mount(self.api.origin)
        few = self.commit_beside(mount, *few)
        many = self.commit_beside(mount, *many)
        self.assertLess(many, 2 * few, f'{MANY} files against {FEW}')

    @unittest.skipIf(fixture.IS_SANITIZED, 'it measures memory')
    def test_the_number_of_lines_is_bounded(self):
        sides = [self.entry(TOO_MANY_LINES, ('\n', 'a\n')) for _ in range(3)]
        project = self.project('lines', 1, sides)
        mount = self.mount(self.api.origin)
        before = fixture.memory(mount.process, 'VmHWM')
        self.commit_beside(mount, *project)
        self.assert_memory(fixture.memory(mount.process, 'VmHWM') - before, MAY_GROW)


if __name__ == '__main__':
    fixture.main()
