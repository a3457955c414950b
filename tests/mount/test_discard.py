#!/usr/bin/env python3
"""`playfs discard`: by path, all or nothing, and with the reason for its own failure."""
import hashlib
import json
import os
import re
import subprocess
import time

import projects
import proxy
import revisions
import fixture
from slow_project import SlowProject, text

NOT_FOUND = 5
LARGE, OTHER = (600 * (letter * 59 + '\n') for letter in 'ab')  # several chunks


class Discard(SlowProject):
    def setUp(self):
        super().setUp()
        self.mounted = self.begin({'file_chunks': 1})
        self.tree = self.work(self.mounted)

    def staged(self):
        return sorted(each['path'] for each in self.status(self.mounted)['staged'])

    def published(self):
        """A tree at head with a file, a link and folders."""
        (self.tree / 'd/deep').mkdir(parents=True)
        for path in ('file', 'd/inner', 'd/deep/most'):
            (self.tree / path).write_text(f'{path}\n')
        (self.tree / 'link').symlink_to('file')
        (self.tree / 'to-folder').symlink_to('d')
        self.playfs('commit', '-m', 'First', self.tree)

    def discard(self, *paths, cwd=None, **options):
        return self.playfs('discard', '--json', *paths, cwd=cwd or self.tree, **options)

    def count(self, *paths, cwd=None):
        return json.loads(self.discard(*paths, cwd=cwd).stdout)['discarded']

    def error(self, *paths, cwd=None):
        done = self.discard(*paths, cwd=cwd, check=False)
        return done.returncode, json.loads(done.stdout)['error']

    def test_what_is_being_published_stays_and_nothing_is_touched(self):
        (self.tree / 'big').write_text(text(60_000, 1))
        (self.tree / 'link').symlink_to('nowhere')
        (self.tree / 'gone').mkdir()
        (self.tree / 'gone/file').write_text('x')
        self.commit_without_waiting(self.mounted, 'Too much at once')
        os.unlink(self.tree / 'gone/file')
        os.rmdir(self.tree / 'gone')
        (self.tree / 'mine').write_text('mine\n')
        before = self.describe(self.tree), os.stat(self.tree).st_mtime_ns
        for paths in (['link'], ['gone/file'], ['mine', 'link'], ['mine', '.']):
            code, error = self.error(*paths)
            self.assertEqual((code, error['code'], error['retryable']), (1, 'busy', True), paths)
            self.assertIn('is being published', error['message'])
            self.assertEqual((self.describe(self.tree), os.stat(self.tree).st_mtime_ns), before, paths)
        self.assertEqual(self.count('mine'), 1)
        self.assertFalse((self.tree / 'mine').exists())

    def requests(self):
        """How many discards the mount was asked for."""
        metrics = (self.mounted.directory / '.playfs/metrics').read_text()
        found = re.search(r'^playfs_operations_total\{operation="discard"\} (\d+)$', metrics, re.M)
        return int(found[1]) if found else 0

    def test_many_paths_are_one_request(self):
        self.published()
        names = [f'new-{number:03}' for number in range(400)]
        for name in names:
            (self.tree / name).write_text('new\n')
        (self.tree / 'stays').write_text('new\n')
        before = self.requests()
        done = json.loads(self.discard(*names[:300], 'file', 'd', 'd/inner', names[0]).stdout)
        self.assertEqual(done['discarded'], 300)
        self.assertEqual(self.requests() - before, 2, 'one that tries, and one that does it')
        self.assertEqual(self.staged(), [*names[300:], 'stays'])
        # Of several requests, all paths are in one checkpoint.
        self.playfs('checkpoint', 'restore', str(done['checkpoint']), cwd=self.tree)
        longer = [f'{"x" * 200}-{number}' for number in range(60)]
        for name in longer:
            (self.tree / name).write_text('new\n')
        before, kept = self.requests(), len(self.status(self.mounted)['checkpoints'])
        self.assertEqual(self.count(*names, *longer), 460)
        self.assertLess(self.requests() - before, 20)
        self.assertEqual(len(self.status(self.mounted)['checkpoints']), kept + 1)
        self.assertEqual(self.staged(), ['stays'])

    def test_one_path_of_many_that_is_not_there_changes_nothing_and_is_named(self):
        self.published()
        for name in ('a', 'b'):
            (self.tree / name).write_text('new\n')
        code, error = self.error('a', 'nowhere', 'b')
        self.assertEqual((code, error['code']), (NOT_FOUND, 'not_found'))
        self.assertIn('discard nowhere: nowhere does not exist', error['message'])
        self.assertEqual(self.staged(), ['a', 'b'])
        # What is below another path of the list is gone with it.
        (self.tree / 'new').mkdir()
        (self.tree / 'new/file').write_text('new\n')
        self.assertEqual(self.count('new', 'new/file', 'a'), 2)
        self.assertEqual(self.staged(), ['b'])

    def test_the_way_back_names_only_what_was_dropped(self):
        self.published()
        (self.tree / '.gitignore').write_text('*.log\n')
        (self.tree / 'a.log').write_text('mine\n')
        for name in ('a b', 'file'):
            (self.tree / name).write_text('new\n')
        said = self.playfs('discard', 'a b', 'a.log', 'd', 'file', cwd=self.tree).stderr
        back = re.search(r'^To bring them back: (.*)$', said, re.M)[1]
        self.assertNotIn('a.log', back)
        self.command('sh', '-c', back.replace('playfs', str(self.playfs_path), 1), cwd=self.tree)
        self.assertEqual(self.staged(), ['.gitignore', 'a b', 'file'])

    def test_of_a_list_rules_are_dropped_first(self):
        (self.tree / '.gitignore').write_text('*.log\n')
        self.playfs('commit', '-m', 'Rules', self.tree)
        (self.tree / '.gitignore').write_text('')
        for name in ('a.log', 'b.log'):
            (self.tree / name).write_text('mine\n')
        self.assertEqual(self.staged(), ['.gitignore', 'a.log', 'b.log'])
        self.count('a.log', '.gitignore', 'b.log')
        self.assertEqual(self.staged(), [])
        self.assertEqual((self.tree / 'a.log').read_text(), 'mine\n', 'they are ignored again, so they are not published')

    def test_links_are_meant_themselves(self):
        self.published()
        os.unlink(self.tree / 'link')
        os.symlink('/etc/passwd', self.tree / 'link')
        os.symlink('/nowhere', self.tree / 'new')
        os.unlink(self.tree / 'to-folder')
        os.symlink('/etc', self.tree / 'to-folder')
        (self.tree / 'd/inner').write_text('changed\n')
        self.assertEqual(self.count('link', 'new', 'to-folder/'), 3)
        self.assertEqual(os.readlink(self.tree / 'link'), 'file')
        self.assertFalse(os.path.lexists(self.tree / 'new'))
        self.assertEqual(os.readlink(self.tree / 'to-folder'), 'd')
        # Folders on the way are followed, from inside and outside.
        outside = self.home / 'outside'
        outside.symlink_to(self.tree)
        self.assertEqual(self.count('to-folder/inner'), 1)
        (self.tree / 'd/inner').write_text('changed\n')
        self.assertEqual(self.count(outside, cwd='/'), 1)
        self.assertEqual(self.staged(), [])

    def test_a_way_up_leads_where_it_leads_the_kernel(self):
        self.published()
        (self.tree / 'down').symlink_to('d/deep')
        self.playfs('commit', '-m', 'Second', self.tree)

        def change():
            for path in ('inner', 'd/inner'):
                (self.tree / path).write_text('changed\n')

        change()
        self.assertEqual((self.tree / 'down/../inner').read_text(), 'changed\n')
        self.assertEqual(self.count('down/../inner'), 1)
        self.assertEqual(self.staged(), ['inner'])
        change()
        self.assertEqual(self.count('down/..'), 1)
        self.assertEqual(self.staged(), ['inner'])
        outside = self.home / 'outside'
        outside.symlink_to(self.tree / 'd/deep')
        change()
        self.assertEqual(self.count(outside / '../inner', cwd='/'), 1)
        self.assertEqual(self.staged(), ['inner'])
        change()
        (self.tree / 'gone').mkdir()
        (self.tree / 'gone').rmdir()
        for path in ('gone/../inner', 'file/../inner', 'gone/..', 'down/../gone/../inner'):
            code, error = self.error(path)
            self.assertEqual((code, error['code']), (NOT_FOUND, 'not_found'), path)
        self.assertEqual(self.staged(), ['d/inner', 'inner'])
        (self.tree / 'd/deep/most').unlink()
        (self.tree / 'd/deep').rmdir()
        self.assertEqual(self.count('d/deep/most'), 1)  # its folder is gone, so the path leads nowhere else
        self.assertEqual(self.count('down'), 0)
        # Nor does the folder that a command runs in, if that is gone.
        (self.tree / 'here').mkdir()
        done = self.command('sh', '-c', f'rmdir "$PWD" && exec {self.playfs_path} discard --json ../inner', check=False,
                            cwd=self.tree / 'here')
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.staged(), ['d/inner', 'inner'])

    def test_paths_that_are_gone_or_odd(self):
        self.published()
        os.unlink(self.tree / 'file')
        self.command('rm', '-r', self.tree / 'd')
        names = ['a b\nc', "it's \"q\"", '-x', 'grüße', '$(x)', '#', 'x' * 255]
        for name in names:
            (self.tree / name).write_text('new')
        self.assertEqual(self.count('file'), 1)
        self.assertEqual((self.tree / 'file').read_text(), 'file\n')
        self.assertEqual(self.count('d/deep/'), 1)
        self.assertEqual(sorted(os.listdir(self.tree / 'd')), ['deep'])
        self.assertEqual(self.count('deep/../../d//./inner', cwd=self.tree / 'd'), 1)
        self.assertEqual((self.tree / 'd/inner').read_text(), 'd/inner\n')
        self.assertEqual(self.count('--', *names[:3]), 3)
        (self.tree / 'd/inner').write_text('changed\n')
        self.assertEqual(self.count(cwd=self.tree / 'd'), 1)
        self.assertEqual(len(self.staged()), 4)
        self.assertEqual(self.count('.'), 4)
        self.assertEqual(self.count('.'), 0)
        for path in ('never', 'd/never', 'file/never', b'\xff'):
            code, error = self.error(path)
            self.assertNotEqual(code, 0, path)
        (self.tree / 'd/inner').write_text('changed\n')
        code, error = self.error('d', 'never', 'file')
        self.assertEqual((code, error['code']), (NOT_FOUND, 'not_found'))
        self.assertIn('never does not exist', error['message'])
        self.assertEqual(self.staged(), ['d/inner'])  # all or none
        self.assertEqual(self.count('d', 'd/inner'), 1)  # one below another

    def test_each_call_tells_its_own_reason(self):
        self.published()
        names = [f'no-such-{letter}' for letter in 'abcdefghijkl']
        calls = [subprocess.Popen([self.playfs_path, 'merge', name, str(self.tree), '--json'], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, env=self.environment('ann')) for name in names]
        for name, call in zip(names, calls):
            error = json.loads(call.communicate(timeout=fixture.COMMAND_LIMIT)[0])['error']
            self.assertEqual((call.returncode, error['code']), (NOT_FOUND, 'not_found'))
            self.assertEqual({each for each in names if each in error['message']}, {name})
            reason = error['message'].removeprefix(f'merge {name}: ')
            self.assertNotEqual(reason, '')


