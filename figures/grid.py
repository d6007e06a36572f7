"""Symphony's Figure 7: thousands of synthetic workloads (Section 3.4.2, Table 1), each searched for
the peak goodput of several policies.

Hours on one core, so every finished workload is kept, in fig07-cells.csv, and a run that was killed
goes on where it was. Each search is as short as two percent of precision allows.
"""
import collections
import dataclasses
import json
import math
import statistics
from concurrent.futures import ThreadPoolExecutor

import result_file
from program import write_toml

# Table 1; the models by falling batching effect, beta / alpha from 9.7 to 0.02.
MODELS = ('DenseNet121', 'InceptionV3', 'ResNet50V2', 'VGG16', 'Xception', 'BERT')
COPIES = (8, 16, 24, 32, 48, 64)
LANES_PER_MODEL = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
SLOS_MS = (20, 25, 30, 40, 50)
SHAPES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
MIXED = 'mixed'  # each model of Table 3 once, at its own SLO
STRIDE = 2741  # prime, and no divisor of the grid's size

# Deferred as published and as we set it, eager in both ways of gathering.
POLICIES = {'deferred': 'symphony:published', 'ours': 'symphony:gather=window,aim=0.8,lead=0.1',
            'eager': 'symphony:when=eager,gather=prefix',
            'eager_window': 'symphony:published,when=eager'}

# Copies of one model are alike, so their violation ratio is taken over all of them together, which
# needs far fewer requests than the worst of each would.
WARMUP_S = 0.5          # fills the window from which Symphony knows its rates
LEAST_S = 1             # counted after it, and ...
LEAST_REQUESTS = 20000  # ... as long as this many take at the fluid limit
ZOO_REQUESTS = 70000    # in place of it for mixed: 2,000 a model
PRECISION_PERCENT = 2


@dataclasses.dataclass(frozen=True)
class Cell:
    """Every model is equally popular, and its gaps follow a Gamma distribution."""
    model: str
    models: int  # copies of it
    lanes_per_model: float  # the paper's #GPUs : #Models
    slo_ms: int  # 0 for mixed
    shape: float  # of the gaps: 1 is Poisson, less is burstier

    @property
    def lanes(self):
        return int(self.models * self.lanes_per_model + 0.5)

    @property
    def name(self):
        return f'{self.model},{self.models},{self.lanes},{self.slo_ms:g},{self.shape:g}'


def all_cells(zoo_models):
    """All combinations of Table 1's options, 7,560, and the 42 of the mixed zoo. The paper speaks
    of 5,880 workloads and does not say which of them it left out."""
    cells = []
    for lanes in LANES_PER_MODEL:
        for shape in SHAPES:
            cells.append(Cell(MIXED, zoo_models, lanes, 0, shape))
            cells += [Cell(model, copies, lanes, slo, shape)
                      for model in MODELS for copies in COPIES for slo in SLOS_MS]
    return cells


def chosen_cells(zoo_models, wanted):
    """So many, or all for 0, so stirred that the first hundreds are a sample of all of them."""
    cells = all_cells(zoo_models)
    return [cells[i * STRIDE % len(cells)] for i in range(min(wanted or len(cells), len(cells)))]


def workload(cell, zoo, profile, rate_rps, duration_s):
    models = [{'name': each['name'], 'slo_ms': each['slo_ms']} for each in zoo['models']]
    if cell.model != MIXED:
        models = [{'name': f'{cell.model}-{i}', 'profile_as': cell.model, 'slo_ms': cell.slo_ms}
                  for i in range(cell.models)]
    return {'scenario': {'name': cell.name, 'seed': 1, 'queue_capacity': 1024,
                         'profile': str(profile.absolute()), 'warmup_s': WARMUP_S,
                         'duration_s': duration_s},
            'lanes': {'count': cell.lanes},
            'arrivals': {'process': 'gamma', 'cv': 1 / math.sqrt(cell.shape), 'rate_rps': rate_rps},
            'models': models}


