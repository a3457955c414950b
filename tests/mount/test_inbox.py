#!/usr/bin/env python3
"""The inbox of a mount: what is for its agent, as a growing file and as files that are moved to mark them."""
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request

import fixture
import proxy

# Lines of NDJSON may have none of these, however hostile a record is.
RAW = re.compile('[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]')


@fixture.needs_fuse
class Inbox(fixture.Fixture):
    options = ('refresh=1',)

    def setUp(self):
        super().setUp()
        secret = self.home / 'steward'
        secret.write_text('the-key-of-the-steward\n')
        secret.chmod(0o600)
        self.api = self.serve(options=('--steward-key', str(secret)))
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)
        self.ann = self.mount(self.proxy.url, options=self.options)

    def box(self, mount=None):
        return (mount or self.ann).directory / 'inbox'

    def names(self, folder, mount=None):
        return sorted(name.removesuffix('.json') for name in os.listdir(self.box(mount) / folder))

    def lines(self, mount=None):
        text = (self.box(mount) / 'messages.ndjson').read_text()
        self.assertIsNone(RAW.search(text))
        return [json.loads(line) for line in text.split('\n')[:-1]]

    def thread(self, agent='bob', **more):
        return self.api.create('threads', title='Hello', agent=agent, kind='discussion', **more)['id']

    def message(self, thread, body='x', **more):
        return self.api.create('messages', **{'thread': thread, 'parent': '', 'agent': 'bob', 'body': body, 'mentions': [],
                                              'links': [], **more})['id']

    def steward(self, mail, **fields):
        request = urllib.request.Request(f'{self.api.base}/domain_mail/{mail}', json.dumps(fields).encode(), method='PATCH',
                                         headers={'Content-Type': 'application/json', 'Origin': self.api.origin,
                                                  'Authorization': 'Bearer the-key-of-the-steward'})
        with urllib.request.urlopen(request, timeout=fixture.COMMAND_LIMIT) as answer:
            return json.load(answer)

    def refused(self, number, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, number, problem.exception)

    def errors(self, mount=None):
        return ((mount or self.ann).directory / '.playfs/errors.ndjson').read_text()


