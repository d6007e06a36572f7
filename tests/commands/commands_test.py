"""tactus simulate, compare and replay, called as a user does: what they print, write and return.

    commands_test.py TACTUS SOURCE_FOLDER
"""

import json
import re
import sys
import unittest

from command_case import CommandCase, SCENARIO, SHORT, SOURCE, tactus


class Commands(CommandCase):
    def test_simulate_prints_and_writes_the_same_figures(self):
        file = self.folder / "report.json"
        text = self.good("simulate", SCENARIO, *SHORT, "--seed", 5, "--wide", "--json", file)
        self.assertIn("STAND-IN, not measured", text)
        run = json.loads(file.read_text())["runs"][0]
        self.assertEqual((run["policy"], run["seed"]), ("edgeserving", 5))
        self.assertEqual(run["source"], "simulated")
        self.assertEqual(run["requests"], sum(run["outcomes"].values()))
        self.assertEqual([m["name"] for m in run["models"]], ["ResNet50", "ResNet101", "ResNet152"])
        row = next(line for line in text.splitlines() if line.startswith("edgeserving "))
        self.assertIn(f"{100 * run['bad_ratio']:.2f}", row.split())
        self.assertIn(f"{run['requests']} requests", text)

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
            self.assertIn(f"{100 * limits[-1]:.1f}", rows[1].split())
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

    def test_simulate_is_repeatable(self):
        files = [self.folder / name for name in ("a", "b")]
        for file in files:
            self.good("simulate", SCENARIO, *SHORT, "--journal", file)
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes())

    def test_replay_decides_the_same(self):
        file = self.folder / "journal"
        for policy in ("edgeserving", "symphony", "early-exit-edf"):
            self.good("simulate", SCENARIO, *SHORT, "--policy", policy, "--journal", file)
            self.assertIn("identical: ", self.good("replay", file))

    def test_replay_refuses_what_is_no_whole_journal(self):
        file = self.folder / "journal"
        self.good("simulate", SCENARIO, *SHORT, "--journal", file)
        whole = file.read_bytes()
        file.write_bytes(whole[:-7])
        self.bad("replay", file, says="was cut off")
        file.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
        self.bad("replay", file, says="is damaged")
        self.bad("replay", SCENARIO, says="is no Tactus journal")
        self.bad("replay", self.folder / "nothing", says="cannot read")

    def test_compare_sets_policies_side_by_side(self):
        file = self.folder / "report.json"
        text = self.good("compare", SCENARIO, *SHORT, "--policies",
                         "edgeserving:batch=4,all-final", "--seeds", "1,2",
                         "--sweep", "rate_rps=100,1200", "--json", file)
        runs = json.loads(file.read_text())["runs"]
        self.assertEqual(len(runs), 8)
        self.assertEqual({run["settings"]["rate_rps"] for run in runs}, {"100", "1200"})
        self.assertEqual({run["seed"] for run in runs}, {1, 2})
        rows = [line.split()[:2] for line in text.splitlines() if line.startswith(("edge", "all"))]
        self.assertEqual(rows, [["edgeserving:batch=4", "100"], ["all-final", "100"],
                                ["edgeserving:batch=4", "1200"], ["all-final", "1200"]])
        self.assertLessEqual(max(len(line) for line in text.splitlines() if "/" in line and
                                 line.startswith(("edge", "all"))), 120)
        # Two policies see the same arrivals.
        first = {(r["seed"], r["settings"]["rate_rps"]): r["offered_rps"] for r in runs[:4]}
        for run in runs[:4]:
            self.assertEqual(run["offered_rps"], first[run["seed"], run["settings"]["rate_rps"]])

    def test_compare_says_which_row_a_footer_is_about(self):
        text = self.good("compare", SCENARIO, *SHORT, "--policies", "fifo", "--sweep",
                         "rate_rps=100,1200", "--wide")
        for rate in (100, 1200):
            self.assertRegex(text, rf"(?m)^fifo, rate_rps={rate}: \d+ requests, ")

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
                                   ("fifo,symphony:aim=0.8", "'symphony:aim=0.8': policy option "
                                    "aim=0.8 changes nothing without gather=window")):
                # A run of this length would not end in time.
                self.bad(*command, SCENARIO, "--set", "duration_s=100000", "--policies", policies,
                         says=says)

    def test_goodput_that_no_rate_has_shows_the_best_that_was_seen(self):
        # Batches that are gathered for a while miss some deadlines at every rate, high or low.
        text = self.in_vain("goodput", SCENARIO, "--policies", "symphony:gather=window", "--seeds",
                            1)
        seen = re.search(r"no rate from 8.0 r/s up passes; the best seen is ([\d.]+) % bad of "
                         r"model 'ResNet\d+', at [\d.]+ r/s; less load is no remedy: "
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
        self.assertNotIn("100.00 % bad", text)

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
        names = [f"symphony:gather=window,aim=0.8,lead={lead}" for lead in (0.1, 0.2)]
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
        # 5000 requests in a tenth of a second, for lanes that carry an eighth of that: each runs by
        # itself and beside others.
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

    def test_priorities_are_an_order_however_far_apart_they_are(self):
        text = (SOURCE / "scenarios/strait/high.toml").read_text()
        text = text.replace("../profiles", str(SOURCE / "scenarios/profiles"))
        scenario, journal = self.folder / "levels.toml", self.folder / "journal"

        def figures(policy, high, low):
            numbers = {1: high, 2: low}
            scenario.write_text(re.sub(r"(?m)^priority = ([12])$",
                                       lambda m: f"priority = {numbers[int(m[1])]}", text))
            file = self.folder / "report.json"
            printed = self.good("simulate", scenario, "--policy", policy, "--set", "warmup_s=0",
                                "--set", "duration_s=2", "--json", file, "--journal", journal)
            self.assertIn("identical: ", self.good("replay", journal))
            run = json.loads(file.read_text())["runs"][0]
            for level in run["priorities"]:
                self.assertIn(f"bad {level['priority']} ", printed)
            self.assertEqual([p.pop("priority") for p in run["priorities"]], sorted((high, low)))
            return run["priorities"], run["models"]

        for policy in ("strait", "static-spatial", "preemptive-priority"):
            with self.subTest(policy):
                first = figures(policy, 1, 2)
                self.assertEqual(figures(policy, 1, 200), first)
                self.assertEqual(figures(policy, 999_999, 1_000_000), first)
                self.assertNotEqual(figures(policy, 2, 1), first)
        for wrong in (0, 1_000_001):
            self.bad("simulate", scenario, "--set", f"models.ViT-B-16.1.priority={wrong}",
                     says="priority: must be a whole number from 1 to 1000000")

    def test_goodput_of_an_slo_that_is_hardly_ever_met_is_nothing(self):
        file = self.folder / "report.json"
        text = self.in_vain("goodput", SCENARIO, "--policies", "all-final", "--set",
                            "duration_s=2", "--set", "models.ResNet152.slo_ms=3", "--set",
                            "expiry=hopeless", "--seeds", 1, "--json", file)
        self.assertRegex(text, r"no rate from .* passes; the best seen is .* % bad of model")
        self.assertNotIn("coarse", text)
        self.assertEqual(json.loads(file.read_text())["runs"][0]["peak"]["rate_rps"], 0)

    def test_an_slo_that_no_batch_can_meet_is_refused(self):
        impossible = ["--set", "models.ResNet152.slo_ms=0.5"]
        for words in (["simulate"], ["goodput"], ["measure", "--engine", "emulated", "--no-pin"],
                      ["compare", "--policies", "fifo"]):
            with self.subTest(words):
                self.bad(words[0], SCENARIO, *words[1:], *impossible,
                         says="'ResNet152': no batch can meet its SLO of 0.5 ms: the quickest")

    def test_doubtful_latencies_are_pointed_out(self):
        profile = json.loads((SOURCE / "scenarios/profiles/symphony-1080ti.json").read_text())
        cells = profile["models"][0]["exits"][0]["cells"]
        for key in ("mean_ms", "min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"):
            cells[3][key] = cells[0]["mean_ms"] / 2
        name = profile["models"][0]["name"]
        falls, hole = self.folder / "falls.json", self.folder / "hole.json"
        falls.write_text(json.dumps(profile))
        scenario = self.folder / "one.toml"
        scenario.write_text(f"""[scenario]
policy = "symphony"
duration_s = 1
profile = "falls.json"
[arrivals]
rate_rps = 50
[[models]]
name = "{name}"
slo_ms = 100
""")
        self.assertRegex(self.good("simulate", scenario), r"profile, doubtful: .* batch 4 takes .* "
                         r"less than batch 3")
        self.assertNotIn("doubtful", self.good("simulate", SCENARIO, *SHORT))
        text = self.good("compare", scenario, "--policies", "fifo,symphony", "--seeds", "1,2",
                         "--sweep", "rate_rps=20,40")
        self.assertEqual(text.count("profile, doubtful: "), 1, text)
        self.assertIn("profile, doubtful: ", self.good("goodput", scenario, "--seeds", 1))
        del cells[3]
        hole.write_text(json.dumps(profile))
        self.bad("simulate", scenario, "--set", f"profile={hole}",
                 says="cells: batch 4 of 1 to")

    def test_what_batches_are_assumed_to_use_is_said_where_they_share_a_lane(self):
        line = (r"(?m)^profile, doubtful: model 'ResNet\d+' has no resource figures in its "
                r"profile; assumed to use half of every resource and no transfer while it shares "
                r"a lane$")
        shared = ["--set", "lanes.slots=2"]
        for words in (["simulate", "--policy", "strait"], ["compare", "--policies", "strait"]):
            with self.subTest(words):
                text = self.good(words[0], SCENARIO, *words[1:], *SHORT, *shared)
                self.assertEqual(len(re.findall(line, text)), 3, text)
                self.assertNotIn("assumed", self.good(words[0], SCENARIO, *words[1:], *SHORT))
        self.assertNotIn("assumed", self.good(
            "simulate", SOURCE / "scenarios/strait/high.toml", "--set", "warmup_s=0", "--set",
            "duration_s=1"))

    def test_no_lanes_are_refused(self):
        self.bad("simulate", SCENARIO, "--set", "lanes.count=0", says="from 1 to 4096")

    def test_the_schedulers_figure_comes_from_its_benchmark(self):
        words = ["reproduce", "symphony", "--figure", "13-left", "--out", self.folder,
                 "--scenarios", SOURCE / "scenarios/symphony"]
        self.bad(*words, says="--scheduler FILE")
        other = '9,"what","paper","ours",yes'  # of another figure: it stays
        (self.folder / "claims.csv").write_text(f"figure,claim,paper,ours,holds\n{other}\n")

        def run(shards, dispatched, dropped, per_cpu_second, load="line rate", gather="prefix"):
            return {"scenario": f"35 models, 512 lanes, {load}", "commit": "c0ffee",
                    "policy": f"symphony:gather={gather}", "machine": "a machine", "settings": {
                        "models": "35", "lanes": "512", "shards": str(shards),
                        "dispatched_per_second": str(dispatched),
                        "dropped_per_second": str(dropped),
                        "requests_per_cpu_second": str(per_cpu_second),
                        "lateness_p50_us": "90", "lateness_p99_us": "2e3"}}

        measured = self.folder / "scheduler.json"
        runs = [run(1, 9e6, 1e6, 10e6), run(1, 12e6, 4e6, 16e6), run(1, 15e6, 5e6, 20e6),
                run(2, 18e6, 2e6, 12e6), run(1, 1e6, 0, 1e6, load="1 M requests/s"),
                run(1, 30e6, 0, 30e6, gather="window")]  # neither of the last two
        measured.write_text(json.dumps({"runs": runs}))
        done = tactus(*words, "--scheduler", measured)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("bar: >= 5; ours: 12.0", done.stdout)  # dispatched, of the median run
        self.assertIn("linear in the threads; ours: 1.50 x", done.stdout)
        claims = (self.folder / "claims.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[0] for line in claims[1:]], ["9"] + 4 * ["13-left"])
        table = (self.folder / "fig13-left.csv").read_text()
        self.assertIn("at commit c0ffee; a machine", table.splitlines()[0])
        self.assertIn("1 model thread,5,35,512,12,4,12,16,90,2000,3", table.splitlines())

        for text, says in (("{", "is no JSON"), ('{"runs": []}', "no run at line rate"),
                           (json.dumps({"runs": [run(1, "x", 0, 1)]}),
                            "runs[0].settings.dispatched_per_second: must be a number")):
            measured.write_text(text)
            self.bad(*words, "--scheduler", measured, says=says)

    def test_a_figure_without_its_scenarios_leaves_no_folder(self):
        out = self.folder / "out"
        self.bad("reproduce", "symphony", "--figure", "2", "--out", out, "--scenarios",
                 self.folder, says="cannot read this scenario")
        self.assertFalse(out.exists())

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

    def test_bad_input_is_one_clear_line(self):
        self.bad("simulate", self.folder / "x.toml", says="cannot read this scenario")
        self.bad("simulate", SCENARIO, "--policy", "zz", says="zz")
        self.bad("simulat", SCENARIO, says="there is no command 'simulat'")
        self.bad("plan", "lane", says="there is no command 'lane'")
        self.bad("simulate", SCENARIO, "--set", "rate=1", says="--set rate: a scenario has no such")
        self.bad("simulate", SCENARIO, "--set", "rate_rps", says="write KEY=VALUE")
        self.bad("simulate", SCENARIO, "--set", "profile=/no/such/file", says="tactus profile")
        for command in ("simulate", "compare", "goodput"):  # before any work is done
            self.bad(command, SCENARIO, "--json", "/no/such/folder/x", says="cannot write")
        self.bad("simulate", SCENARIO, "--json", self.folder, says="is a folder")
        self.bad("simulate", SCENARIO, "--journal", "/no/such/folder/x", says="cannot write")
        self.bad("simulate", SCENARIO, "--json", self.folder / "a", "--journal",
                 f"{self.folder}/../{self.folder.name}/a", says="--json writes this file too")
        self.assertEqual(list(self.folder.iterdir()), [], "refused before it was written")
        self.good("simulate", SCENARIO, *SHORT, "--json", "/dev/null", "--journal", "/dev/null")
        self.bad("compare", SCENARIO, "--policies", "fifo", "--sweep", "zipf=1,x",
                 says="--sweep zipf")
        self.bad("simulate", SCENARIO, "--set", "percentile=42", says="none that a profile holds")
        self.bad("compare", SOURCE / "scenarios/symphony/fig15.toml", "--policies", "fifo",
                 "--sweep", "rate_rps=100,200", says="every model states its own rate")
        scenario = self.folder / "wrong.toml"
        scenario.write_text("[scenario]\nduration = 3\n")
        self.bad("simulate", scenario, says="wrong.toml:2:12: duration: unknown in [scenario]")
        scenario.write_text("[[models]]\nname = 'm'\n")
        self.bad("simulate", scenario, says="names no profile")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
