#!/usr/bin/env python3
"""The threads that take kernel requests never wait for a disk: during a slow sync everything else goes on."""
import errno
import os
import stat
import subprocess
import unittest.mock

import fixture
from projects import publish

PIECE = 64 * 1024


@fixture.needs_fuse
class LoopThreads(fixture.Fixture):
    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest('needs root, to mount a small disk')
        library = self.home / 'who_syncs.so'
        self.command('cc', '-std=gnu11', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library,
                     fixture.ROOT / 'tests/mount/who_syncs.c', '-ldl')
        self.log = self.home / 'who_syncs.log'
        self.api = self.serve()
        files = {name: f'published {name}\n' for name in ('changed', 'cut', 'emptied', 'replaced', 'moved', 'mode', 'owner')}
        project = publish(self.api, 'p', files)
        state = self.home / 'ann/state'
        state.mkdir(parents=True)
        self.command('mount', '-t', 'tmpfs', '-o', 'size=16m,mode=700', 'small', state)
        self.addCleanup(self.command, 'umount', '-l', state)
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=str(library), WHO_SYNCS=str(self.log),
                                      ASAN_OPTIONS='verify_asan_link_order=0'):
            self.mounted = self.mount(self.api.origin)
        self.work = self.mounted.directory / 'projects' / project / 'work'
        self.assertEqual(len(list(self.work.iterdir())), len(files))

    def expect_others_to_sync(self, what, must_sync=True):
        loop, by_loop, by_others = set(), 0, 0
        for line in self.log.read_text().splitlines():
            call, thread = line.split()
            if call == 'loop':
                loop.add(thread)
            elif thread in loop:
                by_loop += 1
            else:  # including syncs before the first request
                by_others += 1
        self.assertTrue(loop)
        self.assertEqual(by_loop, 0, f'a thread that takes requests waits for the disk: {what}')
        self.assertTrue(not must_sync or by_others > self.synced, f'nothing was synced by: {what}')
        self.synced = by_others

    synced = 0

    def written(self, name, content, sync=False):
        """A descriptor, open for writing."""
        fd = os.open(self.work / name, os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, fd)
        os.write(fd, content)
        if sync:
            os.fsync(fd)
        return fd

    def test_changes_of_bytes(self):
        with open(self.work / 'changed', 'r+') as file:
            file.write('P')
        self.expect_others_to_sync('the first change of a published file')
        os.truncate(self.work / 'cut', 3)
        self.expect_others_to_sync('cutting one')
        synced = self.written('synced', bytes(PIECE), sync=True)
        self.expect_others_to_sync('fsync')
        os.ftruncate(synced, 10)
        self.expect_others_to_sync('cutting what was synced')
        os.truncate(self.work / 'emptied', 0)
        os.ftruncate(synced, 0)
        os.posix_fallocate(synced, 0, PIECE)
        self.expect_others_to_sync('emptying and allocating', must_sync=False)

    def test_changes_of_names(self):
        old = self.written('old', b'old', sync=True)
        again = self.written('again', b'new', sync=True)
        self.expect_others_to_sync('fsync')
        os.write(again, b'newer')
        os.rename(self.work / 'again', self.work / 'old')
        self.expect_others_to_sync('a file that was synced, was changed since, and takes the place of another')
        fresh = self.written('fresh', b'fresh')
        os.rename(self.work / 'fresh', self.work / 'replaced')
        os.ftruncate(fresh, 2)
        self.expect_others_to_sync('cutting what took the place of another')
        os.rename(self.work / 'moved', self.work / 'elsewhere')
        os.mkdir(self.work / 'directory')
        os.rename(self.work / 'directory', self.work / 'renamed')
        os.symlink('renamed', self.work / 'link')
        os.link(self.work / 'elsewhere', self.work / 'renamed/hard')
        os.mkfifo(self.work / 'fifo')
        os.chmod(self.work / 'mode', stat.S_IRWXU)
        os.chown(self.work / 'owner', 1, 1)
        os.utime(self.work / 'owner')
        for name in ('link', 'fifo', 'renamed/hard', 'old'):
            os.unlink(self.work / name)
        os.rmdir(self.work / 'renamed')
        del old
        self.expect_others_to_sync('changes of names', must_sync=False)

    def test_changes_of_what_a_commit_fixes(self):
        large = self.written('large', os.urandom(PIECE))
        for n in range(20):
            commit = subprocess.Popen([self.playfs_path, 'commit', '-m', f'{n}', self.work], env=self.environment('ann'),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(commit.wait)
            while commit.poll() is None:
                os.pwrite(large, os.urandom(10), n * 100)
                os.chmod(self.work / 'mode', 0o600 | n)
            self.assertEqual(commit.returncode, 0)
        self.expect_others_to_sync('writing while a commit fixes files')

    def expect_full(self, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, errno.ENOSPC)

    def test_a_full_disk(self):
        def fill():
            while True:
                os.write(ballast, bytes(PIECE))

        def make():
            for n in range(100_000):
                os.symlink('x' * 3000, self.work / f'{n:0200}')

        ballast = self.written('ballast', b'')
        self.expect_full(fill)
        self.expect_full(make)
        self.expect_others_to_sync('filling the disk')
        for link in self.work.glob('0*'):
            link.unlink()
        os.ftruncate(ballast, PIECE)
        os.truncate(self.work / 'emptied', 0)
        os.mkdir(self.work / 'directory')
        self.expect_others_to_sync('making room', must_sync=False)


if __name__ == '__main__':
    fixture.main()
