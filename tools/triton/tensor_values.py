"""Values of every type, as JSON and as bytes."""
import struct

import numpy

NUMPY = {"BOOL": "?", "UINT8": "u1", "UINT16": "u2", "UINT32": "u4", "UINT64": "u8", "INT8": "i1",
         "INT16": "i2", "INT32": "i4", "INT64": "i8", "FP16": "f2", "FP32": "f4", "FP64": "f8"}
VALUES = {kind: [0, 1, 2, 100] for kind in NUMPY} | {
    "BOOL": [True, False, False, True],
    "INT8": [0, -1, 127, -128], "INT16": [0, -1, 32767, -32768],
    "INT32": [0, -1, 2**31 - 1, -2**31], "INT64": [0, -1, 2**63 - 1, -2**63],
    "UINT8": [0, 1, 254, 255], "UINT16": [0, 1, 2, 65535], "UINT32": [0, 1, 2, 2**32 - 1],
    "UINT64": [0, 1, 2, 2**64 - 1],
    "FP16": [0.0, -1.5, 65504.0, 0.1], "FP32": [0.0, -1.5, 3.4e38, 0.1],
    "FP64": [0.0, -1.5, 1.7e308, 0.1], "BF16": [0.0, -1.5, 256.0, 2.0],
    "BYTES": ["", "one", "zwölf", "\u65e5\n\"x\""],
}
# Of protobuf's InferTensorContents.
CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents",
            "INT32": "int_contents", "INT64": "int64_contents", "UINT8": "uint_contents",
            "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
            "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents"}


def packed(kind, values):
    if kind == "BYTES":
        texts = [v.encode() if isinstance(v, str) else v for v in values]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if kind == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return numpy.array(values, NUMPY[kind]).tobytes()
