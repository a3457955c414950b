"""Mounts in which many readers wait for chunks that never come, beside calm mounts; what else is done in them, and
which of our processes get stuck in the kernel."""
import contextlib
import math
import os
import pathlib
import subprocess
import sys
import threading
import time

import proxy
import fixture
from projects import publish

FILES = 50  # per manifest
# Several pages: the kernel reads smaller files page by page once too many reads are under way.
SIZE = 16_000
STUCK_WITHIN = 20  # seconds that the kernel may take to end a process's wait

READ_A_PAGE_EACH = '''
import os, sys, threading
def read(path):
    with open(path, 'rb', buffering=0) as file:
        os.read(file.fileno(), 4096)
        print(path, flush=True)
threads = [threading.Thread(target=read, args=(path,)) for path in sys.stdin.read().split()]
for thread in threads: thread.start()
'''


class HungReaders:
    """One process with a thread per file, each reading the file's first page."""

    def __init__(self, test, files, said):
        self.said = said  # a path: the files that were read after all
        with open(said, 'w', encoding='utf-8') as out:
            self.process = subprocess.Popen([sys.executable, '-S', '-c', READ_A_PAGE_EACH], stdin=subprocess.PIPE,
                                            stdout=out, stderr=subprocess.DEVNULL, text=True)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)
        self.process.stdin.write('\n'.join(map(str, files)))
        self.process.stdin.close()

    def have_read(self):
        return pathlib.Path(self.said).read_text().splitlines()

    def kill(self):
        self.process.kill()
        self.process.wait(fixture.COMMAND_LIMIT)


class Stuck:
    """Samples which threads of some processes wait where no signal reaches them, and since when."""

    def __init__(self):
        self.watched, self.since, self.longest = set(), {}, {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, process):
        self.watched.add(process.pid)

    def end(self):
        """The longest wait in seconds, by thread."""
        self._over.set()
        self._thread.join()
        return self.longest

    def _run(self):
        while not self._over.wait(0.2):
            self._look()

    def _look(self):
        now, seen = time.monotonic(), {}
        for pid in list(self.watched):
            for task in pathlib.Path(f'/proc/{pid}/task').glob('*'):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                    if (task / 'stat').read_text().rsplit(')', 1)[1].split()[0] == 'D':
                        # A thread that was scheduled in between is in another wait.
                        waits = (int(task.name), (task / 'status').read_text().rsplit('\nvoluntary', 1)[1])
                        seen[waits] = self.since.get(waits, now)
        for (task, _), since in seen.items():
            self.longest[task] = max(self.longest.get(task, 0.0), now - since)
        self.since = seen


