#!/usr/bin/env python3
"""What `playfs status` costs in a clone in which nothing has changed: a stat(2) for each file, a listing for each
directory, and nothing that waits for the disk or writes the index. Counted in system calls, by strace."""
import collections
import re
import shutil
import subprocess
import time
import unittest

import fixture
from projects import publish

WAITS = ('fsync', 'fdatasync', 'syncfs', 'sync_file_range', 'msync')
FILES, FOLDERS = 40, 5


def runs_strace():
    return shutil.which('strace') and not subprocess.run(['strace', '-f', 'true'], capture_output=True).returncode


@unittest.skipUnless(runs_strace(), 'needs strace, and to be allowed to trace')
class Status(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()

    def clone(self, name, files, folders):
        project = publish(self.api, name, {f'd{number % folders}/f{number}': f'{number}\n' for number in range(files)})
        place = self.home / name
        self.playfs('clone', project, place, '--site', self.api.origin)
        time.sleep(1.1)  # until no file is as young as the index
        self.playfs('status', cwd=place)
        return place

    def calls(self, place):
        """Each system call of one more status: its name, and the line. Without what is opened elsewhere: that depends on
        which threads happen to allocate."""
        log = self.home / 'strace'
        self.command('strace', '-f', '-qq', '-e', 'signal=none', '-o', log, self.playfs_path, 'status', cwd=place)
        lines = [line.split(None, 1)[1] for line in log.read_text(errors='replace').splitlines()]
        elsewhere = re.compile(rf'openat\(AT_FDCWD, "/(?!{re.escape(str(place)[1:])}[/"])')
        return [(line.split('(')[0], line) for line in lines if re.match(r'\w+\(', line) and not elsewhere.match(line)]

    def counts(self, place):
        """How often each system call is made; and 'listing', how often a directory is opened to list it. (All opens differ
        by a few with the order in which the file system lists `.playfs/state`.)"""
        calls = self.calls(place)
        listings = sum(1 for _, line in calls if re.match(r'openat\(\d+, "\.",', line))
        return collections.Counter(name for name, _ in calls) + collections.Counter(listing=listings)

    def test_it_costs_one_stat_for_each_file_and_one_listing_for_each_directory(self):
        few = self.counts(self.clone('few', FILES, FOLDERS))
        many = self.counts(self.clone('many', 2 * FILES, FOLDERS))
        wide = self.counts(self.clone('wide', FILES, 2 * FOLDERS))
        stat = 'newfstatat' if few['newfstatat'] else 'statx'
        slack = FILES // 4  # a larger manifest is kept elsewhere
        self.assertAlmostEqual(many[stat] - few[stat], FILES, delta=slack)
        for name in ('openat', 'openat2', 'read', 'pread64', 'getdents64', 'close', 'readlinkat'):
            self.assertLess(abs(many[name] - few[name]), slack, f'{name} for each file: {few[name]}, {many[name]}')
        self.assertLessEqual(wide['openat2'] - few['openat2'], FOLDERS)
        self.assertEqual(wide['listing'] - few['listing'], FOLDERS)

    def test_it_neither_waits_for_the_disk_nor_writes_the_index(self):
        place = self.clone('still', FILES, FOLDERS)
        before = (place / '.playfs/state/index.db').stat().st_mtime_ns
        calls = self.calls(place)
        self.assertEqual([line for name, line in calls if name in WAITS], [])
        self.assertEqual((place / '.playfs/state/index.db').stat().st_mtime_ns, before)
        opened = [line for name, line in calls if name == 'openat' and '/stage.db-wal"' in line and 'O_CREAT' in line]
        self.assertEqual(len(opened), 1, 'by SQLite, once')

    def test_it_starts_few_threads_and_opens_no_socket(self):
        place = self.clone('lean', FILES, FOLDERS)
        names = collections.Counter(name for name, _ in self.calls(place))
        # Five for the stage, the manifest, the next look at the key, publications, and long waits; some more on a loaded
        # machine, where a thread may still be at work when the next task comes. It was 18 when all started at once.
        self.assertLess(names['clone3'] + names['clone'], 12)
        self.assertEqual(names['socketpair'], 0, 'of libcurl, which is set up by the first request')

    def test_it_loads_no_library_that_it_does_not_use(self):
        place = self.clone('light', FILES, FOLDERS)
        log = self.home / 'opened'
        self.command('strace', '-f', '-qq', '-e', 'trace=open,openat', '-o', log, self.playfs_path, 'status', cwd=place)
        loaded = set(re.findall(r'/(lib[a-z0-9]+)[-.0-9]*\.so', log.read_text(errors='replace')))
        self.assertIn('libsqlite3', loaded)
        self.assertEqual(loaded & {'libcurl', 'libpq', 'libgit2', 'libgmime'}, set())

    def test_what_was_changed_is_all_that_is_read(self):
        place = self.clone('edited', FILES, FOLDERS)
        (place / 'd1/f1').write_text('changed\n')
        opened = [line for name, line in self.calls(place) if name.startswith('openat') and re.search(r'"d\d/f\d+"', line)]
        self.assertTrue(opened)
        self.assertEqual({re.search(r'"(d\d/f\d+)"', line).group(1) for line in opened}, {'d1/f1'})


if __name__ == '__main__':
    fixture.main()
