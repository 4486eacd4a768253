/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What answers READs and atomics (IBTA volume 1, 9.7.5.2): in its turn; after one that is missing, for which it waits (scoreboard.c); or as
 * a run in the middle of a READ.
 */
#include "base/psn.h"
#include "transport/failure/qp_end.h"
#include "transport/failure/retry.h"
#include "transport/loss/scoreboard.h"
#include "transport/memory/sge.h"
#include "transport/packet/atomic.h"
#include "transport/packet/bulk.h"
#include "transport/queues/local_op.h"
#include "transport/queues/send_done.h"
#include "transport/requester/progress.h"
#include "transport/requester/responses.h"
#include "transport/state/qp_priv.h"
#include "transport/state/scoreboard_bits.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wqe.h"
#include "transport/state/wr_op.h"
#include "wire/opcode.h"
#include "wire/sack.h"

/* The READ or atomic in flight that waits for the response `psn`, perhaps after others. */
static struct ur_swqe *answered_by(const struct ur_qp *qp, uint32_t psn)
{
	const uint32_t i = ur_scoreboard_wqe(qp, qp->req.head, psn);
	struct ur_swqe *w = ur_sq_at(qp, i);

	return i != qp->req.fresh && ur_swqe_in(w, UR_WRS_ANSWERED) ? w : NULL;
}

/* What is sent again may say hello, like a request, where the peer has not sent a SACK yet because it has missed nothing. */
static void hear_hello(struct ur_qp *qp, const struct ur_pkt *p)
{
	if (ur_likely(qp->req.scoreboard.sacks) || p->flags & UR_PKT_BULK || !qp->tp->c.selective_repeat)
		return;
	if (ur_hello_is(p->data + p->bth_off))
		ur_comp_peer_sacks(qp);
}

/*
 * Opcode and length that packet k of a READ must have. At the PSN of the last rewind an earlier stream of responses may still be running,
 * and where parts were asked for once more they begin and end messages of their own.
 */
static bool response_ok(struct ur_qp *qp, const struct ur_swqe *w, uint32_t k, bool end, const struct ur_pkt *p, uint32_t flags)
{
	bool begin = ur_rd_piece_begins(w, p->bth.psn);
	uint32_t n = ur_pkt_psns(p), len = k + n == w->npkts ? w->length - (k << qp->mtu_shift) : n << qp->mtu_shift;

	if (p->payload_len != len || !(flags & UR_OPF_PAYLOAD))
		return false;
	if (ur_unlikely(ur_psn_diff(qp->req.scoreboard.split, p->bth.psn) > 0)) {
		hear_hello(qp, p);
		return true;
	}
	if (!(flags & UR_OPF_LAST) == end)
		return false;
	return !(flags & UR_OPF_FIRST) == !begin || p->bth.psn == qp->req.restart;
}

/* The payload of a response goes where the READ says. False: it has to be asked for again. */
static bool scatter(struct ur_qp *qp, const struct ur_swqe *w, const struct ur_pkt *p, enum ibv_wc_status *st)
{
	struct ur_requester *r = &qp->req;
	enum ur_fetched f;

	if (ur_likely(!(p->flags & UR_PKT_BULK))) {
		*st = ur_sge_scatter(qp, w->sge, w->nsge, &r->rpos, p->data + p->payload_off, p->payload_len);
		return true;
	}
	f = ur_bulk_scatter(qp, p, qp->pd, w->sge, w->nsge, &r->rpos);
	*st = f == UR_FETCH_PROT ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
	return f != UR_FETCH_LOST;
}

/* As if it had been lost; but a QP without retries, of which the responder does not know, goes on: next come packets. */
static void response_unread(struct ur_qp *qp, ur_time now)
{
	ur_qp_count(qp, UR_C_BULK_UNREAD);
	qp->req.retry_left += !qp->req.retry_cnt && !qp->req.hole;
	ur_comp_implied_nak(qp, UR_C_DROP_RESPONSE, now);
	ur_comp_settle(qp);
}

