"""That the benchmarks still work: what they time with, what they time against, and how they count. Not how fast."""
import http.server
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / 'harness'))

import measure  # noqa: E402
import peers  # noqa: E402
import site_of  # noqa: E402
import tree  # noqa: E402
from report import Report, Row, comparison  # noqa: E402
from fixture import main, needs_fuse  # noqa: E402
from world import World  # noqa: E402

BUILD = os.environ.get('BENCH_BUILD', str(pathlib.Path(__file__).resolve().parents[2] / 'build'))


class Echo:
    """Answers every line with itself, at once."""

    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    @staticmethod
    def _answer(client):
        with client:
            while data := client.recv(65536):
                client.sendall(data)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class BenchTest(unittest.TestCase):
    def setUp(self):
        self.world = self.enterContext(World(BUILD, tempfile.gettempdir()))

    def test_tree_is_what_the_figures_are_about(self):
        root = tree.make(self.world.new_folder('tree'))
        files = [path for path in root.rglob('*') if path.is_file()]
        sizes = sorted(path.stat().st_size for path in files)
        self.assertEqual(len(files), 80)
        self.assertTrue(all(1024 <= size <= 8192 for size in sizes[:60]), sizes)
        self.assertTrue(all(12_288 <= size <= 204_800 for size in sizes[60:]), sizes)
        self.assertEqual(max(len(path.relative_to(root).parent.parts) for path in files), 3)
        self.assertFalse([path for path in files if tree.ABSENT in path.read_text(encoding='ascii')])
        again = tree.make(self.world.new_folder('tree'))
        self.world.run('diff', '-r', root, again)

    def test_link_delays_and_does_not_serialise(self):
        echo = Echo()
        self.addCleanup(echo.close)
        port = site_of.delayed(self.world, echo.port, 40)
        with socket.create_connection(('127.0.0.1', port)) as client:
            client.settimeout(60)

            def ask(count):
                client.sendall(b'x' * count)
                while count:
                    count -= len(client.recv(count))

            connected = time.monotonic()
            ask(1)
            self.assertGreaterEqual(time.monotonic() - connected, 0.075, 'connecting is a round trip, and asking one')
            start = time.monotonic()
            for _ in range(10):
                ask(1)
            one_by_one = time.monotonic() - start
            self.assertGreaterEqual(one_by_one, 0.4)
            start = time.monotonic()
            for _ in range(10):
                client.sendall(b'y')
            self.assertEqual(client.recv(1), b'y')
            left = 9
            while left:
                left -= len(client.recv(left))
            self.assertLess(time.monotonic() - start, one_by_one / 2)

    def test_link_passes_much_and_the_end(self):
        echo = Echo()
        self.addCleanup(echo.close)
        for extra in ((), ('slow-start',)):
            port = site_of.delayed(self.world, echo.port, 2, bool(extra))
            sent = os.urandom(3 * 2**20)
            with socket.create_connection(('127.0.0.1', port)) as client:
                client.settimeout(60)

                def send(client=client):
                    client.sendall(sent)
                    client.shutdown(socket.SHUT_WR)
                sender = threading.Thread(target=send)
                sender.start()
                got = bytearray()
                while data := client.recv(65536):
                    got += data
                sender.join()
            self.assertEqual(bytes(got), sent)

    def test_slow_start_costs_round_trips(self):
        echo = Echo()
        self.addCleanup(echo.close)
        port = site_of.delayed(self.world, echo.port, 30, True)
        with socket.create_connection(('127.0.0.1', port)) as client:
            client.settimeout(60)
            start = time.monotonic()
            client.sendall(b'z' * 200_000)
            left = 200_000
            while left:
                left -= len(client.recv(left))
            took = time.monotonic() - start
        # Windows of 10, 20, 40 and 80 segments: three round trips more than the one of any connection.
        self.assertGreaterEqual(took, 4 * 0.030)

    def test_storms_do_what_they_say(self):
        root = self.world.new_folder('storms')
        self.assertGreater(self.world.storm('create', root, 20), 0)
        self.assertEqual(sorted(path.name for path in (root / '0').iterdir()), sorted(map(str, range(20))))
        for kind in ('stat', 'read', 'missing', 'new-missing', 'rewrite', 'rename-over', 'sync'):
            self.assertGreater(self.world.storm(kind, root, 2), 0, kind)
        self.assertEqual(sum(len(path.read_bytes()) for path in (root / '0').iterdir()), 20 * 4096)
        self.assertGreater(self.world.storm('mmap', root, 1), 0)
        self.assertEqual((root / 'mapped').read_bytes(), b'\x02' * 2**20)
        self.world.storm('append', root / 'mapped')
        self.assertEqual((root / 'mapped').stat().st_size, 2**20 + 1)
        self.world.storm('unlink', root, 20)
        self.assertEqual(list((root / '0').iterdir()), [])
        with self.assertRaises(RuntimeError):
            self.world.storm('unlink', root, 20)

    @needs_fuse
    def test_passthrough_is_a_file_system(self):
        source = tree.make(self.world.new_folder('tree'))
        for stateless in (True, False):
            peer = peers.passthrough(self.world, source, f'stateless {stateless}', stateless)
            self.world.run('diff', '-r', source, peer.tree)
            self.world.storm('stat', peer.tree)  # after a read the kernel asks for the time of access once more
            warm = peer.messages()
            self.assertGreater(warm, 80)
            self.world.storm('stat', peer.tree, 3)
            self.assertLessEqual(peer.messages() - warm, 0 if stateless else 100)
            (peer.tree / 'made').mkdir()
            self.world.storm('create', peer.tree / 'made', 5)
            self.world.run('diff', '-r', source, peer.tree)
            shutil.move(peer.tree / 'made', peer.tree / 'moved')
            (peer.tree / 'moved/0/3').write_text('short')
            self.assertEqual((source / 'moved/0/3').read_text(), 'short')
            shutil.rmtree(peer.tree / 'moved')
            self.assertFalse((source / 'moved').exists())
            peer.end()

    def test_fetch_waits_for_each_stage(self):
        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):  # noqa: N802
                seen.append(self.path)
                self.send_response(200)
                self.send_header('Content-Length', '3')
                self.end_headers()
                self.wfile.write(b'abc')

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        base = 'http://127.0.0.1:%d' % server.server_address[1]
        plan = f'1 {base}/first\n2 {base}/second\n' + ''.join(f'3 {base}/third{i}\n' for i in range(8))
        _, size, connections = self.world.run(self.world.driver('fetch'), '-', 4, 1, input=plan).split()
        self.assertEqual((int(size), seen[:2], len(seen)), (30, ['/first', '/second'], 10))
        self.assertLessEqual(int(connections), 4)


