#!/usr/bin/env python3
"""While readers wait for a server that hangs, the rest of the mount goes on as ever, and who is killed leaves nothing."""
import os
import subprocess
import sys

import proxy
import rig
from projects import publish

FILES = 50  # in one manifest
# Of several pages: smaller files the kernel reads one by one once it has too many reads under way.
SIZE = 16_000
READERS = int(os.environ.get('PLAYFS_HUNG_READERS', '60'))
READ_ONE_PAGE = 'import os, sys; os.read(os.open(sys.argv[1], os.O_RDONLY), 4096)'


class Availability(rig.Rig):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)
        self.near = publish(self.api, 'near', {f'near{n}': f'content {n}\n'.ljust(SIZE) for n in range(FILES)})
        names = [f'far{n}' for n in range(READERS)]
        self.far = [publish(self.api, f'far {n}', {name: f'{name} is far\n'.ljust(SIZE) for name in names[n:n + FILES]})
                    for n in range(0, READERS, FILES)]

    def mount_with_near_on_disk(self):
        """Nothing of it is in the kernel's caches, all is in ours."""
        first = self.mount(self.proxy.url, options=('refresh=600',))
        self.command('grep', '-r', 'content', f'{first.directory}/projects/{self.near}/head/')
        first.unmount()
        return self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))

    def in_flight(self, mount):
        """Requests that the kernel counts as unanswered, from its own file system of connections."""
        table = self.home / 'connections'
        if not table.exists():
            table.mkdir()
            if subprocess.run(['mount', '-t', 'fusectl', 'none', table], capture_output=True).returncode:
                self.skipTest('connections are counted for root alone')
            self.addCleanup(subprocess.run, ['umount', table], check=True)
        return int((table / str(os.stat(mount.directory).st_dev) / 'waiting').read_text())

    def hang(self, mount):
        """READERS processes, each in a read of a page that the server does not answer."""
        files = [path for far in self.far for path in (mount.directory / 'projects' / far / 'head').iterdir()]
        self.assertEqual(len(files), READERS)
        self.proxy.set_hanging('/file_chunks/')
        readers = [subprocess.Popen([sys.executable, '-S', '-c', READ_ONE_PAGE, str(file)],
                                    stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for file in files]
        for reader in readers:
            self.addCleanup(reader.wait)
            self.addCleanup(reader.kill)
        return readers


@rig.needs_fuse
class HungReaders(Availability):
    def test_readers_that_hang_take_nobody_elses_turn_and_leave_none_behind(self):
        mount = self.mount_with_near_on_disk()
        before = self.in_flight(mount)
        readers = self.hang(mount)
        self.eventually(lambda: self.in_flight(mount) >= before + READERS, 'each has a request of its own')
        # Not in the kernel's cache, and in pieces: reads that wait for their turn where there is none left.
        near = mount.directory / 'projects' / self.near
        (near / 'work/staged').write_bytes(b'x' * 100_000)
        pieces = 'for file in "$1"/*; do dd if="$file" bs=4096 status=none || exit; done'
        said = self.command('sh', '-c', pieces, 'sh', near / 'work').stdout
        self.assertEqual(len(said), FILES * SIZE + 100_000)
        self.assertEqual([reader.poll() for reader in readers], [None] * READERS)

        for reader in readers:
            reader.kill()
        for reader in readers:
            reader.wait(rig.COMMAND_LIMIT)
        # The server still hangs: nothing but their death can have ended these.
        self.eventually(lambda: self.in_flight(mount) <= before, 'their requests are gone with them', limit=10)


if __name__ == '__main__':
    rig.main()
