#!/usr/bin/env python3
"""If the revision that both sides were based on is unknown, nothing is merged; and head never leaves what was not
merged."""
import json

import clocks
import proxy
import fixture


@fixture.needs_fuse
class Ancestry(clocks.Clocks, fixture.SharedProject):
    def setUp(self):
        super().setUp()
        self.let_clocks_jump()
        self.hidden = None
        self.answer = 404, '{"error":"nothing is here","code":"not_found"}'  # to who asks for it
        self.patches = []
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':')[-1]))
        self.addCleanup(self.proxy.close)
        self.proxy.fate = self.fate

    def fate(self, request):
        method, path = request.split(' ', 1)
        if method == 'PATCH':
            self.patches.append(path)
        if method != 'GET' or not self.hidden:
            return None
        if path.endswith('/revisions/' + self.hidden):
            return self.answer
        if '/revisions?' in path:
            status, page = self.api.request('GET', path.split('/.site/data', 1)[-1])
            page['records'] = [each for each in page['records'] if each['id'] != self.hidden]
            return status, json.dumps(page)
        return None

    def begin(self, files):
        self.mounted = self.mount(self.proxy.url, 'ann')
        work = self.work(self.mounted)
        for name, text in files.items():
            (work / name).write_text(text)
        self.playfs('commit', '-m', 'one', work)
        return work, self.head()

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def manifest(self, revision):
        return self.api.get('revisions', revision)['manifest']

    def texts(self):
        return {path: entry.get('inline') for path, entry in self.manifest(self.head())['files'].items()}

    def post(self, parents, manifest, message='by another client'):
        return self.api.create('revisions', project=self.project, parents=parents, agent='bob', message=message,
                               manifest=manifest, state={})['id']

    def move_head(self, to):
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': to})

    def again(self, change):
        """Remounts, stages `change` and commits it; by then the mount has checked head."""
        self.mounted = self.mount(self.proxy.url, 'ann', at=self.mounted.directory)
        work = self.work(self.mounted)
        self.patches.clear()
        (work / change).write_text(change + '\n')
        return work, self.playfs('commit', '-m', change, work, check=False)

    def test_status_names_a_branch_however_old(self):
        _, first = self.begin({'a': 'a\n'})

        def text(content):
            return {'files': self.manifest(first)['files'] | {'a': {'inline': content}}}

        def names(branch):
            status = json.loads(self.playfs('status', '--json', self.work(self.mounted)).stdout)
            return branch in [each['revision'] for each in status['branches']]

        branch = self.post([first], text('theirs\n'))
        head = self.post([first], text('0\n'))
        self.move_head(head)
        self.eventually(lambda: names(branch), 'status names the branch')
        for i in range(1, 210):  # more than status looks back
            head = self.post([head], text(f'{i}\n'))
        self.move_head(head)
        project = self.work(self.mounted).parent
        self.eventually(lambda: (project / 'head').resolve().name == head, 'the mount follows head')
        self.eventually(lambda: names(branch), 'status names the branch')

    def middle(self, middle, is_hidden):
        """Another client deletes `victim` on top of an unreadable revision."""
        work, first = self.begin({'keep': 'keep\n', 'victim': 'to be deleted by others\n'})
        (work / 'mine').write_text('staged\n')
        self.mounted.unmount()
        between = self.post([first], middle)
        files = self.manifest(first)['files']
        del files['victim']
        last = self.post([between], {'files': files})
        self.hidden = between if is_hidden else None
        self.move_head(last)
        return last

    def test_what_others_deleted_behind_a_hidden_revision_does_not_come_back(self):
        last = self.middle({'files': {}}, is_hidden=True)
        self.mounted = self.mount(self.proxy.url, 'ann', at=self.mounted.directory)
        work = self.work(self.mounted)
        self.patches.clear()
        updated = self.playfs('update', work, check=False)
        self.assertNotEqual(updated.returncode, 0)
        self.assertIn('cannot be merged', updated.stderr)
        self.assertIn('playfs merge ' + last, updated.stderr)
        committed = self.playfs('commit', '-m', 'mine', work, check=False)
        self.assertEqual(committed.returncode, 3, 'a branch: ' + committed.stdout + committed.stderr)
        self.assertEqual((self.head(), self.patches), (last, []))
        # The way out that the message suggested.
        self.playfs('merge', last, work, check=False)
        self.assertNotEqual(self.playfs('commit', '-m', 'merge', work, check=False).returncode, 0, 'undecided')
        (work / 'victim').unlink()
        self.playfs('commit', '--resolved', '-m', 'merge', work)
        self.assertEqual(sorted(self.texts()), ['keep', 'mine'])

    def test_what_others_deleted_behind_an_unreadable_revision_does_not_come_back(self):
        self.middle('a manifest of another form', is_hidden=False)
        self.mounted = self.mount(self.proxy.url, 'ann', at=self.mounted.directory)
        self.playfs('commit', '-m', 'mine', self.work(self.mounted))
        self.assertEqual(sorted(self.texts()), ['keep', 'mine'])

    def test_what_others_deleted_does_not_come_back_without_parents(self):
        _, first = self.begin({'keep': 'keep\n', 'secret.key': 'PRIVATE\n'})
        manifest = self.manifest(first)
        del manifest['files']['secret.key']
        for carried in (manifest, {'files': manifest['files']}):
            self.mounted.unmount()
            theirs = self.post([], carried)
            self.move_head(theirs)
            _, committed = self.again('mine-%d' % len(carried))
            # A branch, or based on theirs if the work tree had followed head by then; nothing in between.
            head = self.head()
            self.assertIn(committed.returncode, (0, 3), committed.stderr)
            on_it = head if committed.returncode == 3 else self.api.get('revisions', head)['parents'][0]
            self.assertEqual(on_it, theirs)
            self.assertNotIn('secret.key', self.texts())

    def test_head_stays_on_what_cannot_be_read(self):
        _, first = self.begin({'doc': 'old\n'})
        self.answer = 403, '{"error":"not for you","code":"forbidden"}'
        for name, manifest, is_hidden in [('garbage', 'form 2', False), ('hidden', {'files': {}}, True)]:
            self.mounted.unmount()
            self.patches.clear()
            theirs = self.post([first], manifest)
            self.hidden = theirs if is_hidden else None
            self.move_head(theirs)
            self.mounted = self.mount(self.proxy.url, 'ann', at=self.mounted.directory)
            work = self.work(self.mounted)
            (work / name).write_text(name + '\n')
            self.playfs('commit', '--no-wait', '-m', name, work, check=False)

            def publication():
                return json.loads((work.parent / 'status.json').read_text())['publication']

            self.within_minutes(lambda: not publication()['queue'], 'it is published')
            self.assertEqual((self.head(), self.patches), (theirs, []), publication())
            self.assertEqual(publication()['last']['outcome'], 'branched', publication())

    def test_head_is_taken_back_from_what_nobody_ever_published(self):
        work, first = self.begin({'doc': 'old\n'})
        (work / 'mine').write_text('mine\n')
        self.patches.clear()
        self.move_head('a-typo')
        self.playfs('commit', '--no-wait', '-m', 'mine', work, check=False)

        def publication():
            return json.loads((work.parent / 'status.json').read_text())['publication']

        self.eventually(lambda: 'does not show revision a-typo' in str(publication()['waiting_for']), 'it says why')
        self.assertEqual((self.head(), self.patches), ('a-typo', []), 'it may be what a replica does not have yet')
        self.within_minutes(lambda: not publication()['queue'], 'it is published')
        self.assertEqual(publication()['last']['outcome'], 'published', publication())
        self.assertEqual(self.texts(), {'doc': 'old\n', 'mine': 'mine\n'})
        self.assertEqual(self.api.get('revisions', self.head())['parents'], [first])

    def test_a_client_that_carries_our_fields_along_has_content_of_its_own(self):
        work, first = self.begin({'keep': 'keep\n', 'doc': 'old\n'})
        self.post([first], {'files': {**self.manifest(first)['files'], 'b': {'inline': 'b\n'}}})
        (work / 'c').write_text('c\n')
        self.playfs('commit', '-m', 'two', work)
        merge = self.head()
        self.assertTrue(self.manifest(merge)['auto'])
        for field in ('auto', 'tx'):
            head = self.head()
            manifest = self.manifest(head)
            self.assertIn(field, manifest)
            (work / ('after-' + field)).write_text('so that the tree does not follow head\n')
            manifest['files']['doc'] = {'inline': f'the work of another, with {field}\n'}
            self.mounted.unmount()
            theirs = self.post([head], manifest)
            self.move_head(theirs)
            work, committed = self.again('after-' + field)
            self.assertEqual(committed.returncode, 0, committed.stderr)
            self.assertEqual(self.texts()['doc'], f'the work of another, with {field}\n')
            self.assertEqual(self.texts()['after-' + field], f'after-{field}\n')


if __name__ == '__main__':
    fixture.main()
