/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable connections (IBTA volume 1, 9.8.2 and 9.9.3). Requester: a WQE is done when its last packet has been handed out. Responder: a
 * packet that does not continue its message ends it, without a word to the peer and without a completion (unless the receive is an SRQ's,
 * to which others have a right as well); the next FIRST or ONLY begins a new one with the same receive WQE.
 */
#include "transport/failure/qp_end.h"
#include "transport/queues/send_done.h"
#include "transport/requester/requester.h"
#include "transport/responder/resp_rx.h"
#include "transport/responder/uc_message.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"
#include "transport/uc.h"
#include "wire/opcode.h"

/* --- responder --- */

void ur_uc_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;

	if (op->flags & UR_OPF_FIRST) {
		if (ur_unlikely(r->expect))
			ur_uc_give_up(qp); /* whatever was in flight is over */
		r->epsn = p->bth.psn;
	} else if (ur_unlikely(!r->expect || p->bth.psn != r->epsn)) {
		ur_qp_count(qp, r->expect ? UR_C_DROP_OUT_OF_SEQ : UR_C_DROP_UC_MESSAGE);
		ur_uc_give_up(qp);
		return;
	}
	p->bth.ackreq = false; /* it has no meaning here */
	ur_resp_rx(qp, p, op);
}

/* --- requester --- */

/* The request at `head` goes to a wire that leads nowhere; a local operation needs none. False when it failed. */
static bool lose_request(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	bool local = ur_swqe_in(ur_sq_at(qp, r->head), UR_WRS_LOCAL); /* once it is complete the program may fill its place */
	enum ibv_wc_status st = r->head == r->fresh ? ur_req_start(qp) : IBV_WC_SUCCESS;

	if (st) {
		ur_req_fail(qp, st, 0);
		return false;
	}
	if (local)
		return true; /* it has been executed and is complete */
	r->cur = r->fresh;
	r->pos = (struct ur_sge_pos){0, 0};
	ur_qp_count(qp, UR_C_DROP_NEIGH);
	ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
	return true;
}

void ur_qp_unreachable(struct ur_qp *qp)
{
	struct ur_requester *r = &qp->req;
	enum ibv_qp_state st = ur_qp_st(qp);

	if (qp->service != UR_UC || (st != IBV_QPS_RTS && st != IBV_QPS_SQD))
		return;
	r->tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	/* In SQD nothing is begun any more. */
	while (r->head != (st == IBV_QPS_RTS ? r->tail : r->fresh))
		if (!lose_request(qp))
			break;
	ur_qp_sqd_check(qp);
	if (ur_unlikely(qp->broken))
		ur_qp_to_err(qp);
}
