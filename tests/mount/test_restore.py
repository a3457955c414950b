#!/usr/bin/env python3
"""A service rolled back to an older state: what it lost is kept here, reported, and published again."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import urllib.error

import clocks
import proxy
import fixture

CONFLICT = 3


def big(word):
    return ''.join(f'{word} {number}\n' for number in range(3000))


@fixture.needs_fuse
class Restore(clocks.Clocks, fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.let_clocks_jump()
        self.api = fixture.Api(f'http://127.0.0.1:{fixture.free_port()}')
        self.store, self.backup = self.home / 'store', self.home / 'backup.db'
        self.server = None
        self.addCleanup(self.stop)
        self.start()
        self.project = self.api.create('projects', name='p')['id']

    def start(self):
        self.server = subprocess.Popen(
            [self.playfs_path, 'serve', '--listen', self.api.origin.removeprefix('http://'), '--store', str(self.store),
             '--limits', 'off'], env=self.environment('server'), stdin=subprocess.DEVNULL)

        def answers():
            self.assertIsNone(self.server.poll())
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                return self.api.request('GET', '/projects')[0] == 200

        self.eventually(answers, 'the service answers')

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait(fixture.COMMAND_LIMIT)
        self.server = None

    def back_up(self):
        self.playfs('serve', 'backup', self.backup, '--store', self.store, who='server')

    def restore(self):
        self.stop()
        for path in self.store.glob('playground.db*'):
            path.unlink()
        self.backup.rename(self.store / 'playground.db')
        self.start()

    def work(self, mount):
        return mount.directory / 'projects' / self.project / 'work'

    def status(self, mount):
        return json.loads((self.work(mount).parent / 'status.json').read_text())

    def events(self, mount, kind):
        lines = (mount.directory / '.playfs/events').read_text().splitlines()
        return [event for event in map(json.loads, lines) if event['kind'] == kind]

    def head(self):
        return self.api.get('projects', self.project).get('latest_revision')

    def publish(self, mount, message):
        return json.loads(self.playfs('commit', '-m', message, '--json', self.work(mount), who=mount.who).stdout)

    def publish_what_was_lost(self, mount, message):
        """The loss is established once the revision was missing for long enough."""
        self.playfs('commit', '--no-wait', '-m', message, self.work(mount), who=mount.who, check=False)
        self.within_minutes(lambda: not self.status(mount)['publication']['queue'], 'it is published', mount.who)
        return self.status(mount)['publication']['last']

    def two_revisions(self, mount):
        """One revision that is in the backup, and one that is not. The tree after each."""
        work = self.work(mount)
        (work / 'same').write_text(big('same'))
        (work / 'changed').write_text('1\n')
        (work / 'deleted').write_text('1\n')
        (work / 'dir').mkdir()
        (work / 'dir/deep').write_text('1\n')
        self.publish(mount, 'one')
        before = self.describe(work)
        self.back_up()
        (work / 'new').mkdir()
        (work / 'new/big').write_text(big('new'))
        (work / 'changed').write_text(big('changed'))
        (work / 'deleted').unlink()
        (work / 'dir/deep').rename(work / 'dir/moved')
        os.symlink('new/big', work / 'link')
        (work / 'run').write_text('#!/bin/sh\n')
        (work / 'run').chmod(0o755)
        self.publish(mount, 'two')
        return before, self.describe(work)

    def assert_lost_and_kept(self, mount, lost, after):
        self.within_minutes(lambda: self.status(mount)['lost'] == lost, 'status says what was lost', mount.who)
        self.eventually(lambda: self.status(mount)['base'] == self.head(), 'the tree stands on what is left')
        self.assertEqual(self.describe(self.work(mount)), after, 'nothing has vanished')
        text = self.playfs('status', self.work(mount), who=mount.who).stdout
        self.assertIn(f'The service went back to an older state and lost revision {lost}', text)
        self.assertIn('added     new/big', text)
        self.assertIn('deleted   deleted', text)
        self.assertNotIn('same', text)
        self.assertEqual([event['lost'] for event in self.events(mount, 'service_went_back')], [lost])

    def assert_published_whole(self, mount, after):
        """A mount with an empty cache reads all of it."""
        self.assertIsNone(self.status(mount)['lost'])
        self.assertEqual(self.status(mount)['staged'], [])
        other = self.mount(self.api.origin, f'reader{len(self.mounts)}')
        self.assertEqual(self.describe(self.work(other)), after)
        revision = self.api.get('revisions', self.head())
        for entry in revision['manifest']['files'].values():
            for chunk in entry.get('c', []):
                self.api.get('file_chunks', chunk)
        for parent in revision['parents']:
            self.api.get('revisions', parent)

    def test_a_clean_tree_keeps_what_was_lost_and_publishes_it_again(self):
        ann = self.mount(self.api.origin)
        _, after = self.two_revisions(ann)
        lost = self.head()
        self.restore()
        self.assert_lost_and_kept(ann, lost, after)
        self.assertEqual(self.publish(ann, 'again')['outcome'], 'published')
        self.assertEqual(self.describe(self.work(ann)), after)
        self.assert_published_whole(ann, after)

    def test_what_was_lost_is_published_again_though_it_is_ignored_by_now(self):
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / 'first').write_text('first\n')
        self.publish(ann, 'one')
        self.back_up()
        (work / 'a.log').write_text('published\n')
        self.publish(ann, 'two')
        (work / '.gitignore').write_text('*.log\n')
        self.publish(ann, 'three')
        lost, after = self.head(), self.describe(work)
        self.restore()
        self.within_minutes(lambda: self.status(ann)['lost'] == lost, 'status says what was lost', ann.who)
        self.assertEqual(self.publish(ann, 'again')['outcome'], 'published')
        self.assert_published_whole(ann, after)

    def test_a_merged_branch_that_was_lost_is_named_by_no_revision(self):
        """Others on the old base could not update past it."""
        ann, carol = self.mount(self.api.origin), self.mount(self.api.origin, 'carol')
        (self.work(ann) / 'x').write_text('1\n')
        self.publish(ann, 'one')
        base = self.head()
        self.eventually((self.work(carol) / 'x').exists, 'carol follows')
        (self.work(carol) / 'of carol').write_text('1\n')
        self.back_up()
        files = self.api.get('revisions', base)['manifest']['files']
        branch = self.api.create('revisions', project=self.project, parents=[base], agent='bob', state={},
                                 manifest={'files': {**files, 'theirs': {'inline': 'theirs\n'}}})['id']
        self.playfs('merge', branch, self.work(ann))
        (self.work(ann) / 'x').write_text('2\n')
        wanted = self.describe(self.work(ann))
        self.restore()
        self.playfs('commit', '--no-wait', '-m', 'join', self.work(ann), check=False)
        said = f'does not show revision {branch}'
        self.eventually(lambda: said in str(self.status(ann)['publication']['waiting_for']), 'one answer is not enough')
        self.assertEqual(self.head(), base)
        self.within_minutes(lambda: not self.status(ann)['publication']['queue'], 'it is published')
        self.assertEqual(self.status(ann)['publication']['last']['outcome'], 'published')
        self.assertEqual(self.api.get('revisions', self.head())['parents'], [base])
        self.assertEqual([each['lost'] for each in self.events(ann, 'service_lost_branch')], [branch])
        self.assertEqual(self.describe(self.work(ann)), wanted)
        self.playfs('update', self.work(carol), who='carol')
        seen = self.describe(self.work(carol))
        self.assertEqual({path: what for path, what in seen.items() if path != 'of carol'}, wanted)

    def test_rules_that_were_lost_and_are_discarded_publish_nothing(self):
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / 'x').write_text('1\n')
        self.publish(ann, 'one')
        self.back_up()
        (work / '.gitignore').write_text('.env\n')
        self.publish(ann, 'two')
        (work / '.env').write_text('secret\n')
        self.restore()
        self.within_minutes(lambda: self.status(ann)['lost'], 'status says what was lost')
        self.assertIn('Discarded the changes to 1 path.', self.playfs('discard', work).stderr)
        (work / 'y').write_text('1\n')
        self.assertEqual(self.playfs('commit', '-m', 'y', work, check=False).returncode, 3)
        self.assertEqual([each['path'] for each in self.status(ann)['conflicts']], ['.env'])
        self.assertEqual((work / '.env').read_text(), 'secret\n')
        self.assertEqual(sorted(self.api.get('revisions', self.head())['manifest']['files']), ['x'])

    def branch_that_is_lost(self, head_is_in_backup):
        """A tree on a branch, and a service without it. The mount, and the branch."""
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / 'both').write_text('1\n')
        (work / 'same').write_text(big('same'))
        self.publish(ann, 'one')
        base = self.head()
        if not head_is_in_backup:
            self.back_up()
        files = self.api.get('revisions', base)['manifest']['files']
        theirs = self.api.create('revisions', project=self.project, parents=[base], agent='bob', message='theirs',
                                 manifest={'files': {**files, 'both': {'inline': 'theirs\n'}}})['id']
        (work / 'both').write_text('ours\n')
        (work / 'mine').write_text(big('mine'))
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': theirs})
        if head_is_in_backup:
            self.back_up()
        self.assertEqual(self.playfs('commit', '-m', 'two', work, check=False).returncode, 3, 'a branch')
        branch, after = self.status(ann)['base'], self.describe(work)
        self.restore()
        self.assertEqual(self.describe(work), after)
        return ann, branch

    def test_a_branch_that_was_lost_is_published_again(self):
        for head_is_in_backup in (False, True):
            with self.subTest(head_is_in_backup=head_is_in_backup):
                self.project = self.api.create('projects', name=f'branch {head_is_in_backup}')['id']
                ann, branch = self.branch_that_is_lost(head_is_in_backup)
                work = self.work(ann)
                if head_is_in_backup:  # if head does not move, the next update or commit notices
                    self.within_minutes(lambda: self.playfs('update', work, check=False).returncode == 3, 'a conflict')
                    self.assertIn('>>>>>>>', (work / 'both').read_text())
                    (work / 'both').write_text('ours and theirs\n')
                self.within_minutes(lambda: self.status(ann)['lost'] == branch, 'status says what was lost')
                self.assertEqual((work / 'mine').read_text(), big('mine'))
                wanted = self.describe(work)
                self.assertEqual(self.publish(ann, 'again')['outcome'], 'published')
                self.assertEqual(self.describe(work), wanted)
                self.assert_published_whole(ann, wanted)
                ann.end()

    def test_a_base_that_is_nowhere_any_more(self):
        ann = self.mount(self.api.origin)
        self.two_revisions(ann)
        lost = self.head()
        (self.work(ann) / 'staged').write_text('mine\n')
        ann.unmount()
        newer = self.home / 'newer'
        newer.mkdir()
        self.stop()
        for path in self.store.glob('playground.db*'):
            shutil.copy(path, newer)
        self.restore()
        shutil.rmtree(self.home / 'ann/cache')
        ann = self.mount(self.api.origin, at=ann.directory)
        said = self.playfs('status', self.work(ann).parent, check=False)
        self.assertIn(f'revision {lost}, the work tree\'s base, is gone', said.stdout, said.stderr)
        folder = pathlib.Path(re.search(r'intact in (\S+):', said.stdout)[1])
        self.assertTrue(list(folder.glob('spool/*')))
        with self.assertRaises(OSError):
            os.listdir(self.work(ann))
        # If the service gets it back, all is as before, without a remount.
        self.stop()
        for path in self.store.glob('playground.db*'):
            path.unlink()
        for path in newer.iterdir():
            shutil.copy(path, self.store)
        self.start()
        self.eventually((self.work(ann) / 'staged').exists, 'the work tree opens')
        self.assertEqual((self.work(ann) / 'staged').read_text(), 'mine\n')
        self.assertEqual(self.publish(ann, 'staged')['outcome'], 'published')

    def test_a_project_that_is_gone_leaves_what_was_staged(self):
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / 'published').write_text(big('published'))
        self.publish(ann, 'one')
        base = self.head()
        (work / 'staged').write_text('mine\n')
        (work / 'published').write_text(big('changed'))
        wanted = self.describe(work)
        self.stop()
        for path in self.store.glob('playground.db*'):
            path.unlink()
        self.start()

        def assert_kept(mount):
            self.assertEqual(self.describe(self.work(mount)), wanted)
            status = self.status(mount)
            self.assertEqual((status['gone'], status['base']), (True, base))
            self.assertEqual(sorted(each['path'] for each in status['staged']), ['published', 'staged'])
            said = self.playfs('status', self.work(mount)).stdout
            self.assertIn('The service no longer has this project', said)
            shutil.copytree(self.work(mount), self.home / f'copy-{mount.process.pid}')
            self.assertEqual(self.describe(self.home / f'copy-{mount.process.pid}'), wanted)
            # It costs nothing, and nothing is published.
            self.assertNotEqual(self.playfs('commit', '-m', 'two', self.work(mount), check=False).returncode, 0)
            self.assertEqual(self.describe(self.work(mount)), wanted)

        self.eventually(lambda: self.api.request('GET', f'/projects/{self.project}')[0] == 404, 'the project is gone')
        self.eventually(lambda: self.status(ann).get('gone'), 'it is seen')
        assert_kept(ann)
        ann.unmount()
        ann = self.mount(self.api.origin, at=ann.directory)
        assert_kept(ann)
        with self.assertRaises(FileNotFoundError):
            os.listdir(ann.directory / 'projects' / 'nobodysproject')

    def test_restored_between_the_uploads_and_the_revision(self):
        """The revision is stored, but what it refers to is gone there: only this client has it."""
        between = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(between.close)
        ann = self.mount(between.url, options=('refresh=600',))
        work = self.work(ann)
        (work / 'small').write_text('1\n')
        self.publish(ann, 'one')
        self.back_up()
        (work / 'big').write_text(big('big'))
        after = self.describe(work)

        def fate(request):
            if request == 'POST /.site/data/revisions' and self.backup.exists():
                self.restore()

        between.fate = fate
        self.playfs('commit', '--no-wait', '-m', 'two', work, check=False)

        def misses_chunks():
            why = self.status(ann)['publication']['waiting_for']
            return why and 'does not show what it stored' in why['message']

        self.eventually(misses_chunks, 'chunks are missed')
        self.assertTrue(self.status(ann)['staged'])
        self.jump('ann', 150)  # until then reads may merely have lagged
        limit = fixture.COMMAND_LIMIT + (0 if self.clocks else 150)
        self.eventually(lambda: self.status(ann)['publication']['phase'] == 'idle', 'it is published again', limit)
        self.assertEqual(self.status(ann)['publication']['last']['outcome'], 'published')
        self.assertTrue(self.events(ann, 'service_lost_chunks'))
        self.assertEqual(self.describe(work), after)
        self.assert_published_whole(ann, after)

    def test_what_was_lost_can_be_given_up(self):
        ann = self.mount(self.api.origin)
        before, after = self.two_revisions(ann)
        lost = self.head()
        self.restore()
        self.assert_lost_and_kept(ann, lost, after)
        self.playfs('discard', self.work(ann))
        self.eventually(lambda: self.describe(self.work(ann)) == before, 'the tree is what the service has')
        (self.work(ann) / 'another').write_text('1\n')
        self.assertIsNone(self.status(ann)['lost'])

    def test_restored_while_nothing_was_mounted_and_killed_in_between(self):
        ann = self.mount(self.api.origin)
        _, after = self.two_revisions(ann)
        lost = self.head()
        ann.unmount()
        self.restore()
        ann = self.mount(self.api.origin, at=ann.directory)
        self.assert_lost_and_kept(ann, lost, after)
        ann.kill()
        ann = self.mount(self.api.origin, at=ann.directory)
        self.assertEqual(self.describe(self.work(ann)), after)
        self.assertEqual(self.status(ann)['lost'], lost)
        self.publish(ann, 'again')
        self.assert_published_whole(ann, after)

    def test_the_next_commit_does_not_wait_for_the_news(self):
        ann = self.mount(self.api.origin, options=('refresh=600',))
        self.two_revisions(ann)
        self.restore()
        (self.work(ann) / 'more').write_text('1\n')
        after = self.describe(self.work(ann))
        self.assertEqual(self.publish_what_was_lost(ann, 'again')['outcome'], 'published')
        self.assertEqual(self.describe(self.work(ann)), after)
        self.assert_published_whole(ann, after)

    def test_what_was_staged_stays_with_it(self):
        ann = self.mount(self.api.origin)
        self.two_revisions(ann)
        lost = self.head()
        (self.work(ann) / 'staged').write_text('1\n')
        (self.work(ann) / 'new/big').unlink()
        (self.work(ann) / 'new/big').write_text('2\n')
        after = self.describe(self.work(ann))
        self.restore()
        self.assert_lost_and_kept(ann, lost, after)
        self.publish(ann, 'again')
        self.assert_published_whole(ann, after)

    def test_what_was_moved_is_here_in_full(self):
        """No path of the lost base leads to these: moved, in a moved folder, ignored since, with a second name."""
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / '.gitignore').write_text('build/\n')
        (work / 'seed').write_text('1\n')
        self.publish(ann, 'one')
        self.back_up()
        (work / 'dir').mkdir()
        for name in ('moved', 'dir/in', 'ignored', 'named', 'run'):
            (work / name).write_text(big(name))
        self.publish(ann, 'two')
        lost = self.head()
        (work / 'moved').rename(work / 'moved too')
        (work / 'dir').rename(work / 'folder')
        (work / 'build').mkdir()
        (work / 'ignored').rename(work / 'build/ignored')
        os.link(work / 'named', work / 'other name')
        (work / 'run').chmod(0o755)
        after = self.describe(work)
        self.restore()
        self.within_minutes(lambda: self.status(ann)['lost'] == lost, 'status says what was lost')
        self.eventually(lambda: self.status(ann)['base'] == self.head(), 'the tree stands on what is left')
        ann.unmount()
        self.playfs('cache', 'clear')
        ann = self.mount(self.api.origin, at=ann.directory)
        self.assertEqual(self.describe(self.work(ann)), after)
        self.assertEqual(self.status(ann)['lost_files'], [])
        self.publish(ann, 'again')
        self.assertEqual(self.describe(self.work(ann)), after)

    def test_an_update_takes_nothing_away(self):
        ann = self.mount(self.api.origin, options=('refresh=600',))
        _, after = self.two_revisions(ann)
        lost = self.head()
        self.restore()
        refused = self.playfs('update', self.work(ann), check=False)
        self.assertIn(f'does not show revision {lost}', refused.stderr)
        self.assertEqual((self.status(ann)['base'], self.status(ann)['lost']), (lost, None))
        self.assert_lost_and_kept(ann, lost, after)
        self.playfs('update', self.work(ann))
        self.assertEqual(self.describe(self.work(ann)), after)

    def test_a_project_that_is_empty_again(self):
        self.back_up()
        ann = self.mount(self.api.origin)
        (self.work(ann) / 'file').write_text(big('file'))
        self.publish(ann, 'one')
        lost, after = self.head(), self.describe(self.work(ann))
        self.restore()
        self.within_minutes(lambda: self.status(ann)['lost'] == lost and self.status(ann)['base'] == '', 'status says so')
        self.assertEqual(self.describe(self.work(ann)), after)
        self.publish(ann, 'again')
        self.assert_published_whole(ann, after)

    def test_what_was_never_gone_is_not_published_again(self):
        """A lagging replica: for a while one mount gets the state before the last revision."""
        between = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(between.close)
        ann, bob = self.mount(self.api.origin, 'ann'), self.mount(between.url, 'bob')
        (self.work(ann) / 'changed').write_text('4\n')
        self.publish(ann, 'one')
        before = self.head()
        (self.work(ann) / 'changed').write_text('5\n')
        (self.work(ann) / 'added').write_text('5\n')
        self.publish(ann, 'two')
        lost = self.head()
        self.eventually(lambda: (self.work(bob) / 'added').exists(), 'bob has seen it')
        self.describe(self.work(bob))
        project = self.api.get('projects', self.project)

        def as_of_before(request):
            if request.endswith(f'/projects/{self.project}'):
                return 200, json.dumps({'record': {**project, 'latest_revision': before}})
            if '/revisions?' in request:
                status, page = self.api.request('GET', request.split('/.site/data', 1)[-1])
                page['records'] = [each for each in page['records'] if each['id'] != lost]
                return status, json.dumps(page)
            return (404, '{"code":"not_found"}') if request.endswith(f'/revisions/{lost}') else None

        between.fate = lambda request: as_of_before(request) if request.startswith('GET') else None
        self.within_minutes(lambda: self.status(bob)['base'] == before, 'bob takes it for lost', 'bob')
        between.fate = lambda request: None
        (self.work(ann) / 'changed').write_text('6\n')
        (self.work(ann) / 'added').unlink()
        self.publish(ann, 'three')
        (self.work(bob) / 'late').write_text('7\n')
        self.publish(bob, 'late')
        self.assertEqual({path: content[1] for path, content in self.describe(self.work(bob)).items()},
                         {'changed': b'6\n', 'late': b'7\n'})
        self.eventually(lambda: self.status(bob)['base'] == self.head(), 'bob follows again')
        self.assertEqual(self.status(bob)['staged'], [])

    def test_a_head_that_was_set_back_is_no_loss(self):
        ann = self.mount(self.api.origin)
        self.two_revisions(ann)
        newest = self.head()
        older = self.api.get('revisions', newest)['parents'][0]
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': older})
        self.eventually(lambda: self.head() == newest, 'head is brought forward')
        self.eventually(lambda: self.status(ann)['base'] == newest, 'the tree is there too')
        self.assertIsNone(self.status(ann)['lost'])
        self.assertEqual(self.status(ann)['staged'], [])
        self.assertEqual(self.events(ann, 'service_went_back'), [])

    def test_what_was_published_from_here_stays_while_two_who_published_at_once_mend_it(self):
        """Both set head, the second without having seen the first."""
        ann = self.mount(self.api.origin)
        self.two_revisions(ann)
        ours = self.head()
        before = self.api.get('revisions', ours)['parents'][0]
        work, files = self.work(ann), self.api.get('revisions', before)['manifest']['files']
        wanted = self.describe(work)
        theirs = self.api.create('revisions', project=self.project, parents=[before], agent='bob', message='at once', state={},
                                 manifest={'files': {**files, 'theirs': {'h': 'x', 'inline': 'theirs\n'}}})['id']
        opened = open(work / 'changed', 'ab', buffering=0)
        self.addCleanup(opened.close)
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': theirs})

        def is_mended():
            seen = self.describe(work)
            self.assertEqual({path: what for path, what in seen.items() if path != 'theirs'}, wanted)
            return 'theirs' in seen

        self.eventually(is_mended, 'what both have is here')
        opened.write(b'behind it\n')
        self.assertEqual((work / 'changed').read_bytes(), wanted['changed'][1] + b'behind it\n')

    def test_a_base_is_asked_for_once_while_the_answer_is_to_come(self):
        between = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(between.close)
        ann = self.mount(between.url)
        self.two_revisions(ann)
        newest = self.head()
        older = self.api.get('revisions', newest)['parents'][0]
        asked = f'/revisions/{newest}'
        between.set_hanging(asked)
        looks = []

        def fate(request):
            looks.append(request)
            return (503, 'later') if request.startswith('PATCH') else None  # else head is brought forward anyway

        between.fate = fate
        with between.counting() as count:
            self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': older})
            self.eventually(lambda: sum('/projects' in each for each in looks) >= 12, 'head is looked at again and again')
        # Once to learn whether it is lost, and once by the publisher, which checks on heads that were set back. (A slow
        # machine may add a third, if the first has waited too long.)
        self.assertIn(sum(asked in each for each in count.requests), (1, 2, 3), count.requests)
        between.fate = lambda request: None
        between.set_hanging(None)
        self.eventually(lambda: self.head() == newest, 'head is brought forward')
        self.eventually(lambda: self.status(ann)['base'] == newest, 'the tree is there too')
        self.assertEqual(self.status(ann)['staged'], [])


    def test_a_local_only_file_where_a_deleted_one_comes_back_is_not_published(self):
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / 'x').write_text('1\n')
        (work / 'a.log').write_text('published by mistake\n')
        self.publish(ann, 'one')
        (work / '.gitignore').write_text('*.log\n')
        self.publish(ann, 'rules')
        self.back_up()
        (work / 'a.log').unlink()
        self.publish(ann, 'deleted')
        lost = self.head()
        (work / 'a.log').write_text('my own\n')
        self.restore()
        self.within_minutes(lambda: self.status(ann)['lost'] == lost, 'status says what was lost')
        self.assertEqual([each['path'] for each in self.status(ann)['conflicts']], ['a.log'])
        self.assertEqual(self.playfs('commit', '-m', 'Next', work, check=False).returncode, CONFLICT)
        self.assertEqual((work / 'a.log').read_text(), 'my own\n')
        # As its message says.
        shutil.move(work / 'a.log', self.home / 'a.log')
        self.assertEqual(self.status(ann)['conflicts'], [])
        self.publish_what_was_lost(ann, 'Next')
        self.assertNotIn('a.log', self.api.get('revisions', self.head())['manifest']['files'])

    def test_a_chunk_whose_id_names_another_one_is_uploaded_again(self):
        ann = self.mount(self.api.origin)
        work = self.work(ann)
        (work / 'same').write_text('same\n')
        self.publish(ann, 'one')
        self.back_up()
        (work / 'new').write_text(big('new'))
        self.publish(ann, 'two')
        lost = self.head()
        reused = self.api.get('revisions', lost)['manifest']['files']['new']['c'][0]
        with contextlib.closing(sqlite3.connect(self.backup)) as store:
            newest = store.execute('SELECT max(created_at) FROM records').fetchone()[0] + 1
            fields = {'rev': '', 'path': 'x', 'seq': 0, 'hash': '0' * 64, 'content': 'somebody else\n'}
            store.execute('INSERT INTO records (collection, id, created_at, updated_at, status, owner, request_key, fields)'
                          " VALUES ('file_chunks', ?, ?, ?, 'open', '', NULL, ?)",
                          (reused, newest, newest, json.dumps(fields)))
            store.commit()
        self.restore()
        self.within_minutes(lambda: self.status(ann)['lost'] == lost, 'status says what was lost')
        self.assertEqual(self.publish_what_was_lost(ann, 'again')['outcome'], 'published')
        chunks = self.api.get('revisions', self.head())['manifest']['files']['new']['c']
        self.assertEqual(''.join(self.api.get('file_chunks', chunk)['content'] for chunk in chunks), big('new'))


if __name__ == '__main__':
    fixture.main()
