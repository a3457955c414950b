#!/usr/bin/env python3
"""`playfs serve` under load. Prints tables; keeps them with JSON and plots in a folder beside the build.

    tests/bench/service/load.py [--build build] [--only SECTION] [--rounds 5] [--seconds 3] [--record] …

Sections:
  alone    one server over SQLite beside nginx, which serves the same bytes as files (six minutes)
  stores   one to three servers over SQLite and PostgreSQL, directly and behind nginx, beside pgbench (25 minutes)
  mounts   10 to 1,000 simulated mounts of one project, 10 of which commit (ten minutes)
  soak     three servers over PostgreSQL at a low rate (ten minutes; --minutes)

Needs wrk, nginx, PostgreSQL and gnuplot (tools/packages: bench, test). Times are of this machine at this moment, so what
counts is ratios of runs that take turns, and CPU time for each request, which hardly depends on what else runs.
"""
import argparse
import pathlib
import shutil
import sys
import tempfile

import parts
import alone
import mounts
import soak
import stores
import main as bench  # of the harness
from report import Report
from world import World

SECTIONS = {'alone': alone.section, 'stores': stores.section, 'mounts': mounts.section, 'soak': soak.section}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', type=pathlib.Path, default=parts.ROOT / 'build')
    parser.add_argument('--only', action='append', choices=SECTIONS, help='may be repeated')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=3, help='of each run of wrk and pgbench')
    parser.add_argument('--records', type=int, default=1_000_000, help='of alone: before pages are compared')
    parser.add_argument('--ways', nargs='+', choices=stores.WAYS, default=stores.WAYS, help='of stores')
    parser.add_argument('--minutes', type=float, default=10, help='of soak')
    parser.add_argument('--out', type=pathlib.Path)
    parser.add_argument('--record', action='store_true', help='take the tables and plots into tests/bench/service')
    options = parser.parse_args()
    missing = [tool for tool in ('wrk', 'nginx', 'pgbench', 'gnuplot') if not shutil.which(tool)]
    if missing or not parts.postgres.is_installed():
        raise SystemExit(f'missing: {", ".join(missing) or "PostgreSQL"}')
    with World(options.build.resolve(), tempfile.gettempdir()) as world:
        report = Report('service', bench.about(world.folder), options.out or options.build / 'bench')
        for name in options.only or SECTIONS:
            SECTIONS[name](world, report, options)
    if options.record:
        report.record(parts.HERE / 'RESULTS.md')
        for plot in report.out.glob('service-*.svg'):
            shutil.copy(plot, parts.HERE)


if __name__ == '__main__':
    sys.exit(main())
