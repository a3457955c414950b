"""The tree that reading is measured on: 80 text files as a project has them, the same bytes at every run."""
import pathlib
import random

FOLDERS = ('doc', 'doc/api', 'doc/api/v1', 'doc/web', 'lib', 'lib/core', 'lib/core/io', 'lib/net', 'lib/net/http',
           'lib/net/tls', 'src', 'src/app', 'src/app/cmd', 'src/web', 'src/web/ui', 'test', 'test/data', 'test/data/in',
           'test/data/out')
ENDINGS = ('.md', '.c', '.h', '.py', '.json', '.txt')
ABSENT = 'qqxyzzy'  # what no file contains, for grep
FILES, SMALL = 80, 60


def _words(chance):
    letters, vowels = 'bcdfghklmnprstvw', 'aeiou'
    return [''.join(chance.choice(letters) + chance.choice(vowels) for _ in range(chance.randint(1, 4)))
            for _ in range(2000)]


def _text(chance, words, size):
    lines, length = [], 0
    while length < size:
        indent = '  ' * chance.choice((0, 0, 1, 1, 2))
        # Words as texts have them: few often, many seldom.
        line = indent + ' '.join(words[int(len(words) * chance.random() ** 3)] for _ in range(chance.randint(0, 12)))
        lines.append(line)
        length += len(line) + 1
    return ('\n'.join(lines) + '\n')[:size - 1] + '\n'


def make(root, seed=4):
    """80 files below `root`: 60 of 1 to 8 KB and 20 of 12 to 200 KB, in 20 folders (the root is one), three levels.
    No more in all than fits into one revision, with the limits that the service documents."""
    chance, root = random.Random(seed), pathlib.Path(root)
    words = _words(chance)
    folders = [root] + [root / name for name in FOLDERS]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    sizes = [chance.randint(1024, 8192) for _ in range(SMALL)]
    sizes += [round(12_288 + (204_800 - 12_288) * chance.random() ** 1.8) for _ in range(FILES - SMALL)]
    chance.shuffle(sizes)
    for i, size in enumerate(sizes):
        name = f'{words[i][:6]}{i}{ENDINGS[i % len(ENDINGS)]}'
        (folders[i % len(folders)] / name).write_text(_text(chance, words, size), encoding='ascii')
    return root
