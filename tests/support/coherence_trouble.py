"""Failures between one mount and the service, as the fates of requests that a proxy asks for.

Trouble affects everything, or the records of one project, or of one collection. It never tells an undetectable lie:
content changes only if its SHA-256 was promised, and records only so that they become unreadable. A revision that is
missing while head does not contain it looks like a service restored from a backup: a mount then keeps what it has of
it, as staged changes, so this trouble leaves such revisions alone.
"""
import json
import math
import re
import threading
import time

LIMITED = 429, '{"error": "slow down", "code": "rate_limited", "message": "slow down", "retry_after": 86400}'
FAILED = 500, '{"error": "broken", "code": "internal", "message": "broken"}'
MISSING = 404, '{"error": "none", "code": "not_found", "message": "none"}'
LONGEST = 120  # seconds that a request may hang


class Trouble:
    def __init__(self, world):
        self.world, self.kind, self.project, self.collection = world, None, None, None
        self.delay, self.was_limited = 0, False
        self.times = []  # [begin, end, the affected project or None]
        self.over, self.hung = threading.Event(), threading.Semaphore(0)  # released once per hanging request

    def begin(self, kind, project=None, collection=None):
        self.end()
        self.times.append([time.monotonic(), math.inf, project])
        self.over, self.hung = threading.Event(), threading.Semaphore(0)
        self.project, self.collection, self.kind = project, collection, kind
        self.was_limited |= kind == 'limited'

    def end(self):
        """Ends all but the latency: a healthy service may be far away."""
        self.kind = None
        self.over.set()
        if self.times:
            self.times[-1][1] = min(self.times[-1][1], time.monotonic())

    def concerns(self, path):
        collection, _, record = path.partition('/.site/data/')[2].partition('?')[0].partition('/')
        return (self.collection is None or self.collection == collection) and \
            (self.project is None or self.world.owners.get(record) == self.project.id)

    def fate(self, request):
        method, path = request.split(' ')
        over, kind = self.over, self.kind
        time.sleep(self.delay)
        if kind is None or not self.concerns(path):
            return None
        if kind == 'hang':
            self.hung.release()
            over.wait(LONGEST)
            return None
        if kind == 'drop':
            return 'lose reply'
        if method != 'GET' or kind == 'missing' and self.world.is_beside_head(path.rpartition('/')[2]):
            return None
        return {'limited': LIMITED, 'failed': FAILED, 'missing': MISSING}.get(kind) or getattr(self, kind)(path)

    def answer(self, path):
        status, document = self.world.api.request('GET', path.partition('/.site/data')[2])
        return status, json.dumps(document)

    def cut(self, path):
        status, text = self.answer(path)
        return status, text[:len(text) * 2 // 3]

    def wrong(self, path):
        """Alters letters in chunks with a promised SHA-256."""
        status, text = self.answer(path)
        if '/file_chunks/' in path and re.search(r'"hash": "[0-9a-f]{64}"', text):
            before, _, content = text.partition('"content": "')
            return status, before + '"content": "' + content.replace('b', 'c', 1)
        return status, text

    def other(self, path):
        """Answers with another record's id. Not for lists: nobody could tell a list of strangers from the right one."""
        status, text = self.answer(path)
        if path.count('/') < 4:
            return status, text
        return status, re.sub(r'"id": "([^"]*)"', lambda found: f'"id": "{found[1][::-1]}"', text)
