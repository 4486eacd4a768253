# SPDX-License-Identifier: BSD-3-Clause
#
# gnuplot -e "data='FILE'" plot.gp: what 'tools/bench perftest --data FILE' has kept, as an SVG picture on standard output. On the left the latency of
# 8 bytes, on the right the bandwidth of 64 KiB at the greatest queue depth; a group of bars for each MTU.

set terminal svg size 1000,430 background '#ffffff' font 'Helvetica,Arial,sans-serif,12'
set style fill solid border -1
set border 3 lc '#888888'
set tics nomirror
set ytics textcolor '#444444'
set grid ytics lc '#dddddd' lt 1
set xtics scale 0
set boxwidth 0.9
unset key

# The bars of a kind, a row each: place, median, colour, name of the bar. Bars of a group are one apart, groups two.
bars(kind, size) = sprintf("< awk -F '\t' -v kind=%s -v size=%s '$2 == kind && $6 == size && $3 + 0 >= most { if ($3 + 0 > most) { most = $3 + 0; n = 0 } row[n++] = $0 } \
	function name(f,    p) { p = f[4]; sub(/^ib_/, \"\", p); sub(/_(lat|bw)$/, \"\", p); \
		return p == \"TCP\" ? \"kernel TCP\" : p == \"UCX\" ? \"UCX over TCP\" : p == \"mock\" ? \"mock of udp\" : \
		p == \"raw\" ? \"frames on \" f[5] : \"uroce \" f[5] \" \" toupper(p) } \
	function colour(f) { return f[4] == \"TCP\" ? 7829367 : f[4] == \"UCX\" ? 11184810 : f[4] == \"mock\" || f[4] == \"raw\" ? 13421772 : \
		 f[5] == \"udp\" ? 2056104 : f[5] == \"packet\" ? 13199872 : 3046735 } \
	END { for (i = 0; i < n; i++) { split(row[i], f, \"\t\"); x += f[1] != mtu && i ? 2 : 1; mtu = f[1]; \
		printf \"%%g\\t%%s\\t%%d\\t%%s\\t%%s\\n\", x, f[7], colour(f), name(f), mtu } }' '%s'", kind, size, data)
groups(kind, size) = bars(kind, size)." | awk -F '\\t' '{ n[$5]++; x[$5] += $1 } END { for (m in n) printf \"%g\\tMTU %s\\n\", x[m] / n[m], m }'"

set datafile separator '\t'
set multiplot layout 1,2 margins 0.05,0.99,0.40,0.88 spacing 0.06
set xtics rotate by 55 right offset 0,0.2 font ',11'

do for [panel in 'lat bw'] {
	size = panel eq 'lat' ? '8' : '65536'
	set title (panel eq 'lat' ? "Latency of 8 bytes, us (half a round trip): less is better" : "Bandwidth of 64 KiB, Gbit/s: more is better") offset 0,0.8
	set yrange [0:*]
	plot bars(panel, size) using 1:2:3:xtic(4) with boxes lc rgb variable, \
		'' using 1:2:(sprintf('%.3g', $2)) with labels offset 0,0.6 font ',10', \
		groups(panel, size) using 1:(0):2 with labels offset 0,-8.1 font ',12'
}
unset multiplot
