# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What options of programs do to the packets, where a mistake would not show in the program: recorded by uroce, read by tshark.

# recorded PORT "SERVER" "CLIENT": as talk; the client's packets are in $TMP/capture.pcapng.
recorded() {
	local client_options=(--capture "$TMP/capture.pcapng")
	type tshark >/dev/null || { fail "tshark is not here: install it"; return; }
	rm -f "$TMP/capture.pcapng"
	talk "$@"
}
# fields FILTER FIELD...: the values of the packets that the filter takes, without repetitions, separated by blanks.
fields() {
	local filter=$1 f args=()
	shift
	for f; do args+=(-e "$f"); done
	tshark -r "$TMP/capture.pcapng" -Y "$filter" -T fields -E separator=' ' "${args[@]}" 2>/dev/null | sort -u | tr '\n' ';'
}
# shows "FILTER" "WANT" FIELD...
shows() {
	local filter=$1 want=$2 got
	shift 2
	got=$(fields "$filter" "$@")
	[ "$got" = "$want" ] || fail "$* of '$filter' are '$got' in place of '$want'"
}
REQ='infiniband.mad.attributeid == 0x0010'
REJ='infiniband.mad.attributeid == 0x0012'
REP='infiniband.mad.attributeid == 0x0013'
IPCM=infiniband.cm.req.ip_cm

