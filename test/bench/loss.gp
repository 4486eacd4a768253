# SPDX-License-Identifier: BSD-3-Clause
#
# gnuplot -e "data='FILE'; picture='NAME'" loss.gp: what 'tools/bench loss --data FILE' has kept, as an SVG picture on standard output: goodput, latency
# and incast (one panel a quantity or round trip), faults (reordering, jitter, bursts), real (over sockets, beside kernel TCP).

set terminal svg size 1000,(picture eq 'faults' ? 640 : 360) background '#ffffff' font 'Helvetica,Arial,sans-serif,12'
set border 3 lc '#888888'
set tics nomirror
set ytics textcolor '#444444'
set grid ytics lc '#dddddd' lt 1
set format y '%g'
unset key
set datafile separator '\t'
set pointsize 0.6

# One metric of a part by what changes, in the order of the file: number, figure, and name of the place. `by` is the column of that name: 5 for the loss,
# 6 for what else, 0 for both. Figures that are not there are left out.
rows(part, rtt, op, peers, metric, by) = sprintf("< awk -F '\t' '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $4 == \"%s\" && $7 == \"%s\" { x = n++; if ($8 != \"-\") \
	printf \"%%d\\t%%s\\t%%s\\n\", x, $8, %s }' '%s'", part, rtt, op, peers, metric, by == 5 ? "$5 \" %\"" : by == 6 ? "$6" : "$5 \" %, \" $6", data)

# Panel i of n in a row between two heights of the page: all labels of it lie within the page.
panel = 'set lmargin at screen 1.0 * i / n + 0.06; set rmargin at screen (i + 1.0) / n - 0.012; set tmargin at screen high; set bmargin at screen low'
# One legend for all panels, below them, as wide as the page.
legend = "unset title; unset border; unset tics; unset logscale; unset xlabel; unset grid; set lmargin at screen 0.01; set rmargin at screen 0.99; \
	set tmargin at screen key_high; set bmargin at screen 0.01; set xrange [0:1]; set yrange [0:1]; \
	set key inside center center horizontal maxrows 2 Left reverse font ',10' samplen 2"

# Where several lines would hide one another: in categories, which no line joins, each kind of points beside the one before.
beside(k, of) = 0.8 * (k - (of - 1) / 2.0) / of

colour(op) = op eq 'WRITE' ? '#1f5fa8' : op eq 'SEND' ? '#c96a00' : '#2e7d6f'
rtts = '10 100 10000'
name(rtt) = rtt eq '10' ? '10 us, 100 Gbit/s' : rtt eq '100' ? '100 us, 100 Gbit/s' : '10 ms, 10 Gbit/s'

if (picture eq 'goodput') {
	set multiplot
	n = 3; low = 0.26; high = 0.9; key_high = 0.14
	set yrange [0:105]
	set xrange [-0.2:5.3]
	set xlabel 'loss' font ',10' offset 0,0.5
	do for [i = 0:2] {
		rtt = word(rtts, i + 1)
		eval panel
		set title "Goodput, % of the line, round trip ".name(rtt) font ',11'
		plot rows('goodput', rtt, '-', 'selective', 'goodput', 5) using 1:2:xtic(3) with lines lc '#888888' dt 2 lw 1.5, \
			rows('goodput', rtt, '-', 'go-back-N', 'goodput', 5) using 1:2 with lines lc '#888888' dt 3 lw 1.5, \
			rows('goodput', rtt, 'WRITE', 'own-own', 'goodput', 5) using 1:2 with linespoints lc '#1f5fa8' lw 2 pt 7, \
			rows('goodput', rtt, 'SEND', 'own-own', 'goodput', 5) using 1:2 with linespoints lc '#c96a00' lw 1.5 pt 5, \
			rows('goodput', rtt, 'READ', 'own-own', 'goodput', 5) using 1:2 with linespoints lc '#2e7d6f' lw 1.5 pt 9, \
			rows('goodput', rtt, 'WRITE', 'own-standard', 'goodput', 5) using 1:2 with linespoints lc '#1f5fa8' dt 2 pt 6, \
			rows('goodput', rtt, 'WRITE', 'standard-own', 'goodput', 5) using 1:2 with linespoints lc '#aa3333' dt 2 pt 4
	}
	eval legend
	plot NaN notitle, keyentry with lines lc '#888888' dt 2 lw 1.5 title 'selective repeat, ideal', \
		keyentry with lines lc '#888888' dt 3 lw 1.5 title 'go-back-N, ideal', \
		keyentry with linespoints lc '#1f5fa8' lw 2 pt 7 title 'WRITE', \
		keyentry with linespoints lc '#c96a00' lw 1.5 pt 5 title 'SEND', \
		keyentry with linespoints lc '#2e7d6f' lw 1.5 pt 9 title 'READ', \
		keyentry with linespoints lc '#1f5fa8' dt 2 pt 6 title 'WRITE to a standard peer', \
		keyentry with linespoints lc '#aa3333' dt 2 pt 4 title 'WRITE from a standard peer'
	unset multiplot
}

