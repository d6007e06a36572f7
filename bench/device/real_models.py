#!/usr/bin/env python3
"""real_models.py save|compare FILE --pictures JPEG...: what a server on this machine answers.

`save` keeps the answers of the server at 127.0.0.1:8000 in FILE, `compare` says how far those of
another one are from them: 48 calls of each model with one tensor of numbers in, 16 at a time, and
each picture to the pipeline `street` where that is served. Needs numpy.
"""
import argparse
import concurrent.futures
import json
import pathlib
import sys
import time
import urllib.error
import urllib.request

import numpy as np

SERVER = "http://127.0.0.1:8000"
CALLS, AT_ONCE = 48, 16


def get(path):
    return json.load(urllib.request.urlopen(SERVER + path, timeout=30))


def post(model, body, headers):
    request = urllib.request.Request(f"{SERVER}/v2/models/{model}/infer", body, headers)
    try:
        reply = json.load(urllib.request.urlopen(request, timeout=60))
    except urllib.error.HTTPError as error:
        return {"error": f"{error.code}: {error.read()[:300].decode()}"}
    except OSError as error:
        return {"error": str(error)}
    return {"exit": reply.get("parameters", {}).get("tactus_exit"),
            "outputs": {each["name"]: [each["shape"], each["data"]] for each in reply["outputs"]}}


def numbers(model, tensor, seed):
    shape = [1, *map(int, tensor["shape"][1:])]
    data = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    body = {"inputs": [{"name": tensor["name"], "shape": shape, "datatype": "FP32",
                        "data": data.ravel().tolist()}]}
    return post(model, json.dumps(body).encode(), {"Content-Type": "application/json"})


def picture(path):
    data = path.read_bytes()
    head = json.dumps({"inputs": [{"name": "jpeg", "shape": [len(data)], "datatype": "UINT8",
                                   "parameters": {"binary_data_size": len(data)}}]}).encode()
    return post("street", head + data, {"Inference-Header-Content-Length": str(len(head))})


def answers(pictures):
    """By model or picture, its answers."""
    found = {}
    ready = json.load(urllib.request.urlopen(
        urllib.request.Request(SERVER + "/v2/repository/index", b"{}", method="POST")))
    for name in sorted(each["name"] for each in ready):
        inputs = get(f"/v2/models/{name}").get("inputs", [])
        plain = len(inputs) == 1 and inputs[0]["datatype"] == "FP32"
        if plain and all(int(dim) > 0 for dim in inputs[0]["shape"][1:]):
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                found[name] = list(pool.map(lambda k: numbers(name, inputs[0], k), range(CALLS)))
            print(f"{name}: {CALLS} calls in {time.monotonic() - begin:.2f} s", flush=True)
        if name == "street":
            for path in pictures:
                begin = time.monotonic()
                found[path.name] = [picture(path) for _ in range(3)]
                print(f"{path.name}: {(time.monotonic() - begin) / 3 * 1e3:.0f} ms a call")
    return found


def furthest(got, wanted):
    """The largest difference of an output from the other, over that one's largest number."""
    worst = 0.0
    for name, (shape, data) in wanted["outputs"].items():
        if got["outputs"][name][0] != shape:
            return float("inf")
        if not data or isinstance(data[0], str):
            worst = max(worst, 0.0 if got["outputs"][name][1] == data else float("inf"))
            continue
        right = np.asarray(data, np.float64)
        scale = max(np.abs(right).max(), 1e-9)
        worst = max(worst, float(np.abs(np.asarray(got["outputs"][name][1]) - right).max() / scale))
    return worst


def compare(got, wanted):
    bad = 0
    for name, right in wanted.items():
        errors = [each["error"] for each in got.get(name, []) if "error" in each]
        pairs = [(a, b) for a, b in zip(got.get(name, []), right) if "error" not in a]
        same = [(a, b) for a, b in pairs if a["exit"] == b["exit"]]
        worst = max((furthest(a, b) for a, b in same), default=float("nan"))
        bad += len(errors) + (not worst < 0.02)  # devices may multiply with ten bits
        print(f"{name}: {len(same)} of {len(right)} compared, largest difference {worst:.2g} of "
              f"the largest number; {len(pairs) - len(same)} from another exit; "
              f"{len(errors)} errors {errors[:1]}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("save", "compare"))
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path, nargs="*", default=[])
    options = parser.parse_args()
    got = answers(options.pictures)
    if options.what == "save":
        options.file.write_text(json.dumps(got), encoding="utf-8")
        return 0
    return 1 if compare(got, json.loads(options.file.read_text(encoding="utf-8"))) else 0


if __name__ == "__main__":
    sys.exit(main())
