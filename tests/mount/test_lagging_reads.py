#!/usr/bin/env python3
"""A service whose reads lag behind its writes: what it has acknowledged is published, and never given back meanwhile."""
import json
import subprocess
import threading

import proxy
import rig

LOOKS = 4  # after the POST, each after a longer rest


@rig.needs_fuse
class LaggingReads(rig.Rig):
    """Whoever reads is answered by a replica, which is a copy of the store from before the commit until it catches up."""

    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.port = int(self.api.origin.rsplit(':', 1)[1])
        self.proxy = proxy.CountingProxy(self.port)
        self.addCleanup(self.proxy.close)
        self.project = self.api.create('projects', name='p')['id']
        self.mounted = self.mount(self.proxy.url)
        self.work = self.mounted.directory / 'projects' / self.project / 'work'

    def lag(self):
        """What it returns grows by each look at the log after the revision was acknowledged."""
        replica = self.home / 'replica'
        replica.mkdir()
        self.playfs('serve', 'backup', replica / 'playground.db', '--store', self.home / 'store', who='server')
        port = rig.free_port()
        process = subprocess.Popen([self.playfs_path, 'serve', '--listen', f'127.0.0.1:{port}', '--store', str(replica),
                                    '--limits', 'off'], env=self.environment('replica'), stdin=subprocess.DEVNULL)

        def end():
            process.terminate()
            process.wait(rig.COMMAND_LIMIT)

        self.addCleanup(end)
        self.eventually(lambda: self.answers(port), 'the replica answers')
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

    @staticmethod
    def answers(port):
        try:
            return rig.Api(f'http://127.0.0.1:{port}').request('GET', '/projects')[0] == 200
        except OSError:
            return False

    def catch_up(self):
        self.proxy.fate = lambda request: None

    def status(self):
        return json.loads((self.work.parent / 'status.json').read_text())

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

    def test_and_uploads_nothing_twice(self):
        self.commit_while_it_lags(''.join(f'{number}\n' for number in range(20_000)))
        chunks = self.api.all('file_chunks')
        self.assertEqual(len({chunk['content'] for chunk in chunks}), len(chunks))


if __name__ == '__main__':
    rig.main()
