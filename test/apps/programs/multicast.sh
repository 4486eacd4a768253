# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Multicast groups through the RDMA CM: mckey, who is told of a membership, and who answers for it.

GROUP4=239.77.1.2
GROUP6=ff0e::77:2
declare -A GROUP_MAC=([$GROUP4]=01:00:5e:4d:01:02 [$GROUP6]=33:33:00:77:00:02 [ff01::77:2]=33:33:00:77:00:02)

# joined NS GROUP USERS: so many processes receive the group, as the interface's filter shows.
joined() {
	local i
	for i in $(seq 200); do
		in_ns "$1" ip maddr show dev eth0 | grep -Eq "link +${GROUP_MAC[$2]}( users $3)?( static)?\$" &&
			{ [ "$3" = 1 ] || in_ns "$1" ip maddr show dev eth0 | grep -Eq "(${GROUP_MAC[$2]}|inet6? +$2) users $3"; } && { sleep 0.3; return; }
		sleep 0.05
	done
	in_ns "$1" ip maddr show dev eth0
	fail "$3 members of $2 are not there"
}

# member NS FILE GROUP USERS [OPTIONS OF UROCE] -- [OPTIONS OF MCKEY]: mckey that receives; it is the so-manyth on its interface.
member() {
	local ns=$1 out=$2 group=$3 users=$4 uroce=()
	shift 4
	while [ "$1" != -- ]; do uroce+=("$1"); shift; done
	shift
	background "$ns" "$out" "${uroce[@]}" -- mckey -m "$group" "$@"
	joined "$ns" "$group" "$users" || { cat "$out"; return 1; }
}

# address NS GROUP: of the group's family.
address() {
	local n=${1##*-}
	case $2 in
	*:*) echo "fd77::$n" ;;
	*) echo "10.77.0.$n" ;;
	esac
}

received() { same_count 1 'data transfers complete' "$1" && same_count 0 -i "fail\|error" "$1"; }

# shark FILE FILTER [FIELDS]
shark() { tshark -r "$1" -Y "$2" -T fields "${@:3}" 2>/dev/null; }

# both GROUP [OPTIONS]: a receiver and a sender, a hundred messages over each QP. The receiver's frames go to $TMP/member.pcapng.
both() {
	local group=$1
	shift
	member "$NS1" "$TMP/member" "$group" 1 --capture "$TMP/member.pcapng" -- -b "$(address "$NS1" "$group")" -C 100 "$@" || return 1
	uroce_in "$NS2" --capture "$TMP/sender.pcapng" -- mckey -m "$group" -b "$(address "$NS2" "$group")" -s -C 100 "$@" >"$TMP/sender" ||
		{ cat "$TMP/sender" "$TMP/member"; fail "sender"; return; }
	served "$TMP/member" && cat "$TMP/member" && "$UROCE" pcap check --quiet "$TMP/member.pcapng"
}

test_mckey_ipv4() { both $GROUP4; }
test_mckey_ipv6() { both $GROUP6; }
test_mckey_many() { both $GROUP4 -c 8; }
test_mckey_ipoib() { both $GROUP4 -p 0x2; }
test_mckey_sizes() {
	local s
	for s in 1 512 1024; do both $GROUP4 -S $s || { fail "size $s"; return; }; done
}

