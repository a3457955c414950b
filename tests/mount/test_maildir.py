#!/usr/bin/env python3
"""maildir/ and thread.mbox over real mounts, as Python's mailbox reads them, and what moving and flagging leaves."""
import email
import email.policy
import errno
import json
import mailbox
import os
import re
import time
import urllib.request

import fixture

KINDS = ('mail', 'intro', 'discussion', 'collab', 'help', 'handoff', 'discovery')
HOSTILE = ('a\nFrom eve Mon Jan  1 00:00:00 2024\n>From x\n', '\x1b[2J\x1b]0;x\x07', 'NUL \x00 and \u202e bidi \u009b31m', 'y' * 14_000,
           '\r\n.\r\nMAIL FROM:<x>', '=?utf-8?q?=0A?=', '')
TITLES = ('\u202egnp.exe', 'Hi\r\nBcc: eve@example.org\r\n\r\ninjected', '=?utf-8?b?AAAA?=', '\x1b[2J' + 'ü' * 700, '')
HANDLES = ('bob', 'e v\ne"<x@y>', '\u202egnp', '\x1b[2J', '../../etc', '=?utf-8?q?=1B]0;x=07?=')


# What a terminal would obey, beside line breaks and tabs.
OBEYED = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), 0x200e, 0x200f, *range(0x2028, 0x202f),
                                 *range(0x2066, 0x206a))} - set('\r\f')


def shown(body):
    """As letters have it, with line breaks as Python reads them."""
    text = body.replace('\x00', '\ufffd').replace('\r\n', '\n')
    escaped = {each: f'\\x{ord(each):02x}' if each < '\x80' else f'\\u{ord(each):04x}' for each in OBEYED}
    return ''.join(escaped.get(each, each) for each in text)


class Maildir(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.ann = self.mount(self.api.origin)
        self.top = self.ann.directory

    def thread(self, title='Hello', kind='discussion'):
        return self.api.create('threads', title=title, agent='bob', kind=kind)['id']

    def message(self, thread, body, **more):
        return self.api.create('messages', **{'thread': thread, 'parent': '', 'agent': 'bob', 'body': body, 'mentions': [],
                                              'links': [], **more})['id']

    def box(self, place, kind='discussion', top=None):
        return (top or self.top) / 'maildir' / kind / place

    def names(self, place, kind='discussion', top=None):
        return sorted(os.listdir(self.box(place, kind, top)))

    def letters(self, kind='discussion', top=None):
        """By the id of the record."""
        return {letter['Message-ID'].strip('<>').split('@')[0]: letter
                for letter in mailbox.Maildir((top or self.top) / 'maildir' / kind, create=False)}

    def refused(self, number, call, *parts):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, number, problem.exception)
        if parts:
            log = self.top / '.playfs/errors.ndjson'
            self.eventually(lambda: any(all(part in line for part in parts) for line in log.read_text().splitlines()), parts)

    def assert_one(self, place, info='', kind='discussion', top=None):
        """The folder's one letter is there; its name."""
        other = 'cur' if place == 'new' else 'new'
        self.assertEqual(self.names(other, kind, top), [])
        (name,) = self.names(place, kind, top)
        self.assertEqual(name.partition(':')[1] + name.partition(':')[2], info)
        return name


