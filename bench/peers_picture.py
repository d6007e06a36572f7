"""The picture of `./run bench peers --json FILE`: a panel for each mix, a line for each server,
ours in green. Answers in time over the requests offered, by load.

    peers_picture.py FILE PICTURE.png|svg
    peers_picture.py FILE                    prints the tables of docs/compare.md
"""
import json
import pathlib
import subprocess
import sys
import tempfile

OURS = 'Tactus'
COLOURS = {OURS: '#0b6e4f', 'Triton': '#c8553d', 'MLServer': '#5b7db1', 'LitServe': '#b8860b',
           'BentoML': '#8a6bbe', 'Ray Serve': '#888888'}
TITLES = {'small': 'one small model, 25 ms', 'two': 'two plain ResNets, 50 and 200 ms',
          'exits': 'three models with early exits, 50 ms'}

PLOT = '''
set terminal {terminal}
set output '{output}'
set multiplot layout 1,{panels}
set grid ytics lc rgb '#dddddd' lt 1
set border 3 lc rgb '#888888'
set tics nomirror textcolor rgb '#333333'
set xlabel 'offered, % of full depth'
set xrange [0:155]
set yrange [-2:104]
set lmargin 6
set rmargin 2
set key at graph 0.24, graph 0.06 left bottom Left reverse samplen 2
{plots}
unset multiplot
'''


def mixes(report):
    """Mix -> its rows, by load."""
    found = {}
    for row in report['rows']:
        found.setdefault(row['mix'], []).append(row)
    return {mix: sorted(rows, key=lambda row: row['of_full_depth']) for mix, rows in found.items()}


def servers(rows):
    """Those that every row has, ours first."""
    return [name for name in COLOURS if all(name in row['goodput_rps'] for row in rows)]


def picture(report, path):
    with tempfile.TemporaryDirectory() as folder:
        plots = []
        for mix, rows in mixes(report).items():
            lines = []
            for name in reversed(servers(rows)):  # ours on top
                data = pathlib.Path(folder) / f'{mix}-{name}.dat'
                data.write_text(''.join(
                    f"{100 * row['of_full_depth']} "
                    f"{100 * row['goodput_rps'][name]['median'] / row['offered_rps']}\n"
                    for row in rows))
                lines.append(f"'{data}' using 1:2 with linespoints lw {3.5 if name == OURS else 2} "
                             f"pt 7 ps 0.7 lc rgb '{COLOURS[name]}' title '{name}'")
            plots.append(f"set title '{TITLES[mix]}: in time, %' font ',12'\n"
                         f"plot {', '.join(lines)}\nunset key")
        size = f'size {430 * len(plots)},340'
        terminal = (f"svg {size} font 'sans,11' background '#ffffff'" if path.suffix == '.svg' else
                    f"pngcairo {size} font 'sans,11' background '#ffffff'")
        script = PLOT.format(terminal=terminal, output=path, panels=len(plots),
                             plots='\n'.join(plots))
        subprocess.run(['gnuplot'], input=script, text=True, check=True)


def cell(rps):
    return f"{rps['median']:.0f} ({rps['least']:.0f} to {rps['most']:.0f})"


def tables(report):
    for mix, rows in mixes(report).items():
        names = servers(rows)
        accuracy = any(row['accuracy'] for row in rows)
        print(f"\n**{mix}**: {TITLES[mix]}\n\n| offered, of full depth | {' | '.join(names)} | "
              f"over Triton |{' accuracy, ours and whole |' if accuracy else ''}")
        print('|---|' + '---:|' * (len(names) + 1 + accuracy))
        for row in rows:
            best = next(iter(row['goodput_rps']))
            cells = [f"**{cell(row['goodput_rps'][name])}**" if name == best else
                     cell(row['goodput_rps'][name]) for name in names]
            over = row['over_triton']
            line = [f"{row['offered_rps']:.0f}/s, {row['of_full_depth']}", *cells,
                    f'{over:.2f}' if over is not None else '-']
            if accuracy:
                line.append(f"{100 * row['accuracy'][OURS]:.1f} and "
                            f"{100 * row['accuracy']['full depth']:.1f} %")
            print(f"| {' | '.join(line)} |")


def main(file, *out):
    report = json.loads(pathlib.Path(file).read_text())
    if out:
        picture(report, pathlib.Path(out[0]))
    else:
        tables(report)


if __name__ == '__main__':
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
