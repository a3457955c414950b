#!/usr/bin/env python3
"""A service that hangs, is gone, or must not be contacted: local content is served, and waiting calls can be
interrupted."""
import errno
import json
import os
import signal
import socket
import subprocess
import threading
import time

import proxy
import fixture
from projects import metrics, publish, some_files

READERS = 50


@fixture.needs_fuse
class Outage(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.near = publish(self.api, 'near', some_files(40))
        self.far = publish(self.api, 'far', {f'far{n}.txt': f'far {n}\n' for n in range(READERS)})

    def warm(self, mount):
        place = mount.directory / 'projects' / self.near / 'head'
        self.command('grep', '-r', 'content', f'{place}/')
        return place

    def storm(self, place):
        for _ in range(20):
            self.command('find', f'{place}/', '-size', '+1M')

    def asked_by_a_storm(self, mount, place):
        before = metrics(mount)
        self.storm(place)
        self.command('grep', '-r', 'content', f'{place}/')
        asked = {name: count - before.get(name, 0) for name, count in metrics(mount).items()}
        asked.pop('status', None)
        asked.pop('forget', None)  # sent asynchronously whenever the kernel likes
        return asked

    def test_readers_of_a_hanging_project_harm_nobody_and_can_leave(self):
        mount = self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))
        near = self.warm(mount)
        far = mount.directory / 'projects' / self.far / 'head'
        self.assertEqual(len(os.listdir(far)), READERS)
        self.storm(near)
        self.proxy.set_hanging('/file_chunks/')
        readers = [subprocess.Popen(['cat', str(far / f'far{n}.txt')], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL) for n in range(READERS)]
        for reader in readers:
            self.addCleanup(reader.wait)
            self.addCleanup(reader.kill)
        self.eventually(lambda: self.proxy.hung() == READERS, 'all of them wait for the service')

        asked = [self.asked_by_a_storm(mount, near) for _ in range(3)]
        # The best round counts: a kernel that is short of memory may drop a name at any time.
        self.assertLessEqual(min(sum(each.values()) for each in asked), 3,
                             f'the kernel answers by itself, as always: {asked}')
        self.assertEqual([reader.poll() for reader in readers], [None] * READERS)

        for reader in readers:
            reader.send_signal(signal.SIGINT)
        self.assertEqual([reader.wait(fixture.COMMAND_LIMIT) for reader in readers], [-signal.SIGINT] * READERS)
        self.storm(near)

    def test_what_is_known_is_listed_while_the_service_hangs_by_one_question_for_all(self):
        mount = self.mount(self.proxy.url, options=('refresh=1',))
        top = mount.directory / 'projects'
        places = [top, top / 'by-name', mount.directory / 'records/projects',
                  *(top / project / name for project in (self.near, self.far)
                    for name in ('head/', 'revisions', 'branches', 'at'))]
        known = [sorted(os.listdir(place)) for place in places]
        self.warm(mount)
        self.proxy.set_hanging('/')
        self.eventually(lambda: self.proxy.hung() > 0, 'somebody waits for the service')
        time.sleep(4)  # until the kernel's listings have expired and head is older than following allows
        before = self.proxy.requests_so_far()
        for _ in range(2):
            self.assertEqual([sorted(os.listdir(place)) for place in places], known)
        self.assertTrue((top / 'by-name/near').is_symlink())
        status = json.loads((top / self.near / 'status.json').read_text())
        # A reader that waited would return when its request times out, and then send another one.
        self.assertLess(self.proxy.requests_so_far() - before, len(places), 'one question for all, now and then')
        self.assertGreater(status['head_age_s'], 0, 'it says how old it is')
        self.assertIn('as of', (top / self.near / 'status').read_text())

        self.proxy.set_hanging(None)
        later = publish(self.api, 'later', some_files(1))
        self.eventually(lambda: later in os.listdir(top), 'what is new appears by itself')
        self.eventually(lambda: json.loads((top / self.near / 'status.json').read_text())['head_age_s'] is None,
                        'and is as of now')

    def test_a_head_that_events_vouch_for_is_not_old(self):
        """Nobody asks for it while nothing happens, and that is no outage."""
        mount = self.mount(self.api.origin, options=('refresh=1', 'noprefetch'))
        self.warm(mount)
        self.eventually(lambda: json.loads((mount.directory / '.playfs/status.json').read_text())['events'] == 'live',
                        'events are followed')
        time.sleep(5)  # until a head would be older than polling allows
        status = mount.directory / 'projects' / self.near / 'status'
        self.assertIsNone(json.loads(status.with_suffix('.json').read_text())['head_age_s'])
        self.assertNotIn('as of', status.read_text())

    def test_a_mount_that_waits_can_be_unmounted(self):
        mount = self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))
        far = mount.directory / 'projects' / self.far / 'head'
        self.assertEqual(len(os.listdir(far)), READERS)
        self.proxy.set_hanging('/file_chunks/')
        readers = [subprocess.Popen(['cat', str(far / f'far{n}.txt')], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in range(5)]
        for reader in readers:
            self.addCleanup(reader.kill)
        self.eventually(lambda: self.proxy.hung() == 5, 'they wait')
        mount.process.terminate()
        self.assertEqual(mount.process.wait(fixture.COMMAND_LIMIT), 0)
        for reader in readers:
            self.assertEqual(reader.wait(fixture.COMMAND_LIMIT), 1, 'an error, and no process that cannot end')

    def test_everything_that_was_read_is_there_without_the_service(self):
        first = self.mount(self.proxy.url, options=('refresh=600',))
        self.warm(first)
        first.unmount()
        self.proxy.away = True
        mount = self.mount(self.proxy.url, options=('refresh=1',))
        place = mount.directory / 'projects' / self.near / 'head'
        self.assertEqual(len(self.command('grep', '-r', 'content', f'{place}/').stdout.splitlines()), 40)
        with self.assertRaises(OSError) as refusal:
            os.listdir(mount.directory / 'projects' / self.far / 'head')
        self.assertIn(refusal.exception.errno, (errno.EHOSTUNREACH, errno.ETIMEDOUT))
        status = json.loads((mount.directory / '.playfs/status.json').read_text())
        self.assertIs(status['health']['reachable'], False)
        self.assertIn('unreachable', (mount.directory / '.playfs/errors.ndjson').read_text())

        self.proxy.away = False
        far = mount.directory / 'projects' / self.far / 'head'

        def back():
            try:
                return (far / 'far1.txt').read_text() == 'far 1\n'
            except OSError:
                return False

        self.eventually(back, 'it recovers without a remount')
        self.eventually(lambda: 'recovered' in (mount.directory / '.playfs/events').read_text(), 'and says so')

    def test_while_nobody_answers_failing_costs_no_requests(self):
        mount = self.mount(self.proxy.url, options=('refresh=600',))
        self.warm(mount)
        self.proxy.away = True
        started = time.monotonic()
        while time.monotonic() < started + 8:  # longer than an outage takes to be recognised
            self.assertFalse(os.path.exists(mount.directory / 'projects' / 'no-such-project'))
        with self.proxy.counting() as count:
            for n in range(300):
                self.assertFalse(os.path.exists(mount.directory / 'projects' / f'no-such-{n}'))
        self.assertLess(len(count.requests), 100, 'a few probes, and one now and then, with their repetitions')

    def test_offline_never_connects(self):
        first = self.mount(self.proxy.url, options=('refresh=600',))
        self.warm(first)
        first.unmount()
        port = int(self.proxy.url.rsplit(':', 1)[1])
        self.proxy.close()
        connections = []
        listener = socket.create_server(('127.0.0.1', port))
        self.addCleanup(listener.close)

        def accept():
            while True:
                try:
                    connections.append(listener.accept())
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        mount = self.mount(self.proxy.url, options=('refresh=1', 'offline'))
        place = mount.directory / 'projects' / self.near
        self.assertEqual(len(self.command('grep', '-r', 'content', f'{place}/head/').stdout.splitlines()), 40)
        (place / 'work/new.txt').write_text('staged\n')
        self.assertIn('new.txt', self.playfs('status', place / 'work').stdout)
        with self.assertRaises(OSError):
            os.listdir(mount.directory / 'projects' / self.far)
        with self.assertRaises(OSError):
            os.listdir(mount.directory / 'threads')
        time.sleep(2)  # more than a refresh of heads in use
        self.assertEqual(connections, [])
        self.assertEqual((place / 'work/new.txt').read_text(), 'staged\n')


if __name__ == '__main__':
    fixture.main()
