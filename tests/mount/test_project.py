#!/usr/bin/env python3
"""A real C project: imported, built in the mount, edited with ordinary tools, committed, read from another mount."""
import errno
import os
import shutil

import projects
import fixture

SCRIPT = '''
import os, pathlib
path = pathlib.Path('lib/util/buf.c')
lines = path.read_text().splitlines(keepends=True)
lines.insert(2, '/* Doubling keeps the number of copies small. */\\n')
path.with_suffix('.new').write_text(''.join(lines))
os.replace(path.with_suffix('.new'), path)
with open('docs/STORE.md', 'r+b') as doc:
    doc.seek(2)
    doc.write('Ünser'.encode())
with open('tests/data/torn.store', 'ab') as data:
    data.write(bytes(range(256)))
'''


@fixture.needs_fuse
class RealProject(fixture.Fixture):
    def edit(self, tree):
        """The same work in any tree, by tools with very different ways of writing."""
        run = lambda *words: self.command(*words, cwd=tree)
        run('sed', '-i', 's/quill/quill language/', 'README.md')
        run('vim', '-es', '-N', '-u', 'NONE', '-c', '%s/abort()/exit(70)/', '-c', 'x', 'lib/util/map.c')
        run('python3', '-c', SCRIPT)
        run('sh', '-c', 'echo "print(len(\\"нове\\"));" > examples/new.ql && cat VERSION >> examples/new.ql')
        run('mv', 'examples/table.ql', 'docs/table.ql')
        run('mv', 'tests/golden', 'tests/programs')
        run('sed', '-i', 's,golden/,programs/,g', 'tests/golden.sh')
        run('rm', 'tests/data/empty.ql')
        run('touch', 'tests/data/nothing.ql')
        run('sed', '-i', 's/empty.ql/nothing.ql/', 'tests/test_buf.c')
        run('chmod', '+x', 'examples/primes.ql')
        run('chmod', '-x', 'scripts/gen_fold.py')
        run('ln', '-s', '../VERSION', 'docs/version')
        run('ln', '-sfn', 'STORE.md', 'docs/index.md')

    def test_build_edit_commit_and_see_it_elsewhere(self):
        api = self.serve()
        plain = self.home / 'cproject'
        shutil.copytree(fixture.PROJECT, plain, symlinks=True)
        self.playfs('import', plain, '--site', api.origin)

        ann, bob = self.mount(api.origin, 'ann'), self.mount(api.origin, 'bob')
        mine, theirs = ann.project('cproject'), bob.project('cproject')
        work = mine / 'work'
        for tree in (work, mine / 'head', theirs / 'work', theirs / 'head'):
            self.assert_same_tree(plain, tree)
        imported = os.readlink(theirs / 'head')

        self.command('make', 'check', cwd=work)
        self.edit(work)
        self.edit(plain)
        self.command('make', 'check', cwd=work)
        self.assertEqual(os.readlink(theirs / 'head'), imported, 'nothing is published before a commit')

        outcome, revision, files, _ = self.commit(work / 'lib/util/map.c', 'Edit with sed, vim and Python')
        self.assertEqual(outcome, 'published')
        self.assertGreater(files, 10)
        self.assertEqual(api.get('projects', mine.name)['latest_revision'], revision)
        self.assertEqual(self.commit(work, 'Once more')[0], 'nothing')

        self.eventually(lambda: os.readlink(theirs / 'head') == f'revisions/{revision}', 'the other mount sees head')
        self.assert_same_tree(plain, theirs / 'head')
        self.eventually(lambda: (theirs / 'work/docs/version').is_symlink(), "the other mount's work/ follows")
        self.assert_same_tree(plain, theirs / 'work')
        self.assert_same_tree(plain, mine / 'head')
        self.assertTrue((work / 'build/quill').exists(), 'what is ignored stays here')
        self.assertEqual(self.command('make', '-q', cwd=work, check=False).returncode, 0,
                         'a commit leaves times alone, so that make has nothing to do')
        self.assert_records_fit(api)

        exported = self.home / 'exported'
        self.playfs('export', revision, exported, '--site', api.origin)
        self.assert_same_tree(plain, exported)

    def test_a_commit_on_an_old_base_is_a_branch(self):
        api = self.serve()
        project = api.create('projects', name='race')
        ann, bob = self.mount(api.origin, 'ann'), self.mount(api.origin, 'bob')
        mine, theirs = ann.project('race'), bob.project('race')
        (mine / 'work/note').write_text('base\n')
        first = self.commit(mine / 'work', 'Base')[1]
        self.eventually(lambda: (theirs / 'work/note').exists(), 'the other mount follows')

        (mine / 'work/note').write_text('mine\n')
        (theirs / 'work/note').write_text('theirs\n')
        outcome, head, *_ = self.commit(theirs / 'work', 'Theirs', who='bob')
        self.assertEqual(outcome, 'published')
        outcome, branch, *_ = self.commit(mine / 'work', 'Mine')
        self.assertEqual(outcome, 'branched')

        self.assertEqual(api.get('projects', project['id'])['latest_revision'], head)
        self.assertEqual(api.get('revisions', branch)['parents'], [first])
        self.assertEqual((mine / 'revisions' / branch / 'note').read_text(), 'mine\n')
        self.assertEqual((mine / 'revisions' / head / 'note').read_text(), 'theirs\n')
        self.eventually(lambda: os.listdir(theirs / 'branches') == [branch], 'the branch is shown to others')

    def test_two_mounts_with_one_state_directory_and_one_without(self):
        api = self.serve()
        projects.publish(api, 'p', {'note': 'base\n'})
        first = self.mount(api.origin, 'ann')
        note = first.project('p') / 'work/note'
        note.write_text('staged\n')
        second, other = self.mount(api.origin, 'ann'), self.mount(api.origin, 'bob')
        shown = second.project('p') / 'work/note'
        self.assertEqual(shown.read_text(), 'base\n', 'head, while the first has the work tree')
        with self.assertRaises(OSError) as refused:
            shown.write_text('too\n')
        self.assertEqual(refused.exception.errno, errno.EBUSY)
        self.assertIn('another process', (second.project('p') / 'status').read_text())
        theirs = other.project('p') / 'work/note'
        theirs.write_text('of their own\n')
        self.assertEqual(note.read_text(), 'staged\n')
        first.unmount()
        self.eventually(lambda: shown.read_text() == 'staged\n', 'the second has it once it is free')
        shown.write_text('and goes on\n')
        self.assertEqual(theirs.read_text(), 'of their own\n')


if __name__ == '__main__':
    fixture.main()
