#!/usr/bin/env python3
"""What changed a file, and bringing back what was: log PATH, log -S, blame, restore and revert, in mounts and clones."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

import clones
import fixture
from clones import BRANCHED, FAILED, NOT_FOUND, USAGE

LINES = ''.join(f'line {number}\n' for number in range(1, 31))


class GoingBack:
    """The tests, for a work tree of either kind."""

    def messages(self, *words, **options):
        lines = self.run_in('log', *words, '--json', **options).stdout.splitlines()
        return [json.loads(line)['message'] for line in lines]

    def blame(self, *words):
        """Of each line: the message of its revision, and its path there."""
        by_id = {each['revision']: each['message'] for each in map(json.loads, self.run_in('log', '--json').stdout.splitlines())}
        lines = [json.loads(line) for line in self.run_in('blame', *words, '--json').stdout.splitlines()]
        self.assertEqual([line['line'] for line in lines], list(range(1, len(lines) + 1)))
        return [(by_id.get(line['revision']), line['path']) for line in lines]

    def write(self, path, text):
        (self.work / path).parent.mkdir(parents=True, exist_ok=True)
        (self.work / path).write_text(text)

    def story(self):
        """Five revisions: a file is edited, moved and edited again; others come and go."""
        self.write('src/a', LINES)
        self.write('b', 'bee\n')
        self.commit('one')
        self.write('src/a', LINES.replace('line 5\n', 'five\n'))
        self.commit('two')
        self.write('c', 'see\n')
        self.commit('three')
        (self.work / 'src/a').rename(self.work / 'src/moved')
        self.write('src/moved', LINES.replace('line 5\n', 'five\n').replace('line 20\n', 'twenty\n'))
        self.commit('four')
        (self.work / 'c').unlink()
        self.commit('five')

    def revision(self, message):
        return next(each['revision'] for each in map(json.loads, self.run_in('log', '--json').stdout.splitlines())
                    if each['message'] == message)

    # log

    def test_log_of_a_path(self):
        self.story()
        self.assertEqual(self.messages(), ['five', 'four', 'three', 'two', 'one'])
        self.assertEqual(self.messages('b'), ['one'])
        self.assertEqual(self.messages('c'), ['five', 'three'], 'gone, and still asked for')
        self.assertEqual(self.messages('src'), ['four', 'two', 'one'])
        self.assertEqual(self.messages('.', at=self.work / 'src'), ['four', 'two', 'one'])
        self.assertEqual(self.messages(at=self.work / 'src'), ['five', 'four', 'three', 'two', 'one'])
        self.assertEqual(self.messages('src', '-n', '2'), ['four', 'two'])
        self.assertEqual(self.messages('nowhere'), [])
        self.assertEqual(self.messages('--project', self.project, 'src/', '--site', self.api.origin), ['four', 'two', 'one'])
        shown = self.run_in('log', '--oneline', 'src').stdout.splitlines()
        self.assertFalse([line for line in shown if line.startswith(('*', '|'))], 'no graph of what is not connected')

    def test_log_of_a_text(self):
        self.story()
        self.assertEqual(self.messages('-S', 'five'), ['two'], 'a file that only moved has it as often as before')
        self.assertEqual(self.messages('-S', 'five', 'src/a'), ['four', 'two'])
        self.assertEqual(self.messages('-S', 'see'), ['five', 'three'])
        self.assertEqual(self.messages('-S', 'nowhere'), [])

    def test_a_merge_that_has_what_a_parent_has_changed_nothing(self):
        self.write('a', LINES)
        first = self.commit('one')
        self.write('a', LINES.replace('line 1\n', 'first\n'))
        second = self.commit('two')
        one, two = (self.api.get('revisions', each)['manifest']['files'] for each in (first, second))
        new = {'b': {'inline': 'bee\n'}}
        # Published at once: a mount would merge the branch by itself.
        branch = self.publish('branch', [first], {**one, **new})
        self.lie([second, branch], **two, **new)
        self.assertEqual(self.messages('a'), ['two', 'one'])
        self.assertEqual(self.messages('b'), ['branch'])
        self.assertEqual(self.blame('b'), [('branch', 'b')])
        self.assertEqual([message for message, _ in self.blame('a')], ['two'] + ['one'] * 29)

    # blame

    def test_blame_follows_renames_and_names_what_is_not_published(self):
        self.story()
        self.write('src/moved', 'new\n' + (self.work / 'src/moved').read_text())
        blamed = self.blame('src/moved')
        expected = [(None, 'src/moved')] + [('one', 'src/a')] * 30
        expected[5] = ('two', 'src/a')
        expected[20] = ('four', 'src/moved')
        self.assertEqual(blamed, expected)
        self.assertEqual(self.blame('--from', 'head', 'src/moved'), expected[1:])
        (self.work / 'src/moved').rename(self.work / 'again')
        self.assertEqual(self.blame('again'), [(None, 'again')] + expected[1:], 'moved here, and not published')
        text = self.run_in('blame', 'again').stdout.splitlines()
        self.assertIn('(not published yet', text[0])
        self.assertRegex(text[5], r'src/a +\(ann +\d{4}-\d\d-\d\d +6\) five$')
        self.assertIn("there is no file 'src'", self.run_in('blame', 'src', check=False).stderr)
        self.assertEqual(self.run_in('blame', 'nowhere', check=False).returncode, NOT_FOUND)

    def test_blame_agrees_with_git(self):
        """Random edits, published here and committed there: the same revision for each line."""
        if not shutil.which('git'):
            self.skipTest('needs git')
        rng = random.Random(7)
        with tempfile.TemporaryDirectory() as directory:
            def git(*words):
                return subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words], cwd=directory, check=True,
                                      capture_output=True, text=True).stdout
            git('init', '-q')
            lines = [f'{rng.random()}\n' for _ in range(60)]
            for number in range(12):
                for _ in range(rng.randrange(1, 6)):
                    at = rng.randrange(len(lines))
                    lines[at:at + rng.randrange(3)] = [f'{rng.random()}\n' for _ in range(rng.randrange(3))]
                lines.insert(rng.randrange(len(lines) + 1), f'{rng.random()}\n')
                self.write('file', ''.join(lines))
                (pathlib.Path(directory) / 'file').write_text(''.join(lines))
                self.commit(f'm{number}')
                git('add', 'file')
                git('commit', '-q', '-m', f'm{number}')
            theirs = [line[len('summary '):] for line in git('blame', '--line-porcelain', 'file').splitlines()
                      if line.startswith('summary ')]
        self.assertEqual([message for message, _ in self.blame('file')], theirs)

    # restore

    def test_restore_brings_files_back_and_leaves_new_ones_alone(self):
        self.story()
        self.write('b', 'edited\n')
        self.write('src/new', 'mine\n')
        (self.work / 'src/moved').unlink()
        done = self.json('restore', 'b', 'src')
        self.assertEqual((done['restored'], done['removed']), (['b', 'src/moved'], []))
        self.assertEqual((self.work / 'b').read_text(), 'bee\n')
        self.assertEqual(self.staged(), {'src/new': 'added'})
        for path in 'src', 'src/new':
            said = self.run_in('restore', path).stderr
            self.assertIn('Left 1 file alone', said)
            self.assertIn('playfs discard PATH', said)

    def test_restore_from_a_revision(self):
        self.story()
        self.write('b', 'edited\n')
        self.write('src/new', 'mine\n')
        two = self.revision('two')
        done = self.json('restore', '--from', two, 'src')
        self.assertEqual((done['restored'], done['removed']), (['src/a'], ['src/moved']))
        self.assertEqual((self.work / 'src/a').read_text(), LINES.replace('line 5\n', 'five\n'))
        self.assertEqual((self.work / 'src/new').read_text(), 'mine\n')
        self.assertEqual(self.staged(), {'src/a': 'added', 'src/moved': 'deleted', 'src/new': 'added', 'b': 'modified'})
        self.json('restore', '--from', two, '.')
        self.assertEqual((self.work / 'b').read_text(), 'bee\n')
        self.assertIn('Nothing to restore', self.run_in('restore', '--from', two, 'src/a').stderr)
        self.commit('back')
        self.assertEqual(self.messages('src/a')[0], 'back')

    def test_restore_brings_back_modes_and_links(self):
        self.write('run', '#!/bin/sh\n')
        (self.work / 'run').chmod(0o755)
        (self.work / 'link').symlink_to('run')
        one = self.commit('one')
        (self.work / 'run').chmod(0o644)
        (self.work / 'link').unlink()
        self.write('link', 'a file now\n')
        self.commit('two')
        self.json('restore', '--from', one, '.')
        self.assertTrue((self.work / 'run').stat().st_mode & 0o100)
        self.assertEqual(os.readlink(self.work / 'link'), 'run')

    def test_restore_says_what_it_cannot_do(self):
        self.story()
        self.assertEqual(self.run_in('restore', 'nowhere', check=False).returncode, NOT_FOUND)
        wrong = self.run_in('restore', '--from', 'nothing', 'b', check=False)
        self.assertEqual(wrong.returncode, NOT_FOUND)
        self.assertIn("no revision 'nothing'", wrong.stderr)
        self.assertEqual(self.run_in('restore', check=False).returncode, USAGE)
        (self.work / 'b').unlink()
        self.write('b/only/copy', 'mine\n')
        refused = self.run_in('restore', 'b', check=False)
        self.assertIn("'b' is a directory now", refused.stderr)
        self.assertEqual(self.run_in('restore', '--from', 'head', '.playfs', check=False).returncode, USAGE)
        self.assertEqual((self.work / 'b/only/copy').read_text(), 'mine\n')

    def test_no_link_leads_restore_outside(self):
        self.write('d/file', 'published\n')
        one = self.commit('one')
        self.write('d/file', 'later\n')
        self.commit('two')
        outside = self.home / 'outside'
        outside.mkdir()
        (outside / 'file').write_text('private\n')
        shutil.rmtree(self.work / 'd')
        (self.work / 'd').symlink_to(outside)
        self.run_in('restore', '--from', one, 'd/file', check=False)
        self.run_in('restore', '--from', one, '.', check=False)
        self.run_in('revert', 'head', check=False)
        self.assertEqual((outside / 'file').read_text(), 'private\n')
        self.assertEqual(os.listdir(outside), ['file'])

    def test_restore_of_a_directory_leaves_alone_what_the_base_does_not_have(self):
        self.write('secret', 'published by mistake\n')
        self.write('x', 'x\n')
        one = self.commit('one')
        (self.work / 'secret').unlink()
        self.write('.gitignore', 'secret\n')
        self.commit('two')
        self.write('secret', 'my only copy\n')
        self.assertIn('Left 1 file alone', self.run_in('restore', '--from', one, '.').stderr)
        self.assertEqual((self.work / 'secret').read_text(), 'my only copy\n')
        self.json('restore', '--from', one, 'secret')
        self.assertEqual((self.work / 'secret').read_text(), 'published by mistake\n', 'it was named')

    def test_what_is_in_the_way_is_seen_before_anything_changes(self):
        self.write('a', 'a\n')
        self.write('d', 'a file\n')
        one = self.commit('one')
        (self.work / 'd').unlink()
        self.write('d/x', 'x\n')
        self.write('a', 'later\n')
        self.commit('two')
        self.write('d/mine', 'mine\n')
        error = self.json('restore', '--from', one, '.', code=BRANCHED)['error']
        self.assertIn("'d' is a directory now", error['message'])
        self.assertEqual(self.staged(), {'d/mine': 'added'})
        self.assertIn("'d' is a directory now", self.json('revert', 'head', code=BRANCHED)['error']['message'])
        self.assertEqual(self.staged(), {'d/mine': 'added'})
        (self.work / 'd/mine').unlink()
        self.json('revert', 'head')
        self.assertEqual(((self.work / 'd').read_text(), (self.work / 'a').read_text()), ('a file\n', 'a\n'))

    # revert

    def test_revert_takes_back_what_a_revision_changed(self):
        self.story()
        done = self.json('revert', self.revision('five'))
        self.assertEqual(done['reverted'], ['c'])
        self.assertEqual((self.work / 'c').read_text(), 'see\n')
        self.commit('back')
        self.assertEqual(self.json('revert', self.revision('three'))['reverted'], ['c'])
        self.assertFalse((self.work / 'c').exists())
        self.assertIn('Nothing to revert', self.run_in('revert', self.revision('three')).stderr)

    def test_revert_merges_with_what_was_changed_since_where_the_file_is_now(self):
        self.story()
        done = self.run_in('revert', self.revision('two'))
        self.assertIn("playfs commit -m 'Revert \"two\"'", done.stderr)
        self.assertEqual((self.work / 'src/moved').read_text(), LINES.replace('line 20\n', 'twenty\n'))
        self.assertEqual(self.staged(), {'src/moved': 'modified'})

    def test_revert_changes_nothing_where_it_cannot_be_merged(self):
        self.write('a', LINES)
        self.write('b', 'bee\n')
        self.commit('one')
        self.write('a', LINES.replace('line 5\n', 'five\n'))
        self.write('b', 'two bees\n')
        two = self.commit('two')
        self.write('a', LINES.replace('line 5\n', 'fifth\n'))
        error = self.json('revert', two, code=BRANCHED)['error']
        self.assertEqual((error['code'], error['retryable']), ('conflict', False))
        self.assertIn('in a;', error['message'])
        self.assertEqual((self.work / 'a').read_text(), LINES.replace('line 5\n', 'fifth\n'))
        self.assertEqual((self.work / 'b').read_text(), 'two bees\n')

    def test_revert_touches_no_private_file(self):
        """One that looks like what a published file became: ignored, or in a clone's own folder."""
        self.write('.gitignore', '*.bak\n')
        self.commit('rules')
        self.write('a', LINES)
        added = self.commit('added')
        (self.work / 'a').rename(self.work / 'a.bak')
        self.commit('gone')
        self.assertIn('Nothing to revert', self.run_in('revert', added).stderr)
        self.assertEqual((self.work / 'a.bak').read_text(), LINES)
        self.write('b', LINES * 300)
        self.commit('b')
        self.write('b', LINES * 300 + 'bad\n')
        edited = self.commit('edited')
        (self.work / 'b').rename(self.work / 'c')
        self.assertEqual(self.json('revert', edited)['reverted'], ['c'])
        self.assertEqual((self.work / 'c').read_text(), LINES * 300)
        self.commit('c')
        self.assertEqual(self.read('c'), (LINES * 300).encode())

    def publish(self, message, parents, files):
        return self.api.create('revisions', project=self.project, parents=parents, agent='eve', message=message, state={},
                               manifest={'tx': os.urandom(16).hex(), 'files': files})['id']

    def lie(self, parents, **files):
        """Another client's revision becomes head."""
        head = self.publish('lie', parents, files)
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': head})
        self.eventually(lambda: self.json('update')['base'] == head, 'head is here')
        return head

    def test_a_parent_that_cannot_be_had_is_no_empty_tree(self):
        (self.home / 'outside').mkdir()
        (self.home / 'outside/key').write_text('private\n')
        up = os.path.relpath(self.home / 'outside', '/')
        for parent in ('nosuchparent', '../' * 30 + up, '..'):
            with self.subTest(parent):
                head = self.lie([parent], a={'inline': 'a\n'}, b={'inline': 'b\n'})
                done = self.run_in('revert', head, check=False)
                self.assertIn(done.returncode, (FAILED, NOT_FOUND), done.stderr)
                self.assertEqual(sorted(set(os.listdir(self.work)) - {'.playfs'}), ['a', 'b'])
                self.assertEqual(self.staged(), {})

    def test_what_a_revision_has_but_cannot_be_shown_is_not_taken_for_missing(self):
        one = self.lie([], a={'c': 'no list'}, b={'inline': 'b\n'})
        two = self.lie([one], a={'inline': 'a\n'}, b={'inline': 'b\n'})
        self.assertIn('cannot be shown, in a;', self.json('revert', two, code=BRANCHED)['error']['message'])
        self.assertIn('Left 1 file alone', self.run_in('restore', '--from', one, '.').stderr)
        self.assertIn('cannot be shown', self.run_in('restore', '--from', one, 'a', check=False).stderr)
        self.assertEqual((self.work / 'a').read_text(), 'a\n')

    def test_two_files_that_became_one(self):
        top, bottom = ''.join(f'top {n}\n' for n in range(40)), ''.join(f'bottom {n}\n' for n in range(40))
        self.write('a', top)
        self.write('b', bottom)
        self.commit('one')
        self.write('a', top.replace('top 5\n', 'TOP\n'))
        self.write('b', bottom.replace('bottom 5\n', 'BOTTOM\n'))
        two = self.commit('two')
        self.write('c', (self.work / 'a').read_text() + (self.work / 'b').read_text())
        (self.work / 'a').unlink()
        (self.work / 'b').unlink()
        self.commit('joined')
        before = (self.work / 'c').read_text()
        self.assertEqual(self.json('revert', two, code=BRANCHED)['error']['code'], 'conflict')
        self.assertEqual((self.work / 'c').read_text(), before, 'not half of it')

    def test_a_revision_that_changed_only_the_state(self):
        files = {'a': {'inline': 'a\n'}}
        one = self.lie([], **files)
        two = self.api.create('revisions', project=self.project, parents=[one], agent='eve', message='state', state={'score': 2},
                              manifest={'tx': os.urandom(16).hex(), 'files': files})['id']
        self.assertIn('changed no file', self.run_in('revert', two).stderr)

    def test_restore_in_a_merge_says_so(self):
        self.write('a', 'a\n')
        one = self.commit('one')
        self.write('a', 'ours\n')
        self.commit('two')
        branch = self.api.create('revisions', project=self.project, parents=[one], agent='bob', message='branch', state={},
                                 manifest={'tx': os.urandom(16).hex(), 'files': {'a': {'inline': 'theirs\n'}}})['id']
        self.json('merge', branch, code=BRANCHED)
        self.assertIn(f'Still merging {branch}', self.run_in('restore', 'a').stderr)

    def test_revert_of_the_first_revision_removes_its_files(self):
        self.write('d/a', 'a\n')
        self.write('b', 'b\n')
        one = self.commit('one')
        self.write('d/mine', 'mine\n')
        self.assertEqual(self.json('revert', one)['reverted'], ['b', 'd/a'])
        self.assertEqual(os.listdir(self.work / 'd'), ['mine'])
        self.assertEqual(self.run_in('revert', 'nothing', check=False).returncode, NOT_FOUND)


@fixture.needs_fuse
class InAMount(GoingBack, fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = json.loads(self.playfs('init', 'garden', '--json', '--site', self.api.origin).stdout)['project']
        self.work = self.mount(self.api.origin).directory / 'projects' / self.project / 'work'

    run_in, json, staged = clones.Clones.run_in, clones.Clones.json, clones.Clones.staged
    head, read = clones.Clones.head, clones.Clones.read

    def commit(self, message):
        return self.json('commit', '-m', message)['revision']


class InAClone(GoingBack, clones.Clones):
    pass


if __name__ == '__main__':
    fixture.main()
