#!/usr/bin/env python3
"""How many requests reading costs, and how many sequential round trips. Counted, never timed."""

import json
import os
import subprocess

import proxy
import fixture
from projects import metrics, publish, some_files

ROUNDS = 5
CHUNKS = 50
QUIET = 0.5  # seconds without a request after which none is still to come


@fixture.needs_fuse
class Reading(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.counter = proxy.before_a_service(self)

    def grep(self, place, word='content', **options):
        return self.command('grep', '-r', word, f'{place}/', **options).stdout.splitlines()

    def test_a_cold_grep_costs_each_chunk_and_two_requests_in_three_round_trips(self):
        project = publish(self.api, 'cold', some_files(CHUNKS))
        with self.counter.counting() as mounting:
            mount = self.mount(self.counter.url, 'ann', ('refresh=600',))
        self.assertEqual(mounting.requests, [], 'mounting asks nothing')
        for place in ('work', 'head'):
            with self.subTest(place):
                if place == 'head':
                    mount = self.mount(self.counter.url, 'bob', ('refresh=600',))
                with self.counter.counting(QUIET) as cold:
                    found = self.grep(mount.directory / 'projects' / project / place)
                self.assertEqual(len(found), CHUNKS)
                self.assertEqual(len(cold.of('file_chunks/')), CHUNKS)
                self.assertEqual(len(cold.requests), CHUNKS + 2, cold.requests[:5])
                self.assertEqual(cold.rounds, 3, cold.by_round)

    def test_a_path_by_name_costs_one_listing_more(self):
        publish(self.api, 'cold', some_files(CHUNKS))
        mount = self.mount(self.counter.url, 'ann', ('refresh=600',))
        with self.counter.counting(QUIET) as cold:
            self.assertEqual(len(self.grep(mount.directory / 'projects/by-name/cold/head')), CHUNKS)
        self.assertEqual(len(cold.of('projects?')), 1)
        self.assertLessEqual(len(cold.requests), CHUNKS + 3)
        self.assertLessEqual(cold.rounds, 4, cold.by_round)

    def test_a_second_mount_on_the_same_cache_asks_for_the_head_alone(self):
        project = publish(self.api, 'kept', some_files(CHUNKS))
        first = self.mount(self.counter.url, 'ann', ('refresh=600',))
        self.assertEqual(len(self.grep(first.directory / 'projects' / project / 'work')), CHUNKS)
        first.unmount()
        with self.counter.counting() as again:
            second = self.mount(self.counter.url, 'ann', ('refresh=600',))
            self.assertEqual(len(self.grep(second.directory / 'projects' / project / 'work')), CHUNKS)
        self.assertEqual(again.requests, [f'GET /.site/data/projects/{project}'])

    def test_a_warm_read_reaches_nobody(self):
        project = publish(self.api, 'warm', some_files(CHUNKS))
        mount = self.mount(self.counter.url, 'ann', ('refresh=600',))
        place = mount.directory / 'projects' / project / 'work'
        self.grep(place)
        self.command('find', f'{place}/', '-ls')
        with self.counter.counting() as warm:
            asked = [self.asked_by_a_warm_round(mount, place) for _ in range(ROUNDS)]
        self.assertEqual(warm.requests, [])
        # What remains is opening the metrics themselves. The best round counts: a kernel that is short of memory may
        # drop a name at any time.
        self.assertLessEqual(min(sum(each.values()) for each in asked), 3, asked)

    def asked_by_a_warm_round(self, mount, place):
        before = metrics(mount)
        self.assertEqual(len(self.grep(place)), CHUNKS)
        self.command('find', f'{place}/', '-ls')
        self.command('tar', '-cf', '/dev/null', '-C', place, '.')
        asked = {name: count - before.get(name, 0) for name, count in metrics(mount).items()}
        # The kernel does not cache statfs(2), with which find and tar identify the file system.
        asked.pop('status', None)
        asked.pop('forget', None)  # sent asynchronously whenever the kernel likes
        return asked

    def test_a_read_only_mount_is_not_asked_for_holes_nor_for_times(self):
        large = ('content ' * 20_000)[:150_000]  # grep looks for holes in files longer than its buffer
        project = publish(self.api, 'large', {**some_files(5), 'large': large, 'larger': large + large})
        mount = self.mount(self.counter.url, 'ann', ('refresh=600', 'ro'))
        place = mount.directory / 'projects' / project / 'head'
        before = metrics(mount)
        for _ in range(2):
            self.command('grep', '-rc', 'content', f'{place}/')
        self.command('find', f'{place}/', '-ls')
        asked = {name: count - before.get(name, 0) for name, count in metrics(mount).items()}
        self.assertEqual(asked.get('seek', 0), 0, asked)
        self.assertEqual(asked.get('get_attributes', 0), 0, asked)

    def test_a_path_through_a_link_asks_for_its_target_once(self):
        project = publish(self.api, 'linked', some_files(5))
        place = self.mount(self.counter.url, 'ann', ('refresh=600',)).directory / 'projects' / project
        mount = self.mounts[-1]
        before = metrics(mount)
        for _ in range(ROUNDS):
            self.grep(place / 'head')
        self.assertEqual(metrics(mount).get('read_link', 0) - before.get('read_link', 0), 1)
        publish(self.api, 'Change all', some_files(5, 'changed'), project)
        self.playfs('update', place / 'work')
        self.eventually(lambda: len(self.grep(place / 'head', 'changed')) == 5, 'another head is another link')

    def test_without_prefetch_only_what_is_read_is_fetched(self):
        project = publish(self.api, 'lean', some_files(CHUNKS))
        mount = self.mount(self.counter.url, 'ann', ('refresh=600', 'noprefetch'))
        place = mount.directory / 'projects' / project / 'head'
        with self.counter.counting(QUIET) as some:
            for n in (3, 4):
                self.assertEqual((place / f'dir{n}/file{n}').read_text(), f'content {n}\n')
        self.assertEqual(len(some.of('file_chunks/')), 2)

    def test_remote_changes_come_one_by_one_and_open_files_keep_their_bytes(self):
        before = some_files(30)
        project = publish(self.api, 'moving', before)
        mount = self.mount(self.counter.url, 'ann', ('refresh=1',))
        place = mount.directory / 'projects' / project / 'work'
        self.grep(place)
        self.command('find', f'{place}/', '-ls')
        watcher = subprocess.Popen([self.playfs_path, 'watch', '-n', '1', str(place)], env=self.environment('ann'),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(watcher.stderr.close)
        self.addCleanup(watcher.wait)
        self.addCleanup(watcher.kill)
        with open(place / 'dir1/file1', encoding='utf-8') as held:
            self.assertIn('Watching', watcher.stderr.readline())
            old = metrics(mount)
            publish(self.api, 'Change one', {**before, 'dir1/file1': 'changed 1\n'}, project)
            head = self.api.get('projects', project)['latest_revision']
            self.eventually(lambda: (place / 'dir1/file1').read_text() == 'changed 1\n', 'the change arrives')
            self.assertEqual(held.read(), 'content 1\n')
        self.assertEqual(len(self.grep(place)), 29)
        self.command('find', f'{place}/', '-ls')
        read = metrics(mount).get('read', 0) - old.get('read', 0)
        self.assertLessEqual(read, 8, 'the other files are read from the kernel, as before')
        event = json.loads(watcher.stdout.readline())
        self.assertEqual((event['kind'], event['project'], event['revision'], event['message']),
                         ('head_moved', project, head, 'Change one'))
        self.assertEqual(watcher.wait(fixture.COMMAND_LIMIT), 0)

    def test_only_projects_in_use_are_asked_for_and_conditionally(self):
        used = publish(self.api, 'used', some_files(3))
        publish(self.api, 'unused', some_files(3))
        mount = self.mount(self.counter.url, 'ann', ('refresh=0.2',))
        self.assertEqual(set(os.listdir(mount.directory / 'projects/by-name')), {'used', 'unused'})
        self.grep(mount.directory / 'projects' / used / 'work')
        before = self.counter.requests_so_far()
        with self.counter.counting() as polls:
            self.eventually(lambda: self.counter.requests_so_far() > before + 10, 'its head is asked for')
        self.assertEqual(set(polls.requests), {f'GET /.site/data/projects/{used}'})
        self.assertEqual(set(polls.statuses[1:-1]), {304})


if __name__ == '__main__':
    fixture.main()
