#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""In any wrapping the same is told of a recording as without: by the verdict, check, list and why.

   wrapped.py UROCE FOLDER
"""
import difflib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
import wrap  # noqa: E402

RECORDINGS = ["rping-rc", "rping-rc-v6", "lossy/rping", "cm-reject", "udaddy-ud", "failed/silent"]
COMMANDS = [[], ["check"], ["list", "--csv"], ["why"]]
LESS = re.compile(r"frames? [0-9]+|[0-9]+ frames?|(?<=FILE):[0-9]+|to [0-9]+|, [0-9]+")


def told(file):
    out = [subprocess.run([uroce, "pcap", *c, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True).stdout
           for c in COMMANDS]
    return "".join(out).replace(file, "FILE")


def less(text):
    """Without the numbers of frames, of which fragments have more."""
    return sorted(LESS.sub("", line) for line in text.splitlines())


def tried(job):
    way, name, bare = job
    file = f"{tmp}/{name.replace('/', '-')}-{way}.pcap"
    wrap.wrap(way, f"pcaps/{name}.pcap", file)
    said = told(file)
    subprocess.run(["rm", file])
    a, b = (less(bare), less(said)) if way.startswith("fragments") else (bare.splitlines(), said.splitlines())
    return [] if a == b else [f"{name} in {way}:", *difflib.unified_diff(a, b, lineterm="")]


uroce, tmp = sys.argv[1:]
ways = list(wrap.WAYS)
ways = [w for w in ways[:ways.index("rocev1")] if w != "fragments-twice" and not w.endswith("-truncated")]
bare = {name: told(f"pcaps/{name}.pcap") for name in RECORDINGS}
jobs = [(way, name, bare[name]) for name in RECORDINGS for way in ways]
assert len(jobs) >= 250, len(jobs)
with ThreadPoolExecutor(2) as pool:
    wrong = [line for lines in pool.map(tried, jobs) for line in lines]
print("\n".join(wrong))
sys.exit(bool(wrong))
