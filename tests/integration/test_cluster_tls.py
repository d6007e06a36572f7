"""Several controllers and their nodes with certificates on every connection: when the leader is
killed no request is lost; tokens admit a node once, whoever leads; who is refused, and how a node
comes back when its certificate has expired; clocks that differ."""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from certificates import certify, day
from services import Etcd, Postgres, postgres_for
from serving import SOURCE, TACTUS, WAIT_S
from test_cluster import until
from test_cluster_memory import Controllers, TakeoverCase
from test_cluster_pipelines import NODES

HOUR = 3600


def folder_for(test):
    folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
    test.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


def shared_file(test):
    return f"sqlite:{folder_for(test)}/knowledge.db"


def other(name):
    return "b" if name == "a" else "a"


class Secured(Controllers):
    """With certificates. `start_agent` lets nodes in by tokens of a copy of the authority that no
    controller has."""

    def __init__(self, nodes, store, elect, **more):
        super().__init__(nodes, store, elect, tls=True, **more)

    def token(self, node, maker=None):
        folder = self.tls if maker is None else self.root / f"authority-{maker}"
        return self.tactus("cluster", "token", node, "--tls", folder).strip()

    def folder_of(self, name):
        """With authority.pem, as an operator would carry it to the node."""
        folder = self.root / f"tls-{name}"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.tls / "authority.pem", folder)
        return folder

    def agent(self, name, node, folder, *more):
        """An agent beside those of `start_agent`."""
        process = self._start(
            name, ["agent", "--controller",
                   ",".join(f"127.0.0.1:{port}" for port in self.ports.values()), "--node", node,
                   "--state", str(self.root / f"state-{name}"), "--models", str(self.models),
                   "--tls", str(folder), *more])
        self.more.append(process)
        return process

    def standing(self, node):
        return self.nodes().get(node, {}).get("standing")

    def kill(self, name):
        self.controllers[name].kill()
        self.controllers[name].wait(timeout=WAIT_S)


class TakeoverTest(TakeoverCase):
    def start_secured(self, store, elect):
        self.start(store, elect, tls=True)

    def test_a_leader_killed_is_followed_over_certificates(self):
        shared = shared_file(self)
        self.start_secured(shared, shared)
        self.kill_the_leader()

    @unittest.skipIf(Postgres.why_not(), Postgres.why_not())
    def test_a_leader_killed_is_followed_by_postgresql(self):
        postgres = postgres_for(self)
        self.start_secured(postgres.where(), postgres.where())
        killed, leader = self.kill_the_leader()
        self.cluster.start_one(killed)
        traffic = self.traffic()
        self.cluster.controllers[leader].kill()
        self.cluster.controllers[leader].wait(timeout=WAIT_S)
        until("the first to lead again", lambda: self.cluster.leader() == killed)
        self.cluster.await_served(NODES)
        self.assert_nothing_lost(traffic)


