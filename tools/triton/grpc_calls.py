"""The calls over gRPC, in an order that matters as in http_calls.py."""
import dataclasses

from tritonclient.grpc import service_pb2 as pb

from models import DESCRIBED, TYPES
from tensor_values import CONTENTS, VALUES, packed

VERSIONS = ("1", "2", "3", "0", "-1", "01", "x", "1.0", "9" * 20)
GOOD = [1.0, 2.0, 3.0, 4.0]


@dataclasses.dataclass
class GrpcCall:
    """`requests`: one message, or bytes in its place; of a stream, all that are sent."""
    name: str
    method: str
    requests: list
    metadata: tuple = ()


def call(name, method, request=None, metadata=()):
    made = request if request is not None else getattr(pb, f"{method}Request")()
    return GrpcCall(f"grpc/{name}", method, [made], metadata)


def tensor(request, data, kind="FP32", shape=None, name="x", raw=True):
    """Adds an input."""
    made = request.inputs.add(name=name, datatype=kind, shape=shape or [len(data)])
    if raw:
        request.raw_input_contents.append(packed(kind, data))
    elif kind in CONTENTS:
        data = [d.encode() if isinstance(d, str) else d for d in data]
        getattr(made.contents, CONTENTS[kind]).extend(data)
    return made


def request(model, *tensors, version="", **more):
    made = pb.ModelInferRequest(model_name=model, model_version=version, **more)
    for data, options in tensors:
        tensor(made, data, **options)
    return made


def good(model="batched", **more):
    return request(model, (GOOD, {"shape": [1, 4]}), **more)


def infer(name, message, metadata=()):
    return call(name, "ModelInfer", message, metadata)


def server():
    for method in ("ServerLive", "ServerReady", "ServerMetadata", "ModelStatistics",
                   "RepositoryIndex"):
        yield call(f"server/{method}", method)
    yield GrpcCall("grpc/server/unknown method", "NoSuchMethod", [b""])
    for method in ("ServerLive", "ModelInfer", "ModelMetadata"):
        yield GrpcCall(f"grpc/server/{method} of rubbish", method, [b"\xff\xff\xff"])
    for model in (*DESCRIBED, ""):
        for method in ("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"):
            if method == "ModelStatistics" and not model:
                continue  # all, as above
            made = getattr(pb, f"{method}Request")(name=model)
            yield call(f"metadata/{method} {model}", method, made)
    for model in ("versioned", "latest"):
        for version in VERSIONS:
            for method in ("ModelReady", "ModelMetadata", "ModelStatistics", "ModelConfig"):
                made = getattr(pb, f"{method}Request")(name=model, version=version)
                yield call(f"metadata/{method} {model} {version}", method, made)


def versions():
    for model in ("versioned", "latest"):
        for version in VERSIONS:
            yield infer(f"versions/infer {model} {version}", request(
                model, ([1, 2], {"kind": "INT32"}), version=version))


def types():
    for kind in TYPES:
        model, values = f"id_{kind.lower()}", VALUES[kind]
        yield infer(f"types/{kind}/raw", request(model, (values, {"kind": kind})))
        yield infer(f"types/{kind}/contents",
                    request(model, (values, {"kind": kind, "raw": False})))
        yield infer(f"types/{kind}/empty", request(model, ([], {"kind": kind, "shape": [0]})))
        yield infer(f"types/{kind}/empty contents",
                    request(model, ([], {"kind": kind, "shape": [0], "raw": False})))
        short = request(model, (values, {"kind": kind}))
        short.raw_input_contents[0] = short.raw_input_contents[0][:-1]
        yield infer(f"types/{kind}/short", short)
        if kind in CONTENTS:
            wrong = request(model)
            made = wrong.inputs.add(name="x", datatype=kind, shape=[1])
            if CONTENTS[kind] == "fp32_contents":
                made.contents.int_contents.append(1)
            else:
                made.contents.fp32_contents.append(1)
            yield infer(f"types/{kind}/other contents", wrong)
            yield infer(f"types/{kind}/more contents", request(
                model, (values, {"kind": kind, "shape": [3], "raw": False})))
    for kind, value in (("INT8", 300), ("INT16", 70000), ("UINT8", 300), ("UINT16", 70000),
                        ("INT8", -129)):
        yield infer(f"types/{kind}/beyond {value}", request(
            f"id_{kind.lower()}", ([value], {"kind": kind, "raw": False})))


