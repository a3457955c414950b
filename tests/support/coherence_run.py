"""Steps that a service, the foreign client that changes it and some mounts take together; and what is claimed of them.

1. After a quiet moment (nothing wrong, though the service may be far away) every view of every mount is what the service
   holds: trees, kinds, modes, sizes, bytes, lists, names. Where head is no revision of the project, a view is of one that
   is, or an error: which one a mount has seen last is its own affair.
2. What is read in between was head at some moment since the mount last had to know: since the last quiet moment, or
   KNOWN_WITHIN ago if nothing was wrong since. A tree in which one directory is held open is one revision's as a whole.
3. No call hangs, and nobody is left in a wait that no signal ends.

Steps (trial.py) name mounts and projects by number, modulo how many there are; a step that makes no sense does nothing.
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
USERS = 2             # of each mount
SETTLED_WITHIN = 45   # seconds, most of which nothing should need
POLLED_EVERY = 0.1
PAUSE = 1000           # seconds; less than a service may ask for
SHORT_DELAY = 0.02     # seconds
MOST_READERS = 1000
IN_USE, LONG_IDLE = 18, 400  # more projects, and seconds, than a mount follows unasked
KNOWN_AT_ONCE = 30    # seconds, for what is here already; half of what a request may take
IDLE_LOOKS = 10       # of which one has to find the machine free
PLAIN = {'hash': 'sha256', 'size': 'bytes', 'tx': 'own', 'place': 'chunks'}


class Run:
    def __init__(self, rig, api, number, http2=None):
        self.rig, self.api, self.number, self.http2 = rig, api, number, http2
        self.port = int(api.origin.rsplit(':', 1)[1])
        self.world, self.sites = World(api), []
        self.names = 0
        # Before there are any threads, which a fork leaves behind.
        self.actors = [actor.Actor('/') for _ in range(MOST_MOUNTS * USERS)]

    def end(self):
        for each in self.actors:
            each.kill()
        for each in self.sites:
            each.end()
        for each in reversed(self.actors):
            each.end()

    def take(self, step):
        name, *words = step
        getattr(self, 'do_' + name)(*words)

    def site(self, number):
        return self.sites[number % len(self.sites)] if self.sites else None

    def project(self, number):
        return self.world.projects[number % len(self.world.projects)] if self.world.projects else None

    # Others.

    def do_project(self, name):
        self.world.create(f'{self.number} {name}')

    def do_publish(self, project, changes, ways):
        if project := self.project(project):
            self.world.publish(project, changes, dict(ways))

    def do_move(self, project, revision):
        """Back to an older revision."""
        project = self.project(project)
        if project and project.trees:
            self.world.move(project, list(project.trees)[revision % len(project.trees)])

    def do_stray(self, project, other):
        """To a revision of another project."""
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
        """A mount of one project shows nothing, not even its root, before it has the tree: not while that cannot be had."""
        site = self.site(site)
        if site and not site.mount and not (site.project and site.trouble.kind):
            site.up(offline)

    def do_command(self, site, project):
        """One that needs no mount, and leaves in the cache what it learned."""
        site, project = self.site(site), self.project(project)
        if site and project and not site.trouble.kind and site.network == (site.proxy.url,):
            self.rig.playfs('ls', '-R', project.id, '--site', site.proxy.url, who=site.who, check=False)

    def do_clear(self, site):
        if site := self.site(site):
            self.rig.playfs('cache', 'clear', who=site.who)

    def do_damage(self, site):
        """The file that the processes with the cache's database share is cut."""
        if site := self.site(site):
            shared = self.rig.home / site.who / 'cache/playfs/records.db-shm'
            if shared.exists():
                os.truncate(shared, 0)

    def do_trouble(self, site, kind, project, collection):
        site = self.site(site)
        if site and (kind != 'limited' or self.rig.clocks):  # which only passes in time
            site.trouble.begin(kind, None if project is None else self.project(project), collection)

    def do_delay(self, site, seconds):
        """How far away the service is, until the next quiet moment has passed. A mount that can keep nothing reads all
        anew at each look: it is never so far from its service that this takes minutes."""
        if site := self.site(site):
            site.trouble.delay = min(seconds, SHORT_DELAY) if site.keeps_little else seconds

    def do_wait(self):
        """Until what is followed has been asked for."""
        time.sleep(4 * REFRESH)

    def do_calm(self, site):
        site = self.site(site)
        if site and site.mount:
            site.trouble.end()
            site.collect()

    # Looks.

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
        """A control file, whose lookup may have to ask."""
        site, project = self.site(site), self.project(project)
        if site and site.mount and project and not site.project:
            site.begin(lambda *_: None, 'read', f'{site.directory}/projects/{project.id}/{name}')
            self.wait_if_well(site)

    def do_scribble(self, site, project, revision):
        """A store into a file of a revision, by way of a mapping."""
        site, project = self.site(site), self.project(project)
        if not site or not site.mount or not project or not project.trees or site.project:
            return
        revision = list(project.trees)[revision % len(project.trees)]
        files = [path for path, (word, data) in project.files(revision).items() if word != 'link' and len(data) > 3]
        if files:
            site.begin(lambda *_: None, 'scribble', f'{site.place(project, revision)}/{files[0]}')
            self.wait_if_well(site)

    def do_new(self, site, name):
        """A project made through the mount: it is there when the call has returned."""
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

    # Trouble of which more is claimed.

    def do_stall(self, site):
        """What is known is shown at once while nothing is answered, again and again."""
        site = self.site(site)
        if not site or site.project or not site.is_well() or site.agreed < 0 or site.is_offline:
            return
        site.trouble.begin('hang')
        time.sleep(2 * REFRESH)  # nothing that was shown before is fresh any more
        for _ in range(2):
            site.begin(lambda seen, *_: seen if isinstance(seen, str) else None, 'listdir', f'{site.directory}/projects')
            site.collect(KNOWN_AT_ONCE)
            for project in self.world.projects[:2]:
                site.begin(lambda *_: None, 'listdir', f'{site.directory}/projects/{project.id}/')
                site.collect(KNOWN_AT_ONCE)
        site.trouble.end()

    def do_crowd(self, site, project, readers):
        """Many wait for the content of one project; who is killed ends."""
        with self.a_project_that_hangs(site, project, 'file_chunks') as (site, project):
            if not site:
                return
            # Content that nobody has yet, of a size that is believed: who reads it waits in read(2), not before. Of several
            # pages, lest the kernel reads it without reading ahead once many wait. Other files make room in the manifest.
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
        """A lookup waits in the tree of a project whose head then moves: the kernel is to drop names there."""
        with self.a_project_that_hangs(site, project, 'file_chunks') as (site, project):
            if not site:
                return
            before = project.own_head
            # A size that nobody believes: who looks the file up waits for its content.
            self.world.publish(project, (('latch', 'file', 300, 2 * len(project.trees)),), {**PLAIN, 'hash': 'short'})
            time.sleep(4 * REFRESH)  # until it is followed
            site.begin(lambda *_: None, 'status', f'{site.place(project, "work")}/latch', 'size')
            time.sleep(2 * REFRESH)
            self.world.move(project, before)
            time.sleep(4 * REFRESH)  # it is told first
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
        """One that changes meanwhile is shown as fresh as always."""
        if others := [each for each in self.world.projects if each is not project and each.trees and not each.head.alien]:
            self.world.publish(others[0], (('fresh', 'file', 5000, 2 * len(others[0].trees)),), PLAIN)
            self.settle({site: [others[0]]})

    def do_jump(self, site, seconds):
        """The machine slept for so long."""
        if site := self.site(site):
            self.rig.jump(site.who, seconds)

    def do_idle(self, site, project):
        """Nobody looked for minutes, and then at once sees what became head a moment ago. A look may find the machine so
        busy that it shows what it knew, but not each of several."""
        site, project = self.site(site), self.project(project)
        if not site or site.project or not site.is_well() or site.is_offline or not project or not self.rig.clocks:
            return
        seen = []
        for turn in range(IDLE_LOOKS):
            others = [f'{site.directory}/projects/{each}/project.json' for each in self.rig.others[:IN_USE]]
            site.begin(lambda *_: None, 'survey', {each: ('read', each) for each in others})
            site.collect()
            self.rig.jump(site.who, LONG_IDLE)
            self.world.publish(project, ((f'idle{turn}', 'file', 5, 2 * len(project.trees)),), PLAIN)
            time.sleep(2 * REFRESH)  # the head of before is old, for the mount and for the kernel
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
                self.rig.jump(site.who, PAUSE)  # to when a mount looks whether it is still to be as slow as it was told
                site.trouble.was_limited = False
            if not site.mount:
                site.up()
            site.collect()
        self.settle({site: self.world.projects for site in self.sites})
        for site in self.sites:
            site.trouble.delay = 0
            self.rig.eventually(lambda: not site.stuck(), f'{site}: in an endless wait: {site.stuck()}', ANSWERED_WITHIN)

    def settle(self, left):
        """Waits until each mount shows these projects as the service has them. What a look finds that began in time is
        not held against a mount: it may have taken long because the machine is busy, or the service far away."""
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
            # Whatever it is that is known: all views of it are the same.
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
