#!/usr/bin/env python3
"""Agents talk by commands alone: threads, messages, mail, agents and spaces of a real service, and what strangers put
into them."""
import fcntl
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time

import fixture
import proxy

DONE, FAILED, USAGE, PENDING, NOT_FOUND, FORBIDDEN, UNREACHABLE = 0, 1, 2, 4, 5, 6, 7
# Escape sequences, a C1 control, bidirectional controls, what is invisible, and a line that looks like another's.
HOSTILE = 'x\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\u2066\u200b\x00\r\nbob · 2026'
RAW = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]')


class Conversation(fixture.Fixture):
    limits = None

    def setUp(self):
        super().setUp()
        self.api = self.serve(self.limits)

    def run_command(self, *words, code=DONE, who='ada', text_in=None, site=True, cwd='/'):
        done = subprocess.run([self.playfs_path, *map(str, words), *(['--site', self.api.origin] if site else [])],
                              env=self.environment(who), timeout=fixture.COMMAND_LIMIT, text=True, cwd=cwd,
                              input='' if text_in is None else text_in, capture_output=True)
        self.assertEqual(done.returncode, code, f'{words}\n{done.stdout}{done.stderr}')
        return done

    def json(self, *words, **options):
        document = json.loads(self.run_command(*words, '--json', **options).stdout)
        self.assertEqual(document['schema_version'], 1)
        return document

    def thread(self, title='Parsers', **fields):
        return self.api.create('threads', title=title, agent='eve', kind='discussion', **fields)['id']

    def message(self, thread, body, **fields):
        return self.api.create('messages', thread=thread, agent='eve', body=body, **fields)['id']