if (picture eq 'latency') {
	set multiplot
	n = 3; low = 0.26; high = 0.9; key_high = 0.14
	set logscale y
	set xrange [-0.2:5.3]
	set xlabel 'loss' font ',10' offset 0,0.5
	do for [i = 0:2] {
		rtt = word(rtts, i + 1)
		eval panel
		set title "64-byte SEND and answer, round trips, path of ".(rtt eq '10000' ? '10 ms' : rtt.' us') font ',11'
		set yrange [0.8:*]
		plot rows('latency', rtt, 'SEND', 'own-own', 'p50', 5) using 1:2:xtic(3) with linespoints lc '#888888' pt 7, \
			rows('latency', rtt, 'SEND', 'own-own', 'p99', 5) using 1:2 with linespoints lc '#1f5fa8' lw 2 pt 7, \
			rows('latency', rtt, 'SEND', 'own-own', 'p99.9', 5) using 1:2 with linespoints lc '#c96a00' lw 1.5 pt 5, \
			rows('latency', rtt, 'SEND', 'own-standard', 'p99', 5) using 1:2 with linespoints lc '#1f5fa8' dt 2 pt 6, \
			rows('latency', rtt, 'SEND', 'standard-own', 'p99', 5) using 1:2 with linespoints lc '#aa3333' dt 2 pt 4
	}
	eval legend
	plot NaN notitle, keyentry with linespoints lc '#888888' pt 7 title 'median', \
		keyentry with linespoints lc '#1f5fa8' lw 2 pt 7 title '99 %', \
		keyentry with linespoints lc '#c96a00' lw 1.5 pt 5 title '99.9 %', \
		keyentry with linespoints lc '#1f5fa8' dt 2 pt 6 title '99 %, to a standard peer', \
		keyentry with linespoints lc '#aa3333' dt 2 pt 4 title '99 %, from a standard peer'
	unset multiplot
}

if (picture eq 'faults') {
	set multiplot
	n = 3; key_high = 0.08
	ops = 'WRITE SEND READ'
	what(part) = part eq 'reorder' ? 'late packets, by up to' : part eq 'jitter' ? 'loss, and jitter' : 'loss, and length of bursts'
	set xtics rotate by 35 right font ',9'
	set grid ytics noxtics
	do for [r = 0:1] {
		do for [i = 0:2] {
			part = word('reorder jitter burst', i + 1)
			high = r ? 0.48 : 0.94
			low = r ? 0.22 : 0.68
			eval panel
			set xrange [-0.6:(part eq 'reorder' ? 5.6 : part eq 'jitter' ? 3.6 : 7.6)]
			set title (r ? 'Ping, 99 %, round trips: ' : 'Goodput, % of the line: ').what(part) font ',11'
			if (r) { set logscale y; set yrange [0.8:*] } else { unset logscale y; set yrange [-3:105] }
			if (r) {
				plot rows(part, '10', 'SEND', 'own-own', 'p99', part eq 'reorder' ? 6 : 0) using 1:(NaN):xtic(3) with points, \
					for [k = 0:1] rows(part, k ? '100' : '10', 'SEND', 'own-own', 'p99', 6) using ($1 + beside(k, 2)):2 with points lc '#1f5fa8' pt (k ? 6 : 7)
			} else {
				plot rows(part, '10', 'WRITE', 'own-own', 'goodput', part eq 'reorder' ? 6 : 0) using 1:(NaN):xtic(3) with points, \
					for [k = 0:5] rows(part, k % 2 ? '100' : '10', word(ops, k / 2 + 1), 'own-own', 'goodput', 6) \
					using ($1 + beside(k, 6)):2 with points lc rgb colour(word(ops, k / 2 + 1)) pt (k % 2 ? 6 : 7)
			}
		}
	}
	eval legend
	plot NaN notitle, for [k = 0:5] keyentry with points lc rgb colour(word(ops, k / 2 + 1)) pt (k % 2 ? 6 : 7) title word(ops, k / 2 + 1).(k % 2 ? ', 100 us' : ', 10 us')
	unset multiplot
}

