"""The fixture for tests of the real binary: a service on a free port, mounts in private folders, and time limits.

Cleanups end everything that a test starts, in reverse order, even if it fails, times out or is terminated. Nothing here
touches a process or mount that the test did not start.
"""
import atexit
import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = ROOT / 'tests/data/cproject'
SKIPPED = 77
# Seconds until a test's mounts are killed, which ends whatever hangs on them.
TEST_LIMIT = int(os.environ.get('PLAYFS_TEST_LIMIT', '240'))
RECORD_LIMIT = 16 * 1024
# Set by tools/test --sanitize=…. Sanitizers keep freed memory, so measurements mean nothing.
IS_SANITIZED = 'PLAYFS_SANITIZED' in os.environ
COMMAND_LIMIT = 600 if IS_SANITIZED else 60  # seconds that one command or one wait may take


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def mounted_directories():
    with open('/proc/self/mounts', encoding='utf-8', errors='surrogateescape') as mounts:
        return [line.split()[1].replace('\\040', ' ') for line in mounts]


@contextlib.contextmanager
def temporary_directory(place=None):
    """A private folder in `place`, removed at the end, but never through a mount."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='playfs-test-', dir=place))
    try:
        yield folder
    finally:
        if left := [path for path in mounted_directories() if path.startswith(f'{folder}/')]:
            raise AssertionError(f'left mounted: {left}')
        shutil.rmtree(folder)


def memory(process, what='VmRSS'):
    """Bytes: VmRSS now, VmHWM at peak."""
    status = pathlib.Path(f'/proc/{process.pid}/status').read_text(encoding='ascii')
    return int(re.search(rf'{what}:\s+(\d+) kB', status)[1]) * 1024


def forget_most_memory(process):
    """Resets VmHWM."""
    pathlib.Path(f'/proc/{process.pid}/clear_refs').write_text('5')


def fields(record):
    """A record's declared fields, whether at top level or under `data`, with the system fields."""
    return {**record, **record.get('data', {})}


