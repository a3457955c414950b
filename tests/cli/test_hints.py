#!/usr/bin/env python3
"""Each error says what to do next, and what it says can be done: the commands and options that it names exist."""
import contextlib
import json
import os
import re
import socket

import fixture

SOURCES = fixture.ROOT / 'src'
# What may follow the name of the program in a sentence about it.
SENTENCE = {'agent', 'and', 'as', 'at', 'be', 'can', 'cannot', 'client', 'clients', 'command', 'contains', 'does', 'for', 'from', 'has',
            'is', 'itself', 'keeps', 'knows', 'may', 'mounts', 'needs', 'never', 'of', 'only', 'or', 'process', 'publishes',
            'replaced', 'retries', 'shows', 'speaks', 'stores', 'that', 'to', 'until', 'was', 'will', 'with', 'writes', 'wrote'}


def literals(text):
    """The string literals of a C++ source, without its comments."""
    token = r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)\''
    return [raw or plain.replace('\\"', '"') for _, raw, plain in re.findall(token, text, re.S) if raw or plain]


class Hints(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.maxDiff = None
        self.helps, self.wrong = {}, []
        self.addCleanup(lambda: self.assertEqual(self.wrong, [], "\n".join(self.wrong)))
        self.commands = set()
        for names in re.findall(r'^  ([a-z]+(?:, [a-z]+)*)  ', self.help_of(), re.M):
            self.commands.update(names.split(', '))
        self.assertIn('doctor', self.commands)

    def help_of(self, *words):
        if words not in self.helps:
            self.helps[words] = self.playfs(*words, '--help').stdout
        return self.helps[words]

    def check(self, text, where, sentence=frozenset()):
        """Notes the command lines in the text that do not parse: unknown first words, or options. How many there are."""
        count = 0
        for words, rest in re.findall(r'(?<![\w/.-])playfs ((?:[a-z]+ ?)+)([^;,:()`"\n]*)', text):
            command, *others = words.split()
            if command not in self.commands:
                if command not in sentence:
                    self.wrong.append(f'{where}: there is no command playfs {command}: {text}')
                continue
            count += 1
            shown = self.help_of(command)
            if others and re.search(rf'^  {others[0]}  ', shown.partition('SUBCOMMANDS')[2].lower() or shown, re.M):
                shown = self.help_of(command, others[0])
            # What follows `--` is not ours.
            for flag in re.findall(r'(?<![\w-])(--?[a-z][a-z-]*)', re.split(r' -- | and | or ', rest)[0]):
                if not re.search(rf'(?<![\w-]){flag}\b', shown):
                    self.wrong.append(f'{where}: playfs {command} has no {flag}: {text}')
        return count

    def test_each_command_in_the_table_of_hints_exists(self):
        codes = re.search(r'enum class ErrorCode \{(.*?)\};', (SOURCES / 'base/result.h').read_text(), re.S)[1]
        names = re.findall(r'^  ([a-z_]+)', re.sub(r'//[^\n]*', '', codes), re.M)
        table = (SOURCES / 'base/hints.cpp').read_text()
        rows = dict(re.findall(r'case ErrorCode::(\w+):\s+return (.*?);', table, re.S))
        self.assertEqual(list(rows), names)
        count = sum(self.check(' '.join(literals(hint)), code) for code, hint in rows.items())
        self.assertGreaterEqual(count, 8)

    def test_each_command_that_the_program_names_exists(self):
        count = 0
        for path in sorted(SOURCES.rglob('*')):
            if path.suffix in ('.cpp', '.h'):
                for text in literals(path.read_text()):
                    count += self.check(text, path.relative_to(SOURCES), SENTENCE)
        self.assertGreater(count, 200)

    def failing(self):
        """Commands that fail, each for a reason of another kind."""
        (self.home / 'full').mkdir()
        (self.home / 'full/file').write_text('text\n')
        api = self.serve()
        site = ('--site', api.origin)
        self.playfs('import', self.home / 'full', '--name', 'demo', *site)
        self.playfs('clone', 'demo', self.home / 'clone', *site)
        return {
            'not_found': [('show', 'nothing', *site), ('cat', 'demo', 'nothing', *site), ('commit', '-m', 'x', '/')],
            'invalid_argument': [('mount', '-o', 'refresh=never', self.home / 'full'), ('import', self.home / 'clone'),
                                 ('export', 'demo')],
            'already_exists': [('clone', 'demo', self.home / 'clone', *site)],
            'is_a_directory': [('cat', 'demo', '', *site)],
            'not_a_directory': [('import', self.home / 'full/file', *site)],
            'not_empty': [('export', 'demo', self.home / 'full', *site)],
            'unreachable': [('ls', '--site', f'http://127.0.0.1:{fixture.free_port()}')],
        }

    def test_commands_that_fail_say_what_to_do_next_once(self):
        seen = set()
        for kind, several in self.failing().items():
            for words in several:
                with self.subTest(kind=kind, words=words):
                    shown = self.playfs(*words, check=False)
                    self.assertNotEqual(shown.returncode, 0)
                    self.assertEqual(len(re.findall(r'^Try: \S', shown.stderr, re.M)), 1, shown.stderr)
                    error = json.loads(self.playfs(*words, '--json', check=False).stdout)['error']
                    seen.add(error['code'])
                    self.assertTrue(error['hint'], error)
                    self.assertIn(f'Try: {error["hint"]}', shown.stderr)
                    self.check(error['hint'], words)
        self.assertGreaterEqual(len(seen), 6, seen)

    def hint(self, *words, environment=None):
        """What the command that fails advises; its command lines exist."""
        done = self.command(*(environment or ()), self.playfs_path, *words, '--json', check=False)
        self.assertNotEqual(done.returncode, 0, words)
        error = json.loads(done.stdout)['error']
        self.check(error['hint'], words)
        return error['code'], error['hint']

    def test_serve_says_why_it_cannot_listen_and_what_to_type(self):
        def serve(listen):
            return self.hint('serve', '--store', self.home / 'store', '--listen', listen)

        with socket.create_server(('127.0.0.1', 0)) as other:
            port = other.getsockname()[1]
            code, hint = serve(f'127.0.0.1:{port}')
            self.assertEqual(code, 'busy')
            self.assertIn('--listen 127.0.0.1:0', hint)
            self.assertIn(f'sport = :{port}', hint)
        code, hint = serve('192.0.2.7:8787')
        self.assertEqual(code, 'invalid_argument')
        self.assertIn('ip -brief address', hint)
        self.assertIn('--listen 127.0.0.1:8787', serve('somewhere:8787')[1])
        if os.geteuid() == 0:
            # A network of its own, in which a low port needs a right that this process gives up.
            done = self.command('unshare', '-n', 'setpriv', '--bounding-set=-net_bind_service', self.playfs_path, 'serve',
                                '--listen', '0.0.0.0:80', '--store', self.home / 'store', check=False)
            self.assertIn('CAP_NET_BIND_SERVICE', done.stderr)

    def test_serve_says_what_to_check_if_there_is_no_database(self):
        code, hint = self.hint('serve', '--store', f'postgresql://127.0.0.1:{fixture.free_port()}/x', '--listen', '127.0.0.1:0')
        self.assertEqual(code, 'busy')
        self.assertRegex(hint, r'pg_isready -h 127\.0\.0\.1 -p \d+')

    def test_calls_of_the_api_that_fail_have_a_hint(self):
        site = ('--site', self.serve().origin)
        for words, code, expected in (
                (('GET', '/nothing'), 'not_found', 'api GET / .*lists the collections'),
                (('GET', '/projects/nothing'), 'not_found', 'api GET /projects .*lists what is there'),
                (('GET', '/projects?limit=0'), 'invalid_argument', 'from 1 to 100'),
                (('POST', '/threads', '-d', '{"title": '), 'invalid_argument', '--data'),
                (('DELETE', '/projects/nothing'), 'invalid_argument', 'PATCH')):
            found, hint = self.hint('api', *words, *site)
            self.assertEqual(found, code, words)
            self.assertRegex(hint, expected, words)
            self.assertIn(f'Try: {hint}', self.playfs('api', *words, *site, check=False).stderr)

    @fixture.needs_fuse
    def test_a_tree_that_another_mount_has_says_where_the_reason_is(self):
        api = self.serve()
        first, second = (self.mount(api.origin) for _ in range(2))
        self.playfs('init', 'demo', '--site', api.origin)
        for mount in (first, second):
            work = mount.project('demo') / 'work'
            self.playfs('status', work)
        code, hint = self.hint('discard', work)
        self.assertEqual(code, 'not_supported')
        self.assertIn(f'playfs status {work}', hint)

    def test_what_playfs_keeps_is_not_published(self):
        home = self.home / 'ann'
        (home / 'config/playfs').mkdir(parents=True, mode=0o700)
        keys = home / 'config/playfs/credentials.toml'
        keys.write_text('["https://example.org"]\napi_key = "secret"\n')
        keys.chmod(0o600)
        site = ('--site', self.serve().origin)
        for directory in (home, self.home, home / 'config', '/'):
            code, hint = self.hint('import', directory, '--name', 'all', *site)
            self.assertEqual(code, 'invalid_argument')
            self.assertIn("only the project's files", hint)
        self.assertEqual(self.playfs('ls', *site).stdout, '')

    def test_offline_names_what_made_it_so(self):
        api = self.serve()
        done = self.command('env', 'PLAYFS_OFFLINE=1', self.playfs_path, 'ls', '--json', '--site', api.origin, check=False)
        error = json.loads(done.stdout)['error']
        self.assertEqual((done.returncode, error['code']), (7, 'offline'))
        self.assertIn('PLAYFS_OFFLINE', error['hint'])

    @fixture.needs_fuse
    def test_every_line_of_a_mounts_errors_has_one(self):
        api = self.serve(options=())
        mount = self.mount(api.origin)
        self.playfs('init', 'demo', '--site', api.origin)
        work = mount.project('demo') / 'work'
        (work / 'file').write_text('text\n')
        for write in (lambda: (mount.directory / 'projects/new').write_text('{"a": 1}'),
                      lambda: (mount.directory / 'threads/new').write_text('{"title": 1}'),
                      lambda: (mount.project('demo') / 'commit').write_text('{"message": 5}'),
                      lambda: (mount.directory / 'agents/new').write_text('{"handle": 7}')):
            with contextlib.suppress(OSError):
                write()
        lines = [json.loads(line) for line in (mount.directory / '.playfs/errors.ndjson').read_text().splitlines()]
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertTrue(line['hint'], line)
            self.check(line['hint'], line)


if __name__ == '__main__':
    fixture.main()
