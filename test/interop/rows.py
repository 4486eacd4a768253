# SPDX-License-Identifier: BSD-3-Clause
"""
The table of what runs between uroce and the kernel's rdma_rxe. A row is one line: its name, the command of the server, that of the client, and what
must hold when both have ended. {server}, {server6}, {client} and {client6} are addresses, {server_gid} and {client_gid} the indices of the IPv4 GIDs, {n} is the
row's number of iterations.

`both` makes two rows of a line, one with uroce as the client and one with uroce as the server; under faults each comes once more, with fewer iterations.
"""

import json
import subprocess
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
# What moves when a receiver is not ready, which one that is held up for a moment may be too, as with the SRQs of perftest, which are small: what follows the message that is refused is out of sequence.
RNR = {"counters": LOSS | {"send_rnr_err", "rcvd_rnr_err"}, "uroce_counters": "rnr_nak_retry_err|out_of_(buffer|sequence)|packet_seq_err"}


@dataclass(frozen=True)
class Row:
    name: str
    server: str  # command; empty for none
    client: str
    uroce: str = "client"  # which of the two runs under uroce: "client" or "server"
    n: int = 30
    n_faults: int = 30
    mtu: int = 1500  # of the interface
    path_mtu: tuple = ()  # payload bytes that MIDDLE packets carry, those and no others; empty to leave unchecked
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
    ours: str = ""  # options for uroce's side alone
    repairs: bool = False  # something must have been lost, and one of the two must have sent it again
    fault_percent: int = 1  # of the row's faulty twin: more where few packets pass
    sure_fault: str = ""  # of it, too: a rule for a fault that happens in any case, where so few pass that chance may do nothing
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
                   counters=row.counters | LOSS, uroce_counters=".", path_mtu=(), record="")


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


def stop_for_a_while(run, process):
    """Not for longer than a peer tries again: eight times, 67 ms apart."""
    talk(run)
    process.signal("STOP")
    try:
        time.sleep(0.3)
    finally:
        process.signal("CONT")
    must_still_talk(run)


def stop_server(run):
    stop_for_a_while(run, run.server)


def stop_until_refused(run):
    """The server's program stops until its receives are used up: how soon that is depends on the speed of the machine."""
    def refused():
        return run.guest.counters().get("send_rnr_err", 0)
    talk(run)
    first = refused()
    run.server.signal("STOP")
    try:
        wait_until(lambda: refused() > first, 4, "the guest refuses nothing, though nobody takes what it has received")
    finally:
        run.server.signal("CONT")
    must_still_talk(run)


def stop_client(run):
    stop_for_a_while(run, run.client)


def kill_client(run):
    talk(run)
    run.client.kill()


def kill_server(run):
    talk(run)
    run.server.kill()


def restart_server(run):
    """The server dies; another one takes its place and serves another client, whatever the first client goes on sending."""
    kill_server(run)
    run.uncounted = run.row.uroce == "server"
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


def ask_doctor(run):
    """What 'uroce doctor' says of rdma_rxe, beside a program of ours. A guest that is slow to answer looks like loss: of that it is not asked."""
    out = subprocess.run([run.lab.uroce, "doctor", "--dev", "eth0", "--json", run.words["server"]], capture_output=True, text=True, timeout=90).stdout
    found = {f["name"] for f in json.loads(out)["findings"]}
    if not {"ping-ok", "peer-mtu-ok", "cm-ok", "gids-ok"} <= found:
        raise Failure(f"uroce doctor finds {sorted(found)}")


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
    """As `both`, without rows with faults: for services that repeat nothing, and where others have shown enough."""
    return [Row(f"{name}, uroce is the {side}", server, client, side, essential=essential == side, **how) for side in ("client", "server")]


def over_tcp(name, program, options, faults=False, gid="-F {patience} -x", **how):
    """
    Programs that exchange addresses over TCP, on both sides once with each of the options. The client waits for the next server, and each process has a
    file of counters of its own.
    """
    def all_of_it(side):
        return f"UROCE_COUNTERS=$c.$k {program} {gid} {{{side}_gid}} $o {{{side}_only}}"
    loop = "c=$UROCE_COUNTERS; k=0; for o in " + " ".join(f"'{o}'" for o in options) + "; do k=$((k+1));"
    server = f"{loop} {all_of_it('server')} || exit 1; done"
    client = f"{loop} for i in $(seq 50); do said=$({all_of_it('client')} {{server}} 2>&1); end=$?; echo \"with $o: $said\"; " \
             "case $said in *Couldn?t?connect*) sleep 0.1;; *) break;; esac; done; [ $end = 0 ] || exit $end; done"
    return (both if faults else unrepeated)(name, server, client, wait="tcp", **how)


