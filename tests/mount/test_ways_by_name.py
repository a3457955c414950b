#!/usr/bin/env python3
"""What is written to a thread by its title after somebody has renamed it: another client, the writer itself, or a replica
that lags and shows how the thread was called before."""
import errno
import json
import os
import time

import fixture
import proxy

LATER = json.dumps({'error': 'later', 'code': 'unavailable', 'message': 'later'})


@fixture.needs_fuse
class Ways(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        (self.home / 'text').write_text('{"body": "text"}')

    def begin(self, refresh=3600):
        self.ann = self.mount(self.proxy.url, options=(f'refresh={refresh}',))
        self.top = self.ann.directory
        self.by_title = self.top / 'threads/by-title'

    def thread(self, title):
        return self.api.create('threads', title=title, agent='bob', kind='help')['id']

    def rename(self, thread, title):
        self.api.call('PATCH', f'/threads/{thread}', {'title': title})

    def bodies(self, thread):
        return sorted(message['body'].strip() for message in map(fixture.fields, self.api.all('messages'))
                      if message['thread'] == thread)

    def errors(self, code='stale'):
        lines = map(json.loads, (self.top / '.playfs/errors.ndjson').read_text().splitlines())
        return [line for line in lines if line['code'] == code]

    def saved(self):
        return sorted(path for path in (self.home / 'ann/state').rglob('=requests/unsent/*'))

    def run_in(self, script, title, thread):
        """At the top of the mount. COPY puts a whole request into the file that follows."""
        for word, means in (('TITLE', title), ('COPY', f'cp {self.home}/text'), ('TOP', str(self.top)), ('ID', thread)):
            script = script.replace(word, means)
        return self.command('bash', '-c', f'cd "$0"; {script}', self.top, check=False)


class OwnRenames(Ways):
    def test_who_renames_a_thread_goes_on_in_its_directory(self):
        change = 'echo "{\\"title\\": \\"New TITLE\\"}" > TOP/change; cp TOP/change thread.json'
        change = change.replace('TOP/change', str(self.home / 'change'))
        scripts = [f'{change}; COPY reply', f'{change}; echo text > reply', f'{change}; sleep 2; COPY reply',
                   f'exec 3> reply; {change}; echo text >&3; exec 3>&-', f'{change}; COPY TOP/threads/ID/reply',
                   f'{change}; COPY "../by-title/New TITLE/reply"',
                   'echo "{\\"title\\": \\"New TITLE\\"}" > TOP/threads/ID/thread.json; echo text > reply']
        threads = [self.thread(f'Old{number}') for number in range(len(scripts))]
        self.begin(refresh=1)
        self.eventually(lambda: len(os.listdir(self.by_title)) == len(scripts), 'all are there')
        for number, (script, thread) in enumerate(zip(scripts, threads, strict=True)):
            with self.subTest(script):
                stderr = self.run_in(f'cd threads/by-title/TITLE; {script}', f'Old{number}', thread).stderr
                self.eventually(lambda thread=thread: self.bodies(thread), f'it arrives; {stderr}')
                self.assertEqual(self.api.get('threads', thread)['title'], f'New Old{number}')
        # What others make of it is another matter.
        self.rename(threads[0], 'Secrets')
        with self.assertRaises(OSError) as refused:
            (self.by_title / 'New Old0/reply').write_text('{"body": "text"}')
        self.assertIn(refused.exception.errno, (errno.ESTALE, errno.ENOENT))

    def test_what_waits_for_a_thread_that_is_renamed_here_arrives(self):
        for remounts in False, True:
            with self.subTest(remounts=remounts):
                thread = self.thread('Plans')
                self.begin(refresh=1)
                os.readlink(self.by_title / 'Plans')
                self.proxy.fate = lambda request: (503, LATER) if request.startswith('POST') else None
                self.run_in('echo waits > threads/by-title/TITLE/reply', 'Plans', thread)
                self.eventually(lambda: self.errors('unreachable'), 'it waits')
                (self.by_title / 'Plans/thread.json').write_text('{"title": "Mine"}')
                if remounts:
                    self.ann.unmount()
                    self.begin(refresh=1)
                self.proxy.fate = lambda request: None
                self.eventually(lambda thread=thread: self.bodies(thread), 'it arrives')
                self.assertEqual((self.bodies(thread), self.errors(), self.saved()), (['waits'], [], []))
                self.ann.unmount()


class Lagging(Ways):
    def test_a_replica_that_lags_refuses_nothing(self):
        thread = self.thread('Old')
        self.begin(refresh=1)
        before = json.dumps(self.api.request('GET', f'/threads/{thread}')[1])
        self.rename(thread, 'New')
        self.eventually(lambda: 'New' in os.listdir(self.by_title), 'it is known here')
        record = f'GET /.site/data/threads/{thread}'
        self.proxy.fate = lambda request: (200, before) if request == record else None
        with self.proxy.counting() as count:
            (self.by_title / 'New/reply').write_text('{"body": "text"}')
        self.assertGreater(count.requests.count(record), 1, 'it is asked again')
        self.assertEqual((self.bodies(thread), self.errors()), (['text'], []))

    def test_a_single_404_refuses_nothing(self):
        self.begin(refresh=1)
        (self.top / 'threads/new').write_text('{"title": "Fresh", "kind": "help", "body": "first"}')
        self.eventually(lambda: 'Fresh' in os.listdir(self.by_title), 'it is there')
        thread = os.readlink(self.by_title / 'Fresh').removeprefix('../')
        asked = []

        def fate(request):
            asked.append(request)
            gone = request == f'GET /.site/data/threads/{thread}' and asked.count(request) == 1
            return (404, '{"error": "no", "code": "not_found", "message": "no"}') if gone else None

        self.proxy.fate = fate
        self.run_in('echo hello > threads/by-title/TITLE/reply', 'Fresh', thread)
        self.eventually(lambda: self.bodies(thread) == ['first', 'hello'], 'it arrives')
        self.assertEqual((self.errors('not_found'), self.saved()), ([], []))


class NoRoom(Ways):
    def test_equal_texts_for_two_threads_are_both_saved(self):
        threads = [self.thread(title) for title in 'AB']
        self.begin()
        self.proxy.fate = lambda request: (503, LATER) if request.startswith('POST') else None
        for title in 'AB':
            self.run_in('echo "I agree" > threads/by-title/TITLE/reply', title, '')
        self.eventually(lambda: len(self.errors('unreachable')) == 2, 'both wait')
        (directory,) = (self.home / 'ann/state').rglob('=requests')
        (directory / 'unsent').mkdir(mode=0o700, exist_ok=True)
        with open(directory / 'unsent/large.txt', 'wb') as large:
            large.truncate(16 << 20)
        for title, thread in zip('AB', threads, strict=True):
            self.rename(thread, f'Not {title}')
        self.proxy.fate = lambda request: None
        self.eventually(lambda: len(self.errors()) == 2, 'both are refused')
        for line in self.errors():
            command = line['hint'].split('at the top of the mount: ')[1].split(';')[0]
            self.assertEqual(self.run_in(command, '', '').stderr, '')
            os.unlink(command.split()[1])
        self.assertEqual([self.bodies(thread) for thread in threads], [['I agree']] * 2)


class RateLimits(Ways):
    def test_the_check_of_a_name_ends_no_pause(self):
        """While one text waits as long as the service said, another meets a pause that ends later."""
        pause, posts, answers = 4, [], []
        threads = [self.thread(title) for title in 'AB']
        self.begin()
        os.listdir(self.by_title)
        document = json.dumps({'error': 'later', 'code': 'rate_limited', 'message': 'later'}).encode()
        refusal = (f'HTTP/1.1 429 Too Many Requests\r\nRetry-After: {pause}\r\nContent-Type: application/json\r\n'
                   f'Content-Length: {len(document)}\r\n\r\n').encode()

        def raw(method, _path, _headers, _body, _ask):
            if method != 'POST':
                return None
            posts.append(time.monotonic())
            if len(answers) == 2:
                return None
            answers.append(time.monotonic())
            return [refusal, document]

        self.proxy.raw = raw
        self.run_in('echo text > threads/by-title/TITLE/reply', 'A', '')
        self.eventually(lambda: len(posts) == 1, 'the first is refused')
        time.sleep(pause / 2)
        self.run_in('echo text > threads/by-title/TITLE/reply', 'B', '')
        self.eventually(lambda: [self.bodies(thread) for thread in threads] == [['text']] * 2, 'both arrive')
        self.assertEqual(len(posts), 4)
        self.assertGreater(posts[2] - answers[1], pause - 0.2, 'nothing is sent in the pause')


if __name__ == '__main__':
    fixture.main()
