#!/usr/bin/env python3
"""A service whose list lacks a record that it had, as a replica that lags or a restored copy: for a minute the mount
believes that the record is still there, and does not read the list again and again meanwhile."""
import json
import os
import time

import fixture
import proxy

# How long the readers go on; without pauses a mount sends hundreds of requests in this time.
SECONDS = 12
MOST = 60


@fixture.needs_fuse
class LackingLists(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.proxy.tells = True
        self.thread = self.api.create('threads', title='t', agent='bob', kind='help')['id']
        self.ids = [self.message('@ann') for _ in range(3)]

    def message(self, body):
        mentions = ['ann'] if '@ann' in body else []
        return self.api.create('messages', thread=self.thread, parent='', agent='bob', body=body, mentions=mentions,
                               links=[])['id']

    def check(self, look):
        """Who looks every second sees what is new, and costs few requests."""
        with self.proxy.counting() as count:
            new = self.message('another, @ann')
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                look()
                time.sleep(1)
        self.assertLess(len(count.requests), MOST, count.requests[:MOST])
        self.assertIn(new, look())

    def begin(self, look):
        self.ann = self.mount(self.proxy.url)
        status = self.ann.directory / '.playfs/status.json'
        look()
        self.eventually(lambda: json.loads(status.read_text())['events'] == 'live', 'events are live')
        self.assertIn(self.ids[1], look())
        self.proxy.raw = proxy.without(self.ids[1])

    def test_a_reader_of_the_inbox(self):
        def look():
            return [name.removesuffix('.json') for name in os.listdir(self.ann.directory / 'inbox/new')]

        self.begin(look)
        self.check(look)

    def test_a_reader_of_a_thread(self):
        def look():
            text = (self.ann.directory / 'threads' / self.thread / 'messages.ndjson').read_text()
            return [json.loads(line)['id'] for line in text.splitlines()]

        self.begin(look)
        self.check(look)


if __name__ == '__main__':
    fixture.main()
