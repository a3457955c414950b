"""Steps taken together by a service, the foreign client that changes it and some mounts; and the claims about them.

1. After a quiet moment (nothing wrong, though the service may be slow) every view of every mount equals what the
   service holds: trees, kinds, modes, sizes, bytes, lists, names. If head is not a revision of the project, a view
   shows any revision that is, or an error: which one a mount has seen last is not specified.
2. What is read in between was head at some moment since the mount last had to know: since the last quiet moment, or
   since KNOWN_WITHIN ago if nothing has been wrong since. A tree below one directory that is held open is of a single
   revision.
3. No call hangs, and no process is left in a wait that no signal ends.

Steps (trial.py) name mounts and projects by number, modulo how many there are; an impossible step does nothing.
"""
import contextlib
import json
import os
import subprocess
import time

import actor
from coherence_claims import as_seen, differs, is_no_mixture_of, is_none_of
from coherence_site import ANSWERED_WITHIN, REFRESH, Site
from coherence_world import World

MOST_MOUNTS = 4
USERS = 2             # per mount
SETTLED_WITHIN = 45   # seconds; generous
POLLED_EVERY = 0.1
PAUSE = 1000           # seconds; less than a service may demand
SHORT_DELAY = 0.02     # seconds
MOST_READERS = 1000
IN_USE, LONG_IDLE = 18, 400  # more projects, and more seconds, than a mount follows on its own
KNOWN_AT_ONCE = 30    # seconds, for cached data; half of what a request may take
IDLE_LOOKS = 10       # one of them has to find the machine idle enough
PLAIN = {'hash': 'sha256', 'size': 'bytes', 'tx': 'own', 'place': 'chunks'}


