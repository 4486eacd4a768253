# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What uroce adds: its command, captures, faults, counters, ports of other kinds, installation.

# Two processes of one host: packets between them do not come to the port, and captures and counters have them all the same.
test_capture_on_one_host() {
	local sent got
	serve "$RPING" "$NS1" "$TMP/server" --capture "$TMP/server.pcapng" --counters "$TMP/server.counters" -- rping -s -C 5 -S 10000 || return 1
	uroce_in "$NS1" --capture "$TMP/client.pcapng" --counters "$TMP/client.counters" -- rping -c -C 5 -S 10000 -a 10.77.0.1 && served "$TMP/server" || return 1
	for side in server client; do
		"$UROCE" pcap check "$TMP/$side.pcapng" >"$TMP/out" && grep -q ': 0 errors, 0 warnings' "$TMP/out" || { cat "$TMP/out"; fail "what $side recorded"; return; }
		"$UROCE" pcap "$TMP/$side.pcapng" >"$TMP/out" && grep -Eq 'Made through the connection manager: frames [0-9]+, [1-9][0-9]*, [1-9]' "$TMP/out" && grep -q 'closed it in frame' "$TMP/out" &&
			grep -q '5 READs' "$TMP/out" && grep -q '5 WRITEs' "$TMP/out" || { cat "$TMP/out"; fail "what is said of $side's"; return; }
		sent=$(tshark -r "$TMP/$side.pcapng" -Y 'frame.packet_flags_direction == 2 && infiniband' 2>/dev/null | wc -l)
		got=$(tshark -r "$TMP/$side.pcapng" -Y 'frame.packet_flags_direction == 1 && infiniband' 2>/dev/null | wc -l)
		same_count 1 "^tx_local_packets *$sent\$" "$TMP/$side.counters" && same_count 1 "^rx_local_packets *$got\$" "$TMP/$side.counters" && [ "$sent" -ge 15 ] && [ "$got" -ge 15 ] ||
			{ cat "$TMP/$side.counters"; fail "$side: $sent sent and $got received in the capture"; return; }
	done
}

