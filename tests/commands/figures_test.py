"""A paper's figures as files: what is run, drawn and claimed, by the command and its parts.

    figures_test.py TACTUS SOURCE_FOLDER
"""

import csv
import json
import re
import sys
import unittest

from command_case import CommandCase, SCENARIO, SOURCE, reproduce

sys.path.insert(0, str(SOURCE / "figures"))
import claims
import papers
import pictures
from program import load_toml

PAPER = """
title = "A paper"
basis = "a stand-in"
figures = ["1", "2", "table3"]
columns = ["offered_rps", "goodput_rps", "paper"]
[systems]
"First" = ["policy=fifo"]
"Second@batched" = ["policy=fifo:batch=2"]
"""

FIGURE_1 = """
title = "A sweep"
scenario = "short"
points = [{ x = [1, 2], settings = ["rate_rps={100x+50}"] }]
[[series]]
each = { slo = [40, 80] }
group = "SLO {slo}"
systems = ["First", "Second@batched"]
settings = ["models.*.slo_ms={slo}", "duration_s=10", "warmup_requests=10"]
[[panels]]
each = { slo = [40, 80] }
group = "SLO {slo}"
y = "offered_rps"
y_label = "offered"
[let]
more = "lambda series: at(series, 2, 'offered_rps') / at(series, 1, 'offered_rps')"
[[claims]]
each = ["slo in (40, 80)", "system in ('First', 'Second')"]
what = "{system}, {slo} ms: more arrives"
paper = "more"
ours = "{more(f'SLO {slo}: {system}'):.1f} times"
holds = "more(f'SLO {slo}: {system}') > 1"
[[claims]]
what = "more than a hundred times more"
value = "more('SLO 40: First')"
least = 100
"""

FIGURE_2 = """
title = "The same at once, and the paper's number"
like = "1"
also = ["rate_rps=70"]
points = [{ name = "a bar" }]
panels = [{ y = "goodput_rps", bars = true }]
claims = []
[paper]
"SLO 80: First" = [12]
"""


