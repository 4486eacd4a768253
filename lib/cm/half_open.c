/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half-open connections: accepted ones whose peer has not shown that it has the REP. Whoever spoofs addresses never has it, and would have
 * REPs repeated for a minute, with what the program keeps for each. An honest peer answers within a round trip, or asks for time (MRA). So
 * where there are many, REPs are repeated for one response timeout, and where there are too many, the oldest makes room for a new request:
 * it ends as if its REPs had gone unanswered. None does before it has had UR_CM_HALF_OPEN_LEAST; until then requests wait, as when a
 * backlog is full, and are repeated by their senders.
 */
#include "cm/internal.h"

#define LOOKED_AT 16 /* of the oldest, which may be in use without an RTU */

static unsigned most(const struct ur_cm *cm)
{
	return cm->cfg.half_open ? cm->cfg.half_open : UR_CM_HALF_OPEN;
}

void ur_cm_half_open_note(struct ur_cm_conn *c)
{
	const bool is = c->state == UR_CM_REP_SENT && !c->heard;
	struct ur_cm *cm = c->cm;

	if (is && ur_list_empty(&c->half_open)) {
		ur_list_add_tail(&cm->half_open, &c->half_open);
		cm->nhalf_open++;
	} else if (!is && !ur_list_empty(&c->half_open)) {
		ur_list_del(&c->half_open);
		cm->nhalf_open--;
	}
}

bool ur_cm_half_open_gives_up(struct ur_cm_conn *c)
{
	if (ur_list_empty(&c->half_open) || c->cm->nhalf_open <= most(c->cm) / UR_CM_HALF_OPEN_MANY)
		return false;
	ur_cm_count(c->cm, UR_C_CM_HALF_OPEN);
	return true;
}

/* The oldest one that nothing is heard of. What is in use, by a program that tells nobody, has a turn again after all others. */
static struct ur_cm_conn *oldest(struct ur_cm *cm, ur_time now)
{
	for (unsigned i = 0; i < LOOKED_AT && !ur_list_empty(&cm->half_open); i++) {
		struct ur_cm_conn *c = ur_container_of(cm->half_open.next, struct ur_cm_conn, half_open);

		if (!cm->cfg.in_use || !cm->cfg.in_use(cm->cfg.ctx, c->local_qpn, now))
			return c;
		ur_list_del(&c->half_open);
		ur_list_add_tail(&cm->half_open, &c->half_open);
	}
	return NULL;
}

bool ur_cm_half_open_room(struct ur_cm *cm, ur_time now)
{
	while (cm->nhalf_open >= most(cm)) {
		struct ur_cm_conn *c = oldest(cm, now);

		if (!c || now < c->waiting_since + UR_CM_HALF_OPEN_LEAST)
			return false;
		ur_cm_count(cm, UR_C_CM_HALF_OPEN);
		ur_cm_conn_hold(c);
		ur_cm_conn_give_up(c, now);
		ur_cm_conn_release(c);
	}
	return true;
}
