#!/usr/bin/env python3
"""What a shared mapping dirtied is published or stays staged, without msync, even with its descriptor closed."""
import json
import mmap
import os

import fixture

SIZE = 3 * 4096


@fixture.needs_fuse
class Mappings(fixture.SharedProject):
    def setUp(self):
        super().setUp()
        self.mounted = self.mount(self.api.origin)
        self.tree = self.work(self.mounted)
        for name in ('published', 'moved'):
            (self.tree / name).write_bytes(b'x' * SIZE)
        self.commit(self.tree, 'first')
        (self.tree / 'staged').write_bytes(b'x' * SIZE)

    def stored(self, name, text):
        """A mapping of the file with `text` in its first and last page, unsynced, its descriptor already closed."""
        with open(self.tree / name, 'r+b') as file:
            mapping = mmap.mmap(file.fileno(), SIZE)
        self.addCleanup(mapping.close)
        mapping[:len(text)] = mapping[-len(text):] = text
        return mapping

    def assert_is(self, name, text, tree=None):
        content = ((tree or self.tree) / name).read_bytes()
        self.assertEqual(content, text + b'x' * (SIZE - 2 * len(text)) + text)

    def is_staged(self, name):
        status = json.loads((self.tree.parent / 'status.json').read_text())
        return name in [each['path'] for each in status['staged']]

    def in_head(self, name, text):
        content = (self.tree.parent / 'head' / name).read_bytes()
        return content.startswith(text) and content.endswith(text)

    def commit_by_every_way(self, number):
        """By the command, the ioctl alone, or the control file."""
        if number == 0:
            self.playfs('commit', '-m', 'by command', self.tree)
        elif number == 1:
            self.commit(self.tree, 'by ioctl')
        else:
            (self.tree.parent / 'commit').write_text('by file\n')
            (self.tree.parent / 'commit').read_text()

    def test_a_commit_publishes_it_or_leaves_it_staged(self):
        for way in range(3):
            for name in ('published', 'staged'):
                with self.subTest(way=way, name=name):
                    text = f'{name} {way}'.encode()
                    mapping = self.stored(name, text)
                    (self.tree / 'something').write_text(str(text))  # so that there is something to commit
                    self.commit_by_every_way(way)
                    self.assert_is(name, text)
                    published = self.in_head(name, text)
                    mapping.close()
                    self.assert_is(name, text)
                    self.assertTrue(published or self.is_staged(name))
                    self.playfs('commit', '-m', 'the rest', self.tree)
                    self.assertTrue(self.in_head(name, text))

    def test_what_is_stored_after_a_commit_is_the_next_change(self):
        mapping = self.stored('staged', b'before')
        self.playfs('commit', '-m', 'second', self.tree)
        self.assertTrue(self.in_head('staged', b'before'))
        mapping[:6] = mapping[-6:] = b'after!'
        mapping.close()
        self.assert_is('staged', b'after!')
        self.assertTrue(self.is_staged('staged'))
        self.assertTrue(self.in_head('staged', b'before'))

    def test_a_name_that_changes_takes_it_along(self):
        mapping = self.stored('moved', b'moving')
        os.rename(self.tree / 'moved', self.tree / 'other')
        self.playfs('commit', '-m', 'second', self.tree)
        mapping.close()
        self.assert_is('other', b'moving')
        self.assertTrue(self.in_head('other', b'moving') or self.is_staged('other'))

    def test_what_was_unmapped_survives_the_end_of_the_mount(self):
        for number, end in enumerate((fixture.Mount.unmount, fixture.Mount.kill)):
            for name in ('published', 'staged'):
                self.stored(name, f'{name} {number}'.encode()).close()
            end(self.mounted)
            self.mounted.end()
            self.mounted = self.mount(self.api.origin)
            self.tree = self.work(self.mounted)
            for name in ('published', 'staged'):
                self.assert_is(name, f'{name} {number}'.encode())
                self.assertTrue(self.is_staged(name))


if __name__ == '__main__':
    fixture.main()
