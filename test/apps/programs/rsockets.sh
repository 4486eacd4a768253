# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of rsockets, which are code of the real librdmacm on top of uroce's public functions; and programs of TCP that librspreload puts on rsockets.
#
# The series that rstream and riostream run by default exchange 200,000 messages of 64 bytes and more; these tests say how many.

stream() {
	local program=$1 port=$2 server=$3 client=$4
	shift 4
	talk "$port" "$program $server $*" "$program $client $*" || return 1
	cat "$TMP/client"
	grep -Eq '^custom +[0-9]' "$TMP/client" && grep -Eq '^custom +[0-9]' "$TMP/server" || fail "no figures"
}
test_rstream_blocking() { stream rstream 7471 "" "-s 10.77.0.1" -T b -T v -S 100000 -C 10 -I 20; }
test_rstream_nonblocking() { stream rstream 7471 "" "-s uroce-1" -T n -T v -S 5000 -C 100 -I 20; }
# The client takes the end of the connection for an error, POLLHUP, when it comes together with the last message.
test_rstream_async() {
	local o="-T a -T v -S 5000 -C 100 -I 20"
	may_end_with=16 talk 7471 "rstream $o" "rstream -s 10.77.0.1 $o" && same_count 1 '^custom  *[0-9]' "$TMP/server"
}
test_rstream_resolve() { stream rstream 7471 "" "-s uroce-1" -T r -T b -S 65536 -C 10 -I 20; }
test_rstream_latency() { stream rstream 7471 "" "-s 10.77.0.1" -S 64 -C 1 -I 5000; }
test_rstream_options() { stream rstream 7500 "-b 10.77.0.1" "-s 10.77.0.1 -b 10.77.0.2" -p 7500 -f ip -B 65536 -i 0 -T b -T v -S 30000 -C 10 -I 20; }
test_rstream_large() { stream rstream 7471 "" "-s 10.77.0.1" -i 512 -B 2000000 -T v -S 1000000 -C 4 -I 5; }
test_rstream_keepalive() { stream rstream 7471 "" "-s 10.77.0.1" -k 1 -T b -S 5000 -C 100 -I 20 && same_count 1 '^Keepalive: ON' "$TMP/client"; }
test_rstream_ipv6() {
	stream rstream 7471 "-f ipv6 -b fd77::1" "-f ipv6 -s fd77::1" -S 10000 -C 10 -I 10 && stream rstream 7471 "-b ::0" "-s uroce6-1" -S 10000 -C 10 -I 10
}
test_rstream_gid() { stream rstream 7471 "-f gid -b fd77::1" "-f gid -s fd77::1" -S 10000 -C 10 -I 10; }
test_rstream_no_listener() {
	local status mode
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	for mode in b n; do
		uroce_in "$NS2" -- timeout 20 rstream -T $mode -s 10.77.0.1 >"$TMP/client" 2>&1
		status=$?
		cat "$TMP/client"
		[ $status -ne 0 ] && [ $status -ne 124 ] || { fail "status $status"; return; }
		[ $mode = n ] || grep -q 'rconnect: Connection refused' "$TMP/client" || { fail "another error"; return; }
	done
}

test_riostream_blocking() { stream riostream 7471 "" "-s 10.77.0.1" -T b -T v -S 100000 -C 10 -I 20; }
test_riostream_nonblocking() { stream riostream 7471 "" "-s uroce-1" -T n -T v -S 5000 -C 10 -I 100; }
test_riostream_async() { stream riostream 7471 "" "-s 10.77.0.1" -T a -T v -S 5000 -C 10 -I 100; }
test_riostream_options() { stream riostream 7500 "-b fd77::1" "-s fd77::1" -p 7500 -B 65536 -i 0 -f ip -S 30000 -C 10 -I 20; }
test_riostream_gid() { stream riostream 7471 "-f gid -b ::ffff:10.77.0.1" "-f gid -s ::ffff:10.77.0.1" -S 10000 -C 10 -I 10; }

