"""tools/street: its emulated link keeps order and counts every packet, and cuts and mends; a
cluster of two namespaces answers over it, and again after a cut. Nothing here is timed. Skipped
where namespaces or tun devices are refused."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from serving import SOURCE, TACTUS, WAIT_S

sys.path.insert(0, str(SOURCE / "tools" / "street"))
import network  # noqa: E402
from placements import Cluster  # noqa: E402

WHY_NOT = network.refusal()
if not WHY_NOT and not network.LINK.exists():
    WHY_NOT = f"{network.LINK} is not built"
if WHY_NOT and __name__ == "__main__":
    print(f"skipped: {WHY_NOT}")
    sys.exit(77)

COUNT = 200
SIZE = 500
# Numbered datagrams from one namespace to a file in the other, as they come.
SEND = """
import socket, struct, sys, time
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[3])):
    there.sendto(struct.pack("!I", number) + bytes(int(sys.argv[4]) - 4),
                 (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.001)
"""
TAKE = """
import socket, struct
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
here.bind(("10.77.0.1", 0))
print("port", here.getsockname()[1], flush=True)
while True:
    print("got", struct.unpack("!I", here.recv(2000)[:4])[0], flush=True)
"""
OVERHEAD = 28  # IP's and UDP's header


def until(what, ask):
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if ask():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited for {what}")


class StreetTest(unittest.TestCase):
    cores = {"server": 1, "cam1": 1}

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-street-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.street = network.Street(self.root, self.cores)
        self.street.__enter__()
        self.addCleanup(self.street.__exit__, None, None, None)
        self.space = self.street.space("cam1")


class LinkTest(StreetTest):
    def setUp(self):
        super().setUp()
        self.taker = self.street.start("server", [sys.executable, "-c", TAKE], "taker.log",
                                       quota=False)

    def send(self, count):
        """From a port of its own; the kernel's own packets are not counted on."""
        port = self.taker.await_line("port ")
        subprocess.run(["ip", "netns", "exec", self.space, sys.executable, "-c", SEND,
                        network.SERVER, port, str(count), str(SIZE)], check=True, timeout=WAIT_S)

    def got(self):
        return [int(line.split()[1]) for line in self.taker.text().splitlines()
                if line.startswith("got")]

    def test_all_that_fits_comes_once_and_in_order(self):
        self.street.join("cam1", 50, 50, latency_ms=5)
        self.send(COUNT)
        until("all of them", lambda: len(self.got()) == COUNT)
        self.assertEqual(self.got(), list(range(COUNT)))
        up = self.street.part("cam1")["up"]
        self.assertGreaterEqual(up["packets"], COUNT)
        self.assertGreaterEqual(up["bytes"], COUNT * (SIZE + OVERHEAD))
        self.assertEqual(up["taken"], up["packets"] + up["full"] + up["lost"])
        self.assertEqual(up["full"], 0)

    def test_what_a_full_queue_drops_is_counted_and_the_rest_is_in_order(self):
        self.street.join("cam1", 0.5, 50, latency_ms=1, queue_kb=5)
        self.send(COUNT)
        until("some of them", lambda: len(self.got()) > 2)
        up = self.street.part("cam1")["up"]
        got = self.got()
        self.assertEqual(got, sorted(set(got)))
        self.assertGreater(up["full"], 0)
        self.assertLess(len(got), COUNT)
        self.assertEqual(up["taken"], up["packets"] + up["full"] + up["lost"])

    def test_packets_lost_by_chance_are_counted(self):
        self.street.join("cam1", 50, 50, latency_ms=1, loss=0.3)
        self.send(COUNT)
        until("some of them", lambda: len(self.got()) > COUNT // 2)
        up = self.street.part("cam1")["up"]
        self.assertGreater(up["lost"], COUNT // 10)  # the seed's; the kernel's own are a few
        self.assertLess(up["lost"], COUNT // 2 + 20)
        self.assertEqual(up["taken"], up["packets"] + up["full"] + up["lost"])
        self.assertEqual(self.got(), sorted(set(self.got())))

    def test_a_cut_link_carries_nothing_until_it_is_mended(self):
        self.street.join("cam1", 50, 50, latency_ms=1)
        self.send(5)
        until("the first five", lambda: len(self.got()) == 5)
        self.street.cut("cam1")
        self.send(7)
        self.street.mend("cam1")
        self.send(5)
        until("five more", lambda: len(self.got()) >= 10)
        self.assertEqual(self.got(), [*range(5), *range(5)])
        self.assertGreaterEqual(self.street.part("cam1")["up"]["lost"], 7)

    def test_nothing_is_left_behind(self):
        self.street.join("cam1", 50, 50, latency_ms=1)
        pids = [process.pid for process in self.street.processes]
        spaces, folders = list(self.street.spaces), [
            quota.folder for quota in self.street.quotas.values() if quota.folder]
        self.street.__exit__(None, None, None)
        left = network.ip("netns", "list")
        for space in spaces:
            self.assertNotIn(space, left)
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))
        for folder in folders:
            self.assertFalse(folder.exists())


FLEET = """
[[devices]]
name = "server"
kind = "server"
site = "server"
memory_mb = 4000
server = true
[[devices]]
name = "cam1"
kind = "cam1"
site = "cam1"
memory_mb = 4000
[[links]]
sites = ["server", "cam1"]
mbps = 20
rtt_ms = 2
[[costs]]
model = "split"
kind = "cam1"
weights_mb = 1
batches = [1]
infer_ms = [1]
peak_mb = [1]
use = [0.1]
[[costs]]
model = "mean"
kind = "server"
weights_mb = 1
batches = [1]
infer_ms = [1]
peak_mb = [1]
use = [0.1]
[[pipelines]]
name = "means"
slo_ms = 60000
source = "cam1"
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


class ClusterTest(StreetTest):
    def test_a_step_runs_in_the_other_namespace_with_certificates(self):
        # The repository of test_cluster_pipelines: identities that count their rows.
        from test_cluster_pipelines import repository
        models = self.root / "models"
        models.mkdir()
        repository(models)
        fleet = self.root / "fleet.toml"
        fleet.write_text(FLEET)
        self.street.join("cam1", 20, 20, latency_ms=1)
        cluster = Cluster(self.street, TACTUS, fleet, models, self.root / "cluster")
        where = cluster.where(cluster.await_served())
        self.assertEqual(where, {"means": {"split": "cam1", "mean": "server"}})
        http = next(node["http"] for node in cluster.status()["nodes"] if node["name"] == "cam1")
        body = json.dumps({"inputs": [{"name": "FOUND", "datatype": "FP32", "shape": [2, 16],
                                       "data": [3] * 16 + [5] * 16}]})

        def answer():
            done = subprocess.run(
                ["ip", "netns", "exec", self.space, "curl", "-sS", "--max-time", "20", "-d", body,
                 f"http://{http}/v2/models/means/infer"], capture_output=True, text=True,
                check=False)
            said = json.loads(done.stdout or "{}")
            return "outputs" in said and said["outputs"][0]["data"]
        until("an answer", answer)
        self.assertEqual(answer(), [3, 5])

        # TCP would send again after as long as it has been without an answer; a connection made
        # anew is there when the link is.
        worker = (self.root / "cluster" / "state-server" / "worker.state").read_text()
        port = int(re.search(r"peer: (\d+)", worker)[1])

        def connections():
            table = network.ip("netns", "exec", self.space, "cat", "/proc/net/tcp",
                               "/proc/net/tcp6").splitlines()
            rows = [line.split() for line in table]
            return {row[1] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
        before = connections()
        self.assertEqual(len(before), 1)
        self.street.cut("cam1")
        self.assertFalse(answer())
        until("the connection to be given up", lambda: not connections())
        self.street.mend("cam1")
        until("an answer again", answer)
        self.assertEqual(answer(), [3, 5])
        self.assertEqual(len(connections()), 1)
        self.assertNotEqual(connections(), before)
        cluster.close()
        self.assertGreater(self.street.part("cam1")["up"]["packets"], 0)


if __name__ == "__main__":
    unittest.main()
