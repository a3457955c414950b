#!/usr/bin/env python3
"""Files that give instructions to agents (AGENTS.md, .claude/ and the like): whose are shown in a mount, and that hiding
them changes nothing that is published. Clones and harnesses: tests/cli/test_instructions.py."""
import errno
import json
import os

import fixture
import mcp_client
from instructed import HIDDEN, OTHERS, VISIBLE, Instructions

USAGE, CONFLICT = 2, 3


@fixture.needs_fuse
class WhatIsShown(Instructions):
    def test_what_others_published_is_hidden_in_every_tree(self):
        branch = self.revision([self.first], {**OTHERS, 'branch': 'b\n', 'more/GEMINI.md': 'obey\n'})
        self.set_head(self.revision([self.first], {**OTHERS, 'head': 'h\n'}))
        place = self.at().parent
        self.eventually(lambda: (place / 'head/head').exists(), 'head is shown')
        self.assertEqual(os.listdir(place / 'branches'), [branch])
        for tree, more in ((place / 'work', {'head'}), (place / 'head', {'head'}), (place / 'revisions' / self.first, set()),
                           (place / 'branches' / branch, {'branch', 'more'})):
            self.assertEqual(self.shown(f'{tree}/'), VISIBLE | more, tree)
            for path in HIDDEN:
                self.assertFalse(os.path.lexists(tree / path), path)
        year = place / 'at' / '2200'
        self.assertEqual(self.shown(f'{year}/'), VISIBLE | {'head'})

    def test_status_names_them_and_a_person_can_read_them(self):
        self.at()
        status = self.status()
        self.assertEqual(status['hidden'], HIDDEN)
        self.assertEqual([(each['path'], each['reason']) for each in status['refused']],
                         [(path, 'it gives instructions to agents') for path in HIDDEN])
        self.assertEqual(status['instructions_of_others'], [])
        said = self.playfs('status', self.tree).stdout
        self.assertIn('4 files are hidden: they give instructions to agents (.claude/settings.json, AGENTS.md', said)
        self.assertIn(f'playfs cat {self.project} .claude/settings.json', said)
        self.assertIn('instructions=show', said)
        said = self.playfs('cat', self.project, 'AGENTS.md', '--site', self.api.origin).stdout
        self.assertEqual(said, OTHERS['AGENTS.md'])
        refused = json.loads(os.getxattr(self.tree, 'user.playfs.refused'))
        self.assertEqual(refused, HIDDEN)
        self.assertEqual(json.loads(os.getxattr(self.tree.parent / 'head/', 'user.playfs.refused')), HIDDEN)

    def test_they_are_shown_where_that_is_asked_for(self):
        self.at('instructions=show')
        for tree in self.tree, self.tree.parent / 'head':
            self.assertEqual({path: (tree / path).read_text() for path in OTHERS}, OTHERS)
        status = self.status()
        self.assertEqual((status['hidden'], status['refused']), ([], []))
        self.assertEqual(status['instructions_of_others'], HIDDEN)
        self.assertIn('4 files by others give instructions to agents', self.playfs('status', self.tree).stdout)

    def test_config_environment_and_mistakes(self):
        config = self.home / 'ann/config/playfs/config.toml'
        config.parent.mkdir(parents=True)
        config.write_text('instructions = "show"\n')
        self.assertTrue((self.at() / 'AGENTS.md').exists())
        self.assertFalse((self.remount('instructions=hide') / 'AGENTS.md').exists())
        config.write_text(f'instructions = "show"\n[sites."{self.api.origin}"]\ninstructions = "hide"\n')
        self.assertFalse((self.remount() / 'AGENTS.md').exists())
        self.mounted.unmount()
        for option in 'instructions=maybe', 'instructions=', 'instructions':
            said = self.playfs('mount', self.api.origin, self.home / 'ann-0', '-o', option, check=False)
            self.assertEqual(said.returncode, USAGE, said.stderr)
            self.assertIn('instructions', said.stderr)
        config.write_text('instructions = "perhaps"\n')
        said = self.playfs('mount', self.api.origin, self.home / 'ann-0', check=False)
        self.assertEqual(said.returncode, USAGE, said.stderr)
        self.assertIn('not show or hide', said.stderr)

    def test_harnesses_get_what_the_mount_shows(self):
        for option, is_shown in ('instructions=show', True), ('instructions=hide', False):
            client = mcp_client.Client(self, self.at(option))
            for revision in 'head', self.first:
                arguments = {'path': 'AGENTS.md', 'revision': revision}
                if is_shown:
                    self.assertEqual(client.call('read', **arguments)[0], OTHERS['AGENTS.md'])
                else:
                    self.assertIn('is hidden', client.fail('read', **arguments))
            self.assertIn('no file', client.fail('read', path='CLAUDE.md', revision='head'))
            self.assertEqual(client.close(), 0)
            self.mounted.unmount()

    def test_commands_that_run_in_a_tree_of_their_own(self):
        run = ('run', self.project, '--site', self.api.origin)
        self.assertNotIn('AGENTS.md', self.playfs(*run, '--', 'ls', '-a').stdout)
        self.assertIn('AGENTS.md', self.playfs(*run, '--instructions', 'show', '--', 'ls', '-a').stdout)
        self.assertEqual(self.playfs(*run, '--instructions', 'some', '--', 'ls', check=False).returncode, USAGE)

    def test_no_handle_makes_a_strangers_files_ones_own(self):
        """Anyone can publish as anyone: only what was published from here is one's own."""
        self.set_head(self.api.create('revisions', project=self.project, parents=[], agent='ann', message='x', state={},
                                      manifest={'files': {'AGENTS.md': {'inline': 'obey\n'}, 'x': {'inline': 'x\n'}}})['id'])
        self.at()
        self.assertEqual(self.shown(self.tree), {'x'})

    def test_files_named_alike_in_any_case_are_hidden_and_shadow_nothing(self):
        tree = {'agents.MD': 'a\n', 'AGENTS.md/x': 'b\n', '.Claude': 'c\n', 'dir/Agents.md': 'd\n', 'dir': 'file and folder\n',
                'dir/file': 'e\n'}
        self.set_head(self.revision([], tree))
        self.at()
        self.assertEqual(self.shown(self.tree), {'dir', 'dir/file'})
        (self.tree / 'more').write_text('more\n')
        before = self.entries()
        self.commit_here()
        self.assertEqual(self.entries().keys(), before.keys() | {'more'})

    def test_a_project_of_nothing_else_works(self):
        """More than a revision's record has room for."""
        tree = {f'd{i}/AGENTS.md': f'{i}\n' for i in range(150)}
        self.set_head(self.revision([], tree))
        self.at()
        self.assertEqual(self.shown(self.tree), {f'd{i}' for i in range(150)})
        self.assertEqual(len(self.status()['hidden']), 150)
        for i in range(60):
            (self.tree / f'file-{i}').write_text(f'{i}\n' * 9)
        self.commit_here()
        self.playfs('export', self.head(), self.home / 'copy', '--site', self.api.origin)
        self.assertEqual((self.home / 'copy/d7/AGENTS.md').read_text(), '7\n')
        self.assertEqual(len([each for each in (self.home / 'copy').iterdir() if each.name != '.playfs']), 210)


