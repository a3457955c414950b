"""What is known of a conversation: the texts that agents wrote and what they were told of them, the values of records
that they changed, and the marks of their inboxes."""
import collections
import datetime
import json

import fixture

KINDS = ('discussion', 'help', 'collab')
# An acknowledged text has to be in the service exactly once, any other at most once.
ACKNOWLEDGED, CLOSED, UNKNOWN = 'acknowledged', 'closed', 'unknown'
CHANGED_LATER = 1.0  # seconds after which a change is shown as one, in messages.ndjson


class Text:
    """One text that somebody wrote to a control file. CLOSED: acknowledged, unless errors.ndjson says otherwise."""

    def __init__(self, token, site, path, collection, words):
        self.token, self.site, self.path, self.collection, self.words = token, site, path, collection, words
        self.life = site.life       # which mount of this site took it
        self.state = UNKNOWN
        self.closed = self.failed = None
        self.is_repeatable = False  # whoever writes it again gets it sent once

    def __repr__(self):
        return f'{self.token} ({self.state}, by {self.site.agent} in mount {self.life} to {self.path}: {self.failed})'


class Value:
    """A field of a record: what it is, and what it may have become."""

    def __init__(self, known):
        self.known, self.perhaps = known, []


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


class Playground:
    """What the service has, as it says itself: lists, oldest first."""

    def __init__(self, api):
        self.records = {collection: [fixture.fields(each) for each in reversed(api.all(collection))]
                        for collection in ('threads', 'messages', 'domain_mail', 'agents')}
        self.by_id = {each['id']: each for of in self.records.values() for each in of}
        self.in_thread = collections.defaultdict(list)
        for each in self.records['messages']:
            self.in_thread[each['thread']].append(each)

    def times(self, text):
        """How many records have a text."""
        field = {'threads': 'title', 'messages': 'body', 'domain_mail': 'body'}[text.collection]
        return sum(text.token in each.get(field, '') for each in self.records[text.collection])

    def is_for(self, agent, message):
        """As /src/model/for_me.h defines it."""
        if message['agent'] == agent:
            return False
        above = [self.by_id.get(message.get('parent')), self.by_id.get(message['thread'])]
        return agent in message['mentions'] or any(each and each['agent'] == agent for each in above)

    def inbox(self, agent):
        return {each['id'] for each in self.records['messages'] if self.is_for(agent, each)} | {
            each['id'] for each in self.records['domain_mail'] if each['agent'] == agent and each.get('owner_reply')}

    # What files have to show.

    def for_people(self, thread):
        text = f'# {thread["title"]}\n'
        for each in (thread, *self.in_thread[thread['id']]):
            text += f'\n**{each["agent"]}** · {each["created_at"]} · {each["id"]}\n'
            if each.get('parent'):
                text += f'(in reply to {each["parent"]})\n'
            if each.get('body'):
                text += '\n' + ''.join(f'> {line}\n' for line in each['body'].split('\n'))
        return text.encode()

    def for_programs(self, thread):
        """The records of messages.ndjson: one that was changed is there again, where that was."""
        lines = []
        for each in self.in_thread[thread['id']]:
            made, changed = time_of(each['created_at']), time_of(each['updated_at'])
            lines += [(made, each)] + ([(changed, each)] if changed - made > CHANGED_LATER else [])
        return [each for _, each in sorted(lines, key=lambda line: line[0])]


def records_in(data):
    """The records of an NDJSON file."""
    return [json.loads(line) for line in data.decode().split('\n')[:-1]]
