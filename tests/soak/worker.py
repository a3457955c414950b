#!/usr/bin/env python3
"""One user of one mount during a soak: works in a folder of its own in each project, which no other user touches, and
reads what all have published. Run by test_soak.py, with a JSON document on standard input:

{"name", "seed", "projects": [directories], "stop": a file that ends it, "log": lines of JSON, "command": [playfs],
"users", "uid": the user to become, who may not publish, or null}

Each line of the log is an observation: `wrong` is a violated claim, `refused` an operation that failed, `slow` one that
took longer than SLOW. The last line has the expected content of the folders, and the durations of operations.


"""
import errno
import json
import mmap
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import contents

SLOW = 1.0         # seconds
FILES = 6          # of each kind, in each project
BRANCHED = 3  # exit code of a commit whose revision stands beside head
BRANCHES_IN_A_ROW = 20
COMMAND_LIMIT = 900  # seconds: a commit backs off for up to a minute after each failure, and commits queue
LARGEST = (200, 3_000, 20_000, 150_000)


class Wrong(Exception):
    """A violated claim."""


class File:
    """One file of the worker: where it is and what it contains. None: it does not exist."""

    def __init__(self, kind, key):
        self.kind, self.name, self.key = kind, f'{kind}-{key}', key
        self.folder, self.content, self.change = None, None, 0
        self.other = None  # (folder, content) after a failed operation: either state is right

    def next_change(self):
        self.change += 1
        return self.change


