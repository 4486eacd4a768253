# SPDX-License-Identifier: BSD-3-Clause
"""
What happens to each NIC, in this order: the rows of a model share a guest, and each leaves the NIC free for the next. A row is a function that raises Failure.
`essential` ones are run by tools/check.
"""

import re
import time

from nic import GATEWAY, GUEST4, GUEST_ASIDE, HOST4, HOST_ASIDE, MODELS, PCI, SHORT, Failure

ROWS = []
GROUP = "239.7.7.7"
# What must not be raised as long as nothing is lost and nobody dies. Not req_cqe_error and resp_cqe_error: what is flushed when a program disconnects counts
# there too, and rping always has a receive posted then.
BAD = re.compile(r"drop_(?!ghost_ack|unexpected_response).*|rx_icrc.*|tx_refused|tx_dropped|.*_errors|resp_remote.*")


def row(essential=False, kills=False):
    """
    `kills`: a program on the NIC is killed. The kernel then takes the program's memory away from the IOMMU before it resets the NIC, which may ask for its
    next buffer in between and is stopped. In all other rows the NIC touches only what is mapped.
    """
    def note(function):
        function.kills = kills
        ROWS.append((function.__name__.replace("_", " "), function, essential))
        return function
    return note


# --- a program on each side ---

def must_end(process, who, seconds=60, status=0):
    got = process.wait(seconds)
    if got != status:
        raise Failure(f"{who} {'does not end' if got is None else f'ends with status {got}'}: {process.output().strip()[-300:]}")


def check_counters(process, who, allowed=""):
    counters = process.counters()
    if not counters:
        raise Failure(f"{who} has left no counters: {process.output()[-300:]}")
    bad = [f"{name} is {value}" for name, value in counters.items() if value and BAD.fullmatch(name) and not re.fullmatch(allowed or "(?!)", name)]
    if bad:
        raise Failure(f"counters of {who} that should be 0: {', '.join(bad)}")
    return counters


def pair(lab, server, client, guest_serves, wait="cm", patient=False):
    """A server on one side, then a client on the other. Returns the counters of the guest's and of this side's program."""
    words = {"server": GUEST4 if guest_serves else HOST4, "aside": GUEST_ASIDE if guest_serves else HOST_ASIDE,
             # As in test/interop: a guest listens too late for the second connection that perftest makes at once.
             "late": f"LD_PRELOAD={lab.image}/bin/late.so:$LD_PRELOAD;" if guest_serves else ""}
    there = here = None
    options = lab.options()
    client = client.format(**words)
    if patient:
        server, client = lab.patient(server, guest_serves), lab.patient(client, not guest_serves)
    try:
        if guest_serves:
            there = lab.guest.uroce(server, options)
            if wait == "cm":
                there.await_listening()
            elif there._poll("ss -Hltn | grep -q :18515", 30):
                raise Failure(f"the guest's server does not listen: {there.output()[-300:]}")
            here = lab.here(client)
            must_end(here, "the client on this side")
            must_end(there, "the guest's server", 20)
        else:
            here = lab.here(server)
            if not here.wait_listening(wait, 20):
                raise Failure(f"the server on this side does not listen: {here.output()[-300:]}")
            there = lab.guest.uroce(client, options)
            must_end(there, "the guest's client")
            must_end(here, "the server on this side", 20)
        return check_counters(there, "the guest's program"), check_counters(here, "the program on this side")
    finally:
        for process in filter(None, (here, there)):
            process.close()


def both(lab, server, client, **how):
    for guest_serves in (True, False):
        pair(lab, server, client, guest_serves, **how)


# --- taking the NIC ---

def driver(lab):
    return lab.guest.must(f"basename $(readlink /sys/bus/pci/devices/{PCI}/driver)").strip()


def huge_pages(lab):
    return int(lab.guest.must("cat /proc/sys/vm/nr_hugepages"))


@row(essential=True)
def is_listed(lab):
    text = lab.guest.must("uroce info --pci")
    for words in (PCI, f"driver       {MODELS[lab.guest.model][0]}", f"nic0 {GUEST4}/24", "IOMMU group", f"uroce bind {PCI} --keep-addresses"):
        if words not in text:
            raise Failure(f"'uroce info --pci' does not say '{words}': {text}")


@row()
def is_refused_as_long_as_the_kernel_has_it(lab):
    status, text = lab.guest.run(f"uroce run --pci {SHORT} --ip 10.1.1.1/24 -- rping -c -a 10.1.1.2")
    if status == 0 or "hands it over" not in text and "huge pages" not in text:
        raise Failure(f"status {status}: {text}")


