#!/usr/bin/env python3
"""export_onnx_nodes.py FOLDER: writes the node tests of the onnx package, which it makes as
they are imported: FOLDER/NAME/1/model.onnx, and its inputs beside the repository in
FOLDER.inputs/NAME.npz. Exit 77 where there is no such package."""

import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import numpy
    import onnx
except ImportError as missing:
    print(f"{missing}: Debian's python3-onnx has it", file=sys.stderr)
    sys.exit(77)
# onnx 1.12 uses names that numpy 1.24 has no more.
for name in ("float", "int", "bool", "object"):
    if name not in numpy.__dict__:
        setattr(numpy, name, getattr(__import__("builtins"), name))
from onnx.backend.test.case.node import collect_testcases  # noqa: E402


def main(folder):
    repository, inputs = pathlib.Path(folder), pathlib.Path(folder + ".inputs")
    inputs.mkdir(parents=True)
    written = others = 0
    for case in collect_testcases(None):
        values = case.data_sets[0][0]
        names = [each.name for each in case.model.graph.input]
        arrays = {name: value for name, value in zip(names, values)
                  if isinstance(value, (numpy.ndarray, numpy.generic))}
        if len(arrays) < len(names) or len(values) < len(names):
            others += 1  # sequences, optional values
            continue
        version = repository / case.name / "1"
        if version.exists():
            continue  # two have one name
        version.mkdir(parents=True)
        (version / "model.onnx").write_bytes(case.model.SerializeToString())
        numpy.savez(inputs / case.name, **{f"{i}": arrays[name] for i, name in enumerate(names)})
        written += 1
    print(f"{written} graphs written, {others} have inputs that are no tensors; onnx "
          f"{onnx.__version__}")


main(sys.argv[1])
