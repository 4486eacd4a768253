# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# 'tools/bench host': perftest between two processes of one host, over lo in a namespace of its own, beside other ways from one process to another:
# kernel TCP, UCX (shared memory, and one copy by process_vm_readv), libfabric's shm, and the bare copies (copybench). Two threads of one process
# (pairbench), connections that nobody uses (idlebench), and four ranks of MPI (alltoall). Each round measures every cell once; the table shows medians.
#
# Sourced by tools/bench behind perftest.sh, whose cell, wanted, line, keep and busy it uses; it brings pair, median_of, ratio and the variables,
# among them the arrays sizes and depths and the word kinds.

PROGRAMS=(ib_write_bw ib_read_bw ib_send_bw)
WALK=8388608 # bytes through which source and destination of a copy walk, each: more than the second cache holds
APART=$((1 << 30)) # in the file that both ends map, from the memory of the one to that of the other
QPS=64
CONNECTIONS=1000
IDLE_SECONDS=10
RANKS=4
ALLTOALL=262144 # bytes from each rank to each
SKIPPED=()      # sentences: what is left out, and why

# --- before the rounds ---

# A namespace with nothing but lo, and a file in /dev/shm that both ends map: sparse, and as long as needed.
make_host() {
	NS1=uroce-$$-host
	on_exit "ip netns del $NS1"
	ip netns add "$NS1" && ip -n "$NS1" link set lo up || return 1
	MAPPED=$(mktemp /dev/shm/uroce-bench-XXXXXX) || return 1
	on_exit "rm -f $MAPPED"
	truncate -s $((2 * APART)) "$MAPPED"
}

# The others that are there; a sentence for each that is not.
find_others() {
	have_libfabric=
	have_mpi=
	if wanted lat && command -v fi_pingpong >/dev/null && fi_info -p shm >>"$LOG" 2>&1; then
		have_libfabric=yes
	elif wanted lat; then
		SKIPPED+=("libfabric is left out: there is no fi_pingpong with the provider shm (apt-get install libfabric-bin).")
	fi
	if wanted mpi && ! { command -v mpirun && command -v mpicc; } >/dev/null; then
		SKIPPED+=("MPI_Alltoall is left out: there is no mpirun and mpicc of Open MPI (apt-get install openmpi-bin libopenmpi-dev).")
	elif wanted mpi && ! mpicc -O2 -o "$TMP/alltoall" "$ROOT/test/bench/alltoall.c" >>"$LOG" 2>&1; then
		SKIPPED+=("MPI_Alltoall is left out: mpicc does not compile test/bench/alltoall.c; the log is in $LOG.")
	elif wanted mpi; then
		have_mpi=yes
	fi
}

# --- one figure each ---

# said KEY: its value in what a program of ours printed.
said() { tr ' ' '\n' <"$TMP/said" | sed -n "s/^$1=\([0-9.e+-]*\)\$/\1/p"; }

# ours COMMAND...: a single program in the namespace; what it prints is in $TMP/said.
ours() { in_ns "$NS1" timeout -k 5 "$limit" "$@" </dev/null >"$TMP/said" 2>>"$LOG"; }

# between PORT COMMAND...: both ends, with TCP port PORT to find each other, which is where the server has to listen first.
between() {
	local port=$1
	shift
	listens_on=$port pair ip netns exec "$NS1" "$@" AND ip netns exec "$NS1" "$@" 127.0.0.1 >"$TMP/said"
}

# verbs PROGRAM SIZE COLUMN OPTIONS...
verbs() {
	between 18515 "$uroce" run --dev lo -- "$1" -F -x 0 -s "$2" "${@:4}" || return
	awk -v s="$2" -v c="$3" '$1 == s { print $c; exit }' "$TMP/said"
}
verbs_lat() { verbs "$1" 8 5 -n $((50000 * seconds)); } # PROGRAM
verbs_bw() {                                            # PROGRAM SIZE DEPTH OPTIONS...
	verbs "$1" "$2" 4 --report_gbits -D "$seconds" -f 0 -t "$3" -Q $(($3 < 32 ? 1 : 32)) "${@:4}"
}
verbs_rate() { verbs "$1" 8 5 --report_gbits -D "$seconds" -f 0 -t 128 -Q 32 "${@:2}"; } # PROGRAM OPTIONS...

