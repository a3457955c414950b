#!/usr/bin/env python3
"""Publishing as people and scripts see it: status, diff, log, branches, plans, errors; on terminals and in pipes."""
import json
import os
import re
import urllib.request

import fixture
import proxy

DONE, FAILED, USAGE, BRANCHED, NOT_FOUND = 0, 1, 2, 3, 5
LINES = ''.join(f'line {number}\n' for number in range(40))


@fixture.needs_fuse
class Publishing(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = json.loads(self.playfs('init', 'garden', '--json', '--site', self.api.origin).stdout)['project']
        self.top = self.mount(self.api.origin)
        self.work = self.top.directory / 'projects' / self.project / 'work'

    def run_in(self, *words, check=True, **options):
        return self.playfs(*words, cwd=self.work, check=check, **options)

    def json(self, *words, code=DONE):
        done = self.run_in(*words, '--json', check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def commit(self, message, *words):
        return self.json('commit', '-m', message, *words)['revision']

    def sibling(self, parent, message, **contents):
        """Publishes a revision of another client's that does not move head."""
        files = dict(self.api.get('revisions', parent)['manifest']['files']) if parent else {}
        files |= {path: {'inline': text} for path, text in contents.items()}
        return self.api.create('revisions', project=self.project, parents=[parent] if parent else [], agent='bob',
                               message=message, manifest={'tx': os.urandom(16).hex(), 'files': files}, state={})['id']

    def on_terminal(self, *words, **options):
        return super().on_terminal(self.playfs_path, *words, cwd=self.work, **options)

    # status

    def test_status_says_where_one_stands_and_what_comes_next(self):
        self.assertIn('Nothing has been published yet', self.run_in('status').stdout)
        (self.work / 'rose').write_text('rosa\n')
        (self.work / '.gitignore').write_text('*.o\n')
        (self.work / 'x.o').write_text('o')
        (self.work / 'empty').mkdir()
        status = self.run_in('status').stdout
        self.assertRegex(status, r'added +rose')
        self.assertRegex(status, r'(?s)never published.*empty.*x\.o')
        self.assertIn('Next: playfs commit -m MESSAGE', status)
        self.assertEqual(self.json('status')['next'], 'playfs commit -m MESSAGE')
        head = self.commit('Plant\n\nat length')
        status = self.run_in('status').stdout
        self.assertRegex(status, rf'At head, revision {head}\n  ann, \S+Z: Plant\n')
        self.assertNotIn('Next:', status)
        self.assertEqual(self.json('status')['latest'] | {'created_at': ''},
                         {'revision': head, 'agent': 'ann', 'message': 'Plant\n\nat length', 'created_at': ''})
        self.assertEqual((self.work.parent / 'status').read_text(), self.run_in('status').stdout)

    # branches

    def test_branches_are_named_with_what_takes_them_in(self):
        (self.work / 'rose').write_text(LINES)
        base = self.commit('Plant')
        self.assertIn('No branches', self.run_in('branches').stderr)
        (self.work / 'rose').write_text(LINES.replace('line 5\n', 'five\n'))
        self.commit('Prune')
        first = self.sibling(base, 'Water', rose=LINES.replace('line 5\n', 'fünf\n'))
        theirs = self.sibling(first, 'Water more', rose=LINES.replace('line 5\n', 'sechs\n'))
        # Events may bring the two revisions one by one.
        self.eventually(lambda: [each['revision'] for each in self.json('branches')['branches']] == [theirs],
                        'the tip of the branch alone')
        listed = self.json('branches')
        self.assertEqual([(each['revision'], each['agent'], each['message'], each['take_in']) for each in listed['branches']],
                         [(theirs, 'bob', 'Water more', f'playfs merge {theirs}')])
        done = self.run_in('branches')
        self.assertIn(theirs, done.stdout)
        self.assertIn(f'Try: playfs merge {theirs}', done.stderr)
        self.assertIn(f'  {theirs}  bob, ', self.run_in('status').stdout, 'known by now')
        self.assertIn('(branch)', self.run_in('log', '--oneline').stdout)
        self.assertEqual(self.run_in('merge', theirs, check=False).returncode, BRANCHED)
        status = self.run_in('status').stdout
        self.assertIn(f'Merging {theirs}', status)
        self.assertRegex(status, r'(?s)In conflict.*rose')
        self.assertIn('Next: playfs diff, edit', status)
        self.assertEqual(self.json('commit', '-m', 'Too early', code=BRANCHED)['error']['code'], 'conflict')
        self.run_in('commit', '--resolved', '-m', 'Both')
        self.eventually(lambda: not self.json('branches')['branches'], 'head holds it')

    # log

    def test_log_draws_the_graph(self):
        (self.work / 'rose').write_text(LINES)
        base = self.commit('Plant')
        theirs = self.sibling(base, 'Water', tulip='tulipa\n')
        (self.work / 'lily').write_text('lilium\n')
        ours = self.commit('Lily')
        # Publishing merges siblings that do not conflict.
        merge = self.api.get('projects', self.project)['latest_revision']
        self.assertNotIn(merge, (ours, theirs))
        self.eventually(lambda: self.json('status')['base'] == merge, 'the work tree follows')
        lines = self.run_in('log', '--oneline').stdout.splitlines()
        self.assertEqual(lines[0][:4], '*   ')
        self.assertIn(f'{merge} (head, base)', lines[0])
        self.assertEqual(lines[1], '|\\')
        self.assertEqual({lines[2][:4], lines[3][:4]}, {'* | ', '| * '})
        self.assertEqual(lines[4:], ['|/', f'* {base} Plant (ann)'])
        full = self.run_in('log').stdout
        self.assertRegex(full, rf'\| \* +revision {theirs}|\* \| +revision {theirs}')
        self.assertIn('Author: bob', full)
        self.assertIn('    Water', full)
        self.assertTrue(self.run_in('log', '--no-graph').stdout.startswith('revision '))
        items = [json.loads(line) for line in self.run_in('log', '--json').stdout.splitlines()]
        self.assertEqual([item['revision'] for item in items][-1], base)
        self.assertEqual((items[0]['labels'], set(items[0]['parents'])), (['head', 'base'], {ours, theirs}))
        self.assertEqual(len(self.run_in('log', '-n', '2', '--json').stdout.splitlines()), 2)

    def test_a_long_history_is_read_as_far_as_it_is_wanted(self):
        parent = ''
        for number in range(260):
            parent = self.sibling(parent, f'step {number}', file=f'{number}\n')
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': parent})
        self.eventually(lambda: self.json('status')['head'] == parent, 'the mount has seen it')
        before = self.requests()
        self.assertEqual(len(self.run_in('log', '-n', '3', '--json').stdout.splitlines()), 3)
        self.assertLess(self.requests() - before, 20)
        messages = [json.loads(line)['message'] for line in self.run_in('log', '--json').stdout.splitlines()]
        self.assertEqual(messages, [f'step {number}' for number in reversed(range(260))])

    def test_parents_without_number_cost_a_few_requests_and_lines(self):
        parent, shown = '', 20
        for number in range(shown):
            parents = [parent] * bool(parent) + [f'nobody-has-{number}-{other}' for other in range(500)]
            parent = self.api.create('revisions', project=self.project, parents=parents, agent='bob', message=f'm{number}',
                                     manifest={'files': {}}, state={})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': parent})
        # A refresh interval longer than the test, so that the service's answers stay fresh throughout.
        self.top = self.mount(self.api.origin, options=('refresh=600',))
        self.work = self.top.directory / 'projects' / self.project / 'work'
        self.eventually(lambda: self.json('status')['head'] == parent, 'the mount has seen it')
        for words in (('-n', str(shown)), ('-n', '5'), ('--no-graph',), ('--site', self.api.origin, '--project', self.project)):
            with self.subTest(words):
                before = self.requests()
                done = self.run_in('log', *words)
                self.assertLess(self.requests() - before, 8 * shown)
                self.assertLess(len(done.stdout), 2_000 * shown)
                self.assertIn('revision ' + parent, done.stdout)
                self.assertRegex(done.stdout, r'nobody-has-19-30 and 469 more\n')
                self.assertIn('too many parents to show', done.stderr)
                again = self.requests()
                self.assertEqual(self.run_in('log', *words).stdout, done.stdout)
                self.assertLess(self.requests() - again, 5, 'what is missing is not asked for at every look')
        self.playfs('clone', self.project, self.home / 'clone', '--site', self.api.origin)
        for words, place in ((('--site', self.api.origin, '--project', self.project), '/'), ((), self.home / 'clone')):
            with self.subTest('outside a mount', words=words):
                first = self.playfs('log', '-n', str(shown), *words, cwd=place).stdout
                before = self.served()
                self.assertEqual(self.playfs('log', '-n', str(shown), *words, cwd=place).stdout, first)
                self.assertLess(self.served() - before, 20, 'another command asks only for a few again')
        items = [json.loads(line) for line in self.run_in('log', '--json').stdout.splitlines()]
        self.assertEqual([item['message'] for item in items], [f'm{number}' for number in reversed(range(shown))])
        self.assertEqual([(len(item['parents']), item['more_parents']) for item in items],
                         [(32, 469)] * (shown - 1) + [(32, 468)])
        self.assertIn(' and 469 more\n', (self.work.parent / 'log').read_text())
        self.assertEqual(len(self.api.get('revisions', parent)['parents']), 501)
        # Revisions published meanwhile are found nevertheless.
        self.assertFalse((self.work.parent / 'revisions/nobody-has-19-0').exists())
        (self.work / 'rose').write_text('rosa\n')
        mine = self.commit('Plant')
        self.assertEqual(self.api.get('revisions', mine)['parents'], [parent])

    def test_a_parent_that_comes_later_is_shown(self):
        """The service lacks it at the first look, as behind a replica that lags."""
        service = proxy.CountingProxy(int(self.api.origin.rpartition(':')[2]))
        self.addCleanup(service.close)
        parent = self.sibling('', 'parent')
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': self.sibling(parent, 'child')})
        service.fate = lambda request: (404, '{"error":"x"}') if request.endswith(f'/revisions/{parent}') else None

        def shown():
            lines = self.playfs('log', '--json', '--project', self.project, '--site', service.url).stdout.splitlines()
            return [json.loads(line)['message'] for line in lines]

        self.assertEqual(shown(), ['child'])
        service.fate = lambda request: None
        self.assertEqual(shown(), ['child', 'parent'])

    def served(self):
        """Requests that the service has answered, of all clients."""
        with urllib.request.urlopen(self.api.origin + '/metrics') as answer:
            lines = answer.read().decode().splitlines()
        return sum(int(line.split()[-1]) for line in lines if line.startswith('playfs_http_requests_total{'))

    def requests(self):
        return json.loads((self.top.directory / '.playfs/status.json').read_text())['health']['requests']

    # diff

    def test_a_patch_names_every_file(self):
        # Unquoted, the last one would write another file.
        names = ['a b', 'a b/c d', 'tab\there', 'cr\rhere', 'quote"s', 'back\\slash', 'bell\a', 'del\x7f', 'umläut', ' first',
                 'last ', '"quoted"', '-dash', 'new\n--- a/x\n+++ b/edited/victim\n@@ -0,0 +1 @@\n+written']
        def put(name, text):
            (self.work / name).parent.mkdir(exist_ok=True, parents=True)
            (self.work / name).write_text(text)

        def link(name, target):
            (self.work / name).parent.mkdir(exist_ok=True, parents=True)
            (self.work / name).unlink(missing_ok=True)
            (self.work / name).symlink_to(target)

        names.remove('a b')  # a directory
        for name in names:
            put(f'edited/{name}', LINES)
            put(f'deleted/{name}', 'gone\n' * 30)
            put(f'moved/{name}', name + LINES)
            put(f'old/{name}', 'old ' + name + LINES)
            put(f'mode/{name}', 'mode\n')
            put(f'both/{name}', 'both\n')
            put(f'emptied/{name}', '')
            for where in 'link', 'link-gone', 'link-moved', 'to-file':
                link(f'{where}/{name}', f'to {name}')
            put(f'to-link/{name}', LINES)
        base = self.commit('Plant')
        for name in names:
            put(f'edited/{name}', LINES.replace('line 7\n', 'seven\n'))
            put(f'added/{name}', f'added {name}\n')
            (self.work / 'deleted' / name).unlink()
            put(f'here/{name}', name + LINES.replace('line 9\n', ''))
            (self.work / 'moved' / name).unlink()
            put(f'kept/{name}', 'old ' + name + LINES)
            (self.work / 'old' / name).unlink()
            (self.work / 'mode' / name).chmod(0o755)
            put(f'both/{name}', 'other\n')
            (self.work / 'both' / name).chmod(0o755)
            (self.work / 'emptied' / name).unlink()
            put(f'empty/{name}', '')
            link(f'link/{name}', f'elsewhere/{name}')
            link(f'link-new/{name}', name)
            for where in 'link-gone', 'link-moved':
                (self.work / where / name).unlink()
            link(f'link-here/{name}', f'to {name}')
            (self.work / 'to-file' / name).unlink()
            put(f'to-file/{name}', 'file\n')
            link(f'to-link/{name}', 'x')
        patch = self.home / 'names.patch'
        self.command('sh', '-c', '"$0" diff > "$1"', self.playfs_path, patch, cwd=self.work)
        self.assertEqual(patch.read_bytes().count(b'\nrename from '), 2 * len(names))
        for tool in (['git', 'apply', patch], ['patch', '-p1', '--quiet', '-i', patch]):
            with self.subTest(tool[0]):
                copy = self.home / f'{tool[0]}-copy'
                self.playfs('export', base, copy, '--site', self.api.origin)
                if tool[0] == 'patch' and not self.patch_creates_names_with_newlines():
                    sections = re.split(rb'^(?=diff --git )', patch.read_bytes(), flags=re.M)
                    patch.write_bytes(b''.join(each for each in sections if rb'/new\n' not in each))
                    for tree in (self.work, copy):
                        self.command('find', tree, '-depth', '-path', '*/new\n*', '-delete')
                self.command(*tool, cwd=copy)
                for tree in (self.work, copy):
                    self.command('find', tree, '-mindepth', '1', '-type', 'd', '-empty', '-delete')
                self.assert_same_tree(self.work, copy)

    def patch_creates_names_with_newlines(self):
        """GNU patch 2.8 does not."""
        patch = self.home / 'newline.patch'
        patch.write_text('--- /dev/null\n+++ "b/new\\nline"\n@@ -0,0 +1 @@\n+x\n')
        return self.command('patch', '-p1', '-i', patch, cwd=self.home, check=False).returncode == 0

    def test_diff_is_what_git_says(self):
        (self.work / 'src').mkdir()
        (self.work / 'src/rose').write_text(LINES)
        (self.work / 'gone').write_text('gone\n' * 30)
        (self.work / 'moved').write_text('moved\n' + LINES)
        (self.work / 'grown').write_text(LINES[:150])
        (self.work / 'like').write_text(LINES[150:].replace('line', 'row'))
        (self.work / 'tool').write_text('#!/bin/sh\n')
        (self.work / 'blob').write_bytes(bytes(range(256)))
        base = self.commit('Plant')
        old = self.work.parent / 'revisions' / base
        (self.work / 'src/rose').write_text(LINES.replace('line 7\n', 'seven\n').replace('line 30\n', ''))
        (self.work / 'gone').unlink()
        (self.work / 'moved').rename(self.work / 'src/here')
        (self.work / 'grown').rename(self.work / 'src/old')
        (self.work / 'src/old').write_text(LINES[:100] + 'more\n' * 4)
        (self.work / 'src/old').chmod(0o755)
        (self.work / 'like').rename(self.work / 'unlike')
        (self.work / 'unlike').write_text(LINES[150:200].replace('line', 'row') + 'another\n' * 30)
        (self.work / 'tool').chmod(0o755)
        (self.work / 'blob').write_bytes(bytes(reversed(range(256))) * 2)
        (self.work / 'new').write_text('no end of line')

        def git(*words):
            said = self.command('git', 'diff', '--no-index', '-M', *words, old, self.work, check=False, cwd=self.home)
            self.assertEqual(said.returncode, 1, said.stderr)
            text = said.stdout.replace(f'{old}/', '/').replace(f'{self.work}/', '/')
            return text.replace('a//', 'a/').replace('b//', 'b/')

        ours = self.run_in('diff').stdout
        # git names renamed files by their whole paths here; everything else must be equal, line by line.
        def same(text):
            return [line for line in text.splitlines() if line[:1] in '+-@ ' or line.startswith('similarity ')]

        self.assertEqual(same(ours), same(git()))
        self.assertIn('old mode 100644\nnew mode 100755', ours)
        self.assertIn('similarity index 100%\nrename from moved\nrename to src/here', ours)
        self.assertRegex(ours, r'old mode 100644\nnew mode 100755\nsimilarity index \d\d%\nrename from grown\nrename to src/old')
        self.assertEqual({each['path']: (each['from'], each['similarity'] == 100) for each in self.json('diff')['files']
                          if each['change'] == 'renamed'}, {'src/here': ('moved', True), 'src/old': ('grown', False)})
        self.assertIn('Binary files a/blob and b/blob differ', ours)
        stat = self.run_in('diff', '--stat').stdout.splitlines()
        self.assertEqual(stat[-1], git('--stat').splitlines()[-1])
        self.assertRegex('\n'.join(stat), r' blob +\| Bin 256 -> 512 bytes')
        self.assertRegex('\n'.join(stat), r' src/rose +\| +3 \+--')
        self.assertRegex('\n'.join(stat), r' moved => src/here +\| +0')
        self.assertRegex('\n'.join(stat), r' grown => src/old +\| +\d+ \++-+')
        # The patch turns a copy of the base into the work tree.
        copy = self.home / 'copy'
        self.playfs('export', base, copy, '--site', self.api.origin)
        (copy / 'blob').write_bytes((self.work / 'blob').read_bytes())
        patch = self.home / 'patch'
        patch.write_text(re.sub(r'diff --git a/blob[^\n]*\nindex[^\n]*\nBinary[^\n]*\n', '', ours))
        self.command('git', 'apply', '--unsafe-paths', patch, cwd=copy)
        self.assert_same_tree(self.work, copy)

        head = self.commit('Change all')
        self.assertEqual(self.run_in('diff').stdout, '')
        self.assertEqual(self.run_in('diff', f'{base}..head').stdout, ours)
        self.assertEqual(self.run_in('diff', base).stdout, ours)
        self.assertEqual([each['path'] for each in self.json('diff', f'{head}..{base}', 'src')['files']],
                         ['src/here', 'src/old', 'src/rose'])
        nothing = self.run_in('diff', 'no-such-thing')
        self.assertEqual(nothing.stdout, '')
        self.assertEqual(self.run_in('diff', '/etc/passwd', check=False).returncode, NOT_FOUND)

    def test_diff_shows_what_a_stranger_would_hide(self):
        secret = self.home / 'secret'
        secret.mkdir()
        (secret / 'id').write_text('TOPSECRET\n')

        def post(parents, **files):
            return self.api.create('revisions', project=self.project, parents=parents, agent='eve', message='m',
                                   manifest={'files': files}, state={})['id']

        # A link that leads out of the tree, where the other revision has a directory; a hash that proves nothing; a
        # link in place of a file; a tree deeper than there are descriptors.
        deep = '/'.join(['d'] * 400) + '/f'
        old = post([], **{'keys': {'inline': str(secret), 'm': '120000'}, 'claimed': {'inline': 'one', 'h': 'v1'},
                          'p': {'inline': 'p\n', 'h': 'v1'}, 'kind': {'inline': 'elsewhere', 'm': '120000'},
                          deep: {'inline': 'deep\n'}})
        new = post([old], **{'keys/id': {'inline': 'theirs\n'}, 'claimed': {'inline': 'EVIL', 'h': 'v1'},
                             'p': {'inline': 'p\n', 'h': 'v1'}, 'kind': {'inline': '#!/bin/sh\n', 'm': '100755'},
                             deep: {'inline': 'deeper\n'}})
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': new})
        diff = self.command('sh', '-c', f'ulimit -n 256; exec "$0" diff {old}..{new}', self.playfs_path,
                            cwd=self.work).stdout
        self.assertNotIn('TOPSECRET', diff)
        for part in ('+theirs', '-one', '+EVIL', '-deep', '+deeper', 'deleted file mode 120000', 'new file mode 100755'):
            self.assertIn(part, diff)
        self.assertNotIn('b/p', diff, 'the same bytes')
        copy = self.home / 'copy'
        self.playfs('export', old, copy, '--site', self.api.origin)
        patch = self.home / 'patch'
        patch.write_text(diff)
        self.command('git', 'apply', patch, cwd=copy)
        self.assertEqual((copy / 'keys/id').read_text(), 'theirs\n')
        self.assertEqual((copy / 'kind').stat().st_mode & 0o777, 0o755)

        # The same in the work tree.
        self.run_in('update')
        os.rename(self.work / 'p', self.work / 'claimed')
        (self.work / 'keys/id').unlink()
        (self.work / 'keys').rmdir()
        os.symlink(secret, self.work / 'keys')
        staged = self.run_in('diff').stdout
        self.assertNotIn('TOPSECRET', staged)
        for part in ('-theirs', '-EVIL', '+p', 'new file mode 120000'):
            self.assertIn(part, staged)

    # terminals

    def test_colour_and_pager_belong_to_terminals(self):
        (self.work / 'rose').write_text('rosa\n')
        self.commit('Plant')
        (self.work / 'rose').write_text('rosa alba\n')
        code, shown = self.on_terminal('diff', variables={'PLAYFS_PAGER': 'sed s/^/page:/'})
        self.assertEqual(code, DONE)
        self.assertIn('page:\x1b[32m+rosa alba', shown)
        code, shown = self.on_terminal('diff', variables={'PLAYFS_PAGER': 'cat', 'NO_COLOR': '1'})
        self.assertEqual((code, '\x1b' in shown), (DONE, False))
        self.assertIn('+rosa alba', shown)
        code, shown = self.on_terminal('log', '--no-pager', variables={'PLAYFS_PAGER': 'sed s/^/page:/'})
        self.assertNotIn('page:', shown)
        self.assertIn('\x1b[33mrevision ', shown)
        # A reader that quits early is not an error, and the rest is not read.
        code, shown = self.on_terminal('log', variables={'PLAYFS_PAGER': 'head -n 1'})
        self.assertEqual((code, len(shown.splitlines())), (DONE, 1))
        code, shown = self.on_terminal('log', variables={'PLAYFS_PAGER': 'sed s/^/page:/'})
        self.assertIn('page:', shown)
        self.assertNotIn('\x1b', self.run_in('diff').stdout)

    def test_a_commit_shows_its_progress_on_a_terminal(self):
        # Publishing it takes longer than the command waits before it shows anything.
        (self.work / 'big').write_text(''.join(f'line {number}\n' for number in range(500_000)))
        code, shown = self.on_terminal('commit', '-m', 'Big')
        self.assertEqual(code, DONE, shown)
        self.assertIn('Published ', shown)
        self.assertIn('\x1b[K', shown, 'a line that is drawn over')

    # plans

    def test_the_plan_of_a_dry_run(self):
        (self.work / 'small').write_text('small\n')
        (self.work / 'big').write_text(''.join(f'{number:>30}\n' for number in range(1500)))
        done = self.run_in('publish', '--dry-run')
        self.assertRegex(done.stdout, r'4 chunks, 45 KB to send +big\n')
        self.assertRegex(done.stdout, r'no chunk to send +small\n')
        self.assertRegex(done.stdout, r'the revision itself: \d+ of 16384 bytes')
        self.assertRegex(done.stderr, r'Would publish 2 changed files with 6 writes \(4 new chunks\), at once')
        plan = self.json('commit', '--dry-run')
        self.assertEqual((plan['outcome'], plan['chunks_total'], plan['hours_under_limits']), ('planned', 4, 0))
        self.assertEqual([(each['path'], each['chunks']) for each in plan['plan']['paths']], [('big', 4), ('small', 0)])
        (self.work.parent / 'commit').write_text('{"dry_run": true}')
        self.assertEqual(json.loads((self.work.parent / 'commit').read_text())['plan'], plan['plan'])
        self.assertEqual(self.api.all('revisions'), [])
        self.commit('All')
        self.assertEqual(json.loads((self.work.parent / 'commit').read_text())['outcome'], 'published')

    # errors

    def test_errors_say_what_why_and_what_next(self):
        (self.work / 'rose').write_text('rosa\n')
        self.commit('Plant')
        # An old error must not be reported as the reason of a new one.
        with self.assertRaises(NotADirectoryError):
            (self.work / 'rose' / 'x').read_text()
        error = self.json('merge', 'no-such-revision', code=NOT_FOUND)['error']
        self.assertEqual((error['code'], error['retryable']), ('not_found', False))
        self.assertIn('merge no-such-revision: ', error['message'])
        self.assertIn('no-such-revision', error['message'])
        self.assertTrue(error['hint'])
        (self.work / 'lily').write_text('lilium\n')
        base = self.api.get('projects', self.project)['latest_revision']
        other = self.sibling(base, 'Other', rose='alba\n')
        error = self.json('merge', other, code=BRANCHED)['error']
        self.assertEqual((error['code'], error['retryable']), ('conflict', False))
        self.assertIn('staged', error['message'])
        self.assertIn('playfs', error['hint'])
        self.assertIn('playfs branches', self.json('merge', 'no-such-revision', code=NOT_FOUND)['error']['hint'])
        self.assertIn('nothing is staged', self.json('discard', 'no-such-file', code=NOT_FOUND)['error']['message'])
        self.assertEqual(self.json('discard', 'rose')['discarded'], 0)
        (self.work / 'rose').unlink()
        self.assertEqual(self.json('discard', 'rose')['discarded'], 1)
        self.assertEqual((self.work / 'rose').read_text(), 'rosa\n')
        (self.work.parent / 'state.json').write_text(json.dumps({'notes': 'n' * 20_000}))
        error = self.json('commit', '-m', 'More state than a record has room for', code=FAILED)['error']
        self.assertEqual((error['code'], error['retryable']), ('file_too_big', False))
        self.assertTrue(error['hint'])
        document = json.loads((self.work.parent / 'commit').read_text())
        self.assertEqual(document['error']['code'], 'file_too_big', 'the file says the same')
        self.assertEqual(self.json('commit', code=USAGE)['error']['code'], 'invalid_argument')

    def test_a_commit_of_one_path_does_not_publish_another(self):
        (self.work / 'ready').write_text('ready\n')
        (self.work / 'half').write_text('half done\n')
        error = self.json('commit', '-m', 'One', 'ready', code=USAGE)['error']
        self.assertIn('half', error['message'])
        self.assertEqual(self.api.all('revisions'), [])
        (self.work / 'half').unlink()
        self.json('commit', '-m', 'One', 'ready')
        self.assertEqual(len(self.api.all('revisions')), 1)


if __name__ == '__main__':
    fixture.main()
