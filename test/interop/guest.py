# SPDX-License-Identifier: BSD-3-Clause
"""A qemu guest with Debian's kernel and rdma_rxe, on a tap interface of this network namespace."""

import base64
import json
import os
import re
import shlex
import socket
import subprocess
import time

COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"

GROUP = "239.7.7.7"  # of multicast; /proc/net/igmp shows it as a number in the host's order

LISTENING = {"cm": "rdma res show cm_id | grep -q LISTEN", "tcp": "ss -Hltn | grep -q :18515", "tcpbench": "ss -Hltn | grep -q :7300", "group": "grep -q 070707EF /proc/net/igmp && usleep 300000"}


class GuestError(Exception):
    """The guest did not do what it was asked to in time; the rest of the run cannot be trusted."""


class Guest:
    """
    Booted by __init__, which returns when rdma_rxe is ready. `image` is a directory of build_guest, `state` one for sockets and logs, `more` are devices
    besides (options of qemu's), `initrd` is another one than the image's.
    """

    def __init__(self, image, state, tap, mac, ip4, ip6, mtu, more=(), initrd=None):
        # Machine type pc: microvm hangs in the calibration of the TSC.
        self.boot(state, f"{image}/vmlinux", initrd or f"{image}/initrd", f"uroce.ip4={ip4} uroce.ip6={ip6}",
                  ["-M", "pc", "-cpu", "qemu64", "-smp", "1", "-m", "512M",
                   "-netdev", f"tap,id=net,ifname={tap},script=no,downscript=no",
                   "-device", f"virtio-net-pci,id=nic,netdev=net,mac={mac},host_mtu={mtu},romfile=", *more])

    def boot(self, state, kernel, initrd, words, machine):
        """`words` are for guest_init, `machine` are options of qemu's. TCG alone, since nested machines have no KVM."""
        self.state, self.tag, self.next_id = state, 0, 0
        self._agent, self._buffer = None, b""
        self.qemu = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg", *machine,
             "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
             "-kernel", kernel, "-initrd", initrd, "-append", f"console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check mitigations=off {words}",
             "-serial", f"file:{state}/console", "-device", "virtio-serial-pci",
             "-chardev", f"socket,id=agent,path={state}/agent,server=on,wait=off", "-device", "virtserialport,chardev=agent,name=agent",
             "-qmp", f"unix:{state}/qmp,server=on,wait=off"],
            stdin=subprocess.DEVNULL, stdout=open(f"{state}/qemu", "wb"), stderr=subprocess.STDOUT)
        self._agent = self._connect("agent")
        self._qmp = self._connect("qmp").makefile("rw")
        self._qmp.readline()
        self.monitor("qmp_capabilities")
        self.kernel = self._answer(0, 180)[1].strip()  # 10 s where nothing else runs

    def _connect(self, name):
        for _ in range(200):
            try:
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(30)
                s.connect(f"{self.state}/{name}")
                return s
            except OSError:
                s.close()
                if self.qemu.poll() is not None:
                    break
                time.sleep(0.05)
        raise GuestError("qemu does not start: " + self._log("qemu"))

    def _log(self, name):
        with open(f"{self.state}/{name}", errors="replace") as f:
            return f.read()[-2000:]

    def condition(self):
        """A word on qemu and the end of the console, for reports."""
        return f"qemu {'runs' if self.qemu.poll() is None else f'has ended with {self.qemu.returncode}'} {self._log('qemu')}; console: {self._log('console')}"

    def _answer(self, ident, seconds):
        """(status, output) of request `ident`."""
        self._agent.settimeout(1)
        end = time.monotonic() + seconds
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                words = line.decode().split()
                if len(words) >= 2 and words[0] == str(ident):
                    return int(words[1]), base64.b64decode(words[2] if len(words) > 2 else "").decode(errors="replace")
                continue
            if time.monotonic() > end or self.qemu.poll() is not None:
                raise GuestError("the guest does not answer; the end of its console:\n" + self._log("console"))
            try:
                self._buffer += self._agent.recv(65536)
            except TimeoutError:
                pass

    def run(self, script, seconds=20):
        """Runs a shell script in the guest. Returns (status, output); 124 or 143 when it took longer than `seconds`."""
        self.next_id += 1
        text = base64.b64encode(script.encode()).decode()
        self._agent.settimeout(10)
        self._agent.sendall(f"{self.next_id} {seconds} {text}\n".encode())
        return self._answer(self.next_id, seconds + 30)

    def monitor(self, command, **arguments):
        """One command of the QEMU Machine Protocol."""
        self._qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._qmp.flush()
        while True:
            answer = json.loads(self._qmp.readline())
            if "error" in answer:
                raise GuestError(f"qemu refuses {command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def link(self, up):
        """Pulls the guest's network cable, or puts it back."""
        self.monitor("set_link", name="nic", up=up)

    def counters(self):
        """rdma_rxe's counters, and how often the kernel has complained since boot."""
        status, text = self.run(f"grep . {COUNTERS}/* && echo complaints:$(dmesg | grep -cE 'BUG|WARNING|Oops|Call Trace')")
        counters = {name: int(value) for name, value in re.findall(r"([a-z_]+):(\d+)$", text, re.M)}
        if status or not {"sent_pkts", "rcvd_pkts", "complaints"} <= counters.keys():
            raise GuestError(f"the guest does not show its counters: status {status}, {text[-200:]}")
        return counters

    def start(self, command):
        return GuestProcess(self, command)

    def stop(self):
        self.qemu.kill()
        self.qemu.wait()


class GuestProcess:
    """A program in the background of the guest, in a session of its own."""

    def __init__(self, guest, command):
        guest.tag += 1
        self.guest, self.files, self.status = guest, f"/tmp/p{guest.tag}", None
        inner = f"({command}); echo $? >{self.files}.status"
        guest.run(f"setsid /bin/dash -c {shlex.quote(inner)} </dev/null >{self.files}.out 2>&1 3>&- & echo $! >{self.files}.pid")

    def _poll(self, condition, seconds):
        rounds = max(1, int(seconds * 20))
        status, text = self.guest.run(
            f"i=0; while [ $i -lt {rounds} ]; do [ -s {self.files}.status ] && exit 1; {condition} && exit 0; usleep 50000; i=$((i+1)); done; exit 2",
            int(seconds * 3) + 10)
        if status not in (0, 1, 2, 124, 143):
            raise GuestError(f"the guest cannot look after a program: status {status}, {text[-200:]}")
        return status

    def listening(self, how):
        """Whether anything in the guest listens. `how`: cm for a CM id, tcp for the port 18515 of programs that exchange addresses over TCP, group for GROUP."""
        return self.guest.run(LISTENING[how])[0] == 0

    def wait_listening(self, how, seconds=10):
        return self._poll(LISTENING[how], seconds) == 0

    def wait(self, seconds):
        """Its exit status, or None if it still runs after `seconds`."""
        if self.status is None and self._poll("false", seconds) == 1:
            self.status = int(self.guest.run(f"cat {self.files}.status")[1] or -1)
        return self.status

    def output(self):
        return self.guest.run(f"tail -c 20000 {self.files}.out")[1]

    def kill(self):
        """With SIGKILL, and the shell around it, which would have noted the status."""
        self.guest.run(f"[ -s {self.files}.status ] || {{ kill -KILL -$(cat {self.files}.pid); echo 137 >{self.files}.status; }}")

    def signal(self, name):
        """To it and all that it has started: STOP, CONT and the like."""
        self.guest.run(f"kill -{name} -$(cat {self.files}.pid)")

    def close(self):
        """Ends it if need be and removes its files."""
        if self.status is None:
            self.kill()
        self.guest.run(f"rm -f {self.files}.*")
