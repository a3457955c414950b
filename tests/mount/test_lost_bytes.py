#!/usr/bin/env python3
"""Staged bytes lost or truncated while nothing is mounted: never silently wrong bytes, and everything else works."""
import errno
import json
import os
import shutil

import projects
import revisions
import fixture


@fixture.needs_fuse
class LostBytes(fixture.SharedProject):
    def setUp(self):
        super().setUp()
        self.mounted = self.mount(self.api.origin)
        self.tree = self.work(self.mounted)
        self.write('published', 'as it was\n')
        self.commit(self.tree, 'first')
        self.bytes = {'gone': 'one\n' * 100, 'cut': 'two\n' * 5000, 'kept': 'three\n', 'published': 'changed\n', 'empty': ''}
        for name, content in self.bytes.items():
            self.write(name, content)

    def write(self, name, content):
        (self.tree / name).write_text(content)

    def spool_file(self, name):
        found, = (file for file in self.home.glob('ann/state/**/spool/*') if file.read_text() == self.bytes[name])
        return found

    def lose(self, end):
        """Ends the mount, loses bytes and mounts again."""
        end(self.mounted)
        self.kept = self.home / 'kept'
        self.was_in = self.spool_file('gone')
        shutil.move(self.was_in, self.kept)
        os.truncate(self.spool_file('cut'), 5)
        self.spool_file('published').unlink()
        self.doctor = self.playfs('doctor', '--json', check=False)
        self.mounted = self.mount(self.api.origin)
        self.tree = self.work(self.mounted)

    def lost(self):
        return [each['path'] for each in json.loads((self.tree.parent / 'status.json').read_text())['lost_files']]

    def assert_unreadable(self, name):
        with self.assertRaises(OSError) as refused:
            (self.tree / name).read_bytes()
        self.assertEqual(refused.exception.errno, errno.EIO)

    def assert_said_and_healed(self):
        for name in ('gone', 'cut', 'published'):
            self.assert_unreadable(name)
        self.assertEqual((self.tree / 'kept').read_text(), 'three\n')
        self.assertEqual((self.tree / 'empty').read_text(), '')
        said = (self.mounted.directory / '.playfs/errors.ndjson').read_text()
        for name in ('gone', 'cut'):
            self.assertIn(f'work/{name}"', said)
        self.assertIn('are missing', said)
        self.assertIn('are truncated', said)
        self.assertEqual(self.lost(), ['cut', 'gone', 'published'])
        self.assertIn('cut: the staged bytes', self.playfs('status', self.tree).stdout)
        self.assertNotEqual(self.doctor.returncode, 0)
        for name in ('gone', 'cut', 'published'):
            self.assertIn(f'published: {name}"', self.doctor.stdout)
        refused = self.playfs('commit', '-m', 'second', self.tree, check=False)
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertIn('cut: ', refused.stderr)
        self.assertEqual(len(self.api.all('revisions')), 1, 'nothing was published')
        self.write('cut', 'anew\n')
        self.playfs('discard', self.tree / 'published')
        self.assertEqual((self.tree / 'published').read_text(), 'as it was\n')
        shutil.copy(self.kept, self.tree / 'gone')
        self.assertEqual(self.lost(), [])
        self.commit(self.tree, 'second')
        self.assertEqual(len(self.api.all('revisions')), 2)
        head = self.tree.parent / 'head'
        self.assertEqual((head / 'gone').read_text(), self.bytes['gone'])
        self.assertEqual((head / 'cut').read_text(), 'anew\n')

    def test_after_an_unmount(self):
        self.lose(lambda mount: mount.unmount())
        self.assert_said_and_healed()

    def test_after_a_kill(self):
        def kill(mount):
            mount.kill()
            mount.end()

        self.lose(kill)
        self.assert_said_and_healed()

    def test_it_can_be_removed_and_its_bytes_put_back(self):
        self.lose(lambda mount: mount.unmount())
        (self.tree / 'cut').unlink()
        (self.tree / 'published').unlink()
        self.assertEqual(self.lost(), ['gone'])
        self.mounted.unmount()
        shutil.move(self.kept, self.was_in)
        self.mounted = self.mount(self.api.origin)
        self.tree = self.work(self.mounted)
        self.assertEqual((self.tree / 'gone').read_text(), self.bytes['gone'])
        self.assertEqual(self.lost(), [])
        self.mounted.unmount()
        findings = json.loads(self.playfs('doctor', '--json', check=False).stdout)['findings']
        # Only in this user's directories: other mounts of the machine may have problems.
        self.assertEqual([each for each in findings if each['finding'] == 'wrong' and str(self.home) in each['place']], [])


