"""tactus.Client, the wheel's Python client, over HTTP and gRPC: values, deadlines, refusals."""

import concurrent.futures
import json
import pathlib
import socket
import ssl
import sys
import tempfile
import time
import unittest

import numpy

import reference
from serving import SOURCE, WAIT_S, ServedTest, Server, make_certificate

sys.path.insert(0, str(SOURCE / "python"))
import tactus  # noqa: E402

ROW = {"INPUT0": numpy.arange(4, dtype=numpy.float32).reshape(1, 4)}
BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                               "data": [0, 1, 2, 3]}]}).encode()
# Less than the slow batches that stand before the call, whatever the machine does besides.
SHORT_MS = 50
LONG_MS = WAIT_S * 1000
TOKEN = "router-0123456789abcdef"
CAPACITY = 8  # calls, of which one client may have three quarters


class OnEitherWire:
    """What holds over HTTP and over gRPC; `scheme` is the URL's."""

    arguments = ("--call-capacity", str(CAPACITY))

    def setUp(self):
        address = self.server.http if self.scheme == "http" else self.server.grpc
        self.client = tactus.Client(f"{self.scheme}://{address}", deadline_ms=LONG_MS)
        self.addCleanup(self.client.close)

    def slow_calls(self, count):
        """So many are under way; the lane takes one after the other."""
        pool = concurrent.futures.ThreadPoolExecutor(count)
        self.addCleanup(pool.shutdown)
        calls = [pool.submit(self.server.post, "/v2/models/slow/infer", BODY)
                 for _ in range(count)]
        self.server.await_pending(count)
        self.addCleanup(lambda: [self.assertEqual(each.result(timeout=WAIT_S)[0], 200)
                                 for each in calls])

    def test_values_equal_onnx_runtime_at_the_exit_that_is_named(self):
        batch = reference.images(3)
        answer = self.client.infer("ee_s", {"input": batch}, outputs=["logits"], version=1)
        self.assertEqual(list(answer), ["logits"])
        reference.assert_same(self, answer["logits"], "ee_s", answer.exit, batch)

    def test_where_the_time_went(self):
        answer = self.client.infer("ee_s", {"input": reference.images(1)})
        self.assertEqual(set(answer.timing), {"queue", "exec"})
        self.assertGreater(answer.timing["exec"], 0)
        self.assertAlmostEqual(answer.timing["exec"] * 1000,
                               answer.parameters["tactus_execution_us"], delta=1)

    def test_every_type_comes_back_as_it_went(self):
        sent = {"text": numpy.array(["a", "", "ü" * 300], object),
                "long": numpy.array([[1, -2], [3, 2**62]]),
                "half": numpy.array([0.5, -1], numpy.float16),
                "flag": numpy.array([True, False]),
                "byte": numpy.array([0, 255], numpy.uint8),
                "double": numpy.array([1e300], ">f8")}
        got = self.client.infer("any", sent)
        self.assertEqual(len(got), len(sent))
        for at, array in enumerate(sent.values()):  # the outputs are the inputs, in their order
            output = got[f"OUTPUT{at}"]
            if output.dtype == object:
                output = numpy.array([text.decode() for text in output.tolist()], object)
            numpy.testing.assert_array_equal(output, array)
            self.assertEqual(output.dtype.kind, array.dtype.kind)

    def test_a_deadline_that_cannot_be_met_is_the_servers_to_refuse(self):
        self.slow_calls(3)
        before = self.server.metric("tactus_requests_total", model="slow", outcome="expired")
        with self.assertRaises(tactus.Expired) as expired:
            self.client.infer("slow", ROW, deadline_ms=SHORT_MS)
        self.assertIn(expired.exception.status, (504, "DEADLINE_EXCEEDED"))
        self.assertIn("deadline", str(expired.exception).lower())
        self.server.await_metric(before + 1, "tactus_requests_total", model="slow",
                                 outcome="expired")

    def test_the_clients_own_deadline_is_that_of_calls_without_one(self):
        self.client.deadline_ms = SHORT_MS
        self.slow_calls(3)
        with self.assertRaises(tactus.Expired):
            self.client.infer("slow", ROW)

    def test_a_refusal_says_when_to_come_again_and_retrying_does(self):
        self.slow_calls(CAPACITY * 3 // 4)
        with self.assertRaises(tactus.Refused) as refused:
            self.client.infer("echo", ROW)
        self.assertIn(refused.exception.status, (429, "RESOURCE_EXHAUSTED"))
        self.assertGreater(refused.exception.retry_after, 0)
        # The invitation is for later than the deadline, so nobody sleeps for it.
        slept = []
        real, time.sleep = time.sleep, slept.append
        try:
            with self.assertRaises(tactus.Refused):
                self.client.infer_retrying("echo", ROW, deadline_ms=SHORT_MS)
        finally:
            time.sleep = real
        self.assertEqual(slept, [])
        answer = self.client.infer_retrying("echo", ROW, deadline_ms=LONG_MS)
        numpy.testing.assert_array_equal(answer["OUTPUT0"], ROW["INPUT0"])

    def test_other_errors_have_the_servers_text(self):
        with self.assertRaises(tactus.Error) as unknown:
            self.client.infer("nobody", ROW)
        self.assertNotIsInstance(unknown.exception, (tactus.Refused, tactus.Expired))
        self.assertIn(unknown.exception.status, (404, "NOT_FOUND"))
        self.assertIn("nobody", str(unknown.exception))
        self.assertIsNone(unknown.exception.retry_after)
        with self.assertRaisesRegex(tactus.Error, "INPUT0"):
            self.client.infer("echo", {"INPUT0": numpy.zeros((1, 4), numpy.int64)})

    def test_parameters_reach_the_server(self):
        with self.assertRaisesRegex(tactus.Error, "priority"):
            self.client.infer("echo", ROW, parameters={"priority": -1})
        self.client.infer("echo", ROW, parameters={"priority": 1})


class HttpTest(OnEitherWire, ServedTest):
    scheme = "http"

    def test_a_connection_that_was_closed_while_idle_is_opened_again(self):
        self.client.infer("echo", ROW)
        self.client.wire.connection.sock.shutdown(socket.SHUT_RDWR)
        numpy.testing.assert_array_equal(self.client.infer("echo", ROW)["OUTPUT0"], ROW["INPUT0"])

    def test_an_array_that_no_type_of_kserve_fits_is_refused_here(self):
        with self.assertRaisesRegex(ValueError, "complex128"):
            self.client.infer("echo", {"INPUT0": numpy.zeros(4, complex)})

    def test_a_url_says_its_protocol(self):
        with self.assertRaisesRegex(ValueError, "scheme"):
            tactus.Client(self.server.http)


class GrpcTest(OnEitherWire, ServedTest):
    scheme = "grpc"


class SecureTest(unittest.TestCase):
    """Over TLS, with a token; every call says which authority it trusts."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.files = pathlib.Path(cls.folder.name)
        make_certificate(cls.files, "server")
        (cls.files / "tokens").write_text(f"router infer {TOKEN}\n")
        cls.server = Server("--tls-cert", str(cls.files / "server.pem"), "--tls-key",
                            str(cls.files / "server.key"), "--tokens", str(cls.files / "tokens"))
        cls.addClassCleanup(cls.server.close)

    def client(self, scheme, **options):
        address = self.server.http if scheme == "https" else self.server.grpc
        client = tactus.Client(f"{scheme}://{address}", LONG_MS, **options)
        self.addCleanup(client.close)
        return client

    def test_a_token_lets_in(self):
        for scheme in ("https", "grpcs"):
            with self.subTest(scheme):
                trusted = {"ca": self.files / "server.pem"}
                got = self.client(scheme, token=TOKEN, **trusted).infer("echo", ROW)
                numpy.testing.assert_array_equal(got["OUTPUT0"], ROW["INPUT0"])
                with self.assertRaises(tactus.Error) as stranger:
                    self.client(scheme, **trusted).infer("echo", ROW)
                self.assertIn(stranger.exception.status, (401, "UNAUTHENTICATED"))

    def test_a_server_that_is_not_trusted_gets_nothing(self):
        with self.assertRaises(ssl.SSLError):
            self.client("https", token=TOKEN).infer("echo", ROW)
        with self.assertRaises(tactus.Refused):  # gRPC says no more than that it is not reached
            self.client("grpcs", token=TOKEN).infer("echo", ROW)


if __name__ == "__main__":
    unittest.main()
