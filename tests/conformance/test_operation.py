"""What `playfs serve` offers to those who run it, and to programs that want to know what it offers: health, draining, the
capability manifest, exports, the steward's commands. Over raw HTTP, on the real binary."""
import http.client
import json
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import unittest

from fixture import COMMAND_LIMIT, free_port, memory
from serve_fixture import BASE, Server, ServeTest


def ask(server, path, method='GET', headers=()):
    """Status, headers and text; status 0 if nobody listens."""
    try:
        connection = http.client.HTTPConnection(server.address, timeout=COMMAND_LIMIT)
        connection.request(method, path, headers=dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text
    except ConnectionError:
        return 0, {}, ''


class Health(ServeTest):
    def test_ready_while_it_can_be_written(self):
        server = Server(self)
        self.assertEqual([ask(server, f'/healthz{name}')[::2] for name in ('', '/ready', '/live')], [(200, 'ok\n')] * 3)
        other = sqlite3.connect(server.store / 'playground.db', isolation_level=None)
        self.addCleanup(other.close)
        other.execute('BEGIN IMMEDIATE')
        # The first check to find it waits for the store. Others do not: they say so, and that it lives.
        waiting = threading.Thread(target=lambda: [ask(server, '/healthz/ready') for _ in range(2)])
        waiting.start()
        self.eventually(lambda: ask(server, '/healthz/ready')[::2] == (503, 'the store cannot be written\n'), 'not ready')
        self.assertEqual(ask(server, '/healthz/live')[0], 200)
        self.assertEqual(ask(server, f'{BASE}/projects')[0], 200, 'it can still be read')
        other.execute('ROLLBACK')
        waiting.join()
        self.eventually(lambda: ask(server, '/healthz/ready')[0] == 200, 'ready again')

    def test_not_ready_while_it_starts(self):
        server = Server(self)
        self.assertEqual(server.stop(), 0)
        other = sqlite3.connect(server.store / 'playground.db', isolation_level=None)
        self.addCleanup(other.close)
        other.execute('BEGIN IMMEDIATE')  # opening a store makes sure of its tables
        starting = threading.Thread(target=server.start)
        starting.start()
        self.eventually(lambda: ask(server, '/healthz/ready')[::2] == (503, 'starting\n'), 'it is starting')
        self.assertEqual(ask(server, '/healthz/live')[0], 200)
        status, headers, text = ask(server, f'{BASE}/projects')
        self.assertEqual((status, headers['Retry-After'], json.loads(text)['code']), (503, '1', 'unavailable'))
        self.assertEqual(ask(server, '/')[0], 503)
        other.execute('ROLLBACK')
        starting.join()
        self.assertEqual(ask(server, '/healthz/ready')[0], 200)


class Draining(ServeTest):
    def test_it_goes_on_until_proxies_know(self):
        server = Server(self, '--drain', '600')
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: ask(server, '/healthz/ready')[::2] == (503, 'draining\n'), 'draining')
        self.assertEqual(ask(server, '/healthz/live')[0], 200)
        server.create('agents', {'handle': 'late'})
        server.process.send_signal(signal.SIGTERM)  # enough
        self.assertEqual(server.process.wait(COMMAND_LIMIT), 0)
        self.assertEqual(ask(server, '/healthz/live')[0], 0)

    def test_what_was_begun_is_finished(self):
        server = Server(self, '--limits', 'off')
        other = sqlite3.connect(server.store / 'playground.db', isolation_level=None)
        self.addCleanup(other.close)
        other.execute('BEGIN IMMEDIATE')
        answers = []
        writer = threading.Thread(target=lambda: answers.append(server.send('POST', '/agents', {'handle': 'a'})[0]))
        writer.start()
        time.sleep(0.3)  # until it waits for the store
        server.process.send_signal(signal.SIGTERM)
        self.eventually(lambda: ask(server, '/healthz/live')[0] == 0, 'nobody is accepted')
        other.execute('ROLLBACK')
        writer.join()
        self.assertEqual(answers, [200])
        self.assertEqual(server.process.wait(COMMAND_LIMIT), 0)

    def test_watchers_are_told_when_to_come_back(self):
        server = Server(self)
        watchers = []
        for _ in range(20):
            peer = server.raw()
            peer.sendall(b'GET /.site/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
            watchers.append((peer, peer.makefile('rb')))
        for _, lines in watchers:
            self.assertTrue(any(line == b'event: hello\n' for line in iter(lines.readline, b'data: {}\n')))
            lines.readline()
        server.process.send_signal(signal.SIGTERM)
        hints = {int(lines.read().decode().strip().removeprefix('retry: ')) for _, lines in watchers}
        self.assertGreater(len(hints), 5, 'not all at once')
        self.assertTrue(all(100 <= hint <= 4000 for hint in hints), hints)
        self.assertEqual(server.process.wait(COMMAND_LIMIT), 0)

    def test_the_service_manager_is_told(self):
        path = str(self.home / 'notify')
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(path)
        manager.settimeout(COMMAND_LIMIT)
        process = subprocess.Popen(
            [self.playfs_path, 'serve', '--listen', f'127.0.0.1:{free_port()}', '--store', str(self.home / 'store')],
            env={**self.environment('server'), 'NOTIFY_SOCKET': path}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertEqual(manager.recv(100), b'READY=1')
        process.terminate()
        self.assertEqual(manager.recv(100), b'STOPPING=1')
        self.assertEqual(process.wait(COMMAND_LIMIT), 0)


class Manifest(ServeTest):
    def test_says_what_holds_here(self):
        limits = self.home / 'limits.json'
        limits.write_text('{"agents": 7, "spaces": null, "window_seconds": 60}')
        server = Server(self, '--limits', limits, '--host', 'play.example.org')
        status, headers, text = ask(server, '/.site/capabilities.json', headers={'Host': 'play.example.org'})
        said = json.loads(text)
        self.assertEqual((status, headers['Content-Type'], headers['Access-Control-Allow-Origin']),
                         (200, 'application/json', '*'))
        self.assertEqual(ask(server, '/.site/capabilities.json', headers={'If-None-Match': headers['ETag']})[0], 304)
        self.assertEqual(said['versions']['api'], '1.0.0')
        self.assertRegex(said['versions']['software'], r'^playfs \d')
        self.assertEqual((said['limits']['record_bytes'], said['limits']['write_window_seconds']), (16384, 60))
        writes = {collection['name']: collection['writes_per_hour'] for collection in said['collections']}
        self.assertEqual((len(writes), writes['agents'], writes['spaces']), (8, 7, None))
        # Each ability is there.
        abilities = said['abilities']
        self.assertEqual(ask(server, abilities['openapi']['path'])[0], 200)
        for name in writes:
            self.assertEqual(ask(server, abilities['export']['path'].replace('{collection}', name))[0], 200)
        self.assertEqual(ask(server, abilities['events']['path'], 'OPTIONS')[0], 204)
        for path in abilities['sign_in']['request_code'], abilities['sign_in']['verify_code']:
            self.assertEqual(ask(server, path)[0], 405)
        self.assertEqual(ask(server, '/.site/capabilities.json', 'POST')[:1], (405,))
        self.assertEqual(ask(server, '/.site/other')[0], 404)


class Export(ServeTest):
    def lines(self, server, collection, cursor=''):
        text = ask(server, f'/.site/export/{collection}.ndjson' + (f'?cursor={cursor}' if cursor else ''))[2]
        return [json.loads(line) for line in text.splitlines()]

    def test_all_of_a_collection(self):
        server = Server(self, '--limits', 'off')
        connection = server.connect()
        # Of all sizes: many small ones, and some of which each part holds few.
        for n in range(300):
            server.create('messages', {'n': n, 'body': 'x' * (15_000 if 100 <= n < 140 else n % 50)},
                          connection=connection)
        lines = self.lines(server, 'messages')
        self.assertEqual([line['record'] for line in lines if 'record' in line], server.all('messages'))
        self.assertEqual(lines[-1], {'nextCursor': None})
        cursors = [(at, line['nextCursor']) for at, line in enumerate(lines) if line.get('nextCursor')]
        self.assertGreater(len(cursors), 5)
        for at, cursor in cursors:
            self.assertEqual([line['record']['id'] for line in self.lines(server, 'messages', cursor) if 'record' in line],
                             [line['record']['id'] for line in lines[at + 1:] if 'record' in line], 'resumed')
        self.assertEqual(self.lines(server, 'spaces'), [{'nextCursor': None}])
        self.assertEqual(ask(server, '/.site/export/messages.ndjson?cursor=x')[0], 400)
        self.assertEqual(ask(server, '/.site/export/nothing.ndjson')[0], 404)
        self.assertEqual(ask(server, '/.site/export/messages.ndjson', 'POST')[0], 405)
        status, headers, text = ask(server, '/.site/export/messages.ndjson', 'HEAD')
        self.assertEqual((status, text, headers['Content-Length']), (200, '', None))
        # Before HTTP/1.1 there are no chunks.
        peer = server.raw()
        peer.sendall(b'GET /.site/export/messages.ndjson HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n')
        head, _, body = peer.makefile('rb').read().partition(b'\r\n\r\n')
        self.assertNotIn(b'chunked', head)
        self.assertEqual([json.loads(line) for line in body.splitlines()], lines)

    def test_who_does_not_read_costs_nothing(self):
        server = Server(self, '--limits', 'off')
        connection = server.connect()
        for _ in range(400):
            server.create('messages', {'body': 'x' * 15_000}, connection=connection)
        before = memory(server.process)
        lazy = []
        for _ in range(40):
            peer = server.raw()
            peer.sendall(b'GET /.site/export/messages.ndjson HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
            lazy.append(peer)
        for peer in lazy:
            self.assertTrue(peer.recv(100).startswith(b'HTTP/1.1 200 OK'))
        self.assertEqual(len(server.all('messages')), 400, 'others are served')
        self.assertLess(memory(server.process) - before, 40_000_000)


class Steward(ServeTest):
    def serve(self, server, *words, check=True):
        return self.playfs('serve', *words, '--store', server.store, check=check)

    def test_hides_a_record(self):
        server = Server(self, '--limits', 'off')
        thread = server.create('threads', {'title': 'About'})['id']
        before = server.create('messages', {'thread': thread, 'body': 'fine'})
        bad = server.create('messages', {'thread': thread, 'body': 'abominable'})
        revision = server.create('revisions', {'project': 'p', 'message': 'abominable'})['id']
        peer = server.raw()
        peer.sendall(b'GET /.site/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
        events = peer.makefile('r')
        self.assertIn('event: hello\n', iter(events.readline, ''))

        self.serve(server, 'hide', bad['id'])
        self.assertTrue(any(bad['id'] in line for line in iter(events.readline, '')), 'events tell of it')
        status, headers, text = ask(server, f'{BASE}/messages/{bad["id"]}')
        hidden = json.loads(text)['record']
        self.assertEqual((hidden.keys(), hidden['status']), ({'id', 'created_at', 'updated_at', 'status'}, 'hidden'))
        self.assertEqual(hidden['created_at'], bad['created_at'])
        self.assertGreater(hidden['updated_at'], bad['updated_at'])
        self.assertEqual(server.all('messages'), [hidden, before], 'it keeps its place')
        for page in f'/threads/{thread}', '/', f'/records/messages/{bad["id"]}', '/.site/export/messages.ndjson':
            status, _, text = ask(server, page)
            self.assertEqual((status, 'abominable' in text), (200, False), page)
        self.assertIn('hidden by the steward', ask(server, f'/threads/{thread}')[2])
        self.assertEqual(server.send('PATCH', f'/messages/{bad["id"]}', {'body': 'again'})[0], 403)
        self.serve(server, 'hide', revision)
        _, headers, text = ask(server, f'{BASE}/revisions/{revision}')
        self.assertNotIn('abominable', text)
        self.assertEqual(headers['Cache-Control'], 'public, no-cache')
        server.stop()
        server.start()
        self.assertEqual(server.send('GET', f'/messages/{bad["id"]}')[1]['record'], hidden)
        self.assertIn('sound', self.serve(server, 'check').stderr)

        self.serve(server, 'hide', bad['id'], '--undo')
        self.assertEqual(server.send('GET', f'/messages/{bad["id"]}')[1]['record']['body'], 'abominable')
        self.assertEqual(self.serve(server, 'hide', 'nothing', check=False).returncode, 5)
        self.assertNotEqual(self.playfs('serve', 'hide', 'x', '--store', self.home / 'none', check=False).returncode, 0)
        self.assertFalse((self.home / 'none').exists())

    def test_answers_mail(self):
        server = Server(self)
        mail = server.create('domain_mail', {'kind': 'question', 'subject': 'Why?'})['id']
        self.serve(server, 'answer', mail, '-m', 'Because.', '--state', 'answered')
        record = server.send('GET', f'/domain_mail/{mail}')[1]['record']
        self.assertEqual((record['subject'], record['owner_reply'], record['state']), ('Why?', 'Because.', 'answered'))
        self.assertIn('Because.', ask(server, f'/mail/{mail}')[2])
        self.assertNotEqual(self.serve(server, 'answer', 'nothing', '-m', 'x', check=False).returncode, 0)
        self.assertNotEqual(self.serve(server, 'answer', mail, check=False).returncode, 0)
        self.assertIn('16384', self.serve(server, 'answer', mail, '-m', 'x' * 17_000, check=False).stderr)

    def test_revokes_keys(self):
        server = Server(self)
        mails = server.store / 'outbox'

        def sign_in(email):
            before = mails.read_text() if mails.exists() else ''
            for step, body in ('request-code', {}), ('verify-code', None):
                body = body if body is not None else {'code': mails.read_text()[len(before):].partition('code is ')[2].split()[0]}
                connection = server.connect()
                connection.request('POST', f'/api/auth/agent/{step}', json.dumps({'email': email, **body}),
                                   {'Content-Type': 'application/json'})
                answer = json.load(connection.getresponse())
            return answer['apiKey']

        def is_valid(key):
            return server.send('POST', '/agents', {}, {'Authorization': f'Bearer {key}'})[0] == 200

        first, second, other = sign_in('ann@example.org'), sign_in('ann@example.org'), sign_in('bob@example.org')
        listed = [json.loads(line) for line in self.serve(server, 'accounts', '--json').stdout.splitlines()]
        self.assertEqual([(account['email'], len(account['keys'])) for account in listed],
                         [('ann@example.org', 2), ('bob@example.org', 1)])
        newest = listed[0]['keys'][0]['id']
        self.assertNotIn(second.removeprefix('playfs_'), json.dumps(listed))
        self.serve(server, 'accounts', 'revoke', 'Ann@example.org', newest)
        self.assertEqual([is_valid(key) for key in (first, second, other)], [True, False, True])
        self.assertNotEqual(self.serve(server, 'accounts', 'revoke', 'ann@example.org', newest, check=False).returncode, 0)
        self.assertNotEqual(self.serve(server, 'accounts', 'revoke', 'ann@example.org', newest[:3], check=False).returncode, 0)
        self.serve(server, 'accounts', 'revoke', 'ann@example.org')
        self.assertEqual([is_valid(key) for key in (first, second, other)], [False, False, True])
        self.assertNotEqual(self.serve(server, 'accounts', 'revoke', 'eve@example.org', check=False).returncode, 0)


if __name__ == '__main__':
    unittest.main()
