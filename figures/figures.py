"""Draws a paper's figures from their CSV files, and holds its claims against them.

pictures.py and claims.py say what in a figure's file is drawn and claimed.
"""
import csv
import json

import claims
import papers
import pictures
from program import load_toml


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


def draw_and_claim(folder, out, made, json_file):
    """Of a paper's folder the figures `made`, whose CSV files are in `out`: a picture of each as
    SVG and PNG, and claims.csv; with `json_file`, the claims as checks."""
    paper = load_toml(folder / 'paper.toml')
    found = []
    for figure in made:
        says = papers.load_figure(folder, figure['stem'])
        data = load_data(out / f'{figure["stem"]}.csv')
        pictures.draw(out / figure['stem'],
                      pictures.script(paper, figure, says, data, out / figure['stem']))
        found += [(figure, claim) for claim in claims.of(paper, says, data)]
    print(f"{paper['title']}'s claims; ours are simulated with {paper['basis']}, unless the figure "
          "says otherwise.\n"
          "yes: the paper's effect shows here too, in its direction; how large stands beside it\n"
          'fig  holds')
    show(found)
    write_claims(out / 'claims.csv', {figure['id'] for figure in made}, found)
    print(f'CSV, SVG and PNG of each figure: {out}')
    if json_file:
        checks = {'runs': [], 'checks': [check(*each) for each in found]}
        json_file.write_text(json.dumps(checks, indent=1) + '\n', encoding='utf-8')
