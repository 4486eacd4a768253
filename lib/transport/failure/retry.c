/* SPDX-License-Identifier: BSD-3-Clause */
/* One more transmission from the oldest unacknowledged packet on, and what it costs. */
#include "transport/failure/retry.h"

#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/failure/unreachable.h"
#include "transport/loss/rewind.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"

void ur_comp_trace_rewind(struct ur_qp *qp, enum ur_trace_cause why)
{
	UR_TRACE(qp->tp->trace, REWIND, qp->qpn, qp->req.una, why, qp->req.retry_left);
}

void ur_comp_trace_window(struct ur_qp *qp)
{
	UR_TRACE(qp->tp->trace, WINDOW, qp->qpn, qp->req.window.size);
}

void ur_comp_window_is_smaller(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	const uint8_t shift = r->window.rd_shift;

	ur_comp_trace_window(qp);
	for (uint32_t i = r->head, left = r->rd_wqes; left && i != r->fresh; i++) {
		struct ur_swqe *w = ur_sq_at(qp, i);

		if (!ur_swqe_in(w, UR_WRS_ANSWERED))
			continue;
		w->rd_shift = (uint8_t)ur_min_u32(w->rd_shift, shift);
		left--;
	}
	r->scoreboard.split = r->max; /* responses of other pieces are still on their way */
}

bool ur_comp_spend_retry(struct ur_qp *qp)
{
	if (!qp->req.retry_left) {
		ur_qp_count(qp, UR_C_RETRY_EXC);
		if (ur_only_short_arrive(qp) && qp->tp->c.only_short)
			qp->tp->c.only_short(qp->tp->c.ctx, &qp->path->dgid, 1u << qp->mtu_shift);
		ur_req_fail(qp, IBV_WC_RETRY_EXC_ERR, 0);
		return false;
	}
	qp->req.retry_left--;
	return true;
}

void ur_comp_hears(struct ur_requester *r)
{
	ur_tail_probe_end(&r->probe);
	r->wait = r->timeout;
}

void ur_comp_hello_again(struct ur_requester *r)
{
	if (r->scoreboard.sacks || ur_psn_diff(r->max, r->hello_most) >= 0)
		return;
	r->hello = true;
	r->hello_end = r->hello_most;
}

void ur_comp_retry(struct ur_qp *qp, enum ur_trace_cause why, bool lost, ur_time now)
{
	struct ur_requester *r = &qp->req;

	if (lost && !ur_comp_spend_retry(qp))
		return;
	if (why != UR_TRACE_CAUSE_TIMEOUT) {
		r->packets_until = r->max;
		ur_comp_hears(r);
	}
	r->deadline = now + r->wait;
	r->retried_at = r->probe.loss_at = now;
	r->rtt.resent = r->max; /* answers to what was sent before may still be on their way */
	ur_comp_hello_again(r);
	ur_req_rewind(qp);
	ur_comp_trace_rewind(qp, why);
}

void ur_comp_implied_nak(struct ur_qp *qp, enum ur_counter otherwise, ur_time now)
{
	if (qp->req.hole) {
		ur_qp_count(qp, otherwise);
		return;
	}
	ur_qp_count(qp, UR_C_IMPLIED_NAK);
	ur_comp_retry(qp, UR_TRACE_CAUSE_LOST_ANSWER, true, now);
	qp->req.hole = ur_qp_st(qp) != IBV_QPS_ERR;
}

void ur_comp_answer_missing(struct ur_qp *qp, uint32_t upto, ur_time now)
{
	if (qp->tp->c.plain_recovery || !ur_scoreboard_start(qp)) {
		ur_comp_implied_nak(qp, UR_C_DROP_GHOST_ACK, now);
		return;
	}
	ur_scoreboard_answered(qp, upto, now);
}
