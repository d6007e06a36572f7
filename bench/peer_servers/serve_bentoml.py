"""BentoML with its adaptive batching, whose `max_latency_ms` drops what would take longer, and a
bound for the calls in progress. A process for each core serves all models."""
import logging
import os
import pathlib
import sys

import bentoml
from graph import NETS, Graph, answer_of, arguments, metadata, rows_of
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SPEC = "TACTUS_PEERS_SPEC"


class Rows(bentoml.IODescriptor):
    rows: object

    @classmethod
    async def from_http_request(cls, request, serde):
        return cls.model_construct(rows=rows_of(request.headers, await request.body()))


def api(name, model, setting):
    class Answer(bentoml.IODescriptor):
        @classmethod
        async def to_http_response(cls, obj, serde):
            body, headers = answer_of(name, obj)
            return Response(body, headers=headers)

    def infer(self, rows):
        return self.graphs[name](rows)

    infer.__name__ = name
    return bentoml.api(route=f"/v2/models/{name}/infer", input_spec=Rows, output_spec=Answer,
                       batchable=True, max_batch_size=NETS[name].max_batch,
                       max_latency_ms=int(setting["timeout"] * model["slo_ms"]))(infer)


def service(spec):
    def __init__(self):
        self.graphs = {name: Graph(name) for name in spec["models"]}

    def described(request):
        return JSONResponse(metadata(request.path_params["name"]))

    apis = {name: api(name, model, spec["setting"]) for name, model in spec["models"].items()}
    made = bentoml.service(workers=spec["cores"], traffic={"max_concurrency": spec["queue"]},
                           metrics={"enabled": False}, logging={"access": {"enabled": False}})(
        type("Peer", (), {"__init__": __init__, "__module__": __name__, **apis}))
    made.mount_asgi_app(Starlette(routes=[Route("/{name}", described)]), path="/v2/models")
    return made


if __name__ == "__main__":
    args, _ = arguments()
    os.environ[SPEC] = str(args.spec)
    program = pathlib.Path(sys.executable).parent / "bentoml"
    os.execv(program, [str(program), "serve", "serve_bentoml:Peer", "--host", "127.0.0.1", "--port",
                       str(args.http_port), "--working-dir", str(pathlib.Path(__file__).parent)])
else:
    import json
    logging.getLogger("bentoml").setLevel(logging.CRITICAL)  # else a traceback for each refusal
    Peer = service(json.loads(pathlib.Path(os.environ[SPEC]).read_text()))
