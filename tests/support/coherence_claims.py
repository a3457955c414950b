"""Checks of what a mount showed: a text that names the first violation, or None.

A seen tree is the result of coherence_looks.tree(); if it, or an entry in it, is a text, that is an errno.
"""
MODES = {'file': 0o644, 'program': 0o755, 'link': 0o777}
RACED = ('ENOENT', 'ESTALE', 'ENOTDIR', 'ELOOP')  # for names removed or replaced by another kind meanwhile


def as_seen(files):
    """Published files as tree() would show them."""
    found = {}
    for path, (word, data) in files.items():
        for at, letter in enumerate(path):
            if letter == '/':
                found[path[:at]] = 'dir', 0o755, 0, b''
        found[path] = 'link' if word == 'link' else 'file', MODES[word], len(data), data
    return found


def short(found):
    if isinstance(found, tuple):
        kind, mode, size, data = found
        return f'{kind} {mode:o} of {size}: {len(data)} bytes {data[:12]!r}…{data[-12:]!r}'
    return repr(found)


def hidden(path, seen):
    """Whether a directory above is unreadable or missing."""
    while path := path.rpartition('/')[0]:
        if not isinstance(seen.get(path), tuple):
            return True
    return False


def differs(wanted, seen, errors_are_lawful=False):
    """The first difference from one complete tree."""
    if isinstance(seen, str):
        return None if errors_are_lawful else f'{seen} instead of {len(wanted)} names'
    for path in sorted(wanted.keys() | seen.keys()):
        got = seen.get(path)
        if got == wanted.get(path) or hidden(path, seen):
            continue
        if not (errors_are_lawful and isinstance(got, str) and path in wanted):
            return f'{path}: wanted {short(wanted.get(path))}, got {short(got)}'
    return None


def is_none_of(trees, seen, errors_are_lawful=False):
    """None if one of several complete trees matches."""
    told = [differs(tree, seen, errors_are_lawful) for tree in trees]
    return None if None in told else f'is none of {len(trees)} revisions: ' + '; '.join(told)


def is_no_mixture_of(trees, seen, errors_are_lawful=False):
    """For a tree that changes into another: each name and file must be from one of the trees."""
    if isinstance(seen, str):
        return None if errors_are_lawful else seen
    for path in sorted(seen.keys() | set.intersection(*(set(tree) for tree in trees))):
        got, may = seen.get(path), [tree.get(path) for tree in trees]
        lawful = got in may or hidden(path, seen) or (got in RACED and len(trees) > 1)
        if not lawful and not (errors_are_lawful and isinstance(got, str)):
            return f'{path}: {short(got)} is none of {"; ".join(short(each) for each in may)}'
    return None
