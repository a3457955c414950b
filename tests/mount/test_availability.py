#!/usr/bin/env python3
"""While readers wait for a hanging server, the rest of the mount works as ever, and killed readers leave nothing
behind."""
import contextlib
import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import http2
import hung
import proxy
import fixture
from projects import publish

READERS = int(os.environ.get('PLAYFS_HUNG_READERS', '60'))
ROUNDS = 15
# For a busy machine. What waits for the server takes as long as the server; `tests/bench/availability.py` enforces a
# ratio of 2.
MOST = 12
# Seconds: the readers' requests time out after a minute, each is retried once, then ends.
LONGEST = 30


@fixture.needs_fuse
class HungReaders(hung.HungMount):
    def setUp(self):
        super().setUp()
        self.begin(READERS)

    def ordinary_things_go_on(self, url, options=()):
        calm, mount = (self.mount_with_near_on_disk(url, who, options) for who in ('calm', 'hung'))
        stuck = hung.Stuck()
        for each in (calm, mount):
            stuck.watch(each.process)
        at_rest = self.in_flight(mount)
        readers = self.hang(mount, READERS)
        self.side_by_side(calm, mount, 1)  # the first run has other costs
        waited = [self.waited(each) for each in (calm, mount)]
        # With fresh numbers: what the kernel cached in an earlier round costs a hundredth, and would be the shortest.
        figures = self.side_by_side(calm, mount, ROUNDS, begin=1, seconds=LONGEST)
        more = [self.waited(each) - before for each, before in zip((calm, mount), waited)]
        self.assertLessEqual(more[1], more[0] + 2, 'nothing waited for more than it does in a calm mount')
        ratios = {name: hung.ratio(pairs) for name, pairs in figures.items()}
        print(', '.join(f'{name} {found:.2f}' for name, found in ratios.items()), flush=True)
        self.assertLess(max(ratios.values()), MOST, ratios)
        self.assertEqual(readers.have_read(), [])

        self.assertNotEqual(self.playfs('umount', mount.directory, check=False).returncode, 0, 'it is in use')
        readers.kill()
        # The server still hangs, so only the readers' death can have ended these.
        self.eventually(lambda: self.in_flight(mount) <= at_rest, 'their requests are gone with them', limit=10)
        readers = self.hang(mount, READERS)
        mount.process.send_signal(signal.SIGTERM)
        mount.process.wait(fixture.COMMAND_LIMIT)
        self.assertEqual(readers.process.wait(fixture.COMMAND_LIMIT), 0)
        self.assertEqual(readers.have_read(), [], 'none of them read anything')
        self.assertLess(max(stuck.end().values(), default=0.0), hung.STUCK_WITHIN)

    def test_the_rest_of_the_mount_over_http_1(self):
        self.ordinary_things_go_on(self.proxy.url)

    def test_the_rest_of_the_mount_over_http_2(self):
        if not http2.Front.is_there():
            self.skipTest('nginx and openssl are needed')
        self.ordinary_things_go_on(*http2.Front(self).before(self.proxy.url))

    def test_a_mount_that_is_killed_takes_nobody_with_it(self):
        mount = self.mount_with_near_on_disk()
        readers, stuck = self.hang(mount, READERS), hung.Stuck()
        mount.process.kill()
        for process in (readers.process, mount.process):
            stuck.watch(process)
        mount.process.wait(fixture.COMMAND_LIMIT)
        self.assertEqual(readers.process.wait(fixture.COMMAND_LIMIT), 0, 'each was told of an error')
        self.assertEqual(readers.have_read(), [])
        self.assertLess(max(stuck.end().values(), default=0.0), hung.STUCK_WITHIN)


