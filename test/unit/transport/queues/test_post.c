/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/queues/post.c, wr_op.c. */
#include <errno.h>

#include "calloc.h"
#include "tp_harness.h"

static void post_send__states(void)
{
	static const struct {
		enum ibv_qp_state st;
		int send, recv;
	} t[] = {
		{IBV_QPS_RESET, EINVAL, EINVAL},
		{IBV_QPS_INIT, EINVAL, 0},
		{IBV_QPS_RTR, EINVAL, 0},
		{IBV_QPS_RTS, 0, 0},
		{IBV_QPS_SQD, 0, 0},
		{IBV_QPS_SQE, 0, 0},
		{IBV_QPS_ERR, 0, 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;

		th_open(&h, &th_default);
		atomic_store(&h.n[0].qp->state, t[i].st);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, 1, 0, 8, 0, 0), t[i].send);
		CU_ASSERT_EQUAL(th_recv(&h, 0, 1, 0, 8), t[i].recv);
		th_close(&h);
	}
}

static void post_send__opcodes_and_flags(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		unsigned flags;
		int err;
	} t[] = {
		{IBV_WR_SEND, IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE, 0},
		{IBV_WR_SEND_WITH_IMM, 0, 0},
		{IBV_WR_SEND_WITH_INV, 0, 0},
		{IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 0},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0},
		{IBV_WR_RDMA_READ, IBV_SEND_FENCE, 0},
		{IBV_WR_RDMA_READ, IBV_SEND_INLINE, EINVAL},
		{IBV_WR_SEND, IBV_SEND_IP_CSUM, EINVAL},
		{IBV_WR_SEND, 1u << 20, EINVAL},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_SEND_FENCE | IBV_SEND_SIGNALED, 0},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_SEND_INLINE, EINVAL},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_INLINE, EINVAL},
		{IBV_WR_ATOMIC_WRITE, IBV_SEND_INLINE, 0},
		{IBV_WR_LOCAL_INV, IBV_SEND_FENCE, 0},
		{IBV_WR_LOCAL_INV, IBV_SEND_INLINE, EINVAL},
		{IBV_WR_BIND_MW, IBV_SEND_INLINE, EINVAL},
		{IBV_WR_BIND_MW, 0, EINVAL}, /* no window is given */
		{IBV_WR_TSO, 0, EINVAL},
		{(enum ibv_wr_opcode)13, 0, EINVAL},
		{(enum ibv_wr_opcode)14, 0, EINVAL},
		{(enum ibv_wr_opcode)16, 0, EINVAL},
		{(enum ibv_wr_opcode)1000, 0, EINVAL},
	};
	static struct th h;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_ASSERT_EQUAL(th_post(&h, 0, t[i].op, 1, 0, 8, 0, t[i].flags), t[i].err);
	th_close(&h);
}

static void post_send__list_and_inline_limits(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ibv_sge sge[40];
	struct ur_qp *qp;
	uint32_t n;

	o.sge = 3;
	o.inline_data = 100;
	th_open(&h, &o);
	qp = h.n[0].qp;
	n = qp->cap.max_send_sge;
	CU_ASSERT_TRUE(n >= 3 && qp->cap.max_inline_data >= 100);
	for (unsigned i = 0; i < 40; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)h.n[0].mem, 1, h.n[0].mr->lkey};
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, sge, (int)n, 0, 0, 0), 0);
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, sge, (int)n + 1, 0, 0, 0), EINVAL);
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, sge, -1, 0, 0, 0), EINVAL);
	sge[0].length = qp->cap.max_inline_data;
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, sge, 1, 0, 0, IBV_SEND_INLINE), 0);
	sge[0].length++;
	CU_ASSERT_EQUAL(th_post_sge(&h, 0, IBV_WR_SEND, 1, sge, 1, 0, 0, IBV_SEND_INLINE), EINVAL);
	th_close(&h);
}

