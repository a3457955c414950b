"""What `playfs serve` offers to those who run it, and to programs that want to know what it offers: health, draining, the
capability manifest, exports. Over raw HTTP, on the real binary."""
import json
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import unittest

import postgres
from fixture import COMMAND_LIMIT, free_port, memory
from serve_fixture import BASE, Server, ServeTest, ask


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

    @unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
    def test_not_ready_while_the_database_is_away_or_cannot_be_written(self):
        cluster = postgres.Cluster()
        self.addCleanup(cluster.remove)
        server = Server(self, store=postgres.uri(cluster.folder, cluster.new_database()))
        self.assertEqual(ask(server, '/healthz/ready')[0], 200)
        lock = subprocess.Popen([postgres.program('psql'), '-XAtq', server.store], stdin=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True, cwd='/')
        self.addCleanup(lock.communicate)
        lock.stdin.write('BEGIN; UPDATE site SET id = id;\n')
        lock.stdin.flush()
        # Who holds the row may hang; the check does not.
        self.eventually(lambda: ask(server, '/healthz/ready')[::2] == (503, 'the store cannot be written\n'), 'locked')
        self.assertEqual((ask(server, '/healthz/live')[0], ask(server, f'{BASE}/projects')[0]), (200, 200))
        lock.stdin.write('ROLLBACK;\n')
        lock.stdin.flush()
        self.eventually(lambda: ask(server, '/healthz/ready')[0] == 200, 'unlocked')
        cluster.kill()
        self.eventually(lambda: ask(server, '/healthz/ready')[::2] == (503, 'the store cannot be written\n'), 'killed')
        self.assertEqual(ask(server, '/healthz/live')[0], 200)
        cluster.start()
        self.eventually(lambda: ask(server, '/healthz/ready')[0] == 200, 'ready again')


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
            peer = server.watch()
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


if __name__ == '__main__':
    unittest.main()
