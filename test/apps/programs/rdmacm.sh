# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of connections: ucmatose, cmtime, rdma_client and rdma_server, and one of our own that looks at private data.

test_ucmatose() { talk 7471 "ucmatose -c 4 -C 50" "ucmatose -c 4 -C 50 -s 10.77.0.1"; }
test_ucmatose_sizes() {
	local s
	for s in 1 4096 200000; do
		talk 7471 "ucmatose -S $s -C 20" "ucmatose -S $s -C 20 -s 10.77.0.1" || return 1
	done
}
test_ucmatose_without_messages() { talk 7471 "ucmatose -c 3 -C 0" "ucmatose -c 3 -C 0 -s 10.77.0.1"; }
test_ucmatose_two_hundred_connections() { talk 7471 "ucmatose -c 200 -C 5" "ucmatose -c 200 -C 5 -s 10.77.0.1"; }
test_ucmatose_migrates() {
	talk 7471 "ucmatose -m -c 8 -C 5" "ucmatose -m -c 8 -C 5 -s 10.77.0.1" || return 1
	same_count 1 '^migrating to new event channel' "$TMP/client" && same_count 1 '^migrating to new event channel' "$TMP/server"
}
test_ucmatose_options() {
	talk 7555 "ucmatose -b 10.77.0.1 -p 7555 -f ip -P tcp -c 3" "ucmatose -s 10.77.0.1 -b 10.77.0.2 -p 7555 -f ip -P tcp -c 3 -t 72 -a 12"
}
test_ucmatose_names() { talk 7471 "ucmatose -f name -b uroce-1" "ucmatose -f name -s uroce-1 -b uroce-2"; }
test_ucmatose_ipv6() {
	talk 7471 "ucmatose -f ipv6 -b fd77::1 -c 3" "ucmatose -f ipv6 -s fd77::1 -b fd77::2 -c 3" &&
		talk 7471 "ucmatose -b ::0" "ucmatose -s uroce6-1"
}
# GIDs are AF_IB; the port space IB works with addresses of each kind.
test_ucmatose_gid() {
	talk 7471 "ucmatose -f gid -b ::ffff:10.77.0.1 -c 3" "ucmatose -f gid -s ::ffff:10.77.0.1 -c 3" &&
		talk 7471 "ucmatose -f gid -P ib -b fd77::1" "ucmatose -f gid -P ib -s fd77::1 -b fd77::2"
}
test_ucmatose_port_space_ib() { talk 7471 "ucmatose -P ib -c 3" "ucmatose -P ib -s 10.77.0.1 -c 3"; }

test_rdma_client_server() { talk 7471 "rdma_server" "rdma_client -s 10.77.0.1"; }
test_rdma_client_server_port() { talk 7700 "rdma_server -s 10.77.0.1 -p 7700" "rdma_client -s uroce-1 -p 7700"; }
test_rdma_client_server_ipv6() { talk 7471 "rdma_server -s fd77::1" "rdma_client -s fd77::1"; }

# cmtime takes what goes wrong with single connections lightly, but counts them in its table. steps N: all of them, N connections each.
steps() {
	local s
	cat "$TMP/client"
	! grep -iE 'fail|error|event' "$TMP/client" || { fail "cmtime complains"; return; }
	for s in 'create id' 'resolve addr' 'resolve route' 'create qp' connect disconnect destroy; do
		grep -Eq "^$s *: +[0-9]+\.[0-9]" "$TMP/client" || { fail "no step '$s'"; return; }
	done
}
test_cmtime_thousand() { talk 7471 "cmtime -c 1000" "cmtime -c 1000 -s 10.77.0.1" goes_on && steps; }
test_cmtime_options() {
	talk 7600 "cmtime -b 10.77.0.1 -p 7600" "cmtime -s 10.77.0.1 -b 10.77.0.2 -p 7600 -c 50 -r 3 -t 1000" goes_on && steps &&
		grep -q '^bind addr' "$TMP/client" || fail "nothing was bound"
}
test_cmtime_ipv6() { talk 7471 "cmtime -b fd77::1" "cmtime -s fd77::1 -c 50" goes_on && steps; }
test_cmtime_twice() {
	talk 7471 "cmtime -c 100" "cmtime -c 100 -s 10.77.0.1" goes_on || return 1
	uroce_in "$NS2" -- cmtime -c 100 -s 10.77.0.1 >"$TMP/client" 2>&1 && steps
}

# private_data ADDRESS [OPTIONS]: 56 bytes ask, 148 refuse, 196 accept; of datagrams 180, 136 and 136. Each is compared where it arrives.
private_data() {
	local a=$1
	shift
	[ -x "$TMP/private_data" ] || gcc -O2 -Wall -Wextra -Werror -o "$TMP/private_data" "$here/../interop/private_data.c" -lrdmacm || return 1
	talk 7322 "$TMP/private_data $* server $a" "$TMP/private_data $* client $a" || return 1
	cat "$TMP/client"
	same_count 2 '^asked ' "$TMP/server" && same_count 1 '^refused ' "$TMP/client" && same_count 1 '^accepted ' "$TMP/client"
}
test_private_data() { private_data 10.77.0.1; }
test_private_data_ipv6() { private_data fd77::1; }
test_private_data_datagrams() { private_data 10.77.0.1 -u && private_data fd77::1 -u; }

test_rdma_xclient_rc() {
	serve 7471 "$NS1" "$TMP/server" -- rdma_xserver -c r || return 1
	uroce_in "$NS2" -- rdma_xclient -c r -s 10.77.0.1 && served "$TMP/server"
}
test_rdma_xclient_xrc() {
	serve 7471 "$NS1" "$TMP/server" -- rdma_xserver -c x || return 1
	uroce_in "$NS2" -- rdma_xclient -c x -s 10.77.0.1 && served "$TMP/server"
}
test_rdma_xclient_port() {
	serve 7555 "$NS1" "$TMP/server" -- rdma_xserver -c x -p 7555 || return 1
	uroce_in "$NS2" -- rdma_xclient -c x -p 7555 -s 10.77.0.1 && served "$TMP/server"
}
# endpoints KIND COUNT: our own program with so many messages.
endpoints() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/endpoints" "$here/src/endpoints.c" -lrdmacm -libverbs || return 1
	serve 7475 "$NS1" "$TMP/server" -- "$TMP/endpoints" server "$1" 10.77.0.1 || return 1
	uroce_in "$NS2" -- "$TMP/endpoints" client "$1" 10.77.0.1 >"$TMP/client" || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" && same_count 1 "^$2 messages answered" "$TMP/client"
}
test_endpoints_uc() { endpoints uc 50; }
test_endpoints_af_ib() { endpoints ib 50; }
test_endpoints_srq() { endpoints srq 100; }
