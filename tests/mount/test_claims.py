#!/usr/bin/env python3
"""Sizes claimed by a publisher: the mount shows the true bytes with their true size, or an error, never fewer bytes."""
import errno
import hashlib
import json
import os

import fixture

TX = '5' * 32
PIECE = 6_000  # characters of two bytes


def entry(api, path, text, size):
    """A file of several chunks whose `s` is `size`."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    chunks = [api.create('file_chunks', rev='', path=path, seq=at // PIECE, hash=digest, content=text[at:at + PIECE])['id']
              for at in range(0, len(text), PIECE)]
    return {'h': digest, 's': size, 'c': chunks}


@fixture.needs_fuse
class Claims(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.text = 'größe ' * 2_100
        self.bytes = self.text.encode()

    def publish(self, files, project=None, parents=(), tx=TX, message='x', state=None):
        """A revision that carries a playfs client's `tx`, whoever wrote it."""
        project = project or self.api.create('projects', name='claims')['id']
        revision = self.api.create('revisions', project=project, parents=list(parents), agent='x', message=message,
                                   manifest={'tx': tx, 'files': files}, state=state or {})['id']
        self.api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        return project, revision

    def counted(self, name='a.txt'):
        return entry(self.api, name, self.text, len(self.text))

    def place(self, project, tree, options=('refresh=1', 'noprefetch')):
        mount = self.mount(self.api.origin, options=options)
        return mount, mount.directory / 'projects' / project / tree

    def read_as_told(self, path):
        """As tar does: as many bytes as stat reports. None if that is refused, with an errno."""
        with open(path, 'rb', buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            try:
                return file.read(size)
            except OSError as refusal:
                self.assertIn(refusal.errno, (errno.EIO, errno.ESTALE))
                return None

    def assert_whole(self, content, wanted=None):
        """Compares the length first: a failure would print pages of non-ASCII bytes."""
        wanted = self.bytes if wanted is None else wanted
        self.assertEqual((len(content), content == wanted), (len(wanted), True))

    def test_a_size_counted_in_characters_cuts_nothing(self):
        project, _ = self.publish({'a.txt': self.counted(), 'b.txt': self.counted('b.txt')})
        for tree in ('head', 'work'):
            mount, place = self.place(project, tree)
            self.assert_whole(self.read_as_told(place / 'a.txt') or self.bytes)
            self.eventually(lambda: os.stat(place / 'a.txt').st_size == len(self.bytes), 'the kernel knows better')
            self.assert_whole((place / 'a.txt').read_bytes())
            self.assert_whole(self.read_as_told(place / 'a.txt'))
            mount.unmount()
        _, place = self.place(project, 'head')
        self.assertEqual(os.stat(place / 'a.txt').st_size, len(self.bytes), 'also known to the next mount')
        self.assert_whole(self.read_as_told(place / 'a.txt'))

    def test_the_reason_is_told(self):
        project, _ = self.publish({'a.txt': self.counted()})
        mount, place = self.place(project, 'head')
        if self.read_as_told(place / 'a.txt') is None:
            self.assertIn('a.txt', (mount.directory / '.playfs/errors.ndjson').read_text())

    def test_appending_does_not_write_into_the_middle(self):
        project, _ = self.publish({'a.txt': self.counted()})
        _, place = self.place(project, 'work')
        line = b'one line more\n'

        def appended():
            try:
                with open(place / 'a.txt', 'ab', buffering=0) as file:
                    return file.write(line)
            except OSError as refusal:
                self.assertIn(refusal.errno, (errno.EIO, errno.ESTALE))
                return False

        self.eventually(appended, 'the true size is known')
        self.assert_whole((place / 'a.txt').read_bytes(), self.bytes + line)

    def test_a_wrong_size_is_refused_not_cut_and_not_filled(self):
        for wrong in (1, len(self.bytes) - 1, len(self.bytes) + 1, 2 * len(self.bytes)):
            project, _ = self.publish({'a.txt': entry(self.api, 'a.txt', self.text, wrong)})
            mount, place = self.place(project, 'head')
            for _ in range(2):
                with self.assertRaises(OSError, msg=str(wrong)) as refusal:
                    (place / 'a.txt').read_bytes()
                self.assertIn(refusal.exception.errno, (errno.EIO, errno.ESTALE))
            self.assertIn('a.txt', (mount.directory / '.playfs/errors.ndjson').read_text())
            mount.unmount()

    def test_what_another_client_edits_under_our_name_is_merged(self):
        """A client that does not know `tx` copies it; its changes still count as its own."""
        base = {'a.txt': {'h': '', 's': 4, 'inline': 'one\n'}}
        project, first = self.publish(base)
        edited = {**base, 'theirs.txt': {'h': '', 's': 7, 'inline': 'theirs\n'}}
        self.publish(edited, project, [first])
        # And a client that had not seen that sets head to a sibling.
        ours = {**base, 'ours.txt': {'h': '', 's': 5, 'inline': 'ours\n'}}
        self.publish(ours, project, [first], tx='6' * 32)
        mount, place = self.place(project, 'work')
        self.assertEqual(sorted(os.listdir(place)), ['a.txt', 'ours.txt'])
        (place / 'mine.txt').write_text('mine\n')
        self.commit(place, 'Mine')
        names = ['a.txt', 'mine.txt', 'ours.txt', 'theirs.txt']
        head = self.api.get('revisions', self.api.get('projects', project)['latest_revision'])
        self.assertEqual(sorted(head['manifest']['files']), names, json.dumps(head)[:2000])

    def test_an_edited_merge_is_no_merge(self):
        """Likewise for `auto`, which says that a merge added nothing of its own."""
        base = {'a.txt': {'h': '', 's': 4, 'inline': 'one\n'}}
        project, first = self.publish(base)
        edited = {**base, 'theirs.txt': {'h': '', 's': 7, 'inline': 'theirs\n'}}
        self.api.create('revisions', project=project, parents=[first], agent='x', message='Merge',
                        manifest={'auto': True, 'files': edited}, state={})
        ours = {**base, 'ours.txt': {'h': '', 's': 5, 'inline': 'ours\n'}}
        self.publish(ours, project, [first], tx='6' * 32)
        mount, place = self.place(project, 'work')
        (place / 'mine.txt').write_text('mine\n')
        self.commit(place, 'Mine')
        head = self.api.get('revisions', self.api.get('projects', project)['latest_revision'])
        self.assertEqual(sorted(head['manifest']['files']), ['a.txt', 'mine.txt', 'ours.txt', 'theirs.txt'])

    def test_an_edited_merge_of_both_its_parents_is_none_either(self):
        """An editor of a merge keeps its parents too, and a client that had not seen that sets head to the merge
        itself."""
        base = {'a.txt': {'h': '', 's': 4, 'inline': 'one\n'}}
        left = {**base, 'left.txt': {'h': '', 's': 5, 'inline': 'left\n'}}
        right = {**base, 'right.txt': {'h': '', 's': 6, 'inline': 'right\n'}}
        for edited_last in (True, False):
            with self.subTest(edited_last=edited_last):
                project, first = self.publish(base)
                parents = [self.publish(files, project, [first], tx=name * 32)[1] for name, files in
                           (('6', left), ('7', right))]

                def merge(**more):
                    return self.api.create('revisions', project=project, parents=parents, agent='x', message='Merge',
                                           manifest={'auto': True, 'tx': '8' * 32, 'files': {**left, **right, **more}},
                                           state={})['id']

                theirs = {'theirs.txt': {'h': '', 's': 7, 'inline': 'theirs\n'}}
                merges = [merge(**(theirs if edited else {})) for edited in (not edited_last, edited_last)]
                self.api.call('PATCH', f'/projects/{project}', {'latest_revision': merges[not edited_last]})
                mount, place = self.place(project, 'work')
                (place / 'mine.txt').write_text('mine\n')
                self.commit(place, 'Mine')
                head = self.api.get('revisions', self.api.get('projects', project)['latest_revision'])
                self.assertEqual(sorted(head['manifest']['files']),
                                 ['a.txt', 'left.txt', 'mine.txt', 'right.txt', 'theirs.txt'])
                mount.unmount()


if __name__ == '__main__':
    fixture.main()
