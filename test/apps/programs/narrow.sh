# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A router whose next hop carries less than the links of the two hosts: what their programs, and their users, are told.

# make_router: namespaces $NEAR (10.79.1.1, fd79:1::1) and $FAR (10.79.2.1, fd79:2::1), whose interfaces eth0 have an MTU of 4200, and between them $ROUTER.
make_router() {
	local i ns
	[ -z "${ROUTER:-}" ] || return 0
	ROUTER=uroce-$$-r
	NEAR=uroce-$$-n1
	FAR=uroce-$$-n2
	for ns in "$ROUTER" "$NEAR" "$FAR"; do
		on_exit "ip netns del $ns"
		ip netns add "$ns" || return 1
		ip -n "$ns" link set lo up
		in_ns "$ns" sysctl -qw net.ipv6.conf.default.accept_dad=0
	done
	in_ns "$ROUTER" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	for i in 1 2; do
		ns=uroce-$$-n$i
		ip link add name eth0 netns "$ns" mtu 4200 type veth peer name "port$i" netns "$ROUTER" mtu 4200 || return 1
		ip -n "$ROUTER" link set "port$i" up
		ip -n "$ROUTER" addr add 10.79.$i.254/24 dev "port$i"
		ip -n "$ROUTER" addr add fd79:$i::fe/64 dev "port$i" nodad
		ip -n "$ns" link set eth0 up
		ip -n "$ns" addr add 10.79.$i.1/24 dev eth0
		ip -n "$ns" addr add fd79:$i::1/64 dev eth0 nodad
		ip -n "$ns" route add default via 10.79.$i.254
		ip -n "$ns" -6 route add default via fd79:$i::fe
	done
}

# narrow_hop MTU: the router forwards to the far host no more than so many bytes at a time; the far host is not told what to do.
narrow_hop() {
	ip -n "$ROUTER" route replace 10.79.2.1/32 dev port2 mtu "$1" && ip -n "$ROUTER" -6 route replace fd79:2::1/128 dev port2 mtu "$1"
}
wide_hop() {
	ip -n "$ROUTER" route del 10.79.2.1/32
	ip -n "$ROUTER" -6 route del fd79:2::1/128
	in_ns "$ROUTER" nft flush ruleset
}

# ping_near NEAR: a client of the far host has the near one read and write 60000 bytes, of which the writes are too long for the hop. It ends by itself;
# its output is in $TMP/client.
ping_near() {
	local status
	uroce_in "$FAR" -- rping -c -C 1 -S 60000 -a "$1" >"$TMP/client" 2>&1
	status=$?
	[ $status -ne 124 ] && [ $status -ne 137 ] || { cat "$TMP/client" "$TMP/server"; fail "the client does not end"; return; }
}
serve_near() { serve "$RPING" "$NEAR" "$TMP/server" --counters "$TMP/counters" -- rping -s -P -S 60000 -a "$1"; }
ended_near() {
	stop_servers
	same_count 1 '^req_transport_retries_exceeded  *1$' "$TMP/counters"
}

# believed NEAR FAR: an ICMP error that quotes what is outstanding is told; the connection ends, and a new one from there with its path MTU is refused.
believed() {
	narrow_hop 1500 && serve_near "$1" && ping_near "$1" || return 1
	same_count 1 "^uroce: a router on the path to $2 forwards at most 1500 bytes, so connections with path MTU 4096 will fail; new connections .* path MTU 1024 " \
		"$TMP/server" || return 1
	ping_near "$1" && same_count 1 'RDMA_CM_EVENT_REJECTED, error 26' "$TMP/client" && ended_near || return 1
	[ "$(dropped narrow_hop)" -gt 0 ] || { cat "$TMP/counters"; fail "narrow_hop"; }
}
# unheard NEAR FAR: without ICMP errors the retries are over in the end, and what could be seen until then is told.
unheard() {
	narrow_hop 1500 && in_ns "$ROUTER" nft 'table inet silent { chain out { type filter hook output priority 0;
		icmp type destination-unreachable drop; icmpv6 type packet-too-big drop; }; }' || return 1
	serve_near "$1" && ping_near "$1" && ended_near || return 1
	none_of '^uroce: a router' "$TMP/server" &&
		same_count 1 "^uroce: a connection to $2 failed: the peer answered, .* 'uroce doctor --dev eth0 $2' can tell" "$TMP/server" || return 1
	[ "$(dropped narrow_hop)" = 0 ] && [ "$(dropped only_short_acknowledged)" = 1 ] || { cat "$TMP/counters"; fail "the counters"; }
}
# over KIND FAMILY TEST: over that kind of port; the hop is wide again afterwards.
over() {
	local -x UROCE_PORT=$1
	local status
	make_router || return 1
	if [ "$2" = 4 ]; then $3 10.79.1.1 10.79.2.1; else $3 fd79:1::1 fd79:2::1; fi
	status=$?
	wide_hop
	return $status
}
test_narrow_udp_ipv4() { over udp 4 believed; }
test_narrow_udp_ipv6() { over udp 6 believed; }
test_narrow_packet_ipv4() { over packet 4 believed; }
test_narrow_packet_ipv6() { over packet 6 believed; }
test_narrow_filtered_udp_ipv4() { over udp 4 unheard; }
test_narrow_filtered_udp_ipv6() { over udp 6 unheard; }
test_narrow_filtered_packet_ipv4() { over packet 4 unheard; }