# The two ends map different parts of one file, so only their command lines differ.
verbs_mapped() { # PROGRAM SIZE DEPTH
	local program=("$uroce" run --dev lo -- "$1" -F -x 0 -s "$2" --report_gbits -D "$seconds" -f 0 -t "$3" -Q $(($3 < 32 ? 1 : 32)) "--mmap=$MAPPED")

	listens_on=18515 pair ip netns exec "$NS1" "${program[@]}" AND \
		ip netns exec "$NS1" "${program[@]}" "--mmap-offset=$APART" 127.0.0.1 >"$TMP/said" || return
	awk -v s="$2" '$1 == s { print $4; exit }' "$TMP/said"
}

# tcp_host SIZE DEPTH
tcp_host() {
	listens_on=7300 pair ip netns exec "$NS1" "$bench/tcpbench" server AND \
		ip netns exec "$NS1" "$bench/tcpbench" client 127.0.0.1 -s "$1" -d "$2" -t "$seconds" >"$TMP/said"
}
tcp_host_lat() { tcp_host 8 1 && said rtt_us | awk '{ printf "%.2f\n", $1 / 2 }'; }
tcp_host_bw() { tcp_host "$1" "$2" && said gbps; } # SIZE DEPTH
tcp_host_rate() { tcp_host 8 128 && said gbps | awk '{ printf "%.4g\n", $1 * 1000 / 64 }'; }

# ucx_host TEST SIZE DEPTH MESSAGES: MESSAGES that take about a second. ucx_column COLUMN FACTOR: of the CSV that -v prints.
ucx_host() { between 13337 env UCX_TLS=posix,cma,self ucx_perftest -t "$1" -s "$2" -O "$3" -n $(($4 * seconds)) -w 100 -f -v; }
ucx_column() { awk -F, -v c="$1" -v factor="$2" '/^ *[0-9]+,/ { printf "%.4g\n", $c * factor; exit }' "$TMP/said"; }
ucx_host_lat() { ucx_host "$1" 8 1 500000 && ucx_column 2 1; }                # TEST
ucx_host_rate() { ucx_host "$1" 8 128 5000000 && ucx_column 8 1e-6; }         # TEST
ucx_host_bw() { ucx_host "$@" && ucx_column 6 $((8 * 1048576))e-9; } # TEST SIZE DEPTH MESSAGES

libfabric_lat() {
	between 47592 fi_pingpong -p shm -e rdm -S 8 -I $((100000 * seconds)) || return
	awk '$1 == 8 { print $7; exit }' "$TMP/said"
}

copy() { ours "$bench/copybench" "$1" -s "$2" -f "$3" -t "$seconds" && said gbps; } # memcpy|readv SIZE FOOTPRINT

threads_lat() { ours "$uroce" run --dev lo -- "$bench/pairbench" -n $((50000 * seconds)) "$1" && said median_us; } # MODE

# idle SIDE: the client's figure is of the same ten seconds as the server's, which has been measured before it.
idle() {
	[ "$1" = client ] || ours "$uroce" run --dev lo -- "$bench/idlebench" 127.0.0.1 -n $CONNECTIONS -t $IDLE_SECONDS || return
	said "$1_ms"
}

# alltoall TLS COMMAND...: Open MPI over UCX with these transports, started by COMMAND.
alltoall() {
	ours "${@:2}" env "UCX_TLS=$1" mpirun --allow-run-as-root --oversubscribe -n $RANKS --mca pml ucx --mca pml_ucx_devices any --mca pml_ucx_tls any \
		--mca coll ^hcoll --mca btl self "$TMP/alltoall" $ALLTOALL "$seconds" || return
	said us
}
alltoall_verbs() { alltoall "$1" "$uroce" run --dev lo --files -- env UCX_NET_DEVICES=uroce0:1; } # TLS

