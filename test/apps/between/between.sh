# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# uroce between: a third namespace joins two hosts. Programs run through it as through a cable, and the report says what was done and what came of it.

# three_hosts: $BT1 (10.78.0.1) and $BT2 (10.78.0.2), each with an interface eth0 that leads to e1 or e2 in $BTM. Once.
three_hosts() {
	local i ns
	[ -z "${BTM:-}" ] || return 0
	BT1=uroce-$$-b1
	BT2=uroce-$$-b2
	for ns in uroce-$$-bm "$BT1" "$BT2"; do
		on_exit "ip netns del $ns"
		ip netns add "$ns" || return 1
		in_ns "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	done
	for i in 1 2; do
		ip link add name eth0 netns "uroce-$$-b$i" type veth peer name "e$i" netns "uroce-$$-bm" || return 1
		ip -n "uroce-$$-b$i" link set lo up
		ip -n "uroce-$$-b$i" link set eth0 up
		ip -n "uroce-$$-bm" link set "e$i" up
		ip -n "uroce-$$-b$i" addr add "10.78.0.$i/24" dev eth0
	done
	BTM=uroce-$$-bm
}

# join [OPTIONS]: joins them until leave is called. The report goes to $TMP/between, what it says meanwhile to $TMP/between.err.
join() {
	: >"$TMP/between.err"
	ip netns exec "$BTM" timeout -k 5 90 "$UROCE" between "$@" e1 e2 </dev/null >"$TMP/between" 2>"$TMP/between.err" &
	between=$!
	servers+=("$between")
	on_exit "stop $between"
	until_says "$TMP/between.err" "are joined"
}

leave() {
	local status
	kill -INT "$(pgrep -P "$between" -x uroce)" 2>/dev/null || { fail "uroce between has ended"; return; }
	wait "$between"
	status=$?
	cat "$TMP/between"
	[ $status -eq 0 ] || { cat "$TMP/between.err"; fail "uroce between ended with status $status"; return; }
	! grep warning "$TMP/between" || fail "frames were lost"
}

# reports EXPRESSION: whether it holds of the report r, which was made with --json; `flows` are those of requests.
reports() {
	python3 - "$TMP/between" "$1" <<-'PYTHON' || { cat "$TMP/between"; fail "the report does not say: $1"; return; }
		import json, sys
		r = json.load(open(sys.argv[1]))
		flows = [f for f in r["flows"] if not f["responses"]]
		events = r["events"]
		sys.exit(0 if eval(sys.argv[2]) else 1)
	PYTHON
}

# writes [OPTIONS]: ten WRITEs of 8 KiB from the second host to the first.
writes() {
	serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 8192 -n 10 -Q 1 || return 1
	uroce_in "$BT2" "$@" -- ib_write_bw -s 8192 -n 10 -Q 1 10.78.0.1 || { cat "$TMP/server"; fail "the client"; return; }
	served "$TMP/server"
}

test_between_rping() {
	three_hosts && join --json || return 1
	serve "$RPING" "$BT1" "$TMP/server" -- rping -s -C 5 || return 1
	uroce_in "$BT2" -- rping -c -v -C 5 -a 10.78.0.1 || { fail "rping"; return; }
	leave || return 1
	reports 'r["version"] == 1 and sum(e["roce_packets"] for e in r["ends"]) > 30 and not events and sum(r["done"].values()) == 0' &&
		reports 'sum(f["packets"] for f in flows if f["qpn"] > 1) >= 20 and all(f["repeats"] == 0 for f in flows)' &&
		reports 'any("partner_qpn" in f for f in flows)'
}

