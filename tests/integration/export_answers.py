#!/usr/bin/env python3
"""export_answers.py FOLDER: writes small graphs on which servers go wrong, for the matrix of
answers.py: FOLDER/NAME/1/model.onnx; beside it, in FOLDER.inputs, NAME.npz with the inputs of some
calls ("CALL/INPUT"), NAME.pbtxt, a true configuration by hand, NAME.false.pbtxt, which
declares a batch where there is none, and calls.json, which names the calls that a server may
refuse, and how far answers may lie apart by chance. Exit 77 where there is no onnx package."""

import json
import pathlib
import sys
import zlib

try:
    import numpy
    import onnx
    from onnx import TensorProto as T
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"{missing}: Debian's python3-onnx has it", file=sys.stderr)
    sys.exit(77)

ROWS = (1, 2, 3, 4, 2, 1)  # of the calls; none above 4, the batch that is assumed at most
CONFIG_TYPES = {T.FLOAT: "FP32", T.DOUBLE: "FP64", T.FLOAT16: "FP16", T.INT8: "INT8",
                T.UINT8: "UINT8", T.INT32: "INT32", T.INT64: "INT64", T.BOOL: "BOOL",
                T.STRING: "STRING"}
NUMPY_TYPES = {T.FLOAT: "f4", T.DOUBLE: "f8", T.FLOAT16: "f2", T.INT8: "i1", T.UINT8: "u1",
               T.INT32: "i4", T.INT64: "i8", T.BOOL: "?"}
# Open dimensions that are no rows have one of these sizes, by the number of the call.
SIZES = {"time": (5, 2, 3, 2, 2, 7), "length": (3, 7, 3, 5, 1, 4), "k": (3, 3, 5, 2, 3, 3),
         "height": (32, 16, 32, 16, 32, 64), "width": (16, 16, 32, 64, 16, 32),
         "samples": (64, 48, 64, 100, 48, 64), "edges": (5, 2, 3, 1, 4, 4),
         "table": (3, 2, 3, 5, 2, 4), "seventy_seven": (77, 77, 77, 77, 77, 77)}


