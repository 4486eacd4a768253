# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between --tell: rules and limits that change while frames pass, and who may change them.

# named: joins the two hosts under a name of this run's own, which is $called.
named() {
	called=test-$$
	three_hosts && join --name "$called" "$@"
}

tells() { "$UROCE" between --tell "$called" "$@" >"$TMP/told" 2>&1; }

# told STATUS SAYS REQUEST...
told() {
	local status=$1 says=$2 got
	shift 2
	tells "$@"
	got=$?
	[ $got -eq "$status" ] && [ "$(wc -l <"$TMP/told")" -eq 1 ] && grep -q -- "$says" "$TMP/told" || { cat "$TMP/told"; fail "status $got, or '$says' is not said: $*"; }
}

# A rule that comes between two runs of a program acts on the second, and one that goes on none after it.
test_between_told_rules() {
	named --json --rule 'drop 2to1 psn=+3 iteration=1 times=1' || return 1
	told 0 '^ok: rule 1 is deleted$' delete 1 && told 0 '^ok: rule 2: drop' 'add drop 2to1 opcode=WRITE_LAST msg=3 iteration=1' || return 1
	writes || return 1
	told 0 '; 1 dropped; rule 2, applied 1 time: drop 2to1 opcode=WRITE_LAST' status && told 0 '^ok: 1 rule is deleted$' clear || return 1
	writes || return 1
	told 0 '"hits":1,"deleted":true' --json status && told 0 '^ok: it ends$' end || return 1
	# shellcheck disable=SC2154 # of join
	wait "$between" || { cat "$TMP/between.err"; fail "it has not ended well"; return; }
	reports '[(x["number"], x["hits"], x["deleted"]) for x in r["rules"]] == [(1, 0, True), (2, 1, True)] and len(events) == 1 and events[0]["rule"] == 2'
	[ ! -e "/run/uroce/between-$called" ] || fail "its socket is left"
}

# The cable is cut while a program runs, which survives; a rate that comes holds the next one, and goes.
test_between_told_partition_and_rate() {
	named --json || return 1
	serve "$RPING" "$BT1" "$TMP/server" -- stdbuf -oL rping -s -v -C 10000 || return 1
	ip netns exec "$BT2" timeout 60 "$UROCE" run --dev eth0 -- rping -c -C 10000 -a 10.78.0.1 </dev/null >"$TMP/client" 2>&1 &
	local client=$!
	servers+=("$client")
	until_says "$TMP/server" '^server ping data' || return 1
	told 0 '^ok: rule 1: drop 2to1 for=200ms$' partition 2to1 for=200ms || return 1
	wait "$client" || { cat "$TMP/client"; fail "the client did not survive"; return; }
	told 0 '^ok: rate' rate 80Mbit queue=1MB mark-at=900KB || return 1
	copy_tcp_within 1 10 || return 1
	told 0 '^ok: rate none$' rate none || return 1
	leave || return 1
	reports 'r["rules"][0]["hits"] > 0 and r["done"]["dropped"] == r["rules"][0]["hits"]'
}

# copy_tcp_within SECONDS SECONDS: ten megabytes take longer than the first, and less than the second.
copy_tcp_within() {
	local start=${EPOCHREALTIME/./} took
	copy_tcp 10.78.0.1 || { fail "TCP"; return; }
	took=$((${EPOCHREALTIME/./} - start))
	[ $took -gt $(($1 * 1000000)) ] && [ $took -lt $(($2 * 1000000)) ] || fail "it took $took us"
}

