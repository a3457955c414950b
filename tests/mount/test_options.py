#!/usr/bin/env python3
"""Options common to all file systems: accepted, and effective if they have a meaning here."""
import os
import pathlib
import subprocess
import unittest.mock

import actor
import projects
import fixture

BOB = 65533


@fixture.needs_fuse
class Options(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        projects.publish(self.api, 'p', {'file': 'published\n'})

    def mounted(self, *options):
        mount = self.mount(self.api.origin, options=options)
        return mount, mount.project('p') / 'work'

    def program(self, work):
        path = work / 'program'
        path.write_text('#!/bin/sh\nexit 7\n')
        path.chmod(0o755)
        return path

    def test_all_that_change_nothing(self):
        mount, work = self.mounted('rw', 'exec', 'suid', 'nosuid', 'dev', 'nodev', 'atime', 'noatime', 'relatime', 'async',
                                   'default_permissions')
        self.assertEqual(subprocess.run([self.program(work)]).returncode, 7)
        mount.unmount()

    def test_no_program_runs(self):
        _, work = self.mounted('exec', 'noexec')
        program = self.program(work)
        with self.assertRaises(PermissionError):
            subprocess.run([program])
        self.assertEqual(subprocess.run(['sh', program]).returncode, 7, 'a shell that reads it runs elsewhere')

    def test_writes_are_synced(self):
        mount, work = self.mounted('sync')
        before = projects.metrics(mount).get('sync', 0)
        (work / 'new').write_text('at once')
        self.assertGreater(projects.metrics(mount)['sync'], before)

    def test_no_io_uring_whatever_the_environment_says(self):
        """libfuse loses answers over it (src/fuse/README.md)."""
        with unittest.mock.patch.dict(os.environ, FUSE_URING_ENABLE='1'):
            mount, work = self.mounted()
        self.assertEqual((work / 'file').read_text(), 'published\n')
        opened = pathlib.Path(f'/proc/{mount.process.pid}/fd')
        self.assertNotIn('anon_inode:[io_uring]', [os.readlink(fd) for fd in opened.iterdir()])

    @fixture.unittest.skipUnless(os.getuid() == 0, 'needs root, to act as somebody else')
    def test_permissions_are_judged_for_all(self):
        self.home.chmod(0o711)
        _, work = self.mounted('allow_other', 'default_permissions')
        (work / 'file').chmod(0o600)
        bob = actor.Actor(work, BOB, BOB)
        self.addCleanup(bob.end)
        self.assertEqual(bob('open_close', 'file', os.O_RDONLY), 'EACCES')
        self.assertEqual(bob('create', 'new'), 'EACCES')
        work.chmod(0o777)
        self.assertEqual(bob('create', 'new'), None)

    @fixture.unittest.skipUnless(os.getuid() == 0, 'needs root, to act as somebody else')
    def test_a_commit_that_is_denied_is_no_result_of_the_owner(self):
        self.home.chmod(0o711)
        mount, work = self.mounted('allow_other', 'default_permissions')
        (work / 'file').write_text('changed\n')
        self.assertEqual(self.commit(work, 'mine')[0], 'published')
        said = (mount.project('p') / 'commit').read_text()
        self.assertIn('"published"', said)
        done = subprocess.run([self.c_program('commit'), '.', 'not mine'], cwd=work, user=BOB, group=BOB, extra_groups=[],
                              capture_output=True, text=True)
        self.assertIn('Permission denied', done.stderr)
        self.assertEqual((mount.project('p') / 'commit').read_text(), said)


if __name__ == '__main__':
    fixture.main()
