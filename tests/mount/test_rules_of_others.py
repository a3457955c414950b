#!/usr/bin/env python3
"""Others change the ignore rules, and nothing local-only is published or deleted because of it; what was staged before
stays staged."""

import shutil

import fixture
import revisions


class RulesOfOthers(revisions.Revisions):
    def setUp(self):
        super().setUp()
        self.tree = self.work(self.mount(self.api.origin, 'ann', options=('refresh=1',)))
        self.bob = self.work(self.mount(self.api.origin, 'bob', options=('refresh=1',)))

    def publish_rules(self):
        (self.bob / 'sub').mkdir()
        (self.bob / '.gitignore').write_text('.env\nnotes/\nbuild/\n')
        (self.bob / 'sub/.gitignore').write_text('*.key\n')
        (self.bob / 'x').write_text('1\n')
        self.playfs('commit', '-m', 'rules', self.bob, who='bob')
        self.eventually((self.tree / 'x').exists, 'the tree follows')

    def keep_here(self):
        (self.tree / '.env').write_text('PASSWORD=1\n')
        (self.tree / 'sub/a.key').write_text('PRIVATE KEY\n')
        for folder in ('notes', 'build'):
            (self.tree / folder).mkdir()
            (self.tree / folder / 'n').write_text('weeks of notes\n')
        self.assertEqual(self.staged(), [])

    def change_rules(self):
        (self.bob / '.gitignore').write_text('build/\n')
        (self.bob / 'sub/.gitignore').unlink()
        self.playfs('commit', '-m', 'tidy', self.bob, who='bob')

    def published(self):
        fresh = self.work(self.mount(self.api.origin, f'fresh{len(self.mounts)}'))
        return sorted(path for path, entry in self.describe(fresh).items() if entry != 'folder')

    def expect_all_is_here(self):
        self.assertEqual((self.tree / '.env').read_text(), 'PASSWORD=1\n')
        self.assertEqual((self.tree / 'sub/a.key').read_text(), 'PRIVATE KEY\n')
        for folder in ('notes', 'build'):
            self.assertEqual((self.tree / folder / 'n').read_text(), 'weeks of notes\n')

    def expect_in_conflict(self):
        self.assertEqual(sorted(self.conflicts()), ['.env', 'notes', 'sub/a.key'])

    def test_an_update_leaves_it_to_the_user(self):
        self.publish_rules()
        self.keep_here()
        self.change_rules()
        self.assertEqual(self.fails('update'), 3)
        self.expect_in_conflict()
        (self.tree / 'x').write_text('2\n')
        self.assertEqual(self.fails('commit', '-m', 'Fix x'), 3)
        self.assertEqual(self.published(), ['.gitignore', 'x'])
        # By a rule of one's own, by moving it away, or by --resolved.
        (self.tree / '.gitignore').write_text('build/\n.env\n')
        shutil.move(self.tree / 'sub/a.key', self.home / 'a.key')
        self.assertEqual(self.conflicts(), ['notes'])
        self.playfs('commit', '-m', 'Fix x', '--resolved', self.tree)
        self.assertEqual(self.published(), ['.gitignore', 'notes/n', 'x'])

    def test_a_clean_tree_does_not_follow_into_it(self):
        self.publish_rules()
        self.keep_here()
        base = self.status()['base']
        self.change_rules()
        self.eventually(lambda: self.status()['head'] == self.head(), 'the news is here')
        self.assertEqual(self.status()['base'], base)
        self.assertEqual(self.staged(), [])
        (self.tree / 'x').write_text('2\n')
        self.fails('commit', '-m', 'Fix x')
        self.assertEqual(self.published(), ['.gitignore', 'x'])
        self.expect_all_is_here()

    def test_a_commit_that_merges_leaves_it_to_the_user(self):
        self.publish_rules()
        self.keep_here()
        (self.tree / 'x').write_text('2\n')
        self.change_rules()
        self.fails('commit', '-m', 'Fix x')
        self.expect_in_conflict()
        (self.tree / 'x').write_text('3\n')
        self.assertEqual(self.fails('commit', '-m', 'Fix x again'), 3)
        self.assertEqual(self.published(), ['.gitignore', 'x'])
        self.expect_all_is_here()

    def test_a_discard_keeps_it(self):
        self.publish_rules()
        self.keep_here()
        (self.tree / 'x').write_text('typo\n')
        self.change_rules()
        self.assertEqual(self.fails('update'), 3)
        self.playfs('discard', self.tree)
        self.assertEqual((self.tree / 'x').read_text(), '1\n')
        self.expect_all_is_here()
        self.expect_in_conflict()
        self.playfs('discard', self.tree / '.env')
        self.assertFalse((self.tree / '.env').exists(), 'by its own name it goes')

    def test_a_discard_of_own_rules_keeps_what_those_of_the_base_ignore(self):
        self.publish_rules()
        self.keep_here()
        (self.tree / '.gitignore').write_text('# tidied\n')
        (self.tree / 'new').write_text('n\n')
        self.playfs('discard', self.tree)
        self.expect_all_is_here()
        self.assertFalse((self.tree / 'new').exists())
        self.assertEqual(self.staged(), [])

    def test_what_is_staged_stays_staged(self):
        (self.bob / 'table.csv').write_text('a day of work\n')
        (self.bob / 'x').write_text('1\n')
        self.playfs('commit', '-m', 'x', self.bob, who='bob')
        self.eventually((self.tree / 'x').exists, 'the tree follows')
        (self.tree / 'data').mkdir()
        (self.tree / 'table.csv').rename(self.tree / 'data/table.csv')
        (self.tree / 'data/work.csv').write_text('another day of work\n')
        (self.bob / '.gitignore').write_text('data/\n')
        self.playfs('commit', '-m', 'rules', self.bob, who='bob')
        self.playfs('update', self.tree)
        self.playfs('commit', '-m', 'Move the table', self.tree)
        self.assertEqual(self.published(), ['.gitignore', 'data/table.csv', 'data/work.csv', 'x'])


