#!/usr/bin/env python3
"""The commands as scripts use them: output, errors and exit codes, with the embedded playground and over HTTP."""
import errno
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess

import fixture
import proxy

DONE, FAILED, USAGE, BRANCHED, NOT_FOUND, UNREACHABLE = 0, 1, 2, 3, 5, 7


class WithoutMount(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.plain = self.home / 'garden'
        (self.plain / 'beds').mkdir(parents=True)
        (self.plain / 'beds/rose.txt').write_text('rosa\n')
        (self.plain / 'water.sh').write_text('#!/bin/sh\necho wet\n')
        (self.plain / 'water.sh').chmod(0o755)
        (self.plain / 'first').symlink_to('beds/rose.txt')
        (self.plain / 'data').write_bytes(bytes(range(256)) * 100)

    def json(self, *words, code=DONE, **options):
        done = self.playfs(*words, '--json', check=False, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document['schema_version'], 1)
        return document

    def test_version_and_help(self):
        self.assertRegex(self.playfs('--version').stdout, r'\b0\.\d+\.\d+\b')
        overview = self.playfs('--help').stdout
        for command in ('mount umount serve status diff log commit discard init import export ls cat show api'.split()):
            self.assertIn(command, overview)
            self.assertIn(command, self.playfs(command, '--help').stdout)

    def test_manual_pages(self):
        """They render without warnings, and the mount helper's page has every mount option."""
        helper = fixture.ROOT / 'tools/man/mount.playfs.8'
        listed = self.playfs('mount', '--help').stdout.split('Options after -o:')[1].split(';')[0]
        options = re.findall(r'(?:^|\s)([a-z_]+)(?:=\S+)?(?=\s|$)', listed)
        self.assertGreater(len(options), 12)
        text = helper.read_text()
        for option in options:
            self.assertRegex(text, rf'\b{option}\b', option)
        if not shutil.which('man'):
            self.skipTest('man is missing')
        for page in helper, pathlib.Path(self.playfs_path).resolve().parents[2] / 'tools/man/playfs.1':
            done = self.command('man', '--warnings', '-l', page)
            self.assertEqual(done.stderr, '', page)
            self.assertIn('playfs', done.stdout)

    def test_wrong_usage_says_so_on_stderr(self):
        for words in ([], ['no-such-command'], ['cat'], ['ls', '--no-such-flag'], ['import']):
            done = self.playfs(*words, check=False)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ''), words)
            self.assertTrue(done.stderr, words)

    def test_import_list_read_and_export(self):
        self.playfs('import', self.plain, '-m', 'Plant')
        self.assertIn('garden', self.playfs('ls').stdout)
        self.assertEqual(self.playfs('ls', '-R', 'garden').stdout.split(),
                         ['beds/rose.txt', 'data', 'first', 'water.sh'])
        self.assertEqual(self.playfs('cat', 'garden', 'beds/rose.txt').stdout, 'rosa\n')
        revision = self.json('ls', 'garden')['revision']
        self.playfs('export', revision, self.home / 'copy')
        self.assert_same_tree(self.plain, self.home / 'copy')

    def test_a_hint_takes_no_name_for_an_option(self):
        api = self.serve()
        for name in '--help', '-rf', '-o allow_other', "--it's":
            with self.subTest(name):
                project = api.create('projects', name=name)['id']
                head = api.create('revisions', project=project, parents=[], message='m',
                                  manifest={'files': {'rose': {'inline': 'rosa'}}})['id']
                api.call('PATCH', f'/projects/{project}', {'latest_revision': head})
                done = self.playfs('cat', '--site', api.origin, '--', name, 'nothing', check=False)
                hint = re.search('^Try: playfs (.*)$', done.stderr, re.MULTILINE)[1]
                self.assertEqual(shlex.split(hint), ['ls', '-R', '--site', api.origin, '--', name])
                self.assertIn('rose', self.playfs(*shlex.split(hint)).stdout)

    def test_an_export_leaves_out_what_cannot_be_had(self):
        api = self.serve()
        project = api.create('projects', name='patchy')['id']
        files = {'a/first': {'inline': 'first\n'},
                 'a/liar': {'inline': 'lies\n', 'h': '0' * 64},
                 'b/gone': {'c': ['nobody-has-it'], 's': 9},
                 'b/nowhere': {'inline': '', 'm': '120000'},
                 'last': {'inline': 'last\n'}}
        revision = api.create('revisions', project=project, parents=[], message='m', manifest={'files': files})['id']
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        copy = self.home / 'copy'
        document = self.json('export', revision, copy, '--site', api.origin, code=FAILED)
        self.assertEqual([each['path'] for each in document['left_out']], ['a/liar', 'b/gone', 'b/nowhere'])
        self.assertTrue(all(each['error']['message'] for each in document['left_out']))
        self.assertEqual(document['files'], 2)
        self.assertEqual(sorted(str(path.relative_to(copy)) for path in copy.rglob('*') if not path.is_dir()),
                         ['.playfs/tree.json', 'a/first', 'last'])
        shutil.rmtree(copy)
        done = self.playfs('export', revision, copy, '--site', api.origin, check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn('Left out b/gone: ', done.stderr)
        # The incomplete export must not pass for an edited tree.
        done = self.playfs('import', copy, '--project', 'patchy', '--site', api.origin, check=False)
        self.assertEqual(done.returncode, USAGE, done.stdout)
        self.assertIn('a/liar', done.stderr)
        self.assertEqual(api.get('projects', project)['latest_revision'], revision)

    def test_copies_name_what_is_refused(self):
        """Entries that no tree shows: both copies are made, say what they lack, and do not end with success."""
        api = self.serve()
        project = api.create('projects', name='unsafe')['id']
        bad = {'.git/config': {'inline': 'x'}, '../up': {'inline': 'x'}, 'HEAD': {'inline': 'ref: refs/heads/x\n'},
               'odd': {'inline': 'x', 'e': 'rot13'}, 'both': {'inline': 'x'}}
        files = {'both/file': {'inline': 'f\n'}, 'good': {'inline': 'g\n'}, **bad}
        revision = api.create('revisions', project=project, parents=[], message='m', manifest={'files': files})['id']
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        site = ('--site', api.origin)
        for words in ('export', revision), ('clone', project):
            with self.subTest(command=words[0]):
                copy = self.home / words[0]
                document = self.json(*words, copy, *site, code=FAILED)
                self.assertEqual({each['path'] for each in document['left_out']}, set(bad))
                self.assertTrue(all(each['error']['message'] for each in document['left_out']))
                self.assertEqual(document['files'], 2)
                self.assertEqual((copy / 'both/file').read_text() + (copy / 'good').read_text(), 'f\ng\n')
                self.assertEqual(sorted(set(os.listdir(copy)) - {'.playfs'}), ['both', 'good'])
                done = self.playfs(*words, self.home / f'{words[0]}-again', *site, check=False)
                self.assertEqual(done.returncode, FAILED, done.stderr)
                for path in bad:
                    self.assertIn(f'Left out {path}: ', done.stderr)
        # Both are whole otherwise: what was refused stays in the project as it is.
        (self.home / 'export/good').write_text('edited\n')
        self.playfs('import', self.home / 'export', '--project', 'unsafe', '-m', 'edited', *site)
        (self.home / 'clone/more').write_text('m\n')
        self.playfs('commit', '-m', 'more', cwd=self.home / 'clone')
        newest = api.get('revisions', api.get('projects', project)['latest_revision'])
        kept = newest['manifest']['files']
        self.assertEqual({path: kept.get(path) for path in bad}, bad)
        self.assertIn('more', kept)

    def test_one_file_that_the_service_fails_for_does_not_keep_the_others(self):
        api, service = proxy.before_a_service(self)
        project = api.create('projects', name='patchy')['id']
        chunks = [api.create('file_chunks', rev='', path='x', seq=0, hash='x', content=f'{number}')['id']
                  for number in range(8)]
        files = {f'{number}': {'c': [chunk], 's': 1} for number, chunk in enumerate(chunks)}
        revision = api.create('revisions', project=project, parents=[], message='m', manifest={'files': files})['id']
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        site = ('--site', service.url)
        failing = {chunks[2]}
        service.fate = lambda request: (500, '{"error":"x"}') if request.rpartition('/')[2] in failing else None
        for words in ('export', revision), ('clone', project):
            with self.subTest(command=words[0]):
                copy = self.home / f'{words[0]}-copy'
                document = self.json(*words, copy, *site, code=UNREACHABLE, who=words[0])
                self.assertEqual([each['path'] for each in document['left_out']], ['2'])
                self.assertEqual(sorted(set(os.listdir(copy)) - {'.playfs'}), ['0', '1', '3', '4', '5', '6', '7'])
        failing.clear()
        self.playfs('update', cwd=self.home / 'clone-copy', who='clone')
        self.assertEqual((self.home / 'clone-copy/2').read_text(), '2')
        # A service that fails for all of them is not asked for each in turn.
        failing.update(chunks)
        document = self.json('export', revision, self.home / 'none', *site, code=UNREACHABLE, who='other')
        self.assertEqual(document['error']['code'], 'unreachable')
        self.assertNotIn('left_out', document)

    def test_what_is_not_there(self):
        self.playfs('import', self.plain)
        for words in (['cat', 'garden', 'nothing'], ['cat', 'desert', 'x'], ['ls', 'desert'],
                      ['export', 'no-such-revision', self.home / 'copy']):
            done = self.playfs(*words, check=False)
            self.assertEqual((done.returncode, done.stdout), (NOT_FOUND, ''), words)
            error = self.json(*words, code=NOT_FOUND)['error']
            self.assertEqual(error['code'], 'not_found')
            self.assertIs(error['retryable'], False)
            self.assertTrue(error['message'])

    def test_over_http_and_when_nobody_answers(self):
        api = self.serve()
        self.playfs('import', self.plain, '--site', api.origin)
        self.assertEqual([fixture.fields(project)['name'] for project in api.all('projects')], ['garden'])
        self.assertEqual(self.playfs('cat', 'garden', 'data', '--site', api.origin, text=False).stdout,
                         (self.plain / 'data').read_bytes())
        self.assertEqual(self.playfs('ls').stdout, '', 'the embedded playground knows nothing of it')
        records = json.loads(self.playfs('api', 'GET', '/projects?limit=1', '--site', api.origin).stdout)['records']
        self.assertEqual(len(records), 1)
        nobody = f'http://127.0.0.1:{fixture.free_port()}'
        self.assertEqual(self.playfs('ls', '--site', nobody, check=False).returncode, UNREACHABLE)

    def test_an_exported_tree_names_its_service(self):
        self.playfs('import', self.plain, '--site', 'local:other')
        copy = self.home / 'copy'
        self.playfs('export', 'garden', copy, '--site', 'local:other')
        self.assertIn('garden', self.playfs('ls', cwd=copy / 'beds').stdout)
        self.assertEqual(self.playfs('ls', '--site', 'local:default', cwd=copy).stdout, '')
        self.assertEqual(self.playfs('ls', cwd=self.home).stdout, '')
        (copy / 'beds/tulip.txt').write_text('tulipa\n')
        self.playfs('import', copy, '--project', 'garden')
        self.assertIn('beds/tulip.txt', self.playfs('ls', '-R', 'garden', cwd=copy).stdout)

    def test_an_import_that_was_killed_goes_on_with_its_base(self):
        """Another client publishes in between: its changes stay, and the import is published once."""
        api = self.serve(limits={'revisions': 3, 'window_seconds': 5})
        site = ('--site', api.origin)
        self.playfs('import', self.plain, *site)
        project = api.all('projects')[0]['id']
        mine, theirs = self.home / 'mine', self.home / 'theirs'
        for copy in mine, theirs:
            self.playfs('export', 'garden', copy, *site)
        (theirs / 'ADA.md').write_text('by ada\n')
        self.playfs('import', theirs, '--project', 'garden', who='bob', *site)
        (theirs / 'ADA.md').write_text('by ada again\n')
        self.playfs('import', theirs, '--project', 'garden', who='bob', *site)

        (mine / 'data').unlink()
        (mine / 'water.sh').write_text('#!/bin/sh\necho soaked\n')
        command = [self.playfs_path, 'import', str(mine), '--project', 'garden', '-m', 'Mine', *site]
        process = subprocess.Popen(command, env=self.environment('ann'), stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        stage = self.home / 'ann/state/playfs/sites'
        self.eventually(lambda: list(stage.glob('*/imports/*/journal/publish.db')), 'it has begun')
        process.kill()
        process.wait()
        (mine / 'beds/late.txt').write_text('later\n')
        done = self.command(*command)
        self.assertEqual(list(stage.glob('*/imports/*')), [])
        listed = self.playfs('ls', '-R', 'garden', *site).stdout.split()
        self.assertEqual(listed, ['ADA.md', 'beds/late.txt', 'beds/rose.txt', 'first', 'water.sh'], done.stderr)
        self.assertEqual(self.playfs('cat', 'garden', 'ADA.md', *site).stdout, 'by ada again\n')
        self.assertEqual(api.get('projects', project)['latest_revision'], json.loads(
            self.playfs('ls', 'garden', '--json', *site).stdout)['revision'])

    def test_an_import_after_a_branch_keeps_what_new_rules_ignore(self):
        """The branch's own files are published with it, whatever rules came with the base."""
        api = self.serve()
        site = ('--site', api.origin)
        project = api.create('projects', name='p')['id']

        def revision(parents, texts):
            made = api.create('revisions', project=project, parents=parents, state={},
                              manifest={'files': {path: {'inline': text} for path, text in texts.items()}})['id']
            api.call('PATCH', f'/projects/{project}', {'latest_revision': made})
            return made

        first = revision([], {'x': 'x\n'})
        copy = self.home / 'copy'
        self.playfs('export', first, copy, *site)
        (copy / 'x').write_text('ann\n')
        (copy / 'a.log').write_text('log\n')
        second = revision([first], {'x': 'bob\n', '.gitignore': '*.log\n'})
        beside = self.playfs('import', copy, '--project', project, *site, check=False)
        self.assertEqual(beside.returncode, 3, beside.stderr)
        (copy / 'x').write_text('both\n')
        (copy / '.gitignore').write_text('*.log\n')
        self.playfs('import', copy, '--project', project, '--base', second, *site)
        head = api.get('revisions', api.get('projects', project)['latest_revision'])
        self.assertEqual(head['parents'], [second, beside.stdout.split()[1]])
        self.assertEqual(sorted(head['manifest']['files']), ['.gitignore', 'a.log', 'x'])

    def test_what_could_not_be_listed_is_not_deleted(self):
        """A directory whose listing fails half way, and an unmounted mount point."""
        for i in range(6):
            (self.plain / f'f{i}').write_text(f'{i}\n')
        self.playfs('import', self.plain)
        before = self.playfs('ls', '-R', 'garden').stdout
        shim = self.home / 'failing_readdir.so'
        self.command('cc', '-shared', '-fPIC', '-o', str(shim), str(pathlib.Path(__file__).with_name('failing_readdir.c')))
        os.environ.update(LD_PRELOAD=str(shim), FAILING_DIRECTORY=str(self.plain))
        self.addCleanup(os.environ.pop, 'FAILING_DIRECTORY')
        try:
            done = self.playfs('import', self.plain, '--project', 'garden', check=False)
        finally:
            del os.environ['LD_PRELOAD']
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('read the directory', done.stderr)
        self.assertEqual(self.playfs('ls', '-R', 'garden').stdout, before)

        moved = self.plain.rename(self.home / 'elsewhere')
        self.plain.mkdir()
        done = self.playfs('import', self.plain, '--project', 'garden', check=False)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn('mount it', done.stderr)
        self.assertEqual(self.playfs('ls', '-R', 'garden').stdout, before)
        self.assertTrue((moved / 'f5').exists())

    def test_two_imports_leave_the_second_out_of_the_first(self):
        self.playfs('import', self.plain)
        first = self.json('ls', 'garden')['revision']
        (self.plain / 'beds/tulip.txt').write_text('tulipa\n')
        self.playfs('import', self.plain, '--project', 'garden', '-m', 'Tulips')
        second = self.json('ls', 'garden')['revision']
        self.assertNotEqual(first, second)
        self.assertNotIn('beds/tulip.txt', self.playfs('ls', '-R', first).stdout)
        self.assertIn('beds/tulip.txt', self.playfs('ls', '-R', second).stdout)


@fixture.needs_fuse
class InMount(fixture.Fixture):
    def mount_embedded(self):
        """Runs `playfs mount` as people type it, in the background."""
        directory = self.home / 'mnt'
        directory.mkdir()
        # A daemon that kept these pipes open would never let this return.
        self.playfs('mount', directory)
        self.addCleanup(self.leave, directory)
        self.assertTrue(os.path.ismount(directory), 'it answers by the time the command returns')
        return directory

    def leave(self, directory):
        if os.path.ismount(directory):
            self.playfs('umount', directory, cwd='/', check=False)
        if os.path.ismount(directory):
            self.command('fusermount3', '-u', '-z', directory)
            self.fail('playfs umount left the mount')

    def test_a_day_in_the_work_tree(self):
        top = self.mount_embedded()
        self.assertIn('commit', (top / 'README.md').read_text())
        self.playfs('init', 'diary')
        self.assertTrue((top / 'projects/by-name/diary').is_symlink())
        work = (top / 'projects/by-name/diary').resolve() / 'work'
        run = lambda *words, **options: self.playfs(*words, cwd=work, **options)

        (work / 'monday.txt').write_text('rain\n')
        self.assertIn('monday.txt', run('status').stdout)
        run('commit', '-m', 'A wet start')
        self.assertNotIn('monday.txt', run('status').stdout)
        self.assertIn('A wet start', run('log').stdout)

        (work / 'monday.txt').write_text('rain, then sun\n')
        diff = run('diff').stdout
        self.assertIn('-rain\n', diff)
        self.assertIn('+rain, then sun\n', diff)
        self.assertIn('monday.txt', json.dumps(json.loads(run('status', '--json').stdout)))
        run('discard', 'monday.txt')
        self.assertEqual((work / 'monday.txt').read_text(), 'rain\n')
        self.assertEqual(run('diff').stdout, '')

        (work / 'tuesday.txt').write_text('fog\n')
        run('commit', '-m', 'Fog')
        messages = [json.loads(line)['message'] for line in (work.parent / 'log.ndjson').read_text().splitlines()]
        self.assertEqual(messages, ['Fog', 'A wet start'])
        self.assertEqual(self.playfs('cat', 'diary', 'tuesday.txt').stdout, 'fog\n')

    def test_the_mark_of_an_exported_tree_is_not_published(self):
        top = self.mount_embedded()
        plain = self.home / 'garden'
        plain.mkdir()
        (plain / 'rose').write_text('rosa\n')
        self.playfs('import', plain)
        copy = self.home / 'copy'
        self.playfs('export', 'garden', copy)
        (copy / 'rose').write_text('rosa canina\n')
        work = (top / 'projects/by-name/garden').resolve() / 'work'
        self.command('cp', '-a', f'{copy}/.', work)
        (work / '.gitignore').write_text('!.playfs\n!/.playfs/**\n')
        status = json.loads(self.playfs('status', '--json', cwd=work).stdout)
        self.assertNotIn('.playfs/tree.json', json.dumps([status.get(key) for key in ('staged', 'changes')]))
        self.playfs('commit', '-m', 'Copied', cwd=work)
        self.assertEqual(self.playfs('ls', '-R', 'garden').stdout.split(), ['.gitignore', 'rose'])
        # A copied mark stays in the work tree, unpublished.
        self.assertEqual((work / '.playfs/tree.json').read_text(), (copy / '.playfs/tree.json').read_text())

    def test_projects_by_control_file(self):
        top = self.mount_embedded()
        (top / 'projects/new').write_text('{"name": "by hand"}')
        record = json.loads((top / 'projects/new').read_text())
        self.assertEqual(fixture.fields(record.get('record', record))['name'], 'by hand')
        with self.assertRaises(OSError):
            (top / 'projects/new').write_text('{"name": nothing}')
        (top / 'projects/new').write_text('{"name": ')  # more could have followed
        self.assertEqual(json.loads((top / 'projects/new').read_text())['error']['code'], 'invalid_argument')

    def test_umount_keeps_and_tells_of_what_is_staged(self):
        top = self.mount_embedded()
        self.playfs('init', 'notes')
        (top / 'projects/by-name/notes/work/draft').write_text('not yet\n')
        done = self.playfs('umount', top)
        self.assertFalse(os.path.ismount(top))
        self.assertIn('notes', done.stdout + done.stderr)
        self.playfs('mount', top)
        self.assertEqual((top / 'projects/by-name/notes/work/draft').read_text(), 'not yet\n')

    def test_commands_of_a_mount_fail_elsewhere(self):
        for words in (['status'], ['commit', '-m', 'x'], ['discard', '.'], ['umount', str(self.home)]):
            done = self.playfs(*words, cwd=self.home, check=False)
            self.assertNotIn(done.returncode, (DONE, USAGE), words)
            self.assertTrue(done.stderr, words)
            self.assertNotIn('terminate called', done.stderr)

    def test_a_branch_is_exit_code_3(self):
        api = self.serve()
        project = api.create('projects', name='race')
        work = self.mount(api.origin).project('race') / 'work'
        (work / 'note').write_text('base\n')
        self.playfs('commit', '-m', 'Base', cwd=work)
        (work / 'note').write_text('mine\n')
        head = api.get('projects', project['id'])['latest_revision']
        other = api.create('revisions', project=project['id'], parents=[head], agent='bob', message='Theirs', state={},
                           manifest={'files': {'note': {'h': 'x', 's': 7, 'inline': 'theirs\n'}}})['id']
        api.call('PATCH', f'/projects/{project["id"]}', {'latest_revision': other})
        done = self.playfs('commit', '-m', 'Mine', cwd=work, check=False)
        self.assertEqual(done.returncode, BRANCHED, done.stdout + done.stderr)

    def test_a_mount_never_hides_what_it_needs_itself(self):
        """It would hang, and so would everyone who accesses it. By any path, also from inside another mount."""
        helper = self.home / 'mount.playfs'
        helper.symlink_to(self.playfs_path)
        home = self.home / 'ann'  # contains the folders that XDG_*_HOME name
        home.mkdir()
        self.addCleanup(lambda: os.path.ismount(home) and self.command('fusermount3', '-u', '-z', home))
        for words, code in (['playfs', 'mount', '-o', 'nonempty', home], 2), ([helper, 'local:x', home, '-o', 'nonempty'], 32):
            words[0] = self.playfs_path if words[0] == 'playfs' else words[0]
            done = self.command(*words, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(f"{home} holds playfs's own staged changes", done.stderr)
            self.assertFalse((home / 'state').exists(), 'nothing was made')
        top = self.mount_embedded()
        other = self.home / 'other'
        other.mkdir()
        inside = {**self.environment('ann'), 'XDG_STATE_HOME': str(top / 'projects/any/work/state')}
        done = subprocess.run([self.playfs_path, 'mount', other, '--json'], env=inside, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(f'inside the mount of local:default at {top}', json.loads(done.stdout)['error']['message'])
        self.assertFalse(os.path.ismount(other))

    def kill(self, top):
        """Kills the mount's process, as the kernel's out-of-memory killer would, and leaves a dead mount."""
        pid = json.loads((top / '.playfs/status.json').read_text())['pid']
        with open(f'/proc/{pid}/cmdline', 'rb') as command:
            self.assertIn(b'mount', command.read())
        os.kill(pid, signal.SIGKILL)
        self.eventually(lambda: not self.answers(top), 'the mount is dead')

    @staticmethod
    def answers(directory):
        try:
            os.statvfs(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED):  # the latter: it ended during the call
                raise
            return False
        return True

    def source_of(self, directory):
        for line in reversed(pathlib.Path('/proc/self/mountinfo').read_text().splitlines()):
            if line.split()[4] == str(directory).replace(' ', '\\040'):
                return line.rsplit(' - fuse.playfs ')[1].split()[0]
        return None

    def test_a_dead_mount_is_mounted_again_as_it_was(self):
        api = self.serve()
        project = api.create('projects', name='garden')['id']
        top = self.home / 'my mount'
        top.mkdir()
        self.addCleanup(self.leave, top)
        self.playfs('mount', '-o', f'project={project},noexec', '-o', 'refresh=7', api.origin, top)
        (top / 'rose').write_text('rosa\n')
        wanted = f"playfs mount -o project={project},noexec -o refresh=7 {api.origin} '{top}'"
        for attempt in ([], ['--fake'], ['-o', 'sync']):
            self.kill(top)
            if attempt == ['--fake']:  # this detaches it, but its options are still known
                self.playfs('mount', '--fake', top)
                attempt = []
            done = self.playfs('mount', *attempt, top)
            self.assertIn(wanted, done.stderr)
            self.assertEqual(self.source_of(top), api.origin)
            self.assertEqual((top / 'rose').read_text(), 'rosa\n')
            self.assertTrue(os.statvfs(top).f_flag & os.ST_NOEXEC)
        self.assertTrue(os.statvfs(top).f_flag & os.ST_SYNCHRONOUS, 'what is typed counts beside it')

        # Mounted from another source: then that is the one that died.
        self.kill(top)
        self.playfs('mount', 'local:other', top)
        self.assertEqual(self.source_of(top), 'local:other')
        self.kill(top)
        self.assertEqual(self.playfs('umount', top).stderr.splitlines()[-1], f"Try: playfs mount local:other '{top}'")
        # Unmounted by its user: no record is left.
        self.playfs('mount', top)
        self.assertEqual(self.source_of(top), 'local:default')
        self.playfs('umount', top)
        self.assertEqual(list((self.home / 'ann/state/playfs/mounts').iterdir()), [])

    def how_it_is_mounted(self, top):
        """What its options show in, without what is another each time."""
        status = json.loads((top / '.playfs/status.json').read_text())
        own, system = next((line.split()[5], line.split()[-1])
                           for line in reversed(pathlib.Path('/proc/self/mountinfo').read_text().splitlines())
                           if line.split()[4] == str(top))
        return {name: status[name] for name in status if name not in ('pid', 'started', 'health', 'events')}, own, system

    def test_nothing_of_an_earlier_mount_changes_a_later_one(self):
        api = self.serve()
        self.playfs('init', 'demo', '--site', api.origin)
        top, other = self.home / 'mnt', self.home / 'other'
        for place in (top, other):
            place.mkdir()
            self.addCleanup(self.leave, place)
        self.playfs('mount', api.origin, top)
        plain = self.how_it_is_mounted(top)
        self.playfs('umount', top)
        options = ('-o', 'ro,noexec,sync,agent=bob,safe_symlinks,instructions=hide,refresh=99')
        self.playfs('mount', *options, api.origin, top)
        self.assertNotEqual(self.how_it_is_mounted(top), plain)
        self.playfs('mount', api.origin, other)  # beside it
        self.assertEqual(self.how_it_is_mounted(other), plain)
        self.playfs('umount', top)
        self.playfs('mount', api.origin, top)  # after it
        self.assertEqual(self.how_it_is_mounted(top), plain)
        self.playfs('umount', top)
        self.playfs('mount', *options, api.origin, top)
        self.kill(top)
        said = self.playfs('mount', api.origin, top)  # it died, but this says what to mount
        self.assertNotIn('Remounting', said.stderr)
        self.assertEqual(self.how_it_is_mounted(top), plain)
        self.kill(top)
        said = self.playfs('mount', top)  # the last one's options, which were none
        self.assertIn('Remounting it', said.stderr)
        self.assertEqual(self.how_it_is_mounted(top), plain)

    def test_a_dead_mount_of_unknown_options_is_not_guessed_at(self):
        api = self.serve()
        top = self.home / 'mnt'
        top.mkdir()
        self.addCleanup(self.leave, top)
        self.playfs('mount', '-o', 'ro', api.origin, top)
        self.kill(top)
        for record in (self.home / 'ann/state/playfs/mounts').iterdir():
            record.write_text('{"source": "local:default", "device": "0:1"}')
        done = self.playfs('mount', top, '--json', check=False)
        self.assertEqual(done.returncode, FAILED, done.stdout)
        self.assertEqual(json.loads(done.stdout)['error']['hint'], f'playfs mount -o ro {api.origin} {top}')
        self.assertFalse(self.answers(top), 'it was left as it is')
        self.playfs('mount', api.origin, top)
        self.assertEqual(self.source_of(top), api.origin)

    def test_mount_helper(self):
        """As mount(8) calls it for `mount -t playfs` and for /etc/fstab."""
        helper = self.home / 'mount.playfs'
        helper.symlink_to(self.playfs_path)
        directory = self.home / 'mnt'
        directory.mkdir()
        self.command(helper, f'local:{self.home}/store', directory, '-o', 'rw,_netdev,nofail,x-systemd.automount')
        self.addCleanup(self.leave, directory)
        self.assertTrue((directory / 'projects').is_dir())
        bad = self.command(helper, 'http://127.0.0.1:1', self.home / 'missing', check=False)
        self.assertEqual(bad.returncode, 32)


if __name__ == '__main__':
    fixture.main()
