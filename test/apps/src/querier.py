#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A querier of a few lines for the tests of multicast membership.

querier.py IFACE igmp2|igmp3|mld1|mld2 [GROUP]   asks on the interface, about all groups or one, and prints each answer of the next two seconds:
'version type group source'; the type is report, or the number of a record's type."""

import socket
import struct
import sys
import time


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return struct.pack("!H", ~s & 0xFFFF)


def igmp(version, group):
    dst = socket.inet_aton(group or "224.0.0.1")
    msg = b"\x11\x0a\0\0" + (dst if group else bytes(4)) + (b"\x02\x7d\0\0" if version == 3 else b"")
    msg = msg[:2] + checksum(msg) + msg[4:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x46, 0xC0, 24 + len(msg), 0, 0, 1, 2, 0, socket.inet_aton("10.77.0.9"), dst) + b"\x94\x04\0\0"
    ip = ip[:10] + checksum(ip) + ip[12:]
    return b"\x01\0\x5e" + bytes([dst[1] & 0x7F]) + dst[2:] + b"\x02\0\0\0\0\x99\x08\0" + ip + msg


def mld(version, group):
    dst = socket.inet_pton(socket.AF_INET6, group or "ff02::1")
    src = socket.inet_pton(socket.AF_INET6, "fe80::99")
    msg = b"\x82\0\0\0\x03\xe8\0\0" + (dst if group else bytes(16)) + (b"\x02\x7d\0\0" if version == 2 else b"")
    msg = msg[:2] + checksum(src + dst + struct.pack("!II", len(msg), 58) + msg) + msg[4:]
    ip = struct.pack("!IHBB", 6 << 28, 8 + len(msg), 0, 1) + src + dst + b"\x3a\0\x05\x02\0\0\x01\0"
    return b"\x33\x33" + dst[12:] + b"\x02\0\0\0\0\x99\x86\xdd" + ip + msg


def records(msg, off, size, show):
    count = struct.unpack_from("!H", msg, 6)[0]
    for _ in range(count):
        kind, aux, sources = struct.unpack_from("!BBH", msg, off)
        yield kind, show(msg[off + 4:off + 4 + size])
        off += 4 + size * (1 + sources) + 4 * aux


def answers(frame):
    if frame[12:14] == b"\x08\0" and frame[23] == 2:
        msg = frame[14 + (frame[14] & 15) * 4:]
        src = socket.inet_ntoa(frame[26:30])
        if msg[0] in (0x12, 0x16):
            yield "igmp%d" % (1 if msg[0] == 0x12 else 2), "report", socket.inet_ntoa(msg[4:8]), src
        if msg[0] == 0x22:
            for kind, group in records(msg, 8, 4, socket.inet_ntoa):
                yield "igmp3", kind, group, src
    if frame[12:14] == b"\x86\xdd" and frame[20] == 0:
        def show(a):
            return socket.inet_ntop(socket.AF_INET6, a)
        msg = frame[62:]
        src = show(frame[22:38])
        if msg[0] == 131:
            yield "mld1", "report", show(msg[8:24]), src
        if msg[0] == 143:
            for kind, group in records(msg, 8, 16, show):
                yield "mld2", kind, group, src


def main():
    iface, kind = sys.argv[1:3]
    group = sys.argv[3] if len(sys.argv) > 3 else None
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((iface, 0))
    s.setsockopt(263, 1, struct.pack("iHH8s", socket.if_nametoindex(iface), 1, 6, bytes(8)))  # promiscuous
    s.send((igmp if kind.startswith("igmp") else mld)(int(kind[-1]), group))
    end = time.monotonic() + 2
    while (left := end - time.monotonic()) > 0:
        s.settimeout(left)
        try:
            frame, addr = s.recvfrom(2048)
        except socket.timeout:
            break
        if addr[2] != socket.PACKET_OUTGOING:
            for a in answers(frame):
                print(*a, flush=True)


main()
