# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The pingpongs of ibverbs-utils with their other options: kinds of memory, sizes, path MTUs, validation.

# pingpong PROGRAM [OPTIONS]: the same on both sides.
pingpong() {
	serve_tcp "$NS1" "$TMP/server" -- "$@" -g 0 || return 1
	uroce_in "$NS2" -- "$@" -g 0 10.77.0.1 >"$TMP/client" 2>&1 && served "$TMP/server" && return 0
	cat "$TMP/client" "$TMP/server"
	fail "$*"
}
test_pingpong_on_demand() {
	pingpong ibv_rc_pingpong -o -c -n 200 && pingpong ibv_rc_pingpong -o -P -c -n 200 && pingpong ibv_rc_pingpong -o -e -s 100000 -n 50
}
# One region of the whole address space.
test_pingpong_implicit_on_demand() {
	pingpong ibv_rc_pingpong -O -c -n 200 && pingpong ibv_rc_pingpong -O -P -c -n 200 && pingpong ibv_rc_pingpong -O -N -n 200
}
test_pingpong_device_memory() {
	pingpong ibv_rc_pingpong -j -c -n 200 && pingpong ibv_rc_pingpong -j -e -s 1048576 -n 10 && pingpong ibv_rc_pingpong -j -N -n 200
}
test_pingpong_every_mtu() {
	local m
	for m in 256 512 1024; do
		pingpong ibv_rc_pingpong -m $m -c -n 100 -s 5000 && pingpong ibv_uc_pingpong -m $m -c -n 100 -s 5000 -r 10 || return 1
	done
}
test_pingpong_sizes() {
	local s
	for s in 1 3 33 4095 4097 1048576; do pingpong ibv_rc_pingpong -c -s $s -n 20 || return 1; done
	for s in 1 33 1024; do pingpong ibv_ud_pingpong -c -s $s -n 100 || return 1; done
}
# perftest over the same kinds of memory; perf is in verbs.sh.
test_perftest_on_demand() { perf ib_write_bw --odp -s 65536 -n 500 && perf ib_read_lat --odp -s 4096 -n 200; }
test_perftest_sw_rate_limit() { perf ib_write_bw -s 4096 -n 500 --rate_limit=1 --rate_limit_type=SW; }
test_perftest_xrc() { perf ib_send_bw -c XRC -s 4096 -n 500 && perf ib_atomic_bw -c XRC -n 200; }
test_perftest_uc_ud() { perf ib_write_bw -c UC -s 4096 -n 500 && perf ib_send_lat -c UD -s 512 -n 200; }
test_perftest_srq_16() { perf ib_send_bw --use-srq -q 16 -s 4096 -n 500; }
