"""A pipeline whose steps the plan put on several nodes: its answers are those of one server, each
request is answered once when a node dies, and a plan that moves a step loses none."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from serving import SOURCE, WAIT_S, Server
from test_cluster import Cluster, until

EXAMPLES = SOURCE / "examples" / "ensembles" / "models"
NODES = ["edge", "near", "far"]


def fleet(*, mean_on, split_on="edge"):
    """`means` of examples/ensembles: found on one node, and the means on one of `mean_on`."""
    def device(name, server):
        return (f'[[devices]]\nname = "{name}"\nkind = "{name}"\nsite = "{name}"\n'
                f'memory_mb = 4000\nserver = {server}\n')

    def cost(model, kind):
        return (f'[[costs]]\nmodel = "{model}"\nkind = "{kind}"\nweights_mb = 1\nbatches = [1]\n'
                'infer_ms = [1]\npeak_mb = [1]\nuse = [0.1]\n')

    def stage(name, more):
        return (f'[[pipelines.stages]]\nname = "{name}"\nmodel = "{name}"\nin_kb = 10\n'
                f'out_kb = 1\n{more}')
    links = "".join(f'[[links]]\nsites = ["{a}", "{b}"]\nmbps = 1000\n'
                    for a, b in (("edge", "near"), ("edge", "far"), ("near", "far")))
    return (device("edge", "false") + device("near", "true") + device("far", "true") + links
            + cost("split", split_on) + "".join(cost("mean", kind) for kind in mean_on)
            + '[[pipelines]]\nname = "means"\nslo_ms = 2000\nsource = "edge"\nrate_rps = 2\n'
            + stage("split", "") + stage("mean", 'after = ["split"]\n'))


def repository(root):
    """The example's models, with time enough for a busy machine, and rows that count each."""
    for name in ("split", "mean", "means"):
        shutil.copytree(EXAMPLES / name, root / name)
    config = root / "means" / "config.pbtxt"
    text = config.read_text().replace('string_value: "200"', 'string_value: "60000"')
    config.write_text(text.replace('string_value: "each"', 'string_value: "all"'))


def body(rows):
    return json.dumps({"inputs": [{"name": "FOUND", "datatype": "FP32", "shape": [len(rows), 16],
                                   "data": [x for row in rows for x in row]}]}).encode()


