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

# says_times N FILE TEXT: within 60 seconds the file says it so often.
says_times() {
	local i
	for i in $(seq 1200); do
		[ "$(grep -c "$3" "$2")" -lt "$1" ] || return 0
		sleep 0.05
	done
	cat "$2"
	fail "'$3' is not said $1 times"
}

# mesh N: N connections each way at once. The link goes down under writes, which fail on all of them, and when it is up again all are made anew.
mesh() {
	local n=$1 a b
	own_program mesh || return 1
	rm -f "$TMP"/go*
	serve 7611 "$NS1" "$TMP/a" -- "$TMP/mesh" 10.77.0.1 7611 10.77.0.2 7612 "$n" "$TMP/go" || return 1
	a=$server
	serve 7612 "$NS2" "$TMP/b" -- "$TMP/mesh" 10.77.0.2 7612 10.77.0.1 7611 "$n" "$TMP/go" || return 1
	b=$server
	touch "$TMP/go"
	says_times 1 "$TMP/a" "^connected $n $n$" && says_times 1 "$TMP/b" "^connected $n $n$" || return 1
	ip -n "$NS1" link set eth0 down
	touch "$TMP/go.down"
	says_times 1 "$TMP/a" "^failed $n$" && says_times 1 "$TMP/b" "^failed $n$"
	set -- $?
	ip -n "$NS1" link set eth0 up
	wait_carrier "$NS1" eth0 && wait_carrier "$NS2" eth0 && [ "$1" = 0 ] || return 1
	touch "$TMP/go.up"
	says_times 2 "$TMP/a" "^connected $n $n$" && says_times 2 "$TMP/b" "^connected $n $n$" || return 1
	touch "$TMP/go.end"
	server=$a
	served "$TMP/a" || return 1
	server=$b
	served "$TMP/b"
}
test_two_hosts_make_a_mesh_anew() { mesh 500; }
test_two_hosts_with_eight_thousand_connections() { mesh 4000; }
