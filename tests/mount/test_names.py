#!/usr/bin/env python3
"""Who has a handle, a title or a name, while others rename their records by plain HTTP; and taken handles."""
import errno
import json
import os

import fixture
import proxy


@fixture.needs_fuse
class Names(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()

    def rename(self, collection, record, **fields):
        self.api.call('PATCH', f'/{collection}/{record}', fields)

    def refused(self, number, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, number, problem.exception)

    def told(self, top, subject):
        """The last line of the log about this file."""
        def found():
            lines = map(json.loads, (top / '.playfs/errors.ndjson').read_text().splitlines())
            return [line for line in lines if line['subject'] == subject]

        self.eventually(found, f'errors.ndjson tells of {subject}')
        return found()[-1]

    def whoami(self):
        return json.loads(self.playfs('whoami', '--json', '--agent', 'bob', '--site', self.api.origin).stdout)['registered']

    def shown(self, top):
        """The ids that the names lead to."""
        return (os.readlink(top / 'threads/by-title/Plans').removeprefix('../'),
                os.readlink(top / 'spaces/by-name/garden').removeprefix('../').removesuffix('.json'),
                os.readlink(top / 'projects/by-name/game').removeprefix('../'),
                json.loads((top / 'agents/bob.json').read_text())['id'])

    def listed(self, top):
        return tuple(set(os.listdir(top / path))
                     for path in ('threads/by-title', 'spaces/by-name', 'projects/by-name', 'agents'))

    def test_a_rename_takes_no_name_that_was_seen(self):
        def make(title, space, project, handle):
            return (self.api.create('threads', title=title, agent='a', kind='help')['id'],
                    self.api.create('spaces', name=space)['id'], self.api.create('projects', name=project)['id'],
                    self.api.create('agents', handle=handle)['id'])

        attackers, victims = make('x', 'x', 'x', 'eve'), make('Plans', 'garden', 'game', 'bob')
        mount = self.mount(self.api.origin)
        self.assertEqual(self.shown(mount.directory), victims)
        self.assertEqual(self.whoami()['id'], victims[3])

        self.rename('threads', attackers[0], title='Plans')
        self.rename('spaces', attackers[1], name='garden')
        self.rename('projects', attackers[2], name='game')
        self.rename('agents', attackers[3], handle='bob')
        for top in (mount.directory, None):
            if top is None:
                mount.unmount()
                top = self.mount(self.api.origin).directory
            # All are seen with their new names: the agent goes by its id.
            names = ({'Plans'}, {'garden'}, {'game'}, {'new', 'bob.json', f'{attackers[3]}.json'})
            self.eventually(lambda top=top, names=names: self.listed(top) == names, 'the renames are seen')
            self.assertEqual(self.shown(top), victims)
            self.assertEqual(self.whoami()['id'], victims[3])

        # Who comes after the fact sees the oldest.
        self.assertEqual(self.shown(self.mount(self.api.origin, 'late').directory), attackers)

        # A name that is given up is free.
        self.rename('agents', victims[3], handle='robert')
        self.eventually(lambda: json.loads((top / 'agents/bob.json').read_text())['id'] == attackers[3], 'the next has it')
        self.assertEqual(self.whoami()['id'], attackers[3])

    def test_an_edited_profile_keeps_its_handle(self):
        first = self.api.create('agents', handle='bob')['id']
        top = self.mount(self.api.origin).directory
        (top / 'agents/bob.json').write_text('{"about": "parsers"}')
        second = self.api.create('agents', handle='bob')['id']
        self.eventually(lambda: f'{second}.json' in os.listdir(top / 'agents'), 'the second is seen')
        for who in ('ann', 'late'):
            here = top if who == 'ann' else self.mount(self.api.origin, who).directory
            self.assertEqual(json.loads((here / 'agents/bob.json').read_text())['id'], first)

    def test_a_handle_that_is_an_id_hides_no_record(self):
        self.api.create('agents', handle='bob')
        other = self.api.create('agents', handle='bob')['id']
        fake = self.api.create('agents', handle=other)['id']
        top = self.mount(self.api.origin).directory
        self.assertEqual(set(os.listdir(top / 'agents')), {'new', 'bob.json', f'{other}.json', f'{fake}.json'})
        self.assertEqual(json.loads((top / f'agents/{other}.json').read_text())['id'], other)

    def test_writing_takes_no_handle_that_another_has(self):
        bob, eve = (self.api.create('agents', handle=handle)['id'] for handle in ('bob', 'eve'))
        top = self.mount(self.api.origin).directory
        self.refused(errno.EEXIST, lambda: (top / 'agents/eve.json').write_text('{"handle": "bob", "about": "x"}'))
        told = self.told(top, 'agents/eve.json')
        self.assertEqual(told['code'], 'already_exists')
        self.assertEqual(told['message'], 'there is an agent "bob" already; nothing was sent')
        self.assertIn('agents/bob.json', told['hint'])
        self.assertEqual(self.api.get('agents', eve).get('about'), None)
        self.refused(errno.EEXIST, lambda: (top / 'agents/new').write_text('{"handle": "bob"}'))
        same = self.told(top, 'agents/new')
        self.assertEqual((same['message'], same['hint']), (told['message'], told['hint']))

        (top / 'agents/eve.json').write_text('{"handle": "dora"}')
        self.assertEqual(self.api.get('agents', eve)['handle'], 'dora')
        (top / 'agents/bob.json').write_text('{"handle": "bob", "about": "its own"}')
        self.assertEqual(self.api.get('agents', bob)['about'], 'its own')
        (top / 'agents/dora.json').write_text('{"handle": "eve"}')
        self.assertEqual(self.api.get('agents', eve)['handle'], 'eve')

    def test_of_two_that_a_crash_left_the_second_takes_no_handle(self):
        way = proxy.CountingProxy(int(self.api.origin.rsplit(':', 1)[1]))
        self.addCleanup(way.close)
        state = self.home / 'ann/state'

        def registered(name):
            return [agent for agent in map(fixture.fields, self.api.all('agents')) if agent['handle'] == name]

        for name, arrives in (('ann', False), ('zoe', True)):
            with self.subTest('the first has arrived' if arrives else 'the first is on its way'):
                mount = self.mount(way.url)
                way.fate = lambda request: 'lose reply' if request.startswith('POST') else None
                if not arrives:
                    way.set_hanging(lambda path: path.endswith('/agents'))
                new = mount.directory / 'agents/new'
                new.write_text(name)
                self.eventually(lambda: registered(name) if arrives else way.hung(), 'it is under way')
                way.set_hanging(lambda path: path.endswith('/agents'))
                new.write_text(name)
                self.eventually(lambda: sum(f'"{name}"' in each.read_text() for each in state.rglob('=requests/*.json')) == 2,
                                'both are journalled')
                mount.kill()
                way.fate = lambda request: None
                way.set_hanging(None)
                mount.end()
                top = self.mount(way.url).directory
                told = self.told(top, 'agents/new')
                self.assertEqual(told['code'], 'already_exists')
                self.assertIn(f'there is an agent "{name}" already; nothing was sent', told['message'])
                self.assertNotIn('nobody knows', told['message'])
                [kept] = [each for each in state.rglob('=requests/unsent/*') if f'"{name}"' in each.read_text()]
                self.assertIn(str(kept), told['message'])
                self.assertEqual(len(registered(name)), 1)
                new = top / 'agents/new'
                new.write_bytes(kept.read_bytes())  # what the first said, so it gets that one's answer
                self.assertEqual(json.loads(new.read_text())['id'], registered(name)[0]['id'])
                self.refused(errno.EEXIST, lambda: new.write_text(json.dumps({'handle': name, 'bio': 'another'})))
                self.assertEqual(len(registered(name)), 1)
                self.mounts[-1].unmount()

    def test_a_handle_that_nobody_has_says_how_to_register(self):
        top = self.mount(self.api.origin).directory
        self.refused(errno.ENOENT, lambda: (top / 'agents/zoe.json').read_text())
        told = self.told(top, 'agents/zoe.json')
        self.assertEqual((told['code'], told['message']), ('not_found', 'nobody has registered the handle "zoe"'))
        self.assertIn('playfs agent register zoe', told['hint'])
        self.assertIn('agents/new', told['hint'])
        self.refused(errno.EPERM, lambda: (top / 'agents/kim.json').write_text('{}'))
        told = self.told(top, 'agents/kim.json')
        self.assertEqual(told['code'], 'not_permitted')
        self.assertIn('agents/new', told['hint'])


if __name__ == '__main__':
    fixture.main()
