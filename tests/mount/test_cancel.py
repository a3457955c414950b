#!/usr/bin/env python3
"""Waiting commits: shown, queued, cancelled, across kill -9 at any moment."""
import json
import subprocess

import proxy
import fixture
from slow_project import PENDING, SlowProject, text

DONE, FAILED = 0, 1


class Cancel(SlowProject):
    def again(self, mount):
        mount.kill()
        self.command('fusermount3', '-u', '-z', mount.directory)
        return self.mount(self.api.origin)

    def staged(self, mount):
        status = self.status(mount)
        self.assertFalse([change for change in status['staged'] if change['pending']])
        return sorted(change['path'] for change in status['staged'])

    def test_what_is_given_back_is_staged_again(self):
        mount = self.begin({'file_chunks': 2})
        work = self.work(mount)
        (work / 'big').write_text(text(60_000, 1))
        (work / 'small').write_text('one\n')
        self.commit_without_waiting(mount, 'Too much at once')

        def waits():
            publication = self.status(mount)['publication']
            return publication['waiting_for'] and publication['chunks_done'] == 2

        self.eventually(waits, 'the service has enough of it')
        publication = self.status(mount)['publication']
        self.assertGreater(publication['chunks_total'], 4)
        self.assertEqual(publication['waiting_for']['code'], 'rate_limited')
        self.assertGreater(publication['seconds_left'], publication['retry_after_s'],
                           'what is left needs more than one hour of this service')
        self.assertTrue(0 < publication['bytes_done'] < publication['bytes_total'])
        self.assertEqual([each['message'] for each in publication['queue']], ['Too much at once'])
        words = (work.parent / 'status').read_text()
        self.assertIn(f'uploading, 2 of {publication["chunks_total"]} chunks', words)
        self.assertIn('playfs commit --cancel', words)
        (work / 'small').write_text('two\n')
        (work / 'later').write_text('later\n')

        self.assertEqual(self.run_json(mount, 'commit', '--cancel'),
                         (DONE, {'schema_version': 1, 'project': self.project, 'cancelled': 1, 'too_late': False}))
        self.assertEqual(self.staged(mount), ['big', 'later', 'small'])
        self.assertEqual(self.status(mount)['publication']['queue'], [])
        self.assertEqual(((work / 'small').read_text(), (work / 'big').read_text()), ('two\n', text(60_000, 1)))
        self.assertEqual(self.api.all('revisions'), [])
        events = (mount.directory / '.playfs/events').read_text()
        self.assertIn('commit_cancelled', events)
        # Uploaded chunks are not uploaded again, and the rest of a commit works as usual.
        self.playfs('discard', work / 'big')
        self.playfs('commit', '-m', 'Small ones', work)
        self.assertEqual(len(self.api.all('revisions')), 1)
        self.assertEqual(self.run_json(mount, 'commit', '--cancel')[1]['cancelled'], 0)

    def test_a_queue_survives_a_crash_and_so_does_its_end(self):
        mount = self.begin({'file_chunks': 1})
        for name in 'abc':
            (self.work(mount) / name).write_text(text(30_000, name))
            self.commit_without_waiting(mount, f'commit {name}')
        done = self.playfs('commit', '--no-wait', '-m', 'commit d', self.work(mount), check=False)
        self.assertIn('one of 3 queued behind another commit', done.stderr)
        messages = ['commit a', 'commit b', 'commit c', 'commit d']
        self.assertEqual([each['message'] for each in self.status(mount)['publication']['queue']], messages)
        mount = self.again(mount)
        self.work(mount).stat()
        self.assertEqual([each['message'] for each in self.status(mount)['publication']['queue']], messages)
        self.assertIn('behind it', (self.work(mount).parent / 'status').read_text())
        self.assertEqual(self.run_json(mount, 'commit', '--cancel')[1]['cancelled'], 4)
        mount = self.again(mount)  # what was answered is on disk
        self.work(mount).stat()
        self.assertEqual(self.status(mount)['publication']['queue'], [])
        self.assertEqual(self.staged(mount), ['a', 'b', 'c'])
        for name in 'abc':
            self.assertEqual((self.work(mount) / name).read_text(), text(30_000, name))
        self.assertEqual(self.api.all('revisions'), [])

    def test_a_journal_that_is_gone_is_said(self):
        for leave in ('nothing', 'an empty file'):
            with self.subTest(leave=leave):
                mount = self.begin({'file_chunks': 1})
                (self.work(mount) / 'a').write_text(text(30_000, 'a'))
                self.commit_without_waiting(mount, 'commit a')
                self.eventually(lambda: self.status(mount)['publication']['waiting_for'], 'it waits')
                mount.kill()
                self.command('fusermount3', '-u', '-z', mount.directory)
                journal, = self.home.glob(f'ann/state/playfs/sites/*/work/{self.project}/publication/publish.db')
                for path in journal.parent.glob('publish.db*'):
                    path.unlink()
                if leave == 'an empty file':
                    journal.touch()
                done = self.playfs('doctor', '--json', check=False)
                found = [each for each in json.loads(done.stdout)['findings']
                         if each['check'] == 'journal' and each['finding'] == 'wrong']
                self.assertEqual([each['place'] for each in found], [str(journal.parent.parent)], done.stdout)
                mount = self.mount(self.api.origin)
                self.work(mount).stat()
                self.assertIn('journal is gone', (mount.directory / '.playfs/errors.ndjson').read_text())
                self.eventually(lambda: 'was lost' in str(self.status(mount)['publication']['waiting_for']),
                                'it is looked for at the service, since it may have been sent')
                self.assertEqual([(change['path'], change['pending']) for change in self.status(mount)['staged']],
                                 [('a', True)], 'and not given back before')
                self.assertEqual((self.work(mount) / 'a').read_text(), text(30_000, 'a'))
                mount.unmount()

    def test_a_queue_is_published_in_its_order_after_a_crash(self):
        mount = self.begin({})
        away = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(away.close)
        mount.unmount()
        mount = self.mount(away.url)
        self.work(mount).stat()
        away.away = True
        (self.work(mount) / 'first').write_text('1\n')
        self.commit_without_waiting(mount, 'one')
        (self.work(mount) / 'second').write_text('2\n')
        self.commit_without_waiting(mount, 'two')
        mount.kill()
        self.command('fusermount3', '-u', '-z', mount.directory)
        away.away = False
        mount = self.mount(away.url)
        self.work(mount).stat()
        self.eventually(lambda: len(self.api.all('revisions')) == 2 and not self.status(mount)['publication']['queue'],
                        'both are published')
        two, one = map(fixture.fields, self.api.all('revisions'))
        self.assertEqual((one['message'], sorted(one['manifest']['files'])), ('one', ['first']))
        self.assertEqual((two['message'], sorted(two['manifest']['files'])), ('two', ['first', 'second']))
        self.assertEqual(two['parents'], [one['id']])

    def test_what_may_have_been_sent_goes_on(self):
        mount = self.begin({'revisions': 1})
        work = self.work(mount)
        (work / 'a').write_text('a\n')
        self.playfs('commit', '-m', 'Takes the place of this hour', work)
        (work / 'b').write_text('b\n')
        self.commit_without_waiting(mount, 'Waits for the next hour')
        (work / 'c').write_text('c\n')
        self.commit_without_waiting(mount, 'Waits behind it')
        self.eventually(lambda: self.status(mount)['publication']['waiting_for'], 'it was refused')
        done = self.playfs('commit', '--cancel', work, check=False)
        self.assertEqual(done.returncode, PENDING, done.stderr)
        self.assertIn('Cancelled 1 commit', done.stderr)
        self.assertIn('Too late', done.stderr)
        status = self.status(mount)
        self.assertEqual([each['message'] for each in status['publication']['queue']], ['Waits for the next hour'])
        self.assertEqual({change['path']: change['pending'] for change in status['staged']}, {'b': True, 'c': False})

    def test_a_terminal_shows_how_far_it_is_and_ctrl_c_leaves_it_going(self):
        mount = self.begin({'file_chunks': 2})
        (self.work(mount) / 'big').write_text(text(60_000, 3))
        code, shown = self.on_terminal(self.playfs_path, 'commit', '-m', 'Big', cwd=self.work(mount),
                                       until=r'Waiting +\[#+ +\] retrying in \d+ min; 2/\d+ chunks, \d+ KB of \d+ KB', answer=b'\x03')
        self.assertEqual(code, PENDING)
        self.assertIn('published in the background', shown)
        self.assertEqual(len(self.status(mount)['publication']['queue']), 1)

    def test_who_cancels_while_large_files_are_fixed_can_be_ended(self):
        mount = self.begin({})
        for number in range(300):
            with open(self.work(mount) / f'image{number}', 'wb') as image:
                image.truncate(64 << 20)  # holes, which take long to hash
        commit = subprocess.Popen([self.playfs_path, 'commit', '-m', 'By mistake', self.work(mount)], env=self.environment('ann'))
        self.addCleanup(commit.kill)
        self.eventually(lambda: self.status(mount)['publication']['phase'] == 'freezing', 'it is being fixed')
        cancel = subprocess.Popen([self.playfs_path, 'commit', '--cancel', self.work(mount)], env=self.environment('ann'))
        self.addCleanup(cancel.kill)
        with self.assertRaises(subprocess.TimeoutExpired):
            cancel.wait(2)
        cancel.terminate()
        cancel.wait(fixture.COMMAND_LIMIT)

    def test_who_waits_is_told(self):
        mount = self.begin({'file_chunks': 1})
        (self.work(mount) / 'big').write_text(text(40_000, 2))
        waiting = subprocess.Popen([self.playfs_path, 'commit', '-m', 'Big', '--json', self.work(mount)],
                                   env=self.environment('ann'), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        self.eventually(lambda: self.status(mount)['publication']['waiting_for'], 'it waits')
        (self.work(mount).parent / 'commit').write_text('{"cancel": true}')
        result = json.loads((self.work(mount).parent / 'commit').read_text())
        # Shows whichever of the two requests was answered last.
        self.assertIn((result.get('cancelled'), result.get('outcome')), ((1, None), (None, 'cancelled')))
        out, err = waiting.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual((waiting.returncode, json.loads(out)['outcome']), (FAILED, 'cancelled'), err)
        self.assertIn('staged again', err)
        self.assertEqual(self.staged(mount), ['big'])


if __name__ == '__main__':
    fixture.main()