@fixture.needs_fuse
class NothingIsLocked(hung.HungMount):
    """Waiting for the server locks no directory, so others create and remove names there, and rename elsewhere."""

    def setUp(self):
        super().setUp()
        self.begin(0)
        self.mounted = self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))
        self.addCleanup(self.abort, self.mounted.connection)

    def waits(self, *words):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ends(self, *words):
        """Runs a command that must not wait for what hangs."""
        self.assertEqual(self.waits(*words).wait(fixture.COMMAND_LIMIT), 0, words)

    def foreign(self, names):
        """A work tree with files whose size only their content reveals, and the chunk of each by name."""
        text = 'a stranger tells no size\n'
        digest = hashlib.sha256(text.encode()).hexdigest()
        chunks = {name: self.api.create('file_chunks', rev='', path=name, seq=0, content=text)['id'] for name in names}
        files = {name: {'h': digest, 's': len(text), 'c': [chunk]} for name, chunk in chunks.items()}
        files['inline'] = {'h': hashlib.sha256(b'here\n').hexdigest(), 's': 5, 'inline': 'here\n'}
        project = self.api.create('projects', name='foreign')['id']
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='strange', state={},
                                   manifest={'files': files})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        return self.mounted.directory / 'projects' / project / 'work', chunks

    def test_who_waits_for_the_size_of_a_file_locks_nothing(self):
        work, chunks = self.foreign(['looked-at', 'written'])
        near = self.mounted.directory / 'projects' / self.near / 'work'
        (near / 'a').mkdir()
        os.listdir(work)
        self.proxy.set_hanging('/file_chunks/')
        before = self.in_flight(self.mounted)
        waiting = [self.waits('stat', work / 'looked-at'), self.waits('stat', work / 'looked-at'),
                   self.waits('sh', '-c', f'echo new > "{work}/written"')]
        self.eventually(lambda: self.in_flight(self.mounted) >= before + len(waiting), 'each waits for itself')
        self.ends('touch', work / 'mine')
        self.ends('mkdir', work / 'directory')
        self.ends('cat', work / 'inline')
        self.ends('ls', '-U', work)
        self.ends('mv', work / 'inline', work / 'directory/inline')
        self.ends('sh', '-c', f'echo new > "{near}/new" && mv "{near}/new" "{near}/a/new"')
        self.playfs('status', work)
        for process in waiting:
            self.assertIsNone(process.poll())
            process.kill()
            self.assertEqual(process.wait(20), -signal.SIGKILL)

    def test_a_file_is_removed_and_renamed_without_its_content(self):
        work, chunks = self.foreign(['removed', 'renamed'])
        self.proxy.set_hanging('/file_chunks/')
        with self.proxy.counting() as asked:
            self.ends(sys.executable, '-c', 'import os, sys; os.chdir(sys.argv[1]); os.unlink("removed"); '
                      'os.rename("renamed", "to")', work)
        self.assertEqual(asked.of('file_chunks/'), [])

    def test_a_name_that_takes_long_keeps_nobody_out_of_its_directory(self):
        projects = self.mounted.directory / 'projects'
        os.listdir(projects)
        missing = projects / '1m00000000000000dead'
        self.proxy.set_hanging(f'/projects/{missing.name}')
        waiting = self.waits('stat', missing)
        self.eventually(lambda: self.proxy.hung() > 0, 'it is asked for')
        self.ends('sh', '-c', f'echo one > "{projects}/new"')
        self.ends('ls', projects)
        self.ends('cat', projects / self.near / 'head/near0')
        self.assertIsNone(waiting.poll())
        self.proxy.set_hanging(None)
        self.assertEqual(waiting.wait(fixture.COMMAND_LIMIT), 1, 'there is none')

    def test_what_was_waited_for_is_found_when_it_comes(self):
        first = self.api.get('projects', self.near)['latest_revision']
        publish(self.api, 'next', {'file': 'next\n'}, project=self.near, parents=[first])
        project = self.mounted.directory / 'projects' / self.near
        os.listdir(project.parent)
        self.proxy.set_hanging(lambda path: path.endswith(first))
        self.assertEqual((project / 'work/file').read_text(), 'next\n')
        said = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for words in (['cat', project / 'log'], ['cat', project / 'log'], ['ls', project / 'revisions' / first])]
        for process in said:
            self.addCleanup(process.kill)
        self.eventually(lambda: self.proxy.hung() > 0, 'it is asked for')
        for _ in range(3):  # each waits at most as long as the running lookups
            self.waits('touch', project / 'made').wait(fixture.COMMAND_LIMIT)
        self.assertEqual([process.poll() for process in said], [None] * len(said))
        self.proxy.set_hanging(None)
        log, again, listed = (process.communicate(timeout=fixture.COMMAND_LIMIT) for process in said)
        self.assertIn(first, log[0], log[1])
        self.assertIn(first, again[0], again[1])
        self.assertIn('near0', listed[0], listed[1])


