"""A client that has stored all that can be stored of a server, and what it finds with it later, when that serves another
store."""
import json

from serve_fixture import BASE


class Client:
    """The server must allow five spaces in an hour."""

    def __init__(self, case, server):
        self.case, self.server = case, server

    def account(self, step, **body):
        connection = self.server.connect()
        connection.request('POST', f'/api/auth/agent/{step}', json.dumps(body), {'Content-Type': 'application/json'})
        answer = connection.getresponse()
        return json.loads(answer.read())

    def new_code(self, outbox, email):
        self.account('request-code', email=email)
        return outbox.read_text().rpartition('code is ')[2].split()[0]

    def changes(self, cursor, count):
        """The first so many changes behind that cursor, with the cursor behind each."""
        connection = self.server.connect()
        connection.request('GET', f'/.site/events?after={cursor}')
        answer, seen, kind = connection.getresponse(), [], None
        while len(seen) < count:
            name, _, value = answer.readline().decode().rstrip('\n').partition(': ')
            if name == 'id':
                cursor = value
            elif name == 'event':
                kind = value
                self.case.assertIn(kind, ('hello', 'change'))
            elif name == 'data' and kind == 'change':
                seen.append((json.loads(value)['id'], cursor))
        connection.close()
        return seen

    def site(self):
        return next(line for line in self.server.watch().makefile('r') if line.startswith('id: '))[4:].split('.')[0]

    def store_everything(self, outbox):
        server = self.server
        self.key = {'Authorization': 'Bearer ' + self.account(
            'verify-code', email='ann@example.org', code=self.new_code(outbox, 'ann@example.org'))['apiKey']}
        self.project = server.create('projects', {'name': 'p \0 \U0001f600'}, {'Idempotency-Key': 'first'})
        self.revision = server.create('revisions', {'project': self.project['id'], 'message': 'm'}, self.key)
        for collection in 'agents', 'threads', 'domain_mail', 'spaces', 'spaces':
            server.create(collection, {})
        server.create('file_chunks', {'content': 'x' * 12_000}, self.key)
        for number in range(7):
            self.message = server.create('messages', {'thread': 't', 'body': str(number)})
        hidden = server.create('messages', {'thread': 't', 'body': 'abominable'})['id']
        self.case.playfs('serve', 'hide', hidden, '--store', server.store)
        server.send('PATCH', f'/projects/{self.project["id"]}', {'title': 'changed'})
        self.code = self.new_code(outbox, 'bob@example.org')
        self.seen = self.changes(f'{self.site()}.0', 15)
        self.page, self.next = server.page('messages', limit=3)
        self.texts = self.all_texts()

    def all_texts(self):
        return [self.server.send_text(f'{BASE}/{name}?limit=100') for name in
                ('agents', 'projects', 'revisions', 'file_chunks', 'threads', 'messages', 'domain_mail', 'spaces')]

    def find_everything(self):
        case, server = self.case, self.server
        case.assertEqual(self.all_texts(), self.texts, 'byte for byte')
        rest, _ = server.page('messages', self.next, limit=100)
        case.assertEqual(self.page + rest, json.loads(self.texts[5])['records'], 'the cursor of a list')
        status, again = server.send('POST', '/projects', {}, {'Idempotency-Key': 'first'})
        case.assertEqual((status, again['record']['id']), (200, self.project['id']))
        message = server.create('messages', {'body': 'after'})
        case.assertGreater(message['created_at'], self.message['created_at'])
        case.assertEqual(server.page('messages', limit=1)[0], [message], 'it is the newest')
        # Of five spaces there were two.
        new = [message['id'], *[server.create('spaces', {})['id'] for _ in range(3)]]
        case.assertEqual(server.send('POST', '/spaces', {})[0], 429)
        case.assertEqual(server.send('PATCH', f'/revisions/{self.revision["id"]}', {'state': 's'}, self.key)[0], 200)
        new.append(self.revision['id'])
        case.assertTrue(self.account('verify-code', email='bob@example.org', code=self.code)['isNewUser'])
        expected = [each for each, _ in self.seen[9:] if each != self.revision['id']] + new
        seen = self.changes(self.seen[8][1], len(expected))
        case.assertEqual([each for each, _ in seen], expected, 'the cursor of events')
