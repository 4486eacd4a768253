/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/policy/costs.h"

#define SLOWLY 16 /* the part that one measurement counts */
#define FEW 2
#define CUT 4 /* one that is longer by more than this part was held up by others: so quick ones, of a free CPU, outweigh them */

static void measured(_Atomic ur_time *cost, ur_time took, ur_time min, ur_time max)
{
	ur_time before = atomic_load_explicit(cost, memory_order_relaxed);
	ur_time t = ur_costs_follow(before, ur_min_time(took, before + before / CUT), SLOWLY);

	atomic_store_explicit(cost, t < min ? min : ur_min_time(t, max), memory_order_relaxed);
}

void ur_costs_init(struct ur_costs *c)
{
	atomic_store_explicit(&c->wake, UR_COSTS_WAKE, memory_order_relaxed);
	atomic_store_explicit(&c->send, UR_COSTS_SEND, memory_order_relaxed);
}

void ur_costs_woke(struct ur_costs *c, ur_time began, ur_time until, ur_time now)
{
	if (until > began && until - began <= ur_costs_wait(c, UR_WAIT_LATE) && now >= until)
		measured(&c->wake, now - until, UR_COSTS_WAKE_MIN, UR_COSTS_WAKE_MAX);
}

void ur_costs_sent(struct ur_costs *c, unsigned packets, ur_time took)
{
	if (!packets || packets > FEW)
		return;
	measured(&c->send, took, UR_COSTS_SEND_MIN, UR_COSTS_SEND_MAX);
}
