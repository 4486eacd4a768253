# SPDX-License-Identifier: BSD-3-Clause
"""
The table of what runs between uroce and the kernel's rdma_rxe. A row is one line: its name, the command of the server, that of the client, and what
must hold when both have ended. {server}, {server6}, {client} and {client6} are addresses, {server_gid} and {client_gid} the indices of the IPv4 GIDs, {n} is the
row's number of iterations.

`both` makes two rows of a line, one with uroce as the client and one with uroce as the server; under faults each comes once more, with fewer iterations.
"""

import time
from dataclasses import dataclass, replace

from guest import GROUP
from host import Failure, wait_until

GUEST, UROCE = "guest", "uroce"

# Counters of rdma_rxe that any traffic moves. doc/interop.md explains all of them. Each side asks again when the other is held up for long enough, which
# emulated guests and busy hosts are: duplicates and retries alone are no sign of a loss.
TRAFFIC = frozenset({"sent_pkts", "rcvd_pkts", "rdma_sends", "rdma_recvs", "ack_deferred", "duplicate_request", "completer_retry_err"})
# Those that move besides when packets are lost on the way.
LOSS = TRAFFIC | {"out_of_seq_request", "rcvd_seq_err"}


@dataclass(frozen=True)
class Row:
    name: str
    server: str  # command; empty for none
    client: str
    uroce: str = "client"  # which of the two runs under uroce: "client" or "server"
    n: int = 30
    n_faults: int = 30
    mtu: int = 1500  # of the interface
    path_mtu: int = 0  # payload bytes that every MIDDLE packet must carry; 0 to leave unchecked
    wait: str = "cm"  # how to tell that the server listens: cm, tcp, or group for one that has joined GROUP
    limit: int = 60  # seconds for the client
    server_limit: int = 20  # seconds that the server may take longer
    client_ends: object = 0  # exit status: a number, "bad" for any but 0, "any"
    server_ends: object = 0  # as above ("any": it need not even end), or "stopped" for one that must go on until it is stopped
    client_says: str = ""  # regular expressions that must occur in the output
    server_says: str = ""
    during: object = None  # called with the Run while the programs talk
    counters: frozenset = TRAFFIC  # of rdma_rxe, which may move
    must_move: frozenset = frozenset()  # of rdma_rxe, which must
    uroce_counters: str = ""  # regular expression for error counters of uroce that may be raised
    uroce_counts: str = ""  # a counter of uroce that must be raised
    repairs: bool = False  # something must have been lost, and one of the two must have sent it again
    fault_percent: int = 1  # of the row's faulty twin: more where few packets pass
    faults: bool = False  # uroce drops, duplicates, reorders and corrupts that share of the packets in both directions
    essential: bool = False  # part of tools/check
    record: str = ""  # name of the capture in pcaps/ that this row makes when asked to


def both(name, server, client, only="", essential=False, record="", **how):
    row = Row(name, server, client, **how)
    rows = []
    for side in [only] if only else ["client", "server"]:
        one = replace(row, name=f"{name}, uroce is the {side}", uroce=side, essential=essential in (True, "with faults", side),
                      record=record and f"uroce-{record}-{side}")
        rows += [one, under_faults(one, essential == "with faults")]
    return rows


def under_faults(row, essential=False):
    # A process of uroce that has ended repeats nothing: when the last message of a disconnect is lost, its peer's CM gives up after 16 DREQs, 65 s.
    return replace(row, name=f"{row.name}, {row.fault_percent} % faults", n=min(row.n, row.n_faults), limit=row.limit * 4, server_limit=100, faults=True, essential=essential,
                   counters=row.counters | LOSS, uroce_counters=".", path_mtu=0, record="")


# --- what happens in the middle of a row ---

def talk(run):
    """Returns when a hundred packets have come to the guest."""
    def arrived():
        return run.guest.counters()["rcvd_pkts"]
    first = arrived()
    wait_until(lambda: arrived() >= first + 100, 60, "the programs do not talk")


def must_still_talk(run):
    if run.client.wait(0) is not None:
        raise Failure("the client has ended too early for what was to happen meanwhile")


def kill_client(run):
    talk(run)
    run.client.kill()


def kill_server(run):
    talk(run)
    run.server.kill()


