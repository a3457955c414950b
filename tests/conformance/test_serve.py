"""The guarantees of `playfs serve` to operators and clients, tested on the real binary from outside."""
import collections
import concurrent.futures
import gzip
import http.client
import json
import os
import pathlib
import re
import struct
import threading
import unittest
import uuid

import postgres
from serve_fixture import BASE, Server, ServeTest

JSON = ('-H', 'Content-Type: application/json')
NOT_FOUND, DENIED = 5, 6  # exit codes


class Order(ServeTest):
    def test_paging_while_others_insert_misses_and_doubles_nothing(self):
        """2,000 records read in pages of 100 while 500 more arrive between and during the pages."""
        server = Server(self, '--limits', 'off')

        def insert(numbers):
            connection = server.connect()
            return [server.create('messages', {'n': n}, connection=connection)['id'] for n in numbers]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            parts = [range(first, 2000, 8) for first in range(8)]
            at_start = {record for part in pool.map(insert, parts) for record in part}
        self.assertEqual(len(at_start), 2000)

        turns, inserted = threading.Semaphore(0), []

        def write():
            connection = server.connect()
            for n in range(500):
                turns.acquire()
                inserted.append(server.create('messages', {'late': n}, connection=connection)['id'])

        writer = threading.Thread(target=write)
        writer.start()
        seen, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            turns.release(25)  # they arrive while this page is read, and some before the next
            records, cursor = server.page('messages', cursor)
            seen += [record['id'] for record in records]
            pages += 1
        turns.release(500)
        writer.join()
        self.assertEqual(len(inserted), 500)
        self.assertGreaterEqual(pages, 20)
        self.assertEqual(len(seen), len(set(seen)), 'a record came twice')
        self.assertEqual(at_start - set(seen), set(), 'a record was missed')
        self.assertEqual({record['id'] for record in server.all('messages')}, at_start | set(inserted))

    def test_64_writers_across_a_kill(self):
        """Writers that share keys, have their own or use none, while the server is killed and restarted."""
        server = Server(self, '--limits', 'off')
        answered = threading.Semaphore(0)
        ids, unsure, lock = collections.defaultdict(set), [], threading.Lock()

        def post(connection, body, key):
            headers = {'Idempotency-Key': key} if key else {}
            status = 503
            while status == 503:  # it is starting: nothing was written
                status, answer = server.send('POST', '/messages', {'body': body}, headers, connection)
            self.assertEqual(status, 200, answer)
            return answer['record']['id']

        def write(number):
            # Writers 0 to 31 share their keys in pairs, 32 to 55 have their own, the rest have none.
            name = f'pair {number // 2}' if number < 32 else f'own {number}'
            connection = self._reconnect(server)  # a late starter may find the server killed
            for i in range(24):
                body, keyed = f'{name} {i}', number < 56
                key = str(uuid.uuid5(uuid.NAMESPACE_OID, body)) if keyed else None
                while True:
                    try:
                        record = post(connection, body, key)
                        with lock:
                            ids[body].add(record)
                        answered.release()
                        break
                    except (OSError, http.client.HTTPException):
                        connection = self._reconnect(server)
                        if not keyed:  # it may or may not have been created, so it must not be sent again
                            with lock:
                                unsure.append(body)
                            answered.release()
                            break

        writers = [threading.Thread(target=write, args=(number,)) for number in range(64)]
        for writer in writers:
            writer.start()
        for _ in range(400):
            answered.acquire()
        server.kill()
        server.start()
        for writer in writers:
            writer.join()

        stored = collections.Counter(record['body'] for record in server.all('messages'))
        by_id = {record['id']: record['body'] for record in server.all('messages')}
        for body, records in ids.items():
            self.assertEqual(len(records), 1, f'{body} has two records')
            self.assertEqual(by_id.get(*records), body, 'an acknowledged record is lost')
        self.assertEqual([body for body, count in stored.items() if count > 1], [], 'doubled')
        self.assertEqual(set(stored) - set(ids) - set(unsure), set())
        self.assertEqual(len(ids), 24 * (16 + 24 + 8) - len(unsure))
        self.assertLessEqual(len(unsure), 16, 'a kill costs each of eight writers a request, two if it came at once')

    def _reconnect(self, server):
        connections = []

        def connects():
            try:
                connections.append(server.connect())
            except OSError:
                return False
            return True

        self.eventually(connects, 'the server is back')
        return connections[0]


