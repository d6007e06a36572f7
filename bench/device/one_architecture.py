#!/usr/bin/env python3
"""one_architecture.py LIBRARY --keep 90 --out FILE [--without WORD,...]: a library of CUDA kernels
without those for other devices, to be carried to one device.

A library of NVIDIA's compiler has each kernel once for each architecture (.nv_fatbin). The others
are overwritten with zeros: the file stays as long, and packs to a fraction. --without also drops
the groups of kernels that hold a name with one of these words; a program that asks for one of those
then fails.
"""
import argparse
import ctypes
import pathlib
import struct
import sys

FATBIN, CUBIN = 0xBA55ED50, 2


def section(data, name):
    """Where the section of the 64-bit ELF file begins and ends."""
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    strings = headers[names][4]
    for label, _, _, _, offset, length in headers:
        end = data.index(b"\0", strings + label)
        if data[strings + label:end] == name:
            return offset, offset + length
    sys.exit(f"one_architecture.py: no section {name.decode()}: no library of CUDA kernels?")


def entries(data, begin, end):
    """Groups of (kind, architecture, where its bytes begin, how many there are)."""
    while begin < end:
        magic, _, header, size = struct.unpack_from("<IHHQ", data, begin)
        if magic != FATBIN:
            begin += 8
            continue
        at, begin = begin + header, begin + header + size
        group = []
        while at < begin:
            kind, _, header, length = struct.unpack_from("<HHIQ", data, at)
            group.append((kind, *struct.unpack_from("<I", data, at + 28), at + header, length))
            at += header + length
        yield group


def unpacked(packed):
    """What zstd has packed, which is most kernels."""
    if not packed.startswith(b"\x28\xb5\x2f\xfd"):
        return packed
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    size = zstd.ZSTD_getFrameContentSize(packed, ctypes.c_size_t(len(packed)))
    if size > 1 << 31:
        sys.exit("one_architecture.py: a kernel's size is not known")
    text = ctypes.create_string_buffer(size)
    zstd.ZSTD_decompress(text, ctypes.c_size_t(size), packed, ctypes.c_size_t(len(packed)))
    return text.raw


def drops(packed, words):
    text = unpacked(packed)
    return any(word in text for word in words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--keep", type=int, required=True, metavar="ARCHITECTURE",
                        help="compute capability times ten: 90 of an H100 or H200")
    parser.add_argument("--without", default="", metavar="WORD,...")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    data = bytearray(options.library.read_bytes())
    words = [word.encode() for word in options.without.split(",") if word]
    kept = 0
    for group in entries(data, *section(data, b".nv_fatbin")):
        has = any(kind == CUBIN and each == options.keep for kind, each, _, _ in group)
        for kind, each, at, length in group:
            mine = not has or (kind == CUBIN and each == options.keep)
            if mine and has and words and drops(bytes(data[at:at + length]), words):
                mine = False
            if mine:
                kept += length
            else:
                data[at:at + length] = bytes(length)
    options.out.write_bytes(data)
    print(f"{options.out}: {kept / 1e6:.1f} MB of kernels kept")


if __name__ == "__main__":
    main()