def restart_server(run):
    """The server dies; another one takes its place and serves another client, whatever the first client goes on sending."""
    kill_server(run)
    run.server.close()
    wait_until(lambda: not run.server.listening("cm"), 10, "a server that was killed still listens")
    run.server = run.start("server")
    if not run.server.wait_listening("cm"):
        raise Failure("the second server does not listen")
    run.another_client("rping -c -a {server} -V -C 10")
    run.client.kill()


def next_client(run):
    """The client dies; the server goes on to serve another one."""
    kill_client(run)
    run.another_client("rping -c -a {server} -V -C 10")


def pull_cable(run):
    talk(run)
    run.guest.link(False)
    try:
        time.sleep(1)
        must_still_talk(run)
    finally:
        run.guest.link(True)


def interface_down(run):
    """The interface that uroce shares with the kernel goes down and up again."""
    talk(run)
    run.lab.interface("down")
    try:
        time.sleep(1)
        must_still_talk(run)
    finally:
        run.lab.interface("up")


def freeze_guest(run):
    talk(run)
    run.guest.monitor("stop")
    try:
        run.client.wait(60)
    finally:
        run.guest.monitor("cont")


def copied(run):
    """What rcopy has sent is what has arrived. Both files lie where each side has memory of its own."""
    if run.client.wait(run.row.limit) != 0:
        return
    sent, got = (run.beside(side, "sha256sum <" + COPY.format(side)) for side in ("client", "server"))
    if not sent or sent != got:
        raise Failure(f"the copy differs: '{sent.strip()}' was sent, '{got.strip()}' has arrived")


def stream(program, name, options, **how):
    """rsockets destroy their QP as soon as they have said goodbye, so that an answer may come late."""
    return both(f"{program}, {name}", f"{program} {options} -I {{n}}", f"{program} -s {{server}} {options} -I {{n}}", uroce_counters="drop_qp(n|_state)",
                **how)


def rping(name, options="", size=64, **how):
    o = f"-V -S {size} -C {{n}} {options}"
    return both(name, f"rping -s {o}", f"rping -c -a {{server}} {o}", **how)


def unrepeated(name, server, client, essential="", **how):
    """As `both`, without rows with faults: for services that repeat nothing."""
    return [Row(f"{name}, uroce is the {side}", server, client, side, essential=essential == side, **how) for side in ("client", "server")]


def over_tcp(name, program, gid, options, **how):
    """Programs that exchange addresses over TCP."""
    server, client = (f"{program} {gid} {{{side}_gid}} {options} -n {{n}}" for side in ("server", "client"))
    return unrepeated(name, server, f"{client} {{server}}", wait="tcp", **how)


COPY = "/dev/shm/rcopy-{}"  # of one side
LONG = 1000000  # iterations that are never reached
BROKEN = LOSS | {"retry_exceeded_err", "send_err"}  # when a peer has gone

