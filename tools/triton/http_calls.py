"""The calls over HTTP. Each is an HttpCall; their order matters only where a call changes the
server, and those are of `changes` and of `settings`, and come last."""
import dataclasses
import gzip
import json
import zlib

from models import DESCRIBED, TYPES
from tensor_values import VALUES, packed


@dataclasses.dataclass
class HttpCall:
    name: str
    verb: str
    path: str
    body: bytes | None = None
    headers: dict = dataclasses.field(default_factory=dict)


def get(name, path, verb="GET", headers=None):
    return HttpCall(f"http/{name}", verb, path, None, headers or {})


def post(name, path, body=b"", headers=None, verb="POST"):
    if isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return HttpCall(f"http/{name}", verb, path, body, headers or {})


def tensor(data, kind="FP32", shape=None, name="x", **more):
    made = {"name": name, "shape": shape or [len(data)], "datatype": kind, "data": data, **more}
    return {key: value for key, value in made.items() if value is not None}


def infer(name, model, inputs, headers=None, path="", **more):
    return post(name, f"/v2/models/{model}{path}/infer", {"inputs": inputs, **more}, headers)


def binary(name, model, header, parts, length=None, path="", headers=None):
    """A body with tensors behind its JSON; `length` in place of the JSON's true length."""
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    field = str(len(text) if length is None else length)
    return post(name, f"/v2/models/{model}{path}/infer", text + b"".join(parts),
                {"Inference-Header-Content-Length": field, **(headers or {})})


def server():
    for verb in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        for name, path in (("live", "/v2/health/live"), ("ready", "/v2/health/ready"),
                           ("root", "/v2")):
            yield get(f"server/{name}/{verb}", path, verb)
    for path in ("/", "/v1", "/v3", "/v2/", "/v2//", "/v2/health", "/v2/health/",
                 "/v2/health/other",
                 "/v2/health/live/", "/v2/health/live/x", "/v2/health/live?x=1", "/v2?x=1",
                 "/v2/models", "/v2/models/", "/v2/model/batched", "/metrics", "/V2",
                 "/v2/Health/live", "/favicon.ico", "/v2/repository", "/v2/repository/models"):
        yield get(f"unknown{path}", path)
        if path.startswith("/v2/models") or path.startswith("/v2/repository"):
            yield post(f"unknown-post{path}", path)


def metadata():
    for model in (*DESCRIBED, "a%20b", "batch%65d"):
        for what in ("", "/ready", "/config", "/stats"):
            yield get(f"metadata/{model}{what}", f"/v2/models/{model}{what}")
    for model in ("versioned", "latest", "batched", "nobody"):
        for version in ("1", "2", "3", "0", "-1", "01", "x", "1.0", "99999999999999999999"):
            for what in ("", "/ready"):
                yield get(f"versions/{model}/{version}{what}",
                          f"/v2/models/{model}/versions/{version}{what}")
    for path in ("/versions", "/versions/", "/versions/1/", "/versions/1/config",
                 "/versions/3/stats", "/versions/1/other", "/other", "/config/", "/ready/", "/"):
        yield get(f"paths/versioned{path}", f"/v2/models/versioned{path}")
    for what in ("", "/ready", "/config", "/stats"):
        for verb in ("POST", "HEAD", "DELETE"):
            yield get(f"verbs{what}/{verb}", f"/v2/models/batched{what}", verb)
    for verb in ("GET", "PUT", "HEAD"):
        yield get(f"verbs/infer/{verb}", "/v2/models/batched/infer", verb)
    yield get("stats/all-verb", "/v2/models/stats", "POST")


