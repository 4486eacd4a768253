# SPDX-License-Identifier: BSD-3-Clause
"""A guest with a PCI NIC behind an emulated IOMMU, for uroce to take, and another NIC aside for what programs say to one another by TCP."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{os.path.dirname(HERE)}/interop")

import host  # noqa: E402
from guest import Guest, GuestProcess  # noqa: E402
from host import Failure  # noqa: E402

TAP, ASIDE = "eth0", "aside0"
HOST4, HOST6, GUEST4, GUEST6 = "10.99.0.1", "fd99::1", "10.99.0.2", "fd99::2"
HOST_ASIDE, GUEST_ASIDE = "10.98.0.1", "10.98.0.2"
GATEWAY = "10.99.0.254"  # nobody; its route must come back
PCI, SHORT = "0000:00:03.0", "00:03.0"
MAC = "52:54:00:99:00:02"

# Name, the kernel's driver, and what else the device wants. The virtio device goes through the IOMMU only when told so.
MODELS = {
    "e1000": ("e1000", ""),
    "e1000e": ("e1000e", ""),
    "virtio-net-pci": ("virtio-pci", ",iommu_platform=on,disable-legacy=on"),
    "vmxnet3": ("vmxnet3", ""),
}
# Models that the IOMMU stops in each row. Of vmxnet3 it stops one access for each program that has the NIC, all of whose data arrives; which access this is,
# and whether the device or its driver is to blame, is not known yet.
FAULTS_ALLOWED = ("vmxnet3",)
LISTENS = f"UROCE_PCI={SHORT} uroce info 2>/dev/null | grep -q 'listens on'"


class NicGuest(Guest):
    """`model` is one of MODELS; `initrd` is that of build_guest and the overlay, one after the other."""

    def __init__(self, image, initrd, state, model):
        self.model = model
        # A program's own memory lies where 48 bits are needed to reach it; interrupts have to be remapped for vfio to be content.
        self.boot(state, f"{image}/vmlinux", initrd,
                  f"intel_iommu=on iommu=nopt uroce.nic={PCI} uroce.ip4={GUEST4}/24 uroce.ip6={GUEST6}/64 uroce.aside={GUEST_ASIDE}/24",
                  ["-M", "q35,kernel-irqchip=split", "-cpu", "max", "-smp", "2", "-m", "768M",
                   "-device", "intel-iommu,intremap=on,caching-mode=on,aw-bits=48",
                   "-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
                   "-device", f"{model},id=nic,netdev=net,bus=pcie.0,addr=3,mac={MAC},romfile={MODELS[model][1]}",
                   "-netdev", f"tap,id=aside,ifname={ASIDE},script=no,downscript=no",
                   "-device", "virtio-net-pci,netdev=aside,bus=pcie.0,addr=5,romfile="])

    def uroce(self, command, options=""):
        """A program on the NIC, in the background."""
        return UroceProcess(self, command, options, f"/tmp/counters{self.tag}")

    def faults(self):
        """How often the IOMMU has stopped the NIC since boot."""
        return int(self.run("dmesg | grep -c 'DMAR: .*Request device'")[1] or 0)

    def must(self, script, seconds=30):
        """Runs a script, and returns what it prints; Failure when its status is not 0."""
        status, text = self.run(script, seconds)
        if status:
            raise Failure(f"'{script}' ends with status {status} in the guest: {text.strip()[-300:]}")
        return text


class UroceProcess(GuestProcess):
    def __init__(self, guest, command, options, counters):
        self.counters_file = counters
        super().__init__(guest, f"uroce run --pci {SHORT} --counters {counters} {options} -- {command}")

    def await_listening(self, seconds=30):
        if self._poll(LISTENS, seconds) != 0:
            raise Failure(f"the guest's program does not listen: {self.output()[-300:]}")

    def await_saying(self, words, seconds=30):
        if self._poll(f"grep -q '{words}' {self.files}.out", seconds) != 0:
            raise Failure(f"the guest's program does not say '{words}': {self.output()[-300:]}")

    def counters(self):
        text = self.guest.run(f"cat {self.counters_file}")[1]
        return {words[0]: int(words[1]) for words in map(str.split, text.splitlines()) if len(words) == 2 and words[1].isdigit()}


class Lab:
    """The cable and the guest at its end."""

    def __init__(self, build, image, model):
        self.uroce, self.image = f"{build}/apps/uroce/uroce", image
        self.state = host.private_directories()
        host.make_tap(TAP, HOST4 + "/24", HOST6 + "/64", 1500)
        host.make_tap(ASIDE, HOST_ASIDE + "/24", "fd98::1/64", 1500)
        subprocess.run([f"{HERE}/overlay", build, self.state], check=True)
        with open(f"{self.state}/initrd", "wb") as out:
            for name in (f"{image}/initrd", f"{self.state}/overlay"):
                with open(name, "rb") as part:
                    out.write(part.read())
        os.unlink(f"{self.state}/overlay")
        self.guest = NicGuest(image, f"{self.state}/initrd", self.state, model)
        self.mtu = 1500

    def set_mtu(self, mtu):
        host.sh(f"ip link set {TAP} mtu {mtu}")
        self.mtu = mtu

    def options(self):
        return f"--mtu {self.mtu}" if self.mtu != 1500 else ""

    def patient(self, command, in_guest):
        """The same program, whose QPs wait for longer (patient.c)."""
        if in_guest:
            return f"sh -c 'LD_PRELOAD=/uroce/patient.so:$LD_PRELOAD exec {command}'"
        return f"LD_PRELOAD={self.state}/patient.so:$LD_PRELOAD; exec {command}"

    def here(self, command, options=()):
        """A program on this side, in the background."""
        return host.HostProcess(self.uroce, TAP, command, self.state, options)

    def close(self):
        self.guest.stop()
        host.sh(f"ip link del {TAP}; ip link del {ASIDE}; umount /run /dev/shm")