# The last packet of the third WRITE is lost, once; without knowing any number that the hosts have drawn.
test_between_drops() {
	three_hosts && join --json --capture "$TMP/between.pcapng" --rule 'drop 2to1 opcode=WRITE_LAST msg=3 iteration=1' || return 1
	writes || return 1
	leave || return 1
	reports 'len(events) == 1 and r["rules"][0]["hits"] == 1 and r["done"]["dropped"] == 1' &&
		reports 'events[0]["opcode"] == "RC_WRITE_LAST" and events[0]["message"] == 3 and events[0]["done"] == ["dropped"] and events[0]["rule"] == 1' &&
		reports '0 < events[0]["again_ns"] < 2e9 and events[0]["recovery"] in ("selective", "go-back-N", "nothing followed it")' || return 1
	"$UROCE" pcap check "$TMP/between.pcapng" >"$TMP/check"
	cat "$TMP/check"
	[ "$(grep -ac 'dropped by rule 1' "$TMP/between.pcapng")" -eq 1 ] && grep -q 'lost' "$TMP/check" || fail "the capture does not say it"
}

# is_pcapng FILE: blocks and nothing else.
is_pcapng() {
	python3 - "$1" <<-'PYTHON'
		import struct, sys
		data = open(sys.argv[1], "rb").read()
		assert data[:4] == b"\n\r\r\n"
		while data:
		    size = struct.unpack("=I", data[4:8])[0]
		    assert size >= 12 and struct.unpack("=I", data[size - 4:size])[0] == size
		    data = data[size:]
	PYTHON
}

# From the middle: what goes through is judged while it goes through. A lost packet is nobody's fault.
test_between_judged() {
	local judge
	three_hosts && mkfifo "$TMP/pipe" || return 1
	timeout -k 5 90 "$UROCE" conform --file - <"$TMP/pipe" >"$TMP/verdicts" 2>&1 &
	judge=$!
	servers+=("$judge")
	on_exit "stop $judge"
	: >"$TMP/between.err"
	ip netns exec "$BTM" timeout -k 5 90 "$UROCE" between --capture - --rule 'drop 2to1 opcode=WRITE_LAST msg=3 iteration=1' e1 e2 </dev/null >"$TMP/pipe" 2>"$TMP/between.err" &
	between=$!
	servers+=("$between")
	on_exit "stop $between"
	until_says "$TMP/between.err" "are joined" && writes || return 1
	kill -INT "$(pgrep -P "$between" -x uroce)" 2>/dev/null
	wait "$between" || { cat "$TMP/between.err"; fail "uroce between"; return; }
	wait "$judge" || { cat "$TMP/verdicts"; fail "the judge ended with status $?"; return; }
	grep -qE '^10.78.0.1: [1-9][0-9]* obeyed, 0 broken,' "$TMP/verdicts" && ! grep -q ^broken "$TMP/verdicts" || { cat "$TMP/verdicts"; fail "who is judged"; return; }
	grep -qE '^obeyed   RC  msn-counts-messages .* times?$' "$TMP/verdicts" || { cat "$TMP/verdicts"; fail "what was obeyed"; }
}

# A capture on standard output is a whole file, and nothing else: the report, and what programs print, are on standard error.
test_between_capture_to_stdout() {
	three_hosts || return 1
	local args
	for args in "--seconds 1 e1 e2" "--seconds 1 --live e1 e2" "--start-after 1ms --native --json --script /dev/null -- echo printed -- true"; do
		# shellcheck disable=SC2086
		in_ns "$BTM" timeout 20 "$UROCE" between --capture - $args >"$TMP/stdout.pcapng" 2>"$TMP/out" || { cat "$TMP/out"; fail "$args"; return; }
		is_pcapng "$TMP/stdout.pcapng" || { fail "it is no capture: $args"; return; }
		! grep -qaE 'joined|printed|"version"' "$TMP/stdout.pcapng" && grep -qE 'were joined|"version"' "$TMP/out" || { cat "$TMP/out"; fail "where the report is: $args"; return; }
	done
	grep -q '^1| printed' "$TMP/out" || { cat "$TMP/out"; fail "the output of the program"; return; }
	in_ns "$BTM" "$UROCE" between --capture - --seconds 1 e1 e2 >/dev/full 2>"$TMP/out" && { fail "a full disk is not noticed"; return; }
	grep -q 'cannot write the capture to standard output: No space left' "$TMP/out" || { cat "$TMP/out"; fail "a full disk"; }
}

