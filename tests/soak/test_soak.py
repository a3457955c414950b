#!/usr/bin/env python3
"""Users of several mounts work for minutes on the same projects while the service is killed and restarted, and their
network is slow, hangs or fails. Then everybody finds what they wrote, and nothing is left behind. worker.py is one
user.

Claims:
- No byte is wrong. A user's own files are what that user wrote last, other users' could be something they wrote
  (contents.py), revisions never change, and at the end every mount has the latest of everybody's work.
- Operations fail only during a trouble, and local content never waits for the service.
- Memory and descriptors do not grow, all gauges return to their initial values, and every process ends well.

PLAYFS_SOAK_MINUTES is the duration (one), PLAYFS_SOAK_SEED determines what happens, PLAYFS_SOAK_OUT is where
figures.json and a plot go.
"""
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import contents
import proxy
import fixture
from coherence_trouble import Trouble
from service import Service

LIBC = ctypes.CDLL(None)
REMOUNT = 32 | 2 | 4  # MS_REMOUNT, plus MS_NOSUID and MS_NODEV, which every mount has
MINUTES = float(os.environ.get('PLAYFS_SOAK_MINUTES', '1'))
SEED = int(os.environ.get('PLAYFS_SOAK_SEED', '1'))
OUT = os.environ.get('PLAYFS_SOAK_OUT')
HERE = pathlib.Path(__file__).parent

IS_ROOT = os.geteuid() == 0  # root may mount for others, and switch users
MOUNTS = {'plain': ('refresh=1',), 'small': ('refresh=1', 'cache_size=2M'),
          'shared': ('refresh=1', 'allow_other') if IS_ROOT else ('refresh=1',)}
USERS = 2          # per mount
PROJECTS = 2
NOBODY = 65534     # the user of the mount that allows others
TROUBLES = ('hang', 'hang', 'drop', 'failed', 'slow', None, None, None)
LONGEST = 8        # seconds that a trouble lasts
RECOVERED = 20     # seconds after a trouble in which operations that fail because of it may still begin
CALM = 0.25        # share of the time, at its end, without troubles: failures then have no excuse
KILLED_EVERY = 20  # seconds
OVER_OPEN_FILES = 'append', 'overwrite'  # which may find that a commit or head replaced the file
NEVER_LAWFUL = ('No such file', 'Stale file handle', 'Not a directory', 'Bad file descriptor')
LOCAL = 'replace', 'stat', 'list'  # of the user's own files, which needs nothing from the service
STALLED = 1.0      # seconds that this process was delayed, so others may have been too
# Memory that a mount or service may have at the end, beyond its maximum in the second quarter: the allocator causes
# that much with threads that come and go, and so does a growing history. A leak of a megabyte a minute shows in an
# hour.
MORE_MEMORY, MORE_SHARE = 32 << 20, 0.25
# Files that a mount keeps open for the next reader or writer: of its cache, and of each work tree.
KEPT_BELOW, KEPT_OPEN = re.compile('/(objects|spool)/'), 256 * (1 + PROJECTS)
CONNECTIONS = 64 + 8  # to the service, which a mount keeps, and other sockets
MORE_DESCRIPTORS = 8


def descriptors(process):
    """Number of descriptors: all, files that it may keep open, connections, and others. A file that is open twice is
    kept once."""
    of = []
    for each in os.listdir(f'/proc/{process.pid}/fd'):
        with contextlib.suppress(FileNotFoundError):  # closed by now
            of.append(os.readlink(f'/proc/{process.pid}/fd/{each}'))
    kept, connections = len({each for each in of if KEPT_BELOW.search(each)}), sum(each.startswith('socket:') for each in of)
    return len(of), kept, connections, len(of) - kept - connections


