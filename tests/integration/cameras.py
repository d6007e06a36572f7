"""Cameras for tests: MJPEG over HTTP as network cameras send it, and recordings as files."""

import http.server
import threading
import time

from serving import SOURCE

STREET = [SOURCE / f"examples/pipelines/street{i}.jpg" for i in (1, 2, 3, 4)]
JPEGS = [path.read_bytes() for path in STREET]


def recording(path, frames):
    """Concatenated JPEGs, which is what a .mjpeg file is."""
    path.write_bytes(b"".join(JPEGS[i % len(JPEGS)] for i in range(frames)))
    return path


class Handler(http.server.BaseHTTPRequestHandler):
    """/live/FPS goes on for ever; /frozen sends two frames and then nothing; /drops/N sends N
    frames and hangs up; anything else is not found."""

    def do_GET(self):
        kind, _, number = self.path.strip("/").partition("/")
        if kind not in ("live", "frozen", "drops"):
            return self.send_error(404)
        self.server.opened[kind] = self.server.opened.get(kind, 0) + 1
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        frames = {"live": 10**9, "frozen": 2, "drops": int(number or 0)}[kind]
        pause = 1 / float(number) if kind == "live" else 0.01
        jpegs, began = self.server.jpegs, time.monotonic()
        try:
            for i in range(frames):
                self.send_frame(jpegs[i % len(jpegs)])
                # By the clock: a late frame makes none after it late.
                if self.server.closing.wait(max(0, began + (i + 1) * pause - time.monotonic())):
                    return
            if kind == "frozen":
                self.server.closing.wait()
        except OSError:
            pass  # the stream was removed
        self.close_connection = True

    def send_frame(self, jpeg):
        self.wfile.write(b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: "
                         + str(len(jpeg)).encode() + b"\r\n\r\n" + jpeg + b"\r\n")
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Cameras(http.server.ThreadingHTTPServer):
    """On a free port of this machine; `with Cameras() as cameras: cameras.url("live/25")`."""

    daemon_threads = True

    def __init__(self, jpegs=JPEGS):
        super().__init__(("127.0.0.1", 0), Handler)
        self.jpegs = jpegs
        self.opened = {}  # connections by kind
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, *_):
        pass


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain until {what}")
        time.sleep(0.02)
    return value
