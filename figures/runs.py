"""What all questions need of runs: how they are called, their requests, their means."""
import csv
import math

from program import load_toml


def mean(values):
    """Added up as the program does: to the last bit what its own means are."""
    total = 0.0
    for value in values:
        total += value / len(values)
    return total


def add_up(values):
    """One after another: sum() does better, and so otherwise."""
    total = 0.0
    for value in values:
        total += value
    return total


def percentile(values, percent):
    """The smallest that so many percent do not exceed; sorts `values`."""
    values.sort()
    return values[max(math.ceil(percent / 100 * len(values) - 1e-9), 1) - 1] if values else 0


def scenario_of(point, options):
    return options.scenarios / f'{point.scenario}.toml'


def settings_of(point, options):
    more = [f'profile={options.scenarios / point.profile}'] if point.profile else []
    return point.settings + more


def policy_of(point, options):
    said = [each[len('policy='):] for each in point.settings if each.startswith('policy=')]
    return said[-1] if said else load_toml(scenario_of(point, options))['scenario'].get(
        'policy', 'horizon')


def each_seed(point, options):
    """A run for each seed."""
    return options.program.json(
        'compare', scenario_of(point, options), '--policies', policy_of(point, options), '--seeds',
        options.seeds, '--first-seed', 1, settings=settings_of(point, options))['runs']


def simulate(point, options, *words, settings=()):
    return options.program.simulate(scenario_of(point, options), *words,
                                    settings=settings_of(point, options) + list(settings))


def requests_of(path):
    """Those that count, as they are in a file of `tactus simulate --requests`; it is deleted."""
    with open(path, encoding='utf-8', newline='') as file:
        rows = [row for row in csv.DictReader(file) if row['counted'] == '1']
    path.unlink()
    return rows
