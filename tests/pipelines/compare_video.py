"""Compares a server's persons in a video with reference.py's, on every tenth frame:

    build/release/apps/tactus serve --models models/pipelines
    python tests/pipelines/compare_video.py /usr/share/doc/opencv-doc/examples/data/vtest.avi

Needs numpy, onnxruntime, pillow, tritonclient[http] and av (PyAV, which reads the video). The steps
of the pipeline `street` are called one by one. Ends with 1 where a frame has another number of
persons, or a number is off by more than 0.05 pixels or 0.001 of a score.
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
KINDS = {"uint8": "UINT8", "float32": "FP32"}


class Steps:
    def __init__(self, server):
        self.server = client.InferenceServerClient(server)

    def call(self, model, **inputs):
        tensors = []
        for name, array in inputs.items():
            tensors.append(client.InferInput(name, array.shape, KINDS[str(array.dtype)]))
            tensors[-1].set_data_from_numpy(array)
        answer = self.server.infer(model, tensors)
        return {out["name"]: answer.as_numpy(out["name"])
                for out in answer.get_response()["outputs"]}

    def street(self, jpeg):
        image = self.call("street_image", jpeg=np.frombuffer(jpeg, np.uint8))
        maps = self.call("nanodet", input_1=image["tensor"])
        maps = {f"map{416 // m.shape[-1]}": m for m in maps.values()}
        found = self.call("persons", frame=image["frame"], pixels=image["pixels"], **maps)
        points = np.zeros((len(found["boxes"]), 17, 3), np.float32)
        for i in range(len(points)):
            seen = self.call("posenet", image=found["crops"][i:i + 1])
            points[i] = self.call("poses", heat=seen["out_MobilenetV1_heatmap_2_BiasAdd"],
                                  offsets=seen["out_MobilenetV1_offset_2_BiasAdd"],
                                  frames=found["frames"][i:i + 1])["points"][0]
        return found["boxes"], found["scores"], points


def furthest(got, want):
    return float(np.abs(got - want).max()) if want.size else 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("video")
    parser.add_argument("--server", default="localhost:8000")
    arguments = parser.parse_args()
    steps = Steps(arguments.server)
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
        got = steps.street(file.getvalue())
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
