"""Where a run happens: a private folder, and processes that end with it, last started first."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / 'support'))
from fixture import free_port, mounted_directories, temporary_directory  # noqa: E402, F401

LIMIT = 60  # seconds that something may take to start, answer or end


def eventually(claim, what, limit=LIMIT):
    end = time.monotonic() + limit
    while not claim():
        if time.monotonic() > end:
            raise TimeoutError(f'not within {limit} s: {what}')
        time.sleep(0.002)


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', port), timeout=1):
        return True
    return False


def mounted(directory):
    return str(directory) in mounted_directories()


class Process:
    """A process of ours, and its mount where it has one."""

    def __init__(self, world, words, mount=None, **options):
        self.mount = mount
        options.setdefault('stdout', subprocess.DEVNULL)
        self.log = world.folder / 'logs' / f'{len(world.processes)}-{pathlib.Path(str(words[0])).name}'
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stderr=log, **options)
        world.processes.append(self)

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def check(self):
        if not self.alive():
            raise RuntimeError(f'{self.process.args} ended:\n{self.log.read_text(errors="replace")[-2000:]}')

    def until(self, claim, what):
        def claimed():
            self.check()
            return claim()
        eventually(claimed, what)
        return self

    def end(self):
        if self.mount and mounted(self.mount):
            subprocess.run(['fusermount3', '-u', str(self.mount)], capture_output=True, timeout=LIMIT)
            if mounted(self.mount):
                subprocess.run(['fusermount3', '-u', '-z', str(self.mount)], capture_output=True, timeout=LIMIT)
        elif self.alive():
            self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_seconds(self):
        """Of all its threads, to the nanosecond; of threads that have ended it does not know."""
        spent = 0
        for task in pathlib.Path(f'/proc/{self.pid}/task').iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                spent += int((task / 'schedstat').read_text(encoding='ascii').split()[0])
        return spent / 1e9

    def resident_bytes(self, what='VmRSS'):
        with open(f'/proc/{self.pid}/status', encoding='ascii') as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(what + ':'))


class World:
    def __init__(self, build, place):
        self.build = pathlib.Path(build)
        self.playfs = self.build / 'src/app/playfs'
        self.place = contextlib.ExitStack()
        self.folder = self.place.enter_context(temporary_directory(place))
        (self.folder / 'logs').mkdir()
        self.processes = []
        self.names = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.place:
            for process in reversed(self.processes):
                process.end()

    def new_folder(self, name):
        self.names += 1
        folder = self.folder / f'{name}-{self.names}'
        folder.mkdir()
        return folder

    def driver(self, name):
        return self.build / 'tests/bench/drivers' / f'bench-{name}'

    def start(self, *words, **options):
        return Process(self, words, **options)

    def run(self, *words, **options):
        options.setdefault('timeout', 600)
        options.setdefault('input', '')
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
        if done.returncode:
            raise RuntimeError(f'{words}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}')
        return done.stdout

    def sync(self):
        """Writes back what the disk that is measured on still owes, and no other."""
        self.run('sync', '--file-system', self.folder)

    def storm(self, kind, root, count=1):
        """Seconds by the driver's own clock. `root` is entered first, so that no file system pays for a longer path."""
        inside = os.path.isdir(root)
        return float(self.run(self.driver('storm'), kind, '.' if inside else root, count, cwd=root if inside else None))

    # playfs.

    def environment(self, home, agent='bench'):
        """One home is one user: its cache and stage are its own."""
        home = pathlib.Path(home)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(('PLAYFS_', 'XDG_'))}
        (home / 'run').mkdir(parents=True, exist_ok=True, mode=0o700)
        inner = {f'XDG_{kind}_HOME': str(home / kind.lower()) for kind in ('CONFIG', 'DATA', 'CACHE', 'STATE')}
        return {**kept, **inner, 'HOME': str(home), 'XDG_RUNTIME_DIR': str(home / 'run'), 'PLAYFS_AGENT': agent}

    def command(self, *words, home=None, **options):
        return self.run(self.playfs, *words, env=self.environment(home or self.folder / 'publisher'), **options)

    def import_tree(self, url, tree, name):
        """Project and revision id."""
        done = json.loads(self.command('import', '--json', '--site', url, '--name', name, tree))
        project = done.get('project')
        record = Api(url).record('projects', project['id'] if isinstance(project, dict) else project)
        return record['id'], record['latest_revision']

    def mount(self, source, home, options=(), directory=None):
        """The mount answers when this returns; nothing of it was entered."""
        directory = directory or self.new_folder('mnt')
        words = [self.playfs, 'mount', '-f', source, directory]
        if options:
            words += ['-o', ','.join(options)]
        process = self.start(*words, mount=directory, env=self.environment(home))
        process.until(lambda: mounted(directory), f'{directory} is mounted')
        return process

    @staticmethod
    def messages(mount):
        """What the kernel asked of a playfs mount so far, by operation."""
        counts = {}
        for line in (pathlib.Path(mount) / '.playfs/metrics').read_text(encoding='utf-8').splitlines():
            if line.startswith('playfs_operations_total{operation="'):
                counts[line.split('"')[1]] = int(line.split()[-1])
        return counts

    def messages_since(self, mount, before):
        """What was asked since `before = messages(mount)`, without what asking for that costs."""
        now = self.messages(mount)
        asking = difference(now, self.messages(mount))
        found = difference(before, now)
        return {name: count - asking.get(name, 0) for name, count in found.items() if count > asking.get(name, 0)}


def difference(before, after):
    return {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}


class Api:
    def __init__(self, url):
        self.base = url + '/.site/data'

    def get(self, path):
        with urllib.request.urlopen(self.base + path, timeout=LIMIT) as answer:
            return json.load(answer)

    def record(self, collection, identity):
        record = self.get(f'/{collection}/{identity}')['record']
        return {**record, **record.get('data', {})}


def drop_caches(what=3):
    """The kernel's pages (1), names and attributes (2). False where we may not."""
    try:
        with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as switch:
            switch.write(str(what))
    except PermissionError:
        return False
    return True
