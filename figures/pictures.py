"""Figures as pictures, by gnuplot.

[[panels]] of a figure's file: curves of column `y` over the points' x, or over the column `x`; all
series, or those of a `group` ("GROUP: NAME"), which then is the `title` if no other is given.
  x_label, y_label, x_min, x_max, y_min, y_max, log_x    the axes
  line, line_label     a horizontal line
  limit                also accuracy_limit_percent, once for each distinct curve of loads
  bars                 bars by the points' names; of peak_rps with the paper's numbers as crosses
  stacked              filled curves on top of one another
  cdf                  the share of a series' rows whose `x` is no larger; `counted`: what the rows
                       are, whose number then stands behind each name
  mark, mark_label     a ring around points that have more than 0 in this column
  relative_to          divided by this series' y at the same x, or at its only x
  each                 {name = [values]}: a panel for each, "{name}" being the value in it
A figure says how many panels are `in_row`. One without panels shows shares of exits.
"""
import subprocess
import sys

# Colours that differ for most colour-blind readers as well, and a point shape for each.
COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#666666', '#8c510a',
           '#000000', '#f0e442']
SHAPES = [7, 5, 9, 13, 11, 4, 6, 8, 10, 12]
PANEL_WIDTH = 520
WIDE_PANEL = 1100  # of bars that have a row of their own
PLOT_HEIGHT = 440  # of a panel without its key
KEY_ROW_HEIGHT = 18
LONG_NAME = 22     # longer ones do not stand side by side in a key
MANY_POINTS = 40   # marks on curves of more would hide them


def plain(text):
    """For gnuplot's double-quoted strings with enhanced text, where some letters have meanings."""
    return ''.join('\\\\' + c if c in '_^@~{}' else c for c in text if c != '"')


def block(name, rows):
    lines = ''.join(' '.join(map(str, row)) + '\n' for row in rows)
    return f'${name} << EOD\n{lines}EOD\n'


