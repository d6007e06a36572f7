#!/usr/bin/env python3
"""Writes ee_s_reference.txt: what ONNX Runtime's own Python package answers for a few test images.

Needs onnxruntime, numpy and Debian's dataset-fashion-mnist. One line a record:
    image LABEL p0 ... p783             pixels 0 to 255
    logits IMAGE EXIT v0 ... v9         IMAGE counts the image lines from 0, EXIT from 1
"""
import gzip
import pathlib

import numpy as np
import onnxruntime as ort

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES = 4


def main():
    with gzip.open(DATA / "t10k-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:IMAGES]
    with gzip.open(DATA / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)[:IMAGES]
    lines = ["# written by make_reference.py with onnxruntime " + ort.__version__]
    lines += [f"image {label} " + " ".join(map(str, image)) for image, label in zip(pixels, labels)]
    inputs = ((pixels.astype(np.float32) / 255 - 0.2860) / 0.3530).reshape(-1, 1, 28, 28)
    for step in range(1, 5):
        graph = HERE.parent.parent / "models" / "ee_s" / "1" / f"exit{step}.onnx"
        (logits,) = ort.InferenceSession(str(graph)).run(None, {"input": inputs})
        lines += [f"logits {i} {step} " + " ".join(f"{v:.7g}" for v in row)
                  for i, row in enumerate(logits)]
    (HERE / "ee_s_reference.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
