#!/usr/bin/env python3
"""Staged changes outlive their mount; published content cannot be changed."""
import errno
import os
import time

import proxy
import fixture


@fixture.needs_fuse
class Crash(fixture.Fixture):
    def test_kill_and_remount_keeps_the_stage(self):
        api = self.serve()
        api.create('projects', name='p')
        mount = self.mount(api.origin, 'ann')
        work = mount.project('p') / 'work'
        (work / 'dir').mkdir()
        (work / 'kept').write_text('kept\n')
        (work / 'edited').write_text('before\n')
        (work / 'removed').write_text('removed\n')
        self.assertEqual(self.commit(work, 'Base')[0], 'published')

        big = os.urandom(300 * 1024)
        (work / 'edited').write_text('after\n')
        (work / 'dir/new').write_bytes(big)
        (work / 'removed').unlink()
        (work / 'kept').rename(work / 'moved')
        (work / 'moved').chmod(0o755)
        (work / 'link').symlink_to('moved')
        staged = self.describe(work)
        mount.kill()
        with self.assertRaises(OSError) as dead:
            os.listdir(work)
        self.assertEqual(dead.exception.errno, errno.ENOTCONN)

        # The dead mount is still there; mounting over it removes it.
        again = self.mount(api.origin, 'ann', at=mount.directory)
        work = again.project('p') / 'work'
        self.assertEqual(self.describe(work), staged)
        status = self.playfs('status', cwd=work).stdout
        for path in ('edited', 'dir/new', 'removed', 'moved', 'link'):
            self.assertIn(path, status)
        self.assertEqual(self.commit(work, 'After the crash')[0], 'published')
        self.assertEqual(self.describe(again.project('p') / 'head'), staged)

        again.unmount()
        third = self.mount(api.origin, 'ann')
        self.assertEqual(self.describe(third.project('p') / 'work'), staged)
        self.assertEqual(self.commit(third.project('p') / 'work', 'Nothing new')[0], 'nothing')

    def test_times_after_a_crash(self):
        """A time that was seen stays; an unseen one is the time of the write, at the disk clock's resolution."""
        api = self.serve()
        api.create('projects', name='p')
        mount = self.mount(api.origin, 'ann')
        work = mount.project('p') / 'work'
        for name in ('seen', 'unseen'):
            (work / name).write_text('before\n')
            os.utime(work / name, ns=(10**18, 10**18))
        before = time.time_ns()
        for name in ('seen', 'unseen'):
            fd = os.open(work / name, os.O_WRONLY)
            os.pwrite(fd, b'after', 0)
            os.fsync(fd)
            os.close(fd)
        seen = os.stat(work / 'seen')
        after = time.time_ns()
        mount.kill()
        work = self.mount(api.origin, 'ann', at=mount.directory).project('p') / 'work'
        again = os.stat(work / 'seen')
        self.assertEqual((again.st_mtime_ns, again.st_ctime_ns), (seen.st_mtime_ns, seen.st_ctime_ns))
        unseen = os.stat(work / 'unseen')
        tick = 10**8  # far more than one
        self.assertGreater(unseen.st_mtime_ns, before - tick)
        self.assertLess(unseen.st_mtime_ns, after + tick)
        self.assertGreaterEqual(unseen.st_ctime_ns, unseen.st_mtime_ns)

    def test_a_publication_goes_on_before_anybody_looks(self):
        api = self.serve()
        project = api.create('projects', name='p')['id']
        way = proxy.CountingProxy(int(api.origin.rsplit(':', 1)[1]))
        self.addCleanup(way.close)
        mount = self.mount(way.url, 'ann')
        work = mount.project('p') / 'work'
        (work / 'file').write_text('text\n')
        way.set_hanging('/revisions')
        pending = self.playfs('commit', '--no-wait', '-m', 'Begun', work, check=False)
        self.assertEqual(pending.returncode, 4, pending.stderr)
        mount.kill()
        way.set_hanging(None)
        self.assertFalse(api.get('projects', project).get('latest_revision'))
        again = self.mount(way.url, 'ann', at=mount.directory)
        self.eventually(lambda: api.get('projects', project).get('latest_revision'), 'it is published')
        shown = again.project('p') / 'head/file'
        self.eventually(shown.exists, 'and the mount has heard the answer')
        self.assertEqual(shown.read_text(), 'text\n')

    def overwrite(self, file):
        # As root, whom modes do not stop: open sends no message, so the write is refused.
        fd = os.open(file, os.O_WRONLY)
        try:
            os.write(fd, b'x')
        finally:
            os.close(fd)

    def test_published_trees_are_read_only(self):
        api = self.serve()
        api.create('projects', name='p')
        place = self.mount(api.origin, 'ann').project('p')
        (place / 'work/file').write_text('content\n')
        revision = self.commit(place / 'work', 'Base')[1]
        for tree in (place / 'revisions' / revision, place / 'head'):
            file, new = tree / 'file', tree / 'new'
            for what, change in {
                'touch': lambda: os.utime(file), 'create': lambda: new.touch(), 'write': lambda: self.overwrite(file),
                'truncate': lambda: os.truncate(file, 0), 'unlink': file.unlink, 'rename': lambda: file.rename(new),
                'mkdir': new.mkdir, 'chmod': lambda: file.chmod(0o755), 'symlink': lambda: new.symlink_to('file'),
            }.items():
                with self.assertRaises(OSError, msg=what) as refusal:
                    change()
                self.assertEqual(refusal.exception.errno, errno.EROFS, what)
            touch = self.command('touch', tree / 'x', check=False)
            self.assertIn('Read-only file system', touch.stderr)
            self.assertEqual(file.read_text(), 'content\n')


if __name__ == '__main__':
    fixture.main()
