#!/usr/bin/env python3
"""A disk that fails to sync: changes in the tree are still shown, and nothing is reported as done that is not on disk.
A remount on a healthy disk continues."""
import os
import subprocess
import unittest.mock

import proxy
import fixture
from projects import publish

LINES = ''.join(f'{n}\n' for n in range(40))


@fixture.needs_fuse
class FailedSync(fixture.Fixture):
    def setUp(self):
        super().setUp()
        library = self.home / 'failing_sync.so'
        self.command('cc', '-std=gnu11', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library,
                     fixture.ROOT / 'tests/mount/failing_sync.c', '-ldl')
        self.gate = self.home / 'failing'
        self.api, self.before = proxy.before_a_service(self)
        self.project = publish(self.api, 'p', {'mine': LINES, 'theirs': LINES, 'd/deep': 'deep\n'})
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=str(library), FAILING_SYNC=str(self.gate),
                                      ASAN_OPTIONS='verify_asan_link_order=0'):
            self.mounted = self.mount(self.before.url, options=('refresh=60',))
        self.work = self.mounted.directory / 'projects' / self.project / 'work'
        for path in ('mine', 'theirs', 'd/deep'):  # so that the kernel caches them
            (self.work / path).read_text()

    def bob_publishes(self):
        base = self.head()
        files = {path: {'inline': text} for path, text in
                 {'mine': LINES + 'bob\n', 'theirs': LINES + 'bob\n', 'd/deep': 'of bob\n', 'new': 'bob\n'}.items()}
        revision = self.api.create('revisions', project=self.project, parents=[base], manifest={'files': files})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})
        return revision

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def remount(self):
        self.mounted.unmount()
        self.mounted = self.mount(self.before.url, at=self.mounted.directory, options=('refresh=60',))

    def expect_merged(self, more=''):
        self.assertEqual(sorted(os.listdir(self.work)), ['d', 'mine', 'new', 'theirs'])
        self.assertEqual((self.work / 'mine').read_text(), 'ann\n' + LINES + 'bob\n')
        self.assertEqual((self.work / 'theirs').read_text(), LINES + 'bob\n' + more)
        self.assertEqual((self.work / 'd/deep').read_text(), 'of bob\n')

    def expect_saves_kept(self):
        """A save on top of what is shown reverts nothing of others' work."""
        subprocess.run(['sed', '-i', '$a later', self.work / 'theirs'], check=True)
        again = self.playfs('commit', '-m', 'Later', self.work, check=False)
        self.assertEqual(again.returncode, 1, again.stdout)
        self.assertIn('unmount and mount again', again.stderr)
        self.remount()
        self.expect_merged('later\n')
        self.playfs('commit', '-m', 'Later', self.work)
        files = self.api.get('revisions', self.head())['manifest']['files']
        self.assertEqual(files['theirs']['inline'], LINES + 'bob\nlater\n')
        self.assertEqual(files['mine']['inline'], 'ann\n' + LINES + 'bob\n')

    def test_a_commit_that_was_merged(self):
        (self.work / 'mine').write_text('ann\n' + LINES)
        self.bob_publishes()

        def fate(request):
            if request.startswith('PATCH'):
                self.gate.touch()

        self.before.fate = fate
        committed = self.playfs('commit', '-m', 'Mine', self.work, check=False)
        self.before.fate = lambda request: None
        self.gate.unlink()
        self.assertEqual(committed.returncode, 1, committed.stdout)
        self.assertIn('is published, but is not safe on this disk', committed.stderr)
        self.assertEqual(committed.stdout, '')
        self.assertIn('is not safe on this disk', self.playfs('status', self.work).stdout)
        self.expect_merged()
        self.expect_saves_kept()

    def test_an_update(self):
        (self.work / 'mine').write_text('ann\n' + LINES)
        self.bob_publishes()
        self.gate.touch()
        for _ in range(2):  # it is in place by then, but no safer
            updated = self.playfs('update', self.work, check=False)
            self.assertEqual(updated.returncode, 1, updated.stdout)
            self.expect_merged()
            self.assertIn('unmount and mount again', updated.stderr)
        self.gate.unlink()
        self.expect_saves_kept()


if __name__ == '__main__':
    fixture.main()
