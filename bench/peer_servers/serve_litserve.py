"""LitServe with batches and its timeout, which drops what waited longer in the queue; it has no
bound for the queue. A worker for each model and core."""
from typing import Annotated, Any

import litserve
import numpy
from fastapi import Depends, Request, Response
from graph import NETS, Graph, answer_of, arguments, metadata, rows_of


async def rows_in(request: Request):
    return rows_of(request.headers, await request.body())


class GraphAPI(litserve.LitAPI):
    def __init__(self, name, batches, wait_s):
        super().__init__(api_path=f"/v2/models/{name}/infer", batch_timeout=wait_s,
                         max_batch_size=NETS[name].max_batch if batches else 1)
        self.name = name

    def setup(self, device):
        self.graph = Graph(self.name)

    def decode_request(self, request: Annotated[Any, Depends(rows_in)]):
        return request

    def batch(self, inputs):
        return numpy.concatenate(inputs)

    def predict(self, x):
        return self.graph(x)

    def unbatch(self, output):
        return numpy.split(output, len(output))  # each call has one row

    def encode_response(self, output) -> Response:
        body, headers = answer_of(self.name, output)
        return Response(body, headers=headers)


def main():
    args, spec = arguments()
    setting = spec["setting"]
    apis = [GraphAPI(name, setting["batches"], setting["wait_s"]) for name in spec["models"]]
    server = litserve.LitServer(apis, accelerator="cpu", devices=1, fast_queue=True,
                                workers_per_device=spec["cores"],
                                healthcheck_path="/v2/health/ready")
    for api, model in zip(apis, spec["models"].values()):
        api.request_timeout = setting["timeout"] * model["slo_ms"] / 1000
    server.app.add_api_route("/v2/models/{name}", metadata)
    server.run(host="127.0.0.1", port=args.http_port, num_api_servers=spec["cores"],
               log_level="critical", generate_client_file=False)


if __name__ == "__main__":
    main()
