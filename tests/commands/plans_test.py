"""Which lanes, which policy with which options, which models where: tactus plan and policies.

    plans_test.py TACTUS SOURCE_FOLDER
"""

import csv
import json
import re
import sys
import unittest

from command_case import CommandCase, SCENARIO, SHORT, SOURCE, reproduce, tactus


class Plans(CommandCase):
    def lane_kinds(self, kinds='[[lane_kinds]]\nname = "fast"\ncount = 1\nspeed = 4\n'):
        scenario = self.folder / "kinds.toml"
        text = SCENARIO.read_text().replace("count = 1", "count = 3")
        text = text.replace('profile = "', f'profile = "{SCENARIO.parent}/')
        scenario.write_text(text + kinds)
        return scenario

    def test_lanes_of_several_kinds_are_simulated_by_every_command(self):
        scenario = self.lane_kinds()
        file = self.folder / "report.json"
        journal = self.folder / "journal"
        text = self.good("simulate", scenario, *SHORT, "--json", file, "--journal", journal)
        self.assertRegex(text, r"edgeserving: lanes, 1 fast busy \d+ %, 2 plain busy \d+ %")
        lanes = json.loads(file.read_text())["runs"][0]["lanes"]
        self.assertEqual([lane["kind"] for lane in lanes], ["fast", "plain", "plain"])
        self.assertIn("identical: ", self.good("replay", journal))
        text = self.good("compare", scenario, *SHORT, "--policies", "fifo,symphony",
                         "--sweep", "lane_kinds.fast.speed=1,4")
        for speed in (1, 4):  # which row a footer is about
            self.assertIn(f"\nsymphony, lane_kinds.fast.speed={speed}: lanes, 1 fast busy", text)
        text = self.good("goodput", scenario, "--set", "duration_s=4", "--seeds", 1)
        self.assertIn("r/s on 3 lanes (1 fast of speed 4, 2 plain), with the final exit", text)
        text = self.good("plan", "lanes", scenario, *SHORT, "--set", "rate_rps=1200", "--seeds", 1)
        self.assertIn("given: 1 fast of speed 4; further lanes are plain", text)

    def test_kinds_of_lanes_that_are_too_slow_are_pointed_out(self):
        slow = '[[lane_kinds]]\nname = "old"\ncount = 2\nspeed = 0.02\n'
        scenario = self.lane_kinds(slow)
        for command, options in ((["simulate"], []), (["compare"], ["--policies", "symphony"]),
                                 (["goodput"], ["--seeds", 1]),
                                 (["plan", "lanes"], ["--seeds", 1])):
            done = tactus(*command, scenario, *options, *SHORT)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertEqual(done.stdout.count("lanes, doubtful: "), 3, done.stdout)
            self.assertRegex(done.stdout, r"lanes, doubtful: 2 old, model 'ResNet50': no batch "
                             r"can meet its SLO of 50 ms: the quickest \(exit \w+, batch 1, on "
                             r"lanes of speed 0.02\) takes [\d.]+ ms at best; give it an SLO above")
        self.assertNotIn("doubtful", self.good("simulate", self.lane_kinds(), *SHORT))
        # Where all of them are, nothing can run.
        self.bad("simulate", self.lane_kinds(slow), *SHORT, "--set", "lanes.count=2",
                 says="no batch can meet its SLO of 50 ms")

    def test_gpulets_are_planned_drawn_and_refused(self):
        scenario = SOURCE / "scenarios/gpulets/equal.toml"
        used = {}
        for planner in ("gpulet", "self-tuning", "nexus", "nexus-half"):
            text = self.good("plan", "gpulet", scenario, "--planner", planner, "--set",
                             "rate_rps=200")
            self.assertIn("STAND-IN", text)
            self.assertEqual(text.count(" of 4 devices are in use"), 1)
            for model in ("LeNet", "GoogLeNet", "ResNet50", "SSD-MobileNet", "VGG-16"):
                self.assertGreaterEqual(text.count(model), 2, text)  # drawn, and in the table
            used[planner] = float(text.splitlines()[-1].split()[0])
        self.assertLess(used["gpulet"], used["nexus"])
        ideal = self.good("plan", "gpulet", SOURCE / "scenarios/gpulets/long-only.toml",
                          "--planner", "ideal", "--shares", "40,60")
        self.assertIn("planned by ideal", ideal)
        self.bad("plan", "gpulet", scenario, "--set", "rate_rps=9000", says="no place for")
        for planner in ("gpulet", "nexus", "ideal"):
            self.bad("plan", "gpulet", scenario, "--set", "rate_rps=20000", "--planner", planner,
                     says="% of the load would fit; 'LeNet' lacks ")
        self.bad("plan", "gpulet", scenario, "--planner", "nexus", "--interference", "0,0,0,0,1",
                 says="--interference: nexus counts on none")
        self.bad("plan", "gpulet", scenario, "--interference", "0,0,0,0,1e13", says="not in range")
        self.bad("plan", "gpulet", scenario, "--shares", "60,40",
                 says="--shares: [plan] shares must ascend")
        self.bad("plan", "gpulet", scenario, "--planner", "nexus-half", "--shares", "40,60",
                 says="needs 50 % among the shares")
        self.bad("plan", "gpulet", SCENARIO, says="does not say how much model 'ResNet50' uses")

    def test_a_plan_that_holds_only_without_chance_is_refused(self):
        scenario = SOURCE / "scenarios/gpulets/equal.toml"
        words = ["plan", "gpulet", scenario]
        why = ("the plan sustains the load only if requests come evenly: as they come by chance, "
               "about ")
        self.bad(*words, "--planner", "gpulet", says=why)
        self.good(*words, "--planner", "gpulet", "--set", "arrivals.process=uniform")
        text = self.good(*words)
        self.assertIn("planned by gpulet-retry\n", text)
        self.assertIn("interference: not counted on, but lanes of a device slow each other", text)
        rows = re.findall(r"(?m)^[\w-]+ +\d .*", text)
        violations = [float(row.split()[-1]) for row in rows]
        self.assertGreaterEqual(len(violations), 5, text)
        self.assertLessEqual(max(violations), 0.6)
        self.assertNotIn("interference:", self.good(*words, "--set", "rate_rps=200",
                                                    "--interference", "0,0,0,0,1"))

    PLANNERS = ("gpulet", "gpulet-retry", "self-tuning", "nexus", "nexus-half", "ideal")

    def test_a_model_that_no_share_serves_in_time_is_named(self):
        slo = ["--set", "models.LeNet.slo_ms=2"]
        why = (r"model 'LeNet': no batch meets half of its SLO of 2 ms on any share: the quickest "
               r"takes 1\.\d+ ms; a longer SLO helps\n$")  # and nothing of other models
        for planner in self.PLANNERS:
            done = tactus("plan", "gpulet", SOURCE / "scenarios/gpulets/equal.toml", *slo,
                          "--planner", planner)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"equal\.toml: " + why)
        done = tactus("simulate", SOURCE / "scenarios/gpulets/waves.toml", *slo)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, f"^tactus simulate: {why}")  # and nothing of rates

    def with_memory(self, name):
        """The scenario with models that need 1,000 MB each."""
        folder = SOURCE / "scenarios/gpulets"
        profile = self.folder / "profile.json"
        text = (folder / name).read_text()
        told = json.loads((folder / re.search(r'profile = "(.*)"', text)[1]).read_text())
        for model in told["models"]:
            model["peak_memory_bytes"] = 10**9
        profile.write_text(json.dumps(told))
        text = re.sub(r'profile = ".*"', f'profile = "{profile}"', text)
        scenario = self.folder / name
        scenario.write_text(text.replace('schedule = "', f'schedule = "{folder}/'))
        return scenario

    def test_plans_keep_to_the_memory_of_devices(self):
        scenario, plan = self.with_memory("equal.toml"), self.folder / "plan.json"
        words = ["plan", "gpulet", scenario, "--set", "rate_rps=500", "--out", plan]
        for planner in self.PLANNERS:
            self.good(*words, "--planner", planner, "--set", "plan.memory_mb=2500")
            models = {}
            for lane in json.loads(plan.read_text())["lanes"]:
                entries = [entry["model"] for entry in lane["entries"]]
                models.setdefault(lane["device"], set()).update(entries)
            self.assertLessEqual(max(map(len, models.values())), 2, planner)
            self.bad(*words, "--planner", planner, "--set", "plan.memory_mb=900",
                     says="model 'LeNet' needs 1000 MB; a device has 900")
        waves = self.with_memory("waves.toml")
        self.good("simulate", waves, "--set", "duration_s=40", "--set", "plan.memory_mb=2500")
        self.bad("simulate", waves, "--set", "plan.memory_mb=900",
                 says="model 'LeNet' needs 1000 MB; a device has 900")

    def test_memory_that_no_profile_tells_is_warned_of(self):
        equal, plan = SOURCE / "scenarios/gpulets/equal.toml", self.folder / "plan.json"
        words = [equal, "--set", "rate_rps=500"]
        self.good("plan", "gpulet", *words, "--out", plan)
        words += ["--set", "plan.memory_mb=1"]
        simulate = ["simulate", *words, "--set", "duration_s=8"]
        for command in (["plan", "gpulet", *words], [*simulate, "--plan", plan],
                        [*simulate, "--policy", "planned", "--set", "plan.planner=gpulet"]):
            done = tactus(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"^tactus (simulate|plan gpulet): warning: \[plan\] "
                             r"memory_mb: the profile does not say what memory 'LeNet', .* need, "
                             r"which count as 0; .*`tactus profile` measures does\n$")
        self.good(*simulate)  # nobody looks at it

    def test_a_plan_for_another_load_or_slo_says_so(self):
        equal, plan = SOURCE / "scenarios/gpulets/equal.toml", self.folder / "plan.json"
        self.good("plan", "gpulet", equal, "--set", "rate_rps=500", "--out", plan)
        run = ["simulate", equal, "--set", "duration_s=8", "--plan", plan, "--set"]
        self.good(*run, "rate_rps=400")
        for setting, says in (
                (["rate_rps=1000"], "planned for 100 requests/s of 'LeNet', here come 200 (and 4 "
                 "more)"),
                (["rate_rps=500", "--set", "models.LeNet.slo_ms=50"],
                 "planned for an SLO of 5 ms of 'LeNet', here it is 50")):
            done = tactus(*run, *setting)
            self.assertEqual((done.returncode, done.stderr),
                             (0, f"tactus simulate: warning: {plan}: {says}\n"))

    def test_a_plan_is_written_run_and_refused_elsewhere(self):
        folder = SOURCE / "scenarios/gpulets"
        words = [folder / "equal.toml", "--set", "rate_rps=1000"]
        plan, file = self.folder / "plan.json", self.folder / "report.json"
        self.good("plan", "gpulet", *words, "--out", plan)
        written = json.loads(plan.read_text())
        words += ["--set", "duration_s=10", "--plan", plan]
        self.good("simulate", *words, "--json", file)
        run = json.loads(file.read_text())["runs"][0]
        self.assertEqual(run["policy"], "planned")
        self.assertEqual([lane["kind"] for lane in run["lanes"]],
                         [f"of {100 * lane['share']:.4g} %" for lane in written["lanes"]])
        self.assertGreater(min(lane["batches"] for lane in run["lanes"]), 0)
        self.bad("simulate", *words, "--policy", "fifo", says="policy 'fifo' does not use plans")
        self.bad("simulate", *words, "--set", "count=1", says="; there are 1")
        self.bad("simulate", folder / "long-only.toml", "--plan", plan,
                 says="a plan of another model set: it knows 'LeNet', 'GoogLeNet', not served here")
        self.bad("simulate", words[0], "--plan", self.folder / "x", says="cannot read this plan")
        written["lanes"][0]["share"] = 0.3
        plan.write_text(json.dumps(written))
        self.bad("simulate", *words, says="30 % of its device, which is not among shares; add it")
        # Then the scenario's count.
        del written["shares"], written["exponent"], written["utilization_base"]
        plan.write_text(json.dumps(written))
        self.bad("simulate", *words, says="is 30 % of its device, which was not profiled (20 %, 40")
        for lane in written["lanes"]:
            lane["device"] = 3
        plan.write_text(json.dumps(written))
        self.bad("simulate", *words, says="plan.json: more than 2 lanes on device 3")

    def test_devices_are_split_anew_as_rates_change(self):
        file = self.folder / "report.json"
        waves = SOURCE / "scenarios/gpulets/waves.toml"
        text = self.good("simulate", waves, "--set", "duration_s=300", "--json", file)
        self.assertIn("devices in use over time", text)
        run = json.loads(file.read_text())["runs"][0]
        used = [point["devices_used"] for point in run["layout_over_time"]]
        self.assertEqual(len(used), 14)  # each 20 s but the last, whose end is the run's
        self.assertGreater(max(used[10:]), min(used[:6]), "the load has doubled and more")
        self.assertLess(run["bad_ratio"], 0.01)

    # A fit that is judged by what it has seen, or by its other side, looks better than it is.
    def test_a_fit_of_interference_does_not_see_what_is_held_out(self):
        measured = SOURCE / "docs/results/gpulets/pairs.csv"
        text = self.good("fit", "interference", measured)
        self.assertIn("462 measurements, 136 of them held out, as the file says\n", text)
        self.assertRegex(text, r"\nfactor = -?\d\.\d{4} l2 \+ ")
        self.assertRegex(text, r"held out: \d+\.\d % are within 10.26 % \(paper: 90; no model: \d")
        text = self.good("fit", "interference", measured, "--seed", 2)
        self.assertIn("held out, drawn by pairs, seed 2\n", text)
        rows = self.folder / "pairs.csv"
        header = "slowdown,held_out,l2,dram,beside_l2,beside_dram\n"
        rows.write_text(header + "".join(f"1.1,0,0.{i},0.2,0.3,0.4\n" for i in range(9)))
        self.bad("fit", "interference", rows, says="pairs.csv: held_out is 0 in every row, so no")
        self.good("fit", "interference", rows, "--held-out", 0.3)
        rows.write_text(header + "1.1,2,0.1,0.2,0.3,0.4\n")
        self.bad("fit", "interference", rows, says="pairs.csv:2: held_out is '2'; it is 0 or 1")

    # Figures 13 and 14 of gpu-lets: what a planner that counts on interference is for.
    def test_plans_that_count_on_interference_keep_their_slos_on_devices_that_have_it(self):
        done = reproduce("gpulets", "--figure", "13,14", "--seeds", 1, "--out", self.folder,
                         "--scenarios", SOURCE / "scenarios/gpulets", "--figures",
                         SOURCE / "figures")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.folder / "fig13.csv", encoding="utf-8") as file:
            next(file)  # what it was made from
            rows = {(row["series"], row["load"]): row for row in csv.DictReader(file)}
        bad = {key: float(row["bad_percent"]) for key, row in rows.items()}
        mixes = ["1", "2", "3", "4", "5"]  # game, traffic, equal, long-only, short-skew
        for planner in ("gpulet+int", "gpulet-retry+int"):
            self.assertLessEqual(max(bad[planner, mix] for mix in mixes), 1, bad)
        for mix in ("3", "5"):  # as in the paper
            self.assertGreater(bad["gpulet", mix], 1, bad)
        for key, row in rows.items():  # violations come from neighbours, not from chance
            self.assertLessEqual(float(row["alone_percent"]), 1, key)
        claims = (self.folder / "claims.csv").read_text()
        self.assertRegex(claims, r"14,.*violations of all requests.*,yes\n")
        self.assertRegex(claims, r"14,.*shares in use follow the load.*,yes\n")

    def test_a_policy_whose_options_leave_no_time_is_pointed_out(self):
        delayed = "symphony:ctrl=49000"  # of 50 ms
        for words in (["simulate", SCENARIO, "--policy", delayed],
                      ["compare", SCENARIO, "--policies", f"fifo,{delayed}"]):
            text = self.good(*words, *SHORT)
            self.assertEqual(text.count("policy, doubtful: "), 3, text)
            self.assertIn(f"policy '{delayed}' serves nothing of model 'ResNet50': it counts on 5",
                          text)
        text = self.good("simulate", SCENARIO, "--policy", "clockwork:sizes=99", *SHORT)
        self.assertIn("'ResNet101': it has no batch size for it, whose batches are of 1 to", text)
        text = self.good("simulate", SCENARIO, "--policy", "symphony", *SHORT)
        self.assertNotIn("doubtful", text)
        text = self.in_vain("plan", "lanes", SCENARIO, *SHORT, "--policies", delayed, "--most", 2,
                            "--seeds", 1)
        self.assertIn("policy, doubtful: ", text)

    def test_what_is_the_simulators_is_refused_in_real_time(self):
        file = self.folder / "report.json"
        self.good("compare", SCENARIO, *SHORT, "--policies", "fifo,fifo:cost=20000", "--set",
                  "rate_rps=100", "--json", file)
        free, costly = (run["queue_p50_ms"] for run in json.loads(file.read_text())["runs"])
        self.assertGreater(costly, free + 19)
        self.bad("measure", SCENARIO, "--engine", "emulated", "--policy", "fifo:cost=5",
                 says="have no effect in real time")
        self.bad("serve", "--models", self.folder, "--policy", "fifo:look=5",
                 says="have no effect in real time")
        for words in (["measure", SCENARIO, "--engine", "emulated"],
                      ["serve", "--models", self.folder]):
            self.bad(*words, "--policy", "preemptive-priority",
                     says="which no engine here can; simulate it")
        self.assertIn("it has none", self.good("simulate", SCENARIO, *SHORT, "--policy",
                                               "preemptive-priority"))
        self.assertIn("cost=US: ", self.good("policies", "fifo"))

    def test_a_load_that_has_no_plan_is_one_that_is_not_sustained(self):
        # The search begins at the fluid limit, for which devices cannot be split. Half may be
        # violations, for what is looked for is where plans end.
        words = ["goodput", SOURCE / "scenarios/gpulets/equal.toml", "--policies", "planned",
                 "--set", "plan.planner=gpulet", "--set", "plan.headroom=0", "--set",
                 "duration_s=8", "--seeds", 1, "--bad", 50]
        text = self.good(*words, "--precision", 5, "--at", 3)
        peak = float(re.search(r"(?m)^planned +(\d+) ", text)[1])
        refused = re.search(r"(?m)^planned: nothing ran at (\d+) r/s: .*not schedulable", text)
        self.assertTrue(refused, text)
        self.assertTrue(peak < float(refused[1]) <= 1.06 * peak, text)
        self.assertRegex(text, r"(?m)^planned +3$")  # nor is there one for three times that
        # Four lanes, the fluid limit's, have no plan for this load; five have.
        text = self.good("plan", "lanes", *words[1:], "--set", "rate_rps=2400")
        self.assertRegex(text, r"(?m)^planned +5 +1.25 x ")

    def test_an_option_that_would_change_nothing_is_refused(self):
        self.bad("simulate", SCENARIO, "--policy", "symphony:k=5",
                 says="policy option k=5 changes nothing without when=timeout")
        self.bad("compare", SCENARIO, "--policies", "fifo,symphony:gather=prefix,aim=0.8",
                 says="policy option aim=0.8 changes nothing without gather=window")

    def test_what_lanes_of_several_kinds_cannot_is_refused(self):
        scenario = self.lane_kinds()
        self.bad("simulate", scenario, "--policy", "nexus", says="lanes that are all alike")
        self.bad("measure", scenario, "--engine", "emulated", says="are for `tactus simulate`")
        self.bad("goodput", scenario, "--least-staggered", 0.5, says="lanes of one kind")
        self.bad("simulate", scenario, "--set", "lane_kinds.slow.speed=2",
                 says="[[lane_kinds]] have no 'slow'")
        self.bad("simulate", scenario, "--set", "lane_kinds.fast.count=4",
                 says="declare 4 lanes, but [lanes] count is 3; set it to 4")
        self.bad("simulate", self.lane_kinds("[[lane_kinds]]\nname = 'a'\nspeed = 0\n"),
                 says="speed: must be a number from 0.001 to 1000")
        self.bad("simulate", self.lane_kinds("[[lane_kinds]]\ncount = 2\n"),
                 says="[[lane_kinds]]: needs a name")

    def test_plan_lanes_says_how_many_and_under_whom(self):
        file = self.folder / "plan.json"
        words = ["plan", "lanes", SCENARIO, "--set", "duration_s=10", "--set", "rate_rps=1500",
                 "--set", "warmup_requests=10", "--seeds", 2, "--policies",
                 "all-final,early-exit-edf,symphony:published"]
        text = self.good(*words, "--json", file)
        plan = json.loads(file.read_text())
        found = {entry["policy"]: entry for entry in plan["policies"]}
        self.assertEqual(len(found), 3)
        lanes = [entry["lanes"] for entry in plan["policies"]]
        self.assertEqual(lanes, sorted(lanes), "fewest first")
        # Who exits early does with less than the final exit's limit.
        self.assertLess(found["early-exit-edf"]["lanes"], found["all-final"]["lanes"])
        self.assertGreaterEqual(found["all-final"]["lanes"], found["all-final"]["fluid_lanes"])
        for entry in plan["policies"]:
            self.assertLessEqual(entry["worst_bad_ratio"], 0.01)
            self.assertAlmostEqual(entry["busy_ratio"] + entry["idle_ratio"], 1)
            row = next(r for r in text.splitlines() if r.startswith(entry["policy"]))
            self.assertEqual(row.split()[1], str(entry["lanes"]))
        self.assertIn(f"fewer than {found['all-final']['fluid_lanes']}\n", text)
        # The number is the least: one lane less no longer sustains it.
        few = found["all-final"]["lanes"] - 1
        text = self.in_vain(*words[:-1], "all-final", "--most", few, "--json", file)
        self.assertIn(f"> {few}", text)
        self.assertIn(f"all-final: {few} lanes (--most) are not enough", text)
        entry = json.loads(file.read_text())["policies"][0]
        self.assertIsNone(entry["lanes"])
        self.assertGreater(entry["worst_bad_ratio"], 0.01)

    def test_plan_lanes_refuses_what_would_show_nothing(self):
        self.bad("plan", "lanes", SCENARIO, "--policies", "zz", says="no policy 'zz'")
        self.bad("plan", "lanes", SCENARIO, "--set", "duration_s=0.05", "--set",
                 "warmup_requests=0", says="too short a run to judge a load by")
        self.bad("plan", "lanes", SOURCE / "scenarios/symphony/fig15.toml",
                 says="--set autoscale.interval_s=0")
        self.bad("plan", "lanes", SCENARIO, "--set", "models.*.slo_ms=1",
                 says="no batch can meet its SLO")

    def test_policies_are_listed_with_their_options(self):
        text = self.good("policies")
        for words in ("edgeserving", "symphony"):
            self.assertIn(words, text)
        one = self.good("policies", "shepherd")
        self.assertIn("a batch must be to stop another (3; 0: never)\n", one)
        self.assertNotIn("symphony", one)
        self.bad("policies", "zz", says="no policy 'zz'")
        self.bad("policies", "horizn", says="no policy 'horizn' (did you mean 'horizon'?)")
        for name in re.findall(r"(?m)^  ([a-z-]+)  ", text):  # each option is one line
            for line in re.findall(r"(?m)^      (.*)", self.good("policies", name)):
                self.assertRegex(line, r"^([a-z_]+=|published|to compare it: )")
                self.assertEqual(line.count("("), line.count(")"), line)

    def test_every_policy_has_its_page(self):
        """docs/reference/policies.md has five headings for each, and names all of its options."""
        page = (SOURCE / "docs/reference/policies.md").read_text(encoding="utf-8")
        sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
        listed = re.findall(r"^  ([a-z-]+)", self.good("policies").split("\n\n")[0], re.M)
        self.assertEqual(list(sections), listed)
        for name, section in sections.items():
            with self.subTest(policy=name):
                rows = re.findall(r"^\| ([a-z -]+) \| (.+) \|$", section, re.M)
                self.assertEqual([row[0] for row in rows],
                                 ["what it does", "when to choose it", "inputs", "options",
                                  "trade-offs"])
                own = self.good("policies", name).split("  every policy")[0]
                own = own.split("to compare it")[0]
                told = rows[3][1]
                for other in re.findall(r"as for ([a-z-]+)", told):
                    told += sections[other]
                for option in re.findall(r"\b([a-z_]+)=", own):
                    self.assertIn(f"{option}=", told)

    def test_who_compares_a_policy_is_told_what_suits_it(self):
        tuned = "to compare it: fill=0.8,share=0.2 for one model, fill=0.65,share=0.35 for many"
        self.assertIn(tuned, self.good("policies", "timeout"))
        note = "timeout is compared at its defaults; mostly it does better with fill=0.8,share=0.2"
        for command in (["compare"], ["goodput"], ["plan", "lanes"]):
            for policies, told in (("fifo,timeout", True), ("fifo,timeout:share=0.2", False)):
                done = tactus(*command, SCENARIO, *SHORT, "--seeds=1", "--policies", policies)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertEqual(note in done.stdout, told, done.stdout)
        self.assertNotIn("defaults", self.good("compare", SCENARIO, *SHORT, "--policies",
                                               "timeout,timeout:k=5"))  # tuned beside it
        self.assertNotIn("defaults", self.good("compare", SCENARIO, *SHORT, "--policies",
                                               "timeout"))  # beside nothing
        # Shepherd stops batches of other models: of one model there is nothing to tune.
        one = SOURCE / "scenarios/symphony/table2-resnet50.toml"
        for scenario, told in ((SCENARIO, True), (one, False)):
            text = self.good("compare", scenario, "--set", "warmup_s=0", *SHORT, "--policies",
                             "fifo,shepherd")
            self.assertEqual("shepherd is compared at its defaults" in text, told, text)

    def test_plan_partition_spreads_keeps_and_refuses(self):
        zoo = SOURCE / "scenarios/partition/zoo.toml"
        first, second = self.folder / "first.json", self.folder / "second.json"
        words = ["plan", "partition", zoo, "--trials", 60000]

        def objective(*more):
            file = self.folder / "compared.json"
            self.good(*words, *more, "--json", file)
            return json.loads(file.read_text())["objective"]

        self.assertLess(objective("--descents", 1), objective("--solver", "random"))
        text = self.good(*words, "--json", first)
        self.assertEqual(text, self.good(*words), "the same seed and trials, another plan")
        # The trials alone end it, however short a time limit would be, unless one is stated.
        stopped = self.good(*words[:4], 10 ** 15, "--time-limit", 0.05)
        self.assertIn("sub-cluster", stopped)
        plan = json.loads(first.read_text())
        self.assertEqual(len(plan["models"]), 37)
        self.assertEqual(sum(s["models"] for s in plan["sub_clusters"]), 37)
        self.assertLess(plan["rate_imbalance"], 0.1)
        self.assertIn(f"objective {plan['objective']:.4g}", text)
        for sub_cluster in plan["sub_clusters"]:
            self.assertLessEqual(sub_cluster["static_mb"] + sub_cluster["dynamic_mb"], 11264)

        # A model becomes much more popular; two others may move for it.
        busier = self.folder / "busier.toml"
        busier.write_text(zoo.read_text().replace('"BERT"\nrate_rps = ', '"BERT"\nrate_rps = 9'))
        text = self.good("plan", "partition", busier, "--trials", 60000, "--previous", first,
                         "--max-moves", 2, "--json", second)
        moved = json.loads(second.read_text())
        away = [m for m in plan["models"] if plan["models"][m] != moved["models"][m]]
        self.assertEqual(len(away), moved["moved"])
        self.assertIn(len(away), (1, 2))
        self.assertIn(f"{len(away)} models moved", text)
        for name in away:
            self.assertIn("+" + name, text)

        small = self.folder / "small.toml"
        small.write_text(zoo.read_text().replace("11264", "1500"))
        self.bad("plan", "partition", small, says="model 'VGG19' needs 1572.2 MB")
        self.bad("plan", "partition", zoo, "--previous", zoo, says="holds no partition")
        self.bad("plan", "partition", self.folder / "x", says="cannot read this partition problem")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