class Watch(threading.Thread):
    """Samples memory and descriptors of processes once a second, and when this process was delayed itself."""

    def __init__(self, processes):
        super().__init__(daemon=True)
        self.processes, self.samples, self.stalls, self.over = processes, [], [], threading.Event()

    def run(self):
        next_sample = last = time.monotonic()
        while not self.over.wait(0.05):
            now = time.monotonic()
            if now - last > STALLED:
                self.stalls.append((last, now))
            last = now
            if now >= next_sample:
                self.sample(now)
                next_sample = now + 1

    def sample(self, now):
        for name, process in self.processes().items():
            try:
                self.samples.append((now, name, fixture.memory(process), *descriptors(process)))
            except (OSError, TypeError):
                pass  # it has just ended


@fixture.needs_fuse
class Soak(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.out_of_time.cancel()  # every wait has a time limit of its own
        self.chance, self.stop = random.Random(SEED), self.home / 'stop'
        self.home.chmod(0o755)
        self.program = self.home / 'playfs'  # where another user may run it, too
        shutil.copy(self.playfs_path, self.program)
        self.service = Service(self)
        self.failed_while_starting = self.failed_requests()
        self.api = fixture.Api(self.service.url)
        self.ids = [self.api.create('projects', name=f'soak {n}')['id'] for n in range(PROJECTS)]
        self.played, self.troubles, self.ways = {}, {}, {}
        for name, options in MOUNTS.items():
            self.troubles[name], self.ways[name] = Trouble(None), proxy.CountingProxy(self.service.port)
            self.addCleanup(self.ways[name].close)
            self.ways[name].fate = self.troubles[name].fate
            self.played[name] = self.mount(self.ways[name].url, name, options)
        self.watch = Watch(lambda: {'serve': self.service.process, **{n: m.process for n, m in self.played.items()}})
        self.users = [f'{name}{number}' for name in MOUNTS for number in range(USERS)]
        self.logs = []

    def project(self, mount, project):
        return self.played[mount].directory / 'projects' / project

    # While everything runs.

    def start_user(self, mount, user):
        is_other = IS_ROOT and user == f'shared{USERS - 1}'
        log = self.home / f'{user}.ndjson'
        self.logs.append(log)
        for project in self.ids:
            folder = self.project(mount, project) / 'work' / user
            folder.mkdir()
            folder.chmod(0o777 if is_other else 0o755)
        setting = {'name': user, 'seed': self.chance.random(), 'stop': str(self.stop), 'log': str(log),
                   'projects': [str(self.project(mount, each)) for each in self.ids],
                   'command': [str(self.program)], 'users': self.users, 'uid': NOBODY if is_other else None}
        process = subprocess.Popen([sys.executable, str(HERE / 'worker.py')], env=self.environment(mount),
                                   stdin=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps(setting))
        process.stdin.close()
        return process

    def trouble(self, until):
        """The troubles: each connection has its own, one after the other, and the service is killed."""
        killed, ends = time.monotonic(), {}
        while (now := time.monotonic()) < until:
            for name, trouble in self.troubles.items():
                if now >= ends.get(name, 0):
                    ends[name] = now + self.chance.uniform(1, LONGEST)
                    self.next_trouble(trouble, self.chance.choice(TROUBLES))
            if now - killed > KILLED_EVERY:
                self.service.kill()
                time.sleep(self.chance.choice((0, 0.5, 3)))
                self.service.start()
                self.failed_while_starting = self.failed_requests()
                killed = time.monotonic()
            time.sleep(0.1)
        for trouble in self.troubles.values():
            self.next_trouble(trouble, None)

    def next_trouble(self, trouble, kind):
        trouble.end()
        trouble.delay = self.chance.choice((0.02, 0.3)) if kind == 'slow' else 0
        if kind not in ('slow', None):
            trouble.begin(kind)

    def test_a_while(self):
        begin, before = time.monotonic(), {name: self.gauges(name) for name in MOUNTS}
        self.watch.start()
        workers = [self.start_user(mount, f'{mount}{number}') for mount in MOUNTS for number in range(USERS)]
        self.trouble(begin + 60 * MINUTES * (1 - CALM))
        time.sleep(60 * MINUTES * CALM)
        self.stop.touch()
        for worker in workers:
            self.assertEqual(worker.wait(fixture.TEST_LIMIT), 0, 'a user ends well')
        end = time.monotonic()
        lines = [json.loads(line) for log in self.logs for line in log.read_text(encoding='utf-8').splitlines()]
        self.judge(lines)
        self.find_everything([line for line in lines if line['what'] == 'end'])
        self.come_to_rest(before)
        self.watch.over.set()
        self.watch.join()
        self.tell(lines, begin, end)
        self.assert_flat(begin, end)
        for mount in self.played.values():
            mount.unmount()
            self.assertEqual(mount.process.returncode, 0)
        self.end_service()

    def failed_requests(self):
        """How many requests the service has answered with 5xx since it was started."""
        with urllib.request.urlopen(f'{self.service.url}/metrics', timeout=fixture.COMMAND_LIMIT) as answer:
            return sum(map(int, re.findall(r'status="5xx"} (\d+)', answer.read().decode())))

    def end_service(self):
        """It has failed no request since it was ready, and its store is sound after all the kills."""
        self.assertEqual(self.failed_requests(), self.failed_while_starting)
        self.service.process.terminate()
        self.assertEqual(self.service.process.wait(fixture.COMMAND_LIMIT), 0)
        self.playfs('serve', 'check', '--store', self.home / 'store')

    # The claims.

    def ill(self, user):
        """When there was trouble between a user and the service."""
        mount = user.rstrip('0123456789')
        return self.service.times + [[begin, end] for begin, end, _ in self.troubles[mount].times]

    def judge(self, lines):
        for line in lines:
            if line['what'] == 'wrong':
                self.fail(str(line))
            if line['what'] == 'refused':
                if 'Stale file handle' in line['why'] and line['kind'] in OVER_OPEN_FILES:
                    continue
                lawful = any(begin < line['end'] and end + RECOVERED > line['begin'] for begin, end in self.ill(line['who']))
                if not lawful or any(each in line['why'] for each in NEVER_LAWFUL):
                    self.fail(str(line))
            if line['what'] == 'slow' and line['kind'] in LOCAL:
                self.assert_waited_for_no_service(line)

    def latest_refusal(self, lines):
        """How long after a trouble the last operation that was refused had begun."""
        late = [min(max(0.0, line['begin'] - end) for begin, end in self.ill(line['who']) if begin < line['end'])
                for line in lines if line['what'] == 'refused']
        return max(late, default=0.0)

    def assert_waited_for_no_service(self, line):
        """A local operation that began and ended with a trouble waited for its end, however busy the machine is. If
        this process was delayed as well, it proves nothing."""
        for begin, end in self.ill(line['who']):
            is_held_up = any(first < line['end'] and last > line['begin'] for first, last in self.watch.stalls)
            if line['begin'] < begin + 1 and abs(line['end'] - end) < 1 and end - begin > 4 and not is_held_up:
                self.fail(f'waited for the service: {line}, which was away from {begin} to {end}')

    def find_everything(self, ends):
        """All users publish what they have, and every mount shows the latest of it."""
        self.assertEqual(len(ends), len(self.users))
        for name, mount in self.played.items():
            for project in self.ids:
                self.eventually(lambda: not self.playfs('commit', self.project(name, project) / 'work', '-m', 'the last',
                                                        who=name, check=False).returncode, f'{name} can publish')
        for name in self.played:
            for project in self.ids:
                self.playfs('update', self.project(name, project) / 'work', who=name)
                status = json.loads(self.playfs('status', '--json', self.project(name, project) / 'work', who=name).stdout)
                self.assertEqual((status['staged'], status['conflicts']), ([], []), f'{name}: nothing is left to publish')
                for view in ('work', 'head'):
                    self.eventually(lambda: self.lacks(name, project, view, ends) is None,
                                    f'{name} {view}: {self.lacks(name, project, view, ends)}')

    def lacks(self, mount, project, view, ends):
        """The first difference."""
        tree = (self.project(mount, project) / view).resolve()
        for end in ends:
            of_user = {each.rpartition('/projects/')[2]: each for each in end['files']}
            wanted, unsure = end['files'][of_user[project]], end['unsure'][of_user[project]]
            seen = {}
            for folder, _, names in os.walk(tree / end['who']):
                for name in names:
                    if not name.startswith(('tmp', 'link')) and name not in unsure:
                        path = pathlib.Path(folder) / name
                        seen[str(path.relative_to(tree / end['who']))] = path.read_bytes().decode()
            if seen != wanted:
                paths = sorted(path for path in {*seen, *wanted} if seen.get(path) != wanted.get(path))
                return f'{end["who"]}: {paths[:5]}'
        return None

    # What is left behind.

    def gauges(self, mount):
        text = (self.played[mount].directory / '.playfs/metrics').read_text()
        names = [line.split()[2] for line in text.splitlines() if line.startswith('# TYPE') and line.endswith('gauge')]
        return {line.split()[0]: float(line.split()[1]) for line in text.splitlines()
                if line.split()[0].partition('{')[0] in names and line[0] != '#'}

    def come_to_rest(self, before):
        errors = {name: self.errors(name) for name in self.played}
        for name, gauges in before.items():
            if not self.kernel_forgets(self.played[name]):
                gauges.pop('playfs_nodes')
            self.eventually(lambda: gauges.items() <= self.gauges(name).items(),
                            f'{name}: gauges are back: {gauges} before, {self.gauges(name)} now')
            self.assertEqual(self.errors(name), errors[name], 'nothing goes wrong when nobody does anything')
            self.assertEqual([each for each in self.found_by_doctor(name) if each['finding'] != 'well'], [])

    @staticmethod
    def kernel_forgets(mount):
        """Drops what is unused in one mount, by a remount, which changes nothing else. Returns whether that is
        permitted."""
        return LIBC.mount(b'none', os.fsencode(mount.directory), None, REMOUNT, None) == 0

    def errors(self, mount):
        return (self.played[mount].directory / '.playfs/errors.ndjson').read_text()

    def assert_flat(self, begin, end):
        if fixture.IS_SANITIZED:
            return
        for name, process in self.watch.processes().items():
            # A service opens its store, and the log of it, for as many threads as have read at once.
            more_opened = MORE_DESCRIPTORS + 2 * len(os.listdir(f'/proc/{process.pid}/task')) * (name == 'serve')
            # A service is young after each kill, so all its processes count.
            warm = [each for each in self.watch.samples if each[1] == name and begin + (end - begin) / 4 < each[0] <
                    begin + (end - begin) / 2]
            last = [each for each in self.watch.samples if each[1] == name][-3:]
            for what, at, more in (('bytes', 2, lambda most: most * MORE_SHARE + MORE_MEMORY),
                                   ('other descriptors', 6, lambda _: more_opened)):
                most, now = max(each[at] for each in warm), min(each[at] for each in last)
                self.assertLess(now, most + more(most), f'{name}: {what}, from {most} to {now}')
            for what, at, bound in (('files kept open', 4, KEPT_OPEN), ('connections', 5, CONNECTIONS)):
                self.assertLessEqual(min(each[at] for each in last), bound, f'{name}: {what}')

    # Report.

    def tell(self, lines, begin, end):
        took = collections.defaultdict(list)
        for line in lines:
            for kind, seconds in line.get('took', {}).items():
                took[kind] += seconds
        print(f'\nseed {SEED}: {sum(map(len, took.values()))} operations in {end - begin:.0f} s, '
              f'{len(self.api.all("revisions"))} revisions, {len(self.service.times)} restarts, '
              f'{sum(len(each.times) for each in self.troubles.values())} troubles, '
              f'{sum(line["what"] == "refused" for line in lines)} refused, {self.latest_refusal(lines):.1f} s after trouble '
              f'at the most, held up for {sum(last - first for first, last in self.watch.stalls):.1f} s')
        print(f'{"operation":14}{"times":>8}{"p50 ms":>10}{"p99 ms":>10}{"worst ms":>10}')
        table = {}
        for kind, seconds in sorted(took.items()):
            seconds.sort()
            table[kind] = [len(seconds), *(1000 * seconds[int(len(seconds) * part)] for part in (0.5, 0.99)), 1000 * seconds[-1]]
            print(f'{kind:14}{table[kind][0]:8}' + ''.join(f'{each:10.1f}' for each in table[kind][1:]))
        for name in ('serve', *self.played):
            memory = [each[2] >> 20 for each in self.watch.samples if each[1] == name]
            opened = [each[3:] for each in self.watch.samples if each[1] == name]
            print(f'{name:14}{memory[len(memory) // 3]:4} MB after a third, {max(memory)} at most, {memory[-1]} at the end; '
                  f'{max(opened)[0]} descriptors at most, {opened[-1][0]} at the end: '
                  '{1} files kept open, {2} connections, {3} others'.format(*opened[-1]))
        if OUT:
            self.write_figures(pathlib.Path(OUT), table, begin)

    def write_figures(self, out, table, begin):
        out.mkdir(parents=True, exist_ok=True)
        samples = [(round(at - begin, 1), *more) for at, *more in self.watch.samples]
        (out / 'figures.json').write_text(json.dumps({'seed': SEED, 'operations_ms': table, 'samples': samples}))
        names = ('serve', *self.played)
        for name in names:
            (out / f'{name}.dat').write_text(''.join(f'{at} {memory / 1e6} {opened}\n' for at, each, memory, opened, *_
                                                     in samples if each == name))
        curves = ', '.join(f'"{out}/{name}.dat" using ($1/60):COLUMN with lines title "{name}"' for name in names)
        script = f'''set terminal svg size 1100,700 font "sans,12" background "white"
set output "{out}/soak.svg"
set multiplot layout 2,1
set xlabel "minutes"
set yrange [0:*]
set ylabel "resident MB"
plot {curves.replace("COLUMN", "2")}
set ylabel "descriptors"
plot {curves.replace("COLUMN", "3")}
'''
        subprocess.run(['gnuplot'], input=script, text=True, check=True)


class Contents(unittest.TestCase):
    """Wrong bytes are detected."""

    def test_what_is_wrong_is_told(self):
        one, two = contents.record('a.1', 4, 300), contents.record('a.1', 5, 300)
        slots = b''.join(contents.slot('a.3', place, 9) for place in range(contents.SLOTS))
        self.assertEqual((contents.changes('whole-a.1', one), contents.changes('log-a.1', one + two)), ([4], [4, 5]))
        self.assertEqual((contents.changes('log-a.1', b''), contents.changes('slots-a.3', slots)), ([], [9] * contents.SLOTS))
        flipped = one[:200] + bytes([one[200] ^ 1]) + one[201:]
        in_pages = contents.record('a.1', 6, 5000)
        self.assertEqual(contents.changes('log-a.1', in_pages[:contents.PAGE]), [])
        for name, data in (('log-a.1', in_pages[:contents.PAGE - 1]), ('whole-a.1', in_pages[:contents.PAGE]),
                           ('whole-a.1', flipped), ('whole-a.1', one[:-1]), ('whole-a.1', b''), ('whole-a.2', one),
                           ('whole-a.1', one + two), ('log-a.1', two + one), ('log-a.1', one + two[:-5]),
                           ('slots-a.3', slots[:-contents.SLOT]), ('slots-a.3', slots[contents.SLOT:] + slots[:contents.SLOT])):
            self.assertRaises(ValueError, contents.changes, name, data)


if __name__ == '__main__':
    fixture.main()
