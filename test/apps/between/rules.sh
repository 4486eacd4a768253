# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between: rules that change packets, hold them or know them by their connection, and what a bottleneck says to hosts.

# A trimmed packet arrives as nothing that a host takes: it is sent again. What hosts see of it is short, and its lengths fit.
test_between_trim() {
	three_hosts && join --json --rule 'trim 2to1 opcode=WRITE_LAST msg=3 iteration=1 dscp=10' || return 1
	ip netns exec "$BT1" timeout 30 python3 - >"$TMP/trimmed" <<-'PYTHON' &
		import socket
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
		s.bind(("eth0", 0x0800))
		print("ready", flush=True)
		while True:
		    f = s.recv(65536)
		    if len(f) > 54 and f[23] == 17 and f[36:38] == b"\x12\xb7" and f[42] == 8 and f[15] >> 2 == 10: # RC_WRITE_LAST
		        total, udp = int.from_bytes(f[16:18]), int.from_bytes(f[38:40])
		        assert total == udp + 20 == 20 + 8 + 12 + 4, (total, udp)
		        words = sum(int.from_bytes(f[i:i + 2]) for i in range(14, 34, 2))
		        assert words % 0xffff == 0, "the checksum of the IP header"
		        print("trimmed", flush=True)
		        break
	PYTHON
	local receiver=$!
	servers+=("$receiver")
	until_says "$TMP/trimmed" ready || return 1
	writes || return 1
	wait "$receiver" || { cat "$TMP/trimmed"; fail "no trimmed packet has arrived, or it is wrong"; return; }
	leave || return 1
	reports 'r["done"]["trimmed"] == 1 == r["rules"][0]["hits"] and len(events) == 1 and events[0]["done"] == ["trimmed"] and events[0]["again_ns"] > 0'
}

# What the ICRC sees is sent again; what it does not see arrives, and nobody repeats it.
test_between_corrupt_parts() {
	three_hosts && join --json --rule 'corrupt 2to1 opcode=WRITE_MIDDLE msg=2 nth=1 iteration=1 what=payload' \
		--rule 'corrupt 2to1 opcode=WRITE_MIDDLE msg=4 nth=1 iteration=1 what=payload fix=icrc' || return 1
	writes || return 1
	leave || return 1
	reports '[x["hits"] for x in r["rules"]] == [1, 1] and r["done"]["corrupted"] == 1 == r["done"]["altered"]' &&
		reports 'len(events) == 2 and events[0]["again_ns"] > 0 and events[1]["done"] == ["altered"]' &&
		reports 'sum(f["repeats"] - f["needless"] for f in flows) == 1'
}

# An answer waits until the next message comes, which comes although its answer is missing; the last one until its time is over.
test_between_hold() {
	three_hosts && join --json --rule 'hold 1to2 opcode=ACK nth=1 times=1 delay=10s until 2to1 opcode=WRITE_LAST msg=4' || return 1
	writes || return 1
	leave || return 1
	reports 'r["rules"][0]["hits"] == 1 == r["done"]["held"] and sum(f["packets"] for f in flows if f["source"] == "10.78.0.2") > 60 and r["seconds"] < 9'
}

# Two programs, of which a rule names one by its port.
test_between_service() {
	three_hosts && join --json --rule 'drop 2to1 service=7199 opcode=SEND_ONLY nth=2' --rule 'drop service=7197' || return 1
	serve 7198 "$BT1" "$TMP/server" -- rping -s -C 4 -p 7198 || return 1
	uroce_in "$BT2" -- rping -c -C 4 -a 10.78.0.1 -p 7198 || { fail "rping at 7198"; return; }
	serve 7199 "$BT1" "$TMP/server" -- rping -s -C 4 -p 7199 || return 1
	uroce_in "$BT2" -- rping -c -C 4 -a 10.78.0.1 -p 7199 || { fail "rping at 7199"; return; }
	leave || return 1
	reports '[x["hits"] for x in r["rules"]] == [1, 0] and len(events) == 1'
}

# By addresses and ports: one direction of one pair of hosts, and a port that nobody sends from.
test_between_addresses() {
	three_hosts && join --json --rule 'drop src=10.78.0.2 dst=10.78.0.1 opcode=WRITE_LAST msg=2 iteration=1' --rule 'drop src=10.78.0.3' --rule 'drop port=1' || return 1
	writes || return 1
	leave || return 1
	reports '[x["hits"] for x in r["rules"]] == [1, 0, 0]'
}

# A told event: what is held, is released by its rule's number.
test_between_told_release() {
	named --json --rule 'hold 2to1 opcode=WRITE_LAST msg=2 iteration=1 delay=50s until told' || return 1
	serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 8192 -n 10 -Q 1 || return 1
	ip netns exec "$BT2" timeout 60 "$UROCE" run --dev eth0 -- ib_write_bw -s 8192 -n 10 -Q 1 10.78.0.1 </dev/null >"$TMP/client" 2>&1 &
	local client=$!
	servers+=("$client")
	told 0 '^ok: 0 frames are released$' release 7 && told 1 "there is no rule 'x'" release x || return 1
	for _ in $(seq 200); do
		tells release 1 || return 1
		! grep -q '^ok: 1 frame is released$' "$TMP/told" || break
		sleep 0.02
	done
	grep -q '^ok: 1 frame is released$' "$TMP/told" || { cat "$TMP/told"; fail "nothing was held"; return; }
	wait "$client" || { cat "$TMP/client"; fail "the client"; return; }
	served "$TMP/server" && told 0 '^ok: 0 frames are released$' release || return 1
	leave || return 1
	reports 'r["rules"][0]["hits"] == 1 == r["done"]["held"] and r["seconds"] < 45'
}

