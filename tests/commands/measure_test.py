"""tactus measure, and what a policy learns and keeps, called as a user does.

    measure_test.py TACTUS SOURCE_FOLDER
"""

import json
import re
import sys
import unittest

from command_case import CommandCase, SCENARIO, SOURCE, tactus


class Measure(CommandCase):
    def test_measure_prints_the_accuracy_limit_that_simulate_prints(self):
        # The limit is of load and profile alone, so virtual and real time cannot differ in it.
        load = ["--set", "duration_s=0.2", "--set", "warmup_requests=0", "--set", "rate_rps=1400"]
        limits = []
        for words in (["simulate"], ["measure", "--engine", "emulated", "--no-pin"]):
            file = self.folder / "report.json"
            text = self.good(*words, SCENARIO, *load, "--json", file)
            limits.append(json.loads(file.read_text())["runs"][0]["accuracy_limit"])
            rows = [line for line in text.splitlines() if line.startswith(("policy ", "edges"))]
            self.assertIn("limit", rows[0].split())
            self.assertIn(f"{100 * limits[-1]:.1f}", rows[1].replace("/", " ").split())
        self.assertEqual(limits[0], limits[1])
        self.assertTrue(0.4 < limits[0] < 0.762, limits)  # between the first exits and the last

    def test_measure_warns_of_another_machine(self):
        (self.folder / "echo/1").mkdir(parents=True)
        (self.folder / "echo/config.pbtxt").write_text(
            'platform: "identity"\nmax_batch_size: 4\n'
            'input { name: "x" data_type: TYPE_FP32 dims: 4 }\n'
            'output { name: "x" data_type: TYPE_FP32 dims: 4 }\n')
        cells = [{"batch": b, "mean_ms": 1} for b in range(1, 5)]
        (self.folder / "p.json").write_text(json.dumps({
            "tactus_profile": 1, "provenance": "measured",
            "machine": {"fingerprint": "0123", "cpu": "Another", "cores": 3, "engine": "e 1"},
            "models": [{"name": "echo", "max_batch": 4,
                        "exits": [{"name": "1", "cells": cells}]}]}))
        (self.folder / "s.toml").write_text(
            '[scenario]\nname = "s"\nduration_s = 0.1\nprofile = "p.json"\n'
            '[arrivals]\nprocess = "uniform"\nrate_rps = 100\n'
            '[[models]]\nname = "echo"\nslo_ms = 1000\n')
        written = self.folder / "more.json"
        done = tactus("measure", self.folder / "s.toml", "--models", self.folder, "--no-pin",
                      "--write-overheads", written)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("measured on another machine (Another, 3 cores, e 1)", done.stderr)
        # What it measured is in the profile that it wrote, and the simulator takes it.
        more = json.loads(written.read_text())
        self.assertGreater(more["models"][0]["service_ratio"], 0)
        self.assertEqual(more["service_window_ms"], 100)
        self.assertGreaterEqual(len(more["service_trace"]), 1)
        self.good("simulate", self.folder / "s.toml", "--set", f"profile={written}")

    def test_measure_writes_what_was_predicted_of_batches_that_share_a_lane(self):
        rows, report = self.folder / "predictions.csv", self.folder / "report.json"
        words = ["measure", SOURCE / "scenarios/strait/high.toml", "--engine", "emulated",
                 "--no-pin", "--set", "rate_rps=300", "--set", "warmup_s=0",
                 "--set", "duration_s=0.5", "--predictions", rows]
        self.good(*words, "--json", report)
        prediction = json.loads(report.read_text())["runs"][0]["prediction"]
        lines = rows.read_text().splitlines()
        self.assertEqual(lines[0], "predicted,measured")
        self.assertEqual(len(lines) - 1, prediction["batches"])
        self.bad(*words, "--policy", "temporal",
                 says="--predictions: policy 'temporal' predicts nothing")

    def test_every_prediction_of_a_turn_is_written_however_many_there_are(self):
        # 5000 requests in a tenth of a second, for lanes that sustain an eighth of that: each runs
        # by itself and beside others.
        (self.folder / "p.json").write_text(json.dumps({
            "tactus_profile": 1, "provenance": "made for a test",
            "machine": {"fingerprint": "test"}, "models": [
                {"name": "quick", "max_batch": 1,
                 "exits": [{"name": "1", "cells": [{"batch": 1, "mean_ms": 0.6}]}]}]}))
        (self.folder / "s.toml").write_text(
            '[scenario]\nname = "s"\nduration_s = 0.1\nprofile = "p.json"\npolicy = "strait"\n'
            'expiry = "never"\nqueue_capacity = 10000\n[lanes]\ncount = 1\nslots = 4\n'
            '[arrivals]\nprocess = "uniform"\nrate_rps = 50000\n'
            '[[models]]\nname = "quick"\nslo_ms = 100000\n')
        rows, report = self.folder / "predictions.csv", self.folder / "report.json"
        done = tactus("measure", self.folder / "s.toml", "--engine", "emulated", "--no-pin",
                      "--predictions", rows, "--json", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        predicted = json.loads(report.read_text())["runs"][0]["prediction"]["batches"]
        self.assertGreater(predicted, 4500)
        # A thread that is thousands of batches behind, on a machine that stalls, loses some.
        lost = re.search(rf"too busy to write down (\d+) of {predicted} predictions", done.stderr)
        self.assertEqual(len(rows.read_text().splitlines()) - 1,
                         predicted - (int(lost[1]) if lost else 0), done.stderr)

    def test_what_a_policy_learnt_is_kept_and_gone_on_with(self):
        kept, again = self.folder / "kept.json", self.folder / "again.json"
        strait = SOURCE / "scenarios/strait/high.toml"
        short = ["--set", "warmup_s=0", "--set", "duration_s=2"]
        self.good("simulate", strait, *short, "--save-predictor", kept)
        learnt = json.loads(kept.read_text())
        self.assertGreater(learnt["steps"], 100)
        self.good("simulate", strait, *short, "--policy", "strait:learn=no", "--predictor", kept,
                  "--save-predictor", again)
        self.assertEqual(json.loads(again.read_text()), learnt)
        self.good("simulate", strait, *short, "--predictor", kept, "--save-predictor", again)
        self.assertGreater(json.loads(again.read_text())["steps"], learnt["steps"])

        # In real time too, and from one to the other: what is emulated is the profile's machine.
        real = [strait, "--engine", "emulated", "--no-pin", "--set", "warmup_s=0", "--set",
                "duration_s=0.5", "--set", "rate_rps=400"]
        measured = self.folder / "measured.json"
        self.good("measure", *real, "--predictor", kept, "--save-predictor", measured)
        self.assertGreater(json.loads(measured.read_text())["steps"], learnt["steps"])
        self.good("simulate", strait, *short, "--predictor", measured)
        self.good("measure", *real, "--policy", "strait:learn=no", "--predictor", measured,
                  "--save-predictor", again)
        self.assertEqual(json.loads(again.read_text()), json.loads(measured.read_text()))
        self.bad("measure", *real, "--policy", "temporal", "--save-predictor", again,
                 says="--save-predictor: policy 'temporal' learns nothing")
        self.bad("measure", *real, "--predictor", kept, "--journal", self.folder / "j",
                 says="leave one of them out")
        self.bad("measure", *real, "--set", "models.*.priority=1", "--predictor", kept,
                 says="had priority 2 there and has 1 here")

        self.bad("simulate", SCENARIO, "--policy", "strait", "--predictor", kept,
                 says="learnt of other models: it knows 'ResNet-50.1', 'ResNet-50.2'")
        self.bad("simulate", strait, "--policy", "temporal", "--predictor", kept,
                 says="policy 'temporal' learns nothing")
        self.bad("simulate", strait, "--policy", "temporal", "--save-predictor", again,
                 says="--save-predictor: policy 'temporal' learns nothing")
        self.bad("simulate", strait, "--predictor", kept, "--journal", self.folder / "j",
                 says="leave one of them out")
        kept.write_text(json.dumps({**learnt, "device": "another"}))
        self.bad("simulate", strait, "--predictor", kept,
                 says="kept.json: learnt on another device: 'another', not 'NVIDIA L4 (stand-in), ")
        learnt["parameters"][1]["value"] = 0.5
        kept.write_text(json.dumps(learnt))
        self.bad("simulate", strait, "--predictor", kept,
                 says="kept.json: parameter 'base': value is 0.5, must be from 1.1 to 10; write")
        kept.write_text("{")
        self.bad("simulate", strait, "--predictor", kept, says="kept.json:1:1: not valid JSON")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
