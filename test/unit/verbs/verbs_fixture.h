/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device for tests of lib/verbs: an owned port that stays closed, because its QP gets to INIT without ibv_modify_qp, which would open it,
 * and no further. Completions come from flushing: a QP that goes to the error state completes its receives.
 */
#ifndef UR_VERBS_FIXTURE_H
#define UR_VERBS_FIXTURE_H

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>

#include "verbs/internal.h"

/* Before the first verbs call of the process. */
static inline int verbs_fixture_init(void)
{
	return setenv("UROCE_VDEV", "net_null0", 0) || setenv("UROCE_IP", "10.0.0.1/24,fd00::1/64", 0);
}

static inline struct ibv_context *verbs_fixture_open(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx;

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	ctx = ibv_open_device(list[0]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ctx);
	ibv_free_device_list(list);
	return ctx;
}

struct verbs_fixture {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* in INIT */
};

static inline void verbs_fixture_to_init(struct ibv_qp *qp)
{
	const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct uv_context *c = uv_context(qp->context);
	struct ur_nic *nic = uv_enter(c);

	CU_ASSERT_PTR_NOT_NULL_FATAL(nic);
	CU_ASSERT_EQUAL_FATAL(ur_verbs_modify_qp_locked(qp, &a, mask, ur_engine_now()), 0);
	uv_leave(c);
}

static inline struct ibv_qp *verbs_fixture_qp(struct ibv_pd *pd, struct ibv_cq *cq, unsigned recvs)
{
	struct ibv_qp_init_attr ia = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
				      .cap = {.max_send_wr = 4, .max_recv_wr = recvs, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &ia);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	verbs_fixture_to_init(qp);
	return qp;
}

static inline void verbs_fixture_make(struct verbs_fixture *f)
{
	f->ctx = verbs_fixture_open();
	f->pd = ibv_alloc_pd(f->ctx);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->pd);
	f->ch = ibv_create_comp_channel(f->ctx);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->ch);
	f->cq = ibv_create_cq(f->ctx, 15, f, f->ch, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->cq);
	f->qp = verbs_fixture_qp(f->pd, f->cq, 16);
}

static inline void verbs_fixture_unmake(struct verbs_fixture *f)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(f->qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f->cq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(f->ch), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(f->pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(f->ctx), 0);
}

/* n receives with wr_id from 0 on; not signalled to anybody before verbs_fixture_flush. */
static inline void verbs_fixture_post(struct ibv_qp *qp, unsigned n)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	for (unsigned i = 0; i < n; i++) {
		wr.wr_id = i;
		CU_ASSERT_EQUAL_FATAL(ibv_post_recv(qp, &wr, &bad), 0);
	}
}

static inline void verbs_fixture_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state};

	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
}

static inline void verbs_fixture_flush(struct ibv_qp *qp)
{
	verbs_fixture_state(qp, IBV_QPS_ERR);
}

#endif
