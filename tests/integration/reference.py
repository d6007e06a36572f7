"""What ONNX Runtime answers when Python calls it on the same graph."""

import functools

import numpy
import onnxruntime

from serving import SOURCE


@functools.lru_cache(maxsize=None)
def session(model, exit_name):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        str(SOURCE / "models" / model / "1" / f"exit{exit_name}.onnx"), options,
        providers=["CPUExecutionProvider"])


def images(rows, seed=7):
    return numpy.random.default_rng(seed).normal(size=(rows, 1, 28, 28)).astype(numpy.float32)


def logits(model, exit_name, batch):
    return session(model, exit_name).run(["logits"], {"input": batch})[0]


def assert_same(test, got, model, exit_name, batch):
    """Batches differ between the two, and with them the order of some sums."""
    test.assertEqual(got.shape, (len(batch), 10))
    numpy.testing.assert_allclose(got, logits(model, exit_name, batch), rtol=1e-3, atol=1e-4)
