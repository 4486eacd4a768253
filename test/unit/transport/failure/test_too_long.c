/* SPDX-License-Identifier: BSD-3-Clause */
/* A hop that is too narrow for a connection's packets: whom that is believed, and that the connection ends. */
#include <string.h>

#include "tp_harness.h"
#include "wire/hdr.h"

void ur_suite_too_long(void);

#define TIMEOUT 17 /* 537 ms, eight times */
#define HOP 1000   /* IP bytes: fewer than packets of path MTU 1024 take, and than their 1120 */
#define LONG (3 * 1024)

/* What a hop with that MTU does. */
static bool lose_long(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)h;
	(void)from;
	return ur_pkt_frame_len(p) - p->l3_off > HOP;
}

static struct th_opt world(bool selective)
{
	struct th_opt o = th_default;

	o.timeout = TIMEOUT;
	o.selective = selective;
	return o;
}

static uint32_t say_op(struct th *h, unsigned node, uint8_t opcode, uint32_t dqpn, uint32_t psn, uint16_t hop_mtu)
{
	struct ur_bth b = {.opcode = UR_RC | opcode, .dqpn = dqpn, .psn = psn & UR_PSN_MASK};
	uint8_t bth[UR_BTH_LEN];

	ur_bth_put(bth, &b);
	th_sleep(h, UR_NS_PER_MS); /* after the one before */
	return ur_tp_too_long(h->n[node].tp, &h->n[node].path.dgid, hop_mtu, bth, h->now);
}

static uint32_t say(struct th *h, uint32_t dqpn, uint32_t psn, uint16_t hop_mtu)
{
	return say_op(h, 0, UR_OP_WRITE_FIRST, dqpn, psn, hop_mtu);
}

static void post(struct th *h, enum ibv_wr_opcode op, uint64_t id, uint32_t len)
{
	CU_ASSERT_EQUAL(th_post(h, 0, op, id, 0, len, 0, IBV_SEND_SIGNALED), 0);
	th_pump(h);
}

static unsigned suspected;
static void only_short(void *ctx, const struct ur_gid *dst, uint32_t path_mtu)
{
	const struct th_node *n = ctx;

	CU_ASSERT_TRUE(path_mtu == 1024 && ur_gid_eq(dst, &n->path.dgid));
	suspected++;
}

/* Short messages before and after the long one, whose acknowledgements, and NAKs, come: nothing of that lets it live for ever. */
static void narrow__ends(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (unsigned i = 0; i < 2 * ur_array_size(ops); i++) {
		struct th_opt o = world(i & 1);
		struct th h;

		suspected = 0;
		th_open(&h, &o);
		h.n[0].tp->c.only_short = only_short;
		h.lose = lose_long;
		post(&h, ops[i / 2], 1, 64);
		th_run(&h, UR_NS_PER_S);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		post(&h, ops[i / 2], 2, LONG + 64);
		for (uint64_t id = 3; id < 12; id++)
			post(&h, IBV_WR_RDMA_WRITE, id, 64);
		th_run(&h, 60 * UR_NS_PER_S);
		th_expect_wc(h.n[0].scq, 2, IBV_WC_RETRY_EXC_ERR);
		CU_ASSERT_EQUAL(ur_qp_st(h.n[0].qp), IBV_QPS_ERR);
		CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_RETRY_EXC], 1);
		CU_ASSERT_EQUAL(suspected, 1);
		th_close(&h);
	}
}

/* The way back may be wide: long answers say nothing of long requests. */
static void narrow__one_way(void)
{
	struct th_opt o = world(true);
	struct th h;

	suspected = 0;
	th_open(&h, &o);
	h.n[0].tp->c.only_short = only_short;
	post(&h, IBV_WR_RDMA_READ, 1, LONG);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	h.lose = lose_long;
	post(&h, IBV_WR_RDMA_WRITE, 2, LONG);
	th_run(&h, 60 * UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(suspected, 1);
	th_close(&h);
}

static bool lose_all(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)h;
	(void)from;
	(void)p;
	return true;
}