# To a host that sends no SACK: a NAK tells it, and it goes back.
test_between_go_back_n() {
	three_hosts && join --json --rule 'drop 2to1 opcode=WRITE_MIDDLE msg=3 nth=1 iteration=1' || return 1
	UROCE_SELECTIVE_REPEAT=0 writes || return 1
	leave || return 1
	reports 'len(events) == 1 and events[0]["told_by"] == "NAK" and events[0]["told_ns"] <= events[0]["again_ns"]' &&
		reports 'events[0]["recovery"] == "go-back-N" and max(f["needless"] for f in flows) > 0'
}

# Over IPv6, whose datagrams need a checksum, and in trains: what is left of one in which a packet was lost goes on as two.
test_between_ipv6() {
	local i
	three_hosts || return 1
	for i in 1 2; do
		in_ns "uroce-$$-b$i" sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0 && ip -n "uroce-$$-b$i" addr replace "fd78::$i/64" dev eth0 nodad || return 1
	done
	join --json --rule 'drop iteration=1 opcode=READ_RESP_MIDDLE psn=+20' --rule 'drop 1to2 iteration=1 opcode=WRITE_MIDDLE nth=5' || return 1
	serve "$RPING" "$BT1" "$TMP/server" -- rping -s -a fd78::1 -C 5 -S 65535 -V || return 1
	uroce_in "$BT2" -- rping -c -a fd78::1 -C 5 -S 65535 -V || { fail "rping"; return; }
	leave || return 1
	for i in 1 2; do in_ns "uroce-$$-b$i" sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1; done
	reports 'r["rules"][0]["hits"] > 0 and r["rules"][1]["hits"] == 1 and len(events) == r["done"]["dropped"]' &&
		reports 'all(e["source"].startswith("fd78::") and e["again_ns"] > 0 for e in events)'
}

# Trains of which many packets leave by themselves, twice, marked or late: each arrives as it was sent, and so does what is left of the trains.
test_between_pieces_of_trains() {
	local side
	three_hosts && join --json --rule 'dup opcode=READ_RESP_MIDDLE chance=20%' --rule 'mark opcode=WRITE_MIDDLE chance=20%' --rule 'delay psn=+30 delay=100us' || return 1
	serve "$RPING" "$BT1" "$TMP/server" --counters "$TMP/counters1" -- rping -s -C 20 -S 65000 -V || return 1
	uroce_in "$BT2" --counters "$TMP/counters2" -- rping -c -C 20 -S 65000 -V -a 10.78.0.1 || { fail "rping"; return; }
	served "$TMP/server" && leave || return 1
	reports 'r["rules"][0]["hits"] > 20 and r["rules"][1]["hits"] > 20 and r["rules"][2]["hits"] > 0 and r["done"]["duplicated"] == r["rules"][0]["hits"]' || return 1
	for side in 1 2; do
		! grep -E '^(rx_icrc_encapsulated|drop_truncated|drop_bad_ip|drop_bad_udp|drop_opcode) *[1-9]' "$TMP/counters$side" || { cat "$TMP/counters$side"; fail "packets were damaged on the way to host $side"; return; }
	done
}

# Rules in a file; a time window that nothing is in; delays of one packet that the client's latency shows.
test_between_rules_file() {
	three_hosts || return 1
	printf '# two rules%600s\n\n  delay 1to2 opcode=ACK delay=20ms times=1 # an answer\n\tdrop after=1000s\r\n' 'and a drop' >"$TMP/rules"
	join --json --rules "$TMP/rules" || return 1
	writes || return 1
	leave || return 1
	reports '[x["hits"] for x in r["rules"]] == [1, 0] and r["done"]["delayed"] == 1 and r["rules"][1]["rule"] == "drop after=1000s"'
}

