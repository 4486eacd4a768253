# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2086,SC2154 # commands are words; $server is set by helpers.sh
# Programs whose resources are limited (ulimit, seccomp): with what the table LIMITS of uroce(7) says they work, with less they are told what is missing.

# limited PROGRAM...: under `ulimit $limit`, or without the system call $lacking; `uroce run` itself is not.
limited() {
	printf '#!/bin/bash\n[ -z "%s" ] || ulimit %s\nexec "$@"\n' "$limit" "$limit" >"$TMP/limited"
	chmod 755 "$TMP/limited"
	[ -z "$lacking" ] || own_program without || return 1
	limited=("$TMP/limited" ${lacking:+"$TMP/without" "$lacking"})
}
limit='' lacking=''

# needed OPTION: what ulimit OPTION has to be, by the manual page.
needed() {
	local n
	n=$(sed -n "s/^\.It .* Ta Fl $1 Ta \([0-9]*\) .*/\1/p" "$ROOT/man/uroce.7")
	[ -n "$n" ] || { fail "uroce(7) has no row for ulimit -$1"; return; }
	echo "$n"
}

# both_limited [NS]: two programs with that limit, on one host or on two, find each other and talk.
both_limited() {
	limited || return
	serve "$RPING" "$NS1" "$TMP/server" -- "${limited[@]}" rping -s -C 50 -S 20000 || return 1
	uroce_in "${1:-$NS1}" -- "${limited[@]}" rping -c -V -C 50 -S 20000 -a 10.77.0.1 >"$TMP/client" 2>&1 ||
		{ cat "$TMP/client" "$TMP/server"; fail "client, ulimit $limit"; return; }
	served "$TMP/server" || return
	! grep -H 'uroce:' "$TMP/client" "$TMP/server" || fail "there is something to say, ulimit $limit"
}
enough() {
	local n limit
	n=$(needed "$1") || { echo "$n"; return 1; }
	limit="-$1 $n"
	both_limited "$NS1" && both_limited "$NS2"
}
# said TEXT: a program of that limit ends by itself, whatever it came to, and says this once; the signal of a limit does not end it.
said() {
	local status
	limited || return
	uroce_in "$NS1" -- "${limited[@]}" ucmatose -s 10.77.0.1 2>&1 | cat >"$TMP/client"
	status=${PIPESTATUS[0]}
	[ "$status" -lt 124 ] || [ "$status" = 255 ] || { cat "$TMP/client"; fail "status $status, ulimit $limit"; return; }
	same_count 1 "^uroce: .*$1" "$TMP/client"
}

test_limits_descriptors() { enough n && limit="-n 9" said "no file descriptors are left.*ulimit -n"; }
test_limits_address_space() { enough v; }
test_limits_file_size() { enough f && limit="-f 1000" said "files may not be long enough.*ulimit -f" && limit="-f 0" said "files may not be long enough"; }
test_limits_locked_memory() { enough l; }
# Counted by user, so it is a user of our own; the two programs and what they run under count as well.
test_limits_processes() {
	local as=("${as[@]}") UROCE=$UROCE n limit
	local -x UROCE_PORT=udp
	become_nobody
	as[1]=--reuid=61357
	n=$(needed u) || { echo "$n"; return 1; }
	limit="-u $((2 * n + 8))"
	both_limited "$NS1" && both_limited "$NS2" && limit="-u 1" said "no further thread can be started.*ulimit -u"
}
test_limits_no_memfd() {
	local lacking
	lacking=$(printf '#include <sys/syscall.h>\nSYS_memfd_create\n' | gcc -E - | tail -n 1)
	said "memfd_create is not available"
}

# What a program is asked to write may come to its limit: the program goes on, and at its end it is said what is missing.
test_limits_of_captures() {
	local limit="-f 16" f
	limited && serve "$RPING" "$NS1" "$TMP/server" -- rping -s -C 2000 -S 5000 || return 1
	uroce_in "$NS2" --capture "$TMP/c.pcapng" --trace "$TMP/trace" --counters "$TMP/counters" -- "${limited[@]}" rping -c -V -C 2000 -S 5000 -a 10.77.0.1 2>&1 |
		cat >"$TMP/client"
	[ "${PIPESTATUS[0]}" = 0 ] || { cat "$TMP/client"; fail "client"; return; }
	served "$TMP/server" || return
	for f in c.pcapng trace; do
		[ "$(stat -c %s "$TMP/$f")" -le 16384 ] && [ "$(stat -c %s "$TMP/$f")" -gt 8192 ] || { ls -l "$TMP"; fail "$f"; return; }
	done
	same_count 1 "the capture .* is incomplete.*ulimit -f" "$TMP/client" && same_count 1 "trace.*ulimit -f" "$TMP/client"
}