def types():
    for kind in TYPES:
        model, values = f"id_{kind.lower()}", VALUES[kind]
        size = len(packed(kind, values))
        want = [{"name": "x", "parameters": {"binary_data": True}}]
        whole = {"name": "x", "shape": [4], "datatype": kind,
                 "parameters": {"binary_data_size": size}}
        yield infer(f"types/{kind}/json", model, [tensor(values, kind)])
        yield infer(f"types/{kind}/json-to-binary", model, [tensor(values, kind)], outputs=want)
        yield binary(f"types/{kind}/binary-to-json", model, {"inputs": [whole]},
                     [packed(kind, values)])
        yield binary(f"types/{kind}/binary", model, {"inputs": [whole], "outputs": want},
                     [packed(kind, values)])
        yield binary(f"types/{kind}/all-binary", model,
                     {"inputs": [whole], "parameters": {"binary_data_output": True}},
                     [packed(kind, values)])
        yield post(f"types/{kind}/raw", f"/v2/models/{model}/infer", packed(kind, values),
                   {"Inference-Header-Content-Length": "0"})
        yield infer(f"types/{kind}/empty", model, [tensor([], kind, [0])])
        yield binary(f"types/{kind}/empty-binary", model,
                     {"inputs": [{"name": "x", "shape": [0], "datatype": kind,
                                  "parameters": {"binary_data_size": 0}}], "outputs": want}, [])
        yield binary(f"types/{kind}/short-binary", model,
                     {"inputs": [{**whole, "parameters": {"binary_data_size": size - 1}}]},
                     [packed(kind, values)[:-1]])


# JSON values that do not fit all types.
MISFITS = {"text": '"text"', "true": "true", "null": "null", "300": "300", "minus": "-1",
           "half": "1.5", "whole": "2.0", "huge": "1e300", "beyond": "18446744073709551616",
           "list": "[1]", "object": "{}"}


def misfits():
    for kind in ("BOOL", "UINT8", "INT8", "INT32", "UINT64", "INT64", "FP32", "FP64", "BYTES"):
        for name, value in MISFITS.items():
            yield post(f"misfits/{kind}/{name}", f"/v2/models/id_{kind.lower()}/infer",
                       f'{{"inputs":[{{"name":"x","shape":[1],"datatype":"{kind}",'
                       f'"data":[{value}]}}]}}')


GOOD = [1.0, 2.0, 3.0, 4.0]
X = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": GOOD}


def but(**more):
    """X, changed; a None leaves a key out."""
    return {key: value for key, value in {**X, **more}.items() if value is not None}


