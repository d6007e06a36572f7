"""PostgreSQL and etcd for a test: on free ports of 127.0.0.1, as a user without rights where the
test is root, and gone with the test. `why_not` says what is missing, to be skipped with."""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from serving import SOURCE, START_S, TACTUS, WAIT_S

POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def user_for(program):
    """Who can run it; None: the test itself, False: nobody."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        try:
            reach = subprocess.run(["test", "-x", str(program)], user=user.pw_uid,
                                   group=user.pw_gid, extra_groups=[], cwd="/", check=False)
        except PermissionError:  # they cannot even enter the root folder
            continue
        if reach.returncode == 0:
            return user
    return False


class Service:
    def __init__(self, program):
        self.user = user_for(program)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tactus-service-test-"))
        if self.user:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.process = None

    def _as(self):
        return {} if not self.user else {"user": self.user.pw_uid, "group": self.user.pw_gid,
                                         "extra_groups": []}

    def run(self, *command):
        return subprocess.run([str(word) for word in command], cwd="/", capture_output=True,
                              timeout=WAIT_S, check=False, **self._as()).returncode == 0

    def spawn(self, *command):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([str(word) for word in command], cwd="/", stdout=log,
                                            stderr=log, start_new_session=True, **self._as())

    def await_ready(self, ready):
        end = time.monotonic() + START_S
        while not ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError((self.folder / "log").read_text(errors="replace"))
            time.sleep(0.1)

    def kill(self):
        """kill -9 of it and of all that it started."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(timeout=WAIT_S)
        self.process = None

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(Service):
    @staticmethod
    def why_not():
        if not (POSTGRES / "postgres").exists():
            return f"no PostgreSQL 15 in {POSTGRES}; ./run test installs it"
        if user_for(POSTGRES / "postgres") is False:
            return "PostgreSQL refuses root, and no user without rights gets to its programs"
        return ""

    def __init__(self):
        super().__init__(POSTGRES / "postgres")
        self.port = free_port()
        if not self.run(POSTGRES / "initdb", "-D", self.folder / "data", "-U", "tactus", "-A",
                        "trust", "-E", "UTF8", "--no-locale", "--no-sync"):
            raise AssertionError("initdb failed")
        self.start()
        self.run(POSTGRES / "createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "tactus",
                 "tactus")

    def where(self):
        return f"postgresql://tactus@127.0.0.1:{self.port}/tactus"

    def start(self):
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)  # of one that was killed
        self.spawn(POSTGRES / "postgres", "-D", self.folder / "data", "-p", self.port, "-k",
                   self.folder, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
        self.await_ready(lambda: self.run(POSTGRES / "pg_isready", "-q", "-h", "127.0.0.1", "-p",
                                          self.port, "-d", "postgres", "-U", "tactus"))


class Etcd(Service):
    @staticmethod
    def program():
        for path in (SOURCE / ".cache" / "etcd" / "etcd", pathlib.Path("/usr/bin/etcd")):
            if path.exists():
                return path
        return None

    @classmethod
    def why_not(cls):
        return "" if cls.program() else "no etcd in .cache/etcd or /usr/bin; ./run test fetches it"

    def __init__(self):
        super().__init__(self.program())
        self.user = self.user or None  # it does not refuse root
        self.port = free_port()
        peer = f"http://127.0.0.1:{free_port()}"
        client = f"http://127.0.0.1:{self.port}"
        self.spawn(self.program(), "--name", "one", "--data-dir", self.folder / "data",
                   "--listen-client-urls", client, "--advertise-client-urls", client,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", f"one={peer}", "--heartbeat-interval", "20",
                   "--election-timeout", "200", "--logger", "zap")
        self.await_ready(self._listens)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def where(self):
        return f"etcd://127.0.0.1:{self.port}/street"


def postgres_for(case):
    """A PostgreSQL that goes with `case`, which is skipped where tactus cannot speak to it."""
    postgres = Postgres()
    case.addCleanup(postgres.close)
    probe = subprocess.run([TACTUS, "cluster", "history", "--store", postgres.where()],
                           capture_output=True, text=True, timeout=WAIT_S, check=False)
    if "without libpq" in probe.stderr:
        case.skipTest("this tactus was built without libpq")
    return postgres
