"""The attackers of `playfs serve`: each function is one of them and runs in a process of its own until it is killed.
They share nothing with the service but its documents, and speak HTTP as bytes."""
import contextlib
import gzip
import itertools
import json
import os
import random
import select
import socket
import struct
import sys
import time

BASE = '/.site/data'
NICE = 19
PAUSE = 0.02  # between two rounds of one attacker: most of an attack's cost is the server's time


class Target:
    """The server under attack, and what the attackers know to be there."""

    def __init__(self, facts):
        self.host, _, port = facts['address'].rpartition(':')
        self.port = int(port)
        self.facts = facts

    def connect(self, source=None, window=0, wait=5):
        peer = socket.socket()
        if window:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        peer.settimeout(wait)
        with contextlib.suppress(OSError):
            peer.bind((source or own_address(), 0))
            peer.connect((self.host, self.port))
            return peer
        peer.close()
        return None

    def head(self, method, target, *fields):
        lines = (f'{method} {target} HTTP/1.1', f'Host: {self.facts["address"]}', *fields)
        return '\r\n'.join(lines).encode() + b'\r\n\r\n'

    def post(self, path, body, *fields):
        return self.head('POST', path, 'Content-Type: application/json',
                         f'Origin: http://{self.facts["address"]}', f'Content-Length: {len(body)}', *fields) + body


def own_address(number=None):
    """One of the machine's loopback addresses; never the honest client's."""
    number = random.randrange(256) if number is None else number
    return f'127.66.{number % 256}.{1 + os.getpid() % 200}'


def say(peer, data):
    """Whether all of it was accepted."""
    with contextlib.suppress(OSError):
        peer.sendall(data)
        return True
    return False


def hear(peer):
    """The first bytes of a response, or none."""
    with contextlib.suppress(OSError):
        return peer.recv(65536)
    return b''


def crowd(target, size, begin, go_on=None, window=0, sources=None):
    """Keeps `size` connections that start with `begin` and continue with `go_on`; closed ones are replaced."""
    peers = {}
    for number in itertools.count():
        while len(peers) < size:
            peer = target.connect(next(sources) if sources else None, window)
            if not peer:
                break
            peer.settimeout(0.2)
            if say(peer, begin(number)):
                peer.setblocking(False)
                peers[peer.fileno()] = peer
            else:
                peer.close()
        poller = select.poll()
        for descriptor in peers:
            poller.register(descriptor, select.POLLRDHUP | select.POLLERR | select.POLLHUP)
        for descriptor, _ in poller.poll(200):
            poller.unregister(descriptor)
            peers.pop(descriptor).close()
        for descriptor, peer in list(peers.items()) if go_on else ():
            try:
                go_on(peer, number)
            except BlockingIOError:
                pass
            except OSError:
                peers.pop(descriptor).close()
        time.sleep(0.1)


def ask(target, requests, hands=8, sources=None):
    """Keeps `hands` connections at a time, each of which sends a request and reads the whole response."""
    peers = {}
    while True:
        while len(peers) < hands:
            peer = target.connect(next(sources) if sources else None)
            if not peer:
                break
            if say(peer, next(requests)):
                peers[peer.fileno()] = peer
            else:
                peer.close()
        poller = select.poll()
        for descriptor in peers:
            poller.register(descriptor, select.POLLIN)
        for descriptor, _ in poller.poll(500):
            if not hear(peers[descriptor]):
                peers.pop(descriptor).close()
        time.sleep(PAUSE)


CLOSE = 'Connection: close'


# Requests that do not end.

def slow_heads(target):
    """Nearly the longest head allowed, and then one byte at a time."""
    start = target.head('GET', '/')[:-2]
    crowd(target, 400, lambda _: start + b'X-Padding: ' + b'x' * (15 * 1024), lambda peer, _: peer.send(b'x'))


def many_fields(target):
    """Heads with thousands of tiny fields, each of which costs memory, before a body that never comes."""
    head = target.head('POST', f'{BASE}/messages', 'Content-Length: 100', *[f'{chr(97 + i % 26)}:' for i in range(3500)])
    crowd(target, 300, lambda _: head + b'{')


def slow_bodies(target):
    """All but the last byte of the largest body."""
    body = b'{"text":"' + b'x' * (256 * 1024 - 11)
    whole = target.post(f'{BASE}/messages', body + b'"}')
    crowd(target, 400, lambda _: whole[:-1])


def announced_bodies(target):
    head = target.head('POST', f'{BASE}/messages', f'Content-Length: {256 * 1024}')
    crowd(target, 300, lambda _: head + b'{', lambda peer, _: peer.send(b' '))


def chunk_extensions(target):
    head = target.head('POST', f'{BASE}/messages', 'Transfer-Encoding: chunked')
    piece = b'1;' + b'e' * 15_000
    crowd(target, 200, lambda _: head + piece * 4, lambda peer, _: peer.send(b'e'))


def trailers(target):
    head = target.head('POST', f'{BASE}/messages', 'Transfer-Encoding: chunked')
    crowd(target, 200, lambda _: head + b'1\r\n{\r\n0\r\n' + b'X-T: ' + b't' * 12_000, lambda peer, _: peer.send(b't'))


