#!/usr/bin/env python3
"""Clients of several servers, many in a process: they write, or follow the messages from what they have stored.

    order_clients.py write  --clients N --each M ADDRESS…
    order_clients.py time   --clients N ADDRESS…        stop paging at the newest created_at that they know
    order_clients.py cursor --clients N --site ID ADDRESS…     events, from the newest cursor that they know

Those who follow end when a line on standard input has said the number of the last change. Prints a line of JSON for each
client: how many ids it met or wrote; a hash of them in their order; a sum that does not depend on the order.
"""
import argparse
import contextlib
import hashlib
import http.client
import itertools
import json
import re
import socket
import sys
import threading
import time

LIMIT = 60  # seconds for one answer
EVENT = re.compile(rb'id: ([\w-]+\.(\d+)[.\d]*)\nevent: change\ndata: \{"collection":"messages","id":"([^"]+)"')
RECORD = re.compile(rb'\{"id":"([^"]+)","created_at":"([^"]+)"')
CURSOR = re.compile(rb'"nextCursor":"([^"]+)"')
HOP = 1000  # events from one server, until the next one is asked


class Ids:
    """Ids in the order in which they were met, of which only hashes are kept."""

    def __init__(self):
        self.count, self.sum, self.hash = 0, 0, hashlib.sha256()

    def add(self, identifier):
        self.count += 1
        self.sum += int.from_bytes(hashlib.blake2b(identifier, digest_size=8).digest(), 'big')
        self.hash.update(identifier + b'\n')

    def summary(self):
        return {'count': self.count, 'sum': self.sum % 2**64, 'hash': self.hash.hexdigest()}


class Poster:
    """One connection on which messages are posted; much cheaper than http.client."""

    def __init__(self, address):
        self.address, self.peer = address, socket.create_connection(address.split(':'), LIMIT)
        self.peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, body):
        """The id of the new record."""
        self.peer.sendall(b'POST /.site/data/messages HTTP/1.1\r\nHost: %b\r\nOrigin: http://%b\r\n'
                          b'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b'
                          % (self.address.encode(), self.address.encode(), len(body), body))
        answer = b''
        while True:
            head, end, rest = answer.partition(b'\r\n\r\n')
            if end and len(rest) >= int(re.search(rb'(?i)content-length: (\d+)', head)[1]):
                break
            got = self.peer.recv(1 << 16)
            if not got:
                raise ConnectionError(f'{self.address} has hung up after {answer!r}')
            answer += got
        if b' 200 ' not in head[:16]:
            raise AssertionError(answer.decode())
        return re.search(rb'"id":"([^"]+)"', rest)[1]


def write(address, each):
    ids, poster = Ids(), Poster(address)
    for number in range(each):
        ids.add(poster.post(b'{"body":"%d"}' % number))
    return ids


class Pager:
    """Pages of messages, newest first, at one server after another."""

    def __init__(self, addresses):
        self.connections = itertools.cycle([http.client.HTTPConnection(address, timeout=LIMIT) for address in addresses])

    def newer_than(self, stored):
        """(id, time) of each record after that time, newest first."""
        connection, met, cursor = next(self.connections), [], ''
        while cursor is not None:
            answer = self.get(connection, '/.site/data/messages?limit=100' + (f'&cursor={cursor}' if cursor else ''))
            text = answer.read()
            if answer.status != 200:
                raise AssertionError(text)
            page = RECORD.findall(text)  # a third of the time that json takes
            met += [record for record in page if record[1] > stored]
            older = CURSOR.search(text)
            cursor = older[1].decode() if older and page[-1][1] > stored else None
        return met

    @staticmethod
    def get(connection, path):
        """Asks again if the server has closed the connection, which was idle while the others were in use."""
        for _ in range(2):
            try:
                connection.request('GET', path)
                return connection.getresponse()
            except ConnectionError:
                connection.close()
        raise ConnectionError(f'hung up twice: {path}')


def follow_times(addresses, last):
    ids, pager, stored = Ids(), Pager(addresses), b''
    while True:
        is_last = last.is_set()
        met = pager.newer_than(stored)
        for identifier, _ in reversed(met):
            ids.add(identifier)
        if met:
            stored = met[0][1]
        elif is_last:
            return ids
        time.sleep(0.2)


def follow_cursor(addresses, site, last):
    ids, number, cursor = Ids(), 0, f'{site}.0'
    for address in itertools.cycle(addresses):
        end = ids.count + HOP
        with contextlib.closing(http.client.HTTPConnection(address, timeout=LIMIT)) as connection:
            connection.request('GET', f'/.site/events?after={cursor}')
            answer, text = connection.getresponse(), b''
            while ids.count < end:
                got = answer.read1(1 << 16)
                if not got:  # the server has hung up
                    break
                *whole, text = (text + got).split(b'\n\n')
                for event in map(EVENT.match, whole):
                    if event:
                        cursor, number = event[1].decode(), int(event[2])
                        ids.add(event[3])
                if last.is_set() and number >= last.number:
                    return ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('kind', choices=('write', 'time', 'cursor'))
    parser.add_argument('addresses', nargs='+')
    parser.add_argument('--clients', type=int, required=True)
    parser.add_argument('--each', type=int)
    parser.add_argument('--site')
    options = parser.parse_args()
    last, failures = threading.Event(), []
    out = threading.Lock()

    def run(number):
        # Each begins at another server.
        turn = number % len(options.addresses)
        addresses = options.addresses[turn:] + options.addresses[:turn]
        try:
            ids = (write(addresses[0], options.each) if options.kind == 'write' else
                   follow_times(addresses, last) if options.kind == 'time' else
                   follow_cursor(addresses, options.site, last))
            with out:
                print(json.dumps(ids.summary()), flush=True)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(options.clients)]
    for thread in threads:
        thread.start()
    if options.kind != 'write':
        last.number = int(sys.stdin.readline())
        last.set()
    for thread in threads:
        thread.join()
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
