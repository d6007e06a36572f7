"""What the papers' figures are made of: points, workloads, draws, and answers by the program.

    figure_answers_test.py TACTUS SOURCE_FOLDER
"""

import json
import pathlib
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

from command_case import CommandCase, SCENARIO, SOURCE, TACTUS, reproduce, tactus

sys.path.insert(0, str(SOURCE / "figures"))
import answers
import draws
import fleet_answers
import grid
import papers
import partition_answers
import prediction_answers
import program
import result_file
import runs


class Points(unittest.TestCase):
    # A figure that cannot be made would show only when it is asked for, after hours.
    def test_every_series_of_every_paper_is_what_the_program_takes(self):
        asked = []
        for paper in sorted((SOURCE / "figures").glob("*/paper.toml")):
            scenarios = SOURCE / "scenarios" / paper.parent.name
            _, figures = papers.read_paper(paper.parent)
            self.assertTrue(figures)
            for figure in figures:
                for series in figure.series:
                    self.assertTrue(series.points, (figure.id, series.label))
                    point = series.points[0]
                    self.assertNotIn("{", "".join(point.settings))
                    if point.scenario:  # else a solver or a bench answers
                        profile = [f"profile={scenarios / point.profile}"] if point.profile else []
                        asked.append((figure.ask, scenarios / f"{point.scenario}.toml",
                                      *point.settings, *profile))

        def check(ask, scenario, *settings):
            words = ["simulate", scenario] if ask == "fleet" else ["check", scenario]
            short = ["duration_s=1"] if ask == "fleet" else []
            sets = [word for each in [*settings, *short] for word in ("--set", each)]
            done = tactus(*words, *sets)
            return (scenario, settings, done.stderr) if done.returncode not in (0, 1) else None

        self.assertGreater(len(set(asked)), 100)
        with ThreadPoolExecutor(2) as pool:
            wrong = [each for each in pool.map(lambda each: check(*each), set(asked)) if each]
        self.assertEqual(wrong, [])

    def test_a_point_is_what_its_files_say(self):
        paper = {"systems": {"A@x": ["policy=a"], "B": []}}
        figure = {"scenario": "s", "also": ["z=1"], "with": {"k": 1}, "series": [
            {"each": {"slo": [40, 0.5]}, "group": "SLO {slo}", "systems": ["A@x", "B"],
             "settings": ["slo={slo}", "rate={2x+16}"],
             "points": [{"x": [1, 2.5]}, {"name": "n", "with": {"k": "v"}}]},
            {"label": "alone", "scenario": "t", "settings": ["x={x}"]}]}
        series = list(papers._series(paper, figure))
        self.assertEqual([each.label for each in series],
                         ["SLO 40: A", "SLO 40: B", "SLO 0.5: A", "SLO 0.5: B", "alone"])
        points = series[2].points
        self.assertEqual([(each.x, each.name, each.withs) for each in points],
                         [(1, "", {"k": "1"}), (2.5, "", {"k": "1"}), (3, "n", {"k": "v"})])
        self.assertEqual(points[1].settings, ["policy=a", "slo=0.5", "rate=21", "z=1"])
        point, = series[4].points
        self.assertEqual((point.x, point.scenario, point.settings), (0, "t", ["x=0", "z=1"]))


class ResultFiles(CommandCase):
    def found(self, origin, fresh=False, rows=()):
        file = result_file.ResultFile(self.folder / "results.csv", origin, ["x", "y"], fresh)
        file.append(rows)
        file.close()
        return file.found

    # A command of hours that was killed goes on from its file: a row that is lost is run again.
    def test_it_goes_on_where_it_was(self):
        self.found("a", rows=[["1", "2"], ["3", "4"]])
        with open(self.folder / "results.csv", "a", encoding="utf-8") as file:
            file.write("5,")  # cut off while it was written
        self.assertEqual(self.found("a"), [["1", "2"], ["3", "4"]])
        self.assertEqual(self.found("a", fresh=True), [])
        self.found("a", rows=[["1", "2"]])
        self.assertEqual(self.found("b"), [])  # one of another origin would be taken for ours


