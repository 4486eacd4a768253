# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# 'tools/bench perftest': latency and bandwidth of perftest's programs under uroce, over each kind of port on a virtual cable and over memif, beside
# kernel TCP on the same cable (both sides polling), UCX over TCP, a mock of port udp's whole path without any protocol (mockbench), and raw frames
# through DPDK's ports. Each round measures every cell of the table once, so that what else the machine does falls on all of them alike; the table
# shows medians of the rounds.
#
# Sourced by tools/bench, which brings pair, memif, median_of and the variables, among them the arrays sizes, ports and depths,
# and the word kinds.

LAT_PROGRAMS=(ib_send_lat ib_write_lat)
BW_PROGRAMS=(ib_write_bw ib_read_bw ib_send_bw)

# --- one figure each: latency in us, half of a round trip; bandwidth in Gbit/s of payload ---

# iterations SIZE BASE: so that one measurement takes about a second.
iterations() {
	case $1 in
	8) echo $((60 * $2)) ;;
	1024) echo $((15 * $2)) ;;
	65536) echo $((12 * $2)) ;;
	*) echo $((2 * $2)) ;;
	esac
}

# perftest PORT PROGRAM SIZE COLUMN OPTIONS: over memif the two meet on the loopback interface of one namespace; their GIDs are the port's.
perftest() {
	local enter1=(ip netns exec "$NS1" "$uroce" run) enter2=(ip netns exec "$NS2" "$uroce" run) to=10.77.0.1 column=$4
	local program=("$2" -F -x 0 -s "$3" "${@:5}")
	if [ "$1" = memif ]; then
		enter2=("${enter1[@]}" --vdev "$(memif client)" --ip 10.88.0.2/24)
		enter1+=(--vdev "$(memif server)" --ip 10.88.0.1/24)
		to=127.0.0.1
	else
		enter1+=(--dev eth0 --port "$1")
		enter2+=(--dev eth0 --port "$1")
	fi
	listens_on=18515 pair "${enter1[@]}" -- "${program[@]}" AND "${enter2[@]}" -- "${program[@]}" "$to" |
		awk -v s="$3" -v c="$column" '$1 == s { print $c; exit }'
}
perftest_lat() { perftest "$1" "$2" "$3" 5 -n "$(iterations "$3" 500)"; } # CABLE PROGRAM SIZE
perftest_bw() {                                                           # CABLE PROGRAM SIZE DEPTH
	perftest "$1" "$2" "$3" 4 --report_gbits -n "$(iterations "$3" $((500 + 2 * $4)))" -t "$4" -Q $(($4 < 32 ? 1 : 32))
}

# tcp KEY SIZE DEPTH
tcp() {
	listens_on=7300 pair ip netns exec "$NS1" "$bench/tcpbench" server AND \
		ip netns exec "$NS2" "$bench/tcpbench" client 10.77.0.1 -s "$2" -d "$3" | tr ' ' '\n' | sed -n "s/^$1=//p"
}
tcp_lat() { tcp rtt_us "$1" 1 | awk '{ printf "%.2f\n", $1 / 2 }'; } # SIZE
tcp_bw() { tcp gbps "$1" "$2"; }                                     # SIZE DEPTH

# ucx TEST SIZE DEPTH COLUMN: the columns are those of the CSV that -v prints.
ucx() {
	local program=(env UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 ucx_perftest -t "$1" -s "$2" -O "$3" -n "$(iterations "$2" $((300 + 2 * $3)))" -w 100 -f -v)

	listens_on=13337 pair ip netns exec "$NS1" "${program[@]}" AND ip netns exec "$NS2" "${program[@]}" 10.77.0.1 |
		awk -F, -v c="$4" '/^ *[0-9]+,/ { print $c; exit }'
}
ucx_lat() { ucx tag_lat "$1" 1 2; }                                                        # SIZE
ucx_bw() { ucx tag_bw "$1" "$2" 6 | awk '{ printf "%.4g\n", $1 * 8 * 1048576 / 1e9 }'; } # SIZE DEPTH

# The path MTU on an interface of the table's MTU; memif's ports have frames of their own size.
path_mtu() { # PORT
	local m
	for m in 4096 2048 1024 512; do
		if [ "$1" = memif ] || [ "$mtu" -ge $((m + 100)) ]; then
			echo $m
			return
		fi
	done
	echo 256
}

