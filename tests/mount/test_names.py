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


@fixture.needs_fuse
class Renamed(fixture.Fixture):
    """What ann writes by a name that another client has given up, while her mount's lists are as old as `refresh`."""

    def setUp(self):
        super().setUp()
        self.api, self.proxy = proxy.before_a_service(self)

    def begin(self, tells=False):
        self.proxy.tells = tells
        self.ann = self.mount(self.proxy.url, options=('refresh=3600',))
        self.top = self.ann.directory
        self.by_title = self.top / 'threads/by-title'
        return self.top

    def thread(self, title):
        return self.api.create('threads', title=title, agent='bob', kind='help')['id']

    def rename(self, collection, record, **fields):
        self.api.call('PATCH', f'/{collection}/{record}', fields)

    def bodies(self):
        return [message['body'] for message in map(fixture.fields, self.api.all('messages'))]

    def stale(self, call):
        with self.assertRaises(OSError) as problem:
            call()
        self.assertEqual(problem.exception.errno, errno.ESTALE, problem.exception)

    def errors(self):
        return [json.loads(line) for line in (self.top / '.playfs/errors.ndjson').read_text().splitlines()]

    def told(self, *parts):
        """The line of the log that has all of these."""
        def found():
            return [line for line in self.errors() if all(part in ' '.join(line.values()) for part in parts)]

        self.eventually(found, f'errors.ndjson has {parts}')
        return found()[-1]

    def saved(self):
        return list((self.home / 'ann/state').rglob('=requests/unsent/*'))

    def sh(self, script):
        return self.command('sh', '-ec', f'cd "$0"; {script}', self.top, check=False)

    def test_a_reply_by_an_old_title_is_refused(self):
        plans, notes = self.thread('Plans'), self.thread('Notes')
        self.begin()
        os.readlink(self.by_title / 'Plans')
        self.rename('threads', plans, title='Secrets')
        self.rename('threads', notes, title='Other')
        with self.proxy.counting() as count:
            self.assertEqual(self.sh('echo for the plans > threads/by-title/Plans/reply').returncode, 0)
            told = self.told('stale', '"Plans"', '"Secrets"', plans)
        self.assertEqual([line for line in count.requests if line.startswith('POST')], [])
        (kept,) = self.saved()
        self.assertIn(str(kept), told['message'])
        self.assertEqual(json.loads(kept.read_text())['body'], 'for the plans')
        self.stale(lambda: (self.by_title / 'Notes/reply').write_text('{"body": "for the notes"}'))
        self.assertIn(f'threads/{notes}/reply', self.told('stale', '"Notes"', '"Other"')['hint'])
        self.assertEqual((self.bodies(), self.saved()), ([], [kept]))
        # The old names lead nowhere now; what was saved is sent by the command of its hint.
        self.assertEqual(set(os.listdir(self.by_title)), {'Secrets', 'Other'})
        command = told['hint'].split('at the top of the mount: ')[1].split(';')[0]
        self.assertIn(f'threads/{plans}/reply', command)
        self.assertEqual(self.sh(command).returncode, 0)
        (self.by_title / 'Other/reply').write_text('{"body": "by its new name"}')
        self.assertEqual(sorted(self.bodies()), ['by its new name', 'for the plans'])

    def test_a_name_costs_one_question_and_an_id_none(self):
        plans = self.thread('Plans')
        self.begin()
        for path, questions in ((f'threads/{plans}', 0), ('threads/by-title/Plans', 1), (f'threads/{plans}', 0)):
            for text in 'echo text >', 'echo \'{"body": "text"}\' >', 'echo text >>':
                with self.subTest(path=path, text=text):
                    before = len(self.bodies())
                    self.sh(f'cat {path}/reply')
                    with self.proxy.counting() as count:
                        self.assertEqual(self.sh(f'{text} {path}/reply').returncode, 0)
                        self.eventually(lambda before=before: len(self.bodies()) > before, 'it is sent')
                    self.assertEqual(count.requests.count(f'GET /.site/data/threads/{plans}'), questions, count.requests)

    def test_events_that_get_lost_mislead_nobody(self):
        plans, notes = self.thread('Plans'), self.thread('Notes')
        self.begin(tells=True)

        def events():
            return json.loads((self.top / '.playfs/status.json').read_text())['events']

        os.listdir(self.by_title)
        self.eventually(lambda: events() == 'live', 'events are live')
        self.assertEqual(set(os.listdir(self.by_title)), {'Plans', 'Notes'})
        with self.proxy.counting() as count:
            (self.by_title / 'Plans/reply').write_text('{"body": "in time"}')
        self.assertEqual(count.requests.count(f'GET /.site/data/threads/{plans}'), 1, count.requests)
        with open(self.by_title / 'Notes/reply', 'w', encoding='utf-8') as file:
            self.rename('threads', notes, title='Other')
            self.eventually(lambda: 'Other' in os.listdir(self.by_title), 'the rename is told')
            file.write('{"body": "too late"}')
            self.stale(file.flush)
            with open(os.devnull, 'w', encoding='utf-8') as nowhere:
                os.dup2(nowhere.fileno(), file.fileno())  # its close flushes again
        with self.assertRaises(FileNotFoundError):
            (self.by_title / 'Notes/reply').write_text('{"body": "no such name"}')
        self.proxy.muted = True
        self.rename('threads', plans, title='Secrets')
        self.stale(lambda: (self.by_title / 'Plans/reply').write_text('{"body": "nobody told"}'))
        self.assertEqual(self.bodies(), ['in time'])

    def test_in_an_outage_the_name_is_checked_later(self):
        plans = self.thread('Plans')
        self.thread('Notes')
        self.begin()
        self.assertEqual(set(os.listdir(self.by_title)), {'Plans', 'Notes'})
        self.proxy.away = True
        for title in 'Plans', 'Notes':
            (self.by_title / title / 'reply').write_text(f'for {title}')
            self.told('unreachable', 'sent again by itself')
        self.rename('threads', plans, title='Secrets')
        self.ann.unmount()  # what waits is sent by the next mount
        self.begin()
        self.proxy.away = False
        self.told('stale', '"Plans"', '"Secrets"', '/unsent/')
        self.eventually(self.bodies, 'the other arrives')
        self.assertEqual(self.bodies(), ['for Notes'])
        (kept,) = self.saved()
        self.assertEqual(json.loads(kept.read_text())['body'], 'for Plans')
        self.assertNotIn('nobody knows', self.told('stale')['message'])

    def refuse_posts(self, status=429, code='rate_limited'):
        document = json.dumps({'error': 'later', 'code': code, 'message': 'later'})
        self.proxy.fate = lambda request: (status, document) if request.startswith('POST') else None

    def test_each_attempt_checks_the_name(self):
        for status, code, remounts in (429, 'rate_limited', False), (503, 'unavailable', True):
            with self.subTest(status=status, remounts=remounts):
                plans = self.thread(code)
                self.begin()
                os.readlink(self.by_title / code)
                self.refuse_posts(status, code)
                self.assertEqual(self.sh(f'echo text > threads/by-title/{code}/reply').returncode, 0)
                self.told(f'threads/{plans}/reply', 'sent again by itself')
                self.rename('threads', plans, title='Secrets')
                if remounts:
                    self.ann.unmount()
                    self.begin()
                self.proxy.fate = lambda request: None
                told = self.told('stale', f'"{code}"', '"Secrets"', '/unsent/')
                self.assertEqual(self.bodies(), [])
                # A 503 does not tell whether the service got it.
                self.assertEqual('nobody knows whether it arrived' in told['message'], status == 503, told)
                self.ann.unmount()

    def test_an_attempt_that_the_client_repeats_checks_the_name(self):
        plans = self.thread('Plans')
        self.begin()
        os.readlink(self.by_title / 'Plans')
        refused = []

        def fate(request):
            if request.startswith('POST') and not refused:
                refused.append(request)
                self.rename('threads', plans, title='Secrets')
                return 503, '{"error": "away", "code": "unavailable", "message": "away"}'
            return None

        self.proxy.fate = fate
        self.stale(lambda: (self.by_title / 'Plans/reply').write_text('{"body": "for the plans"}'))
        self.assertIn('it was not sent again', self.told('stale', '"Secrets"')['message'])
        self.assertEqual((len(refused), self.bodies()), (1, []))
        # By its id it is sent, once.
        for _ in range(2):
            (self.top / f'threads/{plans}/reply').write_text('{"body": "by id"}')
        self.assertEqual(self.bodies(), ['by id'] * 2)

    def test_what_was_written_by_id_vouches_for_no_name(self):
        plans = self.thread('Plans')
        self.begin()
        os.readlink(self.by_title / 'Plans')
        by_id, by_name = self.top / f'threads/{plans}/reply', self.by_title / 'Plans/reply'

        def write(path):
            # Not by this thread: it would be remembered for having used the name.
            script = 'import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(\'{"body": "ok"}\')'
            return self.command('python3', '-c', script, path, check=False).stderr

        self.refuse_posts()
        self.assertIn(f'[Errno {errno.EAGAIN}]', write(by_id))
        self.rename('threads', plans, title='Secrets')
        self.proxy.fate = lambda request: None
        self.assertIn(f'[Errno {errno.ESTALE}]', write(by_name))
        self.assertEqual(self.bodies(), [])
        self.assertEqual(write(by_id), '')
        self.assertEqual(self.bodies(), ['ok'])

    def test_a_change_that_is_repeated_checks_the_name(self):
        ada = self.api.create('agents', handle='ada')['id']
        self.begin()
        (self.top / 'agents/ada.json').read_text()
        refused = []

        def fate(request):
            if request.startswith('PATCH') and not refused:
                refused.append(request)
                self.rename('agents', ada, handle='eve')
                return 429, '{"error": "later", "code": "rate_limited", "message": "later"}'
            return None

        self.proxy.fate = fate
        self.stale(lambda: (self.top / 'agents/ada.json').write_text('{"about": "mine"}'))
        self.assertEqual((len(refused), self.api.get('agents', ada).get('about')), (1, None))

    def test_a_child_writes_by_the_name_that_its_shell_went_by(self):
        plans = self.thread('Plans')
        self.begin()
        os.readlink(self.by_title / 'Plans')
        (self.home / 'text').write_text('{"body": "text"}')
        self.rename('threads', plans, title='Secrets')

        def copy_in(directory, shells=''):
            return self.sh(f"cd threads/{directory}; {shells} cp '{self.home}/text' reply").stderr

        self.assertIn(os.strerror(errno.ESTALE), copy_in('by-title/Plans'))
        self.assertEqual(self.bodies(), [])
        with self.proxy.counting() as count:
            self.assertEqual((copy_in(plans), copy_in('by-title/Secrets', 'env nice')), ('', ''))
        self.assertEqual(self.bodies(), ['text'] * 2)
        self.assertEqual(count.requests.count(f'GET /.site/data/threads/{plans}'), 1, count.requests)

    def test_a_hidden_thread_takes_nothing_by_its_title(self):
        plans = self.thread('Plans')
        self.begin()
        os.readlink(self.by_title / 'Plans')
        self.playfs('serve', 'hide', plans, '--store', self.home / 'store', who='server')
        self.stale(lambda: (self.by_title / 'Plans/reply').write_text('{"body": "text"}'))
        told = self.told('stale', '"Plans"', plans)
        self.assertIn('is hidden by now', told['message'])
        self.assertNotIn('""', told['message'])

    def test_a_change_of_a_record_by_an_old_name_is_refused(self):
        made = {'agents': self.api.create('agents', handle='ada')['id'], 'spaces': self.api.create('spaces', name='lab')['id'],
                'threads': self.thread('Plans'), 'projects': self.api.create('projects', name='game')['id']}
        new = {'agents': {'handle': 'eve'}, 'spaces': {'name': 'bar'}, 'threads': {'title': 'Secrets'},
               'projects': {'name': 'toy'}}
        paths = {'agents': ('agents/ada.json', 'agents/{}.json'), 'spaces': ('spaces/by-name/lab', 'spaces/{}.json'),
                 'threads': ('threads/by-title/Plans/thread.json', 'threads/{}/thread.json'),
                 'projects': ('projects/by-name/game/project.json', 'projects/{}/project.json')}
        change = json.dumps({'kind': 'collab', 'about': 'mine'})
        self.begin()
        for collection, (by_name, by_id) in paths.items():
            with self.subTest(collection):
                by_id, about = by_id.format(made[collection]), '{"kind": "collab"}' if collection == 'threads' else change
                (self.top / by_id).read_text()  # the kernel knows it by its id, too
                (self.top / by_name).read_text()
                self.rename(collection, made[collection], **new[collection])
                self.stale(lambda path=by_name, text=about: (self.top / path).write_text(text))
                (name,) = new[collection].values()
                self.assertIn(by_id, self.told('stale', f'"{name}"')['hint'])
                self.assertNotEqual(self.api.get(collection, made[collection]).get('kind'), 'collab')
                (self.top / by_id).write_text(about)
                self.assertEqual(self.api.get(collection, made[collection])['kind'], 'collab')
                with self.assertRaises(OSError):
                    (self.top / by_name).read_text()

    def opened(self, path, how=0):
        descriptor = os.open(self.top / path, os.O_RDWR | how)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def test_each_open_file_counts_as_reached_as_it_was(self):
        plans = self.thread('Plans')
        lab = self.api.create('spaces', name='lab')['id']
        self.begin()
        for collection, record, by_id, by_name in (
                ('threads', plans, f'threads/{plans}/thread.json', 'threads/by-title/Plans/thread.json'),
                ('spaces', lab, f'spaces/{lab}.json', 'spaces/by-name/lab')):
            with self.subTest(collection):
                files = [(path, self.opened(path, how)) for path in (by_id, by_name) for how in (0, os.O_APPEND, os.O_TRUNC)]
                self.rename(collection, record, **({'title': 'Secrets'} if collection == 'threads' else {'name': 'bar'}))
                for path, file in files:
                    change = json.dumps({'kind': 'collab' if self.api.get(collection, record).get('kind') != 'collab' else 'intro'})
                    if path == by_id:
                        os.write(file, change.encode())
                        self.assertEqual(self.api.get(collection, record)['kind'], json.loads(change)['kind'])
                    else:
                        self.stale(lambda file=file, change=change: os.write(file, change.encode()))

    def test_what_another_has_written_vouches_for_no_name(self):
        records = {'agents': ('handle', 'agents/{}.json'), 'spaces': ('name', 'spaces/by-name/{}'),
                   'threads': ('title', 'threads/by-title/{}/thread.json')}
        self.begin(tells=True)
        for collection, (field, path) in records.items():
            with self.subTest(collection):
                fields = {'agent': 'bob', 'kind': 'help'} if collection == 'threads' else {}
                record = self.api.create(collection, **{field: 'old'}, **fields)['id']
                self.eventually((self.top / path.format('old')).exists, 'the mount has heard of it')
                one, other = self.opened(path.format('old')), self.opened(path.format('old'))
                os.write(one, b'{"kind": "collab"}')
                self.rename(collection, record, **{field: 'new'})
                self.api.create(collection, **{field: 'old'}, **fields)
                self.eventually((self.top / path.format('new')).exists, 'the mount knows the new name')
                for file in other, one:
                    self.stale(lambda file=file: os.pwrite(file, b'{"kind": "intro"}', 0))
                self.assertEqual(self.api.get(collection, record)['kind'], 'collab')

    def test_a_record_that_is_read_often_is_not_asked_for_each_time(self):
        plans, lab = self.thread('Plans'), self.api.create('spaces', name='lab')['id']
        self.api.create('agents', handle='ada')
        self.begin()
        for path in f'threads/{plans}/thread.json', 'agents/ada.json', f'spaces/{lab}.json':
            with self.subTest(path):
                (self.top / path).read_text()
                with self.proxy.counting() as count:
                    for _ in range(2):
                        (self.top / path).read_text()
                self.assertEqual(count.requests, [])

    def test_titles_that_are_one_link_are_one_name(self):
        thread = self.thread('Q/A')
        self.begin()
        os.listdir(self.by_title)
        self.rename('threads', thread, title='Q_A')
        (self.by_title / 'Q_A/reply').write_text('{"body": "json"}')
        self.assertEqual(self.sh('echo text > threads/by-title/Q_A/reply; cat threads/by-title/Q_A/reply').returncode, 0)
        (self.by_title / 'Q_A/thread.json').write_text('{"kind": "collab"}')
        self.assertEqual((sorted(self.bodies()), self.saved()), (['json', 'text'], []))
        self.assertEqual(self.api.get('threads', thread)['kind'], 'collab')

    def test_a_name_that_nothing_has_is_not_created(self):
        self.api.create('spaces', name='lab')
        self.begin()
        os.listdir(self.top / 'spaces/by-name')
        for path in 'spaces/by-name/old', 'threads/by-title/old/thread.json':
            self.assertIn('No such file', self.sh(f'echo "{{}}" > {path}').stderr.replace('nonexistent', 'No such file'))
        self.told('spaces/by-name/old', 'it was renamed, or never was')

    def test_a_change_by_id_does_not_care(self):
        plans, ada = self.thread('Plans'), self.api.create('agents', handle='ada')['id']
        self.begin()
        os.listdir(self.by_title)
        (self.top / f'agents/{ada}.json').read_text()
        self.rename('threads', plans, title='Secrets')
        self.rename('agents', ada, handle='eve')
        (self.top / f'threads/{plans}/thread.json').write_text('{"kind": "collab"}')
        (self.top / f'agents/{ada}.json').write_text('{"about": "mine"}')
        (self.top / f'threads/{plans}/reply').write_text('{"body": "by id"}')
        self.assertEqual(self.bodies(), ['by id'])
        # Who renames a record by its name goes on through the open file.
        with open(self.by_title / 'Secrets/thread.json', 'r+b', buffering=0) as file:
            file.write(b'{"title": "Other"}')
            file.seek(0)
            file.write(b'{"kind": "help"}')
        self.assertEqual([self.api.get('threads', plans)[field] for field in ('title', 'kind')], ['Other', 'help'])


if __name__ == '__main__':
    fixture.main()
