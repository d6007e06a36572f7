"""Compares a server's persons in a video with reference.py's, on every tenth frame:

    ./run bench video [VIDEO]

Starts the server, unless --server names one that serves models/pipelines. Needs numpy, onnxruntime,
tritonclient[http], pillow and av (PyAV, which reads the video). The pipeline `street` is asked as a
client asks it, a JPEG for each frame. Ends with 1 where a frame has another number of persons, or a
number is off by more than 0.05 pixels or 0.001 of a score; with 2 where there is no video.
"""

import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile

import av
import numpy as np
import onnxruntime
import tritonclient.http as client
from PIL import Image
from tritonclient.utils import InferenceServerException

import reference as ref

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/demo"))
from server import Server, ServerError  # noqa: E402

MODELS = ROOT / "models/pipelines"
VIDEO = "/usr/share/doc/opencv-doc/examples/data/vtest.avi"
NEAR_PIXELS, NEAR_SCORE = 0.05, 1e-3


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


def with_time_enough(folder):
    """models/pipelines, where a frame has half a minute: a busy machine makes nothing wrong."""
    for model in MODELS.iterdir():
        if model.is_dir() and model.name != "street":
            (folder / model.name).symlink_to(model)
    (folder / "street/1").mkdir(parents=True)
    config = (MODELS / "street/config.pbtxt").read_text(encoding="utf-8")
    slo = 'parameters { key: "slo_ms" value: { string_value: "30000" } }'  # the last one counts
    (folder / "street/config.pbtxt").write_text(f"{config}\n{slo}\n", encoding="utf-8")
    return folder


def compare(server, video):
    """Of every tenth frame: counts, and how far the furthest number is from the reference's."""
    street = Street(server)
    sessions = [onnxruntime.InferenceSession(str(MODELS / name / "1/model.onnx"))
                for name in ("nanodet", "posenet")]
    frames = persons = others = 0
    pixels = scores = 0.0
    for number, frame in enumerate(av.open(video).decode(video=0)):
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
    return {"frames": frames, "persons": persons, "frames_with_others": others,
            "furthest_pixels": pixels, "furthest_score": scores}


def main():
    parser = argparse.ArgumentParser(prog="./run bench video")
    parser.add_argument("video", nargs="?", default=VIDEO)
    parser.add_argument("--server", metavar="HOST:PORT", help="one that serves models/pipelines")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.video).is_file():
        print(f"no video {arguments.video}: name one, or apt-get install opencv-doc",
              file=sys.stderr)
        return 2
    with contextlib.ExitStack() as held:
        server = arguments.server
        if server is None:
            folder = pathlib.Path(
                held.enter_context(tempfile.TemporaryDirectory(prefix="tactus-video-")))
            (folder / "models").mkdir()
            own = held.enter_context(Server(with_time_enough(folder / "models"),
                                            ["--log-level", "warning"], folder / "serve.log"))
            server = f"localhost:{own.http}"
        found = compare(server, arguments.video)
    print(f"{found['frames']} frames, {found['persons']} persons; frames with another number of "
          f"persons: {found['frames_with_others']}; furthest: {found['furthest_pixels']:g} pixels "
          f"(bar {NEAR_PIXELS:g}), {found['furthest_score']:g} of a score (bar {NEAR_SCORE:g})")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=2) + "\n",
                                                encoding="utf-8")
    equal = found["frames"] > 0 and found["frames_with_others"] == 0
    near = found["furthest_pixels"] <= NEAR_PIXELS and found["furthest_score"] <= NEAR_SCORE
    return 0 if equal and near else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ServerError, InferenceServerException) as problem:
        print(f"bench video: {problem}", file=sys.stderr)
        sys.exit(2)
