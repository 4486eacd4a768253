# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A hostile peer against unmodified programs, over each kind of port. A row is a function row_NAME, which runs against 'rping -s -P' in the first
# namespace; the attacks are those of hostile.py, in the second one. $victim is the server's address, $family 4 or 6.

attack() { in_ns "$NS2" timeout 60 python3 -IS "$here/hostile/hostile.py" eth0 "$victim_mac" "$@"; }

# attack_beside FILE ATTACK...: in the background; returns when it sees the wire. Adds to $attackers.
attack_beside() {
	local out=$1
	shift
	rm -f "$out"
	attack "$@" >"$out" 2>&1 &
	attackers+=($!)
	for _ in $(seq 100); do
		! grep -qs ready "$out" || return 0
		sleep 0.05
	done
	fail "the attacker does not start"
}
attackers=()
await_attackers() {
	local a bad=0
	for a in "${attackers[@]}"; do wait "$a" || bad=1; done
	attackers=()
	[ $bad = 0 ] || fail "an attacker said $(tail -qn 1 "$TMP"/attack* | paste -sd ';')"
}

# The server's counter, once the server has ended.
dropped() { awk -v n="$1" '$1 == n { print $2 + 0; found = 1 } END { if (!found) print 0 }' "$TMP/counters"; }

# How many requests the program has seen.
requests() { grep -c 'type RDMA_CM_EVENT_CONNECT_REQUEST' "$TMP/server"; }

# none_of PATTERN FILE
none_of() { ! grep -E "$1" "$2" || fail "$1"; }

# --- rows ---

# Addresses that no other host can have: nobody is answered, the program hears of nothing.
row_martian_sources() {
	local before sources=10.77.0.1,224.0.0.1,255.255.255.255,10.77.0.255,127.0.0.1,0.0.0.0
	[ "$family" = 4 ] || sources=fd77::1,::1,::,ff02::1,ff05::77
	before=$(requests)
	attack requests victim="$victim" port="$RPING" sources=$sources >"$TMP/attack" || return 1
	none_of "answer .* to (${sources//,/|})\$" "$TMP/attack" || return 1
	[ "$(requests)" = "$before" ] || { cat "$TMP/server"; fail "a request from an impossible address reached the program"; }
}
# What rdma_get_peer_addr shows is what the packet bore, or the request is refused.
row_lying_headers() {
	local before claims=10.77.0.99,127.0.0.1,10.77.0.1
	[ "$family" = 4 ] || claims=fd77::99,::1,fd77::1
	before=$(requests)
	attack liars victim="$victim" port="$RPING" source="$peer" claims=$claims >"$TMP/attack" || return 1
	same_count 3 "^answer REJ 28 to $peer" "$TMP/attack" || return 1
	[ "$(requests)" = "$before" ] || fail "a request with a false address reached the program"
}
# Its numbers tell a peer nothing of those of other peers.
row_numbers() {
	attack_beside "$TMP/attack" numbers victim="$victim" connections=4 || return 1
	for _ in 1 2 3 4; do honest -C 1 || return 1; done
	await_attackers || return 1
	same_count 1 '^seen 4' "$TMP/attack" && none_of predictable "$TMP/attack"
}
# A connection that is in use does not end because somebody says that its peer has forgotten it; nor does another partition slow it down.
row_connection_in_use() {
	attack_beside "$TMP/attack" stale victim="$victim" port="$RPING" || return 1
	attack_beside "$TMP/attack2" congestion victim="$victim" || return 1
	honest -v -C 3000 -S 64 >"$TMP/client" || { tail -n 3 "$TMP/client"; return 1; }
	await_attackers || return 1
	same_count 3000 '^ping data' "$TMP/client" && same_count 1 '^connection of QP' "$TMP/attack" && same_count 1 '^notified 50' "$TMP/attack2"
}

# --- over each kind of port ---

honest() {
	uroce_in "$NS2" --counters "$TMP/honest" -- timeout -s TERM 50 rping -c -a "$victim" "$@" || { cat "$TMP/honest"; cat "$TMP/server"; fail "an honest client got status $?"; }
}

