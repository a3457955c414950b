#!/usr/bin/env python3
"""Programs over maildir/ and the files of threads: mutt, notmuch, git and less."""
import json
import shutil

import fixture
import test_maildir

# What programs themselves send to a terminal: bells, backspaces, shifts and sequences of their own.
TERMINALS_OWN = set('\a\b\x0e\x0f\x1b\f')


@fixture.needs_fuse
class Programs(test_maildir.Maildir):
    def setUp(self):
        super().setUp()
        for title in test_maildir.TITLES:
            thread = self.thread(title)
            for body in test_maildir.HOSTILE:
                self.message(thread, body, agent=test_maildir.HANDLES[1])
        self.count = len(test_maildir.TITLES) * len(test_maildir.HOSTILE)

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(f'{program} is not installed')

    def mutt(self, path, commands):
        """Runs mutt's commands on a folder; what it showed."""
        code, shown = self.on_terminal('mutt', '-n', '-F', '/dev/null', '-e', f'set folder={self.home} quit=yes mark_old=no sort=date',
                                       '-e', f'push "{commands}"', '-f', str(path))
        self.assertEqual(code, 0, shown)
        return shown

    def test_mutt_reads_flags_and_removes(self):
        self.needs('mutt')
        shown = self.mutt(self.top / 'maildir/discussion', 'F<quit>')
        self.assertNotIn('\x1b]0', shown)
        self.assertFalse(test_maildir.OBEYED.difference(TERMINALS_OWN).intersection(shown))
        self.assertEqual(len(self.names('new')) + len(self.names('cur')), self.count)
        flagged = [name for place in ('new', 'cur') for name in self.names(place) if 'F' in name.rpartition(':2,')[2]]
        self.assertEqual(len(flagged), 1)
        self.mutt(self.top / 'maildir/discussion', '<delete-message><quit>y')
        self.assertEqual(len(self.names('new')) + len(self.names('cur')), self.count - 1)
        (thread, *_) = self.api.all('threads')
        self.mutt(self.top / 'threads' / thread['id'] / 'thread.mbox', '<quit>')

    def notmuch(self):
        """A function that runs notmuch over maildir/, with a database elsewhere; what it printed."""
        self.needs('notmuch')
        config = self.home / 'notmuch-config'
        config.write_text(f'[database]\npath={self.home}/notmuch\nmail_root={self.top}/maildir\n'
                          '[user]\nname=ann\nprimary_email=ann@example.org\n[maildir]\nsynchronize_flags=true\n'
                          '[new]\ntags=unread;inbox\n')
        (self.home / 'notmuch').mkdir()
        return lambda *words: self.command('notmuch', f'--config={config}', *words).stdout

    def test_notmuch_finds_every_letter(self):
        notmuch = self.notmuch()
        notmuch('new')
        self.assertEqual(int(notmuch('count', '*')), self.count)
        notmuch('tag', '-unread', '+flagged', '--', '*')
        self.assertEqual({name.rpartition(':')[2] for name in self.names('cur')}, {'2,FS'})
        self.assertEqual(self.names('new'), [])
        self.message(self.thread(), 'a late one')
        self.eventually(lambda: len(self.names('new')) == 1, 'it has come')
        notmuch('new')
        self.assertEqual(int(notmuch('count', 'tag:unread')), 1)

    def test_notmuch_threads_by_parents_and_shows_nothing_raw(self):
        notmuch = self.notmuch()
        expected = {}
        for title in 'same', 'same':
            thread = self.thread(title)
            first = self.message(thread, 'x' * 14_000 if len(expected) else 'first')
            second = self.message(thread, 'second', parent=first)
            third = self.message(thread, 'third', parent=second)
            stray = self.message(thread, 'stray', parent='nonesuch', agent=test_maildir.HANDLES[-1])
            expected.update({first: None, second: first, third: second, stray: None})
        # What it names is of the other thread.
        crossing = self.message(thread, 'crossing', parent=next(iter(expected)))
        expected[crossing] = None
        self.eventually(lambda: len(self.names('new')) == self.count + len(expected), 'they have come')
        notmuch('new')
        found, together = {}, {}

        def walk(letters, parent, number):
            for letter, answers in letters:
                record = letter['id'].split('@')[0] if letter else None
                found[record], together[record] = parent, number
                walk(answers, record, number)

        for number, thread in enumerate(json.loads(notmuch('show', '--format=json', '--body=false', '*'))):
            walk(thread, None, number)
        self.assertEqual({record: found[record] for record in expected}, expected)
        # Roots are threads of their own, also those that name the same stranger.
        roots = [together[record] for record, parent in expected.items() if parent is None]
        self.assertEqual(len(set(roots)), len(roots))
        for words in (('search',), ('show', '--format=text'), ('address',)):
            self.assertFalse((test_maildir.OBEYED - {'\f'}).intersection(notmuch(*words, '*')), words)

    def test_git_applies_a_patch_of_a_message(self):
        self.needs('git')
        repository = self.home / 'repository'

        def git(*words, **options):
            return self.command('git', '-C', repository, '-c', 'user.name=ann', '-c', 'user.email=ann@example.org', *words,
                                text=False, **options).stdout

        self.command('git', 'init', '-q', repository)
        (repository / 'file').write_text('one\n')
        git('add', '.')
        git('commit', '-qm', 'First')
        (repository / 'file').write_text('one\nFrom here\n\tżółw\f ' + 'w' * 2000 + ' \n')
        (repository / 'windows').write_bytes(b'a\r\nb\r\n')
        git('add', '.')
        git('commit', '-qm', 'Second: więcej\n\nFrom the start.', '--author=Eve <eve@example.org>')
        wanted = git('rev-parse', 'HEAD^{tree}')
        # Without the first line of format-patch's output, "From HASH …": with it, git takes no header of the text.
        patch = git('format-patch', '--stdout', '-1').decode().partition('\n')[2]
        difference = 'Why.\n\n---\n' + git('diff', 'HEAD~1').decode()
        for body, author, subject in (patch, 'Eve', 'Second: więcej'), (difference, 'bob', 'A patch'):
            git('reset', '-q', '--hard', 'HEAD~1')
            self.assertNotEqual(git('rev-parse', 'HEAD^{tree}'), wanted)
            thread = self.thread('A patch', 'collab')
            record = self.message(thread, body)
            self.eventually(lambda record=record: any(f'.{record}_' in name for name in self.names('new', 'collab')), 'it has come')
            (name,) = (name for name in self.names('new', 'collab') if f'.{record}_' in name)
            git('am', '-q', '--keep-cr', self.box('new', 'collab') / name)
            self.assertEqual(git('rev-parse', 'HEAD^{tree}'), wanted)
            self.assertEqual(git('log', '-1', '--format=%an:%s').decode(), f'{author}:{subject}\n')

    def test_less_follows_a_thread(self):
        self.needs('less')
        thread = self.thread()
        self.message(thread, 'the first')

        def comes():
            self.message(thread, '\x1b]0;x\x07 \u202e \u009b31m', agent=test_maildir.HANDLES[3])
            self.message(thread, 'the second')
            return b''

        for file in 'messages.md', 'messages.ndjson', 'thread.mbox':
            code, shown = self.on_terminal('less', '+F', self.top / 'threads' / thread / file, variables={'LC_ALL': 'C.UTF-8'},
                                           then=[('Waiting for data', comes), ('the second', b'\x03'), ('.', b'q')])
            self.assertEqual(code, 0, shown)
            self.assertNotIn('\x1b]0', shown)
            self.assertFalse(test_maildir.OBEYED.difference(TERMINALS_OWN).intersection(shown), file)
            thread = self.thread()
            self.message(thread, 'the first')


if __name__ == '__main__':
    fixture.main()
