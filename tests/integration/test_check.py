#!/usr/bin/env python3
"""`tactus check --models` finds before anything runs what would not serve, and names one remedy:
that which fits. Where none is known it gives the library's words alone."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import serving

sys.path.insert(0, str(serving.SOURCE / "examples" / "ensembles"))
from make_models import FLOAT, field, node, value_info  # noqa: E402

DATA = serving.SOURCE / "tests" / "data"
STRING, INT64 = 8, 7


def model(nodes, inputs, outputs, ir=8, opset=13, more=b""):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "g") +
             b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))
    return field(1, ir) + field(7, graph) + field(8, field(1, "") + field(2, opset)) + more


def identity(name="y", dims=("N", 4), **more):
    return model([node("Identity", ["x"], [name])], [value_info("x", dims)],
                 [value_info(name, dims)], **more)


def value_of(name, kind):
    return field(1, name) + field(2, kind)


def split():
    """Takes no made-up row: of six numbers, a shape of zero takes two."""
    one = field(1, field(1, INT64) + field(2, field(1, field(1, 1))))
    return model([node("Reshape", ["x", "shape"], ["y"])],
                 [value_info("x", (2, 3)), value_of("shape", one)], [value_info("y", ("N",))])


def zipmap():
    """As scikit-learn's converter ends a classifier."""
    labels = field(1, "classlabels_int64s") + field(8, 0) + field(8, 1) + field(20, INT64)
    maps = field(4, field(1, field(5, field(1, INT64) + field(2, field(1, field(1, FLOAT))))))
    ml = field(8, field(1, "ai.onnx.ml") + field(2, 3))
    return model([field(1, "x") + field(2, "p") + field(4, "ZipMap") + field(5, labels) +
                  field(7, "ai.onnx.ml")], [value_info("x", ("N", 2))], [value_of("p", maps)],
                 more=ml)


def sequence():
    of_tensors = field(4, field(1, field(1, field(1, FLOAT))))
    return model([node("SequenceConstruct", ["x", "x"], ["s"])], [value_info("x", ("N", 2))],
                 [value_of("s", of_tensors)])


def zipped(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"contents")
    return file.getvalue()


CONFIG = ('platform: "onnxruntime_onnx"\nmax_batch_size: 4\n'
          'input { name: "x" data_type: TYPE_%s dims: [ %s ] }\n'
          'output { name: "%s" data_type: TYPE_FP32 dims: [ 4 ] }\n')
FINE = CONFIG % ("FP32", 4, "y")
WEIGHTS = (DATA / "weights.onnx").read_bytes()
EXPORTED = "install or export it again"
TO_ONNX = "export the model to ONNX"
AGREE = "make config.pbtxt and the graph agree"
AGAIN, UNPACK = "copy or export it again", "unpack it and put the .onnx file here"
OPERATORS = "export it with operators that this version has"
# Of each remedy some words; whatever is said of a fault has those of its own remedy alone.
REMEDIES = (EXPORTED, TO_ONNX, AGREE, OPERATORS, "options={'zipmap': False}", "copy it",
            "put their file beside", "older IR version", "older opset", "git lfs pull", "rename it",
            "the parameter `exits` names it", "name one with", "give all exits", "state 0,",
            "export the graph with another", AGAIN, UNPACK, "download the file itself",
            "download the file again", "made from", "put the model's .onnx file here",
            "tf2onnx")


def exits(*graphs):
    files = {f"exit{e}.onnx": graph for e, graph in enumerate(graphs, 1)}
    return files, f'parameters {{ key: "exits" value {{ string_value: "{",".join(files)}" }} }}\n'


