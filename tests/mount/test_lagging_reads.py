#!/usr/bin/env python3
"""A service whose reads lag behind its writes: what it has acknowledged gets published, and never returns to the stage
meanwhile."""
import json
import subprocess
import threading
import time

import clocks
import proxy
import fixture

LOOKS = 4  # after the POST, each after a longer backoff


class Lagging(clocks.Clocks, fixture.Fixture):
    """Reads go to a replica, a copy of the store from some moment, until it catches up."""
    options = ('refresh=1',)

    def setUp(self):
        super().setUp()
        self.let_clocks_jump()
        self.api, self.proxy = proxy.before_a_service(self)
        self.project = self.api.create('projects', name='p')['id']
        self.mounted = self.mount(self.proxy.url, options=self.options)
        self.work = self.mounted.directory / 'projects' / self.project / 'work'

    def replica(self):
        """The port of a service with the current data, and nothing later."""
        replica = self.home / 'replica'
        replica.mkdir()
        self.playfs('serve', 'backup', replica / 'playground.db', '--store', self.home / 'store', who='server')
        port = fixture.free_port()
        process = subprocess.Popen([self.playfs_path, 'serve', '--listen', f'127.0.0.1:{port}', '--store', str(replica),
                                    '--limits', 'off'], env=self.environment('replica'), stdin=subprocess.DEVNULL)

        def end():
            process.terminate()
            process.wait(fixture.COMMAND_LIMIT)

        self.addCleanup(end)
        self.eventually(lambda: self.answers(port), 'the replica answers')
        return port

    @staticmethod
    def answers(port):
        try:
            return fixture.Api(f'http://127.0.0.1:{port}').request('GET', '/projects')[0] == 200
        except OSError:
            return False

    def catch_up(self):
        self.proxy.fate = lambda request: None

    def status(self):
        return json.loads((self.work.parent / 'status.json').read_text())

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def files(self, revision):
        return self.api.get('revisions', revision)['manifest']['files']


@fixture.needs_fuse
class LaggingReads(Lagging):
    """Lag about what was published from here."""

    def lag(self):
        """From now on a replica answers all reads. The returned list collects the reads of the log after the POST."""
        port = self.replica()
        posted, looks = threading.Event(), []

        def fate(request):
            if request == 'POST /.site/data/revisions':
                posted.set()
            if not request.startswith('GET'):
                return None
            if posted.is_set() and 'GET /.site/data/revisions?' in request:
                looks.append(request)
            return port

        self.proxy.fate = fate
        return looks

    def commit_while_it_lags(self, content):
        looks = self.lag()
        (self.work / 'file').write_text(content)
        self.playfs('commit', '--no-wait', '-m', 'm', self.work, check=False)
        self.eventually(lambda: len(looks) >= LOOKS or not self.status()['publication']['queue'], 'it is looked for')
        self.assertEqual(len(self.status()['publication']['queue']), 1, 'it goes on')
        self.eventually(lambda: 'does not show' in str(self.status()['publication']['waiting_for']), 'and says why')
        self.assertEqual(len(self.api.all('revisions')), 1)
        self.assertTrue(json.loads(self.playfs('commit', '--cancel', '--json', self.work, check=False).stdout)['too_late'])
        self.catch_up()
        self.eventually(lambda: not self.status()['publication']['queue'], 'it ends')
        revision, = self.api.all('revisions')
        self.assertIn(revision['id'], (self.work.parent / 'commit').read_text())
        self.assertEqual(self.api.get('projects', self.project)['latest_revision'], revision['id'])
        self.assertEqual(self.status()['base'], revision['id'])
        self.assertEqual(self.status()['staged'], [])
        self.assertEqual((self.work / 'file').read_text(), content)

    def test_a_commit_waits_until_what_was_acknowledged_is_seen(self):
        self.commit_while_it_lags('content\n')

    def test_a_commit_that_waits_uploads_nothing_twice(self):
        self.commit_while_it_lags(''.join(f'{number}\n' for number in range(20_000)))
        chunks = self.api.all('file_chunks')
        self.assertEqual(len({chunk['content'] for chunk in chunks}), len(chunks))



