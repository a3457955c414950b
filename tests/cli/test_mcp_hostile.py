#!/usr/bin/env python3
"""playfs mcp: long publications, mounts, and a hostile client."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

import fixture
from mcp_client import INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, PARSE_ERROR, PREFIX, STATELESS, Mcp, Refused


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
        changes = client.call('list', what='changes')[0]
        self.assertIn('7 paths changed', changes)
        self.assertNotIn('under way', changes)
        self.assertNotIn(call, client.answers)
        self.assertEqual(self.api.all('revisions'), [])

    def test_the_end_does_not_wait_for_it(self):
        client = self.client()
        self.many_chunks()
        client.begin_call('publish', message='Slow')
        client.begin_call('inbox', wait_seconds=600)
        self.eventually(lambda: self.api.all('file_chunks') or not client.lines.empty(), 'it has begun')
        self.assertTrue(client.lines.empty(), list(client.lines.queue))
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
        calls = [client.begin_call('inbox', wait_seconds=600) for _ in range(200)]
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
