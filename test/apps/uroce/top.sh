# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce top and uroce info --prometheus: what they say of programs that run. They see all programs of this host, so each test looks for its own.

# top_json [ARGS]: what top says once, in $TMP/out. As user nobody where the tests are.
top_json() {
	timeout 30 "${as[@]}" "$UROCE" top --once --json "$@" >"$TMP/out" </dev/null || { fail "top ended with status $?"; return; }
}

# qps_of PID EXPRESSION: whether a QP of the process is there of which the expression of Python, about q, holds.
qps_of() {
	python3 - "$TMP/out" "$1" "$2" <<-'PYTHON' || { cat "$TMP/out"; fail "no QP of process $1 with: $2"; return; }
		import json, sys
		o = json.load(open(sys.argv[1]))
		assert o["version"] == 1 and o["interval"] >= 0.5 and o["time"] > 1.6e9
		assert any(p["pid"] == int(sys.argv[2]) and p["readable"] for p in o["processes"])
		sys.exit(0 if any(eval(sys.argv[3]) for q in o["qps"] if q["pid"] == int(sys.argv[2])) else 1)
	PYTHON
}

# gone PID: top names the process nowhere.
gone() {
	top_json || return 1
	python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
sys.exit(any(x["pid"] == int(sys.argv[2]) for x in o["processes"] + o["qps"]))' "$TMP/out" "$1" || { cat "$TMP/out"; fail "process $1 is there yet"; }
}

# busy: ib_write_bw between the two hosts for 30 s. Sets $busy_server and $busy_client to their process IDs.
busy() {
	serve_tcp "$NS1" "$TMP/server" -- ib_write_bw -D 30 || return 1
	busy_server=$(program_of "$server")
	background "$NS2" "$TMP/client" -- ib_write_bw -D 30 10.77.0.1
	for _ in $(seq 100); do
		busy_client=$(program_of "$server")
		if [ -n "$busy_client" ] && top_json --pid "$busy_client" --active && grep -q '"state":"RTS"' "$TMP/out"; then return 0; fi
		sleep 0.1
	done
	cat "$TMP/client" "$TMP/server"
	fail "the programs do not talk"
}

# Both ends of a connection, their rates, and each gone at once when it is killed.
test_top_traffic() {
	local qp
	busy || return 1
	top_json || return 1
	qps_of "$busy_client" 'q["program"] == "ib_write_bw" and q["type"] == "RC" and q["state"] == "RTS" and q["peer"] == "10.77.0.1"' || return 1
	qps_of "$busy_client" 'q["rates"]["tx_bits"] > 1e6 and q["rates"]["tx_packets"] > 100 and q["rtt_us"] > 0 and q["window"] > 0' || return 1
	qps_of "$busy_client" 'q["counters"]["tx_bytes"] > 1e5 and q["unfinished"] > 0' || return 1
	qps_of "$busy_server" 'q["local"] == "10.77.0.1" and q["peer"] == "10.77.0.2" and q["rates"]["rx_bits"] > 1e6' || return 1
	qp=$(python3 -c 'import json, sys; print(next(q["peer_qp"] for q in json.load(open(sys.argv[1]))["qps"] if q["pid"] == int(sys.argv[2])))' "$TMP/out" "$busy_client")
	qps_of "$busy_server" "q['qp'] == $qp" || return 1
	kill -KILL "$busy_client"
	gone "$busy_client" || return 1
	kill -KILL "$busy_server"
	gone "$busy_server"
}

# As lines: a title and rows of our own alone, in order.
test_top_lines() {
	busy || return 1
	timeout 30 "${as[@]}" "$UROCE" top --count 2 --interval 0.5 --sort tx --peer 10.77.0.1 --program write_b >"$TMP/out" </dev/null || { fail "status $?"; return; }
	cat "$TMP/out"
	[ "$(grep -c '^ *PID PROGRAM  *QP ' "$TMP/out")" -eq 2 ] || { fail "titles"; return; }
	[ "$(grep -c "^ *$busy_client ib_write_bw .* RTS .* 10.77.0.1 .*[0-9][kMG] " "$TMP/out")" -eq 2 ] || { fail "rows"; return; }
	! grep -q "^ *$busy_server " "$TMP/out" || { fail "the filter let the server through"; return; }
	timeout 30 "${as[@]}" "$UROCE" top --once --pid 1 >"$TMP/out" || { fail "status $?"; return; }
	grep -q '(0 shown)' "$TMP/out" && [ "$(wc -l <"$TMP/out")" -eq 1 ] || { cat "$TMP/out"; fail "rows of nobody"; }
}

