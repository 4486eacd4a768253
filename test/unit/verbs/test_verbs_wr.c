/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/wr.c: who has which operations, and that each writes what ibv_post_send(3) writes. */
#include "verbs_wr_fixture.h"

void ur_suite_verbs_wr(void);

/* --- creation --- */

static void create_qp_ex__send_ops(void)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
		int err;
	} cases[] = {
		{IBV_QPT_RC, 0, 0},
		{IBV_QPT_RC, BASIC_OPS, 0},
		{IBV_QPT_RC, IBV_QP_EX_WITH_TSO, EOPNOTSUPP},
		{IBV_QPT_RC, BASIC_OPS | IBV_QP_EX_WITH_TSO, EOPNOTSUPP},
		{IBV_QPT_RC, 1ull << 11, EOPNOTSUPP},
		{IBV_QPT_RC, 1ull << 63, EOPNOTSUPP},
		{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP},
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_INV, EOPNOTSUPP},
		{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, EOPNOTSUPP},
		{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP},
		{IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND, EOPNOTSUPP},
		{(enum ibv_qp_type)0, IBV_QP_EX_WITH_SEND, EOPNOTSUPP},
		{IBV_QPT_DRIVER, IBV_QP_EX_WITH_SEND, EOPNOTSUPP},
	};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct ibv_qp_init_attr_ex ex = {.send_cq = f.cq,
						 .recv_cq = f.cq,
						 .qp_type = cases[i].type,
						 .pd = f.pd,
						 .cap = {.max_send_wr = 1, .max_send_sge = 1},
						 .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
						 .send_ops_flags = cases[i].ops};
		struct ibv_qp *qp;

		errno = 0;
		qp = ibv_create_qp_ex(f.ctx, &ex);
		CU_ASSERT_EQUAL(qp ? 0 : errno, cases[i].err);
		if (!qp)
			continue;
		CU_ASSERT_PTR_EQUAL(ibv_qp_to_qp_ex(qp), (struct ibv_qp_ex *)qp);
		CU_ASSERT_EQUAL(ibv_qp_to_qp_ex(qp)->wr_send != NULL, (cases[i].ops & IBV_QP_EX_WITH_SEND) != 0);
		CU_ASSERT_EQUAL(ibv_qp_to_qp_ex(qp)->wr_rdma_read != NULL, (cases[i].ops & IBV_QP_EX_WITH_RDMA_READ) != 0);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	}
	CU_ASSERT_PTR_NULL(ibv_qp_to_qp_ex(f.qp));
	verbs_fixture_unmake(&f);
}

static void create_qp_ex__what_ethernet_offers_is_refused(void)
{
	static const uint32_t masks[] = {IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_INIT_ATTR_IND_TABLE, IBV_QP_INIT_ATTR_RX_HASH, 1u << 30};
	static const uint32_t flags[] = {IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING, IBV_QP_CREATE_SOURCE_QPN,
					 IBV_QP_CREATE_PCI_WRITE_END_PADDING, 1u << 30};
	struct verbs_fixture f;
	struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};

	verbs_fixture_make(&f);
	ex.pd = f.pd;
	ex.send_cq = ex.recv_cq = f.cq;
	for (unsigned i = 0; i < ur_array_size(masks); i++) {
		ex.comp_mask = IBV_QP_INIT_ATTR_PD | masks[i];
		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_create_qp_ex(f.ctx, &ex));
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	}
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	for (unsigned i = 0; i < ur_array_size(flags); i++) {
		ex.create_flags = flags[i];
		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_create_qp_ex(f.ctx, &ex));
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	}
	verbs_fixture_unmake(&f);
}

/* --- a request is the same whichever way it is posted --- */

enum data { NO_DATA, ONE_SGE, SGE_LIST, INLINE, INLINE_LIST };

static uint8_t payload[64];
static const struct ibv_sge sges[3] = {{0x1000, 10, 7}, {0x2000, 0, 8}, {0x3000, 1u << 20, 9}};
static struct ibv_sge bufs[3]; /* pieces of `payload` */
static struct ibv_mw window = {.rkey = 0x5600};
static struct ibv_mr region = {.addr = payload, .length = sizeof(payload), .lkey = 0x7800, .rkey = 0x7800};

struct request {
	uint64_t op;
	struct ibv_send_wr wr;
	enum data data;
};

