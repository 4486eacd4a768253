/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a queue pair: creation, completions, the error state with its flushing, reset, query, doorbell, destruction. */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"
#include "transport/failure/qp_end.h"
#include "transport/loss/congest.h"
#include "transport/loss/qp_cwnd.h"
#include "transport/memory/mw.h"
#include "transport/pending/read_resend.h"
#include "transport/pending/reorder.h"
#include "transport/pending/resp_state.h"
#include "transport/packet/bulk.h"
#include "transport/qp.h"
#include "transport/queues/cq.h"
#include "transport/queues/datagram_addr.h"
#include "transport/queues/recvq.h"
#include "transport/queues/rwqe.h"
#include "transport/queues/send_done.h"
#include "transport/queues/xrc.h"
#include "transport/requester/ack_timer.h"
#include "transport/requester/completer.h"
#include "transport/state/qp_priv.h"
#include "transport/state/req_state.h"
#include "transport/state/ring.h"
#include "transport/state/srq_priv.h"
#include "transport/state/tp_priv.h"
#include "transport/state/wr_op.h"
#include "wire/opcode.h"

/* --- creation --- */

void ur_qp_ring_bytes(const struct ur_qp *qp, size_t *sq, size_t *rq)
{
	*sq = qp->sq.cap ? ur_ring_bytes(&qp->sq) : 0;
	*rq = qp->rq.cap ? ur_ring_bytes(&qp->rq) : 0;
}

void ur_qp_lend(struct ur_qp *qp, void *sq, void *rq)
{
	ur_ring_lend(&qp->sq, sq);
	ur_ring_lend(&qp->rq, rq);
}

static int check_cap(const struct ibv_qp_cap *c)
{
	if (c->max_send_wr > UR_MAX_QP_WR || c->max_recv_wr > UR_MAX_QP_WR || c->max_send_sge > UR_MAX_SGE ||
	    c->max_recv_sge > UR_MAX_SGE || c->max_inline_data > UR_MAX_INLINE)
		return EINVAL;
	return 0;
}

static int rings_init(struct ur_qp *qp, struct ibv_qp_cap *c)
{
	uint32_t list = sizeof(struct ibv_sge) * (c->max_send_sge ? c->max_send_sge : 1);
	uint32_t area = ((c->max_inline_data > list ? c->max_inline_data : list) + 15) & ~15u;
	int err;

	c->max_send_sge = ur_min_u32(area / sizeof(struct ibv_sge), UR_MAX_SGE);
	c->max_inline_data = ur_min_u32(area, UR_MAX_INLINE);
	if (!c->max_recv_sge && !qp->srq_only)
		c->max_recv_sge = 1;
	err = ur_ring_init(&qp->sq, c->max_send_wr, sizeof(struct ur_swqe) + area, c->max_send_sge);
	if (err)
		return err;
	if (qp->type == IBV_QPT_UD && !ur_sq_ext_begin(qp)) /* other QPs need it for few requests, if at all */
		return ENOMEM;
	if (qp->srq_only)
		return ur_ring_init(&qp->rq, c->max_recv_wr, ur_recv_stride(qp->srq ? qp->srq->ring.max_sge : UR_MAX_SGE), 0);
	return ur_ring_init(&qp->rq, c->max_recv_wr, ur_recv_stride(c->max_recv_sge), c->max_recv_sge);
}

static void qp_free(struct ur_qp *qp)
{
	ur_ring_free(&qp->sq);
	free(qp->sq_ext);
	ur_ring_free(&qp->rq);
	free(qp->resp.rd);
	free(qp->req.scoreboard.maps);
	free(qp);
}

static const struct {
	uint8_t service;                             /* enum ur_service */
	bool built, pd, send_cq, recv_cq, srq, xrcd; /* what it has */
} types[IBV_QPT_XRC_RECV + 1] = {
	[IBV_QPT_RC] = {UR_RC, true, .pd = true, .send_cq = true, .recv_cq = true, .srq = true},
	[IBV_QPT_UC] = {UR_UC, true, .pd = true, .send_cq = true, .recv_cq = true, .srq = true},
	[IBV_QPT_UD] = {UR_UD, true, .pd = true, .send_cq = true, .recv_cq = true, .srq = true},
	[IBV_QPT_XRC_SEND] = {UR_XRC, true, .pd = true, .send_cq = true},
	[IBV_QPT_XRC_RECV] = {UR_XRC, true, .xrcd = true},
};