TWO_EXITS, EXITS = exits(identity(), identity("z"))
# Name: files of version 1, config.pbtxt or none, what is said, the remedy in REMEDIES or none.
FAULTS = {
    "cut": ({"model.onnx": identity()[:40]}, None, "cannot load this graph", EXPORTED),
    "noise": ({"model.onnx": b"\xff\x01\x02\x80" * 99}, None, "cannot load", EXPORTED),
    "torch": ({"model.pt": b"PK\3\4"}, None, "model.pt is no ONNX graph", TO_ONNX),
    "keras": ({"model.h5": b"\x89HDF\r\n"}, None, "model.h5 is no ONNX graph", TO_ONNX),
    "savedmodel": ({"model.savedmodel": b"\x08\1"}, None, "model.savedmodel is no ONNX graph",
                   TO_ONNX),
    "misnamed": ({"net.onnx": identity()}, None, "net.onnx is there", "rename it"),
    "two_graphs": ({"a.onnx": identity(), "b.onnx": identity()}, None, "a.onnx, b.onnx are there",
                   "name one with"),
    "zipmap": ({"model.onnx": zipmap()}, None, "'p' is a sequence of maps",
               "options={'zipmap': False}"),
    "sequence": ({"model.onnx": sequence()}, None, "'s' is no tensor", None),
    "new_ir": ({"model.onnx": identity(ir=99)}, None, "IR version", "older IR version"),
    "new_opset": ({"model.onnx": identity(opset=99)}, None, "opset", "older opset"),
    "operator": ({"model.onnx": model([node("Idontity", ["x"], ["y"])], [value_info("x", ("N", 4))],
                                      [value_info("y", ("N", 4))])}, None, "Idontity", OPERATORS),
    "dangling": ({"model.onnx": model([node("Add", ["x", "nobody"], ["y"])],
                                      [value_info("x", ("N", 4))], [value_info("y", ("N", 4))])},
                 None, "nobody", None),
    "no_weights": ({"model.onnx": WEIGHTS}, None, "is missing", "copy it"),
    "short_weights": ({"model.onnx": WEIGHTS, "weights.bin": b"12345"}, None,
                      "shorter than the graph says: copy it again; weights.bin has 5 bytes",
                      "copy it"),
    "dims": ({"model.onnx": identity()}, CONFIG % ("FP32", 5, "y"),
             "input 'x' is FP32 [-1,4] in the graph, not FP32 [-1,5]", AGREE),
    "type": ({"model.onnx": identity()}, CONFIG % ("INT64", 4, "y"),
             "input 'x' is FP32 [-1,4] in the graph, not INT64 [-1,4]", AGREE),
    "name": ({"model.onnx": identity()}, CONFIG % ("FP32", 4, "logits"),
             "the graph has no output 'logits', it has 'y'", AGREE),
    "no_batch": ({"model.onnx": identity(dims=(4, 4))}, FINE,
                 "no open batch dimension in front, but max_batch_size is 4 at ", AGREE),
    "exits_declared": (TWO_EXITS, FINE + EXITS, "exit2.onnx: the graph has no output 'y', it has "
                       "'z'", "give all exits"),
    "exits": (TWO_EXITS, 'max_batch_size: 4\n' + EXITS,
              "exit2.onnx: the graph has no output 'y', it has 'z'", "give all exits"),
    "no_exit": ({"exit1.onnx": identity()}, FINE + EXITS, "exit2.onnx: there is no such graph file",
                "the parameter `exits` names it"),
    "patches": ({"model.onnx": (DATA / "patches.onnx").read_bytes()},
                'max_batch_size: 4\ninput { name: "x" data_type: TYPE_FP32 dims: [ 30, 4 ] }\n'
                'output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }\n',
                "config.pbtxt:1:1: max_batch_size: 4", "state 0,"),
    "chain": ({}, 'platform: "tactus_op"\n'
              'input { name: "pixels" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }\n'
              'output { name: "tensor" data_type: TYPE_FP32 dims: [ 1, 3, 320, 320 ] }\n'
              'parameters { key: "op" value { string_value: "resize, normalize" } }\n'
              'parameters { key: "resize.height" value { string_value: "224" } }\n'
              'parameters { key: "resize.width" value { string_value: "224" } }\n',
              "output 'tensor' is declared FP32 [1,3,320,320], but operator 'normalize' writes "
              "FP32 [1,3,224,224]", None),
}