class Rules(ServeTest):
    def test_limits_outlive_a_restart_and_count_addresses(self):
        server = Server(self, '--proxy', '127.0.0.1')

        def post(address, key=None):
            headers = {'X-Forwarded-For': address, **({'Idempotency-Key': key} if key else {})}
            return server.send('POST', '/agents', {'handle': 'a'}, headers)

        first = post('192.0.2.1', 'the first')
        self.assertEqual([post('192.0.2.1')[0] for _ in range(29)], [200] * 29)
        server.kill()
        server.start()
        status, problem = post('192.0.2.1')
        self.assertEqual((status, problem['code']), (429, 'rate_limited'))
        self.assertGreater(problem['retry_after'], 3000)
        status, headers, _ = self.curl('-X', 'POST', *JSON, '-H', f'Origin: {server.url}', '-d', '{}',
                                       '-H', 'X-Forwarded-For: 192.0.2.1', f'{server.url}{BASE}/agents')
        self.assertEqual(status, 429)
        self.assertGreater(int(headers['retry-after']), 3000)
        self.assertEqual(post('192.0.2.1', 'the first'), first, 'a repeat is no write')
        self.assertEqual(post('192.0.2.2')[0], 200, 'another client')
        # Counts the client's network, not single addresses.
        self.assertEqual([post(f'2001:db8::{n:x}')[0] for n in range(1, 31)], [200] * 30)
        self.assertEqual(post('2001:db8::ffff')[0], 429)

    def test_limits_from_a_file(self):
        limits = self.home / 'limits.json'
        limits.write_text('{"agents": 2}')
        server = Server(self, '--limits', limits)
        self.assertEqual([server.send('POST', '/agents', {})[0] for _ in range(3)], [200, 200, 429])

    def test_sign_in_makes_an_owner(self):
        steward = self.secret_file('steward', 'the-key-of-the-steward')
        server = Server(self, '--steward-key', steward)
        account = f'{server.url}/api/auth/agent'
        status, _, body = self.curl(*JSON, '-d', '{"email":"Ann@example.org"}', f'{account}/request-code')
        answer = json.loads(body)
        self.assertEqual((status, answer['success'], answer['requiresCodeEntry']), (200, True, True))
        outbox = (server.store / 'outbox')
        self.assertEqual(outbox.stat().st_mode & 0o777, 0o600)
        code = re.search(r'code is (\S+)', outbox.read_text())[1]
        self.assertEqual(self.curl(*JSON, '-d', '{"email":"ann@example.org","code":"12345678"}',
                                   f'{account}/verify-code')[0], 401)
        verify = json.dumps({'email': 'ann@example.org', 'code': code})
        status, headers, body = self.curl(*JSON, '-d', verify, f'{account}/verify-code')
        answer = json.loads(body)
        self.assertEqual((status, answer['email'], answer['isNewUser']), (200, 'ann@example.org', True))
        self.assertEqual(headers['cache-control'], 'no-store')
        self.assertEqual(self.curl(*JSON, '-d', verify, f'{account}/verify-code')[0], 401, 'a code is good once')

        def authorised(key):
            return {'Authorization': f'Bearer {key}'}

        mail = server.create('domain_mail', {'kind': 'idea', 'subject': 's'}, authorised(answer['apiKey']))
        path = f'/domain_mail/{mail["id"]}'
        self.assertEqual(server.send('PATCH', path, {'subject': 't'})[0], 403)
        self.assertEqual(server.send('PATCH', path, {'subject': 't'}, authorised('playfs_0'))[0], 401)
        server.kill()
        server.start()
        self.assertEqual(server.send('PATCH', path, {'subject': 't'}, authorised(answer['apiKey']))[0], 200)
        self.assertEqual(server.send('PATCH', path, {'owner_reply': 'x'}, authorised(answer['apiKey']))[0], 403)
        status, patched = server.send('PATCH', path, {'owner_reply': 'x'}, authorised('the-key-of-the-steward'))
        self.assertEqual((status, patched['record']['owner_reply'], patched['record']['subject']), (200, 'x', 't'))
        stored = b''.join(file.read_bytes() for file in server.store.glob('playground.db*'))
        self.assertIn(b'ann@example.org', stored)
        for secret in (answer['apiKey'], code.replace('-', ''), 'the-key-of-the-steward'):
            self.assertNotIn(secret.encode(), stored)

    def test_a_secret_is_for_one_user(self):
        """As systemd passes it on: owned by root, with an ACL for the service's user; the mode shows the ACL's mask."""
        secret = self.secret_file('steward', 'the-key-of-the-steward')

        def allow(*entries):
            packed = b''.join(struct.pack('<HHI', *entry) for entry in ((1, 4, 0xffffffff), *entries, (32, 0, 0xffffffff)))
            os.setxattr(secret, 'system.posix_acl_access', struct.pack('<I', 2) + packed)

        user, nobody, group, mask = (2, 4, os.geteuid()), (2, 4, 65534), (4, 0, 0xffffffff), (16, 4, 0xffffffff)
        allow(user, group, mask)
        self.assertEqual(secret.stat().st_mode & 0o777, 0o440)
        Server(self, '--steward-key', secret).kill()
        for others in ((user, nobody, group, mask), (user, (4, 4, 0xffffffff), mask), (user, group, (8, 4, 65534), mask)):
            allow(*others)
            done = self.playfs('serve', '--store', self.home / 'other', '--steward-key', secret, check=False)
            self.assertEqual(done.returncode, DENIED, others)
            self.assertIn('readable by others', done.stderr)
        os.removexattr(secret, 'system.posix_acl_access')
        link = self.home / 'link'
        link.symlink_to(secret)
        secret.chmod(0o600)
        for refused in link, self.home:
            self.assertNotEqual(self.playfs('serve', '--steward-key', refused, check=False).returncode, 0, refused)

    def test_only_its_own_hosts_and_origins(self):
        server = Server(self, '--host', 'play.example.org', '--limits', 'off')
        target = f'{server.url}{BASE}/agents'

        def post(*headers):
            return self.curl(*JSON, '-d', '{}', *(word for header in headers for word in ('-H', header)), target)[0]

        self.assertEqual(post('Host: play.example.org', 'Origin: https://play.example.org'), 200)
        self.assertEqual(post('Host: play.example.org', 'Origin: https://play.example.org.evil.example'), 403)
        self.assertEqual(post('Host: play.example.org', 'Origin: null'), 403)
        self.assertEqual(post('Host: play.example.org'), 403)
        self.assertEqual(post('Host: rebound.example', 'Origin: http://rebound.example'), 421)
        for twice in (('Origin: https://play.example.org', 'Origin: https://evil.example'),
                      ('Origin: https://evil.example', 'Origin: https://play.example.org')):
            self.assertEqual(post('Host: play.example.org', *twice), 400)


