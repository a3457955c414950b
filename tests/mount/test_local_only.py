#!/usr/bin/env python3
"""Ignored files where others' files were, are or come: none is deleted, and none is published unasked."""
import base64
import subprocess
import threading

import proxy
import revisions
import fixture

RULES = '*.log\n'
MINE = 'weeks of my own notes\n'
CONFLICT = 3


@fixture.needs_fuse
class LocalOnly(revisions.Revisions):
    def setUp(self):
        super().setUp()
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)
        self.mounted = self.mount(self.proxy.url, options=('refresh=1',))
        self.tree = self.work(self.mounted)
        self.first = None

    def begin(self, **texts):
        self.first = self.revision([], {'x': 'x\n', 'y': 'y\n', '.gitignore': RULES} | texts)
        self.set_head(self.first)
        self.eventually(lambda: (self.tree / 'x').exists(), 'it is followed')

    def changes(self):
        return {each['path']: each['change'] for each in self.status()['staged']}

    def discarded_path_of_a_merge(self, **texts):
        """a.log came with a branch that is being merged, was discarded, and is a file of our own now."""
        self.begin()
        branch = self.revision([self.first], {'x': 'x\n', 'y': 'branch\n', '.gitignore': RULES, 'a.log': 'published\n',
                                              'b.log': 'published\n'} | texts)
        self.fails('merge', branch)
        self.playfs('discard', self.tree / 'a.log')
        (self.tree / 'a.log').write_text(MINE)

    def assert_it_stays(self):
        self.assertEqual((self.tree / 'a.log').read_text(), MINE)
        self.assertIn('a.log', self.status()['unpublished'])

    def test_where_head_still_has_what_a_branch_deleted(self):
        self.begin(**{'a.log': 'published by mistake\n'})
        (self.tree / 'x').write_text('ann\n')
        (self.tree / 'a.log').unlink()
        self.set_head(self.revision([self.first], {'x': 'bob\n', 'y': 'y\n', '.gitignore': RULES,
                                                   'a.log': 'published by mistake\n'}))
        self.assertEqual(self.fails('commit', '-m', 'a branch'), CONFLICT)
        (self.tree / 'a.log').write_text(MINE)
        done = self.playfs('update', self.tree, check=False)
        self.assertIn('a.log is local-only', done.stderr)
        self.assert_it_stays()
        (self.tree / 'a.log').unlink()
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['x'])

    def test_a_merge_is_abandoned(self):
        self.discarded_path_of_a_merge(x='branch\n')
        self.playfs('discard', self.tree)
        self.assertEqual((self.changes(), self.status()['merging']), ({}, []))
        self.assert_it_stays()

    def test_an_update_comes_after_a_merge(self):
        self.discarded_path_of_a_merge()
        self.set_head(self.revision([self.first], {'x': 'head\n', 'y': 'y\n', '.gitignore': RULES}))
        self.playfs('update', self.tree)
        self.assertEqual(self.changes(), {'a.log': 'deleted', 'b.log': 'added', 'y': 'modified'})
        self.playfs('commit', '-m', 'Merge', self.tree)
        self.assertNotIn('a.log', self.head_texts())
        self.assert_it_stays()

    def test_a_commit_is_merged_with_what_was_written_since(self):
        self.discarded_path_of_a_merge()
        lines = ''.join(f'line {number}\n' for number in range(30))
        (self.tree / 'x').write_text('x\n' + lines)
        self.set_head(self.revision([self.first], {'x': 'bob\nx\n', 'y': 'y\n', '.gitignore': RULES}))

        def slow(method, path, headers, body, ask):
            if method == 'POST' and path.endswith('/revisions'):
                is_sent.set()
                goes_on.wait(fixture.COMMAND_LIMIT)

        is_sent, goes_on = threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)
        self.proxy.raw = slow
        commit = subprocess.Popen([self.playfs_path, 'commit', '-m', 'Merge', self.tree], env=self.environment('ann'),
                                  stdout=subprocess.DEVNULL)
        # A commit that is merely queued would freeze what follows, or the file between its truncation and its write.
        self.assertTrue(is_sent.wait(fixture.COMMAND_LIMIT), 'it is frozen')
        (self.tree / 'x').write_text('x\n' + lines + 'more\n')
        goes_on.set()
        self.assertEqual(commit.wait(fixture.COMMAND_LIMIT), 0)
        self.assertNotIn('a.log', self.changes())
        self.playfs('commit', '-m', 'Next', self.tree)
        self.assertNotIn('a.log', self.head_texts())
        self.assert_it_stays()

    def test_the_first_revision_brings_other_rules(self):
        (self.tree / '.gitignore').write_text('*\n')
        (self.tree / 'a.log').write_text(MINE)
        self.set_head(self.revision([], {'x': 'x\n', '.playfsignore': '!a.log\n'}))
        # It is not followed unasked.
        self.eventually(lambda: (self.mounted.directory / 'projects' / self.project / 'head/x').exists(), 'it is shown')
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['a.log'])
        self.assertEqual(self.fails('commit', '-m', 'All'), CONFLICT)
        self.assertEqual((self.tree / 'a.log').read_text(), MINE)


@fixture.needs_fuse
class Modes(revisions.Revisions):
    def test_a_mode_is_merged_though_the_content_is_in_conflict(self):
        def binary(content, mode='100644'):
            return {'inline': base64.b64encode(content).decode(), 'e': 'base64', 'm': mode}

        tree = self.tree = self.work(self.mount(self.api.origin, options=('refresh=1',)))
        first = self.revision([], {'run': 'one\n', 'tool': binary(b'\0a')})
        self.set_head(first)
        self.eventually(lambda: (tree / 'run').exists(), 'it is followed')
        (tree / 'run').write_text('mine\n')
        (tree / 'tool').write_bytes(b'\0mine')
        self.set_head(self.revision([first], {'run': {'inline': 'theirs\n', 'm': '100755'},
                                              'tool': binary(b'\0theirs', '100755')}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['run', 'tool'])
        (tree / 'run').write_text('both\n')
        (tree / 'tool').write_bytes(b'\0both')
        self.playfs('commit', '-m', 'Both', tree)
        files = self.api.get('revisions', self.head())['manifest']['files']
        self.assertEqual({path: entry['m'] for path, entry in files.items()}, {'run': '100755', 'tool': '100755'})


if __name__ == '__main__':
    fixture.main()