class CommandsTest(unittest.TestCase):
    """Benchmarks that run by themselves, with next to nothing to measure."""

    def printed(self, script, *options):
        done = subprocess.run([sys.executable, pathlib.Path(__file__).parent / script, '--playfs',
                               os.environ.get('PLAYFS', f'{BUILD}/src/app/playfs'), *options],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_watchers(self):
        self.assertRegex(self.printed('events.py', '--watchers', '20', '--seconds', '1'),
                         r'20 watchers, 100 events, .*\n.* p99 [0-9.]+ ms')

    @needs_fuse
    def test_a_conversation(self):
        printed = self.printed('conversation.py', '--messages', '20', '--threads', '4', '--times', '2', '--idle', '1')
        self.assertRegex(printed, r'(?s)one thread, cold +[1-9].*\(events: live\) +0 requests.*\(events: polling\).* of 2')


class FiguresTest(unittest.TestCase):
    def test_rounds_give_everyone_a_turn_and_the_slow_fewer(self):
        turns = {'quick': 0, 'slow': 0}

        def contender(name, seconds):
            def run():
                turns[name] += 1
                return seconds
            return run
        times = measure.interleaved({'quick': contender('quick', 0.5), 'slow': contender('slow', 5)}, 9)
        self.assertEqual({name: len(known) for name, known in times.items()}, {'quick': 9, 'slow': 3})
        self.assertEqual(turns, {'quick': 10, 'slow': 4})
        by = measure.compare(times, 'quick')
        self.assertEqual(by['slow']['ratio']['median'], 10)
        self.assertEqual(by['quick']['seconds']['median'], statistics.median([0.5] * 9))

    def test_round_trips_are_gaps(self):
        def at(*moments):
            return [site_of.Request(moment, moment, 'GET', '/', 200, 1, 'HTTP/2.0', 1) for moment in moments]
        self.assertEqual(site_of.round_trips(at(), 0.05), 0)
        self.assertEqual(site_of.round_trips(at(0, 0.05, 0.1, 0.101, 0.11), 0.05), 3)

    def test_report_is_kept_and_recorded(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        machine = {**measure.machine(), 'disk': 'ext4', 'date': 'today', 'commit': 'abc'}
        report = Report('read', machine, folder)
        times = {'ext4': {1: 1.0, 2: 1.0}, 'playfs': {1: 2.0, 2: 3.0}}
        report.section('Warm', comparison({'find': measure.compare(times, 'ext4')}, times, 'ext4'),
                       [Row('find', '2.50 ×', '≤ 1.2 ×', False, 'why')])
        results = folder / 'RESULTS.md'
        results.write_text('before\n<!-- read -->\nold\n<!-- end of read -->\nafter\n')
        report.record(results)
        text = results.read_text()
        self.assertIn('| playfs | 2.50 (2.25–2.75) |', text)
        self.assertIn('| find | 2.50 × | ≤ 1.2 × | **missed** | why |', text)
        self.assertTrue(text.startswith('before\n') and text.endswith('after\n') and 'old' not in text)


if __name__ == '__main__':
    main()
