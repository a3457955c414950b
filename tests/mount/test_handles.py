#!/usr/bin/env python3
"""Files that are open, locked, removed or forgotten: what programs hold stays what it was."""
import errno
import fcntl
import os
import struct
import subprocess
import sys

import fixture

MANY = 20_000
HOLD = '''
import fcntl, os, struct, sys
path, kind = sys.argv[1:]
file = open(path, 'r+b')
if kind == 'flock': fcntl.flock(file, fcntl.LOCK_EX)
elif kind == 'fcntl': fcntl.lockf(file, fcntl.LOCK_EX, 10, 5)
else: fcntl.fcntl(file, 37, struct.pack('hhqqi', fcntl.F_WRLCK, os.SEEK_SET, 5, 10, 0))  # F_OFD_SETLK
print('locked', flush=True)
sys.stdin.read()
'''

OPEN_MANY = '''
import os, resource, sys
directory, count = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
os.mkdir(directory)
files = [os.open(f'{directory}/{number}', os.O_RDWR | os.O_CREAT) for number in range(count)]
for number in range(0, count, 20):
    os.write(files[number], str(number).encode())
print('open', flush=True)
sys.stdin.read()
os.unlink(f'{directory}/40')
for number in range(0, count, 20):
    assert os.pread(files[number], 10, 0) == str(number).encode()
'''


@fixture.needs_fuse
class Handles(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.api.create('projects', name='p')
        self.mounted = self.mount(self.api.origin)
        self.work = self.mounted.project('p') / 'work'

    def test_very_many_open_files(self):
        # In several processes, each within its descriptor limit.
        holders = [subprocess.Popen([sys.executable, '-c', OPEN_MANY, str(self.work / f'd{number}'), str(MANY // 4)],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(4)]
        for holder in holders:
            self.addCleanup(holder.stdout.close)
            self.assertEqual(holder.stdout.readline(), b'open\n')
        held = len(os.listdir(f'/proc/{self.mounted.process.pid}/fd'))
        self.assertLess(held, 1000)  # their descriptors are not ours
        for holder in holders:
            holder.stdin.close()
            self.assertEqual(holder.wait(fixture.COMMAND_LIMIT), 0)

    def test_a_removed_file_lives_as_long_as_it_is_open(self):
        for remove in (lambda path: path.unlink(), lambda path: (self.work / 'other').rename(path)):
            (self.work / 'other').write_bytes(b'other')
            path = self.work / 'file'
            path.write_bytes(b'old bytes')
            with open(path, 'r+b', buffering=0) as file:
                remove(path)
                self.assertEqual(os.fstat(file.fileno()).st_nlink, 0)
                file.write(b'NEW')
                file.truncate(8)
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o600)
                self.assertEqual(os.pread(file.fileno(), 100, 0), b'NEW byte')
                self.assertEqual(os.fstat(file.fileno()).st_mode & 0o777, 0o600)

    def test_a_removed_directory_is_empty_and_takes_nothing(self):
        (self.work / 'd').mkdir()
        fd = os.open(self.work / 'd', os.O_RDONLY)
        self.addCleanup(os.close, fd)
        (self.work / 'd').rmdir()
        self.assertEqual(os.listdir(fd), [])
        with self.assertRaises(OSError) as problem:
            os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=fd)
        self.assertEqual(problem.exception.errno, errno.ENOENT)

    def test_listings_while_names_come_and_go(self):
        there = {f'stays-{number}' for number in range(400)}
        for name in there:
            (self.work / name).touch()
        for number in range(400):
            (self.work / f'goes-{number}').touch()
        seen, turn = [], 0
        with os.scandir(self.work) as listing:
            for entry in listing:
                seen.append(entry.name)
                if turn < 400:
                    (self.work / f'goes-{turn}').unlink()
                    (self.work / f'comes-{turn}').touch()
                turn += 1
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual(there, set(seen))

    def test_inode_numbers_outlive_forgetting_and_mounts(self):
        (self.work / 'd').mkdir()
        for name in ('a', 'd/b', 'd/c'):
            (self.work / name).write_text(name)
        os.link(self.work / 'a', self.work / 'd/a')

        def numbers():
            return {name: os.stat(self.work / name).st_ino for name in ('.', 'a', 'd', 'd/a', 'd/b', 'd/c')}

        before = numbers()
        self.assertEqual(before['a'], before['d/a'])
        if os.getuid() == 0:
            with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as drop:
                drop.write('2')
        self.assertEqual(numbers(), before)
        self.assertEqual({entry.name: entry.inode() for entry in os.scandir(self.work / 'd')},
                         {name: before[f'd/{name}'] for name in 'abc'})
        self.mounted.unmount()
        self.mounted = self.mount(self.api.origin, at=self.mounted.directory)
        self.assertEqual(numbers(), before)
        os.rename(self.work / 'd/b', self.work / 'moved')
        self.assertEqual(os.stat(self.work / 'moved').st_ino, before['d/b'])
        self.assertEqual(self.commit(self.work, 'Published')[0], 'published')
        self.assertEqual(os.stat(self.work / 'moved').st_ino, before['d/b'])

    def test_locks(self):
        path = self.work / 'locked'
        path.write_bytes(bytes(100))
        for kind in ('flock', 'fcntl', 'ofd'):
            with self.subTest(kind):
                holder = subprocess.Popen([sys.executable, '-c', HOLD, str(path), kind], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE)
                self.addCleanup(holder.stdout.close)
                self.assertEqual(holder.stdout.readline(), b'locked\n')
                with open(path, 'r+b') as file:
                    def take(start, file=file, kind=kind):
                        if kind == 'flock':
                            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        elif kind == 'fcntl':
                            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, start)
                        else:
                            fcntl.fcntl(file, 37, struct.pack('hhqqi', fcntl.F_WRLCK, os.SEEK_SET, start, 5, 0))

                    with self.assertRaises(BlockingIOError):
                        take(10)
                    if kind != 'flock':
                        take(50)
                    holder.stdin.close()
                    holder.wait(fixture.COMMAND_LIMIT)
                    take(10)

    def test_room_is_that_of_the_disk_below(self):
        state = self.home / 'ann/state'
        shown, below = os.statvfs(self.work), os.statvfs(state)
        self.assertEqual((shown.f_blocks, shown.f_frsize, shown.f_namemax), (below.f_blocks, below.f_frsize, 255))


if __name__ == '__main__':
    fixture.main()
