#!/usr/bin/env python3
"""The reply to a revision's POST is lost, and its retry refused: what may be published does not return to the stage."""
import json
import signal
import subprocess

import proxy
import fixture

REFUSALS = (401, 403, 404, 409, 423, 425)


@fixture.needs_fuse
class UnknownOutcome(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.project = self.api.create('projects', name='p')['id']
        self.mounted = self.mount(self.proxy.url)
        self.work = self.mounted.directory / 'projects' / self.project / 'work'

    def refuse_repetitions(self, status):
        """Loses the reply to the next revision's POST and refuses its retries. The returned list collects the POSTs."""
        posts = []

        def fate(request):
            if not request == 'POST /.site/data/revisions':
                return None
            posts.append(request)
            return 'lose reply' if len(posts) == 1 else (status, json.dumps({'error': 'no', 'code': 'refused'}))

        self.proxy.fate = fate
        return posts

    def test_what_was_stored_is_published_whatever_the_repetition_is_answered(self):
        for number, status in enumerate(REFUSALS, 1):
            posts = self.refuse_repetitions(status)
            (self.work / f'file-{status}').write_text('kept\n')
            committed = json.loads(self.playfs('commit', '--json', '-m', f'refused with {status}', self.work).stdout)
            self.assertEqual(committed['outcome'], 'published', status)
            self.assertGreater(len(posts), 1, 'the reply was lost, and the client tried again')
            self.assertEqual(len(self.api.all('revisions')), number)
            self.assertEqual(self.api.get('projects', self.project)['latest_revision'], committed['revision'])
            self.assertEqual((self.work / f'file-{status}').read_text(), 'kept\n')

    def test_a_commit_does_not_wait_for_a_log_that_cannot_be_read(self):
        self.refuse_repetitions(403)
        answer = self.proxy.fate
        refused = (403, json.dumps({'error': 'no', 'code': 'forbidden'}))
        self.proxy.fate = lambda request: refused if request.startswith('GET /.site/data/revisions') else answer(request)
        (self.work / 'file').write_text('kept\n')
        commit = subprocess.Popen([self.playfs_path, 'commit', '-m', 'in doubt', str(self.work)],
                                  env=self.environment('ann'), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(commit.kill)

        def status():
            return json.loads(self.playfs('status', '--json', self.work).stdout)

        def says_so():
            why = status()['publication']['waiting_for']
            return why and 'unknown whether' in why['message']

        self.eventually(says_so, 'status says that it is in doubt')
        text = self.playfs('status', self.work).stdout
        self.assertIn('it continues once', text)
        self.assertNotIn('--cancel', text, 'which would be too late')
        self.assertIsNone(commit.poll())
        commit.send_signal(signal.SIGINT)
        with commit.stderr:
            said = commit.stderr.read()
        self.assertEqual(commit.wait(fixture.COMMAND_LIMIT), 4, said)
        self.assertIn('published in the background', said)
        # No command returns it to the stage.
        self.assertIn('Too late', self.playfs('commit', '--cancel', self.work, check=False).stderr)
        self.playfs('discard', self.work, check=False)
        self.assertEqual((self.work / 'file').read_text(), 'kept\n')
        # Once the log can be read it is settled, with the stored revision.
        self.proxy.fate = lambda request: None

        def head():
            return self.api.get('projects', self.project).get('latest_revision')

        self.eventually(head, 'it is published')
        self.assertEqual([fixture.fields(record)['id'] for record in self.api.all('revisions')], [head()])
        self.eventually(lambda: status()['base'] == head() and not status()['staged'], 'the tree stands on it')
        self.assertEqual((self.work / 'file').read_text(), 'kept\n')

    def test_a_refusal_of_the_only_attempt_gives_the_stage_back_at_once(self):
        self.proxy.fate = lambda request: (403, '{"code":"forbidden"}') if 'POST' in request else None
        (self.work / 'file').write_text('kept\n')
        self.playfs('commit', '-m', 'refused', self.work, check=False)
        self.assertEqual(self.api.all('revisions'), [])
        self.proxy.fate = lambda request: None
        self.playfs('discard', self.work / 'file')
        self.assertFalse((self.work / 'file').exists())


if __name__ == '__main__':
    fixture.main()