class Worker:
    def __init__(self, setting):
        self.name, self.chance = setting['name'], random.Random(setting['seed'])
        self.projects = [pathlib.Path(each) for each in setting['projects']]
        self.stop, self.command, self.users = pathlib.Path(setting['stop']), setting['command'], setting['users']
        self.log = open(setting['log'], 'w', buffering=1, encoding='utf-8')
        self.files = {project: [File(kind, f'{self.name}.{number}') for kind in ('whole', 'log', 'slots')
                                for number in range(FILES)] for project in self.projects}
        self.took = {}   # seconds, by kind of operation
        self.may_publish = setting['uid'] is None
        if setting['uid'] is not None:
            os.setgroups([])
            os.setgid(setting['uid'])
            os.setuid(setting['uid'])
        self.frozen = {}  # by path below revisions: a hash of what was read

    def say(self, what, **more):
        self.log.write(json.dumps({'what': what, 'who': self.name, **more}) + '\n')

    def run(self):
        for project in self.projects:
            for number in range(3):
                (self.own(project) / f'd{number}').mkdir()
        weights = {'replace': 20, 'append': 14, 'overwrite': 10, 'empty': 2, 'move': 5, 'remove': 2, 'mode': 2,
                   'read': 14, 'map': 3, 'stat': 10, 'list': 6, 'link': 2, 'read_head': 14, 'read_revision': 5,
                   'browse': 3, 'scratch': 2, 'commit': 3, 'update': 2, 'look': 2}
        if not self.may_publish:
            weights |= {'mode': 0, 'scratch': 0, 'commit': 0, 'update': 0}
        while not self.stop.exists():
            kind = self.chance.choices(list(weights), list(weights.values()))[0]
            self.timed(kind, getattr(self, kind), self.chance.choice(self.projects))
        self.say('end', files={str(project): {f'{file.folder}/{file.name}': file.content.decode()
                                              for file in files if file.content is not None and file.other is None}
                               for project, files in self.files.items()},
                 unsure={str(project): [file.name for file in files if file.other is not None]
                         for project, files in self.files.items()}, took=self.took)

    def timed(self, kind, operation, project):
        begin = time.monotonic()
        try:
            operation(project)
        except Wrong as wrong:
            self.say('wrong', kind=kind, project=project.name, begin=begin, end=time.monotonic(), why=str(wrong))
        except OSError as refused:
            self.say('refused', kind=kind, begin=begin, end=time.monotonic(), why=str(refused))
        took = time.monotonic() - begin
        self.took.setdefault(kind, []).append(round(took, 5))
        if took > SLOW:
            self.say('slow', kind=kind, begin=begin, end=begin + took)

    # The user's own work.

    def own(self, project):
        return project / 'work' / self.name

    def one(self, project, kinds=('whole', 'log', 'slots'), is_there=True):
        files = [file for file in self.files[project]
                 if file.kind in kinds and (file.content is not None or not is_there)]
        return self.settled(project, self.chance.choice(files)) if files else None

    def place(self, project, file):
        return self.own(project) / file.folder / file.name

    def settled(self, project, file):
        """Determines which of the two states it is in after a failed operation."""
        if file.other is None:
            return file
        found = []
        for folder, content in ((file.folder, file.content), file.other):
            if folder and (self.own(project) / folder / file.name).exists():
                data = (self.own(project) / folder / file.name).read_bytes()
                if data not in (file.content, file.other[1]):
                    raise Wrong(f'{file.name}: neither what it was before a failure nor after it')
                found.append((folder, data))
        if not found and None not in (file.content, file.other[1]):
            raise Wrong(f'{file.name} is lost')
        if file.kind == 'log' and found and found[0][1] == file.content != file.other[1]:
            file.change -= 1  # the append did not happen
        file.folder, file.content = found[0] if found else (None, None)
        file.other = None
        return file

    def changed(self, file, operation, folder, content):
        """Makes a change that is visible either completely or not at all."""
        file.other = folder, content
        operation()
        file.folder, file.content, file.other = folder, content, None

    def replace(self, project):
        file = self.one(project, ('whole', 'slots'), is_there=False)
        folder = file.folder or self.chance.choice(('d0', 'd1', 'd2'))
        change = file.next_change()
        data = contents.record(file.key, change, self.chance.choice(LARGEST)) if file.kind == 'whole' else b''.join(
            contents.slot(file.key, place, change) for place in range(contents.SLOTS))
        before = self.own(project) / folder / f'tmp-{file.name}'

        def write():
            with open(before, 'wb') as out:
                out.write(data)
                if self.chance.random() < 0.2:
                    out.flush()
                    os.fsync(out.fileno())
            os.rename(before, self.own(project) / folder / file.name)

        self.changed(file, write, folder, data)

    def append(self, project):
        file = self.one(project, ('log',), is_there=False)
        if file.content is None:
            self.changed(file, (self.own(project) / 'd0' / file.name).touch, 'd0', b'')
        folder, before = file.folder, file.content
        data = contents.record(file.key, file.next_change(), self.chance.choice(LARGEST[:3]))

        def write():
            out = os.open(self.own(project) / folder / file.name, os.O_WRONLY | os.O_APPEND)
            try:
                if os.write(out, data) != len(data):
                    raise Wrong('a write of less than was given')
            finally:
                os.close(out)

        self.changed(file, write, folder, before + data)

    def overwrite(self, project):
        if not (file := self.one(project, ('slots',))):
            return
        place = self.chance.randrange(contents.SLOTS)
        data = contents.slot(file.key, place, file.next_change())
        begin = place * contents.SLOT

        def write():
            with open(self.place(project, file), 'r+b', buffering=0) as out:
                out.seek(begin)
                out.write(data)

        self.changed(file, write, file.folder, file.content[:begin] + data + file.content[begin + contents.SLOT:])

    def empty(self, project):
        if file := self.one(project, ('log',)):
            self.changed(file, lambda: os.truncate(self.place(project, file), 0), file.folder, b'')

    def move(self, project):
        if file := self.one(project):
            to = self.chance.choice(('d0', 'd1', 'd2'))
            self.changed(file, lambda: os.rename(self.place(project, file), self.own(project) / to / file.name), to,
                         file.content)

    def remove(self, project):
        if file := self.one(project):
            self.changed(file, lambda: os.unlink(self.place(project, file)), None, None)

    def mode(self, project):
        if file := self.one(project):
            mode = self.chance.choice((0o644, 0o755))
            os.chmod(self.place(project, file), mode)
            if (seen := os.stat(self.place(project, file)).st_mode & 0o777) != mode:
                raise Wrong(f'{file.name}: mode {mode:o} became {seen:o}')

    def read(self, project):
        if file := self.one(project):
            data = self.place(project, file).read_bytes()
            if data != file.content:
                raise Wrong(f'{file.folder}/{file.name}: {differ(file.content, data)}')

    def map(self, project):
        file = self.one(project)
        if file and file.content:
            with open(self.place(project, file), 'rb') as opened:
                with mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
                    if by_another(lambda: mapped[:] == file.content):
                        return
                    raise Wrong(f'{file.folder}/{file.name}, mapped: {differ(file.content, mapped[:])}')

    def stat(self, project):
        if file := self.one(project):
            size = os.stat(self.place(project, file)).st_size
            if size != len(file.content):
                raise Wrong(f'{file.folder}/{file.name}: {size} bytes, not {len(file.content)}')

    def list(self, project):
        for folder in ('d0', 'd1', 'd2'):
            seen = {name for name in os.listdir(self.own(project) / folder) if not name.startswith(('tmp', 'link'))}
            files = self.files[project]
            sure = {file.name for file in files if file.folder == folder and file.content is not None and not file.other}
            if not sure <= seen <= sure | {file.name for file in files if file.other}:
                raise Wrong(f'{folder}: {sorted(seen ^ sure)}')

    def link(self, project):
        path = self.own(project) / 'd0' / f'link-{self.chance.randrange(3)}'
        target = f'../d{self.chance.randrange(3)}/{self.chance.randrange(100)}'
        try:
            path.unlink()
        except FileNotFoundError:
            pass
        path.symlink_to(target)
        if os.readlink(path) != target:
            raise Wrong(f'{path.name} leads to {os.readlink(path)}, not {target}')

    # All users' work.

    def read_head(self, project):
        """Of one user. Head may briefly go back: two users who publish at once may both set it, and then fix that."""
        who = self.chance.choice(self.users)
        for path, data in below((project / 'head').resolve() / who):
            self.valid(path, data)

    def read_revision(self, project):
        revisions = os.listdir(project / 'revisions')
        if not revisions:
            return
        revision = self.chance.choice(revisions[:40])
        place = project / 'revisions' / revision / self.chance.choice(self.users)
        for path, data in below(place):
            self.valid(path, data)
            key, seen = str(path.relative_to(project)), hash(data)
            if self.frozen.setdefault(key, seen) != seen:
                raise Wrong(f'{key} is not what it was')
        while len(self.frozen) > 20_000:
            self.frozen.pop(next(iter(self.frozen)))

    @staticmethod
    def valid(path, data):
        try:
            return contents.changes(path.name, data)
        except ValueError as wrong:
            raise Wrong(f'{path}: {wrong}') from None

    def browse(self, project):
        for folder, _, names in os.walk((project / 'head').resolve()):
            for name in names:
                os.lstat(os.path.join(folder, name))
        (project / 'log').read_bytes()
        os.listdir(project.parent)

    def scratch(self, project):
        """Created and then given up."""
        path = self.own(project) / f'tmp-{self.chance.randrange(100)}'
        path.write_bytes(b'scratch\n' * self.chance.randrange(1, 2000))
        self.playfs('discard', path)

    def commit(self, project):
        """A mount joins twenty others' revisions an hour by itself. Beyond that a commit stays a branch, which is merged
        as the command says. Where everybody does that at the same time, it may take some turns."""
        for _ in range(BRANCHES_IN_A_ROW):
            if self.playfs('commit', project / 'work', '-m', f'by {self.name}') != BRANCHED:
                return
            time.sleep(self.chance.uniform(0, 2))
            self.update(project)
        raise Wrong('every commit became a branch, although each was merged by an update')

    def update(self, project):
        self.playfs('update', project / 'work')

    def look(self, project):
        self.playfs(*self.chance.choice((('status', '--json', project / 'work'), ('log', '-n', '20', project),
                                         ('diff', project / 'work'))))

    def playfs(self, *words):
        try:
            done = subprocess.run([*self.command, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=COMMAND_LIMIT)
        except subprocess.TimeoutExpired:
            raise Wrong(f'playfs {words[0]} has not ended after {COMMAND_LIMIT} s') from None
        if done.returncode < 0 or done.returncode == 2:
            raise Wrong(f'playfs {words[0]}: exit {done.returncode}: {done.stderr[-300:]}')
        if done.returncode == BRANCHED and 'as a branch' in done.stderr:
            return BRANCHED
        if done.returncode and 'retry later' not in done.stderr:
            raise OSError(errno.EIO, f'playfs {words[0]}: exit {done.returncode}: {done.stderr[-300:]}')
        return done.returncode


def by_another(look):
    """A check in a child process: reading a mapped page that is unavailable ends it by SIGBUS."""
    if not (child := os.fork()):
        os._exit(0 if look() else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGBUS:
        raise OSError(errno.EIO, 'a mapped page cannot be had')
    return code == 0


def below(place):
    """Files of somebody else's tree, as (path, bytes), few enough to be quick. None: nothing is published yet."""
    if not place.is_dir():
        return
    for folder, _, names in os.walk(place):
        for name in names:
            path = pathlib.Path(folder) / name
            if not name.startswith(('tmp', 'link')):
                yield path, path.read_bytes()


def differ(wanted, seen):
    at = next((n for n, (a, b) in enumerate(zip(wanted, seen)) if a != b), min(len(wanted), len(seen)))
    return f'{len(seen)} bytes, not {len(wanted)}; at {at} {seen[at:at + 40]} instead of {wanted[at:at + 40]}'


if __name__ == '__main__':
    Worker(json.load(sys.stdin)).run()
