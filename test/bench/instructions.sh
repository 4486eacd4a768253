# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034
# 'tools/bench instructions': what liburoce executes for a packet inside a message of 64 packets, at the sender and at the receiver, and for an
# iteration of a ping-pong of 8 bytes. perftest's programs over port $port between two namespaces, MTU 1500, path MTU 1024. One side at a time runs
# under callgrind, twice, with n and 2n iterations: callgrind.py takes the difference. dilate.c keeps what the machine does out of it.
#
# Sourced by tools/bench, which brings the namespaces, $TMP, $uroce and the variables build, port, top, data and failed.

PACKETS=64
MESSAGES=1000
PINGS=3000
TRIES=3

# The build as packages have it, or that in $build, brought up to date.
instructions_build() {
	build=${build:-$ROOT/build-bench}
	if [ "$build" = "$ROOT/build-bench" ]; then
		build_bench bench || return 1
	else
		[ -f "$build/build.ninja" ] || die "$build is no build directory: 'meson setup --native-file tools/release.ini $build' makes one"
		step "building $build" ninja -j"$JOBS" -C "$build" || return 1
	fi
	uroce=$build/apps/uroce/uroce
	step "compiling dilate" "${CC:-cc}" -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -shared -fPIC -o "$TMP/dilate.so" "$ROOT/test/bench/dilate.c"
}

# How it was built: 'buildtype release, b_lto true'.
build_options() {
	meson introspect --buildoptions "$build" | python3 -c 'import json, sys
o = {x["name"]: str(x["value"]).lower() for x in json.load(sys.stdin)}
print(", ".join(f"{n} {o[n]}" for n in ("buildtype", "b_lto")))'
}

resent() { cat "$TMP"/counters.* 2>/dev/null | awk '$1 == "tx_retransmits" || $1 == "rx_missed" { n += $2 } END { print n + 0 }'; }

# profile SIDE FILE PROGRAM ARGUMENTS...: one run, with that side under callgrind. A server that has not ended with its client would profile its being
# killed, so it is waited for.
profile() {
	local side=$1 file=$2 command=("${@:3}") pid status=0 server=() client=()
	local both=(env LD_PRELOAD="$TMP/dilate.so" "$uroce" run --dev eth0 --port "$port")
	local callgrind=(valgrind --tool=callgrind --callgrind-out-file="$file" --log-file="$TMP/valgrind")

	rm -f "$file" "$TMP"/counters.*
	if [ "$side" = server ]; then server=("${callgrind[@]}"); else client=("${callgrind[@]}"); fi
	timeout -k 5 120 ip netns exec "$NS1" "${both[@]}" --counters "$TMP/counters.1" -- "${server[@]}" "${command[@]}" </dev/null >>"$LOG" 2>&1 &
	pid=$!
	until [ -n "$(in_ns "$NS1" ss -Hltn 'sport = :18515')" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
	timeout -k 5 120 ip netns exec "$NS2" "${both[@]}" --counters "$TMP/counters.2" -- "${client[@]}" "${command[@]}" 10.77.0.1 </dev/null >>"$LOG" 2>&1 ||
		status=1
	[ $status -eq 0 ] || stop $pid
	wait $pid || status=1
	[ $status -eq 0 ] && [ -s "$file" ]
}

# profiles TITLE PROGRAM SIDE SIZE N UNITS PER ARGUMENTS...: both runs of a row; one in which more than one packet in a thousand was lost or sent again is repeated.
profiles() {
	local title=$1 program=$2 side=$3 size=$4 n=$5 units=$6 per=$7 count try
	local file=$TMP/$program.$side

	printf '%s ...' "$title"
	for count in "$n" $((2 * n)); do
		for try in $(seq $TRIES); do
			if profile "$side" "$file.$count" "$program" -F -x 0 -s "$size" -n "$count" -u 20 "${@:8}"; then
				printf ' %d' "$count"
				[ "$(resent)" -gt $((units * count / n / 1000)) ] || break
				printf ' (%d packets lost or sent again)' "$(resent)"
			elif [ "$try" -lt $TRIES ]; then
				printf ' failed, again:'
			else
				printf ' failed\n'
				tail -n 20 "$LOG" >&2
				failed=1
				return 1
			fi
		done
	done
	printf '\n'
	rows+=("$title,$program:$side:$size,$units,$per,$file.$n,$file.$((2 * n))")
}

instructions() {
	local rows=() options=(--port "$port") bw=(65536 "$MESSAGES" $((MESSAGES * PACKETS)) "$PACKETS" -t 128 -Q 32)

	[ "$top" -eq 0 ] || options+=(--top "$top")
	[ -z "$data" ] || options+=(--data "$data")
	profiles "WRITE: sender" ib_write_bw client "${bw[@]}"
	profiles "WRITE: receiver" ib_write_bw server "${bw[@]}"
	profiles "READ: sender (responder)" ib_read_bw server "${bw[@]}"
	profiles "READ: receiver (requester)" ib_read_bw client "${bw[@]}"
	profiles "SEND: sender" ib_send_bw client "${bw[@]}"
	profiles "SEND: receiver" ib_send_bw server "${bw[@]}"
	profiles "SEND of 8 bytes" ib_send_lat client 8 $PINGS $PINGS 1
	say
	say "$(cd "$build" && git describe --always --dirty 2>/dev/null) in $build: $(build_options)"
	say "instructions a packet of a message of $PACKETS; of 'SEND of 8 bytes' for an iteration; on the right calls for a message, or an iteration"
	[ ${#rows[@]} -gt 0 ] && python3 "$ROOT/test/bench/callgrind.py" "${options[@]}" "${rows[@]}" || failed=1
}
