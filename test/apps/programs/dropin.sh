# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs that open libibverbs and librdmacm, or look at the device's files: the folder for LD_LIBRARY_PATH, run --files, UCX, libfabric, pyverbs.

DROPIN=$LIB/uroce
PYTHON=/usr/bin/python3 # Debian's: it has the modules

# without_run NS PROGRAM...: the folder and a device in the environment are all.
without_run() {
	local ns=$1
	shift
	in_ns "$ns" env LD_LIBRARY_PATH="$DROPIN" UROCE_DEV=eth0 timeout -k 5 60 "$@" </dev/null
}
# serve_at TCP-PORT NS FILE [OPTIONS] -- PROGRAM...: as serve_tcp, with the port.
serve_at() {
	local port=$1
	shift
	background "$@"
	for _ in $(seq 200); do
		[ -z "$(in_ns "$1" ss -Hltn "sport = :$port")" ] || return 0
		sleep 0.05
	done
	cat "$2"
	fail "the server does not listen"
}
opened() {
	[ -x "$TMP/opened" ] || gcc -Wall -Werror -o "$TMP/opened" "$here/src/opened.c" || return 1
	echo "$TMP/opened"
}

test_opened_library() {
	local opened name
	opened=$(opened) || return 1
	for name in libibverbs.so.1 libibverbs.so; do
		uroce_in "$NS1" -- "$opened" 10.77.0.1 "$name" && without_run "$NS1" "$opened" 10.77.0.1 "$name" || { fail "$name"; return; }
	done
}
test_opened_libraries_together() {
	local opened
	opened=$(opened) || return 1
	uroce_in "$NS1" -- "$opened" 10.77.0.1 libibverbs.so.1 librdmacm.so.1 || return 1
	without_run "$NS1" "$opened" 10.77.0.1 libibverbs.so.1 librdmacm.so.1 || return 1
	without_run "$NS1" env LD_PRELOAD="$LIB/liburoce.so.1" "$opened" 10.77.0.1 libibverbs.so.1 librdmacm.so.1 || { fail "preloaded too"; return; }
	without_run "$NS1" env LD_PRELOAD=librdmacm.so.1 "$opened" 10.77.0.1 libibverbs.so.1 librdmacm.so.1 || fail "linked too"
}
# As often as it came by the library, a process has one slot.
test_opened_libraries_are_one_process() {
	local opened n
	opened=$(opened) || return 1
	OPENED_WAIT=yes background "$NS1" "$TMP/server" -- "$opened" 10.77.0.1 libibverbs.so.1 librdmacm.so.1
	until_says "$TMP/server" waiting || return 1
	info_processes || return 1
	n=$(grep -Ec '^  [0-9]+  slot [0-9, ]+  port [a-z]+$' "$TMP/processes")
	[ "$n" -eq 1 ] || fail "$n slots"
}
# No program finds our libibverbs that does not look for it.
test_opened_library_is_in_a_folder_of_its_own() {
	[ "$(find "$PREFIX" -name 'libibverbs.so*' -o -name 'librdmacm.so*' | xargs -n 1 dirname | sort -u)" = "$LIB/uroce" ] || fail "elsewhere, too"
}
# Linked programs need no `uroce run` then; each is bound to symbols of both libraries, and perftest to those for libibverbs' providers.
test_without_run() {
	without_run "$NS1" ibv_devinfo | grep -q 'hca_id:.*uroce0' || { fail "ibv_devinfo"; return; }
	without_run "$NS1" ib_write_bw --version | grep -q '^Version' || { fail "perftest"; return; }
	in_ns "$NS1" env LD_LIBRARY_PATH="$DROPIN" UROCE_DEV=eth0 timeout -k 5 60 rping -s -C 20 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	wait_listening "$NS1" "$RPING" "$server" || { cat "$TMP/server"; fail "the server does not listen"; return; }
	without_run "$NS2" rping -c -V -C 20 -a 10.77.0.1 && served "$TMP/server"
}
# rsockets are the system's librdmacm, on top of ours.
test_rsockets_beside_ours() {
	serve 7471 "$NS1" "$TMP/server" -- rstream -S 4096 -C 100 || return 1
	uroce_in "$NS2" -- rstream -s 10.77.0.1 -S 4096 -C 100 && served "$TMP/server" || return 1
	in_ns "$NS1" env LD_LIBRARY_PATH="$DROPIN" UROCE_DEV=eth0 timeout -k 5 60 rstream -S 4096 -C 100 </dev/null >"$TMP/server" 2>&1 &
	server=$!
	servers+=("$server")
	wait_listening "$NS1" 7471 "$server" || { cat "$TMP/server"; fail "the server does not listen"; return; }
	without_run "$NS2" rstream -s 10.77.0.1 -S 4096 -C 100 && served "$TMP/server"
}
test_keeps_ld_library_path() {
	in_ns "$NS1" env LD_LIBRARY_PATH=/opt/a:/opt/b "$UROCE" run --dev eth0 -- sh -c 'echo "$LD_LIBRARY_PATH"' >"$TMP/out"
	cat "$TMP/out"
	[ "$(cat "$TMP/out")" = "$DROPIN:/opt/a:/opt/b" ] || { fail "not in front"; return; }
	in_ns "$NS1" env -u LD_LIBRARY_PATH "$UROCE" run --dev eth0 -- sh -c 'echo "$LD_LIBRARY_PATH"' >"$TMP/out"
	[ "$(cat "$TMP/out")" = "$DROPIN" ] || { cat "$TMP/out"; fail "more than the folder"; }
}
# ld.so warns of nodes that a library lacks, and ends the program when a symbol of one is needed.
test_version_nodes() {
	local program
	for program in ibv_devices ibv_rc_pingpong ib_write_bw rping ucmatose rstream ucx_info fi_info; do
		without_run "$NS1" env LD_BIND_NOW=1 "$program" --no-such-option >"$TMP/out" 2>&1
		! grep -E 'no version information|symbol lookup error|version .* not found' "$TMP/out" || { fail "$program"; return; }
	done
}
# Which library each symbol of a handle comes from.
test_dlopen() {
	gcc -O2 -Wall -Wextra -Werror -o "$TMP/dlopen" "$here/src/dlopen.c" || return 1
	uroce_in "$NS1" -- "$TMP/dlopen" "$here/../abi/rdma-core-65" && without_run "$NS1" "$TMP/dlopen" "$here/../abi/rdma-core-65"
}
test_pyverbs() {
	local script='import pyverbs.device as d
		c = d.Context(name=d.get_device_list()[0].name.decode())
		print(c.query_gid(1, 0), c.query_gid_type(1, 0), len(c.query_gid_table(128)))
		import pyverbs.qp, pyverbs.cmid, pyverbs.mr'
	script=$(sed 's/^\t*//' <<<"$script")
	uroce_in "$NS1" -- "$PYTHON" -c "$script" >"$TMP/out" && without_run "$NS1" "$PYTHON" -c "$script" >>"$TMP/out" || return 1
	same_count 2 '^0000:0000:0000:0000:0000:ffff:0a4d:0001 1 [1-9]' "$TMP/out" # 1: RoCE v2, as the kernel's files would say
}

