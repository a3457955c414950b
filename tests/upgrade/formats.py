"""What a user has on disk, written by one version and looked at by every later one.

`PLAYFS=build/src/app/playfs python3 tests/upgrade/formats.py` writes the archive of that version into
tests/data/formats. It is committed with the release and never written again.
"""
import json
import pathlib
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))

import fixture

ARCHIVES = fixture.ROOT / 'tests/data/formats'
SOURCE = 'local:default'
LONG = ''.join(f'line {number}\n' for number in range(6_000))  # more than one chunk


class Formats(fixture.Fixture):
    """Reads what an archive has, by the program under test."""

    def clone_of(self, name):
        return self.home / 'ann' / name

    def json(self, *words):
        return json.loads(self.playfs(*words, '--json').stdout)

    def staged(self, place):
        status = self.json('status', place)
        return {'changes': sorted([each['change'], each['path']] for each in status['staged'] if not each['pending']),
                'pending': sorted(each['path'] for each in status['staged'] if each['pending']),
                'conflicts': sorted(each['path'] for each in status['conflicts']),
                'queue': [each['message'] for each in status['publication']['queue']],
                'checkpoints': [[each['id'], each['message']] for each in status['checkpoints']]}

    def tree(self, place):
        """As describe(), in the types of JSON."""
        return {path: what if isinstance(what, str) else [what[0], what[1].decode()]
                for path, what in sorted(self.describe(place).items())}

    def all_of_it(self, mount):
        """What is published, staged, queued and said."""
        places = {name: mount.project(name) / 'work' for name in ('garden', 'field')}
        places['clone'] = self.clone_of('field')
        seen = {name: {'staged': self.staged(place), 'tree': self.tree(place)} for name, place in places.items()}
        for name in ('garden', 'field'):
            seen[name]['head'] = self.tree((mount.project(name) / 'head').resolve())
            seen[name]['log'] = self.log(mount.project(name))
        seen['thread'] = self.messages(mount)
        return seen

    def log(self, place):
        lines = self.playfs('log', '--json', place).stdout.splitlines()
        return [json.loads(line)['message'] for line in lines]

    def messages(self, mount):
        lines = (mount.directory / 'threads/by-title/Seeds/messages.ndjson').read_text().splitlines()
        return [json.loads(line)['body'] for line in lines]


class Write(Formats):
    def test_write(self):
        clone = self.clone_of('field')
        mount = self.mount(SOURCE)
        top = mount.directory
        for name in ('garden', 'field'):
            (top / 'projects/new').write_text(json.dumps({'name': name}))
            work = mount.project(name) / 'work'
            (work / 'dir').mkdir()
            (work / 'dir/long').write_text(LONG)
            (work / 'changed').write_text('first\n')
            (work / 'gone').write_text('gone\n')
            (work / 'run').write_text('#!/bin/sh\n')
            (work / 'run').chmod(0o755)
            (work / 'link').symlink_to('dir/long')
            (work / '.gitignore').write_text('*.o\n')
            self.playfs('commit', '-m', f'Plant the {name}', work)
        self.playfs('thread', 'new', 'Seeds', '--kind', 'discussion', '-m', 'When?', cwd=top)
        self.playfs('post', 'Seeds', '-m', 'In spring.', cwd=top)
        self.messages(mount)
        garden, field = (mount.project(name) / 'work' for name in ('garden', 'field'))
        self.playfs('clone', mount.project('field').name, clone, '--site', SOURCE)
        (clone / 'changed').write_text('in the clone\n')
        self.playfs('commit', '-m', 'From the clone', clone)
        (field / 'changed').write_text('in the mount\n')
        self.playfs('update', field, check=False)
        for work in (garden, field, clone):
            (work / 'new').write_text('new\n')
            (work / 'local.o').write_text('ignored\n')
        self.playfs('checkpoint', '-m', 'Before more', garden)
        self.playfs('checkpoint', '-m', 'Before more', clone)
        mount.unmount()

        mount = self.mount(SOURCE, options=('offline',))
        garden = mount.project('garden') / 'work'
        self.playfs('commit', '--no-wait', '-m', 'Sent later', garden, check=False)
        (garden / 'changed').write_text('second\n')
        (garden / 'dir/long').write_text(LONG + 'more\n')
        (garden / 'gone').unlink()
        (garden / 'run').chmod(0o644)
        (clone / 'dir/long').rename(clone / 'moved')
        expected = self.all_of_it(mount)
        mount.unmount()

        version = self.playfs('--version').stdout.split()[1]
        (self.home / 'ann/expected.json').write_text(
            json.dumps({'home': str(self.home), 'written_at': int(time.time()), **expected}, indent=1) + '\n')
        with tarfile.open(ARCHIVES / f'{version}.tar.xz', 'x:xz') as archive:
            archive.add(self.home / 'ann', 'ann')


if __name__ == '__main__':
    ARCHIVES.mkdir(exist_ok=True)
    fixture.main()
