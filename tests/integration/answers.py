"""The matrix of right answers: small graphs x configurations x protocols x modes of serving, each
answer beside ONNX Runtime's, called alone with the same inputs.

An answer is right if it has the outputs, types and shapes of ONNX Runtime's and its numbers to
TOLERANCES. A call may be refused only where export_answers.py says so, or where KServe has no form
for it (FP16 in JSON), and with a reason."""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import queue
import re
import shutil
import subprocess
import tempfile

import numpy
import onnxruntime
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import serving

CONFIGURATIONS = ("none", "init", "declared")
PROTOCOLS = ("json", "binary", "grpc")
# The options of a server, and the modes that it is asked in.
SERVERS = {"alone": ((), ("alone", "8 threads")), "lanes": (("--lanes", "2"), ("2 lanes",)),
           "isolate": (("--isolate",), ("isolate",))}
THREADS = 8
TIMEOUT_S = 120
START_S = 300  # each of the models is tried first
# Relative and absolute. Batches take sums in another order.
TOLERANCES = {"float16": (4e-3, 4e-3), "float32": (1e-4, 1e-5), "float64": (1e-10, 1e-10)}
REFUSALS_OF_GRPC = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "NOT_FOUND")

Call = collections.namedtuple("Call", "graph number inputs wanted may_be_refused noise")
Cell = collections.namedtuple("Cell", "graph configuration protocol mode number")


class Refused(Exception):
    """The server's reason."""


class Fault(Exception):
    """An error that is the server's own, or no answer."""


class NoOnnxPackage(Exception):
    pass


def export(folder):
    script = pathlib.Path(__file__).with_name("export_answers.py")
    done = subprocess.run(["/usr/bin/python3", script, folder], capture_output=True, text=True)
    if done.returncode == 77:
        raise NoOnnxPackage("no onnx package for /usr/bin/python3; remedy: install Debian's "
                            "python3-onnx")
    assert done.returncode == 0, done.stderr


