# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# 'tools/bench loss': what losses cost. The simulated parts are those of test/sim/losstable, in virtual time. The part `real` measures perftest over
# uroce, and kernel TCP, between two namespaces with a bridge in a third one between them, where nftables drops packets in either direction.
#
# What is dropped is a packet of the wire: the hosts' ends of the cables have no segmentation offload, so TCP's and uroce's trains alike are cut
# into packets before they reach the bridge; behind it GRO joins them again, as a NIC's driver would. Of uroce the RoCEv2 packets are subject to it
# (UDP port 4791), of TCP the packets of the connection that is measured; perftest's own connection, by which its two ends find each other, is not.
#
# The path is measured as it is, and with a millisecond more of round trip, for which 'uroce between' takes the place of the bridge: netem is not in
# every kernel. There it drops any frame by chance, perftest's own connection included.
#
# Sourced by tools/bench behind perftest.sh, whose cell it uses; it brings pair, median_of, ratio and the variables.

SIMULATED=(goodput latency reorder jitter burst incast silent)
LOSSES=(0 0.01 0.1 1 2 5)
REAL_OPS=(WRITE SEND READ)
REAL_RTTS=(- 1000) # -: that of the machine; otherwise us that are added to it
BYTES=65536
DEPTH=128

# --- the path ---

# make_path: as make_cable, with $NSM between the two, whose ports are p1 and p2.
make_path() {
	local i ns
	make_cable 1500 || return 1
	ip -n "$NS1" link del eth0 || return 1
	NSM=uroce-$$-m
	on_exit "ip netns del $NSM"
	ip netns add "$NSM" && ip -n "$NSM" link add br0 type bridge && ip -n "$NSM" link set br0 up || return 1
	for i in 1 2; do
		ns=uroce-$$-$i
		ip link add name eth0 netns "$ns" mtu 1500 type veth peer name p$i netns "$NSM" mtu 1500 || return 1
		ip -n "$NSM" link set p$i master br0 up && ip -n "$ns" link set eth0 up && ip -n "$ns" addr add 10.77.0.$i/24 dev eth0 || return 1
		cut_trains "$ns" eth0 && in_ns "$ns" ethtool -K eth0 gro on && cut_trains "$NSM" p$i || return 1
	done >>"$LOG" 2>&1
}

cut_trains() { in_ns "$1" ethtool -K "$2" tso off gso off tx-udp-segmentation off; } # NAMESPACE INTERFACE

# lose RTT PERCENT: from now on, in either direction; a number is drawn for each packet by itself.
cable=0
on_exit 'stop "$cable"' # as it is then
lose() {
	stop "$cable"
	cable=0
	! in_ns "$NSM" nft list table netdev loss >/dev/null 2>&1 || in_ns "$NSM" nft delete table netdev loss
	if [ "$1" = - ]; then lose_at_bridge "$2"; else lose_in_cable "$1" "$2"; fi
}

lose_at_bridge() { # PERCENT
	local port share
	share=$(awk -v p="$1" 'BEGIN { printf "%d", p * 10000 + 0.5 }')
	ip -n "$NSM" link set p1 master br0 && ip -n "$NSM" link set p2 master br0 || return 1
	[ "$share" -gt 0 ] || return 0
	{
		echo 'table netdev loss {'
		for port in p1 p2; do
			printf 'chain %s {\ntype filter hook ingress device "%s" priority 0\n' $port $port
			printf '%s numgen random mod 1000000 < %d counter drop\n' 'udp dport 4791' "$share" 'tcp dport 7300' "$share" 'tcp sport 7300' "$share"
			echo '}'
		done
		echo '}'
	} | in_ns "$NSM" nft -f - >>"$LOG" 2>&1
}

