#!/usr/bin/env python3
"""What earlier versions have written (tests/data/formats) is shown, gone on with and published by this one. What a newer
version has written is refused in words, and not touched."""
import contextlib
import json
import sqlite3
import tarfile
import time

import fixture
from formats import ARCHIVES, SOURCE, Formats

CHECKPOINT_AGE = 29 * 24 * 3600  # seconds; checkpoints are kept for a day longer
LATER_FORMAT = 1000


@fixture.needs_fuse
class Archives(Formats):
    def unpack(self, archive):
        """The archive's home becomes ann's; what is in it."""
        with tarfile.open(archive) as packed:
            packed.extraction_filter = lambda member, place: member  # with its modes, as all versions of Python do
            packed.extractall(self.home)
        expected = json.loads((self.home / 'ann/expected.json').read_text())
        # A clone names the directory of a local playground, which is elsewhere now.
        was = expected.pop('home')
        for mark in self.clone_of('field').rglob('clone.json'):
            mark.write_text(mark.read_text().replace(was, str(self.home)))
        return expected

    def each(self):
        """Each archive in turn, with what its version saw."""
        archives = sorted(ARCHIVES.glob('*.tar.xz'))
        self.assertTrue(archives)
        for archive in archives:
            with self.subTest(archive.name):
                yield self.unpack(archive)
            self.tearDownHome()

    def tearDownHome(self):
        self.command('rm', '-rf', self.home / 'ann')

    def forget_checkpoints(self, seen):
        return {name: {key: value for key, value in of.items() if key != 'staged'} |
                {'staged': {**of['staged'], 'checkpoints': None}} if isinstance(of, dict) else of
                for name, of in seen.items()}

    def test_all_of_it_is_as_its_version_saw_it(self):
        for expected in self.each():
            is_old = time.time() - expected.pop('written_at') > CHECKPOINT_AGE
            mount = self.mount(SOURCE, options=('offline',))
            seen = self.all_of_it(mount)
            mount.unmount()
            if is_old:
                seen, expected = self.forget_checkpoints(seen), self.forget_checkpoints(expected)
            self.maxDiff = None
            self.assertEqual(seen, expected)

    def test_work_goes_on(self):
        for expected in self.each():
            mount = self.mount(SOURCE)
            garden, field = (mount.project(name) / 'work' for name in ('garden', 'field'))
            self.eventually(lambda: not self.staged(garden)['queue'], 'what was queued is published')
            self.assertEqual(self.log(mount.project('garden'))[0], 'Sent later')
            self.assertEqual(self.staged(garden)['changes'], expected['garden']['staged']['changes'])
            if any(each['message'] == 'Before more' for each in self.json('status', garden)['checkpoints']):
                self.playfs('checkpoint', 'restore', '1', 'gone', cwd=garden)
                self.assertEqual((garden / 'gone').read_text(), 'gone\n')
            (field / 'changed').write_text('resolved\n')
            clone = self.clone_of('field')
            for work in (garden, field, clone):
                self.playfs('commit', '--resolved', '-m', 'By a later version', work, check=False)
                self.assertEqual(self.staged(work)['changes'], [])
            self.assertEqual((mount.project('garden') / 'head/changed').read_text(), 'second\n')
            self.assertEqual((mount.project('field') / 'head/changed').read_text(), 'resolved\n')
            self.assertEqual((mount.project('field') / 'head/new').read_text(), 'new\n')
            mount.unmount()
            self.assertIn('sound', self.playfs('serve', 'check', '--store', self.home / 'ann/data/playfs/default').stderr)
            self.assertEqual([each for each in self.found_by_doctor() if each['finding'] == 'wrong'], [])

    def make_newer(self, name):
        """Sets the format of each database of that name; its contents afterwards."""
        self.unpack(max(ARCHIVES.glob('*.tar.xz')))
        found = sorted((self.home / 'ann').rglob(name))
        self.assertTrue(found, name)
        for path in found:
            with contextlib.closing(sqlite3.connect(path)) as database:
                if name == 'index.db':
                    database.execute("UPDATE value SET value = ? WHERE key = 'format'", (LATER_FORMAT,))
                database.execute(f'PRAGMA user_version = {LATER_FORMAT}')
                database.commit()
        return {path: self.contents(path) for path in found}

    def contents(self, path):
        with contextlib.closing(sqlite3.connect(path)) as database:
            return [*database.execute('PRAGMA user_version'), *database.iterdump()]

    def assert_left_alone(self, before, said):
        self.assertIn('newer version of playfs', said)
        self.assertEqual({path: self.contents(path) for path in before}, before)

    def test_a_newer_playground_is_refused(self):
        before = self.make_newer('playground.db')
        place = self.home / 'place'
        place.mkdir()
        done = self.playfs('mount', SOURCE, place, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assert_left_alone(before, done.stderr)

    def test_a_newer_clone_is_refused(self):
        before = self.make_newer('index.db')
        done = self.playfs('status', self.clone_of('field'), check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assert_left_alone(before, done.stderr)

    def test_newer_staged_changes_and_queues_are_read_only(self):
        for name in ('stage.db', 'publish.db'):
            with self.subTest(name):
                before = self.make_newer(name)
                mount = self.mount(SOURCE, options=('offline',))
                work = mount.project('garden') / 'work'
                with self.assertRaises(OSError):
                    (work / 'more').write_text('more\n')
                status = self.json('status', work)
                self.assertFalse(status['writable'])
                mount.unmount()
                self.assert_left_alone(before, status['reason'])
                self.tearDownHome()

    def test_a_newer_cache_is_made_anew(self):
        self.make_newer('records.db')
        mount = self.mount(SOURCE)
        self.assertEqual((mount.project('garden') / 'head/changed').read_text(), 'first\n')
        self.assertEqual((mount.project('garden') / 'work/changed').read_text(), 'second\n')
        mount.unmount()


if __name__ == '__main__':
    fixture.main()