mock_bw() { # SIZE DEPTH
	listens_on=7301 pair ip netns exec "$NS1" "$bench/mockbench" server AND \
		ip netns exec "$NS2" "$bench/mockbench" client 10.77.0.1 -m "$(path_mtu udp)" -s "$1" -d "$2" | tr ' ' '\n' | sed -n 's/^gbps=//p'
}

# raw CABLE KEY FRAME
raw() {
	local enter2=$NS2 at1=(--dev eth0) at2=(--dev eth0)
	if [ "$1" = memif ]; then
		enter2=$NS1
		at1=(--vdev "$(memif server)")
		at2=(--vdev "$(memif client)")
	fi
	pair ip netns exec "$NS1" "$bench/portbench" server "${at1[@]}" AND \
		ip netns exec "$enter2" "$bench/portbench" client "${at2[@]}" --size "$3" --seconds 1 --segments | tr ' ' '\n' | sed -n "s/^$2=//p"
}
raw_lat() { raw "$1" rtt_us 78 | awk '{ printf "%.2f\n", $1 / 2 }'; } # CABLE
# Frames of a WRITE of SIZE bytes, or of the path MTU: 74 bytes of headers and ICRC around the payload.
raw_bw() { # PORT CABLE SIZE
	local payload
	payload=$(path_mtu "$1")
	payload=$(($3 < payload ? $3 : payload))
	raw "$2" mpps $((payload + 74)) | awk -v p=$payload '{ printf "%.4g\n", $1 * p * 8 / 1000 }'
}

# --- the rounds ---

# cell NAME COMMAND...: one more figure for $TMP/NAME.
cell() {
	local name=$1
	shift
	if "$@" >"$TMP/figure" && [ -s "$TMP/figure" ]; then
		cat "$TMP/figure" >>"$TMP/$name"
	else
		failed=1
		say "  $name failed; the log is in $LOG" >&2
	fi
}

round() {
	local s d
	for s in "${sizes[@]}"; do
		! wanted lat || lat_cells "$s"
		! wanted bw || for d in "${depths[@]}"; do bw_cells "$s" "$d"; done
	done
	raw_round
}

# wanted KIND: lat or bw.
wanted() { [[ $kinds == *,$1,* ]]; }

lat_cells() { # SIZE
	local port p
	cell "lat.TCP.$1" tcp_lat "$1"
	cell "lat.UCX.$1" ucx_lat "$1"
	for p in "${LAT_PROGRAMS[@]}"; do
		for port in "${ports[@]}"; do cell "lat.$port.$p.$1" perftest_lat "$port" "$p" "$1"; done
	done
}

bw_cells() { # SIZE DEPTH
	local port p
	cell "bw$2.TCP.$1" tcp_bw "$1" "$2"
	cell "bw$2.UCX.$1" ucx_bw "$1" "$2"
	cell "bw$2.mock.$1" mock_bw "$1" "$2"
	for p in "${BW_PROGRAMS[@]}"; do
		for port in "${ports[@]}"; do cell "bw$2.$port.$p.$1" perftest_bw "$port" "$p" "$1" "$2"; done
	done
}

# Frames through DPDK's own ports: what the ports themselves carry. Nothing waits for them, so they count as of the greatest depth.
raw_round() {
	local port s cable
	for port in "${ports[@]}"; do
		case $port in dpdk) cable=veth ;; memif) cable=memif ;; *) continue ;; esac
		! wanted lat || cell "lat.$port.raw.8" raw_lat $cable
		! wanted bw || for s in "${sizes[@]}"; do cell "bw$(deepest).$port.raw.$s" raw_bw "$port" $cable "$s"; done
	done
}

deepest() { printf '%s\n' "${depths[@]}" | sort -n | tail -n 1; }

# --- the table ---

# line TITLE CELLS...
line() {
	printf '%-34s' "$1"
	shift
	printf ' %10s' "$@"
	printf '\n'
}

# figures TITLE CELLS: the cells of that name, by size.
figures() {
	local s out=()
	for s in "${sizes[@]}"; do out+=("$(median_of "$TMP/$2.$s")"); done
	line "$1" "${out[@]}"
}

# ratios TITLE CELLS CELLS
ratios() {
	local s out=()
	for s in "${sizes[@]}"; do out+=("$(ratio "$(median_of "$TMP/$2.$s")" "$(median_of "$TMP/$3.$s")")"); done
	line "$1" "${out[@]}"
}

