"""A site as a node of a fleet: the frames of an edge node's pipeline go on over the site's workers,
their answers are those of one server, and neither the death of a worker nor of the scheduler costs
one. And a front end that runs pipelines and host operators in front of a site by itself."""

import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import tempfile
import unittest
import urllib.error
import urllib.request

import numpy

from serving import SLOW_MS, WAIT_S, Server, add_model
from site_processes import Site
from test_cluster import Cluster, until
from test_cluster_models import AROUND
from test_cluster_pipelines import (
    Traffic, ask, body, counted, crossed, frames, page, repository)
from test_operators import PICTURES, fill, graphs_are_there

# Of each worker and of the leading scheduler, in each test that kills them.
KILLS = int(os.environ.get("TACTUS_SITE_NODE_KILLS", "1"))

DEVICES = """[[devices]]
name = "edge"
kind = "edge"
site = "street"
memory_mb = 4000

[[devices]]
name = "rack"
kind = "lane"
site = "rack"
accelerators = 2
memory_mb = 4000
server = true

[[links]]
sites = ["street", "rack"]
mbps = 1000

[[pipelines]]
name = "means"
slo_ms = 2000
source = "edge"
rate_rps = 2
  [[pipelines.stages]]
  name = "split"
  model = "split"
  in_kb = 10
  out_kb = 1
  [[pipelines.stages]]
  name = "mean"
  model = "mean"
  after = ["split"]
  in_kb = 10
  out_kb = 1
"""


SLOW = """name: "slow"
platform: "emulated"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
parameters { key: "slo_ms" value: { string_value: "60000" } }
"""
WAITS = """name: "waits"
platform: "ensemble"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [ {
  model_name: "slow" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
parameters { key: "slo_ms" value: { string_value: "60000" } }
"""


def fleet(split_on):
    """The means on the site's lanes, and what finds their rows there or at the edge."""
    return DEVICES + "".join(
        f'[[costs]]\nmodel = "{model}"\nkind = "{kind}"\nweights_mb = 1\nbatches = [1]\n'
        'infer_ms = [1]\npeak_mb = [1]\nuse = [0.1]\n'
        for model, kind in (("split", split_on), ("mean", "lane")))


def temporary(test):
    folder = tempfile.TemporaryDirectory(prefix="tactus-cluster-site-test-")
    test.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


