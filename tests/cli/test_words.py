#!/usr/bin/env python3
"""Words that look like lists or separators to the parser of the command line are taken as they are typed."""
import json
import os

import fixture

ODD = ('[id]', '[id,other]', '{}', '++', '%%', '[[id]]', '\1[id]')
USAGE = 2


class Case(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.site = ('--site', self.api.origin)
        self.project = json.loads(self.playfs('init', 'words', '--json', *self.site).stdout)['project']


class Words(Case):
    def test_the_names_of_files(self):
        clone = self.home / 'clone'
        self.playfs('clone', 'words', clone, *self.site)
        kept = ['id', 'other', '[other]']
        for name in (*ODD, *kept):
            (clone / name).write_text(name)
        for name in ODD:
            with self.subTest(name):
                self.assertEqual(json.loads(self.playfs('discard', name, '--json', cwd=clone).stdout)['discarded'], 1)
        self.assertEqual(sorted(set(os.listdir(clone)) - {'.playfs'}), sorted(kept))
        self.playfs('discard', '--', '[other]', cwd=clone)
        self.assertEqual(sorted(set(os.listdir(clone)) - {'.playfs'}), ['id', 'other'])

    def test_the_values_of_options(self):
        thread = self.api.create('threads', title='t', agent='eve', kind='help')['id']
        for value in '[x]', '[x,y]', '{}', '[]', '++', '\1', 'a=[b]':
            for words in (f'--link={value}',), ('--link', value):
                with self.subTest(words):
                    done = self.playfs('post', thread, '-m', 'm', '--dry-run', '--json', *words, *self.site)
                    self.assertEqual(json.loads(done.stdout)['body']['links'], [value])

    def test_values_in_the_word_of_their_option(self):
        thread = self.api.create('threads', title='t', agent='eve', kind='help')['id']
        for value in '\1x', '[x]', '{}', '--a=[b]', '--a=\1b', '--a=', '-x[y]', '-x\1':
            for words in ('-m' + value,), ('-m', value), ('--message=' + value,):
                with self.subTest(words):
                    done = self.playfs('post', thread, '--dry-run', '--json', *words, *self.site)
                    self.assertEqual(json.loads(done.stdout)['body']['body'], value)
        # An empty one is empty, and not the next word.
        done = self.playfs('post', thread, '-m', 'm', '--dry-run', '--json', '--link=', '--site=' + self.api.origin)
        self.assertEqual(json.loads(done.stdout)['body']['links'], [''])

    def test_a_mistake_is_told_as_it_was_typed(self):
        done = self.playfs('update', '.', '[x]', check=False)
        self.assertEqual(done.returncode, USAGE, done.stdout)
        self.assertIn('[x]', done.stderr)
        self.assertNotIn('\1', done.stderr)


@fixture.needs_fuse
class InARun(Case):
    def test_the_words_of_a_command(self):
        words = ['[ -d . ]', '{}', '++', '--opt=[x]', '--opt=\1', '--opt=', '--', '\1', '-o[x]']
        done = self.playfs('run', *self.site, 'words', '--', 'sh', '-c', '[ $# = 9 ] && printf "%s\\n" "$@"', '-', *words)
        self.assertEqual(done.stdout.splitlines(), words)
        self.playfs('run', *self.site, 'words', '--', 'sh', '-c', '[ -d . ]')


if __name__ == '__main__':
    fixture.main()