# --- the rounds: cells are named KIND[DEPTH].[PORT.]PROGRAM.SIZE, as keep reads them ---

host_round() {
	local s d
	! wanted bw || for s in "${sizes[@]}"; do
		copy_cells "$s"
		for d in "${depths[@]}"; do host_bw_cells "$s" "$d"; done
	done
	! wanted rate || rate_cells
	! wanted lat || host_lat_cells
	[ -z "$have_mpi" ] || mpi_cells
	! wanted idle || {
		cell cpu$CONNECTIONS.lo.server.0 idle server
		cell cpu$CONNECTIONS.lo.client.0 idle client
	}
}

# A copy is done before the next begins: no depth.
copy_cells() { # SIZE
	local how
	for how in memcpy readv; do
		cell "bw.copy.$how.$1" copy $how "$1" "$1"
		cell "bw.copy.$how-walk.$1" copy $how "$1" $(($1 < WALK ? WALK / $1 * $1 : $1))
	done
}

host_bw_cells() { # SIZE DEPTH
	local p long=$(($1 / 65536 + 1))
	cell "bw$2.TCP.$1" tcp_host_bw "$1" "$2"
	cell "bw$2.UCX.tag_bw.$1" ucx_host_bw tag_bw "$1" "$2" $((120000 / long))
	cell "bw$2.UCX.ucp_put_bw.$1" ucx_host_bw ucp_put_bw "$1" "$2" $((300000 / long))
	for p in "${PROGRAMS[@]}"; do
		cell "bw$2.lo.$p.$1" verbs_bw "$p" "$1" "$2"
		cell "bw$2.lo.$p-mmap.$1" verbs_mapped "$p" "$1" "$2"
	done
	[ "$1" -gt 65536 ] || cell "bw$2.lo.ib_write_bw-q$QPS.$1" verbs_bw ib_write_bw "$1" "$2" -q $QPS
}

rate_cells() {
	cell rate128.TCP.8 tcp_host_rate
	cell rate128.UCX.tag_bw.8 ucx_host_rate tag_bw
	cell rate128.UCX.ucp_put_bw.8 ucx_host_rate ucp_put_bw
	cell rate128.lo.ib_send_bw.8 verbs_rate ib_send_bw
	cell rate128.lo.ib_write_bw.8 verbs_rate ib_write_bw
	cell rate128.lo.ib_write_bw-q$QPS.8 verbs_rate ib_write_bw -q $QPS
}

host_lat_cells() {
	cell lat.TCP.8 tcp_host_lat
	cell lat.UCX.tag_lat.8 ucx_host_lat tag_lat
	cell lat.UCX.ucp_put_lat.8 ucx_host_lat ucp_put_lat
	[ -z "$have_libfabric" ] || cell lat.libfabric.8 libfabric_lat
	cell lat.lo.ib_send_lat.8 verbs_lat ib_send_lat
	cell lat.lo.ib_write_lat.8 verbs_lat ib_write_lat
	cell lat.lo.threads-cq.8 threads_lat cq
	cell lat.lo.threads-lat.8 threads_lat lat
}

mpi_cells() {
	cell mpi.UCX.shm.$ALLTOALL alltoall posix,cma,self
	cell mpi.lo.rc.$ALLTOALL alltoall_verbs rc_verbs,ud_verbs,self
	cell mpi.lo.ud.$ALLTOALL alltoall_verbs ud_verbs,self
}

# --- the table ---

# length BYTES: as 64K or 1M.
length() {
	if [ $(($1 % 1048576)) = 0 ]; then echo $(($1 / 1048576))M; elif [ $(($1 % 1024)) = 0 ]; then echo $(($1 / 1024))K; else echo "$1"; fi
}

