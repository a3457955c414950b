#!/usr/bin/env python3
"""Lists that go in circles, threads and messages that attack their readers, impossible times, and links out of a tree
despite `safe_symlinks`: each behind a real mount."""
import email
import itertools
import json
import mailbox
import os
import re
import subprocess
import urllib.parse

import projects
import proxy
import fixture
import site_of_lies
import trees

MOST_REQUESTS = 8  # for one access to a list that goes in circles
LISTED = ('projects', 'revisions', 'threads', 'messages')
NOWHERE = 'its cursors make no progress'
MANY_MESSAGES = 3_000
MOST_MESSAGES_ASKED_FOR = 400  # for one look at the thread of these


def same(_):
    return lambda page, cursor: {**page, 'nextCursor': 'again'}


def two_in_turn(_):
    return lambda page, cursor: {**page, 'nextCursor': 'b' if cursor == 'a' else 'a'}


def empty_pages(numbers):
    return lambda page, cursor: {'records': [] if cursor else page['records'], 'nextCursor': f'n{next(numbers)}'}


def the_same_page(numbers):
    return lambda page, cursor: {**page, 'nextCursor': f'n{next(numbers)}'}


CIRCLES = (same, two_in_turn, empty_pages, the_same_page)


@fixture.needs_fuse
class Circles(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.service = proxy.before_a_service(self)
        self.project = projects.publish(self.api, 'good', {'a': 'a\n'})
        self.thread = self.api.create('threads', title='t', project=self.project)['id']
        self.api.create('messages', thread=self.thread, author='bob', body='first')

    def go_in_circles(self, circle):
        following = circle(itertools.count())

        def raw(method, path, headers, body, ask):
            address = urllib.parse.urlsplit(path)
            if method != 'GET' or address.path not in [f'{site_of_lies.BASE}/{name}' for name in LISTED]:
                return None
            page = site_of_lies.document_of(ask(f'{address.path}?limit=100'))
            cursor = urllib.parse.parse_qs(address.query).get('cursor', [None])[0]
            return site_of_lies.http(json.dumps(following(page, cursor)))

        self.service.raw = raw

    def look(self, mount, function, subject):
        """It fails after a few requests, with a reason."""
        with self.service.counting() as count, self.assertRaises(OSError):
            function()
        self.assertLessEqual(len(count.requests), MOST_REQUESTS, subject)
        self.eventually(lambda: any(error['subject'] == subject and NOWHERE in error['message']
                                    for error in self.errors(mount)), f'it is told why {subject} fails')

    def errors(self, mount):
        return list(map(json.loads, (mount.directory / '.playfs/errors.ndjson').read_text().splitlines()))

    def test_lists(self):
        for circle in CIRCLES:
            with self.subTest(circle.__name__):
                self.go_in_circles(circle)
                mount = self.mount(self.service.url, options=('refresh=1',))
                top = mount.directory
                project, thread = f'projects/{self.project}', f'threads/{self.thread}'
                for place in 'projects', f'{project}/revisions', 'threads', f'{thread}/messages':
                    self.look(mount, lambda place=place: os.listdir(top / place),
                              'messages' if place.endswith('messages') else place)
                self.look(mount, (top / thread / 'messages.md').read_text, f'{thread}/messages.md')
                # What needs no list is still there.
                self.assertEqual((top / project / 'head/a').read_text(), 'a\n')
                self.assertEqual(os.listdir(top / project / 'at/2200-01-01'), ['a'])
                (top / thread / 'reply').write_text(f'{circle.__name__}\n')
                self.assertIn(circle.__name__, (top / thread / 'reply').read_text())
                mount.unmount()

    def test_a_commit_is_published_once_there_is_a_list_again(self):
        self.go_in_circles(same)
        mount = self.mount(self.service.url, options=('refresh=1',))
        work = mount.directory / 'projects' / self.project / 'work'
        (work / 'mine').write_text('mine\n')
        commit = subprocess.Popen([self.playfs_path, 'commit', '-m', 'mine', work], env=self.environment('ann'),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(commit.kill)
        self.eventually(lambda: any(error['subject'] == 'commit' and 'does not end' in error['message']
                                    for error in self.errors(mount)), 'it is told what the commit waits for')
        self.assertIsNone(commit.poll(), 'it was not given up')
        self.service.raw = lambda *request: None
        self.assertEqual(commit.wait(timeout=fixture.COMMAND_LIMIT), 0)
        head = self.api.get('projects', self.project)['latest_revision']
        self.assertEqual(sorted(self.api.get('revisions', head)['manifest']['files']), ['a', 'mine'])


@fixture.needs_fuse
class Strangers(fixture.Fixture):
    """Records of a lying site."""

    def setUp(self):
        super().setUp()
        self.api, self.service = proxy.before_a_service(self)
        self.site = site_of_lies.HostileSite(self.service)

    def mount_it(self, *options):
        return self.mount(self.service.url, options=('refresh=1', *options)).directory

    def test_messages(self):
        evil = ''.join(trees.CONTROLS)
        self.site.add('threads', 'talk', title=f'title {evil}', author=evil)
        self.site.add('threads', 'other', title='other', author='ann')
        strange = [*trees.STRANGE_IDS, *trees.IDS]
        for number, ident in enumerate(strange):
            self.site.add('messages', ident, thread='talk', author=evil, body=f'{number} {evil}', parent=ident)
        self.site.add('messages', 'of another', thread='other', author='ann', body='elsewhere')
        self.site.add('messages', 'large', thread='talk', author='ann', body='x' * 200_000)
        for number, (name, value) in enumerate(itertools.product(
                ('body', 'author', 'thread', 'parent', 'mentions', 'links', 'created_at'),
                (None, [], {}, 7, True, site_of_lies.Raw('1e400'), site_of_lies.Raw('[' * 50 + ']' * 50)))):
            self.site.add('messages', f'odd {number}', **{'thread': 'talk', 'author': 'ann', 'body': 'odd', name: value})
        top = self.mount_it()
        talk = top / 'threads/talk'
        names = os.listdir(talk / 'messages')
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([name for name in names if '/' in name or '\0' in name or len(name.encode()) > 255], [])
        self.assertIn('odd 0.json', names)
        self.assertNotIn('of another.json', names)
        with self.assertRaises(FileNotFoundError):
            os.stat(talk / 'messages/of another.json')
        for name in names:
            record = json.loads((talk / 'messages' / name).read_text())
            self.assertEqual(f'{record["id"]}.json', name)
        text = (talk / 'messages.md').read_bytes().decode()
        self.assertIsNone(trees.UNSAFE.search(text), 'messages.md does not speak to the terminal')
        self.assertNotIn('elsewhere', text)
        self.assertIn('elsewhere', (top / 'threads/other/messages.md').read_text())
        (talk / 'reply').write_text('plain\n')
        self.assertIn('"plain', (talk / 'reply').read_text())

    def test_parents_that_lead_in_circles(self):
        """Each message is shown once, and no reader is sent around: what is older answers nothing younger."""
        self.site.add('threads', 'talk', title='title', author='ann', kind='help')
        parents = {'self': 'self', 'c': 'b', 'b': 'a', 'a': 'c', 'tail': 'a', 'same1': 'same2', 'same2': 'same1'}
        for ident, parent in parents.items():
            at = {'created_at': '2020-01-01T00:00:00Z'} if ident.startswith('same') else {}
            self.site.add('messages', ident, thread='talk', agent='eve', body=f'says {ident}', parent=parent, **at)
        top = self.mount_it()
        talk = top / 'threads/talk'
        said = re.compile(r'says (\w+)')
        text = (talk / 'messages.md').read_text()
        self.assertEqual(sorted(said.findall(text)), sorted(parents))
        self.assertNotIn('(in reply to self)', text)
        self.assertIn('(in reply to b)', text)
        maildir = top / 'maildir/help'
        letters = [maildir / place / name for place in ('new', 'cur') for name in os.listdir(maildir / place)]
        mbox = mailbox.mbox(talk / 'thread.mbox', create=False)
        self.addCleanup(mbox.close)
        for name, messages in (('thread.mbox', mbox),
                               ('maildir', [email.message_from_bytes(each.read_bytes()) for each in letters])):
            with self.subTest(name):
                answered = {}
                for message in messages:
                    if found := said.search(message.get_payload()):
                        ids = [each.strip('<>').split('@')[0] for each in message.get('References', '').split()]
                        answered[found[1]] = ids
                        self.assertEqual(message.get('In-Reply-To', '').strip('<>').split('@')[0], ids[-1] if ids else '')
                self.assertEqual(sorted(answered), sorted(parents))
                self.assertEqual(answered['self'], [])
                for ident in parents:
                    above, at = set(), ident
                    while answered[at]:
                        self.assertNotIn(at, above, 'a circle')
                        above.add(at)
                        at = answered[at][-1]
                    self.assertLessEqual(set(answered[ident]), above | {at})
        shown = self.playfs('thread', 'show', 'talk', '--site', self.service.url).stdout
        self.assertEqual(sorted(said.findall(shown)), sorted(parents))
        self.assertNotIn('in reply to self', shown)

    def test_a_thread_of_endless_messages(self):
        """messages.md shows the newest of them, in bounded memory and requests, and says where the rest is."""
        body = 'x' * 15_000
        self.site.add('threads', 'talk', title='title', author='ann')
        numbers = range(MANY_MESSAGES)
        for number in numbers:
            self.site.add('messages', f'm{number:05}', thread='talk', author='mallory', body=f'body {number} {body}')
        self.site.add('threads', 'short', title='short', author='ann')
        for number in range(200):
            self.site.add('messages', f'short{number:03}', thread='short', author='ann', body=f'line {number}')
        mount = self.mount(self.service.url, options=('refresh=1',))
        top = mount.directory
        os.listdir(top / 'threads/talk/messages')  # the list itself is bounded by test_endless_lists.py
        fixture.forget_most_memory(mount.process)
        before = fixture.memory(mount.process)
        with self.service.counting() as count:
            text = (top / 'threads/talk/messages.md').read_text()
        grown = fixture.memory(mount.process, 'VmHWM') - before
        print(f'{len(text) >> 10} KB, {len(count.requests)} requests, {grown >> 20} MB more', flush=True)
        self.assertLess(len(text), 2 << 20)
        self.assertLess(len(count.requests), MOST_MESSAGES_ASKED_FOR)
        self.assert_memory(grown, 32 << 20)
        shown = [int(found) for found in re.findall(r'body (\d+) ', text)]
        # The newest was added first, and stands last.
        self.assertEqual(shown, list(reversed(range(len(shown)))))
        self.assertIn(f'Older messages not shown here: {MANY_MESSAGES - len(shown)}. ', text)
        errors = (top / '.playfs/errors.ndjson').read_text()
        self.assertIn(f'{MANY_MESSAGES - len(shown)} older ones are left out', errors)
        self.assertEqual(json.loads((top / f'threads/talk/messages/m{MANY_MESSAGES - 1:05}.json').read_text())['thread'],
                         'talk')
        # A thread that fits is shown as a whole.
        text = (top / 'threads/short/messages.md').read_text()
        self.assertEqual([int(found) for found in re.findall(r'line (\d+)', text)], list(reversed(range(200))))
        self.assertNotIn('not shown', text)

    def test_ids_on_a_terminal(self):
        """Of a project that was just made: what a service calls it does not speak to the terminal, and scripts get it."""
        evil = ''.join(trees.CONTROLS).replace('\n', '').replace('\r', '')
        self.site.answers['POST', 'projects', None] = lambda body, ask: site_of_lies.http(
            json.dumps({'record': {'id': evil, 'name': 'name', 'created_at': '2020-01-01T00:00:00Z'}}), '201 Created')
        words = [self.playfs_path, 'init', 'name', '--site', self.service.url]
        code, shown = self.on_terminal(*words)
        self.assertEqual(code, 0, shown)
        self.assertIsNone(trees.UNSAFE.search(shown), shown)
        self.assertEqual(self.command(*words).stdout, f'{evil}\n')

    def test_times_that_never_were(self):
        for number, value in enumerate(trees.TIMES):
            self.site.project(f'time {number}', {'f': trees.inline('x')}, revision={'created_at': value},
                              project={'created_at': value})
        top = self.mount_it()
        asked = ('0000-01-01', '0001-01-01T00:00:00Z', '1969-12-31T23:59:59Z', '2026-02-30', '2026-13-45', '9999-12-31',
                 '99999999999-01-01', '-0001-01-01', '2026', 'x', '2026-01-01T00:00:00+99:99', '\x1b[2J', '1e400')
        for number, when in itertools.product(range(len(trees.TIMES)), asked):
            try:
                shown = os.listdir(top / 'projects' / f'time {number}' / 'at' / when)
            except OSError:
                continue
            self.assertIn(shown, (['f'], []), (trees.TIMES[number], when))
        for number in range(len(trees.TIMES)):
            self.assertEqual((top / 'projects' / f'time {number}' / 'head/f').read_text(), 'x')

    def test_links_out_of_a_tree(self):
        attack = trees.symlinks()
        self.site.project(attack.name, attack.files)
        place = self.mount_it('safe_symlinks') / 'projects' / attack.name
        inside = {'self', 'one', 'two', 'here', 'esc', 'longest', 'dash', 'dir/loop'}
        for tree in 'head', 'work', f'revisions/{attack.name}-r':
            for path, target in attack.links.items():
                try:
                    self.assertEqual(os.readlink(place / tree / path), target)
                    self.assertIn(path, inside, f'{tree}/{path} leads out')
                except PermissionError:
                    self.assertNotIn(path, inside, f'{tree}/{path} stays within')


if __name__ == '__main__':
    fixture.main()
