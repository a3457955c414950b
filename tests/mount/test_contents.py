#!/usr/bin/env python3
"""Contents of every size and kind, and difficult names: byte-identical after a commit, read through an empty cache."""
import os
import random

import fixture

KIB = 1024


def contents():
    chance = random.Random(20240229)
    files = {'empty': b'', 'one': b'x', 'nul': b'a\0b', 'lone-cr': b'a\r\nb\rc\n', 'not-utf8': b'\xff\xfe\x80 tail'}
    for size in (8 * KIB, 12 * KIB):
        for off in (-1, 0, 1):
            line = f'{size + off} bytes of text, in lines that differ: '
            text = ''.join(f'{line}{number}\n' for number in range(size // len(line) + 1))
            files[f'text-{size + off}'] = text.encode()[:size + off]
    # Wherever the cut is, some character of two, three or four bytes spans it.
    files['multi-byte'] = ('é語🎲' * (300 * KIB // 9 + 1)).encode()[:300 * KIB // 9 * 9]
    files['quotes-and-controls'] = bytes(chance.choice(b'"\\\x01\x1f\x7f\b\t\n\r/') for _ in range(40 * KIB))
    files['random'] = chance.randbytes(100 * KIB)
    files['deep/er/and/deeper still/ünïcode 語 "quoted" \\ back.txt'] = b'found\n'
    files['a' * 255] = b'the longest name\n'
    files['script.sh'] = b'#!/bin/sh\necho run from the mount\n'
    return files


@fixture.needs_fuse
class Contents(fixture.Fixture):
    def test_every_kind_comes_back_as_it_was(self):
        api = self.serve()
        api.create('projects', name='kinds')
        ann = self.mount(api.origin, 'ann').project('kinds')
        plain = self.home / 'plain'
        for tree in (plain, ann / 'work'):
            for name, content in contents().items():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_bytes(content)
            (tree / 'script.sh').chmod(0o755)
            (tree / 'link').symlink_to('deep/er/and')
            (tree / 'dangling').symlink_to('/nowhere/語')
        self.assert_same_tree(plain, ann / 'work')

        (ann / 'commit').write_text('Every kind of file')
        self.assertIn('"published"', (ann / 'commit').read_text())  # waits for it
        revision = os.path.basename(os.readlink(ann / 'head'))
        self.assertEqual(api.get('revisions', revision)['message'], 'Every kind of file')
        self.assert_same_tree(plain, ann / 'head')
        self.assert_same_tree(plain, ann / 'work')

        bob = self.mount(api.origin, 'bob').project('kinds')  # bob has no cache yet
        self.assert_same_tree(plain, bob / 'work')
        self.assert_same_tree(plain, bob / 'head')
        self.assertEqual(self.command(bob / 'head/script.sh').stdout, 'run from the mount\n')
        for name, content in contents().items():
            self.assertEqual(os.stat(bob / 'head' / name).st_size, len(content), name)
        self.assert_records_fit(api)

    def test_an_edit_in_the_middle_costs_a_chunk_or_two(self):
        api = self.serve()
        api.create('projects', name='long')
        ann = self.mount(api.origin, 'ann').project('long')
        text = contents()['multi-byte'][:200 * 1000 // 9 * 9]
        (ann / 'work/long.txt').write_bytes(text)
        self.assertEqual(self.commit(ann / 'work', 'Long')[0], 'published')
        before = len(api.all('file_chunks'))
        edited = text[:90000] + b'and a few words more' + text[90000:]
        (ann / 'work/long.txt').write_bytes(edited)
        outcome, _, files, writes = self.commit(ann / 'work', 'A few words more')
        self.assertEqual((outcome, files), ('published', 1))
        added = len(api.all('file_chunks')) - before
        self.assertLessEqual(added, 2)
        self.assertEqual(writes, added + 2, 'the chunks, one POST, one PATCH')
        self.assertEqual((ann / 'head/long.txt').read_bytes(), edited)


if __name__ == '__main__':
    fixture.main()
