"""Several controllers of one cluster: one leads and the others wait. When the leader is killed
another leads with the same plan and no request is lost; what happened is in the knowledge base,
which may be away. What a bad option says."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from services import Etcd, Postgres, postgres_for
from serving import TACTUS, WAIT_S, halt
from test_cluster import FLEET, Cluster, runs, until
from test_cluster_pipelines import NODES, Traffic, ask, fleet, repository


class Controllers(Cluster):
    """Two controllers, `a` and `b`, and agents that know both."""

    def __init__(self, nodes, store, elect, **more):
        self.store = store
        self.options = ["--store", store, "--elect", elect, "--lease-seconds", "2"]
        self.controllers = {}
        self.ports = {}
        super().__init__(nodes, **more)

    def start_controller(self):
        for name in ("a", "b"):
            self.start_one(name)
        self.port = self.ports["a"]

    def start_one(self, name):
        seen = self.log(f"controller-{name}").count("ready control=")
        process = self._start(
            f"controller-{name}",
            ["controller", str(self.fleet), "--state", str(self.root / f"controller-{name}"),
             "--listen", f"127.0.0.1:{self.ports.get(name, 0)}", "--name", name, *self.options,
             *self.secure_controller(name)])
        self.controllers[name] = process
        self.more.append(process)

        def ready():
            if process.poll() is not None:
                raise AssertionError(self.log(f"controller-{name}"))
            return re.findall(r"ready control=(\d+)", self.log(f"controller-{name}"))[seen:]
        self.ports[name] = int(until("a controller", ready)[-1])

    def secure_controller(self, name):
        """Each has a copy of the authority."""
        if self.tls is None:
            return []
        copy = self.root / f"authority-{name}"
        if not copy.exists():
            shutil.copytree(self.tls, copy)
        return ["--tls", str(copy)]

    def start_agent(self, node, **more):
        port, self.port = self.port, f"{self.ports['a']},127.0.0.1:{self.ports['b']}"
        try:
            return super().start_agent(node, **more)
        finally:
            self.port = port

    def status(self):
        told = subprocess.run(
            [TACTUS, "cluster", "status", "--json", "--controller",
             ",".join(f"127.0.0.1:{port}" for port in self.ports.values()), *self.secure()],
            capture_output=True, text=True, timeout=WAIT_S, check=False)
        return json.loads(told.stdout) if told.returncode == 0 else None

    def leader(self):
        for name, port in self.ports.items():
            told = subprocess.run([TACTUS, "cluster", "status", "--controller",
                                   f"127.0.0.1:{port}", *self.secure()], capture_output=True,
                                  text=True, timeout=WAIT_S, check=False)
            if told.returncode == 0:
                return name
        return None

    def history(self, *more):
        told = self.tactus("cluster", "history", "--store", self.store, "--json", *more)
        return json.loads(told)

    def events(self):
        return [(each["kind"], each["subject"]) for each in self.history("--events")["events"]]


class TakeoverCase(unittest.TestCase):
    def start(self, store, elect, **more):
        folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "models").mkdir()
        repository(root / "models")
        (root / "fleet.toml").write_text(fleet(mean_on=("near",)))
        self.cluster = Controllers(NODES, store, elect, fleet=root / "fleet.toml",
                                   models=root / "models", **more)
        self.addCleanup(self.cluster.close)
        self.cluster.await_served(NODES)
        self.edge = self.cluster.await_ports(NODES)["edge"]
        until("the pipeline", lambda: ask(self.edge, [[1] * 16])[0] == 200)

    def traffic(self):
        traffic = Traffic(self.edge, threads=2)
        self.addCleanup(traffic.stop)
        until("traffic", lambda: traffic.count(200) > 10)
        return traffic

    def assert_nothing_lost(self, traffic):
        answers = traffic.stop()
        self.assertEqual(len(answers), traffic.sent)
        self.assertEqual([answer for answer in answers if not answer[1]], [])

    def kill_the_leader(self):
        """Under traffic, once its plan is in the store; the other leads with the same plan."""
        leader = self.cluster.leader()
        spare = "b" if leader == "a" else "a"
        plan = self.cluster.status()["serving"]
        until("the plan in the store", lambda: ("plan-adopted", plan) in self.cluster.events())
        told = subprocess.run([TACTUS, "cluster", "status", "--controller",
                               f"127.0.0.1:{self.cluster.ports[spare]}", *self.cluster.secure()],
                              capture_output=True, text=True, timeout=WAIT_S, check=False)
        self.assertIn(f"not the leader; {leader} leads", told.stderr)
        made = len(self.cluster.history("--plans")["plans"])  # several where nodes came late
        traffic = self.traffic()
        self.cluster.controllers[leader].kill()
        self.cluster.controllers[leader].wait(timeout=WAIT_S)
        until("the spare to lead", lambda: self.cluster.leader() == spare)
        nodes = self.cluster.await_served(NODES)
        self.assertEqual({node["plan"] for node in nodes.values()}, {plan}, "the plan is unchanged")
        self.assertGreater(self.cluster.status()["term"], int(plan.split(".")[0]))
        until("it in the store", lambda: ("plan-kept", plan) in self.cluster.events())
        self.assertEqual(len(self.cluster.history("--plans")["plans"]), made)
        count = traffic.count(200)
        until("answers after it", lambda: traffic.count(200) > count + 10)
        self.assert_nothing_lost(traffic)
        return leader, spare


class FileTest(TakeoverCase):
    def test_a_leader_killed_is_followed_with_the_same_plan(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(folder.cleanup)
        shared = f"sqlite:{folder.name}/knowledge.db"
        self.start(shared, shared)
        killed, spare = self.kill_the_leader()
        # One that comes back waits; SIGTERM hands over to it at once.
        self.cluster.start_one(killed)
        self.assertEqual(self.cluster.leader(), spare)
        self.cluster.controllers[spare].terminate()
        self.assertEqual(self.cluster.controllers[spare].wait(timeout=WAIT_S), 0)
        until("the first to lead again", lambda: self.cluster.leader() == killed)
        self.cluster.await_served(NODES)
        table = self.cluster.tactus("cluster", "history", "--store", shared)
        self.assertIn("plan-kept", table)
        self.assertRegex(table, r"1\.1 +3 +\d+ +adopted")


@unittest.skipIf(Postgres.why_not() or Etcd.why_not(), Postgres.why_not() or Etcd.why_not())
class ServicesTest(TakeoverCase):
    def test_a_leader_killed_and_a_store_that_is_away(self):
        postgres = postgres_for(self)
        etcd = Etcd()
        self.addCleanup(etcd.close)
        self.start(postgres.where(), etcd.where())
        killed, leader = self.kill_the_leader()
        traffic = self.traffic()
        postgres.kill()
        log = f"controller-{leader}"
        worker = self.cluster.worker_pid("far")
        os.kill(worker, signal.SIGKILL)  # something to tell
        until("the store to be missed", lambda: "kept here for ten minutes" in
              self.cluster.log(log))
        until("another worker", lambda: self.cluster.worker_pid("far") != worker)
        self.cluster.await_served(NODES)
        self.assertEqual(self.cluster.leader(), leader)
        self.assertTrue(runs(self.cluster.controllers[leader].pid))
        self.assert_nothing_lost(traffic)
        postgres.start()
        until("what happened meanwhile", lambda: ("trouble", "far") in self.cluster.events())
        until("the log to say so", lambda: "the store is back" in self.cluster.log(log))
        self.stop_the_leader(leader, killed)

    def stop_the_leader(self, leader, other):
        """One that hangs for longer than its lease leads no more when it goes on."""
        plan = self.cluster.status()["serving"]
        self.cluster.start_one(other)
        halt(self.cluster.controllers[leader].pid)
        until("the other to lead", lambda: self.cluster.leader() == other)
        os.kill(self.cluster.controllers[leader].pid, signal.SIGCONT)
        until("it to wait", lambda: "it waits for its turn" in
              self.cluster.log(f"controller-{leader}"))
        self.cluster.await_served(NODES)
        self.assertEqual(self.cluster.leader(), other)
        self.assertEqual(self.cluster.status()["serving"], plan)


class BadOptionsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(self.folder.cleanup)

    def refused(self, *command):
        told = subprocess.run([TACTUS, *command], capture_output=True, text=True, timeout=WAIT_S,
                              check=False)
        self.assertNotEqual(told.returncode, 0)
        return told.stderr

    def controller(self, *more):
        return self.refused("controller", str(FLEET), "--listen", "127.0.0.1:0", "--state",
                            f"{self.folder.name}/state", *more)

    def test_each_says_what_to_write(self):
        self.assertIn("sqlite:PATH", self.controller("--store", "mysql://x"))
        self.assertIn("folder", self.controller("--store", "sqlite:/nowhere/at/all.db"))
        said = self.controller("--elect", "zookeeper")
        self.assertIn("etcd://HOST:PORT/NAME", said)
        self.assertIn("none", said)
        self.assertIn("etcd://HOST:PORT", self.controller("--elect", "etcd://nowhere"))
        self.assertIn("lease", self.controller("--elect", "none", "--lease-seconds", "1"))
        self.assertIn("--dead-seconds", self.controller("--dead-seconds", "1"))
        self.assertIn("--elect", self.controller("--name", "a"))
        history = ("cluster", "history", "--store")
        self.assertIn("no such file",
                      self.refused(*history, f"sqlite:{self.folder.name}/none.db"))
        self.assertIn("90m", self.refused(*history, "sqlite:/x", "--since", "yesterday"))
        self.assertIn("HOST:PORT", self.refused("agent", "--node", "x", "--state", "s",
                                                   "--models", self.folder.name,
                                                   "--controller", "127.0.0.1:1,north"))


if __name__ == "__main__":
    unittest.main()
