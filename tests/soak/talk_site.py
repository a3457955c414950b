"""An agent's place in a conversation (talk_run.py)."""
import collections
import json
import time

import actor
import proxy
import talk_calls
from coherence_trouble import Trouble
from talk_world import CLOSED, UNKNOWN, records_in

# Agents, and the home of each: two share one, and with it caches and state.
AGENTS = {'ann': 'desk', 'eve': 'desk', 'bob': 'laptop'}
PATIENCE = 3          # seconds that a call may take before the trouble is ended for it
ANSWERED_WITHIN = 90  # seconds after that

actor.CALLS.update(talk_calls.CALLS)


class Site:
    """An agent's place: a mount that comes and goes, the proxy before it, and processes that use it."""

    def __init__(self, run, agent, actors):
        self.run, self.agent, self.home = run, agent, AGENTS[agent]
        self.who = f'{run.number}/{self.home}/{agent}'
        *self.writers, self.reader = actors
        self.busy = {}  # by process: [what is called with its answer, since when]
        self.trouble, self.proxy = Trouble(None), proxy.CountingProxy(run.service.port)
        self.proxy.fate, self.proxy.tells = self.trouble.fate, True
        self.directory = run.case.home / f'{run.number}-{agent}'
        self.directory.mkdir()
        self.mount, self.life, self.up_at = None, 0, 0
        self.errors = collections.defaultdict(collections.Counter)  # lines of errors.ndjson, by life and path
        self.repeatable = []
        self.up()

    def __repr__(self):
        return f'{self.agent} (mount {self.life})'

    def path(self, below):
        return f'{self.directory}/{below}'

    # Calls.

    def begin(self, process, done, name, *words):
        """Calls and goes on; `done` gets the answer later."""
        self.collect(process)
        self.busy[process] = [done, time.monotonic()]
        process.begin(name, *words)

    def poll(self):
        for process in list(self.busy):
            if process.has_answered(0):
                self.collect(process)

    def collect(self, process):
        """Waits for the answer. If that takes long because of a trouble, the trouble ends."""
        if process not in self.busy:
            return
        done, since = self.busy.pop(process)
        if not process.has_answered(PATIENCE):
            self.run.calm_down()
            if not process.has_answered(ANSWERED_WITHIN):
                raise AssertionError(f'{self}: hangs since {time.monotonic() - since:.0f} s')
        done(process.answer())

    def collect_all(self):
        for process in list(self.busy):
            self.collect(process)

    def ask(self, name, *words):
        """Calls and waits."""
        answers = []
        self.begin(self.reader, answers.append, name, *words)
        self.collect(self.reader)
        return answers[0]

    def writer(self):
        """One that has nothing to do, or else the one that has been busy for longest."""
        free = [each for each in self.writers if each not in self.busy]
        return free[0] if free else min(self.writers, key=lambda each: self.busy[each][1])

    # Mounts.

    def up(self):
        # The processes shall not be in the way of a mount over a dead one.
        self.life += 1
        self.mount = self.run.case.mount(self.proxy.url, self.who, ('refresh=1',), at=self.directory)
        self.up_at = time.monotonic()

    def down(self, is_killed):
        if not is_killed:
            self.collect_all()
        self.ask('follow_no_more')
        self.read_errors()
        mount, self.mount = self.mount, None
        if is_killed:
            mount.kill()
            self.collect_all()
            self.ask('follow_no_more')
        else:
            mount.unmount()
        told = [each for each in self.journal() if each['told']]
        for text in self.run.texts:
            if text.site is not self or text.life != self.life or text.state != CLOSED:
                continue
            if any(text.token in json.dumps(each) for each in told):
                text.state, text.failed = UNKNOWN, 'failed just before the end'

    def end(self):
        self.trouble.end()
        if self.mount:
            self.mount.end()
        self.proxy.close()

    def read_errors(self):
        """Whether the log could be read."""
        path = self.path('.playfs/errors.ndjson')
        text = self.ask('snapshot', [path], [])[path]
        if isinstance(text, str):
            return False
        self.errors[self.life] = collections.Counter(line['subject'] for line in records_in(text))
        return True

    def kept(self):
        """Texts that were closed so shortly before a kill that the mount did not get to them."""
        state = self.run.case.home / str(self.run.number) / self.home / 'state'
        return [path.read_text() for path in state.rglob('=requests/unsent/*.txt')]

    def journal(self):
        """Requests that this home's mounts have begun and not ended."""
        found = []
        for path in (self.run.case.home / str(self.run.number) / self.home / 'state').rglob('=requests/*.json'):
            try:
                found.append(json.loads(path.read_text().partition('\n')[0]))  # a checksum follows
            except (OSError, ValueError):
                pass  # it has just ended
        return found
