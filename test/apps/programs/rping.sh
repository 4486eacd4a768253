# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# rping, in all its modes, and what it says to addresses that nobody has.

test_rping_default() { ping_both -C 10; }
test_rping_large_verified() { ping_both -C 1000 -S 65535 -V; }
test_rping_own_qp() { ping_both -q -C 20 -V; }
test_rping_odd_sizes() {
	local s
	for s in 23 1000 1024 1025 4097; do
		ping_both -C 20 -V -S $s || { fail "size $s"; return; }
	done
}
test_rping_prints_pings() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -v -C 10 || return 1
	uroce_in "$NS2" -- rping -c -v -C 10 -a 10.77.0.1 >"$TMP/client" || return 1
	served "$TMP/server" || return 1
	same_count 10 '^ping data: rdma-ping-' "$TMP/client" && same_count 10 '^server ping data: rdma-ping-' "$TMP/server"
}
test_rping_persistent_server() {
	local i
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	for i in 1 2 3; do
		uroce_in "$NS2" -- rping -c -C 10 -V -a 10.77.0.1 || { cat "$TMP/server"; fail "client $i"; return; }
	done
}
# rping's server has room for one request that its main thread has not taken up (it overwrites child_cm_id), so the clients arrive one after another: each
# when the one before it prints pings. From then on they run together.
test_rping_three_clients_together() {
	local i k pids=() bad=0
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P -S 8000 || return 1
	for i in 1 2 3; do
		uroce_in "$NS2" -- rping -c -v -C 3000 -V -S 8000 -a 10.77.0.1 >"$TMP/client$i" &
		pids+=($!)
		for k in $(seq 200); do
			[ ! -s "$TMP/client$i" ] || break
			sleep 0.05
		done
	done
	for i in "${pids[@]}"; do wait "$i" || bad=1; done
	[ $bad = 0 ] || { cat "$TMP/server"; fail "a client failed"; }
}
test_rping_persistent_own_qps() {
	local i
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P -q || return 1
	for i in 1 2; do
		uroce_in "$NS2" -- rping -c -q -C 10 -V -a 10.77.0.1 || { cat "$TMP/server"; fail "client $i"; return; }
	done
}
test_rping_debug_port_source() {
	talk 7800 "rping -s -d -p 7800 -a 10.77.0.1 -C 3" "rping -c -d -v -p 7800 -I 10.77.0.2 -a 10.77.0.1 -C 3" || return 1
	same_count 3 '^ping data: rdma-ping-' "$TMP/client" && same_count 1 'cma_event type RDMA_CM_EVENT_ESTABLISHED' "$TMP/client"
}
test_rping_hostname() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -a uroce-1 -C 5 || return 1
	uroce_in "$NS2" -- rping -c -C 5 -V -a uroce-1 && served "$TMP/server"
}
test_rping_ipv6() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -a ::0 -C 50 -S 5000 || return 1
	uroce_in "$NS2" -- rping -c -C 50 -V -S 5000 -a fd77::1 && served "$TMP/server"
}
test_rping_ipv6_hostname() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -a uroce6-1 -C 5 || return 1
	uroce_in "$NS2" -- rping -c -C 5 -V -a uroce6-1 && served "$TMP/server"
}
test_rping_same_host() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -C 50 -S 9000 || return 1
	uroce_in "$NS1" -- rping -c -C 50 -V -S 9000 -a 10.77.0.1 && served "$TMP/server"
}
# The loopback has no MAC address. Whatever port is available there carries what two processes say, and doctor, which tries it, hears the other.
test_rping_over_lo() {
	local port address
	for port in udp packet dpdk; do
		for address in 127.0.0.1 ::1; do
			UROCE_PORT=$port ip netns exec "$NS1" timeout -k 5 60 "${as[@]}" "$UROCE" run --dev lo -- rping -s -a $address -C 10 -S 20000 </dev/null >"$TMP/server" 2>&1 &
			server=$!
			servers+=("$server")
			wait_listening "$NS1" "$RPING" "$server" --dev lo || { cat "$TMP/server"; fail "$port: no server"; return; }
			UROCE_PORT=$port in_ns "$NS1" timeout -k 5 30 "${as[@]}" "$UROCE" run --dev lo -- rping -c -C 10 -V -S 20000 -a $address </dev/null ||
				{ fail "$port, $address: client status $?"; return; }
			served "$TMP/server" || return
		done
	done
}
test_two_servers_one_device() {
	serve 7201 "$NS1" "$TMP/server1" -- rping -s -P -p 7201 || return 1
	serve 7202 "$NS1" "$TMP/server2" -- rping -s -P -p 7202 || return 1
	uroce_in "$NS2" -- rping -c -C 20 -V -p 7201 -a 10.77.0.1 || { fail "first server"; return; }
	uroce_in "$NS2" -- rping -c -C 20 -V -p 7202 -a 10.77.0.1 || fail "second server"
}
test_port_in_use() {
	serve 7203 "$NS1" "$TMP/server1" -- rping -s -P -p 7203 || return 1
	uroce_in "$NS1" -- timeout 20 rping -s -p 7203 >"$TMP/second" 2>&1
	local status=$?
	cat "$TMP/second"
	[ $status -ne 0 ] && [ $status -ne 124 ] && grep -q 'Address already in use' "$TMP/second" || fail "a second server on the same port ended with status $status"
}

