"""The OpenAPI document against what the service does: each path, method and status that the conformance suite and the
requests below see is in the document, and each that the document has is seen."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import unittest

from fixture import COMMAND_LIMIT
from serve_fixture import BASE, Server, ServeTest

try:
    import openapi_spec_validator
except ImportError:  # not packaged by Debian
    openapi_spec_validator = None

METHODS = {'get', 'head', 'post', 'patch', 'options'}


def resolve(document, node):
    while '$ref' in node:
        name = node['$ref'].removeprefix('#/').split('/')
        node = document
        for part in name:
            node = node[part]
    return node


def references(node):
    if isinstance(node, dict):
        if '$ref' in node:
            yield node['$ref']
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


class OpenApi(ServeTest):
    def setUp(self):
        super().setUp()
        self.log = self.home / 'access.ndjson'
        # With small limits, so that they can be met.
        limits = self.home / 'limits.json'
        names = ('agents', 'projects', 'revisions', 'file_chunks', 'threads', 'messages', 'domain_mail', 'spaces')
        limits.write_text(json.dumps({name: 4 for name in names}))
        steward = self.secret_file('steward', 'the-key-of-the-steward')
        self.server = Server(self, '--limits', limits, '--proxy', '127.0.0.1', '--access-log', self.log,
                             '--steward-key', steward)
        self.clients = 0
        status, _, text = self.send('GET', '/.site/openapi.json')
        self.assertEqual(status, 200)
        self.document = json.loads(text)

    def send(self, method, path, body=None, **headers):
        """Each request from another client, unless X_Forwarded_For says otherwise."""
        self.clients += 1
        headers = {'X-Forwarded-For': f'192.0.{self.clients // 250}.{self.clients % 250 + 1}', 'Origin': self.server.url,
                   **({'Content-Type': 'application/json'} if body is not None else {}),
                   **{name.replace('_', '-'): value for name, value in headers.items()}}
        connection = http.client.HTTPConnection(self.server.address, timeout=COMMAND_LIMIT)
        connection.request(method, path, body, {name: value for name, value in headers.items() if value})
        answer = connection.getresponse()
        text = answer.readline().decode() if path.startswith('/.site/events') else answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def operations(self):
        for path, item in self.document['paths'].items():
            for method, operation in item.items():
                if method in METHODS:
                    yield path, method, operation

    def test_it_is_well_formed(self):
        document = self.document
        if openapi_spec_validator:
            openapi_spec_validator.validate(document)
        self.assertEqual(document['openapi'], '3.1.0')
        self.assertEqual(document['info'].keys(), {'title', 'version', 'description'})
        for reference in references(document):
            resolve(document, {'$ref': reference})
        ids = [operation['operationId'] for _, _, operation in self.operations()]
        self.assertEqual(len(ids), len(set(ids)))
        for path, item in document['paths'].items():
            self.assertTrue(path.startswith('/'))
            self.assertLessEqual(item.keys(), METHODS | {'parameters'})
            shared = item.get('parameters', [])
            for method in METHODS & item.keys():
                operation = item[method]
                declared = [resolve(document, parameter) for parameter in [*shared, *operation.get('parameters', [])]]
                self.assertEqual({parameter['name'] for parameter in declared if parameter['in'] == 'path'},
                                 set(re.findall(r'{(\w+)}', path)))
                self.assertTrue(all(parameter['schema'] for parameter in declared))
                for status, response in operation['responses'].items():
                    self.assertRegex(status, r'^([1-5]\d\d|default)$')
                    self.assertTrue(resolve(document, response)['description'])
        self.assertEqual([path for path in document['paths'] if path.startswith(BASE + '/')],
                         [f'{BASE}/{name}{more}' for more in ('', '/{id}') for name in
                          ('agents', 'projects', 'revisions', 'file_chunks', 'threads', 'messages', 'domain_mail',
                           'spaces')])

    def _pattern(self, target):
        """The document's path for a target, if there is one."""
        path = target.partition('?')[0].rstrip('/') or '/'
        for known in self.document['paths']:
            if re.fullmatch(re.sub(r'{\w+}', '[^/]+', re.escape(known).replace(r'\{', '{').replace(r'\}', '}')), path):
                return known
        return None

    def _seen(self, log):
        seen = set()
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            path = self._pattern(entry['target'])
            method = entry['method'].lower()
            if path is None:
                if entry['target'].startswith(('/.site', '/api')):
                    self.assertIn(entry['status'], (400, 404, 421), entry)
            elif method not in self.document['paths'][path]:
                self.assertIn(entry['status'], (405, 421, 400), entry)
            else:
                seen.add((path, method, str(entry['status'])))
        return seen

    def _meet_everything(self):
        """A request for each status of each operation."""
        status, headers, text = self.send('POST', '/api/auth/agent/request-code', '{"email":"ann@example.org"}')
        self.assertEqual(status, 200, text)
        code = re.search(r'code is (\S+)', (self.server.store / 'outbox').read_text())[1]
        self.send('POST', '/api/auth/agent/verify-code', json.dumps({'email': 'ann@example.org', 'code': code}))
        for path in '/api/auth/agent/request-code', '/api/auth/agent/verify-code':
            self.send('POST', path, '[]')
            for _ in range(6):
                self.send('POST', path, '{"email":"bob@example.org","code":"x"}', X_Forwarded_For='198.51.100.1')
        for path, method, _ in list(self.operations()):
            target = path.replace('{id}', 'none')
            self.send(method.upper(), target, '{}' if method in ('post', 'patch') else None, Host='elsewhere.example')
            self.send(method.upper(), f'{target}?x=%zz', '{}' if method in ('post', 'patch') else None)
            if method in ('get', 'head'):
                status, headers, _ = self.send(method.upper(), target)
                if 'ETag' in headers:
                    self.assertEqual(self.send(method.upper(), target, If_None_Match=headers['ETag'])[0], 304)
                if status == 401:
                    self.send(method.upper(), target, Authorization='Bearer the-key-of-the-steward')
            elif method == 'options':
                self.send('OPTIONS', target)
            elif path.startswith(BASE):
                self._meet_writing(path, method, target)

    def _meet_writing(self, path, method, target):
        collection = path.removeprefix(f'{BASE}/').partition('/')[0]
        if method == 'patch':
            self.send('PATCH', target, '{}')
            key = {'Authorization': 'Bearer the-key-of-the-steward'}
            record = json.loads(self.send('POST', f'{BASE}/{collection}', '{}')[2])['record']['id']
            target = path.replace('{id}', record)
            status, headers, _ = self.send('GET', target)
            for reading in 'GET', 'HEAD':
                self.assertEqual(self.send(reading, target)[0], 200)
                self.send(reading, target, If_None_Match=headers['ETag'])
        else:
            key = {}
            self.send('POST', target, '{}', Origin=None)
        self.send(method.upper(), target, '{}', Authorization='Bearer none')
        self.send(method.upper(), target, '[]', **key)
        self.send(method.upper(), target, 'x=y', Content_Type='text/plain', **key)
        self.send(method.upper(), target, json.dumps({'x': 'x' * 17000}), **key)
        self.send(method.upper(), target, '{"state":"s"}')
        for _ in range(5):
            self.send(method.upper(), target, '{}', X_Forwarded_For='203.0.113.1', **key)

    def test_it_says_what_the_service_does(self):
        self._meet_everything()
        suite_log = self.home / 'suite.ndjson'
        suite = pathlib.Path(os.environ['PLAYFS_CONFORMANCE_SUITE'])
        subprocess.run([suite, '--gtest_brief=1'], check=True, timeout=120, stdout=subprocess.DEVNULL, env={
            **self.environment('suite'), 'PLAYFS': str(self.playfs_path), 'PLAYFS_CONFORMANCE_ACCESS': 'serve',
            'PLAYFS_CONFORMANCE_LOG': str(suite_log)})
        from_suite = self._seen(suite_log)
        self.assertGreater(len(from_suite), 60, 'the suite was run')
        seen = self._seen(self.log) | from_suite
        declared = {(path, method, status) for path, method, operation in self.operations()
                    for status in operation['responses'] if status != 'default'}
        self.assertEqual(sorted(entry for entry in seen - declared if int(entry[2]) < 500), [], 'not in the document')
        self.assertEqual(sorted(declared - seen), [], 'never happens')


if __name__ == '__main__':
    unittest.main()
