"""An emulated cluster: the example's repository on many lanes, and repositories with mistakes."""

import json
import pathlib
import shutil
import unittest

import numpy
import tritonclient.grpc as client
from tritonclient.utils import InferenceServerException

from serving import SOURCE, Server

EXAMPLE = SOURCE / "examples" / "emulated-cluster"
BODY = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 16],
                               "data": [0.5] * 16}]}).encode()


def relaxed_example(root):
    """No deadline that a busy machine could miss."""
    shutil.copytree(EXAMPLE / "models", root, dirs_exist_ok=True)
    for config in root.glob("*/config.pbtxt"):
        config.write_text(config.read_text().replace('"slo_ms" value: { string_value: "',
                                                     '"slo_ms" value: { string_value: "1000'))


class EmulatedClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Not a policy that defers: it would wait for as long as these deadlines let it.
        cls.server = Server("--lanes", "4096", "--policy", "edgeserving", fill=relaxed_example)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_the_lanes_take_no_threads(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        threads = int(status.split("Threads:")[1].split()[0])
        self.assertLess(threads, 100)
        self.assertEqual(self.server.metric("tactus_autoscale_lanes"), 4096)

    def test_the_first_lines_say_that_it_is_emulated(self):
        said = "".join(self.server.said)
        self.assertIn("on 4096 lanes", said)
        self.assertIn("EMULATED: there is no device", said)
        for name in ("ResNet50", "DenseNet121", "InceptionResNetV2"):
            row = next(line for line in said.splitlines()
                       if line.startswith("latencies of ") and f"{name}/a100.csv" in line)
            self.assertIn(f"latencies of {name}: EMULATED, ", row)

    def test_answers_metadata_and_statistics_say_that_they_are_emulated(self):
        code, _, body = self.server.post("/v2/models/ResNet50/infer", BODY)
        self.assertEqual(code, 200)
        answer = json.loads(body)
        self.assertIs(answer["parameters"]["tactus_emulated"], True)
        self.assertEqual(answer["outputs"][0]["data"], [0] * 10)
        # alpha + beta is 5.44 ms, with noise of at most 6 %, and it cannot end before.
        self.assertGreater(answer["parameters"]["tactus_execution_us"], 5000)
        metadata = json.loads(self.server.get("/v2/models/ResNet50"))
        self.assertEqual(metadata["platform"], "emulated")
        stats = json.loads(self.server.get("/v2/models/ResNet50/stats"))["model_stats"][0]
        self.assertIs(stats["emulated"], True)

    def test_metrics_say_that_they_are_emulated(self):
        self.assertEqual(self.server.post("/v2/models/DenseNet121/infer", BODY)[0], 200)
        self.server.await_metric(1, "tactus_execution_seconds_count", model="DenseNet121",
                                 emulated="true")
        self.assertEqual(self.server.metric("tactus_model_emulated"), 3)

    def test_clients_of_others_run_on_it(self):
        with client.InferenceServerClient(self.server.grpc) as triton:
            tensor = client.InferInput("input", [7, 16], "FP32")
            tensor.set_data_from_numpy(numpy.ones((7, 16), numpy.float32))
            answer = triton.infer("InceptionResNetV2", [tensor])
            self.assertEqual(answer.as_numpy("output").shape, (7, 10))
            parameters = answer.get_response().parameters
            self.assertTrue(parameters["tactus_emulated"].bool_param)
            short = client.InferInput("input", [1, 15], "FP32")
            short.set_data_from_numpy(numpy.ones((1, 15), numpy.float32))
            with self.assertRaisesRegex(InferenceServerException, "input"):
                triton.infer("InceptionResNetV2", [short])


def with_mistakes(root):
    config = (EXAMPLE / "models" / "ResNet50" / "config.pbtxt").read_text()
    own = 'parameters { key: "profile" value: { string_value: "a100.csv" } }\n'
    mistakes = {
        "none": (config.replace(own, ""), None),
        "missing": (config, None),
        "garbled": (config, "model,alpha_ms,beta_ms\nResNet50,fast,5\n"),
        "holes": (config, "model,exit,batch,latency_ms\nx,1,1,5\nx,1,3,6\n"),
        "outside": (config.replace('"a100.csv"', '"../ResNet50/a100.csv"'), None),
    }
    for name, (text, table) in mistakes.items():
        (root / name).mkdir()
        (root / name / "config.pbtxt").write_text(text.replace('"ResNet50"', f'"{name}"'))
        if table is not None:
            (root / name / "a100.csv").write_text(table)
    shutil.copytree(EXAMPLE / "models" / "ResNet50", root / "ResNet50")


class MistakesTest(unittest.TestCase):
    def test_each_is_a_model_that_does_not_serve_and_a_reason(self):
        server = Server("--lanes", "2", fill=with_mistakes)
        self.addCleanup(server.close)
        _, _, body = server.post("/v2/repository/index", b"")
        models = {model["name"]: model for model in json.loads(body)}
        self.assertEqual(models["ResNet50"]["state"], "READY")
        for name, reason in {
                "none": "has no latencies: name a profile",
                "missing": "missing/a100.csv",
                "garbled": "a100.csv:2: column alpha_ms: 'fast' is not a number",
                "holes": "batch 2 of 1 to 3 is missing",
                "outside": "is not a file of the model's folder"}.items():
            self.assertEqual(models[name]["state"], "UNAVAILABLE", name)
            self.assertIn(reason, models[name]["reason"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
