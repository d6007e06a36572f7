"""Repositories of the same models: one for Triton, whose models are model.py, one for Tactus."""
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
         "BF16", "FP32", "FP64", "BYTES")


def tensors(field, listed):
    """listed: (name, TYPE, dims, more) each."""
    return "".join(
        f'{field} {{ name: "{name}" data_type: TYPE_{kind.replace("BYTES", "STRING")} '
        f'dims: [ {", ".join(map(str, dims))} ] {" ".join(more)} }}\n'
        for name, kind, dims, *more in listed)


# Name: (max_batch_size, inputs, outputs or None for the inputs, what else is in config.pbtxt).
ECHOES = {f"id_{kind.lower()}": (0, [("x", kind, [-1])], None, "") for kind in TYPES} | {
    "batched": (8, [("x", "FP32", [4])], None, ""),
    "words": (8, [("x", "BYTES", [2])], None, ""),
    "mixed": (8, [("a", "FP32", [4]), ("b", "INT32", [-1]), ("c", "BYTES", [1])], None, ""),
    "open": (0, [("x", "FP32", [-1, 2])], None, ""),
    "single": (0, [("x", "INT64", [1])], None, ""),
    "labelled": (8, [("x", "FP32", [3])],
                 [("x", "FP32", [3], 'label_filename: "labels.txt"')], ""),
    "versioned": (0, [("x", "INT32", [2])], None, "version_policy { all { } }\n"),
    "latest": (0, [("x", "INT32", [2])], None, ""),
    "counted": (8, [("x", "FP32", [4])], None, ""),
    "slow": (0, [("x", "FP32", [1])], None,
             'parameters { key: "sleep_ms" value { string_value: "200" } }\n'),
    "spare": (0, [("x", "INT32", [2])], None, ""),
}
VERSIONS = {"versioned": (1, 3), "latest": (1, 2)}
OFFSET = [("x", "FP32", [4]), ("factor", "FP32", [1], "optional: true"),
          ("offset", "FP32", [4], "optional: true")]
PIPE = """name: "pipe"
platform: "ensemble"
max_batch_size: 8
input { name: "in" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "out" data_type: TYPE_FP32 dims: [ 4 ] }
ensemble_scheduling {
  step { model_name: "batched" model_version: -1
    input_map { key: "x" value: "in" } output_map { key: "x" value: "middle" } }
  step { model_name: "offset" model_version: -1
    input_map { key: "x" value: "middle" } output_map { key: "y" value: "out" } }
}
"""
# Those whose metadata are compared.
DESCRIBED = ("batched", "id_bytes", "id_bf16", "mixed", "offset", "pipe", "versioned", "latest",
             "labelled", "single", "open", "spare", "broken", "nobody")
# Not loaded at the start.
LATER = ("spare", "broken")
SLO = 'parameters { key: "slo_ms" value { string_value: "60000" } }\n'


def add(folder, name, config, versions=(1,), files=()):
    (folder / name).mkdir(parents=True)
    (folder / name / "config.pbtxt").write_text(config)
    for version in versions:
        (folder / name / str(version)).mkdir()
        for file, to in files:
            shutil.copy(file, folder / name / str(version) / to)


def make(folder, triton):
    """The repository in `folder`; the names of the models to load."""
    python = [(ROOT / "tools/triton/model.py", "model.py")] if triton else []
    identity = 'backend: "python"' if triton else 'platform: "identity"'
    onnx = 'backend: "python"' if triton else 'platform: "onnxruntime_onnx"'

    def text(name, engine, batch, inputs, outputs, more):
        return (f'name: "{name}"\n{engine}\nmax_batch_size: {batch}\n{tensors("input", inputs)}'
                f'{tensors("output", outputs or inputs)}{more}{"" if triton else SLO}')

    for name, (batch, inputs, outputs, more) in ECHOES.items():
        add(folder, name, text(name, identity, batch, inputs, outputs, more),
            VERSIONS.get(name, (1,)), python)
    (folder / "labelled" / "labels.txt").write_text("zero\none\ntwo\n")
    add(folder, "offset", text("offset", onnx, 8, OFFSET, [("y", "FP32", [4])], ""),
        files=[*python, (ROOT / "tests/data/offset.onnx", "model.onnx")])
    add(folder, "pipe", PIPE)
    add(folder, "broken", text("broken", identity, 0, [("x", "FP32", [-7])], None, ""),
        files=python)
    return [name for name in (*ECHOES, "offset", "pipe") if name not in LATER]
