# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Processes with several devices: uroce run --dev eth0,eth1. While a test of these runs, the hosts have a second cable, and $DEVICES names both ends.

# status|what is said|the value of --dev
test_two_devices_settings() {
	local status says dev failed=0
	while IFS='|' read -r status says dev; do
		in_ns "$NS1" timeout 20 "$UROCE" run --dev "$dev" -- ibv_devices </dev/null >"$TMP/out" 2>&1
		[ $? -eq "$status" ] && grep -Eq -e "$says" "$TMP/out" || { cat "$TMP/out"; fail "--dev $dev"; failed=1; }
	done <<-'TABLE'
		0|uroce1|eth0,eth1
		0|uroce1|10.77.0.0/24,10.78.0.1
		2|--dev eth0, has an empty item|eth0,
		1|'nosuch0' does not exist|eth0,nosuch0
		2|names interface 'eth0' twice|eth0,10.77.0.1
	TABLE
	in_ns "$NS1" env UROCE_DEV=eth0,eth0 "$UROCE" info >"$TMP/out" 2>&1
	grep -q "names interface 'eth0' twice" "$TMP/out" || { cat "$TMP/out"; fail "the same interface twice"; failed=1; }
	in_ns "$NS1" "$UROCE" doctor --dev eth0,eth1 >"$TMP/out" 2>&1
	grep -q 'one interface at a time' "$TMP/out" || { cat "$TMP/out"; fail "doctor"; failed=1; }
	in_ns "$NS1" timeout 20 "$UROCE" run --dev eth1 --dev eth0 -- ibv_devinfo -v </dev/null >"$TMP/out" 2>&1
	grep -E 'hca_id|GID\[ *0\]' "$TMP/out" | tr -d '\n\t' | grep -q 'uroce0.*10.78.0.1.*uroce1.*10.77.0.1' || { cat "$TMP/out"; fail "the order"; failed=1; }
	return $failed
}

# The counters of both devices of the first host show packets; what a process publishes is up to 250 ms old.
both_received() {
	for _ in $(seq 50); do
		in_ns "$NS1" "$UROCE" info --counters --dev "$DEVICES" >"$TMP/out"
		[ "$(grep -c '^rx_roce_packets *[1-9]' "$TMP/out")" -eq 2 ] && return
		sleep 0.1
	done
	return 1
}

# A listener for all addresses is reached on each device; the other side goes out by the device whose network it is. Each is recorded by itself.
test_two_devices_rping() {
	local i
	serve 7174 "$NS1" "$TMP/server" -- rping -s -P || return 1
	for i in 77 78; do
		uroce_in "$NS2" --capture "$TMP/wire$i.pcapng" --counters "$TMP/counters$i" -- rping -c -V -C 10 -a "10.$i.0.1" >"$TMP/client" 2>&1 ||
			{ cat "$TMP/client" "$TMP/server"; fail "client of 10.$i.0.1"; return; }
	done
	in_ns "$NS1" "$UROCE" info --dev "$DEVICES" >"$TMP/out"
	same_count 2 '^ *listens on tcp .*:7174$' "$TMP/out" || { cat "$TMP/out"; fail "the listener is not on both"; return; }
	both_received || { cat "$TMP/out"; fail "counters of each"; return; }
	stop "$server"
	tshark -r "$TMP/wire77.pcapng" -T fields -e ip.src 2>/dev/null | sort -u | tr '\n' ' ' | grep -qx '10.77.0.1 10.77.0.2 ' || { fail "capture of uroce0"; return; }
	tshark -r "$TMP/wire78.uroce1.pcapng" -T fields -e ip.src 2>/dev/null | sort -u | tr '\n' ' ' | grep -qx '10.78.0.1 10.78.0.2 ' || { fail "capture of uroce1"; return; }
	grep -q '^rx_roce_packets' "$TMP/counters77" && grep -q '^rx_roce_packets' "$TMP/counters78.uroce1" || { fail "files of counters"; return; }
}

test_two_devices_perftest() {
	serve_tcp "$NS1" "$TMP/server" -- ib_write_bw -d uroce1 -F -n 200 -x 0 || return 1
	uroce_in "$NS2" --counters "$TMP/counters" -- ib_write_bw -d uroce1 -F -n 200 -x 0 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	[ ! -e "$TMP/counters" ] || ! grep -q tx_roce_packets "$TMP/counters" || { fail "packets on uroce0"; return; }
	grep -q '^tx_roce_packets' "$TMP/counters.uroce1" || { fail "no packets on uroce1"; return; }
}

