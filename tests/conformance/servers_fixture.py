"""Several servers over one PostgreSQL database."""
import threading
import unittest

import fixture
import postgres
from serve_fixture import Server, ServeTest


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