lose_in_cable() { # US PERCENT
	local rules=(--rule "delay delay=$(($1 / 2))us") i
	[ "$2" = 0 ] || rules=(--rule "drop chance=$2%" "${rules[@]}")
	ip -n "$NSM" link set p1 nomaster && ip -n "$NSM" link set p2 nomaster || return 1
	ip netns exec "$NSM" "$uroce" between --name "$NSM" "${rules[@]}" p1 p2 </dev/null >>"$LOG" 2>&1 &
	cable=$!
	for i in $(seq 100); do
		! "$uroce" between --tell "$NSM" status >>"$LOG" 2>&1 || return 0
		sleep 0.05
	done
	return 1
}

# Packets dropped since `lose`.
dropped() {
	if [ "$cable" != 0 ]; then
		"$uroce" between --tell "$NSM" --json status | python3 -c 'import json, sys; print(json.load(sys.stdin)["done"]["dropped"])'
	else
		in_ns "$NSM" nft list table netdev loss | sed -n 's/.*counter packets \([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
	fi
}

# --- one cell each ---

# verbs_over PORT PROGRAM OPTIONS...: what the client of perftest says, its line of figures.
verbs_over() {
	listens_on=18515 pair ip netns exec "$NS1" "$uroce" run --dev eth0 --port "$1" -- "$2" -F -x 0 "${@:3}" AND \
		ip netns exec "$NS2" "$uroce" run --dev eth0 --port "$1" -- "$2" -F -x 0 "${@:3}" 10.77.0.1 | awk '$1 ~ /^[0-9]+$/ { print; exit }'
}
verbs_goodput() { # PORT OP
	verbs_over "$1" "ib_${2,,}_bw" -s $BYTES -t $DEPTH -Q 32 --report_gbits -f 0 -D "$seconds" | awk '$4 > 0 { printf "%.4g\n", $4 }'
}
# ping_figures PORT CELL: perftest's are halves of round trips.
ping_figures() {
	verbs_over "$1" ib_send_lat -s 64 -n $((2000 * seconds)) | awk '$5 > 0 && $8 > 0 { printf "%.2f %.2f\n", 2 * $5, 2 * $8 }' >"$TMP/ping"
	[ -s "$TMP/ping" ] || return 1
	cut -d ' ' -f 1 "$TMP/ping" >>"$TMP/$2.p50-us"
	cut -d ' ' -f 2 "$TMP/ping" | tee -a "$TMP/$2.p99-us"
}
# tcp_figures CONTROL MESSAGE DEPTH: what tcpbench prints.
tcp_figures() {
	listens_on=7300 pair ip netns exec "$NS1" "$bench/tcpbench" server -c "$1" AND \
		ip netns exec "$NS2" "$bench/tcpbench" client 10.77.0.1 -s "$2" -d "$3" -t "$seconds" -c "$1" | tr ' ' '\n'
}
tcp_goodput() { tcp_figures "$1" $BYTES $DEPTH | sed -n 's/^gbps=//p'; } # CONTROL
tcp_ping() {                                                            # CONTROL CELL
	tcp_figures "$1" 64 1 >"$TMP/ping" || return
	sed -n 's/^rtt_us=//p' "$TMP/ping" >>"$TMP/$2.p50-us"
	sed -n 's/^p99_us=//p' "$TMP/ping" | tee -a "$TMP/$2.p99-us"
}

# Cells are named real.RTT/LOSS/PEERS/OP.METRIC with commas for the slashes; `cell` keeps one figure, the p99 of the pings a second time.
real_round() {
	local rtt loss
	for rtt in "${REAL_RTTS[@]}"; do
		for loss in "${losses[@]}"; do
			lose "$rtt" "$loss" || { say "the path cannot lose packets; the log is in $LOG" >&2; return 1; }
			real_cells "real,$rtt,$loss"
			[ "$loss" = 0 ] || say "  $loss %$([ "$rtt" = - ] || echo ", $rtt us"): $(dropped) packets dropped"
		done
	done
}