class Contents(Inbox):
    def test_it_has_what_is_for_me_and_nothing_else(self):
        talk, mine = self.thread(), self.thread('ann')
        mention = self.message(talk, 'hello @ann', mentions=['ann'])
        self.message(talk, 'to nobody')
        of_me = self.message(talk, 'I am here', agent='ann', mentions=['ann'])
        reply = self.message(talk, 'welcome', parent=of_me)
        nested = self.message(talk, 'and welcome by me', parent=reply, agent='eve')
        in_mine = self.message(mine, 'in your thread')
        self.message(mine, 'I answer', agent='ann', parent=in_mine)
        self.message(talk, 'of another', parent=nested)
        self.assertEqual([line['id'] for line in self.lines()], [mention, reply, in_mine])
        self.assertEqual(self.names('new'), sorted([mention, reply, in_mine]))
        self.assertEqual(self.names('seen'), [])
        record = json.loads((self.box() / f'new/{reply}.json').read_text())
        self.assertEqual((record['body'], record['parent']), ('welcome', of_me))

    def test_a_mail_comes_with_its_answer(self):
        own, other = (self.api.create('domain_mail', agent=agent, kind='question', subject='s', body='May I?')['id']
                      for agent in ('ann', 'bob'))
        self.assertEqual(self.names('new'), [])
        self.steward(own, owner_reply='You may.', state='answered')
        self.steward(other, owner_reply='You may, too.')
        self.eventually(lambda: self.names('new') == [own], 'the answer is there')
        self.assertEqual(json.loads((self.box() / f'new/{own}.json').read_text())['owner_reply'], 'You may.')
        self.mark(own)
        time.sleep(0.01)
        self.steward(own, owner_reply='You may not.')
        self.eventually(lambda: self.names('new') == [own], 'another answer is new')
        self.assertEqual([line['owner_reply'] for line in self.lines()], ['You may not.'])

    def mark(self, record):
        os.rename(self.box() / f'new/{record}.json', self.box() / f'seen/{record}.json')

    def test_an_edit_that_mentions_me_brings_it_again(self):
        mine = self.thread('ann')
        edited = self.message(mine, 'helo')
        self.assertEqual(self.names('new'), [edited])
        self.mark(edited)
        time.sleep(0.01)
        self.api.call('PATCH', f'/messages/{edited}', {'body': 'hello'})
        self.eventually(lambda: json.loads((self.box() / f'seen/{edited}.json').read_text())['body'] == 'hello', 'the edit')
        self.assertEqual([line['body'] for line in self.lines()], ['hello'])
        self.api.call('PATCH', f'/messages/{edited}', {'body': 'hello @ann', 'mentions': ['ann']})
        self.eventually(lambda: self.names('new') == [edited], 'it is new again')
        self.assertEqual([line['body'] for line in self.lines()], ['hello @ann'])
        self.api.call('PATCH', f'/messages/{edited}', {'body': 'Hello @ann'})
        self.mark(edited)
        self.eventually(lambda: json.loads((self.box() / f'seen/{edited}.json').read_text())['body'] == 'Hello @ann', 'seen')
        self.assertEqual([line['body'] for line in self.lines()], ['Hello @ann'])

    def test_what_an_edit_brought_again_is_new_without_an_index_too(self):
        edited = self.message(self.thread('ann'), 'hello')
        self.assertEqual(self.names('new'), [edited])
        self.mark(edited)
        time.sleep(0.01)
        self.api.call('PATCH', f'/messages/{edited}', {'body': 'hello @ann', 'mentions': ['ann']})
        self.eventually(lambda: self.names('new') == [edited], 'it is new again')
        self.ann.unmount()
        (index,) = (self.home / 'ann/state').rglob('=inbox/*.index')
        index.write_text('playfs-inbox 2 ann 1\n')  # of an earlier version
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.assertEqual((self.names('new'), self.names('seen')), ([edited], []))
        self.mark(edited)
        self.assertEqual((self.names('new'), self.names('seen')), ([], [edited]))

    def test_an_edit_changes_its_line_in_a_new_file(self):
        mine = self.thread('ann')
        first, second = self.message(mine, 'first'), self.message(mine, 'second')
        self.assertEqual(self.names('new'), sorted((first, second)))
        self.mark(first)
        path = self.box() / 'messages.ndjson'
        self.assertEqual([line['body'] for line in self.lines()], ['first', 'second'])
        number = path.stat().st_ino
        self.api.call('PATCH', f'/messages/{first}', {'body': 'edited'})
        self.eventually(lambda: [line['body'] for line in self.lines()] == ['edited', 'second'], 'the edit')
        self.assertNotEqual(path.stat().st_ino, number, 'who has read the old one begins anew')
        self.assertEqual((self.names('new'), self.names('seen')), ([second], [first]))

    def hide(self, record, *undo):
        self.playfs('serve', 'hide', record, *undo, '--store', self.home / 'store', who='server')

    def test_what_the_steward_hides_is_not_shown(self):
        talk = self.thread()
        kept, hidden, marked = (self.message(talk, f'{word} @ann', mentions=['ann']) for word in ('kept', 'slander', 'insult'))
        self.assertEqual(self.names('new'), sorted((kept, hidden, marked)))
        self.assertEqual(len(self.lines()), 3)
        self.mark(marked)

        def shown():
            return [line['body'] for line in self.lines()], self.names('new'), self.names('seen')

        self.hide(hidden)
        self.hide(marked)
        self.eventually(lambda: shown() == (['kept @ann'], [kept], []), 'both are gone')
        with self.assertRaises(FileNotFoundError):
            (self.box() / f'new/{hidden}.json').read_text()
        for words in ([self.ann.directory], ['/', '--site', self.proxy.url]):
            out = self.playfs('inbox', '--all', *words[1:], cwd=words[0]).stdout
            self.assertEqual((out.count('playfs post'), 'kept' in out), (1, True), out)
            self.assertNotRegex(out, 'slander|insult')
        self.ann.unmount()
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.assertEqual(shown(), (['kept @ann'], [kept], []))
        self.hide(hidden, '--undo')
        self.hide(marked, '--undo')
        self.eventually(lambda: shown() == (['kept @ann', 'slander @ann', 'insult @ann'], sorted((kept, hidden)), [marked]),
                        'they come back, with the mark')

    def test_what_answers_something_hidden_comes_once_that_is_shown(self):
        """Nobody can know before whose message or thread it is. Mail comes back with its mark, unless it is answered anew."""
        talk, mine = self.thread(), self.thread('ann')
        question = self.message(talk, 'question', agent='ann')
        mail = self.api.create('domain_mail', agent='ann', kind='question', subject='s', body='May I?')['id']
        self.steward(mail, owner_reply='You may.', state='answered')
        self.eventually(lambda: self.names('new') == [mail], 'the answer is there')
        self.mark(mail)
        self.ann.unmount()
        shutil.rmtree(self.home / 'ann/cache')
        (index,) = (self.home / 'ann/state').rglob('=inbox/*.index')
        index.unlink()
        for record in (mine, question):
            self.hide(record)
        wanted = sorted((self.message(talk, 'answer', parent=question), self.message(mine, 'in your thread')))
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.eventually(lambda: self.names('seen') == [mail], 'what is not hidden')
        self.hide(mail)
        last = self.message(talk, '@ann', mentions=['ann'])
        self.eventually(lambda: (self.names('new'), self.names('seen')) == ([last], []), 'what is not hidden')
        self.mark(last)  # what is known is saved
        self.ann.unmount()
        self.ann = self.mount(self.proxy.url, options=self.options)
        for record in (mine, question, mail):
            self.hide(record, '--undo')
        self.eventually(lambda: (self.names('new'), self.names('seen')) == (wanted, sorted((mail, last))), 'all are there')
        self.hide(mail)
        self.eventually(lambda: self.names('seen') == [last], 'it is hidden')
        self.steward(mail, owner_reply='You may not.')
        self.hide(mail, '--undo')
        self.eventually(lambda: (self.names('new'), self.names('seen')) == (sorted((*wanted, mail)), [last]), 'it is new')

    def test_a_record_that_is_not_there_for_once_is_not_lost(self):
        """A request may reach a replica that lags. The cache has lost the records that must be looked at."""
        self.ann.unmount()
        talk = self.thread()
        own = [self.message(talk, 'x' * 15000, agent='ann') for _ in range(100)]
        wanted = sorted(self.message(talk, 'y' * 15000, parent=each) for each in own)
        refused = set()

        def fate(request):
            if not request.startswith('GET') or '/messages/' not in request or request in refused:
                return None
            refused.add(request)
            return 404, json.dumps({'error': 'no', 'code': 'not_found', 'message': 'no'})

        self.proxy.fate = fate
        small = self.mount(self.proxy.url, options=(*self.options, 'cache_size=1M'))
        letters = small.directory / 'maildir/inbox/new'
        self.eventually(lambda: self.names('new', small) == wanted, 'all are there')
        self.eventually(lambda: len(os.listdir(letters)) == len(wanted), 'and as letters')
        self.assertLessEqual(100, len(refused))

    def test_watch_does_not_begin_anew_when_a_line_changes(self):
        talk = self.thread()
        self.message(talk, 'old @ann', mentions=['ann'])
        last = self.message(talk, 'bad @ann', mentions=['ann'])
        self.assertEqual(len(self.lines()), 2)
        watch = subprocess.Popen([self.playfs_path, 'watch', '--mentions', '-n', '1'], cwd=self.ann.directory, text=True,
                                 env=self.environment('ann'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        self.assertIn('Watching', watch.stderr.readline())
        self.hide(last)
        self.eventually(lambda: len(self.lines()) == 1, 'it is hidden')
        time.sleep(1)
        self.assertIsNone(watch.poll())
        self.message(talk, 'new @ann', mentions=['ann'])
        out, _ = watch.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual([json.loads(line)['body'] for line in out.splitlines()], ['new @ann'])

    def test_tail_shows_what_comes(self):
        talk = self.thread()
        for options in (self.options, ('refresh=3600',)):  # asked for, and told of
            with self.subTest(options):
                other = self.mount(self.api.origin, options=options)
                first = self.message(talk, 'first', mentions=['ann'])
                process = subprocess.Popen(['tail', '-n', '+1', '-f', self.box(other) / 'messages.ndjson'],
                                           stdout=subprocess.PIPE)
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                os.set_blocking(process.stdout.fileno(), False)
                read = []

                def printed(read=read, process=process):
                    read.append(process.stdout.read() or b'')
                    return b''.join(read).decode()

                self.eventually(lambda: first in printed(), 'what is there')
                bob = self.mount(self.api.origin, 'bob')
                (bob.directory / f'threads/{talk}/reply').write_text(f'after {first}, @ann\n')
                self.eventually(lambda: f'after {first}' in printed(), 'what comes')
                self.assertEqual(printed(), (self.box(other) / 'messages.ndjson').read_text())

    def test_who_follows_goes_on_when_older_lines_are_dropped(self):
        talk = self.thread()
        self.message(talk, 'the first', mentions=['ann'])
        with open(self.box() / 'messages.ndjson', 'rb') as file:
            read = [file.read()]
            number = os.fstat(file.fileno()).st_ino

            def last_line():
                os.fstat(file.fileno())  # as tail -f does
                read.append(file.read())
                return b''.join(read).split(b'\n')[-2]

            self.eventually(lambda: b'the first' in last_line(), 'it begins')
            for count in range(1, 13):
                for each in range(25):
                    self.message(talk, f'{count} {each} ' + 'x' * 14_000, mentions=['ann'])
                self.eventually(lambda count=count: f'"{count} 24 '.encode() in last_line(), f'it follows to {count}')
            self.assertGreater(len(b''.join(read)), 4 << 20)
            self.assertEqual(b''.join(read).count(b'\n'), 1 + 12 * 25)
            self.assertEqual((self.box() / 'messages.ndjson').stat().st_ino, number)

    def test_replies_are_there_however_small_the_cache_is(self):
        """What they answer was evicted before it was looked at."""
        self.ann.unmount()
        talk = self.thread()
        own = [self.message(talk, 'x' * 15000, agent='ann') for _ in range(100)]
        wanted = sorted(self.message(talk, parent=each) for each in own)
        small = self.mount(self.proxy.url, options=(*self.options, 'cache_size=1M'))
        self.eventually(lambda: self.names('new', small) == wanted, 'all are there')

    def test_it_costs_what_is_new(self):
        talk = self.thread()
        for number in range(120):
            self.message(talk, f'{number}', mentions=['ann'] if number % 2 else [])
        figures = {}

        def read(name, count):
            with self.proxy.counting() as counted:
                self.assertEqual(len(self.lines()), count)
            figures[name] = counted.requests
            self.assertEqual([line for line in counted.requests if '/messages/' in line], [], 'the texts came with the list')
            return len(counted.requests)

        read('cold', 60)
        self.assertLessEqual(read('again', 60), 3)
        with self.proxy.counting() as counted:
            for name in self.names('new'):
                (self.box() / f'new/{name}.json').read_text()
        self.assertEqual([line for line in counted.requests if '/messages/' in line], [])
        self.ann.unmount()
        (index,) = (self.home / 'ann/state').rglob('=inbox/*.index')
        self.assertEqual(index.stat().st_mode & 0o777, 0o600)
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.assertLessEqual(read('after a remount', 60), 8)
        print(json.dumps({name: len(requests) for name, requests in figures.items()}))


class Marks(Inbox):
    def setUp(self):
        super().setUp()
        self.talk = self.thread()
        self.ids = sorted(self.message(self.talk, str(number), mentions=['ann', 'bob']) for number in range(6))

    def mv(self, names, source='new', target='seen', mount=None):
        box = self.box(mount)
        self.command('mv', *(box / source / f'{name}.json' for name in names), box / target)

    def test_they_survive_and_are_each_agents_own(self):
        self.mv(self.ids[:3])
        self.assertEqual((self.names('new'), self.names('seen')), (self.ids[3:], self.ids[:3]))
        self.assertFalse((self.box() / f'new/{self.ids[0]}.json').exists())
        self.assertEqual(json.loads((self.box() / f'seen/{self.ids[0]}.json').read_text())['id'], self.ids[0])
        self.mv(self.ids[:1], 'seen', 'new')
        (marks,) = (self.home / 'ann/state').rglob('=inbox/*.seen')
        self.assertEqual((marks.stat().st_mode & 0o777, marks.parent.stat().st_mode & 0o777), (0o600, 0o700))
        self.ann.kill()
        self.ann.end()
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.assertEqual(self.names('seen'), self.ids[1:3])
        # Another agent, with the same state directory.
        os_environment = self.environment
        self.environment = lambda who: {**os_environment('ann'), 'PLAYFS_AGENT': who}
        other = self.mount(self.api.origin, 'bob')
        self.assertEqual((self.names('seen', other), self.lines(other)), ([], []))  # bob wrote them all himself
        third = self.message(self.talk, 'for bob', agent='eve', mentions=['bob'])
        self.eventually(lambda: self.names('new', other) == [third], 'for bob')
        self.assertEqual(self.names('seen'), self.ids[1:3])

    def test_two_mounts_of_one_agent_lose_none(self):
        other = self.mount(self.proxy.url, options=self.options)
        more = sorted(self.message(self.talk, str(number), mentions=['ann']) for number in range(60))
        self.eventually(lambda: len(self.names('new')) == len(self.names('new', other)) == 66, 'both see all')
        halves = (more[::2], self.ann), (more[1::2], other)
        threads = [threading.Thread(target=self.mv, args=(names,), kwargs={'mount': mount}) for names, mount in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for mount in (self.ann, other):
            self.eventually(lambda mount=mount: self.names('seen', mount) == more, 'all are marked')
            self.assertFalse((self.box(mount) / f'new/{more[0]}.json').exists())
        self.mv(more, 'seen', 'new', other)
        self.eventually(lambda: self.names('seen') == [], 'and back')

    def test_of_several_that_move_an_entry_one_does(self):
        """In this mount, in another of the same agent, and by a command without a mount, all at once."""
        other = self.mount(self.proxy.url, options=self.options)
        self.mv(self.ids[5:])  # now there is a lock
        (lock,) = (self.home / 'ann/state').rglob('=inbox/lock')

        def move(mount, source='new', target='seen'):
            name = f'{self.ids[0]}.json'
            try:
                os.rename(self.box(mount) / source / name, self.box(mount) / target / name)
            except OSError as problem:
                return errno.errorcode[problem.errno]
            return 'moved'

        def race(*calls):
            """What each of them got. While the lock is held, all find the entry where it was."""
            self.assertEqual(self.names('new', other), self.names('new'))
            got = [None] * len(calls)
            threads = [threading.Thread(target=lambda at=at, call=call: got.__setitem__(at, call()))
                       for at, call in enumerate(calls)]
            with open(lock, 'rb') as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                for thread in threads:
                    thread.start()
                time.sleep(1)
            for thread in threads:
                thread.join()
            return sorted(got)

        def claim():
            entries = json.loads(self.playfs('inbox', '--mark-seen', '--json', '--site', self.proxy.url, cwd='/').stdout)['entries']
            return 'moved' if self.ids[0] in [entry['record']['id'] for entry in entries] else 'ENOENT'

        for _ in range(3):
            self.assertEqual(race(lambda: move(self.ann), lambda: move(other)), ['ENOENT', 'moved'])
            self.assertEqual(race(lambda: move(self.ann, 'seen', 'new'), lambda: move(other, 'seen', 'new')),
                             ['ENOENT', 'moved'])
        self.assertEqual(race(lambda: move(self.ann), lambda: move(other), claim), ['ENOENT', 'ENOENT', 'moved'])
        for mount in (self.ann, other):
            self.eventually(lambda mount=mount: self.ids[0] in self.names('seen', mount), 'both know')

    def test_what_another_mount_has_looked_at_is_kept(self):
        """The mount that knows less marks last. The edit, while none is mounted, is news for who knows what was edited."""
        other = self.mount(self.proxy.url, options=('refresh=60',))
        self.assertEqual(self.names('new', other), self.ids)
        mine = self.thread('ann')
        edited = self.message(mine, 'helo')
        self.eventually(lambda: edited in self.names('new'), 'it comes')
        self.mv([edited])
        self.mv(self.ids[:1], mount=other)
        for mount in (self.ann, other):
            mount.unmount()
        time.sleep(0.01)
        self.api.call('PATCH', f'/messages/{edited}', {'body': 'hello @ann', 'mentions': ['ann']})
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.assertEqual((self.names('new'), self.names('seen')), (sorted([*self.ids[1:], edited]), self.ids[:1]))

    def test_what_a_crash_cut_off_is_dropped(self):
        self.mv(self.ids[:2])
        (marks,) = (self.home / 'ann/state').rglob('=inbox/*.seen')
        with open(marks, 'ab') as file:
            file.write(b'+17999999999999999 ' + self.ids[4].encode()[:7])
        self.mv(self.ids[2:3])
        self.assertEqual(self.names('seen'), self.ids[:3])
        self.assertEqual(len(marks.read_bytes().splitlines()), 3)

    def test_a_long_journal_gets_shorter(self):
        self.mv(self.ids[:2])
        (marks,) = (self.home / 'ann/state').rglob('=inbox/*.seen')
        line = marks.read_bytes().splitlines(True)[0]
        with open(marks, 'ab') as file:
            file.write(line * 5_000)
        self.mv(self.ids[2:3])
        self.assertEqual(len(marks.read_bytes().splitlines()), 3)
        self.assertEqual(self.names('seen'), self.ids[:3])
        self.mv(self.ids[:1], 'seen', 'new')
        self.assertEqual(self.names('seen'), self.ids[1:3])

    def test_nothing_else_can_be_done(self):
        box, name = self.box(), f'{self.ids[0]}.json'
        new, seen = box / 'new', box / 'seen'
        for call in (lambda: os.unlink(new / name), lambda: os.rename(new / name, seen / 'other.json'),
                     lambda: os.rename(new / name, new / 'other.json'), lambda: os.rename(new / name, box / name),
                     lambda: os.rename(new / name, self.ann.directory / 'threads' / name),
                     lambda: os.mkdir(new / 'folder'), lambda: os.mknod(new / 'file'), lambda: os.mkdir(box / 'folder'),
                     lambda: os.symlink('x', seen / 'link'), lambda: os.rename(seen, box / 'old')):
            self.refused(errno.EPERM, call)
        self.eventually(lambda: 'mv inbox/new/ID.json inbox/seen/' in self.errors(), 'the log has the hint')
        with self.assertRaises(OSError):
            (new / name).write_text('{}')
        self.assertEqual((self.names('new'), self.names('seen')), (self.ids, []))
        self.refused(errno.ENOENT, lambda: os.rename(new / 'nothing.json', seen / 'nothing.json'))


class Hostile(Inbox):
    def test_strangers_who_mention_me_without_end(self):
        handles = ('x\x1b[2J', '../..', '\u202eevil', 'a' * 4_000, 'new\nline', '', '@ann', 'b/c')
        talk = self.thread(handles[0])
        for number in range(500):
            body = ('\x1b]0;owned\x07 @ann', 'x' * 9_000, '{"id": 1}\n{"id": 2}', '\u2028\u0085')[number % 4]
            self.message(talk, body, agent=handles[number % len(handles)], mentions=['ann', handles[1], 7][:3 - number % 2])
        self.eventually(lambda: len(self.names('new')) == 500, 'all are listed')
        text = (self.box() / 'messages.ndjson').read_text()
        self.assertIsNone(RAW.search(text))
        lines = text.split('\n')[:-1]
        self.assertLess(len(text), 4 << 20)
        self.assertEqual([json.loads(line)['body'] for line in lines[-2:]][0], '{"id": 1}\n{"id": 2}')
        for name in os.listdir(self.box() / 'new')[:40]:
            self.assertIsNone(RAW.search((self.box() / 'new' / name).read_text().replace('\n', '')))
        self.command('sh', '-c', f'mv {self.box()}/new/* {self.box()}/seen/')
        self.assertEqual((len(self.names('seen')), self.names('new')), (500, []))

    def test_ids_that_are_no_file_names(self):
        """They are in messages.ndjson only; those that are odd, and files, are marked like others."""
        files = ('x' * 120, 'a b\nc%41', '-rf', '\u202ex', 'é')
        odd = ('..', 'a/b', '.git', 'x' * 254, *files)
        talk = self.thread()
        named = {self.message(talk, 'for @ann', mentions=['ann']): name for name in odd}

        def rename(method, path, headers, body, ask):
            if '/messages?' not in path:
                return None
            del headers['Accept-Encoding']
            page = json.loads(ask()[2])
            for record in page['records']:
                record['id'] = named[record['id']]
            text = json.dumps(page).encode()
            return [b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(text), text]

        self.proxy.raw = rename
        self.assertEqual(self.names('new'), sorted(files))
        self.assertLessEqual(set(files), {line['id'] for line in self.lines()})
        for name in files:
            os.rename(self.box() / f'new/{name}.json', self.box() / f'seen/{name}.json')
        self.ann.unmount()
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.assertEqual((self.names('new'), self.names('seen')), ([], sorted(files)))


if __name__ == '__main__':
    fixture.main()
