# SPDX-License-Identifier: BSD-3-Clause
#
# gnuplot -e "data='FILE'; picture='NAME'" loss.gp: what 'tools/bench loss --data FILE' has kept, as an SVG picture on standard output: goodput, latency
# and incast (one panel a quantity or round trip), faults (reordering, jitter, bursts), real (over sockets, beside kernel TCP).

set terminal svg size 1000,(picture eq 'faults' ? 640 : 360) background '#ffffff' font 'Helvetica,Arial,sans-serif,12'
set border 3 lc '#888888'
set tics nomirror
set ytics textcolor '#444444'
set grid ytics lc '#dddddd' lt 1
# One legend for all panels, below them, which the first panel draws.
set key at screen 0.5,0.01 center bottom horizontal maxrows 2 Left reverse font ',10' samplen 2
set datafile separator '\t'
set pointsize 0.6

# One metric of a part by what changes, in the order of the file: number, figure, and name of the place. `by` is the column of that name: 5 for the loss,
# 6 for what else. Figures that are not there are left out.
rows(part, rtt, op, peers, metric, by) = sprintf("< awk -F '\t' '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $4 == \"%s\" && $7 == \"%s\" { x = n++; if ($8 != \"-\") \
	printf \"%%d\\t%%s\\t%%s\\n\", x, $8, $%d (%d == 5 ? \" %%\" : \"\") }' '%s'", part, rtt, op, peers, metric, by, by, data)

colour(op) = op eq 'WRITE' ? '#1f5fa8' : op eq 'SEND' ? '#c96a00' : '#2e7d6f'
rtts = '10 100 10000'
name(rtt) = rtt eq '10' ? '10 us, 100 Gbit/s' : rtt eq '100' ? '100 us, 100 Gbit/s' : '10 ms, 10 Gbit/s'

if (picture eq 'goodput') {
	set multiplot layout 1,3 margins 0.05,0.99,0.22,0.9 spacing 0.05
	set yrange [0:105]
	set xrange [-0.2:5.2]
	do for [rtt in rtts] {
		set title "Goodput, % of the line, round trip ".name(rtt) font ',11'
		if (!(rtt eq '10')) { unset key }
		plot rows('goodput', rtt, '-', 'selective', 'goodput', 5) using 1:2:xtic(3) with lines lc '#888888' dt 2 lw 1.5 title 'selective repeat, ideal', \
			rows('goodput', rtt, '-', 'go-back-N', 'goodput', 5) using 1:2 with lines lc '#888888' dt 3 lw 1.5 title 'go-back-N, ideal', \
			rows('goodput', rtt, 'WRITE', 'own-own', 'goodput', 5) using 1:2 with linespoints lc '#1f5fa8' lw 2 pt 7 title 'WRITE', \
			rows('goodput', rtt, 'SEND', 'own-own', 'goodput', 5) using 1:2 with linespoints lc '#c96a00' lw 1.5 pt 5 title 'SEND', \
			rows('goodput', rtt, 'READ', 'own-own', 'goodput', 5) using 1:2 with linespoints lc '#2e7d6f' lw 1.5 pt 9 title 'READ', \
			rows('goodput', rtt, 'WRITE', 'own-standard', 'goodput', 5) using 1:2 with linespoints lc '#1f5fa8' dt 2 pt 6 title 'WRITE to a standard peer', \
			rows('goodput', rtt, 'WRITE', 'standard-own', 'goodput', 5) using 1:2 with linespoints lc '#aa3333' dt 2 pt 4 title 'WRITE from a standard peer'
	}
	unset multiplot
}

if (picture eq 'latency') {
	set multiplot layout 1,3 margins 0.06,0.99,0.22,0.9 spacing 0.05
	set logscale y
	set xrange [-0.2:5.2]
	do for [rtt in rtts] {
		set title "64-byte SEND and answer, round trips, path of ".(rtt eq '10000' ? '10 ms' : rtt.' us') font ',11'
		if (!(rtt eq '10')) { unset key }
		set yrange [0.8:*]
		plot rows('latency', rtt, 'SEND', 'own-own', 'p50', 5) using 1:2:xtic(3) with linespoints lc '#888888' pt 7 title 'median', \
			rows('latency', rtt, 'SEND', 'own-own', 'p99', 5) using 1:2 with linespoints lc '#1f5fa8' lw 2 pt 7 title '99 %', \
			rows('latency', rtt, 'SEND', 'own-own', 'p99.9', 5) using 1:2 with linespoints lc '#c96a00' lw 1.5 pt 5 title '99.9 %', \
			rows('latency', rtt, 'SEND', 'own-standard', 'p99', 5) using 1:2 with linespoints lc '#1f5fa8' dt 2 pt 6 title '99 %, to a standard peer', \
			rows('latency', rtt, 'SEND', 'standard-own', 'p99', 5) using 1:2 with linespoints lc '#aa3333' dt 2 pt 4 title '99 %, from a standard peer'
	}
	unset multiplot
}

