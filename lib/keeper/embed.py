#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py PROGRAM HEADER: writes the bytes of a program as a C array."""
import sys

data = open(sys.argv[1], "rb").read()
with open(sys.argv[2], "w") as out:
    out.write("static const unsigned char keeper_program[] = {\n")
    for i in range(0, len(data), 16):
        out.write("\t" + " ".join(f"0x{b:02x}," for b in data[i : i + 16]) + "\n")
    out.write("};\n")