def inputs():
    yield infer("inputs/good", good())
    yield infer("inputs/id", good(id="abc"))
    yield infer("inputs/long id", good(id="x" * 5000))
    yield infer("inputs/none", request("batched"))
    yield infer("inputs/nothing", pb.ModelInferRequest())
    for name, options in {"unknown": {"name": "y"}, "no name": {"name": ""}, "datatype":
                          {"kind": "INT32"}}.items():
        yield infer(f"inputs/{name}", request("batched", (
            [1, 2, 3, 4], {"shape": [1, 4], **options})))
    yield infer("inputs/twice", request("batched", *[(GOOD, {"shape": [1, 4]})] * 2))
    yield infer("inputs/unknown beside", request(
        "batched", (GOOD, {"shape": [1, 4]}), (GOOD, {"shape": [1, 4], "name": "y"})))
    for kind in ("", "FLOAT", "fp32", "TYPE_FP32"):
        made = good()
        made.inputs[0].datatype = kind
        yield infer(f"inputs/datatype {kind}", made)
    for name, shape in {"none": [4], "scalar": [], "deep": [1, 1, 4], "no rows": [0, 4],
                        "other": [1, 3], "minus": [-1, 4], "two": [2, 4], "nine": [9, 4],
                        "huge": [2**62, 4]}.items():
        made = good()
        del made.inputs[0].shape[:]
        made.inputs[0].shape.extend(shape)
        yield infer(f"inputs/shape {name}", made)
    for name, raws in {"none": [], "two": [b"0" * 16, b"0" * 16], "short": [b"0" * 12],
                       "long": [b"0" * 20], "empty": [b""]}.items():
        made = good()
        del made.raw_input_contents[:]
        made.raw_input_contents.extend(raws)
        yield infer(f"inputs/raw {name}", made)
    both = good()
    both.inputs[0].contents.fp32_contents.extend(GOOD)
    yield infer("inputs/both", both)
    for words in (b"\x05\0\0\0abc", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\0" * 3, b"\1\0"):
        made = request("words", (["a", "b"], {"kind": "BYTES", "shape": [1, 2]}))
        made.raw_input_contents[0] = words
        yield infer(f"inputs/words {words.hex()}", made)
    yield infer("inputs/mixed", request(
        "mixed", (GOOD * 2, {"name": "a", "shape": [2, 4]}),
        ([1, 2], {"name": "b", "kind": "INT32", "shape": [2, 1]}),
        (["x", "y"], {"name": "c", "kind": "BYTES", "shape": [2, 1]})))
    yield infer("inputs/mixed rows", request(
        "mixed", (GOOD, {"name": "a", "shape": [1, 4]}),
        ([1, 2], {"name": "b", "kind": "INT32", "shape": [2, 1]}),
        (["x"], {"name": "c", "kind": "BYTES", "shape": [1, 1]})))
    part = request("mixed", (GOOD, {"name": "a", "shape": [1, 4]}))
    tensor(part, [1], "INT32", [1, 1], "b", raw=False)
    tensor(part, ["x"], "BYTES", [1, 1], "c", raw=False)
    yield infer("inputs/raw and contents", part)


def outputs():
    for names in (["x"], ["y"], ["x", "x"], [""]):
        made = good()
        for name in names:
            made.outputs.add(name=name)
        yield infer(f"outputs/{' '.join(names)}", made)
    for name, value in {"int64_param": 1, "string_param": "1", "bool_param": True}.items():
        for kind in ("classification", "binary_data", "a", "shared_memory_region"):
            made = request("labelled", ([0.5, 3.0, 1.0], {"shape": [1, 3]}))
            output = made.outputs.add(name="x")
            output.parameters[kind].MergeFrom(pb.InferParameter(**{name: value}))
            yield infer(f"outputs/{kind} {name}", made)
    for classes in (0, 2, 3, 9, -1):
        made = request("labelled", ([0.5, 3.0, 1.0, 2.0, 2.0, 0.0], {"shape": [2, 3]}))
        made.outputs.add(name="x").parameters["classification"].int64_param = classes
        yield infer(f"outputs/classes {classes}", made)


def parameters():
    choices = {"int64_param": 7, "string_param": "x", "bool_param": True, "double_param": 1.5,
               "uint64_param": 7}
    for key in ("a", "priority", "timeout", "triton_a", "sequence_id", "sequence_start",
                "triton_enable_empty_final_response", "binary_data_output", "headers"):
        for choice, value in choices.items():
            made = good()
            value = 60_000_000 if key == "timeout" and "int64" in choice else value
            made.parameters[key].MergeFrom(pb.InferParameter(**{choice: value}))
            yield infer(f"parameters/{key} {choice}", made)
        made = good()
        made.parameters[key].MergeFrom(pb.InferParameter())
        yield infer(f"parameters/{key} unset", made)
    for key, value in (("timeout", 0), ("timeout", 1), ("timeout", -1), ("priority", 0),
                       ("priority", -1)):
        made = good()
        made.parameters[key].int64_param = value
        yield infer(f"parameters/{key} is {value}", made)
    for key, value in {"a": 1, "binary_data_size": 16, "shared_memory_region": "r"}.items():
        made = good()
        choice = "string_param" if isinstance(value, str) else "int64_param"
        made.inputs[0].parameters[key].MergeFrom(pb.InferParameter(**{choice: value}))
        yield infer(f"parameters/of input {key}", made)
    yield infer("parameters/metadata", good(), (("x-custom", "1"), ("triton_grpc_error", "true")))
    yield infer("parameters/compressed", good(), (("grpc-accept-encoding", "gzip"),))


def models():
    for rows in (1, 2, 8, 9):
        yield infer(f"models/batched {rows}", request(
            "batched", (GOOD * rows, {"shape": [rows, 4]})))
        yield infer(f"models/pipe {rows}", request(
            "pipe", (GOOD * rows, {"shape": [rows, 4], "name": "in"})))
        yield infer(f"models/words {rows}", request(
            "words", (["a", "b"] * rows, {"kind": "BYTES", "shape": [rows, 2]})))
    optional = {"x": (GOOD, {"shape": [1, 4]}),
                "factor": ([3.0], {"shape": [1, 1], "name": "factor"}),
                "offset": (GOOD, {"shape": [1, 4], "name": "offset"})}
    for names in (["x"], ["x", "factor"], ["x", "offset"], ["x", "factor", "offset"], ["factor"]):
        yield infer(f"models/offset {' '.join(names)}",
                    request("offset", *(optional[name] for name in names)))
    for shape in ([3, 2], [0, 2], [2, 3], [2]):
        size = 1
        for each in shape:
            size *= each
        yield infer(f"models/open {shape}", request("open", ([1.0] * size, {"shape": shape})))
    yield infer("models/slow", request("slow", ([1.0], {})))
    for model in ("spare", "broken", "nobody"):
        yield infer(f"models/{model}", request(model, ([1, 2], {"kind": "INT32"})))


def streams():
    def stream(name, *requests):
        return GrpcCall(f"grpc/stream/{name}", "ModelStreamInfer", list(requests))

    final = good(id="final")
    final.parameters["triton_enable_empty_final_response"].bool_param = True
    bad = good(id="bad")
    bad.inputs[0].shape[1] = 3
    yield stream("nothing")
    yield stream("one", good(id="1"))
    yield stream("three", *(good(id=str(i)) for i in range(3)))
    yield stream("final", final)
    yield stream("bad", bad)
    yield stream("bad and good", bad, good(id="2"))
    yield stream("nobody", good("nobody", id="1"))
    yield stream("rubbish", b"\xff\xff")


def memory():
    for kind in ("System", "Cuda"):
        for name in ("", "r"):
            for what in ("Status", "Unregister"):
                method = f"{kind}SharedMemory{what}"
                yield call(f"memory/{method} {name}", method,
                           getattr(pb, f"{method}Request")(name=name))
    for name, key in (("", ""), ("r", ""), ("r", "/tactus_compare_no_such_key")):
        yield call(f"memory/register {name} {key}", "SystemSharedMemoryRegister",
                   pb.SystemSharedMemoryRegisterRequest(name=name, key=key, byte_size=16))
    yield call("memory/register cuda", "CudaSharedMemoryRegister",
               pb.CudaSharedMemoryRegisterRequest(name="r", raw_handle=b"xxx", byte_size=16))


def settings():
    yield call("settings/log", "LogSettings")
    for key, value in (("log_info", True), ("log_info", 1), ("log_info", "x"), ("log_x", True),
                       ("log_verbose_level", 1), ("log_verbose_level", 0),
                       ("log_format", "ISO8601"), ("log_format", "default"), ("log_format", "x"),
                       ("log_file", ""), ("log_file", "/nowhere/x")):
        choice = {bool: "bool_param", int: "uint32_param", str: "string_param"}[type(value)]
        made = pb.LogSettingsRequest()
        setattr(made.settings[key], choice, value)
        yield call(f"settings/log {key} {value}", "LogSettings", made)
    unset = pb.LogSettingsRequest()
    unset.settings["log_info"].SetInParent()
    yield call("settings/log unset", "LogSettings", unset)
    for model in ("", "batched", "nobody"):
        yield call(f"settings/trace {model}", "TraceSetting",
                   pb.TraceSettingRequest(model_name=model))
        for key, values in (("trace_level", ["OFF"]), ("trace_level", ["x"]),
                            ("trace_rate", ["10"]), ("trace_rate", ["x"]),
                            ("trace_rate", ["1", "2"]), ("trace_rate", []),
                            ("trace_count", ["5"]), ("trace_count", []), ("log_frequency", ["7"]),
                            ("log_frequency", []), ("trace_level", []), ("x", ["1"]),
                            ("trace_file", ["x.json"])):
            made = pb.TraceSettingRequest(model_name=model)
            made.settings[key].value.extend(values)
            yield call(f"settings/trace {model} {key} {' '.join(values)}", "TraceSetting", made)


def changes():
    def control(what, name, model, **more):
        method = f"RepositoryModel{what}"
        made = getattr(pb, f"{method}Request")(model_name=model)
        for key, (choice, value) in more.items():
            setattr(made.parameters[key], choice, value)
        return call(f"repository/{what} {name}", method, made)

    for name, more in {"all": {}, "ready": {"ready": True}, "of a name": {
            "repository_name": "x"}}.items():
        yield call(f"repository/index {name}", "RepositoryIndex", pb.RepositoryIndexRequest(**more))
    pair = request("spare", ([1, 2], {"kind": "INT32"}))
    yield control("Load", "spare", "spare")
    yield infer("repository/infer loaded", pair)
    yield control("Load", "of parameter", "spare", x=("string_param", "1"))
    yield control("Load", "config cut", "spare", config=("string_param", "{"))
    yield control("Load", "config number", "spare", config=("int64_param", 1))
    yield control("Unload", "of parameter", "spare", x=("bool_param", True))
    yield infer("repository/infer after it", pair)
    yield control("Load", "back", "spare")
    yield control("Unload", "dependents", "spare", unload_dependents=("bool_param", True))
    yield infer("repository/infer unloaded", pair)
    yield call("repository/ready unloaded", "ModelReady", pb.ModelReadyRequest(name="spare"))
    yield call("repository/index unloaded", "RepositoryIndex")
    for model in ("spare", "nobody", "broken", ""):
        yield control("Unload", f"again {model}", model)
        yield control("Load", f"again {model}", model)
    yield call("repository/index at the end", "RepositoryIndex")
    yield call("repository/server ready", "ServerReady")


def statistics():
    for rows in (1, 2):
        yield infer(f"stats/infer {rows}", request("counted", (GOOD * rows, {"shape": [rows, 4]})))
    yield call("stats/after", "ModelStatistics", pb.ModelStatisticsRequest(name="counted"))


def all_calls():
    for part in (statistics, server, versions, types, inputs, outputs, parameters, models, streams,
                 memory, settings, changes):
        yield from part()
