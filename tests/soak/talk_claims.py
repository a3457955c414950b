"""What a conversation has to be about a quiet moment."""
import email
import email.policy
import json
import re
import time

from talk_world import ACKNOWLEDGED, CLOSED, KINDS, UNKNOWN, Playground, records_in

SETTLED_WITHIN = 60  # seconds; generous
GROWING = ('messages.md', 'messages.ndjson', 'thread.mbox')


class NotYet(Exception):
    """A difference that may pass."""


def same(wanted, seen, what):
    if wanted == seen:
        return
    if isinstance(seen, dict) or type(seen) is not type(wanted):
        raise NotYet(f'{what}: {seen!r:.1500} instead of {wanted!r:.1500}')
    at = next((n for n, (one, other) in enumerate(zip(wanted, seen)) if one != other), min(len(wanted), len(seen)))
    begin = max(0, at - 60) if isinstance(seen, (bytes, str)) else at
    raise NotYet(f'{what}: {len(seen)} instead of {len(wanted)}; at {at} {seen[begin:at + 200]!r:.900} instead of '
                 f'{wanted[begin:at + 200]!r:.900}')


def letters_of(mbox):
    """Ids and bodies."""
    letters = [email.message_from_bytes(each, policy=email.policy.default)
               for each in re.split(rb'(?m)^From .*\n', mbox)[1:]]
    return [(id_of(each), each.get_content().rstrip('\n')) for each in letters]


def id_of(letter):
    return letter['Message-ID'].strip('<>').split('@')[0]