def ask(address, rows, model="means"):
    """Status, and the answer's outputs or its error."""
    request = urllib.request.Request(f"http://{address}/v2/models/{model}/infer", data=body(rows))
    try:
        with urllib.request.urlopen(request, timeout=2 * WAIT_S) as reply:
            return reply.status, json.load(reply)["outputs"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


def frames(chance, count):
    """Rows whose means are exact in FP32, in whichever order a batch adds them up."""
    return [[chance.randrange(-72, 73) / 8 for _ in range(16)] for _ in range(count)]


def counted(address, model):
    """Rows that the model has run on this node."""
    with urllib.request.urlopen(f"http://{address}/v2/models/{model}/stats",
                                timeout=WAIT_S) as reply:
        return json.load(reply)["model_stats"][0]["inference_count"]


def crossed(address, metric, **labels):
    """What the page of metrics says of steps on other nodes, the series with these labels."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=WAIT_S) as reply:
        lines = reply.read().decode().splitlines()
    total = 0
    for line in lines:
        if line.startswith(f"tactus_remote_step_{metric}_total{{") and all(
                f'{name}="{value}"' in line for name, value in labels.items()):
            total += float(line.rsplit(" ", 1)[1])
    return total


def page(cluster, node):
    """Where the node's worker has its metrics."""
    state = (cluster.root / f"state-{node}" / "worker.state").read_text()
    return f"127.0.0.1:{re.search(r'metrics: ([0-9]+)', state)[1]}"


class Traffic:
    """Requests one after the other from some threads, until it is stopped."""

    def __init__(self, address, threads=3):
        self.address = address
        self.answers = []
        self.sent = 0
        self.lock = threading.Lock()
        self.stopping = False
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def _run(self, number):
        value = number
        while not self.stopping:
            value += 1
            with self.lock:
                self.sent += 1
            try:
                status, said = ask(self.address, [[value] * 16, [-value] * 16])
            except OSError as error:
                status, said = None, repr(error)
            right = status == 200 and said[0]["data"] == [value, -value]
            with self.lock:
                self.answers.append((status, right, said))

    def count(self, status):
        with self.lock:
            return sum(1 for answer in self.answers if answer[0] == status)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(timeout=4 * WAIT_S)
        return self.answers


class SplitTest(unittest.TestCase):
    first = "near"  # the fleet
    tls = False
    planning = ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-test-")
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        self.models = root / "models"
        self.models.mkdir()
        repository(self.models)
        self.fleets = {}
        for name, text in {
                "near": fleet(mean_on=("near",)), "far": fleet(mean_on=("far",)),
                "edge near": fleet(mean_on=("edge", "near")),
                "near, both": fleet(mean_on=("near",), split_on="near"),
                "near, then far": fleet(mean_on=("far",), split_on="near")}.items():
            self.fleets[name] = root / f"{name}.toml"
            self.fleets[name].write_text(text)
        self.cluster = Cluster(NODES, fleet=self.fleets[self.first], models=self.models,
                               tls=self.tls, planning=self.planning)
        self.addCleanup(self.cluster.close)
        self.cluster.await_served(NODES)
        self.http = self.cluster.await_ports(NODES)
        until("the pipeline", lambda: ask(self.http["edge"], [[1] * 16])[0] == 200)

    def kill_worker_under_load(self, node):
        """What was answered before, meanwhile, and once the node served again."""
        traffic = self.traffic()
        worker = self.cluster.worker_pid(node)
        os.kill(worker, signal.SIGKILL)
        until("refusals", lambda: traffic.count(503) > 0)
        until("its return", lambda: self.cluster.worker_pid(node) != worker
              and self.cluster.nodes()[node]["ready"])
        served = traffic.count(200)
        until("answers again", lambda: traffic.count(200) > served + 20)
        answers = traffic.stop()
        self.assertEqual(len(answers), traffic.sent, "each is answered, once")
        for status, right, said in answers:
            self.assertIn(status, (200, 503), said)
            self.assertEqual(right, status == 200, said)
        return answers

    def traffic(self):
        traffic = Traffic(self.http["edge"])
        self.addCleanup(traffic.stop)
        until("traffic", lambda: traffic.count(200) > 20)
        return traffic


class PlanTest(SplitTest):
    def test_answers_are_those_of_one_server_that_has_all_models(self):
        server = Server("--default-slo-ms", "60000", fill=repository)
        self.addCleanup(server.close)
        nodes = self.cluster.nodes()
        self.assertEqual(nodes["edge"]["models"], ["split"])
        self.assertEqual(nodes["near"]["models"], ["mean"])
        before = counted(self.http["near"], "mean")
        chance = random.Random(7)
        rows = 0
        for count in (0, 1, 2, 5, 31):
            sent = frames(chance, count)
            here = ask(self.http["edge"], sent)
            self.assertEqual(here[0], 200, here)
            self.assertEqual(here, ask(server.http, sent))
            rows += count
        self.assertEqual(counted(self.http["near"], "mean") - before, rows)
        self.assertNotEqual(ask(self.http["edge"], [[1] * 16], model="mean")[0], 200,
                            "clients find each model where it is")
        until("the link's round trip", lambda: self.cluster.nodes()["edge"]["links"].get(
            "near", {}).get("rtt_ms", 0) > 0)

    def test_a_worker_killed_under_load_loses_no_request_and_serves_again(self):
        answers = self.kill_worker_under_load("near")
        why = next(said for status, _, said in answers if status == 503)
        self.assertRegex(why, r"step 'mean'.*node 'near' at 127\.0\.0\.1:\d+: .* ms of the step's")

    def test_a_plan_that_moves_a_step_under_traffic_loses_nothing(self):
        traffic = self.traffic()
        self.cluster.controller.kill()
        self.cluster.controller.wait(timeout=WAIT_S)
        self.cluster.fleet = self.fleets["far"]
        self.cluster.start_controller()
        until("the move", lambda: (self.cluster.nodes().get("far") or {}).get("models") == ["mean"])
        until("rows at its new place", lambda: counted(self.http["far"], "mean") > 20)
        until("the old one to be put away",
              lambda: ask(self.http["near"], [[1] * 16], model="mean")[0] in (400, 404, 503))
        served = traffic.count(200)
        until("more", lambda: traffic.count(200) > served + 20)
        answers = traffic.stop()
        self.assertEqual(len(answers), traffic.sent)
        self.assertEqual([said for _, right, said in answers if not right], [])


class TogetherTest(SplitTest):
    """Both steps run on one node: a frame enters the pipeline there by one call."""
    first = "near, both"

    def setUp(self):
        super().setUp()
        until("frames that enter at the cut", lambda: ask(self.http["edge"], [[1] * 16])[0] == 200
              and self.as_one() > 0)

    def as_one(self, outcome="answered", step="split+mean"):
        return crossed(page(self.cluster, "edge"), "calls", step=step, outcome=outcome)

    def test_answers_are_those_of_one_server_that_has_all_models(self):
        server = Server("--default-slo-ms", "60000", fill=repository)
        self.addCleanup(server.close)
        nodes = self.cluster.nodes()
        self.assertEqual(nodes["edge"]["models"], [])
        self.assertEqual(sorted(nodes["near"]["models"]), ["mean", "split"])
        before, calls = counted(self.http["near"], "mean"), self.as_one()
        chance = random.Random(8)
        counts = (0, 1, 2, 5, 31)
        for count in counts:
            sent = frames(chance, count)
            here = ask(self.http["edge"], sent)
            self.assertEqual(here[0], 200, here)
            self.assertEqual(here, ask(server.http, sent))
        self.assertEqual(counted(self.http["near"], "mean") - before, sum(counts),
                         "rows ran there, each once")
        self.assertEqual(self.as_one() - calls, len(counts), "one call for each frame")
        self.assertEqual(self.as_one(step="split"), 0)
        status, why = ask(self.http["edge"], [[1] * 16] * 3, model="split")
        self.assertNotEqual(status, 200, why)

    def test_a_worker_killed_under_load_loses_no_request_and_serves_again(self):
        self.kill_worker_under_load("near")
        self.assertGreater(self.as_one("failed"), 0)

    def test_a_plan_that_splits_the_group_under_traffic_loses_nothing(self):
        traffic = self.traffic()
        self.cluster.controller.kill()
        self.cluster.controller.wait(timeout=WAIT_S)
        self.cluster.fleet = self.fleets["near, then far"]
        self.cluster.start_controller()
        until("the split",
              lambda: (self.cluster.nodes().get("far") or {}).get("models") == ["mean"])
        until("rows at the new place", lambda: counted(self.http["far"], "mean") > 20)
        served = traffic.count(200)
        until("more", lambda: traffic.count(200) > served + 20)
        answers = traffic.stop()
        self.assertEqual(len(answers), traffic.sent)
        self.assertEqual([said for _, right, said in answers if not right], [])
        self.assertGreater(self.as_one(step="mean"), 0, "one call a step by then")

    def test_a_node_that_does_not_know_such_calls_gets_one_for_each_step(self):
        # A server without routes takes none, as one of an earlier version would not.
        earlier = Server("--default-slo-ms", "60000", fill=repository)
        self.addCleanup(earlier.close)
        routes = self.cluster.root / "routes"
        routes.write_text("".join(
            f'routes {{ pipeline: "means" stage: "{step}" model: "{step}" '
            f'to {{ node: "old" weight: 1 address: "{earlier.grpc}" }} }}\n'
            for step in ("split", "mean")))
        source = Server("--routes", str(routes), "--model-control-mode", "explicit",
                        fill=repository)
        self.addCleanup(source.close)
        until("the pipeline", lambda: ask(source.http, [[5] * 16])[0] == 200)
        for value in range(4):
            self.assertEqual(ask(source.http, [[value] * 16, [2] * 16]),
                             ask(earlier.http, [[value] * 16, [2] * 16]))
        told = source.metrics_page
        self.assertEqual(crossed(told, "calls", step="split+mean", outcome="answered"), 0)
        self.assertGreaterEqual(crossed(told, "calls", step="split", outcome="answered"), 4)
        self.assertGreater(crossed(told, "calls", step="split+mean", outcome="failed"), 0)
        self.assertIn("by one call for each step", source.errors())


class TogetherWithCertificatesTest(SplitTest):
    first = "near, both"
    tls = True

    def test_frames_enter_at_the_port_for_other_nodes(self):
        until("frames that enter at the cut", lambda: ask(
            self.http["edge"], [[2] * 16, [4] * 16])[1][0]["data"] == [2, 4] and crossed(
                page(self.cluster, "edge"), "calls", step="split+mean", outcome="answered") > 0)


class LinkTest(SplitTest):
    first = "edge near"
    planning = ("--planner", "octopinf-relieved", "--links-seconds", "1")

    def test_the_split_follows_a_link_that_gets_slow(self):
        self.assertEqual(self.cluster.nodes()["near"]["models"], ["mean"])
        traffic = self.traffic()
        told = self.cluster.root / "state-edge" / "worker.links"

        def at_the_source():
            # As its worker would tell of such a link; it tells again when what it sees changes.
            aside = told.with_suffix(".test")
            aside.write_text('links { to: "near" mbps: 0.5 rtt_ns: 20000000 }\n')
            aside.rename(told)
            return "mean" in self.cluster.nodes()["edge"]["models"]
        until("the step to come to the source", at_the_source)
        self.assertEqual(self.cluster.nodes()["edge"]["links"]["near"]["mbps"], 0.5)
        until("rows there", lambda: counted(self.http["edge"], "mean") > 20)
        answers = traffic.stop()
        self.assertEqual([said for _, right, said in answers if not right], [])


class CertificatesTest(SplitTest):
    tls = True

    def test_steps_cross_nodes_with_certificates_of_the_cluster_only(self):
        self.assertEqual(ask(self.http["edge"], [[2] * 16, [4] * 16])[1][0]["data"], [2, 4])
        routes = (self.cluster.root / "state-edge" / "worker.routes").read_text()
        address = next(line.split('"')[1] for line in routes.splitlines() if "address" in line)
        state = (self.cluster.root / "state-near" / "worker.state").read_text()
        self.assertIn(f"peer: {address.split(':')[1]}\n", state, "a port of its own")
        self.assertNotIn(f"grpc: {address.split(':')[1]}\n", state)
        with self.assertRaises(OSError):  # in the clear
            urllib.request.urlopen(f"http://{address}/v2/health/live", timeout=WAIT_S)
        # Only to the node that is meant, and only from one that is let in.
        routes = self.cluster.root / "routes"
        near = self.cluster.root / "tls-edge"
        for node, tls, right in (("near", near, True), ("far", near, False), ("near", None, False)):
            routes.write_text(
                'routes { pipeline: "means" stage: "split" model: "split" '
                'to { node: "edge" weight: 1 here: true } }\n'
                'routes { pipeline: "means" stage: "mean" model: "mean" '
                f'to {{ node: "{node}" weight: 1 address: "{address}" }} }}\n')
            secure = ["--peer-tls", str(tls)] if tls else []
            server = Server("--routes", str(routes), "--model-control-mode", "explicit",
                            "--load-model", "split", *secure, fill=repository)
            self.addCleanup(server.close)
            if right:
                until("the pipeline", lambda: ask(server.http, [[5] * 16])[0] == 200)
            else:
                why = until("the reason", lambda: (
                    said := ask(server.http, [[5] * 16])[1]) and f"node '{node}' at" in said and said)
                self.assertRegex(why, "its inputs and outputs are not known yet")
        # After a restart from disk, without a controller, steps go where they went.
        self.cluster.controller.kill()
        worker = self.cluster.worker_pid("edge")
        os.kill(worker, signal.SIGKILL)
        until("another worker", lambda: self.cluster.worker_pid("edge") != worker)

        def served():
            try:
                return ask(self.http["edge"], [[3] * 16])[0] == 200
            except OSError:
                return False
        until("the pipeline", served)


if __name__ == "__main__":
    unittest.main()
