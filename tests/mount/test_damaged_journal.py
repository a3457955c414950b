#!/usr/bin/env python3
"""A damaged or missing publication journal: nothing wrong is sent, nothing is sent twice, and what may have been
published returns to the stage only after it was looked for at the service."""
import json

import proxy
import fixture

CONTENT = 'every word of this is mine\n'


@fixture.needs_fuse
class DamagedJournal(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.proxy = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(self.proxy.close)
        self.project = self.api.create('projects', name='p')['id']
        self.mounted = self.mount(self.proxy.url)

    @property
    def work(self):
        return self.mounted.directory / 'projects' / self.project / 'work'

    def status(self):
        return json.loads((self.work.parent / 'status.json').read_text())

    def errors(self):
        return (self.mounted.directory / '.playfs/errors.ndjson').read_text()

    def leave_it_about_to_be_posted(self, fate=lambda request: (503, 'later') if request.startswith('POST') else None):
        """Unmounts in the middle of a commit; the journal's path."""
        self.proxy.fate = fate
        (self.work / 'file').write_text(CONTENT)
        self.playfs('commit', '--no-wait', '-m', 'm', self.work, check=False)
        self.eventually(lambda: self.status()['publication']['waiting_for'], 'the POST is refused')
        self.mounted.unmount()
        self.proxy.fate = lambda request: None
        journal, = self.home.glob('ann/**/publish.db')
        return journal

    def stored_unheard(self):
        """A fate: the revision is stored, but neither that answer nor a later one arrives. And the list of POSTs."""
        posts = []

        def fate(request):
            if posts:
                return (503, 'later')
            if request == 'POST /.site/data/revisions':
                posts.append(request)
                return 'lose reply'
            return None

        return fate, posts

    def leave_it_posted(self):
        """The same, with the revision stored, unknown to this client."""
        fate, _ = self.stored_unheard()
        return self.leave_it_about_to_be_posted(fate)

    def assert_what_was_stored_is_published(self):
        self.mounted = self.mount(self.proxy.url)
        self.assertEqual((self.work / 'file').read_text(), CONTENT)
        revision, = self.api.all('revisions')
        self.eventually(lambda: self.api.get('projects', self.project).get('latest_revision'), 'head is moved to it')
        self.eventually(lambda: self.status()['base'] == fixture.fields(revision)['id'], 'the tree stands on it')
        self.assertEqual(self.status()['staged'], [], 'so nothing can be discarded that head has')
        self.assertEqual(len(self.api.all('revisions')), 1)
        self.assertEqual((self.work / 'file').read_text(), CONTENT)

    def assert_nothing_wrong_is_sent(self, journal):
        said = self.playfs('doctor', '--json', check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn(str(journal), said.stdout)
        self.mounted = self.mount(self.proxy.url)
        self.eventually(lambda: 'damaged-1' in self.errors(), 'the reason is said')
        self.eventually(lambda: 'was lost' in str(self.status()['publication']['waiting_for']), 'it is looked for')
        self.assertEqual(self.api.all('revisions'), [], 'and not sent')
        self.assertNotEqual(self.playfs('discard', self.work, check=False).returncode, 0, 'it may be published')
        self.assertEqual((self.work / 'file').read_text(), CONTENT)
        self.assertTrue((journal.parent / 'damaged-1/publish.db').exists())
        (self.work / 'more').write_text('more\n')
        self.mounted.unmount()
        self.assertIn('damaged-1', self.playfs('doctor', '--json', check=False).stdout)

    def test_a_changed_byte_of_the_body_is_not_posted(self):
        journal = self.leave_it_about_to_be_posted()
        bytes_of_it = journal.read_bytes()
        self.assertIn(b'every word', bytes_of_it)
        journal.write_bytes(bytes_of_it.replace(b'every word', b'every Word'))
        self.assert_nothing_wrong_is_sent(journal)

    def test_a_file_that_is_no_journal_at_all_keeps_no_tree_from_opening(self):
        journal = self.leave_it_about_to_be_posted()
        journal.write_bytes(b'x' * 20_000)
        self.assert_nothing_wrong_is_sent(journal)

    def test_what_was_stored_is_found_beside_a_damaged_journal(self):
        journal = self.leave_it_posted()
        journal.write_bytes(journal.read_bytes().replace(b'every word', b'every Word'))
        self.assert_what_was_stored_is_published()

    def test_what_was_stored_is_found_without_a_journal(self):
        journal = self.leave_it_posted()
        for part in journal.parent.glob('publish.db*'):
            part.unlink()
        self.assert_what_was_stored_is_published()

    def test_nobody_has_to_look_at_the_tree_for_that(self):
        journal = self.leave_it_posted()
        for part in journal.parent.glob('publish.db*'):
            part.unlink()
        self.mounted = self.mount(self.proxy.url)
        self.eventually(lambda: self.api.get('projects', self.project).get('latest_revision'), 'head is moved to it')

    def test_an_older_journal_gives_nothing_back_that_was_sent(self):
        """A user restores an old file, or the end of the database's log was lost."""
        (self.work / 'file').write_text(CONTENT)
        self.proxy.fate = lambda request: (503, 'later')
        self.playfs('commit', '--no-wait', '-m', 'm', self.work, check=False)
        self.eventually(lambda: self.status()['publication']['waiting_for'], 'it cannot begin')
        self.mounted.unmount()
        journal, = self.home.glob('ann/**/publish.db')
        older = journal.read_bytes()
        self.proxy.fate, posts = self.stored_unheard()
        self.mounted = self.mount(self.proxy.url)
        self.work.stat()
        self.eventually(lambda: posts, 'it is sent')
        self.eventually(lambda: self.status()['publication']['waiting_for'], 'it waits')
        self.mounted.unmount()
        for part in ('publish.db-wal', 'publish.db-shm'):
            (journal.parent / part).unlink(missing_ok=True)
        journal.write_bytes(older)
        self.mounted = self.mount(self.proxy.url)
        self.work.stat()
        self.eventually(lambda: self.status()['publication']['waiting_for'], 'it is looked for')
        self.playfs('commit', '--cancel', self.work, check=False)
        self.assertTrue(all(change['pending'] for change in self.status()['staged']), 'it may be published')
        self.mounted.unmount()
        self.proxy.fate = lambda request: None
        self.assert_what_was_stored_is_published()


if __name__ == '__main__':
    fixture.main()
