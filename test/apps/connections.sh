# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of our own for connections that no packaged program makes.

own_program() { [ -x "$TMP/$1" ] || gcc -O2 -Wall -Wextra -Werror -o "$TMP/$1" "$here/$1.c" -lrdmacm -libverbs; }

# crossing NS1 ADDR1 NS2 ADDR2 N: two programs that connect to each other at the same moment.
crossing() {
	local other
	own_program crossing || return 1
	rm -f "$TMP/go"
	serve 7601 "$1" "$TMP/a" -- "$TMP/crossing" "$2" 7601 "$4" 7602 "$5" "$TMP/go" || return 1
	other=$server
	serve 7602 "$3" "$TMP/b" -- "$TMP/crossing" "$4" 7602 "$2" 7601 "$5" "$TMP/go" || return 1
	touch "$TMP/go"
	served "$TMP/b" || { cat "$TMP/a"; return 1; }
	server=$other
	served "$TMP/a" && cat "$TMP/a" "$TMP/b"
}
test_crossing_hosts() { crossing "$NS1" 10.77.0.1 "$NS2" 10.77.0.2 1 && crossing "$NS1" 10.77.0.1 "$NS2" 10.77.0.2 300; }
test_crossing_processes_of_a_host() { crossing "$NS1" 10.77.0.1 "$NS1" 10.77.0.1 300; }

test_external_qps() {
	own_program external || return 1
	serve 7323 "$NS1" "$TMP/server" -- "$TMP/external" || return 1
	uroce_in "$NS2" -- "$TMP/external" 10.77.0.1 || { cat "$TMP/server"; fail "client"; return; }
	served "$TMP/server"
}
test_external_qps_of_a_host() {
	own_program external || return 1
	serve 7323 "$NS1" "$TMP/server" -- "$TMP/external" || return 1
	uroce_in "$NS1" -- "$TMP/external" 10.77.0.1 || { cat "$TMP/server"; fail "client"; return; }
	served "$TMP/server"
}
