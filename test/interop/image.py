# SPDX-License-Identifier: BSD-3-Clause
"""The directory of what a guest boots from: made by build_guest, and kept from being removed as long as this process lives."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD_SECONDS = 250  # for the guest's image; tools/check gives 400 for everything


def end_group(process):
    """A process that leads a group, and what it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
            return


def build_guest(kernel):
    """(status, stdout, stderr) of build_guest. It is in a session of its own, so that all of it can be ended whatever ends us."""
    process = subprocess.Popen([f"{HERE}/build_guest", kernel], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        end_group(process)
        return 1, "", f"the guest was not built within {BUILD_SECONDS} s"
    except BaseException:
        end_group(process)
        raise
    return process.returncode, out, err


def hold(image):
    """Keeps other runs from removing an image, until we end. False when one was faster."""
    try:
        fd = os.open(image, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(fd, fcntl.LOCK_SH)
        return os.path.samestat(os.fstat(fd), os.stat(image)) and os.path.exists(f"{image}/initrd")
    except FileNotFoundError:
        return False


def find_image(kernel):
    """(directory of the guest's image, "", False), or (None, why there is none, whether this host is the reason)."""
    if not os.path.exists("/dev/net/tun"):
        return None, "there is no /dev/net/tun here to connect a guest with", True
    for tool in ("qemu-system-x86_64", "tcpdump", "setpriv", "unshare"):
        if not shutil.which(tool):
            return None, f"there is no {tool} here", True
    for _ in range(3):
        status, out, err = build_guest(kernel)
        for line in err.splitlines():
            if line.startswith("note:"):
                print(f"# {line}")
        if status:
            if status != 3:
                print("# " + err.strip().replace("\n", "\n# "))
            return None, (err.strip().splitlines() or ["build_guest failed"])[-1], status == 3
        if hold(out.strip()):
            return out.strip(), "", False
    return None, "other runs go on removing the guest's image", False


def with_uroce(image, prefix, directory, files=()):
    """The initrd of an image with the installation of uroce at `prefix`, and with more files for /bin. Returns its path, in `directory`."""
    subprocess.run([f"{HERE}/overlay", prefix, directory, *files], check=True)
    with open(f"{directory}/initrd", "wb") as out:
        for name in (f"{image}/initrd", f"{directory}/overlay"):
            with open(name, "rb") as part:
                shutil.copyfileobj(part, out)
    os.unlink(f"{directory}/overlay")
    return f"{directory}/initrd"
