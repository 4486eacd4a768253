# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2086,SC2154 # commands are words; $server is set by helpers.sh
# Programs that end at any moment: by a signal, by exit() where they stand, or killed. Whoever comes next on the same ports and addresses finds nothing of
# them in its way.
#
# The moments are random, and the same in each run: a pair of programs is started, one side is ended after a delay of up to ENDS_MS milliseconds, then the
# same pair must work at once. ENDS_ROUNDS and ENDS_SEED choose more and others.

ENDS_ROUNDS=${ENDS_ROUNDS:-1}
ENDS_MS=${ENDS_MS:-900}
ends_random=${ENDS_SEED:-20260}

# random N: from 0 to N - 1, in $drawn.
random() {
	ends_random=$(((ends_random * 1103515245 + 12345) & 0x7fffffff))
	drawn=$(((ends_random >> 8) % $1))
}

# ended STATUS WHAT: not by a fault of the program's memory or an assertion; `timeout` passes on how its program ended.
ended() {
	case $1 in
	132 | 134 | 135 | 136 | 139) fail "$2 crashed: status $1" ;;
	124) fail "$2 did not end" ;;
	esac
}

# end_by HOW PID: PID is the program.
end_by() {
	case $1 in
	STOP) kill -STOP "$2" 2>/dev/null && sleep 0.2 && kill -KILL "$2" 2>/dev/null ;;
	*) kill -"$1" "$2" 2>/dev/null ;;
	esac
	return 0
}

# program PID: the program under `timeout`, as soon as it is there.
program() {
	local i
	for i in $(seq 100); do
		pgrep -P "$1" && return
		kill -0 "$1" 2>/dev/null || return 1
		sleep 0.01
	done
	return 1
}

# nothing_left: no process uses the device in either namespace, and once somebody has looked no file is left.
nothing_left() {
	local ns left
	for ns in "$NS1" "$NS2"; do
		in_ns "$ns" timeout 20 "$UROCE" info --dev eth0 >"$TMP/out" || { fail "info ended with status $?"; return; }
		grep -qx 'no process uses it' "$TMP/out" || { cat "$TMP/out"; fail "somebody has stayed"; return; }
		uroce_in "$ns" -- ibv_devices >"$TMP/out" || { fail "ibv_devices"; return; }
	done
	left=$(find /dev/shm /run/dpdk -mindepth 1)
	[ -z "$left" ] || { echo "$left"; fail "files of dead processes"; }
}

# Until the server is there: `cm PORT` listens on a port of the RDMA CM, `tcp PORT` on one of TCP.
ends_wait() {
	local i
	case $1 in
	cm) wait_listening "$NS1" "$2" "$server" ;;
	tcp)
		for i in $(seq 200); do
			[ -z "$(in_ns "$NS1" ss -Hltn "sport = :$2")" ] || return 0
			kill -0 "$server" 2>/dev/null || return 1
			sleep 0.02
		done
		return 1
		;;
	esac
}
# ends_round LISTEN HOW SIDE DELAY "SERVER" "CLIENT"
ends_round() {
	local listen=$1 how=$2 side=$3 delay=$4 s c pid
	background "$NS1" "$TMP/server" -- $5
	s=$server
	ends_wait $listen || { cat "$TMP/server"; fail "the server does not listen: $5"; return; }
	background "$NS2" "$TMP/client" -- $6
	c=$server
	sleep "$delay"
	if [ "$side" = server ]; then pid=$(program "$s"); else pid=$(program "$c"); fi
	[ -z "$pid" ] || end_by "$how" "$pid"
	# Who is left alone may wait for its peer for as long as it likes; it ends as well now, as a user would end it.
	sleep 0.1
	if [ "$side" = server ]; then pid=$(program "$c"); else pid=$(program "$s"); fi
	[ -z "$pid" ] || end_by TERM "$pid"
	wait "$s"
	ended $? "the server" || { cat "$TMP/server"; return 1; }
	wait "$c"
	ended $? "the client" || { cat "$TMP/client"; return 1; }
}
# next_pair LISTEN "SERVER" "CLIENT": it works, and at once. perftest's server listens for its second connection about when its client asks for it, a second
# after the first; where the machine is too busy for that, it is tried again, a few times.
next_pair() {
	local start=${EPOCHREALTIME/./} ms
	background "$NS1" "$TMP/server" -- $2
	ends_wait $1 || { cat "$TMP/server"; fail "the next server does not listen"; return; }
	if ! uroce_in "$NS2" -- timeout 20 $3 >"$TMP/client" 2>&1; then
		[[ $3 == *" -R "* ]] && [ "${again:-0}" -lt 5 ] && grep -q 'RDMA_CM_EVENT_REJECTED; error: 8' "$TMP/client" &&
			{ stop_servers; again=$((${again:-0} + 1)) next_pair "$@"; return; }
		cat "$TMP/client" "$TMP/server"
		fail "the next client"
		return
	fi
	served "$TMP/server" || return 1
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	echo "    the next pair took $ms ms"
	[ $ms -lt 15000 ] || fail "that is not at once"
}

