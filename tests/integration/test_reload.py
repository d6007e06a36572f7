#!/usr/bin/env python3
"""A model is replaced while it serves, in every way in which people replace files: after the reload
the answers are those of the new files, with --isolate and without, by load and in poll mode."""

import contextlib
import json
import os
import pathlib
import shutil
import struct
import time
import unittest

import serving

DATA = serving.SOURCE / "tests" / "data"
OFFSET = (DATA / "offset.onnx").read_bytes()  # y = factor x + 10, 20, 30, 40
TWO = struct.pack("<f", 2)
assert OFFSET.count(TWO) == 1


def graph(number):
    """y[0] is `number` where x[0] is 1. All have the same size."""
    return OFFSET.replace(TWO, struct.pack("<f", number - 10))


def weights(number):
    """y[0] is `number` where x[0] is 1, with the graph beside."""
    return struct.pack("<4f", *[number - 1] * 4)


class Model:
    """A model's files; `replace` writes those of another number. Where the weights lie beside the
    graph, they alone are replaced."""

    def __init__(self, folder, beside, number):
        self.folder, self.contents = folder, weights if beside else graph
        self.file = folder / "1" / ("weights.bin" if beside else "model.onnx")
        self.file.parent.mkdir(parents=True)
        if beside:
            shutil.copy(DATA / "weights.onnx", folder / "1" / "model.onnx")
        self.file.write_bytes(self.contents(number))


class InPlace(Model):
    def replace(self, number):
        with open(self.file, "r+b") as file:
            file.write(self.contents(number))


class Truncated(Model):
    """As cp does."""

    def replace(self, number):
        self.file.write_bytes(self.contents(number))


class Renamed(Model):
    def replace(self, number):
        fresh = self.file.with_name("fresh")
        fresh.write_bytes(self.contents(number))
        fresh.rename(self.file)


class OfEqualTime(Model):
    def replace(self, number):
        times = self.file.stat()
        self.file.write_bytes(self.contents(number))
        os.utime(self.file, ns=(times.st_atime_ns, times.st_mtime_ns))


class RenamedOfEqualTime(Model):
    """As rsync --times does; the numbers of files' inodes may repeat too."""

    def replace(self, number):
        times = self.file.stat()
        fresh = self.file.with_name("fresh")
        fresh.write_bytes(self.contents(number))
        os.utime(fresh, ns=(times.st_atime_ns, times.st_mtime_ns))
        fresh.rename(self.file)


class Removed(Model):
    def replace(self, number):
        self.file.unlink()
        self.file.write_bytes(self.contents(number))


class Link(Model):
    """The file is a symbolic link, which names another file then."""

    def __init__(self, folder, beside, number):
        super().__init__(folder, beside, number)
        self.store = folder.parent.parent / "store" / folder.name
        self.store.mkdir(parents=True)
        self.file.unlink()
        self.replace(number)

    def replace(self, number):
        (self.store / str(number)).write_bytes(self.contents(number))
        fresh = self.file.with_name("fresh")
        fresh.symlink_to(self.store / str(number))
        fresh.rename(self.file)


class LinkedFolder(Model):
    """The version's folder is a symbolic link, as where a volume of Kubernetes is mounted."""

    def __init__(self, folder, beside, number):
        super().__init__(folder, beside, number)
        self.store = folder.parent.parent / "store" / folder.name
        self.store.mkdir(parents=True)
        self.file.parent.rename(self.store / "first")
        (folder / "1").symlink_to(self.store / "first")

    def replace(self, number):
        shutil.copytree(self.store / "first", self.store / str(number))
        (self.store / str(number) / self.file.name).write_bytes(self.contents(number))
        fresh = self.folder / "fresh"
        fresh.symlink_to(self.store / str(number))
        fresh.rename(self.folder / "1")


class RenamedFolder(Model):
    def replace(self, number):
        fresh, old = (self.folder.parent.parent / f"{self.folder.name}.{what}"
                      for what in ("fresh", f"before-{number}"))
        shutil.copytree(self.folder, fresh)
        (fresh / "1" / self.file.name).write_bytes(self.contents(number))
        self.folder.rename(old)
        fresh.rename(self.folder)


WAYS = (InPlace, Truncated, Renamed, OfEqualTime, RenamedOfEqualTime, Removed, Link, LinkedFolder,
        RenamedFolder)


class ReloadTest(unittest.TestCase):
    def serve(self, *arguments):
        """A server with a model for each way, graphs and weights, all of number 100."""
        self.models = {}

        def fill(root):
            for way in WAYS:
                for beside in (False, True):
                    name = way.__name__ + ("Weights" if beside else "Graph")
                    self.models[name] = way(root / name, beside, 100)
        server = serving.Server(*arguments, fill=fill)
        self.enterContext(contextlib.closing(server))
        return server

    def number(self, server, name, may_be_gone=False):
        """What the model answers; None where it is `may_be_gone`, and is."""
        body = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1] * 4}]}
        status, _, answer = server.post(f"/v2/models/{name}/infer", json.dumps(body).encode())
        if may_be_gone and status in (404, 503):
            return None
        self.assertEqual(status, 200, (name, answer))
        return json.loads(answer)["outputs"][0]["data"][0]

    def check_loads(self, *arguments):
        server = self.serve("--model-control-mode", "explicit", "--load-model", "*", *arguments)
        for before, after in ((100, 101), (101, 102)):
            for name, model in self.models.items():
                with self.subTest(name, after=after):
                    self.assertEqual(self.number(server, name), before)
                    model.replace(after)
                    self.assertEqual(self.number(server, name), before,
                                     "what serves changes under its callers")
                    status, _, answer = server.post(f"/v2/repository/models/{name}/load", b"{}")
                    self.assertEqual(status, 200, answer)
                    self.assertEqual(self.number(server, name), after)

    def check_polls(self, *arguments):
        server = self.serve("--model-control-mode", "poll", "--poll-seconds", "0.2", *arguments)
        for before, after in ((100, 101), (101, 102)):
            for name, model in self.models.items():
                self.assertEqual(self.number(server, name), before, name)
                model.replace(after)
            for name in self.models:
                with self.subTest(name, after=after):
                    end = time.monotonic() + serving.WAIT_S
                    # There is no such folder for a moment.
                    may_be_gone = name.startswith(RenamedFolder.__name__)
                    while (number := self.number(server, name, may_be_gone)) != after:
                        self.assertIn(number, (before, None))
                        self.assertLess(time.monotonic(), end, "the files were not read again")
                        time.sleep(0.05)

    def test_a_load_serves_what_the_files_hold(self):
        self.check_loads()

    def test_a_load_serves_what_the_files_hold_in_processes_of_their_own(self):
        self.check_loads("--isolate")

    def test_polling_finds_what_the_files_hold(self):
        self.check_polls()

    def test_polling_finds_what_the_files_hold_in_processes_of_their_own(self):
        self.check_polls("--isolate")


if __name__ == "__main__":
    unittest.main(verbosity=2)
