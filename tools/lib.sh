# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the scripts share: calm logging, packages, building, namespaces, and cleaning up on every exit path.
#
# Source it after `set -u`. It installs an EXIT trap; add to it with on_exit.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
JOBS=${JOBS:-2}
LOG=${LOG:-/dev/null}

BUILD_PACKAGES=(gcc libc6-dev pkg-config meson ninja-build libdpdk-dev libibverbs-dev librdmacm-dev libmnl-dev libisal-dev libpcap-dev
	libnuma-dev libjansson-dev libncurses-dev libcunit1-dev)
RELEASE_PACKAGES=(dpkg-dev systemtap-sdt-dev)
RUN_PACKAGES=(iproute2 procps rdmacm-utils ibverbs-utils perftest)
# The guest with rdma_rxe: qemu, what build_guest makes an image with, and the programs that it puts in.
INTEROP_PACKAGES=(qemu-system-x86 tcpdump python3 busybox-static cpio xz-utils zstd kmod iproute2 ethtool dash rdmacm-utils ibverbs-utils ibverbs-providers
	perftest)
CHECK_PACKAGES=(clang clang-format clang-tidy cppcheck git libclang-rt-14-dev ethtool mandoc nftables tshark chromium-headless-shell python3 python3-pyverbs binutils ucx-utils libfabric-bin iperf strace)

say() { printf '%s\n' "$*"; }
die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# show_help: the comment that the script in tools/ begins with, behind its license line.
show_help() { awk 'NR > 3 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$ROOT/tools/$(basename "$0")"; }

# --- cleaning up ---

EXIT_COMMANDS=()
on_exit() { EXIT_COMMANDS=("$1" "${EXIT_COMMANDS[@]}"); }
run_exit_commands() {
	local status=$? c
	trap - EXIT INT TERM HUP
	for c in "${EXIT_COMMANDS[@]}"; do
		eval "$c" >>"$LOG" 2>&1 </dev/null
	done
	exit "$status"
}
trap run_exit_commands EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Stops one process that this script started, if it still runs, and waits for it; `timeout` passes the signal on.
stop() {
	local pid=$1 i
	jobs -p | grep -qx "$pid" || return 0
	kill "$pid" 2>/dev/null || return 0
	for i in $(seq 50); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	return 0
}

# --- doing things quietly ---

# step TEXT COMMAND...: one line; what the command says goes to $LOG and is shown when it fails.
step() {
	local text=$1 start=$SECONDS mark
	shift
	printf '%s ... ' "$text"
	mark=$(wc -l <"$LOG")
	printf '\n== %s: %s\n' "$text" "$*" >>"$LOG"
	if "$@" >>"$LOG" 2>&1 </dev/null; then
		printf 'done (%d s)\n' $((SECONDS - start))
		return 0
	fi
	printf 'failed\n'
	tail -n +$((mark + 3)) "$LOG" | tail -n 40 >&2
	say "The whole log is in $LOG." >&2
	return 1
}

# Status 77 is what Meson takes for a test that was skipped.
need_root() {
	[ "$(id -u)" = 0 ] || { say "$(basename "$0"): skipped: network namespaces and packet sockets need root: run it with sudo" >&2; exit 77; }
}

install_packages() {
	local p missing=()
	for p in "$@"; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "these packages are missing: ${missing[*]}; install them with apt-get as root"
	export DEBIAN_FRONTEND=noninteractive
	step "updating the package lists" timeout 300 apt-get -q update || return 1
	step "installing ${#missing[@]} packages" timeout 900 apt-get -q -y install --no-install-recommends "${missing[@]}"
}

# build_tree DIR [MESON OPTIONS...]: configures, where that has not been done with these options, then builds all or what $TARGETS says.
# $NICE: how much it gives way to others.
build_tree() {
	local dir=$1 how=(setup "$1" "$ROOT")
	shift
	[ ! -f "$dir/build.ninja" ] || how=(configure "$dir")
	if [ "${how[0]}" = setup ] || [ $# -gt 0 ]; then
		step "configuring $(basename "$dir")" meson "${how[@]}" "$@" || return 1
	fi
	# shellcheck disable=SC2086
	step "building $(basename "$dir")" nice -n "${NICE:-0}" ninja -j"$JOBS" -C "$dir" ${TARGETS:-}
}

# build_release DIR [OPTION=VALUE...] [-DOPTION=VALUE...]: as build_tree, in the way in which packages are built (tools/release.ini), but for these options:
# those of the project, then Meson's own. Begins anew when that has changed. The project's stand in a file, too: when ninja configures once more, those of
# files win over those of a command line (Meson 1.0).
build_release() {
	local dir=$1 flags way option project=() own=()
	shift
	for option; do
		case $option in
		-D*) own+=("$option") ;;
		*) project+=("$option") ;;
		esac
	done
	flags=$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --export=sh) || return 1
	way=$(printf '%s\n' "$flags" "$@" | cat - "$ROOT/tools/release.ini")
	if [ "$way" != "$(cat "$dir/way" 2>/dev/null)" ]; then
		rm -rf "$dir"
		mkdir -p "$dir" && printf '%s\n' '[project options]' "${project[@]}" >"$dir/options.ini" && printf '%s\n' "$way" >"$dir/way" || return 1
	fi
	set --
	[ -f "$dir/build.ninja" ] || set -- "${own[@]}" --native-file "$ROOT/tools/release.ini" --native-file "$dir/options.ini" --prefix "$dir/installed"
	(
		eval "$flags"
		build_tree "$dir" "$@"
	)
}

