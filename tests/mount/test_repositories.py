#!/usr/bin/env python3
"""No tree is a repository to git: a stranger's config names programs, which git runs whenever someone asks for a
status."""
import errno
import os

import fixture


def bare_repository(at, witness):
    """Paths and texts of a repository below `at`, whose config creates `witness` when git runs in it."""
    return {f'{at}HEAD': 'ref: refs/heads/main\n', f'{at}objects/x': '', f'{at}refs/x': '',
            f'{at}config': '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n'
                           f'\tfsmonitor = "touch {witness}; false"\n'}


@fixture.needs_fuse
class Repositories(fixture.Fixture):
    def publish(self, api, project, files, parents=()):
        revision = api.create('revisions', project=project, parents=list(parents), agent='x', message='x', state={},
                              manifest={'files': {path: entry if isinstance(entry, dict) else {'inline': entry}
                                                  for path, entry in files.items()}})['id']
        return revision

    def set_head(self, api, project, revision):
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})

    def git_status(self, directory):
        return self.command('git', '-C', directory, 'status', check=False)

    def test_git_finds_none_in_any_tree(self):
        api = self.serve()
        witness = self.home / 'witness'
        project = api.create('projects', name='trap')['id']
        text = 'ref: refs/heads/main\n'
        chunk = api.create('file_chunks', rev='', path='HEAD', seq=0, hash='x', content=text)['id']
        files = {**bare_repository('', witness), **bare_repository('in/side/', witness), 'note': 'n',
                 **bare_repository('chunked/', witness), 'chunked/HEAD': {'h': 'x', 's': len(text), 'c': [chunk]},
                 'chunked/other': {'h': 'x', 's': len(text), 'c': [chunk]},
                 **bare_repository('linked/', witness), 'linked/HEAD': {'m': '120000', 'inline': 'refs/heads/main'}}
        # The trap works: on a plain disk, git runs the program.
        for path, text in bare_repository('', witness).items():
            (self.home / 'plain' / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / 'plain' / path).write_text(text)
        self.assertEqual(self.git_status(self.home / 'plain').returncode, 0)
        self.assertTrue(witness.exists())
        witness.unlink()

        revision = self.publish(api, project, files)
        self.set_head(api, project, revision)
        place = self.mount(api.origin, 'ann').project('trap')
        self.playfs('export', 'trap', self.home / 'copy', '--site', api.origin, check=False)
        for tree in place / 'work', place / 'head', place / 'revisions' / revision, self.home / 'copy':
            for directory in '.', 'in/side', 'objects', 'chunked', 'linked':
                self.assertIn('not a git repository', self.git_status(tree / directory).stderr, f'{tree}/{directory}')
        self.assertFalse(witness.exists())
        # Content in the manifest hides the file; content in chunks is known only once it is read.
        self.assertFalse((place / 'work/HEAD').exists() or os.path.lexists(place / 'work/linked/HEAD'))
        said = (place / 'status').read_text()
        for path in 'HEAD', 'in/side/HEAD', 'linked/HEAD':
            self.assertIn(f'{path}: git would take its directory for a repository', said)
        with self.assertRaises(OSError) as refused:
            (place / 'work/chunked/HEAD').read_text()
        self.assertNotEqual(refused.exception.errno, errno.ENOENT)
        self.assertIn('take its directory for a repository', (place.parent.parent / '.playfs/errors.ndjson').read_text())
        # Everything else is as published, including the same content under another name.
        self.assertEqual((place / 'work/chunked/other').read_text(), 'ref: refs/heads/main\n')
        self.assertEqual((place / 'head/config').read_text(), files['config'])

    def test_two_revisions_that_are_harmless_alone_are_merged_and_make_none(self):
        api = self.serve()
        witness = self.home / 'witness'
        project = api.create('projects', name='halves')['id']
        root = self.publish(api, project, {'note': 'n'})
        whole = bare_repository('', witness)
        self.set_head(api, project, self.publish(api, project, {'note': 'n', 'HEAD': whole.pop('HEAD')}, [root]))
        self.publish(api, project, {'note': 'n', **whole}, [root])
        place = self.mount(api.origin, 'ann').project('halves')
        (place / 'work/mine').write_text('mine')
        self.playfs('commit', '-m', 'mine', place / 'work')
        held = api.get('revisions', api.get('projects', project)['latest_revision'])['manifest']['files']
        self.assertEqual(sorted(held), sorted(['note', 'mine', 'HEAD', *whole]), 'nothing keeps head from going on')
        for tree in 'work', 'head':
            self.assertIn('not a git repository', self.git_status(place / tree).stderr)
        self.assertFalse(witness.exists())

    def test_no_merge_brings_one_into_a_work_tree(self):
        api = self.serve()
        witness = self.home / 'witness'
        whole = bare_repository('', witness)
        link = {'m': '120000', 'inline': 'refs/heads/main'}
        top, half = 'top\n' + whole['HEAD'] + 'line\n' * 9, 'aaa\n\n\n\nfoo\n'
        changes = {
            'branch': ({}, whole, None),
            'linked': ({}, {**whole, 'HEAD': link}, None),
            'mode': ({**whole, 'HEAD': 'harmless\n'}, whole, lambda work: (work / 'HEAD').chmod(0o755)),
            'removed': ({**whole, 'HEAD': 'harmless\n'}, whole, lambda work: (work / 'HEAD').unlink()),
            'beside': ({}, bare_repository('sub/', witness), lambda work: (work / 'sub').write_text('mine')),
            'lines': ({**whole, 'HEAD': top}, {**whole, 'HEAD': top.removeprefix('top\n')},
                      lambda work: (work / 'HEAD').write_text(top + 'mine\n')),
            'halves': ({**whole, 'HEAD': half}, {**whole, 'HEAD': half.replace('aaa', 'ref:')},
                       lambda work: (work / 'HEAD').write_text(half.replace('foo', 'refs/heads/main'))),
        }
        mount = self.mount(api.origin, 'ann')
        for name, (before, after, change) in changes.items():
            with self.subTest(name):
                project = api.create('projects', name=name)['id']
                root = self.publish(api, project, {'note': 'n', **before})
                self.set_head(api, project, root)
                work = mount.project(name) / 'work'
                self.eventually((work / 'note').exists, 'the mount has heard of it')
                if change:
                    change(work)
                    self.set_head(api, project, self.publish(api, project, {'note': 'n', **after}, [root]))
                    said = self.playfs('update', work, check=False)
                else:
                    self.set_head(api, project, self.publish(api, project, {'note': 'n', 'more': 'm'}, [root]))
                    branch = self.publish(api, project, {'note': 'n', **after}, [root])
                    said = self.playfs('merge', branch, work, check=False)
                self.assertIn(said.returncode, (0, 3), said.stderr)
                for directory in '.', 'sub', 'sub.head':
                    if (work / directory).is_dir():
                        self.assertIn('not a git repository', self.git_status(work / directory).stderr, directory)
                self.assertFalse(witness.exists())

    def test_no_rename_publishes_one(self):
        api = self.serve()
        project = api.create('projects', name='renamed')['id']
        text = 'ref: refs/heads/main\n'
        chunk = api.create('file_chunks', rev='', path='y', seq=0, hash='x', content=text)['id']
        self.set_head(api, project, self.publish(api, project, {'x': text, 'y': {'h': 'x', 's': len(text), 'c': [chunk]}}))
        work = self.mount(api.origin, 'ann').project('renamed') / 'work'
        for name in 'x', 'y':
            (work / name).rename(work / 'HEAD')
            said = self.playfs('commit', '-m', 'moved', work, check=False)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn('git would take its directory for a repository', said.stderr)
            (work / 'HEAD').rename(work / name)

    def test_what_only_has_the_name_is_a_file_like_any_other(self):
        api = self.serve()
        files = {'HEAD': 'Headlines of today\n', 'a/head': 'ref: see below\n', 'b/Head': '0123456789abcdef\n'}
        project = api.create('projects', name='news')['id']
        self.set_head(api, project, self.publish(api, project, files))
        place = self.mount(api.origin, 'ann').project('news')
        for path, text in files.items():
            self.assertEqual((place / 'work' / path).read_text(), text)
        (place / 'work/HEAD').write_text('Headlines of tomorrow\n')
        self.playfs('commit', '-m', 'more', place / 'work')
        self.assertEqual((place / 'head/HEAD').read_text(), 'Headlines of tomorrow\n')

    def test_one_of_the_users_own_stays_here(self):
        api = self.serve()
        project = api.create('projects', name='own')['id']
        self.set_head(api, project, self.publish(api, project, {'note': 'n'}))
        place = self.mount(api.origin, 'ann').project('own')
        self.command('git', 'init', '-q', '--bare', place / 'work/store')
        self.command('git', '-C', place / 'work/store', 'branch', check=True)
        (place / 'work/mine').write_text('mine')
        said = self.playfs('commit', '-m', 'mine', place / 'work', check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn('store/HEAD: git would take its directory for a repository', said.stderr)
        self.assertIn('.playfsignore', said.stderr)
        (place / 'work/.playfsignore').write_text('/store/\n')
        self.playfs('commit', '-m', 'mine', place / 'work')
        held = api.get('revisions', api.get('projects', project)['latest_revision'])['manifest']['files']
        self.assertEqual(sorted(held), ['.playfsignore', 'mine', 'note'])
        self.command('git', '-C', place / 'work/store', 'branch', check=True)


if __name__ == '__main__':
    fixture.main()