# A cable that is pulled ends the connections over it, and no others; they can be made again when it is back.
test_two_devices_cable_pulled() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/rails" "$here/src/rails.c" -lrdmacm -libverbs || return 1
	serve 7480 "$NS1" "$TMP/server" -- "$TMP/rails" || return 1
	background "$NS2" "$TMP/client" -- "$TMP/rails" 10.77.0.1 10.78.0.1
	until_says "$TMP/client" '^10.77.0.1: works' && until_says "$TMP/client" '^10.78.0.1: works' || { cat "$TMP/server"; return 1; }
	ip -n "$NS2" link set eth1 down
	until_says "$TMP/client" '^10.78.0.1: failed after' || { cat "$TMP/server"; fail "the cable is pulled, and nothing failed"; return; }
	ip -n "$NS2" link set eth1 up
	wait "$server" || { cat "$TMP/client" "$TMP/server"; fail "client status $?"; return; }
	cat "$TMP/client"
	grep -Eqx '10.77.0.1: [1-9][0-9]* messages on uroce0, failed 0 times' "$TMP/client" && grep -Eqx '10.78.0.1: [1-9][0-9]* messages on uroce1, failed [1-9][0-9]* times' "$TMP/client" ||
		{ cat "$TMP/server"; fail "not as on hardware"; return; }
}

# Each device has a keeper, which ends the connections of that device when the program is killed.
test_two_devices_killed() {
	local s i keepers
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/rails" "$here/src/rails.c" -lrdmacm -libverbs || return 1
	serve 7480 "$NS1" "$TMP/server" -- "$TMP/rails" || return 1
	s=$server
	background "$NS2" "$TMP/client" --capture "$TMP/wire.pcapng" -- "$TMP/rails" 10.77.0.1 10.78.0.1
	until_says "$TMP/client" '^10.77.0.1: works' && until_says "$TMP/client" '^10.78.0.1: works' || { cat "$TMP/server"; return 1; }
	in_ns "$NS1" "$UROCE" info --dev "$DEVICES" >"$TMP/info"
	keepers=$(grep -E '^(interface| *keeper)' "$TMP/info" | awk '{ printf "%s ", $1 }')
	[ "$keepers" = 'interface keeper interface keeper ' ] && [ "$(grep '^ *keeper' "$TMP/info" | sort -u | wc -l)" = 2 ] || { cat "$TMP/info"; fail "keepers"; return; }
	kill -KILL "$(program "$s")"
	until_says "$TMP/client" '^10.77.0.1: failed' && until_says "$TMP/client" '^10.78.0.1: failed' || return 1
	stop "$server"
	for i in 77:wire 78:wire.uroce1; do
		tshark -r "$TMP/${i#*:}.pcapng" -Y "infiniband.mad.attributeid == 0x15 && ip.src == 10.${i%:*}.0.1" 2>/dev/null | grep -q . || { fail "no DREQ in ${i#*:}"; return; }
	done
}

# A device that has no address when the program starts is used once it has one.
test_two_devices_late_address() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/rails" "$here/src/rails.c" -lrdmacm -libverbs || return 1
	serve 7480 "$NS1" "$TMP/server" -- "$TMP/rails" || return 1
	ip -n "$NS2" addr del 10.78.0.2/24 dev eth1
	background "$NS2" "$TMP/client" -- "$TMP/rails" 10.77.0.1 10.78.0.1
	until_says "$TMP/client" '^10.78.0.1: no way' || { cat "$TMP/server"; return 1; }
	ip -n "$NS2" addr add 10.78.0.2/24 dev eth1
	wait "$server" || { cat "$TMP/client" "$TMP/server"; fail "client status $?"; return; }
	cat "$TMP/client"
	grep -Eqx '10.78.0.1: [1-9][0-9]* messages on uroce1, failed [1-9][0-9]* times' "$TMP/client" || { cat "$TMP/server"; fail "not over uroce1"; return; }
}

