# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between --suite: cases with verdicts, between hosts that it makes, and between those that are there. reports and three_hosts are those of between.sh.

# judged STATUS [OPTIONS]: the status. What it prints is in $TMP/between, messages in $TMP/between.err.
judged() {
	local status=$1 got
	shift
	ip netns exec "$NS1" timeout -k 5 100 "$UROCE" between "$@" >"$TMP/between" 2>"$TMP/between.err" </dev/null
	got=$?
	[ $got -eq "$status" ] && return 0
	cat "$TMP/between" "$TMP/between.err"
	fail "status $got: $*"
}

test_between_suite_judges_uroce() {
	local case
	for case in write-middle-lost send-last-lost read-first-lost read-request-lost write-nak-lost duplicate-write counters-duplicates; do
		judged 0 --suite lumina --only $case --json || return 1
		python3 - "$TMP/between" $case <<-'PYTHON' || { cat "$TMP/between"; fail "the verdict on $case"; return; }
			import json, sys
			r = json.load(open(sys.argv[1]))
			c, = r["cases"]
			f = c["facts"]
			lost = sys.argv[2].endswith("lost")
			sys.exit(not (c["case"] == sys.argv[2] and c["verdict"] in ("pass", "note") and c["did"] and bool(c["why"]) == (c["verdict"] == "note")
			              and f["client.status"] == f["server.status"] == 0 and "client.tx_retransmits" in f and f["server.rx_roce_packets"] > 0
			              and f["losses"] >= lost))
		PYTHON
	done
}

# Each verdict, of cases of one's own; the counters are those of the case that runs.
test_between_suite_of_ones_own() {
	local suite=$TMP/suite
	mkdir "$suite"
	cat >"$suite/b-note.case" <<-'CASE'
		title   a packet is lost
		run     ib_write_bw -F -Q 1 -n 10 -s 8192
		rule    drop 2to1 psn=+20 iteration=1
		demand  losses = 1 : not one loss
		demand  server.rx_roce_packets >= 70 : the server counts too few packets
		demand  client.rx_roce_packets < 70 : the client counts what is the server's
		prefer  repeats = 0 : something was repeated
	CASE
	printf 'title t\nrun ib_write_bw -F -n 10 -s 8\nrule drop 2to1 psn=+2000\n' >"$suite/c-untested.case"
	printf 'title t\nrun sh -c "echo begins; exit 3"\nseconds 5\n' >"$suite/d-fail.case"
	echo 'no case' >"$suite/ignored"
	judged 1 --suite "$suite" || return 1
	grep -q '^note .*b-note .*WRITE_MIDDLE dropped: ' "$TMP/between" && grep -q '^ *something was repeated$' "$TMP/between" &&
		grep -q "^untested .*c-untested " "$TMP/between" && grep -q '^fail .*d-fail' "$TMP/between" &&
		grep -q "the server's program ended with status 3.*begins" "$TMP/between" &&
		grep -q '^0 passed, 1 with a note, 1 failed, 1 untested$' "$TMP/between" || { cat "$TMP/between" "$TMP/between.err"; fail "the verdicts"; return; }
	judged 0 --suite "$suite" --only 'b-*' || return 1
	judged 2 --suite "$suite" --only nothing || return 1
	judged 0 --suite "$suite" --list || return 1
	[ "$(wc -l <"$TMP/between")" -eq 3 ] || { cat "$TMP/between"; fail "the list"; return; }
	echo 'rule lose' >>"$suite/b-note.case"
	judged 2 --suite "$suite" && grep -q "rule 'lose' is not understood" "$TMP/between.err" || { fail "a wrong rule"; return; }
	echo 'demand x' >"$suite/b-note.case"
	judged 2 --suite "$suite" && grep -q 'case b-note, line 1 is not understood' "$TMP/between.err" || { fail "a wrong case"; return; }
	judged 2 --suite "$TMP/nothing" && grep -q 'neither a suite nor a directory' "$TMP/between.err" || fail "no suite"
}

