# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between: what it shows while it runs, as a table and as metrics, against what the report says at its end.

# metric FILE NAME LABELS: its value.
metric() { grep -F "uroce_between_$2{${3:-}" "$1" | awk '{ s += $NF } END { print s + 0 }'; }

test_between_live_lines() {
	three_hosts && join --live --rule 'drop 2to1 opcode=WRITE_LAST msg=3 iteration=1' --name "live-$$" || return 1
	writes || return 1
	sleep 1.1
	leave >"$TMP/out" || { cat "$TMP/out"; return 1; }
	grep -q '^rule 1 *1  drop 2to1' "$TMP/between" && grep -q '^SOURCE .* NEEDLESS .* CNPS$' "$TMP/between" || { cat "$TMP/between"; fail "no table"; return; }
	# the requests: all packets, of which one was lost and repeated; the last table is the one of the report
	tac "$TMP/between" | awk '$1 == "10.78.0.2" && $4 == "req" && $3 != "0x000001" && $7 > 70 { print $8, $10; exit }' | grep -q '^1 1$' || { cat "$TMP/between"; fail "the flow"; }
}

# On a terminal: a screen that a key ends.
test_between_live_screen() {
	needs script bsdutils || return
	three_hosts || return 1
	: >"$TMP/screen"
	{ for _ in $(seq 100); do ! grep -q NEEDLESS "$TMP/screen" || break; sleep 0.1; done; printf q; sleep 0.5; } |
		in_ns "$BTM" timeout -k 5 20 script -qefc "stty cols 150 rows 30; TERM=xterm $UROCE between --live e1 e2 --name live-$$" "$TMP/screen" >/dev/null ||
		{ cat -v "$TMP/screen"; fail "status"; return; }
	grep -q 'e1 and e2 were joined for' "$TMP/screen" || { cat -v "$TMP/screen"; fail "no report"; }
}

# One that has gone ends it as well, where SIGHUP is ignored.
test_between_live_terminal_goes() {
	three_hosts || return 1
	in_ns "$BTM" timeout -k 5 40 python3 - "$UROCE" between --live e1 e2 --name "live-$$" <<-'PYTHON' || fail "it goes on without its terminal"
		import os, pty, signal, sys, time
		pid, terminal = pty.fork()
		if not pid:
		    signal.signal(signal.SIGHUP, signal.SIG_IGN)
		    os.environ["TERM"] = "xterm"
		    os.execvp(sys.argv[1], sys.argv[1:])
		seen = b""
		while b"SOURCE" not in seen: seen += os.read(terminal, 4096)
		os.close(terminal)
		for _ in range(100):
		    if os.waitpid(pid, os.WNOHANG)[0]: sys.exit(0)
		    time.sleep(0.05)
		os.kill(pid, signal.SIGKILL)
		sys.exit(1)
	PYTHON
}

# So does a reader of its lines that has had enough: it ends in order, and leaves no name behind.
test_between_live_reader_goes() {
	three_hosts || return 1
	in_ns "$BTM" timeout -k 5 40 "$UROCE" between --live --name "live-$$" e1 e2 2>&1 </dev/null | head -n 3 >"$TMP/head"
	[ "$(wc -l <"$TMP/head")" = 3 ] || { cat "$TMP/head"; fail "no lines"; return; }
	[ ! -e "/run/uroce/between-live-$$" ] || fail "its name is left"
}

# send_alike NAMESPACE: a RoCEv2 packet that says the same of itself wherever it is sent.
send_alike() {
	in_ns "$1" python3 - <<-'PYTHON'
		import socket, struct
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind(("eth0", 0))
		ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 52, 0, 0, 64, 17, 0, bytes([10, 78, 0, 8]), bytes([10, 78, 0, 9]))
		s.send(b"\x02\0\0\0\0\x09\x02\0\0\0\0\x08\x08\x00" + ip + struct.pack("!HHHH", 9, 4791, 32, 0) + b"\x04\0\xff\xff\0\0\0\x4d\0\0\0\x09" + bytes(12))
	PYTHON
}

test_between_live_metrics() {
	local ns
	three_hosts && join --json --name "live-$$" --prometheus "$TMP/metrics" --rule 'drop 2to1 opcode=WRITE_LAST msg=3 iteration=1' || return 1
	writes || return 1
	for ns in "$BT1" "$BT2"; do send_alike "$ns" || { fail "sending"; return; }; done
	"$UROCE" between --tell "live-$$" metrics >"$TMP/asked" || { fail "metrics"; return; }
	leave || return 1
	reports "$(metric "$TMP/metrics" frames_total 'interface="e2"') == r['ends'][1]['frames'] and $(metric "$TMP/metrics" done_frames_total 'what="dropped"') == 1" &&
		reports "$(metric "$TMP/metrics" flow_packets_total) == sum(f['packets'] for f in r['flows']) and $(metric "$TMP/metrics" flow_repeats_total) == 1" &&
		reports "$(metric "$TMP/asked" roce_packets_total) == sum(e['roce_packets'] for e in r['ends']) and $(metric "$TMP/asked" rule_hits_total 'number="1"') == 1" || return 1
	[ -z "$(grep -v '^#' "$TMP/metrics" | sed 's/ [^ ]*$//' | sort | uniq -d)" ] || { grep -F 'qpn="77"' "$TMP/metrics"; fail "two values of one name"; return; }
	[ "$(stat -c %a "$TMP/metrics")" = 644 ] || { fail "the file of metrics is not for all"; return; }
	if command -v promtool >/dev/null; then promtool check metrics <"$TMP/metrics" || { fail "promtool"; return; }; fi
	in_ns "$BTM" timeout 10 "$UROCE" between e1 e2 --name "live-$$" --prometheus /nowhere/file --seconds 5 >"$TMP/out" 2>&1 && { fail "no file, and no failure"; return; }
	grep -q 'cannot write /nowhere/file' "$TMP/out" || { cat "$TMP/out"; fail "a file that cannot be written"; }
}
