#!/usr/bin/env python3
"""login, logout, whoami and whose records are, against a real `playfs serve`: codes come from its outbox, or from a
local mail server if there is one."""
import json
import re
import socket
import subprocess
import sys
import threading

import fixture
import proxy

DONE, FAILED, USAGE, PENDING, NOT_FOUND, FORBIDDEN, UNREACHABLE = 0, 1, 2, 4, 5, 6, 7
TRIES = 3


class WithAccounts(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.site = ('--site', self.api.origin)

    def outbox(self):
        path = self.home / 'store/outbox'
        return path.read_text() if path.exists() else ''

    def code(self, email):
        return re.findall(rf'To: {re.escape(email)}\n.*?code is (\S+)', self.outbox(), re.DOTALL)[-1]

    def run_login(self, *words, who='ann', entered='', check=True):
        """`playfs login WORDS…` with `entered` as its standard input."""
        done = subprocess.run([self.playfs_path, 'login', *words, *self.site], env=self.environment(who), input=entered,
                              capture_output=True, text=True, timeout=fixture.COMMAND_LIMIT)
        if check:
            self.assertEqual(done.returncode, DONE, done.stderr)
        return done

    def sign_in(self, who='ann', *words):
        """The key."""
        email = f'{who}@example.org'
        self.assertEqual(self.run_login(email, who=who, check=False).returncode, PENDING)
        self.run_login(email, '--code', '-', *words, who=who, entered=self.code(email) + '\n')
        return self.keys(who)[-1]

    def credentials(self, who='ann'):
        return self.home / who / 'config/playfs/credentials.toml'

    def keys(self, who='ann'):
        return re.findall(r"api_key = ['\"](\S+)['\"]", self.credentials(who).read_text())

    def whoami(self, *words, who='ann', variables=None, **options):
        environment = {**self.environment(who), **(variables or {})}
        done = subprocess.run([self.playfs_path, 'whoami', '--json', *words],
                              env={name: value for name, value in environment.items() if value is not None},
                              capture_output=True, text=True, timeout=fixture.COMMAND_LIMIT, **options)
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        return json.loads(done.stdout)


class Login(WithAccounts):
    def test_in_two_steps(self):
        """As a program does that reads its mail in between."""
        email = 'ann@example.org'
        done = self.run_login(email, '--json', check=False)
        document = json.loads(done.stdout)
        self.assertEqual((done.returncode, document['signed_in'], document['email']), (PENDING, False, email))
        self.assertIn('--code CODE', document['next'])
        self.assertNotIn('--agent', document['next'])
        self.assertFalse(self.credentials().exists())
        done = self.run_login(email, '--code', self.code(email), '--agent', 'ann-at-work', '--json')
        document = json.loads(done.stdout)
        self.assertEqual((document['signed_in'], document['new_account']), (True, True))
        self.assertEqual(self.outbox().count('To:'), 1, '--code requests no other code')
        path = self.credentials()
        self.assertEqual((path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777), (0o600, 0o700))
        self.assertEqual(document['credentials'], str(path))
        [key] = self.keys()
        self.assertNotIn(key, done.stdout + done.stderr)
        self.assertIn("email = 'ann@example.org'", path.read_text())
        self.assertIn("agent = 'ann-at-work'", path.read_text())
        self.assertEqual([each.name for each in path.parent.iterdir() if each.name.endswith('.new')], [])

    def test_the_next_command_keeps_the_options(self):
        account = self.site[1]
        done = self.run_login('ann@example.org', '--agent', 'zoe', '--account-url', account, '--json', check=False)
        following = json.loads(done.stdout)['next']
        self.command('sh', '-c', following.replace('playfs', str(self.playfs_path), 1).replace(
            'CODE', self.code('ann@example.org')))
        self.assertIn("agent = 'zoe'", self.credentials().read_text())
        done = self.run_login('bob@example.org', '--agent', 'bo', '--code', '0-0', '--json', check=False)
        self.assertIn('--agent bo', json.loads(done.stdout)['error']['hint'])

    def test_on_a_terminal(self):
        """The address and the code are asked for; a wrong code is asked for again."""
        output = []

        def typed(pattern, words):
            script = self.home / 'type.py'
            script.write_text(TYPIST)
            done = subprocess.run([sys.executable, str(script), json.dumps(words), str(self.home / 'store/outbox'), pattern],
                                  env=self.environment('ann'), capture_output=True, text=True,
                                  timeout=fixture.COMMAND_LIMIT)
            output.append(done.stdout)
            return done.returncode

        login = [self.playfs_path, 'login', *self.site]
        self.assertEqual(typed('right', login), DONE, output)
        self.assertRegex(output[-1], r'Type the email address .*Ctrl-D.*\nEmail: ')
        self.assertRegex(output[-1], r'Type the code .*Ctrl-D.*\nCode: ')
        self.assertEqual(output[-1].count('That code is wrong.'), 1, output[-1])
        self.assertIn('Signed in as ann@example.org', output[-1])
        self.assertNotIn(self.keys()[0], output[-1])
        self.assertEqual(typed('wrong', login), FORBIDDEN, output)
        self.assertEqual(output[-1].count('Code: '), TRIES, output[-1])
        self.assertIn('playfs login ann@example.org --site', output[-1])
        self.assertEqual(len(self.keys()), 1, 'the old key stays')

    def test_a_wrong_code(self):
        self.assertEqual(self.run_login('ann@example.org', check=False).returncode, PENDING)
        done = self.run_login('ann@example.org', '--code', '0000-0000', '--json', check=False)
        error = json.loads(done.stdout)['error']
        self.assertEqual((done.returncode, error['code'], error['retryable']), (FORBIDDEN, 'unauthorized', False))
        self.assertIn('playfs login ann@example.org', error['hint'])
        self.assertEqual(error['message'], 'the code is wrong or has expired')
        done = self.run_login('bob@example.org', entered='1\n2\n3\n4\n', check=False)
        self.assertEqual(done.returncode, FORBIDDEN, done.stderr)
        self.assertFalse(self.credentials().exists())

    def test_too_many_codes(self):
        for _ in range(5):
            self.assertEqual(self.run_login('ann@example.org', check=False).returncode, PENDING)
        done = self.run_login('ann@example.org', '--json', check=False)
        error = json.loads(done.stdout)['error']
        self.assertEqual((done.returncode, error['code'], error['retryable']), (PENDING, 'rate_limited', True))
        self.assertGreater(error['retry_after_s'], 0)

    def test_what_is_no_address(self):
        for email in ('', 'ann', '@example.org', 'ann@', 'ann bob@example.org', 'ann@example.org\x1b[31m'):
            done = self.run_login(*([email] if email else []), check=False)
            self.assertEqual(done.returncode, USAGE, email)
            self.assertNotIn('\x1b', done.stderr)
        self.assertEqual(self.run_login('ann@example.org', '--agent', 'a\x1bb', check=False).returncode, USAGE)
        self.assertEqual(self.outbox(), '')

    def test_no_code_is_sent_if_the_key_could_not_be_kept(self):
        path = self.credentials()
        path.parent.mkdir(parents=True, mode=0o700)
        for text, mode, code in (("['https://other.org']\napi_key = 'k'\n", 0o644, FORBIDDEN), ('not TOML', 0o600, USAGE)):
            path.write_text(text)
            path.chmod(mode)
            self.assertEqual(self.run_login('ann@example.org', check=False).returncode, code)
            self.assertEqual(path.read_text(), text)
        self.assertEqual(self.outbox(), '')

    def test_a_disk_without_room_keeps_the_old_key(self):
        self.sign_in()
        before = self.credentials().read_text()
        self.assertEqual(self.run_login('ann@example.org', check=False).returncode, PENDING)
        done = self.command('bash', '-c', 'ulimit -f 0; trap "" XFSZ; exec "$@"', 'bash', self.playfs_path, 'login',
                            'ann@example.org', '--code', self.code('ann@example.org'), *self.site, check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn('the key could not be kept', done.stderr)
        self.assertEqual(self.credentials().read_text(), before)

    def test_two_logins_at_once_keep_both_keys(self):
        other = f'http://localhost:{self.api.origin.rsplit(":", 1)[1]}'
        logins = [subprocess.Popen([self.playfs_path, 'login', f'{name}@example.org', '--site', site],
                                   env=self.environment('ann'), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
                  for name, site in (('eve', self.api.origin), ('dan', other))]
        for login, name in zip(logins, ('eve', 'dan')):
            self.eventually(lambda: f'To: {name}@example.org' in self.outbox(), 'a code')
        answers = [threading.Thread(target=login.communicate, args=(self.code(f'{name}@example.org') + '\n',))
                   for login, name in zip(logins, ('eve', 'dan'))]
        for answer in answers:
            answer.start()
        for answer in answers:
            answer.join()
        self.assertEqual([login.returncode for login in logins], [DONE, DONE])
        self.assertEqual(len(set(self.keys())), 2)

    def test_nothing_is_sent_over_plain_http(self):
        """A proxy would get the request, if there were one."""
        connections = []
        with socket.create_server(('127.0.0.1', 0)) as trap:
            proxy = f'http://127.0.0.1:{trap.getsockname()[1]}'
            environment = {**self.environment('ann'), 'http_proxy': proxy}

            def answer():
                while True:
                    try:
                        connection, _ = trap.accept()
                    except OSError:
                        return
                    connections.append(connection)
                    connection.close()

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()

            def run(*words):
                return subprocess.run([self.playfs_path, *words], env=environment, capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, timeout=fixture.COMMAND_LIMIT)

            for words in (['--site', 'http://example.org'], [*self.site, '--account-url', 'http://example.org']):
                done = run('login', 'ann@example.org', *words)
                self.assertEqual(done.returncode, FORBIDDEN, done.stderr)
                self.assertIn('plain http', done.stderr)
            self.assertEqual(connections, [])
            run('api', 'GET', '/projects', '--site', 'http://example.org')
            self.assertTrue(connections, 'the trap works')
            trap.shutdown(socket.SHUT_RDWR)
            thread.join()
        self.assertEqual(self.outbox(), '')

    def test_another_account_service(self):
        """The key is filed under the site, not under the account service that issued it."""
        other = f'http://localhost:{self.api.origin.rsplit(":", 1)[1]}'
        config = self.home / 'ann/config/playfs/config.toml'
        config.parent.mkdir(parents=True, mode=0o700)
        config.write_text(f"[sites.'http://127.0.0.1:1']\naccount_url = '{other}'\n")
        site = ('--site', 'http://127.0.0.1:1')
        self.assertEqual(self.playfs('login', 'ann@example.org', *site, check=False).returncode, PENDING)
        self.playfs('login', 'ann@example.org', '--code', self.code('ann@example.org'), *site)
        self.assertIn("['http://127.0.0.1:1']", self.credentials().read_text())
        self.assertEqual(self.playfs('login', 'ann@example.org', '--site', 'http://127.0.0.1:1', '--account-url',
                                     'http://127.0.0.1:2', check=False).returncode, UNREACHABLE)

    def test_a_local_playground_needs_none(self):
        for command in ('login', 'logout'):
            document = json.loads(self.playfs(command, '--json').stdout)
            self.assertEqual((document['site'], document['signed_in']), ('local:default', False))
        self.assertIn('no accounts', self.playfs('login').stderr)

    def test_no_tree_says_where(self):
        """Anybody may have made the tree, and a service that hands on all that it is told would get the key."""
        mark = {'schema_version': 1, 'site': 'http://127.0.0.1:1', 'base_path': '/.site/data', 'project': 'p',
                'revision': 'r'}
        for name in ('tree.json', 'clone.json'):
            inside = self.home / f'of-{name}/src'
            inside.mkdir(parents=True)
            (inside.parent / '.playfs').mkdir()
            (inside.parent / '.playfs' / name).write_text(json.dumps(mark))
            environment = {**self.environment('ann'), 'PLAYFS_SITE': self.api.origin}

            def run(*words, variables=environment, inside=inside):
                return subprocess.run([self.playfs_path, *words, '--json'], env=variables, cwd=inside, text=True,
                                      stdin=subprocess.DEVNULL, capture_output=True, timeout=fixture.COMMAND_LIMIT)

            done = run('login', 'ann@example.org')
            self.assertEqual(done.returncode, PENDING, done.stdout + done.stderr)
            self.assertLess(done.stderr.index(f'Signing in at {self.api.origin}.'), done.stderr.index('A code is on'))
            created = json.loads(run('init', name).stdout)
            self.assertEqual(created['site'], self.api.origin)
            for command in ('whoami', 'logout'):
                self.assertEqual(json.loads(run(command).stdout)['site'], self.api.origin)
                alone = run(command, variables=self.environment('ann'))
                self.assertEqual(json.loads(alone.stdout)['site'], 'local:default')
            self.assertEqual(run('agent', 'register', f'ann-{name[:4]}').returncode, DONE)
            self.assertEqual(run('ls').returncode, UNREACHABLE, 'what is about the tree asks the service of the tree')

    def test_logout(self):
        key = self.sign_in()
        with self.credentials().open('a') as file:
            file.write("\n# mine\n['https://other.org']\napi_key = 'other'\n")
        done = self.playfs('logout', *self.site, '--json')
        self.assertEqual(json.loads(done.stdout)['was_signed_in'], True)
        self.assertIn('still accepts it', done.stderr)
        text = self.credentials().read_text()
        self.assertNotIn(key, text)
        self.assertIn("# mine\n['https://other.org']\napi_key = 'other'", text)
        done = self.playfs('logout', *self.site, '--json')
        self.assertEqual(json.loads(done.stdout)['was_signed_in'], False)


class Owners(WithAccounts):
    def test_only_the_owner_changes_mail_and_revisions(self):
        self.sign_in('ann')
        self.sign_in('carol')
        plain = self.home / 'plain'
        plain.mkdir()
        (plain / 'a').write_text('a\n')
        self.playfs('import', plain, *self.site)
        [revision] = self.api.all('revisions')
        mail = json.loads(self.playfs('api', 'POST', '/domain_mail', '-d', '{"kind": "idea", "subject": "s"}',
                                      *self.site).stdout)['record']
        for path, field in ((f'/domain_mail/{mail["id"]}', 'subject'), (f'/revisions/{revision["id"]}', 'message')):
            change = ('api', 'PATCH', path, '-d', json.dumps({field: 'changed'}), *self.site)
            for stranger in 'bob', 'carol':  # not signed in; signed in as somebody else
                done = self.playfs(*change, who=stranger, check=False)
                self.assertEqual(done.returncode, FORBIDDEN, done.stdout)
                self.assertIn('403', done.stderr)
            self.assertEqual(fixture.fields(json.loads(self.playfs(*change).stdout)['record'])[field], 'changed')
            self.playfs('logout', *self.site, who='carol')
            self.sign_in('carol')
        self.playfs('logout', *self.site)
        self.assertEqual(self.playfs(*change, check=False).returncode, FORBIDDEN)


class Whoami(WithAccounts):
    def test_where_the_handle_is_from(self):
        found = self.whoami(*self.site)
        self.assertEqual((found['agent'], found['agent_from'], found['rests_on']), ('ann', 'environment', 'claim'))
        unset = {'PLAYFS_AGENT': None, 'LOGNAME': 'unix-ann'}
        self.assertEqual(self.whoami(*self.site, variables=unset)['agent_from'], 'system')
        self.assertEqual(self.whoami(*self.site, variables=unset)['agent'], 'unix-ann', 'no part of an address')
        self.sign_in('ann', '--agent', 'logged-in')
        found = self.whoami(*self.site, variables=unset)
        self.assertEqual((found['agent'], found['agent_from'], found['rests_on'], found['email']),
                         ('logged-in', 'login', 'account', 'ann@example.org'))
        self.sign_in('ann')
        self.assertEqual(self.whoami(*self.site, variables=unset)['agent'], 'logged-in', 'kept by the next login')
        config = self.home / 'ann/config/playfs/config.toml'
        config.write_text(f"agent = 'general'\n[sites.'{self.api.origin}']\nagent = 'here'\n")
        found = self.whoami(*self.site, variables=unset)
        self.assertEqual((found['agent'], found['agent_from']), ('here', 'config'))
        found = self.whoami(*self.site, '--agent', 'flagged')
        self.assertEqual((found['agent'], found['agent_from']), ('flagged', 'flag'))
        shown = self.playfs('whoami', *self.site).stdout
        self.assertIn('signed in as ann@example.org', shown)
        self.assertNotIn(self.keys()[0], shown)

    def test_whether_it_is_registered(self):
        registered = self.whoami(*self.site)['registered']
        self.assertEqual((registered['id'], registered['checked']), (None, True))
        first = self.api.create('agents', handle='ann')
        self.api.create('agents', handle='ann')
        registered = self.whoami(*self.site)['registered']
        self.assertEqual((registered['id'], registered['checked']), (first['id'], True))
        self.assertEqual(registered['since'][:16], first['created_at'][:16])
        registered = self.whoami(*self.site, variables={'PLAYFS_OFFLINE': 'yes'})['registered']
        self.assertEqual((registered['checked'], registered['error']['code']), (False, 'offline'))
        registered = self.whoami('--site', f'http://127.0.0.1:{fixture.free_port()}')['registered']
        self.assertEqual((registered['checked'], registered['error']['code']), (False, 'unreachable'))
        counting = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)
        known = self.whoami('--site', counting.url)['registered']['id']
        counting.hanging = '/'
        registered = self.whoami('--site', counting.url)['registered']
        self.assertEqual((registered['id'], registered['checked']), (known, False))
        self.assertEqual(registered['error']['code'], 'timed_out', 'it has not used up all of its attempts')

    def keep_key(self, key):
        """Writes another key into ann's file, as if it had been entered by hand."""
        path = self.credentials()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(f"['{self.api.origin}']\napi_key = '{key}'\n")
        path.chmod(0o600)

    def test_a_key_that_the_service_accepts(self):
        key = self.sign_in()
        found = self.whoami(*self.site)
        self.assertEqual((found['rests_on'], found['key']), ('account', {'checked': True, 'valid': True}))
        self.assertNotIn('not checked', self.playfs('whoami', *self.site).stdout)
        self.keep_key(key)
        self.assertEqual(self.whoami(*self.site)['email'], 'ann@example.org', 'as the service says')

    def test_a_key_that_the_service_refuses(self):
        def refused():
            found = self.whoami(*self.site)
            self.assertEqual((found['rests_on'], found['key']['checked'], found['key']['valid']), ('nothing', True, False))
            self.assertEqual(found['key']['error']['code'], 'unauthorized')
            shown = self.playfs('whoami', *self.site).stdout
            self.assertRegex(shown, r'rests on +nothing: http://\S+ refuses the key')
            self.assertIn('playfs login', shown)
            self.assertNotIn('signed in as', shown)
            return shown

        self.sign_in()
        self.playfs('serve', 'accounts', 'revoke', 'ann@example.org', '--store', self.home / 'store')
        self.assertIn('playfs login ann@example.org --site', refused(), 'revoked')
        self.keep_key('playfs_' + '0' * 48)
        refused()
        self.keep_key('not one of this service')
        refused()
        done = self.playfs('api', 'POST', '/agents', '-d', '{"handle": "x"}', *self.site, check=False)
        self.assertEqual(done.returncode, FORBIDDEN, 'as whoami says')

    def test_a_key_that_nobody_checked(self):
        def unchecked(site, code, variables=None):
            found = self.whoami('--site', site, variables=variables)
            self.assertEqual((found['rests_on'], found['key']['checked'], found['key']['valid'],
                              found['key']['error']['code']), ('account', False, None, code))
            environment = {**self.environment('ann'), **(variables or {})}
            shown = subprocess.run([self.playfs_path, 'whoami', '--site', site], env=environment, capture_output=True,
                                   text=True, timeout=fixture.COMMAND_LIMIT).stdout
            self.assertIn('The key was not checked: ', shown)

        self.sign_in()
        unchecked(self.api.origin, 'offline', {'PLAYFS_OFFLINE': 'yes'})
        counting = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(counting.close)
        [key] = self.keys()
        with self.credentials().open('a') as file:
            file.write(f"['{counting.url}']\napi_key = '{key}'\n['http://127.0.0.1:1']\napi_key = '{key}'\n")
        unchecked('http://127.0.0.1:1', 'unreachable')
        unchecked(counting.url, 'not_supported')  # it does not say what it offers
        counting.tells = True
        self.assertIs(self.whoami('--site', counting.url)['key']['valid'], True)
        counting.fate = lambda request: (404, '{}') if request.endswith('/.site/key') else None
        unchecked(counting.url, 'not_found')
        counting.fate = lambda request: (200, '{nothing}') if request.endswith('/.site/key') else None
        unchecked(counting.url, 'protocol')

    def test_keys_that_others_can_read_are_refused(self):
        self.sign_in()
        self.credentials().chmod(0o644)
        done = self.playfs('whoami', *self.site, check=False)
        self.assertEqual(done.returncode, FORBIDDEN, done.stderr)
        self.assertIn('chmod 600', done.stderr)


class Mail(fixture.Fixture):
    def test_with_a_mail_server(self):
        """The code comes as mail, over SMTP."""
        python = next((each for each in (sys.executable, '/usr/bin/python3')
                       if subprocess.run([each, '-c', 'import aiosmtpd'], capture_output=True).returncode == 0), None)
        if python is None:
            self.skipTest('python3-aiosmtpd is missing')
        port, received = fixture.free_port(), self.home / 'received'
        with received.open('w') as output:
            server = subprocess.Popen([python, '-u', '-m', 'aiosmtpd', '-n', '-l', f'127.0.0.1:{port}', '-c',
                                       'aiosmtpd.handlers.Debugging', 'stdout'], stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)

        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', port)) == 0

        self.eventually(listens, 'the mail server listens')
        api = self.serve(options=('--smtp', f'smtp://127.0.0.1:{port}', '--mail-from', 'playground@example.org'))
        login = subprocess.Popen([self.playfs_path, 'login', 'ann@example.org', '--site', api.origin, '--json'],
                                 env=self.environment('ann'), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(login.wait)
        self.addCleanup(login.kill)
        self.eventually(lambda: 'END MESSAGE' in received.read_text(), 'the mail arrives')
        mail = received.read_text()
        self.assertRegex(mail, r'(?m)^From: .*playground@example\.org')
        self.assertRegex(mail, r'(?m)^To: .*ann@example\.org')
        code = re.search(r'Your sign-in code is (\S+)', mail)[1]
        self.assertIs(json.loads(login.communicate(code + '\n', fixture.COMMAND_LIMIT)[0])['signed_in'], True)
        self.assertFalse((self.home / 'store/outbox').exists())
        self.assertIn(api.origin, (self.home / 'ann/config/playfs/credentials.toml').read_text())


# Types on a terminal: ann's address, a wrong code, and then the right one or more wrong ones.
TYPIST = r'''
import json, os, pathlib, pty, re, select, sys
words, outbox, kind = json.loads(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(words[0], words)
shown, prompts = '', 0
while select.select([terminal], [], [], 30)[0]:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data.decode()
    if shown.endswith('Email: '):
        os.write(terminal, b'ann@example.org\n')
        shown += '\n'
    elif shown.endswith('Code: '):
        prompts += 1
        code = re.findall(r'code is (\S+)', outbox.read_text())[-1]
        os.write(terminal, (code.lower() if kind == 'right' and prompts > 1 else '1111-1111').encode() + b'\n')
        shown += '\n'
print(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
'''

if __name__ == '__main__':
    fixture.main()
