#!/usr/bin/env python3
"""Libraries that the package only suggests: without them everything else works, and what needs one says what to install."""
import errno
import json
import subprocess

import fixture

# Package by library.
SUGGESTED = {'libcurl.so.4': 'libcurl4 ca-certificates', 'libgmime-3.0.so.0': 'libgmime-3.0-0', 'libpq.so.5': 'libpq5'}


class MissingLibraries(fixture.Fixture):
    """The dynamic loader finds files that are no libraries first."""

    def setUp(self):
        super().setUp()
        self.broken = self.home / 'lib'
        self.broken.mkdir()
        for name in SUGGESTED:
            (self.broken / name).write_text('not a library', encoding='utf-8')

    def environment(self, who):
        return {**super().environment(who), 'LD_LIBRARY_PATH': str(self.broken)}

    def fails(self, library, *words, input=None):
        done = subprocess.run([self.playfs_path, *map(str, words)], env=self.environment('ann'), text=True, input=input or '',
                              capture_output=True, timeout=fixture.COMMAND_LIMIT)
        self.assertNotIn(done.returncode, (0, 127), done.stdout + done.stderr)
        self.assertIn(library, done.stderr)
        self.assertIn(f'\nTry: sudo apt install {SUGGESTED[library]}\n', done.stderr)

    def test_a_site(self):
        (self.home / 'there').mkdir()
        self.fails('libcurl.so.4', '--site', 'https://playground.example.org', 'ls')
        self.fails('libcurl.so.4', 'mount', 'https://playground.example.org', self.home / 'there')
        self.fails('libcurl.so.4', 'clone', 'demo', self.home / 'clone', '--site', 'https://playground.example.org')

    def test_a_database(self):
        self.fails('libpq.so.5', 'serve', '--listen', '127.0.0.1:0', '--store', 'postgresql://localhost/none')

    def test_sendmail(self):
        self.fails('libgmime-3.0.so.0', 'sendmail', '-t', input='To: discussion@local\nSubject: Hi\n\nHello\n')

    @fixture.needs_fuse
    def test_a_mount_without_the_library_for_mail(self):
        top = self.home / 'play'
        top.mkdir()
        self.playfs('mount', top)
        self.addCleanup(self.playfs, 'umount', '--wait', top, check=False)
        (top / 'projects/new').write_text('{"name": "demo"}', encoding='utf-8')
        work = top / 'projects/by-name/demo/work'
        (work / 'a.txt').write_text('hello\n', encoding='utf-8')
        self.playfs('commit', '-m', 'One', cwd=work)
        self.assertEqual((work / '../head/a.txt').read_text(encoding='utf-8'), 'hello\n')
        (top / 'threads/new').write_text('{"title": "Hi", "kind": "discussion", "body": "Hello"}', encoding='utf-8')
        thread = top / 'threads/by-title/Hi'
        self.assertIn('Hello', (thread / 'messages.md').read_text(encoding='utf-8'))

        for path in (thread / 'thread.mbox', top / 'maildir/discussion/new'):
            with self.assertRaises(OSError) as refused:
                path.read_text(encoding='utf-8') if path.suffix else list(path.iterdir())
            self.assertEqual(refused.exception.errno, errno.EOPNOTSUPP, path)
        reported = [json.loads(line) for line in (top / '.playfs/errors.ndjson').read_text(encoding='utf-8').splitlines()]
        self.assertEqual({line['hint'] for line in reported if 'libgmime' in line['message']}, {'sudo apt install libgmime-3.0-0'})

        # Installed while it is mounted.
        (self.broken / 'libgmime-3.0.so.0').unlink()
        self.assertIn('Hello', (thread / 'thread.mbox').read_text(encoding='utf-8'))
        (letter,) = (top / 'maildir/discussion/new').iterdir()
        self.assertIn('Hello', letter.read_text(encoding='utf-8'))


if __name__ == '__main__':
    fixture.main()
