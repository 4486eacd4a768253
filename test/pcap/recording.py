# SPDX-License-Identifier: BSD-3-Clause
"""A pcap file with microseconds, as tests change it: its header, and its frames as (time in us, bytes)."""
import struct
import zlib


def read(name):
    with open(name, "rb") as f:
        data, at, frames = f.read(), 24, []
    while at < len(data):
        sec, usec, size = struct.unpack_from("<III", data, at)
        frames.append((sec * 1000000 + usec, bytearray(data[at + 16 : at + 16 + size])))
        at += 16 + size
    return data[:24], frames


def write(name, head, frames):
    with open(name, "wb") as f:
        f.write(head)
        for t, p in frames:
            f.write(struct.pack("<IIII", t // 1000000, t % 1000000, len(p), len(p)) + bytes(p))


def icrc(covered):
    """Of an IPv4 packet, from its IP header to where the ICRC begins."""
    m = bytearray(covered)
    for i in (1, 8, 10, 11, 26, 27, 32):
        m[i] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + m))


def seal(p):
    """Makes the ICRC of a frame right."""
    p[-4:] = icrc(p[14:-4])
