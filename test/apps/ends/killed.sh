# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2086,SC2154 # commands are words; $server is set by helpers.sh
# Programs that are killed: their keeper (lib/keeper) tells the peers, and the program itself does not notice that it has one. ends.sh has the helpers.

KILLED_SOON=6 # seconds; the other side hears of it within two, on a machine that is not busy

# gone_soon PID WHAT: ends by itself.
gone_soon() {
	local i
	for i in $(seq $((KILLED_SOON * 20))); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	fail "$2 has not noticed for $KILLED_SOON s that its peer is dead"
}

# keepers NS: their process ids in the namespace, of those that have begun their work.
keepers() {
	local p
	for p in $(ip netns pids "$1"); do
		[ "$(cat "/proc/$p/comm" 2>/dev/null)" != uroce-keeper ] || echo "$p"
	done
}
# one_keeper NS: waits for it; sets $k.
one_keeper() {
	local i
	for i in $(seq 60); do
		k=$(keepers "$1")
		[ "$(echo "$k" | wc -w)" != 1 ] || return 0
		sleep 0.05
	done
	fail "keepers: $k"
}
# no_keeper [NS]: waits until there is none there, or in neither.
no_keeper() {
	local i
	for i in $(seq 60); do
		[ -n "$(keepers "${1:-$NS1}")$(keepers "${1:-$NS2}")" ] || return 0
		sleep 0.05
	done
	fail "a keeper has stayed"
}

# killed_pair LISTEN "SERVER" "CLIENT" [NS]: either side is killed in the middle, and the other one ends by itself. The client is in $NS2 unless told otherwise.
killed_pair() {
	local side s c
	for side in server client; do
		background "$NS1" "$TMP/server" -- $2
		s=$server
		ends_wait $1 || { cat "$TMP/server"; fail "the server does not listen"; return; }
		background "${4:-$NS2}" "$TMP/client" -- $3
		c=$server
		sleep 0.8
		kill -0 "$s" && kill -0 "$c" || { cat "$TMP/server" "$TMP/client"; fail "they do not run"; return; }
		if [ $side = server ]; then
			kill -KILL "$(program "$s")"
			gone_soon "$c" "the client" || { cat "$TMP/client"; return 1; }
		else
			kill -KILL "$(program "$c")"
			gone_soon "$s" "the server" || { cat "$TMP/server"; return 1; }
		fi
		wait "$s" "$c"
	done
	no_keeper
}

test_killed_rping() { killed_pair "cm $RPING" "rping -s" "rping -c -C 10000000 -a 10.77.0.1"; }
test_killed_leaves_nothing() { killed_pair "cm $RPING" "rping -s" "rping -c -C 10000000 -a 10.77.0.1" && nothing_left; }
test_killed_rping_ipv6() { killed_pair "cm $RPING" "rping -s -a fd77::1" "rping -c -C 10000000 -a fd77::1"; }
test_killed_rping_lanes() { UROCE_LANES=2 UROCE_SPREAD=cq killed_pair "cm $RPING" "rping -s" "rping -c -C 10000000 -a 10.77.0.1"; }
test_killed_rping_packet() { UROCE_PORT=packet killed_pair "cm $RPING" "rping -s" "rping -c -C 10000000 -a 10.77.0.1"; }
# It looks at its CQ alone, and the server has nothing outstanding.
test_killed_ib_write_bw() { killed_pair "cm 18515" "ib_write_bw -R -F -D 30" "ib_write_bw -R -F -D 30 10.77.0.1"; }
test_killed_on_the_same_host() { killed_pair "cm 18515" "ib_write_bw -R -F -D 30" "ib_write_bw -R -F -D 30 10.77.0.1" "$NS1"; }
test_killed_as_nobody() {
	local as=("${as[@]}") UROCE=$UROCE
	local -x UROCE_PORT=udp
	become_nobody
	killed_pair "cm $RPING" "rping -s" "rping -c -C 10000000 -a 10.77.0.1"
}

# Other processes of the same device go on beside each of the two.
test_killed_beside_others() {
	local other
	serve 7655 "$NS1" "$TMP/other" -- rping -s -P -p 7655 || return 1
	other=$server
	background "$NS2" "$TMP/beside" -- rping -c -C 10000000 -p 7655 -a 10.77.0.1
	local beside=$server s c side
	for side in server client; do
		serve "$RPING" "$NS1" "$TMP/server" -- rping -s || return 1
		s=$server
		background "$NS2" "$TMP/client" -- rping -c -C 10000000 -a 10.77.0.1
		c=$server
		sleep 0.8
		if [ $side = server ]; then
			kill -KILL "$(program "$s")"
			gone_soon "$c" "the client" || { cat "$TMP/client"; return 1; }
		else
			kill -KILL "$(program "$c")"
			gone_soon "$s" "the server" || { cat "$TMP/server"; return 1; }
		fi
		wait "$s" "$c"
	done
	kill -0 "$other" && kill -0 "$beside" || { cat "$TMP/other" "$TMP/beside"; fail "the others have suffered"; }
}

