"""Ensembles through real clients: the example's, one whose steps come and go, and mistakes."""

import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.grpc.aio as grpc_async
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from serving import SOURCE, TACTUS, WAIT_S, Server, add_model, identity_config

EXAMPLES = SOURCE / "examples" / "ensembles" / "models"
PERF_ANALYZER = SOURCE / ".cache" / "perf_analyzer" / "run"


def ensemble(name, tensors, steps, parameters=None, max_batch=0):
    """tensors: (inputs, outputs), each (name, dims); steps: (model, inputs, outputs) as dicts."""
    def maps(kind, links):
        return " ".join(f'{kind} {{ key: "{k}" value: "{v}" }}' for k, v in links.items())

    def tensor(kind, entries):
        return "\n".join(f'{kind} [ {{ name: "{n}" data_type: TYPE_FP32 dims: {dims} }} ]'
                         for n, dims in entries)

    scheduling = ",\n".join(
        f'  {{ model_name: "{model}" {maps("input_map", inputs)} {maps("output_map", outputs)} }}'
        for model, inputs, outputs in steps)
    keys = "\n".join(f'parameters {{ key: "{k}" value: {{ string_value: "{v}" }} }}'
                     for k, v in (parameters or {}).items())
    return (f'name: "{name}"\nplatform: "ensemble"\nmax_batch_size: {max_batch}\n'
            f'{tensor("input", tensors[0])}\n{tensor("output", tensors[1])}\n'
            f'ensemble_scheduling {{ step [\n{scheduling}\n] }}\n{keys}\n')


def chain(first, second, parameters=None):
    """x -> first -> second -> y, of models with one input INPUT0 and one output OUTPUT0 of 4."""
    return ensemble("chain", ([("x", [4])], [("y", [4])]),
                    [(first, {"INPUT0": "x"}, {"OUTPUT0": "between"}),
                     (second, {"INPUT0": "between"}, {"OUTPUT0": "y"})], parameters, max_batch=1)


def echo(root, name, dims=4):
    add_model(root, name, identity_config(name, 8, [("INPUT0", "TYPE_FP32", [dims])]))


def slow(root):
    add_model(root, "slow", 'name: "slow"\nplatform: "emulated"\nmax_batch_size: 1\n'
              'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n')


def fill_examples(root):
    shutil.copytree(EXAMPLES, root, dirs_exist_ok=True)
    for config in root.glob("*/config.pbtxt"):  # nothing promises what a busy machine could miss
        config.write_text(config.read_text().replace('string_value: "200"',
                                                     'string_value: "60000"'))


