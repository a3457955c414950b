#!/usr/bin/env python3
"""A text whose close(2) returned 0 is sent, or kept for its writer, even if the mount is killed in the same moment."""
import contextlib
import errno
import json
import os
import signal
import subprocess
import time

import fixture
import proxy


class Written(fixture.Fixture):
    """What ann writes to her mount of a service behind a proxy."""

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

    def status(self):
        return json.loads((self.ann.directory / '.playfs/status.json').read_text())

    def again_quietly(self):
        self.ann.unmount()
        self.ann = self.mount(self.proxy.url, options=self.options)


@fixture.needs_fuse
class Drafts(Written):
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
        for _ in range(2):
            self.again_quietly()
            self.eventually(self.errors, 'each mount tells of it')
            self.assertIn(str(kept), self.errors()[0]['message'])
            self.assertEqual(self.status()['unsent'], [str(kept)])
        kept.unlink()
        self.again_quietly()
        self.assertEqual((self.errors(), self.status()['unsent']), ([], []))

    def test_another_agents_mount_does_not_send_it_as_its_own(self):
        """Two agents of one user share a state directory, and bob sees what ann's mount did not send."""
        for path, text in (f'threads/{self.talk}/reply', 'said by ann\n'), ('threads/new', 'a title of ann\'s\n'):
            self.write_and_kill(path, [text.encode()], close=False)
            self.ann.process.wait(fixture.COMMAND_LIMIT)
            self.ann.end()
            self.ann = self.mount(self.proxy.url, options=(*self.options, 'agent=bob/1'))
            self.eventually(lambda path=path: any(each['subject'] == path for each in self.errors()), 'it is told')
            (error,) = (each for each in self.errors() if each['subject'] == path)
            (kept,) = self.state('unsent/*.by-ann.txt')
            self.assertEqual(kept.read_text(), text)
            self.assertIn(str(kept), error['message'])
            self.assertIn("writes as 'ann'", error['hint'])
            command = error['hint'].split(': ', 1)[1]
            self.assertRegex(command, '^playfs mount .* -o agent=ann && ')
            command = command.replace('playfs', str(self.playfs_path), 1)
            subprocess.run(['sh', '-c', command], cwd=self.ann.directory, timeout=fixture.COMMAND_LIMIT,
                           env=self.environment('ann'), stderr=subprocess.DEVNULL)
            self.assertNotIn('bob/1', [fixture.fields(each)['agent'] for each in
                                       self.api.all('messages') + self.api.all('threads')])
            self.again_quietly()
            self.eventually(self.errors, 'the next mount tells of it')
            self.assertIn('.by-ann.txt', self.errors()[0]['message'])
            self.assertIn('agent=', self.errors()[0]['hint'])
            self.assertEqual(self.status()['unsent'], [str(kept)])
            # As the hint says, with a directory.
            directory = self.home / 'DIR'
            directory.mkdir()
            done = subprocess.run(['sh', '-c', command], cwd=self.home, timeout=fixture.COMMAND_LIMIT,
                                  env={**self.environment('ann'), 'PLAYFS_AGENT': 'carol'}, capture_output=True, text=True)
            self.addCleanup(subprocess.run, ['fusermount3', '-u', '-z', directory], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            title = path == 'threads/new'
            records = lambda: [fixture.fields(each) for each in self.api.all('threads' if title else 'messages')]
            self.eventually(lambda: ('ann', text.strip()) in [(each['agent'], each.get('title' if title else 'body'))
                                                              for each in records()], 'it is sent as ann')
            subprocess.run(['fusermount3', '-u', directory], check=True, timeout=fixture.COMMAND_LIMIT)
            directory.rmdir()
            kept.unlink()
            self.again_quietly()

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
        with self.assertRaises(OSError):
            (self.ann.directory / 'agents/new').write_text('{"handle": "bob"}')
        (self.ann.directory / 'agents/new').write_text('\n')
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


@fixture.needs_fuse
class Accepted(Written):
    """Nobody is told of what happens to plain text after its close(2) has returned 0."""

    def setUp(self):
        super().setUp()
        self.reply = self.ann.directory / f'threads/{self.talk}/reply'
        self.reply.read_text()

    def bodies(self):
        messages = sorted(map(fixture.fields, self.api.all('messages')), key=lambda each: each['created_at'])
        return [message['body'] for message in messages]

    def arrives(self, *bodies):
        self.eventually(lambda: len(self.bodies()) >= len(bodies), 'all arrive')
        self.assertEqual(self.bodies(), list(bodies))
        self.eventually(lambda: not self.state('*.json'), 'the journal is empty')

    def is_told(self, *parts):
        self.eventually(lambda: any(all(part in json.dumps(line) for part in parts) for line in self.errors()),
                        f'errors.ndjson has {parts}')

    def test_an_outage_delays_it(self):
        self.proxy.away = True
        for text in 'first', 'second':
            self.reply.write_text(text)
        self.is_told('unreachable', 'sent again by itself')
        self.assertIn('sent again', json.loads(self.reply.read_text())['error']['hint'])
        self.proxy.away = False
        self.arrives('first', 'second')
        self.eventually(lambda: json.loads(self.reply.read_text()).get('body') == 'second', 'the file shows the record')
        self.assertEqual(self.state('unsent/*'), [])

    def test_an_outage_over_several_mounts_delays_it(self):
        self.proxy.away = True
        self.reply.write_text('important')
        self.is_told('unreachable')
        for _ in range(2):
            self.again_quietly()
            self.is_told('last unmount', 'sent again')
        self.proxy.away = False
        self.arrives('important')

    def test_a_rate_limit_delays_it_as_long_as_the_service_says(self):
        limit = 429, json.dumps({'error': 'no', 'code': 'rate_limited', 'retry_after': 5})
        self.proxy.fate = lambda request: limit if request.startswith('POST') else None
        self.reply.write_text('limited')
        self.is_told('rate_limited', 'sent again')
        with self.proxy.counting() as count:
            self.reply.write_text('behind it')
            self.is_told('written here earlier')
        self.assertEqual([line for line in count.requests if line.startswith('POST')], [])
        self.proxy.fate = lambda request: None
        self.arrives('limited', 'behind it')

    def test_json_is_refused_behind_a_text_that_waits(self):
        limit = 429, json.dumps({'error': 'no', 'code': 'rate_limited', 'retry_after': 5})
        self.proxy.fate = lambda request: limit if request.startswith('POST') else None
        self.reply.write_text('limited')
        self.is_told('rate_limited', 'sent again')
        self.proxy.fate = lambda request: None
        with self.assertRaises(BlockingIOError):
            self.reply.write_text('{"body": "overtakes it"}')
        self.is_told('written here earlier', 'write this again')
        self.eventually(self.bodies, 'the text arrives')
        self.eventually(lambda: self.echo_of('{"body": "after it"}'), 'the file takes JSON again')
        self.assertEqual(self.bodies(), ['limited', 'after it'])

    def echo_of(self, text):
        try:
            return self.reply.write_text(text)
        except BlockingIOError:
            return None

    def test_what_is_refused_is_saved(self):
        refusal = 400, json.dumps({'error': 'no', 'code': 'invalid_request', 'message': 'no'})
        self.proxy.fate = lambda request: refusal if request.startswith('POST') else None
        self.reply.write_text('refused')
        self.eventually(lambda: self.state('unsent/*.json'), 'it is saved')
        (kept,) = self.state('unsent/*.json')
        self.assertEqual(json.loads(kept.read_text())['body'], 'refused')
        self.is_told('invalid_argument', str(kept))
        self.assertIn(str(kept), json.loads(self.reply.read_text())['error']['message'])
        self.assertEqual(self.status()['unsent'], [str(kept)])
        found = json.loads(self.playfs('doctor', '--json', check=False).stdout)
        self.assertIn((str(kept), 'wrong'), [(each['place'], each['finding']) for each in found['findings']])

    def test_what_cannot_be_a_request_is_saved(self):
        for text in 'x' * 17_000, '{ begins a block in C':
            self.reply.write_text(text)
            self.eventually(lambda text=text: text in self.unsent(), 'it is saved')
        self.assertEqual(self.bodies(), [])
        self.is_told('record_too_large', '/unsent/')
        self.is_told('incomplete', '/unsent/')

    def test_what_finds_no_room_is_saved(self):
        self.proxy.set_hanging('messages')
        texts = [f'message {number}' for number in range(70)]
        self.command('sh', '-c', 'for i in $(seq 0 69); do echo message $i > "$0"; done', self.reply)
        self.eventually(lambda: len(self.state('*.json')) + len(self.unsent()) == len(texts), 'all are somewhere')
        saved = [text.strip() for text in self.unsent()]
        self.assertTrue(saved)
        self.proxy.set_hanging(None)
        self.eventually(lambda: len(self.bodies()) == len(texts) - len(saved), 'the others arrive')
        self.assertEqual(sorted(self.bodies() + saved), sorted(texts))

    def test_no_text_is_accepted_that_could_not_be_saved(self):
        """A loop that writes what the service refuses does not fill the disk, and costs nobody a saved text."""
        refusal = 400, json.dumps({'error': 'no', 'code': 'invalid_request', 'message': 'no'})
        self.proxy.fate = lambda request: refusal if request.startswith('POST') else None
        self.reply.write_text('refused')
        self.eventually(lambda: self.state('unsent/*.json'), 'it is saved')
        (first,) = self.state('unsent/*.json')
        with open(first.parent / 'large.txt', 'wb') as file:
            file.truncate(16 << 20)  # as from some hundred more
        for text in 'one too many', '{ begins a block in C':
            with self.assertRaises(OSError, msg=text) as full:
                self.reply.write_text(text)
            self.assertEqual(full.exception.errno, errno.ENOSPC)
            self.is_told('no_space', f'{first.parent} is full', 'remove')
        self.assertEqual((self.state('*.draft'), len(self.state('unsent/*'))), ([], 2))
        self.proxy.fate = lambda request: None
        self.reply.write_text('{"body": "its outcome is told, so it is not saved"}')
        (first.parent / 'large.txt').unlink()
        self.reply.write_text('there is room')
        self.eventually(lambda: len(self.bodies()) == 2, 'it is sent')
        self.assertTrue(first.exists())

    def test_a_full_place_is_emptied_by_its_hints(self):
        self.reply.write_text('x' * 17_000)
        self.eventually(self.unsent, 'it is saved')
        (kept,) = self.state('unsent/*.txt')
        self.is_told('record_too_large', str(kept))
        (told,) = (line for line in self.errors() if str(kept) in line['hint'])
        kept.write_text('a shorter one')
        for number in range(1_000):
            (kept.parent / f'{number}.txt').write_text(f'text {number}')
        command = told['hint'].split('at the top of the mount: ')[1]
        self.assertEqual(self.command('sh', '-ec', f'cd "$0"; {command}', self.ann.directory, check=False).stderr, '')
        self.eventually(lambda: self.bodies() == ['a shorter one'], 'it is sent')
        with self.assertRaises(OSError):
            self.reply.write_text('another')

    def test_open_texts_take_the_room_of_what_they_hold(self):
        files = [os.open(self.reply, os.O_WRONLY | os.O_TRUNC) for _ in range(260)]
        try:
            for number, file in enumerate(files):
                os.write(file, b'text %d' % number)
        finally:
            for file in files:
                os.close(file)

    def test_half_an_object_that_was_closed_is_kept(self):
        self.reply.write_text('{ begins a block in C')
        self.ann.kill()
        self.again()
        self.eventually(lambda: self.unsent() == ['{ begins a block in C'], 'it is kept')

    def test_what_no_disk_takes_is_saved_by_the_next_mount(self):
        """Its hint is not to write it again: then it would be there twice."""
        self.reply.write_text('the first')
        self.eventually(self.bodies, 'it is sent')
        file = os.open(self.reply, os.O_WRONLY | os.O_TRUNC)
        os.write(file, b'long thoughts')  # its draft is on disk
        (draft,) = self.state('*.draft')
        requests = draft.parent
        aside = requests.rename(requests.parent / 'aside')
        requests.write_text('')  # nothing can be created in it
        os.close(file)
        self.is_told('long thoughts', 'nothing need be done', 'the next mount saves it')
        requests.unlink()
        aside.rename(requests)
        self.again_quietly()
        self.eventually(lambda: self.unsent() == ['long thoughts'], 'it is saved')
        self.assertEqual((self.bodies(), self.state('*.draft')), (['the first'], []))


if __name__ == '__main__':
    fixture.main()
