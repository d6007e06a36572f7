"""Traces of calls: Triton's clients say which are traced, and the file is read back."""

import contextlib
import json
import pathlib
import queue
import tempfile
import time
import unittest

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from serving import WAIT_S, Server, make_repository_with_pipeline

OUTER = ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
WHOLE = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END", "REQUEST_END"]


def both_clients(server):
    return ((http_client, http_client.InferenceServerClient(server.http, network_timeout=WAIT_S)),
            (grpc_client, grpc_client.InferenceServerClient(server.grpc)))


def inputs(client):
    tensor = client.InferInput("INPUT0", [1, 4], "FP32")
    tensor.set_data_from_numpy(numpy.ones((1, 4), "f4"))
    return [tensor]


def settings_of(client, connected, model=None):
    asked = {"as_json": True} if client is grpc_client else {}
    said = connected.get_trace_settings(model_name=model, **asked)
    if client is http_client:
        return said
    values = {name: entry["value"] for name, entry in said["settings"].items()}
    return {name: value if name == "trace_level" else value[0] for name, value in values.items()}


def traces_in(path):
    """For each trace of a file what it says of the call, with its times by name, in order."""
    traces = {}
    for said in json.loads(path.read_text()):
        trace = traces.setdefault(said.pop("id"), {"times": {}})
        for stamp in said.pop("timestamps", []):
            trace["times"][stamp["name"]] = stamp["ns"]
        trace.update(said)
    return traces


def await_traces(path, count):
    """The traces of a file once it has so many; one that is being written is read again."""
    end = time.monotonic() + WAIT_S
    while True:
        with contextlib.suppress(json.JSONDecodeError):
            traces = traces_in(path)
            if len(traces) >= count:
                return traces
        if time.monotonic() > end:
            raise AssertionError(f"waited for {count} traces: {path.read_text()}")
        time.sleep(0.02)


class TraceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "traces.json"

    def serve(self, *arguments):
        server = Server("--trace-file", str(self.file), *arguments,
                        fill=make_repository_with_pipeline)
        self.addCleanup(server.close)
        return server

    def call(self, client, connected, model="echo", **more):
        self.assertEqual(connected.infer(model, inputs(client), **more).as_numpy(
            "OUTPUT0").tolist(), [[1, 1, 1, 1]])

    def check_times(self, trace, names):
        self.assertEqual(list(trace["times"]), names)
        instants = list(trace["times"].values())
        self.assertEqual(instants, sorted(instants))

    def test_calls_of_every_kind_are_traced_with_their_times_in_order(self):
        server = self.serve()
        clients = both_clients(server)
        http, grpc = (connected for _, connected in clients)
        self.call(*clients[0], request_id="before")
        http.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})
        for client, connected in clients:
            self.assertEqual(settings_of(client, connected), {
                "log_frequency": "0", "trace_count": "-1", "trace_file": str(self.file),
                "trace_level": ["TIMESTAMPS"], "trace_mode": "triton", "trace_rate": "1"})
        self.call(*clients[0], request_id="over HTTP")
        self.call(*clients[1], request_id="over gRPC")
        done = queue.Queue()
        grpc.start_stream(lambda result, error: done.put((result, error)))
        grpc.async_stream_infer("echo", inputs(grpc_client), request_id="in a stream")
        self.assertIsNone(done.get(timeout=WAIT_S)[1])
        grpc.stop_stream()
        self.call(*clients[0], model="twice")
        traces = await_traces(self.file, 4)
        self.assertEqual(list(traces), [1, 2, 3, 4])
        for trace, name in zip(traces.values(), ("over HTTP", "over gRPC", "in a stream")):
            self.assertEqual((trace["model_name"], trace["model_version"], trace["request_id"],
                              trace["batch"]), ("echo", 1, name, 1))
            self.assertIn(trace["outcome"], ("met", "late"))
            self.check_times(trace, WHOLE)
        pipeline = traces[4]
        self.assertEqual(pipeline["model_name"], "twice")
        self.assertNotIn("request_id", pipeline)
        self.check_times(pipeline, OUTER)
        times = [list(trace["times"].values()) for trace in traces.values()]
        for earlier, later in zip(times, times[1:]):
            self.assertLessEqual(earlier[-1], later[0])  # one clock for all of them
        # A call whose time is over is refused, and traced as far as it came.
        with self.assertRaises(InferenceServerException):
            grpc.infer("echo", inputs(grpc_client), timeout=1)
        refused = await_traces(self.file, 5)[5]
        self.assertEqual(refused["outcome"], "expired")
        self.check_times(refused, OUTER)
        grpc.update_trace_settings(settings={"trace_level": "OFF"})
        self.call(*clients[1])
        self.assertEqual(server.terminate(), 0, server.errors())
        self.assertEqual(len(traces_in(self.file)), 5)

    def test_a_model_has_settings_of_its_own_until_they_are_cleared(self):
        clients = both_clients(self.serve())
        for client, connected in clients:
            connected.update_trace_settings(settings={"trace_rate": "5"})
            connected.update_trace_settings(
                "echo", {"trace_level": "TIMESTAMPS", "trace_rate": "3", "log_frequency": "7"})
            self.assertEqual(settings_of(client, connected, "echo")["trace_rate"], "3")
            self.assertEqual(settings_of(client, connected, "twice")["trace_rate"], "5")
            self.assertEqual(settings_of(client, connected)["trace_level"], ["OFF"])
            connected.update_trace_settings("echo", {"trace_rate": None, "log_frequency": None})
            own = settings_of(client, connected, "echo")
            self.assertEqual((own["trace_rate"], own["log_frequency"], own["trace_level"]),
                             ("5", "0", ["TIMESTAMPS"]))
            connected.update_trace_settings(settings={"trace_rate": None})
            connected.update_trace_settings("echo", {"trace_level": None})
            self.assertEqual(settings_of(client, connected, "echo"),
                             settings_of(client, connected))
            self.assertEqual(settings_of(client, connected)["trace_rate"], "1000")
            for wrong, text in (({"trace_level": ["TENSORS"]}, "TIMESTAMPS"),
                                ({"trace_rate": "0"}, "from 1"),
                                ({"trace_file": "/tmp/elsewhere"}, "--trace-file"),
                                ({"trace_speed": "1"}, "known: log_frequency")):
                with self.assertRaisesRegex(InferenceServerException, list(wrong)[0]) as error:
                    connected.update_trace_settings(settings={"trace_count": "3", **wrong})
                self.assertIn(text, error.exception.message())
                self.assertEqual(settings_of(client, connected)["trace_count"], "-1")
            with self.assertRaisesRegex(InferenceServerException, "unknown model: 'nobody'"):
                connected.update_trace_settings("nobody", {"trace_rate": "1"})
            with self.assertRaisesRegex(InferenceServerException, "unknown model: 'nobody'"):
                settings_of(client, connected, "nobody")

    def test_every_second_call_until_there_are_three_in_numbered_files(self):
        server = self.serve()
        for client, connected in both_clients(server):
            connected.update_trace_settings("echo", {
                "trace_level": ["TIMESTAMPS"], "trace_rate": "2", "trace_count": "3",
                "log_frequency": "2"})
            for i in range(1, 11):
                self.call(client, connected, request_id=str(i))
            self.assertEqual(settings_of(client, connected, "echo")["trace_count"], "0")
        self.assertEqual(server.terminate(), 0, server.errors())
        files = [traces_in(pathlib.Path(f"{self.file}.{i}")) for i in range(3)]
        self.assertEqual([[trace["request_id"] for trace in file.values()] for file in files],
                         [["2", "4"], ["6", "2"], ["4", "6"]])
        self.assertEqual(traces_in(self.file), {})

    def test_the_traces_of_the_last_run_are_kept(self):
        for _ in range(2):
            server = self.serve()
            client, connected = both_clients(server)[0]
            connected.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"],
                                                      "trace_rate": "1"})
            self.call(client, connected)
            self.assertEqual(server.terminate(), 0, server.errors())
        for path in (self.file, pathlib.Path(f"{self.file}.old")):
            self.assertEqual(len(traces_in(path)), 1)

    def test_without_a_file_nothing_can_be_traced(self):
        with contextlib.closing(Server()) as server:
            for client, connected in both_clients(server):
                self.assertEqual(settings_of(client, connected)["trace_file"], "")
                with self.assertRaisesRegex(InferenceServerException, "--trace-file FILE"):
                    connected.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})
                extensions = (connected.get_server_metadata()["extensions"]
                              if client is http_client
                              else connected.get_server_metadata().extensions)
                self.assertIn("trace", extensions)

    def test_a_file_that_cannot_be_written_is_refused_at_the_start(self):
        self.file.symlink_to("/dev/full")
        for path, cause in ((self.file, "cannot write it: No space left on device"),
                            (self.file.parent / "none" / "t.json", "cannot write it; is the "
                             "folder")):
            with self.assertRaisesRegex(AssertionError, "the server did not start") as error:
                Server("--trace-file", str(path)).close()
            self.assertIn(f"--trace-file: {path}: {cause}", str(error.exception))


if __name__ == "__main__":
    unittest.main(verbosity=2)