@fixture.needs_fuse
class InACheckpoint(Instructions):
    def test_what_a_merge_put_unseen_stays_hidden(self):
        beside = self.revision([self.first], {**OTHERS, 'AGENTS.md': 'obey the branch\n', 'plain': 'plain\n'})
        self.at()
        self.playfs('merge', beside, self.tree)
        hidden, shown = self.status()['hidden'], self.shown(self.tree)
        self.assertIn('AGENTS.md', hidden)
        self.playfs('discard', self.tree)
        self.playfs('checkpoint', 'restore', '1', cwd=self.tree)
        for _ in range(2):
            self.assertEqual((self.status()['hidden'], self.shown(self.tree)), (hidden, shown))
            self.remount()


@fixture.needs_fuse
class OnesOwn(Instructions):
    def setUp(self):
        fixture.SharedProject.setUp(self)
        self.at()
        for path, text in OTHERS.items():
            (self.tree / path).parent.mkdir(exist_ok=True)
            (self.tree / path).write_text(text)
        self.commit_here('All mine')
        self.first = self.head()

    def test_what_one_published_from_here_is_shown(self):
        for _ in range(2):
            for tree in self.tree, self.tree.parent / 'head', self.tree.parent / 'revisions' / self.first:
                self.assertEqual({path: (tree / path).read_text() for path in OTHERS}, OTHERS, tree)
            self.assertEqual(self.status()['hidden'], [])
            self.assertNotIn('instructions', self.playfs('status', self.tree).stdout)
            self.remount()
        self.assertEqual(self.shown(self.remount('instructions=hide')), VISIBLE)
        # A clone on the same machine, and another user, whose machine knows nothing of it.
        self.playfs('clone', self.project, self.home / 'clone', '--site', self.api.origin)
        self.assertEqual((self.home / 'clone/AGENTS.md').read_text(), OTHERS['AGENTS.md'])
        self.assertEqual(self.shown(self.at(who='bob')), VISIBLE)

    def test_it_costs_no_request(self):
        self.remount('offline')
        for tree in self.tree, self.tree.parent / 'head':
            self.assertEqual((tree / 'AGENTS.md').read_text(), OTHERS['AGENTS.md'])

    def test_when_others_join_only_theirs_is_hidden(self):
        theirs = {**OTHERS, '.claude/settings.json': 'their hooks\n', 'new/AGENTS.md': 'obey me\n'}
        self.set_head(self.revision([self.first], theirs))
        self.eventually((self.tree / 'new').is_dir, 'the tree follows head')
        for round in range(2):
            self.assertEqual((self.tree / 'AGENTS.md').read_text(), OTHERS['AGENTS.md'])
            self.assertFalse((self.tree / '.claude').exists())
            self.assertEqual(os.listdir(self.tree / 'new'), [])
            self.assertEqual(self.status()['hidden'], ['.claude/settings.json', 'new/AGENTS.md'])
            self.remount()

    def test_what_is_being_edited_stays_when_others_change_it(self):
        (self.tree / 'AGENTS.md').write_text('mine, being edited\n')
        self.set_head(self.revision([self.first], {**OTHERS, 'AGENTS.md': 'theirs\n', 'src/CLAUDE.md': 'theirs\n'}))
        self.assertEqual(self.fails('update'), CONFLICT)
        self.assertIn('mine, being edited', (self.tree / 'AGENTS.md').read_text())
        self.assertEqual(self.conflicts(), ['AGENTS.md'])
        (self.tree / 'AGENTS.md').write_text('resolved\n')
        self.commit_here()
        self.assertEqual(self.head_texts(), {**OTHERS, 'AGENTS.md': 'resolved\n', 'src/CLAUDE.md': 'theirs\n'})
        self.assertEqual((self.remount() / 'AGENTS.md').read_text(), 'resolved\n')
        self.assertFalse((self.tree / 'src/CLAUDE.md').exists())

    def test_a_lost_cache_hides_in_revisions_what_the_work_tree_still_shows(self):
        self.mounted.unmount()
        self.command('rm', '-rf', self.home / 'ann/cache')
        self.at()
        self.assertEqual((self.tree / 'AGENTS.md').read_text(), OTHERS['AGENTS.md'])
        self.assertEqual((self.tree.parent / 'head/AGENTS.md').read_text(), OTHERS['AGENTS.md'], 'the work tree told')

    def test_an_import_is_ones_own(self):
        source = self.home / 'source'
        source.mkdir()
        (source / 'CLAUDE.md').write_text('mine\n')
        self.project = json.loads(self.playfs('import', source, '--name', 'imported', '--site', self.api.origin,
                                              '--json').stdout)['project']
        self.tree = self.work(self.mounted)
        self.eventually(lambda: (self.tree / 'CLAUDE.md').exists(), 'it is shown')