# What lies in a graph's place and is none: the file's first bytes, what is said, the remedy.
FOREIGN = {
    "empty": (b"", "it is empty", AGAIN),
    "zeros": (bytes(5000), "it is zeros", AGAIN),
    "zero_first": (b"\0\1\2\3", "another byte than zero", AGAIN),
    "page": (b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title>", "a web page (HTML)",
             "download the file itself"),
    "page_in_small_letters": (b"\xef\xbb\xbf<html lang=en>", "a web page (HTML)",
                              "download the file itself"),
    "denied": (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "it is XML",
               "download the file again"),
    "openvino": (b'<?xml version="1.0"?>\n<net name="m" version="11">', "OpenVINO", "made from"),
    "json": (b'{"error": "not found"}', "JSON text", "put the model's .onnx file here"),
    "words": (b"404: Not Found, there is no such file here\n", "it is text",
              "put the model's .onnx file here"),
    "gzip": (gzip.compress(b"graph"), "compressed with gzip", UNPACK),
    "bzip2": (bz2.compress(b"graph"), "compressed with bzip2", UNPACK),
    "xz": (lzma.compress(b"graph"), "compressed with xz", UNPACK),
    "tar": (b"model.onnx".ljust(257, b"\0") + b"ustar\0" + b"00", "a tar archive", UNPACK),
    "zip": (zipped("model.onnx"), "a zip archive", UNPACK),
    "torch_named_onnx": (zipped("archive/data.pkl"), "a file of PyTorch (torch.save", TO_ONNX),
    "old_torch": (b"\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
                  "a file of PyTorch (torch.save)", TO_ONNX),
    "pickle": (pickle.dumps({"weights": [1.5]}, 4), "a pickle of Python", TO_ONNX),
    "numpy": (zipped("weight.npy"), "NumPy", TO_ONNX),
    "safetensors": (b"\x40\0\0\0\0\0\0\0" b'{"weight": {}}', "safetensors", TO_ONNX),
    "gguf": (b"GGUF\3\0\0\0", "llama.cpp", TO_ONNX),
    "keras_named_onnx": (b"\x89HDF\r\n\x1a\n", "Keras", "tf2onnx"),
    "lite": (b"\x1c\0\0\0TFL3" * 9, "TensorFlow Lite", "tf2onnx"),
    "saved_model": (field(1, 1) + field(2, field(1, field(4, "serve")) + bytes(9)),
                    "a SavedModel of TensorFlow", "tf2onnx"),
    "frozen": (field(1, field(1, "x") + field(2, "Placeholder")), "a frozen graph of TensorFlow",
               "tf2onnx"),
    "pointer": (b"version https:" b"//git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS",
                "git lfs pull"),
    "own_format": (b"\x24\0\0\0ORTM\0\0", "ONNX Runtime's own format", "made from"),
    "picture": (b"\x89PNG\r\n\x1a\n" * 9, "a picture (PNG)", "put the model's .onnx file here"),
    "library": (b"\x7fELF\2\1\1", "a program or a library", "put the model's .onnx file here"),
}
FAULTS |= {name: ({"model.onnx": head}, None, says, remedy)
           for name, (head, says, remedy) in FOREIGN.items()}


