"""Video streams: the command, REST, events and pictures, sources that freeze or hang up."""

import contextlib
import http.server
import json
import pathlib
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import browser
import serving
from cameras import JPEGS, Cameras, recording, wait_until
from h264 import H264
from rtsp_camera import Jpeg, RtspCamera
from serving import TACTUS, WAIT_S, add_model, identity_config, make_certificate

FEED_KEEPS = 64  # answers that wait for a watcher or a webhook


def make_repository(root):
    """`echo` gives a JPEG back; `slow` takes SLOW_MS for each."""
    add_model(root, "echo", identity_config("echo", 0, [("jpeg", "TYPE_UINT8", [-1])]))
    add_model(root, "texts", identity_config("texts", 4, [("jpeg", "TYPE_STRING", [1])]))
    add_model(root, "slow", 'name: "slow"\nplatform: "emulated"\nmax_batch_size: 0\n'
              'input [ { name: "jpeg" data_type: TYPE_UINT8 dims: [ -1 ] } ]\n'
              'output [ { name: "boxes" data_type: TYPE_FP32 dims: [ 1, 4 ] } ]\n'
              'parameters { key: "slo_ms" value: { string_value: "60000" } }\n')


class Receiver:
    """A webhook: busy at first; /no refuses, /hang never answers while it is there."""

    def __init__(self):
        self.frames = []
        gone = self.gone = threading.Event()
        frames = self.frames

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                line = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path.endswith("/hang"):
                    gone.wait()
                    return
                frames.append(line["frame"])
                refused = self.path.endswith("/no")
                self.send_response(404 if refused else 503 if len(frames) == 1 else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/answers"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.gone.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class StreamsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.Server(fill=make_repository)
        cls.cameras = Cameras()
        cls.folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        cls.files = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.cameras.__exit__()
        with cls.folder, contextlib.closing(cls.server):
            assert cls.server.terminate() == 0, cls.server.errors()

    def command(self, *words, code=0):
        done = subprocess.run([TACTUS, "stream", *map(str, words), "--url", self.server.grpc],
                              capture_output=True, text=True, timeout=2 * WAIT_S)
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def add(self, name, **config):
        config.setdefault("model", "echo")
        status, _, text = self.server.post(f"/v2/streams/{name}", json.dumps(config).encode())
        self.assertEqual(status, 200, text)
        self.addCleanup(self.remove, name)

    def remove(self, name):
        request = urllib.request.Request(f"http://{self.server.http}/v2/streams/{name}",
                                         method="DELETE")
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=WAIT_S).close()

    def read(self, name):
        return json.loads(self.server.get(f"/v2/streams/{name}"))

    def await_served(self, name, count):
        return wait_until(
            lambda: (s := self.read(name))["frames"]["answer"]["served"] >= count and s,
            f"{name} has {count} answers")

    def test_the_command_answers_each_frame_of_a_file(self):
        film = recording(self.files / "film.mjpeg", 12)
        lines, errors = self.command(f"yard={film}", "--model", "echo", "--as-answered",
                                     "--in-flight", 1)
        *frames, end = lines
        self.assertEqual([line["frame"] for line in frames], list(range(1, 13)))
        for i, line in enumerate(frames):
            self.assertEqual(line["stream"], "yard")
            # The JPEG came through as it was; an output this long is told by its shape.
            self.assertEqual(list(line["outputs"].values()),
                             [{"datatype": "UINT8", "shape": [len(JPEGS[i % len(JPEGS)])]}])
        self.assertEqual((end["name"], end["state"]), ("yard", "ended"))
        self.assertEqual((end["frames"]["read"], end["frames"]["answer"]["served"]), (12, 12))
        self.assertIn("yard             ended", errors)

    def test_what_ends_with_the_duration_ended_without_an_error(self):
        film = recording(self.files / "lap.mjpeg", 3)
        end, = self.command(film, "--model", "slow", "--loop", "--duration", 3, "--quiet")[0]
        self.assertEqual((end["state"], end.get("error"), end["reconnects"]), ("ended", None, 0))
        self.assertGreater(end["frames"]["read"], 3)  # more than a lap

    def test_bytes_models_and_several_streams_at_once(self):
        one, two = recording(self.files / "1.mjpeg", 3), recording(self.files / "2.mjpeg", 5)
        lines, _ = self.command(one, two, "--model", "texts", "--as-answered", "--quiet")
        self.assertEqual([(end["name"], end["frames"]["answer"]["served"]) for end in lines],
                         [("stream1", 3), ("stream2", 5)])

    def test_every_and_most_fps_leave_frames_out(self):
        film = recording(self.files / "long.mjpeg", 60)
        end, = self.command(film, "--model", "echo", "--quiet", "--every", 3)[0]
        self.assertEqual(end["frames"]["pace"]["every"], 40)
        end, = self.command(film, "--model", "echo", "--quiet", "--fps", 5)[0]
        self.assertGreater(end["frames"]["pace"]["fps"], 30)  # 48, where nothing stalls

    def test_mistakes_are_told_in_one_line(self):
        film = recording(self.files / "short.mjpeg", 1)
        for words, says in [((film, "--model", "none"), "the server has loaded no model 'none'"),
                            ((film, film, "--model", "echo", "--queue", 0), "--queue"),
                            ((f"a={film}", f"a={film}", "--model", "echo"),
                             "another stream is called 'a' too; name this one: NAME=SOURCE"),
                            (("a=gopher://x/y", "--model", "echo"), "'gopher://x/y': no such kind"),
                            (("--model", "echo"), "sources is required: a file, or an rtsp")]:
            lines, errors = self.command(*words, code=2)
            self.assertEqual(lines, [])
            self.assertIn(says, errors)
            self.assertEqual(len(errors.strip().splitlines()), 1, errors)
        notes = self.files / "notes.txt"
        notes.write_text("no video\n" * 999)
        lines, _ = self.command(notes, "--model", "echo", code=1)
        self.assertEqual(lines[-1]["state"], "failed")
        self.assertIn("notes.txt", lines[-1]["error"])
        picture = self.files / "one.jpg"
        picture.write_bytes(JPEGS[0])
        lines, _ = self.command(picture, "--model", "echo", code=1)
        self.assertIn("one.jpg: is a single picture, and a stream", lines[-1]["error"])
        picture.rename(self.files / "one.mjpeg")
        lines, _ = self.command(self.files / "one.mjpeg", "--model", "echo", "--as-answered")
        self.assertEqual(lines[-1]["frames"]["answer"]["served"], 1)

    def test_a_server_refuses_a_source_of_no_kind(self):
        status, _, text = self.server.post("/v2/streams/far", json.dumps(
            {"source": "gopher://x/y", "model": "echo"}).encode())
        self.assertEqual(status, 400)
        self.assertIn("'gopher://x/y': no such kind; give a path", text.decode())

    def test_a_camera_over_http_is_followed_by_events_and_pictures(self):
        self.add("door", source=self.cameras.url("live/25"))
        base = f"http://{self.server.http}/v2/streams/door"
        with urllib.request.urlopen(f"{base}/events", timeout=WAIT_S) as events:
            self.assertEqual(events.headers["Content-Type"], "text/event-stream")
            first = json.loads(events.readline().removeprefix(b"data: "))
            self.assertEqual((events.readline(), first["stream"]), (b"\n", "door"))
        with urllib.request.urlopen(f"{base}/video", timeout=WAIT_S) as video:
            self.assertEqual(video.readline(), b"--tactus-frame\r\n")
            self.assertEqual(video.readline(), b"Content-Type: image/jpeg\r\n")
            length = int(video.readline().split(b":")[1])
            self.assertEqual(video.readline(), b"\r\n")
            jpeg = video.read(length)
            self.assertEqual((jpeg[:2], jpeg[-2:]), (b"\xff\xd8", b"\xff\xd9"))
        self.await_served("door", 10)
        self.assertGreaterEqual(self.server.metric("tactus_stream_frames_total", stream="door",
                                                   reason="served"), 10)
        if browser.program() is None:
            return
        with contextlib.closing(browser.Browser()) as page:
            page.open(f"{base}/view")
            page.await_true("document.getElementById('streams')?.textContent.includes('door')")
            page.await_true("document.querySelector('#picture img').naturalWidth > 0")
            page.await_true("document.querySelector('#streams td:nth-child(5)').textContent > '0'")
            self.assertEqual(page.errors, [])

    def test_answers_go_to_a_webhook(self):
        with Receiver() as receiver:
            self.add("told", source=self.cameras.url("live/25"), webhook=receiver.url)
            wait_until(lambda: len(receiver.frames) >= 10, "the webhook has ten answers")
            self.assertEqual(receiver.frames[0], receiver.frames[1])  # it was busy at first
            told = receiver.frames[1:]
            self.assertEqual(told, sorted(set(told)))
        stream = self.read("told")
        self.assertGreaterEqual(stream["webhook"]["sent"], 8)
        self.assertEqual(stream["webhook"]["refused"], 0)
        self.assertTrue(stream["config"]["webhook"].endswith("/***"), stream["config"])
        self.assertGreaterEqual(self.server.metric("tactus_stream_webhook_total", stream="told",
                                                   outcome="sent"), 8)
        wait_until(lambda: "error" in self.read("told")["webhook"], "its receiver has gone")

    def test_a_webhook_that_refuses_or_hangs_holds_up_nobody(self):
        with Receiver() as receiver:
            self.add("refused", source=self.cameras.url("live/25"), webhook=receiver.url + "/no")
            self.add("hung", source=self.cameras.url("live/25"), webhook=receiver.url + "/hang")
            wait_until(lambda: self.read("refused")["webhook"]["refused"] >= 3, "three refusals")
            self.assertIn("404", self.read("refused")["webhook"]["error"])
            self.await_served("hung", FEED_KEEPS + 20)
            wait_until(lambda: self.read("hung")["webhook"]["missed"] > 0, "some were pushed out")
            self.assertEqual(self.read("hung")["webhook"]["sent"], 0)
            self.remove("hung")  # returns although the receiver does not

    def test_a_camera_over_rtsp_is_followed_and_missed(self):
        jpeg = Jpeg((serving.SOURCE / "tests/data/frame.jpg").read_bytes())
        for name, video in (("yard", jpeg), ("hall", H264())):
            with self.subTest(name):
                self.follow_rtsp(name, video)

    def follow_rtsp(self, name, video):
        camera = RtspCamera(video)
        try:
            self.add(name, source=camera.url(), reconnect_s=0.05)
            # Of H.264 these are whole pictures and others that cannot be decoded without them.
            self.await_served(name, 15)
            with urllib.request.urlopen(f"http://{self.server.http}/v2/streams/{name}/video",
                                        timeout=WAIT_S) as pictures:
                self.assertEqual(pictures.readline(), b"--tactus-frame\r\n")
        finally:
            camera.__exit__()
        state = wait_until(lambda: (s := self.read(name))["state"] == "waiting" and s,
                           "the camera is missed")
        self.assertEqual(state["frames"]["decode"]["corrupt"], 0)

    def test_a_frozen_and_a_dropping_camera_hold_up_nobody(self):
        self.add("live", source=self.cameras.url("live/25"))
        self.add("frozen", source=self.cameras.url("frozen"), timeout_s=0.3, reconnect_s=0.05)
        self.add("drops", source=self.cameras.url("drops/3"), reconnect_s=0.05)
        self.add("gone", source=self.cameras.url("nothing"), reconnect_s=0.05, attempts=2)
        drops = wait_until(lambda: (s := self.read("drops"))["reconnects"] >= 3 and s,
                           "the dropping camera came back three times")
        self.assertGreaterEqual(drops["frames"]["read"], 3 * 3)
        frozen = wait_until(lambda: (s := self.read("frozen"))["reconnects"] >= 1 and s,
                            "the frozen camera was opened anew")
        self.assertIn("no frame came for 0.3 s", frozen["error"])
        gone = wait_until(lambda: (s := self.read("gone"))["state"] == "failed" and s,
                          "the camera that is not there was given up")
        self.assertIn("404", gone["error"])
        before = self.read("live")["frames"]["answer"]["served"]
        self.await_served("live", before + 25)

    def test_of_too_many_frames_the_newest_are_served_and_the_rest_is_counted(self):
        self.add("busy", source=self.cameras.url("live/100"), model="slow", in_flight=1)
        with urllib.request.urlopen(f"http://{self.server.http}/v2/streams/busy/events",
                                    timeout=WAIT_S) as events:
            numbers = []
            while len(numbers) < 3:
                line = events.readline()
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    self.assertTrue(event["emulated"])
                    numbers.append(event["frame"])
        # Between two answers of 400 ms some forty frames came; the order is that of the frames.
        self.assertGreater(numbers[1] - numbers[0], 4)
        self.assertGreater(numbers[2] - numbers[1], 4)
        end = self.read("busy")
        self.assertGreater(end["frames"]["queue"]["newer"], 8)
        self.assertLessEqual(end["waiting"], 2)
        ended = sum(n for stage, reasons in end["frames"].items() if stage != "read"
                    for n in reasons.values())
        self.assertEqual(ended + end["waiting"] + end["in_flight"], end["frames"]["read"])

    def test_frames_can_go_to_another_server(self):
        with contextlib.closing(serving.Server(fill=make_repository)) as other:
            self.add("far", source=self.cameras.url("live/25"), url=other.grpc)
            self.await_served("far", 5)
            self.assertGreaterEqual(
                other.metric("tactus_requests_total", model="echo", outcome="met"), 5)
            self.remove("far")

    def test_a_server_with_streams_and_watchers_stops_at_once(self):
        server = serving.Server(fill=make_repository)
        with contextlib.closing(server):
            status, _, text = server.post("/v2/streams/a", json.dumps(
                {"source": self.cameras.url("frozen"), "model": "echo"}).encode())
            self.assertEqual(status, 200, text)
            with urllib.request.urlopen(f"http://{server.http}/v2/streams/a/events",
                                        timeout=WAIT_S):
                self.assertEqual(server.terminate(), 0, server.errors())


