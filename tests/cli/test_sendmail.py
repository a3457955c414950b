#!/usr/bin/env python3
"""`playfs sendmail`, as mail programs call it, against a real service."""
import json

import fixture
import proxy

DONE, FAILED, USAGE, NOT_FOUND, UNREACHABLE = 0, 1, 2, 5, 7


class Sendmail(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.site = self.api.origin.removeprefix('http://').replace(':', '-')

    def send(self, text, *words, code=DONE, site=None):
        mail = self.home / 'mail'
        mail.write_text(text)
        done = self.command('sh', '-c', f'exec "$@" < {mail}', 'sh', self.playfs_path, 'sendmail', '--json', '--site',
                            site or self.api.origin, *words, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document['schema_version'], 1)
        return document['error'] if code else document

    def start(self, text='Who helps? @bob\n'):
        return self.send(f'To: help@{self.site}\nSubject: A =?utf-8?Q?=C4=85?= question\n'
                         f'Message-ID: <first@laptop>\n\n{text}', '-t', '-oi', '-oem')

    def test_a_kinds_address_starts_a_thread_with_its_first_message(self):
        sent = self.start()
        thread = fixture.fields(self.api.get('threads', sent['thread']))
        self.assertEqual((thread['title'], thread['kind'], thread['agent']), ('A ą question', 'help', 'ann'))
        message = fixture.fields(self.api.get('messages', sent['id']))
        self.assertEqual((message['thread'], message['body'], message['mentions'], message['agent']),
                         (sent['thread'], 'Who helps? @bob', ['bob'], 'ann'))

    def test_an_answer_goes_to_its_thread_and_parent(self):
        first = self.start()
        sent = self.send(f'From: ann@{self.site}\nTo: bob@{self.site}\nCc: carol@{self.site}\nSubject: Re: A question\n'
                         f'In-Reply-To: <{first["id"]}@{self.site}>\nMessage-ID: <second@laptop>\n\nI do.\n',
                         '--', f'bob@{self.site}', f'carol@{self.site}')
        self.assertEqual(sent['thread'], first['thread'])
        message = fixture.fields(self.api.get('messages', sent['id']))
        self.assertEqual((message['parent'], message['body'], message['mentions']), (first['id'], 'I do.', ['carol']))

    def test_the_steward_gets_mail(self):
        sent = self.send(f'To: steward@{self.site}\nX-Playfs-Kind: question\nSubject: May I?\n\nPlease.\n', '-t')
        mail = fixture.fields(self.api.get('domain_mail', sent['id']))
        self.assertEqual((mail['kind'], mail['subject'], mail['body'], mail['agent']),
                         ('question', 'May I?', 'Please.', 'ann'))

    def test_a_mail_that_is_sent_again_is_posted_once(self):
        self.assertEqual(self.start(), self.start())
        self.assertEqual([len(self.api.all(each)) for each in ('threads', 'messages')], [1, 1])
        without = f'To: steward@{self.site}\nSubject: s\n\nPlease.\n'
        self.assertNotEqual(self.send(without, '-t')['id'], self.send(without, '-t')['id'])

    def test_another_text_with_the_same_message_id_is_another_mail(self):
        first = self.start()
        self.assertNotEqual(self.start('Another text\n')['thread'], first['thread'])
        self.assertEqual(self.start(), first)
        self.assertEqual([len(self.api.all(each)) for each in ('threads', 'messages')], [2, 2])

    def test_what_others_edit_is_sent_still(self):
        first = self.start()
        self.api.call('PATCH', f'/threads/{first["thread"]}', {'title': 'Solved'})
        self.api.call('PATCH', f'/messages/{first["id"]}', {'body': 'edited'})
        self.assertEqual(self.start(), first)
        self.assertEqual([len(self.api.all(each)) for each in ('threads', 'messages')], [1, 1])

    def test_a_thread_that_is_renamed_before_the_mail_is_sent_again_gets_its_message(self):
        self.api, between = proxy.before_a_service(self)
        self.api.origin = between.url
        self.site = between.url.removeprefix('http://').replace(':', '-')
        for number, fate in enumerate(('lose reply', (503, '{}'), (403, '{}'))):
            between.fate = lambda request: fate if request.startswith('POST /.site/data/messages') else None
            mail = f'To: help@{self.site}\nSubject: s {number}\nMessage-ID: <{number}@laptop>\n\nx\n'
            error = self.send(mail, '-t', code=6 if number == 2 else UNREACHABLE)
            self.assertIn('send the same mail again', error['hint'])
            thread = self.api.all('threads')[0]['id']
            self.api.call('PATCH', f'/threads/{thread}', {'title': 'Renamed'})
            between.fate = lambda request: None
            self.assertEqual(self.send(mail, '-t')['thread'], thread)
            self.assertEqual([len(self.api.all(each)) for each in ('threads', 'messages')], [number + 1] * 2)

    def test_a_service_that_leaves_out_empty_fields(self):
        self.api, between = proxy.before_a_service(self)
        self.api.origin = between.url
        self.site = between.url.removeprefix('http://').replace(':', '-')

        def strip(method, path, headers, body, ask):
            if method != 'POST':
                return None
            status, _, data = ask()
            answer = json.loads(data)
            for part in (answer['record'], answer['record'].get('data', {})):
                for name in [name for name, value in part.items() if value in ('', [])]:
                    del part[name]
            data = json.dumps(answer).encode()
            return [b'HTTP/1.1 %d OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' % (status, len(data)), data]

        between.raw = strip
        mail = f'To: help@{self.site}\nSubject: s\nMessage-ID: <x@laptop>\n\nx\n'
        self.assertEqual(self.send(mail, '-t'), self.send(mail, '-t'))

    def test_a_dry_run_sends_nothing(self):
        shown = self.send(f'To: intro@{self.site}\nSubject: s\n\nHello\n', '-t', '--dry-run')
        self.assertEqual([each['collection'] for each in shown['records']], ['threads', 'messages'])
        self.assertEqual(shown['records'][1]['record']['body'], 'Hello')
        self.assertEqual(self.api.all('threads'), [])

    def test_a_dot_does_not_end_the_mail(self):
        text = f'To: intro@{self.site}\nSubject: s\n\none\n.\ntwo\n'
        for words in (('-t',), ('-t', '-i'), ('-t', '-oi')):
            shown = self.send(text, *words, '--dry-run')
            self.assertEqual(shown['records'][1]['record']['body'], 'one\n.\ntwo')

    def test_addresses_without_end(self):
        error = self.send('To: ' + 'a,' * 60000 + '\nSubject: s\n\nx\n', '-t', code=USAGE)
        self.assertIn('more than 2000 addresses', error['message'])

    def test_flags_of_other_mail_systems_are_accepted(self):
        flags = ['-bm', '-f', 'ann@laptop', '-F', 'Ann', '-oem', '-B8BITMIME', '-N', 'never', '-v']
        self.send('Subject: s\n\nHello\n', *flags, 'discussion', '--dry-run')
        self.assertIn('-bs', self.send('', '-bs', code=FAILED)['message'])

    def test_errors_say_what_is_wrong(self):
        to = f'To: help@{self.site}\nSubject: s\n'
        for text, code, message in (
                ('To: ada@elsewhere.org\nSubject: s\n\nx\n', USAGE, "'ada@elsewhere.org' is not at this site"),
                (f'{to}In-Reply-To: <none@{self.site}>\n\nx\n', NOT_FOUND,
                 "the message 'none' that the mail answers is not at"),
                (f'{to}\n' + 'x' * 17000, FAILED, 'a record has room for 16384 in all'),
                (f'{to}\n' + 'x' * 200000, FAILED, 'more than 128 KB'),
                (f'{to}Content-Type: text/html\n\n<p>x\n', USAGE, 'HTML only'),
                ('', USAGE, 'mail')):
            error = self.send(text, '-t', code=code)
            self.assertIn(message, error['message'])
            self.assertTrue(error['hint'])
        self.assertEqual(self.api.all('threads'), [])
        self.send('Subject: s\n\nx\n', 'help', site=f'http://127.0.0.1:{fixture.free_port()}', code=UNREACHABLE)

    def test_nothing_of_a_stranger_reaches_a_terminal_raw(self):
        mail = self.home / 'mail'
        mail.write_bytes(b'To: "\x1b[2J" <\x1b]0;x\x07@\x1b[31m>\nSubject: \x1b[2J\n\n\x1b[2J\n')
        for words in ('', '--dry-run help'):
            line = f'{self.playfs_path} sendmail -t {words} --site {self.api.origin} < {mail}'
            shown = self.on_terminal('sh', '-c', line)
            self.assertNotIn('\x1b[2J', shown[1])
            self.assertNotIn('\x1b]0', shown[1])


if __name__ == '__main__':
    fixture.main()
