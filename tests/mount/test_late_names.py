#!/usr/bin/env python3
"""Names that the service is slow to tell: waiting for one locks no directory, whatever the same thread waited for before,
and everyone who waits gets what comes."""
import errno
import hashlib
import json
import os
import subprocess
import sys
import time

import hung
import proxy
import fixture
from projects import publish

BRIEFLY = 12  # seconds; a lookup may hold its directory for three, on a busy machine

EACH_IN_TURN = '''
import os, sys
for path in sys.argv[1:]:
    try: os.stat(path); print('ok', flush=True)
    except OSError as error: print(error, flush=True)
'''

HELD = '''
import errno, os, sys
fd = os.open(sys.argv[1], os.O_PATH)
def attempt(what, do):
    try: print(what, do(), flush=True)
    except OSError as error: print(what, errno.errorcode[error.errno], flush=True)
def read(name):
    with open(os.open(name, os.O_RDONLY, dir_fd=fd)) as file: return file.read().strip()
for what in sys.argv[2:]:
    attempt(what, {'fstat': lambda: os.fstat(fd).st_ino, 'list': lambda: sorted(os.listdir(f'/proc/self/fd/{fd}'))[0],
                   'enter': lambda: os.fchdir(fd) or os.path.basename(os.getcwd())}.get(what, lambda: read(what)))
'''


