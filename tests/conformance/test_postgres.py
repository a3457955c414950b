#!/usr/bin/env python3
"""The conformance suite over PostgreSQL: alone, behind PgBouncer in transaction mode, and at SERIALIZABLE with
transactions that fail on purpose."""
import os
import shutil
import subprocess
import unittest

import fixture
import postgres


@unittest.skipUnless(postgres.is_installed(), 'PostgreSQL is not installed')
class OverPostgres(fixture.Fixture):
    def cluster(self, *settings):
        cluster = postgres.Cluster(settings)
        self.addCleanup(cluster.remove)
        return cluster

    def conform(self, cluster, front):
        """Runs the suite; each of its sites gets a database of its own, reached through `front`."""
        maker = self.home / 'new-store'
        # Uppercase names would be quoted, so the process id makes one.
        maker.write_text('#!/bin/sh -e\n'
                         f'cd / && {postgres.program("psql")} -XAtq -c "CREATE DATABASE site$$" '
                         f"'{postgres.uri(cluster.folder, 'postgres')}'\n"
                         f"echo '{front('NAME')}' | sed s/NAME/site$$/\n")
        maker.chmod(0o700)
        suite = os.environ['PLAYFS_CONFORMANCE_SUITE']
        done = subprocess.run([suite, '--gtest_brief=1'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=4 * fixture.COMMAND_LIMIT,
                              env={**self.environment('ann'), 'PLAYFS': self.playfs_path,
                                   'PLAYFS_CONFORMANCE_ACCESS': 'serve', 'PLAYFS_CONFORMANCE_NEW_STORE': str(maker)})
        self.assertEqual(done.returncode, 0, done.stdout[-8000:])
        self.assertRegex(done.stdout, r'[1-9]\d* tests from')

    def test_alone(self):
        cluster = self.cluster()
        self.conform(cluster, lambda name: postgres.uri(cluster.folder, name))

    @unittest.skipUnless(shutil.which('pgbouncer'), 'PgBouncer is not installed')
    def test_behind_pgbouncer_in_transaction_mode(self):
        cluster = self.cluster()
        bouncer = postgres.Bouncer(cluster)
        self.addCleanup(bouncer.remove)
        self.conform(cluster, bouncer.uri)

    def test_serializable_with_transactions_that_fail(self):
        cluster = self.cluster("default_transaction_isolation = 'serializable'")
        relay = postgres.Conflicts(cluster)
        self.addCleanup(relay.remove)
        self.conform(cluster, relay.uri)
        self.assertGreater(relay.failed, 100)


if __name__ == '__main__':
    fixture.main()
