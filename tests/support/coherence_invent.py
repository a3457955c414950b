"""Random steps for mounts and the service behind them: rounds of trouble, each ending in a quiet moment."""
from model_invent import DEEPEST, NAMES

TROUBLES = ('hang', 'hang', 'drop', 'failed', 'limited', 'missing', 'cut', 'wrong', 'other')
SCOPES = (None, None, 'projects', 'revisions', 'file_chunks')
WEIGHTS = {'publish': 30, 'look': 34, 'file': 6, 'trouble': 9, 'delay': 2, 'calm': 4, 'move': 4, 'stray': 1, 'rename': 4,
           'new': 2, 'command': 3, 'project': 1, 'away': 3, 'back': 5, 'clear': 2, 'damage': 1, 'scribble': 2, 'stall': 0.5, 'crowd': 0.5, 'latch': 0.3,
           'jump': 1, 'idle': 0.5,
           'quiet': 22}


class Inventor:
    """The steps of one run: first mounts and projects, then rounds."""

    def __init__(self, chance, is_http2_there):
        self.chance, self.is_http2_there = chance, is_http2_there
        self.rounds = 0
        self.first = [('project', name) for name in 'abc']
        self.first += [('publish', n, self.changes(), self.ways()) for n in range(3)]
        kinds = [self.chance.choice(('full', 'full', 'full', 'ro')), *self.chance.choices(
            ('full', 'ro', 'one', 'one-ro', 'beside'), k=self.chance.choice((1, 1, 2, 3)))]
        self.first += [('mount', kind, self.chance.choice(((), (), ('cache_size=60000',))),
                        self.is_http2_there and self.chance.random() < 0.5) for kind in kinds]
        self.first += [('quiet',)]

    def step(self, rounds):
        """The next step; None after `rounds` rounds."""
        if self.first:
            return self.first.pop(0)
        if self.rounds == rounds:
            return None
        name = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.rounds += name == 'quiet'
        return (name, *getattr(self, name, tuple)())

    def number(self):
        return self.chance.randrange(12)  # divisible by 2, 3 and 4

    def path(self):
        return '/'.join(self.chance.choices(NAMES, k=self.chance.randint(1, DEEPEST)))

    def changes(self):
        """Changes in model_follow's format."""
        words = ('file', 'file', 'file', 'program', 'link', None)
        return tuple((self.path(), self.chance.choice(words), self.chance.choice((0, 5, 40, 900, 9000)),
                      self.chance.randrange(1 << 32)) for _ in range(self.chance.choice((1, 1, 2, 4))))

    def ways(self):
        tx = self.chance.choice(('own', 'own', 'carried', 'none'))
        return tuple({'hash': self.chance.choice(('sha256', 'sha256', 'short')), 'tx': tx,
                      'size': 'bytes' if tx == 'own' else self.chance.choice(('bytes', 'characters')),
                      'place': self.chance.choice(('inline', 'chunks'))}.items())

    def publish(self):
        return self.number(), self.changes(), self.ways()

    def move(self):
        return self.number(), self.number()

    stray = command = move

    def rename(self):
        return self.number(), self.chance.choice('abcdefgh')

    def project(self):
        return (self.chance.choice('abcdefgh'),)

    def new(self):
        return self.number(), self.chance.choice('xyz')

    def trouble(self):
        return (self.number(), self.chance.choice(TROUBLES), self.chance.choice((None, self.number())),
                self.chance.choice(SCOPES))

    def delay(self):
        return self.number(), self.chance.choice((0, 0.05, 0.35))

    def calm(self):
        return (self.number(),)

    clear = damage = stall = calm

    def away(self):
        return self.number(), self.chance.random() < 0.3

    back = away

    def look(self):
        return self.number(), self.number(), self.chance.choice(('head', 'work', 'work', self.number()))

    def file(self):
        return self.number(), self.number(), self.chance.choice(('revision.json', 'log.ndjson', 'status', 'project.json'))

    def jump(self):
        return self.number(), self.chance.choice((2, 40, 400, 100_000))

    idle = latch = move

    def scribble(self):
        return self.number(), self.number(), self.number()

    def crowd(self):
        return self.number(), self.number(), self.chance.choice((14, 70))