class Strangers(ServeTest):
    def test_cannot_keep_an_owner_from_signing_in(self):
        server = Server(self, '--limits', 'off')
        self.besiege(server, server.store / 'outbox')

    @unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
    def test_cannot_with_postgres_either(self):
        cluster = postgres.Cluster()
        self.addCleanup(cluster.remove)
        server = Server(self, '--limits', 'off', store=postgres.uri(cluster.folder, cluster.new_database()))
        data = pathlib.Path(self.environment('server')['XDG_DATA_HOME'])
        self.besiege(server, data / 'playfs/served/outbox')

    def besiege(self, server, outbox):
        """Twenty clients ask for as many codes as they may."""
        def call(step, client, **body):
            connection = http.client.HTTPConnection(server.address, timeout=60, source_address=(client, 0))
            connection.request('POST', f'/api/auth/agent/{step}', json.dumps({'email': 'ann@example.org', **body}),
                               {'Content-Type': 'application/json', 'Origin': server.url})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        def newest_code():
            return re.findall(r'code is (\S+)', outbox.read_text())[-1]

        for client in range(20):
            for _ in range(5):
                self.assertEqual(call('request-code', f'127.0.9.{client + 1}'), 200)
        self.assertEqual(outbox.read_text().count('To: ann@example.org'), 10, 'the mailbox is not flooded')
        for again in range(2):
            self.assertEqual(call('request-code', f'127.0.0.{again + 5}'), 200)
            self.assertEqual(call('verify-code', f'127.0.0.{again + 5}', code=newest_code()), 200)
        self.assertEqual(outbox.read_text().count('To: ann@example.org'), 11, 'one more after signing in')


