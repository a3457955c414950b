"""Clocks of mounts that run ahead at will, as they do after a machine slept (tests/mount/time_jump.c). The kernel's do not."""
import os
import sys

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

    def jump(self, who, seconds):
        if self.clocks:
            with open(self.clock(who), 'r+b', buffering=0) as clock:
                ahead = int.from_bytes(clock.read(), sys.byteorder)
                os.pwrite(clock.fileno(), (ahead + seconds * 1_000_000_000).to_bytes(8, sys.byteorder), 0)
