#!/usr/bin/env python3
"""Random changes of one file by every call that changes or reads bytes, compared with a byte string.

PLAYFS_BYTES_STEPS (1500) sets how many; PLAYFS_BYTES_SEED repeats a run, which prints its seed when it fails.
"""
import ctypes
import errno
import mmap
import os
import random
import threading

import actor
import fixture

STEPS = int(os.environ.get('PLAYFS_BYTES_STEPS', 1500))
LARGEST = 300_000
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16


class Bytes:
    """A file, and what it should contain."""

    def __init__(self, path, random_source, other):
        self.path, self.random, self.other = path, random_source, other
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT)
        self.wanted = bytearray(os.pread(self.fd, LARGEST * 2, 0))
        # Those that the file system under the staged bytes supports: tmpfs cannot zero a range.
        modes = (0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE, ZERO_RANGE | KEEP_SIZE)
        with open(other, 'wb') as below:
            self.modes = [mode for mode in modes if actor.LIBC.fallocate(below.fileno(), mode, ctypes.c_int64(0),
                                                                         ctypes.c_int64(4096)) == 0]

    def range(self):
        offset = self.random.randrange(LARGEST)
        if self.random.random() < 0.3:
            offset -= offset % 4096
        return offset, min(self.random.choice((1, 100, 4096, 5000, 70_000)), LARGEST - offset)

    def put(self, offset, data):
        if len(self.wanted) < offset:
            self.wanted.extend(bytes(offset - len(self.wanted)))
        self.wanted[offset:offset + len(data)] = data

    def resize(self, size):
        if size < len(self.wanted):
            del self.wanted[size:]
        else:
            self.wanted.extend(bytes(size - len(self.wanted)))

    def write(self):
        offset, length = self.range()
        data = self.random.randbytes(length)
        assert os.pwrite(self.fd, data, offset) == length
        self.put(offset, data)

    def append(self):
        if len(self.wanted) > LARGEST:
            return
        data = self.random.randbytes(self.random.randrange(1, 9000))
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        assert os.write(fd, data) == len(data)
        os.close(fd)
        self.put(len(self.wanted), data)

    def write_mapped(self):
        offset, length = self.range()
        length = min(length, len(self.wanted) - offset)
        if length <= 0:
            return
        data = self.random.randbytes(length)
        with mmap.mmap(self.fd, len(self.wanted)) as mapped:
            mapped[offset:offset + length] = data
            if self.random.random() < 0.5:
                mapped.flush()
        self.put(offset, data)

    def read_mapped(self):
        if self.wanted:
            with mmap.mmap(self.fd, len(self.wanted), prot=mmap.PROT_READ) as mapped:
                assert mapped[:] == self.wanted

    def read(self):
        offset, length = self.range()
        assert os.pread(self.fd, length, offset) == self.wanted[offset:offset + length]

    def truncate(self):
        size = self.random.choice((0, self.random.randrange(LARGEST), len(self.wanted) // 2))
        os.ftruncate(self.fd, size) if self.random.random() < 0.5 else os.truncate(self.path, size)
        self.resize(size)

    def allocate(self):
        offset, length = self.range()
        mode = self.random.choice(self.modes)
        actor.checked(actor.LIBC.fallocate(self.fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)))
        if not mode & KEEP_SIZE:
            self.resize(max(len(self.wanted), offset + length))
        if mode & (PUNCH_HOLE | ZERO_RANGE):
            end = min(offset + length, len(self.wanted))
            if end > offset:
                self.wanted[offset:end] = bytes(end - offset)

    def copy_range(self):
        offset, length = self.range()
        to = self.random.randrange(LARGEST)
        length = min(length, len(self.wanted) - offset, abs(to - offset))
        if length <= 0:
            return
        data = bytes(self.wanted[offset:offset + length])
        copied = os.copy_file_range(self.fd, self.fd, length, offset, to)
        self.put(to, data[:copied])

    def copy_elsewhere_and_back(self):
        with open(self.other, 'wb+') as other:
            os.sendfile(other.fileno(), self.fd, 0, len(self.wanted) or 1)
            assert os.pread(other.fileno(), LARGEST * 2, 0) == self.wanted

    def seek(self):
        """Every non-zero byte is in a data extent."""
        at = 0
        while at < len(self.wanted):
            try:
                data = os.lseek(self.fd, at, os.SEEK_DATA)
            except OSError as problem:
                assert problem.errno == errno.ENXIO
                data = len(self.wanted)
            assert not any(self.wanted[at:data])
            if data == len(self.wanted):
                break
            at = os.lseek(self.fd, data, os.SEEK_HOLE)
            assert data < at <= len(self.wanted)

    def reopen(self):
        if self.random.random() < 0.3:
            os.fsync(self.fd)
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR)
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def replace(self):
        """As editors save: the name goes to another file, while the open one stays readable."""
        copy = str(self.path) + '.new'
        with open(copy, 'wb') as file:
            file.write(self.wanted)
        os.rename(copy, self.path)
        assert os.pread(self.fd, LARGEST * 2, 0) == self.wanted
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR)

    STEPS = (write, write, write, append, write_mapped, write_mapped, read_mapped, read, read, truncate, allocate, allocate,
             copy_range, copy_elsewhere_and_back, seek, reopen, reopen, replace)

    def step(self):
        step = self.random.choice(self.STEPS)
        step(self)
        assert os.fstat(self.fd).st_size == len(self.wanted), (step.__name__, os.fstat(self.fd).st_size, len(self.wanted))
        return step.__name__

    def check(self):
        with open(self.path, 'rb') as file:
            assert file.read() == self.wanted


@fixture.needs_fuse
class RandomBytes(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.api.create('projects', name='p')
        self.mounted = self.mount(self.api.origin)
        self.seed = int(os.environ.get('PLAYFS_BYTES_SEED', random.randrange(1 << 32)))

    def work(self):
        return self.mounted.project('p') / 'work'

    def run_steps(self, names, steps):
        """One thread per file; a published file is copied up on the way."""
        problems = []

        def run(number, name):
            done = []
            try:
                file = Bytes(self.work() / name, random.Random(self.seed + number), self.home / f'other-{number}')
                for _ in range(steps):
                    done.append(file.step())
                file.check()
                os.close(file.fd)
                files[name] = bytes(file.wanted)
            except Exception as problem:  # reported by the main thread
                problems.append((self.seed, name, len(done), done[-5:], repr(problem)))

        files = {}
        threads = [threading.Thread(target=run, args=each) for each in enumerate(names)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        return files

    def test_random_changes(self):
        wanted = self.run_steps(['a', 'b', 'c'], STEPS // 3)
        self.assertEqual(self.commit(self.work(), 'Half')[0], 'published')
        wanted = self.run_steps(['a', 'b'], STEPS // 6)
        self.mounted.kill()
        self.mounted = self.mount(self.api.origin, at=self.mounted.directory)
        for name, data in wanted.items():
            self.assertEqual((self.work() / name).read_bytes(), data, self.seed)
        self.run_steps(['a', 'b', 'c'], STEPS // 6)


if __name__ == '__main__':
    fixture.main()