@fixture.needs_fuse
class WhatIsPublished(Instructions):
    def setUp(self):
        super().setUp()
        # With what other clients may write into an entry.
        files = {path: {'inline': text, 'x-mode': [1, 2]} for path, text in OTHERS.items()}
        self.first = self.revision([], files)
        self.set_head(self.first)
        self.before = self.entries()

    def test_commits_carry_them_forward(self):
        self.at()
        (self.tree / 'src/x.c').write_text('int y;\n')
        (self.tree / 'only/mine').write_text('mine\n')
        self.commit_here()
        self.assert_carried(self.before)
        self.assertEqual(self.head_texts(), {**OTHERS, 'src/x.c': 'int y;\n', 'only/mine': 'mine\n'})

    def test_updates_bring_what_others_did_to_them(self):
        self.at()
        (self.tree / 'mine').write_text('mine\n')
        theirs = {**OTHERS, 'AGENTS.md': 'changed\n', 'new/AGENTS.md': 'new\n'}
        del theirs['src/CLAUDE.md']
        self.set_head(self.revision([self.first], theirs))
        self.playfs('update', self.tree)
        self.assertEqual(self.staged(), ['mine'])
        self.assertEqual(self.status()['hidden'], ['.claude/settings.json', 'AGENTS.md', 'new/AGENTS.md', 'only/.envrc'])
        self.commit_here()
        self.assertEqual(self.head_texts(), {**theirs, 'mine': 'mine\n'})
        # And so do commits that merge.
        (self.tree / 'mine').write_text('again\n')
        theirs = {**theirs, 'mine': 'mine\n', 'AGENTS.md': 'once more\n'}
        del theirs['new/AGENTS.md']
        self.set_head(self.revision([self.head()], theirs))
        self.commit_here()
        self.assertEqual(self.head_texts(), {**theirs, 'mine': 'again\n'})

    def test_a_branch_is_merged_unseen(self):
        branch = self.revision([self.first], {**OTHERS, 'AGENTS.md': 'of the branch\n', 'x': 'branch\n'})
        self.set_head(self.revision([self.first], {**OTHERS, 'src/CLAUDE.md': 'of head\n', 'x': 'head\n'}))
        self.at()
        self.eventually((self.tree / 'x').exists, 'the tree is at head')
        self.assertEqual(self.playfs('merge', branch, self.tree, check=False).returncode, CONFLICT)
        for _ in range(2):
            self.assertEqual(self.conflicts(), ['x'])
            self.assertEqual(self.shown(self.tree), VISIBLE | {'x'})
            self.remount('instructions=hide')
        (self.tree / 'x').write_text('both\n')
        self.commit_here()
        self.assertEqual(self.head_texts(), {**OTHERS, 'AGENTS.md': 'of the branch\n', 'src/CLAUDE.md': 'of head\n', 'x': 'both\n'})
        self.assertEqual(self.shown(self.tree), VISIBLE | {'x'})

    def test_one_in_conflict_is_shown_to_be_resolved(self):
        branch = self.revision([self.first], {**OTHERS, 'AGENTS.md': 'of the branch\n'})
        self.set_head(self.revision([self.first], {**OTHERS, 'AGENTS.md': 'of head\n'}))
        self.at()
        self.eventually(lambda: self.status()['base'] == self.head(), 'the tree is at head')
        self.assertEqual(self.playfs('merge', branch, self.tree, check=False).returncode, CONFLICT)
        self.assertIn('<<<<<<<', (self.tree / 'AGENTS.md').read_text())
        (self.tree / 'AGENTS.md').write_text('resolved\n')
        self.commit_here()
        self.assertEqual(self.head_texts(), {**OTHERS, 'AGENTS.md': 'resolved\n'})

    def test_directories_that_hold_them(self):
        self.at()
        said = self.command('rm', '-r', self.tree / 'src', check=False)
        self.assertIn('not empty', said.stderr)
        self.assertIn('files that are hidden', (self.mounted.directory / '.playfs/errors.ndjson').read_text())
        self.assertEqual(self.staged(), ['src/x.c'])
        self.commit_here()
        self.assert_carried(self.before)
        (self.tree / 'only').rename(self.tree / 'moved')
        self.commit_here()
        after = self.entries()
        self.assertEqual(after['moved/.envrc']['inline'], OTHERS['only/.envrc'], 'it moves with its directory')
        self.assertNotIn('only/.envrc', after)
        self.assert_carried(self.before, ['AGENTS.md', '.claude/settings.json', 'src/CLAUDE.md'])
        self.assertEqual(self.shown(self.tree), {'README.md', 'src', 'moved'})

    def test_discard_restore_and_revert_leave_them(self):
        second = self.revision([self.first], {**OTHERS, 'AGENTS.md': 'second\n', 'src/x.c': 'second\n'})
        self.set_head(second)
        self.at()
        (self.tree / 'src/x.c').write_text('mine\n')
        self.playfs('discard', self.tree)
        self.playfs('restore', '--from', self.first, self.tree)
        self.assertEqual(self.staged(), ['src/x.c'])
        self.playfs('discard', self.tree)
        self.playfs('revert', second, cwd=self.tree)
        self.assertEqual(self.staged(), ['src/x.c'])
        self.assertEqual(self.shown(self.tree), VISIBLE)
        before = self.entries()
        self.commit_here()
        self.assert_carried(before)
        self.assertEqual(self.playfs('diff', cwd=self.tree).stdout, '')

    def test_nothing_is_put_in_their_place_unaware(self):
        self.at()
        for path in 'AGENTS.md', 'src/CLAUDE.md', '.claude':
            with self.assertRaises(OSError) as refused:
                if path == '.claude':
                    (self.tree / path).mkdir()
                else:
                    (self.tree / path).write_text('mine\n')
            self.assertEqual(refused.exception.errno, errno.EPERM, path)
        with self.assertRaises(PermissionError):
            (self.tree / 'README.md').rename(self.tree / 'AGENTS.md')
        self.assertIn('hidden here: it gives instructions', (self.mounted.directory / '.playfs/errors.ndjson').read_text())
        # Elsewhere one's own is a file like any other, before and after it is published.
        (self.tree / 'only/AGENTS.md').write_text('mine\n')
        self.assertEqual(self.staged(), ['only/AGENTS.md'])
        self.commit_here()
        self.assert_carried(self.before)
        for _ in range(2):
            self.assertEqual((self.tree / 'only/AGENTS.md').read_text(), 'mine\n')
            self.remount()

    def test_what_was_staged_while_shown_stays_and_is_published(self):
        self.at('instructions=show')
        (self.tree / 'AGENTS.md').write_text('edited\n')
        (self.tree / '.claude/mine').write_text('mine\n')
        (self.tree / 'only/.envrc').unlink()
        staged = ['.claude/mine', 'AGENTS.md', 'only/.envrc']
        for options in ('instructions=hide',), ('instructions=show',), (), ('instructions=hide',):
            self.assertEqual(self.staged(), staged)
            self.assertEqual((self.tree / 'AGENTS.md').read_text(), 'edited\n')
            self.assertIn('mine', os.listdir(self.tree / '.claude'))
            self.remount(*options)
        self.assertEqual(os.listdir(self.tree / '.claude'), ['mine'])
        self.assertEqual(self.status()['hidden'], ['.claude/settings.json', 'src/CLAUDE.md'])
        # Editors replace a file by renaming: what is visible can be.
        (self.tree / 'AGENTS.md').rename(self.tree / 'AGENTS.md~')
        (self.tree / 'AGENTS.md').write_text('edited again\n')
        (self.tree / 'AGENTS.md~').unlink()
        self.commit_here()
        expected = {**OTHERS, 'AGENTS.md': 'edited again\n', '.claude/mine': 'mine\n'}
        del expected['only/.envrc']
        self.assertEqual(self.head_texts(), expected)
        self.assert_carried(self.before, ['.claude/settings.json', 'src/CLAUDE.md'])
        self.assertEqual((self.tree / 'AGENTS.md').read_text(), 'edited again\n', 'nothing vanishes by being published')

    def test_two_mounts_of_one_machine_may_differ(self):
        shows = self.mount(self.api.origin, 'ann', ('refresh=1', 'instructions=show', 'ro'))
        hides = self.mount(self.api.origin, 'ann', ('refresh=1', 'instructions=hide', 'ro'))
        for _ in range(2):
            for place, expected in (shows, True), (hides, False):
                for tree in 'head', 'work', f'revisions/{self.first}':
                    at = place.directory / 'projects' / self.project / tree
                    self.assertEqual((at / 'AGENTS.md').exists(), expected, tree)
                    self.assertEqual('AGENTS.md' in os.listdir(at), expected)

    def test_fsck_and_export_see_all(self):
        self.at()
        self.playfs('fsck', self.project, '--site', self.api.origin)
        self.playfs('export', self.first, self.home / 'copy', '--site', self.api.origin)
        self.assertEqual((self.home / 'copy/.claude/settings.json').read_text(), OTHERS['.claude/settings.json'])
        (self.home / 'copy/README.md').write_text('edited\n')
        self.playfs('import', self.home / 'copy', '--project', self.project, '--site', self.api.origin)
        self.assertEqual(self.head_texts(), {**OTHERS, 'README.md': 'edited\n'})


if __name__ == '__main__':
    fixture.main()
