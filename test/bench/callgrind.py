#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of 'tools/bench instructions', from profiles by callgrind.

  callgrind.py [--port PORT] [--top N] [--data FILE] ROW...     ROW: TITLE,NAME,UNITS,PER,SHORT,LONG

SHORT and LONG are profiles of two runs, LONG's with UNITS more of what is counted (packets, iterations): their difference has no start and no end in
it. PER: the last columns are calls for so many of these units (the packets of a message). Counted is what liburoce executes itself, and what is
executed for it elsewhere:

  libc     functions of libc that it calls, except those that copy
  TLS      access to thread-local variables, by the dynamic linker
  work     the sum of these three: what a packet costs apart from its payload
  copies   memcpy and memmove of libc, whoever calls them in liburoce
  ICRC     ISA-L, and functions of liburoce that are nothing else: their names begin with icrc_ or crc32_ and end in what they do it with

Not counted: the program, the kernel, test/bench/dilate.c. FILE gets a row for each number, as 'tools/bench perftest --data' writes them.
--top N: the N functions of each row that execute most.
"""
import argparse
import collections
import os
import re
import sys

COPIES = re.compile(r"_?_?mem(cpy|move|pcpy)")
ICRC = re.compile(r"(ur_)?(icrc|crc32)_\w*(copy|fold|kernel|clmul|clmulqdq|pmull|avx2|avx512|256|512)(\.|$)")
COLUMNS = ("liburoce", "libc", "TLS", "work", "copies", "ICRC")
CALLS = ("clock_gettime", "recvmmsg", "sendmmsg")


class Profile:
    """own: (object, function) -> instructions; calls: (caller, callee) -> [how often, instructions in it and below it]"""

    def __init__(self, lines):
        self.own = collections.Counter()
        self.calls = collections.defaultdict(lambda: [0, 0])
        self.names = {}
        self.read(lines)

    def name(self, kind, value):
        """`(12) name` defines what `(12)` stands for from then on; files, objects and functions are numbered separately."""
        m = re.match(r"\((\d+)\)(?: (.*))?$", value)
        if not m:
            return value
        if m.group(2) is not None:
            self.names[kind, m.group(1)] = m.group(2)
        return self.names[kind, m.group(1)]

    def read(self, lines):
        ob = fn = cob = cfn = called = None
        for line in lines:
            line = line.rstrip("\n")
            if line[:1].isdigit() or line[:1] in ("+", "-", "*"):
                fields = line.split()
                cost = int(fields[1]) if len(fields) > 1 else 0
                if called is None:
                    self.own[ob, fn] += cost
                else:
                    call = self.calls[(ob, fn), called]
                    call[1] += cost
                    called = None
                continue
            key, _, value = line.partition("=")
            if key == "ob":
                ob = os.path.basename(self.name("ob", value))
            elif key == "fn":
                fn, cob = self.name("fn", value), None
            elif key == "cob":
                cob = os.path.basename(self.name("ob", value))
            elif key == "cfn":
                cfn = self.name("fn", value)
            elif key == "calls":
                called, cob = (cob or ob, cfn), None
                self.calls[(ob, fn), called][0] += int(value.split()[0])


def base(function):
    """`clock_gettime@@GLIBC_2.17` and `serve.lto_priv.0` without what the linker and the compiler have added."""
    return re.sub(r"(@.*|\.(lto_priv|part|constprop|isra|cold)\b.*|'\d+)$", "", function)


def is_ours(ob):
    return ob.startswith("liburoce.so")


def column(ob, function):
    """Of the column where instructions of this function count when liburoce calls it or is it."""
    if is_ours(ob):
        return "ICRC" if ICRC.match(base(function)) else "liburoce"
    if ob.startswith("libisal.so"):
        return "ICRC"
    if ob.startswith("libc.so"):
        return "copies" if COPIES.match(function) else "libc"
    if ob.startswith("ld-") and "tls" in function:
        return "TLS"
    return None


def measure(profile):
    """(columns, calls, functions) of one profile, each a Counter"""
    columns, calls, functions = collections.Counter(), collections.Counter(), collections.Counter()
    for (ob, fn), cost in profile.own.items():
        if is_ours(ob) or ob.startswith("libisal.so"):
            columns[column(ob, fn)] += cost
            functions[ob.split(".")[0], base(fn)] += cost
    for ((from_ob, from_fn), (ob, fn)), (count, cost) in profile.calls.items():
        through = from_ob.startswith("dilate") and base(fn) == base(from_fn) and ob.startswith("libc.so")
        if not (is_ours(from_ob) or through) or is_ours(ob) or ob.startswith(("libisal.so", "dilate")):
            continue
        where = column(ob, fn)
        if where:
            columns[where] += cost
            functions[ob.split(".")[0], base(fn)] += cost
            if base(fn) in CALLS:
                calls[base(fn)] += count
    columns["work"] = columns["liburoce"] + columns["libc"] + columns["TLS"]
    return columns, calls, functions


def difference(short, long, units):
    """Of the Counters of two runs, for one unit."""
    return {k: (long[k] - short[k]) / units for k in set(short) | set(long)}


def rows_of(specs):
    for spec in specs:
        title, name, units, per, short, long = spec.split(",")
        profiles = []
        for path in (short, long):
            with open(path, encoding="utf-8", errors="replace") as f:
                profiles.append(measure(Profile(f)))
        columns, calls, functions = (difference(s, l, int(units)) for s, l in zip(*profiles))
        yield title, name, columns, {k: v * int(per) for k, v in calls.items()}, functions


def table(rows):
    out = ["%-28s" % "" + "".join(f"{c:>10}" for c in COLUMNS) + "".join(f"{c:>15}" for c in CALLS)]
    for title, _, columns, calls, _ in rows:
        out.append("%-28s" % title + "".join(f"{columns.get(c, 0):10.1f}" for c in COLUMNS) + "".join(f"{calls.get(c, 0):15.2f}" for c in CALLS))
    return "\n".join(out)


def top(rows, n):
    out = []
    for title, _, _, _, functions in rows:
        out.append(f"\n{title}")
        for (ob, fn), cost in sorted(functions.items(), key=lambda item: (-item[1], item[0]))[:n]:
            out.append(f"{cost:10.2f}  {ob}: {fn}")
    return "\n".join(out)


def data(rows, port):
    for _, name, columns, _, _ in rows:
        program, side, size = name.split(":")
        for c in ("work", "liburoce"):
            yield "\t".join(["1500", "instr", "128" if size != "8" else "1", f"{program}:{side}:{c}", port, size, f"{columns.get(c, 0):.1f}", "1"])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--port", default="udp")
    p.add_argument("--top", type=int, default=0)
    p.add_argument("--data")
    p.add_argument("rows", nargs="+")
    a = p.parse_args()
    rows = list(rows_of(a.rows))
    print(table(rows))
    if a.top:
        print(top(rows, a.top))
    if a.data:
        with open(a.data, "a", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in data(rows, a.port)))


if __name__ == "__main__":
    sys.exit(main())
