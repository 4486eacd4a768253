# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of libibverbs: the pingpongs, perftest, multicast, memory windows.

test_ibv_devices() {
	uroce_in "$NS1" -- ibv_devices >"$TMP/out" || return 1
	cat "$TMP/out"
	grep -Eq '^ +uroce0[[:space:]]+[0-9a-f]{16}' "$TMP/out" || fail "no device"
}
test_ibv_devinfo() {
	local want
	uroce_in "$NS1" -- ibv_devinfo -v >"$TMP/out" || return 1
	cat "$TMP/out"
	for want in 'hca_id:.*uroce0' 'state:.*PORT_ACTIVE' 'link_layer:.*Ethernet' 'active_mtu:.*1024' 'GID\[ *0\]:.*::ffff:10\.77\.0\.1, RoCE v2' \
		'GID\[ *[0-9]+\]:.*fd77::1, RoCE v2'; do
		grep -Eq "$want" "$TMP/out" || { fail "missing: $want"; return; }
	done
}
test_ibv_rc_pingpong() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_rc_pingpong -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_rc_pingpong -g 0 -n 200 10.77.0.1 && served "$TMP/server"
}
test_ibv_rc_pingpong_events() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_rc_pingpong -e -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_rc_pingpong -e -g 0 -n 200 10.77.0.1 && served "$TMP/server"
}
test_ibv_rc_pingpong_timestamps() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_rc_pingpong -t -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_rc_pingpong -t -g 0 -n 200 10.77.0.1 >"$TMP/client" && served "$TMP/server" || return 1
	cat "$TMP/client"
	grep -Eq '^Max receive completion clock cycles = [1-9]' "$TMP/client" || fail "no timestamps"
}
test_ibv_rc_pingpong_new_post() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_rc_pingpong -N -c -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_rc_pingpong -N -c -g 0 -n 200 10.77.0.1 && served "$TMP/server"
}
# perftest posts through ibv_wr_ unless told otherwise. perf PROGRAM [OPTIONS]: the same on both sides; prints the line of figures.
perf() {
	serve_tcp "$NS1" "$TMP/server" -- "$@" -x 0 -F || return 1
	uroce_in "$NS2" -- "$@" -x 0 -F 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "$1: client status $?"; return; }
	served "$TMP/server" || return 1
	cat "$TMP/client"
	grep -Eq '^ +[0-9]+ +[0-9]+ +[0-9]' "$TMP/client" || fail "$1 printed no figures"
}
test_perftest() {
	perf ib_send_bw -s 65536 -n 1000 && perf ib_write_bw -s 65536 -n 1000 && perf ib_read_bw -s 65536 -n 1000
}
test_perftest_latency() { perf ib_write_lat -s 8 -n 1000 && perf ib_send_lat -s 200 -I 220 -n 1000 && perf ib_read_lat -s 8 -n 1000; }
test_perftest_old_post() { perf ib_write_bw --use_old_post_send -s 65536 -n 1000; }
test_perftest_events() { perf ib_send_bw -e -s 4096 -n 1000; }
# 16 queue pairs that share 500 receives.
test_ibv_srq_pingpong() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_srq_pingpong -g 0 -n 500 -q 16 || return 1
	uroce_in "$NS2" -- ibv_srq_pingpong -g 0 -n 500 -q 16 10.77.0.1 && served "$TMP/server"
}
test_ibv_srq_pingpong_events() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_srq_pingpong -e -g 0 -n 500 -q 4 || return 1
	uroce_in "$NS2" -- ibv_srq_pingpong -e -g 0 -n 500 -q 4 10.77.0.1 && served "$TMP/server"
}
# One client: with several on a host the program sends over the queue pair of one process to the SRQ of another, which would need their memory.
test_ibv_xsrq_pingpong() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_xsrq_pingpong -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_xsrq_pingpong -g 0 -n 200 10.77.0.1 && served "$TMP/server"
}
test_ibv_xsrq_pingpong_events() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_xsrq_pingpong -e -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_xsrq_pingpong -e -g 0 -n 200 10.77.0.1 && served "$TMP/server"
}
test_ibv_uc_pingpong() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_uc_pingpong -g 0 -n 200 || return 1
	uroce_in "$NS2" -- ibv_uc_pingpong -g 0 -n 200 10.77.0.1 && served "$TMP/server"
}
test_ibv_ud_pingpong() {
	serve_tcp "$NS1" "$TMP/server" -- ibv_ud_pingpong -g 0 -n 200 -s 1024 || return 1
	uroce_in "$NS2" -- ibv_ud_pingpong -g 0 -n 200 -s 1024 10.77.0.1 && served "$TMP/server"
}
test_ibv_ud_pingpong_ipv6_events() {
	local gid
	gid=$(gid_index "$NS1" fd77::1/64)
	serve_tcp "$NS1" "$TMP/server" -- ibv_ud_pingpong -e -g "$gid" -n 200 -s 1000 || return 1
	uroce_in "$NS2" -- ibv_ud_pingpong -e -g "$gid" -n 200 -s 1000 10.77.0.1 && served "$TMP/server"
}
# Nothing is repeated when a packet is lost, so the sender stays within what the interface's queues hold.
test_send_bw_uc() {
	serve_tcp "$NS1" "$TMP/server" -- ib_send_bw -F -x 0 -c UC -n 200 -s 4096 -t 16 || return 1
	uroce_in "$NS2" -- ib_send_bw -F -x 0 -c UC -n 200 -s 4096 -t 16 10.77.0.1 && served "$TMP/server"
}
test_send_bw_ud() {
	serve_tcp "$NS1" "$TMP/server" -- ib_send_bw -F -x 0 -c UD -n 500 -s 1024 -t 16 || return 1
	uroce_in "$NS2" -- ib_send_bw -F -x 0 -c UD -n 500 -s 1024 -t 16 10.77.0.1 && served "$TMP/server"
}
test_write_bw_uc() {
	serve_tcp "$NS1" "$TMP/server" -- ib_write_bw -F -x 0 -c UC -n 500 -s 4096 -t 16 || return 1
	uroce_in "$NS2" -- ib_write_bw -F -x 0 -c UC -n 500 -s 4096 -t 16 10.77.0.1 && served "$TMP/server"
}
test_send_lat_ud() {
	serve_tcp "$NS1" "$TMP/server" -- ib_send_lat -F -x 0 -c UD -n 500 -s 64 || return 1
	uroce_in "$NS2" -- ib_send_lat -F -x 0 -c UD -n 500 -s 64 10.77.0.1 && served "$TMP/server"
}
# gid_index NS ADDRESS/LEN
gid_index() { in_ns "$1" "$UROCE" info --dev eth0 | awk -v a="$2" '$NF == a && $1 ~ /^[0-9]+$/ { print $1; exit }'; }
# mcast INDEX GROUP: one receiver on the other host, two beside the sender.
mcast() {
	local i ns k
	gcc -Wall -Werror -o "$TMP/mcast" "$here/mcast.c" -libverbs || return 1
	for i in 1 2 3; do
		ns=$NS2
		[ $i -gt 1 ] || ns=$NS1
		background "$ns" "$TMP/receiver$i" -- "$TMP/mcast" recv "$1" "$2" 100
		for k in $(seq 200); do
			! grep -q ready "$TMP/receiver$i" || break
			sleep 0.05
		done
	done
	uroce_in "$NS2" -- "$TMP/mcast" send "$1" "$2" 100 3 || { cat "$TMP"/receiver?; fail "sender"; return; }
	for i in 1 2 3; do
		server=${servers[i - 1]}
		served "$TMP/receiver$i" || return 1
	done
}
test_mcast() { mcast 0 239.7.7.7; }
test_mcast_ipv6() { mcast "$(gid_index "$NS2" fd77::2/64)" ff0e::7:7; }
perftest() {
	serve_tcp "$NS1" "$TMP/server" -- "$@" || return 1
	uroce_in "$NS2" -- "$@" 10.77.0.1 || { cat "$TMP/server"; fail "client"; return; }
	served "$TMP/server"
}
test_ib_atomic_bw_cmp_swap() { perftest ib_atomic_bw -x 0 -A CMP_AND_SWAP -n 2000; }
test_ib_atomic_bw_fetch_add() { perftest ib_atomic_bw -x 0 -A FETCH_AND_ADD -n 2000 -o 4; }
test_ib_atomic_bw_both_ways() { perftest ib_atomic_bw -x 0 -A FETCH_AND_ADD -b -n 1000; }
test_ib_atomic_lat_cmp_swap() { perftest ib_atomic_lat -x 0 -A CMP_AND_SWAP -n 500; }
test_ib_atomic_lat_fetch_add() { perftest ib_atomic_lat -x 0 -A FETCH_AND_ADD -n 500; }

test_memory_windows() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/windows" "$here/windows.c" -lrdmacm -libverbs || return 1
	serve 7321 "$NS1" "$TMP/server" -- "$TMP/windows" || return 1
	uroce_in "$NS2" -- "$TMP/windows" 10.77.0.1 >"$TMP/client" || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	same_count 1 '^window of type 2' "$TMP/client" && same_count 1 '^window of type 1' "$TMP/client" && same_count 1 '^dead key' "$TMP/client"
}
