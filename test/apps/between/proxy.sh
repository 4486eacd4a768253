# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between --proxy: two hosts that have no way to one another reach a third one, which passes their packets on. Programs run through it as user nobody,
# who has no capability, and the report says what was done.

# far_hosts: $PT1 (10.81.1.1, fd81:1::1) and $PT2 (10.81.2.1, fd81:2::1), whose only neighbour is $PTM (10.81.N.9, fd81:N::9). Once.
far_hosts() {
	local i ns
	[ -z "${PTM:-}" ] || return 0
	PT1=uroce-$$-p1
	PT2=uroce-$$-p2
	for ns in uroce-$$-pm "$PT1" "$PT2"; do
		on_exit "ip netns del $ns"
		ip netns add "$ns" || return 1
		in_ns "$ns" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
		ip -n "$ns" link set lo up
	done
	for i in 1 2; do
		ip link add name eth0 netns "uroce-$$-p$i" type veth peer name "e$i" netns "uroce-$$-pm" || return 1
		ip -n "uroce-$$-p$i" link set eth0 up
		ip -n "uroce-$$-pm" link set "e$i" up
		ip -n "uroce-$$-p$i" addr add "10.81.$i.1/24" dev eth0
		ip -n "uroce-$$-p$i" addr add "fd81:$i::1/64" dev eth0 nodad
		ip -n "uroce-$$-pm" addr add "10.81.$i.9/24" dev "e$i"
		ip -n "uroce-$$-pm" addr add "fd81:$i::9/64" dev "e$i" nodad
	done
	PTM=uroce-$$-pm
}

# proxy HOST1 HOST2 [OPTIONS]: until leave is called. The report goes to $TMP/between, what it says meanwhile to $TMP/between.err.
proxy() {
	far_hosts || return 1
	: >"$TMP/between.err"
	ip netns exec "$PTM" timeout -k 5 90 "${as[@]}" "$UROCE" between --proxy "$@" </dev/null >"$TMP/between" 2>"$TMP/between.err" &
	between=$!
	servers+=("$between")
	on_exit "stop $between"
	until_says "$TMP/between.err" "are joined"
}

# through "SERVER" "CLIENT": the server on the second host, which listens on port $listens; the client on the first one. perftest's server listens for its
# second connection about when its client asks for it; where the machine is too busy for that, it is tried again, a few times.
listens=7174
through() {
	local status
	# shellcheck disable=SC2086
	serve "$listens" "$PT2" "$TMP/server" -- $1 || return 1
	# shellcheck disable=SC2086
	uroce_in "$PT1" -- $2 >"$TMP/client" 2>&1
	status=$?
	if [[ $2 == *" -R "* ]] && [ "${again:-0}" -lt 5 ] && grep -q 'RDMA_CM_EVENT_REJECTED; error: 8' "$TMP/client"; then
		stop "$server"
		again=$((${again:-0} + 1)) through "$@"
		return
	fi
	[ $status -eq 0 ] || { cat "$TMP/client" "$TMP/server"; fail "client status $status: $2"; return; }
	served "$TMP/server"
}

# Nothing was lost or wrong, of many packets in either direction. (A busy host may repeat a request before it is answered; processes of one host number what
# they send to QP 1 alike.)
well_passed() {
	leave || return 1
	reports 'all(e["roce_packets"] > 3 and e["unsent"] == e["kernel_lost"] == 0 for e in r["ends"]) and r["proxy"]["malformed"] == r["proxy"]["damaged"] == 0' &&
		reports 'not events and all(f["repeats"] == f["needless"] or f["qpn"] == 1 for f in flows)'
}

test_proxy_rping() {
	proxy 10.81.1.1 10.81.2.1 --json || return 1
	through "rping -s -C 20 -S 8000" "rping -c -v -C 20 -S 8000 -a 10.81.1.9" || return 1
	well_passed || return 1
	reports 'any(f["source"] == "10.81.1.1" and f["destination"] == "10.81.2.1" for f in flows) and any("partner_qpn" in f for f in flows) and r["proxy"]["addresses"] == ["10.81.1.9", "10.81.2.9"]'
}

# The other way round as well: who is the first host is nothing to them.
test_proxy_rping_back() {
	proxy 10.81.2.1 10.81.1.1 --json || return 1
	through "rping -s -C 5" "rping -c -C 5 -a 10.81.1.9" || return 1
	well_passed
}