def bodies():
    path = "/v2/models/batched/infer"
    text = json.dumps({"inputs": [X]})
    for name, body in {
            "empty": "", "space": " ", "null": "null", "list": "[]", "text": '"x"', "number": "1",
            "object": "{}", "cut": text[:-3], "more": text + "x", "twice": text + text,
            "bom": "\ufeff" + text, "comment": "/* x */" + text, "comma": text[:-1] + ",}",
            "spaces": f"  \n\t{text}  \n", "single": text.replace('"', "'"),
            "nan": text.replace("1.0", "NaN"), "inf": text.replace("1.0", "Infinity"),
            "plus": text.replace("1.0", "+1"), "zero": text.replace("1.0", "01"),
            "exponent": text.replace("1.0", "1e0"), "dot": text.replace("1.0", "1."),
            "minus zero": text.replace("1.0", "-0.0"), "float whole": text.replace("1.0", "1"),
            "control": text.replace('"x"', '"x\x01"'), "escaped": text.replace('"x"', '"\\u0078"'),
            "null byte": text + "\0"}.items():
        yield post(f"bodies/{name}", path, body)
    yield post("bodies/utf8", path, text.encode().replace(b'"x"', b'"\xff"'))
    yield post("bodies/utf16", path, text.encode("utf-16"))
    for depth in (2, 3, 90):
        yield post(f"bodies/depth {depth}", path,
                   text.replace("[1.0", "[" * depth + "1.0").replace("4.0]", "4.0" + "]" * depth))
    for name, value in {"null": None, "object": {}, "empty": [], "text": "x", "number": 1,
                        "of numbers": [1], "of null": [None], "of lists": [[]],
                        "of empty": [{}]}.items():
        yield post(f"bodies/inputs {name}", path, {"inputs": value})
        yield infer(f"bodies/outputs {name}", "batched", [X], outputs=value)
    for key in ("name", "shape", "datatype", "data"):
        yield infer(f"inputs/{key} missing", "batched", [but(**{key: None})])
        for name, value in {"number": 1, "text": "x", "object": {}, "empty": [], "true": True,
                            "list": ["x"]}.items():
            yield infer(f"inputs/{key} {name}", "batched", [but(**{key: value})])
        yield post(f"inputs/{key} null", path, {"inputs": [{**X, key: None}]})
    for name, shape in {"none": [4], "deep": [1, 1, 4], "no rows": [0, 4], "other": [1, 3],
                        "minus": [-1, 4], "float": [1.0, 4], "half": [1.5, 4],
                        "of text": ["1", "4"], "two": [2, 4], "nine": [9, 4],
                        "huge": [2**62, 4], "beyond": [2**64, 4]}.items():
        yield infer(f"inputs/shape {name}", "batched", [but(shape=shape)])
    for name, data in {"short": GOOD[:3], "long": GOOD + [5.0], "nested": [GOOD],
                       "ragged": [GOOD[:1], GOOD[1:]], "columns": [[v] for v in GOOD],
                       "mixed": [1.0, [2.0, 3.0, 4.0]]}.items():
        yield infer(f"inputs/data {name}", "batched", [but(data=data)])
    for kind in ("INT32", "fp32", "FLOAT", "TYPE_FP32", "", "BYTES", "FP64"):
        yield infer(f"inputs/datatype {kind}", "batched", [but(datatype=kind)])
    yield infer("inputs/unknown", "batched", [but(name="y")])
    yield infer("inputs/unknown beside", "batched", [X, but(name="y")])
    yield infer("inputs/twice", "batched", [X, X])
    yield infer("inputs/unknown key", "batched", [but(other=1)])
    yield infer("bodies/unknown key", "batched", [X], other=1)
    yield infer("outputs/unknown key", "batched", [X], outputs=[{"name": "x", "other": 1}])
    for name, value in {"unknown": [{"name": "y"}], "twice": [{"name": "x"}, {"name": "x"}],
                        "no name": [{}], "number": [{"name": 1}], "null name": [{"name": None}],
                        "of input": [{"name": "x"}]}.items():
        yield infer(f"outputs/{name}", "batched", [X], outputs=value)
    for name, value in {"text": "abc", "empty": "", "number": 7, "null": None, "list": [],
                        "long": "x" * 5000, "utf8": "zwölf", "true": True}.items():
        yield infer(f"id/{name}", "batched", [X], id=value)


