#!/usr/bin/env python3
"""The mount point /dev/fd/N: a /dev/fuse that somebody else, such as a container's runtime, has opened and mounted."""
import contextlib
import ctypes
import json
import os
import subprocess
import unittest

import fixture

MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2
libc = ctypes.CDLL(None, use_errno=True)


@fixture.needs_fuse
@unittest.skipUnless(os.geteuid() == 0, 'only root mounts by mount(2)')
class PassedDevice(fixture.SharedProject):
    def setUp(self):
        super().setUp()
        self.at = self.home / 'mnt'
        self.at.mkdir()

    def open_and_mount(self, type_name='fuse.playfs', source='runtime', flags=os.O_RDWR):
        device = os.open('/dev/fuse', flags)
        options = f'fd={device},rootmode=40000,user_id=0,group_id=0,default_permissions'
        if libc.mount(source.encode(), str(self.at).encode(), type_name.encode(), MS_NOSUID | MS_NODEV, options.encode()):
            self.skipTest(f'mount(2): {os.strerror(ctypes.get_errno())}')
        self.addCleanup(libc.umount2, str(self.at).encode(), MNT_DETACH)
        return device

    def start(self, device, *words, **options):
        """Its own process's, which alone has the device from here on."""
        process = subprocess.Popen([self.playfs_path, 'mount', self.api.origin, f'/dev/fd/{device}', *words],
                                   pass_fds=[device], env=self.environment('ann'), text=True, **options)
        os.close(device)

        def end():
            process.kill()
            process.wait()

        self.addCleanup(end)
        return process

    def answers(self):
        with contextlib.suppress(OSError):
            return (self.at / '.playfs/status.json').exists()

    def test_it_is_served_and_the_tools_find_it(self):
        for type_name, source in (('fuse.playfs', self.api.origin), ('fuse', 'runtime')):
            with self.subTest(type_name):
                process = self.start(self.open_and_mount(type_name, source), '-f')
                self.eventually(self.answers, 'the mount answers')
                work = self.at / 'projects' / self.project / 'work'
                name = f'by-{type_name}'
                (work / name).write_text('one\n')
                status = json.loads(self.playfs('status', '--json', cwd=work, who='bob').stdout)
                self.assertEqual([each['path'] for each in status['staged']], [name])
                # Without --site: the service is the mount's.
                self.assertIn('shared', self.playfs('ls', cwd=work, who='bob').stdout)
                self.playfs('commit', '-m', 'One', cwd=work)
                (work / name).write_text('two\n')
                (work / '../commit').write_text('Two\n')
                self.assertEqual(json.loads((work / '../commit').read_text())['outcome'], 'published')
                self.assertEqual(self.playfs('log', '--oneline', cwd=work).stdout.count('\n'), 2 if source != 'runtime' else 4)
                # Whoever mounted it unmounts it, and the process ends by itself.
                self.command('umount', self.at)
                self.assertEqual(process.wait(fixture.COMMAND_LIMIT), 0)

    def test_umount_of_ours_ends_it_too(self):
        process = self.start(self.open_and_mount('fuse'), '-f')
        self.eventually(self.answers, 'the mount answers')
        self.playfs('umount', self.at)
        self.assertEqual(process.wait(fixture.COMMAND_LIMIT), 0)

    def test_a_device_that_does_not_block(self):
        process = self.start(self.open_and_mount(flags=os.O_RDWR | os.O_NONBLOCK), '-f')
        self.eventually(self.answers, 'the mount answers')
        self.command('umount', self.at)
        self.assertEqual(process.wait(fixture.COMMAND_LIMIT), 0)

    def test_in_the_background(self):
        starter = self.start(self.open_and_mount())
        self.assertEqual(starter.wait(fixture.COMMAND_LIMIT), 0)
        self.eventually(self.answers, 'the mount answers')
        daemon = json.loads((self.at / '.playfs/status.json').read_text())['pid']
        self.assertEqual(os.readlink(f'/proc/{daemon}/cwd'), '/')
        self.command('umount', self.at)
        self.eventually(lambda: not os.path.exists(f'/proc/{daemon}'), 'its process ends')

    def test_stopped_it_lets_go_and_leaves_the_mount_to_its_owner(self):
        process = self.start(self.open_and_mount(), '-f')
        self.eventually(self.answers, 'the mount answers')
        process.terminate()
        self.assertEqual(process.wait(fixture.COMMAND_LIMIT), 0)
        self.assertIn(str(self.at), fixture.mounted_directories())
        self.assertFalse(self.answers())

    def test_what_is_no_mounted_device_is_refused_with_the_reason(self):
        device = os.open('/dev/fuse', os.O_RDWR)
        unmounted = self.start(device, '-f', stderr=subprocess.PIPE)
        _, said = unmounted.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertIn('is not mounted', said)
        self.assertIn(f'fd={device}', said)
        other = self.start(os.open('/dev/null', os.O_RDWR), '-f', stderr=subprocess.PIPE)
        self.assertIn('is not an open /dev/fuse', other.communicate(timeout=fixture.COMMAND_LIMIT)[1])
        closed = self.playfs('mount', self.api.origin, '/dev/fd/77', check=False)
        self.assertEqual((closed.returncode != 0, '/dev/fd/77: ' in closed.stderr), (True, True), closed.stderr)


if __name__ == '__main__':
    fixture.main()
