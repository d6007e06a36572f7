"""Runs that fail or do not end, in a real engine: who hears of a bad row, and what becomes of a
lane that is held."""

import concurrent.futures
import contextlib
import json
import shutil
import time
import unittest

import serving

DATA = serving.SOURCE / "tests" / "data"
FOREVER = 10**12  # steps


def graph(root, name):
    (root / name / "1").mkdir(parents=True)
    shutil.copy(DATA / f"{name}.onnx", root / name / "1" / "model.onnx")
    kind = "TYPE_FP32" if name == "pick" else "TYPE_INT64"
    (root / name / "config.pbtxt").write_text(
        f'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
        f'input {{ name: "x" data_type: TYPE_INT64 dims: 1 }}\n'
        f'output {{ name: "y" data_type: {kind} dims: 1 }}\n')


def both(root):
    graph(root, "pick")
    graph(root, "steps")


def call(server, model, *rows, timeout_s=None):
    body = {"inputs": [{"name": "x", "shape": [len(rows), 1], "datatype": "INT64",
                        "data": list(rows)}]}
    if timeout_s:
        body["parameters"] = {"timeout": int(timeout_s * 1e6)}
    status, headers, answer = server.post(f"/v2/models/{model}/infer", json.dumps(body).encode())
    return status, json.loads(answer)


class RunsTest(unittest.TestCase):
    def test_only_who_sends_a_bad_row_hears_of_it(self):
        with contextlib.closing(serving.Server("--policy", "fifo:batch=8", fill=both)) as server:
            with concurrent.futures.ThreadPoolExecutor(17) as pool:
                held = pool.submit(call, server, "steps", 400_000)  # so that others wait
                server.await_metric(1, "tactus_pending_calls")
                calls = [(row, pool.submit(call, server, "pick", row))
                         for row in [0, 1, 2, 99, 3, 0, 1, 2] * 2]
                for row, future in calls:
                    status, answer = future.result()
                    self.assertEqual(status, 500 if row == 99 else 200, answer)
                    if row != 99:
                        self.assertEqual(answer["outputs"][0]["data"], [10.0 * (row + 1)])
                    else:
                        self.assertIn("indices element out of data bounds", answer["error"])
                self.assertEqual(held.result()[0], 200)
            rows = {result: server.metric("tactus_rows_apart_total", model="pick", result=result)
                    for result in ("answered", "failed")}
            self.assertEqual(rows["failed"] > 0, rows["answered"] > 0, rows)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_run_without_end_does_not_hold_the_server(self):
        # A run may take as long as its model's SLO allows.
        server = serving.Server("--watchdog-s", "0.5", "--default-slo-ms", "1000", fill=both)
        with contextlib.closing(server):
            self.assertEqual(call(server, "pick", 1)[0], 200)
            status, answer = call(server, "steps", FOREVER)
            self.assertEqual(status, 504, answer)
            self.assertIn("was stopped", answer["error"])
            end = time.monotonic() + serving.WAIT_S
            while call(server, "pick", 1)[0] != 200:
                self.assertLess(time.monotonic(), end)
            self.assertEqual(server.metric("tactus_lane_stuck"), 0)
            self.assertGreaterEqual(server.metric("tactus_lane_stuck_runs_total"), 1)
            self.assertEqual(server.terminate(), 0, server.errors())
            self.assertIn("a run of model 'steps' has taken", server.errors())


if __name__ == "__main__":
    unittest.main(verbosity=2)
