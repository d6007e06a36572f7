"""Optional inputs: a request may leave out what the graph has a default for, an initializer that is
an input too (tests/data/make_graphs.py)."""

import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from serving import SOURCE, START_S, TACTUS, WAIT_S, Server, add_model
from site_processes import Site

DATA = SOURCE / "tests" / "data"
SLOW = 'parameters { key: "slo_ms" value: { string_value: "60000" } }\n'
# The graph offset: y = x * factor + offset + extra, where factor is 2, offset this and extra 0.
OFFSET = numpy.array([10, 20, 30, 40], "f4")


def tensor(name, size, more=""):
    return f'input {{ name: "{name}" data_type: TYPE_FP32 dims: [ {size} ] {more} }}\n'


def offset_config(x="", factor="optional: true", offset="optional: true"):
    return ('platform: "onnxruntime_onnx"\nmax_batch_size: 8\n' + tensor("x", 4, x)
            + tensor("factor", 1, factor) + tensor("offset", 4, offset)
            + 'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n' + SLOW)


def add_graph(root, name, config, graph="offset"):
    add_model(root, name, config)
    shutil.copy(DATA / f"{graph}.onnx", root / name / "1" / "model.onnx")


def fill(root):
    """`offset` and an ensemble around it that passes on `factor` and leaves out `offset`."""
    add_graph(root, "offset", offset_config())
    maps = " ".join(f'input_map {{ key: "{name}" value: "{name}" }}' for name in ("x", "factor"))
    add_model(root, "around", 'platform: "ensemble"\nmax_batch_size: 8\n' + tensor("x", 4)
              + tensor("factor", 1) + 'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n'
              + f'ensemble_scheduling {{ step {{ model_name: "offset" {maps} '
              'output_map { key: "y" value: "y" } } }\n' + SLOW)


def clients(http, grpc=None):
    """Each protocol and form of tensors: module, client, what set_data_from_numpy is told more."""
    over_http = http_client.InferenceServerClient(http, concurrency=8, network_timeout=WAIT_S)
    yield http_client, over_http, {"binary_data": False}
    yield http_client, over_http, {"binary_data": True}
    if grpc:
        yield grpc_client, grpc_client.InferenceServerClient(grpc), {}


class OptionalTest(unittest.TestCase):
    def ask(self, form, model, rows, factor=None, offset=None, first=1):
        """Compares the answer of rows that begin with `first`."""
        client, connected, more = form
        given = {"x": numpy.arange(first, first + 4 * rows, dtype="f4").reshape(rows, 4)}
        if factor is not None:
            given["factor"] = numpy.full((rows, 1), factor, "f4")
        if offset is not None:
            given["offset"] = numpy.full((rows, 4), offset, "f4")
        tensors = []
        for name, values in given.items():
            tensors.append(client.InferInput(name, values.shape, "FP32"))
            tensors[-1].set_data_from_numpy(values, **more)
        answer = connected.infer(model, tensors)
        numpy.testing.assert_array_equal(
            answer.as_numpy("y"),
            given["x"] * (2 if factor is None else factor) + (OFFSET if offset is None else offset))

    def ask_all(self, forms):
        for form in forms:
            for rows in (1, 3, 8):
                for factor in (None, 5):
                    for offset in (None, 7):
                        self.ask(form, "offset", rows, factor, offset)

    def refused(self, form, model, names, text):
        client, connected, more = form
        tensors = [client.InferInput(name, [1, size], "FP32") for name, size in names]
        for each in tensors:
            each.set_data_from_numpy(numpy.zeros(each.shape(), "f4"), **more)
        with self.assertRaises(InferenceServerException) as error:
            connected.infer(model, tensors)
        self.assertIn(text, str(error.exception))

    def test_what_a_request_leaves_out_is_the_graphs_default(self):
        for arguments in ((), ("--isolate",)):
            with contextlib.closing(Server(*arguments, fill=fill)) as server:
                forms = list(clients(server.http, server.grpc))
                self.ask_all(forms)
                for form in forms:
                    self.ask(form, "around", 3, factor=5)
                    self.refused(form, "offset", [("factor", 1)],
                                 "expected number of inputs between 1 and 3 but got 1 inputs for "
                                 "model 'offset'. Got input(s) ['factor'], but missing required "
                                 "input(s) ['x']. Please provide all required input(s).")
                    self.refused(form, "around", [("x", 4)], "missing required input(s) ['factor']")
                    self.refused(form, "offset", [("x", 4), ("extra", 1)],
                                 "unexpected inference input 'extra'")
                config = json.loads(server.get("/v2/models/offset/config"))
                self.assertEqual([(each["name"], each["optional"]) for each in config["input"]],
                                 [("x", False), ("factor", True), ("offset", True)])
                over_grpc = forms[2][1].get_model_config("offset").config
                self.assertEqual([each.optional for each in over_grpc.input], [False, True, True])

    def test_calls_with_it_and_without_it_that_come_together_are_all_right(self):
        with contextlib.closing(Server("--lanes", "1", fill=fill)) as server:
            def ask(i):
                # A client of its own: those of HTTP do not leave their thread.
                form = list(clients(server.http, server.grpc))[i % 3]
                for k in range(i, i + 10):
                    self.ask(form, "offset", 1 + k % 2, k if k % 4 < 2 else None,
                             k if k % 5 < 3 else None, k)
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                for done in pool.map(ask, range(12)):
                    self.assertIsNone(done)

    def test_a_site_passes_on_what_is_left_out(self):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tactus-test-"))
            fill(pathlib.Path(folder))
            shutil.rmtree(pathlib.Path(folder) / "around")
            site = Site(schedulers=1, workers=1, models=pathlib.Path(folder))
            stack.callback(site.close)
            site.leader()
            self.ask_all(clients(site.http, f"127.0.0.1:{site.front_end.ports['grpc']}"))


