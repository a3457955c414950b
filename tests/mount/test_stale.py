#!/usr/bin/env python3
"""Files or directories that are open while head moves: what is written through them is staged, or the write fails."""
import errno
import json
import mmap
import os
import subprocess
import time

import fixture

ROUNDS = 6


@fixture.needs_fuse
class Stale(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.api.create('projects', name='p')
        self.ann, self.bob = self.mount(self.api.origin, 'ann'), self.mount(self.api.origin, 'bob')
        self.mine, self.theirs = (mount.project('p') / 'work' for mount in (self.ann, self.bob))
        (self.theirs / 'd').mkdir()
        for path in ('file', 'mapped', 'd/inner'):
            (self.theirs / path).write_text(f'{path}, old\n' * 1000)
        self.publish('First')

    def publish(self, message):
        """Publishes as bob; ann's clean tree follows."""
        committed = self.playfs('commit', '-m', message, '--json', cwd=self.theirs, who='bob')
        return json.loads(committed.stdout)['revision']

    def follows(self, revision):
        def is_there():
            status = json.loads((self.mine.parent / 'status.json').read_text())
            return status['base'] == revision
        self.eventually(is_there, f'the work tree follows to {revision}')

    def publish_and_follow(self, message):
        revision = self.publish(message)
        self.follows(revision)
        return revision

    def refused(self, call, *numbers):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertIn(problem.exception.errno, numbers or (errno.ESTALE,), problem.exception)

    def staged(self):
        return [each['path'] for each in json.loads((self.mine.parent / 'status.json').read_text())['staged']]

    def test_a_file_that_head_replaced_takes_no_change(self):
        fd = os.open(self.mine / 'file', os.O_RDWR)
        self.addCleanup(os.close, fd)
        old = os.pread(fd, 12, 0)
        (self.theirs / 'file').write_text('new\n')
        revision = self.publish_and_follow('Second')
        self.eventually(lambda: (self.mine / 'file').read_text() == 'new\n', 'ann sees the new file')
        for call in (lambda: os.write(fd, b'lost'), lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 5),
                     lambda: os.posix_fallocate(fd, 0, 1 << 20), lambda: os.fchmod(fd, 0o600),
                     lambda: os.utime(fd, (1, 1))):
            self.refused(call)
        self.assertEqual(os.pread(fd, 12, 0), old)
        self.assertEqual(self.staged(), [])
        errors = (self.ann.directory / '.playfs/errors.ndjson').read_text()
        self.assertIn('"stale"', errors)
        self.assertIn(revision, errors)
        with open(self.mine / 'file', 'a', encoding='utf-8') as file:
            file.write('mine\n')
        self.assertEqual((self.mine / 'file').read_text(), 'new\nmine\n')
        self.assertEqual(self.staged(), ['file'])

    def test_a_replaced_file_takes_no_change_through_a_mapping(self):
        with open(self.mine / 'mapped', 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
            self.assertEqual(mapped[:6], b'mapped')
            (self.theirs / 'mapped').write_text('new\n')
            self.publish_and_follow('Second')
            before = mapped[:]
            mapped[:4] = b'lost'
            self.refused(mapped.flush, errno.ESTALE, errno.EIO)
            self.eventually(lambda: mapped[:] == before, 'the old bytes are whole for who has them open')
            self.refused(lambda: os.pwrite(file.fileno(), b'lost', 0))
        self.eventually(lambda: (self.mine / 'mapped').read_text() == 'new\n', 'ann sees the new file')
        self.assertEqual(self.staged(), [])

    def test_a_store_into_what_is_published_is_seen_by_nobody(self):
        published = self.mine.parent / 'head/mapped'
        before = published.read_bytes()
        with open(published, 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:5] = mapped[-5:] = b'alien'
            self.refused(mapped.flush, errno.EROFS, errno.EIO)
            self.eventually(lambda: mapped[:] == before, 'whoever has it open reads what was there')
        self.assertEqual(published.read_bytes(), before)

    def test_what_a_discard_took_away_takes_no_change(self):
        (self.mine / 'file').write_text('mine\n')
        with open(self.mine / 'file', 'r+b', buffering=0) as file:
            self.playfs('discard', self.mine)
            self.refused(lambda: file.write(b'lost'))
            self.assertEqual(os.pread(file.fileno(), 10, 0), b'mine\n')

    def test_what_its_user_removed_takes_changes(self):
        with open(self.mine / 'file', 'r+b', buffering=0) as file:
            (self.mine / 'file').unlink()
            self.playfs('discard', self.mine)
            (self.theirs / 'file').write_text('new\n')
            self.publish_and_follow('Second')
            file.write(b'KEPT')
            self.assertEqual(os.pread(file.fileno(), 6, 0), b'KEPT, ')

    def test_a_directory_that_head_removed_takes_no_names(self):
        fd = os.open(self.mine / 'd', os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.assertEqual(os.listdir(fd), ['inner'])
        (self.theirs / 'd/inner').unlink()
        (self.theirs / 'd').rmdir()
        self.publish_and_follow('Second')
        self.refused(lambda: os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=fd), errno.ESTALE, errno.ENOENT)
        self.refused(lambda: os.mkdir('new', dir_fd=fd), errno.ESTALE, errno.ENOENT)
        self.refused(lambda: os.rename(self.mine / 'file', 'new', dst_dir_fd=fd), errno.ESTALE, errno.ENOENT)
        self.assertTrue((self.mine / 'file').exists())
        self.assertEqual(self.staged(), [])

    def test_what_was_acknowledged_while_head_moved_is_staged(self):
        """A first write to a clean tree just as it follows head: the line is in the file, or the write failed."""
        acknowledged, refused = 0, 0
        for turn in range(ROUNDS):
            (self.theirs / 'file').write_text(f'bob {turn}\n' * 1000)
            with open(self.mine / 'file', 'ab', buffering=0) as file:
                self.publish(f'Turn {turn}')
                following = subprocess.Popen([self.playfs_path, 'update', str(self.mine)], env=self.environment('ann'),
                                             stderr=subprocess.DEVNULL)
                time.sleep(0.02 * turn)  # another moment each time; none is known to be special
                line = f'ann {turn}\n'.encode()
                try:
                    file.write(line)
                    acknowledged += 1
                    self.assertTrue(line in (self.mine / 'file').read_bytes(), f'acknowledged in turn {turn}, and gone')
                    self.assertEqual(self.staged(), ['file'])
                except OSError as problem:
                    refused += 1
                    self.assertEqual(problem.errno, errno.ESTALE)
                following.wait(fixture.COMMAND_LIMIT)
                if following.returncode == 0 and line in (self.mine / 'file').read_bytes():
                    self.assertEqual(self.staged(), ['file'])
            self.playfs('discard', self.mine)
            self.playfs('update', self.mine)
        self.assertEqual(acknowledged + refused, ROUNDS)


if __name__ == '__main__':
    fixture.main()
