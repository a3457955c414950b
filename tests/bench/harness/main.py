"""Runs the benchmarks; started by tools/bench, which installs and builds what they need."""
import argparse
import contextlib
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import measure
import read
import report
import write
from world import World

ROOT = pathlib.Path(__file__).resolve().parents[3]
KINDS = {'read': read, 'write': write}


def about(place):
    found = measure.machine()
    found['disk'] = subprocess.run(['findmnt', '-no', 'FSTYPE', '--target', place], capture_output=True, text=True).stdout.strip()
    found['date'] = datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC')
    found['commit'] = subprocess.run(['git', '-C', ROOT, 'describe', '--always', '--dirty'], capture_output=True,
                                     text=True).stdout.strip() or 'unknown'
    return found


@contextlib.contextmanager
def image(directory, size):
    """A file system without a history, or None: how old and full one is decides what a new file costs. Needs root."""
    if size == 0 or os.geteuid() != 0:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix='playfs-bench-image-', dir=directory) as folder:
        file, mounted = pathlib.Path(folder) / 'image', pathlib.Path(folder) / 'mounted'
        mounted.mkdir()
        with open(file, 'wb') as sparse:
            sparse.truncate(size * 10**9)
        subprocess.run(['mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', file], check=True)
        if subprocess.run(['mount', '-o', 'loop', file, mounted]).returncode:  # a container without loop devices
            yield None
            return
        try:
            yield mounted
        finally:
            subprocess.run(['umount', mounted], check=True)


def main():
    parser = argparse.ArgumentParser(prog='tools/bench', description='Measures playfs against what it is compared with.')
    parser.add_argument('kind', choices=KINDS)
    parser.add_argument('--build', required=True, help='an optimised build directory (tools/bench gives it)')
    parser.add_argument('--out', help='where the tables, JSON and plots go (default: a folder beside the build)')
    parser.add_argument('--only', action='append', default=[], metavar='SECTION', help='this section; may be repeated')
    parser.add_argument('--skip', action='append', default=[], metavar='SECTION')
    parser.add_argument('--rounds', type=int, default=15, help='of each timing (default 15)')
    parser.add_argument('--scale', type=int, default=1, metavar='N', help='the very large sections N times smaller')
    parser.add_argument('--dir', default=tempfile.gettempdir(), help='the disk to measure on (default: the temporary folder)')
    parser.add_argument('--image', type=int, default=4, metavar='GB',
                        help='the size of an ext4 of its own, in a file there (default 4; 0: the disk as it is)')
    parser.add_argument('--record', action='store_true', help='take the figures into tests/bench/RESULTS.md')
    words = parser.parse_args()
    kind = KINDS[words.kind]
    sections = [name for name in kind.SECTIONS if (not words.only or name in words.only) and name not in words.skip]
    unknown = set(words.only + words.skip) - set(kind.SECTIONS)
    if unknown or not sections:
        parser.error(f'sections of {words.kind}: {", ".join(kind.SECTIONS)}')
    out = pathlib.Path(words.out) if words.out else pathlib.Path(words.build) / 'bench'
    failed = []
    with contextlib.ExitStack() as stack:
        own = stack.enter_context(image(words.dir, words.image))
        place = own or words.dir
        world = stack.enter_context(World(pathlib.Path(words.build).resolve(), place))
        result = report.Report(words.kind, about(world.folder), out)
        result.machine['disk'] += f' in an image of {words.image} GB, with a journal' if own else ''
        for name, job in kind.run(world, result, sections, words.rounds, words.scale):
            print(f'\n-- {name}', flush=True)
            try:
                job()
            except Exception:  # one section's trouble must not cost the others' figures
                traceback.print_exc()
                failed.append(name)
    if words.record:
        result.record(ROOT / 'tests/bench/RESULTS.md')
    print(f'\n{out}/{words.kind}.md, .json' + (f'; failed: {", ".join(failed)}' if failed else ''))
    return bool(failed)


if __name__ == '__main__':
    os.umask(0o022)
    sys.exit(main())