# --- files of the device ---

uroce_files() {
	local ns=$1
	shift
	uroce_in "$ns" --files "$@"
}
test_files() {
	local dir=/sys/class/infiniband/uroce0
	uroce_files "$NS1" -- sh -c "cd $dir/ports/1 && cat state link_layer gids/0 gid_attrs/types/0 gid_attrs/ndevs/0 ../../node_guid" >"$TMP/out" || return 1
	cat "$TMP/out"
	printf '4: ACTIVE\nEthernet\n0000:0000:0000:0000:0000:ffff:0a4d:0001\nRoCE v2\neth0\n' | diff - <(head -n 5 "$TMP/out") || return 1
	tail -n 1 "$TMP/out" | grep -Eqx '([0-9a-f]{4}:){3}[0-9a-f]{4}' || { fail "node_guid"; return; }
	uroce_files "$NS1" -- sh -c '[ -c /dev/infiniband/uverbs-uroce0 -a -w /dev/infiniband/uverbs-uroce0 ]' || { fail "no node"; return; }
	uroce_files "$NS1" -- cat /sys/class/net/eth0/mtu | grep -qx 1500 || { fail "the rest of /sys/class is gone"; return; }
	(umask 077 && uroce_files "$NS1" -- setpriv --reuid=65534 --regid=65534 --clear-groups cat $dir/fw_ver /sys/class/net/eth0/mtu) >"$TMP/out" ||
		{ fail "not for everybody"; return; }
	[ ! -e "$dir" ] && [ ! -e /dev/infiniband/uverbs-uroce0 ] || { fail "seen by others"; return; }
	! ls -d /tmp/uroce-?????? 2>/dev/null || fail "left over"
}
# Through a user namespace, as the user that he is; and where there may be none, a sentence.
test_files_without_privilege() {
	local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs timeout 20 "$UROCE" run --dev eth0 --files --)
	(as=("${nobody[@]:0:5}") && "${as[@]}" test -x "$UROCE") || nobody=(setpriv --bounding-set=-sys_admin "${nobody[@]:5}")
	in_ns "$NS1" "${nobody[@]}" sh -c 'cat /sys/class/infiniband/uroce0/ports/1/state && [ -c /dev/infiniband/uverbs-uroce0 ] && : >/dev/null && id -u' >"$TMP/out" ||
		{ cat "$TMP/out"; fail "not for nobody"; return; }
	cat "$TMP/out"
	grep -qx '4: ACTIVE' "$TMP/out" || return 1
	in_ns "$NS1" unshare --user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$0" run --dev eth0 --files -- true' "$UROCE" 2>"$TMP/err"
	local status=$?
	cat "$TMP/err"
	[ $status -eq 1 ] && grep -q "^uroce: --files cannot make a .*CAP_SYS_ADMIN or .*'docker run --device /dev/null:/dev/infiniband/uverbs-uroce0'" "$TMP/err"
}
# ucx_runs TRANSPORTS OPTIONS...: ucx_perftest between the namespaces.
ucx_runs() {
	local env=(env UCX_NET_DEVICES=uroce0:1 UCX_TLS="$1")
	shift
	serve_at 13337 "$NS1" "$TMP/server" --files -- "${env[@]}" ucx_perftest "$@" || return 1
	uroce_files "$NS2" -- "${env[@]}" ucx_perftest "$@" 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "client status $?"; return; }
	served "$TMP/server"
}
ucx() {
	ucx_runs "$@" || return 1
	grep '^Final:' "$TMP/client" || { cat "$TMP/client"; fail "no result"; }
}
test_ucx_info() {
	uroce_files "$NS1" -- ucx_info -d >"$TMP/out" || return 1
	sed -n '/domain: uroce0/,/domain: rdmacm/p' "$TMP/out" | head -n 20
	grep -q 'Transport: rc_verbs' "$TMP/out" && grep -q 'Transport: ud_verbs' "$TMP/out" && grep -q 'Device: uroce0:1' "$TMP/out" || fail "no verbs device"
}
test_ucx_perftest() {
	local t
	for t in tag_lat tag_bw ucp_put_bw ucp_get ucp_fadd; do
		ucx rc_verbs,ud_verbs -t $t -s 8 -n 200 -w 10 || { fail "$t"; return; }
	done
	ucx rc_verbs,ud_verbs -t tag_bw -s 300000 -n 20 -w 2
}
test_ucx_perftest_ud() { ucx ud_verbs -t tag_lat -s 500 -n 200 -w 10 && ucx ud_verbs -t tag_bw -s 20000 -n 50 -w 2; }

