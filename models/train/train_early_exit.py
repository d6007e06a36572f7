#!/usr/bin/env python3
"""Train ee_s, ee_m, ee_l or ee_mlp from scratch on Fashion-MNIST; export one graph for each exit.

Needs the Debian packages python3-torch, python3-onnx, python3-numpy and dataset-fashion-mnist (or
the same from PyPI); no accelerator.

    train_early_exit.py ee_s --out DIR [--threads N] [--epochs N] [--images N]

Writes DIR/NAME/1/exit1.onnx and so on (and weights.bin, which those of ee_mlp share) and prints
the accuracy of each exit on the 10,000 test images, once as PyTorch computes it and, where
onnxruntime is installed, once more from the files. On one core of a small server ee_s takes some
six minutes, ee_m fifteen, ee_l twenty, and so does ee_mlp where PyTorch has no optimised BLAS.
Another version of PyTorch, or another number of threads, gives weights that differ in their last
digits and accuracies that differ by about half a point.
"""
import argparse
import gzip
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

MEAN, DEVIATION = 0.2860, 0.3530  # of the training images' pixels in [0, 1]
CLASSES = 10
STAGES = 4  # of a residual network
WIDTH = 16  # channels of the first stage; each later one has twice those of the one before
MLP_STAGES, MLP_WIDTH = 3, 1024
# Residual blocks in each stage (none: fully connected layers), passes over the training images, and
# the highest learning rate.
NETWORKS = {"ee_s": (1, 5, 0.1), "ee_m": (2, 4, 0.1), "ee_l": (3, 3, 0.1), "ee_mlp": (0, 4, 0.05)}
BATCH, MOMENTUM, DECAY = 128, 0.9, 5e-4
WARM_UP = 0.25  # share of the steps in which the learning rate rises


def read_images(folder, part):
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    scaled = (torch.from_numpy(pixels.astype(np.float32)) / 255 - MEAN) / DEVIATION
    return scaled, torch.from_numpy(labels.astype(np.int64))


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.short = nn.Identity()
        if stride != 1 or before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                       nn.BatchNorm2d(after))

    def forward(self, x):
        return functional.relu(self.main(x) + self.short(x))


def convolutional(blocks):
    """The stem and the stages of a residual network, and the channels behind each stage."""
    stem = nn.Sequential(nn.Conv2d(1, WIDTH, 3, 1, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU())
    widths = [WIDTH << stage for stage in range(STAGES)]
    stages, before = [], WIDTH
    for stage, after in enumerate(widths):
        layers = [Residual(before, after, 1 if stage == 0 else 2)]
        layers += [Residual(after, after, 1) for _ in range(blocks - 1)]
        stages.append(nn.Sequential(*layers))
        before = after
    return stem, stages, widths


def fully_connected():
    """The same of a network whose time goes into fetching weights: a batch fetches them once."""
    stages = [nn.Sequential(nn.Linear(28 * 28 if stage == 0 else MLP_WIDTH, MLP_WIDTH, bias=False),
                            nn.BatchNorm1d(MLP_WIDTH), nn.ReLU()) for stage in range(MLP_STAGES)]
    return nn.Flatten(), stages, [MLP_WIDTH] * MLP_STAGES


def pooled(features):
    return features.mean((2, 3)) if features.dim() == 4 else features


class EarlyExitNetwork(nn.Module):
    """Stages, and behind each a classifier of the stage's channels, averaged over the image."""

    def __init__(self, blocks):
        super().__init__()
        self.stem, stages, widths = convolutional(blocks) if blocks else fully_connected()
        self.stages = nn.ModuleList(stages)
        self.heads = nn.ModuleList(nn.Linear(width, CLASSES) for width in widths)

    def forward(self, x):
        """The logits of all exits, shallowest first."""
        logits, features = [], self.stem(x)
        for stage, head in zip(self.stages, self.heads):
            features = stage(features)
            logits.append(head(pooled(features)))
        return logits


class Prefix(nn.Module):
    """The network up to one exit, and nothing behind it."""

    def __init__(self, network, exits):
        super().__init__()
        self.stem = network.stem
        self.stages = network.stages[:exits]
        self.head = network.heads[exits - 1]

    def forward(self, x):
        features = self.stem(x)
        for stage in self.stages:
            features = stage(features)
        return self.head(pooled(features))


def accuracies(network, images, labels):
    network.eval()
    right = torch.zeros(len(network.heads), dtype=torch.long)
    with torch.no_grad():
        for first in range(0, len(labels), 500):
            logits = network(images[first : first + 500])
            expected = labels[first : first + 500]
            right += torch.stack([(exit.argmax(1) == expected).sum() for exit in logits])
    return [count / len(labels) for count in right.tolist()]


def train(network, images, labels, epochs, rate, seed, test):
    steps = epochs * (len(labels) // BATCH)
    optimizer = torch.optim.SGD(network.parameters(), rate, MOMENTUM, weight_decay=DECAY,
                                nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps,
                                                   pct_start=WARM_UP)
    draw = torch.Generator().manual_seed(seed)
    begin = time.monotonic()
    for epoch in range(epochs):
        network.train()
        order = torch.randperm(len(labels), generator=draw)
        total, count = 0.0, len(labels) // BATCH
        for step in range(count):
            chosen = order[step * BATCH : (step + 1) * BATCH]
            batch = images[chosen]
            mirrored = torch.rand(BATCH, generator=draw) < 0.5
            batch = torch.where(mirrored[:, None, None, None], batch.flip(3), batch)
            # All exits count alike: a shallow one is used as it is, not as a step to the deepest.
            losses = [functional.cross_entropy(exit, labels[chosen]) for exit in network(batch)]
            loss = sum(losses) / len(losses)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            if step % 50 == 0 and sys.stderr.isatty():
                done = (epoch * count + step + 1) / steps
                left = (time.monotonic() - begin) * (1 - done) / done
                print(f"\r{100 * done:3.0f} %, about {left:.0f} s to go \033[K", end="",
                      file=sys.stderr, flush=True)
        shown = " ".join(f"{value:.4f}" for value in accuracies(network, *test))
        print(f"\repoch {epoch + 1}/{epochs}: loss {total / count:.4f}, test accuracy {shown}",
              flush=True)


def export(network, folder):
    folder.mkdir(parents=True, exist_ok=True)
    example = torch.zeros(2, 1, 28, 28)
    options = {"dynamo": False} if int(torch.__version__.split(".")[0]) >= 2 else {}
    for count in range(1, len(network.stages) + 1):
        # The exporter leaves a module in the mode that it found, and a pass in training mode would
        # move the statistics of the batch normalisation: every prefix is set to inference anew.
        prefix = Prefix(network, count).eval()
        torch.onnx.export(prefix, example, str(folder / f"exit{count}.onnx"), opset_version=13,
                          input_names=["input"], output_names=["logits"],
                          dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}}, **options)


