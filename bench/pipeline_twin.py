"""The simulated twin of a pipeline in service, for `./run bench pipelines`.

A server answers a light load, one call at a time, and then Poisson arrivals. Its journal of
pipelines (--journal FILE, which writes FILE.pipelines) tells when each call came, when each of its
steps was started and answered, and how many rows a step found. The light load gives each step's
profile; the arrivals of the load are the scenario's trace. `tactus simulate` runs that, and its
latencies are held against those that the journal has of the load itself. *Told* is the simulation
that knows what batches and operators took in the load itself: what is still off then is not the
machine's doing.
"""
import collections
import json
import pathlib
import statistics
import struct
import subprocess
import time

from server import Server, ServerError

MS = 1e6  # nanoseconds


RECORD = struct.Struct('<BBHIIIIIQqqqq')  # JournalRecord of src/dispatch/journal.h
ARRIVE, FINISH, STEP, DISPATCH = 0, 1, 4, 5


class Device:
    """The dispatcher's journal of a device with one lane: when requests came, and each batch as
    (model, size, decided, ended), where `ended` is when the dispatcher heard of it."""

    def __init__(self, path):
        data, at, names, now = pathlib.Path(path).read_bytes(), 8, [], 0
        self.arrived, self.batches, running = [], [], None
        while data[at:at + 1] != b'E':
            letter, count = data[at:at + 1], struct.unpack_from('<I', data, at + 1)[0]
            end = at + 5 + count * (RECORD.size if letter == b'R' else 1)
            if letter == b'D':
                names = [model['name'] for model in json.loads(data[at + 5:end])['models']]
            for record in RECORD.iter_unpack(data[at + 5:end]) if letter == b'R' else ():
                if record[0] == ARRIVE:
                    self.arrived.append(record[9])
                elif record[0] == STEP:
                    now = record[9]
                elif record[0] == DISPATCH:
                    running = (names[record[3]], record[5], now)
                elif record[0] == FINISH:
                    self.batches.append((*running, record[9]))
            at = end


def device_runs(requests, steps):
    """When the device's runs of these calls were started, and when answered, each in order."""
    return (sorted(start for r in requests for step in steps for start in r.starts[step]),
            sorted(end for r in requests for step in steps for end in r.ends[step]))


def apart_ns(light, steps, device):
    """How far apart the clocks of both journals are: a step's start is its request's arrival. Of
    calls one at a time, whose order both share."""
    starts, _ = device_runs(light, steps)
    return statistics.median(start - at for start, at in zip(starts, device.arrived))


def answer_ns(requests, steps, device, apart):
    """What lies on average between the end of a batch, as the dispatcher knows it, and the
    pipeline's knowledge of it: until then the lane is free for others."""
    _, ends = device_runs(requests, steps)
    first, last = requests[0].arrival - apart, ends[-1] - apart
    finished = [ended for _, size, _, ended in device.batches if first <= ended <= last
                for _ in range(size)]
    if len(finished) != len(ends):
        raise ServerError(f'{len(ends)} runs of steps were answered, and {len(finished)} ended on '
                          'the device: the journals are not of one run')
    return max(0.0, statistics.fmean(end - apart - at for end, at in zip(ends, finished)))


class Request:
    """What the journal says of one call."""

    def __init__(self, arrival):
        self.arrival = arrival
        self.ended = None
        self.outcome = None
        self.rows = {}                            # by step that finds rows
        self.took = collections.defaultdict(list)  # by step: from start to answer, in ms
        self.starts = collections.defaultdict(list)
        self.ends = collections.defaultdict(list)


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
                start = started[(flow, *fields[1:4])]
                request.took[step].append((now[flow] - start) / MS)
                request.starts[step].append(start)
                request.ends[step].append(now[flow])
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


def cell(mean, samples):
    """Of the profile; the samples' mean is `mean`."""
    at = {key: max(quantile(samples, share), 0.3 * mean)
          for key, share in (('min_ms', 0), ('p50_ms', 0.5), ('p95_ms', 0.95), ('p99_ms', 0.99),
                             ('max_ms', 1))}
    return {'n': len(samples), 'mean_ms': mean, **at, 'cv': statistics.pstdev(samples) / mean}


def profile_of(samples, stated, answer):
    """`samples`: by step, by size of a batch, the ms that it took; `stated`: by step, what batches
    of 1, 2 ... are to take by a table. A size that never ran takes as much more than its table says
    as the others do on average; a step without a table runs one by one."""
    models = []
    for step, seen in samples.items():
        table = stated.get(step) or [statistics.fmean(seen[1])]
        more = statistics.fmean(took - table[size - 1] for size, all_ in seen.items()
                                for took in all_)
        spread = [took - table[size - 1] - more for size, all_ in seen.items() for took in all_]
        cells = [dict(cell(statistics.fmean(seen[size]), seen[size]) if len(seen.get(size, ())) > 9
                      else cell(base + more, [base + more + part for part in spread]),
                      batch=size) for size, base in enumerate(table, 1)]
        models.append({'name': step, 'max_batch': len(cells),
                       'exits': [{'name': '1', 'accuracy': 0, 'cells': cells}]})
    return {'tactus_profile': 1, 'machine': {'fingerprint': 'twin'}, 'provenance': 'measured',
            'answer_overhead_ms': answer / MS, 'models': models}