def _evaluate(cell, zoo, profile, program):
    """The fluid limit, and the peaks by POLICIES. A policy begins where the one before it ended;
    the first a little under the fluid limit."""
    def search(rate_rps, duration_s, policy, *words):
        file = write_toml(workload(cell, zoo, profile, rate_rps, duration_s),
                          program.file('cell.toml'))
        together = [] if cell.model == MIXED else ['--together']
        report = program.json('goodput', file, '--seeds', 1, '--policies', policy, *together,
                              *words, enough=(0, 1))
        file.unlink()
        return report['runs'][0]['peak']

    # How long a run is to be depends on the limit; it does not depend on how long a run is.
    fluid = search(100.0, WARMUP_S + LEAST_S, POLICIES['deferred'], '--precision', 50)[
        'fluid_limit_rps']
    requests = ZOO_REQUESTS if cell.model == MIXED else LEAST_REQUESTS
    duration_s = WARMUP_S + max(LEAST_S, requests / fluid)
    guess, peaks = 0.95 * fluid, []
    for policy in POLICIES.values():
        peaks.append(search(fluid, duration_s, policy, '--start', repr(guess), '--first-step', 1.08,
                            '--precision', PRECISION_PERCENT)['rate_rps'])
        guess = peaks[-1] or guess
    return fluid, peaks


def run(options, progress):
    """[(cell, peaks)], in the order of the file's rows, which is that in which they ended."""
    profile = options.scenarios / '../profiles/symphony-1080ti.json'
    zoo = json.loads(profile.read_bytes())
    header = ['model', 'models', 'lanes', 'slo_ms', 'shape', 'fluid_rps',
              *(name + '_rps' for name in POLICIES)]
    # Not the commit: a grid outlives a day's commits. --fresh runs it again.
    origin = (f'Symphony figure 7; simulated; {LEAST_S:g} s and at least {LEAST_REQUESTS:g} '
              f'requests after {WARMUP_S:g} s; mixed {ZOO_REQUESTS:g}; to '
              f'{PRECISION_PERCENT / 100:g}; seed 1; inputs '
              f"{options.hash_of([profile], *POLICIES.values())}; {zoo['provenance']}")
    file = result_file.ResultFile(options.out / 'fig07-cells.csv', origin, header, options.fresh)
    wanted = {cell.name: cell for cell in chosen_cells(len(zoo['models']), options.cells)}
    results = []
    for row in file.found:
        cell = wanted.pop(','.join(row[:5]), None)
        if cell:
            results.append((cell, [float(each) for each in row[6:]]))
    with ThreadPoolExecutor(options.jobs) as pool:
        done = pool.map(lambda cell: (cell, *_evaluate(cell, zoo, profile, options.program)),
                        wanted.values())
        for cell, fluid, peaks in done:
            file.append([[*cell.name.split(','), *(f'{each:.1f}' for each in (fluid, *peaks))]])
            results.append((cell, peaks))
            progress(f'figure 7: {cell.name}')
    file.close()
    return results


def _over(peak, eager):
    return peak / eager if eager > 0 else 0  # neither sustains anything


COMPARISONS = {
    'published / eager (window)': lambda p: _over(p[0], p[3]),
    'ours / eager (window)': lambda p: _over(p[1], p[3]),
    'published / best eager': lambda p: _over(p[0], max(p[2], p[3])),
    'ours / best eager': lambda p: _over(p[1], max(p[2], p[3]))}


def _spread(ratios):
    """At x = the percent of workloads in which the ratio is no larger, for Figure 7(d)."""
    ratios = sorted(ratio for ratio in ratios if ratio > 0)
    # A thousand points draw the same curve as all do.
    every = len(ratios) // 1000 if len(ratios) > 1000 else 1
    return {100 * float(i + 1) / float(len(ratios)): {'ratio': ratio}
            for i, ratio in enumerate(ratios) if i % every == 0 or i + 1 == len(ratios)}


def curves(results):
    """Ratios of peak goodputs, deferred over eager: the series "all workloads: A / B" by the share
    of workloads that have no larger ratio, and for Figure 7(a) to (c) "MODEL: SLO n ms" and "mixed:
    gamma n" by lanes per model, the median over what else varies."""
    data = {f'all workloads: {name}': _spread([ratio(peaks) for _, peaks in results])
            for name, ratio in COMPARISONS.items()}
    ratios = collections.defaultdict(lambda: collections.defaultdict(list))
    for cell, peaks in results:
        ratio = COMPARISONS['published / eager (window)'](peaks)
        if cell.model in (MIXED, 'DenseNet121', 'BERT') and ratio > 0:
            curve = (f'gamma {cell.shape:g}' if cell.model == MIXED
                     else f'SLO {cell.slo_ms:g} ms')
            ratios[f'{cell.model}: {curve}'][cell.lanes_per_model].append(ratio)
    for curve, by_lanes in ratios.items():
        data[curve] = {lanes: {'ratio': statistics.median_high(each)}
                       for lanes, each in by_lanes.items()}
    return data