def parameters():
    for name, value in {
            "empty": {}, "null": None, "list": [], "text": "x", "custom text": {"a": "b"},
            "custom number": {"a": 1}, "custom float": {"a": 1.5}, "custom bool": {"a": True},
            "custom null": {"a": None}, "custom list": {"a": [1]}, "custom object": {"a": {}},
            "reserved": {"triton_a": 1}, "final": {"triton_enable_empty_final_response": True},
            "priority 0": {"priority": 0}, "priority 1": {"priority": 1},
            "priority 9": {"priority": 9}, "priority minus": {"priority": -1},
            "priority text": {"priority": "1"}, "priority float": {"priority": 1.5},
            "priority bool": {"priority": True},
            "timeout 0": {"timeout": 0}, "timeout long": {"timeout": 60_000_000},
            "timeout minus": {"timeout": -1}, "timeout text": {"timeout": "x"},
            "timeout float": {"timeout": 1.5}, "timeout short": {"timeout": 1},
            "sequence_id": {"sequence_id": 7}, "sequence_id text": {"sequence_id": "a"},
            "sequence": {"sequence_id": 7, "sequence_start": True, "sequence_end": True},
            "sequence_start text": {"sequence_start": "x"}, "headers": {"headers": "x"},
            "binary": {"binary_data_output": True}, "not binary": {"binary_data_output": False},
            "binary text": {"binary_data_output": "true"},
            "binary number": {"binary_data_output": 1}}.items():
        yield infer(f"parameters/{name}", "batched", [X], parameters=value)
    for name, value in {"empty": {}, "null": None, "list": [], "other": {"a": 1},
                        "classes 1": {"classification": 1}, "classes 3": {"classification": 3},
                        "classes 9": {"classification": 9}, "classes 0": {"classification": 0},
                        "classes minus": {"classification": -1},
                        "classes text": {"classification": "1"},
                        "classes binary": {"classification": 2, "binary_data": True},
                        "binary": {"binary_data": True}, "not binary": {"binary_data": False},
                        "binary text": {"binary_data": "true"}, "binary number": {"binary_data": 1},
                        "region": {"shared_memory_region": "r", "shared_memory_byte_size": 12},
                        "region binary": {"shared_memory_region": "r", "binary_data": True,
                                          "shared_memory_byte_size": 12}}.items():
        row = tensor([0.5, 3.0, 1.0], shape=[1, 3])
        yield infer(f"outputs/parameters {name}", "labelled", [row],
                    outputs=[{"name": "x", "parameters": value}])
    # Classes of texts end the real server.
    yield infer("outputs/classes rows", "labelled",
                [tensor([1.0, 2.0, 2.0, 3.0, 0.0, 0.0], shape=[2, 3])],
                outputs=[{"name": "x", "parameters": {"classification": 2}}])
    for name, value in {"empty": {}, "null": None, "other": {"a": 1},
                        "region": {"shared_memory_region": "r", "shared_memory_byte_size": 16},
                        "size and data": {"binary_data_size": 16},
                        "size text": {"binary_data_size": "16"}}.items():
        yield infer(f"inputs/parameters {name}", "batched", [but(parameters=value)])
        yield infer(f"inputs/parameters {name}, no data", "batched",
                    [but(parameters=value, data=None)])


