# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of programs are made of.

fail() { echo "FAILED: $*"; return 1; }

# become_nobody: programs run as user nobody, without any capability, who may not be let into the tree: then from a copy of the installation.
become_nobody() {
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
	chmod 1777 "$TMP"
	! "${as[@]}" test -x "$UROCE" || return 0
	cp -a "$PREFIX" "$TMP/nobodys"
	chmod -R a+rX "$TMP/nobodys"
	UROCE=$TMP/nobodys/bin/uroce
}

# The interfaces that programs get as devices.
DEVICES=eth0

# uroce_in NS [OPTIONS] -- PROGRAM...: in the foreground, within 60 seconds.
uroce_in() {
	local ns=$1
	shift
	in_ns "$ns" timeout -k 5 60 "${as[@]}" "$UROCE" run --dev "$DEVICES" "$@" </dev/null
}

# background NS FILE [OPTIONS] -- PROGRAM...: output to FILE. Sets $server.
background() {
	local ns=$1 out=$2
	shift 2
	ip netns exec "$ns" timeout -k 5 90 "${as[@]}" "$UROCE" run --dev "$DEVICES" "$@" </dev/null >"$out" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
}

# serve PORT NS FILE [OPTIONS] -- PROGRAM...: as background, and returns when the program listens on that port of the RDMA CM, or of TCP if
# $listens_on_tcp is not empty.
listens_on_tcp=
serve() {
	local port=$1 i
	shift
	background "$@"
	if [ -n "$listens_on_tcp" ]; then
		for i in $(seq 100); do
			[ -z "$(in_ns "$1" ss -Hltn "sport = :$port")" ] || return 0
			sleep 0.05
		done
	elif wait_listening "$1" "$port" "$server" --dev "$DEVICES"; then
		return 0
	fi
	echo "the server's output:"
	cat "$2"
	kill -0 "$server" 2>/dev/null || { wait "$server"; fail "the server ended with status $? before it listened on port $port"; return; }
	fail "the server does not listen on port $port"
}

# As serve, for programs that exchange their addresses over TCP port 18515 before they use RDMA.
serve_tcp() { listens_on_tcp=yes serve 18515 "$@"; }

# The server ends by itself with status 0.
served() {
	local status
	wait "$server"
	status=$?
	[ $status -eq 0 ] || { cat "$1"; fail "the server ended with status $status"; }
}

# until_says FILE TEXT: within 10 seconds.
until_says() {
	local i
	for i in $(seq 200); do
		! grep -q "$2" "$1" || return 0
		sleep 0.05
	done
	cat "$1"
	fail "'$2' is not said"
}

# record NS FILTER FILE: what passes eth0 there, from now on. Sets $recorder.
record() {
	type tcpdump tshark >/dev/null || { fail "tcpdump or tshark is not here: install them"; return; }
	rm -f "$3"
	: >"$3.err" # what a recording before has said does not count
	ip netns exec "$1" timeout 60 tcpdump -i eth0 -s 2048 -B 16384 -U --immediate-mode -w "$3" "$2" >"$3.err" 2>&1 &
	recorder=$!
	servers+=("$recorder")
	on_exit "stop $recorder"
	until_says "$3.err" "listening on"
}

stop_servers() {
	local p
	for p in "${servers[@]}"; do stop "$p"; done
	servers=()
}

# ping OPTIONS: rping with the same options on both sides, server 10.77.0.1.
ping_both() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s "$@" || return 1
	uroce_in "$NS2" -- rping -c -a 10.77.0.1 "$@" || { cat "$TMP/server"; fail "client status $?"; return; }
	served "$TMP/server"
}

# talk PORT "SERVER" "CLIENT" [goes_on]: two commands, the server in the first namespace; the server ends by itself, unless it goes on. Output in $TMP/server
# and $TMP/client. $client_options are those of the client's `uroce run`; its status is 0 or $may_end_with.
client_options=()
may_end_with=0
talk() {
	local status
	# shellcheck disable=SC2086
	serve "$1" "$NS1" "$TMP/server" -- $2 || return 1
	# shellcheck disable=SC2086
	uroce_in "$NS2" "${client_options[@]}" -- $3 >"$TMP/client" 2>&1
	status=$?
	[ $status = 0 ] || [ $status = "$may_end_with" ] || { cat "$TMP/client" "$TMP/server"; fail "client status $status: $3"; return; }
	if [ "${4:-}" = goes_on ]; then
		kill -0 "$server" || { cat "$TMP/server"; fail "the server has ended"; return; }
	else
		served "$TMP/server"
	fi
}

# needs PROGRAM PACKAGE: a test without it is skipped.
needs() {
	command -v "$1" >/dev/null || { echo "there is no $1 (apt-get install $2)"; return "$SKIPPED"; }
}

# copied FILES...: how many messages were copied from another process's memory, by the counters of all.
copied() { cat "$@" | awk '$1 == "tx_bulk" { n += $2 } END { print n + 0 }'; }

same_count() {
	local n
	n=$(grep -c "$2" "$3")
	[ "$n" -eq "$1" ] || { cat "$3"; fail "'$2' came $n times instead of $1"; }
}