class LoadTest(unittest.TestCase):
    def test_an_input_without_a_default_cannot_be_optional(self):
        with contextlib.closing(Server("--model-control-mode", "explicit", fill=fill)) as server:
            for _, connected, _ in list(clients(server.http, server.grpc))[1:]:
                path = server.repository / "offset" / "config.pbtxt"
                for config, told in (
                        (offset_config(x="optional: true", factor=""),
                         r"offset/1/model\.onnx: input 'x' is optional in config\.pbtxt, but the "
                         r"graph has no default for it; remove `optional: true` there"),
                        (offset_config(x="optional: true"),
                         r"config\.pbtxt:3:\d+: input: optional: "
                         r"all inputs are, and with max_batch_size above 0 one must say")):
                    path.write_text(config)
                    with self.assertRaisesRegex(InferenceServerException, told):
                        connected.load_model("offset")

    def test_without_a_configuration_a_default_is_no_input(self):
        def bare(root):
            (root / "offset" / "1").mkdir(parents=True)
            shutil.copy(DATA / "offset.onnx", root / "offset" / "1" / "model.onnx")
        with contextlib.closing(Server(fill=bare)) as server:
            metadata = json.loads(server.get("/v2/models/offset"))
            self.assertEqual([each["name"] for each in metadata["inputs"]], ["x"])

    def test_init_names_the_defaults(self):
        done = subprocess.run([TACTUS, "init", DATA / "offset.onnx", "--out", "-"],
                              capture_output=True, text=True, timeout=START_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# The graph has defaults for: ", done.stdout)
        self.assertIn("offset", done.stdout.split("defaults for: ")[1].splitlines()[0])
        self.assertNotIn('name: "factor"', done.stdout)

    def test_without_a_configuration_a_model_may_have_no_inputs(self):
        def bare(root):
            (root / "defaults" / "1").mkdir(parents=True)
            shutil.copy(DATA / "defaults.onnx", root / "defaults" / "1" / "model.onnx")
        for options in ([], ["--isolate"]):
            with contextlib.closing(Server(*options, fill=bare)) as server:
                for _, connected, _ in clients(server.http, server.grpc):
                    answer = connected.infer("defaults", [])
                    self.assertEqual(answer.as_numpy("y").tolist(), [2, 4, 6])

    def test_a_model_may_need_no_input_and_be_measured_without(self):
        def nothing(root):
            add_graph(root, "input_optional", offset_config("", "", "")
                      + tensor("extra", 1, "optional: true"))
            add_graph(root, "defaults", 'platform: "onnxruntime_onnx"\nmax_batch_size: 0\n'
                      'input { name: "x" data_type: TYPE_INT64 dims: [ 3 ] optional: true }\n'
                      'output { name: "y" data_type: TYPE_INT64 dims: [ 3 ] }\n' + SLOW, "defaults")
        with contextlib.closing(Server("--strict-triton", fill=nothing)) as server:
            self.assertIn("model 'defaults' has no profile: measured quickly", server.errors())
            for _, connected, _ in clients(server.http, server.grpc):
                answer = connected.infer("defaults", [])
                self.assertEqual(answer.as_numpy("y").tolist(), [2, 4, 6])
                with self.assertRaises(InferenceServerException) as error:
                    connected.infer("input_optional", [])
                self.assertIn("expected number of inputs between 3 and 4 but got 0 inputs for "
                              "model 'input_optional'. Got input(s) [], but missing required "
                              "input(s) ['x','factor','offset']. Please", str(error.exception))


if __name__ == "__main__":
    unittest.main()
