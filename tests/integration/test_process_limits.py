"""A server that its operating system gives little: few descriptors, little memory. What there is no
room for is refused; the server lives, and serves as before once there is room again."""

import contextlib
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

from test_isolate import Isolated
from test_runs import call
from serving import (SOURCE, START_S, TACTUS, WAIT_S, Server, add_model, identity_config,
                     make_certificate, make_repository)

GOOD = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                               "data": [0, 1, 2, 3]}]}).encode()
MB = 1 << 20
# Glibc reserves 64 MB of addresses for the heap of each further thread, and those count here.
FEW_HEAPS = ("env", "MALLOC_ARENA_MAX=1")


def open_many(address, count):
    """So many connections, as far as they are taken, without a byte on them."""
    host, port = address.split(":")
    taken = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            taken.append(socket.create_connection((host, int(port)), timeout=WAIT_S))
    return taken


class FewDescriptorsTest(unittest.TestCase):
    """gRPC 1.51 listens no more once there were no descriptors left, and nothing says so."""

    LIMIT = 400

    def grpc_answers(self, server):
        with grpc.insecure_channel(server.grpc) as channel:
            live = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
            return live(b"", timeout=WAIT_S, wait_for_ready=True) == b"\x08\x01"

    @staticmethod
    def status_once_there_is_room(server):
        """429 until the server has seen the ends of this client's many connections."""
        end = time.monotonic() + WAIT_S
        while True:
            status, *_ = server.post("/v2/models/echo/infer", GOOD)
            if status != 429 or time.monotonic() > end:
                return status
            time.sleep(0.05)

    def test_more_connections_than_descriptors_end_no_listener(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2000)), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        under = ("prlimit", f"--nofile={self.LIMIT}:{self.LIMIT}")
        with contextlib.closing(Server(under=under)) as server:
            for port in (server.http, server.grpc, server.metrics_page):
                with self.subTest(port):
                    taken = open_many(port, self.LIMIT + 100)
                    self.assertEqual(server.get("/v2/health/live", server.metrics_page),
                                     '{"live":true}')
                    for connection in taken:
                        connection.close()
                    self.assertTrue(self.grpc_answers(server))
                    self.assertEqual(self.status_once_there_is_room(server), 200)
            self.assertEqual(server.terminate(), 0)


class TooFewDescriptorsTest(unittest.TestCase):
    def test_a_server_that_could_accept_nobody_does_not_start(self):
        for limit in (16, 18, 200):
            with self.subTest(limit), tempfile.TemporaryDirectory() as folder:
                make_repository(pathlib.Path(folder))
                done = subprocess.run(
                    ["prlimit", f"--nofile={limit}:{limit}", TACTUS, "serve", "--models", folder,
                     "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"],
                    capture_output=True, text=True, timeout=START_S, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"may open {limit} files, and needs 288", done.stderr)


class TooFewThreadsTest(unittest.TestCase):
    def test_a_server_that_can_make_no_thread_does_not_start(self):
        # Each thread's stack takes 1 GB of addresses, so another thread fails under each limit.
        for limit_gb in range(2, 10):
            with self.subTest(limit_gb), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    ["prlimit", f"--stack={1 << 30}:{1 << 30}", f"--as={limit_gb << 30}",
                     *FEW_HEAPS, TACTUS, "serve", "--models", folder, "--http-port", "0",
                     "--grpc-port", "0", "--metrics-port", "0"],
                    capture_output=True, text=True, timeout=START_S, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("not enough memory for another thread", done.stderr)
                self.assertNotIn("terminate", done.stderr)


class LargestFileTest(unittest.TestCase):
    """A file that may not grow costs what is written there, not the server."""

    def test_a_journal_that_may_not_grow_ends_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = pathlib.Path(folder) / "served.journal"
            with contextlib.closing(Server("--journal", str(journal),
                                           under=("prlimit", "--fsize=4096:4096"))) as server:
                for _ in range(300):
                    self.assertEqual(server.post("/v2/models/echo/infer", GOOD)[0], 200)
                end = time.monotonic() + WAIT_S
                while server.metric("tactus_journal_whole") != 0 and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual(server.metric("tactus_journal_whole"), 0)
                self.assertEqual(server.post("/v2/models/echo/infer", GOOD)[0], 200)
                self.assertEqual(server.terminate(), 0)


