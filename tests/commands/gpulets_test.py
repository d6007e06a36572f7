"""How plans of gpu-lets are made, drawn and run: tactus plan gpulet and simulate --plan.

    gpulets_test.py TACTUS SOURCE_FOLDER
"""

import json
import re
import sys
import unittest

from command_case import CommandCase, SCENARIO, SOURCE

EQUAL = SOURCE / "scenarios/gpulets/equal.toml"


class Gpulets(CommandCase):
    def test_a_plan_is_run_on_the_shares_that_it_was_made_for(self):
        plan, bare = self.folder / "plan.json", self.folder / "bare.toml"
        text = EQUAL.read_text().replace('"../', f'"{EQUAL.parent.parent}/')
        bare.write_text(text.replace("shares = [20, 40, 50, 60, 80]", ""))
        run = ["--set", "duration_s=8", "--plan", plan]
        usual, none = "20, 40, 50, 60, 80 % of a device by a stand-in, exponent 1", "none"
        for scenario, options, made_for, own in (
                (bare, [], usual, none),
                (bare, ["--set", "plan.shares=40,60"], "40, 60 % of a device by", none),
                (EQUAL, ["--set", "plan.utilization_base=device"],
                 f"{usual}, utilization_base device", usual),
                (EQUAL, ["--shares", "33.3,66.6", "--exponent", 0.5],
                 "33.3, 66.6 % of a device by a stand-in, exponent 0.5", usual)):
            self.good("plan", "gpulet", scenario, *options, "--out", plan)
            text = self.good("simulate", scenario, *run)
            self.assertIn(f"\nshares: {made_for}", text)
            self.assertIn(f", as {plan} was made for; the scenario says {own}\n", text)
        self.good("plan", "gpulet", EQUAL, "--out", plan)
        self.assertNotIn("shares: ", self.good("simulate", EQUAL, *run))
        written = json.loads(plan.read_text())
        del written["shares"], written["exponent"], written["utilization_base"]
        plan.write_text(json.dumps(written))
        self.bad("simulate", bare, *run, says="name it (--on-share, or a scenario's [plan] shares)")
        self.good("simulate", bare, *run, "--set", "plan.shares=20,40,50,60,80")

    def test_a_plan_of_measured_shares_is_run_on_these(self):
        source = SOURCE / "scenarios/profiles/gpulets-standin-2080ti.json"
        profile = json.loads(source.read_text())
        half, whole = self.folder / "half.json", self.folder / "whole.json"
        whole.write_text(json.dumps(profile))
        for model in profile["models"]:
            for cell in (cell for e in model["exits"] for cell in e["cells"]):
                cell.update({key: 1.2 * cell[key] for key in cell if key.endswith("_ms")})
        half.write_text(json.dumps(profile))
        plan, file = self.folder / "plan.json", self.folder / "report.json"
        words = ["plan", "gpulet", EQUAL, "--set", "rate_rps=1000", "--on-share"]
        measured = "\nshares: 50 % of a device and the whole, measured one by one"
        self.assertIn(f"{measured}\n",
                      self.good(*words, f"50={half}", f"100={whole}", "--out", plan))
        self.assertIn("\nshares: the whole device, measured\n", self.good(*words, f"100={whole}"))
        run = ["simulate", EQUAL, "--set", "rate_rps=1000", "--set", "duration_s=8",
               "--plan", plan]
        self.assertIn(f"{measured}, as ", self.good(*run, "--json", file))
        # Plan and profiles go together.
        self.assertEqual([each["profile"] for each in json.loads(plan.read_text())["on_share"]],
                         ["half.json", "whole.json"])
        moved = self.folder / "moved"
        moved.mkdir()
        plan, half, whole = (path.rename(moved / path.name) for path in (plan, half, whole))
        run[-1] = plan
        self.good(*run)
        lanes = json.loads(file.read_text())["runs"][0]["lanes"]
        self.assertIn("of 50 %", [lane["kind"] for lane in lanes])
        text = self.good(*words, f"33.3={half}", f"66.6={half}", f"100={whole}")
        self.assertIn("|33.3 %", text)  # 66.6 % is the complement of a third
        self.bad(*words, f"30={half}", f"100={whole}",
                 says="--on-share: no share is the complement of 30 %")
        half.unlink()
        self.bad(*run, says=f"{plan}: on_share: {half}: cannot read this profile")

    def test_a_share_without_its_complement_is_refused(self):
        for words, says in ((["--shares", "33,66"], "--shares: [plan] shares: no share is the "
                             "complement of 33 %, so no device will ever be split there; add 67 "
                             "%, or leave"),
                            (["--set", "plan.shares=20,50"], "[plan] shares: no share is the "
                             "complement of 20 %")):
            self.bad("plan", "gpulet", EQUAL, *words, says=says)
        kinds = self.folder / "kinds.toml"
        text = SCENARIO.read_text().replace('profile = "', f'profile = "{SCENARIO.parent}/')
        kinds.write_text(text + '[[lane_kinds]]\nname = "fast"\ncount = 1\nspeed = 4\n')
        self.bad("plan", "gpulet", kinds, says="leave out [[lane_kinds]] and slots")

    def test_no_neighbour_quickens_a_batch(self):
        for words, says in ((["--interference=0,0,0,-100,1"], "--interference: batches of '"),
                            (["--interference=0,0,0,0,0.5"], "would take 0.5 times as long beside"),
                            (["--set", "plan.interference=0,-9,0,0,1", "--planner", "ideal"],
                             "equal.toml: [plan] interference: batches of '")):
            self.bad("plan", "gpulet", EQUAL, *words, says=says)
        waves = SOURCE / "scenarios/gpulets/waves.toml"
        self.bad("simulate", waves, "--set", "plan.interference=0,0,0,0,-3",
                 says="[plan] interference: batches of 'LeNet' on 20 % of a device would take -3 ")
        self.good("plan", "gpulet", waves)  # its own are of the paper's size

    def test_shares_of_a_plan_that_have_no_rest_are_the_plans(self):
        plan = self.folder / "plan.json"
        self.good("plan", "gpulet", EQUAL, "--out", plan)
        written = json.loads(plan.read_text())
        written["shares"].insert(0, 10)
        plan.write_text(json.dumps(written))
        self.bad("simulate", EQUAL, "--plan", plan,
                 says=f"tactus simulate: {plan}: shares: no share is the complement of 10 %")

    def test_more_than_arrives_is_planned_for(self):
        words = ["plan", "gpulet", EQUAL, "--set", "rate_rps=500"]
        used = {}
        for headroom, told in ((0, ""), (0.25, " and 25 % more ([plan] headroom)"),
                               (1, " and 100 % more ([plan] headroom)")):
            text = self.good(*words, "--set", f"plan.headroom={headroom}")
            self.assertIn(f": 500 requests/s of 5 models on 4 devices{told}, planned by", text)
            used[headroom] = float(text.splitlines()[-1].split()[0])
        self.assertEqual(self.good(*words), self.good(*words, "--set", "plan.headroom=0.25"))
        self.assertLess(used[0], used[1])
        plan = self.folder / "plan.json"
        self.good(*words, "--out", plan)
        rates = [model["rate_rps"] for model in json.loads(plan.read_text())["models"]]
        self.assertEqual(rates, [100] * 5, "what arrives, not what is planned for")
        self.bad(*words, "--set", "plan.headroom=10", says="and 1000 % more ([plan] headroom): ")

    def test_no_name_is_lost_in_the_drawing(self):
        names = re.findall(r'(?m)^name = "([^"]+)"', EQUAL.read_text())[1:]
        self.assertEqual(len(names), 5)
        for rate in (50, 250, 700):
            text = self.good("plan", "gpulet", EQUAL, "--set", f"rate_rps={rate}")
            drawn = text[:text.index("\nmodel ")]
            for name in names:
                self.assertRegex(drawn, rf"[| ]{name}(,| |\|)")
            rows = [row for row in drawn.splitlines() if row[4:5] == "|"]
            self.assertEqual({len(row) for row in rows}, {105}, drawn)
        scenario = self.folder / "long.toml"
        text = EQUAL.read_text().replace('"../', f'"{EQUAL.parent.parent}/')
        scenario.write_text(text.replace('name = "LeNet"', 'name = "%s"\nprofile_as = "LeNet"' %
                                         ("LeNet" * 30)))
        self.assertRegex(self.good("plan", "gpulet", scenario), r"\|(LeNet)+[LeNt]*\.\. *\|")

    def test_a_planner_that_nobody_would_read_is_refused(self):
        planner = ["--set", "plan.planner=gpulet", "--set", "duration_s=8"]
        self.bad("simulate", EQUAL, *planner, says="policy 'fifo' reads no plan, so [plan] "
                 'planner = "gpulet" would have no effect; choose one that does (--policy planned)')
        text = self.good("compare", EQUAL, *planner, "--policies", "fifo,planned")
        self.assertEqual(text.count("policy, doubtful: fifo reads no plan, so [plan] planner"), 1)
        self.assertNotIn("doubtful: planned", text)

    def test_the_ideal_planner_serves_nobody(self):
        ideal = "'ideal' is for `tactus plan gpulet` alone, too slow for a load that changes"
        planners = "gpulet, gpulet-retry, self-tuning, nexus, nexus-half"
        serve = ["serve", "--models", self.folder, "--policy", "planned", "--planner"]
        self.bad(*serve, "ideal", says=f"--planner: {ideal}; there are {planners}")
        self.bad(*serve, "idle", says=f"--planner: no planner 'idle'; there are {planners}")
        self.bad("simulate", EQUAL, "--set", "plan.planner=ideal",
                 says=f"plan.planner: must be one of none, {planners}; {ideal}")

    def test_lanes_that_are_measured_are_whole_devices(self):
        # Else batches would take what they take on the smallest share, or a profile would be
        # refused that does not say how to get at shares.
        measure = ["measure", "--engine", "emulated", "--no-pin", "--set", "warmup_s=0",
                   "--set", "duration_s=0.2", "--set", "warmup_requests=0",
                   "--set", "plan.shares=40,60"]
        journal = self.folder / "journal"
        self.good(*measure, SCENARIO, "--journal", journal)
        self.assertIn("identical: ", self.good("replay", journal))
        self.bad(*measure, EQUAL, "--set", "plan.planner=gpulet", says="gpulets-equal: [plan] "
                 "planner is for `tactus simulate`, and --planner for `tactus serve`")

    def test_options_of_a_device_that_nothing_splits_are_refused(self):
        for option in (["--device-memory-mb", 500], ["--on-share", "100=whole.json"]):
            self.bad("serve", "--models", self.folder, *option, says=f"{option[0]}: nothing splits "
                     "the device into shares; add --planner gpulet-retry, or --plan")

    def test_a_plan_beside_a_planner_serves_at_first(self):
        plan, file = self.folder / "plan.json", self.folder / "report.json"
        self.good("plan", "gpulet", EQUAL, "--planner", "nexus", "--set", "rate_rps=1000",
                  "--out", plan)
        used = sum(lane["share"] for lane in json.loads(plan.read_text())["lanes"])
        text = self.good("simulate", EQUAL, "--plan", plan, "--set", "plan.planner=gpulet",
                         "--json", file)
        self.assertIn(f"\nplan: at first as {plan} says, then by gpulet as the load changes\n",
                      text)
        layout = json.loads(file.read_text())["runs"][0]["layout_over_time"]
        self.assertAlmostEqual(layout[0]["devices_used"], used)
        self.assertLess(layout[-1]["devices_used"], used)
        self.good("plan", "gpulet", EQUAL, "--shares", "40,60", "--out", plan)
        self.bad("simulate", EQUAL, "--plan", plan, "--set", "plan.planner=nexus-half",
                 says="nexus-half needs 50 % among the shares of a device; add it, or take another")

    def test_what_a_command_reads_is_not_written_over(self):
        scenario, profile = self.folder / "s.toml", self.folder / "p.json"
        gpulets = SOURCE / "scenarios/gpulets"
        profile.write_bytes((gpulets.parent / "profiles/gpulets-standin-2080ti.json").read_bytes())
        text = (gpulets / "equal.toml").read_text()
        scenario.write_text(re.sub('(?m)^profile = .*', 'profile = "p.json"', text))
        plan, other = self.folder / "plan.json", self.folder / "other.json"
        on_share = ["--on-share", f"50={profile}", f"100={other}"]
        other.write_bytes(profile.read_bytes())
        self.good("plan", "gpulet", scenario, *on_share, "--out", plan)
        cells = self.folder / "cells.csv"
        cells.write_text("model,exit,batch,latency_ms\nm,1,1,2\n")
        link = self.folder / "link"
        link.symlink_to("s.toml")
        hard, hard_profile = self.folder / "hard", self.folder / "hard-profile"
        hard.hardlink_to(scenario)  # another name of the same bytes
        hard_profile.hardlink_to(profile)
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        lost = "reads this file, which would be lost"
        for says, *words in (
                (f"--out: {scenario}: scenario {lost}", "plan", "gpulet", scenario, "--out", link),
                (f"--out: {scenario}: scenario {lost}", "plan", "gpulet", scenario, "--out", hard),
                (f"{hard_profile}: gpulets-equal {lost}", "simulate", scenario, "--json",
                 hard_profile),
                (f"--journal: {scenario}: --json writes this file too", "simulate", EQUAL,
                 "--json", hard, "--journal", scenario),
                (f"--out: {other}: --on-share {lost}", "plan", "gpulet", scenario, *on_share,
                 "--out", other),
                (f"--json: {plan}: --plan {lost}", "simulate", scenario, "--plan", plan, "--json",
                 plan),
                (f"{other}: {plan} {lost}", "simulate", scenario, "--plan", plan, "--json", other),
                (f"--json: {scenario}: input {lost}", "plan", "partition", scenario, "--json",
                 scenario),
                (f"--out: {cells}: --import-cells {lost}", "profile", "--import-cells", cells,
                 "--out", cells)):
            self.bad(*words, says=says)
        for command in ("simulate", "compare", "goodput", "measure", ("plan", "lanes")):
            words = [command] if isinstance(command, str) else command
            words = [*words, scenario, *(["--policies", "fifo"] if command == "compare" else [])]
            self.bad(*words, "--json", scenario, says=f"--json: {scenario}: scenario {lost}")
            self.bad(*words, "--json", profile, says=f"{profile}: gpulets-equal {lost}")
        self.bad("load", scenario, "--json", profile, says=f"{profile}: gpulets-equal {lost}")
        self.assertEqual({path: path.read_bytes() for path in self.folder.iterdir()}, before)

    # Without the largest load in mind, the ideal planner would refuse those above the first.
    def test_many_loads_are_planned_for_at_once(self):
        loads, file = self.folder / "loads.csv", self.folder / "plan.json"
        names = "LeNet,GoogLeNet,ResNet50,SSD-MobileNet,VGG-16"
        loads.write_text(f"{names}\n0,0,0,0,50\n50,50,50,50,50\n200,200,200,200,200\n0,9e6,0,0,0\n")
        for planner in ("nexus", "gpulet-published", "gpulet-retry", "ideal"):
            words = ["plan", "gpulet", EQUAL, "--loads", loads, "--planner", planner,
                     "--set", "plan.headroom=0", "--set", "process=uniform"]
            text = self.good(*words, "--json", file)
            self.assertIn(f"{planner} plans for 3 of 4 loads on 4 devices\n", text)
            told = json.loads(file.read_text())
            self.assertEqual(told["loads_planned"], [True, True, True, False])
        lenet, *_ = told["models"]
        self.assertEqual((lenet["name"], lenet["slo_ms"], lenet["rate_rps"]), ("LeNet", 5, 50))
        shares = lenet["on_share"]
        self.assertEqual([each["share"] for each in shares], [0.2, 0.4, 0.5, 0.6, 0.8, 1])
        self.assertEqual(sum(each["knee"] for each in shares), 1)
        for less, more in zip(shares, shares[1:]):
            self.assertGreaterEqual(less["latency_ms"][7], more["latency_ms"][7])
            self.assertLessEqual(less["most_rps"], more["most_rps"])
        self.assertEqual(len(shares[0]["latency_ms"]), 32)
        for text, says in ((f"{names}\n1,1,1,1,-1\n", "loads.csv:2: '-1' is no rate"),
                           (f"{names}\n", "no row says a load"),
                           (f"{names},x\n1,1,1,1,1,1\n", "has 6 columns for 5 models"),
                           ("LeNet\n1\n", "has no column 'GoogLeNet'")):
            loads.write_text(text)
            self.bad(*words, says=says)
        self.bad(*words, "--out", file, says="--out")

    # A scenario whose lanes slow each other says what its planners are to count on.
    def test_interference_is_fitted_to_a_scenarios_device(self):
        file = self.folder / "fit.json"
        text = self.good("fit", "interference", EQUAL, "--json", file)
        self.assertIn("2500 measurements, 754 of them held out, drawn by pairs, seed 1\n", text)
        fit = json.loads(file.read_text())
        self.assertEqual(len(fit["slowdowns"]), 2500)
        self.assertGreaterEqual(min(fit["slowdowns"]), 1)
        self.assertEqual(len(fit["errors"]["held_out"]), 754)
        self.assertLess(fit["errors"]["held_out"][375], fit["errors"]["no_model"][375])
        c = ",".join(map(repr, fit["coefficients"]))
        self.good("plan", "gpulet", EQUAL, f"--interference={c}")
        text = self.good("fit", "interference", EQUAL, "--by-side", "--set", "seed=2")
        self.assertIn("drawn by sides, seed 1\n", text)
        self.bad("fit", "interference", SCENARIO, says="lanes do not slow each other here")
        measured = SOURCE / "docs/results/gpulets/pairs.csv"
        self.bad("fit", "interference", measured, "--set", "seed=2",
                 says="--set is for scenarios")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
