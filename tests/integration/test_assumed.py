#!/usr/bin/env python3
"""What is assumed of a graph without a config.pbtxt: every command takes a graph for the same, and
its answers depend on its own inputs alone."""

import concurrent.futures
import contextlib
import json
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import serving
import tritonclient.grpc

DATA = serving.SOURCE / "tests" / "data"
# Graphs and their max_batch_size.
GRAPHS = {"turned": 0, "centred": 0, "patches": 0, "reflected": 4, "pair": 4, "strings": 4}


def command(*arguments):
    return subprocess.run([serving.TACTUS, *map(str, arguments)], capture_output=True, text=True,
                          timeout=serving.START_S)


def put(root, graph, name=None, config=None):
    folder = root / (name or graph)
    (folder / "1").mkdir(parents=True)
    shutil.copy(DATA / f"{graph}.onnx", folder / "1" / "model.onnx")
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder / "1" / "model.onnx"


def put_ensemble(root, name, step, max_batch, columns, more=""):
    """x -> step -> y, with the tensors of `step`."""
    (root / name / "1").mkdir(parents=True)
    x, y = columns
    (root / name / "config.pbtxt").write_text(
        f'platform: "ensemble"\nmax_batch_size: {max_batch}\n'
        f'input {{ name: "x" data_type: TYPE_FP32 dims: {x} }}\n'
        f'output {{ name: "y" data_type: TYPE_FP32 dims: {y} }}\n{more}\n'
        f'ensemble_scheduling {{ {step} }}\n')


def step_of(model, reads="x", makes="y", inside=("x", "y")):
    return (f'step {{ model_name: "{model}" model_version: -1 '
            f'input_map {{ key: "{inside[0]}" value: "{reads}" }} '
            f'output_map {{ key: "{inside[1]}" value: "{makes}" }} }}')


def fill(root):
    """Each graph twice: as it is, and with what init makes of it."""
    for graph in GRAPHS:
        put(root, graph)
        done = command("init", put(root, graph, f"{graph}_inited"))
        assert done.returncode == 0, done.stderr


def call(server, model, values, shape):
    """The output's shape and data, or the status and its error."""
    body = {"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": values}]}
    status, _, answer = server.post(f"/v2/models/{model}/infer", json.dumps(body).encode())
    if status != 200:
        return status, answer.decode()
    output = json.loads(answer)["outputs"][0]
    return output["shape"], output["data"]


def turned(values, shape):
    time, rows, four = shape
    return [rows, time, four], [values[(t * rows + r) * four + i]
                                for r in range(rows) for t in range(time) for i in range(four)]


def centred(values, shape):
    rows, columns = shape
    means = [sum(values[c::columns]) / rows for c in range(columns)]
    return list(shape), [value - means[i % columns] for i, value in enumerate(values)]


def reflected(values, shape):
    rows, size = shape
    out = []
    for r in range(rows):
        row = values[r * size:(r + 1) * size]
        out += row + row[-2:-66:-1]
    return [rows, size + 64], out


