"""A paper's claims against our data, as a figure's file states them.

[[claims]] has `what` is claimed, what the `paper` says, what is `ours`, and whether it `holds`; or,
for a bar of ours, a `value` and the `least` that it must reach. `holds`, `value` and `when` (which
drops a claim) are expressions; texts have them in braces, "{100 * lost:.1f} %". `let` names values
for those after it. `each` repeats a block: "name, other in expression", or a list of such. A block
may hold several `claims`. The [let] of a figure and of its paper are for all of their claims.

Expressions are Python's without its library; `data` is series -> x -> column -> value, and the
functions of _FUNCTIONS read it.
"""
import dataclasses
import itertools


@dataclasses.dataclass
class Claim:
    what: str
    paper: str
    ours: str
    holds: bool
    value: float | None = None
    bar: str = ''


_BUILTINS = {f.__name__: f for f in (abs, all, any, dict, enumerate, float, int, len, list, max,
                                     min, range, round, sorted, str, sum, tuple, zip)}


def _functions(data):
    def at(series, x, column):
        """0 where a point has no such number: no rate passed, or no lanes were enough."""
        return data.get(series, {}).get(float(x), {}).get(column, 0)

    def values(series, column, first=-1e300, last=1e300):
        return [row[column] for x, row in data[series].items()
                if first <= x <= last and column in row]

    def most(*asked):
        return max(values(*asked), default=0)

    def least(*asked):
        return min(values(*asked), default=0)

    def mean(*asked):
        found = values(*asked)
        return sum(found) / len(found) if found else 0

    def first(series, column, reaches):
        """The first x at which the column reaches so much; 0 where it never does."""
        return next((x for x, row in data[series].items() if row[column] >= reaches), 0)

    return {'at': at, 'values': values, 'most': most, 'least': least, 'mean': mean,
            'first': first, 'data': data}


class _Scope(dict):
    """The names that an expression knows."""

    def value(self, expression):
        return eval(expression, self)  # pylint: disable=eval-used

    def text(self, template):
        return self.value(f'f"""{template}"""')

    def inner(self, names=None):
        return _Scope(self | (names or {}))

    def let(self, block):
        for name, expression in block.get('let', {}).items():
            self[name] = self.value(expression)
        return self


def _loops(scope, each):
    """A scope for each combination of the values that the loops give their names."""
    if not each:
        return [scope.inner()]
    first, *others = [each] if isinstance(each, str) else each
    names, values = first.split(' in ', 1)
    names = [name.strip() for name in names.split(',')]
    return itertools.chain.from_iterable(
        _loops(scope.inner(dict(zip(names, value if len(names) > 1 else [value]))), others)
        for value in scope.value(values))


def _claim(scope, block):
    what, paper = scope.text(block['what']), scope.text(block.get('paper', '-'))
    if 'least' not in block:
        return Claim(what, paper, scope.text(block['ours']), bool(scope.value(block['holds'])))
    value, least = scope.value(block['value']), block['least']
    return Claim(what, paper, scope.text(block.get('ours', '{%r:.3f}' % value)), value >= least,
                 value, f'>= {least:g}')


def _blocks(scope, blocks):
    for block in blocks:
        for inner in _loops(scope, block.get('each')):
            inner.let(block)
            if not inner.value(block.get('when', 'True')):
                continue
            if 'claims' in block:
                yield from _blocks(inner, block['claims'])
            else:
                yield _claim(inner, block)


def of(paper, figure, data):
    scope = _Scope(_functions(data), __builtins__=_BUILTINS).let(paper).let(figure)
    return list(_blocks(scope, figure.get('claims', [])))