# Bursts of losses, and a packet that comes once more when nobody waits for it: the program survives both.
test_between_bursts_and_ghosts() {
	three_hosts && join --json --rule 'drop 2to1 opcode=WRITE_MIDDLE iteration=1 burst=10%/40%' --rule 'dup 2to1 opcode=WRITE_LAST msg=2 delay=5ms' || return 1
	writes || return 1
	sleep 0.1
	leave || return 1
	reports '1 < r["rules"][0]["hits"] < 40 and r["done"]["dropped"] == r["rules"][0]["hits"]' &&
		reports 'r["rules"][1]["hits"] >= 1 and r["done"]["duplicated"] == r["rules"][1]["hits"] and r["done"]["delayed"] == 0'
}

test_between_bottleneck() {
	three_hosts && join --json --rate 200Mbit --queue 100KB --mark-at 20KB || return 1
	serve_tcp "$BT1" "$TMP/server" -- ib_write_bw -s 65536 -n 200 -Q 1 || return 1
	uroce_in "$BT2" -- ib_write_bw -s 65536 -n 200 -Q 1 10.78.0.1 || { fail "the client"; return; }
	leave || return 1
	# 13 MB at 200 Mbit/s are 0.52 s
	reports 'r["seconds"] > 0.5 and r["done"]["queue_marked"] > 0 and sum(f["cnps"] for f in r["flows"] if f["responses"]) > 0'
}

# Everything else passes: TCP in segments that the kernel has merged, with checksums that nobody has computed yet.
test_between_tcp() {
	three_hosts && join --json --rule 'drop psn=1' || return 1
	copy_tcp 10.78.0.1 || { fail "TCP"; return; }
	leave || return 1
	reports 'sum(e["bytes"] for e in r["ends"]) > 10e6 and sum(e["frames"] for e in r["ends"]) < 6000'
}

