"""Starting and stopping: what is refused at the start, with which words, and how a server ends."""

import concurrent.futures
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from serving import SOURCE, START_S, TACTUS, WAIT_S, Server, add_model, identity_config

BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                               "data": [0, 1, 2, 3]}]}).encode()


def echo_only(root):
    add_model(root, "echo", identity_config("echo", 8, [("INPUT0", "TYPE_FP32", [4])]))


def full_pipe():
    """Both ends of a pipe that takes no more."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 512)
    os.set_blocking(writing, True)
    return reading, writing


class UnreadPipeTest(unittest.TestCase):
    """Whoever started the server does not read what it says."""

    def test_a_full_pipe_of_stderr_holds_neither_calls_nor_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            echo_only(pathlib.Path(folder))
            reading, writing = full_pipe()
            process = subprocess.Popen(
                [TACTUS, "serve", "--models", folder, "--http-port", "0", "--grpc-port", "0",
                 "--metrics-port", "0"], stdout=subprocess.PIPE, stderr=writing, text=True)
            try:
                ready = next(line for line in process.stdout if line.startswith("ready "))
                port = ready.split()[1].split("=")[1]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/echo",
                                            timeout=WAIT_S) as answer:
                    self.assertEqual(answer.status, 200)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=WAIT_S), 0)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
                os.close(reading)
                os.close(writing)


    def test_a_full_pipe_of_stdout_holds_neither_calls_nor_the_end(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
            echo_only(pathlib.Path(folder))
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            free.close()
            reading, writing = full_pipe()
            process = subprocess.Popen(
                [TACTUS, "serve", "--models", folder, "--http-port", str(port), "--grpc-port", "0",
                 "--metrics-port", "0"], stdout=writing, stderr=subprocess.DEVNULL)
            try:
                end = time.monotonic() + WAIT_S
                while True:
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready",
                                                    timeout=WAIT_S) as answer:
                            self.assertEqual(answer.status, 200)
                            break
                    except OSError:
                        self.assertLess(time.monotonic(), end)
                        time.sleep(0.05)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=WAIT_S), 0)
            finally:
                process.kill()
                process.wait()
                os.close(reading)
                os.close(writing)


    def test_a_full_pipe_of_stdout_holds_no_controller(self):
        with tempfile.TemporaryDirectory() as folder:
            reading, writing = full_pipe()
            process = subprocess.Popen(
                [TACTUS, "controller", str(SOURCE / "examples/street/fleet.toml"), "--state",
                 folder, "--listen", "127.0.0.1:0"], stdout=writing, stderr=subprocess.PIPE,
                text=True)
            try:
                # It tells what it offers before it says that it is ready.
                self.assertIn("offers", next(line for line in process.stderr if "offers" in line))
                time.sleep(0.5)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=WAIT_S), 0)
            finally:
                process.kill()
                process.wait()
                process.stderr.close()
                os.close(reading)
                os.close(writing)


class RefusedStartTest(unittest.TestCase):
    """Exit code 2 and one line that says what to do."""

    def refused(self, *arguments):
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        with tempfile.TemporaryDirectory() as folder:
            echo_only(pathlib.Path(folder))
            options = {"--models": folder, "--http-port": "0", "--grpc-port": "0",
                       "--metrics-port": "0", **given}
            done = subprocess.run(
                [TACTUS, "serve", *[word for pair in options.items() for word in pair]],
                capture_output=True, text=True, timeout=START_S)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_ports_in_use(self):
        for option in ("--http-port", "--grpc-port", "--metrics-port"):
            with self.subTest(option), socket.create_server(("127.0.0.1", 0)) as taken:
                port = str(taken.getsockname()[1])
                said = self.refused(option, port)
                self.assertIn(f"127.0.0.1:{port}", said)
                self.assertIn(f"in use; name another port with {option} (0: any free one)", said)

    def test_a_port_in_use_is_found_before_anything_is_made(self):
        # Models may take minutes to load.
        with tempfile.TemporaryDirectory() as folder, \
                socket.create_server(("127.0.0.1", 0)) as taken:
            journal = pathlib.Path(folder) / "journal"
            said = self.refused("--grpc-port", str(taken.getsockname()[1]),
                                "--journal", str(journal))
            self.assertIn("name another port with --grpc-port", said)
            self.assertFalse(journal.exists())

    def test_a_port_for_two(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.assertIn("name another port with --metrics-port",
                      self.refused("--http-port", port, "--metrics-port", port))

    def test_no_number_of_lanes(self):
        for lanes in ("0", "many", "4097"):
            self.assertIn("--lanes", self.refused("--lanes", lanes))

    def test_no_repository(self):
        self.assertIn("/no/such/folder", self.refused("--models", "/no/such/folder"))

    def test_unknown_policy(self):
        said = self.refused("--policy", "edgeserve")
        self.assertIn("edgeserve", said)
        self.assertIn("all-final", said)  # those that exist

    def test_an_unknown_engine(self):
        said = self.refused("--engine", "onnx")
        self.assertIn("--engine: no engine 'onnx'", said)
        self.assertIn("identity, emulated", said)  # those that exist

    def test_an_engine_that_this_build_lacks(self):
        said = self.refused("--engine", "tensorrt")
        self.assertIn("there are: onnxruntime, ", said)
        self.assertNotIn("TORCH_ROOT", said)
        listed = subprocess.run([TACTUS, "serve", "--help-all"], capture_output=True, text=True,
                                timeout=START_S).stdout
        listed = " ".join(listed.split())
        names = re.search(r"Run every model on this engine \((.*?)\)", listed)[1]
        self.assertIn(f"there are: {names}", said)
        if "aoti" not in names:
            self.assertIn("build with TORCH_ROOT", self.refused("--engine", "aoti"))

    def test_a_folder_without_onnx_runtime_is_named_once(self):
        with tempfile.TemporaryDirectory() as folder:
            said = self.refused("--onnxruntime", folder)
            self.assertIn("--onnxruntime: ONNX Runtime's library was not found", said)
            self.assertIn(f"looked for libonnxruntime.so.1 or libonnxruntime.so in {folder})", said)
            self.assertEqual(len(said.strip().splitlines()), 1, said)

    def test_unknown_option(self):
        self.assertIn("--nonsense", self.refused("--nonsense", "1"))

    def test_a_profile_of_another_machine(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as profile:
            json.dump({"tactus_profile": 1, "provenance": "measured",
                       "machine": {"fingerprint": "0123456789abcdef", "cpu": "Another"},
                       "models": [{"name": "echo", "max_batch": 1, "exits": [
                           {"name": "1", "cells": [{"batch": 1, "mean_ms": 1}]}]}]}, profile)
            profile.flush()
            self.assertIn("--allow-other-machine", self.refused("--profile", profile.name))

    def test_a_damaged_profile(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as profile:
            profile.write('{"tactus_profile": 1,')
            profile.flush()
            self.assertIn(profile.name, self.refused("--profile", profile.name))


class BrokenModelTest(unittest.TestCase):
    def test_broken_models_say_why_and_others_serve(self):
        def fill(root):
            echo_only(root)
            add_model(root, "mistake", 'name: "mistake"\nplatform: "identity"\nmax_batch: 3\n')
            add_model(root, "foreign", 'backend: "pytorch"\nmax_batch_size: 4\n')
            add_model(root, "empty", 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n')
            add_model(root, "corrupt", 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n')
            (root / "corrupt" / "1" / "model.onnx").write_bytes(b"this is no model" * 100)

        with contextlib.closing(Server(fill=fill)) as server:
            status, _, answer = server.post("/v2/repository/index", b"")
            self.assertEqual(status, 200)
            index = {model["name"]: model for model in json.loads(answer)}
            self.assertEqual(index["echo"]["state"], "READY")
            # Not the line that programs wait for, while /v2/health/ready answers 503.
            self.assertRegex(server.said[-1], r"^started http=\d+ grpc=\d+ metrics=\d+ "
                             r"not_ready=corrupt,empty,foreign,mistake$")
            with self.assertRaises(urllib.error.HTTPError) as not_ready:
                server.get("/v2/health/ready")
            self.assertEqual(not_ready.exception.code, 503)
            not_ready.exception.close()
            for name in ("mistake", "foreign", "empty", "corrupt"):
                self.assertEqual(index[name]["state"], "UNAVAILABLE", name)
            # File, line and field of the mistake; the file that is missing or broken.
            self.assertIn("config.pbtxt:3", index["mistake"]["reason"])
            self.assertIn("max_batch", index["mistake"]["reason"])
            self.assertIn("config.pbtxt:1:1: backend: 'pytorch'", index["foreign"]["reason"])
            self.assertIn("model.onnx", index["empty"]["reason"])
            self.assertIn("model.onnx", index["corrupt"]["reason"])
            self.assertEqual(server.post("/v2/models/echo/infer", BODY)[0], 200)
            self.assertIn(server.post("/v2/models/corrupt/infer", BODY)[0], (404, 503))
            self.assertEqual(server.terminate(), 0)


    def test_the_ready_line_comes_once_the_server_is_ready(self):
        broken = 'platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'
        fill = lambda root: (echo_only(root), add_model(root, "late", broken))
        polls = ("--model-control-mode", "poll", "--poll-seconds", "0.2")
        with contextlib.closing(Server(*polls, fill=fill)) as server:
            self.assertRegex(server.said[-1], r"^started .* not_ready=late$")
            config = identity_config("late", 8, [("INPUT0", "TYPE_FP32", [4])])
            (server.repository / "late" / "config.pbtxt").write_text(config)
            line = server.process.stdout.readline()
            self.assertEqual(line, server.said[-1].replace("started", "ready")
                             .replace(" not_ready=late", ""))
            self.assertIn("true", server.get("/v2/health/ready"))
            self.assertEqual(server.terminate(), 0)


class JsonLogTest(unittest.TestCase):
    def test_each_line_is_an_object(self):
        def fill(root):
            echo_only(root)
            add_model(root, "foreign", 'backend: "py\\"torch"\nmax_batch_size: 4\n')

        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(milliseconds=1)
        with contextlib.closing(Server("--log-format", "json", fill=fill)) as server:
            settings = json.loads(server.get("/v2/logging"))
            self.assertEqual(settings["log_format"], "JSON")
            self.assertEqual(server.terminate(), 0)
            lines = [json.loads(line) for line in server.errors().splitlines()]
        for line in lines:
            self.assertEqual(list(line), ["time", "level", "message"])
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            when = datetime.datetime.fromisoformat(line["time"])
            self.assertTrue(begin <= when <= datetime.datetime.now(datetime.UTC), line)
        self.assertTrue(any(line["level"] == "warning" and "'py\"torch'" in line["message"]
                            for line in lines), lines)
        self.assertEqual((lines[-1]["level"], lines[-1]["message"]), ("info", "stopped"))


class MisspeltKeyTest(unittest.TestCase):
    def test_a_misspelt_key_is_pointed_out(self):
        def fill(root):
            echo_only(root)
            config = root / "echo" / "config.pbtxt"
            config.write_text(config.read_text() + '\nparameters { key: "slo" value '
                              '{ string_value: "5" } }\n')

        with contextlib.closing(Server(fill=fill)) as server:
            self.assertEqual(server.post("/v2/models/echo/infer", BODY)[0], 200)
            self.assertEqual(server.terminate(), 0)
            said = server.errors()
        self.assertRegex(said, r'echo/config.pbtxt:\d+:\d+: parameters\["slo"\]: no key of Tactus')
        self.assertIn("slo_ms", said)


class StopTest(unittest.TestCase):
    def test_calls_under_way_are_answered(self):
        with contextlib.closing(Server()) as server, \
                concurrent.futures.ThreadPoolExecutor() as pool:
            call = pool.submit(server.post, "/v2/models/slow/infer", BODY)
            server.await_pending(1)
            self.assertEqual(server.terminate(), 0)
            self.assertEqual(call.result(timeout=WAIT_S)[0], 200)
            with self.assertRaises(OSError):
                server.get("/v2/health/live")

    def test_what_outlives_the_grace_is_refused(self):
        with contextlib.closing(Server("--grace-seconds", "0")) as server, \
                concurrent.futures.ThreadPoolExecutor() as pool:
            calls = [pool.submit(server.post, "/v2/models/slow/infer", BODY) for _ in range(3)]
            server.await_pending(3)
            self.assertEqual(server.terminate(), 0)
            for call in calls:
                # An answer, or a connection that was closed: never silence.
                try:
                    self.assertIn(call.result(timeout=WAIT_S)[0], (200, 499, 503))
                except OSError:
                    pass

    def test_what_nobody_can_end_does_not_hold_it_for_ever(self):
        # Its terminal takes no more than some kilobytes, since nobody reads them.
        unread, terminal = os.openpty()
        with tempfile.TemporaryDirectory() as folder:
            journal = pathlib.Path(folder) / "journal"
            journal.symlink_to(os.ttyname(terminal))
            with contextlib.closing(Server("--journal", str(journal), "--grace-seconds", "0",
                                           fill=echo_only)) as server:
                for _ in range(500):
                    self.assertEqual(server.post("/v2/models/echo/infer", BODY)[0], 200)
                self.assertEqual(server.terminate(), 1)
                self.assertIn("something holds it", server.errors())
        os.close(terminal)
        os.close(unread)

    def test_interrupt(self):
        with contextlib.closing(Server(fill=echo_only)) as server:
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.process.wait(timeout=WAIT_S), 0)

    def test_an_idle_grpc_client_does_not_delay_it(self):
        import tritonclient.grpc as client
        with contextlib.closing(Server(fill=echo_only)) as server:
            idle = client.InferenceServerClient(server.grpc)
            self.assertTrue(idle.is_server_live())
            self.assertEqual(server.terminate(), 0)
            idle.close()


class ManyModelsTest(unittest.TestCase):
    """What a model that does nothing costs does not grow with how many there are."""

    FEW, MANY = 500, 4000

    def cost(self, count):
        """Resident bytes and seconds of processor time once all serve."""
        def fill(root):
            for number in range(count):
                add_model(root, f"m{number}",
                          identity_config(f"m{number}", 8, [("x", "TYPE_FP32", [4])]))
        with contextlib.closing(Server(fill=fill)) as server:
            process = pathlib.Path(f"/proc/{server.process.pid}")
            pages = int((process / "statm").read_text().split()[1])
            times = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
            server.get(f"/v2/models/m{count - 1}/ready")
            return (pages * os.sysconf("SC_PAGESIZE"),
                    sum(map(int, times)) / os.sysconf("SC_CLK_TCK"))

    def test_start_and_memory(self):
        (few_bytes, few_s), (many_bytes, many_s) = self.cost(self.FEW), self.cost(self.MANY)
        self.assertLess((many_bytes - few_bytes) / (self.MANY - self.FEW), 100_000)
        # Eight times as many; a square would be 64 times.
        self.assertLess(many_s, 24 * max(few_s, 0.05))


class FewCoresTest(unittest.TestCase):
    def test_more_batches_at_once_than_cores_are_pointed_out(self):
        with contextlib.closing(Server("--policy", "strait", "--slots", "64", "--lanes", "64",
                                       fill=echo_only)) as server:
            self.assertIn("need 4096 cores, and there are", server.errors())
            self.assertEqual(server.terminate(), 0)
        with contextlib.closing(Server(fill=echo_only)) as server:
            self.assertNotIn("cores", server.errors())
            self.assertEqual(server.terminate(), 0)


class ChosenLanesTest(unittest.TestCase):
    """A server that is not told has as many lanes as the processors allow, and says so."""

    def lanes(self, *arguments, under=()):
        """How many it has, and the lines of its log about them."""
        with contextlib.closing(Server(*arguments, fill=echo_only, under=under)) as server:
            said, log = "".join(server.said), server.errors()
        return (re.search(r"with horizon on (.+)", said)[1],
                [line.split("lanes: ", 1)[1] for line in log.splitlines() if " lanes: " in line])

    def test_of_one_processor_and_of_all(self):
        cores = sorted(os.sched_getaffinity(0))
        served, lines = self.lanes("--lanes", "auto", under=("taskset", "-c", str(cores[0])))
        self.assertEqual(served, "1 lane")
        self.assertRegex(lines[0], r"found 1 processor \(1 by the affinity, ")
        self.assertIn("chose 1 lane of 1 thread on 1 processor: ", lines[1])
        self.assertIn("--lanes N and --threads N", lines[2])
        served, lines = self.lanes("--lanes", "auto")
        found = int(re.match(r"found (\d+) processor", lines[0])[1])
        self.assertLessEqual(found, len(cores))
        lanes = found - 1 if found > 2 else found
        self.assertEqual(served, f"{lanes} lane{'' if lanes == 1 else 's'}")

    def test_what_is_given_holds_and_nothing_is_said(self):
        self.assertEqual(self.lanes("--lanes", "1"), ("1 lane", []))
        self.assertEqual(self.lanes("--threads", "2", "--lanes", "1"),
                         ("1 lane of 2 threads", []))


class AssumedUseTest(unittest.TestCase):
    """What strait has to assume of a model is said when it is loaded, with why."""

    def fill(self, root):
        tensors = [("INPUT0", "TYPE_FP32", [4])]
        add_model(root, "stranger", identity_config("stranger", 1, tensors))
        # Emulated models alone bring profiles of their own.
        more = ('output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
                'parameters { key: "profile" value: { string_value: "own.json" } }')
        use = {"throughput": {r: 0.1 for r in ("l1", "l2", "dram", "tensor", "fma")},
               "transfer_ms": 0}
        for name, cell, source in (("plain", {}, {}), ("unsourced", use, {}),
                                   ("known", use, {"resources_source": "a test"})):
            add_model(root, name, identity_config(name, 1, tensors, more).replace(
                '"identity"', '"emulated"'))
            (root / name / "own.json").write_text(json.dumps({
                "tactus_profile": 1, "provenance": "made for a test",
                "machine": {"fingerprint": "test"}, "models": [
                    {"name": name, "max_batch": 1, **source, "exits": [
                        {"name": "1", "cells": [{"batch": 1, "mean_ms": 1, **cell}]}]}]}))

    def said_of_models(self, *arguments):
        """By model, what was said of it at the start."""
        with contextlib.closing(Server(*arguments, fill=self.fill)) as server:
            index = json.loads(server.post("/v2/repository/index", b"")[2])
            self.assertEqual({model["state"] for model in index}, {"READY"}, index)
            self.assertEqual(server.terminate(), 0)
            said = server.errors()
        return {name: [line for line in said.splitlines() if f"model '{name}'" in line]
                for name in ("stranger", "plain", "unsourced", "known")}

    def test_where_batches_share_a_lane_each_assumption_is_said_once(self):
        said = self.said_of_models("--policy", "strait", "--slots", "2")
        half = "assumed to use half of every resource"
        for name, why in (("stranger", "has no profile: measured quickly"),
                          ("plain", "has no resource figures in its profile"),
                          ("unsourced", "has resource figures but no `resources_source`")):
            self.assertEqual(len(said[name]), 1, said)
            self.assertIn(why, said[name][0])
            self.assertIn(half, said[name][0])
        self.assertEqual(said["known"], [])

    def test_where_none_does_there_is_nothing_to_assume(self):
        said = self.said_of_models("--policy", "strait")
        self.assertEqual(len(said["stranger"]), 1, said)
        self.assertNotIn("assumed", said["stranger"][0])
        self.assertEqual((said["plain"], said["unsourced"], said["known"]), ([], [], []))


class PredictorTest(unittest.TestCase):
    """What strait has learnt outlives the server, for the same models on the same machine."""

    def two_models(self, root, second="other"):
        for name in ("echo", second):
            add_model(root, name, identity_config(name, 8, [("INPUT0", "TYPE_FP32", [4])]))

    def serve(self, *arguments, **more):
        return Server("--policy", "strait", "--slots", "2", *arguments,
                      fill=lambda root: self.two_models(root, **more))

    def by_name(self, learnt):
        """Models are loaded several at once, so in no order."""
        return {model["name"]: model for model in learnt["models"]}

    def test_a_server_goes_on_from_what_the_last_one_learnt(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, again = pathlib.Path(folder) / "kept.json", pathlib.Path(folder) / "again.json"
            with contextlib.closing(self.serve("--save-predictor", str(kept))) as server:
                self.assertEqual(server.post("/v2/models/echo/infer", BODY)[0], 200)
                self.assertEqual(server.terminate(), 0)
            learnt = json.loads(kept.read_text())
            self.assertEqual(sorted(self.by_name(learnt)), ["echo", "other"])
            # As if it had served for long: whatever the calls above have taught is not known.
            learnt["steps"] = 5000
            learnt["parameters"][0]["value"] = 0.125
            kept.write_text(json.dumps(learnt))
            with contextlib.closing(self.serve("--predictor", str(kept), "--save-predictor",
                                               str(again))) as server:
                self.assertEqual(server.terminate(), 0)
            kept_on = json.loads(again.read_text())
            self.assertEqual(self.by_name(kept_on), self.by_name(learnt))
            self.assertEqual({**kept_on, "models": learnt["models"]}, learnt)

            for says, change, more in (
                    ("learnt on another device: 'an L4', not ", {"device": "an L4"}, {}),
                    ("it knows 'other', not served here; it does not know 'third'", {},
                     {"second": "third"}),
                    ("learnt by policy 'else', not by 'strait'", {"policy": "else"}, {})):
                kept.write_text(json.dumps({**learnt, **change}))
                with self.assertRaises(AssertionError) as refused:
                    self.serve("--predictor", str(kept), **more)
                self.assertIn(says, str(refused.exception))

    def test_what_learns_nothing_is_refused(self):
        for option in ("--predictor", "--save-predictor"):
            with self.assertRaises(AssertionError) as refused:
                Server("--policy", "temporal", option, "x.json", fill=echo_only)
            self.assertIn(f"{option}: policy 'temporal' learns nothing", str(refused.exception))


class SlowdownMetricsTest(unittest.TestCase):
    """What strait predicts of batches that run side by side can be held against what came."""

    def two_calls_at_once(self, server):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for status, _, answer in pool.map(
                    lambda _: server.post("/v2/models/slow/infer", BODY), range(2)):
                self.assertEqual(status, 200, answer)
        server.await_metric(2, "tactus_batch_size_count", model="slow")

    def test_predicted_and_measured_slowdowns_are_counted_for_each_model(self):
        with contextlib.closing(Server("--policy", "strait", "--slots", "2")) as server:
            self.assertEqual(server.metric("tactus_slowdown_error_ratio_count", model="slow"), 0)
            self.two_calls_at_once(server)
            for what in ("predicted", "measured", "error"):
                name = f"tactus_slowdown_{what}_ratio"
                self.assertEqual(server.metric(f"{name}_count", model="slow"), 2, what)
                self.assertEqual(server.metric(f"{name}_count", model="echo"), 0, what)
            # Two batches, each of them predicted to take no less than alone.
            self.assertGreaterEqual(
                server.metric("tactus_slowdown_predicted_ratio_sum", model="slow"), 2)
            self.assertGreater(server.metric("tactus_slowdown_measured_ratio_sum", model="slow"), 0)
            self.assertEqual(server.terminate(), 0)

    def test_a_policy_that_predicts_none_shows_none(self):
        with contextlib.closing(Server("--policy", "temporal", "--slots", "2")) as server:
            self.two_calls_at_once(server)
            self.assertNotIn("tactus_slowdown", server.get("/metrics", server.metrics_page))
            self.assertEqual(server.terminate(), 0)


class JournalTest(unittest.TestCase):
    def test_a_journal_of_served_calls_replays_to_the_same_decisions(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = pathlib.Path(folder) / "served.journal"
            with contextlib.closing(Server("--journal", str(journal))) as server, \
                    concurrent.futures.ThreadPoolExecutor(8) as pool:
                paths = ["/v2/models/echo/infer"] * 40 + ["/v2/models/slow/infer"] * 2
                for status, _, answer in pool.map(lambda p: server.post(p, BODY), paths):
                    self.assertEqual(status, 200, answer)
                self.assertEqual(server.terminate(), 0)
            done = subprocess.run([TACTUS, "replay", str(journal)], capture_output=True, text=True,
                                  timeout=START_S, cwd=SOURCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
