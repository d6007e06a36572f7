"""H.264 without an encoder, for tests: whole pictures (I_PCM), and repetitions of the last."""

import base64
import re
import struct

MOST = 1200  # bytes of a NAL unit in one packet


class Bits:
    def __init__(self):
        self.text = []

    def put(self, value, bits):
        self.text.append(f"{value:0{bits}b}" if bits else "")

    def golomb(self, *values):
        """Exp-Golomb codes (ITU-T H.264, 9.1) of numbers from 0 on."""
        for value in values:
            length = (value + 1).bit_length()
            self.put(value + 1, 2 * length - 1)

    def aligned(self):
        text = "".join(self.text)
        text += "0" * (-len(text) % 8)
        self.text = [text]
        return text

    def unit(self, kind):
        """The NAL unit: what is in it ends with a 1, and no three bytes of it look like a start."""
        self.put(1, 1)
        text = self.aligned()
        content = int(text, 2).to_bytes(len(text) // 8, "big")
        return bytes([kind]) + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", content)


class H264:
    """One grey picture in ten of `width` x `height` (multiples of 16), each brighter than the last,
    and the others repeat it: they cannot be decoded without it."""

    rtpmap = "96 H264/90000"

    def __init__(self, width=320, height=240):
        self.blocks = width // 16 * (height // 16)
        sps = Bits()
        sps.put(66 << 16 | 30, 24)  # Baseline, level 3
        # Frame numbers of 8 bits, output in the order of decoding, one reference.
        sps.golomb(0, 4, 2, 1)
        sps.put(0, 1)
        sps.golomb(width // 16 - 1, height // 16 - 1)
        sps.put(0b1100, 4)
        pps = Bits()
        pps.golomb(0, 0)
        pps.put(0, 2)
        pps.golomb(0, 0, 0)
        pps.put(0, 3)
        pps.golomb(0, 0, 0)
        pps.put(0b100, 3)
        self.sps, self.pps = sps.unit(0x67), pps.unit(0x68)
        self.pictures = [self.picture(luma) for luma in range(40, 200, 40)]

    def sdp(self):
        sets = ",".join(base64.b64encode(unit).decode() for unit in (self.sps, self.pps))
        return (f"m=video 0 RTP/AVP 96\r\na=rtpmap:{self.rtpmap}\r\n"
                f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}\r\n")

    def picture(self, luma):
        slice_ = Bits()
        slice_.golomb(0, 7, 0)
        slice_.put(0, 8)
        slice_.golomb(0)
        slice_.put(0, 2)
        slice_.golomb(0, 1)  # no deblocking
        block = "".join(f"{value:08b}" for value in [luma] * 256 + [128] * 128)
        for _ in range(self.blocks):
            slice_.golomb(25)
            slice_.aligned()
            slice_.text.append(block)
        return slice_.unit(0x65)

    def repetition(self, number):
        slice_ = Bits()
        slice_.golomb(0, 5, 0)
        slice_.put(number, 8)
        slice_.put(0, 3)
        slice_.golomb(0, 1, self.blocks)
        return slice_.unit(0x41)

    def packets(self, frame, sequence, timestamp):
        """The frame's RTP packets (RFC 6184): a unit of more than MOST bytes in fragments."""
        number = frame % 10
        unit = self.repetition(number) if number else \
            self.pictures[frame // 10 % len(self.pictures)]
        body = unit[1:]
        parts = [body[at:at + MOST] for at in range(0, len(body), MOST)]
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            yield struct.pack(">BBHII", 0x80, 96 | (0x80 if last else 0), sequence & 0xFFFF,
                              timestamp & 0xFFFFFFFF, 1) + (unit if len(parts) == 1 else bytes(
                                  [unit[0] & 0x60 | 28,
                                   (0x80 if i == 0 else 0) | (0x40 if last else 0) | unit[0] & 0x1F]
                              ) + part)
            sequence += 1
