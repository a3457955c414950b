#!/usr/bin/env python3
"""Concurrent publications: merges, branches, conflicts and their resolution, other clients, crashes, lost replies."""
import collections
import json
import os
import random
import subprocess
import threading
import time

import proxy
import fixture

LINES = ''.join(f'line {number}\n' for number in range(20))
# PLAYFS_TEST_MOUNTS=8 PLAYFS_TEST_COMMITS=25 PLAYFS_TEST_LIMIT=1200 for the large version; PLAYFS_TEST_SEED varies when
# mounts are killed.
MOUNTS = int(os.environ.get('PLAYFS_TEST_MOUNTS', '3'))
COMMITS = int(os.environ.get('PLAYFS_TEST_COMMITS', '4'))
SEED = os.environ.get('PLAYFS_TEST_SEED', '1')


class Killer:
    """Kills a mount after `delay` seconds, unless has_struck() is called before."""

    def __init__(self, delay, mount):
        self.mount, self.struck = mount, False
        self.timer = threading.Timer(delay, self.strike)
        self.timer.start()

    def strike(self):
        self.struck = True
        self.mount.kill()

    def has_struck(self):
        self.timer.cancel()
        self.timer.join()
        return self.struck


class Publish(fixture.SharedProject):
    def head(self):
        return self.api.get('projects', self.project).get('latest_revision')

    def publish(self, mount, message, check=True, extra=()):
        return self.playfs('commit', '-m', message, '--json', *extra, self.work(mount), who=mount.who, check=check)

    def two(self):
        ann, bob = self.mount(self.api.origin, 'ann'), self.mount(self.api.origin, 'bob')
        (self.work(ann) / 'text').write_text(LINES)
        (self.work(ann) / 'old').write_text('old\n')
        self.publish(ann, 'first')
        self.eventually(lambda: (self.work(bob) / 'text').exists(), "bob's tree follows head")
        return ann, bob

    def resolve(self, mount):
        """Resolves every conflict for both sides: keeps what is between the markers, without them."""
        status = json.loads((self.work(mount).parent / 'status.json').read_text())
        for each in status['conflicts']:
            path = self.work(mount) / each['path']
            if not path.is_file():
                continue
            text = path.read_text()
            kept = ''.join(line for line in text.splitlines(keepends=True)
                           if not line.startswith(('<<<<<<<', '=======', '>>>>>>>')))
            path.write_text(kept if kept != text else f'{text}resolved\n')

    def ancestry(self):
        """Every revision that head contains, by walking the parents."""
        revisions = {record['id']: fixture.fields(record) for record in self.api.all('revisions')}
        held, queue = set(), [self.head()]
        while queue:
            each = queue.pop()
            if each in revisions and each not in held:
                held.add(each)
                queue += revisions[each].get('parents', [])
        return held, revisions

    def contents(self, revision):
        directory = self.home / f'export-{time.monotonic_ns()}'
        self.playfs('export', revision, directory, '--site', self.api.origin)
        return {path: value[1] for path, value in self.describe(directory).items() if value != 'folder'}

    def files_of(self, record, texts):
        """Path and text of each file of a revision, from records alone. `texts` caches chunks by id."""
        def text_of(entry):
            if 'inline' in entry:
                return entry['inline']
            for each in entry['c']:
                if each not in texts:
                    texts[each] = self.api.get('file_chunks', each)['content']
            return ''.join(texts[each] for each in entry['c'])

        entries = dict(record['manifest']['files'])
        if more := entries.pop('.playfs-manifest', None):
            for line in text_of(more).splitlines()[1:]:
                entries = {**json.loads(line), **entries}
        return {path: text_of(entry) for path, entry in entries.items()}

    def replay_by_git(self, revisions, held):
        """Converts the log to a git repository and repeats the automatic merges with git; returns how many were the
        same. Fails if git merges cleanly to something else."""
        repository, texts = self.home / f'replay-{time.monotonic_ns()}', {}
        self.command('git', 'init', '-q', '-b', 'main', repository)

        def git(*words, **options):
            return self.command('git', '-C', repository, '-c', 'user.name=n', '-c', 'user.email=e', *words, **options)

        commits, stream = {}, []
        for each in sorted(held, key=lambda each: (revisions[each]['created_at'], each)):
            fields = revisions[each]
            commits[each] = len(commits) + 1
            parents = [commits[parent] for parent in fields.get('parents', []) if parent in commits]
            stream.append(f'commit refs/heads/{each}\nmark :{commits[each]}\ncommitter n <e> {commits[each]} +0000\n'
                          'data 1\nm\n')
            stream += [f'{"from" if place == 0 else "merge"} :{parent}\n' for place, parent in enumerate(parents)]
            stream.append('deleteall\n')
            for path, text in self.files_of(fields, texts).items():
                stream.append(f'M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n')
        log = self.home / 'log.fi'
        log.write_text(''.join(stream))
        with open(log, 'rb') as whole:
            subprocess.run(['git', '-C', repository, 'fast-import', '--quiet'], stdin=whole, check=True)
        same = 0
        for each in held:
            fields = revisions[each]
            if not fields['manifest'].get('auto'):
                continue
            merged, is_clean = fields['parents'][0], True
            for other in fields['parents'][1:]:
                done = git('merge-tree', '--write-tree', merged, other, check=False)
                tree = done.stdout.splitlines()[0] if done.stdout else ''
                is_clean = is_clean and done.returncode == 0
                if not is_clean:
                    break
                merged = git('commit-tree', tree, '-p', merged, '-p', other, '-m', 'merge').stdout.strip()
            if is_clean:
                self.assertEqual(git('diff', '--stat', merged, each).stdout, '', f'git merges {each} to something else')
                same += 1
        return same

    def test_what_does_not_clash_is_merged(self):
        ann, bob = self.two()
        text = self.work(bob) / 'text'
        (self.work(ann) / 'from-ann').write_text('ann\n')
        (self.work(ann) / 'text').write_text(LINES.replace('line 2\n', 'line 2 by ann\n'))
        (self.work(ann) / 'old').unlink()
        text.write_text(LINES.replace('line 17\n', 'line 17 by bob\n'))  # bob starts from the first revision
        self.publish(ann, "ann's")
        result = json.loads(self.publish(bob, "bob's").stdout)
        self.assertIn(result['outcome'], ('published', 'merged'))
        wanted = LINES.replace('line 2\n', 'line 2 by ann\n').replace('line 17\n', 'line 17 by bob\n')
        self.assertEqual(self.contents(self.head()), {'text': wanted.encode(), 'from-ann': b'ann\n'})
        for mount in ann, bob:
            tree = self.work(mount)
            self.eventually(lambda: (tree / 'text').read_text() == wanted, 'both trees show the merge')
            self.assertFalse((tree / 'old').exists())
        self.assertEqual(len(self.api.all('revisions')), 3, 'merged before it was posted: no revision more')

    def test_a_conflict_is_a_branch_then_resolved_by_an_update(self):
        ann, bob = self.two()
        (self.work(bob) / 'text').write_text(LINES.replace('line 5\n', 'five by bob\n'))
        (self.work(bob) / 'bobs').write_text('bob\n')
        (self.work(ann) / 'text').write_text(LINES.replace('line 5\n', 'five by ann\n'))
        self.publish(ann, "ann's")
        theirs = self.head()
        refused = self.publish(bob, "bob's", check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        branch = json.loads(refused.stdout)
        self.assertEqual((branch['outcome'], branch['conflicts']), ('branched', ['text']))
        self.assertEqual(self.head(), theirs)
        project = bob.directory / 'projects' / self.project
        self.eventually(lambda: branch['revision'] in os.listdir(project / 'branches'), 'it stands under branches/')
        messages = [fixture.fields(record) for record in self.api.all('messages')]
        self.assertEqual(len(messages), 1)
        self.assertIn(branch['revision'], messages[0]['body'])
        thread = self.api.get('threads', messages[0]['thread'])
        self.assertEqual(thread['kind'], 'collab')
        self.assertIn(self.project, thread['title'])

        updated = self.playfs('update', self.work(bob), '--json', who='bob', check=False)
        self.assertEqual(updated.returncode, 3, updated.stderr)
        text = (self.work(bob) / 'text').read_text()
        self.assertIn('<<<<<<< ', text)
        self.assertIn('five by ann\n>>>>>>> ', text)
        status = json.loads((project / 'status.json').read_text())
        self.assertEqual([each['path'] for each in status['conflicts']], ['text'])
        self.assertEqual((status['base'], status['merging']), (theirs, [branch['revision']]))
        busy = self.publish(bob, 'too early', check=False)
        self.assertEqual(busy.returncode, 3)
        self.assertIn('text is in conflict', busy.stdout + busy.stderr)
        # The mount may end and start in between.
        bob.unmount()
        bob = self.mount(self.api.origin, 'bob')
        self.assertIn('<<<<<<< ', (self.work(bob) / 'text').read_text())
        (self.work(bob) / 'text').write_text(LINES.replace('line 5\n', 'five by both\n'))
        result = json.loads(self.publish(bob, 'both').stdout)
        self.assertEqual(result['outcome'], 'published')
        self.assertEqual(self.head(), result['revision'])
        self.assertEqual(self.api.get('revisions', result['revision'])['parents'], [theirs, branch['revision']])
        self.assertEqual(self.contents(self.head())['text'], LINES.replace('line 5\n', 'five by both\n').encode())
        self.assertEqual(self.contents(self.head())['bobs'], b'bob\n')
        self.eventually(lambda: 'five by both' in (self.work(ann) / 'text').read_text(), 'ann sees it')

    def test_an_update_merges_what_is_staged(self):
        ann, bob = self.two()
        (self.work(bob) / 'text').write_text(LINES.replace('line 17\n', 'line 17 by bob\n'))
        (self.work(bob) / 'bobs').write_text('bob\n')
        (self.work(ann) / 'text').write_text(LINES.replace('line 2\n', 'line 2 by ann\n'))
        (self.work(ann) / 'anns').write_text('ann\n')
        self.publish(ann, "ann's")
        self.playfs('update', self.work(bob), who='bob')
        wanted = LINES.replace('line 2\n', 'line 2 by ann\n').replace('line 17\n', 'line 17 by bob\n')
        self.assertEqual((self.work(bob) / 'text').read_text(), wanted)
        self.assertEqual((self.work(bob) / 'anns').read_text(), 'ann\n')
        status = json.loads((self.work(bob).parent / 'status.json').read_text())
        self.assertEqual(status['base'], self.head())
        self.assertEqual(sorted(each['path'] for each in status['staged']), ['bobs', 'text'])
        self.publish(bob, "bob's")
        self.assertEqual(self.contents(self.head())['text'], wanted.encode())

    def test_what_is_written_while_its_commit_is_merged_may_be_left_in_conflict(self):
        slow = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(slow.close)
        ann, bob = self.mount(self.api.origin, 'ann'), self.mount(slow.url, 'bob')
        (self.work(ann) / 'text').write_text(LINES)
        self.publish(ann, 'first')
        self.eventually(lambda: (self.work(bob) / 'text').exists(), "bob's tree follows head")
        (self.work(bob) / 'text').write_text(LINES.replace('line 17\n', 'line 17 by bob\n'))
        (self.work(bob) / 'large').write_text(LINES * 150)
        (self.work(ann) / 'text').write_text(LINES.replace('line 2\n', 'line 2 by ann\n'))
        self.publish(ann, "ann's")
        slow.set_hanging('/file_chunks')  # requested by nothing but the commit
        commit = subprocess.Popen([self.playfs_path, 'commit', '-m', "bob's", '--json', self.work(bob)], text=True,
                                  env=self.environment('bob'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(commit.kill)

        def is_frozen():
            status = json.loads((self.work(bob).parent / 'status.json').read_text())
            return [each['pending'] for each in status['staged']] == [True, True]

        self.eventually(is_frozen, "bob's commit is fixed, and hangs")
        (self.work(bob) / 'text').write_text(LINES.replace('line 2\n', 'line 2 by bob\n'))
        slow.set_hanging(None)
        out, err = commit.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertEqual((commit.returncode, json.loads(out)['outcome']), (3, 'published'), err)
        self.assertIn('1 path is in conflict. Try: playfs status', err)
        self.assertIn('line 2 by bob\n=======\nline 2 by ann\n', (self.work(bob) / 'text').read_text())
        self.assertEqual(self.contents(self.head())['text'].decode(),
                         LINES.replace('line 2\n', 'line 2 by ann\n').replace('line 17\n', 'line 17 by bob\n'))

    def test_a_branch_is_taken_in_by_its_name(self):
        ann, bob = self.two()
        (self.work(bob) / 'text').write_text(LINES.replace('line 5\n', 'five by bob\n'))
        (self.work(bob) / 'bobs').write_text('bob\n')
        (self.work(ann) / 'text').write_text(LINES.replace('line 5\n', 'five by ann\n'))
        self.publish(ann, "ann's")
        aside = json.loads(self.publish(bob, 'aside', check=False).stdout)
        self.assertEqual(aside['outcome'], 'branched')
        self.assertEqual(self.playfs('merge', aside['revision'], self.work(ann), check=False).returncode, 3)
        self.assertEqual((self.work(ann) / 'bobs').read_text(), 'bob\n')
        self.assertIn('<<<<<<< ', (self.work(ann) / 'text').read_text())
        (self.work(ann) / 'text').write_text(LINES)
        before = self.head()
        merge = json.loads(self.publish(ann, 'take it in').stdout)
        self.assertEqual(self.api.get('revisions', merge['revision'])['parents'], [before, aside['revision']])
        self.assertEqual(self.contents(self.head()), {'text': LINES.encode(), 'old': b'old\n', 'bobs': b'bob\n'})

    def test_a_stranger_who_moves_head_blindly(self):
        ann, _ = self.two()
        root = self.head()
        (self.work(ann) / 'anns').write_text('ann\n')
        ours = json.loads(self.publish(ann, "ann's").stdout)['revision']
        files = dict(self.api.get('revisions', root)['manifest']['files'])
        files['strange'] = {'inline': 'strange\n'}
        strange = self.api.create('revisions', project=self.project, parents=[root], agent='stranger', message='blind',
                                  manifest={'files': files}, state={})['id']
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': strange})
        # Any participant repairs it: head then contains both.
        self.eventually(lambda: {ours, strange} <= self.ancestry()[0], 'head holds the stranger\'s and ours')
        self.assertEqual(set(self.contents(self.head())), {'text', 'old', 'anns', 'strange'})

    def test_siblings_are_merged_as_git_merges_them(self):
        self.two()
        root = self.head()
        files = self.api.get('revisions', root)['manifest']['files']
        changes = [{'text': {'inline': LINES.replace('line 2\n', 'line 2 by one\n')}, 'one': {'inline': '1'}},
                   {'text': {'inline': LINES.replace('line 9\n', 'line 9 by two\nand more\n')}, 'old': None},
                   {'text': {'inline': LINES.replace('line 17\n', '')}, 'three': {'inline': '3'}}]
        siblings = []
        for change in changes:
            changed = {path: entry for path, entry in {**files, **change}.items() if entry}
            siblings.append(self.api.create('revisions', project=self.project, parents=[root], agent='stranger',
                                            message='sibling', manifest={'files': changed}, state={})['id'])
        self.api.call('PATCH', f'/projects/{self.project}', {'latest_revision': siblings[-1]})
        self.eventually(lambda: set(siblings) <= self.ancestry()[0], 'head holds all of them')
        held, revisions = self.ancestry()
        self.assertGreater(self.replay_by_git(revisions, held), 0)
        self.assertEqual(set(self.contents(self.head())), {'text', 'one', 'three'})

    def test_nothing_is_sent_by_a_dry_run(self):
        ann = self.mount(self.api.origin, 'ann')
        (self.work(ann) / 'big').write_text(LINES * 150)
        before = len(self.api.all('revisions')), len(self.api.all('file_chunks'))
        plan = json.loads(self.playfs('commit', '--dry-run', '--json', self.work(ann)).stdout)
        self.assertEqual((plan['outcome'], plan['files_changed']), ('planned', 1))
        self.assertEqual((len(self.api.all('revisions')), len(self.api.all('file_chunks'))), before)
        done = json.loads(self.publish(ann, 'for real').stdout)
        self.assertEqual((done['chunks_total'], done['writes_used']), (plan['chunks_total'], plan['writes_used']))

    def test_many_at_once_with_crashes_and_lost_replies(self):
        lossy = proxy.SlowProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(lossy.close)
        first = self.mount(self.api.origin, 'first')
        (self.work(first) / 'shared').write_text(LINES)
        self.publish(first, 'first')
        told, mounts, lock = {}, {}, threading.Lock()

        def tell(message, done):
            """Records a commit's result, if any, and resolves its conflicts for both sides."""
            mount = mounts[message.partition('-')[0]]
            result = json.loads(done.stdout) if done.returncode in (0, 3) else {}
            if 'outcome' in result:
                with lock:
                    told[message] = result
            if result.get('outcome') == 'branched':
                self.playfs('update', self.work(mount), who=mount.who, check=False)
            if done.returncode == 3:
                self.resolve(mount)
            return result.get('outcome')

        def live(number):
            dice, who = random.Random(f'{SEED} {number}'), f'user{number}'
            directory = self.home / who / 'mount'
            directory.mkdir(parents=True)
            mount = mounts[who] = self.mount(lossy.url, who, at=directory)
            for count in range(COMMITS):
                message = f'{who}-{count}'
                end = time.monotonic() + fixture.COMMAND_LIMIT
                while True:
                    try:
                        (self.work(mount) / message).write_text(message)
                        shared = (self.work(mount) / 'shared').read_text().splitlines(keepends=True)
                        if '<<<<<<< ' not in ''.join(shared):
                            shared[(number * 7 + count) % len(shared)] = f'by {message}\n'
                            (self.work(mount) / 'shared').write_text(''.join(shared))
                        break
                    except OSError:
                        if time.monotonic() > end:
                            raise
                        time.sleep(0.2)
                killer = Killer(dice.random() * 1.5, mount) if dice.random() < 0.3 else None
                done = self.publish(mount, message, check=False)
                if killer and killer.has_struck():
                    subprocess.run(['fusermount3', '-u', '-z', str(directory)], capture_output=True)
                    mount = mounts[who] = self.mount(lossy.url, who, at=directory)
                tell(message, done)

        def finish(who):
            """Publishes what is left, too."""
            end = time.monotonic() + fixture.COMMAND_LIMIT * MOUNTS
            while tell(f'{who}-last', self.publish(mounts[who], f'{who}-last', check=False)) != 'nothing':
                if time.monotonic() > end:
                    stuck[who] = (self.work(mounts[who]).parent / 'status').read_text()
                    return
                time.sleep(0.5)

        def all_of(what, words):
            threads = [threading.Thread(target=what, args=(word,)) for word in words]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        def lose():
            while not over.wait(0.7):
                lossy.drop()

        over, stuck = threading.Event(), {}
        loser = threading.Thread(target=lose)
        loser.start()
        all_of(live, range(MOUNTS))
        over.set()
        loser.join()
        all_of(finish, sorted(mounts))
        for who, status in stuck.items():
            print(f'{who} is stuck:\n{status}')
        self.assertEqual(sorted(stuck), [])

        def settled():
            held, revisions = self.ancestry()
            said = ' '.join(fixture.fields(record)['body'] for record in self.api.all('messages'))
            return all(each in held or each in said for each, fields in revisions.items() if fields['manifest'].get('tx'))

        self.eventually(settled, 'every revision is in head or announced')
        held, revisions = self.ancestry()
        by_tx = collections.Counter(each['manifest'].get('tx') for each in revisions.values()
                                    if each['manifest'].get('tx'))
        self.assertEqual([tx for tx, count in by_tx.items() if count > 1], [], 'one commit, one revision')
        files = self.contents(self.head())
        for message, result in told.items():
            if result['outcome'] in ('published', 'merged'):
                self.assertIn(result['revision'], held, message)
                if not message.endswith('-last'):
                    self.assertEqual(files.get(message), message.encode())
        self.assertEqual(self.files_of(revisions[self.head()], {}), {path: text.decode() for path, text in files.items()})
        automatic = sum(bool(each['manifest'].get('auto')) for each in revisions.values())
        same = self.replay_by_git(revisions, held)
        print(f'{len(revisions)} revisions, {automatic} automatic merges, {same} of those in head replayed by git')


if __name__ == '__main__':
    fixture.main()
