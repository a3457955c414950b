#!/usr/bin/env python3
"""What requests cost a PostgreSQL database: rows that are read, and transactions that are committed."""
import threading
import unittest

import fixture
import postgres
from serve_fixture import BASE, Server, ServeTest

# An old collection of a tenth of all records, and an old thread of a third, of usual size: what a planner takes for
# frequent, and for cheap to find by walking over everything.
AGENTS, MESSAGES = 4_000, 36_000
# Writes that one server works on at once, and some more.
TOGETHER, LATER = 64, 10


class HeldCommits(postgres.Relay):
    """Commits wait until they may go on."""

    def __init__(self, cluster):
        self.commits, self.may_go_on = 0, threading.Event()
        super().__init__(cluster)

    def statement(self, sql):
        if sql == 'COMMIT':
            self.commits += 1
            self.may_go_on.wait(fixture.COMMAND_LIMIT)
        return sql, True


@unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
class Costs(ServeTest):
    def setUp(self):
        super().setUp()
        self.cluster = postgres.Cluster(('autovacuum = off',))
        self.addCleanup(self.cluster.remove)
        self.database = self.cluster.new_database()
        self.uri = postgres.uri(self.cluster.folder, self.database)

    def sql(self, text):
        return self.cluster.sql(text, self.database)

    def fill(self, server):
        """Returns the old thread."""
        thread = server.create('threads', {'title': 'old'})['id']
        for collection, first, count in (('agents', 10, AGENTS), ('messages', 10 + AGENTS, MESSAGES)):
            self.sql(f"""INSERT INTO records
                SELECT n, '{collection}', ('id' || n)::bytea, n, n, 'active', '', NULL,
                       convert_to('{{"body":"' || repeat('x', 400) || '"}}', 'UTF8'),
                       CASE WHEN '{collection}' = 'messages'
                            THEN CASE WHEN n < {first + count / 3} THEN '{thread}' ELSE 'thread' || n % 50 END::bytea END, NULL
                FROM generate_series({first}, {first + count - 1}) AS n""")
        self.sql(f'UPDATE site SET position = {20 + AGENTS + MESSAGES}, created_at = {20 + AGENTS + MESSAGES}')
        return thread

    def rows_read(self, target):
        """Fetched from the table of records for this request, and nothing else: connections count when they end."""
        def count():
            return int(self.sql("SELECT coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0) FROM pg_stat_user_tables"
                                " WHERE relname = 'records'")[0])

        def others():
            return self.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'playfs'")[0] != '0'

        before = count()
        server = Server(self, '--limits', 'off', store=self.uri)
        self.assertTrue(server.send_text(target))
        server.stop()
        self.eventually(lambda: not others(), 'the connections have ended')
        return count() - before

    def test_a_page_reads_what_it_shows(self):
        """Once the planner knows the table: the server finds out by itself within a minute or two."""
        server = Server(self, '--limits', 'off', store=self.uri)
        thread = self.fill(server)
        server.stop()
        self.sql('ANALYZE records')
        idle = self.rows_read('/healthz/live')
        for target in (f'{BASE}/agents?limit=100', f'{BASE}/messages?limit=100', f'/threads/{thread}'):
            with self.subTest(target=target):
                self.assertLess(self.rows_read(target) - idle, 1000)

    def test_writes_that_wait_share_a_commit(self):
        relay = HeldCommits(self.cluster)
        self.addCleanup(relay.remove)
        relay.may_go_on.set()
        server = Server(self, '--limits', 'off', store=relay.uri(self.database))
        relay.may_go_on.clear()
        before = relay.commits

        def post(number):
            server.create('messages', {'body': 'x'}, {'Idempotency-Key': f'k{number}'})

        threads = [threading.Thread(target=post, args=(number,)) for number in range(TOGETHER + LATER)]
        for thread in threads:
            thread.start()
        waiting = f'playfs_http_waiting_requests{{queue="writes"}} {LATER}\n'
        self.eventually(lambda: waiting in server.send_text('/metrics'), 'all but a few are being written')
        relay.may_go_on.set()
        for thread in threads:
            thread.join()
        self.assertEqual(len(server.all('messages')), TOGETHER + LATER)
        self.assertLess(relay.commits - before, 2 + LATER)


if __name__ == '__main__':
    fixture.main()
