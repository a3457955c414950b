#!/usr/bin/env python3
"""A clone whose state is damaged: nothing is lost."""
import subprocess

import fixture
from clones import FAILED, Clones


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

    def test_the_disk_knows_of_an_update_before_a_file_changes(self):
        """Otherwise a power loss leaves old files that look like edits of the new version."""
        (self.work / 'rose').write_text('rosa\n')
        self.commit('Plant')
        other = self.clone('other', 'bob')
        (self.work / 'rose').write_text('rosa canina\n')
        self.commit('Prune')
        if subprocess.run(['strace', '-V'], capture_output=True, check=False).returncode:
            self.skipTest('no strace here')
        trace = self.home / 'trace'
        self.command('strace', '-f', '-y', '-o', trace, '-e', 'trace=fdatasync,renameat2,syncfs', self.playfs_path, 'update',
                     cwd=other, who='bob')
        calls = trace.read_text().splitlines()
        first = next(i for i, line in enumerate(calls) if 'renameat2' in line and '"rose"' in line)
        synced = [line for line in calls[:first] if 'fdatasync(' in line]
        for name in ('.playfs/index.db-wal', '/operations.'):
            self.assertTrue(any(name in line for line in synced), (name, calls))
        self.assertTrue(any('syncfs(' in line for line in calls[first:]), calls)


if __name__ == '__main__':
    fixture.main()
