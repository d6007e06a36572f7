"""Starts `tactus serve` on free ports with a repository made for the test, and stops it again."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TACTUS = os.environ.get("TACTUS", str(SOURCE / "build/dev/apps/tactus"))
START_S = 60  # a machine under load may take long; nobody waits that long for anything else
WAIT_S = 30

# Its batches take this long, so that tests can find calls waiting and running.
SLOW_MS = 400


def identity_config(name, max_batch, tensors, more=""):
    """tensors: (name, TYPE, dims) each; the outputs are the inputs."""
    inputs = ", ".join(
        f'{{ name: "{n}" data_type: {t} dims: [ {", ".join(map(str, d))} ] }}'
        for n, t, d in tensors)
    return (f'name: "{name}"\nplatform: "identity"\nmax_batch_size: {max_batch}\n'
            f'input [ {inputs} ]\n{more}\n')


def add_model(root, name, config):
    folder = root / name
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)


def make_certificate(folder, name):
    """NAME.pem and NAME.key for 127.0.0.1, its own authority."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
         "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"],
        check=True, capture_output=True)


def halt(pid):
    """Stops a process (SIGSTOP) and returns once each of its threads has stopped. Only the thread
    that takes the signal stops the others, and on a busy machine they run until it is scheduled."""
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + WAIT_S
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            while thread.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "T":
                assert time.monotonic() < end, f"process {pid} runs on"
                time.sleep(0.001)


def slow_profile():
    """A profile for "slow" alone; every other model is measured when it is loaded."""
    cells = [{"batch": 1, "mean_ms": SLOW_MS}]
    return {"tactus_profile": 1, "machine": {"fingerprint": "test"},
            "provenance": "made for a test",
            "models": [{"name": "slow", "max_batch": 1,
                        "exits": [{"name": "1", "cells": cells}]}]}


def make_repository(root):
    """ee_s, three identity models and one that is slow. None promises a time that a busy machine
    could miss: deadlines come from the tests that are about them."""
    shutil.copytree(SOURCE / "models" / "ee_s", root / "ee_s")
    config = root / "ee_s" / "config.pbtxt"
    config.write_text(config.read_text().replace('string_value: "50"', 'string_value: "60000"'))
    add_model(root, "echo", identity_config("echo", 8, [("INPUT0", "TYPE_FP32", [4])]))
    add_model(root, "any", identity_config("any", 0, [
        ("text", "TYPE_STRING", [-1]), ("long", "TYPE_INT64", [-1, 2]), ("half", "TYPE_FP16", [-1]),
        ("flag", "TYPE_BOOL", [-1]), ("byte", "TYPE_UINT8", [-1]), ("double", "TYPE_FP64", [-1])]))
    add_model(root, "large", identity_config("large", 0, [("INPUT0", "TYPE_FP32", [-1])]))
    add_model(root, "slow", 'name: "slow"\nplatform: "emulated"\nmax_batch_size: 1\n'
              'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')


def make_repository_with_pipeline(root):
    """The usual models, and "twice", an ensemble whose one step is "echo"."""
    make_repository(root)
    tensor = '{ name: "%s" data_type: TYPE_FP32 dims: [ 4 ] }'
    mapped = '{ key: "%s" value: "%s" }'
    add_model(root, "twice", 'name: "twice"\nplatform: "ensemble"\nmax_batch_size: 8\n'
              f'input [ {tensor % "INPUT0"} ]\noutput [ {tensor % "OUTPUT0"} ]\n'
              'ensemble_scheduling { step [ { model_name: "echo" model_version: -1 '
              f'input_map {mapped % ("INPUT0", "INPUT0")} '
              f'output_map {mapped % ("OUTPUT0", "OUTPUT0")} }} ] }}\n')


class Server:
    """One server process. `repository` is a folder of its own, which tests may change; `under` is a
    command that becomes the server: what limits it, for instance. It has one lane unless the
    arguments say how many, so that calls wait for each other on any machine."""

    def __init__(self, *arguments, fill=make_repository, under=(), start_s=START_S):
        self.folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        self.repository = pathlib.Path(self.folder.name) / "models"
        self.repository.mkdir()
        fill(self.repository)
        profile = pathlib.Path(self.folder.name) / "profile.json"
        profile.write_text(json.dumps(slow_profile()))
        if not {"--lanes", "--plan", "--planner"} & set(arguments):
            arguments = ("--lanes", "1", *arguments)
        self.log = open(pathlib.Path(self.folder.name) / "stderr", "w+")
        self.process = subprocess.Popen(
            [*under, TACTUS, "serve", "--models", str(self.repository), "--http-port", "0",
             "--grpc-port", "0", "--metrics-port", "0", "--profile", str(profile),
             "--allow-other-machine", *arguments],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.said = []
        try:
            self._await_ready(start_s)
        except BaseException:
            self.close()
            raise

    def _await_ready(self, start_s):
        # A server that hangs is killed, which ends the loop over its output.
        watchdog = threading.Timer(start_s, self.process.kill)
        watchdog.start()
        try:
            for line in self.process.stdout:
                self.said.append(line)
                if line.startswith(("ready ", "started ")):  # some models may be broken
                    ports = dict(pair.split("=") for pair in line.split()[1:])
                    self.http = f"127.0.0.1:{ports['http']}"
                    self.grpc = f"127.0.0.1:{ports['grpc']}"
                    self.metrics_page = f"127.0.0.1:{ports['metrics']}"
                    return
        finally:
            watchdog.cancel()
        raise AssertionError(f"the server did not start: {''.join(self.said)}{self.errors()}")

    def errors(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def await_line(self, text):
        """Until `text` is in the log."""
        end = time.monotonic() + WAIT_S
        while text not in self.errors():
            if time.monotonic() > end:
                raise AssertionError(f"not said: {text}; {self.errors()}")
            time.sleep(0.01)

    def get(self, path, host=None):
        with urllib.request.urlopen(f"http://{host or self.http}{path}", timeout=WAIT_S) as reply:
            return reply.read().decode()

    def post(self, path, body, headers=None):
        """Status, headers and body; an error status is an answer like any other."""
        request = urllib.request.Request(f"http://{self.http}{path}", data=body,
                                         headers=headers or {}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def metric(self, name, **labels):
        """The sum of the samples of `name` that carry these labels."""
        total = 0.0
        for line in self.get("/metrics", self.metrics_page).splitlines():
            if line.startswith("#") or line.split("{")[0].split(" ")[0] != name:
                continue
            if all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def await_metric(self, at_least, name, **labels):
        end = time.monotonic() + WAIT_S
        while (value := self.metric(name, **labels)) < at_least:
            if time.monotonic() > end:
                raise AssertionError(f"{name}{labels} is {value}, waited for {at_least}")
            time.sleep(0.01)
        return value

    def await_pending(self, count):
        self.await_metric(count, "tactus_pending_calls")

    def await_left(self, count):
        """Until so many calls are pending and no more: an answered one counts a moment longer."""
        end = time.monotonic() + WAIT_S
        while (pending := self.metric("tactus_pending_calls")) != count:
            if time.monotonic() > end:
                raise AssertionError(f"{pending} calls are pending, waited for {count}")
            time.sleep(0.01)

    def terminate(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=WAIT_S)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=WAIT_S)
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()


class ServedTest(unittest.TestCase):
    """One server for all tests of a class; `arguments` are added to its command line."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments)

    @classmethod
    def tearDownClass(cls):
        with contextlib.closing(cls.server):
            code = cls.server.terminate()
            assert code == 0, f"exit code {code}: {cls.server.errors()}"