# On a terminal: a screen, and keys.
test_top_screen() {
	busy || return 1
	(sleep 2; printf 'x'; sleep 1; printf '/write_bw\n'; sleep 1; printf 'h'; sleep 1; printf 'q') |
		TERM=xterm timeout 30 script -qfec "stty cols 130 rows 30; ${as[*]} $UROCE top" "$TMP/typed" >"$TMP/out" || { fail "status $?"; return; }
	grep -q "$busy_client" "$TMP/out" && grep -q 'retransmissions' "$TMP/out" && grep -q 'sorted by' "$TMP/out" || { cat -v "$TMP/out"; fail "not what was drawn"; return; }
	TERM=nosuch timeout 30 script -qfec "${as[*]} $UROCE top --count 1" "$TMP/typed" >"$TMP/out" </dev/null || { fail "status $?"; return; }
	grep -q 'cannot show a screen' "$TMP/out" && grep -q 'PID PROGRAM' "$TMP/out" || { cat -v "$TMP/out"; fail "no lines in its place"; }
}

# A process that is stopped, and goes on.
test_top_stopped() {
	local pid
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	pid=$(program_of "$server")
	kill -STOP "$pid"
	top_json || return 1
	python3 -c 'import json, sys
sys.exit(not any(p["pid"] == int(sys.argv[2]) and p["stopped"] for p in json.load(open(sys.argv[1]))["processes"]))' "$TMP/out" "$pid" || { cat "$TMP/out"; fail "not stopped"; return; }
	kill -CONT "$pid"
	top_json || return 1
	python3 -c 'import json, sys
sys.exit(not any(p["pid"] == int(sys.argv[2]) and not p["stopped"] for p in json.load(open(sys.argv[1]))["processes"]))' "$TMP/out" "$pid" || { cat "$TMP/out"; fail "stopped yet"; }
}

# What another process can put into its place: noise, a huge file, a hole, somebody else's, a pipe of that name, and all of them at once.
test_top_hostile() {
	local pid
	busy || return 1
	cat >"$TMP/liar.py" <<-'PYTHON'
		import os, sys, time
		victim = int(sys.argv[1])
		def memory(text, size=None):
		    fd = os.memfd_create("uroce-status")
		    os.write(fd, text)
		    if size:
		        os.ftruncate(fd, size)
		keep = []
		for f in os.listdir("/proc/%d/fd" % victim):
		    path = "/proc/%d/fd/%s" % (victim, f)
		    if os.readlink(path).startswith("/memfd:uroce-status"):
		        theirs = os.open(path, os.O_RDONLY)
		        keep.append(theirs)
		        good = os.pread(theirs, 1 << 24, 0)
		assert len(good) > 100000
		memory(good)                                  # says that it is another process
		if os.fork() == 0:
		    memory(os.urandom(len(good)))
		    time.sleep(60)
		if os.fork() == 0:
		    mine = good[:20] + os.getpid().to_bytes(4, "little") + b"\xff" * (len(good) - 24)
		    memory(mine)                          # speaks of itself, and nothing of that makes sense
		    time.sleep(60)
		if os.fork() == 0:
		    memory(good[:8] + b"\x09" * 300, 1 << 40)
		    time.sleep(60)
		if os.fork() == 0:
		    memory(b"x")
		    time.sleep(60)
		print("ready", flush=True)
		time.sleep(60)
	PYTHON
	timeout 60 "${as[@]}" /usr/bin/python3 "$TMP/liar.py" "$busy_client" >"$TMP/liar" 2>&1 &
	pid=$!
	on_exit "kill -KILL -- -$pid 2>/dev/null" # timeout(1) has made a group of them
	for _ in $(seq 100); do
		! grep -q ready "$TMP/liar" || break
		sleep 0.05
	done
	grep -q ready "$TMP/liar" || { cat "$TMP/liar"; fail "the liar"; return; }
	top_json && qps_of "$busy_client" 'q["rates"]["tx_bits"] > 1e6' || return 1
	[ "$(grep -o '"program":"python3","stopped"' "$TMP/out" | wc -l)" -eq 1 ] || { cat "$TMP/out"; fail "what speaks of others is believed"; return; }
	timeout 30 "$UROCE" top --once >"$TMP/out" && ! LC_ALL=C grep -q '[^ -~]' "$TMP/out" || { cat -v "$TMP/out"; fail "lines with what no terminal should get"; return; }
	grep -q '^process [0-9]* (python3) has [0-9]* QPs' "$TMP/out" || { cat "$TMP/out"; fail "not a word of QPs that cannot be shown"; return; }
	timeout 30 "$UROCE" top --once --pid 1 >"$TMP/out" && [ "$(wc -l <"$TMP/out")" -eq 1 ] || { cat "$TMP/out"; fail "a remark about who was not asked for"; return; }
	timeout 30 "$UROCE" info --prometheus >"$TMP/out" || { fail "metrics"; return; }
	kill -TERM -- "-$pid"
	wait "$pid"
	true
}

