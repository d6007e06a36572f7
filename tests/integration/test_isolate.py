"""tactus serve --isolate with a real engine: graphs that crash, processes that are killed, and what
the others hear of it."""

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import unittest
import urllib.error

import serving
import test_assumed
from test_runs import FOREVER, call

DATA = serving.SOURCE / "tests" / "data"
LEAST = -2**63  # divided by -1 it is no number, and the processor says so


def add_graph(root, name, kind="TYPE_INT64"):
    (root / name / "1").mkdir(parents=True)
    shutil.copy(DATA / f"{name}.onnx", root / name / "1" / "model.onnx")
    (root / name / "config.pbtxt").write_text(
        f'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
        f'input {{ name: "x" data_type: TYPE_INT64 dims: 1 }}\n'
        f'output {{ name: "y" data_type: {kind} dims: 1 }}\n')


def graphs(root):
    add_graph(root, "pick", "TYPE_FP32")
    add_graph(root, "steps")
    add_graph(root, "divide")


def exchange(server, file):
    """Puts the file into the place of the model m's graph, as a rename does."""
    graph = server.repository / "m" / "1" / "model.onnx"
    shutil.copy(file, graph.with_name("fresh"))
    graph.with_name("fresh").rename(graph)


def with_folded(root):
    graphs(root)
    add_graph(root, "folded")