# What a full member says, by the bytes: reports of version 3 to 224.0.0.22, TTL 1, Router Alert; first a join, in the end a leave.
test_mckey_full_member_is_reported() {
	both $GROUP4 || return 1
	shark "$TMP/member.pcapng" igmp -e ip.src -e ip.dst -e ip.ttl -e ip.opt.type -e igmp.type -e igmp.num_grp_recs -e igmp.record_type \
		-e igmp.maddr -e igmp.checksum.status >"$TMP/igmp"
	cat "$TMP/igmp"
	same_count 0 -v "^10.77.0.1	224.0.0.22	1	148	0x22	1	[34]	$GROUP4	1\$" "$TMP/igmp" || return 1
	[ "$(cut -f 7 "$TMP/igmp" | uniq | xargs)" = "4 3" ] || { fail "not a join and a leave"; return; }
	both $GROUP6 || return 1
	shark "$TMP/member.pcapng" 'icmpv6.type == 143' -e ipv6.src -e ipv6.dst -e ipv6.hlim -e ipv6.opt.router_alert -e icmpv6.mldr.nb_mcast_records \
		-e icmpv6.mldr.mar.record_type -e icmpv6.mldr.mar.multicast_address -e icmpv6.checksum.status >"$TMP/mld"
	cat "$TMP/mld"
	same_count 0 -v "^fe80::[0-9a-f:]*	ff02::16	1	0	1	[34]	$GROUP6	1\$" "$TMP/mld" || return 1
	[ "$(cut -f 6 "$TMP/mld" | uniq | xargs)" = "4 3" ] || fail "not a join and a leave"
}
test_mckey_send_only_says_nothing() {
	both $GROUP4 || return 1
	member "$NS1" "$TMP/member" $GROUP4 1 -- -b 10.77.0.1 -C 100 || return 1
	uroce_in "$NS2" --capture "$TMP/sender.pcapng" -- mckey -m $GROUP4 -b 10.77.0.2 -s -o -C 100 && served "$TMP/member" || return 1
	shark "$TMP/sender.pcapng" 'igmp && ip.src == 10.77.0.2' -e igmp.type >"$TMP/igmp"
	shark "$TMP/sender.pcapng" 'infiniband.bth.destqp == 0xffffff' -e frame.number >"$TMP/sends"
	same_count 0 . "$TMP/igmp" && same_count 100 . "$TMP/sends"
}
# The group by its GID: mckey then resolves nothing.
test_mckey_unmapped() {
	local g
	for g in "::ffff:$GROUP4 $GROUP4" "$GROUP6 $GROUP6"; do
		background "$NS1" "$TMP/member" -- mckey -M "${g% *}" -b "$(address "$NS1" "${g#* }")" -C 20
		joined "$NS1" "${g#* }" 1 || return 1
		uroce_in "$NS2" -- mckey -M "${g% *}" -b "$(address "$NS2" "${g#* }")" -s -C 20 && served "$TMP/member" || return 1
	done
}

# The kernel's sockets send nothing to a group of interface-local scope: the program is told, and the counters show it. Port packet sends it.
test_mckey_interface_local() {
	local -x UROCE_PORT=udp UROCE_LOG=info
	uroce_in "$NS2" --counters "$TMP/counters" -- mckey -m ff01::77:2 -b fd77::2 -s -o -C 20 >"$TMP/sender" 2>&1 || { cat "$TMP/sender"; fail "sender"; return; }
	same_count 1 'uroce: datagrams to ff01::77:2 do not leave this host' "$TMP/sender" || return 1
	grep -q '^tx_refused *20$' "$TMP/counters" || { cat "$TMP/counters"; fail "they count as sent"; return; }
	UROCE_PORT=packet
	member "$NS1" "$TMP/member" ff01::77:2 1 -- -b fd77::1 -C 20 || return 1
	uroce_in "$NS2" -- mckey -m ff01::77:2 -b fd77::2 -s -o -C 20 >"$TMP/sender" 2>&1 && served "$TMP/member" || { cat "$TMP/sender"; return 1; }
	same_count 0 'do not leave' "$TMP/sender"
}

# Two receivers on the sender's own host and one elsewhere: everybody gets everything.
test_mckey_three_receivers() {
	local here1 here2 there
	member "$NS1" "$TMP/here1" $GROUP4 1 -- -b 10.77.0.1 -C 100 && here1=$server || return 1
	member "$NS1" "$TMP/here2" $GROUP4 2 -- -b 10.77.0.1 -C 100 && here2=$server || return 1
	member "$NS2" "$TMP/there" $GROUP4 1 -- -b 10.77.0.2 -C 100 && there=$server || return 1
	uroce_in "$NS1" -- mckey -m $GROUP4 -b 10.77.0.1 -s -C 100 || return 1
	for server in $here1 $here2 $there; do served "$TMP/here1" || return 1; done
}
# Without loopback nothing reaches other processes of the sender's host.
test_mckey_no_loopback() {
	member "$NS1" "$TMP/here" $GROUP4 1 --counters "$TMP/counters" -- -b 10.77.0.1 -C 100 || return 1
	local here=$server
	member "$NS2" "$TMP/there" $GROUP4 1 -- -b 10.77.0.2 -C 100 || return 1
	uroce_in "$NS1" -- mckey -m $GROUP4 -b 10.77.0.1 -s -l -C 100 && served "$TMP/there" || return 1
	kill "$(pgrep -P "$here")"
	wait "$here"
	cat "$TMP/counters"
	! grep -q rx_roce_packets "$TMP/counters" || fail "something came back"
}

# --- members beside one another ---

# A process leaves, and another one of the same device says at once that it is still there.
test_mckey_sibling_stays() {
	member "$NS1" "$TMP/one" $GROUP4 1 -- -b 10.77.0.1 || return 1
	local one=$server
	member "$NS1" "$TMP/two" $GROUP4 2 --capture "$TMP/two.pcapng" -- -b 10.77.0.1 || return 1
	sleep 1.5 # the joins have been repeated
	kill "$(pgrep -P "$one")"
	wait "$one"
	sleep 1.5
	kill "$(pgrep -P "$server")"
	wait "$server"
	# What it sent: the leave of the other is in its capture too, as received within the host.
	shark "$TMP/two.pcapng" 'igmp and frame.packet_flags_direction == 2' -e frame.time_relative -e igmp.record_type >"$TMP/igmp"
	cat "$TMP/igmp"
	# Twice for the join; at least twice again for the leave of the other; in the end its own leave.
	[ "$(cut -f 2 "$TMP/igmp" | uniq -c | awk '{ print $2, ($1 >= 4 || $2 == 3) }' | xargs)" = "4 1 3 1" ] || fail "the other process was silent"
}

# --- ends ---

# What the wire brings to the other end. A datagram marks its end: what passed before is in the file once the mark is, however slow the machine.
MARK='udp port 9'
watch_wire() { record "$NS2" "igmp or $MARK" "$TMP/wire.pcap"; }
# wire_ends: the lines 'RECORD GROUP' of what passed are in $TMP/wire.
wire_ends() {
	local i marked=
	for i in $(seq 100); do
		in_ns "$NS1" bash -c 'echo >/dev/udp/10.77.0.2/9'
		sleep 0.1
		[ -z "$(tcpdump -r "$TMP/wire.pcap" "$MARK" 2>/dev/null)" ] || { marked=yes; break; }
	done
	stop "$recorder"
	[ -n "$marked" ] || { fail "the mark is not in the recording"; return; }
	shark "$TMP/wire.pcap" igmp -e igmp.record_type -e igmp.maddr >"$TMP/wire" || { fail "tshark"; return; }
	cat "$TMP/wire"
}
leaves_at() {
	member "$NS1" "$TMP/member" $GROUP4 1 -- -b 10.77.0.1 || return 1
	sleep 1.5 # a keeper, or the kernel, may still speak for the member of the test before
	watch_wire || return 1
	kill "-$1" "$(pgrep -P "$server")"
	wait "$server"
	status=$?
	sleep 1 # a keeper speaks later
	wire_ends || return 1
	[ $status -eq $((128 + $(kill -l "$1"))) ] || fail "status $status"
}
test_mckey_leaves_at_signals() {
	local s
	for s in TERM INT HUP; do
		leaves_at $s && same_count 2 "^3	$GROUP4\$" "$TMP/wire" || { fail "SIG$s"; return; }
	done
}
# Without a keeper no leave is sent for a killed process: switches forget the member when it does not answer.
test_mckey_killed_without_a_keeper() {
	local -x UROCE_KEEPER=0
	leaves_at KILL && same_count 0 "^3	$GROUP4\$" "$TMP/wire"
}
# Another process of the device is a member yet: no leave.
test_mckey_killed_beside_another() {
	member "$NS1" "$TMP/one" $GROUP4 1 -- -b 10.77.0.1 || return 1
	local one=$server
	member "$NS1" "$TMP/two" $GROUP4 2 -- -b 10.77.0.1 || return 1
	sleep 1.5 # the joins have been repeated
	watch_wire || return 1
	kill -KILL "$(pgrep -P "$one")"
	wait "$one"
	sleep 1
	wire_ends || return 1
	same_count 0 . "$TMP/wire"
}
# The keeper leaves by the kernel's sockets, which join first. It and the
# next are the last of these tests: the kernel repeats its leaves within a second or two.
test_mckey_killed() {
	leaves_at KILL || return 1
	[ "$(uniq "$TMP/wire" | xargs)" = "4 $GROUP4 3 $GROUP4" ] || fail "not a join and a leave"
}
# signals_caught PORT: of HUP, INT and TERM, as bits, by a member on that kind of port.
signals_caught() {
	local caught
	local -x UROCE_PORT=$1
	member "$NS1" "$TMP/member" $GROUP4 1 -- -b 10.77.0.1 || return 1
	caught=$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$(pgrep -P "$server")/status")
	stop "$server"
	[ -n "$caught" ] || return 1
	printf '%x\n' $((0x$caught & 0x4003))
}
# Where the groups are those of the kernel's sockets the program keeps its signals.
test_mckey_keeps_its_signals() {
	[ "$(signals_caught packet)" = 4003 ] || { fail "port packet: its groups are not left at signals"; return; }
	[ "$(signals_caught udp)" = 0 ] || fail "port udp: signals are taken that nobody needs"
}

# --- queries: behind the tests above, since the kernel speaks the older version for minutes afterwards, and with it the keeper ---

# asked KIND WANT [GROUP]: the answer of the member to a query from the other end of the cable.
asked() {
	in_ns "$NS2" timeout 10 "$here/src/querier.py" eth0 "$1" ${3:+"$3"} >"$TMP/answers"
	cat "$TMP/answers"
	grep -qx "$2" "$TMP/answers" || fail "$1: no answer like '$2'"
}
test_mckey_answers_queries() {
	member "$NS1" "$TMP/member" $GROUP4 1 --counters "$TMP/counters" -- -b 10.77.0.1 || return 1
	local four=$server ll
	member "$NS1" "$TMP/member6" $GROUP6 1 -- -b fd77::1 || return 1
	ll=fe80::[0-9a-f:]*
	asked igmp3 "igmp3 2 $GROUP4 10.77.0.1" && asked igmp3 "igmp3 2 $GROUP4 10.77.0.1" $GROUP4 || return 1
	asked mld2 "mld2 2 $GROUP6 $ll" && asked mld2 "mld2 2 $GROUP6 $ll" $GROUP6 || return 1
	asked igmp2 "igmp2 report $GROUP4 10.77.0.1" && asked igmp2 "igmp2 report $GROUP4 10.77.0.1" $GROUP4 || return 1
	asked mld1 "mld1 report $GROUP6 $ll" && asked mld1 "mld1 report $GROUP6 $ll" $GROUP6 || return 1
	kill "$(pgrep -P $four)"
	wait "$four"
	grep -E "^rx_group_queries +8" "$TMP/counters" && grep -E "^tx_group_leaves +1" "$TMP/counters" || { cat "$TMP/counters"; fail "counters"; }
}

# --- a switch that snoops: the kernel's bridge ---

# make_switch: namespaces $HOST1 to $HOST3 (10.78.0.1 to 3) at a bridge in $SWITCH that forwards groups to their members alone. It forgets at once
# who leaves.
make_switch() {
	local i
	SWITCH=uroce-$$-sw
	[ -z "${HOST1:-}" ] || return 0
	on_exit "ip netns del $SWITCH"
	ip netns add "$SWITCH"
	in_ns "$SWITCH" sysctl -qw net.ipv6.conf.default.accept_dad=0 # it asks from an address of its own
	ip -n "$SWITCH" link add br0 type bridge mcast_igmp_version 3 mcast_mld_version 2 mcast_query_response_interval 100 || return 1
	ip -n "$SWITCH" link set br0 type bridge mcast_snooping 1 mcast_querier 1 mcast_startup_query_interval 100 # it waits for the interval above
	ip -n "$SWITCH" link set br0 up
	for i in 1 2 3; do
		local ns=uroce-$$-h$i
		on_exit "ip netns del $ns"
		ip netns add "$ns"
		declare -g "HOST$i=$ns"
		ip link add name eth0 netns "$ns" type veth peer name "h$i" netns "$SWITCH" || return 1
		ip -n "$SWITCH" link set "h$i" master br0 up
		in_ns "$SWITCH" bridge link set dev "h$i" fastleave on
		ip -n "$ns" addr add 10.78.0.$i/24 dev eth0
		ip -n "$ns" addr add fd78::$i/64 dev eth0 nodad
		ip -n "$ns" link set eth0 up
	done
	sleep 3 # the bridge floods until it has asked
}
# forwarded PORT GROUP: the switch knows a member behind the port.
forwarded() { in_ns "$SWITCH" bridge mdb show | grep -Eq "port $1 grp $2 "; }
sent_to() { in_ns "$SWITCH" cat "/sys/class/net/$1/statistics/tx_packets"; }

test_mckey_snooping_switch() {
	make_switch || return 1
	local g own before
	for g in $GROUP4 $GROUP6; do
		own=10.78.0.
		[ $g = $GROUP4 ] || own=fd78::
		member "$HOST1" "$TMP/member" $g 1 -- -b ${own}1 -C 100 || return 1
		forwarded h1 $g || { in_ns "$SWITCH" bridge mdb show; fail "the switch does not know the member"; return; }
		before=$(sent_to h3)
		uroce_in "$HOST2" -- mckey -m $g -b ${own}2 -s -o -C 100 && served "$TMP/member" || return 1
		[ $(($(sent_to h3) - before)) -lt 20 ] || { in_ns "$SWITCH" bridge mdb show; fail "messages about $g went to everybody"; return; }
		sleep 0.2
		! forwarded h1 $g || { fail "the switch did not hear of the leave"; return; }
	done
}
# One of two processes leaves, and the switch goes on to forward to the other. (A bridge of version 3 asks before it forgets, whatever it is told.)
test_mckey_snooping_sibling() {
	make_switch || return 1
	ip -n "$SWITCH" link set br0 type bridge mcast_igmp_version 2
	member "$HOST1" "$TMP/one" $GROUP4 1 -- -b 10.78.0.1 -C 100 || return 1
	local one=$server
	member "$HOST1" "$TMP/two" $GROUP4 2 -- -b 10.78.0.1 -C 100 || return 1
	local two=$server
	kill "$(pgrep -P "$one")"
	wait "$one"
	sleep 0.2
	forwarded h1 $GROUP4 || { fail "the switch forgot the other process"; return; }
	uroce_in "$HOST2" -- mckey -m $GROUP4 -b 10.78.0.2 -s -C 100 || return 1
	server=$two
	served "$TMP/two"
}

# --- a program of our own ---

multicast() { gcc -O2 -Wall -Wextra -Werror -o "$TMP/multicast" "$here/src/multicast.c" -lrdmacm -libverbs; }
test_multicast_exit_leaves() {
	multicast || return 1
	watch_wire || return 1
	uroce_in "$NS1" -- "$TMP/multicast" 10.77.0.1 $GROUP4 exit || return 1
	wire_ends || return 1
	# The join and what is left of its repeats; then the leave, as often as the querier wants it.
	[ "$(cut -f 1 "$TMP/wire" | uniq | xargs)" = "4 3" ] && same_count 2 '^3' "$TMP/wire"
}
# A QP that the program makes after the event, and attaches itself.
test_multicast_own_qp() {
	multicast || return 1
	background "$NS1" "$TMP/member" -- "$TMP/multicast" 10.77.0.1 $GROUP4 own 50
	joined "$NS1" $GROUP4 1 || return 1
	uroce_in "$NS2" -- mckey -m $GROUP4 -b 10.77.0.2 -s -o -C 50 && served "$TMP/member" && same_count 1 '^received$' "$TMP/member"
}
# The address of a join goes: the program is told, leaves, and joins from another one.
test_multicast_address_goes() {
	multicast || return 1
	ip -n "$NS1" addr add 10.77.0.101/24 dev eth0
	background "$NS1" "$TMP/member" -- "$TMP/multicast" 10.77.0.101 $GROUP4 events 10.77.0.1
	joined "$NS1" $GROUP4 1 || return 1
	ip -n "$NS1" addr del 10.77.0.101/24 dev eth0
	served "$TMP/member"
	local ok=$?
	cat "$TMP/member"
	[ $ok = 0 ] && same_count 1 '^RDMA_CM_EVENT_MULTICAST_ERROR -99$' "$TMP/member" && same_count 1 '^joined again$' "$TMP/member"
}
# The link goes down and up: the switch may have forgotten us.
test_multicast_link_comes_back() {
	member "$NS1" "$TMP/member" $GROUP4 1 -- -b 10.77.0.1 || return 1
	sleep 1.2
	ip -n "$NS2" link set eth0 down
	sleep 0.5
	ip -n "$NS2" link set eth0 up
	watch_wire || return 1
	ip -n "$NS1" link set eth0 down
	sleep 0.3
	ip -n "$NS1" link set eth0 up
	sleep 2
	wire_ends || return 1
	grep -q "^4	$GROUP4\$" "$TMP/wire" || fail "no report"
}

# A port of our own, with addresses of our own (queries on one: nic_mcast in test/unit).
test_mckey_memif() {
	local memif="socket=$TMP/memif.sock,socket-abstract=no" i
	timeout -k 5 30 "$UROCE" run --vdev "net_memif0,role=server,$memif" --ip 10.88.0.1/24 --counters "$TMP/counters" -- \
		stdbuf -oL mckey -m $GROUP4 -b 10.88.0.1 -C 20 </dev/null >"$TMP/member" 2>&1 &
	server=$!
	servers+=("$server")
	for i in $(seq 100); do
		! grep -q '^mckey: joined' "$TMP/member" || break
		sleep 0.1
	done
	timeout -k 5 30 "$UROCE" run --vdev "net_memif0,role=client,$memif" --ip 10.88.0.2/24 -- mckey -m $GROUP4 -b 10.88.0.2 -s -C 20 || return 1
	served "$TMP/member" || return 1
	cat "$TMP/counters"
	# Twice at the join, and twice when the other side has come and the link is up.
	grep -Eq '^tx_group_reports +[1-4]$' "$TMP/counters" && grep -Eq '^tx_group_leaves +2$' "$TMP/counters" || fail "no join or no leave"
}

# DPDK's driver for packet sockets cannot set a filter; the kernel's interface gets one all the same, and loses it with the process. Nor
# can it take trains of packets that the sender's kernel left whole.
test_mckey_af_packet() {
	local device=(--vdev net_af_packet0,iface=eth0 --ip 10.77.0.77/24)
	in_ns "$NS1" timeout -k 5 30 "$UROCE" run "${device[@]}" -- mckey -m $GROUP4 -b 10.77.0.77 -C 20 </dev/null >"$TMP/member" 2>&1 &
	server=$!
	servers+=("$server")
	joined "$NS1" $GROUP4 1 || { cat "$TMP/member"; return 1; }
	in_ns "$NS2" ethtool -K eth0 tx-udp-segmentation off >/dev/null || return 1
	uroce_in "$NS2" -- mckey -m $GROUP4 -b 10.77.0.2 -s -C 20
	local status=$?
	in_ns "$NS2" ethtool -K eth0 tx-udp-segmentation on >/dev/null
	[ $status = 0 ] && served "$TMP/member" || { cat "$TMP/member"; return 1; }
	! in_ns "$NS1" ip maddr show dev eth0 | grep -q "${GROUP_MAC[$GROUP4]}" || fail "still a member"
}
