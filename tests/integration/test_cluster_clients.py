"""Nodes of a cluster that ask their clients for TLS and tokens: agents load models all the same,
and the steps of a pipeline cross from node to node."""

import json
import pathlib
import ssl
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import serving
from serving import TACTUS, WAIT_S
from test_cluster import Cluster, until
from test_cluster_pipelines import body, fleet, repository

TOKEN = "client-0123456789abcdef"
NODES = ["edge", "near"]


class ClientsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "models").mkdir()
        repository(self.root / "models")
        (self.root / "fleet.toml").write_text(fleet(mean_on=("near",)))
        serving.make_certificate(self.root, "server")
        (self.root / "tokens").write_text(f"client infer,read {TOKEN}\n")
        self.trust = ssl.create_default_context(cafile=self.root / "server.pem")
        self.serve = ["--tls-cert", str(self.root / "server.pem"), "--tls-key",
                      str(self.root / "server.key"), "--tokens", str(self.root / "tokens")]

    def ask(self, address, *, scheme="https", token=TOKEN):
        """Status, and the answer; no status where there is no HTTP to be had."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{scheme}://{address}/v2/models/means/infer",
                                         data=body([[4] * 16, [2] * 16]), headers=headers)
        try:
            with urllib.request.urlopen(
                    request, timeout=2 * WAIT_S,
                    context=self.trust if scheme == "https" else None) as reply:
                return reply.status, json.load(reply)["outputs"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, None
        except OSError:
            return None, None

    def test_clients_show_a_token_over_tls_and_agents_need_none(self):
        cluster = Cluster([], fleet=self.root / "fleet.toml", models=self.root / "models", tls=True)
        self.addCleanup(cluster.close)
        for node in NODES:
            cluster.start_agent(node, serve=self.serve)
        cluster.await_served(NODES)
        edge = cluster.await_ports(NODES)["edge"]
        until("the pipeline", lambda: self.ask(edge)[0] == 200)
        self.assertEqual(self.ask(edge)[1][0]["data"], [4, 2], "means by the other node")
        self.assertEqual(self.ask(edge, token=None)[0], 401)
        self.assertEqual(self.ask(edge, token="other-0123456789abcdef")[0], 401)
        self.assertNotEqual(self.ask(edge, scheme="http")[0], 200)
        # The socket is this user's alone, and the next agent finds the worker by it.
        socket = cluster.root / "state-near" / "worker.admin" / "socket"
        self.assertTrue(socket.is_socket())
        self.assertEqual(socket.parent.stat().st_mode & 0o777, 0o700)
        worker = cluster.worker_pid("near")
        cluster.agents["near"].kill()
        cluster.agents["near"].wait(timeout=WAIT_S)
        cluster.start_agent("near", serve=self.serve)
        until("the worker", lambda: f"worker {worker} found again" in cluster.log("near"))
        cluster.await_served(NODES)
        self.assertEqual(self.ask(edge)[0], 200)
        # A worker of a version that had no socket makes room for one that has.
        cluster.agents["near"].kill()
        cluster.agents["near"].wait(timeout=WAIT_S)
        socket.unlink()
        cluster.start_agent("near", serve=self.serve)
        until("another worker", lambda: cluster.worker_pid("near") != worker and socket.exists())
        cluster.await_served(NODES)
        until("the pipeline", lambda: self.ask(edge)[0] == 200)

    def refusal(self, *options):
        done = subprocess.run([TACTUS, "agent", "--node", "near", *options], capture_output=True,
                              text=True, timeout=WAIT_S, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_without_certificates_of_nodes_there_are_none_for_clients(self):
        self.assertIn("--tls-cert needs --tls before --",
                      self.refusal("--state", str(self.root / "state"), "--", *self.serve))
        self.assertIn("--admin-socket is the agent's to give",
                      self.refusal("--state", str(self.root / "state"), "--", "--admin-socket=x"))

    def test_a_state_that_has_no_room_for_a_socket_is_refused(self):
        self.assertIn("choose a shorter one", self.refusal("--state", str(self.root / ("s" * 90))))


if __name__ == "__main__":
    unittest.main()