test_capture() {
	serve "$RPING" "$NS1" "$TMP/server" --capture "$TMP/server.pcapng" -- rping -s -C 20 -S 3000 || return 1
	uroce_in "$NS2" --capture "$TMP/client.pcapng" -- rping -c -C 20 -V -S 3000 -a 10.77.0.1 && served "$TMP/server" || return 1
	local f n
	for f in server client; do
		tshark -r "$TMP/$f.pcapng" -Y infiniband 2>/dev/null >"$TMP/frames"
		n=$(wc -l <"$TMP/frames")
		[ "$n" -ge 100 ] || { cat "$TMP/frames"; fail "$f captured $n RoCE frames"; return; }
		tshark -r "$TMP/$f.pcapng" -Y '_ws.malformed' 2>/dev/null >"$TMP/malformed"
		[ ! -s "$TMP/malformed" ] || { cat "$TMP/malformed"; fail "malformed frames"; return; }
		"$UROCE" pcap check --quiet "$TMP/$f.pcapng" || { fail "ICRC"; return; }
	done
	tshark -r "$TMP/client.pcapng" -Y 'infiniband.mad.attributeid' 2>/dev/null | grep -q ConnectRequest || fail "no ConnectRequest decoded"
}
test_faults() {
	local spec=drop=1%,dup=1%,reorder=1%,corrupt=1%,seed=7
	serve "$RPING" "$NS1" "$TMP/server" --fault $spec --counters "$TMP/counters" -- rping -s -C 100 -S 16000 || return 1
	uroce_in "$NS2" -- rping -c -C 100 -V -S 16000 -a 10.77.0.1 || { cat "$TMP/server"; return 1; }
	served "$TMP/server" || return 1
	cat "$TMP/counters"
	local c
	for c in fault_dropped fault_duplicated fault_reordered fault_corrupted; do
		grep -Eq "^$c[ =:]+[1-9]" "$TMP/counters" || { fail "$c stayed 0"; return; }
	done
}
# A rule acts on the packets that it names and on no others, and has a counter.
test_faults_rules() {
	serve "$RPING" "$NS1" "$TMP/server" --fault 'drop tx opcode=READ_REQ nth=3,dup rx opcode=READ_RESP_LAST times=2,drop tx opcode=FETCH_ADD' \
		--counters "$TMP/counters" -- rping -s -C 20 -S 16000 || return 1
	uroce_in "$NS2" -- rping -c -C 20 -V -S 16000 -a 10.77.0.1 || { cat "$TMP/server"; return 1; }
	served "$TMP/server" || return 1
	cat "$TMP/counters"
	same_count 1 '^fault_rule_1 *1$' "$TMP/counters" && same_count 1 '^fault_rule_2 *2$' "$TMP/counters" || return 1
	same_count 1 '^fault_dropped *1$' "$TMP/counters" && same_count 1 '^fault_duplicated *2$' "$TMP/counters" || return 1
	grep -Eq '^tx_retransmits +[1-9]' "$TMP/counters" && ! grep -Eq '^fault_rule_3 +[1-9]' "$TMP/counters" || fail "what was dropped did not come again"
}
test_counters() {
	serve "$RPING" "$NS1" "$TMP/server" --counters "$TMP/counters" -- rping -s -C 10 || return 1
	uroce_in "$NS2" -- rping -c -C 10 -a 10.77.0.1 && served "$TMP/server" || return 1
	cat "$TMP/counters"
	grep -Eq '^rx_roce_packets[ =:]+[1-9]' "$TMP/counters" || { fail "rx_roce_packets"; return; }
	! grep -E '^(drop_|rx_icrc_encapsulated|req_transport_retries_exceeded)[a-z_0-9]*[ =:]+[1-9]' "$TMP/counters" || fail "drops on a clean cable"
}
# Of a server that is killed they are in the file as they were a moment before, and of one that runs meanwhile.
test_counters_of_a_killed_server() {
	local i
	rm -f "$TMP/counters"
	serve "$RPING" "$NS1" "$TMP/server" --counters "$TMP/counters" -- rping -s -P || return 1
	uroce_in "$NS2" -- rping -c -C 10 -a 10.77.0.1 || return 1
	for i in $(seq 100); do
		grep -Eq '^rx_send_requests +20$' "$TMP/counters" && break
		sleep 0.1
	done
	kill -KILL "$(program_of "$server")"
	wait "$server"
	cat "$TMP/counters"
	grep -Eq '^rx_send_requests +20$' "$TMP/counters" || fail "not all SENDs were counted"
}
# A server that is told to stop ends as it would without uroce, and its counters are there.
test_counters_of_a_stopped_server() {
	local sig status
	for sig in TERM INT; do
		serve "$RPING" "$NS1" "$TMP/server" --counters "$TMP/counters" -- rping -s -P || return 1
		uroce_in "$NS2" -- rping -c -C 10 -a 10.77.0.1 || return 1
		rm -f "$TMP/counters"
		kill -"$sig" "$(program_of "$server")"
		wait "$server"
		status=$?
		[ $status -eq $((128 + $(kill -l "$sig"))) ] || { cat "$TMP/server"; fail "status $status after SIG$sig"; return; }
		cat "$TMP/counters"
		grep -Eq '^rx_roce_packets +[1-9]' "$TMP/counters" || { fail "no counters after SIG$sig"; return; }
	done
}
# counters_table [--all]: what 'uroce info --counters' says of the first namespace, in $TMP/out.
counters_table() {
	in_ns "$NS1" timeout 20 "$UROCE" info --dev eth0 --counters "$@" >"$TMP/out" || { fail "info ended with status $?"; return; }
	cat "$TMP/out"
}
# Two processes, of which one has done something; the same while it is stopped. What it publishes may be a quarter of a second old.
test_info_counters_live() {
	local idle busy received i
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	busy=$(program_of "$server")
	serve 7205 "$NS1" "$TMP/server2" -- rping -s -P -p 7205 || return 1
	idle=$(program_of "$server")
	uroce_in "$NS2" -- rping -c -C 100 -V -a 10.77.0.1 || { cat "$TMP/server"; fail "client status $?"; return; }
	for i in $(seq 50); do
		counters_table || return 1
		received=$(awk -v pid="$busy" '$1 == "process" { for (i = 2; i <= NF; i++) if ($i == pid) c = i } $1 == "rx_send_requests" { print $c }' "$TMP/out")
		[ "${received:-0}" -lt 100 ] || break
	done
	[ "${received:-0}" -ge 100 ] || { fail "rx_send_requests is '$received'"; return; }
	grep -Eq "^process .* $idle( |\$)" "$TMP/out" || { fail "no column of process $idle"; return; }
	! grep -q '^drop_roce_v1' "$TMP/out" && grep -q 'zero are left out' "$TMP/out" || { fail "a counter that is zero"; return; }
	counters_table --all && grep -Eq '^drop_roce_v1 +0 +0  RoCEv1 frames' "$TMP/out" || { fail "drop_roce_v1"; return; }
	kill -STOP "$busy"
	counters_table
	kill -CONT "$busy"
	grep -Eq "^process .*$busy" "$TMP/out" || { fail "no column while it was stopped"; return; }
	as=(setpriv --reuid=65533 --regid=65533 --clear-groups)
	in_ns "$NS1" timeout 20 "${as[@]}" "$UROCE" info --dev eth0 --counters >"$TMP/out"
	as=()
	cat "$TMP/out"
	grep -q '^No process whose counters are readable uses the device' "$TMP/out" && grep -q '^The counters of 2 other ' "$TMP/out" || fail "another user"
}
# Where no program of ours runs: what is counted; and to a user without programs a hint alone.
test_info_counters_no_device() {
	timeout 20 "$UROCE" info --counters --all >"$TMP/out" || { fail "status $?"; return; }
	grep -Eq '^drop_roce_v1 .*RoCEv1 frames' "$TMP/out" || { cat "$TMP/out"; fail "no names"; return; }
	timeout 20 setpriv --reuid=65533 --regid=65533 --clear-groups "$UROCE" info --counters >"$TMP/out" || { fail "status $?"; return; }
	[ "$(wc -l <"$TMP/out")" = 1 ] && grep -q '^No process .* now. Add --all' "$TMP/out" || { cat "$TMP/out"; fail "a hint alone"; }
}
test_memif_owned_addresses() {
	local device=(--vdev "net_memif0,role=server,socket=$TMP/memif.sock,socket-abstract=no" --ip 10.88.0.1/24)
	timeout -k 5 60 "$UROCE" run "${device[@]}" -- rping -s -C 50 -S 20000 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
	wait_listening - "$RPING" "$server" "${device[@]}" || { cat "$TMP/server"; fail "the server does not listen"; return; }
	timeout -k 5 60 "$UROCE" run --vdev "net_memif0,role=client,socket=$TMP/memif.sock,socket-abstract=no" --ip 10.88.0.2/24 -- \
		rping -c -C 50 -V -S 20000 -a 10.88.0.1 </dev/null || { cat "$TMP/server"; return 1; }
	served "$TMP/server"
}
# Two hosts have their addresses in VLAN 5, and all that passes is tagged; one in VLAN 6, with the address of the second, is not heard.
test_owned_addresses_in_a_vlan() {
	local device=(--vdev net_af_packet0,iface=eth0 --ip 10.88.5.1/24@5) other
	ip netns exec "$NS1" timeout -k 5 60 "$UROCE" run "${device[@]}" -- rping -s -V -C 20 -S 20000 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
	wait_listening "$NS1" "$RPING" "$server" "${device[@]}" || { cat "$TMP/server"; fail "the server does not listen"; return; }
	other=(--vdev net_af_packet0,iface=eth0 --ip 10.88.5.2/24@6)
	! in_ns "$NS2" timeout -k 5 60 "$UROCE" run "${other[@]}" -- rping -c -C 1 -a 10.88.5.1 </dev/null >"$TMP/other" 2>&1 || { fail "VLAN 6 gets in"; return; }
	record "$NS2" "udp port 4791 or arp or vlan" "$TMP/wire.pcap" || return 1
	in_ns "$NS2" timeout -k 5 60 "$UROCE" run --vdev net_af_packet0,iface=eth0 --ip 10.88.5.2/24@5 -- rping -c -V -C 20 -S 20000 -a 10.88.5.1 </dev/null \
		>"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "the client"; return; }
	served "$TMP/server" || return 1
	stop "$recorder"
	tshark -r "$TMP/wire.pcap" -T fields -e vlan.id 2>/dev/null | sort | uniq -c | awk '{ print $2, ($1 > 500) }' >"$TMP/out"
	[ "$(cat "$TMP/out")" = "5 1" ] || { cat "$TMP/out"; fail "not in VLAN 5 alone"; }
}
# DPDK's driver for taps wants a realtime signal for each frame, which used to end the program. The kernel's side of the tap is one more device.
test_tap_owned_addresses() {
	local device=(--vdev "net_tap0,iface=utap$$" --ip 10.88.1.1/24)
	in_ns "$NS1" timeout -k 5 60 "$UROCE" run "${device[@]}" -- rping -s -C 50 -S 20000 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
	wait_listening "$NS1" "$RPING" "$server" "${device[@]}" || { cat "$TMP/server"; fail "the server does not listen"; return; }
	ip -n "$NS1" addr add 10.88.1.2/24 dev utap$$
	ip -n "$NS1" link set utap$$ up
	in_ns "$NS1" timeout -k 5 60 "$UROCE" run --dev utap$$ -- rping -c -C 50 -V -S 20000 -a 10.88.1.1 </dev/null ||
		{ cat "$TMP/server"; return 1; }
	served "$TMP/server"
}
# A peer that connects its QP first asks for our MAC before we connect ours: the port is open as soon as a QP is in INIT.
test_tap_answers_before_it_is_connected() {
	local i
	ip netns exec "$NS1" timeout -k 5 60 "$UROCE" run --vdev "net_tap0,iface=ufirst$$" --ip 10.88.2.1/24 -- ibv_rc_pingpong -g 0 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
	for i in $(seq 200); do
		[ -z "$(in_ns "$NS1" ss -Hltn "sport = :18515")" ] || break
		sleep 0.05
	done
	ip -n "$NS1" addr add 10.88.2.2/24 dev ufirst$$ && ip -n "$NS1" link set ufirst$$ up || { cat "$TMP/server"; fail "there is no tap yet"; return; }
	in_ns "$NS1" bash -c 'echo >/dev/udp/10.88.2.1/9'
	for i in $(seq 100); do
		! ip -n "$NS1" neigh show 10.88.2.1 | grep lladdr || return 0
		sleep 0.05
	done
	cat "$TMP/server"
	fail "nobody answers for 10.88.2.1"
}
# Both ends are opened at the same moment, and either may be first. The MTU is known before.
test_memif_opened_together() {
	local i memif="net_memif0,socket=$TMP/memif2.sock,socket-abstract=no"
	ip netns exec "$NS1" timeout -k 5 60 "$UROCE" run --vdev "$memif,role=server" --ip 10.88.0.1/24 -- \
		ib_send_bw -F -x 0 -s 65536 -n 200 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	on_exit "stop $server"
	for i in $(seq 100); do
		[ -z "$(in_ns "$NS1" ss -Hltn "sport = :18515")" ] || break
		sleep 0.05
	done
	in_ns "$NS1" timeout -k 5 60 "$UROCE" run --vdev "$memif,role=client" --ip 10.88.0.2/24 -- \
		ib_send_bw -F -x 0 -s 65536 -n 200 127.0.0.1 </dev/null >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "the client"; return; }
	served "$TMP/server" || return 1
	grep -q 'Mtu *: 4096' "$TMP/client" || { cat "$TMP/client"; fail "not the MTU of the port"; }
}
test_info() {
	in_ns "$NS1" "$UROCE" info --dev eth0 >"$TMP/out" || return 1
	cat "$TMP/out"
	grep -Eq '^0 +0000:0000:0000:0000:0000:ffff:0a4d:0001 +RoCE v2 +10\.77\.0\.1/24' "$TMP/out" || { fail "GID 0"; return; }
	grep -q 'fd77::1/64' "$TMP/out" || { fail "IPv6 GID"; return; }
	grep -q '  10.77.0.0/24' "$TMP/out" || fail "route"
}
# What info shows behind the routes.
info_processes() {
	in_ns "$NS1" "$UROCE" info --dev eth0 >"$TMP/out" || { fail "info ended with status $?"; return; }
	sed -n '/^routes/,$p' "$TMP/out" | sed '1,/^$/d' >"$TMP/processes"
	cat "$TMP/processes"
}
# `timeout` is what the tests start; the program under uroce is its child.
program_of() { pgrep -P "$1"; }
# shows_listening SERVER ADDRESS:PORT
shows_listening() {
	grep -A 3 "^  $(program_of "$1")  slot" "$TMP/processes" | grep -Fqx "        listens on tcp $2" || fail "$2 is not shown"
}
test_info_processes() {
	local n
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -a 10.77.0.1 -C 3 || return 1
	serve 7204 "$NS1" "$TMP/server2" -- rping -s -P -p 7204 || return 1
	info_processes || return 1
	n=$(grep -Ec '^  [0-9]+  slot [0-9]+  port [a-z]+$' "$TMP/processes")
	[ "$n" -eq 2 ] && [ "$(head -n 1 "$TMP/processes")" = processes ] || { fail "$n processes instead of 2"; return; }
	if grep -q 'port udp$' "$TMP/processes"; then
		[ "$(grep -Fxc '        uses segmentation offload' "$TMP/processes")" -eq 2 ] || { fail "what the ports use"; return; }
	fi
	shows_listening "${servers[0]}" "10.77.0.1:$RPING" && shows_listening "${servers[1]}" '0.0.0.0:7204' || return 1
	uroce_in "$NS2" -- rping -c -C 3 -a 10.77.0.1 || { cat "$TMP/server"; fail "client"; return; }
	server=${servers[0]}
	served "$TMP/server" || return 1
	info_processes || return 1
	! grep ":$RPING" "$TMP/processes" || { fail "a process that has ended is shown"; return; }
	kill -9 "$(program_of "${servers[1]}")"
	wait "${servers[1]}"
	info_processes || return 1
	[ "$(cat "$TMP/processes")" = 'no process uses it' ] || fail "a process that was killed is shown"
}
test_info_leaves_no_file() {
	uroce_in "$NS1" -- ibv_devices >"$TMP/out" || return 1 # removes what earlier tests left
	info_processes || return 1
	[ "$(cat "$TMP/processes")" = 'no process uses it' ] || { fail "who uses it?"; return; }
	local left
	left=$(find /dev/shm -mindepth 1)
	[ -z "$left" ] || { echo "$left"; fail "info made a file"; }
}
test_info_config() {
	in_ns "$NS1" env UROCE_SPIN_US=33 "$UROCE" info --dev eth0 --config >"$TMP/out" || return 1
	cat "$TMP/out"
	grep -Eq '^dev +eth0 +command line' "$TMP/out" && grep -Eq '^spin_us +33 +environment' "$TMP/out" && grep -Eq '^mtu +0 +default' "$TMP/out"
}
test_exit_status_of_program() {
	uroce_in "$NS1" -- sh -c 'exit 7'
	[ $? -eq 7 ] || fail "the program's exit status was not passed on"
}
# As execvp(3) does it, a script without #! is the shell's; what is no text is not.
test_runs_scripts() {
	printf 'echo "$1" && exec ibv_devices\n' >"$TMP/script" && printf '\177ELF\2\1\1\0\nexit 0\n' >"$TMP/no_script" && : >"$TMP/empty" &&
		chmod 755 "$TMP/script" "$TMP/no_script" "$TMP/empty" || return 1
	uroce_in "$NS1" -- "$TMP/script" 'two words' >"$TMP/out" 2>&1 && grep -qx 'two words' "$TMP/out" && grep -q uroce0 "$TMP/out" ||
		{ cat "$TMP/out"; fail "a script"; return; }
	PATH=$TMP:$PATH uroce_in "$NS1" -- script 'two words' >"$TMP/out" 2>&1 && grep -q uroce0 "$TMP/out" || { cat "$TMP/out"; fail "a script in PATH"; return; }
	uroce_in "$NS1" -- "$TMP/empty" >"$TMP/out" 2>&1 || { cat "$TMP/out"; fail "an empty script"; return; }
	uroce_in "$NS1" -- "$TMP/no_script" >"$TMP/out" 2>&1
	[ $? -eq 126 ] && grep -q 'could not be started (Exec format error)' "$TMP/out" || { cat "$TMP/out"; fail "what is no script"; }
}
test_keeps_ld_preload() {
	local lib
	lib=$(ldconfig -p | sed -n 's/.*libm\.so\.6.*=> //p' | head -n 1)
	in_ns "$NS1" env LD_PRELOAD="$lib" "$UROCE" run --dev eth0 -- sh -c 'echo "$LD_PRELOAD"' >"$TMP/out"
	cat "$TMP/out"
	grep -q "liburoce.so[^:]*:$lib\$" "$TMP/out" || fail "LD_PRELOAD"
}