class SiteNodeCase(unittest.TestCase):
    """The controller has the models and so have the site's workers; the nodes have none."""
    split_on = "edge"
    tls = False

    def fill(self):
        repository(self.models)

    def fleet(self):
        return fleet(self.split_on)

    def make(self):
        root = temporary(self)
        self.models = root / "models"
        self.models.mkdir()
        self.fill()
        path = root / "fleet.toml"
        path.write_text(self.fleet())
        self.cluster = Cluster([], fleet=path, models=self.models, tls=self.tls, own=False)
        self.addCleanup(self.cluster.close)

    def start_site(self, models):
        self.site = Site(models=models, front_end=None, certificates=self.tls,
                         authority=self.cluster.tls)
        self.addCleanup(self.close_site)
        self.site.leader()
        self.cluster.start_agent("edge")
        self.cluster.start_agent("rack", more=["--site", ",".join(self.site.places)])

    def close_site(self):
        codes = self.site.close()
        self.assertEqual({code for code in codes.values()} - {0, -signal.SIGKILL}, set(), codes)

    def setUp(self):
        self.make()
        # The nodes get theirs from the controller; these are the same bytes.
        copy = temporary(self) / "models"
        shutil.copytree(self.models, copy)
        self.start_site(copy)
        self.cluster.await_served(["edge", "rack"])
        self.http = self.cluster.await_ports(["edge", "rack"])
        until("the pipeline", lambda: ask(self.http["edge"], [[1] * 16])[0] == 200)

    def calls(self, step, outcome="answered"):
        return crossed(page(self.cluster, "edge"), "calls", step=step, outcome=outcome)

    def on_workers(self, model):
        """Rows that the site's workers have run, of those that live."""
        return sum(counted(f"127.0.0.1:{worker.ports['http']}", model)
                   for worker in self.site.workers if worker.process.poll() is None)

    def assert_equal_to_one_server(self):
        server = Server("--default-slo-ms", "60000", fill=repository)
        self.addCleanup(server.close)
        before = self.on_workers("mean")
        chance = random.Random(9)
        counts = (0, 1, 2, 5, 31)
        for count in counts:
            sent = frames(chance, count)
            here = ask(self.http["edge"], sent)
            self.assertEqual(here[0], 200, here)
            self.assertEqual(here, ask(server.http, sent))
        # Not equal: once, at a load of 15, 46 were counted for 39. Why is not known.
        self.assertGreaterEqual(self.on_workers("mean") - before, sum(counts))

    def traffic(self):
        traffic = Traffic(self.http["edge"])
        self.addCleanup(traffic.stop)
        self.more(traffic)
        return traffic

    def more(self, traffic):
        served = traffic.count(200)
        until("answers", lambda: traffic.count(200) > served + 20)

    def assert_nothing_lost(self, traffic):
        answers = traffic.stop()
        self.assertEqual(len(answers), traffic.sent, "each is answered, once")
        wrong = [said for _, right, said in answers if not right]
        # Nodes ping each other, and who has no answer within three seconds is gone. Nothing that is
        # killed here is such a peer: where it happens, the machine itself stood still.
        if (any("keepalive watchdog timeout" in said for said in wrong)
                and all("no node runs model" in said for said in wrong)):
            self.skipTest("this machine stood still for three seconds: a ping had no answer")
        self.assertEqual(wrong, [])
        return answers

    def kill_worker_and_scheduler(self, traffic):
        for _ in range(KILLS):
            self.kill_each_once(traffic)

    def kill_each_once(self, traffic):
        self.site.workers[0].kill()
        self.more(traffic)
        first = self.site.leader()
        self.site.schedulers[first].kill()
        self.more(traffic)
        self.assertNotEqual(self.site.leader(), first)
        self.site.schedulers[first] = self.site.scheduler(first)
        self.start_worker(0)
        # The load needs one worker, and may leave the new one idle until the other dies.
        new = f"127.0.0.1:{self.site.workers[0].ports['http']}"
        before = counted(new, "mean")
        self.site.workers[1].kill()
        until("rows on the new worker", lambda: counted(new, "mean") > before)
        self.more(traffic)
        self.start_worker(1)

    def start_worker(self, which):
        self.site.workers[which] = self.site.worker(f"w{len(self.site.all)}")
        self.site.leader()


class SiteNodeTest(SiteNodeCase):
    def test_answers_are_those_of_one_server(self):
        nodes = self.cluster.nodes()
        self.assertEqual(nodes["edge"]["models"], ["split"])
        self.assertEqual(nodes["rack"]["models"], ["mean"])
        self.assert_equal_to_one_server()
        status, why = ask(self.http["rack"], [[1] * 16], model="split")
        self.assertIn(status, (400, 404), "the workers serve it; no plan has it on this node")
        self.assertIn("not loaded on this node", why)

    def test_deaths_of_a_worker_and_of_the_scheduler_cost_no_answer(self):
        before = self.calls("mean")
        sent = self.traffic()
        self.kill_worker_and_scheduler(sent)
        answers = self.assert_nothing_lost(sent)
        # Two rows in each frame, each a call of its own: none was sent twice, none refused.
        self.assertEqual(self.calls("mean") - before, 2 * len(answers))
        self.assertEqual(self.calls("mean", "failed"), 0)

    def test_a_front_end_killed_under_load_loses_no_request_and_serves_again(self):
        traffic = self.traffic()
        front_end = self.cluster.worker_pid("rack")
        self.assertIn(b"front-end", pathlib.Path(f"/proc/{front_end}/cmdline").read_bytes())
        os.kill(front_end, signal.SIGKILL)
        until("refusals", lambda: traffic.count(503) > 0)
        until("its return", lambda: self.cluster.worker_pid("rack") != front_end
              and self.cluster.nodes()["rack"]["ready"])
        self.more(traffic)
        answers = traffic.stop()
        self.assertEqual(len(answers), traffic.sent, "each is answered, once")
        for status, right, said in answers:
            self.assertIn(status, (200, 503), said)
            self.assertEqual(right, status == 200, said)

    def test_the_next_agent_finds_its_front_end_and_only_a_front_end(self):
        front_end = self.cluster.worker_pid("rack")

        def next_agent(*more):
            self.cluster.agents["rack"].kill()
            self.cluster.agents["rack"].wait(timeout=WAIT_S)
            self.cluster.start_agent("rack", more=more)
        next_agent("--site", ",".join(self.site.places))
        until("the front end to be found", lambda: f"worker {front_end} found again" in
              self.cluster.log("rack"))
        self.assert_equal_to_one_server()
        next_agent()
        until("a server of its own", lambda: self.cluster.worker_pid("rack") != front_end
              and self.cluster.nodes()["rack"]["ready"])
        before = self.on_workers("mean")
        until("the pipeline", lambda: ask(self.http["edge"], [[1] * 16])[0] == 200)
        self.assertEqual(self.on_workers("mean"), before)

    def test_time_left_goes_with_the_step(self):
        for worker in self.site.workers:
            worker.kill()
        self.site.leader()
        # The pipeline itself has a minute; who asks so waits for no longer than this.
        request = json.loads(body([[1] * 16]))
        request["parameters"] = {"timeout": 300_000}
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(
                f"http://{self.http['edge']}/v2/models/means/infer",
                data=json.dumps(request).encode()), timeout=WAIT_S)
        with refused.exception as why:
            self.assertIn(why.code, (503, 504), why.read())
        self.site.workers[0] = self.site.worker("w2")
        until("the pipeline", lambda: ask(self.http["edge"], [[1] * 16])[0] == 200)


