#!/usr/bin/env python3
"""Writes the small ONNX graphs that the engine's tests run. Needs the Python package onnx.

    make_graphs.py        writes into the folder that this script lies in

strings.onnx   text [N,2] strings -> same [N,2]
pair.onnx      a [N,H,W] float, b [N,H,W] float -> sum [N,H,W], rows [N,W] (the sum over H)
long.onnx      x [N,4] float -> y [N,4]: adds 1 a billion times, so it runs until it is stopped
single.onnx    x [3] int64 -> y [3]: twice x; no batch dimension
scalar.onnx    x [] float, word [] string -> y []: twice x, same []
vector.onnx    x [N] float, cells [N,M,2] float, word [N] string -> y [N]: x times the sum of the
               row's cells, doubled [N,M,2]: twice the cells, same [N]: the word
pick.onnx      x [N,1] int64 -> y [N,1] float: 10, 20, 30 or 40 by x from 0 to 3; any other x fails
steps.onnx     x [N,1] int64 -> y [N,1]: as x, after as many steps as the largest x says
divide.onnx    x [N,1] int64 -> y [N,1]: x divided by -1, which kills the process for the least x
offset.onnx    x [N,4] float, and with defaults factor [F,1]: 2, offset [M,4]: 10, 20, 30, 40,
               extra [E,1]: 0 -> y [N,4]: x times factor, plus offset, plus extra
weights.onnx   x [N,4] float -> y [N,4]: x plus 1, 2, 3, 4, which weights.bin holds
defaults.onnx  with a default, x [3] int64: 1, 2, 3 -> y [3]: twice x
turned.onnx    x [time,N,4] float -> y [N,time,4]: the time is in front, and no batch
centred.onnx   x [N,8] float -> y [N,8]: x less the mean of its column, so rows depend on each other
patches.onnx   x [N,30,4] float -> y [P,4]: 30 rows for each
folds.onnx     x [N,8] float -> y [R,C]: x, or [2N,4] of it where a number in it is above 1000
alike.onnx     x [N,8] float -> y [N,8]: twice x
fourth_before.onnx  x [N,8] float -> y [N,8]: x less the row four places before it
takes_77.onnx  x [N,S] float -> y [N,1]: the sum of the row, of 77 numbers: no other S runs
rank.onnx      x [N,4] float -> y, declared []: [N,2,2]
reflected.onnx x [N,S] float -> y [N,R]: x with 64 numbers reflected behind it, so S is above 64
passed_on.onnx x [N,2] float, id [N] int64 -> x, id: as they came, y [N,2]: twice x
inner.onnx     x [N,4] float -> y [N,4]: x plus what weights.bin holds in the branch of an If, and
               plus the last two of it twice, in a node Constant
shapeless.onnx x float, y: no shape is stated -> y: twice x
folded.onnx    x [N,1] int64 -> y [N,1]: x and the least number divided by -1, which kills whoever
               computes constants while it loads the graph
"""
import pathlib

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

HERE = pathlib.Path(__file__).resolve().parent
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
STRING, BOOL = TensorProto.STRING, TensorProto.BOOL


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, values, kind):
    return numpy_helper.from_array(np.array(values, dtype=kind), name)


def write(name, nodes, inputs, outputs, constants=(), checked=True):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    save(model, HERE / f"{name}.onnx")
    if checked:
        checker.check_model(str(HERE / f"{name}.onnx"))


def long():
    body = helper.make_graph(
        [helper.make_node("Add", ["value", "one"], ["next"]),
         helper.make_node("Identity", ["go"], ["go_on"])],
        "body",
        [tensor("step", INT64, []), tensor("go", BOOL, []), tensor("value", FLOAT, ["N", 4])],
        [tensor("go_on", BOOL, []), tensor("next", FLOAT, ["N", 4])],
        [constant("one", 1, np.float32)],
    )
    write("long", [helper.make_node("Loop", ["steps", "yes", "x"], ["y"], body=body)],
          [tensor("x", FLOAT, ["N", 4])], [tensor("y", FLOAT, ["N", 4])],
          [constant("steps", 1_000_000_000, np.int64), constant("yes", True, np.bool_)])


def steps():
    body = helper.make_graph(
        [helper.make_node("Identity", ["value"], ["next"]),
         helper.make_node("Identity", ["go"], ["go_on"])],
        "body",
        [tensor("step", INT64, []), tensor("go", BOOL, []), tensor("value", INT64, ["N", 1])],
        [tensor("go_on", BOOL, []), tensor("next", INT64, ["N", 1])],
    )
    write("steps",
          [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
           helper.make_node("Loop", ["most", "yes", "x"], ["y"], body=body)],
          [tensor("x", INT64, ["N", 1])], [tensor("y", INT64, ["N", 1])],
          [constant("yes", True, np.bool_)])


