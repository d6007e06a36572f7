"""The simulated twin of a pipeline in service, for `./run bench pipelines`.

A server answers a light load, one call at a time, and then Poisson arrivals. Its journal of
pipelines (--journal FILE, which writes FILE.pipelines) tells when each call came, when each of its
steps was started and answered, and how many rows a step found. The light load gives each step's
profile; the arrivals of the load are the scenario's trace. `tactus simulate` runs that, and its
latencies are held against those that the journal has of the load itself.
"""
import collections
import json
import pathlib
import statistics
import subprocess
import time

from server import Server, ServerError

MS = 1e6  # nanoseconds


class Request:
    """What the journal says of one call."""

    def __init__(self, arrival):
        self.arrival = arrival
        self.ended = None
        self.outcome = None
        self.rows = {}                            # by step that finds rows
        self.took = collections.defaultdict(list)  # by step: from start to answer, in ms


def read_journal(path, pipeline):
    """The calls of this pipeline, in the order of their coming."""
    flows, steps, requests = set(), [], []
    underway, started, now = {}, {}, {}
    for line in pathlib.Path(path).read_text(encoding='utf-8').splitlines():
        kind, _, rest = line.partition(' ')
        fields = rest.split(' ')
        if kind == 'p' and fields[-1] == pipeline:
            flows.add(fields[0])
            steps = []
        if fields[0] not in flows:
            continue
        flow = fields[0]
        if kind == 's':
            steps.append(fields[-1])
        elif kind == 'b':
            now[flow] = int(fields[2])
            fresh = Request(now[flow])
            requests.append(fresh)
            underway[flow, None] = fresh
        elif kind == 'S':
            key = (flow, *fields[1:4])
            # The first that is heard of a new request: its id.
            if (fresh := underway.pop((flow, None), None)) is not None:
                underway[flow, fields[1]] = fresh
            started[key] = now[flow]
        elif kind in 'arl':
            now[flow] = int(fields[4] if kind != 'l' else fields[2])
            request = underway.get((flow, fields[1]))
            if kind == 'a' and request is not None:
                step = steps[int(fields[2])]
                request.took[step].append((now[flow] - started[(flow, *fields[1:4])]) / MS)
                request.rows.setdefault(step, int(fields[5]))
        elif kind == 'E':
            ended = underway.pop((flow, fields[1]), None) or underway.pop((flow, None), None)
            if ended is not None:
                ended.ended, ended.outcome = now[flow], int(fields[2])
    return requests


def latencies(requests):
    """Of those that were answered, in time or late."""
    return sorted((r.ended - r.arrival) / MS for r in requests if r.outcome in (0, 1))


def quantile(values, share):
    """Linear between neighbours."""
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def cell(base, samples, first):
    """`base` ms, with the spread that the samples have about what the first batch is to take."""
    at = {key: base + max(quantile(samples, share) - first, -0.5 * base)
          for key, share in (('min_ms', 0), ('p50_ms', 0.5), ('p95_ms', 0.95), ('p99_ms', 0.99),
                             ('max_ms', 1))}
    mean = base + statistics.fmean(samples) - first
    return {'n': len(samples), 'mean_ms': mean, **at, 'cv': statistics.pstdev(samples) / mean}


def profile_of(light, stated, largest):
    """By step. `stated`: what a batch of 1, 2 ... is to take by a table, or nothing for a step that
    is run one by one. Of rows that ran at once the first one had its lane to itself."""
    models = []
    for step in light[0].took:
        samples = [min(r.took[step]) for r in light if r.took.get(step)]
        table = stated.get(step) or [statistics.fmean(samples)]
        cells = [dict(cell(base, samples, table[0]), batch=batch + 1)
                 for batch, base in enumerate(table[:largest])]
        models.append({'name': step, 'max_batch': len(cells),
                       'exits': [{'name': '1', 'accuracy': 0, 'cells': cells}]})
    return {'tactus_profile': 1, 'machine': {'fingerprint': 'twin'}, 'provenance': 'measured',
            'models': models}


def scenario_of(case, light, load, rate):
    steps = list(case.steps)
    kinds = ''
    if case.host:
        kinds = ('[[lane_kinds]]\nname = "host"\ncount = 1\n'
                 f'models = {json.dumps(sorted(case.host))}\n[[lane_kinds]]\nname = "device"\n'
                 f'count = 1\nmodels = {json.dumps([s for s in steps if s not in case.host])}\n')
    rows = collections.Counter(r.rows[case.finds] for r in light + load
                               if case.finds in r.rows) if case.finds else {}
    weights = [rows.get(n, 0) for n in range(max(rows, default=0) + 1)]
    text = [f'[scenario]\nname = "twin"\nduration_s = {case.seconds}\nseed = 1\n'
            f'policy = "{case.policy}"\nexpiry = "unmeetable"\nfollow = "yes"\n'
            f'profile = "profile.json"\n[lanes]\ncount = {2 if case.host else 1}\n{kinds}'
            f'[arrivals]\nprocess = "trace"\ntrace = "arrivals.csv"\nrate_rps = {rate!r}\n']
    text += [f'[[models]]\nname = "{step}"\n' for step in steps]
    text.append(f'[[pipelines]]\nname = "twin"\nslo_ms = {case.slo_ms}\nrate_rps = {rate!r}\n'
                f'deadlines = "{case.deadlines}"\n')
    for before, step in zip([None, *steps], steps):
        after = f'after = ["{before}"]\n' if before else ''
        text.append(f'[[pipelines.stages]]\nname = "{step}"\nmodel = "{step}"\n{after}')
        if step == case.finds:
            text.append(f'rows = {weights}\n')
    return ''.join(text)