class Merging(revisions.Revisions):
    def setUp(self):
        super().setUp()
        self.tree = self.work(self.mount(self.api.origin))
        self.first = self.revision([], {'src/file': 'first\n'})

    def merging(self):
        return self.status()['merging']


class DiscardWhileMerging(Merging):
    def setUp(self):
        super().setUp()
        self.beside = self.revision([self.first], {'src/file': 'theirs\n', 'src/new': 'new\n'})
        self.set_head(self.revision([self.first], {'src/file': 'first\n', 'head': 'head\n'}))
        self.eventually((self.tree / 'head').exists, 'the tree follows head')

    def test_head_keeps_what_was_discarded_path_by_path(self):
        self.playfs('merge', self.beside, self.tree)
        said = self.playfs('discard', self.tree / 'src/new').stderr
        self.assertIn(f'Still merging {self.beside}', said)
        self.assertEqual(self.merging(), [self.beside])
        said = self.playfs('discard', cwd=self.tree / 'src').stderr
        self.assertNotIn('merging', said)
        self.assertEqual(self.merging(), [])
        # Another client has merged it.
        everything = {'src/file': 'theirs\n', 'src/new': 'new\n', 'head': 'head\n'}
        self.set_head(self.revision([self.head(), self.beside], everything))
        (self.tree / 'mine').write_text('mine\n')
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertEqual(self.head_texts(), {**everything, 'mine': 'mine\n'})

    def test_the_state_that_is_all_there_is_goes_with_the_whole_tree(self):
        (self.tree.parent / 'state.json').write_text('{"mine": 1}')
        self.assertIn('Discarded', self.playfs('discard', self.tree).stderr)
        self.assertEqual(json.loads((self.tree.parent / 'state.json').read_text()), {})

    def test_that_a_merge_is_given_up_is_said(self):
        self.playfs('merge', self.beside, self.tree)
        self.playfs('discard', self.tree / 'src/new')
        self.assertIn(f'Abandoned the merge of {self.beside}', self.playfs('discard', self.tree / 'src/file').stderr)

    def test_the_tree_follows_head_again_once_that_holds_what_was_taken_in(self):
        self.playfs('merge', self.beside, self.tree)
        everything = {'src/file': 'theirs\n', 'src/new': 'new\n', 'head': 'head\n'}
        self.set_head(self.revision([self.head(), self.beside], everything))
        self.playfs('update', self.tree)
        self.assertEqual(self.merging(), [])
        self.set_head(self.revision([self.head()], {**everything, 'later': 'later\n'}))
        self.eventually((self.tree / 'later').exists, 'the tree follows head')


