"""Compares a server's persons in a video with reference.py's, on every tenth frame:

    build/release/apps/tactus serve --models models/pipelines
    python tests/pipelines/compare_video.py /usr/share/doc/opencv-doc/examples/data/vtest.avi

Needs numpy, onnxruntime, pillow, tritonclient[http] and av (PyAV, which reads the video). The pipeline
`street` is asked as a client asks it, a JPEG for each frame. Ends with 1 where a frame has another
number of persons, or a number is off by more than 0.05 pixels or 0.001 of a score.
"""

import argparse
import io
import pathlib
import sys

import av
import numpy as np
import onnxruntime
import tritonclient.http as client
from PIL import Image

import reference as ref

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models" / "pipelines"


class Street:
    def __init__(self, server):
        self.server = client.InferenceServerClient(server)

    def ask(self, jpeg):
        tensor = client.InferInput("jpeg", [len(jpeg)], "UINT8")
        tensor.set_data_from_numpy(np.frombuffer(jpeg, np.uint8))
        answer = self.server.infer("street", [tensor])
        return [answer.as_numpy(name) for name in ("boxes", "scores", "points")]


def furthest(got, want):
    return float(np.abs(got - want).max()) if want.size else 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("video")
    parser.add_argument("--server", default="localhost:8000")
    arguments = parser.parse_args()
    street = Street(arguments.server)
    sessions = [onnxruntime.InferenceSession(str(MODELS / name / "1/model.onnx"))
                for name in ("nanodet", "posenet")]
    frames = persons = others = 0
    pixels = scores = 0.0
    for number, frame in enumerate(av.open(arguments.video).decode(video=0)):
        if number % 10:
            continue
        file = io.BytesIO()
        Image.fromarray(frame.to_ndarray(format="rgb24")).save(file, "JPEG", quality=90)
        want = ref.street(np.asarray(Image.open(file).convert("RGB")), *sessions)
        got = street.ask(file.getvalue())
        frames += 1
        persons += len(want[0])
        if got[0].shape != want[0].shape:
            others += 1
            continue
        pixels = max(pixels, furthest(got[0], want[0]), furthest(got[2][..., :2], want[2][..., :2]))
        scores = max(scores, furthest(got[1], want[1]), furthest(got[2][..., 2], want[2][..., 2]))
    print(f"{frames} frames, {persons} persons; frames with another number of persons: {others}; "
          f"furthest: {pixels:g} pixels, {scores:g} of a score")
    return 1 if others or pixels > 0.05 or scores > 1e-3 else 0


if __name__ == "__main__":
    sys.exit(main())
