# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of other projects that are not about RDMA itself, but use it: UCX, Open MPI, qemu, fio, qperf. Those that are not installed are skipped.

# ucx_batch TRANSPORTS OPTIONS...: ucx_perftest with the batch $TMP/batch, whose every line gives a result.
ucx_batch() {
	local n
	needs ucx_perftest ucx-utils || return
	ucx_runs "$@" -b "$TMP/batch" -f -v || return 1
	n=$(grep -Ec '^[a-z_0-9]+, *[0-9]+,' "$TMP/client")
	cat "$TMP/client"
	[ "$n" -eq "$(wc -l <"$TMP/batch")" ] || fail "$n results"
}
# The transports by themselves. Each size is one that its kind of message may have.
test_ucx_uct() {
	{
		printf '%s -D short -s 8\n' am_lat put_lat am_bw put_bw
		printf '%s -D bcopy -s 4000\n' am_lat put_lat get am_bw put_bw
		printf '%s -D zcopy -s 5000\n' am_lat am_bw
		for s in 8192 8193 65536 1000000; do printf "%s -D zcopy -s $s\n" put_lat put_bw get; done
		printf '%s -D short -s 8\n' add_lat add_mr fadd cswap
	} | sed 's/\([a-z_]*\) -D \([a-z]*\) -s \([0-9]*\)/\1_\2_\3 -t &/; s/-t \([a-z_]*\) -D/-t \1 -D/' >"$TMP/batch"
	ucx_batch rc_verbs -d uroce0:1 -x rc_verbs -n 100 -w 5
}
test_ucx_uct_ud() {
	printf '%s_%s -t am_%s -D %s -s %s\n' lat_short 8 lat short 8 lat_bcopy 900 lat bcopy 900 bw_zcopy 900 bw zcopy 900 >"$TMP/batch"
	ucx_batch ud_verbs -d uroce0:1 -x ud_verbs -n 100 -w 5
}
# What programs see: eager, and by rendezvous where the messages are long.
ucx_ucp() { # TRANSPORTS SIZES...
	local s
	{
		for s in "${@:2}"; do
			printf "%s -s $s\n" tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_put_lat ucp_put_bw ucp_get stream_bw stream_lat ucp_am_lat ucp_am_bw
		done
		printf '%s -s 8\n' ucp_add ucp_fadd ucp_swap ucp_cswap
		printf '%s -s 16,8192,8192,14\n' ucp_am_lat
	} | awk '{ print $1 "_" NR, "-t", $0 }' >"$TMP/batch"
	ucx_batch "$1" -n 20 -w 2
}
test_ucx_ucp() { ucx_ucp rc_verbs,ud_verbs 8 8192 300000 3000000; }
test_ucx_ucp_ud() { ucx_ucp ud_verbs 8 8192 100000; }

test_libfabric_sizes() {
	local s
	local -x FI_OFI_RXM_COMP_PER_PROGRESS=64 FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000000
	needs fi_pingpong libfabric-bin || return
	for s in 1 8192 1000000; do
		fi_pingpong_both -p verbs -e msg -I 100 -S $s -c && fi_pingpong_both -p 'verbs;ofi_rxm' -e rdm -I 100 -S $s -c || { fail "size $s"; return; }
	done
}

# mpi MCA... -- RANKS ENVIRONMENT...: our own program of MPI, all ranks on one host. Only what is named carries messages between them.
mpi() {
	local options=() ranks
	needs mpirun openmpi-bin && needs mpicc libopenmpi-dev || return
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	ranks=$2
	shift 2
	[ -x "$TMP/ranks" ] || mpicc -O2 -Wall -Wextra -Werror -o "$TMP/ranks" "$here/src/ranks.c" || return 1
	uroce_files "$NS1" --counters "$TMP/counters" -- env "$@" mpirun --allow-run-as-root --oversubscribe -n "$ranks" --mca coll ^hcoll --mca btl self "${options[@]}" "$TMP/ranks" \
		>"$TMP/out" 2>&1 || { cat "$TMP/out"; fail "status $?"; return; }
	cat "$TMP/out"
	same_count 1 '^all is as it should be$' "$TMP/out"
}
mpi_ucx() { mpi --mca pml ucx --mca osc ucx --mca pml_ucx_devices any --mca pml_ucx_tls any -- "$2" UCX_NET_DEVICES=uroce0:1 UCX_TLS="$1"; }
test_mpi_ucx() { mpi_ucx rc_verbs,ud_verbs,self 2; }
test_mpi_ucx_ranks() { mpi_ucx rc_verbs,ud_verbs,self 5; }
test_mpi_ucx_ud() { mpi_ucx ud_verbs,self 3; }
test_mpi_libfabric() {
	mpi --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' --mca osc pt2pt -- 3 FI_OFI_RXM_COMP_PER_PROGRESS=64 FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000000
}

