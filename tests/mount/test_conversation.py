#!/usr/bin/env python3
"""Threads, messages, agents, mail and spaces through files: two mounts of one service, and only what a shell has."""
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import fixture
import proxy
import service

HELP = ('outcome', 'write', 'fields', 'example', 'then')


class Conversation(fixture.Fixture):
    """A service behind a proxy, and a mount for ann."""

    options = ('refresh=1',)

    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.top = self.ann.directory

    def echo(self, text, path):
        """As a shell writes it, and reads the outcome."""
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text + '\n')
        return json.loads(path.read_text())

    def refused(self, number, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, number, problem.exception)

    def errors(self, top=None):
        return [json.loads(line) for line in ((top or self.top) / '.playfs/errors.ndjson').read_text().splitlines()]

    def tells(self, *parts):
        """The log has a line with all of these."""
        self.eventually(lambda: any(all(part in json.dumps(line) for part in parts) for line in self.errors()),
                        f'errors.ndjson has {parts}')

    def thread(self, title='Hello', **more):
        return self.api.create('threads', title=title, agent='bob', kind='discussion', **more)['id']

    def message(self, thread, body, **more):
        return self.api.create('messages', **{'thread': thread, 'parent': '', 'agent': 'bob', 'body': body, 'mentions': [],
                                              'links': [], **more})['id']


@fixture.needs_fuse
class Forms(Conversation):
    def test_every_form_says_what_it_takes_and_its_example_is_taken(self):
        thread = self.thread()
        forms = {'threads/new': ('title', 'kind', 'agent', 'body'),
                 f'threads/{thread}/reply': ('body', 'agent', 'parent', 'mentions', 'links'),
                 'agents/new': ('handle',), 'mail/new': ('body', 'subject', 'kind', 'agent'), 'spaces/new': ('name',),
                 'projects/new': ('name',)}
        for path, names in forms.items():
            with self.subTest(path):
                text = json.loads((self.top / path).read_text())
                self.assertLessEqual(set(HELP), set(text))
                self.assertLessEqual({*names, 'dry_run'}, set(text['fields']))
                self.assertIn('nobody can withdraw it', text['public'])
                self.assertIn('id', self.echo(json.dumps(text['example']), self.top / path))
        for kind in ('intro', 'discussion', 'collab', 'help', 'handoff', 'discovery'):
            self.assertIn(kind, self.help_of('threads/new')['kind'])

    def help_of(self, path):
        other = self.mount(self.proxy.url, 'helped')
        return json.loads((other.directory / path).read_text())['fields']

    def test_a_thread_begins_with_its_first_message(self):
        made = self.echo('{"title": "Hello", "kind": "intro", "body": "I am new, @bob"}', self.top / 'threads/new')
        thread, message = self.api.get('threads', made['id']), self.api.get('messages', made['first_message'])
        self.assertEqual((thread['title'], thread['kind'], thread['agent']), ('Hello', 'intro', 'ann'))
        self.assertNotIn('body', thread)
        self.assertEqual({name: message[name] for name in ('thread', 'parent', 'agent', 'body', 'mentions', 'links')},
                         {'thread': thread['id'], 'parent': '', 'agent': 'ann', 'body': 'I am new, @bob',
                          'mentions': ['bob'], 'links': []})

    def test_a_first_message_that_fails_makes_no_second_thread(self):
        refuse = (400, json.dumps({'error': 'no', 'code': 'invalid_request', 'message': 'not today'}))
        self.proxy.fate = lambda request: refuse if request == 'POST /.site/data/messages' else None
        new, text = self.top / 'threads/new', '{"title": "Hello", "body": "first"}'
        self.refused(errno.EINVAL, lambda: self.echo(text, new))
        (thread,) = self.api.all('threads')
        error = json.loads(new.read_text())['error']
        self.assertIn(thread['id'], error['message'])
        self.assertIn('not today', error['message'])
        self.assertIn(f'threads/{thread["id"]}/reply', error['hint'])
        self.proxy.fate = lambda request: None
        self.assertEqual(self.echo(text, new)['id'], thread['id'])
        self.assertEqual(len(self.api.all('threads')), 1)
        self.assertEqual([message['body'] for message in self.api.all('messages')], ['first'])
        self.assertNotEqual(self.echo(text, new)['id'], thread['id'], 'it has its outcome: written again, it is another')

    def test_a_message_that_is_too_large_makes_no_thread(self):
        self.refused(errno.EMSGSIZE,
                     lambda: self.echo(json.dumps({'title': 'x', 'body': 'y' * 17_000}), self.top / 'threads/new'))
        self.assertEqual(self.api.all('threads'), [])

    def test_mentions_are_those_in_the_body_unless_they_are_given(self):
        reply = self.top / 'threads' / self.thread() / 'reply'
        for written, mentions in (('Thanks @ada and @bob.', ['ada', 'bob']), ('{"body": "@ada", "mentions": []}', []),
                                  ('{"body": "@ada", "mentions": "eve"}', ['eve']),
                                  ('{"body": "x", "mentions": ["eve", "bob"]}', ['eve', 'bob']),
                                  ('mail ada@example.org', [])):
            self.assertEqual(self.echo(written, reply)['mentions'], mentions, written)
        self.assertEqual(self.echo('{"body": "x", "links": "https://example.org/"}', reply)['links'],
                         ['https://example.org/'])
        self.refused(errno.EINVAL, lambda: self.echo('{"body": "x", "mentions": [1]}', reply))
        self.tells('mentions', 'list of texts')

    def test_the_parent_is_a_message_of_the_thread(self):
        thread, other = self.thread(), self.thread('Other')
        here, elsewhere = self.message(thread, 'here'), self.message(other, 'elsewhere')
        reply = self.top / 'threads' / thread / 'reply'
        self.assertEqual(self.echo(json.dumps({'body': 'x', 'parent': here}), reply)['parent'], here)
        for parent in (elsewhere, 'unknown', thread, 7):
            self.refused(errno.EINVAL, lambda parent=parent: self.echo(json.dumps({'body': 'x', 'parent': parent}), reply))
        self.tells(f'threads/{thread}/reply', 'must be a message of this thread')
        self.assertEqual(len(self.api.all('messages')), 3)

    def test_a_dry_run_sends_nothing(self):
        thread = self.thread()
        with self.proxy.counting() as count:
            for path, body in ((f'threads/{thread}/reply', {'body': 'for @bob'}), ('threads/new', {'title': 't', 'body': 'b'}),
                               ('agents/new', {'handle': 'ada'}), ('mail/new', {'body': 'b'}), ('spaces/new', {'name': 's'}),
                               ('projects/new', {'name': 'p'})):
                outcome = self.echo(json.dumps({**body, 'dry_run': True}), self.top / path)
                self.assertEqual(outcome['outcome'], 'planned', path)
                sent = outcome['would_send']
                self.assertEqual(sent[0]['method'], 'POST')
                self.assertNotIn('dry_run', sent[0]['body'])
        self.assertEqual([line for line in count.requests if not line.startswith('GET')], [])
        self.assertEqual([step['collection'] for step in self.echo('{"title": "t", "body": "b", "dry_run": true}',
                                                                   self.top / 'threads/new')['would_send']],
                         ['threads', 'messages'])
        self.refused(errno.EINVAL, lambda: self.echo('{"body": "x", "dry_run": "yes"}', self.top / 'mail/new'))

    def test_a_handle_is_registered_once(self):
        self.api.create('agents', handle='bob')
        self.refused(errno.EEXIST, lambda: self.echo('{"handle": "bob"}', self.top / 'agents/new'))
        self.assertIn('agents/bob.json', json.loads((self.top / 'agents/new').read_text())['error']['hint'])
        self.tells('agents/new', 'already_exists')
        self.assertEqual(len(self.api.all('agents')), 1)

    def test_an_outcome_without_an_answer_says_what_to_do(self):
        reply = self.top / 'threads' / self.thread() / 'reply'

        def outcome(fate):
            self.proxy.fate = lambda request: fate if request.startswith('POST') else None
            with self.assertRaises(OSError):
                reply.write_text('{"body": "hello"}')
            return json.loads(reply.read_text())['error']

        lost = outcome('lose reply')
        self.assertIn('may have arrived: write the same text again, and it is sent once', lost['hint'])
        self.assertNotIn('retry_after_s', lost)
        self.tells('/reply', 'write the same text again')
        limited = outcome((429, json.dumps({'error': 'no', 'code': 'rate_limited', 'retry_after': 3600,
                                            'docs_url': 'https://example.org/limits'})))
        self.assertEqual((limited['code'], limited['retry_after_s']), ('rate_limited', 3600))
        self.assertRegex(limited['hint'], r'wait, then write the same text again.*; see https://example.org/limits')

    def test_what_found_no_connection_was_not_sent(self):
        served = service.Service(self, 'other')
        thread = fixture.Api(served.url).create('threads', title='Hello', agent='bob', kind='discussion')['id']
        top = self.mount(served.url, 'bob').directory
        reply = top / 'threads' / thread / 'reply'
        self.assertIn('body', reply.read_text())
        served.kill()
        time.sleep(3)  # libcurl 8.22 sends on a connection that it used just now without looking whether it is alive
        with self.assertRaises(OSError):
            reply.write_text('{"body": "hello"}')
        error = json.loads(reply.read_text())['error']
        self.assertEqual((error['code'], error['hint']), ('unreachable', 'it was not sent: write it again'))
        served.start()
        self.eventually(lambda: self.echo('{"body": "hello"}', reply), 'the service is back')
        self.assertEqual(len(fixture.Api(served.url).all('messages')), 1)

    def test_an_outcome_of_one_who_is_not_signed_in_says_how_to(self):
        no = (401, json.dumps({'error': 'no', 'code': 'unauthorized'}))
        self.proxy.fate = lambda request: no if request.startswith('POST') else None
        new = self.top / 'spaces/new'
        new.write_text('workshop')
        self.assertEqual(json.loads(new.read_text())['error']['hint'], 'playfs login')

    def hang(self, collection):
        """New records of the collection get no answer until set_hanging(None)."""
        self.proxy.set_hanging(lambda path: path.endswith('/' + collection))

    def test_a_handle_is_registered_once_when_it_is_written_twice(self):
        new = self.top / 'agents/new'
        self.hang('agents')
        for _ in range(2):
            new.write_text('ada')
        self.eventually(self.proxy.hung, 'the first is under way')
        self.proxy.set_hanging(None)
        self.assertEqual(json.loads(new.read_text())['error']['code'], 'already_exists')
        self.assertEqual([agent['handle'] for agent in self.api.all('agents')], ['ada'])
        self.assertEqual(list((self.home / 'ann/state').rglob('=requests/*.json')), [])
        self.refused(errno.EEXIST, lambda: self.echo('{"handle": "ada", "dry_run": true}', new))

    def test_who_repeats_a_registration_that_got_no_answer_has_one_agent(self):
        new = self.top / 'agents/new'
        self.proxy.fate = lambda request: 'lose reply' if request.startswith('POST') else None
        self.refused(errno.EHOSTUNREACH, lambda: self.echo('{"handle": "ada"}', new))
        self.proxy.fate = lambda request: None
        self.eventually(lambda: self.echo('{"handle": "ada"}', new).get('id'), 'the service is back')
        self.assertEqual([agent['handle'] for agent in self.api.all('agents')], ['ada'])

    def test_the_outcome_is_that_of_the_latest_request(self):
        new = self.top / 'threads/new'

        def shown():
            document = json.loads(new.read_text())
            return document.get('error', {}).get('code') or document.get('outcome') or document.get('title')

        for text, outcome in (('\n', 'invalid_argument'), ('{"title": }', 'invalid_argument'),
                              ('{"title": "x", "dry_run": true}', 'planned')):
            with self.subTest(text):
                before = len(self.api.all('threads'))
                self.hang('threads')
                new.write_text('first')
                self.eventually(self.proxy.hung, 'the first is under way')
                try:
                    new.write_text(text)
                except OSError as problem:
                    self.assertEqual(problem.errno, errno.EINVAL)
                self.eventually(lambda outcome=outcome: shown() == outcome, 'its outcome, which waits for nothing')
                self.proxy.set_hanging(None)
                self.eventually(lambda before=before: len(self.api.all('threads')) > before, 'the first arrives')
                journal = self.home / 'ann/state'
                self.eventually(lambda journal=journal: not list(journal.rglob('=requests/*.json')), 'it has its answer')
                for _ in range(3):
                    self.assertEqual(shown(), outcome)
                self.assertEqual(self.echo('second', new)['title'], 'second')

    def test_a_refusal_is_logged_once_however_often_it_is_repeated(self):
        for _ in range(200):
            self.refused(errno.EPERM, lambda: os.mkdir(self.top / 'threads/mine'))
        self.refused(errno.EINVAL, lambda: (self.top / 'threads/new').write_text('{"title": nonsense}'))
        self.tells('threads/mine', 'not_permitted')
        self.assertEqual(len([line for line in self.errors() if 'threads/mine' in line['subject']]), 1)
        for number in range(200):
            self.refused(errno.EPERM, lambda number=number: os.mkdir(self.top / f'threads/{number}'))
        self.assertLess(len(self.errors()), 80)


