#!/usr/bin/env python3
"""Compile models of this folder for one kind of device, as AOTInductor packages.

Needs PyTorch 2.6 or later and onnx, and a C++ compiler; for a device it has to run on a machine
that has such a device, since the package is code for it.

    export_aoti.py ee_s ee_m ee_l --device cuda --out DIR

Writes a model repository: DIR/NAME/config.pbtxt, which is the model's with another platform and
other files, and DIR/NAME/1/exit1.pt2 and so on. The graphs' nodes are run by PyTorch's own
functions while torch.export watches, so a package computes what the ONNX graph does; the batch is
open from 1 to the model's max_batch_size. What differs most from the graph on a batch of noise is
printed.
"""
import argparse
import pathlib
import re
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent


class OnnxGraph(nn.Module):
    """A graph's nodes in their order, with its constants as buffers."""

    def __init__(self, path):
        super().__init__()
        model = onnx.load(str(path))
        self.nodes = list(model.graph.node)
        self.result = model.graph.output[0].name
        self.input = model.graph.input[0]
        self.places = {}
        for constant in model.graph.initializer:
            place = f'constant_{len(self.places)}'
            values = np.array(onnx.numpy_helper.to_array(constant))
            self.register_buffer(place, torch.from_numpy(values))
            self.places[constant.name] = place
        unknown = {node.op_type for node in self.nodes} - set(OPERATORS)
        if unknown:
            raise SystemExit(f'{path}: no PyTorch function is known here for '
                             f'{", ".join(sorted(unknown))}; add it to OPERATORS')

    def forward(self, x):
        values = {self.input.name: x}
        for node in self.nodes:
            given = [values[name] if name in values else getattr(self, self.places[name])
                     for name in node.input]
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            values[node.output[0]] = OPERATORS[node.op_type](attributes, *given)
        return values[self.result]


def conv(attributes, x, weight, bias=None):
    pads = attributes.get('pads', [0, 0, 0, 0])
    if pads[:2] != pads[2:]:
        raise SystemExit('Conv: pads that differ by side are not known here')
    return functional.conv2d(x, weight, bias, attributes.get('strides', 1), pads[:2],
                             attributes.get('dilations', 1), attributes.get('group', 1))


def gemm(attributes, x, weight, bias):
    if attributes.get('alpha', 1) != 1 or attributes.get('beta', 1) != 1:
        raise SystemExit('Gemm: factors other than 1 are not known here')
    return functional.linear(x, weight if attributes.get('transB') else weight.T, bias)


def normalize(attributes, x, scale, bias, mean, variance):
    return functional.batch_norm(x, mean, variance, scale, bias,
                                 eps=attributes.get('epsilon', 1e-5))


OPERATORS = {
    'Add': lambda _, a, b: a + b,
    'BatchNormalization': normalize,
    'Cast': lambda attributes, x: x.to({1: torch.float32, 10: torch.float16}[attributes['to']]),
    'Conv': conv,
    'Flatten': lambda attributes, x: x.flatten(attributes.get('axis', 1)),
    'Gemm': gemm,
    'MatMul': lambda _, a, b: a @ b,
    'ReduceMean': lambda attributes, x: x.mean(tuple(attributes['axes']),
                                               bool(attributes.get('keepdims', 1))),
    'Relu': lambda _, x: torch.relu(x),
}


def row_shape(graph):
    return [dim.dim_value for dim in graph.input.type.tensor_type.shape.dim[1:]]


def export(graph, path, device, most):
    """Compiles the graph into a package at `path`; the largest difference from it."""
    graph = graph.to(device).eval()
    noise = torch.randn(max(2, most), *row_shape(graph),
                        generator=torch.Generator().manual_seed(1)).to(device)
    batch = {0: torch.export.Dim('batch', min=1, max=most)} if most > 1 else {}
    with torch.no_grad():
        exported = torch.export.export(graph, (noise[:most],), dynamic_shapes={'x': batch})
        torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
        packaged = torch._inductor.aoti_load_package(str(path))(noise[:most])
        return (packaged - graph(noise[:most])).abs().max().item()


def config(text):
    """The model's, for its packages."""
    text = re.sub(r'platform: *"[^"]*"', 'platform: "pytorch_aoti"', text)
    return re.sub(r'\.onnx\b', '.pt2', text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('models', nargs='+', metavar='MODEL', help='folders of --models')
    parser.add_argument('--models', dest='root', type=pathlib.Path, default=HERE)
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cuda')
    parser.add_argument('--out', type=pathlib.Path, required=True)
    args = parser.parse_args()
    if args.device == 'cuda' and not torch.cuda.is_available():
        sys.exit('export_aoti.py: PyTorch finds no device here; packages for one are made where it '
                 'is')
    for name in args.models:
        text = (args.root / name / 'config.pbtxt').read_text(encoding='utf-8')
        most = int(re.search(r'max_batch_size: *(\d+)', text).group(1))
        folder = args.out / name / '1'
        folder.mkdir(parents=True, exist_ok=True)
        (args.out / name / 'config.pbtxt').write_text(config(text), encoding='utf-8')
        for path in sorted((args.root / name / '1').glob('*.onnx')):
            graph = OnnxGraph(path)
            target = folder / (path.stem + '.pt2')
            off = export(graph, target, args.device, most)
            print(f'{target}: off by {off:.2g} at most', flush=True)
            if not off < 1e-2:
                sys.exit(f'export_aoti.py: {target} does not compute what {path} does')


if __name__ == '__main__':
    main()