# install_release DIR [OPTION=VALUE...] [-DOPTION=VALUE...]: what users get: a release, stripped, in DIR/installed.
install_release() { build_release "$@" && rm -rf "$1/installed" && step "installing $(basename "$1")" meson install -C "$1" --no-rebuild --strip --quiet; }

# take_installation TREE: what is tested: the prefix of an installation, or a build directory, which is installed below $TMP. Sets $PREFIX, $UROCE, the
# command, and $LIB, the folder of liburoce.so.
take_installation() {
	PREFIX=$("$ROOT/test/installation" "$1" "$TMP/tree") || exit 1
	UROCE=$PREFIX/bin/uroce
	LIB=$(dirname "$(find "$PREFIX" -name liburoce.so)")
}

# --- two namespaces joined by a cable ---

# own_mounts SCRIPT ARGUMENTS...: starts the script again with a /dev/shm and a /run/dpdk of its own, where what is left in the end is its own.
own_mounts() {
	[ -z "${UROCE_TEST_MOUNTS:-}" ] && [ "$(id -u)" = 0 ] || return 0
	UROCE_TEST_MOUNTS=yes exec unshare --mount bash -c \
		'mkdir -p /run/dpdk && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /run/dpdk && exec "$0" "$@"' "$@"
}

# make_cable [MTU]: namespaces $NS1 (10.77.0.1, fd77::1) and $NS2 (10.77.0.2, fd77::2), each with an interface eth0.
# Both know the hosts uroce-1 and uroce-2 by name.
make_cable() {
	local mtu=${1:-1500} i ns
	NS1=uroce-$$-1
	NS2=uroce-$$-2
	for i in 1 2; do
		ns=uroce-$$-$i
		on_exit "ip netns del $ns; rm -rf /etc/netns/$ns; rmdir --ignore-fail-on-non-empty /etc/netns"
		ip netns add "$ns" || return 1
		mkdir -p "/etc/netns/$ns"
		printf '127.0.0.1 localhost\n10.77.0.1 uroce-1\n10.77.0.2 uroce-2\nfd77::1 uroce6-1\nfd77::2 uroce6-2\n' >"/etc/netns/$ns/hosts"
	done
	ip link add name eth0 netns "$NS1" mtu "$mtu" type veth peer name eth0 netns "$NS2" mtu "$mtu" || return 1
	for i in 1 2; do
		ns=uroce-$$-$i
		ip -n "$ns" link set lo up
		bring_up "$ns" eth0 77 $i
	done
	wait_carrier "$NS1" eth0 && wait_carrier "$NS2" eth0
}

