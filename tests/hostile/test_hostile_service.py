#!/usr/bin/env python3
"""A service that attacks in every way at once, behind one real mount that also shows honest projects."""
import concurrent.futures
import contextlib
import json
import os
import re

import projects
import proxy
import fixture
import site_of_lies
import trees
import wires

PLACES = re.compile(r'/\.site/data/(projects|revisions|file_chunks|threads|messages)'
                    r'(/[^/?# \x00-\x1f]+)?(\?[^# \x00-\x1f]*)?$')
MORE_DESCRIPTORS = 256 + 64  # kept open by the cache, and by work trees that were used
MAY_GROW = 128 << 20


def descriptors(mount):
    return len(os.listdir(f'/proc/{mount.process.pid}/fd'))


def texts(tree):
    """Only the files in what Fixture.describe returns."""
    return {path: content[1].decode() for path, content in tree.items() if content != 'folder'}


def read_below(root, path):
    """Reads a path longer than the kernel accepts in one piece, step by step from an open directory."""
    with open(path, 'rb', opener=lambda name, flags: os.open(name, flags, dir_fd=root)) as file:
        return file.read()


@fixture.needs_fuse
class HostileService(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api, counting = proxy.before_a_service(self)
        self.url = counting.url
        self.witness = self.home / 'witness'
        self.honest = {name: {f'dir{n % 3}/file{n}': f'{name} {n}\n' * 50 for n in range(12)} for name in ('good',
                                                                                                           'fair',
                                                                                                           'kind')}
        self.honest['good']['large'] = ''.join(f'line {n}\n' for n in range(12_000))
        self.ids = {name: projects.publish(self.api, name, files) for name, files in self.honest.items()}
        self.site = site_of_lies.HostileSite(counting)
        self.trap = site_of_lies.Trap(self)
        self.attacks = trees.table(self.witness, self.honest['good']['dir0/file0'])
        for attack in self.attacks:
            self.site.project(attack.name, attack.files, attack.manifest, attack.chunks, attack.revision,
                              attack.project)
        self.site.add('file_chunks', 'chunk-empty')
        self.site.answers['GET', 'file_chunks', 'chunk-other'] = lambda body, ask: site_of_lies.http(
            '{"record":' + self.site.records['file_chunks', 'chunk-large'] + '}')
        for ident in trees.IDS:
            self.site.add('projects', ident, name=ident)
        self.wires = self.lying_answers()

    def lying_answers(self):
        record = {'id': '', 'project': '', 'created_at': '2020-01-01T00:00:00Z', 'parents': [], 'agent': 'mallory',
                  'message': '',
                  'manifest': {'files': {'f': {'inline': 'evil'}}}, 'state': {}}
        found = []
        for name in wires.answers(record, self.trap.url):
            ident = 'wire ' + name
            self.site.add('projects', ident, name=ident, latest_revision=f'{ident}-r')
            mine = {**record, 'id': f'{ident}-r', 'project': ident}
            self.site.answers['GET', 'revisions', f'{ident}-r'] = (
                lambda body, ask, name=name, mine=mine: wires.answers(mine, self.trap.url)[name])
            found.append(ident)
        return found

    # What is visible.

    def is_refused(self, mount, look, subject, reason=''):
        """Whether an access fails with a reported reason; None if it does not fail. The log keeps only the latest
        errors, and others fail at the same time, so it is tried again."""
        for _ in range(20):
            try:
                look()
                return None
            except OSError:
                lines = (mount.directory / '.playfs/errors.ndjson').read_text().splitlines()
                if any(subject(error['subject']) and reason in error['message'] for error in map(json.loads, lines)):
                    return True
        return False

    def patiently(self, look):
        """Looks again where a name took longer than the kernel can be kept waiting: on a slow machine it may."""
        for _ in range(10):
            with contextlib.suppress(TimeoutError):
                return look()
        return look()

    def seen_of(self, mount, attack):
        """How an attack's project differs from what is expected."""
        place, wrong = mount.directory / 'projects' / attack.name, []
        if attack.nothing is not None:
            told = self.is_refused(mount, lambda: os.listdir(place / 'head'),
                                   lambda subject: subject.startswith(f'projects/{attack.name}'), attack.nothing)
            wrong += [] if told else ['a tree is shown' if told is None else 'not told why there is no tree']
            return wrong
        root = self.patiently(lambda: os.open(place / 'head', os.O_RDONLY | os.O_DIRECTORY))
        status = self.patiently((place / 'status').read_text)
        try:
            for path, content in attack.shows.items():
                try:
                    if (got := read_below(root, path)) != content:
                        wrong.append(f'{path[:60]!r} is {got[:60]}, {len(got)} bytes')
                    if os.stat(path, dir_fd=root).st_mode & 0o7000:
                        wrong.append(f'{path!r} has a mode that no file may have')
                except OSError as refusal:
                    wrong.append(f'{path[:60]!r} is not shown: {str(refusal)[:60]}')
            for path, target in attack.links.items():
                if (got := os.readlink(path, dir_fd=root)) != target:
                    wrong.append(f'{path!r} leads to {got[:60]!r}')
            for path, reason in attack.refuses.items():
                if not any(reason in line for line in status.splitlines()):
                    wrong.append(f'{path[:60]!r}: not told why it is refused')
                with_name = path.strip('/') not in ('', '.', '..',
                                                    'both') and '\0' not in path and not path.startswith(('/', '..'))
                if with_name and self.is_there(path, root):
                    wrong.append(f'{path[:60]!r} is shown')
            for path, reason in attack.fails.items():
                told = self.is_refused(mount, lambda: read_below(root, path),
                                       lambda subject: subject.endswith(f'/{path}'), reason)
                if not told:
                    wrong.append(f'{path!r} ' + ('can be read' if told is None else 'fails, and is not told why'))
        finally:
            os.close(root)
        return wrong

    def is_there(self, path, root):
        try:
            os.stat(path, dir_fd=root, follow_symlinks=False)
        except OSError:
            return False
        return os.path.normpath(path) == path

    def names_of_projects_are_names(self, mount):
        shown = os.listdir(mount.directory / 'projects')
        self.assertEqual({ident: ident in shown for ident in trees.IDS}, trees.IDS)

    def what_is_left_of(self, mount, wire):
        """How a malformed response's effect differs from what is expected."""
        place = mount.directory / 'projects' / wire / 'head'
        told = self.is_refused(mount, lambda: os.listdir(place), lambda subject: subject.startswith(f'projects/{wire}'))
        if told is None and wire.removeprefix('wire ') in wires.HARMLESS:
            told = self.describe(place) == {'f': ('file', b'evil')}
        return [] if told else ['not told why' if told is False else f'{os.listdir(place)} is shown']

    # What users do.

    def run_program(self, *words, cwd, prints_safely=False):
        """Whatever a program says about hostile projects, it ends, and not by a signal or a sanitizer."""
        done = self.command(*words, check=False, text=False, cwd=cwd)
        said = done.stdout + done.stderr
        self.assertGreaterEqual(done.returncode, 0, (words, said[-500:]))
        self.assertNotRegex(said, b'Sanitizer|runtime error:', words)
        if prints_safely:
            self.assertIsNone(trees.UNSAFE.search(said.decode()), (words, said[:2000]))

    def tools(self, mount):
        """What users do with ordinary programs, as functions, each over a few projects."""
        top, out = mount.directory / 'projects', self.home / 'out'
        out.mkdir()
        self.addCleanup(self.command, 'rm', '-rf', out)  # which can delete deeper trees than Python
        names = [*self.ids.values(), *(attack.name for attack in self.attacks if attack.name not in trees.LONG_WALKS)]
        for n, some in enumerate(names[begin:begin + 10] for begin in range(0, len(names), 10)):
            heads, works = [f'{name}/head/' for name in some], [f'{name}/work/' for name in some]
            for words in (['ls', '-laR', *heads], ['find', *works, '-size', '+1k', '-newer', '/'],
                          ['grep', '-rI', 'evil', *heads],
                          ['tar', '-cf', out / f'{n}.tar', *heads], ['cat', *(f'{name}/status' for name in some)],
                          ['ls', '-la', *(f'{name}/{place}/' for name in some for place in ('revisions', 'threads'))]):
                yield lambda words=words: self.run_program(*words, cwd=top)
        yield lambda: self.run_program('find', 'deep/head/', cwd=top)
        for name in ('paths', 'repositories', 'controls', 'claims', 'chunks', 'circle', 'many parents',
                     'strange parents'):
            work, site = top / name / 'work', ['--site', self.url]
            yield lambda name=name: self.run_program('cp', '-a', f'{name}/head/.', out / f'copy {name}', cwd=top)
            yield lambda work=work: self.run_program('git', '-C', work, 'status', cwd='/')
            for words in (['status', work], ['status', '--json', work], ['log', '-n', '20', work], ['diff', work],
                          ['update', work],
                          ['branches', work], ['export', *site, name, out / name], ['show', *site, f'{name}-r']):
                yield lambda words=words: self.run_program(self.playfs_path, *words, cwd='/', prints_safely=True)

    def honest_ones_are_exact(self, mount):
        for name, files in self.honest.items():
            tree = self.describe(mount.directory / 'projects' / self.ids[name] / 'head')
            self.assertEqual(texts(tree), files)

    def test_all_at_once(self):
        mount = self.mount(self.url, options=('refresh=1',))
        self.honest_ones_are_exact(mount)
        self.names_of_projects_are_names(mount)
        before, resident = descriptors(mount), fixture.memory(mount.process)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            seen = {attack.name: pool.submit(self.seen_of, mount, attack) for attack in self.attacks}
            seen.update({wire: pool.submit(self.what_is_left_of, mount, wire) for wire in self.wires
                         if wire.removeprefix('wire ') not in wires.PAUSES})
            users = [pool.submit(tool) for tool in self.tools(mount)]
            self.honest_ones_are_exact(mount)
            wrong = {name: looked.result() for name, looked in seen.items()}
            for user in users:
                user.result()
        self.assertEqual({name: each for name, each in wrong.items() if each}, {})
        self.honest_ones_are_exact(mount)
        self.assertFalse(self.witness.exists(), 'a program of a stranger ran')
        self.publish_beside(mount)
        self.ask_for_pauses(mount)
        self.honest_ones_are_exact(mount)
        self.assertEqual(self.trap.heard, [])
        for _, path, _ in self.site.asked:
            self.assertRegex(path, PLACES)
        self.eventually(lambda: descriptors(mount) <= before + MORE_DESCRIPTORS, 'descriptors are back')
        grown = fixture.memory(mount.process) - resident
        print(f'{len(self.attacks)} trees, {len(self.wires)} answers, {len(users)} programs, '
              f'{len(self.site.asked)} requests: '
              f'{descriptors(mount) - before} more descriptors, {grown >> 20} MB more', flush=True)
        self.assert_memory(grown, MAY_GROW)
        mount.unmount()
        self.assertEqual(mount.process.returncode, 0)

    def publish_beside(self, mount):
        work = mount.directory / 'projects' / self.ids['good'] / 'work'
        (work / 'mine').write_text('mine\n')
        self.honest['good']['mine'] = 'mine\n'
        self.playfs('commit', '-m', 'mine', work)
        self.playfs('export', 'good', self.home / 'published', '--site', self.api.origin, who='bob')
        self.assertEqual(texts(self.describe(self.home / 'published', without=['.playfs'])), self.honest['good'])

    def ask_for_pauses(self, mount):
        """Pauses of thirty years. Whether and how a client obeys is tested by mount/test_pauses.py; what is local stays
        readable."""
        for wire in self.wires:
            if wire.removeprefix('wire ') in wires.PAUSES:
                with self.assertRaises(OSError):
                    os.listdir(mount.directory / 'projects' / wire / 'head')


if __name__ == '__main__':
    fixture.main()