@fixture.needs_fuse
class Letters(Maildir):
    def test_every_kind_has_its_folder(self):
        self.assertEqual(sorted(os.listdir(self.top / 'maildir')), sorted((*KINDS, 'inbox')))
        for kind in KINDS:
            self.assertEqual(sorted(os.listdir(self.top / 'maildir' / kind)), ['cur', 'new', 'tmp'])
            if kind != 'mail':
                self.message(self.thread(kind, kind), f'about {kind}')
        self.api.create('domain_mail', agent='ann', kind='question', subject='Limits', body='May I?')
        for kind in KINDS:
            self.eventually(lambda kind=kind: len(self.names('new', kind)) == 1, kind)
            (letter,) = self.letters(kind).values()
            self.assertEqual(letter['Subject'], 'Limits' if kind == 'mail' else kind)

    def test_sizes_are_exact_and_contents_are_those_of_the_records(self):
        wanted = {}
        for title in TITLES:
            thread = self.thread(title)
            for body in HOSTILE:
                for agent in HANDLES[:2] if body else HANDLES:
                    wanted[self.message(thread, body, agent=agent)] = (title, agent, body)
        paths = [entry.path for entry in os.scandir(self.box('new'))]
        self.assertEqual(len(paths), len(wanted))
        sizes = {path: os.stat(path).st_size for path in paths}
        for path in paths:
            with open(path, 'rb') as file:
                data = file.read()
            self.assertEqual(len(data), sizes[path], path)
            self.assertNotIn(b'\x1b', data)
            self.assertNotIn('\u202e'.encode(), data)
            self.assertNotIn(b'\0', data)
            letter = email.message_from_bytes(data, policy=email.policy.default)
            self.assertIsNone(letter['Bcc'])
            _, _, body = wanted[letter['Message-ID'].strip('<>').split('@')[0]]
            self.assertEqual(letter.get_content().replace('\r\n', '\n').rstrip('\n'), shown(body).rstrip('\n'))
            self.assertFalse(OBEYED.intersection(letter['Subject'] + letter['From'] + letter.get_content()))
        # Another mount renders the same bytes.
        bob = self.mount(self.api.origin, 'bob')
        for path in paths:
            with open(path, 'rb') as mine, open(self.box('new', top=bob.directory) / os.path.basename(path), 'rb') as other:
                self.assertEqual(mine.read(), other.read())

    def test_answers_refer_to_what_they_answer(self):
        thread, other = self.thread(), self.thread('Other')
        first = self.message(thread, 'first')
        second = self.message(thread, 'second', parent=first)
        third = self.message(thread, 'third', parent=second)
        stray = self.message(other, 'stray', parent=first)
        letters = self.letters()
        domain = letters[first]['Message-ID'].split('@')[1]
        self.assertIsNone(letters[first]['In-Reply-To'])
        self.assertEqual(letters[third]['In-Reply-To'], f'<{second}@{domain}')
        self.assertEqual(letters[third]['References'].split(), [f'<{first}@{domain}', f'<{second}@{domain}'])
        self.assertIsNone(letters[stray]['In-Reply-To'], 'a message of another thread is no parent')

    def test_threads_that_name_the_same_stranger_stay_apart(self):
        ids = []
        for title in 'ab':
            thread = self.thread(title)
            stray = self.message(thread, 'stray', parent='nonesuch')
            ids.append((stray, self.message(thread, 'answer', parent=stray), thread))
        letters = self.letters()
        for stray, answer, thread in ids:
            self.assertIsNone(letters[stray]['References'] or letters[stray]['In-Reply-To'])
            self.assertEqual(letters[answer]['References'], letters[stray]['Message-ID'])
            box = mailbox.mbox(self.top / 'threads' / thread / 'thread.mbox', create=False)
            self.addCleanup(box.close)
            self.assertEqual([letter['References'] for letter in box], [None, letters[stray]['Message-ID']])

    def test_numbers_grow_with_time(self):
        thread = self.thread()
        ids = []
        for i in range(20):
            ids.append(self.message(thread, str(i)))
            time.sleep(0.002)
        entries = list(os.scandir(self.box('new')))
        for entry in entries:
            self.assertEqual(entry.inode(), entry.stat().st_ino)
        self.assertEqual([entry.name.split('.')[1].split('_')[0] for entry in sorted(entries, key=os.DirEntry.inode)], ids)

    def test_what_comes_is_seen_by_who_looks_at_the_time_only(self):
        self.message(self.thread('Hello'), 'one')
        self.assertEqual(len(self.names('new')), 1)
        before = os.stat(self.box('new')).st_mtime_ns
        self.message(self.thread('Other'), 'two')
        self.eventually(lambda: os.stat(self.box('new')).st_mtime_ns > before, 'the time of new/ changes')
        self.eventually(lambda: len(self.names('new')) == 2, 'and it is listed')

    def made(self):
        """How many letters the mount has made so far."""
        text = (self.top / '.playfs/metrics').read_text()
        return int(re.search(r'^playfs_letters_made_total (\d+)', text, re.M)[1])

    def test_what_comes_costs_itself_however_many_letters_there_are(self):
        thread, other = self.thread(), self.thread('Other', 'help')
        first = self.message(thread, 'the first')
        for number in range(1_500):
            self.message(thread, f'message {number}')
        self.assertEqual((len(self.names('new')), self.made()), (1_501, 1_501))
        self.names('new', 'help')
        for count, kind in ((1, 'discussion'), (7, 'discussion'), (1, 'help')):
            before, listed = self.made(), len(self.names('new', kind))
            for number in range(count):
                self.message(thread if kind == 'discussion' else other, f'{kind} {number}')
            self.eventually(lambda: len(self.names('new', kind)) == listed + count, 'it is listed')
            self.assertEqual(self.made() - before, count)
        before = self.made()
        self.api.call('PATCH', f'/messages/{first}', {'body': 'the first, edited'})
        self.eventually(lambda: self.made() == before + 1, 'one letter is another one')
        self.assertEqual(len(self.names('new')), 1_509)

    def test_a_changed_title_changes_the_letters_of_its_thread(self):
        thread = self.thread('tpyo')
        self.message(thread, 'one')
        name = self.assert_one('new')
        self.assertIn('Subject: tpyo', (self.box('new') / name).read_text())
        self.api.call('PATCH', f'/threads/{thread}', {'title': 'a typo'})

        def is_new():
            os.stat(self.box('new'))
            path = self.box('new') / name
            text = path.read_bytes()
            return b'Subject: a typo' in text and path.stat().st_size == len(text)

        self.eventually(is_new, 'the letter has the new title')
        self.assertEqual(self.names('new'), [name])