/* 0 when all that the type must have is there; what it does not have is taken away. */
static int check_init(struct ur_qp_init *init)
{
	unsigned t = init->type;

	if (t >= ur_array_size(types) || !types[t].built)
		return EOPNOTSUPP;
	if ((types[t].pd && !init->pd) || (types[t].send_cq && !init->send_cq) || (types[t].recv_cq && !init->recv_cq) ||
	    (types[t].xrcd && !init->xrcd) || (types[t].srq && init->srq && init->srq->xrcd))
		return EINVAL;
	init->pd = types[t].pd ? init->pd : NULL;
	init->send_cq = types[t].send_cq ? init->send_cq : NULL;
	init->recv_cq = types[t].recv_cq ? init->recv_cq : NULL;
	init->srq = types[t].srq ? init->srq : NULL;
	init->xrcd = types[t].xrcd ? init->xrcd : NULL;
	if (init->srq || types[t].service == UR_XRC)
		init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
	return check_cap(&init->cap);
}

/* The QP counts among the users of what it refers to, or (-1) no longer. */
static void use_objects(struct ur_qp *qp, int n)
{
	if (qp->xrcd) { /* the other pointers change from packet to packet */
		ur_xrcd_use(qp->xrcd, n);
		return;
	}
	ur_pd_use(qp->pd, n);
	ur_cq_use(qp->send_cq, n);
	if (qp->recv_cq)
		ur_cq_use(qp->recv_cq, n);
	if (qp->srq)
		atomic_fetch_add_explicit(&qp->srq->users, (unsigned)n, memory_order_relaxed);
}

static struct ur_qp *qp_alloc(struct ur_tp *tp, const struct ur_qp_init *init)
{
	struct ur_qp *qp = aligned_alloc(64, sizeof(*qp));

	if (!qp)
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->tp = tp;
	qp->pd = init->xrcd ? &ur_xrc_no_pd : init->pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->xrcd = init->xrcd;
	qp->srq_only = init->srq || types[init->type].service == UR_XRC;
	qp->type = (uint8_t)init->type;
	qp->service = types[init->type].service;
	qp->sig_all = init->sq_sig_all;
	qp->context = init->context;
	qp->event = init->event;
	for (unsigned i = 0; i < UR_TXQ_COUNT; i++)
		ur_list_init(&qp->link[i]);
	ur_list_init(&qp->stalled);
	ur_list_init(&qp->windows);
	ur_timer_init(&qp->timer, ur_comp_timer);
	ur_cc_init(qp);
	ur_qp_cwnd_init(qp);
	ur_read_resend_init(qp);
	atomic_store_explicit(&qp->state, IBV_QPS_RESET, memory_order_relaxed);
	return qp;
}

int ur_qp_create(struct ur_tp *tp, struct ur_qp_init *init, struct ur_qp **out)
{
	struct ur_qp_init in = *init;
	struct ibv_qp_cap cap;
	struct ur_qp *qp;
	int err = check_init(&in);

	if (err)
		return err;
	qp = qp_alloc(tp, &in);
	if (!qp)
		return ENOMEM;
	cap = in.cap;
	err = rings_init(qp, &cap);
	if (err)
		goto out_free;
	err = ur_tp_number(tp, &tp->qps, &tp->qpns, qp, &qp->qpn);
	if (err)
		goto out_free;
	ur_bulk_revoke(qp);
	qp->cap = init->cap = cap;
	use_objects(qp, 1);
	UR_TRACE(tp->trace, QP_MADE, qp->qpn, qp->type);
	*out = qp;
	return 0;
out_free:
	qp_free(qp);
	return err;
}

int ur_qp_destroy(struct ur_qp *qp)
{
	/* Inline data is always copied into the packet, so no frame refers to the QP. */
	if (qp->ngroups)
		return EBUSY;
	ur_bulk_revoke(qp);
	ur_timer_cancel(qp->tp->c.wheel, &qp->timer);
	ur_cc_stop(qp);
	ur_qp_cwnd_stop(qp);
	ur_read_resend_stop(qp);
	for (unsigned i = 0; i < UR_TXQ_COUNT; i++)
		ur_list_del(&qp->link[i]);
	ur_list_del(&qp->stalled);
	ur_ud_release_all(qp); /* after the unlinking: the last reference on an AH frees the list of those that wait for it */
	ur_mw_forget_qp(qp);
	ur_reorder_drop(qp);
	ur_idtab_free(&qp->tp->qps, qp->qpn);
	UR_TRACE(qp->tp->trace, QP_GONE, qp->qpn);
	use_objects(qp, -1);
	qp_free(qp);
	return 0;
}

