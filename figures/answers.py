"""Answers to a figure's questions, from the program's reports: rows of its CSV file, by series.

Every row of a run has offered_rps, goodput_rps, bad_percent, p50_ms, p95_ms, p99_ms, mean_batch,
queue_p50_ms, queue_p99_ms, lanes_touched and busy_percent, as means over the seeds; with exits,
accuracy_percent, accuracy_limit_percent and the exits' shares by name; with two priorities, high_
and low_ bad_percent, p50_ms, p95_ms, p99_ms; of a policy that predicts, error_p50_percent,
error_p95_percent, error_p99_percent. What other columns a question has stands beside it.
"""
import collections
import json
import math
import statistics

import fleet_answers
import gpulets_answers
import partition_answers
import prediction_answers
from program import Failed, load_toml
from runs import (add_up, each_seed, mean, percentile, requests_of, scenario_of, settings_of,
                  simulate)

OVERLOAD = 1.5  # times the peak
PARTS = 90  # of a run's time in a timeline


def _busy(runs):
    lanes = list(zip(*(run['lanes'] for run in runs)))
    busy = add_up(mean([lane['busy_ratio'] for lane in seeds]) for seeds in lanes)
    there = add_up(mean([lane['open_ratio'] for lane in seeds]) for seeds in lanes)
    return busy / there if there > 0 else 0


def row_of(runs):
    def known(key):  # 0 unless every run knows it
        values = [run[key] for run in runs]
        return 0 if None in values else mean(values)

    limits = [run['accuracy_limit'] or 0 for run in runs]
    row = {'offered_rps': known('offered_rps'), 'goodput_rps': known('goodput_rps'),
           'bad_percent': 100 * known('bad_ratio'), 'p50_ms': known('p50_ms'),
           'p95_ms': known('p95_ms'), 'p99_ms': known('p99_ms'),
           'accuracy_percent': 100 * known('accuracy'),
           'accuracy_limit_percent': 0 if runs[0]['accuracy_limit'] is None else 100 * mean(limits),
           'mean_batch': known('mean_batch'), 'queue_p50_ms': known('queue_p50_ms'),
           'queue_p99_ms': known('queue_p99_ms'), 'busy_percent': 100 * _busy(runs),
           'lanes_touched': sum(run['lanes_touched'] for run in runs) / len(runs)}
    if len(runs[0].get('priorities', [])) == 2:
        for level, name in enumerate(('high', 'low')):
            of_level = [run['priorities'][level] for run in runs]
            row[f'{name}_bad_percent'] = 100 * mean([each['bad_ratio'] for each in of_level])
            for key in ('p50_ms', 'p95_ms', 'p99_ms'):
                row[f'{name}_{key}'] = mean([each[key] for each in of_level])
    if all('prediction' in run for run in runs):
        for key in ('p50', 'p95', 'p99'):
            row[f'error_{key}_percent'] = 100 * mean([run['prediction'][key] for run in runs])
    row |= dict.fromkeys(('layer1', 'layer2', 'layer3', 'final'), 0)
    row |= {name: mean([run['exits'].get(name, 0) for run in runs])
            for run in runs for name in run['exits']}
    return row


def of_run(label, point, options):
    """What happens at the point's rate."""
    return {label: {point.x: row_of(each_seed(point, options))}}


def search(point, options, *words):
    """The peak goodput; its runs, at what multiple of it, stand beside it."""
    report = options.program.json(
        'goodput', scenario_of(point, options), '--seeds', options.seeds, *words,
        settings=settings_of(point, options), enough=(0, 1))
    runs = collections.defaultdict(list)
    for run in report['runs']:
        runs[run['settings'].get('of_peak')].append(run)
    return report['runs'][0]['peak'], runs


def of_peak(label, point, options):
    """The peak goodput: peak_rps and its half_width_rps, of_fluid, of_staggered for one model, and
    overload: the goodput at 1.5 times the peak over the peak's."""
    peak, runs = search(point, options, '--at', OVERLOAD)
    row = {}
    if peak['rate_rps'] > 0 and mean([run['goodput_rps'] for run in runs['1']]) > 0:
        row = row_of(runs['1'])
        row['overload'] = mean([run['goodput_rps'] for run in runs[str(OVERLOAD)]]) / mean(
            [run['goodput_rps'] for run in runs['1']])
    row |= {'peak_rps': peak['rate_rps'], 'half_width_rps': peak['half_width_rps']}
    for column, bound in (('of_fluid', 'of_fluid_limit'), ('of_staggered', 'of_staggered_bound')):
        if peak[bound] is not None:
            row[column] = peak[bound]
    return {label: {point.x: row}}


