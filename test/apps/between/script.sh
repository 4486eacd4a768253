# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between --script: two programs, their hosts and the cable between them, in one command with one status, after which nothing is left.

# scripted STATUS SAYS [OPTIONS] -- PROGRAM1 -- PROGRAM2: the status, and what is said of it. What it prints is in $TMP/between, messages in $TMP/between.err.
scripted() {
	local status=$1 says=$2 got
	shift 2
	in_ns "$NS1" timeout -k 5 60 "${as[@]}" "$UROCE" between "$@" >"$TMP/between" 2>"$TMP/between.err" </dev/null
	got=$?
	[ $got -eq "$status" ] && cat "$TMP/between" "$TMP/between.err" | grep -q -- "$says" && return 0
	cat "$TMP/between" "$TMP/between.err"
	fail "status $got, or '$says' is not said: $*"
}

# nobody_in FILE: no process is in the network namespaces whose names are in the file, nor is one left that sleeps for 77 s.
nobody_in() {
	for _ in $(seq 100); do
		find /proc/[0-9]*/ns/net -maxdepth 0 -printf '%l\n' 2>/dev/null | grep -qFxf "$1" || pgrep -x -f 'sleep 77' >/dev/null || return 0
		sleep 0.05
	done
	pgrep -af 'sleep 77'
	fail "processes are left"
}

test_between_script_loses_a_packet() {
	local write=(ib_write_bw -s 8192 -n 10 -Q 1)
	echo 'drop 2to1 opcode=WRITE_LAST msg=3 iteration=1 # the third WRITE' >"$TMP/rules"
	scripted 0 '^1| .*ib_write_bw\|RDMA_Write' --script "$TMP/rules" --json -- "${write[@]}" -- "${write[@]}" '{peer}' || return 1
	grep -q '^2| ' "$TMP/between.err" && ! grep -q '^[12]| ' "$TMP/between" || { fail "the output of the programs"; return; }
	reports 'len(events) == 1 and events[0]["message"] == 3 and 0 < events[0]["again_ns"] < 2e9 and r["rules"][0]["hits"] == 1' &&
		reports '[p["status"] for p in r["programs"]] == [0, 0] and r["status"] == 0 and r["programs"][1]["words"][-1] == "{peer}"'
}

# Who is not root has a user namespace made for it, where the kernel allows that. Not nobody: in such a namespace that is everybody outside.
test_between_script_any_user() {
	local as=("${as[@]}") UROCE=$UROCE
	become_nobody
	as=(setpriv --reuid=54321 --regid=54321 "${as[@]:3}")
	"${as[@]}" unshare -Un true 2>/dev/null || { echo "user namespaces are not allowed here"; return "$SKIPPED"; }
	scripted 0 'both programs ended with status 0$' --script /dev/null -- rping -s -C 3 -a '{addr}' -- sh -c 'rping -c -C 3 -a $UROCE_PEER' &&
		scripted 0 'fd00::1 to fd00::2' --script /dev/null --ipv6 -- rping -s -C 3 -a '{addr}' -- rping -c -C 3 -a '{peer}'
}

