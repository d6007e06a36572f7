#!/usr/bin/env python3
"""Spans of calls at a collector of OpenTelemetry: a stand-in that reads them with the messages that
the standard publishes."""

import contextlib
import http.server
import json
import secrets
import socket
import subprocess
import threading
import time
import unittest

import numpy as np
import serving
import tritonclient.grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2


class Collector:
    """Answers the first requests with `first`, then 200 and `says`; `mute`: none, until it is
    closed. Keeps the spans of those with 200."""

    def __init__(self, first=(), port=0, says=b"", mute=False):
        self.spans = []
        self.asked = 0
        self.over = threading.Event()
        self.changed = threading.Condition()
        answers = list(first)
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.changed:
                    collector.asked += 1
                    collector.changed.notify_all()
                if mute:
                    collector.over.wait()
                    return
                status = answers.pop(0) if answers else 200
                if (self.path, self.headers["Content-Type"]) != ("/v1/traces",
                                                                 "application/x-protobuf"):
                    status = 404
                if status == 200:
                    collector.keep(body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(says)))
                self.end_headers()
                self.wfile.write(says)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def keep(self, body):
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        with self.changed:
            for resource in request.resource_spans:
                names = {each.key: each.value.string_value for each in resource.resource.attributes}
                assert names["service.name"] == "tactus", names
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.changed.notify_all()

    def calls(self, at_least=0):
        """The spans of whole calls, once there are so many."""
        def whole():
            return [span for span in self.spans if span.kind == trace_pb2.Span.SPAN_KIND_SERVER]
        with self.changed:
            came = self.changed.wait_for(lambda: len(whole()) >= at_least, serving.WAIT_S)
            assert came, f"{len(whole())} of {at_least} calls came"
            return whole()

    def close(self):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()


def parent(sampled):
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    return trace, span, f"00-{trace}-{span}-0{int(sampled)}"


def over_http(server, traceparent=None):
    body = {"id": "one", "inputs": [{"name": "INPUT0", "shape": [1, 4], "datatype": "FP32",
                                     "data": [1, 2, 3, 4]}]}
    headers = {"traceparent": traceparent} if traceparent else {}
    status, _, answer = server.post("/v2/models/m/infer", json.dumps(body).encode(), headers)
    assert status == 200, answer


def over_grpc(server, traceparent=None):
    tensor = tritonclient.grpc.InferInput("INPUT0", [1, 4], "FP32")
    tensor.set_data_from_numpy(np.ones((1, 4), np.float32))
    headers = {"traceparent": traceparent} if traceparent else None
    with contextlib.closing(tritonclient.grpc.InferenceServerClient(server.grpc)) as client:
        client.infer("m", [tensor], headers=headers)


def fill(root):
    serving.add_model(root, "m", serving.identity_config("m", 4, [("INPUT0", "TYPE_FP32", [4])]))


def served(url, *arguments):
    return contextlib.closing(serving.Server("--otlp", url, *arguments, fill=fill))