class LittleMemoryTest(unittest.TestCase):
    def limit(self, server, more_mb):
        """The server may have so much memory more than it has now."""
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        size = next(int(line.split()[1]) for line in status.splitlines()
                    if line.startswith("VmSize"))
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_AS)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size * 1024 + more_mb * MB, hard))

    def test_a_server_that_can_make_no_thread_stops(self):
        # A thread's stack of 1 GB finds no room, and everything else does.
        under = ("prlimit", f"--stack={1 << 30}:{1 << 30}")
        with contextlib.closing(Server(under=(*FEW_HEAPS, *under))) as server:
            self.limit(server, 64)
            self.assertEqual(server.post("/v2/models/echo/infer", GOOD)[0], 200)
            self.assertEqual(server.terminate(), 0, server.errors())

    def send_body(self, server, size_mb):
        """The status of a call with a body of so much text, as far as the server takes it."""
        host, port = server.http.split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
            head = (f"POST /v2/models/large/infer HTTP/1.1\r\nHost: x\r\n"
                    f"Content-Length: {size_mb * MB}\r\n\r\n")
            with contextlib.suppress(OSError):  # refused and closed before all of it was sent
                connection.sendall(head.encode())
                for _ in range(size_mb):
                    connection.sendall(b" " * MB)
            return int(connection.recv(65536).split(b" ")[1])

    def test_bodies_for_which_there_is_no_memory_are_refused(self):
        arguments = ("--max-body-mb", "1000", "--pending-mb", "4000")
        with contextlib.closing(Server(*arguments, under=FEW_HEAPS)) as server:
            self.assertEqual(server.post("/v2/models/echo/infer", GOOD)[0], 200)
            self.limit(server, 256)
            for _ in range(2):
                self.assertEqual(self.send_body(server, 600), 503)
                self.assertEqual(server.post("/v2/models/echo/infer", GOOD)[0], 200)
            self.assertEqual(server.terminate(), 0)

    def test_a_load_for_which_there_is_no_memory_ends_nothing(self):
        arguments = ("--model-control-mode", "explicit", "--load-model", "echo")
        with contextlib.closing(Server(*arguments, under=FEW_HEAPS)) as server:
            self.limit(server, 256)
            config = json.dumps({"name": "large", "platform": "identity", "max_batch_size": 8,
                                 "input": [{"name": "INPUT0", "data_type": "TYPE_FP32",
                                            "dims": [100_000_000]}]})
            body = json.dumps({"parameters": {"config": config}}).encode()
            server.post("/v2/repository/models/large/load", body)  # whatever becomes of it
            self.assertEqual(server.post("/v2/models/echo/infer", GOOD)[0], 200)
            self.assertEqual(server.terminate(), 0)


    def test_a_server_that_has_no_more_memory_refuses_calls_and_lives(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            make_certificate(folder, "server")
            context = ssl.create_default_context(cafile=folder / "server.pem")
            arguments = ("--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key")
            with contextlib.closing(Server(*map(str, arguments))) as server:
                url = f"https://{server.http}/v2/models/echo/infer"

                def answer():
                    request = urllib.request.Request(url, data=GOOD, method="POST")
                    with urllib.request.urlopen(request, timeout=WAIT_S, context=context) as reply:
                        return reply.status

                def call_on():
                    while not over.is_set():
                        with contextlib.suppress(OSError):  # refused, or not even that
                            answer()
                over = threading.Event()
                callers = [threading.Thread(target=call_on) for _ in range(4)]
                for each in callers:
                    each.start()
                try:
                    for _ in range(4):
                        before = resource.prlimit(server.process.pid, resource.RLIMIT_AS)
                        self.limit(server, 0)
                        time.sleep(0.5)
                        self.assertIsNone(server.process.poll(), server.errors())
                        resource.prlimit(server.process.pid, resource.RLIMIT_AS, before)
                        self.assertEqual(answer(), 200)
                finally:
                    over.set()
                    for each in callers:
                        each.join()
                self.assertEqual(server.terminate(), 0, server.errors())


class UntakenAnswersTest(unittest.TestCase):
    """Clients that ask for large answers and take none: the server holds so many and no more, and
    serves as before once the clients have gone."""

    ANSWER = 64 * MB  # far more than sockets buffer
    HELD = 3  # of 160 MB; whether a call is refused is decided when it comes

    @classmethod
    def setUpClass(cls):
        # Another limit of each client's would refuse them before the server's does.
        cls.server = Server("--pending-mb", "160", "--client-limits", "mb=1000", fill=cls.fill)

    @classmethod
    def tearDownClass(cls):
        with contextlib.closing(cls.server):
            assert cls.server.terminate() == 0, cls.server.errors()

    @classmethod
    def fill(cls, root):
        add_model(root, "slow", 'name: "slow"\nplatform: "emulated"\nmax_batch_size: 1\n'
                  'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
                  f'output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: [ {cls.ANSWER // 4} ] '
                  '} ]\n'
                  'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')
        add_model(root, "echo", identity_config("echo", 8, [("INPUT0", "TYPE_FP32", [4])]))

    def held(self):
        return self.server.metric("tactus_pending_bytes", tensors="answers")

    def await_held(self, count):
        end = time.monotonic() + WAIT_S
        while (held := self.held()) != count * self.ANSWER:
            self.assertLess(time.monotonic(), end, f"{held} bytes are held")
            time.sleep(0.05)

    def post(self, model):
        return self.server.post(f"/v2/models/{model}/infer", GOOD)

    def check_refused(self):
        for _ in range(3):
            status, headers, body = self.post("echo")
            self.assertEqual(status, 503, body)
            self.assertEqual(headers["Retry-After"], "1")
            self.assertIn(b"answers", body)
        self.assertEqual(self.held(), self.HELD * self.ANSWER)

    def check_serves(self):
        self.await_held(0)
        self.assertEqual(self.post("echo")[0], 200)
        with grpc.insecure_channel(self.server.grpc) as channel:
            infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
            self.assertEqual(infer(self.call("echo"), timeout=WAIT_S).model_name, "echo")

    @staticmethod
    def call(model):
        request = service_pb2.ModelInferRequest(model_name=model)
        request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
        request.raw_input_contents.append(bytes(16))
        return request

    def test_over_http(self):
        body = json.dumps({**json.loads(GOOD), "parameters": {"binary_data_output": True}})
        request = (f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
        with contextlib.ExitStack() as connections:
            for connection in open_many(self.server.http, self.HELD):
                connections.enter_context(connection)
                connection.sendall(request)
            self.await_held(self.HELD)
            self.check_refused()
        self.check_serves()

    def test_over_grpc(self):
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            # Nobody reads the stream, so HTTP/2's windows stay as they are.
            stream = stub.ModelStreamInfer(iter([self.call("slow")] * self.HELD))
            self.await_held(self.HELD)
            self.check_refused()
            with self.assertRaises(grpc.RpcError) as refused:
                stub.ModelInfer(self.call("echo"), timeout=WAIT_S)
            self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            stream.cancel()
            self.check_serves()


class NoRoomForThreadsTest(unittest.TestCase):
    """What a server needs when something goes wrong it takes at its start: where there is no room
    for a thread, to make one would end it."""

    def limited_now(self, server):
        """No more addresses than it has."""
        pid = server.process.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        size = next(int(line.split()[1]) for line in status.splitlines()
                    if line.startswith("VmSize"))
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (size * 1024 + MB, before[1]))
        return before

    def test_a_lane_that_dies_then_comes_back_once_there_is_room(self):
        with contextlib.closing(Isolated("--lanes", "2")) as server:
            self.assertEqual(call(server, "pick", 2)[0], 200)
            before = self.limited_now(server)
            for process in server.processes():
                os.kill(process, signal.SIGKILL)
            end = time.monotonic() + WAIT_S
            while server.errors().count(" died: ") < 2:
                self.assertIsNone(server.process.poll(), server.errors())
                self.assertLess(time.monotonic(), end, server.errors())
                time.sleep(0.01)
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, before)
            while (status := call(server, "pick", 2)[0]) != 200:
                self.assertLess(time.monotonic(), end, status)
            self.assertEqual(server.terminate(), 0, server.errors())