def not_ready(name, server, client, only="", **how):
    """Rows in which messages come to a server that has no receive for them."""
    sides = (("client", "rnr_nak_retry_err", "send_rnr_err"), ("server", "out_of_buffer", "rcvd_rnr_err"))
    return [r for side, ours, theirs in sides if only in ("", side)
            for r in both(name, server, client, only=side, uroce_counts=ours, must_move=frozenset({theirs}), **how, **RNR)]


def by_cm(name, program, options, faults=False, **how):
    """perftest with -R, whose client must not be faster than the guest."""
    return (both if faults else unrepeated)(name, f"{program} -R -F {options}", f"{{late}} exec {program} -R -F {options} {{server}}", **how)


SIZES = (1, 3, 33, 4095, 4097, 1048577)
MTUS = (256, 512, 1024, 2048, 4096)
MULTICAST = "ib_send_bw -F -c UD -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:7:7:7 -s 33 -n 50 -t 8 -x"  # to GROUP


def sized(sizes=SIZES):
    return [f"-s {size} -n {20 if size < 65536 else 5}" for size in sizes]


COPY = "/dev/shm/rcopy-{}"  # of one side
LONG = 1000000  # iterations that are never reached
BROKEN = LOSS | {"retry_exceeded_err", "send_err"}  # when a peer has gone

