"""Memory that is not there: of each call the first, second, third ... large allocation fails, until
none is left to fail. The server lives, the call hears of it, and the next one is answered."""

import contextlib
import functools
import gzip
import json
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import numpy
import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException

from cameras import JPEGS, wait_until
from serving import SOURCE, START_S, TACTUS, WAIT_S, Server, add_model, identity_config

sys.path.insert(0, str(SOURCE / "examples" / "ensembles"))
import make_models  # noqa: E402

WIDTH = 400_000  # numbers, 1.6 MB
MOST = 60        # large allocations of one call
FP32 = 1         # TensorProto.DataType


@functools.cache
def failing_new():
    """A library to preload, or why there is none."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return None, "there is no C++ compiler"
    folder = tempfile.mkdtemp(prefix="tactus-test-")
    library = pathlib.Path(folder) / "failing_new.so"
    made = subprocess.run([compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library,
                           SOURCE / "tests" / "integration" / "failing_new.cc"],
                          capture_output=True, text=True, check=False)
    return (library, "") if made.returncode == 0 else (None, made.stderr)


class Orders:
    """Which allocation of the processes that are started under it fails."""

    def __init__(self, library):
        self.file = tempfile.NamedTemporaryFile(prefix="tactus-test-")
        self.file.write(bytes(8))
        self.file.flush()
        self.numbers = mmap.mmap(self.file.fileno(), 8)
        self.under = ("env", f"LD_PRELOAD={library}", f"TACTUS_TEST_FAILING_NEW={self.file.name}")

    @contextlib.contextmanager
    def nth(self, number):
        """Of what follows. How many have failed is in the list, in the end."""
        failed = []
        self.numbers[:] = struct.pack("II", number, 0)
        try:
            yield failed
        finally:
            failed.append(struct.unpack("II", self.numbers[:])[1])
            self.numbers[:] = bytes(8)

    def close(self):
        self.numbers.close()
        self.file.close()


def add_sum(root):
    """`sum`, in ONNX Runtime: each number twice; `twice`, an ensemble of it."""
    tensor = '{ name: "%s" data_type: TYPE_FP32 dims: [ -1 ] }'
    ends = f'input [ {tensor % "INPUT0"} ]\noutput [ {tensor % "OUTPUT0"} ]\n'
    add_model(root, "sum", f'platform: "onnxruntime_onnx"\nmax_batch_size: 2\n{ends}')
    make_models.MODELS, make_models.FLOAT = root, FP32
    make_models.write("sum", [make_models.node("Add", ["INPUT0", "INPUT0"], ["OUTPUT0"])],
                      [make_models.value_info("INPUT0", ("N", "M"))],
                      [make_models.value_info("OUTPUT0", ("N", "M"))])
    step = '{ key: "%s" value: "%s" }'
    add_model(root, "twice", f'platform: "ensemble"\nmax_batch_size: 2\n{ends}'
              'ensemble_scheduling { step [ { model_name: "sum" model_version: -1 '
              f'input_map {step % ("INPUT0", "INPUT0")} output_map {step % ("OUTPUT0", "mid")} }}, '
              '{ model_name: "rows" model_version: -1 '
              f'input_map {step % ("INPUT0", "mid")} output_map {step % ("OUTPUT0", "OUTPUT0")} }} '
              '] }\n')


def make_repository(root):
    add_model(root, "rows", 'platform: "identity"\nmax_batch_size: 2\n'
              'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
              'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n')
    add_model(root, "text", identity_config("text", 0, [("INPUT0", "TYPE_STRING", [-1])]))
    add_model(root, "jpeg", identity_config("jpeg", 0, [("jpeg", "TYPE_UINT8", [-1])]))
    add_sum(root)


NUMBERS = numpy.arange(WIDTH, dtype=numpy.float32).reshape(1, WIDTH)
TEXT = numpy.array([b"x" * 3_000_000, b"y"], dtype=object)


class Walk(unittest.TestCase):
    arguments = ()

    @classmethod
    def setUpClass(cls):
        library, why_not = failing_new()
        if library is None:
            raise unittest.SkipTest(why_not)
        cls.orders = Orders(library)
        cls.server = Server("--pending-mb", "4000", *cls.arguments, fill=make_repository,
                            under=cls.orders.under)

    @classmethod
    def tearDownClass(cls):
        with contextlib.closing(cls.orders), contextlib.closing(cls.server):
            code = cls.server.terminate()
            assert code == 0, f"exit code {code}: {cls.server.errors()}"

    def walk(self, ask):
        """`ask` says whether it got the right answer, and what it heard instead."""
        right, heard = ask()
        self.assertTrue(right, heard)
        for number in range(1, MOST):
            with self.orders.nth(number) as failed:
                right, heard = ask()
            if failed == [0]:
                self.assertTrue(right, heard)
                return
            with self.subTest(allocation=number):
                self.assertIsNone(self.server.process.poll(), "the server ended")
                # The rows of a batch for which there is no memory may run one by one.
                if not right:
                    self.assertIn("memory", heard)
                right, heard = ask()
                self.assertTrue(right, heard)
        self.fail("the call has no end of allocations")


class InferTest(Walk):
    def http(self, model, body, expected, **headers):
        status, answered, answer = self.server.post(f"/v2/models/{model}/infer", body, headers)
        if status != 200:
            return False, f"{status} {answer[:200]}"
        if answered.get("Content-Encoding") == "gzip":
            answer = gzip.decompress(answer)
        head = int(answered.get("Inference-Header-Content-Length") or 0)
        if head > 0:
            return answer[head:] == expected.tobytes(), "other bytes"
        numbers = json.loads(answer)["outputs"][0]["data"]
        return numbers == expected.ravel().tolist(), "other numbers"

    def test_numbers_as_text(self):
        body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, WIDTH],
                                       "data": NUMBERS.ravel().tolist()}]}).encode()
        self.walk(lambda: self.http("rows", body, NUMBERS))

    def binary(self, rows):
        head = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [rows, WIDTH],
                                       "parameters": {"binary_data_size": 4 * rows * WIDTH}}],
                           "parameters": {"binary_data_output": True}}).encode()
        return head + NUMBERS.tobytes() * rows, {"Inference-Header-Content-Length": str(len(head))}

    def test_bytes_of_two_rows(self):
        body, headers = self.binary(2)
        self.walk(lambda: self.http("rows", body, numpy.vstack([NUMBERS, NUMBERS]), **headers))

    def test_a_graph(self):
        body, headers = self.binary(2)
        self.walk(lambda: self.http("sum", body, 2 * numpy.vstack([NUMBERS, NUMBERS]), **headers))

    def test_an_ensemble(self):
        body, headers = self.binary(1)
        self.walk(lambda: self.http("twice", body, 2 * NUMBERS, **headers))

    def test_packed_both_ways(self):
        body, headers = self.binary(1)
        headers.update({"Content-Encoding": "gzip", "Accept-Encoding": "gzip"})
        packed = gzip.compress(body, 1)
        self.walk(lambda: self.http("rows", packed, NUMBERS, **headers))

    def grpc(self, model, values, kind, expected, raw=True, stream=False):
        with grpc_client.InferenceServerClient(self.server.grpc) as client:
            given = grpc_client.InferInput("INPUT0", values.shape, kind)
            given.set_data_from_numpy(values)
            if not raw:
                given._raw_content = None
                given._input.contents.fp32_contents.extend(values.ravel().tolist())
            try:
                if stream:
                    return self.over_stream(client, model, given, expected)
                answer = client.infer(model, [given], client_timeout=WAIT_S)
            except InferenceServerException as error:
                return False, str(error)
            return (answer.as_numpy("OUTPUT0") == expected).all(), "other values"

    def over_stream(self, client, model, given, expected):
        ends = []
        client.start_stream(lambda result, error: ends.append((result, error)))
        client.async_stream_infer(model, [given])
        client.stop_stream()
        (result, error), = ends
        if error is not None:
            return False, str(error)
        return (result.as_numpy("OUTPUT0") == expected).all(), "other values"

    def test_grpc_bytes(self):
        self.walk(lambda: self.grpc("rows", NUMBERS, "FP32", NUMBERS))

    def test_grpc_typed(self):
        self.walk(lambda: self.grpc("sum", NUMBERS, "FP32", 2 * NUMBERS, raw=False))

    def test_grpc_strings(self):
        self.walk(lambda: self.grpc("text", TEXT, "BYTES", TEXT))

    def test_grpc_stream(self):
        self.walk(lambda: self.grpc("rows", NUMBERS, "FP32", NUMBERS, stream=True))

    def test_strings_as_text(self):
        body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "BYTES", "shape": [2],
                                       "data": [each.decode() for each in TEXT]}]}).encode()

        def ask():
            status, _, answer = self.server.post("/v2/models/text/infer", body)
            if status != 200:
                return False, f"{status} {answer[:200]}"
            return (json.loads(answer)["outputs"][0]["data"] == [t.decode() for t in TEXT]), "other"
        self.walk(ask)


class IsolatedInferTest(InferTest):
    arguments = ("--isolate",)


class LoadTest(Walk):
    arguments = ("--model-control-mode", "explicit", "--load-model", "*")

    def load(self, model, config):
        body = json.dumps({"parameters": {"config": json.dumps(config)}}).encode()
        status, _, answer = self.server.post(f"/v2/repository/models/{model}/load", body)
        return status == 200, f"{status} {answer[:200]}"

    def test_a_model_of_long_rows(self):
        config = {"platform": "identity", "max_batch_size": 2,
                  "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [WIDTH]}]}
        self.walk(lambda: self.load("text", config))

    def test_a_graph_of_long_rows(self):
        ends = [{"data_type": "TYPE_FP32", "dims": [-1]}] * 2
        config = {"platform": "onnxruntime_onnx", "max_batch_size": 2,
                  "input": [{"name": "INPUT0", **ends[0]}],
                  "output": [{"name": "OUTPUT0", **ends[1]}],
                  "parameters": {"profile_shape.INPUT0": {"string_value": str(WIDTH)}}}
        self.walk(lambda: self.load("sum", config))


class IsolatedLoadTest(LoadTest):
    arguments = (*LoadTest.arguments, "--isolate")


def large(jpeg):
    """The same picture, with more than a megabyte of comments."""
    comment = b"\xff\xfe\xff\xff" + b" " * 65533
    return jpeg[:2] + 20 * comment + jpeg[2:]


class StreamTest(Walk):
    def test_a_large_frame(self):
        with tempfile.TemporaryDirectory() as folder:
            film = pathlib.Path(folder) / "film.mjpeg"
            film.write_bytes(large(JPEGS[0]))

            def ask():
                config = {"source": str(film), "model": "jpeg"}
                body = json.dumps(config).encode()
                status, _, answer = self.server.post("/v2/streams/yard", body)
                if status != 200:
                    return False, f"{status} {answer[:200]}"
                read = wait_until(lambda: self.ended("yard"), "the stream has ended")
                remove = urllib.request.Request(f"http://{self.server.http}/v2/streams/yard",
                                                method="DELETE")
                urllib.request.urlopen(remove, timeout=WAIT_S).close()
                return read["frames"]["answer"]["served"] == 1, str(read)
            self.walk(ask)

    def ended(self, name):
        read = json.loads(self.server.get(f"/v2/streams/{name}"))
        return read if read["state"] in ("ended", "failed") else None


class CommandTest(unittest.TestCase):
    """Who has no server to keep alive ends with a line that says why."""

    def walk(self, *words):
        # Comparing numbers of threads has as many allocations as there is time for.
        alone = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        library, why_not = failing_new()
        if library is None:
            self.skipTest(why_not)
        with contextlib.closing(Orders(library)) as orders:
            for number in range(1, MOST):
                with orders.nth(number) as failed:
                    done = subprocess.run([*alone, *orders.under, TACTUS, *map(str, words)],
                                          capture_output=True, text=True, timeout=START_S)
                if failed == [0]:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    return
                with self.subTest(allocation=number):
                    self.assertIn(done.returncode, (0, 1, 2), done.stderr)
                    if done.returncode != 0:
                        self.assertIn("memory", done.stderr)
        self.fail("the command has no end of allocations")

    def test_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            models = pathlib.Path(folder) / "models"
            add_model(models, "wide",
                      identity_config("wide", 2, [("INPUT0", "TYPE_FP32", [WIDTH])]))
            self.walk("profile", "--models", models, "--engine", "identity", "--quick",
                      "--repetitions", 1, "--budget", 0.01, "--no-pin",
                      "--out", pathlib.Path(folder) / "profile.json")

    def test_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            self.walk("plan", "gpulet", SOURCE / "scenarios/gpulets/equal.toml",
                      "--out", pathlib.Path(folder) / "plan.json")


if __name__ == "__main__":
    unittest.main(verbosity=2)
