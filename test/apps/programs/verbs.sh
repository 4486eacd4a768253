# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of libibverbs: the device, multicast, memory windows. The pingpongs and perftest are rows of test/apps/matrix.

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
# Two threads of one process, each with a CQ and a QP of its own, in all the ways in which they wait for one another.
test_threads_of_one_process() {
	gcc -D_GNU_SOURCE= -O2 -o "$TMP/pairbench" "$here/../bench/pairbench.c" -libverbs -pthread || return 1
	uroce_in "$NS1" -- "$TMP/pairbench" -n 500 >"$TMP/out" || { cat "$TMP/out"; fail "pairbench"; return; }
	cat "$TMP/out"
	[ "$(awk '$2 ~ /^us=[0-9.]+$/ { print $1 }' "$TMP/out" | xargs)" = 'memory both lat cq' ] || fail "a mode is missing"
}
# Threads with QPs of their own, within one process and to the threads of another host's, with all that threadbench can vary.
test_threads_and_their_figures() {
	local options
	gcc -D_GNU_SOURCE= -O2 -o "$TMP/threadbench" "$here/../bench/threadbench.c" -libverbs -pthread || return 1
	while read -r options; do
		# shellcheck disable=SC2086
		if [ -z "${options##self*}" ]; then
			uroce_in "$NS1" -- "$TMP/threadbench" -t 0.1 ${options#self} self >"$TMP/out" || { cat "$TMP/out"; fail "threadbench $options"; return; }
		else
			listens_on_tcp=yes serve 7303 "$NS1" "$TMP/server" -- "$TMP/threadbench" server || return 1
			uroce_in "$NS2" -- "$TMP/threadbench" -t 0.1 $options client 10.77.0.1 >"$TMP/out" || { cat "$TMP/out"; fail "threadbench $options"; return; }
			served "$TMP/server" || return 1
		fi
		cat "$TMP/out"
		grep -qE '^threads=[0-9]+ .* mps=[0-9]*\.[0-9]*[1-9][0-9]* .* ms_gib=[0-9.e+]+ client_waits=[0-9]+ server_waits=([0-9]+|-)$' "$TMP/out" ||
			{ fail "threadbench $options: no figures"; return; }
	done <<-'END'
		self -T 2
		self -T 3 -q 5 -c
		self -T 2 -D -v
		self -T 2 -x -o send
		-T 2 -o write -s 65536 -d 16
		-T 2 -o send -c -q 3
		-T 2 -o read -q 100
	END
}
# Two processes of one host, and what their connections cost while nobody uses them: little, if any CPU can be had at all.
test_idle_connections() {
	gcc -D_GNU_SOURCE= -O2 -o "$TMP/idlebench" "$here/../bench/idlebench.c" -lrdmacm -libverbs || return 1
	uroce_in "$NS1" -- "$TMP/idlebench" 10.77.0.1 -n 50 -t 1 >"$TMP/out" || { cat "$TMP/out"; fail "idlebench"; return; }
	cat "$TMP/out"
	grep -qE '^connections=50 server_ms=[0-9.]+ client_ms=[0-9.]+ server_kib=[0-9.]+ client_kib=[0-9.]+$' "$TMP/out" || { fail "no figures"; return; }
	# A thread that spins takes a second, or its share of it.
	awk -F '[= ]' '{ exit !($4 < 300 && $6 < 300) }' "$TMP/out" || fail "they are not idle"
}
# gid_index NS ADDRESS/LEN
gid_index() { in_ns "$1" "$UROCE" info --dev eth0 | awk -v a="$2" '$NF == a && $1 ~ /^[0-9]+$/ { print $1; exit }'; }
# mcast INDEX GROUP: one receiver on the other host, two beside the sender.
mcast() {
	local i ns k
	gcc -Wall -Werror -o "$TMP/mcast" "$here/src/mcast.c" -libverbs || return 1
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

test_memory_windows() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/windows" "$here/src/windows.c" -lrdmacm -libverbs || return 1
	serve 7321 "$NS1" "$TMP/server" -- "$TMP/windows" || return 1
	uroce_in "$NS2" -- "$TMP/windows" 10.77.0.1 >"$TMP/client" || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	same_count 1 '^window of type 2' "$TMP/client" && same_count 1 '^window of type 1' "$TMP/client" && same_count 1 '^dead key' "$TMP/client"
}

# counted FILE COUNTER
counted() { awk -v c="$2" '$1 == c { n = $2 } END { print n + 0 }' "$1"; }

# Two processes of one host that share a CPU: each waits for the other to be let in, and nothing is lost on the way. A busy machine may hold up one of
# them for so long that its peer asks again.
one_cpu() {
	local cpu f again=0
	cpu=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
	serve 18515 "$NS1" "$TMP/server" --counters "$TMP/counters1" -- taskset -c "$cpu" "$1" -R -F -s 65536 -t 16 -n 2000 || return 1
	uroce_in "$NS1" --counters "$TMP/counters2" -- taskset -c "$cpu" "$1" -R -F -s 65536 -t 16 -n 2000 10.77.0.1 >"$TMP/client" 2>&1 ||
		{ cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	for f in "$TMP/counters1" "$TMP/counters2"; do
		cat "$f"
		[ "$(counted "$f" tx_dropped)" -eq 0 ] || { fail "packets were dropped"; return; }
		again=$((again + $(counted "$f" tx_retransmits)))
	done
	[ $((again * 1000)) -lt 128000 ] || fail "$again of 128000 packets were sent again"
}
test_local_writes_on_one_cpu() { one_cpu ib_write_bw; }
test_local_reads_on_one_cpu() { one_cpu ib_read_bw; }
