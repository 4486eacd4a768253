/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goodput under loss, in virtual time: losstable [-v]. For WRITE and READ, three numbers: what uroce reaches; what the same transport
 * reaches when it repairs losses by NAKs and the ACK timer alone (plain); and what the textbook says of a go-back-N that never waits for a
 * timer, (1 - p) / (1 + p W) with W packets in a round trip (ideal).
 */
#include <stdio.h>
#include <string.h>

#include "stream.h"

#define MBPS 100000
#define MTU 4096
#define FRAME (MTU + 58 + 24) /* headers, ICRC, FCS, preamble and gap of most packets */

static double ideal(double p, ur_time rtt)
{
	double w = 1 + (double)rtt * MBPS / 8000 / FRAME;

	return (double)MTU / FRAME * (1 - p) / (1 + p * w);
}

static double measure(bool read, bool plain, uint32_t ppm, ur_time rtt, bool verbose)
{
	const struct stream_opt o = {.senders = 1,
				     .read = read,
				     .plain = plain,
				     .mbps = MBPS,
				     .rtt = rtt,
				     .loss_ppm = ppm,
				     .timeout = 14,
				     .warm = 4 * UR_NS_PER_MS,
				     .span = (plain && ppm ? 300 : 16) * UR_NS_PER_MS,
				     .seed = 1,
				     .window = plain ? 512 : 0};
	struct stream_result r;

	stream_run(&o, &r);
	for (unsigned c = 0; verbose && c < UR_C_COUNT; c++)
		if (r.counters[c])
			printf("    %s %llu\n", ur_counter_name((enum ur_counter)c), (unsigned long long)r.counters[c]);
	return r.failed ? 0 : 100 * stream_share(&o, &r, -1);
}

int main(int argc, char **argv)
{
	static const uint32_t ppm[] = {0, 100, 1000, 10000, 50000};
	static const ur_time rtt[] = {10 * UR_NS_PER_US, 100 * UR_NS_PER_US};
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");

	printf("Goodput in %% of the line rate, one QP, 100 Gbit/s, MTU 4096, ACK timer 67 ms; loss in either direction\n\n");
	printf("%10s %8s | %7s %7s | %7s %7s | %7s\n", "", "", "WRITE", "", "READ", "", "both");
	printf("%10s %8s | %7s %7s | %7s %7s | %7s\n", "RTT", "loss", "uroce", "plain", "uroce", "plain", "ideal");
	for (unsigned i = 0; i < ur_array_size(rtt); i++)
		for (unsigned k = 0; k < ur_array_size(ppm); k++) {
			double v[4];

			for (unsigned m = 0; m < 4; m++)
				v[m] = measure(m >> 1, m & 1, ppm[k], rtt[i], verbose);
			printf("%7llu us %6g %% | %7.1f %7.1f | %7.1f %7.1f | %7.1f\n", (unsigned long long)(rtt[i] / UR_NS_PER_US),
			       ppm[k] / 10000.0, v[0], v[1], v[2], v[3], 100 * ideal(ppm[k] / 1e6, rtt[i]));
			fflush(stdout);
		}
	return 0;
}