# Responses that nobody reads.

def never_read(target):
    targets = [*target.facts['raw'], f'{BASE}/agents?limit=100', *target.facts['diffs'], *target.facts['pages']]
    crowd(target, 300, lambda number: target.head('GET', targets[number % len(targets)]), window=4096)


def read_by_drops(target):
    listing = target.head('GET', f'{BASE}/agents?limit=100')
    crowd(target, 200, lambda _: listing, lambda peer, _: peer.recv(64), window=4096)


def pipelines(target):
    many = target.head('GET', f'{BASE}/agents?limit=100') * 200
    crowd(target, 60, lambda _: many, window=4096)


# Connections.

def idle(target):
    sources = (own_address(number // 100) for number in itertools.count())
    crowd(target, 10_000, lambda number: b'' if number % 2 else b'G', sources=sources)


def resets(target):
    request = target.head('GET', f'{BASE}/agents?limit=100')
    while True:
        peers = [peer for peer in (target.connect() for _ in range(20)) if peer]
        for peer in peers:
            say(peer, request)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            peer.close()
        time.sleep(PAUSE)


# Work.

def dear_pages(target):
    pages = itertools.cycle([*target.facts['diffs'], *target.facts['raw'], *target.facts['pages']])
    ask(target, (target.head('GET', page, CLOSE, 'Accept-Encoding: gzip') for page in pages), 32)


def many_addresses(target):
    """One page for each of 256 clients at a time, through a proxy that the service trusts."""
    def requests():
        for number in itertools.count():
            diffs = target.facts['diffs']
            yield target.head('GET', diffs[number % len(diffs)], CLOSE, f'X-Forwarded-For: 198.51.100.{number % 256}')
    ask(target, requests(), 256, itertools.repeat(target.facts['proxy']))


def forged_addresses(target):
    """The same from a client that is no trusted proxy."""
    def requests():
        for number in itertools.count():
            yield target.head('GET', target.facts['diffs'][0], CLOSE, f'X-Forwarded-For: 203.0.113.{number % 256}')
    ask(target, requests(), 64)


def odd_requests(target):
    def requests():
        long = 'x' * 14_000
        for number in itertools.count():
            yield from (target.head('HEAD', target.facts['diffs'][0], CLOSE), target.head('OPTIONS', f'{BASE}/agents', CLOSE),
                        target.head('HEAD', f'{BASE}/agents?limit=100', CLOSE),
                        target.head('GET', f'{BASE}/agents?cursor={long}', CLOSE),
                        target.head('GET', f'/projects?{"a=b&" * 3000}', CLOSE),
                        target.head('GET', '/' + '%2e/' * 3000, CLOSE),
                        target.head('GET', f'{BASE}/agents?limit={"9" * 9000}', CLOSE),
                        target.head('TRACE', '/', CLOSE), b'\x16\x03\x01\x02\x00\x01' + os.urandom(500) + b'\r\n\r\n')
    ask(target, requests(), 16)


def sign_ins(target):
    def requests():
        for number in itertools.count():
            body = json.dumps({'email': f'n{number}@example.org', 'code': 'AAAAAAAA'}).encode()
            yield from (target.post(f'/api/auth/agent/{which}', body, CLOSE) for which in ('request-code', 'verify-code'))
    ask(target, requests(), 8)


def keys(target):
    """A different Idempotency-Key for each request, and one for all."""
    def requests():
        for number in itertools.count():
            body = json.dumps({'handle': f'h{number}'}).encode()
            key = 'the-same' if number % 2 else f'key-{os.getpid()}-{number}'
            yield target.post(f'{BASE}/agents', body, CLOSE, f'Idempotency-Key: {key}')
    ask(target, requests(), 16)


def writes(target):
    """Records of the maximum size, bodies that are not records, and compressed ones that unpack to gigabytes."""
    bomb = gzip.compress(b' ' * (64 << 20))
    def requests():
        large = json.dumps({'handle': 'h' * 15_000}).encode()
        deep = b'[' * 200_000
        for _ in itertools.count():
            yield from (target.post(f'{BASE}/agents', large, CLOSE), target.post(f'{BASE}/agents', deep, CLOSE),
                        target.post(f'{BASE}/agents', bomb, CLOSE, 'Content-Encoding: gzip'),
                        target.post(f'{BASE}/agents', b'{"a":' * 40_000, CLOSE))
    ask(target, requests(), 16)


ALL = [slow_heads, many_fields, slow_bodies, announced_bodies, chunk_extensions, trailers, never_read, read_by_drops,
       pipelines, idle, resets, dear_pages, many_addresses, forged_addresses, odd_requests, sign_ins, keys, writes]


def spin(_):
    """Attacks nothing: keeps the CPU busy in the measurement that attacks are compared with."""
    while True:
        pass


def main():
    os.nice(NICE)
    facts = json.loads(sys.stdin.readline())
    names = {function.__name__: function for function in [*ALL, spin]}
    names[sys.argv[1]](Target(facts))


if __name__ == '__main__':
    main()
