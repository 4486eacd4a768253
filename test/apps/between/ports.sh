# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between with ports of DPDK at its ends.

# joined_ports [OPTIONS] -- END1 END2: until leave is called.
joined_ports() {
	: >"$TMP/between.err"
	ip netns exec "$BTM" timeout -k 5 90 "$UROCE" between "$@" </dev/null >"$TMP/between" 2>"$TMP/between.err" &
	between=$!
	servers+=("$between")
	on_exit "stop $between"
	until_says "$TMP/between.err" "are joined" || { cat "$TMP/between.err"; fail "they are not joined"; }
}

# host_memif SOCKET ADDRESS PROGRAM...: a host whose port is a memif.
host_memif() {
	local socket=$1 address=$2
	shift 2
	timeout -k 5 60 "$UROCE" run --vdev "net_memif0,role=client,socket=$socket,socket-abstract=no" --ip "$address/24" -- "$@" </dev/null
}

# Two hosts with a memif each: no interface of the kernel has a part in it. A reply is lost, and the server answers again.
test_between_memif() {
	local i
	three_hosts || return 1
	joined_ports --json --rule 'drop 2to1 opcode=READ_RESP_ONLY nth=2' --rule 'delay 2to1 opcode=SEND_ONLY psn=+4 delay=1ms' -- \
		"dpdk:net_memif0,role=server,socket=$TMP/cable1.sock,socket-abstract=no" \
		"dpdk:net_memif1,role=server,socket=$TMP/cable2.sock,socket-abstract=no" || return 1
	host_memif "$TMP/cable1.sock" 10.88.0.1 rping -s -C 10 >"$TMP/server" 2>&1 &
	servers+=($!)
	for i in $(seq 20); do
		[ "$i" -lt 20 ] || { cat "$TMP/server"; fail "rping"; return; }
		sleep 0.2
		! host_memif "$TMP/cable2.sock" 10.88.0.2 rping -c -v -C 10 -a 10.88.0.1 >"$TMP/out" 2>&1 || break
	done
	kill -INT "$(pgrep -P "$between" -x uroce)" && wait "$between" || { cat "$TMP/between.err"; fail "its status"; return; }
	reports '[e["interface"] for e in r["ends"]] == ["net_memif0", "net_memif1"]' &&
		reports 'r["rules"][1]["hits"] > 0 and r["done"]["delayed"] == r["rules"][1]["hits"]' &&
		reports 'r["done"]["dropped"] == r["rules"][0]["hits"] == 1 and events[0]["opcode"] == "RC_READ_RESP_ONLY" and events[0]["again_ns"] > 0'
}

# An interface of the kernel at one end, and a port of DPDK at the other: what one host's kernel has merged, and left without checksums, leaves in
# frames that are whole. The other host has to send such frames, because that port cannot tell what is missing in one.
test_between_finishes() {
	local i
	command -v ethtool >/dev/null || return "$SKIPPED"
	three_hosts || return 1
	in_ns "$BT2" ethtool -K eth0 tx off tso off gso off >/dev/null || return 1
	joined_ports --json -- e1 dpdk:net_af_packet0,iface=e2 || return 1
	timeout 60 python3 - "$BT1" "$BT2" <<-'PYTHON' || { fail "TCP"; return; }
		import ctypes, os, socket, sys, threading
		def enter(ns):
		    fd = os.open("/run/netns/" + ns, os.O_RDONLY)
		    assert ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) == 0
		data = os.urandom(4 << 20)
		enter(sys.argv[2])
		s = socket.create_server(("10.78.0.2", 7777))
		def serve():
		    c, _ = s.accept()
		    global got
		    got = b""
		    while d := c.recv(65536): got += d
		    c.sendall(got[:1 << 20])
		t = threading.Thread(target=serve)
		t.start()
		enter(sys.argv[1])
		c = socket.create_connection(("10.78.0.2", 7777), timeout=20)
		c.sendall(data)
		c.shutdown(socket.SHUT_WR)
		back = b""
		while d := c.recv(65536): back += d
		t.join()
		assert got == data and back == data[:1 << 20]
	PYTHON
	in_ns "$BT2" ethtool -K eth0 tx on tso on gso on >/dev/null
	kill -INT "$(pgrep -P "$between" -x uroce)" && wait "$between" || { cat "$TMP/between.err"; fail "its status"; return; }
	# most frames of 4 MiB came in merged
	reports 'r["ends"][0]["frames"] < 2000 and r["ends"][0]["bytes"] > 4e6 and r["ends"][1]["unsent"] == 0'
}

test_between_ports_refusals() {
	local args says
	three_hosts || return 1
	while IFS='|' read -r args says; do
		# shellcheck disable=SC2086
		in_ns "$BTM" timeout 20 "$UROCE" between $args >"$TMP/out" 2>&1 && { fail "'$args' is taken"; return; }
		grep -q -- "$says" "$TMP/out" || { cat "$TMP/out"; fail "'$args' does not say '$says'"; return; }
	done <<-'TABLE'
		e1 dpdk:net_none0|cannot join net_none0: DPDK has no driver
		e1 dpdk:|'dpdk:' names nothing
		e1 dpdk:net_memif0,role=nobody|cannot join net_memif0: DPDK cannot open
		dpdk:ffff:ff:1f.7 e1|cannot join ffff:ff:1f.7
	TABLE
}
