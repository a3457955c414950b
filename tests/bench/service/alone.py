"""One server over SQLite, beside nginx that serves the same bytes as files."""
import contextlib
import http.client
import json
import socket
import sqlite3
import statistics
import time

import parts
from measure import spread
from report import Row, ratio

IDLE = 4000
SERVE_FILES = 'server {{ listen {address}; root {home}/www; }}'
# One connection of http.client, in the times of a page: wrk tells nothing of single requests.
PAGES_TIMED = 1000


def section(world, report, options):
    server = parts.Server(world, world.new_folder('store'))
    post = [run(world, server, 'post', options.seconds, path=f'{parts.BASE}/messages') for _ in range(options.rounds)]
    single = [single_inserts(world.new_folder('single'), options.seconds) for _ in range(options.rounds)]
    record = get_json(server, f'{parts.BASE}/messages?limit=1')['records'][0]['id']
    reads = {'record': f'{parts.BASE}/messages/{record}', 'list of 100': f'{parts.BASE}/messages?limit=100'}
    nginx = parts.Nginx(world, [server], SERVE_FILES)
    (nginx.home / 'www').mkdir()
    rows, data = [post_row(post, single)], {'post': post}
    for name, path in reads.items():
        (nginx.home / 'www' / name.split()[0]).write_bytes(get(server, path))
        pairs = [(run_get(world, server, path, options.seconds), run_get(world, nginx, f'/{name.split()[0]}', options.seconds))
                 for _ in range(options.rounds)]
        rows.append(beside_row(name, pairs))
        data[name] = pairs
    rows += [idle_row(server, reads['record'], nginx), attacked_row(world, server, reads['record'], options)]
    rows.append(page_row(world, server, options.records))
    report.section('One server beside nginx', 'The server is over SQLite; nginx serves the same bytes as files.', rows, data)


def get(server, path, connection=None):
    own = connection or http.client.HTTPConnection(server.address, timeout=30)
    own.request('GET', path)
    body = own.getresponse().read()
    if connection is None:
        own.close()
    return body


def get_json(server, path, connection=None):
    return json.loads(get(server, path, connection))


def run(world, server, kind, seconds, **what):
    return parts.measured({'server': [server.pid]}, lambda: parts.wrk(world, [server.address], seconds, kind, **what))


def run_get(world, server, path, seconds):
    paths = world.folder / 'paths'
    paths.write_text(path + '\n', encoding='ascii')
    return run(world, server, 'get', seconds, paths=paths)


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def cpu(runs, part='server'):
    return statistics.median(sum(run['cpu_us'][part]) for run in runs)


def post_row(post, single):
    rates = spread([run['rate'] / alone for run, alone in zip(post, single)])
    return Row('durable POST of a message with a key', f'{median(post, "rate"):,.0f}/s, {cpu(post):.0f} µs CPU', '≥ 10,000/s',
               median(post, 'rate') >= 10_000,
               f'a sync for each insert: {statistics.median(single):,.0f}/s, ratio {ratio(rates)}')


def beside_row(name, pairs):
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = spread([run['rate'] / other['rate'] for run, other in pairs])
    least = {'record': 0.5, 'list of 100': 0.25}[name]
    return Row(f'GET of a {name}', f'{median(ours, "rate"):,.0f}/s, {cpu(ours):.0f} µs CPU', f'≥ {least} × nginx',
               found['median'] >= least,
               f'nginx {median(theirs, "rate"):,.0f}/s, {cpu(theirs):.0f} µs; ratio {ratio(found)}')


def hold(server, path):
    """Idle keep-alive connections: bytes before and with them, and how many of them still answer."""
    before, peers = parts.resident(server.pid), []
    request = f'GET {path} HTTP/1.1\r\nHost: {server.address}\r\n\r\n'.encode()
    host, _, port = server.address.rpartition(':')
    for _ in range(IDLE):
        peer = socket.create_connection((host, int(port)), 30)
        peer.sendall(request)
        peer.recv(65536)
        peers.append(peer)
    time.sleep(1)
    held = parts.resident(server.pid)
    for peer in peers:
        peer.sendall(request)
    answered = sum(peer.recv(65536).startswith(b'HTTP/1.1 200') for peer in peers)
    for peer in peers:
        peer.close()
    return before, held, answered


def idle_row(server, path, nginx):
    before, held, answered = hold(server, path)
    _, theirs, _ = hold(nginx, '/record')
    return Row(f'{IDLE:,} idle connections', f'{before >> 20} → {held >> 20} MB, {answered:,} answer afterwards', '≤ 64 MB',
               held <= 64 << 20 and answered == IDLE, f'nginx {theirs >> 20} MB')


@contextlib.contextmanager
def attack(server):
    """500 requests that never end, and 50 bodies that are refused."""
    host, _, port = server.address.rpartition(':')
    with contextlib.ExitStack() as peers:
        for number in range(550):
            peer = peers.enter_context(socket.create_connection((host, int(port)), 30))
            head = f'POST {parts.BASE}/agents HTTP/1.1\r\nHost: {server.address}\r\n'
            peer.sendall((head + ('X-Slow: ' if number < 500 else 'Content-Length: 1000000000\r\n\r\n')).encode())
        yield


def attacked_row(world, server, path, options):
    found = []
    for _ in range(options.rounds):
        alone = run_get(world, server, path, options.seconds)['rate']
        with attack(server):
            found.append(run_get(world, server, path, options.seconds)['rate'] / alone)
    return Row('GET beside 500 slow and 50 oversized requests', f'{ratio(spread(found))} × alone', 'undisturbed')


def single_inserts(home, seconds):
    """What the disk gives a writer that syncs each record by itself: SQLite, WAL, synchronous=FULL."""
    with contextlib.closing(sqlite3.connect(home / 'single.db', isolation_level=None)) as database:
        database.execute('PRAGMA journal_mode=WAL')
        database.execute('PRAGMA synchronous=FULL')
        database.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, fields TEXT)')
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            database.execute('INSERT INTO t (fields) VALUES (?)', ('x' * 300,))
            count += 1
        return count / seconds


def page_row(world, server, records):
    """A page at the beginning and one near the end of a collection, read in turns."""
    connection, cursors, cursor = http.client.HTTPConnection(server.address, timeout=30), [], None
    count = fill(world, server, records)
    while True:
        page = get_json(server, f'{parts.BASE}/messages?limit=100' + (f'&cursor={cursor}' if cursor else ''), connection)
        cursor = page['nextCursor']
        if not cursor:
            break
        cursors.append(cursor)

    def timed(where):
        begin = time.perf_counter()
        get(server, f'{parts.BASE}/messages?limit=100&cursor={where}', connection)
        return time.perf_counter() - begin

    times = [(timed(cursors[0]), timed(cursors[-2])) for _ in range(PAGES_TIMED)]
    first, last = (statistics.median(column) for column in zip(*times))
    return Row(f'page of 100 at the end of {count:,} records', f'{last * 1e6:.0f} µs', 'the same', None,
               f'at record 100: {first * 1e6:.0f} µs, ratio {last / first:.2f}')


def fill(world, server, records):
    """Posts until there are as many; returns how many there are."""
    def count():
        text = get(server, '/metrics').decode()
        return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith('playfs_http_requests_total{method="POST",status="2xx"}'))

    while count() < records:
        parts.wrk(world, [server.address], 10, 'post', path=f'{parts.BASE}/messages')
    return count()
