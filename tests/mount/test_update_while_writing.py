#!/usr/bin/env python3
"""Writing continues while commits complete and updates merge: no acknowledged line is lost. An update that waits for a
commit leaves the tree on what that published."""
import errno
import json
import os
import subprocess
import threading
import time

import proxy
import fixture

# Too much for a manifest: published, it is in chunks.
LINES = 2000
FILLER = ''.join(f'line {number}\n' for number in range(LINES))
# Between two lines: where syncing costs nothing, the file would otherwise soon have more lines than are merged.
PAUSE = 0.003
ROUNDS = int(os.environ.get('PLAYFS_TEST_ROUNDS', '6'))
CONFLICT = 3


class Writer(threading.Thread):
    """Appends numbered lines, syncing each, until stopped. A line counts once fsync has returned."""

    def __init__(self, path, name, keeps_open):
        super().__init__()
        self.path, self.name, self.keeps_open = path, name, keeps_open
        self.acknowledged, self.replaced, self.error = [], 0, None
        self.stopping = threading.Event()

    def run(self):
        try:
            self.write_all()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def write_all(self):
        number, descriptor = 0, None
        while not self.stopping.wait(PAUSE):
            line = f'{self.name} {number}\n'
            if descriptor is None:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, line.encode())
                os.fsync(descriptor)
                self.acknowledged.append(line)
                number += 1
            except OSError as error:
                # The open file is no longer the one at the path: the line was refused, so reopen and write it there.
                if error.errno != errno.ESTALE:
                    raise
                self.replaced += 1
                os.close(descriptor)
                descriptor = None
            if descriptor is not None and not self.keeps_open:
                os.close(descriptor)
                descriptor = None
        if descriptor is not None:
            os.close(descriptor)


class UpdateWhileWriting(fixture.SharedProject):
    def commit(self, mount, message, check=True):
        return self.playfs('commit', '-m', message, '--json', self.work(mount), who=mount.who, check=check)

    def begin(self, mount):
        path = self.work(mount) / 'log'
        path.write_text(f'top\n{FILLER}')
        self.commit(mount, 'first')
        writers = [Writer(path, 'open', True), Writer(path, 'again', False)]
        for each in writers:
            self.addCleanup(each.stopping.set)
            each.start()
        self.grown(writers, [0, 0])
        return path, writers

    def end(self, writers):
        for each in writers:
            each.stopping.set()
            each.join(fixture.COMMAND_LIMIT)
            self.assertFalse(each.is_alive())
            self.assertIsNone(each.error)
            self.assertGreater(len(each.acknowledged), ROUNDS)

    def expect_each_line_once(self, path, writers, top):
        lines = path.read_bytes().decode().splitlines(keepends=True)
        for each in writers:
            # In writing order, too.
            self.assertEqual([line for line in lines if line.startswith(f'{each.name} ')], each.acknowledged)
        self.assertEqual(lines[0], top)
        self.assertEqual(len(lines), 1 + LINES + sum(len(each.acknowledged) for each in writers))

    def grown(self, writers, before=None):
        counts = [len(each.acknowledged) for each in writers]
        if before is None:
            return counts
        self.eventually(lambda: all(now > then for now, then in zip(self.grown(writers), before)),
                        'both go on writing')
        return counts

    def test_commits(self):
        bob = self.mount(self.api.origin, 'bob')
        path, writers = self.begin(bob)
        for number in range(ROUNDS):
            before = self.grown(writers)
            self.assertEqual(json.loads(self.commit(bob, f'commit {number}').stdout)['outcome'], 'published')
            self.grown(writers, before)
        self.end(writers)
        self.assertEqual([each.replaced for each in writers], [0, 0], 'a commit alone replaces nothing')
        self.expect_each_line_once(path, writers, 'top\n')

    def test_updates_and_commits_that_find_head_moved(self):
        ann, bob = self.mount(self.api.origin, 'ann'), self.mount(self.api.origin, 'bob')
        path, writers = self.begin(bob)
        self.eventually(lambda: (self.work(ann) / 'log').exists(), "ann's tree follows head")
        for number in range(ROUNDS):
            before = self.grown(writers)
            # Ann changes a place far from bob's lines. Her clean tree would follow head between her read and her write.
            self.playfs('update', self.work(ann), who='ann')
            text = (self.work(ann) / 'log').read_text()
            (self.work(ann) / 'log').write_text(f'top {number}\n' + text.split('\n', 1)[1])
            self.commit(ann, f'top {number}')
            self.playfs('update', self.work(ann), who='ann')
            if number % 2:
                outcome = json.loads(self.commit(bob, f'commit {number}').stdout)['outcome']
                self.assertIn(outcome, ('published', 'merged'))
            else:
                self.playfs('update', self.work(bob), who='bob')
            self.grown(writers, before)
        self.playfs('update', self.work(bob), who='bob')
        self.end(writers)
        self.expect_each_line_once(path, writers, f'top {ROUNDS - 1}\n')


