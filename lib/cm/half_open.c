/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half-open connections: accepted ones whose peer has not shown that it has the REP. An attacker that spoofs addresses never has it, and
 * would have REPs repeated for a minute, with what the program keeps for each. An honest peer answers within a round trip, asks for time
 * (MRA), or uses the connection, of which a program that knows so may have told nobody. So where there are many, REPs are repeated for one
 * response timeout, and where there are too many, the oldest makes room for a new request: it ends as if its REPs had gone unanswered. None
 * does before it has had UR_CM_HALF_OPEN_LEAST; until then requests wait, as when a backlog is full, and are repeated by their senders.
 */
#include "cm/internal.h"

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

/* What has come for its QP shows as well that the peer has the REP. Then it is half-open no more. */
static bool is_in_use(struct ur_cm_conn *c, ur_time now)
{
	const struct ur_cm_config *cfg = &c->cm->cfg;

	c->heard |= cfg->in_use && cfg->in_use(cfg->ctx, c->local_qpn, now);
	ur_cm_half_open_note(c);
	return c->heard;
}

bool ur_cm_half_open_gives_up(struct ur_cm_conn *c, ur_time now)
{
	if (ur_list_empty(&c->half_open) || c->cm->nhalf_open <= most(c->cm) / UR_CM_HALF_OPEN_MANY || is_in_use(c, now))
		return false;
	ur_cm_count(c->cm, UR_C_CM_HALF_OPEN);
	return true;
}

bool ur_cm_half_open_room(struct ur_cm *cm, ur_time now)
{
	while (cm->nhalf_open >= most(cm)) {
		struct ur_cm_conn *c = ur_container_of(cm->half_open.next, struct ur_cm_conn, half_open);

		if (is_in_use(c, now))
			continue;
		if (now < c->waiting_since + UR_CM_HALF_OPEN_LEAST)
			return false;
		ur_cm_count(cm, UR_C_CM_HALF_OPEN);
		ur_cm_conn_hold(c);
		ur_cm_conn_give_up(c, now);
		ur_cm_conn_release(c);
	}
	return true;
}
