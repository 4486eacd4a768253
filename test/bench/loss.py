#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of 'tools/bench loss', one a row: part, round trip in us, operation, who talks to whom, loss in %, what else, metric, figure, rounds.

    loss.py merge FILE NEW       puts the rows of NEW into FILE, in place of those of the same parts
    loss.py table FILE           prints them as tables
    loss.py fill FILE PAGE...    writes tables and figures into pages: what stands between <!-- loss: TABLE --> and <!-- end -->, and each
                                 number in front of <!-- loss PART/RTT/OP/PEERS/LOSS/VARIANT/METRIC -->

test/doc_names compares pages with doc/loss.tsv by means of filled()."""

import os
import re
import sys

HEAD = "#part\trtt_us\top\tpeers\tloss\tvariant\tmetric\tfigure\trounds\n"
PARTS = ("goodput", "latency", "reorder", "jitter", "burst", "incast", "silent", "real")
OPS = ("WRITE", "SEND", "READ")


def columns(peers, metric):
    return [(f"{op}, {title}" if title else op, op, who, metric) for who, title in peers for op in OPS]


YARDSTICKS = [("selective, ideal", "-", "selective", "goodput"), ("go-back-N, ideal", "-", "go-back-N", "goodput")]
FAULTS = columns([("own-own", "")], "goodput") + [("WRITE, standard to own", "WRITE", "standard-own", "goodput")] + [
    (f"ping {m[1:]} %", "SEND", "own-own", m) for m in ("p50", "p99", "p99.9")]
REAL = [("uroce udp", "uroce-udp"), ("uroce packet", "uroce-packet"), ("TCP CUBIC", "TCP-cubic"), ("TCP BBR", "TCP-bbr")]

# Table: part, its columns (title, operation, peers, metric), and the title of the column that says what else
TABLES = {
    "goodput": ("goodput", columns([("own-own", "")], "goodput") + YARDSTICKS, None),
    "peers": ("goodput", columns([("own-standard", "own to standard"), ("standard-own", "standard to own")], "goodput"), None),
    "latency": ("latency", [(f"{title} {m[1:]} %", "SEND", who, m) for who, title in (("own-own", ""), ("own-standard", "own to standard"),
                            ("standard-own", "standard to own")) for m in ("p50", "p99", "p99.9")], None),
    "reorder": ("reorder", FAULTS, "late packets, by up to"),
    "jitter": ("jitter", FAULTS, "jitter"),
    "burst": ("burst", FAULTS, "packets of a burst"),
    "incast": ("incast", [("goodput", "WRITE", "own-own", "goodput"), ("fairness", "WRITE", "own-own", "fairness"),
                          ("ping 99 %, us", "SEND", "own-own", "p99-us"), ("dropped", "WRITE", "own-own", "dropped"),
                          ("broken", "WRITE", "own-own", "broken")], "senders"),
    "silent": ("silent", [("goodput before", "WRITE", "own-own", "before"), ("after", "WRITE", "own-own", "after"),
                          ("broken", "WRITE", "own-own", "broken"), ("repeats", "WRITE", "own-own", "repeats"),
                          ("full speed after, ms", "WRITE", "own-own", "woken-ms")], "silent for"),
    "real-goodput": ("real", [(f"{title} {op}".replace(" stream", ""), op, who, "gbps") for title, who in REAL
                              for op in (("stream",) if who.startswith("TCP") else OPS)], None),
    "real-latency": ("real", [(f"{title}, {m[1:-3]} %", "ping", who, m) for title, who in REAL for m in ("p50-us", "p99-us")], None),
    "summary": ("goodput", columns([("own-own", "")], "goodput") + [("WRITE, own to standard", "WRITE", "own-standard", "goodput"),
                ("WRITE, standard to own", "WRITE", "standard-own", "goodput")] + YARDSTICKS, None),
}


def read(path):
    """The rows of a file, as lists; the figure is None where there is none."""
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and line[0] != "#"]
    for row in rows:
        if len(row) not in (8, 9) or row[0] not in PARTS or not re.fullmatch(r"-|[\d.]+(e[-+]?\d+)?", row[7]):
            raise SystemExit(f"{path}: no row of 'tools/bench loss': {' '.join(row)}")
    return rows


def figures(rows):
    return {tuple(r[:7]): None if r[7] == "-" else float(r[7]) for r in rows}


def shown(value, metric):
    if value is None:
        return "-"
    if metric in ("dropped", "broken", "repeats") or value >= 100:
        return f"{value:.0f}"
    if metric in ("goodput", "before", "after") or value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def rtt_shown(us):
    if us == "-":
        return "the machine's"
    return f"{int(us) // 1000} ms" if int(us) >= 1000 else f"{us} us"


def table(name, rows):
    """Its heading and its rows, as lists of cells."""
    part, cols, what = TABLES[name]
    known = figures(rows)
    places = list(dict.fromkeys((r[1], r[4], r[5]) for r in rows if r[0] == part))
    cols = [c for c in cols if any((part, rtt, c[1], c[2], loss, variant, c[3]) in known for rtt, loss, variant in places)]
    with_rtt = any(rtt != "-" for rtt, _, _ in places)
    lossy = any(loss != "0" for _, loss, _ in places)
    cells = [["round trip"] * with_rtt + ["loss"] * lossy + ([what] if what else []) + [c[0].strip() for c in cols]]
    for rtt, loss, variant in places:
        found = [known.get((part, rtt, op, who, loss, variant, metric)) for _, op, who, metric in cols]
        cells.append([rtt_shown(rtt)] * with_rtt + [f"{loss} %"] * lossy + ([variant] if what else []) +
                     [shown(v, c[3]) for v, c in zip(found, cols)])
    return cells


def as_text(cells):
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in cells)


def as_markdown(cells):
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0])] + lines[1:])


def filled(text, rows):
    """A page with the tables and figures of the rows."""
    known = figures(rows)

    def block(m):
        if m.group(1) not in TABLES:
            raise SystemExit(f"there is no table {m.group(1)}")
        return f"<!-- loss: {m.group(1)} -->\n{as_markdown(table(m.group(1), rows))}\n<!-- end -->"

    def figure(m):
        key = tuple(m.group(2).split("/"))
        if key not in known:
            raise SystemExit(f"there is no figure {m.group(2)}")
        return f"{shown(known[key], key[6])}<!-- loss {m.group(2)} -->"

    text = re.sub(r"<!-- loss: ([\w-]+) -->\n.*?<!-- end -->", block, text, flags=re.S)
    return re.sub(r"([\d.]+|-)<!-- loss ([^\n]+?) -->", figure, text)


def merge(path, new):
    rows, fresh = read(path) if os.path.exists(path) else [], read(new)
    parts = {r[0] for r in fresh}
    rows = [r for r in rows if r[0] not in parts] + fresh
    rows.sort(key=lambda r: PARTS.index(r[0]))
    with open(path, "w", encoding="utf-8") as f:
        f.write("# tools/bench loss\n" + HEAD)
        f.writelines("\t".join(r) + "\n" for r in rows)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("merge", "table", "fill"):
        sys.exit(__doc__)
    what, path, *others = sys.argv[1:]
    if what == "merge":
        merge(path, others[0])
        return
    rows = read(path)
    for page in others:
        with open(page, encoding="utf-8") as f:
            text = f.read()
        with open(page, "w", encoding="utf-8") as f:
            f.write(filled(text, rows))
    for name, (part, cols, _) in TABLES.items():
        if what == "table" and name != "summary" and any(r[0] == part and c[1:] == (r[2], r[3], r[6]) for r in rows for c in cols):
            print(f"{name}\n\n{as_text(table(name, rows))}\n")


if __name__ == "__main__":
    main()