# The kernel lets who reads a process's arguments wait until that process's memory is not locked. Of the machine's processes `uroce info` reads
# those of keepers alone, so that no other process can keep it waiting.
test_killed_info_waits_for_no_other() {
	local k others
	needs strace strace || return
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s || return 1
	background "$NS2" "$TMP/client" -- rping -c -C 10000000 -a 10.77.0.1
	one_keeper "$NS2" || return
	in_ns "$NS2" timeout 30 strace -f -qq -e trace=openat,read -o "$TMP/calls" "$UROCE" info --dev eth0 >"$TMP/info" || { cat "$TMP/info"; fail "info failed"; return; }
	grep -q "/proc/$k/cmdline" "$TMP/calls" || { fail "info did not look for the keeper"; return; }
	# By the name that info itself has read: a keeper of a test before may have ended since.
	others=$(sed -n 's|.*"/proc/\([0-9]*\)/\(comm\|cmdline\)".*|\2 \1|p; s|.*read([0-9]*, "uroce-keeper\\n".*|keeper|p' "$TMP/calls" |
		awk '$1 == "comm" { asked = $2 } $1 == "keeper" { named[asked] = 1 } $1 == "cmdline" && !named[$2] { print $2 }')
	[ -z "$others" ] || { fail "info read the arguments of process ${others//$'\n'/, }"; return; }
	stop_servers
	no_keeper # which the next test would take for its own
}

# The keeper is killed: the program does not notice, and says goodbye itself.
test_killed_keeper() {
	local s c k
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s || return 1
	s=$server
	background "$NS2" "$TMP/client" -- rping -c -C 10000000 -a 10.77.0.1
	c=$server
	one_keeper "$NS2" || return
	in_ns "$NS2" "$UROCE" info --dev eth0 >"$TMP/info"
	grep -qx " *keeper $k" "$TMP/info" || { cat "$TMP/info"; fail "info does not show keeper $k"; return; }
	kill -TERM "$k" # is not meant for it
	sleep 0.2
	[ "$(keepers "$NS2")" = "$k" ] || { fail "the keeper has gone with SIGTERM"; return; }
	kill -KILL "$k"
	no_keeper "$NS2" || return
	sleep 0.3
	kill -0 "$s" && kill -0 "$c" || { cat "$TMP/server" "$TMP/client"; fail "they have suffered"; return; }
	kill -KILL "$(program "$c")"
	kill -TERM "$(program "$s")"
	wait "$s" "$c"
	no_keeper
}
# Nothing of its own: session, files, directory; and who has nothing to say has no keeper.
test_killed_keeper_keeps_nothing() {
	local k
	no_keeper && serve "$RPING" "$NS1" "$TMP/server" -- rping -s || return 1 # of a test before
	[ -z "$(keepers "$NS1")" ] || { fail "a keeper for a program without a connection"; return; }
	background "$NS2" "$TMP/client" -- rping -c -C 10000000 -a 10.77.0.1
	one_keeper "$NS2" || return
	sleep 0.2
	ls -l "/proc/$k/fd" >"$TMP/fds" && cat "$TMP/fds" "/proc/$k/stat" || return 1
	[ "$(grep -c -e '->' "$TMP/fds")" = "$(grep -c -e 'memfd:uroce-farewells' -e 'pipe:' -e 'pidfd' "$TMP/fds")" ] || { fail "it has a file of its program's"; return; }
	[ "$(readlink "/proc/$k/cwd")" = / ] || { fail "it is in a directory"; return; }
	[ "$(cut -d' ' -f 6,7 "/proc/$k/stat")" = "$k 0" ] || fail "it has a session or a terminal of its program's"
}
# The program's own children are all that wait(2) finds, and no SIGCHLD comes from elsewhere.
test_killed_keeper_is_no_child() { ends childless && no_keeper; }

# without_keeper REASON COMMAND...: a client that is COMMAND finds no child, and says why it has no keeper.
without_keeper() {
	local -x UROCE_LOG=info
	own_program ends && serve 7655 "$NS1" "$TMP/server" -- "$TMP/ends" serve 1 || return 1
	uroce_in "$NS2" -- timeout 20 "${@:2}" 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "the client"; return; }
	same_count 1 "no keeper .* because $1" "$TMP/client" && served "$TMP/server" && no_keeper
}
# Nor where orphans come to the program itself.
test_killed_no_keeper_of_a_subreaper() { without_keeper "the program is a subreaper" "$TMP/ends" subreaper; }
test_killed_no_keeper_of_process_1() {
	without_keeper "process 1 of a container" unshare --pid --fork --kill-child --mount-proc "$TMP/ends" childless
}

