"""A model of Triton's Python backend: the graph in its version's folder, by ONNX Runtime on one
thread; or, where there is none, its inputs as they are, after `sleep_ms` if its config says so."""
import json
import os
import pathlib
import sys
import time

# The backend ignores PYTHONPATH.
sys.path[:0] = os.environ["MODEL_PACKAGES"].split(":")

import triton_python_backend_utils as pb_utils  # noqa: E402


def same(tensor, bf16):
    if bf16:  # which numpy lacks
        return pb_utils.Tensor.from_dlpack(tensor.name(), tensor.to_dlpack())
    return pb_utils.Tensor(tensor.name(), tensor.as_numpy())


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.sleep = float(config["parameters"].get("sleep_ms", {}).get("string_value", 0)) / 1e3
        self.bf16 = config["input"][0]["data_type"] == "TYPE_BF16"
        self.outputs = [output["name"] for output in config["output"]]
        folder = pathlib.Path(args["model_repository"]) / args["model_version"]
        graph = folder / config["parameters"].get("graph", {}).get("string_value", "model.onnx")
        self.session = self.open(graph) if graph.exists() else None

    @staticmethod
    def open(graph):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(str(graph), options,
                                            providers=["CPUExecutionProvider"])

    def execute(self, requests):
        time.sleep(self.sleep)
        return [pb_utils.InferenceResponse(output_tensors=self.answer(request))
                for request in requests]

    def answer(self, request):
        if self.session is None:
            asked = set(request.requested_output_names())
            return [same(tensor, self.bf16) for tensor in request.inputs()
                    if tensor.name() in asked]
        given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        asked = [name for name in self.outputs if name in request.requested_output_names()]
        values = self.session.run(asked, given)
        return [pb_utils.Tensor(name, value) for name, value in zip(asked, values)]