@fixture.needs_fuse
class LostRows(fixture.SharedProject):
    """Deletions, renames and links, of which the spool holds nothing."""
    def setUp(self):
        super().setUp()
        self.mounted = self.mount(self.api.origin)
        self.tree = self.work(self.mounted)
        for name in ('deleted', 'renamed', 'kept'):
            (self.tree / name).write_text(name)
        self.commit(self.tree, 'first')
        (self.tree / 'deleted').unlink()
        (self.tree / 'renamed').rename(self.tree / 'moved')
        os.symlink('nowhere', self.tree / 'link')

    def wrong(self):
        findings = json.loads(self.playfs('doctor', '--json', check=False).stdout)['findings']
        return [each['message'] for each in findings if each['finding'] == 'wrong' and str(self.home) in each['place']]

    def errors(self):
        return (self.mounted.directory / '.playfs/errors.ndjson').read_text()

    def test_a_database_that_is_gone_is_no_new_work_tree(self):
        for change in (lambda path: path.unlink(), lambda path: os.truncate(path, 0)):
            self.mounted.unmount()
            database, = self.home.glob('ann/state/**/stage.db')
            kept = database.read_bytes()
            change(database)
            wrong, = self.wrong()
            self.assertIn('stage.db is missing or empty', wrong)
            self.mounted = self.mount(self.api.origin)
            self.tree = self.work(self.mounted)
            with self.assertRaises(OSError) as refused:
                os.listdir(self.tree)
            self.assertEqual(refused.exception.errno, errno.EIO)
            self.assertIn('stage.db is missing or empty', self.errors())
            self.mounted.unmount()
            database.write_bytes(kept)
            self.mounted = self.mount(self.api.origin)
            self.tree = self.work(self.mounted)
            self.assertEqual(sorted(os.listdir(self.tree)), ['kept', 'link', 'moved'])

    def test_a_last_operation_that_was_changed_is_said_and_kept(self):
        tree = os.open(self.tree, os.O_RDONLY)
        os.fsync(tree)
        os.close(tree)
        self.mounted.kill()
        self.mounted.end()
        log = max(self.home.glob('ann/state/**/operations.*'), key=lambda path: path.stat().st_size)
        changed = bytearray(log.read_bytes())
        changed[-3] ^= 0x10
        log.write_bytes(bytes(changed))
        wrong, = self.wrong()
        self.assertIn('the last operation in its log is damaged', wrong)
        self.mounted = self.mount(self.api.origin)
        self.assertEqual(sorted(os.listdir(self.work(self.mounted))), ['kept', 'moved'])
        self.assertIn('the damaged last operation of its log', self.errors())
        aside, = self.home.glob(f'ann/state/**/lost+found/*/{log.name}')
        self.assertEqual(aside.read_bytes(), changed)


class Unreadable(revisions.Revisions):
    """Head has a version of a file that nobody can read, whoever published that; it is changed here too."""

    def setUp(self):
        super().setUp()
        self.tree = self.work(self.mount(self.api.origin, options=('refresh=1',)))
        self.first = self.revision([], {'f': 'first\n', 'g': 'first\n'})
        self.set_head(self.first)
        self.eventually((self.tree / 'f').exists, 'the tree follows head')
        (self.tree / 'f').write_text('mine\n')

    def update_to(self, entry):
        self.set_head(self.revision([self.first], {'f': entry, 'g': 'theirs\n'}))
        self.assertEqual(self.fails('update'), 3)
        self.assertEqual(self.conflicts(), ['f'])
        self.assertEqual((self.tree / 'f').read_text(), 'mine\n')
        self.assertEqual((self.tree / 'g').read_text(), 'theirs\n')
        (self.tree / 'f').write_text('mine, after all\n')
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertEqual(self.head_texts(), {'f': 'mine, after all\n', 'g': 'theirs\n'})

    def test_a_hash_that_does_not_match(self):
        chunks = projects.store(self.api, 'f', 'theirs\n', '0' * 64)
        self.update_to({'h': '0' * 64, 's': 7, 'c': chunks})

    def test_a_chunk_that_is_nowhere(self):
        self.update_to({'h': '0' * 64, 's': 7, 'c': [self.project]})


if __name__ == '__main__':
    fixture.main()