test_port_events() {
	background "$NS1" "$TMP/watch" -- ibv_asyncwatch
	wait_started "$NS1" "$server" || { cat "$TMP/watch"; fail "it did not start"; return; }
	ip -n "$NS2" link set eth0 down
	until_says "$TMP/watch" PORT_ERR || { ip -n "$NS2" link set eth0 up; return 1; }
	ip -n "$NS2" link set eth0 up
	ip -n "$NS2" addr add fd77::2/64 dev eth0 nodad # which went with the link
	until_says "$TMP/watch" PORT_ACTIVE || return
	ip -n "$NS1" addr add 10.77.1.1/24 dev eth0
	until_says "$TMP/watch" GID_CHANGE
	local status=$?
	ip -n "$NS1" addr del 10.77.1.1/24 dev eth0
	return $status
}

# An interface by the network that it is in, by an address, by a pattern; of two that fit, each is a device.
test_dev_pattern() {
	local status=0 what
	for what in '10.77.0.0/16' 'fd77::/64' 'e*' 10.77.0.2 fd77::2; do
		serve "$RPING" "$NS1" "$TMP/server" -- rping -s -C 5 || return 1
		in_ns "$NS2" env UROCE_DEV="$what" timeout -k 5 60 "${as[@]}" "$UROCE" run -- rping -c -C 5 -a 10.77.0.1 </dev/null || { cat "$TMP/server"; return 1; }
		served "$TMP/server" || return 1
	done
	ip -n "$NS1" link add eth1 type veth peer name eth2 && ip -n "$NS1" link set eth2 up && ip -n "$NS1" addr add 10.77.9.1/24 dev eth1 && ip -n "$NS1" link set eth1 up || return 1
	in_ns "$NS1" "$UROCE" run --dev 'eth*' -- ibv_devinfo -v >"$TMP/out" 2>&1 || status=1
	in_ns "$NS1" "$UROCE" doctor --dev 'eth*' >"$TMP/doctor" 2>&1 && status=1
	ip -n "$NS1" link del eth1
	grep -E 'hca_id|GID\[ *0\]' "$TMP/out" | tr -d '\n\t' | grep -q 'uroce0.*10.77.0.1.*uroce1.*10.77.9.1' || { cat "$TMP/out"; fail "the devices"; return; }
	[ $status = 0 ] && grep -q "one interface at a time: name one with --dev, not eth\*" "$TMP/doctor" || { cat "$TMP/doctor"; fail "doctor"; }
}

