# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Roots of Debian releases, for packages: made with debootstrap from the mirror that this machine has its own packages from. Sourced after
# tools/lib.sh.

ROOT_PACKAGES=(debootstrap)
ROOTS=${ROOTS:-$ROOT/build-roots} # kept between runs

# The mirror of this machine, or what UROCE_MIRROR names.
mirror() {
	local m=${UROCE_MIRROR:-}
	# shellcheck disable=SC2016
	[ -n "$m" ] || m=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' | head -n 1)
	[ -n "$m" ] || die "apt-get names no mirror of Debian: name one in UROCE_MIRROR"
	printf '%s\n' "$m"
}

# base_root RELEASE: the archive of a minimal root, made once.
base_root() {
	local tar=$ROOTS/$1.tar new
	[ ! -f "$tar" ] || return 0
	mkdir -p "$ROOTS"
	new=$(mktemp -d "$ROOTS/new-XXXXXX") || return 1
	on_exit "rm -rf --one-file-system $new"
	step "fetching a root of $1" timeout 900 debootstrap --variant=minbase "$1" "$new/root" "$(mirror)" &&
		tar -C "$new/root" -cf "$tar.part" . && mv "$tar.part" "$tar"
}

# unpack_root RELEASE DIR
unpack_root() {
	base_root "$1" && mkdir -p "$2" && tar -C "$2" -xf "$ROOTS/$1.tar" && cp /etc/resolv.conf "$2/etc/resolv.conf"
}

# What `unshare` runs to enter a root: DIR COMMAND...
# shellcheck disable=SC2016
ENTER_ROOT='mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && mount -t tmpfs tmpfs "$0/dev/shm" &&
	exec env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} chroot "$0" "$@"'

# in_root DIR COMMAND...: in mounts and processes of its own, of which nothing is left when it ends.
in_root() { unshare --mount --pid --fork --kill-child bash -c "$ENTER_ROOT" "$@"; }

# put_sources DIR: what git would know of this tree, with the times of its files.
put_sources() {
	mkdir -p "$1" && git -C "$ROOT" ls-files -z --cached --others --exclude-standard |
		(cd "$ROOT" && xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' -) |
		tar -C "$ROOT" --null -T - -cf - | tar -C "$1" -xf -
}
