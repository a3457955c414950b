#!/usr/bin/env python3
"""Publishing a lot, and often: its cost in writes and round trips, large projects, rate limits."""
import bisect
import json
import os
import random

import proxy
import fixture

# How many files a large project has: a manifest has no room for more than some hundreds.
FILES = int(os.environ.get('PLAYFS_TEST_FILES', '2000'))


def words(size, seed=0):
    """Text of `size` bytes that does not repeat."""
    dice, lines, length = random.Random(seed), [], 0
    while length < size:
        lines.append(' '.join(f'{dice.getrandbits(24):x}' for _ in range(8)) + '\n')
        length += len(lines[-1])
    return ''.join(lines)[:size]


class PublishLarge(fixture.Fixture):
    def begin(self, **options):
        self.api = self.serve(**options)
        project = json.loads(self.playfs('init', 'large', '--json', '--site', self.api.origin).stdout)
        self.project = project['project'] if isinstance(project['project'], str) else project['project']['id']

    def work(self, mount):
        return mount.directory / 'projects' / self.project / 'work'

    def publish(self, mount, message, check=True):
        done = self.playfs('commit', '-m', message, '--json', self.work(mount), who=mount.who, check=check)
        return json.loads(done.stdout) if done.stdout else {}

    def head(self):
        return self.api.get('projects', self.project).get('latest_revision')

    def counts(self):
        return len(self.api.all('file_chunks')), len(self.api.all('revisions'))

    def test_every_commit_has_the_fewest_writes(self):
        self.begin()
        ann = self.mount(self.api.origin, 'ann')
        tree = self.work(ann)

        def cost(what):
            """The number of chunks that a commit uploads, besides one POST of a revision and one PATCH."""
            before = self.counts()
            result = self.publish(ann, what)
            after = self.counts()
            self.assertEqual(result['outcome'], 'published', what)
            self.assertEqual(after[1] - before[1], 1, what)
            self.assertEqual(result['writes_used'], after[0] - before[0] + 2, what)
            return after[0] - before[0]

        text = words(200 * 1024)
        (tree / 'new').write_text('small\n')
        self.assertEqual(cost('a new file'), 0)
        (tree / 'long').write_text(text)
        self.assertEqual(cost('200 KB'), 17)
        edited = text[:100_000] + 'EDIT' + text[100_004:]
        (tree / 'long').write_text(edited)
        self.assertEqual(cost('one line of it'), 1)
        (tree / 'long').write_text('at the start\n' + edited)
        self.assertEqual(cost('a line at its start'), 1)
        (tree / 'long').write_text(text)
        self.assertEqual(cost('all that taken back'), 0)
        (tree / 'from').mkdir()
        for number in range(40):
            (tree / 'from' / f'file{number}').write_text(words(9000, number))
        self.assertEqual(cost('40 files'), 40)
        (tree / 'from').rename(tree / 'to')
        self.assertEqual(cost('a rename of 40 files'), 0)
        (tree / 'long').rename(tree / 'longer')
        (tree / 'longer').write_text(text[:50_000] + 'EDIT' + text[50_004:])
        self.assertEqual(cost('moved and changed'), 1)
        self.assert_records_fit(self.api)

    def test_a_small_edit_takes_few_round_trips(self):
        self.begin()
        counter = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counter.close)
        ann = self.mount(counter.url, 'ann', options=('refresh=3600',))
        tree = self.work(ann)
        (tree / 'small').write_text('small\n')
        (tree / 'long').write_text(words(200 * 1024))
        self.publish(ann, 'first')
        # With chunks: their upload, and reading them back once the revision is visible.
        for name, most in ('small', 5), ('long', 7):
            with open(tree / name, 'r+') as file:
                file.write('EDIT')
            with counter.counting(quiet=0.3) as count:
                self.assertEqual(self.publish(ann, name)['outcome'], 'published')
            methods = [line.split()[0] for line in count.requests]
            self.assertEqual(methods.count('PATCH'), 1)
            # Head is verified in the round after the PATCH. Later requests are the mount's usual polling.
            before, patched = methods.index('PATCH'), 0
            while before >= 0:
                before -= count.by_round[patched]
                patched += 1
            self.assertLessEqual(patched + 1, most, count.requests)

    def test_text_of_control_characters_stays_within_its_records(self):
        self.begin()
        ann, bob = (self.mount(self.api.origin, who) for who in ('ann', 'bob'))
        wanted = {'escapes': '\x1b[1mbold\x1b[0m\n' * 900, 'ones': '\x01' * 40_000, 'short': '\x01' * 3_000,
                  'quotes': '"\\' * 10_000, 'crossing': ('ä' * 2047 + '\x02') * 9, 'tab\tname': 'x' * 13_000}
        for name, text in wanted.items():
            (self.work(ann) / name).write_text(text)
        self.assertEqual(self.publish(ann, 'control characters\x1b')['outcome'], 'published')
        self.assert_records_fit(self.api)
        self.eventually(lambda: (self.work(bob) / 'short').exists(), 'bob sees it')
        for name, text in wanted.items():
            self.assertEqual((self.work(bob) / name).read_bytes(), text.encode(), name)

    def test_a_project_of_thousands_of_files(self):
        self.begin()
        ann = self.mount(self.api.origin, 'ann')
        tree, content = self.work(ann), {}
        for number in range(FILES):
            name = f'folder{number % 40}/file{number}'
            content[name] = words(20_000 if number % 200 == 0 else 300 + number % 400, number)
            (tree / name).parent.mkdir(exist_ok=True)
            (tree / name).write_text(content[name])
        self.assertEqual(self.publish(ann, 'all of it')['outcome'], 'published')
        bytes_in_all = sum(map(len, content.values()))
        chunks = len(self.api.all('file_chunks'))
        self.assertLess(chunks, (bytes_in_all + FILES * 250) / 12_000 + FILES / 200 * 2 + 4, 'small files share chunks')
        self.assert_records_fit(self.api)
        # Another client sees one plain file.
        files = self.api.get('revisions', self.head())['manifest']['files']
        self.assertEqual(list(files), ['.playfs-manifest'])

        def assert_shows(mount):
            shown = {name: value for name, value in self.describe(self.work(mount)).items() if value != 'folder'}
            self.assertEqual(set(shown), set(content))
            for name, text in content.items():
                self.assertEqual(shown[name], ('file', text.encode()), name)

        bob = self.mount(self.api.origin, 'bob')  # with an empty cache
        assert_shows(bob)
        # Edited in both places at once, and merged.
        content['folder7/file7'] = content['folder7/file7'] + 'by ann\n'
        content['folder9/new'] = 'by bob\n'
        (self.work(bob) / 'folder9/new').write_text(content['folder9/new'])
        (self.work(bob) / 'folder8/file8').unlink()
        del content['folder8/file8']
        (tree / 'folder7/file7').write_text(content['folder7/file7'])
        before = self.counts()
        self.assertEqual(self.publish(ann, "ann's")['outcome'], 'published')
        self.assertLessEqual(self.counts()[0] - before[0], 2, 'a small edit costs one chunk, or two where that one is full')
        self.assertIn(self.publish(bob, "bob's")['outcome'], ('published', 'merged'))
        self.assertLessEqual(self.counts()[0] - before[0], 2 + 4, 'two places changed')
        for mount in ann, bob:
            self.eventually(lambda: (self.work(mount) / 'folder9/new').exists(), 'it follows head')
            self.eventually(lambda: b'by ann' in (self.work(mount) / 'folder7/file7').read_bytes(), 'it follows head')
            assert_shows(mount)
        # Another client carries that file forward, and adds one beside it.
        head = self.head()
        manifest = {'files': dict(self.api.get('revisions', head)['manifest']['files'])}
        content['beside'] = content['folder3/file3'] = 'by a stranger\n'
        for name in 'beside', 'folder3/file3':
            manifest['files'][name] = {'inline': content[name]}
        strange = self.api.create('revisions', project=self.project, parents=[head], agent='stranger', message='blind',
                                  manifest=manifest, state={})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': strange})
        self.eventually(lambda: (tree / 'beside').exists(), 'ann sees what the stranger did')
        assert_shows(ann)
        content['folder1/file1'] = 'after the stranger\n'
        (tree / 'folder1/file1').write_text(content['folder1/file1'])
        self.assertEqual(self.publish(ann, 'on top')['outcome'], 'published')
        self.eventually(lambda: (self.work(bob) / 'folder1/file1').read_text() == content['folder1/file1'], 'bob too')
        assert_shows(bob)
        self.assert_records_fit(self.api)

    def test_three_megabytes_under_limits_and_two_kills(self):
        # As documented, 240 chunks per window, but with a window of seconds.
        self.begin(limits={'window_seconds': 4, 'file_chunks': 80, 'revisions': 60, 'projects': 60},
                   options=('--access-log', str(self.home / 'access')))
        directory = self.home / 'mount'
        directory.mkdir()
        ann = self.mount(self.api.origin, 'ann', at=directory)
        text = words(3_000_000)
        (self.work(ann) / 'long').write_text(text)
        self.playfs('commit', '-m', 'long', '--no-wait', self.work(ann), check=False)

        def stored():
            return len(self.api.all('file_chunks'))

        for least in 30, 120:
            self.eventually(lambda: stored() >= least, f'{least} chunks')
            ann.kill()
            self.command('fusermount3', '-u', '-z', str(directory))
            ann = self.mount(self.api.origin, 'ann', at=directory)
            self.playfs('status', self.work(ann))  # the publication resumes when the project is read
        self.eventually(self.head, 'it is published')
        chunks = [fixture.fields(record) for record in self.api.all('file_chunks')]
        wanted = -(-len(text) // 12_288)
        self.assertEqual(len(chunks), wanted, 'no chunk twice')
        self.assertEqual(len({chunk['content'] for chunk in chunks}), wanted)
        self.assertEqual(len(self.api.all('revisions')), 1)
        entry = self.api.get('revisions', self.head())['manifest']['files']['long']
        by_id = {chunk['id']: chunk for chunk in chunks}
        self.assertEqual(''.join(by_id[each]['content'] for each in entry['c']), text)
        # In the planned order, apart from chunks that were refused and overtaken while they waited: most form one
        # rising sequence, which by chance would have about thirty.
        order = [chunk['seq'] for chunk in sorted(chunks, key=lambda chunk: (chunk['created_at'], chunk['id']))]
        rising = []
        for number in order:
            place = bisect.bisect_left(rising, number)
            rising[place:place + 1] = [number]
        self.assertGreater(len(rising), len(order) // 2)
        # It waits when told to: hardly any request arrives while the window is full.
        requests = [json.loads(line) for line in (self.home / 'access').read_text().splitlines()]
        posts = [each for each in requests if each['method'] == 'POST' and 'file_chunks' in each['target']]
        refused = [each for each in posts if each['status'] == 429]
        self.assertGreater(len(refused), 0, 'the limit was met')
        self.assertLessEqual(len(refused), len(posts) // 3, 'it sleeps instead of knocking')


if __name__ == '__main__':
    fixture.main()