# One that is down when the program starts is used once it is up; until then there is the other one.
test_two_devices_first_is_down() {
	local status
	ip -n "$NS1" link set eth0 down
	serve 7174 "$NS1" "$TMP/server" -- rping -s -P && uroce_in "$NS2" -- rping -c -V -C 10 -a 10.78.0.1
	status=$?
	ip -n "$NS1" link set eth0 up
	wait_carrier "$NS1" eth0 && wait_carrier "$NS2" eth0 && [ $status = 0 ] || { cat "$TMP/server"; return 1; }
	uroce_in "$NS2" -- rping -c -V -C 10 -a 10.77.0.1 || { cat "$TMP/server"; return 1; }
	same_count 1 "^uroce: interface 'eth0' is down: .* until 'ip link set dev eth0 up'$" "$TMP/server"
}

# An id that has not reached one network tries another one, with the port that it has; the first device is that of the first.
test_two_devices_resolve_again() {
	build_addresses || return 1
	UROCE_PORT=packet uroce_in "$NS2" -- "$TMP/addresses" again 10.77.0.99 10.78.0.1 4714 && DEVICES=eth1,eth0 test_link_local_scopes
}

# carried_by_both FILE BYTES: the counters in FILE and FILE.uroce1 show that each device sent a third of BYTES or more.
carried_by_both() {
	local f
	for f in "$1" "$1.uroce1"; do
		awk -v bytes="$2" '$1 == "tx_bytes" { n = $2 } END { exit n < bytes / 3 }' "$f" || { head -n 50 "$1" "$1.uroce1"; return 1; }
	done
}
# UCX cuts long messages into a piece for each rail, whether the receiver reads them or the sender writes them.
test_two_devices_ucx() {
	local how n=20 size=3000000 env
	needs ucx_perftest ucx-utils || return
	for how in tag_bw:UCX_RNDV_SCHEME=get_zcopy ucp_am_bw:UCX_RNDV_SCHEME=put_zcopy tag_bw:UCX_PROTO_ENABLE=y; do
		env=(env UCX_NET_DEVICES=uroce0:1,uroce1:1 UCX_TLS=rc UCX_MAX_RNDV_RAILS=2 "${how#*:}")
		set -- ucx_perftest -t "${how%:*}" -s $size -n $n -w 2
		serve_at 13337 "$NS1" "$TMP/server" --files -- "${env[@]}" "$@" || return 1
		uroce_in "$NS2" --files --counters "$TMP/counters" -- "${env[@]}" "$@" 10.77.0.1 >"$TMP/client" 2>&1 ||
			{ cat "$TMP/client" "$TMP/server"; fail "$how"; return; }
		served "$TMP/server" && grep '^Final:' "$TMP/client" || { cat "$TMP/client"; fail "$how: no result"; return; }
		carried_by_both "$TMP/counters" $((n * size)) || { fail "$how"; return; }
	done
}

# The first device cannot start, because root's socket has its UDP port: programs of another user get the second one.
test_two_devices_first_fails() {
	local as=() UROCE=$UROCE py='import socket, time; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
		s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0"); s.bind(("::", 4791)); print("ready", flush=True); time.sleep(60)'
	ip netns exec "$NS1" python3 -c "${py//$'\t'/}" >"$TMP/holder" 2>&1 & # without a shell of its own, so that it is what is stopped
	servers+=($!)
	on_exit "stop $!"
	until_says "$TMP/holder" ready || return 1
	become_nobody
	serve 7174 "$NS1" "$TMP/server" -- rping -s -P || return 1
	uroce_in "$NS2" -- rping -c -V -C 10 -a 10.78.0.1 || { cat "$TMP/server"; return 1; }
	same_count 1 "^uroce: UDP port 4791 of interface 'eth0' belongs to" "$TMP/server" || return 1
	in_ns "$NS1" "$UROCE" info --dev "$DEVICES" >"$TMP/out"
	same_count 1 '^ *listens on tcp .*:7174$' "$TMP/out" || { fail "the listener"; return; }
	! uroce_in "$NS1" -- rping -s -a 10.77.0.1 >"$TMP/out" 2>&1 || { fail "it listens on an address of the first"; return; }
	same_count 1 "^uroce: UDP port 4791 of interface 'eth0' belongs to" "$TMP/out" || return 1
	serve_tcp "$NS1" "$TMP/server" -- ib_write_bw -d uroce1 -F -n 200 -x 0 || return 1
	uroce_in "$NS2" -- ib_write_bw -d uroce1 -F -n 200 -x 0 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server"
}
