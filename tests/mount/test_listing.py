#!/usr/bin/env python3
"""Listings cost in proportion to what is new, not to what exists; measured in requests and bytes.

PLAYFS_SCALE=100000 python3 tests/mount/test_listing.py lists that many projects, and reports requests, bytes and
memory.
"""
import concurrent.futures
import http.client
import json
import math
import os

import proxy
import fixture

SCALE = int(os.environ.get('PLAYFS_SCALE', 430))
REVISIONS = int(os.environ.get('PLAYFS_SCALE_REVISIONS', 250 if SCALE < 1000 else 1000))
PAGE = 100
CREATED = 30


def pages(count):
    return math.ceil(count / PAGE)


@fixture.needs_fuse
class Listing(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.counter = proxy.before_a_service(self)

    def create_many(self, collection, bodies):
        def create_some(some):
            connection = http.client.HTTPConnection(self.api.origin.removeprefix('http://'))
            ids = []
            for body in some:
                connection.request('POST', f'/.site/data/{collection}', json.dumps(body),
                                   {'Content-Type': 'application/json', 'Origin': self.api.origin})
                ids.append(json.load(connection.getresponse())['record']['id'])
            connection.close()
            return ids

        workers = 16 if len(bodies) > 5000 else 4
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return [made for some in pool.map(create_some, [bodies[n::workers] for n in range(workers)]) for made in some]

    def report(self, what, count, mount, **more):
        figures = {'requests': len(count.requests), 'bytes': count.bytes, 'rss_mib': fixture.memory(mount.process) >> 20,
                   'peak_mib': fixture.memory(mount.process, 'VmHWM') >> 20, **more}
        print(what, json.dumps(figures), flush=True)

    def list(self, mount, place):
        return set(os.listdir(mount.directory / place))

    def test_a_list_that_lost_its_beginning_is_read_again(self):
        """The stored list may be cleared or evicted while a process knows all of it."""
        ids = set(self.create_many('projects', [{'name': f'project {n}'} for n in range(151)]))
        fixed = {'new', 'by-name'}
        for options in (('refresh=1',), ('refresh=1', 'cache_size=60000')):
            mount = self.mount(self.counter.url, options=options)
            self.assertEqual(self.list(mount, 'projects') - fixed, ids)
            self.playfs('cache', 'clear')
            ids.add(self.api.create('projects', name='one more')['id'])
            self.eventually(lambda: self.list(mount, 'projects') - fixed == ids, 'the new one is listed')
            mount.unmount()
            for _ in range(2):
                mount = self.mount(self.counter.url, options=options)
                self.assertEqual(len(self.list(mount, 'projects') - fixed), len(ids))
                self.assertEqual(self.list(mount, 'projects') - fixed, ids)
                mount.unmount()

    def test_projects(self):
        ids = set(self.create_many('projects', [{'name': f'project {n}'} for n in range(SCALE)]))
        self.out_of_time.cancel()
        mount = self.mount(self.counter.url, options=('refresh=1',))
        self.report('mounted', proxy.Count(), mount)
        fixed = {'new', 'by-name'}
        with self.counter.counting() as first:
            self.assertEqual(self.list(mount, 'projects') - fixed, ids)
        self.report(f'first ls of {SCALE} projects', first, mount)
        self.assertEqual(len(first.requests), pages(SCALE))
        with self.counter.counting() as by_name:
            self.assertEqual(len(self.list(mount, 'projects/by-name')), SCALE)
        self.assertEqual(len([line for line in by_name.requests if 'cursor=' not in line]), 1)
        with self.counter.counting() as entering:
            for project in list(ids)[:50]:
                self.assertTrue((mount.directory / 'projects' / project).is_dir())
        self.assertEqual(entering.requests, [], 'what is listed is known')
        with self.counter.counting() as found:
            self.assertEqual((mount.directory / 'projects/by-name/project 7').is_symlink(), True)
        self.assertEqual(found.requests, [])
        mount.unmount()

        mount = self.mount(self.counter.url, options=('refresh=1',))
        with self.counter.counting() as second:
            self.assertEqual(self.list(mount, 'projects') - fixed, ids)
        self.report('ls after a remount, nothing new', second, mount)
        self.assertEqual(len(second.requests), 1)
        ids |= set(self.create_many('projects', [{'name': f'new {n}'} for n in range(10)]))

        def listed():
            with self.counter.counting() as third:
                same = self.list(mount, 'projects') - fixed == ids
            if third.requests:
                # Besides, now and then, an older page for its names.
                self.assertEqual(len([line for line in third.requests if 'cursor=' not in line]), 1)
                self.report('ls with 10 new ones', third, mount)
            return same

        self.eventually(listed, 'the new ones appear')
        # Other collections share this.
        with self.counter.counting() as records:
            self.assertEqual(len(self.list(mount, 'records/projects')), SCALE + 10)
        self.assertEqual(len([line for line in records.requests if 'cursor=' not in line]), 1)

    def test_a_name_that_changes_far_back_in_the_list_is_seen_by_who_lists(self):
        ids = self.create_many('projects', [{'name': f'project {n}'} for n in range(250)])
        mount = self.mount(self.counter.url, options=('refresh=1',))
        by_name = mount.directory / 'projects/by-name'
        self.assertEqual(len(os.listdir(by_name)), 250)
        for project, name in ((ids[0], 'oldest'), (ids[120], 'in the middle')):
            self.api.call('PATCH', f'/projects/{project}', {'name': name})
        self.eventually(lambda: {'oldest', 'in the middle'} <= set(os.listdir(by_name)), 'both are seen')
        self.assertEqual(len(os.listdir(by_name)), 250)
        self.assertEqual((by_name / 'oldest').resolve().name, ids[0])

    def test_what_one_creates_is_there_when_the_call_returns(self):
        mount = self.mount(self.counter.url, options=('refresh=600',))
        top, records = mount.directory / 'projects', mount.directory / 'records/projects'
        for n in range(CREATED):
            listed = [len(os.listdir(place)) for place in (top, top / 'by-name', records)]
            (top / 'new').write_text(json.dumps({'name': f'project {n}'}))
            self.assertIn(f'project {n}', os.listdir(top / 'by-name'))
            self.assertTrue((top / 'by-name' / f'project {n}' / 'project.json').exists())
            self.assertEqual([len(os.listdir(place)) for place in (top, top / 'by-name', records)],
                             [count + 1 for count in listed])
        self.api.create('projects', name='of somebody else')
        mount.unmount()
        mount = self.mount(self.counter.url, options=('refresh=600',))
        self.assertEqual(len(self.list(mount, 'projects/by-name')), CREATED + 1, 'nothing is missing, nothing twice')

    def test_a_project_has_the_name_that_it_has_now(self):
        ids = self.create_many('projects', [{'name': f'old {n}'} for n in range(PAGE + 20)])
        newest, oldest = (self.api.all('projects')[place]['id'] for place in (0, -1))
        self.assertIn(newest, ids)
        name = {project: self.api.get('projects', project)['name'] for project in (newest, oldest)}
        mount = self.mount(self.counter.url, options=('refresh=1',))
        by_name = mount.directory / 'projects/by-name'
        for project in (newest, oldest):
            self.assertEqual(os.readlink(by_name / name[project]), f'../{project}')
            self.api.call('PATCH', f'/projects/{project}', {'name': f'new name of {project}'})

        def is_renamed(project):
            return (os.path.lexists(by_name / f'new name of {project}'), os.path.lexists(by_name / name[project])) \
                == (True, False)

        self.eventually(lambda: is_renamed(newest), 'by its new name, and by it alone')
        # One on no page that is reread: as soon as its record is read.
        self.assertIn(f'new name of {oldest}', (mount.directory / 'projects' / oldest / 'project.json').read_text())
        self.eventually(lambda: is_renamed(oldest), 'the old one too')
        self.assertIn(f'new name of {oldest}', os.listdir(by_name))

    def chain(self, project, length, parent=None):
        for n in range(length):
            parent = self.api.create('revisions', project=project, parents=[parent] if parent else [], agent='x',
                                     message=f'step {n}', manifest={'files': {}}, state={})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': parent})
        return parent

    def test_revisions(self):
        long = self.api.create('projects', name='long')['id']
        last = self.chain(long, REVISIONS)
        short = self.api.create('projects', name='short')['id']
        self.chain(short, 5)
        mount = self.mount(self.counter.url, options=('refresh=600',))
        with self.counter.counting() as log:
            self.assertEqual(len((mount.directory / 'projects' / short / 'log.ndjson').read_text().splitlines()), 5)
        self.assertEqual(len(log.requests), 1 + 5, 'the head, and each once: not the revisions of others')
        with self.counter.counting() as by_pages:
            self.assertEqual(len(self.list(mount, f'projects/{short}/revisions')), 5)
        self.report('ls of 5 revisions', by_pages, mount)
        self.assertLessEqual(len(by_pages.requests), 1 + pages(REVISIONS + 5))
        with self.counter.counting() as newest:
            self.assertEqual(len(self.list(mount, f'projects/{long}/revisions')), REVISIONS)
        self.report(f'ls of {REVISIONS} revisions', newest, mount)
        self.assertLessEqual(len(newest.requests), 2, 'its record, and the newest page: the list is here')
        with self.counter.counting() as again:
            self.assertEqual(len(self.list(mount, f'projects/{long}/revisions')), REVISIONS)
        self.assertEqual(again.requests, [])
        mount.unmount()
        mount = self.mount(self.counter.url, options=('refresh=600',))
        with self.counter.counting() as second:
            self.assertEqual(len(self.list(mount, f'projects/{long}/revisions')), REVISIONS)
        self.report('ls of them after a remount', second, mount)
        self.assertEqual(len(second.requests), 1, 'the newest page')
        mount.unmount()
        self.chain(long, 10, parent=last)
        mount = self.mount(self.counter.url, options=('refresh=600',))
        with self.counter.counting() as more:
            self.assertEqual(len(self.list(mount, f'projects/{long}/revisions')), REVISIONS + 10)
        self.report('ls of them with 10 new', more, mount)
        self.assertEqual(len(more.requests), 1, 'the newest page has them all')


if __name__ == '__main__':
    fixture.main()