test_proxy_ipv6() {
	proxy fd81:1::1 fd81:2::1 --json || return 1
	through "rping -s -a fd81:2::1 -C 5" "rping -c -C 5 -a fd81:1::9" || return 1
	well_passed || return 1
	reports 'any(f["source"] == "fd81:1::1" and f["destination"] == "fd81:2::1" for f in flows)'
}

# One of the hosts has IPv4 alone, the other one IPv6.
test_proxy_translates() {
	proxy 10.81.1.1 fd81:2::1 --json || return 1
	through "rping -s -a fd81:2::1 -C 5 -S 5000" "rping -c -C 5 -S 5000 -a 10.81.1.9" || return 1
	well_passed || return 1
	reports 'any(f["source"] == "fd81:2::9" and f["destination"] == "fd81:2::1" for f in flows)'
}

test_proxy_ucmatose() {
	proxy 10.81.1.1 10.81.2.1 --json || return 1
	listens=7471 through "ucmatose -C 10 -c 3" "ucmatose -s 10.81.1.9 -C 10 -c 3" || return 1
	well_passed
}

# Datagrams: a lookup, and the address handle that the server makes from the first completion.
test_proxy_udaddy() {
	proxy 10.81.1.1 10.81.2.1 --json || return 1
	through "udaddy -C 10 -c 2" "udaddy -s 10.81.1.9 -C 10 -c 2" || return 1
	well_passed
}

test_proxy_rstream() {
	proxy 10.81.1.1 10.81.2.1 --json || return 1
	listens=7471 through "rstream -S 65536 -C 50" "rstream -s 10.81.1.9 -S 65536 -C 50" || return 1
	leave
}

# perftest connects by the RDMA CM; and nobody needs a privilege for it.
test_proxy_unprivileged() {
	local as=() listens=18515
	local -x UROCE_PORT=auto
	become_nobody
	proxy 10.81.1.1 10.81.2.1 --json || return 1
	through "ib_send_bw -R -s 65536 -n 200" "ib_send_bw -R -s 65536 -n 200 10.81.1.9" || return 1
	leave || return 1
	reports 'sum(f["packets"] for f in flows) > 200 * 64'
}

# A rule loses the last packet of the third message once, which is the first WRITE of the server; the report names it, and the capture has what passed between
# the two hosts.
test_proxy_drops() {
	proxy 10.81.1.1 10.81.2.1 --json --capture "$TMP/proxy.pcapng" --rule 'drop 2to1 opcode=WRITE_LAST msg=3 iteration=1' || return 1
	through "rping -s -C 5 -S 8000" "rping -c -V -C 5 -S 8000 -a 10.81.1.9" || return 1
	leave || return 1
	reports 'len(events) == 1 and r["rules"][0]["hits"] == 1 and r["done"]["dropped"] == 1' &&
		reports 'events[0]["opcode"] == "RC_WRITE_LAST" and events[0]["message"] == 3 and events[0]["source"] == "10.81.2.1" and events[0]["destination"] == "10.81.1.1"' &&
		reports 'events[0]["again_ns"] > 0 and events[0]["recovery"] in ("selective", "go-back-N", "nothing followed it")' || return 1
	"$UROCE" pcap check "$TMP/proxy.pcapng" >"$TMP/check"
	cat "$TMP/check"
	[ "$(grep -ac 'dropped by rule 1' "$TMP/proxy.pcapng")" -eq 1 ] && grep -q ' 0 errors' "$TMP/check" || fail "the capture does not say it"
}

# What a rule damages arrives damaged, or not at all, and is sent again.
test_proxy_corrupts() {
	proxy 10.81.1.1 10.81.2.1 --json --rule 'corrupt chance=3%' || return 1
	through "rping -s -C 30 -S 20000" "rping -c -v -V -C 30 -S 20000 -a 10.81.1.9" || return 1
	leave || return 1
	reports 'r["done"]["corrupted"] > 0 and r["proxy"]["damaged"] <= r["done"]["corrupted"]'
}

# forge NAMESPACE SOURCE DESTINATION LENGTH [TIMES [PORT [HOPS]]]: a UDP datagram from that address, and port (4791), to port 4791.
forge() {
	in_ns "$1" python3 - "${@:2}" <<-'PYTHON'
		import socket, sys
		times, port, hops = [int(v) for v in sys.argv[4:] + ["1", "4791", "64"][len(sys.argv) - 4:]]
		v6 = ":" in sys.argv[1]
		s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(*(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) if v6 else (socket.IPPROTO_IP, socket.IP_TTL), hops)
		s.bind((sys.argv[1], port))
		for i in range(times):
		    s.sendto(b"\x04" + bytes(int(sys.argv[3]) - 1), (sys.argv[2], 4791))
	PYTHON
}