/* --- reset --- */

void ur_qp_to_reset(struct ur_qp *qp)
{
	uint32_t sq, rq;

	ur_qp_set_state(qp, IBV_QPS_RESET); /* first: from here on nothing can be posted */
	ur_bulk_revoke(qp);
	sq = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	rq = atomic_load_explicit(&qp->rq.tail, memory_order_acquire);
	ur_timer_cancel(qp->tp->c.wheel, &qp->timer);
	ur_cc_stop(qp);
	ur_qp_cwnd_stop(qp);
	ur_read_resend_stop(qp);
	for (unsigned i = 0; i < UR_TXQ_COUNT; i++)
		ur_list_del(&qp->link[i]);
	ur_ud_release_all(qp); /* as above */
	ur_mw_forget_qp(qp);
	ur_reorder_drop(qp);
	free(qp->req.scoreboard.maps);
	memset(&qp->req, 0, sizeof(qp->req));
	ur_qp_cwnd_init(qp);
	free(qp->resp.rd);
	memset(&qp->resp, 0, sizeof(qp->resp));
	ur_read_resend_init(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->n, 0, sizeof(qp->n));
	qp->heard = 0;
	qp->req.head = qp->req.cur = qp->req.fresh = qp->req.tail = sq;
	qp->resp.head = qp->resp.tail = rq;
	/* The indices run on: the application keeps its side of the rings. */
	atomic_store_explicit(&qp->sq.head, sq, memory_order_release);
	atomic_store_explicit(&qp->rq.head, rq, memory_order_release);
	if (qp->xrcd) {
		qp->srq = NULL;
		qp->pd = &ur_xrc_no_pd;
		qp->recv_cq = NULL;
	}
	qp->path = NULL;
	qp->access = 0;
	qp->dqpn = 0;
	qp->broken = qp->sqd_notify = false;
}

/* --- the caller's view --- */

void ur_qp_answer(struct ur_qp *qp, ur_time now)
{
	atomic_exchange(&qp->db, 0);
	/* Here, because a requester that may not go on does not look, and whoever lets it go on later only looks for what it knows of. */
	qp->req.tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	ur_qp_kick(qp, now);
}

void ur_qp_kick(struct ur_qp *qp, ur_time now)
{
	qp->tp->now = now;
	if (ur_unlikely(ur_qp_st(qp) == IBV_QPS_ERR))
		ur_qp_flush(qp);
	else if (ur_unlikely(ur_qp_st(qp) == IBV_QPS_SQE))
		ur_qp_flush_sends(qp);
	ur_resp_schedule(qp);
	ur_req_schedule(qp);
	if (ur_unlikely(!ur_qp_path_ready(qp)))
		ur_comp_watch_path(qp, now);
}

uint32_t ur_qp_num(const struct ur_qp *qp)
{
	return qp->qpn;
}

ur_time ur_qp_last_received(const struct ur_qp *qp)
{
	return qp->heard;
}

void *ur_qp_context(const struct ur_qp *qp)
{
	return qp->context;
}

struct ur_xrcd *ur_qp_xrcd(const struct ur_qp *qp)
{
	return qp->xrcd;
}

struct ur_qp **ur_qp_doorbell_link(struct ur_qp *qp)
{
	return &qp->doorbell_link;
}

const struct ur_qp_counters *ur_qp_counters(const struct ur_qp *qp)
{
	return &qp->n;
}

void ur_qp_query(const struct ur_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	if (attr) {
		*attr = qp->attr;
		attr->qp_state = attr->cur_qp_state = ur_qp_st(qp);
		attr->cap = qp->cap;
		attr->path_mig_state = IBV_MIG_MIGRATED;
		attr->dest_qp_num = qp->dqpn;
		attr->qp_access_flags = (unsigned)qp->access;
		attr->sq_psn = qp->req.max;
		attr->rq_psn = qp->resp.epsn;
		attr->sq_draining = ur_qp_st(qp) == IBV_QPS_SQD && qp->req.head != qp->req.fresh;
	}
	if (init)
		*init = (struct ibv_qp_init_attr){
			.qp_context = qp->context,
			.cap = qp->cap,
			.qp_type = (enum ibv_qp_type)qp->type,
			.sq_sig_all = qp->sig_all,
		};
}
