/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Farewells: what the peer of each connection is to hear should this process be killed, when it has no time to say anything. The message
 * is made anew with each change of the state, since nobody can make it afterwards.
 */
#include "base/bytes.h"
#include "cm/internal.h"

#define MAD_ATTR_OFF 16

/* The peer asked before: it waits for the answer, or may ask again for the one that it has been given. */
static bool answer(const struct ur_cm_conn *c, uint8_t *mad)
{
	if (c->state == UR_CM_DREQ_RCVD)
		ur_cm_build_drep(c->local_id, c->remote_id, c->tid, NULL, 0, mad);
	else if (ur_get16(c->mad + MAD_ATTR_OFF) == UR_CM_DREP)
		memcpy(mad, c->mad, UR_MAD_LEN);
	else
		return false;
	return true;
}

static void refuse(const struct ur_cm_conn *c, uint8_t *mad)
{
	const struct ur_cm_refusal *r = &ur_cm_refusals[c->state];
	const struct ur_cm_rej_spec s = {.reason = UR_CM_REJ_CONSUMER_DEFINED, .about = r->about};

	ur_cm_build_rej(r->id_known ? c->local_id : 0, c->remote_id, c->tid, &s, mad);
}

/* What ur_cm_conn_destroy would say. False when it would say nothing. */
static bool farewell(const struct ur_cm_conn *c, uint8_t *mad)
{
	switch (c->state) {
	case UR_CM_REQ_SENT:
	case UR_CM_MRA_REQ_RCVD:
		ur_cm_build_withdrawal(c, mad);
		return true;
	case UR_CM_ESTABLISHED:
	case UR_CM_DREQ_SENT:
		ur_cm_build_dreq(c, NULL, 0, mad);
		return true;
	case UR_CM_DREQ_RCVD:
	case UR_CM_TIMEWAIT:
		return answer(c, mad);
	default:
		if (!ur_cm_refusals[c->state].allowed)
			return false;
		refuse(c, mad);
		return true;
	}
}

void ur_cm_enter(struct ur_cm_conn *c, enum ur_cm_state state)
{
	const struct ur_cm_config *cfg = &c->cm->cfg;
	uint8_t mad[UR_MAD_LEN];

	c->state = state;
	if (cfg->will)
		cfg->will(cfg->ctx, &c->will, &c->addr, farewell(c, mad) ? mad : NULL);
}