class Others(Lagging):
    """Lag about what others published on top of a commit from here."""

    def setUp(self):
        super().setUp()
        self.asked = []  # requests to the service from now on
        self.fate = lambda request: None
        self.text = ''.join(f'{number}\n' for number in range(40))
        self.move_head(self.post([], {'a': self.text}))
        self.eventually((self.work / 'a').exists, 'it is here')
        (self.work / 'first').write_text('1\n')
        self.playfs('commit', '-m', 'first', self.work)
        self.ours = self.head()
        self.proxy.fate = self.note

    def note(self, request):
        self.asked.append(request)
        return self.fate(request) if request.startswith('GET') else None

    def catch_up(self):
        self.fate = lambda request: None

    def asked_for(self, part):
        return sum(part in request for request in self.asked)

    def writes(self):
        return [request for request in self.asked if not request.startswith('GET')]

    def wait_until_it_is_missed(self, revision):
        """A commit reports that it misses the revision, and writes nothing."""
        def why():
            return str(self.status()['publication']['waiting_for'])

        head, words = self.head(), f'does not show revision {revision}'
        self.eventually(lambda: words in why() or self.writes(), 'it says why it waits')
        self.assertEqual((self.head(), self.writes()), (head, []))
        self.assertIn(words, why())

    def post(self, parents, files, without=()):
        kept = self.files(parents[0]) if parents else {}
        kept = {path: entry for path, entry in kept.items() if path not in without}
        added = {path: {'inline': text} for path, text in files.items()}
        return self.api.create('revisions', project=self.project, parents=parents, agent='bob',
                               manifest={'files': {**kept, **added}})['id']

    def move_head(self, to):
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': to})

    def hide(self, revision, after=0):
        """After `after` reads of the revision, hides it and omits it from lists."""
        seen = []

        def fate(request):
            path = request.split('/.site/data', 1)[-1]
            if path == f'/revisions/{revision}':
                seen.append(path)
                return None if len(seen) <= after else (404, '{"error":"nothing is here","code":"not_found"}')
            if path.startswith('/revisions?') and len(seen) >= after:
                status, page = self.api.request('GET', path)
                page['records'] = [each for each in page['records'] if each['id'] != revision]
                return status, json.dumps(page)
            return None

        self.fate = fate

    def bob_publishes_while_something_is_staged(self, path):
        """Until the mount has seen it and read the log; the tree stays where it is."""
        (self.work / path).write_text('ann\n')
        theirs = self.post([self.ours], {'a': 'bob\n', 'bob': 'the work of bob\n'})
        self.asked.clear()
        self.move_head(theirs)
        self.eventually(lambda: self.status()['head'] == theirs and self.asked_for('/revisions?'), 'it is known here')
        self.asked.clear()
        return theirs


