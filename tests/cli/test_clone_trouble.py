#!/usr/bin/env python3
"""A clone whose state is damaged, whose service has gaps, or whose directory cannot be read: nothing is lost."""
import json
import os
import shutil
import unittest

import fixture
import proxy
from clones import DONE, FAILED, Clones


class Damaged(Clones):
    """What is in the directory outlives its stage and its index."""

    def setUp(self):
        super().setUp()
        (self.work / 'rose').write_text('base\n')
        (self.work / 'kept').write_text('kept\n')
        self.first = self.commit('Plant')
        other = self.clone('other', 'bob')
        (other / 'tulip').write_text('tulip\n')
        self.commit('Tulip', at=other, who='bob')
        (self.work / 'rose').write_text('mine\n')
        (self.work / 'new').write_text('new\n')
        self.assertEqual(self.staged(), {'rose': 'modified', 'new': 'added'})

    def assert_work_is_there(self):
        self.assertEqual({name: (self.work / name).read_text() for name in ('rose', 'new', 'kept')},
                         {'rose': 'mine\n', 'new': 'new\n', 'kept': 'kept\n'})

    def test_without_its_stage(self):
        self.command('rm', '-rf', self.work / '.playfs/state')
        status = self.json('status')
        self.assertEqual(status['base'], self.first, 'not head')
        self.assert_work_is_there()
        self.run_in('update', check=False)
        self.assert_work_is_there()
        self.assertLessEqual({'rose', 'new'}, set(self.staged()))
        self.json('commit', '-m', 'Mine', '--resolved')
        self.json('update')
        self.assert_work_is_there()
        self.assertEqual((self.work / 'tulip').read_text(), 'tulip\n')

    def test_with_a_damaged_stage(self):
        for damage in (b'garbage' * 1000, b''):
            for path in (self.work / '.playfs/state').rglob('stage.db*'):
                if path.name == 'stage.db':
                    path.write_bytes(damage)
                else:
                    path.unlink()
            done = self.run_in('update', check=False)
            self.assertEqual(done.returncode, FAILED, damage[:8])
            self.assertIn('playfs doctor --repair', done.stderr)
            self.assertIn('"wrong"', self.run_in('doctor', '--json', check=False).stdout)
            done = self.run_in('doctor', '--repair', check=False)
            self.assertIn('set the damaged database aside; the staged bytes are in', done.stdout)
            self.assert_work_is_there()
            self.run_in('update', check=False)
            self.assert_work_is_there()
            kept = [path.read_bytes() for path in (self.work / '.playfs/state').rglob('lost+found/*/spool/*')]
            self.assertIn(b'mine\n', kept)


class Halves(Clones):
    """What an update could not do is said, and done by the next one."""

    def proxied(self, name='far'):
        far = proxy.CountingProxy(int(self.api.origin.rpartition(':')[2]))
        self.addCleanup(far.close)
        directory = self.home / name
        self.playfs('clone', self.project, directory, '--site', far.url, who='bob')
        return far, directory

    def test_content_that_is_missing_once_is_fetched_again(self):
        old, new = os.urandom(60_000), os.urandom(60_000)
        (self.work / 'blob').write_bytes(old)
        self.commit('Old')
        far, directory = self.proxied()
        (self.work / 'blob').write_bytes(new)
        (self.work / 'more').write_bytes(new[::-1])
        self.commit('New')
        far.fate = lambda request: (404, '{"error": "not found"}') if 'file_chunks' in request else None
        self.assertIn('Left out blob for now', self.run_in('update', at=directory, who='bob').stderr)
        self.assertEqual((directory / 'blob').read_bytes(), old, 'it stays until the new one is here')
        status = self.json('status', at=directory, who='bob')
        self.assertEqual(([each['path'] for each in status['left_out']], status['staged'], status['next']),
                         (['blob', 'more'], [], 'playfs update'))
        self.assertIn('"playfs update" tries again', self.run_in('status', at=directory, who='bob').stdout)
        far.fate = lambda request: None
        self.run_in('update', at=directory, who='bob')
        self.assertEqual((directory / 'blob').read_bytes(), new)
        self.assertEqual((directory / 'more').read_bytes(), new[::-1])
        self.assertEqual(self.json('status', at=directory, who='bob')['left_out'], [])

    def test_an_interrupted_update_shows_in_status(self):
        (self.work / 'blob').write_bytes(os.urandom(60_000))
        self.commit('Old')
        far, directory = self.proxied()
        (self.work / 'blob').write_bytes(os.urandom(60_000))
        self.commit('New')
        far.fate = lambda request: (403, '{"error": "no"}') if 'file_chunks' in request else None
        self.assertNotEqual(self.run_in('update', at=directory, who='bob', check=False).returncode, DONE)
        status = self.json('status', at=directory, who='bob')
        self.assertEqual((status['interrupted'], status['staged'], status['next']), (True, [], 'playfs update'))
        self.assertIn('(use "playfs update" to go on)', self.run_in('status', at=directory, who='bob').stdout)
        far.fate = lambda request: None
        self.run_in('update', at=directory, who='bob')
        self.assertEqual(self.json('status', at=directory, who='bob')['interrupted'], False)
        self.assert_same_tree(self.work, directory)

    def test_what_a_killed_command_had_taken_out_is_named_until_it_is_removed(self):
        (self.work / 'rose').write_text('rosa\n')
        self.commit('Plant')
        (self.work / '.playfs/new/1-2.out-rose').write_text('an edit\n')
        done = self.run_in('status')
        self.assertRegex(done.stderr, r'Kept in \.playfs/lost\+found/\S+-rose')
        self.assertRegex(done.stdout, r'kept .*\n +\.playfs/lost\+found/\S+-rose\n')
        kept, = self.json('status')['lost_and_found']
        self.assertEqual((self.work / kept).read_text(), 'an edit\n')
        (self.work / kept).unlink()
        self.assertEqual(self.json('status')['lost_and_found'], [])

    def test_the_disk_knows_of_an_update_before_a_file_changes(self):
        """Otherwise a power loss leaves old files that look like edits of the new version."""
        (self.work / 'rose').write_text('rosa\n')
        self.commit('Plant')
        other = self.clone('other', 'bob')
        (self.work / 'rose').write_text('rosa canina\n')
        self.commit('Prune')
        if not shutil.which('strace'):
            self.skipTest('no strace here')
        trace = self.home / 'trace'
        self.command('strace', '-f', '-y', '-o', trace, '-e', 'trace=fdatasync,renameat2,syncfs', self.playfs_path, 'update',
                     cwd=other, who='bob')
        calls = trace.read_text().splitlines()
        first = next(i for i, line in enumerate(calls) if 'renameat2' in line and '"rose"' in line)
        synced = [line for line in calls[:first] if 'fdatasync(' in line]
        for name in ('.playfs/state/index.db-wal', '/operations.'):
            self.assertTrue(any(name in line for line in synced), (name, calls))
        self.assertTrue(any('syncfs(' in line for line in calls[first:]), calls)