# Hosts that are there: what starts sh there is the user's; what a program prints, and its words, come through as they are.
test_between_suite_other_hosts() {
	local there
	three_hosts || return 1
	there=(--run1 "ip netns exec $BT1 $UROCE run --dev eth0 --" --run2 "ip netns exec $BT2 $UROCE run --dev eth0 --" --address1 10.78.0.1)
	ip netns exec "$BTM" timeout -k 5 60 "$UROCE" between --suite lumina --only write-last-lost "${there[@]}" --options1 '-x 0' --options2 '-x 0' e1 e2 </dev/null >"$TMP/between" 2>&1 &&
		grep -q '^pass .*WRITE_LAST dropped: ' "$TMP/between" || { cat "$TMP/between"; fail "a case between other hosts"; return; }
	echo "mark 2to1 psn=+0" >"$TMP/rules"
	ip netns exec "$BTM" timeout -k 5 60 "$UROCE" between --script "$TMP/rules" --allow-unused --port 18515 "${there[@]}" e1 e2 -- ib_write_bw -F -n 10 -s 8 -- \
		sh -c 'echo "it'"'"'s {peer} $UROCE_PEER"; ib_write_bw -F -n 10 -s 8 "{peer}"' </dev/null >"$TMP/between" 2>&1 &&
		grep -q "^2| it's 10.78.0.1 10.78.0.1\$" "$TMP/between" || { cat "$TMP/between"; fail "a script between other hosts"; return; }
	ip netns exec "$BTM" timeout -k 5 30 "$UROCE" between --script /dev/null --seconds 1 --start-after 10ms "${there[@]}" e1 e2 -- sleep 78 -- sleep 78 </dev/null >"$TMP/between" 2>&1
	[ $? -eq 124 ] || { cat "$TMP/between"; fail "the time is over"; return; }
	! pgrep -x -f 'sleep 78' || fail "programs are left"
}

# A signal ends it with its own status, and what the programs had for themselves goes.
test_between_suite_ended_by_a_signal() {
	local suite=$TMP/ended pid i
	mkdir "$suite" "$suite/tmp"
	printf 'title t\nrun echo begun >>"%s/begun"; sleep 60;:\nseconds 60\n' "$suite" | tee "$suite/a.case" >"$suite/b.case"
	TMPDIR=$suite/tmp ip netns exec "$NS1" timeout -k 5 30 "$UROCE" between --suite "$suite" --native </dev/null >"$TMP/between" 2>"$TMP/between.err" &
	pid=$!
	servers+=("$pid")
	for i in $(seq 100); do
		[ ! -s "$suite/begun" ] || break
		sleep 0.1
	done
	[ -n "$(ls -A "$suite/tmp")" ] || { fail "case $i has not begun"; return; }
	kill -INT "$(pgrep -P "$pid" -x uroce)"
	wait "$pid"
	[ $? -eq 130 ] && grep -q 'ended by a signal before all cases had been tried' "$TMP/between.err" || { cat "$TMP/between.err"; fail "its status"; return; }
	[ -z "$(ls -A "$suite/tmp")" ] && [ "$(wc -l <"$suite/begun")" -eq 1 ] || { ls -A "$suite/tmp"; fail "what is left"; }
}

# What has no meaning alone.
test_between_suite_usage() {
	judged 2 --suite lumina e1 e2 && judged 2 --suite lumina --run1 true e1 e2 && judged 2 --suite lumina --run1 true --run2 true e1 e2 &&
		judged 2 --suite lumina --run1 true --run2 true --address1 x && judged 2 --run1 true --run2 true --address1 x e1 e2 &&
		judged 2 --script /dev/null --run1 true --run2 true --address1 x e1 && judged 2 --suite lumina --port 0 &&
		judged 2 --suite lumina --seed 2 && judged 2 --suite lumina --realtime && judged 2 --suite lumina --list --json &&
		judged 2 --suite lumina --queue 1KB && grep -q 'takes rules and limits from its cases: of the other' "$TMP/between.err" &&
		judged 2 --suite lumina --rule drop && judged 2 --suite lumina --ipv6 && judged 2 --only x e1 e2
}