class OtherSites(ServeTest):
    def test_read_only_what_the_internet_finds(self):
        local = ('192.168.1.5', '10.0.0.1', 'nas.local', 'nas', 'localhost')
        public = ('play.example.org', '203.0.113.5')
        server = Server(self, '--limits', 'off', *(word for host in local + public for word in ('--host', host)))
        for host in local + public:
            for words in (), ('-X', 'OPTIONS', '-H', 'Access-Control-Request-Method: GET'):
                status, headers, _ = self.curl('-H', f'Host: {host}', '-H', 'Origin: https://evil.example', *words,
                                               f'{server.url}{BASE}/projects')
                self.assertEqual((status, headers.get('access-control-allow-origin')),
                                 (204 if words else 200, '*' if host in public else None), host)


class Reading(ServeTest):
    def setUp(self):
        super().setUp()
        self.log = self.home / 'access.ndjson'
        self.server = Server(self, '--limits', 'off', '--access-log', self.log)
        self.url = self.server.url + BASE

    def test_what_is_known_is_not_sent_again(self):
        project = self.server.create('projects', {'name': 'p', 'notes': 'x' * 2000})
        revision = self.server.create('revisions', {'project': project['id']})
        for target, cached in ((f'{self.url}/projects/{project["id"]}', 'public, no-cache'),
                               (f'{self.url}/revisions/{revision["id"]}', 'public, max-age=31536000, immutable'),
                               (f'{self.url}/projects', 'public, no-cache'),
                               (f'{self.server.url}/projects', 'public, no-cache')):
            with self.subTest(target=target):
                status, headers, body = self.curl(target)
                self.assertEqual((status, headers['cache-control']), (200, cached))
                self.assertRegex(headers['etag'], '^"[^"]+"$')
                again, known, nothing = self.curl('-H', f'If-None-Match: "x", {headers["etag"]}', target)
                self.assertEqual((again, known['etag'], nothing), (304, headers['etag'], b''))
                head, measured, nothing = self.curl('--head', target)
                self.assertEqual((head, measured['etag'], nothing), (200, headers['etag'], b''))
                self.assertEqual(int(measured['content-length']), len(body))
        before = self.curl(f'{self.url}/projects/{project["id"]}')[1]['etag']
        self.server.send('PATCH', f'/projects/{project["id"]}', {'name': 'q'})
        status, headers, _ = self.curl('-H', f'If-None-Match: {before}', f'{self.url}/projects/{project["id"]}')
        self.assertEqual(status, 200)
        self.assertNotEqual(headers['etag'], before)

    def test_compressed_where_asked(self):
        project = self.server.create('projects', {'name': 'p', 'notes': 'x' * 2000})
        for target in (f'{self.url}/projects/{project["id"]}', f'{self.url}/projects',
                       f'{self.server.url}/projects/{project["id"]}'):
            with self.subTest(target=target):
                _, plain, text = self.curl(target)
                _, packed, small = self.curl('-H', 'Accept-Encoding: gzip', target)
                self.assertNotIn('content-encoding', plain)
                self.assertEqual(packed['content-encoding'], 'gzip')
                self.assertEqual(gzip.decompress(small), text)
                self.assertLess(len(small), len(text) / 2)
                self.assertEqual((plain['vary'], packed['vary']), ('Accept-Encoding', 'Accept-Encoding'))
                self.assertNotEqual(plain['etag'], packed['etag'])
                status, headers, _ = self.curl('-H', 'Accept-Encoding: gzip', '-H', f'If-None-Match: {packed["etag"]}',
                                               target)
                self.assertEqual((status, headers['etag'], headers['vary']), (304, packed['etag'], 'Accept-Encoding'))

    def test_pages_of_other_sites_do_not_read_what_only_this_machine_can(self):
        headers = self.curl('-H', 'Origin: https://elsewhere.example', f'{self.url}/agents')[1]
        self.assertNotIn('access-control-allow-origin', headers)

    def test_pages_of_other_sites_may_read_and_not_write(self):
        server = Server(self, '--host', 'play.example.org')
        self.url = server.url + BASE
        elsewhere = ('-H', 'Host: play.example.org', '-H', 'Origin: https://elsewhere.example')
        for target in (f'{self.url}/agents', f'{self.url}/agents/none'):
            self.assertEqual(self.curl(*elsewhere, target)[1]['access-control-allow-origin'], '*')
            status, headers, _ = self.curl('-X', 'OPTIONS', *elsewhere, '-H', 'Access-Control-Request-Method: POST',
                                           target)
            self.assertEqual(status, 204)
            self.assertEqual(headers['access-control-allow-methods'], 'GET, HEAD, OPTIONS')
        status, headers, _ = self.curl(*elsewhere, *JSON, '-d', '{}', f'{self.url}/agents')
        self.assertEqual(status, 403)
        self.assertNotIn('access-control-allow-origin', headers)

    def test_the_operator_sees_how_it_goes(self):
        self.assertEqual(self.curl(f'{self.server.url}/healthz')[::2], (200, b'ok\n'))
        self.curl('-H', 'Authorization: Bearer secret', f'{self.url}/agents/none?a="b"')
        metrics = self.curl(f'{self.server.url}/metrics')[2].decode()
        self.assertRegex(metrics, r'playfs_http_requests_total\{method="GET",status="4xx"\} 1\n')
        for line in metrics.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{[^{}]*\})? [0-9.e+-]+)$')
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        asked = [line for line in lines if 'none' in line['target']]
        self.assertEqual([(line['method'], line['status'], line['client']) for line in asked],
                         [('GET', 404, '127.0.0.1')])
        self.assertNotIn('secret', self.log.read_text())
        self.assertEqual(self.log.stat().st_mode & 0o777, 0o600)


