#!/usr/bin/env python3
"""The cache on disk: bounded, shared, full, damaged, cleared; the mount never shows wrong bytes."""
import contextlib
import errno
import fcntl
import json
import os
import threading
import unittest

import fixture
from projects import publish

FILES = 60
SIZE = 11_000


def large_files(seed=''):
    return {f'd{n % 6}/f{n}': (f'{seed}{n} ' * SIZE)[:SIZE] for n in range(FILES)}


@fixture.needs_fuse
class Cache(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.cache = self.home / 'ann/cache/playfs'

    def objects(self):
        return [path for path in (self.cache / 'objects').glob('??/*') if path.is_file()]

    def bytes_of_objects(self):
        total = 0
        for path in self.objects():
            with contextlib.suppress(FileNotFoundError):  # removed since it was listed, to free space
                total += path.stat().st_size
        return total

    def read(self, mount, project, wanted, place='head'):
        tree = mount.directory / 'projects' / project / place
        for path, content in wanted.items():
            self.assertEqual((tree / path).read_text(), content, path)

    def care(self, *words, code=0):
        done = self.playfs('cache', *words, '--json', check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def errors(self, mount):
        return (mount.directory / '.playfs/errors.ndjson').read_text()

    def test_stays_within_its_size(self):
        # Two thirds of it are for contents: less than the four projects need together.
        limit = 1_500_000
        mount = self.mount(self.api.origin, options=('refresh=600', f'cache_size={limit}'))
        for n in range(4):
            wanted = large_files(f'p{n}.')
            self.read(mount, publish(self.api, f'p{n}', wanted), wanted)
        self.assertEqual(self.errors(mount), '')
        # Space is freed in the background, at the latest before the mount ends.
        mount.unmount()
        self.assertLessEqual(self.bytes_of_objects(), limit * 2 / 3 * 17 / 16)
        stat = self.care('stat')
        self.assertGreater(stat['objects']['bytes'], limit / 6, 'no more went than had to')
        self.assertLessEqual(stat['records']['bytes'], limit / 3 * 1.2)

    def test_room_is_made_once_another_process_is_done_with_it(self):
        """The other process starts before everything is there; afterwards nothing is read any more."""
        limit = 900_000
        wanted = large_files()
        project = publish(self.api, 'p', wanted)
        mount = self.mount(self.api.origin, options=('refresh=600', f'cache_size={limit}'))
        other = os.open(self.cache / 'objects', os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(other, fcntl.LOCK_EX)
        self.read(mount, project, wanted)
        self.assertGreater(self.bytes_of_objects(), limit * 2 / 3 * 17 / 16)
        os.close(other)
        self.eventually(lambda: self.bytes_of_objects() <= limit * 2 / 3 * 17 / 16, 'the contents fit')

    def test_several_processes_stay_within_its_size_together(self):
        """Each ends soon after its last write; whichever has the turn frees the space."""
        limit = 1_500_000
        projects = []
        for n in range(4):
            wanted = large_files(f'p{n}.')
            projects.append((publish(self.api, f'p{n}', wanted), wanted))
        mounts = [self.mount(self.api.origin, options=('refresh=600', f'cache_size={limit}')) for _ in range(2)]
        readers = [threading.Thread(target=lambda mount=mount, order=order: [self.read(mount, *one) for one in order])
                   for mount, order in zip(mounts, (projects, projects[::-1]))]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        for mount in mounts:
            self.assertEqual(self.errors(mount), '')
            mount.unmount()
        self.assertLessEqual(self.bytes_of_objects(), limit * 2 / 3 * 18 / 16, 'a share for each')

    def test_stat_verify_clear(self):
        wanted = large_files()
        project = publish(self.api, 'p', wanted)
        self.assertEqual(self.care('stat')['objects']['count'], 0)
        mount = self.mount(self.api.origin, options=('refresh=600',))
        self.read(mount, project, wanted)
        stat = self.care('stat')
        self.assertEqual(stat['objects']['count'], FILES)
        self.assertGreaterEqual(stat['bytes'], FILES * SIZE)
        self.assertTrue(self.care('verify')['sound'])
        words = self.playfs('cache', 'stat').stdout
        self.assertIn(str(self.cache), words)

        damaged = self.objects()[0]
        with open(damaged, 'r+b') as file:
            file.write(b'!')
        found = self.care('verify', code=1)
        self.assertEqual(found['objects']['damaged'], [damaged.parent.name + damaged.name])
        self.assertTrue(self.care('verify')['sound'], 'it is out of the way')

        self.assertEqual(self.care('clear')['removed_objects'], FILES - 1)
        self.assertEqual(self.care('stat')['objects']['count'], 0)
        self.read(self.mount(self.api.origin, options=('refresh=600',)), project, wanted)
        self.assertEqual(self.care('stat')['objects']['count'], FILES)

    def test_damage_is_healed_by_fetching_again(self):
        wanted = large_files()
        project = publish(self.api, 'p', wanted)
        first = self.mount(self.api.origin, options=('refresh=600',))
        self.read(first, project, wanted)
        first.unmount()
        for number, path in enumerate(self.objects()):
            content = bytearray(path.read_bytes())
            if number % 3 == 0:
                content[number * 100] ^= 1
            elif number % 3 == 1:
                del content[len(content) // 2:]
            else:
                content[-10:] = bytes(10)
            path.write_bytes(content)
        (self.cache / 'records.db').write_bytes(b'nonsense' * 1000)
        for name in ('records.db-wal', 'records.db-shm'):
            (self.cache / name).unlink(missing_ok=True)
        again = self.mount(self.api.origin, options=('refresh=600',))
        self.read(again, project, wanted)
        self.assertTrue(self.care('verify')['sound'])

    def test_two_mounts_and_commands_share_one_cache(self):
        projects = {}
        for name in ('one', 'two'):
            wanted = large_files(name)
            projects[publish(self.api, name, wanted)] = wanted
        options = ('refresh=600', 'cache_size=600000')  # so that each evicts what the other uses
        mounts = [self.mount(self.api.origin, options=options) for _ in range(2)]
        wrong, over = [], threading.Event()

        def read_on(mount, order):
            try:
                for project in order:
                    # A separate tree each time, whose pages the kernel has not cached.
                    for place in ('head', 'work'):
                        self.read(mount, project, projects[project], place)
            except BaseException as error:  # pylint: disable=broad-except
                wrong.append(error)

        def disturb():
            while not over.is_set():
                self.playfs('cache', 'clear')
                self.playfs('cache', 'verify')

        readers = [threading.Thread(target=read_on, args=(mounts[0], list(projects))),
                   threading.Thread(target=read_on, args=(mounts[1], list(reversed(projects))))]
        disturber = threading.Thread(target=disturb)
        for thread in [*readers, disturber]:
            thread.start()
        for reader in readers:
            reader.join()
        over.set()
        disturber.join()
        self.assertEqual(wrong, [])
        self.assertEqual([self.errors(mount) for mount in mounts], ['', ''])

    @unittest.skipUnless(os.geteuid() == 0, 'only root may make a small disk')
    def test_a_full_disk_makes_reading_slower_not_impossible(self):
        self.cache.mkdir(parents=True)
        self.command('mount', '-t', 'tmpfs', '-o', 'size=400k,mode=700', 'tmpfs', self.cache)
        self.addCleanup(self.command, 'umount', '-l', self.cache)
        wanted = large_files()
        project = publish(self.api, 'p', wanted)
        for _ in range(2):
            mount = self.mount(self.api.origin, options=('refresh=600',))
            for place in ('head', 'work'):
                self.read(mount, project, wanted, place)
            self.assertEqual(self.errors(mount), '')
            mount.unmount()
        # Filled by another program: not even the record index can be written.
        with self.assertRaises(OSError) as full, open(self.cache / 'other', 'wb', buffering=0) as other:
            while other.write(bytes(4096)):
                pass
        self.assertEqual(full.exception.errno, errno.ENOSPC)
        self.read(self.mount(self.api.origin, options=('refresh=600',)), project, wanted)


if __name__ == '__main__':
    fixture.main()
