#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""embed.py HEADER FILE...: writes cases of suites, DIR/SUITE/CASE.case, as rows of a C array: suite, case, text."""
import json
import os
import sys

with open(sys.argv[1], "w", encoding="ascii") as out:
    out.write("static const struct {\n\tconst char *suite, *name, *text;\n} embedded[] = {\n")
    for file in sorted(sys.argv[2:]):
        suite, name = os.path.basename(os.path.dirname(file)), os.path.basename(file).removesuffix(".case")
        with open(file, encoding="ascii") as f:
            text = "\n".join("\t\t" + json.dumps(line) for line in f)
        out.write(f'\t{{"{suite}", "{name}",\n{text}}},\n')
    out.write("};\n")
