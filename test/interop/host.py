# SPDX-License-Identifier: BSD-3-Clause
"""This side of the cable: the tap interface in a namespace of its own, programs under `uroce run` on it, and the recording of what passes."""

import atexit
import ctypes
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000  # linux/sched.h
PR_SET_PDEATHSIG = 1  # linux/prctl.h


TREE_HELP = "the prefix of an installation, or a build directory, which is installed first (build)"


def installation(tree):
    """The prefix of the installation that is tried: `tree`, or what the build directory `tree` installs into a folder that goes with this process."""
    folder, owner = tempfile.mkdtemp(prefix="uroce-"), os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, True))
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "installation")
    done = subprocess.run([script, tree, folder], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(1)
    return done.stdout.strip()


def enter_namespaces():
    """
    Goes on in a child with network, mount and process namespaces of its own; this process waits for it, passes signals on and ends as it ends.
    Whatever the child starts ends with it, and the interface, the mounts and what lies in them go with the last process, however that ends. Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"namespaces cannot be made here ({os.strerror(error)}): run it as root, outside of restricted containers")
    child = os.fork()
    if child:
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, lambda number, frame: os.kill(child, signal.SIGTERM))
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xff)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda number, frame: os._exit(128 + number))
    sh("mount --make-rprivate / && mount -t proc proc /proc")


class Failure(Exception):
    """A row has not gone as it must. The guest and the cable are as good as before."""


def wait_until(condition, seconds, otherwise):
    """Polls `condition`; raises Failure(otherwise) when it does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(otherwise)
        time.sleep(0.05)


def sh(command):
    subprocess.run(command, shell=True, check=True, stdin=subprocess.DEVNULL)


def private_directories():
    """Makes /dev/shm and /run, in this mount namespace, ones of our own. Returns a directory for files that may vanish."""
    sh("mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run && mkdir /run/lab")
    return "/run/lab"


def make_tap(name, ip4, ip6, mtu):
    sh(f"ip link set lo up && ip tuntap add dev {name} mode tap && ip link set {name} mtu {mtu} up && ip addr add {ip4} dev {name} && "
       f"sysctl -qw net.ipv6.conf.{name}.accept_dad=0 net.ipv6.conf.{name}.keep_addr_on_down=1 && ip addr add {ip6} dev {name} nodad")


class HostProcess:
    """A program under `uroce run`, on an interface or where the options say. Offers what GuestProcess does, and the counters of uroce."""

    def __init__(self, uroce, interface, command, state, options=()):
        self.uroce, self.interface, self.killed = uroce, interface, False
        self.files = f"{state}/host-{time.monotonic_ns()}"
        self.out = open(self.files + ".out", "wb")
        program = ["sh", "-c", command] if ";" in command else shlex.split(command)
        self.process = subprocess.Popen(
            [uroce, "run", *(["--dev", interface] if interface else []), "--counters", self.files + ".counters", *options, "--", *program],
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT, start_new_session=True)

    def listening(self, how):
        """Whether any process on this side listens; `how` as in GuestProcess, where mckey says itself that it has joined a group."""
        if how == "group":
            return "joined dgid" in self.output()
        test = {"cm": [self.uroce, "info", "--dev", self.interface], "tcp": ["ss", "-Hltn"]}[how]
        mark = {"cm": "listens on", "tcp": ":18515"}[how]
        try:
            return mark in subprocess.run(test, capture_output=True, text=True, timeout=5).stdout
        except subprocess.TimeoutExpired:
            return False

    def wait_listening(self, how, seconds=10):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            if self.listening(how):
                return True
            time.sleep(0.05)
        return False

    def wait(self, seconds):
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return status if status >= 0 else 128 - status

    def output(self):
        with open(self.files + ".out", errors="replace") as f:
            return f.read()[-20000:]

    def counters(self):
        """
        Those that are not zero, or None when the process has left none: it runs, has never called uroce, or was killed. Of a series of programs, whose
        files have endings of their own, the sums.
        """
        files, sums = glob.glob(self.files + ".counters*"), Counter()
        for name in files:
            with open(name) as f:
                sums.update({name: int(value) for name, value in re.findall(r"^(\w+)\s+(\d+)$", f.read(), re.M)})
        return dict(sums) if files else None

    def kill(self, name="KILL"):
        if self.process.poll() is None:
            self.killed |= name == "KILL"
            os.killpg(self.process.pid, getattr(signal, "SIG" + name))

    def signal(self, name):
        """To it and all that it has started: STOP, CONT and the like."""
        self.kill(name)

    def close(self):
        self.kill("TERM")
        if self.wait(5) is None:
            self.kill()
            self.process.wait()
        self.out.close()


class Recording:
    """tcpdump on the interface, within 60 MB."""

    def __init__(self, interface, path):
        self.path = path
        with open(path + ".log", "w") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "tcpdump", "-i", interface, "-Z", "root", "--immediate-mode", "-U", "-B", "16384", "-s", "0", "-C", "20",
                 "-W", "3", "-w", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        said = ""
        for _ in range(500):
            with open(path + ".log") as f:
                said = f.read()
            if "listening on" in said:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        raise OSError(f"tcpdump does not start: {said.strip()}")

    def close(self):
        """Returns the files, oldest first."""
        time.sleep(0.1)
        self.process.terminate()
        self.process.wait()
        parts = [f"{self.path}{i}" for i in range(3)]
        return sorted((p for p in parts if os.path.exists(p)), key=os.path.getmtime)
