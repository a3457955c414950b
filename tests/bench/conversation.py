#!/usr/bin/env python3
"""What a conversation costs in requests, and how soon a message of one mount is in another's files.

    tests/bench/conversation.py [--playfs build/src/app/playfs] [--messages 10000] [--threads 200]
                                  [--times 100] [--idle 60]

Prints figures and judges none. Requests are those that the reading mount itself counts (`.playfs/metrics`).
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / 'tests/support'))
import fixture  # noqa: E402
import proxy  # noqa: E402

WRITERS = 16


class Bench(fixture.Fixture):
    def runTest(self):
        """Not a test: the fixture's service and mounts are what it needs."""

    def fill(self, messages, threads):
        ids = [self.api.create('threads', title=f'Thread {i}', agent='bob', kind='discussion')['id'] for i in range(threads)]

        def write(writer):
            api = fixture.Api(self.api.origin)
            for i in range(writer, messages, WRITERS):
                api.create('messages', thread=ids[i % threads], parent='', agent='bob', body=f'message {i}', mentions=[], links=[])

        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))
        return ids

    @staticmethod
    def requests(mount):
        for line in (mount.directory / '.playfs/metrics').read_text().splitlines():
            if line.startswith('playfs_requests_total '):
                return int(line.split()[1])
        raise AssertionError('no count of requests')

    def cost(self, what, mount, action):
        before, begin = self.requests(mount), time.monotonic()
        action()
        print(f'{what:46} {self.requests(mount) - before:5} requests {1000 * (time.monotonic() - begin):9.1f} ms', flush=True)

    def measure(self, options):
        self.api = self.serve()
        threads = self.fill(options.messages, options.threads)
        reader = self.mount(self.api.origin, 'reader', options=('refresh=10',))
        path = reader.directory / 'threads' / threads[0] / 'messages.md'
        print(f'{options.messages} messages in {options.threads} threads', flush=True)
        self.cost('one thread, cold', reader, path.read_bytes)
        self.cost('the same again', reader, path.read_bytes)

        def after_others():
            for i in range(10):
                self.api.create('messages', thread=threads[1], parent='', agent='bob', body=str(i), mentions=[], links=[])
            time.sleep(1)
            path.read_bytes()

        self.cost('again, after 10 new messages in another', reader, after_others)
        self.cost('another thread', reader, (reader.directory / 'threads' / threads[2] / 'messages.md').read_bytes)
        self.idle(options, reader)
        way = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))  # it says that there are no events
        self.addCleanup(way.close)
        other = self.mount(way.url, 'other', options=('refresh=10',))
        (other.directory / 'threads' / threads[0] / 'messages.md').read_bytes()
        self.idle(options, other)
        self.latency(options, reader, threads[0])

    def idle(self, options, mount):
        status = json.loads((mount.directory / '.playfs/status.json').read_text())
        self.cost(f'idle for {options.idle} s (events: {status["events"]})', mount, lambda: time.sleep(options.idle))

    def latency(self, options, reader, thread):
        writer = self.mount(self.api.origin, 'writer', options=('refresh=10', 'agent=ann'))
        there = reader.directory / 'threads' / thread / 'messages.ndjson'
        reply = writer.directory / 'threads' / thread / 'reply'
        size, times = there.stat().st_size, []
        reply.read_bytes()
        for i in range(options.times):
            begin = time.monotonic()
            with open(reply, 'w', encoding='utf-8') as file:
                file.write(f'seen {i}\n')
            while (now := there.stat().st_size) == size:
                time.sleep(0.001)
                if time.monotonic() > begin + 60:
                    raise AssertionError('not seen within a minute')
            times.append(1000 * (time.monotonic() - begin))
            size = now
        times.sort()
        print(f'written by one mount, seen by another: median {statistics.median(times):.0f} ms, '
              f'p95 {times[int(len(times) * .95)]:.0f} ms, worst {times[-1]:.0f} ms of {len(times)}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--playfs', default=str(ROOT / 'build/src/app/playfs'))
    parser.add_argument('--messages', type=int, default=10_000)
    parser.add_argument('--threads', type=int, default=200)
    parser.add_argument('--times', type=int, default=100)
    parser.add_argument('--idle', type=int, default=60)
    options = parser.parse_args()
    Bench.playfs_path = options.playfs
    bench = Bench()
    bench.setUp()
    try:
        bench.measure(options)
    finally:
        bench.doCleanups()


if __name__ == '__main__':
    main()
