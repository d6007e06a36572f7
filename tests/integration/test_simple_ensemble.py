"""What Triton's own test of ensembles (qa/L0_simple_ensemble) holds: sums and differences through
several steps and two versions of one model, one output alone, statistics by version; through
tritonclient's four clients, and perf_analyzer."""

import asyncio
import contextlib
import pathlib
import re
import sys
import unittest

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_async
import tritonclient.http as http_client
import tritonclient.http.aio as http_async
from tritonclient.utils import InferenceServerException

from serving import SOURCE, Server, ServedTest, add_model
from test_tools import analyze

sys.path.insert(0, str(SOURCE / "examples" / "ensembles"))
import make_models  # noqa: E402

INT32 = 6  # TensorProto.DataType
WIDTH = 16
INPUTS, OUTPUTS = ("INPUT0", "INPUT1"), ("OUTPUT0", "OUTPUT1")


def tensors(kind, names):
    return "\n".join(f'{kind} [ {{ name: "{name}" data_type: TYPE_INT32 dims: [ {WIDTH} ] }} ]'
                     for name in names)


def write_simple(root, policy="all {}"):
    """`simple`: OUTPUT0 the sum, OUTPUT1 the difference; versions 1 and 2 alike."""
    add_model(root, "simple", 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
              f'version_policy: {{ {policy} }}\n{tensors("input", INPUTS)}\n'
              f'{tensors("output", OUTPUTS)}\n')
    make_models.MODELS, make_models.FLOAT = root, INT32
    make_models.write("simple",
                      [make_models.node("Add", INPUTS, ["OUTPUT0"]),
                       make_models.node("Sub", INPUTS, ["OUTPUT1"])],
                      [make_models.value_info(name, ("N", WIDTH)) for name in INPUTS],
                      [make_models.value_info(name, ("N", WIDTH)) for name in OUTPUTS])
    second = root / "simple" / "2"
    second.mkdir()
    (second / "model.onnx").write_bytes((root / "simple" / "1" / "model.onnx").read_bytes())


def write_ensemble(root, name, inputs, steps):
    """steps: (version, inputs, outputs), each tensor as INPUT0=name."""
    def links(kind, pairs):
        return " ".join(f'{kind} {{ key: "{key}" value: "{value}" }}'
                        for key, value in (pair.split("=") for pair in pairs))
    step = ",\n".join(f'  {{ model_name: "simple" model_version: {version} '
                      f'{links("input_map", reads)} {links("output_map", makes)} }}'
                      for version, reads, makes in steps)
    add_model(root, name, f'platform: "ensemble"\nmax_batch_size: 8\n{tensors("input", inputs)}\n'
              f'{tensors("output", OUTPUTS)}\nensemble_scheduling {{ step [\n{step}\n] }}\n')


def write_add_sub(root):
    """As Triton's ensemble_add_sub: the latest version, 2, makes all of OUTPUT0 and version 1 all
    of OUTPUT1, each from what doubling an input and taking it off again leaves."""
    write_ensemble(root, "add_sub", INPUTS, [
        (-1, ("INPUT0=INPUT0", "INPUT1=INPUT0"), ("OUTPUT0=double_input0",)),
        (1, ("INPUT0=INPUT1", "INPUT1=INPUT1"), ("OUTPUT0=double_input1",)),
        (-1, ("INPUT0=double_input0", "INPUT1=INPUT0"), ("OUTPUT1=input0_val",)),
        (1, ("INPUT0=double_input1", "INPUT1=INPUT1"), ("OUTPUT1=input1_val",)),
        (-1, ("INPUT0=input0_val", "INPUT1=INPUT1"), ("OUTPUT0=OUTPUT0",)),
        (1, ("INPUT0=INPUT0", "INPUT1=input1_val"), ("OUTPUT1=OUTPUT1",))])


def fill(root):
    write_simple(root)
    write_add_sub(root)
    write_ensemble(root, "sub_addsub", ("INPUT0", "INPUT1", "INPUT2"), [
        (-1, ("INPUT0=INPUT0", "INPUT1=INPUT1"), ("OUTPUT1=subres_tensor",)),
        (-1, ("INPUT0=subres_tensor", "INPUT1=INPUT2"), ("OUTPUT0=OUTPUT0", "OUTPUT1=OUTPUT1"))])


def values(batch, count=2):
    """Other numbers in each tensor and row."""
    numbers = numpy.arange(count * batch * WIDTH, dtype=numpy.int32) * 7919 % 1009
    return list(numbers.reshape(count, batch, WIDTH))


def made(types, arrays):
    inputs = []
    for i, array in enumerate(arrays):
        inputs.append(types.InferInput(f"INPUT{i}", array.shape, "INT32"))
        inputs[-1].set_data_from_numpy(array)
    return inputs


