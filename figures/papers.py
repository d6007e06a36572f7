"""A paper's figures from its folder: what is to be run. What is drawn and claimed, pictures.py and
claims.py say.

paper.toml
  title, basis      basis: what its latencies are, under every picture and table
  figures           the ids, in order; the file of "4" is fig04.toml, of "table2" table2.toml
  columns           of the CSV files, where a figure has none of its own
  [systems]         "Nexus" = ["policy=nexus"]: settings by name; what follows an '@' in the name
                    is not in the label
a figure
  title, columns
  source            what it is made from and how, where that is not the paper's basis in virtual
                    time; "{seeds}" stands for how many
  seeds             at most so many of the command line's seeds
  ask               the question's name (answers.py; "run")
  like              the id of another: what is not said here is said there
  also, profile     settings, and a profile, for all points
  paper             the paper's numbers by series, in the order of the points
  [[series]]        label, or systems = [names]; group; scenario, settings, learnt_from, with
                    (default: the figure's); each = {name = [values]}: one for each value, which
                    stands for "{name}" everywhere in it
  points            in a series, or in the figure for all: [{x, name, scenario, settings, with}].
                    x: a number or many; default 1, 2, ...; "{x}" in a setting is the point's,
                    "{2x+16}" what it says. No points: one, at 0.
"""
import dataclasses
import re

import answers
from program import Failed, load_toml


@dataclasses.dataclass
class Point:
    """One question: a scenario with settings, or what `withs` says."""
    x: float = 0
    name: str = ''  # of a bar's group, instead of x
    scenario: str = ''  # file name, without its .toml
    settings: list = dataclasses.field(default_factory=list)
    profile: str = ''  # instead of the scenario's; from the scenarios' folder
    learnt_from: str = ''  # what its policy learns from before the run
    withs: dict = dataclasses.field(default_factory=dict)  # what its question needs besides
    paper: float | None = None  # the paper's number, where its text states one

    def __str__(self):
        return self.name or f'{self.x:g}'


@dataclasses.dataclass
class Series:
    label: str
    points: list


@dataclasses.dataclass
class Figure:
    id: str
    says: dict  # its file, with that of the figure which it is like
    columns: list
    series: list
    basis: str

    @property
    def stem(self):
        return stem_of(self.id)

    @property
    def heading(self):
        return f'Table {self.id[5:]}' if self.id.startswith('table') else f'Figure {self.id}'

    @property
    def ask(self):
        return self.says.get('ask', 'run')

    def seeds(self, options):
        return min(self.says.get('seeds', options.seeds), options.seeds)

    def source(self, seeds):
        many = 'one seed' if seeds == 1 else f'{seeds} seeds'
        if 'source' not in self.says:
            return f"simulated with {self.basis}; {'' if seeds == 1 else 'mean of '}{many}"
        return self.says['source'].replace('{seeds}', many, 1)


def stem_of(figure_id):
    return figure_id if figure_id.startswith('table') else 'fig' + figure_id.rjust(2, '0')


def load_figure(folder, stem):
    """A figure's file; what it does not say, the one that it is `like` says."""
    figure = load_toml(folder / f'{stem}.toml')
    if 'like' in figure:
        figure = load_toml(folder / f'{stem_of(figure["like"])}.toml') | figure
    return figure


def _text(value):
    return value if isinstance(value, str) else f'{value:g}'


def _at_x(text, x):
    """"{x}" and "{2x+16}" by their values."""
    def value(match):
        return f'{(float(match[1]) if match[1] else 1) * x + float(match[2] or 0):g}'
    return re.sub(r'\{([-+.\d]*)x([-+.\d]*)\}', value, text)


def _points(figure, block, chosen, system):
    """Of one series; `chosen` replaces the name that stands for a value."""
    said = {**figure, **block}
    common = system + [chosen(_text(each)) for each in said.get('settings', [])]
    blocks = said.get('points')
    points = []
    for point in [{'x': 0}] if blocks is None else blocks:
        x = point.get('x', len(points) + 1)
        for each in x if isinstance(x, list) else [x]:
            settings = common + [chosen(_text(more)) for more in point.get('settings', [])]
            withs = figure.get('with', {}) | block.get('with', {}) | point.get('with', {})
            points.append(Point(
                x=float(each), name=point.get('name', ''),
                scenario=chosen(point.get('scenario', said.get('scenario', ''))),
                settings=[_at_x(setting, each) for setting in settings] + figure.get('also', []),
                profile=said.get('profile', ''), learnt_from=said.get('learnt_from', ''),
                withs={key: chosen(_text(value)) for key, value in withs.items()}))
    return points


def _series(paper, figure):
    for block in figure.get('series', []):
        values = [(name, _text(value)) for name, each in block.get('each', {}).items()
                  for value in each]
        for name, value in values or [('', '')]:
            def chosen(text, mark='{' + name + '}', value=value):
                return text.replace(mark, value) if name else text
            named = [(block['label'], [])] if 'label' in block else [
                (system.split('@')[0], paper.get('systems', {}).get(system, []))
                for system in block.get('systems', figure.get('systems', []))]
            for label, settings in named:
                label = chosen(f"{block['group']}: {label}" if 'group' in block else label)
                yield Series(label, _points(figure, block, chosen, settings))


def read_figure(folder, paper, figure_id):
    says = load_figure(folder, stem_of(figure_id))
    path = folder / f'{stem_of(figure_id)}.toml'
    figure = Figure(figure_id, says, says.get('columns', paper.get('columns', [])),
                    list(_series(paper, says)), paper.get('basis', ''))
    if figure.ask not in answers.QUESTIONS:
        raise Failed(f"{path}: ask = '{figure.ask}' is no question")
    for series in figure.series:
        if ',' in series.label or '\n' in series.label:
            raise Failed(f"{path}: label '{series.label}': write it without a comma, as it is a "
                         "cell of the figure's CSV file")
        for point, number in zip(series.points, says.get('paper', {}).get(series.label, [])):
            point.paper = float(number)
    return figure


def read_paper(folder, wanted=()):
    """What paper.toml says, and the figures `wanted`, or all."""
    if not (folder / 'paper.toml').exists():
        raise Failed(f"{folder} is no paper's folder; call it from the root of the source, or give "
                     '--figures DIR')
    paper = load_toml(folder / 'paper.toml')
    for each in wanted:
        if each not in paper['figures']:
            raise Failed(f"--figure {each}: {paper['title']} has {', '.join(paper['figures'])} "
                         'here')
    return paper, [read_figure(folder, paper, each) for each in paper['figures']
                   if not wanted or each in wanted]