# bring_up NS INTERFACE NETWORK HOST: an end of a cable, with the addresses 10.NETWORK.0.HOST and fdNETWORK::HOST.
bring_up() {
	in_ns "$1" sysctl -qw "net.ipv6.conf.$2.keep_addr_on_down=1"
	ip -n "$1" link set "$2" up
	ip -n "$1" addr add "10.$3.0.$4/24" dev "$2"
	ip -n "$1" addr add "fd$3::$4/64" dev "$2" nodad
}

# make_second_cable: another between the two: eth1, with 10.78.0.1, fd78::1 and 10.78.0.2, fd78::2; in place of the one that is left.
make_second_cable() {
	local i=0 ns
	remove_second_cable
	ip link add name eth1 netns "$NS1" type veth peer name eth1 netns "$NS2" || return 1
	for ns in "$NS1" "$NS2"; do
		i=$((i + 1))
		bring_up "$ns" eth1 78 $i
	done
	wait_carrier "$NS1" eth1 && wait_carrier "$NS2" eth1
}
remove_second_cable() { ip -n "$NS1" link del eth1 2>/dev/null; }

# wait_carrier NS INTERFACE: until the kernel has noticed that it has a carrier, which may take it a second: until then it is shown without.
wait_carrier() {
	local i
	for i in $(seq 200); do
		[ -z "$(ip -n "$1" link show dev "$2" | grep 'state UP')" ] || return 0
		sleep 0.05
	done
	return 1
}

# share_host: both ends are processes of the first host from now on, whose eth0 has the addresses of both; the cable's other end keeps the carrier.
share_host() {
	ip -n "$NS2" addr flush dev eth0 || return 1
	ip -n "$NS1" addr add 10.77.0.2/24 dev eth0 && ip -n "$NS1" addr add fd77::2/64 dev eth0 nodad || return 1
	NS2=$NS1
}

# in_ns NS COMMAND...: in the foreground. In the background `ip netns exec` itself makes $! the process and not a shell.
in_ns() { ip netns exec "$@"; }

# Waits until uroce has started in a namespace: it then holds UDP port 4791 against the kernel's ICMP errors. For programs that listen on no
# port of the RDMA CM; wait_listening is surer.
wait_started() {
	local ns=$1 pid=$2 i
	for i in $(seq 100); do
		if [ -n "$(in_ns "$ns" ss -Hulan 'sport = :4791' 2>/dev/null)" ]; then
			sleep 0.3
			return 0
		fi
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# wait_listening NS PORT [PID [OPTIONS]]: waits until a process under uroce listens on that port, of any port space of the RDMA CM, as
# 'uroce info' shows it. Gives up after 30 seconds, or once process PID has ended, and says what it saw. A look that fails says nothing of the
# process: on a busy machine it may take seconds, and an interface may be a moment without its carrier. NS '-' is the namespace of this
# script; OPTIONS name the device in place of --dev eth0.
wait_listening() {
	local ns=$1 port=$2 pid=${3:-} uroce=$UROCE enter=() left looks=0 shown status end=$((SECONDS + 30))
	local why='30 seconds have passed'
	shift $(($# < 3 ? $# : 3))
	[ $# -gt 0 ] || set -- --dev eth0
	[ "$ns" = - ] || enter=(in_ns "$ns")
	while left=$((end - SECONDS)) && [ $left -gt 0 ]; do
		looks=$((looks + 1))
		shown=$("${enter[@]}" timeout $left "$uroce" info "$@" 2>&1)
		status=$?
		! grep -Eq "^ +listens on [a-z]+ .*:$port\$" <<<"$shown" || return 0
		[ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || { why="process $pid has ended" && break; }
		sleep 0.02
	done
	{
		printf "nobody listens on port %s, and %s; look %d with 'uroce info' ended with status %d and showed:\n%s\n" \
			"$port" "$why" "$looks" "$status" "$shown"
		[ -z "$pid" ] || timeout 5 ps -o pid,stat,etimes,time,wchan:24,args --pid "$pid" --ppid "$pid"
		uptime
	} >&2
	return 1
}
