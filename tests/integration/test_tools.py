"""Tools that others wrote: promtool reads our metrics, perf_analyzer loads both protocols."""

import re
import shutil
import subprocess
import unittest

from serving import SOURCE, WAIT_S, ServedTest

PROMTOOL = SOURCE / ".cache/promtool/promtool"
PERF_ANALYZER = SOURCE / ".cache/perf_analyzer/run"
BODY = (b'{"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], '
        b'"data": [0, 1, 2, 3]}]}')


def found(installed, name):
    if installed.exists():
        return str(installed)
    return shutil.which(name)


def analyze(test, model, protocol, address, *more):
    """What perf_analyzer prints of a hundred requests."""
    tool = found(PERF_ANALYZER, "perf_analyzer")
    if tool is None:
        test.skipTest("no perf_analyzer: NOTHING WAS TESTED; remedy: ./run test")
    done = subprocess.run(
        [tool, "-m", model, "-u", address, "-i", protocol, "--request-count", "100",
         "--concurrency-range", "2", *more],
        capture_output=True, text=True, timeout=120)
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout


class MetricsTest(ServedTest):
    def test_promtool_accepts_the_metrics(self):
        promtool = found(PROMTOOL, "promtool")
        if promtool is None:
            self.skipTest("no promtool: the metrics were NOT CHECKED; remedy: ./run test")
        # One of every kind, so that every family has a series.
        self.assertEqual(self.server.post("/v2/models/echo/infer", BODY)[0], 200)
        text = self.server.get("/metrics", self.server.metrics_page)
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                              capture_output=True, timeout=WAIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_family_is_there(self):
        self.assertEqual(self.server.post("/v2/models/echo/infer", BODY)[0], 200)
        self.server.await_metric(1, "tactus_batch_size_count", model="echo")
        text = self.server.get("/metrics", self.server.metrics_page)
        families = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
        self.assertLessEqual(
            {"tactus_request_duration_seconds", "tactus_queue_seconds",
             "tactus_deadline_slack_seconds", "tactus_requests_total", "tactus_batch_size",
             "tactus_exit_total", "tactus_pending_requests", "tactus_lane_busy_ratio",
             "tactus_prediction_error_ratio", "tactus_model_ready",
             "tactus_autoscale_advice_lanes", "tactus_autoscale_bad_ratio",
             "tactus_autoscale_idle_ratio"}, families)
        self.assertFalse([name for name in families if name.startswith("nv_")])


class PerfAnalyzerTest(ServedTest):
    arguments = ("--triton-metrics",)

    def analyze(self, protocol, address, *more):
        before = self.server.metric("tactus_requests_total", model="echo")
        self.assertIn("infer/sec", analyze(self, "echo", protocol, address, *more))
        after = self.server.metric("tactus_requests_total", model="echo")
        self.assertGreaterEqual(after - before, 100)

    def test_http(self):
        self.analyze("http", self.server.http)

    def test_grpc(self):
        self.analyze("grpc", self.server.grpc)

    def test_grpc_with_a_deadline(self):
        self.analyze("grpc", self.server.grpc, "--request-parameter", "timeout:30000000:int")

    def test_tritons_own_metrics(self):
        self.assertEqual(self.server.post("/v2/models/echo/infer", BODY)[0], 200)
        self.server.await_metric(1, "nv_inference_request_success", model="echo", version="1")
        self.server.await_metric(1, "nv_inference_exec_count", model="echo", version="1")
        self.assertEqual(self.server.metric("nv_inference_request_failure", reason="OTHER"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
