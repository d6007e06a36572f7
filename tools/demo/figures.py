"""What the demo makes of its runs: the table, the checks, the plot."""
import pathlib
import shutil
import subprocess

from checks import check

OURS, PUBLISHED = 'horizon', 'edgeserving'


def percent(share, digits=1):
    return f'{100 * share:.{digits}f}'


def exit_mix(run):
    """Shares of the exits 1 to 4, all models together, weighed by their answered requests."""
    answered = {m['name']: m['outcomes']['met'] + m['outcomes']['late'] for m in run['models']}
    total = sum(answered.values()) or 1
    mix = {}
    for model in run['models']:
        for name, share in model['exits'].items():
            key = name.rsplit('/', 1)[-1]
            mix[key] = mix.get(key, 0) + share * answered[model['name']] / total
    return mix


HEADER = ('policy', 'load', 'offered', 'goodput', 'violations', 'P50', 'P95', 'P99',
          'exits 1/2/3/4', 'accuracy', 'limit')
UNITS = ('', 'of full', 'req/s', 'req/s', '%', 'ms', 'ms', 'ms', '% of answers', 'measured', '%')


def row(run):
    mix = exit_mix(run)
    shares = '/'.join(f'{100 * mix.get(str(e), 0):.0f}' for e in (1, 2, 3, 4))
    name = run['policy'] + (' (HTTP)' if run['protocol'] == 'http' else '')
    accuracy, limit = run['measured_accuracy'], run.get('accuracy_limit')
    return (name, f"{run['load_ratio']:.2f}", f"{run['offered_rps']:.0f}",
            f"{run['goodput_rps']:.0f}", percent(run['bad_ratio'], 2), f"{run['p50_ms']:.1f}",
            f"{run['p95_ms']:.1f}", f"{run['p99_ms']:.1f}", shares,
            '-' if accuracy is None else percent(accuracy),
            '-' if limit is None else percent(limit))


def table(runs):
    """Plain text, grouped by load so that the rivals stand side by side."""
    ordered = sorted(runs, key=lambda r: (r['load_ratio'], r['protocol']))
    rows = [row(run) for run in ordered]
    widths = [max(len(line[i]) for line in (HEADER, UNITS, *rows)) for i in range(len(HEADER))]

    def line(cells):
        return '  '.join(cell.ljust(w) if i == 0 else cell.rjust(w)
                         for i, (cell, w) in enumerate(zip(cells, widths))).rstrip()

    out = [line(HEADER), line(UNITS), '-' * (sum(widths) + 2 * (len(widths) - 1))]
    previous = None
    for run, cells in zip(ordered, rows):
        if previous is not None and run['load_ratio'] != previous:
            out.append('')
        previous = run['load_ratio']
        out.append(line(cells))
    return '\n'.join(out)


def verdict(runs, slo_ms):
    """The load that decides (the lowest where all-final loses 15 % or more), and its checks."""
    at = {}
    for run in runs:
        if run['protocol'] == 'grpc':
            at.setdefault(run['load_ratio'], {})[run['policy']] = run
    decisive = next((load for load in sorted(at) if at[load].get('all-final', {}).get(
        'bad_ratio', 0) >= 0.15), None)
    if decisive is None:
        worst = max((r['all-final']['bad_ratio'] for r in at.values() if 'all-final' in r),
                    default=0)
        return None, [check('all-final violates at some load', worst, '>= 0.15', False)]
    ours, full, early = (at[decisive][p] for p in (OURS, 'all-final', 'all-early'))
    gain = (ours['measured_accuracy'] or 0) - (early['measured_accuracy'] or 0)
    # "Far above": at least half of what full depth gains where it still keeps its deadlines.
    best = max(r['all-final']['measured_accuracy'] or 0 for r in at.values())
    wanted = (best - (early['measured_accuracy'] or 0)) / 2
    load = f'at {decisive:.2f} of full-depth capacity'
    return decisive, [
        check(f'all-final violations {load}', full['bad_ratio'], '>= 0.15', True),
        check(f'{OURS} violations {load}', ours['bad_ratio'], '< 0.01', ours['bad_ratio'] < 0.01),
        check(f'{OURS} P95 {load}, ms', ours['p95_ms'], f'< {slo_ms:g}', ours['p95_ms'] < slo_ms),
        check(f'{OURS} accuracy over all-early {load}', gain,
              f'>= {wanted:.4f}, half of what full depth gains', gain >= wanted > 0)]


COLOURS = {OURS: '#0b6e4f', PUBLISHED: '#b8860b', 'all-final': '#c8553d', 'all-early': '#5b7db1'}

PLOT = '''
set terminal {terminal}
set output '{output}'
set multiplot layout 1,2 title "{title}" font ",15"
set grid ytics lc rgb '#dddddd' lt 1
set border 3 lc rgb '#888888'
set tics nomirror textcolor rgb '#333333'
set xlabel 'offered load'
set xrange [{left}:{right}]
set format x '%.0f %%'
set label 1 "what full depth\\ncan sustain" at 100, graph 0.62 right offset -0.7,0 tc rgb '#777777'
set arrow 1 from 100, graph 0 to 100, graph 1 nohead dt 2 lc rgb '#999999'
set lmargin 9
set rmargin 3
set title 'violations, %'
set yrange [-2:102]
set key left top reverse Left samplen 2
plot {violations}
set title 'accuracy measured from the answers, %'
set yrange [{low}:{high}]
unset key
unset label 1
plot {accuracies}
unset multiplot
'''


def plot(runs, policies, title, folder):
    """out/demo/demo.svg and .png. Returns the files that were made."""
    folder = pathlib.Path(folder)
    if shutil.which('gnuplot') is None:
        return []
    grpc = sorted((r for r in runs if r['protocol'] == 'grpc'), key=lambda r: r['load_ratio'])
    accuracies = [100 * r['measured_accuracy'] for r in grpc if r['measured_accuracy'] is not None]
    if not accuracies:
        return []
    for policy in policies:
        lines = [' '.join(str(100 * (r[key] or 0))
                          for key in ('load_ratio', 'bad_ratio', 'measured_accuracy'))
                 for r in grpc if r['policy'] == policy]
        (folder / f'{policy}.dat').write_text('\n'.join(lines) + '\n', encoding='ascii')

    def curves(column):
        return ', '.join(f"'{folder}/{p}.dat' using 1:{column} with linespoints lw 2.5 pt 7 ps 0.9 "
                         f"lc rgb '{COLOURS[p]}' title '{p}'" for p in policies)

    loads = [r['load_ratio'] for r in grpc]
    made = []
    for suffix, terminal in (('svg', "svg size 1080,440 font 'sans,13' background '#ffffff'"),
                             ('png', "pngcairo size 1620,660 font 'sans,19' background '#ffffff'")):
        output = folder / f'demo.{suffix}'
        script = PLOT.format(terminal=terminal, output=output, title=title,
                             left=100 * min(loads) - 5, right=100 * max(loads) + 5,
                             violations=curves(2), accuracies=curves(3),
                             low=min(accuracies) - 2, high=max(accuracies) + 2)
        done = subprocess.run(['gnuplot'], input=script, text=True, capture_output=True,
                              check=False)
        if done.returncode == 0:
            made.append(output)
        else:
            print(f'  no plot {output}: {done.stderr.strip().splitlines()[-1]}')
    return made
