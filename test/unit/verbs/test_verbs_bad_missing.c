/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs: what software over Ethernet does not have says so, with the errno of its manual page, through the inline functions that
 * programs compile in: flow steering, receive work queues, counters, tag matching, packet pacing, connection options of vendors. And the
 * device's attributes promise none of it.
 */
#include <stdio.h>

#include "verbs/newer.h"
#include "verbs_fixture.h"

void ur_suite_verbs_bad_missing(void);

static void said(int got, int want, const char *call)
{
	CU_ASSERT_EQUAL(got, want);
	if (got != want)
		printf("\n    %s: %d instead of %d", call, got, want);
}

/* A call that makes something. */
#define NOT_MADE(call)                                                                                                                     \
	do {                                                                                                                               \
		errno = 0;                                                                                                                 \
		CU_ASSERT_PTR_NULL(call);                                                                                                  \
		said(errno, EOPNOTSUPP, #call);                                                                                            \
	} while (0)
#define REFUSED(call) said(call, EOPNOTSUPP, #call)

static void flows__and_their_actions(void)
{
	struct ibv_flow_action_esp_attr esp = {0};
	struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1};
	struct ibv_flow_action action = {0};
	struct ibv_flow flow = {0};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	flow.context = action.context = f.ctx;
	NOT_MADE(ibv_create_flow(f.qp, &attr));
	REFUSED(ibv_destroy_flow(&flow));
	NOT_MADE(ibv_create_flow_action_esp(f.ctx, &esp));
	REFUSED(ibv_modify_flow_action_esp(&action, &esp));
	REFUSED(ibv_destroy_flow_action(&action));
	verbs_fixture_unmake(&f);
}

static void work_queues__and_their_tables(void)
{
	struct ibv_wq_init_attr ia = {.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1};
	struct ibv_rwq_ind_table_init_attr ta = {.log_ind_tbl_size = 0};
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
	struct ibv_rwq_ind_table table = {0};
	struct verbs_fixture f;
	struct ibv_wq wq = {0};

	verbs_fixture_make(&f);
	ia.pd = f.pd;
	ia.cq = f.cq;
	wq.context = table.context = f.ctx;
	NOT_MADE(ibv_create_wq(f.ctx, &ia));
	REFUSED(ibv_modify_wq(&wq, &attr));
	REFUSED(ibv_destroy_wq(&wq));
	NOT_MADE(ibv_create_rwq_ind_table(f.ctx, &ta));
	REFUSED(ibv_destroy_rwq_ind_table(&table));
	verbs_fixture_unmake(&f);
}

static void counters__of_flows(void)
{
	struct ibv_counter_attach_attr at = {.counter_desc = IBV_COUNTER_PACKETS};
	struct ibv_counters_init_attr ia = {0};
	struct ibv_counters counters = {0};
	struct ibv_flow flow = {0};
	struct verbs_fixture f;
	uint64_t values[1];

	verbs_fixture_make(&f);
	counters.context = flow.context = f.ctx;
	NOT_MADE(ibv_create_counters(f.ctx, &ia));
	REFUSED(ibv_attach_counters_point_flow(&counters, &at, &flow));
	REFUSED(ibv_read_counters(&counters, values, 1, 0));
	REFUSED(ibv_destroy_counters(&counters));
	verbs_fixture_unmake(&f);
}

static void tag_matching__and_its_operations(void)
{
	struct ibv_srq_init_attr_ex tm = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
						       IBV_SRQ_INIT_ATTR_TM,
					  .srq_type = IBV_SRQT_TM,
					  .attr = {.max_wr = 4, .max_sge = 1},
					  .tm_cap = {.max_num_tags = 1, .max_ops = 1}};
	struct ibv_srq_init_attr basic = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_SYNC}, *bad = NULL;
	struct verbs_fixture f;
	struct ibv_srq *srq;

	verbs_fixture_make(&f);
	tm.pd = f.pd;
	tm.cq = f.cq;
	NOT_MADE(ibv_create_srq_ex(f.ctx, &tm));
	srq = ibv_create_srq(f.pd, &basic);
	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	REFUSED(ibv_post_srq_ops(srq, &op, &bad));
	CU_ASSERT_PTR_EQUAL(bad, &op);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	verbs_fixture_unmake(&f);
}

/* With rate_limit in a mask of ibv_modify_qp, which has no member for it of old, it is as wrong as any attribute out of place. */
static void packet_pacing__is_not_there(void)
{
	struct ibv_qp_rate_limit_attr limit = {.rate_limit = 1000};
	struct ibv_qp_attr attr = {.rate_limit = 1000};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	REFUSED(ibv_modify_qp_rate_limit(f.qp, &limit));
	said(ibv_modify_qp(f.qp, &attr, IBV_QP_RATE_LIMIT), EINVAL, "ibv_modify_qp");
	verbs_fixture_unmake(&f);
}

