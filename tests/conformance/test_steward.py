#!/usr/bin/env python3
"""The steward's commands beside running servers: records are hidden, mail is answered, keys are revoked. Over both
stores; with PostgreSQL, at several servers."""
import json
import threading
import unittest

import postgres
from fixture import COMMAND_LIMIT
from serve_fixture import BASE, Server, ServeTest, ask


class Steward(ServeTest):
    def server(self, *options):
        return Server(self, *options)

    def outbox(self, server):
        return server.store / 'outbox'

    def sign_in(self, server, email):
        """A new key."""
        mails = self.outbox(server)
        before = mails.read_text() if mails.exists() else ''
        self.assertEqual(self.account(server, 'request-code', email)[0], 200)
        code = mails.read_text()[len(before):].partition('code is ')[2].split()[0]
        return self.account(server, 'verify-code', email, code=code)[1]['apiKey']

    def account(self, server, step, email, **more):
        connection = server.connect()
        connection.request('POST', f'/api/auth/agent/{step}', json.dumps({'email': email, **more}),
                           {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        return answer.status, json.load(answer)

    def is_valid(self, server, key):
        return server.send('POST', '/agents', {}, {'Authorization': f'Bearer {key}'})[0] == 200

    def events(self, server):
        """What a watcher reads from now on."""
        events = server.watch().makefile('r')
        self.assertIn('event: hello\n', iter(events.readline, ''))
        return events

    def serve(self, server, *words, check=True):
        return self.playfs('serve', *words, '--store', server.store, check=check)

    def test_hides_a_record(self):
        server = self.server('--limits', 'off')
        thread = server.create('threads', {'title': 'About'})['id']
        before = server.create('messages', {'thread': thread, 'body': 'fine'})
        bad = server.create('messages', {'thread': thread, 'body': 'abominable'})
        revision = server.create('revisions', {'project': 'p', 'message': 'abominable'})['id']
        events = self.events(server)

        self.serve(server, 'hide', bad['id'])
        self.assertTrue(any(bad['id'] in line for line in iter(events.readline, '')), 'events tell of it')
        status, headers, text = ask(server, f'{BASE}/messages/{bad["id"]}')
        hidden = json.loads(text)['record']
        self.assertEqual((hidden.keys(), hidden['status']), ({'id', 'created_at', 'updated_at', 'status'}, 'hidden'))
        self.assertEqual(hidden['created_at'], bad['created_at'])
        self.assertGreater(hidden['updated_at'], bad['updated_at'])
        self.assertEqual(server.all('messages'), [hidden, before], 'it keeps its place')
        for page in f'/threads/{thread}', '/', f'/records/messages/{bad["id"]}', '/.site/export/messages.ndjson':
            status, _, text = ask(server, page)
            self.assertEqual((status, 'abominable' in text), (200, False), page)
        self.assertIn('hidden by the steward', ask(server, f'/threads/{thread}')[2])
        self.assertEqual(server.send('PATCH', f'/messages/{bad["id"]}', {'body': 'again'})[0], 403)
        self.serve(server, 'hide', revision)
        _, headers, text = ask(server, f'{BASE}/revisions/{revision}')
        self.assertNotIn('abominable', text)
        self.assertEqual(headers['Cache-Control'], 'public, no-cache')
        server.stop()
        server.start()
        self.assertEqual(server.send('GET', f'/messages/{bad["id"]}')[1]['record'], hidden)
        self.assertIn('sound', self.serve(server, 'check').stderr)

        self.serve(server, 'hide', bad['id'], '--undo')
        self.assertEqual(server.send('GET', f'/messages/{bad["id"]}')[1]['record']['body'], 'abominable')
        self.assertEqual(self.serve(server, 'hide', 'nothing', check=False).returncode, 5)
        self.assertNotEqual(self.playfs('serve', 'hide', 'x', '--store', self.home / 'none', check=False).returncode, 0)
        self.assertFalse((self.home / 'none').exists())

    def test_answers_mail(self):
        server = self.server()
        mail = server.create('domain_mail', {'kind': 'question', 'subject': 'Why?'})['id']
        self.serve(server, 'answer', mail, '-m', 'Because.', '--state', 'answered')
        record = server.send('GET', f'/domain_mail/{mail}')[1]['record']
        self.assertEqual((record['subject'], record['owner_reply'], record['state']), ('Why?', 'Because.', 'answered'))
        self.assertIn('Because.', ask(server, f'/mail/{mail}')[2])
        self.assertNotEqual(self.serve(server, 'answer', 'nothing', '-m', 'x', check=False).returncode, 0)
        self.assertNotEqual(self.serve(server, 'answer', mail, check=False).returncode, 0)
        self.assertIn('16384', self.serve(server, 'answer', mail, '-m', 'x' * 17_000, check=False).stderr)

    def test_revokes_keys(self):
        server = self.server()

        def are_valid(*keys):
            return [self.is_valid(server, key) for key in keys]

        first, second, other = [self.sign_in(server, f'{name}@example.org') for name in ('ann', 'ann', 'bob')]
        listed = [json.loads(line) for line in self.serve(server, 'accounts', '--json').stdout.splitlines()]
        self.assertEqual([(account['email'], len(account['keys'])) for account in listed],
                         [('ann@example.org', 2), ('bob@example.org', 1)])
        newest = listed[0]['keys'][0]['id']
        self.assertNotIn(second.removeprefix('playfs_'), json.dumps(listed))
        self.serve(server, 'accounts', 'revoke', 'Ann@example.org', newest)
        self.assertEqual(are_valid(first, second, other), [True, False, True])
        self.assertNotEqual(self.serve(server, 'accounts', 'revoke', 'ann@example.org', newest, check=False).returncode, 0)
        self.assertNotEqual(self.serve(server, 'accounts', 'revoke', 'ann@example.org', newest[:3], check=False).returncode, 0)
        self.serve(server, 'accounts', 'revoke', 'ann@example.org')
        self.assertEqual(are_valid(first, second, other), [False, False, True])
        self.assertNotEqual(self.serve(server, 'accounts', 'revoke', 'eve@example.org', check=False).returncode, 0)


@unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
class StewardOverPostgres(Steward):
    """The same, and what is done at one server holds at all of them."""

    def setUp(self):
        super().setUp()
        self.cluster = postgres.Cluster()
        self.addCleanup(self.cluster.remove)
        self.database = self.cluster.new_database()

    def server(self, *options):
        return Server(self, *options, store=postgres.uri(self.cluster.folder, self.database))

    def outbox(self, server):
        return self.home / 'server/data/playfs/served/outbox'

    def test_what_is_hidden_is_hidden_at_all_servers(self):
        first, second = self.server('--limits', 'off'), self.server('--limits', 'off')
        records = [first.create('messages', {'body': f'abominable {number}'}) for number in range(3)]
        bad = records[1]
        chunk = first.create('file_chunks', {'content': 'abominable'})['id']
        newest, = self.cluster.sql('SELECT changed FROM site', self.database)
        events = self.events(second)
        self.serve(first, 'hide', bad['id'])
        self.assertTrue(any(bad['id'] in line for line in iter(events.readline, '')), 'events tell of it')
        for server in first, second:
            self.assertEqual([(record['id'], record['status'], 'body' in record) for record in server.all('messages')],
                             [(record['id'], 'hidden' if record is bad else 'active', record is not bad)
                              for record in reversed(records)])
            self.assertEqual(server.send('PATCH', f'/messages/{bad["id"]}', {'body': 'again'})[0], 403)
        # The change has the next number, and a chunk's has none.
        self.serve(second, 'hide', chunk)
        self.assertEqual(second.send('GET', f'/file_chunks/{chunk}')[1]['record']['status'], 'hidden')
        self.assertEqual(self.cluster.sql(f"SELECT changed FROM records WHERE id = '{bad['id']}' OR id = '{chunk}'"
                                          ' ORDER BY changed', self.database), [str(int(newest) + 1), ''])
        self.assertEqual(self.cluster.sql('SELECT changed FROM site', self.database), [str(int(newest) + 1)])
        self.assertIn('sound', self.serve(second, 'check').stderr)

    def test_a_record_that_is_hidden_while_it_is_changed_stays_hidden(self):
        first, second = self.server('--limits', 'off'), self.server('--limits', 'off')
        project = first.create('projects', {'name': 'p'})['id']
        statuses = []

        def change(server, name):
            connection, status = server.connect(), 200
            while status == 200:
                status, answer = server.send('PATCH', f'/projects/{project}', {name: 1}, connection=connection)
                statuses.append((status, answer.get('code')))

        writers = [threading.Thread(target=change, args=each) for each in ((first, 'a'), (second, 'b'), (first, 'c'))]
        for writer in writers:
            writer.start()
        self.eventually(lambda: len(statuses) > 20, 'they write')
        for _ in range(10):
            self.serve(first, 'hide', project, '--undo')  # also a change
        self.serve(first, 'hide', project)
        for writer in writers:
            writer.join(COMMAND_LIMIT)
        self.assertEqual(sorted(set(statuses)), [(200, None), (403, 'forbidden')])
        self.assertEqual(second.send('GET', f'/projects/{project}')[1]['record']['status'], 'hidden')
        # They take their locks in one order.
        first.stop()
        second.stop()  # now all of it has been counted
        self.assertEqual(self.cluster.sql(f"SELECT deadlocks FROM pg_stat_database WHERE datname = '{self.database}'"),
                         ['0'])

    def test_a_change_that_hiding_overtakes_is_refused(self):
        store = postgres.uri(self.cluster.folder, self.database)
        first = self.server('--limits', 'off')
        project = first.create('projects', {'name': 'p'})['id']
        relay = HiddenMeanwhile(self.cluster, lambda: self.serve(first, 'hide', project))
        self.addCleanup(relay.remove)
        second = Server(self, '--limits', 'off', store=relay.uri(self.database))
        status, answer = second.send('PATCH', f'/projects/{project}', {'name': 'q'})
        self.assertEqual((status, answer['code'], relay.is_hidden), (403, 'forbidden', True))
        self.playfs('serve', 'hide', project, '--undo', '--store', store)
        self.assertEqual(first.send('GET', f'/projects/{project}')[1]['record']['name'], 'p')

    def test_a_key_that_is_revoked_is_refused_by_all_servers(self):
        first, second = self.server(), self.server()
        key, other = self.sign_in(first, 'ann@example.org'), self.sign_in(second, 'Bob@example.org')
        self.assertTrue(self.is_valid(second, key))
        listed = [json.loads(line) for line in self.serve(second, 'accounts', '--json').stdout.splitlines()]
        self.assertEqual([(account['email'], len(account['keys'])) for account in listed],
                         [('ann@example.org', 1), ('bob@example.org', 1)])
        self.serve(first, 'accounts', 'revoke', listed[0]['account'], listed[0]['keys'][0]['id'])
        self.assertEqual([self.is_valid(server, key) for server in (first, second)], [False, False])
        self.assertEqual([self.is_valid(server, other) for server in (first, second)], [True, True])

    def test_the_steward_makes_no_store(self):
        store = postgres.uri(self.cluster.folder, self.database)
        self.assertIn('no store', self.playfs('serve', 'hide', 'x', '--store', store, check=False).stderr)
        self.assertEqual(self.cluster.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", self.database),
                         ['0'])


class HiddenMeanwhile(postgres.Relay):
    """A record is hidden when a change of it has read it, and has not locked it yet."""

    def __init__(self, cluster, hide):
        self.hide, self.is_hidden = hide, False
        super().__init__(cluster)

    def statement(self, sql):
        if 'FROM records WHERE id = ANY' in sql and not self.is_hidden:
            self.is_hidden = True
            self.hide()
        return sql, True


if __name__ == '__main__':
    unittest.main()