class HungMount(fixture.Fixture):
    def begin(self, readers):
        """Publishes a project `near`, whose content will be on disk, and as many files in other projects as there are
        readers."""
        self.api, self.proxy = proxy.before_a_service(self)
        self.near = publish(self.api, 'near', {f'near{n}': f'content {n}\n'.ljust(SIZE) for n in range(FILES)})
        names = [f'far{n}' for n in range(readers)]
        self.far = [publish(self.api, f'far {n}', {name: f'{name} is far\n'.ljust(SIZE) for name in names[n:n + FILES]})
                    for n in range(0, readers, FILES)]

    def mount_with_near_on_disk(self, url=None, who='ann', options=()):
        """Its content is in our cache, but not in the kernel's."""
        url = url or self.proxy.url
        first = self.mount(url, who, ('refresh=600', *options))
        self.command('grep', '-r', 'content', f'{first.directory}/projects/{self.near}/head/')
        first.unmount()
        return self.mount(url, who, ('refresh=600', 'noprefetch', *options))

    # The kernel's own file system of FUSE connections.

    def connection(self, mount):
        table = self.home / 'connections'
        if not table.exists():
            table.mkdir()
            if subprocess.run(['mount', '-t', 'fusectl', 'none', table], capture_output=True).returncode:
                self.skipTest('connections are counted for root alone')
            self.addCleanup(subprocess.run, ['umount', table], check=True)
        return table / str(os.stat(mount.directory).st_dev)

    def in_flight(self, mount):
        """Unanswered requests."""
        return int((mount.connection / 'waiting').read_text())

    def mount(self, *arguments, **options):
        mount = super().mount(*arguments, **options)
        mount.connection = self.connection(mount)
        return mount

    def _kill_mounts(self):
        for mount in self.mounts:
            self.abort(mount.connection)
        super()._kill_mounts()

    def abort(self, connection):
        """Ends everything that hangs there, even where no signal reaches."""
        if connection.exists():
            (connection / 'abort').write_text('1')

    def far_files(self, mount, count):
        files = [path for far in self.far for path in (mount.directory / 'projects' / far / 'head').iterdir()]
        self.assertGreaterEqual(len(files), count)
        return files[:count]

    def hang(self, mount, count):
        """Starts readers, each in a read of a page that the server never answers."""
        before = self.in_flight(mount)
        files = self.far_files(mount, count)
        self.proxy.set_hanging('/file_chunks/')
        readers = HungReaders(self, files, self.home / f'read in {mount.directory.name}')
        self.eventually(lambda: self.in_flight(mount) >= before + count, 'each has a request of its own')
        return readers

    # What is done meanwhile.

    def ordinary(self, mount):
        """Operations that must cost the same whoever hangs, by name: functions of a fresh number."""
        project = mount.directory / 'projects' / self.near
        work = project / 'work'
        (work / 'staged').write_bytes(b'x' * SIZE)

        def read(number):
            pieces = 0
            with open(project / 'head' / f'near{number % FILES}', 'rb', buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while piece := file.read(4096):
                    pieces += len(piece)
            self.assertEqual(pieces, SIZE)

        def write(number):
            with open(work / 'staged', 'r+b', buffering=0) as file:
                file.seek(number % 3 * 4096)
                file.write(b'y' * 4096)
            (work / f'new{number}').write_bytes(b'new')

        def listed(number):
            # The name created last makes the kernel list the third directory again.
            for directory in (mount.directory / 'projects', project / 'head', work):
                with os.scandir(directory) as entries:
                    self.assertGreater(sum(entry.is_dir(follow_symlinks=False) or 1 for entry in entries), 0)

        def looked_up(number):
            self.assertFalse((project / 'head' / f'none{number}').exists())

        def status(number):
            self.assertIn('new', self.playfs('status', work).stdout)

        return {'cached read': read, 'staged write': write, 'ls': listed, 'look-up': looked_up, 'status': status}

    def waited(self, mount):
        """How many operations could not be answered at once."""
        text = (mount.directory / '.playfs/metrics').read_text()
        return sum(int(line.split()[-1]) for line in text.splitlines()
                   if line.startswith('playfs_operations_waited_total{'))

    def side_by_side(self, calm, hung, rounds, but_for=(), begin=0, seconds=math.inf):
        """Durations of each ordinary operation in both mounts, by name: [(calm, hung)], alternating. Rounds are
        numbered from `begin`; only the first may begin after `seconds`."""
        end = time.monotonic() + seconds
        acts = [(self.ordinary(calm), 0), (self.ordinary(hung), 1)]
        figures = {name: [] for name in acts[0][0] if name not in but_for}
        for number in range(begin, begin + rounds):
            if number > begin and time.monotonic() > end:
                break
            for name, pairs in figures.items():
                pair = [0.0, 0.0]
                for act, column in acts if number % 2 else reversed(acts):
                    began = time.perf_counter()
                    act[name](number)
                    pair[column] = time.perf_counter() - began
                pairs.append(tuple(pair))
        return figures


def ratio(pairs):
    """How much longer the hung one takes, by the shortest times, to which a busy machine adds nothing."""
    calm, hung = (min(pair[column] for pair in pairs) for column in (0, 1))
    return hung / calm
