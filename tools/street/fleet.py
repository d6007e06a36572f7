"""The street as a fleet: its models, what they cost on each node, and the file that says so."""
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess

import kserve
from network import ROOT, Refused

PIPELINES = ROOT / 'models/pipelines'
OWN = ROOT / 'examples/cameras/models'
PICTURES = [ROOT / f'examples/pipelines/street{n}.jpg' for n in (1, 2, 3, 4)]
SLO_MS = 500
STEPS = ('find', 'pose')
# The pipeline without a deadline, to measure with.
WHOLE = 'whole'
# A fleet's costs are 95th percentiles; the simulator's times are log-normal with [fleet] spread.
P95_OF_MEAN = math.exp(1.645 * 0.05)

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
    for name in ('nanodet', 'posenet'):
        if not (PIPELINES / name / '1/model.onnx').exists():
            raise Refused(f'{PIPELINES / name} has no graph; run ./run setup pipelines')
    for model in sorted(OWN.iterdir()):
        (folder / model.name).symlink_to(model.resolve())
    for name, slo in [(WHOLE, 60_000), *((name, slo_ms) for name in cameras)]:
        (folder / name / '1').mkdir(parents=True)
        (folder / name / 'config.pbtxt').write_text(CAMERA.format(name=name, slo=slo),
                                                    encoding='utf-8')
    return folder


def make_video(path):
    """Four frames of a recorded street, over and over: MJPEG is JPEGs one after the other."""
    path.write_bytes(b''.join(picture.read_bytes() for picture in PICTURES))
    return path


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


class Measured:
    """What a node is busy for with a frame and its persons, and how large tensors are: means."""

    def __init__(self, find_ms, frame_ms, sizes_kb, persons):
        self.frame_ms, self.sizes_kb, self.persons = frame_ms, sizes_kb, persons
        self.mean_ms = {'find': find_ms, 'pose': max(0.1, (frame_ms - find_ms) / persons)}

    def cost_ms(self, step):
        return P95_OF_MEAN * self.mean_ms[step]

    def summary(self):
        return {**{f'{step}_ms': took for step, took in self.mean_ms.items()},
                'frame_ms': self.frame_ms, 'persons': self.persons, **self.sizes_kb}


def sizes(space, port):
    """Kilobytes of what crosses links, and persons in a frame: means of the pictures."""
    found_kb, person_kb, persons = [], [], []
    for picture in PICTURES:
        jpeg = picture.read_bytes()
        got = kserve.call(space, port, 'find', [('jpeg', 'UINT8', [len(jpeg)], jpeg)])
        crops = kserve.strings(got['persons'][1])
        persons.append(len(crops))
        person_kb += [len(crop) / 1e3 for crop in crops]
        found_kb.append(sum(len(data) for _, data in got.values()) / 1e3)
    mean = statistics.mean
    return {'frame_kb': mean(len(picture.read_bytes()) / 1e3 for picture in PICTURES),
            'found_kb': mean(found_kb), 'person_kb': mean(person_kb)}, mean(persons)


def answered(space, port, model):
    """Calls that went well since the server began."""
    told = subprocess.run(['ip', 'netns', 'exec', space, 'curl', '-sS', '--max-time', '30',
                           f'http://127.0.0.1:{port}/v2/models/{model}/stats'],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(told)['model_stats'][0]['inference_stats']['success']['count']


def processor_s(pid):
    """That the process has had."""
    words = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')


def call_ms(space, binary, server, model, seconds, out):
    """Processor time that the server spends on a call: other work on the machine adds little to it,
    unlike to how long a call takes."""
    took = []
    for picture in PICTURES:
        before = answered(space, server.http, model), processor_s(server.process.pid)
        command = ['ip', 'netns', 'exec', space, str(binary), 'load', '--protocol', 'grpc', '--url',
                   f'127.0.0.1:{server.grpc}', '--models', model, '--input', f'jpeg={picture}',
                   '--concurrency', '2', '--duration', str(seconds), '--json', str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        calls = answered(space, server.http, model) - before[0]
        if done.returncode not in (0, 1) or calls < 1:
            raise Refused(f'{" ".join(command)}\n{calls} answers: {done.stderr.strip()}')
        took.append(1e3 * (processor_s(server.process.pid) - before[1]) / calls)
    return statistics.mean(took)


def measure(street, binary, name, server, seconds):
    """On one node, beside the others: all of them work at once later, too. Its part of a core makes
    all that much longer."""
    space = street.space(name)
    sizes_kb, persons = sizes(space, server.http)
    out = street.folder / f'measured-{name}.json'
    part = 1 if street.quotas[name].procs is None else street.cores[name]
    find_ms, frame_ms = (call_ms(space, binary, server, model, seconds, out) / part
                         for model in ('find', WHOLE))
    return Measured(find_ms, frame_ms, sizes_kb, persons)


def fleet_text(cameras, costs, links, fps, duration_s, slo_ms=SLO_MS):
    """`costs`: node to Measured; `links`: camera to (Mbit/s, one-way ms, loss)."""
    lines = ['# Written by tools/street: what was measured on this machine, inside the quotas.',
             '[fleet]', f'duration_s = {duration_s:g}', 'period_s = 0', 'autoscale_s = 0']
    for name in ('server', *cameras):
        lines += ['', '[[devices]]', f'name = "{name}"', f'kind = "{name}"', f'site = "{name}"',
                  'memory_mb = 4000',
                  f'server = {"true" if name == "server" else "false"}']
    for name in cameras:
        mbps, latency_ms, loss = links[name]
        lines += ['', '[[links]]', f'sites = ["server", "{name}"]', f'mbps = {mbps:g}',
                  f'rtt_ms = {2 * latency_ms:g}', f'loss = {loss:g}']
    for name, measured in costs.items():
        for step in STEPS:
            lines += ['', '[[costs]]', f'model = "{step}"', f'kind = "{name}"', 'weights_mb = 20',
                      'batches = [1]', f'infer_ms = [{measured.cost_ms(step):.3f}]',
                      'peak_mb = [100]', 'use = [1]']
    each = costs['server'].summary()
    for name in cameras:
        lines += ['', '[[pipelines]]', f'name = "{name}"', f'slo_ms = {slo_ms:g}',
                  f'source = "{name}"', f'rate_rps = {fps:g}',
                  '  [[pipelines.stages]]', '  name = "find"', '  model = "find"',
                  f'  in_kb = {each["frame_kb"]:.3f}', f'  out_kb = {each["found_kb"]:.3f}',
                  '  [[pipelines.stages]]', '  name = "pose"', '  model = "pose"',
                  '  after = ["find"]', f'  items = {each["persons"]:.3f}',
                  f'  in_kb = {each["person_kb"]:.3f}', '  out_kb = 0.3']
    return '\n'.join(lines) + '\n'


def write_fleet(path, *arguments, **keys):
    path = pathlib.Path(path)
    path.write_text(fleet_text(*arguments, **keys), encoding='utf-8')
    return path


def forget(folder):
    shutil.rmtree(folder, ignore_errors=True)