class Draws(unittest.TestCase):
    # Of the program's own: rng_test.cc has the same values.
    def test_a_streams_numbers_stay(self):
        stream = draws.Stream(7, "a contract")
        self.assertEqual(stream.next(), 15242218863492673840)
        self.assertEqual(stream.below(1000), 160)
        self.assertEqual(stream.exponential(0.5), 0.1851483601030673)

    def test_a_partition_problem_is_the_same_for_a_seed(self):
        one, two, other = (partition_answers.problem_of(seed) for seed in (1, 1, 2))
        self.assertEqual(one, two)
        self.assertEqual((len(one["models"]), one["cluster"]["sub_clusters"]), (800, 20))
        names = [[each["name"] for each in problem["models"]] for problem in (one, other)]
        self.assertEqual(len(set(names[0])), 800)
        self.assertGreater(sum(a != b for a, b in zip(*names)), 600)


class Runs(unittest.TestCase):
    def test_percentiles_are_nearest_ranks(self):
        values = [30, 10, 20, 40]
        self.assertEqual([runs.percentile(values, each) for each in (1, 25, 26, 50, 100)],
                         [10, 10, 20, 20, 40])
        self.assertEqual(runs.percentile([], 50), 0)

    def test_a_row_is_the_mean_of_the_seeds(self):
        def run(bad, exits, limit, busy):
            figures = dict.fromkeys(("offered_rps", "goodput_rps", "p50_ms", "p95_ms", "p99_ms",
                                     "mean_batch", "accuracy", "lanes_touched", "queue_p99_ms"), 4)
            return figures | {"bad_ratio": bad, "exits": exits, "accuracy_limit": limit,
                              "queue_p50_ms": None, "prediction": {"p50": bad, "p95": 0, "p99": 0},
                              "priorities": [{"bad_ratio": bad, "p50_ms": 1, "p95_ms": 2,
                                              "p99_ms": 3}] * 2,
                              "lanes": [{"busy_ratio": busy, "open_ratio": 1},
                                        {"busy_ratio": 0, "open_ratio": 0.5}]}

        row = answers.row_of([run(0.1, {"final": 1.0}, 0.5, 0.9),
                              run(0.3, {"final": 0.5, "odd": 0.5}, 0.7, 0.3)])
        self.assertEqual(row["bad_percent"], 20)
        self.assertEqual((row["final"], row["odd"], row["layer1"]), (0.75, 0.25, 0))
        self.assertAlmostEqual(row["accuracy_limit_percent"], 60)
        self.assertEqual(row["queue_p50_ms"], 0)
        self.assertAlmostEqual(row["busy_percent"], 100 * 0.6 / 1.5)
        self.assertEqual((row["high_bad_percent"], row["low_p99_ms"]), (20, 3))
        self.assertEqual(row["error_p50_percent"], 20)

    def test_the_advice_is_the_servers(self):  # some of autoscale_test.cc's cases
        for lanes, bad, idle, advised in ((10, 0.2, 0, 13), (4, 0.2, 0, 5), (10, 0.009, 0.05, 10),
                                          (10, 0.9, 0, 20), (10, 1, 0, 20), (1, 0.02, 0, 2),
                                          (10, 0, 0.19, 10), (10, 0, 0.55, 5), (10, 0, 1, 2)):
            scenario = {"lanes": {"count": lanes}, "autoscale": {"least": 2}}
            self.assertEqual(answers.advised_lanes(scenario, bad, lanes * (1 - idle)), advised)

    def test_a_history_is_what_it_was_at_each_instant(self):
        rows = {1.0: {}, 2.0: {}, 3.0: {}}
        answers._steps(rows, [(0.5, 1), (1.5, 2), (2.0, 3)], "open")
        self.assertEqual(rows, {1.0: {"open": 1}, 2.0: {"open": 3}, 3.0: {"open": 3}})

    def test_links_are_means_of_their_traces(self):
        links = fleet_answers.SourceLinks.__new__(fleet_answers.SourceLinks)
        links._samples = {"a": [(0.0, 10.0), (30.0, 40.0)], "b": [(0.0, 7.0)]}
        self.assertEqual(links.mean_mbps("a", 0, 60), 25)
        self.assertEqual(links.mean_mbps("a", 60, 120), 40)
        self.assertEqual(links.mean_mbps("b", 60, 120), 7)
        self.assertEqual(links.mean_mbps("none", 0, 60), 0)

    def test_a_minute_is_a_step_of_the_schedule(self):
        whole = {"scenario": {"duration_s": 600, "warmup_s": 5, "seed": 2},
                 "arrivals": {"rate_rps": 100, "schedule": "rates.csv"},
                 "models": [{"name": "a", "ratio": 3}, {"name": "b"}]}
        minute = prediction_answers._minute(whole, [2.0, 4.0], 7)
        self.assertEqual(minute["scenario"], {"duration_s": 60, "warmup_s": 0, "seed": 2007})
        self.assertEqual(minute["arrivals"], {"rate_rps": 250.0, "popularity": "ratio"})
        self.assertEqual([each["ratio"] for each in minute["models"]], [150.0, 100.0])
        self.assertEqual(whole["models"][0]["ratio"], 3)


