#!/usr/bin/env python3
"""What takes long shows on a terminal how far it has come, in one line that is gone at the end; elsewhere nothing."""
import os
import pty
import random
import re
import subprocess
import time

import fixture
import proxy

FILES, SIZE, LARGE = 160, 9000, 2_000_000


class ShownProgress(fixture.Fixture):
    def setUp(self):
        super().setUp()
        dice = random.Random(1)
        self.tree = self.home / 'tree'
        self.tree.mkdir()
        for number in range(FILES):
            size = LARGE if number == 1 else SIZE
            (self.tree / f'file{number}').write_text(''.join(f'{dice.getrandbits(64):016x}\n' for _ in range(size // 17)))
        self.api = self.serve()
        self.playfs('import', self.tree, '--name', 'demo', '--site', self.api.origin, who='ada')
        self.slow = proxy.SlowProxy(int(self.api.origin.rpartition(':')[2]))
        self.addCleanup(self.slow.close)
        # Every answer comes in time, but there are many, and a client asks for some of them at once.
        self.slow.delay = 1.2

    def shown(self, *words, **options):
        """What a terminal gets: the lines of progress, and what is left on it at the end."""
        code, text = self.on_terminal(self.playfs_path, *words, '--site', self.slow.url, cwd=self.home,
                                      variables={'PAGER': 'cat'}, **options)
        left = []
        for line in text.split('\n'):
            left.append(re.sub(r'.*\r(?=[^\r]*$)', '', line, flags=re.S).replace('\x1b[K', ''))
        return code, re.findall(r'\r([^\r\x1b]+)\x1b\[K', text), '\n'.join(left)

    def assert_progress(self, lines, pattern):
        self.assertTrue(any(re.search(pattern, line) for line in lines), lines)
        for line in lines:
            self.assertLess(len(line), 80)

    def test_export_counts_files_and_bytes_of_all(self):
        code, lines, left = self.shown('export', 'demo', 'copy')
        self.assertEqual(code, 0, left)
        self.assert_progress(lines, rf'^Exporting: \d+ of {FILES} files, .* of 3\d+ KB')
        self.assertNotIn('Exporting:', left)
        self.assertIn('Exported revision', left)
        self.assert_same_tree(self.tree, self.home / 'copy')

    def test_clone_counts_files_and_bytes_of_all(self):
        code, lines, left = self.shown('clone', 'demo', 'copy')
        self.assertEqual(code, 0, left)
        self.assert_progress(lines, rf'^Writing files: \d+ of {FILES} files, .* of 3\d+ KB')
        self.assertNotIn('Writing files:', left)
        self.assertIn('Cloned demo', left)

    def test_cat_counts_and_prints_what_it_read_alone(self):
        code, lines, left = self.shown('cat', 'demo', 'file1')
        self.assertEqual(code, 0, left)
        self.assert_progress(lines, r'^Reading: .* of 19\d\d KB, .*/s, .* left')
        self.assertEqual(left.strip(), (self.tree / 'file1').read_text().strip())

    def test_a_patch_is_whole_whatever_is_drawn_beside_it(self):
        """Through a pipe whose reader pauses, as a pager does."""
        self.slow.delay = 0
        self.playfs('clone', 'demo', self.home / 'copy', '--site', self.slow.url)
        for number in range(FILES):
            file = self.home / f'copy/file{number}'
            file.write_text(file.read_text().replace('7', 'sept'))
        wanted = self.playfs('diff', cwd=self.home / 'copy').stdout
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        with subprocess.Popen([self.playfs_path, 'diff'], cwd=self.home / 'copy', env=self.environment('ann'),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs) as process:
            os.close(theirs)
            time.sleep(3.5)  # progress is drawn after two seconds
            self.assertEqual(process.stdout.read().decode(), wanted)
            self.assertEqual(process.wait(), 0)

    def test_import_counts_chunks(self):
        small = self.home / 'small'
        small.mkdir()
        for number in range(6):
            (small / f'file{number}').write_text(f'{number}\n' * 3000)
        self.slow.delay = 0.4
        code, lines, left = self.shown('import', 'small', '--name', 'other')
        self.assertEqual(code, 0, left)
        self.assert_progress(lines, r'^(Uploading|Planning|Publishing)')
        self.assertNotIn('Uploading', left)

    def test_a_program_and_a_log_get_none(self):
        site = ('--site', self.slow.url)
        done = self.playfs('export', 'demo', self.home / 'copy', *site)
        self.assertNotIn('Exporting', done.stderr)
        self.assertNotIn('\r', done.stderr)
        code, lines, _ = self.shown('export', 'demo', 'again', '--json')
        self.assertEqual((code, lines), (0, []))

    def test_what_is_quick_shows_none(self):
        self.slow.delay = 0
        code, lines, _ = self.shown('export', 'demo', 'copy')
        self.assertEqual((code, lines), (0, []))


if __name__ == '__main__':
    fixture.main()
