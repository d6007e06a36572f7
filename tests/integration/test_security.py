#!/usr/bin/env python3
"""TLS and tokens as real clients meet them: curl, tritonclient, gRPC reflection; a certificate that
is renewed under load; and a server that refuses to start where strangers could reach it."""

import contextlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import grpc
import numpy as np
import tritonclient.grpc as tritongrpc
import tritonclient.http as tritonhttp

import serving

TOKENS = ("operator read,admin operator-0123456789abcdef\n"  # may not infer
          "router infer,read router-0123456789abcdef\n")
ROUTER = {"Authorization": "Bearer router-0123456789abcdef"}


class SecureTest(unittest.TestCase):
    """One server with TLS and tokens for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        cls.files = pathlib.Path(cls.folder.name)
        serving.make_certificate(cls.files, "server")
        (cls.files / "tokens").write_text(TOKENS)
        cls.server = serving.Server(
            "--tls-cert", str(cls.files / "server.pem"), "--tls-key",
            str(cls.files / "server.key"), "--tokens", str(cls.files / "tokens"))

    @classmethod
    def tearDownClass(cls):
        with cls.folder, contextlib.closing(cls.server):
            assert cls.server.terminate() == 0, cls.server.errors()
            # Tokens are never logged, whatever was done with them.
            assert "0123456789abcdef" not in cls.server.errors()

    def curl(self, path, *arguments, host=None):
        """The status of an answer, or curl's exit code below 0."""
        done = subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert",
             self.files / "server.pem", *arguments, f"https://{host or self.server.http}{path}"],
            capture_output=True, text=True, timeout=serving.WAIT_S)
        return int(done.stdout) if done.returncode == 0 else -done.returncode

    def test_curl(self):
        router = ("-H", "Authorization: Bearer router-0123456789abcdef")
        self.assertEqual(self.curl("/v2/health/ready"), 200)
        self.assertEqual(self.curl("/v2"), 401)
        self.assertEqual(self.curl("/v2", *router), 200)
        self.assertEqual(
            self.curl("/v2/repository/models/echo/load", "-X", "POST", *router), 403)
        self.assertEqual(self.curl("/metrics", host=self.server.metrics_page), 401)
        self.assertEqual(self.curl("/metrics", *router, host=self.server.metrics_page), 200)
        self.assertEqual(self.curl("/v2", "--tls-max", "1.1", *router), -35, "TLS 1.1")
        self.assertEqual(self.curl("/v2", "--tls-max", "1.2", *router), 200)

    def test_a_server_that_is_not_trusted_is_not_talked_to(self):
        with self.assertRaises(ssl.SSLError):
            context = ssl.create_default_context()
            host, port = self.server.http.split(":")
            with socket.create_connection((host, int(port)), timeout=serving.WAIT_S) as plain:
                context.wrap_socket(plain, server_hostname=host)

    def shake(self, address, version, ciphers):
        """The name of the cipher that both ends take with a client of this version of TLS."""
        context = ssl.create_default_context(cafile=self.files / "server.pem")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = version
        context.set_ciphers(ciphers + ":@SECLEVEL=0")  # this client would take anything
        context.set_alpn_protocols(["h2"])
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=serving.WAIT_S) as plain:
            with context.wrap_socket(plain, server_hostname=host) as secret:
                return secret.cipher()[0]

    def ports(self):
        return (("http", self.server.http), ("grpc", self.server.grpc),
                ("metrics", self.server.metrics_page))

    def test_neither_old_versions_nor_weak_ciphers(self):
        for name, address in self.ports():
            with self.subTest(name):
                for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
                    with self.assertRaises((ssl.SSLError, ConnectionError)):
                        self.shake(address, version, "ALL")
                for weak in ("AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA",
                             "ECDHE-ECDSA-AES128-SHA256", "aNULL", "eNULL"):
                    with self.assertRaises((ssl.SSLError, ConnectionError), msg=weak):
                        self.shake(address, ssl.TLSVersion.TLSv1_2, weak)
                good = "ECDHE-ECDSA-AES128-GCM-SHA256"
                self.assertEqual(self.shake(address, ssl.TLSVersion.TLSv1_2, good), good)
                self.assertIn("TLS_", self.shake(address, ssl.TLSVersion.TLSv1_3, good))

    def test_a_client_that_sends_no_more_has_its_answer(self):
        body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                                       "data": [0, 1, 2, 3]}]})
        request = (f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: "
                   f"{len(body)}\r\nAuthorization: {ROUTER['Authorization']}\r\n\r\n{body}")
        host, port = self.server.http.split(":")
        for says_so in (True, False):
            with self.subTest(says_so), socket.create_connection(
                    (host, int(port)), timeout=serving.WAIT_S) as plain:
                came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
                context = ssl.create_default_context(cafile=self.files / "server.pem")
                secret = context.wrap_bio(came, goes, server_hostname=host)

                def until_done(step):
                    while True:
                        try:
                            done = step()
                        except ssl.SSLWantReadError:
                            done = None
                        if goes.pending:
                            plain.sendall(goes.read())
                        if done is not None:
                            return done
                        bytes_read = plain.recv(65536)
                        came.write(bytes_read) if bytes_read else came.write_eof()

                until_done(lambda: secret.do_handshake() or True)
                until_done(lambda: secret.write(request.encode()))
                if says_so:
                    with contextlib.suppress(ssl.SSLWantReadError):
                        secret.unwrap()
                    plain.sendall(goes.read())
                plain.shutdown(socket.SHUT_WR)
                answer = until_done(lambda: secret.read(65536)).decode()
                if answer.startswith("HTTP/1.1 100"):
                    answer = answer.partition("\r\n\r\n")[2] or until_done(
                        lambda: secret.read(65536)).decode()
                self.assertTrue(answer.startswith("HTTP/1.1 200"), answer)

    def test_nobody_renegotiates(self):
        # Not of gRPC's port: there the library's refusal is never sent, and the client waits.
        for address in (self.server.http, self.server.metrics_page):
            with self.subTest(address):
                done = subprocess.run(
                    ["openssl", "s_client", "-tls1_2", "-connect", address], input="R\n",
                    capture_output=True, text=True, timeout=serving.WAIT_S, check=False)
                self.assertIn("RENEGOTIATING", done.stdout + done.stderr)
                self.assertIn("no renegotiation", done.stderr)

    def test_tritonclient_http(self):
        context = ssl.create_default_context(cafile=self.files / "server.pem")
        client = tritonhttp.InferenceServerClient(
            self.server.http, ssl=True, ssl_context_factory=lambda: context)
        # A megabyte, so that one request is many TLS records.
        data = np.arange(262144, dtype=np.float32)
        tensor = tritonhttp.InferInput("INPUT0", [len(data)], "FP32")
        tensor.set_data_from_numpy(data)
        with self.assertRaisesRegex(Exception, "wants a token"):
            client.get_server_metadata()
        for _ in range(3):
            answer = client.infer("large", [tensor], headers=ROUTER)
            np.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), data)
        client.close()

    def test_tritonclient_grpc(self):
        client = tritongrpc.InferenceServerClient(
            self.server.grpc, ssl=True, root_certificates=str(self.files / "server.pem"))
        headers = {"authorization": ROUTER["Authorization"]}
        tensor = tritongrpc.InferInput("INPUT0", [4], "FP32")
        tensor.set_data_from_numpy(np.arange(4, dtype=np.float32))
        answer = client.infer("large", [tensor], headers=headers)
        np.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), [0, 1, 2, 3])
        self.assertTrue(client.is_server_live())
        with self.assertRaisesRegex(Exception, "lacks the scope 'admin'"):
            client.unload_model("echo", headers=headers)
        with self.assertRaisesRegex(Exception, "wants a token"):
            client.infer("large", [tensor])
        client.close()

    def test_reflection(self):
        credentials = grpc.ssl_channel_credentials((self.files / "server.pem").read_bytes())
        method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        with grpc.secure_channel(self.server.grpc, credentials) as channel:
            ask = channel.stream_stream(method)
            # ServerReflectionRequest{list_services: "*"}
            listing = b"".join(ask(iter([b"\x3a\x01*"]), timeout=serving.WAIT_S, metadata=[
                ("authorization", ROUTER["Authorization"])]))
            self.assertIn(b"inference.GRPCInferenceService", listing)
            with self.assertRaises(grpc.RpcError) as refused:
                list(ask(iter([b"\x3a\x01*"]), timeout=serving.WAIT_S))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)


    def load(self, url, *words):
        """`tactus load` with a quarter of a second's calls: its exit code and all that it says."""
        done = subprocess.run(
            [serving.TACTUS, "load", "--models", "echo", "--rate", "40", "--duration", "0.25",
             "--slo-ms", "60000", "--random", "--protocol", "grpc" if url == self.server.grpc
             else "http", "--url", url, *map(str, words)],
            capture_output=True, text=True, timeout=2 * serving.WAIT_S)
        self.assertNotIn("0123456789abcdef", done.stdout + done.stderr)
        return done.returncode, done.stdout + done.stderr

    def test_load(self):
        serving.make_certificate(self.files, "other")
        tokens = {}
        for name, text in (("router", "router-0123456789abcdef\n"),
                           ("operator", "operator-0123456789abcdef\n"), ("nobody", "x" * 32)):
            tokens[name] = ("--token-file", self.files / f"{name}.token")
            tokens[name][1].write_text(text)
        ca = ("--ca", self.files / "server.pem")
        for url, secret in ((self.server.http, "https://"), (self.server.grpc, "grpcs://")):
            with self.subTest(secret):
                code, said = self.load(url, *ca, *tokens["router"])
                self.assertEqual(code, 0, said)
                self.assertRegex(said, r"sent \d+ requests")
                for words, says in (
                        (ca, "; give a token with --token-file FILE"),
                        ((*ca, *tokens["nobody"]),
                         f"; the server does not know the token in {tokens['nobody'][1]}"),
                        ((*ca, *tokens["operator"]), "lacks the scope 'infer'"),
                        (("--ca", self.files / "other.pem", *tokens["router"]),
                         f"certificates in {self.files / 'other.pem'}"),
                        (("--ca", tokens["router"][1]), "there is no certificate in it"),
                        (tokens["router"], "with TLS give its certificates: --ca FILE")):
                    code, said = self.load(url, *words)
                    self.assertNotEqual(code, 0)
                    self.assertIn(says, said)
        code, said = self.load(f"https://{self.server.http}", *ca, *tokens["router"])
        self.assertEqual(code, 0, said)