class TogetherTest(SiteNodeCase):
    """Both steps run on the site's lanes: a frame enters the pipeline there by one call."""
    split_on = "lane"

    def setUp(self):
        super().setUp()
        until("frames that enter at the cut", lambda: ask(self.http["edge"], [[1] * 16])[0] == 200
              and self.calls("split+mean") > 0)

    def test_frames_enter_as_one_and_no_death_costs_an_answer(self):
        self.assertEqual(self.cluster.nodes()["edge"]["models"], [])
        self.assert_equal_to_one_server()
        before = self.calls("split+mean")
        sent = self.traffic()
        self.kill_worker_and_scheduler(sent)
        answers = self.assert_nothing_lost(sent)
        self.assertEqual(self.calls("split+mean") - before, len(answers))
        self.assertEqual(self.calls("split+mean", "failed"), 0)
        self.assertEqual(self.calls("mean"), 0)


class CertificatesTest(SiteNodeCase):
    """One authority for the fleet and the site."""
    tls = True

    def test_no_death_costs_an_answer_over_certificates(self):
        self.assert_equal_to_one_server()
        sent = self.traffic()
        self.kill_worker_and_scheduler(sent)
        self.assert_nothing_lost(sent)


class OtherBytesTest(SiteNodeCase):
    def setUp(self):
        self.make()

    def test_a_site_that_serves_other_bytes_is_left_out_until_it_has_the_plans(self):
        other = temporary(self) / "models"
        shutil.copytree(self.models, other)
        config = other / "mean" / "config.pbtxt"
        config.write_text("# Another.\n" + config.read_text())
        self.start_site(other)
        until("the refusal", lambda: "give them the repository of the controller"
              in self.cluster.log("rack"))
        until("the plan to be given up",
              lambda: "means" in ((self.cluster.status() or {}).get("lost") or []))
        shutil.copy(self.models / "mean" / "config.pbtxt", config)
        for i, worker in enumerate(self.site.workers):
            worker.close()
            self.site.workers[i] = self.site.worker(f"again{i}")
        # One that is started knows of no failure.
        self.cluster.controller.kill()
        self.cluster.controller.wait(timeout=WAIT_S)
        self.cluster.start_controller()
        self.cluster.await_served(["edge", "rack"])
        http = self.cluster.await_ports(["edge"])["edge"]
        until("the pipeline", lambda: ask(http, [[1] * 16])[0] == 200)