def tensor_of(module, name, values):
    tensor = module.InferInput(name, values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    return tensor


def floats(*shape):
    return numpy.arange(numpy.prod(shape), dtype=numpy.float32).reshape(shape)


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--triton-metrics", fill=fill_examples)

    @classmethod
    def tearDownClass(cls):
        with contextlib.closing(cls.server):
            assert cls.server.terminate() == 0, cls.server.errors()

    def clients(self):
        for module, address in ((http_client, self.server.http), (grpc_client, self.server.grpc)):
            with self.subTest(module.__name__), \
                    contextlib.closing(module.InferenceServerClient(address)) as client:
                yield module, client

    def test_twice_through_one_model(self):
        for module, client in self.clients():
            for rows in (1, 3, 8):
                a, b = floats(rows, 16), numpy.ones((rows, 16), numpy.float32)
                inputs = [tensor_of(module, "INPUT0", a), tensor_of(module, "INPUT1", b)]
                answer = client.infer("simple", inputs)
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), 2 * a)
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), 2 * b)
                one = [module.InferRequestedOutput("OUTPUT1")]
                answer = client.infer("simple", inputs, outputs=one, model_version="1")
                numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT1"), 2 * b)
                self.assertIsNone(answer.as_numpy("OUTPUT0"))

    def test_once_for_each_row(self):
        for module, client in self.clients():
            for rows, answered in ((0, 0), (1, 1), (5, 5), (40, 32)):
                found = floats(rows, 16)
                answer = client.infer("means", [tensor_of(module, "FOUND", found)])
                numpy.testing.assert_allclose(answer.as_numpy("MEANS"),
                                              found[:answered].mean(1, keepdims=True), rtol=1e-6)

    def test_curl(self):
        body = {"inputs": [{"name": "FOUND", "datatype": "FP32", "shape": [2, 16],
                            "data": [1.0] * 16 + [3.0] * 16}]}
        done = subprocess.run(
            ["curl", "-sS", f"http://{self.server.http}/v2/models/means/infer", "-d",
             json.dumps(body)], capture_output=True, text=True, check=True, timeout=WAIT_S)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["model_name"], "means")
        self.assertEqual(answer["outputs"][0]["shape"], [2, 1])
        self.assertEqual(answer["outputs"][0]["data"], [1.0, 3.0])

    def test_async_clients(self):
        a = floats(1, 16)

        async def many():
            async with grpc_async.InferenceServerClient(self.server.grpc) as client:
                inputs = [tensor_of(grpc_async, "INPUT0", a), tensor_of(grpc_async, "INPUT1", a)]
                return await asyncio.gather(*(client.infer("simple", inputs) for _ in range(50)))
        for answer in asyncio.run(many()):
            numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), 2 * a)

    def test_what_it_says_of_itself(self):
        client = http_client.InferenceServerClient(self.server.http)
        self.addCleanup(client.close)
        config = client.get_model_config("simple")
        self.assertEqual(config["platform"], "ensemble")
        steps = config["ensemble_scheduling"]["step"]
        self.assertEqual([step["model_name"] for step in steps], ["add_sub", "add_sub"])
        self.assertEqual(steps[1]["input_map"], {"INPUT0": "sum", "INPUT1": "difference"})
        metadata = client.get_model_metadata("means")
        self.assertEqual(metadata["outputs"], [{"name": "MEANS", "datatype": "FP32",
                                                "shape": [-1, 1]}])
        index = {entry["name"]: entry["state"] for entry in client.get_model_repository_index()}
        self.assertEqual(index, dict.fromkeys(("add_sub", "mean", "means", "simple", "split"),
                                              "READY"))

    def test_statistics_and_metrics(self):
        client = http_client.InferenceServerClient(self.server.http)
        self.addCleanup(client.close)

        def stats(model):
            return client.get_inference_statistics(model)["model_stats"][0]

        def metric(name):
            return self.server.metric(name, model="simple")
        before, step = stats("simple"), stats("add_sub")
        metrics = [metric(name) for name in ("nv_inference_count", "nv_inference_request_success")]
        a = floats(4, 16)
        inputs = [tensor_of(http_client, "INPUT0", a), tensor_of(http_client, "INPUT1", a)]
        client.infer("simple", inputs)
        after = stats("simple")
        self.assertEqual(after["inference_count"] - before["inference_count"], 4)
        self.assertEqual(after["execution_count"] - before["execution_count"], 1)
        success = after["inference_stats"]["success"]
        self.assertEqual(success["count"] - before["inference_stats"]["success"]["count"], 1)
        self.assertGreater(success["ns"], before["inference_stats"]["success"]["ns"])
        self.assertEqual(stats("add_sub")["inference_count"] - step["inference_count"], 8)
        self.assertEqual(metric("nv_inference_count"), metrics[0] + 4)
        self.assertEqual(metric("nv_inference_request_success"), metrics[1] + 1)

    def test_bad_input(self):
        for module, client in self.clients():
            with self.assertRaisesRegex(InferenceServerException, "unexpected shape"):
                client.infer("means", [tensor_of(module, "FOUND", floats(2, 15))])
            with self.assertRaisesRegex(InferenceServerException, "version 9"):
                client.infer("means", [tensor_of(module, "FOUND", floats(2, 16))],
                             model_version="9")

    @unittest.skipUnless(os.access(PERF_ANALYZER, os.X_OK), "no perf_analyzer: ./run test")
    def test_perf_analyzer(self):
        done = subprocess.run(
            [str(PERF_ANALYZER), "-m", "simple", "-u", self.server.grpc, "-i", "grpc",
             "--request-count", "50", "--concurrency-range", "2"],
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Inferences/Second", done.stdout)


class DeadlineTest(unittest.TestCase):
    """The step "slow" takes 400 ms."""

    def test_one_deadline_for_all_steps(self):
        def fill(root):
            slow(root)
            echo(root, "echo")
            add_model(root, "chain", chain("echo", "slow", {"slo_ms": "60000"}))

        with contextlib.closing(Server(fill=fill)) as server:
            client = grpc_client.InferenceServerClient(server.grpc)
            inputs = [tensor_of(grpc_client, "x", floats(1, 4))]
            self.assertEqual(client.infer("chain", inputs).as_numpy("y").shape, (1, 4))
            # Not even the quickest path fits, which is said with the arithmetic.
            with self.assertRaises(InferenceServerException) as caught:
                client.infer("chain", inputs, timeout=200_000)
            self.assertIn("DEADLINE_EXCEEDED", str(caught.exception.status()))
            self.assertRegex(caught.exception.message(),
                             r"ensemble 'chain', step 'echo': .* take \d+\.\d+ ms at best")
            self.assertEqual(server.terminate(), 0)

    def test_a_client_that_leaves_takes_its_steps_along(self):
        def fill(root):
            slow(root)
            echo(root, "echo")
            add_model(root, "chain", chain("echo", "slow", {"slo_ms": "60000"}))

        with contextlib.closing(Server(fill=fill)) as server:
            with contextlib.closing(grpc_client.InferenceServerClient(server.grpc)) as client:
                inputs = [tensor_of(grpc_client, "x", floats(1, 4))]
                calls = [client.async_infer("chain", inputs, lambda result, error: None)
                         for _ in range(4)]
                server.await_pending(1)
                for call in calls:
                    call.cancel()
                server.await_metric(4, "tactus_requests_total", model="chain",
                                    outcome="cancelled")
            self.assertEqual(server.terminate(), 0)

    def test_no_batches_could_meet_the_slo(self):
        def fill(root):
            slow(root)
            echo(root, "echo")
            add_model(root, "chain", chain("echo", "slow", {"slo_ms": "300"}))

        with contextlib.closing(Server(fill=fill)) as server:
            client = http_client.InferenceServerClient(server.http)
            self.assertFalse(client.is_model_ready("chain"))
            reasons = {e["name"]: e.get("reason", "") for e in client.get_model_repository_index()}
            self.assertIn("no batches can meet its SLO of 300 ms", reasons["chain"])
            client.close()
            self.assertEqual(server.terminate(), 0)


class JournalTest(unittest.TestCase):
    def replay(self, path):
        done = subprocess.run([TACTUS, "replay", path], capture_output=True, text=True,
                              timeout=WAIT_S)
        return done.returncode, done.stdout + done.stderr

    def test_what_pipelines_did_is_decided_again(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            journal = pathlib.Path(folder) / "journal"
            with contextlib.closing(Server("--journal", str(journal),
                                           fill=fill_examples)) as server:
                client = grpc_client.InferenceServerClient(server.grpc)
                for rows in (3, 0, 40):
                    client.infer("means", [tensor_of(grpc_client, "FOUND", floats(rows, 16))])
                client.close()
                self.assertEqual(server.terminate(), 0)
            code, text = self.replay(journal)
            self.assertEqual(code, 0, text)
            self.assertRegex(text, r"journal: policy (.|\n)*journal.pipelines: 2 pipelines")
            # A call, the rows found, the mean of each row: of 3, of none, and of the 32 of 40 that
            # are not cut. A start for each, and an end of each call.
            self.assertRegex(text, r"identical: 41 decisions for \d+ events of 3 requests")
            lines = pathlib.Path(f"{journal}.pipelines").read_text().splitlines(keepends=True)
            start = next(i for i, line in enumerate(lines) if line.startswith("S "))
            moved = lines[start].replace("\n", "1\n")
            other = pathlib.Path(folder) / "other"
            other.write_text("".join(lines[:start] + [moved] + lines[start + 1:]))
            code, text = self.replay(other)
            self.assertEqual(code, 1, text)
            self.assertIn(f"line {start + 1}: the journal has '{moved[0]} ", text)
            other.write_text("".join(lines[:-1]))
            code, text = self.replay(other)
            self.assertEqual(code, 0, text)
            self.assertIn("only the beginning: it has no end", text)


class ComingAndGoingTest(unittest.TestCase):
    def fill(self, root):
        echo(root, "first")
        echo(root, "second")
        add_model(root, "chain", chain("first", "second"))

    def test_load_brings_the_steps_and_unload_of_one_says_why(self):
        arguments = ("--model-control-mode", "explicit", "--load-model", "first")
        with contextlib.closing(Server(*arguments, fill=self.fill)) as server:
            client = grpc_client.InferenceServerClient(server.grpc)
            inputs = [tensor_of(grpc_client, "x", floats(1, 4))]
            self.assertFalse(client.is_model_ready("chain"))
            client.load_model("chain")
            self.assertTrue(client.is_model_ready("chain"))
            self.assertTrue(client.is_model_ready("second"))
            self.assertEqual(client.infer("chain", inputs).as_numpy("y").shape, (1, 4))
            client.unload_model("second")
            self.assertFalse(client.is_model_ready("chain"))
            with self.assertRaisesRegex(InferenceServerException,
                                        r"config.pbtxt:\d+:\d+: step 'second': .*unload"):
                client.infer("chain", inputs)
            client.load_model("second")
            self.assertEqual(client.infer("chain", inputs).as_numpy("y").shape, (1, 4))
            client.unload_model("chain")
            self.assertFalse(client.is_model_ready("chain"))
            self.assertTrue(client.is_model_ready("second"))
            self.assertEqual(server.terminate(), 0)

    def test_an_ensemble_as_a_step_of_others(self):
        def fill(root):
            self.fill(root)
            pair = chain("first", "second", {"as_step": "true", "slo_ms": "60000"})
            add_model(root, "pair", pair.replace('"chain"', '"pair"'))
            add_model(root, "pairs", ensemble(
                "pairs", ([("x", [4])], [("y", [4])]),
                [("pair", {"x": "x"}, {"y": "between"}), ("pair", {"x": "between"}, {"y": "y"})],
                {"slo_ms": "60000"}, max_batch=1))
            add_model(root, "deep", ensemble(
                "deep", ([("x", [4])], [("y", [4])]),
                [("chain", {"x": "x"}, {"y": "y"})], {"slo_ms": "60000"}, max_batch=1))
        arguments = ("--model-control-mode", "explicit", "--load-model", "pairs")
        with contextlib.closing(Server(*arguments, fill=fill)) as server:
            client = grpc_client.InferenceServerClient(server.grpc)
            values = floats(1, 4)
            inputs = [tensor_of(grpc_client, "x", values)]
            for model in ("pairs", "pair"):  # whoever brought it, clients may ask it too
                answer = client.infer(model, inputs).as_numpy("y")
                numpy.testing.assert_array_equal(answer, values)

            def count(model):
                return client.get_inference_statistics(model).model_stats[0].inference_count
            self.assertEqual((count("pairs"), count("pair"), count("first")), (1, 3, 3))
            with self.assertRaisesRegex(InferenceServerException, "as_step"):
                client.load_model("chain")
                client.load_model("deep")
            client.unload_model("pair")
            with self.assertRaisesRegex(InferenceServerException, "step 'pair': .*unload"):
                client.infer("pairs", inputs)
            client.load_model("pair")
            numpy.testing.assert_array_equal(client.infer("pairs", inputs).as_numpy("y"), values)
            self.assertEqual(server.terminate(), 0)

    def test_steps_that_are_replaced_while_calls_run(self):
        arguments = ("--model-control-mode", "explicit", "--load-model", "chain")
        with contextlib.closing(Server(*arguments, fill=self.fill)) as server:
            ended = []

            def ask():
                with contextlib.closing(grpc_client.InferenceServerClient(server.grpc)) as client:
                    inputs = [tensor_of(grpc_client, "x", floats(1, 4))]
                    for _ in range(300):
                        try:
                            ended.append(client.infer("chain", inputs).as_numpy("y").shape)
                        except InferenceServerException as error:
                            ended.append(error.message())
            clients = [threading.Thread(target=ask) for _ in range(3)]
            for each in clients:
                each.start()
            with contextlib.closing(grpc_client.InferenceServerClient(server.grpc)) as control:
                for _ in range(5):
                    control.load_model("second")
                    control.unload_model("second")
                    control.load_model("second")
            for each in clients:
                each.join()
            self.assertEqual(len(ended), 900)
            for each in ended:
                if each != (1, 4):
                    self.assertRegex(each, "second|unloaded")
            self.assertIn((1, 4), ended)
            self.assertEqual(server.metric("tactus_pending_calls"), 0)
            self.assertEqual(server.terminate(), 0)

    def test_poll_finds_new_ensembles(self):
        arguments = ("--model-control-mode", "poll", "--poll-seconds", "0.2")
        with contextlib.closing(Server(*arguments, fill=self.fill)) as server:
            client = http_client.InferenceServerClient(server.http, network_timeout=WAIT_S)

            def until(condition):
                end = time.monotonic() + WAIT_S
                while not condition():
                    self.assertLess(time.monotonic(), end, "the folder was not read again")
                    time.sleep(0.05)
            self.assertTrue(client.is_model_ready("chain"))
            (server.repository / "coming" / "1").mkdir(parents=True)
            config = (server.repository / "chain" / "config.pbtxt").read_text()
            (server.repository / "coming" / "config.pbtxt").write_text(
                config.replace('"chain"', '"coming"'))
            until(lambda: client.is_model_ready("coming"))
            shutil.rmtree(server.repository / "chain")
            until(lambda: not client.is_model_ready("chain"))
            client.close()
            self.assertEqual(server.terminate(), 0)


class MistakesTest(unittest.TestCase):
    def test_each_names_its_place(self):
        def fill(root):
            echo(root, "echo")
            echo(root, "wide", 5)
            add_model(root, "unfit", chain("echo", "wide").replace('"chain"', '"unfit"'))
            add_model(root, "orphan", chain("echo", "nobody").replace('"chain"', '"orphan"'))
            add_model(root, "loop", chain("echo", "echo").replace('"chain"', '"loop"')
                      .replace('value: "x"', 'value: "y"'))
            add_model(root, "unread", chain("echo", "echo").replace('"chain"', '"unread"')
                      .replace('"INPUT0" value: "between"', '"INPUT0" value: "x"'))
            add_model(root, "good", chain("echo", "echo").replace('"chain"', '"good"'))

        with contextlib.closing(Server(fill=fill)) as server:
            client = http_client.InferenceServerClient(server.http)
            index = {e["name"]: e for e in client.get_model_repository_index()}
            for name, reason in (
                    ("unfit", r"unfit/config.pbtxt:\d+:\d+: step 'wide': 'between' comes as "
                              r"\[-1,4\], which is no \[-1,5\]"),
                    ("orphan", r"^\S+orphan/config.pbtxt:\d+:\d+: step 'nobody': the repository "
                               r"has no model 'nobody'"),
                    ("loop", r"loop/config.pbtxt:\d+:\d+: .*read by no step|circle"),
                    ("unread", r"unread/config.pbtxt:\d+:\d+: step 'echo': makes 'between', which "
                               r"no step reads")):
                self.assertEqual(index[name]["state"], "UNAVAILABLE", name)
                self.assertRegex(index[name]["reason"], reason)
            self.assertEqual(index["good"]["state"], "READY")
            self.assertFalse(client.is_server_ready())
            client.close()
            self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
