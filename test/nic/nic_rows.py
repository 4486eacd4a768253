# SPDX-License-Identifier: BSD-3-Clause
"""
What happens to each NIC, in this order: the rows of a model share a guest, and each leaves the NIC free for the next. A row is a function that raises Failure.
`essential` ones are run by tools/check.
"""

import re
import time

from host import wait_until
from nic import GATEWAY, GUEST4, GUEST6, GUEST_VLAN, HOST4, HOST6, HOST_VLAN, MODELS, PCI, SHORT, USER, Failure
from rows import TRAFFIC  # what any traffic moves of rdma_rxe's counters

ROWS = []
GROUP = "239.7.7.7"
LONG = 1000000  # rpings that are never reached
WAKES = ("e1000", "e1000e")  # models with a receive interrupt that uroce uses
# What must not be raised as long as nothing is lost and nobody dies. Not req_cqe_error and resp_cqe_error: what is flushed when a program disconnects counts
# there too, and rping always has a receive posted then.
BAD = re.compile(r"drop_(?!ghost_ack|unexpected_response|icmp_quote).*|rx_icrc.*|tx_refused|tx_dropped|.*_errors|resp_remote.*")
# The pingpongs say no goodbye: what is sent again, or its answer, may come to a QP that is gone.
NO_GOODBYE = "drop_qp(n|_state)"


def row(essential=False, kills=False, rxe=False):
    """
    `kills`: a program on the NIC is killed. A NIC without a reset that works then has that program's rings until the next one's driver stops it, and is
    stopped by the IOMMU when it reaches for them (doc/nic.md). Such a row is followed by a program that ends well, so that this is over with the row. In all
    other rows the NIC touches only what is mapped.
    `rxe`: the cable leads to rdma_rxe's guest.
    """
    def note(function):
        function.kills, function.rxe = kills, rxe
        ROWS.append((function.__name__.replace("_", " ").replace("rdma rxe", "rdma_rxe"), function, essential))
        return function
    return note


# --- a program on each side ---

def must_end(process, who, seconds=60, status=0):
    got = process.wait(seconds)
    if got != status:
        raise Failure(f"{who} {'does not end' if got is None else f'ends with status {got}'}: {process.output().strip()[-300:]}")


def must_listen(process, who, how="cm"):
    if not process.wait_listening(how, 30):
        raise Failure(f"{who} does not {'join' if how == 'group' else 'listen'}: {process.output()[-300:]}")


def check_counters(process, who, allowed=""):
    counters = process.counters()
    if not counters:
        raise Failure(f"{who} has left no counters: {process.output()[-300:]}")
    bad = [f"{name} is {value}" for name, value in counters.items() if value and BAD.fullmatch(name) and not re.fullmatch(allowed or "(?!)", name)]
    if bad:
        raise Failure(f"counters of {who} that should be 0: {', '.join(bad)}")
    return counters


def check_rxe(guest):
    bad = [f"{name} by {value}" for name, value in guest.counted().items() if name not in TRAFFIC]
    if bad:
        raise Failure(f"counters of rdma_rxe that should not have moved: {', '.join(bad)}")


def pair(lab, peer, server, client, guest_serves, wait="cm", preload=None, options="", user=None, allowed="", seconds=60):
    """
    A server on one side, then a client on the other: {server} is the server's address and {aside} the one by the network aside, {gid} each side's own index.
    `preload` are the libraries that the server and the client have preloaded, `user` is of NicGuest.start. Returns the counters of the guest's program.
    """
    serves, asks = (lab.guest, peer) if guest_serves else (peer, lab.guest)
    started = []

    def start(side, command, library):
        command = command.format(server=serves.ip4, aside=serves.aside, gid=side.gid)
        if library:
            command = side.preloading(library, command)
        started.append(side.start(command, f"{lab.options()} {options}", user) if side is lab.guest else side.start(command))
        return started[-1]

    peer.forget()
    try:
        first = start(serves, server, preload and preload[0])
        must_listen(first, f"the server of {serves.who}", wait)
        second = start(asks, client, preload and preload[1])
        must_end(second, f"the client of {asks.who}", seconds)
        must_end(first, f"the server of {serves.who}", 20)
        for process, side in ((first, serves), (second, asks)):
            if side.gid == 0:
                check_counters(process, f"the program of {side.who}", allowed)
            else:
                check_rxe(side)
        return (first if guest_serves else second).counters()
    finally:
        for process in started:
            process.close()