class Linked(revisions.Revisions):
    """A symbolic link named .gitignore has no rules, not even if its target reads like those that were there."""

    def setUp(self):
        super().setUp()
        self.tree = self.work(self.mount(self.api.origin, options=('refresh=1',)))

    def follow(self, rules):
        first = self.revision([], {'.gitignore': rules, 'x': 'x\n'})
        self.set_head(first)
        self.eventually(lambda: self.status()['base'] == first, 'the tree follows head')
        return first

    def replace_rules(self, first, rules):
        self.set_head(self.revision([first], {'.gitignore': rules, 'x': 'x\n'}))

    def test_a_link_in_place_of_the_rules_publishes_nothing_local_only(self):
        first = self.follow('.env')
        (self.tree / '.env').write_text('PASSWORD=1\n')
        self.replace_rules(first, {'inline': '.env', 'm': '120000'})
        self.eventually(lambda: self.status()['head'] == self.head(), 'the news is here')
        self.assertEqual((self.status()['base'], self.staged()), (first, []), 'a clean tree does not follow into it')
        (self.tree / 'mine').write_text('mine\n')
        self.assertEqual(self.fails('update'), 3)
        self.assertEqual(self.conflicts(), ['.env'])
        self.assertEqual(self.fails('commit', '-m', 'Mine'), 3)

    def test_nor_does_a_commit_that_merges_it(self):
        first = self.follow('.env')
        (self.tree / '.env').write_text('PASSWORD=1\n')
        (self.tree / 'mine').write_text('mine\n')
        self.replace_rules(first, {'inline': '.env', 'm': '120000'})
        self.fails('commit', '-m', 'Mine')
        self.assertEqual(self.conflicts(), ['.env'])
        (self.tree / 'mine').write_text('more\n')
        self.assertEqual(self.fails('commit', '-m', 'Mine'), 3)
        self.assertEqual(sorted(self.head_texts()), ['.gitignore', 'mine', 'x'])

    def test_rules_in_place_of_a_link_take_nothing_out_of_a_commit(self):
        first = self.follow({'inline': '*.log', 'm': '120000'})
        (self.tree / 'own.log').write_text('a day of work\n')
        self.replace_rules(first, '*.log')
        self.playfs('update', self.tree)
        self.assertEqual(self.staged(), ['own.log'])
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertEqual(sorted(self.head_texts()), ['.gitignore', 'own.log', 'x'])


class MovedFolder(revisions.Revisions):
    def test_moving_the_folder_of_a_local_only_file_does_not_publish_it(self):
        self.tree = self.work(self.mount(self.api.origin, options=('refresh=1',)))
        first = self.revision([], {'.gitignore': '.env\n', 'cfg/a': 'a\n'})
        self.set_head(first)
        self.eventually(lambda: self.status()['base'] == first, 'the tree follows head')
        (self.tree / 'cfg/.env').write_text('PASSWORD=1\n')
        (self.tree / 'mine').write_text('mine\n')
        self.set_head(self.revision([first], {'.gitignore': '# none\n', 'cfg/a': 'a\n'}))
        self.assertEqual(self.fails('update'), 3)
        (self.tree / 'cfg').rename(self.tree / 'conf')
        self.assertEqual(self.conflicts(), ['conf/.env'])
        self.assertEqual(self.fails('commit', '-m', 'Moved'), 3)
        (self.tree / '.gitignore').write_text('.env\n')
        self.playfs('commit', '-m', 'Moved', self.tree)
        self.assertEqual(sorted(self.head_texts()), ['.gitignore', 'conf/a', 'mine'])


if __name__ == '__main__':
    fixture.main()
