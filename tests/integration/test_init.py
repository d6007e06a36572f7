#!/usr/bin/env python3
"""Models that just serve: a graph without a config.pbtxt, and `tactus init`, which writes it; and a
journal of the last run, which the next start keeps."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import serving

GRAPH = serving.SOURCE / "models" / "ee_s" / "1" / "exit1.onnx"


def bare_graph(root):
    (root / "bare" / "1").mkdir(parents=True)
    shutil.copy(GRAPH, root / "bare" / "1" / "model.onnx")


def init(*arguments):
    return subprocess.run([serving.TACTUS, "init", *map(str, arguments)], capture_output=True,
                          text=True, timeout=serving.START_S)


class InitTest(unittest.TestCase):
    def test_a_graph_without_configuration_serves(self):
        server = serving.Server(fill=bare_graph)
        with contextlib.closing(server):
            self.assertIn("no config.pbtxt", server.errors())
            config = json.loads(server.get("/v2/models/bare/config"))
            self.assertEqual(config["max_batch_size"], 4)
            self.assertEqual(config["input"][0]["dims"][0], 1, config)
            shape = json.loads(server.get("/v2/models/bare"))["inputs"][0]["shape"]
            self.assertEqual(shape[0], -1)
            count = 1
            for dim in shape[1:]:
                count *= dim
            body = {"inputs": [{"name": config["input"][0]["name"], "shape": [4, *shape[1:]],
                                "datatype": "FP32", "data": [0.5] * (4 * count)}]}
            status, _, answer = server.post("/v2/models/bare/infer", json.dumps(body).encode())
            self.assertEqual(status, 200, answer)
            self.assertEqual(json.loads(answer)["outputs"][0]["shape"][0], 4)

    def test_a_graph_is_measured_with_the_row_that_its_model_warmup_states(self):
        def pick(root, name, number):
            """Takes 0 to 3 and fails with any other number."""
            (root / name / "1").mkdir(parents=True)
            (root / name / "warmup").mkdir()
            shutil.copy(serving.SOURCE / "tests" / "data" / "pick.onnx",
                        root / name / "1" / "model.onnx")
            (root / name / "warmup" / "number").write_bytes(number.to_bytes(8, "little"))
            (root / name / "config.pbtxt").write_text(
                'max_batch_size: 2 input { name: "x" data_type: TYPE_INT64 dims: [1] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [1] }\n'
                'model_warmup { name: "one" batch_size: 1 inputs { key: "x" value {\n'
                '  data_type: TYPE_INT64 dims: [1] input_data_file: "number" } } }\n')

        def fill(root):
            pick(root, "fits", 3)
            pick(root, "fails", 9)
        with contextlib.closing(serving.Server(fill=fill)) as server:
            self.assertIn("model 'fits' has no profile: measured quickly", server.errors())
            self.assertIn("model 'fails' serves unprofiled", server.errors())
            body = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "INT64", "data": [2]}]}
            for name in ("fits", "fails"):
                status, _, answer = server.post(f"/v2/models/{name}/infer",
                                                json.dumps(body).encode())
                self.assertEqual(status, 200, answer)
                self.assertEqual(json.loads(answer)["outputs"][0]["data"], [30])

    def test_init_writes_what_the_server_assumed(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            root = pathlib.Path(folder)
            bare_graph(root)
            graph = root / "bare" / "1" / "model.onnx"
            done = init(graph)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = (root / "bare" / "config.pbtxt").read_text()
            self.assertIn('name: "bare"', text)
            self.assertIn("max_batch_size: 4", text)
            self.assertIn("what is commented out is optional", text)
            self.assertIn("(an example; without it the server's\n# --default-slo-ms counts)", text)
            again = init(graph)
            self.assertEqual((again.returncode, "--force" in again.stderr), (2, True), again.stderr)
            printed = init(graph, "--out", "-").stdout
            # Which larger batch is proposed depends on how busy the machine is.
            proposal = (r"# Measured briefly, a row gets cheaper by a tenth with each doubling up "
                        r"to (8|16|32):\n# max_batch_size: \1\n")
            self.assertEqual(*(re.sub(proposal, "", each) for each in (printed, text)))

            server = serving.Server(fill=lambda at: shutil.copytree(root / "bare", at / "bare"))
            with contextlib.closing(server):
                self.assertNotIn("no config.pbtxt", server.errors())
                config = json.loads(server.get("/v2/models/bare/config"))
                self.assertEqual(config["max_batch_size"], 4)

    def test_init_says_how_a_graph_of_vectors_may_batch(self):
        data = serving.SOURCE / "tests" / "data"
        for name, told in (("vector", True), ("single", False), ("scalar", False)):
            done = init(data / f"{name}.onnx", "--out", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("max_batch_size: 0", done.stdout)
            self.assertEqual("`dims: [ 1 ] reshape { shape: [ ] }`" in done.stdout, told, name)

    def test_a_graph_in_no_version_says_where_to_put_it(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            root = pathlib.Path(folder)
            (root / "net").mkdir()
            for path, place in (("net/model.onnx", "net/1/model.onnx"),
                                ("bare.onnx", "bare/1/model.onnx"),
                                ("net/1/model.onnx/model.onnx", None)):
                graph = root / path
                graph.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(GRAPH, graph)
                done = init(graph)
                if place is None:
                    self.assertEqual(done.returncode, 0, done.stderr)
                    continue
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(f"at {root}/{place}, then write `tactus init {root}/{place}`",
                              done.stderr)
                self.assertEqual(list(root.rglob("config.pbtxt")), [])
                name = place.split("/")[0]
                self.assertIn(f'\nname: "{name}"\n', init(graph, "--out", "-").stdout)
            self.assertIn('\nname: "net"\n', (root / "net" / "config.pbtxt").read_text())
            (root / "other").mkdir()
            done = init(root / "bare.onnx", "--out", root / "other" / "config.pbtxt")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('\nname: "other"\n', (root / "other" / "config.pbtxt").read_text())

    def test_of_a_folder_it_names_the_graph_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            bare_graph(root)
            for given in (root / "bare", root / "bare" / "1"):
                done = init(given)
                self.assertEqual(done.returncode, 2)
                self.assertIn(str(root / "bare" / "1" / "model.onnx"), done.stderr)
            (root / "empty").mkdir()
            self.assertIn(str(root / "empty" / "model.onnx"), init(root / "empty").stderr)

    def test_what_is_no_graph_is_said(self):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(b"no graph")
            file.flush()
            done = init(file.name)
            self.assertEqual(done.returncode, 2)
            self.assertIn(file.name, done.stderr)

    def test_profile_measures_what_serve_serves(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            root = pathlib.Path(folder) / "models"
            root.mkdir()
            bare_graph(root)
            out = pathlib.Path(folder) / "profile.json"
            done = subprocess.run(
                [serving.TACTUS, "profile", "--models", root, "--out", out, "--quick",
                 "--repetitions", "1", "--max-batch", "1"],
                capture_output=True, text=True, timeout=serving.START_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([m["name"] for m in json.loads(out.read_text())["models"]], ["bare"])

    def test_a_restart_keeps_the_journal_of_the_last_run(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            journal = pathlib.Path(folder) / "run.journal"
            for _ in range(2):
                server = serving.Server("--journal", str(journal))
                with contextlib.closing(server):
                    self.assertEqual(server.terminate(), 0, server.errors())
            old = pathlib.Path(str(journal) + ".old")
            self.assertGreater(old.stat().st_size, 0)
            self.assertGreater(journal.stat().st_size, 0)

    def test_a_full_disk_is_said_at_once_and_serving_goes_on(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            journal = pathlib.Path(folder) / "run.journal"
            journal.symlink_to("/dev/full")
            server = serving.Server("--journal", str(journal))
            with contextlib.closing(server):
                while "writing the journal failed" not in server.errors():
                    self.assertIsNone(server.process.poll(), server.errors())
                self.assertEqual(server.metric("tactus_journal_whole"), 0)
                body = {"inputs": [{"name": "INPUT0", "shape": [1, 4], "datatype": "FP32",
                                    "data": [1, 2, 3, 4]}]}
                status, _, answer = server.post("/v2/models/echo/infer", json.dumps(body).encode())
                self.assertEqual(status, 200, answer)
                self.assertEqual(server.terminate(), 0, server.errors())


if __name__ == "__main__":
    unittest.main(verbosity=2)
