/* SPDX-License-Identifier: BSD-3-Clause */
/* ur_tp_fill: which packets go into the train with which a burst has ended. */
#include "bursts.h"

void ur_suite_fill(void);

/* A burst that ends in the middle of a train has it filled; with what it fills it is as if the burst had been longer. */
static void fill__the_last_train(void)
{
	static const struct {
		enum ibv_wr_opcode op;
		unsigned npkts;       /* of a message */
		unsigned window;      /* 0: more than matters */
		unsigned count[3][3]; /* packets of the entries of three bursts of 64 */
	} t[] = {
		{IBV_WR_SEND, 200, 0, {{62, 62}, {62, 13}, {1}}}, /* 2 of the burst, to which 60 come; never the last */
		{IBV_WR_RDMA_WRITE, 200, 0, {{2, 62}, {62, 62}, {12}}},
		{IBV_WR_RDMA_WRITE, 64, 0, {{2, 62}, {0}, {0}}},
		{IBV_WR_RDMA_WRITE, 66, 0, {{2, 62}, {2}, {0}}},
		{IBV_WR_SEND, 63, 0, {{62, 1}, {0}, {0}}},
		{IBV_WR_SEND, 66, 0, {{62, 2}, {2}, {0}}}, /* for one it is not worth while */
		{IBV_WR_SEND, 67, 0, {{62, 4}, {1}, {0}}},
		{IBV_WR_SEND, 200, 70, {{62, 8}, {0}, {0}}},
		{IBV_WR_RDMA_READ, 200, 0, {{2, 62}, {62, 62}, {11, 1}}}, /* of responses the last has an AETH, as the first */
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
		if (read)
			th_inject(&h, 0, UR_OP_READ_REQ, psn, true,
				  &(struct th_hdr){.va = (uintptr_t)h.n[0].mem, .rkey = h.n[0].mr->rkey, .len = t[i].npkts * MTU}, NULL, 0);
		else
			th_post(&h, 0, t[i].op, 1, 0, t[i].npkts * MTU, 0, 0);
		for (unsigned k = 0; k < 3; k++) {
			struct burst b = take_more(&h, 0, 64, true);
			unsigned entries = 0;

			while (entries < 3 && t[i].count[k][entries])
				entries++;
			if (b.entries != entries)
				fprintf(stderr, "row %u burst %u: %u entries, %u packets: %u %u %u\n", i, k, b.entries, b.n, b.count[0],
					b.count[1], b.count[2]);
			expect_counts(&b, t[i].count[k], entries);
			for (unsigned m = 0; m < b.n; m++)
				CU_ASSERT_EQUAL(b.p[m].psn, psn++);
		}
		th_close(&h);
	}
}

/* Only with what follows in the same message. */
static void fill__nothing_else(void)
{
	struct ur_path path;
	struct ur_qp *qp;
	struct burst b;
	struct th h;

	open(&h, 64, 65000);
	qp = second_qp(&h, &path, 0);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 20 * MTU, 0, 0);
	send_on(&h, qp, 20 * MTU);
	b = take_more(&h, 0, 30, true); /* 16 of each in turn, but for the second's 14 */
	CU_ASSERT_TRUE(b.n > 30 && b.p[29].dqpn == b.p[b.n - 1].dqpn);
	for (unsigned i = 30; i < b.n; i++)
		CU_ASSERT_EQUAL(b.p[i].psn, b.p[i - 1].psn + 1);
	CU_ASSERT_EQUAL(ur_tp_fill(h.n[0].tp), 0); /* once */
	th_drain(&h, 0);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, MTU, 0, 0);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 20 * MTU, 0, 0);
	CU_ASSERT_EQUAL(take_more(&h, 0, 1, true).n, 1); /* a message of its own */
	th_drain(&h, 0);
	CU_ASSERT_EQUAL(ur_qp_destroy(qp), 0);
	th_close(&h);
}

void ur_suite_fill(void)
{
	CU_pSuite s = CU_add_suite("fill", NULL, NULL);

	CU_ADD_TEST(s, fill__the_last_train);
	CU_ADD_TEST(s, fill__nothing_else);
}