# A client that cannot connect says so and ends; SECONDS bound what "does not hang" means.
must_fail_within() {
	local limit=$1 status start=$SECONDS
	shift
	uroce_in "$NS2" -- timeout "$limit" rping -c -C 1 "$@" >"$TMP/client" 2>&1
	status=$?
	cat "$TMP/client"
	[ $status -ne 0 ] && [ $status -ne 124 ] && [ $status -ne 139 ] || { fail "status $status after $((SECONDS - start)) s"; return; }
	[ -s "$TMP/client" ] || fail "the client said nothing"
}
test_connect_no_listener() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	must_fail_within 10 -a 10.77.0.1 -p 7999
}
test_connect_no_route() { must_fail_within 10 -a 198.51.100.1; }
test_connect_no_host() { must_fail_within 20 -a 10.77.0.99; }

# Processes share a UDP port: the kernel tells one of them of an ICMP error, by a hash of the addresses, and it is the wrong one of two every second time.
must_be_told() {
	local addr status
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	for addr in "$@"; do
		uroce_in "$NS1" -- timeout 20 rping -c -C 1 -a "$addr" >"$TMP/client" 2>&1
		status=$?
		# by its own patience the client would end after more than a minute
		[ $status -ne 0 ] && [ $status -ne 124 ] && grep -q RDMA_CM_EVENT_UNREACHABLE "$TMP/client" ||
			{ cat "$TMP/client"; fail "the client of $addr ended with $status"; return; }
	done
}
test_unreachable_beside_another() {
	local i status
	for i in {11..18}; do ip -n "$NS2" addr add 10.77.0.$i/24 dev eth0 && ip -n "$NS2" addr add fd77::$i/64 dev eth0 nodad || return 1; done
	UROCE_PORT=udp must_be_told 10.77.0.{11..18} fd77::{11..18}
	status=$?
	for i in {11..18}; do ip -n "$NS2" addr del 10.77.0.$i/24 dev eth0 && ip -n "$NS2" addr del fd77::$i/64 dev eth0; done
	return $status
}

# A kernel answers few of so many requests.
test_unreachable_many() {
	UROCE_PORT=udp uroce_in "$NS1" -- timeout 20 cmtime -c 300 -s 10.77.0.2 >"$TMP/client" 2>&1
	[ $? -ne 124 ] && same_count 300 'RDMA_CM_EVENT_UNREACHABLE' "$TMP/client" || { tail -n 9 "$TMP/client"; fail "some still wait"; }
}

# The script that doc/containers.md offers for CI, as it is: losses are repaired, and the status is the client's.
test_two_hosts() {
	local hosts=$ROOT/doc/containers/two_hosts
	SUDO_UID=0 SUDO_GID=0 UROCE=$UROCE timeout -k 5 60 sh "$hosts" 'rping -s -V -C 50' 'rping -c -V -C 50 -a 10.77.0.1' </dev/null >"$TMP/hosts" 2>&1 ||
		{ cat "$TMP/hosts"; fail "two hosts do not talk"; return; }
	! grep '^uroce: ' "$TMP/hosts" || { fail "something is said to be amiss"; return; }
	! SUDO_UID=0 SUDO_GID=0 UROCE=$UROCE timeout -k 5 60 sh "$hosts" 'rping -s' 'exit 3' </dev/null >"$TMP/hosts" 2>&1 || fail "the client's status is lost"
}
