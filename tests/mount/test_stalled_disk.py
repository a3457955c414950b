#!/usr/bin/env python3
"""A disk whose syncs never end blocks those who need a sync, and nobody else."""
import os
import subprocess
import sys
import unittest.mock

import fixture
from projects import publish

FILES = 20
ONE_BYTE = 'import os, sys; os.pwrite(os.open(sys.argv[1], os.O_RDWR), b"X", 0)'

WHETHER_STAGED = 'import os, sys; assert os.getxattr(sys.argv[1], "user.playfs.staged") == b"staged"'


@fixture.needs_fuse
class StalledDisk(fixture.Fixture):
    def setUp(self):
        super().setUp()
        library = self.home / 'stalled_disk.so'
        self.command('cc', '-std=gnu11', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library,
                     fixture.ROOT / 'tests/mount/stalled_disk.c', '-ldl')
        self.gate = self.home / 'stalled'
        self.addCleanup(self.gate.unlink, missing_ok=True)
        self.api = self.serve()
        project = publish(self.api, 'p', {f'file{n}': f'published {n}\n' for n in range(FILES)})
        with unittest.mock.patch.dict(os.environ, LD_PRELOAD=str(library), STALLED_DISK=str(self.gate),
                                      ASAN_OPTIONS='verify_asan_link_order=0'):
            self.mounted = self.mount(self.api.origin)
        self.work = self.mounted.directory / 'projects' / project / 'work'
        self.assertEqual(len(list(self.work.iterdir())), FILES)

    def stall(self):
        self.gate.touch()

    def reached(self):
        self.eventually((self.home / 'stalled.reached').exists, 'somebody waits for the disk')

    def stall_reads_too(self):
        reads = self.home / 'stalled.reads'
        reads.touch()
        self.addCleanup(reads.unlink)
        self.stall()

    def go_on(self):
        self.gate.unlink()
        (self.home / 'stalled.reached').unlink()

    def start(self, *words):
        process = subprocess.Popen([str(word) for word in words], env=self.environment('ann'), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def write_into(self, name):
        return self.start(sys.executable, '-S', '-c', ONE_BYTE, self.work / name)

    def all_else_goes_on(self, round_of):
        """Operations that reach the mount, in processes of their own, which the test outlives."""
        self.assertEqual(self.command('cat', self.work / f'file{FILES - round_of}').stdout,
                         f'published {FILES - round_of}\n')
        self.command('sh', '-c', f'echo new > "$1"/new{round_of} && mkdir "$1"/made{round_of} && ls "$1"', 'sh', self.work)
        self.command('ls', self.mounted.directory / 'projects')
        self.command('cat', self.mounted.directory / '.playfs/status.json')

    def test_the_first_change_of_a_published_file(self):
        self.stall()
        writers = [self.write_into(f'file{n}') for n in range(6)]
        self.reached()
        self.all_else_goes_on(1)
        self.assertEqual([writer.poll() for writer in writers], [None] * 6)
        self.go_on()
        self.assertEqual([writer.wait(fixture.COMMAND_LIMIT) for writer in writers], [0] * 6)
        self.assertEqual((self.work / 'file3').read_text(), 'Xublished 3\n')

    def test_telling_whether_files_differ(self):
        """A file of the same size as the published one: only reading it reveals a difference, however large it is."""
        (self.work / 'file1').write_text('Published 1\n')
        self.stall_reads_too()
        lookers = [self.start(self.playfs_path, 'status', self.work), self.start(self.c_program('status'), self.work),
                   self.start(sys.executable, '-S', '-c', WHETHER_STAGED, self.work / 'file1')]
        self.reached()
        self.all_else_goes_on(3)
        self.assertEqual([looker.poll() for looker in lookers], [None] * len(lookers))
        self.go_on()
        self.assertEqual([looker.wait(fixture.COMMAND_LIMIT) for looker in lookers], [0] * len(lookers))

    def test_a_change_of_what_a_commit_is_fixing(self):
        large = self.work / 'large'
        large.write_bytes(b'a' * 1_000_000)
        self.stall()
        commit = self.start(self.playfs_path, 'commit', '-m', 'Large', self.work)
        self.reached()
        writer = self.write_into('large')
        self.all_else_goes_on(2)
        self.assertIsNone(commit.poll())
        self.go_on()
        self.assertEqual(writer.wait(fixture.COMMAND_LIMIT), 0)
        self.assertEqual(commit.wait(fixture.COMMAND_LIMIT), 0)
        self.assertEqual(large.read_bytes()[:2], b'Xa')
        self.assertEqual((self.work.parent / 'head/large').read_bytes()[:2], b'aa')

    def test_an_unmount_ends_without_those_who_wait_for_it(self):
        self.stall()
        self.write_into('file0')
        self.reached()
        process = self.mounted.process
        process.terminate()
        self.assertGreater(process.wait(fixture.COMMAND_LIMIT), 0, 'it says that requests were not answered')
        self.assertFalse(os.path.ismount(self.mounted.directory))


if __name__ == '__main__':
    fixture.main()
