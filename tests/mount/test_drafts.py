#!/usr/bin/env python3
"""A text whose close(2) returned 0 is sent, or kept for its writer, even if the mount is killed in the same moment."""
import contextlib
import json
import os
import signal
import subprocess
import time

import fixture
import proxy


@fixture.needs_fuse
class Drafts(fixture.Fixture):
    options = ('refresh=1',)

    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.talk = self.api.create('threads', title='Hello', agent='bob', kind='discussion')['id']
        self.ann = self.mount(self.proxy.url, options=self.options)

    def again(self):
        """The next mount."""
        self.ann.process.wait(fixture.COMMAND_LIMIT)
        self.ann.end()
        self.ann = self.mount(self.proxy.url, options=self.options)

    def state(self, pattern):
        return list((self.home / 'ann/state').rglob(f'=requests/{pattern}'))

    def unsent(self):
        """The texts that are kept."""
        return [file.read_text() for file in self.state('unsent/*.txt')]

    def errors(self):
        return [json.loads(line) for line in (self.ann.directory / '.playfs/errors.ndjson').read_text().splitlines()]

    def write_and_kill(self, path, pieces, wait=0.0, close=True):
        """All calls but the last have returned when the mount dies."""
        file = os.open(self.ann.directory / path, os.O_WRONLY | os.O_TRUNC)
        for piece in pieces:
            os.write(file, piece)
        if close:
            os.close(file)
        if wait:
            time.sleep(wait)
        os.kill(self.ann.process.pid, signal.SIGKILL)
        if not close:
            self.ann.process.wait(fixture.COMMAND_LIMIT)
            with contextlib.suppress(OSError):
                os.close(file)

    def test_a_kill_right_after_the_close_loses_nothing(self):
        """Whether the mount had seen the close or not: the text is sent once, or kept, and not both."""
        written, wherever = [], {'sent': 0, 'kept': 0}
        for number, wait in enumerate([0, 0, 0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.03, 0.3]):
            title, body = f'a title {number}', f'a body {number}'
            for path, text in ('threads/new', title), (f'threads/{self.talk}/reply', body):
                with self.subTest(path=path, wait=wait):
                    self.write_and_kill(path, [text[:4].encode(), text[4:].encode()], wait)
                    self.again()
                    written.append(text)

                    def places(text=text):
                        records = self.api.all('threads') + self.api.all('messages')
                        fields = [each.get('title') or each.get('body') for each in map(fixture.fields, records)]
                        return fields.count(text), self.unsent().count(text)

                    self.eventually(lambda: sum(places()) == 1, f'{text} is sent or kept')
                    self.eventually(lambda: not self.state('*.draft') and not self.state('*.json'), 'it is settled')
                    self.assertEqual(sum(places()), 1)
                    wherever['sent' if places()[0] else 'kept'] += 1
        print(json.dumps(wherever), flush=True)
        self.assertGreater(wherever['sent'], 0, 'a text that was journalled is sent')

    def test_what_was_kept_can_be_sent(self):
        # Whoever closed it can only say that he did, so the mount dies before it could see that.
        self.write_and_kill(f'threads/{self.talk}/reply', ['half a text, ü\n'.encode()], close=False)
        (draft,) = self.state('*.draft')
        self.assertEqual(draft.stat().st_mode & 0o777, 0o600)
        self.again()
        self.eventually(lambda: self.unsent() == ['half a text, ü\n'], 'it is kept')
        self.eventually(self.errors, 'it is told')
        (error,) = self.errors()
        (kept,) = self.state('unsent/*.txt')
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.assertEqual(error['subject'], f'threads/{self.talk}/reply')
        self.assertIn(str(kept), error['message'])
        self.assertEqual((self.state('*.draft'), self.api.all('messages')), ([], []))
        command = error['hint'].split('at the top of the mount: ')[1]
        subprocess.run(['sh', '-ec', command], cwd=self.ann.directory, check=True, timeout=fixture.COMMAND_LIMIT)
        self.eventually(lambda: self.api.all('messages'), 'it is sent')
        self.assertEqual(fixture.fields(self.api.all('messages')[0])['body'], 'half a text, ü')
        self.again_quietly()
        self.assertEqual(self.errors(), [], 'it is told once')

    def again_quietly(self):
        self.ann.unmount()
        self.ann = self.mount(self.proxy.url, options=self.options)

    def test_a_commit_loses_nothing(self):
        project = json.loads(self.playfs('init', 'mine', '--json', '--site', self.proxy.url).stdout)['project']
        project = project if isinstance(project, str) else project['id']
        kept = 0
        for number, wait in enumerate([0, 0, 0.5]):
            message = f'commit {number}'
            (self.ann.directory / f'projects/{project}/work/file').write_text(message)
            self.write_and_kill(f'projects/{project}/commit', [message.encode()], wait)
            self.again()

            def places(message=message):
                (self.ann.directory / f'projects/{project}/work').stat()  # goes on with what is journalled
                return [fixture.fields(each)['message'] for each in self.api.all('revisions')].count(message), \
                    self.unsent().count(message)

            self.eventually(lambda: sum(places()) == 1, f'{message} is published or kept')
            kept += places()[1]
            self.assertEqual((self.ann.directory / f'projects/{project}/work/file').read_text(), message)
        self.assertLess(kept, 3, 'what was journalled is published')

    def test_nothing_is_left_of_what_had_its_outcome(self):
        reply = self.ann.directory / f'threads/{self.talk}/reply'
        for text in 'sent', '{"body": "as JSON"}':
            reply.write_text(text)
            json.loads(reply.read_text())
        (self.ann.directory / 'agents/new').write_text('bob')
        self.assertIn('id', json.loads((self.ann.directory / 'agents/new').read_text()))
        (self.ann.directory / 'agents/new').write_text('bob')
        self.assertIn('error', json.loads((self.ann.directory / 'agents/new').read_text()))
        self.eventually(lambda: not self.state('*.draft'), 'no draft is left')
        self.ann.kill()
        self.again()
        time.sleep(0.5)
        self.assertEqual((self.unsent(), self.errors()), ([], []))

    def test_a_full_disk_fails_the_write(self):
        """What cannot be kept is not acknowledged."""
        directory = self.home / 'ann/state'
        (self.ann.directory / f'threads/{self.talk}/reply').write_text('the first\n')
        self.eventually(lambda: len(self.api.all('messages')) == 1, 'it is sent')
        (requests,) = directory.rglob('=requests')
        aside = requests.rename(requests.parent / 'aside')
        requests.write_text('')  # nothing can be created in it
        file = os.open(self.ann.directory / f'threads/{self.talk}/reply', os.O_WRONLY)
        with self.assertRaises(OSError):
            os.write(file, b'the second')
        os.close(file)
        requests.unlink()
        aside.rename(requests)
        (self.ann.directory / f'threads/{self.talk}/reply').write_text('the third\n')
        self.eventually(lambda: len(self.api.all('messages')) == 2, 'it is sent')
        self.assertTrue(any('keep the text' in error['message'] for error in self.errors()), self.errors())


if __name__ == '__main__':
    fixture.main()