/* No options: none are told, and those of a vendor are refused. */
static void ece__has_no_options(void)
{
	struct ibv_ece of_a_vendor = {.vendor_id = 0x15b3, .options = 7}, none = {0}, got = {.vendor_id = 1, .options = 2, .comp_mask = 3};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	errno = 0;
	REFUSED(ibv_query_ece(f.qp, &got));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	CU_ASSERT_TRUE(!got.vendor_id && !got.options && !got.comp_mask);
	REFUSED(ibv_set_ece(f.qp, &of_a_vendor));
	said(ibv_set_ece(f.qp, &none), EINVAL, "ibv_set_ece without options");
	said(ibv_set_ece(NULL, &of_a_vendor), EINVAL, "ibv_set_ece without QP");
	said(ibv_query_ece(NULL, &got), EINVAL, "ibv_query_ece without QP");
	said(ibv_set_ece(f.qp, NULL), EINVAL, "ibv_set_ece without attributes");
	said(ibv_query_ece(f.qp, NULL), EINVAL, "ibv_query_ece without attributes");
	verbs_fixture_unmake(&f);
}

static void create_qp__types_of_other_devices(void)
{
	static const int types[] = {IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(types); i++) {
		struct ibv_qp_init_attr ia = {.send_cq = f.cq, .recv_cq = f.cq, .cap = {1, 1, 1, 1, 0}};
		struct ibv_qp_init_attr_ex ex = {.send_cq = f.cq, .recv_cq = f.cq, .pd = f.pd, .cap = {1, 1, 1, 1, 0}};

		ia.qp_type = ex.qp_type = (enum ibv_qp_type)types[i];
		NOT_MADE(ibv_create_qp(f.pd, &ia));
		ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
		NOT_MADE(ibv_create_qp_ex(f.ctx, &ex));
	}
	verbs_fixture_unmake(&f);
}

static void create_qp_ex__attributes_of_other_devices(void)
{
	static const struct {
		uint32_t mask, flags;
	} t[] = {
		{IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0},
		{IBV_QP_INIT_ATTR_IND_TABLE, 0},
		{IBV_QP_INIT_ATTR_RX_HASH, 0},
		{IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_SCATTER_FCS},
		{IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_CVLAN_STRIPPING},
		{IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_SOURCE_QPN},
		{IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_PCI_WRITE_END_PADDING},
		{IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB}, /* of datagrams alone */
		{1u << 31, 0},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_RC,
						 .send_cq = f.cq,
						 .recv_cq = f.cq,
						 .pd = f.pd,
						 .cap = {1, 1, 1, 1, 0},
						 .comp_mask = IBV_QP_INIT_ATTR_PD | t[i].mask,
						 .create_flags = t[i].flags};

		NOT_MADE(ibv_create_qp_ex(f.ctx, &ex));
	}
	verbs_fixture_unmake(&f);
}

/* rdma-core 44 has no name for it: IBV_QP_EX_WITH_FLUSH. Only what peers ask for is done (CHANGELOG). */
static void create_qp_ex__no_flush_as_a_requester(void)
{
	struct verbs_fixture f;
	struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp;

	verbs_fixture_make(&f);
	ex.send_cq = ex.recv_cq = f.cq;
	ex.pd = f.pd;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | 1 << 11;
	NOT_MADE(ibv_create_qp_ex(f.ctx, &ex));
	ex.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
	qp = ibv_create_qp_ex(f.ctx, &ex);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	verbs_fixture_unmake(&f);
}

/* What programs call that were built against a newer rdma-core. */
static void newer_functions__say_so(void)
{
	struct verbs_fixture f;
	uint64_t value;

	verbs_fixture_make(&f);
	NOT_MADE(ibv_alloc_dmah(f.ctx, NULL));
	REFUSED(ibv_dealloc_dmah(NULL));
	errno = 0;
	CU_ASSERT_EQUAL(ibv_dm_export_dmabuf_fd(NULL), -1);
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	REFUSED(_ibv_query_comp_cntr_caps(f.ctx, NULL, 0));
	NOT_MADE(ibv_create_comp_cntr(f.ctx, NULL));
	REFUSED(ibv_destroy_comp_cntr(NULL));
	REFUSED(ibv_qp_attach_comp_cntr(f.qp, NULL, NULL));
	REFUSED(ibv_set_comp_cntr(NULL, 1));
	REFUSED(ibv_set_err_comp_cntr(NULL, 1));
	REFUSED(ibv_inc_comp_cntr(NULL, 1));
	REFUSED(ibv_inc_err_comp_cntr(NULL, 1));
	REFUSED(ibv_read_comp_cntr(NULL, &value));
	REFUSED(ibv_read_err_comp_cntr(NULL, &value));
	verbs_fixture_unmake(&f);
}

