/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs: the errno of illegal arguments that the tests of the single objects leave out, one table for each verb. (create_cq, resize_cq:
 * test_verbs_objects.c, test_verbs_cq_ex.c; SRQs: test_verbs_srq.c; address handles and multicast: test_verbs_ah.c; windows:
 * test_verbs_mw.c; XRC: test_verbs_xrc.c; opcodes and flags of post_send, which are the transport's: test_post.c.)
 */
#include <stdio.h>

#include "verbs_fixture.h"

static void said(int got, int want, const char *verb, unsigned i)
{
	CU_ASSERT_EQUAL(got, want);
	if (got != want)
		printf("\n    %s, case %u: errno %d instead of %d", verb, i, got, want);
}

static void create_qp__types_and_capacities(void)
{
	static const struct {
		int type;
		struct ibv_qp_cap cap;
		int err;
	} t[] = {
		{IBV_QPT_RC, {.max_send_wr = UINT32_MAX}, EINVAL},
		{IBV_QPT_RC, {.max_recv_wr = UINT32_MAX}, EINVAL},
		{IBV_QPT_RC, {.max_recv_wr = UR_MAX_QP_WR + 1}, EINVAL},
		{IBV_QPT_RC, {.max_send_sge = UR_MAX_SGE + 1}, EINVAL},
		{IBV_QPT_RC, {.max_send_sge = UINT32_MAX}, EINVAL},
		{IBV_QPT_RC, {.max_recv_sge = UINT32_MAX}, EINVAL},
		{IBV_QPT_RC, {.max_inline_data = UINT32_MAX}, EINVAL},
		{IBV_QPT_UC, {.max_send_sge = UR_MAX_SGE + 1}, EINVAL},
		{IBV_QPT_UD, {.max_recv_sge = UR_MAX_SGE + 1}, EINVAL},
		{IBV_QPT_UD, {.max_inline_data = UR_MAX_INLINE + 1}, EINVAL},
		{IBV_QPT_XRC_SEND, {.max_send_wr = UR_MAX_QP_WR + 1}, EINVAL},
		{IBV_QPT_DRIVER, {.max_send_wr = 1}, EOPNOTSUPP},
		{0, {.max_send_wr = 1}, EOPNOTSUPP},
		{1, {.max_send_wr = 1}, EOPNOTSUPP},
		{1000, {.max_send_wr = 1}, EOPNOTSUPP},
		{-1, {.max_send_wr = 1}, EOPNOTSUPP},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_qp_init_attr ia = {.send_cq = f.cq, .recv_cq = f.cq, .cap = t[i].cap};
		struct ibv_qp *qp;

		ia.qp_type = (enum ibv_qp_type)t[i].type;
		errno = 0;
		qp = ibv_create_qp(f.pd, &ia);
		said(qp ? 0 : errno, t[i].err, "ibv_create_qp", i);
		if (qp)
			ibv_destroy_qp(qp);
	}
	verbs_fixture_unmake(&f);
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

/* In order: what is refused leaves the state as it is. */
static void modify_qp__arguments(void)
{
	static const struct {
		int mask;
		struct ibv_qp_attr a;
		int err;
	} t[] = {
		{INIT_MASK, {.qp_state = IBV_QPS_INIT, .port_num = 0}, EINVAL},
		{INIT_MASK, {.qp_state = IBV_QPS_INIT, .port_num = 2}, EINVAL},
		{INIT_MASK, {.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1}, EINVAL},
		{INIT_MASK, {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = 1u << 30}, EINVAL},
		{INIT_MASK & ~IBV_QP_PORT, {.qp_state = IBV_QPS_INIT}, EINVAL},
		{INIT_MASK & ~IBV_QP_PKEY_INDEX, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EINVAL},
		{INIT_MASK & ~IBV_QP_ACCESS_FLAGS, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EINVAL},
		{INIT_MASK | IBV_QP_QKEY, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EINVAL},
		{INIT_MASK | IBV_QP_RATE_LIMIT, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EINVAL},
		{INIT_MASK | 1 << 30, {.qp_state = IBV_QPS_INIT, .port_num = 1}, EINVAL},
		{IBV_QP_STATE, {.qp_state = IBV_QPS_RTS}, EINVAL},
		{IBV_QP_STATE, {.qp_state = IBV_QPS_SQE}, EINVAL},
		{IBV_QP_STATE, {.qp_state = IBV_QPS_UNKNOWN}, EINVAL},
		{IBV_QP_STATE, {.qp_state = (enum ibv_qp_state)1000}, EINVAL},
		{IBV_QP_STATE, {.qp_state = (enum ibv_qp_state) - 1}, EINVAL},
		{IBV_QP_CAP, {.cap = {.max_send_wr = 64}}, EINVAL},
		/* Of those that are meant for memory, nothing is said. */
		{INIT_MASK, {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED}, 0},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	verbs_fixture_state(f.qp, IBV_QPS_RESET);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_qp_attr a = t[i].a, now;
		struct ibv_qp_init_attr ia;

		said(ibv_modify_qp(f.qp, &a, t[i].mask), t[i].err, "ibv_modify_qp", i);
		CU_ASSERT_EQUAL(ibv_query_qp(f.qp, &now, IBV_QP_STATE, &ia), 0);
		CU_ASSERT_EQUAL(now.qp_state, t[i].err ? IBV_QPS_RESET : IBV_QPS_INIT);
		CU_ASSERT_EQUAL(f.qp->state, now.qp_state);
	}
	verbs_fixture_unmake(&f);
}

static void post_recv__arguments(void)
{
	static const struct {
		enum ibv_qp_state state;
		int num_sge;
		uint32_t already;
		int err;
	} t[] = {
		{IBV_QPS_RESET, 0, 0, EINVAL}, {IBV_QPS_INIT, 0, 0, 0},       {IBV_QPS_INIT, 1, 0, 0},
		{IBV_QPS_INIT, -1, 0, EINVAL}, {IBV_QPS_INIT, 33, 0, EINVAL}, {IBV_QPS_INIT, 0, 15, 0},
		{IBV_QPS_INIT, 0, 16, ENOMEM}, {IBV_QPS_ERR, 0, 0, 0},        {IBV_QPS_ERR, 33, 0, EINVAL},
	};
	static struct ibv_sge sge[33];

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = t[i].num_sge}, *bad = NULL;
		struct verbs_fixture f;

		verbs_fixture_make(&f);
		verbs_fixture_post(f.qp, t[i].already);
		if (t[i].state != IBV_QPS_INIT)
			verbs_fixture_state(f.qp, t[i].state);
		said(ibv_post_recv(f.qp, &wr, &bad), t[i].err, "ibv_post_recv", i);
		CU_ASSERT_PTR_EQUAL(bad, t[i].err ? &wr : NULL);
		verbs_fixture_unmake(&f);
	}
}

