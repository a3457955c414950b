#!/usr/bin/env python3
"""Several servers over one PostgreSQL database: they answer as if they were one, also when one of them or the database
dies or hangs."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import threading
import time

import fixture
import postgres
from serve_fixture import BASE, Server
from servers_fixture import Servers


class OneTruth(Servers):
    def count_answers(self, servers, each):
        """How many of the messages of nine writers, three at each server, are taken, and how many refused."""
        answers = []

        def write(server):
            connection = server.connect()
            for _ in range(each):
                answers.append(server.send('POST', '/messages', {'body': 'x'}, connection=connection)[0])

        self.threads(*(lambda server=server: write(server) for server in servers * 3))
        return answers.count(200), answers.count(429)

    def test_a_limit_holds_for_all_servers_together(self):
        allowed, expired = 60, 7
        limits = self.home / 'limits.json'
        limits.write_text(json.dumps({'messages': allowed}))
        servers = self.begin(3, limits)
        self.assertEqual(self.count_answers(servers, 20), (allowed, 180 - allowed))
        self.assertEqual(len(servers[1].all('messages')), allowed)
        # As many as have been written an hour ago may follow, and no more.
        self.cluster.sql('UPDATE write_limits SET expiries = ARRAY(SELECT CASE WHEN n > '
                         f'{expired} THEN expiry ELSE 1 END FROM unnest(expiries) WITH ORDINALITY AS e (expiry, n))',
                         self.database)
        self.assertEqual(self.count_answers(servers, 5), (expired, 45 - expired))
        self.assertEqual(len(servers[2].all('messages')), allowed + expired)
        # What a clock that was wrong has counted far ahead does not count, however long it takes.
        self.cluster.sql('UPDATE write_limits SET expiries = ARRAY(SELECT expiry + 3600000000 FROM unnest(expiries) AS e'
                         ' (expiry))', self.database)
        self.assertEqual(self.count_answers(servers, 10), (allowed, 90 - allowed))

    def test_a_key_creates_one_record_at_whichever_servers(self):
        servers = self.begin(3)
        ids = {}

        def write(server):
            connection = server.connect()
            for number in range(40):
                record = server.create('messages', {'body': str(number)}, {'Idempotency-Key': f'k{number}'}, connection)
                ids.setdefault(number, set()).add(record['id'])

        self.threads(*(lambda server=server: write(server) for server in servers * 3))
        self.assertEqual([len(found) for found in ids.values()], [1] * 40)
        self.assertEqual(len(servers[0].all('messages')), 40)

    def test_patches_at_different_servers_all_stay(self):
        servers = self.begin(3)
        project = servers[0].create('projects', {'name': 'p'})['id']

        def write(server, name):
            connection = server.connect()
            for number in range(15):
                status, _ = server.send('PATCH', f'/projects/{project}', {f'{name}{number}': number},
                                        connection=connection)
                self.assertEqual(status, 200)

        self.threads(*(lambda server=server, name=name: write(server, name)
                       for server, name in zip(servers * 2, 'abcdef')))
        record = servers[1].send('GET', f'/projects/{project}')[1]['record']
        self.assertEqual([name for name in 'abcdef' for number in range(15) if record.get(f'{name}{number}') != number],
                         [])

    def test_whoever_signs_in_at_one_server_is_known_at_all(self):
        first, second = self.begin(2)

        def account(server, step, body):
            connection = server.connect()
            connection.request('POST', f'/api/auth/agent/{step}', json.dumps(body),
                               {'Content-Type': 'application/json', 'Origin': server.url})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        self.assertEqual(account(first, 'request-code', {'email': 'ann@example.org'})[0], 200)
        mails = (self.home / 'server/data/playfs/served/outbox').read_text()
        code = re.findall(r'code is (\S+)', mails)[-1]
        status, answer = account(second, 'verify-code', {'email': 'ann@example.org', 'code': code})
        self.assertEqual(status, 200)
        self.assertEqual(account(first, 'verify-code', {'email': 'ann@example.org', 'code': code})[0], 401)
        key = {'Authorization': f'Bearer {answer["apiKey"]}'}
        revision = first.create('revisions', {'message': 'm'}, key)
        self.assertEqual(second.send('PATCH', f'/revisions/{revision["id"]}', {'message': 'n'})[0], 403)
        self.assertEqual(second.send('PATCH', f'/revisions/{revision["id"]}', {'message': 'n'}, key)[0], 200)

    def test_servers_that_start_together_make_one_store(self):
        for _ in range(3):
            self.database = self.cluster.new_database()
            servers = []
            self.threads(*[lambda: servers.extend(self.begin(1))] * 4)
            for server in servers:
                server.create('messages', {'body': 'x'})
            self.assertEqual(len(servers[0].all('messages')), 4)
            self.assertEqual(self.cluster.sql('SELECT count(*) FROM site', self.database), ['1'])


class OneTruthAtSerializable(OneTruth):
    """And one in twenty statements fails as if it had lost against another transaction."""
    SETTINGS = ("default_transaction_isolation = 'serializable'",)

    def setUp(self):
        super().setUp()
        self.relay = postgres.Conflicts(self.cluster)
        self.addCleanup(self.relay.remove)

    def uri(self):
        return self.relay.uri(self.database)


class Killed(Servers):
    def test_servers_that_are_killed_lose_nothing_and_use_no_key_twice(self):
        servers = self.begin(3)
        acknowledged, gaps, restarts = {}, [], []
        lock, over = threading.Lock(), threading.Event()

        def write(name, turn):
            """At the next server, if one fails. Repeats what was not acknowledged."""
            connection, number, failed = None, 0, None
            while not over.is_set():
                server, key = servers[turn % 3], f'{name}.{number}'
                try:
                    connection = connection or server.connect()
                    status, answer = server.send('POST', '/messages', {'body': key}, {'Idempotency-Key': key}, connection)
                except (OSError, http.client.HTTPException):
                    connection, turn, failed = None, turn + 1, failed or time.monotonic()
                    continue
                if status == 503:  # it is starting
                    turn, connection = turn + 1, None
                    continue
                self.assertEqual(status, 200, answer)
                with lock:
                    acknowledged[key] = answer['record']['id']
                    if failed:
                        gaps.append(time.monotonic() - failed)
                failed, number = None, number + 1

        def more():
            before = len(acknowledged)
            self.eventually(lambda: len(acknowledged) > before + 100, 'they write')

        def kill_and_restart():
            try:
                for server in servers * 3:
                    more()
                    server.kill()
                    more()
                    began = time.monotonic()
                    server.start()
                    restarts.append(time.monotonic() - began)
                more()
            finally:
                over.set()

        self.threads(*(lambda name=name, turn=turn: write(name, turn) for turn, name in enumerate('abcdefghijkl')),
                     kill_and_restart)
        stored = [(record['body'], record['id']) for record in servers[0].all('messages')]
        self.assertEqual(len({body for body, _ in stored}), len(stored), 'a key was used twice')
        self.assertEqual({body: dict(stored).get(body) for body in acknowledged}, acknowledged)
        self.assertIn('sound', self.playfs('serve', 'check', '--store', self.uri()).stderr)
        self.assertGreater(len(gaps), 9, 'some were cut off each time')
        print(f'{len(acknowledged)} writes; {len(restarts)} times kill -9; cut off {len(gaps)} times, for '
              f'{1000 * statistics.median(gaps):.0f} ms ({1000 * max(gaps):.0f} at most); restarted after '
              f'{1000 * statistics.median(restarts):.0f} ms', file=sys.stderr)


class SlowReads(postgres.Relay):
    """Reading a record takes some milliseconds, so that many are read at once."""

    def statement(self, sql):
        if sql.startswith('SELECT position'):
            time.sleep(0.02)
        return sql, True


class FewConnections(Servers):
    SETTINGS = ('max_connections = 7',)

    def test_what_the_database_grants_is_shared(self):
        """Fewer connections than a server would use."""
        relay = SlowReads(self.cluster)
        self.addCleanup(relay.remove)
        server, = self.begin(1, store=relay.uri(self.database))
        statuses = []

        def work():
            connection = server.connect()
            record = server.create('projects', {'name': 'p'}, connection=connection)['id']
            for number in range(10):
                statuses.append(server.send('PATCH', f'/projects/{record}', {'n': number}, connection=connection)[0])

        self.threads(*[work] * 24)
        self.assertEqual({status: statuses.count(status) for status in set(statuses)}, {200: 240})


class AsOverSqlite(Servers):
    def test_the_pages_of_a_thread_follow_each_other(self):
        server, = self.begin(1)
        other, thread = sorted(server.create('threads', {})['id'] for _ in range(2))
        connection = server.connect()
        for number in range(260):
            server.create('messages', {'thread': thread if number % 5 else other, 'body': f'number {number}.'},
                          connection=connection)
        met, page = [], f'/threads/{thread}'
        while page:
            text = server.send_text(page)
            met.append(sorted(int(number) for number in re.findall(r'number (\d+)\.', text)))
            older = re.search(r'href="(/threads/[^"]*cursor=[^"]*)" rel="next"', text)
            page = older and older[1]
        self.assertEqual(sorted(sum(met, [])), [number for number in range(260) if number % 5])
        self.assertEqual(len(met), 3)
        self.assertEqual(met, sorted(met, reverse=True))

    def test_the_time_of_a_change_follows_that_of_the_last_one(self):
        """Which may be of a server whose clock is ahead."""
        server, = self.begin(1)
        project = server.create('projects', {'name': 'p'})['id']
        times = []

        def hide():
            self.playfs('serve', 'hide', project, '--store', server.store)

        for change in lambda: server.send('PATCH', f'/projects/{project}', {'name': 'q'}), hide:
            self.cluster.sql('UPDATE records SET updated_at = updated_at + 3600000000', self.database)
            times.append(server.send('GET', f'/projects/{project}')[1]['record']['updated_at'])
            change()
            times.append(server.send('GET', f'/projects/{project}')[1]['record']['updated_at'])
        self.assertEqual(times, sorted(set(times)))

    def test_a_limit_of_nothing_leaves_repeats_their_answers(self):
        none = self.home / 'limits.json'
        none.write_text(json.dumps({'messages': 0, 'projects': 0}))
        for store in self.home / 'store', self.uri():
            first, closed = self.begin(1, store=store) + self.begin(1, none, store=store)
            record = first.create('messages', {'body': 'x'}, {'Idempotency-Key': 'k'})
            status, answer = closed.send('POST', '/messages', {'body': 'x'}, {'Idempotency-Key': 'k'})
            self.assertEqual((status, answer.get('record')), (200, record))
            for key in {}, {'Idempotency-Key': 'other'}:
                status, answer = closed.send('POST', '/messages', {'body': 'x'}, key)
                self.assertEqual((status, answer['code'], answer['retry_after']), (429, 'rate_limited', 3600))
            self.assertEqual(closed.send('PATCH', f'/messages/{record["id"]}', {'body': 'y'})[0], 429)
            self.assertEqual(len(first.all('messages')), 1)

    def test_what_postgres_text_refuses_is_a_record_as_any_other(self):
        server, = self.begin(1)
        body = {'thread': 'a\0b', 'body': '\0 \ufffe \U0001f600'}
        record = server.create('messages', body)
        self.assertEqual({name: server.send('GET', f'/messages/{record["id"]}')[1]['record'][name] for name in body},
                         body)
        for name in ('%00', '%ff', "'", 'x' * 2000):
            self.assertEqual(server.send('GET', f'/messages/{name}')[0], 404)

    def test_the_password_is_not_shown(self):
        uri = (f'postgresql://playfs:secret@/{self.database}?host={self.cluster.folder}&sslpassword=secret'
               '&password=secret')
        server = Server(self, store=uri)
        server.process.terminate()
        said = server.process.communicate()[1]
        self.assertIn('Serving postgresql://playfs@/', said)
        self.assertNotIn('secret', said)


class Trouble(Servers):
    def write_through(self, servers, outages):
        """Writers that repeat what was not acknowledged, while each of `outages` takes the database away and brings it
        back."""
        acknowledged, statuses, lock, over = {}, [], threading.Lock(), threading.Event()
        waits, succeeded, recoveries = [], [], []  # in seconds; `succeeded` is when

        def write(server, name):
            number, connection = 0, server.connect()
            while not over.is_set():
                sent = time.monotonic()
                connection.request('POST', f'{BASE}/messages', json.dumps({'body': f'{name}.{number}'}), {
                    'Content-Type': 'application/json', 'Origin': server.url, 'Idempotency-Key': f'{name}.{number}'})
                answer = connection.getresponse()
                body = json.loads(answer.read())
                with lock:
                    statuses.append(answer.status)
                    waits.append(time.monotonic() - sent)
                    if answer.status == 200:
                        acknowledged[f'{name}.{number}'] = body['record']['id']
                        succeeded.append(time.monotonic())
                if answer.status == 200:
                    number += 1
                    continue
                self.assertEqual((answer.status, body['code']), (503, 'unavailable'))
                self.assertIsNotNone(answer.getheader('Retry-After'))

        def more_of(count, what):
            before = count()
            self.eventually(lambda: count() > before + 50, what)

        def break_and_mend():
            try:
                for take_away, bring_back in outages:
                    more_of(lambda: len(acknowledged), 'they write')
                    take_away()
                    more_of(lambda: statuses.count(503), 'they are refused')
                    self.assertEqual(servers[0].send('GET', '/messages')[0], 503)
                    began, before = time.monotonic(), len(succeeded)
                    bring_back()
                    self.eventually(lambda: len(succeeded) > before, 'they write again')
                    recoveries.append(succeeded[before] - began)
                more_of(lambda: len(acknowledged), 'they go on writing')
            finally:
                over.set()

        self.threads(*(lambda server=server, name=name: write(server, name)
                       for server, name in zip(servers * 4, 'abcdefgh')), break_and_mend)
        stored = [(record['body'], record['id']) for record in servers[-1].all('messages')]
        self.assertEqual(len({body for body, _ in stored}), len(stored), 'a key was used twice')
        self.assertEqual({body: dict(stored).get(body) for body in acknowledged}, acknowledged)
        print(f'{len(acknowledged)} writes; the database was away {len(outages)} times: {statuses.count(503)} answers 503, '
              f'{1000 * max(waits):.0f} ms for an answer at most; the first write succeeded '
              f'{", ".join(f"{1000 * each:.0f}" for each in recoveries)} ms after it was told to come back', file=sys.stderr)

    def test_a_database_that_is_killed_loses_nothing_and_is_used_again(self):
        self.write_through(self.begin(2), [(self.cluster.kill, self.cluster.start)] * 2)

    def test_a_synchronous_standby_takes_over_with_all_that_was_acknowledged(self):
        standby = postgres.Cluster(primary=self.cluster)
        self.addCleanup(standby.remove)
        self.cluster.wait_for_standbys()
        servers = self.begin(2, store=f'postgresql://{postgres.USER}@/{self.database}?host={self.cluster.folder},'
                                      f'{standby.folder}&target_session_attrs=read-write')
        self.write_through(servers, [(self.cluster.kill, lambda: standby.sql('SELECT pg_promote()'))])

    def test_who_watches_learns_that_a_standby_lacks_the_newest_changes(self):
        """An asynchronous one, which goes on with the same numbers."""
        standby = postgres.Cluster(primary=self.cluster)
        self.addCleanup(standby.remove)
        relay = postgres.Relay(self.cluster)
        self.addCleanup(relay.remove)
        server, = self.begin(1, store=relay.uri(self.database))
        server.create('threads', {})
        self.eventually(lambda: standby.sql('SELECT changed FROM site', self.database) == ['1'], 'it has that')
        standby.kill()
        events = server.watch().makefile('r')
        self.assertIn('event: hello\n', iter(events.readline, ''))
        lost = [server.create('messages', {'body': 'lost'})['id'] for _ in range(3)]
        self.assertTrue(any(lost[-1] in line for line in iter(events.readline, '')))
        self.cluster.kill()
        standby.start()
        standby.sql('SELECT pg_promote()')
        other, = self.begin(1, store=postgres.uri(standby.folder, self.database))
        for _ in range(5):
            other.create('messages', {'body': 'kept'})
        relay.server = str(standby.folder / '.s.PGSQL.5432')
        self.assertEqual(next(line for line in iter(events.readline, '') if line.startswith('event: ')),
                         'event: reset\n')

    def test_a_database_that_hangs_is_not_waited_for(self):
        server, = self.begin(1)
        server.create('messages', {'body': 'before'})
        task = pathlib.Path(f'/proc/{self.cluster.process.pid}/task/{self.cluster.process.pid}/children')
        processes = [self.cluster.process.pid, *map(int, task.read_text().split())]

        def signal_all(number):
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

        self.addCleanup(signal_all, signal.SIGCONT)
        signal_all(signal.SIGSTOP)
        self.assertEqual(server.send('GET', '/messages')[0], 503)
        self.assertEqual(server.send('POST', '/messages', {'body': 'meanwhile'})[0], 503)
        signal_all(signal.SIGCONT)
        self.eventually(lambda: server.send('POST', '/messages', {'body': 'after'})[0] == 200, 'it is used again')

    def test_a_server_that_stops_in_the_middle_does_not_stop_the_others(self):
        stopped, other = self.begin(2)
        record = other.create('projects', {'name': 'p'})
        works = threading.Event()

        def write():
            connection = stopped.connect()
            with contextlib.suppress(OSError, http.client.HTTPException):
                while not works.is_set():
                    stopped.send('PATCH', f'/projects/{record["id"]}', {'a': 1}, connection=connection)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        self.addCleanup(works.set)
        for _ in range(10):
            stopped.process.send_signal(signal.SIGSTOP)
            try:
                self.assertEqual(other.send('PATCH', f'/projects/{record["id"]}', {'b': 2})[0], 200)
            finally:
                stopped.process.send_signal(signal.SIGCONT)


if __name__ == '__main__':
    fixture.main()
