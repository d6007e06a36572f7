"""What a run of the street comes to: figures, checks, a table and a plot."""
import csv
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'demo'))
from checks import check  # noqa: E402

import twin  # noqa: E402

OURS = 'octopinf'
GAIN = 1.3
RECOVERY_S = 1.0
# Two runs of one placement differ by so much on a machine that is left alone.
BY_CHANCE = 0.03
COLOURS = {'octopinf': '#0b6e4f', 'server': '#5b7db1', 'edge': '#c8553d'}


def conservative_mbps(trace):
    """The 25th percentile of FILE.csv:TRACE, as a controller counts on a link."""
    path, _, name = trace.rpartition(':')
    with open(path, encoding='utf-8') as file:
        rows = csv.DictReader(line for line in file if not line.startswith('#'))
        rates = sorted(float(row['mbps']) for row in rows if row['trace'] == name)
    return rates[len(rates) // 4]


def placed(where):
    return '; '.join(
        f'{pipeline}: ' + ', '.join(f'{step} on {node}' for step, node in steps.items())
        for pipeline, steps in sorted(where.items()))


def run_of(speed, placement, where, cameras, links, seconds):
    return {'speed': speed, 'placement': placement, 'where': where, 'seconds': seconds,
            'persons_on_time_rps': sum(c['persons_on_time_rps'] for c in cameras.values()),
            'frames_on_time_rps': sum(c['frames_on_time_rps'] for c in cameras.values()),
            'up_mbytes': sum(link['up']['bytes'] for link in links.values()) / 1e6,
            'down_mbytes': sum(link['down']['bytes'] for link in links.values()) / 1e6,
            'cameras': cameras, 'links': links}


def crossing(runs):
    """The last speed at which the plan sends a camera's frames or persons over its link, and that
    camera, the middle one rather than others; None: no plan does."""
    for run in runs[::-1]:
        for name in sorted(run['where'], key=lambda name: name != 'cam2'):
            if run['placement'] == OURS and 'server' in ' '.join(run['where'][name].values()):
                return run['speed'], name
    return None


def cut_of(answered, camera, speed, cut_s, mended_s, seconds, before, after):
    """Recovery: from the link's return to the first answer in time with persons in it."""
    good = sorted(f['at_s'] + f['latency_ms'] / 1e3 for f in answered
                  if not f['late'] and f['persons'])
    back = [at for at in good if at >= mended_s]
    per_second = [0] * round(seconds)
    for f in answered:
        second = int(f['at_s'] + f['latency_ms'] / 1e3)
        if not f['late'] and 0 <= second < len(per_second):
            per_second[second] += f['persons']
    return {'camera': camera, 'speed': speed, 'cut_s': cut_s, 'mended_s': mended_s,
            'recovery_s': back[0] - mended_s if back else None,
            'answers_while_cut': sum(cut_s + 1 < at < mended_s for at in good),
            'on_time_each_second': per_second, 'where_before': before, 'where_after': after}


def at_speeds(runs):
    """Speed to placement to run, in the order of the runs."""
    found = {}
    for run in runs:
        found.setdefault(run['speed'], {})[run['placement']] = run
    return found


def verdict(runs, cut, twins):
    checks, gains = [], []
    for speed, by in at_speeds(runs).items():
        rivals = {name: run['persons_on_time_rps'] for name, run in by.items() if name != OURS}
        if OURS not in by or len(rivals) < 2:
            continue
        ours, best = by[OURS]['persons_on_time_rps'], max(rivals.values())
        gains.append(ours / best if best > 0 else float('inf') if ours > 0 else 0)
        checks.append(check(
            f'persons on time at {speed} Mbit/s, over the better of server and edge',
            min(gains[-1], 1e6), f'>= {1 - BY_CHANCE:g}: 1, less what chance makes',
            gains[-1] >= 1 - BY_CHANCE))
    if gains:
        checks.append(check('the same at the speed where it is most', min(max(gains), 1e6),
                            f'>= {GAIN:g}', max(gains) >= GAIN))
    if cut is not None:
        value = cut['recovery_s'] if cut['recovery_s'] is not None else float('inf')
        checks.append(check("from the uplink's return to the first answer in time, s",
                            min(value, 1e6), f'<= {RECOVERY_S:g}', value <= RECOVERY_S))
    apart = [each['apart'] for twin_ in twins for each in twin_['cameras'].values()
             if each['apart'] is not None]
    if apart:
        checks.append(check('P50 of the simulated twin, median of how far it is off',
                            statistics.median(apart), f'<= {twin.BAR:g}',
                            statistics.median(apart) <= twin.BAR))
    return checks


def machine():
    """The processor's name, as the kernel tells it."""
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        names = [line.partition(':')[2].strip() for line in file if line.startswith('model name')]
    return f'{names[0] if names else "a processor without a name"}, {os.cpu_count()} cores'


def commit():
    here = pathlib.Path(__file__).resolve().parent
    done = subprocess.run(['git', '-C', str(here), 'describe', '--always', '--dirty'],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or 'unknown'


def document(run, street, cores, link_part, latency_ms):
    return {'tactus_street': 1, 'source': 'measured; links EMULATED in user space',
            'cores': cores, 'quotas_refused': street.without_quota(),
            'machine': machine(), 'commit': commit(), 'load_average': os.getloadavg(),
            'link_part': link_part, 'latency_ms': latency_ms, 'fps': run.fps,
            'slo_ms': 500, 'costs': {name: cost.summary() for name, cost in run.costs.items()},
            'runs': run.runs, 'cut': run.cut, 'twins': run.twins,
            'checks': verdict(run.runs, run.cut, run.twins)}


def aligned(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(str(cell).ljust(width) if i < 2 else str(cell).rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
                     for row in rows)


def table(doc):
    rows = [('Mbit/s', 'placement', 'persons/s', 'frames/s', 'late', 'P50', 'P95', 'up', 'down',
             *doc['runs'][0]['cameras']),
            ('middle', '', 'on time', 'on time', 'frames', 'ms', 'ms', 'MB', 'MB',
             *['persons/s'] * len(doc['runs'][0]['cameras']))]
    for run in doc['runs']:
        cameras = run['cameras'].values()
        p50 = statistics.median(c['p50_ms'] for c in cameras)
        p95 = max(c['p95_ms'] for c in cameras)
        rows.append((run['speed'], run['placement'], f'{run["persons_on_time_rps"]:.1f}',
                     f'{run["frames_on_time_rps"]:.1f}', sum(c['frames_late'] for c in cameras),
                     f'{p50:.0f}', f'{p95:.0f}', f'{run["up_mbytes"]:.1f}',
                     f'{run["down_mbytes"]:.1f}',
                     *[f'{c["persons_on_time_rps"]:.1f}' for c in cameras]))
    told = [f'{len(doc["cores"]) - 1} cameras of {doc["fps"]:g} frames a second, each answered '
            f'within {doc["slo_ms"]} ms or of no use',
            '', aligned(rows), '']
    told += [f'{run["speed"]} Mbit/s, the plan: {placed(run["where"])}' for run in doc['runs']
             if run['placement'] == OURS]
    for each in doc['twins']:
        told += [f'{each["speed"]} Mbit/s, {name}: P50 {c["measured_p50_ms"] or 0:.0f} ms '
                 f'measured, {c["simulated_p50_ms"] or 0:.0f} ms simulated'
                 for name, c in each['cameras'].items()]
    return '\n' + '\n'.join(told) + '\n'


PLOT = '''
set terminal pngcairo size 1620,660 font 'sans,19' background '#ffffff'
set output '{output}'
set multiplot layout 1,2 title "{title}" font ",22"
set grid ytics lc rgb '#dddddd' lt 1
set border 3 lc rgb '#888888'
set tics nomirror textcolor rgb '#333333'
set lmargin 9
set rmargin 3
set yrange [0:{top}]
set title 'persons a second with their poses in time'
set xlabel "the middle camera's link, Mbit/s"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set key top right
plot {bars}
set title "{right}"
set yrange [0:*]
set xlabel 'seconds'
{cut}
plot {lines}
unset multiplot
'''


def plot(doc, folder):
    """street.png; None where gnuplot is missing."""
    if shutil.which('gnuplot') is None:
        return None
    folder = pathlib.Path(folder)
    by_speed = at_speeds(doc['runs'])
    names = [name for name in COLOURS if any(name in by for by in by_speed.values())]
    bars = folder / 'bars.dat'
    bars.write_text('\n'.join(
        ' '.join([f'"{pathlib.Path(str(speed)).name}"',
                  *[str(by[name]['persons_on_time_rps']) if name in by else '0' for name in names]])
        for speed, by in by_speed.items()) + '\n', encoding='utf-8')
    cut = doc['cut']
    marks = ''
    if cut is not None:
        series = {'cut': ('', cut['on_time_each_second'], COLOURS[OURS])}
        right = f'{cut["camera"]} at {cut["speed"]} Mbit/s, its uplink cut for a while'
        marks = '\n'.join(f'set arrow from {at}, graph 0 to {at}, graph 1 nohead dt 2 '
                          "lc rgb '#999999'" for at in (cut['cut_s'], cut['mended_s']))
    else:
        speed = list(by_speed)[0]
        series = {name: (name, [sum(each) for each in zip(
            *[c['on_time_each_second'] for c in run['cameras'].values()])], COLOURS[name])
                  for name, run in by_speed[speed].items()}
        right = f'persons a second at {speed} Mbit/s, over the run'
    lines = []
    for name, (title, values, colour) in series.items():
        data = folder / f'{name}.dat'
        named = f"title '{title}'" if title else 'notitle'
        data.write_text('\n'.join(f'{i + 0.5} {value}' for i, value in enumerate(values)) + '\n',
                        encoding='utf-8')
        lines.append(f"'{data}' using 1:2 with linespoints lw 2.5 pt 7 ps 0.7 lc rgb '{colour}' "
                     f"{named}")
    columns = [f"'{bars}' using {i + 2}:xtic(1) lc rgb '{COLOURS[name]}' title '{name}'"
               for i, name in enumerate(names)]
    title = f'A street of {len(doc["cores"]) - 1} cameras, {doc["fps"]:g} frames a second each'
    top = 1.4 * max([run['persons_on_time_rps'] for run in doc['runs']] + [1])
    script = PLOT.format(top=top, output=folder / 'street.png', title=title,
                         bars=', '.join(columns),
                         right=right, cut=marks, lines=', '.join(lines))
    done = subprocess.run(['gnuplot'], input=script, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        print(f'no plot: {done.stderr.strip().splitlines()[-1]}', file=sys.stderr)
        return None
    return folder / 'street.png'
