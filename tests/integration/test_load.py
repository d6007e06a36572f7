"""`tactus load` against a server: its report says how accurate any schedule could have been."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from serving import SLOW_MS, SOURCE, TACTUS, WAIT_S, Server, ServedTest, make_repository

# Two exits of 10 and 30 ms in any batch. At 50 requests a second the first takes half of a lane's
# time and the other half makes half of the requests leave at the second: (0.5 + 0.9) / 2.
RATE, LIMIT = 50, 0.7


def profile():
    exits = [{"name": name, "accuracy": accuracy, "cells": [{"batch": 1, "mean_ms": ms}]}
             for name, accuracy, ms in (("1", 0.5, 10), ("2", 0.9, 30))]
    return {"tactus_profile": 1, "machine": {"fingerprint": "test"},
            "provenance": "made for a test",
            "models": [{"name": "echo", "max_batch": 1, "exits": exits}]}


class LoadTest(ServedTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = self.folder / "profile.json"
        self.profile.write_text(json.dumps(profile()))

    def load(self, *words):
        """What was printed, and the run of the written report."""
        file = self.folder / "report.json"
        done = subprocess.run(
            [TACTUS, "load", "--url", self.server.http, "--json", file, *map(str, words)],
            capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, json.loads(file.read_text())["runs"][0]

    def short(self, *words):
        return self.load("--models", "echo", "--rate", RATE, "--duration", 0.5, "--slo-ms", 60_000,
                         *words)

    def test_the_accuracy_limit_stands_beside_the_figures(self):
        text, run = self.short("--profile", self.profile)
        self.assertAlmostEqual(run["accuracy_limit"], LIMIT)
        header, row = (next(line for line in text.splitlines() if line.startswith(start))
                       for start in ("model ", "all "))
        self.assertIn("limit", header.split())
        self.assertIn(f"{100 * LIMIT:.1f}", row.split())

    def test_the_limit_is_that_of_the_server_s_lanes(self):
        # Two lanes have the time for the second exit, whoever asks for it: 50 x 30 ms are 1.5 s.
        _, run = self.short("--profile", self.profile, "--lanes", 2)
        self.assertAlmostEqual(run["accuracy_limit"], 0.9)

    def test_a_scenario_brings_its_own_profile(self):
        scenario = self.folder / "echo.toml"
        scenario.write_text('[scenario]\nname = "echo"\nprofile = "profile.json"\n'
                            'duration_s = 0.5\n'
                            f'[arrivals]\nrate_rps = {RATE}\n'
                            '[[models]]\nname = "echo"\nslo_ms = 60000\n')
        _, run = self.load(scenario)
        self.assertAlmostEqual(run["accuracy_limit"], LIMIT)

    def test_without_latencies_no_limit_is_made_up(self):
        text, run = self.short()
        self.assertIsNone(run["accuracy_limit"])
        self.assertNotIn("limit", text)


class UnnamedExitsTest(ServedTest):
    """A model that names none of its exits: they are 1, 2, ... wherever they are told of."""

    @classmethod
    def setUpClass(cls):
        def fill(root):
            shutil.copytree(SOURCE / "models" / "ee_s", root / "ee_s")
            config = root / "ee_s" / "config.pbtxt"
            lines = config.read_text().replace('string_value: "50"', 'string_value: "60000"')
            config.write_text("\n".join(line for line in lines.splitlines()
                                        if "exit_names" not in line))
        cls.server = Server(fill=fill)
        cls.names = ["1", "2", "3", "4"]

    def test_the_configuration_names_them(self):
        config = json.loads(self.server.get("/v2/models/ee_s/config"))
        self.assertEqual(config["parameters"]["exit_names"]["string_value"], "1, 2, 3, 4")

    def test_an_answer_names_its_exit(self):
        body = {"inputs": [{"name": "input", "shape": [1, 1, 28, 28], "datatype": "FP32",
                            "data": [0] * 784}]}
        status, _, answer = self.server.post("/v2/models/ee_s/infer", json.dumps(body).encode())
        self.assertEqual(status, 200, answer)
        self.assertIn(json.loads(answer)["parameters"]["tactus_exit"], self.names)

    def test_the_report_of_a_load_has_each_with_its_share(self):
        with tempfile.TemporaryDirectory() as folder:
            for protocol, url in (("http", self.server.http), ("grpc", self.server.grpc)):
                file = pathlib.Path(folder) / "report.json"
                done = subprocess.run(
                    [TACTUS, "load", "--protocol", protocol, "--url", url, "--json", file,
                     "--models", "ee_s", "--rate", "50", "--duration", "0.5", "--random"],
                    capture_output=True, text=True, timeout=WAIT_S)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                run = json.loads(file.read_text())["runs"][0]
                for part in (run, *run["models"]):
                    self.assertEqual(list(part["exits"]), self.names)
                    self.assertAlmostEqual(sum(part["exits"].values()), 1)
                self.assertGreater(run["accuracy"], 0.5)

    def test_a_profile_names_them(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "profile.json"
            done = subprocess.run(
                [TACTUS, "profile", "--models", self.server.repository, "--out", out, "--quick",
                 "--repetitions", "1", "--max-batch", "1"],
                capture_output=True, text=True, timeout=4 * WAIT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            model = json.loads(out.read_text())["models"][0]
            self.assertEqual([each["name"] for each in model["exits"]], self.names)


def make_large(root):
    """The slow model with rows of 80 kB and an SLO of four batches."""
    make_repository(root)
    config = root / "slow" / "config.pbtxt"
    config.write_text(config.read_text().replace("dims: [ 4 ]", "dims: [ 20000 ]", 1)
                      .replace('string_value: "60000"', f'string_value: "{4 * SLOW_MS}"'))


class OverrunTest(unittest.TestCase):
    """Open loops far past what the lane answers, with large bodies."""

    def test_bodies_that_cannot_be_answered_in_time_are_not_read(self):
        server = Server(fill=make_large)
        self.addCleanup(server.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for protocol, url in (("http", server.http), ("grpc", server.grpc)):
            before = server.metric("tactus_refused_total", reason="unread")
            file = pathlib.Path(folder.name) / "report.json"
            # Three SLOs long: what is lost is known after the first.
            subprocess.run([TACTUS, "load", "--protocol", protocol, "--url", url,
                            "--models", "slow", "--random", "--rate", str(20_000 / SLOW_MS),
                            "--duration", str(12 * SLOW_MS / 1000), "--json", file],
                           capture_output=True, timeout=WAIT_S, check=False)
            run = json.loads(file.read_text())["runs"][0]
            self.assertEqual(run["generator"]["unanswered"], 0)
            self.assertEqual(run["generator"]["unexpected"], 0)
            self.assertGreater(server.metric("tactus_refused_total", reason="unread"), before)
            body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32",
                                           "shape": [1, 20000], "data": [0] * 20000}]}).encode()
            # Once the storm is over the next large call is read again.
            for _ in range(100):
                status, _, answer = server.post("/v2/models/slow/infer", body)
                if status == 200:
                    break
            self.assertEqual(status, 200, answer)


if __name__ == "__main__":
    unittest.main(verbosity=2)