def binaries():
    raw = packed("FP32", GOOD)
    header = {"inputs": [but(data=None, parameters={"binary_data_size": 16})]}
    text = json.dumps(header)
    for name, length in {"beyond": 10_000, "short": 5, "one less": len(text) - 1,
                         "one more": len(text) + 1, "minus": "-1", "text": "x", "empty": "",
                         "float": "1.5", "plus": f"+{len(text)}", "spaced": f" {len(text)} ",
                         "huge": "9" * 30, "hex": hex(len(text)), "all": len(text) + 16}.items():
        yield binary(f"binary/length {name}", "batched", header, [raw], length)
    for name, size in {"less": 12, "more": 20, "zero": 0, "minus": -16, "float": 16.0,
                       "text": "16", "null": None, "true": True}.items():
        inputs = [but(data=None, parameters={"binary_data_size": size})]
        yield binary(f"binary/size {name}", "batched", {"inputs": inputs}, [raw])
    yield binary("binary/more bytes", "batched", header, [raw, b"xyz"])
    yield binary("binary/fewer bytes", "batched", header, [raw[:8]])
    yield binary("binary/no bytes", "batched", header, [])
    yield binary("binary/with data", "batched",
                 {"inputs": [but(parameters={"binary_data_size": 16})]}, [raw])
    yield binary("binary/without", "batched", {"inputs": [X]}, [])
    yield binary("binary/no size", "batched", {"inputs": [but(data=None)]}, [raw])
    for name, body in {"good": raw, "rows": raw * 2, "odd": raw[:7], "none": b""}.items():
        yield post(f"binary/raw {name}", "/v2/models/batched/infer", body,
                   {"Inference-Header-Content-Length": "0"})
    for model in ("mixed", "open", "single", "words", "offset", "pipe"):
        yield post(f"binary/raw of {model}", f"/v2/models/{model}/infer", raw,
                   {"Inference-Header-Content-Length": "0"})
    for name, words in {"cut": b"\x05\0\0\0abc", "over": b"\xff\xff\xff\xff", "one": b"\0\0\0\0",
                        "three": b"\0\0\0\0" * 3, "loose": b"\1\0"}.items():
        yield binary(f"binary/words {name}", "words",
                     {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "BYTES",
                                  "parameters": {"binary_data_size": len(words)}}]}, [words])
    three = [("a", "FP32", [2, 4], GOOD * 2), ("b", "INT32", [2, 3], [1, 2, 3, 4, 5, 6]),
             ("c", "BYTES", [2, 1], ["x", "yz"])]
    inputs = [{"name": n, "shape": s, "datatype": k,
               "parameters": {"binary_data_size": len(packed(k, v))}} for n, k, s, v in three]
    whole = [packed(k, v) for _, k, _, v in three]
    yield binary("binary/three", "mixed", {"inputs": inputs}, whole)
    for wanted in (["a"], ["c", "a"], ["a", "b", "c"], ["b", "c"]):
        for what in (True, False):
            yield binary(f"binary/three to {''.join(wanted)} {what}", "mixed",
                         {"inputs": inputs, "outputs": [
                             {"name": n, "parameters": {"binary_data": what != (n == "a")}}
                             for n in wanted], "parameters": {"binary_data_output": True}}, whole)
    yield binary("binary/two and one", "mixed", {"inputs": [
        inputs[0], tensor(three[1][3], "INT32", [2, 3], "b"), inputs[2]]}, [whole[0], whole[2]])
    plain = json.dumps({"inputs": [X]}).encode()
    for name, coding, body in (
            ("gzip", "gzip", gzip.compress(plain)), ("deflate", "deflate", zlib.compress(plain)),
            ("identity", "identity", plain), ("unknown", "br", plain), ("not gzip", "gzip", plain),
            ("cut gzip", "gzip", gzip.compress(plain)[:-9])):
        yield post(f"coding/{name}", "/v2/models/batched/infer", body, {"Content-Encoding": coding})
    for accept in ("gzip", "deflate", "identity", "br", "gzip, deflate", "gzip;q=0", "*", ""):
        yield post(f"coding/accept {accept}", "/v2/models/batched/infer", plain,
                   {"Accept-Encoding": accept})
        yield binary(f"coding/accept {accept}, binary", "batched", {
            **header, "parameters": {"binary_data_output": True}}, [raw],
            headers={"Accept-Encoding": accept})
    for kind in ("application/json", "text/plain", "application/octet-stream",
                 "application/x-www-form-urlencoded", "x"):
        yield post(f"coding/type {kind}", "/v2/models/batched/infer", plain, {"Content-Type": kind})


def models():
    for rows in (1, 2, 8, 9):
        yield infer(f"models/batched {rows}", "batched", [tensor(GOOD * rows, shape=[rows, 4])])
        yield infer(f"models/pipe {rows}", "pipe",
                    [tensor(GOOD * rows, shape=[rows, 4], name="in")])
        yield infer(f"models/words {rows}", "words",
                    [tensor(["a", "b"] * rows, "BYTES", [rows, 2])])
    given = {"x": X, "factor": tensor([3.0], shape=[1, 1], name="factor"),
             "offset": tensor(GOOD, shape=[1, 4], name="offset")}
    for names in (["x"], ["x", "factor"], ["x", "offset"], ["x", "factor", "offset"], ["factor"],
                  []):
        yield infer(f"models/offset {' '.join(names)}", "offset", [given[name] for name in names])
    yield infer("models/offset rows", "offset", [
        X, tensor([1.0, 2.0], shape=[2, 1], name="factor")])
    yield infer("models/mixed rows", "mixed", [
        tensor(GOOD, shape=[1, 4], name="a"), tensor([1, 2], "INT32", [2, 1], "b"),
        tensor(["x"], "BYTES", [1, 1], "c")])
    for shape in ([1, 2], [3, 2], [0, 2], [2, 3], [2]):
        size = 1
        for each in shape:
            size *= each
        yield infer(f"models/open {shape}", "open", [tensor([1.0] * size, shape=shape)])
    yield infer("models/single", "single", [tensor([1], "INT64")])
    yield infer("models/single scalar", "single", [
        {"name": "x", "shape": [], "datatype": "INT64", "data": [1]}])
    yield infer("models/single two", "single", [tensor([1, 2], "INT64")])
    yield infer("models/slow", "slow", [tensor([1.0])])
    pair = [tensor([1, 2], "INT32")]
    for model in ("versioned", "latest", "spare", "broken", "nobody"):
        yield infer(f"models/{model}", model, pair)
        for version in ("1", "2", "3", "x", "-1", "0"):
            yield infer(f"models/{model} {version}", model, pair, path=f"/versions/{version}")
    yield post("models/nobody and no body", "/v2/models/nobody/infer")
    for what in ("generate", "generate_stream"):
        yield post(f"generate/{what}", f"/v2/models/words/{what}", {"x": "a"})
        yield post(f"generate/{what} nobody", f"/v2/models/nobody/{what}", {"x": "a"})
        yield get(f"generate/{what} get", f"/v2/models/words/{what}")


