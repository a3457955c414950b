"""Clocks of mounts that run ahead at will, as they do after a machine slept (tests/mount/time_jump.c). The kernel's do not."""
import contextlib
import os
import sys
import threading

import rig


class Clocks:
    """Of a rig.Rig: goes before it among the bases."""
    clocks = None

    def let_clocks_jump(self):
        """Of all mounts to come. Not beside a sanitizer, which has to be preloaded first itself."""
        if {'ASAN_OPTIONS', 'TSAN_OPTIONS'} & os.environ.keys():
            return
        self.clocks = self.home / 'time_jump.so'
        self.command('cc', '-std=gnu11', '-Wall', '-Werror', '-shared', '-fPIC', '-o', self.clocks,
                     rig.ROOT / 'tests/mount/time_jump.c')

    def environment(self, who):
        if not self.clocks or who == 'server':
            return super().environment(who)
        return {**super().environment(who), 'LD_PRELOAD': str(self.clocks), 'TIME_JUMP': str(self.clock(who))}

    def clock(self, who):
        """By how many nanoseconds somebody's clocks are ahead."""
        clock = self.home / f'{who}.clock'
        if not clock.exists():
            clock.write_bytes(bytes(8))
        return clock

    @contextlib.contextmanager
    def time_runs(self, who='ann'):
        """Meanwhile, so fast that what takes minutes takes seconds. In small steps, so that what is done now and then is
        done as often as ever, and no answer comes too late."""
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
        """eventually() of what is to happen after two minutes of somebody's clocks."""
        with self.time_runs(who):
            self.eventually(claim, what, rig.COMMAND_LIMIT + (0 if self.clocks else 200))

    def jump(self, who, seconds):
        if self.clocks:
            with open(self.clock(who), 'r+b', buffering=0) as clock:
                ahead = int.from_bytes(clock.read(), sys.byteorder)
                os.pwrite(clock.fileno(), (ahead + seconds * 1_000_000_000).to_bytes(8, sys.byteorder), 0)
