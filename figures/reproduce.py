#!/usr/bin/env python3
"""A paper's figures in virtual time, with what the paper claims beside ours.

figures/PAPER says what is run (papers.py), drawn (pictures.py) and claimed (claims.py). Resumable:
every figure has a CSV file, whose first line says what it was made from; points that are in it are
not run again. Needs the program: ./run build.
"""
import argparse
import hashlib
import json
import os
import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import answers
import figures
import grid
import papers
import result_file
from program import Failed, Program, load_toml

SOURCE = pathlib.Path(__file__).parent.parent


class Options(argparse.Namespace):
    """What the command line says, and for the figure in hand how many seeds."""

    def each_seed(self):
        return range(1, self.seeds + 1)

    def of(self, figure):
        return Options(**vars(self) | {'seeds': figure.seeds(self)})

    @staticmethod
    def hash_of(files, *texts):
        """A number for files and texts."""
        inputs = hashlib.blake2b(digest_size=8)
        for text in texts:
            inputs.update(text.encode() + b'\0')
        for file in files:
            inputs.update(file.read_bytes())
        return inputs.hexdigest()


class Progress:
    """How far the command is, on stderr each half minute."""

    def __init__(self, total):
        self._total, self._done, self._start = total, 0, time.monotonic()
        self._shown = self._start

    def __call__(self, what):
        self._done += 1
        now = time.monotonic()
        if now - self._shown < 30:
            return
        self._shown = now
        left = (now - self._start) / self._done * max(0, self._total - self._done)
        print(f'{self._done}/{self._total}, about {left:.0f} s left  {what}', file=sys.stderr)


