#!/usr/bin/env python3
"""kill -9 of the mount at random instants under a mixed load: nothing that was answered is lost.

PLAYFS_KILL_ROUNDS=200 kills that often instead of a few times.
"""
import contextlib
import errno
import json
import os
import random
import subprocess
import threading
import time

import fixture

ROUNDS = int(os.environ.get('PLAYFS_KILL_ROUNDS', 6))
WORKERS = 3
GONE = errno.ENOTCONN, errno.ECONNABORTED  # how calls fail when the mount is killed


class Worker:
    """One directory, changed by one thread: the answered calls, and the names in the unanswered one."""

    def __init__(self, name, seed):
        self.name, self.random, self.numbers = name, random.Random(seed), 0
        self.files, self.doubtful, self.answered, self.is_begun, self.error = {}, set(), 0, False, None

    def run(self, work):
        self.directory = work / self.name
        try:
            self.directory.mkdir(exist_ok=True)
            self.is_begun = True
            while True:
                self.step()
        except OSError as error:
            if error.errno not in (None, *GONE):
                self.error = error

    def during(self, *names):
        self.doubtful = set(names)

    def step(self):
        known = list(self.files)
        kind = self.random.randrange(8) if len(known) > 3 else 0
        name = self.random.choice(known) if known else None
        fresh = f'n{self.numbers}'
        self.numbers += 1
        if kind in (0, 1):
            self.during(fresh)
            with open(self.directory / fresh, 'xb', buffering=0):
                self.files[fresh] = b''
            self.write(fresh, 0)
        elif kind == 2:
            self.write(name, self.random.randrange(len(self.files[name]) + 1))
        elif kind == 3:
            self.during(name, fresh)
            os.rename(self.directory / name, self.directory / fresh)
            self.files[fresh] = self.files.pop(name)
        elif kind == 4:
            self.during(name)
            os.unlink(self.directory / name)
            del self.files[name]
        elif kind == 5:
            size = self.random.randrange(len(self.files[name]) + 1)
            self.during(name)
            os.truncate(self.directory / name, size)
            self.files[name] = self.files[name][:size]
        elif kind == 6:
            other = self.random.choice(known)
            self.during(name, other)
            os.rename(self.directory / name, self.directory / other)
            if other != name:
                self.files[other] = self.files.pop(name)
        else:
            self.during(fresh)
            os.link(self.directory / name, self.directory / fresh)
            os.unlink(self.directory / fresh)
        self.doubtful = set()
        self.answered += 1

    def write(self, name, offset):
        data = self.random.randbytes(self.random.choice((10, 3000, 50_000)))
        self.during(name)
        fd = os.open(self.directory / name, os.O_WRONLY)
        try:
            if os.pwrite(fd, data, offset) < len(data):
                raise OSError('cut short by the end of the mount')
            old = self.files[name]
            self.files[name] = old[:offset] + data + old[offset + len(data):]
            if self.random.random() < 0.1:
                os.fsync(fd)
        finally:
            os.close(fd)

    def check(self, work):
        """Checks all names; takes those of the unanswered call as they are."""
        assert self.error is None, (self.name, self.error)
        directory = work / self.name
        if not self.is_begun and not directory.exists():
            return  # killed before it was made
        for path in list(directory.iterdir()):
            if path.name in self.doubtful and path.stat().st_nlink > 1:
                path.unlink()  # a second name that was to be removed
        found = {path.name: path.read_bytes() for path in directory.iterdir()}
        for name in set(found) | set(self.files):
            if name not in self.doubtful:
                assert found.get(name) == self.files.get(name), (self.name, name, sorted(self.doubtful))
        self.files, self.doubtful = found, set()


@fixture.needs_fuse
class Kill(fixture.Fixture):
    def test_nothing_answered_is_lost(self):
        api = self.serve()
        api.create('projects', name='p')
        seed = random.randrange(1 << 32)
        print(f'seed {seed}', flush=True)
        chance = random.Random(seed)
        workers = [Worker(f'w{number}', seed + number) for number in range(WORKERS)]
        mount = self.mount(api.origin)
        for _ in range(ROUNDS):
            self.out_of_time.cancel()  # many rounds take longer than a test may
            work = mount.project('p') / 'work'
            threads = [threading.Thread(target=worker.run, args=(work,)) for worker in workers]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.05, 0.6))
            mount.kill()
            for thread in threads:
                thread.join(fixture.COMMAND_LIMIT)
            mount = self.mount(api.origin, at=mount.directory)
            for worker in workers:
                worker.check(mount.project('p') / 'work')
        self.assertGreater(min(worker.answered for worker in workers), ROUNDS)