@fixture.needs_fuse
class Marks(Maildir):
    def setUp(self):
        super().setUp()
        self.talk = self.thread()
        self.id = self.message(self.talk, 'one')
        self.name = self.assert_one('new')

    def move(self, place, name, to, info, top=None):
        unique = name.partition(':')[0]
        os.rename(self.box(place, top=top) / name, self.box(to, top=top) / (unique + info))
        return unique + info

    def test_moves_and_flags_survive_remounts_and_are_each_agents_own(self):
        moved = self.move('new', self.name, 'cur', ':2,S')
        self.assertEqual(self.assert_one('cur', ':2,S'), moved)
        self.assertFalse((self.box('new') / self.name).exists())
        with open(self.box('cur') / moved, 'rb') as file:
            self.assertEqual(len(file.read()), os.stat(self.box('cur') / moved).st_size)
        moved = self.move('cur', moved, 'cur', ':2,FRS')
        self.ann.unmount()
        again = self.mount(self.api.origin).directory
        self.assertEqual(self.assert_one('cur', ':2,FRS', top=again), moved)
        self.assert_one('new', top=self.mount(self.api.origin, 'bob').directory)
        back = self.move('cur', moved, 'new', '', top=again)
        self.assertEqual(self.assert_one('new', top=again), back)

    def test_marks_survive_the_death_of_the_mount(self):
        self.move('new', self.name, 'cur', ':2,S')
        self.ann.kill()
        self.ann.end()
        self.assert_one('cur', ':2,S', top=self.mount(self.api.origin).directory)
        (journal,) = (self.home / 'ann/state').rglob('=maildir/ann')
        self.assertEqual(journal.stat().st_mode & 0o777, 0o600)
        # A line that was not finished counts as not written, and takes nothing along.
        self.mounts[-1].unmount()
        with open(journal, 'a', encoding='ascii') as file:
            file.write('m:x 12')
        third = self.mount(self.api.origin).directory
        self.move('cur', self.assert_one('cur', ':2,S', top=third), 'cur', ':2,FS', top=third)
        self.mounts[-1].unmount()
        self.assert_one('cur', ':2,FS', top=self.mount(self.api.origin).directory)

    def test_an_edited_letter_has_a_new_name_and_is_unread_again(self):
        moved = self.move('new', self.name, 'cur', ':2,FST')
        time.sleep(0.01)
        self.api.call('PATCH', f'/messages/{self.id}', {'body': 'another'})
        self.eventually(lambda: os.stat(self.box('cur')) and self.names('cur') != [moved], 'another name')
        name = self.assert_one('cur', ':2,F')
        self.assertNotEqual(name.partition(':')[0], moved.partition(':')[0])
        self.assertIn('another', (self.box('cur') / name).read_text())
        self.eventually(lambda: not (self.box('cur') / moved).exists(), 'the old name is gone')

    def test_what_is_removed_stays_hidden(self):
        os.unlink(self.box('new') / self.name)
        self.assertEqual(self.names('new') + self.names('cur'), [])
        self.assertFalse((self.box('new') / self.name).exists())
        self.refused(errno.ENOENT, lambda: os.unlink(self.box('new') / self.name))
        self.assertEqual(self.api.get('messages', self.id)['body'], 'one')
        self.ann.unmount()
        again = self.mount(self.api.origin).directory
        self.assertEqual(self.names('new', top=again) + self.names('cur', top=again), [])

    def test_two_mounts_of_one_agent_see_each_others_marks(self):
        other = self.mount(self.api.origin).directory
        self.assert_one('new', top=other)
        (self.box('new', top=other) / self.name).stat()
        moved = self.move('new', self.name, 'cur', ':2,S')

        def is_moved():
            os.stat(self.box('cur', top=other))
            return self.names('cur', top=other) == [moved] and self.names('new', top=other) == []

        self.eventually(is_moved, 'the other mount shows it moved')
        self.eventually(lambda: not (self.box('new', top=other) / self.name).exists(), 'and not under its old name')
        # A move of what the other has moved meanwhile fails, and loses nothing.
        again = self.move('cur', moved, 'cur', ':2,FS', top=other)
        with self.assertRaises(FileNotFoundError):
            self.move('cur', moved, 'cur', ':2,RS')
        self.eventually(lambda: os.stat(self.box('cur')) and self.names('cur') == [again], 'the first shows it')

    def test_nothing_else_is_taken_and_the_log_says_why(self):
        new, tmp = self.box('new'), self.box('tmp')
        self.refused(errno.EPERM, lambda: (tmp / 'x').write_text('x'), 'maildir/discussion/tmp', 'playfs sendmail')
        self.refused(errno.EPERM, lambda: (new / 'x').write_text('x'), 'maildir/discussion/new')
        self.refused(errno.EPERM, lambda: os.link(new / self.name, self.box('cur') / (self.name + ':2,')))
        self.refused(errno.EPERM, lambda: os.rename(new / self.name, new / 'another'))
        self.refused(errno.EPERM, lambda: os.rename(new / self.name, self.box('cur') / f'{self.name}:2,!'))
        self.refused(errno.EPERM, lambda: os.rename(new / self.name, tmp / self.name))
        self.refused(errno.EPERM, lambda: os.rename(new / self.name, self.box('cur', 'help') / self.name))
        self.refused(errno.EPERM, lambda: os.mkdir(self.top / 'maildir/discussion/.Sent'))
        self.refused(errno.EPERM, lambda: (new / self.name).write_text('x'))
        self.assertEqual(self.assert_one('new'), self.name)


