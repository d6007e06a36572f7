"""A camera that speaks RTSP, for tests: its packets go inside the RTSP connection."""

import socketserver
import struct
import threading

SDP = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nt=0 0\r\n%sa=control:track1\r\n"
MOST = 1200  # bytes of a JPEG in one packet


def segments(jpeg):
    """(marker, content) up to the scan, whose content is all that follows."""
    at = 2
    while True:
        marker, length = jpeg[at + 1], struct.unpack(">H", jpeg[at + 2:at + 4])[0]
        if marker == 0xDA:
            yield marker, jpeg[at + 2 + length:-2]
            return
        yield marker, jpeg[at + 4:at + 2 + length]
        at += 2 + length


class Jpeg:
    """One picture again and again, as RTP (RFC 2435). It has 4:2:0, two tables of 8 bits and the
    usual Huffman tables."""

    def __init__(self, jpeg):
        self.jpeg = jpeg

    def sdp(self):
        return "m=video 0 RTP/AVP 26\r\n"

    def packets(self, _, sequence, timestamp):
        parts = list(segments(self.jpeg))
        tables = b"".join(content[1:] for marker, content in parts if marker == 0xDB)
        height, width = next(struct.unpack(">HH", content[1:5])
                             for marker, content in parts if marker == 0xC0)
        scan = parts[-1][1]
        for at in range(0, len(scan), MOST):
            last = at + MOST >= len(scan)
            head = struct.pack(">BBHII", 0x80, 26 | (0x80 if last else 0), sequence & 0xFFFF,
                               timestamp & 0xFFFFFFFF, 1)
            head += struct.pack(">I", at) + bytes([1, 255, (width + 7) // 8, (height + 7) // 8])
            if at == 0:
                head += struct.pack(">BBH", 0, 0, len(tables)) + tables
            yield head + scan[at:at + MOST]
            sequence += 1


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.playing = None
        while line := self.rfile.readline():
            if line[:1] == b"$" or not line.strip():
                continue  # what the client reports of the stream
            verb, url, _ = line.decode("latin-1").split(" ", 2)
            fields = {}
            while (field := self.rfile.readline().strip()):
                key, _, value = field.decode("latin-1").partition(":")
                fields[key.lower()] = value.strip()
            self.answer(verb, url, fields)
            if verb == "TEARDOWN":
                break

    def answer(self, verb, url, fields):
        more, body = "", ""
        if verb == "OPTIONS":
            more = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER\r\n"
        elif verb == "DESCRIBE":
            more = f"Content-Type: application/sdp\r\nContent-Base: {url}/\r\n"
            body = SDP % self.server.video.sdp()
        elif verb == "SETUP":
            more = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"
        self.wfile.write((f"RTSP/1.0 200 OK\r\nCSeq: {fields['cseq']}\r\nSession: 1\r\n{more}"
                          f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        if verb == "PLAY" and self.playing is None:
            self.playing = threading.Thread(target=self.play, daemon=True)
            self.playing.start()

    def play(self):
        sequence = frame = 0
        try:
            while not self.server.closing.wait(1 / self.server.fps):
                for packet in self.server.video.packets(frame, sequence,
                                                        frame * 90000 // self.server.fps):
                    self.wfile.write(struct.pack(">cBH", b"$", 0, len(packet)) + packet)
                    sequence += 1
                self.wfile.flush()
                frame += 1
        except (OSError, ValueError):
            pass  # the client has left


class RtspCamera(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, video, fps=25):
        super().__init__(("127.0.0.1", 0), Handler)
        self.video, self.fps, self.closing = video, fps, threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def url(self):
        return f"rtsp://127.0.0.1:{self.server_address[1]}/camera"

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, *_):
        pass