class OtlpTest(unittest.TestCase):
    def test_each_call_that_its_caller_records_comes_once(self):
        sampled = [parent(True) for _ in range(20)]
        with contextlib.closing(Collector(first=[503])) as collector:
            with served(collector.url) as server:
                for place, (_, _, text) in enumerate(sampled):
                    (over_http if place % 2 else over_grpc)(server, text)
                    over_http(server, parent(False)[2])
                    over_grpc(server)  # one in a thousand of those
                    over_http(server, "00-nonsense")
                calls = collector.calls(len(sampled))
            self.assertEqual(
                sorted((span.trace_id.hex(), span.parent_span_id.hex()) for span in calls),
                sorted((trace, span) for trace, span, _ in sampled))
            for call in calls:
                said = {each.key: each.value for each in call.attributes}
                self.assertEqual(said["tactus.model"].string_value, "m")
                self.assertEqual(said["tactus.outcome"].string_value, "met")
                self.assertEqual(said["tactus.batch"].int_value, 1)
                parts = {span.name: span for span in collector.spans
                         if span.parent_span_id == call.span_id}
                self.assertEqual(set(parts), {"queue", "compute"})
                self.assertLessEqual(call.start_time_unix_nano,
                                     parts["queue"].start_time_unix_nano)
                self.assertEqual(parts["queue"].end_time_unix_nano,
                                 parts["compute"].start_time_unix_nano)
                self.assertLessEqual(parts["compute"].end_time_unix_nano, call.end_time_unix_nano)
                self.assertLess(abs(call.start_time_unix_nano / 1e9 - time.time()), 3600)

    def test_the_settings_choose_calls_without_a_caller_that_records(self):
        with contextlib.closing(Collector()) as collector, served(collector.url) as server:
            settings = json.loads(server.get("/v2/trace/setting"))
            self.assertEqual([settings[key] for key in ("trace_mode", "trace_level", "trace_file")],
                             ["opentelemetry", ["TIMESTAMPS"], ""])
            status, _, answer = server.post("/v2/trace/setting", b'{"trace_rate": "2"}')
            self.assertEqual(status, 200, answer)
            for _ in range(10):
                over_http(server)
            calls = collector.calls(5)
            self.assertEqual(len({span.trace_id for span in calls}), 5)
            self.assertEqual({span.parent_span_id for span in calls}, {b""})
            server.post("/v2/trace/setting", b'{"trace_level": ["OFF"]}')
            over_http(server, parent(True)[2])
            server.terminate()
            self.assertEqual(len(collector.calls()), 5)

    def test_the_steps_of_an_ensemble_lie_below_its_call(self):
        def fill_ensemble(root):
            fill(root)
            link = ('step {{ model_name: "m" model_version: -1 input_map {{ key: "INPUT0" value: '
                    '"{}" }} output_map {{ key: "OUTPUT0" value: "{}" }} }}')
            serving.add_model(
                root, "twice", 'platform: "ensemble"\nmax_batch_size: 4\n'
                'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\nensemble_scheduling { '
                + link.format("x", "between") + link.format("between", "y") + " }\n")
        with contextlib.closing(Collector()) as collector:
            server = serving.Server("--otlp", collector.url, fill=fill_ensemble)
            with contextlib.closing(server):
                body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32",
                                    "data": [1, 2, 3, 4]}]}
                status, _, answer = server.post("/v2/models/twice/infer", json.dumps(body).encode(),
                                                {"traceparent": parent(True)[2]})
                self.assertEqual(status, 200, answer)
                server.terminate()
            [call] = collector.calls()
            steps = [span for span in collector.spans if span.parent_span_id == call.span_id]
            self.assertEqual(len(steps), 2, steps)
            for step in steps:
                self.assertTrue(step.name.startswith("step m"), step.name)
                self.assertLessEqual(call.start_time_unix_nano, step.start_time_unix_nano)
                self.assertLessEqual(step.end_time_unix_nano, call.end_time_unix_nano)
            self.assertLessEqual(steps[0].end_time_unix_nano, steps[1].start_time_unix_nano)

    def test_a_stop_sends_what_is_left(self):
        with contextlib.closing(Collector()) as collector:
            with served(collector.url) as server:
                over_http(server, parent(True)[2])
                self.assertEqual(server.terminate(), 0)
                self.assertEqual(len(collector.calls()), 1)

    def test_a_collector_that_comes_later_gets_them(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            with served(f"http://127.0.0.1:{port}") as server:
                for _ in range(3):
                    over_http(server, parent(True)[2])
                server.await_line("Connection refused: spans wait; see that a collector")
                taken.close()
                with contextlib.closing(Collector(port=port)) as collector:
                    self.assertEqual(len(collector.calls(3)), 3)

    def test_without_a_collector_calls_go_on_and_the_log_counts_what_is_lost(self):
        with contextlib.closing(Collector(first=[400] * 100)) as collector:
            server = serving.Server("--otlp", collector.url, fill=fill)
            with contextlib.closing(server):
                over_http(server, parent(True)[2])
                server.await_line("the collector answers 400 for POST /v1/traces")
                self.assertEqual(server.metric("tactus_spans_lost_total"), 3)
                server.terminate()
                server.await_line(": 3 spans were lost")

    def test_what_a_collector_takes_in_part_is_counted(self):
        refuses = trace_service_pb2.ExportTraceServiceResponse()
        refuses.partial_success.rejected_spans = 2
        refuses.partial_success.error_message = "too old"
        with contextlib.closing(Collector(says=refuses.SerializeToString())) as collector, \
                served(collector.url) as server:
            over_http(server, parent(True)[2])
            server.await_line("the collector refuses some: too old")
            self.assertEqual(server.metric("tactus_spans_lost_total"), 2)
            server.terminate()
            server.await_line(": 2 spans were lost")

    def test_a_collector_that_never_answers_holds_up_neither_calls_nor_the_stop(self):
        with contextlib.closing(Collector(mute=True)) as collector, \
                served(collector.url) as server:
            over_http(server, parent(True)[2])
            with collector.changed:
                self.assertTrue(collector.changed.wait_for(lambda: collector.asked,
                                                           serving.WAIT_S))
            over_http(server, parent(True)[2])
            self.assertEqual(server.terminate(), 0)
            server.await_line("spans were lost")

    def test_a_long_id_costs_no_other_call_its_spans(self):
        with contextlib.closing(Collector()) as collector, served(collector.url) as server:
            body = {"id": "x" + "\u00e9" * 300, "inputs": [
                {"name": "INPUT0", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}
            status, _, answer = server.post("/v2/models/m/infer", json.dumps(body).encode(),
                                            {"traceparent": parent(True)[2]})
            self.assertEqual(status, 200, answer)
            [call] = collector.calls(1)
            [said] = [each.value.string_value for each in call.attributes
                      if each.key == "tactus.request_id"]
            self.assertEqual(said, "x" + "\u00e9" * 127)

    def test_what_is_no_collector_is_refused_at_the_start(self):
        for arguments, expected in ((["--otlp", "https://127.0.0.1:4318"], "https is not spoken"),
                                    (["--otlp", "http://127.0.0.1", "--trace-file", "none.json"],
                                     "excludes")):
            done = subprocess.run([serving.TACTUS, "serve", "--models", "/tmp", *arguments],
                                  capture_output=True, text=True, timeout=serving.START_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
