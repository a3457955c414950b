#!/usr/bin/env python3
"""`playfs serve` behind the shipped nginx example, with other ports, paths and certificate."""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import unittest
import uuid

import fixture
import postgres
from serve_fixture import BASE, Server, ServeTest

JSON = ('-H', 'Content-Type: application/json')
NAME = 'playground.example.org'
ANN, BOB = '127.0.0.2', '127.0.0.3'  # two clients; the service sees one peer
BURST, AT_ONCE = 2000, 256  # per client, as in the example


@unittest.skipUnless(shutil.which('nginx') and shutil.which('openssl'), 'nginx is not installed')
class BehindNginx(ServeTest):
    store = None

    def begin(self, limits='spec'):
        self.log = self.home / 'access.ndjson'
        self.server = Server(self, '--host', NAME, '--host', '127.0.0.1', '--proxy', '127.0.0.1', '--limits', limits,
                             '--access-log', self.log, store=self.store)
        self.port, self.plain_port = fixture.free_port(), fixture.free_port()
        self.certificate = self.home / 'fullchain.pem'
        self.command('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                     '-keyout', self.home / 'privkey.pem', '-out', self.certificate, '-subj', f'/CN={NAME}',
                     '-addext', f'subjectAltName=DNS:{NAME},IP:127.0.0.1')
        site = self.configuration()
        for line, changed in ((f'/etc/letsencrypt/live/{NAME}', str(self.home)),
                              ('/var/cache/nginx/playfs', f'{self.home}/cache'),
                              ('127.0.0.1:8787', self.server.address),
                              ('listen 80;', f'listen 127.0.0.1:{self.plain_port};'),
                              ('listen 443 ', f'listen 127.0.0.1:{self.port} ')):
            self.assertIn(line, site)
            site = site.replace(line, changed)
        site = '\n'.join(line for line in site.splitlines() if 'listen [::]' not in line)
        (self.home / 'site.conf').write_text(site)
        temporary = ' '.join(f'{kind}_temp_path {self.home}/{kind};'
                             for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        user = 'user root;' if os.geteuid() == 0 else ''
        configuration = self.home / 'nginx.conf'
        configuration.write_text(f'daemon off; {user} pid {self.home}/pid; error_log {self.home}/errors; '
                                 'worker_rlimit_nofile 4096; events { worker_connections 2048; }\n'
                                 f'http {{ access_log off; {temporary} include {self.home}/site.conf; }}\n')
        nginx = ['nginx', '-e', str(self.home / 'errors'), '-c', str(configuration)]
        self.assertNotRegex(self.command(*nginx, '-t').stderr, r'\[(warn|alert|emerg)')
        process = subprocess.Popen(nginx, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.eventually(lambda: self.ask('/healthz')[2] == b'ok\n', 'nginx answers')

    def configuration(self):
        """The shipped one, with the server's address."""
        return (fixture.ROOT / 'tools/nginx/playfs.conf').read_text()

    def to_nginx(self, *words):
        return ['curl', '--silent', '--noproxy', '*', '--http2', '--cacert', self.certificate, '--resolve',
                f'{NAME}:{self.port}:127.0.0.1', *words]

    def ask(self, path, *words):
        """Status, headers and body over TLS and HTTP/2. The values of a repeated header are joined."""
        done = self.command(*self.to_nginx('--include', *words, f'https://{NAME}:{self.port}{path}'), check=False,
                            text=False)
        if done.returncode:
            return 0, {}, b''
        head, _, body = done.stdout.partition(b'\r\n\r\n')
        first, *lines = head.decode('latin-1').split('\r\n')
        self.assertEqual(first.split()[0], 'HTTP/2')
        headers = {}
        for name, value in (line.split(': ', 1) for line in lines):
            headers[name] = f'{headers[name]}, {value}' if name in headers else value
        return int(first.split()[1]), headers, body

    def post(self, collection, *words, scheme='https', body='{"agent":"a"}'):
        return self.ask(f'{BASE}/{collection}', *JSON, '-H', f'Origin: {scheme}://{NAME}', '-d', body, *words)

    def test_pages_and_records(self):
        self.begin()
        status, headers, body = self.ask('/')
        self.assertEqual((status, b'<html' in body.lower()), (200, True))
        once = {'strict-transport-security': 'max-age=31536000', 'x-content-type-options': 'nosniff',
                'referrer-policy': 'no-referrer'}
        self.assertEqual({name: headers[name] for name in once}, once)
        self.assertEqual(headers['content-security-policy'].count('default-src'), 1)
        self.assertNotIn('/', headers['server'], 'no version')
        self.assertEqual(self.ask('/', '-H', f'If-None-Match: {headers["etag"]}')[0], 304)
        plain = self.command('curl', '--silent', '--noproxy', '*', '--include', '-H', 'Host: elsewhere.example',
                             f'http://127.0.0.1:{self.plain_port}/p?q').stdout
        self.assertIn('308', plain.splitlines()[0])
        self.assertIn(f'Location: https://{NAME}/p?q', plain.splitlines())

        record = json.loads(self.post('revisions')[2])['record']['id']
        for path in (f'{BASE}/revisions', f'{BASE}/revisions/{record}'):
            status, headers, _ = self.ask(path)
            self.assertEqual(status, 200)
            self.assertEqual(self.ask(path, '-H', f'If-None-Match: {headers["etag"]}')[0], 304, path)
        self.assertEqual(self.post('agents', scheme='http')[0], 403, 'a page that came by http')
        large = self.home / 'large'
        for size, says in ((64 << 10, b'record_too_large'), (256 << 10, b'nginx')):
            large.write_text('{"agent":"' + 'x' * size + '"}')
            status, _, body = self.post('agents', body=f'@{large}')
            self.assertEqual((status, says in body), (413, True), size)

    def test_reads_come_from_its_cache(self):
        self.begin()
        record = json.loads(self.post('revisions')[2])['record']['id']
        for _ in range(5):
            status, _, body = self.ask(f'{BASE}/revisions/{record}')
            self.assertEqual((status, json.loads(body)['record']['id']), (200, record))
        log = self.server.send_text('/metrics')
        self.assertIn('playfs_http_requests_total{method="POST",status="2xx"} 1\n', log)
        asked = int(re.search(r'method="GET",status="2xx"\} (\d+)', log)[1])
        self.ask(f'{BASE}/revisions/{record}')
        self.assertIn(f'method="GET",status="2xx"}} {asked + 1}\n', self.server.send_text('/metrics'),
                      'only the question for the metrics came through')
        # New records appear at once: a list is revalidated each time.
        second = json.loads(self.post('revisions')[2])['record']['id']
        listed = json.loads(self.ask(f'{BASE}/revisions')[2])['records']
        self.assertEqual([entry['id'] for entry in listed], [second, record])
        self.assertEqual(self.ask('/metrics')[0], 404)

    def test_events_arrive_at_once(self):
        self.begin()
        stream = subprocess.Popen([str(word) for word in self.to_nginx('--no-buffer', '--include', '--interface', ANN,
                                                                       f'https://{NAME}:{self.port}/.site/events')],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(stream.wait)
        self.addCleanup(stream.stdout.close)
        self.addCleanup(stream.kill)
        head = b''.join(iter(stream.stdout.readline, b'event: hello\n'))
        self.assertTrue(head.startswith(b'HTTP/2 200'), head)
        self.assertIn(b'content-type: text/event-stream', head)
        self.assertNotIn(b'x-accel-buffering', head.lower())
        for _ in range(3):  # each before the next is made
            record = json.loads(self.post('threads', '--interface', BOB)[2])['record']['id']
            while record.encode() not in stream.stdout.readline():
                pass

    def test_clients_are_told_apart_and_not_believed(self):
        self.begin()
        # The address that a client claims for itself does not count.
        answers = [self.post('agents', '--interface', ANN, '-H', f'X-Forwarded-For: 192.0.2.{number}',
                             '-H', 'X-Forwarded-Proto: http')[0] for number in range(31)]
        self.assertEqual(answers, [200] * 30 + [429])
        self.assertEqual(self.post('agents', '--interface', BOB, '-H', f'X-Forwarded-For: {ANN}')[0], 200)
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual([line['client'] for line in lines if line['method'] == 'POST'], [ANN] * 31 + [BOB])

    def test_one_client_does_not_take_all_connections(self):
        self.begin()
        trusting = ssl.create_default_context(cafile=self.certificate)
        slow = f'POST {BASE}/agents HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 9\r\n\r\n'.encode()

        def hold():
            peer = socket.create_connection(('127.0.0.1', self.port), fixture.COMMAND_LIMIT, (ANN, 0))
            secured = trusting.wrap_socket(peer, server_hostname=NAME)
            self.addCleanup(secured.close)
            secured.sendall(slow)
            return secured

        for _ in range(AT_ONCE):
            hold()
        self.eventually(lambda: self.ask('/healthz', '--interface', ANN)[0] == 429, 'one more is refused')
        _, headers, body = self.ask('/healthz', '--interface', ANN)
        self.assertEqual((json.loads(body)['code'], headers['retry-after'], headers['strict-transport-security']),
                         ('rate_limited', '1', 'max-age=31536000'))
        self.assertEqual(self.ask('/healthz', '--interface', BOB)[0], 200)
        self.assertEqual(self.ask('/healthz', '--interface', ANN, '-H', f'X-Forwarded-For: {BOB}')[0], 429)

    def test_a_flood_of_one_client_is_refused(self):
        self.begin()
        record = json.loads(self.post('revisions', '--interface', BOB)[2])['record']['id']
        url = f'https://{NAME}:{self.port}{BASE}/revisions/{record}'
        flood = self.to_nginx('--interface', ANN, '--parallel', '--parallel-max', '100', '--output', '/dev/null',
                              '--write-out', '%{http_code}\\n', f'{url}#[1-{BURST}]')
        answers = []
        while '429' not in answers and len(answers) < 20 * BURST:
            answers += self.command(*flood).stdout.split()
        self.assertEqual(set(answers), {'200', '429'})
        self.assertGreaterEqual(answers.index('429'), BURST // 2, 'a large project is fetched without')
        self.assertEqual(self.ask(f'{BASE}/revisions/{record}', '--interface', BOB)[0], 200)

    @fixture.needs_fuse
    def test_a_commit_of_a_mount(self):
        self.begin(limits='off')
        url = f'https://127.0.0.1:{self.port}'
        mount = self.mount(url, options=('refresh=1', f'cafile={self.certificate}'))
        (mount.directory / 'projects/new').write_text('{"name": "tour"}')
        work = mount.project('tour') / 'work'
        for number in range(200):
            (work / f'f{number}').write_text(f'{number}\n' * 4000)
        self.assertEqual(self.commit(work, 'Tour')[0], 'published')
        other = self.mount(url, who='bob', options=('refresh=1', f'cafile={self.certificate}'))
        self.assert_same_tree(work, other.project('tour') / 'head')


class SeveralServers(BehindNginx):
    """All of the above, and what only concerns several servers, with two of them on one store."""

    def configuration(self):
        self.second = Server(self, '--host', NAME, '--host', '127.0.0.1', '--proxy', '127.0.0.1',
                             '--limits', self.server.options[self.server.options.index('--limits') + 1],
                             '--access-log', self.log, store=self.server.store)
        servers = (fixture.ROOT / 'tools/nginx/playfs-servers.conf').read_text()
        self.assertIn('127.0.0.1:8788', servers)
        servers = servers.replace('127.0.0.1:8788', self.second.address)
        return re.sub(r'(?ms)^upstream playfs \{.*?^\}$', lambda _: servers, super().configuration(), count=1)

    def test_reads_come_from_its_cache(self):
        self.skipTest('its numbers are of one server')

    def test_one_stops_and_nobody_notices(self):
        self.begin(limits='off')
        answers, ended = [], threading.Event()

        def go_on(read):
            while not ended.is_set():
                if read:
                    answers.append(self.ask(f'{BASE}/agents')[0])
                    continue
                # What was under way on a connection that has just been closed is the client's to repeat, with its key.
                words = ('agents', '-H', f'Idempotency-Key: {uuid.uuid4()}')
                status = self.post(*words)[0]
                answers.append(self.post(*words)[0] if status == 502 else status)

        clients = [threading.Thread(target=go_on, args=(number % 2 == 0,)) for number in range(4)]
        self.addCleanup(ended.set)  # or they go on after a failure
        for client in clients:
            client.start()
        for server in self.second, self.server:
            self.eventually(lambda: len(answers) > 20, 'requests are answered')
            self.assertEqual(server.stop(), 0)
            seen = len(answers)
            self.eventually(lambda: len(answers) > seen + 20, 'and go on')
            server.start()
            self.eventually(lambda: b'ok' in self.ask('/healthz')[2], 'it is back')
            time.sleep(2.5)  # fail_timeout, after which nginx asks it again
            answers_before, answers[:] = list(answers), []
            self.assertEqual(set(answers_before), {200})
        ended.set()
        for client in clients:
            client.join()

    @unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
    def test_without_the_database_they_still_answer(self):
        cluster = postgres.Cluster()
        self.addCleanup(cluster.remove)
        self.store = postgres.uri(cluster.folder, cluster.new_database())
        self.begin(limits='off')
        cluster.kill()
        for _ in range(4):  # each of them gets some
            for status, headers, body in self.ask(f'{BASE}/agents'), self.post('agents'):
                self.assertEqual((status, headers['retry-after'], json.loads(body)['code']), (503, '1', 'unavailable'))
        self.assertEqual(self.ask('/healthz/live')[0], 200)
        cluster.start()
        self.eventually(lambda: self.post('agents')[0] == 200, 'they are used again')

    def test_they_count_and_know_together(self):
        self.begin()
        answers = [self.post('agents', '--interface', ANN)[0] for _ in range(31)]
        self.assertEqual(answers, [200] * 30 + [429])
        asked = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual(len([line for line in asked if line['method'] == 'POST']), 31)
        # A code from one server, an account at the other.
        for server, path, form in ((self.server, 'code', {}), (self.second, 'sign-in', None)):
            if form is None:
                form = {'code': re.search(r'code is (\S+)', (self.server.store / 'outbox').read_text())[1]}
            words = [word for name, value in {'email': 'ann@example.org', **form}.items()
                     for word in ('--data-urlencode', f'{name}={value}')]
            done = self.curl('-H', f'Origin: {server.url}', *words, f'{server.url}/account/{path}')
        self.assertEqual(done[0], 303)
        page = self.curl('-H', f'Cookie: {done[1]["set-cookie"].partition(";")[0]}', f'{self.server.url}/account')[2]
        self.assertIn(b'ann@example.org', page)


if __name__ == '__main__':
    fixture.main()
