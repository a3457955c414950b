"""A service that lies: a proxy in front of a real one, which puts its own records into lists, and replaces any other
response, byte by byte, by one of its own."""
import gzip
import json
import socket
import threading
import urllib.parse

BASE = '/.site/data'
PAGE = 50  # of our own records per page


class Raw(str):
    """JSON to send verbatim, which json.dumps would not write."""


def to_json(value):
    """Like json.dumps, with Raw parts verbatim, and without escapes that a reader could take for harmless."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return '{' + ','.join(f'{json.dumps(name)}:{to_json(part)}' for name, part in value.items()) + '}'
    if isinstance(value, (list, tuple)):
        return '[' + ','.join(map(to_json, value)) + ']'
    return json.dumps(value)


def http(body, status='200 OK', *headers, kind='application/json'):
    """A whole response."""
    body = body if isinstance(body, bytes) else body.encode('utf-8', 'surrogatepass')
    lines = [f'HTTP/1.1 {status}', f'Content-Type: {kind}', f'Content-Length: {len(body)}', *headers,
             'Connection: close']
    return ['\r\n'.join([*lines, '', '']).encode() + body]


def document_of(answer):
    """Status, headers and JSON of a service's real response."""
    _, headers, data = answer
    return json.loads(gzip.decompress(data) if ('Content-Encoding', 'gzip') in headers else data)


class Trap:
    """Another host that nothing has any reason to contact: counts and records who did."""

    def __init__(self, test):
        self.heard = []
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.url = 'http://127.0.0.1:%d' % self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()
        test.addCleanup(self._listener.close)

    def _run(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    self.heard.append(connection.recv(65536))
                except OSError as nothing:
                    self.heard.append(nothing)


class HostileSite:
    """The lies, by request. Reads of collections go to the real service after our own pages."""

    def __init__(self, proxy):
        self.records = {}  # (collection, id): the record, as text
        self.answers = {}  # (method, collection, id or None): a function from the request's body to the response
        self.asked = []    # (method, path, headers) of every request so far
        proxy.raw = self._answer

    def add(self, collection, ident, /, **fields):
        """Adds a record to a collection, newer than those before it; its fields override the default ones."""
        made = 2_000_000_000 - len(self.records)
        created = f'{2000 + made // 31_536_000}-01-01T00:{made // 60 % 60:02}:{made % 60:02}Z'
        record = {'id': ident, 'created_at': created, 'updated_at': created, 'status': 'active', **fields}
        self.records[collection, ident] = to_json(record)

    def project(self, ident, files=None, manifest=None, chunks=None, revision=None, project=None):
        """Adds a project with one revision, `ident-r`, with `files` or a complete manifest."""
        self.add('projects', ident, **{'name': ident, 'latest_revision': f'{ident}-r', **(project or {})})
        manifest = {'files': files or {}} if manifest is None else manifest
        self.add('revisions', f'{ident}-r', **{'project': ident, 'parents': [], 'agent': 'mallory', 'message': ident,
                                               'manifest': manifest, 'state': {}, **(revision or {})})
        for chunk, content in (chunks or {}).items():
            self.add('file_chunks', chunk, rev='', path='f', seq=0, hash='', content=content)

    def _answer(self, method, path, headers, body, ask):
        self.asked.append((method, path, headers))
        address = urllib.parse.urlsplit(path)
        parts = [urllib.parse.unquote(part) for part in address.path.removeprefix(BASE + '/').split('/')]
        collection, ident = parts[0], parts[1] if len(parts) > 1 else None
        lie = self.answers.get((method, collection, ident))
        if lie:
            return lie(body, ask)
        if method != 'GET':
            return None
        if ident is None:
            return self._page(collection, address, ask)
        record = self.records.get((collection, ident))
        return None if record is None else http('{"record":' + record + '}')

    def _page(self, collection, address, ask):
        """Our own records first; their last page leads to the service's first. Our revisions and chunks are in no list:
        they are requested by id."""
        ours = [record for (where, _), record in list(self.records.items())
                if where == collection and collection in ('projects', 'threads', 'messages')]
        cursor = urllib.parse.parse_qs(address.query).get('cursor', [''])[0]
        if not ours or cursor and not cursor.startswith('hostile-'):
            return None
        begin = int(cursor.removeprefix('hostile-') or 0)
        if begin >= len(ours):
            return http(ask(f'{address.path}?limit=100')[2])
        return http('{"records":[' + ','.join(ours[begin:begin + PAGE]) + f'],"nextCursor":"hostile-{begin + PAGE}"}}')
