# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Addresses, ports and options of librdmacm across hosts.

build_addresses() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/addresses" "$here/src/addresses.c" -lrdmacm -libverbs
}

# with_files FILE=TEXT... -- NS ARGUMENTS: the program with these files in place of those of /etc, its mounts its own.
with_files() {
	local etc=$TMP/etc mounts='' f
	mkdir -p "$etc"
	while [ "$1" != -- ]; do
		f=${1%%=*}
		printf '%b\n' "${1#*=}" >"$etc/$f"
		mounts+="mount --bind $etc/$f $(readlink -f "/etc/$f") && "
		shift
	done
	shift
	ip netns exec "$1" unshare --mount bash -c "${mounts}exec timeout -k 5 60 $UROCE run --dev eth0 -- $TMP/addresses \"\$@\"" x "${@:2}" </dev/null
}

test_getaddrinfo_names() {
	build_addresses || return 1
	with_files 'hosts=10.77.0.1 one.example one\nfd77::1 one.example' 'services=rdmatest 7471/tcp' 'nsswitch.conf=hosts: files\nservices: files' \
		-- "$NS2" names one.example rdmatest 10.77.0.1 7471
}
test_getaddrinfo_name_server() {
	build_addresses || return 1
	with_files 'hosts=127.0.0.1 localhost' 'nsswitch.conf=hosts: dns' 'resolv.conf=nameserver 10.77.0.99\noptions timeout:1 attempts:1' \
		-- "$NS2" fails EAI_AGAIN two.example 1 || return 1
	with_files 'hosts=127.0.0.1 localhost' 'nsswitch.conf=hosts: files' -- "$NS2" fails EAI_NONAME two.example 1
}
test_resolve_addr() {
	build_addresses || return 1
	uroce_in "$NS2" -- "$TMP/addresses" resolve 10.77.0.2 fd77::2 10.77.0.1 fd77::1 10.77.0.99
}

# link_local NS: the address of its eth0.
link_local() {
	in_ns "$1" ip -6 -o addr show dev eth0 scope link | sed -n 's/.* inet6 \([^/]*\).*/\1/p'
}
test_link_local_scopes() {
	build_addresses || return 1
	uroce_in "$NS2" -- "$TMP/addresses" local "$(link_local "$NS2")" eth0 "$(link_local "$NS1")"
}
test_ports_across_processes() {
	build_addresses || return 1
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	uroce_in "$NS1" -- "$TMP/addresses" in-use "$RPING"
}
test_bindv6only() {
	local status
	build_addresses || return 1
	uroce_in "$NS1" -- "$TMP/addresses" conflict 4 6 EADDRINUSE || return 1
	in_ns "$NS1" sysctl -qw net.ipv6.bindv6only=1
	uroce_in "$NS1" -- "$TMP/addresses" conflict 4 6 0 && uroce_in "$NS1" -- "$TMP/addresses" conflict 6 4 0
	status=$?
	in_ns "$NS1" sysctl -qw net.ipv6.bindv6only=0
	return $status
}

# A server and a client of one host that name no address of it.
test_rping_loopback() {
	local to
	for to in 127.0.0.1 ::1 localhost; do
		serve "$RPING" "$NS1" "$TMP/server" -- rping -s -C 3 -v -a "$([ "${to#*:}" = "$to" ] && echo 0.0.0.0 || echo ::)" || return 1
		uroce_in "$NS1" -- rping -c -C 3 -v -a "$to" || { cat "$TMP/server"; fail "client to $to: status $?"; return; }
		served "$TMP/server" || return 1
	done
}
# What listens on the loopback address is for this host alone.
test_loopback_listener_is_local() {
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P -a 127.0.0.1 || return 1
	! uroce_in "$NS2" -- rping -c -C 1 -a 10.77.0.1 || { fail "another host was let in"; return; }
	uroce_in "$NS1" -- rping -c -C 1 -a 127.0.0.1
}

# The type of service of a connection is in its requests, its data and what the peer sends back.
test_tos_on_the_wire() {
	local total marked
	serve 7471 "$NS1" "$TMP/server" -- ucmatose -C 10 || return 1
	uroce_in "$NS2" --capture "$TMP/tos.pcapng" -- ucmatose -C 10 -t 0x68 -s 10.77.0.1 && served "$TMP/server" || return 1
		total=$(tshark -r "$TMP/tos.pcapng" -Y 'udp.dstport == 4791' 2>/dev/null | wc -l)
	marked=$(tshark -r "$TMP/tos.pcapng" -Y 'udp.dstport == 4791 && ip.dsfield.dscp == 26' 2>/dev/null | wc -l)
	[ "$total" -gt 20 ] && [ "$total" -eq "$marked" ] || fail "$marked of $total packets have the type of service"
}
test_options_on_the_wire() {
	build_addresses || return 1
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s || return 1
	uroce_in "$NS2" --capture "$TMP/ack.pcapng" -- "$TMP/addresses" ack-timeout 10.77.0.1 7999 || return 1
	tshark -r "$TMP/ack.pcapng" -Y 'infiniband.mad.attributeid == 0x10' -T fields -e infiniband.cm.req.prim_localacktout -e infiniband.cm.req.pppmtu \
		-e ip.dsfield 2>/dev/null | tr '\t' ' ' >"$TMP/fields"
	grep -Eq '^(13|0x0*d) (3|0x0*3) 0x28$' "$TMP/fields" && grep -Eq '^(10|0x0*a) (1|0x0*1) 0x48$' "$TMP/fields" ||
		{ cat "$TMP/fields"; fail "the requests do not say what the options do"; }
}