def alone(requests, answer):
    """Samples of steps that had their lanes to themselves: of rows that ran at once the first one.
    An operator may take less than `answer`, which the simulator adds to all alike."""
    return {step: {1: [max(took - answer / MS, took / 2)
                       for took in (min(r.took[step]) for r in requests if r.took.get(step))]}
            for step in requests[0].took}


def in_service(case, load, device, apart, answer):
    """Samples of the run itself: of the device's batches, and of the operators."""
    first, last = load[0].arrival - apart, max(r.ended for r in load) - apart
    samples = alone(load, answer)
    for step in case.steps:
        if step in case.host:
            continue
        samples[step] = collections.defaultdict(list)
        for model, size, decided, ended in device.batches:
            if model == step and first <= decided and ended <= last:
                samples[step][size].append((ended - decided) / MS)
    return samples


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


def simulate(case, folder, tactus, profile, light, load):
    """P50 and P95 of the twin."""
    first = load[0].arrival
    at = [(r.arrival - first) / 1e9 for r in load]
    case.seconds = at[-1] * (1 + 1 / (len(at) - 1))
    (folder / 'arrivals.csv').write_text('\n'.join(f'{t:.9f}' for t in at), encoding='utf-8')
    (folder / 'profile.json').write_text(json.dumps(profile), encoding='utf-8')
    scenario = folder / 'twin.toml'
    scenario.write_text(scenario_of(case, light, load, len(at) / case.seconds), encoding='utf-8')
    report = folder / 'simulated.json'
    done = subprocess.run([str(tactus), 'simulate', str(scenario), '--json', str(report)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f'tactus simulate {scenario}: {done.stdout}{done.stderr}')
    twin = json.loads(report.read_text(encoding='utf-8'))['runs'][0]['pipelines'][0]
    return {'p50_ms': twin['p50_ms'], 'p95_ms': twin['p95_ms']}


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


def serve(case, folder, tactus, shares, seconds, seed, say):
    """One server: the light load, then each share of what that shows the device to sustain. What
    the clients saw of each, with the rate, and after how many calls each ended."""
    journal = folder / 'journal'
    # Policies read a model's SLO; a scenario's stages have their pipeline's.
    arguments = ['--journal', journal, '--policy', case.policy, '--default-slo-ms', case.slo_ms,
                 '--log-level', 'warning']

    def calls_so_far():
        time.sleep(0.3)  # until they are on the disk
        return read_journal(folder / 'journal.pipelines', case.name)
    common = ['--models', case.name, *case.input, '--warmup', 0]
    runs, ends = [], []
    with Server(case.models, arguments, folder / 'serve.log', binary=tactus) as server:
        say(f'{case.name}: one call at a time')
        server.load(folder / 'load.json', *common, '--concurrency', 1, '--duration', seconds)
        light = calls_so_far()
        ends.append(len(light))
        for share in shares:
            rate = share * 1000 / device_ms(case, light)
            say(f'{case.name}: {rate:.1f} calls a second')
            run = server.load(folder / 'load.json', *common, '--rate', f'{rate:.3f}', '--duration',
                              2 * seconds, '--seed', seed, lossy=True)
            runs.append(dict(run, share=share, rate=rate))
            ends.append(len(calls_so_far()))
    return runs, ends


def turn(case, folder, tactus, shares, seconds, seed, say):
    """Runs each load for real and simulates it twice: by what steps took alone before, and told
    what they took in the run itself."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, ends = serve(case, folder, tactus, shares, seconds, seed, say)
    calls = read_journal(folder / 'journal.pipelines', case.name)
    device = Device(folder / 'journal')
    steps = [step for step in case.steps if step not in case.host]
    apart = apart_ns(calls[:ends[0]], steps, device)
    light = calls[ends[0] // 10:ends[0]]  # the first ones meet cold caches
    alike = replays_alike(tactus, folder / 'journal')
    found = []
    for run, begin, end in zip(runs, ends, ends[1:]):
        load = calls[begin:end]
        real = latencies(load)
        before, within = (answer_ns(of, steps, device, apart) for of in (light, load))
        profiles = {'simulated': profile_of(alone(light, before), case.stated, before),
                    'told': profile_of(in_service(case, load, device, apart, within), case.stated,
                                       within)}
        twins = {key: simulate(case, folder, tactus, profile, light, load)
                 for key, profile in profiles.items()}
        found.append({'scenario': f'twin of {case.name}', 'source': case.source,
                      'policy': case.policy, 'share': run['share'], 'offered_rps': run['rate'],
                      'answer_us': before / 1000, 'told_answer_us': within / 1000,
                      'calls': len(load), 'answered': len(real),
                      'client': {key: run[key] for key in ('p50_ms', 'p95_ms')},
                      'real': {'p50_ms': quantile(real, 0.5), 'p95_ms': quantile(real, 0.95)},
                      **twins, 'replays_alike': alike, 'machine': run['machine'],
                      'commit': run['commit']})
    return found
