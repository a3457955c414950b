#!/usr/bin/env python3
"""No tree is a repository to git: a stranger's config names programs, and git runs them where anybody asks for a status."""
import errno
import os

import rig


def bare_repository(at, witness):
    """The paths and texts of one below `at`, whose config has `witness` made by whoever runs git in it."""
    return {f'{at}HEAD': 'ref: refs/heads/main\n', f'{at}objects/x': '', f'{at}refs/x': '',
            f'{at}config': '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n'
                           f'\tfsmonitor = "touch {witness}; false"\n'}


@rig.needs_fuse
class Repositories(rig.Rig):
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
        # It is a trap: git runs what it says where it stands on a disk.
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
        with self.assertRaises(OSError) as refused:
            (place / 'work/HEAD').read_text()
        self.assertNotEqual(refused.exception.errno, errno.ENOENT)
        self.assertIn('take its directory for a repository', (place.parent.parent / '.playfs/errors.ndjson').read_text())
        # Everything else is as it was published, the same content under another name too.
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
    rig.main()
