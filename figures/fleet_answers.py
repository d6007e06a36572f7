"""What OctopInf's figures ask: fleets in virtual time, by planner and policy."""
import collections
import csv

from program import load_toml
from runs import scenario_of


def load_traces(path):
    """By trace, its (instant, Mbit/s)."""
    traces = collections.defaultdict(list)
    with open(path, encoding='utf-8', newline='') as file:
        for row in csv.DictReader(line for line in file if not line.startswith('#')):
            traces[row['trace']].append((float(row['t_s']), float(row['mbps'])))
    return traces


class SourceLinks:
    """The links by which the pipelines' frames come."""

    def __init__(self, path, settings):
        fleet = load_toml(path)
        keys = fleet['fleet'] | dict(setting.split('=', 1) for setting in settings)
        traces = load_traces(path.parent / keys['traces']) if keys.get('traces') else {}
        sites = {device['name']: device.get('site', device['name']) for device in fleet['devices']}
        self._samples = {}  # by pipeline
        for pipeline in fleet['pipelines']:
            site = sites[pipeline['source']]
            for link in fleet['links']:
                if site in link['sites']:
                    self._samples[pipeline['name']] = traces.get(
                        link.get('trace'), [(0.0, float(link['mbps']))])
                    break

    def mean_mbps(self, pipeline, begin, end):
        samples = self._samples.get(pipeline, [(0.0, 0.0)])
        if len(samples) == 1:
            return samples[0][1]
        total = 0.0
        for i, (at, mbps) in enumerate(samples):
            until = min(end, samples[i + 1][0] if i + 1 < len(samples) else end)
            if until > max(begin, at):
                total += (until - max(begin, at)) * mbps
        return total / (end - begin)


def _runs(point, options, seeds):
    return options.program.json('simulate', scenario_of(point, options), '--seeds', seeds,
                                settings=point.settings)['runs']


def _row(run):
    ended = [each['on_time'] + each['late'] for each in run['pipelines']]
    row = {'effective_rps': run['effective_rps'], 'value_rps': run['value_rps'],
           'total_rps': sum(ended) / run['duration_s'], 'offered_rps': run['offered_rps'],
           'on_time_percent': 100 * run['on_time_share'], 'memory_mb': run['server_memory_mb']}
    for column in ('p50_ms', 'p95_ms', 'p99_ms'):
        weighted = 0.0
        for pipeline, weight in zip(run['pipelines'], ended):
            weighted += weight * pipeline[column]
        row[column] = weighted / max(1.0, float(sum(ended)))
    return row


def _minutes(label, point, options):
    run, = _runs(point, options, 1)
    every = int(point.withs.get('every', 1))
    links = SourceLinks(scenario_of(point, options), point.settings)
    seconds = 60.0 * every
    data = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for pipeline in run['pipelines']:
        own = data[f"{label}: {pipeline['name']}"]
        for minute, offered in enumerate(pipeline['offered_by_minute']):
            x = minute - minute % every
            for rows in (own, data[label]):
                rows[x]['offered_rps'] += offered / seconds
                rows[x]['effective_rps'] += pipeline['on_time_by_minute'][minute] / seconds
            own[x]['link_mbps'] = links.mean_mbps(pipeline['name'], 60.0 * x, 60.0 * x + seconds)
    return data


def of_fleet(label, point, options):
    """The point's fleet; its settings are keys of its [fleet] ("planner=rim"). `with.of`:
      run      (default) at the point's x: effective_rps, least_rps and most_rps of the seeds,
               value_rps (results on time, each by the accuracy of the exits that made it),
               total_rps (late results too), offered_rps, on_time_percent, p50_ms, p95_ms, p99_ms
               (results of all pipelines, weighted by how many each has), memory_mb of servers
      minutes  at x = minute, each `with.every` (1): series "LABEL: PIPELINE" and, for all together,
               LABEL: effective_rps, offered_rps, and the link_mbps of the pipeline's source. One
               seed
    Means over the seeds."""
    if point.withs.get('of') == 'minutes':
        return _minutes(label, point, options)
    means, effective = collections.Counter(), []
    for run in _runs(point, options, options.seeds):
        row = _row(run)
        effective.append(row['effective_rps'])
        for column, value in row.items():
            means[column] += value / options.seeds
    spread = {'least_rps': min(effective), 'most_rps': max(effective)}
    return {label: {point.x: dict(means) | spread}}
