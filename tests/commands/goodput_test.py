"""tactus goodput, compare and plan lanes, called as a user does: what is asked of several policies.

    goodput_test.py TACTUS SOURCE_FOLDER
"""

import json
import re
import sys
import time
import unittest

from command_case import CommandCase, SCENARIO, SHORT, SOURCE, tactus


class Goodput(CommandCase):
    def test_goodput_finds_the_peak(self):
        file = self.folder / "report.json"
        words = ["goodput", SCENARIO, "--set", "duration_s=4", "--policies",
                 "early-exit-edf:batch=1,all-final", "--seeds", 2, "--at", "0.5,1.5",
                 "--json", file]
        text = self.good(*words)
        report = json.loads(file.read_text())
        self.assertEqual(len(report["runs"]), 2 * 2 * 3)
        for run in report["runs"]:
            if run["settings"]["of_peak"] == "1":
                self.assertLessEqual(max(m["bad_ratio"] for m in run["models"]), 0.01)
                self.assertEqual(run["peak"]["seeds"], 2)
                self.assertEqual(run["lanes_touched"], 1)
                self.assertAlmostEqual(sum(run["batch_sizes"].values()), 1)
        self.assertIn("makes it coarse", text)  # 4 s are too short, and it must say so
        first = report["runs"][0]["peak"]
        self.assertIn(f"{first['rate_rps']:.0f}", text)
        # A bar that is missed shows in the exit code.
        done = tactus(*words, "--least-flat-top", 5)
        self.assertEqual(done.returncode, 1)
        self.assertIn("MISS  early-exit-edf:batch=1: goodput at 1.5 x the peak", done.stdout)

    # Models that are alike are judged with fewer requests together than each by itself.
    def test_goodput_of_all_requests_together_begins_where_it_is_told(self):
        file = self.folder / "report.json"
        words = ["goodput", SCENARIO, *SHORT, "--policies", "symphony", "--seeds", 2]
        self.good(*words, "--json", file)
        apart = json.loads(file.read_text())["runs"][0]["peak"]
        self.assertEqual(len(apart["rates_rps"]), 2)
        self.assertAlmostEqual(sum(apart["rates_rps"]) / 2, apart["rate_rps"])
        text = self.good(*words, "--together", "--start", apart["rate_rps"], "--first-step", 1.1,
                         "--json", file)
        self.assertIn("at which the violation ratio of all requests together does not exceed 1 %",
                      text)
        together = json.loads(file.read_text())["runs"][0]["peak"]
        self.assertGreaterEqual(together["rate_rps"], 0.99 * apart["rate_rps"])
        self.assertEqual(together["limiting_model"], "")
        self.bad("goodput", SOURCE / "scenarios/gpulets/game.toml", "--together",
                 says="--together is about single requests")

    def test_a_policy_that_fails_takes_no_other_with_it(self):
        # Nexus's planner counts on the final exit, which takes longer than this SLO; to exit early
        # is in time.
        file = self.folder / "report.json"
        tight = ["goodput", SCENARIO, *SHORT, "--seeds", 1, "--set", "models.ResNet152.slo_ms=9"]
        why = "the planner nexus finds no place for model 'ResNet152': one request alone takes"
        text = self.in_vain(*tight, "--policies", "nexus,early-exit-edf", "--json", file)
        self.assertRegex(text, r"(?m)^nexus +failed$")
        self.assertIn(f"\nnexus failed: {why}", text)
        self.assertRegex(text, r"(?m)^early-exit-edf +\d\d+ ")
        report = json.loads(file.read_text())
        self.assertEqual([run["policy"] for run in report["runs"]], ["early-exit-edf"])
        self.assertGreater(report["runs"][0]["peak"]["rate_rps"], 0)
        self.assertEqual([failed["policy"] for failed in report["failed"]], ["nexus"])
        self.assertIn(why, report["failed"][0]["why"])
        # With nobody else there is nothing to report.
        self.bad(*tight, "--policies", "nexus", says=why)
        self.bad(*tight, "--policies", "nexus,nexus:epoch=5000", says=why)
        # So it is where lanes are looked for.
        lanes = ["plan", "lanes", *tight[1:], "--set", "rate_rps=300"]
        text = self.in_vain(*lanes, "--policies", "nexus,early-exit-edf", "--json", file)
        self.assertRegex(text, r"(?m)^nexus +failed$")
        self.assertIn(f"\nnexus failed: {why}", text)
        self.assertRegex(text, r"(?m)^early-exit-edf +\d ")
        plan = json.loads(file.read_text())
        self.assertEqual([entry["policy"] for entry in plan["policies"]], ["early-exit-edf"])
        self.assertIn(why, plan["failed"][0]["why"])
        self.bad(*lanes, "--policies", "nexus", says=why)

    def test_a_mistake_in_a_policy_shows_before_the_first_runs(self):
        for command in (["goodput"], ["compare"], ["plan", "lanes"]):
            for policies, says in (("fifo,zz", "'zz': no policy 'zz'"),
                                   ("fifo,symphony:gather=prefix,aim=0.8",
                                    "'symphony:gather=prefix,aim=0.8': policy option "
                                    "aim=0.8 changes nothing without gather=window")):
                # A run of this length would not end in time.
                self.bad(*command, SCENARIO, "--set", "duration_s=100000", "--policies", policies,
                         says=says)

    def test_goodput_that_no_rate_has_shows_the_best_that_was_seen(self):
        # Batches that are gathered for a while miss some deadlines at every rate, high or low.
        text = self.in_vain("goodput", SCENARIO, "--policies", "symphony:published", "--seeds",
                            1)
        seen = re.search(r"no rate from 8.0 r/s up passes; the best seen is ([\d.]+) % violations "
                         r"of model 'ResNet\d+', at [\d.]+ r/s; less load is no remedy: "
                         r"[\d.]+ % at 8.0 r/s", text)
        self.assertTrue(seen, text)
        self.assertTrue(1 < float(seen[1]) < 20, text)

    def test_goodput_does_not_blame_a_model_of_which_nothing_came(self):
        # By its schedule, one of the models rests during the first seconds.
        (self.folder / "rates.csv").write_text(
            "at_s,ResNet50,ResNet101,ResNet152\n0,1,1,0\n60,1,1,1\n")
        text = self.in_vain("goodput", SCENARIO, *SHORT, "--set", "warmup_requests=0", "--set",
                            f"schedule={self.folder / 'rates.csv'}", "--seeds", 1)
        self.assertRegex(text, r"nothing of model 'ResNet152' was counted, which a longer run may")
        self.assertNotIn("100.00 % violations", text)

    def test_what_is_no_number_is_refused_by_every_command(self):
        for words in (["goodput", SCENARIO, "--at", "nan"], ["goodput", SCENARIO, "--at", "1,NaN"],
                      ["goodput", SCENARIO, "--least-fluid", "inf"],
                      ["plan", "lanes", SCENARIO, "--bad", "nan"],
                      ["plan", "partition", SCENARIO, "--time-limit", "-nan"]):
            self.bad(*words, says="is no number")

    def test_goodput_refuses_what_would_show_nothing(self):
        self.bad("goodput", SCENARIO, "--least-flat-top", 0.99, says="add --at 1.5")
        self.bad("goodput", SCENARIO, "--least-flat-top", 0.99, "--at", "0.5,1",
                 says="add --at 1.5")
        self.bad("goodput", SCENARIO, "--least-staggered", 0.9, says="use --least-fluid")
        self.bad("goodput", SOURCE / "scenarios/symphony/fig15.toml", says="--set autoscale.inter")
        self.bad("goodput", SCENARIO, "--set", "warmup_requests=10000000",
                 says="too short a run to judge a load by")

    def test_rows_of_policies_with_long_names_can_be_told_apart(self):
        names = [f"symphony:when=frontrun,gather=window,aim=0.8,rate=1000,data=0.1,lead={lead}"
                 for lead in (0.1, 0.2)]
        # Such a short run has too few requests for a peak, which is goodput's exit code 1.
        for words, code in ((["compare", "--sweep", "rate_rps=100"], 0),
                            (["goodput", "--seeds", 1], 1)):
            text = self.good(words[0], SCENARIO, *words[1:], *SHORT, "--policies",
                             ",".join(names), code=code)
            for number, name in enumerate(names, 1):
                self.assertIn(f"\n[{number}] {name}\n", text)
                self.assertIn(f"..[{number}]  ", text)

    def test_help_says_how_lists_are_written(self):
        for command in (["compare"], ["goodput"], ["plan", "lanes"]):
            text = " ".join(self.good(*command, "--help").split())
            self.assertIn("--policies A,B (commas, or the option again)", text)
            self.assertNotIn("TEXT ...", text)
            done = tactus(*command, SCENARIO, "--policies", "fifo", "all-final")
            self.assertEqual(done.returncode, 2)
            self.assertIn("not expected: all-final", done.stderr)

    def test_goodput_of_an_slo_that_is_hardly_ever_met_is_nothing(self):
        file = self.folder / "report.json"
        text = self.in_vain("goodput", SCENARIO, "--policies", "all-final", "--set",
                            "duration_s=2", "--set", "models.ResNet152.slo_ms=3", "--set",
                            "expiry=unmeetable", "--seeds", 1, "--json", file)
        self.assertRegex(text, r"no rate from .* passes; the best seen is .* % violations of model")
        self.assertNotIn("coarse", text)
        self.assertEqual(json.loads(file.read_text())["runs"][0]["peak"]["rate_rps"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