class DiscardInConflict(Merging):
    """A file deleted here and changed there: an update keeps theirs, and stages nothing of it."""

    def setUp(self):
        super().setUp()
        self.set_head(self.first)
        self.eventually((self.tree / 'src/file').exists, 'the tree follows head')
        (self.tree / 'src/file').unlink()
        (self.tree / 'mine').write_text('mine\n')
        self.set_head(self.revision([self.first], {'src/file': 'theirs\n'}))
        self.assertEqual(self.fails('update'), 3)

    def test_it_stays_in_conflict_when_something_else_is_discarded(self):
        self.playfs('discard', self.tree / 'mine')
        self.assertEqual(self.conflicts(), ['src/file'])
        (self.tree / 'other').write_text('other\n')
        self.assertEqual(self.fails('commit', '-m', 'Other'), 3)

    def test_it_stays_in_conflict_when_head_moves_on(self):
        self.playfs('discard', self.tree / 'mine')
        self.set_head(self.revision([self.head()], {'src/file': 'theirs again\n'}))
        self.assertEqual(self.fails('update'), 3)
        self.assertEqual(self.conflicts(), ['src/file'])
        (self.tree / 'src/file').unlink()
        self.playfs('update', self.tree, check=False)
        self.assertEqual(self.conflicts(), ['src/file'])

    def test_it_can_be_discarded_by_itself(self):
        self.assertIn('Discarded', self.playfs('discard', self.tree / 'src/file').stderr)
        self.assertEqual(self.conflicts(), [])
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertEqual(self.head_texts(), {'src/file': 'theirs\n', 'mine': 'mine\n'})


