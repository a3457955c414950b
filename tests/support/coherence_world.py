"""What the service holds, as recorded by the foreign client that changes it: trees by revision, and the history of
heads.

All times are monotonic. A change happens between the moment before its request and the moment after its answer, so a
head counts from the former on, and its predecessor until the latter.
"""
import hashlib
import itertools
import math
import time

import projects
import fixture
from model_follow import merged

MODES = {'file': {}, 'program': {'m': '100755'}, 'link': {'m': '120000'}}
INLINE = 1000  # bytes, as these manifests have room for
CHUNK = 4000   # characters


class Head:
    def __init__(self, revision, begin, alien=False):
        self.revision, self.begin, self.end, self.alien = revision, begin, math.inf, alien


class Project:
    def __init__(self, record, begin):
        self.id, self.begin = record, begin
        self.trees = {}      # revision id: {path: (word, bytes)}
        self.manifests = {}  # revision id: as it was sent
        self.parents = {}    # revision id: its parent, or None
        self.heads = [Head(None, begin)]

    @property
    def head(self):
        return self.heads[-1]

    @property
    def own_head(self):
        """The last head that was a revision of this project."""
        return next((each.revision for each in reversed(self.heads) if not each.alien), None)

    def files(self, revision):
        return self.trees[revision] if revision else {}

    def shown_between(self, begin, end):
        """What may have been shown at some moment of that time, and whether head was foreign then: in its place any
        revision that the mount has ever seen may be shown."""
        heads = [each for each in self.heads if each.end >= begin and each.begin <= end]
        if any(each.alien for each in heads):
            return [None, *self.trees], True
        return [each.revision for each in heads], False


class World:
    def __init__(self, api):
        self.api, self.projects = api, []
        self.owners = {}  # record id: its project's id
        self.transactions = itertools.count(1)

    def create(self, name):
        begin = time.monotonic()
        record = self.api.create('projects', name=name)['id']
        self.take_in(record, begin)

    def take_in(self, record, begin):
        self.projects.append(Project(record, begin))
        self.owners[record] = record

    def rename(self, project, name):
        self.api.call('PATCH', f'/projects/{project.id}', {'name': name})

    def publish(self, project, changes, ways):
        """Publishes the project's last own head with changes (in model_follow's format), described in one of the ways
        that other clients use."""
        before = project.own_head
        old = project.manifests[before]['files'] if before else {}
        files = merged(project.files(before), changes)
        for path, word, _, seed in changes:
            if path in files and files[path][0] == word != 'link' and seed % 2:  # text where characters are not bytes
                files[path] = word, files[path][1].replace(b'a', 'ä€'.encode())
        entries = {path: old[path] if before and project.files(before).get(path) == meaning else
                   self.entry(project, path, *meaning, ways) for path, meaning in files.items()}
        manifest = {'files': entries}
        if ways['tx'] == 'carried' and before and 'tx' in project.manifests[before]:
            manifest['tx'] = project.manifests[before]['tx']
        elif ways['tx'] == 'own':
            manifest['tx'] = hashlib.md5(f'{project.id} {next(self.transactions)}'.encode()).hexdigest()
        revision = self.api.create('revisions', project=project.id, parents=[before] if before else [], agent='x',
                                   message='of others', state={}, manifest=manifest)['id']
        self.owners[revision] = project.id
        project.trees[revision], project.manifests[revision], project.parents[revision] = files, manifest, before
        self.move(project, revision)

    def entry(self, project, path, word, data, ways):
        text, digest = data.decode(), hashlib.sha256(data).hexdigest()
        # Not a SHA-256: so short that other clients claim the same for other bytes.
        claim = digest if ways['hash'] == 'sha256' else f'crc:{int(digest[:1], 16)}'
        entry = {'h': claim, 's': len(text) if ways['size'] == 'characters' else len(data), **MODES[word]}
        if len(data) <= INLINE and ways['place'] == 'inline':
            return {**entry, 'inline': text}
        chunks = projects.store(self.api, path, text, claim, CHUNK)
        self.owners.update(dict.fromkeys(chunks, project.id))
        return {**entry, 'c': chunks}

    def move(self, project, revision, alien=False):
        """Sets head, to anything."""
        begin = time.monotonic()
        self.api.call('PATCH', f'/projects/{project.id}', {'latest_revision': revision})
        project.head.end = time.monotonic()
        project.heads.append(Head(revision, begin, alien))

    def is_beside_head(self, record):
        """Whether head, having been set back, does not contain this revision."""
        for project in self.projects:
            if record in project.parents:
                line = project.own_head
                while line not in (None, record):
                    line = project.parents[line]
                return line is None
        return False

    def lists(self):
        """The ids of all projects, and the target of each name: the oldest project that has it."""
        records = [fixture.fields(each) for each in self.api.all('projects')]
        return {each['id'] for each in records}, {each['name']: '../' + each['id'] for each in records if each.get('name')}