class Exporter:
    def __init__(self, folder):
        self.repository, self.inputs = pathlib.Path(folder), pathlib.Path(folder + ".inputs")
        self.inputs.mkdir(parents=True)
        self.calls = {}

    def add(self, name, nodes, inputs, outputs, constants=None, batch=True, limit=None, calls=None,
            refused=(), optional=None, external=False, truth=None, false_batch=4, noise=0):
        """One graph. `inputs` and `outputs`: name to (type, shape), or None for a shape that is not
        stated; `batch`: the first dimension is one; `limit`: what integers are below; `calls`: the
        inputs, in place of made-up ones;
        `refused`: calls that may be refused, or True for all; `optional`: name to default;
        `truth`: shapes of outputs that differ from what the graph states; `false_batch`: how many
        rows the false configuration declares; `noise`: how far answers may be off by chance."""
        values = [helper.make_tensor_value_info(key, kind, shape)
                  for key, (kind, shape) in [*inputs.items(), *outputs.items()]]
        weights = [numpy_helper.from_array(numpy.asarray(value), key)
                   for key, value in {**(constants or {}), **(optional or {})}.items()]
        graph = helper.make_graph(nodes, name, values[:len(inputs)], values[len(inputs):], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        version = self.repository / name / "1"
        version.mkdir(parents=True)
        if external:
            onnx.save_model(model, str(version / "model.onnx"), save_as_external_data=True,
                            location="weights.bin", size_threshold=0)
        else:
            (version / "model.onnx").write_bytes(model.SerializeToString())
        random = numpy.random.default_rng(zlib.crc32(name.encode()))
        calls = calls or [made_up(random, inputs, at, limit) for at in range(len(ROWS))]
        numpy.savez(self.inputs / name, **{f"{at}/{key}": value for at, call in enumerate(calls)
                                           for key, value in call.items()})
        places = [("input", inputs), ("output", {**outputs, **(truth or {})})]
        (self.inputs / f"{name}.pbtxt").write_text(
            config(name, places, 4 if batch else 0, optional or {}))
        ranks = [len(shape or []) for _, tensors in places for _, shape in tensors.values()]
        if not batch and min(ranks) > 1:
            (self.inputs / f"{name}.false.pbtxt").write_text(
                config(name, places, false_batch, {}))
        refused = list(range(len(calls)) if refused is True else refused)
        self.calls[name] = {"refused": refused, "noise": noise}

    def close(self):
        (self.inputs / "calls.json").write_text(json.dumps(self.calls))
        print(f"{len(self.calls)} graphs written; onnx {onnx.__version__}")


def config(name, places, batch, optional):
    """A config.pbtxt; `places`: tensors by "input" and "output"."""
    lines = [f'name: "{name}"', 'platform: "onnxruntime_onnx"',
             f"max_batch_size: {batch}"]
    for what, tensors in places:
        for key, (kind, shape) in tensors.items():
            if shape is None:
                shape = ("any",)
                lines.append(f'parameters {{ key: "any_shape.{key}" value {{ string_value: "true" '
                             '} }')
            dims = [d if isinstance(d, int) else -1 for d in shape[1 if batch else 0:]]
            more = " optional: true" if key in optional else ""
            lines.append(f'{what} {{ name: "{key}" data_type: TYPE_{CONFIG_TYPES[kind]} '
                         f'dims: [ {", ".join(map(str, dims or [1]))} ]{more} }}')
    return "\n".join(lines) + "\n"


def made_up(random, inputs, at, limit):
    """The inputs of the call number `at`; each has numbers of another size than the last."""
    call = {}
    for key, (kind, shape) in inputs.items():
        sizes = [d if isinstance(d, int) else SIZES[d][at] if d in SIZES else ROWS[at]
                 for d in shape]
        if kind == T.STRING:
            count = int(numpy.prod(sizes))
            call[key] = numpy.array([f"word {at} {i} \u00e9" for i in range(count)]).reshape(sizes)
        elif kind in (T.FLOAT, T.DOUBLE, T.FLOAT16):
            call[key] = numpy.asarray(random.normal(size=sizes) * (1 + 2 * at),
                                      NUMPY_TYPES[kind]).reshape(sizes)
        else:
            call[key] = random.integers(0, limit or 2, size=sizes).astype(NUMPY_TYPES[kind])
    return call


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(" "), outputs.split(" "), **attributes)


def floats(*shape):
    return (T.FLOAT, list(shape))


def weights(*shape, seed=3):
    return numpy.random.default_rng(seed).normal(size=shape).astype(numpy.float32)


def ints(*values):
    return numpy.array(values, numpy.int64)


