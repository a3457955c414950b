#!/usr/bin/env python3
"""A change of one thread costs nothing for the others: neither those that are followed, nor those in the index."""
import json
import os

import fixture
import proxy

THREADS = 12


@fixture.needs_fuse
class ThreadIndex(fixture.Fixture):
    """A mount that shows several threads, which somebody follows through open files."""

    def begin(self, *, events):
        self.api, self.proxy = proxy.before_a_service(self)
        self.proxy.tells = events
        self.threads = [self.api.create('threads', title=f'T{i}', agent='bob', kind='help' if i % 2 else 'intro')['id']
                        for i in range(THREADS)]
        for number in range(3 * THREADS):
            self.message(self.threads[number % THREADS], f'message {number}')
        self.show(self.mount(self.proxy.url, options=('refresh=1',)))
        if events:
            metrics = self.shown.directory / '.playfs/metrics'
            self.eventually(lambda: 'playfs_events_live 1\n' in metrics.read_text(), 'the service tells of changes')

    def show(self, mount):
        self.shown = mount
        self.files = {}
        for thread in self.threads:
            for name in ('messages.md', 'messages.ndjson', 'thread.mbox'):
                file = open(mount.directory / 'threads' / thread / name, 'rb')
                self.addCleanup(file.close)
                file.read()
                self.files[thread, name] = file

    def message(self, thread, body):
        return self.api.create('messages', thread=thread, parent='', agent='bob', body=body, mentions=[], links=[])['id']

    def rendered(self):
        for line in (self.shown.directory / '.playfs/metrics').read_text().splitlines():
            if line.startswith('playfs_grown_files_total '):
                return int(line.split()[1])
        raise AssertionError('no count of what was rendered')

    def appears(self, thread, text):
        self.eventually(lambda: all(text in file.read().decode() for file in self.of(thread)), f'{text!r} appears')

    def of(self, thread):
        files = [file for (of, _), file in self.files.items() if of == thread]
        for file in files:
            os.fstat(file.fileno())
            file.seek(0)
        return files

    def costs_its_own_thread(self):
        first, *others = self.threads
        times = {key: os.fstat(file.fileno()).st_mtime_ns for key, file in self.files.items() if key[0] in others}
        before = self.rendered()
        for number in range(3):
            self.message(first, f'news {number}')
            self.appears(first, f'news {number}')
        # The three files of one thread, three times, and at most once more each time.
        self.assertGreaterEqual(self.rendered() - before, 9)
        self.assertLessEqual(self.rendered() - before, 2 * 9)
        self.assertEqual({key: os.fstat(file.fileno()).st_mtime_ns for key, file in self.files.items() if key[0] in others},
                         times)
        self.message(others[0], 'elsewhere')
        self.appears(others[0], 'elsewhere')

    def test_a_message_that_is_told_leaves_other_threads_alone(self):
        self.begin(events=True)
        self.costs_its_own_thread()

    def test_a_message_that_is_found_leaves_other_threads_alone(self):
        self.begin(events=False)
        self.costs_its_own_thread()

    def moves(self, moved, text):
        """A message of the first thread, which is shown there, to the second one."""
        old, new, *_ = self.threads
        self.appears(old, text)
        self.api.call('PATCH', f'/messages/{moved}', {'thread': new})
        self.appears(new, text)
        there = [self.shown.directory / 'threads' / thread for thread in (old, new)]
        self.eventually(lambda: text not in (there[0] / 'messages.md').read_text(), 'it has left')
        self.assertNotIn(f'{moved}.json', os.listdir(there[0] / 'messages'))
        self.assertIn(f'{moved}.json', os.listdir(there[1] / 'messages'))

    def test_a_message_that_moves_is_in_its_new_thread_only(self):
        self.begin(events=True)
        self.moves(self.message(self.threads[0], 'moves'), 'moves')

    def test_a_message_that_moves_on_a_page_that_no_update_reads_does_so_too(self):
        self.begin(events=True)
        moved = self.message(self.threads[0], 'moves late')
        for number in range(250):
            self.message(self.threads[-1], f'later {number}')
        self.appears(self.threads[-1], 'later 249')
        self.moves(moved, 'moves late')

    def test_two_mounts_of_one_cache_show_the_same(self):
        self.begin(events=True)
        other = self.mount(self.proxy.url, 'second', options=('refresh=1',))
        first = self.threads[0]
        for number in range(3):
            self.message(first, f'both {number}')
            self.appears(first, f'both {number}')
            path = other.directory / 'threads' / first / 'messages.ndjson'
            self.eventually(lambda n=number, at=path: f'both {n}' in at.read_text(), 'the other has it, too')
        texts = [(mount.directory / 'threads' / first / 'messages.ndjson').read_text() for mount in (self.shown, other)]
        self.assertEqual(texts[0], texts[1])
        ids = [json.loads(line)['id'] for line in texts[0].splitlines()]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == '__main__':
    fixture.main()