class Appender:
    """Appends numbered lines to one file, round after round; a line counts once write(2) has returned."""

    def __init__(self, name):
        self.name, self.number, self.answered, self.doubtful, self.error = name, 0, [], set(), None

    def run(self, path, mount):
        descriptor = None
        try:
            while True:
                line = f'{self.name} {self.number}'
                self.number += 1
                self.doubtful.add(line)
                while True:
                    try:
                        if descriptor is None:
                            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
                        os.write(descriptor, f'{line}\n'.encode())
                        break
                    except OSError as error:
                        # A merge has replaced the file: reopen by name.
                        if descriptor is None or error.errno != errno.ESTALE:
                            raise
                        os.close(descriptor)
                        descriptor = None
                self.doubtful.discard(line)
                self.answered.append(line)
                time.sleep(0.004)  # merged text has a size limit
        except OSError as error:
            if mount.process.poll() is None and error.errno not in GONE:
                self.error = error  # while the mount was alive
        finally:
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    def check(self, case, lines):
        """Every answered line is there once, in order; unanswered ones may be there."""
        case.assertIsNone(self.error)
        found = [line for line in lines if line.startswith(f'{self.name} ')]
        case.assertEqual([line for line in found if line not in self.doubtful], self.answered)
        case.assertEqual(len(set(found)), len(found))


@fixture.needs_fuse
class KillWithinIntegration(fixture.SharedProject):
    FILLER = [f'filler {number}' for number in range(20)]

    def test_nothing_answered_is_lost_while_others_work_comes_in(self):
        seed = random.randrange(1 << 32)
        print(f'seed {seed}', flush=True)
        chance = random.Random(seed)
        ann, bob = self.mount(self.api.origin, 'ann'), self.mount(self.api.origin, 'bob')
        (self.work(bob) / 'log').write_text('\n'.join(['top', *self.FILLER, '']))
        self.playfs('commit', '-m', 'first', self.work(bob), who='bob')
        self.eventually(lambda: (self.work(ann) / 'log').exists(), "ann's tree follows head")
        appenders = [Appender(name) for name in ('one', 'two')]
        within = {'update': 0, 'commit': 0}
        rounds = 0
        # At least until one command was interrupted: how long they take depends on the machine.
        while rounds < ROUNDS or not any(within.values()):
            number, rounds = rounds, rounds + 1
            self.out_of_time.cancel()
            path = self.work(bob) / 'log'
            threads = [threading.Thread(target=each.run, args=(path, bob)) for each in appenders]
            for thread in threads:
                thread.start()
            self.publish_top(ann, number)
            words = ['update'] if number % 2 else ['commit', '-m', f'bob {number}']
            command = subprocess.Popen([self.playfs_path, *words, str(self.work(bob))], env=self.environment('bob'),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(command.kill)
            time.sleep(chance.uniform(0, 0.6) ** (1 + number % 4))
            within[words[0]] += command.poll() is None
            bob.kill()
            for thread in threads:
                thread.join(fixture.COMMAND_LIMIT)
                self.assertFalse(thread.is_alive())
            command.wait(fixture.COMMAND_LIMIT)
            bob = self.mount(self.api.origin, 'bob', at=bob.directory)
            lines = path.read_text().splitlines()
            for each in appenders:
                each.check(self, lines)
            # ann's change may have been merged or not; there is one top and no conflict marker.
            self.assertEqual(lines[1:21], self.FILLER)
            self.assertRegex(lines[0], r'^top')
            self.assertFalse([line for line in lines if line.startswith(('<<<', '===', '>>>'))])
        print(f'{rounds} rounds, killed within {within["update"]} updates and {within["commit"]} commits, '
              f'{sum(len(each.answered) for each in appenders)} lines', flush=True)
        self.eventually(lambda: self.published(bob), "bob's last commit")
        self.playfs('update', self.work(bob), who='bob')
        self.playfs('commit', '-m', 'last', self.work(bob), who='bob')
        lines = (bob.project('shared') / 'head/log').read_text().splitlines()
        for each in appenders:
            each.check(self, lines)
        self.assertEqual(lines[0], f'top {rounds - 1}')
        self.assertEqual(lines[1:21], self.FILLER)

    def published(self, mount):
        done = self.playfs('commit', '-m', 'what is left', '--json', self.work(mount), who=mount.who, check=False)
        return done.returncode == 0 and json.loads(done.stdout)['outcome'] in ('published', 'merged', 'nothing')

    def publish_top(self, mount, number):
        path = self.work(mount) / 'log'
        path.write_text('\n'.join([f'top {number}', *path.read_text().split('\n')[1:]]))
        outcome = json.loads(self.playfs('commit', '-m', f'top {number}', '--json', self.work(mount), who=mount.who).stdout)
        self.assertIn(outcome['outcome'], ('published', 'merged'))


if __name__ == '__main__':
    fixture.main()
