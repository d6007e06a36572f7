#!/usr/bin/env python3
"""figures.py PAPER OUT [JSON]: draws a paper's figures and holds its claims against ours.

PAPER is a folder of this one: paper.toml and a file for each figure (src/reproduction/figure_file.h
says what in them is run; pictures.py and claims.py say what is drawn and claimed). OUT is where
`tactus reproduce` left a CSV file for each figure, and made.json, which names them. Writes a
picture of each as SVG and PNG, and claims.csv; with JSON, the claims as checks.
"""
import csv
import json
import pathlib
import sys
import tomllib

import claims
import pictures


def load(path):
    with open(path, 'rb') as file:
        return tomllib.load(file)


def stem_of(figure_id):
    return figure_id if figure_id.startswith('table') else 'fig' + figure_id.rjust(2, '0')


def load_figure(folder, stem):
    """A figure's file; what it does not say, the one that it is `like` says."""
    figure = load(folder / f'{stem}.toml')
    if 'like' in figure:
        figure = load(folder / f'{stem_of(figure["like"])}.toml') | figure
    return figure


def load_data(path):
    """series -> x -> column -> value, both in their order, from a figure's CSV file."""
    with open(path, encoding='utf-8', newline='') as file:
        next(file)  # what it was made from
        rows = sorted((row['series'], float(row['load']), row) for row in csv.DictReader(file))
    data = {}
    for series, x, row in rows:
        data.setdefault(series, {})[x] = {
            column: float(value) for column, value in row.items()
            if value and column not in ('series', 'load')}
    return data


def show(made):
    for figure, claim in made:
        against = f'bar: {claim.bar}' if claim.bar else f'paper: {claim.paper}'
        print(f'{figure["id"]:>3}  {"yes" if claim.holds else "NO":<3}  {claim.what}\n'
              f'          {against}; ours: {claim.ours}')


def write_claims(path, ids, made):
    """Into claims.csv, in place of what it held of the figures `ids`."""
    def quoted(text):
        return '"' + text.replace('"', "'") + '"'
    lines = []
    if path.exists():
        earlier = path.read_text(encoding='utf-8').splitlines()[1:]
        lines = [line for line in earlier if line.split(',', 1)[0] not in ids]
    for figure, claim in made:
        texts = ','.join(quoted(text) for text in (claim.what, claim.paper, claim.ours))
        lines.append(f'{figure["id"]},{texts},{"yes" if claim.holds else "no"}')
    path.write_text('\n'.join(['figure,claim,paper,ours,holds', *lines]) + '\n', encoding='utf-8')


def check(figure, claim):
    if claim.value is not None:
        return {'what': f'{figure["heading"]}: {claim.what}', 'value': claim.value,
                'bar': claim.bar, 'ok': claim.holds}
    return {'what': f'{figure["heading"]}: {claim.what}: {claim.ours}',
            'value': 1.0 if claim.holds else 0.0, 'bar': f'paper: {claim.paper}',
            'ok': claim.holds}


def main(arguments):
    folder, out = map(pathlib.Path, arguments[:2])
    paper = load(folder / 'paper.toml')
    figures = json.loads((out / 'made.json').read_text(encoding='utf-8'))
    made = []
    for figure in figures:
        says = load_figure(folder, figure['stem'])
        data = load_data(out / f'{figure["stem"]}.csv')
        pictures.draw(out / figure['stem'],
                      pictures.script(paper, figure, says, data, out / figure['stem']))
        made += [(figure, claim) for claim in claims.of(paper, says, data)]
    print(f"{paper['title']}'s claims; ours are simulated with {paper['basis']}, unless the figure "
          "says otherwise.\n"
          "yes: the paper's effect shows here too, in its direction; how large stands beside it\n"
          'fig  holds')
    show(made)
    write_claims(out / 'claims.csv', {figure['id'] for figure in figures}, made)
    print(f'CSV, SVG and PNG of each figure: {out}')
    if len(arguments) > 2:
        checks = {'runs': [], 'checks': [check(*each) for each in made]}
        pathlib.Path(arguments[2]).write_text(json.dumps(checks, indent=1) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main(sys.argv[1:])
