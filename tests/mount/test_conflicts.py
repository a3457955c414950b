#!/usr/bin/env python3
"""A conflict persists until a commit settles it; and files that became directories, and the reverse."""
import os

import fixture
from slow_project import PENDING, SlowProject, text

FAILED, CONFLICTS = 1, 3
MARKERS = '>>>>>>>'


@fixture.needs_fuse
class Conflicts(SlowProject):
    def post(self, parents, files, is_head=True):
        revision = self.api.create('revisions', project=self.project, parents=parents, agent='bob', message='by bob',
                                   manifest={'files': {path: {'inline': text} for path, text in files.items()}})['id']
        if is_head:
            self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})
        return revision

    def again(self, mount):
        mount.kill()
        self.command('fusermount3', '-u', '-z', mount.directory)
        return self.mount(self.api.origin)

    def conflicts(self, mount):
        return [each['path'] for each in self.status(mount)['conflicts']]

    def head_files(self):
        head = self.api.get('projects', self.project)['latest_revision']
        return {path: entry.get('inline') for path, entry in self.api.get('revisions', head)['manifest']['files'].items()}

    def in_conflict(self):
        """A mount in which f has markers, with a file beside it that the service accepts only in parts."""
        mount = self.begin({'file_chunks': 2})
        root = self.post([], {'f': 'base\n'})
        self.eventually(lambda: self.status(mount)['base'] == root, 'the mount follows')
        (self.work(mount) / 'f').write_text('ours\n')
        theirs = self.post([root], {'f': 'theirs\n'})
        self.eventually(lambda: self.status(mount)['head'] == theirs, 'the mount sees it')
        self.assertEqual(self.playfs('update', self.work(mount), check=False).returncode, CONFLICTS)
        self.assertIn(MARKERS, (self.work(mount) / 'f').read_text())
        (self.work(mount) / 'big').write_text(text(60_000, 1))
        return mount

    def assert_refused(self, mount):
        self.assertEqual(self.conflicts(mount), ['f'])
        done = self.playfs('commit', '-m', 'unasked', self.work(mount), check=False)
        self.assertEqual(done.returncode, CONFLICTS, done.stderr)
        self.assertIn('f is in conflict', done.stderr)
        self.assertEqual(self.head_files(), {'f': 'theirs\n'})

    def test_a_commit_as_it_is_that_is_given_back_leaves_the_conflict(self):
        mount = self.in_conflict()
        self.assert_refused(mount)

        def waits():
            publication = self.status(mount)['publication']
            return publication['waiting_for'] and publication['chunks_done'] == 2

        self.assertEqual(self.run_json(mount, 'commit', '--resolved', '--no-wait', '-m', 'as it is')[0], PENDING)
        self.eventually(waits, 'the service has enough of it')
        self.assertEqual(self.conflicts(mount), [], 'it is being published')
        mount = self.again(mount)
        self.work(mount).stat()
        self.eventually(lambda: self.status(mount)['publication']['waiting_for'], 'it goes on waiting')
        self.assertEqual(self.run_json(mount, 'commit', '--cancel')[1]['cancelled'], 1)
        self.assert_refused(mount)
        mount = self.again(mount)
        self.work(mount).stat()
        self.assert_refused(mount)
        # Repeated, it is published, and that settles it.
        self.playfs('discard', self.work(mount) / 'big')
        self.playfs('commit', '--resolved', '-m', 'as it is', self.work(mount))
        self.assertIn(MARKERS, self.head_files()['f'])
        self.assertEqual(self.conflicts(mount), [])
        (self.work(mount) / 'other').write_text('other\n')
        self.playfs('commit', '-m', 'other', self.work(mount))
        self.assertEqual(sorted(self.head_files()), ['f', 'other'])

    def test_a_commit_as_it_is_that_the_service_refuses_leaves_the_conflict(self):
        mount = self.in_conflict()
        self.playfs('discard', self.work(mount) / 'big')
        (self.work(mount) / 'huge').touch()
        os.truncate(self.work(mount) / 'huge', 65 << 20)  # more than a file may have
        done = self.playfs('commit', '--resolved', '-m', 'as it is', self.work(mount), check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assert_refused(mount)

    def test_a_branch_in_which_directories_and_files_changed_places(self):
        mount = self.begin({})
        base = {'d/x': 'x\n', 'd/y': 'y\n', 'd/in/z': 'z\n', 'f': 'f\n', 'mine': '1\n'}
        root = self.post([], base)
        self.eventually(lambda: self.status(mount)['base'] == root, 'the mount follows')
        work = self.work(mount)
        (work / 'mine').write_text('2\n')
        self.playfs('commit', '-m', 'mine', work)
        branch = self.post([root], {'d': 'a file\n', 'f/in/it': 'a directory\n', 'mine': '1\n'}, is_head=False)
        self.playfs('merge', branch, work)
        wanted = {'d': 'a file\n', 'f/in/it': 'a directory\n', 'mine': '2\n'}
        self.assertEqual({path: (work / path).read_text() for path in wanted}, wanted)
        self.assertEqual(sorted(os.listdir(work)), ['d', 'f', 'mine'])
        mount = self.again(mount)
        work = self.work(mount)
        self.assertEqual({path: (work / path).read_text() for path in wanted}, wanted)
        self.playfs('commit', '-m', 'merged', work)
        self.assertEqual(self.head_files(), wanted)

    def test_a_branch_in_which_a_directory_with_changes_became_a_file(self):
        mount = self.begin({})
        root = self.post([], {'d/x': 'x\n', 'd/y': 'y\n'})
        self.eventually(lambda: self.status(mount)['base'] == root, 'the mount follows')
        work = self.work(mount)
        (work / 'd/x').write_text('ours\n')
        self.playfs('commit', '-m', 'mine', work)
        branch = self.post([root], {'d': 'a file\n'}, is_head=False)
        self.assertEqual(self.playfs('merge', branch, work, check=False).returncode, CONFLICTS)
        self.assertEqual(self.conflicts(mount), ['d', 'd/x'])
        self.assertEqual((work / 'd/x').read_text(), 'ours\n')
        self.assertEqual((work / 'd.branch').read_text(), 'a file\n')
        (work / 'd.branch').unlink()
        (work / 'd/x').write_text('both\n')
        self.playfs('commit', '-m', 'merged', work)
        self.assertEqual(self.head_files(), {'d/x': 'both\n'})

    def test_what_stands_beside_a_discarded_file_is_not_published_unasked(self):
        mount = self.begin({})
        root = self.post([], {'f': 'a file\n'})
        self.eventually(lambda: self.status(mount)['base'] == root, 'the mount follows')
        work = self.work(mount)
        (work / 'f').unlink()
        (work / 'f').mkdir()
        (work / 'f/in').write_text('ours\n')
        theirs = self.post([root], {'f': 'theirs\n'})
        self.eventually(lambda: self.status(mount)['head'] == theirs, 'the mount sees it')
        self.assertEqual(self.playfs('update', work, check=False).returncode, CONFLICTS)
        self.playfs('discard', work / 'f')
        self.assertEqual((work / 'f').read_text(), 'theirs\n')
        refused = self.playfs('commit', '-m', 'unasked', work, check=False)
        self.assertEqual(refused.returncode, CONFLICTS, refused.stderr)
        self.assertIn('move or delete f.head', refused.stderr)
        self.playfs('discard', work / 'f.head')
        self.assertEqual(self.conflicts(mount), [])
        self.assertEqual(os.listdir(work), ['f'])

    def test_a_fifo_where_head_changes_the_file_stays(self):
        mount = self.begin({})
        root = self.post([], {'p': 'a file\n', 'keep': 'k\n'})
        self.eventually(lambda: self.status(mount)['base'] == root, 'the mount follows')
        work = self.work(mount)
        (work / 'p').unlink()
        os.mkfifo(work / 'p')
        self.post([root], {'p': 'changed\n', 'keep': 'k\n'})
        refused = self.playfs('update', work, check=False)
        self.assertEqual(refused.returncode, FAILED, refused.stdout + refused.stderr)
        self.assertIn('p is local-only', refused.stderr)
        self.assertTrue((work / 'p').is_fifo())
        (work / 'p').rename(work / 'pipe')
        self.assertEqual(self.playfs('update', work, check=False).returncode, CONFLICTS)
        self.assertEqual(self.conflicts(mount), ['p'])
        self.assertTrue((work / 'pipe').is_fifo())


if __name__ == '__main__':
    fixture.main()