class KeptStreamsTest(unittest.TestCase):
    """`serve --streams FILE`: what was added is there after a restart."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        self.addCleanup(folder.cleanup)
        self.files = pathlib.Path(folder.name)
        self.kept = self.files / "streams.json"
        self.film = str(recording(self.files / "film.mjpeg", 12))

    def serve(self):
        return contextlib.closing(serving.Server("--streams", str(self.kept),
                                                 fill=make_repository))

    def descriptions(self):
        return json.loads(self.kept.read_text())["streams"]

    @staticmethod
    def state(server, name):
        return json.loads(server.get(f"/v2/streams/{name}"))

    def call(self, server, method, name, body=None):
        request = urllib.request.Request(f"http://{server.http}/v2/streams/{name}", method=method,
                                         data=json.dumps(body).encode() if body else None)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_streams_outlast_a_restart(self):
        yard = {"source": self.film, "model": "echo", "loop": True, "fps": 10}
        with self.serve() as server:
            for name in ("yard", "gate"):
                self.assertEqual(self.call(server, "POST", name, yard)[0], 200)
            self.assertEqual(self.call(server, "POST", "none", {"source": self.film})[0], 400)
            self.assertEqual(self.descriptions(), {"yard": yard, "gate": yard})
            self.assertEqual(self.kept.stat().st_mode & 0o777, 0o600, "sources have passwords")
            self.assertEqual(self.call(server, "DELETE", "gate")[0], 200)
            self.assertEqual(server.terminate(), 0, server.errors())
        self.assertEqual(self.descriptions(), {"yard": yard})
        with self.serve() as server:
            wait_until(lambda: self.state(server, "yard")["frames"]["answer"]["served"] >= 3,
                       "yard has answers again")
            self.assertEqual(self.call(server, "GET", "gate")[0], 404)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_stream_whose_model_is_missing_is_kept_and_says_why(self):
        early = {"source": self.film, "model": "absent"}
        self.kept.write_text(json.dumps({"streams": {"early": early, "old": early}}))
        with self.serve() as server:
            wait_until(lambda: "absent" in self.state(server, "early").get("error", ""),
                       "early says why it does not run")
            listed = json.loads(server.get("/v2/streams"))["streams"]
            self.assertEqual([each["name"] for each in listed], ["early", "old"])
            self.assertEqual(self.call(server, "DELETE", "old")[0], 200)
            self.assertEqual(self.descriptions(), {"early": early})
            status, text = self.call(server, "POST", "early", {**early, "model": "echo"})
            self.assertEqual(status, 200, text)
            self.assertEqual(self.descriptions()["early"]["model"], "echo")
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_stream_that_cannot_be_kept_is_refused(self):
        with self.serve() as server:
            self.kept.mkdir()
            status, text = self.call(server, "POST", "yard", {"source": self.film, "model": "echo"})
            self.assertGreaterEqual(status, 400)
            self.assertIn("would not outlast a restart", text)
            self.assertEqual(self.call(server, "GET", "yard")[0], 404)
            self.assertEqual(server.terminate(), 0, server.errors())

    def test_a_wrong_file_is_told_at_the_start(self):
        for text, said in (("[]", 'must be {"streams"'),
                           ('{"streams": {"a b": {}}}', "stream 'a b': its name"),
                           ('{"streams": {"a": {"source": "x", "model": "m", "colour": 1}}}',
                            "stream 'a': a stream has no key 'colour'")):
            self.kept.write_text(text)
            done = subprocess.run(
                [TACTUS, "serve", "--models", str(self.files), "--http-port", "0", "--grpc-port",
                 "0", "--metrics-port", "0", "--streams", str(self.kept)],
                capture_output=True, text=True, timeout=2 * WAIT_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


class SecureServerTest(unittest.TestCase):
    """Frames for another server, which has a certificate and wants tokens."""

    TOKEN = "camera-0123456789abcdef"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tactus-test-")
        cls.files = pathlib.Path(cls.folder.name)
        for name in ("server", "other"):
            make_certificate(cls.files, name)
        (cls.files / "tokens").write_text(f"camera infer,read {cls.TOKEN}\n")
        (cls.files / "token").write_text(cls.TOKEN + "\n")
        cls.film = recording(cls.files / "film.mjpeg", 3)
        cls.server = serving.Server(
            "--tls-cert", str(cls.files / "server.pem"), "--tls-key",
            str(cls.files / "server.key"), "--tokens", str(cls.files / "tokens"),
            fill=make_repository)

    @classmethod
    def tearDownClass(cls):
        with cls.folder, contextlib.closing(cls.server):
            assert cls.server.terminate() == 0, cls.server.errors()

    def command(self, *words):
        done = subprocess.run(
            [TACTUS, "stream", self.film, "--model", "echo", "--as-answered", "--url",
             self.server.grpc, *words], capture_output=True, text=True, timeout=2 * WAIT_S)
        return done.returncode, done.stdout, done.stderr

    def test_the_command(self):
        ca, token = ("--ca", self.files / "server.pem"), ("--token-file", self.files / "token")
        code, lines, errors = self.command(*ca, *token)
        self.assertEqual(code, 0, errors)
        self.assertEqual(len(lines.splitlines()), 4)
        self.assertNotIn(self.TOKEN, lines + errors)
        for words, says in ((ca, "wants a token"), (token, "without TLS"),
                            (("--ca", self.files / "other.pem", *token),
                             "are these the right certificates"),
                            (("--ca", self.film), "there is no certificate in it"),
                            (("--ca", self.files / "server.pem", "--token-file",
                              self.files / "film.mjpeg"), "no token")):
            code, lines, errors = self.command(*words)
            self.assertEqual(code, 2, errors)
            self.assertIn(says, errors)

    # A name that begins like this machine's address is another's, and would be told the token.
    def test_a_token_goes_to_no_other_machine_in_the_clear(self):
        for url in ("127.example.org:8001", "127.0.0.1.example.org:8001"):
            done = subprocess.run(
                [TACTUS, "stream", self.film, "--model", "echo", "--url", url, "--token-file",
                 self.files / "token"], capture_output=True, text=True, timeout=2 * WAIT_S)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"the token would go to {url} without TLS", done.stderr)

    def test_a_stream_of_a_server(self):
        with contextlib.closing(serving.Server(fill=make_repository)) as near:
            config = {"source": str(self.film), "model": "echo", "realtime": False,
                      "url": self.server.grpc, "ca": str(self.files / "server.pem"),
                      "token_file": str(self.files / "token")}
            status, _, text = near.post("/v2/streams/yard", json.dumps(config).encode())
            self.assertEqual(status, 200, text)
            said = wait_until(
                lambda: (s := near.get("/v2/streams/yard")) and
                json.loads(s)["frames"]["answer"]["served"] == 3 and s, "three answers")
            self.assertNotIn(self.TOKEN, said)
            self.assertEqual(near.terminate(), 0, near.errors())
            self.assertNotIn(self.TOKEN, near.errors())


if __name__ == "__main__":
    unittest.main()
