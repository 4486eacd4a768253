# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A connection that is not made is explained, on a terminal or where UROCE_LOG asks, and each cause in other words.

# explains PATTERN ARGS...: rping's client says one sentence, which fits, and names the command that finds out more. $wait: for how long it may try.
wait=20
explains() {
	local pattern=$1
	shift
	UROCE_LOG=info uroce_in "$NS2" -- timeout "$wait" rping -c -C 1 "$@" >"$TMP/client" 2>&1 && { fail "it was connected"; return; }
	grep -v '^uroce: the port is ' "$TMP/client" >"$TMP/said"
	[ "$(grep -c '^uroce: ' "$TMP/said")" = 1 ] && grep -Eq "^uroce: .*$pattern.*; 'uroce doctor --dev eth0 [0-9a-f.:]+' finds out more\$" "$TMP/said" ||
		{ cat "$TMP/client"; fail "not one sentence with '$pattern'"; }
}
test_explained_no_server() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	explains '10.77.0.1: it refuses \(REJ 8\): nobody listens there on port 7999' -a 10.77.0.1 -p 7999 || return 1
	explains 'fd77::1: it refuses \(REJ 8\): nobody listens there on port 7999' -a fd77::1 -p 7999
}
test_explained_no_program() { explains '10.77.0.1: it reports by ICMP that UDP port 4791 is closed' -a 10.77.0.1; }
test_explained_no_host() {
	explains '10.77.0.99: no host has this address' -a 10.77.0.99 || return 1
	UROCE_PORT=packet explains '10.77.0.99: no host has this address' -a 10.77.0.99
}

udp_is_dropped() {
	in_ns "$NS1" nft -f - <<<'table inet uroce_test { chain in { type filter hook prerouting priority -300; udp dport 4791 drop; }; }' || return 1
	wait=8 explains '10.77.0.1 has not answered for 5 s' -a 10.77.0.1
}
udp_is_prohibited() {
	in_ns "$NS1" nft -f - <<<'table inet uroce_test { chain in { type filter hook input priority 0; udp dport 4791 reject with icmpx admin-prohibited; }; }' || return 1
	explains '10.77.0.1: it reports by ICMP that a firewall prohibits it' -a 10.77.0.1
}
mtu_differs() {
	ip -n "$NS2" link set eth0 mtu 4200 || return 1
	explains 'path MTU differs: here 4096, there at most 1024' -a 10.77.0.1
}
# with_server FUNCTION: what it changes is undone, whatever came of it.
with_server() {
	local status
	needs nft nftables || return
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	"$1"
	status=$?
	in_ns "$NS1" nft delete table inet uroce_test 2>/dev/null
	ip -n "$NS2" link set eth0 mtu 1500
	return $status
}
test_explained_dropped() { UROCE_PORT=udp with_server udp_is_dropped; }
test_explained_prohibited() { UROCE_PORT=udp with_server udp_is_prohibited; }
test_explained_mtu() { with_server mtu_differs; }

# on_terminal COMMAND...: its stderr, and the rest, is a terminal's.
on_terminal() { in_ns "$NS2" python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' timeout -k 5 60 "$UROCE" run --dev eth0 -- "$@" </dev/null; }

# Only where a human reads: a program's log has what the program writes, and UROCE_LOG decides whatever stderr is.
test_explained_to_humans() {
	local try=(rping -c -C 1 -a 10.77.0.1 -p 7999)
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	on_terminal "${try[@]}" >"$TMP/client" 2>&1
	same_count 1 '^uroce: no connection to 10.77.0.1: it refuses (REJ 8)' "$TMP/client" || return 1
	UROCE_LOG=error on_terminal "${try[@]}" >"$TMP/client" 2>&1
	same_count 0 '^uroce: ' "$TMP/client" && [ -s "$TMP/client" ] || return 1
	uroce_in "$NS2" -- "${try[@]}" >"$TMP/client" 2>&1
	same_count 0 '^uroce: ' "$TMP/client" && [ -s "$TMP/client" ]
}