# children STATE PID: how many of the process's children are in that state.
children() {
	local c n=0
	for c in $(cat "/proc/$2/task/$2/children"); do
		! grep -qs "^State:[[:space:]]*$1" "/proc/$c/status" || n=$((n + 1))
	done
	echo $n
}
# in_container INIT...: three programs with connections end one after another where INIT is process 1, which is not their parent. Sets $zombies, and
# $kept, how many of them had a keeper.
in_container() {
	local init i client
	zombies=0 kept=0
	own_program ends && serve 7655 "$NS1" "$TMP/server" -- "$TMP/ends" serve 3 || return 1
	unshare --pid --fork --kill-child --mount-proc "$@" &
	servers+=("$!")
	init=$(program $!) || { fail "there is no process 1"; return; }
	for i in 1 2 3; do
		in_ns "$NS2" timeout -k 5 60 nsenter --target "$init" --pid --mount "$UROCE" run --dev eth0 -- "$TMP/ends" childless 10.77.0.1 >"$TMP/client" 2>&1 &
		client=$!
		! one_keeper "$NS2" >/dev/null || kept=$((kept + 1))
		wait $client || { cat "$TMP/client" "$TMP/server"; fail "client $i"; return; }
		no_keeper "$NS2" || return
	done
	sleep 0.2 # process 1 has heard of it
	zombies=$(children Z "$init")
	kill -KILL "$init"
	echo "of 3 programs, $kept had a keeper; process 1 has $zombies zombies"
	served "$TMP/server"
}
# Its first process collects nobody, and would have a zombie of each program.
test_killed_in_a_container_without_init() { in_container sleep 60 && [ "$zombies$kept" = 00 ]; }
# It says that it heeds its children, but knows only its own: the first keeper stays, and the next programs see that.
test_killed_in_a_container_of_a_careless_init() {
	in_container python3 -c 'import signal, time; signal.signal(signal.SIGCHLD, lambda *_: None); time.sleep(30); time.sleep(30)' && [ "$zombies$kept" = 11 ]
}
test_killed_in_a_container_with_an_init() { in_container bash -c 'sleep 60; true' && [ "$zombies$kept" = 03 ]; }
test_killed_without_a_keeper() {
	local -x UROCE_KEEPER=0
	no_keeper && serve "$RPING" "$NS1" "$TMP/server" -- rping -s || return 1
	background "$NS2" "$TMP/client" -- rping -c -C 10000000 -a 10.77.0.1
	sleep 0.8
	[ -z "$(keepers "$NS1")$(keepers "$NS2")" ] || fail "a keeper that was switched off"
}
# Signals that no action is set for end a program like SIGKILL; the peer hears of it the same way.
test_killed_by_interrupt() {
	local s
	serve 18515 "$NS1" "$TMP/server" -- ib_write_bw -R -F -D 30 || return 1
	s=$server
	background "$NS2" "$TMP/client" -- ib_write_bw -R -F -D 30 10.77.0.1
	sleep 0.8
	kill -INT "$(program "$server")"
	gone_soon "$s" "the server" || { cat "$TMP/server"; return 1; }
}

# --- without a keeper: the kernel says that nobody has the port any more ---

# reported KIND: QPs that no connection manager knows of. By its retries alone the client would notice after half a minute (-u 20: 4.3 s, eight times).
reported() {
	local s c
	local -x UROCE_KEEPER=0 UROCE_PORT=$1
	background "$NS1" "$TMP/server" -- ib_write_bw -x 0 -F -D 60 -u 20
	s=$server
	ends_wait tcp 18515 || { cat "$TMP/server"; fail "the server does not listen"; return; }
	background "$NS2" "$TMP/client" -- ib_write_bw -x 0 -F -D 60 -u 20 10.77.0.1
	c=$server
	sleep 2.5 # perftest takes its time before it begins
	kill -0 "$s" && kill -0 "$c" || { cat "$TMP/server" "$TMP/client"; fail "they do not run"; return; }
	kill -KILL "$(program "$s")"
	gone_soon "$c" "the client" || { cat "$TMP/client"; return 1; }
	grep -q 'status 12' "$TMP/client" || { cat "$TMP/client"; fail "not because no answer came"; }
}
test_killed_reported_by_icmp() { reported udp; }
test_killed_reported_by_icmp_packet() { reported packet; }
