#!/usr/bin/env python3
"""`playfs checkpoint` in mounts and clones: what is staged is kept, listed and restored, and a discard keeps what it
drops."""
import contextlib
import json
import mmap
import os
import re
import shlex
import shutil
import threading

import fixture
from clones import BRANCHED, FAILED, NOT_FOUND, USAGE, Clones
from slow_project import SlowProject, text


class Cases(Clones):
    """What holds in mounts and clones. `tree` is the work tree."""

    def setUp(self):
        super().setUp()
        (self.work / 'rose').write_text('rosa\n')
        (self.work / 'run.sh').write_text('#!/bin/sh\n')
        (self.work / 'run.sh').chmod(0o755)
        (self.work / 'gone').write_text('gone\n')
        self.commit('Plant')
        self.tree = self.open_tree()

    def json(self, *words, at=None, **options):
        return super().json(*words, at=at or getattr(self, 'tree', self.work), **options)

    def run_in(self, *words, at=None, **options):
        return super().run_in(*words, at=at or getattr(self, 'tree', self.work), **options)

    def change(self):
        """A change of every kind."""
        (self.tree / 'rose').write_text('rosa canina\n')
        (self.tree / 'gone').unlink()
        (self.tree / 'run.sh').chmod(0o644)
        (self.tree / 'deep/er').mkdir(parents=True)
        (self.tree / 'deep/er/new').write_bytes(bytes(range(256)) * 100)
        (self.tree / 'empty').touch()
        os.symlink('rose', self.tree / 'link')
        return self.seen()

    def seen(self):
        return {path: what for path, what in self.describe(self.tree).items() if what != 'folder'}

    def listed(self):
        return self.json('checkpoint', 'list')['checkpoints']

    def test_it_brings_back_all_that_was_staged(self):
        published = self.seen()
        kept = self.change()
        staged = self.staged()
        made = self.json('checkpoint', '-m', 'Before the rewrite')
        self.assertEqual((made['checkpoint'], made['paths']), (1, len(staged)))
        (self.tree / 'rose').write_text('weed\n')
        (self.tree / 'deep/er/new').unlink()
        (self.tree / 'later').write_text('later\n')
        later = self.seen()
        done = self.json('checkpoint', 'restore', '1')
        self.assertEqual((done['restored'], done['before'], done['conflicts']), (3, 2, 0))
        self.assertEqual((done['base_then'], done['base_now']), (self.head(), self.head()))
        self.assertEqual(self.seen(), kept)
        self.assertEqual(self.staged(), staged)
        self.json('checkpoint', 'restore', '2')
        self.assertEqual(self.seen(), later)
        self.assertEqual([(each['id'], each['message'], each['base'], each['damage']) for each in self.listed()],
                         [(3, 'before restoring checkpoint 2', self.head(), None),
                          (2, 'before restoring checkpoint 1', self.head(), None),
                          (1, 'Before the rewrite', self.head(), None)])
        self.json('discard', '.')
        self.assertEqual(self.seen(), published)
        self.json('checkpoint', 'restore', '1')
        self.assertEqual(self.seen(), kept)
        self.commit('Prune')
        self.assertEqual(self.files()['rose']['inline'], 'rosa canina\n')
        self.assertNotIn('checkpoints', json.dumps(self.api.all('revisions')), 'nothing of it was published')

    def test_a_discard_keeps_what_it_drops_and_says_how_to_get_it_back(self):
        published = self.seen()
        kept = self.change()
        done = self.run_in('discard', 'rose', 'deep', 'empty', 'link', 'gone', 'run.sh')
        self.assertEqual(self.seen(), published)
        command = re.search(r'^To bring them back: playfs (checkpoint restore 1 .*)$', done.stderr, re.M).group(1)
        self.assertEqual([each['message'] for each in self.listed()], ['before a discard'], 'one for all paths')
        self.run_in(*command.split())
        self.assertEqual(self.seen(), kept)
        self.assertEqual(self.json('discard', 'empty')['checkpoint'], 2)
        self.assertIsNone(self.json('discard', 'empty', code=NOT_FOUND).get('checkpoint'))
        self.json('discard', '.')
        nothing = self.json('discard', '.')
        self.assertEqual((nothing['discarded'], nothing['checkpoint']), (0, None))

    def test_only_named_paths(self):
        self.change()
        self.json('checkpoint')
        self.json('discard', '.')
        self.assertEqual(self.json('checkpoint', 'restore', '1', 'deep/er', 'gone')['restored'], 2)
        self.assertFalse((self.tree / 'gone').exists())
        self.assertTrue((self.tree / 'deep/er/new').exists())
        self.assertEqual((self.tree / 'rose').read_text(), 'rosa\n')
        self.assertEqual(self.json('checkpoint', 'restore', '1', 'nowhere', code=NOT_FOUND)['error']['code'], 'not_found')

    def test_what_there_is_to_say(self):
        nothing = self.run_in('checkpoint')
        self.assertEqual((nothing.stdout, nothing.stderr), ('', 'Nothing is staged, so no checkpoint was made.\n'))
        self.assertIsNone(self.json('checkpoint')['checkpoint'])
        self.assertIn('There are no checkpoints', self.run_in('checkpoint', 'list').stderr)
        for unknown in ('7', 'x', '0', '1x'):
            error = self.json('checkpoint', 'restore', unknown, code=NOT_FOUND)['error']
            self.assertEqual((error['code'], error['hint']), ('not_found', 'playfs checkpoint list'))
        self.assertEqual(self.run_in('checkpoint', 'restore', check=False).returncode, USAGE)
        (self.tree / 'rose').write_text('two\n')
        self.assertEqual(self.run_in('checkpoint', '-m', 'Zwei\n\x1b[31mrot').stdout, '1\n')
        line, = self.run_in('checkpoint', 'list').stdout.splitlines()
        self.assertRegex(line, r'^1  20\d\d-.*Z  1 path  Zwei$')
        self.assertEqual(self.listed()[0]['message'], 'Zwei\n\x1b[31mrot')
        self.assertEqual(self.json('checkpoint', 'restore', '1')['restored'], 0)
        self.assertIn('it is all as in checkpoint 1', self.run_in('checkpoint', 'restore', '1').stderr)
        self.assertEqual(self.json('checkpoint', '-m', 'x' * 5000, code=USAGE)['error']['code'], 'invalid_argument')

    def test_over_another_base_it_says_so(self):
        self.change()
        self.json('checkpoint')
        self.json('discard', '.')
        before = self.head()
        other = self.clone('other', 'bob')
        (other / 'rose').write_text('theirs\n')
        (other / 'tulip').write_text('tulip\n')
        Clones.json(self, 'commit', '-m', 'Theirs', at=other, who='bob')
        self.json('update')
        done = self.json('checkpoint', 'restore', '1', code=BRANCHED)
        self.assertEqual((done['base_then'], done['base_now'], done['conflicts']), (before, self.head(), 1))
        self.assertEqual((self.tree / 'rose').read_text(), 'rosa canina\n')
        self.assertEqual((self.tree / 'tulip').read_text(), 'tulip\n')
        self.assertIn('-theirs\n+rosa canina\n', self.run_in('diff').stdout)
        self.json('discard', '.')
        self.assertIn('has moved from', self.run_in('checkpoint', 'restore', '1', check=False).stderr)

    def test_what_others_have_changed_since_is_not_taken_back_unasked(self):
        """Not even if they changed it while it was discarded, so that the work tree followed them."""
        for name in ('theirs', 'same', 'removed', 'deleted', 'mine'):
            (self.tree / name).write_text('one\n')
        self.json('commit', '-m', 'More')
        for name in ('theirs', 'same', 'removed', 'mine'):
            (self.tree / name).write_text('staged\n')
        (self.tree / 'deleted').unlink()
        (self.tree / 'new').write_text('staged\n')
        self.json('discard', '.')
        other = self.clone('other', 'bob')
        for name in ('theirs', 'deleted', 'new'):
            (other / name).write_text('by others\n')
        (other / 'same').write_text('staged\n')
        (other / 'removed').unlink()
        Clones.json(self, 'commit', '-m', 'Theirs', at=other, who='bob')
        published = self.files()
        self.json('update')
        contested = ['deleted', 'new', 'removed', 'theirs']
        for _ in range(2):
            self.assertEqual(self.json('checkpoint', 'restore', '1', code=BRANCHED)['conflicts'], 4)
            self.assertEqual([each['path'] for each in self.json('status')['conflicts']], contested)
            self.json('commit', '-m', 'Unaware', code=BRANCHED)
        self.assertEqual(self.files(), published)
        self.json('discard', 'theirs', 'deleted', 'new')
        (self.tree / 'removed').write_text('both\n')
        self.json('commit', '-m', 'Aware')
        self.assertEqual({name: each['inline'] for name, each in self.files().items() if name in (*contested, 'mine')},
                         {'theirs': 'by others\n', 'deleted': 'by others\n', 'new': 'by others\n', 'removed': 'both\n',
                          'mine': 'staged\n'})

    def test_dropping_them(self):
        (self.tree / 'big').write_bytes(bytes(3 << 20))
        self.json('checkpoint')
        (self.tree / 'big').write_bytes(b'small')
        for _ in range(2):
            self.json('checkpoint')
        self.assertEqual([each['bytes'] for each in self.listed()], [5, 5, 3 << 20])
        self.assertRegex(self.run_in('checkpoint', 'list').stdout, r'(?m)^1  .*  1 path  3072 KB$')
        self.assertEqual(self.json('checkpoint', 'drop', '1', '3')['dropped'], [1, 3])
        self.assertEqual([each['id'] for each in self.listed()], [2])
        for words in (['drop', '1'], ['drop', 'x'], ['restore', '3']):
            self.assertEqual(self.json('checkpoint', *words, code=NOT_FOUND)['error']['code'], 'not_found')
        self.close_tree()
        self.assertIn('1 checkpoint', self.doctor(check=False).stdout)
        self.tree = self.open_tree()
        self.assertEqual(self.json('checkpoint')['checkpoint'], 4, 'no id is used again')
        self.assertEqual(self.run_in('checkpoint', 'drop', check=False).returncode, USAGE)

    def test_a_merge_and_its_conflicts_come_back(self):
        other = self.clone('other', 'bob')
        (other / 'rose').write_text('theirs\n')
        (self.tree / 'rose').write_text('mine\n')
        Clones.json(self, 'commit', '-m', 'Theirs', at=other, who='bob')
        self.json('update', code=BRANCHED)
        marked = (self.tree / 'rose').read_text()
        self.assertIn('<<<<<<<', marked)
        self.assertEqual(self.json('discard', '.')['checkpoint'], 1)
        self.assertEqual(self.json('status')['conflicts'], [])
        self.assertEqual(self.json('checkpoint', 'restore', '1', code=BRANCHED)['conflicts'], 1)
        self.assertEqual((self.tree / 'rose').read_text(), marked)
        self.json('commit', '-m', 'Too early', code=BRANCHED)
        (self.tree / 'rose').write_text('both\n')
        self.commit('Both')

    def test_ignored_files_are_neither_kept_nor_touched(self):
        (self.tree / '.gitignore').write_text('*.log\n')
        (self.tree / 'a.log').write_text('one\n')
        (self.tree / 'rose').write_text('two\n')
        self.assertEqual(self.json('checkpoint')['paths'], 2)
        (self.tree / 'a.log').write_text('two\n')
        (self.tree / 'rose').write_text('three\n')
        self.json('checkpoint', 'restore', '1')
        self.assertEqual(((self.tree / 'a.log').read_text(), (self.tree / 'rose').read_text()), ('two\n', 'two\n'))
        self.json('discard', 'rose')
        self.assertEqual((self.tree / 'a.log').read_text(), 'two\n')

    def test_of_many_the_oldest_go(self):
        for number in range(101):
            (self.tree / 'rose').write_text(f'{number}\n')
            self.json('checkpoint', '-m', f'{number}')
        self.assertEqual([each['id'] for each in self.listed()], list(range(101, 1, -1)))
        self.json('checkpoint', 'restore', '1', code=NOT_FOUND)
        self.json('checkpoint', 'restore', '2')
        self.assertEqual((self.tree / 'rose').read_text(), '1\n')
        self.assertEqual(len(self.listed()), 100)

    def test_a_hint_works_as_it_stands(self):
        """Also below the root, and if nothing was staged at one of the paths."""
        self.change()
        (self.tree / 'gone').write_text('gone\n')
        kept = self.seen()
        hint = r'^To bring them back: playfs (checkpoint restore .*)$'
        command = re.search(hint, self.run_in('discard', 'gone', 'rose', 'deep/er').stderr, re.M).group(1)
        self.assertNotEqual(self.seen(), kept)
        self.run_in(*command.split())
        self.assertEqual(self.seen(), kept)
        self.json('discard', '.')
        (self.tree / 'deep').mkdir(exist_ok=True)
        said = self.run_in('checkpoint', 'restore', '1', at=self.tree / 'deep').stderr
        self.assertEqual(self.seen(), kept)
        command = re.search(r'^Nothing was staged before. To take this back: playfs (.*)$', said, re.M).group(1)
        self.run_in(*shlex.split(command), at=self.tree / 'deep')
        self.assertEqual(self.staged(), {})

    def test_a_restore_from_another_revision_keeps_what_it_replaces(self):
        first = self.head()
        (self.tree / 'rose').write_text('second\n')
        self.json('commit', '-m', 'Second')
        self.json('restore', '--from', first, 'rose')
        self.assertEqual(self.listed(), [], 'nothing was staged')
        (self.tree / 'rose').write_text('unpublished\n')
        said = self.run_in('restore', '--from', first, 'rose').stderr
        self.assertEqual((self.tree / 'rose').read_text(), 'rosa\n')
        command = re.search(r'^To bring back what was staged: playfs (checkpoint restore 1 rose)$', said, re.M).group(1)
        self.run_in(*command.split())
        self.assertEqual((self.tree / 'rose').read_text(), 'unpublished\n')

    def test_a_merge_that_was_begun_later_is_not_taken_for_merged(self):
        first, files = self.head(), self.files()
        (self.tree / 'mine').write_text('mine\n')
        self.json('checkpoint')
        self.json('discard', '.')
        other = self.clone('other', 'bob')
        (other / 'theirs').write_text('theirs\n')
        Clones.json(self, 'commit', '-m', 'Theirs', at=other, who='bob')
        files = {**files, 'rose': {'inline': 'of the branch\n'}, 'tulip': {'inline': 'tulip\n'}}
        beside = self.api.create('revisions', project=self.project, parents=[first], agent='bob', message='Beside',
                                 state={}, manifest={'files': files})['id']
        self.json('update')
        self.json('merge', beside)
        said = self.run_in('checkpoint', 'restore', '1').stderr
        self.assertIn(f'Abandoned the merge of {beside}', said)
        status = self.json('status')
        self.assertEqual((status['merging'], self.staged()), ([], {'mine': 'added'}))
        mine = self.json('commit', '-m', 'Mine')['revision']
        self.assertEqual(len(self.api.get('revisions', mine)['parents']), 1)

    def test_an_attempt_that_fails_costs_no_checkpoint(self):
        (self.tree / '.gitignore').write_text('*.o\n')
        self.json('commit', '-m', 'Ignore')
        (self.tree / 'x').write_text('kept\n')
        self.json('checkpoint')
        self.close_tree()
        folder = self.stage_directory() / 'checkpoints'
        for number in range(2, 101):
            shutil.copytree(folder / '1', folder / str(number))
        self.tree = self.open_tree()
        (self.tree / 'x').unlink()
        (self.tree / 'x').mkdir()
        (self.tree / 'x/local.o').write_text('in the way\n')
        (self.tree / 'rose').write_text('staged\n')
        listed = [each['id'] for each in self.listed()]
        for _ in range(2):
            self.assertEqual(self.json('checkpoint', 'restore', '1', code=FAILED)['error']['code'], 'busy')
            self.assertEqual([each['id'] for each in self.listed()], listed)
        shutil.rmtree(self.tree / 'x')
        self.json('checkpoint', 'restore', '1')
        self.assertEqual((self.tree / 'x').read_text(), 'kept\n')

    def stage_directory(self):
        """Where the work tree's staged changes are on disk."""
        return next(path.parent for path in self.state_of_tree().rglob('stage.db'))

    def test_doctor_says_what_is_damaged_and_the_rest_works(self):
        self.change()
        self.json('checkpoint')
        self.json('checkpoint')
        self.close_tree()
        checkpoints = self.stage_directory() / 'checkpoints'
        self.assertIn('2 checkpoints', self.doctor(check=False).stdout)
        (checkpoints / '2/list').write_text('nothing')
        said = self.doctor(check=False)
        self.assertEqual(said.returncode, FAILED)
        self.assertIn('checkpoint 2 is damaged', said.stdout)
        self.tree = self.open_tree()
        self.assertEqual(self.json('checkpoint', 'restore', '2', code=FAILED)['error']['code'], 'corrupt')
        self.assertEqual([bool(each['damage']) for each in self.listed()], [True, False])
        kept = self.seen()
        self.json('discard', '.')
        self.json('checkpoint', 'restore', '1')
        self.assertEqual(self.seen(), kept)
        self.assertFalse((self.stage_directory() / 'lost+found').exists())