class SimpleEnsembleTest(ServedTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(fill=fill)

    def infer_by_all(self, model, arrays, outputs=None):
        """Each client's answer, as arrays by name."""
        def asked(types):
            return [types.InferRequestedOutput(name) for name in outputs] if outputs else None

        async def by_asyncio(types, module, address):
            async with module.InferenceServerClient(address) as client:
                return await client.infer(model, made(types, arrays), outputs=asked(types))
        for types, asynchronous, address in ((http_client, http_async, self.server.http),
                                             (grpc_client, grpc_async, self.server.grpc)):
            with contextlib.closing(types.InferenceServerClient(address)) as client:
                yield client.infer(model, made(types, arrays), outputs=asked(types))
            yield asyncio.run(by_asyncio(types, asynchronous, address))

    def successes(self, model="simple"):
        """By version."""
        with contextlib.closing(http_client.InferenceServerClient(self.server.http)) as client:
            stats = client.get_inference_statistics(model)["model_stats"]
        for entry in stats:
            self.assertEqual(entry["name"], model)
        return {entry["version"]: entry["inference_stats"]["success"]["count"] for entry in stats}

    def grown(self, before, model="simple"):
        return {version: count - before[version]
                for version, count in self.successes(model).items()}

    def test_add_sub(self):
        steps, whole = self.successes(), self.successes("add_sub")
        calls = 0
        for batch in (1, 8):
            a, b = values(batch)
            for answer in self.infer_by_all("add_sub", (a, b)):
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), a + b)
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), a - b)
                calls += 1
        self.assertEqual(calls, 8)
        # Both versions of 'simple' have run as often: three steps of each call.
        self.assertEqual(self.grown(steps), {"1": 3 * calls, "2": 3 * calls})
        self.assertEqual(self.grown(whole, "add_sub"), {"1": calls})

    def test_add_sub_one_output(self):
        before = self.successes()
        calls = 0
        for batch in (1, 8):
            a, b = values(batch)
            for answer in self.infer_by_all("add_sub", (a, b), ("OUTPUT0",)):
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), a + b)
                self.assertIsNone(answer.as_numpy("OUTPUT1"))
                calls += 1
        # Version 1 makes nothing of OUTPUT0, so it has not run.
        self.assertEqual(self.grown(before), {"1": 0, "2": 3 * calls})

    def test_sub_addsub(self):
        for batch in (1, 8):
            a, b, c = values(batch, 3)
            for answer in self.infer_by_all("sub_addsub", (a, b, c)):
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), a - b + c)
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), a - b - c)

    def test_a_batch_that_is_too_large(self):
        for types, address in ((http_client, self.server.http), (grpc_client, self.server.grpc)):
            with contextlib.closing(types.InferenceServerClient(address)) as client, \
                    self.assertRaisesRegex(InferenceServerException, "must be <= 8"):
                client.infer("add_sub", made(types, values(9)))

    def test_perf_analyzer(self):
        for protocol, address in (("http", self.server.http), ("grpc", self.server.grpc)):
            before = self.successes("add_sub")
            printed = analyze(self, "add_sub", protocol, address)
            self.assertIn("infer/sec", printed)
            # It knows an ensemble by its configuration and tells of each step's model.
            self.assertRegex(printed, re.compile("composing models", re.IGNORECASE))
            self.assertGreaterEqual(self.grown(before, "add_sub")["1"], 100)


class VersionPolicyTest(unittest.TestCase):
    """The ensemble asks for version 1 and for the latest."""

    def state_with(self, policy):
        def fill_with(root: pathlib.Path):
            write_simple(root, policy)
            write_add_sub(root)
        with contextlib.closing(Server(fill=fill_with)) as server:
            with contextlib.closing(http_client.InferenceServerClient(server.http)) as client:
                index = {(entry["name"], entry.get("version")): entry
                         for entry in client.get_model_repository_index()}
                ready = client.is_model_ready("add_sub")
                answer = client.infer("add_sub", made(http_client, values(1))) if ready else None
            self.assertEqual(server.terminate(), 0)
        return index, answer

    def test_versions_that_serve(self):
        index, answer = self.state_with("specific { versions: [ 1, 2 ] }")
        self.assertEqual(index["simple", "2"]["state"], "READY")
        a, b = values(1)
        numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), a - b)

    def test_a_version_that_does_not_serve(self):
        index, answer = self.state_with("latest { num_versions: 1 }")
        self.assertIsNone(answer)
        self.assertNotIn(("simple", "1"), index)
        entry = index["add_sub", "1"]
        self.assertEqual(entry["state"], "UNAVAILABLE")
        self.assertRegex(entry["reason"], r"^\S+config.pbtxt:\d+:\d+: step '.*': model 'simple' "
                                          r"has no version 1 that serves")


if __name__ == "__main__":
    unittest.main(verbosity=2)
