"""Timeouts, cancellation and clients that vanish, while the only lane is busy with a slow batch."""

import concurrent.futures
import contextlib
import json
import socket
import time
import unittest

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from serving import WAIT_S, ServedTest, Server

ROW = numpy.arange(4, dtype=numpy.float32).reshape(1, 4)
BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                               "data": [0, 1, 2, 3]}]}).encode()
# Less than the slow batches that stand before the call, whatever the machine does besides.
SHORT_US = 50_000


def row(types):
    tensor = types.InferInput("INPUT0", ROW.shape, "FP32")
    tensor.set_data_from_numpy(ROW)
    return tensor


class DeadlineTest(ServedTest):
    def setUp(self):
        self.http = http_client.InferenceServerClient(self.server.http, network_timeout=WAIT_S)
        self.grpc = grpc_client.InferenceServerClient(self.server.grpc)
        self.addCleanup(self.http.close)
        self.addCleanup(self.grpc.close)
        # Three slow batches: one runs, two wait. Whatever comes after them finds the lane taken.
        pool = concurrent.futures.ThreadPoolExecutor(3)
        self.addCleanup(pool.shutdown)
        self.ahead = [pool.submit(self.server.post, "/v2/models/slow/infer", BODY)
                      for _ in range(3)]
        self.server.await_pending(3)

    def tearDown(self):
        for call in self.ahead:
            self.assertEqual(call.result(timeout=WAIT_S)[0], 200)

    def counted(self, outcome, model="slow"):
        return self.server.metric("tactus_requests_total", model=model, outcome=outcome)

    def test_the_timeout_parameter_over_http(self):
        before = self.counted("expired")
        with self.assertRaises(InferenceServerException) as refused:
            self.http.infer("slow", [row(http_client)], timeout=SHORT_US)
        self.assertEqual(refused.exception.status(), "504")
        self.server.await_metric(before + 1, "tactus_requests_total", model="slow",
                                 outcome="expired")

    def test_a_timeout_header_over_http(self):
        status, _, body = self.server.post("/v2/models/slow/infer", BODY,
                                           {"x-request-timeout-ms": "50"})
        self.assertEqual(status, 504, body)

    def test_the_headers_of_the_field(self):
        for field, value in [("Connect-Timeout-Ms", "50"), ("grpc-timeout", "50m"),
                             ("x-envoy-expected-rq-timeout-ms", "50"),
                             ("x-llm-d-slo-ttft-ms", "50.5"), ("x-slo-ttft-ms", "50")]:
            status, headers, body = self.server.post("/v2/models/slow/infer", BODY, {field: value})
            self.assertEqual(status, 504, (field, body))
            self.assertEqual(headers["Server-Timing"], 'refused;desc="expired"', field)
        with self.assertRaises(InferenceServerException) as refused:
            self.grpc.infer("slow", [row(grpc_client)], headers={"x-slo-ttft-ms": "50"})
        self.assertIn("DEADLINE_EXCEEDED", refused.exception.status())

    def test_a_call_without_time_is_refused(self):
        status, _, body = self.server.post("/v2/models/slow/infer", BODY,
                                           {"Connect-Timeout-Ms": "0"})
        self.assertEqual(status, 504, body)
        self.assertIn("the deadline had passed when the request arrived", str(body))

    def test_the_timeout_parameter_over_grpc(self):
        with self.assertRaises(InferenceServerException) as refused:
            self.grpc.infer("slow", [row(grpc_client)], timeout=SHORT_US)
        self.assertIn("DEADLINE_EXCEEDED", refused.exception.status())

    def test_the_clients_own_deadline_over_grpc(self):
        with self.assertRaises(InferenceServerException) as refused:
            self.grpc.infer("slow", [row(grpc_client)], client_timeout=0.05)
        self.assertIn("DEADLINE_EXCEEDED", refused.exception.status())

    def test_a_cancelled_call_frees_its_place(self):
        before = self.counted("cancelled")
        done = concurrent.futures.Future()
        call = self.grpc.async_infer("slow", [row(grpc_client)],
                                     lambda result, error: done.set_result(error))
        self.server.await_pending(4)
        call.cancel()
        self.assertIn("CANCELLED", done.result(timeout=WAIT_S).status())
        self.server.await_metric(before + 1, "tactus_requests_total", model="slow",
                                 outcome="cancelled")

    def test_a_vanished_http_client_frees_its_place(self):
        before = self.counted("cancelled")
        host, port = self.server.http.split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
            connection.sendall(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            self.server.await_pending(4)
        self.server.await_metric(before + 1, "tactus_requests_total", model="slow",
                                 outcome="cancelled")


class SlowUploadTest(unittest.TestCase):
    """The client waits from its header on, however long its body takes."""

    def status(self, server, timeout_ms, pause_s):
        host, port = server.http.split(":")
        head = (f"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                f"X-Request-Timeout-Ms: {timeout_ms}\r\nContent-Length: {len(BODY)}\r\n\r\n")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
            connection.sendall(head.encode() + BODY[:10])
            time.sleep(pause_s)
            connection.sendall(BODY[10:])
            return int(connection.recv(65536).split(b" ")[1])

    def test_a_body_that_takes_longer_than_the_call_may_is_not_computed(self):
        # Even where every request is computed however late.
        with contextlib.closing(Server("--expiry", "never")) as server:
            self.assertEqual(self.status(server, timeout_ms=1000 * WAIT_S, pause_s=0.3), 200)
            self.assertEqual(self.status(server, timeout_ms=100, pause_s=0.3), 504)
            self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
