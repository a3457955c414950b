#!/usr/bin/env python3
"""Revisions of other clients: posted with curl as the service documents, without our optional fields."""
import ctypes
import json
import mmap
import os
import subprocess

import fixture

C_LIBRARY = ctypes.CDLL(None, use_errno=True)
C_LIBRARY.mmap.restype = ctypes.c_void_p
C_LIBRARY.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


@fixture.needs_fuse
class Foreign(fixture.Fixture):
    def curl(self, api, method, path, body):
        said = self.command('curl', '-sS', '-X', method, api.base + path, '-H', 'Content-Type: application/json',
                            '-H', f'Origin: {api.origin}', '-d', json.dumps(body)).stdout
        answer = json.loads(said)
        self.assertNotIn('error', answer)
        return fixture.fields(answer.get('record', answer))

    def publish(self, api):
        project = self.curl(api, 'POST', '/projects', {'name': 'foreign', 'topic': 'gardens'})['id']
        pieces = ['The first piece, in which a hedge is trimmed.\n' * 200, 'The second: größer, höher.\n' * 200]
        chunks = [self.curl(api, 'POST', '/file_chunks', {'rev': '', 'path': 'tale.txt', 'seq': seq, 'hash': f'fnv:{seq}',
                                                         'content': piece})['id'] for seq, piece in enumerate(pieces)]
        tale = ''.join(pieces)
        files = {
            'tale.txt': {'h': 'fnv:77', 's': len(tale.encode()), 'c': chunks, 'lang': 'en'},
            'plants/rose.txt': {'h': 'opaque', 's': 5, 'inline': 'rosa\n', 'tags': ['thorns', {'n': 1}]},
            '../outside': {'h': 'x', 's': 1, 'inline': 'x'},
            '.git/config': {'h': 'y', 's': 1, 'inline': 'y'},
        }
        revision = self.curl(api, 'POST', '/revisions', {
            'project': project, 'parents': [], 'agent': 'gardener', 'message': 'Plant',
            'manifest': {'files': files, 'generator': {'name': 'other', 'v': 3}}, 'state': {'season': 'spring'}})['id']
        self.curl(api, 'PATCH', f'/projects/{project}', {'latest_revision': revision})
        return project, files, tale

    def test_what_version_control_takes_for_its_own_is_not_shown(self):
        api = self.serve()
        files = {path: {'inline': 'x'} for path in ('note', 'deep/er/note', '.hg/hgrc', 'deep/.HG/hgrc', 'CVS/Root',
                                                    'deep/er/.repo/repo/main.py', '.fslckout', 'deep/.svn./hooks/x')}
        project = self.curl(api, 'POST', '/projects', {'name': 'trap'})['id']
        revision = self.curl(api, 'POST', '/revisions', {'project': project, 'parents': [], 'agent': 'x', 'message': 'x',
                                                         'manifest': {'files': files}, 'state': {}})['id']
        self.curl(api, 'PATCH', f'/projects/{project}', {'latest_revision': revision})
        place = self.mount(api.origin, 'ann').project('trap')
        exported = self.playfs('export', 'trap', self.home / 'copy', '--site', api.origin, check=False)
        self.assertEqual(exported.returncode, 1, 'not all of it is there')
        for tree in place / 'work', place / 'head', place / 'revisions' / revision, self.home / 'copy':
            shown = [str(path.relative_to(tree)) for path in tree.rglob('*')]
            self.assertEqual(sorted(path for path in shown if not path.startswith('.playfs')),
                             ['deep', 'deep/er', 'deep/er/note', 'note'])
        said = (place / 'status').read_text()
        for path in files.keys() - {'note', 'deep/er/note'}:
            self.assertIn(f'{path}: a name that a version-control system takes', said)
        # Users may have one here; it stays local, and refused entries are carried forward.
        (place / 'work/.hg').mkdir()
        (place / 'work/.hg/own').touch()
        (place / 'work/mine').write_text('mine')
        self.playfs('commit', '-m', 'mine', place / 'work')
        head = api.get('projects', project)['latest_revision']
        self.assertEqual(sorted(api.get('revisions', head)['manifest']['files']), sorted([*files, 'mine']))

    def test_with_safe_symlinks_a_link_is_judged_from_wherever_it_stands(self):
        api = self.serve()
        deep = 'd/' * 14
        project = self.curl(api, 'POST', '/projects', {'name': 'links'})['id']
        files = {f'{deep}{name}': {'m': '120000', 'inline': '../' * 14 + 'etc/hostname'} for name in ('moved', 'linked')}
        revision = self.curl(api, 'POST', '/revisions', {'project': project, 'parents': [], 'agent': 'x', 'message': 'x',
                                                         'manifest': {'files': files}, 'state': {}})['id']
        self.curl(api, 'PATCH', f'/projects/{project}', {'latest_revision': revision})
        work = self.mount(api.origin, 'ann', options=('refresh=1', 'safe_symlinks')).project('links') / 'work'
        for name in 'moved', 'linked':
            self.assertTrue(os.readlink(work / deep / name).endswith('etc/hostname'), 'inside of the tree')
        (work / deep / 'moved').rename(work / 'moved')
        os.link(work / deep / 'linked', work / 'linked', follow_symlinks=False)
        for name in 'moved', 'linked':
            with self.assertRaises(PermissionError):
                os.readlink(work / name)

    def test_it_is_readable_and_what_we_do_not_know_survives_our_commit(self):
        api = self.serve()
        project, files, tale = self.publish(api)
        mount = self.mount(api.origin, 'ann')
        place = mount.project('foreign')
        self.assertEqual(place.name, project)
        self.assertEqual((place / 'work/tale.txt').read_text(), tale)
        self.assertEqual((place / 'head/plants/rose.txt').read_text(), 'rosa\n')
        self.assertEqual(sorted(os.listdir(place / 'work')), ['plants', 'tale.txt'], 'unsafe paths are not shown')
        status = (place / 'status').read_text()
        self.assertIn('outside', status)
        self.assertIn('.git/config', status)

        (place / 'work/plants/tulip.txt').write_text('tulipa\n')
        outcome, revision, files_changed, _ = self.commit(place / 'work', 'A tulip')
        self.assertEqual((outcome, files_changed), ('published', 1))
        record = api.get('revisions', revision)
        manifest = record['manifest']
        self.assertEqual({path: manifest['files'][path] for path in files}, files, 'entries are carried on as they were')
        self.assertEqual(manifest['generator'], {'name': 'other', 'v': 3})
        self.assertEqual(record['state'], {'season': 'spring'})
        self.assertEqual(record['agent'], 'ann')
        self.assertEqual(api.get('projects', project)['topic'], 'gardens')

        # Changed content gets its own hash, and the entry's other fields stay.
        with open(place / 'work/plants/rose.txt', 'a', encoding='utf-8') as rose:
            rose.write('canina\n')
        entry = api.get('revisions', self.commit(place / 'work', 'Which rose')[1])['manifest']['files']['plants/rose.txt']
        self.assertEqual((entry['s'], entry['inline'], entry['tags']), (12, 'rosa\ncanina\n', ['thorns', {'n': 1}]))
        self.assertEqual(len(entry['h']), 64)

    def unasked_sizes(self, names):
        """A work tree with files whose sizes this client does not know, and their contents."""
        api = self.serve()
        project = api.create('projects', name='unasked')['id']
        files, content = {}, {}
        for name in names:
            pieces = [f'#!/bin/sh\necho {name}; exit\n', 'ä' * 4000, 'ö' * 4000]
            chunks = [api.create('file_chunks', rev='', path=name, seq=seq, content=piece)['id']
                      for seq, piece in enumerate(pieces)]
            text = ''.join(pieces)
            files[name] = {'h': name, 's': len(text), 'c': chunks, 'm': '100755'}
            content[name] = text.encode()
        revision = api.create('revisions', project=project, parents=[], agent='x', message='x', state={},
                              manifest={'files': files})['id']
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        return self.mount(api.origin, 'ann', ('noprefetch',)).project('unasked') / 'work', content

    def test_whoever_comes_first_reads_all_of_a_file_whose_size_nobody_tells(self):
        def read(path):
            with open(path, 'rb', buffering=0) as file:
                return b''.join(iter(lambda: file.read(100_000), b''))

        def mapped(path):
            with open(path, 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
                return pages[:]

        def mapped_unseen(path):
            with open(path, 'rb', buffering=0) as file:
                length = len(content[path.name])
                address = C_LIBRARY.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
                return ctypes.string_at(address, length)

        def sent(path):
            with open(path, 'rb', buffering=0) as file, open(self.home / 'sent', 'w+b', buffering=0) as into:
                while os.sendfile(into.fileno(), file.fileno(), None, 1 << 20):
                    pass
                into.seek(0)
                return into.read()

        def from_its_end(path):
            with open(path, 'rb', buffering=0) as file:
                length = file.seek(0, os.SEEK_END)
                file.seek(-length, os.SEEK_END)
                return file.read()

        def by(*words):
            return lambda path: subprocess.run([*words, path], stdout=subprocess.PIPE, check=True).stdout

        def copied(path):
            self.command('cp', path, self.home / 'copy')
            return (self.home / 'copy').read_bytes()

        def appended(path):
            with open(path, 'ab', buffering=0) as file:
                file.write(b'the end')
            content[path.name] += b'the end'
            return path.read_bytes()

        def linked(path):
            os.link(path, path.with_name('another'))
            return path.with_name('another').read_bytes()

        def with_another_mode(path):
            path.chmod(0o644)
            return path.read_bytes()

        readers = {'read': read, 'mmap': mapped, 'mmap-without-stat': mapped_unseen, 'sendfile': sent, 'cp': copied,
                   'seek': from_its_end, 'cat': by('cat'), 'tail': by('tail', '-c', '+1'), 'append': appended,
                   'link': linked, 'chmod': with_another_mode}
        work, content = self.unasked_sizes([*readers, 'stat', 'list', 'run'])
        for name, reader in readers.items():
            self.assertEqual(reader(work / name), content[name], name)
        self.assertEqual(os.stat(work / 'stat').st_size, len(content['stat']))
        self.assertIn(f' {len(content["list"])} ', self.command('ls', '-l', work).stdout)
        self.assertEqual(self.command(work / 'run').stdout, 'run\n')

    def test_size_counted_in_characters_is_no_reason_to_refuse(self):
        api = self.serve()
        project = api.create('projects', name='counted')['id']
        text = 'größer\n'
        revision = api.create('revisions', project=project, parents=[], agent='x', message='x', manifest={
            'files': {'a': {'h': 'h', 's': len(text), 'inline': text}}}, state={})['id']
        api.call('PATCH', f'/projects/{project}', {'latest_revision': revision})
        place = self.mount(api.origin, 'ann').project('counted')
        self.assertEqual(os.stat(place / 'work/a').st_size, len(text.encode()))
        self.assertEqual((place / 'work/a').read_text(), text)


if __name__ == '__main__':
    fixture.main()
