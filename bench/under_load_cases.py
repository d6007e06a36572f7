"""What `./run bench under_load` serves and calls, and the same as scenarios for the simulator."""
import dataclasses
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = 16  # of emulated models, at most: 0.3 ms, and 0.5 ms a row


@dataclasses.dataclass
class Case:
    """Rows of cells: `closed` callers for each of `retries_s`, and `rates` a second. `twin`: the
    simulator says the same. Without `folder` its models are emulated."""
    protocol: str
    load: tuple                    # of `tactus load`: models and inputs
    emulated: dict = dataclasses.field(default_factory=dict)  # name: Emulated
    chain: tuple = ()              # a pipeline of these, named `chain`
    chain_slo_ms: float = 0
    folder: pathlib.Path | None = None
    closed: tuple = (16, 128)
    retries_s: tuple = (0,)
    rates: tuple = ()
    twin: bool = True

    def cells(self):
        """(seconds until who was refused calls again, callers), or (None, calls a second)."""
        return ([(retry, callers) for retry in self.retries_s for callers in self.closed]
                + [(None, rate) for rate in self.rates])

    def row(self, retry):
        return [cell for cell in self.cells() if cell[0] == retry]


@dataclasses.dataclass
class Emulated:
    """A model of one input that answers ten numbers. `slower`: than 0.3 ms and 0.5 ms a row."""
    bytes: int
    slo_ms: float
    slower: float = 1
    priority: int = 0

    def batch_ms(self, n):
        return self.slower * (0.3 + 0.5 * n)


def one(kind, protocol, size, slo_ms, slower=1):
    peak = BATCH / (1e-3 * Emulated(size, slo_ms, slower).batch_ms(BATCH))
    return Case(protocol, ('--models', 'one', *kind), {'one': Emulated(size, slo_ms, slower)},
                rates=(round(peak), round(5 * peak)))


def cases():
    made = {
        'street, gRPC': Case(
            'grpc', ('--models', 'street', '--input',
                     f'jpeg={ROOT}/examples/pipelines/street1.jpg'),
            folder=ROOT / 'models/pipelines', closed=(2, 8, 64), retries_s=(0, 0.1), twin=False),
        'ee_l, HTTP': Case('http', ('--models', 'ee_l'), folder=ROOT / 'models',
                           closed=(4, 64, 256), twin=False),
    }
    for protocol, name in (('http', 'HTTP'), ('grpc', 'gRPC')):
        some = ('--random', '--connections', 256 if protocol == 'http' else 8)
        made |= {
            f'80 B, {name}': one(some, protocol, 80, 30),
            f'110 kB, {name}': one(some, protocol, 110_592, 30),
            f'307 kB, {name}': one(some, protocol, 307_200, 30),
            f'1.2 MB, {name}': one(some, protocol, 1_204_224, 120, slower=4),
            f'two models, {name}': Case(
                protocol, ('--models', 'one,two', *some),
                {'one': Emulated(110_592, 30, priority=2),
                 'two': Emulated(3072, 60, slower=0.5, priority=1)}, closed=(16, 128)),
            f'chain, {name}': Case(
                protocol, ('--models', 'chain', *some),
                {each: Emulated(3072, 0) for each in 'abc'}, chain=tuple('abc'), chain_slo_ms=100,
                closed=(16, 128), twin=False),
        }
    return made


def tensors(kind, size):
    return f'{kind} [ {{ name: "{kind[0]}" data_type: TYPE_FP32 dims: [ {size} ] }} ]\n'


def parameters(**given):
    return ''.join(f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
                   for key, value in given.items() if value)


def write_models(case, folder):
    """The repository of a case's emulated models, in `folder`; the options of serve for them."""
    for name, model in case.emulated.items():
        (folder / name / '1').mkdir(parents=True)
        (folder / name / 'config.pbtxt').write_text(
            f'name: "{name}"\nplatform: "emulated"\nmax_batch_size: {BATCH}\n'
            + tensors('input', model.bytes // 4)
            # A step answers what the next one takes.
            + tensors('output', model.bytes // 4 if case.chain else 10)
            + parameters(slo_ms=model.slo_ms, priority=model.priority), encoding='utf-8')
    if case.chain:
        write_chain(case, folder)
    profile = folder.with_suffix('.json')
    profile.write_text(json.dumps({
        'tactus_profile': 1, 'machine': {'fingerprint': 'none'}, 'provenance': 'made up',
        'models': [{'name': name, 'max_batch': BATCH, 'exits': [{'name': '1', 'cells': [
            {'batch': n, 'mean_ms': model.batch_ms(n)} for n in range(1, BATCH + 1)]}]}
                   for name, model in case.emulated.items()]}), encoding='utf-8')
    return ['--profile', str(profile), '--allow-other-machine']


def write_chain(case, folder):
    size = case.emulated[case.chain[0]].bytes // 4
    (folder / 'chain/1').mkdir(parents=True)
    steps = ',\n'.join(
        f'  {{ model_name: "{name}" model_version: -1\n'
        f'    input_map {{ key: "i" value: "{f"t{n}" if n else "i"}" }}\n'
        f'    output_map {{ key: "o" value: "{f"t{n + 1}" if n + 1 < len(case.chain) else "o"}" '
        '} }' for n, name in enumerate(case.chain))
    (folder / 'chain/config.pbtxt').write_text(
        f'name: "chain"\nplatform: "ensemble"\nmax_batch_size: {BATCH}\n' + tensors('input', size)
        + tensors('output', size) + f'ensemble_scheduling {{ step [\n{steps}\n] }}\n'
        + parameters(slo_ms=case.chain_slo_ms), encoding='utf-8')


def simulate(tactus, case, cell, front, folder):
    """In time a second in virtual time."""
    retry, load = cell
    arrivals = (f'rate_rps = {load}' if retry is None else
                f'process = "closed"\ncallers = {load // len(case.emulated)}\nthink_ms = 0\n'
                f'retry_ms = {max(1000 * retry, 0.1)}')
    models = '\n'.join(
        f'[[models]]\nname = "{name}"\nslo_ms = {model.slo_ms}\nbytes = {model.bytes}\n'
        + (f'priority = {model.priority}\n' if model.priority else '')
        for name, model in case.emulated.items())
    scenario = folder.with_suffix('.toml')
    scenario.write_text(
        '[scenario]\nname = "twin"\nduration_s = 6\nwarmup_s = 1\nexpiry = "unmeetable"\n'
        f'follow = "yes"\npolicy = "horizon"\nprofile = "{folder.with_suffix(".json")}"\n\n'
        + '[front]\n' + ''.join(f'{key} = {value}\n' for key, value in front.items())
        + f'\n[arrivals]\n{arrivals}\n\n{models}', encoding='utf-8')
    report = folder.with_suffix('.report.json')
    subprocess.run([str(tactus), 'simulate', str(scenario), '--json', str(report)], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(report.read_text(encoding='utf-8'))['runs'][0]['goodput_rps']