# A user sees his own programs alone, root all of them.
test_top_users() {
	local pid as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${as[@]}" test -x "$UROCE" || { local TMP=$TMP; become_nobody; }
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	pid=$(program_of "$server")
	top_json && grep -q "\"pid\":$pid," "$TMP/out" || { cat "$TMP/out"; fail "his own"; return; }
	as=()
	top_json && grep -q "\"pid\":$pid,\"uid\":65534," "$TMP/out" || { cat "$TMP/out"; fail "root does not see it"; return; }
	as=(setpriv --reuid=65533 --regid=65533 --clear-groups)
	top_json && ! grep -q "\"pid\":$pid," "$TMP/out" || { cat "$TMP/out"; fail "seen by another user"; }
}

test_top_usage() {
	local args bad=0
	while read -r args; do
		# shellcheck disable=SC2086
		timeout 30 "$UROCE" top $args >"$TMP/out" 2>&1 </dev/null
		[ $? -eq 2 ] && [ "$(wc -l <"$TMP/out")" -eq 1 ] || { echo "top $args"; cat "$TMP/out"; bad=1; }
	done <<-'END'
		--interval 0.1
		--interval nan
		--interval 1s
		--count 0
		--count -1
		--pid x
		--peer 10.0.0
		--sort speed
		eth0
	END
	return $bad
}

# What is printed is what Prometheus reads, with the counters of a program that runs; the script of doc/prometheus.md puts it where it belongs.
test_prometheus() {
	busy || return 1
	sed -n '/^    #!\/bin\/sh/,/^    mv /s/^    //p' "$ROOT/doc/prometheus.md" >"$TMP/uroce-metrics"
	chmod +x "$TMP/uroce-metrics"
	mkdir -p "$TMP/collector"
	PATH=$(dirname "$UROCE"):$PATH timeout 30 "$TMP/uroce-metrics" "$TMP/collector" || { fail "the script ended with status $?"; return; }
	[ "$(ls "$TMP/collector")" = uroce.prom ] || { ls -l "$TMP/collector"; fail "the files"; return; }
	grep -E "^node_infiniband_port_data_transmitted_bytes_total\{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"$busy_client\",program=\"ib_write_bw\"\} [1-9][0-9]{5,}$" "$TMP/collector/uroce.prom" ||
		{ fail "no bytes of the client"; return; }
	! command -v promtool >/dev/null || promtool check metrics <"$TMP/collector/uroce.prom" || { fail "promtool"; return; }
	timeout 30 "$UROCE" info --prometheus --prefix roce | grep -q '^roce_port_packets_received_total{' || { fail "another prefix"; return; }
	timeout 30 "$UROCE" info --prometheus --prefix 'a b' >"$TMP/out" 2>&1
	[ $? -eq 2 ] && grep -q 'cannot be the prefix' "$TMP/out" || { cat "$TMP/out"; fail "a prefix that is none"; return; }
	timeout 30 "$UROCE" info --prefix roce >"$TMP/out" 2>&1
	[ $? -eq 2 ] || fail "a prefix without metrics"
}
