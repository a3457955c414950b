"""What somebody does in a mount, as calls of an actor's process (tests/support/actor.py): one that hangs is seen, and
can be killed. Each returns what happened, errors included, so that no failure is lost."""
import errno
import json
import os
import time

FOLLOWED = 4  # descriptors of one name: the newest, and files that it has replaced


def name_of(problem):
    return errno.errorcode.get(problem.errno, str(problem))


def post(path, text, pieces=1, is_read=False):
    """Writes a request as a shell does, in some write(2)s, and may read the outcome: whether it was opened, when it was
    closed, why that failed, and what the outcome says."""
    said = {'opened': False, 'closed': None, 'why': None, 'outcome': None}
    try:
        file = os.open(path, os.O_WRONLY | os.O_TRUNC)
        said['opened'] = True
        try:
            data, size = text.encode(), -(-len(text.encode()) // pieces)
            for begin in range(0, len(data), size):
                os.write(file, data[begin:begin + size])
        finally:
            os.close(file)
        said['closed'] = time.monotonic()
        if is_read:
            with open(path, encoding='utf-8') as document:
                said['outcome'] = json.load(document)
    except (OSError, ValueError) as problem:
        said['why'] = name_of(problem) if isinstance(problem, OSError) else f'no outcome: {problem}'
    return said


def move(directory, source, target, which, count, suffix=''):
    """Renames some entries, from that number on: each one's name, and why it failed."""
    moved = []
    try:
        names = sorted(os.listdir(f'{directory}/{source}'))
    except OSError:
        return moved
    begin = which % len(names) if names else 0
    for name in names[begin:begin + count]:
        try:
            os.rename(f'{directory}/{source}/{name}', f'{directory}/{target}/{name.partition(":")[0]}{suffix}')
            moved.append((name, None))
        except OSError as problem:
            moved.append((name, name_of(problem)))
    return moved


class Followed:
    """One name as `tail -F` sees it. A descriptor's file keeps what was read of it."""

    def __init__(self):
        self.files = []  # [descriptor, what was read of it], oldest first

    def look(self, path):
        """What is wrong, if anything is. Raises OSError if it cannot be read now."""
        for each in self.files:
            descriptor, before = each
            now = os.pread(descriptor, len(before) + (1 << 20), 0)
            if not now.startswith(before):
                at = len(os.path.commonprefix([before, now]))
                return (f'{path}: read bytes changed at {at}: of {len(before)} there are {len(now)}; '
                        f'{before[max(0, at - 40):at + 80]} became {now[max(0, at - 40):at + 80]}')
            each[1] = now
        number = os.stat(path).st_ino
        if not self.files or os.fstat(self.files[-1][0]).st_ino != number:
            self.files.append([os.open(path, os.O_RDONLY), b''])
            if len(self.files) > FOLLOWED:
                os.close(self.files.pop(0)[0])
        return None

    def end(self):
        for descriptor, _ in self.files:
            try:
                os.close(descriptor)
            except OSError:
                pass  # its mount is dead
        self.files.clear()


FOLLOWING = {}


def follow(paths):
    """Reads on in these files: what is wrong, if anything is, and how many could not be read."""
    failed = 0
    for path in paths:
        try:
            if wrong := FOLLOWING.setdefault(path, Followed()).look(path):
                return wrong, failed
        except OSError:
            failed += 1
    return None, failed


def follow_no_more():
    for each in FOLLOWING.values():
        each.end()
    FOLLOWING.clear()


def followed(path):
    """What `tail -F` has read of the file that it is at now."""
    files = FOLLOWING[path].files if path in FOLLOWING else []
    return files[-1][1] if files else None


def snapshot(paths, directories):
    """Contents of files and names in directories, by path; an errno's name where there is none."""
    seen = {}
    for path in paths:
        try:
            with open(path, 'rb') as file:
                seen[path] = file.read()
        except OSError as problem:
            seen[path] = name_of(problem)
    for path in directories:
        try:
            seen[path] = sorted(os.listdir(path))
        except OSError as problem:
            seen[path] = name_of(problem)
    return seen


def letters(directory):
    """The files of a folder of a Maildir, by name."""
    try:
        found = {}
        for name in os.listdir(directory):
            with open(f'{directory}/{name}', 'rb') as file:
                size = os.fstat(file.fileno()).st_size
                found[name] = file.read()
            if size != len(found[name]):
                return f'{name} has {len(found[name])} bytes, not {size}'
        return found
    except OSError as problem:
        return name_of(problem)


CALLS = {each.__name__: each for each in (post, move, follow, follow_no_more, followed, snapshot, letters)}
