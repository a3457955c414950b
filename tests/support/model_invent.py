"""Random calls, mostly valid, on few names, so that they collide."""
NAMES = 'abcde'
DEEPEST = 3
SECOND = 1_000_000_000


def invent(model, chance):
    """The next step for a model: a tuple that replays identically."""
    return Inventor(model, chance).step()


class Inventor:
    def __init__(self, model, chance):
        self.chance, self.paths = chance, [path for path, _ in model.walk()]
        self.files = [path for path, node in model.walk() if node.kind == 'file']
        self.directories = [''] + [path + '/' for path, node in model.walk() if node.kind == 'dir']
        self.base = sorted(model.base)
        self.is_clean = not model.changes()

    def step(self):
        steps = {'create': 8, 'mkdir': 5, 'symlink': 2, 'link': 6, 'unlink': 6, 'rmdir': 3, 'rename': 14, 'chmod': 5,
                 'utimens': 5, 'write': 10, 'truncate': 5, 'open_slot': 4, 'write_slot': 5, 'truncate_slot': 2,
                 'close_slot': 1, 'commit': 4, 'discard': 2, 'publish': 16 if self.is_clean else 0, 'remount': 2, 'kill': 2,
                 'check': 6}
        if len(self.paths) > 30:
            steps.update(create=1, mkdir=1, link=1, unlink=20, rmdir=10)
        name = self.chance.choices(list(steps), list(steps.values()))[0]
        if name in ('commit', 'discard', 'remount', 'kill', 'check'):
            return (name,)
        if name == 'publish':
            return name, self.chance.choice(('mounted', 'mounted', 'away')), self.revision()
        return (name, self.chance.randrange(3), *getattr(self, name)())

    # Paths.

    def any(self):
        return self.chance.choice(self.paths) if self.paths and self.chance.random() < 0.95 else self.new()

    def new(self):
        directory = self.chance.choice([each for each in self.directories if each.count('/') < DEEPEST])
        return directory + self.chance.choice(NAMES)

    def beside(self, path):
        """A path in the same directory, or below it."""
        names = [*path.split('/')[:-1], self.chance.choice(NAMES), self.chance.choice(NAMES)]
        return '/'.join(names[:-1] if len(names) > DEEPEST or self.chance.random() < 0.5 else names)

    def file(self):
        return self.chance.choice(self.files) if self.files and self.chance.random() < 0.95 else self.any()

    # Arguments of each call.

    def create(self):
        return self.new(), self.chance.choice((0o644, 0o600, 0o755))

    def mkdir(self):
        return self.new(), self.chance.choice((0o755, 0o700))

    def symlink(self):
        return self.new(), 'nowhere' + str(self.chance.randrange(3))

    def link(self):
        return self.file(), self.new()

    def unlink(self):
        return (self.any(),)

    def rmdir(self):
        return (self.chance.choice(self.directories)[:-1] or self.any(),)

    def rename(self):
        flags = self.chance.choice((0, 0, 0, 1, 2))
        return self.any(), self.any() if flags == 2 or self.chance.random() < 0.4 else self.new(), flags

    def chmod(self):
        path = self.any()
        modes = (0o755, 0o700, 0o775) if path + '/' in self.directories else (0o644, 0o755, 0o700, 0o600, 0o775)
        return path, self.chance.choice(modes)

    def utimens(self):
        return self.any(), self.time(), self.time()

    def time(self):
        return self.chance.randrange(SECOND * 2_000) * 1_000_000 + self.chance.randrange(1_000_000)

    def write(self):
        return self.file(), *self.bytes()

    def bytes(self):
        size = self.chance.choice((1, 10, 10, 100, 5000, 30_000))
        return self.chance.choice((0, 0, 3, 4096, 9000)), size, self.chance.randrange(1 << 32)

    def truncate(self):
        return self.file(), self.chance.choice((0, 0, 1, 5, 5000))

    def slot(self):
        return self.chance.randrange(2)

    def open_slot(self):
        return self.slot(), self.file()

    def close_slot(self):
        return (self.slot(),)

    def write_slot(self):
        return self.slot(), *self.bytes()

    def truncate_slot(self):
        return self.slot(), self.chance.choice((0, 3, 8000))

    def revision(self):
        """Other clients' changes: tuples of a path and what it becomes."""
        changes = []
        for _ in range(self.chance.choice((1, 1, 2, 4))):
            old = bool(self.base) and self.chance.random() < 0.7
            path = self.chance.choice(self.base) if old else self.beside(self.chance.choice(self.base or ['a']))
            word = self.chance.choice(('file', 'file', 'file', 'program', 'link') + (None, None) * old)
            changes.append((path, word, self.chance.choice((0, 5, 5, 40, 20_000)), self.chance.randrange(1 << 32)))
        return tuple(changes)