# all_rows KIND FAMILY: then the counters say what was dropped, and that honest clients are served still.
all_rows() {
	local UROCE_PORT=$1 family=$2 victim=10.77.0.1 peer=10.77.0.2 any=0.0.0.0 victim_mac row
	export UROCE_PORT
	[ "$family" = 4 ] || { victim=fd77::1 peer=fd77::2 any=::0; }
	victim_mac=$(in_ns "$NS1" cat /sys/class/net/eth0/address)
	serve "$RPING" "$NS1" "$TMP/server" --counters "$TMP/counters" -- stdbuf -oL rping -s -P -d -a $any || return 1
	for row in $(declare -F | sed -n 's/^declare -f \(row_[a-z0-9_]*\)$/\1/p'); do
		$row || { cat "$TMP/attack"; fail "${row#row_} over $UROCE_PORT, IPv$family"; return; }
	done
	honest -C 10 -V || return 1
	kill -0 "$server" || { fail "the server has ended"; return; }
	stop_servers
	[ "$(dropped drop_source)" -ge 3 ] || { cat "$TMP/counters"; fail "drop_source"; return; }
	[ "$(dropped cm_spared)" -gt 0 ] || { cat "$TMP/counters"; fail "cm_spared"; return; }
	[ "$(dropped drop_pkey)" -ge 50 ] && [ "$(dropped rp_cnp_handled)" = 0 ] || { cat "$TMP/counters"; fail "congestion"; return; }
	# The kernel drops the others before a UDP socket has them.
	[ "$1" = udp ] || [ "$(dropped drop_martian_source)" -ge 5 ] || { cat "$TMP/counters"; fail "drop_martian_source"; }
}

test_hostile_udp_ipv4() { all_rows udp 4; }
test_hostile_udp_ipv6() { all_rows udp 6; }
test_hostile_packet_ipv4() { all_rows packet 4; }
test_hostile_packet_ipv6() { all_rows packet 6; }
test_hostile_dpdk_ipv4() { all_rows dpdk 4; }
test_hostile_dpdk_ipv6() { all_rows dpdk 6; }

# unreachable KIND VICTIM PEER: a client asks a host that does not answer. Nobody ends that by ICMP errors but those who have seen its request.
unreachable() {
	local UROCE_PORT=$1 victim=$2 peer=$3 victim_mac status
	export UROCE_PORT
	victim_mac=$(in_ns "$NS1" cat /sys/class/net/eth0/address)
	in_ns "$NS2" nft 'table inet silent { chain in { type filter hook input priority 0; udp dport 4791 drop; }; }' || return 1
	attack_beside "$TMP/attack" unreachable victim="$victim" peer="$peer" || return 1
	uroce_in "$NS1" --counters "$TMP/counters" -- rping -c -a "$peer" >"$TMP/client" 2>&1
	status=$?
	await_attackers
	in_ns "$NS2" nft delete table inet silent
	same_count 1 '^it asks again$' "$TMP/attack" || { cat "$TMP/client" "$TMP/counters"; return 1; }
	# by its own patience the client would end after more than a minute
	[ $status -ne 0 ] && [ $status -ne 124 ] && grep -q RDMA_CM_EVENT_UNREACHABLE "$TMP/client" || { cat "$TMP/client"; fail "the client ended with $status"; return; }
	[ "$(dropped drop_icmp_quote)" -ge 7 ] || { cat "$TMP/counters"; fail "drop_icmp_quote"; }
}
test_hostile_icmp_udp_ipv4() { unreachable udp 10.77.0.1 10.77.0.2; }
test_hostile_icmp_udp_ipv6() { unreachable udp fd77::1 fd77::2; }
test_hostile_icmp_packet_ipv4() { unreachable packet 10.77.0.1 10.77.0.2; }
test_hostile_icmp_packet_ipv6() { unreachable packet fd77::1 fd77::2; }

# forged_mtu KIND VICTIM PEER MTU: anybody says that a hop carries no more. The kernel believes it; no connection of ours notices, nor does a new one.
forged_mtu() {
	local UROCE_PORT=$1 victim=$2 peer=$3 told=$4 family=4 any=0.0.0.0 victim_mac
	export UROCE_PORT
	[ "${peer#*:}" = "$peer" ] || { family=6 any=::0; }
	victim_mac=$(in_ns "$NS1" cat /sys/class/net/eth0/address)
	serve "$RPING" "$NS2" "$TMP/server" -- rping -s -P -S 60000 -a $any || return 1
	attack_beside "$TMP/attack" too_long victim="$victim" peer="$peer" mtu="$told" || return 1
	uroce_in "$NS1" --counters "$TMP/counters" -- rping -c -v -C 1500 -S 60000 -a "$peer" 2>&1 | grep -ac '^ping data' >"$TMP/client"
	[ "$(cat "$TMP/client")" = 1500 ] || { cat "$TMP/counters"; fail "the client was served $(cat "$TMP/client") times instead of 1500"; return; }
	until_says "$TMP/attack" '^forged' || return 1
	[ "$UROCE_PORT" != udp ] || in_ns "$NS1" ip -$family route get "$peer" | grep -q "mtu $told" || { fail "the kernel does not believe it"; return; }
	[ "$(dropped drop_icmp_quote)" -ge 20 ] && [ "$(dropped narrow_hop)" = 0 ] || { cat "$TMP/counters"; fail "the errors are not counted"; return; }
	uroce_in "$NS1" -- rping -c -C 1 -S 60000 -a "$peer" || { fail "the second client ended with $?"; return; }
	await_attackers && same_count 2 '^asked for 4096' "$TMP/attack"
}
# with_mtu MTU COMMAND...: on a cable with that MTU; what the kernel was told meanwhile is forgotten.
with_mtu() {
	local mtu=$1 status ns
	shift
	for ns in "$NS1" "$NS2"; do ip -n "$ns" link set eth0 mtu "$mtu"; done
	"$@"
	status=$?
	stop_servers
	for ns in "$NS1" "$NS2"; do
		ip -n "$ns" link set eth0 mtu 1500
		ip -n "$ns" route flush cache
		ip -n "$ns" -6 route flush cache
	done
	return $status
}
test_hostile_mtu_udp_ipv4() { with_mtu 4200 forged_mtu udp 10.77.0.1 10.77.0.2 552; }
test_hostile_mtu_udp_ipv6() { with_mtu 4200 forged_mtu udp fd77::1 fd77::2 1280; }
test_hostile_mtu_packet_ipv4() { with_mtu 4200 forged_mtu packet 10.77.0.1 10.77.0.2 552; }
test_hostile_mtu_packet_ipv6() { with_mtu 4200 forged_mtu packet fd77::1 fd77::2 1280; }

