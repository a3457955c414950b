#!/usr/bin/env python3
"""A log with 25,000 revisions of others since this project was last read; and what was head at a given time."""
import json
import threading
import urllib.parse

import proxy
import fixture

FOREIGN = 25_000
PAGE = 100
PAGES = FOREIGN // PAGE + 1
PENDING = 4


class LongLog:
    """The list of revisions as if others had made 25,000 after `base`, surrounded by the real ones."""

    def __init__(self, api, base):
        self.api, self.base = api, base
        self.lists = 0
        self.held_at = None
        self.is_held = threading.Event()
        self.goes_on = threading.Event()

    def fate(self, request):
        target = urllib.parse.urlsplit(request.split(' ')[1])
        if not request.startswith('GET ') or not target.path.endswith('/revisions'):
            return None
        self.lists += 1
        if self.lists == self.held_at:
            self.is_held.set()
            self.goes_on.wait()
        real = self.api.all('revisions')
        newer = [record['id'] for record in real].index(self.base)
        # A cursor counts from the end of the log, which does not move when more come in front.
        end = int(urllib.parse.parse_qs(target.query).get('cursor', [len(real) + FOREIGN])[0])
        first = len(real) + FOREIGN - end
        records = [self.record(real, newer, position) for position in range(first, min(first + PAGE, first + end))]
        left = end - len(records)
        return 200, json.dumps({'records': records, 'nextCursor': str(left) if left else None})

    def record(self, real, newer, position):
        if position < newer:
            return real[position]
        if position < newer + FOREIGN:
            return {'id': f'foreign{position - newer}', 'created_at': real[newer]['created_at'], 'project': 'another'}
        return real[position - FOREIGN]


@fixture.needs_fuse
class Log(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = self.api.create('projects', name='p')['id']
        self.base = self.revision([], base='0\n')
        self.set_head(self.base)

    def revision(self, parents, **files):
        return self.api.create('revisions', project=self.project, parents=parents, agent='x', message='m', manifest={
            'files': {name: {'inline': text} for name, text in files.items()}})['id']

    def set_head(self, revision):
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def test_a_commit_reads_it_once_across_an_interruption_and_kill_9(self):
        counting = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)
        log = LongLog(self.api, self.base)
        self.addCleanup(log.goes_on.set)
        counting.fate = log.fate
        mount = self.mount(counting.url)
        place = mount.directory / 'projects' / self.project
        log.held_at = 120
        (place / 'work/file').write_text('mine\n')
        self.playfs('commit', '--no-wait', '-m', 'mine', place / 'work', check=False)
        self.assertTrue(log.is_held.wait(60))

        status = json.loads((place / 'status.json').read_text())['publication']
        self.assertEqual(status['phase'], 'verifying')
        self.assertGreater(status['reading']['records'], 1_000)
        self.assertIn('reading what others have published', (place / 'status').read_text())
        cancelled = self.playfs('commit', '--cancel', '--json', place / 'work', check=False)
        self.assertEqual((cancelled.returncode, json.loads(cancelled.stdout)['too_late']), (PENDING, True))
        mount.kill()
        self.command('fusermount3', '-u', '-z', mount.directory)
        log.goes_on.set()

        mount = self.mount(counting.url)
        place = mount.directory / 'projects' / self.project
        self.eventually(lambda: self.head() != self.base, 'head holds what was committed')
        self.eventually(lambda: not json.loads((place / 'status.json').read_text())['publication']['queue'], 'it ended')
        self.assertEqual((place / 'head/file').read_text(), 'mine\n')
        self.assertLessEqual(log.lists, PAGES + 40)
        before = log.lists
        (place / 'work/file').write_text('more\n')
        self.playfs('commit', '-m', 'more', place / 'work')
        self.assertLessEqual(log.lists - before, 12, 'what was read is known')

    def test_a_time_shows_what_was_head_then(self):
        branch = self.revision([self.base], base='0\n', branch='b\n')
        head = self.revision([self.base], base='0\n', head='h\n')
        self.set_head(head)
        then = self.api.get('revisions', head)['created_at']
        later_branch = self.revision([self.base], base='0\n', later='l\n')
        now = self.api.get('revisions', later_branch)['created_at']
        mount = self.mount(self.api.origin)
        place = mount.directory / 'projects' / self.project

        def names(time):
            return sorted(path.name for path in (place / 'at' / time).iterdir())

        self.assertEqual(names(now), ['base', 'head'], 'nobody has merged it')
        (place / 'work/mine').write_text('m\n')
        self.playfs('commit', '-m', 'mine', place / 'work')
        self.eventually(lambda: (place / 'head/branch').exists() and (place / 'head/later').exists(), 'all is merged')
        merge = self.api.get('revisions', self.head())
        self.assertNotEqual(merge['parents'][0], branch)
        for time in (then, now):
            self.assertEqual(names(time), ['base', 'head'], 'merged now, and not head then')
        self.assertEqual(names('2200'), ['base', 'branch', 'head', 'later', 'mine'])


if __name__ == '__main__':
    fixture.main()
