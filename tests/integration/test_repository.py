"""Loading and unloading while the server runs, in each control mode, over both protocols."""

import concurrent.futures
import contextlib
import json
import pathlib
import shutil
import tempfile
import time
import unittest

import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

import reference
from serving import SOURCE, WAIT_S, Server, add_model, identity_config

BODY = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4],
                               "data": [0, 1, 2, 3]}]}).encode()


def clients(server):
    """Both clients offer these calls under the same names."""
    return (http_client.InferenceServerClient(server.http, network_timeout=WAIT_S),
            grpc_client.InferenceServerClient(server.grpc))


class ExplicitTest(unittest.TestCase):
    def test_load_serve_unload(self):
        arguments = ("--model-control-mode", "explicit", "--load-model", "echo")
        with contextlib.closing(Server(*arguments)) as server:
            for client in clients(server):
                with self.subTest(client.__module__), contextlib.closing(client):
                    self.assertTrue(client.is_model_ready("echo"))
                    self.assertFalse(client.is_model_ready("ee_s"))
                    client.load_model("ee_s")
                    self.assertTrue(client.is_model_ready("ee_s"))
                    module = http_client if "http" in client.__module__ else grpc_client
                    batch = reference.images(1)
                    tensor = module.InferInput("input", batch.shape, "FP32")
                    tensor.set_data_from_numpy(batch)
                    self.assertEqual(client.infer("ee_s", [tensor]).as_numpy("logits").shape,
                                     (1, 10))
                    client.unload_model("ee_s")
                    self.assertFalse(client.is_model_ready("ee_s"))
                    with self.assertRaises(InferenceServerException):
                        client.infer("ee_s", [tensor])
                    with self.assertRaisesRegex(InferenceServerException, "nobody"):
                        client.load_model("nobody")
            self.assertEqual(server.terminate(), 0)

    def test_files_with_a_load_serve_until_the_model_is_unloaded(self):
        folder = SOURCE / "models" / "ee_s"
        config = (folder / "config.pbtxt").read_text().replace('"ee_s"', '"sent"')
        files = {f"file:{path.relative_to(folder)}": path.read_bytes()
                 for path in (folder / "1").iterdir()}
        files["file:config.pbtxt"] = config.encode()
        batch = reference.images(1)
        with contextlib.closing(Server("--model-control-mode", "explicit")) as server:
            for client in clients(server):
                with self.subTest(client.__module__), contextlib.closing(client):
                    module = http_client if "http" in client.__module__ else grpc_client
                    tensor = module.InferInput("input", batch.shape, "FP32")
                    tensor.set_data_from_numpy(batch)
                    client.load_model("sent", files=files)
                    client.load_model("ee_s")
                    sent, own = (client.infer(model, [tensor]).as_numpy("logits")
                                 for model in ("sent", "ee_s"))
                    self.assertEqual(sent.tolist(), own.tolist())
                    for wrong, said in (({"file:1/exit1.onnx": b"none"}, "files given"),
                                        ({"file:../sent/1/model.onnx": b""}, "no path in")):
                        with self.assertRaisesRegex(InferenceServerException, said):
                            client.load_model("sent", files=wrong)
                        self.assertTrue(client.is_model_ready("sent"))
                    client.load_model("sent")  # again from the same files
                    self.assertEqual(client.infer("sent", [tensor]).as_numpy("logits").tolist(),
                                     own.tolist())
                    client.unload_model("sent")
                    with self.assertRaisesRegex(InferenceServerException, "sent"):
                        client.load_model("sent")
            self.assertEqual(server.terminate(), 0)

    def test_two_repositories_serve_as_one(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as second:
            second = pathlib.Path(second)
            config = identity_config("%s", 8, [("INPUT0", "TYPE_FP32", [4])])
            for name in ("elsewhere", "any"):  # "any" is in the first one too
                add_model(second, name, config % name)
            with contextlib.closing(Server("--model-control-mode", "explicit",
                                           "--models", str(second))) as server:
                for client in clients(server):
                    with self.subTest(client.__module__), contextlib.closing(client):
                        for model in ("echo", "elsewhere"):
                            client.load_model(model)
                            self.assertEqual(
                                server.post(f"/v2/models/{model}/infer", BODY)[0], 200)
                        with self.assertRaisesRegex(InferenceServerException,
                                                    "'any' is in two repositories"):
                            client.load_model("any")
                index = json.loads(server.post("/v2/repository/index", b"")[2])
                names = [each["name"] for each in index]
                self.assertEqual(len(names), len(set(names)))
                self.assertIn("elsewhere", names)

    def test_a_configuration_with_the_load_replaces_the_folders(self):
        with contextlib.closing(Server("--model-control-mode", "explicit")) as server:
            config = json.dumps({"name": "echo", "platform": "identity", "max_batch_size": 3,
                                 "input": [{"name": "OTHER", "data_type": "TYPE_INT32",
                                            "dims": [2]}]})
            for client in clients(server):
                with self.subTest(client.__module__), contextlib.closing(client):
                    client.load_model("echo", config=config)
                    metadata = client.get_model_metadata("echo")
                    name = (metadata["inputs"][0]["name"] if isinstance(metadata, dict)
                            else metadata.inputs[0].name)
                    self.assertEqual(name, "OTHER")
                    client.unload_model("echo")
            self.assertEqual(server.terminate(), 0)

    def test_a_load_stalls_no_other_model(self):
        arguments = ("--model-control-mode", "explicit", "--load-model", "echo")
        with contextlib.closing(Server(*arguments)) as server, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            loads = pool.submit(lambda: [server.post("/v2/repository/models/ee_s/load", b"")[0]
                                         for _ in range(3)])
            answered = 0
            while not loads.done() or answered == 0:
                self.assertEqual(server.post("/v2/models/echo/infer", BODY)[0], 200)
                answered += 1
            self.assertEqual(loads.result(timeout=WAIT_S), [200] * 3)
            self.assertEqual(server.terminate(), 0)


class OtherModesTest(unittest.TestCase):
    def test_none_refuses_to_load(self):
        with contextlib.closing(Server()) as server:
            for client in clients(server):
                with self.subTest(client.__module__), contextlib.closing(client):
                    with self.assertRaises(InferenceServerException):
                        client.load_model("echo")
                    self.assertTrue(client.is_model_ready("echo"))
            self.assertEqual(server.terminate(), 0)

    def test_poll_finds_what_comes_and_goes(self):
        def fill(root):
            add_model(root, "echo", identity_config("echo", 8, [("INPUT0", "TYPE_FP32", [4])]))

        def until(condition):
            end = time.monotonic() + WAIT_S
            while not condition():
                self.assertLess(time.monotonic(), end, "the folder was not read again")
                time.sleep(0.05)

        arguments = ("--model-control-mode", "poll", "--poll-seconds", "0.2")
        with contextlib.closing(Server(*arguments, fill=fill)) as server:
            client = http_client.InferenceServerClient(server.http, network_timeout=WAIT_S)
            shutil.copytree(SOURCE / "models" / "ee_s", server.repository.parent / "coming")
            (server.repository.parent / "coming").rename(server.repository / "ee_s")
            until(lambda: client.is_model_ready("ee_s"))
            shutil.rmtree(server.repository / "echo")
            until(lambda: not client.is_model_ready("echo"))
            client.close()
            self.assertEqual(server.terminate(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
