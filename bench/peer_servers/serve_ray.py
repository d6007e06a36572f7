"""Ray Serve with dynamic batches, a bound for each model's queue and the timeout of its proxy,
which is one for all models. A replica for each model and core."""
import signal

import numpy
import ray
from graph import NETS, Graph, answer_of, arguments, metadata, rows_of
from ray import serve
from starlette.responses import JSONResponse, Response


def served(name, model, spec):
    setting = spec["setting"]

    @serve.deployment(num_replicas=spec["cores"], ray_actor_options={"num_cpus": 0},
                      max_ongoing_requests=setting["ongoing"], max_queued_requests=model["queue"])
    class Model:
        def __init__(self):
            self.graph = Graph(name)

        @serve.batch(max_batch_size=NETS[name].max_batch,
                     batch_wait_timeout_s=setting["wait_s"])
        async def infer(self, calls):
            rows = self.graph(numpy.concatenate(calls))
            return numpy.split(rows, len(rows))  # each call has one row

        async def __call__(self, request):
            if request.method == "GET":
                return JSONResponse(metadata(name))
            rows = await self.infer(rows_of(request.headers, await request.body()))
            body, headers = answer_of(name, rows)
            return Response(body, headers=headers)

    return Model.bind()


def main():
    args, spec = arguments()
    ray.init(num_cpus=spec["cores"], include_dashboard=False, _node_ip_address="127.0.0.1",
             object_store_memory=100 << 20, _temp_dir=str(args.spec.parent / "ray"),
             configure_logging=False)
    longest = max(model["slo_ms"] for model in spec["models"].values()) / 1000
    serve.start(http_options={"host": "127.0.0.1", "port": args.http_port,
                              "request_timeout_s": longest})
    for name, model in spec["models"].items():
        serve.run(served(name, model, spec), name=name, route_prefix=f"/v2/models/{name}")
    signal.pause()  # Ray ends all that it started when SIGTERM ends this process


if __name__ == "__main__":
    main()
