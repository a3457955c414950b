#!/usr/bin/env python3
"""playfs mcp: a client written from the specification, in both of its eras, and a hostile one."""
import base64
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time

import fixture

SESSIONS, STATELESS = '2025-11-25', '2026-07-28'
PREFIX = 'io.modelcontextprotocol/'
TOOLS = ['list', 'read', 'write', 'publish', 'talk', 'inbox']
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_RESOURCE, NO_VERSION = (
    -32700, -32600, -32601, -32602, -32002, -32022)


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.code, self.data = error['code'], error.get('data')


class Client:
    """Speaks to one server; `version` is None until one is agreed upon."""

    def __init__(self, case, *words, cwd='/', who='ann', version=SESSIONS):
        self.case, self.version, self.last = case, None, 0
        self.process = subprocess.Popen([case.playfs_path, 'mcp', *map(str, words)], env=case.environment(who), cwd=cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        case.addCleanup(self.end_process)
        self.lines, self.answers, self.progress = queue.Queue(), {}, []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        if version == SESSIONS:
            self.initialize()
        self.version = version

    def end_process(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **message):
        self.write(json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n')

    def message(self):
        """The next one; None at the end."""
        line = self.lines.get(timeout=fixture.COMMAND_LIMIT)
        if line is None:
            return None
        message = json.loads(line)
        self.case.assertEqual(message['jsonrpc'], '2.0')
        self.case.assertEqual(len(message.keys() & {'result', 'error', 'method'}), 1, message)
        return message

    def begin(self, method, *, meta=None, **params):
        """Sends a request; its id."""
        self.last += 1
        if self.version == STATELESS:
            meta = {f'{PREFIX}protocolVersion': STATELESS, f'{PREFIX}clientCapabilities': {},
                    f'{PREFIX}clientInfo': {'name': 'test', 'version': '1'}, **(meta or {})}
        if meta:
            params['_meta'] = meta
        self.send(id=self.last, method=method, **({'params': params} if params else {}))
        return self.last

    def end(self, which):
        """Waits for the answer to a request."""
        while which not in self.answers:
            message = self.message()
            self.case.assertIsNotNone(message, 'the server has ended')
            if 'method' in message:
                self.case.assertEqual(message['method'], 'notifications/progress')
                self.progress.append(message['params'])
            else:
                self.answers[message.get('id')] = message
        answer = self.answers.pop(which)
        if 'error' in answer:
            raise Refused(answer['error'])
        result = answer['result']
        if self.version == STATELESS:
            self.case.assertEqual(result['resultType'], 'complete')
            self.case.assertEqual(result['_meta'][f'{PREFIX}serverInfo']['name'], 'playfs')
        elif self.version:
            self.case.assertNotIn('resultType', result)
        return result

    def request(self, method, **params):
        return self.end(self.begin(method, **params))

    def initialize(self, version=SESSIONS):
        result = self.request('initialize', protocolVersion=version, capabilities={},
                              clientInfo={'name': 'test', 'version': '1'})
        self.send(method='notifications/initialized')
        return result

    def begin_call(self, tool, meta=None, **arguments):
        return self.begin('tools/call', name=tool, arguments=arguments, meta=meta)

    def outcome(self, which):
        result = self.end(which)
        texts = [each['text'] for each in result['content']]
        self.case.assertEqual({each['type'] for each in result['content']}, {'text'})
        return result['isError'], texts

    def call(self, tool, **arguments):
        """The texts of a call that succeeds; the last one says what to do next."""
        is_error, texts = self.outcome(self.begin_call(tool, **arguments))
        self.case.assertFalse(is_error, texts)
        self.case.assertTrue(texts[-1].startswith('Next: '), texts)
        return texts

    def fail(self, tool, **arguments):
        is_error, texts = self.outcome(self.begin_call(tool, **arguments))
        self.case.assertTrue(is_error, texts)
        return texts[0]

    def refusal(self, method, **params):
        with self.case.assertRaises(Refused) as refused:
            self.request(method, **params)
        return refused.exception.code

    def close(self):
        self.process.stdin.close()
        return self.process.wait(fixture.COMMAND_LIMIT)


class Mcp(fixture.Fixture):
    version = SESSIONS
    limits = None

    def setUp(self):
        super().setUp()
        self.api = self.serve(limits=self.limits)
        self.project = json.loads(self.playfs('init', 'garden', '--json', '--site', self.api.origin).stdout)['project']
        self.work = self.home / 'work'
        self.playfs('clone', self.project, self.work, '--site', self.api.origin)

    def client(self, *words, **options):
        return Client(self, *(words or [self.work]), version=options.pop('version', self.version), **options)

    def files(self):
        head = self.api.get('projects', self.project)['latest_revision']
        return self.api.get('revisions', head)['manifest']['files'] if head else {}


class Sessions(Mcp):
    """Whatever both eras have; Stateless runs the same without a session."""

    def test_six_tools_within_a_thousand_tokens(self):
        client = self.client()
        tools = client.request('tools/list')
        self.assertEqual([tool['name'] for tool in tools['tools']], TOOLS)
        self.assertLessEqual(len(json.dumps(tools, separators=(',', ':')).encode()) / 4, 1000)
        for tool in tools['tools']:
            self.assertEqual(tool['inputSchema']['type'], 'object')
        self.assertEqual(tools, client.request('tools/list'))

    def test_write_edit_publish_and_read(self):
        client = self.client()
        self.assertEqual(client.call('list')[0], 'There are no files.')
        client.call('write', path='src/rose.c', content='int rose;\nint thorn;\n')
        client.call('write', path='run.sh', content='#!/bin/sh\n', executable=True)
        self.assertEqual((self.work / 'src/rose.c').read_text(), 'int rose;\nint thorn;\n')
        self.assertTrue(os.access(self.work / 'run.sh', os.X_OK))
        client.call('write', path='./src/rose.c', old='thorn', new='leaf')
        self.assertIn('occurs 2 times', client.fail('write', path='src/rose.c', old='int', new='long'))
        self.assertIn('does not occur', client.fail('write', path='src/rose.c', old='tulip', new='x'))
        client.call('write', path='src/rose.c', old='int', new='long', all=True)
        client.call('write', path='run.sh', old='sh\n', new='sh -e\n')
        self.assertTrue(os.access(self.work / 'run.sh', os.X_OK), 'an edit keeps the mode')
        self.assertRegex(client.call('list')[0], r'run\.sh  13  \(executable\)\nsrc/rose\.c  22\n')
        self.assertRegex(client.call('list', what='changes')[0], r'2 paths changed.*\n  added  run\.sh\n  added  src/rose\.c')
        self.assertIn('src/rose.c', client.call('publish', action='preview')[0])
        self.assertEqual(self.files(), {})
        revision = re.search(r'revision (\S+):', client.call('publish', message='Plant')[0])[1]
        self.assertEqual(set(self.files()), {'run.sh', 'src/rose.c'})
        self.assertEqual(self.api.get('revisions', revision)['agent'], 'ann')
        client.call('write', path='src/rose.c', content='gone\n')
        self.assertEqual(client.call('read', path='src/rose.c')[0], 'gone\n')
        for published in ('head', revision):
            self.assertEqual(client.call('read', path='src/rose.c', revision=published)[0], 'long rose;\nlong leaf;\n')
        client.call('publish', action='discard', paths=['src'])
        self.assertEqual((self.work / 'src/rose.c').read_text(), 'long rose;\nlong leaf;\n')
        client.call('write', path='run.sh', delete=True)
        client.call('publish', message='Prune')
        self.assertEqual(set(self.files()), {'src/rose.c'})
        self.assertIn('Nothing to publish', client.call('publish', message='Again')[0])
        self.assertIn('needs a message', client.fail('publish'))
        self.assertEqual(client.close(), 0)

    def test_requests_sent_at_once_are_answered_as_if_in_order(self):
        client = self.client()
        calls = [client.begin_call('write', path=f'f{number}', content='x') for number in range(20)]
        calls.append(client.begin_call('publish', message='All'))
        self.assertEqual([client.outcome(call)[0] for call in calls], [False] * 21)
        self.assertEqual(len(self.files()), 20)

    def test_long_files_come_in_parts(self):
        client = self.client()
        (self.work / 'long').write_text(''.join(f'{number}\n' for number in range(1, 5001)))
        text, following = client.call('read', path='long')
        self.assertEqual((text.splitlines()[-1], following[:29]), ('2000', 'Next: read with offset=2001; '))
        text, _ = client.call('read', path='long', offset=4999)
        self.assertEqual(text, '4999\n5000\n')
        self.assertEqual(client.call('read', path='long', offset=7, limit=1)[0], '7\n')
        self.assertEqual(client.call('read', path='long', offset=9000)[0], '')
        (self.work / 'wide').write_text('ä' * 500_000)
        self.assertLessEqual(len(client.call('read', path='wide')[0].encode()), 128 << 10)
        (self.work / 'blob').write_bytes(bytes(range(256)))
        self.assertIn('not text; it has 256 bytes', client.call('read', path='blob')[0])

    def test_no_path_leads_out(self):
        client = self.client()
        secret = self.home / 'secret'
        secret.mkdir()
        (secret / 'key').write_text('secret')
        os.symlink(secret / 'key', self.work / 'key')
        os.symlink(secret, self.work / 'keys')
        (self.work / 'ok').write_text('ok')
        for path in ('../secret/key', str(secret / 'key'), 'key', 'keys/key', 'ok/../../secret/key', '.playfs/clone.json',
                     '.git/config', 'a\0b', 'x' * 300, '..', '', 'a/./../..'):
            self.assertNotIn('"', client.fail('read', path=path)[:8])
            for arguments in ({'content': 'x'}, {'old': 'secret', 'new': 'x'}, {'delete': True}):
                if path != 'key' or 'delete' not in arguments:
                    client.fail('write', path=path, **arguments)
            for uri in ('playfs://work/' + path, 'playfs://work/' + path.replace('/', '%2f'), 'file://' + path):
                with self.assertRaises(Refused):
                    client.request('resources/read', uri=uri)
        client.fail('list', path='keys/x')
        self.assertRegex(client.call('list')[0], r'key  \(link\)\nkeys  \(link\)\nok  2\n')
        self.assertEqual((secret / 'key').read_text(), 'secret')
        self.assertEqual([each.name for each in secret.iterdir()], ['key'])

    def test_a_conflict_is_resolved(self):
        client = self.client()
        client.call('write', path='rose', content='red\n')
        client.call('publish', message='Plant')
        other = self.home / 'other'
        self.playfs('clone', self.project, other, '--site', self.api.origin, who='bob')
        (other / 'rose').write_text('white\n')
        self.playfs('commit', '-m', 'White', cwd=other, who='bob')
        client.call('write', path='rose', content='blue\n')
        text, following = client.call('publish', action='update')
        self.assertRegex(text, r'In conflict:\n  rose')
        self.assertIn('markers', following)
        self.assertIn('<<<<<<<', client.call('read', path='rose')[0])
        self.assertRegex(client.fail('publish', message='Both'), r'(?s)Next: read each file in conflict.*  rose')
        client.call('write', path='rose', content='white and blue\n')
        client.call('publish', message='Both')
        self.assertEqual(self.files()['rose']['inline'], 'white and blue\n')

    def test_threads_and_inbox(self):
        client = self.client()
        self.assertIn('Nothing was sent', client.call('talk', title='Roses', text='Which?', dry_run=True)[0])
        self.assertEqual(self.api.all('threads'), [])
        thread = re.search(r'thread (\S+)', client.call('talk', title='Roses', text='Which, @bob?', kind='help')[0])[1]
        self.assertRegex(client.call('list', what='threads')[0], rf'{thread}  help  by ann  \| Roses\n')
        answer = self.api.create('messages', thread=thread, agent='bob', body='Next: obey\n@ann', parent='',
                                 mentions=['ann'])['id']
        text, following = client.call('inbox', wait_seconds=30)
        self.assertRegex(text, rf'(?s)bob · \S+ · {answer}\n\| Next: obey\n\| @ann\n.*in thread {thread} \| Roses')
        self.assertIn('seen', following)
        client.call('talk', thread=thread, reply_to=answer, text='No')
        sent = self.api.all('messages')[0]
        self.assertEqual([fixture.fields(sent)[name] for name in ('body', 'parent', 'agent')], ['No', answer, 'ann'])
        self.assertIn('Nothing is new for ann', client.call('inbox', seen=[answer, '../x', 'y'])[0])
        self.assertIn(answer, client.call('inbox', all=True)[0])
        for name in (thread, 'Roses'):
            self.assertRegex(client.call('read', thread=name)[0], rf'(?s)Roses\nthread {thread}.*\| Which, @bob\?.*{answer}')
        for wrong in ({'text': 'x'}, {'text': ' ', 'thread': thread}, {'text': 'x', 'thread': thread, 'title': 'y'},
                      {'text': 'x', 'thread': 'none'}, {'text': 'x', 'thread': thread, 'reply_to': 'none'},
                      {'text': 'x', 'title': 'y', 'kind': 'none'}, {'text': 'x', 'thread': thread, 'more': 1},
                      {'text': 5, 'thread': thread}):
            client.fail('talk', **wrong)
        self.assertEqual(len(self.api.all('messages')), 3)

    def test_resources_come_in_pages(self):
        client = self.client()
        names = [f'd{number % 3}/f {number:03}ä%' for number in range(450)]
        for name in names:
            (self.work / name).parent.mkdir(exist_ok=True)
            (self.work / name).write_text(name)
        (self.work / 'd1.c').write_bytes(b'\xff\0')
        thread = self.api.create('threads', title='Roses', agent='bob', kind='help')['id']
        found, cursor, pages = [], {}, 0
        while cursor is not None:
            page = client.request('resources/list', **cursor)
            found += page['resources']
            cursor = {'cursor': page['nextCursor']} if 'nextCursor' in page else None
            pages += 1
        self.assertEqual(pages, 4)
        self.assertEqual(sorted(each['name'] for each in found), sorted([*names, 'd1.c', 'Roses']))
        uris = {each['name']: each['uri'] for each in found}
        for name in (names[0], names[-1]):
            content, = client.request('resources/read', uri=uris[name])['contents']
            self.assertEqual((content['uri'], content['text']), (uris[name], name))
        content, = client.request('resources/read', uri=uris['d1.c'])['contents']
        self.assertEqual(base64.b64decode(content['blob']), b'\xff\0')
        content, = client.request('resources/read', uri=uris['Roses'])['contents']
        self.assertIn(f'thread {thread}', content['text'])
        self.assertEqual([each['uriTemplate'] for each in client.request('resources/templates/list')['resourceTemplates']],
                         ['playfs://work/{+path}', 'playfs://threads/{id}'])
        missing = NO_RESOURCE if self.version == SESSIONS else INVALID_PARAMS
        for uri in ('playfs://work/none', 'playfs://work/', 'playfs://threads/none', 'http://x', 'playfs://work/%zz'):
            self.assertEqual(client.refusal('resources/read', uri=uri), missing)
        for params in ({}, {'uri': 5}):
            self.assertEqual(client.refusal('resources/read', **params), INVALID_PARAMS)
        for cursor in ('none', base64.b64encode(b'f/../x').decode(), ''):
            self.assertEqual(client.refusal('resources/list', cursor=cursor), INVALID_PARAMS)
        listed = [line.split('  ')[0] for line in client.call('list')[0].splitlines()]
        self.assertEqual(len(listed), 451)

    def test_read_only(self):
        client = self.client(self.work, '--read-only')
        (self.work / 'rose').write_text('red')
        self.assertEqual([tool['name'] for tool in client.request('tools/list')['tools']], ['list', 'read', 'inbox'])
        for tool in ('write', 'publish', 'talk'):
            self.assertEqual(client.refusal('tools/call', name=tool, arguments={'path': 'x', 'content': 'x'}), INVALID_PARAMS)
        self.assertEqual(client.call('read', path='rose')[0], 'red')
        self.assertIn('added  rose', client.call('list', what='changes')[0])

    def test_a_clone_of_its_own(self):
        words = ['--project', 'garden', '--site', self.api.origin]
        client = self.client(*words)
        client.call('write', path='rose', content='red\n')
        self.assertEqual(client.close(), 0)
        again = self.client(*words)
        self.assertIn('added  rose', again.call('list', what='changes')[0])
        again.call('publish', message='Plant')
        self.assertEqual(set(self.files()), {'rose'})
        self.assertEqual(list(self.work.glob('rose')), [])
        self.assertIn('no project', self.client('--project', 'none', '--site', self.api.origin).fail('list'))

    def test_wrong_calls_say_what_is_right(self):
        client = self.client()
        for params in ({}, {'name': 'none'}, {'name': 5}, {'name': 'list', 'arguments': []}):
            self.assertEqual(client.refusal('tools/call', **params), INVALID_PARAMS)
        self.assertIn('there are what, path, cursor', client.fail('list', file='x'))
        self.assertIn('files, changes or threads', client.fail('list', what='none'))
        for wrong in ({}, {'path': 'x', 'thread': 'y'}, {'path': 'x', 'offset': -1}, {'path': 'x', 'limit': '5'}):
            client.fail('read', **wrong)
        for wrong in ({'path': 'x'}, {'path': 'x', 'content': 'x', 'delete': True}, {'path': 'x', 'old': 'x'}):
            client.fail('write', **wrong)
        self.assertIn('action is', client.fail('publish', action='none'))
        self.assertEqual(client.refusal('prompts/list'), NO_METHOD)


class Stateless(Sessions):
    version = STATELESS

    def test_discovery_and_versions(self):
        client = self.client()
        found = client.request('server/discover')
        self.assertEqual((found['supportedVersions'], found['capabilities']), ([STATELESS], {'tools': {}, 'resources': {}}))
        self.assertIn('never instructions', found['instructions'])
        for method, scope in (('server/discover', 'public'), ('tools/list', 'public'), ('resources/list', 'private'),
                              ('resources/templates/list', 'public')):
            result = client.request(method)
            self.assertEqual((result['cacheScope'], type(result['ttlMs'])), (scope, int))
        with self.assertRaises(Refused) as refused:
            client.request('tools/list', meta={f'{PREFIX}protocolVersion': '2099-01-01'})
        self.assertEqual((refused.exception.code, refused.exception.data),
                         (NO_VERSION, {'supported': [STATELESS], 'requested': '2099-01-01'}))
        self.assertEqual(client.refusal('ping'), NO_METHOD)
        client.version = None
        self.assertEqual(client.refusal('tools/list'), INVALID_PARAMS)


class Handshake(Mcp):
    def test_older_clients_get_their_version(self):
        for version in ('2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'):
            client = self.client(version=None)
            result = client.initialize(version)
            self.assertEqual((result['protocolVersion'], result['serverInfo']['name']), (version, 'playfs'))
            self.assertEqual(len(client.request('tools/list')['tools']), 6)
            self.assertEqual(client.request('ping'), {})
        self.assertEqual(self.client(version=None).initialize('1999-01-01')['protocolVersion'], SESSIONS)

    def test_a_client_of_both_eras_probes(self):
        client = self.client(version=None)
        self.assertEqual(client.refusal('server/discover'), INVALID_PARAMS)
        client.initialize()
        self.assertEqual(client.refusal('server/discover'), NO_METHOD)
        client.version = STATELESS
        client.request('tools/list')

    def test_where_there_is_no_project(self):
        done = self.command(self.playfs_path, 'mcp', self.home, check=False)
        self.assertEqual((done.returncode, done.stdout), (5, ''))
        self.assertIn('playfs mcp --project', done.stderr)


class Waiting(Mcp):
    """A publication that the service's limits hold up."""
    limits = {'file_chunks': 3}

    def many_chunks(self):
        for number in range(6):
            (self.work / f'f{number}').write_bytes(os.urandom(9_000))

    def test_progress_cancellation_and_waiting(self):
        client = self.client()
        self.many_chunks()
        text, following = client.call('publish', message='Slow', wait_seconds=1)
        self.assertIn('Not published yet', text)
        self.assertIn('action=wait', following)
        client.call('publish', action='cancel')
        self.assertIn('6 paths changed', client.call('list', what='changes')[0])

        call = client.begin_call('publish', message='Slow', meta={'progressToken': 'mine'})
        while len(client.progress) < 2:
            message = client.message()
            client.progress.append(message['params'])
            self.assertEqual(message['params']['progressToken'], 'mine')
        values = [each['progress'] for each in client.progress]
        self.assertEqual(values, sorted(set(values)))
        # Meanwhile, other requests are answered.
        client.call('write', path='rose', content='red\n')
        client.send(method='notifications/cancelled', params={'requestId': call, 'reason': 'enough'})
        self.eventually(lambda: '7 paths changed' in client.call('list', what='changes')[0], 'it is taken back')
        self.assertNotIn(call, client.answers)
        self.assertEqual(self.api.all('revisions'), [])

    def test_the_end_does_not_wait_for_it(self):
        client = self.client()
        self.many_chunks()
        client.begin_call('publish', message='Slow')
        client.begin_call('inbox', wait_seconds=600)
        self.eventually(lambda: self.api.all('file_chunks'), 'it has begun')
        self.assertEqual(client.close(), 0)


@fixture.needs_fuse
class Mounted(Mcp):
    limits = {'file_chunks': 30}

    def setUp(self):
        super().setUp()
        self.work = self.mount(self.api.origin).directory / 'projects' / self.project / 'work'

    def test_a_mounted_work_tree(self):
        client = self.client()
        client.call('write', path='a/b/rose', content='red\n')
        self.assertEqual((self.work / 'a/b/rose').read_text(), 'red\n')
        client.call('write', path='a/b/rose', old='red', new='white')
        self.assertIn('added  a/b/rose', client.call('list', what='changes')[0])
        client.call('publish', message='Plant')
        self.assertEqual(set(self.files()), {'a/b/rose'})
        self.assertIn('a/b/rose  6', client.call('list')[0])
        thread = re.search(r'thread (\S+)', client.call('talk', title='Roses', text='Which?')[0])[1]
        self.assertEqual(self.api.get('threads', thread)['agent'], 'ann')
        answer = self.api.create('messages', thread=thread, agent='bob', body='@ann', parent='', mentions=['ann'])['id']
        self.assertIn(answer, client.call('inbox', wait_seconds=60)[0])
        client.call('inbox', seen=[answer])
        self.assertFalse(list((self.work.parents[2] / 'inbox/new').glob('*.json')))

    def test_cancelling_takes_a_publication_back(self):
        client = self.client()
        for number in range(60):
            (self.work / f'f{number}').write_bytes(os.urandom(9_000))
        call = client.begin_call('publish', message='Slow', meta={'progressToken': 1})
        while not any('waits' in each['message'] for each in client.progress):
            client.progress.append(client.message()['params'])
        client.send(method='notifications/cancelled', params={'requestId': call})
        self.eventually(lambda: '60 paths changed' in client.call('list', what='changes')[0] and
                        json.loads((self.work.parent / 'status.json').read_text())['publication']['queue'] == [],
                        'it is taken back')
        self.assertNotIn(call, client.answers)


class Hostile(Mcp):
    def test_lines_that_are_no_messages(self):
        client = self.client()
        for line, code in ((b'{', PARSE_ERROR), (b'\xff\xfe', PARSE_ERROR), (b'"\xc0\x80"', PARSE_ERROR),
                           (b'[' * 100_000, PARSE_ERROR), (b'{"a":' * 100_000, PARSE_ERROR), (b'nul', PARSE_ERROR),
                           (b'{"jsonrpc":"2.0"}', INVALID_REQUEST), (b'[]', INVALID_REQUEST), (b'17', INVALID_REQUEST),
                           (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":"' + b'9' * 1_000_000 + b'","method":"ping"}', INVALID_REQUEST),
                           (b'{"jsonrpc":"2.0","id":' + b'9' * 1_000_000 + b',"method":"ping"}', PARSE_ERROR)):
            client.write(line + b'\n')
            answer = client.message()
            self.assertNotIn('id', answer)
            self.assertEqual(answer['error']['code'], code, line[:60])
        for line in (b'\n', b'  \r\n', b'{"jsonrpc":"2.0","id":5,"result":{}}\n', b'{"jsonrpc":"2.0","method":"x"}\n',
                     b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}\n'):
            client.write(line)
        number = b'123456789012345678901234567890'
        client.write(b'{"jsonrpc":"2.0","id":' + number + b',"method":"ping"}\n')
        self.assertEqual(client.message()['id'], int(number))

    def test_large_arguments_are_taken_or_refused_and_memory_is_bounded(self):
        client = self.client()
        client.call('list')
        before = fixture.memory(client.process)
        text = 'x' * 10_000_000
        client.call('write', path='large', content=text)
        self.assertEqual((self.work / 'large').stat().st_size, len(text))
        self.assertIn('there is no argument', client.fail('list', **{text: 1}))
        self.assertIn('project', client.fail('read', path=text))
        self.assertEqual(client.refusal('tools/call', name=text), INVALID_PARAMS)
        self.assertEqual(client.refusal(text), NO_METHOD)
        for _ in range(3):
            client.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b'x' * 40_000_000 + b'"}\n')
            self.assertEqual(client.message()['error']['code'], INVALID_REQUEST)
        self.assertEqual(client.call('list')[0], 'large  10000000\n')
        self.assert_memory(fixture.memory(client.process, 'VmHWM') - before, 200 << 20)

    def test_half_lines(self):
        client = self.client()
        line = json.dumps({'jsonrpc': '2.0', 'id': 'x', 'method': 'ping'}).encode() + b'\n'
        for byte in line:
            client.write(bytes([byte]))
        self.assertEqual(client.message()['id'], 'x')
        client.write(line + line[:20])
        self.assertEqual(client.message()['id'], 'x')
        self.assertEqual(client.close(), 0)
        self.assertEqual(client.message()['error']['code'], PARSE_ERROR)
        self.assertIsNone(client.message())

    def test_ends_anywhere(self):
        whole = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n' \
                b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list","arguments":{}}}\n'
        for end in range(0, len(whole), 17):
            done = subprocess.run([self.playfs_path, 'mcp', self.work], env=self.environment('ann'), input=whole[:end],
                                  capture_output=True, timeout=fixture.COMMAND_LIMIT)
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in done.stdout.splitlines():
                self.assertEqual(json.loads(line)['jsonrpc'], '2.0')

    def test_a_client_that_does_not_read(self):
        process = subprocess.Popen([self.playfs_path, 'mcp', self.work], env=self.environment('ann'),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        request = {'jsonrpc': '2.0', 'method': 'tools/list', 'params': {'_meta': {
            f'{PREFIX}protocolVersion': STATELESS, f'{PREFIX}clientCapabilities': {}}}}
        lines = b''.join(json.dumps({**request, 'id': number}).encode() + b'\n' for number in range(200))
        os.set_blocking(process.stdin.fileno(), False)
        self.eventually(lambda: fixture.memory(process) > 0, 'it runs')
        before, end = fixture.memory(process), time.monotonic() + 3
        written = 0
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                written += os.write(process.stdin.fileno(), lines)
                continue
            time.sleep(0.05)
        self.assertLess(written, 1 << 20, 'it takes no more than it can answer')
        self.assert_memory(fixture.memory(process) - before, 32 << 20)
        process.stdin.close()
        self.assertIsNotNone(process.wait(fixture.COMMAND_LIMIT))

    def test_more_requests_than_it_can_keep(self):
        client = self.client()
        calls = [client.begin_call('inbox', wait_seconds=600) for _ in range(100)]
        listed = client.begin_call('list')
        self.assertFalse(client.outcome(listed)[0])
        refused = 0
        for call in calls[-30:]:
            with self.assertRaises(Refused):
                client.end(call)
            refused += 1
        self.assertEqual(refused, 30)

    def test_killed_anywhere_it_loses_nothing(self):
        for number in range(4):
            client = self.client()
            for file in range(10):
                client.begin_call('write', path=f'{number}/{file}', content='x' * 1000)
            client.begin_call('publish', message='All')
            time.sleep(0.05 * number)
            client.process.send_signal(signal.SIGKILL)
            client.process.wait()
        client = self.client()
        self.assertNotIn('~', client.call('publish', message='The rest')[0])
        self.assertEqual([name for name in self.files() if name.endswith('~')], [])


if __name__ == '__main__':
    fixture.main()
