#!/usr/bin/env python3
"""Descriptors: as many as the system allows, and some in reserve for others when waiting readers have used up their
share."""
import hashlib
import os
import resource
import subprocess
import sys

import proxy
import fixture
from projects import publish

LIMIT = 256
FILES, PROJECTS = 100, 3  # more readers than descriptors

READERS = '''
import os, sys, threading, time
threading.stack_size(256 * 1024)
def read(path):
    try:
        os.read(os.open(path, os.O_RDONLY), 4096)
    except OSError:
        pass
for path in sys.stdin.read().split():
    threading.Thread(target=read, args=(path,), daemon=True).start()
time.sleep(600)
'''


@fixture.needs_fuse
class Descriptors(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)

    def far_files(self):
        """Files of several projects, all with the same chunk, by project."""
        text = 'far\n'.ljust(9000)
        self.chunk = self.api.create('file_chunks', rev='', path='f', seq=0, content=text)['id']
        entry = {'h': hashlib.sha256(text.encode()).hexdigest(), 's': len(text), 'c': [self.chunk]}
        projects = []
        for _ in range(PROJECTS):
            project = self.api.create('projects', name='far')['id']
            revision = self.api.create('revisions', project=project, parents=[], agent='x', message='m', state={},
                                       manifest={'tx': '0' * 32, 'files': {f'f{n}': entry for n in range(FILES)}})['id']
            self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
            projects.append(project)
        return projects

    def test_a_mount_may_have_as_many_as_the_system_allows(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT if hard == resource.RLIM_INFINITY else min(LIMIT, hard), hard))
        mount = self.mount(self.api.origin)
        self.assertEqual(resource.prlimit(mount.process.pid, resource.RLIMIT_NOFILE), (hard, hard))

    def test_readers_that_wait_leave_some_for_files(self):
        near = publish(self.api, 'near', {f'f{k}': f'near {k}\n'.ljust(9000) for k in range(9)})
        far = self.far_files()
        mount = self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))
        top = mount.directory / 'projects'
        self.command('grep', '-rc', 'near', f'{top / near}/work/')
        for project in far:
            os.listdir(top / project / 'head')
        opened = f'/proc/{mount.process.pid}/fd'
        resource.prlimit(mount.process.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
        self.proxy.set_hanging('/file_chunks/' + self.chunk)
        self.addCleanup(self.proxy.set_hanging, None)
        readers = subprocess.Popen([sys.executable, '-S', '-c', READERS], stdin=subprocess.PIPE, text=True)
        self.addCleanup(readers.wait)
        self.addCleanup(readers.kill)
        readers.stdin.write(' '.join(str(top / project / f'head/f{n}') for project in far for n in range(FILES)))
        readers.stdin.close()
        self.eventually(lambda: len(os.listdir(opened)) >= LIMIT // 2, 'they wait')
        for k in range(5):
            (top / near / f'work/new{k}').write_text('new\n')
            with open(top / near / f'work/f{k}', 'a', encoding='utf-8') as file:
                file.write('more\n')
            self.assertTrue((top / near / f'work/f{k}').read_text().endswith('more\n'))
        work = top / near / 'work'
        self.assertIn('new0', self.playfs('status', work).stdout)
        self.assertEqual(self.playfs('commit', '-m', 'x', work).returncode, 0)
        self.assertIsNone(readers.poll())


if __name__ == '__main__':
    fixture.main()