# ends_pair LISTEN "SERVER" "CLIENT" "NEXT SERVER" "NEXT CLIENT": the first two run for long, the others end by themselves.
ends_pair() {
	local listen=$1 i how side delay hows=(INT TERM KILL STOP)
	for i in $(seq "$ENDS_ROUNDS"); do
		random 4
		how=${hows[$drawn]}
		random 2
		side=$([ "$drawn" = 0 ] && echo server || echo client)
		random "$ENDS_MS"
		delay=$(printf '0.%03d' "$drawn")
		echo "round $i: the $side ends by $how after $delay s"
		ends_round "$listen" "$how" "$side" "$delay" "$2" "$3" || return 1
		next_pair "$listen" "$4" "$5" || return 1
	done
}

test_ends_rping() {
	ends_pair "cm $RPING" "rping -s -P" "rping -c -C 1000000 -S 4000 -a 10.77.0.1" "rping -s -C 5" "rping -c -C 5 -V -a 10.77.0.1" && nothing_left
}
test_ends_rping_own_qps() {
	ends_pair "cm $RPING" "rping -s -P -q" "rping -c -q -C 1000000 -a 10.77.0.1" "rping -s -q -C 5" "rping -c -q -C 5 -V -a 10.77.0.1" && nothing_left
}
test_ends_ib_write_bw() {
	ends_pair "tcp 18515" "ib_write_bw -x 0 -F -D 20" "ib_write_bw -x 0 -F -D 20 10.77.0.1" "ib_write_bw -x 0 -F -n 50" "ib_write_bw -x 0 -F -n 50 10.77.0.1" && nothing_left
}
test_ends_ib_write_bw_cm() {
	ends_pair "cm 18515" "ib_write_bw -R -F -D 20" "ib_write_bw -R -F -D 20 10.77.0.1" "ib_write_bw -R -F -n 50" "ib_write_bw -R -F -n 50 10.77.0.1" && nothing_left
}
test_ends_rc_pingpong() {
	ends_pair "tcp 18515" "ibv_rc_pingpong -e -g 0 -n 10000000" "ibv_rc_pingpong -e -g 0 -n 10000000 10.77.0.1" "ibv_rc_pingpong -g 0 -n 100" \
		"ibv_rc_pingpong -g 0 -n 100 10.77.0.1" && nothing_left
}
test_ends_udaddy() {
	ends_pair "cm 7174" "udaddy -C 100000000 -c 4" "udaddy -C 100000000 -c 4 -s 10.77.0.1" "udaddy -C 10" "udaddy -C 10 -s 10.77.0.1" && nothing_left
}
test_ends_rstream() {
	ends_pair "cm 7471" "rstream -S 5000 -C 100 -I 10000000" "rstream -s 10.77.0.1 -S 5000 -C 100 -I 10000000" "rstream -S 100 -C 1 -I 20" \
		"rstream -s 10.77.0.1 -S 100 -C 1 -I 20" && nothing_left
}
# Several processes of a device at a time, one of which goes on meanwhile.
test_ends_beside_another() {
	local other
	serve 7655 "$NS1" "$TMP/other" -- rping -s -P -p 7655 || return 1
	other=$server
	uroce_in "$NS2" -- rping -c -C 5 -V -p 7655 -a 10.77.0.1 || { fail "before"; return; }
	ends_pair "cm $RPING" "rping -s -P" "rping -c -C 1000000 -S 4000 -a 10.77.0.1" "rping -s -C 5" "rping -c -C 5 -V -a 10.77.0.1" || return 1
	uroce_in "$NS2" -- rping -c -C 5 -V -p 7655 -a 10.77.0.1 || { cat "$TMP/other"; fail "afterwards"; return; }
	kill "$(program "$other")"
	wait "$other"
	nothing_left
}
# mckey's receiver ends; the next one gets the group's messages.
test_ends_mckey() {
	local i how hows=(INT TERM KILL STOP) pid
	for i in $(seq "$ENDS_ROUNDS"); do
		random 4
		how=${hows[$drawn]}
		random 400
		echo "round $i: the member ends by $how"
		background "$NS1" "$TMP/member" -- mckey -m 239.77.9.9 -b 10.77.0.1 -C 1000000
		sleep "$(printf '0.%03d' "$drawn")"
		pid=$(program "$server")
		[ -z "$pid" ] || end_by "$how" "$pid"
		wait "$server"
		ended $? "the member" || { cat "$TMP/member"; return 1; }
		background "$NS1" "$TMP/member" -- mckey -m 239.77.9.9 -b 10.77.0.1 -C 20
		wait_started "$NS1" "$server" || { cat "$TMP/member"; fail "the next member"; return; }
		sleep 0.3
		uroce_in "$NS2" -- mckey -m 239.77.9.9 -b 10.77.0.2 -s -C 20 >"$TMP/sender" || { cat "$TMP/sender"; fail "sender"; return; }
		served "$TMP/member" || return 1
	done
	nothing_left
}

