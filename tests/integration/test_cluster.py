"""A cluster of processes on this machine: models are served as the plan says, and what the table of
docs/reference/cluster.md promises holds when a controller, an agent or a worker is killed."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from serving import SOURCE, TACTUS, WAIT_S, halt
from site_processes import free_port

FLEET = SOURCE / "examples" / "street" / "fleet.toml"
MODELS = SOURCE / "examples" / "street" / "models"
SETTLE_S = 90  # a machine under load; nothing here is timed
BODY = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 16],
                               "data": [0] * 16}]}).encode()


def until(what, ask):
    """The first true answer of `ask`."""
    end = time.monotonic() + SETTLE_S
    last = None
    while time.monotonic() < end:
        last = ask()
        if last:
            return last
        time.sleep(0.1)
    raise AssertionError(f"waited for {what}")


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Cluster:
    """A controller and the agents of some of the fleet's nodes; `tls`: with certificates, which
    agents get by tokens; `own`: each has the models on its own disk."""

    def __init__(self, nodes, fleet=FLEET, models=MODELS, tls=False, planning=(), own=True,
                 env=None):
        self.models = models
        self.own = own
        self.env = env or {}  # by process: what its environment has besides
        self.planning = planning  # options of the controller
        self.tls = None
        self.folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.root = pathlib.Path(self.folder.name)
        self.fleet = fleet
        self.agents = {}
        self.controller = None
        self.port = 0
        self.more = []
        if tls:
            self.tls = self.root / "authority"
            self.tactus("cluster", "init", self.tls)
        try:
            self.start_controller()
            for node in nodes:
                self.start_agent(node)
        except BaseException:
            self.close()
            raise

    def _start(self, name, arguments):
        log = open(self.root / f"{name}.log", "ab")
        with log:
            return subprocess.Popen([TACTUS, *arguments], stdout=log, stderr=log,
                                    env={**os.environ, **self.env.get(name, {})})

    def tactus(self, *arguments):
        return subprocess.run([TACTUS, *map(str, arguments)], capture_output=True, text=True,
                              timeout=WAIT_S, check=True).stdout

    def secure(self):
        """Options of a command that speaks to the controller."""
        return [] if self.tls is None else ["--tls", str(self.tls)]

    def joining(self, node):
        """Options of an agent that is let in by a token."""
        if self.tls is None:
            return []
        folder = self.root / f"tls-{node}"
        if (folder / "node.pem").exists():
            return ["--tls", str(folder)]
        folder.mkdir()
        (folder / "authority.pem").write_bytes((self.tls / "authority.pem").read_bytes())
        token = self.tactus("cluster", "token", node, "--tls", self.tls).strip()
        return ["--tls", str(folder), "--join", token]

    def log(self, name):
        path = self.root / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_controller(self):
        seen = self.log("controller").count("ready control=")
        self.controller = self._start(
            "controller", ["controller", str(self.fleet), "--state", str(self.root / "controller"),
                           "--listen", f"127.0.0.1:{self.port}", *self.planning,
                           *self.secure()])

        def ready():
            if self.controller.poll() is not None:
                raise AssertionError(self.log("controller"))
            return re.findall(r"ready control=(\d+)", self.log("controller"))[seen:]
        self.port = int(until("the controller", ready)[-1])

    def start_agent(self, node, *, state=None, name=None, serve=(), more=()):
        process = self._start(
            name or node, ["agent", "--controller", f"127.0.0.1:{self.port}", "--node", node,
                           "--state", str(self.root / (state or f"state-{node}")),
                           *(["--models", str(self.models)] if self.own else []),
                           *self.joining(node), *more, "--", *serve])
        (self.more.append(process) if name else self.agents.update({node: process}))
        return process

    def status(self):
        told = subprocess.run([TACTUS, "cluster", "status", "--json", "--controller",
                               f"127.0.0.1:{self.port}", *self.secure()],
                              capture_output=True, text=True, timeout=WAIT_S, check=False)
        return json.loads(told.stdout) if told.returncode == 0 else None

    def nodes(self):
        status = self.status()
        return {} if status is None else {node["name"]: node for node in status["nodes"]}

    def await_served(self, names):
        """The nodes, once all of these serve the newest plan."""
        def served():
            status = self.status()
            if status is None or status["serving"] == "-" or status["rolling"] != status["serving"]:
                return None
            nodes = {node["name"]: node for node in status["nodes"]}
            fine = all(nodes[name]["standing"] == "alive" and nodes[name]["ready"]
                       and nodes[name]["plan"] == status["serving"] for name in names)
            return nodes if fine else None
        try:
            return until("a plan", served)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.status()}\n{self.log('controller')}") from None

    def await_ports(self, names):
        """HTTP of each. A node without a model in the plan may be ready before its worker is."""
        def ports():
            nodes = self.nodes()
            found = {name: nodes[name]["http"] for name in names if name in nodes}
            return found if len(found) == len(names) and all(found.values()) else None
        return until("the workers' ports", ports)

    def worker_pid(self, node):
        text = (self.root / f"state-{node}" / "worker.state").read_text()
        return int(re.search(r"pid: (\d+)", text)[1])

    def close(self):
        processes = [*self.agents.values(), *self.more, self.controller]
        for process in filter(None, processes):
            if process.poll() is None:
                process.terminate()
        for process in filter(None, processes):
            try:
                process.wait(timeout=WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=WAIT_S)
        for state in self.root.glob("state-*/worker.state"):  # of agents that were killed
            pid = int(re.search(r"pid: (\d+)", state.read_text())[1])
            command = pathlib.Path(f"/proc/{pid}/cmdline")
            with contextlib.suppress(OSError):
                if str(self.root).encode() in command.read_bytes():
                    os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()


def infer(address, model):
    """The status of a request; None where nobody listens."""
    request = urllib.request.Request(f"http://{address}/v2/models/{model}/infer", data=BODY)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


class FaultsTest(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(["server", "south"])
        self.addCleanup(self.cluster.close)
        self.nodes = self.cluster.await_served(["server", "south"])

    def assert_all_answer(self, nodes):
        for node in nodes.values():
            for model in node["models"] if node["http"] else []:
                self.assertEqual(infer(node["http"], model), 200, f"{node['name']}: {model}")

    def test_the_plan_is_served_and_nothing_else(self):
        self.assert_all_answer(self.nodes)
        self.assertEqual(self.cluster.status()["lost"], ["corner_north"])
        self.assertEqual(self.cluster.status()["why_lost"],
                         {"corner_north": "its source 'north' is away"})
        held = {name: set(node["models"]) for name, node in self.nodes.items() if node["http"]}
        self.assertIn("plates", held["server"] | held["south"])
        absent = {"objects", "persons", "plates"} - held["south"]
        for model in absent:
            self.assertNotEqual(infer(self.nodes["south"]["http"], model), 200)
        routes = self.nodes["south"]["routes"]
        stages = [route["stage"] for route in routes if route["pipeline"] == "corner_south"]
        self.assertEqual(stages, ["find", "read"])

    def test_a_controller_killed_leaves_the_plan_serving_and_leads_again(self):
        plan = self.nodes["south"]["plan"]
        store = f"sqlite:{self.cluster.root}/controller/knowledge.db"

        def recorded():
            told = self.cluster.tactus("cluster", "history", "--json", "--store", store)
            return any(event["kind"] == "plan-adopted" and event["subject"] == plan
                       for event in json.loads(told)["events"])
        until("the plan's record", recorded)
        self.cluster.controller.kill()
        self.cluster.controller.wait(timeout=WAIT_S)
        self.assertIsNone(self.cluster.status())
        self.assert_all_answer(self.nodes)
        # An agent that starts while there is none serves what it had kept, with the same worker.
        worker = self.cluster.worker_pid("south")
        self.cluster.agents["south"].kill()
        self.cluster.agents["south"].wait(timeout=WAIT_S)
        self.cluster.start_agent("south")
        until("the worker to be found", lambda: f"worker {worker} found again" in
              self.cluster.log("south"))
        self.assert_all_answer(self.nodes)
        self.cluster.start_controller()
        nodes = self.cluster.await_served(["server", "south"])
        self.assertEqual(nodes["south"]["plan"], plan, "it holds")
        self.assertGreater(self.cluster.status()["term"], 1)
        self.assertEqual(self.cluster.worker_pid("south"), worker)
        self.assert_all_answer(nodes)

    def test_an_agent_told_to_stop_many_times_leaves_no_worker(self):
        worker, agent = self.cluster.worker_pid("south"), self.cluster.agents["south"]
        halt(worker)  # it does not end by itself, so its agent is told again
        end = time.monotonic() + SETTLE_S
        while agent.poll() is None and time.monotonic() < end:
            agent.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        self.assertEqual(agent.poll(), 0)
        self.assertFalse(runs(worker))

    def test_an_agent_killed_leaves_its_worker_and_the_next_one_finds_it(self):
        worker = self.cluster.worker_pid("server")
        self.cluster.agents["server"].kill()
        self.cluster.agents["server"].wait(timeout=WAIT_S)
        self.assert_all_answer(self.nodes)
        self.assertTrue(runs(worker))
        until("its death to be seen",
              lambda: self.cluster.nodes()["server"]["standing"] in ("suspected", "dead"))
        self.cluster.start_agent("server")
        nodes = self.cluster.await_served(["server", "south"])
        self.assertEqual(self.cluster.worker_pid("server"), worker)
        self.assert_all_answer(nodes)

    def test_a_worker_listens_at_the_ports_that_are_named(self):
        """A proxy or a firewall has to know them; a worker that is found at others starts anew."""
        ports = {name: free_port() for name in ("http", "grpc", "metrics")}
        before = self.cluster.worker_pid("server")
        self.cluster.agents["server"].kill()
        self.cluster.agents["server"].wait(timeout=WAIT_S)
        self.cluster.start_agent(
            "server", serve=[f"--{name}-port={port}" for name, port in ports.items()])
        until("the ports", lambda: self.cluster.nodes()["server"]["http"]
              == f"127.0.0.1:{ports['http']}")
        self.assertFalse(runs(before))
        nodes = self.cluster.await_served(["server", "south"])
        self.assertEqual(nodes["server"]["grpc"], f"127.0.0.1:{ports['grpc']}")
        self.assert_all_answer(nodes)
        with urllib.request.urlopen(f"http://127.0.0.1:{ports['metrics']}/metrics",
                                    timeout=WAIT_S) as page:
            self.assertEqual(page.status, 200)
        worker = self.cluster.worker_pid("server")
        self.cluster.agents["server"].kill()
        self.cluster.agents["server"].wait(timeout=WAIT_S)
        self.cluster.start_agent("server", serve=["--http-port", str(ports["http"])])
        self.cluster.await_served(["server", "south"])
        self.assertEqual(self.cluster.worker_pid("server"), worker, "it has this port")

    def test_a_worker_killed_is_started_again_with_its_models(self):
        for times in range(2):
            worker = self.cluster.worker_pid("south")
            os.kill(worker, signal.SIGKILL)
            until("another worker", lambda: self.cluster.worker_pid("south") != worker
                  and self.cluster.nodes()["south"]["ready"])
            nodes = self.cluster.await_served(["server", "south"])
            self.assert_all_answer(nodes)

    def test_a_node_that_comes_later_has_its_part(self):
        self.cluster.start_agent("north")
        nodes = self.cluster.await_served(["server", "south", "north"])
        self.assertEqual(self.cluster.status()["lost"], [])
        self.assertTrue(nodes["north"]["routes"])
        self.assert_all_answer(nodes)


class BadPeersTest(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(["server"])
        self.addCleanup(self.cluster.close)
        until("the node", lambda: self.cluster.nodes().get("server", {}).get("http"))

    def test_a_second_node_of_a_name_and_an_unknown_one_hear_why_they_are_refused(self):
        self.cluster.start_agent("server", state="state-other", name="second")
        until("the refusal",
              lambda: "another node is here as 'server'" in self.cluster.log("second"))
        self.cluster.start_agent("west", state="state-west", name="west")
        until("the refusal", lambda: "the fleet has no device 'west'" in self.cluster.log("west"))
        self.assertEqual(self.cluster.nodes()["server"]["standing"], "alive")

    def test_two_agents_do_not_share_a_folder(self):
        second = self.cluster.start_agent("server", name="second")
        self.assertEqual(second.wait(timeout=WAIT_S), 2)
        self.assertIn("another process holds this folder", self.cluster.log("second"))

    def test_garbage_on_the_port_and_agents_of_no_worker_leave_the_controller_alive(self):
        for garbage in (b"\0" * 1000, b"GET / HTTP/1.1\r\n\r\n", os.urandom(5000),
                        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(5000)):
            with socket.create_connection(("127.0.0.1", self.cluster.port), timeout=WAIT_S) as peer:
                with contextlib.suppress(OSError):
                    peer.sendall(garbage)
                    peer.shutdown(socket.SHUT_WR)
                    peer.recv(100)
        self.assertEqual(self.cluster.nodes()["server"]["standing"], "alive")

    def test_state_that_makes_no_sense_is_named_and_not_begun_anew(self):
        state = self.cluster.root / "state-bad"
        state.mkdir()
        (state / "node.state").write_text("home: 5\nslice {\n  nonsense: 1\n}\n")
        agent = self.cluster.start_agent("south", state="state-bad", name="bad")
        self.assertEqual(agent.wait(timeout=WAIT_S), 2)
        self.assertRegex(self.cluster.log("bad"), r"node\.state:3: .*nonsense")
        self.assertIn("move it away", self.cluster.log("bad"))

    def test_a_worker_that_does_not_stay_up_has_its_node_left_out(self):
        self.cluster.start_agent("south", serve=["--no-such-option"])

        def left_out():
            south = self.cluster.nodes().get("south", {})
            return south.get("trouble", "").startswith("left out: it did not start")
        until("the node to be left out", left_out)
        until("the log", lambda: "it does not stay up" in self.cluster.log("south"))
        until("a plan without it", lambda: "corner_south" in self.cluster.status()["lost"])
        self.assertIsNone(self.cluster.agents["south"].poll(), "it goes on trying")

    def test_plaintext_stays_on_this_machine(self):
        done = subprocess.run([TACTUS, "controller", str(FLEET), "--listen", "0.0.0.0:0", "--state",
                               str(self.cluster.root / "open")],
                              capture_output=True, text=True, timeout=WAIT_S, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("beyond this machine", done.stderr)


class WorkerPortsTest(unittest.TestCase):
    def refused(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([TACTUS, "agent", "--node", "server", "--state", folder,
                                   *arguments], capture_output=True, text=True, timeout=WAIT_S,
                                  check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_ports_that_are_none_are_refused_before_anything_starts(self):
        self.assertIn("--http-port '80000' is no port", self.refused("--", "--http-port", "80000"))
        self.assertIn("are both 8000", self.refused("--", "--http-port=8000", "--grpc-port=8000"))
        self.assertIn("--address is the agent's to give", self.refused("--", "--address", "::1"))
        self.assertIn("is not HOST or HOST:PORT", self.refused("--peer-address", "here:x"))
        self.assertIn("without --tls", self.refused("--peer-address", "127.0.0.1:8200"))
        self.assertIn("--controller: '127.0.0.1:99999' is not HOST:PORT",
                      self.refused("--controller", "127.0.0.1:99999"))

    def test_a_worker_beyond_this_machine_needs_tls_and_tokens(self):
        said = self.refused("--address", "10.0.0.6")
        self.assertIn("give --tls-cert, --tls-key and --tokens", said)
        self.assertIn("options of the worker, after --", said)
        self.assertIn("is no IP address", self.refused("--address", "localhost"))

    def test_the_port_for_other_nodes_is_that_of_the_peer_address(self):
        cluster = Cluster([], tls=True)
        self.addCleanup(cluster.close)
        port = free_port()
        cluster.start_agent("server", more=["--peer-address", f"127.0.0.1:{port}"])
        state = cluster.root / "state-server" / "worker.state"
        until("the port", lambda: state.exists() and f"peer: {port}" in state.read_text())


class EnrolmentTest(unittest.TestCase):
    """Certificates of the cluster's own authority, got by a token, on every connection."""

    def run_tactus(self, *arguments):
        return subprocess.run([TACTUS, *map(str, arguments)], capture_output=True, text=True,
                              timeout=WAIT_S, check=False)

    def test_a_token_admits_a_node_once_and_under_its_name_only(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        authority = root / "authority"
        self.assertEqual(self.run_tactus("cluster", "init", authority).returncode, 0)
        self.assertEqual(self.run_tactus("cluster", "init", authority).returncode, 2)
        self.assertEqual((authority / "authority.key").stat().st_mode & 0o077, 0)
        token = self.run_tactus("cluster", "token", "server", "--tls", authority).stdout.strip()
        log = open(root / "controller.log", "wb")
        with log:
            controller = subprocess.Popen(
                [TACTUS, "controller", str(FLEET), "--listen", "127.0.0.1:0", "--state",
                 str(root / "state"), "--tls", str(authority)], stdout=log, stderr=log)
        self.addCleanup(controller.wait, WAIT_S)
        self.addCleanup(controller.terminate)
        port = until("the controller", lambda: re.findall(
            r"ready control=(\d+)", (root / "controller.log").read_text()))[0]
        address = f"127.0.0.1:{port}"

        def agent(name, node, *more):
            tls = root / name
            tls.mkdir(exist_ok=True)
            (tls / "authority.pem").write_bytes((authority / "authority.pem").read_bytes())
            with open(root / f"{name}.log", "wb") as out:
                process = subprocess.Popen(
                    [TACTUS, "agent", "--controller", address, "--node", node, "--state",
                     str(root / f"state-{name}"), "--models", str(MODELS), "--tls", str(tls),
                     *more], stdout=out, stderr=out)
            self.addCleanup(process.wait, WAIT_S)
            self.addCleanup(process.terminate)
            return process

        def status(tls):
            return self.run_tactus("cluster", "status", "--json", "--controller", address, "--tls",
                                   tls)
        agent("server", "server", "--join", token)
        until("the node", lambda: '"alive"' in status(authority).stdout)
        self.assertIn('"alive"', status(root / "server").stdout)
        again = agent("again", "south", "--join", token)
        self.assertEqual(again.wait(timeout=WAIT_S), 2)
        self.assertIn("the token is for node 'server'", (root / "again.log").read_text())
        again = agent("again", "server", "--join", token)
        self.assertEqual(again.wait(timeout=WAIT_S), 2)
        self.assertIn("the token of node 'server' was used before",
                      (root / "again.log").read_text())
        # The server's certificate under another name.
        for each in ("node.pem", "node.key"):
            (root / "again" / each).write_bytes((root / "server" / each).read_bytes())
        agent("again", "south")
        until("the refusal", lambda: "the certificate is of node 'server'"
              in (root / "again.log").read_text())
        # Plaintext, and another cluster's certificate.
        self.assertNotEqual(self.run_tactus("cluster", "status", "--controller",
                                            address).returncode, 0)
        other = root / "other"
        self.run_tactus("cluster", "init", other)
        self.assertNotEqual(status(other).returncode, 0)
        self.assertIn('"alive"', status(authority).stdout)


class UpTest(unittest.TestCase):
    def up(self, example):
        """A cluster that serves, what it printed, and its state's folder."""
        folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(folder.cleanup)
        up = subprocess.Popen([TACTUS, "cluster", "up", str(SOURCE / "examples" / example),
                               "--state", folder.name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, up)
        said = [next(up.stdout)]
        while not said[-1].startswith("ready control="):
            said.append(next(up.stdout))
        return up, "".join(said), pathlib.Path(folder.name)

    def end(self, up):
        if up.poll() is None:
            up.send_signal(signal.SIGINT)
            up.wait(timeout=SETTLE_S)
        up.stdout.close()

    def down(self, up):
        up.send_signal(signal.SIGINT)
        rest, _ = up.communicate(timeout=SETTLE_S)
        self.assertEqual(up.returncode, 0, rest)

    def worker(self, state, node):
        return int(re.search(r"pid: (\d+)", (state / f"node-{node}/worker.state").read_text())[1])

    def agent(self, up, node):
        children = pathlib.Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text().split()
        return next(int(each) for each in children if f"\0--node\0{node}\0".encode() in
                    pathlib.Path(f"/proc/{each}/cmdline").read_bytes())

    def test_a_whole_cluster_starts_and_ends(self):
        up, text, state = self.up("street")
        command = re.search(r"curl -s (\S+) -d '(.*)'", text)
        self.assertTrue(command, text)
        with urllib.request.urlopen(urllib.request.Request(
                command[1], data=command[2].encode()), timeout=WAIT_S) as reply:
            self.assertEqual(reply.status, 200)
        workers = [self.worker(state, node) for node in ("server", "north", "south")]
        # A worker outlives its agent, but not its cluster.
        os.kill(self.agent(up, "north"), signal.SIGKILL)
        self.down(up)
        self.assertEqual([pid for pid in workers if runs(pid)], [])

    @unittest.skipUnless((SOURCE / "models/pipelines/nanodet/1/model.onnx").exists(),
                         "run tools/setup/street.sh")
    def test_cameras_outlive_the_server_that_found_their_poses(self):
        up, text, state = self.up("cameras")
        self.assertRegex(text, "which serves camera_north: find on north, pose on server")
        address = re.search(r"curl -s http://(\S+)/v2/models/camera_north/infer", text)[1]
        frame = (SOURCE / "examples/pipelines/street1.jpg").read_bytes()
        header = json.dumps({
            "inputs": [{"name": "jpeg", "datatype": "UINT8", "shape": [len(frame)],
                        "parameters": {"binary_data_size": len(frame)}}]}).encode()

        def persons():
            """Whose poses came in time."""
            request = urllib.request.Request(
                f"http://{address}/v2/models/camera_north/infer", data=header + frame,
                headers={"Inference-Header-Content-Length": len(header)})
            try:
                with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
                    outputs = {each["name"]: each["shape"] for each in json.load(reply)["outputs"]}
            except urllib.error.HTTPError:
                return 0
            self.assertEqual(outputs["points"][1:], [17, 3])
            return outputs["points"][0]

        until("poses", persons)
        for pid in (self.agent(up, "server"), self.worker(state, "server")):
            os.kill(pid, signal.SIGKILL)
        until("poses without the server", persons)
        self.down(up)


if __name__ == "__main__":
    unittest.main()