@fixture.needs_fuse
class HeadThatIsNotShown(Others):
    """A replica without head's revision, both by id and in the log."""

    def test_who_only_looks_leaves_head_where_it_is(self):
        theirs = self.post([self.ours], {'bob': 'the work of bob\n'})
        self.hide(theirs, after=1)
        self.asked.clear()
        self.move_head(theirs)
        self.eventually(lambda: self.asked_for(f'/revisions/{theirs}') > LOOKS or self.writes(), 'it is looked for')
        self.assertEqual((self.head(), self.writes()), (theirs, []))
        self.catch_up()
        self.eventually((self.work / 'bob').exists, 'the tree follows')
        self.assertEqual((self.head(), self.writes()), (theirs, []))
        self.assertEqual((self.status()['base'], self.status()['staged']), (theirs, []))

    def commit_while_it_is_hidden(self, path):
        theirs = self.bob_publishes_while_something_is_staged(path)
        self.hide(theirs)
        self.playfs('commit', '--no-wait', '-m', 'm', self.work, check=False)
        self.wait_until_it_is_missed(theirs)
        self.catch_up()
        self.eventually(lambda: not self.status()['publication']['queue'], 'it goes on by itself')
        return theirs, self.status()['publication']['last']

    def test_a_commit_waits_and_is_merged_with_it(self):
        theirs, ended = self.commit_while_it_is_hidden('mine')
        self.assertIn(ended['outcome'], ('published', 'merged'))
        self.assertEqual(self.api.get('revisions', self.head())['parents'], [theirs])
        self.assertEqual(sorted(self.files(self.head())), ['a', 'bob', 'first', 'mine'])

    def test_a_commit_that_clashes_waits_and_becomes_a_branch(self):
        theirs, ended = self.commit_while_it_is_hidden('a')
        self.assertEqual((ended['outcome'], self.head()), ('branched', theirs))

    def test_an_update_with_changes_staged_does_not_say_that_it_is_done(self):
        theirs = self.bob_publishes_while_something_is_staged('b')
        newer = self.post([theirs], {'a': 'bob again\n'})
        self.hide(newer)
        self.move_head(newer)
        refused = self.playfs('update', self.work, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(newer, refused.stderr)
        self.catch_up()
        self.playfs('update', self.work)
        self.assertEqual((self.status()['base'], (self.work / 'a').read_text()), (newer, 'bob again\n'))

    def test_a_dry_run_writes_nothing(self):
        theirs = self.bob_publishes_while_something_is_staged('mine')
        self.hide(theirs)
        refused = self.playfs('commit', '--dry-run', '-m', 'm', self.work, check=False)
        self.assertEqual((self.head(), self.writes()), (theirs, []))
        self.assertIn(f'does not show revision {theirs}', refused.stderr)
        self.catch_up()
        self.playfs('commit', '--dry-run', '-m', 'm', self.work)
        self.assertEqual((self.head(), self.writes()), (theirs, []))


@fixture.needs_fuse
class RecordThatIsOlder(Others):
    """A replica with an older record of the project."""

    def lag_behind(self, theirs):
        old = json.dumps(self.api.request('GET', f'/projects/{self.project}')[1])
        time.sleep(0.01)  # so that the next record is newer
        self.move_head(theirs)
        self.eventually(lambda: self.status()['head'] == theirs, 'the newer one is seen')
        self.fate = lambda request: (200, old) if request.endswith(f'/projects/{self.project}') else None

    def assert_refused(self):
        refused = self.playfs('update', self.work, check=False)
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertIn('the service shows an older head than before', refused.stderr)

    def test_an_update_with_changes_staged_does_not_say_that_it_is_done(self):
        (self.work / 'mine').write_text('ann\n')
        theirs = self.post([self.ours], {'bob': 'the work of bob\n'})
        self.lag_behind(theirs)
        self.assert_refused()
        self.assertEqual(self.status()['base'], self.ours)
        self.catch_up()
        self.playfs('update', self.work)
        self.assertEqual((self.status()['base'], (self.work / 'bob').read_text()), (theirs, 'the work of bob\n'))

    def test_a_clean_tree_does_not_go_back(self):
        theirs = self.post([self.ours], {'bob': 'the work of bob\n'})
        self.lag_behind(theirs)
        self.eventually((self.work / 'bob').exists, 'the tree follows')
        self.assert_refused()
        self.assertEqual((self.status()['base'], (self.work / 'bob').read_text()), (theirs, 'the work of bob\n'))

    def test_it_is_believed_after_minutes(self):
        (self.work / 'mine').write_text('ann\n')
        self.lag_behind(self.post([self.ours], {'bob': 'the work of bob\n'}))
        self.within_minutes(lambda: self.playfs('update', self.work, check=False).returncode == 0, 'it is done')
        self.assertEqual((self.status()['base'], (self.work / 'mine').read_text()), (self.ours, 'ann\n'))


@fixture.needs_fuse
class BaseThatIsNotShown(Others):
    """A replica from before the base was published."""
    options = ('refresh=60',)

    def lag_behind_a_commit(self):
        """The commit, and another client's revision on top of it."""
        port = self.replica()
        (self.work / 'secret').write_text('secret\n')
        (self.work / 'a').write_text('ann\n' + self.text)
        self.playfs('commit', '-m', 'two', self.work)
        two = self.head()
        theirs = self.post([two], {'a': self.text, 'bob': 'the work of bob\n'}, without=['secret'])
        self.move_head(theirs)
        self.asked.clear()
        self.fate = lambda request: port
        return two, theirs

    def test_what_others_took_back_stays_taken_back(self):
        two, _ = self.lag_behind_a_commit()
        (self.work / 'more').write_text('more\n')
        self.playfs('commit', '--no-wait', '-m', 'three', self.work, check=False)
        self.wait_until_it_is_missed(two)
        self.catch_up()
        self.eventually(lambda: not self.status()['publication']['queue'], 'it goes on by itself')
        files = self.files(self.head())
        self.assertEqual(sorted(files), ['a', 'bob', 'first', 'more'])
        self.assertEqual(files['a']['inline'], self.text)
        self.assertEqual((self.status()['base'], self.status()['staged']), (self.head(), []))
        self.assertNotIn('service_went_back', (self.mounted.directory / '.playfs/events').read_text())

    def test_an_update_says_so_and_leaves_the_tree_as_it_is(self):
        two, theirs = self.lag_behind_a_commit()
        before = self.describe(self.work)
        refused = self.playfs('update', self.work, check=False)
        self.assertIn(f'does not show revision {two}', refused.stderr)
        self.assertEqual((self.status()['base'], self.status()['lost'], self.status()['staged']), (two, None, []))
        self.assertEqual(self.describe(self.work), before)
        self.catch_up()
        self.playfs('update', self.work)
        self.assertEqual((self.status()['base'], self.status()['lost'], self.status()['staged']), (theirs, None, []))
        self.assertEqual((self.head(), self.writes()), (theirs, []))


if __name__ == '__main__':
    fixture.main()
