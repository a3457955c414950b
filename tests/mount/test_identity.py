#!/usr/bin/env python3
"""Several agents on one machine: each commit, post and mail has its own author, and each key its own owner."""
import json
import re
import subprocess

import fixture

TAKEN_UP = 30  # seconds; longer than a mount needs to see a new key


@fixture.needs_fuse
class Agents(fixture.SharedProject):
    def author(self, revision):
        return self.api.get('revisions', revision)['agent']

    def commit_as(self, mount, who, agent, name, *words):
        """`playfs commit` by `who` whose PLAYFS_AGENT is `agent`; None: not set. The author of what was published."""
        (self.work(mount) / name).write_text(f'{name}\n')
        environment = {**self.environment(who), 'LOGNAME': f'unix-{who}'}
        del environment['PLAYFS_AGENT']
        if agent:
            environment['PLAYFS_AGENT'] = agent
        done = subprocess.run([self.playfs_path, 'commit', '-m', name, '--json', *words], cwd=self.work(mount),
                              env=environment, capture_output=True, text=True, timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.author(json.loads(done.stdout)['revision'])

    def sign_in(self, who, *words, at=None):
        """`at`: in this mount, and without PLAYFS_AGENT."""
        login = ('login', f'{who}@example.org', '--site', self.api.origin)
        self.playfs(*login, who=who, check=False)
        code = re.findall(rf'To: {who}@.*?code is (\S+)', (self.home / 'store/outbox').read_text(), re.DOTALL)[-1]
        again = (*login, '--code', code, *words)
        return self.run_in(at, who, *again) if at else self.playfs(*again, who=who)

    def run_in(self, mount, who, *words, agent=None, text_in=''):
        """A command at the top of a mount, with this PLAYFS_AGENT; None: not set."""
        environment = {**self.environment(who), 'LOGNAME': f'unix-{who}'}
        del environment['PLAYFS_AGENT']
        if agent:
            environment['PLAYFS_AGENT'] = agent
        done = subprocess.run([self.playfs_path, *map(str, words)], cwd=mount.directory, env=environment, input=text_in,
                              capture_output=True, text=True, timeout=fixture.COMMAND_LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def whoami(self, mount, who, agent=None):
        return json.loads(self.run_in(mount, who, 'whoami', '--json', agent=agent).stdout)

    def test_two_agents_in_one_mount(self):
        mount = self.mount(self.api.origin, 'ann')
        self.assertEqual(self.commit_as(mount, 'bob', 'bob', 'one'), 'bob')
        self.assertEqual(self.commit_as(mount, 'carol', 'carol', 'two'), 'carol')
        self.assertEqual(self.commit_as(mount, 'carol', 'carol', 'three', '--agent', 'flag'), 'flag')
        # The ioctl itself, and the control file, which only the mount's own agent can stand for.
        program = self.c_program('commit')
        (self.work(mount) / 'four').write_text('four\n')
        self.assertEqual(self.author(self.command(program, self.work(mount), 'four', 'dora').stdout.split()[1]), 'dora')
        (self.work(mount) / 'five').write_text('five\n')
        control = self.work(mount).parent / 'commit'
        control.write_text('five\n')
        self.assertEqual(self.author(json.loads(control.read_text())['revision']), 'ann')

    def test_two_mounts(self):
        """Each with its own agent=, by users with their own folders."""
        ann = self.mount(self.api.origin, 'ann', ('refresh=1', 'agent=mount-a'))
        bob = self.mount(self.api.origin, 'bob', ('refresh=1', 'agent=mount-b'))
        self.assertEqual(self.commit_as(ann, 'ann', None, 'a1'), 'mount-a')
        self.assertEqual(self.commit_as(bob, 'bob', None, 'b1'), 'mount-b')
        self.assertEqual(self.commit_as(ann, 'ann', 'ann', 'a2'), 'ann', 'PLAYFS_AGENT is stronger')
        # A post by a mount's own file.
        for mount, agent in (ann, 'mount-a'), (bob, 'mount-b'):
            (mount.directory / 'threads/new').write_text(json.dumps({'title': agent, 'kind': 'intro'}))
            self.eventually(lambda: agent in [fixture.fields(each)['agent'] for each in self.api.all('threads')], agent)
        found = self.whoami(ann, 'ann')
        self.assertEqual((found['site'], found['agent'], found['agent_from']), (self.api.origin, 'mount-a', 'mount'))
        found = self.whoami(ann, 'ann', agent='other')
        self.assertEqual((found['agent'], found['agent_from']), ('other', 'environment'))
        self.assertEqual((found['mount']['agent'], found['mount']['agent_from']), ('mount-a', 'flag'))

    def test_a_login_name_is_whose_command_it_is(self):
        """What a mount fell back to for itself is weaker than what its user has chosen since, and not another user's."""
        mount = self.mount_without_agent('ann')
        self.assertEqual(self.commit_as(mount, 'ann', None, 'one'), 'unix-ann')
        self.assertEqual(self.commit_as(mount, 'bob', None, 'two'), 'unix-bob')
        self.sign_in('ann', '--agent', 'chosen')
        self.assertEqual(self.commit_as(mount, 'ann', None, 'three'), 'chosen')
        self.assertEqual(self.commit_as(mount, 'bob', None, 'four'), 'unix-bob')
        self.assertEqual(self.whoami(mount, 'ann')['agent_from'], 'login')

    def test_every_command_writes_as_whoami_says(self):
        for handle in 'mount-a', 'unix-ann', 'other':
            self.api.create('agents', handle=handle)
        other = self.mount_of_another_service()
        thread = self.api.create('threads', title='Hello', agent='bob', kind='help')['id']
        mail = f'To: help@{self.api.origin.removeprefix("http://").replace(":", "-")}\nSubject: s\n\nbody\n'
        site = ('--site', self.api.origin)

        def authors(place, agent=None):
            """By command: who writes."""
            def run(*words, text_in=''):
                return json.loads(self.run_in(place, 'ann', *words, '--json', agent=agent, text_in=text_in).stdout)

            plain = self.home / f'plain-{place.directory.name}-{agent}'
            plain.mkdir()
            (plain / 'file').write_text('text\n')
            return {
                'whoami': run('whoami', *site)['agent'],
                'inbox': run('inbox', *site)['agent'],
                'thread new': run('thread', 'new', 'T', '-m', 'x', *site)['message']['agent'],
                'post': run('post', thread, '-m', 'x', *site)['message']['agent'],
                'mail send': run('mail', 'send', '--kind', 'idea', '--subject', 's', '-m', 'b', *site)['mail']['agent'],
                'sendmail': self.api.get('threads', run('sendmail', '-t', *site, text_in=mail)['thread'])['agent'],
                'agent show': run('agent', 'show', *site)['agent']['handle'],
                'agent set': run('agent', 'set', 'about=x', *site)['agent']['handle'],
                'import': self.author(run('import', plain, *site)['revision']),
            }

        ann = self.mount(self.api.origin, 'ann', ('refresh=1', 'agent=mount-a'))
        for place, agent, wanted in (ann, None, 'mount-a'), (ann, 'other', 'other'), (other, None, 'unix-ann'):
            with self.subTest(wanted=wanted):
                found = authors(place, agent)
                self.assertEqual(found, dict.fromkeys(found, wanted))

    def mount_of_another_service(self):
        """A local playground, whose mount has an agent of its own."""
        return self.mount(None, 'ann', ('refresh=1', 'agent=elsewhere'))

    def test_neither_a_registration_nor_a_login_changes_who_a_mount_writes_as(self):
        mount = self.mount_without_agent('ann')
        new, thread = mount.directory / 'agents/new', mount.directory / 'threads/new'

        def writes_as():
            thread.write_text('{"title": "t"}')
            return json.loads(thread.read_text())['agent']

        new.write_text('{"handle": "ada"}')
        shown = json.loads(new.read_text())
        self.assertEqual(shown['handle'], 'ada')
        self.assertRegex(shown['then'], rf"still writes as 'fallback'.*playfs mount {self.api.origin} DIR -o agent=ada")
        new.write_text('{"handle": "fallback"}')
        self.assertNotIn('then', json.loads(new.read_text()), 'what this mount writes as')
        said = self.run_in(mount, 'ann', 'agent', 'register', 'zoe').stderr
        self.assertRegex(said, r"(?s)still write as 'unix-ann'.*PLAYFS_AGENT=zoe.*thread new Hello.*--agent zoe")
        said = self.run_in(mount, 'ann', 'agent', 'register', 'yan', agent='yan').stderr
        self.assertNotRegex(said, 'still write|--agent')
        said = self.sign_in('ann', '--agent', 'zoe', at=mount).stderr
        self.assertRegex(said, r"(?s)You write as 'zoe'.*is still by 'fallback'.*playfs mount \S+ \S+ -o agent=zoe")
        self.assertEqual((self.whoami(mount, 'ann')['agent'], writes_as()), ('zoe', 'fallback'))
        named = self.mount(self.api.origin, 'ann', ('refresh=1', 'agent=mount-a'))
        said = self.sign_in('ann', '--agent', 'zoe', at=named).stderr
        self.assertIn("You write as 'mount-a'", said, 'as whoami says')
        self.assertNotIn('is still by', said)

    def mount_without_agent(self, who):
        environment = self.environment
        self.environment = lambda user: {name: value for name, value in {**environment(user), 'LOGNAME': 'fallback'}.items()
                                         if name != 'PLAYFS_AGENT'}
        try:
            return self.mount(self.api.origin, who)
        finally:
            self.environment = environment

    def test_a_running_mount_takes_up_a_key_and_drops_it(self):
        mount = self.mount(self.api.origin, 'ann')
        new = mount.directory / 'mail/new'

        def owner_may_change():
            """Whether a mail that the mount sends now belongs to ann."""
            new.write_text(json.dumps({'kind': 'idea', 'subject': 's', 'body': 'b'}))
            mail = json.loads(new.read_text())
            done = self.playfs('api', 'PATCH', f'/domain_mail/{mail["id"]}', '-d', '{"subject": "t"}', '--site',
                               self.api.origin, who='owner', check=False)
            self.assertIn(done.returncode, (0, 6), done.stderr)
            return done.returncode == 0

        # The same account with a key of its own, in other folders.
        login = ('login', 'ann@example.org', '--site', self.api.origin)
        self.playfs(*login, who='owner', check=False)
        code = re.findall(r'code is (\S+)', (self.home / 'store/outbox').read_text())[-1]
        self.playfs(*login, '--code', code, who='owner')
        self.assertFalse(owner_may_change())
        self.assertIn('write with this key', self.sign_in('ann').stderr)
        self.eventually(owner_may_change, 'the mount writes with the key', TAKEN_UP)
        self.playfs('logout', '--site', self.api.origin)
        self.eventually(lambda: not owner_may_change(), 'the mount has dropped the key', TAKEN_UP)


if __name__ == '__main__':
    fixture.main()
