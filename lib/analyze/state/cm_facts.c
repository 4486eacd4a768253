/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/state/cm_facts.h"

uint32_t an_cm_depth(const struct an_cm *c, bool second)
{
	return c->depth[second];
}

enum ur_an_ending an_cm_ending(const struct an_cm *c)
{
	const bool dreq = c->msg[0][UR_CM_DREQ - UR_CM_REQ].n || c->msg[1][UR_CM_DREQ - UR_CM_REQ].n;

	return c->rej_frame ? UR_AN_REJECTED : dreq ? UR_AN_DISCONNECTED : UR_AN_OPEN;
}

void an_cm_facts(const struct an_cm *c, struct ur_an_conn *out)
{
	const struct an_cm_message *mine = c->msg[0], *other = c->msg[1];
	const struct an_cm_message *dreq = mine[UR_CM_DREQ - UR_CM_REQ].n ? &mine[UR_CM_DREQ - UR_CM_REQ] : NULL;

	if (other[UR_CM_DREQ - UR_CM_REQ].n && (!dreq || other[UR_CM_DREQ - UR_CM_REQ].frame < dreq->frame)) {
		dreq = &other[UR_CM_DREQ - UR_CM_REQ];
		out->dreq_by_second = true;
	}
	out->cm = true;
	out->req_frame = mine[0].frame;
	out->rep_frame = other[UR_CM_REP - UR_CM_REQ].frame;
	out->rtu_frame = mine[UR_CM_RTU - UR_CM_REQ].frame;
	out->rej_frame = c->rej_frame;
	out->rej_by_second = other[UR_CM_REJ - UR_CM_REQ].n;
	out->rej_reason = c->reason;
	out->dreq_frame = dreq ? dreq->frame : 0;
	out->dreq_when = dreq ? dreq->when : 0;
	out->drep_frame = c->msg[!out->dreq_by_second][UR_CM_DREP - UR_CM_REQ].frame;
	out->ending = an_cm_ending(c);
	out->cm_repeated = c->repeated;
	out->retry_count = c->req.retry_count;
	out->ack_timeout = c->req.primary.ack_timeout;
	for (unsigned i = 0; i < ur_array_size(c->said); i++)
		out->said[i] = *c->said[i] ? c->said[i] + strlen(AN_SAID) : NULL;
	for (unsigned i = 0; i < 2; i++) {
		out->depth[i] = c->depth[i];
		out->rnr_retry[i] = c->rnr_retry[i];
	}
}
