#!/usr/bin/env python3
"""Two mounts of one user share a cache: what one of them has stored there is news to the other all the same, and while
one has the database, the other waits."""
import concurrent.futures
import os
import signal
import sqlite3
import threading

import fixture
import proxy

# More than is loaded first of the list of messages.
MESSAGES = 2_600
# Longer than a lookup waits for the database.
LOCKED = 0.4


@fixture.needs_fuse
class SharedCache(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.proxy.tells = True
        self.old, self.new, filler = (self.api.create('threads', title=title, agent='bob', kind='help')['id']
                                      for title in ('Old', 'New', 'Filler'))
        self.moved = self.message(self.old, 'moves')
        for thread in (self.old, self.new):
            self.message(thread, 'stays')
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: self.message(filler, f'{number}'), range(MESSAGES)))
        # The others find a filled cache, and load a part of it.
        first = self.mount(self.proxy.url)
        self.look(first)
        first.unmount()

    def message(self, thread, body):
        return self.api.create('messages', thread=thread, parent='', agent='bob', body=body, mentions=[], links=[])['id']

    def look(self, mount):
        """Which of the two threads show the message that moves: in its listing, and in its text."""
        shown = []
        for thread in (self.old, self.new):
            top = mount.directory / 'threads' / thread
            shown.append((f'{self.moved}.json' in os.listdir(top / 'messages'), 'moves' in (top / 'messages.md').read_text()))
        return shown

    def shows_it_moved(self, mount):
        return self.look(mount) == [(False, False), (True, True)]

    def test_an_old_message_moves_though_the_other_mount_has_stored_that(self):
        quick, slow = self.mount(self.proxy.url), self.mount(self.proxy.url)
        for mount in (quick, slow):
            self.assertEqual(self.look(mount), [(True, True), (False, False)])
            self.eventually(lambda each=mount: '"events": "live"' in (each.directory / '.playfs/status.json').read_text(),
                            'events are live')
        slow.process.send_signal(signal.SIGSTOP)
        self.addCleanup(slow.process.send_signal, signal.SIGCONT)
        self.api.call('PATCH', f'/messages/{self.moved}', {'thread': self.new})
        self.eventually(lambda: self.shows_it_moved(quick), 'the one that runs shows it')
        # The other loads all of the list, as it is stored now, and only then looks at what has changed.
        self.proxy.set_hanging(f'/messages/{self.moved}')
        slow.process.send_signal(signal.SIGCONT)
        (slow.directory / 'inbox/messages.ndjson').read_text()
        self.proxy.set_hanging(None)
        self.eventually(lambda: self.shows_it_moved(slow), 'and so does the other')

    def test_a_database_that_another_process_has_for_a_while_is_waited_for(self):
        mount = self.mount(self.proxy.url)
        for thread in (self.old, self.new):
            (mount.directory / 'threads' / thread / 'thread.json').read_text()
        [path] = (self.home / 'ann/cache').rglob('records.db')
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.addCleanup(other.close)
        for thread, text in ((self.old, 'moves'), (self.new, 'stays')):
            other.execute('BEGIN EXCLUSIVE')
            begun = threading.Timer(LOCKED, other.execute, ('COMMIT',))
            begun.start()
            with self.proxy.counting() as count:
                names = os.listdir(mount.directory / 'threads' / thread / 'messages')
                begun.join()
                self.assertIn(text, (mount.directory / 'threads' / thread / 'messages.md').read_text())
            self.assertEqual(len(names), 2 if thread == self.old else 1)
            self.assertLess(len(count.of('messages')), 6, count.requests)
        self.assertEqual((mount.directory / '.playfs/errors.ndjson').read_text(), '')


if __name__ == '__main__':
    fixture.main()