class Panel:
    """One panel of a figure, with the curves that it shows: (series, name there, style)."""

    def __init__(self, index, says, names, data):
        self.index, self.says, self.data = index, says, data
        self.prefix = says['group'] + ': ' if 'group' in says else ''
        shown = [] if says.get('stacked') else [n for n in names if self.shows(n)]
        shown = shown or [n for n in data if self.shows(n)]
        self.curves = [(n, n[len(self.prefix):]) for n in shown]
        self.styles = []
        self.blocks, self.plots = '', []

    def shows(self, series):
        return series.startswith(self.prefix) and series in self.data

    def __getitem__(self, key):
        return self.says.get(key, '' if key.endswith(('label', 'title')) else 0)

    def y(self, series, x, column=None):
        """As the panel shows it; None where the row, or what it is relative to, has none."""
        column = column or self['y']
        y = self.data[series].get(x, {}).get(column)
        if y is None or not self['relative_to']:
            return y
        base = self.data[self['relative_to']]
        over = (next(iter(base.values())) if len(base) == 1 else base.get(x, {})).get(column, 0)
        return y / over if over > 0 else None

    def points(self, series, column=None):
        rows = self.data[series]
        if self['cdf']:
            values = sorted(row[self['x']] for row in rows.values() if self['x'] in row)
            return [(value, 100 * (i + 1) / len(values)) for i, value in enumerate(values)]
        xs = {x: row.get(self['x']) if self['x'] else x for x, row in rows.items()}
        return [(xs[x], self.y(series, x, column)) for x in rows
                if xs[x] is not None and self.y(series, x, column) is not None]

    def lines(self):
        most = max((len(self.data[series]) for series, _ in self.curves), default=0)
        last = len(self.curves) - 1
        for i, (series, name) in enumerate(self.curves):
            colour, rows = COLOURS[self.styles[i]], self.data[series]
            if len(rows) == 1 and most > 1:  # a level, for all x
                y = self.y(series, next(iter(rows)))
                if y is not None:
                    self.plots.append(f"{y} with lines dt 2 lc rgb '{colour}' lw 2 "
                                      f'title "{plain(name)}"')
                continue
            here = f'p{self.index}s{i}'
            self.blocks += block(here, self.points(series))
            # Each thinner than the one before it, so that curves that coincide can all be seen.
            thick = 1.5 + 3.0 * (last - i) / max(1, last)
            style = f'linespoints pt {SHAPES[self.styles[i]]} ps {0.6 + 0.2 * thick:.1f}'
            if most > MANY_POINTS:
                style = 'steps' if self['cdf'] else 'lines'
            counted = f' ({len(rows)} {self["counted"]})' if self['counted'] else ''
            self.plots.append(f"${here} using 1:2 with {style} lc rgb '{colour}' lw {thick:.1f} "
                              f'title "{plain(name + counted)}"')
            marks = [(x, row[self['y']]) for x, row in rows.items() if row.get(self['mark'], 0) > 0]
            if marks:
                self.blocks += block(here + 'marks', marks)
                self.plots.append(f"${here}marks using 1:2 with points pt 6 ps 3 lw 2.5 lc rgb "
                                  f"'black' title \"{plain(self['mark_label'])}\"")
        if self['limit']:
            self.limits()

    def limits(self):
        drawn = []
        for i, (series, _) in enumerate(self.curves):
            points = self.points(series, 'accuracy_limit_percent')
            if points in drawn:
                continue
            drawn.append(points)
            self.blocks += block(f'p{self.index}l{i}', points)
            colour = '#444444' if len(drawn) == 1 else COLOURS[i % len(COLOURS)]
            title = 'accuracy limit' if len(drawn) == 1 else ''
            self.plots.append(f"$p{self.index}l{i} using 1:2 with lines dt 3 lw 2 lc rgb "
                              f"'{colour}' title \"{title}\"")

    def bars(self, groups):
        """One row a group of bars, one column a series; what is not there has no height."""
        here = f'p{self.index}'
        self.blocks = block(here, [[f'"{plain(group)}"']
                                   + [self.y(series, x) or 0 for series, _ in self.curves]
                                   for x, group in sorted(groups.items())])
        for i, (_, name) in enumerate(self.curves):
            self.plots.append(f"${here} using {i + 2}:xtic(1) with histograms lc rgb "
                              f"'{COLOURS[self.styles[i]]}' title \"{plain(name)}\"")
        if self['y'] == 'peak_rps':
            self.paper(here)
        if all(len(self.data[series]) == 1 for series, _ in self.curves):
            self.numbers(here)

    def bar_at(self, group, bar):
        """gnuplot gives each of n bars 1 / (n + 1) of its group, whose number is in the middle."""
        n = len(self.curves)
        return group + (bar - (n - 1) / 2) / (n + 1)

    def paper(self, here):
        crosses = [(self.bar_at(group, i), row['paper'])
                   for i, (series, _) in enumerate(self.curves)
                   for group, row in enumerate(self.data[series].values()) if 'paper' in row]
        if crosses:
            self.blocks += block(here + 'paper', crosses)
            self.plots.append(f"${here}paper using 1:2 with points pt 2 ps 1.2 lw 2 lc rgb 'black' "
                              'title "the paper\'s"')

    def numbers(self, here):
        """Over the bars of a group that is the only one: there is room for them."""
        tops = [(self.bar_at(0, i), y, f'{y:.4g}') for i, (series, _) in enumerate(self.curves)
                if (y := self.y(series, next(iter(self.data[series])))) is not None]
        most = max((y for _, y, _ in tops), default=0)
        self.blocks += block(here + 'numbers', tops + [(0, 1.06 * most, '""')])
        self.plots.append(f"${here}numbers using 1:2:3 with labels offset 0,0.6 font ',11' notitle")

    def stack(self):
        """Areas from the sum of all down to the first, each over what it hides."""
        sums = {}
        for i, (series, _) in enumerate(self.curves):
            for x, row in self.data[series].items():
                sums[x] = sums.get(x, 0) + row.get(self['y'], 0)
            self.blocks += block(f'p{self.index}s{i}', [(x, sums[x]) for x in self.data[series]])
        for i, (_, name) in reversed(list(enumerate(self.curves))):
            # Beyond ten a colour says nothing.
            title = f'title "{plain(name)}"' if len(self.curves) <= len(COLOURS) else 'notitle'
            self.plots.append(f"$p{self.index}s{i} using 1:2 with filledcurves x1 fs solid 0.8 "
                              f"lc rgb '{COLOURS[i % len(COLOURS)]}' {title}")

    def end_of_y(self):
        """gnuplot finds no end by itself, and says so, where all is 0."""
        if self['y_max']:
            return self['y_max']
        all_0 = not any(row.get(self['y'], 0) for series, _ in self.curves
                        for row in self.data[series].values())
        return 1 if all_0 and not self['cdf'] else '*'

    def text(self, groups):
        if self['bars']:
            self.bars(groups)
        elif self['stacked']:
            self.stack()
        else:
            self.lines()
        text = self.blocks + (f'set xlabel "{plain(self["x_label"])}"\n'
                              f'set ylabel "{plain(self["y_label"])}"\n'
                              f'set yrange [{self["y_min"]}:{self.end_of_y()}]\n')
        if self['bars']:
            text += ('set xrange [*:*]\nset style histogram clustered gap 1\n'
                     'set style fill solid 0.85\n')
        else:
            ends = '*:*' if self['log_x'] else f'{self["x_min"]}:{self["x_max"] or "*"}'
            text += f'set xrange [{ends}]\nset xtics autofreq\n'
        text += ("set logscale x\nset format x '10^{%T}'\n" if self['log_x']
                 else 'unset logscale x\nset format x\n')
        title = self.says.get('title', self.says.get('group', ''))
        text += (f'set title "{plain(title)}" font \',12\' offset 0,-0.5\n' if title
                 else 'unset title\n')
        text += 'unset label\nunset arrow\n'
        if self['line']:
            text += (f'set arrow from graph 0, first {self["line"]} to graph 1, first '
                     f"{self['line']} nohead dt 2 lc rgb '#888888'\n"
                     f'set label "{plain(self["line_label"])}" at graph 0.02, first {self["line"]} '
                     "offset 0,0.6 font ',10' tc rgb '#666666'\n")
        return text + 'plot ' + ', '.join(self.plots) + '\n'


