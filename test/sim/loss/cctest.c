/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two senders into one link of 10 Gbit/s with a short queue that marks from a quarter on. Without congestion control the queue overflows,
 * and one of them may have the link to itself; with it the senders share the link, and hardly anything is lost.
 */
#include <stdio.h>

#include "test/sim/loss/stream.h"

static unsigned passed, failed;

static void expect(bool ok, const char *what)
{
	printf("%s - %s\n", ok ? "ok" : "not ok", what);
	passed += ok;
	failed += !ok;
}

static struct stream_result measure(bool cc)
{
	const struct stream_opt o = {.senders = 2,
				     .congestion = cc ? STREAM_AUTO : STREAM_OFF,
				     .mbps = 10000,
				     .rtt = 20 * UR_NS_PER_US,
				     .queue_bytes = 400000,
				     .mark_bytes = 100000,
				     .timeout = 14,
				     .warm = 50 * UR_NS_PER_MS,
				     .span = 100 * UR_NS_PER_MS,
				     .seed = 1};
	static struct stream_result r;

	stream_run(&o, &r);
	printf("%s: %.1f %% and %.1f %% of the line, %llu packets dropped, %llu marked, %llu notifications\n",
	       cc ? "congestion control" : "no congestion control", 100 * stream_share(&o, &r, 0), 100 * stream_share(&o, &r, 1),
	       (unsigned long long)r.queue_drops, (unsigned long long)r.marked, (unsigned long long)r.counters[UR_C_CNP_SENT]);
	return r;
}

int main(void)
{
	struct stream_result off = measure(false), on = measure(true);
	uint64_t low = on.bytes[0] < on.bytes[1] ? on.bytes[0] : on.bytes[1];
	uint64_t high = on.bytes[0] < on.bytes[1] ? on.bytes[1] : on.bytes[0];

	expect(!off.lost && !on.lost, "no request fails");
	expect(off.marked == 0 && off.counters[UR_C_CNP_SENT] == 0, "without it packets are not ECN-capable, and nobody notifies");
	expect(off.queue_drops > 0, "without it the queue overflows");
	expect(on.marked > 0 && on.counters[UR_C_CNP_SENT] > 0, "with it there are marks and notifications");
	expect(on.counters[UR_C_CNP_HANDLED] == on.counters[UR_C_CNP_SENT], "every notification is obeyed");
	expect(on.queue_drops * 20 < off.queue_drops, "with it hardly anything is dropped");
	expect((low + high) * 8 > 80 * UR_NS_PER_MS * 10, "the link is used: over 8 of 10 Gbit/s");
	expect(low * 3 > high * 2, "both get their share, within a third");
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
