"""The networks of bench/peers, and what the servers of Python share: ONNX Runtime, and KServe v2's
binary tensors."""
import argparse
import json
import pathlib
from typing import NamedTuple

import numpy
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
LENGTH = "Inference-Header-Content-Length"


class Net(NamedTuple):
    file: str  # empty: the answer is the input
    max_batch: int
    input: str
    dims: tuple  # of a row
    output: str
    output_dims: tuple

    @property
    def path(self):
        return ROOT / self.file


def whole(folder, image, classes):
    """A network up to its last exit."""
    return Net(f"{folder}/1/exit4.onnx", 10, "input", image, "logits", (classes,))


NETS = {name: whole(f"models/{name}", (1, 28, 28), 10) for name in ("ee_s", "ee_m", "ee_l")} | {
    name: whole(f".cache/peers/resnets/{name}", (3, 32, 32), 100)  # tools/setup/peers.sh
    for name in ("resnet50", "resnet101")} | {"echo": Net("", 10, "x", (784,), "x", (784,))}


class Graph:
    """The network of that name on one thread."""

    def __init__(self, name):
        self.net = NETS[name]
        if self.net.file:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            self.session = onnxruntime.InferenceSession(str(self.net.path), options,
                                                        providers=["CPUExecutionProvider"])

    def __call__(self, rows):
        if not self.net.file:
            return rows
        return self.session.run([self.net.output], {self.net.input: rows})[0]


def metadata(name):
    """In answer to GET /v2/models/NAME."""
    net = NETS[name]
    return {"name": name, "versions": ["1"], "platform": "onnxruntime",
            "inputs": [{"name": net.input, "datatype": "FP32", "shape": [-1, *net.dims]}],
            "outputs": [{"name": net.output, "datatype": "FP32",
                         "shape": [-1, *net.output_dims]}]}


def rows_of(headers, body):
    """Of a request with one binary tensor, as tritonclient and `tactus load` send it."""
    json_bytes = int(headers[LENGTH])
    shape = json.loads(body[:json_bytes])["inputs"][0]["shape"]
    return numpy.frombuffer(body, numpy.float32, offset=json_bytes).reshape(shape)


def answer_of(name, rows):
    """Body and header fields."""
    data = rows.tobytes()
    head = json.dumps({"model_name": name, "model_version": "1", "outputs": [
        {"name": NETS[name].output, "datatype": "FP32", "shape": rows.shape,
         "parameters": {"binary_data_size": len(data)}}]}).encode()
    return head + data, {LENGTH: str(len(head)), "Content-Type": "application/octet-stream"}


def arguments():
    """Ports, and what bench/peers wrote: models, cores, and the setting that is tried."""
    parser = argparse.ArgumentParser()
    parser.add_argument("spec", type=pathlib.Path)
    for kind in ("http", "grpc", "metrics"):
        parser.add_argument(f"--{kind}-port", type=int, required=True)
    args = parser.parse_args()
    return args, json.loads(args.spec.read_text())