static void post_send__chain_stops_at_first_bad(void)
{
	static struct th h;
	struct ibv_send_wr wr[4] = {{0}}, *bad = NULL;

	th_open(&h, &th_default);
	for (unsigned i = 0; i < 4; i++) {
		wr[i].opcode = i == 2 ? IBV_WR_TSO : IBV_WR_SEND;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	CU_ASSERT_EQUAL(ur_qp_post_send(h.n[0].qp, wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr[2]);
	CU_ASSERT_EQUAL(atomic_load(&h.n[0].qp->sq.tail), 2);
	CU_ASSERT_TRUE(ur_qp_doorbell(h.n[0].qp));
	th_close(&h);
}

static void post__full_and_free_again(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.wr = 4;
	th_open(&h, &o);
	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = 0; i < 4; i++) {
			CU_ASSERT_EQUAL(th_recv(&h, 1, i, 0, 64), 0);
			CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
		}
		CU_ASSERT_EQUAL(th_recv(&h, 1, 9, 0, 64), ENOMEM);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, 9, 0, 8, 0, 0), ENOMEM);
		th_pump(&h);
		for (unsigned i = 0; i < 4; i++) {
			th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
			th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
		}
	}
	th_close(&h);
}

/* Batches of three through a ring of four, by reference and inline, with a forgotten one between: what arrives is what was posted. */
static void wr_batch__round_the_ring(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ur_wr_batch b;
	struct ibv_send_wr *wr;
	struct ur_qp *qp;

	o.wr = 4;
	o.inline_data = 64;
	th_open(&h, &o);
	qp = h.n[0].qp;
	for (unsigned round = 0; round < 50; round++) {
		th_fill(&h.n[0], round);
		for (unsigned abandon = 0; abandon < 2; abandon++) {
			if (abandon)
				ur_wr_abort(qp, &b);
			ur_wr_start(qp, &b);
			for (unsigned i = 0; i < 3; i++) {
				const struct ibv_sge sge = {(uintptr_t)h.n[0].mem + 64 * i, 64, h.n[0].mr->lkey};
				const struct ibv_data_buf buf = {h.n[0].mem + 64 * i, 64};

				wr = ur_wr_next(qp, &b);
				wr->wr_id = 3 * round + i;
				wr->opcode = IBV_WR_RDMA_WRITE;
				wr->send_flags = IBV_SEND_SIGNALED;
				wr->wr.rdma.remote_addr = (uintptr_t)h.n[1].mem + 64 * i + (abandon ? 0 : 4096);
				wr->wr.rdma.rkey = h.n[1].mr->rkey;
				if ((round + i) % 2)
					ur_wr_inline(qp, &b, &buf, 1);
				else
					ur_wr_list(qp, &b, &sge, 1);
			}
		}
		CU_ASSERT_FALSE(ur_qp_doorbell(qp));
		CU_ASSERT_EQUAL(ur_wr_complete(qp, &b), 0);
		CU_ASSERT_TRUE(ur_qp_doorbell(qp));
		ur_qp_answer(qp, h.now);
		th_pump(&h);
		for (unsigned i = 0; i < 3; i++)
			th_expect_wc(h.n[0].scq, 3 * round + i, IBV_WC_SUCCESS);
		th_expect_no_wc(h.n[0].scq);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, 192), 0);
	}
	th_close(&h);
}

static void wr_batch__full_until_the_shard_has_been_there(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ur_wr_batch b;
	struct ur_qp *qp;

	o.wr = 4;
	th_open(&h, &o);
	qp = h.n[0].qp;
	for (unsigned n = 1; n <= 5; n++) {
		ur_wr_start(qp, &b);
		for (unsigned i = 0; i < n; i++)
			*ur_wr_next(qp, &b) = (struct ibv_send_wr){.wr_id = i, .send_flags = IBV_SEND_SIGNALED}; /* a WRITE */
		CU_ASSERT_EQUAL(ur_wr_complete(qp, &b), n <= 4 ? 0 : ENOMEM);
		if (ur_qp_doorbell(qp))
			ur_qp_answer(qp, h.now);
		if (n == 4) {
			CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0), ENOMEM);
		}
		th_pump(&h);
		for (unsigned i = 0; i < n && n <= 4; i++)
			th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0), 0);
	th_close(&h);
}

