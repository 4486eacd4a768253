/* SPDX-License-Identifier: BSD-3-Clause */
/* What bounds lib/transport/pending/reorder.c: memory, the span, READs that cover others, the end of the QP. */
#include "reorder_harness.h"

void ur_suite_reorder_bounds(void);

/* Of little memory a QP leaves a quarter, of a size, and what finds no room is dropped as if nothing were kept. All of it comes back. */
static void keep__bounds(void)
{
	uint64_t kept = 0;

	open_kept(&fixture, 100, 1 << 19);
	for (unsigned round = 0; round < 3; round++) {
		const uint64_t before = count(&fixture, UR_C_RX_KEPT);
		const uint32_t first = 100 + 301 * round;

		for (unsigned i = 1; i <= 300; i++)
			write_one(&fixture, first, i, false);
		if (round)
			CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT) - before, kept);
		kept = count(&fixture, UR_C_RX_KEPT) - before;
		CU_ASSERT_TRUE(kept > 38 && kept < 200);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_FULL), (round + 1) * (300 - kept));
		CU_ASSERT_EQUAL(count(&fixture, UR_C_DROP_OUT_OF_SEQ), count(&fixture, UR_C_KEEP_FULL));
		for (unsigned i = 0; i <= 300; i++)
			if (ur_psn_diff(first + i, fixture.n[1].qp->resp.epsn) >= 0)
				write_one(&fixture, first, i, false);
		th_drain(&fixture, 1);
		CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, first + 301);
	}
	th_close(&fixture);
	open_kept(&fixture, 100, 64); /* none at all */
	write_one(&fixture, 100, 1, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_FULL), 1);
	th_expect_ack(&fixture, 1, 100, SEQ_NAK);
	th_close(&fixture);
}

static void keep__span(void)
{
	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100 + UR_REORDER_SPAN, 0, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_DROP_OUT_OF_SEQ), 1);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	write_one(&fixture, 100 + UR_REORDER_SPAN - 1, 0, false);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT), 1);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_FULL), 0);
	th_close(&fixture); /* with something kept */
}

/* A copy is found by the PSN that it begins with, among others of its row, and of the next. */
static void keep__at(void)
{
	static const unsigned kept[] = {2, 5, 70};
	const uint32_t first = 0xffffc0;
	unsigned n = 0;

	open_kept(&fixture, first, 0);
	for (unsigned i = 0; i < ur_array_size(kept); i++)
		write_one(&fixture, first, kept[i], false);
	for (unsigned i = 0; i < 80; i++) {
		const struct ur_reordered *k = ur_reorder_at(fixture.n[1].qp, ur_psn_add(first, i));

		CU_ASSERT_EQUAL(k != NULL, n < ur_array_size(kept) && i == kept[n]);
		if (k)
			CU_ASSERT_EQUAL(k->psn, ur_psn_add(first, kept[n++]));
	}
	CU_ASSERT_EQUAL(n, ur_array_size(kept));
	CU_ASSERT_PTR_NULL(ur_reorder_next(fixture.n[1].qp));
	th_close(&fixture);
}

/* The memory comes in pieces: more than one holds is kept, executed and kept again. */
static void keep__more_than_a_piece(void)
{
	enum { N = 8191 };
	uint32_t first = 0xfffff0;

	open_kept(&fixture, first, 0);
	for (unsigned round = 1; round <= 2; round++, first = ur_psn_add(first, N + 1)) {
		for (unsigned i = N; i >= 1; i--)
			write_one_at(&fixture, first, i, i % 1000, false);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT), round * N);
		write_one_at(&fixture, first, 0, 0, false);
		th_drain(&fixture, 1);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_WRITE), round * (N + 1));
		for (unsigned i = 0; i < 1000; i++)
			CU_ASSERT(written(&fixture, i));
		memset(fixture.n[1].mem, 0, 1000 * 64);
	}
	CU_ASSERT_EQUAL(count(&fixture, UR_C_KEEP_FULL), 0);
	th_close(&fixture);
}

/* A READ that covers packets which are kept beyond it, as no honest peer has it, and one that is longer than the span. */
static void keep__reads_over_others(void)
{
	static const uint32_t len[] = {8 * MTU, (UR_REORDER_SPAN + 100) * MTU};

	for (unsigned i = 0; i < ur_array_size(len); i++) {
		struct th_hdr x;

		open_kept(&fixture, 0xfffffe, 0);
		x = th_reth(&fixture, 1, 0, len[i]);
		if (len[i] > TH_MEM)
			x.len = TH_MEM; /* what it really is: the table of READs has no longer ones here */
		write_one(&fixture, 0xfffffe, 3, false);
		write_one(&fixture, 0xfffffe, 5, false);
		th_inject(&fixture, 1, UR_OP_READ_REQ, 0xffffff, true, &x, NULL, 0);
		write_one(&fixture, 0xfffffe, 0, false);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_WRITE), 1);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), 1);
		CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
		th_close(&fixture);
	}
}

/* Reset and the error state give everything back. */
static void keep__ends_with_the_qp(void)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	open_kept(&fixture, 100, 0);
	for (unsigned round = 0; round < 2; round++) {
		write_one(&fixture, 100, 1, true);
		CU_ASSERT_PTR_NOT_NULL(fixture.n[1].qp->resp.reorder);
		a.qp_state = round ? IBV_QPS_ERR : IBV_QPS_RESET;
		CU_ASSERT_EQUAL(ur_qp_modify(fixture.n[1].qp, &a, IBV_QP_STATE, NULL, fixture.now), 0);
		CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
		if (!round)
			th_connect(&fixture, 1);
		CU_ASSERT_FALSE(fixture.n[1].qp->resp.peer_sacks);
	}
	th_close(&fixture);
}

void ur_suite_reorder_bounds(void)
{
	CU_pSuite s = CU_add_suite("reorder_bounds", NULL, NULL);

	CU_ADD_TEST(s, keep__bounds);
	CU_ADD_TEST(s, keep__span);
	CU_ADD_TEST(s, keep__at);
	CU_ADD_TEST(s, keep__more_than_a_piece);
	CU_ADD_TEST(s, keep__reads_over_others);
	CU_ADD_TEST(s, keep__ends_with_the_qp);
}