@fixture.needs_fuse
class InOrder(Conversation):
    """What is written to one file arrives in the order of the closes."""

    def bodies(self):
        return [message['body'] for message in sorted(self.api.all('messages'), key=lambda each: each['created_at'])]

    def test_what_a_loop_writes(self):
        reply, sent = self.top / 'threads' / self.thread() / 'reply', [f'm{number}' for number in range(20)]
        no = b'{"error": "no", "code": "invalid_request", "message": "no"}'
        refusal = b'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(no)
        self.proxy.raw = lambda method, path, headers, body, ask: [refusal + no] if b'"m2"' in body else None
        self.command('sh', '-c', f'for each in {" ".join(sent)}; do echo $each > {reply}; done')
        sent.remove('m2')  # a failure keeps nothing else from being sent
        self.eventually(lambda: len(self.api.all('messages')) == len(sent), 'all arrive')
        self.assertEqual(self.bodies(), sent)

    def test_what_a_crash_left(self):
        reply, sent = self.top / 'threads' / self.thread() / 'reply', [f'm{number}' for number in range(6)]
        self.proxy.set_hanging('messages')
        for each in sent:
            reply.write_text(each)
        self.eventually(lambda: len(list((self.home / 'ann/state').rglob('=requests/*.json'))) == len(sent), 'a journal')
        self.ann.kill()
        self.proxy.set_hanging(None)
        self.ann.end()
        self.mount(self.proxy.url, options=self.options)
        self.eventually(lambda: len(self.api.all('messages')) == len(sent), 'all arrive')
        self.assertEqual(self.bodies(), sent)

    def test_what_is_written_after_a_crash_waits_for_what_it_left(self):
        path, go_on, came = pathlib.Path('threads') / self.thread() / 'reply', threading.Event(), []
        self.addCleanup(go_on.set)

        def hold_the_first(method, path, headers, body, ask):
            if method == 'POST' and b'first' in body:
                came.append(path)
                go_on.wait(fixture.COMMAND_LIMIT)
        self.proxy.raw = hold_the_first
        (self.top / path).write_text('first')
        self.eventually(lambda: len(came) == 1, 'it is under way')
        self.ann.kill()
        self.ann.end()
        top = self.mount(self.proxy.url, options=self.options).directory
        self.eventually(lambda: len(came) == 2, 'it is sent again')
        (top / path).write_text('second')
        time.sleep(1)  # in which it would overtake the first
        go_on.set()
        self.eventually(lambda: len(self.api.all('messages')) == 2, 'both arrive')
        self.assertEqual(self.bodies(), ['first', 'second'])