/* By type and opcode; what a row of the table does not have yet is unsupported on all. */
static void wr_supported__types(void)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode op;
		bool is;
	} t[] = {
		{IBV_QPT_RC, IBV_WR_SEND, true},	 {IBV_QPT_UC, IBV_WR_SEND, true},
		{IBV_QPT_UD, IBV_WR_SEND, true},	 {IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, true},
		{IBV_QPT_UD, IBV_WR_RDMA_WRITE, false},	 {IBV_QPT_UD, IBV_WR_RDMA_READ, false},
		{IBV_QPT_UC, IBV_WR_RDMA_WRITE, true},	 {IBV_QPT_UC, IBV_WR_RDMA_READ, false},
		{IBV_QPT_RC, IBV_WR_RDMA_READ, true},	 {IBV_QPT_RC, IBV_WR_SEND_WITH_INV, true},
		{IBV_QPT_RC, IBV_WR_TSO, false},	 {IBV_QPT_RC, IBV_WR_DRIVER1, false},
		{IBV_QPT_RC, (enum ibv_wr_opcode)16, false}, {(enum ibv_qp_type)0, IBV_WR_SEND, false},
		{IBV_QPT_RAW_PACKET, IBV_WR_SEND, false}, {IBV_QPT_DRIVER, IBV_WR_SEND, false},
		{(enum ibv_qp_type)1000, IBV_WR_SEND, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_ASSERT_EQUAL(ur_wr_supported(t[i].type, t[i].op), t[i].is);
}

static void doorbell__once_for_each_kick(void)
{
	static struct th h;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr rr = {0}, *rbad;
	struct ur_qp *qp;

	th_open(&h, &th_default);
	qp = h.n[0].qp;
	CU_ASSERT_FALSE(ur_qp_doorbell(qp));
	ur_qp_post_send(qp, &wr, &bad);
	CU_ASSERT_TRUE(ur_qp_doorbell(qp));
	CU_ASSERT_FALSE(ur_qp_doorbell(qp));
	ur_qp_post_send(qp, &wr, &bad);
	CU_ASSERT_FALSE(ur_qp_doorbell(qp));
	ur_qp_answer(qp, h.now);
	CU_ASSERT_FALSE(ur_qp_doorbell(qp));
	ur_qp_post_recv(qp, &rr, &rbad);
	CU_ASSERT_FALSE(ur_qp_doorbell(qp));
	ur_qp_post_send(qp, &wr, &bad);
	CU_ASSERT_TRUE(ur_qp_doorbell(qp));
	CU_ASSERT_PTR_NULL(*ur_qp_doorbell_link(qp));
	th_close(&h);
}

static void post_recv__limits(void)
{
	static struct th h;
	struct ibv_sge sge[8] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 4}, *bad = NULL;

	th_open(&h, &th_default);
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[0].qp, &wr, &bad), 0);
	wr.num_sge = 5;
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[0].qp, &wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr);
	wr.num_sge = -1;
	CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[0].qp, &wr, &bad), EINVAL);
	th_close(&h);
}

/* The first request with operands brings a ring for them. Without memory for it the SQ is full, for that request alone. */
static void post__no_memory_for_operands(void)
{
	static struct th h;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD}, *bad = NULL;

	th_open(&h, &th_default);
	sge = (struct ibv_sge){(uintptr_t)h.n[0].mem, 8, h.n[0].mr->lkey};
	no_calloc = true;
	CU_ASSERT_EQUAL(ur_qp_post_send(h.n[0].qp, &wr, &bad), ENOMEM);
	CU_ASSERT_PTR_EQUAL(bad, &wr);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	no_calloc = false;
	CU_ASSERT_EQUAL(ur_qp_post_send(h.n[0].qp, &wr, &bad), 0);
	CU_ASSERT_PTR_NOT_NULL(h.n[0].qp->sq_ext);
	th_close(&h);
}

void ur_suite_post(void);

void ur_suite_post(void)
{
	CU_pSuite s = CU_add_suite("post", NULL, NULL);

	CU_ADD_TEST(s, post_send__states);
	CU_ADD_TEST(s, post_send__opcodes_and_flags);
	CU_ADD_TEST(s, post_send__list_and_inline_limits);
	CU_ADD_TEST(s, post_send__chain_stops_at_first_bad);
	CU_ADD_TEST(s, post__full_and_free_again);
	CU_ADD_TEST(s, wr_batch__round_the_ring);
	CU_ADD_TEST(s, wr_batch__full_until_the_shard_has_been_there);
	CU_ADD_TEST(s, wr_supported__types);
	CU_ADD_TEST(s, doorbell__once_for_each_kick);
	CU_ADD_TEST(s, post_recv__limits);
	CU_ADD_TEST(s, post__no_memory_for_operands);
}
