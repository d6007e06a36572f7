"""A model of Triton's Python backend: the network of the model's name, one run for each batch."""
import os
import sys

# The backend ignores PYTHONPATH.
sys.path[:0] = [os.environ["PEER_SERVERS"], *os.environ["MODEL_PACKAGES"].split(":")]

import numpy  # noqa: E402
import triton_python_backend_utils as pb_utils  # noqa: E402
from graph import Graph  # noqa: E402


class TritonPythonModel:
    def initialize(self, args):
        self.graph = Graph(args["model_name"])

    def execute(self, requests):
        given = [request.inputs()[0].as_numpy() for request in requests]
        ends = numpy.cumsum([len(rows) for rows in given])
        answers = numpy.split(self.graph(numpy.concatenate(given)), ends[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor(self.graph.net.output, rows)])
                for rows in answers]