# The kernel takes the tag off a frame before this program has it; it has it again at the other host. A frame of a link's own protocol passes, too.
test_between_tags() {
	three_hosts && join --json || return 1
	ip netns exec "$BT1" timeout 20 python3 - >"$TMP/tags" <<-'PYTHON' &
		import socket, struct
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
		s.bind(("eth0", 3))
		s.setsockopt(263, 8, 1) # PACKET_AUXDATA
		print("ready", flush=True)
		left = {b"a", b"b"}
		while left:
		    data, aux, _, _ = s.recvmsg(2000, 100)
		    status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", aux[0][2][:20])
		    if data[14:].startswith(b"tagged by seven") and status & 0x10 and tci == 7 and tpid == 0x8100 and data[12:14] == b"\x88\xb5": left -= {b"a"}
		    if data[12:14] == b"\x88\xcc" and data[14:].startswith(b"discovery"): left -= {b"b"}
	PYTHON
	local receiver=$!
	servers+=("$receiver")
	until_says "$TMP/tags" ready || return 1
	in_ns "$BT2" python3 - <<-'PYTHON'
		import socket
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind(("eth0", 0))
		s.send(b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x81\0\0\7\x88\xb5tagged by seven" + bytes(40))
		s.send(b"\x01\x80\xc2\0\0\x0e\x02\0\0\0\0\2\x88\xccdiscovery" + bytes(40))
	PYTHON
	wait "$receiver" || { fail "the frames did not arrive as they were sent"; return; }
	leave
}

# copy_tcp ADDRESS: ten megabytes from the second host to the first, and their hash back.
copy_tcp() {
	ip netns exec "$BT1" timeout 30 python3 - "$1" <<-'PYTHON' &
		import hashlib, socket, sys
		s = socket.create_server((sys.argv[1], 7777))
		c, _ = s.accept()
		h = hashlib.sha256()
		while d := c.recv(65536): h.update(d)
		c.sendall(h.digest())
	PYTHON
	servers+=($!)
	for _ in $(seq 100); do [ -z "$(in_ns "$BT1" ss -Hltn 'sport = :7777')" ] || break; sleep 0.05; done
	in_ns "$BT2" timeout 30 python3 - "$1" <<-'PYTHON'
		import hashlib, os, socket, sys
		data = os.urandom(10 << 20)
		c = socket.create_connection((sys.argv[1], 7777))
		c.sendall(data)
		c.shutdown(socket.SHUT_WR)
		sys.exit(c.recv(32) != hashlib.sha256(data).digest())
	PYTHON
}

# A frame counts from when the kernel got it: what came while this program did not run is told apart, and both ends' frames are in their order.
test_between_arrivals() {
	three_hosts && join --json --capture "$TMP/between.pcapng" || return 1
	local cable i
	cable=$(pgrep -P "$between" -x uroce)
	kill -STOP "$cable"
	for i in 1 2 1 2; do
		in_ns "uroce-$$-b$i" python3 -c 'import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]) + b"from host" + bytes(40))' || return 1
		sleep 0.1
	done
	kill -CONT "$cable"
	leave || return 1
	python3 - "$TMP/between.pcapng" <<-'PYTHON' || fail "when they came"
		import struct, sys
		data, frames = open(sys.argv[1], "rb").read(), []
		while data:
		    kind, size = struct.unpack("=II", data[:8])
		    if kind == 6 and b"from host" in data[:size]:
		        end, high, low = struct.unpack("=III", data[8:20])
		        frames.append((end, high << 32 | low))
		    data = data[size:]
		print(frames)
		assert [end for end, _ in frames] == [0, 1, 0, 1]
		assert all(b - a >= 100000000 for (_, a), (_, b) in zip(frames, frames[1:]))
	PYTHON
}

# Nonsense in place of RoCEv2 passes, too, and stops nothing.
test_between_hostile() {
	three_hosts && join --json --rule 'corrupt chance=10%' --rule 'delay psn=+1 delay=1ms' --rule 'reorder msg=2 by=3' || return 1
	in_ns "$BT2" python3 - <<-'PYTHON' || { fail "sending"; return; }
		import random, socket, struct
		random.seed(5)
		s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		s.bind(("eth0", 0))
		for i in range(3000):
		    body = random.randbytes(random.randrange(0, 200))
		    udp = struct.pack("!HHHH", 9, 4791, random.randrange(65536), 0) + body
		    ihl = random.choice((0, 5, 5, 5, 15))
		    ip = struct.pack("!BBHHHBBH4s4s", 0x40 | ihl, 0, random.randrange(65536), 0, 0, 64, 17, 0, bytes([10, 78, 0, 2]), bytes([10, 78, 0, 1]))
		    tag = b"\x81\x00\x00\x07" if i % 7 == 0 else b""
		    s.send((b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02" + tag + b"\x08\x00" + ip + udp)[:random.choice((14, 20, 43, 60, 300))])
	PYTHON
	serve "$RPING" "$BT1" "$TMP/server" -- rping -s -C 3 || return 1
	uroce_in "$BT2" -- rping -c -C 3 -a 10.78.0.1 || { fail "rping"; return; }
	leave || return 1
	reports 'r["ends"][1]["frames"] > 2900 and r["ends"][1]["roce_packets"] > 600 and r["ends"][1]["unsent"] + r["ends"][0]["unsent"] == 0'
}

test_between_refusals() {
	three_hosts || return 1
	local args says
	while IFS='|' read -r args says; do
		# shellcheck disable=SC2086
		in_ns "$BTM" timeout 10 "$UROCE" between $args >"$TMP/out" 2>&1 && { fail "'$args' is taken"; return; }
		grep -q -- "$says" "$TMP/out" || { cat "$TMP/out"; fail "'$args' does not say '$says'"; return; }
	done <<-'TABLE'
		e1|IF1 IF2
		e1 e1|joined to itself
		e1 none|cannot join interface none: there is no such interface
		lo e1|it is not an Ethernet interface
		--rule lose e1 e2|rule 'lose' is not understood
		--rules /nowhere e1 e2|cannot read /nowhere
		--rate 10 e1 e2|10Gbit
		--mark-at 5KB e1 e2|only with --rate
		--pause-at 5KB e1 e2|only with --rate
		--pause link e1 e2|only with --rate
		--obey-pause e1 e2|only with --rate
		--rate 1Gbit --mark-at 50KB:20KB e1 e2|one size or two
		--rate 1Gbit --mark-at 50KB:80KB:200% e1 e2|one size or two
		--rate 1Gbit --pause-at 50KB:50KB e1 e2|perhaps a smaller one
		--rate 1Gbit --pause 8 e1 e2|from 0 to 7, or link
		--tell e1 --rule drop status|--tell goes with --json alone
		--tell e1 --rate 5Gbit status|--tell goes with --json alone
		--tell e1 --seconds 5 --live status|--tell goes with --json alone
		--tell e1 --script /dev/null status|--tell goes with --json alone
		--tell e1 --realtime status|--tell goes with --json alone
		--tell e1 --proxy status|--tell goes with --json alone
		--tell e1 --suite lumina status|--tell goes with --json alone
		--tell e1 --run1 true status|--tell goes with --json alone
		--allow-unused e1 e2|go only with --script
		--native e1 e2|go only with --script
		--rate 1Gbit --queue 2GB e1 e2|at most 1GB
		--seconds 0 e1 e2|from 1 to
		--capture /nowhere/file e1 e2|/nowhere/file
	TABLE
	# a program without the capability is told so; the report comes by itself
	in_ns "$BTM" setpriv --reuid=65534 --regid=65534 --clear-groups "$UROCE" between e1 e2 2>&1 | grep -q 'needs CAP_NET_RAW' || { fail "CAP_NET_RAW"; return; }
	in_ns "$BTM" setpriv --bounding-set -sys_nice "$UROCE" between --realtime e1 e2 2>&1 | grep -q 'cannot get a realtime priority' || { fail "--realtime"; return; }
	in_ns "$BTM" timeout 10 "$UROCE" between --realtime e1 e2 --seconds 1 >"$TMP/out" 2>&1 && grep -q '^e1 and e2 were joined for 1.0' "$TMP/out" || { cat "$TMP/out"; fail "--seconds"; }
}

# An interface that goes ends it, with a report of what passed; one that is down for a while does not.
test_between_interface_goes() {
	three_hosts || return 1
	on_exit "ip -n $BTM link del g1 2>/dev/null"
	ip -n "$BTM" link add g1 type veth peer name g2 && ip -n "$BTM" link set g1 up && ip -n "$BTM" link set g2 up || return 1
	: >"$TMP/between.err"
	ip netns exec "$BTM" timeout -k 5 30 "$UROCE" between g1 e2 </dev/null >"$TMP/between" 2>"$TMP/between.err" &
	between=$!
	servers+=("$between")
	until_says "$TMP/between.err" "are joined" && ip -n "$BTM" link set g1 down && ip -n "$BTM" link set g1 up || return 1
	sleep 1.5
	[ -n "$(pgrep -P "$between" -x uroce)" ] || { cat "$TMP/between.err"; fail "it ends when an interface is down"; return; }
	ip -n "$BTM" link del g1
	wait "$between"
	[ $? -eq 1 ] && grep -q '^g1 and e2 were joined' "$TMP/between" && grep -q 'interface g1 has been removed' "$TMP/between.err" || { cat "$TMP/between" "$TMP/between.err"; fail "the end"; }
}

# A SEND that comes once more makes the responder acknowledge its newest PSN again, which may be of a READ: no recording calls that an error.
test_between_doubled_is_no_error() {
	three_hosts && join --json --rule 'dup 1to2 opcode=SEND_ONLY delay=300us' || return 1
	serve "$RPING" "$BT1" "$TMP/server" --capture "$TMP/doubled.pcapng" -- rping -s -C 200 || return 1
	uroce_in "$BT2" -- rping -c -C 200 -a 10.78.0.1 || { fail "rping"; return; }
	served "$TMP/server" || return 1
	leave || return 1
	reports 'r["done"]["duplicated"] >= 400' || return 1
	"$UROCE" pcap check "$TMP/doubled.pcapng" >"$TMP/check"
	grep -q 'ACK-DUP' "$TMP/check" || { tail "$TMP/check"; fail "no answer was repeated"; return; }
	grep -q ': 0 errors,' "$TMP/check" || { grep error "$TMP/check" | head; fail "a doubled request is called an error"; return; }
}
