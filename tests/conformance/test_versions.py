#!/usr/bin/env python3
"""Stores of other versions: brought up to date while older servers go on with them, or refused in words; and checked.

With PLAYFS_OLDER=PROGRAM, a program of version 1 of the tables takes the older server's part once more.
"""
import itertools
import os
import pathlib
import sqlite3
import subprocess
import threading
import time
import unittest

import fixture
import postgres
from serve_fixture import Server, ServeTest
from servers_fixture import Servers

GOLDEN = pathlib.Path(__file__).with_name('golden')
OLDER = os.environ.get('PLAYFS_OLDER')
# What a server of version 1 sends to add a message.
OLD_INSERT = """BEGIN;
UPDATE site SET position = position + 1, changed = changed + 1,
  created_at = GREATEST(created_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
INSERT INTO records (position, collection, id, created_at, updated_at, status, owner, fields, changed)
  SELECT site.position, 'messages', convert_to('old' || site.position, 'UTF8'), created_at, created_at, 'active', '',
    '{"body":"old"}', changed FROM site;
COMMIT;
"""


class OldServer:
    """Writes as a server of version 1 does, by its statements."""

    def __init__(self, case, store):
        self.ended = threading.Event()
        self.psql = subprocess.Popen([postgres.program('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', store],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd='/')
        self.written = 0
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()
        case.addCleanup(self.stop)

    def write(self):
        while not self.ended.is_set():
            self.psql.stdin.write(OLD_INSERT + "SELECT 'done';\n")
            self.psql.stdin.flush()
            if self.psql.stdout.readline() != 'done\n':  # psql has ended with an error
                return
            self.written += 1

    def stop(self):
        """psql's exit status."""
        self.ended.set()
        self.thread.join()
        if not self.psql.stdin.closed:
            self.psql.communicate()
        return self.psql.returncode


class AnotherWasFirst(postgres.Relay):
    """The first table is made by somebody else, right before it would be."""

    def __init__(self, cluster, database, state):
        self.cluster, self.database, self.state, self.was_first = cluster, database, state, False
        super().__init__(cluster)

    def statement(self, sql):
        if not sql.startswith('CREATE TABLE schema_version') or self.was_first:
            return sql, True
        self.was_first = True
        self.cluster.sql(sql + "; INSERT INTO schema_version VALUES (1, 0, 0)", self.database)
        return f"DO $$BEGIN RAISE 'on purpose' USING ERRCODE = '{self.state}'; END$$", True


class Steps(Servers):
    def load_version_1(self):
        self.cluster.sql((GOLDEN / 'postgres-1.sql').read_text(), self.database)

    def version(self):
        return self.cluster.sql('SELECT version, oldest FROM schema_version', self.database)[0]

    def assert_one_order(self, written):
        """Seven records of the golden file and those, in an unbroken order."""
        self.assertEqual(self.cluster.sql('SELECT count(*), max(position), count(DISTINCT changed), max(changed) FROM'
                                          ' records', self.database),
                         [f'{6 + written}|{6 + written}|{5 + written}|{6 + written}'])
        self.assertIn(f'{6 + written} records', self.playfs('serve', 'check', '--store', self.uri()).stderr)

    def follow(self, servers, ended):
        """Ids, as a client meets them that stops at the newest created_at it knows."""
        seen, stored, last = [], '', False
        connections = itertools.cycle([(server, server.connect()) for server in servers])
        while not last:
            last = ended.is_set()
            server, connection = next(connections)
            met, cursor = [], None
            while True:
                page, cursor = server.page('messages', cursor, 100, connection)
                met += [record for record in page if record['created_at'] > stored]
                if not cursor or page[-1]['created_at'] <= stored:
                    break
            stored = met[0]['created_at'] if met else stored
            seen += [record['id'] for record in reversed(met)]
        return seen

    def test_older_servers_go_on_while_newer_ones_bring_the_tables_up_to_date(self):
        self.load_version_1()
        old = [OldServer(self, self.uri()) for _ in range(2)]
        self.eventually(lambda: old[0].written > 20, 'they write')
        servers, seen, ended, created = self.begin(2), [], threading.Event(), []
        self.assertEqual(self.version(), '2|1')  # of which servers of version 1 can make use
        follower = threading.Thread(target=lambda: seen.extend(self.follow(servers, ended)), daemon=True)
        follower.start()
        for number in range(100):
            created.append(servers[number % 2].create('messages', {'body': 'new'})['id'])
        before = old[0].written
        self.eventually(lambda: old[0].written > before + 20, 'they still write')
        self.assertEqual([each.stop() for each in old], [0, 0])
        ended.set()
        follower.join()
        written = sum(each.written for each in old)
        self.assertEqual(len(seen), len(set(seen)), 'some twice')
        self.assertEqual(len(seen), 3 + written + len(created), 'some missed')
        self.assertEqual([each for each in seen if not each.startswith('old')][3:], created)
        self.assert_one_order(written + len(created))

    def test_a_server_whose_table_another_one_has_just_made_goes_on(self):
        for state in '42P07', '42710', '23505':  # the table, the type of its rows, its place in the catalogue
            database = self.cluster.new_database()
            relay = AnotherWasFirst(self.cluster, database, state)
            self.addCleanup(relay.remove)
            server, = self.begin(1, store=relay.uri(database))
            server.create('messages', {'body': 'x'})
            self.assertTrue(relay.was_first)

    def test_an_older_record_and_its_key_are_what_they_were(self):
        self.load_version_1()
        server, = self.begin(1)
        status, answer = server.send('POST', '/projects', {'name': 'again'}, {'Idempotency-Key': 'first'})
        self.assertEqual((status, answer['record']['name'], answer['record']['title']), (200, 'old', 'changed'))
        self.assertEqual(len(server.all('projects')), 1)

    @unittest.skipUnless(OLDER, 'no older program')
    def test_an_older_program_serves_before_and_after_the_step(self):
        old = [Server(self, '--limits', 'off', store=self.uri(), program=OLDER) for _ in range(2)]
        self.assertEqual(self.version(), '1|1')
        ended, written = threading.Event(), []

        def write(server):
            connection = server.connect()
            while not ended.is_set():
                written.append(server.create('messages', {'body': 'x'}, connection=connection)['id'])

        writers = [threading.Thread(target=write, args=(server,), daemon=True) for server in old]
        for writer in writers:
            writer.start()
        self.eventually(lambda: len(written) > 50, 'they write')
        new = self.begin(2)
        self.assertEqual(self.version(), '2|1')
        seen, over = [], threading.Event()
        follower = threading.Thread(target=lambda: seen.extend(self.follow(old + new, over)), daemon=True)
        follower.start()
        for server in new:
            for _ in range(50):
                written.append(server.create('messages', {'body': 'new'})['id'])
        third = Server(self, '--limits', 'off', store=self.uri(), program=OLDER)  # and can still be started
        written.append(third.create('messages', {'body': 'x'})['id'])
        before = len(written)
        self.eventually(lambda: len(written) > before + 50, 'the older ones still write')
        ended.set()
        for writer in writers:
            writer.join()
        over.set()
        follower.join()
        self.assertEqual(sorted(seen), sorted(written))
        for server in old + new + [third]:
            self.assertEqual([record['id'] for record in server.all('messages')], seen[::-1])

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
        self.assertEqual(self.version(), '99|1')
        # A copy would lack what a newer version has added.
        Server(self, store=self.home / 'other').stop()
        for words in (server.store, self.home / 'new'), (self.home / 'other', server.store):
            done = self.playfs('serve', 'copy', *words, check=False)
            self.assertIn('newer version', done.stderr)
        server.create('messages', {'body': 'still open'})

    def test_a_store_of_an_older_version_is_not_changed_by_a_look(self):
        self.load_version_1()
        Server(self, store=self.home / 'other').stop()
        for words in (('check', '--store', self.uri()), ('copy', self.uri(), self.home / 'new'),
                      ('copy', self.home / 'other', self.uri())):
            done = self.playfs('serve', *words, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('another version', done.stderr)
            self.assertEqual(self.version(), '1|1')

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


class StepsInSqlite(ServeTest):
    def setUp(self):
        super().setUp()
        self.store = self.home / 'store'
        self.store.mkdir(mode=0o700)
        self.database = self.store / 'playground.db'

    def connect(self):
        connection = sqlite3.connect(self.database, isolation_level=None, timeout=fixture.COMMAND_LIMIT,
                                     check_same_thread=False)
        self.addCleanup(connection.close)
        return connection

    def load_version_6(self):
        connection = self.connect()
        connection.execute('PRAGMA journal_mode = WAL')
        connection.executescript((GOLDEN / 'sqlite-6.sql').read_text())
        return connection

    def test_an_older_server_goes_on_while_a_newer_one_brings_the_tables_up_to_date(self):
        connection, ended, written = self.load_version_6(), threading.Event(), []

        def write():
            # The statements of version 6.
            while not ended.is_set():
                connection.execute('BEGIN IMMEDIATE')
                newest, = connection.execute('SELECT created_at FROM records ORDER BY position DESC LIMIT 1').fetchone()
                changed, = connection.execute('SELECT MAX(changed) FROM records').fetchone()
                now = max(newest + 1, time.time_ns() // 1000)
                connection.execute(
                    "INSERT INTO records (collection, id, created_at, updated_at, status, owner, fields, changed)"
                    " VALUES ('messages', ?, ?, ?, 'active', '', '{}', ?)", (f'old{now}', now, now, changed + 1))
                connection.execute('COMMIT')
                written.append(f'old{now}')
                time.sleep(0.001)  # SQLite's writers are not fair

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        self.addCleanup(ended.set)
        self.eventually(lambda: len(written) > 20, 'it writes')
        server = Server(self, '--limits', 'off')
        created = [server.create('messages', {'body': 'new'})['id'] for _ in range(50)]
        before = len(written)
        self.eventually(lambda: len(written) > before + 20, 'it still writes')
        ended.set()
        writer.join()
        self.assertEqual(connection.execute('PRAGMA user_version').fetchone(), (7,))
        found = [record['id'] for record in server.all('messages')]
        self.assertEqual(sorted(found[:-3]), sorted(written + created))
        self.assertEqual(server.send('POST', '/projects', {}, {'Idempotency-Key': 'first'})[1]['record']['name'], 'old')
        self.assertIn('sound', self.playfs('serve', 'check', '--store', self.store).stderr)

    def test_an_older_store_is_not_changed_by_a_copy(self):
        connection = self.load_version_6()
        Server(self, store=self.home / 'other').stop()
        for words in ((self.store, self.home / 'new'), (self.home / 'other', self.store)):
            done = self.playfs('serve', 'copy', *words, check=False)
            self.assertIn('another version', done.stderr)
            self.assertEqual(connection.execute('PRAGMA user_version').fetchone(), (6,))

    def test_a_newer_store_is_refused_in_words(self):
        server = Server(self)
        server.stop()
        self.connect().execute('PRAGMA user_version = 99')
        for words in (('--listen', '127.0.0.1:0'), ('check',), ('hide', 'x')):
            done = self.playfs('serve', *words, '--store', self.store, check=False)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn('newer version of playfs', done.stderr)


if __name__ == '__main__':
    fixture.main()