# status|regular expression|arguments of uroce
bad_calls='2|no subcommand|
2|unknown subcommand .walk.|walk
2|no program given|run
2|no program given|run --dev eth0 --
127|program .no-such-program. does not exist|run --dev eth0 -- no-such-program
126|program ./etc/passwd. cannot be executed|run --dev eth0 -- /etc/passwd
2|unknown option .--colour.|run --colour -- true
2|option .--dev. needs a value|run --dev
1|interface .eth7. does not exist|run --dev eth7 -- true
1|no network interface .* in .10.78.0.0/16.|run --dev 10.78.0.0/16 -- true
1|no network interface .* address that is .10.77.0.3.|run --dev 10.77.0.3 -- true
1|no network interface .* like .wlan\*.|run --dev wlan* -- true
2|10.77.0.0/33. is not a network|run --dev 10.77.0.0/33 -- true
2|--ip cannot be used with --dev|run --dev eth0 --ip 10.0.0.1/24 -- true
2|--mtu cannot be used with --dev|run --dev eth0 --mtu 9000 -- true
2|exclude one another|run --dev eth0 --vdev net_null0 -- true
2|--vdev needs an address|run --vdev net_null0 -- true
2|.10.0.0.300. is not an address|run --vdev net_null0 --ip 10.0.0.300/24 -- true
2|--ip .10.0.0.1. is not an address|run --vdev net_null0 --ip 10.0.0.1 -- true
2|.33. is not a prefix length|run --vdev net_null0 --ip 10.0.0.1/33 -- true
2|.4095. is not a VLAN|run --vdev net_null0 --ip 10.0.0.1/24@4095 -- true
2|.10.0.0. is not the address of a gateway|run --vdev net_null0 --ip 10.0.0.1/24 --gw 10.0.0 -- true
2|mtu|run --vdev net_null0 --ip 10.0.0.1/24 --mtu huge -- true
2|.|run --dev eth0 --fault drop=2000% -- true
1|cannot write the file|run --dev eth0 --capture /no/such/dir/f -- true
2|names interface .eth0. twice|run --dev eth0 --dev eth0 -- true
2|is not expected here|info extra
2|use it with --counters|info --all'

