#!/usr/bin/env python3
"""Whatever happens to the cache on disk costs only speed: the mount lives, bytes are right, status says why."""
import json
import os
import shutil
import sqlite3
import time
import unittest

import fixture
from projects import publish

FILES = 30
OPAQUE = 'opaque'


@fixture.needs_fuse
class CacheTrouble(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.cache = self.home / 'ann/cache/playfs'
        self.wanted = {f'd{n % 6}/f{n}': f'content {n}\n' * 200 for n in range(FILES)}
        self.projects = [publish(self.api, f'p{n}', self.wanted) for n in range(3)]
        self.foreign = self.publish_foreign()

    def publish_foreign(self):
        """By a client whose hashes mean nothing, so its content is found only through its chunks."""
        project = self.api.create('projects', name=OPAQUE)['id']
        chunk = self.api.create('file_chunks', rev='', path='a', seq=0, hash='x', content='strange\n')['id']
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='x', state={},
                                   manifest={'files': {'a': {'h': 'x', 's': 8, 'c': [chunk]}}})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        return project

    def read(self, mount, project):
        began = time.monotonic()
        for place in ('head', 'work'):
            tree = mount.directory / 'projects' / project / place
            for path, content in self.wanted.items():
                self.assertEqual((tree / path).read_text(), content, path)
        return time.monotonic() - began

    def read_all(self, mount):
        for project in self.projects:
            self.read(mount, project)
        self.assertEqual((mount.directory / 'projects' / self.foreign / 'head/a').read_text(), 'strange\n')
        self.assertEqual(len(os.listdir(mount.directory / 'projects')), 2 + len(self.projects) + 1)
        self.assertIsNone(mount.process.poll())

    def trouble(self, mount):
        return json.loads((mount.directory / '.playfs/status.json').read_text())['cache_trouble']

    def doctor(self):
        return self.playfs('doctor', check=False).stdout

    def test_files_of_the_database_are_cut_off_while_it_is_open(self):
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.read(mount, self.projects[0])
        for project in self.projects[1:]:
            for file in list(self.cache.iterdir()):
                if file.is_file():
                    os.truncate(file, 0)
            self.read(mount, project)
        self.read_all(mount)
        self.assertIsNone(self.trouble(mount), 'it was made anew')

    def test_objects_are_cut_off_while_they_are_open(self):
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.read(mount, self.projects[0])
        for file in (self.cache / 'objects').glob('??/*'):
            os.truncate(file, 0)
        self.read_all(mount)

    def test_another_process_has_the_database_for_itself(self):
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.read(mount, self.projects[0])
        calm = self.read(mount, self.projects[1])
        other = sqlite3.connect(self.cache / 'records.db', isolation_level=None)
        self.addCleanup(other.close)
        other.execute('PRAGMA locking_mode=EXCLUSIVE')
        other.execute('BEGIN EXCLUSIVE')
        began = time.monotonic()
        self.read_all(mount)
        self.playfs('ls', '--site', self.api.origin, self.projects[2])
        print(f'calm {calm:.2f} s a project, locked {time.monotonic() - began:.2f} s for three', flush=True)
        # The first mount, and the first command, to find it locked.
        again = self.mount(self.api.origin, options=('refresh=1',))
        self.read_all(again)
        self.assertIn('lock', self.trouble(again))
        self.assertIn('work without the cache', self.doctor())
        other.close()
        publish(self.api, 'p', {'late.txt': 'late\n'}, self.projects[0])
        self.eventually(lambda: (self.read_late(again) == 'late\n') and self.trouble(again) is None, 'it is used again')

    def read_late(self, mount):
        try:
            return (mount.directory / 'projects' / self.projects[0] / 'head/late.txt').read_text()
        except OSError:
            return None

    @unittest.skipUnless(os.geteuid() == 0, 'only root may mount')
    def test_a_read_only_file_system(self):
        for is_filled in (False, True):
            self.cache.mkdir(parents=True, exist_ok=True)
            self.command('mount', '-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', self.cache)
            self.addCleanup(self.command, 'umount', '-l', self.cache, check=False)
            if is_filled:
                first = self.mount(self.api.origin, options=('refresh=1',))
                self.read(first, self.projects[0])
                first.unmount()
            self.command('mount', '-o', 'remount,ro', self.cache)
            mount = self.mount(self.api.origin, options=('refresh=1',))
            self.read_all(mount)
            self.assertIn('ead-only', self.trouble(mount))
            self.assertIn('work without the cache', self.doctor())
            mount.unmount()
            self.command('umount', '-l', self.cache)

    @unittest.skipUnless(os.geteuid() == 0, 'only root may mount')
    def test_it_becomes_read_only_while_mounted_and_can_be_written_again(self):
        self.cache.mkdir(parents=True, exist_ok=True)
        self.command('mount', '-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', self.cache)
        self.addCleanup(self.command, 'umount', '-l', self.cache, check=False)
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.read(mount, self.projects[0])
        self.addCleanup(self.command, 'umount', '-l', self.cache, check=False)
        self.command('mount', '-t', 'tmpfs', '-o', 'ro,mode=700', 'tmpfs', self.cache)
        self.read_all(mount)
        self.assertIsNotNone(self.trouble(mount))
        self.command('umount', self.cache)
        publish(self.api, 'p', {'late.txt': 'late\n'}, self.projects[0])
        self.eventually(lambda: self.read_late(mount) == 'late\n' and self.trouble(mount) is None, 'it is used again')

    def test_a_file_in_the_place_of_the_directory(self):
        self.cache.parent.mkdir(parents=True)
        self.cache.write_text('in the way')
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.read_all(mount)
        self.assertIn('ot a directory', self.trouble(mount))
        self.assertIn('not a directory', self.doctor())
        self.playfs('ls', '--site', self.api.origin, self.projects[0])
        self.assertEqual(self.cache.read_text(), 'in the way')

    def test_it_is_deleted_while_mounted(self):
        mount = self.mount(self.api.origin, options=('refresh=1',))
        self.read(mount, self.projects[0])
        shutil.rmtree(self.cache)
        self.read_all(mount)
        self.assertTrue((self.cache / 'records.db').exists())
        self.assertIsNone(self.trouble(mount))

    @unittest.skipUnless(os.geteuid() == 0, 'mounts a file system')
    def test_a_damaged_object_that_cannot_be_removed_is_fetched_again(self):
        self.cache.mkdir(parents=True)
        self.command('mount', '-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', self.cache)
        self.addCleanup(self.command, 'umount', '-l', self.cache, check=False)
        mount = self.mount(self.api.origin)
        self.read(mount, self.projects[0])
        mount.unmount()
        for path in (self.cache / 'objects').glob('??/*'):
            content = bytearray(path.read_bytes())
            content[0] ^= 1
            path.write_bytes(content)
        self.command('mount', '-o', 'remount,ro', self.cache)
        mount = self.mount(self.api.origin)
        self.read(mount, self.projects[0])
        first = mount.directory / 'projects' / self.projects[0] / 'work/d0/f0'
        with open(first, 'r+b') as file:
            file.write(b'C')
        self.assertEqual(first.read_bytes()[:8], b'Content ')


if __name__ == '__main__':
    fixture.main()
