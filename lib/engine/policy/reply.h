/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether answers wait for a reply. What arrives asks for answers, mostly acknowledgements, and often the application that polls replies at
 * once: then both leave together. Its peer sees the reply no later than the acknowledgement, which matters when it polls for that alone
 * and then waits for its memory to change, as ib_write_lat does: an acknowledgement that came alone would end its polling too early.
 *
 * Going by what the application did lately, answers wait a few microseconds longer than until its next poll. No clock, no lock: under the
 * NIC's.
 */
#ifndef UR_REPLY_H
#define UR_REPLY_H

#include "engine/policy/costs.h"
#include "engine/policy/trust.h"

struct ur_reply {
	ur_time since;           /* answers wait since then; 0: none do */
	struct ur_trust replies; /* the application does, before that */
};

/* True while answers wait and the next poll must not send them. */
bool ur_reply_is_near(const struct ur_reply *r, const struct ur_costs *costs, ur_time now);
/* A round begins that sends what waits, because the application posted or not. */
void ur_reply_sends(struct ur_reply *r, const struct ur_costs *costs, ur_time now, bool posted);
/* After a round: something waits to be sent, or nothing. */
void ur_reply_waits(struct ur_reply *r, ur_time now, bool waits);

#endif
