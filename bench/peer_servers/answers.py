"""Whether a server's answers are those of ONNX Runtime."""
import time

import numpy
import tritonclient.grpc
import tritonclient.http
from graph import NETS, Graph
from tritonclient.utils import InferenceServerException

CALLS = 4
WAIT_S = 30  # a worker may load its graph for a while after another one says ready
CLIENTS = {"http": tritonclient.http, "grpc": tritonclient.grpc}


def answer(api, client, model, rows):
    given = api.InferInput(NETS[model].input, rows.shape, "FP32")
    given.set_data_from_numpy(rows)
    end = time.monotonic() + WAIT_S
    while True:
        try:
            return client.infer(model, [given]).as_numpy(NETS[model].output)
        except InferenceServerException:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def wrong_answers(protocol, url, models):
    """What is wrong, or nothing."""
    api = CLIENTS[protocol]
    client = api.InferenceServerClient(url)
    draw = numpy.random.default_rng(1)
    try:
        for model in models:
            graph = Graph(model)
            for _ in range(CALLS):
                rows = draw.standard_normal((1, *NETS[model].dims), numpy.float32)
                wanted = graph(rows)
                got = answer(api, client, model, rows)
                if got is None or not numpy.allclose(got, wanted, atol=1e-3):
                    return f"{model}: {got} instead of {wanted}"
    except InferenceServerException as error:
        return str(error)
    finally:
        client.close()
    return ""
