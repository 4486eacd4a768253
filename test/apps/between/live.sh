# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between: what it shows while it runs, as a table, against what the report says at its end.

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
