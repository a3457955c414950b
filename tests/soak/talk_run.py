"""Steps of a conversation: agents in mounts of their own write, correct and mark; mounts and the service are killed, and
the network fails. A step never waits for its outcome unless it has to, so that others happen meanwhile.

Claims (talk_claims.py checks those about a quiet moment):
1. A text that was acknowledged (a write of JSON that succeeded, an outcome that says so, or a plain text that was closed
   without an error in errors.ndjson) is in the service exactly once; any other at most once, however often the same
   is written until it succeeds.
2. After a quiet moment each mount shows what the service has, each inbox what is for its agent, and each mark is where it
   was put, by that agent alone.
3. Bytes that were read through a descriptor never change.
4. Each failed request has a line in errors.ndjson.
5. No call hangs.

Steps (trial.py) name sites, threads and messages by number, modulo how many there are; an impossible step does nothing.
"""
import collections
import json
import pathlib
import time
import urllib.request

import actor
import fixture
from service import Service
from talk_claims import Claims
from talk_site import AGENTS, ANSWERED_WITHIN, Site
from talk_world import ACKNOWLEDGED, CLOSED, UNKNOWN, Text, Value, records_in

# Whoever repeats a text after a crash does so within the time in which that is the same text.
REPEATED_WITHIN = 40   # seconds after the next mount
EXPLAINED_WITHIN = 10  # seconds
WRITERS = 2            # processes per mount
FOLLOWED_THREADS = 3
# Failures after which nobody knows whether the service did it.
UNDECIDED = ('EHOSTUNREACH', 'EIO', 'ETIMEDOUT', 'EAGAIN', 'EINTR', 'ENOTCONN', 'ECONNABORTED', 'EREMOTEIO')
OF_THE_DEAD = ('ENOTCONN', 'ECONNABORTED')
STEWARD = 'the-key-of-the-steward'


def entry_of(name):
    """The id of the record, of a file in inbox/ or maildir/ (SECONDS.ID_UPDATED.SITE:2,FLAGS)."""
    return name.removesuffix('.json') if name.endswith('.json') else name.split('.')[1].rpartition('_')[0]