ROWS = [
    # connections, sizes, path MTU
    *rping("rping", "-v", essential="with faults", record="rping"),
    *both("rping over IPv6", "rping -s -a {server6} -V -C {n}", "rping -c -a {server6} -V -C {n}", essential=True, record="rping6"),
    *rping("rping, QPs made by the program", "-q"),
    *[r for size in (23, 63, 1000, 1023, 1024, 1025, 4096, 4097) for r in rping(f"rping of {size} B", size=size, n=100)],
    *rping("rping of 65535 B", size=65535, n=100, n_faults=20, path_mtu=1024, essential=True),
    *rping("a thousand rpings", n=1000, n_faults=100),
    *rping("a thousand rpings of 65535 B", size=65535, n=1000, n_faults=40, limit=240, path_mtu=1024),
    *rping("rping of 65535 B at path MTU 4096", size=65535, n=20, mtu=9000, path_mtu=4096, essential=True),
    *rping("rping of 9000 B at path MTU 4096", size=9000, mtu=9000, record="mtu4096"),
    *[r for size in (23, 4095, 4097, 20000) for r in rping(f"rping of {size} B at path MTU 4096", size=size, n=100, mtu=9000)],
    *both("ucmatose of 16 B", "ucmatose -S 16 -C {n}", "ucmatose -s {server} -S 16 -C {n}", n=100, essential=True),
    *both("four connections at once", "ucmatose -c 4 -C {n}", "ucmatose -s {server} -c 4 -C {n}", record="ucmatose"),
    *both("ucmatose over IPv6", "ucmatose -b {server6} -f ipv6 -C {n}", "ucmatose -f ipv6 -b {client6} -s {server6} -C {n}"),
    *both("ucmatose, options", "ucmatose -b {server} -p 7555 -f ip -P tcp -c 3 -m -C {n}",
          "ucmatose -s {server} -b {client} -p 7555 -f ip -P tcp -c 3 -m -t 72 -a 18 -C {n}", client_says="migrating", server_says="migrating"),
    *both("ucmatose of 100000 B", "ucmatose -S 100000 -C {n}", "ucmatose -s {server} -S 100000 -C {n}", n_faults=3),
    *both("ucmatose without messages", "ucmatose -c 20 -C 0", "ucmatose -s {server} -c 20 -C 0"),
    *both("rdma_client", "rdma_server", "rdma_client -s {server}", record="rdma_client", fault_percent=10),
    *both("rdma_client over IPv6, port", "rdma_server -s {server6} -p 7700", "rdma_client -s {server6} -p 7700", fault_percent=10),
    *both("ten connections, cmtime", "cmtime -c {n}", "cmtime -s {server} -c {n}", server_ends="stopped"),
    *both("two hundred connections, cmtime", "cmtime -c {n} -p 7600", "cmtime -b {client} -s {server} -c {n} -p 7600", n=200, server_ends="stopped"),
    *both("persistent server, three clients", "rping -s -P -V", "for i in 1 2 3; do rping -c -a {server} -V -C {n} || exit 1; done",
          server_ends="stopped", essential=True),

    # datagrams: SIDR, and multicast with one who sends and one who listens. A sender that is a full member hears itself, and mckey posts no receives then.
    *unrepeated("udaddy", "udaddy -C {n}", "udaddy -s {server} -C {n}", n=100, essential="server"),
    *unrepeated("udaddy, options", "udaddy -b {server} -c 5 -S 1000 -C {n}", "udaddy -s {server} -b {client} -c 5 -S 1000 -t 72 -C {n}"),
    *unrepeated("udaddy over IPv6", "udaddy -b {server6} -C {n}", "udaddy -s {server6} -C {n}"),
    *unrepeated("private data of datagrams", "private_data -u server {server}", "private_data -u client {server}",
                client_says="refused with status 2 and 136 bytes as sent(.|\n)*accepted"),
    *unrepeated("mckey", f"mckey -m {GROUP} -b {{server}} -C {{n}}", f"mckey -m {GROUP} -b {{client}} -s -C {{n}}", n=100, wait="group",
                uroce_counters="drop_no_receive", essential="client"),
    *unrepeated("mckey, the sender is no receiver", f"mckey -m {GROUP} -b {{server}} -C {{n}}", f"mckey -m {GROUP} -b {{client}} -s -o -C {{n}}", n=100,
                wait="group"),
    *unrepeated("mckey, three QPs, 1000 B", f"mckey -m {GROUP} -b {{server}} -c 3 -S 1000 -C {{n}}", f"mckey -m {GROUP} -b {{client}} -s -S 1000 -C {{n}}",
                wait="group", uroce_counters="drop_no_receive"),

    # private data: 56 bytes ask, 148 refuse, 196 accept
    *both("private data", "private_data server {server}", "private_data client {server}", client_says="refused with status 28 and 148 bytes as sent",
          fault_percent=10),
    *both("private data over IPv6", "private_data server {server6}", "private_data client {server6}", fault_percent=10),

    # rsockets: the code of librdmacm on both sides
    *stream("rstream", "64 B", "-S 64 -C 1", n=200, n_faults=100),
    *stream("rstream", "5000 B, blocking", "-T b -T v -S 5000 -C 50"),
    # The client takes the end of the connection for an error when it comes together with the last message.
    *stream("rstream", "100000 B, asynchronous", "-T a -T v -S 100000 -C 4", n_faults=2, client_ends="any", server_says="custom +97k"),
    *stream("rstream", "addresses by the RDMA CM", "-T r -S 1000 -C 10"),
    *both("rstream over IPv6", "rstream -f ipv6 -b {server6} -S 1000 -C 10 -I {n}", "rstream -f ipv6 -s {server6} -S 1000 -C 10 -I {n}",
          uroce_counters="drop_qp(n|_state)"),
    *stream("riostream", "5000 B", "-T v -S 5000 -C 10"),
    *stream("riostream", "64 B, blocking", "-T b -S 64 -C 1", n=200, n_faults=100),
    *both("rcopy of 4 MB", "rcopy", f"seq {{n}} >{COPY.format('client')}; rcopy {COPY.format('client')} {{server}}:{COPY.format('server')}", n=600000,
          n_faults=60000, server_ends="stopped", during=copied, uroce_counters="drop_qp(n|_state)", essential="server"),

    # unreliable services
    *over_tcp("ibv_uc_pingpong", "ibv_uc_pingpong", "-g", "", n=200),
    *over_tcp("ibv_ud_pingpong of 1000 B", "ibv_ud_pingpong", "-g", "-s 1000", n=200),
    *over_tcp("ibv_rc_pingpong", "ibv_rc_pingpong", "-g", "", n=200),
    *over_tcp("ibv_srq_pingpong", "ibv_srq_pingpong", "-g", "-q 4", n=200),
    *over_tcp("SENDs of 4097 B", "ib_send_bw", "-F -x", "-s 4097 -t 16", n=200),
    *over_tcp("WRITEs of 65536 B", "ib_write_bw", "-F -x", "-s 65536 -t 16", n=200),
    *over_tcp("READs of 65536 B", "ib_read_bw", "-F -x", "-s 65536 -t 2", n=200),
    *over_tcp("CMP_SWAP", "ib_atomic_bw", "-F -x", "-A CMP_AND_SWAP", n=200),
    *over_tcp("FETCH_ADD", "ib_atomic_bw", "-F -x", "-A FETCH_AND_ADD", n=200),
    *over_tcp("UC SENDs of 4096 B", "ib_send_bw", "-F -x", "-c UC -s 4096 -t 8", n=200),
    *over_tcp("UC WRITEs of 4096 B", "ib_write_bw", "-F -x", "-c UC -s 4096 -t 8", n=200),
    *over_tcp("UD SENDs of 1024 B", "ib_send_bw", "-F -x", "-c UD -s 1024 -t 8", n=200),
    *over_tcp("UD round trips of 64 B", "ib_send_lat", "-F -x", "-c UD -s 64", n=200),

    # refusals: REJ 8, invalid service ID
    *both("nobody listens", "rping -s -P -p 7999", "rping -c -a {server} -C 1", client_ends="bad", server_ends="stopped", fault_percent=10,
          client_says="RDMA_CM_EVENT_REJECTED, error 8", essential=True, record="reject"),
    *both("nobody listens, a synchronous id", "rping -s -P -p 7999", "rdma_client -s {server}", client_ends="bad", server_ends="stopped",
          fault_percent=10, client_says="rdma_connect: Connection refused"),

    # who ends the connection: rping's client, ucmatose's server
    *rping("the client disconnects", server_says="DISCONNECT EVENT", options="-v"),
    *both("the server disconnects", "ucmatose -C 1", "ucmatose -s {server} -C 1", server_says="disconnecting", fault_percent=10),

    # peers that vanish. The kernel says goodbye for a process that is killed, or refuses what still arrives; nobody does for a process of uroce.
    *both("the server is killed", "rping -s -P", f"rping -c -a {{server}} -C {LONG}", only="client", client_ends="any", server_ends="any",
          client_says="DISCONNECT EVENT|completion failed", during=kill_server, counters=BROKEN, uroce_counters=".", essential=True),
    *both("a second server after the first was killed", "rping -s -P", f"rping -c -a {{server}} -C {LONG}", client_ends="any", server_ends="stopped",
          during=restart_server, counters=BROKEN, uroce_counters="."),
    *both("another client after the first was killed", "rping -s -P", f"rping -c -a {{server}} -C {LONG}", client_ends="any",
          server_ends="stopped", during=next_client, counters=BROKEN, uroce_counters="."),
    *both("the guest freezes", "ib_write_bw -F -D 90", "ib_write_bw -F -D 90 {server}", only="client", wait="tcp", client_ends="bad",
          server_ends="any", uroce_counts="req_transport_retries_exceeded", during=freeze_guest, counters=BROKEN, uroce_counters="."),
    *rping("the cable is pulled and put back", n=6000, n_faults=100, size=4096, during=pull_cable, counters=LOSS, must_move=frozenset({"link_downed"}),
           uroce_counters=".", repairs=True, limit=120, essential="client"),
    *rping("the interface goes down and up", n=6000, n_faults=100, size=4096, during=interface_down, counters=LOSS, uroce_counters=".",
           repairs=True, limit=120),
]