class Claims:
    def do_quiet(self):
        """Everything has its answer, and what was left behind is sent: then all agree."""
        self.calm_down()
        for site in self.sites:
            self.do_back(0)
            site.collect_all()
        end = time.monotonic() + SETTLED_WITHIN
        while True:
            try:
                playground = self.agree()
                break
            except NotYet as difference:
                if time.monotonic() > end:
                    raise AssertionError(f'after {SETTLED_WITHIN} quiet seconds: {difference}') from None
            time.sleep(0.2)
        for (collection, record, field), value in self.values.items():
            value.known, value.perhaps = playground.by_id[record][field], []
        self.messages = [(each['thread'], each['id']) for each in playground.records['messages']]
        self.bodies, self.mentioned, self.authors = (
            {each['id']: each[field] for each in playground.records['messages']} for field in ('body', 'mentions', 'agent'))
        self.titles = {each['id']: each['title'] for each in playground.records['threads']}
        self.named.clear()
        for text in self.texts:
            if text.state == CLOSED and not playground.times(text):
                text.state = UNKNOWN  # its error has been found

    def agree(self):
        """Raises AssertionError for what is wrong for good, and NotYet."""
        for site in self.sites:
            if left := [each['path'] for each in site.journal() if not each['told']]:
                raise NotYet(f'{site}: still to be sent: {left}')
            if not site.read_errors():
                raise NotYet(f'{site}: errors.ndjson cannot be read')
        playground = Playground(self.api)
        self.find_texts(playground)
        self.find_values(playground)
        for site in self.sites:
            self.find_conversation(site, playground)
            self.find_inbox(site, playground)
            self.find_letters(site, playground)
            self.find_followed(site)
        return playground

    # The service.

    def find_texts(self, playground):
        lost, kept = {}, [each for site in self.sites for each in site.kept()]
        for text in self.texts:
            times = playground.times(text)
            if times > 1:
                raise AssertionError(f'{text} is there {times} times')
            if not times and text.state == ACKNOWLEDGED:
                raise AssertionError(f'{text} is lost')
            if not times and text.state == CLOSED and not any(text.token in each for each in kept):
                lost.setdefault((text.site, text.life, text.path), []).append(text)
            begun = sum(f'{each["body"]} '.startswith(f'it begins with {text.token} ')
                        for each in playground.records['messages'])
            if begun > 1 or begun < (text.state == ACKNOWLEDGED and 'it begins with' in text.words):
                raise AssertionError(f'the first message of {text} is there {begun} times')
        for (site, life, path), texts in lost.items():
            told = site.errors[life][path]
            if told < len(texts):
                raise NotYet(f'{texts} are lost; errors.ndjson had {told} lines about {path}')

    def find_values(self, playground):
        for (collection, record, field), value in self.values.items():
            seen = playground.by_id[record][field]
            if seen not in (value.known, *value.perhaps):
                raise AssertionError(f'{collection}/{record}: {field} is {seen}, not {value.known} or {value.perhaps}')

    # What mounts show.

    def find_conversation(self, site, playground):
        threads = playground.records['threads']
        files = [f'threads/{each["id"]}/{name}' for each in threads for name in (*GROWING, 'thread.json')]
        files += [f'agents/{handle}.json' for handle in self.handles]
        directories = [f'threads/{each["id"]}/messages' for each in threads] + ['mail', 'threads/by-title']
        found = site.ask('snapshot', [site.path(each) for each in files], [site.path(each) for each in directories])
        seen = {path.removeprefix(f'{site.directory}/'): data for path, data in found.items()}
        if failed := {path: data for path, data in seen.items() if isinstance(data, str)}:
            raise NotYet(f'{site}: {failed}')
        for thread in threads:
            place, messages = f'threads/{thread["id"]}', playground.in_thread[thread['id']]
            what = f'{site}: {place}'
            same(playground.for_people(thread), seen[f'{place}/messages.md'], f'{what}/messages.md')
            same(playground.for_programs(thread), records_in(seen[f'{place}/messages.ndjson']), f'{what}/messages.ndjson')
            same([(each['id'], each['body']) for each in messages], letters_of(seen[f'{place}/thread.mbox']),
                 f'{what}/thread.mbox')
            same(sorted(f'{each["id"]}.json' for each in messages), seen[f'{place}/messages'], f'{what}/messages')
            same(thread, json.loads(seen[f'{place}/thread.json']), f'{what}/thread.json')
        same(sorted({each['title'] for each in threads}), seen['threads/by-title'], f'{site}: threads/by-title')
        same(sorted([*(f'{each["id"]}.json' for each in playground.records['domain_mail']), 'new']), seen['mail'],
             f'{site}: mail')
        for handle, record in self.handles.items():
            same(playground.by_id[record], json.loads(seen[f'agents/{handle}.json']), f'{site}: agents/{handle}.json')

    def find_inbox(self, site, playground):
        wanted = playground.inbox(site.agent)
        lines, *folders = site.ask('snapshot', [site.path('inbox/messages.ndjson')],
                                   [site.path(f'inbox/{each}') for each in ('new', 'seen')]).values()
        if isinstance(lines, str) or any(isinstance(each, str) for each in folders):
            raise NotYet(f'{site}: the inbox cannot be read')
        # One that an edit brought again is there again.
        same(sorted(wanted), sorted({each['id'] for each in records_in(lines)}), f'{site}: inbox/messages.ndjson')
        places = [(name.removesuffix('.json'), folder) for folder, names in zip(('new', 'seen'), folders) for name in names]
        self.find_places(site, 'inbox', wanted, places, self.marks[site.agent])

    def find_places(self, site, box, wanted, places, marks):
        """Each entry is in one folder, where it was put."""
        same(sorted(wanted), sorted(entry for entry, _ in places), f'{site}: {box}')
        for entry, folder in places:
            put = marks.get((box, entry), 'new')
            if put not in (folder, None):
                raise NotYet(f'{site}: {box}: {entry} is in {folder}, and was put into {put}')
            marks[box, entry] = folder

    def find_letters(self, site, playground):
        of_kind = {each['id']: each['kind'] for each in playground.records['threads']}
        boxes = {kind: {each['id']: each['body'] for each in playground.records['messages']
                        if of_kind[each['thread']] == kind} for kind in KINDS}
        boxes['inbox'] = {each: None for each in playground.inbox(site.agent)}
        boxes['mail'] = {each['id']: None for each in playground.records['domain_mail']}
        for box, wanted in boxes.items():
            folders = {place: site.ask('letters', site.path(f'maildir/{box}/{place}')) for place in ('new', 'cur')}
            if failed := {place: found for place, found in folders.items() if isinstance(found, str)}:
                raise NotYet(f'{site}: maildir/{box}: {failed}')
            letters = [(email.message_from_bytes(data, policy=email.policy.default), folder)
                       for folder, found in folders.items() for data in found.values()]
            self.find_places(site, f'maildir/{box}', wanted, [(id_of(letter), folder) for letter, folder in letters],
                             self.flagged[site.agent])
            bodies = {id_of(letter): letter.get_content().rstrip('\n') for letter, _ in letters}
            for record, body in wanted.items():
                if body is not None:
                    same(body, bodies[record], f'{site}: maildir/{box}: {record}')

    def find_followed(self, site):
        """`tail -F` has seen what is there."""
        paths = [site.path(f'threads/{each}/{name}') for each in self.threads[:3] for name in GROWING]
        for _ in range(2):  # the first opens a file that is new, and the second reads it
            wrong, _ = site.ask('follow', paths)
            if wrong:
                raise AssertionError(f'{site}: {wrong}')
        now = site.ask('snapshot', paths, [])
        for path in paths:
            same(now[path], site.ask('followed', path), f'{site}: what tail -F has read of {path}')
