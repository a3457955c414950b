"""Compares the tree in a mount with a model's; raises the first difference."""
import json
import os
import stat

KINDS = {stat.S_IFREG: 'file', stat.S_IFDIR: 'dir', stat.S_IFLNK: 'link'}


class Differs(AssertionError):
    pass


def claim(wanted, got, what):
    if wanted != got:
        shorter = [f'{len(each)} bytes: {each[:60]!r}' if isinstance(each, bytes) else each for each in (wanted, got)]
        raise Differs('%s: wanted %s, got %s' % (what, *shorter))


def check_tree(model, work):
    """Names, kinds, modes, bytes and links; and nothing changes that no call has changed."""
    numbers, links, places = {}, {}, [('', model.root), *model.walk()]
    for _, node in model.walk():
        links[id(node)] = links.get(id(node), 0) + 1
    for path, node in places:
        place = os.path.join(work, path) if path else str(work)
        found = os.lstat(place)
        claim(node.kind, KINDS.get(stat.S_IFMT(found.st_mode)), f'kind of {path!r}')
        claim(oct(node.mode), oct(stat.S_IMODE(found.st_mode)), f'mode of {path!r}')
        claim(model.links(node) if node.kind == 'dir' else links[id(node)], found.st_nlink, f'links of {path!r}')
        if node.kind != 'dir':
            claim(len(node.data), found.st_size, f'size of {path!r}')
            claim(node.data, content(place, node.kind), f'bytes of {path!r}')
        see(node, found, path)
        if numbers.setdefault(found.st_ino, node) is not node:
            raise Differs(f'{path!r} has the number of another')
    for path, node in places:  # last: a listing refreshes attributes that should not have been stale
        if node.kind == 'dir':
            claim(sorted(node.children), sorted(os.listdir(f'{work}/{path}')), f'names in {path!r}')


def content(place, kind):
    if kind == 'link':
        return os.fsencode(os.readlink(place))
    with open(place, 'rb') as file:
        return file.read()


def see(node, found, path):
    """Records unknown values; known ones must be the same."""
    for name, value in (('atime', found.st_atime_ns), ('mtime', found.st_mtime_ns), ('ctime', found.st_ctime_ns),
                        ('ino', found.st_ino)):
        known = getattr(node, name)
        if known is None:
            if node.passed.pop(name, None) == value:
                raise Differs(f'{name} of {path!r} did not change')
            setattr(node, name, value)
        else:
            claim(known, value, f'{name} of {path!r}')


def check_handles(model, actors):
    for (who, slot), node in model.handles.items():
        data, links = actors[who]('read_slot', slot)
        claim(node.data, data, f'bytes of the open file {who}.{slot}')
        claim(model.links(node), links, f'links of the open file {who}.{slot}')


def check_staged(model, project):
    """What a commit would publish, and what is published."""
    status = json.loads((project / 'status.json').read_text())
    claim(sorted(model.changes()), sorted(each['path'] for each in status['staged']), 'what is staged')
    head, seen = project / 'head', {}
    for folder, _, files in os.walk(head) if model.base else ():
        for name in files:
            place = os.path.join(folder, name)
            mode = os.lstat(place).st_mode
            word = 'link' if stat.S_ISLNK(mode) else 'program' if mode & 0o100 else 'file'
            seen[os.path.relpath(place, head)] = word, content(place, KINDS[stat.S_IFMT(mode)])
    for path in sorted(model.base.keys() | seen.keys()):
        claim(model.base.get(path), seen.get(path), f'head/{path}')
