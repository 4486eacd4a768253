# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs built with a sanitizer, or run under valgrind: they do what they did, and their mistakes are found as without uroce.

# found COMMAND STATUS TEXT MISTAKE: the program makes that mistake.
found() {
	# shellcheck disable=SC2086 # words
	uroce_in "$NS1" -- $1 "$TMP/sanitized" "$4" >"$TMP/out" 2>&1
	[ $? -eq "$2" ] && grep -q "$3" "$TMP/out" || { cat "$TMP/out"; fail "$4: not status $2 and '$3'"; }
}

# Each way in which the runtime comes into a program: a library of its own, which asks whether it is the first, or a part of the program.
by_address_sanitizer() {
	local ASAN_OPTIONS=exitcode=77 # the user's options count as well
	export ASAN_OPTIONS
	"$@" -g -fsanitize=address -o "$TMP/sanitized" "$here/src/sanitized.c" -libverbs || { fail "$* builds no program"; return; }
	echo '"$@"' >"$TMP/started" # by another program
	found '' 0 '^done$' none && found '' 77 heap-buffer-overflow overflow && found '' 77 'SEGV on unknown address' null &&
		found '' 77 'detected memory leaks' leak && found '' 77 heap-use-after-free freed && found "sh $TMP/started" 0 '^done$' none
}
test_sanitized_by_gcc() { by_address_sanitizer gcc; }
test_sanitized_by_clang() { needs clang clang && by_address_sanitizer clang; }
test_sanitized_by_clang_shared() {
	local runtime
	needs clang clang || return
	runtime=$(clang -print-file-name="libclang_rt.asan-$(uname -m).so")
	[ -e "$runtime" ] || { echo "clang has no shared runtime here"; return "$SKIPPED"; }
	by_address_sanitizer clang -shared-libasan "-Wl,-rpath,$(dirname "$runtime")"
}
# What the page says of the others. Newer kernels randomize the memory that libtsan has for itself: setarch -R.
test_sanitized_for_threads() {
	gcc -g -fsanitize=thread -o "$TMP/sanitized" "$here/src/sanitized.c" -libverbs || return 1
	TSAN_OPTIONS=ignore_noninstrumented_modules=1 found 'setarch -R' 0 '^done$' none
}
test_sanitized_for_undefined() {
	gcc -g -fsanitize=undefined -o "$TMP/sanitized" "$here/src/sanitized.c" -libverbs && found '' 0 '^done$' none
}
test_sanitized_under_valgrind() {
	needs valgrind valgrind || return
	gcc -g -o "$TMP/sanitized" "$here/src/sanitized.c" -libverbs || return 1
	found 'valgrind -q --error-exitcode=9 --leak-check=full' 0 '^done$' none && found 'valgrind -q --error-exitcode=9' 9 'Invalid write' freed
}
