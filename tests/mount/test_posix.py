#!/usr/bin/env python3
"""What POSIX and the Linux manual say about each call on names and attributes, as root and as others.

By hand, on a directory of any file system that root may write (to learn what a local disk does):
    PLAYFS_POSIX_DIRECTORY=/some/directory tests/mount/test_posix.py
"""
import itertools
import os
import pathlib
import shutil
import time

import actor
import fixture

ANN, BOB = 65534, 65533        # users, and groups with the same numbers
LONGEST = 'n' * 255
KINDS = ('file', 'dir', 'fifo', 'socket', 'symlink', 'char', 'block')
FILES = tuple(kind for kind in KINDS if kind != 'dir')


def longest_path(length):
    """A path of exactly `length` bytes whose components are not too long."""
    path = 'd/' * (length // 2)
    return path[:length - 1] + 'x' if length % 2 == 0 else path + 'x'


@fixture.needs_fuse
class Posix(fixture.Fixture):
    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest('needs root, to act as several users')
        given = os.environ.get('PLAYFS_POSIX_DIRECTORY')
        if given:
            self.work = pathlib.Path(given) / f'posix-{os.getpid()}-{time.monotonic_ns()}'
            self.work.mkdir()
            self.addCleanup(shutil.rmtree, self.work)
        else:
            api = self.serve()
            api.create('projects', name='p')
            self.home.chmod(0o711)
            self.mounted = self.mount(api.origin, options=('allow_other',))
            self.work = self.mounted.project('p') / 'work'
        self.work.chmod(0o777)
        self.names = (f'n{number}' for number in itertools.count())
        self.root = self.actor(0)
        self.ann = self.actor(ANN)
        self.bob = self.actor(BOB)

    def actor(self, uid, gid=None, groups=(), umask=0):
        made = actor.Actor(self.work, uid, uid if gid is None else gid, groups, umask)
        self.addCleanup(made.end)
        return made

    def expect(self, wanted, who, *call):
        self.assertEqual(who(*call), wanted, call)

    def fresh(self, kind=None, who=None, inside='', mode=None):
        """A new name; with `kind`, a file of that kind under it."""
        name = inside + next(self.names)
        if kind:
            self.expect(None, who or self.root, 'make', kind, name)
            if mode is not None:
                self.expect(None, who or self.root, 'chmod', name, mode)
        return name

    def times(self, *names):
        return {(name, what): self.root('status', name, what) for name in names for what in ('mtime', 'ctime')}

    def updates(self, wanted, *call, who=None, result=None):
        """Checks that the call changes exactly these times of the given names: {name: 'mc'} for mtime and ctime."""
        before = self.times(*wanted)
        time.sleep(0.005)  # more than one tick of the kernel's clock
        self.expect(result, who or self.root, *call)
        after = self.times(*wanted)
        for name, expected in wanted.items():
            moved = ''.join(what[0] for what in ('mtime', 'ctime') if after[name, what] > before[name, what])
            self.assertEqual(moved, expected, (call, name))

    # What every call on a path says about the path.

    def path_calls(self):
        """Calls on an existing file, as functions of its path."""
        return {
            'chmod': lambda path: ('chmod', path, 0o644), 'chown': lambda path: ('chown', path, 0, 0),
            'lchown': lambda path: ('lchown', path, 0, 0), 'truncate': lambda path: ('truncate', path, 0),
            'open': lambda path: ('open_close', path, os.O_RDONLY), 'unlink': lambda path: ('unlink', path),
            'utimensat': lambda path: ('utimens', path, (1, 2), (3, 4)),
            'rename from': lambda path: ('rename', path, 'elsewhere'), 'link from': lambda path: ('link', path, 'other')}

    def making_calls(self):
        """Calls that create the path."""
        return {
            'create': lambda path: ('create', path), 'mkdir': lambda path: ('mkdir', path, 0o755),
            'mkfifo': lambda path: ('mkfifo', path), 'bind': lambda path: ('bind', path),
            'mknod': lambda path: ('make', 'char', path), 'symlink': lambda path: ('symlink', 'x', path),
            'link': lambda path: ('link', 'source', path), 'rename': lambda path: ('rename', 'source', path)}

    def test_paths(self):
        self.fresh()
        self.root('create', 'source')
        self.root('create', 'plain')
        self.root('symlink', 'loop-b', 'loop-a')
        self.root('symlink', 'loop-a', 'loop-b')
        self.root('mkdir', 'closed', 0o700)
        self.root('create', 'closed/file')
        for name, call in {**self.path_calls(), **self.making_calls()}.items():
            makes = name in self.making_calls()
            with self.subTest(name):
                self.expect('ENOTDIR', self.root, *call('plain/below'))
                self.expect('ELOOP', self.root, *call('loop-a/below'))
                self.expect('ENOENT', self.root, *call('missing/below'))
                if name != 'bind':  # socket addresses are short
                    self.expect('ENAMETOOLONG', self.root, *call(LONGEST + 'x'))
                    self.expect('ENAMETOOLONG', self.root, *call(longest_path(4096)))
                    self.expect('ENOENT', self.root, *call(longest_path(4095)))
                if not makes:
                    self.expect('ENOENT', self.root, *call('missing'))
                # mknod is refused to others before the path is resolved.
                self.expect('EACCES', self.ann, *(('mkfifo', 'closed/new') if name == 'mknod' else
                                                  call('closed/new' if makes else 'closed/file')))
        for name in ('chmod', 'chown', 'truncate', 'open', 'utimensat'):
            self.expect('ELOOP', self.root, *self.path_calls()[name]('loop-a'))
        self.expect('ELOOP', self.root, 'open_close', 'loop-a', os.O_RDONLY | os.O_NOFOLLOW)

    def test_names_of_all_lengths(self):
        for kind in KINDS:
            if kind == 'socket':
                continue
            self.expect(None, self.root, 'make', kind, LONGEST)
            self.expect(kind, self.root, 'status', LONGEST, 'kind')
            self.expect(None, self.root, 'rename', LONGEST, 'm' * 255)
            self.expect(None, self.root, 'remove', 'm' * 255)
        # A path of maximal length, created step by step.
        path = '/'.join(['c' * 99] * 40) + '/' + 'c' * 94
        os.makedirs(self.work / '/'.join(['c' * 99] * 30))
        for depth in range(31, 41):
            self.expect(None, self.root, 'mkdir', '/'.join(['c' * 99] * depth))
        self.assertEqual(len(path), 4094)
        self.expect(None, self.root, 'create', path)
        self.expect(None, self.root, 'unlink', path)
        self.expect(None, self.root, 'symlink', 'x' * 4095, 'far')
        self.expect('x' * 4095, self.root, 'readlink', 'far')
        self.expect('ENAMETOOLONG', self.root, 'symlink', 'x' * 4096, 'farther')
        self.expect('ENOENT', self.root, 'symlink', '', 'nothing')

    def test_names_that_are_not_utf8(self):
        if 'PLAYFS_POSIX_DIRECTORY' in os.environ:
            self.skipTest('of playfs')
        name, source = b'not \xff utf-8', self.fresh('file')
        for call in (('create', name), ('mkdir', name, 0o755), ('mkfifo', name), ('symlink', 'x', name),
                     ('link', source, name), ('rename', source, name), ('rename2', source, name, actor.NOREPLACE)):
            self.expect('EINVAL', self.root, *call)
        for call in (('open_close', name, os.O_RDONLY), ('unlink', name), ('rename', name, 'other')):
            self.expect('ENOENT', self.root, *call)
        # A link's target is content and may be any bytes.
        self.expect(None, self.root, 'symlink', name, 'link')
        self.expect(name, self.root, 'readlink', b'link')

    # Creating and removing.

    def test_what_is_made_and_whose_it_is(self):
        masked = self.actor(ANN, umask=0o077)
        for kind in KINDS:
            if kind in ('char', 'block'):
                name = self.fresh(kind)
                self.expect((kind, os.makedev(1, 3), 0), self.root, 'status', name, 'kind', 'rdev', 'uid')
                self.expect('EPERM', self.ann, 'make', kind, self.fresh())
                continue
            name = self.fresh(kind, self.ann)
            self.expect((kind, ANN, ANN, 2 if kind == 'dir' else 1), self.root, 'status', name, 'kind', 'uid', 'gid',
                        'nlink')
            if kind not in ('symlink', 'socket'):
                name = self.fresh(kind, masked)
                self.expect(0o700 if kind == 'dir' else 0o600, self.root, 'status', name, 'mode')
        for mode in (0, 0o151, 0o777, 0o7777):
            name = self.fresh()
            self.expect(None, self.root, 'create', name, mode)
            self.expect(mode, self.root, 'status', name, 'mode')
        self.expect(0o1753, self.root, 'status', self.directory(0o1753), 'mode')

    def directory(self, mode, who=None, group=None):
        name = self.fresh('dir', who or self.root, mode=mode)
        if group is not None:
            self.expect(None, self.root, 'chown', name, -1, group)
            self.expect(None, self.root, 'chmod', name, mode)
        return name

    def test_parents_and_their_times(self):
        for kind in KINDS:
            with self.subTest(kind):
                above = self.directory(0o777)
                name = self.fresh(inside=above + '/')
                self.updates({above: 'mc'}, 'make', kind, name)
                self.assertGreaterEqual(self.root('status', name, 'ctime'), self.root('status', above, 'mtime'))
                self.updates({above: 'mc'}, 'rename', name, name + 'r')
                if kind != 'dir':
                    self.updates({above: 'mc', name + 'r': 'c'}, 'link', name + 'r', name)
                    self.expect(2, self.root, 'status', name, 'nlink')
                    self.updates({above: 'mc', name + 'r': 'c'}, 'unlink', name)
                    self.expect(1, self.root, 'status', name + 'r', 'nlink')
                # A refused call changes nothing.
                self.updates({above: '', name + 'r': ''}, 'make', 'dir', name + 'r', result='EEXIST')
                self.updates({above: '', name + 'r': ''}, 'chmod', name, 0o777, result='ENOENT')
                other = self.directory(0o777)
                self.updates({above: 'mc', other: 'mc'}, 'rename', name + 'r', other + '/moved')
                self.updates({above: '', other: 'mc'}, 'remove', other + '/moved')

    def test_names_that_are_taken(self):
        for kind in KINDS:
            taken = self.fresh(kind)
            source = self.fresh('file')
            for call in (('create', taken), ('mkdir', taken), ('mkfifo', taken), ('make', 'char', taken),
                         ('symlink', 'x', taken), ('link', source, taken), ('rename2', source, taken, actor.NOREPLACE)):
                self.expect('EEXIST', self.root, *call)
            self.expect('EADDRINUSE', self.root, 'bind', taken)
            self.expect('EISDIR' if kind == 'dir' else None, self.root, 'unlink', taken)
            if kind != 'dir':
                self.root('make', kind, taken)
                self.expect('ENOTDIR', self.root, 'rmdir', taken)

    def test_links_of_directories_are_counted(self):
        above = self.directory(0o755)
        self.root('mkdir', above + '/a')
        self.root('mkdir', above + '/b')
        self.expect(4, self.root, 'status', above, 'nlink')
        self.expect(None, self.root, 'rename', above + '/b', above + '/a/b')
        self.expect(3, self.root, 'status', above, 'nlink')
        self.expect(3, self.root, 'status', above + '/a', 'nlink')
        self.expect('ENOTEMPTY', self.root, 'rmdir', above + '/a')
        self.expect(None, self.root, 'rmdir', above + '/a/b')
        self.expect(2, self.root, 'status', above + '/a', 'nlink')
        self.expect('EINVAL', self.root, 'rmdir', above + '/a/.')
        self.expect('ENOTEMPTY', self.root, 'rmdir', above + '/a/..')
        self.expect('EPERM', self.root, 'link', above, self.fresh())

    def test_many_links(self):
        name = self.fresh('file')
        more = [self.fresh() for _ in range(300)]
        for other in more:
            self.expect(None, self.root, 'link', name, other)
        self.expect(301, self.root, 'status', more[150], 'nlink')
        self.expect(None, self.root, 'write', more[7], b'one file')
        self.expect(b'one file', self.root, 'read', more[299])
        for other in more:
            self.expect(None, self.root, 'unlink', other)
        self.expect(1, self.root, 'status', name, 'nlink')

    # Renaming.

    def test_renames_over_each_other(self):
        for old, new in itertools.product(KINDS, KINDS):
            with self.subTest(f'{old} over {new}'):
                one, other = self.fresh(old), self.fresh(new)
                ino = self.root('status', one, 'ino')
                wanted = None
                if old == 'dir' and new != 'dir':
                    wanted = 'ENOTDIR'
                elif new == 'dir' and old != 'dir':
                    wanted = 'EISDIR'
                self.expect(wanted, self.root, 'rename', one, other)
                if wanted is None:
                    self.expect((old, ino), self.root, 'status', other, 'kind', 'ino')
                    self.expect('ENOENT', self.root, 'status', one, 'kind')
                    one = self.fresh(new)
                kinds = self.root('status', one, 'kind'), self.root('status', other, 'kind')
                self.expect(None, self.root, 'rename2', one, other, actor.EXCHANGE)
                self.assertEqual((self.root('status', other, 'kind'), self.root('status', one, 'kind')), kinds)
                self.root('remove', one)
                self.root('remove', other)

    def test_renames_that_make_no_sense(self):
        above = self.directory(0o755)
        self.root('mkdir', above + '/in')
        self.root('create', above + '/in/file')
        self.expect('EINVAL', self.root, 'rename', above, above + '/in/it')
        self.expect('EINVAL', self.root, 'rename2', above, above + '/in', actor.EXCHANGE)
        empty = self.directory(0o755)
        self.expect('ENOTEMPTY', self.root, 'rename', empty, above)
        self.expect('ENOENT', self.root, 'rename2', empty, self.fresh(), actor.EXCHANGE)
        self.expect('EINVAL', self.root, 'rename2', empty, self.fresh(), actor.EXCHANGE | actor.NOREPLACE)
        for path in ('.', '..'):
            self.expect('EBUSY', self.root, 'rename', above + '/' + path, self.fresh())
        one, other = self.fresh('file'), self.fresh()
        self.root('link', one, other)
        self.expect(None, self.root, 'rename', one, other)  # two names of one file: a no-op
        self.expect(2, self.root, 'status', one, 'nlink')
        outside = str(self.home / 'outside')
        pathlib.Path(outside).touch()
        if 'PLAYFS_POSIX_DIRECTORY' not in os.environ:
            self.expect('EINVAL', self.root, 'rename2', empty, self.fresh(), actor.WHITEOUT)
            self.expect('EXDEV', self.root, 'rename', one, outside)
            self.expect('EXDEV', self.root, 'link', outside, self.fresh())

    # Permissions.

    def test_directories_that_may_not_be_written(self):
        for mode, refused in ((0o755, True), (0o555, True), (0o777, False)):
            above = self.directory(mode)
            for kind in ('file', 'dir', 'fifo', 'socket', 'symlink'):
                name = above + '/' + kind
                self.expect('EACCES' if refused else None, self.ann, 'make', kind, name)
                if refused:
                    self.root('make', kind, name)
                self.expect('EACCES' if refused else None, self.ann, 'rename', name, name + 'r')
                self.expect('EACCES' if refused else None, self.ann, 'remove', name if refused else name + 'r')
            source = self.fresh('file', self.ann)
            self.expect('EACCES' if refused else None, self.ann, 'link', source, above + '/link')
            self.expect('EACCES' if refused else None, self.ann, 'rename', source, above + '/moved')
        # Moving a directory elsewhere changes its "..", so it must be writable itself.
        source = self.fresh('dir', self.root, mode=0o755)
        inside = self.directory(0o777)
        self.expect('EACCES', self.ann, 'rename', source, inside + '/moved')

    def test_sticky_directories(self):
        for owner, file_owner in itertools.product((ANN, BOB), (ANN, BOB)):
            for kind in KINDS:
                above = self.directory(0o1777)
                self.root('chown', above, owner, owner)
                name, mine = self.fresh(kind, inside=above + '/'), self.fresh('file', self.ann)
                self.root('lchown', name, file_owner, file_owner)
                may = ANN in (owner, file_owner)
                # If the directory is not Ann's, its ".." is not writable: that is another error.
                moved = name + 'moved'
                self.expect(None if may else 'EPERM', self.ann, 'rename', name, moved)
                if may:
                    self.root('rename', moved, name)
                if kind != 'dir':
                    self.expect(None if may else 'EPERM', self.ann, 'rename', mine, name)
                    if may:
                        continue
                self.expect(None if may else 'EPERM', self.ann, 'remove', name)

    def test_chmod(self):
        member = self.actor(ANN, BOB, (BOB,))
        for kind in ('file', 'dir', 'fifo', 'socket', 'char', 'block'):
            name = self.fresh(kind)
            self.updates({name: 'c'}, 'chmod', name, 0o123)
            self.expect(0o123, self.root, 'status', name, 'mode')
            self.expect('EPERM', self.ann, 'chmod', name, 0o777)
            self.root('chown', name, ANN, BOB)
            self.expect(None, self.ann, 'chmod', name, 0o5755)
            self.expect(0o5755, self.root, 'status', name, 'mode')
            # Only members of the file's group may set set-gid.
            self.expect(None, self.ann, 'chmod', name, 0o2755)
            self.expect(0o755, self.root, 'status', name, 'mode')
            self.expect(None, member, 'chmod', name, 0o2755)
            self.expect(0o2755, self.root, 'status', name, 'mode')
        link = self.fresh()
        self.root('symlink', name, link)
        self.expect(None, self.root, 'chmod', link, 0o600)
        self.expect(0o600, self.root, 'status', name, 'mode')

    def test_chown(self):
        member = self.actor(ANN, ANN, (ANN, BOB))
        for kind in KINDS:
            with self.subTest(kind):
                name = self.fresh(kind)
                self.updates({name: 'c'}, 'lchown', name, ANN, ANN)
                self.expect((ANN, ANN), self.root, 'status', name, 'uid', 'gid')
                self.updates({name: ''}, 'lchown', name, BOB, -1, who=self.ann, result='EPERM')
                self.expect('EPERM', self.ann, 'lchown', name, -1, BOB)
                self.expect('EPERM', self.bob, 'lchown', name, -1, BOB)
                self.expect(None, self.bob, 'lchown', name, -1, -1)
                self.updates({name: 'c'}, 'lchown', name, ANN, BOB, who=member)
                self.expect((ANN, BOB), self.root, 'status', name, 'uid', 'gid')
                if kind == 'symlink':
                    continue
                # A change of owner clears set-id bits, except on directories.
                self.root('chmod', name, 0o6555)
                self.expect(None, member, 'lchown', name, -1, ANN)
                self.expect(0o6555 if kind == 'dir' else 0o555, self.root, 'status', name, 'mode')
                self.root('chmod', name, 0o6555)
                self.expect(None, self.root, 'lchown', name, BOB, BOB)
                self.expect(0o6555 if kind == 'dir' else 0o555, self.root, 'status', name, 'mode')
        link, name = self.fresh(), self.fresh('file')
        self.root('symlink', name, link)
        self.expect(None, self.root, 'chown', link, ANN, BOB)
        self.expect((ANN, BOB), self.root, 'status', name, 'uid', 'gid')
        self.expect(0, self.root, 'status', link, 'uid')

    def test_set_gid_directories(self):
        above = self.directory(0o2777, group=BOB)
        name = self.fresh('file', self.ann, inside=above + '/')
        self.expect((ANN, BOB), self.root, 'status', name, 'uid', 'gid')
        below = self.fresh('dir', self.ann, inside=above + '/')
        self.expect((BOB, 0o2755), self.root, 'status', below, 'gid', 'mode')
        # Nobody can create a set-gid program for a foreign group.
        name = self.fresh(inside=above + '/')
        self.expect(None, self.ann, 'create', name, 0o2755)
        self.expect(0o755, self.root, 'status', name, 'mode')

    def test_set_id_bits_go_with_a_change(self):
        source = self.fresh('file')
        self.root('write', source, b'bytes')
        changes = {'write': lambda name: ('write', name, b'x'), 'empty': lambda name: ('truncate', name, 0),
                   'grow': lambda name: ('truncate', name, 100), 'fallocate': lambda name: ('fallocate', name, 0, 0, 10),
                   'copy': lambda name: ('copy_range', source, name, 3)}
        for (what, change), mode in itertools.product(changes.items(), (0o6777, 0o4767, 0o2777)):
            for who, wanted in ((self.root, mode), (self.ann, mode & 0o777)):
                with self.subTest(what, mode=oct(mode), who=who is self.root):
                    name = self.fresh('file', mode=mode)
                    self.expect((mode, mode), self.root, 'status', name, 'mode', 'mode')
                    self.expect(None, who, *change(name))
                    # The mode alone first: with other attributes the kernel would refresh what it knows to be stale.
                    self.expect(wanted, self.root, 'mode', name)
                    self.expect(wanted, self.root, 'status', name, 'mode')

    def test_set_id_bits_go_with_a_chown_to_nobody_else(self):
        for who, (mode, wanted) in itertools.product((self.root, self.ann), (
                (0o6777, 0o777), (0o4644, 0o644), (0o2777, 0o777), (0o2767, 0o2767), (0o755, 0o755))):
            with self.subTest(oct(mode), who=who is self.root):
                name = self.fresh('file')
                self.root('chown', name, ANN, ANN)
                self.root('chmod', name, mode)
                self.updates({name: 'c'}, 'chown', name, -1, -1, who=who)
                self.expect((wanted, ANN, ANN), self.root, 'status', name, 'mode', 'uid', 'gid')
                directory = self.directory(0o755)
                self.root('chown', directory, ANN, ANN)
                self.root('chmod', directory, mode)
                self.updates({directory: 'c'}, 'chown', directory, -1, -1, who=who)
                self.expect((mode, ANN, ANN), self.root, 'status', directory, 'mode', 'uid', 'gid')

    def test_reading_and_writing_by_permission(self):
        for kind, (mode, read, write) in itertools.product(
                ('file', 'dir'), ((0o600, True, True), (0o400, True, False), (0o200, False, True), (0, False, False),
                                  (0o066, False, False))):
            name = self.fresh(kind)
            self.root('chown', name, ANN, ANN)
            self.root('chmod', name, mode)
            self.expect(None if read else 'EACCES', self.ann, 'open_close', name, os.O_RDONLY)
            if kind == 'file':
                self.expect(None if write else 'EACCES', self.ann, 'open_close', name, os.O_WRONLY)
                self.expect(None if read and write else 'EACCES', self.ann, 'open_close', name, os.O_RDWR)
                self.expect(None if write else 'EACCES', self.ann, 'open_close', name, os.O_WRONLY | os.O_TRUNC)
                self.expect(None if write else 'EACCES', self.ann, 'truncate', name, 5)
            else:
                self.expect('EISDIR', self.root, 'open_close', name, os.O_WRONLY)
                self.expect('EISDIR', self.root, 'open_close', name, os.O_RDWR)
                self.expect('EISDIR', self.root, 'open_close', name, os.O_RDONLY | os.O_TRUNC)
                self.expect('EISDIR', self.root, 'truncate', name, 0)
        group = self.fresh('file')
        self.root('chown', group, BOB, ANN)
        self.root('chmod', group, 0o040)
        self.expect(None, self.ann, 'open_close', group, os.O_RDONLY)
        self.expect('EACCES', self.bob, 'open_close', group, os.O_RDONLY)
        self.expect('EACCES', self.ann, 'open_close', group, os.O_RDONLY | os.O_TRUNC)

    # Opening.

    def test_open(self):
        name = self.fresh()
        above = self.directory(0o755)
        self.updates({above: 'mc'}, 'open_close', f'{above}/made', os.O_CREAT | os.O_WRONLY, 0o640)
        self.expect(0o640, self.root, 'status', f'{above}/made', 'mode')
        self.updates({above: '', f'{above}/made': ''}, 'open_close', f'{above}/made', os.O_CREAT | os.O_WRONLY)
        self.root('write', f'{above}/made', b'bytes')
        self.updates({above: '', f'{above}/made': 'mc'}, 'open_close', f'{above}/made', os.O_WRONLY | os.O_TRUNC)
        self.expect(0, self.root, 'status', f'{above}/made', 'size')
        self.expect('ENOENT', self.root, 'open_close', name, os.O_WRONLY)
        self.expect('ENOTDIR', self.root, 'open_close', f'{above}/made', os.O_DIRECTORY)
        self.expect(None, self.root, 'open_close', above, os.O_DIRECTORY)
        link = self.fresh()
        self.root('symlink', f'{above}/made', link)
        self.expect('EEXIST', self.root, 'open_close', link, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        self.expect('ELOOP', self.root, 'open_close', link, os.O_WRONLY | os.O_NOFOLLOW)
        dangling = self.fresh()
        self.root('symlink', name, dangling)
        self.expect(None, self.root, 'open_close', dangling, os.O_CREAT | os.O_WRONLY)
        self.expect('file', self.root, 'status', name, 'kind')
        # A mode without write permission does not restrict the creator.
        fd = os.open(self.work / 'read-only', os.O_CREAT | os.O_WRONLY, 0o400)
        self.assertEqual(os.write(fd, b'written'), 7)
        os.close(fd)
        self.expect('ENXIO', self.root, 'open_close', self.fresh('fifo'), os.O_WRONLY | os.O_NONBLOCK)
        self.expect('ENXIO', self.root, 'open_close', self.fresh('socket'), os.O_RDWR)
        if 'PLAYFS_POSIX_DIRECTORY' not in os.environ:  # devices are inert
            self.expect('EACCES', self.root, 'open_close', self.fresh('char'), os.O_RDWR)

    def test_programs_that_run_are_not_written(self):
        program = self.work / 'sleep'
        shutil.copy(shutil.which('sleep'), program)
        program.chmod(0o755)
        running = fixture.subprocess.Popen([str(program), '60'])
        try:
            self.expect('ETXTBSY', self.root, 'open_close', 'sleep', os.O_WRONLY)
            self.expect('ETXTBSY', self.root, 'open_close', 'sleep', os.O_RDONLY | os.O_TRUNC)
            self.expect('ETXTBSY', self.root, 'truncate', 'sleep', 3)
            self.expect(None, self.root, 'unlink', 'sleep')
        finally:
            running.kill()
            running.wait()

    # Sizes.

    def test_truncate(self):
        name = self.fresh('file')
        self.root('write', name, b'0123456789')
        self.updates({name: 'mc'}, 'truncate', name, 4)
        self.updates({name: 'mc'}, 'truncate', name, 12)
        self.expect(b'0123' + bytes(8), self.root, 'read', name)
        self.expect('EINVAL', self.root, 'truncate', name, -1)
        self.updates({name: ''}, 'truncate', name, 3, who=self.ann, result='EACCES')
        for kind in FILES:
            if kind not in ('file', 'symlink'):
                self.expect('EINVAL', self.root, 'truncate', self.fresh(kind), 0)
        # The file system below may allow it: tmpfs does.
        below = self.home / 'below'
        below.touch()
        self.assertIn(self.root('truncate', name, 1 << 62),
                      ('EFBIG', 'EINVAL', self.root('truncate', str(below), 1 << 62)))
        self.expect(None, self.root, 'truncate', name, 1 << 40)
        self.expect(1 << 40, self.root, 'status', name, 'size')
        self.root('truncate', name, 0)

    def test_bytes_allocated(self):
        name = self.fresh('file')
        self.expect(None, self.root, 'fallocate', name, 0, 0, 100000)
        self.expect(100000, self.root, 'status', name, 'size')
        self.assertGreaterEqual(self.root('status', name, 'blocks') * 512, 100000)
        self.expect('EINVAL', self.root, 'fallocate', name, 0, 0, 0)
        self.expect('EINVAL', self.root, 'fallocate', name, 0, -1, 10)
        self.expect('EFBIG', self.root, 'fallocate', name, 0, (1 << 63) - 10, 20)

    # Times.

    def test_utimensat(self):
        old, older = (1_000_000_000, 123_456_789), (900_000_000, 987_654_321)
        ns = [seconds * 1_000_000_000 + rest for seconds, rest in (old, older)]
        for kind in KINDS:
            with self.subTest(kind):
                name = self.fresh(kind)
                self.root('lchown', name, ANN, ANN)
                before = self.root('status', name, 'ctime')
                time.sleep(0.005)
                self.expect(None, self.root, 'utimens', name, old, older, False)
                self.expect(tuple(ns), self.root, 'status', name, 'atime', 'mtime')
                self.assertGreater(self.root('status', name, 'ctime'), before)
                self.expect(None, self.root, 'utimens', name, actor.UTIME_OMIT, old, False)
                self.expect((ns[0], ns[0]), self.root, 'status', name, 'atime', 'mtime')
                self.expect(None, self.root, 'utimens', name, older, actor.UTIME_OMIT, False)
                self.expect((ns[1], ns[0]), self.root, 'status', name, 'atime', 'mtime')
                self.updates({name: ''}, 'utimens', name, actor.UTIME_OMIT, actor.UTIME_OMIT, False)
                # Others may not set a time nor, without write permission, set it to now.
                self.expect('EPERM', self.bob, 'utimens', name, old, older, False)
                self.expect('EPERM', self.bob, 'utimens', name, actor.UTIME_NOW, actor.UTIME_OMIT, False)
                self.expect(None, self.ann, 'utimens', name, old, actor.UTIME_NOW, False)
                self.assertGreater(self.root('status', name, 'mtime'), before)
                if kind == 'symlink':
                    continue
                self.root('chmod', name, 0o644)
                self.expect('EACCES', self.bob, 'utimens', name, None, None)
                self.expect('EACCES', self.bob, 'utimens', name, actor.UTIME_NOW, actor.UTIME_NOW)
                self.root('chmod', name, 0o666)
                self.expect(None, self.bob, 'utimens', name, None, None)
                self.expect('EPERM', self.bob, 'utimens', name, old, older)
        name = self.fresh('file')
        for seconds in (0, -1, -2_000_000_000, 2_147_483_648, 4_294_967_296):
            self.expect(None, self.root, 'utimens', name, (seconds, 5), (seconds, 7))
            self.expect((seconds * 1_000_000_000 + 5, seconds * 1_000_000_000 + 7), self.root, 'status', name, 'atime',
                        'mtime')
        self.expect('EINVAL', self.root, 'utimens', name, (0, 1_000_000_000), old)
        if 'PLAYFS_POSIX_DIRECTORY' not in os.environ:  # a time out of range becomes the last representable one
            self.expect(None, self.root, 'utimens', name, (1 << 40, 0), (-(1 << 40), 0))
            self.assertEqual([self.root('status', name, what) // 10**18 for what in ('atime', 'mtime')], [9, -10])

    # Read-only trees.

    def test_published_trees_refuse_everything(self):
        if 'PLAYFS_POSIX_DIRECTORY' in os.environ:
            self.skipTest('of playfs')
        (self.work / 'file').write_text('text')
        (self.work / 'dir').mkdir()
        (self.work / 'dir/in').write_text('text')
        (self.work / 'link').symlink_to('file')
        self.assertEqual(self.commit(self.work, 'Base')[0], 'published')
        head = self.actor(0)
        head_path = str(self.mounted.project('p') / 'head') + '/'
        for call in (('create', 'new'), ('mkdir', 'new'), ('mkfifo', 'new'), ('make', 'char', 'new'), ('bind', 'new'),
                     ('symlink', 'x', 'new'), ('unlink', 'file'), ('rmdir', 'dir'), ('chmod', 'file', 0o777),
                     ('chown', 'file', 1, 1), ('lchown', 'link', 1, 1), ('truncate', 'file', 0),
                     ('utimens', 'file', (1, 1), (1, 1)), ('rename', 'file', 'dir/x'), ('link', 'file', 'new'),
                     ('open_close', 'file', os.O_WRONLY | os.O_TRUNC)):
            paths = [head_path + word if isinstance(word, str) and word != 'char' else word for word in call[1:]]
            if call[0] == 'make':
                paths = ['char', head_path + 'new']
            self.expect('EROFS', head, call[0], *paths)
        for call, wanted in (('link', 'EROFS'), ('rename', 'EXDEV')):  # then mv tries to copy
            self.expect(wanted, head, call, str(self.work / 'file'), head_path + 'new')


if __name__ == '__main__':
    fixture.main()