# pingpong OPTIONS...: fi_pingpong between the namespaces.
fi_pingpong_both() {
	serve_at 47592 "$NS1" "$TMP/server" -- fi_pingpong "$@" || return 1
	uroce_in "$NS2" -- fi_pingpong "$@" 10.77.0.1 >"$TMP/client" 2>&1 || { cat "$TMP/client" "$TMP/server"; fail "client"; return; }
	cat "$TMP/client"
	served "$TMP/server" && grep -Eq '=100 ' "$TMP/client" || fail "no result"
}
test_libfabric() {
	uroce_in "$NS1" -- fi_info -p verbs | grep -q 'domain: uroce0' || { fail "fi_info"; return; }
	fi_pingpong_both -p verbs -e dgram -I 100 && fi_pingpong_both -p 'verbs;ofi_rxd' -e rdm -I 100 -S 4096
}
# By itself ofi_rxm takes one completion and then, every 10 ms, looks for disconnects, with which it throws away the completions behind that one:
# on a busy machine fi_pingpong misses the last of its own messages.
test_libfabric_connected() {
	local -x FI_OFI_RXM_COMP_PER_PROGRESS=64 FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000000
	fi_pingpong_both -p verbs -e msg -I 100 -S 65536 && fi_pingpong_both -p 'verbs;ofi_rxm' -e rdm -I 100 -S 65536
}
# XRC QPs of ids of RDMA_PS_TCP.
test_libfabric_xrc() {
	local -x FI_VERBS_PREFER_XRC=1 FI_OFI_RXM_USE_SRX=1 FI_OFI_RXM_COMP_PER_PROGRESS=64 FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000000
	fi_pingpong_both -p 'verbs;ofi_rxm' -e rdm -I 100 -S 65536
}

