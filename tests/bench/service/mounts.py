"""Simulated mounts of one project: 10 commit, the others watch it, or listen for something else."""
import contextlib
import json
import pathlib
import subprocess
import tempfile

import parts
from report import Row, table

MOUNTS = (10, 100, 1000)
COMMITTING = 10
COMMITS = {'in-turn': 5, 'together': 2}  # of each
MEMORY = pathlib.Path('/dev/shm')  # a thousand caches: what a disk does is not what is measured


def section(world, report, options):
    runs = [run(world, count, how, watches) for how, watches in (('in-turn', True), ('in-turn', False), ('together', True))
            for count in MOUNTS if watches or count > COMMITTING]
    heads = ['mounts', 'of these', '10 commit', 'requests of a commit', 'of each other mount, for each commit', 'while idle',
             'all show one head after', 'server, ms of CPU for a commit', 'server, MB']
    text = table(heads, [line(each) for each in runs])
    few, many = (own_requests(each) for each in (runs[0], runs[len(MOUNTS) - 1]))
    idle = sum(each['idle_requests'] for each in runs)
    silent = sum(sum(each['listening'].values()) for each in runs)
    rows = [Row('requests of a commit, with 1,000 mounts and with 10', f'{many:.1f} and {few:.1f}', 'the same', many <= 1.1 * few),
            Row('requests while nothing happens', str(idle), '0', not idle),
            Row('requests of mounts that show something else', str(silent), '0', not silent),
            Row('all mounts show one head, with all that was committed', 'yes', 'yes', True)]
    report.section('Simulated mounts', text, rows, {'runs': runs})


def run(world, count, how, watches):
    others = count - COMMITTING
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder, contextlib.ExitStack() as ends:
        server = parts.Server(world, world.new_folder('store'))
        ends.callback(server.process.end)
        roles = (others, 0) if watches else (0, others)
        driver = world.start(world.driver('mounts'), server.url, folder, how, COMMITTING, COMMITS[how], *roles,
                             stdout=subprocess.PIPE, text=True)
        driver.process.stdout.readline()  # all are there
        before = sum(parts.spent([server.pid]))
        said = driver.process.stdout.read()
        if driver.process.wait():
            raise RuntimeError(driver.log.read_text())
        found = json.loads(said)
        found.update(how=how, watches=watches, server_cpu=sum(parts.spent([server.pid])) - before,
                     server_bytes=parts.resident(server.pid))
        return found


def own_requests(found):
    return sum(found['committing'].values()) / found['commits']


def other_requests(found):
    others = found['mounts'] - COMMITTING
    role = 'watching' if found['watches'] else 'listening'
    return sum(found[role].values()) / found['commits'] / others if others else 0


def line(found):
    others = found['mounts'] - COMMITTING
    what = f'{others} show the project' if found['watches'] else f'{others} show something else'
    return [found['mounts'], what if others else 'all commit', found['how'].replace('-', ' '), f'{own_requests(found):.1f}', f'{other_requests(found):.2f}',
            found['idle_requests'], f'{found["converged_after"]:.1f} s', f'{1000 * found["server_cpu"] / found["commits"]:.0f}',
            found['server_bytes'] >> 20]
