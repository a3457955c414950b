#!/usr/bin/env python3
"""On a disk whose files can share blocks, changing a large published file costs what is written, not a copy."""
import os
import shutil
import subprocess
import time

import fixture

MIB = 1024 * 1024
SIZE = 2 * MIB


@fixture.needs_fuse
class Reflink(fixture.Fixture):
    """playfs's own files are on a small disk whose files can share blocks."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0 or not shutil.which('mkfs.xfs'):
            self.skipTest('needs root and mkfs.xfs')
        self.api = self.serve()
        image, self.disk = self.home / 'disk', self.home / 'ann'
        self.disk.mkdir()
        with open(image, 'wb') as sparse:
            sparse.truncate(400 * MIB)
        self.command('mkfs.xfs', '-q', '-m', 'reflink=1', image)
        if subprocess.run(['mount', '-o', 'loop', image, self.disk], capture_output=True, timeout=30).returncode:
            self.skipTest('needs loop devices and xfs in the kernel')
        self.addCleanup(self.command, 'umount', '-l', self.disk)

    def copied(self):
        """Bytes that the mount passed to the kernel, by whatever call."""
        with open(f'/proc/{self.mounted.process.pid}/io', encoding='ascii') as counters:
            return next(int(line.split()[1]) for line in counters if line.startswith('wchar:'))

    def copied_at_rest(self):
        """The same once the records of what was read are stored as well, which happens a moment later."""
        cache = self.disk / 'cache/playfs'
        self.eventually(lambda: sum(file.stat().st_size for file in cache.glob('records.db*')) > SIZE, 'records are stored')
        before, now = None, self.copied()
        while before != now:
            time.sleep(1)
            before, now = now, self.copied()
        return now

    def test_an_append_to_a_large_published_file_copies_none_of_it(self):
        self.api.create('projects', name='p')
        content = os.urandom(SIZE // 2).hex().encode()
        bob = self.mount(self.api.origin, 'bob').project('p') / 'work'
        (bob / 'large').write_bytes(content)
        self.assertEqual(self.commit(bob, 'Large', who='bob')[0], 'published')
        self.mounted = self.mount(self.api.origin)
        work = self.mounted.project('p') / 'work'
        self.assertEqual((work / 'large').read_bytes(), content)
        before = self.copied_at_rest()
        with open(work / 'large', 'ab') as file:
            file.write(b'!')
        with open(work / 'large', 'r+b') as file:
            file.write(b'?')
        self.assertLess(self.copied() - before, SIZE // 4)
        self.assertEqual((work / 'large').read_bytes(), b'?' + content[1:] + b'!')
        self.assertEqual((work.parent / 'head/large').read_bytes(), content)


if __name__ == '__main__':
    fixture.main()
