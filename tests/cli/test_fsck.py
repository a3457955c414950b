#!/usr/bin/env python3
"""playfs fsck: damage that others wrote over plain HTTP is found, with revision and path; a sound project is sound."""
import base64
import hashlib
import json
import signal
import subprocess

import fixture
import projects
import proxy

SOUND, DAMAGED, NOT_FOUND, UNREACHABLE = 0, 1, 5, 7


def inline(text, **fields):
    return {'h': hashlib.sha256(text.encode()).hexdigest(), 's': len(text.encode()), 'inline': text, **fields}


class Fsck(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = self.api.create('projects', name='garden')['id']

    def chunked(self, text, **fields):
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {'h': digest, 's': len(text), 'c': projects.store(self.api, 'x', text, digest), **fields}

    def revision(self, files, parents=(), moves_head=True, **fields):
        """Publishes a revision as another client would: its id."""
        made = self.api.create('revisions', **{'project': self.project, 'parents': list(parents), 'agent': 'eve',
                                               'message': 'x', 'manifest': {'files': files}, 'state': {}, **fields})
        if moves_head:
            self.set_head(made['id'])
        return made['id']

    def set_head(self, revision):
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})

    def fsck(self, *words, code, site=None, who='ann'):
        done = self.playfs('fsck', 'garden', '--json', '--site', site or self.api.origin, *words, check=False, who=who)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document['schema_version'], 1)
        return document

    def findings(self, code=DAMAGED, *words):
        """(severity, kind, revision, path) of each finding."""
        self.document = self.fsck(*words, code=code)
        found = self.document['findings']
        for severity, key in (('damage', 'damage'), ('notice', 'notices'), ('branch', 'branches')):
            self.assertEqual(self.document[key], sum(each['severity'] == severity for each in found))
        self.assertEqual(self.document['sound'], self.document['damage'] == 0)
        self.assertTrue(all(each['hint'] for each in found))
        return [(each['severity'], each['kind'], each.get('revision'), each.get('path')) for each in found]

    def test_a_sound_project_costs_each_chunk_once_and_then_none(self):
        files = {path: inline(text) for path, text in projects.some_files(60).items()}
        large = {f'large/{n}': self.chunked(f'{n} ' * 9000) for n in range(12)}
        same = {f'same/{n}': large['large/0'] for n in range(200)}
        first = self.revision(files | large)
        # The second has more files than a record holds: it is imported, so that the manifest continues in a file.
        tree = self.home / 'tree'
        for path in [*files, *large, *same]:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            number = path[6:] if path in large else 0
            (tree / path).write_text(files[path]['inline'] if path in files else f'{number} ' * 9000)
        (tree / 'picture').write_bytes(bytes(range(256)) * 200)
        (tree / 'link').symlink_to('picture')
        self.playfs('import', tree, '--project', 'garden', '--base', first, '--site', self.api.origin, who='bob')
        head = self.api.get('projects', self.project)['latest_revision']
        self.assertIn('.playfs-manifest', self.api.get('revisions', head)['manifest']['files'])
        every = {record['id'] for record in self.api.all('file_chunks')}

        counting = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)

        def requests(*words):
            with counting.counting() as count:
                document = self.fsck(*words, code=SOUND, site=counting.url)
            self.assertTrue(document['sound'])
            self.assertEqual((document['revisions'], document['head']), (2, head))
            self.assertEqual(document['files'], len(files) * 2 + len(large) * 2 + len(same) + 2)
            self.assertEqual({each['kind'] for each in document['findings']}, {'own_form'})
            return sorted(line.split('?')[0].removeprefix('GET /.site/data/') for line in count.requests)

        chunks = sorted(f'file_chunks/{chunk}' for chunk in every)
        cold = requests()
        self.assertEqual([each for each in cold if each.startswith('file_chunks/')], chunks)
        warm = requests()
        self.assertEqual([each for each in warm if each.startswith('file_chunks/')], [])
        self.assertEqual(warm.count('revisions'), 1, 'the records once')
        self.assertLess(len(warm), 6, warm)
        self.assertEqual([each for each in requests('--no-cache') if each.startswith('file_chunks/')], chunks)

        words = self.playfs('fsck', self.project, '--site', self.api.origin).stdout
        self.assertRegex(words, r'(?m)^Sound: 2 revisions with \d+ files and \d+ chunks\.$')
        self.assertRegex(words, rf'(?m)^notice  {head} picture: .*base64')

    def test_contents_that_are_not_as_promised(self):
        good = self.chunked('good\n' * 5000)
        digest = hashlib.sha256(b'other').hexdigest()
        empty = self.api.create('file_chunks', rev='', path='x', seq=0, hash='')['id']
        head = self.revision({
            'good': good,
            'hash': {**inline('text'), 'h': digest},
            'size': {**inline('text'), 's': 5},
            'chunked-hash': {**good, 'h': digest},
            'chunked-size': {**good, 's': 3},
            'gone': {**good, 'c': ['nowhere']},
            # Its bytes are here under their own hash; the service still lacks them.
            'gone-but-known': {**inline('good\n' * 5000), 'inline': None, 'c': ['nowhere-either']},
            'no-text': {**good, 'c': [empty]},
            'base64': inline('no base64!', e='base64'),
            'unknown': inline('text', e='rot13'),
            'none': {'h': digest, 's': 4},
        })
        self.playfs('cat', 'garden', 'good', '--site', self.api.origin)
        found = self.findings()
        damage = {path: kind for severity, kind, revision, path in found if severity == 'damage' and revision == head}
        self.assertEqual(damage, {
            'hash': 'wrong_content', 'size': 'wrong_content', 'chunked-hash': 'wrong_content',
            'chunked-size': 'wrong_content', 'gone': 'missing_chunk', 'gone-but-known': 'missing_chunk',
            'no-text': 'unreadable_chunk', 'base64': 'wrong_content', 'unknown': 'unreadable_entry',
            'none': 'unreadable_entry'})
        self.assertEqual(self.findings(), found, 'what is wrong is found again, from the cache too')
        words = self.playfs('fsck', 'garden', '--site', self.api.origin, check=False)
        self.assertEqual(words.returncode, DAMAGED)
        self.assertIn(f'damage  {head} gone: chunk nowhere does not exist\n        → write the file', words.stdout)
        self.assertIn('Damage found: 10, in 1 revisions', words.stdout)

    def test_a_fault_that_many_revisions_share_is_one_finding(self):
        bad = {'bad': {**inline('text'), 's': 9}}
        first = self.revision(bad)
        second = self.revision(bad | {'a': inline('a')}, [first])
        head = self.revision({'a': inline('a')}, [second])
        self.assertEqual(self.findings(), [('damage', 'wrong_content', second, 'bad')])
        only = self.document['findings'][0]
        self.assertEqual((only['revisions'], only['first_revision'], only['in_head']), (2, first, False))
        self.assertIn('head does not have it', only['hint'])
        self.assertEqual(self.document['head'], head)

    def test_parents_and_head(self):
        other = self.api.create('projects', name='other')['id']
        foreign = self.revision({}, moves_head=False, project=other)
        first = self.revision({'a': inline('a')}, ['nowhere', foreign])
        branch = self.revision({'b': inline('b')}, [first], moves_head=False)
        tip = self.revision({'c': inline('c')}, [branch], moves_head=False)
        head = self.revision({'a': inline('b')}, [first])
        self.assertEqual(self.findings(), [
            ('damage', 'missing_parent', first, None), ('damage', 'foreign_parent', first, None),
            ('branch', 'branch', tip, None)])
        self.assertIn('nor 1 of its ancestors', self.document['findings'][2]['message'])
        self.assertIn(f'playfs merge {tip}', self.document['findings'][2]['hint'])
        for named, kind in (('nowhere', 'missing_head'), (foreign, 'foreign_head'), ('', 'missing_head')):
            self.set_head(named)
            found = [each for each in self.findings() if each[1].endswith('_head')]
            self.assertEqual(found, [('damage', kind, named or None, None)])
            repair = next(each for each in self.document['findings'] if each['kind'] == kind)['hint']
            self.assertIn(f'{{"latest_revision":"{head}"}}', repair)
            self.command('sh', '-c', f'{repair.replace("playfs", self.playfs_path, 1)} --site {self.api.origin}')
            self.assertEqual(self.api.get('projects', self.project)['latest_revision'], head)

    def test_branches_alone_are_no_damage(self):
        head = self.revision({'a': inline('a')})
        beside = self.revision({'a': inline('b')}, [head], moves_head=False)
        self.assertEqual(self.findings(SOUND), [('branch', 'branch', beside, None)])

    def test_what_is_not_shown_or_that_others_cannot_read(self):
        picture = bytes(range(256))
        encoded = base64.b64encode(picture).decode()
        plain = inline('a')
        head = self.revision({
            '.git/config': plain, '/absolute': plain, 'a/../b': plain, 'n' * 256: plain, 'both': plain, 'both/a': plain,
            'repo/HEAD': inline('ref: refs/heads/main\n'), 'repo/link/HEAD': self.chunked('ref: refs/heads/main\n' * 9),
            'picture': {'h': hashlib.sha256(picture).hexdigest(), 's': 256, 'e': 'base64', 'inline': encoded},
            'link': inline('a', m='120000'), 'opaque': {'h': 'etag-7', 's': 1, 'inline': 'a'},
            'text-size': inline('a') | {'s': '1'}})
        found = self.findings(SOUND)
        refused = {path for severity, kind, revision, path in found if kind == 'refused_name'}
        self.assertEqual(refused, {'.git/config', '/absolute', 'a/../b', 'n' * 256, 'both', 'repo/HEAD',
                                   'repo/link/HEAD'})
        others = {(kind, path) for severity, kind, revision, path in found if kind != 'refused_name'}
        self.assertEqual(others, {('own_form', 'picture'), ('own_form', 'link'), ('no_hash', 'opaque'),
                                  ('foreign_form', 'text-size')})
        self.assertEqual({(severity, revision) for severity, _, revision, _ in found}, {('notice', head)})

    def test_records_that_are_no_revision(self):
        first = self.revision({'a': inline('a')})
        broken = self.revision({}, [first], moves_head=False, manifest='none')
        odd = self.api.create('revisions', project=self.project, parents='first', manifest={'files': {}})['id']
        head = self.revision({'a': inline('a')}, [broken, first])
        self.assertEqual(sorted(self.findings(), key=lambda each: each[1]), [
            ('branch', 'branch', odd, None), ('notice', 'foreign_form', odd, None),
            ('damage', 'unreadable_revision', broken, None)])
        self.assertEqual(self.document['head'], head)

    def test_text_of_strangers_does_not_reach_the_terminal(self):
        self.revision({'\x1b[31mred/.git': inline('a')})
        words = self.playfs('fsck', 'garden', '--site', self.api.origin).stdout
        self.assertNotIn('\x1b', words)

    def test_a_service_that_does_not_answer_is_not_damage(self):
        self.revision({'a': self.chunked('a' * 20_000)})
        counting = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)
        self.assertEqual(self.playfs('fsck', 'nothing', '--site', counting.url, check=False).returncode, NOT_FOUND)
        counting.fate = lambda request: (503, '{}') if 'file_chunks' in request else None
        error = self.fsck(code=UNREACHABLE, site=counting.url, who='cyd')['error']
        self.assertRegex(error['message'], r'^not all of project \S+ was checked \(only 1 revisions')
        self.assertTrue(error['retryable'])

    def test_an_interrupt_ends_it_with_what_was_found(self):
        bad = self.revision({'bad': {**inline('text'), 's': 9}, 'a': self.chunked('a' * 20_000)})
        counting = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)
        counting.set_hanging('/file_chunks/')
        process = subprocess.Popen([self.playfs_path, 'fsck', 'garden', '--site', counting.url], text=True,
                                   env=self.environment('ann'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.eventually(lambda: counting.hung(), 'a chunk is asked for')
        process.send_signal(signal.SIGINT)
        out, words = process.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(process.returncode, -signal.SIGINT, words)
        self.assertIn(f'damage  {bad} bad: ', out)
        self.assertIn('not all of project', words)
        counting.set_hanging(None)

    def test_progress_is_for_terminals(self):
        self.revision({'a': inline('a')})
        words = [self.playfs_path, 'fsck', 'garden', '--site', self.api.origin]
        code, shown = self.on_terminal(*words)
        self.assertEqual(code, SOUND)
        self.assertIn('\rChecked 0 revisions', shown)
        self.assertEqual(self.command(*words).stderr, '')


if __name__ == '__main__':
    fixture.main()