class Talk(Conversation):
    def test_two_agents_talk(self):
        self.run_command('agent', 'register', 'ada', '--set', 'about=parsers', 'tools=["c++"]')
        self.run_command('agent', 'register', 'bob', who='bob')
        begun = self.json('thread', 'new', 'Which parser?', '--kind', 'collab', '-m', 'Ideas, @bob?')
        thread, first = begun['thread']['id'], begun['message']
        self.assertEqual((first['thread'], first['agent'], first['mentions']), (thread, 'ada', ['bob']))
        self.assertEqual(begun['thread']['kind'], 'collab')

        answer = self.json('post', 'Which parser?', '--reply-to', first['id'], '--mention', 'eve',
                           '--link', 'https://example.org/peg', who='bob', text_in='PEG, see `@code`.\n\n')['message']
        self.assertEqual((answer['parent'], answer['body']), (first['id'], 'PEG, see `@code`.'))
        self.assertEqual((answer['mentions'], answer['links']), (['eve'], ['https://example.org/peg']))
        later = self.run_command('post', thread, '-m', 'Something else').stdout.strip()

        shown = self.run_command('thread', 'show', thread).stdout
        self.assertRegex(shown, r'(?s)^Which parser\?\nthread \S+ · collab · by ada · .*'
                                r'\nada · \S+ · \S+\n\| Ideas, @bob\?\n  mentions: @bob\n'
                                r'\n  bob · \S+ · \S+\n  \| PEG, see `@code`\.\n    mentions: @eve\n'
                                r'    links: https://example\.org/peg\n\nada · .*\n\| Something else\n')
        document = self.json('thread', 'show', thread)
        self.assertEqual([(each['depth'], each['message']['id']) for each in document['messages']],
                         [(0, first['id']), (1, answer['id']), (0, later)])

        listed = self.json('thread', 'list', '--kind', 'collab')
        self.assertEqual([each['title'] for each in listed['threads']], ['Which parser?'])
        self.assertEqual(self.json('thread', 'list', '--kind', 'intro')['threads'], [])

        # A correction is the author's; mentions given beside the old text stay.
        self.run_command('post', thread, '--edit', answer['id'], '-m', 'LALR, @dan', code=FORBIDDEN)
        self.run_command('post', thread, '--edit', answer['id'], '-m', 'LALR, @dan', who='bob')
        changed = self.api.get('messages', answer['id'])
        self.assertEqual((changed['body'], changed['mentions'], changed['parent']), ('LALR, @dan', ['dan', 'eve'], first['id']))
        self.assertIn('· edited', self.run_command('thread', 'show', thread).stdout)

    def test_a_handle_is_registered_once(self):
        record = self.json('agent', 'register', 'ada', '--set', 'about=parsers')['agent']
        again = self.run_command('agent', 'register', 'ada', code=FAILED)
        self.assertIn(record['id'], again.stderr)
        self.assertIn('agent set', again.stderr)
        self.assertEqual(len(self.api.all('agents')), 1)
        for bad in ('a b', '', 'x\x1b[2J', 'a@b'):
            self.run_command('agent', 'register', bad, code=USAGE)

        self.run_command('agent', 'set', 'open=true', 'about=not {json', 'n=3', 'none=null')
        agent = self.api.get('agents', record['id'])
        self.assertEqual((agent['open'], agent['about'], agent['n']), (True, 'not {json', 3))
        self.assertIn('about: not {json', self.run_command('agent', 'show').stdout)
        self.run_command('agent', 'set', 'id=other', code=USAGE)
        self.run_command('agent', 'set', 'about=x', who='nobody', code=NOT_FOUND)
        self.run_command('agent', 'show', 'nobody', code=NOT_FOUND)
        self.run_command('agent', 'register', 'bob', who='bob')
        self.run_command('agent', 'set', 'handle=ada', who='bob', code=FAILED)

        # Another client does not check: who had the handle first has it.
        self.api.create('agents', handle='ada')
        self.assertEqual(self.json('agent', 'show', 'ada')['agent']['id'], record['id'])
        self.assertIn('1 other records claim', self.run_command('agent', 'show', 'ada').stderr)
        self.assertEqual([each['handle'] for each in self.json('agent', 'list')['agents']], ['ada', 'bob', 'ada'])

    def test_mail_and_the_answer(self):
        sent = self.json('mail', 'send', '--kind', 'question', '--subject', 'Limits', text_in='May I\nsend more?\n')['mail']
        self.assertEqual((sent['subject'], sent['body'], sent['agent']), ('Limits', 'May I\nsend more?', 'ada'))
        self.assertRegex(self.run_command('mail', 'list').stdout, rf"^{sent['id']}  \S+  question  \S+  ada  Limits\n$")
        shown = self.run_command('mail', 'show', sent['id']).stdout
        self.assertIn('| May I\n| send more?\n', shown)
        self.run_command('mail', 'show', 'nothing', code=NOT_FOUND)
        self.run_command('mail', 'send', '--kind', 'love', '--subject', 'x', '-m', 'y', code=USAGE)

    def test_spaces(self):
        space = self.json('space', 'new', 'workshop', '--set', 'size={"x": 3}')['space']
        self.run_command('space', 'set', 'workshop', 'open=true', who='bob')
        self.assertEqual(self.api.get('spaces', space['id'])['open'], True)
        self.run_command('space', 'new', 'workshop')
        again = self.run_command('space', 'show', 'workshop')
        self.assertIn('size: {"x":3}', again.stdout)
        self.assertIn('2 spaces are called', again.stderr)
        self.assertEqual(len(self.json('space', 'list')['spaces']), 2)

    def test_what_is_refused_before_it_is_sent(self):
        thread = self.thread()
        elsewhere = self.message(self.thread('Other'), 'there')
        self.run_command('post', thread, '--reply-to', elsewhere, '-m', 'x', code=USAGE)
        self.run_command('post', thread, '--reply-to', 'nothing', '-m', 'x', code=NOT_FOUND)
        self.run_command('post', 'No such title', '-m', 'x', code=NOT_FOUND)
        for text in ('', ' \n\n'):
            empty = self.run_command('post', thread, text_in=text, code=FAILED)
            self.assertIn('nothing was sent', empty.stderr)
        self.run_command('post', thread, '-m', '', code=FAILED)
        long = self.run_command('post', thread, text_in='y' * 16384, code=FAILED)
        self.assertRegex(long.stderr, r"'body' is too long.*16384")
        self.run_command('thread', 'new', 'Long', '-m', 'y' * 16384, code=FAILED)
        self.run_command('thread', 'new', ' ', code=USAGE)
        self.run_command('thread', 'new', 'x', '--kind', 'none', code=USAGE)
        self.run_command('thread', code=USAGE)
        would = self.json('post', thread, '-m', 'Hi @bob', '--dry-run')
        self.assertEqual((would['dry_run'], would['body']['mentions']), (True, ['bob']))
        self.run_command('thread', 'new', 'T', '-m', 'x', '--dry-run')
        self.run_command('mail', 'send', '--kind', 'idea', '--subject', 's', '-m', 'x', '--dry-run')
        self.assertEqual(len(self.api.all('messages')), 1)
        self.assertEqual(len(self.api.all('threads')), 2)
        self.assertEqual(self.api.all('domain_mail'), [])
        # The largest body that is let through fits.
        self.run_command('post', thread, text_in='y' * 15400)

    def test_hints_are_for_the_same_site(self):
        for words in (('thread', 'show'), ('space', 'show'), ('mail', 'show'), ('agent', 'show'), ('cat',), ('ls',)):
            done = self.run_command(*words, 'none', *(['file'] if words == ('cat',) else []), code=NOT_FOUND)
            self.assertRegex(done.stderr, rf"(?s)no .*'none'.*Try: playfs .* --site {self.api.origin}")
        for what in 'thread', 'space', 'mail', 'agent':
            self.assertRegex(self.run_command(what, 'list').stderr, rf'Try: playfs {what} .* --site {self.api.origin}')

    def test_a_title_names_its_oldest_thread(self):
        first = self.thread('Same')
        self.thread('Same')
        posted = self.run_command('post', 'Same', '-m', 'x')
        self.assertIn('2 threads are called', posted.stderr)
        self.assertEqual([each['thread'] for each in map(fixture.fields, self.api.all('messages'))], [first])

    def test_when_nobody_answers(self):
        nobody = f'http://127.0.0.1:{fixture.free_port()}'
        done = self.run_command('thread', 'list', '--site', nobody, site=False, code=UNREACHABLE)
        self.assertIn('retry', done.stderr)

    def test_the_site_of_the_tree_around(self):
        (self.home / 'tree').mkdir()
        (self.home / 'tree/file').write_text('x')
        self.run_command('import', self.home / 'tree', '--name', 'tree')
        self.run_command('export', 'tree', self.home / 'copy')
        thread = self.thread('Here')
        self.assertIn(thread, self.run_command('thread', 'list', site=False, cwd=self.home / 'copy').stdout)
        done = self.run_command('post', 'Here', '-m', 'x', site=False, cwd=self.home / 'copy')
        self.assertNotIn('--site', done.stderr)

    def test_follow(self):
        thread = self.thread()
        old = self.message(thread, 'before')
        process = subprocess.Popen([self.playfs_path, 'thread', 'show', thread, '--follow', '--json', '--site',
                                    self.api.origin], env=self.environment('ada'), text=True, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(json.loads(process.stdout.readline())['id'], old)
        self.message(self.thread('Other'), 'elsewhere')
        new = [self.message(thread, f'after {i}', parent=old) for i in range(2)]
        self.assertEqual([json.loads(process.stdout.readline())['id'] for _ in new], new)

    def test_text_typed_on_a_terminal(self):
        """Whoever has no editor is told what is awaited and how to end it."""
        thread = self.thread()
        for words, awaited in (('post', thread), 'text'), (('sendmail', '-t', '--dry-run'), 'mail'):
            code, shown = self.on_terminal(
                self.playfs_path, *words, '--site', self.api.origin, who='ada', until='Ctrl-D',
                variables={'VISUAL': '', 'EDITOR': ''}, answer=b'To: discussion\nSubject: S\n\nTyped.\n\x04')
            self.assertEqual(code, DONE, shown)
            self.assertRegex(shown, rf'(?s)^Type the {awaited}.*Ctrl-D.*Typed')
        self.assertIn('Typed.', self.api.all('messages')[0]['body'])

    def test_a_service_that_does_not_answer(self):
        """A terminal says what a command waits for and how long it still will; nothing else does."""
        with socket.create_server(('127.0.0.1', 0)) as silent:
            site = ('--site', f'http://127.0.0.1:{silent.getsockname()[1]}')
            for words, asked in ((('thread', 'list'), 'GET /.site/data/threads'),
                                 (('post', 'T', '-m', 'Hello'), 'GET /.site/data/threads'),
                                 (('login', 'ada@example.org'), 'the request for a code')):
                code, shown = self.on_terminal(self.playfs_path, *words, *site, who='ada', answer=b'\x03',
                                               until=r's left')
                waiting = rf'\rNo answer for \d+ s \(\d+ s left\): {re.escape(asked)}\S* at'
                self.assertRegex(shown, rf'^(Signing in at \S+\n)?{waiting}')
                self.assertEqual(code, -signal.SIGINT, shown)
            process = subprocess.Popen([self.playfs_path, 'thread', 'list', *site], env=self.environment('ada'),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.assertEqual(select.select([process.stdout, process.stderr], [], [], 4)[0], [], 'no terminal')

    def test_what_the_service_ignores(self):
        thread = self.thread()
        plain = self.run_command('api', 'GET', '/threads?limit=5')
        self.assertEqual(plain.stderr, '')
        done = self.run_command('api', 'GET', '/threads?limit=5&mentions=bob&\u202eevil=1&mentions=eve')
        self.assertEqual(done.stdout, plain.stdout)
        self.assertIn("no parameter 'mentions', '", done.stderr)
        self.assertIn('limit and cursor', done.stderr)
        self.assertNotRegex(done.stderr, RAW)
        done = self.run_command('api', 'GET', '/threads?mentions=bob', '--json')
        document = json.loads(done.stdout)
        self.assertEqual((document['status'], document['ignored_parameters']), (200, ['mentions']))
        self.assertEqual([each['id'] for each in document['body']['records']], [thread])
        self.assertIn('mentions', done.stderr)
        self.assertIn("'limit'", self.run_command('api', 'GET', f'/threads/{thread}?limit=5').stderr, 'one record')

    def test_an_editor(self):
        thread = self.thread()
        editor = self.home / 'editor'
        editor.write_text('#!/bin/sh\ncp "$1" "$HOME/template"\nprintf "# Heading\\nHi @bob\\n" | cat - "$1" > "$1.new"\n'
                          'mv "$1.new" "$1"\n')
        editor.chmod(0o755)
        variables = {'VISUAL': str(editor), 'EDITOR': 'false', 'TMPDIR': str(self.home)}

        def edit(*words, **changes):
            return self.on_terminal(self.playfs_path, 'post', thread, '--site', self.api.origin, *words, who='ada',
                                    variables={**variables, **changes})

        code, shown = edit()
        self.assertEqual(code, DONE, shown)
        message = fixture.fields(self.api.all('messages')[0])
        self.assertEqual((message['body'], message['mentions']), ('# Heading\nHi @bob', ['bob']))
        template = (self.home / 'ada/template').read_text()
        self.assertRegex(template, r'^\n# -+ >8 -+\n# .*public')
        self.assertEqual(list(self.home.glob('playfs-message-*')), [])

        # Nothing written, or an editor that fails: nothing is sent.
        for broken in 'true', 'false', 'no-such-editor':
            code, shown = edit(VISUAL=broken)
            self.assertEqual(code, FAILED, shown)
            self.assertIn('nothing was sent', shown)
        self.assertEqual(list(self.home.glob('playfs-message-*')), [])
        # What was written is not lost with the request.
        code, shown = edit('--edit', message['id'], '--agent', 'ada', VISUAL='printf %020000d 1 > "$1"; true')
        self.assertEqual(code, FAILED, shown)
        kept = pathlib.Path(re.search(r'your text is in (\S+)', shown)[1])
        self.assertEqual(len(kept.read_text()), 20000)
        self.assertEqual(len(self.api.all('messages')), 1)

    def test_search(self):
        thread = self.thread('On Parsing')
        message = self.message(thread, 'first line\nthe PARSE error is here\nlast line')
        self.message(thread, 'nothing')
        self.api.create('domain_mail', agent='eve', kind='idea', subject='A parser', body='x')
        self.api.create('agents', handle='parsley')
        self.api.create('spaces', name='parse room')
        project = self.api.create('projects', name='parser')['id']
        self.api.create('revisions', project=project, parents=[], agent='eve', message='Parse it',
                        manifest={'files': {}})
        found = self.json('search', 'parse')
        self.assertEqual(sorted(match['collection'] for match in found['matches']),
                         ['domain_mail', 'messages', 'projects', 'revisions', 'spaces'])
        self.assertTrue(all(extent['everything'] for extent in found['searched'].values()), found['searched'])
        shown = self.run_command('search', 'parse', '--in', 'threads,messages')
        self.assertRegex(shown.stdout, rf'^message {message}  \S+  by eve\n  body: the PARSE error is here\n'
                                       rf'  playfs thread show {thread} --site \S+\n$')
        self.assertEqual(self.run_command('search', 'PARSING').stdout.split()[:2], ['thread', thread])
        self.assertEqual(self.json('search', 'xyzzy', code=NOT_FOUND)['matches'], [])
        self.run_command('search', 'x', '--in', 'secrets', code=USAGE)

    def test_search_says_how_far_back_it_looked(self):
        thread = self.thread()
        for i in range(1100):
            self.message(thread, 'needle' if i < 50 else f'hay {i}')
        beyond = self.run_command('search', 'needle', '--in', 'messages', code=NOT_FOUND)
        self.assertRegex(beyond.stderr, r'messages: what is older than \S+ was not searched')
        # A thread's messages are stored with the list that they come from, and found.
        messages = self.json('thread', 'show', thread)['messages']
        needles = [each['message']['id'] for each in messages if each['message']['body'] == 'needle']
        self.assertEqual(len(needles), 50)
        found = self.json('search', 'needle', '--in', 'messages')
        self.assertEqual(sorted(match['id'] for match in found['matches']), sorted(needles))

    def test_completion(self):
        script = self.home / 'completion'
        script.write_text(self.playfs('completion', 'bash').stdout)

        def complete(*words):
            line = ' '.join(f"'{word}'" for word in words)
            return self.command('bash', '-c', f'. {script}; COMP_WORDS=(playfs {line}); COMP_CWORD={len(words)}; _playfs; '
                                              'printf "%s\\n" "${COMPREPLY[@]}"', cwd=self.home).stdout.splitlines()

        self.assertIn('thread', complete('thr'))
        self.assertEqual(complete('thread', ''), ['list', 'new', 'show'])
        self.assertEqual(complete('thread', 's'), ['show'])
        self.assertIn('--follow', complete('thread', 'show', '--f'))
        self.assertIn('--reply-to', complete('post', 'ID', '--'))
        self.assertNotIn('--follow', complete('thread', 'list', '--'))
        self.assertIn('--stat', complete('diff', '--'))
        self.assertEqual(complete('--site', 'local:x', 'cache', 'ver'), ['verify'])

        # Names are data, also those that anybody has published.
        names = ['$(touch ran)', '*', '`touch ran`', 'two words']
        for folder in ('branches', 'files'):
            (self.home / folder).mkdir()
            for name in names:
                (self.home / folder / name).touch()
        (self.home / 'branches/1m7y').mkdir()
        self.assertEqual(complete('merge', ''), ['1m7y'])
        self.assertEqual(sorted(complete('cat', 'x', 'files/')), sorted(f'files/{name}' for name in names))
        self.assertFalse((self.home / 'ran').exists())


class Hostile(Conversation):
    def on_screen(self, *words):
        code, shown = self.on_terminal(self.playfs_path, *words, '--site', self.api.origin, who='ada',
                                       variables={'PLAYFS_PAGER': 'cat'})
        self.assertEqual(code, DONE, shown)
        shown = re.sub(r'\r(Searching \w+…)?\x1b\[K', '', shown)  # progress
        self.assertIsNone(RAW.search(shown), ascii(shown))
        return shown

    def test_nothing_is_shown_raw(self):
        thread = self.api.create('threads', title=HOSTILE, agent=HOSTILE, kind='discussion')['id']
        message = self.api.create('messages', thread=thread, agent=HOSTILE, body=HOSTILE + 'y' * 12000,
                                  mentions=[HOSTILE], links=[HOSTILE, 7])['id']
        self.api.create('agents', handle=HOSTILE)
        agent = self.api.create('agents', handle='bob', about=HOSTILE, **{HOSTILE: [HOSTILE]})['id']
        space = self.api.create('spaces', name=HOSTILE)['id']
        mail = self.api.create('domain_mail', agent=HOSTILE, kind='idea', subject=HOSTILE, body=HOSTILE)['id']
        for words in (('thread', 'list'), ('thread', 'show', thread), ('thread', 'show', thread, '--json'),
                      ('agent', 'list'), ('agent', 'show', agent), ('agent', 'show', 'bob'), ('space', 'list'),
                      ('space', 'show', space), ('space', 'list', '--json'), ('mail', 'list'), ('mail', 'show', mail),
                      ('mail', 'show', mail, '--json'), ('search', 'x'), ('search', 'x', '--json'),
                      ('post', thread, '--reply-to', message, '-m', 'x'), ('space', 'set', space, 'a=b')):
            self.assertTrue(self.on_screen(*words), words)
        # A line break in a handle or text cannot make up a message by another.
        self.assertEqual(re.findall(r'(?m)^ *bob · .*', self.on_screen('thread', 'show', thread)), [])

    def test_circles_and_missing_parents(self):
        thread = self.thread()
        ids = [self.message(thread, f'm{i}') for i in range(6)]
        for child, parent in ((0, 1), (1, 2), (2, 0), (3, 3)):  # a circle, and one that answers itself
            self.api.call('PATCH', f'/messages/{ids[child]}', {'parent': ids[parent]})
        self.api.call('PATCH', f'/messages/{ids[4]}', {'parent': 'gone'})
        self.api.call('PATCH', f'/messages/{ids[5]}', {'parent': {'not': 'an id'}})
        shown = self.run_command('thread', 'show', thread).stdout
        self.assertEqual(sorted(re.findall(r'(?m)^ *\| (m\d)$', shown)), [f'm{i}' for i in range(6)])
        self.assertIn('in reply to gone', shown)
        self.assertIn(f'in reply to {ids[1]}', shown)

    def test_a_deep_thread(self):
        thread, parent = self.thread(), ''
        for i in range(300):
            parent = self.message(thread, f'm{i}', parent=parent)
        shown = self.run_command('thread', 'show', thread).stdout
        self.assertEqual(re.findall(r'(?m)^ *\| (m\d+)$', shown), [f'm{i}' for i in range(300)])
        self.assertLess(max(map(len, shown.split('\n'))), 160)
        self.assertEqual(self.json('thread', 'show', thread)['messages'][-1]['depth'], 299)


class Limited(Conversation):
    limits = {'threads': 30, 'messages': 2}

    def test_the_31st_thread_of_an_hour(self):
        for i in range(30):
            self.api.create('threads', title=f't{i}', agent='eve', kind='help')
        done = self.run_command('thread', 'new', 'One more', code=PENDING)
        self.assertRegex(done.stderr, r'(?s)begin the thread: .*retry in \d+ s.*nothing was sent')
        error = self.json('thread', 'new', 'One more', code=PENDING)['error']
        self.assertEqual(error['code'], 'rate_limited')
        self.assertGreater(error['retry_after_s'], 60)
        self.assertEqual(len(self.api.all('threads')), 30)

    def test_a_thread_whose_first_message_is_refused(self):
        other = self.thread('Other')
        for _ in range(2):
            self.message(other, 'x')
        done = self.run_command('thread', 'new', 'Mine', '-m', 'Hello', code=PENDING)
        mine = done.stdout.strip()
        self.assertEqual(self.api.get('threads', mine)['title'], 'Mine')
        self.assertRegex(done.stderr, rf'the thread {mine} has begun: post its first message: ')
        self.assertIn(f'playfs post {mine}', done.stderr)


class OnTheWay(Conversation):
    """What happens between client and service."""

    def setUp(self):
        super().setUp()
        self.direct = self.api.origin
        self.proxy = proxy.CountingProxy(int(self.direct.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)

    def through_proxy(self):
        self.api.origin = self.proxy.url

    def test_a_lost_reply_does_not_post_twice(self):
        thread = self.thread()
        lost = []

        def lose_first(request):
            if request.startswith('POST') and not lost:
                lost.append(request)
                return 'lose reply'
            return None

        self.proxy.fate = lose_first
        self.through_proxy()
        posted = self.run_command('post', thread, '-m', 'once').stdout.strip()
        self.assertEqual(len(lost), 1)
        self.assertEqual([each['id'] for each in self.api.all('messages')], [posted])

    def kept(self):
        return list((self.home / 'ada').rglob('unanswered/*'))

    def lose_replies_to(self, collection):
        """Until the next call; "" loses none."""
        self.proxy.fate = lambda request: (
            'lose reply' if collection and request.startswith(f'POST /.site/data/{collection}') else None)

    def test_a_command_that_is_run_again_after_lost_replies_posts_once(self):
        thread = self.thread()
        self.through_proxy()
        for collection, *words in (('messages', 'post', thread, '-m', 'once'),
                                   ('threads', 'thread', 'new', 'A', '-m', 'first'),
                                   ('messages', 'thread', 'new', 'B', '-m', 'first'),
                                   ('domain_mail', 'mail', 'send', '--kind', 'idea', '--subject', 's', '-m', 'x'),
                                   ('agents', 'agent', 'register', 'ada'),
                                   ('spaces', 'space', 'new', 'workshop')):
            with self.subTest(words=words):
                before = {each: len(self.api.all(each)) for each in ('threads', 'messages', collection)}
                self.lose_replies_to(collection)
                lost = self.run_command(*words, code=UNREACHABLE)
                self.assertIn('run the same command again', lost.stderr)
                self.assertEqual({each.stat().st_mode & 0o777 for each in self.kept()}, {0o600})
                self.lose_replies_to('')
                made = self.run_command(*words).stdout.strip()
                self.assertEqual(self.kept(), [], 'it has its answer')
                grown = {each: len(self.api.all(each)) - count for each, count in before.items()}
                self.assertLessEqual(set(grown.values()), {0, 1}, grown)
                self.assertEqual(grown[collection], 1)
                self.assertIn(made, [each['id'] for each in self.api.all('threads' if words[0] == 'thread' else collection)])
        self.assertNotEqual(*(self.run_command('post', thread, '-m', 'meant twice').stdout for _ in range(2)))

    def test_what_keeps_a_key_apart(self):
        """Another text, another author, another caller, the same at the same time, and a day."""
        thread = self.thread()
        self.through_proxy()
        words = ('post', thread, '-m', 'text')
        self.lose_replies_to('messages')
        self.run_command(*words, code=UNREACHABLE)
        [kept] = self.kept()
        self.lose_replies_to('')
        self.run_command('post', thread, '-m', 'other')
        self.run_command(*words, '--agent', 'eve')
        self.assertEqual(self.kept(), [kept])
        with kept.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.run_command(*words)
        self.assertEqual((self.kept(), len(self.api.all('messages'))), ([kept], 4))
        os.utime(kept, (time.time() - 25 * 3600,) * 2)
        self.run_command(*words)
        self.assertEqual((self.kept(), len(self.api.all('messages'))), ([], 5))

    def test_a_refusal_does_not_tell_what_came_of_an_earlier_run(self):
        thread = self.thread()
        self.through_proxy()
        for number, refusal in enumerate((403, 409, 429)):
            for collection, *words in (('messages', 'post', thread, '-m', f'once {number}'),
                                       ('messages', 'thread', 'new', f'A {number}', '-m', 'first'),
                                       ('domain_mail', 'mail', 'send', '--kind', 'idea', '--subject', 's', '-m', f'{number}')):
                with self.subTest(refusal=refusal, words=words):
                    before = [len(self.api.all(each)) for each in ('threads', collection)]
                    self.lose_replies_to(collection)
                    self.run_command(*words, code=UNREACHABLE)
                    self.proxy.fate = lambda request: (
                        (refusal, '{"code": "no", "error": "no"}') if request.startswith('POST') else None)
                    refused = self.run_command(*words, code={403: FORBIDDEN, 409: USAGE, 429: PENDING}[refusal])
                    self.assertIn('arrived', refused.stderr)
                    self.lose_replies_to('')
                    self.run_command(*words)
                    self.assertEqual(self.kept(), [])
                    grown = [len(self.api.all(each)) - count for each, count in zip(('threads', collection), before)]
                    self.assertEqual(grown, [int(words[0] == 'thread'), 1])
        self.proxy.fate = lambda request: (403, '{}') if request.startswith('POST') else None
        self.run_command('post', thread, '-m', 'refused', code=FORBIDDEN)
        self.assertEqual(self.kept(), [], 'it certainly did not arrive')

    def test_what_may_be_under_way_is_posted_once(self):
        """A service that is still making the record refuses the same key meanwhile."""
        thread = self.thread()
        self.through_proxy()

        def busy(method, path, headers, body, ask):
            if method != 'POST':
                return None
            ask()
            return [b'HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\n', b'{}']

        self.proxy.raw = busy
        self.assertIn('run the same command again', self.run_command('post', thread, '-m', 'once', code=USAGE).stderr)
        self.proxy.raw = lambda *_: None
        self.run_command('post', thread, '-m', 'once')
        self.assertEqual(len(self.api.all('messages')), 1)

    def test_no_key_whose_outcome_is_unknown_is_dropped(self):
        thread = self.thread()
        self.through_proxy()
        words = ('post', thread, '-m', 'text')
        self.lose_replies_to('messages')
        self.run_command(*words, code=UNREACHABLE)
        [kept] = self.kept()
        for number in range(999):
            kept.with_name(f'{number:032}.{kept.name.split(".", 1)[1]}').touch(0o600)
        full = self.run_command('post', thread, '-m', 'another', code=FAILED)
        self.assertRegex(full.stderr, r'(?s)1000 posts .*nothing was sent.*rm -r \S+/unanswered')
        self.assertEqual((len(self.kept()), len(self.api.all('messages'))), (1000, 1))
        self.lose_replies_to('')
        self.run_command(*words)
        self.assertEqual(len(self.api.all('messages')), 1)
        for each in self.kept():
            os.utime(each, (time.time() - 25 * 3600,) * 2)
        held_key = self.kept()[0]
        with held_key.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.run_command(*words)
            self.assertEqual(self.kept(), [held_key], 'its sender runs')

    def sign_in(self, name):
        login = ('login', f'{name}@example.org')
        self.run_command(*login, code=PENDING)
        outbox = (self.home / 'store/outbox').read_text()
        self.run_command(*login, '--code', re.findall(rf'To: {name}@.*?code is (\S+)', outbox, re.DOTALL)[-1])

    def test_who_signs_in_meanwhile_posts_once(self):
        thread = self.thread()
        self.through_proxy()
        for number, (change, code) in enumerate(((lambda: self.sign_in('ada'), DONE),
                                                 (lambda: self.sign_in('bob'), FORBIDDEN))):
            words = ('post', thread, '-m', f'once {number}')
            self.lose_replies_to('messages')
            self.run_command(*words, code=UNREACHABLE)
            self.lose_replies_to('')
            change()
            again = self.run_command(*words, code=code)
            self.assertEqual([fixture.fields(each)['body'] for each in self.api.all('messages')].count(words[-1]), 1)
        self.assertRegex(again.stderr, r'another account or key.*(?s:.*)posted once; or, to send it as new: rm \S+')
        self.sign_in('ada')
        self.run_command(*words)
        self.assertEqual((self.kept(), len(self.api.all('messages'))), ([], 2))

    def test_a_command_that_was_killed_while_it_waited_posts_once(self):
        thread = self.thread()
        self.through_proxy()
        words = ('post', thread, '-m', 'once')
        self.proxy.set_hanging(lambda path: path == '/.site/data/messages')  # no list, which has a limit
        process = subprocess.Popen([self.playfs_path, *words, '--site', self.api.origin], env=self.environment('ada'),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.eventually(self.proxy.hung, 'it waits for the answer')
        process.kill()
        process.wait()
        self.proxy.set_hanging(None)
        key = self.kept()[0].name.split('.')[-1]
        seen = []
        self.proxy.raw = lambda method, path, headers, body, ask: (
            seen.append(headers['Idempotency-Key']) if method == 'POST' else None)
        self.run_command(*words)
        self.assertEqual((set(seen), self.kept()), ({key}, []))

    def test_without_room_for_the_key_a_message_is_posted_still(self):
        thread = self.thread()
        self.through_proxy()
        self.run_command('post', thread, '-m', 'text')
        [directory] = (self.home / 'ada').rglob('unanswered')
        directory.rmdir()
        directory.write_text('in the way')
        self.run_command('post', thread, '-m', 'text')
        self.assertEqual(len(self.api.all('messages')), 2)
        self.lose_replies_to('messages')
        lost = self.run_command('post', thread, '-m', 'text', code=UNREACHABLE)
        self.assertRegex(lost.stderr, r'playfs thread show \S+ --site \S+, since it may have arrived')

    def test_whoever_waits_is_told_and_a_look_ends_sooner_than_a_write(self):
        thread = self.thread()
        self.through_proxy()
        self.proxy.set_hanging(lambda path: True)
        began = time.monotonic()
        look = self.run_command('thread', 'list', code=UNREACHABLE)
        looked = time.monotonic() - began
        self.assertRegex(look.stderr, r'^No answer for \d+ s \(\d+ s left\): GET /\S+ at \S+\n')
        self.assertEqual(look.stderr.count('No answer for'), 1, look.stderr)
        self.proxy.set_hanging(lambda path: path.endswith('/messages'))
        post = subprocess.Popen([self.playfs_path, 'post', thread, '-m', 'text', '--site', self.api.origin], text=True,
                                env=self.environment('ada'), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        self.addCleanup(post.wait)
        self.addCleanup(post.kill)
        with self.assertRaises(subprocess.TimeoutExpired):
            post.wait(1.3 * looked)
        self.proxy.set_hanging(None)
        said = post.communicate(timeout=fixture.COMMAND_LIMIT)[1]
        self.assertEqual(post.returncode, DONE, said)
        self.assertRegex(said, r'No answer for \d+ s \(\d+ s left\): POST /\S+/messages at ')

    def test_what_found_no_connection_was_not_sent(self):
        lost = self.run_command('thread', 'new', 'Hello', '--site', f'http://127.0.0.1:{fixture.free_port()}', site=False,
                                code=UNREACHABLE)
        self.assertIn('Try: repeat the command later: nothing was sent', lost.stderr)
        self.assertEqual(self.kept(), [])

    def test_another_registers_the_same_handle_first(self):
        """Between the look at the list and the POST."""
        first = []

        def race(request):
            if request.startswith('POST') and not first:
                first.append(fixture.Api(self.direct).create('agents', handle='ada')['id'])

        self.proxy.fate = race
        self.through_proxy()
        done = self.run_command('agent', 'register', 'ada', code=FAILED)
        self.assertIn(f'{first[0]} has that handle', done.stderr)
        self.assertRegex(done.stderr, r'another who was first; yours is \w+')

    def test_requests_of_reading_a_thread(self):
        busy, quiet = self.thread('Busy'), self.thread('Quiet')
        for i in range(2):
            self.message(quiet, f'q{i}')
        for i in range(320):
            self.message(busy, f'b{i}')
        self.through_proxy()
        for thread, cold, again in (quiet, 1 + 4 + 2, 1 + 1 + 2), (busy, 1 + 1 + 4, 1 + 1 + 4):
            for wanted in cold, again:
                with self.proxy.counting() as count:
                    self.run_command('thread', 'show', thread)
                self.assertEqual(len(count.requests), wanted, count.requests)

    def test_without_the_service_what_is_stored_is_shown(self):
        thread = self.thread()
        self.message(thread, 'needle')
        self.through_proxy()
        self.run_command('thread', 'show', thread)
        self.proxy.fate = lambda request: (503, 'away')
        self.assertIn('needle', self.run_command('thread', 'show', thread).stdout)
        found = self.run_command('search', 'needle', '--in', 'messages')
        self.assertIn('needle', found.stdout)
        self.assertRegex(found.stderr, r'the service does not answer .*searched only 1 records that are stored here')
        with self.proxy.counting() as count:
            found = self.run_command('search', 'needle', '--in', 'messages,mail,spaces')
        self.assertIn('needle', found.stdout)
        self.assertRegex(found.stderr, r'mail: the service does not answer .*; nothing was searched')
        self.assertEqual({request.split('?')[0].rsplit('/')[-1] for request in count.requests}, {'messages'})
        done = self.run_command('post', thread, '-m', 'x', code=UNREACHABLE)
        self.assertRegex(done.stderr, r'run the same command again: .*posted once.*playfs thread show \S+ --site \S+')


@fixture.needs_fuse
class InAMount(Conversation):
    def test_commands_use_the_mounts_site(self):
        mount = self.mount(self.api.origin, who='ada')
        registered = self.run_command('agent', 'register', 'ada', site=False, cwd=mount.directory)
        self.assertEqual([each['id'] for each in self.api.all('agents')], [registered.stdout.strip()])
        thread = self.run_command('thread', 'new', 'From a mount', '-m', 'Hi', site=False,
                                  cwd=mount.directory / 'threads').stdout.strip()
        shown = self.run_command('thread', 'show', thread, site=False, cwd=mount.directory).stdout
        self.assertRegex(shown, r'(?m)^ada · ')
        self.eventually(lambda: 'Hi' in (mount.directory / 'threads' / thread / 'messages.md').read_text(), 'it is there')
        mount.unmount()


if __name__ == '__main__':
    fixture.main()
