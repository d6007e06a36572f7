"""MLServer with its adaptive batching. It has no bound for its queue and no timeout of a request;
its HTTP has no binary tensors, so it is called by gRPC."""
import json
import os
import pathlib
import sys

from graph import NETS, Graph, arguments, metadata
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class GraphModel(MLModel):
    async def load(self):
        self.graph = Graph(self.name)
        return True

    async def predict(self, payload):
        rows = self.graph(NumpyCodec.decode_input(payload.inputs[0]))
        output = NumpyCodec.encode_output(self.graph.net.output, rows)
        return InferenceResponse(model_name=self.name, outputs=[output])


def main():
    args, spec = arguments()
    folder = args.spec.parent / "mlserver"
    folder.mkdir()
    settings = {"debug": False, "host": "127.0.0.1", "http_port": args.http_port,
                "grpc_port": args.grpc_port, "metrics_port": args.metrics_port,
                "metrics_endpoint": None,
                "parallel_workers": spec["setting"]["workers"] * spec["cores"]}
    (folder / "settings.json").write_text(json.dumps(settings))
    for name in spec["models"]:
        (folder / name).mkdir()
        said = metadata(name)
        (folder / name / "model-settings.json").write_text(json.dumps({
            "name": name, "implementation": "serve_mlserver.GraphModel",
            "inputs": said["inputs"], "outputs": said["outputs"],
            "max_batch_size": NETS[name].max_batch, "max_batch_time": spec["setting"]["wait_s"],
            "parameters": {"version": "1"}}))
    os.chdir(folder)
    program = pathlib.Path(sys.executable).parent / "mlserver"
    os.execv(program, [str(program), "start", str(folder)])


if __name__ == "__main__":
    main()
