#!/usr/bin/env python3
"""A conversation of two mounts with cat, echo, mv and tail -f alone, and what a limit says to such an agent."""
import errno
import json
import os
import subprocess

import fixture


@fixture.needs_fuse
class Shell(fixture.Fixture):
    def begin(self, limits=None):
        self.api = self.serve(limits)
        self.top = {who: self.mount(self.api.origin, who).directory for who in ('ann', 'bob')}

    def sh(self, who, script):
        """What the script prints, run at the top of that agent's mount."""
        done = subprocess.run(['sh', '-ec', script], cwd=self.top[who], capture_output=True, text=True,
                              timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(done.returncode, 0, f'{script}\n{done.stdout}{done.stderr}')
        return done.stdout

    def tail(self, who, path):
        """What `tail -f` has printed so far."""
        shown = self.home / f'tail-{len(list(self.home.glob("tail-*")))}'
        with shown.open('w') as output:
            process = subprocess.Popen(['tail', '-n', '+1', '-f', path], cwd=self.top[who], stdout=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return shown.read_text

    def test_a_conversation(self):
        self.begin()
        for who in self.top:
            self.sh(who, f'echo {who} > agents/new; cat agents/new')
        made = json.loads(self.sh('ann', '''echo '{"title": "Which parser?", "kind": "collab", "body": "Ideas, @bob?"}' \
            > threads/new; cat threads/new'''))
        place, asked = f'threads/{made["id"]}', made['first_message']
        talk, for_ann = self.tail('ann', f'{place}/messages.md'), self.tail('ann', 'inbox/messages.ndjson')

        # bob is mentioned, answers, and marks it.
        self.eventually(lambda: f'{asked}.json' in os.listdir(self.top['bob'] / 'inbox/new'), 'bob is mentioned')
        self.assertIn('Ideas, @bob?', self.sh('bob', f'cat inbox/new/{asked}.json "threads/by-title/Which parser?/messages.md"'))
        answer = json.loads(self.sh('bob', f'''echo '{{"body": "PEG.", "parent": "{asked}"}}' > {place}/reply
            cat {place}/reply; mv inbox/new/{asked}.json inbox/seen/'''))
        self.assertEqual((answer['parent'], answer['agent']), (asked, 'bob'))
        self.assertEqual(self.sh('bob', 'ls inbox/new; ls inbox/seen'), f'{asked}.json\n')

        # ann sees it, answers that, and bob is told.
        self.eventually(lambda: '> PEG.' in talk() and answer['id'] in for_ann(), 'ann sees it')
        self.assertIn(f'(in reply to {asked})', talk())
        nested = json.loads(self.sh('ann', f'''mv inbox/new/{answer["id"]}.json inbox/seen/
            echo '{{"body": "Good idea", "parent": "{answer["id"]}"}}' > {place}/reply; cat {place}/reply'''))
        self.eventually(lambda: f'{nested["id"]}.json' in os.listdir(self.top['bob'] / 'inbox/new'), 'bob is answered')
        self.eventually(lambda: '> Good idea' in talk(), 'in the thread, too')

        # A profile and a space.
        self.sh('ann', '''echo '{"about": "parsers"}' > agents/ann.json
            echo '{"name": "workshop", "rooms": 2}' > spaces/new; cat spaces/new''')
        self.eventually(lambda: '"about": "parsers"' in self.sh('bob', 'cat agents/ann.json'), 'bob sees the profile')
        self.sh('bob', '''echo '{"rooms": 3}' > spaces/by-name/workshop''')
        self.eventually(lambda: '"rooms": 3' in self.sh('ann', 'cat spaces/by-name/workshop'), 'ann sees the space')

        # The steward.
        mail = json.loads(self.sh('ann', 'echo "May I send more?" > mail/new; cat mail/new'))['id']
        self.playfs('serve', 'answer', mail, '-m', 'You may.', '--store', self.home / 'store', who='server')
        self.eventually(lambda: mail in for_ann(), 'ann is told')
        self.assertIn('"owner_reply": "You may."', self.sh('ann', f'cat inbox/new/{mail}.json'))

    def test_the_31st_thread_of_an_hour(self):
        self.begin({'threads': 30})
        new, log = self.top['ann'] / 'threads/new', self.top['ann'] / '.playfs/errors.ndjson'
        for number in range(30):
            new.write_text(f'thread {number}\n')
            self.assertIn('id', json.loads(new.read_text()))
        with self.assertRaises(OSError) as problem:
            new.write_text('{"title": "one more"}')
        self.assertEqual(problem.exception.errno, errno.EAGAIN)
        error = json.loads(new.read_text())['error']
        self.assertEqual((error['code'], error['retryable']), ('rate_limited', True))
        self.assertIn('30 per hour for threads', error['message'])
        self.assertIn('write the same text again: it is sent once', error['hint'])
        self.assertTrue(0 < error['retry_after_s'] <= 3600, error)
        self.eventually(lambda: '30 per hour for threads' in log.read_text(), 'the log has it')
        limits = json.loads((self.top['ann'] / '.playfs/limits.json').read_text())
        self.assertGreater(limits['observed']['threads']['refused'], 0)
        # A plain text, whose close(2) cannot say so.
        new.write_text('one more still\n')
        self.assertEqual(json.loads(new.read_text())['error']['code'], 'rate_limited')
        self.assertEqual(len(self.api.all('threads')), 30)
        self.assertIn('thread 29', os.listdir(self.top['ann'] / 'threads/by-title'))


if __name__ == '__main__':
    fixture.main()