@row()
def keeps_the_default_route_unless_told_twice(lab):
    lab.guest.must(f"ip route add default via {GATEWAY} metric 7")
    status, text = lab.guest.run(f"uroce bind {SHORT}")
    if status != 1 or "default route leads through nic0" not in text or driver(lab) != MODELS[lab.guest.model][0]:
        raise Failure(f"status {status}: {text}")
    text = lab.guest.must(f"uroce bind --dry-run --default-route {SHORT}")
    if "binds" not in text or driver(lab) != MODELS[lab.guest.model][0] or huge_pages(lab):
        raise Failure(f"a dry run: {text}")


@row(essential=True)
def is_bound(lab):
    text = lab.guest.must(f"uroce bind --keep-addresses --default-route {SHORT}")
    if driver(lab) != "vfio-pci" or huge_pages(lab) < 48 or f"{GUEST4}/24" not in text:
        raise Failure(f"bound to {driver(lab)}, {huge_pages(lab)} huge pages: {text}")
    if lab.guest.must(f"stat -c %a /run/uroce /run/uroce/pci-{PCI}").split() != ["700", "600"]:
        raise Failure("the file of what there was can be read by others")
    if "already" not in lab.guest.must(f"uroce bind --keep-addresses {SHORT}"):
        raise Failure("a second time is no different")
    if f"uroce run --pci {PCI}" not in lab.guest.must("uroce info --pci"):
        raise Failure("'uroce info --pci' does not say that it is ready")


# --- programs ---

def ping(lab, guest_serves, count=30, size=60000):
    return pair(lab, f"rping -s -V -C {count} -S {size}", f"rping -c -a {{server}} -V -C {count} -S {size}", guest_serves)


def must_not_copy(guest):
    """What the guest has sent of registered memory has left it without a copy, but for what it had to send again."""
    copies = [name for name in ("tx_unmapped", "mr_unmapped") if guest.get(name)]
    if not guest.get("tx_retransmits") and not guest.get("duplicate_request"):
        copies += ["tx_gathered"] if guest.get("tx_gathered") else []
    if copies or not guest.get("tx_chained"):
        raise Failure(f"{guest.get('tx_chained', 0)} frames were sent in place; counters that should be 0: {copies}")


@row(essential=True)
def rping_to_the_guest(lab):
    must_not_copy(ping(lab, True)[0])


@row()
def rping_from_the_guest(lab):
    must_not_copy(ping(lab, False)[0])


def locked(lab):
    """KiB of memory that the NIC has been shown by rping: the kernel counts them as locked."""
    return int(lab.guest.must("grep -l '^Name:.rping$' /proc/[0-9]*/status | head -n 1 | xargs sed -n 's/^VmLck:[^0-9]*\\([0-9]*\\).*/\\1/p'"))


@row()
def memory_is_taken_away_from_an_idle_nic(lab):
    there = lab.guest.uroce("rping -s -P -V -S 60000", lab.options())
    try:
        there.await_listening()
        before = locked(lab)
        for _ in range(3):
            here = lab.here(f"rping -c -a {GUEST4} -V -C 5 -S 60000")
            must_end(here, "the client on this side")
            here.close()
        for _ in range(20):
            after = locked(lab)
            if after == before:
                return
            time.sleep(0.5)
        raise Failure(f"{before} KiB were locked before the clients came, and {after} after they have gone")
    finally:
        there.close()


@row()
def a_verbs_pingpong(lab):
    both(lab, "ibv_rc_pingpong -g 0 -n 200", "ibv_rc_pingpong -g 0 -n 200 {aside}", wait="tcp", patient=True)
    both(lab, "ibv_ud_pingpong -g 0 -n 200 -s 900", "ibv_ud_pingpong -g 0 -n 200 -s 900 {aside}", wait="tcp")


@row()
def perftest(lab):
    # On a busy machine each program takes seconds to start in the guest.
    for test in ("ib_send_bw -n 200", "ib_read_bw -n 100", "ib_write_lat -n 200"):
        both(lab, f"{test} -R -F -u 16", f"{{late}} {test} -R -F -u 16 {{server}}")