test_bad_calls() {
	local status pattern args got lines bad=0
	while IFS='|' read -r status pattern args; do
		# shellcheck disable=SC2086 # the arguments are words
		in_ns "$NS1" timeout 20 "$UROCE" $args </dev/null >"$TMP/out" 2>"$TMP/err"
		got=$?
		lines=$(wc -l <"$TMP/err")
		if [ $got -ne "$status" ] || [ "$lines" -ne 1 ] || [ -s "$TMP/out" ] || ! grep -Eq "^uroce: .*$pattern" "$TMP/err"; then
			echo "uroce $args: status $got instead of $status, said:"
			cat "$TMP/out" "$TMP/err"
			bad=1
		fi
	done <<<"$bad_calls"
	return $bad
}
# status|what is said on stderr|what stands before 'uroce'|its arguments. Each says one sentence more than it would otherwise.
what_is_said='0|all counters are zero: process [0-9]+|env|run --dev eth0 --counters - -- ibv_devices
0|no counters: process [0-9]+ .true. made no RDMA call|env|run --dev eth0 --counters - -- true
0|UROCE_DEVV is no setting .*mean UROCE_DEV:|env UROCE_DEVV=eth0|run --dev eth0 -- ibv_devices
0|UROCE_DEVV is no setting .*mean UROCE_DEV:|env UROCE_DEVV=eth0|info --dev eth0
2|setting log is .loud.: it must be one of error info debug|env UROCE_LOG=loud|run --dev eth0 -- true
2|setting port is .tcp.: it must be one of auto udp packet dpdk|env UROCE_PORT=tcp|info
1|no driver for .net_nosuch0.|env|run --vdev net_nosuch0 --ip 10.0.0.1/24 -- ibv_rc_pingpong -g 0
126|is statically linked.*put env.1. before it|env|run --dev eth0 -- STATIC
127|program .rping. does not exist: .apt-get install rdmacm-utils. or .dnf install librdmacm-utils. installs it|env PATH=/nonexistent|run --dev eth0 -- rping
127|program .ib_write_bw. does not exist: .apt-get install perftest.|env PATH=/nonexistent|run --dev eth0 -- ib_write_bw
126|cannot be executed|env|run --dev eth0 -- /etc'