static const struct request requests[] = {
	{IBV_QP_EX_WITH_SEND, {.opcode = IBV_WR_SEND}, NO_DATA},
	{IBV_QP_EX_WITH_SEND, {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE}, ONE_SGE},
	{IBV_QP_EX_WITH_SEND, {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SOLICITED}, SGE_LIST},
	{IBV_QP_EX_WITH_SEND, {.opcode = IBV_WR_SEND}, INLINE},
	{IBV_QP_EX_WITH_SEND, {.opcode = IBV_WR_SEND}, INLINE_LIST},
	{IBV_QP_EX_WITH_SEND_WITH_IMM, {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x11223344}, ONE_SGE},
	{IBV_QP_EX_WITH_SEND_WITH_INV, {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 0x55}, SGE_LIST},
	{IBV_QP_EX_WITH_RDMA_WRITE, {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {RADDR, RKEY}}, ONE_SGE},
	{IBV_QP_EX_WITH_RDMA_WRITE, {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {RADDR, RKEY}}, INLINE},
	{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .wr.rdma = {RADDR, RKEY}, .imm_data = 0x99}, SGE_LIST},
	{IBV_QP_EX_WITH_RDMA_READ, {.opcode = IBV_WR_RDMA_READ, .wr.rdma = {RADDR, RKEY}, .send_flags = IBV_SEND_FENCE}, SGE_LIST},
	{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .wr.atomic = {RADDR, 1ull << 40, 7, RKEY}}, ONE_SGE},
	{IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic = {RADDR, 1ull << 40, 0, RKEY}}, ONE_SGE},
	{IBV_QP_EX_WITH_ATOMIC_WRITE, {.opcode = IBV_WR_ATOMIC_WRITE, .wr.rdma = {RADDR, RKEY}}, INLINE},
	{IBV_QP_EX_WITH_LOCAL_INV, {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 0x5600}, NO_DATA},
	{IBV_QP_EX_WITH_BIND_MW,
	 {.opcode = IBV_WR_BIND_MW, .bind_mw = {&window, 0x5601, {&region, (uintptr_t)payload, 16, IBV_ACCESS_REMOTE_READ}}},
	 NO_DATA},
};

static size_t inline_length(const struct request *r)
{
	return r->wr.opcode == IBV_WR_ATOMIC_WRITE ? 8 : 13;
}

static int old_way(struct ibv_qp *qp, const struct request *r)
{
	struct ibv_sge one = {(uintptr_t)payload, (uint32_t)inline_length(r), 0};
	struct ibv_send_wr wr = r->wr, *bad;

	wr.wr_id = 77;
	switch (r->data) {
	case NO_DATA: break;
	case ONE_SGE:
		wr.sg_list = (struct ibv_sge *)(uintptr_t)sges;
		wr.num_sge = 1;
		break;
	case SGE_LIST:
		wr.sg_list = (struct ibv_sge *)(uintptr_t)sges;
		wr.num_sge = 3;
		break;
	case INLINE:
		wr.sg_list = &one;
		wr.num_sge = 1;
		wr.send_flags |= IBV_SEND_INLINE;
		break;
	case INLINE_LIST:
		wr.sg_list = bufs;
		wr.num_sge = 3;
		wr.send_flags |= IBV_SEND_INLINE;
		break;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static void build(struct ibv_qp_ex *x, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND: ibv_wr_send(x); break;
	case IBV_WR_SEND_WITH_IMM: ibv_wr_send_imm(x, wr->imm_data); break;
	case IBV_WR_SEND_WITH_INV: ibv_wr_send_inv(x, wr->invalidate_rkey); break;
	case IBV_WR_RDMA_WRITE: ibv_wr_rdma_write(x, RKEY, RADDR); break;
	case IBV_WR_RDMA_WRITE_WITH_IMM: ibv_wr_rdma_write_imm(x, RKEY, RADDR, wr->imm_data); break;
	case IBV_WR_RDMA_READ: ibv_wr_rdma_read(x, RKEY, RADDR); break;
	case IBV_WR_ATOMIC_CMP_AND_SWP: ibv_wr_atomic_cmp_swp(x, RKEY, RADDR, wr->wr.atomic.compare_add, wr->wr.atomic.swap); break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD: ibv_wr_atomic_fetch_add(x, RKEY, RADDR, wr->wr.atomic.compare_add); break;
	case IBV_WR_ATOMIC_WRITE: ibv_wr_atomic_write(x, RKEY, RADDR, payload); break;
	case IBV_WR_LOCAL_INV: ibv_wr_local_inv(x, wr->invalidate_rkey); break;
	case IBV_WR_BIND_MW: ibv_wr_bind_mw(x, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info); break;
	default: CU_FAIL("no builder for this request");
	}
}

static int new_way(struct ibv_qp *qp, const struct request *r)
{
	const struct ibv_data_buf list[3] = {{payload, 4}, {NULL, 0}, {payload + 4, 9}};
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp);

	x->wr_id = 77;
	x->wr_flags = r->wr.send_flags;
	ibv_wr_start(x);
	build(x, &r->wr);
	switch (r->data) {
	case NO_DATA: break;
	case ONE_SGE: ibv_wr_set_sge(x, sges[0].lkey, sges[0].addr, sges[0].length); break;
	case SGE_LIST: ibv_wr_set_sge_list(x, 3, sges); break;
	case INLINE:
		if (r->wr.opcode != IBV_WR_ATOMIC_WRITE) /* whose builder brings it */
			ibv_wr_set_inline_data(x, payload, inline_length(r));
		break;
	case INLINE_LIST: ibv_wr_set_inline_data_list(x, 3, list); break;
	}
	return ibv_wr_complete(x);
}

