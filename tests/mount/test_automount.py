#!/usr/bin/env python3
"""A mount that the first access makes, as systemd does for `x-systemd.automount` in /etc/fstab. The test is the automount's
daemon: the kernel tells it of the access, which waits, and it runs mount.playfs."""
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import unittest

import fixture

READY, FAIL, GIVE_UP = 0x9360, 0x9361, 0x9362  # AUTOFS_IOC_READY, _FAIL and _CATATONIC of <linux/auto_fs.h>
PACKET = struct.Struct('iiIIQIIIII256s4x')  # struct autofs_v5_packet
libc = ctypes.CDLL(None, use_errno=True)


@fixture.needs_fuse
@unittest.skipUnless(os.geteuid() == 0, 'needs root')
class Automount(fixture.SharedProject):
    def automount(self, directory):
        """The pipe on which the kernel tells of accesses, and a descriptor to answer on."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        options = f'fd={writing},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct'
        mounted = libc.mount(b'test', os.fsencode(directory), b'autofs', 0, options.encode())
        os.close(writing)
        if mounted != 0:
            self.skipTest(f'no autofs here: {os.strerror(ctypes.get_errno())}')
        self.addCleanup(libc.umount2, os.fsencode(directory), 2)  # MNT_DETACH
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, root)
        return reading, root

    def test_the_first_access_mounts_and_gets_what_is_there(self):
        directory = self.home / 'play'
        directory.mkdir()
        helper = self.home / 'mount.playfs'
        helper.symlink_to(self.playfs_path)
        reading, root = self.automount(directory)
        # In another process group: the kernel takes those in the daemon's own for part of it.
        access = subprocess.Popen(['ls', directory], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                  start_new_session=True)
        self.addCleanup(access.stdout.close)
        self.addCleanup(access.wait)
        self.addCleanup(access.kill)
        self.assertTrue(select.select([reading], [], [], fixture.COMMAND_LIMIT)[0], 'the kernel tells of the access')
        token = PACKET.unpack(os.read(reading, PACKET.size))[2]
        answer = FAIL
        try:
            self.command(helper, self.api.origin, directory, '-o', 'rw,_netdev,nofail,x-systemd.automount')
            answer = READY
        finally:
            fcntl.ioctl(root, answer, token)
        self.addCleanup(subprocess.run, ['fusermount3', '-u', '-z', directory], check=False)
        self.addCleanup(fcntl.ioctl, root, GIVE_UP)  # from here on no access waits for the test
        self.assertIn('projects\n', access.communicate(timeout=fixture.COMMAND_LIMIT)[0])
        self.assertEqual(access.returncode, 0)
        self.assertIn('shared', os.listdir(directory / 'projects/by-name'))


if __name__ == '__main__':
    fixture.main()