# ends HOW [OPTIONS]: the program of our own, with these options of uroce; the server sees its end and serves the next.
ends() {
	local status
	own_program ends || return 1
	serve 7655 "$NS1" "$TMP/server" -- "$TMP/ends" serve 2 || return 1
	uroce_in "$NS2" "${@:2}" -- timeout 20 "$TMP/ends" "$1" 10.77.0.1 >"$TMP/client" 2>&1
	status=$?
	[ $status -eq 0 ] || { cat "$TMP/client" "$TMP/server"; fail "$1: status $status"; return; }
	uroce_in "$NS2" -- timeout 20 "$TMP/ends" dlclose 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "the next client"; return; }
	served "$TMP/server" && nothing_left
}
# ends_unheard HOW: nobody need be told of its end (a signal may come to the very thread that is in the NIC), so the server, which could wait for long, is
# ended too; then both start again.
ends_unheard() {
	own_program ends || return 1
	serve 7655 "$NS1" "$TMP/server" -- "$TMP/ends" serve 1 || return 1
	uroce_in "$NS2" -- timeout 20 "$TMP/ends" "$1" 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "$1"; return; }
	kill "$(program "$server")"
	wait "$server"
	serve 7655 "$NS1" "$TMP/server" -- "$TMP/ends" serve 1 || return 1
	uroce_in "$NS2" -- timeout 20 "$TMP/ends" dlclose 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "the next client"; return; }
	served "$TMP/server" && nothing_left
}
# _exit(), exec(), and _exit() with a child of fork(): the keeper says it.
test_ends_quick() { ends quick; }
test_ends_by_exec() { ends execself; }
test_ends_with_an_orphan() { ends orphan; }
# Killed while they start, several at a time: ports, slots and files are as if they had never been.
test_ends_starting() {
	local i k pid
	for i in $(seq 1 $((ENDS_ROUNDS * 2))); do
		local pids=()
		for k in 1 2 3; do
			background "$NS1" "$TMP/s$k" -- rping -s -p $((7700 + k))
			pids+=("$server")
		done
		for k in 1 2 3; do
			random 250
			sleep "$(printf '0.%03d' "$drawn")"
			pid=$(program "${pids[$((k - 1))]}")
			[ -z "$pid" ] || end_by KILL "$pid"
		done
		for pid in "${pids[@]}"; do
			wait "$pid"
			ended $? "a server" || return 1
		done
	done
	for k in 1 2 3; do
		next_pair "cm $((7700 + k))" "rping -s -C 2 -p $((7700 + k))" "rping -c -C 2 -p $((7700 + k)) -a 10.77.0.1" || return 1
	done
	nothing_left
}
test_ends_in_the_handler() { ends handler; }
test_ends_posted() { ends posted; }
test_ends_connecting() { ends connect; }
test_ends_with_waiting_threads() { ends abandon; }
# Of the client's DREQs the first, behind REQ and RTU, is lost, and nobody but the process itself can repeat it: that it ended too early would be seen.
test_ends_in_three_threads() {
	local -x UROCE_KEEPER=0
	ends exits --fault 'drop tx qpn=1 nth=3'
}
# ends_acknowledged HOW: not one acknowledgement of the server's comes through, and it ends as soon as it has its message; the client's request succeeds, for
# the keeper says it again.
ends_acknowledged() {
	own_program ends || return 1
	serve 7655 "$NS1" "$TMP/server" --fault 'drop tx opcode=ACK' -- "$TMP/ends" swallow "$1" || return 1
	uroce_in "$NS2" -- timeout 20 "$TMP/ends" heard 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "$1: not acknowledged"; return; }
	served "$TMP/server" && nothing_left
}
test_ends_acknowledged() { ends_acknowledged exit; }
test_ends_acknowledged_without_the_qp() { ends_acknowledged destroy; }
test_ends_acknowledged_packet() { UROCE_PORT=packet ends_acknowledged exit; }
test_ends_in_a_signal_handler() { ends_unheard signal; }
test_ends_cancelled_threads() { ends cancel; }
test_ends_fork_and_exec() { ends exec; }
test_ends_dlclose() { ends dlclose; }