# TOS 72 is DSCP 18, on both sides and in all packets; data has ECT(0) besides.
test_wire_tos_port_timeout() {
	recorded 7555 "ucmatose -p 7555 -C 20 -S 3000" "ucmatose -s 10.77.0.1 -b 10.77.0.2 -p 7555 -C 20 -S 3000 -t 72 -a 12" &&
		shows 'infiniband' '10.77.0.1 18;10.77.0.2 18;' ip.src ip.dsfield.dscp &&
		shows 'infiniband.bth.opcode <= 4' '2;' ip.dsfield.ecn &&
		shows "$REQ" '0x48 0x0c;' infiniband.cm.req.prim_tfcclass infiniband.cm.req.prim_localacktout &&
		shows "$REQ" '0x06 0x1d83;' infiniband.cm.req.serviceid.protocol infiniband.cm.req.serviceid.dport &&
		shows "$REQ" '0x00 0x04 10.77.0.2 10.77.0.1;' $IPCM.majv $IPCM.ipv $IPCM.sip4 $IPCM.dip4 || return 1
	[[ $(fields "$REQ" $IPCM.sport) =~ ^0x[0-9a-f]{4}\;$ && $(fields "$REQ" $IPCM.sport) != '0x0000;' ]] || fail "no source port"
}
# The flow label in the REQ is that of the data. tshark 4.0 shows the upper 12 bits of what is in the REQ. Each process hears each CM message of its device,
# so one over IPv4 may be of another connection; no request is.
test_wire_ipv6() {
	local label
	recorded 7555 "ucmatose -b fd77::1 -p 7555" "ucmatose -s fd77::1 -b fd77::2 -p 7555 -t 32" || return 1
	shows 'infiniband && ipv6' 'fd77::1 8;fd77::2 8;' ipv6.src ipv6.tclass.dscp &&
		shows "ip && (infiniband.bth.destqp != 1 || $REQ)" '' ip.src &&
		shows "$REQ" '0x20 0x40;' infiniband.cm.req.prim_tfcclass infiniband.cm.req.prim_hoplim &&
		shows "$REQ" '0x06 fd77::2 fd77::1;' $IPCM.ipv $IPCM.sip6 $IPCM.dip6 || return 1
	label=$(fields "$REQ" infiniband.cm.req.prim_flowlabel)
	label=${label#0x00000}
	[[ $(fields 'infiniband.bth.destqp != 1' ipv6.flow) =~ ^0x0${label%;}[0-9a-f]{2}\;$ ]] ||
		fail "the flow label is $label in the REQ, $(fields 'infiniband.bth.destqp != 1' ipv6.flow) in the data"
}
# rsockets greet one another: version 1, flags 2 (mappings), credits 384, mappings 0 (struct rs_conn_data of rdma-core, in network order).
test_wire_rsocket() {
	local ask answer hello='^0102018000000000[0-9a-f]{16}'
	recorded 7471 "rstream -S 1000 -C 1 -I 3" "rstream -s 10.77.0.1 -S 1000 -C 1 -I 3" || return 1
	ask=$(fields "$REQ" $IPCM.private)
	answer=$(fields "$REP" infiniband.cm.rep.private)
	[[ $ask =~ $hello ]] && [[ $answer =~ $hello ]] || { fail "private data '$ask', '$answer'"; return; }
	shows "$REQ" '0x1d2f 0x07 0x07;' infiniband.cm.req.serviceid.dport infiniband.cm.req.retrcount infiniband.cm.req.rnrretrcount
}
# Reason 28 with the server's bytes, then none; and reason 8 where nobody listens.
test_wire_refused() {
	[ -x "$TMP/private_data" ] || gcc -O2 -Wall -Wextra -Werror -o "$TMP/private_data" "$here/../interop/private_data.c" -lrdmacm || return 1
	recorded 7322 "$TMP/private_data server 10.77.0.1" "$TMP/private_data client 10.77.0.1" || return 1
	shows "$REJ" '0x001c;' infiniband.cm.rej.reason || return 1
	[[ $(fields "$REJ" infiniband.cm.rej.private) == 6e757c838a* ]] || { fail "private data '$(fields "$REJ" infiniband.cm.rej.private)'"; return; }
	[[ $(fields "$REQ" $IPCM.private) == 71787f868d* ]] || { fail "private data '$(fields "$REQ" $IPCM.private)'"; return; }
	stop_servers
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	uroce_in "$NS2" --capture "$TMP/capture.pcapng" -- rping -c -C 1 -p 7999 -a 10.77.0.1
	shows "$REJ" '0x0008;' infiniband.cm.rej.reason
}

# A train that the kernel cuts because the interface does not take it whole: each packet has the ICRC of the identification that it got.
test_wire_train_cut_by_the_kernel() {
	local ns last
	type ethtool >/dev/null || { fail "ethtool is not here: install it"; return; }
	for ns in "$NS1" "$NS2"; do
		in_ns "$ns" ethtool -K eth0 tx-udp-segmentation off >/dev/null || return 1
		on_exit "ip netns exec $ns ethtool -K eth0 tx-udp-segmentation on"
	done
	record "$NS1" 'udp port 4791' "$TMP/wire.pcap" || return 1
	UROCE_PORT=udp ping_both -V -C 20 -S 65000 || return 1
	sleep 0.3
	stop "$recorder"
	for ns in "$NS1" "$NS2"; do in_ns "$ns" ethtool -K eth0 tx-udp-segmentation on >/dev/null; done
	"$UROCE" pcap check --quiet "$TMP/wire.pcap" || { fail "ICRC"; return; }
	last=$(tshark -r "$TMP/wire.pcap" -Y 'ip.id > 10' 2>/dev/null | wc -l)
	[ "$last" -gt 100 ] || fail "$last packets were cut from long trains"
}

# What one side recorded while both sides lost, doubled and moved packets: every packet was as it has to be, and the losses have a place.
test_capture_lossy() {
	local f faults=drop=2%,dup=1%,reorder=1%
	serve "$RPING" "$NS1" "$TMP/server" --fault $faults,seed=3 --capture "$TMP/lossy1.pcapng" -- rping -s -V -C 30 -S 60000 || return 1
	uroce_in "$NS2" --fault $faults,seed=4 --capture "$TMP/lossy2.pcapng" -- rping -c -a 10.77.0.1 -V -C 30 -S 60000 >"$TMP/client" 2>&1 ||
		{ cat "$TMP/client"; fail "client status $?"; return; }
	served "$TMP/server" || return 1
	for f in lossy1 lossy2; do
		"$UROCE" pcap check "$TMP/$f.pcapng" >"$TMP/found" || { grep ' error ' "$TMP/found"; fail "$f: an error was found"; return; }
		grep -q 'warning RETX .*lost between' "$TMP/found" || { fail "$f: no loss with its place"; return; }
	done
}

# told_as KIND FILE: what 'uroce pcap why' says of a recording is what the client's program was told.
told_as() {
	local first want="no request that failed"
	first=$(sed -n 's/^request [0-9]*: status \([1-9][0-9]*\)$/\1/p' "$TMP/client" | head -n 1)
	[ -z "$first" ] || want="^10.77.0.2 to QP .* of 10.77.0.1: status $first ("
	"$UROCE" pcap why "$2" >"$TMP/why"
	grep -q "$want" "$TMP/why" || { cat "$TMP/client" "$TMP/why"; fail "$1: status ${first:-0} in $2"; return; }
	# What the program has asked for in vain is an error, of its own.
	! "$UROCE" pcap check "$2" | grep ' error ' | grep -v -e NAK-FATAL -e 'INVALID .* not a multiple of eight' || { "$UROCE" pcap check "$2"; fail "$1: an error was found in $2"; }
}

# As both ends have recorded it; a server that stops records nothing of what follows.
test_capture_why() {
	local k
	own_program failing || return 1
	for k in $("$TMP/failing" list); do
		serve 7476 "$NS1" "$TMP/server" --capture "$TMP/$k-server.pcapng" -- "$TMP/failing" server "$k" || return 1
		uroce_in "$NS2" --capture "$TMP/$k.pcapng" -- "$TMP/failing" client "$k" 10.77.0.1 >"$TMP/client" || { cat "$TMP/client"; fail "$k"; return; }
		told_as "$k" "$TMP/$k.pcapng" || return 1
		case $k in
		silent | gone) stop_servers ;;
		*) served "$TMP/server" && told_as "$k" "$TMP/$k-server.pcapng" || return 1 ;;
		esac
	done
}
