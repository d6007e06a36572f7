"""`tactus load` against a server: its report says how accurate any schedule could have been."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from serving import TACTUS, WAIT_S, ServedTest

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
                       for start in ("policy ", "- "))
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
