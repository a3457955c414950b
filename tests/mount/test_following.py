#!/usr/bin/env python3
"""A mount shows what is known of a project: after head moved, a remount, another process, a stray pointer."""
import contextlib
import errno
import json
import os
import pathlib
import stat
import subprocess
import threading
import time
import unittest

import proxy
import fixture
from clocks import Clocks
from projects import publish

OLD = {'a': 'old a\n', 'd/b': 'old b\n', 'gone': 'old\n'}
NEW = {'a': 'new a\n', 'd/b': 'new b\n', 'come': 'new\n'}


def tree(place):
    """Every file below it, by path. Files that disappear between listing and reading are omitted."""
    found = {}
    for folder, _, names in os.walk(place):
        for name in names:
            path = pathlib.Path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                found[str(path.relative_to(place))] = path.read_text()
    return found


class Following(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.port = int(self.api.origin.rsplit(':', 1)[1])

    def head(self, project):
        return self.api.get('projects', project)['latest_revision']

    def move_head(self, project, contents):
        publish(self.api, 'moved', contents, project, [self.head(project)])

    def project_mount(self, project, who='ann', options=(), site=None):
        """A mount of one project's tree, which cannot be recognised by a projects/ directory."""
        directory = self.home / f'{who}-alone'
        directory.mkdir()
        command = [self.playfs_path, 'mount', '-f', site or self.api.origin, str(directory),
                   '-o', ','.join((f'project={project}', 'refresh=1', *options))]
        process = subprocess.Popen(command, env=self.environment(who), stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait, fixture.COMMAND_LIMIT)
        self.addCleanup(process.terminate)
        self.eventually(lambda: str(directory) in fixture.mounted_directories(), 'the project is mounted')
        return directory


@fixture.needs_fuse
class OneProject(Following):
    def read_all(self, top):
        """Fills the kernel's caches, including missing names."""
        shown = tree(top)
        for name in (*OLD, *NEW):
            (top / name).exists()
        return shown

    def test_a_read_only_mount_follows_head_as_a_whole(self):
        project = publish(self.api, 'p', OLD)
        top = self.project_mount(project, options=('ro',))
        self.assertEqual(self.read_all(top), OLD)
        self.move_head(project, NEW)
        self.eventually(lambda: 'come' in os.listdir(top), 'the new tree is listed')
        self.assertEqual(self.read_all(top), NEW)
        self.assertEqual(os.getxattr(top, 'user.playfs.revision').decode(), self.head(project))

    def test_a_mount_whose_work_tree_is_in_use_elsewhere_follows_too(self):
        project = publish(self.api, 'p', OLD)
        other = self.mount(self.api.origin)
        (other.directory / 'projects' / project / 'work/a').write_text('staged\n')
        top = self.project_mount(project)
        self.assertEqual(self.read_all(top), OLD)
        self.move_head(project, NEW)
        self.eventually(lambda: 'come' in os.listdir(top), 'the new tree is listed')
        self.assertEqual(self.read_all(top), NEW)
        with self.assertRaises(OSError) as refused:
            (top / 'd/b').write_text('mine\n')
        self.assertEqual(refused.exception.errno, errno.EBUSY)

        other.unmount()
        self.eventually(lambda: (top / 'a').read_text() == 'staged\n', 'the work tree is shown once it is free')
        self.assertEqual(self.read_all(top), {**OLD, 'a': 'staged\n'}, 'all of it')
        (top / 'd/b').write_text('mine\n')
        self.assertEqual(self.read_all(top), {**OLD, 'a': 'staged\n', 'd/b': 'mine\n'})


@fixture.needs_fuse
class OneTreeThatCannotBeHad(Following):
    """The directory exists, and `.playfs/` in it says why the tree does not."""

    def setUp(self):
        super().setUp()
        self.way = proxy.CountingProxy(self.port)
        self.addCleanup(self.way.close)

    def errors(self, top):
        return [json.loads(line) for line in (top / '.playfs/errors.ndjson').read_text().splitlines()]

    def says_why(self, top, number, reason):
        """Looking is enough: nothing is read but files in `.playfs/`."""
        self.assertTrue(stat.S_ISDIR(os.stat(top).st_mode))
        self.assertIn('health', json.loads((top / '.playfs/status.json').read_text()))
        self.assertIn(reason, [each['code'] for each in self.errors(top)])
        for act in (lambda: os.listdir(top), lambda: os.stat(top / 'a'), lambda: (top / 'a').write_text('mine\n')):
            with self.assertRaises(OSError) as refused:
                act()
            self.assertEqual(refused.exception.errno, number)

    def comes_after_all(self, top, project):
        self.eventually(lambda: tree(top) == OLD, 'the tree is there')
        self.assertEqual(os.getxattr(top, 'user.playfs.revision').decode(), self.head(project))
        self.eventually(lambda: set(os.listdir(top)) == {'a', 'd', 'gone'}, 'so is its listing')

    def test_for_it_is_refused(self):
        project = publish(self.api, 'p', OLD)
        self.way.fate = lambda request: (200, '{}') if '/revisions/' in request else None
        tops = [self.project_mount(project, who, options, self.way.url)
                for who, options in (('ann', ()), ('bob', ('ro',)), ('eve', (f'revision={self.head(project)}',)))]
        for top in tops:
            self.says_why(top, errno.EIO, 'protocol')
        self.way.fate = lambda request: None
        for top in tops:
            self.comes_after_all(top, project)

    def test_for_there_is_no_such_project(self):
        self.says_why(self.project_mount('1m00000000000000dead'), errno.EIO, 'io')

    def test_for_nobody_answers(self):
        project = publish(self.api, 'p', OLD)
        self.way.set_hanging('/projects/')
        top = self.project_mount(project, site=self.way.url)
        reader = subprocess.Popen(['cat', top / 'a'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.kill)
        self.eventually(lambda: self.way.hung() > 0, 'it is asked for')
        self.assertTrue(stat.S_ISDIR(os.stat(top).st_mode))
        self.assertIn('timed_out', [each['code'] for each in self.errors(top)])
        self.assertIsNone(reader.poll(), 'who reads the tree waits for it')
        self.way.set_hanging(None)
        self.assertEqual(reader.communicate(timeout=fixture.COMMAND_LIMIT)[0], OLD['a'])
        self.comes_after_all(top, project)


@fixture.needs_fuse
class WhoeverIsInIt(Following):
    """Through an open directory, as a process has that is in it."""

    def read(self, directory, name):
        try:
            fd = os.open(name, os.O_RDONLY, dir_fd=directory)
        except FileNotFoundError:
            return None
        with open(fd) as file:
            return file.read()

    def follows(self, directory, contents):
        names = {*OLD, *NEW}
        self.eventually(lambda: {name: self.read(directory, name) for name in names} == {**dict.fromkeys(names), **contents},
                        'what is there by the open directory is what head has')
        # The kernel learns of that last.
        listed = {name.split('/')[0] for name in contents}
        self.eventually(lambda: set(os.listdir(directory)) == listed, 'so is what is listed')

    def enter(self, mount, project):
        directory = os.open(mount.directory / 'projects' / project / 'work', os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, directory)
        self.follows(directory, OLD)
        return directory

    def test_in_a_read_only_mount(self):
        project = publish(self.api, 'p', OLD)
        directory = self.enter(self.mount(self.api.origin, options=('refresh=1', 'ro')), project)
        self.move_head(project, NEW)
        self.follows(directory, NEW)
        self.command('sh', '-c', 'cd "/proc/$1/fd/$2" && pwd -P', 'sh', os.getpid(), directory)

    def test_beside_another_process_and_after_it(self):
        project = publish(self.api, 'p', OLD)
        other = self.mount(self.api.origin)
        self.assertEqual(tree(other.directory / 'projects' / project / 'work'), OLD)
        mount = self.mount(self.api.origin, options=('refresh=1',))
        directory = self.enter(mount, project)
        self.move_head(project, NEW)
        self.follows(directory, NEW)
        other.unmount()

        def write():
            with contextlib.suppress(OSError):
                os.close(os.open('mine', os.O_WRONLY | os.O_CREAT, dir_fd=directory))
                return True

        self.eventually(write, 'it can be written in once the other process is gone')
        work = mount.directory / 'projects' / project / 'work'
        self.assertIn('mine', os.listdir(work))
        (work / 'mine').unlink()
        self.assertIsNone(self.read(directory, 'mine'))
        self.move_head(project, OLD)
        self.follows(directory, OLD)


@fixture.needs_fuse
class Remounted(Following):
    """Head moved while nobody had the project mounted."""

    def places(self, mount, project):
        return [mount.directory / 'projects' / project / place / 'a' for place in ('head', 'work')]

    def read_once(self, project, site):
        mount = self.mount(site)
        self.assertEqual([place.read_text() for place in self.places(mount, project)], ['old a\n'] * 2)
        mount.unmount()

    def test_by_a_round_trip_that_is_longer_than_refresh(self):
        project = publish(self.api, 'p', OLD)
        slow = proxy.SlowProxy(self.port)
        self.addCleanup(slow.close)
        self.read_once(project, slow.url)
        self.move_head(project, NEW)
        slow.delay = 1.5
        head, work = self.places(self.mount(slow.url), project)
        self.eventually(lambda: head.read_text() == 'new a\n', 'head/ is the new one')
        self.eventually(lambda: work.read_text() == 'new a\n', 'and so is work/')

    def test_where_the_news_was_here_before_anybody_looked_at_it(self):
        project = publish(self.api, 'p', OLD)
        way = proxy.CountingProxy(self.port)
        self.addCleanup(way.close)
        self.read_once(project, way.url)
        self.move_head(project, NEW)
        head = self.head(project)
        way.fate = lambda request: (404, '{"error": "none", "code": "not_found", "message": "none"}') \
            if f'/revisions/{head}' in request else None
        mount = self.mount(way.url)
        record = mount.directory / 'projects' / project / 'project.json'
        self.eventually(lambda: head in record.read_text(), 'the record is here, and the revision is not')
        mount.unmount()
        top = self.project_mount(project, site=way.url)
        self.assertEqual(tree(top), OLD)
        way.fate = lambda request: None
        self.eventually(lambda: tree(top) == NEW, 'work/ is brought up')

    def test_offline(self):
        project = publish(self.api, 'p', OLD)
        self.read_once(project, self.api.origin)
        self.move_head(project, NEW)
        # A read-only mount fetches the news, and the work tree is opened without the service.
        mount = self.mount(self.api.origin, options=('refresh=1', 'ro'))
        self.eventually(lambda: self.places(mount, project)[0].read_text() == 'new a\n', 'the news is here')
        mount.unmount()
        mount = self.mount(self.api.origin, options=('refresh=1', 'offline'))
        self.assertEqual([place.read_text() for place in self.places(mount, project)], ['new a\n'] * 2)


@fixture.needs_fuse
class Overtaken(Following):
    def test_a_tree_that_stands_on_nothing_says_so(self):
        project = self.api.create('projects', name='p')['id']
        top = self.mount(self.api.origin, options=('refresh=1',)).directory / 'projects' / project
        (top / 'work/mine').write_text('mine\n')
        publish(self.api, 'theirs', OLD, project)

        def status():
            return json.loads((top / 'status.json').read_text())

        self.eventually(lambda: status()['head'] == self.head(project), 'head is known')
        self.assertEqual(status()['base'], '')

    def test_a_slow_head_does_not_delay_a_later_one(self):
        project = publish(self.api, 'p', OLD)
        way = proxy.CountingProxy(self.port)
        self.addCleanup(way.close)
        top = self.mount(way.url).directory / 'projects' / project
        self.assertEqual([tree(top / 'work'), tree(top / 'head/')], [OLD, OLD])
        way.set_hanging('/revisions/')
        self.move_head(project, {'a': 'never comes\n'})
        self.eventually(lambda: way.hung() > 0, 'it is asked for')
        way.set_hanging(f'/revisions/{self.head(project)}')
        self.move_head(project, NEW)
        # Less than the timeout of the request for the other one.
        self.eventually(lambda: [tree(top / 'work'), tree(top / 'head/')] == [NEW, NEW], 'the later one is shown', limit=45)
        self.assertGreater(way.hung(), 0)


@fixture.needs_fuse
class AfterIdleMinutes(Clocks, Following):
    def test_the_first_look_asks(self):
        """With more projects than are followed while idle. Through `head`, whose link the kernel caches for a second;
        that of `work` it caches for a minute, by a clock that does not jump."""
        self.let_clocks_jump()
        if not self.clocks:
            self.skipTest('clocks cannot jump here')
        projects = [publish(self.api, f'p{n}', OLD) for n in range(20)]
        mount = self.mount(self.api.origin)
        seen = []
        for turn in range(10):  # on a busy machine the answer may take longer than a lookup waits, but not every time
            for project in projects:
                (mount.directory / 'projects' / project / 'head/a').read_text()
            self.jump('ann', 400)
            self.move_head(projects[0], {'a': f'{turn}\n'})
            self.jump('ann', 60)
            time.sleep(1.5)
            seen.append((mount.directory / 'projects' / projects[0] / 'head/a').read_text())
            if seen[-1] == f'{turn}\n':
                return
        self.fail(f'each of the first looks showed what was known before: {seen}')

    def test_who_stays_in_a_directory_sees_head_move(self):
        """Through a descriptor, like that of a working directory: nothing done there sends a request. More projects
        than are followed, and this one was last used long ago."""
        self.let_clocks_jump()
        if not self.clocks:
            self.skipTest('clocks cannot jump here')
        projects = [publish(self.api, f'p{n}', OLD) for n in range(20)]
        top = self.mount(self.api.origin, options=('refresh=1',)).directory / 'projects'
        directory = os.open(top / projects[0] / 'work', os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, directory)

        def look():
            with open('a', opener=lambda name, flags: os.open(name, flags, dir_fd=directory), encoding='utf-8') as file:
                return file.read()

        self.assertEqual(look(), OLD['a'])
        for project in projects[1:]:
            os.listdir(top / project / 'work')
        self.jump('ann', 400)
        time.sleep(1.5)
        self.move_head(projects[0], NEW)

        def seen_later():
            self.jump('ann', 31)
            time.sleep(1)
            return look() == NEW['a']

        self.eventually(seen_later, 'what is published is there')


@fixture.needs_fuse
class Pointers(Following):
    def test_a_latest_revision_of_another_project_is_shown_nowhere(self):
        project, other = publish(self.api, 'p', OLD), publish(self.api, 'q', {'a': 'foreign\n'})
        mine, foreign = self.head(project), self.head(other)
        ann = self.mount(self.api.origin)
        top = ann.directory / 'projects' / project
        self.assertEqual([tree(top / 'work'), tree(top / 'head/')], [OLD, OLD])
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': foreign})

        def status():
            return json.loads((top / 'status.json').read_text())

        self.eventually(lambda: status()['head_refused'] is not None, 'ann has seen it')
        self.assertIn(foreign, status()['head_refused'])
        self.assertEqual(status()['head'], mine)
        self.assertEqual([tree(top / 'work'), tree(top / 'head/')], [OLD, OLD], 'the last of its own')
        self.assertIn(foreign, (ann.directory / '.playfs/errors.ndjson').read_text())
        # A mount that never saw another revision gets an error with a reason, and nothing foreign.
        fresh = self.mount(self.api.origin, 'bob').directory
        alone = self.project_mount(project, 'eve', options=('ro',))
        for place in (fresh / 'projects' / project / 'work', fresh / 'projects' / project / 'head/', alone):
            with self.assertRaises(OSError) as refused:
                os.listdir(place)
            self.assertEqual(refused.exception.errno, errno.EIO, place)
        self.assertIn(foreign, (fresh / '.playfs/errors.ndjson').read_text())

        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': mine})
        self.eventually(lambda: status()['head_refused'] is None, 'it is set back')
        self.move_head(project, NEW)
        self.eventually(lambda: tree(top / 'work') == NEW, 'and goes on')
        self.assertEqual(tree(top / 'head/'), NEW)
        self.eventually(lambda: tree(fresh / 'projects' / project / 'work') == NEW, 'for others too')

    def test_revisions_lists_all_of_them_whatever_was_read_before(self):
        project = self.api.create('projects', name='p')['id']
        made = []

        def revision(*parents):
            made.append(self.api.create('revisions', project=project, parents=list(parents), agent='x', message='m',
                                        manifest={'files': {}}, state={})['id'])
            return made[-1]

        line = [revision()]
        for _ in range(4):
            line.append(revision(line[-1]))
        branches = [revision(line[n]) for n in range(3)]
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': line[-1]})
        for before in ([], ['log'], ['branches'], ['log', 'branches', 'status']):
            with self.subTest(before):
                mount = self.mount(self.api.origin, f'user{len(self.mounts)}')
                top = mount.directory / 'projects' / project
                for name in before:
                    if name == 'branches':
                        self.assertEqual(set(os.listdir(top / name)), set(branches))
                    else:
                        (top / name).read_text()
                self.assertEqual(set(os.listdir(top / 'revisions')), set(made))

    @unittest.skipUnless(os.geteuid() == 0, 'mounts a file system')
    def test_what_is_mounted_in_one_project_stays_when_the_head_of_another_moves(self):
        project, other = (publish(self.api, name, {'f': 'f\n'}) for name in ('p', 'other'))
        directory = self.mount(self.api.origin, options=('refresh=1',)).directory / 'projects'
        build = directory / project / 'work/build'
        build.mkdir()
        self.command('mount', '-t', 'tmpfs', 'tmpfs', build)
        self.addCleanup(self.command, 'umount', '-l', build, check=False)
        stop = threading.Event()

        def look():
            while not stop.is_set():
                (directory / other / 'status').read_bytes()

        readers = [threading.Thread(target=look) for _ in range(4)]
        for reader in readers:
            reader.start()
        try:
            for number in range(4):
                publish(self.api, 'Next', {'f': f'{number}\n'}, other)
                self.eventually(lambda: (directory / other / 'head/f').read_text() == f'{number}\n', 'head is followed')
        finally:
            stop.set()
            for reader in readers:
                reader.join()
        self.assertTrue(os.path.ismount(build))


if __name__ == '__main__':
    fixture.main()
