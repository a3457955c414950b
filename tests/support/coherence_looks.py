"""Reads of a mount, made by an Actor: one that hangs is a process that can be waited for and killed.

A tree is {path: (kind, mode, size, bytes)}, or {path: errno} for what could not be read. Errors are errno names.
"""
import errno
import mmap
import os
import stat

import actor

KINDS = {stat.S_IFREG: 'file', stat.S_IFDIR: 'dir', stat.S_IFLNK: 'link'}


def directory(path):
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def tree(path):
    """Everything below one directory that is held open, hence of one revision."""
    fd = directory(path)
    try:
        return dict(walk(fd, ''))
    finally:
        os.close(fd)


def walk(fd, above):
    for name in os.listdir(fd):
        try:
            found = entry(fd, name)
        except OSError as problem:
            yield above + name, errno.errorcode[problem.errno]
            continue
        yield above + name, found
        if found[0] == 'dir':
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            except OSError as problem:
                yield above + name, errno.errorcode[problem.errno]
                continue
            try:
                yield from walk(below, above + name + '/')
            except OSError as problem:
                yield above + name, errno.errorcode[problem.errno]
            finally:
                os.close(below)


def entry(fd, name):
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    kind = KINDS[stat.S_IFMT(found.st_mode)]
    mode = stat.S_IMODE(found.st_mode)
    if kind == 'dir':
        return kind, mode, 0, b''
    if kind == 'link':
        return kind, mode, found.st_size, os.fsencode(os.readlink(name, dir_fd=fd))
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
    try:
        size = os.fstat(file).st_size  # of the file that is read, which may be newer than the stat above
        data = b''
        while more := os.pread(file, 3000, len(data)):
            data += more
        return kind, stat.S_IMODE(os.fstat(file).st_mode), size, data
    finally:
        os.close(file)


def links(path):
    return {name: os.readlink(os.path.join(path, name)) for name in os.listdir(path)}


def survey(looks):
    """Several reads at once: {key: (call, path)}."""
    answers = {}
    for key, (call, path) in looks.items():
        try:
            answers[key] = actor.CALLS[call](path)
        except OSError as problem:
            answers[key] = errno.errorcode[problem.errno]
    return answers


def scribble(path):
    """Stores into a mapping of a read-only file."""
    with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:3] = b'XXX'
        mapped.flush()


def make(path, text):
    """Writes a request to a control file; the answer."""
    with open(path, 'r+', encoding='utf-8') as file:
        file.write(text)
    with open(path, encoding='utf-8') as file:
        return file.read()


actor.CALLS.update({'tree': tree, 'links': links, 'survey': survey, 'scribble': scribble, 'ask': make})
