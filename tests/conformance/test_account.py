"""The account's page and the feeds, over raw HTTP: forms from elsewhere, secrets in caches, hostile text in XML."""
import html
import http.client
import json
import re
import unittest
import urllib.parse
import xml.etree.ElementTree

from fixture import COMMAND_LIMIT
from serve_fixture import Server, ServeTest

ATOM = '{http://www.w3.org/2005/Atom}'


class Account(ServeTest):
    def setUp(self):
        super().setUp()
        self.log = self.home / 'access.ndjson'
        self.server = Server(self, '--proxy', '127.0.0.1', '--access-log', self.log)
        self.cookie = None

    def ask(self, path, form=None, **headers):
        """As a browser would: a form's origin, and the cookie, but only what it is told. Keeps the cookie it gets."""
        connection = http.client.HTTPConnection(self.server.address, timeout=COMMAND_LIMIT)
        sent = {'Cookie': self.cookie, **({} if form is None else {
            'Origin': self.server.url, 'Content-Type': 'application/x-www-form-urlencoded'})}
        sent |= {name.replace('_', '-'): value for name, value in headers.items()}
        connection.request('GET' if form is None else 'POST', path,
                           None if form is None else urllib.parse.urlencode(form),
                           {name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertEqual(answer.headers.get_all('Cache-Control'), ['no-store'])
        self.assertEqual(answer.headers.get_all('Referrer-Policy'), ['same-origin'])
        self.assertIn("default-src 'none'", answer.headers['Content-Security-Policy'])
        self.assertNotIn('ETag', answer.headers)
        if 'Set-Cookie' in answer.headers:
            self.cookie = answer.headers['Set-Cookie'].partition(';')[0]
        return answer.status, answer.headers, text

    def code(self):
        return re.findall(r'code is (\S+)', (self.server.store / 'outbox').read_text())[-1]

    def sign_in(self, email='ann@example.org', **headers):
        self.assertEqual(self.ask('/account/code', {'email': email}, **headers)[0], 200)
        status, headers, _ = self.ask('/account/sign-in', {'email': email, 'code': self.code()}, **headers)
        self.assertEqual((status, headers['Location']), (303, '/account'))
        return headers['Set-Cookie']

    def is_valid(self, key):
        return self.server.send('POST', '/agents', {}, {'Authorization': f'Bearer {key}'})[0] == 200

    def test_keys_are_made_shown_once_and_revoked(self):
        status, _, page = self.ask('/account')
        self.assertEqual(status, 200)
        self.assertIn('action="/account/code"', page)
        self.assertNotIn('<script', page)
        set_cookie = self.sign_in()
        for part in 'HttpOnly', 'SameSite=Strict', 'Path=/account', 'Max-Age=':
            self.assertIn(part, set_cookie)
        self.assertNotIn('Secure', set_cookie)
        own = self.cookie.partition('=')[2]
        status, _, page = self.ask('/account')
        self.assertIn('ann@example.org', page)
        self.assertNotIn(own, page)
        self.assertEqual(page.count('this browser'), 1)

        status, _, page = self.ask('/account/keys', {})
        key = re.search(r'playfs_[0-9a-f]{48}', page)[0]
        self.assertNotEqual(key, own)
        self.assertTrue(self.is_valid(key))
        page = self.ask('/account')[2]
        self.assertNotIn('playfs_', page.replace('playfs_account', ''))
        ids = re.findall(r'name="key" value="([0-9a-f]+)"', page)
        self.assertEqual(len(ids), 1)
        self.assertEqual(self.ask('/account/revoke', {'key': ''})[0], 303)
        self.assertTrue(self.is_valid(key), 'no id is not all ids')
        self.assertEqual(self.ask('/account/revoke', {'key': ids[0]})[0], 303)
        self.assertFalse(self.is_valid(key))
        self.assertTrue(self.is_valid(own))
        before = self.cookie
        self.sign_in()  # again: the browser's key is replaced
        self.assertFalse(self.is_valid(own))
        self.cookie, signed_in = self.cookie, self.cookie
        self.assertNotEqual(before, signed_in)
        status, headers, _ = self.ask('/account/sign-out', {})
        self.assertIn('Max-Age=0', headers['Set-Cookie'])
        self.assertFalse(self.is_valid(signed_in.partition('=')[2]))
        self.cookie = signed_in
        self.assertIn('action="/account/code"', self.ask('/account')[2], 'the old cookie is nothing now')
        for secret in own, key:
            self.assertNotIn(secret, self.log.read_text())

    def test_nobody_else_sends_the_forms(self):
        self.sign_in()
        for origin in None, 'null', 'https://elsewhere.example', self.server.url.replace('127.0.0.1', 'localhost'):
            for path in 'code', 'sign-in', 'keys', 'revoke', 'sign-out':
                status = self.ask(f'/account/{path}', {'email': 'bob@example.org'}, Origin=origin)[0]
                self.assertEqual(status, 403, (origin, path))
        self.assertNotIn('bob@', (self.server.store / 'outbox').read_text())
        self.assertIn('this browser', self.ask('/account')[2])
        self.assertEqual(self.ask('/account/keys', {}, Content_Type='text/plain')[0], 400)
        self.assertEqual(self.ask('/account/keys', {'x': 'x' * 5000})[0], 400)
        self.assertEqual(self.ask('/account/keys')[0], 404, 'not by a link')
        # Over https, a page that came over http may have been altered.
        self.assertEqual(self.ask('/account/keys', {}, X_Forwarded_Proto='https')[0], 403)

    def test_over_https_the_cookie_stays_there(self):
        cookie = self.sign_in(X_Forwarded_Proto='https', Origin=self.server.url.replace('http:', 'https:'))
        self.assertIn('; Secure', cookie)

    def test_of_other_accounts_nothing_is_seen_or_revoked(self):
        self.sign_in('bob@example.org')
        bobs = self.cookie.partition('=')[2]
        bobs_id = json.loads(self.playfs('serve', 'accounts', '--json', '--store', self.server.store).stdout)['keys'][0]['id']
        self.cookie = None
        self.sign_in('ann@example.org')
        self.assertNotIn(bobs_id, self.ask('/account')[2])
        self.ask('/account/revoke', {'key': bobs_id})
        self.assertTrue(self.is_valid(bobs))

    def test_limits_are_those_of_signing_in(self):
        statuses = [self.ask('/account/code', {'email': 'ann@example.org'})[0] for _ in range(6)]
        self.assertEqual(statuses, [200] * 5 + [429])
        tries = [self.ask('/account/sign-in', {'email': 'eve@example.org', 'code': 'x'}) for _ in range(6)]
        self.assertEqual([status for status, _, _ in tries], [401] * 5 + [429])
        self.assertGreater(int(tries[-1][1]['Retry-After']), 1)
        connection = self.server.connect()
        connection.request('POST', '/api/auth/agent/request-code', '{"email":"ann@example.org"}',
                           {'Content-Type': 'application/json'})
        self.assertEqual(connection.getresponse().status, 429, 'both ways count together')
        self.sign_in('dan@example.org', X_Forwarded_For='192.0.2.7')
        made = [self.ask('/account/keys', {})[0] for _ in range(5)]
        self.assertEqual(made, [200] * 4 + [429])

    def test_answers_tell_nothing_of_an_earlier_code(self):
        """Past the limit of mails no code is sent, as the last one is still good. Then that one is used."""
        def asked(client):
            connection = self.server.connect()
            connection.request('POST', '/api/auth/agent/request-code', '{"email":"ann@example.org"}',
                               {'Content-Type': 'application/json', 'X-Forwarded-For': f'192.0.2.{client}'})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()).get('expiresAt')

        def mails():
            return (self.server.store / 'outbox').read_text().count('Your sign-in code is')

        for client in range(10):
            self.assertEqual(asked(client)[0], 200)
        answers = [asked(77) for _ in range(2)]
        self.assertEqual(mails(), 10)
        self.assertEqual(self.ask('/account/sign-in', {'email': 'ann@example.org', 'code': self.code()})[0], 303)
        answers += [asked(77) for _ in range(4)]
        self.assertEqual([status for status, _ in answers], [200] * 5 + [429])
        times = [time for _, time in answers[:5]]
        self.assertEqual(times, sorted(set(times)), 'each is that of a code sent now')

    def test_what_was_typed_is_text(self):
        status, _, page = self.ask('/account/sign-in', {'email': 'a"><b>@example.org', 'code': '<i>'})
        self.assertEqual(status, 400)
        self.assertNotIn('<b>', page)
        status, headers, page = self.ask('/account/sign-in', {'email': "a'&x@example.org", 'code': 'x\r\nSet-Cookie: y=z'})
        self.assertNotIn('Set-Cookie', headers)
        self.assertIn(html.escape("a'&x@example.org"), page.replace('&#39;', '&#x27;'))


class Feeds(ServeTest):
    def read(self, server, path, **headers):
        connection = server.connect()
        connection.request('GET', path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()

    def test_of_threads_and_projects(self):
        server = Server(self, '--limits', 'off')
        nasty = '</title><script>alert(1)</script>]]>&x;\x00\ufffe\ud7ff\u202e "\' \x1b[31m'
        thread = server.create('threads', {'title': nasty})['id']
        project = server.create('projects', {'name': nasty})['id']
        for n in range(40):
            server.create('messages', {'thread': thread, 'agent': nasty, 'body': f'{n} {nasty}'})
            server.create('revisions', {'project': project, 'message': f'{n} {nasty}\n\nmore',
                                        'manifest': {'files': {}}})
        server.create('messages', {'thread': thread, 'body': '\u00e4"&<' * 2500})
        for path, count in ((f'/threads/{thread}', 30), (f'/projects/{project}', 30)):
            page = self.read(server, path)[1].decode()
            feed = re.search(r'<link rel="alternate" type="application/atom\+xml" href="([^"]+)">', page)[1]
            self.assertEqual(feed, f'{path}/feed.atom')
            answer, text = self.read(server, feed)
            self.assertEqual((answer.status, answer.headers['Content-Type']),
                             (200, 'application/atom+xml; charset=utf-8'))
            self.assertEqual(self.read(server, feed, **{'If-None-Match': answer.headers['ETag']})[0].status, 304)
            root = xml.etree.ElementTree.fromstring(text)
            self.assertEqual(root.tag, f'{ATOM}feed')
            entries = root.findall(f'{ATOM}entry')
            self.assertEqual(len(entries), count)
            ids = [node.findtext(f'{ATOM}id') for node in (root, *entries)]
            self.assertEqual(len(set(ids)), count + 1)
            for node in (root, *entries):
                self.assertRegex(node.findtext(f'{ATOM}id'), r'^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
                self.assertRegex(node.findtext(f'{ATOM}updated'), r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$')
                self.assertTrue(node.findtext(f'{ATOM}title'))
                link = node.find(f'{ATOM}link[@rel="alternate"]').get('href')
                self.assertTrue(link.startswith(f'{server.url}{path}'), link)
                self.assertEqual(self.read(server, link.removeprefix(server.url))[0].status, 200)
            self.assertTrue(all(entry.findtext(f'{ATOM}author/{ATOM}name') for entry in entries))
            self.assertEqual(root.findtext(f'{ATOM}updated'), max(entry.findtext(f'{ATOM}updated') for entry in entries))
            self.assertFalse(list(root.iter('script')))
            again = [node.findtext(f'{ATOM}id') for node in xml.etree.ElementTree.fromstring(
                self.read(server, feed, Host='localhost')[1]).iter(f'{ATOM}entry')]
            self.assertEqual(again, ids[1:], 'by whatever name it is reached')
        self.assertEqual(self.read(server, '/threads/none/feed.atom')[0].status, 404)

    def test_llms(self):
        server = Server(self, '--host', 'play.example.org')
        answer, text = self.read(server, '/llms.txt', Host='play.example.org', **{'X-Forwarded-Proto': 'https'})
        self.assertEqual((answer.status, answer.headers['Content-Type']), (200, 'text/plain; charset=utf-8'))
        links = re.findall(r'\]\((\S+)\)', text.decode())
        self.assertGreater(len(links), 8)
        for link in links:
            self.assertTrue(link.startswith('https://play.example.org/'), link)
            path = link.removeprefix('https://play.example.org')
            if path != '/.site/events':
                self.assertEqual(self.read(server, path, Host='play.example.org')[0].status, 200, path)


if __name__ == '__main__':
    unittest.main()
