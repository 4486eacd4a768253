/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many packets may be sent again although nothing shows that they are lost: probes, and copies. An answer that is late looks like one
 * that is lost, and a host that is late must not get more to do by it. So such a packet is paid for: by ten others that were sent for the
 * first time, by a loss that a probe has proved, or by time. A QP has a budget, and so has the process, for all of its QPs together.
 */
#ifndef UR_BUDGET_H
#define UR_BUDGET_H

#include "base/base.h"

#define UR_BUDGET_SHARE 10 /* packets sent for the first time, for one that is sent again */

struct ur_budget_kind {
	uint32_t most;    /* packets: what it begins with, and never has more */
	ur_time interval; /* after which there is one packet more */
};

struct ur_budget {
	uint32_t left; /* in packets / UR_BUDGET_SHARE */
	ur_time at;    /* until when time has been counted; 0: it has not been used, and is full */
};

extern const struct ur_budget_kind ur_budget_of_qp, ur_budget_of_process;

/* `sent` packets have left for the first time, and `lost` ones were paid for that proved to be lost. */
static inline void ur_budget_earn(struct ur_budget *b, const struct ur_budget_kind *k, uint32_t sent, uint32_t lost)
{
	const uint64_t left = b->left + (uint64_t)sent + (uint64_t)lost * UR_BUDGET_SHARE;

	b->left = (uint32_t)ur_min_time(left, (uint64_t)k->most * UR_BUDGET_SHARE);
}

/* Packets that may be sent again now. */
static inline uint32_t ur_budget_left(struct ur_budget *b, const struct ur_budget_kind *k, ur_time now)
{
	const ur_time n = !b->at ? k->most : now > b->at ? (now - b->at) / k->interval : 0;

	b->at = b->at ? b->at + n * k->interval : now;
	ur_budget_earn(b, k, 0, (uint32_t)ur_min_time(n, k->most));
	return b->left / UR_BUDGET_SHARE;
}

/* They were sent, whether or not so many were left. */
static inline void ur_budget_spend(struct ur_budget *b, uint32_t packets)
{
	b->left -= (uint32_t)ur_min_time((uint64_t)packets * UR_BUDGET_SHARE, b->left);
}

#endif