def put(root, name, files, config):
    version = root / name / "1"
    version.mkdir(parents=True)
    for file, contents in files.items():
        (version / file).write_bytes(contents)
    if config is not None:
        (root / name / "config.pbtxt").write_text(config)


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tactus-test-"))
        self.root = pathlib.Path(folder) / "models"
        self.root.mkdir()

    def check(self, models, *arguments):
        done = subprocess.run([serving.TACTUS, "check", "--models", models, "--threads", "1",
                               *arguments], capture_output=True, text=True, timeout=serving.START_S)
        # A slow machine is told how far it is.
        self.assertEqual(re.sub(r"(?m)^\d+/\d+.*\n", "", done.stderr), "")
        return done.returncode, done.stdout

    def test_each_fault_has_the_remedy_that_fits(self):
        for name, (files, config, _, _) in FAULTS.items():
            put(self.root, name, files, config)
        put(self.root, "fine", {"model.onnx": identity()}, "\ufeff" + FINE)
        code, text = self.check(self.root)
        self.assertEqual(code, 1)
        for name, (_, _, says, remedy) in FAULTS.items():
            with self.subTest(name):
                lines = [line for line in text.splitlines() if line.startswith("refused: ") and
                         (f"/{name}/" in line or f"model '{name}'" in line)]
                self.assertEqual(len(lines), 1, text)
                self.assertIn(says, lines[0])
                self.assertEqual([each for each in REMEDIES if each in lines[0]],
                                 [remedy] if remedy else [], lines[0])
        self.assertEqual(text.count("refused: "), len(FAULTS), text)
        self.assertNotIn("/fine/", text)

    def test_serve_init_and_profile_say_of_such_a_file_what_check_says(self):
        for name in FOREIGN:
            put(self.root, name, {"model.onnx": FOREIGN[name][0]}, None)
        server = serving.Server("--strict-readiness", "false", fill=lambda root: shutil.copytree(
            self.root, root, dirs_exist_ok=True))
        with contextlib.closing(server):
            index = {model["name"]: model["reason"]
                     for model in json.loads(server.post("/v2/repository/index", b"{}")[2])}
            log = server.errors()
        profile = subprocess.run([serving.TACTUS, "profile", "--models", self.root, "--out",
                                  self.root.parent / "p.json"], capture_output=True, text=True,
                                 timeout=serving.START_S)
        self.assertEqual(profile.returncode, 2, profile.stderr)
        for name, (_, says, remedy) in FOREIGN.items():
            with self.subTest(name):
                for text in (index[name], log, profile.stderr):
                    lines = [each for each in text.splitlines() if f"/{name}/" in each]
                    self.assertEqual(len(lines), 1, text)
                    self.assertIn(says, lines[0])
                    self.assertIn(remedy, lines[0])
        for name in ("page", "torch_named_onnx", "saved_model"):
            _, says, remedy = FOREIGN[name]
            done = subprocess.run([serving.TACTUS, "init", self.root / name / "1/model.onnx"],
                                  capture_output=True, text=True, timeout=serving.START_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
            self.assertIn(remedy, done.stderr)

    def test_with_a_device_graphs_are_opened_all_the_same(self):
        put(self.root, "fine", {"model.onnx": identity()}, FINE)
        put(self.root, "dims", *FAULTS["dims"][:2])
        code, text = self.check(self.root, "--device", "cuda:0")
        self.assertEqual(code, 1)
        self.assertIn("note: --device: graphs are opened and tried on this machine's processor",
                      text)
        refused = [line for line in text.splitlines() if line.startswith("refused: ")]
        self.assertEqual(len(refused), 1, text)
        self.assertIn(FAULTS["dims"][2], refused[0])

    def test_a_model_without_a_profile_is_said_and_no_failure(self):
        put(self.root, "fine", {"model.onnx": identity()}, FINE)
        code, text = self.check(self.root)
        self.assertEqual(code, 0, text)
        self.assertIn("note: model 'fine' has no profile", text)
        self.assertIn("nothing is doubtful", text)
        self.assertNotIn("doubtful: ", text)

    def test_folders_that_are_no_repository_say_what_to_name(self):
        put(self.root, "fine", {"model.onnx": identity()}, FINE)
        put(self.root, "bare", {"model.onnx": identity()}, None)
        parent = f"give its parent, --models {self.root}"
        for folder, says in (("fine", parent), ("fine/", parent), ("bare", parent),
                             ("fine/1", parent)):
            with self.subTest(folder):
                self.refused_at_the_start(f"{self.root}/{folder}", says)
        graphs = self.root.parent / "graphs"
        graphs.mkdir()
        (graphs / "net.onnx").write_bytes(identity())
        self.refused_at_the_start(graphs, "graphs/NAME/1/model.onnx")
        # A model may have a number for its name.
        shutil.copytree(self.root / "fine", self.root.parent / "numbers" / "1")
        self.assertEqual(self.check(self.root.parent / "numbers")[0], 0)

    def refused_at_the_start(self, folder, says):
        """A server that became ready would serve nothing."""
        for command in (("check",), ("profile", "--out", self.root / "p.json"),
                        ("serve", "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0")):
            with self.subTest(command[0]):
                done = subprocess.run([serving.TACTUS, *command, "--models", folder],
                                      capture_output=True, text=True, timeout=serving.START_S)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_a_right_model_without_a_configuration_has_notes_and_no_doubt(self):
        # With a batch, without one, and one that is not to be believed.
        put(self.root, "rows", {"model.onnx": identity()}, None)
        put(self.root, "whole", {"model.onnx": identity(dims=(2, 4))}, None)
        put(self.root, "centred", {"model.onnx": (DATA / "centred.onnx").read_bytes()}, None)
        put(self.root, "any", {"model.onnx": (DATA / "shapeless.onnx").read_bytes()}, None)
        code, text = self.check(self.root)
        self.assertEqual(code, 0, text)
        self.assertNotIn("doubtful: ", text)
        self.assertIn("nothing is doubtful", text)
        self.assertIn("note: model 'rows': no batch dimension was declared", text)
        self.assertIn("note: model 'centred': no batch dimension was declared", text)
        self.assertEqual(text.count(": no config.pbtxt: "), 4, text)
        # No made-up row runs: what it takes nobody knows.
        put(self.root, "split", {"model.onnx": split()}, None)
        code, text = self.check(self.root)
        self.assertEqual(code, 1, text)

    def test_what_lies_beside_the_models_is_pointed_out(self):
        put(self.root, "fine", {"model.onnx": identity()}, FINE)
        (self.root / "net.onnx").write_bytes(identity())
        (self.root / "torch").mkdir()
        (self.root / "torch" / "model.pt").write_bytes(b"PK\3\4")
        code, text = self.check(self.root)
        self.assertEqual(code, 1)
        doubts = [line for line in text.splitlines() if line.startswith("doubtful: ")]
        self.assertEqual(len(doubts), 2, text)
        self.assertIn(f"put it at {self.root}/net/1/model.onnx", doubts[0])
        self.assertIn(f"export the model to ONNX and put the graph at {self.root}/torch/1/"
                      "model.onnx", doubts[1])

    def test_why_no_made_up_row_runs_is_said_in_short(self):
        put(self.root, "split", {"model.onnx": split()}, None)
        _, text = self.check(self.root)
        line = next(each for each in text.splitlines() if "no made-up row ran" in each)
        self.assertIn("Reshape", line)
        for word in ("::", "Non-zero status", "Status Message", ".h:", ".cc:"):
            self.assertNotIn(word, line)

    def test_steps_of_ensembles_are_what_their_files_say(self):
        put(self.root, "net", {"model.onnx": identity(dims=("N", 4))}, None)
        put(self.root, "pixels", {}, 'platform: "tactus_op"\n'
            'parameters { key: "op" value { string_value: "resize, normalize" } }\n'
            'parameters { key: "resize.height" value { string_value: "8" } }\n'
            'parameters { key: "resize.width" value { string_value: "8" } }\n')
        put(self.root, "both", {}, 'platform: "ensemble"\n'
            'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 5 ] }\n'
            'output { name: "y" data_type: TYPE_FP32 dims: [ -1, 5 ] }\n'
            'ensemble_scheduling { step { model_name: "net" model_version: -1\n'
            'input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }\n'
            'parameters { key: "slo_ms" value { string_value: "60000" } }\n')
        put(self.root, "picture", {}, 'platform: "ensemble"\n'
            'input { name: "p" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }\n'
            'output { name: "small" data_type: TYPE_FP32 dims: [ 1, 3, 9, 8 ] }\n'
            'ensemble_scheduling { step { model_name: "pixels" model_version: -1\n'
            'input_map { key: "pixels" value: "p" }\n'
            'output_map { key: "tensor" value: "small" } } }\n'
            'parameters { key: "slo_ms" value { string_value: "60000" } }\n')
        _, text = self.check(self.root)
        lines = [line for line in text.splitlines() if line.startswith("refused: ")]
        self.assertEqual(len(lines), 2, text)
        for name in ("both", "picture"):
            self.assertEqual(sum(f"{name}/config.pbtxt" in line for line in lines), 1, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