class DiscardOfRules(Merging):
    """What the discarded ignore rules kept here only is in conflict afterwards, and not published."""

    def begin(self, rules):
        first = self.revision([], {'x': 'x\n', '.gitignore': rules} if rules else {'x': 'x\n'})
        self.set_head(first)
        self.eventually((self.tree / 'x').exists, 'the tree follows head')
        return first

    def keep_here(self):
        (self.tree / 'build').mkdir()
        for path in ('.env', 'build/out'):
            (self.tree / path).write_text('secret\n')

    def assert_kept(self, paths):
        self.assertEqual(self.conflicts(), paths)
        (self.tree / 'mine').write_text('mine\n')
        self.assertEqual(self.fails('commit', '-m', 'Mine'), 3)
        for path in ('.env', 'build/out'):
            self.assertEqual((self.tree / path).read_text(), 'secret\n')
        (self.tree / '.playfsignore').write_text('.env\nbuild/\n')
        self.assertEqual(self.conflicts(), [])
        self.playfs('commit', '-m', 'Mine', self.tree)
        self.assertNotIn('secret\n', self.head_texts().values())

    def behind_a_proxy(self, texts):
        """A tree on a service whose chunks can be kept waiting, and the revision that it has."""
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)
        self.tree = self.work(self.mount(self.proxy.url, 'ann'))
        first = self.revision([], {path: self.entry(path, text) for path, text in texts.items()})
        self.set_head(first)
        self.eventually((self.tree / 'big').exists, 'the tree follows head')
        (self.tree / 'big').read_text()
        return self.tree, first

    def entry(self, path, text):
        if len(text) < projects.CHUNK:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {'h': digest, 's': len(text), 'c': projects.store(self.api, path, text, digest)}

    def update_that_waits(self, first, texts):
        """An update to `texts` that waits for a chunk."""
        self.proxy.set_hanging('file_chunks')
        self.set_head(self.revision([first], {path: self.entry(path, text) for path, text in texts.items()}))
        update = subprocess.Popen([self.playfs_path, 'update', str(self.tree)], env=self.environment('ann'),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.eventually(lambda: self.proxy.hung() or update.poll() is not None, 'the update waits')
        self.assertIsNone(update.poll(), update.stdout.read() if update.poll() is not None else None)
        return update

    def let_go(self, update):
        self.proxy.set_hanging(None)
        update.communicate(timeout=60)
        return update.returncode

    def discarded(self, *paths):
        return json.loads(self.playfs('discard', '--json', *paths, cwd=self.tree).stdout)['discarded']

    def test_theirs_in_place_of_rules_in_conflict_publish_nothing(self):
        first = self.begin('.env\nbuild/\n*.o\n')
        self.keep_here()
        (self.tree / '.gitignore').write_text('.env\nbuild/\n*.obj\n')
        self.set_head(self.revision([first], {'x': 'x\n', '.gitignore': '*.oo\n'}))
        self.assertEqual(self.fails('update'), 3)
        self.assertEqual(self.conflicts(), ['.gitignore'])
        said = self.playfs('discard', self.tree / '.gitignore').stderr
        self.assertIn('Discarded the changes to 1 path.', said)
        self.assertIn('2 local-only paths are in conflict', said)
        self.assertEqual((self.tree / '.gitignore').read_text(), '*.oo\n')
        self.assert_kept(['.env', 'build'])

    def test_nor_does_a_discard_of_all(self):
        first = self.begin('build/\n.env\n')
        self.keep_here()
        (self.tree / '.gitignore').write_text('build/\n.env\n*.obj\n')
        (self.tree / 'new').write_text('new\n')
        self.set_head(self.revision([first], {'x': 'x\n', '.gitignore': 'build/\n'}))
        self.assertEqual(self.fails('update'), 3)
        self.assertEqual(self.conflicts(), ['.gitignore'])
        self.assertEqual(self.discarded('.'), 2)
        self.assertEqual(self.staged(), ['.env'])
        self.assertFalse((self.tree / 'new').exists())
        self.assert_kept(['.env'])

    def test_nor_does_a_discard_while_they_are_brought_in(self):
        tree, first = self.behind_a_proxy({'big': LARGE, 'x': 'x\n'})
        (tree / '.gitignore').write_text('.env\nbuild/\n')
        self.keep_here()
        (tree / 'big').unlink()
        update = self.update_that_waits(first, {'big': OTHER, 'x': 'x\n'})
        self.playfs('discard', tree / '.gitignore')
        self.assertEqual(self.conflicts(), ['.env', 'build'])
        self.assertEqual(self.let_go(update), 3)
        self.assertEqual(self.conflicts(), ['.env', 'big', 'build'])
        (tree / 'big').write_text('resolved\n')
        self.assert_kept(['.env', 'build'])

    def test_what_is_new_while_others_rules_are_brought_in_is_in_conflict_too(self):
        tree, first = self.behind_a_proxy({'big': LARGE, '.gitignore': '*.env\n'})
        (tree / 'a.env').write_text('secret\n')
        (tree / 'big').unlink()
        update = self.update_that_waits(first, {'big': OTHER})
        (tree / 'b.env').write_text('secret\n')
        self.assertNotIn('b.env', self.staged())
        self.assertEqual(self.let_go(update), 3)
        self.assertEqual(self.conflicts(), ['a.env', 'b.env', 'big'])

    def test_what_a_merge_brought_is_discarded_also_while_an_update_waits(self):
        rules = {'.gitignore': '*.log\n'}
        tree, first = self.behind_a_proxy({'big': LARGE, 'x': 'x\n', **rules})
        big = self.api.get('revisions', first)['manifest']['files']['big']
        second = self.revision([first], {'big': big, 'x': 'head\n', **rules})
        self.set_head(second)
        self.playfs('update', tree)
        # In conflict, so that no client merges it by itself.
        beside = self.revision([first], {'big': big, 'x': 'beside\n', 'a.log': 'theirs\n', **rules})
        self.assertEqual(self.fails('merge', beside), 3)
        (tree / 'x').write_text('both\n')
        (tree / 'big').unlink()
        update = self.update_that_waits(second, {'big': OTHER, 'x': 'head\n', **rules})
        self.playfs('discard', tree / 'a.log')
        self.assertEqual(self.let_go(update), 3)
        (tree / 'a.log').write_text('secret\n')
        (tree / 'big').write_text('resolved\n')
        self.playfs('commit', '-m', 'Mine', tree)
        self.assertNotIn('secret\n', self.head_texts().values(), 'a new file follows the rules')

    def test_of_everything_takes_what_an_update_brings_meanwhile(self):
        tree, first = self.behind_a_proxy({'big': LARGE, 'p': 'p\n', 'q': 'q\n'})
        for path in ('p', 'q'):
            (tree / path).unlink()
        second = self.revision([first], {'big': self.entry('big', LARGE), 'p': 'changed\n', 'q': 'q\n'})
        self.set_head(second)
        self.assertEqual(self.fails('commit', '-m', 'A branch'), 3)
        (tree / 'big').write_text(LARGE + 'ann\n')
        # One step for each keeps the discard going while the update ends.
        for number in range(400):
            (tree / f'd{number}').mkdir()
            (tree / f'd{number}/.gitignore').write_text('*.tmp\n')
        update = self.update_that_waits(second, {'big': 'bob\n' + LARGE, 'p': 'changed\n', 'q': 'q\n'})
        discard = subprocess.Popen([self.playfs_path, 'discard', tree], env=self.environment('ann'),
                                   stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        self.let_go(update)
        self.assertEqual(discard.wait(fixture.COMMAND_LIMIT), 0)
        status = self.status()
        # If the discard was over first, all of the update is there.
        self.assertEqual(bool(status['staged']), bool(status['merging']), status)

    def test_it_ends_also_for_rules_that_a_merge_brought(self):
        first = self.begin(None)
        self.set_head(self.revision([first], {'x': 'head\n'}))
        self.eventually(lambda: (self.tree / 'x').read_text() == 'head\n', 'the tree follows head')
        beside = self.revision([first], {'x': 'beside\n', '.gitignore': '*.o\n'})
        self.assertEqual(self.fails('merge', beside), 3)
        self.discarded('.')
        self.assertFalse((self.tree / '.gitignore').exists())
        self.assertEqual((self.status()['staged'], self.status()['merging']), ([], []))

    def test_local_only_rules_stay(self):
        first = self.begin('notes/\n')
        (self.tree / 'notes').mkdir()
        for name, content in (('.gitignore', '*.tmp\n'), ('n', 'weeks of notes\n'), ('a.tmp', 'scratch\n')):
            (self.tree / 'notes' / name).write_text(content)
        (self.tree / 'x').write_text('typo\n')
        self.set_head(self.revision([first], {'x': 'x\n', '.gitignore': '\n'}))
        self.assertEqual(self.fails('update'), 3)
        self.discarded('.')
        self.assertEqual((self.tree / 'x').read_text(), 'x\n')
        self.assertEqual((self.tree / 'notes/.gitignore').read_text(), '*.tmp\n')
        self.assertEqual(self.conflicts(), ['notes'])

    def test_own_rules_that_go_in_a_folder(self):
        self.begin(None)
        self.keep_here()
        (self.tree / '.playfsignore').write_text('.env\n')
        (self.tree / 'build/.gitignore').write_text('*\n')
        self.assertEqual(self.staged(), ['.playfsignore'])
        self.assertEqual(self.discarded('build'), 0)
        self.assertEqual(self.discarded('.playfsignore'), 1)
        self.assertEqual(self.conflicts(), ['.env'])
        self.mounted_anew()
        self.assertEqual(self.conflicts(), ['.env'])
        self.assertEqual(self.fails('commit', '-m', 'Mine'), 3)
        self.playfs('discard', self.tree / '.env')
        self.assertFalse((self.tree / '.env').exists(), 'by its own name it goes')
        self.assertEqual((self.conflicts(), self.staged()), ([], []))

    def mounted_anew(self):
        self.mounts[-1].kill()
        self.command('fusermount3', '-u', '-z', self.mounts[-1].directory)
        self.tree = self.work(self.mount(self.api.origin))

    def test_rules_that_come_back_are_in_no_conflict(self):
        self.begin('.env\nbuild/\n')
        self.keep_here()
        (self.tree / '.playfsignore').write_text('.env\n')
        (self.tree / '.gitignore').unlink()
        self.assertEqual(self.staged(), ['.gitignore', '.playfsignore', 'build/out'])
        self.assertEqual(self.discarded('.'), 2)
        self.assertEqual((self.conflicts(), self.staged()), ([], []))
        (self.tree / '.gitignore').write_text('# by the user\n')
        self.assertEqual((self.conflicts(), self.staged()), ([], ['.env', '.gitignore', 'build/out']))


if __name__ == '__main__':
    fixture.main()
