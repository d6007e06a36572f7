"""The picture of `./run bench policies --json FILE`: a panel for each part of the suite, a bar for
each policy, ours in green. Accuracy in time: of what is in time, over all requests.

    leaderboard.py FILE PICTURE.png|svg
"""
import json
import pathlib
import subprocess
import sys

OURS = 'horizon'
# Short names for those whose options are long.
NAMES = {'symphony:gather=window,aim=0.8,lead=0.1': 'symphony, ours',
         'symphony:gather=window': 'symphony, published',
         'shepherd:preempt=0': 'shepherd', 'timeout:fill=0.65,share=0.35': 'timeout'}


def met_accuracy(run):
    return 100 * run['accuracy'] * (1 - run['bad_ratio'])


def peak(run):
    return run['peak']['rate_rps'] / run['peak']['fluid_limit_rps']


def met_high(run):
    return 100 * (1 - run['priorities'][0]['bad_ratio'])


# Title, how workloads of the part begin, what a run counts, and whether it is taken at the peak.
PANELS = (
    ("EdgeServing's Figure 4: accuracy in time, %", 'Figure 4', met_accuracy, False),
    ('Exits, 8 lanes, two priorities: accuracy in time, %', 'combination', met_accuracy, False),
    ("Symphony's workloads: peak over the fluid limit", 'symphony', peak, True),
    ('Twelve mixed zoos: peak over the fluid limit', 'zoo ', peak, True),
    ("Strait's mixes: high priority in time, %", 'strait', met_high, False),
)

PLOT = '''
set terminal {terminal}
set output '{output}'
set multiplot layout 1,{panels}
set style fill solid 0.9
unset border
unset xtics
set ytics nomirror scale 0 textcolor rgb '#333333'
set yrange [{rows}-0.5:-0.5] noextend
unset key
{plots}
unset multiplot
'''


def means(runs, begins, figure, at_peak):
    """By policy, in the order of the file; 0 where it passed at no load."""
    found = {}
    for run in runs:
        settings = run['settings']
        if not settings['workload'].startswith(begins):
            continue
        if at_peak and settings.get('of_peak') != '1':
            continue
        found.setdefault(run['policy'], {})[
            settings['workload'], run['offered_rps']] = figure(run)
    workloads = max((len(each) for each in found.values()), default=1)
    return {policy: sum(each.values()) / workloads for policy, each in found.items()}


def script(runs, output):
    policies = list(dict.fromkeys(run['policy'] for run in runs))
    plots, panels = [], 0
    for title, begins, figure, at_peak in PANELS:
        values = means(runs, begins, figure, at_peak)
        if not values:
            continue
        lines = []
        for i, policy in enumerate(policies):
            name = NAMES.get(policy, policy) if panels == 0 else ''
            lines.append(f'{values.get(policy, 0)} {i} "{name}" {1 if policy == OURS else 0} '
                         f'"{values[policy]:.3g}"' if policy in values else
                         f'0 {i} "{name}" 0 "-"')
        data = '\n'.join(lines)
        most = max(values.values()) or 1
        words = title.split(': ')
        plots.append(
            f'$p{panels} << E\n{data}\nE\n'
            f'set title "{words[0]}:\\n{words[1]}" font ",11"\n'
            f'set lmargin {19 if panels == 0 else 2}\n'
            f'set xrange [0:{1.2 * most}]\n'
            f"plot $p{panels} using (0):2:(0):1:($2-0.38):($2+0.38):($4>0 ? 0x0b6e4f : 0x9db4c8)"
            f':ytic(3) with boxxyerror lc rgb variable, '
            f"$p{panels} using ($1+{0.02 * most}):2:5 with labels left font ',9'")
        panels += 1
    terminal = ("svg size 1500,520 font 'sans,11' background '#ffffff'"
                if output.endswith('.svg') else "pngcairo size 1500,520 font 'sans,11'")
    return PLOT.format(terminal=terminal, output=output, panels=panels, rows=len(policies),
                       plots='\n'.join(plots))


def main(source, output):
    runs = json.loads(pathlib.Path(source).read_text(encoding='utf-8'))['runs']
    done = subprocess.run(['gnuplot'], input=script(runs, output), text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f'leaderboard: {done.stderr.strip()}')


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
