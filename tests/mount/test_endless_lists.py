#!/usr/bin/env python3
"""A service with endless lists, or pages other than requested: what a listing keeps is bounded.

The bound is in bytes, whatever they consist of: the list (20 MiB, SiteOptions::list_bytes), the names that a directory
derives from it, and the page that is being read.
"""
import json
import os
import urllib.parse

import proxy
import fixture

MEGABYTE = 1 << 20
MAY_GROW = 96 * MEGABYTE
PAGE = 100
MOST = 6_000  # pages; a longer list counts as endless


def record(number, **fields):
    # Newest first, as a list has to be.
    seconds = 2_000_000_000 - number
    return {'id': f'hostile{number:013}', 'created_at': f'{2000 + seconds // 31_536_000}-01-01T00:00:00Z', **fields}


@fixture.needs_fuse
class EndlessLists(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.counter = proxy.before_a_service(self)
        self.good = self.api.create('projects', name='good')['id']
        self.page = None
        self.pages = 0
        self.counter.fate = self.fate

    def fate(self, request):
        method, target = request.split(' ', 1)
        address = urllib.parse.urlsplit(target)
        if self.page is None or method != 'GET' or not address.path.endswith('/projects'):
            return None
        cursor = urllib.parse.parse_qs(address.query).get('cursor', ['0'])[0]
        self.pages += 1
        return 200, self.page(int(cursor.rstrip('x')))

    def listed(self, mount):
        """What `ls` shows once the list is complete, which may take longer than the kernel can wait."""
        found = []

        def came():
            try:
                found[:] = os.listdir(mount.directory / 'projects')
            except TimeoutError:
                return False
            return True

        self.eventually(came, 'the listing comes', limit=200)
        return found

    def grows(self, mount, look):
        fixture.forget_most_memory(mount.process)
        before = fixture.memory(mount.process)
        look()
        grown = fixture.memory(mount.process, 'VmHWM') - before
        print(f'{self.id()}: {self.pages} pages, {grown / MEGABYTE:.0f} MB', flush=True)
        self.assert_memory(grown, MAY_GROW)

    def errors(self, mount):
        """Except `ls` calls that timed out, since a slow machine takes longer than the kernel can wait."""
        lines = (mount.directory / '.playfs/errors.ndjson').read_text().splitlines()
        return [error for error in map(json.loads, lines) if error['code'] != 'timed_out']

    def endless(self, **fields):
        def page(number):
            records = [record(number * PAGE + n, **fields) for n in range(PAGE)]
            return json.dumps({'records': records, 'nextCursor': str(number + 1) if number < MOST else None})

        return page

    def the_newest_are_shown_and_that_there_are_more_is_told(self):
        self.out_of_time.cancel()
        mount = self.mount(self.counter.url, options=('refresh=600',))
        names = []
        self.grows(mount, lambda: names.extend(self.listed(mount)))
        self.assertLess(self.pages, MOST, 'it is not read to its end')
        newest = [record(number)['id'] for number in range(1000)]
        self.assertLessEqual(set(newest), set(names))
        told = [error for error in self.errors(mount) if error['subject'] == 'projects']
        self.assertEqual([error['code'] for error in told], ['refused_input'])
        self.assertIn(f'its newest {len(names) - 2} records are shown', told[0]['message'])
        # Unlisted projects exist all the same.
        self.assertTrue((mount.directory / 'projects' / self.good / 'status').exists())
        mount.unmount()

        # Another process neither reads it again nor forgets that it is incomplete.
        read = self.pages
        mount = self.mount(self.counter.url, options=('refresh=1',))
        self.grows(mount, lambda: self.assertEqual(set(self.listed(mount)), set(names)))
        self.assertLess(self.pages - read, 20)  # one per refresh, and the machine may be slow
        self.assertEqual([error['code'] for error in self.errors(mount)], ['refused_input'])
        listing = json.loads(self.playfs('ls', '--json', '--site', self.counter.url).stdout)
        self.assertEqual((listing['more'], len(listing['projects'])), (True, len(names) - 2))
        self.assertIn('The list is incomplete', self.playfs('ls', '--site', self.counter.url).stderr)

    def test_records_without_end(self):
        self.page = self.endless()
        self.the_newest_are_shown_and_that_there_are_more_is_told()

    def test_a_name_is_nobodys_while_older_projects_are_not_listed(self):
        self.page = self.endless(name='good')
        mount = self.mount(self.counter.url, options=('refresh=600',))
        self.listed(mount)
        self.assertEqual(os.listdir(mount.directory / 'projects/by-name'), [])
        self.assertFalse(os.path.lexists(mount.directory / 'projects/by-name/good'))
        mount.unmount()
        said = self.playfs('show', 'good', '--site', self.counter.url, check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn('another one may have the name', said.stderr)

    def test_records_with_long_names_without_end(self):
        self.page = self.endless(name='n' * 1000)
        self.the_newest_are_shown_and_that_there_are_more_is_told()

    def refused(self, why):
        mount = self.mount(self.counter.url, options=('refresh=1',))

        def look():
            with self.assertRaises(OSError):
                self.listed(mount)

        self.grows(mount, look)
        self.assertIn(why, self.errors(mount)[-1]['message'])
        # The mount still answers, and other projects are unaffected.
        self.assertTrue((mount.directory / 'projects' / self.good / 'status').exists())

    def test_cursors_that_are_longer_than_what_they_lead_to(self):
        self.page = lambda number: json.dumps({'records': [record(number)], 'nextCursor': str(number + 1) + 'x' * 4000})
        self.refused('does not end')

    def test_a_page_larger_than_pages_may_be(self):
        self.page = lambda number: json.dumps({'records': [record(n) for n in range(PAGE + 1)], 'nextCursor': None})
        self.refused('a page has 101 records, more than 100')

    def test_pages_as_dense_as_pages_can_be(self):
        # A parsed record takes more memory than its text.
        dense = json.dumps({'records': [record(n, data=[[]] * 6_500) for n in range(PAGE)], 'nextCursor': None},
                           separators=(',', ':'))
        self.page = lambda number: dense
        mount = self.mount(self.counter.url, options=('refresh=1',))
        self.grows(mount, lambda: self.assertEqual(len(self.listed(mount)), PAGE + 2))


if __name__ == '__main__':
    fixture.main()
