"""Models that travel: nodes without any get those that their plan needs from the controller, whole
or not at all, and what serves serves on."""

import hashlib
import json
import pathlib
import re
import shutil
import signal
import tempfile
import unittest
import urllib.request

from serving import SOURCE, WAIT_S, halt
from test_cluster import FLEET, Cluster, infer, until
from test_cluster_pipelines import NODES, ask, fleet, repository

STREET = SOURCE / "examples" / "street" / "models"


# `mean` as an ensemble around the model of that name, which is then called `inner`.
AROUND = """name: "mean"
platform: "ensemble"
max_batch_size: 1
input [ { name: "VALUES" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "MEAN" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [ {
  model_name: "inner" model_version: -1
  input_map { key: "VALUES" value: "VALUES" } output_map { key: "MEAN" value: "MEAN" } } ] }
parameters { key: "as_step" value: { string_value: "true" } }
parameters { key: "slo_ms" value: { string_value: "60000" } }
"""


def digest(path):
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def blobs(cluster, node):
    """What lies whole in the node's cache."""
    folder = cluster.root / f"state-{node}" / "cache" / "blobs"
    return {path.name for path in folder.glob("*") if not path.suffix}


class Repository(unittest.TestCase):
    """The controller's, of its own, so that a test may change it."""

    def repository(self, source):
        folder = tempfile.TemporaryDirectory(prefix="tactus-models-test-")
        self.addCleanup(folder.cleanup)
        models = pathlib.Path(folder.name) / "models"
        shutil.copytree(source, models)
        return models

    def cluster(self, nodes, **options):
        cluster = Cluster(nodes, **options)
        self.addCleanup(cluster.close)
        return cluster

    def means(self):
        """The fleet and the repository of test_cluster_pipelines, side by side."""
        folder = tempfile.TemporaryDirectory(prefix="tactus-models-test-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "models").mkdir()
        repository(root / "models")
        (root / "fleet.toml").write_text(fleet(mean_on=["near"]))
        return root

    def restart_controller(self, cluster):
        cluster.controller.terminate()
        cluster.controller.wait(timeout=WAIT_S)
        cluster.start_controller()

    def plan_rolled_out(self, cluster, word):
        return until(f"a plan that is {word}", lambda: re.findall(
            rf"plan (\d+) of term \d+ {word}", cluster.log("controller")))


class TravelTest(Repository):
    def test_nodes_without_models_get_what_the_plan_needs_and_serve(self):
        root = self.means()
        # Certificates, and models/ beside the fleet without a word.
        cluster = self.cluster(NODES, fleet=root / "fleet.toml", own=False, tls=True)
        nodes = cluster.await_served(NODES)
        self.assertEqual(nodes["near"]["models"], ["mean"])
        rows = [[float(x)] * 16 for x in (1, 2)]
        status, outputs = until("an answer", lambda: (
            lambda told: told if told[0] == 200 else None)(ask(nodes["edge"]["http"], rows)))
        self.assertEqual(status, 200)
        self.assertTrue(outputs[0]["data"])
        weights = root / "models" / "mean" / "1" / "model.onnx"
        name = hashlib.sha256(weights.read_bytes()).hexdigest()
        self.assertIn(name, blobs(cluster, "near"))
        self.assertNotIn(name, blobs(cluster, "far"), "what a node does not need stays away")
        # Its disk and no controller: the worker is filled again.
        cluster.controller.kill()
        cluster.controller.wait(timeout=WAIT_S)
        cluster.agents["near"].send_signal(signal.SIGTERM)
        cluster.agents["near"].wait(timeout=WAIT_S)
        cluster.start_agent("near")
        until("an answer without a controller",
              lambda: ask(nodes["edge"]["http"], rows)[0] == 200)

    def test_what_the_node_has_of_its_own_does_not_travel(self):
        cluster = self.cluster(["server", "south"], models=STREET)
        nodes = cluster.await_served(["server", "south"])
        for node in ("server", "south"):
            self.assertEqual(blobs(cluster, node), set())
            for model in nodes[node]["models"]:
                self.assertEqual(infer(nodes[node]["http"], model), 200)


def batch_of(address, model):
    """The model's largest batch, as the worker has loaded it."""
    with urllib.request.urlopen(f"http://{address}/v2/models/{model}/config",
                                timeout=WAIT_S) as reply:
        return json.load(reply)["max_batch_size"]


class ChangeTest(Repository):
    def test_an_ensemble_that_is_a_step_brings_its_models_and_follows_them(self):
        root = self.means()
        models = root / "models"
        (models / "mean").rename(models / "inner")
        config = models / "inner" / "config.pbtxt"
        config.write_text(config.read_text().replace('"mean"', '"inner"'))
        (models / "mean" / "1").mkdir(parents=True)
        (models / "mean" / "config.pbtxt").write_text(AROUND)
        cluster = self.cluster(NODES, fleet=root / "fleet.toml", own=False)
        nodes = cluster.await_served(NODES)
        near = nodes["near"]["http"]
        self.assertEqual(nodes["near"]["models"], ["mean"])
        rows = [[float(x)] * 16 for x in (1, 2)]
        until("an answer", lambda: ask(nodes["edge"]["http"], rows)[0] == 200)
        self.assertEqual(batch_of(near, "inner"), 8)
        # Only what it needs changes: the ensemble's own folder is as it was.
        config.write_text(config.read_text().replace("max_batch_size: 8", "max_batch_size: 4"))
        self.restart_controller(cluster)
        until("the changed model", lambda: batch_of(near, "inner") == 4)
        nodes = cluster.await_served(NODES)
        until("an answer", lambda: ask(nodes["edge"]["http"], rows)[0] == 200)
        # A later agent does not take it for a model of an earlier plan, and unload it.
        cluster.agents["near"].kill()
        cluster.agents["near"].wait(timeout=WAIT_S)
        cluster.start_agent("near")
        until("the worker", lambda: "found again" in cluster.log("near"))
        config = models / "split" / "config.pbtxt"
        config.write_text(config.read_text() + "# other bytes\n")
        self.restart_controller(cluster)

        def put_away():
            status = cluster.status()
            return (status and status["phase"] == "done"
                    and status["serving"] != nodes["near"]["plan"])
        until("a plan, and the one before put away", put_away)
        self.assertEqual(ask(nodes["edge"]["http"], rows)[0], 200)

    def test_other_bytes_than_the_controller_said_are_refused_and_the_plan_serves_on(self):
        models = self.repository(STREET)
        cluster = self.cluster(["server", "south"], models=models, own=False,
                               planning=["--models", str(models)])
        before = cluster.await_served(["server", "south"])
        holder = next(name for name, node in before.items() if "plates" in node["models"])
        # The controller reads its repository when it starts, and then the file changes.
        times = models / "plates" / "times.csv"
        good = times.read_text()
        times.write_text("# another one\n" + good)
        said = digest(times)
        cluster.controller.terminate()
        cluster.controller.wait(timeout=WAIT_S)
        for agent in cluster.agents.values():  # none may fetch before the file has changed
            halt(agent.pid)
        cluster.start_controller()
        times.write_text("# tampered\n" + good)
        for agent in cluster.agents.values():
            agent.send_signal(signal.SIGCONT)
        came = digest(times)
        until("the refusal", lambda: "abandoned" in cluster.log("controller"))
        for log in (cluster.log(holder), cluster.log("controller")):
            self.assertRegex(log, f"node '{holder}', model 'plates', file 'times.csv'.*"
                                  f"{came}.*{said}")
        self.assertEqual(infer(before[holder]["http"], "plates"), 200, "the old one serves on")
        link = cluster.root / f"state-{holder}" / "models" / "plates"
        self.assertEqual((link / "times.csv").read_text(), good)
        # What the controller has said is there at last.
        times.write_text("# another one\n" + good)
        self.restart_controller(cluster)
        until("the other bytes", lambda: (link / "times.csv").read_text() == times.read_text())
        nodes = cluster.await_served(["server", "south"])
        self.assertEqual(infer(nodes[holder]["http"], "plates"), 200)

    def test_a_model_that_has_changed_is_rolled_out_under_requests(self):
        models = self.repository(STREET)
        cluster = self.cluster(["server", "south"], models=models, own=False,
                               planning=["--models", str(models)])
        before = cluster.await_served(["server", "south"])
        holder = next(name for name, node in before.items() if "objects" in node["models"])
        address = before[holder]["http"]
        config = models / "objects" / "config.pbtxt"
        config.write_text(config.read_text().replace("max_batch_size: 8", "max_batch_size: 4"))
        self.restart_controller(cluster)

        def changed():
            self.assertEqual(infer(address, "objects"), 200)
            return batch_of(address, "objects") == 4
        until("the changed model", changed)
        self.plan_rolled_out(cluster, "serves everywhere")

    def test_a_cache_that_is_too_small_says_so(self):
        models = self.repository(STREET)
        (models / "objects" / "weights.bin").write_bytes(b"w" * 3_000_000)
        cluster = self.cluster([], fleet=FLEET, models=models, own=False,
                               planning=["--models", str(models)])
        for node in ("server", "south"):
            cluster.agents[node] = cluster._start(
                node, ["agent", "--controller", f"127.0.0.1:{cluster.port}", "--node", node,
                       "--state", str(cluster.root / f"state-{node}"), "--model-cache-mb", "1"])
        until("the refusal", lambda: "--model-cache-mb" in cluster.log("controller"))
        self.assertRegex(cluster.log("controller"),
                         "model 'objects'.*take 4 MB, and there may be 1 MB")


if __name__ == "__main__":
    unittest.main()
