"""Tools that others wrote: promtool reads our metrics, perf_analyzer loads both protocols, and
Perfetto's own messages are what `tactus trace` writes."""

import collections
import concurrent.futures
import contextlib
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from serving import SOURCE, TACTUS, WAIT_S, ServedTest, Server

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



class PerfettoTest(unittest.TestCase):
    def test_a_trace_has_a_row_for_each_lane_flows_and_counters(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            journal = pathlib.Path(folder) / "journal"
            out = pathlib.Path(folder) / "out.pftrace"
            with contextlib.closing(Server("--journal", str(journal), "--lanes", "2",
                                           "--allow-other-machine")) as server:
                call = lambda _: server.post("/v2/models/slow/infer", BODY)[0]
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    self.assertEqual(list(pool.map(call, range(6))), [200] * 6)
                self.assertEqual(server.terminate(), 0)
            done = subprocess.run([TACTUS, "trace", journal, "--out", out], capture_output=True,
                                  text=True, timeout=WAIT_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = Trace.FromString(out.read_bytes())
        tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet
                  if p.HasField("track_descriptor")}
        names = {uuid: track.name or track.static_name for uuid, track in tracks.items()}
        events = [p for p in trace.packet if p.HasField("track_event")]
        of = lambda kind: [(p.timestamp, names[p.track_event.track_uuid], p.track_event)
                           for p in events if p.track_event.type == kind]
        self.assertLessEqual({"lane 0", "lane 1", "requests to slow", "slow waiting"},
                             set(names.values()))
        begins, ends = of(TrackEvent.TYPE_SLICE_BEGIN), of(TrackEvent.TYPE_SLICE_END)
        self.assertEqual({name for _, name, _ in begins}, {"lane 0", "lane 1"})
        self.assertEqual(len(begins), len(ends))
        for name in ("lane 0", "lane 1"):  # slices of a lane follow each other
            ordered = sorted([(at, 1) for at, lane, _ in begins if lane == name] +
                             [(at, -1) for at, lane, _ in ends if lane == name])
            self.assertEqual([step for _, step in ordered], [1, -1] * (len(ordered) // 2))
        arrived = [e for _, name, e in of(TrackEvent.TYPE_INSTANT) if name == "requests to slow"]
        ran = collections.Counter(flow for _, _, e in begins for flow in e.flow_ids)
        self.assertEqual(ran, collections.Counter(flow for e in arrived for flow in e.flow_ids))
        self.assertEqual(len(ran), 6)
        waits = [e.counter_value for _, name, e in of(TrackEvent.TYPE_COUNTER)
                 if name == "slow waiting"]
        self.assertEqual(waits[-1], 0)
        self.assertGreaterEqual(max(waits), 1)
        self.assertTrue(all(tracks[e.track_uuid].HasField("counter")
                            for _, _, e in of(TrackEvent.TYPE_COUNTER)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
