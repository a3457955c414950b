#!/usr/bin/env python3
"""What other revisions bring into a tree: files tracked there but ignored here, their state, and their conflicts."""
import ctypes
import json

import revisions
import fixture

CONFLICT = 3
RULES = '*.log\nbuild/\n'
LOGS = {'a.log': 'published\n', 'build/deep/out': 'published\n', 'src/b.log': 'published\n'}


@fixture.needs_fuse
class Ignored(revisions.Revisions):
    """Head ignores what a branch of its project tracks. Both changed `x`, so that they are not merged automatically."""

    def setUp(self):
        super().setUp()
        self.mounted = self.mount(self.api.origin, options=('refresh=1',))
        self.tree = self.work(self.mounted)
        self.first = self.revision([], {'x': 'first\n'})

    def set_head_that_ignores(self):
        self.set_head(self.revision([self.first], {'x': 'head\n', '.gitignore': RULES}))
        self.eventually((self.tree / '.gitignore').exists, 'the tree follows head')

    def branch(self):
        return self.revision([self.first], {'x': 'branch\n', **LOGS})

    def merge(self, branch):
        self.assertEqual(self.playfs('merge', branch, self.tree, check=False).returncode, CONFLICT)
        (self.tree / 'x').write_text('both\n')

    def test_what_a_branch_has_is_published_with_it(self):
        self.set_head_that_ignores()
        branch = self.branch()
        self.merge(branch)
        (self.tree / 'a.log').write_text('edited\n')
        (self.tree / 'own.log').write_text('never published\n')
        (self.tree / 'build/own').write_text('never published\n')
        expected = [*sorted(LOGS), 'x']
        self.assertEqual(self.staged(), expected)
        self.mounted.kill()
        self.command('fusermount3', '-u', '-z', self.mounted.directory)
        self.tree = self.work(self.mount(self.api.origin))
        self.assertEqual(self.staged(), expected)
        self.playfs('commit', '-m', 'Join', self.tree)
        self.assertEqual(self.head_texts(),
                         {'.gitignore': RULES, 'x': 'both\n', **LOGS, 'a.log': 'edited\n'})
        self.assertEqual(self.staged(), [])
        self.assertEqual((self.tree / 'own.log').read_text(), 'never published\n')

    def test_what_was_published_from_here_as_a_branch_stays_published(self):
        self.set_head(self.first)
        self.eventually((self.tree / 'x').exists, 'the tree follows head')
        (self.tree / 'x').write_text('mine\n')
        (self.tree / 'a.log').write_text('mine\n')
        self.set_head(self.revision([self.first], {'x': 'head\n', '.gitignore': RULES}))
        self.assertEqual(self.fails('commit', '-m', 'Mine'), CONFLICT)
        self.assertEqual(self.fails('update'), CONFLICT)
        (self.tree / 'x').write_text('both\n')
        self.playfs('commit', '-m', 'Join', self.tree)
        self.assertEqual(self.head_texts(), {'.gitignore': RULES, 'x': 'both\n', 'a.log': 'mine\n'})

    def test_an_update_keeps_what_was_edited_in_it(self):
        self.set_head_that_ignores()
        branch = self.branch()
        self.merge(branch)
        (self.tree / 'a.log').write_text('edited\n')
        joined = {'.gitignore': RULES, 'x': 'both\n', **LOGS}
        self.set_head(self.revision([self.head(), branch], joined))
        self.playfs('update', self.tree)
        self.assertEqual((self.tree / 'a.log').read_text(), 'edited\n')
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertEqual(self.head_texts(), {**joined, 'a.log': 'edited\n'})

    def changes(self):
        return {each['path']: each['change'] for each in self.status()['staged']}

    def planned(self):
        plan = json.loads(self.playfs('publish', '--dry-run', '--json', self.tree).stdout)
        return {each['path']: each['deleted'] for each in plan['plan']['paths']}

    def test_what_is_moved_to_an_ignored_name_is_listed_as_deleted(self):
        self.set_head_that_ignores()
        branch = self.branch()
        self.merge(branch)
        (self.tree / 'a.log').rename(self.tree / 'c.log')
        (self.tree / 'build').rename(self.tree / 'moved')
        (self.tree / 'src/b.log').unlink()
        (self.tree / 'src/b.log').write_text('anew\n')
        expected = {'a.log': 'deleted', 'build/deep/out': 'deleted', 'moved/deep/out': 'added', 'src/b.log': 'added',
                    'x': 'modified'}
        self.assertEqual(self.changes(), expected)
        self.assertEqual(self.planned(), {path: how == 'deleted' for path, how in expected.items()})
        # Head has it all by now, and one file more: the commit takes out of it what was listed, and nothing else.
        joined = {'.gitignore': RULES, 'x': 'both\n', 'more': 'more\n', **LOGS}
        self.set_head(self.revision([self.head(), branch], joined))
        self.playfs('commit', '-m', 'Join', self.tree)
        self.assertEqual(self.head_texts(), {'.gitignore': RULES, 'x': 'both\n', 'more': 'more\n',
                                             'moved/deep/out': 'published\n', 'src/b.log': 'anew\n'})
        self.assertEqual(self.staged(), [])
        self.assertEqual((self.tree / 'c.log').read_text(), 'published\n')

    def test_a_deletion_outlives_updates(self):
        self.set_head_that_ignores()
        branch = self.branch()
        self.merge(branch)
        (self.tree / 'a.log').unlink()
        head = {'.gitignore': RULES, 'x': 'head\n', 'more': 'more\n'}
        self.set_head(self.revision([self.head()], head))
        self.playfs('update', self.tree)
        self.assertEqual(self.changes(), {'a.log': 'deleted', 'build/deep/out': 'added', 'src/b.log': 'added',
                                          'x': 'modified'})
        self.set_head(self.revision([self.head(), branch], {**head, 'x': 'both\n', **LOGS}))
        self.playfs('update', self.tree)
        self.assertEqual(self.changes(), {'a.log': 'deleted'})
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertEqual(sorted(self.head_texts()), ['.gitignore', 'build/deep/out', 'more', 'src/b.log', 'x'])

    def test_what_was_discarded_of_a_merge_that_goes_on_is_listed_as_deleted(self):
        self.set_head_that_ignores()
        branch = self.branch()
        self.merge(branch)
        self.assertIn('Discarded the changes to 1 path.', self.playfs('discard', self.tree / 'a.log').stderr)
        expected = {'a.log': 'deleted', 'build/deep/out': 'added', 'src/b.log': 'added', 'x': 'modified'}
        self.assertEqual(self.changes(), expected)
        self.mounted.kill()
        self.command('fusermount3', '-u', '-z', self.mounted.directory)
        self.tree = self.work(self.mount(self.api.origin))
        self.assertEqual(self.changes(), expected)
        self.assertEqual(self.planned(), {path: how == 'deleted' for path, how in expected.items()})
        (self.tree / 'a.log').write_text('never published\n')
        self.assertEqual(self.changes(), expected, 'a new file follows the rules')
        joined = {'.gitignore': RULES, 'x': 'both\n', 'more': 'more\n', **LOGS}
        self.set_head(self.revision([self.head(), branch], joined))
        self.playfs('commit', '-m', 'Join', self.tree)
        self.assertEqual(sorted(self.head_texts()), ['.gitignore', 'build/deep/out', 'more', 'src/b.log', 'x'])
        self.assertEqual(self.staged(), [])
        self.assertEqual((self.tree / 'a.log').read_text(), 'never published\n')

    def test_and_is_forgotten_with_the_merge(self):
        self.set_head_that_ignores()
        self.merge(self.branch())
        self.playfs('discard', self.tree / 'a.log')
        (self.tree / 'src/b.log').unlink()
        for path in ('build', 'x'):
            self.playfs('discard', self.tree / path)
        self.assertEqual(self.changes(), {'a.log': 'deleted', 'build/deep/out': 'deleted', 'src/b.log': 'deleted'})
        self.assertIn('Abandoned the merge of', self.playfs('discard', self.tree / 'src/b.log').stderr)
        self.assertEqual((self.changes(), self.status()['merging']), ({}, []))

    def test_of_what_no_other_revision_has_no_deletion_is_listed(self):
        self.set_head(self.first)
        self.eventually((self.tree / 'x').exists, 'the tree follows head')
        (self.tree / 'own.log').write_text('mine\n')
        (self.tree / 'x').write_text('mine\n')
        self.set_head(self.revision([self.first], {'x': 'x\n', '.gitignore': RULES}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.changes(), {'own.log': 'added', 'x': 'modified'})
        (self.tree / 'own.log').unlink()
        self.assertEqual(self.changes(), {'x': 'modified'})

    def test_a_discarded_one_is_ignored_again(self):
        self.set_head_that_ignores()
        self.merge(self.branch())
        self.playfs('discard', self.tree)
        self.assertFalse((self.tree / 'a.log').exists())
        (self.tree / 'a.log').write_text('never published\n')
        self.assertEqual(self.staged(), [])

    def test_a_merge_overwrites_no_local_only_file(self):
        self.set_head_that_ignores()
        branch = self.branch()
        (self.tree / 'a.log').write_text('my own\n')
        refused = self.playfs('merge', branch, self.tree, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn('a.log is local-only', refused.stderr)
        self.assertEqual(((self.tree / 'a.log').read_text(), (self.tree / 'x').read_text()), ('my own\n', 'head\n'))
        (self.tree / 'a.log').unlink()
        self.merge(branch)

    def test_a_local_only_file_is_published_only_on_request(self):
        self.set_head(self.revision([self.first], {'.gitignore': '.env\n'}))
        self.eventually((self.tree / '.gitignore').exists, 'the tree follows head')
        (self.tree / '.env').write_text('secret\n')
        (self.tree / 'mine').write_text('mine\n')
        theirs = {'.gitignore': '.env\n', '.env': 'theirs\n'}
        self.set_head(self.revision([self.head()], theirs))
        self.assertEqual(self.fails('commit', '-m', 'Mine'), CONFLICT)
        self.assertEqual((self.tree / '.env').read_text(), 'secret\n')
        (self.tree / '.env.head').unlink()
        (self.tree / 'more').write_text('more\n')
        self.assertEqual(self.fails('commit', '-m', 'More'), CONFLICT)
        self.assertEqual(self.head_texts(), {**theirs, 'mine': 'mine\n'})
        self.playfs('discard', self.tree / '.env')
        self.playfs('commit', '-m', 'More', self.tree)
        self.assertEqual(self.head_texts(), {**theirs, 'mine': 'mine\n', 'more': 'more\n'})
        self.assertEqual((self.tree / '.env').read_text(), 'theirs\n')

    def test_nothing_in_an_ignored_folder_is_overwritten_or_published(self):
        rules = 'build/\np\n'
        self.set_head(self.revision([self.first], {'.gitignore': rules, 'y': 'y\n'}))
        self.eventually((self.tree / '.gitignore').exists, 'the tree follows head')
        (self.tree / 'build/deep').mkdir(parents=True)
        (self.tree / 'build/deep/out').write_text('secret\n')
        (self.tree / 'p').write_text('secret\n')
        (self.tree / 'y').write_text('mine\n')
        theirs = {'.gitignore': rules, 'y': 'y\n', 'build/deep/out': 'theirs\n', 'build/new': 'new\n', 'p/x': 'theirs\n'}
        self.set_head(self.revision([self.head()], theirs))
        refused = self.playfs('update', self.tree, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn('is local-only', refused.stderr)
        self.assertEqual(self.fails('commit', '-m', 'Mine'), CONFLICT)
        self.assertEqual(self.head_texts(), {**theirs, 'y': 'mine\n'})
        self.assertEqual(self.conflicts(), ['build/deep/out', 'p'])
        for secret in ('build/deep/out', 'p'):
            self.assertEqual((self.tree / secret).read_text(), 'secret\n')
        self.assertEqual((self.tree / 'build/new').read_text(), 'new\n')
        (self.tree / 'build/deep/out.head').unlink()
        self.command('rm', '-r', self.tree / 'p.head')
        (self.tree / 'y').write_text('mine again\n')
        self.assertEqual(self.fails('commit', '-m', 'Again'), CONFLICT)
        self.assertEqual(self.conflicts(), ['build/deep/out', 'p'])
        (self.tree / 'p').unlink()
        self.playfs('discard', self.tree / 'p', self.tree / 'build/deep/out')
        self.playfs('commit', '-m', 'Again', self.tree)
        self.assertEqual(self.head_texts(), {**theirs, 'y': 'mine again\n'})


@fixture.needs_fuse
class InConflict(revisions.Revisions):
    def setUp(self):
        super().setUp()
        self.mounted = self.mount(self.api.origin, options=('refresh=1',))
        self.tree = self.work(self.mounted)

    def remount(self):
        self.mounted.kill()
        self.command('fusermount3', '-u', '-z', self.mounted.directory)
        self.mounted = self.mount(self.api.origin, options=('refresh=1',))
        self.tree = self.work(self.mounted)

    def exchange(self, one, other):
        done = ctypes.CDLL(None, use_errno=True).renameat2(-100, str(one).encode(), -100, str(other).encode(), 2)
        self.assertEqual(done, 0, 'renameat2(AT_FDCWD, …, RENAME_EXCHANGE)')

    def set_first(self, texts, state):
        first = self.revision([], texts, state)
        self.follow(first)
        return first

    def follow(self, head):
        self.set_head(head)
        self.eventually(lambda: self.status()['base'] == head, 'the tree follows head')

    def test_of_two_values_of_the_state_none_is_dropped_unasked(self):
        first = self.set_first({'x': 'x\n'}, {'k': 1})
        branch = self.revision([first], {'x': 'x\n', 'new': 'new\n'}, {'k': 3})
        self.follow(self.revision([first], {'x': 'x\n'}, {'k': 2}))
        self.assertEqual(self.playfs('merge', branch, self.tree, check=False).returncode, CONFLICT)
        self.assertEqual(self.fails('commit', '-m', 'Join'), CONFLICT)
        (self.tree.parent / 'state.json').write_text('{"k": 3}')
        self.playfs('commit', '-m', 'Join', self.tree)
        self.assertEqual(self.api.get('revisions', self.head())['state'], {'k': 3})

    def test_each_key_of_the_state_is_a_conflict_of_its_own(self):
        first = self.set_first({'x': 'x\n'}, {'k': 1, 'n': {'m': [1]}, 'z': 0})
        branch = self.revision([first], {'x': 'x\n'}, {'k': 3, 'n': {'m': [3]}, 'z': 0})
        self.follow(self.revision([first], {'x': 'x\n'}, {'k': 2, 'n': {'m': [2]}, 'z': 0}))
        self.assertEqual(self.playfs('merge', branch, self.tree, check=False).returncode, CONFLICT)
        self.assertEqual(self.conflicts(), ['(state) k', '(state) n.m'])
        state = self.tree.parent / 'state.json'
        state.write_text('{"z": 1, "n": {"m":  [2]}, "k": 2}')
        self.assertEqual(self.conflicts(), ['(state) k', '(state) n.m'])
        state.write_text('{"z": 1, "n": {"m": [2]}, "k": 3}')
        self.assertEqual(self.conflicts(), ['(state) n.m'])
        refused = self.playfs('commit', '-m', 'Join', self.tree, check=False)
        self.assertEqual(refused.returncode, CONFLICT)
        self.assertIn('change n.m in state.json', refused.stderr)
        state.write_text('{"z": 1, "n": {"m": [2, 3]}, "k": 3}')
        self.assertEqual(self.conflicts(), [])
        self.playfs('commit', '-m', 'Join', self.tree)
        self.assertEqual(self.api.get('revisions', self.head())['state'], {'k': 3, 'n': {'m': [2, 3]}, 'z': 1})

    def test_a_key_of_the_state_is_taken_as_it_is_where_that_is_said(self):
        first = self.set_first({'x': 'x\n'}, {'k': 1, 'l': 1})
        branch = self.revision([first], {'x': 'x\n'}, {'k': 3, 'l': 3})
        self.follow(self.revision([first], {'x': 'x\n'}, {'k': 2, 'l': 2}))
        self.assertEqual(self.playfs('merge', branch, self.tree, check=False).returncode, CONFLICT)
        (self.tree.parent / 'state.json').write_text('{"k": 3, "l": 2}')
        self.assertEqual(self.fails('commit', '-m', 'Join'), CONFLICT)
        self.playfs('commit', '--resolved', '-m', 'Join', self.tree)
        self.assertEqual(self.api.get('revisions', self.head())['state'], {'k': 3, 'l': 2})

    def test_a_key_that_was_removed_here_and_changed_there(self):
        first = self.set_first({'x': 'x\n'}, {'k': 1, 'z': 1})
        (self.tree.parent / 'state.json').write_text('{"z": 1}')
        self.set_head(self.revision([first], {'x': 'x\n'}, {'k': 2, 'z': 1}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['(state) k'])
        self.playfs('discard', self.tree)
        self.assertEqual(self.conflicts(), [])
        self.assertEqual(json.loads((self.tree.parent / 'state.json').read_text()), {'k': 2, 'z': 1})

    def test_moving_a_folder_takes_no_markers_out_of_it(self):
        first = self.set_first({'src/x': 'x\n'}, {})
        (self.tree / 'src/x').write_text('mine\n')
        self.set_head(self.revision([first], {'src/x': 'theirs\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        (self.tree / 'src').rename(self.tree / 'lib')
        self.assertEqual(self.conflicts(), ['lib/x'])
        self.assertEqual(self.fails('commit', '-m', 'Moved'), CONFLICT)
        (self.tree / 'lib/x').write_text('both\n')
        self.playfs('commit', '-m', 'Moved', self.tree)
        self.assertEqual(self.head_texts(), {'lib/x': 'both\n'})

    def conflict_moved_to_lib(self):
        first = self.set_first({'src/x': 'x\n', 'src/y': 'y\n'}, {})
        (self.tree / 'src/x').write_text('mine\n')
        self.set_head(self.revision([first], {'src/x': 'theirs\n', 'src/y': 'y\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        (self.tree / 'src').rename(self.tree / 'lib')

    def assert_still_in_conflict(self):
        self.assertEqual(self.conflicts(), ['lib/x'])
        self.assertEqual(self.fails('commit', '-m', 'Moved'), CONFLICT)

    def save_by_rename(self, name, text):
        (self.tree / 'lib/tmp').write_text(text)
        (self.tree / 'lib/tmp').rename(self.tree / name)

    def test_an_editor_that_renames_over_a_file_takes_no_markers_out(self):
        self.conflict_moved_to_lib()
        marked = (self.tree / 'lib/x').read_text()
        self.save_by_rename('lib/x', 'edited\n' + marked)
        self.assert_still_in_conflict()
        (self.tree / 'lib/x').rename(self.tree / 'z')
        self.assert_still_in_conflict()
        self.save_by_rename('z', 'both\n')
        self.playfs('commit', '-m', 'Moved', self.tree)
        self.assertEqual(self.head_texts(), {'z': 'both\n', 'lib/y': 'y\n'})

    def test_an_editor_that_moves_a_file_aside_takes_no_markers_out(self):
        self.conflict_moved_to_lib()
        marked = (self.tree / 'lib/x').read_text()
        (self.tree / 'lib/x').rename(self.tree / 'lib/x~')
        (self.tree / 'lib/x').write_text('edited\n' + marked)
        (self.tree / 'lib/x~').unlink()
        self.assert_still_in_conflict()
        (self.tree / 'lib/x').unlink()
        self.assertEqual(self.conflicts(), [])

    def test_another_file_in_its_place_or_a_discard_takes_no_markers_out(self):
        self.conflict_moved_to_lib()
        (self.tree / 'src').mkdir()
        (self.tree / 'src/x').write_text('another\n')
        self.assert_still_in_conflict()
        self.playfs('discard', self.tree / 'src/x')
        self.assert_still_in_conflict()
        self.playfs('discard', self.tree / 'lib/x')
        self.assertEqual(self.conflicts(), [])

    def test_nor_one_that_moves_it_aside_for_another_file(self):
        self.conflict_moved_to_lib()
        (self.tree / 'lib/x').rename(self.tree / 'lib/x.bak')
        (self.tree / 'lib/x').write_text('another\n')
        self.command('cp', self.tree / 'lib/x.bak', self.tree / 'z')
        (self.tree / 'lib/x.bak').unlink()
        self.assert_markers_are_left_in('z')

    def conflict_in_x(self):
        first = self.set_first({'x': 'x\n', 'y': 'y\n'}, {})
        (self.tree / 'x').write_text('mine\n')
        self.set_head(self.revision([first], {'x': 'theirs\n', 'y': 'y\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['x'])
        return (self.tree / 'x').read_bytes()

    def assert_markers_are_left_in(self, copy):
        """And nowhere else."""
        self.assertEqual(self.conflicts(), [copy])
        self.assertEqual(self.fails('commit', '-m', 'Both'), CONFLICT)
        (self.tree / copy).write_text('without\n')
        self.assertEqual(self.conflicts(), [])
        self.playfs('commit', '-m', 'Both', self.tree)
        self.assertEqual(self.head_texts()[copy], 'without\n')

    def test_markers_in_a_copy_are_in_conflict_once_another_file_is_in_its_place(self):
        self.conflict_in_x()
        self.command('cp', self.tree / 'x', self.tree / 'copy')
        (self.tree / 'x').unlink()
        (self.tree / 'x').write_text('both\n')
        self.assert_markers_are_left_in('copy')

    def test_and_once_the_file_is_edited(self):
        self.conflict_in_x()
        self.command('cp', self.tree / 'x', self.tree / 'copy')
        (self.tree / 'x').write_text('both\n')
        self.assert_markers_are_left_in('copy')

    def test_and_once_the_file_is_discarded(self):
        self.conflict_in_x()
        self.command('cp', self.tree / 'x', self.tree / 'copy')
        self.playfs('discard', self.tree / 'x')
        self.assertEqual(self.staged(), ['copy'])
        self.assert_markers_are_left_in('copy')

    def test_a_copy_is_taken_as_it_is_where_that_is_said_or_discarded(self):
        self.conflict_in_x()
        for copy in ('one', 'other'):
            self.command('cp', self.tree / 'x', self.tree / copy)
        (self.tree / 'x').write_text('both\n')
        self.assertEqual(self.conflicts(), ['one', 'other'])
        self.playfs('discard', self.tree / 'one')
        self.assertEqual(self.conflicts(), ['other'])
        self.playfs('commit', '--resolved', '-m', 'Both', self.tree)
        self.assertEqual(sorted(self.head_texts()), ['other', 'x', 'y'])
        self.assertEqual(self.conflicts(), [])

    def test_half_of_the_markers_and_those_an_editor_saved_its_way_count(self):
        marked = self.conflict_in_x()
        lines = marked.decode().splitlines()
        still_marked = {
            'the first is gone': '\n'.join(lines[1:]).encode(),
            'the last is gone': '\n'.join(lines[:-1]).encode(),
            'byte order mark': b'\xef\xbb\xbf' + marked,
            'carriage returns': marked.replace(b'\n', b'\r'),
            'both line ends': marked.replace(b'\n', b'\r\n'),
            'indented': '\n'.join('\t  ' + line for line in lines).encode(),
            'UTF-16': marked.decode().encode('utf-16'),
        }
        for how, content in still_marked.items():
            (self.tree / 'x').write_bytes(content)
            self.assertEqual(self.conflicts(), ['x'], how)
        self.assertEqual(self.fails('commit', '-m', 'Both'), CONFLICT)
        (self.tree / 'x').write_text('Heading\n=======\n<<<<<<< theirs\n')
        self.assertEqual(self.conflicts(), [])

    def test_a_file_may_have_the_name_of_a_key_of_the_state(self):
        names = ['(manifest) k', '(state) k', '(state)/page']
        first = self.set_first({name: 'x\n' for name in names}, {'k': 1})
        for name in names:
            (self.tree / name).write_text('mine\n')
        state = self.tree.parent / 'state.json'
        state.write_text('{"k": 2}')
        self.set_head(self.revision([first], {name: 'theirs\n' for name in names}, {'k': 3}))
        self.assertEqual(self.fails('update'), CONFLICT)

        def conflicts():
            return [(each['path'], each['file']) for each in self.status()['conflicts']]

        files = [(name, True) for name in names]
        key = ('(state) k', False)
        self.assertEqual(conflicts(), [*files, key])
        self.assertEqual(self.fails('commit', '-m', 'Both'), CONFLICT)
        self.playfs('discard', self.tree / '(state) k')
        self.assertEqual(conflicts(), [files[0], files[2], key])
        (self.tree / '(manifest) k').write_text('both\n')
        (self.tree / '(state)').rename(self.tree / 'moved')
        (self.tree / '(state)').write_text('a file of that name\n')
        self.assertEqual(conflicts(), [('moved/page', True), key])
        (self.tree / 'moved/page').write_text('both\n')
        self.assertEqual(conflicts(), [key])
        self.assertEqual(self.fails('commit', '-m', 'Both'), CONFLICT)
        state.write_text('{"k": 4}')
        self.playfs('commit', '-m', 'Both', self.tree)
        self.assertEqual(self.head_texts(), {'(manifest) k': 'both\n', '(state) k': 'theirs\n', 'moved/page': 'both\n',
                                             '(state)': 'a file of that name\n'})

    def test_a_file_named_state_has_markers_like_any_other(self):
        first = self.set_first({'(state)': 'x\n'}, {'k': 1})
        (self.tree / '(state)').write_text('mine\n')
        self.set_head(self.revision([first], {'(state)': 'theirs\n'}, {'k': 2}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['(state)'])
        self.assertEqual(self.fails('commit', '-m', 'Mine'), CONFLICT)
        self.playfs('commit', '--resolved', '-m', 'Mine', self.tree)
        self.assertIn('>>>>>>>', self.head_texts()['(state)'])

    def clash_in_moved_folder(self):
        first = self.set_first({'src/d': 'd\n', 'y': 'y\n'}, {})
        (self.tree / 'src/d').unlink()
        (self.tree / 'src/d').mkdir()
        (self.tree / 'src/d/in').write_text('ours\n')
        self.set_head(self.revision([first], {'src/d': 'theirs\n', 'y': 'y\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['src/d'])
        (self.tree / 'src').rename(self.tree / 'lib')
        (self.tree / 'deep').mkdir()
        (self.tree / 'lib').rename(self.tree / 'deep/lib')

    def test_what_was_put_beside_a_directory_is_moved_with_the_folder(self):
        self.clash_in_moved_folder()
        self.assertEqual(self.conflicts(), ['deep/lib/d'])
        refused = self.playfs('commit', '-m', 'Moved', self.tree, check=False)
        self.assertEqual(refused.returncode, CONFLICT)
        self.assertIn('move or delete deep/lib/d.head', refused.stderr)
        self.remount()
        self.assertEqual(self.conflicts(), ['deep/lib/d'])
        (self.tree / 'deep/lib/d.head').unlink()
        self.playfs('commit', '-m', 'Moved', self.tree)
        self.assertEqual(self.head_texts(), {'deep/lib/d/in': 'ours\n', 'y': 'y\n'})

    def test_also_where_two_folders_change_places(self):
        self.clash_in_moved_folder()
        (self.tree / 'other').mkdir()
        self.exchange(self.tree / 'deep', self.tree / 'other')
        self.assertEqual(self.conflicts(), ['other/lib/d'])
        self.assertEqual(self.fails('commit', '-m', 'Moved'), CONFLICT)
        self.exchange(self.tree / 'other/lib', self.tree / 'deep')
        self.assertEqual(self.conflicts(), ['deep/d'])

    def test_nor_does_moving_a_folder_decide_a_conflict_without_bytes_of_its_own(self):
        first = self.set_first({'src/d': 'd\n', 'src/e': 'e\n'}, {})
        (self.tree / 'src/d').unlink()
        self.set_head(self.revision([first], {'src/d': 'theirs\n', 'src/e': 'e\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.remount()
        (self.tree / 'src').rename(self.tree / 'lib')
        self.assertEqual(self.conflicts(), ['lib/d'])
        self.assertEqual(self.fails('commit', '-m', 'Moved'), CONFLICT)

    def test_nor_does_it_decide_where_there_can_be_no_markers(self):
        first = self.set_first({'src/x': 'base\n', 'src/y': 'y\n'}, {})
        (self.tree / 'src/x').write_bytes(b'\0mine')
        self.set_head(self.revision([first], {'src/x': 'theirs\n', 'src/y': 'y\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertEqual(self.conflicts(), ['src/x'])
        (self.tree / 'src').rename(self.tree / 'lib')
        self.assertEqual(self.conflicts(), ['lib/x'])
        self.assertEqual(self.fails('commit', '-m', 'Moved'), CONFLICT)
        (self.tree / 'lib/x').write_text('decided\n')
        self.playfs('commit', '-m', 'Moved', self.tree)
        self.assertEqual(self.head_texts(), {'lib/x': 'decided\n', 'lib/y': 'y\n'})


if __name__ == '__main__':
    fixture.main()