class Grid(CommandCase):
    # A workload that is there twice would be run and counted twice; one that is missing never.
    def test_it_is_the_product_of_table_1(self):
        cells = grid.all_cells(35)
        names = {cell.name for cell in cells}
        self.assertEqual(len(names), len(cells))
        self.assertEqual(sum(cell.model == grid.MIXED for cell in cells), 7 * 6)
        self.assertEqual(len(cells), 6 * 6 * 7 * 5 * 6 + 7 * 6)
        self.assertLessEqual({"DenseNet121,8,12,30,0.1", "mixed,35,140,0,1"}, names)
        self.assertEqual(len({cell.name for cell in grid.chosen_cells(35, 0)}), len(cells))
        self.assertEqual(len(grid.chosen_cells(35, 14)), 14)

    def peak(self, cell, policy, start, *words):
        profile = SOURCE / "scenarios/profiles/symphony-1080ti.json"
        called = program.Program(TACTUS)
        file = program.write_toml(
            grid.workload(cell, json.loads(profile.read_bytes()), profile, 100.0, 1.5),
            self.folder / "cell.toml")
        search = ["goodput", file, "--seeds", 1, "--together", "--policies", policy]
        fluid = called.json(*search, "--precision", 50, enough=(0, 1))["runs"][0]["peak"][
            "fluid_limit_rps"]
        found = called.json(*search, "--precision", 2, "--start", start * fluid, "--first-step",
                            1.08, *words, settings=[f"duration_s={0.5 + 6000 / fluid}"])
        return found["runs"][0]["peak"]["rate_rps"]

    def test_a_cell_is_the_workload_that_it_names(self):
        cell = grid.Cell("VGG16", 16, 1.5, 40, 0.25)
        made = grid.workload(cell, {"models": []}, pathlib.Path("p"), 10.0, 3.0)
        self.assertEqual((made["lanes"]["count"], made["arrivals"]["cv"]), (24, 2))
        self.assertEqual(made["models"][3],
                         {"name": "VGG16-3", "profile_as": "VGG16", "slo_ms": 40})
        self.assertEqual(len(made["models"]), 16)

    # Figure 7 in small: deferral pays where batching does and lanes are scarce in time, and costs
    # next to nothing where it does not.
    def test_deferral_pays_where_batching_does(self):
        for cell, least, most in ((grid.Cell("DenseNet121", 8, 3, 25, 1), 1.3, 9),
                                  (grid.Cell("BERT", 8, 3, 50, 1), 0.9, 1.1)):
            ratio = (self.peak(cell, "symphony:published", 0.9) /
                     self.peak(cell, "symphony:published,when=eager", 0.9))
            self.assertTrue(least < ratio < most, (cell.name, ratio))

    # A search that depended on its guess would make the figure depend on the order of its policies.
    def test_the_guess_moves_the_peak_by_no_more_than_the_precision(self):
        cell = grid.Cell("ResNet50V2", 8, 2, 40, 0.5)
        low, high = (self.peak(cell, "symphony:gather=prefix,lead=0", start)
                     for start in (0.3, 1.6))
        self.assertAlmostEqual(low / high, 1, delta=0.04)

    def test_curves_are_ratios_of_peaks(self):
        bert = [(grid.Cell("BERT", 8, lanes, slo, 1), [peak, peak, 2.0, 4.0])
                for lanes, slo, peak in ((1.0, 20, 4.0), (1.0, 20, 8.0), (2.0, 20, 6.0))]
        data = grid.curves(bert + [(grid.Cell("VGG16", 8, 1.0, 20, 1), [0.0] * 4)])
        self.assertEqual(data["BERT: SLO 20 ms"], {1.0: {"ratio": 2.0}, 2.0: {"ratio": 1.5}})
        spread = data["all workloads: published / eager (window)"]
        self.assertEqual([row["ratio"] for row in spread.values()], [1.0, 1.5, 2.0])
        self.assertEqual([round(x) for x in spread], [33, 67, 100])


