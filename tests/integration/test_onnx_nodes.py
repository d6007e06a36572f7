#!/usr/bin/env python3
"""Small graphs of every operator, without a config.pbtxt: what ONNX Runtime runs is served, with
the same answers. The graphs are the node tests of the onnx package (export_onnx_nodes.py).

Every eighth of them; all with ONNX_NODES=all, and then a line for each that is not served."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnxruntime
import tritonclient.http
from tritonclient.utils import np_to_triton_dtype

import serving

EACH = 120  # models in one server
# Every answer of theirs is another.
RANDOM = ("bernoulli", "dropout", "random", "multinomial")


def export(folder):
    script = pathlib.Path(__file__).with_name("export_onnx_nodes.py")
    done = subprocess.run(["/usr/bin/python3", script, folder], capture_output=True, text=True)
    if done.returncode == 77:
        print("SKIPPED, NOTHING WAS TESTED: no onnx package for /usr/bin/python3; remedy: install "
              "Debian's python3-onnx", file=sys.stderr)
        sys.exit(77)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def reference(graph, inputs):
    """Inputs by name and outputs by name, as ONNX Runtime has them; None where it does not run the
    graph, or where values are no tensors of a type that KServe knows."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        places = [*session.get_inputs(), *session.get_outputs()]
        if not all(each.type.startswith("tensor(") for each in places):
            return None  # optional values and sequences
        with numpy.load(inputs, allow_pickle=True) as values:
            given = [values[str(i)] for i in range(len(values.files))]
        feeds = dict(zip([each.name for each in session.get_inputs()], given))
        outputs = session.run(None, feeds)
    except Exception:  # of its own kinds, and many
        return None
    named = dict(zip([each.name for each in session.get_outputs()], outputs))
    for value in [*feeds.values(), *named.values()]:
        if not isinstance(value, numpy.ndarray) or np_to_triton_dtype(value.dtype) is None:
            return None
    return (feeds, named) if feeds and named else None


def same(one, other):
    if one.dtype.kind in "OSU":
        texts = [[t if isinstance(t, bytes) else str(t).encode() for t in a.flatten()]
                 for a in (one, other)]
        return texts[0] == texts[1]
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return numpy.array_equal(one, other)
    # Sums of many are taken in another order where memory begins elsewhere: some last bits.
    return numpy.allclose(one, other, rtol=8 * numpy.finfo(one.dtype).eps,
                          atol=8 * numpy.finfo(one.dtype).eps, equal_nan=True)


class OnnxNodesTest(unittest.TestCase):
    def fill(self, names):
        def copy(root):
            for name in names:
                shutil.copytree(self.folder / name, root / name)
        return copy

    def answers(self, server, client, name, feeds, outputs):
        """Why the server's answers are not those of ONNX Runtime; None where they are."""
        metadata = json.loads(server.get(f"/v2/models/{name}"))
        shapes = {each["name"]: each["shape"] for each in metadata["inputs"]}
        inputs = []
        for key, value in feeds.items():
            if value.shape == () and shapes[key] == [1]:
                value = value.reshape([1])  # a scalar has dims [1], as Triton's configurations do
            if value.dtype.kind in "OSU":
                value = value.astype(object)
            tensor = tritonclient.http.InferInput(key, value.shape, np_to_triton_dtype(value.dtype))
            tensor.set_data_from_numpy(value)
            inputs.append(tensor)
        answer = client.infer(name, inputs)
        for key, value in outputs.items():
            got = answer.as_numpy(key)
            if got is None or not same(got.reshape(value.shape) if got.size == value.size else got,
                                       value):
                return f"output {key} is {got}, not {value}"
        return None

    def serve(self, names, cases):
        failures = {}
        with contextlib.closing(serving.Server(fill=self.fill(names))) as server:
            client = tritonclient.http.InferenceServerClient(server.http)
            for name in names:
                try:
                    wrong = self.answers(server, client, name, *cases[name])
                except Exception as error:  # an error of the client's or of urllib
                    states = [each for each in
                              json.loads(server.post("/v2/repository/index", b"{}")[2])
                              if each["name"] == name]
                    wrong = f"{error}; {states}"
                if wrong:
                    failures[name] = wrong
            client.close()
        return failures

    def test_what_onnx_runtime_runs_is_served_with_the_same_answers(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            self.folder = pathlib.Path(folder) / "nodes"
            exported = export(str(self.folder))
            names = sorted(each.name for each in self.folder.iterdir()
                           if not any(word in each.name for word in RANDOM))
            whole = os.environ.get("ONNX_NODES") == "all"
            names = names if whole else names[::8]
            cases = {name: reference(self.folder / name / "1/model.onnx",
                                     self.folder.with_name("nodes.inputs") / f"{name}.npz")
                     for name in names}
            run = [name for name in names if cases[name]]
            failures = {}
            for at in range(0, len(run), EACH):
                failures |= self.serve(run[at:at + EACH], cases)
        print(f"{exported}; of {len(names)} ONNX Runtime {onnxruntime.__version__} runs "
              f"{len(run)}, served with the same answers: {len(run) - len(failures)}")
        for name, wrong in failures.items():
            print(f"  {name}: {wrong[:300]}")
        self.assertGreater(len(run), 50)
        self.assertEqual(sorted(failures), [])


if __name__ == "__main__":
    unittest.main()
