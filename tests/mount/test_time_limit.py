#!/usr/bin/env python3
"""A kernel that closes the connection of a file system if a request waits too long (Linux 6.15)."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import proxy
import fixture
from projects import publish

SETTINGS = pathlib.Path('/proc/sys/fs/fuse')
LIMIT = 10  # seconds; the kernel checks every 15
PENDING = 4


def may_be_set():
    return os.access(SETTINGS / 'default_request_timeout', os.W_OK) and not os.statvfs(SETTINGS).f_flag & os.ST_RDONLY


@contextlib.contextmanager
def limited(name):
    """For mounts made inside the block: the setting is system-wide."""
    setting = SETTINGS / name
    before = setting.read_text()
    setting.write_text(str(LIMIT))
    try:
        yield
    finally:
        setting.write_text(before)


@fixture.needs_fuse
@unittest.skipUnless(may_be_set(), 'this kernel knows no limit, or it is not ours to set')
class TimeLimit(fixture.Fixture):
    def begin(self, setting):
        self.api, self.proxy = proxy.before_a_service(self, {'file_chunks': 2})
        self.project = publish(self.api, 'p', {'far': 'far away\n'})
        with limited(setting):
            return self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))

    def outlives_what_waits(self, setting):
        mount = self.begin(setting)
        work = mount.directory / 'projects' / self.project / 'work'
        self.assertEqual([path.name for path in work.iterdir()], ['far'])
        self.proxy.set_hanging('/file_chunks/')
        started = time.monotonic()
        reader = subprocess.Popen(['cat', str(work / 'far')], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        for n in range(3):
            (work / f'large{n}').write_bytes(os.urandom(12_000))
        # One chunk is left of this hour's limit, so the commit waits for the next.
        commit = subprocess.Popen([self.playfs_path, 'commit', '-m', 'Slow', str(work)], env=self.environment('ann'),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(commit.wait)
        self.addCleanup(commit.kill)
        said = reader.communicate(timeout=fixture.COMMAND_LIMIT)[1]
        self.assertIn('timed out', said)
        self.assertIn('request_timeout', (mount.directory / '.playfs/errors.ndjson').read_text())
        time.sleep(max(0.0, started + LIMIT + 25 - time.monotonic()))  # until the kernel has checked twice
        self.assertIn('large0', self.command('ls', work).stdout)
        self.assertIsNone(mount.process.poll())
        self.assertIsNone(commit.poll(), 'the command waits on, whatever a call may take')
        commit.send_signal(signal.SIGINT)
        self.assertEqual(commit.wait(fixture.COMMAND_LIMIT), PENDING)

    def test_no_request_outlives_the_usual_limit(self):
        self.outlives_what_waits('default_request_timeout')

    def test_no_request_outlives_the_largest_limit(self):
        self.outlives_what_waits('max_request_timeout')

    def waits_on(self, mount, revision, *command):
        """Runs a command whose calls need a revision that hangs for longer than a call may take."""
        self.proxy.set_hanging(f'/revisions/{revision}')
        waiting = subprocess.Popen([self.playfs_path, *command], env=self.environment('ann'), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        errors = mount.directory / '.playfs/errors.ndjson'
        self.eventually(lambda: 'request_timeout' in errors.read_text(), 'a call has ended by the limit')
        self.assertIsNone(waiting.poll())
        self.proxy.set_hanging(None)
        self.assertEqual(waiting.wait(fixture.COMMAND_LIMIT), 0, waiting.stderr.read())

    def test_an_update_waits_on_as_a_commit_does(self):
        mount = self.begin('default_request_timeout')
        work = mount.directory / 'projects' / self.project / 'work'
        self.assertEqual((work / 'far').read_text(), 'far away\n')
        (work / 'own').write_text('staged\n')
        before = self.api.get('projects', self.project)['latest_revision']
        publish(self.api, 'next', {'near': 'here\n'}, project=self.project, parents=[before])
        head = self.api.get('projects', self.project)['latest_revision']
        self.waits_on(mount, head, 'update', str(work))
        self.assertEqual((work / 'near').read_text(), 'here\n')

    def test_a_merge_waits_on_too(self):
        mount = self.begin('default_request_timeout')
        work = mount.directory / 'projects' / self.project / 'work'
        self.assertEqual((work / 'far').read_text(), 'far away\n')
        head = self.api.get('projects', self.project)['latest_revision']
        branch = self.api.create('revisions', project=self.project, parents=[head], agent='other', message='m', state={},
                                 manifest={'files': {'far': {'inline': 'far away\n'}, 'near': {'inline': 'here\n'}}})['id']
        self.waits_on(mount, branch, 'merge', branch, str(work))
        self.assertEqual((work / 'near').read_text(), 'here\n')

    def test_each_of_two_commits_tells_what_became_of_its_own(self):
        mount = self.begin('default_request_timeout')
        work = mount.directory / 'projects' / self.project / 'work'
        publication = lambda: json.loads((work.parent / 'status.json').read_text())['publication']
        self.assertEqual((work / 'far').read_text(), 'far away\n')
        self.proxy.set_hanging('/revisions')
        commits = []
        for n, message in enumerate(('First', 'Second')):
            (work / message).write_text(f'{message}\n')
            commits.append(subprocess.Popen([self.playfs_path, 'commit', '-m', message, str(work)],
                                            env=self.environment('ann'), stdin=subprocess.DEVNULL, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            self.addCleanup(commits[-1].wait)
            self.addCleanup(commits[-1].kill)
            self.eventually(lambda: len(publication()['queue']) == n + 1, f'{message} is under way')
            # Else the first takes the second's file too.
            self.eventually(lambda: publication()['phase'] not in ('idle', 'freezing'), 'the first is frozen')
        time.sleep(LIMIT)  # both commands' calls have returned `pending` by now
        self.proxy.set_hanging(None)
        for commit, message in zip(commits, ('First', 'Second')):
            said, why = commit.communicate(timeout=fixture.COMMAND_LIMIT)
            self.assertEqual(commit.returncode, 0, why)
            self.assertEqual(self.api.get('revisions', said.strip())['message'], message)

    def test_a_mount_whose_connection_was_ended_says_so(self):
        mount = self.mount(self.serve().origin)
        table = self.home / 'connections'
        table.mkdir()
        self.command('mount', '-t', 'fusectl', 'none', table)
        self.addCleanup(subprocess.run, ['umount', table], check=True)
        (table / str(os.stat(mount.directory).st_dev) / 'abort').write_text('1')
        self.assertNotIn(mount.process.wait(fixture.COMMAND_LIMIT), (0, -signal.SIGKILL))


if __name__ == '__main__':
    fixture.main()