def add_usual(out):
    """Rows are independent, and the first dimension is the batch."""
    x, y = {"x": floats("batch", 8)}, {"y": floats("batch", 3)}
    dense = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    out.add("dense", dense, x, y, {"w": weights(8, 3)})
    out.add("external_data", dense, x, y, {"w": weights(8, 3, seed=4)}, external=True)
    out.add("wide", [node("Add", "x w", "y")], {"x": floats("batch", 20000)},
            {"y": floats("batch", 20000)}, {"w": weights(20000)})
    out.add("image", [node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
                      node("GlobalAveragePool", "c", "p"), node("Flatten", "p", "y")],
            {"x": floats("batch", 3, 16, 16)}, {"y": floats("batch", 4)},
            {"w": weights(4, 3, 3, 3)})
    picture = floats("batch", 3, "height", "width")
    out.add("open_image", [node("Conv", "x w", "y", pads=[1, 1, 1, 1])], {"x": picture},
            {"y": floats("batch", 2, "height", "width")}, {"w": weights(2, 3, 3, 3)})
    out.add("resize", [node("Resize", "x  scales", "y", mode="linear")], {"x": picture},
            {"y": floats("batch", 3, "rows", "columns")},
            {"scales": numpy.array([1, 1, 0.5, 0.5], numpy.float32)})
    ids = {"ids": (T.INT64, ["batch", "length"])}
    out.add("embedding", [node("Gather", "table ids", "y")], ids,
            {"y": floats("batch", "length", 4)}, {"table": weights(10, 4)}, limit=10)
    out.add("masked_mean", [node("Gather", "table ids", "e"), node("Cast", "mask", "m", to=T.FLOAT),
                            node("Unsqueeze", "m two", "u"), node("Mul", "e u", "p"),
                            node("ReduceMean", "p", "y", axes=[1], keepdims=0)],
            {**ids, "mask": (T.INT64, ["batch", "length"])}, {"y": floats("batch", 4)},
            {"table": weights(10, 4), "two": ints(2)}, limit=10)
    sequence = {"x": floats("batch", "length", 4)}
    out.add("attention", [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "x t", "s"),
                          node("Softmax", "s", "p", axis=2), node("MatMul", "p x", "y")],
            sequence, {"y": floats("batch", "length", 4)})
    out.add("mean_of_open", [node("ReduceMean", "x", "y", axes=[1], keepdims=0)], sequence,
            {"y": floats("batch", 4)})
    out.add("rnn_last", [node("Transpose", "x", "t", perm=[1, 0, 2]),
                         node("RNN", "t w r", " h", hidden_size=3), node("Squeeze", "h zero", "y")],
            sequence, {"y": floats("batch", 3)},
            {"w": weights(1, 3, 4), "r": weights(1, 3, 3), "zero": ints(0)})
    out.add("top_k", [node("TopK", "x k", "y i", axis=1)], x,
            {"y": floats("batch", 2), "i": (T.INT64, ["batch", 2])}, {"k": ints(2)})
    number = {"id": (T.INT64, ["batch", 1])}
    out.add("handed_through", [node("Relu", "x", "y")], x | number,
            x | number | {"y": floats("batch", 8)})
    out.add("two_matrices", [node("MatMul", "a b", "y")],
            {"a": floats("batch", 2, "k"), "b": floats("batch", "k", 3)},
            {"y": floats("batch", 2, 3)})
    out.add("norm_inference", [node("BatchNormalization", "x s b m v", "y")], x,
            {"y": floats("batch", 8)}, {"s": weights(8), "b": weights(8), "m": weights(8),
                                        "v": abs(weights(8)) + 1})
    for kind in (T.INT8, T.UINT8, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.STRING):
        name = CONFIG_TYPES[kind].lower()
        tensor = (kind, ["batch", 4])
        out.add(f"type_{name}", [node("Identity", "x", "m"), node("Concat", "m x", "y", axis=1)],
                {"x": tensor}, {"y": (kind, ["batch", 8])}, limit=2 if kind == T.BOOL else 100)


def add_sizes(out):
    """Batches of independent rows, which not every size of the open dimensions suits."""
    sound = {"x": floats("batch", 1, "samples")}
    out.add("reflect_padding", [node("Pad", "x p", "y", mode="reflect")], sound,
            {"y": floats("batch", 1, "padded")}, {"p": ints(0, 0, 8, 0, 0, 8)})
    out.add("strides", [node("Conv", "x w", "y", strides=[4])], sound,
            {"y": floats("batch", 2, "frames")}, {"w": weights(2, 1, 16)})
    out.add("stft", [node("Pad", "x p", "q", mode="reflect"),
                     node("Conv", "q w", "c", strides=[4]), node("Mul", "c c", "y")], sound,
            {"y": floats("batch", 5, "frames")},
            {"p": ints(0, 0, 16, 0, 0, 16), "w": weights(5, 1, 32)})
    out.add("unet", [node("MaxPool", "x", "d", kernel_shape=[2, 2], strides=[2, 2]),
                     node("Resize", "d  s", "u"), node("Concat", "x u", "y", axis=1)],
            {"x": floats("batch", 3, "height", "width")},
            {"y": floats("batch", 6, "height", "width")},
            {"s": numpy.array([1, 1, 2, 2], numpy.float32)})


def add_untried(out):
    """A batch of independent rows, of which no row runs that anybody makes up."""
    out.add("takes_77", [node("MatMul", "x w", "y")], {"x": floats("batch", "seventy_seven")},
            {"y": floats("batch", 3)}, {"w": weights(77, 3)})


