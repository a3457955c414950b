#!/usr/bin/env python3
"""A clone: a plain directory without a mount, in which the commands of a work tree work."""
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

import fixture
import projects
from clones import BRANCHED, DONE, FAILED, NOT_FOUND, UNREACHABLE, USAGE, Clones

LINES = ''.join(f'line {number}\n' for number in range(40))


class Everyday(Clones):
    def test_edits_are_seen_and_published(self):
        self.assertEqual(self.staged(), {})
        (self.work / 'rose').write_text('rosa\n')
        (self.work / 'run.sh').write_text('#!/bin/sh\n')
        (self.work / 'run.sh').chmod(0o755)
        (self.work / 'src/deep').mkdir(parents=True)
        (self.work / 'src/deep/a.c').write_text('int a;\n')
        os.symlink('rose', self.work / 'link')
        (self.work / 'blob').write_bytes(bytes(range(256)) * 200)
        self.assertEqual(self.staged(), dict.fromkeys(['rose', 'run.sh', 'src/deep/a.c', 'link', 'blob'], 'added'))
        self.commit('Plant')
        self.assertEqual(self.staged(), {})
        self.assertEqual(set(self.files()), {'rose', 'run.sh', 'src/deep/a.c', 'link', 'blob'})
        self.assertEqual((self.files()['run.sh']['m'], self.files()['link']['m']), ('100755', '120000'))
        self.assertEqual(self.read('blob'), bytes(range(256)) * 200)

        (self.work / 'rose').write_text('rosa canina\n')
        (self.work / 'run.sh').chmod(0o644)
        (self.work / 'blob').unlink()
        (self.work / 'src/deep/a.c').rename(self.work / 'src/b.c')
        (self.work / 'src/deep').rmdir()
        (self.work / 'link').unlink()
        os.symlink('src', self.work / 'link')
        self.assertEqual(self.staged(), {'rose': 'modified', 'run.sh': 'modified', 'blob': 'deleted', 'link': 'modified',
                                         'src/deep/a.c': 'deleted', 'src/b.c': 'added'})
        self.commit('Prune')
        self.assertEqual(set(self.files()), {'rose', 'run.sh', 'src/b.c', 'link'})
        self.assertNotIn('m', self.files()['run.sh'])
        self.assert_same_tree(self.work, self.clone('again', 'bob'))

    def test_commands_find_it_from_below_and_json_says_the_same(self):
        (self.work / 'a/b').mkdir(parents=True)
        (self.work / 'a/b/c').write_text('c')
        self.assertEqual(self.staged(at=self.work / 'a/b'), {'a/b/c': 'added'})
        self.assertEqual(self.json('commit', '-m', 'Deep', at=self.work / 'a')['outcome'], 'published')
        self.assertEqual(self.json('update', at=self.work / 'a/b')['moved'], False)
        self.assertIn('neither in a playfs mount nor in a clone',
                      self.playfs('status', cwd=self.home, check=False).stderr)

    def test_log_diff_and_branches(self):
        (self.work / 'rose').write_text(LINES)
        first = self.commit('Plant')
        (self.work / 'rose').write_text(LINES.replace('line 5\n', 'five\n'))
        self.assertIn('-line 5\n+five\n', self.run_in('diff').stdout)
        self.assertEqual(self.json('diff', '--stat')['files'][0]['path'], 'rose')
        second = self.commit('Prune')
        self.assertEqual(self.run_in('diff').stdout, '')
        self.assertIn('+five\n', self.run_in('diff', f'{first}..{second}').stdout)
        self.assertIn('+five\n', self.run_in('diff', first).stdout)
        log = [json.loads(line)['revision'] for line in self.run_in('log', '--json').stdout.splitlines()]
        self.assertEqual(log, [second, first])
        branch = self.api.create('revisions', project=self.project, parents=[first], agent='bob', message='Water',
                                 manifest={'tx': os.urandom(16).hex(), 'files': {
                                     **self.files(first), 'tulip': {'inline': 'tulip\n'}}}, state={})['id']
        self.assertEqual([each['revision'] for each in self.json('branches')['branches']], [branch])
        self.assertTrue(self.json('merge', branch)['to_commit'])
        self.assertEqual((self.work / 'tulip').read_text(), 'tulip\n')
        self.commit('Both')
        self.assertEqual((self.read('tulip'), self.read('rose')), (b'tulip\n', LINES.replace('line 5\n', 'five\n').encode()))

    def test_update_brings_in_what_others_published_and_keeps_what_is_staged(self):
        (self.work / 'rose').write_text(LINES)
        (self.work / 'old').write_text('old')
        self.commit('Plant')
        other = self.clone('other', 'bob')
        (other / 'rose').write_text(LINES.replace('line 30\n', 'thirty\n'))
        (other / 'old').unlink()
        (other / 'new/deep').mkdir(parents=True)
        (other / 'new/deep/file').write_text('new')
        self.commit('Water', at=other, who='bob')
        (self.work / 'rose').write_text(LINES.replace('line 5\n', 'five\n'))
        (self.work / 'mine').write_text('mine')
        self.assertTrue(self.json('update')['moved'])
        both = LINES.replace('line 5\n', 'five\n').replace('line 30\n', 'thirty\n')
        self.assertEqual((self.work / 'rose').read_text(), both)
        self.assertEqual((self.work / 'new/deep/file').read_text(), 'new')
        self.assertFalse((self.work / 'old').exists())
        self.assertEqual(self.staged(), {'rose': 'modified', 'mine': 'added'})
        self.commit('Both')
        self.json('update', at=other, who='bob')
        self.assert_same_tree(self.work, other)

    def test_a_commit_is_merged_with_head_and_the_directory_shows_it(self):
        (self.work / 'rose').write_text(LINES)
        self.commit('Plant')
        other = self.clone('other', 'bob')
        (other / 'tulip').write_text('tulip\n')
        self.commit('Tulip', at=other, who='bob')
        (self.work / 'rose').write_text(LINES + 'more\n')
        self.assertEqual(self.json('commit', '-m', 'More')['outcome'], 'published')
        self.assertEqual((self.work / 'tulip').read_text(), 'tulip\n')
        self.assertEqual(self.staged(), {})

    def test_conflicts_are_marked_and_resolved(self):
        (self.work / 'rose').write_text(LINES)
        self.commit('Plant')
        other = self.clone('other', 'bob')
        (other / 'rose').write_text(LINES.replace('line 5\n', 'cinq\n'))
        self.commit('French', at=other, who='bob')
        (self.work / 'rose').write_text(LINES.replace('line 5\n', 'fünf\n'))
        self.assertEqual(self.json('update', code=BRANCHED)['conflicts'], 1)
        marked = (self.work / 'rose').read_text()
        self.assertRegex(marked, r'(?s)<<<<<<< work tree\nfünf\n.*=======\ncinq\n>>>>>>> head ')
        self.json('commit', '-m', 'Too early', code=BRANCHED)
        (self.work / 'rose').write_text(LINES.replace('line 5\n', 'fünf cinq\n'))
        self.commit('Both')
        self.assertEqual(self.read('rose').decode(), LINES.replace('line 5\n', 'fünf cinq\n'))

    def test_discard(self):
        (self.work / 'rose').write_text('rosa\n')
        (self.work / 'gone').write_text('gone\n')
        self.commit('Plant')
        (self.work / 'rose').write_text('weed\n')
        (self.work / 'gone').unlink()
        (self.work / 'new').write_text('new\n')
        self.assertEqual(self.json('discard', 'rose')['discarded'], 1)
        self.assertEqual((self.work / 'rose').read_text(), 'rosa\n')
        self.assertEqual(self.staged(), {'gone': 'deleted', 'new': 'added'})
        self.assertEqual(self.json('discard', 'gone', 'new')['discarded'], 2)
        self.assertEqual(sorted(os.listdir(self.work)), ['.playfs', 'gone', 'rose'])

    def test_a_dry_run_sends_nothing(self):
        (self.work / 'rose').write_text('rosa\n')
        plan = self.json('publish', '--dry-run')
        self.assertEqual([each['path'] for each in plan['plan']['paths']], ['rose'])
        self.assertEqual(self.api.all('revisions'), [])
        self.assertEqual(self.staged(), {'rose': 'added'})

    @unittest.skipUnless(shutil.which('git'), 'needs git')
    def test_a_git_repository_around_it_neither_adds_nor_removes_its_state(self):
        def git(*words):
            return self.command('git', '-c', 'user.name=a', '-c', 'user.email=a@b', *words, cwd=self.work).stdout

        git('init', '-q', '.')
        (self.work / 'rose').write_text('rosa\n')
        (self.work / 'lily').write_text('lilium\n')
        self.commit('Plant')
        (self.work / 'rose').write_text('rosa canina\n')
        (self.work / 'lily').unlink()
        self.assertEqual(self.staged(), {'rose': 'modified', 'lily': 'deleted'})
        (self.work / 'tulip').write_text('tulipa\n')  # not taken in yet
        self.assertEqual(git('status', '--short'), '?? rose\n?? tulip\n')
        git('add', '-A')
        git('commit', '-q', '-m', 'All')
        for options in ('-fdX', '-fdx'):
            git('clean', '-q', options)
            self.assertEqual(self.staged(), {'rose': 'modified', 'lily': 'deleted', 'tulip': 'added'}, options)
            self.assertEqual(git('status', '--short'), '')
        self.commit('Change')
        self.assertEqual(set(self.files()), {'rose', 'tulip'})
        self.assertEqual(self.json('status')['lost_and_found'], [])

    def test_ignored_files_stay_here_unread(self):
        (self.work / '.gitignore').write_text('*.o\nbuild/\n')
        (self.work / 'x.o').write_text('o')
        (self.work / 'build/deep').mkdir(parents=True)
        (self.work / 'build/deep/big').write_bytes(b'x' * 5_000_000)
        (self.work / '.git').mkdir()
        (self.work / '.git/HEAD').write_text('ref: refs/heads/main\n')
        (self.work / 'main.c').write_text('int main;\n')
        status = self.json('status')
        self.assertEqual({each['path'] for each in status['staged']}, {'.gitignore', 'main.c'})
        self.assertEqual(set(status['unpublished']), {'x.o', 'build/', '.git/'})
        self.commit('Only sources')
        self.assertEqual(set(self.files()), {'.gitignore', 'main.c'})
        size = sum(path.stat().st_size for path in (self.work / '.playfs').rglob('spool/*'))
        self.assertLess(size, 100_000, 'the stage has no copy of what is ignored')
        self.assertEqual((self.work / 'build/deep/big').stat().st_size, 5_000_000)
        (self.work / '.gitignore').write_text('build/\n')
        self.assertEqual(self.staged(), {'.gitignore': 'modified', 'x.o': 'added'})
        self.commit('Objects too')
        self.assertEqual(self.read('x.o'), b'o')

    def test_what_is_ignored_is_not_published_by_the_rules_of_others(self):
        (self.work / '.gitignore').write_text('secret\nkeys/\n')
        self.commit('Rules')
        (self.work / 'secret').write_text('password')
        (self.work / 'keys').mkdir()
        (self.work / 'keys/id').write_text('key')
        self.assertEqual(self.staged(), {})
        other = self.clone('other', 'bob')
        (other / '.gitignore').write_text('\n')
        self.commit('No rules', at=other, who='bob')
        self.json('update', code=BRANCHED)
        self.json('commit', '-m', 'Not those', code=BRANCHED)
        self.assertEqual(set(self.files()), {'.gitignore'})
        self.assertEqual((self.work / 'secret').read_text(), 'password')
        (self.work / '.playfsignore').write_text('secret\nkeys/\n')
        self.commit('My rules')
        self.assertEqual(set(self.files()), {'.gitignore', '.playfsignore'})

    def test_a_published_file_does_not_replace_an_ignored_one(self):
        (self.work / '.gitignore').write_text('notes\n')
        self.commit('Rules')
        (self.work / 'notes').write_text('mine\n')
        other = self.clone('other', 'bob')
        (other / '.gitignore').write_text('\n')
        (other / 'notes').write_text('theirs\n')
        self.commit('Notes', at=other, who='bob')
        self.json('update', code=FAILED)
        self.assertEqual((self.work / 'notes').read_text(), 'mine\n')

    def test_another_revision_and_refusals(self):
        (self.work / 'rose').write_text('one\n')
        first = self.commit('One')
        (self.work / 'rose').write_text('two\n')
        self.commit('Two')
        old = self.clone('old', 'ann', None, '--revision', first)
        self.assertEqual((old / 'rose').read_text(), 'one\n')
        self.assertEqual(self.json('status', at=old)['base'], first)
        self.assertTrue(self.json('update', at=old)['moved'])
        self.assertEqual((old / 'rose').read_text(), 'two\n')
        for directory, code, words in ((self.work, FAILED, 'is a clone already'), (self.work / 'in', USAGE, 'in the clone')):
            done = self.playfs('clone', self.project, directory, '--site', self.api.origin, check=False)
            self.assertEqual((done.returncode, words in done.stderr), (code, True), done.stderr)
        self.assertFalse((self.work / 'in').exists())
        full = self.home / 'full'
        full.mkdir()
        (full / 'file').write_text('x')
        done = self.playfs('clone', self.project, full, '--site', self.api.origin, check=False)
        self.assertIn('is not empty', done.stderr)
        self.assertEqual(os.listdir(full), ['file'])
        self.assertEqual(self.playfs('clone', 'nothing', self.home / 'no', '--site', self.api.origin,
                                     check=False).returncode, NOT_FOUND)
        done = self.playfs('import', self.work, check=False)
        self.assertIn('is a clone', done.stderr)

    def test_the_embedded_playground(self):
        self.playfs('init', 'local')
        here = self.home / 'here'
        self.playfs('clone', 'local', here)
        (here / 'file').write_text('local')
        revision = self.commit('Local', at=here)
        self.assertEqual(self.playfs('cat', revision, 'file').stdout, 'local')

    def test_a_repository_around_it_takes_none_of_its_state(self):
        (self.work / 'draft').write_text('draft\n')
        self.run_in('status')
        if not shutil.which('git'):
            self.skipTest('no git here')
        self.command('git', 'init', '-q', cwd=self.work)
        self.assertEqual(self.command('git', 'add', '-An', cwd=self.work).stdout, "add 'draft'\n")

    def test_bits_that_did_not_stick_are_no_change(self):
        (self.work / 'run').write_text('#!/bin/sh\n')
        (self.work / 'run').chmod(0o755)
        (self.work / 'notes').write_text('notes\n')
        self.commit('Plant')
        other = self.home / 'other'
        self.command('sh', '-c', 'umask 0177; "$@"', 'sh', self.playfs_path, 'clone', self.project, other, '--site',
                     self.api.origin, who='bob')
        other.chmod(0o755)
        self.assertEqual((other / 'run').stat().st_mode & 0o111, 0)
        self.assertEqual(self.staged(at=other, who='bob'), {})
        (other / 'run').write_text('#!/bin/bash\n')
        (other / 'notes').chmod(0o755)
        self.assertEqual(self.staged(at=other, who='bob'), {'run': 'modified', 'notes': 'modified'})
        self.commit('Bash', at=other, who='bob')
        self.assertEqual([self.files()[path]['m'] for path in ('run', 'notes')], ['100755', '100755'])

    def test_what_is_too_large_is_listed_and_not_copied(self):
        with open(self.work / 'big', 'wb') as file:
            file.truncate(70_000_000)
        (self.work / 'rose').write_text('rosa\n')
        status = self.json('status')
        self.assertEqual([each['path'] for each in status['unread']], ['big'])
        self.assertIn('has 70000000 bytes', self.run_in('status').stdout)
        self.assertEqual({each['path'] for each in status['staged']}, {'rose'})
        self.commit('Plant')
        self.assertEqual(set(self.files()), {'rose'})
        size = sum(path.stat().st_blocks * 512 for path in (self.work / '.playfs').rglob('*'))
        self.assertLess(size, 5_000_000)
        with open(self.work / 'rose', 'wb') as file:
            file.truncate(70_000_000)
        self.assertEqual(self.staged(), {}, 'not deleted')
        with open(self.work / 'big', 'wb') as file:
            file.write(b'small')
        self.assertEqual(self.staged(), {'big': 'added'})

    def test_deleting_it_deletes_nothing_published(self):
        (self.work / 'rose').write_text('rosa\n')
        revision = self.commit('Plant')
        self.command('rm', '-rf', self.work)
        self.assertEqual(self.read('rose', revision), b'rosa\n')

    def test_without_the_service(self):
        (self.work / 'rose').write_text('rosa\n')
        self.commit('Plant')
        mark = self.work / '.playfs/clone.json'
        mark.write_text(mark.read_text().replace(self.api.origin, f'http://127.0.0.1:{fixture.free_port()}'))
        # Another site: its cache knows nothing of the base.
        self.assertEqual(self.run_in('status', check=False).returncode, UNREACHABLE)


