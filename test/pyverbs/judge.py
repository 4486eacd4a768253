#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what rdma-core's tests said with a table of what is expected.

  judge.py [--lossy] [--table FILE] EXPECTED OUTPUT   prints what differs and a summary; status 1 when something does
  judge.py --names [--lossy] EXPECTED                 the names of the tests to run, a line each; none for all

EXPECTED is a text with tables whose rows are '| `NAME` | pass, skip or either | yes or no | WHY |': either depends on the machine, and the third column
says whether it runs with losses, which the tests of services that do not repeat what is lost cannot.
"""
import argparse
import re
import sys

BEGIN = re.compile(r"^(\w+) \(tests\.([\w.]+)\)")
END = re.compile(r"(?: \.\.\. |^)(ok|FAIL|ERROR|skipped (.*))$")


def expectations(path):
    rows = re.findall(r"^\| `([\w.]+)` \| (pass|skip|either) \| (yes|no) \| (.*?) *\|$", open(path, encoding="utf-8").read(), re.M)
    return {name: (verdict, why, lossy == "yes") for name, verdict, lossy, why in rows}


def results(path):
    """{name: (pass, fail or skip, why)} of unittest's verbose output, where a test's name and its result may be lines apart."""
    out, name = {}, None
    for line in open(path, encoding="utf-8", errors="replace"):
        line = line.rstrip("\n")
        begin, end = BEGIN.match(line), END.search(line)
        if begin:
            name = begin.group(2)
        if end and name:
            word = end.group(1)
            verdict = "pass" if word == "ok" else "skip" if word.startswith("skipped") else "fail"
            out[name] = (verdict, (end.group(2) or "").strip("'\""))
            name = None
    return out


def wanted(table, lossy):
    return {n: e for n, e in table.items() if not lossy or e[2]}


def write_table(path, got):
    with open(path, "w", encoding="utf-8") as f:
        for name, (verdict, why) in sorted(got.items()):
            f.write(f"| `{name}` | {verdict} | {'yes' if verdict == 'pass' else 'no'} | {why} |\n")


def compare(want, got):
    differences = []
    for name in sorted(want.keys() | got.keys()):
        expected = want.get(name, ("nothing", ""))[0]
        verdict, why = got.get(name, ("nothing", ""))
        if verdict == "fail" or (expected != verdict and not (expected == "either" and verdict in ("pass", "skip"))):
            differences.append(f"not ok - {name}: {verdict} in place of {expected}{': ' + why if why else ''}")
    return differences


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lossy", action="store_true")
    p.add_argument("--names", action="store_true")
    p.add_argument("--table")
    p.add_argument("expected")
    p.add_argument("output", nargs="?")
    args = p.parse_args()
    table = expectations(args.expected)
    want = wanted(table, args.lossy)
    if args.names:
        if args.lossy:
            print("\n".join(sorted(want)))
        return 0
    got = results(args.output)
    if args.table:
        write_table(args.table, got)
    differences = compare(want, got)
    if differences:
        text = open(args.output, encoding="utf-8", errors="replace").read()
        print("\n".join(differences))
        print(text[text.find("=====") if "=====" in text else -2000:][:6000])
    count = [v for v, _ in got.values()]
    print(f"{count.count('pass')} passed, {len(differences)} failed, {count.count('skip')} skipped")
    return 1 if differences or not count.count("pass") else 0


if __name__ == "__main__":
    sys.exit(main())
