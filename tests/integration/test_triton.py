"""What clients made for Triton look for in answers, with --strict-triton: texts, codes, classes."""

import contextlib
import json
import queue
import shutil
import signal
import time
import unittest

import grpc
import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from serving import (SOURCE, WAIT_S, Server, ServedTest, add_model, identity_config,
                     make_repository_with_pipeline)

RAW = {"Inference-Header-Content-Length": "0"}


def fp32(client, array, shape=None):
    tensor = client.InferInput("INPUT0", array.shape, "FP32")
    tensor.set_data_from_numpy(array)
    if shape:
        tensor.set_shape(shape)
    return tensor


def both_clients(server):
    return ((http_client, http_client.InferenceServerClient(server.http, network_timeout=WAIT_S)),
            (grpc_client, grpc_client.InferenceServerClient(server.grpc)))


class RequestTest(ServedTest):
    arguments = ("--strict-triton",)

    def refused(self, model, body, headers=None):
        status, _, answer = self.server.post(f"/v2/models/{model}/infer", body, headers)
        self.assertEqual(status, 400, answer)
        return json.loads(answer)["error"]

    def refused_tensor(self, shape, data, outputs="[]"):
        return self.refused("large", f'{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":'
                            f'{shape},"data":{data}}}],"outputs":{outputs}}}'.encode())

    def test_inputs_that_are_missing_are_listed(self):
        words = numpy.array([b"a"], dtype=numpy.object_)
        for client, connected in both_clients(self.server):
            tensor = client.InferInput("text", [1], "BYTES")
            tensor.set_data_from_numpy(words)
            with self.assertRaises(InferenceServerException) as error:
                connected.infer("any", [tensor])
            self.assertIn("expected 6 inputs but got 1 inputs for model 'any'. Got input(s) "
                          "['text'], but missing required input(s) "
                          "['long','half','flag','byte','double']. Please provide all required "
                          "input(s).", str(error.exception))

    def test_a_tensor_of_another_size_than_its_shape_says(self):
        for client, connected in both_clients(self.server):
            with self.assertRaises(InferenceServerException) as error:
                connected.infer("echo", [fp32(client, numpy.zeros((1, 6), "f4"), (1, 4))])
            self.assertIn("input byte size mismatch for input 'INPUT0' for model 'echo'. Expected "
                          "16, got 24", str(error.exception))

    def test_shapes_that_no_memory_holds(self):
        self.assertIn("causes total element count to exceed maximum size of",
                      self.refused_tensor([16, 2**60 + 2], "[1]"))
        self.assertIn("byte size overflow for input", self.refused_tensor([4, 2**60 + 2], "[1]"))

    def test_data_may_be_nested_in_any_way_that_has_its_values(self):
        body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2,4],"data":%b}]}'
        for data in (b"[[[1,2,3,4,5,6,7,8]]]", b"[[1,2],[3,4],[5,6],[7,8]]"):
            status, _, answer = self.server.post("/v2/models/echo/infer", body % data)
            self.assertEqual(status, 200, answer)
            self.assertEqual(json.loads(answer)["outputs"][0]["data"], list(range(1, 9)))
        self.assertIn("JSON nesting depth exceeds maximum allowed limit (100)",
                      self.refused_tensor([1], "[" * 120 + "1" + "]" * 120))
        for data in ("[1,2,3]", "[1,2,3,4,5]"):
            self.assertEqual(self.refused_tensor([4], data), "Unable to parse 'data': Shape does "
                             "not match true shape of 'data' field")

    def test_an_output_that_is_asked_for_twice(self):
        self.assertIn("Duplicate output name 'OUTPUT0' is not allowed in a request",
                      self.refused_tensor([1], "[1]", '[{"name":"OUTPUT0"},{"name":"OUTPUT0"}]'))

    def test_raw_requests_whose_shape_does_not_follow(self):
        self.assertIn("Raw request must only have 1 input (found 1) to be deduced but got 6 inputs "
                      "in 'any' model configuration", self.refused("any", b"12345678", RAW))

    def test_both_kinds_of_contents(self):
        request = service_pb2.ModelInferRequest(model_name="echo")
        tensor = request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
        tensor.contents.fp32_contents.extend([1, 2, 3, 4])
        request.inputs.add(name="INPUT1", datatype="FP32", shape=[1, 4])
        request.raw_input_contents.append(b"0" * 16)
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            with self.assertRaises(grpc.RpcError) as error:
                stub.ModelInfer(request, timeout=WAIT_S)
            self.assertIn("contents field must not be specified when using raw_input_contents for "
                          "'INPUT0' for model 'echo'", error.exception.details())
            request.model_version = "newest"
            with self.assertRaises(grpc.RpcError) as error:
                stub.ModelInfer(request, timeout=WAIT_S)
            self.assertIn("failed to get model version from specified version string 'newest'",
                          error.exception.details())

    def test_the_deadline_of_a_stream_is_grpcs(self):
        client = grpc_client.InferenceServerClient(self.server.grpc)
        done = queue.Queue()
        client.start_stream(lambda result, error: done.put((result, error)), stream_timeout=0.1)
        client.async_stream_infer("slow", [fp32(grpc_client, numpy.zeros((1, 4), "f4"))])
        result, error = done.get(timeout=WAIT_S)
        client.stop_stream()
        self.assertIsNone(result)
        self.assertIn("Deadline Exceeded", str(error))

    def test_loads_where_models_are_not_loaded_by_clients(self):
        for _, connected in both_clients(self.server):
            for ask in (connected.load_model, connected.unload_model):
                with self.assertRaises(InferenceServerException) as error:
                    ask("echo")
                self.assertTrue(error.exception.message().startswith(
                    "explicit model load / unload is not allowed if polling is enabled"))