def memory():
    for kind in ("system", "cuda"):
        base = f"/v2/{kind}sharedmemory"
        yield get(f"memory/{kind} status", f"{base}/status")
        yield get(f"memory/{kind} region", f"{base}/region/r/status")
        yield post(f"memory/{kind} unregister", f"{base}/unregister")
        yield post(f"memory/{kind} unregister region", f"{base}/region/r/unregister")
        yield get(f"memory/{kind} unregister get", f"{base}/unregister")
        yield get(f"memory/{kind} register get", f"{base}/region/r/register")
        yield post(f"memory/{kind} status post", f"{base}/status")
        yield get(f"memory/{kind} other", f"{base}/other")
        yield get(f"memory/{kind} alone", base)
        yield post(f"memory/{kind} register nothing", f"{base}/region/r/register")
        yield post(f"memory/{kind} register empty", f"{base}/region/r/register", {})
        yield post(f"memory/{kind} register all", f"{base}/register", {"key": "/k", "byte_size": 1})
    yield post("memory/system register unknown", "/v2/systemsharedmemory/region/r/register",
               {"key": "/tactus_compare_no_such_key", "offset": 0, "byte_size": 16})
    yield post("memory/cuda register text", "/v2/cudasharedmemory/region/r/register",
               {"raw_handle": {"b64": "eHh4"}, "device_id": 0, "byte_size": 16})


def settings():
    yield get("settings/log", "/v2/logging")
    for name, body in {"same": {"log_info": True}, "number": {"log_info": 1},
                       "text": {"log_info": "true"}, "verbose": {"log_verbose_level": 1},
                       "verbose 0": {"log_verbose_level": 0}, "verbose minus":
                       {"log_verbose_level": -1}, "format": {"log_format": "ISO8601"},
                       "default format": {"log_format": "default"}, "bad format":
                       {"log_format": "x"}, "unknown": {"log_x": True}, "empty": {},
                       "file": {"log_file": ""}, "file named": {"log_file": "/nowhere/x"},
                       "list": []}.items():
        yield post(f"settings/log {name}", "/v2/logging", body)
    yield post("settings/log cut", "/v2/logging", "{")
    yield post("settings/log nothing", "/v2/logging")
    yield get("settings/log put", "/v2/logging", "PUT")
    for path in ("/v2/trace/setting", "/v2/models/batched/trace/setting"):
        of = "model" if "models" in path else "all"
        yield get(f"settings/trace {of}", path)
        for name, body in {"off": {"trace_level": ["OFF"]}, "rate": {"trace_rate": "10"},
                           "rate number": {"trace_rate": 10}, "rate bad": {"trace_rate": "x"},
                           "rate minus": {"trace_rate": "-1"}, "count": {"trace_count": "5"},
                           "count bad": {"trace_count": "x"}, "frequency": {"log_frequency": "7"},
                           "unknown": {"x": "1"}, "level text": {"trace_level": "OFF"},
                           "level bad": {"trace_level": ["x"]}, "empty": {},
                           "file": {"trace_file": "x.json"}, "clear": {
                               "trace_rate": None, "trace_count": None, "log_frequency": None,
                               "trace_level": None}, "list": []}.items():
            yield post(f"settings/trace {of} {name}", path, body)
        yield post(f"settings/trace {of} cut", path, "{")
        yield get(f"settings/trace {of} put", path, "PUT")
    yield get("settings/trace nobody", "/v2/models/nobody/trace/setting")
    yield post("settings/trace nobody post", "/v2/models/nobody/trace/setting", {})


