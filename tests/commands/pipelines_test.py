"""Scenarios with pipelines, called as a user does.

    pipelines_test.py TACTUS SOURCE_FOLDER
"""

import json
import sys
import unittest

from command_case import CommandCase, SOURCE

TRAFFIC = SOURCE / "scenarios/gpulets/traffic.toml"
GAME = SOURCE / "scenarios/gpulets/game.toml"
SHORT = ["--set", "warmup_s=1", "--set", "duration_s=4"]


class Pipelines(CommandCase):
    def test_simulate_counts_pipeline_requests_beside_those_to_models(self):
        file = self.folder / "report.json"
        text = self.good("simulate", TRAFFIC, *SHORT, "--json", file)
        run = json.loads(file.read_text())["runs"][0]
        traffic, = run["pipelines"]
        self.assertEqual((traffic["name"], traffic["slo_ms"]), ("traffic", 136))
        self.assertGreater(traffic["requests"], 10)
        self.assertEqual(traffic["requests"], sum(traffic["outcomes"].values()))
        self.assertEqual(traffic["outcomes"]["dropped"], sum(traffic["dropped_at"].values()))
        self.assertEqual(list(traffic["dropped_at"]), ["detect", "objects", "faces"])
        self.assertNotIn("items", traffic)
        row = next(line for line in text.splitlines() if line.startswith("traffic "))
        self.assertIn(f"{100 * traffic['bad_ratio']:.2f}", row.split())
        self.assertEqual([m["slo_ms"] for m in run["models"]], [69.5, 66.5, 66.5])

    def test_compare_has_a_row_for_each_policy_and_is_repeatable(self):
        words = ["compare", GAME, *SHORT, "--policies", "fifo,symphony", "--seeds", 2]
        text = self.good(*words)
        for policy in ("fifo", "symphony"):
            self.assertIn(f"\ngame, {policy} ", text)
        self.assertEqual(text, self.good(*words))

    def test_stages_run_once_per_row_under_every_rule(self):
        file = self.folder / "report.json"
        for name in ("chain", "crowd", "diamond", "text"):
            self.good("compare", SOURCE / f"scenarios/pipelines/{name}.toml", *SHORT, "--policies",
                      "clockwork", "--sweep",
                      "pipelines.*.deadlines=latency,equal,whole,redivide,persist,spare",
                      "--json", file)
            runs = json.loads(file.read_text())["runs"]
            self.assertEqual(len(runs), 6)
            for run in runs:
                pipeline, = run["pipelines"]
                self.assertGreater(pipeline["outcomes"]["on_time"], 0)
                self.assertEqual(pipeline.get("items", 0) > 0, name in ("crowd", "text"))

    def test_goodput_is_that_of_pipelines(self):
        file = self.folder / "peak.json"
        text = self.good("goodput", GAME, "--set", "duration_s=10", "--policies", "symphony",
                         "--seeds", 1, "--precision", 5, "--json", file)
        self.assertIn("no pipeline's and no other model's violation ratio", text)
        run = json.loads(file.read_text())["runs"][0]
        self.assertLessEqual(run["pipelines"][0]["bad_ratio"], 0.01)
        self.assertEqual(run["peak"]["limiting_model"], "game")
        self.bad("goodput", GAME, "--least-fluid", 0.5, says="has pipelines: leave it out")

    def test_planners_get_the_rates_that_pipelines_imply(self):
        text = self.good("plan", "gpulet", GAME)
        self.assertIn("gpulets-game: 70 requests/s of 2 models on 4 devices", text)
        text = self.good("plan", "gpulet", TRAFFIC, "--set", "pipelines.traffic.rate_rps=20")
        self.assertIn("gpulets-traffic: 60 requests/s of 3 models", text)
        plan = self.folder / "plan.json"
        for scenario, name in ((GAME, "game"), (TRAFFIC, "traffic")):
            self.good("plan", "gpulet", scenario, "--out", plan)
            self.assertIn(f"\n{name} ", self.good("simulate", scenario, *SHORT, "--plan", plan))

    def test_pipelines_are_simulated_and_refused_in_real_time(self):
        self.bad("measure", GAME, "--engine", "emulated", says="are for `tactus simulate`")
        self.bad("load", GAME, says="are for `tactus simulate`")

    def test_bad_input_is_one_clear_line(self):
        self.bad("simulate", TRAFFIC, "--set", "models.*.slo_ms=20",
                 says="model 'SSD-MobileNet' gets its requests from [[pipelines]]")
        self.bad("simulate", TRAFFIC, "--set", "pipelines.traffic.slo_ms=100",
                 says="budget_ms of detect + objects come to 136 ms, more than its slo_ms of 100")
        self.bad("simulate", GAME, "--set", "pipelines.game.slo_ms=7",
                 says="no batches can meet its SLO of 7 ms: the quickest along image take 7.672")
        file = self.folder / "circle.toml"
        text = GAME.read_text() + 'after = ["digits"]\n'
        file.write_text(text.replace('model = "LeNet"', 'model = "LeNet"\nafter = ["image"]'))
        self.bad("simulate", file, says="in a circle: 'digits' is after 'image' is after 'digits'")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
