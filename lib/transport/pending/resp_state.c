/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/pending/resp_state.h"

#include "transport/pending/reorder.h"
#include "transport/state/tp_priv.h"
#include "transport/state/trace.h"

/* --- the resource table --- */

struct ur_rd_res *ur_resp_rd_oldest(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	for (; r->rd_cur != r->rd_tail; r->rd_cur++) {
		struct ur_rd_res *e = &r->rd[r->rd_cur & (UR_RD_SLOTS - 1)];

		if (e->k != e->end)
			return e;
	}
	return NULL;
}

/* A requester that asks for more cannot use replays. */
bool ur_resp_rd_room(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;
	struct ur_rd_res *e = ur_resp_rd_oldest(qp);

	while (e && r->rd_tail - r->rd_cur >= r->rd_n && e->why != UR_RD_NEW) {
		e->k = e->end;
		e = ur_resp_rd_oldest(qp);
	}
	return r->rd_tail - r->rd_cur < r->rd_n;
}

/* --- what is to be done --- */

/*
 * A READ or atomic waits until responses have left if no more may be outstanding. A requester that went back counts as outstanding only
 * what it has sent since, and may ask for a READ in more pieces than before; what it does not know is that we have kept what follows.
 */
bool ur_resp_must_wait(struct ur_qp *qp, const struct ur_reordered *k)
{
	return ur_opcode(k->bytes[UR_BTH_OPCODE])->flags & UR_OPF_ANSWERED && qp->resp.rd_n && !ur_resp_rd_room(qp);
}

static bool may_run_kept(struct ur_qp *qp)
{
	const struct ur_reordered *k = ur_reorder_next(qp);

	return !k || !ur_resp_must_wait(qp, k);
}

/*
 * Is there anything that can leave, or be executed, now? What cannot is not work, or whoever serves the QP would come back to it for ever.
 * What makes it work again schedules the QP: the timer of the pace, a response that leaves and so makes room, a packet that arrives.
 */
bool ur_resp_has_work(struct ur_qp *qp)
{
	const struct ur_rd_res *e;

	if (qp->cc.cnp_due || (ur_unlikely(qp->resp.slow_path & UR_RESP_CATCHES_UP) && may_run_kept(qp)))
		return true;
	e = ur_resp_rd_oldest(qp);
	return ((e || ur_resp_side_oldest(&qp->resp)) && !qp->req.stops.blocked) || ur_resp_ack_first(&qp->resp, e);
}

void ur_resp_schedule(struct ur_qp *qp)
{
	if (!ur_list_empty(&qp->link[UR_TXQ_RESP]) || !ur_qp_path_ready(qp))
		return;
	if (ur_resp_has_work(qp))
		ur_list_add_tail(&qp->tp->txq[UR_TXQ_RESP], &qp->link[UR_TXQ_RESP]);
}

void ur_resp_ack(struct ur_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct ur_responder *r = &qp->resp;

	r->ack_pending |= UR_ACK_WAITS;
	r->ack_psn = psn;
	r->ack_msn = r->msn;
	r->ack_syndrome = syndrome;
	ur_resp_schedule(qp);
}

#define AGAIN_MOST 4

void ur_resp_ack_again(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (r->ack_pending == UR_ACK_WAITS && r->ack_again < AGAIN_MOST)
		r->ack_again++;
	ur_resp_ack_executed(qp);
}

void ur_resp_nak(struct ur_qp *qp, uint32_t psn, uint8_t syndrome)
{
	qp->resp.ack_pending = qp->resp.ack_again = 0; /* a SACK goes before READ responses, and a NAK does not */
	ur_resp_ack(qp, psn, syndrome);
	UR_TRACE(qp->tp->trace, NAK_SENT, qp->qpn, psn, syndrome);
}

void ur_resp_sack(struct ur_qp *qp, uint32_t psn)
{
	struct ur_responder *r = &qp->resp;

	ur_reorder_report(qp, psn);
	if (ur_resp_nak_waits(r))
		return;
	if (!(r->ack_pending & UR_ACK_WAITS)) { /* what was said last may have been a NAK, of a PSN that has not been executed */
		r->ack_psn = ur_psn_add(r->epsn, UR_PSN_MASK);
		r->ack_msn = r->msn;
	}
	r->ack_pending |= UR_SACK_WAITS;
	r->ack_syndrome = ur_syndrome(UR_AETH_ACK, UR_AETH_CREDIT_INVALID);
	ur_resp_schedule(qp);
}
