#!/usr/bin/env python3
"""One order at all servers, for clients that store times and cursors while many write: nothing is missed, nothing is
met twice.

More, by hand: PLAYFS_INSERTS=1000000 tests/conformance/test_order.py Order.test_clients_…
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import fixture
import postgres
from order_clients import Ids
from servers_fixture import Servers

INSERTS = int(os.environ.get('PLAYFS_INSERTS', '3200'))
WRITERS, POLLERS, SERVERS = 64, 50, 3
IN_A_PROCESS = 16
FEW = 10_000


class Order(Servers):
    def clients(self, kind, count, servers, *options):
        """Processes of up to 16 clients each."""
        program = pathlib.Path(__file__).with_name('order_clients.py')
        started = []
        for first in range(0, count, IN_A_PROCESS):
            process = subprocess.Popen(
                [sys.executable, program, kind, *[server.address for server in servers], '--clients',
                 str(min(IN_A_PROCESS, count - first)), *map(str, options)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            started.append(process)
        return started

    def results(self, processes):
        """What their clients have to say."""
        lines = []
        for process in processes:
            said = process.communicate()[0]
            self.assertEqual(process.returncode, 0, said)
            lines += map(json.loads, said.splitlines())
        return lines

    def order_at(self, server):
        """All messages, oldest first, as they are exported."""
        exported = server.send_text('/.site/export/messages.ndjson')
        self.assertTrue(exported.endswith('{"nextCursor":null}\n'))
        ids = Ids()
        for identifier in reversed(re.findall(r'(?m)^\{"record":\{"id":"([^"]+)"', exported)):
            ids.add(identifier.encode())
        return ids.summary()

    def race(self, store, by_cursor):
        """Servers, and what their clients wrote and met. `by_cursor` of those who follow store cursors; the others
        times."""
        servers = self.begin(SERVERS, store=store)
        site, = self.cluster.sql('SELECT id FROM site', self.database)
        followers = [*self.clients('time', POLLERS - by_cursor, servers),
                     *self.clients('cursor', by_cursor, servers, '--site', site)]
        began = time.monotonic()
        written = self.results(self.clients('write', WRITERS, servers, '--each', INSERTS // WRITERS))
        took = time.monotonic() - began
        last, = self.cluster.sql('SELECT changed FROM site', self.database)
        for process in followers:
            process.stdin.write(f'{last}\n')
            process.stdin.flush()
        servers[0].create('threads', {})  # wakes those who wait for events
        met = self.results(followers)
        print(f'{INSERTS} inserts in {took:.0f} s, all followed after {time.monotonic() - began:.0f} s', file=sys.stderr)
        self.assertEqual((len(written), len(met)), (WRITERS, POLLERS))
        return servers, written, met

    def test_clients_that_store_cursors_and_times_miss_and_double_nothing(self):
        store = self.uri()
        if INSERTS <= FEW:  # then they overlap the more
            relay = postgres.SlowCommits(self.cluster)
            self.addCleanup(relay.remove)
            store = relay.uri(self.database)
        servers, written, met = self.race(store, by_cursor=POLLERS // 2)
        orders = [self.order_at(server) for server in servers]
        self.assertEqual(orders, orders[:1] * SERVERS)
        self.assertEqual(orders[0]['count'], INSERTS // WRITERS * WRITERS)
        self.assertEqual(sum(each['count'] for each in written), orders[0]['count'])
        self.assertEqual(sum(each['sum'] for each in written) % 2**64, orders[0]['sum'], 'what was acknowledged is there')
        self.assertEqual(met, orders[:1] * POLLERS, 'each has met all of them once, in their order')
        self.assertIn('sound', self.playfs('serve', 'check', '--store', self.uri()).stderr)

    def test_a_plain_sequence_would_be_noticed(self):
        self.begin(1)[0].stop()  # makes the tables
        relay = postgres.PlainSequence(self.cluster, self.database)
        self.addCleanup(relay.remove)
        servers, _, met = self.race(relay.uri(self.database), by_cursor=0)
        order = self.order_at(servers[0])
        self.assertNotEqual([each for each in met if each['count'] != order['count']], [])


if __name__ == '__main__':
    fixture.main()
