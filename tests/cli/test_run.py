#!/usr/bin/env python3
"""`playfs run`: a command in a work tree that is mounted for it alone, by an ordinary user without fusermount3."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import fixture
import unprivileged

DONE, BRANCHED, NOT_FOUND, FORBIDDEN = 0, 3, 5, 6


class Runs(unprivileged.Unprivileged):
    def setUp(self):
        super().setUp()
        # Ignored in what a script starts in the background; a shell cannot trap what it finds ignored.
        for number, handler in (signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL):
            self.addCleanup(signal.signal, number, signal.signal(number, handler))

    def line(self, *words, options=()):
        return ('run', '--site', self.api.origin, 'shared', *options, '--', *words)

    def run_in(self, *words, options=(), check=True, **more):
        return self.playfs_as_user(*self.line(*words, options=options), check=check, **more)

    def sh(self, script, *options, **more):
        return self.run_in('sh', '-c', script, options=options, **more)

    def start(self, *words, options=(), **more):
        return self.start_as_user(self.program, *self.line(*words, options=options), **more)

    def servers(self):
        """Processes of this test's program that are left."""
        found = []
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                if os.readlink(process / 'exe').removesuffix(' (deleted)') == str(self.program):
                    found.append(int(process.name))
            except OSError:
                continue
        return found


