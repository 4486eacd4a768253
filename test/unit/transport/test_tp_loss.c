/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes, random work in both directions, random loss: every request completes exactly once, in order and with success, every byte
 * arrives, and nothing is left behind. A failure names its seed. And one loss that must not be taken for many.
 */
#include <stdio.h>

#include "tp_harness.h"

#define SEEDS 400
#define WRS 40
#define QUARTER (TH_MEM / 4)
#define REGION 20000u /* each request under way has its own region, filled anew before it is posted */
#define SLOTS (QUARTER / REGION)

struct side {
	uint64_t next_wr, next_wc, recv_seen, recv_wanted;
	uint32_t len[WRS];
	uint8_t op[WRS];
};

struct run {
	struct ur_rng rng;
	uint32_t loss; /* of 65536 */
	struct side s[2];
	bool bad;
};

static bool lose_random(struct th *h, unsigned from, const struct ur_pkt *p)
{
	struct run *r = h->arg;

	(void)from;
	(void)p;
	return ur_rng_below(&r->rng, 65536) < r->loss;
}

/* The first half of a node's memory is what is sent and read from, the second what data arrives in; each direction has a quarter of its
 * own. */
static uint32_t source_of(unsigned dir, uint64_t wr)
{
	return dir * QUARTER + (uint32_t)(wr % SLOTS) * REGION;
}

static uint32_t sink_of(unsigned dir, uint64_t wr)
{
	return TH_MEM / 2 + source_of(dir, wr);
}

static void fill_source(struct th_node *n, struct run *r, unsigned dir, uint64_t wr, uint32_t len)
{
	uint8_t *p = n->mem + source_of(dir, wr);

	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)ur_rng_u32(&r->rng);
}

static void post_random(struct th *h, struct run *r, unsigned i)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_SEND_WITH_IMM};
	struct side *s = &r->s[i];
	uint64_t wr = s->next_wr;
	enum ibv_wr_opcode op = ops[ur_rng_below(&r->rng, 5)];
	uint32_t len = ur_rng_below(&r->rng, ur_rng_below(&r->rng, 2) ? 200 : REGION);
	unsigned fence = ur_rng_below(&r->rng, 4) ? 0 : IBV_SEND_FENCE;

	if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM)
		r->bad |= th_recv(h, !i, s->recv_wanted++, sink_of(i, wr), REGION) != 0;
	fill_source(&h->n[op == IBV_WR_RDMA_READ ? !i : i], r, i, wr, len);
	if (op == IBV_WR_RDMA_READ)
		r->bad |= th_post(h, i, op, wr, sink_of(i, wr), len, source_of(i, wr), IBV_SEND_SIGNALED | fence) != 0;
	else
		r->bad |= th_post(h, i, op, wr, source_of(i, wr), len, sink_of(i, wr), IBV_SEND_SIGNALED | fence) != 0;
	s->len[wr] = len;
	s->op[wr] = (uint8_t)op;
	s->next_wr++;
}

static bool arrived(const struct th *h, const struct run *r, unsigned i, uint64_t wr)
{
	unsigned from = r->s[i].op[wr] == IBV_WR_RDMA_READ ? !i : i;

	return memcmp(h->n[!from].mem + sink_of(i, wr), h->n[from].mem + source_of(i, wr), r->s[i].len[wr]) == 0;
}

static void reap(struct th *h, struct run *r)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < 2; i++) {
		while (!r->bad && ur_cq_poll(h->n[i].scq, 1, &wc) == 1) {
			r->bad |= wc.status != IBV_WC_SUCCESS || wc.wr_id != r->s[i].next_wc || !arrived(h, r, i, wc.wr_id);
			r->s[i].next_wc++;
		}
		while (ur_cq_poll(h->n[i].rcq, 1, &wc) == 1)
			r->bad |= wc.status != IBV_WC_SUCCESS || wc.wr_id != r->s[!i].recv_seen++;
	}
}

static bool one_seed(uint64_t seed, unsigned directions)
{
	static struct th h;
	struct run r = {.rng = {seed}};
	struct th_opt o = th_default;
	bool ok;

	o.mtu = (enum ibv_mtu)(IBV_MTU_256 + ur_rng_below(&r.rng, 5));
	o.psn[0] = ur_rng_below(&r.rng, 3) ? 0xfffff0 + ur_rng_below(&r.rng, 16) : ur_rng_below(&r.rng, 1 << 24);
	o.psn[1] = 0xffffff - ur_rng_below(&r.rng, 100);
	o.window = 1 + ur_rng_below(&r.rng, 100);
	o.max_rd = (uint8_t)(1 + ur_rng_below(&r.rng, 4));
	o.v6 = seed & 1;
	o.selective = seed % 3;
	r.loss = ur_rng_below(&r.rng, 2600); /* up to 4 % */
	th_open(&h, &o);
	h.lose = lose_random;
	h.arg = &r;
	while (r.s[0].next_wr < WRS || (directions == 2 && r.s[1].next_wr < WRS)) {
		for (unsigned i = 0; i < directions; i++)
			if (r.s[i].next_wr < WRS && r.s[i].next_wr - r.s[i].next_wc < SLOTS)
				post_random(&h, &r, i);
		th_run(&h, ur_rng_below(&r.rng, 3000) * UR_NS_PER_US);
		reap(&h, &r);
		if (r.bad)
			break;
	}
	th_run(&h, 20 * UR_NS_PER_S);
	reap(&h, &r);
	ok = !r.bad;
	for (unsigned i = 0; i < 2; i++) {
		ok = ok && r.s[i].next_wc == r.s[i].next_wr && r.s[i].recv_seen == r.s[i].recv_wanted;
		ok = ok && ur_qp_state(h.n[i].qp) == IBV_QPS_RTS && atomic_load(&h.n[i].mr->frames.n) == 0;
	}
	if (!ok)
		printf("seed %llu, %u directions\n", (unsigned long long)seed, directions);
	th_close(&h);
	return ok;
}

static void loss__random_one_way(void)
{
	unsigned failed = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		failed += !one_seed(seed, 1);
	CU_ASSERT_EQUAL(failed, 0);
}

static void loss__random_both_ways(void)
{
	unsigned failed = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		failed += !one_seed(seed + 100000, 2);
	CU_ASSERT_EQUAL(failed, 0);
}

/* The very first packet is lost, and the peer NAKs all that follow: one retry, though nobody knows yet how long a round trip takes. */
static void loss__naks_before_the_first_round_trip(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.mtu = IBV_MTU_1024;
	th_open(&h, &o);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 7, 0, 20 * 1024, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 20);
	for (unsigned i = 1; i < 20; i++) {
		th_ack(&h, 0, o.psn[0], SEQ_NAK);
		th_drain(&h, 0);
	}
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_PACKET_SEQ_ERR], 1);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 7, IBV_WC_SUCCESS);
	th_close(&h);
}

void ur_suite_tp_loss(void);

void ur_suite_tp_loss(void)
{
	CU_pSuite s = CU_add_suite("tp_loss", NULL, NULL);

	CU_ADD_TEST(s, loss__random_one_way);
	CU_ADD_TEST(s, loss__random_both_ways);
	CU_ADD_TEST(s, loss__naks_before_the_first_round_trip);
}