static void compare(struct verbs_fixture *f, const struct request *r)
{
	struct ibv_qp *a = verbs_wr_ready(f, r->op, 4), *b = verbs_wr_ready(f, r->op, 4);
	const struct ur_qp *qa = verbs_wr_tp(a), *qb = verbs_wr_tp(b);
	struct ibv_mw *mw = r->wr.opcode == IBV_WR_BIND_MW ? r->wr.bind_mw.mw : NULL;
	uint32_t key = mw ? mw->rkey : 0;
	int err;

	/* The memory of a queue is not zeroed, and a request does not write all of it. */
	memset(ur_sq_at(qa, 0), 0, sizeof(struct ur_swqe));
	memset(ur_sq_at(qb, 0), 0, sizeof(struct ur_swqe));
	err = old_way(a, r);
	if (mw)
		mw->rkey = key; /* posting has changed it */

	CU_ASSERT_EQUAL(new_way(b, r), err);
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT_EQUAL(verbs_wr_posted(a), 1);
	CU_ASSERT_EQUAL(verbs_wr_posted(b), 1);
	CU_ASSERT_EQUAL(ur_sq_at(qb, 0)->wr_id, 77);
	CU_ASSERT_EQUAL(ur_sq_at(qb, 0)->opcode, r->wr.opcode);
	CU_ASSERT_EQUAL(memcmp(ur_sq_at(qa, 0), ur_sq_at(qb, 0), sizeof(struct ur_swqe)), 0);
	if (r->data == INLINE || r->data == INLINE_LIST) {
		CU_ASSERT_EQUAL(memcmp(ur_sq_at(qb, 0)->sge, payload, inline_length(r)), 0);
	} else {
		CU_ASSERT_EQUAL(memcmp(ur_sq_at(qb, 0)->sge, sges, ur_sq_at(qa, 0)->nsge * sizeof(sges[0])), 0);
	}
	CU_ASSERT_EQUAL(!qa->sq_ext, !qb->sq_ext);
	if (qa->sq_ext && qb->sq_ext)
		CU_ASSERT_EQUAL(memcmp(ur_sq_ext_at(qa, 0), ur_sq_ext_at(qb, 0), sizeof(struct ur_swqe_ext)), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(b), 0);
}

static void wr__writes_what_post_send_writes(void)
{
	struct verbs_fixture f;
	unsigned compared = 0;

	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i + 1);
	bufs[0] = (struct ibv_sge){(uintptr_t)payload, 4, 0};
	bufs[2] = (struct ibv_sge){(uintptr_t)payload + 4, 9, 0};
	verbs_fixture_make(&f);
	for (unsigned i = 0; i < ur_array_size(requests); i++) {
		struct ibv_qp *qp;

		if (ur_wr_supported(IBV_QPT_RC, requests[i].wr.opcode)) {
			compare(&f, &requests[i]);
			compared++;
			continue;
		}
		errno = 0;
		qp = verbs_wr_create(&f, requests[i].op, 4);
		CU_ASSERT_PTR_NULL(qp);
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	}
	CU_ASSERT_TRUE(compared >= 11);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_wr(void)
{
	CU_pSuite s = CU_add_suite("verbs_wr", verbs_fixture_init, NULL);

	CU_ADD_TEST(s, create_qp_ex__send_ops);
	CU_ADD_TEST(s, create_qp_ex__what_ethernet_offers_is_refused);
	CU_ADD_TEST(s, wr__writes_what_post_send_writes);
}