# The most memory that processes of that name have had, in KiB.
most_memory() {
	local p most=0 now
	for p in $(ip netns pids "$NS1"); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] || continue
		now=$(awk '/^VmHWM:/ { print $2 }' "/proc/$p/status")
		[ "${now:-0}" -le "$most" ] || most=$now
	done
	echo "$most"
}

# Requests from ever new addresses, to a port where nobody listens and to one of a program that waits for the first of them: it has no more
# memory than its backlog, and the connection of its neighbour, which was there before, does not notice. Where neighbours are the kernel's, a few
# hundred addresses have to do: its table has room for a thousand of all namespaces together, and tests that run beside this one need some of them.
flooded() {
	local UROCE_PORT=$1 victim=$2 hosts=$3 victim_mac before after client
	export UROCE_PORT
	victim_mac=$(in_ns "$NS1" cat /sys/class/net/eth0/address)
	background "$NS1" "$TMP/busy" -- rdma_server -p 7600
	wait_listening "$NS1" 7600 "$server" || { fail "rdma_server does not listen"; return; }
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -a "$victim" -C 2500 -S 64 || return 1
	before=$(most_memory rdma_server)
	rm -f "$TMP/client"
	uroce_in "$NS2" --counters "$TMP/honest" -- stdbuf -oL rping -c -v -a "$victim" -C 2500 -S 64 >"$TMP/client" &
	client=$!
	for _ in $(seq 200); do [ ! -s "$TMP/client" ] || break; sleep 0.02; done
	attack flood victim="$victim" ports=7600,7999 seconds=1 least=2000 hosts="$hosts" >"$TMP/attack" || return 1
	wait $client
	same_count 2500 '^ping data' "$TMP/client" && served "$TMP/server" || return 1
	after=$(most_memory rdma_server)
	cat "$TMP/attack" "$TMP/honest"
	echo "$before KiB before, $after KiB after"
	[ "$(sed -n 's/^sent //p' "$TMP/attack")" -ge 2000 ] || { fail "the flood was too thin"; return; }
	[ "$before" -gt 0 ] && [ "$after" -ge "$before" ] && [ $((after - before)) -lt 16384 ] || fail "memory"
}
test_hostile_flood_udp() { flooded udp fd77::1 300; }
test_hostile_flood_packet() { flooded packet fd77::1 4294967295; }

# A thousand accepted connections that nobody confirms: the oldest make room, so that a program with descriptors for a few hundred has some for honest clients.
half_open() {
	local UROCE_PORT=$1 victim=fd77::1 hosts=$2 victim_mac
	export UROCE_PORT
	victim_mac=$(in_ns "$NS1" cat /sys/class/net/eth0/address)
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/crowded" "$here/src/crowded.c" -lrdmacm -libverbs || return 1
	serve 7333 "$NS1" "$TMP/server" --counters "$TMP/counters" -- prlimit --nofile=1024:1024 "$TMP/crowded" || return 1
	attack flood victim=$victim ports=7333 seconds=3 least=1000 hosts="$hosts" rate=400 >"$TMP/attack" || return 1
	for _ in 1 2 3; do
		uroce_in "$NS2" -- "$TMP/crowded" $victim >"$TMP/client" 2>&1 || { cat "$TMP/client"; tail -n 3 "$TMP/server"; fail "an honest client"; return; }
	done
	kill -0 "$server" || { fail "the server has ended"; return; }
	stop_servers
	[ "$(sed -n 's/^sent //p' "$TMP/attack")" -ge 1000 ] || { fail "the flood was too thin"; return; }
	[ "$(dropped cm_half_open)" -gt 500 ] || { cat "$TMP/counters" "$TMP/server"; fail "cm_half_open"; }
}
test_hostile_half_open_udp() { half_open udp 300; }
test_hostile_half_open_packet() { half_open packet 4294967295; }
