/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/state/req_state.h"

#include "transport/state/req_next.h"

_Static_assert(sizeof(union ur_stops) == sizeof(uint64_t), "each member is in `any`");

const char *ur_req_state_name(enum ur_req_state s)
{
	static const char *const names[] = {
#define UR_REQ_STATE_NAME(n) #n,
		UR_REQ_STATES(UR_REQ_STATE_NAME)
#undef UR_REQ_STATE_NAME
	};

	return s < UR_REQ_STATE_COUNT ? names[s] : "?";
}

enum ur_req_state ur_req_next_unusual(struct ur_qp *qp)
{
	const struct ur_requester *r = &qp->req;

	if (r->stops.rnr == UR_RNR_WAITS)
		return UR_REQ_RNR_WAIT;
	if (qp->req.stops.blocked | r->stops.paused)
		return UR_REQ_PACED;
	if (r->stops.probe)
		return UR_REQ_PROBE;
	if (r->stops.lost)
		return r->cwnd.on && !ur_req_may_retransmit(r) ? UR_REQ_WINDOW : UR_REQ_RETRANSMIT;
	if (r->stops.halt)
		return UR_REQ_HALT;
	if (r->stops.rnr == UR_RNR_ASKS)
		return ur_req_in_flight(r) ? UR_REQ_RNR_WAIT : UR_REQ_ASK;
	return ur_rnr_stops(r, r->cur) ? UR_REQ_RNR_WAIT : ur_req_next_usual(qp);
}

enum ur_req_state ur_req_next(struct ur_qp *qp)
{
	return ur_req_next_state(qp);
}

void ur_req_schedule(struct ur_qp *qp)
{
	bool has_work;

	if (!ur_list_empty(&qp->link[UR_TXQ_REQ]))
		return;
	if (ur_unlikely(qp->type == IBV_QPT_UD))
		has_work = ur_req_has_datagram(qp);
	else
		has_work = ur_qp_path_ready(qp) && ur_req_can_send(ur_req_next_state(qp));
	if (has_work)
		ur_list_add_tail(&qp->tp->txq[UR_TXQ_REQ], &qp->link[UR_TXQ_REQ]);
}