# Nobody else gets through, nor does what is no RoCEv2; and a host is let through to the address alone that is meant for it.
test_proxy_strangers() {
	far_hosts || return 1
	ip -n "$PT1" addr add 10.81.1.2/24 dev eth0 && ip -n "$PTM" addr add 10.81.1.8/24 dev e1 || return 1
	proxy 10.81.1.1 10.81.2.1 --json || return 1
	forge "$PT1" 10.81.1.2 10.81.1.9 32 && forge "$PT1" 10.81.1.1 10.81.1.8 32 && forge "$PT1" 10.81.1.1 10.81.1.9 15 && forge "$PT1" 10.81.1.1 10.81.1.9 16 || { fail "forging"; return; }
	leave || return 1
	ip -n "$PT1" addr del 10.81.1.2/24 dev eth0
	ip -n "$PTM" addr del 10.81.1.8/24 dev e1
	reports 'r["proxy"]["strangers"] == 2 and r["proxy"]["malformed"] == 1 and [f["packets"] for f in flows if not f["qpn"]] == [1]'
}

# proxy_refused TEXT ARGUMENTS: the message of a command that cannot start.
proxy_refused() {
	in_ns "$PTM" timeout 10 "$UROCE" between --seconds 1 "${@:2}" >"$TMP/out" 2>&1 && { cat "$TMP/out"; fail "no failure: ${*:2}"; return; }
	grep -q "$1" "$TMP/out" || { cat "$TMP/out"; fail "'$1' is not said: ${*:2}"; }
}

test_proxy_refuses() {
	far_hosts || return 1
	proxy_refused 'is this machine' --proxy 10.81.1.9 10.81.2.1 && proxy_refused 'is this machine' --proxy 10.81.1.1 10.81.2.9 &&
		proxy_refused 'are one host' --proxy 10.81.1.1 10.81.1.1 && proxy_refused 'no route to' --proxy 10.81.1.1 10.99.0.1 &&
		proxy_refused 'no interface has the address' --proxy 10.81.1.1 10.81.2.1 --listen 10.81.1.77 &&
		proxy_refused 'is of another family' --proxy 10.81.1.1 fd81:2::1 --listen 10.81.1.9 &&
		proxy_refused 'is the address of no host' --proxy 10.81.1.1 0.0.0.0 && proxy_refused 'is the address of no host' --proxy :: 10.81.1.1 &&
		proxy_refused 'is the address of a multicast group' --proxy 10.81.1.1 224.0.0.1 && proxy_refused 'it goes with --proxy' --listen 10.81.1.9 e1 e2 &&
		proxy_refused 'do not go with --proxy' --proxy --script /dev/null -- true -- true || return 1
	proxy 10.81.1.1 10.81.2.1 || return 1
	proxy_refused 'is in use' --proxy 10.81.1.1 10.81.2.1 --name "second-$$" || return 1
	leave
}

# Both hosts at one address of the machine, behind one interface; what it does can be changed while it runs.
test_proxy_one_interface() {
	far_hosts || return 1
	on_exit "ip -n $PTM link del br0 2>/dev/null"
	ip -n "$PTM" link add br0 type bridge && ip -n "$PTM" addr add 10.81.3.9/24 dev br0 && ip -n "$PTM" link set br0 up || return 1
	ip -n "$PTM" link set e1 master br0 && ip -n "$PTM" link set e2 master br0 || return 1
	ip -n "$PT1" addr add 10.81.3.1/32 dev eth0 && ip -n "$PT1" route add 10.81.3.9 dev eth0 src 10.81.3.1 || return 1
	ip -n "$PT2" addr add 10.81.3.2/32 dev eth0 && ip -n "$PT2" route add 10.81.3.9 dev eth0 src 10.81.3.2 || return 1
	proxy 10.81.3.1 10.81.3.2 --json --listen 10.81.3.9 --name "proxy-$$" || return 1
	in_ns "$PTM" "${as[@]}" "$UROCE" between --tell "proxy-$$" add 'delay 2to1 opcode=SEND_ONLY delay=1ms' || { fail "telling"; return; }
	through "rping -s -a 10.81.3.2 -C 5" "rping -c -C 5 -a 10.81.3.9 -I 10.81.3.1" || return 1
	leave || return 1
	ip -n "$PTM" link del br0
	reports 'r["done"]["delayed"] > 3 and r["proxy"]["addresses"] == ["10.81.3.9", "10.81.3.9"] and all(e["roce_packets"] > 10 for e in r["ends"])'
}

