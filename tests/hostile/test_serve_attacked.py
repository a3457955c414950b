"""One `playfs serve` under all attacks of serve_attackers.py at once: its memory use, and an honest client's latency.

Each honest request is compared with the same request to the same program without attacks, in the same run. Attackers
are processes of the lowest priority; without attacks, as many idle-loop processes of that priority keep the CPUs busy.
So the two measurements differ by what attackers make the *service* do, and not by the cost of attacking. Both are taken
in rounds, and the quietest round of each counts: other load on the machine can only slow a round down, while the
attack's effect is in all of them."""
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'conformance'))

import serve_attackers  # noqa: E402
from fixture import IS_SANITIZED, main, memory  # noqa: E402
from serve_fixture import BASE, Server, ServeTest  # noqa: E402

MIB = 1 << 20
MOST_MEMORY = 128 * MIB
MOST_DELAY = 5
LEAST_MEASURED = 0.02  # seconds: a scheduler turn or two on a busy machine, whatever the request
HONEST, PROXY = '127.0.0.1', '127.99.0.1'
MOST_ROUNDS = 6
LIMIT = 200 if IS_SANITIZED else 20  # seconds for an honest request
MOST_TRIES = 4
REQUESTS = 50  # per round, of each kind; a tenth of that for pages
MOST_REFUSED = REQUESTS // 10  # connections of a round that were closed to make room
ATTACKER_SECONDS = 15  # before the first round: by then attackers hold all the connections they can get


class Filled:
    """A playground with some of everything that is expensive to show."""

    def __init__(self, server):
        self.server, self.connection = server, server.connect()
        self.project = self.create('projects', {'name': 'p'})
        self.agents = [self.create('agents', {'handle': f'{number} ' + 'x' * 15_000}) for number in range(100)]
        self.thread = self.create('threads', {'title': 't'})
        chunk = self.create('file_chunks', {'content': 'x' * 12_000})
        large = self.publish({'f': {'h': 'unknown', 'c': [chunk] * 660}})
        parents = [self.publish({'f': {'h': 'unknown', 'inline': str(number)}}) for number in range(200)]
        many = self.publish({'f': {'h': 'unknown', 'inline': 'many'}}, parents)
        choose = random.Random(1)
        sides = [self.publish({'f': self.file(''.join(choose.choice('ab') + '\n' for _ in range(19_000)))})
                 for _ in range(4)]
        self.readme = self.publish({'README.md': {'h': 'unknown', 'inline': 'Read me.\n' * 50}})
        revisions = f'/projects/{self.project}/revisions'
        self.facts = {
            'address': server.address, 'proxy': PROXY, 'raw': [f'{revisions}/{large}/raw/f'],
            'diffs': [f'/projects/{self.project}/diff/{one}..{other}' for one, other in itertools.permutations(sides, 2)],
            'pages': [f'{revisions}/{many}', f'/projects/{self.project}/log', f'{revisions}/{large}/files/f', '/agents',
                      '/projects', f'/threads/{self.thread}'],
        }

    def create(self, collection, body):
        return self.server.create(collection, body, connection=self.connection)['id']

    def publish(self, files, parents=()):
        return self.create('revisions', {'project': self.project, 'parents': list(parents), 'agent': 'mallory',
                                         'message': 'm', 'manifest': {'files': files}})

    def file(self, text):
        chunks = [self.create('file_chunks', {'content': text[at:at + 7500]}) for at in range(0, len(text), 7500)]
        return {'h': hashlib.sha256(text.encode()).hexdigest(), 's': len(text), 'c': chunks}