def panels_of(says, names, data, colours):
    each = []
    for panel in says.get('panels', []):
        (name, values), = panel.get('each', {'': ['']}).items()
        for value in values:
            each.append({key: text.replace('{%s}' % name, str(value)) if isinstance(text, str)
                         else text for key, text in panel.items()})
    panels = [Panel(i, panel, names, data) for i, panel in enumerate(each)]
    give_styles(panels, names, colours)
    return panels


def give_styles(panels, series, colours):
    """A system looks the same in all panels, where there are colours enough for that, and in all
    figures where the paper's `colours` name it."""
    names = list(dict.fromkeys(label[len(panel.prefix):] for label in series for panel in panels
                               if label.startswith(panel.prefix)))
    styles = {name: i for i, name in enumerate(colours) if name in names}
    if len(names) <= len(COLOURS):
        free = (i for i in range(len(COLOURS)) if i not in set(styles.values()))
        styles |= {name: next(free) for name in names if name not in styles}
    for panel in panels:
        panel.styles = [styles.get(name, i % len(COLOURS))
                        for i, (_, name) in enumerate(panel.curves)]


def exits(series, data):
    rows = [[x] + [100 * row[name] for name in ('layer1', 'layer2', 'layer3', 'final')]
            for x, row in data[series].items()]
    return block('exits', [[f'{value:g}' for value in row] for row in rows]) + (
        'set style data histograms\nset style histogram rowstacked\n'
        'set style fill solid 0.85 border -1\nset boxwidth 0.75\nset yrange [0:100]\n'
        'set xlabel "requests/s of ResNet152 (of 6 in all)"\nset ylabel "requests (%)"\n'
        "plot $exits using 5:xtic(1) title 'final' lc rgb '#0072b2', "
        "'' using 4 title 'layer3' lc rgb '#56b4e9', '' using 3 title 'layer2' lc rgb '#e69f00', "
        "'' using 2 title 'layer1' lc rgb '#d55e00'\n")


def shape_of_keys(panels, in_row):
    """The rows of the longest key, and the names that stand side by side in one."""
    if not panels:
        return 2, 2
    columns, most = 2, 0
    for panel in panels:
        if panel['stacked'] and len(panel.curves) > len(COLOURS):
            continue
        most = max(most, len(panel.curves) + (1 if panel['limit'] or panel['bars'] else 0))
        if in_row > 1 and any(len(name) > LONG_NAME for _, name in panel.curves):
            columns = 1
    columns = 4 if in_row == 1 else columns
    return -(-most // columns), columns


def script(paper, figure, says, data, stem):
    """A gnuplot script that holds its data and draws both `stem`.svg and `stem`.png."""
    names = [series['label'] for series in figure['series']]
    groups = {x: name for series in figure['series'] for x, name in series['points']}
    panels = panels_of(says, names, data, paper.get('colours', []))
    in_row = says.get('in_row', 4)
    columns = min(max(1, len(panels)), in_row)
    rows = -(-max(1, len(panels)) // columns)
    key_rows, key_columns = shape_of_keys(panels, in_row)
    width = WIDE_PANEL if in_row == 1 else max(760, PANEL_WIDTH * columns)
    height = (PLOT_HEIGHT + KEY_ROW_HEIGHT * key_rows) * rows
    heading = f'{paper["title"]}, {figure["heading"]}: {says["title"]}'
    # In points, so that a heading is no wider than its picture: a letter is 0.75 pixels a point.
    font = min(15, max(8, int(width / (0.75 * len(heading)))))
    drawing = (
        f'set multiplot layout {rows},{columns} title "{plain(heading)}\\n'
        f'{{/=10 {plain(figure["source"])}}}" font \',{font}\'\n'
        f"set key outside below center horizontal maxcols {key_columns} samplen 2 font ',11'\n"
        f'set bmargin {3.8 + 0.87 * key_rows}\nset xlabel offset 0,0.4\nset ylabel offset 0.6,0\n'
        "set grid back lt 1 lw 0.5 lc rgb '#e0e0e0'\nset border 3\nset tics nomirror\n")
    drawing += ''.join(panel.text(groups) for panel in panels) or exits(names[0], data)
    drawing += 'unset multiplot\n'
    return ''.join(
        f"reset\nset terminal {terminal} size {width},{height} font 'Sans,12' "
        "background '#ffffff'\n"
        f'set output "{stem}.{ending}"\n{drawing}set output\n'
        for terminal, ending in (('svg', 'svg'), ('pngcairo', 'png')))


def draw(stem, text):
    """Writes the script beside the pictures and runs it."""
    path = stem.with_name(stem.name + '.gp')
    path.write_text(text, encoding='utf-8')
    try:
        failed = subprocess.run(['gnuplot'], input=text, text=True, check=False).returncode != 0
    except FileNotFoundError:
        failed = True
    if failed:
        print(f"tactus: gnuplot did not draw {path}; what it said stands above; where it is "
              "missing, install Debian's gnuplot-nox. The CSV file is complete.", file=sys.stderr)
