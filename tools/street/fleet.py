"""The street as a fleet: its models, what they cost on each node, and the file that says so."""
import json
import pathlib
import shutil
import statistics
import subprocess

import kserve
from network import ROOT, Refused

PIPELINES = ROOT / 'models/pipelines'
OWN = pathlib.Path(__file__).resolve().parent / 'models'
PICTURES = [ROOT / f'examples/pipelines/street{n}.jpg' for n in (1, 2, 3, 4)]
SLO_MS = 500
STEPS = ('find', 'pose')
# What a step may take for the planner: of the calls that measured it.
QUANTILE = 0.9

CAMERA = '''# A camera's frames: the persons in each, and their poses. A late pose is left out.
name: "{name}"
platform: "ensemble"
max_batch_size: 0
input [ {{ name: "jpeg" data_type: TYPE_UINT8 dims: [ -1 ] }} ]
output [
  {{ name: "boxes" data_type: TYPE_FP32 dims: [ -1, 4 ] }},
  {{ name: "points" data_type: TYPE_FP32 dims: [ -1, 17, 3 ] }}
]
ensemble_scheduling {{
  step [
    {{
      model_name: "find" model_version: -1
      input_map {{ key: "jpeg" value: "jpeg" }}
      output_map {{ key: "boxes" value: "boxes" }}
      output_map {{ key: "persons" value: "person" }}
      output_map {{ key: "frames" value: "frame" }}
    }},
    {{
      model_name: "pose" model_version: -1
      input_map {{ key: "person" value: "person" }}
      input_map {{ key: "frame" value: "frame" }}
      output_map {{ key: "points" value: "points" }}
    }}
  ]
}}
parameters {{ key: "slo_ms" value: {{ string_value: "{slo}" }} }}
parameters {{ key: "demultiply" value: {{ string_value: "find" }} }}
parameters {{ key: "answer" value: {{ string_value: "each" }} }}
'''


def make_repository(folder, cameras, slo_ms=SLO_MS):
    """The models of `street`, in the two steps that may run apart, and a pipeline a camera."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for name in ('street_image', 'nanodet', 'posenet', 'poses'):
        if not (PIPELINES / name / 'config.pbtxt').exists():
            raise Refused(f'{PIPELINES / name}: not there')
        (folder / name).symlink_to(PIPELINES / name)
    for name in ('nanodet', 'posenet'):
        if not (PIPELINES / name / '1/model.onnx').exists():
            raise Refused(f'{PIPELINES / name} has no graph; run ./run setup demo')
    for model in sorted(OWN.iterdir()):
        (folder / model.name).symlink_to(model)
    for name in cameras:
        (folder / name / '1').mkdir(parents=True)
        (folder / name / 'config.pbtxt').write_text(CAMERA.format(name=name, slo=slo_ms),
                                                    encoding='utf-8')
    return folder


def make_video(path):
    """Four frames of a recorded street, over and over: MJPEG is JPEGs one after the other."""
    path.write_bytes(b''.join(picture.read_bytes() for picture in PICTURES))
    return path


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


def median(values):
    return statistics.median(values) if values else 0.0


class Measured:
    """What the steps take on a node and how large their tensors are, by calls one at a time."""

    def __init__(self):
        self.took_ms = {step: [] for step in STEPS}
        self.sizes_kb = {'frame': [], 'found': [], 'person': []}
        self.persons = []

    def cost_ms(self, step):
        return quantile(self.took_ms[step], QUANTILE)

    def frame_ms(self):
        """Of a whole frame, in the mean."""
        mean = statistics.mean
        return mean(self.took_ms['find']) + mean(self.persons) * mean(self.took_ms['pose'])

    def summary(self):
        return {**{f'{step}_ms': {'p50': median(self.took_ms[step]),
                                  f'p{100 * QUANTILE:.0f}': self.cost_ms(step)} for step in STEPS},
                **{f'{what}_kb': statistics.mean(sizes) for what, sizes in self.sizes_kb.items()},
                'persons': statistics.mean(self.persons)}


def server_us(space, port, model):
    """(calls that went well, their microseconds) since the worker began."""
    told = subprocess.run(['ip', 'netns', 'exec', space, 'curl', '-sS', '--max-time', '30',
                           f'http://127.0.0.1:{port}/v2/models/{model}/stats'],
                          capture_output=True, text=True, check=True).stdout
    success = json.loads(told)['model_stats'][0]['inference_stats']['success']
    return success['count'], success['ns'] / 1e3


def measure(space, port, rounds):
    """Runs both steps `rounds` times for each picture. Times are the server's own of each call."""
    found = Measured()

    def timed(step, inputs):
        _, before = server_us(space, port, step)
        outputs = kserve.call(space, port, step, inputs)
        _, after = server_us(space, port, step)
        found.took_ms[step].append((after - before) / 1e3)
        return outputs
    for number in range(rounds):
        for picture in PICTURES:
            jpeg = picture.read_bytes()
            got = timed('find', [('jpeg', 'UINT8', [len(jpeg)], jpeg)])
            persons = kserve.strings(got['persons'][1])
            frames = got['frames'][1]
            found.persons.append(len(persons))
            found.sizes_kb['frame'].append(len(jpeg) / 1e3)
            found.sizes_kb['found'].append(sum(len(data) for _, data in got.values()) / 1e3)
            found.sizes_kb['person'] += [len(person) / 1e3 for person in persons]
            for i, person in enumerate(persons if number == 0 else persons[:2]):
                timed('pose', [('person', 'BYTES', [1, 1], kserve.bytes_of([person])),
                               ('frame', 'FP32', [1, 4], frames[16 * i:16 * i + 16])])
    # The first call of each is not what comes after it.
    for step in STEPS:
        del found.took_ms[step][0]
    return found