def both(lab, peer, server, client, **how):
    for guest_serves in (True, False):
        pair(lab, peer, server, client, guest_serves, **how)


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
    if status != 1 or "default route uses nic0" not in text or driver(lab) != MODELS[lab.guest.model][0]:
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

def ping(lab, peer, guest_serves, count=30, size=60000, user=None):
    return pair(lab, peer, f"rping -s -V -C {count} -S {size}", f"rping -c -a {{server}} -V -C {count} -S {size}", guest_serves, user=user)


def pingpongs(lab, peer):
    for kind, options in (("rc", "-n 200"), ("uc", "-n 100"), ("ud", "-n 200 -s 900")):
        command = f"ibv_{kind}_pingpong -g {{gid}} {options}"
        both(lab, peer, command, command + " {aside}", wait="tcp", preload=("patient", "patient"), allowed=NO_GOODBYE)


def measure(lab, peer):
    # On a busy machine each program takes seconds to start in a guest. Not more than a guest's NIC holds at a time: rdma_rxe's guest loses the rest.
    for test in ("ib_send_bw -s 4097 -n 200 -t 16", "ib_read_bw -s 4097 -n 200 -o 4", "ib_write_lat -n 200"):
        both(lab, peer, f"{test} -R -F -u 16", f"{test} -R -F -u 16 {{server}}", preload=(None, "late"))


def talk_to_a_group(lab, peer):
    # mckey looks for the address of its device in the routes; rdma_rxe's guest has a second interface, hence -b.
    for guest_listens in (True, False):
        listens, sends = (lab.guest, peer) if guest_listens else (peer, lab.guest)
        receiver = sender = None
        try:
            receiver = listens.start(f"{'' if listens.gid else 'stdbuf -oL '}mckey -m {GROUP} -b {listens.ip4} -C 10")
            must_listen(receiver, f"the receiver of {listens.who}", "group")
            sender = sends.start(f"mckey -m {GROUP} -b {sends.ip4} -s -C 10")
            must_end(sender, f"the sender of {sends.who}")
            must_end(receiver, f"the receiver of {listens.who}", 20)
        finally:
            for process in filter(None, (receiver, sender)):
                process.close()


def ping_with_large_packets(lab, peer):
    for guest_serves in (True, False):
        counters = ping(lab, peer, guest_serves)
        if counters["rx_bytes"] < 1100 * counters["rx_packets"]:  # acknowledgements count as well
            raise Failure(f"{counters['rx_packets']} packets for {counters['rx_bytes']} bytes: the path MTU is not 4096")


def must_not_copy(guest):
    """What the guest has sent of registered memory has left it without a copy, but for what it had to send again."""
    copies = [name for name in ("tx_unmapped", "mr_unmapped") if guest.get(name)]
    if not guest.get("tx_retransmits") and not guest.get("duplicate_request"):
        copies += ["tx_gathered"] if guest.get("tx_gathered") else []
    if copies or not guest.get("tx_chained"):
        raise Failure(f"{guest.get('tx_chained', 0)} frames were sent in place; counters that should be 0: {copies}")


@row(essential=True)
def rping_to_the_guest(lab):
    must_not_copy(ping(lab, lab.here, True))


@row()
def rping_from_the_guest(lab):
    must_not_copy(ping(lab, lab.here, False))


ENOUGH = 32768  # KiB that a program may lock: DPDK's take less than 16 MiB
SCARCE = 20480
TOO_LITTLE = 8192


@row()
def an_ordinary_user(lab):
    status, text = lab.guest.run(f"setpriv --reuid {USER} --regid {USER} --clear-groups uroce run --pci {SHORT} --ip {GUEST4}/24 -- rping -c -a {HOST4} 2>&1")
    if status == 0 or "no permission to open" not in text:
        raise Failure(f"a user who may not open it: status {status}, {text}")
    lab.guest.give_group(USER)
    try:
        must_not_copy(ping(lab, lab.here, False, user=ENOUGH))  # 'uroce info', which root runs, does not show where another user's program listens
    finally:
        lab.guest.give_group(0)


