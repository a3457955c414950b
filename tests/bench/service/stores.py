"""One to three servers over one store, directly and behind nginx: SQLite and PostgreSQL in turns, and PostgreSQL by itself."""
import contextlib
import json
import random
import statistics
import urllib.request

import bounds
import parts
from measure import spread
from report import Row, table

SERVERS = (1, 2, 3)
WAYS = ('direct', 'nginx')
KINDS = ('post', 'get', 'list')
READ = 1000  # records, that are read at random
ORDER = ('server', 'database', 'nginx', 'client')


class Contender:
    def __init__(self, store, servers, nginx, database):
        self.store, self.count, self.way = store, len(servers), 'nginx' if nginx else 'direct'
        self.addresses = [nginx.address] if nginx else [server.address for server in servers]
        self.parts = {'server': [server.pid for server in servers]}
        if database:
            self.parts['database'] = [database.process.pid]
        if nginx:
            self.parts['nginx'] = [nginx.pid]

    @property
    def name(self):
        return f'{self.store}, {self.count}' + (' behind nginx' if self.way == 'nginx' else '')

    def run(self, world, kind, seconds, paths):
        def load():
            if kind == 'post':
                return parts.wrk(world, self.addresses, seconds, 'post', path=f'{parts.BASE}/messages')
            return parts.wrk(world, self.addresses, seconds, 'get', paths=paths[kind])
        return parts.measured(self.parts, load)


def section(world, report, options):
    with contextlib.ExitStack() as ends:
        cluster = parts.durable_cluster()
        ends.callback(cluster.remove)
        name = cluster.new_database()
        stores = {'SQLite': (world.new_folder('store'), None), 'PostgreSQL': (parts.postgres.uri(cluster.folder, name), cluster)}
        contenders, paths, servers = [], {}, {}
        for store, (place, database) in stores.items():
            servers[store] = [parts.Server(world, place) for _ in range(max(SERVERS))]
            paths[store] = fill(world, store, servers[store][0])
            if database:
                database.sql('ANALYZE records', name)  # as it does by itself within a minute
            for count in SERVERS:
                some = servers[store][:count]
                contenders += [Contender(store, some, nginx, database)
                               for nginx in (None, parts.Nginx(world, some)) if way_of(nginx) in options.ways]
        bound = bounds.Bounds(world, cluster)
        runs = in_turns(world, contenders, bound, paths, options)
        latency = alone(world, servers, paths, bound, cluster, options)
    show(report, contenders, bound, runs, latency)


def way_of(nginx):
    return 'nginx' if nginx else 'direct'


def fill(world, store, server):
    """Posts some records; returns files of what to read, by kind."""
    parts.wrk(world, [server.address], 2, 'post', path=f'{parts.BASE}/messages')
    found, cursor = [], ''
    while len(found) < READ and cursor is not None:
        with urllib.request.urlopen(f'{server.url}{parts.BASE}/messages?limit=100{cursor}') as answer:
            page = json.load(answer)
        found += [f'{parts.BASE}/messages/{record["id"]}' for record in page['records']]
        cursor = f'&cursor={page["nextCursor"]}' if page['nextCursor'] else None
    files = {'get': found, 'list': [f'{parts.BASE}/messages?limit=100']}
    for kind, lines in files.items():
        (world.folder / f'{store}-{kind}').write_text('\n'.join(lines) + '\n', encoding='ascii')
    return {kind: world.folder / f'{store}-{kind}' for kind in files}


def in_turns(world, contenders, bound, paths, options):
    """By kind and contender, the runs. In each round all take turns, in another order."""
    chance = random.Random(1)
    turns = [(kind, each.name, lambda kind=kind, each=each: each.run(world, kind, options.seconds, paths[each.store]))
             for each in contenders for kind in KINDS]
    turns += [(kind, name, lambda name=name: bound.run(name, options.seconds)) for name, kind in bound.kinds.items()]
    runs = {}
    for _ in range(options.rounds):
        chance.shuffle(turns)
        for kind, name, run in turns:
            runs.setdefault(kind, {}).setdefault(name, []).append(run())
    return runs