def fleet_text(cameras, costs, links, fps, duration_s, slo_ms=SLO_MS):
    """`costs`: node to Measured; `links`: camera to (Mbit/s, one-way ms, loss)."""
    lines = ['# Written by tools/street: what was measured on this machine, inside the quotas.',
             '[fleet]', f'duration_s = {duration_s:g}', 'period_s = 0', 'autoscale_s = 0']
    for name in ('server', *cameras):
        lines += ['', '[[devices]]', f'name = "{name}"', f'kind = "{name}"', f'site = "{name}"',
                  'streams = 1', 'memory_mb = 4000', f'server = {str(name == "server").lower()}']
    for name in cameras:
        mbps, latency_ms, loss = links[name]
        lines += ['', '[[links]]', f'sites = ["server", "{name}"]', f'mbps = {mbps:g}',
                  f'rtt_ms = {2 * latency_ms:g}', f'loss = {loss:g}']
    for name, measured in costs.items():
        for step in STEPS:
            lines += ['', '[[costs]]', f'model = "{step}"', f'kind = "{name}"', 'weights_mb = 20',
                      'batches = [1]', f'infer_ms = [{measured.cost_ms(step):.3f}]',
                      'peak_mb = [100]', 'use = [1]']
    sizes = costs['server'].summary()
    for name in cameras:
        lines += ['', '[[pipelines]]', f'name = "{name}"', f'slo_ms = {slo_ms:g}',
                  f'source = "{name}"', f'rate_rps = {fps:g}',
                  '  [[pipelines.stages]]', '  name = "find"', '  model = "find"',
                  f'  in_kb = {sizes["frame_kb"]:.3f}', f'  out_kb = {sizes["found_kb"]:.3f}',
                  '  [[pipelines.stages]]', '  name = "pose"', '  model = "pose"',
                  '  after = ["find"]', f'  items = {sizes["persons"]:.3f}',
                  f'  in_kb = {sizes["person_kb"]:.3f}', '  out_kb = 0.3']
    return '\n'.join(lines) + '\n'


def write_fleet(path, *arguments, **keys):
    path = pathlib.Path(path)
    path.write_text(fleet_text(*arguments, **keys), encoding='utf-8')
    return path


def forget(folder):
    shutil.rmtree(folder, ignore_errors=True)