def add_chance(out):
    """Answers are another each time."""
    x, y = {"x": floats("batch", 8)}, {"y": floats("batch", 8)}
    noise = node("RandomNormalLike", "x", "n", scale=0.05)
    ten = {"ten": numpy.float32(10)}
    out.add("noise", [noise, node("Mul", "x ten", "t"), node("Add", "t n", "y")], x, y, ten,
            noise=0.5)
    out.add("mean_behind_noise", [noise, node("ReduceMean", "x", "m", axes=[0]),
                                  node("Sub", "x m", "d"), node("Mul", "d ten", "t"),
                                  node("Add", "t n", "y")], x, y, ten, batch=False, noise=0.5)


def add_mixing(out):
    """The first dimension is open, and rows depend on each other or on where they stand."""
    def rows(name, nodes, constants=None, to=8, **more):
        out.add(name, nodes, {"x": floats("batch", 8)}, {"y": floats("batch", to)}, constants,
                batch=False, **more)

    rows("listwise_softmax", [node("MatMul", "x w", "l"), node("Softmax", "l", "y", axis=0)],
         {"w": weights(8, 1)}, to=1)
    rows("batch_statistics", [node("ReduceMean", "x", "m", axes=[0]), node("Sub", "x m", "d"),
                              node("Mul", "d d", "s"), node("ReduceMean", "s", "v", axes=[0]),
                              node("Add", "v e", "w"), node("Sqrt", "w", "r"),
                              node("Div", "d r", "y")], {"e": numpy.float32(1e-3)})
    rows("running_sums", [node("CumSum", "x zero", "y")], {"zero": numpy.int64(0)})
    rows("reversed", [node("Slice", "x a b axes steps", "y")],
         {"a": ints(-1), "b": ints(-100), "axes": ints(0), "steps": ints(-1)})
    rows("less_the_first", [node("Slice", "x a b", "f"), node("Sub", "x f", "y")],
         {"a": ints(0), "b": ints(1)})
    rows("largest_of_all", [node("ReduceMax", "x", "m", keepdims=0), node("Div", "x m", "y")])
    rows("sorted_rows", [node("Shape", "x", "n"), node("Slice", "n a b", "k"),
                         node("TopK", "x k", "y i", axis=0)], {"a": ints(0), "b": ints(1)})
    rows("quantized", [node("DynamicQuantizeLinear", "x", "q s z"),
                       node("MatMulInteger", "q w z", "i"), node("Cast", "i", "f", to=T.FLOAT),
                       node("Mul", "f s", "y")],
         {"w": (weights(8, 3) * 30).astype(numpy.int8)}, to=3)
    # Little of what the others are is much beside rows of larger numbers.
    unlike = numpy.random.default_rng(7)
    rows("a_little_of_the_mean", [node("ReduceMean", "x", "m", axes=[0]), node("Mul", "m c", "l"),
                                  node("Add", "x l", "y")], {"c": numpy.float32(2e-5)},
         calls=[{"x": (unlike.normal(size=(count, 8)) * 10 ** (at % 3 * 2)).astype("f4")}
                for at, count in enumerate(ROWS)])
    state = [helper.make_tensor_value_info(name, T.FLOAT, [8]) for name in ("s", "r", "t", "z")]
    step = helper.make_graph([node("Add", "s r", "t"), node("Tanh", "t", "z")], "step", state[:2],
                             state[2:])
    rows("scan_over_rows", [node("Scan", "start x", "end y", body=step, num_scan_inputs=1)],
         {"start": numpy.zeros(8, "f4")})
    rows("numbered", [node("Shape", "x", "n"), node("Gather", "n zero", "k"),
                      node("Range", "zero k one", "r"), node("Cast", "r", "f", to=T.FLOAT),
                      node("Unsqueeze", "f axis", "u"), node("Add", "x u", "y")],
         {"zero": numpy.int64(0), "one": numpy.int64(1), "axis": ints(1)})
    rows("rank_of_unique", [node("ReduceMax", "x", "m", axes=[1], keepdims=0),
                            node("Unique", "m", "unique first inverse", sorted=1),
                            node("Unsqueeze", "inverse axis", "u"),
                            node("Cast", "u", "f", to=T.FLOAT), node("Add", "x f", "y")],
         {"axis": ints(1)})
    rows("less_the_fourth_before",
         [node("Pad", "x pads", "p"), node("Shape", "x", "n"), node("Slice", "n zero one", "k"),
          node("Slice", "p zero k", "b"), node("Sub", "x b", "y")],
         {"pads": ints(4, 0, 0, 0), "zero": ints(0), "one": ints(1)}, false_batch=16)
    few = unlike.normal(size=(2, 8)).astype("f4")
    rows("unique_rows", [node("Unique", "x", "y", axis=0, sorted=0)],
         calls=[{"x": few[[(at + i) % 2 for i in range(count)]]} for at, count in enumerate(ROWS)])
    grouped = unlike.normal(size=(64, 8)).astype("f4")
    grouped[:, 0] = numpy.arange(64) % 3  # whose rows depend on each other
    rows("group_mean", [node("Slice", "x a b axes", "id"), node("Transpose", "id", "t"),
                        node("Equal", "id t", "e"), node("Cast", "e", "m", to=T.FLOAT),
                        node("ReduceSum", "m axes", "n"), node("MatMul", "m x", "s"),
                        node("Div", "s n", "y")], {"a": ints(0), "b": ints(1), "axes": ints(1)},
         calls=[{"x": unlike.permutation(grouped)[:count]} for count in ROWS])
    # Each row less the mean of those that are nearly the same.
    drawn = unlike.normal(size=(3, 3, 32, 32)).astype("f4")
    near = [node("Reshape", "x flat", "r"), node("Unsqueeze", "r one", "a"),
            node("Unsqueeze", "r zero", "b"), node("Sub", "a b", "d"), node("Abs", "d", "f"),
            node("ReduceMean", "f", "m", axes=[2], keepdims=0), node("Less", "m limit", "c"),
            node("Cast", "c", "k", to=T.FLOAT), node("ReduceSum", "k one", "n"),
            node("MatMul", "k r", "s"), node("Div", "s n", "y")]
    out.add("near_pictures", near, {"x": floats("batch", 3, 32, 32)}, {"y": floats("batch", 3072)},
            {"flat": ints(0, -1), "zero": ints(0), "one": ints(1), "limit": numpy.float32(0.02)},
            batch=False,
            calls=[{"x": (drawn[unlike.integers(0, 3, count)]
                          + unlike.normal(size=(count, 3, 32, 32)) * 0.003).astype("f4")}
                   for count in ROWS])
    # All are of 16 bits if one is.
    rows("pictures_of_16_bits", [node("ReduceMax", "x", "m", keepdims=0),
                                 node("Greater", "m limit", "c"), node("Where", "c deep flat", "k"),
                                 node("Div", "x k", "y")],
         {"limit": numpy.float32(10_000), "deep": numpy.float32(65_535),
          "flat": numpy.float32(255)},
         calls=[{"x": (unlike.random((count, 8)) * (65_535 if at % 2 else 255)).astype("f4")}
                for at, count in enumerate(ROWS)])
    # Older than the newest by a day, beside an answer of each row's own.
    out.add("stale", [node("ReduceMax", "t", "m", keepdims=0), node("Sub", "m t", "d"),
                      node("Greater", "d day", "stale"), node("Softmax", "x", "y", axis=1)],
            {"t": (T.INT64, ["batch", 1]), "x": floats("batch", 2)},
            {"stale": (T.BOOL, ["batch", 1]), "y": floats("batch", 2)},
            {"day": numpy.int64(86_400)}, batch=False,
            calls=[{"t": 1_700_000_000 + unlike.integers(0, 300_000, (count, 1)),
                    "x": unlike.normal(size=(count, 2)).astype("f4")} for count in ROWS])
    rows("similarity", [node("Transpose", "x", "t"), node("MatMul", "x t", "y")], to="others")
    out.add("time_in_front", [node("CumSum", "x zero", "y")], {"x": floats("time", "batch", 4)},
            {"y": floats("time", "batch", 4)}, {"zero": numpy.int64(0)}, batch=False)
    out.add("lstm", [node("LSTM", "x w r", "y h", hidden_size=3)],
            {"x": floats("time", "batch", 4)},
            {"y": floats("time", 1, "batch", 3), "h": floats(1, "batch", 3)},
            {"w": weights(1, 12, 4), "r": weights(1, 12, 3)}, batch=False)
    branches = [helper.make_graph([node(kind, "x", f"{kind}_y")], kind, [],
                                  [helper.make_tensor_value_info(f"{kind}_y", T.FLOAT, None)])
                for kind in ("Neg", "Exp")]
    rows("if_on_all", [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
                       node("If", "c", "y", then_branch=branches[0], else_branch=branches[1])],
         {"zero": numpy.float32(0)})