def alone(world, servers, paths, bound, cluster, options):
    """Latencies of one client, who waits for nobody: of servers, and of the database itself."""
    found = {}
    for _ in range(options.rounds):
        for store, (first, *_) in servers.items():
            found.setdefault(store, []).append(
                parts.wrk(world, [first.address], options.seconds, 'get', 1, paths=paths[store]['get']))
        found.setdefault('database', []).append(bound.run('GET, unnamed', options.seconds, clients=1))
    return {name: {key: statistics.median(run[key] for run in runs) for key in ('p50_ms', 'p99_ms')}
            for name, runs in found.items()}


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def cpu(runs, part):
    both = [statistics.median(run['cpu_us'][part][at] for run in runs) for at in (0, 1)]
    return f'{both[0]:.0f}+{both[1]:.0f}'


def show(report, contenders, bound, runs, latency):
    names = [each.name for each in contenders]
    for kind, title in (('post', 'Durable POST'), ('get', 'GET of a record'), ('list', 'GET of a list of 100')):
        rows = []
        for name in [*names, *(name for name, of in bound.kinds.items() if of == kind)]:
            of = runs[kind][name]
            spared = spread([run['rate'] for run in of])
            rows.append([name, f'{spared["median"]:,.0f} ({spared["low"]:,.0f}–{spared["high"]:,.0f})',
                         f'{median(of, "p50_ms"):.2f}', f'{median(of, "p99_ms"):.2f}']
                        + [cpu(of, part) if part in of[0]['cpu_us'] else '' for part in ORDER])
        text = table(['store, servers', 'per second (quartiles)', 'p50, ms', 'p99, ms', *(f'{part}, µs' for part in ORDER)], rows)
        report.section(title, f'{text}\n\nµs: of user and system time for each request. p50 of pgbench: its mean.', judged(kind, runs[kind], latency),
                       {'runs': runs[kind], 'latency': latency})
        plot(report, kind, title, runs[kind])


def judged(kind, runs, latency):
    def rate(name):
        return median(runs[name], 'rate')
    if kind == 'post':
        return [Row('SQLite', f'{rate("SQLite, 1"):,.0f}/s', '≥ 10,000/s', rate('SQLite, 1') >= 10_000),
                Row('PostgreSQL', f'{rate("PostgreSQL, 1"):,.0f}/s', '≥ 3,000/s', rate('PostgreSQL, 1') >= 3000)]
    if kind == 'list':
        return []
    beyond = latency['PostgreSQL']['p50_ms'] - latency['database']['p50_ms']
    return [Row('PostgreSQL', f'{rate("PostgreSQL, 1"):,.0f}/s', '≥ 4,000/s', rate('PostgreSQL, 1') >= 4000),
            Row('one client: p50 beyond the database\'s', f'{beyond:.2f} ms', '≤ 0.4 ms', beyond <= 0.4,
                f'{latency["PostgreSQL"]["p50_ms"]:.2f} ms, the database alone {latency["database"]["p50_ms"]:.2f} ms, '
                f'SQLite {latency["SQLite"]["p50_ms"]:.2f} ms')]


def plot(report, kind, title, runs):
    """Stacked bars of CPU time for each request by process, with the rate on top."""
    lines = []
    for name, of in runs.items():
        times = [sum(statistics.median(run['cpu_us'].get(part, (0, 0))[at] for run in of) for at in (0, 1)) for part in ORDER]
        lines.append(f'"{name}" ' + ' '.join(f'{time:.1f}' for time in times) + f' {median(of, "rate"):.0f}')
    data = report.out / f'service-{kind}.dat'
    data.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    bars = ', '.join(f'"{data}" using {at + 2}{":xtic(1)" if at == 0 else ""} title "{part}"' for at, part in enumerate(ORDER))
    report.gnuplot(f'service-{kind}', f'''set title "{title}: CPU time of a request, and requests a second"
set style data histograms
set style histogram rowstacked
set style fill solid 0.8 noborder
set boxwidth 0.7
set ylabel "µs of user and system time"
set y2label "per second"
set y2tics
set y2range [0:*]
set yrange [0:*]
set grid ytics
set key outside right top
set xtics rotate by -30 noenhanced
plot {bars}, "{data}" using 0:{len(ORDER) + 2} axes x1y2 with points pt 7 lc "black" title "per second"
''')
