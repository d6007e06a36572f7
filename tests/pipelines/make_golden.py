"""Writes tests/data/operators.golden and tests/data/pipelines.json from reference.py.

Needs numpy, onnxruntime and pillow (any; 13.0 wrote these), and the graphs of models/. Run it from
the root after a change of what operators compute:

    pip install numpy onnxruntime pillow
    python tests/pipelines/make_golden.py
"""

import io
import json
import pathlib

import numpy as np
import onnxruntime
from PIL import Image

import reference as ref

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {"float32": "FP32", "uint8": "UINT8", "int32": "INT32"}


class Golden:
    """NAME TYPE D0,D1,...\\n and the bytes, little endian, for each tensor."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def put(self, name, array):
        array = np.ascontiguousarray(array)
        shape = ",".join(map(str, array.shape))
        self.file.write(f"{name} {TYPES[str(array.dtype)]} {shape}\n".encode() + array.tobytes())


def picture(rng, height, width):
    """Smooth, so that a JPEG of it is small, with some edges."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 90 * np.sin(x / a + c) * np.cos(y / b) for c, (a, b) in
              enumerate([(7, 9), (11, 5), (13, 8)])]
    out = np.stack(planes, -1) + rng.normal(0, 6, (height, width, 3))
    out[height // 3:height // 2, width // 4:width // 2] = [230, 20, 90]
    return np.clip(out, 0, 255).astype(np.uint8)


def detections(rng, size, strides):
    maps = []
    for stride in strides:
        side = size // stride
        one = rng.normal(0, 1, (1, 124, side, side)).astype(np.float32)
        one[:, :80] -= 6
        for kind in (0, 0, 7, 3):
            y, x = rng.integers(0, side, 2)
            one[0, kind, y, x] = rng.uniform(0, 3)
            if x + 1 < side:
                one[0, kind, y, x + 1] = rng.uniform(0, 3)  # a neighbour of the same object
        maps.append(one)
    return maps


def text_map(height, width):
    """Three turned lines, one faint and one too small."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    out = np.zeros((height, width))
    for cx, cy, half, thick, angle, prob in ((30, 14, 22, 4, 0.1, 0.9), (70, 40, 20, 5, -0.4, 0.8),
                                             (24, 44, 4, 13, 0.05, 0.95), (80, 10, 14, 4, 0, 0.4),
                                             (50, 60, 1, 1, 0, 0.9)):
        a = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
        b = -(x - cx) * np.sin(angle) + (y - cy) * np.cos(angle)
        out[(abs(a) <= half) & (abs(b) <= thick)] = prob
    return out[None, None].astype(np.float32)


def operators(path):
    rng = np.random.default_rng(18)
    out = Golden(path)
    image = picture(rng, 61, 83)
    out.put("image", image)
    jpeg = io.BytesIO()
    Image.fromarray(image).save(jpeg, "JPEG", quality=90)
    out.put("jpeg", np.frombuffer(jpeg.getvalue(), np.uint8))
    out.put("jpeg_pixels", np.asarray(Image.open(jpeg).convert("RGB")))
    for name, (h, w) in {"smaller": (20, 31), "larger": (90, 120)}.items():
        out.put(f"resize_{name}", ref.resize(image, h, w))
        out.put(f"resize_{name}_frame", ref.resize_frame(image, h, w))
    boxed, frame = ref.letterbox(image, 40, 48)
    out.put("letterbox", boxed)
    out.put("letterbox_frame", frame)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    out.put("normalize_bgr", ref.normalize(image[:9, :7], mean, std, "bgr"))
    out.put("normalize_nhwc", ref.normalize(image[:9, :7], mean, std, layout="nhwc"))
    boxes = np.array([[3.2, 4.7, 40.1, 33.3], [-5, -7, 20, 90], [60, 50, 200, 200],
                      [10, 10, 10, 10], [300, 300, 310, 320]], np.float32)
    out.put("boxes", boxes)
    for name, extend in (("stretch", False), ("extend", True)):
        crops, frames = ref.crop(image, boxes, 16, 12, 0.1, extend)
        out.put(f"crop_{name}", crops)
        out.put(f"crop_{name}_frames", frames)
    maps = detections(rng, 64, (8, 16))
    frame = np.array([-3, 2, 0.5, 0.25], np.float32)
    for stride, one in zip((8, 16), maps):
        out.put(f"map{stride}", one)
    out.put("frame", frame)
    for name, keep in (("all", None), ("persons", [0])):
        for part, array in zip(("boxes", "scores", "classes"),
                               ref.nanodet(maps, frame, keep=keep, size=64)):
            out.put(f"nanodet_{name}_{part}", array)
    heat = rng.normal(0, 2, (2, 5, 4, 17)).astype(np.float32)
    offsets = rng.normal(0, 8, (2, 5, 4, 34)).astype(np.float32)
    frames = np.array([[10, 20, 1.5, 0.5], [-4, 0, 2, 3]], np.float32)
    out.put("heat", heat)
    out.put("offsets", offsets)
    out.put("frames", frames)
    out.put("pose", ref.pose(heat, offsets, frames))
    text = text_map(64, 96)
    frame = np.array([0, 0, 0.5, 0.8], np.float32)
    quads, scores = ref.db_boxes(text, frame)
    out.put("text_map", text)
    out.put("text_frame", frame)
    out.put("db_quads", quads)
    out.put("db_scores", scores)
    quads = np.array([[[5, 6], [50, 9], [49, 24], [4, 21]], [[60, 3], [72, 3], [72, 55], [60, 55]],
                      [[-9, 40], [100, 40], [100, 52], [-9, 52]]], np.float32)
    lines, widths = ref.text_crop(image, quads, 16, 60)
    out.put("quads", quads)
    out.put("text_crop", lines)
    out.put("text_crop_widths", widths)
    tensor = ref.normalize_lines(lines, widths)
    directions = np.array([[0.02, 0.98], [0.3, 0.7], [0, 1]], np.float32)
    out.put("lines", tensor)
    out.put("directions", directions)
    out.put("turn_upright", ref.turn_upright(tensor, widths, directions))
    steps = rng.random((3, 14, 6)).astype(np.float32)
    steps[2] = 0
    alphabet = ["a", "b", "\u00e9", "\u6587"]
    texts, scores = ref.ctc(steps, alphabet + [" "])
    out.put("steps", steps)
    out.put("ctc_texts", np.frombuffer("\n".join(texts).encode(), np.uint8))
    out.put("ctc_scores", scores)
    logits = rng.integers(0, 5, (3, 9)).astype(np.float32)
    classes, best = ref.top_k(logits, 4)
    out.put("logits", logits)
    out.put("top_classes", classes)
    out.put("top_scores", best)


def pipelines(path):
    def session(name):
        return onnxruntime.InferenceSession(str(ROOT / "models" / name / "1/model.onnx"))
    ocr = [session(f"ocr_{part}") for part in ("det", "cls", "rec")]
    alphabet = ref.read_alphabet(ROOT / "models/pipelines/read_lines/1/alphabet.txt")
    detector, poser = session("pipelines/nanodet"), session("pipelines/posenet")
    answers = {}
    for file in sorted((ROOT / "examples/pipelines").glob("*.jpg")):
        image = np.asarray(Image.open(file).convert("RGB"))
        if file.name.startswith("street"):
            boxes, scores, points = ref.street(image, detector, poser)
            answers[file.name] = {"boxes": boxes.round(3).tolist(),
                                  "scores": scores.round(5).tolist(),
                                  "points": points.round(3).tolist()}
        else:
            quads, texts, scores = ref.read_text(image, *ocr, alphabet)
            answers[file.name] = {"quads": quads.round(3).tolist(), "texts": texts,
                                  "scores": scores.round(5).tolist()}
    # float32 has no more digits than these.
    text = json.dumps(answers, ensure_ascii=False, default=float)
    path.write_text(json.dumps(json.loads(text, parse_float=lambda s: round(float(s), 5)),
                               ensure_ascii=False).replace('], "', '],\n "').replace("}, ", "},\n")
                    + "\n")


if __name__ == "__main__":
    operators(ROOT / "tests/data/operators.golden")
    pipelines(ROOT / "tests/data/pipelines.json")
