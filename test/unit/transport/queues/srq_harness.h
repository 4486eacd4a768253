/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues and further queue pairs for the two nodes of tp_harness. What a node calls its QP is what th_ functions work on, so
 * a test points it at the QP that it means.
 */
#ifndef UR_SRQ_HARNESS_H
#define UR_SRQ_HARNESS_H

#include <errno.h>

#include "tp_harness.h"
#include "transport/queues/srq.h"

struct sh_events {
	unsigned limit, err, other;
};

static inline void sh_on_event(struct ur_srq *srq, enum ibv_event_type ev)
{
	struct sh_events *e = ur_srq_context(srq);

	if (ev == IBV_EVENT_SRQ_LIMIT_REACHED)
		e->limit++;
	else if (ev == IBV_EVENT_SRQ_ERR)
		e->err++;
	else
		e->other++;
}

static inline void sh_on_qp_event(struct ur_qp *qp, enum ibv_event_type ev)
{
	struct th_node *n = ur_qp_context(qp);

	if (ev != IBV_EVENT_COMM_EST && n->nevents < ur_array_size(n->event))
		n->event[n->nevents++] = ev;
}

static inline struct ur_srq *sh_srq_of(struct th_node *n, struct ur_pd *pd, struct ur_xrcd *xrcd, struct ur_cq *cq, uint32_t wr,
				       struct sh_events *e)
{
	struct ur_srq_init init = {.pd = pd, .xrcd = xrcd, .cq = cq, .attr = {.max_wr = wr, .max_sge = 2}, .context = e};
	struct ur_srq *srq = NULL;

	init.event = sh_on_event;
	CU_ASSERT_FATAL(ur_srq_create(n->tp, &init, &srq) == 0);
	return srq;
}

static inline struct ur_srq *sh_srq(struct th_node *n, uint32_t wr, struct sh_events *e)
{
	return sh_srq_of(n, n->pd, NULL, NULL, wr, e);
}

/* A receive of `len` bytes at `off` of the node's memory. */
static inline int sh_post(struct th_node *n, struct ur_srq *srq, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)(n->mem + off), len, n->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ur_srq_post(srq, &wr, &bad);
}

static inline struct ur_qp *sh_qp(struct th_node *n, enum ibv_qp_type type, struct ur_srq *srq, struct ur_xrcd *xrcd)
{
	struct ur_qp_init init = {.type = type,
				  .pd = n->pd,
				  .send_cq = n->scq,
				  .recv_cq = n->rcq,
				  .srq = srq,
				  .xrcd = xrcd,
				  .cap = {16, 16, 2, 2, 64},
				  .context = n,
				  .event = sh_on_qp_event};
	struct ur_qp *qp = NULL;

	if (type == IBV_QPT_XRC_RECV)
		init.cap = (struct ibv_qp_cap){0};
	CU_ASSERT_FATAL(ur_qp_create(n->tp, &init, &qp) == 0);
	return qp;
}

static inline void sh_state(struct th *h, struct ur_qp *qp, enum ibv_qp_state st)
{
	struct ibv_qp_attr a = {.qp_state = st};

	CU_ASSERT_EQUAL(ur_qp_modify(qp, &a, IBV_QP_STATE, NULL, h->now), 0);
}

/* From RESET to RTS with node i's QP, as its type wants it; the peer is the other node's QP. */
static inline void sh_connect(struct th *h, unsigned i)
{
	struct th_node *n = &h->n[i];
	enum ibv_qp_type type = n->qp->type;
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = (unsigned)h->opt.access,
				.path_mtu = h->opt.mtu,
				.dest_qp_num = ur_qp_num(h->n[!i].qp),
				.rq_psn = h->opt.psn[!i],
				.sq_psn = h->opt.psn[i],
				.max_dest_rd_atomic = h->opt.max_rd,
				.max_rd_atomic = h->opt.max_rd,
				.min_rnr_timer = h->opt.min_rnr,
				.timeout = h->opt.timeout,
				.retry_cnt = h->opt.retry_cnt,
				.rnr_retry = h->opt.rnr_retry};

	if (type != IBV_QPT_XRC_SEND)
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (type != IBV_QPT_XRC_RECV)
		rts |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	CU_ASSERT_FATAL(ur_qp_modify(n->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, NULL, h->now) == 0);
	a.qp_state = IBV_QPS_RTR;
	CU_ASSERT_FATAL(ur_qp_modify(n->qp, &a, rtr, &n->path, h->now) == 0);
	a.qp_state = IBV_QPS_RTS;
	CU_ASSERT_FATAL(ur_qp_modify(n->qp, &a, rts, NULL, h->now) == 0);
}

/* In place of the node's QP. */
static inline void sh_replace(struct th_node *n, struct ur_qp *qp)
{
	CU_ASSERT_EQUAL(ur_qp_destroy(n->qp), 0);
	n->qp = qp;
}

/* th_open, with QPs of these types (RC at node 0 when node 1 is RC) and node 1 receiving by `srq` or `xrcd`, connected. */
static inline void sh_join(struct th *h, struct ur_srq *srq, struct ur_xrcd *xrcd)
{
	sh_replace(&h->n[0], sh_qp(&h->n[0], xrcd ? IBV_QPT_XRC_SEND : IBV_QPT_RC, NULL, NULL));
	sh_replace(&h->n[1], sh_qp(&h->n[1], xrcd ? IBV_QPT_XRC_RECV : IBV_QPT_RC, srq, xrcd));
	sh_connect(h, 0);
	sh_connect(h, 1);
}

#endif
