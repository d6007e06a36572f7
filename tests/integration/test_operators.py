"""Host operators over HTTP and gRPC, alone and in the chains of models/pipelines, called step by
step and compared with tests/data/pipelines.json, which tests/pipelines/reference.py computed."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import tritonclient.grpc as grpc_client
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

from serving import SOURCE, WAIT_S, ServedTest, Server, add_model

PIPELINES = SOURCE / "models" / "pipelines"
PICTURES = SOURCE / "examples" / "pipelines"
EXPECTED = json.loads((SOURCE / "tests/data/pipelines.json").read_text())
# A reference pixel here is one of the photograph. Both round the same numbers in other orders.
PIXELS = 0.05
SCORES = 1e-3


def graphs_are_there(*models):
    return all((PIPELINES / model / "1" / "model.onnx").exists() for model in models)


def fill(root, ensembles=False):
    """models/pipelines, with the ensembles or without; deadlines that no busy machine misses."""
    for folder in (f.parent for f in PIPELINES.glob("*/config.pbtxt")):
        config = (folder / "config.pbtxt").read_text()
        if 'platform: "ensemble"' in config and not ensembles:
            continue
        (root / folder.name).mkdir()
        # The last of equal keys counts.
        (root / folder.name / "config.pbtxt").write_text(
            config + 'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')
        if (folder / "1").exists():
            (root / folder.name / "1").symlink_to((folder / "1").resolve())


class OperatorsTest(ServedTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(fill=fill)

    def setUp(self):
        self.client = client.InferenceServerClient(self.server.http, network_timeout=WAIT_S,
                                                   connection_timeout=WAIT_S)
        self.addCleanup(self.client.close)

    def call(self, model, **inputs):
        """Outputs by name."""
        tensors = []
        for name, array in inputs.items():
            kind = {"uint8": "UINT8", "float32": "FP32", "int32": "INT32"}[str(array.dtype)]
            tensors.append(client.InferInput(name, array.shape, kind))
            tensors[-1].set_data_from_numpy(array)
        answer = self.client.infer(model, tensors)
        return {out["name"]: answer.as_numpy(out["name"])
                for out in answer.get_response()["outputs"]}

    def jpeg(self, name):
        return numpy.frombuffer((PICTURES / name).read_bytes(), numpy.uint8)

    def assert_near(self, got, want, tolerance):
        want = numpy.array(want, numpy.float32)
        self.assertEqual(got.shape, want.shape)
        if want.size:
            self.assertLess(numpy.abs(got - want).max(), tolerance)

    def test_a_jpeg_as_the_whole_body(self):
        body = self.jpeg("street1.jpg").tobytes()
        status, headers, answer = self.server.post(
            "/v2/models/street_image/infer", body, {"Inference-Header-Content-Length": "0"})
        self.assertEqual(status, 200, answer[:300])
        length = headers.get("Inference-Header-Content-Length")
        head = json.loads(answer[:int(length)] if length else answer)
        shapes = {out["name"]: out["shape"] for out in head["outputs"]}
        self.assertEqual(shapes, {"tensor": [1, 3, 416, 416], "pixels": [576, 768, 3],
                                  "frame": [4]})

    def test_grpc_answers_with_the_same_bytes(self):
        jpeg = self.jpeg("text6.jpg")
        with grpc_client.InferenceServerClient(self.server.grpc) as other:
            tensor = grpc_client.InferInput("jpeg", jpeg.shape, "UINT8")
            tensor.set_data_from_numpy(jpeg)
            answer = other.infer("text_image", [tensor], client_timeout=WAIT_S)
        for name, array in self.call("text_image", jpeg=jpeg).items():
            numpy.testing.assert_array_equal(answer.as_numpy(name), array)

    def test_operators_are_models_like_others(self):
        self.assertTrue(self.client.is_model_ready("persons"))
        self.assertIn("persons", [m["name"] for m in self.client.get_model_repository_index()])
        config = self.client.get_model_config("persons")
        self.assertEqual(config["platform"], "tactus_op")
        self.call("street_image", jpeg=self.jpeg("street2.jpg"))
        counted = self.client.get_inference_statistics("street_image")["model_stats"][0]
        self.assertGreaterEqual(counted["inference_stats"]["success"]["count"], 1)
        everyone = self.client.get_inference_statistics()["model_stats"]
        self.assertIn("ocr_det", [m["name"] for m in everyone])
        self.assertIn("persons", [m["name"] for m in everyone])
        self.assertGreaterEqual(
            self.server.metric("tactus_requests_total", model="street_image"), 1)

    def test_broken_pictures_are_refused_and_the_server_lives(self):
        whole = self.jpeg("street1.jpg")
        broken = {"none": whole[:0], "text": numpy.frombuffer(b"no picture", numpy.uint8),
                  "cut off": whole[:len(whole) // 2]}
        for name, body in broken.items():
            with self.subTest(name):
                with self.assertRaisesRegex(InferenceServerException,
                                            "'street_image': operator 'decode_jpeg': the JPEG"):
                    self.call("street_image", jpeg=body)
        self.assertEqual(self.call("street_image", jpeg=whole)["frame"].shape, (4,))

    def test_a_picture_that_lacks_its_end_is_decoded_and_counted(self):
        whole = self.jpeg("street1.jpg")
        self.assertEqual(whole[-2:].tolist(), [0xff, 0xd9])
        wanted = self.call("street_image", jpeg=whole)
        before = self.server.metric("tactus_cut_jpegs_total", model="street_image")
        got = self.call("street_image", jpeg=whole[:-2])
        self.assertEqual({name: values.tolist() for name, values in got.items()},
                         {name: values.tolist() for name, values in wanted.items()})
        self.server.await_metric(before + 1, "tactus_cut_jpegs_total", model="street_image")

    def test_no_detection_is_an_answer_with_no_rows(self):
        maps = {f"map{s}": numpy.full((1, 124, 416 // s, 416 // s), -9, numpy.float32)
                for s in (8, 16, 32)}
        answer = self.call("persons", frame=numpy.array([0, 0, 1, 1], numpy.float32),
                           pixels=numpy.zeros((9, 9, 3), numpy.uint8), **maps)
        self.assertEqual(answer["boxes"].shape, (0, 4))
        self.assertEqual(answer["crops"].shape, (0, 193, 129, 3))

    @unittest.skipUnless(graphs_are_there("nanodet", "posenet"), "run tools/setup/street.sh")
    def test_persons_of_four_frames_equal_the_references(self):
        for name in sorted(n for n in EXPECTED if n.startswith("street")):
            with self.subTest(name):
                image = self.call("street_image", jpeg=self.jpeg(name))
                maps = self.call("nanodet", input_1=image["tensor"])
                maps = {f"map{416 // m.shape[-1]}": m for m in maps.values()}
                found = self.call("persons", frame=image["frame"], pixels=image["pixels"], **maps)
                want = EXPECTED[name]
                self.assert_near(found["boxes"], want["boxes"], PIXELS)
                self.assert_near(found["scores"], want["scores"], SCORES)
                self.assertGreater(len(want["boxes"]), 2)
                for i, points in enumerate(want["points"]):
                    maps = self.call("posenet", image=found["crops"][i:i + 1])
                    got = self.call("poses", heat=maps["out_MobilenetV1_heatmap_2_BiasAdd"],
                                    offsets=maps["out_MobilenetV1_offset_2_BiasAdd"],
                                    frames=found["frames"][i:i + 1])["points"][0]
                    self.assert_near(got[:, :2], [p[:2] for p in points], PIXELS)
                    self.assert_near(got[:, 2], [p[2] for p in points], SCORES)

    @unittest.skipUnless(graphs_are_there("ocr_det", "ocr_cls", "ocr_rec"),
                         "run tools/setup/ocr.sh")
    def test_texts_of_six_photographs_equal_the_references(self):
        lines = []
        for name in sorted(n for n in EXPECTED if n.startswith("text")):
            with self.subTest(name):
                image = self.call("text_image", jpeg=self.jpeg(name))
                seen = self.call("ocr_det", x=image["tensor"])["sigmoid_0.tmp_0"]
                found = self.call("text_lines", map=seen, frame=image["frame"],
                                  pixels=image["pixels"])
                want = EXPECTED[name]
                self.assert_near(found["quads"], want["quads"], PIXELS)
                lines.append(len(want["texts"]))
                for i, text in enumerate(want["texts"]):
                    row = {key: found[key][i:i + 1] for key in ("lines", "widths", "small")}
                    directions = self.call("ocr_cls", x=row["small"])["softmax_0.tmp_0"]
                    upright = self.call("upright", lines=row["lines"], widths=row["widths"],
                                        directions=directions)["upright"]
                    steps = self.call("ocr_rec", x=upright)["softmax_11.tmp_0"]
                    read = self.call("read_lines", steps=steps)
                    self.assertEqual(read["texts"][0, 0].decode(), text)
                    self.assertAlmostEqual(float(read["scores"][0, 0]), want["scores"][i],
                                           delta=SCORES)
        self.assertEqual(lines, [5, 4, 2, 1, 2, 4])


class PipelinesTest(ServedTest):
    """Both pipelines as one call each: a JPEG in, texts or persons out."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(fill=lambda root: fill(root, ensembles=True))

    def call(self, pipeline, picture, outputs):
        jpeg = numpy.frombuffer((PICTURES / picture).read_bytes(), numpy.uint8)
        with grpc_client.InferenceServerClient(self.server.grpc) as service:
            tensor = grpc_client.InferInput("jpeg", jpeg.shape, "UINT8")
            tensor.set_data_from_numpy(jpeg)
            answer = service.infer(pipeline, [tensor], client_timeout=WAIT_S)
        return [answer.as_numpy(name) for name in outputs]

    def assert_near(self, got, want, tolerance):
        want = numpy.array(want, numpy.float32)
        self.assertEqual(got.shape, want.shape)
        self.assertLess(numpy.abs(got - want).max(), tolerance)

    @unittest.skipUnless(graphs_are_there("nanodet", "posenet"), "run tools/setup/street.sh")
    def test_a_frame_comes_back_as_persons_and_their_poses(self):
        for name in sorted(n for n in EXPECTED if n.startswith("street")):
            with self.subTest(name):
                boxes, scores, points = self.call("street", name, ("boxes", "scores", "points"))
                want = EXPECTED[name]
                self.assert_near(boxes, want["boxes"], PIXELS)
                self.assert_near(scores, want["scores"], SCORES)
                self.assert_near(points[..., :2], [[p[:2] for p in each]
                                                   for each in want["points"]], PIXELS)

    @unittest.skipUnless(graphs_are_there("ocr_det", "ocr_cls", "ocr_rec"),
                         "run tools/setup/ocr.sh")
    def test_a_photograph_comes_back_as_its_texts(self):
        for name in sorted(n for n in EXPECTED if n.startswith("text")):
            with self.subTest(name):
                texts, scores, quads = self.call("read_text", name,
                                                 ("texts", "text_scores", "quads"))
                want = EXPECTED[name]
                self.assertEqual([text.decode() for text in texts[:, 0]], want["texts"])
                self.assert_near(scores[:, 0], want["scores"], SCORES)
                self.assert_near(quads, want["quads"], PIXELS)

    def test_a_broken_picture_is_the_callers_mistake_at_its_step(self):
        with grpc_client.InferenceServerClient(self.server.grpc) as service:
            tensor = grpc_client.InferInput("jpeg", [9], "UINT8")
            tensor.set_data_from_numpy(numpy.frombuffer(b"no jpeg !", numpy.uint8))
            with self.assertRaisesRegex(InferenceServerException, "'?street_image'?.*the JPEG"):
                service.infer("street", [tensor], client_timeout=WAIT_S)


