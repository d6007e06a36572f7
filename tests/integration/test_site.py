"""A site of real processes on one machine: schedulers, workers, a front end; some of them die."""

import concurrent.futures
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

import numpy as np
import tritonclient.grpc as triton

from certificates import certify, day
from serving import SOURCE, TACTUS, WAIT_S, add_model, halt, identity_config
from site_processes import Process, Site, free_port


def status_of(url):
    """The status of a GET."""
    try:
        with urllib.request.urlopen(url, timeout=WAIT_S) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


class SiteTest(unittest.TestCase):
    def setUp(self):
        self.site = Site()
        self.site.leader()

    def tearDown(self):
        codes = self.site.close()
        self.assertEqual({code for code in codes.values()} - {0, -signal.SIGKILL}, set(), codes)

    def call_all(self, count, during):
        """So many calls of two rows, eight at a time, `during` in the midst; all are answered, each
        with its own rows, or refused because the time was over."""
        answered = []

        def one(i):
            rows = [[i, i + 0.25, i + 0.5, i + 0.75], [-i, 0, 1, 2]]
            return i, rows, self.site.infer("echo", rows, timeout_us=5_000_000)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(one, i) for i in range(count // 3)]
            calls[-1].result()
            calls += [pool.submit(one, i) for i in range(count // 3, count)]
            during()
            for call in calls:
                i, rows, (status, answer) = call.result()
                self.assertEqual(status, 200, answer)
                self.assertEqual(np.reshape(answer["outputs"][0]["data"], (2, 4)).tolist(), rows)
                answered.append(i)
        self.assertEqual(answered, list(range(count)))

    def test_answers_are_the_models_own(self):
        self.call_all(60, lambda: None)
        status, answer = self.site.infer("nothing", [[0, 0, 0, 0]])
        self.assertEqual(status, 404, answer)
        status, answer = self.site.infer("echo", [[0, 0, 0]])
        self.assertEqual(status, 400, answer)
        for server in [self.site.front_end, *self.site.workers]:
            client = triton.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}")
            self.addCleanup(client.close)
            rows = triton.InferInput("INPUT0", [1, 4], "FP32")
            rows.set_data_from_numpy(np.ones((1, 4), np.float32))
            with self.assertRaisesRegex(triton.InferenceServerException, "site port"):
                client.infer("echo", [rows], parameters={"tactus_granted": "1.1.0.1"})

    def test_triton_clients_and_strings(self):
        client = triton.InferenceServerClient(f"127.0.0.1:{self.site.front_end.ports['grpc']}")
        self.addCleanup(client.close)
        self.assertTrue(client.is_model_ready("ee_s"))
        texts = np.array(["one", "", "three " * 100], dtype=object)
        inputs = [triton.InferInput("text", [3], "BYTES")]
        inputs[0].set_data_from_numpy(texts)
        shapes = {"long": ([1, 2], "INT64", np.int64), "half": ([2], "FP16", np.float16),
                  "flag": ([1], "BOOL", bool), "byte": ([1], "UINT8", np.uint8),
                  "double": ([1], "FP64", np.float64)}
        for name, (shape, kind, dtype) in shapes.items():
            tensor = triton.InferInput(name, shape, kind)
            tensor.set_data_from_numpy(np.ones(shape, dtype))
            inputs.append(tensor)
        result = client.infer("any", inputs)
        self.assertEqual([t.decode() for t in result.as_numpy("OUTPUT0")], list(texts))
        self.assertEqual(result.as_numpy("OUTPUT2").tolist(), [1, 1])

    def test_a_spare_takes_over_under_load(self):
        first = self.site.leader()
        self.call_all(300, self.site.schedulers[first].kill)
        self.assertNotEqual(self.site.leader(), first)
        self.site.schedulers[first] = self.site.scheduler(first)
        self.call_all(30, lambda: None)

    def test_what_leaders_decided_is_decided_again_from_their_journals(self):
        first = self.site.leader()
        self.call_all(200, self.site.schedulers[first].close)
        second = self.site.leader()
        self.assertEqual(self.site.schedulers[second].page()["tactus_journal_whole"], 1)
        self.site.schedulers[second].close()
        decisions = 0
        for which in (first, second):
            done = subprocess.run([TACTUS, "replay", self.site.journal(which)], text=True,
                                  capture_output=True, timeout=WAIT_S)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            identical = re.search(r"(?m)^identical: (\d+) decisions for \d+ events", done.stdout)
            self.assertTrue(identical, done.stdout)
            decisions += int(identical.group(1))
        # Of both together: on a busy machine one may have been taken for dead before the calls.
        self.assertGreaterEqual(decisions, 200)

    def test_what_a_killed_leader_decided_is_decided_again_as_far_as_it_was_written(self):
        first = self.site.leader()
        self.call_all(200, self.site.schedulers[first].kill)
        done = subprocess.run([TACTUS, "replay", self.site.journal(first)], text=True,
                              capture_output=True, timeout=WAIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("only the beginning: it has no end", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^identical: \d+ decisions")

    def test_a_silent_leader_is_superseded_and_follows_when_it_is_back(self):
        first = self.site.leader()
        process = self.site.schedulers[first].process

        self.call_all(200, lambda: halt(process.pid))
        self.await_leads(1 - first, 1)
        process.send_signal(signal.SIGCONT)
        self.await_leads(first, 0)
        self.call_all(30, lambda: None)

    def await_leads(self, scheduler, leads):
        end = time.monotonic() + WAIT_S
        while self.site.schedulers[scheduler].page()["tactus_site_leads"] != leads:
            self.assertLess(time.monotonic(), end, f"scheduler {scheduler}, awaited {leads}")
            time.sleep(0.02)

    def test_a_worker_that_is_killed_costs_no_answer(self):
        self.call_all(300, self.site.workers[0].kill)
        self.site.workers[0] = self.site.worker("w0")
        self.site.leader()
        self.call_all(30, lambda: None)

    def is_ready(self, model=None):
        path = "/v2/health/ready" if model is None else f"/v2/models/{model}/ready"
        return status_of(f"http://{self.site.http}{path}") == 200

    def await_ready(self, ready, model=None):
        end = time.monotonic() + WAIT_S
        while self.is_ready(model) != ready:
            self.assertLess(time.monotonic(), end, self.site.front_end.errors())
            time.sleep(0.02)

    def await_said(self, text):
        end = time.monotonic() + WAIT_S
        while text not in self.site.front_end.errors():
            self.assertLess(time.monotonic(), end, self.site.front_end.errors())
            time.sleep(0.02)

    def test_a_front_end_is_ready_while_calls_reach_a_worker(self):
        self.await_ready(True)
        self.site.workers[0].kill()
        self.site.leader()  # who knows of the death
        self.assertTrue(self.is_ready())
        self.site.workers[1].kill()
        self.await_ready(False)
        self.await_said("not ready: no worker serves")
        self.site.workers[0] = self.site.worker("w0")
        self.await_ready(True)
        self.await_said("ready again")
        for scheduler in self.site.schedulers:
            scheduler.kill()
        self.await_ready(False)
        self.await_said("not ready: no scheduler answers")
        self.site.schedulers[0] = self.site.scheduler(0)
        self.await_ready(True)

    def test_a_model_is_ready_while_some_worker_serves_it(self):
        """One probe for each model: of a site without the model's last worker, too."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        add_model(pathlib.Path(folder.name), "rare",
                  identity_config("rare", 8, [("INPUT0", "TYPE_FP32", [4])]))
        client = triton.InferenceServerClient(f"127.0.0.1:{self.site.front_end.ports['grpc']}")
        self.addCleanup(client.close)
        self.assertEqual(status_of(f"http://{self.site.http}/v2/models/rare/ready"), 404)
        start = lambda name: self.site.start(
            name, "serve", "--models", folder.name, "--schedulers", ",".join(self.site.places),
            "--worker-name", name, "--lanes", 1, "--http-port", 0, "--grpc-port", 0,
            "--metrics-port", 0)
        special = start("special")
        self.await_ready(True, "rare")
        self.assertTrue(client.is_model_ready("rare"))
        self.assertTrue(client.is_model_ready("rare", "1"))
        self.assertFalse(client.is_model_ready("rare", "2"))
        gauge = 'tactus_model_ready{model="rare",version="1"}'
        self.assertEqual(self.site.front_end.page()[gauge], 1)

        special.kill()
        self.await_ready(False, "rare")
        self.assertEqual(status_of(f"http://{self.site.http}/v2/models/rare/ready"), 503)
        self.assertFalse(client.is_model_ready("rare"))
        self.assertEqual(self.site.front_end.page()[gauge], 0)
        self.await_said("model 'rare' is not ready: no worker of the site serves it")
        reasons = [each.reason for each in client.get_model_repository_index().models
                   if each.name == "rare"]
        self.assertEqual(reasons, ["no worker of the site serves it"])
        self.assertTrue(self.is_ready("echo"))
        self.assertTrue(self.is_ready())

        start("special2")
        self.await_ready(True, "rare")
        self.await_said("model 'rare' is ready again")
        for scheduler in self.site.schedulers:
            scheduler.kill()
        self.await_ready(False, "echo")
        self.assertFalse(client.is_model_ready("echo"))

    def test_models_are_not_loaded_or_unloaded_at_a_front_end(self):
        url = f"http://{self.site.http}/v2/repository/models/echo/"
        for what in ("load", "unload"):
            request = urllib.request.Request(url + what, data=b"{}", method="POST")
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=WAIT_S)
            with refused.exception as error:
                self.assertEqual(error.code, 503)
                self.assertIn("not allowed at a front end", error.read().decode())
        self.call_all(30, lambda: None)

    def test_without_workers_calls_are_answered_by_their_deadlines(self):
        for worker in self.site.workers:
            worker.kill()
        self.site.leader()
        status, answer = self.site.infer("echo", [[1, 2, 3, 4]], timeout_us=200_000)
        self.assertIn(status, (503, 504), answer)
        self.site.workers[0] = self.site.worker("w0")
        self.site.leader()
        self.call_all(10, lambda: None)


class SiteWithCertificatesTest(unittest.TestCase):
    def test_who_shows_none_or_claims_another_node_stays_outside(self):
        site = Site(schedulers=2, workers=1, certificates=True)
        self.addCleanup(site.close)
        site.leader()
        status, answer = site.infer("echo", [[1, 2, 3, 4]], timeout_us=5_000_000)
        self.assertEqual(status, 200, answer)
        tls, site.tls = site.tls, []
        site.worker("stranger")
        site.tls = ["--peer-tls", site.certificate("n2")]
        with self.assertRaisesRegex(AssertionError, "begins with n2/"):
            site.worker("liar")
        site.tls = tls
        first = site.leader()  # with one worker; on a busy machine the other one may lead by now
        site.schedulers[first].kill()
        self.assertNotEqual(site.leader(), first)
        status, answer = site.infer("echo", [[1, 2, 3, 4]], timeout_us=5_000_000)
        self.assertEqual(status, 200, answer)


    def test_who_has_expired_stays_outside_until_its_files_are_replaced(self):
        site = Site(schedulers=1, workers=1, certificates=True)
        self.addCleanup(site.close)
        self.assertEqual(site.leader(), 0)
        folder = site.certificate("n2")
        certify(pathlib.Path(site.folder) / "authority", folder, "n2", day(-40), day(-10))
        tls, site.tls = site.tls, ["--peer-tls", folder]
        late = site.start("late", "serve", "--models", pathlib.Path(site.folder) / "models",
                          "--lanes", 1,
                          "--schedulers", ",".join(site.places), "--worker-name", "n2/late",
                          "--profile", site.profile, "--allow-other-machine", "--http-port", 0,
                          "--grpc-port", 0, "--metrics-port", 0, *site.tls)
        site.tls = tls
        status, answer = site.infer("echo", [[1, 2, 3, 4]], timeout_us=5_000_000)
        self.assertEqual(status, 200, answer)
        self.assertEqual(site.leader(), 0, "with one worker")
        site.certificate("n2")
        site.workers.append(late)
        self.assertEqual(site.leader(), 0, "with both workers")


# A pipeline of one model.
CHAIN = """platform: "ensemble"
max_batch_size: 1
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [ {
  model_name: "MODEL" model_version: -1
  input_map { key: "INPUT0" value: "INPUT0" }
  output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
"""


class SiteReadyTest(unittest.TestCase):
    def test_probes_are_answered_before_there_is_a_scheduler(self):
        """Kubernetes would restart a front end whose port does not answer, and send calls to one
        that is ready without workers."""
        site = Site(schedulers=1, workers=0, front_end=None)
        self.addCleanup(site.close)
        scheduler = site.schedulers.pop()
        scheduler.kill()
        http, grpc, page = (free_port() for _ in range(3))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            starts = pool.submit(site.start, "front-end", "front-end", "--schedulers",
                                 ",".join(site.places), "--http-port", http, "--grpc-port", grpc,
                                 "--metrics-port", page)
            end = time.monotonic() + WAIT_S
            while True:
                try:
                    self.assertEqual(status_of(f"http://127.0.0.1:{page}/v2/health/live"), 200)
                    break
                except urllib.error.URLError:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
            if not starts.done():  # on a busy machine it may have waited long enough
                self.assertEqual(status_of(f"http://127.0.0.1:{page}/v2/health/ready"), 503)
                self.assertEqual(status_of(f"http://127.0.0.1:{http}/v2/health/ready"), 503)
                self.assertEqual(status_of(f"http://127.0.0.1:{http}/v2/health/live"), 200)
                self.assertEqual(status_of(f"http://127.0.0.1:{http}/v2/models/echo/ready"), 503)
                self.assertEqual(status_of(f"http://127.0.0.1:{page}/metrics"), 200)
            site.schedulers.append(site.scheduler(0))
            site.workers.append(site.worker("w0"))
            site.front_end = starts.result()
        site.http = f"127.0.0.1:{http}"
        end = time.monotonic() + WAIT_S
        while status_of(f"http://127.0.0.1:{page}/v2/health/ready") != 200:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        status, answer = site.infer("echo", [[1, 2, 3, 4]], timeout_us=5_000_000)
        self.assertEqual(status, 200, answer)

    def test_the_line_of_a_front_end_that_is_not_ready_names_why(self):
        """A program that waits for "ready" would else take a pipeline for one that answers,
        though no worker has its model."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        models = pathlib.Path(folder.name)
        add_model(models, "lonely", CHAIN.replace("MODEL", "nowhere"))
        site = Site(schedulers=1, workers=1, front_end=("--models", models))
        self.addCleanup(site.close)
        self.assertRegex(site.front_end.ready,
                         r"^started http=\d+ grpc=\d+ metrics=\d+ not_ready=lonely$")
        without = site.start("other", "front-end", "--schedulers", ",".join(site.places),
                             "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)
        self.assertRegex(without.ready, r"^ready http=\d+ grpc=\d+ metrics=\d+$")


class SiteBadInputTest(unittest.TestCase):
    def refused(self, *arguments):
        done = subprocess.run([TACTUS, *arguments], capture_output=True, text=True, timeout=WAIT_S,
                              check=False, env={**os.environ, "NO_COLOR": "1"})
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_each_error_says_what_to_do(self):
        here, there = "127.0.0.1:1", "127.0.0.1:2"
        self.assertIn("is not in --schedulers",
                      self.refused("scheduler", "--listen", here, "--schedulers", there))
        self.assertIn("is in it twice",
                      self.refused("front-end", "--schedulers", f"{here},{here}"))
        self.assertIn("is not HOST:PORT", self.refused("front-end", "--schedulers", "here"))
        self.assertIn("--peer-tls", self.refused("scheduler", "--listen", "10.0.0.1:8100"))
        self.assertIn("page is unencrypted", self.refused("scheduler", "--metrics-address",
                                                           "0.0.0.0"))
        self.assertIn("authority.pem", self.refused("scheduler", "--listen", here, "--peer-tls",
                                                    os.path.dirname(__file__)))
        self.assertIn("needs --models",
                      self.refused("front-end", "--schedulers", here, "--routes", "routes"))
        with tempfile.TemporaryDirectory() as folder:
            agent = ("agent", "--node", "rack", "--state", folder, "--site")
            self.assertIn("--site: 'here' is not HOST:PORT", self.refused(*agent, "here"))
            self.assertIn("there is no --tls folder", self.refused(*agent, "10.0.0.1:8100"))
            self.assertIn("the fleet has no device 'rack'", self.refused(
                "cluster", "up", SOURCE / "examples" / "street", "--site", f"rack={here}"))
        self.assertIn("policy", self.refused("scheduler", "--listen", here, "--policy", "none"))

    def test_a_process_with_another_list_of_schedulers_is_told_so_and_stays_outside(self):
        site = Site(schedulers=2, workers=1)
        self.addCleanup(site.close)
        places, site.places = site.places, site.places[::-1]
        stranger = site.worker("stranger")
        site.places = places
        end = time.monotonic() + WAIT_S
        while "refuses this process" not in stranger.errors() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertIn(f"it was told the schedulers {','.join(places[::-1])}, and this scheduler "
                      f"{','.join(places)}", stranger.errors())
        site.leader()  # with one worker

    def test_garbage_on_the_port_of_a_scheduler_harms_nobody(self):
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            scheduler = Process(folder, "scheduler", "scheduler", "--listen", f"127.0.0.1:{port}",
                                "--metrics-port", 0)
            for garbage in (b"\0" * 4096, b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
                with socket.create_connection(("127.0.0.1", port)) as connection:
                    connection.sendall(garbage)
            self.assertIn("tactus_site_leads", scheduler.page())
            self.assertEqual(scheduler.close(), 0)


if __name__ == "__main__":
    unittest.main()