def calls_of(folder, name):
    """The calls of a graph, each with what ONNX Runtime answers."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / name / "1/model.onnx", options,
                                           providers=["CPUExecutionProvider"])
    inputs = collections.defaultdict(dict)
    beside = folder.with_name(folder.name + ".inputs")
    about = json.loads((beside / "calls.json").read_text())[name]
    with numpy.load(beside / f"{name}.npz") as values:
        for key in values.files:
            number, tensor = key.split("/")
            value = values[key]
            inputs[int(number)][tensor] = value.astype(object) if value.dtype.kind == "U" else value
    outputs = [each.name for each in session.get_outputs()]
    return [Call(name, number, given, dict(zip(outputs, session.run(None, given))),
                 number in about["refused"], about["noise"]) for number, given in inputs.items()]


def difference(got, wanted, noise=0):
    """Why an answer is wrong; None where it is right, and off by `noise` at most."""
    if sorted(got) != sorted(wanted):
        return f"outputs {sorted(got)}, not {sorted(wanted)}"
    for name, want in wanted.items():
        have, want = got[name], numpy.asarray(want)
        if want.shape == () and have.shape == (1,):
            have = have.reshape(())  # a scalar has dims [1], as Triton's configurations do
        if have.shape != want.shape:
            return f"{name} has shape {list(have.shape)}, not {list(want.shape)}"
        if want.dtype.kind in "OSU":
            same = [as_bytes(a) for a in have.flat] == [as_bytes(a) for a in want.flat]
        elif have.dtype != want.dtype:
            return f"{name} is {have.dtype}, not {want.dtype}"
        elif want.dtype.kind == "f":
            relative, absolute = TOLERANCES[want.dtype.name]
            same = numpy.allclose(have, want, rtol=relative, atol=absolute + noise, equal_nan=True)
        else:
            same = numpy.array_equal(have, want)
        if not same and want.dtype.kind in "OSUb":
            return f"{name} has other values"
        if not same:
            apart = numpy.abs(have.astype(float) - want.astype(float)).max()
            return f"{name} differs by up to {apart:.4g}"
    return None


def as_bytes(text):
    return text if isinstance(text, bytes) else str(text).encode()


class Caller:
    """One thread's clients of one server."""

    def __init__(self, server):
        self.server = server
        self.connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT_S)
        self.client = tritonclient.grpc.InferenceServerClient(server.grpc)

    def close(self):
        self.connection.close()
        self.client.close()

    def ask(self, protocol, model, inputs):
        return getattr(self, protocol)(model, inputs)

    def json(self, model, inputs):
        tensors = [{"name": name, "datatype": np_to_triton_dtype(value.dtype),
                    "shape": list(value.shape), "data": value.flatten().tolist()}
                   for name, value in inputs.items()]
        answer = json.loads(self._post(model, json.dumps({"inputs": tensors}).encode(), {})[0])
        got = {}
        for each in answer["outputs"]:
            data = [numpy.nan if value is None else value for value in each["data"]]
            kind = tritonclient.utils.triton_to_np_dtype(each["datatype"])
            got[each["name"]] = numpy.array(data, kind).reshape(each["shape"])
        return got

    def binary(self, model, inputs):
        body, length = tritonclient.http.InferenceServerClient.generate_request_body(
            tensors_of(tritonclient.http, inputs))
        body, length = self._post(model, body, {"Inference-Header-Content-Length": str(length)})
        answer = tritonclient.http.InferenceServerClient.parse_response_body(
            body, header_length=int(length) if length else None)
        return {each["name"]: answer.as_numpy(each["name"])
                for each in answer.get_response()["outputs"]}

    def _post(self, model, body, headers):
        try:
            self.connection.request("POST", f"/v2/models/{model}/infer", body, headers)
            reply = self.connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()  # the next request opens it again
            raise Fault(f"no answer: {error!r}") from error
        if reply.status == 200:
            return text, reply.headers.get("Inference-Header-Content-Length")
        with contextlib.suppress(ValueError, KeyError):
            reason = json.loads(text)["error"]
            if 400 <= reply.status < 500 and reason:
                raise Refused(f"{reply.status}: {reason}")
        raise Fault(f"{reply.status}: {text.decode(errors='replace')}")

    def grpc(self, model, inputs):
        try:
            answer = self.client.infer(model, tensors_of(tritonclient.grpc, inputs),
                                     client_timeout=TIMEOUT_S)
        except InferenceServerException as error:
            status = str(error.status()).removeprefix("StatusCode.")
            kind = Refused if status in REFUSALS_OF_GRPC and error.message() else Fault
            raise kind(f"{status}: {error.message()}") from error
        return {each.name: answer.as_numpy(each.name) for each in answer.get_response().outputs}


def tensors_of(module, inputs):
    tensors = []
    for name, value in inputs.items():
        tensor = module.InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype))
        tensor.set_data_from_numpy(value)
        tensors.append(tensor)
    return tensors


def answer_of(caller, cell, call, shapes):
    """The kind of outcome and why: right, refused (where that is allowed), wrong, denied (where it
    is not) or fault."""
    inputs = {name: value.reshape([1]) if value.shape == () and shapes.get(name) == [1] else value
              for name, value in call.inputs.items()}
    try:
        wrong = difference(caller.ask(cell.protocol, cell.graph, inputs), call.wanted,
                           call.noise)
        return ("wrong", wrong) if wrong else ("right", "")
    except Refused as reason:
        no_form = cell.protocol == "json" and any(v.dtype == "f2" for v in inputs.values())
        return ("refused" if call.may_be_refused or no_form else "denied"), str(reason)
    except Fault as fault:
        return "fault", str(fault)


