"""Steps that a model and a mount take together.

A step (trial.py) is a system call by one of three processes, a publication by another client, a commit, a discard, a
remount, a crash, or a check of everything.
"""
import fcntl
import hashlib
import os
import struct

import actor
import model_check
import model_follow
import projects
from model import Model, bytes_of

MODES = {'file': {}, 'program': {'m': '100755'}, 'link': {'m': '120000'}}
COMMIT, DISCARD, UPDATE = (0x70, 6288), (0x72, 5688), (0x73, 1800)  # the ioctls of <playfs/ioctl.h>, with their sizes
PUBLISHED, NOTHING = 1, 5


def control(path, number, size, text=b''):
    """The struct after a version 1 ioctl; `text` is a commit's message, which follows the agent."""
    request = bytearray(size)
    struct.pack_into('II', request, 0, size, 1)
    request[144:144 + len(text)] = text
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, 3 << 30 | size << 16 | ord('P') << 8 | number, request)
    finally:
        os.close(fd)
    return request


class Run:
    """A project and a mount of its own."""

    def __init__(self, case, api, name):
        self.case, self.api, self.name, self.model = case, api, name, Model()
        self.project_id = api.create('projects', name=name)['id']
        self.revisions = 0
        self.actors = [actor.Actor('/') for _ in range(3)]
        self.mount_anew()

    def mount_anew(self, at=None):
        self.mount = self.case.mount(self.api.origin, who=self.name, options=('refresh=3600',), at=at)
        self.project = self.mount.directory / 'projects' / self.project_id
        self.work = str(self.project / 'work')

    def end(self):
        for each in reversed(self.actors):  # a later one holds the sockets of earlier ones
            each.end()
        self.mount.end()

    def take(self, step):
        """Raises model_check.Differs if the mount differs from the model."""
        name, *words = step
        if hasattr(self, 'do_' + name):
            getattr(self, 'do_' + name)(*words)
            return
        wanted = self.model.call(name, *words)
        model_check.claim(wanted, self.call(name, *words), repr(step))

    def call(self, name, who, *words):
        """The same call in the mount, by one of the processes."""
        ask = self.actors[who]
        at = lambda path: f'{self.work}/{path}'
        if name.endswith('_slot'):
            slot, *rest = words
            if name == 'open_slot':
                return ask(name, slot, at(*rest))
            if name == 'write_slot':
                return ask(name, slot, bytes_of(rest[2], rest[1]), rest[0])
            return ask(name, slot, *rest)
        if name == 'write':
            path, offset, size, seed = words
            return ask('write', at(path), bytes_of(seed, size), offset)
        if name == 'symlink':
            return ask('symlink', words[1], at(words[0]))
        if name == 'rename':
            return ask('rename2', at(words[0]), at(words[1]), words[2])
        if name == 'utimens':
            return ask('utimens', at(words[0]), *(divmod(each, 1_000_000_000) for each in words[1:]), False)
        if name == 'link':
            return ask('link', at(words[0]), at(words[1]))
        return ask(name, at(words[0]), *words[1:])

    # Steps other than system calls.

    def do_check(self):
        model_check.check_tree(self.model, self.work)
        model_check.check_handles(self.model, self.actors)
        model_check.check_staged(self.model, self.project)

    def do_commit(self):
        wanted = PUBLISHED if self.model.changes() else NOTHING
        answer = control(self.work, *COMMIT, b'a step')
        model_check.claim(wanted, struct.unpack_from('I', answer, 4240)[0], 'outcome of the commit')
        model_follow.commit(self.model)

    def do_discard(self):
        control(self.work, *DISCARD)
        model_follow.discard(self.model)

    def do_remount(self):
        self.close_all()
        self.mount.unmount()
        self.mount_anew(self.mount.directory)

    def do_kill(self):
        self.mount.kill()
        self.close_all()
        self.mount_anew(self.mount.directory)

    def close_all(self):
        for each in self.actors:
            each('close_slots')
        self.model.handles.clear()

    def do_publish(self, where, changes):
        """Another client publishes, while the mount exists or not; an update follows if nothing is staged."""
        if self.model.changes():
            return
        files = model_follow.merged(self.model.base, changes)
        if where == 'away':
            self.close_all()
            self.mount.unmount()
        is_published = self.publish(files)
        if where == 'away':
            self.mount_anew(self.mount.directory)
        control(self.work, *UPDATE)
        if is_published:
            model_follow.update(self.model, files)

    def publish(self, files):
        """Whether it was published: in a long run the manifest may outgrow a record."""
        head = self.api.get('projects', self.project_id).get('latest_revision')
        before = self.api.get('revisions', head)['manifest']['files'] if head else {}
        entries = {path: before[path] if self.model.base.get(path) == meaning else self.entry(path, *meaning)
                   for path, meaning in files.items()}
        self.revisions += 1
        status, answer = self.api.request('POST', '/revisions', {
            'project': self.project_id, 'parents': [head] if head else [], 'agent': 'x', 'message': 'of others', 'state': {},
            'manifest': {'tx': f'{self.revisions:032x}', 'files': entries}})
        if answer.get('code') == 'record_too_large':
            return False
        model_check.claim(200, status, 'status of the revision')
        self.api.call('PATCH', f'/projects/{self.project_id}', {'latest_revision': answer['record']['id']})
        return True

    def entry(self, path, word, data):
        digest = hashlib.sha256(data).hexdigest()
        return {'h': digest, 's': len(data), 'c': projects.store(self.api, path, data.decode(), digest), **MODES[word]}
