#!/usr/bin/env python3
"""Requests of a hanging project leave capacity for everything else: connections over HTTP/1.1, streams over HTTP/2."""
import subprocess

import http2
import proxy
import fixture
from projects import publish

READERS = 60
CHUNKS = 5  # per file
REVISIONS = 150  # fewer than a log shows
STREAMS = 32  # per connection; few, so that one connection more or less is noticed


@fixture.needs_fuse
class Shares(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.near = publish(self.api, 'near', {f'near{n}': f'content {n}\n' for n in range(40)})
        self.hanging = set()

    def hangs(self, path):
        return path.rsplit('/', 1)[-1] in self.hanging

    def start(self, *words):
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def they_wait(self, least):
        """Waits until all requests that hang have been sent, as many as go out at once."""
        seen = []

        def no_more_come():
            seen.append(self.proxy.hung())
            return seen[-1] >= least and seen[-20:] == [seen[-1]] * 20

        self.eventually(no_more_come, 'they wait for the service')

    def all_else_is_answered(self, mount, waiters):
        """Reads chunks and records not read before; no waiting reader has to give up its place first."""
        with self.proxy.counting() as count:
            self.command('grep', '-r', 'content', f'{mount.directory}/projects/{self.near}/head/')
            self.assertIn('near', self.command('cat', mount.directory / 'projects' / self.near / 'log').stdout)
            thread = self.api.create('threads', title='all else')['id']
            self.api.create('messages', thread=thread, body='heard')
            self.command('grep', '-r', 'heard', f'{mount.directory}/threads/{thread}/')
        self.assertEqual([line for line in count.requests if self.hangs(line)], [])
        self.assertEqual([waiter.poll() for waiter in waiters], [None] * len(waiters))

    def contents_leave_room(self, url, options=()):
        text = {f'slow{n}': f'{n:05}\n' * (2_000 * CHUNKS - 500) for n in range(READERS)}
        slow = [publish(self.api, f'slow {half}', dict(list(text.items())[half::2])) for half in range(2)]
        for project in slow:
            manifest = self.api.get('revisions', self.api.get('projects', project)['latest_revision'])['manifest']
            self.hanging |= {chunk for file in manifest['files'].values() for chunk in file['c']}
        for ahead in ('noprefetch',), ():
            mount = self.mount(url, who=f'reader{len(ahead)}', options=('refresh=600', *ahead, *options))
            self.proxy.set_hanging(self.hangs)
            files = [file for project in slow for file in (mount.directory / 'projects' / project / 'head').iterdir()]
            readers = [self.start('cat', file) for file in files]
            self.assertEqual(len(readers), READERS)
            self.they_wait(50)
            self.all_else_is_answered(mount, readers)
            for reader in readers:
                reader.kill()
                reader.wait(fixture.COMMAND_LIMIT)
            self.proxy.set_hanging(None)
            mount.unmount()

    def long_project(self, name):
        project, last = self.api.create('projects', name=name)['id'], []
        for number in range(REVISIONS):
            self.hanging |= set(last)
            last = [self.api.create('revisions', project=project, parents=last, agent='x', message=f'revision {number}',
                                    manifest={'files': {}}, state={})['id']]
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': last[0]})
        return project

    def records_leave_room(self, url, options=()):
        projects = [self.long_project(f'long {number}') for number in range(2)]
        mount = self.mount(url, options=('refresh=600', *options))
        self.command('ls', mount.directory / 'projects' / projects[0] / 'revisions')
        self.proxy.set_hanging(self.hangs)
        readers = [self.start('cat', mount.directory / 'projects' / project / 'log') for project in projects]
        self.they_wait(90)
        self.all_else_is_answered(mount, readers)

    def front(self):
        if not http2.Front.is_there():
            self.skipTest('nginx and openssl are needed')
        return http2.Front(self).before(self.proxy.url, STREAMS)

    def test_contents_over_http_1(self):
        self.contents_leave_room(self.proxy.url)

    def test_contents_over_http_2(self):
        self.contents_leave_room(*self.front())

    def test_records_over_http_1(self):
        self.records_leave_room(self.proxy.url)

    def test_records_over_http_2(self):
        self.records_leave_room(*self.front())


if __name__ == '__main__':
    fixture.main()
