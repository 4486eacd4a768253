#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What has become slower?  against.py EARLIER LATER

Both are files that --data of 'tools/bench perftest', 'host', 'rxe', 'scale' or 'instructions' has made. A figure has changed when it did so by more than the
rounds differ: all rounds of the one file are on the same side of all rounds of the other, without the lowest and the highest where there are five or more,
and the medians differ by 2 % or more. Medians alone, as files of earlier versions have them, and single rounds count as rounds that differ by 10 %.
Numbers of instructions have no rounds: they are repeatable within 2 %.

What the whole machine does differently is seen in what stands beside uroce: kernel TCP, UCX, libfabric, the mock, raw frames, bare copies, rdma_rxe. They are
listed but do not count. How often uroce's lock was waited for is not compared.

Status 1 when something of uroce became slower, 2 when the files cannot be compared.
"""
import sys

LEAST = 0.02
UNKNOWN = 0.10
OTHERS = {"TCP", "UCX", "libfabric", "mock", "raw", "copy", "rxe"}  # as program or port
UNITS = {"lat": "us", "bw": "Gbit/s", "rate": "million/s", "mpi": "us", "cpu": "ms", "instr": "instructions", "gib": "ms/GiB", "ns": "ns", "conn": "1/s",
         "kib": "KiB"}
MORE_IS_FASTER = {"bw", "rate", "conn"}


def fail(why):
    print(f"against: {why}", file=sys.stderr)
    sys.exit(2)


def read(path):
    """(MTU, kind, depth, program, port, size) -> (median, least, most); of rows that are there twice the last one counts."""
    rows = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if fields[1:2] == ["waits"]:
                continue  # for the lock: neither slow nor fast
            try:
                rows[tuple(fields[:6])] = figure(fields)
            except (IndexError, ValueError):
                fail(f"{path}:{number} is no row of 'tools/bench perftest --data'")
    return rows


def figure(fields):
    if len(fields) < 8 or fields[1] not in UNITS:
        raise ValueError
    median = float(fields[6])
    rounds = sorted(float(v) for v in fields[8].split(",")) if len(fields) > 8 else []
    if fields[1] == "instr":
        return median, median, median
    if len(rounds) < 2:
        return median, median * (1 - UNKNOWN / 2), median * (1 + UNKNOWN / 2)
    if len(rounds) >= 5:
        rounds = rounds[1:-1]
    return median, rounds[0], rounds[-1]


def change(kind, earlier, later):
    """'slower', 'faster' or None"""
    if not earlier[0] or abs(later[0] - earlier[0]) < LEAST * earlier[0]:
        return None
    if later[1] > earlier[2]:
        return "faster" if kind in MORE_IS_FASTER else "slower"
    if later[2] < earlier[1]:
        return "slower" if kind in MORE_IS_FASTER else "faster"
    return None


def describe(key, earlier, later):
    mtu, kind, depth, program, port, size = key
    what = program if port == "-" else f"{port} {program}"
    return (f"  MTU {mtu}  {what:<28} {size:>8} bytes x {depth:<4} {earlier[0]:>10g} -> {later[0]:<10g} {UNITS[kind]:<12} "
            f"{100 * (later[0] / earlier[0] - 1):+.0f} %")


def order(key):
    return int(key[0]), key[1], key[4], key[3], int(key[5]), int(key[2])


def main():
    if len(sys.argv) != 3:
        fail("two files are needed")
    earlier, later = read(sys.argv[1]), read(sys.argv[2])
    both = sorted(set(earlier) & set(later), key=order)
    if not both:
        fail("no figure is in both files")
    found = {"slower": [], "faster": [], "beside": []}
    for key in both:
        how = change(key[1], earlier[key], later[key])
        if how:
            found["beside" if OTHERS & {key[3], key[4]} else how].append(describe(key, earlier[key], later[key]))
    titles = {"slower": "slower", "faster": "faster", "beside": "what stands beside uroce has changed too: compare ratios"}
    for how, lines in found.items():
        if lines:
            print("\n".join([f"{titles[how]}:"] + lines))
    missing = len(set(earlier) - set(later))
    print(f"{len(both)} figures compared: {len(found['slower'])} slower, {len(found['faster'])} faster" +
          (f"; {missing} of the earlier are not in the later file" if missing else ""))
    return 1 if found["slower"] else 0


if __name__ == "__main__":
    sys.exit(main())