def add_shapes(out):
    """What an output's first dimension is differs from what an input's is, or is no batch."""
    x = {"x": floats("batch", 4)}
    out.add("time_in_front_of_the_answer", [node("Transpose", "x", "y", perm=[2, 0, 1])],
            {"x": floats("batch", 4, "time")}, {"y": floats("time", "batch", 4)}, batch=False)
    out.add("nonzero", [node("NonZero", "x", "y")], x, {"y": (T.INT64, [2, "count"])}, batch=False)
    out.add("nonzero_rows", [node("NonZero", "x", "n"), node("Transpose", "n", "y")], x,
            {"y": (T.INT64, ["count", 2])}, batch=False)
    out.add("rows_above_zero", [node("ReduceSum", "x axes", "r", keepdims=0),
                                node("Greater", "r zero", "c"),
                                node("Compress", "x c", "y", axis=0)], x, {"y": floats("kept", 4)},
            {"zero": numpy.float32(0), "axes": ints(1)}, batch=False)
    out.add("flat", [node("Reshape", "x all", "y")], x, {"y": floats("elements")},
            {"all": ints(-1)}, batch=False)
    out.add("twice_the_rows", [node("Concat", "x x", "y", axis=0)], x, {"y": floats("rows", 4)},
            batch=False)
    out.add("shape_of", [node("Shape", "x", "y")], x, {"y": (T.INT64, [2])}, batch=False)
    out.add("table_beside_rows", [node("Add", "x x", "y"), node("Neg", "w", "z")], x,
            {"y": floats("batch", 4), "z": floats(3, 5)}, {"w": weights(3, 5)}, batch=False)
    out.add("total_beside_rows", [node("Add", "x x", "y"), node("ReduceSum", "x", "t", keepdims=0)],
            x, {"y": floats("batch", 4), "t": floats()}, batch=False)
    out.add("states_wrong_columns", [node("MatMul", "x w", "y")], x, {"y": floats("batch", 5)},
            {"w": weights(4, 3)}, truth={"y": floats("batch", 3)})
    out.add("states_wrong_rows", [node("Reshape", "x s", "r"),
                                  node("ReduceMean", "r", "y", axes=[0])],
            x, {"y": floats("batch", 4)}, {"s": ints(-1, 4)}, batch=False)
    out.add("states_no_rank", [node("Add", "x x", "y")], x, {"y": floats()},
            truth={"y": floats("batch", 4)})
    # A shape that depends on values, so that nobody knows better than what is stated.
    out.add("states_wrong_rank",
            [node("ReduceMax", "x", "m", keepdims=0), node("Greater", "m huge", "g"),
             node("Where", "g one other", "s"), node("Reshape", "x s", "y")], x, {"y": floats()},
            {"huge": numpy.float32(1e9), "one": ints(-1, 4, 1), "other": ints(-1, 2, 2)},
            batch=False)
    out.add("graph_network", [node("Gather", "edges zero", "src", axis=1),
                              node("Gather", "nodes src", "m"), node("MatMul", "m w", "messages"),
                              node("MatMul", "nodes w", "states")],
            {"nodes": floats("batch", 4), "edges": (T.INT64, ["edges", 2])},
            {"messages": floats("edges", 3), "states": floats("batch", 3)},
            {"w": weights(4, 3), "zero": numpy.int64(0)}, limit=1, batch=False)
    out.add("table_and_rows", [node("Transpose", "table", "t"), node("MatMul", "x t", "y")],
            {**x, "table": floats("table", 4)}, {"y": floats("batch", "table")}, batch=False)
    out.add("matrices", [node("MatMul", "a b", "y")],
            {"a": floats("m", "k"), "b": floats("k", "n")}, {"y": floats("m", "n")}, batch=False)
    out.add("no_batch", [node("Softmax", "x", "y")], {"x": floats(4)}, {"y": floats(4)},
            batch=False)
    out.add("no_batch_open", [node("ReduceSum", "x", "y")], {"x": floats("length")},
            {"y": floats(1)}, batch=False)
    for size in (1, 4):
        out.add(f"batch_of_{size}", [node("MatMul", "x w", "y")], {"x": floats(size, 4)},
                {"y": floats(size, 3)}, {"w": weights(4, 3)}, batch=False)