@row()
def a_user_who_may_lock_little_memory(lab):
    lab.guest.give_group(USER)
    try:
        refused = lab.guest.start(f"rping -c -a {HOST4}", user=TOO_LITTLE)
        if not refused.wait(30) or "cannot be locked: raise 'ulimit -l'" not in refused.output():
            raise Failure(f"with {TOO_LITTLE} KiB it ends with status {refused.status}: {refused.output()}")
        refused.close()
        test = "ib_write_bw -R -F -s 4194304 -n 5 -t 2"  # shows 8 MiB and more
        counters = pair(lab, lab.here, test, test + " {server}", False, user=SCARCE)
        if not counters.get("mr_unmapped") or not counters.get("tx_unmapped") or counters.get("tx_chained"):
            raise Failure(f"with {SCARCE} KiB: {counters}")
    finally:
        lab.guest.give_group(0)


def locked(lab):
    """KiB of memory that the NIC has been shown by rping: the kernel counts them as locked."""
    return int(lab.guest.must("grep -l '^Name:.rping$' /proc/[0-9]*/status 2>/dev/null | head -n 1 | xargs sed -n 's/^VmLck:[^0-9]*\\([0-9]*\\).*/\\1/p'"))


def end_server(lab, there):
    """Kills a server that goes on, and waits until the kernel has done with it."""
    there.close()
    lab.guest.must("i=0; while grep -q '^Name:.rping$' /proc/[0-9]*/status 2>/dev/null && [ $i -lt 500 ]; do usleep 10000; i=$((i + 1)); done")


@row(kills=True)
def memory_is_taken_away_from_an_idle_nic(lab):
    there = lab.guest.start("rping -s -P -V -S 60000", lab.options())
    try:
        must_listen(there, "the server of the guest")
        before = locked(lab)
        for _ in range(3):
            here = lab.here.start(f"rping -c -a {GUEST4} -V -C 5 -S 60000")
            must_end(here, "the client on this side")
            here.close()
        for _ in range(20):
            after = locked(lab)
            if after == before:
                return
            time.sleep(0.5)
        raise Failure(f"{before} KiB were locked before the clients came, and {after} after they have gone")
    finally:
        end_server(lab, there)


def naps(lab):
    """How often rping's threads have gone to sleep so far."""
    return int(lab.guest.must("grep -l '^Name:.rping$' /proc/[0-9]*/status 2>/dev/null | head -n 1 | sed 's/status$/task/' | "
                              "xargs -I{} sh -c 'cat {}/*/status' | sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' | "
                              "{ n=0; while read k; do n=$((n + k)); done; echo $n; }"))


@row()
def an_idle_program_sleeps_until_a_packet_comes(lab):
    there = lab.guest.start("rping -s -V -C 20 -S 3000", lab.options())
    try:
        must_listen(there, "the server of the guest")
        before = naps(lab)
        time.sleep(3)
        times = naps(lab) - before
        if lab.guest.model in WAKES and times > 300:  # without an interrupt some 500 a second; with it some 17
            raise Failure(f"in three seconds it woke {times} times")
        here = lab.here.start(f"rping -c -a {GUEST4} -V -C 20 -S 3000")
        must_end(here, "the client on this side")
        must_end(there, "the guest's server", 20)
        here.close()
    finally:
        there.close()


@row()
def rping_over_IPv6(lab):
    for guest_serves in (True, False):
        address = GUEST6 if guest_serves else HOST6
        pair(lab, lab.here, f"rping -s -a {address} -V -C 20", f"rping -c -a {address} -V -C 20", guest_serves)


@row()
def the_verbs_pingpongs(lab):
    pingpongs(lab, lab.here)


@row()
def perftest(lab):
    measure(lab, lab.here)


@row()
def multicast(lab):
    talk_to_a_group(lab, lab.here)


@row()
def a_larger_mtu(lab):
    lab.set_mtu(4200)
    try:
        ping_with_large_packets(lab, lab.here)
    finally:
        lab.set_mtu(1500)