class Store(ServeTest):
    def modes(self, store):
        return {path.name: path.stat().st_mode & 0o777 for path in (store, store / 'playground.db')}

    def test_what_others_could_write_is_made_private_and_told(self):
        server = Server(self, '--limits', 'off')
        server.stop()
        store = server.store
        for start in 'serve', 'check':
            store.chmod(0o777)
            (store / 'playground.db').chmod(0o666)
            if start == 'check':
                said = self.playfs('serve', 'check', '--store', store).stderr
            else:
                server.start()
                server.process.terminate()
                said = server.process.communicate()[1]
                server.process = None
            self.assertEqual(self.modes(store), {'store': 0o700, 'playground.db': 0o600}, start)
            self.assertEqual(said.count('others could write to'), 2, said)
        self.assertNotIn('others could write to', self.playfs('serve', 'check', '--store', store).stderr)

    def test_it_may_be_named_by_a_link(self):
        server = Server(self, '--limits', 'off')
        server.stop()
        link = self.home / 'link'  # as systemd makes one with DynamicUser=
        link.symlink_to(server.store)
        server.store = link
        server.start()
        record = server.create('messages', {'body': 'x'})
        server.stop()
        server.store = link.resolve()
        server.start()
        self.assertEqual(server.all('messages'), [record])
        self.assertIn('sound: 1 records', self.playfs('serve', 'check', '--store', link).stderr)

    def test_a_check_changes_no_directory_without_a_store(self):
        place = self.home / 'share'
        place.mkdir()
        place.chmod(0o777)
        done = self.playfs('serve', 'check', '--store', place, check=False)
        self.assertEqual(done.returncode, NOT_FOUND, done.stderr)
        self.assertEqual(place.stat().st_mode & 0o7777, 0o777)

    @unittest.skipUnless(os.geteuid() == 0, 'only root may give a directory away')
    def test_a_directory_of_another_user_is_refused(self):
        server = Server(self, '--limits', 'off')
        server.stop()
        os.chown(server.store, 65534, 65534)
        for words in ('--listen', server.address), ('check',):
            done = self.playfs('serve', *words, '--store', server.store, check=False)
            self.assertEqual(done.returncode, DENIED, done.stderr)
            self.assertIn('belongs to another user', done.stderr)