/* Before RTR nothing is sent, whatever it is. */
static void post_send__before_its_time(void)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_LOCAL_INV, (enum ibv_wr_opcode)99};

	for (unsigned i = 0; i < ur_array_size(states) * ur_array_size(ops); i++) {
		struct ibv_send_wr wr = {.opcode = ops[i / 2]}, *bad = NULL;
		struct verbs_fixture f;

		verbs_fixture_make(&f);
		if (states[i % 2] == IBV_QPS_RESET)
			verbs_fixture_state(f.qp, IBV_QPS_RESET);
		said(ibv_post_send(f.qp, &wr, &bad), EINVAL, "ibv_post_send", i);
		CU_ASSERT_PTR_EQUAL(bad, &wr);
		verbs_fixture_unmake(&f);
	}
}

static void query__ports_and_indices(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr_ex ex;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	said(uv_query_port(ctx, 0, &port, sizeof(port)), EINVAL, "ibv_query_port", 0);
	said(uv_query_port(ctx, 2, &port, sizeof(port)), EINVAL, "ibv_query_port", 2);
	said(ibv_query_gid_ex(ctx, 2, 0, &entry, 0), EINVAL, "ibv_query_gid_ex", 0);
	said(ibv_query_gid_ex(ctx, 1, 1u << 20, &entry, 0), EINVAL, "ibv_query_gid_ex", 1);
	said(ibv_query_gid_ex(ctx, 1, 0, &entry, 1), EOPNOTSUPP, "ibv_query_gid_ex", 2);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 2, 0, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, -1, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_gid(ctx, 1, 1 << 20, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_pkey(ctx, 2, 0, &pkey), -1);
	CU_ASSERT_EQUAL(ibv_query_pkey(ctx, 1, -1, &pkey), -1);
	said(ibv_query_device_ex(ctx, &(struct ibv_query_device_ex_input){.comp_mask = 1}, &ex), EINVAL, "ibv_query_device_ex", 0);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* Objects that RoCE in software does not have. */
static void unsupported__objects(void)
{
	struct ibv_wq_init_attr wq = {0};
	struct ibv_rwq_ind_table_init_attr table = {0};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_flow_attr flow = {0};
	struct verbs_fixture f;
	unsigned i = 0;

	verbs_fixture_make(&f);
#define REFUSED(call)                                                                                                                      \
	do {                                                                                                                               \
		errno = 0;                                                                                                                 \
		CU_ASSERT_PTR_NULL(call);                                                                                                  \
		said(errno, EOPNOTSUPP, #call, i++);                                                                                       \
	} while (0)
	REFUSED(ibv_create_wq(f.ctx, &wq));
	REFUSED(ibv_create_rwq_ind_table(f.ctx, &table));
	REFUSED(ibv_create_counters(f.ctx, &counters));
	REFUSED(ibv_create_flow(f.qp, &flow));
	REFUSED(ibv_reg_dmabuf_mr(f.pd, 0, 4096, 0, -1, 0));
#undef REFUSED
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_errno(void);

void ur_suite_verbs_errno(void)
{
	CU_pSuite s = CU_add_suite("verbs_errno", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, create_qp__types_and_capacities);
	CU_ADD_TEST(s, modify_qp__arguments);
	CU_ADD_TEST(s, post_recv__arguments);
	CU_ADD_TEST(s, post_send__before_its_time);
	CU_ADD_TEST(s, query__ports_and_indices);
	CU_ADD_TEST(s, unsupported__objects);
}
