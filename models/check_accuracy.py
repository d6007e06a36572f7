#!/usr/bin/env python3
"""Measure the accuracy of every exit of the early-exit models and compare it with config.pbtxt.

Needs onnxruntime and numpy, and the test images of Debian's dataset-fashion-mnist:

    check_accuracy.py [--models DIR] [--images N] [MODEL ...]

Prints one line per exit. Exit status: 0 when every measured accuracy is the one that the
configuration states (to 0.0005 on all 10,000 images; within three standard errors on fewer),
1 when one is not, 2 when something is missing.
"""
import argparse
import gzip
import math
import pathlib
import re
import sys

import numpy as np
import onnxruntime as ort

MEAN, DEVIATION = 0.2860, 0.3530  # of the training images' pixels in [0, 1]


def test_images(folder):
    with gzip.open(folder / "t10k-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / "t10k-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return (pixels.astype(np.float32) / 255 - MEAN) / DEVIATION, labels


def parameter(config, key):
    """The comma-separated values of one entry of `parameters`."""
    pattern = rf'key:\s*"{key}"\s*value:\s*{{\s*string_value:\s*"([^"]*)"'
    found = re.search(pattern, config)
    return [part.strip() for part in found.group(1).split(",")] if found else []


def accuracy(graph, images, labels, batch=100):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    right = 0
    for first in range(0, len(labels), batch):
        (logits,) = session.run(None, {name: images[first : first + batch]})
        right += int((logits.argmax(1) == labels[first : first + batch]).sum())
    return right / len(labels)


def check(folder, images, labels):
    config = (folder / "config.pbtxt").read_text()
    exits, stated = parameter(config, "exits"), parameter(config, "accuracy")
    if not exits or len(exits) != len(stated):
        print(f"{folder / 'config.pbtxt'}: `exits` and `accuracy` must list equally many values")
        return False
    good = True
    for name, value in zip(exits, map(float, stated)):
        measured = accuracy(folder / "1" / name, images, labels)
        error = math.sqrt(value * (1 - value) / len(labels))
        allowed = 0.0005 if len(labels) == 10000 else 3 * error
        ok = abs(measured - value) <= allowed
        good = good and ok
        print(f"{folder.name}/{name}: stated {value:.4f} measured {measured:.4f}"
              f" {'ok' if ok else 'DIFFERS'}", flush=True)
    return good


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="*", help="default: all that state exits and accuracies")
    parser.add_argument("--models", type=pathlib.Path, default=here)
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--images", type=int, default=10000, help="the first N test images")
    arguments = parser.parse_args()
    try:
        images, labels = test_images(arguments.data)
    except OSError as error:
        print(f"{error}; install the package dataset-fashion-mnist or pass --data")
        return 2
    configured = arguments.models.glob("ee_*/config.pbtxt")
    names = arguments.model or sorted(path.parent.name for path in configured)
    if not names:
        print(f"{arguments.models}: no early-exit model here")
        return 2
    count = arguments.images
    results = [check(arguments.models / name, images[:count], labels[:count]) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
