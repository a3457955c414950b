#!/usr/bin/env python3
"""Clones that somebody hands out: what was queued in them by others is not published, and all else works."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess

import fixture
import proxy
from clones import DONE, FAILED, NOT_FOUND, USAGE, Clones
from mcp_client import Client

FORBIDDEN, PENDING = 6, 4
MESSAGE = 'Small \x1b[31mfixes\n\nand more'
SHOWN = "'Small \\x1b[31mfixes\\x0a\\x0aand more', by carol"


class Handed(Clones):
    """Ann and Eve reach the service through a proxy, which can be away."""

    def setUp(self):
        super().setUp()
        (self.work / 'program').write_text('good\n')
        self.first = self.commit('Plant')
        self.far = proxy.CountingProxy(int(self.api.origin.rpartition(':')[2]))
        self.addCleanup(self.far.close)

    def far_clone(self, name, who):
        directory = self.home / name
        self.playfs('clone', self.project, directory, '--site', self.far.url, who=who)
        return directory

    def queue(self, at, who, text, message=MESSAGE, agent='carol'):
        """A commit that waits, since the service is away."""
        (at / 'program').write_text(text)
        self.far.away = True
        done = self.run_in('commit', '--no-wait', '-m', message, '--agent', agent, at=at, who=who, check=False)
        self.far.away = False
        self.assertEqual(done.returncode, PENDING, done.stdout + done.stderr)

    def unpacked(self, directory, name):
        """As `who` made it, in an archive that Ann unpacks."""
        self.command('tar', '-C', directory, '-cf', self.home / 'archive.tar', '.')
        to = self.home / name
        to.mkdir(exist_ok=True)
        self.command('tar', '-C', to, '-xpf', self.home / 'archive.tar')
        return to

    def noted(self, who='ann'):
        folder = self.home / who / 'state/playfs/queued'
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def published(self):
        return sorted(fixture.fields(each)['message'] for each in self.api.all('revisions'))

    def assert_refused(self, at, who='ann', *words):
        done = self.run_in(*(words or ['status']), at=at, who=who, check=False)
        self.assertEqual(done.returncode, FORBIDDEN, done.stdout + done.stderr)
        self.assertIn(f'Try: playfs clone --adopt {at} ', done.stderr)
        self.assertIn(f'rm -r {at}/.playfs/state ', done.stderr)
        return done.stderr

    def assert_goes_on(self, at, text, who='ann'):
        self.run_in('commit', '-m', 'Behind it', at=at, who=who)  # waits for what is before it
        self.assertEqual(self.read('program'), text.encode())


class Strangers(Handed):
    def setUp(self):
        super().setUp()
        eves = self.far_clone('eves', 'eve')
        self.queue(eves, 'eve', 'evil\n')
        self.got = self.unpacked(eves, 'got')

    def test_every_command_refuses_what_waits(self):
        for words in (['status'], ['log'], ['diff'], ['branches'], ['commit', '--dry-run', '-m', 'x'],
                      ['commit', '-m', 'Mine'], ['update'], ['merge', self.first], ['discard', 'program'],
                      ['commit', '--cancel']):
            with self.subTest(words=words):
                self.assertIn(SHOWN, self.assert_refused(self.got, 'ann', *words))
        done = self.run_in('status', '--json', at=self.got, check=False)
        error = json.loads(done.stdout)['error']
        self.assertEqual((done.returncode, error['code'], done.stderr), (FORBIDDEN, 'permission_denied', ''))
        self.assertIn(SHOWN, error['message'])
        self.assertIn('--adopt', error['hint'])
        self.assertEqual((self.published(), self.noted()), (['Plant'], []))

    def test_the_server_for_agents_refuses_it(self):
        client = Client(self, self.got)
        for words in ({'message': 'Mine'}, {'action': 'update'}, {'action': 'cancel'}, {'action': 'wait'}):
            self.assertIn(SHOWN, client.fail('publish', **words))
        self.assertIn(SHOWN, client.fail('list', what='changes'))
        self.assertEqual((self.published(), self.noted()), (['Plant'], []))

    def test_what_is_taken_over_goes_on(self):
        adopted, = self.json('clone', '--adopt', '.', at=self.got)['adopted']
        self.assertEqual((adopted['message'], adopted['agent']), (MESSAGE, 'carol'))
        self.assert_goes_on(self.got, 'evil\n')
        self.assertEqual(self.published(), ['Plant', MESSAGE])

    def test_taking_over_shows_what_it_is(self):
        done = self.playfs('clone', '--adopt', self.got)
        self.assertEqual(done.stdout, f'{self.got}\n')
        self.assertIn(SHOWN, done.stderr)
        self.assertIn('Nothing waits', self.playfs('clone', '--adopt', self.work).stderr)

    def test_what_is_dropped_is_an_edit(self):
        self.command('rm', '-r', self.got / '.playfs/state')
        self.assertEqual(self.staged(at=self.got), {'program': 'modified', 'program.head': 'added'}, 'kept, in conflict')
        self.assertEqual(self.published(), ['Plant'])

    def test_whoever_does_not_take_it_over_loses_nothing(self):
        for _ in range(3):
            self.assert_refused(self.got)
        self.assert_refused(self.unpacked(self.got, 'again'))
        back = self.unpacked(self.got, 'back')
        self.playfs('clone', '--adopt', back, who='eve')
        self.assert_goes_on(back, 'evil\n', who='eve')

    def test_without_its_journal_the_frozen_change_is_a_stranger_s_too(self):
        journal, = self.got.glob('.playfs/state/*/publication')
        for damage in (lambda: (journal / 'publish.db').write_bytes(b'garbage' * 1000), lambda: shutil.rmtree(journal)):
            damage()
            self.assert_refused(self.got)
        self.assertEqual(self.published(), ['Plant'])

    def test_a_journal_of_a_newer_version_is_left_as_it_is(self):
        path, = self.got.glob('.playfs/state/*/publication/publish.db')
        journal = sqlite3.connect(path)
        with journal:
            journal.execute('PRAGMA user_version = 99')
        for words in (['status'], ['clone', '--adopt', '.']):
            done = self.run_in(*words, at=self.got, check=False)
            self.assertEqual(done.returncode, FAILED)
            self.assertIn('newer version', done.stderr)
        rows = journal.execute('SELECT message FROM publications').fetchall()
        journal.close()
        self.assertEqual((rows, self.published()), ([(MESSAGE,)], ['Plant']))

    def test_a_link_to_a_state_is_not_followed(self):
        (self.got / '.playfs/state').rename(self.home / 'state')
        (self.got / '.playfs/state').symlink_to(self.home / 'state')
        self.assertEqual(self.run_in('status', at=self.got, check=False).returncode, FAILED)
        (self.got / '.playfs/state').unlink()
        (self.got / '.playfs/state').mkdir(mode=0o700)
        of_project, = (each for each in (self.home / 'state').iterdir() if each.is_dir() and each.name != '.git')
        (self.got / '.playfs/state' / of_project.name).symlink_to(of_project)
        self.assertEqual(self.run_in('status', at=self.got, check=False).returncode, FAILED)
        self.assertEqual(self.published(), ['Plant'])

    def test_others_cannot_change_the_state_meanwhile(self):
        (self.got / '.playfs').chmod(0o777)
        self.assert_refused(self.got)
        self.assertEqual((self.got / '.playfs').stat().st_mode & 0o777, 0o700)

    def test_only_a_clone_is_taken_over(self):
        self.assertEqual(self.playfs('clone', '--adopt', self.home, check=False).returncode, NOT_FOUND)
        adopt = ['--adopt', self.got]
        for words in ([], [self.project], [self.project, *adopt], [*adopt, '--revision', 'x']):
            self.assertEqual(self.playfs('clone', *words, check=False).returncode, USAGE, words)
        self.assert_refused(self.got)


class Own(Handed):
    """What is the user's own goes on without being asked about."""

    def setUp(self):
        super().setUp()
        self.mine = self.far_clone('mine', 'ann')

    def test_where_nothing_waits_every_command_works(self):
        got = self.unpacked(self.far_clone('eves', 'eve'), 'got')
        for words in (['status'], ['log'], ['diff'], ['branches'], ['commit', '--dry-run', '-m', 'x'], ['update'],
                      ['discard', 'program'], ['commit', '--cancel']):
            self.run_in(*words, at=got)
        self.assertEqual(self.noted(), [], 'reading notes nothing')
        client = Client(self, got)
        client.call('write', path='program', content='better\n')
        client.call('publish', message='By an agent')
        self.assertEqual(self.noted(), [], 'it has ended')
        self.queue(got, 'ann', 'best\n')
        self.assertEqual(len(self.noted()), 1)
        self.far.away = True
        for words in (['status'], ['diff']):
            self.run_in(*words, at=got)
        self.far.away = False
        self.assert_goes_on(got, 'best\n')

    def test_a_renamed_clone_is_the_same(self):
        self.queue(self.mine, 'ann', 'better\n')
        moved = self.home / 'moved'
        self.mine.rename(moved)
        self.assert_goes_on(moved, 'better\n')

    def test_a_copy_is_not_whatever_ids_are_in_it(self):
        self.queue(self.mine, 'ann', 'better\n')
        copy = self.unpacked(self.mine, 'copy')
        self.assert_refused(copy)
        self.assert_refused(self.mine, 'bob')
        self.assert_goes_on(self.mine, 'better\n')

    def test_nor_is_what_is_unpacked_over_it(self):
        eves = self.far_clone('eves', 'eve')
        self.queue(self.mine, 'ann', 'mine\n', message='Mine')
        self.queue(eves, 'eve', 'evil\n')
        shutil.rmtree(self.mine / '.playfs/state')
        self.unpacked(eves, self.mine.name)
        self.assertIn(SHOWN, self.assert_refused(self.mine))
        self.assertEqual(self.published(), ['Plant'])

    def test_behind_a_stranger_s_own_commits_are_not_named(self):
        self.queue(self.mine, 'ann', 'one\n', message='One')
        copy = self.unpacked(self.mine, 'copy')
        self.far.fate = lambda request: None if request.startswith('GET') else (503, '{"error": "later"}')
        self.playfs('clone', '--adopt', copy, who='bob')
        self.queue(copy, 'bob', 'two\n', message='Two')
        shutil.rmtree(self.mine / '.playfs/state')
        self.unpacked(copy, self.mine.name)
        said = self.assert_refused(self.mine)
        self.assertIn("'Two'", said)
        self.assertNotIn("'One'", said)

    def test_a_home_that_takes_no_notes_keeps_nobody_from_publishing(self):
        folder = self.home / 'ann/state/playfs/queued'
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text('')
        (self.mine / 'program').write_text('better\n')
        self.commit('Better', at=self.mine)
        self.queue(self.mine, 'ann', 'best\n')
        self.assertIn(SHOWN, self.assert_refused(self.mine))
        folder.unlink()
        self.playfs('clone', '--adopt', self.mine)
        self.assert_goes_on(self.mine, 'best\n')

    def test_a_killed_commit_goes_on(self):
        seed = int(os.environ.get('PLAYFS_SEED', random.randrange(1 << 30)))
        rng = random.Random(seed)
        print('seed', seed)
        for number in range(12):
            (self.mine / 'program').write_text(f'{number}\n')
            process = subprocess.Popen([self.playfs_path, 'commit', '-m', str(number)], cwd=self.mine,
                                       env=self.environment('ann'), stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(rng.random() * 0.2)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
            self.assertEqual(self.run_in('status', at=self.mine, check=False).returncode, DONE, seed)
        self.assert_goes_on(self.mine, f'{number}\n')


if __name__ == '__main__':
    fixture.main()