# mpi_two_hosts MCA... -- UROCE'S OPTIONS: two ranks on each host, as doc/mpi.md has it; in the place of ssh stands what enters the other host. Nothing but uroce
# carries messages.
mpi_two_hosts() {
	local options=()
	needs mpirun openmpi-bin && needs mpicc libopenmpi-dev || return
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	[ -x "$TMP/ranks" ] || mpicc -O2 -Wall -Wextra -Werror -o "$TMP/ranks" "$here/src/ranks.c" || return 1
	printf '#!/bin/sh\nshift\nexec ip netns exec %s sh -c "$*"\n' "$NS2" >"$TMP/agent" && chmod +x "$TMP/agent"
	in_ns "$NS1" timeout -k 5 90 mpirun --allow-run-as-root --oversubscribe --mca plm_rsh_agent "$TMP/agent" --host uroce-1:2,uroce-2:2 --mca coll ^hcoll \
		"${options[@]}" "$UROCE" run --dev eth0 "$@" -- "$TMP/ranks" >"$TMP/out" 2>&1 </dev/null || { cat "$TMP/out"; fail "status $?"; return; }
	cat "$TMP/out"
	same_count 1 '^all is as it should be$' "$TMP/out"
}
test_two_hosts_mpi_ucx() { mpi_two_hosts --mca pml ucx --mca osc ucx --mca pml_ucx_devices any --mca pml_ucx_tls any -x UCX_TLS=rc,self -- --files; }
test_two_hosts_mpi_libfabric() { mpi_two_hosts --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' --mca osc pt2pt --; }

# A guest moves to another process while its memory is sent by RDMA WRITE. It has no disk and no system: its firmware looks for one for ever.
test_qemu_migration() {
	local i state
	needs qemu-system-x86_64 qemu-system-x86 || return
	local guest=(qemu-system-x86_64 -accel tcg -m 96 -nodefaults -display none -no-user-config)
	background "$NS1" "$TMP/server" -- "${guest[@]}" -monitor "unix:$TMP/to.monitor,server,nowait" -incoming rdma:10.77.0.1:4444
	wait_listening "$NS1" 4444 "$server" || { cat "$TMP/server"; fail "it does not wait for the guest"; return; }
	background "$NS2" "$TMP/client" -- "${guest[@]}" -monitor "unix:$TMP/from.monitor,server,nowait"
	monitor from 'info status' | grep -q 'VM status: running' || { cat "$TMP/client"; fail "the guest does not run"; return; }
	monitor from "migrate_set_capability rdma-pin-all ${1:-off}" "migrate -d rdma:10.77.0.1:4444" >"$TMP/said"
	for i in $(seq 100); do
		state=$(monitor from 'info migrate')
		[[ $state =~ completed|failed ]] && break
		sleep 0.1
	done
	echo "$state"
	[[ $state =~ 'Migration status: completed' ]] || { cat "$TMP/said" "$TMP/server" "$TMP/client"; fail "the guest has not moved"; return; }
	monitor to 'info status' | grep -q 'VM status: running' || fail "the guest does not run there"
}
test_qemu_migration_pinned() { test_qemu_migration on; }
# monitor SIDE COMMAND...: what qemu's monitor says.
monitor() { /usr/bin/python3 "$here/src/monitor.py" "$TMP/$1.monitor" "${@:2}"; }

# fio_both VERB: the client's verb; the server takes part in it from the other side.
fio_both() {
	local common=(--ioengine=rdma --port=18600 --bs=1m --size=64m --iodepth=16)
	needs fio fio || return
	serve 18600 "$NS1" "$TMP/server" -- fio --minimal --name=server "${common[@]}" --rw=read || return 1
	uroce_in "$NS2" -- fio --minimal --name=client "${common[@]}" --rw=write --hostname=10.77.0.1 --verb="$1" >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" || return 1
	cat "$TMP/client"
	grep -Eq '^3;fio-[^;]*;client;0;0;' "$TMP/client" || fail "no result"
}
test_fio_write() { fio_both write; }
test_fio_read() { fio_both read; }
test_fio_send() { fio_both send; }

# qperf_once TEST: its server, a new process for each test, listens late, and the client may ask sooner: then it is refused, by a process or, where
# there is none with a port yet, by the kernel (ICMP), and tries again.
qperf_once() {
	local i
	for i in 1 2 3 4 5; do
		! uroce_in "$NS2" -- qperf 10.77.0.1 -cm 1 -t 1 "$1" >"$TMP/client" 2>&1 || return 0
		grep -Eq 'Event (rejected|unreachable)' "$TMP/client" || return 1
		sleep 0.3
	done
	return 1
}
test_qperf() {
	local t tests=(rc_bw rc_bi_bw rc_lat rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat rc_rdma_write_poll_lat
		rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add)
	needs qperf qperf || return
	serve_at 19765 "$NS1" "$TMP/server" -- qperf || return 1
	for t in "${tests[@]}"; do
		qperf_once "$t" || { cat "$TMP/client" "$TMP/server"; fail "$t"; return; }
		cat "$TMP/client"
		grep -Eq '(bw|latency|msg_rate) += +[0-9.]+' "$TMP/client" || { fail "$t: no figure"; return; }
	done
}
