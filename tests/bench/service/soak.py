"""Three servers over PostgreSQL behind nginx for minutes, at a rate that leaves them mostly idle: memory and descriptors
stay as they are."""
import concurrent.futures
import contextlib
import os
import socket
import statistics
import threading
import time

import parts
from report import Row
from stores import fill

SERVERS = 3
EVERY = 5          # seconds between two samples
MORE_BYTES = 4 << 20
MORE_DESCRIPTORS = 4
WATCHERS = 30      # that come and go


def section(world, report, options):
    seconds = int(60 * options.minutes)
    with contextlib.ExitStack() as ends:
        cluster = parts.durable_cluster()
        ends.callback(cluster.remove)
        uri = parts.postgres.uri(cluster.folder, cluster.new_database())
        servers = [parts.Server(world, uri) for _ in range(SERVERS)]
        nginx = parts.Nginx(world, servers)
        paths = fill(world, 'PostgreSQL', servers[0])
        over, samples = threading.Event(), []
        with concurrent.futures.ThreadPoolExecutor() as threads:
            beside = [threads.submit(sample, servers, cluster, over, samples), threads.submit(watch, nginx, over)]
            loads = {kind: threads.submit(parts.wrk, world, [nginx.address], seconds, 'post' if kind == 'post' else 'get', 6,
                                          pause=60, **what)
                     for kind, what in (('post', {'path': f'{parts.BASE}/messages'}), ('get', {'paths': paths['get']}),
                                        ('list', {'paths': paths['list']}))}
            concurrent.futures.wait(loads.values())
            over.set()
        loads = {kind: load.result() for kind, load in loads.items()}  # raises what went wrong
        for each in beside:
            each.result()
    rows = [row for name in samples[0] if name != 'at' for row in judged(name, samples)]
    total = sum(each['requests'] for each in loads.values())
    report.section('Soak', f'{SERVERS} servers over PostgreSQL behind nginx, {options.minutes:g} minutes, {total / seconds:.0f} '
                   f'requests a second, {WATCHERS} watchers that come and go; no request failed.', rows,
                   {'samples': samples, 'loads': loads})


def sample(servers, cluster, over, samples):
    begin = time.monotonic()
    while not over.wait(EVERY):
        found = {'at': time.monotonic() - begin}
        for number, server in enumerate(servers, 1):
            found[f'server {number}'] = parts.resident(server.pid), len(os.listdir(f'/proc/{server.pid}/fd'))
        found['connections to PostgreSQL'] = int(cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'site%'")[0])
        samples.append(found)


def watch(nginx, over):
    """Keeps some connections to the events, and replaces the oldest every second."""
    host, _, port = nginx.address.rpartition(':')
    peers = []
    while not over.wait(1):
        peer = socket.create_connection((host, int(port)), 30)
        peer.sendall(f'GET /.site/events HTTP/1.1\r\nHost: {nginx.address}\r\n\r\n'.encode())
        peers.append(peer)
        if len(peers) > WATCHERS:
            peers.pop(0).close()
    for peer in peers:
        peer.close()


def judged(name, samples):
    """The last quarter beside the second: the first fills pools and caches."""
    quarter = len(samples) // 4
    early, late = samples[quarter:2 * quarter], samples[-quarter:]

    def middle(part, at=None):
        return statistics.median(each[name] if at is None else each[name][at] for each in part)

    if name.startswith('connections'):
        return [Row(name, f'{middle(early):.0f} → {middle(late):.0f}', 'the same', middle(late) <= middle(early) + 1)]
    bytes_, files = ((middle(early, at), middle(late, at)) for at in (0, 1))
    return [Row(f'{name}: memory', f'{bytes_[0] / 2**20:.1f} → {bytes_[1] / 2**20:.1f} MB', f'no more than {MORE_BYTES >> 20} MB more',
                bytes_[1] <= bytes_[0] + MORE_BYTES),
            Row(f'{name}: descriptors', f'{files[0]:.0f} → {files[1]:.0f}', f'no more than {MORE_DESCRIPTORS} more',
                files[1] <= files[0] + MORE_DESCRIPTORS)]
