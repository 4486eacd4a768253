# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2086,SC2154 # commands are words; $server is set by helpers.sh
# Long messages between two processes of one host, which are copied from one's memory to the other's: what becomes of them when either is stopped or killed, or is
# in another PID namespace. killed.sh has the helpers.

SIBLINGS="-R -F -s 1048576 -t 128" # as many messages in flight as a busy program has

# bulky FILES...: messages were copied, or never with UROCE_ONE_COPY=0.
bulky() {
	local n
	n=$(copied "$@")
	echo "$n messages were copied"
	if [ "${UROCE_ONE_COPY:-1}" = 0 ]; then [ "$n" -eq 0 ]; else [ "$n" -gt 0 ]; fi || fail "$n messages were copied, and UROCE_ONE_COPY=${UROCE_ONE_COPY:-1}"
}

# siblings_stopped PROGRAM: both sides in turn do not run for a while, and nothing is lost.
siblings_stopped() {
	local s c seconds side pid
	serve 18515 "$NS1" "$TMP/server" --counters "$TMP/counters1" -- $1 $SIBLINGS -D 8 || return 1
	s=$server
	background "$NS1" "$TMP/client" --counters "$TMP/counters2" -- $1 $SIBLINGS -D 8 10.77.0.1
	c=$server
	sleep 1.5
	for seconds in 0.3 1 2; do
		for side in "$s" "$c"; do
			pid=$(program "$side") || { cat "$TMP/server" "$TMP/client"; fail "$1 has ended"; return; }
			kill -STOP "$pid" && sleep $seconds && kill -CONT "$pid" && sleep 0.1
		done
	done
	served "$TMP/server" || return 1
	server=$s served "$TMP/client" || return 1
	cat "$TMP/client" "$TMP/counters1" "$TMP/counters2"
	bulky "$TMP/counters1" "$TMP/counters2"
}
test_siblings_stopped_write() { siblings_stopped ib_write_bw; }
test_siblings_stopped_read() { siblings_stopped ib_read_bw; }
test_siblings_stopped_send() { siblings_stopped ib_send_bw; }

test_siblings_killed() {
	local p
	for p in write read send; do
		killed_pair "cm 18515" "ib_${p}_bw $SIBLINGS -D 30" "ib_${p}_bw $SIBLINGS -D 30 10.77.0.1" "$NS1" || { fail "$p"; return; }
	done
	nothing_left
}

# As a sibling in another container that shares the network namespace. Who cannot see the other's process cannot read its memory either, and gets packets.
siblings_in_pid_namespace() { # PROGRAM SIDE
	local in=(unshare --pid --fork --kill-child --mount-proc) s=() c=()
	if [ "$2" = server ]; then s=("${in[@]}"); else c=("${in[@]}"); fi
	serve 18515 "$NS1" "$TMP/server" --counters "$TMP/counters1" -- "${s[@]}" $1 $SIBLINGS -n 500 || return 1
	uroce_in "$NS1" --counters "$TMP/counters2" -- "${c[@]}" $1 $SIBLINGS -n 500 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "$1: client"; return; }
	served "$TMP/server" || return 1
	cat "$TMP/client" "$TMP/counters1" "$TMP/counters2"
	! grep -E '^bulk_unread +[1-9]' "$TMP/counters1" "$TMP/counters2" || fail "somebody sent what could not be read"
}
test_siblings_in_pid_namespace() {
	local p side
	for p in write read send; do
		for side in server client; do
			siblings_in_pid_namespace "ib_${p}_bw" $side || { fail "$p, the $side in the namespace"; return; }
		done
	done
}
