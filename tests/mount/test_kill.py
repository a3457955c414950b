#!/usr/bin/env python3
"""kill -9 of the mount at random instants under a mixed load: nothing that was answered is lost.

PLAYFS_KILL_ROUNDS=200 kills so often instead of a few times.
"""
import os
import random
import threading
import time

import rig

ROUNDS = int(os.environ.get('PLAYFS_KILL_ROUNDS', 6))
WORKERS = 3


class Worker:
    """One directory, changed by one thread: what was answered, and the names of the call that was not."""

    def __init__(self, name, seed):
        self.name, self.random, self.numbers = name, random.Random(seed), 0
        self.files, self.doubtful, self.answered = {}, set(), 0

    def run(self, work):
        self.directory = work / self.name
        self.directory.mkdir(exist_ok=True)
        try:
            while True:
                self.step()
        except OSError:
            pass  # the mount is gone

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
        """Goes on from what is there where a call was not answered."""
        directory = work / self.name
        for path in list(directory.iterdir()):
            if path.name in self.doubtful and path.stat().st_nlink > 1:
                path.unlink()  # a second name that was to go again
        found = {path.name: path.read_bytes() for path in directory.iterdir()}
        for name in set(found) | set(self.files):
            if name not in self.doubtful:
                assert found.get(name) == self.files.get(name), (self.name, name, sorted(self.doubtful))
        self.files, self.doubtful = found, set()


@rig.needs_fuse
class Kill(rig.Rig):
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
                thread.join(rig.COMMAND_LIMIT)
            mount = self.mount(api.origin, at=mount.directory)
            for worker in workers:
                worker.check(mount.project('p') / 'work')
        self.assertGreater(min(worker.answered for worker in workers), ROUNDS)


if __name__ == '__main__':
    rig.main()