class Programs(CommandCase):
    def test_a_scenario_that_is_written_is_the_one_that_was_read(self):
        for name in ("gpulets/traffic", "symphony/fig15", "strait/trace"):
            scenario = program.load_scenario(SOURCE / f"scenarios/{name}.toml")
            file = program.write_toml(scenario, self.folder / "written.toml")
            self.assertEqual(program.load_toml(file), scenario)

    def test_what_the_program_says_is_passed_on(self):
        called = program.Program(TACTUS)
        with self.assertRaisesRegex(program.Failed, "--set sed"):
            called.simulate(SCENARIO, settings=["sed=7"])
        with self.assertRaisesRegex(program.Failed, "nowhere: .*; ./run build makes it"):
            program.Program("nowhere").commit()

    # What the simulator reports of a run, and what follows from its requests, is the same.
    def test_requests_and_the_timeline_are_the_reports(self):
        called, file = program.Program(TACTUS), self.folder / "requests.csv"
        run = called.simulate(SCENARIO, "--requests", file, "--timeline", 4,
                              settings=["duration_s=4", "warmup_requests=10"])
        requests = runs.requests_of(file)
        self.assertEqual(len(requests), run["requests"])
        latencies = [int(row["ended_ns"]) - int(row["arrival_ns"]) for row in requests
                     if row["outcome"] in ("met", "late")]
        self.assertAlmostEqual(runs.percentile(latencies, 95) * 1e-6, run["p95_ms"])
        self.assertEqual([each["model"] for each in run["timeline"]],
                         [each["name"] for each in run["models"]] + [None])
        self.assertEqual(run["timeline"][-1]["end_s"], [1, 2, 3, 4])
        self.assertAlmostEqual(sum(run["timeline"][-1]["offered_rps"]), run["requests"] + 10)

    def test_the_schedulers_figure_comes_from_its_benchmark(self):
        words = ["symphony", "--figure", "13-left", "--out", self.folder,
                 "--scenarios", SOURCE / "scenarios/symphony", "--figures", SOURCE / "figures"]
        self.assertIn("give --scheduler FILE", reproduce(*words).stderr)
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
        done = reproduce(*words, "--scheduler", measured)
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
            done = reproduce(*words, "--scheduler", measured)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)

    def test_a_figure_without_its_scenarios_leaves_no_folder(self):
        out = self.folder / "out"
        done = reproduce("symphony", "--figure", "2", "--out", out, "--scenarios", self.folder,
                         "--figures", SOURCE / "figures")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot read this file", done.stderr)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
