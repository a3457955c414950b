"""What a look may have seen: a text for the first thing that it may not, None where all is right.

A tree that was seen is what coherence_looks.tree() answers; where it, or something in it, is a text, that is an errno.
"""
MODES = {'file': 0o644, 'program': 0o755, 'link': 0o777}
RACED = ('ENOENT', 'ESTALE', 'ENOTDIR', 'ELOOP')  # of what is gone by now, or has become another kind


def as_seen(files):
    """A set of published files as a look finds it."""
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
    """Whether a directory above could not be looked into, or is not there itself."""
    while path := path.rpartition('/')[0]:
        if not isinstance(seen.get(path), tuple):
            return True
    return False


def differs(wanted, seen, errors_are_lawful=False):
    """From one tree as a whole."""
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
    """From each of several trees, as a whole."""
    told = [differs(tree, seen, errors_are_lawful) for tree in trees]
    return None if None in told else f'is none of {len(trees)} revisions: ' + '; '.join(told)


def is_no_mixture_of(trees, seen, errors_are_lawful=False):
    """Each name and each file is to be one of a tree, while one becomes the next."""
    if isinstance(seen, str):
        return None if errors_are_lawful else seen
    for path in sorted(seen.keys() | set.intersection(*(set(tree) for tree in trees))):
        got, may = seen.get(path), [tree.get(path) for tree in trees]
        lawful = got in may or hidden(path, seen) or (got in RACED and len(trees) > 1)
        if not lawful and not (errors_are_lawful and isinstance(got, str)):
            return f'{path}: {short(got)} is none of {"; ".join(short(each) for each in may)}'
    return None
