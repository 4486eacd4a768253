/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues in memory that somebody else brings: ur_qp_lend, ur_srq_lend, ur_cq_lend. */
#include <stdlib.h>

#include "tp_harness.h"

void ur_suite_lend(void);

static void *memory(size_t n)
{
	void *p = aligned_alloc(UR_RING_ALIGN, n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(n % UR_RING_ALIGN, 0);
	memset(p, 0xa5, n);
	return p;
}

static bool used(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != 0xa5)
			return true;
	return false;
}

/* Everything that is posted and completed lies there, and nobody but its owner frees it. */
static void lend__queues_and_completions(void)
{
	static struct th h;
	struct th_opt o = th_default;
	size_t sq[2], rq[2], cq;
	void *smem[2], *rmem[2], *cmem;

	o.wr = 4;
	th_open(&h, &o);
	for (unsigned i = 0; i < 2; i++) {
		ur_qp_ring_bytes(h.n[i].qp, &sq[i], &rq[i]);
		CU_ASSERT_TRUE(sq[i] >= 4 * 48 && rq[i] >= 4 * 32);
		smem[i] = memory(sq[i]);
		rmem[i] = memory(rq[i]);
		ur_qp_lend(h.n[i].qp, smem[i], rmem[i]);
	}
	cq = ur_cq_ring_bytes(h.n[1].rcq);
	cmem = memory(cq);
	ur_cq_lend(h.n[1].rcq, cmem);
	for (uint64_t i = 0; i < 10; i++) { /* more than once round */
		th_recv(&h, 1, i, 0, 64);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_SEND, i, 0, 64, 0, IBV_SEND_SIGNALED), 0);
		th_pump(&h);
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
		th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_TRUE(used(smem[0], sq[0]) && used(rmem[1], rq[1]) && used(cmem, cq));
	CU_ASSERT_FALSE(used(rmem[0], rq[0]) || used(smem[1], sq[1]));
	/* Resized, it lies elsewhere. */
	th_recv(&h, 1, 20, 0, 64);
	th_post(&h, 0, IBV_WR_SEND, 20, 0, 64, 0, 0);
	th_pump(&h);
	CU_ASSERT_EQUAL(ur_cq_resize(h.n[1].rcq, 4 * ur_cq_size(h.n[1].rcq)), 0);
	memset(cmem, 0, cq);
	th_expect_wc(h.n[1].rcq, 20, IBV_WC_SUCCESS);
	th_close(&h);
	free(cmem);
	for (unsigned i = 0; i < 2; i++) {
		free(smem[i]);
		free(rmem[i]);
	}
}

static void lend__nothing_to_lend(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ur_srq_init si = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ur_qp_init qi = {.type = IBV_QPT_RC};
	struct ibv_srq_attr a = {.max_wr = 64};
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ur_srq *srq;
	struct ur_qp *qp;
	size_t sq, rq, n;
	void *mem;

	th_open(&h, &o);
	si.pd = qi.pd = h.n[1].pd;
	qi.send_cq = h.n[1].scq;
	qi.recv_cq = h.n[1].rcq;
	CU_ASSERT_EQUAL_FATAL(ur_srq_create(h.n[1].tp, &si, &srq), 0);
	qi.srq = srq;
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(h.n[1].tp, &qi, &qp), 0);
	ur_qp_ring_bytes(qp, &sq, &rq);
	CU_ASSERT_EQUAL(sq, 0); /* it was asked for without sends, */
	CU_ASSERT_EQUAL(rq, 0); /* and receives through the SRQ */
	ur_qp_lend(qp, NULL, NULL);
	n = ur_srq_ring_bytes(srq);
	mem = memory(n);
	ur_srq_lend(srq, mem);
	sge = (struct ibv_sge){(uintptr_t)h.n[1].mem, 8, h.n[1].mr->lkey};
	CU_ASSERT_EQUAL(ur_srq_post(srq, &wr, &bad), 0);
	CU_ASSERT_TRUE(used(mem, n));
	CU_ASSERT_EQUAL(ur_srq_modify(srq, &a, IBV_SRQ_MAX_WR), 0);
	free(mem);
	CU_ASSERT_EQUAL(ur_srq_post(srq, &wr, &bad), 0);
	CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
	CU_ASSERT_EQUAL(ur_srq_destroy(srq), 0);
	th_close(&h);
}

void ur_suite_lend(void)
{
	CU_pSuite s = CU_add_suite("lend", NULL, NULL);

	CU_ADD_TEST(s, lend__queues_and_completions);
	CU_ADD_TEST(s, lend__nothing_to_lend);
}