def of_least_lanes(label, point, options):
    """The fewest lanes that sustain the point's rate: lanes, none where 256 do not; fluid_lanes,
    which no policy without drops can do with."""
    plan = options.program.json(
        'plan', 'lanes', scenario_of(point, options), '--seeds', options.seeds, '--most', 256,
        settings=settings_of(point, options), enough=(0, 1))['policies'][0]
    row = {'fluid_lanes': plan['fluid_lanes_exact']}
    if plan['lanes'] is not None:
        row['lanes'] = plan['lanes']
    return {label: {point.x: row}}


def _at_peaks(point, options, *words):
    """A run for each seed at its own peak."""
    peak, _ = search(point, options)
    for seed, rate in zip(options.each_seed(), peak['rates_rps']):
        rate = [f'rate_rps={rate!r}'] if rate > 0 else []
        yield simulate(point, options, '--seed', seed, *words, settings=rate)


def of_batch_sizes(label, point, options):
    """At the peak, at x = size: the percent of the batches that are no larger."""
    shares = collections.defaultdict(float)
    for run in _at_peaks(point, options):
        for size, share in run['batch_sizes'].items():
            shares[int(size)] += share / options.seeds
    rows, below = {}, 0.0
    for size in range(max(shares, default=0) + 1):
        below += shares.get(size, 0)
        rows[size] = {'percent': 100 * below, 'size': size}
    return {label: rows}


def of_queueing_delay(label, point, options):
    """At the peak, at x = percentile: delay_ms, of answered requests."""
    delays = []
    file = options.program.file('requests.csv')
    for _ in _at_peaks(point, options, '--requests', file):
        delays += [int(row['started_ns']) - int(row['arrival_ns']) for row in requests_of(file)
                   if row['batch'] != '0']
    return {label: {percent: {'delay_ms': percentile(delays, percent) * 1e-6, 'percent': percent}
                    for percent in range(1, 101)}}


def advised_lanes(scenario, bad_ratio, busy):
    """The server's advice (src/planners/autoscale/advice.h) where nobody follows it."""
    scale, lanes = scenario.get('autoscale', {}), scenario.get('lanes', {}).get('count', 1)
    idle, kept, wanted = 1 - busy / lanes, scale.get('idle_kept', 0.1), lanes
    if bad_ratio > scale.get('bad_threshold', 0.01):
        most = max(lanes + 1, 2 * lanes)
        wanted = min(most, math.ceil(lanes / (1 - bad_ratio) - 1e-9)) if bad_ratio < 1 else most
    elif idle > scale.get('idle_threshold', 0.2):
        wanted = min(lanes, math.ceil(lanes * (1 - idle) / (1 - kept) - 1e-9))
    return min(max(wanted, scale.get('least', 1)), 2 * lanes)


def _steps(rows, history, *columns):
    """Into each row what the history of (instant, values ...) was at its end."""
    values, at = None, 0
    for x in sorted(rows):
        while at < len(history) and history[at][0] <= x:
            values, at = history[at][1:], at + 1
        if values is not None:
            rows[x] |= dict(zip(columns, values))


def _timeline(label, scenario, run):
    data = {}
    for of in run['timeline']:
        data[label if of['model'] is None else f"{label}: {of['model']}"] = {
            end: {'offered_rps': offered, 'goodput_rps': goodput, 'bad_percent': 100 * bad,
                  'busy_lanes': busy}
            for end, offered, goodput, bad, busy in zip(
                of['end_s'], of['offered_rps'], of['goodput_rps'], of['bad_ratio'],
                of['busy_lanes'])}
    rows = data[label]
    lanes = scenario.get('lanes', {}).get('count', 1)
    scaling = run.get('lanes_over_time', [])
    for row in rows.values():
        row['open_lanes'] = lanes
        row['advised_lanes'] = lanes if scaling else advised_lanes(
            scenario, row['bad_percent'] / 100, row['busy_lanes'])
    _steps(rows, [(each['at_s'], each['open'], each['advised']) for each in scaling],
           'open_lanes', 'advised_lanes')
    layout = run.get('layout_over_time', [])
    if layout:
        for row in rows.values():
            row['share_percent'] = 0
    _steps(rows, [(each['at_s'], 100 * each['devices_used']) for each in layout], 'share_percent')
    return data