def divisions():
    least, minus = (constant(name, [value], np.int64) for name, value in
                    (("least", np.iinfo(np.int64).min), ("minus", -1)))
    x, y = tensor("x", INT64, ["N", 1]), tensor("y", INT64, ["N", 1])
    write("divide", [helper.make_node("Div", ["x", "minus"], ["y"])], [x], [y], [minus])
    write("folded", [helper.make_node("Div", ["least", "minus"], ["folded"]),
                     helper.make_node("Add", ["x", "folded"], ["y"])],
          [x], [y], [least, minus])


def vector():
    cells = ["N", "M", 2]
    write("vector",
          [helper.make_node("ReduceSum", ["cells", "axes"], ["sum"], keepdims=0),
           helper.make_node("Mul", ["x", "sum"], ["y"]),
           helper.make_node("Add", ["cells", "cells"], ["doubled"]),
           helper.make_node("Identity", ["word"], ["same"])],
          [tensor("x", FLOAT, ["N"]), tensor("cells", FLOAT, cells), tensor("word", STRING, ["N"])],
          [tensor("y", FLOAT, ["N"]), tensor("doubled", FLOAT, cells),
           tensor("same", STRING, ["N"])],
          [constant("axes", [1, 2], np.int64)])


def defaults():
    """Initializers that are inputs too: a request may replace them."""
    write("offset",
          [helper.make_node("Mul", ["x", "factor"], ["scaled"]),
           helper.make_node("Add", ["scaled", "offset"], ["moved"]),
           helper.make_node("Add", ["moved", "extra"], ["y"])],
          [tensor("x", FLOAT, ["N", 4]), tensor("factor", FLOAT, ["F", 1]),
           tensor("offset", FLOAT, ["M", 4]), tensor("extra", FLOAT, ["E", 1])],
          [tensor("y", FLOAT, ["N", 4])],
          [constant("factor", [[2]], np.float32), constant("extra", [[0]], np.float32),
           constant("offset", [[10, 20, 30, 40]], np.float32)])
    write("defaults", [helper.make_node("Add", ["x", "x"], ["y"])],
          [tensor("x", INT64, [3])], [tensor("y", INT64, [3])],
          [constant("x", [1, 2, 3], np.int64)])


