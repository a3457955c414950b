"""`playfs serve` as a process that can be killed and restarted, and two clients that share no code with it: curl and
plain sockets."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import urllib.parse

from fixture import COMMAND_LIMIT, Fixture, free_port

BASE = '/.site/data'


class Server:
    """One store and one address; the process can be stopped and restarted. `store`: a database; else a directory.
    `program`: another version of playfs."""

    def __init__(self, case, *options, store=None, program=None):
        self.case, self.options = case, [str(option) for option in options]
        self.program = program or case.playfs_path
        self.store = store or case.home / 'store'
        self.address = f'127.0.0.1:{free_port()}'
        self.url = f'http://{self.address}'
        self.process = None
        case.addCleanup(self.kill)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program, 'serve', '--listen', self.address, '--store', str(self.store), *self.options],
            env=self.case.environment('server'), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)

        def answers():
            if self.process.poll() is not None:
                raise AssertionError(f'playfs serve ended with {self.process.returncode}: {self.process.stderr.read()}')
            with contextlib.suppress(OSError):
                return self.send('GET', '/projects')[0] == 200

        self.case.eventually(answers, f'{self.url} answers')

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.process:
            self.process.stderr.close()
        self.process = None

    def stop(self):
        """Sends SIGTERM; returns its exit status."""
        self.process.terminate()
        status = self.process.wait(COMMAND_LIMIT)
        self.process.stderr.close()
        self.process = None
        return status

    def connect(self):
        connection = http.client.HTTPConnection(self.address, timeout=COMMAND_LIMIT)
        connection.connect()
        self.case.addCleanup(connection.close)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def send(self, method, path, body=None, headers=(), connection=None):
        """Status and JSON, over `connection` or a new one. Raises OSError or HTTPException without an answer."""
        own = connection is None
        connection = connection or self.connect()
        try:
            connection.request(method, BASE + path, None if body is None else json.dumps(body),
                               {'Content-Type': 'application/json', 'Origin': self.url, **dict(headers)})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            if own:
                connection.close()

    def send_text(self, target):
        connection = self.connect()
        connection.request('GET', target)
        return connection.getresponse().read().decode()

    def create(self, collection, body, headers=(), connection=None):
        status, answer = self.send('POST', f'/{collection}', body, headers, connection)
        if status != 200:
            raise AssertionError(f'POST {collection}: {status} {answer}')
        return answer['record']

    def page(self, collection, cursor=None, limit=100, connection=None):
        query = {'limit': limit, **({'cursor': cursor} if cursor else {})}
        status, answer = self.send('GET', f'/{collection}?{urllib.parse.urlencode(query)}', connection=connection)
        if status != 200:
            raise AssertionError(f'GET {collection}: {status} {answer}')
        return answer['records'], answer['nextCursor']

    def all(self, collection):
        records, cursor = self.page(collection)
        while cursor:
            more, cursor = self.page(collection, cursor)
            records += more
        return records

    def raw(self):
        """A socket for a client that breaks the rules."""
        peer = socket.create_connection(('127.0.0.1', int(self.address.rpartition(':')[2])), COMMAND_LIMIT)
        self.case.addCleanup(peer.close)
        return peer

    def watch(self):
        """A socket on which events are awaited."""
        peer = self.raw()
        peer.sendall(b'GET /.site/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
        return peer


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


class ServeTest(Fixture):
    def curl(self, *words):
        """Status, headers (lower case) and body of a request made by curl."""
        said = self.command('curl', '--silent', '--show-error', '--noproxy', '*', '--include', '--max-time',
                            COMMAND_LIMIT, *words, text=False).stdout
        head, _, body = said.partition(b'\r\n\r\n')
        first, *lines = head.decode('latin-1').split('\r\n')
        pairs = [line.split(': ', 1) for line in lines]
        return int(first.split()[1]), {name.lower(): value for name, value in pairs}, body

    def secret_file(self, name, secret):
        path = self.home / name
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        with open(descriptor, 'w', encoding='ascii') as file:
            file.write(secret + '\n')
        return path
