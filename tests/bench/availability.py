#!/usr/bin/env python3
"""What ordinary things cost in a mount in which readers hang, as a ratio to what they cost in one in which nobody does.

Two mounts of one service, side by side and in turns, so that a machine that is busy is busy for both, by the shortest of many times. Over
HTTP/1.1, and over HTTP/2 where nginx is installed. Fails where something takes more than twice as long, but for the end by a signal.

    PLAYFS=build-release/src/app/playfs PYTHONPATH=tests/support python3 tests/bench/availability.py

PLAYFS_ROUNDS (200) and PLAYFS_HUNG_READERS ("0 12 60 200") may be set.
"""
import os
import signal
import time

import http2
import hung
import fixture

ROUNDS = int(os.environ.get('PLAYFS_ROUNDS', '200'))
READERS = [int(word) for word in os.environ.get('PLAYFS_HUNG_READERS', '0 12 60 200').split()]
MOST = 2.0
# A mount that a signal ends first answers every waiting reader: 65 µs of CPU each, and 5 ms for everything else (200
# readers over HTTP/2, November 2026). So its ratio grows with the readers; it is shown, and not judged.
SHOWN_ONLY = {'SIGTERM'}
ENDS = 9  # mounts that are ended, of each kind


@fixture.needs_fuse
class Availability(hung.HungMount):
    def setUp(self):
        super().setUp()
        self.out_of_time.cancel()  # every wait has a limit of its own, and this takes longer than a test may
        self.begin(max(READERS) or 1)
        self.users = 0

    def new_mount(self, url, options):
        self.users += 1
        return self.mount_with_near_on_disk(url, f'user{self.users}', options)

    def timed(self, act):
        began = time.perf_counter()
        act()
        return time.perf_counter() - began

    def hang_some(self, mount, readers):
        return self.hang(mount, readers) if readers else None

    def unmounted(self, url, options, readers):
        """Durations: of the refusal while it is in use, and of the unmount once the readers were killed."""
        mount = self.new_mount(url, options)
        held = os.open(mount.directory / '.playfs', os.O_RDONLY)
        waiting = self.hang_some(mount, readers)
        refused = self.timed(lambda: self.assertNotEqual(self.playfs('umount', mount.directory, check=False).returncode, 0))
        os.close(held)
        if waiting:
            waiting.kill()
        ended = self.timed(lambda: self.playfs('umount', mount.directory))
        mount.process.wait()
        self.proxy.set_hanging(None)
        return refused, ended

    def terminated(self, url, options, readers):
        """The same of an end by a signal, while it is in use, by the readers too."""
        mount = self.new_mount(url, options)
        held = os.open(mount.directory / '.playfs', os.O_RDONLY)
        waiting = self.hang_some(mount, readers)
        mount.process.send_signal(signal.SIGTERM)
        ended = self.timed(mount.process.wait)
        os.close(held)
        if waiting:
            waiting.process.wait(fixture.COMMAND_LIMIT)
        self.proxy.set_hanging(None)
        return (ended,)

    def ratios(self, url, options, readers):
        calm, hung_mount = self.new_mount(url, options), self.new_mount(url, options)
        stuck = hung.Stuck()
        for mount in (calm, hung_mount):
            stuck.watch(mount.process)
        waiting = self.hang_some(hung_mount, readers)
        figures = self.side_by_side(calm, hung_mount, ROUNDS)
        if waiting:
            self.assertEqual(waiting.have_read(), [])
            waiting.kill()
            self.eventually(lambda: self.in_flight(hung_mount) == 0, 'their requests are gone with them')
        self.proxy.set_hanging(None)
        longest = max(stuck.end().values(), default=0.0)
        self.assertLess(longest, hung.STUCK_WITHIN)
        for mount in (calm, hung_mount):
            mount.unmount()
        for names, act in ((('umount, in use', 'umount'), self.unmounted), (('SIGTERM',), self.terminated)):
            ends = [(act(url, options, 0), act(url, options, readers)) for _ in range(ENDS)]
            figures.update({name: [tuple(end[column] for end in pair) for pair in ends]
                            for column, name in enumerate(names)})
        return {name: hung.ratio(pairs) for name, pairs in figures.items()}

    def table(self, name, url, options):
        rows = {readers: self.ratios(url, options, readers) for readers in READERS}
        print(f'\n{name}, ratio of hung to calm by readers that hang')
        print('| ' + ' | '.join(['', *map(str, READERS)]) + ' |\n|' + ' --- |' * (len(READERS) + 1))
        for what in rows[READERS[0]]:
            print('| ' + ' | '.join([what, *(f'{rows[readers][what]:.2f}' for readers in READERS)]) + ' |', flush=True)
        for readers, row in rows.items():
            for what, found in row.items():
                if what in SHOWN_ONLY:
                    continue
                with self.subTest(f'{name}: {what}', readers=readers):
                    self.assertLessEqual(found, MOST)

    def test_http_1(self):
        self.table('HTTP/1.1', self.proxy.url, ())

    def test_http_2(self):
        if not http2.Front.is_there():
            self.skipTest('nginx and openssl are needed')
        url, options = http2.Front(self).before(self.proxy.url)
        self.table('HTTP/2', url, options)


if __name__ == '__main__':
    fixture.main()