class Operation(ServeTest):
    def test_a_log_that_nobody_reads_stops_nobody(self):
        pipe = self.home / 'access'
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        server = Server(self, '--limits', 'off', '--access-log', pipe)
        connection = server.connect()
        for n in range(1000):
            connection.request('GET', f'{BASE}/projects?limit=1&nothing={"n" * 100}{n}')
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, 200)
        lines = os.read(reader, 1 << 20).decode().splitlines()
        self.assertLess(len(lines), 1000, 'the pipe was full')
        for entry in map(json.loads, lines):
            if 'nothing' in entry['target']:  # before, it may have been starting
                self.assertEqual(entry['status'], 200)
        os.close(reader)
        connection.request('GET', f'{BASE}/projects')
        self.assertEqual(connection.getresponse().status, 200, 'its reader is gone')
        connection.close()
        done = self.command(self.playfs_path, 'serve', '--store', self.home / 'second', '--access-log', pipe,
                            check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('a pipe that nobody reads', done.stderr)

    def test_what_is_no_http_is_answered_and_ends_the_connection(self):
        server = Server(self, '--limits', 'off')
        chunked = b'POST /.site/data/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n'
        after = b'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
        for wrong in b'GET / HTTP/1.1\r\n\r\n', b'GET /healthz HTTP/1.1\r\n\r\n', chunked + b'0x2\r\n{}\r\n0\r\n\r\n':
            with self.subTest(wrong):
                peer = server.raw()
                peer.settimeout(20)
                peer.sendall(wrong + after)
                answer = b''
                while part := peer.recv(65536):
                    answer += part
                self.assertTrue(answer.startswith(b'HTTP/1.1 400 '), answer)
                self.assertEqual(answer.count(b'HTTP/1.1 '), 1, answer)
        peer = server.raw()
        peer.sendall(b'GET /healthz HTTP/1.0\r\n\r\n')
        self.assertTrue(peer.recv(65536).startswith(b'HTTP/1.1 200 '))

    def test_slow_and_oversized_requests_do_not_stop_others(self):
        server = Server(self, '--limits', 'off')
        slow = [server.raw() for _ in range(300)]
        for peer in slow:
            peer.sendall(b'POST /.site/data/agents HTTP/1.1\r\nHost: x\r\nContent-Le')
        large = [server.raw() for _ in range(20)]
        for peer in large[:10]:
            peer.sendall(b'POST /.site/data/agents HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n')
        for peer in large[10:]:
            peer.sendall(b'POST /.site/data/agents HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
                         + b'10000\r\n' + b'x' * 65536 + b'\r\n')
        for _ in range(10):
            record = server.create('agents', {'handle': 'a'})
            self.assertEqual(server.send('GET', f'/agents/{record["id"]}')[0], 200)
            for peer in slow:
                peer.sendall(b'n')
        for peer in large[10:]:
            for _ in range(4):
                peer.sendall(b'10000\r\n' + b'x' * 65536 + b'\r\n')
        for peer in large:
            answer = peer.recv(4096)
            self.assertTrue(answer.startswith(b'HTTP/1.1 413 '), answer)
            self.assertIn(b'"record_too_large"', answer)
        self.assertEqual(server.send('GET', '/agents')[0], 200)

    def test_a_copy_is_taken_while_it_is_served(self):
        server = Server(self, '--limits', 'off')
        ended = threading.Event()

        def write():
            connection = server.connect()
            while not ended.is_set():
                server.create('messages', {'body': 'x' * 500}, connection=connection)

        records = {server.create('messages', {'n': n})['id'] for n in range(50)}
        writer = threading.Thread(target=write)
        writer.start()
        copy = self.home / 'copy'
        copy.mkdir(mode=0o700)
        self.playfs('serve', 'backup', copy / 'playground.db', '--store', server.store)
        ended.set()
        writer.join()
        self.assertIn('sound', self.playfs('serve', 'check', '--store', server.store).stderr)
        self.assertEqual(server.stop(), 0)
        server.store = copy
        server.start()
        self.assertLessEqual(records, {record['id'] for record in server.all('messages')})

    def test_damage_is_found(self):
        server = Server(self, '--limits', 'off')
        for n in range(200):
            server.create('messages', {'body': 'y' * 500})
        self.assertEqual(server.stop(), 0)
        store = server.store / 'playground.db'
        content = bytearray(store.read_bytes())
        # In a record's text, which the database's own checks do not cover.
        at = content.rindex(b'"body":"yyy')
        content[at:at + 8] = b'"body"::'
        store.write_bytes(content)
        self.assertNotEqual(self.playfs('serve', 'check', '--store', server.store, check=False).returncode, 0)


if __name__ == '__main__':
    unittest.main()
