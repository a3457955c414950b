"""The figures of reading: `tools/bench read`."""
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import peers
import site_of
from measure import compare, interleaved, seconds_of, spread
from report import Row, comparison, milliseconds, ratio, table
from tree import ABSENT, make
from world import drop_caches

STORM = 100
SLOW = ('sshfs', 'rclone http', 'rclone webdav')
GREP = ['grep', '-rF', ABSENT, '.']


def said(messages):
    return ', '.join(f'{count} {name}' for name, count in sorted(messages.items())) or '0'


class Reading:
    def __init__(self, world, report, rounds):
        self.world, self.report, self.rounds = world, report, rounds
        self.source = make(world.new_folder('ext4'))
        self.site = site_of.Site(world)
        self.project, self.revision = world.import_tree(self.site.direct, self.source, 'bench')
        self._servers = {}

    def tree_in(self, mount):
        return pathlib.Path(mount.mount) / 'projects' / self.project / 'revisions' / self.revision

    def home(self):
        return self.world.new_folder('home')

    def server(self, kind):
        if kind not in self._servers:
            if kind == 'ssh':
                self._servers[kind] = peers.SshServer(self.world)
            elif kind == 'git':
                self._servers[kind] = peers.GitServer(self.world, self.source)
            else:
                self._servers[kind] = peers.RcloneServer(self.world, self.source, kind)
        return self._servers[kind]

    # Warm.

    def workloads(self):
        """{name: function(tree) -> seconds}."""
        copies = self.world.new_folder('copies')

        def copy(tree):
            target = copies / 'copy'
            shutil.rmtree(target, ignore_errors=True)
            self.world.sync()  # or the disk's journal would be at work on what was there
            return seconds_of(['cp', '-r', '.', target], tree)

        return {
            'find': lambda tree: seconds_of(['find', '.', '-printf', '%s %m %T@ %p\n'], tree),
            'grep -r': lambda tree: seconds_of(GREP, tree, good=(1,)),
            'tar': lambda tree: seconds_of(['sh', '-c', 'tar -cf - . | cat >/dev/null'], tree),
            'cp -r': copy,
            f'{STORM} × stat': lambda tree: self.world.storm('stat', tree, STORM),
            f'{STORM} × open+read+close': lambda tree: self.world.storm('read', tree, STORM),
            f'{STORM} × missing names': lambda tree: self.world.storm('missing', tree, STORM),
        }

    def warm(self):
        world = self.world
        mount = world.mount(self.site.direct, self.home())
        floor = peers.passthrough(world, self.source)
        others = [floor, peers.passthrough(world, self.source, 'passthrough with opens', stateless=False),
                  peers.libfuse_example(world, self.source), peers.squashfuse(world, self.source),
                  self.server('ssh').mount(world, self.source), self.server('http').mount(world),
                  self.server('webdav').mount(world)]
        work = pathlib.Path(mount.mount) / 'projects' / self.project / 'work'
        trees = {'ext4': self.source, 'playfs': self.tree_in(mount), 'playfs work': work,
                 **{peer.name: peer.tree for peer in others if peer}}
        world.run('diff', '-r', self.source, trees['playfs'])
        world.run('diff', '-r', self.source, work)
        results, messages = {}, {}
        for name, work_on in self.workloads().items():
            contenders = {who: (lambda tree=tree: work_on(tree)) for who, tree in trees.items()}
            work_on(trees['playfs'])
            work_on(work)
            before = world.messages(mount.mount)
            times = interleaved(contenders, self.rounds)
            messages[name] = world.messages_since(mount.mount, before)
            results[name] = compare(times, 'ext4')
            print(f'  warm {name}: playfs {ratio(results[name]["playfs"]["ratio"])}, floor '
                  f'{ratio(results[name]["floor"]["ratio"])}, messages {said(messages[name])}', flush=True)
        limits = dict(zip(results, (1.2, 1.2, 1.2, 1.2, 1.25, 1.4, 1.3)))
        rows = []
        for name, by in results.items():
            measured = by['playfs']['ratio']
            rows.append(Row(f'warm {name}', f'{ratio(measured)} × ext4', f'≤ {limits[name]} ×',
                            measured['median'] <= limits[name],
                            f'bare FUSE {by["floor"]["ratio"]["median"]:.2f}; in work/ {by["playfs work"]["ratio"]["median"]:.2f}'))
        total = {name: sum(known.values()) for name, known in messages.items()}
        rows.append(Row('warm: FUSE messages in all these rounds', '; '.join(f'{name}: {said(known)}' for name, known
                        in messages.items() if known) or '0', '0', sum(total.values()) == 0, 'by .playfs/metrics'))
        self.report.section('Warm', comparison(results, trees, 'ext4'), rows, {'results': results, 'messages': messages})
        self.report.plot('read-warm', 'Reading, warm', results, trees, 'ext4')
        for peer in [each for each in others if each]:
            peer.end()
        mount.end()

    # Cold, far away.

    def _playfs_cold(self, url, options, job, mark=True):
        """A mount that has seen nothing; the requests of the job, and its seconds."""
        mount = self.world.mount(url, self.home(), options)
        counted, before = self.world.messages(mount.mount), self.site.mark()
        took = job(pathlib.Path(mount.mount) / 'projects' / self.project / 'head')
        # The log has a line once the last byte is out, which is a moment after it is in use here.
        time.sleep(0.2)
        requests = self.site.requests_since(before) if mark else []
        messages = self.world.messages_since(mount.mount, counted)
        mount.end()
        return took, requests, messages

    def far(self, round_trip=50, slow_start=False, rounds=5):
        world, site = self.world, self.site
        tls, plain = (site.link(port, round_trip, slow_start) for port in (site.tls, site.plain))
        urls = {'h2': f'https://127.0.0.1:{tls}', 'h1': f'http://127.0.0.1:{plain}'}
        options = {'h2': [f'cafile={site.cafile}', 'refresh=3600'], 'h1': ['refresh=3600']}
        plans = {which: site_of.plan_of_reading(site.api, url, self.project) for which, url in urls.items()}
        chunks = plans['h2'][1]
        seen = {}

        def grep(tree):
            # With a slash behind it: head is a link, which grep would not follow.
            return seconds_of(['grep', '-rF', ABSENT, f'{tree}/'], '/', good=(1,))

        def first_listing(tree):
            return seconds_of(['ls', f'{tree}/'], '/')

        def cold(which, job, name):
            def run():
                took, requests, messages = self._playfs_cold(urls[which], options[which], job)
                seen.setdefault(name, []).append((requests, messages))
                return took
            return run

        def floor(which, connections, streams):
            cafile = site.cafile if which == 'h2' else '-'
            return lambda: float(world.run(world.driver('fetch'), cafile, connections, streams, input=plans[which][0]).split()[0])

        def peer(mount, job):
            def run():
                mounted = mount()
                took = job(mounted.tree)
                mounted.end()
                return took
            return run

        def clone():
            target = world.new_folder('clone')
            start = time.perf_counter()
            self.server('git').clone(target / 'tree', links['git'])
            subprocess.run(GREP, cwd=target / 'tree', stdout=subprocess.DEVNULL)
            return time.perf_counter() - start

        links = {kind: site_of.delayed(world, self.server(kind).port, round_trip, slow_start)
                 for kind in ('ssh', 'webdav', 'http', 'git')}
        mounts = {'sshfs': lambda: self.server('ssh').mount(world, self.source, links['ssh']),
                  'rclone webdav': lambda: self.server('webdav').mount(world, links['webdav']),
                  'rclone http': lambda: self.server('http').mount(world, links['http'])}
        greps = {'playfs h2': cold('h2', grep, 'grep h2'), 'floor h2': floor('h2', 1, 512),
                 'floor h2, 100 streams': floor('h2', 1, 100), 'playfs h1': cold('h1', grep, 'grep h1'),
                 'floor h1, 64 connections': floor('h1', 64, 1), 'git clone, grep': clone,
                 **{name: peer(mount, grep) for name, mount in mounts.items()}}
        listings = {'playfs h2': cold('h2', first_listing, 'ls h2'), 'playfs h1': cold('h1', first_listing, 'ls h1'),
                    **{name: peer(mount, first_listing) for name, mount in mounts.items()}}
        results = {'grep -r': compare(interleaved(greps, rounds, patience=1.5), 'floor h2'),
                   'first ls': compare(interleaved(listings, rounds, patience=1.5), 'playfs h2')}
        by, first = results['grep -r'], results['first ls']

        def of_peers(name):
            return spread([by[name]['seconds']['median'] / by['playfs h2']['seconds']['median']])['median']

        h2, h1 = by['playfs h2'], by['playfs h1']
        h1_floor = by['floor h1, 64 connections']
        h1_ratio = h1['seconds']['median'] / h1_floor['seconds']['median']
        wanted = 650 if slow_start else 320
        title = f'Cold, {round_trip} ms away' + (', with TCP slow start' if slow_start else '')

        def aim(what, figure, target, met, note=''):
            """With slow start there is one aim, the first row's: the others are set for a link without it."""
            return Row(what, figure, note=note) if slow_start else Row(what, figure, target, met, note)

        rows = [Row('cold grep -r, TLS and HTTP/2', milliseconds(h2['seconds']), f'≤ {wanted} ms',
                    h2['seconds']['median'] * 1e3 <= wanted, f'floor {milliseconds(by["floor h2"]["seconds"])}'),
                aim('… to the floor of the same run', f'{ratio(h2["ratio"])} ×', '≤ 1.2 ×', h2['ratio']['median'] <= 1.2),
                aim('cold grep -r, HTTP/1.1', f'{milliseconds(h1["seconds"])}: {h1_ratio:.2f} × floor', '≤ 1.2 ×',
                    h1_ratio <= 1.2, f'floor, 64 connections: {milliseconds(h1_floor["seconds"])}'),
                *[aim(f'faster than {name}', f'{of_peers(name):.0f} ×', f'≥ {least} ×', of_peers(name) >= least,
                      milliseconds(by[name]['seconds']))
                  for name, least in (('rclone webdav', 15), ('rclone http', 15), ('sshfs', 30))],
                Row('git clone and grep', milliseconds(by['git clone, grep']['seconds']), note='git://, without TLS'),
                aim('first ls, TLS and HTTP/2', milliseconds(first['playfs h2']['seconds']), '≤ 225 ms',
                    first['playfs h2']['seconds']['median'] <= 0.225)]
        for name, known in seen.items():
            counts = [len(requests) for requests, _ in known]
            trips = [site_of.round_trips(requests, round_trip / 1e3) for requests, _ in known]
            target = chunks + 2 if name.startswith('grep') else None
            rows.append(Row(f'{name}: requests', f'{min(counts)}–{max(counts)}', f'{target} = chunks + 2' if target else '',
                            max(counts) <= target if target else None, 'by nginx\'s log'))
            rows.append(Row(f'{name}: one after the other', f'{min(trips)}–{max(trips)} round trips after connecting',
                            '3' if name == 'grep h2' else '', max(trips) <= 3 if name == 'grep h2' else None,
                            f'connections: {max(len({r.connection for r in requests}) for requests, _ in known)}'))
            rows.append(Row(f'{name}: FUSE messages', said(known[-1][1])))
        self.report.section(title, self._far_table(results), rows,
                            {'results': results, 'chunks': chunks})

    @staticmethod
    def _far_table(results):
        names = list(dict.fromkeys(name for by in results.values() for name in by))
        rows = [[name] + [milliseconds(by[name]['seconds']) if name in by else '–' for by in results.values()] for name in names]
        return table(['', *results], rows)

    # Again.

    def again(self, rounds):
        """Mounted a second time, with what the first mount left on disk."""
        world, site = self.world, self.site
        home = self.home()
        url, options = f'http://127.0.0.1:{site.plain}', ['refresh=3600']
        first = world.mount(url, home, options)
        subprocess.run(GREP, cwd=self.tree_in(first), check=False)
        first.end()
        seen, may_drop = [], drop_caches()
        objects = home / 'cache'

        def warm_pages():
            """Brings the disk cache's own pages back, which those that drop them took: this is about a cache just used."""
            subprocess.run(['sh', '-c', 'find . -type f -exec cat {} + >/dev/null'], cwd=objects, check=True)

        def remounted(drop):
            def run():
                if drop:
                    world.sync()  # or what the first mount wrote would stay
                    drop_caches()
                else:
                    warm_pages()
                mark = site.mark()
                mount = world.mount(url, home, options)
                counted = world.messages(mount.mount)
                took = seconds_of(['grep', '-rF', ABSENT, f'{mount.mount}/projects/{self.project}/head/'], '/', good=(1,))
                time.sleep(0.1)
                seen.append((site.requests_since(mark), world.messages_since(mount.mount, counted)))
                mount.end()
                return took
            return run

        def native():
            drop_caches()
            return seconds_of(GREP, self.source, good=(1,))

        def bare():
            drop_caches()
            floor = peers.passthrough(world, self.source)
            took = seconds_of(GREP, floor.tree, good=(1,))
            floor.end()
            return took

        def read_only():
            """Its messages are what counts: the kernel asks a file system that nobody writes in for no holes."""
            mount = world.mount(url, home, [*options, 'ro'])
            counted = world.messages(mount.mount)
            subprocess.run(['grep', '-rF', ABSENT, f'{mount.mount}/projects/{self.project}/head/'], check=False)
            messages = world.messages_since(mount.mount, counted)
            mount.end()
            return messages

        contenders = {'ext4, pages dropped': native, 'playfs remounted': remounted(False),
                      'playfs remounted, pages dropped': remounted(True), 'floor, pages dropped': bare}
        results = {'grep -r': compare(interleaved(contenders, rounds), 'ext4, pages dropped')}
        by = results['grep -r']
        requests, messages = seen[-1]
        unwritable = read_only()
        rows = [Row('remount, warm disk cache: grep to cold ext4', f'{ratio(by["playfs remounted"]["ratio"])} ×', '≤ 0.75 ×',
                    by['playfs remounted']['ratio']['median'] <= 0.75 if may_drop else None,
                    f'with the disk cache\'s own pages dropped too: {ratio(by["playfs remounted, pages dropped"]["ratio"])} ×'),
                Row('… FUSE messages', f'{sum(messages.values())}: {said(messages)}', '≤ 130', sum(messages.values()) <= 130),
                Row('… FUSE messages with -o ro', f'{sum(unwritable.values())}: {said(unwritable)}', '≤ 130',
                    sum(unwritable.values()) <= 130),
                Row('… requests', f'{max(len(known) for known, _ in seen)}: '
                    + ', '.join(sorted({f'{r.method} {r.uri.split("/")[3]}' for r in requests})), '1 (the head), no chunk',
                    max(len(known) for known, _ in seen) == 1)]
        self.report.section('Remount', comparison(results, contenders, 'ext4, pages dropped'), rows, {'results': results})

    # Mounting, memory, many.

    def mounting(self, rounds=10):
        """From the start of the command to the first answer."""
        world, site = self.world, self.site
        waits, cpu, requests = [], [], 0
        home = self.home()
        for _ in range(rounds):
            mark, start = site.mark(), time.perf_counter()
            mount = world.mount(f'http://127.0.0.1:{site.plain}', home)
            os.listdir(mount.mount)
            waits.append(time.perf_counter() - start)
            cpu.append(mount.cpu_seconds())
            time.sleep(0.1)
            requests = max(requests, len(site.requests_since(mark)))
            mount.end()
        self.report.section('Mounting', rows=[
            Row('mount to first answer: CPU', f'{spread(cpu)["median"] * 1e3:.1f} ms', '≤ 50 ms', spread(cpu)['median'] <= 0.05,
                f'wall {milliseconds(spread(waits))}'),
            Row('… requests', str(requests), '0', requests == 0)])

    def memory(self, projects=100, operations=1_000_000):
        """After a walk over many projects, and over many operations."""
        world, site = self.world, self.site
        record = site.api.record('revisions', self.revision)
        ids = []
        for i in range(projects):
            project = site_of.post(site, 'projects', {'name': f'walk-{i}'})
            revision = site_of.post(site, 'revisions', {
                'project': project, 'parents': [], 'agent': 'bench', 'message': f'walk {i}', 'manifest': record['manifest'],
                'state': {}})
            site_of.patch(site, 'projects', project, {'latest_revision': revision})
            ids.append(project)
        mount = world.mount(site.direct, self.home())
        start = mount.resident_bytes()
        for project in ids:
            subprocess.run(['grep', '-rF', ABSENT, f'{mount.mount}/projects/{project}/head/'], check=False,
                           stdout=subprocess.DEVNULL)
        walked = mount.resident_bytes()
        tree = pathlib.Path(mount.mount) / 'projects' / ids[0] / 'head'
        done, sizes = 0, []
        step = operations // 10
        while done < operations:
            world.storm('new-missing', tree, step)
            drop_caches(2)  # so that forgetting is among the operations
            done += step
            sizes.append(mount.resident_bytes())
        grown = (sizes[-1] - sizes[0]) / 2**20
        mount.end()
        self.report.section('Memory', rows=[
            Row(f'resident after walking {projects} projects of 80 files', f'{walked / 2**20:.1f} MB', '≤ 40 MB',
                walked <= 40 * 2**20, f'before: {start / 2**20:.1f} MB; the projects share their chunks'),
            Row(f'growth from {step} to {operations} operations', f'{grown:+.1f} MB', 'none', grown <= 2,
                'missing names, each asked once, all forgotten in between')], data={'sizes': sizes})

    def many(self, projects, revisions):
        """Listing a site with very many projects, and one of them with many revisions."""
        world = self.world
        site = site_of.Site(world)
        site_of.post_many(site, 'projects', [{'name': f'project-{i}'} for i in range(projects - 1)])
        long = site_of.post(site, 'projects', {'name': 'long'})
        site_of.post_chain(site, long, revisions)
        home, url = self.home(), f'http://127.0.0.1:{site.plain}'
        rows = []

        def listing(mount, folder, name, expected, target):
            before, mark = mount.cpu_seconds(), site.mark()
            start = time.perf_counter()
            found = int(world.run('sh', '-c', f'ls -U {mount.mount}/{folder} | wc -l'))
            took = time.perf_counter() - start
            time.sleep(0.2)
            known = site.requests_since(mark)
            asked = collections.Counter(re.sub(r'\?.*|(?<=s/)[^/]+$', '…', r.uri.removeprefix('/.site/data')) for r in known)
            rows.append(Row(f'ls {folder.replace(long, "ID")}: {name}',
                            f'{len(known)} requests, {sum(r.bytes for r in known) / 2**20:.2f} MB',
                            f'≤ {target}', len(known) <= target,
                            f'{took:.2f} s, {mount.cpu_seconds() - before:.2f} s of CPU, resident '
                            f'{mount.resident_bytes() / 2**20:.0f} MB (peak {mount.resident_bytes("VmHWM") / 2**20:.0f}); '
                            f'{found} names, {expected} wanted; {dict(asked)}'))

        def four_times(folder, there, own_names, first_target, add_ten):
            mount = world.mount(url, home, ['refresh=1'])
            listing(mount, folder, 'first', there + own_names, first_target)
            time.sleep(2)
            listing(mount, folder, 'second, after 2 s', there + own_names, 1)
            add_ten()
            time.sleep(2)
            listing(mount, folder, 'with 10 new ones', there + 10 + own_names, 1)
            mount.end()
            mount = world.mount(url, home, ['refresh=1'])
            listing(mount, folder, 'after a remount', there + 10 + own_names, 1)
            mount.end()

        # Besides the projects there are by-name and new. Pages of a hundred, and the last may have to be seen to be empty.
        four_times('projects', projects, 2, projects // 100 + 2,
                   lambda: site_of.post_many(site, 'projects', [{'name': f'new-{i}'} for i in range(10)]))
        # The project's record, a few parents (a short history needs no more), and then the pages.
        four_times(f'projects/{long}/revisions', revisions, 0, 1 + 16 + revisions // 100 + 1,
                   lambda: site_of.post_chain(site, long, 10))
        self.report.section(f'{projects} projects, and {revisions} revisions of one', rows=rows)

    def hanging(self, readers=50):
        """Fifty readers wait for a service that does not answer; what is cached must not notice."""
        world, site = self.world, self.site
        port = site_of.free_port()
        link = world.start(world.driver('delay'), port, site.service, 0)
        link.until(lambda: site_of.answers(port), 'the link answers')
        other, _ = world.import_tree(site.direct, self._other_tree(), 'other')
        mount = world.mount(f'http://127.0.0.1:{port}', self.home(), ['noprefetch', 'refresh=3600'])
        cached = self.tree_in(mount)
        subprocess.run(GREP, cwd=cached, check=False, stdout=subprocess.DEVNULL)
        waiting_in = pathlib.Path(mount.mount) / 'projects' / other / 'head'
        files = [path for path in waiting_in.rglob('*') if path.is_file() and path.stat().st_size > 12_288]

        def storm():
            drop_caches(2)  # or the kernel would answer alone
            return world.storm('stat', cached, 20)

        quiet = [storm() for _ in range(9)]
        os.kill(link.pid, signal.SIGSTOP)  # what is connected stays connected, and nothing answers any more
        # A shell starts what runs in its background with SIGINT ignored, and so would these be.
        stuck = [subprocess.Popen(['env', '--default-signal=INT', 'cat', files[i % len(files)]], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) for i in range(readers)]
        time.sleep(1)
        waiting = sum(each.poll() is None for each in stuck)
        loud = [storm() for _ in range(9)]
        for each in stuck:
            each.send_signal(signal.SIGINT)
        start = time.perf_counter()
        ended = 0
        for each in stuck:
            try:
                each.wait(10)
                ended += 1
            except subprocess.TimeoutExpired:
                each.kill()
        interrupted = time.perf_counter() - start
        start = time.perf_counter()
        mount.end()
        unmounted = time.perf_counter() - start
        os.kill(link.pid, signal.SIGCONT)
        slower = spread(loud)['median'] / spread(quiet)['median']
        self.report.section('A hanging service', rows=[
            Row(f'stat storm over a cached project, {waiting} readers waiting elsewhere', f'{slower:.2f} × its usual time',
                'usual', slower <= 1.25, f'{milliseconds(spread(quiet))} before, {milliseconds(spread(loud))} meanwhile'),
            Row('readers that an interrupt ended', f'{ended} of {readers}, in {interrupted:.2f} s', 'all', ended == readers),
            Row('unmounting then', f'{unmounted:.2f} s')])

    def _other_tree(self):
        """As large as the tree, and nothing of it in the cache."""
        root = make(self.world.new_folder('other'))
        for path in root.rglob('*'):
            if path.is_file():
                path.write_bytes(path.read_bytes().swapcase())
        return root


SECTIONS = ('warm', 'far', 'slow-start', 'again', 'mounting', 'memory', 'many', 'hanging')


def run(world, report, sections, rounds, scale):
    reading = Reading(world, report, rounds)
    jobs = {'warm': reading.warm, 'far': reading.far, 'slow-start': lambda: reading.far(slow_start=True, rounds=3),
            'again': lambda: reading.again(rounds), 'mounting': reading.mounting,
            'memory': lambda: reading.memory(operations=1_000_000 // scale),
            'many': lambda: reading.many(100_000 // scale, 1_000 // scale), 'hanging': reading.hanging}
    return [(name, jobs[name]) for name in sections]