@fixture.needs_fuse
class EachNameComesLate(fixture.Fixture):
    """Every name is slower than a lookup waits: the kernel looks again once, from the start of the path."""

    def test_a_path_of_such_names(self):
        api = self.serve()
        slow = proxy.SlowProxy(int(api.origin.rsplit(':', 1)[1]))
        self.addCleanup(slow.close)
        project = publish(api, 'p', {'d/f': 'first\n'})
        first = api.get('projects', project)['latest_revision']
        publish(api, 'second', {'d/f': 'second\n'}, project, [first])
        mount = self.mount(slow.url, options=('refresh=600', 'noprefetch'))
        slow.delay = 4
        for path, text in ((f'{project}/revisions/{first}/d/f', 'first\n'), ('by-name/p/head/d/f', 'second\n')):
            self.assertEqual(self.command('cat', mount.directory / 'projects' / path).stdout, text)


    def test_a_link_that_comes_later_than_a_lookup_waits(self):
        """A project comes late, and its head later still: the kernel has looked again once already."""
        api = self.serve()
        counting = proxy.CountingProxy(int(api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)
        project = publish(api, 'p', {'f': 'content\n'})
        delays = {f'/projects/{project}': 5, '/revisions/': 60}  # the second is given up, and asked again

        def late(method, path, headers, body, ask):
            part = next((part for part in delays if part in path), None)
            if part:
                time.sleep(delays.pop(part))

        counting.raw = late
        mount = self.mount(counting.url, options=('refresh=600', 'noprefetch'))
        self.assertEqual((mount.directory / 'projects' / project / 'head/f').read_text(), 'content\n')


@fixture.needs_fuse
class HungLink(hung.HungMount):
    """The target of a published link is content, which may have to be fetched."""

    def setUp(self):
        super().setUp()
        self.begin(0)
        target = 'target'
        self.chunk = self.api.create('file_chunks', rev='', path='link', seq=0, content=target)['id']
        link = {'h': hashlib.sha256(target.encode()).hexdigest(), 's': len(target), 'c': [self.chunk], 'm': '120000'}
        project = self.api.create('projects', name='links')['id']
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='a link', state={},
                                   manifest={'tx': '0' * 32, 'files': {'link': link}})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        self.project = project
        self.mounted, self.links = self.look('ann', 600)

    def look(self, who, refresh):
        mount = self.mount(self.proxy.url, who, (f'refresh={refresh}', 'noprefetch'))
        links = [mount.directory / 'projects' / self.project / place / 'link' for place in ('head', 'work')]
        for link in links:
            self.assertTrue(link.is_symlink())
        return mount, links

    def reads(self, path):
        reader = subprocess.Popen(['readlink', '-v', path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(reader.communicate)
        self.addCleanup(reader.kill)
        return reader

    def hanging(self):
        self.proxy.set_hanging(f'/file_chunks/{self.chunk}')
        before = self.in_flight(self.mounted)
        readers = [self.reads(link) for link in self.links for _ in range(3)]
        self.eventually(lambda: self.in_flight(self.mounted) >= before + len(readers), 'each waits for an answer of its own')
        return readers

    def test_all_who_read_a_link_that_is_not_here_can_be_killed(self):
        for reader in self.hanging():
            reader.kill()
            self.assertEqual(reader.wait(20), -signal.SIGKILL)

    def test_all_of_them_read_it_when_it_comes(self):
        readers = self.hanging()
        self.proxy.set_hanging(None)
        self.assertEqual([reader.communicate(timeout=fixture.COMMAND_LIMIT) for reader in readers],
                         [('target\n', '')] * len(readers))

    def test_one_that_cannot_be_had_fails_with_the_reason(self):
        self.proxy.fate = lambda request: (404, '{"code": "not_found", "message": "gone"}') if self.chunk in request else None
        mount, links = self.look('bob', 1)
        for link in links:
            for _ in range(2):
                with self.assertRaises(OSError) as refused:
                    os.readlink(link)
                self.assertEqual(refused.exception.errno, errno.EIO)
        self.assertIn(self.chunk, (mount.directory / '.playfs/errors.ndjson').read_text())
        self.proxy.fate = lambda request: None

        def is_back():
            with contextlib.suppress(OSError):  # the same answer is cached for a while
                return [os.readlink(link) for link in links] == ['target'] * 2

        self.eventually(is_back, 'it is back')

    def test_who_holds_the_link_itself_waits_briefly(self):
        """Through a descriptor, which has no path for the kernel to look up again."""
        held = [os.open(link, os.O_PATH | os.O_NOFOLLOW) for link in self.links]
        for fd in held:
            self.addCleanup(os.close, fd)
        self.proxy.set_hanging(f'/file_chunks/{self.chunk}')
        for fd in held:
            with self.assertRaises(OSError) as refused:
                os.readlink('', dir_fd=fd)
            self.assertEqual(refused.exception.errno, errno.ETIMEDOUT)
        self.proxy.set_hanging(None)
        self.eventually(lambda: not self.proxy.hung(), 'it is answered')
        for fd in held:
            self.assertEqual(os.readlink('', dir_fd=fd), 'target')


@fixture.needs_fuse
class HungLookup(hung.HungMount):
    """A lookup waits for the server while the kernel holds its directory's lock, and then something in it changes."""

    def setUp(self):
        super().setUp()
        self.begin(0)
        self.mounted = self.mount(self.proxy.url, options=('refresh=1', 'noprefetch'))

    def head_of(self, project):
        return self.api.get('projects', project)['latest_revision']

    def move(self, project, word):
        before = self.head_of(project)
        publish(self.api, 'next', {'file': f'{word}\n'}, project=project, parents=[before])

    def a_lookup_that_hangs(self):
        """Hangs a lookup in a work tree that moves on meanwhile, so names there must be invalidated. The process, and
        the tree."""
        text = 'a stranger tells no size\n'
        chunk = self.api.create('file_chunks', rev='', path='strange', seq=0, content=text)['id']
        digest = hashlib.sha256(text.encode()).hexdigest()
        project = self.api.create('projects', name='hangs')['id']
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='strange', state={},
                                   manifest={'files': {'strange': {'h': digest, 'c': [chunk]}}})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        self.proxy.set_hanging(f'/file_chunks/{chunk}')
        directory = self.mounted.directory / 'projects' / project
        looker = subprocess.Popen(['stat', directory / 'work/strange'], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(looker.wait)
        self.addCleanup(looker.kill)
        self.addCleanup(self.abort, self.mounted.connection)
        self.eventually(lambda: self.proxy.hung() > 0, 'a lookup waits')
        self.move(project, 'second')
        head = self.head_of(project)
        self.eventually(lambda: json.loads((directory / 'status.json').read_text())['base'] == head, 'it follows')
        return looker, directory / 'work'

    def test_news_of_one_project_do_not_wait_for_a_lookup_in_another(self):
        near = self.mounted.directory / 'projects' / self.near / 'work/file'
        self.move(self.near, 'old')
        self.eventually(lambda: near.exists() and near.read_text() == 'old\n', 'it follows')
        looker, work = self.a_lookup_that_hangs()
        self.eventually(lambda: (work / 'file').exists(), 'nor does what came in beside it', limit=20)
        self.assertEqual((work / 'file').read_text(), 'second\n')
        for word in ('new', 'newer'):
            self.move(self.near, word)
            self.eventually(lambda: near.read_text() == f'{word}\n', 'it still follows', limit=20)
        self.move(self.near, 'newest')
        self.playfs('update', near.parent)
        self.assertEqual(near.read_text(), 'newest\n')
        self.assertIsNone(looker.poll())

    def test_a_mount_that_is_killed_is_gone_and_who_waited_in_it_goes_on(self):
        looker, _ = self.a_lookup_that_hangs()
        self.mounted.process.kill()
        self.assertEqual(self.mounted.process.wait(20), -signal.SIGKILL)
        self.assertNotEqual(looker.wait(20), 0)


if __name__ == '__main__':
    fixture.main()
