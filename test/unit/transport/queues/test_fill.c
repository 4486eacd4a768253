/* SPDX-License-Identifier: BSD-3-Clause */
/* ur_tp_fill: which packets go into the train with which a burst has ended. */
#include "bursts.h"

void ur_suite_fill(void);

/* Entries of a burst of 64 packets and of what fills its last train. */
static void fill__the_last_train(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		unsigned messages, npkts; /* each of so many packets */
		unsigned window;          /* 0: more than matters */
		unsigned count[3][4];     /* packets of the entries of three bursts */
	} t[] = {
		{IBV_WR_SEND, 1, 200, 0, {{62, 62}, {62, 14}, {0}}}, /* the burst ends with 2, to which 60 come */
		{IBV_WR_SEND, 1, 66, 0, {{62, 4}, {0}, {0}}},
		{IBV_WR_SEND, 1, 63, 0, {{62, 1}, {0}, {0}}},
		{IBV_WR_SEND, 1, 200, 70, {{62, 8}, {0}, {0}}}, /* the window */
		{IBV_WR_SEND, 3, 64, 0, {{62, 62}, {62, 6}, {0}}},
		{IBV_WR_RDMA_WRITE, 1, 200, 0, {{2, 62}, {62, 62}, {12}}},
		{IBV_WR_RDMA_WRITE, 1, 64, 0, {{2, 62}, {0}, {0}}},
		{IBV_WR_RDMA_WRITE, 1, 66, 0, {{2, 62}, {2}, {0}}}, /* a full one */
		{IBV_WR_RDMA_WRITE, 2, 64, 0, {{2, 62}, {2, 62}, {0}}},
		{IBV_WR_RDMA_WRITE, 2, 40, 0, {{2, 38, 2, 38}, {0}, {0}}},   /* a FIRST is longer, a MIDDLE shorter */
		{IBV_WR_RDMA_READ, 1, 200, 0, {{2, 62}, {62, 62}, {11, 1}}}, /* responses: the last has an AETH, as the first */
		{IBV_WR_RDMA_READ, 2, 64, 0, {{2, 61, 3}, {61, 1}, {0}}},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const bool read = t[i].op == IBV_WR_RDMA_READ;
		struct th_opt o = th_default;
		unsigned psn = read ? 200 : 100;
		struct th h;

		o.train = 64;
		o.train_bytes = 65000;
		o.window = t[i].window ? t[i].window : 1024;
		th_open(&h, &o);
		for (unsigned k = 0; k < t[i].messages; k++) {
			const uint32_t len = t[i].npkts * MTU;
			const struct th_hdr reth = {.va = (uintptr_t)h.n[0].mem, .rkey = h.n[0].mr->rkey, .len = len};

			if (read)
				th_inject(&h, 0, UR_OP_READ_REQ, psn + k * t[i].npkts, true, &reth, NULL, 0);
			else
				th_post(&h, 0, t[i].op, 1, 0, len, 0, 0);
		}
		for (unsigned k = 0; k < 3; k++) {
			struct burst b = take_more(&h, 0, 64, true);
			unsigned entries = 0;

			while (entries < 4 && t[i].count[k][entries])
				entries++;
			expect_counts(&b, t[i].count[k], entries);
			for (unsigned m = 0; m < b.n; m++)
				CU_ASSERT_EQUAL(b.p[m].psn, psn++);
		}
		th_close(&h);
	}
}

/* The QP that the train is of goes first, then others whose packets join; once. */
static void fill__by_other_qps(void)
{
	struct ur_path path;
	struct ur_qp *qp;
	struct burst b;
	struct th h;

	open(&h, 64, 65000);
	qp = second_qp(&h, &path, 0);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 30 * MTU, 0, 0);
	send_on(&h, qp, 15 * MTU);
	b = take_more(&h, 0, 10, true);
	CU_ASSERT_EQUAL(b.entries, 1);
	CU_ASSERT_EQUAL(b.n, 45);
	for (unsigned i = 0; i < b.n; i++)
		CU_ASSERT_EQUAL(b.p[i].dqpn, i < 30 ? ur_qp_num(h.n[1].qp) : 0x20777);
	CU_ASSERT_EQUAL(ur_tp_fill(h.n[0].tp), 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
	th_close(&h);
}

/* A request that was started and did not join is sent by the next call. */
static void fill__leaves_what_does_not_join(void)
{
	struct burst b;
	struct th h;

	open(&h, 64, 65000);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 100, 0, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 3 * MTU, 0, IBV_SEND_SIGNALED);
	b = take_more(&h, 0, 1, true);
	CU_ASSERT_TRUE(b.n == 1 && b.entries == 1);
	b = take_more(&h, 0, 64, true);
	CU_ASSERT_EQUAL_FATAL(b.n, 3);
	CU_ASSERT_EQUAL(b.p[0].opcode, UR_OP_WRITE_FIRST);
	CU_ASSERT_EQUAL(b.p[2].opcode, UR_OP_WRITE_LAST);
	CU_ASSERT_EQUAL(b.p[2].psn, 103);
	th_close(&h);
}

void ur_suite_fill(void)
{
	CU_pSuite s = CU_add_suite("fill", NULL, NULL);

	CU_ADD_TEST(s, fill__the_last_train);
	CU_ADD_TEST(s, fill__by_other_qps);
	CU_ADD_TEST(s, fill__leaves_what_does_not_join);
}
