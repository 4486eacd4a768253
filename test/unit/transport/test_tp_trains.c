/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs of two nodes whose ports send trains, beside the same without trains (twin.h). */
#include "twin.h"

void ur_suite_tp_trains(void);

#define MTU 1024u

static void random_post(struct twin *t)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND,       IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_RDMA_READ};
	const unsigned node = ur_rng_below(&t->rng, 2), nsge = 1 + ur_rng_below(&t->rng, 4);
	const enum ibv_wr_opcode op = ops[ur_rng_below(&t->rng, ur_array_size(ops))];
	uint32_t len[4];

	for (unsigned i = 0; i < nsge; i++)
		len[i] = ur_rng_below(&t->rng, 2) ? ur_rng_below(&t->rng, 9000) : MTU * ur_rng_below(&t->rng, 30);
	twin_post(t, node, op, ur_rng_u32(&t->rng), len, nsge, ur_rng_below(&t->rng, TH_MEM / 4),
		  TH_MEM / 2 + ur_rng_below(&t->rng, TH_MEM / 4),
		  (ur_rng_below(&t->rng, 2) ? IBV_SEND_SIGNALED : 0) | (ur_rng_below(&t->rng, 8) ? 0 : IBV_SEND_FENCE));
	for (unsigned i = 0; i < 4; i++)
		len[i] = i == nsge - 1 ? 120 * MTU : ur_rng_below(&t->rng, 9000); /* the longest message fits into each */
	twin_recv(t, !node, 7, len, nsge, ur_rng_below(&t->rng, TH_MEM / 4));
}

/* Random programs, with and without losses: the same packets, the same state, the same memory. */
static void run_programs(uint32_t loss)
{
	unsigned long runs = 0, in_runs = 0, trains = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		static struct twin t;
		struct th_opt o = th_default;
		unsigned idle = 0;

		o.train = 2u << seed % 6;
		o.train_bytes = seed % 3 ? 65000 : 7000;
		o.window = seed % 5 ? 0 : 5 + (unsigned)seed;
		o.v6 = seed % 2;
		o.psn[0] = 0xfffff0;
		o.mtu = seed % 7 ? IBV_MTU_1024 : IBV_MTU_256;
		twin_open(&t, &o, seed);
		for (unsigned i = 0; i < 40; i++)
			random_post(&t);
		for (unsigned i = 0; i < 20000 && idle < 100; i++) {
			const unsigned n = 1 + ur_rng_below(&t.rng, TWIN_BURST);
			const unsigned moved = twin_move(&t, 0, n, loss) + twin_move(&t, 1, n, loss);

			twin_completions(&t);
			idle = moved ? 0 : idle + 1;
			if (!moved && !twin_wait(&t))
				break;
		}
		for (unsigned i = 0; i < 2; i++) {
			CU_ASSERT_TRUE(twin_memory_same(&t, i));
			CU_ASSERT_EQUAL(t.w[0].n[i].qp->req.head, t.w[0].n[i].qp->req.tail); /* all is done */
			CU_ASSERT_EQUAL(ur_qp_st(t.w[0].n[i].qp), IBV_QPS_RTS);
		}
		runs += t.runs;
		in_runs += t.in_runs;
		trains += t.trains;
		twin_close(&t);
	}
	CU_ASSERT_TRUE(trains > 5000 && runs > 3000 && in_runs > 3 * runs);
}

static void random__without_loss(void)
{
	run_programs(0);
}

static void random__with_loss(void)
{
	run_programs(1500);
}

void ur_suite_tp_trains(void)
{
	CU_pSuite s = CU_add_suite("tp_trains", NULL, NULL);

	CU_ADD_TEST(s, random__without_loss);
	CU_ADD_TEST(s, random__with_loss);
}
