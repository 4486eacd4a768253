# SPDX-License-Identifier: BSD-3-Clause
"""
The cable between a guest whose PCI NIC uroce takes, behind an emulated IOMMU, and who is at its other end: uroce on this host's tap, or rdma_rxe in
a second guest. What programs say to one another by TCP goes another way, by the network aside.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{os.path.dirname(HERE)}/interop")

import host  # noqa: E402
import image as guest_image  # noqa: E402
from guest import Guest, GuestError, GuestProcess  # noqa: E402
from host import Failure  # noqa: E402

TAP, RXE_TAP, BRIDGE = "eth0", "rxe0", "cable"
ASIDE, ASIDE_TAP, RXE_ASIDE_TAP = "aside", "aside0", "aside1"
HOST4, HOST6, GUEST4, GUEST6, RXE4, RXE6 = "10.99.0.1", "fd99::1", "10.99.0.2", "fd99::2", "10.99.0.3", "fd99::3"
HOST_ASIDE, GUEST_ASIDE, RXE_ASIDE = "10.98.0.1", "10.98.0.2", "10.98.0.3"
GATEWAY = "10.99.0.254"  # nobody; its route must come back
PCI, SHORT = "0000:00:03.0", "00:03.0"
MAC, RXE_MAC, ASIDE_MAC, RXE_ASIDE_MAC = "52:54:00:99:00:02", "52:54:00:99:00:03", "52:54:00:98:00:02", "52:54:00:98:00:03"
LARGEST_MTU = 4200
GUEST_VLAN, HOST_VLAN = "10.99.5.2/24", "10.99.5.1/24"
USER = 1000  # an ordinary one of the guest's

# Name, the kernel's driver, and what else the device wants. The virtio device goes through the IOMMU only when told so.
MODELS = {
    "e1000": ("e1000", ""),
    "e1000e": ("e1000e", ""),
    "virtio-net-pci": ("virtio-pci", ",iommu_platform=on,disable-legacy=on"),
    "vmxnet3": ("vmxnet3", ""),
}
FAULT = r"DMAR: .*Request device"
# What the IOMMU stops and must stop, and nothing else. DPDK's vmxnet3 driver has the device read its features and its VLAN filter as it starts, before it
# tells it where they are: the device then looks where they were last, at address 0 or, when it was the kernel's, at the kernel's page below 4 GiB, which
# uroce does not use. It reads both again when it is activated (doc/nic.md).
STOPPED_RIGHTLY = {"vmxnet3": r"\[DMA Read [^]]*\] Request device \[00:03\.0\] fault addr 0x(0|f[0-9a-f]{4}000) "}
# Not asked at once again: starting 'uroce info' costs an emulated guest as much time as the program whose start is waited for can well use.
LISTENS = {"cm": f"usleep 300000; UROCE_PCI={SHORT} uroce info 2>/dev/null | grep -q 'listens on'", "tcp": "ss -Hltn | grep -q :18515"}


class NicGuest(Guest):
    """Whose NIC uroce takes. `model` is one of MODELS; `initrd` is that of build_guest and the overlay, one after the other."""

    who, ip4, aside, gid = "the guest", GUEST4, GUEST_ASIDE, 0

    def __init__(self, image, initrd, state, model):
        self.model = model
        # A program's own memory lies where 48 bits are needed to reach it; interrupts have to be remapped for vfio to be content.
        self.boot(state, f"{image}/vmlinux", initrd,
                  f"intel_iommu=on iommu=nopt uroce.nic={PCI} uroce.ip4={GUEST4}/24 uroce.ip6={GUEST6}/64 uroce.aside={GUEST_ASIDE}/24",
                  ["-M", "q35,kernel-irqchip=split", "-cpu", "max", "-smp", "2", "-m", "768M",
                   "-device", "intel-iommu,intremap=on,caching-mode=on,aw-bits=48",
                   "-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
                   "-device", f"{model},id=nic,netdev=net,bus=pcie.0,addr=3,mac={MAC},romfile={MODELS[model][1]}",
                   *aside_nic(ASIDE_TAP, ASIDE_MAC, ",bus=pcie.0,addr=5")])

    def start(self, command, options="", user=None):
        """A program on the NIC, in the background. `user`: not root's, but one of an ordinary user who may lock that many KiB of memory."""
        return UroceProcess(self, command, options, f"/tmp/counters{self.tag}", user)

    def give_group(self, user):
        """Has the NIC's IOMMU group belong to a user."""
        self.must(f"chown {user} /dev/vfio/$(basename $(readlink /sys/bus/pci/devices/{PCI}/iommu_group))")

    def preloading(self, library, command):
        return f"sh -c 'LD_PRELOAD=/bin/{library}.so:$LD_PRELOAD exec {command}'"

    def faults(self):
        """What the IOMMU has stopped since boot, and should not have had to."""
        lines = self.run(f"dmesg | grep '{FAULT}'")[1].splitlines()
        rightly = STOPPED_RIGHTLY.get(self.model, "(?!)")
        return [line for line in lines if not re.search(rightly, line)]

    def short_program(self, settings="", options=""):
        """A program of one thread that opens the NIC and ends. Returns what it says."""
        text = self.run(f"{settings} uroce run --pci {SHORT} {options} -- ibv_rc_pingpong 127.0.0.1 2>&1", 30)[1]
        if "connect to 127.0.0.1" not in text:  # where it fails, behind registering memory, since no server is there
            raise Failure(f"a short program on the NIC says: {text.strip()[-300:]}")
        return text

    def let_go(self):
        """Behind it the rings of a program that was killed are gone."""
        if self.run(f"[ -e /sys/bus/pci/drivers/vfio-pci/{PCI} ]")[0] == 0:
            self.short_program()

    def must(self, script, seconds=30):
        """Runs a script, and returns what it prints; Failure when its status is not 0."""
        status, text = self.run(script, seconds)
        if status:
            raise Failure(f"'{script}' ends with status {status} in the guest: {text.strip()[-300:]}")
        return text


