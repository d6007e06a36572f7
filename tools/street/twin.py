"""The simulated twin of a run: `tactus simulate`, told what the cluster's controller knew.

That is the plan that served for most of the run, and the rate of each link as the cluster measured
it: what a call has of a link is less than the link carries, as TCP begins each call anew.
"""
import datetime
import json
import statistics
import subprocess

from network import Refused

BAR = 0.10


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


def served_longest(plans, begin_s, end_s):
    """Of the plans that were adopted, the one with most of the time from `begin_s` to `end_s`."""
    adopted = sorted((seconds_of(each['decided']), each['epoch'], each['plan']) for each in plans
                     if each['fate'] == 'adopted')
    if not adopted:
        raise Refused('the cluster\'s history has no plan that was adopted')
    ends = [since for since, _, _ in adopted[1:]] + [end_s]
    return max(zip(adopted, ends),
               key=lambda pair: min(pair[1], end_s) - max(pair[0][0], begin_s))[0][2]


def measured_links(rows, declared, begin_s, end_s):
    """By camera (Mbit/s, one-way ms, loss): the median of the run's samples, else as declared."""
    links = dict(declared)
    for name, (mbps, latency_ms, loss) in declared.items():
        rates = [row['mbps'] for row in rows if {row['from'], row['to']} == {name, 'server'}
                 and row['mbps'] > 0 and begin_s <= seconds_of(row['at']) <= end_s]
        if rates:
            links[name] = (min(mbps, statistics.median(rates)), latency_ms, loss)
    return links


def simulated(binary, fleet, plan, seconds):
    """`plan` is a file; so is `fleet`, beside which the report comes to lie."""
    out = fleet.with_suffix('.json')
    done = subprocess.run([str(binary), 'simulate', str(fleet), '--plan', str(plan), '--json',
                           str(out), '--set', f'duration_s={max(60, seconds):g}'],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f'tactus simulate {fleet}: {done.stderr.strip() or done.stdout.strip()}')
    return json.loads(out.read_text(encoding='utf-8'))['runs'][0]


def beside(binary, fleet, plan, run):
    """P50 of each camera's persons, measured and simulated; None where nothing was in time."""
    report = simulated(binary, fleet, plan, run['seconds'])
    cameras = {}
    for each in report['pipelines']:
        real = run['cameras'][each['name']]['p50_ms'] or None
        there = each['p50_ms'] or None
        cameras[each['name']] = {
            'measured_p50_ms': real, 'simulated_p50_ms': there,
            'apart': abs(there - real) / real if real and there else None}
    return {'speed': run['speed'], 'cameras': cameras,
            'measured_rps': run['persons_on_time_rps'], 'simulated_rps': report['effective_rps']}