# Marks whose share grows, and pause frames to the sender, of which the last one ends the pause. Hosts that do not obey them come to no harm.
test_between_pause() {
	local kind
	three_hosts || return 1
	for kind in 4 link; do
		join --json --rate 200Mbit --queue 400KB --mark-at 20KB:100KB:50% --pause-at 30KB:10KB --pause $kind || return 1
		ip netns exec "$BT2" timeout 60 python3 - $kind >"$TMP/pauses" <<-'PYTHON' &
			import socket, sys
			s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8808))
			s.bind(("eth0", 0x8808))
			print("ready", flush=True)
			began = ended = 0
			while not (began and ended):
			    f = s.recv(2000)
			    assert f[:6] == b"\x01\x80\xc2\0\0\1" and len(f) == 60
			    if sys.argv[1] == "link":
			        assert f[14:16] == b"\0\1" and not any(f[18:])
			        quanta = f[16:18]
			    else:
			        assert f[14:18] == b"\1\1\0\x10" and not any(f[18:26] + f[28:])
			        quanta = f[26:28]
			    assert quanta in (b"\xff\xff", b"\0\0") and (began or quanta != b"\0\0")
			    began |= quanta != b"\0\0"
			    ended |= quanta == b"\0\0"
		PYTHON
		local receiver=$!
		servers+=("$receiver")
		until_says "$TMP/pauses" ready || return 1
		serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 65536 -n 200 -Q 1 || return 1
		uroce_in "$BT2" -- ib_write_bw -s 65536 -n 200 -Q 1 10.78.0.1 || { fail "the client"; return; }
		wait "$receiver" || { cat "$TMP/pauses"; fail "no pause, or one that is wrong: $kind"; return; }
		leave || return 1
		reports 'r["done"]["queue_marked"] > 0 and r["ends"][1]["paused"] > 0 and r["ends"][1]["pause_frames_sent"] >= 2 * r["ends"][1]["paused"]' || return 1
	done
}

# sends NAMESPACE HEX: a frame of that beginning.
sends() {
	in_ns "$1" python3 -c 'import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes.fromhex(sys.argv[1]).ljust(60, b"\0"))' "$2"
}

# A host that pauses: nothing reaches it until it ends that. At 1 Mbit/s a pause of 65535 quanta takes half a minute.
test_between_obeys_pause() {
	local pause=0180c2000001020000000001880800 # and 01 for the link, and quanta
	named --json --rate 1Mbit --pause link --obey-pause || return 1
	ip netns exec "$BT1" timeout 60 python3 - >"$TMP/got" <<-'PYTHON' &
		import socket
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88b5))
		s.bind(("eth0", 0x88b5))
		print("ready", flush=True)
		s.recv(2000)
		print("came", flush=True)
	PYTHON
	servers+=($!)
	until_says "$TMP/got" ready && sends "$BT1" "${pause}01ffff" || return 1
	for _ in $(seq 100); do
		tells --json status && ! grep -q '"pauses_obeyed":1' "$TMP/told" || break
		sleep 0.05
	done
	grep -q '"pauses_obeyed":1' "$TMP/told" || { cat "$TMP/told"; fail "it does not obey"; return; }
	sends "$BT2" 02000000000102000000000288b5 || return 1
	sleep 0.3
	! grep -q came "$TMP/got" || { fail "a frame passed"; return; }
	sends "$BT1" "${pause}010000" && until_says "$TMP/got" came && leave
}

# A rate of hours that goes: what waits does not.
test_between_told_rate_of_hours() {
	named --json || return 1
	told 0 '^ok: rate 1bit' rate 1bit queue=1MB || return 1
	ip netns exec "$BT2" timeout 40 python3 - <<-'PYTHON' >"$TMP/refused" 2>&1 &
		import socket
		try: socket.create_connection(("10.78.0.1", 9), timeout=30)
		except ConnectionRefusedError: pass
	PYTHON
	local refused=$!
	servers+=("$refused")
	sleep 0.2
	told 0 '^ok: rate none$' rate none || return 1
	wait "$refused" || { cat "$TMP/refused"; fail "it still waits"; return; }
	leave
}

# Whatever ends it, it reports.
test_between_ended_by_signals() {
	local signal
	three_hosts || return 1
	for signal in HUP QUIT TERM; do
		join || return 1
		kill -$signal "$(pgrep -P "$between" -x uroce)"
		wait "$between" || { cat "$TMP/between.err"; fail "SIG$signal: its status"; return; }
		grep -q '^e1 and e2 were joined for' "$TMP/between" || { cat "$TMP/between"; fail "SIG$signal: no report"; return; }
	done
}