@fixture.needs_fuse
class OwnTexts(fixture.Fixture):
    """Plain text is accepted before it is sent: who looks next, in the same mount, finds what it became."""

    def begin(self, tells):
        self.api, self.proxy = proxy.before_a_service(self)
        self.proxy.tells = tells
        self.thread = self.api.create('threads', title='Hello', agent='bob', kind='discussion')['id']
        self.top = self.mount(self.proxy.url, options=('refresh=3600',)).directory
        self.of_thread = self.top / 'threads' / self.thread

    def late(self, request):
        time.sleep(0.15 if request.startswith('POST') else 0)

    def test_a_slow_service(self):
        for tells in False, True:
            with self.subTest(tells=tells):
                self.begin(tells)
                for file in self.of_thread.iterdir():
                    file.is_dir() or file.read_text()
                for path in 'threads/by-title', 'agents', 'mail', 'spaces/by-name', 'projects/by-name':
                    os.listdir(self.top / path)
                self.proxy.fate = self.late
                for name in 'messages.md', 'messages.ndjson', 'thread.mbox':
                    for number in range(2):
                        (self.of_thread / 'reply').write_text(f'for {name}, {number}')
                        self.assertIn(f'for {name}, {number}', (self.of_thread / name).read_text())
                (self.of_thread / 'reply').write_text('the seventh')
                self.assertEqual(len(os.listdir(self.of_thread / 'messages')), 7)
                for path, by_name in (('threads/new', 'threads/by-title/{}'), ('agents/new', 'agents/{}.json'),
                                      ('spaces/new', 'spaces/by-name/{}'), ('projects/new', 'projects/by-name/{}')):
                    for name in 'one', 'two':
                        (self.top / path).write_text(name)
                        self.assertTrue((self.top / by_name.format(name)).exists(), path)
                # One after another: the last one's answer is the last.
                for number in range(3):
                    (self.of_thread / 'reply').write_text(f'in a row {number}')
                self.assertIn('in a row 2', (self.of_thread / 'messages.md').read_text())
                # By a title that was written a moment ago.
                (self.top / 'threads/new').write_text('three')
                (self.top / 'threads/by-title/three/reply').write_text('first of three')
                self.assertIn('first of three', (self.top / 'threads/by-title/three/messages.md').read_text())

    def test_without_an_answer_there_is_what_is_here(self):
        self.begin(False)
        shown = (self.of_thread / 'messages.md').read_text()
        self.proxy.set_hanging(lambda path: path.endswith('/messages'))
        (self.of_thread / 'reply').write_text('it hangs')
        self.eventually(self.proxy.hung, 'it is under way')
        for _ in range(3):
            self.assertEqual((self.of_thread / 'messages.md').read_text(), shown)
        self.assertEqual(os.listdir(self.of_thread / 'messages'), [])
        self.assertEqual(self.api.all('messages'), [])
        self.proxy.set_hanging(None)
        self.eventually(lambda: 'it hangs' in (self.of_thread / 'messages.md').read_text(), 'it is there')


@fixture.needs_fuse
class Interrupted(Conversation):
    """A signal ends the wait for an outcome, not the request."""

    SCRIPT = """
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'signal\\n'))  # print may not be interrupted by itself
with open(sys.argv[1], 'w') as file:
    file.write('{"body": "only once"}')
"""

    def writer(self, reply):
        self.proxy.set_hanging('messages')
        writer = subprocess.Popen([sys.executable, '-c', self.SCRIPT, str(reply)], stdout=subprocess.PIPE)
        self.addCleanup(writer.stdout.close)
        self.addCleanup(writer.wait, fixture.COMMAND_LIMIT)
        self.eventually(self.proxy.hung, 'the request is under way')
        return writer

    def messages(self):
        return [fixture.fields(each)['body'] for each in self.api.all('messages')]

    def test_a_library_that_repeats_the_write_gets_the_outcome(self):
        writer = self.writer(self.top / 'threads' / self.thread() / 'reply')
        for _ in range(2):
            writer.send_signal(signal.SIGUSR1)
            self.assertEqual(writer.stdout.readline(), b'signal\n')
        self.proxy.set_hanging(None)
        self.assertEqual(writer.wait(fixture.COMMAND_LIMIT), 0)
        self.assertEqual(self.messages(), ['only once'])

    def test_who_ends_a_writer_and_writes_the_same_sends_it_once(self):
        for name, is_answered in (('before the answer', False), ('after it', True)):
            with self.subTest(name):
                reply, before = self.top / 'threads' / self.thread(name) / 'reply', len(self.messages())
                writer = self.writer(reply)
                writer.kill()
                writer.wait(fixture.COMMAND_LIMIT)
                if is_answered:
                    self.proxy.set_hanging(None)
                    self.eventually(lambda before=before: len(self.messages()) > before, 'it arrives')
                again = subprocess.Popen([sys.executable, '-c', self.SCRIPT, str(reply)])
                self.addCleanup(again.wait, fixture.COMMAND_LIMIT)
                time.sleep(0.5)
                self.proxy.set_hanging(None)
                self.assertEqual(again.wait(fixture.COMMAND_LIMIT), 0)
                self.assertEqual(len(self.messages()), before + 1)
                self.echo('{"body": "only once"}', reply)
                self.assertEqual(len(self.messages()), before + 2, 'that one was answered: this is another')


