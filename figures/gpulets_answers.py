"""What gpu-lets' figures ask: which loads can be planned for, up to what rate, how two lanes of the
simulated device slow each other, and which violations there are when plans run.

Planners are named as their bars. `+int` counts on interference: on the linear model that is fitted
to pairs on the simulated device of the mix `equal`. gpulet+int is stricter than the algorithm that
is published: it also asks the neighbours of a newcomer, and expects one before it is there.
"""
import json
import math
import threading

from program import Failed, load_scenario, write_toml
from runs import add_up, scenario_of

# The program's names of them.
PLANNERS = {'SBP': 'nexus', 'SBP on halves': 'nexus-half', 'self-tuning': 'self-tuning',
            'gpulet': 'gpulet', 'gpulet-retry': 'gpulet-retry', 'ideal': 'ideal',
            'gpulet+int': 'gpulet', 'gpulet-retry+int': 'gpulet-retry', 'ideal+int': 'ideal',
            'gpulet+int as published': 'gpulet-published'}
PUBLISHED = 'gpulet+int as published'
# What the paper's figures are planned for: its shares of a device, whatever the scenario says
# itself; rates as they are asked for, requests that come evenly.
PLANNED_FOR = ['plan.shares=20,40,50,60,80', 'plan.headroom=0', 'process=uniform']
# Planned for beyond the rates that arrive, as a Poisson process brings them in bunches. With none,
# plans have more than 1 % violations even where lanes do not slow each other.
HEADROOM = 0.15
SHARES = ['plan.shares=20,40,50,60,80']


class _Once:
    """Answers that many points need, each made once."""

    def __init__(self):
        self._lock, self._locks, self._made = threading.Lock(), {}, {}

    def __call__(self, key, make):
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


_once = _Once()


class Mix:
    """A point's scenario with its settings."""

    def __init__(self, point, options):
        self.path, self.options = scenario_of(point, options), options
        self.settings = point.settings
        self._key = (str(self.path), *self.settings)

    def fit(self, *words):
        """The linear model of interference, fitted to pairs on the device of the mix `equal`."""
        return _once((*self._key[1:], *words), lambda: self.options.program.json(
            'fit', 'interference', self.path.with_name('equal.toml'), *words,
            settings=self.settings + SHARES + ['seed=1']))

    def question(self):
        """The models as a planner sees them, with what each does on each share of a device."""
        return _once((*self._key, 'question'), lambda: self.options.program.json(
            'plan', 'gpulet', self.path, settings=self.settings + PLANNED_FOR))['models']

    def rates(self):
        return [model['rate_rps'] for model in self.question()]

    def planner(self, name):
        words = ['--planner', PLANNERS[name]]
        if '+int' in name:
            c = self.fit('--by-side')['coefficients']
            words.append('--interference=' + ','.join(map(repr, c)))
        return words

    def planned(self, name, loads):
        """Which of the loads, rates by model, the planner plans for."""
        file = self.options.program.file('loads.csv')
        names = ','.join(model['name'] for model in self.question())
        file.write_text('\n'.join([names, *(','.join(map(repr, load)) for load in loads)]) + '\n',
                        encoding='utf-8')
        return self.options.program.json(
            'plan', 'gpulet', self.path, '--loads', file, *self.planner(name),
            settings=self.settings + PLANNED_FOR)['loads_planned']

    def by_themselves(self, rates):
        """The scenario with each model's requests by themselves, within its own SLO: also those
        that would come with pipeline requests, as a plan is held to what it was made for."""
        scenario = load_scenario(self.path)
        scenario.pop('pipelines', None)
        for model, asked, rate in zip(scenario['models'], self.question(), rates):
            model |= {'slo_ms': asked['slo_ms'], 'rate_rps': rate}
        return scenario

    def write(self, scenario):
        return write_toml(scenario, self.options.program.file('mix.toml'))


