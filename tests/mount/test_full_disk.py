#!/usr/bin/env python3
"""A full disk: writers get an error, nothing else breaks, and freed space is used."""
import errno
import json
import os
import shutil
import subprocess
import threading

import fixture

PIECE = 64 * 1024


@fixture.needs_fuse
class FullDisk(fixture.Fixture):
    """Staged changes are on a small disk of their own."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest('needs root, to mount a small disk')
        self.api = self.serve()
        self.api.create('projects', name='p')
        state = self.home / 'ann/state'
        state.mkdir(parents=True)
        self.command('mount', '-t', 'tmpfs', '-o', 'size=16m,mode=700', 'small', state)
        self.addCleanup(self.command, 'umount', '-l', state)
        self.mounted = self.mount(self.api.origin)
        self.work = self.mounted.project('p') / 'work'

    def remount(self):
        self.mounted.kill()
        self.mounted = self.mount(self.api.origin, at=self.mounted.directory)
        self.work = self.mounted.project('p') / 'work'

    def assert_full(self, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, errno.ENOSPC)

    def fill(self, name, written):
        """Appends pieces until the disk is full, recording what was acknowledged in `written`."""
        written[name] = b''
        with open(self.work / name, 'wb', buffering=0) as file:
            while True:
                piece = os.urandom(PIECE)
                try:
                    count = file.write(piece)
                except OSError as problem:
                    return problem.errno
                written[name] += piece[:count]

    def test_writers_hear_of_it_and_go_on_when_there_is_room(self):
        written, ended = {'before': b'before'}, {}
        (self.work / 'before').write_bytes(b'before')
        writers = [threading.Thread(target=lambda name=name: ended.update({name: self.fill(name, written)}))
                   for name in ('a', 'b', 'c')]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(fixture.COMMAND_LIMIT)
        self.assertEqual(ended, {name: errno.ENOSPC for name in 'abc'})
        self.assertLess(os.statvfs(self.work).f_bavail, 1024)
        for round in range(2):  # the second time after a crash
            for name, data in written.items():
                self.assertEqual((self.work / name).read_bytes(), data)
            self.assertIn('b', self.playfs('status', cwd=self.work).stdout)
            if round == 0:
                self.remount()
        (self.work / 'a').unlink()
        (self.work / 'more').write_bytes(bytes(PIECE))
        (self.work / 'before').rename(self.work / 'after')
        (self.work / 'b').unlink()
        (self.work / 'c').unlink()
        self.assertEqual(self.commit(self.work, 'With room again')[0], 'published')

    def test_without_room_for_a_checkpoint_nothing_is_dropped(self):
        (self.work / 'first').write_text('first')
        (self.work / 'second').write_text('second')
        self.playfs('checkpoint', cwd=self.work)
        (self.work / 'first').write_text('later')
        before = self.describe(self.work)
        state = self.home / 'ann/state'

        def fill():
            with open(state / 'ballast', 'ab', buffering=0) as file:
                for size in (PIECE, 4096, 1):
                    try:
                        while file.write(bytes(size)):
                            pass
                    except OSError as problem:
                        self.assertEqual(problem.errno, errno.ENOSPC)

        def attempt(*words):
            fill()
            done = self.playfs(*words, '--json', cwd=self.work, check=False)
            return done.returncode, json.loads(done.stdout).get('error', {}).get('code')

        # The mount may still find some room in what it keeps for such a day.
        self.assertIn((1, 'no_space'), [attempt('checkpoint') for _ in range(5)])
        for words in (['checkpoint'], ['discard', '.'], ['discard', 'first'], ['checkpoint', 'restore', '1']):
            self.assertEqual(attempt(*words), (1, 'no_space'), words)
            self.assertEqual(self.describe(self.work), before, words)
        self.assertIn('rm', self.playfs('discard', '.', cwd=self.work, check=False).stderr)
        (state / 'ballast').unlink()
        self.playfs('checkpoint', 'restore', '1', cwd=self.work)
        self.assertEqual((self.work / 'first').read_text(), 'first')
        newest = json.loads(self.playfs('checkpoint', 'list', '--json', cwd=self.work).stdout)['checkpoints'][0]
        self.playfs('checkpoint', 'restore', newest['id'], cwd=self.work)
        self.assertEqual(self.describe(self.work), before)
        self.remount()
        self.assertEqual(self.describe(self.work), before)

    def test_dropping_a_checkpoint_makes_room(self):
        (self.work / 'big').write_bytes(os.urandom(9 << 20))
        self.playfs('discard', 'big', cwd=self.work)
        again = self.work / 'again'
        self.assert_full(lambda: again.write_bytes(os.urandom(9 << 20)))
        again.unlink()
        self.assertRegex(self.playfs('checkpoint', 'list', cwd=self.work).stdout, r'(?m)^1 .* 9216 KB')
        self.playfs('checkpoint', 'drop', '1', cwd=self.work)
        again.write_bytes(os.urandom(9 << 20))

    def test_names_can_be_removed_when_there_is_room_for_none(self):
        made = 0
        with open(self.work / 'ballast', 'wb') as file:
            os.posix_fallocate(file.fileno(), 0, 8 << 20)

        def make():
            nonlocal made
            while True:
                path = self.work / f'd{made // 100}'
                path.mkdir(exist_ok=True)
                (path / ('n' * 200 + str(made))).symlink_to('x' * 3000)
                made += 1

        self.assert_full(make)
        with open(self.work / 'ballast', 'r+b', buffering=0) as file:
            self.assert_full(lambda: [file.write(bytes(PIECE)) for _ in range(1000) if file.seek(0, os.SEEK_END)])
        directories = sorted(os.listdir(self.work))
        self.assertGreater(len(directories), 2)
        self.command('rm', '-r', self.work / directories[1])  # nothing else frees space meanwhile
        for name in os.listdir(self.work):
            if name != 'ballast':
                shutil.rmtree(self.work / name)
        (self.work / 'ballast').unlink()
        self.assertEqual(os.listdir(self.work), [])
        make_again = subprocess.run(['mkdir', self.work / 'again'], timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(make_again.returncode, 0)

    def test_sizes_shrink_and_allocation_is_all_or_nothing(self):
        file = self.work / 'file'
        with open(file, 'wb') as opened:
            self.assert_full(lambda: os.posix_fallocate(opened.fileno(), 0, 64 << 20))
        self.fill('rest', {})
        self.assert_full(lambda: file.write_bytes(bytes(PIECE)))
        os.truncate(self.work / 'rest', PIECE)
        file.write_bytes(bytes(PIECE))
        self.remount()
        self.assertEqual(os.stat(self.work / 'rest').st_size, PIECE)
        self.assertEqual(file.read_bytes(), bytes(PIECE))


if __name__ == '__main__':
    fixture.main()