class Attacked(ServeTest):
    def setUp(self):
        super().setUp()
        limits = self.home / 'limits.json'
        limits.write_text(json.dumps({'messages': None, 'agents': 2000, 'file_chunks': None, 'revisions': None}))
        self.server = Server(self, '--limits', limits, '--proxy', PROXY)
        self.filled, self.honest, self.refused = Filled(self.server), None, 0
        self.addCleanup(self.hang_up)

    def connections(self):
        """Number of its connections, including the listener."""
        place = pathlib.Path(f'/proc/{self.server.process.pid}/fd')
        links = []
        for each in place.iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(os.readlink(each))
        return sum(link.startswith('socket:') for link in links)

    @contextlib.contextmanager
    def running(self, names):
        """Runs these attackers, each in a process; ends them by their ids."""
        environment = {**os.environ, 'PYTHONPATH': str(HERE), 'PYTHONDONTWRITEBYTECODE': '1'}
        processes = []
        try:
            for name in names:
                process = subprocess.Popen([sys.executable, str(HERE / 'serve_attackers.py'), name], env=environment,
                                           stdin=subprocess.PIPE, text=True, stderr=subprocess.PIPE)
                processes.append(process)
                process.stdin.write(json.dumps(self.filled.facts) + '\n')
                process.stdin.flush()
            yield processes
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.communicate()

    def requests(self):
        """The requests that an honest client makes in turn, by name."""
        message = json.dumps({'thread': self.filled.thread, 'author': 'ann', 'body': 'hello ' * 50}).encode()
        fields = {'Content-Type': 'application/json', 'Origin': self.server.url}
        project, revision = self.filled.project, self.filled.readme
        return [('write', 'POST', f'{BASE}/messages', message, fields),
                ('read', 'GET', f'{BASE}/projects/{project}', None, {}),
                ('list', 'GET', f'{BASE}/agents?limit=20', None, {}),
                ('page', 'GET', f'/projects/{project}/revisions/{revision}/files/README.md', None, {})]

    def honest_round(self):
        """Seconds per request, by kind, and any response other than 200."""
        took, troubles = {}, []
        for number in range(REQUESTS):
            for kind, *request in self.requests():
                if kind == 'page' and number % 10:
                    continue
                # One in ten uses a new connection, as new clients do.
                if number % 10 == 0:
                    self.hang_up()
                begin = time.monotonic()
                # A connection may be closed to make room, even in an answer: clients retry.
                for _ in range(MOST_TRIES):
                    status = self.ask(*request)
                    if status is not None:
                        break
                    self.refused += 1
                if status != 200:
                    troubles.append(f'{kind}: {status}')
                took.setdefault(kind, []).append(time.monotonic() - begin)
        return took, troubles

    def ask(self, *request):
        """The status; None if the connection was closed before the whole answer came."""
        if not self.honest:
            self.honest = http.client.HTTPConnection(self.server.address, timeout=LIMIT, source_address=(HONEST, 0))
        try:
            self.honest.request(*request)
            answer = self.honest.getresponse()
            answer.read()
            return answer.status
        except (ConnectionError, http.client.RemoteDisconnected, http.client.IncompleteRead):
            self.hang_up()
            return None

    def hang_up(self):
        if self.honest:
            self.honest.close()
        self.honest = None

    def honest_rounds(self, what, most=None):
        """Median and 99th percentile of the quietest round, by kind; responses other than 200; connections of the
        quietest round that were closed. Two rounds, and more until one is below `most` of its kind."""
        best, troubles, refused = {}, [], []
        for number in range(MOST_ROUNDS):
            is_slow = any(p99 > (most or {}).get(kind, p99) for kind, (_, p99) in best.items())
            if number >= 2 and not is_slow and min(refused) < MOST_REFUSED:
                break
            self.refused = 0
            took, more = self.honest_round()
            troubles += more
            refused.append(self.refused)
            for kind, seconds in took.items():
                seconds.sort()
                measured = (seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100])
                best[kind] = tuple(map(min, best.get(kind, measured), measured))
        print(what, {kind: f'{median * 1000:.1f} / {p99 * 1000:.1f} ms' for kind, (median, p99) in best.items()},
              f'resident {memory(self.server.process) / MIB:.0f} MiB, '
              f'at the most {memory(self.server.process, "VmHWM") / MIB:.0f} MiB, '
              f'{self.connections()} connections, {min(refused)} refused', file=sys.stderr)
        return best, troubles, min(refused)

    def test_all_attacks_at_once(self):
        names = [attack.__name__ for attack in serve_attackers.ALL]
        before = self.connections()
        with self.running(['spin'] * len(names)):
            calm, troubles, _ = self.honest_rounds('calm:    ')
        self.assertEqual(troubles, [])
        most = {kind: MOST_DELAY * max(p99, LEAST_MEASURED) for kind, (_, p99) in calm.items()}
        with self.running(names) as attackers:
            time.sleep(ATTACKER_SECONDS)
            attacked, troubles, refused = self.honest_rounds('attacked:', None if IS_SANITIZED else most)
            self.assertEqual([each.args[-1] for each in attackers if each.poll() is not None], [], 'all are at it still')
        self.assert_memory(memory(self.server.process, 'VmHWM'), MOST_MEMORY)
        self.assertEqual(troubles, [])
        self.assertLess(refused, MOST_REFUSED)
        if not IS_SANITIZED:
            for kind, (_, p99) in attacked.items():
                self.assertLessEqual(p99, most[kind], f'{kind}: {calm} {attacked}')
        self.hang_up()
        self.eventually(lambda: self.connections() <= before, 'their connections are closed')
        self.assert_memory(memory(self.server.process), MOST_MEMORY * 3 // 4, 'what they held is given back')


if __name__ == '__main__':
    main()
