#!/usr/bin/env python3
"""`tactus plan fleet` and `tactus simulate` of a fleet, as a user calls them."""
import json
import sys
import unittest

from command_case import SOURCE, CommandCase

TESTBED = SOURCE / "scenarios/fleets/testbed.toml"


class Fleets(CommandCase):
    def test_a_plan_names_every_stage_and_says_why(self):
        out = self.folder / "plan.json"
        text = self.good("plan", "fleet", TESTBED, "--planner", "octopinf", "--windows", "--out",
                         out)
        self.assertRegex(text, r"traffic1: [\d.]+ of 200 ms")
        self.assertIn("traffic1/car_type: at the source: it sends", text)
        self.assertIn("embedding: on a server: ", text)
        self.assertRegex(text, r"(?m)^server 0\.0  \|A")
        plan = json.loads(out.read_text())
        # An instance on a server may be of several pipelines' stages.
        stages = {(stage["pipeline"], stage["stage"]) for each in plan["instances"]
                  for stage in [each, *each.get("also", [])]}
        self.assertEqual(len(stages), 6 * 5 + 3 * 4)
        self.assertEqual(len(plan["reasons"]), len(stages))
        self.assertEqual({(each["pipeline"], each["stage"]) for each in plan["routes"]}, stages)
        for each in plan["instances"]:
            self.assertLessEqual(each["offset_ms"] + each["length_ms"], each["cycle_ms"])

    def test_every_planner_can_be_had_and_an_unknown_one_lists_them(self):
        for planner in ("octopinf-server", "octopinf-edge", "distream", "jellyfish", "rim"):
            self.assertIn(f"by {planner} in", self.good("plan", "fleet", TESTBED, "--planner",
                                                        planner))
        self.bad("plan", "fleet", TESTBED, "--planner", "best",
                 says="no planner 'best'; there are octopinf, ")

    def test_a_slow_link_keeps_frames_at_their_sources_and_a_mistake_is_named(self):
        text = TESTBED.read_text()
        slow = self.folder / "slow.toml"
        slow.write_text(text.replace("mbps = 40", "mbps = 2"))
        for line in self.good("plan", "fleet", slow).splitlines():
            if line.startswith("  detector"):
                self.assertNotIn("server", line)
        slow.write_text(text.replace("mbps = 40", "mbps = 0.01"))
        late = self.good("plan", "fleet", slow, "--planner", "jellyfish", "--windows")
        self.assertRegex(late, r"too late, by the estimate\n  "
                         r"traffic1: ([\d.e+]+ of 200 ms|overloaded \(SLO 200 ms\))\n")
        self.assertIn("jellyfish makes no windows; --planner octopinf does", late)
        self.assertNotIn("too late", self.good("plan", "fleet", TESTBED))
        slow.write_text(text.replace("mbps = 40", "mpbs = 40", 1))
        self.bad("plan", "fleet", slow, says="mpbs: unknown in [[links]]; it may hold sites, mbps")

    def test_a_fleet_is_simulated(self):
        out = self.folder / "run.json"
        text = self.good("simulate", TESTBED, "--set", "duration_s=5", "--json", out)
        self.assertIn("testbed: planner octopinf-relieved, policy horizon, seed 1, 5 s simulated",
                      text)
        self.assertIn("traffic1/embedding on server", text)
        run = json.loads(out.read_text(encoding="utf-8"))["runs"][0]
        self.assertEqual(run["frames_ended"], run["frames"])
        self.assertGreater(run["on_time_share"], 0.9)
        again = self.folder / "again.json"
        self.good("simulate", TESTBED, "--set", "duration_s=5", "--json", again)
        self.assertEqual(out.read_bytes(), again.read_bytes())

    def test_the_planner_is_the_options_else_the_files_else_the_default(self):
        self.assertIn("by octopinf-relieved in", self.good("plan", "fleet", TESTBED))
        named = self.folder / "named.toml"
        named.write_text('[fleet]\nplanner = "rim"\n' + TESTBED.read_text())
        self.assertIn("by rim in", self.good("plan", "fleet", named))
        self.assertIn("by octopinf in", self.good("plan", "fleet", named, "--planner", "octopinf"))

    def test_a_plan_that_was_written_is_simulated_as_it_was_made(self):
        plan, asked, read = (self.folder / each for each in ("plan.json", "asked", "read"))
        for planner in ("octopinf", "octopinf-relieved", "rim"):
            settings = ["--set", "duration_s=5", "--policy", "planned"]
            self.good("plan", "fleet", TESTBED, "--planner", planner, "--out", plan)
            text = self.good("simulate", TESTBED, "--plan", plan, *settings, "--json", read)
            self.assertIn(f"testbed: planner {planner}, policy planned", text)
            self.good("simulate", TESTBED, *settings, "--set", f"planner={planner}", "--set",
                      "period_s=0", "--set", "autoscale_s=0", "--json", asked)
            self.assertEqual(read.read_bytes(), asked.read_bytes())

    def test_the_weights_of_a_plan_say_where_frames_go(self):
        out, run = self.folder / "plan.json", self.folder / "run.json"
        self.good("plan", "fleet", TESTBED, "--planner", "jellyfish", "--out", out)
        plan = json.loads(out.read_text())
        moved = next(each for each in plan["instances"] if each["stage"] == "detector")
        source = {"traffic1": "agx"}.get(moved["pipeline"], "nx1")
        here = {**moved, "device": source, "accelerator": 0, "stream": 0, "batch": 1}
        plan["instances"].insert(plan["instances"].index(moved), here)
        route = next(each for each in plan["routes"] if each["pipeline"] == moved["pipeline"]
                     and each["stage"] == "detector")
        shares = {}
        for weight in (1, 1e6):
            route["to"] = [{"device": moved["device"], "weight": weight},
                           {"device": source, "weight": 1}]
            out.write_text(json.dumps(plan))
            self.good("simulate", TESTBED, "--plan", out, "--set", "duration_s=5", "--json", run)
            devices = {each["name"]: each["busy"] for each
                       in json.loads(run.read_text())["runs"][0]["devices"]}
            shares[weight] = devices[source]
        self.assertGreater(shares[1], 0)
        self.assertLess(shares[1e6], shares[1] / 2)

    def test_a_plan_of_another_fleet_is_refused_with_place_and_remedy(self):
        out = self.folder / "plan.json"
        self.good("plan", "fleet", SOURCE / "examples/street/fleet.toml", "--out", out)
        self.bad("simulate", TESTBED, "--plan", out,
                 says="write one for this fleet with `tactus plan fleet")
        self.good("plan", "fleet", TESTBED, "--out", out)
        short = ("--plan", out, "--set", "duration_s=0.5")
        self.assertNotIn("doubtful", self.good("simulate", TESTBED, *short))
        faster = self.good("simulate", TESTBED, *short, "--set", "load_scale=2")
        self.assertIn("plan.json, doubtful: pipeline 'traffic1': the plan was made for rate_rps = "
                      "15, and it is 30", faster)
        self.bad("simulate", TESTBED, "--plan", out, "--planners", "rim,octopinf",
                 says="leave one of them out")
        self.bad("simulate", TESTBED, "--plan", out, "--json", out, says=str(out))
        out.write_text(out.read_text().replace('"planner": "octopinf-relieved"', '"planner": "me"'))
        self.bad("simulate", TESTBED, "--plan", out, says="plan.json: planner: no planner 'me'")

    def test_planners_are_compared(self):
        text = self.good("simulate", TESTBED, "--set", "duration_s=2", "--planners", "octopinf,rim",
                         "--policies", "planned", "--seeds", "2")
        self.assertIn("octopinf, planned", text)
        self.assertIn("rim, planned", text)

    def test_mistakes_about_fleets_are_one_line(self):
        self.bad("simulate", TESTBED, "--set", "speed=2", says="speed: unknown in [fleet]")
        self.bad("simulate", TESTBED, "--planners", "best",
                 says="no planner 'best'; there are octopinf")
        self.bad("simulate", TESTBED, "--journal", self.folder / "j",
                 says="leave out --journal, --requests, --timeline, --predictor")
        self.bad("simulate", SOURCE / "scenarios/three-resnets.toml", "--planners", "rim",
                 says="has no [[devices]]")

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
