"""Figures as rows with a target, as tables for people, as JSON, and as plots by gnuplot."""
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys


@dataclasses.dataclass
class Row:
    what: str
    figure: str
    target: str = ''
    met: bool | None = None   # None: no target, or it could not be measured here
    note: str = ''


def verdict(row):
    return '' if row.met is None else 'met' if row.met else '**missed**'


def ratio(measured):
    return f'{measured["median"]:.2f} ({measured["low"]:.2f}–{measured["high"]:.2f})'


def milliseconds(measured):
    return f'{measured["median"] * 1e3:.1f} ms ({measured["low"] * 1e3:.1f}–{measured["high"] * 1e3:.1f})'


def table(heads, rows):
    lines = ['| ' + ' | '.join(heads) + ' |', '|' + ' --- |' * len(heads)]
    return '\n'.join(lines + ['| ' + ' | '.join(str(cell) for cell in row) + ' |' for row in rows])


def comparison(results, contenders, yardstick):
    """Workloads as columns; the yardstick's row in ms, all others as ratios to it."""
    heads = [''] + list(results)
    rows = [[f'{yardstick}, ms'] + [f'{by[yardstick]["seconds"]["median"] * 1e3:.1f}' for by in results.values()]]
    for name in contenders:
        if name != yardstick:
            rows.append([name] + [ratio(by[name]['ratio']) if name in by else '–' for by in results.values()])
    return table(heads, rows)


class Report:
    def __init__(self, kind, machine, out):
        self.kind, self.machine, self.out = kind, machine, pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.sections, self.data = [], {}

    def section(self, title, text='', rows=(), data=None):
        parts = [f'## {title}']
        if text:
            parts.append(text)
        if rows:
            parts.append(table(['what', 'figure', 'reach', '', 'note'],
                               [[row.what, row.figure, row.target, verdict(row), row.note] for row in rows]))
        self.sections.append('\n\n'.join(parts))
        self.data[title] = {'rows': [dataclasses.asdict(row) for row in rows], **(data or {})}
        print('\n' + self.sections[-1], flush=True)
        self.write()  # at once: what was measured is kept when a later section fails

    def text(self):
        machine = self.machine
        head = (f'{machine["cores"]} cores {machine["cpu"]}, {machine["memory_gib"]} GiB, Linux {machine["kernel"]}, '
                f'disk {machine["disk"]}, load {machine["load_at_start"]} at the start; {machine["date"]}, '
                f'commit {machine["commit"]}. Medians with quartiles; ratios are of runs in the same round.')
        return f'# {self.kind.capitalize()}\n\n{head}\n\n' + '\n\n'.join(self.sections) + '\n'

    def write(self):
        (self.out / f'{self.kind}.md').write_text(self.text(), encoding='utf-8')
        document = {'schema_version': 1, 'kind': self.kind, 'machine': self.machine, 'sections': self.data}
        (self.out / f'{self.kind}.json').write_text(json.dumps(document, indent=1), encoding='utf-8')

    def record(self, path):
        """Takes this run into RESULTS.md, which has one part for each kind."""
        path = pathlib.Path(path)
        start, end = f'<!-- {self.kind} -->', f'<!-- end of {self.kind} -->'
        text = path.read_text(encoding='utf-8')
        part = re.compile(re.escape(start) + '.*?' + re.escape(end), re.DOTALL)
        if not part.search(text):
            raise ValueError(f'{path} has no part {start}')
        path.write_text(part.sub(lambda _: f'{start}\n{self.text()}{end}', text), encoding='utf-8')

    def plot(self, name, title, results, contenders, yardstick):
        """Bars of ratios by workload, on a logarithmic scale, with quartiles."""
        names = [each for each in contenders if each != yardstick]
        lines = []
        for workload, by in results.items():
            cells = [f'"{workload}"']
            for each in names:
                found = by.get(each, {}).get('ratio')
                cells += [f'{found[key]:.4f}' for key in ('median', 'low', 'high')] if found else ['NaN'] * 3
            lines.append(' '.join(cells))
        data = self.out / f'{name}.dat'
        data.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        bars = ', '.join(f'"{data}" using {2 + 3 * i}:{3 + 3 * i}:{4 + 3 * i}:xtic(1) title "{each}"'
                         for i, each in enumerate(names))
        self.gnuplot(name, f'''set title "{title}"
set style data histograms
set style histogram errorbars gap 1 lw 1
set style fill solid 0.8 noborder
set logscale y
set ylabel "times {yardstick}"
set grid ytics
set key outside right top noenhanced
set xtics rotate by -20 noenhanced
plot {bars}, 1 with lines lc "black" notitle
''')

    def gnuplot(self, name, script):
        """An SVG of that name by the script, which sets neither terminal nor output."""
        if not shutil.which('gnuplot'):
            print('gnuplot is missing: no plots', file=sys.stderr)
            return
        place = f'set terminal svg size 1100,480 font "sans,12" background "white"\nset output "{self.out / name}.svg"\n'
        subprocess.run(['gnuplot'], input=place + script, text=True, check=True, stderr=subprocess.DEVNULL)
