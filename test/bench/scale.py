#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
How much more uroce carries with more threads, QPs and connections, and what a GiB costs: threadbench, cmtime and idlebench, over lo
within one process and between two namespaces. 'tools/bench scale' calls it, as root, with the namespaces, and builds what it measures.

    scale.py measure BUILD NS1 NS2 [OPTIONS]     --runs N, --seconds S, --kinds LIST, --mtu LIST, --ports LIST, --cpus LIST|N, --lanes LIST, --data FILE,
                                                 --svg FILE, as tools/bench explains them
    scale.py check [OPTIONS]                     says what is wrong with them
    scale.py fill FILE PAGE...                   writes the tables of FILE, which --data has made, into pages: between <!-- scale: TABLE --> and <!-- end -->
    scale.py draw FILE                           prints the picture of FILE

A ratio is made in each round, of figures that were measured one after the other; shown are the median of the rounds, and the least and the greatest.
"""

import argparse
import html
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import namedtuple

QPS = (1, 16, 256, 1024, 4096, 16384)
CONNECTIONS = (100, 1000, 4000)
IDLE, IDLE_SECONDS = 1000, 10
LIMIT = 120  # seconds for one program
KINDS = ("threads", "qps", "cpu", "conn")

# A figure as a row of 'tools/bench perftest --data'. Program: "2-threads", "2-threads-one-CQ", "256-QPs-2-lanes", "1000-connections-idle".
Cell = namedtuple("Cell", "mtu kind depth program port size")
PROGRAM = re.compile(r"(\d+)-(threads|QPs|connections)(?:-((?!\d+-lanes)[\w-]+?))?(?:-(\d+)-lanes)?")

# What threadbench is started with for a line of the table: a name for the data file, its options, and for which sizes and depths.
Load = namedtuple("Load", "title kind size depth variant options")
SHORT, LONG = ("8 bytes x 64", "rate", 8, 64), ("64 KiB x 16", "bw", 65536, 16)
THREAD_LOADS = [Load(f"{load[0]}{title}", *load[1:], variant, options) for load in (SHORT, LONG)
                for title, variant, options in (("", "", []), (", one CQ", "one-CQ", ["-c"]))]
SEND_LOAD = Load("8 bytes x 64, SEND", "rate", 8, 64, "send", ["-o", "send"])  # the server's threads poll, too
DOMAIN_LOADS = [Load("8 bytes x 128", "rate", 8, 128, "", []), Load("8 bytes x 128, thread domain", "rate", 8, 128, "domain", ["-D"])]
CPU_LOADS = [Load(f"{op.upper()}, 64 KiB x 128", "gib", 65536, 128, op, ["-o", op]) for op in ("write", "read", "send")]
KEYS = {"rate": "mps", "bw": "gbps", "gib": "ms_gib"}  # of threadbench
UNITS = {"rate": "million messages/s", "bw": "Gbit/s", "gib": "ms/GiB", "ns": "ns of CPU a message", "conn": "connections/s", "waits": "lock_waits"}


class Failure(Exception):
    """A program has failed."""


# --- measuring ---

class Lab:
    """Two namespaces with a cable, and a build."""

    def __init__(self, build, spaces, seconds):
        self.uroce, self.bench = f"{build}/apps/uroce/uroce", f"{build}/test/bench"
        self.spaces, self.seconds, self.lanes = spaces, seconds, None

    def set_mtu(self, mtu):
        for space in self.spaces:
            subprocess.run(["ip", "-n", space, "link", "set", "eth0", "mtu", str(mtu)], check=True)

    def start(self, end, port, command):
        """A program in a namespace; port lo is that of one process, which meets nobody."""
        device = ["--dev", "lo"] if port == "lo" else ["--dev", "eth0", "--port", port]
        env = dict(os.environ, UROCE_LANES=str(self.lanes)) if self.lanes else None
        return subprocess.Popen(["ip", "netns", "exec", self.spaces[end], "timeout", "-k", "5", str(LIMIT), self.uroce, "run", *device, "--", *command],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)

    def wait_until(self, found, server):
        end = time.monotonic() + 20
        while time.monotonic() < end and server.poll() is None:
            if found():
                return
            time.sleep(0.05)
        raise Failure(f"the server does not listen: {ended(server)}")

    def listens_on_tcp(self, port):
        return bool(subprocess.run(["ip", "netns", "exec", self.spaces[0], "ss", "-Hltn", f"sport = :{port}"], capture_output=True, check=True).stdout)

    def listens(self, port):
        said = subprocess.run(["ip", "netns", "exec", self.spaces[0], self.uroce, "info", "--dev", "eth0"], capture_output=True, text=True, check=False)
        return re.search(rf"^ +listens on [a-z]+ .*:{port}$", said.stdout, re.M) is not None

    def alone(self, command):
        return said_by(self.start(0, "lo", command))

    def pair(self, port, server, client, listening):
        """What the client says; the server is stopped if it does not end."""
        first = self.start(0, port, server)
        try:
            self.wait_until(listening, first)
            return said_by(self.start(1, port, client))
        finally:
            ended(first)

    def threads(self, port, options):
        """What threadbench prints, as KEY -> value."""
        command = [f"{self.bench}/threadbench", "-t", str(self.seconds), *map(str, options)]
        if port == "lo":
            return words(self.alone([*command, "self"]))
        server = [f"{self.bench}/threadbench", "server"]
        return words(self.pair(port, server, [*command, "client", "10.77.0.1"], lambda: self.listens_on_tcp(7303)))

    def cmtime(self, port, connections):
        """us a connection: by step."""
        command = ["cmtime", "-c", str(connections)]
        said = self.pair(port, command, [*command, "-s", "10.77.0.1"], lambda: self.listens(7471))
        return {m.group(1).strip(): float(m.group(2)) for m in re.finditer(r"^([a-z ]+?) *:.* ([\d.]+)$", said, re.M)}

    def idle(self):
        return words(self.alone([f"{self.bench}/idlebench", "127.0.0.1", "-n", str(IDLE), "-t", str(IDLE_SECONDS)]))


def ended(program):
    """Stops a program that still runs, and returns the end of what it has said."""
    if program.poll() is None:
        program.terminate()
    return program.communicate()[0].strip()[-300:]


def said_by(program):
    """What it says until it ends; it does not outlive this process."""
    try:
        said = program.communicate()[0]
    finally:
        if program.poll() is None:
            program.terminate()
    if program.returncode:
        raise Failure(f"'{' '.join(program.args[program.args.index('--') + 1:])}' ends with status {program.returncode}: {said.strip()[-300:]}")
    return said


def words(said):
    return dict(w.split("=", 1) for w in said.split() if "=" in w)


def number(said, key):
    try:
        return float(said[key])
    except (KeyError, ValueError):
        raise Failure(f"no {key} in {said}") from None


def thread_loads(port):
    return THREAD_LOADS if port == "lo" else [*THREAD_LOADS, SEND_LOAD]


def thread_counts(cpus):
    return sorted({1 << i for i in range(cpus.bit_length()) if 1 << i <= cpus} | {cpus})


def named(count, what, variant, lanes):
    return "-".join(filter(None, [f"{count}-{what}", variant, f"{lanes}-lanes" if lanes else ""]))


def load_cells(lab, mtu, port, load, count, what):
    """Figures of one run of threadbench: what the line is about, and lock_waits."""
    options = ["-T" if what == "threads" else "-q", count, "-s", load.size, "-d", load.depth, *load.options]
    said = lab.threads(port, options)
    program = named(count, what, load.variant, lab.lanes)
    waits = sum(float(said[key]) for key in ("client_waits", "server_waits") if said.get(key, "-") != "-")
    cells = {Cell(mtu, load.kind, load.depth, program, port, load.size): number(said, KEYS[load.kind]),
             Cell(mtu, "waits", load.depth, program, port, load.size): waits}
    if what == "QPs" and port == "lo":
        cells[Cell(mtu, "ns", load.depth, program, port, load.size)] = number(said, "ms_gib") * load.size / (1 << 30) * 1e6
    return cells


def conn_cells(lab, mtu, port, count):
    us = lab.cmtime(port, count)
    steps = ("create id", "resolve addr", "resolve route", "create qp", "connect")
    program = named(count, "connections", "", lab.lanes)
    if not all(us.get(step) for step in steps):
        raise Failure(f"cmtime prints no figure for each step: {us}")
    return {Cell(mtu, "conn", 1, program, port, 0): 1e6 / us["connect"],
            Cell(mtu, "conn", 1, named(count, "connections", "all-steps", lab.lanes), port, 0): 1e6 / sum(us[step] for step in steps)}


def idle_cells(lab, mtu):
    said = lab.idle()
    return {Cell(mtu, kind, 1, named(IDLE, "connections", f"idle-{end}", lab.lanes), "lo", 0): number(said, f"{end}_{key}")
            for end in ("server", "client") for kind, key in (("cpu", "ms"), ("kib", "kib"))}


def tasks(lab, args):
    """All that a round measures, in an order in which what is compared stands side by side: functions that return figures."""
    first = args.mtu[0]
    for port in ["lo", *args.ports] if "threads" in args.kinds else []:
        for load in thread_loads(port):
            for count in thread_counts(len(args.cpus)):
                yield first, f"{load.title}, {port}, {count} threads", lambda p=port, w=load, n=count: load_cells(lab, first, p, w, n, "threads")
    for load in DOMAIN_LOADS if "threads" in args.kinds else []:
        yield first, load.title, lambda w=load: load_cells(lab, first, "lo", w, 1, "threads")
    for port in ["lo", *args.ports] if "qps" in args.kinds else []:
        for load in THREAD_LOADS:
            for count in QPS if not load.variant and (port != "lo" or load.size == 8) else []:
                yield first, f"{load.title}, {port}, {count} QPs", lambda p=port, w=load, n=count: load_cells(lab, first, p, w, n, "QPs")
    for mtu in args.mtu if "cpu" in args.kinds else []:
        for port in args.ports:
            for load in CPU_LOADS:
                yield mtu, f"{load.title}, {port}", lambda m=mtu, p=port, w=load: load_cells(lab, m, p, w, 1, "threads")
    for port in args.ports if "conn" in args.kinds else []:
        for count in CONNECTIONS:
            yield first, f"{count} connections, {port}", lambda p=port, n=count: conn_cells(lab, first, p, n)
    if "conn" in args.kinds:
        yield first, "idle connections", lambda: idle_cells(lab, first)


def measure_round(lab, args, figures):
    """Each cell once, with each number of lanes in turn. Returns how many have failed."""
    failed, now = 0, None
    for mtu, title, task in tasks(lab, args):
        if mtu != now:
            lab.set_mtu(mtu)
            now = mtu
        for lab.lanes in args.lanes:
            try:
                for cell, value in task().items():
                    figures.setdefault(cell, []).append(value)
            except Failure as e:
                failed += 1
                print(f"  {title}: {e}", file=sys.stderr, flush=True)
    return failed


# --- the file ---

def keep(path, figures):
    head = "# tools/bench scale, medians: rate in million messages a second, bw in Gbit/s, gib in CPU ms a GiB of both processes, ns of CPU a message, "
    head += f"conn in connections a second, cpu in ms in {IDLE_SECONDS} s, kib for each connection, waits for uroce's lock\n"
    with open(path, "a", encoding="utf-8") as f:
        if f.tell() == 0:
            f.write(head + "#mtu\tkind\tdepth\tprogram\tport\tsize\tmedian\trounds\tall\n")
        for cell, rounds in figures.items():
            values = [f"{v:.6g}" for v in rounds]
            f.write("\t".join(map(str, (*cell, f"{statistics.median_low(rounds):.6g}", len(rounds), ",".join(values)))) + "\n")


def read(path):
    figures = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            fields = line.rstrip("\n").split("\t")
            if not line.startswith("#") and len(fields) == 9 and PROGRAM.fullmatch(fields[3]):
                cell = Cell(int(fields[0]), fields[1], int(fields[2]), fields[3], fields[4], int(fields[5]))
                figures[cell] = [float(v) for v in fields[8].split(",")]
    return figures


# --- tables ---

DOMAINS = "one thread, one process"

# A line of a table and of the picture: from which cells, and what is on the x axis: "number" of threads, QPs, connections, or "mtu".
Line = namedtuple("Line", "title kind what variant port size depth")


def points(figures, line, by, lanes):
    """What is on the x axis -> rounds."""
    found = {}
    for cell, rounds in figures.items():
        count, what, variant, of_lanes = PROGRAM.fullmatch(cell.program).groups()
        if (cell.kind, what, variant or "", cell.port, cell.size, cell.depth, of_lanes) == (line.kind, line.what, line.variant, line.port, line.size,
                                                                                            line.depth, lanes):
            found.setdefault(cell.mtu if by == "mtu" else int(count), rounds)
    return found


def all_lanes(figures):
    """None, or numbers of lanes as words, in ascending order."""
    return sorted({PROGRAM.fullmatch(cell.program).group(4) for cell in figures}, key=lambda n: int(n or 0))


def all_ports(figures):
    return [port for port in ("udp", "packet", "dpdk") if any(cell.port == port for cell in figures)]


def of_load(load, what, port, kind=None):
    return Line(load.title, kind or load.kind, what, load.variant, port, load.size, load.depth)


def sections(figures):
    """name -> (title, on the x axis, number of the column to which the last one is compared, groups of lines with a heading each)"""
    ports = all_ports(figures)
    between = [(f"two processes, port {port}", port) for port in ports]
    plain = [load for load in THREAD_LOADS if not load.variant]
    return {
        "threads": ("threads", "number", 0, [(title, [line for load in thread_loads(port) for line in (of_load(load, "threads", port),
                                                                                               of_load(load, "threads", port, "waits"))])
                                             for title, port in [("one process", "lo"), *between]]),
        "domains": (DOMAINS, "number", None, [("", [of_load(load, "threads", "lo") for load in DOMAIN_LOADS])]),
        "qps": ("QPs", "number", 1, [("one process", [of_load(plain[0], "QPs", "lo"), of_load(plain[0], "QPs", "lo", "ns")])] +
                [(title, [of_load(load, "QPs", port) for load in plain]) for title, port in between]),
        "cpu": ("CPU of both processes, MTU", "mtu", None, [(title, [of_load(load, "threads", port) for load in CPU_LOADS]) for title, port in between]),
        "conn": ("connections", "number", 0, [(title, [Line("connect", "conn", "connections", "", port, 0, 1),
                                                      Line("all steps", "conn", "connections", "all-steps", port, 0, 1)]) for title, port in between]),
        "idle": ("idle connections, one host", "number", None, [("", [Line(f"{end}, {text}", kind, "connections", f"idle-{end}", "lo", 0, 1)
                 for kind, text in (("cpu", f"CPU ms in {IDLE_SECONDS} s"), ("kib", "KiB each")) for end in ("server", "client")])]),
    }


def shown(value, kind):
    if kind in ("waits", "gib", "ns", "conn") or value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def median_shown(rounds, kind):
    return shown(statistics.median_low(rounds), kind) if rounds else "-"


def ratio(rounds, base):
    """0.91 (0.84 to 0.95), of rounds that belong together."""
    if not rounds or not base or len(rounds) != len(base) or not all(base):
        return "-"
    ratios = sorted(a / b for a, b in zip(rounds, base))
    middle = f"{statistics.median_low(ratios):.2f}"
    return middle if len(ratios) == 1 else f"{middle} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def lanes_shown(n):
    return f", {n} lane{'s' * (n != '1')}" if n else ""


def cells_of(section, figures):
    """A table as rows of cells; the first is its heading."""
    title, by, base, groups = section
    lanes = all_lanes(figures)
    known = [(heading, line, [points(figures, line, by, n) for n in lanes]) for heading, lines in groups for line in lines]
    known = [entry for entry in known if any(entry[2])]
    columns = sorted({x for _, _, by_lanes in known for p in by_lanes for x in p})
    base = columns[min(base, len(columns) - 1)] if base is not None and len(columns) > 1 else None
    rows = [[title, *map(str, columns)] + ([f"{columns[-1]} : {base}"] if base is not None and base != columns[-1] else [])]
    for heading, line, by_lanes in known:
        unit = "lock_waits" if line.kind == "waits" else f"{line.title}, {UNITS[line.kind]}" if line.kind in UNITS else line.title
        name = f"{heading}: {unit}" if heading else unit
        for n, p in zip(lanes, by_lanes):
            compared = [ratio(p.get(columns[-1]), p.get(base)) if line.kind != "waits" else ""] if len(rows[0]) > len(columns) + 1 else []
            rows.append([name + lanes_shown(n)] + [median_shown(p.get(x), line.kind) for x in columns] + compared)
        for n, p in zip(lanes[1:], by_lanes[1:]) if line.kind != "waits" else []:
            rows.append([f"  {n} lanes : {lanes[0]}"] + [ratio(p.get(x), by_lanes[0].get(x)) for x in columns] + [""] * (len(rows[0]) - len(columns) - 1))
    if title == DOMAINS and len(known) == 2:
        rows += [[f"  thread domain : none{lanes_shown(n)}"] + [ratio(known[1][2][i].get(x), known[0][2][i].get(x)) for x in columns]
                 for i, n in enumerate(lanes)]
    return rows if known else []


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]).rstrip() for row in rows)


def as_markdown(rows):
    lines = ["| " + " | ".join(cell.strip() for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0])] + lines[1:])


def filled(text, figures):
    """A page with the tables of the figures."""
    known = sections(figures)

    def block(m):
        rows = cells_of(known[m.group(1)], figures) if m.group(1) in known else []
        if not rows:
            raise SystemExit(f"scale: there are no figures for the table {m.group(1)}")
        return f"<!-- scale: {m.group(1)} -->\n{as_markdown(rows)}\n<!-- end -->"

    return re.sub(r"<!-- scale: ([\w-]+) -->\n.*?<!-- end -->", block, text, flags=re.S)


# --- the picture ---

WIDE, PLOT, LEFT, MARGIN = 490, (390, 190), 70, 16  # of a panel: its width, what is drawn in it, the room for numbers on its left
LEGEND, ENTRY, BELOW = 42, 15, 36  # where the legend begins, one of its lines, the room for numbers below
COLOURS = ("#1f6fb4", "#d9601a", "#2f8f4e", "#8d4bb0", "#b8860b", "#c2185b")
PANELS = [("threads", "rate", "Threads: million messages a second"), ("threads", "bw", "Threads: Gbit/s"),
          ("qps", "rate", "QPs: million messages a second"), ("qps", "ns", "QPs: ns of CPU a message, one process"),
          ("cpu", "gib", "CPU of both processes by MTU: ms a GiB"), ("conn", "conn", "Connections at once: connections a second")]


def ceiling(value):
    """The least 1, 2, 2.5 or 5 times a power of ten that is not below."""
    power = 10.0 ** (len(str(int(value))) - 1 if value >= 1 else -len(re.match(r"0*", f"{value:.9f}"[2:]).group()) - 1)
    return next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= value)


def series_of(panel, figures):
    """(title, number among the lines, number among those with other lanes, what is on the x axis -> median)"""
    _, by, _, groups = sections(figures)[panel[0]]
    lines = [(heading, line) for heading, group in groups for line in group if line.kind == panel[1]]
    lanes = all_lanes(figures)
    found = []
    for i, (heading, line) in enumerate(lines):
        for k, n in enumerate(lanes):
            p = points(figures, line, by, n)
            title = ": ".join(filter(None, [heading.replace("two processes, port ", "").replace("one process", "lo"), line.title])) + lanes_shown(n)
            if p:
                found.append((title, i, k, {x: statistics.median_low(rounds) for x, rounds in p.items()}))
    return found


def text(x, y, words_, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{html.escape(words_)}</text>'


def drawn_panel(panel, figures, x0, y0, high):
    series = series_of(panel, figures)
    xs = sorted({x for *_, p in series for x in p})
    top = ceiling(max((y for *_, p in series for y in p.values()), default=1))
    left, above = x0 + LEFT, y0 + high - PLOT[1] - BELOW
    at = {x: left + PLOT[0] * (i + 0.5) / len(xs) for i, x in enumerate(xs)}
    out = [text(x0 + MARGIN, y0 + 22, panel[2], ' class="title"')]
    for i in range(5):
        y = above + PLOT[1] * (1 - i / 4)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + PLOT[0]}" y2="{y:.1f}" class="grid"/>')
        out.append(text(left - 8, y + 4, f"{top * i / 4:g}", ' text-anchor="end"'))
    out += [text(at[x], above + PLOT[1] + 18, str(x), ' text-anchor="middle"') for x in xs]
    for n, (title, i, k, p) in enumerate(series):
        style = f'stroke="{COLOURS[i % len(COLOURS)]}"' + (f' stroke-dasharray="{6 - 2 * min(k, 2)} 3"' if k else "")
        places = [(at[x], above + PLOT[1] * (1 - p[x] / top)) for x in sorted(p)]
        out.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" {style}/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[i % len(COLOURS)]}"/>' for x, y in places]
        x, y = x0 + MARGIN + n % 2 * 235, y0 + LEGEND + n // 2 * ENTRY
        out += [f'<line x1="{x}" y1="{y - 4}" x2="{x + 22}" y2="{y - 4}" {style} stroke-width="2"/>', text(x + 28, y, title)]
    return out


def drawn(figures):
    """An SVG picture. Its colours are those of a light page, on a background of their own."""
    panels = [panel for panel in PANELS if series_of(panel, figures)]
    entries = max((len(series_of(panel, figures)) for panel in panels), default=0)
    each = LEGEND + (entries + 1) // 2 * ENTRY + MARGIN + PLOT[1] + BELOW
    wide, high = 2 * WIDE, (len(panels) + 1) // 2 * each
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="11" '
           'fill="#333">', "<style>.title { font-size: 14px; font-weight: bold } .grid { stroke: #ddd } polyline { fill: none; stroke-width: 2 }</style>",
           f'<rect width="{wide}" height="{high}" fill="#fff"/>']
    for i, panel in enumerate(panels):
        out += drawn_panel(panel, figures, i % 2 * WIDE, i // 2 * each, each)
    return "\n".join(out + ["</svg>"]) + "\n"


# --- the command ---

def cpu_list(words_, there):
    """CPUs as taskset(1) has them, "0-3,8", or how many of those that are there."""
    if words_.isdigit():
        chosen = sorted(there)[:int(words_)]
        found = set(chosen) if len(chosen) == int(words_) else set()
    else:
        parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part) for part in words_.split(",") if part]
        found = {cpu for m in parts if m for cpu in range(int(m.group(1)), int(m.group(2) or m.group(1)) + 1)} if all(parts) else set()
    if not found or not found <= there:
        raise argparse.ArgumentTypeError(f"'{words_}' is neither a number nor a list of the CPUs that are available: {sorted(there)}")
    return sorted(found)


def numbers(least, most):
    def parse(words_):
        if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", words_) or not all(least <= int(n) <= most for n in words_.split(",")):
            raise argparse.ArgumentTypeError(f"'{words_}' is no list of numbers between {least} and {most}")
        return [int(n) for n in words_.split(",")]
    return parse


def some_of(known):
    def parse(words_):
        chosen = words_.split(",")
        if not set(chosen) <= set(known):
            raise argparse.ArgumentTypeError(f"'{words_}' is not of {', '.join(known)}")
        return chosen
    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        sys.exit(f"scale: {message}")


def arguments(argv):
    parser, there = Parser(add_help=False, allow_abbrev=False), os.sched_getaffinity(0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--kinds", type=some_of(KINDS), default=list(KINDS))
    parser.add_argument("--mtu", type=numbers(576, 65535), default=[1500, 9000])
    parser.add_argument("--ports", type=some_of(("udp", "packet")), default=["udp"])
    parser.add_argument("--cpus", type=lambda w: cpu_list(w, there), default=sorted(there))
    parser.add_argument("--lanes", type=numbers(1, 999), default=[None])
    parser.add_argument("--data")
    parser.add_argument("--svg")
    args = parser.parse_args(argv)
    if args.runs < 1 or not 0 < args.seconds <= 60:
        parser.error("--runs is 1 or more, --seconds up to 60")
    return args


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        found = re.search(r"^model name\s*: (.*)", f.read(), re.M)
    return found.group(1) if found else "CPUs of an unknown kind"


def measure(build, spaces, argv):
    args = arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, args.cpus)  # and of all that it starts
    lab, figures, failed, before = Lab(build, spaces, args.seconds), {}, 0, os.getloadavg()
    for i in range(args.runs):
        print(f"round {i + 1} of {args.runs}", flush=True)
        failed += measure_round(lab, args, figures)
    if args.data:
        keep(args.data, figures)
    if args.svg:
        write(args.svg, drawn(figures))
    print(f"\nmedians of {args.runs} rounds; {len(args.cpus)} of {os.cpu_count()} CPUs, {cpu_name()}")
    print("load average before: {:.2f} {:.2f} {:.2f}, after: {:.2f} {:.2f} {:.2f}".format(*before, *os.getloadavg()))
    for section in sections(figures).values():
        rows = cells_of(section, figures)
        if rows:
            print("\n" + as_text(rows), flush=True)
    return int(failed > 0)


def write(path, content):
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


def main(argv):
    what = argv[0] if argv else ""
    if what == "check":
        return arguments(argv[1:]) and 0
    if what == "measure" and len(argv) > 3:
        return measure(argv[1], argv[2:4], argv[4:])
    if what == "draw" and len(argv) == 2:
        sys.stdout.write(drawn(read(argv[1])))
        return 0
    if what != "fill" or len(argv) < 3:
        sys.exit(__doc__)
    figures = read(argv[1])
    for page in argv[2:]:
        with open(page, encoding="utf-8") as f:
            content = filled(f.read(), figures)
        write(page, content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
