/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/reply.h"

#define WAIT_NS (10 * UR_NS_PER_US) /* two frames of one burst are up to five apart when a kernel carries them */
#define HOPE_MAX 3
#define HOPE_ENOUGH 2

bool ur_reply_is_near(const struct ur_reply *r, ur_time now)
{
	return r->since && r->hope >= HOPE_ENOUGH && now < r->since + WAIT_NS;
}

void ur_reply_sends(struct ur_reply *r, ur_time now, bool posted)
{
	if (r->since && posted)
		r->hope += r->hope < HOPE_MAX;
	else if (r->since && now >= r->since + WAIT_NS)
		r->hope -= r->hope > 0;
	r->since = 0;
}

void ur_reply_waits(struct ur_reply *r, ur_time now, bool waits)
{
	if (!waits)
		r->since = 0;
	else if (!r->since)
		r->since = now;
}