@fixture.needs_fuse
class OneKey(Conversation):
    """Each request has one Idempotency-Key, whatever is repeated."""

    def setUp(self):
        super().setUp()
        self.keys = []

        def note(method, path, headers, body, ask):
            if method == 'POST':
                self.keys.append(headers['Idempotency-Key'])

        self.proxy.raw = note

    def test_who_repeats_what_got_no_answer_sends_it_once(self):
        reply = self.top / 'threads' / self.thread() / 'reply'
        self.proxy.fate = lambda request: 'lose reply' if request.startswith('POST') else None
        with self.assertRaises(OSError):
            self.echo('{"body": "hello"}', reply)
        self.proxy.fate = lambda request: None
        self.eventually(lambda: self.echo('{"body": "hello"}', reply), 'the service is back')
        self.assertEqual([message['body'] for message in self.api.all('messages')], ['hello'])
        self.assertEqual(len(set(self.keys)), 1)
        self.echo('{"body": "hello"}', reply)
        self.assertEqual(len(set(self.keys)), 2, 'that one had its answer; this is another')

    def test_a_crash_repeats_nothing_and_loses_nothing(self):
        thread = self.thread()
        for name, place in (('before the service has it', 'hang'), ('after it', 'lose')):
            with self.subTest(name):
                before = len(self.api.all('messages'))
                self.keys.clear()
                if place == 'hang':
                    self.proxy.set_hanging('messages')
                else:
                    self.proxy.fate = lambda request: 'lose reply' if request.startswith('POST') else None
                writer = subprocess.Popen(['sh', '-c', f'echo \'{{"body": "{name}"}}\' > {self.top}/threads/{thread}/reply'],
                                          stderr=subprocess.DEVNULL)
                self.eventually(lambda: self.proxy.hung() if place == 'hang' else self.keys, 'the request is under way')
                self.ann.kill()
                writer.wait(fixture.COMMAND_LIMIT)
                journal = list((self.home / 'ann/state').rglob('=requests/*.json'))
                self.assertEqual(len(journal), 1)
                self.assertEqual(journal[0].stat().st_mode & 0o777, 0o600)
                self.proxy.set_hanging(None)
                self.proxy.fate = lambda request: None
                self.ann.end()
                self.ann = self.mount(self.proxy.url, options=self.options)
                self.top = self.ann.directory
                self.eventually(lambda: len(self.api.all('messages')) == before + 1, 'it arrives')
                self.eventually(lambda: 'request_resumed' in (self.top / '.playfs/events').read_text(), 'it is told')
                self.assertEqual(len(set(self.keys)), 1)
                self.assertEqual(list((self.home / 'ann/state').rglob('=requests/*.json')), [])
                self.assertEqual(len(self.api.all('messages')), before + 1)

    def crash(self, text, thread):
        """The mount dies while the text is under way."""
        self.proxy.set_hanging('messages')
        (self.top / 'threads' / thread / 'reply').write_text(text)
        self.eventually(self.proxy.hung, 'the request is under way')
        self.ann.kill()

    def again(self):
        self.ann.end()
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.top = self.ann.directory

    def test_what_a_crash_left_is_sent_when_the_service_is_back(self):
        self.crash('important', self.thread())
        self.proxy.away = True
        self.proxy.set_hanging(None)
        for _ in range(2):  # each mount tries
            self.again()
            self.tells('last unmount', 'sent again')
            self.ann.unmount()
        self.again()
        self.tells('last unmount', 'sent again')
        self.proxy.away = False
        self.eventually(lambda: len(self.api.all('messages')) == 1, 'it is sent')
        self.eventually(lambda: 'request_resumed' in (self.top / '.playfs/events').read_text(), 'it is told')

    def test_who_repeats_what_a_crash_left_repeats_its_key(self):
        for name, back in (('before it is sent again', False), ('after it', True)):
            with self.subTest(name):
                thread, before = self.thread(name), len(self.api.all('messages'))
                self.crash(name, thread)
                self.proxy.away = not back
                self.proxy.set_hanging(None)
                self.again()
                told = 'events' if back else 'errors.ndjson'
                self.eventually(lambda: (self.top / '.playfs' / told).read_text(), 'the next mount has tried')
                self.proxy.away = False
                self.eventually(lambda: self.echo(name, self.top / 'threads' / thread / 'reply').get('id'), 'it arrives')
                self.eventually(lambda: not list((self.home / 'ann/state').rglob('=requests/*.json')), 'nothing is left')
                self.assertEqual(len(self.api.all('messages')), before + 1)
                self.echo(name, self.top / 'threads' / thread / 'reply')
                self.assertEqual(len(self.api.all('messages')), before + 2, 'that one was answered: this is another')

    def test_a_damaged_journal_is_told(self):
        self.crash('half of it', self.thread())
        (journal,) = (self.home / 'ann/state').rglob('=requests/*.json')
        journal.write_text(journal.read_text()[:-3])
        self.proxy.set_hanging(None)
        self.again()
        self.tells('its journal is damaged; what is left of it is in', '/unsent/damaged')
        (kept,) = (self.home / 'ann/state').rglob('=requests/unsent/damaged*')
        self.assertIn('half of it', kept.read_text())

    def test_a_changed_journal_is_not_sent(self):
        """Neither another text, nor the same under another key, which would make it twice."""
        for damage in ('text', 'key'):
            with self.subTest(damage):
                before = len(self.api.all('messages'))
                self.crash('We will pay 100 dollars', self.thread())
                (journal,) = (self.home / 'ann/state').rglob('=requests/*.json')
                text = journal.read_text()
                at = text.index('100') if damage == 'text' else text.index('"key":"') + len('"key":"')
                journal.write_text(text[:at] + ('9' if text[at] != '9' else '8') + text[at + 1:])
                doctor = self.playfs('doctor', check=False).stdout
                self.assertIn(str(journal), doctor)
                self.proxy.set_hanging(None)
                self.again()
                self.tells('its journal is damaged')
                self.assertEqual(list((self.home / 'ann/state').rglob('=requests/*.json')), [])
                self.eventually(lambda before=before: len(self.api.all('messages')) > before, 'the first try arrives')
                self.assertEqual(len(self.api.all('messages')), before + 1)
                self.assertNotIn('900', json.dumps(self.api.all('messages')))

    def test_who_repeats_through_another_mount_repeats_its_key(self):
        reply = pathlib.Path('threads') / self.thread() / 'reply'
        other = self.mount(self.proxy.url, options=self.options).directory
        for text in 'plain', '{"body": "as JSON"}':
            with self.subTest(text):
                before = len(self.api.all('messages'))
                self.proxy.fate = lambda request: 'lose reply' if request.startswith('POST') else None
                try:
                    (self.top / reply).write_text(text)
                except OSError as problem:
                    self.assertEqual(problem.errno, errno.EHOSTUNREACH)
                self.assertIn('error', json.loads((self.top / reply).read_text()))
                self.proxy.fate = lambda request: None
                self.eventually(lambda text=text: self.echo(text, other / reply).get('id'), 'the service is back')
                self.assertEqual(len(self.api.all('messages')), before + 1)
                self.eventually(lambda: not list((self.home / 'ann/state').rglob('=requests/*.json')), 'all is settled')
        self.echo('{"body": "as JSON"}', self.top / reply)
        self.assertEqual(len(self.api.all('messages')), 3, 'that one was answered: this is another')

    def test_a_mount_leaves_another_ones_requests_alone(self):
        self.proxy.set_hanging('messages')
        reply = self.top / 'threads' / self.thread() / 'reply'
        writer = subprocess.Popen(['sh', '-c', f'echo \'{{"body": "slow"}}\' > {reply}'])
        self.addCleanup(writer.wait, fixture.COMMAND_LIMIT)
        self.eventually(self.proxy.hung, 'the request is under way')
        other = self.mount(self.proxy.url, options=self.options)
        self.assertEqual((other.directory / '.playfs/events').read_text(), '')
        self.proxy.set_hanging(None)
        writer.wait(fixture.COMMAND_LIMIT)
        self.assertEqual(writer.returncode, 0)
        self.assertEqual(len(set(self.keys)), 1)
        self.assertNotIn('request_resumed', (other.directory / '.playfs/events').read_text())
        other.process.send_signal(signal.SIGTERM)


