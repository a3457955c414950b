#!/usr/bin/env python3
"""`playfs serve copy`: a playground is moved between stores of both kinds. Whatever clients have stored goes on working;
writes under way are not lost; a copy that is killed at any instant can be taken up again."""
import contextlib
import http.client
import json
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import fixture
import postgres
from client_with_memory import Client
from serve_fixture import BASE, Server, ServeTest, ask

RECORDS = 600  # more than are read at once
NOT_FOUND = 5


class Copies(ServeTest):
    def setUp(self):
        super().setUp()
        self.stores = 0

    def in_sqlite(self):
        self.stores += 1
        return self.home / f'store{self.stores}'

    def copy(self, source, target, check=True):
        return self.playfs('serve', 'copy', source, target, '--json', check=check)

    def said(self, source, target):
        """What the copy says of itself."""
        return json.loads(self.copy(source, target).stdout)

    def refused(self, source, target, words):
        done = self.copy(source, target, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, json.loads(done.stdout)['error']['message'])

    def move(self, server, target):
        """The server goes on with another store, at the same address."""
        if server.process:
            server.stop()
        server.store = target
        server.start()

    def write(self, server, count):
        connection = server.connect()
        for number in range(count):
            server.create('messages', {'body': str(number)}, {'Idempotency-Key': f'k{number}'}, connection)

    def check(self, store):
        self.assertIn('sound', self.playfs('serve', 'check', '--store', store).stderr)


@unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
class Copy(Copies):
    def setUp(self):
        super().setUp()
        self.cluster = postgres.Cluster()
        self.addCleanup(self.cluster.remove)

    def in_postgres(self):
        return postgres.uri(self.cluster.folder, self.cluster.new_database())

    def oldest(self, store):
        """Servers of that version and newer ones may be started on the database."""
        return self.cluster.sql('SELECT oldest FROM schema_version', postgres.database_of(store))[0]

    def outbox(self):
        return self.home / 'server/data/playfs/served/outbox'

    def test_what_clients_have_stored_goes_on_working(self):
        limits = self.home / 'limits.json'
        limits.write_text(json.dumps({'spaces': 5}))
        server = Server(self, '--limits', limits, store=self.in_postgres())
        client = Client(self, server)
        client.store_everything(self.outbox())
        stores = [server.store, self.in_sqlite(), self.in_sqlite(), self.in_postgres(), self.in_postgres()]
        said = [self.said(source, target) for source, target in zip(stores, stores[1:])]
        self.assertEqual({(each['records'], each['sha256'], each['already_copied']) for each in said},
                         {(16, said[0]['sha256'], False)})
        self.move(server, stores[-1])
        client.find_everything()
        for store in stores:
            self.check(store)

    def test_a_store_that_was_moved_can_be_read_and_not_written(self):
        for source, target in (self.in_sqlite(), self.in_postgres()), (self.in_postgres(), self.in_sqlite()):
            server = Server(self, '--limits', 'off', store=source)
            record = server.create('messages', {'body': 'x'})
            self.said(source, target)
            status, headers, text = ask(server, f'{BASE}/messages/{record["id"]}')
            self.assertEqual((status, json.loads(text)['record']), (200, record))
            for method, path, body in (('POST', '/messages', {}), ('PATCH', f'/messages/{record["id"]}', {'body': 'y'})):
                status, answer = server.send(method, path, body)
                self.assertEqual((status, answer['code'], answer['retry_after']), (503, 'unavailable', 5))
            self.assertEqual(ask(server, '/healthz/ready')[0], 503)
            done = self.curl('--data-raw', '{"email": "ann@example.org"}', '-H', 'Content-Type: application/json',
                             f'{server.url}/api/auth/agent/request-code')
            self.assertEqual(done[0], 503)
            done = self.playfs('serve', 'hide', record['id'], '--store', source, check=False)
            self.assertIn('closed for writing', done.stderr)
            server.stop()
            server.start()  # also when it begins
            self.assertEqual(server.send('POST', '/messages', {})[0], 503)
            self.assertTrue(self.said(source, target)['already_copied'])
            self.playfs('serve', 'reopen', '--store', source)
            self.assertEqual(server.send('POST', '/messages', {})[0], 200)
            self.refused(source, target, 'may have gone on')

    def test_nobody_is_overwritten(self):
        stores = [Server(self, store=store) for store in (self.in_sqlite(), self.in_postgres())]
        for server in stores:
            server.create('messages', {'body': 'x'})
        ours, theirs = [server.store for server in stores]
        for source, target in (ours, theirs), (theirs, ours):
            self.refused(source, target, 'another playground')
            self.refused(source, source, 'may have gone on')
        self.assertEqual(self.copy(self.in_sqlite(), self.in_sqlite(), check=False).returncode, NOT_FOUND)
        self.assertFalse((self.home / 'store3').exists())
        for server in stores:  # still open
            server.create('messages', {'body': 'y'})
            self.assertEqual(len(server.all('messages')), 2)

    def test_writes_under_way_are_taken_along(self):
        for source, target in (self.in_sqlite(), self.in_postgres()), (self.in_postgres(), self.in_sqlite()):
            server = Server(self, '--limits', 'off', store=source)
            acknowledged, statuses, over = {}, [], threading.Event()

            def write(name):
                number, connection = 0, server.connect()
                while not over.is_set():
                    key = f'{name}.{number}'
                    try:
                        status, answer = server.send('POST', '/messages', {'body': key}, {'Idempotency-Key': key},
                                                     connection)
                    except (OSError, http.client.HTTPException):
                        connection = http.client.HTTPConnection(server.address, timeout=fixture.COMMAND_LIMIT)
                        continue
                    statuses.append(status)
                    if status == 200:
                        acknowledged[key] = answer['record']['id']
                        number += 1
                    elif status != 503:
                        raise AssertionError(answer)
                connection.close()

            writers = [threading.Thread(target=write, args=(name,), daemon=True) for name in 'abcdef']
            for writer in writers:
                writer.start()
            self.eventually(lambda: len(acknowledged) > RECORDS, 'they write')
            said = self.said(source, target)
            self.assertEqual(said['records'], len(acknowledged))
            self.eventually(lambda: statuses[-1] == 503, 'they are refused')
            before = len(acknowledged)
            self.move(server, target)
            self.eventually(lambda: len(acknowledged) > before + 100, 'they go on')
            over.set()
            for writer in writers:
                writer.join()
            self.assertEqual({record['body']: record['id'] for record in server.all('messages')}, acknowledged)
            self.assertEqual(len(server.all('messages')), len(acknowledged), 'a key was used twice')
            self.check(target)

    def filled(self):
        """A store in SQLite, to be copied several times, and what a copy of it says."""
        server = Server(self, '--limits', 'off', store=self.in_sqlite())
        Client(self, server).account('request-code', email='ann@example.org')
        self.write(server, RECORDS)
        server.stop()
        copied = self.in_sqlite()
        shutil.copytree(server.store, copied)
        return server.store, self.said(copied, self.in_sqlite())

    def test_a_copy_can_be_killed_before_and_after_each_commit(self):
        original, wanted = self.filled()
        at = killed = 0
        while killed == at:
            at += 1
            source, target = self.in_sqlite(), self.in_postgres()
            shutil.copytree(original, source)
            database = postgres.database_of(target)
            relay = KilledAt(self.cluster, at)
            relay.command = subprocess.Popen([self.playfs_path, 'serve', 'copy', source, relay.uri(database)],
                                             env=self.environment('ann'), stdin=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL)
            relay.has_command.set()
            status = relay.command.wait(fixture.COMMAND_LIMIT)
            relay.remove()
            killed += status == -signal.SIGKILL
            said = self.said(source, target)
            if not said['already_copied']:  # killed after the last commit
                self.assertEqual((said['records'], said['sha256']), (RECORDS, wanted['sha256']), f'killed at {at}')
            self.assertEqual(self.cluster.sql('SELECT position, changed, closed FROM site', database),
                             [f'{RECORDS}|{RECORDS}|'])
            self.cluster.sql(f'DROP DATABASE {database} WITH (FORCE)')
        self.assertGreater(killed, 14)

    def test_a_copy_can_be_killed_again_and_again(self):
        original, wanted = self.filled()
        server = Server(self, '--limits', 'off', store=self.in_postgres())
        server.stop()
        for target in self.in_sqlite(), self.in_postgres():
            source, killed, wait = self.in_sqlite(), 0, 0.001
            shutil.copytree(original, source)
            while True:
                command = subprocess.Popen([self.playfs_path, 'serve', 'copy', source, target],
                                           env=self.environment('ann'), stdin=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                try:
                    self.assertEqual(command.wait(wait), 0)
                    break
                except subprocess.TimeoutExpired:
                    command.kill()
                    command.wait()
                    killed, wait = killed + 1, wait * 1.3
            self.assertGreater(killed, 3)
            self.check(target)
            back = self.said(target, self.in_sqlite())
            self.assertEqual((back['records'], back['sha256']), (RECORDS, wanted['sha256']))

    def test_nobody_uses_an_unfinished_copy(self):
        source, in_postgres = self.in_postgres(), self.in_postgres()
        server, database = Server(self, '--limits', 'off', store=source), postgres.database_of(source)
        self.write(server, 3)
        server.stop()
        for target in self.in_sqlite(), in_postgres:
            # It ends with an error when it has copied the records.
            self.cluster.sql('ALTER TABLE accounts RENAME TO gone', database)
            self.assertNotEqual(self.copy(source, target, check=False).returncode, 0)
            self.cluster.sql('ALTER TABLE gone RENAME TO accounts', database)
            server.start()
            server.create('messages', {'body': 'more'})  # the store is open again
            server.stop()
            for words in (('--listen', '127.0.0.1:0'), ('check',), ('hide', 'x')):
                done = self.playfs('serve', *words, '--store', target, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn('not finished', done.stderr)
            self.refused(target, self.in_sqlite(), 'not finished')
            self.refused_reopening(target)
            if target is in_postgres:
                self.assertEqual((self.oldest(source), self.oldest(target)), ('1', '2'), 'nor do servers of version 1')
            said = self.said(source, target)
            self.assertEqual(said['records'], len(Server(self, store=target).all('messages')))
            self.assertEqual(self.oldest(source), '2')
            self.playfs('serve', 'reopen', '--store', source)
        self.assertEqual((self.oldest(source), self.oldest(in_postgres)), ('1', '1'))

    def refused_reopening(self, store):
        done = self.playfs('serve', 'reopen', '--store', store, check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_a_copy_that_another_one_finishes_meanwhile_is_left_alone(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server = Server(self, '--limits', 'off', store=source)
        self.write(server, RECORDS)
        relay = FinishedMeanwhile(self.cluster, postgres.database_of(target))
        self.addCleanup(relay.remove)
        self.refused(source, relay.uri(relay.database), 'opened or closed by somebody else')
        self.assertEqual(self.cluster.sql('SELECT count(*) < 600 FROM records', relay.database), ['t'])
        server.create('messages', {'body': 'still open'})

    def assert_moved(self, server, target, record):
        """The first store cannot be written, and the second has what it had."""
        self.assertEqual(server.send('POST', '/messages', {'body': 'lost'})[0], 503)
        self.assertEqual(self.cluster.sql('SELECT closed, position FROM site', postgres.database_of(target)), ['|1'])
        self.move(server, target)
        self.assertEqual([each['id'] for each in server.all('messages')], [record['id']])
        server.create('messages', {'body': 'more'})

    def test_a_copy_whose_last_answer_is_lost_is_finished(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server = Server(self, '--limits', 'off', store=source)
        record = server.create('messages', {'body': 'x'})
        relay = LastAnswerLost(self.cluster)
        self.addCleanup(relay.remove)
        self.said(source, relay.uri(postgres.database_of(target)))
        self.assertTrue(relay.is_lost)
        self.assert_moved(server, target, record)

    def test_a_store_stays_closed_while_nobody_knows_whether_its_copy_is_finished(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server = Server(self, '--limits', 'off', store=source)
        record = server.create('messages', {'body': 'x'})
        relay = LastAnswerLost(self.cluster, is_last=True)
        self.addCleanup(relay.remove)
        self.refused(source, relay.uri(postgres.database_of(target)), 'stays closed')
        self.assertTrue(self.said(source, target)['already_copied'])
        self.assert_moved(server, target, record)

    def test_of_two_copies_that_work_together_none_opens_what_the_other_has_moved(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server = Server(self, '--limits', 'off', store=source)
        record = server.create('messages', {'body': 'x'})
        relay = Overtaken(self.cluster, lambda: self.said(source, target))
        self.addCleanup(relay.remove)
        self.copy(source, relay.uri(postgres.database_of(target)), check=False)
        self.assertFalse(relay.other['already_copied'])
        self.assert_moved(server, target, record)

    def test_a_store_that_is_opened_before_its_copy_is_finished_keeps_it_from_being_used(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server = Server(self, '--limits', 'off', store=source)
        server.create('messages', {'body': 'x'})

        def go_on():
            self.playfs('serve', 'reopen', '--store', source)
            server.create('messages', {'body': 'y'})

        relay = Overtaken(self.cluster, go_on)
        self.addCleanup(relay.remove)
        self.refused(source, relay.uri(postgres.database_of(target)), 'opened or closed by somebody else')
        self.assertEqual(self.cluster.sql('SELECT closed FROM site', postgres.database_of(target)), ['unfinished'])
        self.assertEqual(self.said(source, target)['records'], 2)

    def test_what_differs_is_mended(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server, database = Server(self, '--limits', 'off', store=source), postgres.database_of(target)
        self.write(server, 5)
        wanted = server.send_text(f'{BASE}/messages')
        self.said(source, target)
        self.playfs('serve', 'reopen', '--store', source)
        for damage in ("UPDATE records SET fields = '{}' WHERE position = 2", 'DELETE FROM records WHERE position < 4',
                       'UPDATE records SET changed = 99 WHERE position = 5', "UPDATE records SET request_key = NULL",
                       "INSERT INTO write_limits VALUES ('x', '{1}', 1, 1, 1)",
                       "INSERT INTO accounts VALUES ('acct', 'eve', 1)",
                       "INSERT INTO sign_in_codes (email, client, hash, expires) VALUES ('e', 'c', 'h', 1)"):
            self.cluster.sql(f"UPDATE site SET closed = 'unfinished'; {damage}", database)
            said = self.said(source, target)
            self.assertGreater(said['rows_changed'], 0, damage)
            self.playfs('serve', 'reopen', '--store', source)
        self.move(server, target)
        self.assertEqual(server.send_text(f'{BASE}/messages'), wanted)
        # What the original never had is not removed in silence.
        server.create('messages', {'body': 'only here'})
        self.cluster.sql("UPDATE site SET closed = 'unfinished'", database)
        self.refused(source, target, 'its original lacks')

    def test_progress_is_shown_on_a_terminal(self):
        source, target = self.in_postgres(), self.in_sqlite()
        server = Server(self, '--limits', 'off', store=source)
        self.write(server, 3)
        lock = subprocess.Popen([postgres.program('psql'), '-XAtq', source], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, cwd='/')
        self.addCleanup(lock.communicate)
        lock.stdin.write("BEGIN; SELECT 'locked' FROM site FOR UPDATE;\n")
        lock.stdin.flush()
        self.assertEqual(lock.stdout.readline(), 'locked\n')

        def let_go():
            lock.stdin.write('ROLLBACK;\n')
            lock.stdin.flush()
            return b''

        code, shown = self.on_terminal(self.playfs_path, 'serve', 'copy', source, target, until='Copying records: 3 of 3',
                                       answer=let_go)
        self.assertEqual(code, 0, shown)
        self.assertIn('compared all of them', shown)

    @fixture.needs_fuse
    def test_a_mount_goes_on(self):
        source, target = self.in_sqlite(), self.in_postgres()
        server = Server(self, '--limits', 'off', store=source)
        thread = server.create('threads', {'title': 'About'})['id']
        server.create('messages', {'thread': thread, 'body': 'before'})
        mount = self.mount(server.url)
        messages = mount.directory / 'threads' / thread / 'messages.md'
        self.eventually(lambda: 'before' in messages.read_text(), 'it shows a message')
        server.stop()
        self.said(source, target)
        self.move(server, target)
        server.create('messages', {'thread': thread, 'body': 'afterwards'})
        self.eventually(lambda: 'afterwards' in messages.read_text(), 'and one that came after the move')
        text = messages.read_text()
        self.assertEqual((text.count('before'), text.count('afterwards')), (1, 1))


class FinishedMeanwhile(postgres.Relay):
    """When some records have been copied, somebody opens the copy."""

    def __init__(self, cluster, database):
        self.cluster, self.database, self.copied = cluster, database, False
        super().__init__(cluster)

    def statement(self, sql):
        if sql == 'BEGIN' and self.copied:
            self.cluster.sql("UPDATE site SET closed = ''", self.database)
        self.copied = self.copied or sql.startswith('INSERT INTO records')
        return sql, True


class LastAnswerLost(postgres.Relay):
    """The connection is lost when the copy has been finished and nobody knows yet; with `is_last`, for good."""

    def __init__(self, cluster, is_last=False):
        self.is_last, self.finishes, self.is_lost = is_last, False, False
        super().__init__(cluster)

    def statement(self, sql):
        self.finishes = self.finishes or sql.startswith("UPDATE site SET closed = CASE WHEN closed = $1 THEN ''")
        return sql, True

    def to_client(self, client, server):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if self.finishes and not self.is_lost:  # the answers to all of it arrive at once
                    self.is_lost = True
                    if self.is_last:
                        self.remove()
                    break
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


class Overtaken(postgres.Relay):
    """Something else is done right before a copy is finished."""

    def __init__(self, cluster, action):
        self.action, self.other, self.is_done = action, None, False
        super().__init__(cluster)

    def statement(self, sql):
        if sql.startswith('UPDATE schema_version SET oldest') and not self.is_done:
            self.is_done = True
            self.other = self.action()
        return sql, True


class KilledAt(postgres.Relay):
    """A command is killed before its first commit, after it, before its second one, and so on, as `at` says."""

    def __init__(self, cluster, at):
        self.at, self.seen = at, 0
        self.command, self.has_command = None, threading.Event()
        super().__init__(cluster)

    def statement(self, sql):
        self.seen += 2 * (sql == 'COMMIT')
        if self.seen >= self.at:
            self.has_command.wait()
            self.command.kill()
            self.command.wait()
            if self.at % 2:
                raise BrokenPipeError
        return sql, True


if __name__ == '__main__':
    fixture.main()