class RenewalTest(unittest.TestCase):
    def test_a_renewed_certificate_fails_no_call(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            files = pathlib.Path(folder)
            for name in ("server", "later"):
                serving.make_certificate(files, name)
            both = (files / "server.pem").read_text() + (files / "later.pem").read_text()
            server = serving.Server("--tls-cert", str(files / "server.pem"), "--tls-key",
                                    str(files / "server.key"))
            with contextlib.closing(server):
                self.renew_under_load(server, files, both)
                self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_pipe_in_place_of_a_file_stops_nothing(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            files = pathlib.Path(folder)
            serving.make_certificate(files, "server")
            tokens = files / "tokens"
            tokens.write_text(f"a admin {'x' * 32}\n")
            server = serving.Server("--tls-cert", str(files / "server.pem"), "--tls-key",
                                    str(files / "server.key"), "--tokens", str(tokens))
            with contextlib.closing(server):
                for path in (tokens, files / "server.pem", files / "server.key"):
                    right = files / "right"
                    path.rename(right)
                    os.mkfifo(path)
                    server.await_line(f"{path}: is no regular file but a pipe")
                    path.unlink()
                    right.rename(path)
                server.await_line("certificate and key were read again")
                tokens.unlink()
                os.mkfifo(tokens)
                self.assertEqual(server.terminate(), 0, server.errors())

    def renew_under_load(self, server, files, both):
        failed, done, calls = [], threading.Event(), [0, 0]

        def serial():
            """Of the certificate that a new connection meets."""
            context = ssl.create_default_context(cadata=both)
            host, port = server.http.split(":")
            with socket.create_connection((host, int(port)), timeout=serving.WAIT_S) as plain, \
                    context.wrap_socket(plain, server_hostname=host) as secret:
                return secret.getpeercert()["serialNumber"]

        def http():
            context = ssl.create_default_context(cadata=both)
            while not done.is_set():
                try:
                    with urllib.request.urlopen(f"https://{server.http}/v2", context=context,
                                                timeout=serving.WAIT_S) as reply:
                        reply.read()
                    calls[0] += 1
                except OSError as error:
                    failed.append(error)

        def rpc():
            # Channels of equal credentials share a connection: each its own by its own argument.
            while not done.is_set():
                with grpc.secure_channel(
                        server.grpc, grpc.ssl_channel_credentials(both.encode()),
                        options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                    try:
                        channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(
                            b"", timeout=serving.WAIT_S)
                        calls[1] += 1
                    except grpc.RpcError as error:
                        failed.append(error)

        first = serial()
        threads = [threading.Thread(target=work) for work in (http, rpc)]
        for thread in threads:
            thread.start()
        try:
            # In two steps: between them the files do not fit each other.
            os.replace(files / "later.pem", files / "server.pem")
            before = list(calls)
            while min(c - b for c, b in zip(calls, before)) < 5 and not failed:
                time.sleep(0.01)
            os.replace(files / "later.key", files / "server.key")
            end = time.monotonic() + serving.WAIT_S
            while serial() == first:
                self.assertLess(time.monotonic(), end, "the new certificate is not served")
            before = list(calls)
            while min(c - b for c, b in zip(calls, before)) < 5 and not failed:
                time.sleep(0.01)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failed, [])


class CrowdTest(unittest.TestCase):
    """Connections that two addresses open and never use take no place of somebody else's."""

    def test_newcomers_are_served_beside_silent_crowds(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            files = pathlib.Path(folder)
            serving.make_certificate(files, "server")
            server = serving.Server("--tls-cert", str(files / "server.pem"), "--tls-key",
                                    str(files / "server.key"),
                                    under=("prlimit", "--nofile=340:340"))
            with contextlib.closing(server):
                for address, protocol in ((server.http, "http/1.1"), (server.grpc, "h2")):
                    self.greet_beside_crowds(address, protocol, files / "server.pem")
                self.assertEqual(server.terminate(), 0, server.errors())

    def greet_beside_crowds(self, address, protocol, certificate):
        host, port = address.rsplit(":", 1)
        context = ssl.create_default_context(cafile=certificate)
        context.set_alpn_protocols([protocol])
        with contextlib.ExitStack() as crowds:
            for turn in range(8):
                for source in ("127.0.0.2", "127.0.0.3"):
                    for _ in range(30):
                        crowds.enter_context(socket.create_connection(
                            (host, int(port)), serving.WAIT_S, (source, 0)))
                with socket.create_connection((host, int(port)), serving.WAIT_S) as plain, \
                        context.wrap_socket(plain, server_hostname="127.0.0.1") as greeted:
                    greeted.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
                                    if protocol == "h2" else
                                    b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertTrue(greeted.recv(1), f"{protocol}, turn {turn}")


class MutualTest(unittest.TestCase):
    def test_only_clients_of_the_authority(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            files = pathlib.Path(folder)
            for name in ("server", "client", "stranger"):
                serving.make_certificate(files, name)
            server = serving.Server(
                "--tls-cert", str(files / "server.pem"), "--tls-key", str(files / "server.key"),
                "--tls-client-ca", str(files / "client.pem"))
            with contextlib.closing(server):
                for who, exit_code in (("client", 0), ("stranger", 56), (None, 56)):
                    identity = ["--cert", files / f"{who}.pem", "--key", files / f"{who}.key"]
                    for host in (server.http, server.metrics_page):
                        done = subprocess.run(
                            ["curl", "-s", "-o", "/dev/null", "--cacert", files / "server.pem",
                             *(identity if who else ()), f"https://{host}/v2/health/live"],
                            timeout=serving.WAIT_S)
                        self.assertEqual(done.returncode, exit_code, who)


class StartTest(unittest.TestCase):
    def start(self, *arguments):
        """The exit code and what was said of a server that is to refuse."""
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            done = subprocess.run(
                [serving.TACTUS, "serve", "--models", folder, "--http-port", "0", "--grpc-port",
                 "0", "--metrics-port", "0", *arguments],
                capture_output=True, text=True, timeout=serving.START_S)
        return done.returncode, done.stderr

    def test_beyond_this_machine_it_takes_tls_and_tokens(self):
        code, said = self.start("--address", "0.0.0.0")
        self.assertEqual(code, 2, said)
        self.assertIn("give --tls-cert, --tls-key and --tokens, or say --insecure", said)
        server = serving.Server("--address", "0.0.0.0", "--insecure")
        with contextlib.closing(server):
            self.assertIn("true", server.get("/v2/health/live"))

    def test_a_pipe_is_not_waited_for(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            pipe = pathlib.Path(folder) / "pipe"
            os.mkfifo(pipe)
            for option in ("--tokens", "--profile"):
                with self.subTest(option):
                    code, said = self.start(option, str(pipe))
                    self.assertEqual(code, 2)
                    self.assertIn("is no regular file but a pipe", said)
            for option, why in (("--journal", "is a pipe, whose reader could hold up a server"),
                                ("--trace-file", "is a pipe, whose reader could hold up a server"),
                                ("--routes", "is no regular file"),
                                ("--onnxruntime", "is no regular file")):
                with self.subTest(option):
                    code, said = self.start(option, str(pipe))
                    self.assertEqual(code, 2)
                    self.assertIn(f"{pipe}: {why}", said)

    def test_a_pipe_beside_the_journal_is_not_waited_for(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            journal = pathlib.Path(folder) / "journal"
            os.mkfifo(f"{journal}.pipelines")
            code, said = self.start("--journal", str(journal))
            self.assertEqual(code, 2)
            self.assertIn(f"{journal}.pipelines: is a pipe", said)

    def test_half_a_pair_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            files = pathlib.Path(folder)
            serving.make_certificate(files, "a")
            serving.make_certificate(files, "b")
            code, said = self.start("--tls-cert", str(files / "a.pem"))
            self.assertEqual((code, "give both" in said), (2, True), said)
            code, said = self.start("--tls-cert", str(files / "a.pem"), "--tls-key",
                                    str(files / "b.key"))
            self.assertEqual((code, "is not the key" in said), (2, True), said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
