#!/usr/bin/env python3
"""A service that lies to publishers in every way at once: nothing written is lost, and once it stops lying, everything
gets published."""
import concurrent.futures
import json
import time

import projects
import proxy
import fixture
import site_of_lies
import write_lies

LONGEST_REST = 300  # until a commit that failed again and again is retried
HONEST = 'honest\n' * 4000


def text_of(name):
    """Text of several chunks that say whose they are."""
    return f'{name}\n' * (20_000 // len(name))


@fixture.needs_fuse
class LyingWrites(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, counting = proxy.before_a_service(self)
        self.site, trap = site_of_lies.HostileSite(counting), site_of_lies.Trap(self)
        self.honest = projects.publish(self.api, 'honest', {'f': HONEST})
        self.honest_head = self.head_of(self.honest)
        chunk = self.manifest_of(self.honest)['files']['f']['c'][0]
        self.lies = write_lies.table(trap.url, self.honest_head, chunk)
        self.ids = {name: projects.publish(self.api, name, {'f': 'published before\n'}) for name in self.lies}
        self.was_told = set()
        self.trap = trap
        for method, collection in (('POST', 'revisions'), ('POST', 'file_chunks')):
            self.site.answers[method, collection, None] = (
                lambda body, ask, request=f'{method} {collection}': self.lie_by_content(request, body, ask))
        for name, ident in self.ids.items():
            self.site.answers['PATCH', 'projects', ident] = (
                lambda body, ask, name=name: self.lie(name, 'PATCH projects', body, ask))
        self.mounted = self.mount(counting.url, options=('refresh=1',))

    # The lies.

    def lie(self, name, request, body, ask):
        told_to, answer = self.lies[name]
        if told_to != request:
            return None
        self.was_told.add(name)
        return answer(body, ask, self.ids[name])

    def lie_by_content(self, request, body, ask):
        record = json.loads(body)
        for name, ident in self.ids.items():
            is_its_own = record['project'] == ident if request == 'POST revisions' else f'{name}\n' in record['content']
            if is_its_own:
                return self.lie(name, request, body, ask)
        return None

    # What is visible.

    def head_of(self, project):
        return self.api.get('projects', project)['latest_revision']

    def manifest_of(self, project):
        return self.api.get('revisions', self.head_of(project))['manifest']

    def work(self, name):
        return self.mounted.directory / 'projects' / self.ids[name] / 'work'

    def nothing_is_lost(self):
        seen = {name: (self.work(name) / 'mine').read_text() == text_of(name) for name in self.lies}
        self.assertEqual([name for name, is_whole in seen.items() if not is_whole], [])
        self.honest_one_is_exact()

    def honest_one_is_exact(self):
        self.assertEqual((self.mounted.directory / 'projects' / self.honest / 'head/f').read_text(), HONEST)

    def is_published(self, name):
        entry = self.manifest_of(self.ids[name])['files'].get('mine', {})
        return ''.join(self.api.get('file_chunks', part)['content'] for part in entry.get('c', [])) == text_of(name)

    def says_that_it_is_not_shown(self, name):
        return 'does not show what it stored' in (self.work(name).parent / 'status').read_text()

    def commit(self, name, *options):
        """It may fail, with a reason and an exit code that scripts may expect."""
        done = self.command(self.playfs_path, 'commit', '-m', name, *options, self.work(name), check=False)
        self.assertIn(done.returncode, (0, 1, 3, 4, 5, 6, 7), done.stderr)
        self.assertTrue(done.returncode == 0 or done.stderr, name)

    def publish_in_the_end(self, name):
        def is_there():
            if self.is_published(name):
                return True
            self.commit(name, '--no-wait')
            # Moves head to revisions that were refused as head; fails while a commit is under way.
            self.command(self.playfs_path, 'update', self.work(name), check=False)
            time.sleep(1)
            return False

        self.eventually(is_there, f'{name}: it is published', limit=LONGEST_REST)

    def test_nothing_is_lost_and_all_is_published_in_the_end(self):
        self.honest_one_is_exact()
        with concurrent.futures.ThreadPoolExecutor(8) as users:
            for name in self.lies:
                (self.work(name) / 'mine').write_text(text_of(name))
            list(users.map(lambda name: self.commit(name, '--no-wait'), self.lies))
            self.eventually(lambda: self.was_told == set(self.lies), 'each lie is told')
            self.eventually(lambda: all(map(self.says_that_it_is_not_shown, write_lies.LOOKED_FOR)), 'it is looked for')
            self.nothing_is_lost()
            self.site.answers.clear()
            self.nothing_is_lost()
            list(users.map(self.publish_in_the_end, [name for name in self.lies if name not in write_lies.LOOKED_FOR]))
        self.nothing_is_lost()
        self.assertEqual(self.head_of(self.honest), self.honest_head)
        self.assertEqual(self.trap.heard, [])
        self.mounted.unmount()
        self.assertEqual(self.mounted.process.returncode, 0)


if __name__ == '__main__':
    fixture.main()
