# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# DPDK is in a file of its own, which only those programs load that ask for a port of DPDK's.

MODULE=uroce/liburoce-dpdk.so
DPDK_SAYS='Detected CPU lcores' # rte_eal_init does, and no other

# copy_installation: a copy whose files may be changed; sets $copy, and $lib, the folder of its liburoce.so. The programs of these tests then run from there.
copy_installation() {
	copy=$TMP/copy
	rm -rf "$copy"
	cp -a "$PREFIX" "$copy" && lib=$copy${LIB#"$PREFIX"}
}

# refused PATTERN OPTIONS...: a program that needs DPDK's port ends, because of what matches the pattern: one sentence, which the command and the library
# say alike.
refused() {
	local said=$1
	shift
	! in_ns "$NS1" timeout 20 "$copy/bin/uroce" run "$@" -- rping -c -C 1 -a 10.77.0.2 </dev/null >"$TMP/out" 2>&1 || { fail "$* works"; return; }
	grep -qE "^uroce: .*$said" "$TMP/out" || { cat "$TMP/out"; fail "'$said' is not said of $*"; }
}

# What a program loads that has no use for DPDK, and what that costs in memory: 1.5 MB at most.
test_module_is_not_loaded() {
	local lib=$LIB/liburoce.so with without
	! grep -aq "$DPDK_SAYS" "$lib" || { fail "liburoce.so has functions of DPDK"; return; }
	! readelf -d "$lib" | grep -E 'NEEDED.*lib(numa|bsd|dpdk|rte)' || { fail "liburoce.so needs what DPDK needs"; return; }
	grep -aq "$DPDK_SAYS" "$LIB/$MODULE" || { fail "DPDK is nowhere"; return; }
	[ "$(nm -D --defined-only "$LIB/$MODULE" | awk '{ print $3 }')" = uroce_dpdk_module ] || { fail "the module exports more than its table"; return; }
	uroce_in "$NS1" --port udp -- cat /proc/self/maps >"$TMP/out" && grep -q '/liburoce\.so' "$TMP/out" && ! grep "$MODULE" "$TMP/out" || { fail "loaded"; return; }
	uroce_in "$NS1" --port udp -- grep VmRSS /proc/self/status >"$TMP/with" && grep VmRSS /proc/self/status >"$TMP/without" || return 1
	with=$(awk '{ print $2 }' "$TMP/with") without=$(awk '{ print $2 }' "$TMP/without")
	echo "$without KiB without liburoce.so, $with KiB with it"
	[ $((with - without)) -le 1536 ] || fail "$((with - without)) KiB more memory"
}
# Destructors of the module's might run before liburoce ends the engine: their order is not defined. One entry is the compiler's.
test_module_has_no_destructors() {
	local bytes
	bytes=$(readelf -SW "$LIB/$MODULE" | sed -n 's/.* \.fini_array *FINI_ARRAY *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1/p')
	[ -n "$bytes" ] && [ $((16#$bytes)) -le 8 ] || fail "a .fini_array of $bytes bytes"
}

test_module_missing() {
	copy_installation && rm "$lib/$MODULE" || return 1
	local said="DPDK's part of uroce cannot be loaded \($lib/$MODULE: cannot open shared object file: No such file or directory\): install all of uroce again"
	refused "$said" --dev eth0 --port dpdk && refused "$said" --vdev net_null0 --ip 10.88.0.1/24 || return 1
	[ "$(grep -c "DPDK's part" "$TMP/out")" -eq 1 ] || { cat "$TMP/out"; fail "said more than once"; return; }
	local UROCE=$copy/bin/uroce
	in_ns "$NS1" timeout 60 "$UROCE" doctor --dev eth0 >"$TMP/out" 2>&1
	tr -s ' \n' ' ' <"$TMP/out" | grep -Eq "port dpdk: $said" && grep -q 'available ports: udp, packet;' "$TMP/out" || { cat "$TMP/out"; fail "what the doctor says"; return; }
	ping_both -V -C 5 || return 1
	UROCE_PORT=packet ping_both -V -C 5
}

# interface_of MODULE: which build of liburoce.so it goes with.
interface_of() {
	python3 -c 'import ctypes, sys
print((ctypes.c_char * 96).in_dll(ctypes.CDLL(sys.argv[1]), "uroce_dpdk_module")[32:96].split(b"\0")[0].decode())' "$1"
}
# module_of C-TEXT: instead of the module, one that has that in it.
module_of() { printf '%s\n' "$1" | gcc -shared -fPIC -o "$lib/$MODULE" -x c -; }
test_module_of_another_build() {
	local path version dpdk=(--dev eth0 --port dpdk)
	copy_installation || return 1
	path=$lib/$MODULE
	version=$("$UROCE" --version | cut -d' ' -f2)
	module_of "const struct { char version[32], interface[64]; void *functions[2]; } uroce_dpdk_module = { \"0.0.1\", \"\" };" || return 1
	refused "'$path' is of uroce 0\.0\.1, and liburoce\.so of $version: install both from one build" "${dpdk[@]}" || return 1
	module_of "const struct { char version[32], interface[64]; void *functions[2]; } uroce_dpdk_module = { \"$version\", \"0123456789abcdef\" };" || return 1
	refused "'$path' and liburoce\.so are of different builds of uroce $version: install both from one build" "${dpdk[@]}" || return 1
	module_of 'int something_else;' || return 1
	refused "'$path' is not the part of uroce that should be there: install all of uroce again" "${dpdk[@]}" || return 1
	echo 'no object at all' >"$path"
	refused "DPDK's part of uroce cannot be loaded \($path: .*\): install all of uroce again" "${dpdk[@]}" || return 1
	cp "$LIB/$MODULE" "$path" && in_ns "$NS1" timeout 20 "$copy/bin/uroce" run "${dpdk[@]}" -- ibv_devinfo | grep -q PORT_ACTIVE || fail "the real one"
}

# A child that is forked while its parent loads the module, or opens a port, is told so and does not wait for what never comes. This module forks itself.
test_module_and_a_fork() {
	local version interface where
	interface=$(interface_of "$LIB/$MODULE") || return 1
	version=$("$UROCE" --version | cut -d' ' -f2)
	copy_installation && module_of "
		#include <stdio.h>
		#include <unistd.h>
		int uroce_start(void);
		const char *uroce_error(void);
		static void fork_and_start(const char *where)
		{
			if (fork())
				return;
			printf(\"%s: %d, %s\\n\", where, uroce_start() != 0, uroce_error());
			fflush(stdout);
			_exit(0);
		}
		__attribute__((constructor)) static void loaded(void) { fork_and_start(\"loading\"); }
		static void attach(const void *host) { (void)host; }
		static int open(const void *cfg, void **out, char *err, size_t len)
		{
			fork_and_start(\"opening\");
			snprintf(err, len, \"there is no port\");
			return 5;
		}
		const struct { char version[32], interface[64]; void *functions[2]; } uroce_dpdk_module = { \"$version\", \"$interface\", { attach, open } };" || return 1
	in_ns "$NS1" timeout 20 "$copy/bin/uroce" run --dev eth0 --port dpdk -- rping -s -C 1 </dev/null >"$TMP/out" 2>&1
	for where in loading opening; do
		until_says "$TMP/out" "^$where: 1, this process was forked while its parent was starting DPDK, .*: exec after fork\$" || return 1
	done
	grep -q '^uroce: there is no port' "$TMP/out" || { cat "$TMP/out"; fail "the parent"; }
}

# A program that starts a port of DPDK's, in another working directory than the one in which it was started.
starter() {
	cat >"$TMP/starter.c" <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		#include <uroce/uroce.h>
		int main(int argc, char **argv)
		{
			if (argc != 2 || chdir(argv[1]) || uroce_config("vdev", "net_null0") || uroce_config("ip", "10.88.0.1/24"))
				return 2;
			if (uroce_start())
				fprintf(stderr, "%s\n", uroce_error());
			else
				puts("started");
			return 0;
		}
	END
	gcc -Wall -Werror -I"$PREFIX/include" -o "$1" "$TMP/starter.c" "${@:2}"
}
# By a link from elsewhere, and by a relative name.
test_module_beside_the_library() {
	copy_installation && mkdir -p "$TMP/elsewhere" && ln -sf "$lib/liburoce.so.1" "$TMP/elsewhere/liburoce.so.1" || return 1
	starter "$TMP/starter" "$lib/liburoce.so" || return 1
	[ "$(LD_LIBRARY_PATH=$TMP/elsewhere timeout 20 "$TMP/starter" / 2>&1)" = started ] || { fail "by a link"; return; }
	[ "$(cd "$lib/.." && LD_LIBRARY_PATH=$(basename "$lib") timeout 20 "$TMP/starter" / 2>&1)" = started ] || fail "by a relative name"
}

# A CPU that lacks what DPDK is compiled for: a sentence, and no SIGILL. With one that has it the emulator says something else.
test_module_on_an_old_cpu() {
	[ "$(uname -m)" = x86_64 ] || { echo "this is not x86"; return "$SKIPPED"; }
	needs qemu-x86_64 qemu-user || return
	starter "$TMP/starter" "$LIB/liburoce.so" -Wl,-rpath,"$LIB" || return 1
	timeout 60 qemu-x86_64 -cpu core2duo "$TMP/starter" / >"$TMP/out" 2>&1 || { cat "$TMP/out"; fail "status $?"; return; }
	grep -q "DPDK's part of uroce is compiled for CPUs with .*, which this one lacks: choose another port" "$TMP/out" || { cat "$TMP/out"; fail "core2duo"; return; }
	timeout 60 qemu-x86_64 -cpu Haswell "$TMP/starter" / >"$TMP/out" 2>&1
	! grep -q "which this one lacks" "$TMP/out" || { cat "$TMP/out"; fail Haswell; }
}

# A set-user-ID program loads nothing that its caller has put there, wherever liburoce.so may lie.
test_module_of_a_set_user_id_program() {
	local lib=$TMP/sticky program=$TMP/suid-starter
	[ ${#as[@]} -eq 0 ] || return 0 # nobody is us
	rm -rf "$lib"
	mkdir -m 1777 "$lib"
	cp -L "$LIB/liburoce.so" "$lib/liburoce.so.1"
	starter "$program" "$lib/liburoce.so.1" -Wl,-rpath,"$lib" && chmod 4755 "$program" || return 1
	chmod 755 "$TMP" "$lib/liburoce.so.1"
	starts() { (cd / && "${as_nobody[@]:0:4}" timeout 20 "$program" / >"$TMP/out" 2>&1); }
	printf '#include <fcntl.h>\n__attribute__((constructor)) static void loaded(void) { (void)!open("%s/loaded", O_CREAT, 0600); }\n' "$lib" >"$TMP/loaded.c"
	gcc -shared -fPIC -o "$TMP/loaded.so" "$TMP/loaded.c" || return 1
	"${as_nobody[@]}" sh -c "mkdir $lib/uroce && cp $TMP/loaded.so $lib/$MODULE" || return 1
	starts
	[ ! -e "$lib/loaded" ] && grep -q "is not loaded into a program with more rights than its caller, because '$lib/uroce'" "$TMP/out" ||
		{ cat "$TMP/out"; fail "what its caller has put there was loaded"; return; }
	rm -rf "$lib/uroce" && mkdir -m 755 "$lib/uroce" && cp "$LIB/$MODULE" "$lib/uroce" || return 1
	starts
	[ "$(cat "$TMP/out")" = started ] || { cat "$TMP/out"; fail "its own module is not loaded"; return; }
	chmod 777 "$lib/uroce"
	starts
	grep -q "or others may write to it: give it to root, with mode 755" "$TMP/out" || { cat "$TMP/out"; fail "a folder to which all may write"; }
}
