"""A comparison that finds no difference where there is one would let a refactoring move figures."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import same_reports

PROGRAM = """#!/usr/bin/env python3
import json, sys
arguments = sys.argv[1:]
if "broken" in arguments[1]:
    sys.exit(f"tactus: {arguments[1]}: broken")
report = {"runs": [{"commit": "%s", "p50_ms": %s, "exits": {"final": 1.0}}]}
open(arguments[arguments.index("--json") + 1], "w").write(json.dumps(report))
"""


class SameReports(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def checkout(self, name, p50):
        tree = pathlib.Path(self.folder.name) / name
        (tree / "scenarios").mkdir(parents=True)
        for scenario in ("steady.toml", "broken.toml"):
            (tree / "scenarios" / scenario).write_text("")
        program = tree / "build/release/apps/tactus"
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM % (name, p50))
        program.chmod(0o755)
        return program

    def compare(self, base, new):
        return subprocess.run([sys.executable, same_reports.__file__, base, new],
                              capture_output=True, text=True, check=False)

    def test_other_commits_of_equal_figures_are_the_same(self):
        ran = self.compare(self.checkout("base", 7.25), self.checkout("new", 7.25))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("same     scenarios/steady.toml", ran.stdout)
        self.assertIn("refused  scenarios/broken.toml", ran.stdout)

    def test_the_last_digit_of_one_figure_is_a_difference(self):
        ran = self.compare(self.checkout("base", 7.25), self.checkout("new", 7.2500001))
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn("/runs[0]/p50_ms: 7.25 -> 7.2500001", ran.stdout)

    def test_a_figure_that_one_report_lacks_is_a_difference(self):
        one = {"runs": [{"p50_ms": 1, "p95_ms": 2}]}
        other = json.loads('{"runs": [{"p50_ms": 1}]}')
        self.assertEqual(list(same_reports.differences(one, other)),
                         ["/runs[0]/p95_ms: only in the base report"])
        self.assertEqual(list(same_reports.differences([1, 2], [1])), [": [1, 2] -> [1]"])


if __name__ == "__main__":
    unittest.main()
