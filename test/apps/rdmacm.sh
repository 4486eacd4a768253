# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Other programs of librdmacm.

test_ucmatose() {
	serve 7471 "$NS1" "$TMP/server" -- ucmatose -c 4 -C 50 || return 1
	uroce_in "$NS2" -- ucmatose -c 4 -C 50 -s 10.77.0.1 && served "$TMP/server"
}
test_rdma_client_server() {
	serve 7471 "$NS1" "$TMP/server" -- rdma_server || return 1
	uroce_in "$NS2" -- rdma_client -s 10.77.0.1 && served "$TMP/server"
}
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
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/endpoints" "$here/endpoints.c" -lrdmacm -libverbs || return 1
	serve 7475 "$NS1" "$TMP/server" -- "$TMP/endpoints" server "$1" 10.77.0.1 || return 1
	uroce_in "$NS2" -- "$TMP/endpoints" client "$1" 10.77.0.1 >"$TMP/client" || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	served "$TMP/server" && same_count 1 "^$2 messages answered" "$TMP/client"
}
test_endpoints_uc() { endpoints uc 50; }
test_endpoints_af_ib() { endpoints ib 50; }
test_endpoints_srq() { endpoints srq 100; }