class TokensTest(unittest.TestCase):
    def start(self, store, elect, nodes=("server",)):
        self.cluster = Secured(nodes, store, elect)
        self.addCleanup(self.cluster.close)
        until("a leader", self.cluster.leader)

    def refused(self, name, node, token):
        agent = self.cluster.agent(name, node, self.cluster.folder_of(name), "--join", token)
        self.assertEqual(agent.wait(timeout=2 * WAIT_S), 2, self.cluster.log(name))
        self.assertFalse((self.cluster.root / f"tls-{name}" / "node.pem").exists())
        return self.cluster.log(name)

    def use_tokens(self):
        """Of the one that waits, at the one that leads; again there, and at the next that leads."""
        cluster = self.cluster
        leader = cluster.leader()
        spare = other(leader)
        token = cluster.token("south", maker=spare)
        self.assertIn("the token is for node 'south'", self.refused("mistaken", "north", token))
        south = cluster.agent("south", "south", cluster.folder_of("south"), "--join", token)
        until("the node", lambda: cluster.standing("south") == "alive")
        self.assertIn("the token of node 'south' was used before",
                      self.refused("second", "south", token))
        cluster.kill(leader)
        until("the spare to lead", lambda: cluster.leader() == spare)
        self.assertIn("the token of node 'south' was used before",
                      self.refused("third", "south", token))
        # An agent that is started again with its old options has what it needs.
        south.kill()
        south.wait(timeout=WAIT_S)
        south = cluster.agent("south", "south", cluster.folder_of("south"), "--join", token)
        until("the node again", lambda: "node.pem is good" in cluster.log("south")
              and cluster.standing("south") == "alive")
        # Made by the one that is dead; and a node may come while nobody leads.
        cluster.start_one(leader)
        token = cluster.token("north", maker=spare)
        cluster.kill(spare)
        cluster.agent("north", "north", cluster.folder_of("north"), "--join", token)
        until("the node", lambda: cluster.standing("north") == "alive")
        self.assertEqual(cluster.leader(), leader)
        until("the others", lambda: cluster.standing("south") == "alive")
        self.assertIsNone(south.poll())

    def test_a_token_admits_once_whoever_leads(self):
        shared = shared_file(self)
        self.start(shared, shared)
        self.use_tokens()

    @unittest.skipIf(Postgres.why_not() or Etcd.why_not(), Postgres.why_not() or Etcd.why_not())
    def test_a_token_admits_once_by_postgresql(self):
        postgres = postgres_for(self)
        etcd = Etcd()
        self.addCleanup(etcd.close)
        self.start(postgres.where(), etcd.where())
        self.use_tokens()
        # A store that is away cannot tell: nobody is let in, and the token is as good as before.
        postgres.kill()
        token = self.cluster.token("south")
        folder = self.cluster.folder_of("patient")
        agent = self.cluster.agent("patient", "south", folder, "--join", token)
        until("it to ask again", lambda: "asks again" in self.cluster.log("patient"))
        self.assertIn("it cannot be determined whether the token was used",
                      self.cluster.log("patient"))
        postgres.start()
        until("its certificate", (folder / "node.pem").exists)
        self.assertIsNone(agent.poll())

    def test_controllers_without_a_store_in_common_take_none(self):
        elect = shared_file(self)
        self.start(f"sqlite:{folder_for(self)}/one.db", elect, nodes=())
        for name in ("a", "b"):
            self.cluster.kill(name)
        self.cluster.options = ["--elect", elect]
        self.cluster.start_controller()
        until("a leader", self.cluster.leader)
        said = self.refused("south", "south", self.cluster.token("south"))
        self.assertIn("no --store in common", said)


