"""The work tree as a few objects in memory: the expected result of any sequence of calls.

Each call returns None or the name of the errno, as an Actor does. A time or number that a call may have changed is None
until it is seen (model_check.py) and must then stay the same: across commits, remounts and crashes. model_follow.py
models commits, discards and revisions of others.
"""
import random

NOREPLACE, EXCHANGE = 1, 2


def bytes_of(seed, size):
    return random.Random(seed).randbytes(size)


class Refused(Exception):
    pass


class Node:
    """An inode: a file ('file', 'link') or a directory ('dir')."""

    def __init__(self, kind, mode, data=b''):
        self.kind, self.mode, self.data = kind, mode, data
        self.children = {}
        self.atime = self.mtime = self.ctime = self.ino = None
        self.passed = {}  # times that it can no longer have
        self.superseded = False  # another base or a discard took its last name: it may not change any more

    def touch(self, what='mc'):
        """A call has updated these times."""
        for name in (letter + 'time' for letter in what):
            self.passed[name] = getattr(self, name) or self.passed.get(name)
            setattr(self, name, None)

    def forget(self, what):
        """These times may have changed."""
        for name in (letter + 'time' for letter in what):
            self.passed.pop(name, None)
            setattr(self, name, None)

    @property
    def meaning(self):
        """What a commit publishes of it."""
        if self.kind == 'link':
            return 'link', self.data
        return 'program' if self.mode & 0o100 else 'file', self.data


class Model:
    def __init__(self):
        self.root = Node('dir', 0o755)
        self.base = {}     # path: (word, bytes), as published
        self.handles = {}  # (who, slot): node

    # Reading.

    def walk(self, node=None, above=''):
        """Every path below with its node, directories before their content."""
        for name, child in sorted((node or self.root).children.items()):
            yield above + name, child
            if child.kind == 'dir':
                yield from self.walk(child, above + name + '/')

    def links(self, node):
        if node.kind == 'dir':
            return 2 + sum(child.kind == 'dir' for child in node.children.values())
        return sum(each is node for _, each in self.walk())

    def meanings(self):
        return {path: node.meaning for path, node in self.walk() if node.kind != 'dir'}

    def changes(self):
        """The paths that a commit would publish."""
        now = self.meanings()
        return {path for path in now.keys() | self.base.keys() if now.get(path) != self.base.get(path)}

    def find(self, path):
        """A node, or None if the last component is missing. Links are never followed."""
        parent, name = self.parent(path)
        return parent.children.get(name)

    def parent(self, path):
        node, *names = self.root, *path.split('/')
        for name in names[:-1]:
            node = node.children.get(name)
            if node is None or node.kind == 'link':
                raise Refused('ENOENT')
            if node.kind != 'dir':
                raise Refused('ENOTDIR')
        return node, names[-1]

    def existing(self, path):
        node = self.find(path)
        if node is None:
            raise Refused('ENOENT')
        return node

    def file(self, path):
        node = self.existing(path)
        if node.kind != 'file':
            raise Refused('EISDIR' if node.kind == 'dir' else 'ENOENT')
        return node

    def handle(self, who, slot):
        if (who, slot) not in self.handles:
            raise Refused('EBADF')
        return self.handles[who, slot]

    def changeable(self, who, slot):
        node = self.handle(who, slot)
        if node.superseded:
            raise Refused('ESTALE')
        return node

    # Changing.

    def call(self, name, *words):
        """The result of a system call."""
        try:
            return getattr(self, 'call_' + name)(*words)
        except Refused as refusal:
            return str(refusal)

    def make(self, path, node):
        parent, name = self.parent(path)
        if name in parent.children:
            raise Refused('EEXIST')
        parent.children[name] = node
        parent.touch()

    def call_create(self, _, path, mode):
        self.make(path, Node('file', mode))

    def call_mkdir(self, _, path, mode):
        self.make(path, Node('dir', mode))

    def call_symlink(self, _, path, target):
        self.make(path, Node('link', 0o777, target.encode()))

    def call_link(self, _, old, new):
        node = self.existing(old)
        parent, name = self.parent(new)
        if name in parent.children:
            raise Refused('EEXIST')
        if node.kind == 'dir':
            raise Refused('EPERM')
        self.make(new, node)
        node.touch('c')

    def call_unlink(self, _, path):
        node = self.existing(path)
        if node.kind == 'dir':
            raise Refused('EISDIR')
        self.drop(path)
        node.touch('c')

    def call_rmdir(self, _, path):
        node = self.existing(path)
        if node.kind != 'dir':
            raise Refused('ENOTDIR')
        if node.children:
            raise Refused('ENOTEMPTY')
        self.drop(path)

    def drop(self, path):
        parent, name = self.parent(path)
        parent.touch()
        return parent.children.pop(name)

    def call_rename(self, _, old, new, flags):
        (source, name), (into, new_name) = self.parent(old), self.parent(new)
        node, other = source.children.get(name), into.children.get(new_name)
        if node is None or (flags == EXCHANGE and other is None):
            raise Refused('ENOENT')
        if flags == NOREPLACE and other:
            raise Refused('EEXIST')
        if node.kind == 'dir' and new.startswith(old + '/'):
            raise Refused('EINVAL')
        if other and other.kind == 'dir' and old.startswith(new + '/'):
            raise Refused('EINVAL' if flags == EXCHANGE else 'ENOTEMPTY')
        if node is other:
            return
        if other and flags != EXCHANGE:
            if (node.kind == 'dir') != (other.kind == 'dir'):
                raise Refused('ENOTDIR' if node.kind == 'dir' else 'EISDIR')
            if other.children:
                raise Refused('ENOTEMPTY')
        del source.children[name]
        into.children[new_name] = node
        if flags == EXCHANGE:
            source.children[name] = other
        for each in (source, into):
            each.touch()
        for each in (node, other):
            if each:
                each.touch('c')

    def call_chmod(self, _, path, mode):
        node = self.existing(path)
        if node.kind == 'link':
            raise Refused('ENOENT')
        node.mode = mode
        node.touch('c')

    def call_utimens(self, _, path, atime, mtime):
        """In nanoseconds; of a link, the link itself."""
        node = self.existing(path)
        node.atime, node.mtime = atime, mtime
        node.touch('c')

    def call_write(self, _, path, offset, size, seed):
        self.put(self.file(path), offset, bytes_of(seed, size))

    def call_truncate(self, _, path, size):
        self.resize(self.file(path), size)

    def put(self, node, offset, data):
        node.data = node.data[:offset].ljust(offset, b'\0') + data + node.data[offset + len(data):]
        node.touch()

    def resize(self, node, size):
        node.data = node.data[:size].ljust(size, b'\0')
        node.touch()

    # Open files, which outlive their names.

    def call_open_slot(self, who, slot, path):
        self.handles.pop((who, slot), None)
        self.handles[who, slot] = self.file(path)

    def call_close_slot(self, who, slot):
        self.handle(who, slot)
        del self.handles[who, slot]

    def call_write_slot(self, who, slot, offset, size, seed):
        self.put(self.changeable(who, slot), offset, bytes_of(seed, size))

    def call_truncate_slot(self, who, slot, size):
        self.resize(self.changeable(who, slot), size)
