#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
uroce beside the kernel's rdma_rxe and kernel TCP: perftest's programs between two qemu guests of one CPU each, which have Debian's kernel and are joined
by a bridge. 'tools/bench rxe' calls it, as root, and builds what it measures.

qemu emulates the CPU (TCG). What is measured is therefore how much the guests execute and what each instruction costs the emulation, not time on hardware.
"""

import argparse
import concurrent.futures
import os
import re
import signal
import statistics
import sys
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, f"{os.path.dirname(HERE)}/interop")

import host  # noqa: E402
import image as guest_image  # noqa: E402
from guest import Guest, GuestError  # noqa: E402

BRIDGE, LARGEST_MTU = "cable", 9000
LIMIT = 60  # seconds for one program
MIB = 1048576  # perftest's MB

# A figure: of which program, in us (half a round trip) or Gbit/s, and where in what it prints: the column of perftest's table, the word of tcpbench.
Cell = namedtuple("Cell", "kind program size depth n where")
CELLS = [
    Cell("lat", "ib_send_lat", 8, 1, 200, 4),
    Cell("lat", "ib_write_lat", 8, 1, 200, 4),
    Cell("bw", "ib_write_bw", 65536, 128, 256, 3),
    Cell("bw", "ib_read_bw", 65536, 128, 256, 3),
    Cell("bw", "ib_send_bw", 65536, 128, 256, 3),
]
TCP_CELLS = [Cell("lat", "TCP", 8, 1, 0, "rtt_us"), Cell("bw", "TCP", 65536, 128, 0, "gbps")]

# Over what programs run: in which pair of guests, what stands before their command, and the index of the GID of the IPv4 address.
Way = namedtuple("Way", "guests prefix gid")
WAYS = {
    "rxe": Way("rxe", "", 1),
    "udp": Way("uroce", "uroce run --dev eth0 --port udp -- ", 0),
    "packet": Way("uroce", "uroce run --dev eth0 --port packet -- ", 0),
}


class Pair:
    """Two guests on the bridge, the server's first. `first` is the number of their addresses."""

    def __init__(self, pool, image, initrd, state, first):
        self.server4 = f"10.99.0.{first}"
        self.starting = [pool.submit(self.boot, image, initrd, state, i) for i in (first, first + 1)]

    @staticmethod
    def boot(image, initrd, state, i):
        host.sh(f"mkdir {state}/{i} && ip tuntap add dev tap{i} mode tap && ip link set tap{i} mtu {LARGEST_MTU} master {BRIDGE} up")
        return Guest(image, f"{state}/{i}", f"tap{i}", f"52:54:00:99:00:0{i}", f"10.99.0.{i}/24", f"fd99::{i}/64", LARGEST_MTU, initrd=initrd)

    def wait_booted(self):
        self.guests = [s.result() for s in self.starting]
        return self

    def in_both(self, script):
        for guest in self.guests:
            status, text = guest.run(script, LIMIT)
            if status:
                raise GuestError(f"'{script}' ends with status {status} in a guest: {text.strip()[-300:]}")

    def run(self, command, listens, client):
        """Runs a program as a server in the one guest and as a client in the other. Returns what the client prints."""
        server = self.guests[0].start(command)
        try:
            if not server.wait_listening(listens, 20):
                raise host.Failure(f"'{command}' does not listen: {server.output().strip()[-300:]}")
            # In the foreground: nothing else runs in that guest.
            status, text = self.guests[1].run(client, LIMIT)
            if status:
                raise host.Failure(f"'{client}' ends with status {status}: {text.strip()[-300:]}")
            return text
        finally:
            server.close()


class Lab:
    """A pair of guests for rdma_rxe, and one without it: its module holds UDP port 4791 once it is loaded, and a guest has crashed behind loading it again."""

    def __init__(self, build, prefix, image):
        state = host.private_directories()
        initrd = guest_image.with_uroce(image, prefix, state, [f"{build}/test/bench/tcpbench"])
        host.sh(f"ip link add {BRIDGE} type bridge mcast_snooping 0 && ip link set {BRIDGE} mtu {LARGEST_MTU} up")
        # A guest ends with the thread that has started it (PR_SET_PDEATHSIG), so the threads stay.
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        pairs = {name: Pair(self.pool, image, initrd, state, first) for name, first in (("rxe", 1), ("uroce", 3))}
        self.pairs = {name: pair.wait_booted() for name, pair in pairs.items()}
        self.pairs["uroce"].in_both("rdma link delete rxe0 && rmmod rdma_rxe")
        self.kernel = self.pairs["rxe"].guests[0].kernel

    def stop(self):
        for pair in self.pairs.values():
            for guest in pair.guests:
                guest.stop()

    def set_mtu(self, mtu):
        for pair in self.pairs.values():
            pair.in_both(f"ip link set eth0 mtu {mtu}")

    def measure(self, cell, way):
        if way == "-":
            pair = self.pairs["uroce"]
            said = pair.run("tcpbench server", "tcpbench", f"tcpbench client {pair.server4} -s {cell.size} -d {cell.depth}")
        else:
            pair, command = self.pairs[WAYS[way].guests], WAYS[way].prefix + perftest(cell, WAYS[way].gid)
            said = pair.run(command, "tcp", f"{command} {pair.server4}")
        return figure(cell, said)


def perftest(cell, gid):
    """The server's command; the client's has the address behind it."""
    many = f" -t {cell.depth} -Q {min(cell.depth, 32)}" if cell.kind == "bw" else ""
    return f"{cell.program} -F -x {gid} -s {cell.size} -n {cell.n}{many}"