class InAClone(Cases):
    def open_tree(self):
        return self.work

    def close_tree(self):
        pass

    def state_of_tree(self):
        return self.work / '.playfs'

    def doctor(self, **options):
        return self.playfs('doctor', cwd=self.work, **options)

    def test_an_edit_meanwhile_is_taken_in_first(self):
        (self.work / 'rose').write_text('one\n')
        self.json('checkpoint')
        (self.work / 'rose').write_text('two\n')
        self.json('checkpoint', 'restore', '1')
        self.assertEqual((self.work / 'rose').read_text(), 'one\n')
        self.json('checkpoint', 'restore', '2')
        self.assertEqual((self.work / 'rose').read_text(), 'two\n')

    def test_a_copied_clone_has_its_checkpoints(self):
        kept = self.change()
        self.json('checkpoint')
        copy = self.home / 'copy'
        shutil.copytree(self.work, copy, symlinks=True)
        self.tree = copy
        (copy / 'rose').write_text('other\n')
        self.json('discard', '.')
        self.json('checkpoint', 'restore', '1')
        self.assertEqual(self.seen(), kept)

    def test_nothing_is_removed_through_a_strangers_link(self):
        (self.work / 'rose').write_text('two\n')
        self.json('checkpoint')
        victim = self.home / 'victim'
        (victim / 'new').mkdir(parents=True)
        (victim / '7~').mkdir()
        for path in ('new/file', '7~/file', 'draft~'):
            (victim / path).write_text('mine\n')
        before = self.describe(victim)
        folder = self.stage_directory() / 'checkpoints'
        shutil.rmtree(folder)
        folder.symlink_to(victim)
        for words in (['status'], ['checkpoint', 'list'], ['discard', '.'], ['checkpoint'], ['status']):
            self.run_in(*words, check=False)
        self.assertEqual(self.describe(victim), before)


