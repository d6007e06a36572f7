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
        text = self.good("plan", "fleet", TESTBED, "--windows", "--json", out)
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
        slow.write_text(text.replace("mbps = 40", "mpbs = 40", 1))
        self.bad("plan", "fleet", slow, says="mpbs: unknown in [[links]]; it may hold sites, mbps")

    def test_a_fleet_is_simulated(self):
        out = self.folder / "run.json"
        text = self.good("simulate", TESTBED, "--set", "duration_s=5", "--json", out)
        self.assertIn("testbed: planner octopinf, policy horizon, seed 1, 5 s simulated", text)
        self.assertIn("traffic1/embedding on server", text)
        run = json.loads(out.read_text(encoding="utf-8"))["runs"][0]
        self.assertEqual(run["frames_ended"], run["frames"])
        self.assertGreater(run["on_time_share"], 0.9)
        again = self.folder / "again.json"
        self.good("simulate", TESTBED, "--set", "duration_s=5", "--json", again)
        self.assertEqual(out.read_bytes(), again.read_bytes())

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
                 says="leave out --plan, --journal")
        self.bad("simulate", SOURCE / "scenarios/three-resnets.toml", "--planners", "rim",
                 says="has no [[devices]]")

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
