#!/usr/bin/env python3
"""Sign-in and keys where several servers over one PostgreSQL database do them at once, for clients of several
addresses: those of one would wait for each other's limits."""
import http.client
import json
import re
import threading
import urllib.parse

import fixture
import postgres
from servers_fixture import Servers

MAIL = 'ann@example.org'
CLIENTS = '127.0.0.2', '127.0.0.3', '127.0.0.4'
KEYS = 10  # of an account


class Accounts(Servers):
    def setUp(self):
        super().setUp()
        relay = postgres.SlowCommits(self.cluster)
        self.addCleanup(relay.remove)
        self.servers = self.begin(3, store=relay.uri(self.database))

    def ask(self, server, path, body, client=CLIENTS[0], **headers):
        """Status, headers and text."""
        connection = http.client.HTTPConnection(server.address, timeout=fixture.COMMAND_LIMIT, source_address=(client, 0))
        connection.request('POST', path, body, {'Origin': server.url, **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def account(self, server, step, client, email=MAIL, **fields):
        status, _, text = self.ask(server, f'/api/auth/agent/{step}', json.dumps({'email': email, **fields}), client,
                                   **{'Content-Type': 'application/json'})
        return status, json.loads(text)

    def new_code(self, client=CLIENTS[0], email=MAIL):
        self.assertEqual(self.account(self.servers[0], 'request-code', client, email)[0], 200)
        return re.findall(r'code is (\S+)', (self.home / 'server/data/playfs/served/outbox').read_text())[-1]

    def at_once(self, count, work):
        """What `work` returns for each of so many numbers."""
        returned, start = [], threading.Barrier(count)

        def run(number):
            start.wait(fixture.COMMAND_LIMIT)
            returned.append(work(number))

        self.threads(*(lambda number=number: run(number) for number in range(count)))
        return returned

    def keys(self):
        return self.cluster.sql('SELECT count(*) FROM api_keys', self.database)

    def test_a_code_is_good_for_one_of_those_who_have_it(self):
        for attempt in range(5):
            code = self.new_code(CLIENTS[attempt % 3])
            answers = self.at_once(3, lambda n, code=code: self.account(self.servers[n], 'verify-code', CLIENTS[n],
                                                                        code=code)[0])
            self.assertEqual(sorted(answers), [200, 401, 401])
            self.assertEqual(self.keys(), [str(attempt + 1)])

    def test_the_two_newest_codes_of_a_client_are_good(self):
        other = self.new_code(email='bob@example.org')
        codes = [self.new_code() for _ in range(3)]
        self.new_code(CLIENTS[1])  # takes nothing from the others
        answers = [self.account(server, 'verify-code', CLIENTS[2], code=code)[0]
                   for server, code in zip(self.servers, codes)]
        self.assertEqual(answers, [401, 200, 401], 'too old; good; void, since the address has signed in')
        self.assertEqual(self.account(self.servers[1], 'verify-code', CLIENTS[0], 'bob@example.org', code=other)[0], 200)

    def test_an_account_keeps_its_newest_keys(self):
        made = [self.account(self.servers[number % 3], 'verify-code', client, code=self.new_code(client))[1]['apiKey']
                for number, client in enumerate(CLIENTS * 4)]
        valid = [self.servers[0].send('POST', '/agents', {}, {'Authorization': f'Bearer {key}'})[0] for key in made]
        self.assertEqual(valid, [401] * (len(made) - KEYS) + [200] * KEYS)

    def test_keys_made_at_once_are_counted_together(self):
        form = {'Content-Type': 'application/x-www-form-urlencoded'}
        status, headers, _ = self.ask(self.servers[0], '/account/sign-in',
                                      urllib.parse.urlencode({'email': MAIL, 'code': self.new_code()}), **form)
        self.assertEqual(status, 303)
        # So that none of these makes the cookie's key one too many.
        for _ in range(KEYS - 2):
            self.cluster.sql("INSERT INTO api_keys (hash, account, created_at) SELECT random()::text::bytea, account, 1"
                             ' FROM api_keys LIMIT 1', self.database)
        cookie = headers['Set-Cookie'].partition(';')[0]
        for _ in range(2):
            answers = self.at_once(3, lambda n: self.ask(self.servers[n], '/account/keys', '', Cookie=cookie, **form)[0])
            self.assertEqual(answers, [200] * 3)
            self.assertEqual(self.keys(), [str(KEYS)])
            # An account makes only a few keys a minute: these are two minutes old from here on.
            self.cluster.sql("UPDATE api_keys SET created_at = created_at - 120000000 WHERE created_at > 1",
                             self.database)


if __name__ == '__main__':
    fixture.main()
