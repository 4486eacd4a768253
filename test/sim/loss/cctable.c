/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion, in virtual time: cctable [PART...]. What senders reach that share a port, by the setting `congestion`; pings of 64 bytes
 * beside them say how long the queue is.
 */
#include <stdio.h>
#include <string.h>

#include "test/sim/loss/stream.h"

#define MS UR_NS_PER_MS
#define US UR_NS_PER_US

static struct stream_result result;

static struct stream_opt base_options(unsigned senders, uint32_t mbps, ur_time rtt, uint32_t queue)
{
	return (struct stream_opt){.senders = senders,
				   .op = IBV_WR_RDMA_WRITE,
				   .mbps = mbps,
				   .rtt = rtt,
				   .queue_bytes = queue,
				   .timeout = 14,
				   .pings = STREAM_PINGS,
				   .warm = 100 * MS, /* longer than the ACK timer */
				   .span = 100 * MS,
				   .seed = 1};
}

static void row(const char *what, struct stream_opt o, enum stream_congestion congestion)
{
	o.congestion = congestion;
	stream_run(&o, &result);
	printf("%-34s %7s | %7.1f %6.2f %9llu %7u", what, stream_congestion_name[congestion], 100 * stream_share(&o, &result, -1),
	       stream_fairness(&o, &result), (unsigned long long)result.queue_drops, result.lost);
	if (result.npings)
		printf(" %9.1f %9.1f", (double)stream_ping(&result, 0.5) / US, (double)stream_ping(&result, 0.99) / US);
	else
		printf(" %9s %9s", "-", "-");
	if (o.silent)
		printf(" %9.1f", 100 * stream_share_after(&o, &result));
	if (o.silent && result.woken != UR_TIME_NEVER)
		printf(" %9.2f", (double)result.woken / MS);
	printf("\n");
	fflush(stdout);
}

static void rows(const char *what, const struct stream_opt *o)
{
	for (unsigned i = 0; i < STREAM_CONGESTIONS; i++)
		row(what, *o, (enum stream_congestion)i);
}

static void head(const char *what)
{
	printf("\n%s\n%-34s %7s | %7s %6s %9s %7s %9s %9s %9s %9s\n", what, "", "", "goodput", "Jain", "dropped", "broken", "ping p50",
	       "p99 us", "after", "woken ms");
}

static void part_incast(uint32_t mbps, uint32_t queue, bool ecn)
{
	char text[64];

	for (unsigned n = 2; n <= STREAM_SENDERS; n *= 4) {
		struct stream_opt o = base_options(n, mbps, 10 * US, queue);

		o.mark_bytes = ecn ? queue / 5 : 0;
		snprintf(text, sizeof(text), "%u senders, %u Gbit/s, %u KB%s", n, mbps / 1000, queue / 1000, ecn ? ", ECN" : "");
		rows(text, &o);
	}
}

static void incast(void)
{
	head("Senders into one port");
	for (unsigned ecn = 0; ecn < 2; ecn++) {
		part_incast(100000, 1000000, ecn);
		part_incast(100000, 200000, ecn);
		part_incast(10000, 200000, ecn);
	}
}

static void reads(void)
{
	char text[64];

	head("READs from one host, or by one");
	for (unsigned n = 2; n <= STREAM_SENDERS; n *= 4) {
		struct stream_opt o = base_options(n, 100000, 10 * US, 200000);

		o.op = IBV_WR_RDMA_READ;
		snprintf(text, sizeof(text), "%u readers of one host", n);
		rows(text, &o);
	}
}

static void qps(void)
{
	char text[64];

	head("QPs of one host, 100 Gbit/s into a port of 10 with 200 KB");
	for (unsigned n = 2; n <= STREAM_SENDERS; n *= 4) {
		struct stream_opt o = base_options(n, 100000, 10 * US, 200000);

		o.one_host = true;
		o.to_mbps = 10000;
		snprintf(text, sizeof(text), "%u QPs", n);
		rows(text, &o);
	}
}

static void silent(void)
{
	char text[64];

	head("A receiver that does nothing for 10 ms");
	for (unsigned n = 1; n <= 8; n *= 8)
		for (unsigned lossy = 0; lossy < 2; lossy++) {
			struct stream_opt o = base_options(n, 100000, 10 * US, 200000);

			o.silent = 10 * MS;
			o.faults.loss = lossy ? 10000 : 0;
			snprintf(text, sizeof(text), "%u senders%s", n, lossy ? ", 1 % lost" : "");
			rows(text, &o);
		}
}

static void single(void)
{
	static const ur_time rtt[] = {10 * US, 100 * US, 1000 * US};
	static const uint32_t ppm[] = {0, 1000, 10000, 50000};
	char text[64];

	head("One sender, losses by chance");
	for (unsigned i = 0; i < ur_array_size(rtt); i++)
		for (unsigned k = 0; k < ur_array_size(ppm); k++)
			for (unsigned op = 0; op < 2; op++) {
				struct stream_opt o = base_options(1, i < 2 ? 100000 : 10000, rtt[i], 0);

				o.op = op ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
				o.pings = 0;
				o.faults.loss = ppm[k];
				o.warm = 20 * MS;
				o.span = 20 * MS;
				snprintf(text, sizeof(text), "%s, %llu us, %g %%", op ? "READ" : "WRITE", (unsigned long long)rtt[i] / US,
					 ppm[k] / 10000.0);
				rows(text, &o);
			}
}

static const struct {
	const char *name;
	void (*print)(void);
} parts[] = {{"incast", incast}, {"reads", reads}, {"qps", qps}, {"silent", silent}, {"single", single}};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < ur_array_size(parts); i++)
		for (int k = 1; k < argc || (argc == 1 && k == 1); k++)
			if (argc == 1 || !strcmp(argv[k], parts[i].name))
				parts[i].print();
	return 0;
}