class ClassesTest(unittest.TestCase):
    def fill(self, root):
        tensors = [("INPUT0", "TYPE_FP32", [-1])]
        add_model(root, "scores", identity_config(
            "scores", 8, tensors, 'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] '
            'label_filename: "names.txt" } ]'))
        (root / "scores" / "names.txt").write_text("cat\ndog\n")
        add_model(root, "words", identity_config("words", 8, [("INPUT0", "TYPE_STRING", [-1])]))

    def test_the_highest_values_come_with_index_and_name(self):
        rows = numpy.array([[0.5, 2, 1], [9, 7, 8]], dtype="f4")
        with contextlib.closing(Server(fill=self.fill)) as server:
            for client, connected in both_clients(server):
                asked = client.InferRequestedOutput("OUTPUT0", class_count=2)
                answer = connected.infer("scores", [fp32(client, rows)], outputs=[asked])
                self.assertEqual(answer.as_numpy("OUTPUT0").tolist(),
                                 [[b"2.000000:1:dog", b"1.000000:2"],
                                  [b"9.000000:0:cat", b"8.000000:2"]])
                tensor = client.InferInput("INPUT0", [1, 1], "BYTES")
                tensor.set_data_from_numpy(numpy.array([[b"x"]], dtype=numpy.object_))
                with self.assertRaises(InferenceServerException) as error:
                    connected.infer("words", [tensor], outputs=[asked])
                self.assertIn("class result not available for output due to unsupported type "
                              "'BYTES'", str(error.exception))
            stream = both_clients(server)[1][1]
            done = queue.Queue()
            stream.start_stream(lambda result, error: done.put((result, error)))
            asked = grpc_client.InferRequestedOutput("OUTPUT0", class_count=1)
            stream.async_stream_infer("scores", [fp32(grpc_client, rows)], outputs=[asked])
            result, error = done.get(timeout=WAIT_S)
            stream.stop_stream()
            self.assertIsNone(error)
            self.assertEqual(result.as_numpy("OUTPUT0").tolist(),
                             [[b"2.000000:1:dog"], [b"9.000000:0:cat"]])
            body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 3],
                                           "data": [1, 3, 2]}],
                               "outputs": [{"name": "OUTPUT0",
                                            "parameters": {"classification": 1}}]})
            status, _, answer = server.post("/v2/models/scores/infer", body.encode())
            self.assertEqual(status, 200, answer)
            output = json.loads(answer)["outputs"][0]
            self.assertEqual((output["datatype"], output["shape"], output["data"]),
                             ("BYTES", [1, 1], ["3.000000:1:dog"]))