class Matrix:
    """All graphs and their calls, in a folder of its own until `close`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tactus-answers-")
        self.graphs = pathlib.Path(self.folder.name) / "graphs"
        export(str(self.graphs))
        self.names = sorted(each.name for each in self.graphs.iterdir())
        self.calls = {name: calls_of(self.graphs, name) for name in self.names}
        self.not_inited = {}  # name to what `tactus init` said

    def close(self):
        self.folder.cleanup()

    def fill(self, configuration):
        def copy(root):
            shutil.copytree(self.graphs, root, dirs_exist_ok=True)
            if configuration == "declared":
                for name in self.names:
                    shutil.copy(self.graphs.with_name("graphs.inputs") / f"{name}.pbtxt",
                                root / name / "config.pbtxt")
            if configuration == "init":
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    list(pool.map(lambda name: self._init(root, name), self.names))
        return copy

    def _init(self, root, name):
        done = subprocess.run([serving.TACTUS, "init", root / name / "1/model.onnx"],
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode != 0:
            self.not_inited[name] = done.stderr.strip()

    def judge_false_batches(self):
        """By graph that has no batch and is served with one declared: what was said, "refused: ..."
        or "warned: ..."; empty where nothing was."""
        configs = {path.name.removesuffix(".false.pbtxt"): path
                   for path in self.graphs.with_name("graphs.inputs").glob("*.false.pbtxt")}

        def fill(root):
            for name, path in configs.items():
                if name in self.names:
                    shutil.copytree(self.graphs / name, root / name)
                    shutil.copy(path, root / name / "config.pbtxt")
        server = serving.Server("--strict-readiness", "false", "--log-level", "warning", fill=fill,
                                start_s=START_S)
        with contextlib.closing(server):
            index = json.loads(server.post("/v2/repository/index", b"{}")[2])
            log = server.errors()
        said = {}
        for model in index:
            name = model["name"]
            warning = re.search(rf"model '{name}': max_batch_size is [0-9]+, and ((answers "
                                r"depend on what else is in the batch(: up to [0-9]|: '|, also in)|"
                                r"not all batches run: )[^\n]*)", log)
            refused = model["state"] == "UNAVAILABLE" and "max_batch_size" in model["reason"]
            said[name] = (f"refused: {model['reason']}" if refused else
                          f"warned: {warning[1]}" if warning else "")
        return said

    def serve(self, configuration, kind, rounds):
        """(Cell, outcome, why) of each call that one server is asked. `rounds`: how often each is
        asked at once with others of its graph, over every protocol; 0: once, over one of them."""
        options, modes = SERVERS[kind]
        arguments = ("--default-slo-ms", "600000", "--log-level", "warning", *options)
        results = []
        server = serving.Server(*arguments, fill=self.fill(configuration),
                                start_s=START_S)
        with contextlib.closing(server):
            shapes = {}
            for name in self.names:
                with contextlib.suppress(OSError):  # a model that is not ready
                    inputs = json.loads(server.get(f"/v2/models/{name}"))["inputs"]
                    shapes[name] = {each["name"]: each["shape"] for each in inputs}
            for mode in modes:
                alone = mode == "alone"
                jobs = queue.SimpleQueue()
                for name in self.names:
                    for _ in range(1 if alone else max(rounds, 1)):
                        for at, call in enumerate(self.calls[name]):
                            one = (PROTOCOLS[at % len(PROTOCOLS)],)
                            for protocol in PROTOCOLS if rounds or alone else one:
                                jobs.put((Cell(name, configuration, protocol, mode, call.number),
                                          call))
                results += ask_all(server, jobs, shapes, 1 if alone else THREADS)
        return results


def ask_all(server, jobs, shapes, threads):
    """Threads take the jobs in their order, so that calls of one graph meet."""
    def work():
        results = []
        caller = Caller(server)
        with contextlib.closing(caller), contextlib.suppress(queue.Empty):
            while True:
                cell, call = jobs.get_nowait()
                results.append((cell, *answer_of(caller, cell, call, shapes.get(cell.graph, {}))))
        return results

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return [each for done in [pool.submit(work) for _ in range(threads)]
                for each in done.result()]


def count(results):
    """How many of each outcome."""
    return collections.Counter(outcome for _, outcome, _ in results)


def failures(results):
    """A line for each graph, configuration, mode and reason of what should not have happened."""
    groups = collections.defaultdict(list)
    for cell, outcome, why in results:
        if outcome not in ("right", "refused"):
            groups[cell.graph, cell.configuration, cell.mode, outcome].append((cell, why))
    lines = []
    for (graph, configuration, mode, outcome), found in sorted(groups.items()):
        protocols = sorted({cell.protocol for cell, _ in found})
        calls = sorted({cell.number for cell, _ in found})
        lines.append(f"{outcome}: {graph}, config {configuration}, {mode}: {len(found)} calls "
                     f"(numbers {', '.join(map(str, calls))}; {', '.join(protocols)}): "
                     f"{found[0][1]}")
    return lines