def changes():
    index = "/v2/repository/index"
    for name, body in {"nothing": b"", "empty": {}, "ready": {"ready": True},
                       "all": {"ready": False}, "text": {"ready": "x"}, "list": [],
                       "unknown": {"x": 1}, "null": {"ready": None}}.items():
        yield post(f"repository/index {name}", index, body)
    yield post("repository/index cut", index, "{")
    yield get("repository/index get", index)
    pair = [tensor([1, 2], "INT32")]

    def control(name, model, what, body=b""):
        return post(f"repository/{name}", f"/v2/repository/models/{model}/{what}", body)

    def state(when):
        yield get(f"repository/ready {when}", "/v2/models/spare/ready")
        yield get(f"repository/metadata {when}", "/v2/models/spare")
        yield get(f"repository/stats {when}", "/v2/models/spare/stats")
        yield infer(f"repository/infer {when}", "spare", pair)
        yield post(f"repository/index {when}", index)
        yield get(f"repository/server {when}", "/v2/health/ready")

    yield get("repository/load get", "/v2/repository/models/spare/load")
    yield get("repository/unload get", "/v2/repository/models/spare/unload")
    yield control("other", "spare", "other")
    yield control("unload before", "spare", "unload")
    yield control("load", "spare", "load")
    yield from state("loaded")
    yield control("load again", "spare", "load", {})
    for name, body in {"list": [], "cut": "{", "unknown": {"parameters": {"x": "1"}},
                       "config cut": {"parameters": {"config": "{"}},
                       "config number": {"parameters": {"config": 1}},
                       "parameters list": {"parameters": []}, "other": {"x": 1}}.items():
        yield control(f"load {name}", "spare", "load", body)
    for name, body in {"list": [], "cut": "{", "unknown": {"parameters": {"x": True}},
                       "dependents text": {"parameters": {"unload_dependents": "x"}},
                       "dependents no": {"parameters": {"unload_dependents": False}}}.items():
        yield control(f"unload {name}", "spare", "unload", body)
        yield control(f"load after {name}", "spare", "load")
    yield control("unload", "spare", "unload")
    yield from state("unloaded")
    yield control("unload again", "spare", "unload")
    yield control("load back", "spare", "load")
    yield from state("back")
    for what in ("load", "unload"):
        yield control(f"{what} nobody", "nobody", what)
        yield control(f"{what} broken", "broken", what)
    yield from state("in the end")


def statistics():
    yield get("stats/before", "/v2/models/counted/stats")
    for rows in (1, 2, 3):
        yield infer(f"stats/infer {rows}", "counted", [tensor(GOOD * rows, shape=[rows, 4])])
    yield infer("stats/refused", "counted", [tensor(GOOD)])
    yield get("stats/after", "/v2/models/counted/stats")
    yield infer("stats/pipe infer", "pipe", [tensor(GOOD, shape=[1, 4], name="in")])
    yield get("stats/pipe", "/v2/models/pipe/stats")
    yield get("stats/pipe's step", "/v2/models/offset/stats")
    yield get("stats/version", "/v2/models/counted/versions/1/stats")
    yield get("stats/other version", "/v2/models/counted/versions/2/stats")
    yield get("stats/all", "/v2/models/stats")


def all_calls():
    for part in (statistics, server, metadata, types, misfits, bodies, parameters, binaries, models,
                 memory, settings, changes):
        yield from part()