def _which_of_all(mix, name):
    """Of the 1,023 loads of Section 3.1: 0, 200, 400 or 600 requests/s of each of five models, not
    all 0."""
    loads = [[200.0 * (load // 4 ** m % 4) for m in range(len(mix.rates()))]
             for load in range(1, 1024)]
    return _once((str(mix.path), *mix.settings, name), lambda: mix.planned(name, loads))


def _count_beyond(mine, others):
    return sum(any(other) and not planned for planned, *other in zip(mine, *others))


def _loads(mix, name):
    planned = _which_of_all(mix, name)
    row = {'schedulable': sum(planned)}
    if name == PUBLISHED:
        row['beyond_ideal'] = _count_beyond(_which_of_all(mix, 'ideal+int'), [planned])
    if name in ('ideal', 'ideal+int'):
        # Of SBP, whose devices are whole, nobody interferes.
        others = [other for other in PLANNERS
                  if not other.startswith('ideal') and other != PUBLISHED and
                  (other == 'SBP' or other.endswith('+int') == (name == 'ideal+int'))]
        row['beyond_ideal'] = _count_beyond(planned, [_which_of_all(mix, each) for each in others])
    return row


def largest(mix, name, headroom=0):
    """The largest rate of the scenario's mix, in steps of one percent, that is planned for as are
    all below it: rate_rps, of all models together, and `times` those of the scenario's own rates.
    The planner is asked for `headroom` more of each, as a part of it."""
    return _once((str(mix.path), *mix.settings, name, headroom),
                 lambda: _largest(mix, name, headroom))


def _largest(mix, name, headroom):
    first, factor, most = 0.2, 1.01, 2000
    # Loads at once. The ideal planner is prepared for the largest of them, which takes long.
    at_once = 30 if name.startswith('ideal') else 120

    def load(step):
        return [rate * ((1 + headroom) * first * factor ** step) for rate in mix.rates()]

    step = -1
    if name.startswith('ideal'):  # it is no worse than ours, so it begins there
        ours = largest(mix, name.replace('ideal', 'gpulet-retry'), headroom)
        step = max(-1, round(math.log(ours['times'] / first) / math.log(factor)) - 1)
    more = True
    while more:
        planned = mix.planned(name, [load(step + 1 + i) for i in range(at_once)])
        more = all(planned)
        step += at_once if more else planned.index(False)
        if step >= most:  # 87 million times
            raise Failed(f'{name} plans for whatever is asked of it')
    times = 0 if step < 0 else first * factor ** step
    return {'rate_rps': add_up(times * rate for rate in mix.rates()), 'times': times}


class _Most:
    """The planner's largest rate with HEADROOM, its plan, and runs of it at that rate."""

    def __init__(self, mix, name):
        self.mix = mix
        times = largest(mix, name, HEADROOM)['times']
        self.load = [rate * times for rate in mix.rates()]
        if times:
            self.plan = mix.options.program.file('plan.json')
            asked = mix.write(mix.by_themselves([rate * (1 + HEADROOM) for rate in self.load]))
            mix.options.program.json('plan', 'gpulet', asked, '--out', self.plan,
                                     *mix.planner(name), settings=mix.settings + PLANNED_FOR)

    def bad_percents(self, scenario, bad_of, alone=False):
        """Violations of one run for each seed, ascending; `alone`: lanes do not slow each other."""
        settings = self.mix.settings + SHARES
        if alone:
            scenario = scenario | {'contention': {
                key: value for key, value in scenario['contention'].items() if key != 'capacity'}}
            settings = [each for each in settings if not each.startswith('contention.capacity=')]
        file = self.mix.write(scenario)
        return sorted(100 * bad_of(self.mix.options.program.simulate(
            file, '--plan', self.plan, '--policy', 'planned', '--seed', seed,
            settings=settings)) for seed in self.mix.options.each_seed())

    def row(self, scenario, bad_of):
        """Of the seeds' runs the one in the middle, as in the paper, and the worst."""
        beside = self.bad_percents(scenario, bad_of)
        alone = self.bad_percents(scenario, bad_of, alone=True)
        return {'bad_percent': beside[len(beside) // 2], 'worst_percent': beside[-1],
                'alone_percent': alone[len(alone) // 2]}


def _of_requests(run):
    return run['bad_ratio']


def _of_pipelines(run):
    return run['pipelines'][0]['bad_ratio']


def _run(mix, name):
    most = _Most(mix, name)
    rate_rps = add_up(most.load)
    if rate_rps == 0:
        return {'rate_rps': 0}
    return most.row(mix.by_themselves(most.load), _of_requests) | {
        'rate_rps': rate_rps, 'headroom_percent': 100 * HEADROOM}


def _pipelines(mix, name):
    most = _Most(mix, name)
    rate_rps = add_up(most.load)
    if rate_rps == 0:
        return {'pipeline_rps': 0}
    scenario = load_scenario(mix.path)
    scenario['arrivals']['rate_rps'] = rate_rps
    by_themselves = most.bad_percents(mix.by_themselves(most.load), _of_requests)
    runs = sum(stage.get('count', 1) for stage in scenario['pipelines'][0]['stages'])
    return most.row(scenario, _of_pipelines) | {
        'pipeline_rps': rate_rps / runs,
        'requests_percent': by_themselves[len(by_themselves) // 2]}


def _share(mix, model, batch, percent):
    of_model = next(each for each in mix.question() if each['name'] == model)
    for share in of_model['on_share']:
        if abs(100 * share['share'] - percent) <= 1e-6:
            return {'latency_ms': share['latency_ms'][batch - 1], 'rate_rps': share['most_rps'],
                    'is_knee': int(share['knee'])}
    raise Failed(f'{percent:g} % of a device is not profiled')


def _spread(mix, of, percent):
    """At x percent of what is spread so."""
    fit = mix.fit(*(['--by-side'] if of == 'errors-of-sides' else []))
    values = {'overheads': sorted(factor - 1 for factor in fit['slowdowns']),
              'errors-of-none': fit['errors']['no_model']}.get(of, fit['errors']['held_out'])
    rank = math.ceil(percent / 100 * len(values))
    column = 'overhead_percent' if of == 'overheads' else 'error_percent'
    return {'percent': percent, column: 100 * values[min(max(rank, 1), len(values)) - 1]}


def _sharing(mix, sharing, rate_rps):
    sharing = {'temporal': 'temporal', '20:80': '20:80', '40:60': '40:60'}.get(sharing, 'unsplit')
    sets = [word for each in mix.settings + SHARES for word in ('--set', each)]
    program = mix.options.programs / 'bench/tactus_bench_sharing'
    return json.loads(mix.options.program.call(program, mix.path, '--sharing', sharing, '--rate',
                                               rate_rps, *sets))


def of_gpulets(label, point, options):
    """`with.of` says what is asked; `with.planner` is one of PLANNERS:
      share      of `with.model` on x percent of the device: latency_ms of `with.batch`, rate_rps
                 that the model can have, and is_knee
      loads      of the 1,023 loads of Section 3.1: schedulable, how many the planner plans for, and
                 beyond_ideal, of an ideal planner: how many another one plans for and it does not;
                 of gpulet+int as published, which asks for less than ideal+int: how many ideal+int
                 does not
      largest    rate_rps, the largest of the mix that is planned for, `times` the scenario's own
      run        the plan at that rate, less HEADROOM: rate_rps, bad_percent (violations), worst_
                 percent of the seeds, and alone_percent where lanes do not slow each other
      pipelines  the same where all requests come with those of one pipeline: pipeline_rps, and of
                 pipeline requests these; requests_percent is bad_percent of `run`
      sharing    LeNet and VGG-16, each at x requests/s, on one device, `with.sharing` being
                 temporal, unsplit, 20:80 or 40:60, with the batches that have the fewest
                 violations: bad_percent of both, lenet_bad_percent, vgg_bad_percent, lenet_batch,
                 vgg_batch. bench/sharing.cc runs it
      overheads  at x percent of the sides of simulated pairs: overhead_percent that they lose
      errors     and error_percent of the model fitted to 70 % of the pairs, of those held out;
                 errors-of-sides: where sides are drawn one by one, as for what planners count on;
                 errors-of-none: of who expects no slowdown"""
    mix, of, planner = Mix(point, options), point.withs['of'], point.withs.get('planner')
    if of in ('loads', 'largest', 'run', 'pipelines'):
        row = {'loads': _loads, 'largest': largest, 'run': _run, 'pipelines': _pipelines}[of](
            mix, planner)
    elif of == 'share':
        row = _share(mix, point.withs['model'], int(point.withs['batch']), point.x)
    elif of == 'sharing':
        row = _sharing(mix, point.withs['sharing'], point.x)
    else:
        row = _spread(mix, of, point.x)
    return {label: {point.x: row}}