class AssumedTest(unittest.TestCase):
    def test_serve_init_profile_and_check_take_a_graph_for_the_same(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            root = pathlib.Path(folder) / "models"
            root.mkdir()
            fill(root)
            for graph, most in GRAPHS.items():
                text = (root / f"{graph}_inited" / "config.pbtxt").read_text()
                self.assertIn(f"max_batch_size: {most}\n", text)
            checked = command("check", "--models", root).stdout
            self.assertNotIn("refused", checked)
            for graph, most in GRAPHS.items():
                line = "no batch dimension was declared"
                lines = [each for each in checked.splitlines()
                         if f"model '{graph}'" in each and line in each]
                self.assertEqual(len(lines), 1, checked)
                self.assertEqual("does not run in batches" in lines[0], most == 0, lines)
            out = pathlib.Path(folder) / "profile.json"
            done = command("profile", "--models", root, "--out", out, "--quick", "--repetitions",
                           "1")
            self.assertEqual(done.returncode, 0, done.stderr)
            measured = {model["name"]: len(model["exits"][0]["cells"])
                        for model in json.loads(out.read_text())["models"]}
            for graph, most in GRAPHS.items():
                self.assertEqual(measured[graph], max(1, most), graph)
                self.assertEqual(measured[f"{graph}_inited"], max(1, most), graph)

    def test_answers_depend_on_their_own_inputs(self):
        for arguments in ([], ["--isolate"]):
            server = serving.Server(*arguments, fill=fill)
            with self.subTest(arguments), contextlib.closing(server):
                seed = 20261127
                draw = random.Random(seed)
                jobs = []
                for _ in range(12):
                    for name, make, shape in (
                            ("turned", turned, [draw.randint(1, 4), draw.randint(1, 4), 4]),
                            ("centred", centred, [draw.randint(1, 4), 8]),
                            ("reflected", reflected, [draw.randint(1, 4), 80])):
                        count = 1
                        for dim in shape:
                            count *= dim
                        values = [draw.uniform(-9, 9) for _ in range(count)]
                        for model in (name, f"{name}_inited"):
                            jobs.append((model, values, shape, make(values, shape)))
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    answers = list(pool.map(lambda job: call(server, *job[:3]), jobs))
                for (model, _, shape, expected), answer in zip(jobs, answers):
                    self.assertEqual(answer[0], expected[0], (model, shape, seed, answer))
                    for got, wanted in zip(answer[1], expected[1]):
                        self.assertAlmostEqual(got, wanted, 4, (model, shape, seed))
                for graph, most in GRAPHS.items():
                    for model in (graph, f"{graph}_inited"):
                        config = json.loads(server.get(f"/v2/models/{model}/config"))
                        self.assertEqual(config["max_batch_size"], most, model)
                self.assertIn("model 'reflected': its open dimensions are taken to be 'x' [224]",
                              server.errors())

    def test_a_batch_that_comes_out_misshapen_when_it_serves_is_none_from_then_on(self):
        def assumed(root):
            put(root, "folds")

        def inited(root):
            done = command("init", put(root, "folds"))
            assert done.returncode == 0, done.stderr
            text = (root / "folds" / "config.pbtxt").read_text()
            assert "\nmax_batch_size: 4\n" in text, text

        def declared(root):
            put(root, "folds", config='max_batch_size: 4\n'
                'input { name: "x" data_type: TYPE_FP32 dims: [ 8 ] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }\n')
        for fill_folds, arguments in ((assumed, []), (assumed, ["--lanes", "2"]),
                                      (assumed, ["--isolate"]), (inited, []), (declared, []),
                                      (declared, ["--isolate"])):
            server = serving.Server(*arguments, fill=fill_folds)
            with self.subTest(fill_folds.__name__, arguments=arguments), \
                    contextlib.closing(server):
                config = json.loads(server.get("/v2/models/folds/config"))
                self.assertEqual(config["max_batch_size"], 4)
                jobs = []
                for number in range(48):
                    rows = 1 + number % 3
                    values = [number + i / 8 for i in range(8 * rows)]
                    if number % 5 == 4:
                        values[3] = 2000
                    jobs.append((values, [rows, 8]))
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    answers = list(pool.map(lambda job: call(server, "folds", *job), jobs))
                for (values, shape), (got, data) in zip(jobs, answers):
                    folds = max(values) > 1000
                    self.assertEqual(got, [2 * shape[0], 4] if folds else shape, data)
                    self.assertEqual(data, values)
                config = json.loads(server.get("/v2/models/folds/config"))
                self.assertEqual(config["max_batch_size"], 0)
                self.assertIn("batching_stopped", config["parameters"])
                server.await_line("model 'folds' runs in batches no more")
                self.assertEqual(server.metric("tactus_model_batching_stopped"), 1)

    def test_an_ensemble_outlives_the_batch_of_its_step(self):
        """Its rows go on whole; by themselves, where its batch is stated and demultiply says so."""
        def assumed(root, config=None):
            put(root, "folds", config=config)
            put_ensemble(root, "all", step_of("folds"), 4, ([8], [-1]))

        def declared(root):
            assumed(root, 'max_batch_size: 4\n'
                    'input { name: "x" data_type: TYPE_FP32 dims: [ 8 ] }\n'
                    'output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }\n')
            serving.add_model(root, "rows", serving.identity_config(
                "rows", 0, [("r", "TYPE_FP32", [-1, 8])]))
            put_ensemble(root, "each", step_of("rows", makes="row", inside=("r", "OUTPUT0")) +
                         step_of("folds", reads="row"), 0, ([-1, 8], [-1, -1]),
                         'parameters { key: "demultiply" value { string_value: "rows" } }')

        small, large = [float(i) for i in range(16)], [float(i) for i in range(15)] + [2000.0]
        for fill_folds, arguments in ((assumed, []), (declared, []), (assumed, ["--isolate"])):
            server = serving.Server(*arguments, fill=fill_folds)
            with self.subTest(fill_folds.__name__, arguments=arguments), \
                    contextlib.closing(server):
                for ends in (False, True):
                    self.assertEqual(call(server, "all", small, [2, 8]), ([2, 8], small))
                    if fill_folds is declared:
                        self.assertEqual(call(server, "each", small, [2, 8]), ([2, 8], small))
                    self.assertEqual(server.metric("tactus_model_batching_stopped"), int(ends))
                    self.assertEqual(call(server, "all", large, [2, 8]), ([4, 4], large))
                server.get("/v2/health/ready")  # an error raises
                if fill_folds is declared:
                    status, said = call(server, "each", large, [2, 8])
                    self.assertEqual(status, 500)
                    self.assertIn("for one row", said)

    def test_an_ensemble_over_a_step_that_could_not_be_tried_serves(self):
        def untried(root):
            put(root, "takes_77")
            put_ensemble(root, "all", step_of("takes_77"), 4, ([77], [1]))
        server = serving.Server(fill=untried)
        with contextlib.closing(server):
            self.assertIn("could not be tried", server.errors())
            for _ in range(2):  # the first call shows what a row is
                self.assertEqual(call(server, "all", [1.0] * 77 + [2.0] * 77, [2, 77]),
                                 ([2, 1], [77, 154]))

    def test_whose_rows_a_pipeline_takes_states_its_batch(self):
        """A trial that decides in another way after a reload would give calls other answers."""
        def fill_each(root):
            done = command("init", put(root, "takes_77"))
            assert done.returncode == 0, done.stderr
            put(root, "alike")
            put(root, "folds")
            serving.add_model(root, "rows", serving.identity_config(
                "rows", 0, [("r", "TYPE_FP32", [-1, 8])]))
            for name, maker, reader, columns in (
                    ("assumed_maker", step_of("takes_77", makes="row"),
                     step_of("rows", reads="row", inside=("r", "OUTPUT0")), 77),
                    ("assumed_reader", step_of("rows", makes="row", inside=("r", "OUTPUT0")),
                     step_of("alike", reads="row"), 8),
                    ("ended_reader", step_of("rows", makes="row", inside=("r", "OUTPUT0")),
                     step_of("folds", reads="row"), 8)):
                opener = maker.split('"')[1]
                put_ensemble(root, name, maker + reader, 0, ([-1, columns], [-1, -1]),
                             f'parameters {{ key: "demultiply" '
                             f'value {{ string_value: "{opener}" }} }}')
        server = serving.Server("--strict-readiness", "false", fill=fill_each)
        with contextlib.closing(server):
            for name, model, shape in (("assumed_maker", "takes_77", [1, 77]),
                                       ("assumed_reader", "alike", [1, 8])):
                status, said = call(server, name, [1.0] * shape[1], shape)
                self.assertEqual(status, 503, said)
                self.assertIn(f"step '{model}': what a row of 'row' is depends on whether model "
                              f"'{model}' batches", said)
                self.assertIn("write max_batch_size into its config.pbtxt", said)
                server.await_line(f"step '{model}': what a row of 'row' is")
            # Whoever ends the batch of a step by a call of its own opens no door.
            put_on = [float(i) for i in range(7)] + [2000.0]
            self.assertEqual(call(server, "folds", put_on, [1, 8])[0], [2, 4])
            server.await_line("model 'folds' runs in batches no more")
            status, said = call(server, "ended_reader", [1.0] * 8, [1, 8])
            self.assertEqual(status, 503, said)
            self.assertIn("write max_batch_size into its config.pbtxt", said)

    def test_what_classes_mean_does_not_change_while_a_model_serves(self):
        """Those of each row, before a batch is found and after one has ended."""
        def classes(server, model, values, shape):
            asked = tritonclient.grpc.InferRequestedOutput("y", class_count=1)
            tensor = tritonclient.grpc.InferInput("x", shape, "FP32")
            tensor.set_data_from_numpy(np.array(values, np.float32).reshape(shape))
            with contextlib.closing(tritonclient.grpc.InferenceServerClient(server.grpc)) as client:
                told = client.infer(model, [tensor], outputs=[asked]).as_numpy("y")
            body = {"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": values}],
                    "outputs": [{"name": "y", "parameters": {"classification": 1}}]}
            status, _, answer = server.post(f"/v2/models/{model}/infer", json.dumps(body).encode())
            self.assertEqual(status, 200, answer)
            output = json.loads(answer)["outputs"][0]
            self.assertEqual([list(told.shape), [text.decode() for text in told.flatten()]],
                             [output["shape"], output["data"]])
            return output["data"]

        def fill_both(root):
            for graph in ("takes_77", "folds", "centred"):
                put(root, graph)
        row = [float(i) for i in range(8)]
        for arguments in ([], ["--isolate"]):
            server = serving.Server(*arguments, fill=fill_both)
            with self.subTest(arguments=arguments), contextlib.closing(server):
                for _ in range(3):  # the first call shows what a row is
                    self.assertEqual(classes(server, "takes_77", [1.0] * 77 + [2.0] * 77, [2, 77]),
                                     ["77.000000:0", "154.000000:0"])
                for ends in (False, True):
                    self.assertEqual(classes(server, "folds", row + row[::-1], [2, 8]),
                                     ["7.000000:7", "7.000000:0"])
                    self.assertEqual(server.metric("tactus_model_batching_stopped"), int(ends))
                    call(server, "folds", row + row[:7] + [2000.0], [2, 8])
                self.assertEqual(classes(server, "centred", row + row[::-1], [2, 8]),
                                 ["3.500000:7"], "no batch: one tensor")

    def test_load_takes_the_sizes_that_the_server_names(self):
        server = serving.Server(fill=lambda root: put(root, "reflected"))
        with contextlib.closing(server):
            config = json.loads(server.get("/v2/models/reflected/config"))
            sizes = config["parameters"]["profile_shape.x"]["string_value"]
            self.assertEqual(sizes, "224")
            done = command("load", "--url", server.http, "--models", "reflected", "--random",
                           "--rate", 20, "--duration", 1)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_declared_batch_is_judged(self):
        def declared(root):
            put(root, "patches", config='max_batch_size: 4\n'
                'input { name: "x" data_type: TYPE_FP32 dims: [ 30, 4 ] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n')
            put(root, "centred", config='name: "centred"\nmax_batch_size: 4\n'
                'input { name: "x" data_type: TYPE_FP32 dims: [ 8 ] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [ 8 ] }\n')
        server = serving.Server("--strict-readiness", "false", fill=declared)
        with contextlib.closing(server):
            index = {each["name"]: each
                     for each in json.loads(server.post("/v2/repository/index", b"{}")[2])}
            self.assertEqual(index["patches"]["state"], "UNAVAILABLE")
            self.assertIn("patches/config.pbtxt:1:1: max_batch_size: 4", index["patches"]["reason"])
            self.assertEqual(index["centred"]["state"], "READY")
            self.assertIn("answers depend on what else is in the batch: up to", server.errors())
            config = json.loads(server.get("/v2/models/centred/config"))
            self.assertEqual(config["max_batch_size"], 4)

    def test_what_init_writes_of_a_batch_stays_an_assumption(self):
        def exchanged(root):
            """The graph of another model, exported anew, replaces the one that init has seen."""
            done = command("init", put(root, "alike"))
            assert done.returncode == 0, done.stderr
            shutil.copy(DATA / "centred.onnx", root / "alike" / "1" / "model.onnx")
        # Independent rows of the same tensors as those of centred.onnx.
        with contextlib.closing(serving.Server(fill=exchanged)) as server:
            config = json.loads(server.get("/v2/models/alike/config"))
            self.assertEqual(config["max_batch_size"], 0)
            self.assertEqual(config["input"][0]["dims"], [-1, 8])
            self.assertIn("model 'alike': no batch dimension was declared, and it does not run in "
                          "batches", server.errors())

    def test_what_init_cannot_try_is_learnt_from_the_first_call(self):
        def fill_inited(root):
            done = command("init", put(root, "takes_77"))
            assert done.returncode == 0, done.stderr
            text = (root / "takes_77" / "config.pbtxt").read_text()
            assert "\nmax_batch_size" not in text, text
        with contextlib.closing(serving.Server(fill=fill_inited)) as server:
            def rows_together():
                return json.loads(server.get("/v2/models/takes_77/config"))["max_batch_size"]
            self.assertEqual(rows_together(), 0)
            self.assertIn("could not be tried", server.errors())
            shape, data = call(server, "takes_77", [1.0] * 154, [2, 77])
            self.assertEqual((shape, data), ([2, 1], [77, 77]))
            while rows_together() == 0:
                self.assertIsNone(server.process.poll(), server.errors())
            self.assertEqual(rows_together(), 4)

    def test_a_graph_that_gives_another_rank_than_it_declares_serves_with_what_init_writes(self):
        def fill_ranks(root):
            for name in ("rank", "rank_inited"):
                put(root, "rank", name)
            done = command("init", root / "rank_inited" / "1" / "model.onnx")
            assert done.returncode == 0, done.stderr
            text = (root / "rank_inited" / "config.pbtxt").read_text()
            assert "output {" not in text and "'y': FP32 [] in the graph, and one row" in text, text
            put(root, "rank", "rank_stated", config='input { name: "x" data_type: TYPE_FP32 '
                'dims: [ -1, 4 ] }\noutput { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }\n')
        with contextlib.closing(serving.Server(fill=fill_ranks)) as server:
            for model in ("rank", "rank_inited", "rank_stated"):
                for rows in (1, 3):
                    values = [float(i) for i in range(4 * rows)]
                    self.assertEqual(call(server, model, values, [rows, 4]),
                                     ([rows, 2, 2], values), model)

    def test_init_proposes_no_batch_whose_rows_depend_on_others_far_away(self):
        done = command("init", DATA / "fourth_before.onnx", "--out", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\nmax_batch_size: 4\n", done.stdout)
        self.assertNotIn("# max_batch_size", done.stdout)

        def declared(root):
            put(root, "fourth_before", config='max_batch_size: 16\n'
                'input { name: "x" data_type: TYPE_FP32 dims: [ 8 ] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [ 8 ] }\n')
        with contextlib.closing(serving.Server(fill=declared)) as server:
            self.assertIn("max_batch_size is 16, and answers depend on what else is in the batch",
                          server.errors())

    def test_a_scalar_is_taken_as_it_is_and_as_a_configuration_writes_it(self):
        def scalars(root):
            put(root, "scalar")
            done = command("init", put(root, "scalar", "scalar_inited"))
            assert done.returncode == 0, done.stderr
            links = "".join(
                f'step {{ model_name: "{model}" model_version: -1 '
                f'input_map {{ key: "x" value: "{x}" }} input_map {{ key: "word" value: "word" }} '
                f'output_map {{ key: "y" value: "{y}" }} {same} }}\n'
                for model, x, y, same in (
                    ("scalar", "x", "twice", ""), ("scalar_inited", "twice", "four_times", ""),
                    ("scalar", "four_times", "y",
                     'output_map { key: "same" value: "same" }')))
            sides = "".join(f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: [ 1 ] }}\n'
                            for side, names in (("input", ("x", "word")), ("output", ("y", "same")))
                            for name, kind in zip(names, ("FP32", "STRING")))
            serving.add_model(root, "scalars", f'platform: "ensemble"\n{sides}'
                              f'ensemble_scheduling {{ {links} }}\n')
        with contextlib.closing(serving.Server(fill=scalars)) as server:
            body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [4]},
                               {"name": "word", "shape": [1], "datatype": "BYTES", "data": ["a"]}]}
            status, _, answer = server.post("/v2/models/scalars/infer", json.dumps(body).encode())
            self.assertEqual(status, 200, answer)
            self.assertEqual({each["name"]: (each["shape"], each["data"])
                              for each in json.loads(answer)["outputs"]},
                             {"y": ([1], [32]), "same": ([1], ["a"])})
            for model in ("scalar", "scalar_inited"):
                for shape in ([], [1]):
                    body = {"inputs": [
                        {"name": "x", "shape": shape, "datatype": "FP32", "data": [4]},
                        {"name": "word", "shape": shape, "datatype": "BYTES", "data": ["a"]}]}
                    status, _, answer = server.post(f"/v2/models/{model}/infer",
                                                    json.dumps(body).encode())
                    self.assertEqual(status, 200, (model, shape, answer))
                    data = {each["name"]: each["data"] for each in json.loads(answer)["outputs"]}
                    self.assertEqual(data, {"y": [8], "same": ["a"]})

    def test_an_input_of_which_no_shape_is_stated_takes_any(self):
        def shapeless(root):
            put(root, "shapeless")
            done = command("init", put(root, "shapeless", "shapeless_inited"))
            assert done.returncode == 0, done.stderr
        for arguments in ([], ["--isolate"]):
            server = serving.Server(*arguments, fill=shapeless)
            with self.subTest(arguments), contextlib.closing(server):
                for name in ("shapeless", "shapeless_inited"):
                    for shape in ([], [1], [3], [2, 1, 3]):
                        count = 1
                        for dim in shape:
                            count *= dim
                        values = [float(i) for i in range(count)]
                        self.assertEqual(call(server, name, values, shape),
                                         (shape, [2 * value for value in values]))
                    # What clients are told of it.
                    metadata = json.loads(server.get(f"/v2/models/{name}"))
                    self.assertEqual(metadata["inputs"][0]["shape"], [-1])
                    config = json.loads(server.get(f"/v2/models/{name}/config"))
                    self.assertEqual(config["parameters"]["any_shape.x"]["string_value"], "true")
                    self.assertEqual(config["max_batch_size"], 0)

    def test_init_proposes_exits(self):
        done = command("init", serving.SOURCE / "models" / "ee_s" / "1" / "exit1.onnx", "--out",
                       "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('\nparameters { key: "exits" value: { string_value: "exit1.onnx,exit2.onnx,'
                      'exit3.onnx,exit4.onnx" } }', done.stdout)

    def test_init_proposes_the_whole_network_as_the_last_exit(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            version = pathlib.Path(folder) / 'quo"te' / "1"
            shutil.copytree(serving.SOURCE / "models" / "ee_s" / "1", version)
            (version / "exit4.onnx").rename(version / "model.onnx")
            done = command("init", version / "model.onnx", "--out", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('\n# parameters { key: "exits" value: { string_value: "exit1.onnx,exit2.onnx,'
                      'exit3.onnx,model.onnx" } }', done.stdout)
        self.assertIn('name: "quo\\"te"', done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
