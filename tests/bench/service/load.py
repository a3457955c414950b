#!/usr/bin/env python3
"""`playfs serve` under load, beside nginx that serves the same bytes as files: one command, a table and a JSON file.

    tests/bench/service/load.py [--playfs build/src/app/playfs] [--rounds 5] [--seconds 3] [--records 1000000] [--json FILE]

Needs wrk and nginx. Times are of this machine at this moment, so everything that counts is a ratio of medians of rounds that
take turns, and CPU time for each request is given beside it: that hardly depends on what else the machine does.
Takes about six minutes; with --records 20000 about two.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / 'tests/support'))
from fixture import free_port, temporary_directory  # noqa: E402

BASE = '/.site/data'
CONNECTIONS = 64
IDLE = 4000
NGINX = '''
daemon off; worker_processes auto; worker_rlimit_nofile 20000; error_log {home}/nginx.log; pid {home}/nginx.pid;
events {{ worker_connections 8192; }}
http {{
  access_log off; default_type application/json; sendfile on; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_temp_path {home}/t1; proxy_temp_path {home}/t2; fastcgi_temp_path {home}/t3;
  uwsgi_temp_path {home}/t4; scgi_temp_path {home}/t5;
  server {{ listen {address}; root {home}/www; }}
}}
'''
POST = '''
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Origin"] = "{url}"
wrk.body = '{{"agent":"ada","title":"a thread of the benchmark","kind":"discussion"}}'
'''


class Process:
    """A server and the processes that it starts."""

    def __init__(self, words, address, home):
        self.address, self.url = address, f'http://{address}'
        with open(home / f'{pathlib.Path(words[0]).name}.out', 'ab') as log:
            self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(self._place(), 1).close()
                return
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f'{words[0]} does not answer; see {log.name}')
            time.sleep(0.05)

    def _place(self):
        host, port = self.address.split(':')
        return host, int(port)

    def pids(self):
        own = self.process.pid
        children = pathlib.Path(f'/proc/{own}/task/{own}/children').read_text().split()
        return [own, *map(int, children)]

    def cpu(self):
        ticks = 0
        for pid in self.pids():
            words = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
            ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf('SC_CLK_TCK')

    def resident(self):
        """In MB, of all its processes; pages that they share count once for each."""
        return sum(int(re.search(r'VmRSS:\s+(\d+)', pathlib.Path(f'/proc/{pid}/status').read_text())[1])
                   for pid in self.pids()) / 1024

    def connect(self):
        return socket.create_connection(self._place(), 30)

    def get(self, path, connection=None):
        own = connection or http.client.HTTPConnection(self.address, timeout=30)
        own.request('GET', path)
        body = own.getresponse().read()
        if connection is None:
            own.close()
        return body

    def end(self):
        self.process.terminate()
        self.process.wait(20)


def wrk(server, path, seconds, *more):
    """Requests in a second, and CPU microseconds of the server for each."""
    before = server.cpu()
    said = subprocess.run(['wrk', '-t1', f'-c{CONNECTIONS}', f'-d{seconds}s', *map(str, more), server.url + path],
                          capture_output=True, text=True, check=True).stdout
    count = int(re.search(r'(\d+) requests in', said)[1])
    if 'Non-2xx' in said or not count:
        raise SystemExit(f'{server.url}{path}: {said}')
    return float(re.search(r'Requests/sec:\s+([\d.]+)', said)[1]), (server.cpu() - before) / count * 1e6


def side_by_side(ours, our_path, nginx, their_path, rounds, seconds):
    """Medians of rates and of CPU times, of rounds that take turns."""
    pairs = [(wrk(ours, our_path, seconds), wrk(nginx, their_path, seconds)) for _ in range(rounds)]
    rate, cpu, their_rate, their_cpu = (statistics.median(pair[who][what] for pair in pairs)
                                        for who in (0, 1) for what in (0, 1))
    return {'rate': rate, 'cpu_us': cpu, 'nginx_rate': their_rate, 'nginx_cpu_us': their_cpu,
            'ratio': statistics.median(pair[0][0] / pair[1][0] for pair in pairs), 'cpu_ratio': cpu / their_cpu}


def idle(server, path):
    """Memory that idle keep-alive connections hold, and whether all of them still answer."""
    before, peers = server.resident(), []
    request = f'GET {path} HTTP/1.1\r\nHost: {server.address}\r\n\r\n'.encode()
    for _ in range(IDLE):
        peer = server.connect()
        peer.sendall(request)
        peer.recv(65536)
        peers.append(peer)
    time.sleep(1)
    held = server.resident()
    for peer in peers:
        peer.sendall(request)
    answered = sum(peer.recv(65536).startswith(b'HTTP/1.1 200') for peer in peers)
    for peer in peers:
        peer.close()
    return {'connections': IDLE, 'before_mb': before, 'with_mb': held, 'answered_afterwards': answered}


def attacked(server, path, rounds, seconds):
    """The rate of GET alone, and beside 500 requests that never end and 50 bodies that are refused."""
    def attack():
        peers = []
        for number in range(550):
            peer = server.connect()
            head = f'POST {BASE}/agents HTTP/1.1\r\nHost: {server.address}\r\n'
            peer.sendall((head + ('X-Slow: ' if number < 500 else 'Content-Length: 1000000000\r\n\r\n')).encode())
            peers.append(peer)
        return peers

    alone, beside = [], []
    for _ in range(rounds):
        alone.append(wrk(server, path, seconds)[0])
        peers = attack()
        beside.append(wrk(server, path, seconds)[0])
        for peer in peers:
            peer.close()
    return {'alone': statistics.median(alone), 'beside': statistics.median(beside),
            'ratio': statistics.median(b / a for a, b in zip(alone, beside))}


def single_inserts(home, seconds):
    """What the disk gives a writer that syncs each record by itself: SQLite, WAL, synchronous=FULL."""
    database = sqlite3.connect(home / 'single.db', isolation_level=None)
    database.execute('PRAGMA journal_mode=WAL')
    database.execute('PRAGMA synchronous=FULL')
    database.execute('CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, fields TEXT)')
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        database.execute('INSERT INTO t (fields) VALUES (?)', ('x' * 100,))
        count += 1
    database.close()
    return count / seconds


def page_cost(server, store, records):
    """A page at the beginning and one near the end of a collection, read in turns."""
    connection = http.client.HTTPConnection(server.address, timeout=30)
    cursor, cursors = None, []
    while True:
        page = json.loads(server.get(f'{BASE}/threads?limit=100' + (f'&cursor={cursor}' if cursor else ''), connection))
        cursor = page['nextCursor']
        if not cursor:
            break
        cursors.append(cursor)
    first, last = cursors[0], cursors[-2]

    def timed(cursor):
        begin = time.perf_counter()
        server.get(f'{BASE}/threads?limit=100&cursor={cursor}', connection)
        return time.perf_counter() - begin

    times = [(timed(first), timed(last)) for _ in range(1000)]
    database = sqlite3.connect(f'file:{store}/playground.db?mode=ro', uri=True)
    plan = [row[3] for row in database.execute(
        'EXPLAIN QUERY PLAN SELECT position, id, created_at, updated_at, status, owner, fields FROM records'
        " WHERE collection = 'threads' AND position < 5 ORDER BY position DESC LIMIT 101")]
    database.close()
    at_first, at_last = (statistics.median(column) * 1e6 for column in zip(*times))
    return {'records': records, 'pages': len(cursors) + 1, 'at_record_100_us': at_first, 'at_the_end_us': at_last,
            'ratio': at_last / at_first, 'plan': plan}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--playfs', default=ROOT / 'build/src/app/playfs')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=3)
    parser.add_argument('--records', type=int, default=1_000_000)
    parser.add_argument('--json', type=pathlib.Path)
    options = parser.parse_args()
    for tool in ('wrk', 'nginx'):
        if not shutil.which(tool):
            raise SystemExit(f'{tool} is needed')

    with contextlib.ExitStack() as ends:
        home = ends.enter_context(temporary_directory())
        home.chmod(0o755)  # nginx serves the files as another user
        results = measure(options, home, ends)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + '\n')
    show(results)


def measure(options, home, ends):
    rounds, seconds = options.rounds, options.seconds
    address = f'127.0.0.1:{free_port()}'
    ours = Process([options.playfs, 'serve', '--listen', address, '--store', home / 'store', '--limits', 'off'], address, home)
    ends.callback(ours.end)
    (home / 'post.lua').write_text(POST.format(url=ours.url))
    post = (f'{BASE}/threads', seconds, '-s', home / 'post.lua')
    results = {'machine': f'{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}'}

    rates, alone = [], []
    for _ in range(rounds):
        rates.append(wrk(ours, *post))
        alone.append(single_inserts(home, seconds))
    results['post'] = {'rate': statistics.median(rate for rate, _ in rates), 'single_inserts': statistics.median(alone),
                       'cpu_us': statistics.median(cpu for _, cpu in rates),
                       'ratio': statistics.median(rate / single for (rate, _), single in zip(rates, alone))}

    record = json.loads(ours.get(f'{BASE}/threads?limit=1'))['records'][0]['id']
    paths = {'record': f'{BASE}/threads/{record}', 'list': f'{BASE}/threads?limit=100'}
    (home / 'www').mkdir()
    for name, path in paths.items():
        (home / 'www' / name).write_bytes(ours.get(path))
    address = f'127.0.0.1:{free_port()}'
    (home / 'nginx.conf').write_text(NGINX.format(home=home, address=address))
    nginx = Process(['nginx', '-c', home / 'nginx.conf'], address, home)
    ends.callback(nginx.end)
    for name, path in paths.items():
        results[name] = side_by_side(ours, path, nginx, f'/{name}', rounds, seconds)
    results['attacked'] = attacked(ours, paths['record'], rounds, seconds)
    results['idle'], results['nginx_idle'] = idle(ours, paths['record']), idle(nginx, '/record')

    count = 0
    while count < options.records:
        wrk(ours, f'{BASE}/threads', 10, '-s', home / 'post.lua')
        with contextlib.closing(sqlite3.connect(f'file:{home}/store/playground.db?mode=ro', uri=True)) as database:
            count = database.execute('SELECT count(*) FROM records').fetchone()[0]
    results['page'] = page_cost(ours, home / 'store', count)
    return results


def show(results):
    print(f"{results['machine']}; medians; {CONNECTIONS} connections\n")
    for name in ('record', 'list'):
        row = results[name]
        print(f"GET {name:7} {row['rate']:9,.0f}/s  nginx {row['nginx_rate']:9,.0f}/s  ratio {row['ratio']:.2f}"
              f"   CPU {row['cpu_us']:.0f} us, nginx {row['nginx_cpu_us']:.0f} us")
    post, idle_, attack, page = results['post'], results['idle'], results['attacked'], results['page']
    print(f"POST        {post['rate']:9,.0f}/s  one by one {post['single_inserts']:,.0f}/s  ratio {post['ratio']:.1f}"
          f"   CPU {post['cpu_us']:.0f} us")
    print(f"{idle_['connections']} idle connections: {idle_['before_mb']:.0f} -> {idle_['with_mb']:.0f} MB, all answer:"
          f" {idle_['answered_afterwards'] == idle_['connections']}; nginx {results['nginx_idle']['with_mb']:.0f} MB")
    print(f"GET beside 500 slow and 50 oversized requests: {attack['ratio']:.2f} of its rate alone")
    print(f"page of 100 at record 100: {page['at_record_100_us']:.0f} us, at the end of {page['records']:,}:"
          f" {page['at_the_end_us']:.0f} us, ratio {page['ratio']:.2f}; plan: {'; '.join(page['plan'])}")


if __name__ == '__main__':
    sys.exit(main())