class NothingToShareTest(unittest.TestCase):
    """With --isolate, what a call brings goes through memory that two processes share, which takes
    a descriptor: a server that can have none says that it is not ready."""

    @staticmethod
    def fill(root):
        (root / "pair/1").mkdir(parents=True)
        shutil.copy(SOURCE / "tests/data/pair.onnx", root / "pair/1/model.onnx")
        (root / "pair/config.pbtxt").write_text(
            'platform: "onnxruntime_onnx"\nmax_batch_size: 1\n'
            'input { name: "a" data_type: TYPE_FP32 dims: [ -1, -1 ] }\n'
            'input { name: "b" data_type: TYPE_FP32 dims: [ -1, -1 ] }\n'
            'output { name: "rows" data_type: TYPE_FP32 dims: -1 }\n')

    def test_it_is_not_ready_while_calls_are_refused_for_it(self):
        numbers = 1 << 17  # beyond what is shared from the start
        long_call, short_call = (json.dumps({"inputs": [
            {"name": "a", "datatype": "FP32", "shape": [1, 1, 1], "data": [0]},
            {"name": "b", "datatype": "FP32", "shape": [1, 1, count], "data": [3] * count}]})
            for count in (numbers, 1))
        with contextlib.closing(Isolated(fill=self.fill)) as server:
            pid = server.process.pid
            connection = http.client.HTTPConnection(server.http, timeout=WAIT_S)

            def ask(verb, path, body=None):
                connection.request(verb, path, body)
                with contextlib.closing(connection.getresponse()) as reply:
                    return reply.status, reply.read()

            with contextlib.closing(connection):
                self.assertEqual(ask("GET", "/v2/health/ready")[0], 200)
                self.assertEqual(ask("POST", "/v2/models/pair/infer", short_call)[0], 200)
                before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                open_now = len(os.listdir(f"/proc/{pid}/fd"))
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_now, before[1]))
                for _ in range(2):
                    status, answer = ask("POST", "/v2/models/pair/infer", long_call)
                    self.assertEqual(status, 503, answer)
                    self.assertIn(b"shared memory", answer)
                    self.assertEqual(ask("GET", "/v2/health/ready")[0], 503)
                    self.assertEqual(ask("GET", "/v2/models/pair/ready")[0], 503)
                status, answer = ask("POST", "/v2/models/pair/infer", short_call)
                self.assertEqual(status, 200, answer)  # there is room for it
                resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
                self.assertEqual(ask("GET", "/v2/health/ready")[0], 200)
                status, answer = ask("POST", "/v2/models/pair/infer", long_call)
                self.assertEqual(status, 200, answer)
                self.assertEqual(json.loads(answer)["outputs"][0]["data"], [3] * numbers)
            self.assertEqual(server.terminate(), 0, server.errors())


if __name__ == "__main__":
    unittest.main(verbosity=2)