# However much waits that one host has sent, what the other one sends does not wait behind it.
test_proxy_takes_turns() {
	local pid
	far_hosts && proxy 10.81.1.1 10.81.2.1 --json --rule 'delay delay=1us' || return 1
	pid=$(pgrep -P "$between" -x uroce)
	kill -STOP "$pid"
	forge "$PT1" 10.81.1.1 10.81.1.9 16 400 && forge "$PT2" 10.81.2.1 10.81.2.9 16 || { kill -CONT "$pid"; fail "forging"; return; }
	kill -CONT "$pid"
	sleep 0.5
	leave || return 1
	reports 'r["ends"][0]["frames"] >= 400 and [e["direction"] for e in events].index("2to1") <= 40' # and perhaps a DREQ of a program before
}

# An interface that goes ends it.
test_proxy_interface_goes() {
	far_hosts || return 1
	on_exit "ip -n $PTM link del g1 2>/dev/null"
	ip -n "$PTM" link add g1 type veth peer name g2 && ip -n "$PTM" addr add 10.81.4.9/24 dev g1 && ip -n "$PTM" link set g1 up && ip -n "$PTM" link set g2 up || return 1
	proxy 10.81.1.1 10.81.4.1 || return 1
	ip -n "$PTM" link del g1
	wait "$between"
	[ $? -eq 1 ] && grep -q 'interface g1 has been removed' "$TMP/between.err" || { cat "$TMP/between" "$TMP/between.err"; fail "the end"; }
}

# quiet NAMESPACE INTERFACE: nothing has come there for 300 ms. False after 20 s.
quiet() {
	local before=-1 now same=0
	for _ in $(seq 200); do
		now=$(in_ns "$1" cat "/sys/class/net/$2/statistics/rx_packets")
		same=$(($now == $before ? same + 1 : 0))
		[ $same -lt 3 ] || return 0
		before=$now
		sleep 0.1
	done
	fail "packets still come to $2"
}

# Two proxies that are each other's hosts: what comes between them goes in a circle, but each takes a hop off it, also where the kernel's own default is another.
test_proxy_circle() {
	local i ns=uroce-$$-pc first
	far_hosts || return 1
	on_exit "ip netns del $ns 2>/dev/null"
	ip netns add "$ns" && ip -n "$ns" link set lo up && in_ns "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.ip_default_ttl=255 || return 1
	for i in 5 6; do
		ip link add name "c$i" netns "$ns" type veth peer name "c$i" netns "$PTM" || return 1
		ip -n "$ns" link set "c$i" up && ip -n "$PTM" link set "c$i" up
		ip -n "$ns" addr add "10.81.$i.1/24" dev "c$i" && ip -n "$PTM" addr add "10.81.$i.9/24" dev "c$i"
		ip -n "$ns" addr add "fd81:$i::1/64" dev "c$i" nodad && ip -n "$PTM" addr add "fd81:$i::9/64" dev "c$i" nodad
	done
	for i in 10.81.%s.%s fd81:%s::%s; do
		# shellcheck disable=SC2059
		at() { printf "$i" "$@"; }
		proxy "$(at 5 1)" "$(at 6 1)" --json || return 1
		first=$between
		ip netns exec "$ns" timeout -k 5 60 "${as[@]}" "$UROCE" between --proxy --json "$(at 5 9)" "$(at 6 9)" </dev/null >"$TMP/second" 2>"$TMP/second.err" &
		between=$!
		servers+=("$between")
		on_exit "stop $between"
		until_says "$TMP/second.err" "are joined" && forge "$ns" "$(at 5 1)" "$(at 5 9)" 32 3 5000 66 && quiet "$PTM" c5 || return 1
		kill -INT "$(pgrep -P "$between" -x uroce)"
		wait "$between"
		between=$first
		leave || return 1
		reports 'sum(e["roce_packets"] for e in r["ends"]) == 3 * 33 and r["proxy"]["expired"] == 0' || return 1
		cp "$TMP/second" "$TMP/between"
		reports 'sum(e["roce_packets"] for e in r["ends"]) == 3 * 32 and r["proxy"]["expired"] == 3' || return 1
	done
	ip netns del "$ns"
}
