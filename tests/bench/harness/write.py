"""The figures of writing, in work/: `tools/bench write`."""
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import time

import peers
import site_of
from measure import compare, interleaved, seconds_of
from read import said
from report import Row, comparison, milliseconds, ratio
from tree import make
from world import drop_caches

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROJECT = ROOT / 'tests/data/cproject'
PASSTHROUGH = 'passthrough'  # what the targets are held against
BIG = 10 * 2**20
FIO = ['--ioengine=psync', '--fallocate=none', '--output-format=json', '--randseed=1']


class Writing:
    def __init__(self, world, report, rounds, scale):
        self.world, self.report, self.rounds, self.scale = world, report, rounds, scale
        self.source = make(world.new_folder('source'))
        self.site = site_of.Site(world)
        self.project, _ = world.import_tree(self.site.direct, self.source, 'bench')
        self.playfs = world.mount(self.site.direct, world.new_folder('home'), ['refresh=3600'])
        # What was published is here before anything is timed: fetching it is not writing.
        world.run('diff', '-r', self.source, self.work_of(self.playfs))
        native = world.new_folder('ext4')
        below = {name: world.new_folder('below') for name in (PASSTHROUGH, 'stateless', 'writeback')}
        self.passthrough = {
            PASSTHROUGH: peers.passthrough(world, below[PASSTHROUGH], PASSTHROUGH, stateless=False),
            'passthrough, stateless': peers.passthrough(world, below['stateless'], 'stateless'),
            'passthrough, writeback': peers.passthrough(world, below['writeback'], 'writeback', stateless=False,
                                                        extra=['--writeback'])}
        self.roots = {'ext4': native, 'playfs': self.work_of(self.playfs),
                      **{name: peer.tree for name, peer in self.passthrough.items()}}

    def work_of(self, mount):
        return pathlib.Path(mount.mount) / 'projects' / self.project / 'work'

    def compared(self, jobs, rounds=None):
        """{workload: function(root) -> seconds} over all roots -> results, and playfs' messages by workload."""
        results, messages = {}, {}
        for name, job in jobs.items():
            before = self.world.messages(self.playfs.mount)
            bare = {who: peer.messages() for who, peer in self.passthrough.items()}
            turns = []

            def run(root, job=job, turns=turns):
                if root is self.roots['playfs']:
                    turns.append(1)
                self.world.sync()  # or one contender writes back what another left
                return job(root)
            times = interleaved({who: (lambda root=root: run(root)) for who, root in self.roots.items()},
                                rounds or self.rounds, patience=3)
            results[name] = compare(times, PASSTHROUGH)
            for who, by in compare(times, 'ext4').items():
                results[name][who]['to ext4'] = by['ratio']
            counted = self.world.messages_since(self.playfs.mount, before)
            messages[name] = {key: round(count / len(turns)) for key, count in counted.items() if count >= len(turns)}
            for who, peer in self.passthrough.items():
                results[name][who]['messages'] = round((peer.messages() - bare[who]) / len(turns))
            print(f'  {name}: playfs {ratio(results[name]["playfs"]["ratio"])} × passthrough, '
                  f'{ratio(results[name]["playfs"]["to ext4"])} × ext4; messages a run: {said(messages[name])}', flush=True)
        return results, messages

    @staticmethod
    def _messages(by, own):
        return (f'messages a run: {sum(own.values())} ({said(own)}), passthrough {by[PASSTHROUGH]["messages"]}, '
                f'stateless {by["passthrough, stateless"]["messages"]}')

    def finish(self, title, jobs, limit, against='ratio', speed=False, rounds=None, text=''):
        """One section; `limit` is how many times the yardstick's time, by workload."""
        results, messages = self.compared(jobs, rounds)
        rows = []
        for name, by in results.items():
            measured, most = by['playfs'][against], limit[name]
            yardstick = 'passthrough' if against == 'ratio' else 'ext4'
            bare = by['passthrough, writeback' if against == 'ratio' else PASSTHROUGH][against]
            note = (f'{milliseconds(by["playfs"]["seconds"])}; '
                    + (f'passthrough with writeback {bare["median"]:.2f}' if against == 'ratio'
                       else f'bare passthrough {bare["median"]:.2f} × ext4')
                    + f', stateless {by["passthrough, stateless"][against]["median"]:.2f}; {self._messages(by, messages[name])}')
            if speed:
                rows.append(Row(name, f'{1 / measured["median"]:.2f} × the speed of {yardstick} '
                                f'({1 / measured["high"]:.2f}–{1 / measured["low"]:.2f})', f'≥ {1 / most:.2f} ×',
                                measured['median'] <= most, note))
            else:
                rows.append(Row(name, f'{ratio(measured)} × {yardstick}', f'≤ {most} ×', measured['median'] <= most, note))
        self.report.section(title, text + comparison(results, self.roots, PASSTHROUGH), rows,
                            {'results': results, 'messages': messages})
        self.report.plot('write-' + title.split()[0].lower(), 'Writing: ' + title, results, self.roots, PASSTHROUGH)

    # Sections.

    def fio(self):
        world, size = self.world, 64 // self.scale or 1

        def job(kind, block):
            def run(root):
                done = json.loads(world.run('fio', '--name=bench', f'--filename={root}/fio', f'--rw={kind}', f'--bs={block}',
                                            f'--size={size}m', *FIO))
                # What fio says of the writes alone: its own start would drown them.
                return done['jobs'][0]['write']['io_bytes'] / done['jobs'][0]['write']['bw_bytes']
            return run

        jobs = {'sequential 4 KB': job('write', '4k'), 'sequential 128 KB': job('write', '128k'),
                'random 4 KB': job('randwrite', '4k'), 'random 128 KB': job('randwrite', '128k'),
                'shared mmap': lambda root: world.storm('mmap', root, size)}
        self.finish('Large files', jobs, dict.fromkeys(jobs, 1 / 0.9), speed=True)
        for root in self.roots.values():
            for name in ('fio', 'mapped'):
                (root / name).unlink()

    def small(self):
        count = 10_000 // self.scale

        def create(root):
            shutil.rmtree(root / 'many', ignore_errors=True)
            (root / 'many').mkdir()
            return self.world.storm('create', root / 'many', count)

        def unlink(root):
            shutil.rmtree(root / 'many', ignore_errors=True)
            (root / 'many').mkdir()
            self.world.storm('create', root / 'many', count)
            return self.world.storm('unlink', root / 'many', count)

        jobs = {f'create, write, close, rename {count}': create, f'unlink {count}': unlink}
        self.finish('Small files', jobs, dict.fromkeys(jobs, 1 / 0.9), speed=True, rounds=min(self.rounds, 5))
        for root in self.roots.values():
            shutil.rmtree(root / 'many')

    def tools(self):
        place = self.world.new_folder('tools')
        repository = self._repository(place, 5_000 // self.scale)

        def clean(root, name):
            shutil.rmtree(root / name, ignore_errors=True)
            return root / name

        def clone(root):
            return seconds_of(['git', 'clone', '-q', '--no-hardlinks', repository, clean(root, 'clone')], place)

        def build(root):
            shutil.copytree(PROJECT, clean(root, 'cproject'))
            return seconds_of(['make', '-s', '-j2'], root / 'cproject')

        jobs = {'git clone, 5,000 files' if self.scale == 1 else 'git clone': clone, 'make -j2': build}
        if shutil.which('npm'):
            package = self._npm_package(place)

            def install(root):
                target = clean(root, 'npm')
                target.mkdir()
                (target / 'package.json').write_text('{"name": "user", "version": "1.0.0"}')
                return seconds_of(['npm', 'install', '--offline', '--no-audit', '--no-fund', '--silent',
                                   '--cache', place / 'npm-cache', package], target)
            jobs['npm install'] = install
        self.finish('Tools', jobs, dict.fromkeys(jobs, 1.1), rounds=min(self.rounds, 5),
                    text='' if shutil.which('npm') else 'npm is not installed: its row is missing.\n\n')
        for root in self.roots.values():
            for name in ('clone', 'cproject', 'npm'):
                shutil.rmtree(root / name, ignore_errors=True)

    def _repository(self, place, files):
        tree, chance = place / 'repository', random.Random(5)
        for i in range(files):
            path = tree / f'{i // 100}' / f'file{i}.txt'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('\n'.join(f'{chance.getrandbits(64):x}' for _ in range(chance.randint(10, 200))))
        identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost']
        for words in (['init', '-q'], ['add', '-A'], ['commit', '-q', '-m', 'Many files']):
            self.world.run('git', *identity, *words, cwd=tree)
        return tree

    def _npm_package(self, place):
        """A package of 300 small modules, as a tarball, so that no registry is asked."""
        folder = place / 'package'
        (folder / 'lib').mkdir(parents=True)
        (folder / 'package.json').write_text('{"name": "bench-package", "version": "1.0.0", "main": "lib/m0.js"}')
        for i in range(300):
            (folder / f'lib/m{i}.js').write_text(f'exports.value = {i};\n' * 40)
        self.world.run('npm', 'pack', '--silent', '--cache', place / 'npm-cache', cwd=folder)
        return next(folder.glob('*.tgz'))

    def edits(self):
        world = self.world

        def copy_in(root):
            shutil.rmtree(root / 'copy', ignore_errors=True)
            return seconds_of(['cp', '-r', self.source, root / 'copy'], '/')

        def remove(root):
            copy_in(root)
            return seconds_of(['rm', '-rf', root / 'copy'], '/')

        def on_copy(kind):
            def run(root):
                if not (root / 'copy').exists():
                    copy_in(root)
                return world.storm(kind, root / 'copy', 10)
            return run

        jobs = {'copy in 80 files': copy_in, 'rewrite 10': on_copy('rewrite'), 'rename over 10': on_copy('rename-over'),
                'rm -rf': remove}
        self.finish('Edits', jobs, dict(zip(jobs, (3, 1.5, 1.5, 2))), against='to ext4')
        for root in self.roots.values():
            shutil.rmtree(root / 'copy', ignore_errors=True)

    def sync(self):
        jobs = {'fsync of one small file': lambda root: self.world.storm('sync', root, 20) / 20}
        self.finish('Syncing', jobs, dict.fromkeys(jobs, 1.5), against='to ext4')

    def copy_up(self):
        """Bytes that one byte's append to a large published file moves."""
        rows = [self._copy_up(self.world.new_folder('home'), 'one copy', BIG + 2**20, self.report.machine['disk'])]
        disk = self._reflink_disk()
        if disk:
            rows.append(self._copy_up(disk / 'home', 'what is written', 2**20, 'xfs with reflinks'))
            subprocess.run(['umount', disk], check=True)
        else:
            rows.append(Row('append of a byte where the disk reflinks', 'not measured',
                            note='needs root, mkfs.xfs and a loop device'))
        self.report.section('Copy-up', rows=rows)

    def _reflink_disk(self):
        image, place = self.world.folder / 'disk.img', self.world.new_folder('disk')
        with open(image, 'wb') as sparse:
            sparse.truncate(512 * 2**20)
        for words in (['mkfs.xfs', '-q', image], ['mount', '-o', 'loop', image, place]):
            if not shutil.which(words[0]) or subprocess.run(words, capture_output=True).returncode:
                return None
        (place / 'home').mkdir()
        return place

    def _big_project(self):
        """A project with one file of 10 MB, as any client may publish it, in larger chunks than ours."""
        if hasattr(self, '_big'):
            return self._big
        chance = random.Random(10)
        text = ''.join(f'{chance.getrandbits(256):064x}\n' for _ in range(BIG // 65 + 1))[:BIG]
        # As full as a record may be, so that the file's entry fits into one too.
        pieces = [text[at:at + 15_800] for at in range(0, BIG, 15_800)]
        project = site_of.post(self.site, 'projects', {'name': 'big'})
        writer = site_of.Writer(self.site)
        ids = [writer.send('POST', '/file_chunks', {
            'rev': '', 'path': 'big.txt', 'seq': i, 'hash': hashlib.sha256(piece.encode()).hexdigest(), 'content': piece,
        })['record']['id'] for i, piece in enumerate(pieces)]
        entry = {'h': hashlib.sha256(text.encode()).hexdigest(), 's': BIG, 'c': ids}
        revision = site_of.post(self.site, 'revisions', {'project': project, 'parents': [], 'agent': 'bench',
                                                         'message': 'A large file', 'manifest': {'files': {'big.txt': entry}},
                                                         'state': {}})
        site_of.patch(self.site, 'projects', project, {'latest_revision': revision})
        self._big = project
        return project

    def _copy_up(self, home, wanted, most, disk):
        mount = self.world.mount(self.site.direct, home, ['refresh=3600'])
        path = pathlib.Path(mount.mount) / 'projects' / self._big_project() / 'work/big.txt'
        with open(path, 'rb') as file:
            while file.read(2**20):
                pass
        drop_caches(1)

        def moved():
            fields = dict(line.split(': ') for line in
                          pathlib.Path(f'/proc/{mount.pid}/io').read_text(encoding='ascii').splitlines())
            return int(fields['rchar']), int(fields['wchar'])
        before = moved()
        start = time.perf_counter()
        self.world.storm('append', path)
        took = time.perf_counter() - start
        after = moved()
        read, written = (after[i] - before[i] for i in range(2))
        with open(path, 'rb') as file:
            content = file.read()
        if len(content) != BIG + 1 or content[-1:] != b'!':
            raise RuntimeError(f'{path} is not what it was with a byte appended')
        mount.end()
        return Row(f'append a byte to a published file of 10 MB, on {disk}',
                   f'{written / 2**20:.2f} MB written, {read / 2**20:.2f} MB read', wanted, written <= most,
                   f'bytes through the process\'s system calls (/proc/PID/io); {took * 1e3:.0f} ms')


SECTIONS = ('fio', 'small', 'tools', 'edits', 'sync', 'copy-up')


def run(world, report, sections, rounds, scale):
    writing = Writing(world, report, rounds, scale)
    jobs = {'fio': writing.fio, 'small': writing.small, 'tools': writing.tools, 'edits': writing.edits,
            'sync': writing.sync, 'copy-up': writing.copy_up}
    return [(name, jobs[name]) for name in sections]