class Figures(CommandCase):
    def setUp(self):
        super().setUp()
        self.paper = self.folder / "figures/paper"
        self.paper.mkdir(parents=True)
        (self.paper / "paper.toml").write_text(PAPER)
        (self.paper / "fig01.toml").write_text(FIGURE_1)
        (self.paper / "fig02.toml").write_text(FIGURE_2)
        text = SCENARIO.read_text().replace('profile = "', f'profile = "{SCENARIO.parent}/')
        (self.folder / "short.toml").write_text(text)

    def made(self, *words):
        done = reproduce("paper", "--figures", self.folder / "figures", "--scenarios", self.folder,
                         "--out", self.folder / "out", "--seeds", 1, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.sub(r"(?m)^\d+/\d+, about .*\n", "", done.stderr), "")
        return done.stdout

    def refused(self, *words, says):
        done = reproduce("paper", "--figures", self.folder / "figures", "--scenarios", self.folder,
                         "--out", self.folder / "out", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(says, done.stderr)
        self.assertRegex(done.stderr, r"^figures: .*\n$")

    def rows(self, stem):
        with open(self.folder / f"out/{stem}.csv", encoding="utf-8") as file:
            next(file)  # what it was made from
            return {(row["series"], row["load"]): row for row in csv.DictReader(file)}

    # Without it a figure's file could say one thing, and another be run.
    def test_each_series_and_point_is_what_the_file_says(self):
        text = self.made("--figure", "1,2", "--json", self.folder / "x.json")
        first = self.rows("fig01")
        self.assertEqual(set(first), {(f"SLO {slo}: {system}", x) for slo in (40, 80)
                                      for system in ("First", "Second") for x in "12"})
        for (_, x), row in first.items():
            self.assertAlmostEqual(float(row["offered_rps"]), {"1": 150, "2": 250}[x], delta=20)
        second = self.rows("fig02")
        self.assertEqual(second["SLO 80: First", "1"]["paper"], "12")
        self.assertEqual(second["SLO 40: First", "1"]["paper"], "")
        self.assertAlmostEqual(float(second["SLO 40: First", "1"]["offered_rps"]), 70, delta=10)
        self.assertRegex(text, r"  1  yes  Second, 80 ms: more arrives\n +paper: more; ours: 1\.")
        self.assertRegex(text, r"  1  NO   more than a hundred times more\n +bar: >= 100; ours: 1")
        checks = json.loads((self.folder / "x.json").read_text())["checks"]
        self.assertEqual([check["ok"] for check in checks], 4 * [True] + [False])
        self.assertEqual(checks[4]["bar"], ">= 100")
        for name in ("fig01.png", "fig02.svg"):
            self.assertGreater((self.folder / "out" / name).stat().st_size, 1000, name)

    def test_what_was_claimed_of_other_figures_stays(self):
        self.made("--figure", "1")
        self.made("--figure", "2")
        lines = (self.folder / "out/claims.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[0] for line in lines], ["figure"] + 5 * ["1"])

    def test_what_was_made_is_not_made_again(self):
        self.made("--figure", "1")
        file = self.folder / "out/fig01.csv"
        lines = file.read_text().splitlines(keepends=True)
        # A point that was not there yet is run, and one that is stays as it is.
        lines[2] = lines[2].replace(",", ",1,", 1).rsplit(",", 1)[0] + "\n"
        kept = lines[3].split(",")
        kept[2] = "12345"
        file.write_text("".join([*lines[:3], ",".join(kept)]))
        self.made("--figure", "1")
        rows = self.rows("fig01")
        self.assertEqual(len(rows), 8)
        self.assertEqual(rows[kept[0], kept[1]]["offered_rps"], "12345")
        self.made("--figure", "1", "--fresh")
        self.assertNotEqual(self.rows("fig01")[kept[0], kept[1]]["offered_rps"], "12345")

    def test_bad_files_are_one_clear_line(self):
        self.refused("--figures", self.folder, says="is no paper's folder; call")
        self.refused("--figure", "9", says="--figure 9: A paper has 1, 2, table3 here")
        table = self.paper / "table3.toml"
        table.write_text("title = \"\"\nask = \"nothing\"\n")
        self.refused("--figure", "table3", says="ask = 'nothing' is no question")
        table.write_text("title = \n")
        self.refused("--figure", "table3", says="table3.toml:1: ")
        table.write_text("ask = 'fleet'\n[[series]]\nlabel = 'a, b'\n")
        self.refused("--figure", "table3", says="label 'a, b': write it without a comma")
        table.write_text("scenario = 'nowhere'\n[[series]]\nlabel = 'a'\n")
        self.refused("--figure", "table3", says="nowhere.toml: cannot read this file (No such")
        self.assertFalse((self.folder / "out").exists())
        (self.paper / "fig01.toml").write_text(FIGURE_1.replace("duration_s=10", "duration=10"))
        self.refused("--figure", "1", says="--set duration")


class Claims(unittest.TestCase):
    DATA = {"a": {1.0: {"y": 4.0}, 2.0: {"y": 6.0}}, "b": {1.0: {}, 2.0: {"y": 3.0}}}

    def claim(self, **says):
        return claims.of({}, {"claims": [says]}, self.DATA)

    def test_the_functions_read_the_data(self):
        for expression, value in (("at('a', 2, 'y')", "6.0"), ("at('b', 1, 'y')", "0"),
                                  ("most('a', 'y', 0, 1)", "4.0"), ("least('a', 'y')", "4.0"),
                                  ("mean('a', 'y')", "5.0"), ("values('b', 'y')", "[3.0]"),
                                  ("first('a', 'y', 5)", "2.0"), ("first('a', 'y', 7)", "0")):
            claim, = self.claim(what="{" + expression + "}", ours="", holds="True")
            self.assertEqual(claim.what, value, expression)

    def test_a_block_may_be_left_out_or_hold_others(self):
        found = self.claim(each="x in (1, 2)", let={"y": "at('b', x, 'y')"}, when="y",
                           claims=[{"what": "{x}: {y}", "ours": "", "holds": "y > 5"},
                                   {"what": "again", "value": "y", "least": 3}])
        self.assertEqual([(c.what, c.holds, c.bar) for c in found],
                         [("2: 3.0", False, ""), ("again", True, ">= 3")])

    def test_every_figure_of_every_paper_can_be_read(self):
        for paper in sorted((SOURCE / "figures").glob("*/paper.toml")):
            ids = load_toml(paper)["figures"]
            self.assertEqual({papers.stem_of(each) + ".toml" for each in ids} | {"paper.toml"},
                             {file.name for file in paper.parent.iterdir()})
            for each in ids:
                says = papers.load_figure(paper.parent, papers.stem_of(each))
                self.assertTrue(says["title"], each)
                for panel in says.get("panels", []):
                    self.assertTrue(panel.get("y") or panel.get("cdf"), (each, panel))


class Pictures(unittest.TestCase):
    def test_a_system_has_one_colour_in_all_panels(self):
        data = {f"{group}: {name}": {1.0: {"y": 1.0}} for group in "gh" for name in ("m", "n")}
        says = {"panels": [{"group": "g", "y": "y"}, {"group": "h", "y": "y"}]}
        panels = pictures.panels_of(says, ["g: n", "g: m", "h: m"], data, [])
        self.assertEqual([dict(zip([name for _, name in panel.curves], panel.styles))
                          for panel in panels], [{"n": 0, "m": 1}, {"m": 1}])

    def test_what_the_file_says_is_drawn(self):
        data = {"a": {1.0: {"y": 2.0, "m": 1.0}, 2.0: {"y": 4.0}}, "b": {0.0: {"y": 8.0}}}
        says = {"panels": [{"y": "y", "relative_to": "b", "mark": "m", "mark_label": "x_y",
                            "line": 3, "line_label": "bar"}]}
        text = pictures.panels_of(says, ["a", "b"], data, [])[0].text({})
        self.assertIn("$p0s0 << EOD\n1.0 0.25\n2.0 0.5\nEOD\n", text)
        self.assertIn("1.0 with lines dt 2", text)  # b, a level for all x
        self.assertIn('title "x\\\\_y"', text)
        self.assertIn("first 3 to graph 1", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