# status|what is said|options and programs
test_between_script_statuses() {
	local status says args
	echo 'drop psn=1' >"$TMP/rules"
	echo lose >"$TMP/wrong"
	printf '#!/bin/sh\nsleep ${1:-0}; exit 3\n' >"$TMP/ends3"
	printf '#!/bin/sh\nkill -KILL $$\n' >"$TMP/dies"
	chmod +x "$TMP/ends3" "$TMP/dies"
	while IFS='|' read -r status says args; do
		# shellcheck disable=SC2086
		scripted "$status" "$says" --start-after 50ms --native $args || return 1
	done <<-TABLE
		0|both programs ended with status 0\$|--script /dev/null -- true -- true
		1|rule 1 was never applied, .*: drop psn=1|--script $TMP/rules -- true -- true
		0|1 rule was never applied|--script $TMP/rules --allow-unused -- true -- true
		3|program 1 failed first: status 3|--script $TMP/rules -- $TMP/ends3 -- true
		3|true: status 0|--script $TMP/rules -- $TMP/ends3 1 -- true
		137|program 2 failed first: Killed|--script $TMP/rules -- sleep 0.2 -- $TMP/dies
		124|program 1 did not end within 1 s|--script $TMP/rules --seconds 1 -- sleep 77 -- sleep 77
		0|the second program ended with status 0|--script /dev/null --stop-first -- sleep 77 -- true
		3|program 2 failed first|--script /dev/null --stop-first -- sleep 77 -- $TMP/ends3
		127|program 1 failed first: status 127|--script /dev/null -- $TMP/nothing -- true
		126|program 2 failed first: status 126|--script /dev/null -- true -- /etc/passwd
		0|^2. hello 10.0.0.1 10.0.0.2\$|--script /dev/null -- true -- echo hello {peer} {addr}
		2|give two programs|--script /dev/null -- true
		2|give two programs|--script /dev/null -- true -- true -- true
		2|line 1: rule 'lose' is not understood|--script $TMP/wrong -- true -- true
	TABLE
	scripted 0 'both programs' --start-after 50ms --native --script /dev/null -- printf 'a\0b\n' -- true || return 1
	tr '\0' 0 <"$TMP/between" | grep -q '^1| a0b$' || { cat "$TMP/between"; fail "a line with a zero"; }
}

# Whatever ends it, nothing is left: no namespace, no program, nor what a program has put into the background or into a session of its own.
test_between_script_leaves_nothing() {
	local signal program
	for signal in INT TERM KILL none; do
		rm -f "$TMP"/net.*
		program="readlink /proc/self/ns/net >>$TMP/net.\$UROCE_ADDR; sleep 77 & "
		[ $signal = KILL ] || program+="setsid sleep 77 & " # it is nobody's child when its parents are killed
		[ $signal = none ] || program+="sleep 77"
		ip netns exec "$NS1" timeout -k 5 30 "$UROCE" between --native --start-after 10ms --script /dev/null -- sh -c "$program" -- sh -c "$program" </dev/null >"$TMP/out" 2>&1 &
		servers+=($!)
		for _ in $(seq 200); do
			[ ! -s "$TMP/net.10.0.0.1" ] || [ ! -s "$TMP/net.10.0.0.2" ] || break
			sleep 0.02
		done
		cat "$TMP"/net.* >"$TMP/nets"
		[ "$(wc -l <"$TMP/nets")" -eq 2 ] || { cat "$TMP/out"; fail "the programs do not run"; return; }
		[ $signal = none ] || kill -"$signal" "$(pgrep -P "${servers[-1]}" -x uroce)" || { fail "it does not run"; return; }
		wait "${servers[-1]}"
		nobody_in "$TMP/nets" || { cat "$TMP/out"; fail "after $signal"; return; }
	done
}

# Nor what has left its group.
test_between_script_ends_who_leaves() {
	local begin=$SECONDS
	echo 'import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(77)' >"$TMP/leaves"
	scripted 124 'program 1 did not end within 1 s' --script /dev/null --native --start-after 1ms --seconds 1 -- python3 "$TMP/leaves" -- sleep 0.1 || return 1
	[ $((SECONDS - begin)) -lt 20 ] || fail "it took $((SECONDS - begin)) s"
}

# Jobs of a shell that becomes this command are no orphans of its programs.
test_between_script_spares_jobs() {
	in_ns "$NS1" sh -c 'sleep 30 & echo $! >"$2"; exec "$1" between --script /dev/null --native --start-after 1ms -- true -- true' - "$UROCE" "$TMP/job" >"$TMP/out" 2>&1 </dev/null ||
		{ cat "$TMP/out"; fail "status"; return; }
	kill "$(cat "$TMP/job")" || fail "the job was killed"
}

test_between_script_ucx() {
	needs ucx_perftest ucx-utils || return
	echo 'drop 2to1 opcode=SEND_FIRST nth=2 iteration=1' >"$TMP/rules"
	UCX_TLS=rc UCX_NET_DEVICES=uroce0:1 scripted 0 'each rule was applied' --files --script "$TMP/rules" -- ucx_perftest -- \
		ucx_perftest '{peer}' -t tag_bw -n 100 -s 4096 -w 10
}
