"""File contents of the soak: records that say which file they belong to and which change wrote them, so that a reader,
through any mount, recognises every wrong byte without asking the writer.

A file's name is KIND-KEY. A `whole` has one record, as it is always replaced; a `log` has records that were appended
one by one; the `slots` are overwritten in place, one at a time. Files that begin with `tmp` may contain anything. A log
may end within a record at the end of a page: the kernel splits a write(2) there, and a commit may come between the
parts.


"""
import hashlib
import os

SLOT = PAGE = 4096  # bytes
SLOTS = 8


def record(key, change, size):
    """`size` is that of the body, in bytes."""
    body = hashlib.shake_128(f'{key} {change}'.encode()).hexdigest(size // 2 + 1)[:size]
    return f'{key} {change} {size}\n{body}\n'.encode()


def slot(key, place, change):
    """A record of exactly SLOT bytes."""
    head = len(record(f'{key}.{place}', change, 1000)) - 1000
    return record(f'{key}.{place}', change, SLOT - head)


class EndsEarly(ValueError):
    """The data is right as far as it goes."""


def first_record(key, data):
    """The record's change, and the data after it. Raises ValueError if it does not belong to this file."""
    line, end, _ = data.partition(b'\n')
    if not end:
        raise EndsEarly(f'{line[:80]} is all there is')
    name, change, size = line.decode('utf-8', 'replace').rsplit(' ', 2)
    whole = record(key, int(change), int(size))
    if name != key:
        raise ValueError(f'{line[:80]} begins no record of {key}')
    if not data.startswith(whole):
        if whole.startswith(data):
            raise EndsEarly(f'{line[:80]} has {len(data)} of {len(whole)} bytes')
        at = len(os.path.commonprefix([whole, data]))
        raise ValueError(f'{line[:80]} is right for {at} of {len(whole)} bytes, then {data[at:at + 40]}, {len(data)} in all')
    return int(change), data[len(whole):]


def changes(name, data):
    """The changes that a file's records are of, in order. Raises ValueError if this could never be its content."""
    kind, _, key = name.partition('-')
    found, size = [], len(data)
    while data:
        try:
            change, data = first_record(f'{key}.{len(found)}' if kind == 'slots' else key, data)
        except EndsEarly:
            if kind != 'log' or size % PAGE:
                raise
            break
        found.append(change)
    wanted = {'whole': 1, 'slots': SLOTS}.get(kind, len(found))
    if len(found) != wanted:
        raise ValueError(f'{name} has {len(found)} records')
    if kind == 'log' and found != list(range(found[0], found[0] + len(found)) if found else []):
        raise ValueError(f'{name} lacks an append: {found[:20]}')
    return found