class Care(Clones):
    """What is in the directory is replaced only if this clone wrote it."""

    def test_a_symbolic_link_leads_nowhere(self):
        (self.work / 'dir').mkdir()
        (self.work / 'dir/file').write_text('one\n')
        self.commit('One')
        other = self.clone('other', 'bob')
        (other / 'dir/file').write_text('two\n')
        (other / 'dir/new').write_text('new\n')
        self.commit('Two', at=other, who='bob')
        outside = self.home / 'outside'
        outside.mkdir()
        (outside / 'file').write_text('outside\n')
        self.command('rm', '-r', self.work / 'dir')
        os.symlink(outside, self.work / 'dir')
        self.run_in('update', check=False)
        self.assertEqual({path.name: path.read_text() for path in outside.iterdir()}, {'file': 'outside\n'})
        self.assertTrue((self.work / 'dir').is_symlink())

    def test_hostile_names_are_not_written(self):
        files = {name: {'inline': 'evil'} for name in ('.git/config', 'a/../../out', '/etc/x', '.playfs/index.db', 'ok',
                                                       'sub/.GIT/hooks/post-checkout', 'HEAD', 'a\0b')}
        files['HEAD'] = {'inline': 'ref: refs/heads/main\n'}
        files['way'] = {'inline': '..', 'm': '120000'}
        files['way/out'] = {'inline': 'evil'}
        revision = self.api.create('revisions', project=self.project, parents=[], agent='eve', message='Evil',
                                   manifest={'tx': os.urandom(16).hex(), 'files': files}, state={})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})
        before = sorted(os.listdir(self.home))
        self.run_in('update')
        self.assertEqual(sorted(os.listdir(self.home)), before)
        self.assertEqual(sorted(os.listdir(self.work)), ['.playfs', 'ok', 'way'])
        self.assertEqual((self.work / 'way/out').read_text(), 'evil')
        self.assertEqual(self.staged(), {}, 'what was not written is not deleted')
        (self.work / 'mine').write_text('mine')
        self.commit('Mine')
        self.assertEqual(set(self.files()), set(files) | {'mine'}, 'carried forward')

    def test_a_file_that_changes_while_it_is_written_out_is_kept(self):
        names = [f'file{number}' for number in range(300)]
        for name in names:
            (self.work / name).write_text('one\n')
        self.commit('One')
        other = self.clone('other', 'bob')
        for name in names:
            (other / name).write_text('two\n')
        self.commit('Two', at=other, who='bob')
        ended, edited = threading.Event(), {}

        def edit():
            """Edits what has not been replaced yet, as an editor that keeps its file open would."""
            for name in reversed(names):
                if ended.is_set():
                    return
                with open(self.work / name, 'r+') as file:
                    if file.read() == 'one\n':
                        file.seek(0)
                        file.write('ours\n')
                        file.truncate()
                        edited[name] = os.fstat(file.fileno()).st_ino
                time.sleep(0.0005)

        thread = threading.Thread(target=edit)
        thread.start()
        self.run_in('update', check=False)
        ended.set()
        thread.join()
        self.run_in('status')
        kept = [name for name, inode in edited.items() if (self.work / name).stat().st_ino == inode]
        for name in names:
            text = (self.work / name).read_text()
            self.assertIn('ours' if name in kept else 'two', text, name)
        left = self.json('status')
        staged = {each['path'] for each in left['staged']}
        for name in kept:
            self.assertIn(name, staged)

    def test_an_edit_of_the_same_size_and_time_is_seen(self):
        path = self.work / 'rose'
        path.write_text('aaaa\n')
        self.commit('One')
        for text in ('bbbb\n', 'cccc\n', 'dddd\n'):
            before = path.stat()
            self.run_in('status')
            with open(path, 'r+') as file:
                file.write(text)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.assertEqual(self.staged(), {'rose': 'modified'}, text)
            self.run_in('commit', '-m', text)
            self.assertEqual(self.read('rose').decode(), text)

    def test_one_command_at_a_time(self):
        holder = subprocess.Popen(['flock', '-x', str(self.work / '.playfs/lock'), 'sh', '-c', 'echo held; cat'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), b'held\n')
        waiting = subprocess.Popen([self.playfs_path, 'status'], cwd=self.work, env=self.environment('ann'),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn('Waiting for', waiting.stderr.readline())
        self.assertIsNone(waiting.poll())
        holder.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertIn('Nothing is staged', waiting.communicate(timeout=fixture.COMMAND_LIMIT)[0])
        self.assertEqual(waiting.returncode, DONE)

    def test_an_unchanged_tree_costs_a_stat_for_each_file(self):
        for path, text in projects.some_files(500).items():
            (self.work / path).parent.mkdir(exist_ok=True)
            (self.work / path).write_text(text)
        self.commit('Many')
        time.sleep(0.05)
        self.run_in('status')
        if not shutil.which('strace'):
            self.skipTest('no strace here')
        trace = self.home / 'trace'
        self.command('strace', '-f', '-o', trace, self.playfs_path, 'status', cwd=self.work)
        calls = trace.read_text()
        of_files = [line for line in calls.splitlines() if '"file' in line]
        self.assertEqual([line for line in of_files if 'fstatat' not in line], [], 'no file is opened')
        self.assertEqual(len(of_files), 500, 'one stat for each')


class Killed(Clones):
    """kill -9 at any instant: the next command goes on from there."""

    def killed(self, *words, after, at=None, who='ann'):
        process = subprocess.Popen([self.playfs_path, *words], cwd=at or self.work, env=self.environment(who),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def test_commits_updates_and_discards(self):
        seed = int(os.environ.get('PLAYFS_SEED', random.randrange(1 << 30)))
        rng = random.Random(seed)
        print('seed', seed)
        other = self.clone('other', 'bob')
        wanted = {}
        for number in range(8):
            for _ in range(rng.randrange(1, 6)):
                name = f'd{rng.randrange(3)}/f{rng.randrange(6)}'
                wanted[name] = f'{number} {rng.random()}\n' * rng.choice([1, 2000])
                (self.work / name).parent.mkdir(exist_ok=True)
                (self.work / name).write_text(wanted[name])
            for command in (['status'], ['commit', '-m', str(number)], ['update']):
                self.killed(*command, after=rng.random() * 0.3)
            self.run_in('commit', '-m', f'{number} again')
            self.run_in('update')
            self.assertEqual(self.staged(), {}, seed)
            self.killed('update', after=rng.random() * 0.2, at=other, who='bob')
            self.run_in('update', at=other, who='bob')
            self.assertEqual(self.staged(at=other, who='bob'), {}, seed)
            for place in (self.work, other):
                found = {path: value[1].decode() for path, value in self.describe(place).items() if value != 'folder'}
                self.assertEqual(found, wanted, (seed, place))

    def test_a_clone_that_was_killed_is_completed(self):
        for path, text in projects.some_files(400).items():
            (self.work / path).parent.mkdir(exist_ok=True)
            (self.work / path).write_text(text)
        self.commit('Many')
        rng = random.Random(int(os.environ.get('PLAYFS_SEED', 0)))
        for number in range(4):
            directory = self.home / f'killed{number}'
            self.killed('clone', self.project, str(directory), '--site', self.api.origin, after=0.05 + rng.random() * 0.3)
            if not (directory / '.playfs/clone.json').exists():
                continue
            self.assertEqual(self.staged(at=directory), {}, 'what is missing is not deleted')
            self.run_in('update', at=directory)
            self.assert_same_tree(self.work, directory)


if __name__ == '__main__':
    fixture.main()
