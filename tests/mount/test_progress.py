#!/usr/bin/env python3
"""What the ioctls report about a running publication, what is written to the events, and the flags of a commit."""
import json
import signal
import subprocess
import time

import fixture
from slow_project import PENDING, SlowProject, text

IDLE, UPLOADING = 0, 3  # enum playfs_phase


class Progress(SlowProject):
    def told(self, mount):
        """The result of the status ioctl."""
        return json.loads(self.command(self.c_program('status'), self.work(mount)).stdout)

    @staticmethod
    def has_ended(told):
        """The base moves a moment before the publication is removed from the queue, and a commit in between would wait
        behind it."""
        return told['phase'] == IDLE and told['base']

    def events(self, mount):
        lines = (mount.directory / '.playfs/events').read_text().splitlines()
        return [event for event in map(json.loads, lines) if event['kind'].startswith('commit_')]

    def test_the_ioctl_tells_how_far_a_publication_is(self):
        mount = self.begin({'file_chunks': 2})
        work = self.work(mount)
        before = self.told(mount)
        self.assertEqual((before['project'], before['base'], before['phase'], before['chunks_total']),
                         (self.project, '', IDLE, 0))
        (work / 'big').write_text(text(60_000, 1))
        self.assertEqual((self.told(mount)['staged'], self.told(mount)['pending']), (1, 0))
        self.assertEqual(self.commit(work, 'Big', flags=['nowait'])[:3:2], ('pending', 1))
        self.eventually(lambda: self.told(mount)['retry_after_s'], 'the service has enough of it')
        now = self.told(mount)
        self.assertEqual((now['phase'], now['chunks_done'], now['pending'], now['queued']), (UPLOADING, 2, 1, 0))
        self.assertGreater(now['chunks_total'], 4)
        self.assertTrue(0 < now['bytes_done'] < now['bytes_total'])
        self.assertGreaterEqual(now['bytes_total'], 60_000)
        self.assertGreater(now['seconds_left'], now['retry_after_s'], 'more than one hour of this service')
        publication = self.status(mount)['publication']
        for field in ('chunks_done', 'chunks_total', 'bytes_done', 'bytes_total'):
            self.assertEqual(publication[field], now[field], field)
        (work / 'later').write_text('later\n')
        self.assertEqual(self.commit(work, 'Later', flags=['nowait'])[0], 'pending')
        now = self.told(mount)
        self.assertEqual((now['phase'], now['chunks_done'], now['queued']), (UPLOADING, 2, 1))
        self.playfs('commit', '--cancel', work)
        now = self.told(mount)
        self.assertEqual((now['phase'], now['chunks_total'], now['pending'], now['queued']), (IDLE, 0, 0, 0))

    def test_a_wait_is_told_once_where_no_terminal_shows_it(self):
        mount = self.begin({'file_chunks': 2})
        clone = self.home / 'clone'
        self.playfs('clone', self.project, clone, '--site', self.api.origin, who='bob')
        for who, place in (('ann', self.work(mount)), ('bob', clone)):
            with self.subTest(who):
                (place / f'by-{who}').write_text(text(60_000, len(who)))
                commit = subprocess.Popen([self.playfs_path, 'commit', '-m', 'Big'], cwd=place, env=self.environment(who),
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                self.addCleanup(commit.wait)
                self.addCleanup(commit.kill)
                self.assertRegex(commit.stderr.readline(),
                                 r'^Waiting: .*429.*; retrying in \d+ \S+, at \d{4}-\d\d-\d\dT\d\d:\d\dZ\. '
                                 r'Ctrl-C ends the waiting, and the commit stays queued\.\n$')
                time.sleep(2)  # it is asked for news twice a second
                commit.send_signal(signal.SIGINT)
                rest = commit.communicate(timeout=fixture.COMMAND_LIMIT)[1]
                self.assertEqual(commit.returncode, PENDING, rest)
                self.assertNotIn('Waiting: ', rest)

    def test_chunks_are_counted_to_the_end(self):
        mount = self.begin({'file_chunks': 2, 'window_seconds': 1})
        work = self.work(mount)
        (work / 'big').write_text(text(60_000, 2))
        self.assertEqual(self.commit(work, 'Big', flags=['nowait'])[0], 'pending')
        counts = []

        def ended():
            now = self.told(mount)
            if now['phase'] == UPLOADING:
                counts.append((now['chunks_total'], now['chunks_done']))
            return self.has_ended(now)

        self.eventually(ended, 'it is published')
        self.assertEqual(counts, sorted(counts), 'it never goes back')
        self.assertLessEqual(len({total for total, _ in counts}), 1)
        self.assertTrue(all(done <= total for total, done in counts))
        self.assertEqual((work / 'big').read_text(), text(60_000, 2))
        kinds = [event['kind'] for event in self.events(mount)]
        self.assertEqual((kinds[0], kinds[-1]), ('commit_started', 'commit_published'))
        self.assertEqual(len({event['tx'] for event in self.events(mount)}), 1)

    def test_events_are_written_while_it_goes_on(self):
        mount = self.begin({'file_chunks': 2})
        with open(mount.directory / '.playfs/events', encoding='utf-8') as followed:
            followed.read()
            (self.work(mount) / 'big').write_text(text(60_000, 3))
            self.assertEqual(self.commit(self.work(mount), 'Big', flags=['nowait'])[0], 'pending')
            self.eventually(lambda: self.told(mount)['retry_after_s'], 'the service has enough of it')
            more = ''

            def waits():
                nonlocal more
                more += followed.read()
                return '"commit_waiting"' in more

            self.eventually(waits, 'who follows the file is told')
        first = {}
        for event in self.events(mount):
            first.setdefault(event['kind'], event)
        self.assertEqual(list(first), ['commit_started', 'commit_uploading', 'commit_waiting'])
        started, uploading, waiting = first.values()
        self.assertEqual((started['project'], started['files_changed']), (self.project, 1))
        self.assertEqual(uploading['chunks'], self.told(mount)['chunks_total'])
        self.assertGreater(waiting['goes_on_in_ms'], 0)
        self.assertEqual(len({each['tx'] for each in (started, uploading, waiting)}), 1)

    def test_the_limits_that_were_met_are_told(self):
        mount = self.begin({'file_chunks': 2})
        limits = mount.directory / '.playfs/limits.json'
        self.assertNotIn('file_chunks', json.loads(limits.read_text())['observed'])
        (self.work(mount) / 'big').write_text(text(60_000, 4))
        self.commit(self.work(mount), 'Big', flags=['nowait'])
        self.eventually(lambda: self.told(mount)['retry_after_s'], 'the service has enough of it')
        observed = json.loads(limits.read_text())['observed']
        self.assertEqual(observed['file_chunks']['writes_last_hour'], 2)
        self.assertGreater(observed['file_chunks']['refused'], 0)
        self.assertGreater(observed['file_chunks']['retry_after_s'], 0)
        self.assertTrue(observed['file_chunks']['last_refused'])
        self.assertEqual(observed['reads']['refused'], 0)
        self.assertEqual(json.loads(limits.read_text())['writes_per_hour']['file_chunks'], 240, 'what is documented')

    def test_who_does_not_wait_is_published_all_the_same(self):
        mount = self.begin({})
        (self.work(mount) / 'a').write_text('a\n')
        self.assertEqual(self.commit(self.work(mount), 'A', flags=['nowait'])[0], 'pending')
        self.eventually(lambda: self.has_ended(self.told(mount)), 'it is published')
        head = self.api.get('projects', self.project)['latest_revision']
        self.assertEqual(list(self.api.get('revisions', head)['manifest']['files']), ['a'])
        self.assertEqual(self.commit(self.work(mount), 'Nothing', flags=['nowait'])[0], 'nothing')

    def test_a_branch_rather_than_a_merge(self):
        mount = self.begin({})
        (self.work(mount) / 'a').write_text('a\n')
        _, base, _, _ = self.commit(self.work(mount), 'A')
        (self.work(mount) / 'b').write_text('b\n')
        files = dict(self.api.get('revisions', base)['manifest']['files'], theirs={'inline': 't'})
        theirs = self.api.create('revisions', project=self.project, parents=[base], agent='bob', message='Theirs',
                                 manifest={'files': files}, state={})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': theirs})
        outcome, branch, _, _ = self.commit(self.work(mount), 'B', flags=['no-merge'])
        self.assertEqual(outcome, 'branched')
        revision = self.api.get('revisions', branch)
        self.assertEqual((revision['parents'], sorted(revision['manifest']['files'])), ([base], ['a', 'b']))
        # The next commit may be merged again, and brings the branch along.
        (self.work(mount) / 'c').write_text('c\n')
        self.assertIn(self.commit(self.work(mount), 'C')[0], ('published', 'merged'))
        head = self.api.get('projects', self.project)['latest_revision']
        self.assertEqual(sorted(self.api.get('revisions', head)['manifest']['files']), ['a', 'b', 'c', 'theirs'])


if __name__ == '__main__':
    fixture.main()
