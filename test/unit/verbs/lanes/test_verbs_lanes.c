/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/lane.c, over sockets on the loopback interface: the only one here that has lanes. */
#include "verbs_srq_fixture.h"

void ur_suite_verbs_lanes(void);

static int init(void)
{
	return setenv("UROCE_DEV", "lo", 1) || setenv("UROCE_LANES", "2", 1);
}

static unsigned feeders(struct ibv_cq *cq)
{
	return ur_container_of(cq, struct uv_cq, cq)->feeders;
}

/* The first lane completes in it, and it has been another one's. */
static void xrc_srq__shares_its_cq(void)
{
	struct verbs_fixture f = {.ctx = verbs_fixture_open()};
	struct ibv_qp_init_attr ia = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_srq_init_attr_ex attr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;

	f.pd = ibv_alloc_pd(f.ctx);
	f.cq = ibv_create_cq(f.ctx, 15, NULL, NULL, 1); /* of lane 1 by its vector */
	CU_ASSERT_FATAL(f.pd && f.cq);
	ia.send_cq = ia.recv_cq = f.cq;
	f.qp = ibv_create_qp(f.pd, &ia);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f.qp);
	CU_ASSERT_EQUAL(feeders(f.cq), 0);
	xrcd = make_xrcd(f.ctx, -1, O_CREAT);
	attr = xrc_attr(&f, xrcd);
	srq = ibv_create_srq_ex(f.ctx, &attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	CU_ASSERT_EQUAL(feeders(f.cq), 3);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(f.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(f.cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(f.pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(f.ctx), 0);
}

void ur_suite_verbs_lanes(void)
{
	CU_pSuite s = CU_add_suite("verbs_lanes", init, NULL);

	CU_ADD_TEST(s, xrc_srq__shares_its_cq);
}
