"""A processor that is split into lanes by a plan, and split anew while real models are served."""

import concurrent.futures
import contextlib
import json
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from serving import SOURCE, TACTUS, WAIT_S, Server

# Exits, and what the input is called.
MODELS = {"ee_s": 4, "ee_mlp": 3}
SHARES = {0.5: 1, 1: 2}  # threads


def fill(root):
    for name in MODELS:
        shutil.copytree(SOURCE / "models" / name, root / name)
        config = root / name / "config.pbtxt"
        config.write_text(config.read_text().replace('string_value: "50"', 'string_value: "60000"'))


def emulated_config(name):
    """Of a model without graphs, whose batches take what slow.json beside it says."""
    parameters = {"slo_ms": 60000, "profile": "slow.json",
                  "exits": ",".join(str(e + 1) for e in range(MODELS[name]))}
    return (f'name: "{name}"\nplatform: "emulated"\nmax_batch_size: 4\n'
            'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
            'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]\n' +
            "".join(f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
                    for key, value in parameters.items()))


def profile_of(share, threads=None, batch_ms=1):
    cells = [{"batch": b, "mean_ms": batch_ms / share} for b in range(1, 5)]
    return {"tactus_profile": 1,
            "machine": {"fingerprint": "test", "threads": int(threads or SHARES[share])},
            "provenance": "made for a test",
            "models": [{"name": name, "max_batch": 4,
                        "exits": [{"name": str(e + 1), "cells": cells} for e in range(exits)]}
                       for name, exits in MODELS.items()]}


def plan_of(*lanes, models=tuple(MODELS)):
    """lanes: (share, models) each."""
    return {"tactus_plan": 1, "planner": "a test", "scenario": "", "profile": "",
            "models": [{"name": name, "slo_ms": 60000, "rate_rps": 10} for name in models],
            "lanes": [{"device": 0, "share": share, "cycle_ms": 100,
                       "entries": [{"model": name, "batch": 4, "offset_ms": 50 * i, "length_ms": 50}
                                   for i, name in enumerate(names)]}
                      for share, names in lanes]}


WHOLE = plan_of((1, list(MODELS)))
HALVES = plan_of((0.5, ["ee_s"]), (0.5, ["ee_mlp"]))
OTHER_HALVES = plan_of((0.5, ["ee_mlp", "ee_s"]), (0.5, ["ee_s"]))


class PlanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.plan = self.folder / "plan.json"
        self.on_share = []
        for share in SHARES:
            path = self.folder / f"{share}.json"
            path.write_text(json.dumps(profile_of(share)))
            self.on_share.append(f"{100 * share:g}={path}")
        self.slow_shares = []
        for share in (0.25, 0.5, 0.75, 1):
            path = self.folder / f"slow{share}.json"
            path.write_text(json.dumps(profile_of(share, threads=4 * share, batch_ms=333)))
            self.slow_shares.append(f"{100 * share:g}={path}")

    def serve(self, plan, *more, fill=fill):
        self.plan.write_text(json.dumps(plan))
        return Server("--policy", "planned", "--plan", str(self.plan), "--on-share", *self.on_share,
                      *more, fill=fill)

    def plan_by_itself(self, planner, *more):
        return Server("--policy", "planned", "--planner", planner, "--on-share", *self.slow_shares,
                      *more, fill=fill)

    def hang_up(self, server, plan, says):
        """Gives the server another plan, and waits for what it says to it."""
        before = server.errors().count("SIGHUP")
        self.plan.write_text(plan if isinstance(plan, str) else json.dumps(plan))
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + WAIT_S
        while server.errors().count("SIGHUP") == before:
            self.assertLess(time.monotonic(), end, "no answer to SIGHUP")
            time.sleep(0.005)
        self.assertIn(says, server.errors().splitlines()[-1])

    def infer(self, server, model):
        body = {"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 1, 28, 28],
                            "data": [i % 7 / 7 for i in range(784)]}]}
        status, _, answer = server.post(f"/v2/models/{model}/infer", json.dumps(body).encode())
        self.assertEqual(status, 200, answer)
        return json.loads(answer)["outputs"][0]["data"]

    def test_no_call_is_lost_while_the_processor_is_split_anew(self):
        with contextlib.closing(self.serve(WHOLE)) as server, \
                concurrent.futures.ThreadPoolExecutor(4) as pool:
            expected = {name: self.infer(server, name) for name in MODELS}
            calls = [(name, pool.submit(self.infer, server, name))
                     for _ in range(300) for name in MODELS]
            seed = random.randrange(1 << 32)
            chance = random.Random(seed)
            with self.subTest(seed=seed):
                for after in sorted(chance.sample(range(len(calls)), 8)):
                    calls[after][1].result(WAIT_S)
                    plan = chance.choice((WHOLE, HALVES, OTHER_HALVES))
                    self.hang_up(server, plan, "is now split as")
                for name, call in calls:
                    for got, wanted in zip(call.result(WAIT_S), expected[name], strict=True):
                        self.assertAlmostEqual(got, wanted, 3)
            self.assertEqual(server.terminate(), 0)

    def test_sigterm_is_heard_while_an_old_lane_still_runs(self):
        # A row alone takes no time, so that lanes are soon ready; four outlast the test.
        slow = profile_of(1)
        for model in slow["models"]:
            model["exits"][-1]["cells"][3]["mean_ms"] = 10_000 * WAIT_S

        def fill_slow(root):
            for name in MODELS:
                (root / name / "1").mkdir(parents=True)
                (root / name / "config.pbtxt").write_text(emulated_config(name))
                (root / name / "slow.json").write_text(json.dumps(slow))

        rows = [json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [n, 1],
                                        "data": [0.5] * n}]}).encode() for n in range(5)]
        with contextlib.closing(self.serve(WHOLE, "--grace-seconds", "0", fill=fill_slow)) as \
                server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            call = pool.submit(server.post, "/v2/models/ee_s/infer", rows[4])
            server.await_pending(1)
            self.plan.write_text(json.dumps(HALVES))
            server.process.send_signal(signal.SIGHUP)
            # On a new lane: the old one is busy.
            self.assertEqual(server.post("/v2/models/ee_mlp/infer", rows[1])[0], 200)
            server.await_left(1)
            self.assertEqual(server.terminate(), 0)
            try:  # an answer, or a connection that was closed
                self.assertIn(call.result(WAIT_S)[0], (499, 503))
            except OSError:
                pass

    def test_a_plan_that_does_not_fit_changes_nothing(self):
        with contextlib.closing(self.serve(HALVES)) as server:
            for plan, says in ((plan_of((0.3, list(MODELS))), "30 %"),
                               (plan_of((1, ["ee_s"]), models=["ee_s"]), "another model set"),
                               (plan_of((1, list(MODELS)), (0.5, ["ee_s"])), "150 %"),
                               (plan_of((1, ["ee_s"])), "has no lane"),
                               ("{", "plan.json:1:")):
                self.hang_up(server, plan, says)
                self.assertIn("nothing changes", server.errors().splitlines()[-1])
            for name in MODELS:
                self.infer(server, name)
            self.assertEqual(server.terminate(), 0)

    def test_another_slo_than_planned_for_is_logged(self):
        with contextlib.closing(self.serve(HALVES)) as server:
            plan = json.loads(json.dumps(HALVES))
            plan["models"][0]["slo_ms"] = 59000
            self.assertNotIn("planned for an SLO", server.errors())
            self.hang_up(server, plan, "is now split as")
            self.assertIn("planned for an SLO of 59000 ms of 'ee_s', here it is 60000",
                          server.errors())

    def await_share(self, server, large, small, send):
        """Sends calls of the model `large` until the layout gives it more than `small`."""
        end = time.monotonic() + 3 * WAIT_S
        while True:
            shares = [server.metric("tactus_model_share_ratio", model=m) for m in (large, small)]
            if shares[0] > shares[1]:
                return
            self.assertLess(time.monotonic(), end, f"shares stay {shares}: {server.errors()}")
            send(large)
            time.sleep(0.1)

    def test_shares_follow_the_load_from_one_model_to_another_and_no_call_is_lost(self):
        # By the profiles a batch of 4 takes 333 ms on all of the device: 12 requests/s. The models
        # are quicker than that, and are sent some 10 a second.
        journal = self.folder / "journal"
        with contextlib.closing(self.plan_by_itself("gpulet-retry:period=2", "--journal",
                                                    str(journal))) as server, \
                concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertIn("lanes now: ", "".join(server.said))
            expected = {name: self.infer(server, name) for name in MODELS}
            calls = []

            def send(model):
                calls.append((model, pool.submit(self.infer, server, model)))

            for large, small in (("ee_s", "ee_mlp"), ("ee_mlp", "ee_s"), ("ee_s", "ee_mlp")):
                self.await_share(server, large, small, send)
            self.assertGreaterEqual(server.metric("tactus_plan_changes_total"), 3)
            self.assertEqual(server.metric("tactus_plan_given_up_total"), 0)
            self.assertGreater(server.metric("tactus_replans_total"), 0)
            self.assertGreater(server.metric("tactus_model_offered_rps", model="ee_s"), 0)
            for name, call in calls:
                for got, wanted in zip(call.result(WAIT_S), expected[name], strict=True):
                    self.assertAlmostEqual(got, wanted, 3)
            self.assertIn("plan: ", server.errors())
            self.assertEqual(server.terminate(), 0)
        replayed = subprocess.run([TACTUS, "replay", str(journal)], capture_output=True, text=True,
                                  timeout=WAIT_S)
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        self.assertRegex(replayed.stdout, r"identical: \d+ decisions for \d+ events and \d+ plans")

    def test_a_planner_begins_with_a_plan_of_ones_own(self):
        with contextlib.closing(self.serve(HALVES, "--planner", "gpulet:period=3600")) as server:
            self.assertEqual(server.metric("tactus_model_share_ratio", model="ee_s"), 0.25)
            self.hang_up(server, WHOLE, "is now split as")
            self.assertEqual(server.metric("tactus_model_share_ratio", model="ee_s"), 0.5)
            self.assertEqual(server.metric("tactus_plan_changes_total"), 2)
            self.assertEqual(server.terminate(), 0)

    def test_a_share_that_no_planner_uses_is_pointed_out(self):
        shares = [self.slow_shares[0], self.slow_shares[-1]]
        with contextlib.closing(Server("--policy", "planned", "--planner", "gpulet-retry",
                                       "--on-share", *shares, fill=fill)) as server:
            self.assertIn("--on-share: no share is the complement of 25 %", server.errors())
            self.assertEqual(server.terminate(), 0)

    def test_models_that_do_not_fit_the_device_are_refused_with_the_arithmetic(self):
        for arguments in (("--plan", str(self.plan)), ("--planner", "gpulet")):
            self.plan.write_text(json.dumps(WHOLE))
            with self.assertRaises(AssertionError) as refused:
                Server("--policy", "planned", *arguments, "--on-share", *self.on_share,
                       "--device-memory-mb", "0.1", fill=fill).close()
            self.assertRegex(str(refused.exception),
                             r"(need [0-9.]+ MB \('ee_\w+' [0-9.]+, 'ee_\w+' [0-9.]+\); it"
                             r"|model 'ee_\w+' needs [0-9.]+ MB; a device) has 0\.1")

    def test_what_a_planner_needs_is_said_at_the_start(self):
        for planner, says in (("gpulets", "there are gpulet, gpulet-retry"),
                              ("gpulet:periode=3", "there are period, weight, headroom"),
                              ("gpulet:period=x", "planner option period=x: a number from 1")):
            with self.assertRaises(AssertionError) as refused:
                self.plan_by_itself(planner).close()
            self.assertIn(says, str(refused.exception))
        with self.assertRaises(AssertionError) as refused:
            Server("--policy", "planned", "--planner", "nexus-half", "--on-share",
                   self.slow_shares[0], self.slow_shares[-1], fill=fill).close()
        self.assertIn("--planner: nexus-half needs 50 %", str(refused.exception))

    def test_what_a_plan_needs_is_said_at_the_start(self):
        for arguments, says in (
                (("--policy", "edgeserving", "--on-share", *self.on_share), "--policy planned"),
                (("--policy", "planned"), "--on-share 50=half.json 100=whole.json"),
                (("--policy", "planned", "--on-share", self.on_share[0]), "end at 50 %")):
            self.plan.write_text(json.dumps(WHOLE))
            with self.assertRaises(AssertionError) as refused:
                Server("--plan", str(self.plan), *arguments, fill=fill).close()
            self.assertIn(says, str(refused.exception))
        for arguments in (("--on-share", *self.on_share), ("--device-memory-mb", "500")):
            with self.assertRaises(AssertionError) as refused:
                Server(*arguments, fill=fill).close()
            self.assertIn(f"{arguments[0]}: nothing splits the device", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