def of_timeline(label, point, options):
    """A row for each part of the run's time, and a series for each model as well, "LABEL: MODEL":
    at x = seconds offered_rps, goodput_rps, bad_percent, and for all models together open_lanes,
    advised_lanes, busy_lanes; where devices are split anew, share_percent of them in use, each
    100."""
    scenario = load_toml(scenario_of(point, options))
    data = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for seed in options.each_seed():
        run = simulate(point, options, '--seed', seed, '--timeline', PARTS)
        for series, rows in _timeline(label, scenario, run).items():
            for x, row in rows.items():
                for column, value in row.items():
                    data[series][x][column] += value / options.seeds
    return data


def load_scheduler(path):
    """What ./run bench scheduler measured at line rate, the published policy alone."""
    def fail(why):
        raise Failed(f'{path}: {why}; ./run bench scheduler --json FILE writes such a file')
    try:
        report = json.loads(path.read_bytes())
    except ValueError:
        fail('is no JSON')
    runs = []
    for i, run in enumerate(report.get('runs', [])):
        if not run['policy'].endswith('gather=prefix') or not run['scenario'].endswith(
                ', line rate'):
            continue

        def number(key, settings=run['settings'], i=i):
            try:
                return float(settings[key])
            except (KeyError, ValueError):
                fail(f'runs[{i}].settings.{key}: must be a number in quotes')

        dispatched, dropped, per_cpu_second = (
            number(key) / 1e6 for key in ('dispatched_per_second', 'dropped_per_second',
                                          'requests_per_cpu_second'))
        runs.append({
            'models': number('models'), 'lanes': number('lanes'), 'shards': number('shards'),
            'dispatched_m': dispatched, 'dropped_m': dropped,
            'dispatched_per_cpu_second_m': per_cpu_second * dispatched / max(
                dispatched + dropped, 1e-9),
            'taken_per_cpu_second_m': per_cpu_second,
            'lateness_p50_us': number('lateness_p50_us'),
            'lateness_p99_us': number('lateness_p99_us')})
    if not runs:
        fail('holds no run at line rate')
    return runs, report['runs'][-1]


def of_scheduler(label, point, options):
    """What ./run bench scheduler measured, of the runs at line rate that have its `with` models,
    lanes and shards, column by column the median: dispatched_m, dropped_m (millions a second),
    dispatched_per_cpu_second_m, taken_per_cpu_second_m, lateness_p50_us, lateness_p99_us, and how
    many runs there are."""
    runs, _ = load_scheduler(options.scheduler)
    asked = [run for run in runs
             if all(run[key] == float(value) for key, value in point.withs.items())]
    if not asked:
        return {}
    row = {column: statistics.median_high([run[column] for run in asked]) for column in runs[0]}
    return {label: {point.x: row | {'runs': len(asked)}}}


def scheduler_source(options):
    last = load_scheduler(options.scheduler)[1]
    return (f"measured by ./run bench scheduler at commit {last['commit']}; {last['machine']}; "
            'load in process at line rate; emulated lanes')


# By name: rows from a label, a point and the options. A grid is answered as a whole: grid.py.
QUESTIONS = {
    'run': of_run, 'peak': of_peak, 'least-lanes': of_least_lanes, 'batch-sizes': of_batch_sizes,
    'queueing-delay': of_queueing_delay, 'timeline': of_timeline,
    'distributions': prediction_answers.of_distributions, 'minutes': prediction_answers.of_minutes,
    'partition': partition_answers.of_partition, 'scheduler': of_scheduler, 'grid': None,
    'gpulets': gpulets_answers.of_gpulets, 'fleet': fleet_answers.of_fleet}
# Those that have many rows for one point, whose x is none of them.
OF_MANY_ROWS = ('batch-sizes', 'queueing-delay', 'timeline', 'distributions', 'minutes')