@fixture.needs_fuse
class Records(Conversation):
    """Records that anybody may change are changed by writing JSON to their files."""

    def shell(self, script, **options):
        return self.command('sh', '-c', script, cwd=self.top, **options)

    def test_what_is_written_is_changed_and_shown_at_once_and_the_rest_is_kept(self):
        ada = self.api.create('agents', handle='ada', about='old', mood='calm')['id']
        space = self.api.create('spaces', name='workshop')['id']
        project = self.api.create('projects', name='p')['id']
        thread = self.thread()
        message = self.message(thread, 'tpyo')
        places = {'agents/ada.json': ('agents', ada, 'about'), f'spaces/{space}.json': ('spaces', space, 'name'),
                  f'threads/{thread}/thread.json': ('threads', thread, 'title'),
                  f'threads/{thread}/messages/{message}.json': ('messages', message, 'body'),
                  f'projects/{project}/project.json': ('projects', project, 'name')}
        for path, (collection, record, field) in places.items():
            with self.subTest(path):
                file = self.top / path
                before = json.loads(file.read_text())
                old = file.stat()
                self.assertEqual(old.st_mode & 0o777, 0o644)
                self.shell(f'echo \'{{"{field}": "new"}}\' > {path}')
                now = self.api.get(collection, record)
                self.assertEqual(now, {**before, field: 'new', 'updated_at': now['updated_at']})
                self.assertEqual(json.loads(file.read_text()), now)
                self.assertGreaterEqual(file.stat().st_mtime, old.st_mtime)
                self.assertEqual(file.stat().st_size, len(file.read_bytes()))
        self.assertTrue((self.top / 'projects/by-name/new').exists())

    def test_ways_to_write(self):
        self.api.create('agents', handle='ada', about='old', mood='calm')
        path, copy = self.top / 'agents/ada.json', self.home / 'copy.json'
        ways = {'a copy and back': f'sed s/old/new/ {path} > {copy}; cp {copy} {path}',
                'tee': f'sed s/old/new/ {path} > {copy}; tee {path} < {copy} > {copy}.2',
                'dd, in small pieces': f'sed s/old/new/ {path} > {copy}; dd if={copy} of={path} bs=7 status=none',
                'vim': f"vim -es -u NONE -i NONE -c %s/old/new/ -c wq! {path}"}
        for way, script in ways.items():
            with self.subTest(way):
                if way == 'vim' and not shutil.which('vim'):
                    self.skipTest('vim is missing')
                self.shell('echo \'{"about": "old"}\' > agents/ada.json')
                self.shell(script)
                shown = json.loads(path.read_text())
                self.assertEqual((shown['about'], shown['mood']), ('new', 'calm'))
                self.assertEqual(self.api.get('agents', shown['id'])['about'], 'new')

    def test_an_edited_copy_undoes_nothing_that_others_changed(self):
        ada = self.api.create('agents', handle='ada', about='old', mood='calm')['id']
        file = self.top / 'agents/ada.json'
        with open(file, 'r+', encoding='utf-8') as opened:
            text = opened.read()
            self.api.call('PATCH', f'/agents/{ada}', {'mood': 'glad'})
            opened.seek(0)
            opened.truncate()
            opened.write(text.replace('old', 'new'))
        self.assertEqual({name: self.api.get('agents', ada)[name] for name in ('about', 'mood')},
                         {'about': 'new', 'mood': 'glad'})

    def test_what_is_written_is_compared_with_what_the_service_has(self):
        ada = self.api.create('agents', handle='ada', about='old')['id']
        with open(self.top / 'agents/ada.json', 'r+', encoding='utf-8') as opened:
            opened.read()
            self.api.call('PATCH', f'/agents/{ada}', {'about': 'new'})
            opened.seek(0)
            opened.truncate()
            opened.write('{"about": "old"}')
        self.assertEqual(self.api.get('agents', ada)['about'], 'old')

    def test_a_copy_undoes_nothing_that_others_wrote_into_the_same_field(self):
        ada = self.api.create('agents', handle='ada', about='old')['id']
        opened = os.open(self.top / 'agents/ada.json', os.O_RDWR)
        self.addCleanup(os.close, opened)
        copy = os.read(opened, 1 << 20).replace(b'old', b'mine')
        self.api.call('PATCH', f'/agents/{ada}', {'about': 'theirs'})
        self.refused(errno.ESTALE, lambda: os.pwrite(opened, copy, 0))
        self.assertEqual(self.api.get('agents', ada)['about'], 'theirs')
        self.assertEqual(json.loads((self.top / 'agents/ada.json').read_text())['about'], 'theirs', 'to be read again')

    def test_an_edited_body_keeps_the_mentions_that_others_added(self):
        thread = self.thread()
        message = self.message(thread, 'hi @bob', mentions=['bob'])
        with open(self.top / f'threads/{thread}/messages/{message}.json', 'r+', encoding='utf-8') as opened:
            opened.read()
            self.api.call('PATCH', f'/messages/{message}', {'mentions': ['bob', 'dave']})
            opened.seek(0)
            opened.truncate()
            opened.write('{"body": "hello @eve @bob"}')
        self.assertEqual(set(self.api.get('messages', message)['mentions']), {'bob', 'dave', 'eve'})

    def test_a_copy_read_before_others_changed_the_record_is_refused(self):
        ada = self.api.create('agents', handle='ada', about='old', mood='calm')['id']
        file = self.top / 'agents/ada.json'
        copy = file.read_text().replace('old', 'new')
        self.shell('echo \'{"mood": "glad"}\' > agents/ada.json')
        self.refused(errno.ESTALE, lambda: file.write_text(copy))
        self.tells('agents/ada.json', 'has changed since it was read')
        file.write_text('{"about": "new"}')
        shown = self.api.get('agents', ada)
        self.assertEqual((shown['about'], shown['mood']), ('new', 'glad'))

    def test_a_change_can_be_taken_back_through_the_same_open_file(self):
        ada = self.api.create('agents', handle='ada', about='old')['id']
        with open(self.top / 'agents/ada.json', 'r+', encoding='utf-8') as opened:
            for about in ('new', 'old', 'new'):
                opened.seek(0)
                opened.truncate()
                opened.write(json.dumps({'about': about}))
                opened.flush()
                self.assertEqual(self.api.get('agents', ada)['about'], about)

    def test_two_who_have_the_record_open_do_not_mix_their_texts(self):
        ada = self.api.create('agents', handle='ada', about='old', mood='calm')['id']
        file = self.top / 'agents/ada.json'
        for way in 0, os.O_APPEND, os.O_TRUNC:
            with self.subTest(way):
                self.api.call('PATCH', f'/agents/{ada}', {'about': 'old', 'mood': 'calm'})
                one, other = os.open(file, os.O_RDWR | way), os.open(file, os.O_RDWR | way)
                os.write(one, b'{"about": "n')
                self.assertEqual(json.loads(file.read_text())['id'], ada)
                os.write(other, b'{"mood": "gl')
                os.truncate(file, 0)  # by the path: no text of those who have it open
                process = os.fork()
                if not process:
                    os.write(other, b'ad"}')  # one open file, though two processes have it
                    os._exit(0)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 0)
                self.assertEqual(self.api.get('agents', ada)['about'], 'old')
                os.write(one, b'ew"}')
                shown = self.api.get('agents', ada)
                self.assertEqual((shown['about'], shown['mood']), ('new', 'glad'))
                self.refused(errno.EINVAL, lambda opened=one: os.write(opened, b'{"mood": "sad"}'))
                os.close(one)
                os.close(other)
        self.tells('agents/ada.json', 'one open takes one request')

    def test_many_append_to_one_record(self):
        space = self.api.create('spaces', name='workshop')['id']
        script = f'for i in $(seq 20); do echo "{{\\"b$i\\": 1}}" >> spaces/{space}.json & all="$all $!"; done; for one in $all; do wait $one || exit 1; done'
        self.command('bash', '-c', script, cwd=self.top)
        self.assertEqual([f'b{i}' for i in range(1, 21) if f'b{i}' not in self.api.get('spaces', space)], [])

    def test_an_editor_may_set_the_mode_that_a_record_has(self):
        self.api.create('agents', handle='ada')
        file = self.top / 'agents/ada.json'
        file.chmod(0o644)
        with self.assertRaises(OSError):
            os.setxattr(file, 'user.other', b'x')
        self.assertEqual([line for line in (self.top / '.playfs/errors.ndjson').read_text().splitlines() if 'ada' in line], [])
        self.refused(errno.EPERM, lambda: file.chmod(0o600))
        self.tells('agents/ada.json', 'generated by playfs')

    def test_a_change_is_not_repeated_when_its_answer_is_lost(self):
        ada = self.api.create('agents', handle='ada', about='old')['id']
        file = self.top / 'agents/ada.json'
        file.read_text()
        sent = []

        def fate(request):
            if request.startswith('PATCH'):
                sent.append(request)
                return 'lose reply'
            return None
        self.proxy.fate = fate
        self.refused(errno.EHOSTUNREACH, lambda: file.write_text('{"about": "new"}'))  # which writes again at its close
        self.assertEqual((len(sent), self.api.get('agents', ada)['about']), (1, 'new'))

    def test_a_change_that_nobody_knows_of_can_be_taken_back_through_the_same_open_file(self):
        ada = self.api.create('agents', handle='ada', about='old')['id']
        opened = os.open(self.top / 'agents/ada.json', os.O_RDWR)
        self.addCleanup(os.close, opened)
        self.proxy.fate = lambda request: 'lose reply' if request.startswith('PATCH') else None
        self.refused(errno.EHOSTUNREACH, lambda: os.write(opened, b'{"about": "new"}'))
        self.proxy.fate = lambda request: None
        os.pwrite(opened, b'{"about": "old"}', 0)
        self.assertEqual(self.api.get('agents', ada)['about'], 'old')

    def test_nothing_changed_sends_nothing(self):
        self.api.create('agents', handle='ada', about='old')
        file = self.top / 'agents/ada.json'
        text = file.read_text()
        with self.proxy.counting() as count:
            file.write_text(text)
            file.write_text('{"id": "x", "created_at": "y", "updated_at": 7, "status": "z", "handle": "ada"}')
        self.assertEqual([line for line in count.requests if line.startswith('PATCH')], [])

    def test_what_is_no_change_is_refused_and_changes_nothing(self):
        ada = self.api.create('agents', handle='ada', about='old')
        project = self.api.create('projects', name='p')['id']
        file = self.top / 'agents/ada.json'
        for text in ('not json', '{"about": nonsense}', '["about"]', '{"about": "x"} {"about": "y"}'):
            self.refused(errno.EINVAL, lambda text=text: file.write_text(text))
            self.assertEqual(json.loads(file.read_text()), ada)
        self.shell(f'printf \'{{"about": \' > {file}')  # closed before it is complete
        self.tells('agents/ada.json', 'incomplete')
        self.assertEqual(json.loads(file.read_text()), ada)
        self.refused(errno.EINVAL, lambda: (self.top / f'projects/{project}/project.json').write_text(
            '{"latest_revision": "elsewhere"}'))
        self.tells('project.json', 'moved by commits')
        self.assertEqual(self.api.get('agents', ada['id'])['about'], 'old')

    def test_a_record_s_file_takes_no_dry_run(self):
        ada = self.api.create('agents', handle='ada', about='old')
        thread = self.thread()
        message = self.message(thread, 'old')
        with self.proxy.counting() as count:
            for path, field in (('agents/ada.json', 'about'), (f'threads/{thread}/thread.json', 'title'),
                                (f'threads/{thread}/messages/{message}.json', 'body')):
                for dry in (True, 'yes', None):
                    text = json.dumps({field: 'new', 'dry_run': dry})
                    self.refused(errno.EINVAL, lambda path=path, text=text: (self.top / path).write_text(text))
        self.assertEqual([line for line in count.requests if line.startswith('PATCH')], [])
        self.tells('agents/ada.json', 'takes no', 'leave it out')
        (self.top / 'agents/ada.json').write_text('{"about": "new", "dry_run": false}')
        now = self.api.get('agents', ada['id'])
        self.assertEqual(now, {**ada, 'about': 'new', 'updated_at': now['updated_at']})

    def test_the_mentions_of_an_edited_message_follow_its_text(self):
        thread = self.thread()
        message = self.message(thread, 'for @bob', mentions=['bob', 'eve'])
        file = self.top / f'threads/{thread}/messages/{message}.json'
        copy = self.home / 'copy.json'
        edit = ('python3 -c \'import json, sys; record = json.load(open(sys.argv[1])); '
                'print(json.dumps(record | {"body": "@ada, too", "mentions": []}))\'')
        for change, mentions in (
                ('echo \'{"body": "please look @carl"}\' >', ['carl', 'eve']),  # eve was mentioned besides the text
                (f'sed s/carl/dora/ {file} > {copy}; cat {copy} >', ['dora', 'eve']),
                ('echo \'{"body": "@ada", "mentions": "bob"}\' >', ['bob']),
                ('echo \'{"body": "@ada again", "mentions": ["bob"]}\' >', ['bob']),
                (f'{edit} {file} > {copy}; cat {copy} >', []),
                ('echo \'{"links": "https://example.org/"}\' >', [])):
            with self.subTest(change):
                self.shell(f'{change} {file}')
                self.assertEqual(self.api.get('messages', message)['mentions'], mentions)
        self.assertEqual(self.api.get('messages', message)['links'], ['https://example.org/'])

    def test_messages_threads_and_mail_keep_their_form(self):
        thread, other = self.thread(), self.thread('Other')
        message, elsewhere = self.message(thread, 'old'), self.message(other, 'elsewhere')
        mail = self.api.create('domain_mail', agent='ann', kind='question', subject='s', body='b')['id']
        before = [self.api.all(collection) for collection in ('threads', 'messages', 'domain_mail')]
        of_message, of_thread, of_mail = (f'threads/{thread}/messages/{message}.json', f'threads/{thread}/thread.json',
                                          f'mail/{mail}.json')
        for path, change, why in (
                (of_message, {'bodi': 'x'}, 'no field'), (of_message, {'body': None}, 'must be a text'),
                (of_message, {'body': ['x']}, 'must be a text'), (of_message, {'agent': None}, 'must be a text'),
                (of_message, {'mentions': [1]}, 'list of texts'), (of_message, {'links': None}, 'list of texts'),
                (of_message, {'thread': other}, 'stays in its thread'),
                (of_message, {'thread': None}, 'stays in its thread'),
                (of_message, {'parent': elsewhere}, 'must be a message of this thread'),
                (of_thread, {'titel': 'x'}, 'no field'), (of_thread, {'title': None}, 'must be a text'),
                (of_thread, {'body': 'x'}, 'no field'), (of_mail, {'subjekt': 'x'}, 'no field'),
                (of_mail, {'body': None}, 'must be a text')):
            with self.subTest(path=path, change=change):
                self.refused(errno.EINVAL, lambda path=path, change=change: (self.top / path).write_text(json.dumps(change)))
                self.tells(path, why)
        self.assertEqual([self.api.all(collection) for collection in ('threads', 'messages', 'domain_mail')], before)
        # What another client has given them may be changed, and so may what agents and spaces have.
        odd = self.message(thread, 'old', mood='calm')
        self.shell(f'echo \'{{"mood": "glad", "thread": "{thread}"}}\' > threads/{thread}/messages/{odd}.json')
        self.assertEqual(self.api.get('messages', odd)['mood'], 'glad')
        second = self.message(thread, 'second')
        self.shell(f'echo \'{{"parent": "{message}"}}\' > threads/{thread}/messages/{second}.json')
        self.assertEqual(self.api.get('messages', second)['parent'], message)

    def test_what_the_service_refuses_has_its_errno(self):
        self.api.create('agents', handle='ada', about='old')
        for status, code, number in ((403, 'forbidden', errno.EACCES), (429, 'rate_limited', errno.EAGAIN)):
            answer = (status, json.dumps({'error': 'no', 'code': code, 'message': 'no', 'retry_after': 3600}))
            self.proxy.fate = lambda request, answer=answer: answer if request.startswith('PATCH') else None
            self.refused(number, lambda: (self.top / 'agents/ada.json').write_text('{"about": "new"}'))
            self.assertEqual(json.loads((self.top / 'agents/ada.json').read_text())['about'], 'old')

    def test_tools_that_replace_files_are_told_what_to_do(self):
        self.api.create('agents', handle='ada', about='old')
        for script in ('sed -i s/old/new/ agents/ada.json', 'mv agents/ada.json agents/eve.json', 'rm -f agents/ada.json',
                       'touch agents/eve.json'):
            self.assertTrue(self.shell(script, check=False).returncode, script)
        self.tells('agents/', 'write JSON with the fields to change')
        self.assertEqual(json.loads((self.top / 'agents/ada.json').read_text())['about'], 'old')

    def test_what_only_its_owner_changes_says_so(self):
        mail = self.api.create('domain_mail', agent='ann', kind='question', subject='s', body='b')['id']
        self.refused(errno.EACCES, lambda: (self.top / f'mail/{mail}.json').write_text('{"subject": "t"}'))
        self.tells(f'mail/{mail}.json', 'only the owner', 'playfs login')

    def test_a_change_without_an_answer_says_what_to_do(self):
        self.api.create('agents', handle='ada', about='old')
        for fate, number, parts in (
                ('lose reply', errno.EHOSTUNREACH, ('may have arrived', 'read the file')),
                ((429, json.dumps({'error': 'no', 'code': 'rate_limited', 'retry_after': 3600})), errno.EAGAIN,
                 ('write the change again', '"retry_after_s": 3600'))):
            self.proxy.fate = lambda request, fate=fate: fate if request.startswith('PATCH') else None
            text = json.dumps({'about': os.strerror(number)})
            self.refused(number, lambda text=text: (self.top / 'agents/ada.json').write_text(text))
            self.tells('agents/ada.json', *parts)

    def test_a_slow_writer_keeps_nobody_from_the_record(self):
        ada = self.api.create('agents', handle='ada', about='old')
        file = self.top / 'agents/ada.json'
        with open(file, 'w', encoding='utf-8') as slow:
            slow.write('{"about": ')
            slow.flush()
            self.eventually(lambda: file.read_text() and json.loads(file.read_text()) == ada, 'others see the record')
            file.write_text('{"mood": "glad"}')
            slow.write('"new"}')
        shown = json.loads(file.read_text())
        self.assertEqual((shown['about'], shown['mood']), ('new', 'glad'))


