/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs for tests of lib/verbs/wr.c. They are put into RTS by hand: without a path nothing is sent, and the requests stay in the queue to be
 * looked at.
 */
#ifndef UR_VERBS_WR_FIXTURE_H
#define UR_VERBS_WR_FIXTURE_H

#include "transport/state/qp_priv.h"
#include "verbs_fixture.h"

#define RKEY 0x1234
#define RADDR 0x123456789abcdef0ull
#define BASIC_OPS                                                                                                                          \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND_WITH_INV)

static inline struct ibv_qp *verbs_wr_create(struct verbs_fixture *f, uint64_t ops, unsigned wrs)
{
	struct ibv_qp_init_attr_ex ex = {.send_cq = f->cq,
					 .recv_cq = f->cq,
					 .qp_type = IBV_QPT_RC,
					 .pd = f->pd,
					 .cap = {.max_send_wr = wrs, .max_send_sge = 4, .max_inline_data = 64},
					 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					 .send_ops_flags = ops};

	return ibv_create_qp_ex(f->ctx, &ex);
}

static inline struct ur_qp *verbs_wr_tp(struct ibv_qp *qp)
{
	return ur_verbs_qp(qp);
}

/* Requests that the NIC can see. */
static inline uint32_t verbs_wr_posted(struct ibv_qp *qp)
{
	return atomic_load(&verbs_wr_tp(qp)->sq.tail);
}

static inline struct ibv_qp *verbs_wr_ready(struct verbs_fixture *f, uint64_t ops, unsigned wrs)
{
	struct ibv_qp *qp = verbs_wr_create(f, ops, wrs);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	atomic_store(&verbs_wr_tp(qp)->state, IBV_QPS_RTS);
	return qp;
}

#endif