ROWS = [
    # connections, sizes, path MTU
    *rping("rping", "-v", essential="with faults", record="rping"),
    *both("rping over IPv6", "rping -s -a {server6} -V -C {n}", "rping -c -a {server6} -V -C {n}", essential=True, record="rping6"),
    Row("rping, and uroce doctor asks its server", "rping -s -V -C {n}", "rping -c -a {server} -V -C {n}", essential=True, during=ask_doctor),
    *rping("rping, QPs made by the program", "-q"),
    *[r for size in (23, 63, 1000, 1023, 1024, 1025, 4096, 4097) for r in rping(f"rping of {size} B", size=size, n=100)],
    *rping("rping of 65535 B", size=65535, n=100, n_faults=20, path_mtu=(1024,), essential=True),
    *rping("a thousand rpings", n=1000, n_faults=100),
    *rping("a thousand rpings of 65535 B", size=65535, n=1000, n_faults=40, limit=240, path_mtu=(1024,)),
    *rping("rping of 65535 B at path MTU 4096", size=65535, n=20, mtu=9000, path_mtu=(4096,), essential=True),
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
    *both("persistent server, three clients", "rping -s -P -V", "for i in 1 2 3; do UROCE_COUNTERS=$UROCE_COUNTERS.$i rping -c -a {server} -V -C {n} || exit 1; done",
          server_ends="stopped", essential=True),

    # datagrams: SIDR, and multicast with one who sends and one who listens. A sender that is a full member hears itself, and mckey posts no receives then.
    *unrepeated("udaddy", "udaddy -C {n}", "udaddy -s {server} -C {n}", n=100, essential="server"),
    *unrepeated("udaddy, options", "udaddy -b {server} -c 5 -S 1000 -C {n}", "udaddy -s {server} -b {client} -c 5 -S 1000 -t 72 -C {n}"),
    *unrepeated("udaddy over IPv6", "udaddy -b {server6} -C {n}", "udaddy -s {server6} -C {n}"),
    *unrepeated("private data of datagrams", "private_data -u server {server}", "private_data -u client {server}",
                client_says="refused with status 2 and 136 bytes as sent(.|\n)*accepted"),
    # 60 messages: the sender posts all of them and ends without waiting for completions, and rdma_rxe holds back all but 64 until the interface has sent some.
    *unrepeated("mckey", f"mckey -m {GROUP} -b {{server}} -C {{n}}", f"mckey -m {GROUP} -b {{client}} -s -C {{n}}", n=60, wait="group",
                uroce_counters="drop_no_receive", essential="client"),
    *unrepeated("mckey, the sender is no receiver", f"mckey -m {GROUP} -b {{server}} -C {{n}}", f"mckey -m {GROUP} -b {{client}} -s -o -C {{n}}", n=60,
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

    # the pingpongs, which compare what they get (-c), and say no goodbye
    *over_tcp("ibv_rc_pingpong, sizes", "ibv_rc_pingpong -c", sized(), gid="-g"),
    *over_tcp("ibv_rc_pingpong, every path MTU", "ibv_rc_pingpong -c -s 9001 -n 20", [f"-m {m}" for m in MTUS], gid="-g", mtu=9000, path_mtu=MTUS),
    *over_tcp("ibv_rc_pingpong, events, new post-send, few receives", "ibv_rc_pingpong -c -n 50", ["-e", "-N", "-e -N -s 4097", "-r 2 -s 33"], gid="-g"),
    *over_tcp("ibv_rc_pingpong, on-demand paging and timestamps at uroce", "ibv_rc_pingpong -n 50", ["-s 4097"], gid="-g", ours="-o -t"),
    *over_tcp("ibv_rc_pingpong, device memory at uroce", "ibv_rc_pingpong -c -n 50", ["-s 4096 -e"], gid="-g", ours="-j"),
    # It ends after so many exchanges in all, whatever is on its way then for its other QPs.
    *over_tcp("ibv_srq_pingpong", "ibv_srq_pingpong -c", ["-q 4 -n 50", "-q 16 -n 10 -e", "-q 2 -s 33 -n 20 -r 8", "-q 1 -s 1048577 -n 5"], gid="-g",
              uroce_counters="drop_qp(n|_state)$"),
    *over_tcp("ibv_uc_pingpong, sizes", "ibv_uc_pingpong -c", [*sized(SIZES[:-1]), "-s 65537 -n 5", "-e -n 20"], gid="-g"),
    *over_tcp("ibv_uc_pingpong, every path MTU", "ibv_uc_pingpong -c -s 9001 -n 20", [f"-m {m}" for m in MTUS], gid="-g", mtu=9000, path_mtu=MTUS),
    *over_tcp("ibv_ud_pingpong, sizes", "ibv_ud_pingpong -c", [*sized((1, 3, 33, 1024)), "-e -s 33 -n 20"], gid="-g"),
    *over_tcp("ibv_ud_pingpong at path MTU 4096", "ibv_ud_pingpong -c", sized((4095, 4096)), gid="-g", mtu=9000),

    # perftest, which exchanges addresses over TCP. With several QPs it waits for ever unless -n is a multiple of the sends that share a completion (-t at most).
    *over_tcp("SENDs, sizes", "ib_send_bw -t 16", sized(), faults=True),
    *over_tcp("SENDs, forms", "ib_send_bw -t 16 -n 48", ["-s 33 -I 64", "-s 4097 -e", "-s 4095 --use-srq -q 4", "-s 4097 --use_old_post_send", "-s 3 -b -l 4"],
              **RNR),
    *over_tcp("SEND round trips", "ib_send_lat -n 50", ["-s 1 -I 64", "-s 33 -e", "-s 4097 --use_old_post_send", "-s 33 -I 64 --use-srq"]),
    *over_tcp("WRITEs, sizes", "ib_write_bw -t 16", sized(), faults=True),
    *over_tcp("WRITEs, forms", "ib_write_bw -t 16 -n 48", ["-s 33 -I 64", "-s 4095 -q 4 -b -t 8", "-s 4097 --use_old_post_send", "-s 65536 -m 512"]),
    *over_tcp("WRITE round trips", "ib_write_lat -n 50", ["-s 1 -I 64", "-s 33", "-s 4097 --use_old_post_send"]),
    *over_tcp("READs, sizes", "ib_read_bw -t 16 -o 16", sized(), faults=True),
    *over_tcp("READs, forms", "ib_read_bw -t 16 -n 50", ["-s 4097 -o 1 -e", "-s 4095 -o 16 -b", "-s 65536 -o 16 -m 256", "-s 33 --use_old_post_send"]),
    *over_tcp("READ round trips", "ib_read_lat -n 50", ["-s 1", "-s 4097 -e"]),
    *over_tcp("atomics", "ib_atomic_bw -n 100", ["-A CMP_AND_SWAP -o 16", "-A FETCH_AND_ADD -o 16 -e", "-A FETCH_AND_ADD -b --use_old_post_send"], faults=True),
    *over_tcp("atomic round trips", "ib_atomic_lat -n 50", ["-A CMP_AND_SWAP", "-A FETCH_AND_ADD -e"]),
    *over_tcp("UC SENDs", "ib_send_bw -c UC -t 8", ["-s 33 -n 50 -I 64", "-s 4097 -n 20 -e", "-s 65537 -n 5 -t 1"]),
    *over_tcp("UC WRITEs, sizes", "ib_write_bw -c UC -t 8", ["-s 1 -n 50 -I 64", "-s 3 -n 20 --use_old_post_send", *sized(SIZES[2:-1]), "-s 65537 -n 5 -t 1"]),
    *over_tcp("UD SENDs", "ib_send_bw -c UD -t 8", ["-s 1 -n 50 -I 64", "-s 1000 -n 50 -e", "-s 1000 -n 24 -q 4"]),
    *over_tcp("UD round trips", "ib_send_lat -c UD -n 50", ["-s 3 -I 64", "-s 1024 -e"]),
    # ibv_attach_mcast of rdma_rxe does not make the guest's IP a member of the group, so mckey does
    Row("multicast, ib_send_bw, uroce is the client", f"mckey -m {GROUP} -b {{server}} -C 1000 >/dev/null & sleep 1; {MULTICAST} {{server_gid}}; end=$?; kill $!; exit $end",
        f"{MULTICAST} {{client_gid}} {{server}}", "client", wait="tcp"),
    Row("multicast, ib_send_bw, uroce is the server", f"{MULTICAST} {{server_gid}}", f"{MULTICAST} {{client_gid}} {{server}}", "server", wait="tcp"),

    # receivers that are not ready: one receive for sixteen senders, and a program that stops (uroce stops with its program, and answers nothing)
    *not_ready("SENDs to one receive", "ib_send_bw -F -x {server_gid} -r 1 -t 16 -s 4097 -n 100", "ib_send_bw -F -x {client_gid} -t 16 -s 4097 -n 100 {server}",
               wait="tcp"),
    *not_ready("SENDs to a program that stops", "ib_send_bw -F -x {server_gid} -s 64 -D 6", "ib_send_bw -F -x {client_gid} -s 64 -D 6 {server}", only="client",
               wait="tcp", during=stop_until_refused),
    *both("uroce stops for 0.3 s, WRITEs", "ib_write_bw -F -x {server_gid} -s 4097 -D 6", "ib_write_bw -F -x {client_gid} -s 4097 -D 6 {server}", only="server",
          wait="tcp", during=stop_server, counters=LOSS, uroce_counters=".", repairs=True),
    *both("uroce stops for 0.3 s, READs", "ib_read_bw -F -x {server_gid} -s 4097 -D 6", "ib_read_bw -F -x {client_gid} -s 4097 -D 6 {server}", only="client",
          wait="tcp", during=stop_client, counters=LOSS, uroce_counters="."),

    # perftest, connected by the RDMA CM
    *by_cm("SENDs by the RDMA CM", "ib_send_bw", "-s 4097 -n 100 -t 16", faults=True),
    *by_cm("SENDs to an SRQ by the RDMA CM", "ib_send_bw", "-s 33 -n 96 -t 16 --use-srq -q 2 -e", **RNR),
    *by_cm("SEND round trips by the RDMA CM", "ib_send_lat", "-s 33 -I 64 -n 50"),
    *by_cm("WRITEs by the RDMA CM", "ib_write_bw", "-s 1048577 -n 5"),
    *by_cm("READs by the RDMA CM", "ib_read_bw", "-s 4095 -n 50 -o 16", faults=True),
    *by_cm("atomics by the RDMA CM", "ib_atomic_bw", "-n 50 -o 16"),
    *by_cm("UD SENDs by the RDMA CM", "ib_send_bw -c UD", "-s 33 -n 50 -t 8"),

    # what packaged programs leave out: immediate data, every byte compared, endpoints of other kinds, memory windows
    *unrepeated("every operation, compared", "operations server rc {server}", "operations client rc {server}", client_says="49 operations"),
    # rxe's own timer, which ends most of its READs of 1 MiB then, is 2.1 s
    *[under_faults(r) for r in unrepeated("every operation up to 65537 B, compared", "operations server short {server}", "operations client short {server}",
                                          client_says="42 operations")],
    *not_ready("every operation, a slow receiver", "operations server short {server} slow", "operations client short {server}", client_says="42 operations"),
    *unrepeated("every operation of UC, compared", "operations server uc {server}", "operations client uc {server}", client_says="24 operations"),
    *unrepeated("UC endpoints", "endpoints server uc {server}", "endpoints client uc {server}", client_says="50 messages"),
    *both("endpoints with an SRQ", "endpoints server srq {server}", "endpoints client srq {server}", client_says="100 messages"),
    # As a server the program wants EBUSY for deregistering memory under a window, for which rdma_rxe has EINVAL.
    Row("memory windows, uroce is the server", "windows", "windows {server}", "server", client_says="window of type 2(.|\n)*dead key",
        uroce_counters="resp_remote_access_errors"),

    # refusals: REJ 8, invalid service ID
    *both("nobody listens", "rping -s -P -p 7999", "rping -c -a {server} -C 1", client_ends="bad", server_ends="stopped", fault_percent=10,
          sure_fault="drop rx nth=1", client_says="RDMA_CM_EVENT_REJECTED, error 8", essential=True, record="reject"),
    *both("nobody listens, a synchronous id", "rping -s -P -p 7999", "rdma_client -s {server}", client_ends="bad", server_ends="stopped",
          fault_percent=10, sure_fault="drop rx nth=1", client_says="rdma_connect: Connection refused"),

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
           uroce_counters=".", repairs=True, limit=120),
    *rping("the interface goes down and up", n=6000, n_faults=100, size=4096, during=interface_down, counters=LOSS, uroce_counters=".",
           repairs=True, limit=120),
]