test_between_told_refusals() {
	local status says args
	named || return 1
	while IFS='|' read -r status says args; do
		# shellcheck disable=SC2086
		told "$status" "$says" $args || return 1
	done <<-TABLE
		1|rule 'lose' is not understood at 'lose'|add lose
		1|at 'colour=5': conditions are 1to2, 2to1 or both and opcode=|add drop colour=5
		1|give one of add RULE|add
		1|give one of add RULE|clear 5
		1|there is no rule '7'|delete 7
		1|there is no rule '1x'|delete 1x
		1|needs its length|partition 1to2
		1|is not understood at 'nonsense for|partition nonsense for=1s
		1|the rate is not understood|rate 5
		1|the rate is not understood|rate none queue=5KB
		1|the rate is not understood|rate 1Gbit queue=2GB
		1|the rate is not understood|rate 1Gbit pause-at=0KB
		1|the rate is not understood|rate 1Gbit pause=9
		1|the rate is not understood|rate none pause=link
		0|^ok: rate 1Gbit|rate 1Gbit mark-at=5KB:9KB:3% pause-at=8KB:1KB pause=link
		0|^ok: rate 1Gbit|rate 1Gbit mark-at=none pause-at=none
		0|^ok: rate none|rate none
		1|there is no rule '0'|release 0
		1|needs what ends it|add hold
		2|only with the request 'status'|--json clear
		1|a rule has at most 255 characters|add drop $(printf 'psn=1 %.0s' $(seq 60))
		2|a request has at most 511 characters|add drop $(printf 'psn=1 %.0s' $(seq 90))
		1|give one of|$(printf '\033')[2J
		2|give a request|
	TABLE
	# two of one name, and names that are none
	in_ns "$BTM" timeout 10 "$UROCE" between --name "$called" e1 e2 --seconds 1 >"$TMP/out" 2>&1 && { fail "two have one name"; return; }
	grep -q 'another running one has this name' "$TMP/out" || { cat "$TMP/out"; fail "of one name"; return; }
	for args in ../x a/b .x "a b" "$(printf 'x%.0s' $(seq 65))"; do
		in_ns "$BTM" timeout 10 "$UROCE" between --name "$args" e1 e2 --seconds 1 >"$TMP/out" 2>&1 && { fail "the name '$args'"; return; }
		grep -q 'a name has at most 64' "$TMP/out" || { cat "$TMP/out"; fail "what a name is"; return; }
	done
	# another user
	chmod 755 "$TMP"
	! setpriv --reuid=65534 --regid=65534 --clear-groups "$UROCE" between --tell "/run/uroce/between-$called" status >"$TMP/out" 2>&1 || { fail "another user is heard"; return; }
	leave
}

# What listens there may be anything: one that answers half, and one that does not even take the call.
test_between_told_by_strangers() {
	timeout 40 python3 - "$UROCE" "$TMP/strange" <<-'PYTHON' || fail "what it says of them"
		import socket, subprocess, sys
		s = socket.socket(socket.AF_UNIX)
		s.bind(sys.argv[2])
		s.listen(0)
		tell = lambda: subprocess.Popen([sys.argv[1], "between", "--tell", sys.argv[2], "status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		def ends(p, says):
		    out, err = p.communicate(timeout=20)
		    assert p.returncode == 1 and not out and says in err, (p.returncode, out, err)
		p = tell()
		c, _ = s.accept()
		assert c.recv(100) == b"status"
		c.sendall(b'{"version":1,')
		c.close()
		ends(p, b"has not answered to the end")
		calls = [socket.socket(socket.AF_UNIX) for _ in range(4)]
		for c in calls:
		    c.setblocking(False)
		    c.connect_ex(sys.argv[2])
		ends(tell(), b"does not answer")
	PYTHON
}

# With programs that are not done: it is said that they were not, and by whom.
test_between_told_end_of_programs() {
	called=test-$$
	in_ns "$NS1" timeout -k 5 30 "$UROCE" between --name "$called" --native --start-after 1ms --script /dev/null -- sleep 77 -- sleep 77 </dev/null >"$TMP/out" 2>&1 &
	local run=$!
	servers+=("$run")
	for _ in $(seq 100); do ! tells end || break; sleep 0.05; done
	wait "$run"
	[ $? -eq 1 ] && grep -q 'ended by --tell before program 1 had ended' "$TMP/out" || { cat "$TMP/told" "$TMP/out"; fail "its status, or why"; }
}

# One that was killed leaves its socket, which the next of its name replaces.
test_between_told_after_a_kill() {
	named || return 1
	kill -KILL "$(pgrep -P "$between" -x uroce)"
	wait "$between"
	[ -S "/run/uroce/between-$called" ] || { fail "there is no socket"; return; }
	named && told 0 'joined for' status && leave
}

# Nonsense, silence, halves and more connections than there is room for neither stop nor occupy it.
test_between_told_hostile() {
	named --json || return 1
	python3 - "/run/uroce/between-$called" <<-'PYTHON' || { fail "the hostile client"; return; }
		import random, socket, sys, time
		random.seed(3)
		def call():
		    s = socket.socket(socket.AF_UNIX)
		    s.settimeout(20)
		    s.connect(sys.argv[1])
		    return s
		def says(data):
		    s = call()
		    try:
		        s.sendall(data)
		        s.shutdown(socket.SHUT_WR)
		        answer = b""
		        while more := s.recv(65536): answer += more
		        return answer
		    except (BrokenPipeError, ConnectionResetError):
		        return b"error: "
		for data in (b"", b"\n", b"\0", b"status\0x\n", b"add drop psn=1\x1b[2J\n", b"x" * 511, b"x" * 512, b"x" * 100000, b"\xff" * 100, b"add drop psn=1\x7f\n"):
		    assert says(data).startswith(b"error: "), data
		for _ in range(300):
		    assert says(random.randbytes(random.randrange(1, 40)) + b"\n").startswith(b"error: ")
		assert says(b"status").startswith(b"e1 and e2 joined") and says(b"status\nadd drop\n").startswith(b"e1 and e2 joined")
		for i in range(256): assert says(b"add drop psn=%d\n" % i) == b"ok: rule %d: drop psn=%d\n" % (i + 1, i)
		assert says(b"add drop\n").startswith(b"error: ")
		slow = [call() for _ in range(8)]
		for s in slow: s.send(b"sta")
		began = time.time()
		assert says(b"clear") == b"ok: 256 rules are deleted\n" # when the silent ones have been hung up on
		assert 1 < time.time() - began < 15, time.time() - began
		deaf = [call() for _ in range(4)]
		for s in deaf: s.send(b"json\n")
		assert says(b"status").startswith(b"e1 and e2 joined")
	PYTHON
	writes || return 1
	leave || return 1
	reports 'sum(e["unsent"] for e in r["ends"]) == 0 and len(r["rules"]) == 256'
}