# block KIND PROGRAMS...: yardsticks, the programs over each port, and what they are to the yardsticks.
block() {
	local kind=$1 port p base bases raw
	shift
	raw=$kind
	[ "$kind" = lat ] || raw=bw$(deepest)
	figures "  kernel TCP, polled" "$kind.TCP"
	figures "  UCX over TCP" "$kind.UCX"
	[ "$kind" = lat ] || figures "  mock of port udp" "$kind.mock"
	for port in "${ports[@]}"; do
		bases=("$kind.TCP" "$kind.UCX")
		case $port in
		udp) [ "$kind" = lat ] || bases+=("$kind.mock") ;;
		dpdk | memif)
			figures "  $port   raw frames" "$raw.$port.raw"
			bases+=("$raw.$port.raw")
			;;
		esac
		for p in "$@"; do figures "  $port   $p" "$kind.$port.$p"; done
		for p in "$@"; do
			for base in "${bases[@]}"; do ratios "  $port   $p : ${base##*.}" "$kind.$port.$p" "$base"; done
		done
	done
}

# The medians as rows of $data, for 'tools/bench plot' and 'against': MTU, kind (lat, bw; those of 'tools/bench host'), queue depth, program, port (of
# kernel TCP, UCX and the mock none), size, median, number of rounds, the figure of each round.
KEPT='perftest, medians: lat in us (half a round trip), bw in Gbit/s' # what a file says of itself
keep() {
	local file name kind depth port program size
	[ -s "$data" ] || printf '# tools/bench %s\n#mtu\tkind\tdepth\tprogram\tport\tsize\tmedian\trounds\tall\n' "$KEPT" >"$data"
	for file in "$TMP"/lat.* "$TMP"/bw* "$TMP"/rate* "$TMP"/mpi.* "$TMP"/cpu*; do
		[ -s "$file" ] || continue
		name=${file##*/}
		kind=${name%%.*}
		depth=${kind##*[!0-9]}
		kind=${kind%"$depth"}
		depth=${depth:-1}
		size=${name##*.}
		name=${name#*.}
		name=${name%.*}
		program=${name#*.}
		port=${name%%.*}
		case $name in *.*) ;; *) port=- ;; esac
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$kind" "$depth" "$program" "$port" "$size" "$(median_of "$file")" "$(wc -l <"$file")" \
			"$(paste -sd, "$file")"
	done | sort -t "$(printf '\t')" -k 1,1n -k 2,2 -k 3,3n -k 6,6n -k 5,5 -k 4,4 >>"$data"
}

# How busy the machine is without us, in percent of all its CPUs, over two seconds.
busy() {
	local a b
	a=$(head -n 1 /proc/stat)
	sleep 2
	b=$(head -n 1 /proc/stat)
	printf '%s\n%s\n' "$a" "$b" | awk '{ t = 0; for (i = 2; i <= 9; i++) t += $i; idle = $5 + $6
		if (NR == 2) printf "%.0f", 100 * (1 - (idle - i0) / (t - t0)); t0 = t; i0 = idle }'
}

# perftest_table MTU
perftest_table() {
	local i before after d load mtu=$1
	for i in "$NS1" "$NS2"; do ip -n "$i" link set eth0 mtu "$mtu"; done
	rm -f "$TMP"/lat.* "$TMP"/bw*
	before=$(busy)
	load=$(cut -d ' ' -f 1-3 /proc/loadavg)
	for i in $(seq "$runs"); do
		say "MTU $mtu, round $i of $runs"
		round
	done
	after=$(busy)
	[ -z "$data" ] || keep "$mtu"
	say
	say "MTU $mtu, medians of $runs rounds; $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
	say "load average before: $load, after: $(cut -d ' ' -f 1-3 /proc/loadavg); CPUs busy without us before: $before %, after: $after %"
	say
	if wanted lat; then
		line "latency, us (half a round trip)" "${sizes[@]}"
		block lat "${LAT_PROGRAMS[@]}"
	fi
	for d in "${depths[@]}"; do
		wanted bw || break
		say
		line "bandwidth, Gbit/s, queue depth $d" "${sizes[@]}"
		block "bw$d" "${BW_PROGRAMS[@]}"
	done
	say
}