@fixture.needs_fuse
class Answered(Maildir):
    KEY = 'k' * 40

    def serve(self):
        (self.home / 'key').write_text(self.KEY)
        (self.home / 'key').chmod(0o600)
        return super().serve(options=('--steward-key', str(self.home / 'key')))

    def answer(self, mail):
        request = urllib.request.Request(f'{self.api.base}/domain_mail/{mail}', method='PATCH',
                                         data=json.dumps({'owner_reply': 'You may.', 'state': 'closed'}).encode(),
                                         headers={'Content-Type': 'application/json', 'Origin': self.api.origin,
                                                  'Authorization': f'Bearer {self.KEY}'})
        urllib.request.urlopen(request, timeout=60).close()

    def test_an_answer_of_the_steward_makes_a_read_mail_unread(self):
        mail = self.api.create('domain_mail', agent='ann', kind='question', subject='Limits', body='May I?')['id']
        name = self.assert_one('new', kind='mail')
        os.rename(self.box('new', 'mail') / name, self.box('cur', 'mail') / f'{name}:2,S')
        time.sleep(0.01)
        self.answer(mail)
        self.eventually(lambda: os.stat(self.box('cur', 'mail')) and self.names('cur', 'mail') != [f'{name}:2,S'], 'it changes')
        answered = self.assert_one('cur', ':2,', kind='mail')
        text = (self.box('cur', 'mail') / answered).read_text()
        self.assertIn('You may.', text)
        self.assertIn('X-Playfs-Answered: yes', text)


    def test_the_inbox_has_what_is_for_the_agent_and_marks_of_its_own(self):
        mail = self.api.create('domain_mail', agent='ann', kind='question', subject='Limits', body='May I?')['id']
        thread = self.thread('Hello', 'help')
        self.message(thread, 'for nobody')
        mention = self.message(thread, 'for @ann', mentions=['ann'])
        self.eventually(lambda: len(self.names('new', 'inbox')) == 1, 'a mention')
        name = self.assert_one('new', kind='inbox')
        self.assertEqual(self.letters('inbox')[mention]['Subject'], 'Hello')
        os.unlink(self.box('new', 'inbox') / name)
        self.assertEqual(self.names('new', 'inbox'), [])
        self.assertIn(name, self.names('new', 'help'), 'it is removed in the inbox only')
        self.answer(mail)
        self.eventually(lambda: os.stat(self.box('new', 'inbox')) and self.names('new', 'inbox'), 'an answer')
        self.assertIn('You may.', (self.box('new', 'inbox') / self.assert_one('new', kind='inbox')).read_text())
        self.ann.unmount()
        again = self.mount(self.api.origin).directory
        self.assertEqual(list(self.letters('inbox', again)), [mail])
        self.assertEqual(list(self.letters('inbox', self.mount(self.api.origin, 'bob').directory)), [])


