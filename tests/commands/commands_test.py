"""tactus simulate, compare and replay, called as a user does: what they print, write and return.

    commands_test.py TACTUS SOURCE_FOLDER
"""

import json
import os
import re
import subprocess
import sys
import unittest

from command_case import CommandCase, SCENARIO, SHORT, SOURCE, TACTUS, tactus


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

    def test_seeds_are_whole_numbers_from_0(self):
        # Else -1 would run, and be told as 18446744073709551615.
        for *words, option in (("simulate", SCENARIO, "--seed"), ("measure", SCENARIO, "--seed"),
                               ("load", SCENARIO, "--seed"), ("compare", SCENARIO, "--first-seed"),
                               ("goodput", SCENARIO, "--first-seed"),
                               ("plan", "lanes", SCENARIO, "--first-seed"),
                               ("fit", "interference", "pairs.csv", "--seed")):
            for seed in ("-1", "1.5", "18446744073709551616"):
                self.bad(*words, option, seed, says=f"{option}: Value {seed} not in range 0 to ")

    def test_seeds_are_a_count_in_every_command(self):
        # A list would be read as something else by whoever wrote it, or not at all.
        for *words, in (("simulate", SOURCE / "scenarios/octopinf/testbed.toml"),
                        ("compare", SCENARIO, "--policies", "fifo"), ("goodput", SCENARIO),
                        ("plan", "lanes", SCENARIO)):
            for seeds in ("1,2,3", "0", "1001", "two"):
                self.bad(*words, "--seeds", seeds,
                         says=f"--seeds: '{seeds}' is no number of seeds from 1 to 1000")

    def test_simulate_is_repeatable(self):
        files = [self.folder / name for name in ("a", "b")]
        for file in files:
            self.good("simulate", SCENARIO, *SHORT, "--journal", file)
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes())

    def test_check_says_what_is_doubtful_and_runs_nothing(self):
        self.assertEqual(self.good("check", SCENARIO), "nothing is doubtful\n")
        text = self.in_vain("check", SCENARIO, "--set", "policy=symphony:ctrl=49000")
        self.assertEqual(text.count("policy, doubtful: "), 3, text)
        self.bad("check", SCENARIO, "--set", "policy=magic", says="no policy 'magic'")
        self.bad("check", says="scenario or --models")
        self.bad("check", self.folder,
                 says=f"to check the models in a repository, write `tactus check --models "
                 f"{self.folder}`")
        for option, value in (("--policy", "fifo"), ("--lanes", 2), ("--profile", "p.json"),
                              ("--slots", 2)):  # a server's: nothing would judge them here
            self.bad("check", SCENARIO, option, value, says=f"{option}: belongs to a server, and a "
                     "scenario is checked here; change the scenario with --set")
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("empty has no model; each has a folder", self.in_vain(
            "check", "--models", empty, "--threads", 1))
        folder = self.folder / "models/m"
        folder.mkdir(parents=True)
        (folder / "config.pbtxt").write_text(
            'platform: "identity"\nmax_batch_size: 4\n'
            'parameters { key: "slo" value { string_value: "20" } }\n'
            'input { name: "x" data_type: TYPE_FP32 dims: 1 }\n'
            'output { name: "y" data_type: TYPE_FP32 dims: 1 }\n')
        text = self.in_vain("check", "--models", self.folder / "models", "--threads", 1)
        self.assertIn('parameters["slo"]: no key of Tactus', text)
        self.assertIn("note: model 'm' has no profile", text)
        (folder / "config.pbtxt").write_text('platform: "magic"\n')
        self.assertIn("refused: ", self.in_vain("check", "--models", self.folder / "models"))

    def test_check_binds_the_steps_of_ensembles(self):
        root = self.folder / "models"

        def add(name, text):
            (root / name / "1").mkdir(parents=True)
            (root / name / "config.pbtxt").write_text(
                'input { name: "x" data_type: TYPE_FP32 dims: 1 }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: 1 }\n' + text)

        def ensemble(name, step, reads="x", key="slo_ms", value="60000", more=""):
            add(name, 'platform: "ensemble"\nensemble_scheduling { step {\n'
                f'model_name: "{step}" {more} input_map {{ key: "{reads}" value: "x" }}\n'
                'output_map { key: "y" value: "y" } } }\n'
                f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n')

        add("echo", 'platform: "identity"\n')
        ensemble("fine", "echo")
        ensemble("part", "echo", key="as_step", value="true")
        ensemble("whole", "part")
        self.assertNotIn("refused", self.good("check", "--models", root, "--threads", 1))
        (root / "empty").mkdir()
        (root / "empty" / "config.pbtxt").write_text('platform: "onnxruntime_onnx"\n')
        mistakes = {
            "absent": ("none", "the repository has no model 'none'", {}),
            "deep": ("part", "'part' is an ensemble, but one with as_step has steps that are",
                     {"key": "as_step", "value": "true"}),
            "outer": ("fine", "'fine' is an ensemble itself", {}),
            "hollow": ("empty", "model 'empty' has no version that serves", {}),
            "ping": ("pong", "'pong' is an ensemble that calls 'ping' in turn", {}),
            "pong": ("ping", "'ping' is an ensemble that calls 'pong' in turn", {}),
            "self": ("self", "the ensemble calls itself", {}),
            "tensor": ("echo", "model 'echo' has no input 'z'; it has 'x'", {"reads": "z"}),
            "version": ("echo", "model 'echo' has no version 7 that serves; there are: 1",
                        {"more": "model_version: 7"}),
        }
        for name, (step, _, more) in mistakes.items():
            ensemble(name, step, **more)
        text = self.in_vain("check", "--models", root, "--threads", 1)
        for name, (step, says, _) in mistakes.items():
            self.assertIn(f"{root}/{name}/config.pbtxt:5:1: step '{step}': {says}", text)
        self.assertIn(f"refused: {root}/empty: no version folder", text)
        self.assertEqual(text.count("refused: "), len(mistakes) + 1, text)

    def test_replay_decides_the_same(self):
        file = self.folder / "journal"
        for policy in ("edgeserving", "symphony", "early-exit-edf"):
            self.good("simulate", SCENARIO, *SHORT, "--policy", policy, "--journal", file)
            self.assertIn("identical: ", self.good("replay", file))

    def test_a_file_that_is_read_is_not_written_over(self):
        """Of commands whose journal, tensors or configuration a wrong name would destroy."""
        file, config = self.folder / "journal", self.folder / "serve.toml"
        self.good("simulate", SCENARIO, *SHORT, "--journal", file)
        config.write_text("lanes = 1\n")
        lost = "reads this file, which would be lost; name another"
        for says, *words in (
                (f"--out: {file}: journal {lost}", "trace", file, "--out", file),
                (f"--json: {file}: --input {lost}", "load", "--models", "m", "--input",
                 f"INPUT={file}", "--json", file),
                (f"--journal: {config}: --config {lost}", "serve", "--models", self.folder,
                 "--config", config, "--journal", config),
                (f"--journal: {file}: --routes {lost}", "serve", "--models", self.folder,
                 "--routes", file, "--journal", file)):
            self.bad(*words, says=says)
        self.assertIn("identical: ", self.good("replay", file))
        self.assertEqual(config.read_text(), "lanes = 1\n")

    def test_explain_says_why_requests_were_not_in_time(self):
        file, report = self.folder / "journal", self.folder / "report.json"
        self.good("simulate", SCENARIO, *SHORT, "--policy", "fifo", "--journal", file,
                  "--json", report, "--set", "rate_rps=2000", "--set", "warmup_requests=0")
        text = self.good("explain", file, "--worst", 2)
        self.assertEqual(text.count("what would have saved it: "), 2, text)
        for model in json.loads(report.read_text())["runs"][0]["models"]:
            row = next(line.split() for line in text.splitlines() if line.startswith(model["name"]))
            self.assertEqual(int(row[3]), model["outcomes"]["late"], text)
        self.bad("explain", file, "--model", "none", says="has no requests of a model 'none'")
        self.bad("explain", SCENARIO, says="is no Tactus journal")

    def test_replay_takes_a_beginning_and_refuses_what_is_no_journal(self):
        file = self.folder / "journal"
        self.good("simulate", SCENARIO, *SHORT, "--journal", file)
        whole = file.read_bytes()
        file.write_bytes(whole[:-7])
        text = self.good("replay", file)
        self.assertIn("only the beginning: it has no end", text)
        self.assertIn("identical: ", text)
        file.write_bytes(whole[:100])
        self.bad("replay", file, says="was cut off before its first served_models")
        file.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
        self.bad("replay", file, says="is damaged")
        missing = self.folder / "x.toml"
        self.bad("simulate", missing, says=f"{missing}: cannot read this scenario (No such file or "
                 "directory); scenarios/three-resnets.toml is an example")
        self.assertIn("x.toml: cannot read this scenario (No such", tactus("load", missing).stderr)
        self.bad("plan", "fleet", missing, says="x.toml: cannot read this fleet (No such file or "
                 "directory); scenarios/fleets/testbed.toml is an example")
        fleet = SOURCE / "scenarios/fleets/testbed.toml"
        for words in (["check"], ["compare", "--policies", "fifo"], ["goodput"]):
            self.bad(words[0], fleet, *words[1:],
                     says="testbed.toml: is a fleet ([[devices]]), and a scenario")
        self.bad("plan", "fleet", SCENARIO,
                 says="three-resnets.toml: is a scenario of one machine ([[models]]), and a fleet")
        self.bad("cluster", "up", "/no/such", says="/no/such: there is no such file or folder; "
                 "name a fleet's file")
        self.bad("cluster", "status", "--controller", "127.0.0.1:1",
                 says="is one up that listens there (--controller HOST:PORT)")
        for address in ("here", "127.0.0.1:99999", ":7400", "127.0.0.1:", "[::1:7400", "::1:7400"):
            self.bad("cluster", "status", "--controller", address,
                     says=f"'{address}' is not HOST:PORT, with a port from 0 to 65535")
        self.bad("controller", fleet, "--state", self.folder / "controller", "--listen",
                 "127.0.0.1:99999", says="'127.0.0.1:99999' is not HOST:PORT")
        tls = self.folder / "authority"
        self.assertEqual(tactus("cluster", "init", tls).returncode, 0)
        self.assertEqual(tactus("cluster", "certificate", "north", "--tls", tls, "--out",
                                self.folder / "north").returncode, 0)
        self.bad("controller", fleet, "--state", self.folder / "controller", "--tls",
                 self.folder / "north", says="node.pem is of node 'north', and a controller's is")
        for option, value in (("--rate", 5), ("--models", "a"), ("--duration", 1), ("--seed", 2)):
            self.bad("load", SCENARIO, option, value,
                     says=f"{option}: {SCENARIO} says it; change it there, or leave one out")
        refused = tactus("load", "--models", "a", "--url", "127.0.0.1:1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("Connection refused; is a server up, and is this its HTTP port (--url",
                      refused.stderr)
        said = tactus("stream", "nothere.mp4", "--model", "m")
        self.assertEqual(said.returncode, 2)
        if "install the package tactus-video" not in said.stderr:  # of a build without libav
            self.assertIn("nothere.mp4: there is no such file; name one, or an rtsp", said.stderr)
        self.bad("replay", SCENARIO, says="is no Tactus journal")
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.bad("replay", pipe, says="no regular file")
        self.bad("replay", self.folder / "nothing", says="cannot read")

    def test_a_scenario_of_more_requests_than_memory_holds_is_refused(self):
        self.bad("simulate", SCENARIO, "--set", "rate_rps=1000000", "--set", "duration_s=1000",
                 says="requests would come in 1000 s, and a simulation keeps 100000000 at most: "
                      "lower rate_rps or duration_s")

    def test_compare_sets_policies_side_by_side(self):
        file = self.folder / "report.json"
        text = self.good("compare", SCENARIO, *SHORT, "--policies",
                         "fifo:batch=4,all-final", "--seeds", 2,
                         "--sweep", "rate_rps=100,1200", "--json", file)
        runs = json.loads(file.read_text())["runs"]
        self.assertEqual(len(runs), 8)
        self.assertEqual({run["settings"]["rate_rps"] for run in runs}, {"100", "1200"})
        self.assertEqual({run["seed"] for run in runs}, {1, 2})
        rows = [line.split()[:2] for line in text.splitlines() if line.startswith(("fifo", "all"))]
        self.assertEqual(rows, [["fifo:batch=4", "100"], ["all-final", "100"],
                                ["fifo:batch=4", "1200"], ["all-final", "1200"]])
        self.assertLessEqual(max(len(line) for line in text.splitlines() if "/" in line and
                                 line.startswith(("fifo", "all"))), 120)
        # Two policies see the same arrivals.
        first = {(r["seed"], r["settings"]["rate_rps"]): r["offered_rps"] for r in runs[:4]}
        for run in runs[:4]:
            self.assertEqual(run["offered_rps"], first[run["seed"], run["settings"]["rate_rps"]])

    def test_compare_says_which_row_a_footer_is_about(self):
        text = self.good("compare", SCENARIO, *SHORT, "--policies", "fifo", "--sweep",
                         "rate_rps=100,1200", "--wide")
        for rate in (100, 1200):
            self.assertRegex(text, rf"(?m)^fifo, rate_rps={rate}: \d+ requests, ")

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
                self.assertIn(f"viol. {level['priority']} ", printed)
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

    def test_policies_are_listed_in_one_screen(self):
        lines = self.good("policies").splitlines()
        self.assertLessEqual(len(lines), 30)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertIn("the default", lines[0])
        self.assertEqual(lines[0].split()[0], "horizon")
        for name, paper in (("edgeserving", "EdgeServing"), ("strait", "Strait")):
            self.assertTrue(any(line.split() == [name, "the", "published", "rule", "of",
                                                 paper + ",", "for", "comparison"]
                                for line in lines), name)
        # The paper's rule is symphony:published.
        self.assertTrue(any(line.split() == "symphony Symphony with our lead and aim".split()
                            for line in lines))
        symphony = self.good("policies", "symphony")
        self.assertIn("published: as in the paper", symphony)
        self.assertIn("gather=window|prefix", symphony)

    def test_the_default_policy_runs_where_none_is_named(self):
        scenario = self.folder / "unnamed.toml"
        text = SCENARIO.read_text()
        named = [line for line in text.splitlines() if line.startswith("policy")]
        self.assertEqual(len(named), 1)
        profile = SCENARIO.parent / "profiles/edgeserving-standin.json"
        scenario.write_text(text.replace(named[0], "").replace(
            "profiles/edgeserving-standin.json", str(profile)))
        file = self.folder / "run.json"
        self.good("simulate", scenario, "--set", "duration_s=1", "--set", "warmup_s=0",
                  "--set", "warmup_requests=0", "--json", file)
        self.assertEqual(json.loads(file.read_text())["runs"][0]["policy"], "horizon")

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
        self.assertRegex(self.good("simulate", scenario), r"profile, doubtful: .* batch 4 of exit "
                         r".* takes .* less than batch 3")
        self.assertNotIn("doubtful", self.good("simulate", SCENARIO, *SHORT))
        text = self.good("compare", scenario, "--policies", "fifo,symphony", "--seeds", 2,
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

    def test_help_shows_defaults_and_what_is_required(self):
        for words, line in ((["agent"], "--controller A,B (commas, or the option again)="
                                        "127.0.0.1:7400"),
                            (["cluster", "status"], "again)=127.0.0.1:7400"),
                            (["front-end"], "--schedulers A,B (commas, or the option again) "
                                            "REQUIRED"),
                            (["compare"], "--policies A,B (commas, or the option again) REQUIRED"),
                            (["load"], "--warmup FLOAT:NONNEGATIVE=0"),
                            (["stream"], "--fps FLOAT:FLOAT in [0 - 1000]=0"),
                            (["stream"], "--in-flight INT:INT in [1 - 100000]=1")):
            text = self.good(*words, "--help")
            self.assertEqual(len(re.findall(re.escape(line) + r"\s*$", text, re.M)), 1, text)

    def test_the_help_of_a_server_fits_and_help_all_has_the_rest(self):
        described = json.loads(self.good("describe"))["program"]["commands"]
        for name in ("serve", "front-end"):
            command = next(each for each in described if each["name"] == name)
            options = {each["names"][-1].replace("--no-", "--"): each["group"]
                       for each in command["options"]}
            short, whole = self.good(name, "--help"), self.good(name, "--help-all")
            shown = re.findall(r"(?m)^  (?:-h,)?(--[a-z-]+)", short)
            self.assertLessEqual(len(shown), 40)
            self.assertEqual(set(shown), {option for option, group in options.items()
                                          if not group.endswith(" (more)")})
            self.assertEqual(set(re.findall(r"(?m)^  (?:-h,)?(--[a-z-]+)", whole)), set(options))
            self.assertIn(f"--help-all shows {len(options) - len(shown)} more options", short)
            first = re.search(r"(?ms)^What you usually need:\n(.*?)^\S", short).group(1)
            self.assertLessEqual(len(re.findall(r"(?m)^  --", first)), 8)

    def test_help_fits_80_columns(self):
        def names_of(commands, above=()):
            for each in commands:
                yield (*above, each["name"])
                yield from names_of(each["commands"], (*above, each["name"]))
        described = json.loads(self.good("describe"))["program"]["commands"]
        for words in [(), *names_of(described)]:
            text = self.good(*words, "--help")
            for line in text.splitlines():
                # Names stay whole; text is broken.
                self.assertTrue(len(line) <= 80 or re.match(r"  -|Usage: ", line), line)
            # All of what is described is there.
            self.assertGreater(len(text.splitlines()), 4)

    def test_options_from_a_file(self):
        config = self.folder / "serve.toml"

        def serve(text, *words):
            config.write_text(text)
            done = tactus("serve", "--config", config, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr

        self.assertIn("here/no-models", serve('# ours\nmodels = ["here/no-models"]\npin = false\n'))
        self.assertIn("there/none", serve('models = "here/no-models"\n', "--models", "there/none"))
        self.assertIn("--lanes", serve('models = "x"\nlanes = 0\n'))
        self.assertIn("serve.toml: there is no option 'lane' (did you mean 'lanes'?)",
                      serve('lane = 2\n'))
        self.assertIn("[serve]: options stand without sections", serve('[serve]\nlanes = 2\n'))
        self.assertIn("there is no option 'config'", serve('config = "x"\n'))
        self.assertIn("--config", tactus("serve", "--config").stderr)
        missing = tactus("serve", f"--config={self.folder}/none").stderr
        self.assertIn("cannot read this configuration", missing)

    def test_a_file_that_may_not_grow_is_an_error_that_names_it(self):
        # Else the signal of the limit ends the command without a word.
        def limited(*words, most=4096, **more):
            done = subprocess.run(["prlimit", f"--fsize={most}:{most}", TACTUS, *map(str, words)],
                                  text=True, timeout=600, **more)
            self.assertIn(done.returncode, (1, 2), (words, done.stderr))
            self.assertIn("(ulimit -f)", done.stderr)
            return done.stderr
        simulate = ("simulate", SCENARIO, *SHORT)
        for words in ((*simulate, "--requests"), (*simulate, "--journal"),
                      (*simulate, "--timeline", 50, "--json")):
            file = self.folder / "file"
            said = limited(*words, file, capture_output=True)
            self.assertIn(str(file), said)
            self.assertEqual(len(said.strip().splitlines()), 1, said)
        with (self.folder / "out").open("w") as out:
            self.assertIn("standard output", limited("policies", most=100, stdout=out,
                                                     stderr=subprocess.PIPE))

    def test_a_journal_is_simulated_again_and_drawn(self):
        journal = self.folder / "run.journal"
        tactus("simulate", SCENARIO, *SHORT, "--journal", journal)
        report = self.folder / "again.json"
        done = tactus("simulate", "--from-journal", journal, "--policy", "fifo", "--json", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the same setting simulated:", done.stdout)
        was, same, other = json.loads(report.read_text())["runs"]
        self.assertEqual([run["settings"]["run"] for run in (was, same, other)],
                         ["as it was", "simulated", "what if"])
        self.assertEqual(other["policy"], "fifo")
        self.assertGreater(was["requests"], 100)
        self.assertEqual(same["requests"], was["requests"])
        self.assertAlmostEqual(same["bad_ratio"], was["bad_ratio"], delta=0.02)
        trace = self.folder / "run.pftrace"
        done = tactus("trace", journal, "--out", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ui.perfetto.dev", done.stdout)
        self.assertIn(b"lane 0", trace.read_bytes())
        both = tactus("simulate", SCENARIO, "--from-journal", journal)
        self.assertEqual(both.returncode, 2)
        self.assertIn("--from-journal", both.stderr)
        self.assertIn("scenario is required", tactus("simulate").stderr)

    def test_a_file_for_which_there_is_no_memory_is_an_error_that_names_it(self):
        large = self.folder / "large"
        with large.open("wb") as file:
            file.truncate(20 << 30)
        for words in (("serve", "--models", self.folder, "--config", large),
                      ("simulate", large)):
            done = subprocess.run(["prlimit", f"--as={8 << 30}", TACTUS, *map(str, words)],
                                  text=True, timeout=600, capture_output=True)
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            self.assertIn(f"{large}: cannot read this", done.stderr)
            self.assertIn("(Cannot allocate memory)", done.stderr)

    def test_no_command_prints_the_commands(self):
        done = tactus()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("Serve your models:", done.stderr)

    def test_errors_begin_with_the_command(self):
        for words, says in ((("zzz",), "tactus: there is no command"),
                            (("simulate", SCENARIO, "--polcy", "x"), "tactus simulate: there is"),
                            (("simulate", SCENARIO, "--seed", "x"), "tactus simulate: "),
                            (("simulate", SCENARIO, "--policy", "zz"), "tactus simulate: "),
                            (("plan", "lane"), "tactus plan: there is no command"),
                            (("plan", "lanes", SCENARIO, "--policies", "zz"),
                             "tactus plan lanes: "),
                            (("serve", "--models", self.folder / "x"), "tactus serve: "),
                            (("load", self.folder / "x.toml"), "tactus load: ")):
            done = tactus(*words)
            self.assertEqual((done.returncode, done.stderr[:len(says)]), (2, says), done.stderr)

    def test_help_is_a_word_too(self):
        self.assertEqual(self.good("help"), self.good("--help"))
        self.assertEqual(self.good("help", "plan", "lanes"), self.good("plan", "lanes", "--help"))

    def test_bad_input_is_one_clear_line(self):
        self.bad("simulate", self.folder / "x.toml", says="cannot read this scenario")
        self.bad("simulate", SCENARIO, "--policy", "zz", says="zz")
        self.bad("simulat", SCENARIO,
                 says="there is no command 'simulat' (did you mean 'simulate'?); --help lists them")
        self.bad("plan", "lane",
                 says="there is no command 'lane' (did you mean 'lanes'?); plan --help")
        self.bad("zzz", says="there is no command 'zzz'; --help lists them")
        self.bad("simulate", SCENARIO, "--polcy", "fifo",
                 says="there is no option '--polcy' (did you mean '--policy'?); simulate --help")
        self.bad("simulate", SCENARIO, "--policy", "fif",
                 says="no policy 'fif' (did you mean 'fifo'?); there are horizon, ")
        self.bad("serve", "--models", "x", "--http-port", 99999,
                 says="--http-port: Value 99999 not in range 0 to 65535")
        self.bad("serve", "--models", "x", "--http-port", 1, "--http-port", 2,
                 says="--http-port is given 2 times; give it once")
        self.bad("serve", "--models", "x", "--default-slo-ms", "1e300",
                 says="--default-slo-ms: Value 1e300 not in range 0.001")
        self.bad("serve", "--models", "x", "--poll-seconds", "1e300",
                 says="--poll-seconds: Value 1e300 not in range 0.001")
        self.bad("serve", "--models", "x", "--grace-seconds", "1e300",
                 says="--grace-seconds: Value 1e300 not in range 0.0")
        self.bad("serve", "--models", "x", "--jitter-ms", "-1",
                 says="--jitter-ms: Value -1 not in range 0.0")
        self.bad("load", "--rate", "1e300", says="--rate: Value 1e300 not in range 0.000001")
        self.bad("load", "--slo-ms", "1e300", says="--slo-ms: Value 1e300 not in range 0.0")
        self.bad("load", "--cv", 0, says="--cv: '0' is no number above 0\n")
        self.bad("load", "--warmup", "x", says="--warmup: 'x' is no number from 0 on\n")
        for shape, says in (("3,4", "names no input"), ("=3", "names no input"),
                            ("x=", "gives no sizes"), ("x=3,a,4", "'a' is no size"),
                            ("x=0", "'0' is no size")):
            self.bad("load", SCENARIO, "--shape", shape, says=f"--shape '{shape}': {says}")
        self.bad("compare", "--sweep-all", "x", says="there is no option '--sweep-all'; compare "
                 "--help lists them (there is --sweep)")
        self.bad("serve", "--models", "x", "--tls", "y", says="there is no option '--tls'; serve "
                 "--help lists them (there is --peer-tls, --tls-cert, --tls-key, --tls-client-ca)")
        self.bad("controller", "f.toml", "--state", "s", "--peer-tls", "y",
                 says="--help lists them (there is --tls)")
        self.bad("replay", SCENARIO, says="is no Tactus journal; --journal FILE")
        self.bad("init", self.folder, says="name the graph in it")
        self.bad("init", self.folder / "m.onnx",
                 says="m.onnx: there is no such file; name the ONNX graph")
        self.bad("serve", "--models", self.folder, "--load-model", "m",
                 says="add --model-control-mode explicit")
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
        self.bad("simulate", SCENARIO, "--set", "percentile=42", says="a profile holds 50, 95")
        self.bad("simulate", SCENARIO, "--set", "stall_ms=2000", says="nothing would ever run")
        self.bad("measure", "--engine", "emulated", "--no-pin", SCENARIO, "--set", "factor=1.3",
                 says="has a [drift], which only the simulator can make")
        self.bad("compare", SOURCE / "scenarios/symphony/fig15.toml", "--policies", "fifo",
                 "--sweep", "rate_rps=100,200", says="every model states its own rate")
        scenario = self.folder / "wrong.toml"
        scenario.write_text("[scenario]\nduration = 3\n")
        self.bad("simulate", scenario, says="wrong.toml:2:12: duration: unknown in [scenario] (did "
                 "you mean 'duration_s'?)")
        scenario.write_text("[[models]]\nname = 'm'\n")
        self.bad("simulate", scenario, says="names no profile")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
