#!/usr/bin/env python3
"""The memory of a commit, and of an update, does not grow with what is staged.

PLAYFS_TEST_COMMIT_MB sets how much is committed to the embedded playground (24), in PLAYFS_TEST_COMMIT_FILES large
files (12) besides small ones. PLAYFS_TEST_COMMIT_LIMIT_MB puts the mount into a memory cgroup of that size before it
commits.

A gigabyte takes minutes: raise PLAYFS_TEST_LIMIT, the seconds that a test may take, as well.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import time

import fixture

MEGABYTE = 1 << 20
STAGED = int(os.environ.get('PLAYFS_TEST_COMMIT_MB', '24'))
FILES = int(os.environ.get('PLAYFS_TEST_COMMIT_FILES', '12'))
LIMIT = int(os.environ.get('PLAYFS_TEST_COMMIT_LIMIT_MB', '0'))
# What a commit may use besides the manifest; and what each chunk may use in that, with all its copies.
MAY_GROW = 64 * MEGABYTE
OF_A_CHUNK = 1500
CHUNK = 12 * 1024


def content(number, size):
    """Content of every kind: chunk boundaries fall into lines, multi-byte characters, base64 and escapes."""
    dice = random.Random(number)
    if number % 4 == 0:
        return dice.randbytes(size)
    unit = [b'', b'line %d of some text, which goes on for a while\n', 'zeile %d: äöü — 😀\n'.encode(),
            b'\t"quoted\\%d"\x01\x1b[1m\n'][number % 4]
    # Blocks that do not repeat; formatting every line would take longer than the commit.
    block = b''.join(unit % dice.getrandbits(40) for _ in range(2000))
    parts, length = [], 0
    while length < size:
        parts.append(b'block %d\n' % length + block)
        length += len(parts[-1])
    return b''.join(parts)[:size].decode(errors='ignore').encode()


class CommitMemory(fixture.Fixture):
    @contextlib.contextmanager
    def limited(self, mount):
        """Runs the mount in a memory cgroup of its own, if requested."""
        if not LIMIT:
            yield
            return
        first = pathlib.Path('/sys/fs/cgroup/memory')
        group = (first if first.is_dir() else first.parent) / f'playfs-test-{os.getpid()}'
        group.mkdir()
        knob = group / ('memory.limit_in_bytes' if first.is_dir() else 'memory.max')
        knob.write_text(str(LIMIT * MEGABYTE))
        (group / 'cgroup.procs').write_text(str(mount.process.pid))
        try:
            yield
            if first.is_dir():
                used = int((group / 'memory.max_usage_in_bytes').read_text())
                print(f'cgroup: at most {used // MEGABYTE} of {LIMIT} MB, page cache included')
        finally:
            (group.parent / 'cgroup.procs').write_text(str(mount.process.pid))
            group.rmdir()

    @contextlib.contextmanager
    def grows_little(self, mount, chunks, what):
        """Prints by how much the mount grew at its peak."""
        fixture.forget_most_memory(mount.process)
        before, begin = fixture.memory(mount.process), time.monotonic()
        yield
        grown, most = fixture.memory(mount.process, 'VmHWM') - before, MAY_GROW + chunks * OF_A_CHUNK
        print(f'{what}: {chunks} chunks, {time.monotonic() - begin:.0f} s; resident before {before / MEGABYTE:.0f} MB, '
              f'grown by {grown / MEGABYTE:.0f} of {most / MEGABYTE:.0f} MB')
        self.assert_memory(grown, most)

    def commit_within(self, mount, work, chunks, message):
        with self.grows_little(mount, chunks, message):
            (work.parent / 'commit').write_text(message)
            outcome = (work.parent / 'commit').read_text()  # waits for the outcome, as long as that takes
        self.assertIn('published', outcome.lower())

    def fill(self, work, staged, files):
        """Contents by path."""
        wanted = {f'folder{number % 7}/large{number}': content(number, staged // files) for number in range(files)}
        wanted |= {f'small/{number}': content(number, 100 + number * 7) for number in range(300)}
        for path, data in wanted.items():
            (work / path).parent.mkdir(exist_ok=True)
            (work / path).write_bytes(data)
        return wanted

    def assert_has(self, tree, wanted):
        for path, data in wanted.items():
            self.assertEqual((tree / path).read_bytes() == data, True, path)

    def test_a_large_commit_to_the_embedded_playground(self):
        ann = self.mount(None, 'ann', options=())
        (ann.directory / 'projects/new').write_text('{"name": "large"}')
        work = ann.project('large') / 'work'
        wanted = self.fill(work, STAGED * MEGABYTE, FILES)
        with self.limited(ann):
            self.commit_within(ann, work, STAGED * MEGABYTE * 4 // 3 // CHUNK, 'everything')
        ann.unmount()
        # From the service, not from this mount's cache.
        shutil.rmtree(self.home / 'ann/cache')
        again = self.mount(None, 'ann', options=())
        self.assert_has(again.project('large') / 'head', wanted)

    def two_mounts(self):
        """Ann's mount, which does not follow others' revisions; and ann's and bob's work trees of one project."""
        api = self.serve()
        project = json.loads(self.playfs('init', 'shared', '--json', '--site', api.origin).stdout)['project']
        project = project if isinstance(project, str) else project['id']
        ann = self.mount(api.origin, 'ann', options=('refresh=3600',))
        bob = self.mount(api.origin, 'bob')
        return ann, *(mount.directory / 'projects' / project / 'work' for mount in (ann, bob))

    def test_a_commit_that_is_merged_with_another_head(self):
        ann, work, theirs = self.two_mounts()
        text = ''.join(f'{number}\n' for number in range(5000))
        (work / 'both').write_text(text)
        self.playfs('commit', '-m', 'first', work)
        self.eventually((theirs / 'both').exists, 'bob sees it')
        wanted = self.fill(work, STAGED * MEGABYTE // 2, 8)
        (work / 'both').write_text(text + 'by ann\n')
        (theirs / 'both').write_text('by bob\n' + text)
        self.playfs('commit', '-m', 'bob was faster', theirs, who='bob')
        self.commit_within(ann, work, STAGED * MEGABYTE * 2 // 3 // CHUNK, 'merged')
        self.assert_has(work.parent / 'head', wanted | {'both': ('by bob\n' + text + 'by ann\n').encode()})

    def test_an_update_of_files_that_both_sides_changed(self):
        ann, work, theirs = self.two_mounts()
        names = [f'file{number}' for number in range(max(24, FILES))]
        text = ''.join(f'{number}\n' for number in range(5000))
        for name in (*names, 'both'):
            (work / name).write_text(text if name == 'both' else f'first {name}\n')
        self.playfs('commit', '-m', 'first', work)
        self.eventually((theirs / 'both').exists, 'bob sees it')
        # Before bob is faster: a tree with nothing staged would follow him.
        (work / 'both').write_text(text + 'by ann\n')
        for name in names:
            (theirs / name).write_text(f'by bob {name}\n')
        (theirs / 'both').write_text('by bob\n' + text)
        self.playfs('commit', '-m', 'bob was faster', theirs, who='bob')
        # One file larger than the memory allowed, and as much again in the others.
        wanted = {name: content(number, (80 if number == 0 else max(3, STAGED // FILES)) * MEGABYTE)
                  for number, name in enumerate(names)}
        for name, data in wanted.items():
            (work / name).write_bytes(data)
        with self.limited(ann), self.grows_little(ann, 0, 'updated'):
            self.playfs('update', work, check=False)
            status = json.loads(self.playfs('status', '--json', work).stdout)
        self.assertEqual((work / 'both').read_text(), 'by bob\n' + text + 'by ann\n')
        self.assertEqual(sorted(each['path'] for each in status['conflicts']), sorted(names))
        # Unchanged, or between markers.
        for name, data in wanted.items():
            self.assertTrue(data in (work / name).read_bytes(), name)

    def test_a_file_that_could_not_be_read_again_is_refused_before_anything_is_sent(self):
        ann = self.mount(None, 'ann', options=())
        (ann.directory / 'projects/new').write_text('{"name": "huge"}')
        work = ann.project('huge') / 'work'
        with open(work / 'huge', 'wb') as file:
            file.truncate(64 * MEGABYTE + 1)
        refused = self.playfs('commit', '-m', 'huge', work, check=False)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn('huge has 67108865 bytes, but a published file has at most 67108864', refused.stderr)
        self.assertFalse((work.parent / 'head').exists())
        with open(work / 'huge', 'r+b') as file:
            file.truncate(5)
        self.playfs('commit', '-m', 'smaller', work)
        self.assertEqual((work.parent / 'head/huge').read_bytes(), bytes(5))


if __name__ == '__main__':
    fixture.main()
