# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs that load the libraries themselves.

test_dlopen() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/dlopen" "$here/dlopen.c" -ldl || return 1
	uroce_in "$NS1" -- "$TMP/dlopen" >"$TMP/out" 2>&1 || { cat "$TMP/out"; fail "status $?"; return; }
	cat "$TMP/out"
	grep -q '^device: uroce0$' "$TMP/out" || fail "no device"
}
# The dynamic linker has nothing to complain about.
test_dropin_is_silent() {
	uroce_in "$NS1" -- ibv_devices >"$TMP/out" 2>"$TMP/err" || return 1
	uroce_in "$NS1" -- rping -h >>"$TMP/out" 2>>"$TMP/err"
	grep -q uroce0 "$TMP/out" && ! grep -q 'version information' "$TMP/err" || { cat "$TMP/err"; fail "warnings"; }
}