def _texts(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _files_of(point, options):
    """The point's scenario and every file that it, or a setting, names."""
    files = []
    names = [name for name in (point.scenario, point.learnt_from) if name]
    for path in [options.scenarios / f'{name}.toml' for name in names]:
        says = _texts(load_toml(path)) + [each.split('=', 1)[1] for each in point.settings]
        named = [path.parent / text for text in says + [point.profile] if text]
        files += [path] + [file for file in named if file.is_file()]
    return files


def _provenance(files):
    for file in files:
        if file.suffix == '.json':
            return json.loads(file.read_bytes()).get('provenance', '')
    return ''


def source_of(figure, options):
    if figure.ask == 'scheduler':
        return answers.scheduler_source(options)
    return figure.source(options.seeds)


def origin_of(paper, figure, options):
    """What the points of a figure depend on, as the first line of its file."""
    points = [point for series in figure.series for point in series.points]
    files = [file for point in points for file in _files_of(point, options)]
    texts = [options.program.commit()]
    texts += [f'{options.minutes} minutes'] if figure.ask == 'minutes' else []
    texts += [text for point in points
              for text in [*point.settings, *(f'{k}={v}' for k, v in point.withs.items())]]
    if figure.ask == 'scheduler':
        files.append(options.scheduler)
    inputs = options.hash_of(dict.fromkeys(files), *texts)
    if 'source' in figure.says or figure.ask == 'scheduler':
        return f"{paper['title']} {figure.heading}; {source_of(figure, options)}; inputs {inputs}"
    return (f"{paper['title']} {figure.heading}; simulated; mean of {options.seeds} seeds; inputs "
            f'{inputs}; {_provenance(files) or figure.basis}')


def rows_of(columns, answer):
    """As they are in the file."""
    return [[series, f'{x:g}'] + [f'{row[column]:.6g}' if column in row else ''
                                  for column in columns]
            for series, points in sorted(answer.items()) for x, row in sorted(points.items())]


def left_to_do(figure, found):
    """The points of which the file's rows hold no answer yet, each once."""
    many = figure.ask in answers.OF_MANY_ROWS
    there = {cells[0] if many else (cells[0], cells[1]) for cells in found}
    points = []
    for series in figure.series:
        for point in series.points:
            of_series = many or (figure.ask == 'fleet' and 'of' in point.withs)
            key = series.label if of_series else (series.label, f'{point.x:g}')
            if key not in there and not (of_series and any(
                    series.label == cells[0] for cells in found)):
                there.add(key)
                points.append((series.label, point))
    return points


def run_figure(paper, figure, options, progress):
    origin = origin_of(paper, figure, options)
    # Not before its scenarios were read: who called it elsewhere finds no empty folder.
    options.out.mkdir(parents=True, exist_ok=True)
    whole = figure.ask == 'grid'
    file = result_file.ResultFile(options.out / f'{figure.stem}.csv', origin,
                                  ['series', 'load', *figure.columns], options.fresh or whole)
    if whole:
        file.append(rows_of(figure.columns, grid.curves(grid.run(options, progress))))
        return file.close()

    def answer(asked):
        label, point = asked
        rows = answers.QUESTIONS[figure.ask](label, point, options)
        if point.paper is not None and figure.ask in ('run', 'peak', 'least-lanes'):
            for row in rows.get(label, {}).values():
                row['paper'] = point.paper
        return rows

    points = left_to_do(figure, file.found)
    with ThreadPoolExecutor(options.jobs) as pool:
        for (label, point), rows in zip(points, pool.map(answer, points)):
            file.append(rows_of(figure.columns, rows))
            progress(f'{figure.heading}: {label} at {point}')
    return file.close()


def lacking(figure, options):
    """What must be given before the figure can be made, with the remedy; empty: all is there."""
    if figure.ask != 'scheduler' or options.scheduler:
        return ''
    return ('it is measured, not simulated; run ./run bench scheduler --json FILE and give '
            '--scheduler FILE')


def made_of(figure, options):
    """What is to be known of a figure that was made, beside its file."""
    return {'id': figure.id, 'heading': figure.heading, 'stem': figure.stem,
            'source': source_of(figure, options),
            'series': [{'label': series.label,
                        'points': [[point.x, point.name] for point in series.points]}
                       for series in figure.series]}


def reproduce(options):
    folder = options.figures / options.paper
    paper, asked = papers.read_paper(folder, options.figure)
    progress = Progress(sum(len(series.points) for figure in asked for series in figure.series))
    made = []
    for figure in asked:
        why = lacking(figure, options)
        if why and len(asked) == 1:
            raise Failed(f'{figure.heading}: {why}')
        if why:
            print(f'figures: {figure.heading} is left out: {why}', file=sys.stderr)
            continue
        run_figure(paper, figure, options.of(figure), progress)
        made.append(made_of(figure, options.of(figure)))
    figures.draw_and_claim(folder, options.out, made, options.json)


def number(low, high):
    def parse(text):
        if text.isascii() and text.isdigit() and low <= int(text) <= high:
            return int(text)
        raise argparse.ArgumentTypeError(f"'{text}' is no number from {low} to {high}")
    return parse


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog='figures', description="Make a paper's figures, and compare its claims with ours",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('paper', nargs='?', default='edgeserving', help='a folder of --figures')
    parser.add_argument('--figure', default=[], type=lambda text: text.split(','),
                        help='figures and tables to make: 4,7 or table2 (default: all)')
    parser.add_argument('--figures', type=pathlib.Path, default=pathlib.Path('figures'),
                        help='directory with a folder for each paper')
    parser.add_argument('--out', type=pathlib.Path,
                        help='directory for CSV, SVG and PNG (default: out/figures/PAPER)')
    parser.add_argument('--scenarios', type=pathlib.Path,
                        help='directory of the scenario files (default: scenarios/PAPER)')
    parser.add_argument('--seeds', type=number(1, 1000), default=3,
                        help='how many seeds to average over, from seed 1')
    parser.add_argument('--jobs', type=number(1, 1024), default=os.cpu_count() or 1,
                        help='how many runs at once')
    parser.add_argument('--cells', type=number(0, 10 ** 6), default=5880,
                        help="how many of the 7,602 workloads of Symphony's Figure 7 to run, "
                             'evenly spread; 0: all')
    parser.add_argument('--minutes', type=number(1, 300), default=300,
                        help="minutes of Strait's five-hour trace")
    parser.add_argument('--scheduler', type=pathlib.Path,
                        help="file of ./run bench scheduler --json, for Symphony's Figure 13-left")
    parser.add_argument('--fresh', action='store_true',
                        help='run every point again, also those that are in the CSV files already')
    parser.add_argument('--json', type=pathlib.Path, help='write the claims as checks to this file')
    parser.add_argument('--programs', type=pathlib.Path, default=SOURCE / 'build/release',
                        help='build folder of the programs to run')
    options = parser.parse_args(arguments, namespace=Options())
    options.out = options.out or pathlib.Path('out/figures', options.paper)
    options.scenarios = options.scenarios or pathlib.Path('scenarios', options.paper)
    options.program = Program(options.programs / 'apps/tactus')
    return options


def main(arguments):
    try:
        reproduce(parse(arguments))
    except (Failed, OSError) as error:
        print(f'figures: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