class Api:
    """The Data API over plain HTTP, without the client under test."""

    def __init__(self, url):
        self.origin = url
        self.base = url + '/.site/data'

    def request(self, method, path, body=None):
        """Status and parsed body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method, headers={
            'Content-Type': 'application/json', 'Origin': self.origin})
        try:
            with urllib.request.urlopen(request, timeout=COMMAND_LIMIT) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)

    def call(self, method, path, body=None):
        status, answer = self.request(method, path, body)
        if status != 200:
            raise AssertionError(f'{method} {path}: {status} {answer}')
        return answer

    def create(self, collection, **body):
        return fields(self.call('POST', f'/{collection}', body)['record'])

    def get(self, collection, record):
        return fields(self.call('GET', f'/{collection}/{record}')['record'])

    def all(self, collection):
        """Every record as it was sent."""
        cursor, records = '', []
        while cursor is not None:
            page = self.call('GET', f'/{collection}?limit=100' + (f'&cursor={cursor}' if cursor else ''))
            records += page['records']
            cursor = page.get('nextCursor')
        return records


class Mount:
    """A mount by a process of its own, in the foreground so that its pid is known."""

    def __init__(self, case, source, directory, who, options):
        self.case, self.directory, self.who = case, pathlib.Path(directory), who
        command = [case.playfs_path, 'mount', '-f', *([source] if source else []), str(directory)]
        if options:
            command += ['-o', ','.join(options)]
        self.process = subprocess.Popen(command, env=case.environment(who), stdin=subprocess.DEVNULL)
        case.addCleanup(self.end)
        case.eventually(self.answers, f'the mount at {directory} answers')

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f'playfs mount ended with {self.process.returncode}')
        try:
            os.statvfs(self.directory)  # the kernel may answer anything else from a dead mount's caches
        except OSError:
            return False
        return os.path.ismount(self.directory) and (self.directory / '.playfs').is_dir()

    def project(self, name):
        return (self.directory / 'projects/by-name' / name).resolve()

    def kill(self):
        """As the kernel's OOM killer would; the dead mount stays behind."""
        self.process.kill()
        self.process.wait(COMMAND_LIMIT)

    def unmount(self):
        # It is busy while another test's `playfs doctor` looks at it.
        command = ['fusermount3', '-u', str(self.directory)]
        self.case.eventually(lambda: subprocess.run(command, capture_output=True, timeout=COMMAND_LIMIT).returncode == 0,
                             f'{self.directory} is unmounted')
        self.process.wait(COMMAND_LIMIT)

    def end(self):
        if self.process.poll() is None:
            subprocess.run(['fusermount3', '-u', '-z', str(self.directory)], capture_output=True, timeout=COMMAND_LIMIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        if self.process.poll() is None:
            self.kill()
        while str(self.directory) in mounted_directories():
            if subprocess.run(['fusermount3', '-u', '-z', str(self.directory)], capture_output=True).returncode:
                break


class Fixture(unittest.TestCase):
    playfs_path = os.environ.get('PLAYFS', str(ROOT / 'build/src/app/playfs'))

    def setUp(self):
        self.home = self.enterContext(temporary_directory())
        self.mounts = []
        self.out_of_time = threading.Timer(TEST_LIMIT, self._kill_mounts)
        self.out_of_time.daemon = True
        self.out_of_time.start()
        self.addCleanup(self.out_of_time.cancel)
        # meson ends a slow test with SIGTERM; run the cleanups even then.
        atexit.register(self.doCleanups)
        self.addCleanup(atexit.unregister, self.doCleanups)

    def _kill_mounts(self):
        print(f'out of time after {TEST_LIMIT} s: killing the mounts', file=sys.stderr)
        for mount in self.mounts:
            mount.process.kill()

    # Processes.

    def environment(self, who):
        """Folders per user, so that two mounts share nothing but the service."""
        home = self.home / who
        inner = {f'XDG_{kind}_HOME': str(home / kind.lower()) for kind in ('CONFIG', 'DATA', 'CACHE', 'STATE')}
        (home / 'run').mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(('PLAYFS_', 'XDG_'))}
        return {**kept, **inner, 'HOME': str(home), 'XDG_RUNTIME_DIR': str(home / 'run'), 'PLAYFS_AGENT': who}

    def command(self, *words, who='ann', check=True, text=True, **options):
        """Runs a command to its end and captures its output."""
        done = subprocess.run([str(word) for word in words], env=self.environment(who), timeout=COMMAND_LIMIT, text=text,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        if check and done.returncode:
            raise AssertionError(f'{words}: exit {done.returncode}\n{done.stdout}{done.stderr}')
        return done

    def playfs(self, *words, **options):
        return self.command(self.playfs_path, *words, **options)

    def found_by_doctor(self, who='ann'):
        """What playfs doctor finds in this test's home. It also looks at the mounts of other tests, which may hang."""
        found = json.loads(self.playfs('doctor', '--json', who=who, check=False).stdout)['findings']
        return [each for each in found if each['place'].startswith(f'{self.home}/')]

    def on_terminal(self, *words, who='ann', cwd='/', variables=None, until=None, answer=b'', then=()):
        """Runs a command on an 80-column terminal and types `answer` once `until` is shown; `then`: more such pairs, whose
        answer may be a function. Exit code and output."""
        kept = {name: value for name, value in self.environment(who).items() if name not in ('PAGER', 'NO_COLOR', 'LESS')}
        try:
            pid, terminal = pty.fork()
        except OSError as missing:
            self.skipTest(f'no terminals here: {missing}')
        if pid == 0:
            os.chdir(cwd)
            termios.tcsetwinsize(0, (24, 80))  # without a size, ncurses 6.5 does not start
            os.execvpe(words[0], [str(word) for word in words], {**kept, 'TERM': 'xterm', **(variables or {})})
        shown, seen, end = '', 0, time.monotonic() + COMMAND_LIMIT
        steps = [*([(until, answer)] if until else []), *then]
        while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # everyone has closed it
                break
            shown += data.decode(errors='surrogateescape')
            while steps and re.search(steps[0][0], shown[seen:]):
                seen, typed = len(shown), steps.pop(0)[1]
                os.write(terminal, typed() if callable(typed) else typed)
        else:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
        self.assertEqual(steps, [], shown)
        return code, shown.replace('\r\n', '\n')

    def serve(self, limits=None, options=()):
        """The Data API of a fresh store, with no write limits except `limits`: writes per hour, by collection."""
        rules = 'off'
        if limits is not None:
            rules = self.home / 'limits.json'
            unlimited = dict.fromkeys(('projects', 'revisions', 'file_chunks', 'threads', 'messages'))
            rules.write_text(json.dumps({**unlimited, **limits}))
        url = f'http://127.0.0.1:{free_port()}'
        process = subprocess.Popen([self.playfs_path, 'serve', '--listen', url.removeprefix('http://'), '--store',
                                    str(self.home / 'store'), '--limits', str(rules), *options],
                                   env=self.environment('server'), stdin=subprocess.DEVNULL)

        def end():
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        self.addCleanup(end)
        api = Api(url)

        def answers():
            if process.poll() is not None:
                raise AssertionError(f'playfs serve ended with {process.returncode}')
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                return api.request('GET', '/projects')[0] == 200

        self.eventually(answers, f'{url} answers')
        return api

    def mount(self, source, who='ann', options=('refresh=1',), at=None):
        directory = at or self.home / f'{who}-{len(self.mounts)}'
        if at is None:
            directory.mkdir()
        mount = Mount(self, source, directory, who, options)
        self.mounts.append(mount)
        return mount

    def c_program(self, name):
        """Compiles a program of tests/mount/ against the public header alone."""
        program = self.home / name
        if not program.exists():
            self.command('cc', '-std=gnu11', '-Wall', '-Werror', '-I', ROOT / 'include', '-o', program,
                         ROOT / f'tests/mount/{name}.c')
        return program

    def commit(self, path, message, who='ann', flags=()):
        """Commits by the ioctl: outcome, revision, files, writes. The mount's agent is the author."""
        words = [message, '', *flags] if flags else [message]
        outcome, revision, files, writes = self.command(self.c_program('commit'), path, *words, who=who).stdout.split()
        return outcome, revision, int(files), int(writes)

    # Assertions.

    def eventually(self, claim, what, limit=COMMAND_LIMIT):
        """Waits for `claim()` to be true; judges only the result, never the duration."""
        end = time.monotonic() + limit
        while not claim():
            if time.monotonic() > end:
                self.fail(f'not within {limit} s: {what}')
            time.sleep(0.05)

    def assert_memory(self, grown, most, what=None):
        """Fails from `most` bytes on, if memory can be measured."""
        if not IS_SANITIZED:
            self.assertLess(grown, most, what)

    def describe(self, tree, without=()):
        """Everything below a folder by path: kind, x bit, target or content. Omits `.playfs`, the mark of an exported
        tree."""
        tree, found = str(tree), {}
        for folder, folders, files in os.walk(tree):
            folders[:] = [name for name in folders if name not in (*without, '.playfs')]
            for name in folders + files:
                path = os.path.join(folder, name)
                key = os.path.relpath(path, tree)
                if os.path.islink(path):
                    found[key] = 'link to ' + os.readlink(path)
                elif os.path.isdir(path):
                    found[key] = 'folder'
                else:
                    mode = 'executable' if os.stat(path).st_mode & 0o100 else 'file'
                    found[key] = (mode, pathlib.Path(path).read_bytes())
        return found

    def assert_same_tree(self, wanted, got):
        """Compares by diff(1), and modes and links as well, which diff does not."""
        # With a trailing slash: `head` is a link to a tree, and diff would compare the link.
        said = self.command('diff', '-r', '--exclude=.playfs', '--no-dereference', f'{wanted}/', f'{got}/', check=False)
        self.assertEqual(said.returncode, 0, said.stdout[:2000] + said.stderr[:2000])
        self.assertEqual(self.describe(wanted), self.describe(got))

    def assert_records_fit(self, api):
        """No record that commits write may exceed the service's documented size."""
        for collection in ('projects', 'revisions', 'file_chunks'):
            for record in api.all(collection):
                size = len(json.dumps(record, ensure_ascii=False, separators=(',', ':')).encode())
                self.assertLessEqual(size, RECORD_LIMIT, f'{collection}/{record["id"]}')


class SharedProject(Fixture):
    """A served playground with one project, for several mounts."""

    def setUp(self):
        super().setUp()
        self.api = self.serve()
        project = json.loads(self.playfs('init', 'shared', '--json', '--site', self.api.origin).stdout)
        self.project = project['project'] if isinstance(project['project'], str) else project['project']['id']

    def work(self, mount):
        return mount.directory / 'projects' / self.project / 'work'


def needs_fuse(test):
    return unittest.skipUnless(os.path.exists('/dev/fuse'), '/dev/fuse is missing')(test)


def main():
    # unittest lets only KeyboardInterrupt through; after any other exception it runs the next test.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = unittest.main(verbosity=2, exit=False).result
    all_skipped = result.testsRun > 0 and len(result.skipped) == result.testsRun
    sys.exit(SKIPPED if all_skipped else not result.wasSuccessful() or result.testsRun == 0)
