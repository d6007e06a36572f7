"""What `./run bench recovery` troubles: a server, one with --isolate, a site, a cluster; and the
troubles. Each system says whom it consists of, who calls it, and how a part is started again."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

import grpc
from numbered_calls import CALL_S, Streamer
from serving import SOURCE, WAIT_S, add_model, identity_config, make_certificate
from site_processes import Process, Site
from test_cluster import until
from test_cluster_memory import Controllers
from test_cluster_pipelines import NODES, ask, fleet, repository
from test_isolate import engine_processes

GRACE_S = 2
TOKEN = "recovery-0123456789abcdef"


class Asker(threading.Thread):
    """One call after the other over HTTP. `open_call()` connects and gives a function that asks
    number N and says (status, whether the answer is N's, text); OSError where nobody listens."""

    def __init__(self, ledger, open_call, who):
        super().__init__(daemon=True)
        self.ledger, self.open_call, self.who, self.stopping = ledger, open_call, who, False
        self.start()

    def run(self):
        ask_number = None
        while not self.stopping:
            try:
                ask_number = ask_number or self.open_call()
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
                continue
            number = self.ledger.begin(self.who)
            try:
                status, right, said = ask_number(number)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.ledger.end(number, "broken", repr(error))
                ask_number = None
                time.sleep(0.05)
                continue
            if status != 200:
                self.ledger.end(number, "refused", f"{status} {said}")
                time.sleep(0.02)
            else:
                self.ledger.end(number, "answered" if right else "wrong", said)
                time.sleep(0.005)


class Vanisher(threading.Thread):
    """A client that asks for a gRPC stream and goes while it is written, twenty times a second.
    `where()`: the address, or None."""

    HEADER = [(b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"x"),
              (b":path", b"/grpc.health.v1.Health/Watch"), (b"te", b"trailers"),
              (b"content-type", b"application/grpc")]

    def __init__(self, where, context):
        super().__init__(daemon=True)
        self.where, self.context, self.stopping = where, context, False
        settings, headers, data = 4, 1, 0  # types of frames; flag 4: the header ends
        fields = b"".join(b"\0%c%s%c%s" % (len(name), name, len(value), value)
                          for name, value in self.HEADER)
        self.call = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(settings, 0, 0, b"")
                     + self.frame(headers, 4, 1, fields) + self.frame(data, 0, 1, bytes(5)))
        self.start()

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags,
                                                                 stream) + payload

    def run(self):
        while not self.stopping:
            time.sleep(0.05)
            address = self.where()
            if address is None:
                continue
            host, port = address.split(":")
            with contextlib.suppress(OSError):  # refused, or troubled as all are
                with socket.create_connection((host, int(port)), timeout=1) as plain, \
                        self.context.wrap_socket(plain, server_hostname=host) as connection:
                    connection.sendall(self.call)
                    connection.recv(1)


def ready(address, context=None):
    """True or False, as GET /v2/health/ready says within a second; None: no answer."""
    scheme = "https" if context else "http"
    try:
        with urllib.request.urlopen(f"{scheme}://{address}/v2/health/ready", timeout=1,
                                    context=context):
            return True
    except urllib.error.HTTPError as error:
        with error:
            return False
    except (OSError, http.client.HTTPException):
        return None


