/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues: posting, on application threads without the NIC's lock; taking a receive WQE for a message that arrives, completing it
 * and flushing, by the NIC. A QP without receives of its own (srq_only) takes them from its SRQ, as copies.
 */
#include <errno.h>

#include "transport/memory/sge.h"
#include "transport/queues/cq.h"
#include "transport/queues/recvq.h"
#include "transport/queues/rwqe.h"
#include "transport/queues/srq.h"
#include "transport/state/qp_priv.h"
#include "transport/state/ring.h"
#include "transport/state/tp_priv.h"

/* --- posting --- */

int ur_qp_post_recv(struct ur_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t tail = atomic_load_explicit(&qp->rq.tail, memory_order_relaxed), from = tail;
	int err = qp->srq_only || ur_qp_state(qp) == IBV_QPS_RESET ? EINVAL : 0;

	for (; wr && !err; wr = err ? wr : wr->next) {
		err = ur_ring_full(&qp->rq, tail) ? ENOMEM : ur_recv_write(ur_ring_at(&qp->rq, tail), wr, qp->rq.max_sge);
		tail += !err;
	}
	if (tail != from) {
		atomic_store_explicit(&qp->rq.tail, tail, memory_order_release);
		/* Either the NIC sees the new tail when it flushes, or the state read here is ERR. */
		atomic_thread_fence(memory_order_seq_cst);
		if (ur_unlikely(ur_qp_state(qp) == IBV_QPS_ERR))
			atomic_fetch_or(&qp->db, UR_DB_WANT);
	}
	if (err && bad)
		*bad = wr;
	return err;
}

/* --- taking --- */

bool ur_recv_ready(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (qp->srq_only) /* where several lanes take from it, what is there now is there later only for whom it has been taken */
		return r->w || (ur_unlikely(qp->srq->shared) ? ur_recv_take(qp) : ur_srq_ready(qp->srq));
	if (r->head != r->tail || r->w)
		return true;
	r->tail = atomic_load_explicit(&qp->rq.tail, memory_order_acquire);
	return r->head != r->tail;
}

bool ur_recv_take(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (qp->srq_only) {
		struct ur_rwqe *copy = ur_ring_at(&qp->rq, 0);

		if (!r->w && ur_srq_take(qp->srq, qp->tp, copy)) /* a message that was given up has left one */
			r->w = copy;
		return r->w;
	}
	if (!ur_recv_ready(qp))
		return false;
	if (ur_likely(!r->w))
		r->w = ur_ring_at(&qp->rq, r->head);
	return true;
}

enum ibv_wc_status ur_recv_scatter(struct ur_qp *qp, const uint8_t *data, uint32_t len)
{
	struct ur_responder *r = &qp->resp;
	const struct ur_pd *pd = qp->srq ? qp->srq->pd : qp->pd;

	return ur_sge_scatter_in(qp->tp, pd, r->w->sge, r->w->nsge, &r->pos, data, len);
}

void ur_recv_done(struct ur_qp *qp, struct ur_cqe *e, bool solicited)
{
	struct ur_responder *r = &qp->resp;

	e->wr_id = r->w->wr_id;
	e->qpn = qp->qpn;
	if (!e->src_qp)
		e->src_qp = qp->dqpn;
	r->w = NULL;
	/* The slot is free before the completion shows: who has polled it may post again. (Of an SRQ it has been free for long.) */
	atomic_store_explicit(&qp->rq.head, ++r->head, memory_order_release);
	if (ur_unlikely(e->status != IBV_WC_SUCCESS))
		ur_qp_count(qp, UR_C_RESP_CQE_ERR);
	if (ur_unlikely(!ur_cq_push(qp->recv_cq, qp->tp, e, solicited))) {
		qp->broken = true;
		if (qp->xrcd)
			ur_srq_fail(qp->srq); /* the CQ is the SRQ's: nobody can receive from it any more */
	}
}

uint32_t ur_recv_posted(struct ur_qp *qp, uint32_t most)
{
	struct ur_responder *r = &qp->resp;

	if (r->tail - r->head < most)
		r->tail = atomic_load_explicit(&qp->rq.tail, memory_order_acquire);
	return ur_min_u32(r->tail - r->head, most);
}

void ur_recv_done_row(struct ur_qp *qp, uint32_t n, uint32_t len, bool solicited)
{
	struct ur_responder *r = &qp->resp;

	for (uint32_t i = 0; i < n; i++)
		*ur_cq_ahead(qp->recv_cq, i) = (struct ur_cqe){
			.wr_id = ur_recv_ahead(qp, i)->wr_id,
			.byte_len = len,
			.qpn = qp->qpn,
			.src_qp = qp->dqpn,
			.status = IBV_WC_SUCCESS,
			.opcode = IBV_WC_RECV,
		};
	r->head += n;
	atomic_store_explicit(&qp->rq.head, r->head, memory_order_release); /* before the completions show, as above */
	ur_cq_push_ahead(qp->recv_cq, n, solicited);
}

void ur_recv_flush(struct ur_qp *qp)
{
	while (qp->resp.w || (!qp->srq_only && ur_recv_take(qp))) {
		struct ur_cqe e = {.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};

		ur_recv_done(qp, &e, false);
	}
}