class Case:
    """One pipeline, a chain of steps."""

    def __init__(self, name, models, steps, **more):
        self.name, self.models, self.steps = name, pathlib.Path(models), steps
        self.policy = more.get('policy', 'edgeserving')
        self.deadlines = more.get('deadlines', 'whole')
        self.slo_ms = more.get('slo_ms', 2000)
        self.stated = more.get('stated', {})   # by step: ms of a batch of 1, 2, ...
        self.host = more.get('host', set())    # steps that are operators of the host
        self.finds = more.get('finds')         # the step whose rows those after it run for
        self.input = more.get('input', ['--random'])
        self.source = more.get('source', 'measured')
        self.seconds = 0.0


def simulate(case, folder, tactus, light, load):
    """P50 and P95 of the twin."""
    first = load[0].arrival
    at = [(r.arrival - first) / 1e9 for r in load]
    length = at[-1] * (1 + 1 / (len(at) - 1))
    case.seconds = length
    (folder / 'arrivals.csv').write_text('\n'.join(f'{t:.9f}' for t in at), encoding='utf-8')
    largest = 1 if case.host else 32
    (folder / 'profile.json').write_text(json.dumps(profile_of(light, case.stated, largest)),
                                         encoding='utf-8')
    scenario = folder / 'twin.toml'
    scenario.write_text(scenario_of(case, light, load, len(at) / length), encoding='utf-8')
    report = folder / 'simulated.json'
    done = subprocess.run([str(tactus), 'simulate', str(scenario), '--json', str(report)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f'tactus simulate {scenario}: {done.stdout}{done.stderr}')
    return json.loads(report.read_text(encoding='utf-8'))['runs'][0]['pipelines'][0]


def replays_alike(tactus, journal):
    return subprocess.run([str(tactus), 'replay', str(journal)], capture_output=True,
                          check=False).returncode == 0


def device_ms(case, light):
    """What one call takes of the device's lane, in batches of eight where there are batches."""
    if case.stated:
        return sum(table[7] / 8 for table in case.stated.values())
    return sum(statistics.fmean(min(r.took[step]) * len(r.took[step]) for r in light
                                if r.took.get(step))
               for step in case.steps if step not in case.host)


def turn(case, folder, tactus, shares, seconds, seed, say):
    """One server: the light load, then each share of what one call at a time shows it to carry."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / 'journal'
    pipelines = folder / 'journal.pipelines'
    arguments = ['--journal', journal, '--policy', case.policy, '--log-level', 'warning']
    found = []
    with Server(case.models, arguments, folder / 'serve.log', binary=tactus) as server:
        say(f'{case.name}: one call at a time')
        server.load(folder / 'load.json', '--models', case.name, *case.input, '--concurrency', 1,
                    '--duration', seconds, '--warmup', 0)
        time.sleep(0.3)  # until it is on the disk
        light = [r for r in read_journal(pipelines, case.name) if r.ended]
        seen = len(light)
        light = light[len(light) // 10:]  # the first ones meet cold caches
        for share in shares:
            rate = share * 1000 / device_ms(case, light)
            say(f'{case.name}: {rate:.1f} calls a second')
            run = server.load(folder / 'load.json', '--models', case.name, *case.input, '--rate',
                              f'{rate:.3f}', '--duration', seconds * 2, '--warmup', 0, '--seed',
                              seed, lossy=True)
            time.sleep(0.3)
            all_ = read_journal(pipelines, case.name)
            load, seen = all_[seen:], len(all_)
            real = latencies(load)
            twin = simulate(case, folder, tactus, light, load)
            found.append({'scenario': f'twin of {case.name}', 'source': case.source,
                          'policy': case.policy, 'share': share, 'offered_rps': rate,
                          'calls': len(load), 'answered': len(real),
                          'client_p50_ms': run['p50_ms'], 'client_p95_ms': run['p95_ms'],
                          'real_p50_ms': quantile(real, 0.5), 'real_p95_ms': quantile(real, 0.95),
                          'simulated_p50_ms': twin['p50_ms'], 'simulated_p95_ms': twin['p95_ms'],
                          'machine': run['machine'], 'commit': run['commit']})
    for entry in found:
        entry['replays_alike'] = replays_alike(tactus, journal)
    return found