@fixture.needs_fuse
class Mbox(Maildir):
    def box_of(self, path):
        box = mailbox.mbox(path, create=False)
        self.addCleanup(box.close)
        return list(box)

    def test_a_thread_is_an_mbox_that_grows(self):
        thread = self.thread('Hello')
        path = self.top / 'threads' / thread / 'thread.mbox'
        first = self.message(thread, HOSTILE[0])
        self.assertEqual(len(self.box_of(path)), 1)
        with open(path, 'rb') as followed:
            before = followed.read()
            second = self.message(thread, 'second', parent=first)
            more = b''

            def has_grown():
                nonlocal more
                os.fstat(followed.fileno())
                more += followed.read()
                return b'second' in more

            self.eventually(has_grown, 'an open file grows')
        self.assertEqual(path.read_bytes(), before + more)
        self.assertEqual(path.stat().st_size, len(before + more))
        (one, two) = self.box_of(path)
        self.assertIn(second, two['Message-ID'])
        self.assertEqual(two['In-Reply-To'], one['Message-ID'])
        number = path.stat().st_ino
        time.sleep(0.01)
        self.api.call('PATCH', f'/messages/{first}', {'body': 'edited'})
        self.eventually(lambda: b'edited' in path.read_bytes(), 'an edit is shown')
        self.assertNotEqual(path.stat().st_ino, number)

    def test_it_has_what_messages_ndjson_has(self):
        thread = self.thread(TITLES[0])
        for body in HOSTILE:
            self.message(thread, body, agent=HANDLES[1])
        place = self.top / 'threads' / thread
        ids = [json.loads(line)['id'] for line in (place / 'messages.ndjson').read_text().splitlines()]
        self.assertEqual([letter['Message-ID'].strip('<>').split('@')[0] for letter in self.box_of(place / 'thread.mbox')],
                         ids)


if __name__ == '__main__':
    fixture.main()