class UroceProcess(GuestProcess):
    def __init__(self, guest, command, options, counters, user=None):
        self.counters_file = counters
        become = f"ulimit -l {user}; exec setpriv --reuid {USER} --regid {USER} --clear-groups " if user else ""
        # What 'uroce bind --keep-addresses' has kept is root's.
        address = f"--ip {GUEST4}/24 " if user else ""
        super().__init__(guest, f"{become}uroce run --pci {SHORT} --counters {counters} {address}{options} -- {command}")

    def wait_listening(self, how, seconds=30):
        said = f"grep -q 'joined dgid' {self.files}.out"
        return self._poll(said if how == "group" else LISTENS[how], seconds) == 0

    def counters(self):
        text = self.guest.run(f"cat {self.counters_file}")[1]
        return {words[0]: int(words[1]) for words in map(str.split, text.splitlines()) if len(words) == 2 and words[1].isdigit()}


class ThisSide:
    """uroce on this host's tap."""

    who, ip4, aside, gid = "this side", HOST4, HOST_ASIDE, 0

    def __init__(self, uroce, image, state):
        self.uroce, self.image, self.state = uroce, image, state

    def start(self, command, options=()):
        return host.HostProcess(self.uroce, TAP, command, self.state, options)

    def start_owning(self, command, ip):
        """A program with a port of its own on the tap, with that address beside the kernel's."""
        return host.HostProcess(self.uroce, None, command, self.state, ["--vdev", f"net_af_packet0,iface={TAP}", "--ip", ip])

    def forget(self):
        """The MAC addresses of neighbours, as whoever meets somebody for the first time."""
        host.sh(f"ip neigh flush dev {TAP}")

    def preloading(self, library, command):
        return f"LD_PRELOAD={self.image}/bin/{library}.so:$LD_PRELOAD; exec {command}"


