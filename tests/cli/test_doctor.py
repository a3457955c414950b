#!/usr/bin/env python3
"""playfs doctor finds problems in the state on this machine, and repairs them without losing anything."""
import contextlib
import errno
import json
import os
import pathlib
import signal
import subprocess

import fixture

# A test must not touch others' dead mounts: as root it repairs in its own mount namespace. If / is not a mount point,
# as in a plain chroot, that is impossible, and the test requires that there are no other playfs mounts.
ALONE = ['unshare', '--mount', '--propagation', 'private']


class Doctor(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.alone = []
        if os.geteuid() != 0:
            return
        if self.command(*ALONE, 'true', check=False).returncode == 0:
            self.alone = ALONE
        elif any(' fuse.playfs ' in line for line in pathlib.Path('/proc/self/mounts').read_text().splitlines()):
            self.skipTest('there are mounts of others, and no namespace to be alone in')

    def doctor(self, *words):
        """The findings in this test's home as {(check, finding): [places]}; the exit code must agree."""
        done = self.command(*self.alone, 'sh', '-c', '"$@"; code=$?; cat /proc/self/mounts >&2; exit $code', 'sh',
                            self.playfs_path, 'doctor', '--json', *words, check=False)
        document = json.loads(done.stdout)
        self.assertEqual(document['schema_version'], 1)
        wrong = [each for each in document['findings'] if each['finding'] == 'wrong']
        self.assertEqual((document['wrong'], document['sound']), (len(wrong), not wrong))
        self.assertEqual(done.returncode, 1 if wrong else 0)
        self.mounts_then, self.said, found = done.stderr, document['findings'], {}
        for each in document['findings']:
            if each['place'].startswith(str(self.home)):
                found.setdefault((each['check'], each['finding']), []).append(pathlib.Path(each['place']))
        return found

    def wrong(self, found):
        return {check: places for (check, finding), places in found.items() if finding == 'wrong'}

    def stage_with(self, text):
        """Stages one file with `text`; returns the stage's directory and the mount."""
        top = self.home / 'mnt'
        top.mkdir()
        mount = self.mount('local:default', at=top)
        self.playfs('init', 'notes')
        (mount.project('notes') / 'work/draft').write_text(text)
        stages = list((self.home / 'ann/state/playfs/sites').glob('*/work/*/stage.db'))
        self.assertEqual(len(stages), 1)
        return stages[0].parent, mount

    def test_a_new_user_is_well_and_nothing_is_made(self):
        self.assertEqual(self.wrong(self.doctor()), {})
        self.doctor('--repair')
        self.assertFalse((self.home / 'ann/state').exists())

    def test_modes_of_places_and_credentials(self):
        config, state = self.home / 'ann/config/playfs', self.home / 'ann/state/playfs'
        for place in (config, state):
            place.mkdir(parents=True)
            place.chmod(0o755)
        key = config / 'credentials.toml'
        key.write_text('["https://example.org"]\napi_key = "secret"\n')
        key.chmod(0o644)
        self.assertEqual(self.wrong(self.doctor()), {'credentials': [key], 'place': [state]})
        self.assertEqual(key.stat().st_mode & 0o777, 0o644, 'looking changes nothing')
        words = self.playfs('doctor', check=False)
        self.assertIn(f'wrong   {key}', words.stdout)
        self.assertIn('playfs doctor --repair', words.stdout)
        self.assertNotIn('secret', words.stdout + words.stderr)

        found = self.doctor('--repair')
        self.assertEqual((self.wrong(found), found['credentials', 'mended']), ({}, [key]))
        self.assertEqual((key.stat().st_mode & 0o777, state.stat().st_mode & 0o777), (0o600, 0o700))
        self.assertEqual(config.stat().st_mode & 0o777, 0o755, 'which others may read, but not change')
        self.assertEqual(self.wrong(self.doctor()), {})

    @fixture.needs_fuse
    def test_the_state_of_a_mount_from_life_to_damage(self):
        stage, mount = self.stage_with('not yet\n')
        orphan = stage / 'spool/4711'
        orphan.write_text('bytes')
        orphan.chmod(0o600)
        found = self.doctor('--repair')
        self.assertEqual((found['mount', 'well'], found['stage', 'well']), ([mount.directory], [stage]))
        self.assertIn(f'process {mount.process.pid}', str(self.said))
        self.assertTrue(orphan.exists(), 'what is in use is left alone')

        mount.kill()
        found = self.doctor()
        self.assertEqual((self.wrong(found), found['mount', 'left']), ({'stage': [stage]}, [mount.directory]))
        self.assertIn(f' {mount.directory} ', self.mounts_then)
        found = self.doctor('--repair')
        self.assertEqual((found['mount', 'mended'], found['stage', 'mended']), ([mount.directory], [stage]))
        self.assertNotIn(f' {mount.directory} ', self.mounts_then)
        self.assertEqual([path.read_text() for path in stage.glob('lost+found/*/4711')], ['bytes'])

        again = self.mount('local:default', at=mount.directory)
        self.assertEqual((again.project('notes') / 'work/draft').read_text(), 'not yet\n')
        again.unmount()
        (stage / 'stage.db').write_bytes(b'no database at all, though it is called so')
        for name in ('stage.db-wal', 'stage.db-shm'):
            (stage / name).unlink(missing_ok=True)
        self.assertEqual(self.wrong(self.doctor()), {'stage': [stage]})
        found = self.doctor('--repair')
        self.assertEqual((self.wrong(found), found['stage', 'mended']), ({}, [stage]))
        self.assertIn('not yet\n', [path.read_text() for path in stage.glob('lost+found/*/spool/*')])
        last = self.mount('local:default', at=mount.directory)
        self.assertEqual(os.listdir(last.project('notes') / 'work'), [], 'it begins anew on head')
        last.unmount()
        self.assertIn('not yet\n', [path.read_text() for path in stage.glob('lost+found/*/spool/*')])
        self.assertEqual(self.wrong(self.doctor()), {})

    @fixture.needs_fuse
    def test_a_mount_of_another_state_directory_is_left_alone(self):
        _, mount = self.stage_with('not yet\n')
        mount.kill()
        done = self.command(*self.alone, 'sh', '-c', '"$@" --repair; cat /proc/self/mounts', 'sh', self.playfs_path,
                            'doctor', who='bob')
        self.assertIn(f' {mount.directory} fuse.playfs', done.stdout)
        self.assertIn(f'→ playfs umount {mount.directory}', done.stdout)

    @fixture.needs_fuse
    def test_what_the_next_mount_recovers_is_not_a_problem(self):
        """After kill -9, and with a partly written record."""
        stage, mount = self.stage_with('not yet\n')
        work = mount.project('notes') / 'work'
        for number in range(50):
            (work / f'f{number}').write_text(f'{number}\n')
        (work / 'gone').write_text('gone\n')
        held = os.open(work / 'gone', os.O_RDONLY)
        (work / 'gone').unlink()
        mount.kill()
        with contextlib.suppress(OSError):  # the mount is dead
            os.close(held)
        log = max((stage / 'operations.0', stage / 'operations.1'), key=lambda path: path.stat().st_size)
        with open(log, 'r+b') as records:
            records.truncate(log.stat().st_size - 7)
        found = self.doctor()
        self.assertEqual(self.wrong(found), {})
        self.assertEqual((found['mount', 'left'], found['stage', 'left']), ([mount.directory], [stage]))
        words = self.command(*self.alone, self.playfs_path, 'doctor').stdout
        self.assertIn('the next mount here recovers them', words)
        self.assertIn(f'→ playfs mount -o refresh=1 local:default {mount.directory}', words)
        if self.alone:  # no other test's mounts
            self.assertTrue(words.endswith('Nothing to do: the next mount recovers what is left.\n'), words)
        again = self.mount(None, at=mount.directory, options=())
        self.assertEqual((again.project('notes') / 'work/f49').read_text(), '49\n')
        again.unmount()
        found = self.doctor()
        self.assertEqual((self.wrong(found), found['stage', 'well']), ({}, [stage]))
        self.assertEqual([places for (_, finding), places in found.items() if finding == 'left'], [])

    @fixture.needs_fuse
    def test_commands_do_not_hang_on_a_mount_that_hangs(self):
        """Accessing it would block: each command reports what it could not examine, or does without it."""
        _, mount = self.stage_with('not yet\n')
        work = (mount.project('notes') / 'work').resolve()
        mount.process.send_signal(signal.SIGSTOP)
        self.addCleanup(mount.process.send_signal, signal.SIGCONT)
        self.assertEqual(self.wrong(self.doctor()), {'mount': [mount.directory]})
        self.assertIn('does not answer', str(self.said))
        for words in (('status', work), ('mount', mount.directory),
                      ('mount', '-f', self.home / 'mnt/below')):
            done = self.playfs(*words, check=False)
            self.assertIn('does not answer', done.stderr, words)
        # Within it, where a command first looks for its site.
        done = self.command('sh', '-c', 'cd "$1"; kill -STOP "$2"; exec "$3" ls', 'sh', *self.going_on(mount, work),
                            check=False)
        self.assertIn('does not answer', done.stderr)
        done = None

        def is_gone():  # it is busy while another test's doctor looks at it
            nonlocal done
            done = self.playfs('umount', '--wait', mount.directory, check=False)
            return done.returncode == 0
        self.eventually(is_gone, 'it is unmounted')
        self.assertIn('not listed', done.stderr)
        self.assertFalse(os.path.ismount(mount.directory))
        self.assertEqual(self.wrong(self.doctor()), {})

    def going_on(self, mount, directory):
        """Resumes the mount; returns the arguments of a shell that enters it and stops it again."""
        mount.process.send_signal(signal.SIGCONT)
        return directory, mount.process.pid, self.playfs_path

    @fixture.needs_fuse
    def test_damage_that_no_mount_opens(self):
        stage, mount = self.stage_with('first\n')
        work = mount.project('notes') / 'work'
        for i in range(50):
            (work / f'f{i}').write_text(f'bytes {i}\n')
        mount.kill()
        subprocess.run(['umount', '-l', mount.directory], check=False)
        log = max((stage / 'operations.0', stage / 'operations.1'), key=lambda path: path.stat().st_size)
        spool = sorted(path.name for path in (stage / 'spool').iterdir())
        whole = log.read_bytes()
        log.write_bytes(whole[:600] + bytes([whole[600] ^ 1]) + whole[601:])
        self.assert_refused(mount, stage, 'operations log is damaged')
        self.assertEqual(sorted(path.name for path in (stage / 'spool').iterdir()), spool)
        words = self.playfs('doctor', check=False).stdout
        self.assertIn('no mount opens it', words)
        found = self.doctor('--repair')
        self.assertEqual((self.wrong(found), found['stage', 'mended']), ({}, [stage]))
        self.assertEqual(sorted(path.read_text() for path in [*stage.glob('lost+found/*/[0-9]*'), *stage.glob('spool/*')]),
                         sorted(['first\n'] + [f'bytes {i}\n' for i in range(50)]))
        self.assertIn('f49', next(stage.glob('lost+found/*/names')).read_text())
        again = self.mount('local:default', at=mount.directory)
        self.assertEqual((again.project('notes') / 'work/draft').read_text(), 'first\n')
        again.unmount()

        (stage / 'stage.db').write_bytes(b'')
        spool = sorted(path.name for path in (stage / 'spool').iterdir())
        self.assert_refused(mount, stage, 'stage.db is missing or empty')
        self.assertEqual(sorted(path.name for path in (stage / 'spool').iterdir()), spool)
        found = self.doctor('--repair')
        self.assertEqual((self.wrong(found), found['stage', 'mended']), ({}, [stage]))
        self.assertIn('first\n', [path.read_text() for path in stage.glob('lost+found/*/spool/*')])

    def assert_refused(self, mount, stage, why):
        again = self.mount('local:default', at=mount.directory)
        with self.assertRaises(OSError) as problem:
            os.listdir(again.project('notes') / 'work')
        self.assertEqual(problem.exception.errno, errno.EIO)
        said = (again.directory / '.playfs/errors.ndjson').read_text()
        self.assertIn(why, said)
        self.assertIn(str(stage), said)
        self.assertIn('playfs doctor --repair', said)
        again.unmount()

    @fixture.needs_fuse
    def test_a_journal_that_cannot_be_read(self):
        stage, mount = self.stage_with('first\n')
        self.commit(mount.project('notes') / 'work', 'First')
        mount.unmount()
        self.assertEqual(self.wrong(self.doctor()), {})
        journal = stage / 'publication/publish.db'
        journal.write_bytes(b'torn')
        for name in ('publish.db-wal', 'publish.db-shm'):
            (journal.parent / name).unlink(missing_ok=True)
        self.assertEqual(self.wrong(self.doctor('--repair')), {'journal': [journal]})
        self.assertEqual(journal.read_bytes(), b'torn', 'it is only looked at')


if __name__ == '__main__':
    fixture.main()