def share_weights(folder):
    """Moves the matrices of the folder's graphs into one weights.bin, as halves of their precision.

    Each graph is a prefix of the next, so four files would hold the first stage four times. A Cast
    restores FP32; engines fold it when they load the graph. Nets whose weights are small have no
    use for it.
    """
    import onnx
    from onnx import helper, numpy_helper

    offsets, blob = {}, bytearray()
    for path in sorted(folder.glob("exit*.onnx")):
        model = onnx.load(path)
        casts = []
        for tensor in model.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if values.dtype != np.float32 or values.size < 1 << 16:
                continue
            halves = values.astype(np.float16).tobytes()
            if halves not in offsets:
                offsets[halves] = len(blob)
                blob += halves
            name, dims = tensor.name, list(tensor.dims)
            tensor.Clear()
            tensor.name, tensor.data_type = name + "_half", onnx.TensorProto.FLOAT16
            tensor.dims.extend(dims)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", offsets[halves]),
                               ("length", len(halves))):
                tensor.external_data.add(key=key, value=str(value))
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=onnx.TensorProto.FLOAT))
        for cast in reversed(casts):
            model.graph.node.insert(0, cast)
        path.write_bytes(model.SerializeToString())
    (folder / "weights.bin").write_bytes(blob)


def file_accuracies(folder, images, labels):
    """The accuracy of each exported graph, or nothing where onnxruntime is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    found = []
    for path in sorted(folder.glob("exit*.onnx")):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        right = 0
        for first in range(0, len(labels), 100):
            (logits,) = session.run(None, {"input": images[first : first + 100].numpy()})
            right += int((logits.argmax(1) == labels[first : first + 100].numpy()).sum())
        found.append(right / len(labels))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=sorted(NETWORKS))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, help="default: what the shipped network had")
    parser.add_argument("--images", type=int, default=60000, help="train on the first N only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    arguments = parser.parse_args()
    blocks, epochs, rate = NETWORKS[arguments.name]
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(arguments.threads)
    images, labels = read_images(arguments.data, "train")
    test = read_images(arguments.data, "t10k")
    network = EarlyExitNetwork(blocks)
    count = arguments.images
    train(network, images[:count], labels[:count], arguments.epochs or epochs, rate,
          arguments.seed, test)
    folder = arguments.out / arguments.name / "1"
    export(network, folder)
    if not blocks:
        share_weights(folder)
    print("accuracy:", ", ".join(f"{value:.4f}" for value in accuracies(network, *test)))
    exported = file_accuracies(folder, *test)
    if exported:
        print("of the files:", ", ".join(f"{value:.4f}" for value in exported))
    print(f"wrote {folder}")


if __name__ == "__main__":
    main()
