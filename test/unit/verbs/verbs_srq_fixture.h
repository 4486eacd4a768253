/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues and XRC objects for tests of lib/verbs. */
#ifndef UR_VERBS_SRQ_FIXTURE_H
#define UR_VERBS_SRQ_FIXTURE_H

#include <fcntl.h>
#include <poll.h>

#include "verbs_fixture.h"

static inline struct ibv_srq *make_srq(struct ibv_pd *pd, uint32_t wr)
{
	struct ibv_srq_init_attr a = {.srq_context = pd, .attr = {.max_wr = wr, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(pd, &a);

	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	CU_ASSERT_PTR_EQUAL(srq->srq_context, pd);
	CU_ASSERT_TRUE(a.attr.max_wr >= wr && a.attr.max_sge >= 2);
	return srq;
}

static inline struct ibv_qp *make_qp(struct verbs_fixture *f, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr ia = {.send_cq = f->cq, .recv_cq = f->cq, .srq = srq, .qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 4, .max_recv_wr = UR_MAX_QP_WR + 1, .max_send_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &ia); /* max_recv_wr is ignored */

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_PTR_EQUAL(qp->srq, srq);
	return qp;
}

static inline struct ibv_xrcd *make_xrcd(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr a = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};

	errno = 0;
	return ibv_open_xrcd(ctx, &a);
}

static inline struct ibv_srq_init_attr_ex xrc_attr(const struct verbs_fixture *f, struct ibv_xrcd *xrcd)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = f->pd, .xrcd = xrcd, .cq = f->cq,
	};
}

static inline struct ibv_qp *make_xrc_recv(struct ibv_context *ctx, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &ex);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	return qp;
}

/* The next asynchronous event if there is one: acknowledged, its type, its element in *element. -1 otherwise. */
static inline int next_event(struct ibv_context *ctx, void **element)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event e;

	if (poll(&p, 1, 0) != 1 || ibv_get_async_event(ctx, &e))
		return -1;
	*element = e.element.srq;
	ibv_ack_async_event(&e);
	return (int)e.event_type;
}

#endif
