"""A site of real processes on one machine: schedulers, workers and a front end."""

import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from serving import START_S, TACTUS, WAIT_S, make_repository, slow_profile


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Process:
    """A tactus process that has said "ready ...", or "started ..." while it waits for others: that
    line is `ready`, its numbers `ports`."""

    def __init__(self, folder, name, *arguments):
        self.name = name
        self.log = open(pathlib.Path(folder) / f"{name}.log", "a+")
        self.process = subprocess.Popen([TACTUS, *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        watchdog = threading.Timer(START_S, self.process.kill)
        watchdog.start()
        self.ready = self.ports = None
        for line in self.process.stdout:
            if line.startswith(("ready ", "started ")):
                self.ready = line.rstrip()
                self.ports = {key: int(value) for key, value in
                              (pair.split("=") for pair in line.split()[1:]) if value.isdigit()}
                break
        watchdog.cancel()
        if self.ports is None:
            self.process.wait()
            errors = self.errors()
            self.process.stdout.close()
            self.log.close()
            raise AssertionError(f"{name} did not start: {errors}")

    def errors(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def page(self):
        url = f"http://127.0.0.1:{self.ports['metrics']}/metrics"
        with urllib.request.urlopen(url, timeout=WAIT_S) as reply:
            return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                    for line in reply.read().decode().splitlines() if not line.startswith("#")}

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=WAIT_S)

    def close(self):
        """The exit code of a graceful stop, or of the kill before."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGCONT)  # where a test has stopped it
            try:
                self.process.wait(timeout=WAIT_S)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process.stdout.close()
        self.log.close()
        return self.process.returncode


class Site:
    """`models`: the workers' repository, else one of its own; `front_end`: the options of a front
    end, None: there is none; `authority`: of a cluster, else one of its own."""

    def __init__(self, schedulers=2, workers=2, certificates=False, models=None, front_end=(),
                 authority=None):
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="tactus-site-"))
        self.models = models or pathlib.Path(self.folder) / "models"
        self.authority = authority or pathlib.Path(self.folder) / "authority"
        if models is None:
            self.models.mkdir()
            make_repository(self.models)
        self.profile = pathlib.Path(self.folder) / "profile.json"
        self.profile.write_text(json.dumps(slow_profile()))
        self.tls = []  # of every process
        if certificates:
            self.tls = ["--peer-tls", self.certificate("n1")]
        self.places = [f"127.0.0.1:{free_port()}" for _ in range(schedulers)]
        self.all = []
        self.schedulers = [self.scheduler(i) for i in range(schedulers)]
        self.workers = [self.worker(f"w{i}") for i in range(workers)]
        self.front_end = None
        if front_end is not None:
            self.front_end = self.start("front-end", "front-end", "--schedulers",
                                        ",".join(self.places), "--http-port", 0, "--grpc-port", 0,
                                        "--metrics-port", 0, *self.tls, *front_end)
            self.http = f"127.0.0.1:{self.front_end.ports['http']}"

    def start(self, name, *arguments):
        process = Process(self.folder, name, *arguments)
        self.all.append(process)
        return process

    def scheduler(self, i):
        return self.start(f"scheduler{i}", "scheduler", "--listen", self.places[i], "--schedulers",
                          ",".join(self.places), "--metrics-port", 0, "--journal",
                          self.journal(i), *self.tls)

    def journal(self, i):
        """The file of a scheduler's journal."""
        return pathlib.Path(self.folder) / f"scheduler{i}.journal"

    def worker(self, name):
        return self.start(name, "serve", "--models", self.models, "--lanes", 1,
                          "--schedulers", ",".join(self.places), "--worker-name",
                          f"n1/{name}" if self.tls else name,
                          "--profile", self.profile, "--allow-other-machine", "--http-port", 0,
                          "--grpc-port", 0, "--metrics-port", 0, *self.tls)

    def certificate(self, node):
        """The folder with the certificate of a node of the site's cluster."""
        if not self.authority.exists():
            subprocess.run([TACTUS, "cluster", "init", self.authority], check=True, timeout=WAIT_S,
                           capture_output=True)
        folder = pathlib.Path(self.folder) / node
        subprocess.run([TACTUS, "cluster", "certificate", node, "--tls", self.authority, "--out",
                        folder], check=True, timeout=WAIT_S, capture_output=True)
        return folder

    def leader(self):
        """Which scheduler leads, with so many workers as live."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            for i, scheduler in enumerate(self.schedulers):
                if scheduler.process.poll() is not None:
                    continue
                page = scheduler.page()
                living = sum(worker.process.poll() is None for worker in self.workers)
                if page["tactus_site_leads"] == 1 and page["tactus_site_workers"] == living:
                    return i
            time.sleep(0.02)
        raise AssertionError("no scheduler leads: " + "".join(p.errors() for p in self.all))

    def infer(self, model, values, timeout_us=None):
        """Status and answer of one call."""
        body = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [len(values), 4],
                            "data": [value for row in values for value in row]}]}
        if timeout_us is not None:
            body["parameters"] = {"timeout": timeout_us}
        request = urllib.request.Request(f"http://{self.http}/v2/models/{model}/infer",
                                         data=json.dumps(body).encode(), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def close(self):
        codes = {process.name: process.close() for process in reversed(self.all)}
        self.stack.close()
        return codes