class Run:
    def __init__(self, case, api, number, http2=None):
        self.case, self.api, self.number, self.http2 = case, api, number, http2
        self.port = int(api.origin.rsplit(':', 1)[1])
        self.world, self.sites = World(api), []
        self.names = 0
        # Before any threads exist: fork() does not copy them.
        self.actors = [actor.Actor('/') for _ in range(MOST_MOUNTS * USERS)]

    def end(self):
        actor.end_all(self.actors, self.sites)

    def take(self, step):
        name, *words = step
        getattr(self, 'do_' + name)(*words)

    def site(self, number):
        return self.sites[number % len(self.sites)] if self.sites else None

    def project(self, number):
        return self.world.projects[number % len(self.world.projects)] if self.world.projects else None

    # Other clients.

    def do_project(self, name):
        self.world.create(f'{self.number} {name}')

    def do_publish(self, project, changes, ways):
        if project := self.project(project):
            self.world.publish(project, changes, dict(ways))

    def do_move(self, project, revision):
        """Sets head back to an older revision."""
        project = self.project(project)
        if project and project.trees:
            self.world.move(project, list(project.trees)[revision % len(project.trees)])

    def do_stray(self, project, other):
        """Sets head to a revision of another project."""
        project, other = self.project(project), self.project(other)
        if other and other is not project and other.own_head:
            self.world.move(project, other.own_head, alien=True)

    def do_rename(self, project, name):
        if project := self.project(project):
            self.world.rename(project, f'{self.number} {name}')

    # The mounts.

    def do_mount(self, kind, options, is_http2):
        if len(self.sites) < MOST_MOUNTS and (kind in ('full', 'ro') or self.world.projects):
            first = len(self.sites) * USERS
            self.sites.append(Site(self, len(self.sites), kind, list(options), is_http2, self.actors[first:first + USERS]))

    def do_away(self, site, kill):
        site = self.site(site)
        if site and site.mount:
            site.down(kill)

    def do_back(self, site, offline):
        """Remounts. A single-project mount shows nothing, not even its root, without its tree: not while that is
        unavailable."""
        site = self.site(site)
        if site and not site.mount and not (site.project and site.trouble.kind):
            site.up(offline)

    def do_command(self, site, project):
        """Runs a command that needs no mount and leaves what it learned in the cache."""
        site, project = self.site(site), self.project(project)
        if site and project and not site.trouble.kind and site.network == (site.proxy.url,):
            self.case.playfs('ls', '-R', project.id, '--site', site.proxy.url, who=site.who, check=False)

    def do_clear(self, site):
        if site := self.site(site):
            self.case.playfs('cache', 'clear', who=site.who)

    def do_damage(self, site):
        """Truncates the file that processes share for the cache's database."""
        if site := self.site(site):
            shared = self.case.home / site.who / 'cache/playfs/records.db-shm'
            if shared.exists():
                os.truncate(shared, 0)

    def do_trouble(self, site, kind, project, collection):
        site = self.site(site)
        if site and (kind != 'limited' or self.case.clocks):  # which only passes with time
            site.trouble.begin(kind, None if project is None else self.project(project), collection)

    def do_delay(self, site, seconds):
        """Sets the service's latency until after the next quiet moment. Short for a mount that cannot cache: it rereads
        everything each time, which would take minutes."""
        if site := self.site(site):
            site.trouble.delay = min(seconds, SHORT_DELAY) if site.keeps_little else seconds

    def do_wait(self):
        """Waits until followed projects have been polled."""
        time.sleep(4 * REFRESH)

    def do_calm(self, site):
        site = self.site(site)
        if site and site.mount:
            site.trouble.end()
            site.collect()

    # Reads.

    def do_look(self, site, project, view):
        site, project = self.site(site), self.project(project)
        if not site or not site.mount or not project:
            return
        if isinstance(view, int):  # one of its revisions
            if not project.trees:
                return
            view = list(project.trees)[view % len(project.trees)]
        if place := site.place(project, view):
            site.begin(lambda *answer: self.claim_of(site, project, view, *answer), 'tree', place)
            self.wait_if_well(site)

    def wait_if_well(self, site):
        if site.is_well():
            site.collect()

    def claim_of(self, site, project, view, seen, begin, end):
        errors_are_lawful = not site.was_well(project, begin, end)
        if view not in ('head', 'work'):
            return differs(as_seen(project.files(view)), seen, errors_are_lawful)
        revisions, alien = project.shown_between(site.knew_at(project, begin), end)
        trees = [as_seen(project.files(each)) for each in revisions]
        errors_are_lawful |= alien
        if view == 'head':
            return None if isinstance(seen, str) and None in revisions else is_none_of(trees, seen, errors_are_lawful)
        return is_no_mixture_of(trees, seen, errors_are_lawful)

    def do_file(self, site, project, name):
        """Reads a control file, whose lookup may send a request."""
        site, project = self.site(site), self.project(project)
        if site and site.mount and project and not site.project:
            site.begin(lambda *_: None, 'read', f'{site.directory}/projects/{project.id}/{name}')
            self.wait_if_well(site)

    def do_scribble(self, site, project, revision):
        """Stores into a mapping of a revision's file."""
        site, project = self.site(site), self.project(project)
        if not site or not site.mount or not project or not project.trees or site.project:
            return
        revision = list(project.trees)[revision % len(project.trees)]
        files = [path for path, (word, data) in project.files(revision).items() if word != 'link' and len(data) > 3]
        if files:
            site.begin(lambda *_: None, 'scribble', f'{site.place(project, revision)}/{files[0]}')
            self.wait_if_well(site)

    def do_new(self, site, name):
        """Creates a project through the mount: it must be listed when the call returns."""
        site = self.site(site)
        if not site or not site.is_well() or site.kind != 'full':
            return
        self.names += 1
        name, begin, made = f'{self.number} {name}{self.names}', time.monotonic(), {}

        def claim(answer, *_):
            if not answer.startswith('{'):
                return None if not site.was_well(None, begin, begin) else answer
            made.update(json.loads(answer))
            self.world.take_in(made['id'], begin)

        site.begin(claim, 'ask', f'{site.directory}/projects/new', json.dumps({'name': name}))
        site.collect()
        if made:
            site.begin(lambda seen, *_: None if made['id'] in seen else f'it lacks {made["id"]}', 'listdir',
                       f'{site.directory}/projects')
            site.begin(lambda seen, *_: None if isinstance(seen, dict) and seen.get(name) == '../' + made['id'] else
                       f'{name} leads to {seen if isinstance(seen, str) else seen.get(name)}', 'links',
                       f'{site.directory}/projects/by-name')
            site.collect()

    # Trouble with further claims.

    def do_stall(self, site):
        """While nothing responds, cached data is shown at once, repeatedly."""
        site = self.site(site)
        if not site or site.project or not site.is_well() or site.agreed < 0 or site.is_offline:
            return
        site.trouble.begin('hang')
        time.sleep(2 * REFRESH)  # so that nothing shown before is fresh
        for _ in range(2):
            site.begin(lambda seen, *_: seen if isinstance(seen, str) else None, 'listdir', f'{site.directory}/projects')
            site.collect(KNOWN_AT_ONCE)
            for project in self.world.projects[:2]:
                site.begin(lambda *_: None, 'listdir', f'{site.directory}/projects/{project.id}/')
                site.collect(KNOWN_AT_ONCE)
        site.trouble.end()

    def do_crowd(self, site, project, readers):
        """Many processes read one project's content and hang; killing them ends them."""
        with self.a_project_that_hangs(site, project, 'file_chunks') as (site, project):
            if not site:
                return
            # Unfetched content with a trusted size, so that readers block in read(2), not earlier. Several pages long,
            # lest the kernel reads without read-ahead once many wait. The other files go, to make room in the manifest.
            changes = tuple((path, None, 0, 0) for path in project.files(project.own_head)) + tuple(
                (f'crowd{n}', 'file', 5000, 2 * (n + MOST_READERS * len(project.trees))) for n in range(readers))
            self.world.publish(project, changes, PLAIN)
            place = site.place(project, project.own_head)
            crowd = [subprocess.Popen(['cat', f'{place}/crowd{n}'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) for n in range(readers)]
            try:
                self.others_are_fresh(site, project)
            finally:
                for each in crowd:
                    each.kill()
                for each in crowd:
                    each.wait(ANSWERED_WITHIN)
        self.world.publish(project, tuple((path, None, 0, 0) for path, *_ in changes[:-1]), PLAIN)

    def do_latch(self, site, project):
        """A lookup waits in the tree of a project whose head then moves, so the kernel has to drop names there."""
        with self.a_project_that_hangs(site, project, 'file_chunks') as (site, project):
            if not site:
                return
            before = project.own_head
            # An untrusted size: stat waits for the content.
            self.world.publish(project, (('latch', 'file', 300, 2 * len(project.trees)),), {**PLAIN, 'hash': 'short'})
            time.sleep(4 * REFRESH)  # until the mount has followed
            site.begin(lambda *_: None, 'status', f'{site.place(project, "work")}/latch', 'size')
            time.sleep(2 * REFRESH)
            self.world.move(project, before)
            time.sleep(4 * REFRESH)  # until names would have been invalidated
            self.others_are_fresh(site, project)
        site.collect()

    @contextlib.contextmanager
    def a_project_that_hangs(self, site, project, collection):
        site, project = self.site(site), self.project(project)
        if not site or site.project or not site.is_well() or site.is_offline or not project or not project.trees:
            yield None, None
            return
        site.trouble.begin('hang', project, collection)
        try:
            yield site, project
        finally:
            site.trouble.end()

    def others_are_fresh(self, site, project):
        """A project that changes meanwhile is shown as promptly as ever."""
        if others := [each for each in self.world.projects if each is not project and each.trees and not each.head.alien]:
            self.world.publish(others[0], (('fresh', 'file', 5000, 2 * len(others[0].trees)),), PLAIN)
            self.settle({site: [others[0]]})

    def do_jump(self, site, seconds):
        """The machine slept for `seconds`."""
        if site := self.site(site):
            self.case.jump(site.who, seconds)

    def do_idle(self, site, project):
        """After minutes of idleness, the first read sees what became head a moment ago. One read may find the machine
        so busy that it shows old data, but not every one of several."""
        site, project = self.site(site), self.project(project)
        if not site or site.project or not site.is_well() or site.is_offline or not project or not self.case.clocks:
            return
        seen = []
        for turn in range(IDLE_LOOKS):
            others = [f'{site.directory}/projects/{each}/project.json' for each in self.case.others[:IN_USE]]
            site.begin(lambda *_: None, 'survey', {each: ('read', each) for each in others})
            site.collect()
            self.case.jump(site.who, LONG_IDLE)
            self.world.publish(project, ((f'idle{turn}', 'file', 5, 2 * len(project.trees)),), PLAIN)
            time.sleep(2 * REFRESH)  # so that the previous head is stale for mount and kernel
            site.begin(lambda answer, *_: seen.append(answer), 'tree', site.place(project, 'head'))
            site.collect()
            if differs(as_seen(project.files(project.own_head)), seen[-1]) is None:
                return
        raise AssertionError(f'{site}: the first look after idle minutes: ' +
                             differs(as_seen(project.files(project.own_head)), seen[-1]))

    # Quiet.

    def do_quiet(self):
        for site in self.sites:
            site.trouble.end()
            if site.trouble.was_limited:
                self.case.jump(site.who, PAUSE)  # until the mount checks whether its rate limit still applies
                site.trouble.was_limited = False
            if not site.mount:
                site.up()
            site.collect()
        self.settle({site: self.world.projects for site in self.sites})
        for site in self.sites:
            site.trouble.delay = 0
            self.case.eventually(lambda: not site.stuck(), f'{site}: in an endless wait: {site.stuck()}', ANSWERED_WITHIN)

    def settle(self, left):
        """Waits until each mount shows these projects as the service has them. A read that began in time may end late:
        the machine may be busy, or the service slow."""
        until, lists = time.monotonic() + SETTLED_WITHIN, self.world.lists()
        while left:
            told, asked = {}, time.monotonic()

            def claim(site, seen):
                told[site] = self.unlike_the_service(site, left[site], lists, seen)

            users = {}
            for site in left:
                if site.mount.process.poll() is not None:
                    raise AssertionError(f'{site} ended with {site.mount.process.returncode}')
                users[site] = site.begin(lambda seen, *_, site=site: claim(site, seen), 'survey',
                                         self.views(site, left[site]))
            for site in list(left):
                site.collect(of=users[site])
                if told[site] is None:
                    if len(left[site]) == len(self.world.projects) and not site.is_offline:
                        site.agreed = asked
                    del left[site]
            if left and asked > until:
                site = next(iter(left))
                raise AssertionError(f'{site}: not within {SETTLED_WITHIN} s: {told[site]}')
            if left:
                time.sleep(POLLED_EVERY)

    def views(self, site, projects):
        looks = {}
        for project in projects:
            shown = ['work', 'head', *list(project.trees)[-2:-1]]
            looks |= {(project.id, view): ('tree', place) for view in shown if (place := site.place(project, view))}
            if not site.project:
                looks[project.id, 'revisions'] = 'listdir', f'{site.directory}/projects/{project.id}/revisions'
        if not site.project:
            looks['projects'] = 'listdir', f'{site.directory}/projects'
            looks['by-name'] = 'links', f'{site.directory}/projects/by-name'
        return looks

    def unlike_the_service(self, site, projects, lists, seen):
        """The first difference."""
        for project in projects:
            for view in [each[1] for each in seen if each[0] == project.id]:
                found = seen[project.id, view]
                if told := self.unlike(site, project, view, found, seen):
                    return f'{project.id} {view}: {told}'
        if site.project or site.is_offline:
            return None
        for key, wanted in (('projects', {*lists[0], 'new', 'by-name'}), ('by-name', lists[1])):
            found = seen[key]
            if isinstance(found, str):
                return f'{key}: {found}'
            if key == 'projects':
                found = set(found)
            if found != wanted:
                return f'{key}: {list(found ^ wanted if key == "projects" else found.items() ^ wanted.items())[:6]}'
        return None

    def unlike(self, site, project, view, found, seen):
        if site.is_offline:
            # Whatever it knows, all its views must agree.
            head = seen.get((project.id, 'head'))
            if view != 'work' or not isinstance(head, dict):
                return None
            return differs(head, found, errors_are_lawful=True)
        if view == 'revisions':
            wanted = sorted(project.trees)
            return None if sorted(found) == wanted else f'wanted {wanted}, got {found}'
        if view not in ('head', 'work'):
            return differs(as_seen(project.files(view)), found)
        if project.head.alien:
            return is_none_of([as_seen(each) for each in ({}, *project.trees.values())], found, errors_are_lawful=True)
        if view == 'head' and isinstance(found, str) and not project.own_head:
            return None
        return differs(as_seen(project.files(project.own_head)), found)
