"""What files of the soak consist of: records that say of which file they are and which change wrote them, so that whoever
reads one, through any mount, knows every wrong byte without asking who wrote it.

A file's name is KIND-KEY. A `whole` has one record, for it is always replaced; a `log` has records that were appended one
by one; of `slots` each is overwritten in place. What begins with `tmp` may be anything. A log may end within a record at the
end of a page: the kernel hands on a write(2) in such parts, and a commit may come between them.
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
    """All that is there of a record is right."""


def first_record(key, data):
    """Its change and what is behind it. Raises ValueError where it is not one of this file."""
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
    """Those that the records of a file are of, in their order. Raises ValueError where it could never be its content."""
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