class ModelControlTest(unittest.TestCase):
    def explicit(self, *arguments):
        return contextlib.closing(Server("--model-control-mode", "explicit", *arguments,
                                         fill=make_repository_with_pipeline))

    def message(self, ask, *arguments, **more):
        with self.assertRaises(InferenceServerException) as error:
            ask(*arguments, **more)
        return error.exception.message()

    def test_what_failed_is_said_in_tritons_words(self):
        with self.explicit("--strict-triton") as server:
            (server.repository / "ee_s" / "1" / "exit1.onnx").unlink(missing_ok=True)
            shutil.rmtree(server.repository / "ee_s" / "1")
            for client, connected in both_clients(server):
                self.assertIn("failed to load 'nobody', failed to poll from model repository",
                              self.message(connected.load_model, "nobody"))
                self.assertIn("load failed for model 'ee_s'",
                              self.message(connected.load_model, "ee_s"))
                self.assertIn("failed to load 'echo'",
                              self.message(connected.load_model, "echo", config='"not": {'))
                connected.unload_model("nobody")  # nothing is to be done, and nothing is wrong
                connected.load_model("echo")
                connected.unload_model("echo")
                zeros = [fp32(client, numpy.zeros((1, 4), "f4"))]
                self.assertIn("Request for unknown model: 'echo' has no available versions",
                              self.message(connected.infer, "echo", zeros))
                self.assertIn("Request for unknown model: 'echo' version 1 is not at ready state",
                              self.message(connected.infer, "echo", zeros, model_version="1"))

    def test_an_unknown_model_cannot_be_unloaded_without_strict_triton(self):
        with self.explicit() as server:
            for _, connected in both_clients(server):
                self.assertIn("'nobody'", self.message(connected.unload_model, "nobody"))

    def test_an_ensemble_takes_the_models_of_its_steps_along_if_asked(self):
        with self.explicit() as server:
            for _, connected in both_clients(server):
                connected.load_model("twice")
                connected.unload_model("twice")
                self.assertFalse(connected.is_model_ready("twice"))
                self.assertTrue(connected.is_model_ready("echo"))
                connected.load_model("twice")
                connected.unload_model("twice", unload_dependents=True)
                self.assertFalse(connected.is_model_ready("twice"))
                self.assertFalse(connected.is_model_ready("echo"))


