#!/usr/bin/env python3
"""What a crash left is sent again as the one who wrote it, whoever is signed in by then, or its text is kept in a file."""
import errno
import json
import pathlib
import re

import fixture
import proxy


@fixture.needs_fuse
class Callers(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)
        self.thread = self.api.create('threads', title='Hello', agent='bob', kind='discussion')['id']
        self.callers = []

        def note(method, path, headers, body, ask):
            if (method, path) == ('POST', '/.site/data/messages'):
                self.callers.append((headers['Idempotency-Key'], headers.get('Authorization')))

        self.proxy.raw = note

    def sign_in(self, name='ann'):
        """The key."""
        login = (self.playfs_path, 'login', f'{name}@example.org', '--site', self.proxy.url)
        self.command(*login, check=False)
        code = re.findall(rf'To: {name}@.*?code is (\S+)', (self.home / 'store/outbox').read_text(), re.DOTALL)[-1]
        self.command(*login, '--code', code)
        return re.findall(r"api_key = ['\"](\S+)['\"]", (self.home / 'ann/config/playfs/credentials.toml').read_text())[-1]

    def journal(self):
        return list((self.home / 'ann/state').rglob('=requests/*.json'))

    def crash(self, text, fate):
        """The mount dies after it has sent the text, which the service has ('lose reply') or not."""
        mount = self.mount(self.proxy.url)
        self.proxy.fate = lambda request: fate if request.startswith('POST') else None
        (mount.directory / 'threads' / self.thread / 'reply').write_text(text)
        self.eventually(lambda: self.api.all('messages') if fate == 'lose reply' else self.callers, 'it is under way')
        mount.kill()
        mount.end()
        self.proxy.fate = lambda request: None
        [journal] = self.journal()
        return journal.read_text()

    def resumed(self):
        top = self.mount(self.proxy.url).directory
        self.eventually(lambda: 'request_resumed' in (top / '.playfs/events').read_text(), 'it is sent again')
        self.assertEqual(self.journal(), [])

    def messages(self):
        return [fixture.fields(record) for record in self.api.all('messages')]

    def test_signed_in_since(self):
        self.crash('anonymous', 'lose reply')
        self.sign_in()
        self.resumed()
        self.assertEqual([message['body'] for message in self.messages()], ['anonymous'])
        self.assertEqual(set(self.callers), {(self.callers[0][0], None)})

    def test_signed_in_again(self):
        """A new key of the same account is the same caller."""
        key = self.sign_in()
        journal = self.crash('mine', 'lose reply')
        self.assertIn('ann@example.org', journal)
        self.assertNotIn(key, journal)
        other = self.sign_in()
        self.assertNotEqual(key, other)
        self.resumed()
        self.assertEqual([message['body'] for message in self.messages()], ['mine'])
        self.assertEqual({key for _, key in self.callers}, {f'Bearer {key}', f'Bearer {other}'})

    def test_nobody_is_signed_in_any_more(self):
        self.refused(lambda: self.command(self.playfs_path, 'logout', '--site', self.proxy.url))

    def test_another_is_signed_in(self):
        self.refused(lambda: self.sign_in('bob'))

    def told(self, top, words):
        """The lines of the log that have these words."""
        lines = [json.loads(line) for line in (top / '.playfs/errors.ndjson').read_text().splitlines()]
        return [line for line in lines if words in json.dumps(line)]

    def kept(self, top):
        """Of a text that is not sent: the line of the log, and the file that it names."""
        self.eventually(lambda: self.told(top, 'its text is in'), 'it is told')
        [line] = self.told(top, 'its text is in')
        return line, pathlib.Path(re.search(r'its text is in (\S+?\.json)', json.dumps(line))[1])

    def send(self, line, top):
        """The command that the error gives."""
        command = re.search(r'at the top of the mount: (cat .*? > threads/[\w-]+/reply)', json.dumps(line))[1]
        self.command('sh', '-c', command, cwd=top)
        self.eventually(self.messages, 'it arrives')
        [message] = self.messages()
        return message

    def refused(self, change):
        self.sign_in()
        self.crash('Mine, "quoted"\n  and @bob', (503, '{}'))
        before = len(self.callers)
        change()
        # A mount that cannot keep the text, and dies.
        unsent = self.journal()[0].parent / 'unsent'
        unsent.write_text('in the way')
        mount = self.mount(self.proxy.url)
        self.eventually(lambda: self.told(mount.directory, 'its text is {'), 'the text is told')
        mount.kill()
        mount.end()
        unsent.unlink()
        top = self.mount(self.proxy.url).directory
        line, kept = self.kept(top)
        self.assertIn('account ann@example.org', json.dumps(line))
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(kept.read_text())['body'], 'Mine, "quoted"\n  and @bob')
        self.assertEqual((len(self.callers), self.messages()), (before, []), 'nothing is sent')
        message = self.send(line, top)
        self.assertEqual((message['body'], message['mentions'], message['thread']),
                         ('Mine, "quoted"\n  and @bob', ['bob'], self.thread))

    def change(self, **fields):
        """Changes what is journalled, as a version without checksums wrote it; None removes a field."""
        [journal] = self.journal()
        changed = json.loads(journal.read_text().splitlines()[0]) | fields | {'format': None}
        journal.write_text(json.dumps({name: value for name, value in changed.items() if value is not None}))

    def test_too_old(self):
        self.crash('old', (503, '{}'))
        self.change(begun='2020-01-01T00:00:00.000Z')
        before = len(self.callers)
        line, kept = self.kept(self.mount(self.proxy.url).directory)
        self.assertIn('too old', json.dumps(line))
        self.assertEqual(json.loads(kept.read_text())['body'], 'old')
        self.eventually(lambda: self.journal() == [], 'it is not journalled any more')
        self.assertEqual((len(self.callers), self.messages()), (before, []), 'nothing is sent')

    def test_of_an_earlier_version(self):
        """It does not say who wrote it. The service knows its key from ann, so she who repeats it sends no second one."""
        key = self.sign_in()
        self.crash('once', 'lose reply')
        self.change(caller=None)
        before = len(self.callers)
        top = self.mount(self.proxy.url).directory
        line, kept = self.kept(top)
        self.assertEqual(json.loads(kept.read_text())['body'], 'once')
        self.assertEqual(len(self.callers), before, 'nothing is sent')
        self.send(line, top)
        self.eventually(lambda: self.journal() == [], 'it has its outcome')
        self.assertEqual(set(self.callers), {(self.callers[0][0], f'Bearer {key}')})
        self.assertEqual([message['body'] for message in self.messages()], ['once'])

    def test_damaged(self):
        text = self.crash('A' * 3_000 + ' the end', (503, '{}'))[:-20]
        self.journal()[0].write_text(text)
        top = self.mount(self.proxy.url).directory
        self.eventually(lambda: self.told(top, 'its journal is damaged'), 'it is told')
        aside = re.search(r'what is left of it is in (\S+/unsent/damaged\S+?\.json)', json.dumps(self.told(top, 'is damaged')))
        self.assertEqual(pathlib.Path(aside[1]).read_text(), text)
        self.assertEqual((self.journal(), self.messages()), ([], []))

    def test_unreadable_once(self):
        self.crash('precious', (503, '{}'))
        [journal] = self.journal()
        journal.rename(self.home / 'away')
        journal.symlink_to(self.home / 'back')
        mount = self.mount(self.proxy.url)
        self.eventually(lambda: self.told(mount.directory, 'the next mount tries again'), 'it is told')
        mount.unmount()
        (self.home / 'away').rename(self.home / 'back')
        self.resumed()
        self.assertEqual([message['body'] for message in self.messages()], ['precious'])

    def test_mail_is_its_author_s_to_change(self):
        self.sign_in()
        top = self.mount(self.proxy.url).directory
        (top / 'mail/new').write_text('{"subject": "Limits", "body": "May I send mroe?"}')
        mail = json.loads((top / 'mail/new').read_text())['id']
        (top / f'mail/{mail}.json').write_text('{"body": "May I send more?"}')
        now = self.api.get('domain_mail', mail)
        self.assertEqual((now['subject'], now['body']), ('Limits', 'May I send more?'))
        self.assertEqual(json.loads((top / f'mail/{mail}.json').read_text()), now)
        # What the service leaves to the steward, and what others write.
        other = self.mount(self.proxy.url, who='bob').directory
        for place, change in ((top, '{"owner_reply": "Yes."}'), (other, '{"body": "mine"}')):
            with self.assertRaises(PermissionError) as problem:
                (place / f'mail/{mail}.json').write_text(change)
            self.assertEqual(problem.exception.errno, errno.EACCES)
        self.assertEqual(self.api.get('domain_mail', mail), now)


if __name__ == '__main__':
    fixture.main()
