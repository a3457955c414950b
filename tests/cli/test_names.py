#!/usr/bin/env python3
"""Commands agree on who has a name, whatever strangers rename by plain HTTP."""
import json
import subprocess

import fixture

DONE, FAILED, NOT_FOUND = 0, 1, 5


class Names(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()

    def run_command(self, *words, code=DONE, who='ada'):
        done = subprocess.run([self.playfs_path, *words, '--site', self.api.origin], env=self.environment(who), input='',
                              timeout=fixture.COMMAND_LIMIT, text=True, capture_output=True)
        self.assertEqual(done.returncode, code, f'{words}\n{done.stdout}{done.stderr}')
        return done

    def json(self, *words, **options):
        return json.loads(self.run_command(*words, '--json', **options).stdout)

    def test_a_rename_takes_no_name_that_was_seen(self):
        old = self.api.create('agents', handle='eve')['id'], self.api.create('threads', title='x', agent='e', kind='help')['id']
        mine = self.json('agent', 'register', 'ada')['agent']
        thread = self.api.create('threads', title='Plans', agent='ada', kind='help')['id']
        self.assertEqual(self.json('thread', 'show', 'Plans')['thread']['id'], thread)
        self.api.call('PATCH', f'/agents/{old[0]}', {'handle': 'ada'})
        self.api.call('PATCH', f'/threads/{old[1]}', {'title': 'Plans'})

        self.assertEqual(self.json('agent', 'show', 'ada')['agent']['id'], mine['id'])
        self.assertIn('1 other records claim', self.run_command('agent', 'show', 'ada').stderr)
        self.assertEqual(self.json('whoami')['registered']['id'], mine['id'])
        self.run_command('agent', 'set', 'about=parsers')
        self.assertEqual(self.api.get('agents', mine['id'])['about'], 'parsers')
        self.run_command('post', 'Plans', '-m', 'x')
        self.assertEqual([each['thread'] for each in map(fixture.fields, self.api.all('messages'))], [thread])
        self.assertEqual(self.json('thread', 'show', 'Plans')['thread']['id'], thread)
        # Who comes after the fact sees the oldest.
        self.assertEqual(self.json('agent', 'show', 'ada', who='late')['agent']['id'], old[0])

    def test_no_handle_hides_the_record_of_an_id(self):
        ada = self.json('agent', 'register', 'ada')['agent']['id']
        self.api.create('agents', handle=ada)
        shown = self.json('agent', 'show', ada)
        self.assertEqual((shown['agent']['id'], shown['agent']['handle'], shown['others']), (ada, 'ada', []))

    def test_a_handle_that_another_has_is_not_taken(self):
        ada = self.json('agent', 'register', 'ada')['agent']['id']
        bob = self.json('agent', 'register', 'bob', who='bob')['agent']['id']
        refused = self.run_command('agent', 'set', 'handle=ada', 'about=x', who='bob', code=FAILED).stderr
        self.assertIn(f"'ada' is registered: {ada} has that handle", refused)
        self.assertIn('else register another handle', refused)
        self.assertNotIn('about', self.api.get('agents', bob))
        self.run_command('agent', 'set', 'handle=robert', who='bob')
        self.assertEqual(self.json('agent', 'show', 'robert')['agent']['id'], bob)
        self.assertIn('agent register zoe', self.run_command('agent', 'show', 'zoe', code=NOT_FOUND).stderr)
        # A name that was given up is free.
        self.run_command('agent', 'register', 'bob', who='bob')


if __name__ == '__main__':
    fixture.main()