class OperatorControlTest(unittest.TestCase):
    """Models come to the host's lanes and go from them as to all others."""

    def setUp(self):
        self.server = Server("--model-control-mode", "explicit", "--load-model", "poses", fill=fill)
        self.addCleanup(self.server.close)
        self.client = client.InferenceServerClient(self.server.http, network_timeout=WAIT_S)
        self.addCleanup(self.client.close)

    def ready(self):
        return sorted(m["name"] for m in self.client.get_model_repository_index()
                      if m.get("state") == "READY")

    def test_models_are_loaded_replaced_and_unloaded_where_they_run(self):
        self.assertEqual(self.ready(), ["poses"])
        self.client.load_model("persons")
        self.assertEqual(self.ready(), ["persons", "poses"])
        # Another platform for the same name: it moves to the other runtime.
        self.client.load_model("poses", config=json.dumps({
            "platform": "identity", "max_batch_size": 0,
            "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["2"]}]}))
        self.assertEqual(self.ready(), ["persons", "poses"])
        self.assertEqual(self.client.get_model_config("poses")["platform"], "identity")
        tensor = client.InferInput("x", [2], "FP32")
        tensor.set_data_from_numpy(numpy.array([3, 4], numpy.float32))
        answer = self.client.infer("poses", [tensor]).as_numpy("OUTPUT0")
        numpy.testing.assert_array_equal(answer, [3, 4])
        self.client.load_model("poses")
        self.assertEqual(self.client.get_model_config("poses")["platform"], "tactus_op")
        self.client.unload_model("persons")
        self.client.unload_model("poses")
        self.assertEqual(self.ready(), [])
        with self.assertRaises(InferenceServerException):
            self.client.unload_model("nobody")
        self.assertEqual(self.server.terminate(), 0)

    def test_a_chain_with_a_mistake_is_refused_with_its_reason(self):
        for key, value, why in (("op", "poze", "there is no operator 'poze'"),
                                ("pose.stride", "0", "argument pose.stride: '0' is not"),
                                ("pose.heat", "frames", "its heat is 'frames'")):
            config = {"platform": "tactus_op", "parameters": {"op": {"string_value": "pose"}}}
            config["parameters"][key] = {"string_value": value}
            if key == "pose.heat":
                config["input"] = [{"name": "frames", "data_type": "TYPE_FP32",
                                    "dims": ["-1", "4"]}]
            with self.subTest(key), self.assertRaisesRegex(InferenceServerException, why):
                self.client.load_model("poses", config=json.dumps(config))
        self.assertEqual(self.ready(), ["poses"])


def fill_with_slow(root):
    fill(root)
    add_model(root, "slow", 'platform: "emulated"\nmax_batch_size: 1\n'
              'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')


class OwnLanesTest(unittest.TestCase):
    """Without lanes of their own, operators would wait for the device's batches."""

    def test_operators_are_answered_while_the_device_is_busy(self):
        server = Server(fill=fill_with_slow)
        self.addCleanup(server.close)
        calls = 6  # of 0.4 s each, one after another
        with client.InferenceServerClient(server.http, network_timeout=WAIT_S,
                                          concurrency=calls + 1) as other:
            tensor = client.InferInput("INPUT0", [1, 4], "FP32")
            tensor.set_data_from_numpy(numpy.zeros((1, 4), numpy.float32))
            slow = [other.async_infer("slow", [tensor]) for _ in range(calls)]
            server.await_pending(calls // 2)  # a slow client sends the last as the first ends
            status, _, answer = server.post(
                "/v2/models/street_image/infer", (PICTURES / "street1.jpg").read_bytes(),
                {"Inference-Header-Content-Length": "0"})
            waiting = server.metric("tactus_pending_calls")
            self.assertEqual(status, 200, answer[:300])
            self.assertGreater(waiting, 0, "it was answered behind all of the device's calls")
            for call in slow:
                call.get_result()


@unittest.skipUnless(graphs_are_there("nanodet", "posenet", "ocr_det", "ocr_cls", "ocr_rec"),
                     "run ./run demo pipelines")
class DemoTest(unittest.TestCase):
    """./run demo pipelines, with too little load and too much time for anything to be late."""

    def test_draws_what_the_pipelines_find(self):
        with tempfile.TemporaryDirectory(prefix="tactus-demo-") as out:
            done = subprocess.run(
                [SOURCE / "tools/demo/pipelines", "--slo-ms", "60000", "--seconds", "2",
                 "--loads", "1", "--out", out, "--json", f"{out}/demo.json",
                 "--binary", os.environ["TACTUS"]], capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("NOTICE | DOUBLE | PARKING", done.stdout)
            drawn = (pathlib.Path(out) / "index.html").read_text()
            self.assertEqual(drawn.count("<figure>"), 10)
            video = drawn[drawn.index('<figure class="video"'):drawn.index("<script>")]
            self.assertEqual(video.count("<g "), 40)
            self.assertGreater(video.count('<rect class="found"'), 40)
            self.assertEqual(len(list(pathlib.Path(out).glob("frames/*.jpg"))), 40)
            drawn = drawn.replace(video, "")
            self.assertEqual(drawn.count('<rect class="found"'), 3 + 8 + 3 + 5)
            self.assertEqual(drawn.count("<polygon"), 5 + 4 + 2 + 1 + 2 + 4)
            figures = json.loads((pathlib.Path(out) / "demo.json").read_text())
            self.assertEqual([run["outcomes"]["error"] for run in figures["runs"]], [0] * 3)
            for run in figures["runs"]:
                self.assertGreater(run["offered_rps"], 0)


if __name__ == "__main__":
    unittest.main()