@row()
def multicast(lab):
    there = lab.guest.uroce(f"stdbuf -oL mckey -m {GROUP} -C 10", lab.options())
    try:
        there.await_saying("joined dgid")
        here = lab.here(f"mckey -m {GROUP} -s -C 10")
        must_end(here, "the sender on this side")
        must_end(there, "the guest's receiver")
        here.close()
    finally:
        there.close()
    here = lab.here(f"stdbuf -oL mckey -m {GROUP} -C 10")
    try:
        if not here.wait_listening("group", 20):
            raise Failure("the receiver on this side does not join")
        there = lab.guest.uroce(f"mckey -m {GROUP} -s -C 10", lab.options())
        must_end(there, "the guest's sender")
        must_end(here, "the receiver on this side")
        there.close()
    finally:
        here.close()


@row()
def a_larger_mtu(lab):
    lab.set_mtu(4200)
    try:
        for guest_serves in (True, False):
            counters, _ = ping(lab, guest_serves)
            if counters["rx_bytes"] < 1100 * counters["rx_packets"]:  # acknowledgements count as well
                raise Failure(f"{counters['rx_packets']} packets for {counters['rx_bytes']} bytes: the path MTU is not 4096")
    finally:
        lab.set_mtu(1500)


@row()
def losses(lab):
    there = lab.guest.uroce("rping -s -V -C 50 -S 20000", "--fault drop=2%,seed=3")
    try:
        there.await_listening()
        here = lab.here("rping -c -a " + GUEST4 + " -V -C 50 -S 20000")
        must_end(here, "the client on this side", 90)
        must_end(there, "the guest's server", 30)
        if not there.counters().get("fault_dropped"):
            raise Failure("nothing was lost")
        here.close()
    finally:
        there.close()


# --- what happens to a cable, and to programs ---

@row(kills=True)
def a_cable_that_is_pulled(lab):
    server = lab.guest.uroce("rping -s -V -C 100000 -S 3000")
    try:
        server.await_listening()
        here = lab.here(f"rping -c -a {GUEST4} -V -C 100000 -S 3000")
        time.sleep(1)
        lab.guest.link(False)
        time.sleep(1)
        lab.guest.link(True)
        time.sleep(2)
        if here.wait(0) is not None:
            raise Failure(f"the client has ended: {here.output()[-300:]}")
        here.close()
    finally:
        server.close()


@row()
def a_peer_that_is_killed(lab):
    there = lab.guest.uroce("rping -s -V -C 100000 -S 60000")
    try:
        there.await_listening()
        here = lab.here(f"rping -c -a {GUEST4} -V -C 100000 -S 60000")
        time.sleep(1)
        here.kill()
        if there.wait(30) is None:
            raise Failure("the guest's server goes on without its client")
        here.close()
    finally:
        there.close()


@row(essential=True, kills=True)
def a_program_that_is_killed(lab):
    before = int(lab.guest.must("grep HugePages_Free /proc/meminfo | tr -dc 0-9"))
    there = lab.guest.uroce("rping -s -V -C 100000 -S 60000")
    there.await_listening()
    status, text = lab.guest.run(f"uroce run --pci {SHORT} -- rping -c -a {HOST4}", 30)
    if status == 0 or not re.search(r"has " + PCI, text):
        raise Failure(f"a second program on the NIC ends with status {status}: {text}")
    status, text = lab.guest.run(f"uroce unbind {SHORT}")
    if status != 1 or "uses " + PCI not in text:
        raise Failure(f"'uroce unbind' under a program ends with status {status}: {text}")
    here = lab.here(f"rping -c -a {GUEST4} -V -C 100000 -S 60000")
    time.sleep(1)
    there.kill()
    there.close()
    here.close()
    after = int(lab.guest.must("grep HugePages_Free /proc/meminfo | tr -dc 0-9"))
    if after != before:
        raise Failure(f"{before} huge pages were free, and now {after}")
    ping(lab, True, 10)


# --- giving it back ---

@row(essential=True)
def is_given_back(lab):
    had_route = "route 0.0.0.0 0" in lab.guest.must(f"cat /run/uroce/pci-{PCI}")
    text = lab.guest.must(f"uroce unbind {PCI}")
    if driver(lab) != MODELS[lab.guest.model][0] or huge_pages(lab):
        raise Failure(f"it has {driver(lab)} and {huge_pages(lab)} huge pages: {text}")
    if had_route and f"default via {GATEWAY}" not in lab.guest.must("ip route show default"):
        raise Failure(f"the default route is not there again: {text}")
    lab.guest.must(f"for i in 1 2 3 4 5 6 7 8 9 10; do ping -c 1 -W 1 {HOST4} && exit 0; done; exit 1", 20)
    if lab.guest.must("ls /run/uroce").strip():
        raise Failure("something is left in /run/uroce")
