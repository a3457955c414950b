"""Clocks of mounts that jump ahead on demand, as after sleep (tests/mount/time_jump.c); the kernel's do not."""
import contextlib
import os
import sys
import threading

import fixture


class Clocks:
    """Mixin for fixture.Fixture; must precede it among the bases."""
    clocks = None

    def let_clocks_jump(self):
        """Applies to mounts made from now on. Not with a sanitizer, which must itself be preloaded first."""
        if fixture.IS_SANITIZED:
            return
        self.clocks = self.home / 'time_jump.so'
        self.command('cc', '-std=gnu11', '-Wall', '-Werror', '-shared', '-fPIC', '-o', self.clocks,
                     fixture.ROOT / 'tests/mount/time_jump.c')

    def environment(self, who):
        if not self.clocks or who == 'server':
            return super().environment(who)
        return {**super().environment(who), 'LD_PRELOAD': str(self.clocks), 'TIME_JUMP': str(self.clock(who))}

    def clock(self, who):
        """The file that says by how many nanoseconds a user's clocks are ahead."""
        clock = self.home / f'{who}.clock'
        if not clock.exists():
            clock.write_bytes(bytes(8))
        return clock

    @contextlib.contextmanager
    def time_runs(self, who='ann'):
        """Speeds time up inside the block, so that minutes take seconds. In small steps, so that periodic work runs as
        often as ever and no answer is late."""
        over = threading.Event()

        def run():
            while not over.wait(0.2):
                self.jump(who, 5)

        runner = threading.Thread(target=run)
        runner.start()
        try:
            yield
        finally:
            over.set()
            runner.join()

    def within_minutes(self, claim, what, who='ann'):
        """eventually() for something due after two minutes on the user's clocks."""
        with self.time_runs(who):
            self.eventually(claim, what, fixture.COMMAND_LIMIT + (0 if self.clocks else 200))

    def jump(self, who, seconds):
        if self.clocks:
            with open(self.clock(who), 'r+b', buffering=0) as clock:
                ahead = int.from_bytes(clock.read(), sys.byteorder)
                os.pwrite(clock.fileno(), (ahead + seconds * 1_000_000_000).to_bytes(8, sys.byteorder), 0)
