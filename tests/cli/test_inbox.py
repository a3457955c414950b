#!/usr/bin/env python3
"""playfs inbox and watch: what is new for an agent, in a mount and without one, and waiting for it."""
import contextlib
import fcntl
import json
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

import fixture
import proxy

DONE, FAILED, USAGE, NOT_FOUND, UNREACHABLE = 0, 1, 2, 5, 7
SILENCE = 5  # seconds, after which a service counts as silent
TRANSFER_LIMIT = 60  # seconds, after which a single request is given up
HOSTILE = 'x\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\u2066\u200b\x00\r\nbob · 2026'
RAW = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]')


class Inbox(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.place, self.site = '/', ['--site', self.api.origin]

    def thread(self, title='Parsers', agent='eve', **fields):
        return self.api.create('threads', title=title, agent=agent, kind='discussion', **fields)['id']

    def message(self, thread, body='x', **fields):
        return self.api.create('messages', **{'thread': thread, 'agent': 'eve', 'body': body, 'parent': '', 'mentions': [],
                                              **fields})['id']

    def run_inbox(self, *words, code=DONE, command='inbox', who='ann'):
        done = subprocess.run([self.playfs_path, command, *map(str, words), *self.site], env=self.environment(who),
                              timeout=fixture.COMMAND_LIMIT, text=True, cwd=self.place, stdin=subprocess.DEVNULL,
                              capture_output=True)
        self.assertEqual(done.returncode, code, f'{words}\n{done.stdout}{done.stderr}')
        return done

    def entries(self, *words, **options):
        document = json.loads(self.run_inbox(*words, '--json', **options).stdout)
        return [entry['record']['id'] for entry in document['entries']]

    def await_new(self, *wanted):
        """A mount is told of them a moment later."""
        self.eventually(lambda: self.entries() == list(wanted), 'they are new')

    def started(self, *words, command='inbox', who='ann'):
        process = subprocess.Popen([self.playfs_path, command, *map(str, words), *self.site], env=self.environment(who),
                                   text=True, cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process


class Command(Inbox):
    """Without a mount."""

    def test_it_shows_what_is_new_once_it_is_marked(self):
        talk, mine = self.thread(), self.thread('Mine', 'ann')
        self.assertIn('Nothing is new for ann', self.run_inbox().stderr)
        first = self.message(talk, 'Ideas, @ann?', mentions=['ann'])
        second = self.message(mine, 'In yours')
        self.message(talk, 'of no interest')
        self.await_new(first, second)
        shown = self.run_inbox().stdout
        self.assertRegex(shown, rf'(?s)eve · \S+ · {first}\n\| Ideas, @ann\?\n.*  in: Parsers\n'
                                rf'  playfs post {talk} --reply-to {first} -m .*  in: Mine\n')
        self.assertEqual(self.entries(), [first, second])
        self.assertEqual(self.entries('--limit', 1, '--mark-seen'), [first])
        self.assertEqual(self.entries('--mark-seen'), [second])
        self.assertEqual(self.entries(), [])
        self.assertEqual(self.entries('--all'), [first, second])
        self.assertEqual(self.entries('--agent', 'eve'), [])
        third = self.message(talk, 'again', mentions=['ann'])
        self.await_new(third)
        document = json.loads(self.run_inbox('--all', '--limit', 2, '--json').stdout)
        self.assertEqual([(entry['record']['id'], entry['new'], entry['title']) for entry in document['entries']],
                         [(second, False, 'Mine'), (third, True, 'Parsers')])
        self.assertEqual((document['new'], document['agent'], document['schema_version']), (1, 'ann', 1))

    def test_it_waits(self):
        talk = self.thread()
        self.run_inbox('--wait', 1, code=FAILED)
        self.assertEqual(json.loads(self.run_inbox('--wait', 1, '--json', code=FAILED).stdout)['entries'], [])
        waiting = self.started('--wait', '--json')
        time.sleep(1)
        self.assertIsNone(waiting.poll())
        self.message(talk, 'for bob', mentions=['bob'])
        time.sleep(1)
        self.assertIsNone(waiting.poll())
        wanted = self.message(talk, 'for ann', mentions=['ann'])
        out, _ = waiting.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(waiting.returncode, DONE)
        self.assertEqual([entry['record']['id'] for entry in json.loads(out)['entries']], [wanted])
        self.assertEqual(self.entries('--wait', 60), [wanted], 'it is new already')

    def test_of_several_that_wait_one_gets_an_entry(self):
        talk = self.thread()
        waiting = [self.started('--wait', 30, '--mark-seen', '--json') for _ in range(3)]
        time.sleep(2)
        wanted = []
        for number in range(len(waiting)):
            wanted.append(self.message(talk, f'{number}', mentions=['ann']))
            self.eventually(lambda: sum(each.poll() is not None for each in waiting) == len(wanted), 'one has got it')
        outs = [json.loads(each.communicate(timeout=fixture.COMMAND_LIMIT)[0]) for each in waiting]
        self.assertEqual(sorted(entry['record']['id'] for out in outs for entry in out['entries']), sorted(wanted))
        self.assertEqual([(out['new'], each.returncode) for out, each in zip(outs, waiting)], [(1, DONE)] * 3)

    def test_what_its_reader_did_not_get_stays_new(self):
        wanted = self.message(self.thread(), mentions=['ann'])
        self.await_new(wanted)
        for words in ([], ['--json']):
            with open('/dev/full', 'w') as full:
                done = subprocess.run([self.playfs_path, 'inbox', '--mark-seen', *words, *self.site], cwd=self.place,
                                      env=self.environment('ann'), stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, FAILED)
            self.assertEqual(self.entries(), [wanted])

    def test_hostile_words_are_escaped(self):
        talk = self.thread(HOSTILE)
        for number in range(3):
            self.message(talk, HOSTILE, agent=HOSTILE, mentions=['ann', HOSTILE], links=[HOSTILE])
        self.eventually(lambda: len(self.entries()) == 3, 'they are new')
        done = self.run_inbox()
        self.assertIsNone(RAW.search(done.stdout + done.stderr))
        self.assertEqual(len([line for line in done.stdout.splitlines() if line.startswith('bob')]), 0)
        self.assertIsNone(RAW.search(self.run_inbox('--json').stdout))

    def test_what_it_does_not_take(self):
        for words in (('--wait', 'soon'), ('--wait', '0'), ('--wait', '-1'), ('--limit', '0'), ('more',)):
            self.run_inbox(*words, code=USAGE)


class InTrouble(Inbox):
    """What is kept on this machine is lost, damaged or locked, without a mount."""

    def lock(self):
        """Another process's, as soon as an entry is marked."""
        state = self.home / 'ann/state'
        self.eventually(lambda: any(each.stat().st_size for each in state.rglob('*.seen')), 'the first mark')
        [path] = state.rglob('=inbox/lock')
        lock = path.open()
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def test_what_is_marked_is_shown(self):
        """Whatever happens in between: another process keeps the lock, or a signal comes."""
        talk = self.thread()
        for number in range(40):
            self.message(talk, f'{number}', mentions=['ann'])
        for words in (['--json'], []):
            for trouble in ('lock', signal.SIGINT, signal.SIGTERM):
                with self.subTest(words=words, trouble=trouble):
                    shutil.rmtree(self.home / 'ann/state', ignore_errors=True)
                    wanted = self.entries('--limit', 1000)
                    reader = self.started('--mark-seen', '--limit', 1000, *words)
                    lock = self.lock()
                    if trouble == 'lock':
                        out, notes = reader.communicate(timeout=fixture.COMMAND_LIMIT)
                        lock.close()
                    else:
                        lock.close()
                        reader.send_signal(trouble)
                        out, notes = reader.communicate(timeout=fixture.COMMAND_LIMIT)
                        self.assertIn(reader.returncode, (DONE, -trouble))
                    new = self.entries('--limit', 1000)
                    shown = [each for each in wanted if each in out]
                    self.assertEqual(sorted(shown + new), sorted(wanted), 'each is shown or new')
                    self.assertNotEqual(shown, [])
                    if words:
                        self.assertEqual([each['record']['id'] for each in json.loads(out)['entries']], shown)
                    if trouble == 'lock' and new:
                        self.assertIn('another process keeps the inbox locked', notes)

    def test_a_reply_to_what_the_cache_has_lost_is_there(self):
        talk = self.thread()
        own = self.message(talk, 'question', agent='ann')
        answers = [self.message(talk, 'answer', parent=own) for _ in range(3)]
        for _ in range(120):
            self.message(talk, 'of no interest')
        self.command(self.playfs_path, 'thread', 'show', talk, '--site', self.api.origin)
        [cache] = (self.home / 'ann/cache').rglob('records.db')
        with contextlib.closing(sqlite3.connect(cache)) as database, database:
            self.assertEqual(database.execute('DELETE FROM records WHERE id = ?', (own,)).rowcount, 1)
        self.assertEqual(self.entries(), answers)

    def test_a_damaged_index_hides_nothing(self):
        talk = self.thread()
        wanted = [self.message(talk, f'{number}', mentions=['ann']) for number in range(4)]
        self.assertEqual(self.entries('--mark-seen'), wanted)
        [index] = (self.home / 'ann/state').rglob('*.index')
        whole = index.read_bytes()
        for at in (0, len(whole) // 3, whole.index(b'entry ') + 8, whole.rindex(b' mention ') + 3, len(whole) - 1):
            damaged = bytearray(whole)
            damaged[at] ^= 1
            index.write_bytes(damaged)
            self.assertEqual(self.entries('--all'), wanted, at)


class Silent(Inbox):
    """The service accepts connections, but answers nothing."""

    def timed(self, *words, least=0, **options):
        begin = time.monotonic()
        done = self.run_inbox(*words, **options)
        self.assertLess(time.monotonic() - begin, least + TRANSFER_LIMIT / 2, words)
        self.assertGreaterEqual(time.monotonic() - begin, least, words)
        return done

    def test_nothing_is_known(self):
        with socket.create_server(('127.0.0.1', 0)) as listener:
            self.site = ['--site', 'http://127.0.0.1:%d' % listener.getsockname()[1]]
            for words, least in (((), 0), (('--wait', 3), 3), (('--wait', 3, '--json'), 3)):
                done = self.timed(*words, least=least, code=UNREACHABLE)
                self.assertIn('does not answer', done.stdout + done.stderr)

    @fixture.needs_fuse
    def test_a_mount_knows_nothing(self):
        way = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(way.close)
        way.set_hanging(lambda path: True)
        mount = self.mount(way.url)
        self.place, self.site = mount.directory, []
        for words, least in ((('--wait', 3), 3), ((), 0)):
            self.assertIn('does not answer', self.timed(*words, least=least, code=UNREACHABLE).stderr)
        # A parent may have blocked the signal that ends the wait.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        self.addCleanup(signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGUSR1})
        self.timed(code=UNREACHABLE)
        way.set_hanging(None)
        wanted = self.message(self.thread(), mentions=['ann'])
        self.eventually(lambda: self.entries() == [wanted], 'the mount is as it was')

    def test_what_is_known_is_shown(self):
        way = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(way.close)
        self.site = ['--site', way.url]
        entry = self.message(self.thread(), mentions=['ann'])
        self.assertEqual(self.entries(), [entry])
        way.set_hanging(lambda path: True)
        for words in ((), ('--wait', 3, '--mark-seen')):
            done = self.timed(*words)
            self.assertIn(entry, done.stdout)
            self.assertIn('The service does not answer', done.stderr)
        done = self.timed('--wait', 3, least=3, code=FAILED)
        self.assertIn('Nothing is new', done.stderr)
        self.assertIn('The service does not answer', done.stderr)
        # It answers while a command waits.
        waiting = self.started('--wait', 50, '--json')
        self.eventually(way.hung, 'it asks')
        way.set_hanging(None)
        wanted = self.message(self.thread(), mentions=['ann'])
        out, _ = waiting.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual([each['record']['id'] for each in json.loads(out)['entries']], [wanted])

    def test_what_the_service_may_have_lost_is_asked_for(self):
        """Long before it is known to be lost: a command does not live for a minute."""
        way = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(way.close)
        self.site = ['--site', way.url]
        talk = self.thread()
        kept, lost = (self.message(talk, mentions=['ann']) for _ in range(2))
        self.assertEqual(self.entries(), [kept, lost])
        way.raw = proxy.without(lost)
        self.assertEqual(self.entries(), [kept])
        self.run_inbox('--wait', 1, '--mark-seen')
        self.run_inbox('--wait', 1, code=FAILED)

    def test_a_slow_reader_does_not_make_the_service_silent(self):
        """Some of what it may have lost is asked for after the reader has paused."""
        way = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(way.close)
        self.site = ['--site', way.url]
        talk = self.thread()
        kept = [self.message(talk, 'x' * 14_000, mentions=['ann']) for _ in range(30)]
        lost = self.message(talk, mentions=['ann'])
        self.assertEqual(self.entries('--limit', 100), [*kept, lost])
        way.raw = proxy.without(lost)
        reader = self.started('--limit', 100)
        self.assertTrue(select.select([reader.stdout], [], [], fixture.COMMAND_LIMIT)[0])
        time.sleep(SILENCE + 1)
        out, notes = reader.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual([each in out for each in (*kept, lost)], [True] * len(kept) + [False])
        self.assertEqual(notes, '')


@fixture.needs_fuse
class Mounted(Command):
    """The same in a mount, which shares its marks with commands."""

    def setUp(self):
        super().setUp()
        self.ann = self.mount(self.api.origin, options=('refresh=1',))
        self.place, self.site = self.ann.directory / 'threads', []

    def test_marks_are_shared_with_the_mount(self):
        first, second = (self.message(self.thread(), 'x', mentions=['ann']) for _ in range(2))
        self.await_new(first, second)
        (self.ann.directory / f'inbox/new/{first}.json').rename(self.ann.directory / f'inbox/seen/{first}.json')
        self.place, self.site = '/', ['--site', self.api.origin]
        self.assertEqual(self.entries('--mark-seen'), [second])
        self.eventually(lambda: not list((self.ann.directory / 'inbox/new').iterdir()), 'the mount sees the mark')

    def test_a_signal_loses_no_entry(self):
        talk, seen = self.thread(), self.ann.directory / 'inbox/seen'
        wanted = [self.message(talk, f'{number}', mentions=['ann']) for number in range(40)]
        self.eventually(lambda: self.entries('--limit', 1000) == wanted, 'all are there')
        reader = self.started('--mark-seen', '--limit', 1000, '--json')
        self.eventually(lambda: any(seen.iterdir()), 'the first mark')
        reader.send_signal(signal.SIGINT)
        out, _ = reader.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertIn(reader.returncode, (DONE, -signal.SIGINT))
        new = self.entries('--limit', 1000)
        self.assertEqual([each for each in wanted if each not in new and each not in out], [])

    def test_a_waiting_command_keeps_no_mount_busy(self):
        self.place = self.ann.directory
        waiting = self.started('--wait')
        time.sleep(1)
        self.assertIsNone(waiting.poll())
        waiting.kill()
        waiting.communicate()
        self.ann.unmount()

    def test_watch_prints_what_is_about_one_thing(self):
        talk, other = self.thread(), self.thread('Other')
        project = self.api.create('projects', name='p')['id']
        watches = {'--thread': (self.started('--thread', talk, '-n', 1, command='watch'), 'thread', talk),
                   '--project': (self.started('--project', project, '-n', 1, command='watch'), 'id', project),
                   '--mentions': (self.started('--mentions', '-n', 1, command='watch'), 'thread', talk)}
        for process, _, _ in watches.values():
            self.assertIn('Watching', process.stderr.readline())
        self.message(other, 'elsewhere')
        self.api.create('projects', name='q')
        time.sleep(1)
        for process, _, _ in watches.values():
            self.assertIsNone(process.poll())
        self.message(talk, 'here, @ann', mentions=['ann'])
        self.api.call('PATCH', f'/projects/{project}', {'about': 'x'})
        for name, (process, field, value) in watches.items():
            out, _ = process.communicate(timeout=fixture.COMMAND_LIMIT)
            self.assertEqual(json.loads(out)[field], value, name)
        for words in (('--thread', '../x'), ('--thread', 'nonesuch'), ('--project', 'nonesuch')):
            self.assertIn(f"there is no {words[0][2:]} '{words[1]}'", self.run_inbox(*words, command='watch', code=NOT_FOUND).stderr)
        self.site = ['--site', 'http://127.0.0.1:9']
        self.assertIn('not in a mount of http://127.0.0.1:9', self.run_inbox(command='watch', code=NOT_FOUND).stderr)
        self.site = ['--site', self.api.origin]
        titled = self.started('--thread', 'Parsers', '-n', 1, command='watch')
        named = self.started('--project', 'p', '-n', 1, command='watch')
        for process in titled, named:
            self.assertIn('Watching', process.stderr.readline())
        self.message(talk, 'by its title')
        self.api.call('PATCH', f'/projects/{project}', {'about': 'y'})
        self.assertEqual(json.loads(titled.communicate(timeout=fixture.COMMAND_LIMIT)[0])['thread'], talk)
        self.assertEqual(json.loads(named.communicate(timeout=fixture.COMMAND_LIMIT)[0])['id'], project)
        self.run_inbox('--thread', talk, '--mentions', command='watch', code=USAGE)


if __name__ == '__main__':
    fixture.main()