class RxeGuest(Guest):
    """rdma_rxe at the other end of the cable."""

    who, ip4, aside, gid = "rdma_rxe's guest", RXE4, RXE_ASIDE, 1

    def __init__(self, image, state):
        super().__init__(image, state, RXE_TAP, RXE_MAC, RXE4 + "/24", RXE6 + "/64", LARGEST_MTU, aside_nic(RXE_ASIDE_TAP, RXE_ASIDE_MAC))
        self.mtu = LARGEST_MTU
        self.run(f"ip addr add {RXE_ASIDE}/24 dev eth1; ip link set eth1 up")
        self.before = self.counters()

    def set_mtu(self, mtu):
        if mtu != self.mtu:
            self.run(f"ip link set eth0 mtu {mtu}")
            self.mtu = mtu

    def forget(self):
        self.run("ip neigh flush dev eth0")

    def preloading(self, library, command):
        return f"LD_PRELOAD=/bin/{library}.so {command}"

    def counted(self):
        """What rdma_rxe's counters have moved since the last call."""
        now = self.counters()
        moved = {name: value - self.before.get(name, 0) for name, value in now.items() if value != self.before.get(name, 0)}
        self.before = now
        return moved


def aside_nic(tap, mac, where=""):
    return ["-netdev", f"tap,id=aside,ifname={tap},script=no,downscript=no", "-device", f"virtio-net-pci,netdev=aside,mac={mac},romfile={where}"]


class Lab:
    """The cable, the guest at its end, and who else there is."""

    def __init__(self, prefix, image):
        uroce, self.image = f"{prefix}/bin/uroce", image
        self.state = host.private_directories()
        host.make_tap(TAP, HOST4 + "/24", HOST6 + "/64", 1500)
        host.sh(f"ip link add {BRIDGE} type bridge mcast_snooping 0 && ip link set {BRIDGE} mtu {LARGEST_MTU} up && "
                f"ip link add {ASIDE} type bridge && ip addr add {HOST_ASIDE}/24 dev {ASIDE} && ip link set {ASIDE} up")
        for tap, bridge, mtu in ((RXE_TAP, BRIDGE, LARGEST_MTU), (ASIDE_TAP, ASIDE, 1500), (RXE_ASIDE_TAP, ASIDE, 1500)):
            host.sh(f"ip tuntap add dev {tap} mode tap && ip link set {tap} mtu {mtu} master {bridge} up")
        child = f"{self.state}/child.so"
        subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", child, f"{HERE}/child.c"], check=True)
        self.initrd = guest_image.with_uroce(image, prefix, self.state, [child])
        self.mtu = 1500
        self.here, self.guest, self._rxe = ThisSide(uroce, image, self.state), None, None

    def boot(self, model):
        """Another guest in place of the one that there was."""
        self.close_guest()
        self.guest = NicGuest(self.image, self.initrd, self._directory("nic"), model)

    def _directory(self, name):
        path = f"{self.state}/{name}"
        host.sh(f"rm -rf {path} && mkdir {path}")
        return path

    def rxe(self):
        """The guest with rdma_rxe, which is booted when it is needed for the first time."""
        if not self._rxe:
            self._rxe = RxeGuest(self.image, self._directory("rxe"))
        self._rxe.set_mtu(self.mtu)
        return self._rxe

    def plug_in_rxe(self, yes):
        """Whether the guest's cable leads to rdma_rxe instead of to this host."""
        host.sh(f"ip link set {TAP} {f'master {BRIDGE}' if yes else 'nomaster'}")

    def survivors(self):
        """Whether the guest still answers. One with rdma_rxe that does not is no loss: there will be another one."""
        if self._rxe and not answers(self._rxe):
            self._rxe.stop()
            self._rxe = None
        return answers(self.guest)

    def frames(self, direction="rx"):
        """How many frames have come from the NIC (rx), or gone to it (tx)."""
        # Not in /sys, which shows the interfaces of the namespace that it was mounted in.
        with open("/proc/net/dev") as f:
            fields = next(line.split() for line in f if line.split()[0] == TAP + ":")
        return int(fields[2 if direction == "rx" else 10])

    def set_mtu(self, mtu):
        host.sh(f"ip link set {TAP} mtu {mtu}")
        self.mtu = mtu

    def options(self):
        return f"--mtu {self.mtu}" if self.mtu != 1500 else ""

    def close_guest(self):
        if self.guest:
            self.guest.stop()
        self.guest = None

    def close(self):
        self.close_guest()
        if self._rxe:
            self._rxe.stop()


def answers(guest):
    try:
        return guest.run("true")[0] == 0
    except (GuestError, OSError):
        return False