# bw_of NAME SIZE DEPTH: the median of a cell; of copies, whatever the depth.
bw_of() {
	local depth=$3
	[[ $1 != copy.* ]] || depth=
	median_of "$TMP/bw$depth.$1.$2"
}

# bw_line TITLE NAME [NAME]: figures, or with a second name ratios, by size and depth.
bw_line() {
	local s d out=() title=$1
	shift
	for s in "${sizes[@]}"; do
		for d in "${depths[@]}"; do
			if [ $# -eq 1 ]; then out+=("$(bw_of "$1" "$s" "$d")"); else out+=("$(ratio "$(bw_of "$1" "$s" "$d")" "$(bw_of "$2" "$s" "$d")")"); fi
		done
	done
	line "$title" "${out[@]}"
}

# one_line TITLE CELL [CELL]
one_line() {
	if [ $# -eq 2 ]; then line "$1" "$(median_of "$TMP/$2")"; else line "$1" "$(ratio "$(median_of "$TMP/$2")" "$(median_of "$TMP/$3")")"; fi
}

bw_block() {
	local s d p title=()
	for s in "${sizes[@]}"; do for d in "${depths[@]}"; do title+=("$(length "$s") x $d"); done; done
	line "bandwidth, Gbit/s" "${title[@]}"
	bw_line "  memcpy, one buffer" copy.memcpy
	bw_line "  memcpy, through $(length $WALK)" copy.memcpy-walk
	bw_line "  process_vm_readv, one buffer" copy.readv
	bw_line "  process_vm_readv, through $(length $WALK)" copy.readv-walk
	bw_line "  kernel TCP, polled" TCP
	bw_line "  UCX tag_bw (cma)" UCX.tag_bw
	bw_line "  UCX ucp_put_bw (shared)" UCX.ucp_put_bw
	for p in "${PROGRAMS[@]}"; do bw_line "  uroce $p" "lo.$p"; done
	for p in "${PROGRAMS[@]}"; do bw_line "  uroce $p --mmap" "lo.$p-mmap"; done
	bw_line "  uroce ib_write_bw -q $QPS" lo.ib_write_bw-q$QPS
	for p in "${PROGRAMS[@]}"; do
		bw_line "  $p : process_vm_readv" "lo.$p" copy.readv
		bw_line "  $p : TCP" "lo.$p" TCP
		bw_line "  $p : UCX tag_bw" "lo.$p" UCX.tag_bw
	done
	for p in "${PROGRAMS[@]}"; do bw_line "  $p --mmap : ucp_put_bw" "lo.$p-mmap" UCX.ucp_put_bw; done
	bw_line "  ib_write_bw -q $QPS : -q 1" lo.ib_write_bw-q$QPS lo.ib_write_bw
}

rate_block() {
	line "million messages/s, 8 bytes" "x 128"
	one_line "  kernel TCP, polled" rate128.TCP.8
	one_line "  UCX tag_bw" rate128.UCX.tag_bw.8
	one_line "  UCX ucp_put_bw" rate128.UCX.ucp_put_bw.8
	one_line "  uroce ib_send_bw" rate128.lo.ib_send_bw.8
	one_line "  uroce ib_write_bw" rate128.lo.ib_write_bw.8
	one_line "  uroce ib_write_bw -q $QPS" rate128.lo.ib_write_bw-q$QPS.8
	one_line "  ib_send_bw : UCX tag_bw" rate128.lo.ib_send_bw.8 rate128.UCX.tag_bw.8
	one_line "  ib_write_bw : UCX ucp_put_bw" rate128.lo.ib_write_bw.8 rate128.UCX.ucp_put_bw.8
	one_line "  ib_write_bw : TCP" rate128.lo.ib_write_bw.8 rate128.TCP.8
	one_line "  ib_write_bw -q $QPS : -q 1" rate128.lo.ib_write_bw-q$QPS.8 rate128.lo.ib_write_bw.8
}

lat_block() {
	line "latency, us (half a round trip)" "8"
	one_line "  kernel TCP, polled" lat.TCP.8
	one_line "  UCX tag_lat" lat.UCX.tag_lat.8
	one_line "  UCX ucp_put_lat" lat.UCX.ucp_put_lat.8
	[ -z "$have_libfabric" ] || one_line "  libfabric shm, fi_pingpong (mean)" lat.libfabric.8
	one_line "  uroce ib_send_lat" lat.lo.ib_send_lat.8
	one_line "  uroce ib_write_lat" lat.lo.ib_write_lat.8
	one_line "  uroce, two threads, as send_lat" lat.lo.threads-cq.8
	one_line "  uroce, two threads, as write_lat" lat.lo.threads-lat.8
	one_line "  ib_send_lat : UCX tag_lat" lat.lo.ib_send_lat.8 lat.UCX.tag_lat.8
	one_line "  ib_write_lat : UCX ucp_put_lat" lat.lo.ib_write_lat.8 lat.UCX.ucp_put_lat.8
	[ -z "$have_libfabric" ] || one_line "  ib_send_lat : libfabric shm" lat.lo.ib_send_lat.8 lat.libfabric.8
	one_line "  ib_write_lat : TCP" lat.lo.ib_write_lat.8 lat.TCP.8
	one_line "  two threads : ib_send_lat" lat.lo.threads-cq.8 lat.lo.ib_send_lat.8
	one_line "  two threads : ib_write_lat" lat.lo.threads-lat.8 lat.lo.ib_write_lat.8
}

mpi_block() {
	line "MPI_Alltoall, $RANKS ranks, us a call" "$(length $ALLTOALL)"
	one_line "  UCX, shared memory and cma" mpi.UCX.shm.$ALLTOALL
	one_line "  UCX rc over uroce" mpi.lo.rc.$ALLTOALL
	one_line "  UCX ud over uroce" mpi.lo.ud.$ALLTOALL
	one_line "  rc : shared memory" mpi.lo.rc.$ALLTOALL mpi.UCX.shm.$ALLTOALL
	one_line "  ud : shared memory" mpi.lo.ud.$ALLTOALL mpi.UCX.shm.$ALLTOALL
}

idle_block() {
	line "$CONNECTIONS connections, idle $IDLE_SECONDS s" "CPU ms"
	one_line "  server" cpu$CONNECTIONS.lo.server.0
	one_line "  client" cpu$CONNECTIONS.lo.client.0
}

host_table() {
	local i before after load kind
	limit=$((40 + 20 * seconds))
	find_others
	[ -z "$have_mpi" ] || [ -e /dev/infiniband ] || on_exit "rmdir /dev/infiniband 2>/dev/null" # where --files makes it
	before=$(busy)
	load=$(cut -d ' ' -f 1-3 /proc/loadavg)
	for i in $(seq "$runs"); do
		say "round $i of $runs"
		host_round
	done
	after=$(busy)
	# shellcheck disable=SC2034 # keep prints it
	KEPT="host, medians: lat in us (half a round trip), bw in Gbit/s, rate in million messages a second, mpi in us a call, cpu in ms in $IDLE_SECONDS s"
	[ -z "$data" ] || keep "$(in_ns "$NS1" cat /sys/class/net/lo/mtu)"
	say
	say "one host, medians of $runs rounds; $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	say "load average before: $load, after: $(cut -d ' ' -f 1-3 /proc/loadavg); CPUs busy without us before: $before %, after: $after %"
	for kind in bw rate lat mpi idle; do
		! wanted $kind || [ "$kind${have_mpi}" = mpi ] || { say; ${kind}_block; }
	done
	say
	[ ${#SKIPPED[@]} -eq 0 ] || printf '%s\n' "${SKIPPED[@]}"
}
