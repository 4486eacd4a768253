/* SPDX-License-Identifier: BSD-3-Clause */
/* READs from a peer as rdma_rxe is, which repeats no part of a READ that begins below one that it has repeated (rack.c). */
#include "losses.h"

/*
 * A peer as rdma_rxe is: MigReq 0, and deaf to a repeated READ request that begins below one that it has answered. Repairs get lost as
 * well, and in the end everything does for a while, so that the ACK timer goes back.
 */
static uint32_t repeated_from;

static bool lose_as_rxe(struct th *h, unsigned from, const struct ur_pkt *p)
{
	struct ur_bth *b = &((struct ur_pkt *)p)->bth; /* as the receiver will see it */

	if (lose_psn(h, from, p))
		return true;
	if (from == 1) {
		b->migreq = false;
		return false;
	}
	if (ur_psn_diff(h->n[1].qp->resp.epsn, b->psn) <= 0)
		return false;
	if (ur_psn_diff(b->psn, repeated_from) < 0)
		return true;
	repeated_from = b->psn;
	return false;
}

/* `timeouts`: whether the ACK timer has to help. */
static void expect_repaired_upwards(struct loss *l, bool timeouts)
{
	static struct th h;

	open_warm(&h, &th_default, l);
	h.n[1].tp->c.plain_recovery = true; /* it sends nothing again unasked */
	h.lose = lose_as_rxe;
	repeated_from = 100;
	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 64 * 1024, 500000, IBV_SEND_SIGNALED);
	th_run(&h, 20 * UR_NS_PER_MS);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem + 500000, 64 * 1024), 0);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_ACK_TIMEOUT) > 0, timeouts);
	for (struct loss *i = l; i->times != UINT32_MAX; i++)
		CU_ASSERT_EQUAL(i->times, 0);
	th_close(&h);
}

static void upwards__losses_in_a_row(void)
{
	struct loss l[] = {{1, 110, 2}, {1, 120, 2}, {1, 121, 1}, {1, 130, 3}, {1, 150, 1}, {0, 150, 20}, END_OF_LOSSES};

	expect_repaired_upwards(l, true);
}

/* The answer to a repeated request has two holes itself, and the repair of the first one is lost too. */
static void upwards__a_repair_has_holes(void)
{
	struct loss l[] = {{1, 110, 3}, {1, 111, 1}, {1, 112, 1}, {1, 113, 2}, {1, 114, 1}, END_OF_LOSSES};

	expect_repaired_upwards(l, false);
}

/*
 * As above for each request by itself, while packets are lost at random: of one that was executed, a part is answered that begins no
 * earlier than the newest part that was answered.
 */
#define RXE_READS 60
#define RXE_PSNS (5 * RXE_READS)
static struct rxe {
	struct ur_rng random;
	unsigned percent;
	uint32_t epsn;              /* of requests that are on their way to it, too */
	uint16_t request[RXE_PSNS]; /* by PSN from 101 on: which request was executed there */
	uint16_t from[RXE_PSNS];    /* by request: where the newest part that was answered began */
} rxe;

static bool rxe_answers(const struct ur_pkt *p)
{
	const uint32_t psn = p->bth.psn - 101, epsn = rxe.epsn;
	struct ur_reth r;
	uint32_t npkts;

	ur_reth_get(p->data + p->bth_off + UR_BTH_LEN, &r);
	npkts = (r.len + 1023) / 1024;
	if (psn > epsn || npkts > RXE_PSNS - psn)
		return true; /* it says so itself */
	if (psn < epsn && psn < rxe.from[rxe.request[psn]])
		return false;
	for (uint32_t i = 0; psn == epsn && i < npkts; i++)
		rxe.request[rxe.epsn++] = psn;
	rxe.from[rxe.request[psn]] = psn;
	return true;
}

static bool lose_at_random_as_rxe(struct th *h, unsigned from, const struct ur_pkt *p)
{
	h->now += US;
	if (ur_rng_below(&rxe.random, 100) < rxe.percent)
		return true;
	if (from == 0)
		return !rxe_answers(p);
	((struct ur_pkt *)p)->bth.migreq = false;
	return false;
}

static void upwards__losses_at_random(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ibv_wc wc;
	unsigned done;

	o.max_rd = 16;
	for (unsigned seed = 0; seed < 600; seed++) {
		struct loss none[] = {END_OF_LOSSES};

		o.window = seed < 300 ? 0 : 8; /* READs are asked for in pieces */
		open_warm(&h, &o, none);
		rxe = (struct rxe){.random = {.state = seed}, .percent = 1 + seed % 20};
		h.lose = lose_at_random_as_rxe;
		for (unsigned i = 0; i < RXE_READS; i++)
			th_post(&h, 0, IBV_WR_RDMA_READ, i, i * 8192, 4097, 500000 + i * 8192, IBV_SEND_SIGNALED);
		th_run(&h, 100 * UR_NS_PER_MS);
		for (done = 0; ur_cq_poll(h.n[0].scq, 1, &wc) == 1; done++)
			CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(done, RXE_READS);
		th_close(&h);
	}
}

void ur_suite_upwards(void);

void ur_suite_upwards(void)
{
	CU_pSuite s = CU_add_suite("upwards", NULL, NULL);

	CU_ADD_TEST(s, upwards__losses_in_a_row);
	CU_ADD_TEST(s, upwards__a_repair_has_holes);
	CU_ADD_TEST(s, upwards__losses_at_random);
}