@row()
def a_vlan(lab):
    """Tagged frames pass the NIC's filter both ways, and those of another VLAN are not heard."""
    server = lab.guest.start("rping -s -V -C 20 -S 3000", f"--ip {GUEST_VLAN}@5")
    stranger = client = None
    try:
        listens = f"UROCE_PCI={SHORT} UROCE_IP={GUEST_VLAN}@5 uroce info | grep 'listens on'"
        wait_until(lambda: lab.guest.run(listens)[0] == 0, 30, "the server of the guest does not listen")
        stranger = lab.here.start_owning(f"rping -c -a {GUEST_VLAN.split('/')[0]} -C 1", f"{HOST_VLAN}@6")
        if stranger.wait(60) in (0, None):
            raise Failure(f"a client of another VLAN ends with {stranger.wait(0)}: {stranger.output()[-300:]}")
        client = lab.here.start_owning(f"rping -c -a {GUEST_VLAN.split('/')[0]} -V -C 20 -S 3000", f"{HOST_VLAN}@5")
        must_end(client, "the client of this side")
        must_end(server, "the server of the guest", 20)
    finally:
        for process in filter(None, (server, stranger, client)):
            process.close()


@row()
def losses(lab):
    for guest_serves in (True, False):
        counters = pair(lab, lab.here, "rping -s -V -C 50 -S 20000", "rping -c -a {server} -V -C 50 -S 20000", guest_serves,
                        options="--fault drop=2%,seed=3", allowed=".*", seconds=120)
        if not counters.get("fault_dropped"):
            raise Failure("nothing was lost")


# --- rdma_rxe ---

@row(rxe=True)
def rping_and_rdma_rxe(lab):
    for guest_serves in (True, False):
        ping(lab, lab.rxe(), guest_serves)


@row(rxe=True)
def the_verbs_pingpongs_and_rdma_rxe(lab):
    pingpongs(lab, lab.rxe())


@row(rxe=True)
def perftest_and_rdma_rxe(lab):
    measure(lab, lab.rxe())


@row(rxe=True)
def multicast_and_rdma_rxe(lab):
    talk_to_a_group(lab, lab.rxe())


@row(rxe=True)
def a_larger_mtu_and_rdma_rxe(lab):
    lab.set_mtu(4200)
    try:
        ping_with_large_packets(lab, lab.rxe())
    finally:
        lab.set_mtu(1500)


# --- what happens to a cable, and to programs ---

def long_ping(lab, size):
    """The guest's server and this side's client, which go on until they are stopped, when a hundred frames have come from the guest."""
    server = lab.guest.start(f"rping -s -V -C {LONG} -S {size}")
    must_listen(server, "the server of the guest")
    client = lab.here.start(f"rping -c -a {GUEST4} -V -C {LONG} -S {size}")
    must_talk(lab, "at the beginning")
    return server, client


def must_talk(lab, when):
    before = lab.frames()
    wait_until(lambda: lab.frames() > before + 100, 60, f"no hundred frames come from the guest {when}")


@row(kills=True)
def a_cable_that_is_pulled(lab):
    server, client = long_ping(lab, 3000)
    try:
        lab.guest.link(False)
        try:
            time.sleep(0.3)  # for what qemu holds
            before = lab.frames()
            time.sleep(1)
            if lab.frames() != before:
                raise Failure("frames come through a cable that is pulled")
        finally:
            lab.guest.link(True)
        must_talk(lab, "when the cable is back")
        for process, who in ((client, "client of this side"), (server, "server of the guest")):
            if process.wait(0) is not None:
                raise Failure(f"the {who} has ended: {process.output()[-300:]}")
    finally:
        client.close()
        server.close()


@row()
def a_peer_that_is_killed(lab):
    server, client = long_ping(lab, 60000)
    try:
        client.kill()
        if server.wait(60) is None:
            raise Failure("the guest's server goes on without its client")
    finally:
        client.close()
        server.close()
    ping(lab, lab.here, True, 10)


