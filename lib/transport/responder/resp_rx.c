/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/responder/resp_rx.h"

#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/pending/rd_table.h"
#include "transport/pending/read_resend.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/responder/resp_atomic.h"
#include "transport/responder/resp_reorder.h"
#include "transport/responder/responder.h"
#include "transport/responder/verdicts.h"
#include "transport/state/qp_priv.h"
#include "transport/state/tp_priv.h"
#include "wire/sack.h"

/* --- once more --- */

/* Of several that are the same, one is answered (wire/sack.h); what was copied when it was new is being answered. */
static bool is_answered_copy(const struct ur_qp *qp, const struct ur_pkt *p)
{
	const uint32_t probe = ur_resp_probe_of(p);

	return ur_copy_is(p->data + p->bth_off) || (probe && qp->resp.probed == probe);
}

__attribute__((noinline)) static void answer_again(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	if (!(op->flags & UR_OPF_READ)) {
		ur_resp_atomic_again(qp, p, op);
		ur_read_resend_request(qp);
	} else if (!is_answered_copy(qp, p) && ur_resp_rd_replay(qp, p, op)) {
		if (ur_resp_probe_of(p))
			qp->resp.probed = ur_resp_probe_of(p);
		ur_read_resend_asked(qp, p->bth.psn);
	}
}

static enum ur_resp_verdict duplicate(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const struct ur_responder *r = &qp->resp;

	if (op->flags & UR_OPF_ANSWERED)
		answer_again(qp, p, op);
	else if (ur_unlikely(ur_resp_reports(r))) /* the peer asks what has arrived */
		ur_resp_sack(qp, r->epsn);
	else if (op->flags & (UR_OPF_SEND | UR_OPF_WRITE) && !ur_resp_nak_waits(r)) /* an acknowledgement that waits may be of less */
		ur_resp_ack_again(qp);
	return UR_RESP_DUPLICATE;
}

/* --- in turn --- */

/*
 * The first packet with the PSN that the peer was told: it knows of the connection. In RTS too, where IBTA 11.6.3.1 is silent: an accepted
 * QP gets there before its peer's RTU.
 */
static void establish(struct ur_qp *qp)
{
	qp->resp.slow_path &= (uint8_t)~UR_RESP_NEW;
	if (ur_qp_st(qp) == IBV_QPS_RTR || ur_qp_st(qp) == IBV_QPS_RTS)
		ur_qp_event(qp, IBV_EVENT_COMM_EST);
}

/* A packet with the expected PSN, and there is more to do than to execute it. */
__attribute__((noinline)) static void slowly_in_order(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	struct ur_responder *r = &qp->resp;
	const uint32_t from = r->epsn;
	bool done;

	if (r->slow_path & UR_RESP_NEW)
		establish(qp);
	if (r->slow_path & UR_RESP_AWAITS_HELLO)
		ur_resp_listen(qp, p);
	if (r->slow_path & UR_RESP_REORDERING && ur_reorder_is_old(qp))
		ur_resp_drop_reordered(qp);
	done = ur_resp_in_order(qp, p, op);
	if (r->slow_path & UR_RESP_REORDERING)
		ur_resp_hole_filled(qp, from, done);
}

void ur_resp_rx(struct ur_qp *qp, struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const struct ur_responder *r = &qp->resp;
	const int32_t d = ur_psn_diff(p->bth.psn, r->epsn);
	enum ur_resp_verdict v;

	if (ur_unlikely(r->dying)) {
		ur_qp_count(qp, UR_C_DROP_QP_STATE);
		return;
	}
	if (ur_likely(d == 0)) {
		if (ur_unlikely(r->slow_path))
			slowly_in_order(qp, p, op);
		else
			ur_resp_in_order(qp, p, op);
		return;
	}
	if (d > 0)
		v = ur_resp_beyond(qp, p, op, (uint32_t)d);
	else /* of a bulk packet a part may be new: it is asked for */
		v = ur_unlikely(d + (int32_t)ur_pkt_psns(p) > 0) ? UR_RESP_OUT_OF_SEQ : duplicate(qp, p, op);
	ur_resp_conclude(qp, v, p);
}
