#!/usr/bin/env python3
"""Records of megabytes, which take tens of megabytes once parsed: the memory of those who show many of them, and that
nobody else waits for them."""
import hashlib
import json
import os
import pathlib
import subprocess
import threading
import time

import projects
import proxy
import fixture
import site_of_lies

VALUES = 900_000  # in one record, of three bytes each
RECORDS = 24
READERS = 12
MAY_GROW = 512 << 20  # a few of the records at a time; all of them, parsed, have twice as much
OF_ONE = 24  # readers of one file, who share what that takes
HANGS = 30  # seconds after which something counts as hanging; it takes a fraction of one
JUNK = site_of_lies.Raw('[' + '[],' * VALUES + '0]')


def cpu_seconds(process):
    fields = pathlib.Path(f'/proc/{process.pid}/stat').read_text(encoding='ascii').rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


@fixture.needs_fuse
class LargeRecords(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.service = proxy.before_a_service(self)
        self.near = projects.publish(self.api, 'near', {'f': 'f\n'})
        self.site = site_of_lies.HostileSite(self.service)

    def add_thread(self):
        self.site.add('threads', 'talk', title='title', author='ann')
        for number in range(RECORDS):
            self.site.add('messages', f'm{number:03}', thread='talk', author='m', body=f'body {number}')
            # Its list stays short.
            self.site.answers['GET', 'messages', f'm{number:03}'] = lambda body, ask, number=number: site_of_lies.http(
                f'{{"record":{{"id":"m{number:03}","created_at":"2020-01-01T00:00:00Z","thread":"talk",'
                f'"body":"body {number}","junk":{JUNK}}}}}')
        return 'threads/talk/messages.md'

    def add_log(self):
        self.site.add('projects', 'far', name='far', latest_revision=f'r{RECORDS - 1:03}')
        for number in range(RECORDS):
            self.site.add('revisions', f'r{number:03}', project='far', parents=[f'r{number - 1:03}'] if number else [],
                          agent='m', message=f'body {number}', manifest={'files': {'f': {'inline': str(number)}}},
                          state={'junk': JUNK})
        return 'projects/far/log'

    def mounted(self):
        mount = self.mount(self.service.url)
        work = mount.directory / 'projects' / self.near / 'work'
        (work / 'staged').write_text('staged\n')
        return mount, work

    def read_whole(self, path):
        """Reads it, however often a slow machine makes that take longer than a lookup may."""
        text = []

        def is_read():
            try:
                text[:] = [path.read_text()]
            except TimeoutError:
                return False
            return True

        self.eventually(is_read, 'it can be read')
        return text[0]

    def expect_whole(self, path):
        whole = [f'body {number}' for number in range(RECORDS)]
        lines = [line.strip() for line in self.read_whole(path).splitlines()]
        self.assertEqual(sorted(line.removeprefix('> ') for line in lines if line.startswith(('body', '> body'))), sorted(whole))

    def expect_bounded_memory(self, add):
        path = add()
        mount, _ = self.mounted()
        fixture.forget_most_memory(mount.process)
        before = fixture.memory(mount.process)
        self.expect_whole(mount.directory / path)
        grown = fixture.memory(mount.process, 'VmHWM') - before
        print(f'{path}: {grown >> 20} MB more at most', flush=True)
        self.assert_memory(grown, MAY_GROW)

    def test_memory_of_a_log(self):
        self.expect_bounded_memory(self.add_log)

    def test_memory_of_messages(self):
        self.expect_bounded_memory(self.add_thread)

    def expect_nobody_to_wait(self, add):
        path = add()
        mount, work = self.mounted()
        self.expect_whole(mount.directory / path)
        slowest, over = {}, threading.Event()

        def users():
            number = 0
            while not over.is_set():
                number += 1
                for name, use in (('lookup', lambda: os.path.exists(work / f'none{number}')),
                                  ('write', lambda: (work / 'staged').write_text(str(number))),
                                  ('status', lambda: self.playfs('status', work))):
                    begun = time.monotonic()
                    use()
                    slowest[name] = max(slowest.get(name, 0), time.monotonic() - begun)

        users_of_near = threading.Thread(target=users, daemon=True)
        readers = [subprocess.Popen(['cat', mount.directory / path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for _ in range(READERS)]
        time.sleep(1)
        users_of_near.start()
        time.sleep(8)
        begun = time.monotonic()
        for reader in readers:
            reader.kill()
        for reader in readers:
            reader.wait()
        ended = time.monotonic() - begun
        over.set()
        users_of_near.join(2 * HANGS)
        print(f'{path}: readers ended {ended:.1f} s after SIGKILL; beside them, the slowest',
              {name: f'{seconds:.1f} s' for name, seconds in slowest.items()}, flush=True)
        self.assertLess(ended, HANGS / 3)
        self.assertEqual(sorted(slowest), ['lookup', 'status', 'write'])
        self.assertLess(max(slowest.values()), HANGS / 3)

    def add_records(self):
        """One of each kind, whose file shows all of it."""
        self.add_thread()
        self.site.add('revisions', 'r0', project='far', parents=[], agent='m', message='m', state={'junk': JUNK},
                      manifest={'files': {'f': {'inline': 'x'}}})
        for collection, ident, fields in (('threads', 'talk', {'title': 't'}), ('agents', 'ann', {'handle': 'ann'}),
                                          ('projects', 'far', {'name': 'far', 'latest_revision': 'r0'})):
            self.site.add(collection, ident, **fields)
            whole = site_of_lies.to_json({'id': ident, 'created_at': '2020-01-01T00:00:00Z', **fields, 'junk': JUNK})
            self.site.answers['GET', collection, ident] = lambda body, ask, whole=whole: site_of_lies.http(whole)
        return ['projects/far/revision.json', 'projects/far/state.json', 'projects/far/project.json',
                'threads/talk/thread.json', 'threads/talk/messages/m000.json', 'agents/ann.json']

    def read_together(self, path, work):
        """By OF_ONE readers. Returns the seconds of the slowest lookup in another project meanwhile."""
        begun = time.monotonic()
        readers = [subprocess.Popen(['sha256sum', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for _ in range(OF_ONE)]
        slowest = 0
        while any(reader.poll() is None for reader in readers):
            at = time.monotonic()
            self.assertFalse(os.path.exists(work / f'none{at}'))
            slowest = max(slowest, time.monotonic() - at)
            self.assertLess(at - begun, 8 * HANGS)
            time.sleep(0.05)
        self.assertEqual({reader.communicate()[0] for reader in readers},
                         {f'{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}\n'.encode()})
        return slowest

    def test_readers_of_one_record(self):
        paths = self.add_records()
        mount, work = self.mounted()

        def expect_shared(path, of_one):
            before, used = fixture.memory(mount.process), cpu_seconds(mount.process)
            slowest = self.read_together(mount.directory / path, work)
            together = cpu_seconds(mount.process) - used
            grown = fixture.memory(mount.process, 'VmHWM') - before
            print(f'{path}: one reader took {of_one:.1f} s of CPU time, {OF_ONE} together {together:.1f} s and '
                  f'{grown >> 20} MB; the slowest lookup elsewhere {slowest:.2f} s', flush=True)
            self.assert_memory(grown, MAY_GROW)
            self.assertLess(together, OF_ONE / 2 * max(of_one, 0.3))
            self.assertLess(slowest, HANGS / 3)

        for path in paths:
            with self.subTest(path=path):
                fixture.forget_most_memory(mount.process)
                used = cpu_seconds(mount.process)
                shown = json.loads(self.read_whole(mount.directory / path))
                of_one = cpu_seconds(mount.process) - used
                self.assertEqual(len(shown.get('junk') or shown['state']['junk']), VALUES + 1)
                expect_shared(path, of_one)
        with self.subTest('a record that nobody has read yet'):
            fixture.forget_most_memory(mount.process)
            expect_shared('threads/talk/messages/m001.json', of_one)

    def test_readers_of_a_result(self):
        whole = site_of_lies.to_json({'id': 'made', 'created_at': '2020-01-01T00:00:00Z', 'title': 't', 'junk': JUNK})
        self.site.answers['POST', 'threads', None] = lambda body, ask: site_of_lies.http(whole, '201 Created')
        mount, work = self.mounted()
        made = mount.directory / 'threads' / 'new'
        made.write_text('title')
        before = fixture.memory(mount.process)
        self.assertEqual(len(json.loads(made.read_text())['junk']), VALUES + 1)
        self.read_together(made, work)
        self.assert_memory(fixture.memory(mount.process, 'VmHWM') - before, MAY_GROW)

    def test_readers_of_a_log(self):
        self.expect_nobody_to_wait(self.add_log)

    def test_readers_of_messages(self):
        self.expect_nobody_to_wait(self.add_thread)

    def test_readers_of_messages_while_the_service_is_away(self):
        path = self.add_thread()
        mount, work = self.mounted()
        self.expect_whole(mount.directory / path)
        self.service.away = True
        self.expect_whole(mount.directory / path)
        readers = [subprocess.Popen(['cat', mount.directory / path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for _ in range(READERS)]
        begun = time.monotonic()
        while any(reader.poll() is None for reader in readers):
            at = time.monotonic()
            self.assertFalse(os.path.exists(work / f'none{at}'))
            self.assertLess(time.monotonic() - at, HANGS / 3)
            self.assertLess(at - begun, 2 * HANGS)
            time.sleep(0.05)


if __name__ == '__main__':
    fixture.main()
