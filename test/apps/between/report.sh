# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between: what its report says of connections, losses, delays, congestion and failures.

# The CM tells which QPs belong together, and how it ended; each loss is one that was made good.
test_between_report_connections() {
	three_hosts && join --json --rule 'drop 2to1 opcode=SEND_ONLY nth=3 times=1' --rule 'delay 1to2 opcode=ACK delay=5ms nth=2 times=1' || return 1
	serve "$RPING" "$BT1" "$TMP/server" -- rping -s -C 20 || return 1
	uroce_in "$BT2" -- rping -c -C 20 -a 10.78.0.1 || { fail "rping"; return; }
	leave || return 1
	reports '[c["known_by"] for c in r["connections"] if c["state"] == "closed"] == ["cm"]' &&
		reports 'all(s["qpn"] > 1 for c in r["connections"] for s in c["sides"]) and r["rejected"] == 0' &&
		reports 'len({f["connection"] for f in r["flows"] if f["qpn"] > 1}) == 1 and all(f["ending"] == "closed" for f in flows if f["qpn"] > 1)' &&
		reports 'r["delays_exceeded"]["rules"]["n"] == r["done"]["delayed"] == 1'
}

# Each loss was made good by what was lost alone; where a host is late the window may be one packet, which nothing follows. No more are open at
# a time than the report follows: 64.
test_between_report_losses() {
	three_hosts && join --json --rule 'drop 2to1 opcode=WRITE_MIDDLE iteration=1 chance=3%' || return 1
	serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 65536 -n 100 -t 16 -Q 1 || return 1
	uroce_in "$BT2" -- ib_write_bw -s 65536 -n 100 -t 16 -Q 1 10.78.0.1 || { fail "the client"; return; }
	leave || return 1
	reports 'r["done"]["dropped"] > 20 and sum(sum(f["losses"]["recovery"].values()) for f in r["flows"]) == r["done"]["dropped"]' &&
		reports 'sum(sum(f["losses"]["prompted_by"].values()) for f in r["flows"]) == r["done"]["dropped"]' &&
		reports 'sum(f["losses"]["recovery"]["selective"] for f in flows) > 20' &&
		reports 'sum(f["losses"]["recovery"][k] for f in flows for k in ("selective", "nothing_followed")) > r["done"]["dropped"] * 0.9' &&
		reports 'all(s["min_ns"] <= s["median_ns"] <= s["p99_ns"] <= s["max_ns"] for f in flows for s in f["losses"].values() if s.get("n"))'
}

# The other host goes away: repetitions until the retries are exhausted, which the report says in words.
test_between_report_failure() {
	three_hosts && join --rule 'drop 2to1 opcode=WRITE_MIDDLE msg=5' || return 1
	serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 8192 -n 20 -Q 1 -u 10 || return 1
	uroce_in "$BT2" -- ib_write_bw -s 8192 -n 20 -Q 1 -u 10 10.78.0.1 && { fail "the client does not fail"; return; }
	sleep 1
	leave || return 1
	grep -qE 'failed: PSN [0-9]+ was repeated [0-9]+ times, the last time after .*, and never acknowledged' "$TMP/between" || fail "no reason"
}

# Times in the queue, and CNPs, of which two may come at one time where the cable was not scheduled.
test_between_report_congestion() {
	three_hosts && join --json --rate 200Mbit --queue 100KB --mark-at 20KB || return 1
	serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 65536 -n 200 -Q 1 || return 1
	uroce_in "$BT2" -- ib_write_bw -s 65536 -n 200 -Q 1 10.78.0.1 || { fail "the client"; return; }
	leave || return 1
	reports 'r["delays_exceeded"]["queue"]["n"] > 5000 and r["delays_exceeded"]["queue"]["max_ns"] > 0' &&
		reports 'sum(f["congestion"]["cnps"] for f in flows) == sum(f["cnps"] for f in r["flows"] if f["responses"]) > 1' &&
		reports 'any(f["congestion"]["mark_to_cnp"]["n"] and "cnp_gap_min_ns" in f["congestion"] for f in flows)'
}
