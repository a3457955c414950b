#!/usr/bin/env python3
"""playfs mcp: a client written from the specification, in both of its eras."""
import base64
import json
import os
import re

import fixture
from mcp_client import (INVALID_PARAMS, NO_METHOD, NO_RESOURCE, NO_VERSION, PREFIX, SESSIONS, STATELESS, Mcp, Refused)

TOOLS = ['list', 'read', 'write', 'publish', 'talk', 'inbox']


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
            client.fail('read', path=path)
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


if __name__ == '__main__':
    fixture.main()