class InAMount(Cases):
    def open_tree(self):
        self.mounted = self.mount(self.api.origin)
        return self.mounted.directory / 'projects' / self.project / 'work'

    def close_tree(self):
        self.mounted.unmount()

    def state_of_tree(self):
        return self.home / 'ann/state'

    def doctor(self, **options):
        return self.playfs('doctor', **options)

    def request(self, **fields):
        control = self.tree.parent / 'commit'
        with contextlib.suppress(OSError):  # the outcome of a complete JSON object
            control.write_text(json.dumps(fields))
        return json.loads(control.read_text())

    def test_by_file(self):
        kept = self.change()
        paths = len(self.staged())
        self.assertEqual(self.request(checkpoint='By file'),
                         {'schema_version': 1, 'outcome': 'kept', 'checkpoint': 1, 'paths': paths})
        dropped = self.request(discard='.')
        self.assertEqual((dropped['outcome'], dropped['discarded'], dropped['checkpoint']), ('discarded', paths, 2))
        listed = json.loads((self.tree.parent / 'status.json').read_text())['checkpoints']
        self.assertEqual([(each['id'], each['message']) for each in listed], [(2, 'before a discard'), (1, 'By file')])
        some = self.request(restore_checkpoint=1, paths=['rose'])
        self.assertEqual((some['outcome'], some['restored'], some['before']), ('restored', 1, None))
        everything = self.request(restore_checkpoint=2)
        self.assertEqual((everything['restored'], everything['before']), (paths, 3))
        self.assertEqual(self.seen(), kept)
        self.assertEqual(self.request(restore_checkpoint=99)['error']['code'], 'not_found')
        self.request(discard='.')
        self.assertEqual(self.request(checkpoint=True)['outcome'], 'nothing')
        for refused in ({'checkpoint': 3}, {'restore_checkpoint': 'x'}, {'restore_checkpoint': 0}, {'paths': ['rose']},
                        {'checkpoint': True, 'message': 'm'}, {'restore_checkpoint': 1, 'checkpoint': True},
                        {'restore_checkpoint': 1, 'paths': ['../x']}, {'restore_checkpoint': 1, 'paths': []}):
            self.assertEqual(self.request(**refused)['error']['code'], 'invalid_argument', refused)

    def test_open_files_and_mappings_never_reach_it(self):
        for name in ('mapped', 'open'):
            (self.tree / name).write_text('kept ' * 2000)
        with open(self.tree / 'mapped', 'r+b') as mapped, open(self.tree / 'open', 'r+b') as file:
            view = mmap.mmap(mapped.fileno(), 0)
            view[:4] = b'KEPT'
            view.flush()
            self.json('checkpoint')
            view[:4] = b'lost'
            view.flush()
            file.write(b'lost')
            file.flush()
            self.assertEqual((self.tree / 'open').read_text()[:5], 'lost ')
            self.json('checkpoint', 'restore', '1')
            self.assertEqual((self.tree / 'mapped').read_text(), 'KEPT ' + 'kept ' * 1999)
            self.assertEqual((self.tree / 'open').read_text(), 'kept ' * 2000)
            view.close()

    def write_meanwhile(self, name, command):
        """Counts up in an open file until the command has dropped it; returns the last number that was acknowledged."""
        acknowledged = threading.Event(), []

        def write():
            with open(self.tree / name, 'r+b', buffering=0) as file, contextlib.suppress(OSError):
                for number in range(10 ** 7):
                    os.pwrite(file.fileno(), f'{number:08}'.encode(), 0)
                    acknowledged[1].append(number)
                    if number == 50:
                        acknowledged[0].set()
        writer = threading.Thread(target=write)
        writer.start()
        acknowledged[0].wait()
        said = self.run_in(*command).stderr
        writer.join()
        return acknowledged[1][-1], said

    def assert_brought_back(self, name, number, said):
        found = re.findall(r'^To bring .*: playfs (checkpoint restore \d+.*)$', said, re.M)
        for command in found:
            self.run_in(*shlex.split(command))
        self.assertEqual((self.tree / name).read_text(), f'{number:08}')

    def test_what_is_written_while_others_are_dropped_is_kept(self):
        names = [f'file-{number:03}' for number in range(60)]
        for name in names:
            (self.tree / name).write_text('00000000')
        number, said = self.write_meanwhile(names[-1], ['discard', *names])
        self.assert_brought_back(names[-1], number, said)
        self.json('commit', '-m', 'Many')
        for name in names:
            (self.tree / name).write_text('staged')
        number, said = self.write_meanwhile(names[-1], ['restore', *names])
        self.assert_brought_back(names[-1], number, said)

    def test_what_is_renamed_into_place_meanwhile_is_kept(self):
        (self.tree / '.gitignore').write_text('*.tmp\n')
        self.json('commit', '-m', 'Ignore')
        renamed, ended = [], threading.Event()

        def save():
            while not ended.is_set():
                name = f'file-{len(renamed)}'
                (self.tree / f'{name}.tmp').write_text(name)
                (self.tree / f'{name}.tmp').rename(self.tree / name)
                renamed.append(name)
        saving = threading.Thread(target=save)
        saving.start()
        try:
            for count in range(1, 11):
                while len(renamed) < 30 * count:
                    ended.wait(0.01)
                self.json('discard', '.')
        finally:
            ended.set()
            saving.join()
        found = set(os.listdir(self.tree))
        for each in self.listed():
            self.json('checkpoint', 'restore', str(each['id']))
            found |= set(os.listdir(self.tree))
        self.assertEqual([name for name in renamed if name not in found], [])

    def test_what_was_private_is_private_again(self):
        for name, bits in (('secret', 0o600), ('tool', 0o700), ('plain', 0o644)):
            (self.tree / name).write_text(name)
            (self.tree / name).chmod(bits)
        for _ in range(2):
            self.json('discard', '.')
            self.json('checkpoint', 'restore', '1')
            self.assertEqual({name: (self.tree / name).stat().st_mode & 0o777 for name in ('secret', 'tool', 'plain')},
                             {'secret': 0o600, 'tool': 0o700, 'plain': 0o644})
            self.mounted.kill()
            self.tree = self.open_tree()

    def test_the_mount_shows_the_restored_bytes_at_once(self):
        (self.tree / 'rose').write_text('first\n')
        self.json('checkpoint')
        os.utime(self.tree / 'rose', (1, 1))
        for number in range(20):
            (self.tree / 'rose').write_text(f'later {number}\n')
            (self.tree / f'new-{number}').write_text('new\n')
            self.assertEqual(os.stat(self.tree / 'rose').st_size, len(f'later {number}\n'))
            self.json('checkpoint', 'restore', '1')
            self.assertEqual((self.tree / 'rose').read_text(), 'first\n')
            self.assertNotIn(f'new-{number}', os.listdir(self.tree))
            self.assertFalse((self.tree / f'new-{number}').exists())

    def test_it_survives_kill_9(self):
        kept = self.change()
        self.json('checkpoint')
        (self.tree / 'rose').write_text('later\n')
        self.mounted.kill()
        self.tree = self.open_tree()
        self.json('checkpoint', 'restore', '1')
        self.mounted.kill()
        self.tree = self.open_tree()
        self.assertEqual(self.seen(), kept)
        self.json('discard', '.')
        self.mounted.kill()
        self.tree = self.open_tree()
        self.json('checkpoint', 'restore', '3')
        self.assertEqual(self.seen(), kept)
        self.mounted.unmount()
        self.assertEqual([each for each in self.found_by_doctor() if each['finding'] == 'wrong'], [])
        self.assertFalse((self.stage_directory() / 'lost+found').exists())

    def test_what_was_published_since_is_no_change(self):
        (self.tree / 'rose').write_text('two\n')
        self.json('checkpoint')
        self.json('commit', '-m', 'Two')
        (self.tree / 'rose').write_text('three\n')
        self.assertEqual(self.json('checkpoint', 'restore', '1')['restored'], 1)
        self.assertEqual(self.staged(), {}, 'it is what was published')

    def test_two_mounts_have_their_own(self):
        (self.tree / 'rose').write_text('ann\n')
        self.assertEqual(self.json('checkpoint')['checkpoint'], 1)
        bob = self.mount(self.api.origin, who='bob').directory / 'projects' / self.project / 'work'
        (bob / 'rose').write_text('bob\n')
        self.assertEqual(self.json('checkpoint', at=bob, who='bob')['checkpoint'], 1)
        self.json('discard', '.', at=bob, who='bob')
        self.json('checkpoint', 'restore', '1', at=bob, who='bob')
        self.assertEqual((bob / 'rose').read_text(), 'bob\n')
        self.assertEqual(len(self.listed()), 1)
        # The same user's second mount only reads.
        second = self.mount(self.api.origin).directory / 'projects' / self.project / 'work'
        self.assertEqual(self.json('checkpoint', at=second, code=FAILED)['error']['code'], 'not_supported')


class WhileSomethingIsPublished(SlowProject):
    def test_checkpoints_are_made_but_not_restored(self):
        mounted = self.begin({'file_chunks': 1})
        tree = self.work(mounted)
        (tree / 'big').write_text(text(60_000, 1))
        (tree / 'small').write_text('small\n')
        self.commit_without_waiting(mounted, 'Too much at once')
        (tree / 'small').write_text('later\n')
        made = json.loads(self.playfs('checkpoint', '--json', cwd=tree).stdout)
        self.assertEqual((made['checkpoint'], made['paths']), (1, 2))
        (tree / 'small').write_text('last\n')
        done = self.playfs('checkpoint', 'restore', '1', '--json', cwd=tree, check=False)
        error = json.loads(done.stdout)['error']
        self.assertEqual((done.returncode, error['code'], error['retryable']), (FAILED, 'busy', True))
        self.assertEqual((tree / 'small').read_text(), 'last\n')
        self.playfs('commit', '--cancel', tree)
        self.playfs('checkpoint', 'restore', '1', cwd=tree)
        self.assertEqual((tree / 'small').read_text(), 'later\n')
        self.assertEqual((tree / 'big').read_text(), text(60_000, 1))


del Cases
if __name__ == '__main__':
    fixture.main()
