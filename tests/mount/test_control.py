#!/usr/bin/env python3
"""Requests through control files: what is written through one open file is one request, and its outcome can be read."""
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import fixture

SUBJECT_AND_BODY = 'Subject\n\nThe body,\nof two lines\n'
LARGE = 'x' * (65 * 1024)

SLOWLY = '''
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
for part in sys.argv[2:]:
    os.write(fd, part.encode())
    time.sleep(0.7)  # longer than any pause that could be taken for the end
os.close(fd)
'''
HALF = '''
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
os.write(fd, sys.argv[2].encode())
print('written', flush=True)
sys.stdin.read()
'''


@fixture.needs_fuse
class Control(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.mounted = self.mount(self.api.origin)
        self.top = self.mounted.directory

    def project(self, name='p'):
        (self.top / 'projects/new').write_text(json.dumps({'name': name}))
        self.place = self.top / 'projects' / json.loads((self.top / 'projects/new').read_text())['id']
        return self.place

    def stage(self, text):
        (self.place / 'work/file').write_text(text)

    def outcome(self, path):
        with open(path, encoding='utf-8') as file:
            return json.load(file)

    def published(self, commit):
        """The message of the last published commit."""
        outcome = self.outcome(commit)
        self.assertEqual(outcome.get('outcome'), 'published', outcome)
        return self.api.get('revisions', outcome['revision'])['message']

    def errors(self):
        return [json.loads(line) for line in (self.top / '.playfs/errors.ndjson').read_text().splitlines()]

    def refused(self, number, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, number, problem.exception)

    def test_however_it_is_written_it_is_one_commit(self):
        commit = self.project() / 'commit'
        message = self.home / 'message'
        message.write_text(SUBJECT_AND_BODY)
        vim = ['vim', '-es', '-u', 'NONE', '-i', 'NONE', '-c', '%d',
               '-c', 'call setline(1, ["Subject", "", "The body,", "of two lines"])', '-c', 'wq!', str(commit)]
        ways = {
            'cat': ['bash', '-c', f'cat {message} > {commit}'],
            'bash, line by line': ['bash', '-c', f"printf 'Subject\\n\\nThe body,\\nof two lines\\n' > {commit}"],
            'bash, appended': ['bash', '-c', f"printf 'Subject\\n\\nThe body,\\nof two lines\\n' >> {commit}"],
            'several programs': ['bash', '-c', "{ printf 'Subject\\n\\n'; /bin/echo The body,; echo of two lines; } > "
                                 f'{commit}'],
            'python, with pauses': [sys.executable, '-c', SLOWLY, str(commit), 'Subject\n', '\nThe body,\n',
                                    'of two lines\n'],
            'dd': ['dd', f'if={message}', f'of={commit}', 'bs=1', 'status=none'],
            'cp': ['cp', str(message), str(commit)],
            'tee': ['sh', '-c', f'cat {message} | tee {commit} > /dev/null'],
            'vim': vim,
        }
        for way, words in ways.items():
            with self.subTest(way):
                if not shutil.which(words[0]):
                    self.skipTest(f'{words[0]} is missing')
                self.stage(way)
                self.command(*words)
                self.assertEqual(self.published(commit).rstrip('\n'), SUBJECT_AND_BODY.rstrip('\n'))
        self.assertEqual(len(self.api.all('revisions')), sum(bool(shutil.which(words[0])) for words in ways.values()))

    def test_a_reply_is_one_message(self):
        (self.top / 'threads/new').write_text('Hello')
        thread = self.outcome(self.top / 'threads/new')['id']
        reply = self.top / 'threads' / thread / 'reply'
        self.command('bash', '-c', f"printf 'one\\ntwo\\nthree\\n' > {reply}")
        self.assertEqual(self.outcome(reply)['body'], 'one\ntwo\nthree')
        with open(reply, 'w', encoding='utf-8') as file:
            file.write('x' * 10_000 + 'ü' * 1000)  # in writes that split a character
        self.assertEqual(len(self.outcome(reply)['body']), 11_000)
        self.assertEqual(len(self.api.all('messages')), 2)

    def test_who_writes_over_the_text_without_truncating_it_may_pause(self):
        (self.top / 'threads/new').write_text('Hello')
        reply = self.top / 'threads' / self.outcome(self.top / 'threads/new')['id'] / 'reply'
        for flags in (os.O_WRONLY, os.O_RDWR):
            self.command(sys.executable, '-c', SLOWLY.replace('os.O_WRONLY | os.O_TRUNC', str(flags)), str(reply),
                         'part one\n', 'part two\n')
            self.assertEqual(self.outcome(reply)['body'], 'part one\npart two')

    def test_json_is_complete_with_its_last_brace_and_the_write_says_how_it_went(self):
        new = self.top / 'projects/new'
        fd = os.open(new, os.O_WRONLY | os.O_TRUNC)
        self.addCleanup(os.close, fd)
        for part in (b'{"name": "a }{ \\"b', b'\\" c",', b' "tags": [{}]', b'}'):
            self.assertEqual(self.api.all('projects'), [])
            os.write(fd, part)
        self.assertEqual(len(self.api.all('projects')), 1)  # the write that completed it waited
        os.write(fd, b'\n')
        self.refused(errno.EINVAL, lambda: os.write(fd, b'{"name": "second"}'))
        self.assertEqual(self.outcome(new)['name'], 'a }{ "b" c')
        self.assertEqual(len(self.api.all('projects')), 1)

    def test_what_can_be_refused_at_once_is_the_errno_of_the_write(self):
        commit = self.project() / 'commit'
        threads = self.top / 'threads/new'
        self.stage('text')
        refusals = ((commit, '{"message": nonsense}', errno.EINVAL), (commit, '{"msg": "x"}', errno.EINVAL),
                    (commit, '{"message": "x", "wait": 3}', errno.EINVAL), (commit, '{"wait": true}', errno.EINVAL),
                    (commit, '{"message": "x"} and more', errno.EINVAL), (commit, LARGE, errno.EFBIG),
                    (threads, '{"title": "x", "colour": 1}', errno.EINVAL))
        for path, text, number in refusals:
            with self.subTest(text[:40]):
                fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
                try:
                    self.refused(number, lambda fd=fd, text=text: os.write(fd, text.encode()))
                finally:
                    os.close(fd)
                error = self.outcome(path)['error']
                self.assertEqual(set(error), {'code', 'message', 'hint', 'retryable'})
                # The log grows for its readers a moment later.
                self.eventually(lambda error=error: error['message'] in [each['message'] for each in self.errors()],
                                'the reason is in errors.ndjson')
        self.refused(errno.EINVAL, lambda: commit.write_bytes(b'\xff\xfe'))
        self.assertEqual((self.api.all('revisions'), self.api.all('threads')), ([], []))

    def test_conflicts_are_refused_at_the_first_write(self):
        commit = self.project() / 'commit'
        self.stage('base\n')
        commit.write_text('Base')
        self.published(commit)
        bob = self.mount(self.api.origin, 'bob')
        theirs = bob.project('p') / 'work'
        self.stage('ann\n')
        (theirs / 'file').write_text('bob\n')
        self.playfs('commit', '-m', 'Bob', cwd=theirs, who='bob')
        self.playfs('update', self.place / 'work', check=False)
        fd = os.open(commit, os.O_WRONLY | os.O_TRUNC)
        self.addCleanup(os.close, fd)
        self.refused(errno.EBUSY, lambda: os.write(fd, b'Ann\n'))
        self.assertIn('conflict', self.outcome(commit)['error']['message'])
        commit.write_text('{"message": "Ann", "resolved": true}')
        self.assertEqual(self.published(commit), 'Ann')

    def test_commit_takes_what_else_can_be_done_with_a_work_tree(self):
        """update, merge, discard and dry runs, for programs that have only files."""
        commit = self.project() / 'commit'
        work = self.place / 'work'

        def ask(**fields):
            commit.write_text(json.dumps(fields))
            return self.outcome(commit)
        self.stage('base\n')
        commit.write_text('Base')
        self.published(commit)
        base = self.api.get('projects', self.place.name)['latest_revision']
        self.stage('mine\n')
        (work / 'new').write_text('new\n')
        self.assertEqual(ask(dry_run=True)['outcome'], 'planned')
        self.assertEqual(ask(discard=['file', 'new'], dry_run=True), {'schema_version': 1, 'outcome': 'planned', 'discarded': 2})
        self.assertEqual(sorted(os.listdir(work)), ['file', 'new'])
        self.assertEqual(ask(discard='new')['discarded'], 1)
        self.assertEqual((sorted(os.listdir(work)), (work / 'file').read_text()), (['file'], 'mine\n'))
        self.assertEqual(ask(discard='.')['discarded'], 1)
        self.assertEqual((work / 'file').read_text(), 'base\n')

        def theirs(**files):
            return self.api.create('revisions', project=self.place.name, parents=[base], agent='bob', message='m', state={},
                                   manifest={'tx': os.urandom(16).hex(), 'files': {
                                       'file': {'inline': 'base\n'}, **{path: {'inline': text} for path, text in files.items()}}})['id']
        # In conflict, or the mount would merge them by itself, sooner or later.
        branch, head = theirs(file='branch\n'), theirs(file='head\n', head='head\n')
        (work / 'mine').write_text('mine\n')
        self.api.call('PATCH', f'/projects/{self.place.name}', {'latest_revision': head})
        self.eventually(lambda: ask(update=True)['base'] == head, 'the mount has seen the new head')
        self.assertEqual(sorted(os.listdir(work)), ['file', 'head', 'mine'])
        self.assertEqual(ask(discard='mine')['discarded'], 1)
        merged = ask(merge=branch)
        self.assertEqual((merged['outcome'], merged['base'], merged['conflicts']), ('merged', head, 1))
        self.assertIn('branch', (work / 'file').read_text())
        before = len(self.api.all('revisions'))
        for wrong in ({'update': 1}, {'merge': 3}, {'discard': []}, {'discard': '../file'}, {'discard': '/'},
                      {'update': True, 'discard': '.'}, {'discard': 'file', 'cancel': True}, {'update': True, 'what': 1},
                      {'update': True, 'dry_run': True}, {'merge': branch, 'dry_run': True}, {'cancel': True, 'dry_run': True},
                      {'message': 'm', 'discard': '.'}, {'message': 3}):
            with self.subTest(wrong):
                self.refused(errno.EINVAL, lambda wrong=wrong: commit.write_text(json.dumps(wrong)))
        self.refused(errno.ENOENT, lambda: commit.write_text('{"discard": ["file", "nowhere"]}'))
        self.assertIn('branch', (work / 'file').read_text(), 'nothing was discarded')
        self.assertEqual(len(self.api.all('revisions')), before, 'nothing was published')
        many = [f'many{number}' for number in range(150)]
        for name in many:
            (work / name).write_text(name)
        self.assertEqual(ask(discard=many)['discarded'], len(many), 'in one go')

    def test_a_sync_does_not_vouch_for_half_a_document(self):
        state = self.project() / 'state.json'
        file = os.open(state, os.O_WRONLY | os.O_TRUNC)
        os.write(file, b'{"score": 2, ')
        with self.assertRaises(OSError) as refused:
            os.fsync(file)
        self.assertEqual(refused.exception.errno, errno.EINVAL)
        self.assertIn('the JSON object is incomplete', (self.top / '.playfs/errors.ndjson').read_text())
        os.write(file, b'"precious": true}')
        os.fsync(file)
        os.close(file)
        self.assertEqual(json.loads(state.read_text()), {'score': 2, 'precious': True})

    def test_what_is_only_known_at_the_end_is_read(self):
        commit = self.project() / 'commit'
        self.stage('text')
        commit.write_text('{"message": "never')  # closed before it is complete
        error = self.outcome(commit)['error']
        self.assertEqual((error['code'], error['retryable']), ('invalid_argument', False))
        commit.write_text(' \n')
        self.assertIn('empty', self.outcome(commit)['error']['message'])
        commit.write_text('')
        self.assertIn('empty', self.outcome(commit)['error']['message'])  # nothing was written: no request
        state = self.place / 'state.json'
        state.write_text('[1,\n2]\n')
        self.eventually(lambda: json.loads(state.read_text()) == [1, 2], 'the state is staged')
        self.assertEqual(self.api.all('revisions'), [])

    def test_a_file_that_was_not_used_says_what_it_takes(self):
        self.project()
        (self.top / 'threads/new').write_text('{"title": "t"}')
        thread = self.outcome(self.top / 'threads/new')['id']
        for path, field in ((self.place / 'commit', 'message'), (self.top / f'threads/{thread}/reply', 'body'),
                            (self.top / 'agents/new', 'handle'), (self.top / 'mail/new', 'kind'),
                            (self.top / 'spaces/new', 'name')):
            help_text = self.outcome(path)
            self.assertIsNone(help_text['outcome'])
            self.assertIn(field, help_text['fields'])
            self.assertTrue(help_text['example'])
        self.assertIn('bug-report', self.outcome(self.top / 'mail/new')['fields']['kind'])

    def test_two_writers_at_once_make_two_requests(self):
        for mode in ('w', 'a'):
            (self.top / 'threads/new').write_text('{"title": "t"}')
            thread = self.outcome(self.top / 'threads/new')['id']
            reply = self.top / 'threads' / thread / 'reply'
            before = len(self.api.all('messages'))
            # Each waits for its turn between its two halves, with the file open.
            script = '{ read; printf "%s1\\n%s2\\n" $1 $1; read; printf "%s3\\n%s4\\n" $1 $1; }'
            script += f' {">" if mode == "w" else ">>"} {reply}'
            writers = [subprocess.Popen(['bash', '-c', script, 'bash', name], stdin=subprocess.PIPE) for name in 'abc']
            for _ in range(2):
                for writer in writers:
                    writer.stdin.write(b'\n')
                    writer.stdin.flush()
            for writer in writers:
                writer.stdin.close()
                self.assertEqual(writer.wait(fixture.COMMAND_LIMIT), 0)
            self.outcome(reply)
            self.eventually(lambda: len(self.api.all('messages')) == before + 3, 'three messages')
            bodies = sorted(fixture.fields(each)['body'] for each in self.api.all('messages')
                            if fixture.fields(each)['thread'] == thread)
            self.assertEqual(bodies, [f'{name}1\n{name}2\n{name}3\n{name}4' for name in 'abc'])

    def test_reading_waits_for_the_outcome_of_what_was_closed_before(self):
        commit = self.project() / 'commit'
        for turn in range(20):
            self.stage(f'turn {turn}')
            commit.write_text(f'Turn {turn}')
            self.assertEqual(self.published(commit), f'Turn {turn}')
            size = os.stat(commit).st_size
            self.assertEqual(len(commit.read_bytes()), size)

    def test_a_reader_waits_while_another_still_writes(self):
        commit = self.project() / 'commit'
        self.stage('text')
        said = []
        with open(commit, 'wb', buffering=0) as file:
            file.write(b'Begun')
            reader = subprocess.Popen(['cat', str(commit)], stdout=subprocess.PIPE)
            thread = threading.Thread(target=lambda: said.append(reader.communicate()[0]))
            thread.start()
            self.assertIn('hint', self.outcome(commit))  # a writer does not wait for itself
            self.command('ls', '-l', commit)  # nor does a process that only looks
            self.assertEqual({each.name: each.stat().st_size > 0 for each in os.scandir(self.place)
                              if each.name == 'commit'}, {'commit': True})
            file.write(b', and ended\n')
            self.assertEqual((said, self.api.all('revisions')), ([], []))
        thread.join(fixture.COMMAND_LIMIT)
        self.assertEqual(json.loads(said[0])['outcome'], 'published')
        self.assertEqual(self.published(commit), 'Begun, and ended')

    def test_a_reader_that_waits_can_be_ended(self):
        commit = self.project() / 'commit'
        with open(commit, 'wb', buffering=0) as file:
            file.write(b'Begun')
            reader = subprocess.Popen(['cat', str(commit)], stdout=subprocess.DEVNULL)
            state = pathlib.Path(f'/proc/{reader.pid}/wchan')
            self.eventually(lambda: state.read_text(encoding='ascii') not in ('', '0'), 'it waits for something')
            reader.send_signal(signal.SIGINT)
            self.assertEqual(reader.wait(fixture.COMMAND_LIMIT), -signal.SIGINT)

    def test_a_writer_that_is_killed_closes_its_file(self):
        """As with any file, what it wrote is the text. Incomplete JSON is no request."""
        commit = self.project() / 'commit'
        self.stage('text')
        for text, key in (('{"message": "half', 'error'), ('Half a mess', 'revision')):
            writer = subprocess.Popen([sys.executable, '-c', HALF, str(commit), text], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
            self.addCleanup(writer.stdin.close)
            self.addCleanup(writer.stdout.close)
            self.assertEqual(writer.stdout.readline(), b'written\n')
            writer.kill()
            writer.wait(fixture.COMMAND_LIMIT)
            self.assertIn(key, self.outcome(commit))

    def test_an_unmount_in_the_middle_publishes_nothing(self):
        commit = self.project() / 'commit'
        self.stage('text')
        writer = subprocess.Popen([sys.executable, '-c', HALF, str(commit), 'Half a mess'], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.addCleanup(writer.stdout.close)
        self.assertEqual(writer.stdout.readline(), b'written\n')
        self.mounted.process.send_signal(signal.SIGTERM)
        self.mounted.process.wait(fixture.COMMAND_LIMIT)
        writer.stdin.close()
        writer.wait(fixture.COMMAND_LIMIT)
        self.assertEqual(self.api.all('revisions'), [])
        again = self.mount(self.api.origin, at=self.top)
        status = json.loads((again.project('p') / 'status.json').read_text())
        self.assertEqual([each['path'] for each in status['staged']], ['file'])

    def test_what_was_closed_before_an_unmount_is_done(self):
        commit = self.project() / 'commit'
        for turn in range(5):
            self.stage(f'turn {turn}')
            commit.write_text(f'Turn {turn}')
            self.mounted.unmount()
            self.mounted = self.mount(self.api.origin, at=self.top)
            self.eventually(lambda turn=turn: len(self.api.all('revisions')) == turn + 1, 'it is published')

    def test_a_mount_of_one_project_has_its_commit_file(self):
        place = self.project()
        only = self.mount_project(place.name)
        (only / 'file').write_text('text')
        commit = only / '.playfs/project/commit'
        self.command('bash', '-c', f"printf 'Subject\\n\\nbody\\n' > {commit}")
        self.assertEqual(self.published(commit), 'Subject\n\nbody')

    def mount_project(self, project):
        directory = self.home / 'only'
        directory.mkdir()
        process = subprocess.Popen([self.playfs_path, 'mount', '-f', self.api.origin, str(directory), '-o',
                                    f'project={project}'], env=self.environment('bob'), stdin=subprocess.DEVNULL)

        def end():
            subprocess.run(['fusermount3', '-u', '-z', str(directory)], capture_output=True, check=False)
            process.wait(fixture.COMMAND_LIMIT)

        self.addCleanup(end)
        self.eventually(lambda: os.path.ismount(directory), 'it is mounted')
        return directory


if __name__ == '__main__':
    fixture.main()
