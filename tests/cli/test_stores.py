#!/usr/bin/env python3
"""A local playground is never made of a directory that is for something else."""
import json

import fixture

DONE, NOT_FOUND, FORBIDDEN = 0, 5, 6


class Stores(fixture.Fixture):
    """A directory of the user's that is for something else."""

    def setUp(self):
        super().setUp()
        self.www = self.home / 'www'
        self.www.mkdir()
        (self.www / 'index.html').write_text('page\n')
        self.www.chmod(0o775)

    def assert_untouched(self):
        self.assertEqual((self.www.stat().st_mode & 0o777, [each.name for each in self.www.iterdir()]),
                         (0o775, ['index.html']))

    def test_no_mark_makes_a_store(self):
        inside = self.home / 'checkout/src'
        (inside.parent / '.playfs').mkdir(parents=True)
        inside.mkdir()
        absent = self.home / 'absent'
        for name in ('tree.json', 'clone.json'):
            for store in (self.www, absent):
                mark = {'schema_version': 1, 'site': f'local:{store}', 'base_path': '/.site/data', 'project': 'p',
                        'revision': 'r'}
                (inside.parent / '.playfs' / name).write_text(json.dumps(mark))
                for words in (['ls'], ['search', 'x'], ['inbox'], ['log', '--project', 'p'], ['post', 'x', '-m', 'x']):
                    done = self.playfs(*words, cwd=inside, check=False)
                    self.assertEqual(done.returncode, NOT_FOUND, (words, done.stderr))
                self.playfs('whoami', cwd=inside)
                self.assert_untouched()
                self.assertFalse(absent.exists())
            (inside.parent / '.playfs' / name).unlink()

    def test_nor_does_its_name(self):
        done = self.playfs('ls', '--site', f'local:{self.www}', check=False)
        self.assertEqual(done.returncode, FORBIDDEN, done.stderr)
        self.assertIn('is for something else', done.stderr)
        self.assert_untouched()
        empty = self.home / 'empty'
        empty.mkdir()
        empty.chmod(0o775)
        self.assertEqual(self.playfs('ls', '--site', f'local:{empty}').returncode, DONE)
        self.assertEqual(empty.stat().st_mode & 0o777, 0o700)
        empty.chmod(0o775)
        self.playfs('ls', '--site', f'local:{empty}')
        self.assertEqual(empty.stat().st_mode & 0o777, 0o700, 'it holds a playground')


if __name__ == '__main__':
    fixture.main()