# rcopy's server goes on and takes one file after another.
test_rcopy() {
	local size
	serve 7427 "$NS1" "$TMP/server" -- rcopy || return 1
	for size in 1 4096 20000001; do
		head -c $size /dev/urandom >"$TMP/file"
		uroce_in "$NS2" -- rcopy "$TMP/file" "10.77.0.1:$TMP/copy$size" || { cat "$TMP/server"; fail "client status $?, $size bytes"; return; }
		cmp "$TMP/file" "$TMP/copy$size" || { fail "the copy of $size bytes differs"; return; }
	done
	kill -0 "$server" || fail "the server has ended"
}
test_rcopy_port() {
	head -c 1000000 /dev/urandom >"$TMP/file"
	talk 7501 "rcopy -p 7501" "rcopy $TMP/file uroce-1:$TMP/copy -p 7501" goes_on && cmp "$TMP/file" "$TMP/copy"
}

# Where the library lies that puts programs of TCP on rsockets.
rspreload() {
	local lib
	for lib in /usr/lib/*/rsocket/librspreload.so /usr/lib/rsocket/librspreload.so; do
		[ ! -e "$lib" ] || { echo "$lib"; return; }
	done
	return 1
}
# preloaded PORT "SERVER" "CLIENT" [TCP]: as talk, for programs that know only TCP. That none of it was TCP is seen by what uroce counts. TCP: the server
# listens on TCP first.
preloaded() {
	local LD_PRELOAD client_options=(--counters "$TMP/counters")
	LD_PRELOAD=$(rspreload) || { fail "no librspreload.so here"; return; }
	export LD_PRELOAD
	listens_on_tcp=${4:-} talk "$1" "$2" "$3" || return 1
	cat "$TMP/client"
	awk '$1 == "rx_write_requests" && $2 > 10 { found = 1 } END { exit !found }' "$TMP/counters" || fail "nothing went by RDMA"
}
test_rspreload() { preloaded 7471 "rstream -T s -T v -I 20 -C 100 -S 5000" "rstream -T s -T v -I 20 -C 100 -S 5000 -s 10.77.0.1"; }
# The server forks for each connection, and the child goes over to RDMA.
test_rspreload_fork() {
	RDMAV_FORK_SAFE=1 preloaded 7471 "rstream -T f -I 20 -C 100 -S 5000" "rstream -T f -I 20 -C 100 -S 5000 -s 10.77.0.1" tcp
	local status=$?
	rm -f /dev/shm/sem.rsocket_fork # librdmacm leaves it there
	return $status
}
test_rspreload_iperf() {
	preloaded 5001 "iperf -s -P 1" "iperf -c 10.77.0.1 -n 20M" && grep -q '20.*MBytes' "$TMP/client"
}

# pong ADDRESS OPTIONS: datagrams. Where the peers are is agreed on over the kernel's UDP; the server goes on.
pong() {
	local a=$1 i
	shift
	background "$NS1" "$TMP/server" --counters "$TMP/counters" -- udpong -b "$a" "$@"
	for i in $(seq 100); do
		[ -z "$(in_ns "$NS1" ss -Hulan 'sport = :7174')" ] || break
		sleep 0.05
	done
	uroce_in "$NS2" -- udpong -s "$a" "$@" >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "client status $?"; return; }
	cat "$TMP/client"
	grep -Eq '^custom +[0-9]' "$TMP/client" || { fail "no figures"; return; }
	stop_servers
	awk '$1 == "rx_send_requests" && $2 >= 100 { found = 1 } END { exit !found }' "$TMP/counters" ||
		{ cat "$TMP/counters" "$TMP/server"; fail "nothing went by RDMA"; }
}
# Until the other side's address is known, messages go over UDP.
test_udpong() { pong 10.77.0.1 -C 3000 -S 1000 -T b; }
test_udpong_echo_async() { pong 10.77.0.1 -C 200 -S 64 -T e -T a; }
test_udpong_ipv6() { pong fd77::1 -C 200 -S 500 -T e -B 65536; }