class CertificatesTest(unittest.TestCase):
    def setUp(self):
        shared = shared_file(self)
        self.cluster = Secured(("server",), shared, shared)
        self.addCleanup(self.cluster.close)
        until("the node", lambda: self.cluster.standing("server") == "alive")

    def certificate(self, name, node, authority=None):
        folder = self.cluster.root / f"tls-{name}"
        self.cluster.tactus("cluster", "certificate", node, "--tls", authority or self.cluster.tls,
                            "--out", folder)
        return folder

    def test_strangers_liars_and_the_late_are_refused_wherever_they_come(self):
        cluster = self.cluster
        # Another cluster's authority, and this one's for another node, at both controllers.
        cluster.tactus("cluster", "init", cluster.root / "theirs")
        stranger = self.certificate("stranger", "south", cluster.root / "theirs")
        shutil.copy(cluster.tls / "authority.pem", stranger)
        cluster.agent("stranger", "south", stranger)
        liar = self.certificate("liar", "north")
        cluster.agent("liar", "south", liar)
        late = self.certificate("late", "north")
        certify(cluster.tls, late, "north", day(-40), day(-10))
        cluster.agent("late", "north", late)
        until("the liar's refusal", lambda: "the certificate is of node 'north', and the agent "
              "says that it is 'south'" in cluster.log("liar"))
        until("the stranger to miss a controller",
              lambda: "no controller at" in cluster.log("stranger"))
        until("the late one to know why", lambda: "node.pem expired at" in cluster.log("late"))
        self.assertIn("tactus cluster token", cluster.log("late"))
        until("the late one's refusal", lambda: "no controller at" in cluster.log("late"))
        first = cluster.leader()
        cluster.kill(first)
        until("the spare to lead", lambda: cluster.leader() == other(first))
        until("the node", lambda: cluster.standing("server") == "alive")
        nodes = cluster.nodes()
        self.assertNotEqual(nodes["south"]["standing"], "alive")
        self.assertNotEqual(nodes["north"]["standing"], "alive")
        # The late one's new certificate is taken without a restart.
        self.certificate("late", "north")
        until("the late one", lambda: cluster.standing("north") == "alive")

    def test_a_certificate_is_renewed_in_time_through_a_takeover(self):
        cluster = self.cluster
        folder = self.certificate("south", "south")
        certify(cluster.tls, folder, "south", day(-28), day(2))
        old, key = (folder / "node.pem").read_bytes(), (folder / "node.key").read_bytes()
        first = cluster.leader()
        cluster.kill(first)
        cluster.agent("south", "south", folder)
        until("a renewed certificate", lambda: (folder / "node.pem").read_bytes() != old)
        self.assertEqual((folder / "node.key").read_bytes(), key)
        until("the node", lambda: cluster.standing("south") == "alive")
        until("the log", lambda: "node south has renewed its certificate"
              in cluster.log(f"controller-{other(first)}"))
        # One that the fleet does not have gets no other.
        west = self.certificate("west", "west")
        certify(cluster.tls, west, "west", day(-28), day(2))
        cluster.agent("west", "west", west)
        until("the refusal", lambda: "the fleet has no device 'west'" in cluster.log("west"))


@functools.cache
def shifted_clock():
    """A library to preload, or why there is none."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None, "there is no C compiler"
    folder = tempfile.mkdtemp(prefix="tactus-cluster-test-")
    library = pathlib.Path(folder) / "shifted_clock.so"
    made = subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library,
                           SOURCE / "tests" / "integration" / "shifted_clock.c", "-ldl"],
                          capture_output=True, text=True, check=False)
    return (library, "") if made.returncode == 0 else (None, made.stderr)


class ClocksTest(unittest.TestCase):
    def test_an_hour_between_two_controllers_and_their_nodes_harms_nobody(self):
        library, why_not = shifted_clock()
        if library is None:
            self.skipTest(why_not)
        self.addCleanup(shutil.rmtree, library.parent, True)

        def clock(seconds):
            return {"LD_PRELOAD": str(library), "TACTUS_TEST_CLOCK_SHIFT": str(seconds)}
        told = subprocess.run(["date", "-u", "+%s"], capture_output=True, text=True, check=True,
                              env={**os.environ, **clock(0)})
        ahead = subprocess.run(["date", "-u", "+%s"], capture_output=True, text=True, check=True,
                               env={**os.environ, **clock(HOUR)})
        self.assertGreaterEqual(int(ahead.stdout) - int(told.stdout), HOUR, "it shifts nothing")
        shared = shared_file(self)
        self.cluster = Secured(("server", "south"), shared, shared, env={
            "controller-a": clock(HOUR), "controller-b": clock(-HOUR), "server": clock(-HOUR),
            "south": clock(HOUR)})
        self.addCleanup(self.cluster.close)
        self.cluster.await_served(["server", "south"])
        first = self.cluster.leader()
        plan = self.cluster.status()["serving"]
        until("the plan in the store",
              lambda: ("plan-adopted", plan) in self.cluster.events())
        self.cluster.kill(first)
        until("the spare to lead", lambda: self.cluster.leader() == other(first))
        self.cluster.await_served(["server", "south"])
        self.assertEqual(self.cluster.status()["serving"], plan)
        self.assertGreater(self.cluster.status()["term"], int(plan.split(".")[0]))


if __name__ == "__main__":
    unittest.main()
