#!/usr/bin/env python3
"""Exports that lack files, into directories that were imported before: what is missing never looks deleted."""
import json
import os
import shlex
import shutil
import socket
import subprocess

import fixture
import proxy

USAGE = 2


class Incomplete(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.service = proxy.before_a_service(self)
        self.site = ('--site', self.service.url)
        self.directory = self.home / 'notes'
        self.directory.mkdir()
        self.files = {'a': 'a\n', 'precious': 'precious ' * 3000, 'z': 'z ' * 100000}
        for name, text in self.files.items():
            (self.directory / name).write_text(text)
        done = json.loads(self.playfs('import', self.directory, '--name', 'notes', '--json', *self.site).stdout)
        self.project, self.head = done['project'], done['revision']
        published = self.api.get('revisions', self.head)['manifest']['files']
        self.chunks = {name: entry.get('c') for name, entry in published.items()}
        shutil.rmtree(self.directory)
        shutil.rmtree(self.home / 'ann/cache')

    def import_it(self, *words):
        return self.playfs('import', self.directory, '--project', self.project, *words, *self.site, check=False)

    def assert_refused(self, *named):
        """Also with the base revision given: it does not tell which files the directory ever had."""
        for base in (), ('--base', self.head):
            done = self.import_it(*base)
            self.assertEqual(done.returncode, USAGE, done.stdout)
            for text in named:
                self.assertIn(text, done.stderr)
            # The command to type next leads to a directory that can be imported.
            hint = shlex.split(done.stderr.rpartition('Try: ')[2].partition('   ')[0])
            self.assertEqual(hint, ['playfs', 'export', self.head, 'OTHER', *self.site])
        self.assertEqual(self.api.get('projects', self.project)['latest_revision'], self.head)

    def test_what_an_export_left_out_is_not_deleted(self):
        lost = self.chunks['precious'][0]
        self.service.fate = lambda request: (404, '{"error":"x"}') if request.rpartition('/')[2] == lost else None
        done = self.playfs('export', self.project, self.directory, *self.site, check=False)
        self.assertIn('Left out precious: ', done.stderr)
        (self.directory / 'a').write_text('edited\n')
        self.assert_refused('delete precious')
        # Nor in another project, whose earlier import from here the directory no longer has anything of.
        other = self.home / 'other'
        other.mkdir()
        shutil.copytree(self.directory / '.playfs', self.home / 'mark')
        shutil.rmtree(self.directory)
        self.directory.mkdir()
        (self.directory / 'mine').write_text('m')
        second = json.loads(self.playfs('import', self.directory, '--name', 'second', '--json', *self.site).stdout)
        shutil.copytree(self.home / 'mark', self.directory / '.playfs')
        (self.directory / 'mine').rename(self.directory / 'yours')
        refused = self.playfs('import', self.directory, '--project', second['project'], *self.site, check=False)
        self.assertEqual(refused.returncode, USAGE, refused.stdout)
        self.assertIn('delete mine', refused.stderr)

        # With the files that were missing it is an edit as any other, and from then on a whole tree.
        (self.directory / 'yours').unlink()
        for name, text in self.files.items():
            (self.directory / name).write_text(text)
        (self.directory / 'a').write_text('edited\n')
        self.service.fate = lambda request: None
        self.assertEqual(self.import_it('-m', 'edited').returncode, 0)
        (self.directory / 'z').unlink()
        self.assertEqual(self.import_it('-m', 'deleted').returncode, 0)
        newest = self.api.get('revisions', self.api.get('projects', self.project)['latest_revision'])
        self.assertEqual(sorted(newest['manifest']['files']), ['a', 'precious'])
        self.assertEqual(newest['manifest']['files']['a']['inline'], 'edited\n')

    def test_what_a_killed_export_had_not_written_is_not_deleted(self):
        self.service.set_hanging(self.chunks['precious'][0])
        export = subprocess.Popen([self.playfs_path, 'export', self.project, str(self.directory), *self.site],
                                  env=self.environment('ann'), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.eventually(lambda: (self.directory / 'a').exists(), 'the first file is there')
        finally:
            export.kill()
            export.wait()
        self.service.set_hanging(None)
        self.assertEqual(sorted(set(os.listdir(self.directory)) - {'.playfs'}), ['a'])
        self.assert_refused('has not finished')
        # Killed before: the folder is there, the mark is not.
        (self.directory / 'a').unlink()
        (self.directory / '.playfs/tree.json').unlink()
        done = self.import_it()
        self.assertEqual(done.returncode, USAGE, done.stdout)
        self.assertIn('is empty', done.stderr)

    def test_a_mark_that_cannot_be_trusted_still_forbids(self):
        """That of another user, a link, or one that cannot be read: it may say that files are missing."""
        mark = self.directory / '.playfs/tree.json'
        moved = self.home / 'moved'

        def to_link():
            mark.rename(moved)
            mark.symlink_to(moved)

        def to_link_of_folder():
            mark.parent.rename(moved)
            mark.parent.symlink_to(moved)

        def to_clone_of_another_user():
            mark.rename(mark.with_name('clone.json'))
            os.chown(mark.with_name('clone.json'), 12345, 12345)

        cases = [to_link, to_link_of_folder, lambda: (mark.unlink(), mark.mkdir()),
                 lambda: mark.write_text('')]
        if os.geteuid() == 0:
            cases += [lambda: os.chown(mark, 12345, 12345), to_clone_of_another_user]
        for i, spoil in enumerate(cases):
            with self.subTest(case=i):
                self.playfs('export', self.project, self.directory, *self.site)
                spoil()
                (self.directory / 'precious').unlink()
                done = self.import_it()
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn('cannot tell which revision', done.stderr)
                self.assertIn(f'Try: playfs export {self.project} OTHER {self.site[0]}', done.stderr)
                self.assertEqual(self.api.get('projects', self.project)['latest_revision'], self.head)
            shutil.rmtree(self.directory)
            moved.unlink() if moved.is_file() else shutil.rmtree(moved, ignore_errors=True)

    def test_an_import_as_another_project_leaves_an_export_what_it_is(self):
        lost = self.chunks['precious'][0]
        self.service.fate = lambda request: (404, '{"error":"x"}') if request.rpartition('/')[2] == lost else None
        self.playfs('export', self.project, self.directory, *self.site, check=False)
        copy = json.loads(self.playfs('import', self.directory, '--name', 'copy', '--json', *self.site).stdout)
        self.assert_refused('delete precious')
        # In the other project nothing was missing, so what is missing now was deleted.
        (self.directory / 'a').unlink()
        self.playfs('import', self.directory, '--project', copy['project'], *self.site)
        newest = self.api.get('revisions', self.api.get('projects', copy['project'])['latest_revision'])
        self.assertEqual(sorted(newest['manifest']['files']), ['z'])

    def test_an_export_ends_what_was_imported_from_there_before(self):
        other = self.api.create('projects', name='other')['id']
        revision = self.api.create('revisions', project=other, parents=[], state={},
                                   manifest={'files': {'mine': {'inline': 'm'}}})['id']
        self.playfs('export', revision, self.directory, *self.site)
        done = self.import_it()
        self.assertEqual(done.returncode, USAGE, done.stdout)
        self.assertIn('it is not known which revision', done.stderr)
        self.assertEqual(self.api.get('projects', self.project)['latest_revision'], self.head)
        # Once the user has said so, it is known.
        self.assertEqual(self.import_it('--base', self.head).returncode, 0)
        (self.directory / 'more').write_text('more\n')
        (self.directory / 'mine').unlink()
        self.assertEqual(self.import_it().returncode, 0)
        newest = self.api.get('revisions', self.api.get('projects', self.project)['latest_revision'])
        self.assertEqual(sorted(newest['manifest']['files']), ['more'])

    def test_a_directory_without_files_to_publish_deletes_nothing(self):
        """As an unmounted mount point, on which there may be more than nothing."""
        rules = self.directory / '.gitignore'

        def bind():
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(self.directory / 'socket'))

        cases = {'a folder': (self.directory / 'lost+found').mkdir, 'git': (self.directory / '.git').mkdir,
                 'a fifo': lambda: os.mkfifo(self.directory / 'fifo'), 'a socket': bind,
                 'an ignored file': lambda: (rules.write_text('*\n'), (self.directory / 'x').write_text('x'))}
        for name, fill in cases.items():
            with self.subTest(name):
                self.directory.mkdir(exist_ok=True)
                fill()
                done = self.import_it()
                self.assertEqual(done.returncode, USAGE, done.stdout)
                self.assertIn('would delete every file', done.stderr)
                self.assertEqual(self.api.get('projects', self.project)['latest_revision'], self.head)
            shutil.rmtree(self.directory)
        # Files that replace all others are what the user wants.
        self.directory.mkdir()
        (self.directory / 'new').write_text('new\n')
        self.assertEqual(self.import_it().returncode, 0)

    def test_a_whole_export_is_marked_as_before(self):
        self.playfs('export', self.project, self.directory, *self.site)
        mark = json.loads((self.directory / '.playfs/tree.json').read_text())
        self.assertEqual((mark['schema_version'], mark['revision'], mark.get('extent')), (1, self.head, None))


if __name__ == '__main__':
    fixture.main()
