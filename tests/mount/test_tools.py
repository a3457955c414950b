#!/usr/bin/env python3
"""Everyday programs in work/, unmodified. Missing programs are skipped."""
import errno
import filecmp
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import unittest

import fixture

needs = {name: unittest.skipUnless(shutil.which(name), f'no {name} here')
         for name in ('git', 'rsync', 'tar', 'vim', 'emacs', 'npm', 'sed', 'make', 'cc')}

TWO_WRITERS = '''
import sqlite3, sys
path, writer = sys.argv[1], int(sys.argv[2])
database = sqlite3.connect(path, timeout=60, isolation_level=None)
for number in range(20):
    database.execute('BEGIN IMMEDIATE')
    database.execute('INSERT INTO entry VALUES (?, ?, zeroblob(3000))', (writer, number))
    if number % 5 == 4:
        database.execute('UPDATE entry SET data = zeroblob(10) WHERE writer = ? AND number < ?', (writer, number))
    database.execute('ROLLBACK' if number % 7 == 6 else 'COMMIT')
'''


@fixture.needs_fuse
class Tools(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.api.create('projects', name='p')
        self.mounted = self.mount(self.api.origin)
        self.work = self.mounted.project('p') / 'work'
        self.local = self.home / 'local'
        shutil.copytree(fixture.PROJECT, self.local, symlinks=True)

    def run_in(self, directory, *words, **options):
        return self.command(*words, cwd=directory, **options).stdout

    def test_copies_take_no_attributes_along(self):
        """playfs's attributes are read by name; a program that copies all attributes finds none."""
        (self.work / 'one').write_text('published\n')
        self.commit(self.work, 'One')
        head = self.mounted.project('p') / 'head'
        for place in (self.work, self.work / 'one', head, head / 'one', self.mounted.directory):
            self.assertEqual(os.listxattr(place), [], place)
        self.assertEqual(os.getxattr(head / 'one', 'user.playfs.project').decode(), self.mounted.project('p').name)
        self.assertEqual(os.getxattr(self.work / 'one', 'user.playfs.staged'), b'published')
        self.run_in(self.work, 'cp', '--preserve=all', '--preserve=xattr', head / 'one', 'two')
        self.run_in(self.work, 'cp', '--preserve=all', '--preserve=xattr', 'one', self.local / 'three')
        if shutil.which('rsync'):
            self.run_in(self.work, 'rsync', '-aX', f'{head}/', 'synced')
            self.assertEqual((self.work / 'synced/one').read_text(), 'published\n')
        with self.assertRaises(PermissionError):
            os.setxattr(self.work / 'one', 'user.playfs.hash', b'x')
        with self.assertRaises(OSError) as refused:
            os.setxattr(self.work / 'one', 'user.other', b'x')
        self.assertEqual(refused.exception.errno, errno.ENOTSUP)

    @needs['git']
    def test_git(self):
        git = ('git', '-c', 'user.name=Ann', '-c', 'user.email=ann@example.org', '-c', 'protocol.file.allow=always')
        self.run_in(self.local, *git, 'init', '-q')
        self.run_in(self.local, *git, 'add', '-A')
        self.run_in(self.local, *git, 'commit', '-q', '-m', 'Begin')
        self.run_in(self.work, *git, 'clone', '-q', self.local, 'clone')
        clone = self.work / 'clone'
        self.assertEqual(self.run_in(clone, *git, 'status', '--porcelain'), '')
        files = [name for name in self.run_in(clone, 'git', 'ls-files').split('\n') if name.endswith('.c')]
        for number, name in enumerate(files[:5]):
            with open(clone / name, 'a', encoding='utf-8') as file:
                file.write(f'/* {number} */\n')
            self.run_in(clone, *git, 'commit', '-q', '-a', '-m', f'Edit {number}')
        self.run_in(clone, *git, 'checkout', '-q', '-b', 'side', 'HEAD~3')
        (clone / 'new').write_text('new\n')
        self.run_in(clone, *git, 'add', 'new')
        self.run_in(clone, *git, 'commit', '-q', '-m', 'Side')
        self.run_in(clone, *git, 'merge', '-q', '-m', 'Merge', '@{-1}')
        self.run_in(clone, *git, 'mv', 'new', 'newer')
        self.run_in(clone, *git, 'stash', '-q')
        self.run_in(clone, *git, 'stash', 'pop', '-q', '--index')
        self.run_in(clone, *git, 'commit', '-q', '-m', 'Moved')
        self.run_in(clone, *git, 'gc', '-q', '--prune=now')
        self.run_in(clone, *git, 'fsck', '--full', '--strict')
        self.assertEqual(self.run_in(clone, *git, 'status', '--porcelain'), '')
        self.run_in(self.local, *git, 'fetch', '-q', clone, 'side')
        self.run_in(self.local, *git, 'reset', '-q', '--hard', 'FETCH_HEAD')
        self.assertEqual(self.describe(self.local, without=('.git',)), self.describe(clone, without=('.git',)))

    @needs['make']
    @needs['cc']
    def test_make_builds_nothing_twice(self):
        shutil.copytree(self.local, self.work / 'c')
        self.run_in(self.work / 'c', 'make', '-s', '-j2')
        again = self.run_in(self.work / 'c', 'make', '-j2')
        self.assertNotIn('cc', again.split())
        self.assertNotIn('-c', again.split())

    @needs['rsync']
    def test_rsync(self):
        self.run_in(self.home, 'rsync', '-a', f'{self.local}/', self.work / 'copy')
        self.assertEqual(self.run_in(self.home, 'rsync', '-ani', '--checksum', f'{self.local}/', self.work / 'copy'), '')
        (self.work / 'copy/more').write_text('more\n')
        self.run_in(self.home, 'rsync', '-a', '--delete', f'{self.local}/', self.work / 'copy')
        back = self.home / 'back'
        self.run_in(self.home, 'rsync', '-a', f'{self.work}/copy/', back)
        self.assert_same_tree(self.local, back)

    @needs['tar']
    def test_tar(self):
        archive = self.home / 'archive.tar'
        self.run_in(self.local, 'tar', '-cf', archive, '.')
        (self.work / 'out').mkdir()
        self.run_in(self.work / 'out', 'tar', '-xf', archive)
        self.assertEqual(self.run_in(self.work / 'out', 'tar', '-df', archive), '')  # modes, owners and times included
        self.run_in(self.work, 'tar', '-cf', 'inside.tar', 'out')
        self.run_in(self.work, 'tar', '-df', 'inside.tar')

    def editable(self):
        file = self.work / 'notes.txt'
        file.write_text('one\ntwo\n')
        file.chmod(0o640)
        return file

    def test_a_copy_of_an_exported_tree_takes_its_mark_along(self):
        """Its `.playfs/` has the name of the mount's own; nothing in it is published."""
        (self.work / 'one').write_text('published\n')
        self.commit(self.work, 'One')
        exported = self.home / 'exported'
        revision = os.readlink(self.mounted.project('p') / 'head').rsplit('/', 1)[1]
        self.playfs('export', revision, exported, '--site', self.api.origin)
        copies = {'cp': ['cp', '-a', f'{exported}/.'], 'rsync': ['rsync', '-a', f'{exported}/'],
                  'tar': ['sh', '-c', 'tar -cf - -C "$0" . | tar -xf - -C "$1"', str(exported)]}
        for tool, words in copies.items():
            if not shutil.which(tool):
                continue
            project = self.api.create('projects', name=f'{tool}-alone')['id']
            alone = self.mount(self.api.origin, who=tool, options=('refresh=1', f'project={project}')).directory
            in_all = self.mounted.directory / 'projects' / self.api.create('projects', name=tool)['id'] / 'work'
            for place in (alone, in_all):
                self.command(*words, place)
                self.command('ls', '-la', place)  # makes the kernel cache what is listed
                self.assertEqual((place / '.playfs/tree.json').read_bytes(), (exported / '.playfs/tree.json').read_bytes())
                outcome, _, files, _ = self.commit(place, f'by {tool}')
                self.assertEqual((outcome, files), ('published', 1))
            self.assertEqual(os.listdir(alone), ['one'])
            self.assertEqual(json.loads((alone / '.playfs/status.json').read_text())['project'], project)
            for name in ('status.json', 'metrics'):
                with self.assertRaises(PermissionError):
                    os.rename(alone / '.playfs/tree.json', alone / '.playfs' / name)
            with self.assertRaises(PermissionError):
                os.rename(alone / '.playfs', alone / 'moved')
            (alone / '.playfs/tree.json').unlink()
            self.assertFalse((alone / '.playfs/tree.json').exists())

    @needs['vim']
    def test_vim(self):
        file = self.editable()
        self.run_in(self.work, 'vim', '-es', '-u', 'NONE', '-c', 'set backup backupskip=', '-c', '%s/two/three/', '-c', 'wq', file)
        self.assertEqual(file.read_text(), 'one\nthree\n')
        self.assertEqual((self.work / 'notes.txt~').read_text(), 'one\ntwo\n')
        self.assertEqual(file.stat().st_mode & 0o777, 0o640)

    @needs['emacs']
    def test_emacs(self):
        file = self.editable()
        self.run_in(self.work, 'emacs', '-Q', '-batch', file, '--eval',
                    '(progn (replace-string "two" "three") (save-buffer))')
        self.assertEqual(file.read_text(), 'one\nthree\n')
        self.assertEqual(os.listdir(self.work), ['notes.txt'])  # the lock file is gone

    @needs['sed']
    def test_sed(self):
        file = self.editable()
        self.run_in(self.work, 'sed', '-i.old', 's/two/three/', file)
        self.assertEqual(file.read_text(), 'one\nthree\n')
        self.assertEqual((self.work / 'notes.txt.old').read_text(), 'one\ntwo\n')
        self.assertEqual(file.stat().st_mode & 0o777, 0o640)

    def test_sqlite_with_two_writers(self):
        for mode in ('delete', 'truncate', 'persist', 'memory', 'wal'):
            with self.subTest(mode):
                path = self.work / f'{mode}.db'
                database = sqlite3.connect(path, isolation_level=None)
                self.assertEqual(database.execute(f'PRAGMA journal_mode = {mode}').fetchone(), (mode,))
                database.execute('CREATE TABLE entry (writer, number, data)')
                writers = [subprocess.Popen([sys.executable, '-c', TWO_WRITERS, str(path), str(number)])
                           for number in range(2)]
                for writer in writers:
                    self.assertEqual(writer.wait(fixture.COMMAND_LIMIT), 0)
                self.assertEqual(database.execute('SELECT count(*), count(DISTINCT number) FROM entry').fetchone(),
                                 (36, 18))
                self.assertEqual(database.execute('PRAGMA integrity_check').fetchone(), ('ok',))
                database.close()

    def test_venv(self):
        self.run_in(self.work, sys.executable, '-m', 'venv', '--without-pip', 'environment')
        inside = self.run_in(self.work, 'environment/bin/python', '-c', 'import sys; print(sys.prefix)')
        self.assertEqual(pathlib.Path(inside.strip()).name, 'environment')

    @needs['npm']
    def test_npm(self):
        package = self.home / 'package'
        (package / 'lib').mkdir(parents=True)
        (package / 'package.json').write_text('{"name": "small", "version": "1.0.0", "main": "lib/small.js"}')
        (package / 'lib/small.js').write_text('module.exports = 42;\n')
        archive = self.run_in(package, 'npm', 'pack', '--silent').strip()
        (self.work / 'package.json').write_text('{"name": "app", "version": "1.0.0"}')
        self.run_in(self.work, 'npm', 'install', '--offline', '--no-audit', '--no-fund', package / archive)
        self.assertEqual(self.run_in(self.work, 'node', '-p', 'require("small")').strip(), '42')

    def test_a_copy_is_the_same_as_its_source(self):
        self.run_in(self.home, 'cp', '-a', self.local, self.work / 'copy')
        compared = filecmp.dircmp(self.local, self.work / 'copy')
        self.assertEqual((compared.left_only, compared.right_only, compared.diff_files), ([], [], []))
        for path in self.local.rglob('*'):
            copied = self.work / 'copy' / path.relative_to(self.local)
            if not path.is_symlink():
                self.assertEqual(os.stat(copied).st_mtime_ns, os.stat(path).st_mtime_ns, path)


if __name__ == '__main__':
    fixture.main()
