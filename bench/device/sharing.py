#!/usr/bin/env python3
"""What real networks cost on parts of an NVIDIA device, and what two of them cost each other.

    sharing.py --json FILE [--only shares,streams,parts,processes,mps,mps-half] [--seconds 1]

Needs PyTorch with torchvision, cuda-bindings, and a device that nothing else uses. Networks are
torchvision's, with drawn weights, in FP16 with channels last, images of 224 x 224; each batch size
is one CUDA graph, so that the host costs nothing. Written to FILE, which a second call adds to:

  shares     P50 of a batch by network, batch size and share of the SMs (green contexts)
  streams    a pair of networks on two streams of the whole device
  parts      a pair, each on its own half of the SMs
  processes  a pair in two processes, which the device runs in time slices
  mps        a pair in two processes under NVIDIA's MPS; mps-half: each with half of the threads

In a pair each network runs its batches one behind the other; `slowdown` is the mean time of a
batch over its mean alone on the whole device, in the same kind of place.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

NETS = ('resnet50', 'mobilenet_v2', 'vgg16')
SHARES = (20, 40, 50, 60, 80, 100)
BATCHES = (1, 4, 16, 32)
PAIRS = [(a, b, batch) for batch in (1, 8, 32)
         for a, b in (('resnet50', 'mobilenet_v2'), ('resnet50', 'vgg16'),
                      ('mobilenet_v2', 'vgg16'))]


def ask(answer):
    """What a call of cuda-bindings gave."""
    if int(answer[0]) != 0:
        raise RuntimeError(f'the driver answers {answer[0]}')
    return answer[1] if len(answer) == 2 else answer[1:]


class Parts:
    """The device's SMs in groups of the smallest size; parts are runs of groups."""

    def __init__(self):
        import torch
        from cuda.bindings import driver
        torch.zeros(1, device='cuda')  # makes the primary context
        self.driver = driver
        self.device = ask(driver.cuDeviceGet(0))
        sms = ask(driver.cuDeviceGetDevResource(
            self.device, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
        self.sms = sms.sm.smCount
        count = self.sms // 8
        self.groups, made, _ = ask(driver.cuDevSmResourceSplitByCount(count, sms, 0, 8))
        self.groups = self.groups[:made]
        self.contexts = []

    def stream(self, first, count):
        """A stream on these groups, and how many SMs they have."""
        import torch
        driver = self.driver
        description = ask(driver.cuDevResourceGenerateDesc(self.groups[first:first + count], count))
        context = ask(driver.cuGreenCtxCreate(
            description, self.device,
            driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM))
        self.contexts.append(context)
        got = ask(driver.cuGreenCtxGetDevResource(
            context, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
        handle = ask(driver.cuGreenCtxStreamCreate(
            context, driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0))
        return torch.cuda.ExternalStream(int(handle)), got.sm.smCount

    def of_share(self, per_cent):
        import torch
        if per_cent == 100:
            return torch.cuda.Stream(), self.sms
        return self.stream(0, max(1, round(per_cent / 100 * len(self.groups))))


class Runner:
    """A network's batch as a CUDA graph of a stream."""

    def __init__(self, nets, net, batch, stream):
        import torch
        self.torch, self.stream = torch, stream
        self.input = torch.randn(batch, 3, 224, 224, device='cuda', dtype=torch.half).to(
            memory_format=torch.channels_last)
        module = nets[net]
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(3):
                module(self.input)
            stream.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            self.graph.capture_begin(capture_error_mode='thread_local')
            self.output = module(self.input)
            self.graph.capture_end()
        for _ in range(3):
            self.run()

    def run(self):
        with self.torch.cuda.stream(self.stream):
            self.graph.replay()
        self.stream.synchronize()

    def times(self, seconds):
        """Of batches one behind the other, in ms, until the time is over."""
        took = []
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(took) < 5:
            begin = time.perf_counter()
            self.run()
            took.append(1e3 * (time.perf_counter() - begin))
        return took


def make_nets(names=NETS):
    import torch
    import torchvision
    torch.manual_seed(1)
    return {name: getattr(torchvision.models, name)(weights=None).eval().half().cuda().to(
        memory_format=torch.channels_last) for name in names}


def middle(values):
    return sorted(values)[len(values) // 2]


def mean(values):
    return sum(values) / len(values)


def measure_shares(result, options):
    import torch
    nets, parts = make_nets(), Parts()
    cells = []
    for share in SHARES:
        stream, sms = parts.of_share(share)
        for net in NETS:
            row = []
            for batch in BATCHES:
                runner = Runner(nets, net, batch, stream)
                cells.append({'net': net, 'share': share, 'sms': sms, 'batch': batch,
                              'p50_ms': round(middle(runner.times(options.seconds / 10)), 4)})
                row.append(cells[-1]['p50_ms'])
            print(f'  {share:3} % ({sms:3} SMs) {net:13}', *(f'{each:8.3f}' for each in row),
                  'ms in batches of', BATCHES, flush=True)
    properties = torch.cuda.get_device_properties(0)
    result['device'] = {'name': properties.name, 'sms': properties.multi_processor_count,
                        'torch': torch.__version__}
    result['shares'] = cells


def together(first, second, seconds):
    """Their times, in two threads of this process, of the batches that had a neighbour."""
    took = [None, None]
    start = threading.Barrier(2)

    def run(index, runner):
        start.wait()
        took[index] = runner.times(seconds)

    threads = [threading.Thread(target=run, args=each) for each in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def say(result, mode, a, b, batch, alone, took):
    slow = [mean(each[1:-1]) / mean(one) for each, one in zip(took, alone)]
    result.setdefault('pairs', []).append(
        {'mode': mode, 'nets': [a, b], 'batch': batch,
         'alone_ms': [round(mean(one), 4) for one in alone],
         'slowdown': [round(each, 3) for each in slow],
         'throughput': round(sum(1 / each for each in slow), 3)})
    print(f'  {mode:10} {a} + {b}, batches of {batch}: {slow[0]:.2f} and {slow[1]:.2f} times as '
          f'long, {sum(1 / each for each in slow):.2f} of the throughput of one', flush=True)


def measure_threads(mode, result, options):
    import torch
    nets, parts = make_nets(), Parts()
    if mode == 'streams':
        streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    else:
        half = len(parts.groups) // 2
        streams = [parts.stream(0, half)[0], parts.stream(half, half)[0]]
    whole = torch.cuda.Stream()
    for a, b, batch in PAIRS:
        alone = [Runner(nets, net, batch, whole).times(options.seconds / 5) for net in (a, b)]
        pair = [Runner(nets, net, batch, stream) for net, stream in zip((a, b), streams)]
        say(result, mode, a, b, batch, alone, together(*pair, options.seconds))


def serve_pairs(pipe, barrier, environment, seconds):
    """A process of a pair: times of what it is asked for, alone and beside the other."""
    os.environ.update(environment)
    import torch
    nets, stream, runners = make_nets(), torch.cuda.Stream(), {}
    pipe.send('ready')
    for net, batch, alone in iter(pipe.recv, None):
        if (net, batch) not in runners:
            runners[net, batch] = Runner(nets, net, batch, stream)
        if not alone:
            barrier.wait(60)
        pipe.send(runners[net, batch].times(seconds / 5 if alone else seconds))


def measure_processes(mode, environment, result, options):
    context = multiprocessing.get_context('spawn')
    barrier = context.Barrier(2)
    workers, pipes = [], []
    for _ in range(2):
        ours, theirs = context.Pipe()
        workers.append(context.Process(target=serve_pairs, daemon=True,
                                       args=(theirs, barrier, environment, options.seconds)))
        workers[-1].start()
        pipes.append(ours)

    def answer(pipe):
        if not pipe.poll(90):
            raise TimeoutError(f'{mode}: a process says nothing')
        return pipe.recv()

    try:
        for pipe in pipes:
            answer(pipe)
        for a, b, batch in PAIRS:
            alone = []
            for pipe, net in zip(pipes, (a, b)):
                pipe.send((net, batch, True))
                alone.append(answer(pipe))
            for pipe, net in zip(pipes, (a, b)):
                pipe.send((net, batch, False))
            say(result, mode, a, b, batch, alone, [answer(pipe) for pipe in pipes])
        for pipe in pipes:
            pipe.send(None)
    finally:
        for worker in workers:
            worker.join(10)
            worker.terminate()


def measure_mps(mode, result, options):
    """Starts a control daemon of its own, in a folder of its own, and ends it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {'CUDA_MPS_PIPE_DIRECTORY': folder, 'CUDA_MPS_LOG_DIRECTORY': folder}
        everything = {**os.environ, **environment}
        subprocess.run(['nvidia-cuda-mps-control', '-d'], env=everything, check=True, timeout=20)
        try:
            if mode == 'mps-half':
                environment['CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'] = '50'
            measure_processes(mode, environment, result, options)
        finally:
            subprocess.run(['nvidia-cuda-mps-control'], input='quit\n', text=True, env=everything,
                           check=False, timeout=30)
            for log in pathlib.Path(folder).glob('*.log'):
                print(log.read_text(encoding='utf-8')[-1500:])


MODES = {'shares': measure_shares,
         'streams': lambda *given: measure_threads('streams', *given),
         'parts': lambda *given: measure_threads('parts', *given),
         'processes': lambda *given: measure_processes('processes', {}, *given),
         'mps': lambda *given: measure_mps('mps', *given),
         'mps-half': lambda *given: measure_mps('mps-half', *given)}


def measure_apart(mode, options):
    """In a process of its own, so that no other context is on the device."""
    path = options.json
    result = json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}
    MODES[mode](result, options)
    path.write_text(json.dumps(result, indent=1) + '\n', encoding='utf-8')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--json', type=pathlib.Path, required=True)
    parser.add_argument('--only', default=','.join(MODES))
    parser.add_argument('--seconds', type=float, default=1, help='of each pair')
    parser.add_argument('--here', choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure_apart(options.here, options)
        return 0
    failed = []
    for mode in options.only.split(','):
        print(f'{mode}:', flush=True)
        begin = time.monotonic()
        code = subprocess.run([sys.executable, '-B', __file__, '--json', options.json, '--seconds',
                               str(options.seconds), '--here', mode], check=False).returncode
        print(f'  took {time.monotonic() - begin:.0f} s', flush=True)
        if code != 0:
            failed.append(mode)
    if failed:
        print(f'sharing.py: could not be measured: {", ".join(failed)}', file=sys.stderr)
    return 2 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
