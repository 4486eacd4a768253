/* SPDX-License-Identifier: BSD-3-Clause */
/* What acknowledgements (completer.c) and answers (responses.c) bring about alike. Acknowledgements have it in line. */
#ifndef UR_PROGRESS_H
#define UR_PROGRESS_H

#include "base/psn.h"
#include "transport/control/window.h"
#include "transport/failure/qp_end.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/loss/rnr.h"
#include "transport/loss/scoreboard.h"
#include "transport/loss/tail_probe.h"
#include "transport/queues/local_op.h"
#include "transport/queues/send_done.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"

/*
 * Completes everything before PSN `upto`. False when it meets a READ or atomic with responses missing before `upto`: `una` then stays at
 * the first of those. `una` always lies within the WQE at `head`.
 */
bool ur_comp_advance(struct ur_qp *qp, uint32_t upto);
/* Something was acknowledged: `una` has moved. */
void ur_comp_progress(struct ur_qp *qp, ur_time now);
/* What may follow from any progress, and from news of what lies beyond a hole. */
void ur_comp_settle(struct ur_qp *qp);
/* The peer keeps what comes beyond a hole, as a SACK shows or what it says; and something was lost. */
void ur_comp_peer_sacks(struct ur_qp *qp);

/* --- in line --- */

void ur_comp_pull_marks(struct ur_requester *r);
void ur_comp_grow_window(struct ur_qp *qp, ur_time now);
void ur_comp_jump(struct ur_qp *qp);
void ur_comp_retransmit(struct ur_qp *qp, ur_time now);

static inline bool ur_comp_advance_inline(struct ur_qp *qp, uint32_t upto)
{
	struct ur_requester *r = &qp->req;

	while (r->head != r->fresh && ur_psn_diff(upto, r->una) > 0) {
		const struct ur_swqe *w = ur_sq_at(qp, r->head);
		uint32_t end = ur_psn_add(w->psn, w->npkts);

		if (ur_swqe_in(w, UR_WRS_ANSWERED))
			return false;
		if (ur_psn_diff(upto, end) < 0) {
			r->una = upto;
			return true;
		}
		r->una = end;
		ur_qp_send_retire(qp, w, IBV_WC_SUCCESS, 0); /* neither a READ nor a datagram */
		if (ur_unlikely(r->locals))
			ur_local_done(qp);
	}
	return true;
}

static inline void ur_comp_progress_inline(struct ur_qp *qp, ur_time now)
{
	struct ur_requester *r = &qp->req;

	r->retry_left = r->retry_cnt;
	r->rnr_left = r->rnr_cnt;
	r->hole = false;
	if (ur_unlikely(r->stops.rnr))
		ur_rnr_progress(r);
	if (ur_unlikely(r->probe.times))
		ur_tail_probe_answered(qp, now);
	r->deadline = now + r->wait;
	if (ur_unlikely(r->scoreboard.busy))
		ur_scoreboard_una_moved(qp, now);
	if (r->rtt.at && ur_psn_diff(r->una, r->rtt.psn) > 0) {
		ur_rtt_sample(&r->rtt, now - r->rtt.at);
		/* Of this packet alone: an acknowledgement of more may take the place of one that was lost. */
		if (ur_unlikely(now - r->rtt.at > r->rtt.high) && r->una == ur_psn_add(r->rtt.psn, 1))
			ur_rtt_late(&r->rtt, now - r->rtt.at);
		r->rtt.at = 0;
		ur_comp_pull_marks(r);
	}
	if (ur_unlikely(r->window.size < r->window.max) && !r->cwnd.on)
		ur_comp_grow_window(qp, now);
	if (ur_unlikely(ur_psn_diff(r->next, r->una) < 0)) /* late acknowledgements have overtaken a retransmission */
		ur_comp_jump(qp);
}

static inline void ur_comp_settle_inline(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;

	if (ur_unlikely(r->scoreboard.busy))
		ur_comp_retransmit(qp, qp->tp->now);
	if (ur_unlikely(ur_qp_st(qp) == IBV_QPS_ERR))
		return;
	if (r->cwnd.on)
		ur_qp_cwnd_heard(qp, qp->tp->now);
	if (ur_unlikely(r->stops.halt && r->cur == r->head)) {
		ur_req_fail(qp, (enum ibv_wc_status)r->stops.halt, 0);
		return;
	}
	if (ur_unlikely(qp->sqd_notify))
		ur_qp_sqd_check(qp);
	/* Requests that are posted from now on announce themselves by the doorbell. */
	if (r->cur != r->tail)
		ur_req_schedule(qp);
}

#endif