class Run(Claims):
    def __init__(self, case, number):
        self.case, self.number = case, number
        self.texts, self.values, self.in_change, self.moves = [], {}, set(), 0
        self.marks = {agent: {} for agent in AGENTS}    # by entry: the folder that it is in; None: unknown
        self.flagged = {agent: {} for agent in AGENTS}  # the same of letters in maildir/, by their file's name
        # Before any threads exist: fork() does not copy them.
        self.actors = [actor.Actor('/') for _ in AGENTS for _ in range(WRITERS + 1)]
        secret = case.home / 'steward'
        secret.write_text(STEWARD + '\n')
        secret.chmod(0o600)
        self.service = Service(case, f'store-{number}', ('--steward-key', str(secret)))
        self.api, self.is_served = case.api_of(self.service), True
        self.threads, self.messages, self.mails, self.answered = [], [], [], set()
        self.handles = {}  # the records of agents
        # Of messages and threads, as they were at the last quiet moment, or first.
        self.bodies, self.mentioned, self.authors, self.titles = {}, {}, {}, {}
        self.named = set()  # who was mentioned by an edit since then, and where
        self.sites, left = [], list(self.actors)
        for agent in AGENTS:
            self.sites.append(Site(self, agent, [left.pop() for _ in range(WRITERS + 1)]))
            record = self.api.create('agents', handle=agent, about='new here')
            self.handles[agent] = record['id']
        for kind in ('discussion', 'help'):
            self.do_outside_thread(kind)

    def __str__(self):
        states = collections.Counter(each.state for each in self.texts)
        return (f'{len(self.messages)} messages, {len(self.texts)} texts ({dict(states)}), {len(self.values)} changed, '
                f'{self.moves} moved, {sum(site.life - 1 for site in self.sites)} remounts, {len(self.service.times)} restarts')

    def end(self):
        actor.end_all(self.actors, self.sites)
        self.service.end()

    def take(self, step):
        name, *words = step
        getattr(self, 'do_' + name)(*words)
        for site in self.sites:
            site.poll()
            if site.mount and site.reader not in site.busy:
                self.look_on(site)

    def look_on(self, site):
        """`tail -F` of what grows."""
        names = [f'threads/{each}/{name}' for each in self.threads[:FOLLOWED_THREADS]
                 for name in ('messages.md', 'messages.ndjson', 'thread.mbox')]

        def done(answer):
            if answer[0]:
                raise AssertionError(f'{site}: {answer[0]}')

        site.begin(site.reader, done, 'follow', [site.path(each) for each in (*names, 'inbox/messages.ndjson')])

    def site(self, number):
        mounted = [each for each in self.sites if each.mount]
        return mounted[number % len(mounted)] if mounted else None

    def token(self, of):
        return f'{of}{self.number}n{len(self.texts)}z'

    # Texts.

    def write(self, site, path, collection, words, pieces, is_plain, is_read):
        """`words` makes what is written of a token."""
        token = self.token(collection[0])
        text = Text(token, site, path, collection, words(token))
        self.texts.append(text)
        self.send(text, pieces, is_plain, is_read)

    def send(self, text, pieces, is_plain, is_read):
        site = text.site

        def done(said):
            outcome = said['outcome'] or {}
            is_mine = text.token in json.dumps(outcome)
            if is_plain and said['closed'] and text.state == UNKNOWN:
                text.state, text.closed, text.failed = CLOSED, said['closed'], None
            if 'id' in outcome and is_mine:
                self.learn(text, outcome)
            if 'id' in outcome and is_mine or not is_plain and said['closed']:
                text.state, text.failed = ACKNOWLEDGED, None
            elif said['why'] and not said['closed']:
                text.failed = said['why']
                # What was not complete was not sent, and may be begun anew.
                text.is_repeatable = not is_plain
                if text.is_repeatable:
                    site.repeatable.append(text)
                self.explain(site, text.path, said)

        site.begin(site.writer(), done, 'post', site.path(text.path), text.words, pieces, is_read)

    def learn(self, text, outcome):
        """New records that later steps may refer to."""
        if text.collection == 'threads':
            self.threads.append(outcome['id'])
        elif text.collection == 'messages':
            self.messages.append((outcome['thread'], outcome['id']))
            self.bodies[outcome['id']], self.mentioned[outcome['id']] = outcome['body'], outcome['mentions']
            self.authors[outcome['id']] = outcome['agent']
        else:
            self.mails.append(outcome['id'])

    def explain(self, site, path, said):
        """What failed in a living mount has its reason in the log; if it is not the request, then a directory above."""
        end, log = time.monotonic() + EXPLAINED_WITHIN, site.path('.playfs/errors.ndjson')
        names = {path} | (set() if said['opened'] else {str(each) for each in pathlib.PurePath(path).parents})
        while said['why'] not in OF_THE_DEAD and site.mount:
            text = site.ask('snapshot', [log], [])[log]
            if isinstance(text, str) or names & {line['subject'] for line in records_in(text)}:
                return
            if time.monotonic() > end:
                raise AssertionError(f'{site}: {path}: {said}, of which errors.ndjson has nothing: {text.decode()}')
            time.sleep(0.05)

    def do_thread(self, site, kind, way):
        if not (site := self.site(site)):
            return
        words = (lambda token: f'{token}\n') if way == 'plain' else lambda token: json.dumps(
            {'title': token, 'kind': kind, 'body': f'it begins with {token}'})
        self.write(site, 'threads/new', 'threads', words, 1, way == 'plain', True)

    def do_reply(self, site, thread, parent, mentions, way):
        """`way`: JSON, which may answer a message, in several pieces; or plain text, closed and left, or read."""
        site, thread = self.site(site), self.threads[thread % len(self.threads)]
        if not site:
            return
        said = ''.join(f' @{each}' for each in mentions)
        path, here = f'threads/{thread}/reply', [each for of, each in self.messages if of == thread]
        above = {'parent': here[parent % len(here)]} if here and parent is not None else {}
        words = (lambda token: json.dumps({'body': f'{token}{said}\nand more', **above})) if way == 'json' else (
            lambda token: f'{token}{said}\n')
        self.write(site, path, 'messages', words, 3 if way == 'json' else 1, way != 'json', way != 'left')

    def do_burst(self, site, thread, count, mentions):
        """What a loop in a shell does."""
        for _ in range(count):
            self.do_reply(site, thread, None, mentions, 'left')

    def do_mail(self, site, way):
        if not (site := self.site(site)):
            return
        words = (lambda token: f'{token}\n') if way == 'plain' else lambda token: json.dumps(
            {'subject': 'a question', 'body': token, 'kind': 'question'})
        self.write(site, 'mail/new', 'domain_mail', words, 1, way == 'plain', True)

    def do_again(self, site):
        """Repeats what failed, while that is the same text."""
        site = self.site(site)
        if site and site.repeatable:
            text = site.repeatable.pop()
            is_known_here = text.life == site.life - 1 and time.monotonic() < site.up_at + REPEATED_WITHIN
            if text.life == site.life or is_known_here:
                self.send(text, 1, False, True)

    # What is there already.

    def change(self, site, path, key, value, before, then=lambda is_certain: None):
        """Writes one field to a record's file. One at a time for each record: of two nobody knows which was last."""
        if key in self.in_change:
            return
        self.in_change.add(key)
        known = self.values.setdefault(key, Value(before))

        def done(said):
            self.in_change.discard(key)
            if said['closed']:
                known.known, known.perhaps = value, []
                then(True)
                return
            if said['why'] in UNDECIDED:
                known.perhaps.append(value)
                then(False)
            self.explain(site, path, said)

        site.begin(site.writer(), done, 'post', site.path(path), json.dumps({key[2]: value}), 1, False)

    def do_correct(self, site, message, number):
        site = self.site(site)
        if site and self.messages:
            thread, message = self.messages[message % len(self.messages)]
            before = self.bodies[message]
            value = before.split('\n')[0].partition(' corrected')[0] + f' corrected {number}'
            self.change(site, f'threads/{thread}/messages/{message}.json', ('messages', message, 'body'), value, before)

    def do_name(self, site, message, agent):
        """An edit that mentions somebody, which brings the message to that inbox (again)."""
        site = self.site(site)
        if site and self.messages:
            thread, message = self.messages[message % len(self.messages)]
            before, key = self.mentioned.get(message, []), ('messages', message, 'mentions')
            # An edit that withdraws a mention is no step: what was for somebody stays in that inbox.
            is_open = key in self.in_change or (key in self.values and self.values[key].perhaps)
            if agent in before or is_open or self.authors[message] == agent:
                return

            def done(is_certain):
                self.marks[agent]['inbox', message] = 'new' if is_certain else None
                self.named.add((agent, message))
                if is_certain:
                    self.mentioned[message] = [*before, agent]

            self.change(site, f'threads/{thread}/messages/{message}.json', key, [*before, agent], before, done)

    def do_title(self, site, thread, number):
        if site := self.site(site):
            thread = self.threads[thread % len(self.threads)]
            if thread in self.titles:
                title = self.titles[thread]
                self.change(site, f'threads/{thread}/thread.json', ('threads', thread, 'title'),
                            title.partition(' titled')[0] + f' titled {number}', title)

    def do_profile(self, site, number):
        if site := self.site(site):
            key = 'agents', self.handles[site.agent], 'about'
            self.change(site, f'agents/{site.agent}.json', key, f'about {number}', 'new here')

    def do_mark(self, site, which, count, is_back):
        if site := self.site(site):
            self.move(site, 'inbox', *(('seen', 'new') if is_back else ('new', 'seen')), which, count, '')

    def do_flag(self, site, box, which, count):
        if site := self.site(site):
            self.move(site, f'maildir/{box}', 'new', 'cur', which, count, ':2,S')

    def move(self, site, below, source, target, which, count, suffix):
        places = self.flagged[site.agent] if suffix else self.marks[site.agent]

        def done(moved):
            for name, why in moved:
                key = below, entry_of(name)
                if why is None:
                    # It may have been moved before the mount knew of an edit that makes it new again.
                    places[key] = None if (site.agent, key[1]) in self.named and below == 'inbox' else target
                    self.moves += 1
                elif why in OF_THE_DEAD:
                    places[key] = None
                elif why == 'ENOENT' and below == 'inbox':
                    raise AssertionError(f'{site}: {below}/{source}/{name} is listed, and cannot be moved')

        # By the same writer always: two that move at once might move the same.
        site.begin(site.writers[0], done, 'move', site.path(below), source, target, which, count, suffix)

    # Strangers, and the steward.

    def do_outside_thread(self, kind):
        if self.is_served:
            self.threads.append(self.api.create('threads', title=f'by a stranger {len(self.threads)}', kind=kind,
                                                agent='stranger')['id'])

    def do_outside(self, thread, mentions):
        if self.is_served:
            thread = self.threads[thread % len(self.threads)]
            body = 'a stranger said' + ''.join(f' @{each}' for each in mentions)
            made = self.api.create('messages', thread=thread, parent='', agent='stranger', body=body, mentions=list(mentions),
                                   links=[])
            self.messages.append((thread, made['id']))
            self.bodies[made['id']], self.mentioned[made['id']], self.authors[made['id']] = body, list(mentions), 'stranger'

    def do_answer(self, mail):
        waiting = [each for each in self.mails if each not in self.answered]
        if self.is_served and waiting:
            mail = waiting[mail % len(waiting)]
            self.answered.add(mail)
            request = urllib.request.Request(
                f'{self.api.base}/domain_mail/{mail}', json.dumps({'owner_reply': 'so it is', 'state': 'answered'}).encode(),
                method='PATCH', headers={'Content-Type': 'application/json', 'Origin': self.api.origin,
                                         'Authorization': f'Bearer {STEWARD}'})
            urllib.request.urlopen(request, timeout=ANSWERED_WITHIN).close()

    # Trouble.

    def do_trouble(self, site, kind):
        site = self.sites[site % len(self.sites)]
        site.trouble.begin(kind)

    def do_delay(self, site, seconds):
        self.sites[site % len(self.sites)].trouble.delay = seconds

    def do_calm(self, site):
        site = self.sites[site % len(self.sites)]
        site.trouble.end()
        site.trouble.delay = 0

    def do_cut(self, site):
        """The connection on which the service tells of changes breaks."""
        self.sites[site % len(self.sites)].proxy.cut()

    def do_mute(self, site):
        """It is silent, until it breaks."""
        self.sites[site % len(self.sites)].proxy.muted = True

    def do_tell(self, site, tells):
        """Whether the service says to this site that it tells of changes."""
        way = self.sites[site % len(self.sites)].proxy
        way.tells = tells
        way.cut()

    def do_serve_kill(self):
        if self.is_served:
            self.is_served = False
            self.service.kill()

    def do_serve_start(self):
        if not self.is_served:
            self.service.start()
            self.is_served = True

    def calm_down(self):
        self.do_serve_start()
        for number, site in enumerate(self.sites):
            self.do_calm(number)
            if site.proxy.muted:
                site.proxy.muted = False
                site.proxy.cut()

    def do_kill(self, site, seconds):
        """Some time after the last step."""
        time.sleep(seconds)
        if site := self.site(site):
            site.down(True)

    def do_unmount(self, site):
        if site := self.site(site):
            site.down(False)

    def do_back(self, site):
        if gone := [each for each in self.sites if not each.mount]:
            gone[site % len(gone)].up()

    def do_glance(self, site, thread):
        """Who looks at a thread sees what is there by then, however busy the others are."""
        site, thread = self.site(site), self.threads[thread % len(self.threads)]
        if not site:
            return
        self.calm_down()
        wanted = {each['id'] for each in map(fixture.fields, self.api.all('messages')) if each['thread'] == thread}
        path, end = site.path(f'threads/{thread}/messages.ndjson'), time.monotonic() + ANSWERED_WITHIN
        while True:
            seen = site.ask('snapshot', [path], [])[path]
            missing = wanted - {each['id'] for each in records_in(seen)} if isinstance(seen, bytes) else seen
            if not missing:
                return
            if time.monotonic() > end:
                raise AssertionError(f'{site}: {path} still lacks {missing}')
            time.sleep(0.1)

    def do_wait(self, seconds):
        time.sleep(seconds)
