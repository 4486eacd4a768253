# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Processes that share a host and do not trust one another: other users, containers, processes that are stopped (doc/security.md).

as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
# What a user can see of the sockets that have names with uroce.
names_of() { in_ns "$1" cat /proc/net/unix | grep -o '@uroce-.*'; }

# Another user finds nothing to write to, no name that takes anything, and nobody who hands anything over.
test_trust_no_way_in() {
	local py='
import re, socket, sys
names = set(re.findall(r"@(uroce-\S+)", open("/proc/net/unix").read()))
said = taken = 0
for name in names:
    d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        d.sendto(b"x", "\0" + name)
        taken += 1
    except OSError:
        pass
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    try:
        s.connect("\0" + name)
        s.send(bytes.fromhex("00080065636f7275") + bytes(8))
        said += len(s.recvmsg(100, 100)[0])
    except OSError:
        pass
print(f"{len(names)} names, {taken} took a datagram, {said} bytes came back")
sys.exit(len(names) < 2 or taken or said)'
	[ ${#as[@]} -eq 0 ] || return 0 # nobody is us
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	find /dev/shm /run/dpdk -mindepth 1 -name '*uroce*' | grep . && { fail "files"; return; }
	in_ns "$NS1" "${as_nobody[@]}" /usr/bin/python3 -c "$py" || { fail "somebody listens to strangers"; return; }
	uroce_in "$NS2" -- rping -c -C 3 -a 10.77.0.1 || { cat "$TMP/server"; fail "afterwards"; }
}

# Whoever has the port gets the packets, whatever the port is that we take them from.
test_trust_port_is_anothers() {
	local py='import socket, time; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(("::", 4791)); print("ready", flush=True); time.sleep(60)'
	ip netns exec "$NS1" "${as_nobody[@]}" /usr/bin/python3 -c "$py" >"$TMP/holder" &
	servers+=("$!")
	on_exit "stop $!"
	for _ in $(seq 100); do [ ! -s "$TMP/holder" ] || break; sleep 0.05; done
	UROCE_PORT=udp UROCE_LOG=error uroce_in "$NS1" -- rping -s -C 1 >"$TMP/out" 2>&1 && { fail "it started"; return; }
	local whose="another user"
	[ ${#as[@]} -eq 0 ] || whose="another process of this user"
	grep -q "UDP port 4791 .* belongs to $whose" "$TMP/out" || { cat "$TMP/out"; fail "no reason"; return; }
	[ ${#as[@]} -eq 0 ] || return 0 # no other kind of port is available
	UROCE_PORT=packet UROCE_LOG=error background "$NS1" "$TMP/server" -- rping -s -C 3
	wait_listening "$NS1" "$RPING" "$server" || { cat "$TMP/server"; return 1; }
	UROCE_PORT=packet uroce_in "$NS2" -- rping -c -C 3 -a 10.77.0.1 && served "$TMP/server" || return 1
	grep -q 'UDP port 4791 belongs to a process of user 65534, who can read' "$TMP/server" || { cat "$TMP/server"; fail "no warning"; }
}

# Two users on one interface: a slot each, and each one's listener is reached, wherever the request is looked at.
test_trust_two_users() {
	local py='import re, sys; a = [int(s) for s in re.findall(r"slot (\d+)", sys.stdin.read())]; sys.exit(len(a) != 2 or a[0] == a[1])'
	[ ${#as[@]} -eq 0 ] || return 0 # there is but one
	chmod 755 "$TMP"
	as=("${as_nobody[@]}")
	UROCE_PORT=udp background "$NS1" "$TMP/server" -- rping -s -C 3
	as=()
	servers_of_nobody=$server
	wait_listening "$NS1" "$RPING" "$server" || { cat "$TMP/server"; return 1; }
	UROCE_PORT=packet background "$NS1" "$TMP/server2" -- rping -s -C 3 -p 7204
	wait_listening "$NS1" 7204 "$server" || { cat "$TMP/server2"; return 1; }
	in_ns "$NS1" "$UROCE" info --dev eth0 >"$TMP/out" && python3 -c "$py" <"$TMP/out" || { cat "$TMP/out"; fail "slots"; return; }
	in_ns "$NS1" "${as_nobody[@]}" "$UROCE" info --dev eth0 | grep -q 'of user 0$' || { fail "what nobody sees"; return; }
	UROCE_PORT=packet uroce_in "$NS1" -- rping -s -C 1 >"$TMP/out" 2>&1 && { fail "two listen on one port"; return; }
	uroce_in "$NS2" -- rping -c -C 3 -p 7204 -a 10.77.0.1 || { cat "$TMP/server2"; fail "root's"; return; }
	uroce_in "$NS2" -- rping -c -C 3 -a 10.77.0.1 || { cat "$TMP/server"; fail "nobody's"; return; }
	served "$TMP/server2" || return 1
	server=$servers_of_nobody
	served "$TMP/server"
}

# Where another user has the port, one has all that both ends on one host need in a network namespace of one's own, as doc/debugging.md says.
test_trust_own_namespace() {
	local as=("${as[@]}") UROCE=$UROCE
	become_nobody
	"${as[@]}" unshare -Urn true 2>/dev/null || { echo "user namespaces are not allowed here"; return "$SKIPPED"; }
	ip netns exec "$NS1" "$UROCE" run --dev lo -- rping -s -P >"$TMP/server" 2>&1 </dev/null &
	servers+=("$!")
	wait_listening "$NS1" "$RPING" "$!" --dev lo || { cat "$TMP/server"; return 1; }
	in_ns "$NS1" timeout 20 "${as[@]}" "$UROCE" run --dev lo -- rping -s -C 1 >"$TMP/out" 2>&1 </dev/null && { fail "two users have one port"; return; }
	cat >"$TMP/within" <<-'SH'
		ip link set lo up
		"$0" run --dev lo -- rping -s -C 3 &
		tries=0
		until "$0" info --dev lo | grep -q 'listens on' || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
		"$0" run --dev lo -- rping -c -V -C 3 -a 127.0.0.1 && wait $!
	SH
	in_ns "$NS1" timeout -k 5 60 "${as[@]}" unshare -Ur -n sh -c "$(cat "$TMP/within")" "$UROCE" </dev/null
}

# A container with a /dev/shm, a /proc and process numbers of its own, in the same network: its processes are siblings.
test_trust_container() {
	local own='mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@"' n
	[ ${#as[@]} -eq 0 ] || return 0 # cannot make one
	as=(unshare --mount --ipc --pid --fork --mount-proc sh -c "$own")
	background "$NS1" "$TMP/server" -- rping -s -C 3
	as=()
	wait_listening "$NS1" "$RPING" "$server" || { cat "$TMP/server"; return 1; }
	serve 7204 "$NS1" "$TMP/server2" -- rping -s -C 3 -p 7204 || return 1
	n=$(names_of "$NS1" | grep -Ec '^@uroce-[0-9a-f]{16}-[0-9]+$')
	[ "$n" -eq 4 ] || { names_of "$NS1"; fail "$n names in place of 4: a slot and who listens there, for each of two"; return; }
	uroce_in "$NS1" -- rping -s -C 1 >"$TMP/out" 2>&1 && { fail "two listen on one port"; return; }
	uroce_in "$NS2" -- rping -c -V -C 3 -a 10.77.0.1 || { cat "$TMP/server"; fail "into the container"; return; }
	uroce_in "$NS1" -- rping -c -V -C 3 -p 7204 -a 10.77.0.1 || { cat "$TMP/server2"; fail "on the host"; return; }
	served "$TMP/server2"
}

# One that is stopped keeps nobody from starting, listening, connecting or ending.
test_trust_stopped() {
	local p
	serve "$RPING" "$NS1" "$TMP/server" -- rping -s -P || return 1
	p=$(pgrep -P "$server") || { fail "no program"; return; }
	kill -STOP "$p"
	serve 7204 "$NS1" "$TMP/server2" -- rping -s -C 3 -p 7204 || { kill -CONT "$p"; return 1; }
	uroce_in "$NS2" -- rping -c -C 3 -p 7204 -a 10.77.0.1 && served "$TMP/server2" || { kill -CONT "$p"; return 1; }
	serve 7205 "$NS1" "$TMP/server2" -- rping -s -C 3 -p 7205 || { kill -CONT "$p"; return 1; }
	uroce_in "$NS1" -- rping -c -C 3 -p 7205 -a 10.77.0.1 && served "$TMP/server2" || { kill -CONT "$p"; return 1; }
	kill -CONT "$p"
	uroce_in "$NS2" -- rping -c -C 3 -a 10.77.0.1 || { cat "$TMP/server"; fail "after it went on"; return; }
	uroce_in "$NS1" -- rping -c -C 3 -a 10.77.0.1 || { cat "$TMP/server"; fail "from its own host"; }
}

# give_capability FILE: cap_net_raw, permitted and effective (capabilities(7)).
give_capability() { python3 -c 'import os, struct, sys; os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))' "$1"; }

# A program with more rights than its caller, by its owner or by capabilities, believes nothing of its caller's environment: no file is written, no
# configuration read, no library loaded.
test_trust_set_user_id() {
	local lib=$TMP/suid-lib dir=$TMP/suid out=$TMP/out kind own
	[ ${#as[@]} -eq 0 ] || return 0 # nobody is us
	mkdir -p "$lib" "$dir"
	cp -L "$LIB/liburoce.so" "$lib/liburoce.so.1"
	install -D "$LIB/uroce/liburoce-dpdk.so" "$lib/uroce/liburoce-dpdk.so"
	gcc -Wall -Werror -I"$PREFIX/include" -o "$dir/linked" "$here/src/linked.c" "$lib/liburoce.so.1" -Wl,-rpath,"$lib" || return 1
	mount -t tmpfs -o mode=755 tmpfs /mnt || return 1 # DPDK loads nothing from below a folder that all may write to
	printf '#include <fcntl.h>\n__attribute__((constructor)) static void loaded(void) { (void)!open("%s/loaded", O_CREAT, 0600); }\n' "$dir" >"$TMP/loaded.c"
	gcc -shared -fPIC -o /mnt/caller.so "$TMP/loaded.c" || return 1
	chmod 755 "$TMP" "$lib" "$lib/liburoce.so.1"
	chmod 1777 "$dir"
	echo 'fault = drop=100%' >"$dir/conf"
	own=("UROCE_CONF=$dir/conf" "UROCE_TRACE=$dir/trace" "UROCE_COUNTERS=$dir/counters" "UROCE_CAPTURE=$dir/capture" UROCE_PORT=dpdk "UROCE_EAL=-d /mnt/caller.so")
	for kind in owner capability; do
		if [ $kind = owner ]; then chmod u+s "$dir/linked"; else chmod u-s "$dir/linked" && give_capability "$dir/linked" || return 1; fi
		in_ns "$NS1" "${as_nobody[@]:0:4}" env "${own[@]}" timeout 20 "$dir/linked" eth0 >"$out" 2>&1 || { cat "$out"; fail "$kind"; return; }
		! ls "$dir" | grep -E 'trace|counters|capture|loaded' || { fail "$kind: what its caller said was done"; return; }
	done
	# the same variables count for a program that has no other rights than its caller
	in_ns "$NS1" env "${own[@]}" timeout 20 "$dir/linked" eth0 >"$out" 2>&1 || { cat "$out"; return 1; }
	[ -s "$dir/trace" ] && [ -e "$dir/loaded" ] || { ls -l "$dir"; fail "the variables do not count at all"; }
}

# What another user has put under a name in a shared folder, a link or a pipe, is neither written through nor waited for.
test_trust_planted_names() {
	local d=$TMP/shared out=$TMP/out name cmd
	[ ${#as[@]} -eq 0 ] || return 0 # nobody is us
	local cmds=("pcap rewrite $ROOT/pcaps/rping-rc.pcap" "pcap annotate $ROOT/pcaps/rping-rc.pcap" "pcap ladder $ROOT/pcaps/rping-rc.pcap --svg"
		"pcap ladder $ROOT/pcaps/rping-rc.pcap --html" "pcap report --html $ROOT/pcaps/rping-rc.pcap" "pcap mutate --force $ROOT/pcaps/rping-rc.pcap" "conform --dev eth0 192.0.2.77 --capture"
		"run --dev eth0 --counters" "run --dev eth0 --trace" "run --dev eth0 --capture")
	mkdir -m 1777 "$d"
	chmod 755 "$TMP"
	echo precious >"$TMP/precious"
	for cmd in "${cmds[@]}"; do
		for name in link pipe; do
			rm -f "$d"/*
			"${as_nobody[@]}" ln -s "$TMP/precious" "$d/link"
			"${as_nobody[@]}" mkfifo "$d/pipe"
			"${as_nobody[@]}" ln -s "$TMP/precious" "$d/$name.part"
			set -- "$d/$name"
			case $cmd in
			run*) set -- "$1" -- rping -c -a 192.0.2.77 ;;
			*mutate*) mv "$1" "$d/MANIFEST" && set -- "$d" ;;
			esac
			# shellcheck disable=SC2086
			in_ns "$NS1" timeout 15 "$UROCE" $cmd "$@" >"$out" 2>&1 </dev/null
			[ $? -ne 124 ] || { fail "uroce $cmd waits for $name"; return; }
			grep -qx precious "$TMP/precious" || { fail "uroce $cmd wrote through a link ($name)"; return; }
			grep -q "^uroce: .*cannot write\|^uroce: .*cannot be written" "$out" || { cat "$out"; fail "uroce $cmd says nothing of $name"; return; }
		done
	done
	# a link of one's own, and devices, are what their user means
	ln -s "$TMP/precious" "$TMP/own"
	in_ns "$NS1" "$UROCE" run --dev eth0 --counters "$TMP/own" -- ibv_devices >"$out" 2>&1 && ! grep -q precious "$TMP/precious" || { cat "$out"; fail "own link"; return; }
	in_ns "$NS1" "$UROCE" run --dev eth0 --counters /dev/stdout -- ibv_devices 2>&1 | cat >"$out"
	grep -q uroce0 "$out" || { cat "$out"; fail "/dev/stdout"; return; }
	in_ns "$NS1" "$UROCE" run --dev eth0 --capture /dev/full -- rping -c -a 192.0.2.77 >"$out" 2>&1
	grep -q "No space left on device" "$out" || { cat "$out"; fail "/dev/full"; return; }
	"$UROCE" pcap ladder "$ROOT/pcaps/rping-rc.pcap" --svg /dev/full >"$out" 2>&1 && { fail "a picture on /dev/full"; return; }
	for cmd in rewrite annotate; do
		rm -f "$d"/*
		"$UROCE" pcap $cmd "$ROOT/pcaps/rping-rc.pcap" "$d/new.pcap" && [ "$(stat -c %a "$d/new.pcap")" = 600 ] && [ "$(ls "$d" | grep -c new)" = 1 ] || { fail "a copy of $cmd"; return; }
	done
}
