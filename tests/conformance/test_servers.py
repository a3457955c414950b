#!/usr/bin/env python3
"""Several servers over one PostgreSQL database: they answer as if they were one, in one order, also when the database
dies, hangs, or is of another version."""
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import signal
import threading
import unittest

import fixture
import postgres
from serve_fixture import BASE, Server, ServeTest

WRITERS, EACH = 6, 500


@unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
class Servers(ServeTest):
    SETTINGS = ()

    def setUp(self):
        super().setUp()
        self.cluster = postgres.Cluster(self.SETTINGS)
        self.addCleanup(self.cluster.remove)
        self.database = self.cluster.new_database()

    def uri(self):
        return postgres.uri(self.cluster.folder, self.database)

    def begin(self, count=2, limits='off', store=None):
        store = store or self.uri()
        return [Server(self, '--limits', limits, store=store) for _ in range(count)]

    def threads(self, *works):
        """Runs them together; a failure in one fails the test."""
        failures = []

        def run(work):
            try:
                work()
            except BaseException as failure:  # pylint: disable=broad-except
                failures.append(failure)

        running = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(4 * fixture.COMMAND_LIMIT)
            self.assertFalse(thread.is_alive(), 'still running')
        if failures:
            raise failures[0]


class Order(Servers):
    def poll_by_time(self, servers, done):
        """Ids in the order in which a client meets them that stops at the newest created_at it knows."""
        connections = itertools.cycle([(server, server.connect()) for server in servers])
        seen, stored, last = [], '', False
        while not last:
            last = done.is_set()
            server, connection = next(connections)
            met, cursor = [], None
            while True:
                page, cursor = server.page('messages', cursor, 20, connection)
                new = [record for record in page if record['created_at'] > stored]
                met += new
                if len(new) < len(page) or not cursor:
                    break
            if met:
                stored = met[0]['created_at']
            seen += [record['id'] for record in reversed(met)]
        return seen

    def poll_by_cursor(self, servers, done):
        """Ids as events tell them, to a client that goes on at another server after some of them."""
        site = self.cluster.sql('SELECT id FROM site', self.database)[0]
        seen, cursor = [], f'{site}.0'  # before any change
        for server in itertools.cycle(servers):
            with contextlib.closing(server.connect()) as connection:
                connection.request('GET', f'/.site/events?after={cursor}')
                answer = connection.getresponse()
                end = len(seen) + 50
                while len(seen) < end:
                    line = answer.readline().decode().rstrip('\n')
                    if line.startswith('id: '):
                        cursor = line.removeprefix('id: ')
                    elif line.startswith('data: ') and 'id' in (change := json.loads(line.removeprefix('data: '))):
                        seen.append(change['id'])
                        if done.is_set() and len(seen) >= WRITERS * EACH:
                            return seen
                    elif line == ':' and done.is_set():  # nothing for a while
                        return seen

    def race(self, relay, watches=True):
        """What writers at two servers wrote, and what a client saw meanwhile that stores times, and one that stores
        cursors."""
        servers = self.begin(store=relay.uri(self.database))
        done, written, lock = threading.Event(), [], threading.Lock()
        left, seen = [WRITERS], {}

        def write(server):
            connection = server.connect()
            for number in range(EACH):
                record = server.create('messages', {'body': f'{number}'}, connection=connection)
                with lock:
                    written.append(record['id'])
            with lock:
                left[0] -= 1
                if left[0] == 0:
                    done.set()

        def by_time():
            seen['time'] = self.poll_by_time(servers, done)

        def by_cursor():
            seen['cursor'] = self.poll_by_cursor(servers, done)

        self.threads(*(lambda server=server: write(server) for server in servers * (WRITERS // 2)), by_time,
                     *([by_cursor] if watches else []))
        return servers, written, seen

    def test_clients_that_store_cursors_and_times_miss_and_double_nothing(self):
        relay = postgres.SlowCommits(self.cluster)
        self.addCleanup(relay.remove)
        servers, written, seen = self.race(relay)
        self.assertEqual(len(set(written)), WRITERS * EACH)
        for kind, ids in seen.items():
            self.assertEqual(len(ids), len(set(ids)), f'{kind}: some twice')
            self.assertEqual(set(ids), set(written), f'{kind}: some missed')
        order = [[record['id'] for record in server.all('messages')] for server in servers]
        self.assertEqual(order[0], order[1])
        self.assertEqual(order[0], seen['time'][::-1])
        self.assertEqual(order[0], seen['cursor'][::-1])
        self.assertIn('sound', self.playfs('serve', 'check', '--store', servers[0].store).stderr)

    def test_a_plain_sequence_would_be_noticed(self):
        self.begin(1)[0].stop()  # makes the tables
        relay = postgres.PlainSequence(self.cluster, self.database)
        self.addCleanup(relay.remove)
        _, written, seen = self.race(relay, watches=False)
        self.assertNotEqual(sorted(seen['time']), sorted(written))


class OneTruth(Servers):
    def test_a_limit_holds_for_all_servers_together(self):
        allowed = 60
        limits = self.home / 'limits.json'
        limits.write_text(json.dumps({'messages': allowed}))
        servers = self.begin(3, limits)
        answers = []

        def write(server):
            connection = server.connect()
            for _ in range(20):
                answers.append(server.send('POST', '/messages', {'body': 'x'}, connection=connection)[0])

        self.threads(*(lambda server=server: write(server) for server in servers * 3))
        self.assertEqual((answers.count(200), answers.count(429)), (allowed, 180 - allowed))
        self.assertEqual(len(servers[1].all('messages')), allowed)

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


class Trouble(Servers):
    def write_through(self, servers, outages):
        """Writers that repeat what was not acknowledged, while each of `outages` takes the database away and brings it
        back."""
        acknowledged, statuses, lock, over = {}, [], threading.Lock(), threading.Event()

        def write(server, name):
            number, connection = 0, server.connect()
            while not over.is_set():
                connection.request('POST', f'{BASE}/messages', json.dumps({'body': f'{name}.{number}'}), {
                    'Content-Type': 'application/json', 'Origin': server.url, 'Idempotency-Key': f'{name}.{number}'})
                answer = connection.getresponse()
                body = json.loads(answer.read())
                with lock:
                    statuses.append(answer.status)
                    if answer.status == 200:
                        acknowledged[f'{name}.{number}'] = body['record']['id']
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
                    bring_back()
                more_of(lambda: len(acknowledged), 'they write again')
            finally:
                over.set()

        self.threads(*(lambda server=server, name=name: write(server, name)
                       for server, name in zip(servers * 4, 'abcdefgh')), break_and_mend)
        stored = [(record['body'], record['id']) for record in servers[-1].all('messages')]
        self.assertEqual(len({body for body, _ in stored}), len(stored), 'a key was used twice')
        self.assertEqual({body: dict(stored).get(body) for body in acknowledged}, acknowledged)

    def test_a_database_that_is_killed_loses_nothing_and_is_used_again(self):
        self.write_through(self.begin(2), [(self.cluster.kill, self.cluster.start)] * 2)

    def test_a_synchronous_standby_takes_over_with_all_that_was_acknowledged(self):
        standby = postgres.Cluster(primary=self.cluster)
        self.addCleanup(standby.remove)
        self.cluster.wait_for_standbys()
        servers = self.begin(2, store=f'postgresql://{postgres.USER}@/{self.database}?host={self.cluster.folder},'
                                      f'{standby.folder}&target_session_attrs=read-write')
        self.write_through(servers, [(self.cluster.kill, lambda: standby.sql('SELECT pg_promote()'))])

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


class Versions(Servers):
    def test_only_tables_that_a_server_knows_are_used(self):
        server, = self.begin(1)
        server.create('messages', {'body': 'x'})
        server.stop()
        self.cluster.sql('UPDATE schema_version SET version = 99, oldest = 99', self.database)
        done = self.playfs('serve', '--listen', '127.0.0.1:0', '--store', server.store, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('newer version of playfs', done.stderr)
        self.assertIn('newer version', self.playfs('serve', 'check', '--store', server.store, check=False).stderr)
        self.cluster.sql('UPDATE schema_version SET oldest = 1', self.database)
        server.start()
        self.assertEqual(len(server.all('messages')), 1)
        self.assertEqual(self.cluster.sql('SELECT version FROM schema_version', self.database), ['99'])

    def test_check_finds_what_is_broken_and_backup_names_pg_dump(self):
        server, = self.begin(1)
        for number in range(3):
            server.create('messages', {'body': str(number)})
        for damage, repair in (("fields = '[]'", "fields = '{\"body\":\"1\"}'"), ('created_at = 5', None)):
            self.assertIn('3 records', self.playfs('serve', 'check', '--store', server.store).stderr)
            self.cluster.sql(f'UPDATE records SET {damage} WHERE position = 2', self.database)
            done = self.playfs('serve', 'check', '--store', server.store, check=False)
            self.assertNotEqual(done.returncode, 0, damage)
            if repair:
                self.cluster.sql(f'UPDATE records SET {repair} WHERE position = 2', self.database)
        done = self.playfs('serve', 'backup', self.home / 'copy', '--store', server.store, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('pg_dump', done.stderr)

    def test_what_postgres_text_refuses_is_a_record_as_any_other(self):
        server, = self.begin(1)
        body = {'thread': 'a\0b', 'body': '\0 \ufffe \U0001f600'}
        record = server.create('messages', body)
        self.assertEqual({name: server.send('GET', f'/messages/{record["id"]}')[1]['record'][name] for name in body},
                         body)
        for name in ('%00', '%ff', "'", 'x' * 2000):
            self.assertEqual(server.send('GET', f'/messages/{name}')[0], 404)

    def test_the_password_is_not_shown(self):
        uri = f'postgresql://playfs:secret@/{self.database}?host={self.cluster.folder}'
        server = Server(self, store=uri)
        server.process.terminate()
        said = server.process.communicate()[1]
        self.assertIn('Serving postgresql://playfs@/', said)
        self.assertNotIn('secret', said)


if __name__ == '__main__':
    fixture.main()