static void query_qp_data_in_order__promises_nothing(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
						 (enum ibv_wr_opcode)1000};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(ops); i++)
		CU_ASSERT_EQUAL(ibv_query_qp_data_in_order(f.qp, ops[i], 0), 0);
	CU_ASSERT_EQUAL(ibv_query_qp_data_in_order(f.qp, IBV_WR_SEND, UINT32_MAX), 0);
	verbs_fixture_unmake(&f);
}

/* A program that looks before it asks finds none of it; and what the struct of an older program has no room for is not written. */
static void query_device_ex__promises_none_of_it(void)
{
	struct ibv_device_attr_ex a, zero = {.comp_mask = 0};
	struct ibv_context *ctx = verbs_fixture_open();
	struct ibv_device_attr old;
	uint8_t room[sizeof(a)];

	CU_ASSERT_EQUAL_FATAL(ibv_query_device_ex(ctx, NULL, &a), 0);
	CU_ASSERT_EQUAL(a.comp_mask, 0);
	CU_ASSERT_EQUAL(memcmp(&a.tso_caps, &zero.tso_caps, sizeof(a.tso_caps)), 0);
	CU_ASSERT_EQUAL(memcmp(&a.rss_caps, &zero.rss_caps, sizeof(a.rss_caps)), 0);
	CU_ASSERT_EQUAL(memcmp(&a.packet_pacing_caps, &zero.packet_pacing_caps, sizeof(a.packet_pacing_caps)), 0);
	CU_ASSERT_EQUAL(memcmp(&a.tm_caps, &zero.tm_caps, sizeof(a.tm_caps)), 0);
	CU_ASSERT_EQUAL(a.raw_packet_caps, 0);
	CU_ASSERT_EQUAL(a.max_wq_type_rq, 0);
	CU_ASSERT_EQUAL(a.phys_port_cnt_ex, 1);
	CU_ASSERT_EQUAL(ibv_query_device(ctx, &old), 0);
	CU_ASSERT_STRING_EQUAL(old.fw_ver, a.orig_attr.fw_ver);
	CU_ASSERT_TRUE(old.max_qp == a.orig_attr.max_qp && old.max_mr == a.orig_attr.max_mr && old.node_guid == a.orig_attr.node_guid);
	CU_ASSERT_EQUAL(a.device_cap_flags_ex & UINT32_MAX, old.device_cap_flags);
	CU_ASSERT_EQUAL(a.device_cap_flags_ex >> 32,
			UR_FLUSH_PERSISTS ? 7 << 6 : 5 << 6); /* FLUSH to visibility, to persistence, ATOMIC WRITE */
	CU_ASSERT_TRUE(old.device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT);
	CU_ASSERT_FALSE(old.device_cap_flags & (IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_RAW_MULTI |
						IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING));
	CU_ASSERT_FALSE(a.device_cap_flags_ex & (IBV_DEVICE_RAW_SCATTER_FCS | IBV_DEVICE_PCI_WRITE_END_PADDING));
	/* An older program's. */
	memset(room, 0x5a, sizeof(room));
	CU_ASSERT_EQUAL(uv_query_device_ex(ctx, NULL, (struct ibv_device_attr_ex *)room, sizeof(old) + 8), 0);
	CU_ASSERT_EQUAL(room[sizeof(old) + 8], 0x5a);
	CU_ASSERT_EQUAL(uv_query_device_ex(ctx, NULL, (struct ibv_device_attr_ex *)room, sizeof(old) - 1), EINVAL);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_bad_missing(void)
{
	CU_pSuite s = CU_add_suite("verbs_bad_missing", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, flows__and_their_actions);
	CU_ADD_TEST(s, work_queues__and_their_tables);
	CU_ADD_TEST(s, counters__of_flows);
	CU_ADD_TEST(s, tag_matching__and_its_operations);
	CU_ADD_TEST(s, packet_pacing__is_not_there);
	CU_ADD_TEST(s, ece__has_no_options);
	CU_ADD_TEST(s, create_qp__types_of_other_devices);
	CU_ADD_TEST(s, create_qp_ex__attributes_of_other_devices);
	CU_ADD_TEST(s, create_qp_ex__no_flush_as_a_requester);
	CU_ADD_TEST(s, newer_functions__say_so);
	CU_ADD_TEST(s, query_qp_data_in_order__promises_nothing);
	CU_ADD_TEST(s, query_device_ex__promises_none_of_it);
}
