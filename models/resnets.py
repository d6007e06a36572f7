#!/usr/bin/env python3
"""Write ResNet50, ResNet101 and ResNet152 with four early exits each, as EdgeServing has them.

The weights are drawn, not trained: how long a batch takes does not depend on them, and what it
answers is of no use. The accuracies in config.pbtxt are those of the paper's table, which nobody
measured here. Needs numpy; for --format aoti, PyTorch 2.6 or later and a machine with the device,
since a package is code for one kind of device.

    resnets.py --out DIR                          # ONNX graphs, half a gigabyte
    resnets.py --out DIR --format aoti            # AOTInductor packages for the device
    resnets.py --out DIR --width 8                # an eighth of the channels: for a test

A model repository: DIR/resnet50/config.pbtxt and DIR/resnet50/1/exit1.onnx and so on; the graphs of
one network share a file of weights. An exit is behind each of the first three stages (pooling and
one fully connected layer), the last one is the network's own. Images are of --size pixels a side,
32 as those of CIFAR-100 are, of which the paper's networks tell 100 classes.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

import numpy as np

CLASSES = 100
MAX_BATCH = 10
# Blocks in each stage, and the accuracy of each exit in per cent by EdgeServing's table.
NETWORKS = {'resnet50': ((3, 4, 6, 3), (7.6, 12.1, 30.8, 74.4)),
            'resnet101': ((3, 4, 23, 3), (7.4, 14.5, 54.3, 77.9)),
            'resnet152': ((3, 8, 36, 3), (7.3, 17.2, 47.4, 78.0))}
OPSET, IR = 17, 8


class Network:
    """Layers in the order in which they run: (operator, attributes, inputs, weights, output).

    Batch normalisation is folded into the convolutions before it, as exporters do.
    """

    def __init__(self, blocks, width, seed):
        self.rng = np.random.default_rng(seed)
        self.layers = []
        self.heads = []  # of each exit: how many layers it stands behind, and its own
        x, channels = self.conv('input', 3, width, 7, 2), width
        x = self.layer('MaxPool', {'kernel_shape': [3, 3], 'strides': [2, 2],
                                   'pads': [1, 1, 1, 1]}, [x])
        for stage, count in enumerate(blocks):
            for block in range(count):
                x, channels = self.bottleneck(x, channels, width << stage,
                                              2 if stage > 0 and block == 0 else 1)
            self.heads.append((len(self.layers), self.head(x, channels)))

    def layer(self, operator, attributes, inputs, weights=()):
        output = f't{len(self.layers)}'
        self.layers.append((operator, attributes, inputs, list(weights), output))
        return output

    def conv(self, x, before, after, size, stride, gain=1.0, relu=True):
        scale = gain * np.sqrt(2 / (before * size * size))
        weight = self.rng.standard_normal((after, before, size, size), np.float32)
        bias = 0.01 * self.rng.standard_normal(after, np.float32)
        x = self.layer('Conv', {'kernel_shape': [size, size], 'strides': [stride, stride],
                                'pads': [size // 2] * 4}, [x],
                       [weight * np.float32(scale), bias])
        return self.layer('Relu', {}, [x]) if relu else x

    def bottleneck(self, x, before, width, stride):
        after = 4 * width
        y = self.conv(x, before, width, 1, 1)
        y = self.conv(y, width, width, 3, stride)
        # Small, so that what flows past the blocks does not grow beyond all measure.
        y = self.conv(y, width, after, 1, 1, gain=0.2, relu=False)
        if stride != 1 or before != after:
            x = self.conv(x, before, after, 1, stride, relu=False)
        return self.layer('Relu', {}, [self.layer('Add', {}, [x, y])]), after

    def head(self, x, channels):
        """Layers that no later stage needs."""
        weight = self.rng.standard_normal((CLASSES, channels), np.float32)
        weight *= np.float32(1 / np.sqrt(channels))
        bias = 0.01 * self.rng.standard_normal(CLASSES, np.float32)
        return [('GlobalAveragePool', {}, [x], [], 'pooled'),
                ('Flatten', {'axis': 1}, ['pooled'], [], 'flat'),
                ('Gemm', {'transB': 1}, ['flat'], [weight, bias], 'logits')]

    def up_to(self, exit_number):
        count, head = self.heads[exit_number]
        return self.layers[:count] + head


# ONNX is a protobuf format: fields are (number, wire type) and a value; see onnx.proto.

def varint(value):
    out = b''
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b''.join(field(8, each) for each in value) + field(20, 7)


def tensor_type(shape):
    dims = b''.join(field(1, field(2, each) if isinstance(each, str) else field(1, each))
                    for each in shape)
    return field(1, field(1, 1) + field(2, dims))


class WeightsFile:
    """Where the weights of all exits of a network lie, each once."""

    def __init__(self, path):
        self.name = path.name
        self.file = path.open('wb')
        self.places = {}  # by the identity of the array

    def initializer(self, name, values):
        if id(values) not in self.places:
            begin = -(-self.file.tell() // 4096) * 4096  # whole pages, which can be mapped
            self.file.seek(begin)
            self.file.write(np.ascontiguousarray(values, '<f4').tobytes())
            self.places[id(values)] = (begin, values.nbytes)
        begin, size = self.places[id(values)]
        where = {'location': self.name, 'offset': str(begin), 'length': str(size)}
        return (b''.join(field(1, dim) for dim in values.shape) + field(2, 1) + field(8, name) +
                b''.join(field(13, field(1, key) + field(2, text)) for key, text in where.items()) +
                field(14, 1))


def onnx_graph(name, layers, size, weights):
    nodes = initializers = b''
    for index, (operator, attributes, inputs, arrays, output) in enumerate(layers):
        given = list(inputs)
        for part, values in zip('wb', arrays):
            given.append(f'{operator.lower()}{index}.{part}')
            initializers += field(5, weights.initializer(given[-1], values))
        nodes += field(1, b''.join(field(1, each) for each in given) + field(2, output) +
                       field(3, f'n{index}') + field(4, operator) +
                       b''.join(field(5, attribute(*each)) for each in attributes.items()))
    graph = (nodes + field(2, name) + initializers +
             field(11, field(1, 'input') + field(2, tensor_type(['batch', 3, size, size]))) +
             field(12, field(1, 'logits') + field(2, tensor_type(['batch', CLASSES]))))
    return (field(1, IR) + field(2, 'tactus') + field(7, graph) +
            field(8, field(1, '') + field(2, OPSET)))


def write_onnx(name, network, size, folder):
    weights = WeightsFile(folder / 'weights.bin')
    for number in range(len(network.heads)):
        path = folder / f'exit{number + 1}.onnx'
        path.write_bytes(onnx_graph(name, network.up_to(number), size, weights))
    weights.file.close()


def write_package(options, name, number):
    """The exit of this number, from 0, as a package."""
    import torch
    from torch.nn import functional

    run = {'Conv': lambda a, x, w, b: functional.conv2d(x, w, b, a['strides'], a['pads'][:2]),
           'MaxPool': lambda a, x: functional.max_pool2d(x, a['kernel_shape'], a['strides'],
                                                         a['pads'][:2]),
           'Relu': lambda a, x: torch.relu(x), 'Add': lambda a, x, y: x + y,
           'GlobalAveragePool': lambda a, x: x.mean((2, 3), True),
           'Flatten': lambda a, x: x.flatten(1), 'Gemm': lambda a, x, w, b:
           functional.linear(x, w, b)}

    class Exit(torch.nn.Module):
        def __init__(self, layers):
            super().__init__()
            self.layers = [(*layer[:3], len(layer[3]), layer[4]) for layer in layers]
            for index, (_, _, _, arrays, _) in enumerate(layers):
                for part, values in zip('wb', arrays):
                    self.register_buffer(f'{part}{index}', torch.from_numpy(values))

        def forward(self, x):
            known = {'input': x}
            for index, (operator, attributes, inputs, count, output) in enumerate(self.layers):
                given = [known[each] for each in inputs]
                given += [getattr(self, f'{part}{index}') for part in 'wb'[:count]]
                known[output] = run[operator](attributes, *given)
            return known['logits']

    network = Network(NETWORKS[name][0], options.width,
                      [options.seed, list(NETWORKS).index(name)])
    batch = {0: torch.export.Dim('batch', min=1, max=MAX_BATCH)}
    noise = torch.randn(MAX_BATCH, 3, options.size, options.size,
                        generator=torch.Generator().manual_seed(1)).to(options.device)
    module = Exit(network.up_to(number)).to(options.device).eval()
    path = options.out / name / '1' / f'exit{number + 1}.pt2'
    with torch.no_grad():
        exported = torch.export.export(module, (noise,), dynamic_shapes={'x': batch})
        torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
        packaged = torch._inductor.aoti_load_package(str(path))(noise)
        right = module(noise)
    off = ((packaged - right).abs().max() / right.abs().max()).item()
    print(f'{path}: off by {off:.2g} of the largest answer at most', flush=True)
    if not off < 0.05:  # devices may multiply with ten bits
        raise SystemExit(f'resnets.py: {path} does not compute what its layers do')


def write_packages(options):
    """Makes each exit in a process of its own, since the compilers use one core each; returns the
    exits that could not be made."""
    # Each would start compilers of its own for every core.
    environment = {'TORCHINDUCTOR_COMPILE_THREADS': '1', **os.environ}

    def make(package):
        arguments = [sys.executable, '-X', 'faulthandler', '-B', __file__, '--out', options.out,
                     '--device', options.device, '--size', str(options.size), '--width',
                     str(options.width), '--seed', str(options.seed), '--package', package]
        return subprocess.run(arguments, env=environment, check=False).returncode == 0

    packages = [f'{name}/{number}' for name in NETWORKS for number in range(4)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [package for package, made in zip(packages, pool.map(make, packages)) if not made]


def config(name, accuracies, size, aoti):
    kind, platform = ('pt2', 'pytorch_aoti') if aoti else ('onnx', 'onnxruntime_onnx')
    files = ', '.join(f'exit{e}.{kind}' for e in (1, 2, 3, 4))
    fractions = ', '.join(f'{each / 100:.3f}' for each in accuracies)
    parameters = {'slo_ms': '50', 'priority': '1', 'exits': files,
                  'exit_names': 'layer1, layer2, layer3, final', 'accuracy': fractions}
    lines = ["# Weights are drawn, not trained. Accuracies are those of EdgeServing's table for",
             '# CIFAR-100; nobody measured them here.',
             f'name: "{name}"', f'platform: "{platform}"',
             f'max_batch_size: {MAX_BATCH}',
             f'input [ {{ name: "input" data_type: TYPE_FP32 dims: [ 3, {size}, {size} ] }} ]',
             f'output [ {{ name: "logits" data_type: TYPE_FP32 dims: [ {CLASSES} ] }} ]']
    lines += [f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}'
              for key, value in parameters.items()]
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--out', type=pathlib.Path, required=True, metavar='DIR')
    parser.add_argument('--format', choices=('onnx', 'aoti'), default='onnx')
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cuda', help='of packages')
    parser.add_argument('--size', type=int, default=32, help='pixels a side')
    parser.add_argument('--width', type=int, default=64, help='channels of the first stage')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='packages made at once')
    parser.add_argument('--package', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.package:
        name, number = options.package.split('/')
        write_package(options, name, int(number))
        return 0
    for index, (name, (blocks, accuracies)) in enumerate(NETWORKS.items()):
        folder = options.out / name / '1'
        folder.mkdir(parents=True, exist_ok=True)
        if options.format == 'onnx':
            network = Network(blocks, options.width, [options.seed, index])
            write_onnx(name, network, options.size, folder)
        text = config(name, accuracies, options.size, options.format == 'aoti')
        (options.out / name / 'config.pbtxt').write_text(text, encoding='utf-8')
        print(f'{options.out / name}: {sum(blocks) * 3 + 2} layers, 4 exits', flush=True)
    if options.format == 'aoti':
        failed = write_packages(options)
        if failed:
            sys.exit(f'resnets.py: could not be made: {", ".join(failed)}; see above')
    return 0


if __name__ == '__main__':
    sys.exit(main())
