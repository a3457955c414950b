#!/usr/bin/env python3
"""The long-lived processes, a mount and `playfs serve`: what they inherit from their parent, and what they give up."""
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess

import fixture

# The shell hands its standard output down as descriptor 9 only.
WITH_A_PIPE = ['sh', '-c', 'exec 9>&1 >/dev/null; exec "$@"', 'sh']
WITHOUT_STREAMS = ['sh', '-c', 'exec <&- >&- 2>&-; exec "$@"', 'sh']


class LongLived(fixture.Fixture):
    def mount_in_background(self, *before):
        """Mounts by a command run through `before`; returns the directory and the pid of its daemon."""
        top = self.home / 'mnt'
        top.mkdir(exist_ok=True)
        self.addCleanup(lambda: os.path.ismount(top) and self.unmount(top))
        self.command(*before, self.playfs_path, 'mount', 'local:default', top)
        return top, self.daemon_of(top)

    def daemon_of(self, top):
        return json.loads((top / '.playfs/status.json').read_text())['pid']

    def unmount(self, top):
        """Returns once the daemon has ended: until then it removes files of its own."""
        daemon = os.pidfd_open(self.daemon_of(top))
        self.addCleanup(os.close, daemon)
        self.command('fusermount3', '-u', top)
        self.assertTrue(select.select([daemon], [], [], fixture.COMMAND_LIMIT)[0], 'the daemon has ended')

    def assert_streams_of_a_daemon(self, pid):
        log = str(self.home / 'ann/state/playfs/log/mount.log')
        self.assertEqual([os.readlink(f'/proc/{pid}/fd/{number}') for number in range(3)], ['/dev/null', log, log])

    def serve_with(self, *before, **options):
        """Starts `playfs serve` through `before`; returns the process and an Api for its address."""
        address = f'127.0.0.1:{fixture.free_port()}'
        serve = [self.playfs_path, 'serve', '--listen', address, '--store', self.home / 'store', '--limits', 'off']
        process = subprocess.Popen([*before, *serve], env=self.environment('server'), stdin=subprocess.DEVNULL, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process, fixture.Api(f'http://{address}')

    def answers(self, api):
        try:
            return api.request('GET', '/projects')[0] == 200
        except OSError:
            return False

    @fixture.needs_fuse
    def test_a_mount_holds_nothing_of_its_shell(self):
        top, pid = self.mount_in_background(*WITH_A_PIPE)  # returns once all have closed the pipe
        self.assert_streams_of_a_daemon(pid)
        self.assert_given_up(pid, no_new_privileges=False)
        self.unmount(top)

        lock = self.home / 'lock'
        self.mount_in_background('flock', lock)
        self.command('flock', '-n', lock, 'true')
        self.assertTrue((top / 'projects').is_dir(), 'the mount lives')

    @fixture.needs_fuse
    def test_a_mount_whose_command_had_no_standard_streams(self):
        top, pid = self.mount_in_background(*WITHOUT_STREAMS)
        (top / 'projects/new').write_text('{"name": "tour"}')
        self.assertEqual(os.listdir(top / 'projects/by-name'), ['tour'])
        self.assert_streams_of_a_daemon(pid)

    @fixture.needs_fuse
    def test_a_mount_in_the_foreground_holds_only_the_streams(self):
        top = self.home / 'mnt'
        top.mkdir()
        process = subprocess.Popen([*WITH_A_PIPE, self.playfs_path, 'mount', '-f', 'local:default', top],
                                   env=self.environment('ann'), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: os.path.ismount(top) and self.command('fusermount3', '-u', '-z', top))
        self.assert_ends(process.stdout)
        self.eventually(lambda: os.path.ismount(top), 'it is mounted')
        self.assert_given_up(process.pid, no_new_privileges=False)

    def test_serve_holds_only_the_streams(self):
        process, api = self.serve_with(*WITH_A_PIPE, stdout=subprocess.PIPE)
        self.assert_ends(process.stdout)
        self.eventually(lambda: self.answers(api), 'it answers')
        self.assert_given_up(process.pid, no_new_privileges=True)

    def test_serve_without_standard_streams(self):
        _, api = self.serve_with(*WITHOUT_STREAMS)
        self.eventually(lambda: self.answers(api), 'it answers')
        project = api.create('projects', name='tour')['id']
        self.assertEqual(api.get('projects', project)['name'], 'tour')

    def test_the_unit_leaves_little_to_attack(self):
        if not shutil.which('systemd-analyze'):
            self.skipTest('systemd is missing')
        unit = fixture.ROOT / 'tools/systemd/playfs-serve.service'
        done = self.command('systemd-analyze', 'security', '--offline=true', '--threshold=15', unit, check=False)
        if 'unrecognized option' in done.stderr:
            self.skipTest('systemd is too old')
        self.assertEqual(done.returncode, 0, done.stdout[-200:] + done.stderr)

    def assert_ends(self, pipe):
        self.addCleanup(pipe.close)
        self.assertTrue(select.select([pipe], [], [], fixture.COMMAND_LIMIT)[0], 'it is closed')
        self.assertEqual(os.read(pipe.fileno(), 1), b'')

    def assert_given_up(self, pid, no_new_privileges):
        limits = pathlib.Path(f'/proc/{pid}/limits').read_text(encoding='ascii')
        self.assertRegex(limits, r'Max core file size +0 +0 ')
        status = pathlib.Path(f'/proc/{pid}/status').read_text(encoding='ascii')
        ignored = int(re.search(r'SigIgn:\s+([0-9a-f]+)', status)[1], 16)
        self.assertTrue(ignored & 1 << (signal.SIGPIPE - 1), 'it outlives whoever reads its log')
        if no_new_privileges:
            self.assertIn('NoNewPrivs:\t1', status)


if __name__ == '__main__':
    fixture.main()
