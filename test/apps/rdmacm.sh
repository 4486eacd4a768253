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