def add_others(out):
    random = numpy.random.default_rng(5)
    out.add("scalars", [node("Mul", "x x", "y")], {"x": floats()}, {"y": floats()}, batch=False)
    out.add("scalar_beside_rows", [node("Mul", "x scale", "y")],
            {"x": floats("batch", 4), "scale": floats()}, {"y": floats("batch", 4)}, batch=False)
    shapes = ((), (1,), (3,), (2, 1, 3), (4, 4), (1, 1))
    any_shape = [{"x": numpy.asarray(random.normal(size=shape), "f4")} for shape in shapes]
    out.add("any_shape", [node("Add", "x x", "y")], {"x": (T.FLOAT, None)},
            {"y": (T.FLOAT, None)}, calls=any_shape, batch=False)
    calls = [{"x": random.normal(size=(rows, 4)).astype("f4")} for rows in ROWS]
    for at in (1, 3, 5):
        calls[at]["bias"] = random.normal(size=(len(calls[at]["x"]), 4)).astype("f4")
    # Without a configuration the default counts, and the input is unknown.
    out.add("optional", [node("Add", "x bias", "y")],
            {"x": floats("batch", 4), "bias": floats("batch", 4)}, {"y": floats("batch", 4)},
            optional={"bias": weights(1, 4)}, calls=calls, refused=[1, 3, 5])
    # Rows that leave it out do not depend on each other.
    out.add("optional_mean", [node("ReduceMean", "bias", "m", axes=[0]), node("Add", "x m", "y")],
            {"x": floats("batch", 4), "bias": floats("batch", 4)}, {"y": floats("batch", 4)},
            optional={"bias": weights(1, 4)}, calls=calls, refused=[1, 3, 5], batch=False)
    empty = [{"x": random.normal(size=(rows, 4)).astype("f4")} for rows in (0, 2, 0, 3)]
    out.add("no_rows", [node("Abs", "x", "y")], {"x": floats("batch", 4)},
            {"y": floats("batch", 4)}, calls=empty, refused=[0, 2])
    many = [{"x": random.normal(size=(rows, 4)).astype("f4")} for rows in (1, 6, 2, 9)]
    out.add("many_rows", [node("Exp", "x", "y")], {"x": floats("batch", 4)},
            {"y": floats("batch", 4)}, calls=many, refused=[1, 3])
    out.add("many_rows_mixed", [node("CumSum", "x zero", "y")], {"x": floats("batch", 4)},
            {"y": floats("batch", 4)}, {"zero": numpy.int64(0)}, calls=many, batch=False)
    out.add("bfloat16_inside", [node("Cast", "x", "b", to=T.BFLOAT16),
                                node("Cast", "b", "y", to=T.FLOAT)],
            {"x": floats("batch", 4)}, {"y": floats("batch", 4)})


def main(folder):
    out = Exporter(folder)
    for add in (add_usual, add_sizes, add_untried, add_chance, add_mixing, add_shapes, add_others):
        add(out)
    out.close()


main(sys.argv[1])