class BehindAProxy(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.project = self.api.create('projects', name='p')['id']
        self.work = self.mount(self.proxy.url).directory / 'projects' / self.project / 'work'
        (self.work / 'file').write_text('first\n')
        self.playfs('commit', '-m', 'first', self.work)
        self.late = None  # the revision whose record is slow

    def head(self):
        return self.api.get('projects', self.project)['latest_revision']

    def move_head(self, **texts):
        """Publishes as another client: these files on top of head's."""
        files = dict(self.api.get('revisions', self.head())['manifest']['files'])
        files |= {name: {'inline': text} for name, text in texts.items()}
        revision = self.api.create('revisions', project=self.project, parents=[self.head()], state={},
                                   manifest={'files': files})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': revision})

    def status(self):
        return json.loads(self.playfs('status', '--json', self.work).stdout)


@fixture.needs_fuse
class UpdateWhileCommitting(BehindAProxy):
    def update_while_committing(self, meanwhile=lambda: None):
        """The results of a commit and of an update that asks for head while the commit is being posted."""
        is_posting, has_asked, goes_on = threading.Event(), threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)

        def fate(request):
            if request == 'POST /.site/data/revisions':
                is_posting.set()
                goes_on.wait(fixture.COMMAND_LIMIT)
            elif is_posting.is_set() and request == f'GET /.site/data/projects/{self.project}':
                has_asked.set()
            elif request == f'GET /.site/data/revisions/{self.late}':
                time.sleep(3)

        def begin(*words):
            process = subprocess.Popen([self.playfs_path, *words, str(self.work)], env=self.environment('ann'), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.addCleanup(process.kill)
            return process

        self.proxy.fate = fate
        commit = begin('commit', '-m', 'second')
        self.assertTrue(is_posting.wait(fixture.COMMAND_LIMIT))
        update = begin('update')
        self.assertTrue(has_asked.wait(fixture.COMMAND_LIMIT))
        # It has its answer, the previous head, once the mount answers a later request.
        self.playfs('status', self.work)
        meanwhile()
        goes_on.set()
        return [(process.communicate(timeout=fixture.COMMAND_LIMIT)[0], process.returncode) for process in (commit, update)]

    def test_the_tree_stays_on_what_was_published(self):
        (self.work / 'file').write_text('second\n')
        self.move_head(theirs='theirs\n')
        for said, code in self.update_while_committing():
            self.assertEqual(code, 0, said)
        status = self.status()
        self.assertEqual((status['base'], status['staged'], status['merging']), (self.head(), [], []))
        self.assertEqual({each.name: each.read_text() for each in self.work.iterdir()},
                         {'file': 'second\n', 'theirs': 'theirs\n'})

    def test_a_newer_head_that_is_late_is_waited_for(self):
        """What is shown meanwhile is older than what was published from here."""
        (self.work / 'file').write_text('second\n')
        self.move_head(theirs='theirs\n')

        def raw(method, path, headers, body, ask):
            if method != 'PATCH' or self.late:
                return None
            status, _, data = ask()
            self.move_head(later='later\n')
            self.late = self.head()
            return [b'HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n'
                    b'Connection: close\r\n\r\n' % (status, len(data)), data]

        self.proxy.raw = raw
        for said, code in self.update_while_committing():
            self.assertEqual(code, 0, said)
        self.assertEqual(self.status()['base'], self.late)
        self.assertEqual({each.name: each.read_text() for each in self.work.iterdir()},
                         {'file': 'second\n', 'later': 'later\n', 'theirs': 'theirs\n'})

    def test_where_the_commit_became_a_branch_head_is_brought_in(self):
        (self.work / 'file').write_text('second\n')
        self.move_head(theirs='theirs\n')
        (said, committed), (told, updated) = self.update_while_committing(lambda: self.move_head(file='third\n'))
        self.assertEqual((committed, updated), (CONFLICT, CONFLICT), said + told)
        status = self.status()
        self.assertEqual((status['base'], [each['path'] for each in status['conflicts']]), (self.head(), ['file']))
        self.assertEqual((self.work / 'theirs').read_text(), 'theirs\n')


@fixture.needs_fuse
class UpdateWithoutHead(BehindAProxy):
    """It must not say "Already at the latest" when it could not read the latest."""

    def test_the_error_is_told(self):
        before = self.status()['base']
        self.move_head(theirs='theirs\n')
        for answer in (404, 500, 403, 'lose reply'):
            fate = (answer, '{"error": "no"}') if isinstance(answer, int) else answer
            self.proxy.fate = lambda request: fate if f'/revisions/{self.head()}' in request else None
            done = self.playfs('update', self.work, check=False)
            self.assertNotEqual(done.returncode, 0, f'{answer}: {done.stdout}{done.stderr}')
            self.assertEqual(self.status()['base'], before)


if __name__ == '__main__':
    fixture.main()
