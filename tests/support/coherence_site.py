"""One mount of a run: its network, its users, and since when it could know what the service holds."""
import contextlib
import math
import os
import time

import coherence_looks  # noqa: F401: brings the calls of actors
import proxy
from coherence_trouble import Trouble

REFRESH = 0.3
# Seconds; very generous, since other tests may occupy the machine.
KNOWN_WITHIN = 30    # for what the service has held all that time
WELL_WITHIN = 6      # after trouble; until then a call may fail
ANSWERED_WITHIN = 200  # more than a request with its retries may take


class Hangs(AssertionError):
    pass


class Site:
    """A mount, by kind: 'full', 'ro', or of one project: 'one', 'one-ro', and 'beside', for the user of the first
    mount."""

    def __init__(self, run, number, kind, options, is_http2, actors):
        self.run, self.number, self.kind, self.actors = run, number, kind, actors
        self.project = run.world.projects[0] if kind not in ('full', 'ro') else None
        beside = run.sites[0] if kind == 'beside' and run.sites else None
        self.who = beside.who if beside else f'run{run.number}-{number}'
        self.trouble, self.proxy, self.network = (beside.trouble, beside.proxy, beside.network) if beside else \
            self.new_network(is_http2)
        self.options = [f'refresh={REFRESH}', *options, *self.network[1:]]
        if kind.endswith('ro'):
            self.options.append('ro')
        if self.project:
            self.options.append(f'project={self.project.id}')
        self.keeps_little = beside.keeps_little if beside else any(each.startswith('cache_size=') for each in options)
        self.gone = []           # [begin, end]: not mounted, or offline
        self.agreed = -math.inf  # when everything was last found correct
        self.waiting = {}        # by actor: since when, and the claim about its answer
        self.mount, self.directory, self.is_offline = None, None, False
        self.up()

    def new_network(self, is_http2):
        """The trouble, the proxy, and the way to it: an address, with the mount options for it."""
        trouble, way = Trouble(self.run.world), proxy.CountingProxy(self.run.port)
        way.fate = trouble.fate
        if not is_http2 or not self.run.http2:
            return trouble, way, (way.url,)
        url, more = self.run.http2.before(way.url)
        return trouble, way, (url, *more)

    # The mount.

    def up(self, offline=False):
        self.mount = self.run.case.mount(self.network[0], self.who, self.options + ['offline'] * offline, self.directory)
        self.directory, self.is_offline = self.mount.directory, offline
        if self.gone and not offline:
            self.gone[-1][1] = time.monotonic()

    def down(self, kill=False):
        if not self.is_offline:
            self.gone.append([time.monotonic(), math.inf])
        self.is_offline = False
        if kill:
            self.agreed = -math.inf  # a killed mount may not have saved what it knew
            self.mount.kill()
        else:
            self.mount.process.terminate()
            if self.mount.process.wait(ANSWERED_WITHIN):
                raise AssertionError(f'{self}: the mount ended with {self.mount.process.returncode}')
        self.mount.end()
        self.mount = None

    def end(self):
        self.trouble.end()
        if self.mount:
            self.mount.end()
        self.proxy.close()

    def __str__(self):
        return f'mount {self.number} ({",".join([self.kind, *self.options])})'

    # What it can know.

    def ill(self, project=None):
        """When something was wrong, (begin, end): with this project, or, if None, with any."""
        return self.gone + [[begin, end] for begin, end, concerned in self.trouble.times
                            if project is None or concerned in (None, project)]

    def is_well(self):
        return self.mount is not None and all(end < math.inf for _, end in self.ill())

    def was_well(self, project, begin, end):
        """Whether nothing was wrong then, nor for long enough before."""
        return not any(first < end and last > begin - WELL_WITHIN for first, last in self.ill(project))

    def knew_at(self, project, now):
        """The moment whose head the mount has to know by now."""
        moment = now - KNOWN_WITHIN
        for begin, end in sorted(self.ill(project), key=lambda each: -each[1]):
            if end > moment:
                moment = min(moment, begin - KNOWN_WITHIN)
        return max(moment, self.agreed)

    # Reads.

    def place(self, project, view):
        """The path of a project's view; None if this mount has none."""
        if self.project:
            return str(self.directory) if project is self.project and view == 'work' else None
        below = {'work': 'work', 'head': 'head'}.get(view, f'revisions/{view}')
        return f'{self.directory}/projects/{project.id}/{below}'

    def begin(self, claim, name, *words):
        """Has an idle user make a call; `claim(answer, begin, end)` checks the answer. None: all are busy."""
        free = [each for each in self.actors if each not in self.waiting]
        if not free or self.mount is None:
            return None
        free[0].begin(name, *words)
        self.waiting[free[0]] = time.monotonic(), claim, (name, *words)
        return free[0]

    def collect(self, limit=ANSWERED_WITHIN, of=None):
        """Waits for the answers, of all users or one, and checks the claims."""
        until = time.monotonic() + limit
        for each in [of] if of else list(self.waiting):
            begin, claim, call = self.waiting[each]
            if not each.has_answered(until - time.monotonic()):
                raise Hangs(f'{self}: {str(call)[:200]} has not ended after {time.monotonic() - begin:.0f} s; it is in '
                            f'{state_of(each.pid)}')
            del self.waiting[each]
            answer = each.answer()
            if told := claim(answer, begin, time.monotonic()):
                raise AssertionError(f'{self}: {str(call)[:200]}: {told}')

    def stuck(self):
        """Threads of the mount and its users in a wait that no signal ends."""
        return [f'{pid} {state_of(pid)}' for pid in (self.mount.process.pid, *(each.pid for each in self.actors))
                if 'D' in state_of(pid)]


def state_of(pid):
    """The states of its threads."""
    states = ''
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            with open(f'/proc/{pid}/task/{thread}/stat', encoding='ascii', errors='replace') as stat:
                states += stat.read().rpartition(')')[2].split()[0]
    return states