def no_batches():
    """An open dimension in front of every tensor, which is the batch of `reflected` alone."""
    write("turned", [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2])],
          [tensor("x", FLOAT, ["time", "N", 4])], [tensor("y", FLOAT, ["N", "time", 4])])
    write("centred", [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0]),
                      helper.make_node("Sub", ["x", "mean"], ["y"])],
          [tensor("x", FLOAT, ["N", 8])], [tensor("y", FLOAT, ["N", 8])])
    write("patches", [helper.make_node("Reshape", ["x", "shape"], ["y"])],
          [tensor("x", FLOAT, ["N", 30, 4])], [tensor("y", FLOAT, ["P", 4])],
          [constant("shape", [-1, 4], np.int64)])
    write("folds", [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
                    helper.make_node("Greater", ["most", "bound"], ["folded"]),
                    helper.make_node("Where", ["folded", "four", "eight"], ["shape"]),
                    helper.make_node("Reshape", ["x", "shape"], ["y"])],
          [tensor("x", FLOAT, ["N", 8])], [tensor("y", FLOAT, ["R", "C"])],
          [constant("bound", 1000, np.float32), constant("four", [-1, 4], np.int64),
           constant("eight", [-1, 8], np.int64)])
    write("reflected", [helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect")],
          [tensor("x", FLOAT, ["N", "S"])], [tensor("y", FLOAT, ["N", "R"])],
          [constant("pads", [0, 0, 0, 64], np.int64)])


def shapeless():
    """The checker wants a shape; exporters do not all write one, and ONNX Runtime needs none."""
    write("shapeless", [helper.make_node("Add", ["x", "x"], ["y"])],
          [tensor("x", FLOAT, None)], [tensor("y", FLOAT, None)], checked=False)


def assumptions():
    x, y = tensor("x", FLOAT, ["N", 8]), tensor("y", FLOAT, ["N", 8])
    write("alike", [helper.make_node("Add", ["x", "x"], ["y"])], [x], [y])
    write("fourth_before",
          [helper.make_node("Pad", ["x", "pads"], ["padded"]),
           helper.make_node("Shape", ["x"], ["shape"]),
           helper.make_node("Slice", ["shape", "zero", "one"], ["rows"]),
           helper.make_node("Slice", ["padded", "zero", "rows"], ["before"]),
           helper.make_node("Sub", ["x", "before"], ["y"])], [x], [y],
          [constant("pads", [4, 0, 0, 0], np.int64), constant("zero", [0], np.int64),
           constant("one", [1], np.int64)])
    write("takes_77", [helper.make_node("MatMul", ["x", "ones"], ["y"])],
          [tensor("x", FLOAT, ["N", "S"])], [tensor("y", FLOAT, ["N", 1])],
          [constant("ones", np.ones((77, 1)), np.float32)])
    # The shape depends on values, so that nobody knows better than what is declared.
    write("rank", [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
                   helper.make_node("Greater", ["most", "bound"], ["flat"]),
                   helper.make_node("Where", ["flat", "four", "two"], ["shape"]),
                   helper.make_node("Reshape", ["x", "shape"], ["y"])],
          [tensor("x", FLOAT, ["N", 4])], [tensor("y", FLOAT, [])],
          [constant("bound", 1e9, np.float32), constant("four", [-1, 4, 1], np.int64),
           constant("two", [-1, 2, 2], np.int64)])


def beside(name, count, offset=0):
    """Numbers that weights.bin holds."""
    named = helper.make_tensor(name, FLOAT, [count], bytes(4 * count), raw=True)
    named.ClearField("raw_data")
    named.data_location = TensorProto.EXTERNAL
    named.external_data.add(key="location", value="weights.bin")
    if offset > 0:
        named.external_data.add(key="offset", value=str(offset))
        named.external_data.add(key="length", value=str(4 * count))
    return named


def weights():
    (HERE / "weights.bin").write_bytes(np.array([1, 2, 3, 4], np.float32).tobytes())
    x, y = tensor("x", FLOAT, ["N", 4]), tensor("y", FLOAT, ["N", 4])
    write("weights", [helper.make_node("Add", ["x", "beside"], ["y"])], [x], [y],
          [beside("beside", 4)])
    adds = helper.make_graph([helper.make_node("Add", ["x", "w"], ["a"])], "adds", [],
                             [tensor("a", FLOAT, None)], [beside("w", 4)])
    keeps = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "keeps", [],
                              [tensor("b", FLOAT, None)])
    write("inner",
          [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
           helper.make_node("Greater", ["most", "low"], ["yes"]),
           helper.make_node("If", ["yes"], ["sum"], then_branch=adds, else_branch=keeps),
           helper.make_node("Constant", [], ["two"], value=beside("two", 2, offset=8)),
           helper.make_node("Concat", ["two", "two"], ["four"], axis=0),
           helper.make_node("Add", ["sum", "four"], ["y"])],
          [x], [y], [constant("low", -1e30, np.float32)])


def main():
    write("passed_on", [helper.make_node("Add", ["x", "x"], ["y"])],
          [tensor("x", FLOAT, ["N", 2]), tensor("id", INT64, ["N"])],
          [tensor("x", FLOAT, ["N", 2]), tensor("id", INT64, ["N"]), tensor("y", FLOAT, ["N", 2])])
    defaults()
    no_batches()
    assumptions()
    weights()
    shapeless()
    divisions()
    write("strings", [helper.make_node("Identity", ["text"], ["same"])],
          [tensor("text", STRING, ["N", 2])], [tensor("same", STRING, ["N", 2])])
    write("pair",
          [helper.make_node("Add", ["a", "b"], ["sum"]),
           helper.make_node("ReduceSum", ["sum", "axes"], ["rows"], keepdims=0)],
          [tensor("a", FLOAT, ["N", "H", "W"]), tensor("b", FLOAT, ["N", "H", "W"])],
          [tensor("sum", FLOAT, ["N", "H", "W"]), tensor("rows", FLOAT, ["N", "W"])],
          [constant("axes", [1], np.int64)])
    write("single", [helper.make_node("Add", ["x", "x"], ["y"])],
          [tensor("x", INT64, [3])], [tensor("y", INT64, [3])])
    write("scalar",
          [helper.make_node("Add", ["x", "x"], ["y"]),
           helper.make_node("Identity", ["word"], ["same"])],
          [tensor("x", FLOAT, []), tensor("word", STRING, [])],
          [tensor("y", FLOAT, []), tensor("same", STRING, [])])
    vector()
    write("pick", [helper.make_node("Gather", ["table", "x"], ["y"], axis=0)],
          [tensor("x", INT64, ["N", 1])], [tensor("y", FLOAT, ["N", 1])],
          [constant("table", [10, 20, 30, 40], np.float32)])
    long()
    steps()


if __name__ == "__main__":
    main()