def engine_processes(server_pid):
    """The numbers of the processes that run the server's engines."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[1:3] == [b"engine-process", str(server_pid).encode()]:
                found.append(int(folder.name))
    return found


class Isolated(serving.Server):
    def __init__(self, *arguments, fill=graphs):
        super().__init__("--isolate", "--policy", "fifo:batch=8", *arguments, fill=fill)

    def processes(self):
        return engine_processes(self.process.pid)


class IsolateTest(unittest.TestCase):
    def await_none(self, server_pid):
        end = time.monotonic() + serving.WAIT_S
        while engine_processes(server_pid):
            self.assertLess(time.monotonic(), end, "a process outlived its server")
            time.sleep(0.01)

    def assert_refused_for_death(self, status, answer):
        self.assertEqual(status, 500, answer)
        self.assertIn("SIGFPE", answer["error"])
        self.assertIn("it is not run again", answer["error"])

    def test_a_graph_that_crashes_costs_its_caller_an_error_and_nobody_else(self):
        with contextlib.closing(Isolated()) as server:
            stop = threading.Event()
            answers = []

            def ask():
                while not stop.is_set():
                    answers.append(call(server, "pick", 2))

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                asking = [pool.submit(ask) for _ in range(3)]
                for _ in range(3):
                    self.assert_refused_for_death(*call(server, "divide", LEAST))
                    status, answer = call(server, "divide", 7)
                    self.assertEqual(status, 200, answer)
                    self.assertEqual(answer["outputs"][0]["data"], [-7])
                stop.set()
                for each in asking:
                    each.result()
            for status, answer in answers:
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["outputs"][0]["data"], [30.0])
            self.assertIn("lane 0 is back", server.errors())
            self.assertEqual(server.terminate(), 0, server.errors())
            self.await_none(server.process.pid)

    def test_good_rows_of_the_same_batch_are_answered(self):
        with contextlib.closing(Isolated()) as server:
            with concurrent.futures.ThreadPoolExecutor(9) as pool:
                held = pool.submit(call, server, "steps", 400_000)  # so that others wait
                server.await_metric(1, "tactus_pending_calls")
                calls = [(row, pool.submit(call, server, "divide", row))
                         for row in [1, 2, LEAST, 3, 4, 5, 6, 7]]
                for row, future in calls:
                    status, answer = future.result()
                    if row == LEAST:
                        self.assert_refused_for_death(status, answer)
                    else:
                        self.assertEqual(status, 200, answer)
                        self.assertEqual(answer["outputs"][0]["data"], [-row])
                self.assertEqual(held.result()[0], 200)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_graph_that_crashes_while_it_is_loaded_is_not_served_and_the_others_are(self):
        with contextlib.closing(Isolated(fill=with_folded)) as server:
            status, _, answer = server.post("/v2/repository/index", b"{}")
            states = {model["name"]: model for model in json.loads(answer)}
            self.assertEqual(states["folded"]["state"], "UNAVAILABLE")
            self.assertIn("died while it loaded the model", states["folded"]["reason"])
            self.assertEqual(call(server, "pick", 1)[0], 200)
            self.assertNotIn("lane 0 died", server.errors())
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_process_that_is_killed_is_replaced(self):
        with contextlib.closing(Isolated("--lanes", "2")) as server:
            self.assertEqual(len(server.processes()), 2)
            # One at a time: a call that meets two deaths in a row is taken for their cause.
            for _ in range(6):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.processes()[0], signal.SIGKILL)
                status, answer = call(server, "pick", 1)
                self.assertEqual(status, 200, answer)
            self.assertEqual(server.terminate(), 0, server.errors())
            self.await_none(server.process.pid)

    def lane_batches(self, server, lane):
        return server.metric("tactus_lane_batches_total", lane=str(lane))

    def test_a_lane_that_lacks_a_model_leaves_its_calls_to_the_other(self):
        with contextlib.closing(Isolated("--lanes", "2")) as server, \
                concurrent.futures.ThreadPoolExecutor(8) as pool:
            graph = server.repository / "pick" / "1" / "model.onnx"
            aside = graph.with_name("aside")
            graph.rename(aside)
            os.kill(server.processes()[0], signal.SIGKILL)
            server.await_line("the lane goes on without it")
            lane = 0 if "lane 0 died" in server.errors() else 1
            server.await_line(f"lane {lane} is back")
            for each in [pool.submit(call, server, "pick", 2) for _ in range(160)]:
                status, answer = each.result()
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["outputs"][0]["data"], [30.0])
            # What one lane has is served, and ready.
            server.get("/v2/health/ready")
            server.get("/v2/models/pick/ready")
            aside.rename(graph)
            server.await_line(f"model 'pick' is on lane {lane} again")
            before = [self.lane_batches(server, each) for each in range(2)]
            end = time.monotonic() + serving.WAIT_S
            while any(self.lane_batches(server, each) == before[each] for each in range(2)):
                self.assertLess(time.monotonic(), end, "a lane runs nothing")
                for each in [pool.submit(call, server, "pick", 2) for _ in range(16)]:
                    self.assertEqual(each.result()[0], 200)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_model_that_no_lane_has_is_refused_with_the_reason(self):
        with contextlib.closing(Isolated()) as server:
            shutil.rmtree(server.repository / "pick" / "1")
            os.kill(server.processes()[0], signal.SIGKILL)
            server.await_line("lane 0 is back")
            status, answer = call(server, "pick", 2)
            self.assertEqual(status, 503, answer)
            self.assertIn("no lane has model 'pick' again yet", answer["error"])
            with self.assertRaisesRegex(urllib.error.HTTPError, "503"):
                server.get("/v2/models/pick/ready")
            self.assertEqual(call(server, "steps", 2)[0], 200)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_files_that_were_exchanged_without_a_load_are_tried_as_for_one(self):
        """A lane that is loaded anew finds other files than those that were tried."""
        fill = functools.partial(test_assumed.put, graph="reflected", name="m")
        with contextlib.closing(Isolated("--lanes", "2", fill=fill)) as server, \
                concurrent.futures.ThreadPoolExecutor(8) as pool:
            config = lambda: json.loads(server.get("/v2/models/m/config"))
            self.assertEqual(config()["max_batch_size"], 4)
            exchange(server, DATA / "centred.onnx")
            os.kill(server.processes()[0], signal.SIGKILL)
            server.await_line("model 'm': its new files serve")
            self.assertEqual(config()["max_batch_size"], 0)
            calls = []
            for number in range(48):
                values = [float((number * 37 + i * i) % 101) for i in range(16)]
                calls.append((test_assumed.centred(values, [2, 8]), pool.submit(
                    test_assumed.call, server, "m", values, [2, 8])))
            for wanted, call_of in calls:
                self.assertEqual(call_of.result()[0], wanted[0])
                for got, value in zip(call_of.result()[1], wanted[1]):
                    self.assertAlmostEqual(got, value, places=3)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_files_that_were_exchanged_for_what_cannot_serve_are_no_version(self):
        fill = functools.partial(test_assumed.put, graph="reflected", name="m")
        with contextlib.closing(Isolated(fill=fill)) as server:
            graph = server.repository / "m" / "1" / "model.onnx"
            before = graph.read_bytes()
            page = server.repository.parent / "page"
            page.write_text("<!doctype html><html>not found</html>")
            exchange(server, page)
            os.kill(server.processes()[0], signal.SIGKILL)
            server.await_line("the lane goes on without it")
            index = json.loads(server.post("/v2/repository/index", b"{}")[2])
            self.assertEqual(index[0]["state"], "UNAVAILABLE", index)
            self.assertIn("a web page (HTML)", index[0]["reason"])
            self.assertEqual(test_assumed.call(server, "m", [1.0] * 80, [1, 80])[0], 503)
            graph.write_bytes(before)
            server.await_line("model 'm' is on lane 0 again")
            shape, data = test_assumed.call(server, "m", [1.0] * 80, [1, 80])
            self.assertEqual((shape, data), ([1, 144], [1.0] * 144))
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_processes_end_with_a_server_that_is_killed(self):
        with contextlib.closing(Isolated()) as server:
            self.assertEqual(len(server.processes()), 1)
            server.process.kill()
            server.process.wait(timeout=serving.WAIT_S)
            self.await_none(server.process.pid)

    def test_a_run_without_end_is_stopped_and_the_lane_serves_again(self):
        with contextlib.closing(Isolated("--watchdog-s", "0.3")) as server:
            status, answer = call(server, "steps", FOREVER, timeout_s=1)
            self.assertEqual(status, 504, answer)
            end = time.monotonic() + serving.WAIT_S
            while call(server, "pick", 1)[0] != 200:
                self.assertLess(time.monotonic(), end)
            self.assertEqual(server.terminate(), 0, server.errors())

    def await_ready(self, server, expected):
        end = time.monotonic() + serving.WAIT_S
        ready = not expected
        while ready is not expected:
            self.assertLess(time.monotonic(), end, server.errors())
            time.sleep(0.01)
            try:
                server.get("/v2/health/ready")
                ready = True
            except urllib.error.HTTPError:
                ready = False

    def test_where_all_processes_hang_the_server_is_not_ready_until_one_serves(self):
        with contextlib.closing(Isolated("--lanes", "2")) as server, \
                concurrent.futures.ThreadPoolExecutor(4) as pool:
            for process in server.processes():
                serving.halt(process)
            self.await_ready(server, False)
            asked = [pool.submit(call, server, "pick", 2) for _ in range(4)]
            for each in asked:  # by the processes that replace them
                status, answer = each.result()
                self.assertEqual(status, 200, answer)
            self.await_ready(server, True)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_lane_whose_process_hangs_leaves_its_calls_to_the_other(self):
        with contextlib.closing(Isolated("--lanes", "2")) as server:
            hangs = server.processes()[0]
            serving.halt(hangs)
            server.await_line("gives no sign of life; no batch goes there")
            for _ in range(40):
                status, answer = call(server, "pick", 2)
                self.assertEqual(status, 200, answer)
            with contextlib.suppress(ProcessLookupError):  # it was replaced
                os.kill(hangs, signal.SIGCONT)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_processes_that_hang_hold_no_stop(self):
        for hung_load in (False, True):
            arguments = ["--grace-seconds", "0.2", "--lanes", "2"]
            if hung_load:
                arguments += ["--model-control-mode", "explicit", "--load-model", "*"]
            with self.subTest(hung_load), contextlib.closing(Isolated(*arguments)) as server, \
                    concurrent.futures.ThreadPoolExecutor() as pool:
                processes = server.processes()
                for process in processes:
                    serving.halt(process)
                calls = [pool.submit(call, server, "pick", 1) for _ in range(3)]
                server.await_pending(3)
                if hung_load:
                    pool.submit(server.post, "/v2/repository/models/steps/load", b"{}")
                self.assertEqual(server.terminate(), 0, server.errors())
                for each in calls:
                    with contextlib.suppress(OSError):  # a connection that was closed
                        self.assertEqual(each.result(timeout=serving.WAIT_S)[0], 503)
                # Nobody waited until it was known that they hang.
                self.assertNotIn("no sign of life", server.errors())
                self.assertNotIn("died", server.errors())
                self.await_none(server.process.pid)

    def test_what_does_not_go_with_it_is_refused(self):
        for more, why in ((("--slots", "2"), "one batch at a time"),
                          (("--engine", "emulated"), "runs no graph"),
                          (("--plan", str(DATA / "pick.onnx")), "excludes")):
            done = subprocess.run(
                [serving.TACTUS, "serve", "--models", str(DATA), "--isolate", *more],
                capture_output=True, text=True, timeout=serving.WAIT_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
