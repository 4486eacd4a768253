/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What losses may cost at most, of what losstable shows: a receiver that does nothing for a while costs no connection, no storm of repeats
 * and no time when it wakes; one that posts receives late costs no storm and leaves none of them unused; the last packet of a burst is
 * missed at once; and nothing is sent again for ever.
 */
#include <stdio.h>

#include "test/sim/loss/stream.h"

#define US UR_NS_PER_US
#define MS UR_NS_PER_MS

static struct stream_result result;
static unsigned passed, failed;

static void expect(bool ok, const char *what, double is)
{
	printf("%s - %s: %.3g\n", ok ? "ok" : "not ok", what, is);
	passed += ok;
	failed += !ok;
}

static struct stream_opt options(enum ibv_wr_opcode op, uint32_t loss_ppm)
{
	return (struct stream_opt){.senders = 1,
				   .op = op,
				   .mbps = 100000,
				   .rtt = 10 * US,
				   .faults = {.loss = loss_ppm},
				   .timeout = 14,
				   .warm = 4 * MS,
				   .span = 16 * MS,
				   .seed = 1};
}

static void silence(enum ibv_wr_opcode op, uint32_t loss_ppm, ur_time silent)
{
	static const char *const name[] = {[IBV_WR_RDMA_WRITE] = "WRITE", [IBV_WR_SEND] = "SEND", [IBV_WR_RDMA_READ] = "READ"};
	struct stream_opt o = options(op, loss_ppm);

	o.silent = silent;
	stream_run(&o, &result);
	printf("%s, %g %% loss, silent for %llu ms\n", name[op], loss_ppm / 10000.0, (unsigned long long)(silent / MS));
	expect(!result.lost, "connections lost", result.lost);
	expect(result.repeats < 1500, "packets sent again", (double)result.repeats);
	expect(result.woken <= 2 * MS, "ms until it is as fast as before", (double)result.woken / MS);
	expect(stream_share_after(&o, &result) > 0.95, "share of the line behind that", stream_share_after(&o, &result));
}

static void ping(uint32_t loss_ppm)
{
	struct stream_opt o = options(IBV_WR_SEND, loss_ppm);

	o.senders = 0;
	o.pings = STREAM_PINGS;
	o.warm = 0;
	o.span = 1000 * UR_NS_PER_S;
	stream_run(&o, &result);
	printf("pings, %g %% loss\n", loss_ppm / 10000.0);
	expect(!result.lost, "connections lost", result.lost);
	expect(stream_ping(&result, 0.99) < 3 * o.rtt, "round trips that 99 % take", (double)stream_ping(&result, 0.99) / (double)o.rtt);
}

/*
 * Many connections exchange short messages, as clients of a data store and the store do, and each host has to share its CPUs: an answer
 * that is late is no reason to send anything again.
 */
static void storm(uint32_t loss_ppm, ur_time late, bool standard)
{
	struct stream_opt o = options(IBV_WR_SEND, loss_ppm);
	double lost, again;

	o.senders = 0;
	o.standard[STREAM_RECEIVER] = standard;
	o.rtt = 500 * US;
	o.pings = STREAM_PINGS;
	o.pingers = STREAM_PINGERS;
	o.late = late;
	o.timeout = 17;
	o.span = 500 * MS;
	o.calm = 2500 * MS;
	stream_run(&o, &result);
	lost = (double)result.lost_packets;
	again = (double)result.again;
	printf("%u connections%s, %g %% loss, hosts late by up to %g ms\n", STREAM_PINGERS,
	       standard ? ", to a host of another make" : "", loss_ppm / 10000.0, (double)late / MS);
	expect(!result.lost, "connections lost", result.lost);
	expect(again < 2 * lost + 1, "requests sent again for each packet lost", lost > 0 ? again / lost : again);
	expect(again <= lost + (double)result.sent / 10, "share of what is sent, beyond what was lost",
	       (again - lost) / (double)result.sent);
	expect(result.calm_pings > 10000 && !result.calm_again, "requests sent again in a second without losses",
	       (double)result.calm_again);
}

/*
 * A receiver that posts few receives, and late: they are taken as soon as they are there, and what comes too early costs no more than what
 * they have room for.
 */
static void late(unsigned receives, ur_time rests, bool goes_back)
{
	struct stream_opt o = options(IBV_WR_SEND, 0);
	double most, packets;

	o.receives = receives;
	o.rests = rests;
	o.standard[STREAM_RECEIVER] = goes_back;
	stream_run(&o, &result);
	most = (double)receives * (128 << 10) * (double)(o.span / rests);
	packets = (double)result.bytes[0] / 4096 * (double)(o.warm + o.span) / (double)o.span;
	printf("SENDs, %u receives every %llu us%s\n", receives, (unsigned long long)(rests / US), goes_back ? ", nothing is kept" : "");
	expect(!result.lost, "connections lost", result.lost);
	expect((double)result.bytes[0] > 0.9 * most, "share of the receives that are used", (double)result.bytes[0] / most);
	expect((double)result.counters[UR_C_RETRANSMIT] < 2.5 * packets, "packets sent again for each that was taken",
	       (double)result.counters[UR_C_RETRANSMIT] / packets);
}

int main(void)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};
	static const ur_time silent[] = {10 * MS, 100 * MS, 1000 * MS};

	for (unsigned i = 0; i < ur_array_size(op); i++)
		for (unsigned k = 0; k < ur_array_size(silent); k++) {
			silence(op[i], 0, silent[k]);
			silence(op[i], 10000, silent[k]);
		}
	for (unsigned goes_back = 0; goes_back < 2; goes_back++) {
		late(1, 100 * US, goes_back);
		late(4, 200 * US, goes_back);
		late(16, 1000 * US, goes_back);
	}
	ping(1000);
	ping(10000);
	storm(0, 10 * MS, false);
	storm(5000, 10 * MS, false);
	storm(10000, 3 * MS, false);
	storm(10000, 0, false);
	storm(10000, 3 * MS, true);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
