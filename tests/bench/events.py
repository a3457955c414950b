#!/usr/bin/env python3
"""How soon watchers of one `playfs serve` hear of changes: from the answer to a POST until each of them has the event.

    tests/bench/events.py [--playfs build/src/app/playfs] [--watchers 4000] [--rate 100] [--seconds 10]

The watchers are connections of one process with one epoll loop, in groups that come from different loopback addresses, since
each client has a limit; the writers are another process. Prints figures and judges none. On two cores a part of the time that it
shows is its own: for each batch, the loop reads as many sockets as there are watchers.
"""
import argparse
import bisect
import concurrent.futures
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import resource
import select
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests/support'))
from fixture import free_port, memory, temporary_directory  # noqa: E402

POST = '/.site/data/messages'
EVENTS = '/.site/events'
OF_ONE_ADDRESS = 500  # below the server's limit per client
WRITERS = 4
DRAIN = 2  # seconds to receive the rest


def cpu(pid):
    words = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')


def write(address, rate, seconds, results):
    """In a process of its own: times of the answers by record."""
    def writer(number):
        connection, answered = http.client.HTTPConnection(address, timeout=60), {}
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.monotonic() + number / rate
        for turn in range(int(rate * seconds / WRITERS)):
            time.sleep(max(0, begin + turn * WRITERS / rate - time.monotonic()))
            connection.request('POST', POST, '{"thread":"bench","body":"x"}',
                               {'Content-Type': 'application/json', 'Origin': f'http://{address}'})
            record = json.loads(connection.getresponse().read())['record']
            answered[record['id']] = time.monotonic()
        return answered

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        results.send({record: at for part in pool.map(writer, range(WRITERS)) for record, at in part.items()})


class Watcher:
    """What one connection got: after which time it knew of all changes up to which number."""

    def __init__(self, address, number):
        host, port = address.split(':')
        self.socket = socket.create_connection((host, int(port)), 60, (f'127.0.0.{2 + number // OF_ONE_ADDRESS}', 0))
        self.socket.sendall(f'GET {EVENTS} HTTP/1.1\r\nHost: {address}\r\n\r\n'.encode())
        self.times, self.numbers = [], []
        self.texts = [] if number == 0 else None  # one keeps everything

    def greet(self):
        text = b''
        while b'\n\n' not in text:
            part = self.socket.recv(4096)
            if not part or (text and not text.startswith(b'HTTP/1.1 200')):
                raise SystemExit(f'a watcher was refused: {text.decode()}')
            text += part
        self.socket.setblocking(False)

    def read(self, buffer):
        size = self.socket.recv_into(buffer)
        now = time.monotonic()
        if not size:
            raise SystemExit('a watcher was cut off')
        text = bytes(buffer[:size])
        if self.texts is not None:
            self.texts.append(text)
        end = len(text)
        while (at := text.rfind(b'id: ', 0, end)) >= 0:
            stop = text.find(b'\n', at)
            if stop > 0 and (at == 0 or text[at - 1] == 10):
                self.times.append(now)
                self.numbers.append(int(text[at:stop].split(b'.')[1]))
                return
            end = at


def listen(watchers, results):
    """Reads until the writers are done and some time has passed. Returns what they say."""
    poll = select.epoll()
    by_number = {watcher.socket.fileno(): watcher for watcher in watchers}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    poll.register(results.fileno(), select.EPOLLIN)
    buffer = memoryview(bytearray(1 << 16))
    answered, end = None, None
    while end is None or time.monotonic() < end:
        for number, _ in poll.poll(0.1, 512):
            if number == results.fileno():
                answered, end = results.recv(), time.monotonic() + DRAIN
                poll.unregister(number)
            else:
                by_number[number].read(buffer)
    return answered


def latencies(watchers, answered):
    """Sorted, in ms. An event that came before the answer to its POST took no time."""
    text = b''.join(watchers[0].texts).decode()
    numbers = {record: int(number) for number, record in
               re.findall(r'id: [\w-]+\.(\d+)\.\d+\nevent: change\ndata: .*?"id":"(\w+)"', text)}
    events = sorted((numbers[record], at) for record, at in answered.items())
    found, missed = [], 0
    for watcher in watchers:
        for number, at in events:
            place = bisect.bisect_left(watcher.numbers, number)
            if place == len(watcher.numbers):
                missed += 1
            else:
                found.append(max(0.0, watcher.times[place] - at) * 1000)
    if missed:
        raise SystemExit(f'{missed} events did not arrive')
    found.sort()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--playfs', default=str(ROOT / 'build/src/app/playfs'))
    parser.add_argument('--watchers', type=int, default=4000)
    parser.add_argument('--rate', type=float, default=100)
    parser.add_argument('--seconds', type=float, default=10)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.watchers + 200
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise SystemExit(f'{wanted} descriptors are needed, and {hard} allowed: ulimit -Hn')
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    with temporary_directory() as home:
        address = f'127.0.0.1:{free_port()}'
        server = subprocess.Popen([options.playfs, 'serve', '--listen', address, '--store', str(home / 'store'),
                                   '--limits', 'off'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            if not server.stdout.readline():
                raise SystemExit('playfs serve does not start')
            before = memory(server)
            watchers = [Watcher(address, number) for number in range(options.watchers)]
            for watcher in watchers:
                watcher.greet()
            idle = memory(server)
            results, end = multiprocessing.Pipe(duplex=False)
            spent, own, begin = cpu(server.pid), time.process_time(), time.monotonic()
            writer = multiprocessing.Process(target=write, args=(address, options.rate, options.seconds, end))
            writer.start()
            answered = listen(watchers, results)
            took = max(answered.values()) - min(answered.values())
            whole = time.monotonic() - begin
            spent, own = cpu(server.pid) - spent, time.process_time() - own
            writer.join()
            peak = memory(server, 'VmHWM')
            found = latencies(watchers, answered)
        finally:
            server.terminate()
            server.wait(20)

    def quantile(share):
        return found[min(len(found) - 1, int(share * len(found)))]

    reads = sum(len(watcher.times) for watcher in watchers)
    print(f'{options.watchers} watchers, {len(answered)} events, {(len(answered) - 1) / took:.0f} a second, '
          f'{reads / options.watchers:.0f} batches each')
    print(f'from the answer to receipt: p50 {quantile(0.5):.1f} ms, p90 {quantile(0.9):.1f} ms, p99 {quantile(0.99):.1f} ms, '
          f'longest {found[-1]:.1f} ms')
    print(f'server: {before >> 20} MB before, {idle >> 20} MB with the watchers, {peak >> 20} MB at most; '
          f'{spent / whole:.0%} of a core (the watchers\' loop {own / whole:.0%})')


if __name__ == '__main__':
    main()
