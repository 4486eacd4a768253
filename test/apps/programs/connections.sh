# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of our own for connections that no packaged program makes.

own_program() { [ -x "$TMP/$1" ] || gcc -O2 -Wall -Wextra -Werror -o "$TMP/$1" "$here/src/$1.c" -lrdmacm -libverbs; }

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

# The server is killed while a client is connected to it. When the client ends the connection, another process of the device answers in the
# server's place: without one the client would wait for a minute and more.
test_disconnect_from_a_killed_server() {
	local i killed
	own_program external || return 1
	rm -f "$TMP/go"
	serve "$RPING" "$NS1" "$TMP/other" -- rping -s || return 1
	UROCE_KEEPER=0 serve 7323 "$NS1" "$TMP/server" -- "$TMP/external" hold || return 1
	killed=$server
	background "$NS2" "$TMP/client" -- "$TMP/external" 10.77.0.1 "$TMP/go"
	for i in $(seq 200); do
		! grep -q held "$TMP/server" || break
		sleep 0.05
	done
	grep -q held "$TMP/server" || { cat "$TMP/server" "$TMP/client"; fail "no connection"; return; }
	kill -9 $(pgrep -P "$killed")
	sleep 0.2
	touch "$TMP/go"
	for i in $(seq 200); do
		! grep -q disconnected "$TMP/client" || break
		sleep 0.05
	done
	served "$TMP/client" && same_count 1 '^disconnected' "$TMP/client"
}
