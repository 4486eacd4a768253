# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Memory that vanishes under its regions: a peer cannot end the process by it (vanished.c).

# vanished NS OPTIONS...: the victim in NS1, its peer in NS; the victim survives all rows, and its counters say how often something was missing.
vanished() {
	local ns=$1
	shift
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/vanished" "$here/src/vanished.c" -lrdmacm -libverbs || return 1
	serve 7322 "$NS1" "$TMP/server" --counters "$TMP/counters" "$@" -- "$TMP/vanished" || return 1
	uroce_in "$ns" "$@" -- "$TMP/vanished" 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "peer"; return; }
	served "$TMP/server" || { cat "$TMP/server"; return 1; }
	grep -q '^survived' "$TMP/server" || { cat "$TMP/server"; fail "victim"; return; }
	grep -Eq '^ *memory_gone +[1-9]' "$TMP/counters" || { cat "$TMP/counters"; fail "memory_gone"; }
}
test_vanished() { vanished "$NS2"; }
test_vanished_on_one_host() { vanished "$NS1"; }
test_vanished_port_udp() { vanished "$NS2" --port udp; }
test_vanished_port_packet() { vanished "$NS2" --port packet; }
test_vanished_port_dpdk() { vanished "$NS2" --port dpdk; }
