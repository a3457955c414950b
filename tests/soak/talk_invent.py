"""Random steps of a conversation (talk_run.py)."""
from talk_world import KINDS

MENTIONED = ('ann', 'bob', 'eve')
MANY = 1000
STEPS = {
    'reply': 40, 'burst': 6, 'thread': 4, 'mail': 4, 'again': 6, 'correct': 10, 'name': 6, 'title': 2, 'profile': 3,
    'mark': 12, 'flag': 8, 'outside': 8, 'answer': 3, 'glance': 6,
    'trouble': 6, 'delay': 2, 'calm': 6, 'cut': 3, 'mute': 2, 'tell': 2,
    'serve_kill': 2, 'serve_start': 6, 'kill': 8, 'unmount': 2, 'back': 16, 'wait': 8,
}


class Inventor:
    def __init__(self, chance):
        self.chance, self.numbers = chance, 0

    def step(self):
        name = self.chance.choices(list(STEPS), STEPS.values())[0]
        return (name, *getattr(self, name, lambda: ())())

    def many(self):
        return self.chance.randrange(MANY)

    def one_of(self, *what):
        return self.chance.choice(what)

    def number(self):
        self.numbers += 1
        return self.numbers

    def mentions(self):
        return tuple(each for each in MENTIONED if self.chance.random() < 0.3)

    def reply(self):
        way = self.one_of('json', 'json', 'left', 'left', 'read')
        return self.many(), self.many(), self.one_of(None, self.many()), self.mentions(), way

    def burst(self):
        return self.many(), self.many(), self.one_of(3, 8), self.mentions()

    def thread(self):
        return self.many(), self.one_of(*KINDS), self.one_of('plain', 'json')

    def mail(self):
        return self.many(), self.one_of('plain', 'json')

    def again(self):
        return self.many(),

    def correct(self):
        return self.many(), self.many(), self.number()

    def name(self):
        return self.many(), self.many(), self.one_of(*MENTIONED)

    def title(self):
        return self.many(), self.many(), self.number()

    def profile(self):
        return self.many(), self.number()

    def mark(self):
        return self.many(), self.many(), self.one_of(1, 4), self.chance.random() < 0.2

    def flag(self):
        return self.many(), self.one_of('inbox', 'mail', *KINDS), self.many(), self.one_of(1, 4)

    def glance(self):
        return self.many(), self.many()

    def outside(self):
        return self.many(), self.mentions()

    def answer(self):
        return self.many(),

    def trouble(self):
        return self.many(), self.one_of('hang', 'drop', 'drop', 'failed')

    def delay(self):
        return self.many(), self.one_of(0.02, 0.3)

    def kill(self):
        return self.many(), self.one_of(0, 0.02, 0.15, 0.15, 0.5)

    def tell(self):
        return self.many(), self.chance.random() < 0.5

    def wait(self):
        return self.one_of(0.02, 0.2, 1.2),

    calm = cut = mute = unmount = back = again