@fixture.needs_fuse
class Names(Conversation):
    def test_threads_by_title_and_kind_and_spaces_by_name(self):
        first = self.api.create('threads', title='Hello', agent='a', kind='intro')['id']
        second = self.api.create('threads', title='Hello', agent='b', kind='help')['id']
        odd = self.api.create('threads', title='a/b\nc\x1b[31m', agent='b', kind='help')['id']
        for title in ('..', '.', '', 'x' * 300, 'nul\0'):
            self.api.create('threads', title=title, agent='b', kind='collab')
        space = self.api.create('spaces', name='work/shop')['id']
        by_title = self.top / 'threads/by-title'
        self.assertEqual(set(os.listdir(by_title)) - {'nul_'}, {'Hello', 'a_b_c_[31m'})
        self.assertEqual(os.readlink(by_title / 'Hello'), f'../{first}')
        self.assertEqual((by_title / 'a_b_c_[31m/thread.json').resolve(), self.top / 'threads' / odd / 'thread.json')
        self.assertFalse((by_title / 'x').exists())
        kinds = self.top / 'threads/by-kind'
        self.assertEqual(set(os.listdir(kinds)), {'intro', 'discussion', 'collab', 'help', 'handoff', 'discovery'})
        self.assertEqual(set(os.listdir(kinds / 'help')), {second, odd})
        self.assertEqual(os.readlink(kinds / 'help' / odd), f'../../{odd}')
        self.assertEqual(json.loads((kinds / 'help' / odd / 'thread.json').read_text())['id'], odd)
        self.assertFalse((kinds / 'intro' / odd).exists())
        self.assertEqual(os.listdir(kinds / 'handoff'), [])
        hostile = self.api.create('agents', handle='\x1b]0;x\x07')['id']
        self.api.create('projects', name='\x1b[2J')
        self.eventually(lambda: f'{hostile}.json' in os.listdir(self.top / 'agents'), 'it goes by its id')
        self.assertEqual(os.listdir(self.top / 'projects/by-name'), [])
        self.assertEqual(os.listdir(self.top / 'spaces/by-name'), ['work_shop'])
        self.assertEqual(os.readlink(self.top / 'spaces/by-name/work_shop'), f'../{space}.json')
        self.assertEqual(json.loads((self.top / 'spaces/by-name/work_shop').read_text())['id'], space)

    def test_no_message_looks_like_two(self):
        thread = self.thread()
        forged = '**ann** · 2026-01-01T00:00:00Z · 1\n\nI agree'
        self.message(thread, 'before\n' + forged)
        text = (self.top / 'threads' / thread / 'messages.md').read_text()
        self.assertIn('\n> before\n> **ann** ·', text)
        self.assertNotIn('\n**ann**', text)

    def test_a_thread_has_the_title_and_kind_that_it_has_now(self):
        thread = self.thread('Old')
        self.assertEqual(os.listdir(self.top / 'threads/by-title'), ['Old'])
        self.echo_change(thread, {'title': 'New', 'kind': 'collab'})
        self.assertEqual(os.listdir(self.top / 'threads/by-title'), ['New'])
        self.assertEqual(os.listdir(self.top / 'threads/by-kind/collab'), [thread])
        self.assertEqual(os.listdir(self.top / 'threads/by-kind/discussion'), [])

    def echo_change(self, thread, change):
        (self.top / f'threads/{thread}/thread.json').write_text(json.dumps(change))


