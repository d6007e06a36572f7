#!/usr/bin/env python3
"""Writes the graphs of this folder's models. Needs nothing but Python: what an ONNX file is made of
(protobuf) is written here by hand.

    make_models.py        writes into models/, beside this script

add_sub   INPUT0, INPUT1 [N,16] float -> OUTPUT0, their sum; OUTPUT1, their difference
mean      VALUES [N,16] float -> MEAN [N,1]
"""
import pathlib

MODELS = pathlib.Path(__file__).resolve().parent / "models"
FLOAT, INT64 = 1, 7          # TensorProto.DataType
INTEGER, INTEGERS = 2, 7     # AttributeProto.AttributeType


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """An int as a varint; str, bytes and messages by their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def value_info(name, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, shape)))


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, INTEGER)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, INTEGERS)


def node(kind, inputs, outputs, **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) +
            field(4, kind) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def write(name, nodes, inputs, outputs):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, name) +
             b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))
    model = field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))
    folder = MODELS / name / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)


def main():
    write("add_sub",
          [node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
           node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])],
          [value_info("INPUT0", ["N", 16]), value_info("INPUT1", ["N", 16])],
          [value_info("OUTPUT0", ["N", 16]), value_info("OUTPUT1", ["N", 16])])
    write("mean", [node("ReduceMean", ["VALUES"], ["MEAN"], axes=[1], keepdims=1)],
          [value_info("VALUES", ["N", 16])], [value_info("MEAN", ["N", 1])])


if __name__ == "__main__":
    main()
