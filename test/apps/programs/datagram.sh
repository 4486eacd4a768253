# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Datagram services of the RDMA CM (RDMA_PS_UDP, RDMA_PS_IPOIB).

UDADDY=7174 # where udaddy listens unless told otherwise

# udaddy_both SERVER [OPTIONS]: the same options on both sides.
udaddy_both() {
	local to=$1
	shift
	serve "$UDADDY" "$NS1" "$TMP/server" -- udaddy "$@" || return 1
	uroce_in "$NS2" -- udaddy -s "$to" "$@" >"$TMP/client" || { cat "$TMP/client" "$TMP/server"; fail "client status $?"; return; }
	served "$TMP/server" || return 1
	grep -q 'data transfers complete' "$TMP/client" || { cat "$TMP/client"; fail "nothing was transferred"; }
}

test_udaddy_default() { udaddy_both 10.77.0.1; }
test_udaddy_ipv6() { udaddy_both fd77::1 -b ::; }
test_udaddy_many() { udaddy_both 10.77.0.1 -c 40 -C 20; }
test_udaddy_sizes() {
	local s
	for s in 1 64 1000 1024; do
		udaddy_both 10.77.0.1 -C 10 -S $s || { fail "size $s"; return; }
	done
}
test_udaddy_tos() { udaddy_both 10.77.0.1 -t 32; }
test_udaddy_ipoib() { udaddy_both 10.77.0.1 -p 0x2; }
test_udaddy_same_host() {
	serve "$UDADDY" "$NS1" "$TMP/server" -- udaddy -c 4 || return 1
	uroce_in "$NS1" -- udaddy -c 4 -s 10.77.0.1 && served "$TMP/server"
}

# What SIDR_REQ and SIDR_REP hold is checked by their bytes, which tshark takes no further apart: request id, P_Key, service id, RDMA CM header;
# request id, status 0, QPN, service id, Q_Key.
test_udaddy_on_the_wire() {
	local req='^([0-9a-f]{8})ffff00000000000001111c060040[0-9a-f]{4}0{24}0a4d00020{24}0a4d00010*$'
	serve "$UDADDY" "$NS1" "$TMP/server" -- udaddy -t 64 || return 1
	uroce_in "$NS2" --capture "$TMP/ud.pcapng" -- udaddy -t 64 -s 10.77.0.1 && served "$TMP/server" || return 1
	"$UROCE" pcap check --quiet "$TMP/ud.pcapng" || { fail "ICRC"; return; }
	sidr() { tshark -r "$TMP/ud.pcapng" -Y "$1" -T fields "${@:2}" 2>/dev/null | tr -d :; }
	sidr 'infiniband.mad.attributeid == 0x17' -e infiniband.mad.data >"$TMP/req"
	sidr 'infiniband.mad.attributeid == 0x18' -e infiniband.mad.data >"$TMP/rep"
	cat "$TMP/req" "$TMP/rep"
	grep -Eq "$req" "$TMP/req" || { fail "SIDR_REQ"; return; }
	grep -Eq "^$(cut -c1-8 "$TMP/req")00000000[0-9a-f]{6}000000000001111c06012345670*$" "$TMP/rep" || { fail "SIDR_REP"; return; }
	same_count 1 . "$TMP/req" && same_count 1 . "$TMP/rep" || return 1
	sidr 'infiniband.bth.opcode == 101' -e ip.dsfield -e infiniband.deth.q_key -e infiniband.bth.destqp >"$TMP/sends"
	sort "$TMP/sends" | uniq -c
	same_count 10 "^0x40.*0000000001234567.*0x$(cut -c17-22 "$TMP/rep")\$" "$TMP/sends"
}

# Private data, refusals and rdma_post_ud_send by a program of our own.
datagrams() { gcc -O2 -Wall -Wextra -Werror -o "$TMP/datagrams" "$here/src/datagrams.c" -lrdmacm -libverbs; }
datagram_client() {
	uroce_in "$1" -- "$TMP/datagrams" "${@:2}" >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP"/server*; fail "client $*"; return; }
	same_count 1 '^refused$' "$TMP/client" && same_count 1 '^accepted$' "$TMP/client"
}
test_datagram_endpoints() {
	datagrams && serve 7473 "$NS1" "$TMP/server" -- "$TMP/datagrams" 7473 || return 1
	datagram_client "$NS2" 7473 10.77.0.1 && datagram_client "$NS2" 7473 10.77.0.1 l && served "$TMP/server"
}
test_datagram_endpoints_ipv6() {
	datagrams && serve 7473 "$NS1" "$TMP/server" -- "$TMP/datagrams" 7473 || return 1
	datagram_client "$NS2" 7473 fd77::1 l && served "$TMP/server"
}
test_datagram_two_servers_one_device() {
	local a
	datagrams && serve 7473 "$NS1" "$TMP/server1" -- "$TMP/datagrams" 7473 || return 1
	a=$server
	serve 7474 "$NS1" "$TMP/server2" -- "$TMP/datagrams" 7474 || return 1
	datagram_client "$NS2" 7474 10.77.0.1 && datagram_client "$NS1" 7473 10.77.0.1 && datagram_client "$NS1" 7474 10.77.0.1 l &&
		served "$TMP/server2" || return 1
	server=$a
	datagram_client "$NS2" 7473 10.77.0.1 l && served "$TMP/server1"
}
test_datagram_nobody_listens() {
	local status
	serve "$UDADDY" "$NS1" "$TMP/server" -- rping -s -P -p "$UDADDY" || return 1 # on the same port of RDMA_PS_TCP
	uroce_in "$NS2" -- timeout 20 udaddy -s 10.77.0.1 >"$TMP/client" 2>&1
	status=$?
	cat "$TMP/client"
	[ $status -ne 0 ] && [ $status -ne 124 ] && grep -q 'event: RDMA_CM_EVENT_UNREACHABLE, error: 1' "$TMP/client" || fail "udaddy ended with $status"
}