# What rdma-core 45 to 65 brought: a line for each node, as a version script wants it, with its functions.
newer_functions() {
	grep -E '^(IBVERBS_(1.1[5-9]|PRIVATE_)|RDMACM_1.[4-9])' "$here/../abi/rdma-core-65" |
		awk '{ node = $1; $1 = ""; of[node] = of[node] $0 } END { for (node in of) print node of[node] }'
}
# stand_in NAME: a library to link with that has what such lines on standard input say.
stand_in() {
	local d=$TMP/newer lib=$1 node functions
	: >"$d/$lib.map"
	while read -r node functions; do
		printf '%s { %s; };\n' "$node" "${functions// /; }" >>"$d/$lib.map"
		printf 'void %s(void) {}\n' $functions
	done >"$d/$lib.c"
	gcc -shared -fPIC -o "$d/lib$lib.so" "$d/$lib.c" -Wl,-soname,"lib$lib.so.1" -Wl,--version-script="$d/$lib.map"
}
# A program that was built against the newest rdma-core asks, when it starts, for version nodes and functions that the installed one does not have.
test_dropin_newer_program() {
	local d=$TMP/newer
	mkdir -p "$d"
	{ echo IBVERBS_1.1 ibv_get_device_list ibv_get_device_name ibv_open_device; newer_functions | grep '^IB'; } | stand_in ibverbs || return 1
	{ echo RDMACM_1.0 rdma_create_event_channel; newer_functions | grep '^RDMACM'; } | stand_in rdmacm || return 1
	{
		newer_functions | cut -d' ' -f2- | tr ' ' '\n' | grep -v ibv_query_port_speed | sed 's/.*/void &(void);/'
		echo 'void (*const wanted[])(void) = {'
		newer_functions | cut -d' ' -f2- | tr ' ' '\n' | grep -v ibv_query_port_speed | sed 's/$/,/'
		cat <<-'C'
			};
			#include <stdint.h>
			#include <stdio.h>
			void **ibv_get_device_list(int *), *ibv_open_device(void *), *rdma_create_event_channel(void);
			const char *ibv_get_device_name(void *);
			int ibv_query_port_speed(void *, uint32_t, uint64_t *);
			int main(void)
			{
				void **list = ibv_get_device_list(NULL), *ctx = list && *list ? ibv_open_device(*list) : NULL;
				uint64_t speed = 0;
				int err = ctx ? ibv_query_port_speed(ctx, 1, &speed) : -1;

				printf("%s %d %d %d\n", ctx ? ibv_get_device_name(*list) : "none", rdma_create_event_channel() && wanted[0], err, (int)speed);
				return 0;
			}
		C
	} >"$d/main.c"
	gcc -o "$d/main" "$d/main.c" -L"$d" -libverbs -lrdmacm -Wl,-z,now || return 1
	[ "$(objdump -p "$d/main" | grep -cE 'IBVERBS_1.1[5-8]|RDMACM_1.4|PRIVATE_65')" -eq 6 ] || { fail "the program does not ask for the new nodes"; return; }
	# 10 Gbit/s, as veth says.
	without_run "$NS1" "$d/main" >"$TMP/out" 2>&1
	grep -qx 'uroce0 1 0 100' "$TMP/out" || { cat "$TMP/out"; fail "it does not run"; return; }
	uroce_in "$NS1" -- "$d/main" >"$TMP/out" 2>&1
	grep -qx 'uroce0 1 0 100' "$TMP/out" || { cat "$TMP/out"; fail "it does not run under uroce run"; }
}
