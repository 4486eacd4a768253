#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py HEADER NAME=FILE...: writes files of text as C arrays that end with a zero, and for a policy of HTML what SHA-256 makes of each."""
import base64
import hashlib
import sys

with open(sys.argv[1], "w", encoding="ascii") as out:
    for name, file in (word.split("=", 1) for word in sys.argv[2:]):
        data = open(file, "rb").read()
        # What would end the element, or looks otherwise to the browser than to the hash.
        if b"</" in data or b"<!" in data or b"\r" in data or b"\0" in data or not data.isascii():
            sys.exit(f"{file}: it has '</', '<!', a character beyond ASCII, or one that browsers replace: write it in another way")
        out.write(f'static const char {name}_sha256[] = "{base64.b64encode(hashlib.sha256(data).digest()).decode()}";\n')
        out.write(f"static const unsigned char {name}[] = {{\n")
        for i in range(0, len(data) + 1, 16):
            out.write("\t" + " ".join(f"0x{b:02x}," for b in (data + b"\0")[i : i + 16]) + "\n")
        out.write("};\n")