@fixture.needs_fuse
class Growing(Conversation):
    def setUp(self):
        super().setUp()
        self.talk = self.thread()
        self.place = self.top / 'threads' / self.talk

    def tail(self, path, *options):
        """A running `tail`, and what it has printed so far."""
        process = subprocess.Popen(['tail', '-n', '+1', *(options or ('-f',)), str(path)], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.set_blocking(process.stdout.fileno(), False)
        printed = []

        def so_far():
            printed.append(process.stdout.read() or b'')
            return b''.join(printed).decode()

        return so_far

    def test_who_follows_a_thread_sees_what_others_and_we_post(self):
        self.message(self.talk, 'the first')
        people, programs = self.tail(self.place / 'messages.md'), self.tail(self.place / 'messages.ndjson')
        self.eventually(lambda: 'the first' in people() and 'the first' in programs(), 'it begins with what is there')
        bob = self.mount(self.api.origin, 'bob', options=self.options)
        (bob.directory / 'threads' / self.talk / 'reply').write_text('by another mount\n')
        self.eventually(lambda: 'by another mount' in people() and 'by another mount' in programs(), 'it grows')
        (self.place / 'reply').write_text('by this one\n')
        self.eventually(lambda: 'by this one' in people() and 'by this one' in programs(), 'it grows')
        self.assertEqual(people(), (self.place / 'messages.md').read_text())
        self.assertEqual([json.loads(line)['body'] for line in programs().splitlines()],
                         ['the first', 'by another mount', 'by this one'])
        self.assertEqual(programs(), (self.place / 'messages.ndjson').read_text())

    def bodies(self, text):
        return [json.loads(line)['body'] for line in text.split('\n')[:-1]]

    def test_who_follows_a_thread_of_more_than_a_thousand_messages_goes_on(self):
        """Also over the steps in which older messages are left out for who begins to read."""
        written = [f'message {number}' for number in range(990)]
        for body in written:
            self.message(self.talk, body)
        people, programs = self.tail(self.place / 'messages.md'), self.tail(self.place / 'messages.ndjson')
        self.eventually(lambda: 'message 989' in people() and 'message 989' in programs(), 'it begins with what is there')
        numbers = [(self.place / name).stat().st_ino for name in ('messages.md', 'messages.ndjson')]
        for more in 5, 10, 1, 530, 20:  # over 1,001 and 1,501
            written += [f'message {number}' for number in range(len(written), len(written) + more)]
            for body in written[-more:]:
                self.message(self.talk, body)
            self.eventually(lambda: written[-1] in people() and written[-1] in programs(), f'it follows to {written[-1]}')
        self.echo('by this mount', self.place / 'reply')
        self.eventually(lambda: 'by this mount' in people() and 'by this mount' in programs(), 'it follows')
        self.assertEqual(self.bodies(programs()), [*written, 'by this mount'])
        self.assertEqual(people().count('\n> message '), len(written))
        self.assertEqual([(self.place / name).stat().st_ino for name in ('messages.md', 'messages.ndjson')], numbers)
        self.assertEqual(programs(), (self.place / 'messages.ndjson').read_text())
        # Who begins now gets the newest ones.
        bob = self.mount(self.api.origin, 'bob', options=self.options)
        shown = self.bodies((bob.directory / 'threads' / self.talk / 'messages.ndjson').read_text())
        self.assertEqual(shown, [*written, 'by this mount'][-len(shown):])
        self.assertLessEqual(len(shown), 1000)
        # A change of what was shown still makes a new file.
        message = json.loads(programs().split('\n')[-2])['id']
        time.sleep(1.2)
        self.api.call('PATCH', f'/messages/{message}', {'body': 'changed'})
        self.eventually(lambda: 'changed' in (self.place / 'messages.ndjson').read_text(), 'it is shown')
        self.assertNotEqual((self.place / 'messages.ndjson').stat().st_ino, numbers[1])

    def test_what_is_followed_takes_no_memory_for_what_was_read(self):
        self.message(self.talk, 'the first')
        people, programs = self.tail(self.place / 'messages.md'), self.tail(self.place / 'messages.ndjson')
        self.eventually(lambda: 'the first' in people() and 'the first' in programs(), 'it begins')
        written, large = ['the first'], 'x' * 14_000

        def grow(count):
            for _ in range(count):
                written.append(f'{len(written)} {large}')
                self.message(self.talk, written[-1])
                if len(written) % 20 == 0:
                    self.eventually(lambda: written[-1] in programs() and f'> {written[-1]}' in people(), 'it follows')

        grow(399)
        before = fixture.memory(self.ann.process)
        grow(600)
        self.assert_memory(fixture.memory(self.ann.process) - before, 40 << 20)
        self.assertEqual(self.bodies(programs()), written)
        # From the beginning, and not from the kernel's pages.
        file = os.open(self.place / 'messages.ndjson', os.O_RDONLY)
        self.addCleanup(os.close, file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        self.assertEqual(self.bodies((self.place / 'messages.ndjson').read_text()), written)

    def test_an_edited_message_makes_a_new_file(self):
        edited = self.message(self.talk, 'tpyo')
        self.message(self.talk, 'other')
        for name in ('messages.md', 'messages.ndjson'):
            (self.place / name).read_text()
        with open(self.place / 'messages.ndjson', encoding='utf-8') as old:
            before = old.read()
            number = os.fstat(old.fileno()).st_ino
            followed = self.tail(self.place / 'messages.ndjson', '-F')
            self.eventually(lambda: 'other' in followed(), 'tail has begun')
            time.sleep(1.2)  # a change within the second of its creation is no later change
            self.api.call('PATCH', f'/messages/{edited}', {'body': 'typo'})
            self.eventually(lambda: 'typo' in (self.place / 'messages.md').read_text(), 'people see it')
            lines = [json.loads(line) for line in (self.place / 'messages.ndjson').read_text().splitlines()]
            self.assertEqual([line['body'] for line in lines], ['typo', 'other', 'typo'])
            self.assertNotEqual((self.place / 'messages.ndjson').stat().st_ino, number)
            self.eventually(lambda: followed().count('typo') == 2, 'tail -F goes on with the new file')
            old.seek(0)
            self.assertEqual(old.read(), before)

    def test_who_talks_at_the_same_time_as_others_keeps_following(self):
        self.message(self.talk, 'first')
        live = self.mount(self.api.origin, 'live', options=('refresh=10',))
        for place in (self.place, live.directory / 'threads' / self.talk):
            with self.subTest(place):
                file, bodies = place / 'messages.ndjson', []
                followed = self.tail(file)
                self.eventually(lambda followed=followed: 'first' in followed(), 'tail has begun')
                for number in range(4):
                    for body in (f'bob {number} {place}', f'ann {number} {place}'):
                        if body.startswith('bob'):
                            self.message(self.talk, body)
                        else:
                            self.echo(body, place / 'reply')
                        bodies.append(body)
                    self.assertIn(bodies[-1], file.read_text())
                self.eventually(lambda followed=followed, last=bodies[-1]: last in followed(), 'it follows')
                self.assertEqual([json.loads(line)['body'] for line in followed().splitlines()][-8:], bodies)

    def test_what_its_author_has_removed_is_not_shown_again(self):
        self.message(self.talk, 'the first')
        message = self.message(self.talk, 'keep this\n\na password')
        file = self.place / 'messages.md'
        with open(file, encoding='utf-8') as old:
            self.assertIn('a password', old.read())
            self.api.call('PATCH', f'/messages/{message}', {'body': 'keep this'})
            self.eventually(lambda: 'a password' not in file.read_text(), 'it is gone')
        self.echo('{"body": "one\\ntwo"}', self.place / 'reply')
        self.assertIn('two', file.read_text())
        with open(file, encoding='utf-8') as old:
            own = json.loads((self.place / 'messages.ndjson').read_text().splitlines()[-1])['id']
            (self.place / f'messages/{own}.json').write_text('{"body": "one"}')
            self.assertNotIn('two', file.read_text())

    def test_hostile_bodies_stay_lines(self):
        for body in ('a\nb\n{"id": 1}', '\x1b[2J', '\u202e', 'x' * 14_000, '\u2028'):
            self.message(self.talk, body)
        text = (self.place / 'messages.ndjson').read_text()
        self.assertNotIn('\x1b', text)
        self.assertNotIn('\u202e', text)
        self.assertEqual(len(text.splitlines() if '\u2028' not in text else text.split('\n')[:-1]), 5)
        self.assertEqual(json.loads(text.split('\n')[0])['body'], 'a\nb\n{"id": 1}')

    def test_a_thread_costs_what_is_new_in_it(self):
        for number in range(150):
            self.message(self.talk, f'message {number}')
        for number in range(5):
            other = self.thread(f'other {number}')
            for each in range(30):
                self.message(other, f'elsewhere {each}')
        figures = {}

        def read(name):
            with self.proxy.counting() as count:
                text = (self.place / 'messages.ndjson').read_text()
            figures[name] = len(count.requests)
            self.assertEqual(len(text.splitlines()), 150)
            return [line for line in count.requests if '?' not in line and '/messages/' in line]

        self.assertEqual(read('cold'), [], 'the texts came with the list')
        self.assertLessEqual(figures['cold'], 3 + 1 + 2)  # pages of 100, perhaps an empty one, and twice the thread
        read('again')
        self.assertLessEqual(figures['again'], 3)
        for number in range(10):
            self.message(other, f'new {number}')
        self.assertEqual(read('after 10 new ones elsewhere'), [])
        self.assertLessEqual(figures['after 10 new ones elsewhere'], 3)
        self.ann.unmount()
        self.ann = self.mount(self.proxy.url, options=self.options)
        self.place = self.ann.directory / 'threads' / self.talk
        self.assertEqual(read('after a remount'), [])
        self.assertLessEqual(figures['after a remount'], 3)
        print(json.dumps(figures), flush=True)


if __name__ == '__main__':
    fixture.main()
