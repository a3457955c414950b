#!/usr/bin/env python3
"""tools/release, in a copy of the repository: what it refuses, what a release consists of, and how one that failed goes on.
It packages what is built here, without compiling again."""
import os
import re
import shutil
import subprocess
import tarfile
import unittest

import fixture
from test_package import BUILD, MISSING


@unittest.skipIf(MISSING, f'missing: {", ".join(MISSING)}')
@unittest.skipUnless((fixture.ROOT / '.git').exists(), 'not a git repository')
class Releases(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.public = self.home / 'public.git'
        self.tree = self.home / 'tree'
        subprocess.run(['git', 'clone', '--quiet', '--bare', fixture.ROOT, self.public], check=True)
        subprocess.run(['git', 'clone', '--quiet', self.public, self.tree], check=True)
        for name, value in (('user.name', 'Ada'), ('user.email', 'ada@example.org')):
            self.git('config', name, value)
        self.git('switch', '--quiet', '-C', 'main')
        shutil.copytree(fixture.ROOT / 'tools', self.tree / 'tools', symlinks=True, dirs_exist_ok=True)
        self.write('CHANGELOG.md', '# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Flying.\n\n## [0.0.1] - 2026-01-01\n\n- Walking.\n')
        self.commit()

    def git(self, *arguments):
        return subprocess.run(['git', '-C', self.tree, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout

    def write(self, name, text):
        (self.tree / name).write_text(text, encoding='utf-8')

    def commit(self):
        self.git('add', '--all')
        self.git('commit', '--quiet', '--allow-empty', '-m', 'A change')

    def state(self):
        return self.git('rev-parse', 'HEAD'), self.git('tag'), self.git('status', '--porcelain')

    def release(self, *arguments, tools=None, out=None):
        """Exit code, and everything it said. `tools`: a folder that is first in PATH."""
        path = os.pathsep.join(filter(None, (tools and str(tools), os.environ['PATH'])))
        done = subprocess.run([self.tree / 'tools/release', '--reuse', BUILD, *arguments, out or self.home / 'out'], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, 'PATH': path})
        return done.returncode, done.stdout

    def refused(self, reason, *arguments, out=None):
        before = self.state()
        code, said = self.release(*arguments, out=out)
        self.assertEqual(code, 1, said)
        self.assertIn(reason, said)
        self.assertEqual(self.state(), before)

    def test_what_it_refuses(self):
        self.refused('three numbers', 'new')
        self.refused('three numbers', '09.9.9')
        self.refused('older than', '0.0.1')
        self.git('switch', '--quiet', '-c', 'side')
        self.refused('git switch main', '9.9.9')
        self.git('switch', '--quiet', 'main')
        self.write('new.txt', 'not committed')
        self.refused('git stash', '9.9.9')
        (self.tree / 'new.txt').unlink()
        self.refused('git does not ignore it', '9.9.9', out=self.tree / 'out')
        self.git('tag', 'v9.9.9', 'HEAD~1')
        self.refused('released already', '9.9.9')
        self.write('CHANGELOG.md', '# Changelog\n\n## [Unreleased]\n\n### Added\n\n## [0.0.1] - 2026-01-01\n')
        self.commit()
        self.refused('nothing under Unreleased', '9.9.10')

    def test_a_heading_that_it_does_not_know_is_no_release_without_notes(self):
        self.write('CHANGELOG.md', '# Changelog\n\n## [Unreleased] \n\n- Flying.\n')
        self.commit()
        code, said = self.release('9.9.9')
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r'(?s)no line that is "## \[Unreleased\]".*setting the version failed.*git checkout HEAD -- meson.build')
        self.assertEqual(self.git('tag', '--list', 'v9.9.9'), '')

    def test_a_branch_of_its_name_is_no_tag(self):
        self.git('branch', 'v9.9.9')
        code, said = self.release('--dry-run', '9.9.9')
        self.assertEqual(code, 0, said)

    def test_a_dry_run_changes_nothing(self):
        before = self.state()
        code, said = self.release('--dry-run', '9.9.9')
        self.assertEqual(code, 0, said)
        self.assertIn('- Flying.', said)
        self.assertNotIn('Walking', said)
        self.assertEqual(self.state(), before)
        self.assertFalse((self.home / 'out').exists())

    def test_one_that_fails_goes_on_where_it_was(self):
        tools = self.home / 'bin'
        tools.mkdir()
        (tools / 'dpkg-buildpackage').write_text('#!/bin/sh\necho no luck; exit 3\n', encoding='utf-8')
        (tools / 'dpkg-buildpackage').chmod(0o755)
        code, said = self.release('9.9.9', tools=tools)
        self.assertEqual(code, 1, said)
        again = f'tools/release --reuse {BUILD} 9.9.9 {self.home}/out'
        self.assertRegex(said, f'(?s)building failed.*What was done stays.*\n  {re.escape(again)}\n.*git tag -d v9.9.9')
        tagged = self.git('rev-parse', 'v9.9.9^{commit}')
        self.assertEqual(self.git('status', '--porcelain'), '')

        code, said = self.release('9.9.9')
        self.assertEqual(code, 0, said)
        self.assertIn('git push --atomic origin main tag v9.9.9', said)
        self.assertEqual(self.git('rev-parse', 'v9.9.9^{commit}', 'HEAD'), tagged * 2)
        self.assertEqual(self.git('cat-file', '-t', 'v9.9.9'), 'tag\n')
        self.assertEqual(self.git('show', '--format=%s', '--name-only', 'HEAD').split('\n\n'),
                         ['Release 9.9.9', 'CHANGELOG.md\nmeson.build\n'])
        self.assertIn("\n  version: '9.9.9',\n", (self.tree / 'meson.build').read_text(encoding='utf-8'))
        self.assertRegex((self.tree / 'CHANGELOG.md').read_text(encoding='utf-8'),
                         r'## \[Unreleased\]\n\n## \[9\.9\.9\] - \d{4}-\d\d-\d\d\n\n### Added\n\n- Flying\.\n\n## \[0\.0\.1\]')
        self.assertEqual(self.git('ls-remote', '--tags', 'origin', 'v9.9.9'), '')
        self.check_files(self.home / 'out')

    def check_files(self, out):
        machine = os.uname().machine
        made = {file.name for file in out.iterdir()}
        self.assertLessEqual({'RELEASE-NOTES.md', 'SHA256SUMS', f'playfs-9.9.9-{machine}.tar.gz', 'playfs-9.9.9-source.tar.gz'}, made)
        self.assertEqual({name.split('_')[0] for name in made if name.endswith('.deb')},
                         {'playfs', 'playfs-dbgsym', 'playfs-dev', 'playfs-server'})
        self.assertEqual({name.split('_')[1].partition('~')[0] for name in made if name.endswith('.deb')}, {'9.9.9-1'})
        self.assertEqual((out / 'RELEASE-NOTES.md').read_text(encoding='utf-8').strip(), '### Added\n\n- Flying.')
        subprocess.run(['sha256sum', '--quiet', '--strict', '-c', 'SHA256SUMS'], cwd=out, check=True)
        listed = {line.split()[1] for line in (out / 'SHA256SUMS').read_text(encoding='utf-8').splitlines()}
        self.assertEqual(listed, made - {'SHA256SUMS'})
        with tarfile.open(out / 'playfs-9.9.9-source.tar.gz') as source:
            self.assertIn(b"version: '9.9.9'", source.extractfile('playfs-9.9.9/meson.build').read())


if __name__ == '__main__':
    fixture.main()
