#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
interface.py HEADER OUTPUT DEPFILE COMPILER...: names what liburoce.so and its module have agreed on, by a hash of all declarations that the
module's header leads to, comments aside. So both know whether they were built from the same ones.
"""
import hashlib
import subprocess
import sys

header, output, depfile, *compiler = sys.argv[1:]
text = subprocess.run([*compiler, "-E", "-P", "-MD", "-MF", depfile, "-MT", output, header], check=True, stdout=subprocess.PIPE).stdout
name = hashlib.sha256(b"\n".join(b" ".join(line.split()) for line in text.splitlines())).hexdigest()[:16]
with open(output, "w", encoding="ascii") as out:
    out.write(f'#define UR_ETHDEV_INTERFACE "{name}"\n')
