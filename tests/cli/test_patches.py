#!/usr/bin/env python3
"""`playfs diff A..B | patch -p1` where a link or a file and a directory change places: GNU patch removes and creates in
an order of its own. It would write the directory's files through a link, and stops half-way at a file."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import fixture

FILE, PROGRAM, LINK = '100644', '100755', '120000'
NOTE = {'note': ('note\n', FILE)}
EDITED = {'note': ('edited\n', FILE)}
LED = {'d': ('.git/hooks', LINK)}
HOOK = ('#!/bin/sh\ntouch pwned\n', PROGRAM)
CASES = {
    'a directory': (LED, {'d/pre-commit': HOOK}),
    'a directory of directories': (LED, {'d/a/b/c': HOOK, 'd/a/pre-commit': HOOK}),
    'an empty file': (LED, {'d/shallow': ('', FILE)}),
    'bytes': (LED, {'d/pre-commit': ('\0\x01' * 300, PROGRAM)}),
    'a link below': (LED, {'d/pre-commit': ('../n', LINK)}),
    'the link moved away': (LED, {'d/pre-commit': HOOK, 'z': LED['d']}),
    'the link moved before it': (LED, {'d/pre-commit': HOOK, 'a': LED['d']}),
    'the link moved below': (LED, {'d/pre-commit': HOOK, 'd/link': LED['d']}),
    'a file moved there': (LED | {'f': HOOK}, {'d/pre-commit': HOOK}),
    'a file moved there with another mode': (LED | {'f': (HOOK[0], FILE)}, {'d/pre-commit': HOOK}),
    'a file moved there, edited': (LED | {'f': ('line\n' * 30, FILE)}, {'d/pre-commit': ('line\n' * 30 + 'x\n', PROGRAM)}),
    'links in a row': (LED | {'e': ('d', LINK)}, {'e/pre-commit': HOOK, 'd/x': HOOK}),
    'odd names': ({'a\nb "c"': LED['d']}, {'a\nb "c"/pre-commit': HOOK}),
    'a link deeper down': ({'s/d': ('../.git/hooks', LINK)}, {'s/d/pre-commit': HOOK}),
    'a file': ({'d': ('a\n', FILE)}, {'d/x': ('x\n', FILE)}),
    'a file that moves down': ({'d': ('line\n' * 30, FILE)}, {'d/x': ('line\n' * 30, FILE)}),
    'another file in its place': ({'d/x': ('x\n', FILE), 'y': ('line\n' * 30, FILE)}, {'d': ('line\n' * 30 + 'x\n', FILE)}),
    'two that change places': ({'d/x': ('d\n' * 30, FILE), 'y': ('y\n' * 30, FILE)},
                               {'d': ('y\n' * 30, FILE), 'y/x': ('d\n' * 30, PROGRAM)}),
    'names around it': (LED, {'d-': ('x\n', FILE), 'd!': ('x\n', FILE), 'd/pre-commit': HOOK}),
}


@fixture.needs_fuse
class Patches(fixture.Fixture):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which('patch'):
            raise unittest.SkipTest('needs patch(1)')

    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = json.loads(self.playfs('init', 'links', '--json', '--site', self.api.origin).stdout)['project']
        self.work = self.mount(self.api.origin).directory / 'projects' / self.project / 'work'

    def revision(self, tree):
        return self.api.create('revisions', project=self.project, parents=[], agent='eve', message='m', state={},
                               manifest={'files': {path: {'inline': text, 'm': mode} for path, (text, mode) in tree.items()}})['id']

    def checkout(self, tree):
        top = self.home / 'checkout'
        shutil.rmtree(top, ignore_errors=True)
        self.command('git', 'init', '-q', top)
        for path, (text, mode) in tree.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            if mode == LINK:
                os.symlink(text, top / path)
            else:
                (top / path).write_text(text)
                (top / path).chmod(0o755 if mode == PROGRAM else 0o644)
        self.hooks = os.listdir(top / '.git/hooks')
        return top

    def tree_of(self, top):
        tree = {}
        for at, directories, files in os.walk(top):
            if at == str(top):
                directories.remove('.git')
            for name in files + [each for each in directories if os.path.islink(os.path.join(at, each))]:
                path = os.path.join(at, name)
                mode = LINK if os.path.islink(path) else PROGRAM if os.access(path, os.X_OK) else FILE
                text = os.readlink(path) if mode == LINK else pathlib.Path(path).read_text()
                tree[os.path.relpath(path, top)] = (text, mode)
        return tree

    def patch_between(self, before, after, *words):
        patch = self.home / 'patch'
        self.command('sh', '-c', 'exec "$0" diff "$@" > ' + str(patch), self.playfs_path,
                     f'{self.revision(before)}..{self.revision(after)}', *words, cwd=self.work)
        return patch

    def patched(self, top, patch, *words):
        done = subprocess.run(['patch', '-p1', *words, '-i', patch], cwd=top, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_refused(self, tree, patch, *words, times=1):
        """patch(1) says why, and touches nothing."""
        top = self.checkout(tree)
        for _ in range(times):
            code, said = self.patched(top, patch, *words)
            self.assertEqual(code, 2, said)
            self.assertIn('patch would write through it or stop: use git apply', said)
            self.assertEqual(self.tree_of(top), tree)
            self.assertEqual(os.listdir(top / '.git/hooks'), self.hooks)

    def git_restores_modes(self):
        """git 2.47 gives what `apply -R` brings back the mode 644, from its own patches, too."""
        top = self.checkout({})
        subprocess.run(['git', 'apply', '-R'], cwd=top, check=True, text=True, input='diff --git a/x b/x\n'
                       'deleted file mode 100755\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n')
        return os.access(top / 'x', os.X_OK)

    def test_nothing_is_written_through_a_link(self):
        keeps_modes = self.git_restores_modes()
        for name, sides in CASES.items():
            for direction, (before, after) in (('link first', sides), ('link last', sides[::-1])):
                before, after = before | NOTE, after | EDITED
                with self.subTest(name, direction=direction):
                    patch = self.patch_between(before, after)
                    for tree, wanted, reverse in ((before, after, []), (after, before, ['-R'])):
                        top = self.checkout(tree)
                        self.command('git', 'apply', *reverse, patch, cwd=top)
                        shown = self.tree_of(top)
                        if reverse and not keeps_modes:
                            shown, wanted = ({path: text for path, (text, _) in each.items()} for each in (shown, wanted))
                        self.assertEqual(shown, wanted)
                        self.assertEqual(os.listdir(top / '.git/hooks'), self.hooks)
                        for force in [], ['-f'], ['-t'], ['-N']:
                            self.assert_refused(tree, patch, *force, *reverse, times=2)
                        # Told that this is a unified diff, it goes on to the first file, but finds no text.
                        top = self.checkout(tree)
                        code, said = self.patched(top, patch, '-u', '-f', *reverse)
                        self.assertIn(code, (1, 2), said)
                        for _, _, files in os.walk(top / '.git/hooks'):
                            self.assertLessEqual(set(files), set(self.hooks))

    def test_a_patch_of_some_files_knows_the_links_above_them(self):
        before, after = LED | NOTE, {'d/pre-commit': HOOK} | EDITED
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': self.revision(after)})
        self.playfs('update', self.work)
        patch = self.patch_between(before, after, self.work / 'd/pre-commit')
        self.assertNotIn('deleted file', patch.read_text())
        self.assert_refused(before, patch)
        files = json.loads(self.command(self.playfs_path, 'diff', '--json', f'{self.revision(before)}..{self.revision(after)}',
                                        cwd=self.work).stdout)['files']
        for each in files:
            if each['path'] != 'note':
                patch.write_text(each['diff'])
                self.assert_refused(before, patch)

    def test_a_work_tree_is_no_other(self):
        before = self.revision(LED | NOTE)
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': before})
        self.playfs('update', self.work)
        (self.work / 'd').unlink()
        (self.work / 'd').mkdir()
        (self.work / 'd/pre-commit').write_text(HOOK[0])
        patch = self.home / 'patch'
        for words in (), (self.work / 'd/pre-commit',):
            self.command('sh', '-c', f'exec "$0" diff "$@" > {patch}', self.playfs_path, *words, cwd=self.work)
            self.assert_refused(LED | NOTE, patch)

    def test_people_see_the_lines(self):
        before, after = LED | NOTE, {'d/pre-commit': HOOK} | EDITED
        text = self.patch_between(before, after).read_text()
        for line in '# -.git/hooks', '# +#!/bin/sh', '# +touch pwned', '-note', '+edited', 'GIT binary patch':
            self.assertIn(f'\n{line}\n', text)
        self.assertEqual(text.count('GIT binary patch'), 2)


if __name__ == '__main__':
    fixture.main()
