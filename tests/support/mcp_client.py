"""A client of the Model Context Protocol, written from the specification, in both of its eras; and a project to serve."""
import contextlib
import json
import queue
import subprocess
import threading

import fixture

SESSIONS, STATELESS = '2025-11-25', '2026-07-28'
PREFIX = 'io.modelcontextprotocol/'
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_RESOURCE, NO_VERSION = (
    -32700, -32600, -32601, -32602, -32002, -32022)


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.code, self.data = error['code'], error.get('data')


class Client:
    """Speaks to one server; `version` is None until one is agreed upon."""

    def __init__(self, case, *words, cwd='/', who='ann', version=SESSIONS):
        self.case, self.version, self.last = case, None, 0
        self.process = subprocess.Popen([case.playfs_path, 'mcp', *map(str, words)], env=case.environment(who), cwd=cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        case.addCleanup(self.end_process)
        self.lines, self.answers, self.progress = queue.Queue(), {}, []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        if version == SESSIONS:
            self.initialize()
        self.version = version

    def end_process(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, **message):
        self.write(json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n')

    def message(self):
        """The next one; None at the end."""
        line = self.lines.get(timeout=fixture.COMMAND_LIMIT)
        if line is None:
            return None
        message = json.loads(line)
        self.case.assertEqual(message['jsonrpc'], '2.0')
        self.case.assertEqual(len(message.keys() & {'result', 'error', 'method'}), 1, message)
        return message

    def begin(self, method, *, meta=None, **params):
        """Sends a request; its id."""
        self.last += 1
        if self.version == STATELESS:
            meta = {f'{PREFIX}protocolVersion': STATELESS, f'{PREFIX}clientCapabilities': {},
                    f'{PREFIX}clientInfo': {'name': 'test', 'version': '1'}, **(meta or {})}
        if meta:
            params['_meta'] = meta
        self.send(id=self.last, method=method, **({'params': params} if params else {}))
        return self.last

    def end(self, which):
        """Waits for the answer to a request."""
        while which not in self.answers:
            message = self.message()
            self.case.assertIsNotNone(message, 'the server has ended')
            if 'method' in message:
                self.case.assertEqual(message['method'], 'notifications/progress')
                self.progress.append(message['params'])
            else:
                self.answers[message.get('id')] = message
        answer = self.answers.pop(which)
        if 'error' in answer:
            raise Refused(answer['error'])
        result = answer['result']
        if self.version == STATELESS:
            self.case.assertEqual(result['resultType'], 'complete')
            self.case.assertEqual(result['_meta'][f'{PREFIX}serverInfo']['name'], 'playfs')
        elif self.version:
            self.case.assertNotIn('resultType', result)
        return result

    def request(self, method, **params):
        return self.end(self.begin(method, **params))

    def initialize(self, version=SESSIONS):
        result = self.request('initialize', protocolVersion=version, capabilities={},
                              clientInfo={'name': 'test', 'version': '1'})
        self.send(method='notifications/initialized')
        return result

    def begin_call(self, tool, meta=None, **arguments):
        return self.begin('tools/call', name=tool, arguments=arguments, meta=meta)

    def outcome(self, which):
        result = self.end(which)
        texts = [each['text'] for each in result['content']]
        self.case.assertEqual({each['type'] for each in result['content']}, {'text'})
        return result['isError'], texts

    def call(self, tool, **arguments):
        """The texts of a call that succeeds; the last one says what to do next."""
        is_error, texts = self.outcome(self.begin_call(tool, **arguments))
        self.case.assertFalse(is_error, texts)
        self.case.assertTrue(texts[-1].startswith('Next: '), texts)
        return texts

    def fail(self, tool, **arguments):
        is_error, texts = self.outcome(self.begin_call(tool, **arguments))
        self.case.assertTrue(is_error, texts)
        return texts[0]

    def refusal(self, method, **params):
        with self.case.assertRaises(Refused) as refused:
            self.request(method, **params)
        return refused.exception.code

    def close(self):
        self.process.stdin.close()
        return self.process.wait(fixture.COMMAND_LIMIT)


class Mcp(fixture.Fixture):
    version = SESSIONS
    limits = None

    def setUp(self):
        super().setUp()
        self.api = self.serve(limits=self.limits)
        self.project = json.loads(self.playfs('init', 'garden', '--json', '--site', self.api.origin).stdout)['project']
        self.work = self.home / 'work'
        self.playfs('clone', self.project, self.work, '--site', self.api.origin)

    def client(self, *words, **options):
        return Client(self, *(words or [self.work]), version=options.pop('version', self.version), **options)

    def files(self):
        head = self.api.get('projects', self.project).get('latest_revision')
        return self.api.get('revisions', head)['manifest']['files'] if head else {}