if (picture eq 'faults') {
	set multiplot layout 2,3 margins 0.05,0.99,0.18,0.95 spacing 0.05,0.2
	set xtics rotate by 35 right font ',9'
	set xrange [-0.4:*]
	do for [metric in 'goodput p99'] {
		do for [part in 'reorder jitter burst'] {
			set title (metric eq 'goodput' ? 'Goodput, % of the line: ' : 'Ping, 99 %, round trips: ').(part eq 'reorder' ? 'reordering' : part eq 'jitter' ? 'jitter (without loss, with 1 %)' : 'bursts (of 0.1 %, of 1 %)') font ',11'
			if (metric eq 'goodput') { unset logscale y; set yrange [0:105] } else { set logscale y; set yrange [0.8:*] }
			if (!(part eq 'reorder' && metric eq 'goodput')) { unset key }
			if (metric eq 'goodput') {
				plot for [op in 'WRITE SEND READ'] rows(part, '10', op, 'own-own', 'goodput', 6) using 1:2:xtic(3) with linespoints lc rgb colour(op) \
					pt 7 title op.', 10 us', \
					for [op in 'WRITE SEND READ'] rows(part, '100', op, 'own-own', 'goodput', 6) using 1:2 with linespoints lc rgb colour(op) \
					dt 2 pt 6 title op.', 100 us'
			} else {
				plot rows(part, '10', 'SEND', 'own-own', 'p99', 6) using 1:2:xtic(3) with linespoints lc '#1f5fa8' pt 7 title '10 us', \
					rows(part, '100', 'SEND', 'own-own', 'p99', 6) using 1:2 with linespoints lc '#1f5fa8' dt 2 pt 6 title '100 us'
			}
		}
	}
	unset multiplot
}

if (picture eq 'incast') {
	set multiplot layout 1,3 margins 0.06,0.99,0.22,0.9 spacing 0.06
	set xrange [-0.2:4.2]
	ecn(metric, op) = "< awk -F '\t' '$1 == \"incast\" && $3 == \"".op."\" && $7 == \"".metric."\" && $6 ~ /ECN/ { printf \"%d\\t%s\\n\", n++, $8 }' '".data."'"
	bare(metric, op) = "< awk -F '\t' '$1 == \"incast\" && $3 == \"".op."\" && $7 == \"".metric."\" && $6 !~ /ECN/ { printf \"%d\\t%s\\t%s\\n\", n++, $8, $6 }' '".data."'"
	do for [metric in 'goodput fairness p99-us'] {
		op = metric eq 'p99-us' ? 'SEND' : 'WRITE'
		set title (metric eq 'goodput' ? 'Goodput of all senders, % of the line' : metric eq 'fairness' ? "Jain's fairness index" : 'Ping beside them, 99 %, us') font ',11'
		if (metric eq 'p99-us') { set logscale y; set yrange [*:*] } else { set yrange [0:(metric eq 'goodput' ? 105 : 1.05)] }
		if (!(metric eq 'goodput')) { unset key }
		plot bare(metric, op) using 1:2:xtic(3) with linespoints lc '#aa3333' lw 2 pt 7 title 'drop tail', \
			ecn(metric, op) using 1:2 with linespoints lc '#1f5fa8' lw 2 pt 5 title 'drop tail, ECN and congestion control'
	}
	unset multiplot
}

if (picture eq 'real') {
	set multiplot layout 1,3 margins 0.06,0.99,0.22,0.9 spacing 0.06
	do for [panel in 'goodput longer latency'] {
		set title (panel eq 'goodput' ? 'Goodput over sockets, Gbit/s' : panel eq 'longer' ? 'The same, 1 ms longer round trips' : '64 bytes and answer, 99 %, us') font ',11'
		metric = panel eq 'latency' ? 'p99-us' : 'gbps'
		rtt = panel eq 'longer' ? '1000' : '-'
		set logscale y
		set yrange [*:*]
		if (!(panel eq 'goodput')) { unset key }
		mine = panel eq 'latency' ? 'ping' : 'WRITE'
		theirs = panel eq 'latency' ? 'ping' : 'stream'
		plot rows('real', rtt, mine, 'uroce-udp', metric, 5) using 1:2:xtic(3) with linespoints lc '#1f5fa8' lw 2 pt 7 title 'uroce, port udp', \
			rows('real', rtt, mine, 'uroce-packet', metric, 5) using 1:2 with linespoints lc '#c96a00' lw 2 pt 5 title 'uroce, port packet', \
			rows('real', rtt, theirs, 'TCP-cubic', metric, 5) using 1:2 with linespoints lc '#777777' lw 2 pt 9 title 'kernel TCP, CUBIC', \
			rows('real', rtt, theirs, 'TCP-bbr', metric, 5) using 1:2 with linespoints lc '#aa3333' lw 2 pt 11 title 'kernel TCP, BBR'
	}
	unset multiplot
}
