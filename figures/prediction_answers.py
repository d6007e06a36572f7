"""Answers that look into a policy that predicts: how its errors and the latencies are spread, and
how it goes on learning through a long trace.
"""
import collections
import csv
import json

from program import Failed, load_scenario, write_toml
from runs import add_up, percentile, requests_of, scenario_of, settings_of, simulate

PERCENTS = [*range(1, 100), 99.5, 99.9, 100]


def _learn_before(point, seed, options):
    """What the point's policy is to start from: what it learnt in another scenario, whose models
    and device may be others. The server refuses that; so the file is told to be of the point's
    own."""
    learnt, own = options.program.file('learnt.json'), options.program.file('own.json')
    options.program.simulate(options.scenarios / f'{point.learnt_from}.toml', '--seed', seed,
                             '--save-predictor', learnt)
    simulate(point, options, '--save-predictor', own, settings=[
        'policy=strait', 'duration_s=1', 'warmup_s=0', 'warmup_requests=0'])
    predictor = json.loads(learnt.read_bytes())
    predictor |= {key: json.loads(own.read_bytes())[key] for key in ('device', 'models')}
    learnt.write_text(json.dumps(predictor), encoding='utf-8')
    own.unlink()
    return learnt


def of_distributions(label, point, options):
    """A row at x = percent, from 1 to 99 by 1 and 99.5, 99.9, 100, each figure the mean over the
    seeds: high_ms, low_ms, latency of answered requests by priority; kernel_error_percent,
    |predicted - actual| over actual, of batches that had neighbours; latency_error_percent, the
    same of the whole latency, from the first request's arrival; overhead_percent, what the
    neighbours cost the kernels. At x = 0 high_bad_percent, low_bad_percent. The policy learns from
    `learnt_from` first, and the errors of that run are not counted."""
    rows = collections.defaultdict(collections.Counter)
    share = 1.0 / options.seeds
    for seed in options.each_seed():
        file = options.program.file('requests.csv')
        learnt = ['--predictor', _learn_before(point, seed, options)] if point.learnt_from else []
        run = simulate(point, options, '--seed', seed, '--requests', file, *learnt)
        for level, name in enumerate(('high', 'low')):
            if len(run.get('priorities', [])) == 2:
                bad = run['priorities'][level]['bad_ratio']
                rows[0][f'{name}_bad_percent'] += share * 100 * bad
        requests = requests_of(file)
        highest = min(int(row['priority']) for row in requests)
        latencies = [[], []]
        for row in requests:
            if row['batch'] != '0':
                latencies[int(row['priority']) > highest].append(
                    int(row['ended_ns']) - int(row['arrival_ns']))
        for percent in PERCENTS:
            row = rows[percent]
            row['percent'] = percent
            row['high_ms'] += share * (percentile(latencies[0], percent) * 1e-6)
            row['low_ms'] += share * (percentile(latencies[1], percent) * 1e-6)
        for each in run.get('prediction', {}).get('percentiles', []):
            row = rows[each['percent']]
            row['kernel_error_percent'] += share * 100 * each['error']
            row['latency_error_percent'] += share * 100 * each['latency_error']
            row['overhead_percent'] += share * 100 * each['overhead']
    return {label: rows}


def load_schedule(path, models):
    """By step, how many times its rate each model has."""
    with open(path, encoding='utf-8', newline='') as file:
        rows = csv.DictReader(line for line in file if not line.startswith('#'))
        return [[float(row.get(model, row.get('all'))) for model in models] for row in rows]


def _minute(whole, factors, number):
    """The scenario as it is in one step of its schedule."""
    minute = {key: dict(value) if isinstance(value, dict) else [dict(each) for each in value]
              for key, value in whole.items()}
    ratios = [model.get('ratio', 1) for model in whole['models']]
    total = add_up(ratios)
    rates = [whole['arrivals']['rate_rps'] * (ratio / total) * factor
             for ratio, factor in zip(ratios, factors)]
    minute['arrivals'] |= {'rate_rps': add_up(rates), 'popularity': 'ratio'}
    del minute['arrivals']['schedule']
    for model, rate in zip(minute['models'], rates):
        model['ratio'] = rate
    minute['scenario'] |= {'duration_s': 60, 'warmup_s': 0,
                           'seed': 1000 * whole['scenario'].get('seed', 1) + number}
    return minute


def of_minutes(label, point, options):
    """A run for each minute of the scenario's schedule at that minute's rates, one seed, each going
    on from what the one before it has learnt; what waits at the end of a minute is served before
    the next. At x = minute: offered_rps, goodput_rps, high_bad_percent, low_bad_percent, and of the
    kernels' prediction errors with their sign error_p5_percent, error_p50_percent,
    error_p95_percent. The same columns also as series of their own: "rate: ...", "violations: ...",
    "error: ..."."""
    whole = load_scenario(scenario_of(point, options))
    if whole['arrivals'].get('popularity', 'ratio') != 'ratio' or any(
            'rate_rps' in model for model in whole['models']):
        raise Failed(f'{scenario_of(point, options)}: minutes are of models that share one rate by '
                     'their ratios')
    steps = load_schedule(whole['arrivals']['schedule'], [each['name'] for each in whole['models']])
    data = collections.defaultdict(dict)
    learnt = None
    for number, factors in enumerate(steps[:options.minutes]):
        file = write_toml(_minute(whole, factors, number), options.program.file('minute.toml'))
        before = ['--predictor', learnt] if learnt else []
        learnt = options.program.file('learnt.json')
        run = options.program.simulate(file, *before, '--save-predictor', learnt,
                                       settings=settings_of(point, options))
        row = {'offered_rps': run['offered_rps'], 'goodput_rps': run['goodput_rps']}
        if len(run.get('priorities', [])) == 2:
            row['high_bad_percent'] = 100 * run['priorities'][0]['bad_ratio']
            row['low_bad_percent'] = 100 * run['priorities'][1]['bad_ratio']
        for each in run.get('prediction', {}).get('percentiles', []):
            if each['percent'] in (5, 50, 95):
                row[f"error_p{each['percent']:g}_percent"] = 100 * each['signed_error']
        data[label][number] = row
        for series, column in (('rate: offered', 'offered_rps'), ('rate: in time', 'goodput_rps'),
                               ('violations: high priority', 'high_bad_percent'),
                               ('violations: low priority', 'low_bad_percent'),
                               ('error: P5', 'error_p5_percent'),
                               ('error: median', 'error_p50_percent'),
                               ('error: P95', 'error_p95_percent')):
            if column in row:
                data[series][number] = {'value': row[column]}
    return data