/* No hop is suspected of a peer that was never there, nor where long messages have arrived, nor for a message that is short. */
static void narrow__is_not_suspected(void)
{
	static const struct {
		uint32_t before, then; /* bytes of messages; 0: none */
		bool read;
	} cases[] = {{0, LONG, false}, {LONG, LONG, false}, {64, 1024, false}, {64, 64, false}, {LONG, LONG, true}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		struct th_opt o = world(true);
		struct th h;

		suspected = 0;
		th_open(&h, &o);
		h.n[0].tp->c.only_short = only_short;
		if (cases[i].before) {
			post(&h, cases[i].read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1, cases[i].before);
			th_run(&h, UR_NS_PER_S);
			th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		}
		h.lose = lose_all;
		post(&h, cases[i].read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 2, cases[i].then);
		th_run(&h, 60 * UR_NS_PER_S);
		th_expect_wc(h.n[0].scq, 2, IBV_WC_RETRY_EXC_ERR);
		CU_ASSERT_EQUAL(suspected, 0);
		th_close(&h);
	}
}

static void told__ends_sooner(void)
{
	struct th_opt o = world(true);
	struct th h;

	th_open(&h, &o);
	h.lose = lose_long;
	post(&h, IBV_WR_RDMA_WRITE, 1, LONG);
	CU_ASSERT_EQUAL(say(&h, h.n[0].qp->dqpn, h.n[0].qp->req.una + 1, HOP), 1024);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	th_close(&h);
}

/* Whoever says so of a packet that was not on its way, or is not that long, is not believed. */
static void told__lies(void)
{
	struct th_opt o = world(true);
	struct th h;
	uint32_t qpn, una;

	th_open(&h, &o);
	h.lose = lose_long;
	post(&h, IBV_WR_RDMA_WRITE, 1, LONG);
	qpn = h.n[0].qp->dqpn;
	una = h.n[0].qp->req.una;
	CU_ASSERT_EQUAL(say(&h, qpn ^ 1, una, HOP), 0);
	CU_ASSERT_EQUAL(say(&h, qpn, una - 1, HOP), 0);
	CU_ASSERT_EQUAL(say(&h, qpn, una + LONG / 1024, HOP), 0);
	CU_ASSERT_EQUAL(say(&h, qpn, una, 1024 + UR_PATH_OVERHEAD), 0);                        /* it would fit */
	CU_ASSERT_EQUAL(say_op(&h, 0, UR_OP_READ_RESP_FIRST, qpn, una + LONG / 1024, HOP), 0); /* nobody has read from us */
	th_run(&h, 200 * UR_NS_PER_MS);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 0);
	th_close(&h);
}

/* A forger who has guessed all that ends nothing, as long as the packets arrive. */
static void told__peer_that_answers_is_spared(void)
{
	struct th_opt o = world(true);
	struct th h;

	th_open(&h, &o);
	h.lose = lose_long;
	post(&h, IBV_WR_RDMA_WRITE, 1, LONG);
	for (unsigned i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(say(&h, h.n[0].qp->dqpn, h.n[0].qp->req.una, HOP), 1024);
	h.lose = NULL;
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(say(&h, h.n[0].qp->dqpn, h.n[0].qp->req.una - 1, HOP), 0);
	th_close(&h);
}

/* The responder learns it from what becomes of its answers. */
static void told__of_answers(void)
{
	struct th_opt o = world(true);
	struct th h;
	uint32_t psn, qpn;

	th_open(&h, &o);
	h.lose = lose_long;
	psn = h.n[0].qp->req.una;
	qpn = h.n[1].qp->dqpn;
	post(&h, IBV_WR_RDMA_READ, 1, LONG);
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_READ_RESP_FIRST, qpn, psn, HOP), 1024);
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_READ_RESP_MIDDLE, qpn, psn + 1, HOP), 1024);
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_READ_RESP_MIDDLE, qpn, psn + 3, HOP), 0);
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_READ_RESP_MIDDLE, qpn, psn - 1, HOP), 0);
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_READ_RESP_MIDDLE, qpn ^ 1, psn, HOP), 0);
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_WRITE_MIDDLE, qpn, psn, HOP), 0); /* it has sent none */
	CU_ASSERT_EQUAL(say_op(&h, 1, UR_OP_READ_RESP_FIRST, qpn, psn, 4200), 0);
	h.lose = NULL;
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

void ur_suite_too_long(void)
{
	CU_pSuite s = CU_add_suite("too_long", NULL, NULL);

	CU_ADD_TEST(s, narrow__ends);
	CU_ADD_TEST(s, narrow__one_way);
	CU_ADD_TEST(s, narrow__is_not_suspected);
	CU_ADD_TEST(s, told__ends_sooner);
	CU_ADD_TEST(s, told__lies);
	CU_ADD_TEST(s, told__peer_that_answers_is_spared);
	CU_ADD_TEST(s, told__of_answers);
}