def figure(cell, said):
    """What a client prints, as a number. With --report_gbits perftest would round to hundredths of a Gbit/s."""
    for words in map(str.split, said.splitlines()):
        if cell.program == "TCP":
            found = dict(w.split("=", 1) for w in words if "=" in w).get(cell.where)
            if found:
                return float(found) / (2 if cell.kind == "lat" else 1)
        elif len(words) > cell.where and words[0] == str(cell.size):
            value = float(words[cell.where])
            return round(value * 8 * MIB / 1e9, 6) if cell.kind == "bw" else value
    raise host.Failure(f"{cell.program} prints no figure: {said.strip()[-300:]}")


def measure_round(lab, ways, figures, number):
    """Each cell once over each way, one after the other; each round begins with another way. Returns how many have failed."""
    failed, turn = 0, ways[number % len(ways):] + ways[:number % len(ways)]
    for cell, way in [(c, w) for c in CELLS for w in turn] + [(c, "-") for c in TCP_CELLS]:
        try:
            value = lab.measure(cell, way)
            figures.setdefault((cell, way), []).append(value)
        except host.Failure as e:
            failed += 1
            print(f"  {way} {cell.program}: {e}", file=sys.stderr, flush=True)
    return failed


def median(figures, cell, way):
    """None where nothing was measured. Of an even number the lower one, as in 'tools/bench perftest'."""
    rounds = figures.get((cell, way))
    return statistics.median_low(rounds) if rounds else None


def table(figures, ways):
    """The medians by lines, and what uroce's are to rdma_rxe's of the same run."""
    def text(value):
        return f"{value:.4g}" if value is not None else "-"

    def line(title, cells):
        return f"{title:<34}" + "".join(f" {c:>11}" for c in cells)

    lines, others = [], [w for w in ways if w != "rxe"]
    for kind, title in (("lat", "latency, us (half a round trip)"), ("bw", "bandwidth, Gbit/s")):
        lines.append(line(title, ways + [f"{w} : rxe" for w in others]))
        for cell in (c for c in CELLS + TCP_CELLS if c.kind == kind):
            values = {w: median(figures, cell, w) for w in ways}
            ratios = [values[w] / values["rxe"] if values[w] and values.get("rxe") else None for w in others]
            if cell.program == "TCP":
                lines.append(line(f"  kernel TCP, {cell.size} bytes", [text(median(figures, cell, "-"))]))
            else:
                lines.append(line(f"  {cell.program}, {cell.size} bytes", [text(values[w]) for w in ways] + [f"{r:.2f}" if r else "-" for r in ratios]))
    return lines


def rows(figures, mtu):
    """As 'tools/bench perftest' keeps them, for 'tools/bench against'. rdma_rxe is a port."""
    return ["\t".join(map(str, (mtu, cell.kind, cell.depth, cell.program, way, cell.size, median(figures, cell, way), len(rounds),
                                ",".join(map(str, rounds))))) for (cell, way), rounds in figures.items()]


def keep(path, kernel, figures, mtu):
    head = f"# tools/bench rxe, Linux {kernel} in emulated guests, medians: lat in us (half a round trip), bw in Gbit/s\n"
    with open(path, "a", encoding="utf-8") as f:
        f.write("\n".join([head + "#mtu\tkind\tdepth\tprogram\tport\tsize\tmedian\trounds\tall"] * (f.tell() == 0) + rows(figures, mtu)) + "\n")


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        found = re.search(r"^model name\s*: (.*)", f.read(), re.M)
    return found.group(1) if found else "CPUs of an unknown kind"


def measure_mtu(lab, mtu, args):
    figures, failed, before = {}, 0, os.getloadavg()
    lab.set_mtu(mtu)
    for number in range(args.runs):
        print(f"MTU {mtu}, round {number + 1} of {args.runs}", flush=True)
        failed += measure_round(lab, args.ways, figures, number)
    if args.data:
        keep(args.data, lab.kernel, figures, mtu)
    print(f"\nMTU {mtu}, medians of {args.runs} rounds; between guests of one CPU with Linux {lab.kernel}, emulated on {os.cpu_count()} CPUs, {cpu_name()}")
    print(f"load average before: {' '.join(f'{v:.2f}' for v in before)}\n")
    print("\n".join(table(figures, args.ways)) + "\n", flush=True)
    return failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"{ROOT}/build-bench", help="build directory (build-bench)")
    parser.add_argument("--kernel", default="6.12", help="kernel of the guests: 6.12 or 6.1")
    parser.add_argument("--runs", type=int, default=3, help="rounds (3)")
    parser.add_argument("--mtu", default="1500,9000", help="MTUs (1500,9000)")
    parser.add_argument("--ports", default="udp,packet", help="ports of uroce (udp,packet)")
    parser.add_argument("--data", help="file that gets the figures as well")
    args = parser.parse_args()
    args.ways = ["rxe", *args.ports.split(",")]
    if args.runs < 1 or not set(args.ways) <= set(WAYS) or not all(m.isdigit() and 576 <= int(m) <= LARGEST_MTU for m in args.mtu.split(",")):
        parser.error(f"--runs is 1 or more, --ports are udp and packet, an MTU is 576 to {LARGEST_MTU}")
    return args


def main():
    args = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    image, reason, _ = guest_image.find_image(args.kernel)
    if not image:
        sys.exit(f"rxe: no guest: {reason}")
    sys.stdout.flush()
    failed = 0
    try:
        prefix = host.installation(args.build)
        host.enter_namespaces()
        lab = Lab(args.build, prefix, image)
        for mtu in map(int, args.mtu.split(",")):
            failed += measure_mtu(lab, mtu, args)
        lab.stop()
    except (GuestError, OSError) as e:
        sys.exit(f"rxe: {e}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
