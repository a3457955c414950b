"""Bounds on what strangers can make `playfs serve` spend: the most expensive pages possible, and answers that nobody
reads. Times are only compared with others of the same server."""
import contextlib
import hashlib
import http.client
import random
import socket
import threading
import unittest

from fixture import COMMAND_LIMIT, memory
from serve_fixture import BASE, Server, ServeTest

MIB = 1 << 20
PIECE = 64 << 10  # of a download
HOSTILE = 24
IDLE = 60


class Costs(ServeTest):
    def setUp(self):
        super().setUp()
        self.server = Server(self, '--limits', 'off')
        self.connection = self.server.connect()
        self.project = self.create('projects', {'name': 'p'})

    def create(self, collection, body):
        return self.server.create(collection, body, connection=self.connection)['id']

    def publish(self, files):
        return self.create('revisions', {'project': self.project, 'parents': [], 'agent': 'mallory', 'message': 'm',
                                         'manifest': {'files': files}})

    def file(self, text):
        chunks = [self.create('file_chunks', {'content': text[at:at + 7500]}) for at in range(0, len(text), 7500)]
        return {'h': hashlib.sha256(text.encode()).hexdigest(), 's': len(text), 'c': chunks}

    def large_file(self):
        """A 7 MB file of one repeated chunk: its raw address and size."""
        chunk = self.create('file_chunks', {'content': 'x' * 12_000})
        revision = self.publish({'f': {'h': 'unknown', 'c': [chunk] * 600}})
        return f'/projects/{self.project}/revisions/{revision}/raw/f', 600 * 12_000

    def difference(self, lines):
        """The diff page of two revisions of a file with `lines` short lines, few of which match."""
        choose = random.Random(1)
        sides = [self.publish({'f': self.file(''.join(choose.choice('ab') + '\n' for _ in range(lines)))})
                 for _ in range(2)]
        return f'/projects/{self.project}/diff/{sides[0]}..{sides[1]}', sides

    def get(self, target, source='127.0.0.1'):
        connection = http.client.HTTPConnection(self.server.address, timeout=COMMAND_LIMIT, source_address=(source, 0))
        with contextlib.closing(connection):
            connection.request('GET', target)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def asked_and_not_read(self, target, count):
        """Connections that requested it, and the first bytes of each answer."""
        peers, begun = [], []
        for _ in range(count):
            peer = socket.socket()
            self.addCleanup(peer.close)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.settimeout(COMMAND_LIMIT)
            host, _, port = self.server.address.rpartition(':')
            peer.connect((host, int(port)))
            peer.sendall(f'GET {target} HTTP/1.1\r\nHost: {self.server.address}\r\n\r\n'.encode())
            peers.append(peer)
        for peer in peers:
            begun.append(peer.recv(12))
        return peers, begun

    def test_a_large_file_that_nobody_reads_takes_no_memory(self):
        target, size = self.large_file()
        self.assertEqual(len(self.get(target)[1]), size)
        before = memory(self.server.process)
        peers, begun = self.asked_and_not_read(target, IDLE)
        self.assertEqual(set(begun), {b'HTTP/1.1 200'})
        grown = memory(self.server.process) - before
        # The 60 connections together hold less than a few copies of it.
        self.assert_memory(grown, 5 * size, f'{grown / MIB:.0f} MiB for {IDLE} who do not read')
        # A client that reads on after all gets the whole answer: the last one, whose progress is the most recent.
        answer = begun[-1]
        while len(answer.partition(b'\r\n\r\n')[2]) < size:
            more = peers[-1].recv(1 << 20)
            self.assertTrue(more, f'ended after {len(answer)} bytes')
            answer += more
        self.assertEqual(answer.partition(b'\r\n\r\n')[2], b'x' * size)

    def listing(self):
        """The address and size of the Data API's largest answer."""
        for number in range(100):
            self.create('agents', {'handle': f'{number} ' + 'x' * 16_000})
        target = f'{BASE}/agents?limit=100'
        return target, len(self.get(target)[1])

    def test_a_client_that_stays_keeps_nothing_of_its_answer(self):
        target, size = self.listing()
        before = memory(self.server.process)
        for _ in range(IDLE):
            connection = self.server.connect()
            connection.request('GET', target)
            self.assertEqual(len(connection.getresponse().read()), size)
        grown = memory(self.server.process) - before
        self.assert_memory(grown, IDLE / 4 * size, f'{grown / MIB:.0f} MiB after {IDLE} answers of {size / MIB:.1f} MiB')

    def test_answers_that_nobody_reads_have_a_bound(self):
        listing, size = self.listing()
        before = memory(self.server.process)
        peers, begun = self.asked_and_not_read(listing, 2 * IDLE)
        self.assertEqual(set(begun), {b'HTTP/1.1 200', b'HTTP/1.1 503'})
        grown = memory(self.server.process) - before
        self.assert_memory(grown, IDLE * size, f'{grown / MIB:.0f} MiB for {2 * IDLE} unread answers')
        self.assertEqual(self.get(listing, '127.0.0.2')[0], 200, 'another client')
        for peer in peers:
            peer.close()
        self.eventually(lambda: self.get(listing)[0] == 200, 'what is not held any more can be had again')

    def test_a_page_past_its_bounds_says_so(self):
        page, sides = self.difference(125_000)
        status, shown = self.get(page)
        self.assertEqual(status, 200)
        self.assertIn('it has too many lines to compare here', shown.decode())
        for side in sides:
            raw = f'/projects/{self.project}/revisions/{side}/raw/f'
            self.assertIn(f'href="{raw}"', shown.decode())
            self.assertEqual(len(self.get(raw)[1]), 250_000)

    def test_others_are_answered_before_the_pages_of_one_who_asks_for_many(self):
        dear, _ = self.difference(19_000)
        raw, size = self.large_file()
        ended = threading.Event()
        answered = [0] * HOSTILE

        def ask(number):
            while not ended.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.get(dear, '127.0.0.2')
                    answered[number] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(HOSTILE)]
        self.addCleanup(lambda: [thread.join() for thread in threads])
        self.addCleanup(ended.set)
        for thread in threads:
            thread.start()
        self.eventually(lambda: all(answered), 'they are at it')
        # How many of theirs are answered first; all of them, if there were only one queue.
        for target in (f'{BASE}/projects?limit=1', '/projects'):
            before_us = []
            for _ in range(15):
                count = sum(answered)
                self.assertEqual(self.get(target)[0], 200)
                before_us.append(sum(answered) - count)
            self.assertLess(sorted(before_us)[len(before_us) // 2], HOSTILE / 4, f'{target}: {before_us}')
        # A download waits its turn once, not for each of its pieces.
        count = sum(answered)
        self.assertEqual(len(self.get(raw)[1]), size)
        self.assertLess(sum(answered) - count, size // PIECE // 2)


if __name__ == '__main__':
    unittest.main()
