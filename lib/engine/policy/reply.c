/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/policy/reply.h"

#define ENOUGH 2 /* replies: an answer that waits in vain loses little */

bool ur_reply_is_near(const struct ur_reply *r, const struct ur_costs *costs, ur_time now)
{
	return r->since && ur_trust_is_earned(&r->replies, ENOUGH) && now < r->since + ur_costs_wait(costs, UR_WAIT_REPLY);
}

void ur_reply_sends(struct ur_reply *r, const struct ur_costs *costs, ur_time now, bool posted)
{
	if (r->since && posted)
		ur_trust_keep(&r->replies, ENOUGH);
	else if (r->since && now >= r->since + ur_costs_wait(costs, UR_WAIT_REPLY))
		ur_trust_halve(&r->replies);
	r->since = 0;
}

void ur_reply_waits(struct ur_reply *r, ur_time now, bool waits)
{
	if (!waits)
		r->since = 0;
	else if (!r->since)
		r->since = now;
}
