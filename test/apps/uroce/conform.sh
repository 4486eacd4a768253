# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# `uroce conform` against uroce itself: no rule is broken, over each kind of port, whether the peer is its responder or rping.

# judge OPTIONS: from the second namespace, as whoever the tests run as; the report in $TMP/verdicts.
judge() {
	in_ns "$NS2" timeout -k 5 60 "${as[@]}" "$UROCE" conform --dev eth0 --quiet 40 --capture "$TMP/conform.pcapng" "$@" >"$TMP/verdicts" 2>&1
}

# verdicts OBEYED UNTESTED: at least, and at most this many; none broken, and each rule of the list counted once.
verdicts() {
	local total obeyed broken untested left
	read -r total obeyed broken untested left < <(sed -nE 's/.*: ([0-9]+) rules: ([0-9]+) obeyed, ([0-9]+) broken, ([0-9]+) untested(, ([0-9]+) not played \(.*\))?; .*/\1 \2 \3 \4 \6/p' "$TMP/verdicts")
	[ "$total" = "$(rules .)" ] && [ $((obeyed + broken + untested + left)) = "$total" ] || { tail -n 1 "$TMP/verdicts"; fail "the counts do not add up to $(rules .)"; return; }
	[ "$broken" = 0 ] && [ "$obeyed" -ge "$1" ] && [ "$untested" -le "$2" ] || { grep -A4 -E '^(broken|untested)' "$TMP/verdicts"; fail "$obeyed obeyed, $broken broken, $untested untested"; }
}

# responder PORT [OPTIONS]: in the first namespace.
responder() {
	UROCE_PORT=$1 ip netns exec "$NS1" timeout -k 5 90 "${as[@]}" "$UROCE" conform --serve --dev eth0 --counters "$TMP/counters" </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
	wait_listening "$NS1" "$RPING" "$server" || { cat "$TMP/server"; fail "the responder does not listen"; }
}

# rules [-v] TEXT: how many have it in their line of the list, or have not.
rules() { "$UROCE" conform --list | grep -c "$@"; }

# The peer that offers everything obeys everything, and the capture that is kept can be read.
conforms() {
	responder "$1" || return 1
	judge "$2" || { cat "$TMP/verdicts" "$TMP/server"; fail "the judge ends with an error"; return; }
	verdicts "$(rules -v "only with --long")" 0 || return 1
	"$UROCE" pcap list "$TMP/conform.pcapng" >"$TMP/list" || fail "the capture"
	"$UROCE" conform --file "$TMP/conform.pcapng" "$2" >"$TMP/verdicts" 2>&1 && [ "$(grep -c ^obeyed "$TMP/verdicts")" -ge 80 ] && ! grep -q ^broken "$TMP/verdicts" || { grep -A3 ^broken "$TMP/verdicts"; tail -n 3 "$TMP/verdicts"; fail "the recording does not say the same"; return; }
	"$UROCE" conform --file "$TMP/conform.pcapng" 192.0.2.9 >"$TMP/verdicts" 2>&1
	[ $? -eq 1 ] && grep -q 'shows nothing of 192.0.2.9 that can be judged' "$TMP/verdicts" || { cat "$TMP/verdicts"; fail "a host that is not there"; }
}
test_conform_udp() { conforms udp 10.77.0.1; }
test_conform_packet() { conforms packet fd77::1; }

# rping cannot be asked for all of it.
test_conform_rping() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P -a 0.0.0.0 || return 1
	judge --html "$TMP/page" 10.77.0.1 || { grep -A4 ^broken "$TMP/verdicts"; fail "the judge ends with an error"; return; }
	verdicts "$(rules -v -e "needs .uroce conform --serve" -e "only with --long")" "$(rules "needs .uroce conform --serve")" && grep -q '<td>obeyed</td>' "$TMP/page"
}

# A peer that says everything twice has said what it should not.
test_conform_broken() {
	UROCE_FAULT='dup=100%,dir=tx' responder udp || return 1
	! judge --rule gap-nak-once 10.77.0.1 || fail "a peer that says all twice obeys"
	grep -q '^broken   RC gap-nak-once' "$TMP/verdicts" && grep -q '^ *seen: *RC_ACK: NAK PSN sequence error' "$TMP/verdicts" || { cat "$TMP/verdicts"; fail "what was seen"; return; }
	judge --rule gap-nak-once --json --html "$TMP/page" 10.77.0.1
	grep -q '<td>broken</td>' "$TMP/page" && python3 - "$TMP/verdicts" "$(rules .)" <<-'PY'
		import json, sys
		r = json.load(open(sys.argv[1]))
		assert r["total"] == int(sys.argv[2]) == r["obeyed"] + r["broken"] + r["untested"] + r["not_played"], r
		assert len(r["rules"]) == r["broken"] == 1 and r["rules"][0]["rule"] == "gap-nak-once" and r["rules"][0]["packets"], r
	PY
}
# Where the capture cannot be written, it is said what to do.
test_conform_no_capture() {
	in_ns "$NS2" timeout 20 "${as[@]}" "$UROCE" conform --dev eth0 --capture /proc/no/file 10.77.0.1 >"$TMP/out" 2>&1
	[ $? -eq 1 ] && grep -q 'capture /proc/no/file cannot be written (.*): name another file with --capture$' "$TMP/out" || { cat "$TMP/out"; fail "no advice"; }
}
