#!/usr/bin/env python3
"""Content that does not match its hash, and a slow service."""
import errno
import hashlib
import json
import signal
import subprocess
import time

import proxy
import fixture


@fixture.needs_fuse
class Faults(fixture.Fixture):
    def publish(self, api, name, files):
        """A project with one revision, each file a single chunk: {path: (content, claimed hash or None)}."""
        project = api.create('projects', name=name)['id']
        manifest = {}
        for path, (content, claim) in files.items():
            honest = hashlib.sha256(content.encode()).hexdigest()
            chunk = api.create('file_chunks', rev='', path=path, seq=0, hash=honest, content=content)['id']
            manifest[path] = {'h': claim or honest, 's': len(content.encode()), 'c': [chunk]}
        revision = api.create('revisions', project=project, parents=[], agent='x', message='x',
                              manifest={'files': manifest}, state={})['id']
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})

    def test_content_that_does_not_match_its_hash_is_never_shown(self):
        api = self.serve()
        lie = hashlib.sha256(b'something else\n').hexdigest()
        self.publish(api, 'lies', {'true.txt': ('the truth\n', None), 'false.txt': ('a lie\n', lie)})
        mount = self.mount(api.origin, 'ann')
        place = mount.project('lies')
        for _ in range(2):  # nor the second time, from a cache
            with self.assertRaises(OSError) as refusal:
                (place / 'head/false.txt').read_bytes()
            self.assertEqual(refusal.exception.errno, errno.EIO)
        self.assertEqual((place / 'head/true.txt').read_text(), 'the truth\n')
        reasons = [json.loads(line) for line in (mount.directory / '.playfs/errors.ndjson').read_text().splitlines()]
        self.assertTrue(any('false.txt' in json.dumps(reason) for reason in reasons), reasons)

    def test_a_slow_service_slows_nothing_that_is_here(self):
        api = self.serve()
        late = proxy.SlowProxy(int(api.origin.rsplit(':', 1)[1]))
        self.addCleanup(late.close)
        self.publish(api, 'near', {f'dir{n % 5}/file{n}': (f'content {n}\n', None) for n in range(40)})
        self.publish(api, 'far', {'far.txt': ('from far away\n', None)})
        mount = self.mount(late.url, 'ann')
        near = mount.project('near')
        self.command('grep', '-r', 'content', near / 'head/')
        far = mount.directory / 'projects/by-name/far/head/far.txt'

        late.delay = 3.0
        start = time.monotonic()
        reader = subprocess.Popen(['cat', str(far)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.kill)
        slowest = 0.0
        while reader.poll() is None:
            begin = time.monotonic()
            self.command('ls', '-lR', near / 'head/')
            self.command('grep', '-r', 'content 7', near / 'head/')
            slowest = max(slowest, time.monotonic() - begin)
            if time.monotonic() - start > fixture.COMMAND_LIMIT:
                self.fail('the slow read never ended')
        waited = time.monotonic() - start
        self.assertEqual(reader.stdout.read(), b'from far away\n')
        self.assertGreaterEqual(waited, late.delay, 'the read came through the slow proxy')
        self.assertLess(slowest, late.delay / 3, 'what is cached did not wait for it')

    def test_a_read_that_waits_can_be_interrupted(self):
        api = self.serve()
        late = proxy.SlowProxy(int(api.origin.rsplit(':', 1)[1]))
        self.addCleanup(late.close)
        self.publish(api, 'near', {'near.txt': ('near\n', None)})
        self.publish(api, 'far', {'far.txt': ('far\n', None)})
        mount = self.mount(late.url, 'ann')
        near = mount.project('near')
        self.assertEqual((near / 'head/near.txt').read_text(), 'near\n')

        late.delay = 60.0
        reader = subprocess.Popen(['cat', str(mount.directory / 'projects/by-name/far/head/far.txt')],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(reader.kill)
        time.sleep(1)
        self.assertIsNone(reader.poll(), 'it waits')
        reader.send_signal(signal.SIGINT)
        self.assertEqual(reader.wait(late.delay / 3), -signal.SIGINT)
        self.assertEqual((near / 'head/near.txt').read_text(), 'near\n')


if __name__ == '__main__':
    fixture.main()
