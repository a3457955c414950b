#!/usr/bin/env python3
"""A service that asks for a pause of any length: the mount probes whether it still holds, and explicit requests are
sent."""
import contextlib
import json
import os

import proxy
import fixture
from projects import publish

A_DAY = (429, json.dumps({'error': 'Too many requests', 'code': 'rate_limited', 'retry_after': 86_400}))


@fixture.needs_fuse
class Pauses(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.project = publish(self.api, 'p', {'a.txt': 'one\n'})
        self.mounted = self.mount(self.proxy.url, options=('refresh=1',))
        self.place = self.mounted.directory / 'projects' / self.project
        self.assertEqual((self.place / 'work/a.txt').read_text(), 'one\n')

    def refuse(self, part):
        """Answers one such request with a pause of a day, then behaves as usual."""
        refused = []

        def fate(request):
            if refused or part not in request:
                return None
            refused.append(request)
            return A_DAY

        self.proxy.fate = fate
        with contextlib.suppress(BlockingIOError):
            os.listdir(self.mounted.directory / 'projects')
        self.assertTrue(refused)
        self.assertTrue(self.is_paused())

    def is_paused(self):
        return json.loads((self.mounted.directory / '.playfs/limits.json').read_text())['paused_until'] is not None

    def test_an_update_asks_at_once_and_ends_a_pause_of_a_day(self):
        self.refuse('GET ')
        head = self.api.get('projects', self.project)['latest_revision']
        publish(self.api, 'p', {'a.txt': 'two\n'}, self.project, [head])
        with self.proxy.counting() as count:
            with self.assertRaises(OSError):
                (self.mounted.directory / 'projects/no-such-project').stat()
        self.assertEqual(count.requests, [], 'what nobody asks for by name obeys')
        self.playfs('update', self.place / 'work')
        self.assertEqual((self.place / 'work/a.txt').read_text(), 'two\n')
        self.assertFalse(self.is_paused())

    def test_a_commit_asks_at_once(self):
        self.refuse('GET ')
        (self.place / 'work/b.txt').write_text('mine\n')
        self.assertEqual(self.commit(self.place / 'work', 'Mine')[0], 'published')


if __name__ == '__main__':
    fixture.main()