@fixture.needs_fuse
class Everyday(Runs):
    def test_the_command_is_in_the_work_tree_as_the_user_it_was(self):
        done = self.sh('id -u; id -g; pwd; echo "$PLAYFS_MOUNT"; echo $PWD; cat; echo said >&2')
        place = str(self.home / 'una/state/playfs/run/shared')
        self.assertEqual(done.stdout.split(), ['1000', '1000', place, place, place])
        self.assertEqual(done.stderr, 'said\n')
        self.assertNotIn(place, fixture.mounted_directories())
        self.assertEqual(os.listdir(place), [])
        self.assertEqual(self.servers(), [])

    def test_staged_changes_are_kept_and_tools_work_in_it(self):
        done = self.sh('mkdir src && echo "int a;" > src/a.c && chmod +x src/a.c && ln -s src/a.c link && '
                       f'{self.program} status --json')
        staged = {each['path'] for each in json.loads(done.stdout)['staged']}
        self.assertEqual(staged, {'src/a.c', 'link'})
        self.assertIn('Still staged in shared: 2 paths.', done.stderr)
        self.assertEqual(self.sh('cat link; stat -c %a src/a.c').stdout, 'int a;\n755\n')
        self.assertEqual(self.files(), set())
        self.sh(f'{self.program} commit -m Inside')
        self.assertEqual(self.files(), {'src/a.c', 'link'})
        self.assertEqual(self.sh('true').stderr, '')
        # The commit file is sent at the close, as in any mount.
        self.sh('echo b > b; echo By file > .playfs/project/commit; grep -q published .playfs/project/commit')
        self.assertIn('b', self.files())

    def test_exit_codes_are_those_of_the_command(self):
        for script, code in (('exit 0', 0), ('exit 3', 3), ('exit 255', 255), ('kill -TERM $$', 128 + 15),
                             ('kill -KILL $$', 128 + 9)):
            self.assertEqual(self.sh(script, check=False).returncode, code, script)
        missing = self.run_in('no-such-program', check=False)
        self.assertEqual((missing.returncode, 'no-such-program' in missing.stderr), (127, True), missing.stderr)
        refused = self.run_in('/etc/passwd', check=False)
        self.assertEqual(refused.returncode, 126, refused.stderr)
        absent = self.playfs_as_user('run', '--site', self.api.origin, 'nothing', '--', 'true', check=False)
        self.assertEqual((absent.returncode, "'nothing'" in absent.stderr), (NOT_FOUND, True), absent.stderr)
        self.assertEqual(self.servers(), [])

    def test_words_reach_the_command_as_they_are(self):
        words = ['--json', '-m', 'a b', '--', 'status', '', '-h', '--help']
        done = self.run_in('/usr/bin/python3', '-c', 'import json, sys; print(json.dumps(sys.argv[1:]))', *words)
        self.assertEqual(json.loads(done.stdout), words)

    def test_it_publishes_only_when_the_command_succeeds(self):
        failed = self.sh('echo a > a; false', '--commit', '-m', 'Not yet', check=False)
        self.assertEqual(failed.returncode, 1)
        self.assertIn('nothing was published', failed.stderr)
        self.assertIn('Still staged in shared: 1 path.', failed.stderr)
        self.assertEqual(self.files(), set())
        done = self.sh('echo b > b; echo out', '--commit', '-m', 'Both', '--agent', 'ada')
        self.assertEqual(done.stdout, 'out\n')
        self.assertIn('Published', done.stderr)
        self.assertEqual(self.files(), {'a', 'b'})
        head = self.api.get('revisions', self.head())
        self.assertEqual((head['message'], head['agent']), ('Both', 'ada'))
        document = json.loads(self.sh('echo c > c', '--commit', '-m', 'More', '--json').stdout)
        self.assertEqual((document['exit_code'], document['commit']['outcome'], document['staged']), (0, 'published', 0))
        self.assertEqual(document['commit']['revision'], self.head())
        self.assertEqual(self.sh('true', '--commit', '-m', 'Nothing').returncode, DONE)
        for wrong in (('--commit',), ('-m', 'Lost'), ('--read-only', '--commit', '-m', 'No')):
            self.assertEqual(self.run_in('true', options=wrong, check=False).returncode, 2, wrong)

    def test_a_clash_becomes_a_branch_and_the_next_command_is_named(self):
        self.sh('echo one > a', '--commit', '-m', 'One')
        other = self.home / 'other'
        self.playfs('clone', self.project, other, '--site', self.api.origin, who='bob')
        (other / 'a').write_text('theirs\n')
        self.sh('echo mine > a')
        self.playfs('commit', '-m', 'Theirs', cwd=other, who='bob')
        clash = self.sh('echo mine too > a', '--commit', '-m', 'Mine', check=False)
        self.assertEqual(clash.returncode, BRANCHED, clash.stderr)
        self.assertIn(f'playfs run shared --site {self.api.origin} -- playfs update', clash.stderr)
        self.sh(f'{self.program} update', check=False)
        unresolved = self.sh('true', '--commit', '-m', 'Too early', check=False)
        self.assertEqual(unresolved.returncode, BRANCHED, unresolved.stderr)
        self.sh('echo both > a', '--commit', '-m', 'Both')
        self.assertEqual(self.playfs('cat', self.head(), 'a', '--site', self.api.origin).stdout, 'both\n')

    def test_read_only(self):
        self.sh('echo a > a', '--commit', '-m', 'A')
        done = self.sh('cat a; echo b > b', '--read-only', check=False)
        self.assertEqual(done.stdout, 'a\n')
        self.assertIn('Read-only file system', done.stderr)

    def test_two_at_once_do_not_write_over_each_other(self):
        self.sh('echo a > a', '--commit', '-m', 'A')
        first = self.start('sh', '-c', 'echo ready; read line', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(first.stdout.readline(), 'ready\n')
        second = self.sh('true', check=False)
        self.assertEqual(second.returncode, 1, second.stderr)
        self.assertIn('--read-only', second.stderr)
        self.assertEqual(self.sh('cat a', '--read-only').stdout, 'a\n')
        first.communicate('go\n', timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(first.returncode, 0)

    def test_root_needs_no_user_namespace(self):
        done = self.playfs(*self.line('sh', '-c', 'id -u; cat /proc/self/uid_map; echo a > a',
                                      options=('--commit', '-m', 'Root')), who='bob')
        self.assertEqual(done.stdout.split(), ['0', '0', '0', '4294967295'])
        self.assertEqual(self.files(), {'a'})
        self.assertNotIn('/run/shared', ' '.join(fixture.mounted_directories()))


@fixture.needs_fuse
class SignalsAndTerminal(Runs):
    def test_signals_are_passed_on(self):
        # nohup(1) has it ignored, and bash traps nothing that was ignored when it started.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGWINCH):
            name = number.name.removeprefix('SIG')
            process = self.start('bash', '-c', f'trap "echo got {name}; exit 9" {name}; echo ready; '
                                 'while :; do sleep 0.1; done', stdout=subprocess.PIPE)
            self.assertEqual(process.stdout.readline(), 'ready\n')
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), f'got {name}\n')
            self.assertEqual(process.wait(fixture.COMMAND_LIMIT), 9, name)
        process = self.start('sh', '-c', 'echo ready; exec sleep 1000', stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        process.terminate()
        self.assertEqual(process.wait(fixture.COMMAND_LIMIT), 128 + signal.SIGTERM)
        self.assertEqual(self.servers(), [])

    def test_ctrl_c_is_for_the_command_alone(self):
        code, shown = self.on_terminal(*self.words_as_user(self.program, *self.line(
            'bash', '-c', 'trap "echo caught; exit 5" INT; test -t 0 && echo ready; while :; do sleep 0.1; done')),
            until='ready', answer=b'\x03', who='una')
        self.assertIn('caught', shown)
        self.assertEqual(code, 5, shown)

    def test_a_script_ends_with_the_command_that_was_interrupted(self):
        words = ' '.join(map(str, self.line('sh', '-c', '"echo ready; exec sleep 1000"')))
        code, shown = self.on_terminal(*self.words_as_user(
            'bash', '-c', f'for turn in 1 2; do {self.program} {words}; done; echo went on'), until='ready', answer=b'\x03', who='una')
        self.assertNotIn('went on', shown)
        self.assertEqual((code, shown.count('ready')), (-signal.SIGINT, 1), shown)

    def test_a_shell_stops_and_continues_it(self):
        words = ' '.join(map(str, self.line('sh', '-c', "'echo ready; read line; echo read $line'")))
        code, shown = self.on_terminal(
            *self.words_as_user('bash', '--norc', '--noprofile', '-i'), variables={'PS1': '$ '}, who='una', until=r'\$ ',
            answer=f'{self.program} {words}\n'.encode(),
            then=[('ready\n|ready\r\n', b'\x1a'), ('Stopped', b'fg\n'), ('run ', b'hello\n'), ('read hello', b'exit 7\n')])
        self.assertEqual(code, 7, shown)
        self.assertEqual(self.servers(), [])

    def test_stop_and_continue_sent_to_it_alone(self):
        process = self.start('sh', '-c', 'echo ready $$; read line; echo read $line', stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, start_new_session=True)
        ready, pid = process.stdout.readline().split()
        self.assertEqual(ready, 'ready')
        os.kill(int(pid), signal.SIGSTOP)  # as a debugger would, which tells us nothing
        self.eventually(lambda: unprivileged.state_of(int(pid)) == 'T', 'the command stands still')
        self.assertNotEqual(unprivileged.state_of(process.pid), 'T')
        process.send_signal(signal.SIGCONT)
        self.eventually(lambda: unprivileged.state_of(int(pid)) != 'T', 'the command goes on')
        process.communicate('hello\n', timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(process.returncode, 0)


@fixture.needs_fuse
class Ends(Runs):
    def test_what_is_left_in_the_background_loses_the_work_tree(self):
        done = self.sh('sleep 1000 < /dev/null > /dev/null 2>&1 & echo $! > pid; cat pid')
        left = int(done.stdout)
        self.addCleanup(os.kill, left, signal.SIGKILL)
        self.assertIn('no longer there', done.stderr)
        self.assertEqual(self.servers(), [])
        self.assertEqual(int(self.sh('cat pid').stdout), left)
        self.assertIsNotNone(unprivileged.state_of(left))

    def test_killed_it_leaves_nothing_mounted_and_loses_nothing(self):
        process = self.start('sh', '-c', 'echo kept > kept; echo ready $$; exec sleep 1000', stdout=subprocess.PIPE)
        command = int(process.stdout.readline().split()[1])
        process.kill()
        process.wait()
        self.eventually(lambda: self.servers() == [], 'its server ends, too')
        os.kill(command, signal.SIGKILL)
        self.assertEqual(self.sh('cat kept').stdout, 'kept\n')

    def test_its_server_may_die(self):
        done = self.sh('echo kept > kept; kill -9 $(sed -n \'s/.*"pid": \\([0-9]*\\).*/\\1/p\' .playfs/status.json); '
                       'sleep 0.3; cat kept', check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.sh('cat kept').stdout, 'kept\n')


@fixture.needs_fuse
class Refused(Runs):
    WAYS = ('playfs clone PROJECT DIR', 'playfs run PROJECT -- COMMAND', '/dev/fd/N')

    def assert_ways(self, done):
        self.assertNotEqual(done.returncode, 0)
        for way in self.WAYS:
            self.assertIn(way, done.stderr)
        self.assertEqual(done.stderr.count('playfs: '), 1, done.stderr)

    def mount_as_user(self, **options):
        directory = self.home / 'una/mnt'
        directory.mkdir(parents=True, exist_ok=True)
        self.environment('una')
        return self.playfs_as_user('mount', self.api.origin, directory, check=False, **options)

    def test_without_user_namespaces_the_error_names_the_cure_and_the_ways(self):
        setting = unprivileged.WITH_DEVICE + unprivileged.IN_CHROOT + \
            'exec setpriv --no-new-privs ' + unprivileged.CHROOT_AS_USER.removeprefix('exec ')
        done = self.sh('true', setting=setting, check=False)
        self.assertIn('user namespaces are refused', done.stderr)
        self.assertIn('--cap-add SYS_ADMIN', done.stderr)
        self.assert_ways(done)

    def test_without_user_namespaces_fusermount3_does_it(self):
        setting = unprivileged.WITH_DEVICE + unprivileged.NAMED + unprivileged.IN_CHROOT + unprivileged.CHROOT_AS_USER
        done = self.sh('echo a > a; id -u', '--commit', '-m', 'A', setting=setting)
        self.assertEqual(done.stdout, '1000\n')
        self.assertIn("other processes see", done.stderr)
        self.assertEqual(self.files(), {'a'})
        self.assertEqual(self.servers(), [])

    def test_without_the_device(self):
        setting = unprivileged.WITHOUT_FUSE + unprivileged.AS_USER
        for done in (self.sh('true', setting=setting, check=False), self.mount_as_user(setting=setting)):
            self.assertIn('/dev/fuse is missing', done.stderr)
            self.assert_ways(done)

    def test_a_mount_that_is_not_permitted(self):
        done = self.mount_as_user(setting=unprivileged.WITH_DEVICE + unprivileged.NO_NEW_PRIVILEGES)
        self.assertEqual(done.returncode, FORBIDDEN)
        self.assertIn('no_new_privs', done.stderr)
        self.assert_ways(done)
        # run needs no privileges, so it works there.
        self.assertEqual(self.sh('id -u', setting=unprivileged.WITH_DEVICE + unprivileged.NO_NEW_PRIVILEGES).stdout, '1000\n')

    def test_root_of_a_container_that_may_not_mount(self):
        lesser = ('setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin', '--')
        (self.home / 'mnt').mkdir()
        done = self.command(*lesser, self.playfs_path, 'mount', self.api.origin, self.home / 'mnt', who='bob', check=False)
        self.assertIn('may not mount', done.stderr)
        self.assert_ways(done)
        done = self.command(*lesser, self.playfs_path, *self.line('sh', '-c', 'id -u; echo a > a'), who='bob')
        self.assertEqual(done.stdout, '0\n')


@fixture.needs_fuse
@unittest.skipUnless(shutil.which('bwrap'), 'needs bubblewrap')
class WithoutNetwork(fixture.SharedProject):
    def test_everything_by_files_works_where_the_mount_is_bound_in(self):
        if self.command('bwrap', '--dev-bind', '/', '/', 'true', check=False).returncode:
            self.skipTest('bwrap cannot make namespaces here, as in a chroot whose root is no mount point')
        mount = self.mount(self.api.origin)
        work = self.work(mount)
        (work / 'a').write_text('a\n')
        script = (f'cd {work} && cat a && echo b > b && ! (exec 3<>/dev/tcp/127.0.0.1/{self.api.origin.rpartition(":")[2]}) '
                  f'2> /dev/null && {self.playfs_path} status > /dev/null && echo By file > ../commit && cat ../commit && '
                  f'echo c > c && {self.playfs_path} commit -m "By command" && {self.playfs_path} log --oneline')
        done = self.command('bwrap', '--dev-bind', '/', '/', '--bind', mount.directory, mount.directory, '--unshare-net',
                            '--', 'bash', '-c', script)
        self.assertIn('By command', done.stdout)
        head = self.api.get('projects', self.project)['latest_revision']
        self.assertEqual(set(self.api.get('revisions', head)['manifest']['files']), {'a', 'b', 'c'})


if __name__ == '__main__':
    fixture.main()