test_says_what_is_amiss() {
	local status pattern before args got bad=0
	echo 'int main(void) { return 3; }' >"$TMP/three.c" && gcc -static -o "$TMP/three" "$TMP/three.c" || { fail "no static program"; return; }
	while IFS='|' read -r status pattern before args; do
		# shellcheck disable=SC2086 # words
		in_ns "$NS1" timeout 20 $before "$UROCE" ${args//STATIC/$TMP/three} </dev/null >"$TMP/out" 2>"$TMP/err"
		got=$?
		if [ $got -ne "$status" ] || [ "$(grep -Ec "^uroce: .*$pattern" "$TMP/err")" -ne 1 ] || [ "$(grep -c ^uroce: "$TMP/err")" -ne 1 ]; then
			echo "$before uroce $args: status $got instead of $status, said:"
			cat "$TMP/err"
			bad=1
		fi
	done <<<"$what_is_said"
	in_ns "$NS1" "$UROCE" run --dev eth0 -- env "$TMP/three" 2>"$TMP/err"
	[ $? -eq 3 ] && [ ! -s "$TMP/err" ] || { cat "$TMP/err"; fail "a static program that env starts"; return; }
	{ printf '\177ELF\1\1\1' && head -c 200 /dev/zero; } >"$TMP/elf32" && chmod 755 "$TMP/elf32"
	in_ns "$NS1" "$UROCE" run --dev eth0 -- "$TMP/elf32" >"$TMP/out" 2>&1
	[ $? -eq 126 ] && [ "$(grep -c 'is a 32-bit program, into which no 64-bit library can be loaded' "$TMP/out")" = 1 ] || { cat "$TMP/out"; fail "a 32-bit program"; return; }
	in_ns "$NS1" env UROCE_TEST_X=1 "$UROCE" run --dev eth0 -- ibv_devices 2>"$TMP/err" >/dev/null
	[ ! -s "$TMP/err" ] || { cat "$TMP/err"; fail "a variable of tests"; return; }
	return $bad
}
# Where none is named and none can be chosen, one sentence says so, whichever call asks first; a program that uroce does not run is not disturbed.
test_says_which_interfaces_there_are() {
	local program
	for program in ibv_devices 'rping -c -a 10.77.0.1'; do
		# shellcheck disable=SC2086 # words
		timeout 20 unshare --net "$UROCE" run -- $program >"$TMP/out" 2>"$TMP/err" </dev/null
		same_count 1 '^uroce: no network interface .*(there is only the loopback).*--dev lo' "$TMP/err" && same_count 1 '^uroce:' "$TMP/err" || return
	done
	timeout 20 unshare --net env LD_PRELOAD="$LIB/liburoce.so.1" ibv_devices >"$TMP/out" 2>"$TMP/err"
	[ ! -s "$TMP/err" ] || { cat "$TMP/err"; fail "a program that may do without"; }
}
# link_says PATTERN STATUS: a server, and info, say the same one sentence of the interface raw0 on stderr. The server waits, as ever.
link_says() {
	ip netns exec "$NS1" timeout -k 5 60 "$UROCE" run --dev raw0 -- rping -s -C 1 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	until_says "$TMP/server" "$1" || return
	stop "$server"
	in_ns "$NS1" timeout 20 "$UROCE" info --dev raw0 >"$TMP/out" 2>"$TMP/err"
	[ $? -eq "$2" ] && grep -q "$1" "$TMP/err" && ! grep -q '^index\|^routes' "$TMP/out" || { cat "$TMP/out" "$TMP/err"; fail "info of $1"; return; }
}
raw_links() {
	link_says "interface 'raw0' is down" 1 || return
	ip -n "$NS1" link set raw0 up mode dormant # the kernel goes on to say that it does not run (RFC 2863), as it does a moment after each carrier
	link_says "interface 'raw0' is up but has no carrier" 1 || return
	in_ns "$NS1" sysctl -qw net.ipv6.conf.raw0.disable_ipv6=1
	ip -n "$NS1" link set raw1 up
	link_says "interface 'raw0' has no IP address" 1 || return
	ip -n "$NS1" addr add 10.79.0.1/24 dev raw0
	in_ns "$NS1" timeout 20 "$UROCE" info --dev raw0 >"$TMP/out" 2>"$TMP/err" && [ ! -s "$TMP/err" ] && grep -q '10\.79\.0\.1/24' "$TMP/out" ||
		{ cat "$TMP/out" "$TMP/err"; fail "nothing is amiss"; }
}
test_says_what_the_link_lacks() {
	local status
	ip -n "$NS1" link add raw0 type veth peer name raw1 || return 1
	raw_links
	status=$?
	ip -n "$NS1" link del raw0
	return $status
}
# said_of_port UID: what a program of that user says of UDP port 4791, in $TMP/out.
said_of_port() {
	UROCE_PORT=udp in_ns "$NS1" setpriv --reuid="$1" --regid="$1" --clear-groups timeout 20 "$UROCE" run --dev eth0 -- rping -s >"$TMP/out" 2>&1
}
says_who() {
	local UROCE=$UROCE as=()
	become_nobody
	a_socket "$NS1" nobody || return 1
	said_of_port 65534
	grep -q "belongs to another process of this user that does not share it:" "$TMP/out" || { cat "$TMP/out"; fail "its own user's"; return; }
	said_of_port 65533
	grep -q "belongs to another user's process (user 65534):" "$TMP/out" || { cat "$TMP/out"; fail "another user's"; }
}
test_says_who_has_the_port() { faulty says_who; }
# Nothing has to be writable for --files.
test_files_without_tmp() {
	in_ns "$NS1" unshare --mount sh -c 'mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec "$@"' - "$UROCE" run --dev eth0 --files -- ls /sys/class/infiniband >"$TMP/out" 2>&1
	[ $? -eq 0 ] && grep -qx uroce0 "$TMP/out" || { cat "$TMP/out"; fail "not with a /tmp that cannot be written"; }
}
# Where no guest can run, the interop suite says so in a line and counts as skipped; continuous integration may not skip it.
without_tun() {
	unshare --mount env CI="$1" bash -c '[ ! -d /dev/net ] || mount -t tmpfs tmpfs /dev/net; exec "$@"' - "$ROOT/test/interop/run" --build "$PREFIX" \
		--essential >"$TMP/out" 2>&1
}
test_interop_says_what_it_lacks() {
	without_tun "" || { cat "$TMP/out"; fail "not skipped"; return; }
	grep -q 'skipped: there is no /dev/net/tun' "$TMP/out" && grep -q '^0 passed, 0 failed, [1-9][0-9]* skipped$' "$TMP/out" ||
		{ cat "$TMP/out"; fail "not skipped visibly"; return; }
	without_tun true && { cat "$TMP/out"; fail "skipped under CI=true"; return; }
	grep -q '^0 passed, [1-9][0-9]* failed, 0 skipped$' "$TMP/out" || { cat "$TMP/out"; fail "not counted as failed"; }
}
test_linked_program() {
	local dest=$TMP/dest rdma=$TMP/rdma pc flags name
	cp -a "$PREFIX" "$dest" || return 1
	pc=$(dirname "$(find "$dest" -name uroce.pc)")
	# rdma-core is installed elsewhere, which only its own .pc files say.
	mkdir -p "$rdma/include" "$rdma/lib/pkgconfig" && cp -r /usr/include/infiniband /usr/include/rdma "$rdma/include" || return 1
	for name in ibverbs rdmacm; do
		printf 'Name: lib%s\nDescription: elsewhere\nVersion: 1\nLibs: -L%s/lib -l%s\nCflags: -I%s/include\n' $name "$rdma" $name "$rdma" >"$rdma/lib/pkgconfig/lib$name.pc"
	done
	sed -i "s|^prefix=.*|prefix=$dest|" "$pc/uroce.pc"
	flags=$(PKG_CONFIG_PATH=$rdma/lib/pkgconfig:$pc pkg-config --cflags --libs uroce) || return 1
	[[ " $flags " == *" -I$rdma/include "* && $flags != *-libverbs* && $flags != *-lrdmacm* ]] || { fail "flags: $flags"; return; }
	# shellcheck disable=SC2086 # flags are words
	gcc -Wall -Werror -MMD -MF "$TMP/linked.d" -o "$TMP/linked" "$here/src/linked.c" $flags || return 1
	grep -q "$rdma/include/rdma/rdma_cma.h" "$TMP/linked.d" || { fail "another rdma-core's headers"; return; }
	! ldd "$TMP/linked" | grep -E 'libibverbs|librdmacm' || { fail "links rdma-core"; return; }
	local lib
	lib=$(dirname "$(find "$dest" -name liburoce.so)")
	in_ns "$NS1" env LD_LIBRARY_PATH="$lib" timeout 20 "$TMP/linked" eth0 || return 1
	in_ns "$NS1" "$(find "$dest" -path '*/bin/uroce')" run --dev eth0 -- ibv_devices | grep -q uroce0 || fail "the installed uroce does not find its library"
}

# Programs that were killed leave a file behind; those that come after them on the same interface remove it.
test_nothing_left() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -C 2 || return 1
	uroce_in "$NS2" -- rping -c -C 2 -a 10.77.0.1 && served "$TMP/server" || return 1
	local left
	left=$(find /dev/shm /run/dpdk -mindepth 1)
	[ -z "$left" ] || { echo "$left"; fail "files of dead processes"; }
}
