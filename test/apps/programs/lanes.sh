# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Devices with several lanes: UROCE_LANES=2. With UROCE_SPREAD=cq the QPs of a program with one CQ are in lane 1. All tests of this folder can be run so.

test_lanes_settings() {
	local setting text failed=0
	while IFS='|' read -r setting text; do
		in_ns "$NS1" env "$setting" "$UROCE" info --dev eth0 >"$TMP/out" 2>&1 && { cat "$TMP/out"; fail "$setting: status 0"; failed=1; }
		grep -q "$text" "$TMP/out" || { cat "$TMP/out"; fail "$setting: not '$text'"; failed=1; }
	done <<-'TABLE'
		UROCE_LANES=99|lanes is '99': it must be a number from 1 to 16
		UROCE_LANES=0|lanes is '0': it must be a number from 1 to 16
		UROCE_SPREAD=even|spread is 'even': it must be one of thread cq vector
	TABLE
	in_ns "$NS1" env UROCE_LANES=3 timeout 20 "$UROCE" run --dev eth0 -- ibv_devinfo -v </dev/null >"$TMP/out" 2>&1
	grep -q 'num_comp_vectors:[[:space:]]*3$' "$TMP/out" || { cat "$TMP/out"; fail "no completion vector for each lane"; failed=1; }
	return $failed
}

# Each of two threads is in a lane of its own, on both sides. What is shown of the process is the sum of both.
test_lanes_of_threads() {
	local -x UROCE_LANES=2
	local messages
	gcc -D_GNU_SOURCE= -O2 -o "$TMP/threadbench" "$here/../bench/threadbench.c" -libverbs -pthread || return 1
	listens_on_tcp=yes serve 7303 "$NS1" "$TMP/server" --counters "$TMP/counters" -- "$TMP/threadbench" server || return 1
	uroce_in "$NS2" -- "$TMP/threadbench" -T 2 -t 2 client 10.77.0.1 >"$TMP/client" 2>&1 &
	client=$!
	servers+=("$client")
	for _ in $(seq 100); do
		in_ns "$NS1" "$UROCE" info --dev eth0 >"$TMP/out" 2>&1
		! grep -Eq '^  [0-9]+  slot [0-9]+, [0-9]+  port udp$' "$TMP/out" || break
		sleep 0.05
	done
	grep -Eq '^  [0-9]+  slot [0-9]+, [0-9]+  port udp$' "$TMP/out" || { cat "$TMP/client" "$TMP/server" "$TMP/out"; fail "not two slots of one process"; return; }
	[ "$(grep -Ec '^  [0-9]+  slot' "$TMP/out")" -eq 1 ] || { cat "$TMP/out"; fail "more than one process"; return; }
	wait "$client" || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	messages=$(awk '$1 == "rx_write_requests" { print $2 }' "$TMP/counters")
	[ "${messages:-0}" -gt 1000 ] || { cat "$TMP/counters"; fail "the counters lack the lanes' requests"; return; }
}

# Queues that several lanes use, more threads than lanes, more lanes than threads, and messages from one lane to another.
test_lanes_and_queues() {
	local lanes options
	gcc -D_GNU_SOURCE= -O2 -o "$TMP/threadbench" "$here/../bench/threadbench.c" -libverbs -pthread || return 1
	while read -r lanes options; do
		# shellcheck disable=SC2086
		UROCE_LANES=$lanes uroce_in "$NS1" -- "$TMP/threadbench" -t 0.2 $options self >"$TMP/out" 2>&1 || { cat "$TMP/out"; fail "$lanes lanes: threadbench $options"; return; }
		! grep -q 'mps=0.0000' "$TMP/out" || { cat "$TMP/out"; fail "$lanes lanes: threadbench $options: nothing was carried"; return; }
	done <<-'END'
		2 -T 2
		2 -T 2 -x -o send -s 5000
		2 -T 2 -x -s 65536 -d 16 -o read
		2 -T 3 -D -q 4
		2 -T 2 -D -c -q 3
		3 -T 2 -D -c -s 65536 -d 16
		5 -T 4 -v -q 2
		16 -T 5
	END
}

test_lanes_rping() {
	local -x UROCE_LANES=2 UROCE_SPREAD=cq
	local side
	serve "$RPING" "$NS1" "$TMP/server" --capture "$TMP/server.pcapng" -- rping -s -C 20 -S 10000 || return 1
	uroce_in "$NS2" --capture "$TMP/client.pcapng" -- rping -c -V -C 20 -S 10000 -a 10.77.0.1 && served "$TMP/server" || return 1
	for side in server client; do
		"$UROCE" pcap check "$TMP/$side.pcapng" >"$TMP/out" && grep -q ' 1 connection: 0 errors, 0 warnings' "$TMP/out" || { cat "$TMP/out"; fail "what $side recorded"; return; }
		"$UROCE" pcap "$TMP/$side.pcapng" >"$TMP/out" && grep -q '20 READs' "$TMP/out" && grep -q '20 WRITEs' "$TMP/out" || { cat "$TMP/out"; fail "what is said of $side's"; return; }
	done
}

# Its counters are written, though other threads take the locks of all lanes when it ends.
test_lanes_end() {
	local lanes
	gcc -D_GNU_SOURCE= -O2 -Wall -Wextra -Werror -o "$TMP/lanes_end" "$here/src/lanes_end.c" -libverbs -pthread || return 1
	for lanes in 1 3; do
		rm -f "$TMP/counters"
		UROCE_LANES=$lanes uroce_in "$NS1" --counters "$TMP/counters" -- "$TMP/lanes_end" "$TMP/wire.pcapng" >"$TMP/out" 2>&1 || { cat "$TMP/out"; fail "$lanes lanes: status $?"; return; }
		grep -qx fine "$TMP/out" || { cat "$TMP/out"; fail "$lanes lanes"; return; }
		grep -q '^lock_waits *[1-9]' "$TMP/counters" || { cat "$TMP/out" "$TMP/counters"; fail "$lanes lanes: no counters"; return; }
	done
}