@row(kills=True)
def a_program_that_leaves_a_child(lab):
    server = lab.guest.start(lab.guest.preloading("child", "rping -s -V -C 1"))
    try:
        must_listen(server, "the server of the guest")
        child = int(lab.guest.must("cat /tmp/child"))
        lab.guest.must(f"for p in $(grep -l '^Name:.rping$' /proc/[0-9]*/status | tr -dc '0-9\\n'); do [ $p = {child} ] || kill -KILL $p; done")
        if server.wait(20) != 128 + 9:
            raise Failure(f"the server that was killed has ended with status {server.status}: {server.output()[-300:]}")
        ping(lab, lab.here, True, 10)
        lab.guest.must(f"kill -KILL {child}")  # which was there all the time
    finally:
        server.close()


@row()
def two_programs_that_want_it(lab):
    servers = {port: lab.guest.start(f"rping -s -V -C 5 -p {port}") for port in (7174, 7175)}
    try:
        wait_until(lambda: any(p.wait(0) is not None for p in servers.values()), 30, "neither of them has ended")
        port = next(port for port, p in servers.items() if p.wait(0) is None)
        winner, loser = servers[port], next(p for p in servers.values() if p is not servers[port])
        if loser.wait(0) == 0 or not re.search(f"has {PCI}|another program has {PCI}", loser.output()):
            raise Failure(f"the one that does not get it ends with status {loser.status}: {loser.output()}")
        must_listen(winner, "the one that gets it")
        client = lab.here.start(f"rping -c -a {GUEST4} -V -C 5 -p {port}")
        must_end(client, "the client of this side")
        must_end(winner, "the one that gets it", 20)
        client.close()
    finally:
        for process in servers.values():
            process.close()


@row()
def programs_whose_memory_is_elsewhere(lab):
    """A NIC that still has the rings of a program that was killed must not find the next one's memory there. The places are drawn from 1008."""
    texts = [lab.guest.short_program("UROCE_LOG=debug", "--eal --log-level=lib.eal:debug") for _ in range(3)]
    places = [re.search(r"Virtual area found at (0x[0-9a-f]+)", text) for text in texts]
    if not all(places):
        raise Failure(f"DPDK does not say where its memory is: {texts[0][-300:]}")
    if len({place[1] for place in places}) == 1:
        raise Failure(f"three programs have their memory at {places[0][1]}")


def free_huge_pages(lab):
    return int(lab.guest.must("grep HugePages_Free /proc/meminfo | tr -dc 0-9"))


@row(essential=True, kills=True)
def a_program_that_is_killed(lab):
    before = free_huge_pages(lab)
    server, client = long_ping(lab, 60000)
    status, text = lab.guest.run(f"uroce run --pci {SHORT} -- rping -c -a {HOST4}", 30)
    if status == 0 or not re.search(r"has " + PCI, text):
        raise Failure(f"a second program on the NIC ends with status {status}: {text}")
    status, text = lab.guest.run(f"uroce unbind {SHORT}")
    if status != 1 or "uses " + PCI not in text:
        raise Failure(f"'uroce unbind' under a program ends with status {status}: {text}")
    must_talk(lab, "before the program is killed")
    server.kill()
    server.close()
    client.close()
    after = free_huge_pages(lab)
    if after != before:
        raise Failure(f"{before} huge pages were free, and now {after}")
    ping(lab, lab.here, True, 10)


# --- giving it back ---

@row(essential=True, kills=True)
def is_given_back(lab):
    server, client = long_ping(lab, 3000)
    server.kill()
    server.close()
    client.close()
    had_route = "route 0.0.0.0 0" in lab.guest.must(f"cat /run/uroce/pci-{PCI}")
    text = lab.guest.must(f"uroce unbind {PCI}")
    if driver(lab) != MODELS[lab.guest.model][0] or huge_pages(lab):
        raise Failure(f"it has {driver(lab)} and {huge_pages(lab)} huge pages: {text}")
    if had_route and f"default via {GATEWAY}" not in lab.guest.must("ip route show default"):
        raise Failure(f"the default route is not there again: {text}")
    lab.guest.must(f"for i in 1 2 3 4 5 6 7 8 9 10; do ping -c 1 -W 1 {HOST4} && exit 0; done; exit 1", 20)
    if lab.guest.must("ls /run/uroce").strip():
        raise Failure("something is left in /run/uroce")
