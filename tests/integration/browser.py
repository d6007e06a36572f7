"""Chromium without a window, driven over its DevTools protocol on two pipes."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

WAIT_S = 30


def program():
    """Debian's chromium-headless-shell, or another Chromium; None: there is none."""
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One page. What it logs as an error, a violated policy too, is in `errors`."""

    def __init__(self, width=1440, height=900, dark=False):
        self._folder = tempfile.TemporaryDirectory(prefix="tactus-browser-")
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # Chromium reads its third descriptor and writes its fourth.
        command = [program(), "--headless", "--no-sandbox", "--disable-gpu",
                   "--remote-debugging-pipe", "--ignore-certificate-errors",
                   f"--user-data-dir={self._folder.name}", "about:blank"]
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(["bash", "-c", shell, "chromium", *command],
                                         pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._number, self._held, self._session = 0, b"", None
        self.errors = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.resize(width, height)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def resize(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

    def ask(self, method, **parameters):
        """The result of a command of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        while b"\0" not in self._held:
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._held += piece
        text, _, self._held = self._held.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(message["params"]["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["level"] == "error":
                self.errors.append(f"{entry['text']} {entry.get('url', '')}")
        return message

    def open(self, url):
        self.ask("Page.navigate", url=url)

    def evaluate(self, text):
        """The value of a JavaScript expression, of a promise too."""
        result = self.ask("Runtime.evaluate", expression=text, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{text}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def _is_true(self, text):
        try:
            return self.evaluate(text)
        except RuntimeError as error:  # the page gives way to another
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def await_true(self, text, wait_s=WAIT_S):
        end = time.monotonic() + wait_s
        while not self._is_true(text):
            if time.monotonic() > end:
                page = self.evaluate("document.body.innerText")
                raise AssertionError(f"never true: {text}\n{page}\n{self.errors}")
            time.sleep(0.05)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key,
                     **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))

    def click(self, selector):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, path, whole=True):
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        with contextlib.suppress(OSError, RuntimeError):
            self._session = None
            self.ask("Browser.close")
        try:
            self._process.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()
