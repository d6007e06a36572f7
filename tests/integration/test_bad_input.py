"""Every kind of bad input gets its answer, over the network, and the server serves on."""

import json
import socket
import unittest
import zlib

import grpc

from serving import WAIT_S, ServedTest

INFER = "/v2/models/echo/infer"


def tensor(**changes):
    made = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


def body(*tensors, **more):
    return json.dumps({"inputs": list(tensors), **more}).encode()


def binary(head, payload, length=None):
    """A request with a JSON head and bytes behind it; the header that says where the head ends."""
    head = json.dumps(head).encode()
    size = len(head) if length is None else length
    return head + payload, {"Inference-Header-Content-Length": str(size)}


BINARY_HEAD = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                           "parameters": {"binary_data_size": 16}}]}
GOOD = body(tensor())

# what, path, body, headers, status, text that the answer holds
CASES = [
    ("unknown model", "/v2/models/nobody/infer", GOOD, {}, 404, "nobody"),
    ("unknown version", "/v2/models/echo/versions/9/infer", GOOD, {}, 404, "echo"),
    ("version is no number", "/v2/models/echo/versions/x/infer", GOOD, {}, (400, 404), ""),
    ("wrong name", INFER, body(tensor(name="z")), {}, 400, "'z'"),
    ("no input", INFER, body(), {}, 400, "INPUT0"),
    ("an input twice", INFER, body(tensor(), tensor()), {}, 400, "twice"),
    ("a wrong name before too little data", INFER, body(tensor(name="z", data=[1])), {}, 400,
     "unexpected inference input 'z'"),
    ("a wrong type behind too much data", INFER,
     b'{"inputs":[{"data":[1,2,3,4,5],"shape":[1,4],"name":"INPUT0","datatype":"INT64"}]}', {}, 400,
     "data-type is 'INT64'"),
    ("wrong type", INFER, body(tensor(datatype="INT64")), {}, 400, "INT64"),
    ("unknown type", INFER, body(tensor(datatype="FLOAT")), {}, 400, "FLOAT"),
    ("wrong shape", INFER, body(tensor(shape=[1, 5], data=[0] * 5)), {}, 400, "unexpected shape"),
    ("too little data", INFER, body(tensor(data=[1, 2, 3])), {}, 400, "INPUT0"),
    ("too much data", INFER, body(tensor(data=[1] * 5)), {}, 400, "INPUT0"),
    ("ragged data", INFER, body(tensor(shape=[2, 4], data=[[1] * 5, [1] * 3])), {}, 400,
     "neither nested"),
    ("text for numbers", INFER, body(tensor(data=["1", "2", "3", "4"])), {}, 400, "INPUT0"),
    ("no data", INFER, body(tensor(data=None)), {}, 400, "INPUT0"),
    ("negative dimension", INFER, body(tensor(shape=[-1, 4])), {}, 400, "negative"),
    ("shape overflow", INFER, body(tensor(shape=[2**62, 4])), {}, 400, ""),
    ("dimension beyond 64 bits", INFER, body(tensor(shape=[2**70, 4])), {}, 400, ""),
    ("too many rows", INFER, body(tensor(shape=[9, 4], data=[0] * 36)), {}, 400, "batch-size"),
    ("unknown output", INFER, body(tensor(), outputs=[{"name": "q"}]), {}, 400, "q"),
    ("timeout is text", INFER, body(tensor(), parameters={"timeout": "1"}), {}, 400, "timeout"),
    ("reserved parameter", INFER, body(tensor(), parameters={"triton_x": 1}), {}, 400, "reserved"),
    ("not JSON", INFER, b"{", {}, 400, ""),
    ("no object", INFER, b"[]", {}, 400, ""),
    ("empty body", INFER, b"", {}, 400, ""),
    ("bytes that are no UTF-8", INFER, b'{"inputs": "\xff\xfe"}', {}, 400, ""),
    ("nested too deep", INFER, b'{"inputs": ' + b"[" * 100_000, {}, 400, ""),
    ("head longer than the body", INFER, *binary(BINARY_HEAD, b"x" * 16, 10**6), 400, ""),
    ("head length is text", INFER, b"{}", {"Inference-Header-Content-Length": "x"}, 400, ""),
    ("head cut in the middle", INFER, *binary(BINARY_HEAD, b"x" * 16, 20), 400, ""),
    ("too few bytes behind the head", INFER, *binary(BINARY_HEAD, b"x" * 15), 400, ""),
    ("too many bytes behind the head", INFER, *binary(BINARY_HEAD, b"x" * 17), 400, ""),
    ("not gzip", INFER, GOOD, {"Content-Encoding": "gzip"}, 400, ""),
    ("unknown encoding", INFER, GOOD, {"Content-Encoding": "br"}, 501, "br"),
    ("unpacks beyond the limit", INFER, zlib.compress(b" " * (80 << 20)),
     {"Content-Encoding": "deflate"}, 413, ""),
    ("unknown path", "/v2/nothing", b"", {}, 404, ""),
    ("wrong verb", "/v2/health/live", b"", {}, 405, ""),
]


class BadInputTest(ServedTest):
    def serves_on(self):
        status, _, answer = self.server.post(INFER, GOOD)
        self.assertEqual(status, 200, answer)

    def test_table(self):
        for what, path, data, headers, expected, text in CASES:
            with self.subTest(what):
                status, _, answer = self.server.post(path, data, headers)
                allowed = expected if isinstance(expected, tuple) else (expected,)
                self.assertIn(status, allowed, answer)
                self.assertIn(text, json.loads(answer)["error"])
                self.serves_on()

    def raw(self, request):
        """What the server sends back to these bytes until it closes or falls silent."""
        host, port = self.server.http.split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer

    def test_a_body_beyond_the_limit_is_refused_before_it_is_sent(self):
        head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: {65 << 20}\r\n\r\n"
        self.assertIn(b" 413 ", self.raw(head.encode()).split(b"\r\n")[0])
        self.serves_on()

    def test_a_truncated_body_ends_with_its_connection(self):
        head = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        answer = self.raw(head.encode() + GOOD)
        self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])
        self.serves_on()

    def test_bytes_that_are_no_http(self):
        for junk in (b"\x00" * 64, b"GET\r\n\r\n", b"\x16\x03\x01" + b"x" * 200,
                     b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000):
            with self.subTest(junk[:8]):
                try:
                    answer = self.raw(junk)
                except (ConnectionResetError, BrokenPipeError):
                    answer = b""
                self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])
                self.serves_on()

    def test_garbage_for_grpc(self):
        with grpc.insecure_channel(self.server.grpc) as channel:
            infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            for junk in (b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f", b"\x2a\x05abc"):
                with self.subTest(junk), self.assertRaises(grpc.RpcError) as refused:
                    infer(junk, timeout=WAIT_S)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        host, port = self.server.grpc.split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
            connection.sendall(b"this is no HTTP/2\r\n" * 10)
        self.serves_on()


if __name__ == "__main__":
    unittest.main(verbosity=2)