@unittest.skipIf(os.geteuid() == 0 and shutil.which('setpriv') is None, 'root may read everything')
class Unread(fixture.Fixture):
    """Directories that may not be read: here root's, with root's own rights dropped."""

    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = json.loads(self.playfs('init', 'garden', '--json', '--site', self.api.origin).stdout)['project']
        self.work = self.home / 'work'
        self.alone = []
        if os.geteuid() == 0:
            self.alone = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all']
        self.run_alone('clone', self.project, self.work, '--site', self.api.origin, cwd=self.home)

    def run_alone(self, *words, cwd=None):
        done = self.command(*self.alone, self.playfs_path, *words, '--json', cwd=cwd or self.work, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_what_may_not_be_read_is_listed_unless_it_is_ignored(self):
        (self.work / '.gitignore').write_text('ignored/\n')
        for name in ('ignored', 'mine', 'dir'):
            (self.work / name).mkdir()
            (self.work / name / 'file').write_text('text\n')
        (self.work / 'secret').write_text('secret\n')
        self.run_alone('commit', '-m', 'Readable')
        (self.work / 'new').mkdir()
        (self.work / 'new/file').write_text('text\n')
        for name in ('ignored', 'mine', 'new', 'secret'):
            (self.work / name).chmod(0)
            self.addCleanup((self.work / name).chmod, 0o700)
        (self.work / 'ok').write_text('ok\n')
        (self.work / '.gitignore').write_text('ignored/\nlater/\n')
        (self.work / 'later').mkdir(0)
        (self.work / 'token').write_text('token\n')
        (self.work / 'token').chmod(0)
        for _ in range(2):
            status = self.run_alone('status')
            self.assertEqual({each['path']: each['change'] for each in status['staged']},
                             {'ok': 'added', '.gitignore': 'modified'})
            self.assertEqual({each['path'] for each in status['unread']}, {'mine', 'new', 'token', 'secret'})
            self.assertEqual(set(status['unpublished']), {'ignored/', 'later/'})
        self.run_alone('commit', '-m', 'More')
        files = self.api.get('revisions', self.api.get('projects', self.project)['latest_revision'])['manifest']['files']
        self.assertEqual(set(files), {'.gitignore', 'mine/file', 'dir/file', 'secret', 'ok'})
        (self.work / 'new').chmod(0o700)
        self.assertEqual([each['path'] for each in self.run_alone('status')['staged']], ['new/file'])

    def test_a_path_that_is_too_long(self):
        (self.work / 'ok').write_text('ok\n')
        at = os.open(self.work, os.O_RDONLY)
        for _ in range(25):
            os.mkdir('n' * 200, dir_fd=at)
            below = os.open('n' * 200, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(os.open('leaf', os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.close(at)
        status = self.run_alone('status')
        self.assertEqual([each['path'] for each in status['staged']], ['ok'])
        self.assertEqual([each[:6] for each in status['unpublished']], ['nnnnnn'])
        (self.work / '.gitignore').write_text('nnn*\n')
        self.assertEqual(self.run_alone('status')['unread'], [])


if __name__ == '__main__':
    fixture.main()
