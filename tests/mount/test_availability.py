#!/usr/bin/env python3
"""While readers wait for a server that hangs, the rest of the mount goes on as ever, and who is killed leaves nothing."""
import hashlib
import json
import os
import signal
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

    def connection(self, mount):
        """What the kernel tells of the mount, in its own file system of connections."""
        table = self.home / 'connections'
        if not table.exists():
            table.mkdir()
            if subprocess.run(['mount', '-t', 'fusectl', 'none', table], capture_output=True).returncode:
                self.skipTest('connections are counted for root alone')
            self.addCleanup(subprocess.run, ['umount', table], check=True)
        return table / str(os.stat(mount.directory).st_dev)

    def in_flight(self, mount):
        """Requests that are not answered."""
        return int((mount.connection / 'waiting').read_text())

    def mount(self, *arguments, **options):
        mount = super().mount(*arguments, **options)
        mount.connection = self.connection(mount)
        return mount

    def _kill_mounts(self):
        for mount in self.mounts:
            self.abort(mount.connection)
        super()._kill_mounts()

    def abort(self, connection):
        """Whatever hangs there for good then ends, also where no signal reaches."""
        if connection.exists():
            (connection / 'abort').write_text('1')

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


@rig.needs_fuse
class HungLookup(Availability):
    """The kernel holds a directory's lock while a lookup in it waits for the server, and then something in it changes."""

    def setUp(self):
        super().setUp()
        self.mounted = self.mount(self.proxy.url, options=('refresh=1', 'noprefetch'))

    def head_of(self, project):
        return self.api.get('projects', project)['latest_revision']

    def move(self, project, word):
        before = self.head_of(project)
        publish(self.api, 'next', {'file': f'{word}\n'}, project=project, parents=[before])

    def a_lookup_that_hangs(self):
        """In a work tree that moves on meanwhile: the kernel is to drop names of it. Who looks, and the tree."""
        text = 'a stranger tells no size\n'
        chunk = self.api.create('file_chunks', rev='', path='strange', seq=0, content=text)['id']
        digest = hashlib.sha256(text.encode()).hexdigest()
        project = self.api.create('projects', name='hangs')['id']
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='strange', state={},
                                   manifest={'files': {'strange': {'h': digest, 'c': [chunk]}}})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        self.proxy.set_hanging(f'/file_chunks/{chunk}')
        directory = self.mounted.directory / 'projects' / project
        looker = subprocess.Popen(['stat', directory / 'work/strange'], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(looker.wait)
        self.addCleanup(looker.kill)
        self.addCleanup(self.abort, self.mounted.connection)
        self.eventually(lambda: self.proxy.hung() > 0, 'a lookup waits')
        self.move(project, 'second')
        head = self.head_of(project)
        self.eventually(lambda: json.loads((directory / 'status.json').read_text())['base'] == head, 'it follows')
        return looker, directory / 'work'

    def test_news_of_one_project_do_not_wait_for_a_lookup_in_another(self):
        near = self.mounted.directory / 'projects' / self.near / 'work/file'
        self.move(self.near, 'old')
        self.eventually(lambda: near.exists() and near.read_text() == 'old\n', 'it follows')
        looker, work = self.a_lookup_that_hangs()
        self.eventually(lambda: (work / 'file').exists(), 'nor does what came in beside it', limit=20)
        self.assertEqual((work / 'file').read_text(), 'second\n')
        for word in ('new', 'newer'):
            self.move(self.near, word)
            self.eventually(lambda: near.read_text() == f'{word}\n', 'it still follows', limit=20)
        self.move(self.near, 'newest')
        self.playfs('update', near.parent)
        self.assertEqual(near.read_text(), 'newest\n')
        self.assertIsNone(looker.poll())

    def test_a_mount_that_is_killed_is_gone_and_who_waited_in_it_goes_on(self):
        looker, _ = self.a_lookup_that_hangs()
        self.mounted.process.kill()
        self.assertEqual(self.mounted.process.wait(20), -signal.SIGKILL)
        self.assertNotEqual(looker.wait(20), 0)


if __name__ == '__main__':
    rig.main()
