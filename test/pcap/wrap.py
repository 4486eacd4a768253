#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Wraps the frames of a pcap file as mirror ports, tunnels and other recorders do.

wrap.py --list              all ways, one a line
wrap.py WAY IN.pcap OUT     frame by frame, at the same times; what a way cannot carry (ARP in IP over IP) stays as it is, or becomes an empty frame

Ways that cut or that need more than one frame for one ('fragments') have more frames than IN.
"""
import struct
import sys

MAC = bytes.fromhex("02000000aa01" "02000000aa02")


def checksum(b):
    n = sum(struct.unpack(">%dH" % (len(b) // 2), b))
    n = (n & 0xffff) + (n >> 16)
    return ~((n & 0xffff) + (n >> 16)) & 0xffff


def ip4(proto, inner, flags=0, ident=7):
    h = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(inner), ident, flags, 64, proto, 0, bytes([172, 16, 0, 1]), bytes([172, 16, 0, 2]))
    return h[:10] + struct.pack(">H", checksum(h)) + h[12:] + inner


def ip6(proto, inner):
    return struct.pack(">IHBB", 0x60000000, len(inner), proto, 64) + bytes.fromhex("fd00" + "00" * 13 + "01" + "fd00" + "00" * 13 + "02") + inner


def udp(port, inner):
    return struct.pack(">HHHH", 0xc123, port, 8 + len(inner), 0) + inner


def eth(kind, inner):
    return MAC + struct.pack(">H", kind) + inner


def kind_of(f):
    return struct.unpack(">H", f[12:14])[0]


def is_ip(f):
    return kind_of(f) in (0x0800, 0x86dd)


def version_proto(f):
    return 4 if kind_of(f) == 0x0800 else 41


def tagged(*tags):
    return lambda f: f[:12] + b"".join(tags) + f[12:]


def of_ip(make):
    """A way that carries IP alone."""
    return lambda f: make(f) if is_ip(f) else f


def extended(make):
    """A way that changes an IPv6 packet, or an IPv4 one."""
    def change(f):
        if kind_of(f) == 0x86dd:
            h, rest = f[14:54], f[54:]
            ext, dst = make(h)
            head = h[:4] + struct.pack(">H", len(rest) + len(ext)) + bytes([ext_kind(make)]) + h[7:24] + dst
            return f[:14] + head + ext + rest
        if kind_of(f) == 0x0800 and make is hop_by_hop:  # as an option of IPv4: the router alert
            h, total = bytearray(f[14:34]), struct.unpack(">H", f[16:18])[0]
            h[0] = 0x46
            h[2:4] = struct.pack(">H", total + 4)
            h += b"\x94\x04\0\0"
            h[10:12] = b"\0\0"
            h[10:12] = struct.pack(">H", checksum(bytes(h)))
            return f[:14] + bytes(h) + f[34:]
        return f
    return change


def hop_by_hop(h):
    return bytes([h[6], 0]) + b"\x05\x02\0\0\1\0", h[24:40]


def segments(h):
    hop = bytes.fromhex("fd00" + "00" * 13 + "99")
    return bytes([h[6], 4, 4, 1, 1, 0, 0, 0]) + h[24:40] + hop, hop


def destination(h):
    return bytes([h[6], 1]) + b"\x01\x0c" + bytes(12), h[24:40]


def ext_kind(make):
    return {hop_by_hop: 0, segments: 43, destination: 60}[make]


def erspan2(f, proto=0x88be):
    return eth(0x0800, ip4(47, struct.pack(">HHI", 0x1000, proto, 5) + struct.pack(">HHI", 0x1000 | 7, 0x0001, 9) + f))


def erspan2_truncated(f):
    short = f[:90]
    return eth(0x0800, ip4(47, struct.pack(">HHI", 0x1000, 0x88be, 5) + struct.pack(">HHI", 0x1000 | 7, 0x0401, 9) + short))


def erspan3(f, platform=False):
    h = struct.pack(">HHIHH", 0x2000 | 7, 0x0001, 123456, 0, (2 << 1) | platform)
    return eth(0x0800, ip4(47, struct.pack(">HHI", 0x1000, 0x22eb, 5) + h + (bytes(8) if platform else b"") + f))


def record(kind, inner, pad=b""):
    body = pad + inner
    return struct.pack("<Q", 0x5e0000000 << 28) + struct.pack(">BBHHH", kind, 4, 16 + len(body), 0, len(inner)) + body


def fragments(f, size=64):
    """Two or more for one of any length."""
    if not is_ip(f):
        return [f]
    out = []
    if kind_of(f) == 0x0800:
        h, rest = f[14:34], f[34:14 + struct.unpack(">H", f[16:18])[0]]
        for at in range(0, len(rest), size):
            part = rest[at:at + size]
            b = bytearray(h)
            b[2:4] = struct.pack(">H", 20 + len(part))
            b[6:8] = struct.pack(">H", at // 8 | (0x2000 if at + size < len(rest) else 0))
            out.append(f[:14] + bytes(b) + part)
    else:
        h, rest = f[14:54], f[54:54 + struct.unpack(">H", f[18:20])[0]]
        fragments.n += 1
        for at in range(0, len(rest), size):
            part = rest[at:at + size]
            ext = bytes([h[6], 0]) + struct.pack(">HI", at | (at + size < len(rest)), fragments.n)
            out.append(f[:14] + h[:4] + struct.pack(">H", 8 + len(part)) + b"\x2c" + h[7:] + ext + part)
    return out if len(out) > 1 and struct.unpack(">H", f[18:20])[0] | (kind_of(f) == 0x86dd) else [f]


fragments.n = 0

ETHERNET, LOOP, NULL, RAW, SLL, SLL2, ERF, IPV4 = 1, 108, 0, 101, 113, 276, 197, 228
SLL_HEAD = struct.pack(">HHH", 0, 1, 6) + MAC[:6] + b"\0\0"
SLL2_HEAD = bytes(2) + struct.pack(">IHBB", 3, 1, 0, 6) + MAC[:6] + b"\0\0"

# name: (link type, frame to frame or frames)
WAYS = {
    "gre": (ETHERNET, of_ip(lambda f: eth(0x0800, ip4(47, struct.pack(">HH", 0, kind_of(f)) + f[14:])))),
    "gretap": (ETHERNET, lambda f: eth(0x0800, ip4(47, struct.pack(">HH", 0, 0x6558) + f))),
    "gre-all-fields": (ETHERNET, lambda f: eth(0x0800, ip4(47, struct.pack(">HHIII", 0xb000, 0x6558, 0, 77, 3) + f))),
    "gre-in-ip6": (ETHERNET, lambda f: eth(0x86dd, ip6(47, struct.pack(">HH", 0, 0x6558) + f))),
    "nvgre": (ETHERNET, lambda f: eth(0x0800, ip4(47, struct.pack(">HHI", 0x2000, 0x6558, 0x123456 << 8) + f))),
    "erspan1": (ETHERNET, lambda f: eth(0x0800, ip4(47, struct.pack(">HH", 0, 0x88be) + f))),
    "erspan2": (ETHERNET, erspan2),
    "erspan3": (ETHERNET, erspan3),
    "erspan3-platform": (ETHERNET, lambda f: erspan3(f, True)),
    "vxlan": (ETHERNET, lambda f: eth(0x0800, ip4(17, udp(4789, b"\x08" + bytes(7) + f)))),
    "vxlan-old-port": (ETHERNET, lambda f: eth(0x0800, ip4(17, udp(8472, b"\x08" + bytes(7) + f)))),
    "vxlan-in-vxlan": (ETHERNET, lambda f: WAYS["vxlan"][1](WAYS["vxlan"][1](f))),
    "vxlan-gpe": (ETHERNET, of_ip(lambda f: eth(0x0800, ip4(17, udp(4790, b"\x0c\0\0" + bytes([1 if kind_of(f) == 0x0800 else 2]) + bytes(4) + f[14:]))))),
    "vxlan-gpe-nsh": (ETHERNET, lambda f: eth(0x0800, ip4(17, udp(4790, b"\x0c\0\0\4" + bytes(4) + b"\0\6\1\3" + bytes(20) + f)))),
    "geneve": (ETHERNET, lambda f: eth(0x86dd, ip6(17, udp(6081, struct.pack(">BBHI", 2, 0, 0x6558, 9 << 8) + bytes(8) + f)))),
    "gtp-u": (ETHERNET, of_ip(lambda f: eth(0x0800, ip4(17, udp(2152, struct.pack(">BBHI", 0x34, 255, len(f) - 14 + 8, 5) + b"\0\0\0\x85\1\0\1\0" + f[14:]))))),
    "mpls": (ETHERNET, of_ip(lambda f: f[:12] + struct.pack(">HI", 0x8847, 17 << 12 | 0x140) + f[14:])),
    "mpls-three-labels": (ETHERNET, of_ip(lambda f: f[:12] + struct.pack(">HIII", 0x8847, 16 << 12 | 64, 17 << 12 | 64, 18 << 12 | 0x140) + f[14:])),
    "mpls-pseudowire": (ETHERNET, lambda f: eth(0x8847, struct.pack(">II", 19 << 12 | 0x140, 0) + f)),
    "mpls-in-udp": (ETHERNET, of_ip(lambda f: eth(0x0800, ip4(17, udp(6635, struct.pack(">I", 17 << 12 | 0x140) + f[14:]))))),
    "ip-in-ip": (ETHERNET, of_ip(lambda f: eth(0x0800, ip4(version_proto(f), f[14:])))),
    "ip-in-ip6": (ETHERNET, of_ip(lambda f: eth(0x86dd, ip6(version_proto(f), f[14:])))),
    "etherip": (ETHERNET, lambda f: eth(0x0800, ip4(97, b"\x30\0" + f))),
    "srv6-ethernet": (ETHERNET, lambda f: eth(0x86dd, ip6(43, bytes([143, 2, 4, 0, 0, 0, 0, 0]) + bytes(16) + f))),
    "hop-by-hop": (ETHERNET, extended(hop_by_hop)),
    "destination-options": (ETHERNET, extended(destination)),
    "srv6-inserted": (ETHERNET, extended(segments)),
    "vlan": (ETHERNET, tagged(b"\x81\0\0\7")),
    "qinq": (ETHERNET, tagged(b"\x88\xa8\0\1", b"\x81\0\0\7")),
    "qinq-9100": (ETHERNET, tagged(b"\x91\0\0\1", b"\x81\0\0\7")),
    "vn-tag": (ETHERNET, tagged(b"\x89\x26\0\1\0\2")),
    "e-tag": (ETHERNET, tagged(b"\x89\x3f\0\1\0\2\0\0")),
    "802.1ah": (ETHERNET, lambda f: eth(0x88a8, b"\0\5\x88\xe7" + b"\0\0\1\2" + f)),
    "pppoe": (ETHERNET, of_ip(lambda f: eth(0x8864, struct.pack(">BBHHH", 0x11, 0, 3, len(f) - 12, 0x21 if kind_of(f) == 0x0800 else 0x57) + f[14:]))),
    "arista-48": (ETHERNET, tagged(b"\xd2\x8b\0\1\1\x20" + bytes(6))),
    "arista-64": (ETHERNET, tagged(b"\xd2\x8b\0\1\0\x10" + bytes(8))),
    "snap": (ETHERNET, lambda f: f[:12] + struct.pack(">H", min(len(f) - 14 + 8, 1500)) + b"\xaa\xaa\3\0\0\0" + f[12:]),
    "raw": (RAW, lambda f: f[14:] if is_ip(f) else b""),
    "loop": (LOOP, lambda f: struct.pack(">I", 2 if kind_of(f) == 0x0800 else 24) + f[14:] if is_ip(f) else b""),
    "null": (NULL, lambda f: struct.pack("<I", 2 if kind_of(f) == 0x0800 else 30) + f[14:] if is_ip(f) else b""),
    "cooked": (SLL, lambda f: SLL_HEAD + f[12:]),
    "cooked2": (SLL2, lambda f: f[12:14] + SLL2_HEAD + f[14:]),
    "erf": (ERF, lambda f: record(2, f, b"\0\0")),
    "erf-extended": (ERF, lambda f: (lambda r: r[:8] + b"\x82" + r[9:16] + b"\x83" + bytes(7) + b"\3" + bytes(7) + r[16:])(record(2, f, b"\0\0"))),
    "erf-ip": (ERF, lambda f: record(22 if kind_of(f) == 0x0800 else 23, f[14:]) if is_ip(f) else record(2, f, b"\0\0")),
    "erspan-of-vxlan": (ETHERNET, lambda f: erspan2(tagged(b"\x81\0\0\7")(WAYS["vxlan"][1](f)))),
    # more frames than before
    "fragments": (ETHERNET, fragments),
    "fragments-backwards": (ETHERNET, lambda f: fragments(f)[::-1]),
    "fragments-of-vxlan": (ETHERNET, lambda f: fragments(WAYS["vxlan"][1](f))),
    "fragments-twice": (ETHERNET, lambda f: [q for p in fragments(f) for q in (p, p)]),
    # less of each
    "erspan2-truncated": (ETHERNET, erspan2_truncated),
    # what cannot be read
    "rocev1": (ETHERNET, lambda f: f[:12] + b"\x89\x15" + bytes(40) + f[42:]),
    "infiniband-in-erf": (ERF, lambda f: record(21, bytes(8) + f[42:])),
    "ipsec": (ETHERNET, lambda f: eth(0x0800, ip4(50, bytes(8) + f))),
    "macsec": (ETHERNET, lambda f: eth(0x88e5, bytes(8) + f)),
    "wifi": (105, lambda f: f),
    "too-deep": (ETHERNET, tagged(*[b"\x81\0\0\7"] * 40)),
}


def wrap(name, source, target):
    link, way = WAYS[name]
    data, at = open(source, "rb").read(), 24
    with open(target, "wb") as out:
        out.write(data[:20] + struct.pack("<I", link))
        while at < len(data):
            size = struct.unpack_from("<I", data, at + 8)[0]
            made = way(data[at + 16:at + 16 + size])
            for f in made if isinstance(made, list) else [made]:
                out.write(data[at:at + 8] + struct.pack("<II", len(f), len(f)) + f)
            at += 16 + size


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(WAYS))
    else:
        wrap(*sys.argv[1:4])