class Serve:
    """One server with TLS, tokens, a profile and two models, which it polls or loads as it is told.
    It has one lane or two."""

    name, isolated = "serve", False

    def __init__(self, ledger, chance):
        self.chance = chance
        self.folder = tempfile.TemporaryDirectory(prefix="tactus-recovery-")
        self.root = pathlib.Path(self.folder.name)
        self.models = self.root / "models"
        self._write()
        self.context = ssl.create_default_context(cafile=self.root / "server.pem")
        authority = grpc.ssl_channel_credentials((self.root / "server.pem").read_bytes())
        token = grpc.access_token_call_credentials(TOKEN)
        secure = grpc.composite_channel_credentials(authority, token)
        self.process, self.lives = None, 0
        self._start()
        self.callers = [
            Streamer(ledger, lambda: self._where("grpc"),
                     lambda address: grpc.secure_channel(address, secure), "echo over gRPC"),
            *(Asker(ledger, self._open, "divide over HTTP") for _ in range(2))]
        http2 = ssl.create_default_context(cafile=self.root / "server.pem")
        http2.set_alpn_protocols(["h2"])
        self.vanisher = Vanisher(lambda: self._where("grpc"), http2)

    def _write(self):
        (self.models / "divide/1").mkdir(parents=True)
        shutil.copy(SOURCE / "tests/data/divide.onnx", self.models / "divide/1/model.onnx")
        (self.models / "divide/config.pbtxt").write_text(
            'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
            'input { name: "x" data_type: TYPE_INT64 dims: 1 }\n'
            'output { name: "y" data_type: TYPE_INT64 dims: 1 }\n')
        # The sum of [N, H, 1] and [N, 1, W] is far larger than a call and its answer.
        (self.models / "large/1").mkdir(parents=True)
        shutil.copy(SOURCE / "tests/data/pair.onnx", self.models / "large/1/model.onnx")
        (self.models / "large/config.pbtxt").write_text(
            'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
            'input { name: "a" data_type: TYPE_FP32 dims: [ -1, -1 ] }\n'
            'input { name: "b" data_type: TYPE_FP32 dims: [ -1, -1 ] }\n'
            'output { name: "rows" data_type: TYPE_FP32 dims: -1 }\n')
        add_model(self.models, "echo", identity_config("echo", 8, [("INPUT0", "TYPE_FP32", [4])]))
        make_certificate(self.root, "server")
        (self.root / "tokens").write_text(f"all infer,read,admin {TOKEN}\n")
        (self.root / "profile.json").write_text(json.dumps(
            {"tactus_profile": 1, "machine": {"fingerprint": "recovery"},
             "provenance": "made up", "models": [
                 {"name": name, "max_batch": 8, "exits": [{"name": "1", "cells": [
                     {"batch": batch, "mean_ms": 1} for batch in range(1, 9)]}]}
                 for name in ("echo", "divide", "large")]}))

    def _start(self):
        self.lives += 1
        control = (["--model-control-mode", "poll", "--poll-seconds", "0.3"]
                   if self.chance.random() < 0.5 else
                   ["--model-control-mode", "explicit", "--load-model", "*"])
        self.told = control[1] == "explicit"
        self.lanes = self.chance.choice([1, 2])
        self.process = Process(
            self.root, f"life-{self.lives}", "serve", "--models", self.models, "--tls-cert",
            self.root / "server.pem", "--tls-key", self.root / "server.key", "--tokens",
            self.root / "tokens", "--profile", self.root / "profile.json",
            "--allow-other-machine", "--grace-seconds", GRACE_S, "--lanes", self.lanes, *control,
            *(["--isolate"] if self.isolated else []), "--http-port", 0, "--grpc-port", 0,
            "--metrics-port", 0)

    def _where(self, port):
        process = self.process
        return None if process is None else f"127.0.0.1:{process.ports[port]}"

    def _open(self):
        where = self._where("http")
        if where is None:
            raise ConnectionRefusedError
        connection = http.client.HTTPSConnection(where, timeout=CALL_S, context=self.context)
        connection.connect()
        left = self.chance.randrange(1, 40)

        def ask_number(number):
            nonlocal left
            status, said = self._post(connection, "/v2/models/divide/infer", {
                "inputs": [{"name": "x", "datatype": "INT64", "shape": [1, 1], "data": [number]}]})
            left -= 1
            if left == 0:  # the next call has a connection of its own, and a handshake
                connection.close()
                connection.connect()
                left = 20
            right = status == 200 and json.loads(said)["outputs"][0]["data"] == [-number]
            return status, right, said.decode(errors="replace")[:160]
        return ask_number

    def large_run(self, side):
        """Asks for a run that takes 4 * side * side bytes: the status, "wrong" for a wrong answer,
        "broken" where the connection broke."""
        try:
            with contextlib.closing(self.connect()) as connection:
                return self.sums(connection, side, side)
        except (OSError, http.client.HTTPException):
            return "broken"

    def connect(self):
        where = self._where("http")
        if where is None:
            raise ConnectionRefusedError
        connection = http.client.HTTPSConnection(where, timeout=CALL_S, context=self.context)
        connection.connect()
        return connection

    def sums(self, connection, rows, columns):
        """The status of a call that brings a number for each row and column and asks for each
        column's sum; "wrong" for a wrong answer."""
        value = self.chance.randrange(1, 100)
        inputs = [{"name": name, "datatype": "FP32", "shape": shape, "data": data}
                  for name, shape, data in (("a", [1, rows, 1], [0] * rows),
                                            ("b", [1, 1, columns], [value] * columns))]
        status, said = self._post(connection, "/v2/models/large/infer", {"inputs": inputs})
        if status != 200:
            return status
        right = json.loads(said)["outputs"][0]["data"] == [rows * value] * columns
        return status if right else "wrong"

    def _post(self, connection, path, body):
        connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {TOKEN}"})
        reply = connection.getresponse()
        return reply.status, reply.read()

    def load(self, model):
        """Loads it again where that is asked for; the status, None without an answer."""
        if not self.told:
            return 200
        connection = http.client.HTTPSConnection(self._where("http"), timeout=CALL_S,
                                                 context=self.context)
        try:
            return self._post(connection, f"/v2/repository/models/{model}/load", {})[0]
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def ready(self):
        where = self._where("http")
        return None if where is None else ready(where, self.context)

    def parts(self):
        return {"server": self.process.process.pid}

    def may_break(self, part):
        return True

    def engines(self):
        return engine_processes(self.process.process.pid) if self.isolated else []

    def files(self):
        """What may be swapped, and the model that is loaded from it."""
        return [(self.root / "tokens", None), (self.root / "server.pem", None),
                (self.root / "server.key", None), (self.root / "profile.json", "divide"),
                (self.models / "divide/config.pbtxt", "divide"),
                (self.models / "divide/1/model.onnx", "divide"),
                (self.models / "echo/config.pbtxt", "echo"), (self.models / "divide", "divide"),
                (self.models / "echo/1", "echo")]

    def kill(self, part):
        process, self.process = self.process, None
        process.kill()

    def restart(self, part):
        self._start()

    def stop(self, part):
        """SIGTERM: (seconds, exit code), None where it had to be killed."""
        process, self.process = self.process, None
        return stop_process(process.process)

    def grace_s(self, part):
        return GRACE_S

    def log(self):
        return "\n".join(path.read_text(errors="replace")[-3000:]
                         for path in sorted(self.root.glob("*.log"), key=os.path.getmtime)[-2:])

    def close(self):
        self.vanisher.stopping = True
        for caller in self.callers:
            caller.stopping = True
        for caller in self.callers:
            caller.join(timeout=2 * CALL_S)
        if self.process is not None:
            self.process.close()
        self.folder.cleanup()


