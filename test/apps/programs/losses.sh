# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What losses cost, where many connections carry short messages between two busy hosts.

# total NAME FILES...: of a counter.
total() { local name=$1; shift; awk -v name="$name" '$1 == name { n += $2 } END { print n + 0 }' "$@"; }

# An answer that is late looks like one that is lost, and both hosts are late here: two busy loops share the CPUs with them. Each loses so many
# packets, one in a hundred, and then no more. All of this has more priority than what else the machine does, so that it is the two loops that make the
# hosts late.
test_losses_of_many_connections() {
	local status
	own_program many || return 1
	nice_session -10
	on_exit "nice_session 0"
	losses_of_many
	status=$?
	nice_session 0
	return $status
}

# Where the kernel shares the CPUs among sessions first (sched(7)), nice counts within one of them only.
nice_session() { [ ! -w /proc/self/autogroup ] || echo "$1" >/proc/self/autogroup; }

losses_of_many() {
	local first=(nice -n -10) lost=400 i again
	for i in 1 2; do
		"${first[@]}" timeout 60 sh -c 'while :; do :; done' &
		servers+=($!)
		on_exit "stop $!"
	done
	serve 7341 "$NS1" "$TMP/server" --fault "drop tx chance=1% times=$lost" --counters "$TMP/server.counters" -- "${first[@]}" "$TMP/many" || return 1
	uroce_in "$NS2" --fault "drop tx chance=1% times=$lost" --counters "$TMP/client.counters" -- "${first[@]}" "$TMP/many" 10.77.0.1 8 >"$TMP/client" 2>&1 ||
		{ cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	cat "$TMP/client"
	grep -E '^(fault_dropped|tx_re|tx_probes|local_ack)' "$TMP/server.counters" "$TMP/client.counters"
	[ "$(total fault_dropped "$TMP"/{server,client}.counters)" = $((2 * lost)) ] || { fail "the losses have not come to their end"; return; }
	again=$(total tx_retransmits "$TMP"/{server,client}.counters)
	[ "$again" -lt $((4 * lost)) ] || { fail "$again packets were sent again for $((2 * lost)) that were lost"; return; }
	awk '/^within the last second/ { seen = 1; if ($6 + 0 < 100 || $9 > $6 / 100) bad = 1 } END { exit bad || !seen }' "$TMP/client" ||
		fail "the losses are over, and packets are still sent again"
}

# The first packet of a connection is missed by what the handshake took, and not by the ACK timer of half a second.
test_losses_of_the_first_packet() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -C 3 || return 1
	uroce_in "$NS2" --fault 'drop tx opcode=RC_SEND_ONLY nth=1' --counters "$TMP/counters" -- rping -c -C 3 -a 10.77.0.1 ||
		{ cat "$TMP/server"; fail "client status $?"; return; }
	served "$TMP/server" || return 1
	grep -E '^(fault_dropped|tx_re|tx_probes|local_ack)' "$TMP/counters"
	same_count 1 '^fault_dropped *1$' "$TMP/counters" && ! grep -Eq '^local_ack_timeout_err +[1-9]' "$TMP/counters" || fail "the ACK timer expired"
}
