"""What `/metrics` says, and that the shipped dashboard asks for nothing else."""
import json
import re
import unittest

from fixture import ROOT
from serve_fixture import Server, ServeTest

SAMPLE = re.compile(r'(\w+)(?:\{([^{}]*)\})? ([0-9.e+-]+)')
LABEL = re.compile(r'(\w+)="([^"]*)"')


class Metrics(ServeTest):
    def scrape(self, server):
        """The type of each metric, and the value of each sample by name and labels."""
        types, samples = {}, {}
        for line in server.send_text('/metrics').splitlines():
            if line.startswith('# TYPE '):
                name, kind = line.split()[2:]
                self.assertNotIn(name, types)
                types[name] = kind
            elif not line.startswith('#'):
                name, labels, value = SAMPLE.fullmatch(line).groups()
                key = name, frozenset(LABEL.findall(labels or ''))
                self.assertNotIn(key, samples)
                samples[key] = float(value)
        for name, _ in samples:
            self.assertIn(re.sub('_(bucket|sum|count)$', '', name) if name not in types else name, types)
        return types, samples

    def test_each_kind_of_request_is_told_apart(self):
        server = Server(self)
        server.create('agents', {'handle': 'a'})
        server.send('GET', '/agents')
        for path in '/', '/account', '/.site/export/agents.ndjson', '/api/auth/agent/verify-code', '/healthz':
            server.send_text(path)
        peer = server.watch()
        self.assertTrue(peer.recv(100))
        types, samples = self.scrape(server)

        def value(name, **labels):
            return samples[name, frozenset(labels.items())]

        for route in 'read', 'write', 'page', 'events', 'export', 'account', 'sign_in', 'check':
            self.assertGreaterEqual(value('playfs_http_request_seconds_count', route=route), 1, route)
        for name, kind in types.items():
            if kind != 'histogram':
                continue
            for (series, labels), count in samples.items():
                if series != f'{name}_count':
                    continue
                buckets = sorted((float(dict(key).pop('le')), number) for (other, key), number in samples.items()
                                 if other == f'{name}_bucket' and key >= labels)
                self.assertEqual(buckets[-1], (float('inf'), count))
                self.assertEqual([number for _, number in buckets], sorted(number for _, number in buckets))
        self.assertGreaterEqual(value('playfs_store_seconds_count', operation='insert'), 1)
        self.assertEqual(value('playfs_store_failures_total', operation='insert'), 0)
        self.assertEqual(value('playfs_http_watchers'), 1)
        self.assertGreaterEqual(value('playfs_http_connections'), 2)
        self.assertEqual(value('playfs_http_waiting_requests', queue='writes'), 0)

    def test_the_dashboard_asks_for_what_there_is(self):
        server = Server(self)
        server.send('GET', '/agents')
        server.send('GET', '/nothing')
        types, samples = self.scrape(server)
        names = set(types) | {name for name, _ in samples}
        labels = {name: {label for (other, key) in samples if other == name for label, _ in key} for name in names}
        board = json.loads((ROOT / 'tools/grafana/playfs.json').read_text())
        queries = [target['expr'] for panel in board['panels'] for target in panel['targets']]
        queries += [variable['query'] for variable in board['templating']['list'] if variable['type'] == 'query']
        asked = set()
        for query in queries:
            used = re.findall(r'playfs_\w+', query)
            self.assertTrue(used, query)
            for name in used:
                self.assertIn(name, names, query)
                known = labels[name] | {'instance'}
                for list_of_labels in re.findall(r'by \(([^)]*)\)', query):
                    self.assertLessEqual({label.strip() for label in list_of_labels.split(',')}, known, query)
                asked.add(re.sub('_(bucket|sum|count)$', '', name) if name not in types else name)
        self.assertEqual(set(types) - asked, set(), 'each metric is shown somewhere')


if __name__ == '__main__':
    unittest.main()