def stop_process(process):
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        code = process.wait(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        code = None
    return time.monotonic() - begin, code


class Isolate(Serve):
    name, isolated = "isolate", True


class SiteSystem:
    """Two schedulers, two workers and a front end, which is called over a gRPC stream."""

    name = "site"

    def __init__(self, ledger, chance):
        self.chance, self.site = chance, Site(schedulers=2, workers=2)
        self.front = self.site.front_end
        self.site.leader()
        self.gone = {}
        self.callers = [Streamer(ledger, lambda: self._where("grpc"), who="echo over gRPC")
                        for _ in range(2)]

    def _where(self, port):
        front = self.front
        return None if front is None else f"127.0.0.1:{front.ports[port]}"

    def ready(self):
        where = self._where("http")
        return None if where is None else ready(where)

    def _processes(self):
        site = self.site
        return {"scheduler 0": site.schedulers[0], "scheduler 1": site.schedulers[1],
                "worker 0": site.workers[0], "worker 1": site.workers[1], "front end": self.front}

    def parts(self):
        return {name: process.process.pid for name, process in self._processes().items()
                if process is not None and process.process.poll() is None}

    def may_break(self, part):
        return part == "front end"

    def engines(self):
        return []

    def files(self):
        return []

    def kill(self, part):
        process = self._processes()[part]
        if part == "front end":
            self.front = None
        process.kill()

    def restart(self, part):
        number = int(part[-1]) if part[-1].isdigit() else 0
        if part.startswith("scheduler"):
            self.site.schedulers[number] = self.site.scheduler(number)
        elif part.startswith("worker"):
            self.site.workers[number] = self.site.worker(f"w{number}")
        else:
            self.front = self.site.start(
                f"front-end-{len(self.site.all)}", "front-end", "--schedulers",
                ",".join(self.site.places), "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)

    def stop(self, part):
        process = self._processes()[part].process
        if part == "front end":
            self.front = None
        return stop_process(process)

    def grace_s(self, part):
        return 5

    def log(self):
        return "\n".join(f"{process.name}: {process.errors()[-600:]}"
                         for process in self.site.all[-6:])

    def close(self):
        for caller in self.callers:
            caller.stopping = True
        for caller in self.callers:
            caller.join(timeout=2 * CALL_S)
        self.site.close()


class ClusterSystem:
    """Two controllers, three agents and their workers; a pipeline is called, whose second step runs
    on another node."""

    name = "cluster"

    def __init__(self, ledger, chance):
        self.chance = chance
        self.folder = tempfile.TemporaryDirectory(prefix="tactus-recovery-")
        root = pathlib.Path(self.folder.name)
        (root / "models").mkdir()
        repository(root / "models")
        (root / "fleet.toml").write_text(fleet(mean_on=("near",)))
        store = f"sqlite:{root}/knowledge.db"
        self.cluster = Controllers(NODES, store, store, fleet=root / "fleet.toml",
                                   models=root / "models")
        self.cluster.await_served(NODES)
        self.edge = self.cluster.await_ports(NODES)["edge"]
        until("the pipeline", lambda: ask(self.edge, [[1] * 16])[0] == 200)
        self.callers = [Asker(ledger, self._open, "pipeline over HTTP") for _ in range(2)]

    def _open(self):
        host, port = self.edge.split(":")
        socket.create_connection((host, int(port)), timeout=1).close()

        def ask_number(number):
            value = number % 1_000_003
            status, said = ask(self.edge, [[value] * 16, [-value] * 16])
            return status, status == 200 and said[0]["data"] == [value, -value], str(said)[:160]
        return ask_number

    def ready(self):
        return ready(self.edge)

    def _processes(self):
        cluster = self.cluster
        return {**{f"controller {name}": process for name, process in cluster.controllers.items()},
                **{f"agent {node}": process for node, process in cluster.agents.items()}}

    def parts(self):
        found = {name: process.pid for name, process in self._processes().items()
                 if process.poll() is None}
        found.update({f"worker {node}": self.cluster.worker_pid(node) for node in NODES})
        return found

    def may_break(self, part):
        return part in ("worker edge", "agent edge")

    def engines(self):
        return []

    def files(self):
        return []

    def kill(self, part):
        kind, name = part.split()
        if kind == "worker":
            os.kill(self.cluster.worker_pid(name), signal.SIGKILL)
            return
        process = self._processes()[part]
        process.kill()
        process.wait(timeout=WAIT_S)

    def restart(self, part):
        kind, name = part.split()
        if kind == "controller":
            self.cluster.start_one(name)
        elif kind == "agent":
            self.cluster.start_agent(name)
        # A worker is started again by its agent.

    def stop(self, part):
        return stop_process(self._processes()[part])

    def grace_s(self, part):
        return 5

    def log(self):
        logs = sorted(self.cluster.root.glob("*.log"), key=os.path.getmtime)
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-600:]}"
                         for path in logs[-6:])

    def close(self):
        for caller in self.callers:
            caller.stopping = True
        for caller in self.callers:
            caller.join(timeout=2 * CALL_S)
        self.cluster.close()
        self.folder.cleanup()
