"""tritonclient over HTTP: everything the protocol offers, and answers equal to ONNX Runtime's."""

import json
import subprocess
import unittest

import numpy
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

import reference
from serving import WAIT_S, ServedTest


class HttpTest(ServedTest):
    def setUp(self):
        self.client = client.InferenceServerClient(self.server.http, network_timeout=WAIT_S)
        self.addCleanup(self.client.close)

    def infer_images(self, batch, binary, **more):
        tensor = client.InferInput("input", batch.shape, "FP32")
        tensor.set_data_from_numpy(batch, binary_data=binary)
        output = client.InferRequestedOutput("logits", binary_data=binary)
        return self.client.infer("ee_s", [tensor], outputs=[output], **more)

    def test_health(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("ee_s"))
        self.assertFalse(self.client.is_model_ready("nobody"))

    def test_metadata(self):
        server = self.client.get_server_metadata()
        self.assertEqual(server["name"], "tactus")
        self.assertIn("statistics", server["extensions"])
        model = self.client.get_model_metadata("ee_s")
        self.assertEqual(model["versions"], ["1"])
        self.assertEqual(model["inputs"],
                         [{"name": "input", "datatype": "FP32", "shape": [-1, 1, 28, 28]}])
        self.assertEqual(model["outputs"],
                         [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}])

    def test_config(self):
        config = self.client.get_model_config("ee_s")
        self.assertEqual(config["name"], "ee_s")
        self.assertEqual(config["max_batch_size"], 10)
        self.assertEqual(config["parameters"]["slo_ms"]["string_value"], "60000")

    def test_binary_and_json_tensors_equal_onnx_runtime(self):
        for rows in (1, 3, 10):
            for binary in (True, False):
                with self.subTest(rows=rows, binary=binary):
                    batch = reference.images(rows, seed=rows)
                    answer = self.infer_images(batch, binary, request_id="r1")
                    said = answer.get_response()
                    self.assertEqual(said["id"], "r1")
                    self.assertIn(said["parameters"]["tactus_exit"], "1234")
                    self.assertGreaterEqual(said["parameters"]["tactus_batch_size"], 1)
                    self.assertGreaterEqual(said["parameters"]["tactus_execution_us"], 1)
                    reference.assert_same(self, answer.as_numpy("logits"), "ee_s",
                                          said["parameters"]["tactus_exit"], batch)

    def test_compression_both_ways(self):
        batch = reference.images(4)
        for request in (None, "gzip", "deflate"):
            for response in (None, "gzip", "deflate"):
                with self.subTest(request=request, response=response):
                    answer = self.infer_images(batch, True,
                                               request_compression_algorithm=request,
                                               response_compression_algorithm=response)
                    exit_name = answer.get_response()["parameters"]["tactus_exit"]
                    reference.assert_same(self, answer.as_numpy("logits"), "ee_s", exit_name, batch)

    def test_every_type_comes_back(self):
        arrays = {
            "text": numpy.array([b"", b"one", "zwölf".encode()], dtype=numpy.object_),
            "long": numpy.array([[-2**63, 2**63 - 1], [0, 1]], dtype=numpy.int64),
            "half": numpy.array([0.5, -2], dtype=numpy.float16),
            "flag": numpy.array([True, False, True]),
            "byte": numpy.arange(256, dtype=numpy.uint8),
            "double": numpy.array([1e-300, 1e300]),
        }
        types = {"text": "BYTES", "long": "INT64", "half": "FP16", "flag": "BOOL", "byte": "UINT8",
                 "double": "FP64"}
        for binary in (True, False):
            inputs = []
            for name, array in arrays.items():
                tensor = client.InferInput(name, array.shape, types[name])
                # FP16 has no JSON form.
                tensor.set_data_from_numpy(array, binary_data=binary or name == "half")
                inputs.append(tensor)
            answer = self.client.infer("any", inputs)
            for i, (name, array) in enumerate(arrays.items()):
                with self.subTest(binary=binary, name=name):
                    numpy.testing.assert_array_equal(answer.as_numpy(f"OUTPUT{i}"), array)

    def test_nan_and_infinities_without_quotes(self):
        array = numpy.array([numpy.nan, numpy.inf, -numpy.inf, 1.5], dtype=numpy.float32)
        tensor = client.InferInput("INPUT0", array.shape, "FP32")
        tensor.set_data_from_numpy(array, binary_data=False)
        answer = self.client.infer("large", [tensor])
        numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), array)

    def test_ten_megabytes(self):
        array = numpy.random.default_rng(1).normal(size=2_500_000).astype(numpy.float32)
        tensor = client.InferInput("INPUT0", array.shape, "FP32")
        tensor.set_data_from_numpy(array)
        answer = self.client.infer("large", [tensor])
        numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), array)

    def test_many_at_once(self):
        batch = reference.images(1)
        tensor = client.InferInput("input", batch.shape, "FP32")
        tensor.set_data_from_numpy(batch)
        with client.InferenceServerClient(self.server.http, concurrency=16) as many:
            waiting = [many.async_infer("ee_s", [tensor]) for _ in range(64)]
            for call in waiting:
                answer = call.get_result(timeout=WAIT_S)
                exit_name = answer.get_response()["parameters"]["tactus_exit"]
                reference.assert_same(self, answer.as_numpy("logits"), "ee_s", exit_name, batch)

    def test_statistics_count_this_call(self):
        def rows():
            stats = self.client.get_inference_statistics("ee_s", "1")["model_stats"]
            self.assertEqual(len(stats), 1)
            return stats[0]["inference_count"], stats[0]["inference_stats"]["success"]["count"]

        before = rows()
        self.infer_images(reference.images(5), True)
        after = rows()
        self.assertEqual(after[0] - before[0], 5)
        self.assertEqual(after[1] - before[1], 1)

    def test_index(self):
        index = {model["name"]: model for model in self.client.get_model_repository_index()}
        self.assertEqual(index["ee_s"]["state"], "READY")
        self.assertEqual(index["ee_s"]["version"], "1")

    def test_unknown_model(self):
        tensor = client.InferInput("input", (1, 1, 28, 28), "FP32")
        tensor.set_data_from_numpy(reference.images(1))
        with self.assertRaisesRegex(InferenceServerException, "nobody"):
            self.client.infer("nobody", [tensor])

    def test_curl(self):
        body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [2, 4],
                                       "data": [[1, 2, 3, 4], [5, 6, 7, 8]]}]})
        done = subprocess.run(
            ["curl", "--silent", "--fail", "--max-time", str(WAIT_S), "--json", body,
             f"http://{self.server.http}/v2/models/echo/infer"],
            capture_output=True, text=True, timeout=WAIT_S + 5)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["model_name"], "echo")
        output = answer["outputs"][0]
        self.assertEqual(output["shape"], [2, 4])
        self.assertEqual(numpy.ravel(output["data"]).tolist(), [1, 2, 3, 4, 5, 6, 7, 8])


if __name__ == "__main__":
    unittest.main(verbosity=2)