real_cells() { # BEGINNING OF NAMES
	local port op control
	for port in "${ports[@]}"; do
		for op in "${REAL_OPS[@]}"; do cell "$1,uroce-$port,$op.gbps" verbs_goodput "$port" "$op"; done
		cell "seen" ping_figures "$port" "$1,uroce-$port,ping"
	done
	for control in "${controls[@]}"; do
		cell "$1,TCP-$control,stream.gbps" tcp_goodput "$control"
		cell "seen" tcp_ping "$control" "$1,TCP-$control,ping"
	done
}

# Rows of what the rounds found.
real_rows() {
	local rtt loss peers metric op file
	for rtt in "${REAL_RTTS[@]}"; do
		for loss in "${losses[@]}"; do
			for file in "$TMP/real,$rtt,$loss",*; do
				[ -s "$file" ] || continue
				IFS=, read -r _ _ _ peers op <<<"${file##*/}"
				metric=${op#*.}
				printf 'real\t%s\t%s\t%s\t%s\t-\t%s\t%s\t%s\n' "$rtt" "${op%%.*}" "$peers" "$loss" "$metric" "$(median_of "$file")" "$(paste -sd, "$file")"
			done
		done
	done
}

# A module is loaded when a socket asks for it.
kernel_has() {
	python3 -c 'import socket, sys; socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())' "$1" 2>>"$LOG"
}

# What keeps the part `real` from being measured here, or nothing.
real_obstacle() {
	[ "$(id -u)" = 0 ] || { echo "network namespaces need root"; return; }
	command -v nft >/dev/null || { echo "there is no nft (apt-get install nftables)"; return; }
	command -v ethtool >/dev/null || { echo "there is no ethtool (apt-get install ethtool)"; return; }
	make_path || { echo "the path with a bridge in it could not be made; the log is in $LOG"; return; }
	lose - 1 || echo "this kernel's nftables cannot drop packets by chance on a bridge's port"
}

measure_real() {
	local i why control
	# Not in a subshell: what it makes is to be removed in the end.
	real_obstacle >"$TMP/why"
	why=$(cat "$TMP/why")
	[ -z "$why" ] || { say "real sockets are left out: $why."; return; }
	controls=()
	for control in cubic bbr; do
		if kernel_has $control; then controls+=($control); else say "TCP $control is left out: this kernel does not have it."; fi
	done
	for i in $(seq "$runs"); do
		say "real sockets, round $i of $runs"
		real_round || { failed=1; return; }
	done
	real_rows >>"$TMP/rows"
}

# --- all of it ---

# loss_table: measures the parts that $kinds names, keeps their rows in $data, and prints them.
loss_table() {
	local part
	: >"$TMP/rows"
	for part in "${SIMULATED[@]}"; do
		wanted "$part" || continue
		say "simulating $part ..."
		nice -n 5 "$ROOT/build-bench/test/sim/losstable" --tsv "$part" >>"$TMP/rows" || { failed=1; return; }
	done
	! wanted real || measure_real
	[ -s "$TMP/rows" ] || { say "nothing was measured"; failed=1; return; }
	python3 "$ROOT/test/bench/loss.py" merge "${data:-$TMP/loss.tsv}" "$TMP/rows" || { failed=1; return; }
	say
	python3 "$ROOT/test/bench/loss.py" table "${data:-$TMP/loss.tsv}"
	[ -z "$doc" ] || loss_doc
}

# The pages and pictures that have figures of doc/loss.tsv.
loss_doc() {
	local picture
	python3 "$ROOT/test/bench/loss.py" fill "$data" "$ROOT"/doc/{loss,performance}.md "$ROOT/README.md" || failed=1
	for picture in goodput latency faults incast real; do
		grep -q "^${picture/faults/burst}[[:space:]]" "$data" || continue # not measured yet
		gnuplot -e "data='$data'; picture='$picture'" "$ROOT/test/bench/loss.gp" >"$ROOT/doc/loss-$picture.svg" 2>>"$LOG" || {
			say "the picture loss-$picture.svg was not drawn; the log is in $LOG" >&2
			failed=1
		}
	done
}
