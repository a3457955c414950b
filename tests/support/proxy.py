"""Proxies between clients and a service: a slow one and a counting one."""
import collections
import contextlib
import http.client
import http.server
import json
import socket
import threading
import time


class SlowProxy:
    """Listens on `url` and forwards everything to 127.0.0.1:port; requests arrive `delay` seconds late."""

    def __init__(self, port):
        self.delay = 0.0
        self._port = port
        self._over = threading.Event()
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.url = 'http://127.0.0.1:%d' % self._listener.getsockname()[1]
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._over.set()
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed by the other side
            each.close()

    def drop(self):
        """Breaks all connections: what was sent may have arrived, and no answer comes."""
        for each in self._sockets[1:]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed by either side
        del self._sockets[1:]

    def _accept(self):
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(('127.0.0.1', self._port))
            except OSError:
                return
            self._sockets += [client, server]
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source, target, late):
        try:
            while data := source.recv(65536):
                if late and self._over.wait(self.delay):
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one side closed, which ends this connection


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # a client may open all its connections at once


class CountingProxy:
    """An HTTP proxy in front of http://127.0.0.1:port that logs requests and can answer them in rounds.

    While `quiet` is set, answers are held back until no request has come for that many seconds; then all go out
    together. A client sends the requests of one round without waiting for an answer, so the number of rounds is the
    number of sequential round trips, however busy the machine is.

    Requests whose path contains `hanging` (or satisfies it, if it is a function) are not answered until it is None
    again. While `away` is set, connections are closed without an answer.

    `fate` decides about each request ("METHOD /path"): None forwards it, 'lose reply' forwards it and closes the
    connection without the answer, (status, body) is the answer instead of the service's, and a number forwards it to
    that port.

    `raw` comes before that. It gets method, path, headers, body, and a function that returns the service's own answer
    to this or another path as (status, headers, data). The byte strings it returns are sent verbatim, status line
    included, and the connection is closed; None continues as usual.

    Clients ask a service once whether it tells of changes by itself. They get the answer that it does not, and the
    question is not counted: what tests count, hold and lose is requests. With `tells` they get the service's own
    answer, and what it tells is passed on until `cut()`, or silently dropped while `muted` is set. With `buffers`, after
    the first event only what keeps the connection alive is passed on.
    """

    def __init__(self, port):
        self.quiet = None
        self.hanging = None
        self.away = False
        self.tells = self.muted = self.buffers = False
        self.fate = lambda request: None
        self.raw = lambda method, path, headers, body, ask: None
        self._port = port
        self._over = False
        self._hung = 0
        self._told = set()  # sockets of clients that are being told
        self._change = threading.Condition()
        self._round = 0
        self._last_arrival = 0.0
        self._log = []
        self._bytes = 0
        self._server = _Server(('127.0.0.1', 0), self._handler())
        self.url = 'http://127.0.0.1:%d' % self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()

    def close(self):
        with self._change:
            self._over = True
            self._change.notify_all()
        self._server.shutdown()
        self._server.server_close()

    @contextlib.contextmanager
    def counting(self, quiet=None):
        """Counts the requests made inside the block: a Count, complete at its end."""
        with self._change:
            begin, bytes_before, round_before, self.quiet = len(self._log), self._bytes, self._round, quiet
        count = Count()
        try:
            yield count
        finally:
            with self._change:
                count.requests = [line for line, _, _ in self._log[begin:]]
                count.statuses = [status for _, _, status in self._log[begin:]]
                count.by_round = collections.Counter(number - round_before for _, number, _ in self._log[begin:])
                count.rounds = len({number for _, number, _ in self._log[begin:]})
                count.bytes = self._bytes - bytes_before
                self.quiet = None
                self._round = max(self._round, round_before) + 1
                self._change.notify_all()

    def _arrived(self, line):
        with self._change:
            self._last_arrival = time.monotonic()
            self._log.append([line, self._round, None])
            return self._log[-1]

    def requests_so_far(self):
        with self._change:
            return len(self._log)

    def set_hanging(self, part):
        with self._change:
            self.hanging = part
            self._change.notify_all()

    def hung(self):
        """How many requests hang now."""
        with self._change:
            return self._hung

    def cut(self):
        """Breaks the connections on which clients are told of changes."""
        with self._change:
            told, self._told = self._told, set()
        for each in told:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _wait_while_hanging(self, path):
        with self._change:
            self._hung += 1
            while not self._over and self._hangs(path):
                self._change.wait()
            self._hung -= 1

    def _hangs(self, path):
        return self.hanging and (self.hanging(path) if callable(self.hanging) else self.hanging in path)

    def _answered(self, entry, status, size):
        with self._change:
            entry[2] = status
            self._bytes += size
            while self.quiet and self._round == entry[1]:
                left = self._last_arrival + self.quiet - time.monotonic()
                if left > 0:
                    self._change.wait(left)
                else:
                    self._round += 1
                    self._change.notify_all()

    def _handler(proxy):  # inside, `self` is the handler
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            disable_nagle_algorithm = True

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True  # the client went away, or the service did in mid-answer

            def pass_on(self):
                if self.command == 'GET' and not proxy.away and self.path == '/.site/data' and not proxy.tells:
                    return self.describe()
                if self.path.startswith('/.site/events'):
                    return self.tell()
                entry = proxy._arrived(f'{self.command} {self.path}')
                if proxy.away:
                    self.close_connection = True
                    return
                proxy._wait_while_hanging(self.path)
                body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
                pieces = proxy.raw(self.command, self.path, self.headers, body,
                                   lambda path=None: self.ask(proxy._port, body, path))
                if pieces is not None:
                    self.close_connection = True
                    for piece in pieces:
                        self.wfile.write(piece)
                    return
                fate = proxy.fate(entry[0])
                if isinstance(fate, tuple):
                    return self.answer(entry, fate[0], [('Content-Type', 'application/json')], fate[1].encode())
                status, headers, data = self.ask(fate if isinstance(fate, int) else proxy._port, body)
                if fate == 'lose reply':
                    self.close_connection = True
                    return
                self.answer(entry, status, headers, data)

            def describe(self):
                body = b'{"error": "Not found", "code": "not_found"}'
                self.send_response_only(404)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def tell(self):
                """Passes on what the service tells, as it comes."""
                self.close_connection = True
                if proxy.away or not proxy.tells:
                    return
                server = http.client.HTTPConnection('127.0.0.1', proxy._port)
                try:
                    server.request('GET', self.path, None, dict(self.headers))
                    answer = server.getresponse()
                    with proxy._change:
                        proxy._told.add(self.connection)
                    self.send_response_only(answer.status)
                    for name, value in answer.getheaders():
                        if name.lower() not in ('connection', 'transfer-encoding', 'content-length'):
                            self.send_header(name, value)
                    self.end_headers()
                    while data := answer.read1(65536):
                        if not proxy.muted:
                            self.wfile.write(data)
                        while proxy.buffers:
                            self.wfile.write(b':\n\n')
                            time.sleep(0.1)
                finally:
                    server.close()
                    with proxy._change:
                        proxy._told.discard(self.connection)

            def ask(self, port, body, path=None):
                server = http.client.HTTPConnection('127.0.0.1', port)
                try:
                    server.request(self.command, path or self.path, body or None, dict(self.headers))
                    answer = server.getresponse()
                    return answer.status, answer.getheaders(), answer.read()
                finally:
                    server.close()

            def answer(self, entry, status, headers, data):
                proxy._answered(entry, status, len(data))
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ('connection', 'transfer-encoding', 'content-length'):
                        self.send_header(name, value)
                if status != 304:
                    self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_HEAD = pass_on

            def log_message(self, *_):
                pass  # the proxy keeps its own log

        return Handler


def without(lost):
    """For CountingProxy.raw: a service that has lost a message."""
    def lose(_method, path, headers, _body, ask):
        if path.endswith(f'/messages/{lost}'):
            return [b'HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}']
        if '/messages?' not in path:
            return None
        del headers['Accept-Encoding']
        page = json.loads(ask()[2])
        page['records'] = [record for record in page['records'] if record['id'] != lost]
        text = json.dumps(page).encode()
        return [b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(text), text]
    return lose


def before_a_service(test, *limits):
    """The Api of a service for this test, with a CountingProxy in front; both end with the test."""
    api = test.serve(*limits)
    counting = CountingProxy(int(api.origin.rsplit(':', 1)[1]))
    test.addCleanup(counting.close)
    return api, counting


class Count:
    """Requests as "METHOD /path" in order of arrival, their statuses, how many came in each round, and bytes of the
    answers' bodies."""
    requests, statuses, by_round, rounds, bytes = (), (), {}, 0, 0

    def of(self, collection):
        return [line for line in self.requests if f'/{collection}' in line]
