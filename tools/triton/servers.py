"""Starts the real tritonserver of .cache/triton, and Tactus, on free ports of 127.0.0.1."""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from models import ROOT

START_S = 120
STOP_S = 40  # Triton waits up to 30 s for its models
TRITON = ROOT / ".cache/triton"


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Server:
    """One process. `http` and `grpc` are its addresses, `log` what it wrote. It is ready when it
    answers `ready`."""
    stop_s = STOP_S

    def __init__(self, name, command, log, environment=None, ready="/v2/health/ready"):
        self.name = name
        self.ready = ready
        ports = free_ports(3)
        self.http, self.grpc, self.metrics = (f"127.0.0.1:{port}" for port in ports)
        self.log = log
        flags = [word for kind, port in zip(("http", "grpc", "metrics"), ports)
                 for word in (f"--{kind}-port", str(port))]
        with open(log, "w") as out:
            # A group of its own: models of a Triton that died outlive it.
            self.process = subprocess.Popen([*map(str, command), *flags], stdout=out, stderr=out,
                                            env={**os.environ, **(environment or {})},
                                            process_group=0)
        try:
            self.await_ready()
        except BaseException:
            self.stop()
            raise

    def await_ready(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://{self.http}{self.ready}", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise SystemExit(f"{self.name} did not become ready; its log ends with:\n{self.tail()}")

    def tail(self):
        return "\n".join(pathlib.Path(self.log).read_text(errors="replace").splitlines()[-20:])

    def died(self):
        return self.process.poll() is not None

    def stop(self):
        """The exit code; -9 where it did not stop of itself."""
        if not self.died():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=self.stop_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.returncode


def explicit(models):
    return ["--model-control-mode", "explicit",
            *(word for name in models for word in ("--load-model", name))]


def start_triton(repository, models, log, more=(), start=Server):
    server = TRITON / "pytriton/tritonserver"
    packages = next((ROOT / ".cache/venv/lib").glob("python3.*/site-packages"))
    return start("Triton", [
        server / "bin/tritonserver", "--model-repository", repository,
        "--backend-directory", server / "backends",
        # Its default, 1 MB in newer versions and 64 MB in older ones, is for each model.
        "--backend-config", "python,shm-default-byte-size=1048576",
        "--http-address", "127.0.0.1", "--grpc-address", "127.0.0.1",
        "--metrics-address", "127.0.0.1", *explicit(models), *more], log,
        {"LD_LIBRARY_PATH": str(TRITON / "nvidia_pytriton.libs"),
         "MODEL_PACKAGES": f"{TRITON}/packages:{packages}",
         "PATH": "/usr/bin:/bin"})  # its Python looks there for the library's modules


def start_tactus(repository, models, log, more=(), start=Server):
    program = os.environ.get("TACTUS", ROOT / "build/release/apps/tactus")
    return start("Tactus", [program, "serve", "--models", repository, *explicit(models), *more],
                 log)