class ReshapeTest(unittest.TestCase):
    """A graph whose tensors are [batch] and [batch, cells, 2]; clients have a dimension more."""

    def fill(self, root):
        # Without the batch dimension: name, type, what clients have, what the graph has.
        inputs = (("x", "FP32", "1", ""), ("cells", "FP32", "-1, 1, 2", "-1, 2"),
                  ("word", "STRING", "1", ""))
        outputs = (("y", "FP32", "1, 1", ""), ("doubled", "FP32", "1, -1, 2", "-1, 2"),
                   ("same", "STRING", "1", ""))

        def tensors(side, of, inside=True):
            return "".join(
                f'{side} {{ name: "{name}" data_type: TYPE_{kind} dims: [ {dims} ] '
                f'{f"reshape {{ shape: [ {shape} ] }}" if inside else ""} }}\n'
                for name, kind, dims, shape in of)
        add_model(root, "vector", 'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n'
                  + tensors("input", inputs) + tensors("output", outputs)
                  + 'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')
        shutil.copy(SOURCE / "tests" / "data" / "vector.onnx", root / "vector" / "1" / "model.onnx")
        maps = "".join(f'{side}_map {{ key: "{each[0]}" value: "{each[0]}" }} '
                       for side, of in (("input", inputs), ("output", outputs)) for each in of)
        add_model(root, "around", 'platform: "ensemble"\nmax_batch_size: 8\n'
                  + tensors("input", inputs, False) + tensors("output", outputs, False)
                  + f'ensemble_scheduling {{ step {{ model_name: "vector" {maps} }} }}\n'
                  + 'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')

    def ask(self, client, connected, model, rows):
        x = numpy.arange(1, rows + 1, dtype="f4").reshape(rows, 1)
        cells = numpy.arange(rows * 6, dtype="f4").reshape(rows, 3, 1, 2)
        words = numpy.array([[b"word %d" % row] for row in range(rows)], dtype=numpy.object_)
        tensors = []
        for name, values, kind in (("x", x, "FP32"), ("cells", cells, "FP32"),
                                   ("word", words, "BYTES")):
            tensors.append(client.InferInput(name, values.shape, kind))
            tensors[-1].set_data_from_numpy(values)
        answer = connected.infer(model, tensors)
        numpy.testing.assert_array_equal(
            answer.as_numpy("y"), (x[:, 0] * cells.sum(axis=(1, 2, 3))).reshape(rows, 1, 1))
        numpy.testing.assert_array_equal(answer.as_numpy("doubled"),
                                         2 * cells.reshape(rows, 1, 3, 2))
        numpy.testing.assert_array_equal(answer.as_numpy("same"), words)

    def test_clients_send_and_receive_dims_and_the_graph_has_its_own(self):
        for arguments in ((), ("--isolate",)):
            with contextlib.closing(Server(*arguments, fill=self.fill)) as server:
                for client, connected in both_clients(server):
                    for model in ("vector", "around"):
                        for rows in (1, 3, 8):
                            self.ask(client, connected, model, rows)
                    flat = client.InferInput("x", [1], "FP32")
                    flat.set_data_from_numpy(numpy.zeros(1, "f4"))
                    with self.assertRaisesRegex(InferenceServerException,
                                                r"Expected \[-1,1\], got \[1\]"):
                        connected.infer("vector", [flat])
                config = json.loads(server.get("/v2/models/vector/config"))
                self.assertEqual([each["reshape"]["shape"] for each in config["input"]],
                                 [[], [-1, 2], []])
                self.assertEqual(config["output"][1]["dims"], [1, -1, 2])
                metadata = json.loads(server.get("/v2/models/vector"))
                self.assertEqual(metadata["outputs"][0]["shape"], [-1, 1, 1])


class LogSettingsTest(unittest.TestCase):
    def lines_of_a_hangup(self, server, awaited=True):
        """What the server logs when it is asked to read a plan again that it does not have."""
        before = len(server.errors())
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + (WAIT_S if awaited else 0.5)
        while len(server.errors()) == before and time.monotonic() < end:
            time.sleep(0.02)
        return server.errors()[before:]

    def test_both_clients_read_and_change_what_is_logged(self):
        with contextlib.closing(Server()) as server:
            self.assertRegex(self.lines_of_a_hangup(server), r"^\d{4}-\d\d-\d\dT.* info SIGHUP")
            for module, client in both_clients(server):
                asked = {"as_json": True} if module is grpc_client else {}
                said = client.get_log_settings(**asked)
                self.assertEqual(set(said.get("settings", said)), {
                    "log_error", "log_file", "log_format", "log_info", "log_verbose_level",
                    "log_warning"})
                client.update_log_settings({"log_info": False})
                self.assertEqual(self.lines_of_a_hangup(server, awaited=False), "")
                client.update_log_settings({"log_info": True, "log_format": "default"})
                self.assertRegex(self.lines_of_a_hangup(server), r"^I\d{4} \d\d:\d\d:.* SIGHUP")
                client.update_log_settings({"log_format": "ISO8601"})
                for wrong in ({"log_file": "elsewhere"}, {"log_format": "short"}):
                    with self.assertRaisesRegex(InferenceServerException, list(wrong)[0]):
                        client.update_log_settings(wrong)
            self.assertIn('"logging"', server.get("/v2"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
