"""What strangers can make `playfs serve` spend: pages that are as dear as they can be made, and answers that nobody
reads. Nothing is timed but by comparison with the same server."""
import contextlib
import hashlib
import http.client
import os
import pathlib
import random
import re
import socket
import threading
import time
import unittest

from rig import COMMAND_LIMIT
from serve_rig import BASE, Server, ServeTest

MIB = 1 << 20
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
        """One chunk, named so often that it makes 7 MB: the address of its bytes, and how many they are."""
        chunk = self.create('file_chunks', {'content': 'x' * 12_000})
        revision = self.publish({'f': {'h': 'unknown', 'c': [chunk] * 600}})
        return f'/projects/{self.project}/revisions/{revision}/raw/f', 600 * 12_000

    def dear_page(self):
        """Files of very many short lines, few of which are the same on both sides."""
        choose = random.Random(1)
        sides = []
        for _ in range(2):
            files = {}
            for number in range(4):
                files[str(number)] = self.file(''.join(choose.choice('ab') + '\n' for _ in range(125_000)))
            sides.append(self.publish(files))
        return f'/projects/{self.project}/diff/{sides[0]}..{sides[1]}'

    def get(self, target, source='127.0.0.1'):
        connection = http.client.HTTPConnection(self.server.address, timeout=COMMAND_LIMIT, source_address=(source, 0))
        with contextlib.closing(connection):
            connection.request('GET', target)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def resident(self):
        status = pathlib.Path(f'/proc/{self.server.process.pid}/status').read_text(encoding='ascii')
        return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) * 1024

    def processor_time(self):
        fields = pathlib.Path(f'/proc/{self.server.process.pid}/stat').read_text(encoding='ascii').rpartition(')')[2]
        return sum(int(ticks) for ticks in fields.split()[11:13]) / os.sysconf('SC_CLK_TCK')

    def asked_and_not_read(self, target, count):
        """Connections that asked for it, with the first bytes of what each was answered."""
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
        before = self.resident()
        peers, begun = self.asked_and_not_read(target, IDLE)
        self.assertEqual(set(begun), {b'HTTP/1.1 200'})
        grown = self.resident() - before
        # All of them together less than a few copies of it, of sixty.
        self.assertLess(grown, 5 * size, f'{grown / MIB:.0f} MiB for {IDLE} who do not read')
        # Whoever goes on reading after all gets all of it.
        answer = begun[0]
        while len(answer.partition(b'\r\n\r\n')[2]) < size:
            more = peers[0].recv(1 << 20)
            self.assertTrue(more, f'ended after {len(answer)} bytes')
            answer += more
        self.assertEqual(answer.partition(b'\r\n\r\n')[2], b'x' * size)

    def listing(self):
        """The address of the largest answer that the Data API has, and its size."""
        for number in range(100):
            self.create('agents', {'handle': f'{number} ' + 'x' * 16_000})
        target = f'{BASE}/agents?limit=100'
        return target, len(self.get(target)[1])

    def test_a_client_that_stays_keeps_nothing_of_its_answer(self):
        target, size = self.listing()
        before = self.resident()
        for _ in range(IDLE):
            connection = self.server.connect()
            connection.request('GET', target)
            self.assertEqual(len(connection.getresponse().read()), size)
        grown = self.resident() - before
        self.assertLess(grown, IDLE / 4 * size, f'{grown / MIB:.0f} MiB after {IDLE} answers of {size / MIB:.1f} MiB')

    def test_answers_that_nobody_reads_have_a_bound(self):
        listing, size = self.listing()
        before = self.resident()
        peers, begun = self.asked_and_not_read(listing, 2 * IDLE)
        self.assertEqual(set(begun), {b'HTTP/1.1 200', b'HTTP/1.1 503'})
        grown = self.resident() - before
        self.assertLess(grown, IDLE * size, f'{grown / MIB:.0f} MiB for {2 * IDLE} unread answers')
        self.assertEqual(self.get(listing, '127.0.0.2')[0], 200, 'another client')
        for peer in peers:
            peer.close()
        self.eventually(lambda: self.get(listing)[0] == 200, 'what is not held any more can be had again')

    def test_others_are_answered_while_dear_pages_are_asked_for(self):
        page = self.dear_page()
        one = f'{page}?file=0'
        calm, _ = self.times(20)
        begin = self.processor_time()
        status, shown = self.get(page)
        cost = self.processor_time() - begin
        self.assertEqual(status, 200)
        self.assertIn(b'too many lines to compare here', self.get(one)[1])
        ended = threading.Event()

        def ask():
            while not ended.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.get(page, '127.0.0.2')

        threads = [threading.Thread(target=ask) for _ in range(HOSTILE)]
        self.addCleanup(lambda: [thread.join() for thread in threads])
        self.addCleanup(ended.set)
        for thread in threads:
            thread.start()
        self.eventually(lambda: self.processor_time() - begin > 3 * max(cost, 0.05), 'they are at it')
        api, pages = self.times(20)
        figures = (f'calm {calm:.4f} s, among {HOSTILE}: API {api:.4f} s, page {pages:.4f} s; the page costs '
                   f'{cost:.2f} s of processor time and has {len(shown)} bytes')
        print(figures)
        # A page of theirs may be in the way, and the processors are shared; twenty-four of them are not.
        may_take = calm + HOSTILE / 4 * max(cost, 0.05)
        self.assertLess(api, may_take, figures)
        self.assertLess(pages, may_take, figures)

    def times(self, count):
        """How long a request of the Data API takes, and a page, in the middle of so many."""
        taken = {f'{BASE}/projects?limit=1': [], '/projects': []}
        for _ in range(count):
            for target, times in taken.items():
                begin = time.monotonic()
                self.assertEqual(self.get(target)[0], 200)
                times.append(time.monotonic() - begin)
        return [sorted(times)[count // 2] for times in taken.values()]


if __name__ == '__main__':
    unittest.main()