static void take_response(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	struct ur_requester *r = &qp->req;
	struct ur_swqe *w = ur_sq_at(qp, r->head);
	uint32_t k = (p->bth.psn - w->psn) & UR_PSN_MASK, n = ur_pkt_psns(p);
	bool last = k + n == w->npkts;
	bool end = ur_rd_piece_end(w, k) == k + n;
	enum ibv_wc_status st = IBV_WC_BAD_RESP_ERR;

	/* Asked for before the window became smaller, in larger pieces: it is asked for again, and then comes as packets. */
	if (ur_unlikely(p->flags & UR_PKT_BULK) && k + n > ur_rd_piece_end(w, k)) {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
		return;
	}
	if (!k)
		r->rpos = (struct ur_sge_pos){0, 0};
	else if (ur_unlikely(r->reseek))
		r->rpos = ur_sge_seek(w->sge, w->nsge, (uint64_t)k << qp->mtu_shift);
	r->reseek = false;
	if (ur_unlikely(!ur_swqe_is_read(w)))
		st = ur_atomic_answer(qp, w, p, op);
	else if (ur_likely(response_ok(qp, w, k, end, p, op->flags)) && ur_unlikely(!scatter(qp, w, p, &st))) {
		response_unread(qp, now);
		return;
	}
	if (ur_unlikely(st)) {
		ur_req_fail(qp, st, 0);
		return;
	}
	if (ur_unlikely(r->scoreboard.busy))
		ur_scoreboard_answer(qp, w, p->bth.psn, now);
	r->una = ur_psn_add(p->bth.psn, n);
	if (end && r->rd_out)
		r->rd_out--;
	if (last) {
		ur_qp_send_done(qp, IBV_WC_SUCCESS, 0);
		if (ur_unlikely(r->locals))
			ur_local_done(qp);
	}
	if (ur_unlikely(r->scoreboard.busy))
		ur_scoreboard_collect(qp);
	ur_comp_progress(qp, now);
	ur_comp_settle(qp);
}

/* An answer after one that is missing. */
static void response_ahead(struct ur_qp *qp, struct ur_swqe *w, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	if (qp->tp->c.plain_recovery || !ur_scoreboard_start(qp)) {
		ur_comp_implied_nak(qp, UR_C_DROP_RESPONSE, now);
		return;
	}
	qp->req.scoreboard.one_hole = !p->bth.migreq;
	hear_hello(qp, p);
	if (p->flags & UR_PKT_BULK || !ur_scoreboard_take_answer(qp, w, p, op, now)) {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
		ur_scoreboard_answered(qp, ur_psn_add(p->bth.psn, ur_swqe_is_read(w)), now);
	}
}

void ur_comp_response(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, ur_time now)
{
	struct ur_requester *r = &qp->req;
	uint32_t psn = p->bth.psn, old = r->una;
	struct ur_swqe *w = ur_unlikely(psn != r->una) ? answered_by(qp, psn) : NULL;

	if (w && !ur_comp_advance(qp, psn)) {
		if (r->una != old)
			ur_comp_progress(qp, now);
		response_ahead(qp, w, p, op, now);
		ur_comp_settle(qp);
		return;
	}
	if (ur_unlikely(psn != r->una || r->head == r->fresh || !ur_swqe_in(ur_sq_at(qp, r->head), UR_WRS_ANSWERED))) {
		ur_qp_count(qp, UR_C_DROP_RESPONSE);
		return;
	}
	take_response(qp, p, op, now);
}

/* --- runs --- */

bool ur_comp_run_place(struct ur_qp *qp, struct ur_rx_run *run)
{
	struct ur_requester *r = &qp->req;
	const struct ur_swqe *w = ur_sq_at(qp, r->head);
	struct ur_mr *mr;
	uint32_t k = (run->psn - w->psn) & UR_PSN_MASK;
	bool repairs = r->scoreboard.busy || ur_psn_diff(r->scoreboard.split, r->una) > 0 || r->reseek;

	if (run->psn != r->una || r->head == r->fresh || !ur_swqe_is_read(w) || repairs)
		return false;
	if (ur_rd_piece_begins(w, run->psn) || k >= w->npkts) /* a response begins there */
		return false;
	run->n = ur_min_u32(run->n, ur_rd_piece_end(w, k) - 1 - k); /* and its last packet is another */
	run->n = ur_min_u32(run->n, (r->max - r->una) & UR_PSN_MASK);
	run->to = ur_sge_run(qp->tp, qp->pd, w->sge, w->nsge, &r->rpos, IBV_ACCESS_LOCAL_WRITE, qp->mtu_shift, &run->n, &mr);
	return run->to;
}

void ur_comp_run_done(struct ur_qp *qp, const struct ur_rx_run *run, ur_time now)
{
	struct ur_requester *r = &qp->req;

	r->una = ur_psn_add(r->una, run->n);
	r->rpos.off += run->n << qp->mtu_shift;
	ur_comp_progress(qp, now);
	ur_comp_settle(qp);
}
