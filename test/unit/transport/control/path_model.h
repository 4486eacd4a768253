/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A path for congestion windows, packet by packet and in virtual time: senders with links of their own, one queue that they share, and a
 * receiver that acknowledges each packet. A lost packet is known to be lost when it would have been acknowledged.
 */
#ifndef UR_TEST_PATH_MODEL_H
#define UR_TEST_PATH_MODEL_H

#include "base/rng.h"
#include "transport/control/cwnd.h"

#define PM_FLOWS 64

struct pm_flow {
	struct ur_cwnd w;
	ur_time rtt;              /* of the empty path */
	ur_time from;             /* when it begins */
	uint32_t flight, sent;    /* packets: in flight; since the last one that was timed */
	bool timed;               /* one is on its way */
	ur_time free, next, cnp;  /* its own link is free; pacing allows the next packet; the last notification */
	uint64_t delivered, lost; /* packets since pm_run began */
};

struct pm {
	struct ur_rng rng;
	unsigned n;
	struct pm_flow f[PM_FLOWS];
	ur_time packet, own;             /* ns that one takes on the shared link, and on a sender's own */
	uint32_t buffer, mark;           /* packets that wait at most; beyond which they are marked, 0: never */
	uint32_t loss;                   /* parts per million */
	ur_time noise;                   /* an acknowledgement takes up to so much longer */
	ur_time asleep_from, asleep_for; /* the receiver does nothing */
	ur_time now, busy;               /* the shared link is busy until then */
	uint64_t drops, marks;           /* since pm_run began */
	ur_time wait, wait_max;          /* in the queue, of all packets since then */
	uint64_t waits;
	struct pm_event *heap;
	uint32_t events;
};

/* `n` flows with windows of at most `max` packets over a path of 4 KiB packets: a rate in Gbit/s, a round trip, a buffer in packets. */
void pm_open(struct pm *m, unsigned n, uint32_t max, unsigned gbps, ur_time rtt, uint32_t buffer);
void pm_close(struct pm *m);
/* Everything that happens within `span`; counts anew. */
void pm_run(struct pm *m, ur_time span);
/* What the flows delivered in the last pm_run, of what the link carries in `span`; per cent. */
unsigned pm_share(const struct pm *m, ur_time span);
/* Jain's index of the flows `from` to `to`, per cent. */
unsigned pm_fairness(const struct pm *m, unsigned from, unsigned to);
/* The mean wait in the queue, ns. */
ur_time pm_wait(const struct pm *m);

#endif
