"""What becomes of a model's tree when its base changes or its staged changes are dropped.

The rule for both: some paths take the meaning that a set of published files gives them, and everything else stays as it
is, with its times, numbers, modes and links.
"""
import random

from model import Node

ALL_TIMES = 'amc'  # a directory without local changes has the times of the revision's content
MODES = {'file': 0o644, 'program': 0o755, 'link': 0o777}


def merged(base, changes):
    """A set of files with some replaced, added, or (word None) deleted; whatever blocks an addition is removed."""
    files = dict(base)
    for path, word, size, seed in changes:
        if word is None:
            files.pop(path, None)
            continue
        for other in list(files):
            if other.startswith(path + '/') or path.startswith(other + '/'):
                del files[other]
        files[path] = word, b'elsewhere' if word == 'link' else text_of(seed, size)
    return files


def text_of(seed, size):
    return ''.join(random.Random(seed).choices('abcdefgh \n', k=size)).encode()


def commit(model):
    """Nothing visible changes."""
    model.base = model.meanings()


def discard(model):
    follow(model, model.changes(), model.base)


def update(model, files):
    """A new base under a clean tree."""
    paths = {path for path in files.keys() | model.base.keys() if files.get(path) != model.base.get(path)}
    follow(model, paths, files)
    model.base = files


def follow(model, paths, files):
    directories = {path[:at] for path in files for at, letter in enumerate(path) if letter == '/'}
    alone = {node for _, node in model.walk() if model.links(node) == 1}  # files with one name, before any removal
    lost = set()  # directories that lost a name
    named = {node for _, node in model.walk()}
    for path in sorted(paths - files.keys()):
        take_away(model, path).forget('c')
        lost.add(path.rpartition('/')[0])
    for path in sorted(paths & files.keys()):
        put(model, path, files[path], alone)
    # Directories that are empty now and exist only locally go with their last name.
    for path in sorted(lost, key=lambda each: -each.count('/')):
        while path and path not in directories:
            node = dict(model.walk()).get(path)
            if node is None or node.kind != 'dir' or node.children:
                break
            take_away(model, path)
            path = path.rpartition('/')[0]
    # Not removed by a user: writes to those that are open would be lost, so they are refused.
    for node in named - {node for _, node in model.walk()}:
        node.superseded = True


def take_away(model, path):
    gone = model.drop(path)
    model.parent(path)[0].forget(ALL_TIMES)
    return gone


def put(model, path, meaning, alone):
    """Puts a file as published: in place of another it keeps that one's number and the permissions of others."""
    node = model.root
    for name in path.split('/')[:-1]:
        below = node.children.get(name)
        if below is None:
            node.forget(ALL_TIMES)
            below = node.children[name] = Node('dir', 0o755)
        node = below
    name = path.rpartition('/')[2]
    word, data = meaning
    fresh = Node('link' if word == 'link' else 'file', MODES[word], data)
    old = node.children.get(name)
    if old and old.kind != 'dir':
        if old in alone:
            fresh.ino = old.ino
            if old.kind == fresh.kind == 'file':
                fresh.mode = old.mode & ~0o111
                if word == 'program':
                    fresh.mode |= (old.mode & 0o444) >> 2 | 0o100
        old.forget('c')
    node.children[name] = fresh
    node.forget(ALL_TIMES)