if (picture eq 'incast') {
	set multiplot
	n = 3; low = 0.26; high = 0.9; key_high = 0.12
	set xrange [-0.2:4.3]
	set xlabel 'senders' font ',10' offset 0,0.5
	ecn(metric, op) = "< awk -F '\t' '$1 == \"incast\" && $3 == \"".op."\" && $7 == \"".metric."\" && $6 ~ /ECN/ { printf \"%d\\t%s\\n\", n++, $8 }' '".data."'"
	bare(metric, op) = "< awk -F '\t' '$1 == \"incast\" && $3 == \"".op."\" && $7 == \"".metric."\" && $6 !~ /ECN/ { printf \"%d\\t%s\\t%s\\n\", n++, $8, $6 }' '".data."'"
	do for [i = 0:2] {
		metric = word('goodput fairness p99-us', i + 1)
		op = metric eq 'p99-us' ? 'SEND' : 'WRITE'
		eval panel
		set title (metric eq 'goodput' ? 'Goodput of all senders, % of the line' : metric eq 'fairness' ? "Jain's fairness index" : 'Ping beside them, 99 %, us') font ',11'
		if (metric eq 'p99-us') { set logscale y; set yrange [*:*] } else { set yrange [0:(metric eq 'goodput' ? 105 : 1.05)] }
		plot bare(metric, op) using 1:2:xtic(3) with linespoints lc '#aa3333' lw 2 pt 7, \
			ecn(metric, op) using 1:2 with linespoints lc '#1f5fa8' lw 2 pt 5
	}
	eval legend
	plot NaN notitle, keyentry with linespoints lc '#aa3333' lw 2 pt 7 title 'drop tail', \
		keyentry with linespoints lc '#1f5fa8' lw 2 pt 5 title 'drop tail, ECN and congestion control'
	unset multiplot
}

if (picture eq 'real') {
	set multiplot
	n = 3; low = 0.26; high = 0.9; key_high = 0.12
	set xlabel 'loss' font ',10' offset 0,0.5
	set offsets 0.1, 0.1, 0, 0
	set logscale y
	has_packet = system("grep -c '^real\t.*\turoce-packet\t' '".data."'") > 0
	do for [i = 0:2] {
		panel_of = word('goodput longer latency', i + 1)
		eval panel
		set title (panel_of eq 'goodput' ? 'Goodput over sockets, Gbit/s' : panel_of eq 'longer' ? 'The same, 1 ms longer round trips' : '64 bytes and answer, 99 %, us') font ',11'
		metric = panel_of eq 'latency' ? 'p99-us' : 'gbps'
		rtt = panel_of eq 'longer' ? '1000' : '-'
		set yrange [*:*]
		if (panel_of eq 'latency') { set format y '%.0f' }
		mine = panel_of eq 'latency' ? 'ping' : 'WRITE'
		theirs = panel_of eq 'latency' ? 'ping' : 'stream'
		plot rows('real', rtt, mine, 'uroce-udp', metric, 5) using 1:2:xtic(3) with linespoints lc '#1f5fa8' lw 2 pt 7, \
			rows('real', rtt, mine, 'uroce-packet', metric, 5) using 1:2 with linespoints lc '#c96a00' lw 2 pt 5, \
			rows('real', rtt, theirs, 'TCP-cubic', metric, 5) using 1:2 with linespoints lc '#777777' lw 2 pt 9, \
			rows('real', rtt, theirs, 'TCP-bbr', metric, 5) using 1:2 with linespoints lc '#aa3333' lw 2 pt 11
	}
	unset offsets
	eval legend
	plot NaN notitle, keyentry with linespoints lc '#1f5fa8' lw 2 pt 7 title 'uroce, port udp', \
		keyentry with linespoints lc (has_packet ? '#c96a00' : '#ffffff') lw 2 pt 5 title (has_packet ? 'uroce, port packet' : ''), \
		keyentry with linespoints lc '#777777' lw 2 pt 9 title 'kernel TCP, CUBIC', \
		keyentry with linespoints lc '#aa3333' lw 2 pt 11 title 'kernel TCP, BBR'
	unset multiplot
}