@fixture.needs_fuse
class LateNames(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.delays = {}  # seconds by part of the path; each is for the first such request
        self.proxy.raw = self.late

    def late(self, method, path, headers, body, ask):
        part = next((part for part in self.delays if part in path), None)
        if part:
            time.sleep(self.delays.pop(part))

    def mounted(self):
        mount = self.mount(self.proxy.url, options=('refresh=600', 'noprefetch'))
        return mount, mount.directory / 'projects'

    def starts(self, *words):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def runs(self, code, *arguments):
        return self.starts(sys.executable, '-S', '-c', code, *arguments)

    def nobody_is_kept_out(self, *commands):
        """Others, started together while somebody waits, end soon, and can be killed at any time."""
        stuck, began = hung.Stuck(), time.monotonic()
        others = [self.starts(*words) for words in commands]
        for each in others:
            stuck.watch(each)
        late = []
        for words, each in zip(commands, others):
            try:
                each.wait(max(0.1, began + BRIEFLY - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(words)
                each.kill()
        for each in others:
            each.wait(fixture.COMMAND_LIMIT)
        longest = max(stuck.end().values(), default=0.0)
        self.assertEqual(late, [])
        self.assertLess(longest, BRIEFLY)

    def test_the_second_late_name_of_a_thread_locks_its_directory_no_longer(self):
        near, a, b = (publish(self.api, name, {'f': f'{name}\n'}) for name in ('near', 'a', 'b'))
        _, projects = self.mounted()
        os.stat(projects / near)
        self.delays = {f'/projects/{a}': 5, f'/projects/{b}': 35}  # the latter is given up, and asked again
        looker = self.runs(EACH_IN_TURN, projects / a, projects / b)
        self.assertEqual(looker.stdout.readline(), 'ok\n')
        self.eventually(lambda: not self.delays, 'it waits for the second')
        self.nobody_is_kept_out(('sh', '-c', f'echo one > "{projects}/new"'), ('ls', projects),
                                ('cat', projects / near / 'head/f'), ('stat', projects / 'none-such'))
        self.assertIsNone(looker.poll())
        self.assertEqual(looker.communicate(timeout=fixture.COMMAND_LIMIT), ('ok\n', ''))

    def test_nor_does_the_second_late_name_of_one_path(self):
        project = publish(self.api, 'p', {'f': 'first\n'})
        first = self.api.get('projects', project)['latest_revision']
        publish(self.api, 'second', {'f': 'second\n'}, project, [first])
        _, projects = self.mounted()
        self.delays = {f'/projects/{project}': 5, f'/revisions/{first}': 35}
        reader = self.starts('cat', projects / project / 'revisions' / first / 'f')
        self.eventually(lambda: not self.delays, 'it waits for the second')
        self.nobody_is_kept_out(('mkdir', projects / project / 'revisions/none'),
                                ('stat', projects / project / 'revisions/none'),
                                ('mkdir', projects / project / 'none'))
        self.assertIsNone(reader.poll())
        self.assertEqual(reader.communicate(timeout=fixture.COMMAND_LIMIT), ('first\n', ''))

    def test_nor_does_a_late_file(self):
        a, project = publish(self.api, 'a', {'f': 'a\n'}), publish(self.api, 'p', {'f': 'first\n'})
        first = self.api.get('projects', project)['latest_revision']
        publish(self.api, 'second', {'f': 'second\n'}, project, [first])
        _, projects = self.mounted()
        self.assertEqual((projects / project / 'head/f').read_text(), 'second\n')
        self.delays = {f'/projects/{a}': 5, f'/revisions/{first}': 20}
        looker = self.runs(EACH_IN_TURN, projects / a, projects / project / 'log')
        self.assertEqual(looker.stdout.readline(), 'ok\n')
        self.eventually(lambda: not self.delays, 'it waits for the second')
        log = self.starts('cat', projects / project / 'log')
        self.nobody_is_kept_out(('mkdir', projects / project / 'none'), ('cat', projects / project / 'status'))
        self.assertEqual(looker.communicate(timeout=fixture.COMMAND_LIMIT), ('ok\n', ''))
        text, said = log.communicate(timeout=fixture.COMMAND_LIMIT)
        self.assertIn(first, text, said)

    def test_a_late_directory_works_through_a_descriptor(self):
        """One that was opened with O_PATH, which does not wait."""
        mount, projects = self.mounted()
        for order in (('head/f', 'fstat', 'list', 'enter'), ('fstat', 'enter', 'head/f'), ('list', 'fstat', 'head/f'),
                      ('enter', 'list', 'fstat')):
            with self.subTest(order[0]):
                project = publish(self.api, 'p', {'f': 'content\n'})
                self.delays = {f'/projects/{project}': 6}
                said = self.runs(HELD, projects / project, *order).communicate(timeout=fixture.COMMAND_LIMIT)
                shown = {'head/f': 'content', 'fstat': os.stat(projects / project).st_ino, 'list': 'at', 'enter': project}
                self.assertEqual(said, (''.join(f'{what} {shown[what]}\n' for what in order), ''))

    def test_there_is_one_directory_whoever_waited_for_it(self):
        """Who entered it by waiting is where others are, and knows the way back."""
        project = publish(self.api, 'p', {'f': 'one\n'})
        _, projects = self.mounted()
        self.delays = {f'/projects/{project}': 6}
        shells = [self.starts('sh', '-c', 'cd "$1" && touch work/$2 && sleep 2 && pwd -P && ls work', 'sh',
                              projects / project, name) for name in ('x', 'y')]
        for shell in shells:
            where, listed = shell.communicate(timeout=fixture.COMMAND_LIMIT)[0].split('\n', 1)
            self.assertEqual(where, str((projects / project).resolve()))
            self.assertEqual(listed, 'f\nx\ny\n')
        self.assertEqual(sorted(os.listdir(projects / project / 'work')), ['f', 'x', 'y'])

    def test_a_late_state_takes_what_is_written(self):
        """A late file that accepts requests is one open file for each that opened it."""
        project = publish(self.api, 'p', {'f': 'one\n'})
        head = self.api.get('projects', project)['latest_revision']
        _, projects = self.mounted()
        os.stat(projects / project)
        self.delays = {f'/revisions/{head}': 6}
        self.assertEqual(self.command('sh', '-c', f'echo \'{{"k": 1}}\' > "{projects / project}/state.json"').stdout, '')
        self.assertEqual(json.loads((projects / project / 'state.json').read_text()), {'k': 1})

    def foreign(self, files, links=()):
        """A project with files that tell no size, and links; the chunk of each by name."""
        chunks, manifest = {}, {'here': {'h': hashlib.sha256(b'here\n').hexdigest(), 's': 5, 'inline': 'here\n'}}
        for name, text in (*files, *links):
            chunks[name] = self.api.create('file_chunks', rev='', path=name, seq=0, content=text)['id']
            manifest[name] = {'h': hashlib.sha256(text.encode()).hexdigest(), 'c': [chunks[name]]}
            if (name, text) in links:
                manifest[name].update(s=len(text), m='120000')
        project = self.api.create('projects', name='foreign')['id']
        revision = self.api.create('revisions', project=project, parents=[], agent='x', message='strange', state={},
                                   manifest={'files': manifest})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        return project, revision, chunks

    def test_a_size_that_comes_late_too_is_told(self):
        """While somebody lists the directory, so that the kernel has to ask again; first after a late name, then after a
        late link."""
        texts = {'f': 'a stranger tells no size\n', 'd/g': 'nor does another\n'}
        project, revision, chunks = self.foreign(tuple(texts.items()), (('link', 'd'),))
        _, projects = self.mounted()
        tree = projects / project / 'revisions' / revision
        for path, part, listed, late in (('f', f'/projects/{project}', tree, 'f'),
                                         ('link/g', f'/file_chunks/{chunks["link"]}', tree / 'd', 'd/g')):
            with self.subTest(path):
                self.delays = {part: 5, f'/file_chunks/{chunks[late]}': 8}
                reader = self.starts('cat', tree / path)
                self.eventually(lambda: not self.delays, 'it waits for the content')
                time.sleep(1)
                os.listdir(listed)
                self.assertEqual(reader.communicate(timeout=fixture.COMMAND_LIMIT), (texts[late], ''))
                self.assertEqual((tree / path).stat().st_size, len(texts[late]))

    def test_a_name_that_turns_out_not_to_exist(self):
        _, projects = self.mounted()
        missing = projects / '1m00000000000000dead'
        self.delays = {f'/projects/{missing.name}': 6}
        with self.assertRaises(OSError) as refused:
            os.stat(missing)
        self.assertEqual(refused.exception.errno, errno.ENOENT)


if __name__ == '__main__':
    fixture.main()
