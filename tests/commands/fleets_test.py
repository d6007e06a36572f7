#!/usr/bin/env python3
"""`tactus plan fleet`, as a user calls it."""
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
        stages = {(each["pipeline"], each["stage"]) for each in plan["instances"]}
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