class UrgentTest(SiteNodeCase):
    """One lane, whose batches are of one row and take SLOW_MS."""

    def fill(self):
        super().fill()
        add_model(self.models, "slow", SLOW)
        add_model(self.models, "waits", WAITS)

    def fleet(self):
        return (super().fleet()
                + '[[costs]]\nmodel = "slow"\nkind = "lane"\nweights_mb = 1\nbatches = [1]\n'
                f'infer_ms = [{SLOW_MS}]\npeak_mb = [1]\nuse = [0.1]\n[[pipelines]]\n'
                'name = "waits"\nslo_ms = 60000\nsource = "edge"\nrate_rps = 0.1\n'
                '[[pipelines.stages]]\nname = "slow"\nmodel = "slow"\nin_kb = 1\nout_kb = 1\n')

    def test_the_site_runs_first_what_has_the_least_time_left(self):
        self.site.workers.pop().close()
        self.site.leader()
        ended = []

        def wait(seconds, name):
            request = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [4],
                                   "data": [0] * 4}],
                       "parameters": {"timeout": seconds * 1_000_000}}
            with urllib.request.urlopen(urllib.request.Request(
                    f"http://{self.http['edge']}/v2/models/waits/infer",
                    data=json.dumps(request).encode()), timeout=2 * WAIT_S) as reply:
                reply.read()
            ended.append(name)

        def waiting():
            scheduler = self.site.schedulers[self.site.leader()]
            return scheduler.page()["tactus_site_waiting_requests"]
        until("the pipeline", lambda: wait(60, "first") is None)
        ended.clear()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(wait, 60, "patient") for _ in range(7)]
            until("a queue", lambda: waiting() >= 5)
            calls.append(pool.submit(wait, 20, "urgent"))
            for call in calls:
                call.result()
        # Before it one that ran, and those that were granted while it came.
        self.assertLess(ended.index("urgent"), 5, ended)


class PipelinesTest(unittest.TestCase):
    """`tactus front-end --models` in front of a site, without a cluster."""

    def site(self, models, *more):
        site = Site(schedulers=1, models=models, front_end=("--models", models, *more))
        self.addCleanup(site.close)
        site.leader()
        return site

    def test_pipelines_run_of_the_sites_models(self):
        models = temporary(self) / "models"
        models.mkdir()

        def nested(root):
            """With a step that is an ensemble."""
            repository(root)
            shutil.move(root / "mean", root / "inner")
            config = root / "inner" / "config.pbtxt"
            config.write_text(config.read_text().replace('name: "mean"', 'name: "inner"'))
            (root / "mean").mkdir()
            (root / "mean" / "config.pbtxt").write_text(AROUND)
            (root / "mean" / "1").mkdir()
        nested(models)
        server = Server("--default-slo-ms", "60000", fill=nested)
        self.addCleanup(server.close)
        site = self.site(models)
        until("the pipeline", lambda: ask(site.http, [[1] * 16])[0] == 200)
        chance = random.Random(10)
        for count in (0, 1, 5, 31):
            sent = frames(chance, count)
            self.assertEqual(ask(site.http, sent), ask(server.http, sent))
        rows = sum(counted(f"127.0.0.1:{worker.ports['http']}", "inner")
                   for worker in site.workers)
        self.assertEqual(rows, 38)

    def test_a_photograph_through_operators_and_graphs(self):
        if not graphs_are_there("nanodet"):
            self.skipTest("no graphs in models/pipelines; set-up fetches them")
        models = temporary(self) / "models"
        models.mkdir()
        fill(models, ensembles=True)
        server = Server("--default-slo-ms", "60000", fill=lambda root: fill(root, ensembles=True))
        self.addCleanup(server.close)
        site = self.site(models)

        def seen(address):
            """Outputs by name."""
            jpeg = list((PICTURES / "street1.jpg").read_bytes())
            request = {"inputs": [{"name": "jpeg", "datatype": "UINT8", "shape": [len(jpeg)],
                                   "data": jpeg}]}
            with urllib.request.urlopen(urllib.request.Request(
                    f"http://{address}/v2/models/street/infer",
                    data=json.dumps(request).encode()), timeout=2 * WAIT_S) as reply:
                return {out["name"]: numpy.reshape(out["data"], out["shape"])
                        for out in json.load(reply)["outputs"]}
        here, there = seen(site.http), seen(server.http)
        self.assertGreater(len(there["boxes"]), 0)
        for name, array in there.items():
            # Rows in batches of other sizes are rounded otherwise.
            numpy.testing.assert_allclose(here[name], array, atol=0.05, err_msg=name)
        poses = sum(counted(f"127.0.0.1:{worker.ports['http']}", "posenet")
                    for worker in site.workers)
        self.assertEqual(poses, len(there["points"]))


if __name__ == "__main__":
    unittest.main()
