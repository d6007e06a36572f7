"""The live page in a browser that nobody here wrote: what it shows is what the metrics say, it says
why a model misses, tokens and policies hold, and no name that a model has runs as a script.

Emulated models make figures known: a batch takes what the profile says."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import browser
from serving import (SLOW_MS, SOURCE, TACTUS, WAIT_S, Server, add_model, make_certificate,
                     make_repository_with_pipeline, slow_profile)
from site_processes import Site
from test_isolate import Isolated, engine_processes

IMAGE = "<img src=x onerror=document.title='run'>"
BODY = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], "data": [0, 1, 2, 3]}]}
AXE = SOURCE / ".cache" / "axe" / "axe_playwright_python" / "axe.min.js"
TOKENS = ("reader read reader-0123456789abcdef\n"
          "caller infer caller-0123456789abcdef\n")


def emulated(root, name="slow", slo_ms=60_000, more=""):
    add_model(root, name, f'name: "{name}"\nplatform: "emulated"\nmax_batch_size: 1\n'
              'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
              f'parameters {{ key: "slo_ms" value: {{ string_value: "{slo_ms}" }} }}\n{more}')


QUICK = ('platform: "identity"\nmax_batch_size: 4\n'
         'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
         'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n')


def with_strange_name(root):
    emulated(root)
    add_model(root, "strange", QUICK)
    (root / "strange").rename(root / IMAGE.replace("/", ""))


@unittest.skipIf(browser.program() is None, "there is no Chromium: apt-get install "
                                            "chromium-headless-shell")
class PageTest(unittest.TestCase):
    def open(self, server, **looks):
        page = browser.Browser(**looks)
        self.addCleanup(page.close)
        page.open(f"http://{server.http}/")
        page.await_true("document.getElementById('about')?.textContent.includes('ready')")
        return page

    @staticmethod
    def ask(url, body):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @staticmethod
    def call_on(server, model, over):
        """Calls one after the other, until `over` is set."""
        def call():
            while not over.is_set():
                server.post(f"/v2/models/{model}/infer", json.dumps(BODY).encode())
        thread = threading.Thread(target=call)
        thread.start()
        return thread

    def test_it_shows_what_the_metrics_say_and_why_a_model_misses(self):
        fill = lambda root: emulated(root, slo_ms=2 * SLOW_MS)
        over = threading.Event()
        with contextlib.closing(Server("--expiry", "never", "--policy", "fifo:batch=1",
                                       fill=fill)) as server:
            page = self.open(server)
            # One lane, and four who call: each call waits for three others.
            callers = [self.call_on(server, "slow", over) for _ in range(4)]
            try:
                page.await_true("document.querySelector('#models td.bad')?.textContent"
                                ".startsWith('MISS')")
                row = page.evaluate("[...document.getElementById('models').rows].map(r => "
                                    "[...r.cells].map(c => c.textContent))")
                slow = next(cells for cells in row if cells[0] == "slow")
                self.assertRegex(slow[-1], r"\d+ late, 0 given up: (lanes are \d+ % busy; .* came|"
                                           r"batches of up to 4\d\d ms \(slow\) hold a lane)")
                self.assertEqual(slow[6], f"{2 * SLOW_MS}")
                page.await_true("document.getElementById('level').className === 'bad'")
                # Each batch is a bar, late ones are said to be.
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                page.await_true("document.getElementById('batches').textContent.includes('LATE')")
                took = page.evaluate("document.getElementById('batches').rows[0].cells[5]"
                                     ".textContent")
                self.assertGreaterEqual(float(took), 0.9 * SLOW_MS)
                self.ask_what_if(page)
            finally:
                over.set()
                for each in callers:
                    each.join()
            page.await_true("[1, 2, 3].every(i => document.getElementById('seconds').rows[0]"
                            "?.cells[i].textContent === '0')")
            met = server.metric("tactus_requests_total", model="slow", outcome="met")
            late = server.metric("tactus_requests_total", model="slow", outcome="late")
            shown = page.evaluate("history.reduce((sum, s) => sum + s.met + s.missed, 0)")
            self.assertEqual(shown, met + late)
            # The browser calls a what-if that is refused an error.
            self.assertEqual([each for each in page.errors if "whatif" not in each], [])
            self.assertEqual(server.terminate(), 0)
            page.await_true("document.getElementById('link').textContent.includes('again')")

    def ask_what_if(self, page):
        """What if the SLO were a minute? A machine that is busy with other tests says so."""
        page.evaluate("document.getElementById('if-slo').value = 60000")
        about = "document.getElementById('if-about').textContent"
        while True:
            page.click("#if-ask")
            page.await_true("!document.getElementById('if-ask').disabled")
            if "ask again when" not in page.evaluate(about):
                break
            time.sleep(0.5)
        if page.evaluate("document.getElementById('if-table').hidden"):
            self.assertRegex(page.evaluate(about), r"no answer: the machine is (9\d|100) % busy")
            return
        rows = page.evaluate("[...document.getElementById('if-rows').rows].map(r => "
                             "[...r.cells].map(c => c.textContent))")
        self.assertEqual([row[:2] for row in rows],
                         [["all", "as it was"], ["all", "the same, simulated"],
                          ["all", "models.*.slo_ms=60000"]])
        self.assertEqual([row[2] for row in rows][::2], ["0.0 %", "100.0 %"])
        self.assertAlmostEqual(float(rows[1][3]), float(rows[0][3]), delta=SLOW_MS)

    def test_keys_walk_through_the_batches(self):
        over = threading.Event()
        with contextlib.closing(Server(fill=emulated)) as server:
            page = self.open(server)
            caller = self.call_on(server, "slow", over)
            try:
                page.await_true("bars.length >= 3")
            finally:
                over.set()
                caller.join()
            page.evaluate("document.getElementById('lanes').focus()")
            said = []
            for key in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
                page.press(key)
                said.append(page.evaluate("document.getElementById('bar').textContent"))
            self.assertTrue(said[0].startswith("slow, exit"), said)
            self.assertNotEqual(said[0], said[1])
            self.assertEqual(said[0], said[2])
            self.assertEqual(page.evaluate("document.getElementById('pause').ariaPressed"), "true")
            at_start = "(chosen.start / 1000).toFixed(3)"
            seen = "chosen.start <= pausedAt && chosen.end >= pausedAt - 1000 * SPANS[span]"
            page.press("ArrowLeft")
            for _ in range(4):  # closer and closer about the chosen bar
                page.press("+")
                self.assertTrue(page.evaluate(seen))
            self.assertRegex(page.evaluate("document.getElementById('span').textContent"),
                             r"^0\.25 s, from \d+\.\d\d s on$")
            before = page.evaluate("pausedAt")
            page.press("PageUp")
            self.assertLess(page.evaluate("pausedAt"), before)
            page.click("#later")
            self.assertAlmostEqual(page.evaluate("pausedAt"), before)
            for _ in range(3):  # a bar that is not to be seen is brought there
                page.press("ArrowRight")
                self.assertTrue(page.evaluate(seen))
            self.assertIn(f"from {page.evaluate(at_start)} s on",
                          page.evaluate("document.getElementById('bar').textContent"))
            page.press("Escape")
            self.assertEqual(page.evaluate("document.getElementById('span').textContent"),
                             "the last 0.25 s")
            self.assertEqual(page.errors, [])

    def test_a_drag_moves_and_a_press_chooses(self):
        over = threading.Event()
        with contextlib.closing(Server(fill=emulated)) as server:
            page = self.open(server)
            caller = self.call_on(server, "slow", over)
            try:
                page.await_true("bars.length >= 2")
            finally:
                over.set()
                caller.join()
            page.click("#pause")
            left, top, width, height = page.evaluate(
                "(b => [b.left, b.top, b.width, b.height])(byId('lanes').getBoundingClientRect())")
            before = page.evaluate("pausedAt")

            def mouse(kind, x):
                page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=top + 8, button="left",
                         buttons=0 if kind == "mouseReleased" else 1, clickCount=1)
            mouse("mousePressed", left + width / 2)
            mouse("mouseMoved", left + width / 2 + 40)
            mouse("mouseReleased", left + width / 2 + 40)
            self.assertLess(page.evaluate("pausedAt"), before)
            self.assertIsNone(page.evaluate("chosen"))
            x = page.evaluate("LEFT + (middleOf(bars.at(-1)) - nowMs() + 1000 * SPANS[span]) / "
                              "(1000 * SPANS[span]) * (byId('lanes').clientWidth - LEFT)")
            mouse("mousePressed", left + x)
            mouse("mouseReleased", left + x)
            self.assertTrue(page.evaluate("chosen === bars.at(-1)"))

    def test_a_pipelines_call_counts_once(self):
        with contextlib.closing(Server(fill=make_repository_with_pipeline)) as server:
            page = self.open(server)
            for _ in range(5):
                self.assertEqual(server.post("/v2/models/twice/infer",
                                             json.dumps(BODY).encode())[0], 200)
            page.await_true("history.reduce((sum, s) => sum + s.met, 0) >= 5")
            page.await_true("[...document.getElementById('models').rows].some(row => "
                            "row.cells[0].textContent === 'echo' && "
                            "/^0 \\+ \\d+ steps$/.test(row.cells[3].textContent))")
            self.assertEqual(page.evaluate("history.reduce((sum, s) => sum + s.met, 0)"), 5)
            self.assertEqual(server.metric("tactus_requests_total", outcome="met"), 10)
            offered = page.evaluate("[...document.getElementById('if-model').options]"
                                    ".map(each => each.value)")
            self.assertIn("echo", offered)
            self.assertNotIn("twice", offered)
            self.assertEqual(page.errors, [])

    def test_calls_that_are_refused_are_told(self):
        with contextlib.closing(Server(fill=emulated)) as server:
            page = self.open(server)
            call = json.dumps(BODY).encode()
            self.assertEqual(server.post("/v2/models/none/infer", call)[0], 404)
            self.assertEqual(server.post("/v2/models/slow/infer", b"{")[0], 400)
            page.await_true("document.getElementById('refused').textContent.includes('no such')")
            self.assertRegex(page.evaluate("document.getElementById('refused').textContent"),
                             r"calls/s refused: .*malformed")
            self.assertEqual(page.evaluate("document.getElementById('level').className"), "bad")
            for reason in ("not_found", "invalid_argument"):
                self.assertEqual(server.metric("tactus_refused_total", reason=reason), 1)

    def test_who_loads_the_page_again_has_its_minute(self):
        over = threading.Event()
        with contextlib.closing(Server(fill=emulated)) as server:
            page = self.open(server)
            caller = self.call_on(server, "slow", over)
            try:
                page.await_true("bars.length >= 12")
            finally:
                over.set()
                caller.join()
            page.open("about:blank")
            time.sleep(1)
            status, _, text = server.post("/v2/tactus/whatif", b'{"set": []}')
            said = json.loads(text)
            if status == 503:
                self.assertIn("% busy", said["error"])
            else:
                self.assertGreaterEqual(said["was"]["requests"], 8)

    def test_names_are_text(self):
        with contextlib.closing(Server(fill=with_strange_name)) as server:
            page = self.open(server)
            page.await_true("document.getElementById('models').textContent.includes('onerror')")
            self.assertEqual(page.evaluate("document.querySelectorAll('#models img').length"), 0)
            self.assertEqual(page.evaluate("document.title"), "Tactus")
            self.assertEqual(page.errors, [])

    def test_names_of_members_of_every_object_are_names(self):
        def fill(root):
            for name in ("constructor", "__proto__", "toString"):
                add_model(root, name, QUICK)
        with contextlib.closing(Server(fill=fill)) as server:
            page = self.open(server)
            page.await_true("document.getElementById('models').rows.length === 3")
            server.post("/v2/models/constructor/infer", json.dumps(BODY).encode())
            page.await_true("[...document.getElementById('models').rows].some(row => "
                            "row.cells[0].textContent === 'constructor' && "
                            "row.cells[2].textContent === '100.0 %')")
            page.await_true("bars.length === 1")
            self.assertEqual(page.errors, [])

    def test_a_server_that_was_restarted_is_shown_anew(self):
        def start(port):
            process = subprocess.Popen(
                [TACTUS, "serve", "--models", folder, "--http-port", str(port), "--grpc-port", "0",
                 "--metrics-port", "0"], stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            ready = next(line for line in process.stdout if line.startswith(("ready ", "started ")))
            return process, re.search(r"http=(\d+)", ready)[1]
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            add_model(pathlib.Path(folder), "quick", QUICK)
            process, port = start(0)
            page = browser.Browser()
            self.addCleanup(page.close)
            page.open(f"http://127.0.0.1:{port}/ui")
            page.await_true("document.getElementById('about')?.textContent.includes('ready')")
            page.evaluate("serverMs = 1e9")  # as if it had run for eleven days
            process.terminate()
            process.wait()
            page.await_true("document.body.className === 'old'")
            start(port)
            page.await_true("document.body.className === ''")
            self.ask(f"http://127.0.0.1:{port}/v2/models/quick/infer", json.dumps(BODY).encode())
            page.await_true("bars.length === 1 && bars[0].end <= nowMs()")
            self.assertLess(page.evaluate("serverMs"), 1e8)

    def test_a_lane_whose_process_is_killed_is_told(self):
        with contextlib.closing(Isolated()) as server:
            page = self.open(server)
            page.await_true("laneNow.length > 0")
            for process in engine_processes(server.process.pid):
                os.kill(process, signal.SIGKILL)
            page.await_true("/died|runs no batches/.test(document.getElementById('events')"
                            ".textContent)")

    def test_a_lane_that_is_lost_is_told_and_that_it_is_back(self):
        with contextlib.closing(Isolated()) as server:
            page = self.open(server)
            for process in engine_processes(server.process.pid):
                os.kill(process, signal.SIGSTOP)
            page.await_true("document.getElementById('events').textContent"
                            ".includes('runs no batches for now')")
            for process in engine_processes(server.process.pid):
                os.kill(process, signal.SIGKILL)
            page.await_true("document.getElementById('events').textContent"
                            ".includes('runs batches again')")

    def test_a_front_end_shows_the_servers_of_its_site(self):
        site = Site(schedulers=1, workers=2)
        try:
            site.leader()
            page = browser.Browser()
            self.addCleanup(page.close)
            page.open(f"http://{site.http}/ui")
            page.await_true("document.getElementById('about')?.textContent.includes('ready')")
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for status, answer in pool.map(
                        lambda i: site.infer("slow", [[i, 0, 0, 0]]), range(8)):
                    self.assertEqual(status, 200, answer)
            status, text = self.ask(f"http://{site.http}/v2/tactus/whatif", b'{"set": []}')
            self.assertEqual(status, 404)
            self.assertIn("does not decide alone which batches run", text)
            page.await_true("new Set(bars.map(bar => bar.lane)).size === 2")
            page.await_true("document.getElementById('about').textContent"
                            ".includes('policy granted, 2 servers')")
            page.await_true("[...document.getElementById('models').rows].some(row => "
                            "row.cells[0].textContent === 'slow' && "
                            "row.cells[2].textContent === '100.0 %')")
            self.assertEqual(page.errors, [])
            site.workers[0].process.kill()
            page.await_true("document.getElementById('events').textContent"
                            ".includes('runs no batches for now')")
        finally:
            site.close()

    def test_it_fits_small_and_dark_screens(self):
        with contextlib.closing(Server(fill=emulated)) as server:
            page = self.open(server, width=360, height=740, dark=True)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
            self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"),
                             "rgb(20, 23, 26)")

    def test_a_small_screen_shows_why_without_scrolling(self):
        over = threading.Event()
        with contextlib.closing(Server("--expiry", "never", "--policy", "fifo:batch=1",
                                       fill=lambda root: emulated(root, slo_ms=SLOW_MS))) as server:
            page = self.open(server, width=360, height=740)
            callers = [self.call_on(server, "slow", over) for _ in range(4)]
            try:
                page.await_true("document.querySelector('#whys li')?.getBoundingClientRect().right"
                                " <= 360")
                self.assertRegex(page.evaluate("document.querySelector('#whys li').textContent"),
                                 r"^slow: \d+ late")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
            finally:
                over.set()
                for each in callers:
                    each.join()


    @unittest.skipUnless(AXE.exists(), "there is no axe-core: ./run test installs it")
    def test_axe_finds_no_fault(self):
        def fill(root):
            emulated(root, slo_ms=2 * SLOW_MS)
            emulated(root, "without_latencies")
        over = threading.Event()
        with contextlib.closing(Server("--expiry", "never", "--policy", "fifo:batch=1",
                                       fill=fill)) as server:
            callers = [self.call_on(server, "slow", over) for _ in range(4)]
            try:
                for looks in ({}, {"dark": True}, {"width": 360, "height": 740}):
                    page = self.open(server, **looks)
                    page.evaluate("document.querySelectorAll('details')"
                                  ".forEach(d => d.open = true)")
                    page.await_true("document.getElementById('batches').textContent"
                                    ".includes('LATE')")
                    page.await_true("document.querySelector('#models td.bad') !== null")
                    page.evaluate(AXE.read_text() + ";0")
                    faults = page.evaluate(
                        "axe.run().then(r => r.violations.map(v => "
                        "`${v.id}: ${v.help}: ${v.nodes.map(n => n.target + ' ' + "
                        "n.failureSummary).join('; ')}`))")
                    self.assertEqual(faults, [], looks)
            finally:
                over.set()
                for each in callers:
                    each.join()

    def test_many_models_and_lanes_are_shown_without_growing_or_stuttering(self):
        """The seconds of TACTUS_PAGE_S (60 are asked for), or the ten that a newcomer has."""
        seconds = float(os.environ.get("TACTUS_PAGE_S", "10"))

        def fill(root):
            emulated(root)
            for i in range(64):
                emulated(root, f"m{i:02}", more='parameters { key: "profile" value: '
                         '{ string_value: "profile.json" } }\n')
                profile = slow_profile()
                profile["models"][0]["name"] = f"m{i:02}"
                (root / f"m{i:02}" / "profile.json").write_text(json.dumps(profile))
        over = threading.Event()
        with contextlib.closing(Server("--lanes", "16", "--allow-other-machine",
                                       fill=fill)) as server:
            page = self.open(server)
            callers = [self.call_on(server, f"m{i:02}", over) for i in range(0, 64, 4)]
            try:
                page.await_true("bars.length > 100")
                page.evaluate("var slowest = 0, before = performance.now(), frames = 0; "
                              "(function look() { const now = performance.now(); "
                              "slowest = Math.max(slowest, now - before); before = now; ++frames; "
                              "requestAnimationFrame(look); })()")
                heaps = []
                for _ in range(5):
                    time.sleep(seconds / 5)
                    page.ask("HeapProfiler.collectGarbage")
                    heaps.append(page.ask("Runtime.getHeapUsage")["usedSize"])
                slowest, frames = page.evaluate("slowest"), page.evaluate("frames")
                print(f"64 models, 16 lanes, {seconds:.0f} s: heap {heaps} bytes, {frames} frames, "
                      f"the slowest after {slowest:.0f} ms")
                self.assertGreater(frames, 0)
                self.assertEqual(page.evaluate("document.getElementById('models').rows.length"), 65)
                self.assertEqual(page.evaluate("laneNow.length"), 16)
                # Bars of a minute are kept: some 100 bytes each, 40 batches a second.
                self.assertLess(heaps[-1] - heaps[0], 2_000_000)
                self.assertEqual(page.errors, [])
            finally:
                over.set()
                for each in callers:
                    each.join()


@unittest.skipIf(browser.program() is None, "there is no Chromium: apt-get install "
                                            "chromium-headless-shell")
class SecretPageTest(unittest.TestCase):
    def test_a_token_is_asked_for_once_and_forgotten(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            folder = pathlib.Path(folder)
            make_certificate(folder, "server")
            (folder / "tokens").write_text(TOKENS)
            with contextlib.closing(Server(
                    "--tls-cert", str(folder / "server.pem"), "--tls-key",
                    str(folder / "server.key"), "--tokens", str(folder / "tokens"),
                    fill=emulated)) as server:
                page = browser.Browser()
                self.addCleanup(page.close)
                page.open(f"https://{server.http}/ui")
                login = "document.getElementById('login')?.hidden === false"
                for token, says in (("wrong-0123456789abcdef", ""),
                                    ("caller-0123456789abcdef", "may not read")):
                    page.await_true(login)
                    self.assertEqual(page.evaluate("document.getElementById('models').rows.length"),
                                     0)
                    page.evaluate(f"document.getElementById('token').value = '{token}'")
                    page.click("#login button")
                    page.await_true(f"!document.getElementById('login').hidden && "
                                    f"document.getElementById('link').textContent"
                                    f".includes('{says}')")
                # A header takes no such character: it is not kept, and the form stays.
                page.await_true(login)
                page.evaluate("document.getElementById('token').value = 'reader\u201d'")
                page.click("#login button")
                self.assertIn("cannot be a token",
                              page.evaluate("document.getElementById('login-error').textContent"))
                self.assertFalse(page.evaluate("document.getElementById('login').hidden"))
                self.assertIsNone(page.evaluate("sessionStorage.getItem('tactus-token')"))
                page.evaluate("document.getElementById('token').value = 'reader-0123456789abcdef'")
                page.click("#login button")
                page.await_true("document.getElementById('about').textContent.includes('ready')")
                self.assertNotIn("0123456789", page.evaluate("location.href"))
                page.click("#forget")
                page.await_true("document.readyState === 'complete' && " + login)
                self.assertNotIn("0123456789abcdef", server.errors())


class LiveTest(unittest.TestCase):
    """What the page reads, without a browser."""

    def test_a_token_that_was_removed_reads_no_more(self):
        with tempfile.TemporaryDirectory(prefix="tactus-test-") as folder:
            tokens = pathlib.Path(folder) / "tokens"
            tokens.write_text(TOKENS)
            with contextlib.closing(Server("--tokens", str(tokens), "--insecure",
                                           fill=emulated)) as server:
                connection = http.client.HTTPConnection(server.http, timeout=WAIT_S)
                connection.request("GET", "/v2/tactus/live",
                                   headers={"Authorization": "Bearer reader-0123456789abcdef"})
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertIn(b"event: state", answer.readline())
                tokens.write_text(TOKENS.split("\n", maxsplit=1)[1])
                while answer.read(1 << 12):  # to its end; the time-out fails
                    pass
                connection.close()

    @staticmethod
    def ask(server, path):
        connection = http.client.HTTPConnection(server.http, timeout=WAIT_S)
        connection.request("GET", path)
        return connection, connection.getresponse()

    def test_so_many_may_watch_and_a_viewer_that_reads_nothing_harms_nobody(self):
        with contextlib.closing(Server(fill=emulated)) as server, \
                contextlib.ExitStack() as open_now:
            host, port = server.http.split(":")
            deaf = open_now.enter_context(socket.create_connection((host, int(port))))
            deaf.sendall(b"GET /v2/tactus/live HTTP/1.1\r\nHost: x\r\n\r\n")
            watching = []
            for _ in range(7):
                connection, answer = self.ask(server, "/v2/tactus/live")
                open_now.enter_context(contextlib.closing(connection))
                self.assertEqual(answer.status, 200)
                watching.append(answer)
            connection, refused = self.ask(server, "/v2/tactus/live")
            with contextlib.closing(connection):
                self.assertEqual(refused.status, 503)
                self.assertIn(b"8 of them from 127.0.0.1", refused.read())
            for answer in watching:
                self.assertEqual(answer.readline(), b"event: state\n")
            call = json.dumps(BODY).encode()
            self.assertEqual(server.post("/v2/models/slow/infer", call)[0], 200)
            watching[0].close()
            end = time.monotonic() + WAIT_S
            while True:  # whose end is seen once something is written to it
                connection, answer = self.ask(server, "/v2/tactus/live")
                open_now.enter_context(contextlib.closing(connection))
                if answer.status == 200:
                    break
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)
            self.assertEqual(server.terminate(), 0)

    def test_a_what_if_is_answered_or_refused_with_a_reason(self):
        with contextlib.closing(Server(fill=emulated)) as server:
            ask = lambda question: server.post("/v2/tactus/whatif", question)
            status, _, said = ask(b'{"set": 1}')
            self.assertEqual(status, 400, said)
            self.assertIn("the question must be", json.loads(said)["error"])
            status, _, said = ask(b'{"set": []}')
            self.assertEqual(status, 503, said)
            self.assertRegex(json.loads(said)["error"], "ask again when|% busy")
            self.assertEqual(ask(b"x" * 20_000)[0], 413)
            connection, answer = self.ask(server, "/v2/tactus/whatif")
            with contextlib.closing(connection):
                self.assertEqual(answer.status, 405)

    def test_it_can_be_left_out(self):
        with contextlib.closing(Server("--no-ui", fill=emulated)) as server:
            for path in ("/", "/ui", "/ui/app.js", "/v2/tactus/live", "/v2/tactus/whatif"):
                connection, answer = self.ask(server, path)
                with contextlib.closing(connection):
                    self.assertEqual(answer.status, 404, path)

    def test_its_files_allow_no_other_origin(self):
        with contextlib.closing(Server(fill=emulated)) as server:
            for path, kind in (("/ui/index.html", "text/html"), ("/ui/app.js", "text/javascript"),
                               ("/ui/lanes.js", "text/javascript"),
                               ("/ui/style.css", "text/css")):
                connection, answer = self.ask(server, path)
                with contextlib.closing(connection):
                    self.assertEqual(answer.status, 200)
                    self.assertTrue(answer.headers["Content-Type"].startswith(kind))
                    policy = answer.headers["Content-Security-Policy"]
                    self.assertIn("default-src 'none'", policy)
                    self.assertIn("frame-ancestors 'none'", policy)
                    self.assertNotIn("unsafe", policy)
                    self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")


if __name__ == "__main__":
    unittest.main(verbosity=2)
