#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""monitor.py SOCKET COMMAND...: gives qemu's monitor the commands, and prints what it says."""
import socket
import sys
import time

PROMPT = b"(qemu) "


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    for _ in range(200):
        try:
            s.connect(path)
            return s
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nobody listens on {path}")


def said(s):
    text = b""
    while not text.endswith(PROMPT):
        more = s.recv(4096)
        if not more:
            sys.exit("qemu has ended")
        text += more
    return text.decode(errors="replace")


monitor = connect(sys.argv[1])
said(monitor)
for command in sys.argv[2:]:
    monitor.sendall(command.encode() + b"\n")
    print(said(monitor))
