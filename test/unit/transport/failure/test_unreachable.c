/* SPDX-License-Identifier: BSD-3-Clause */
/* What the network says of a peer: it hastens the end of requests that nobody answers, and does no harm to others. */
#include <string.h>

#include "tp_harness.h"
#include "wire/hdr.h"

void ur_suite_unreachable(void);

#define TIMEOUT 21 /* 8.6 s, eight times */
#define SOON UR_NS_PER_S

static bool lose_all(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)h;
	(void)from;
	(void)p;
	return true;
}

static bool lose_none(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)h;
	(void)from;
	(void)p;
	return false;
}

static struct th_opt slow(void)
{
	struct th_opt o = th_default;

	o.timeout = TIMEOUT;
	o.retry_cnt = 7;
	return o;
}

/* As ICMP would quote a packet of node 0's that has this PSN. */
static void say(struct th *h, uint32_t dqpn, uint32_t psn, const struct ur_gid *dst)
{
	struct ur_bth b = {.opcode = UR_RC | UR_OP_WRITE_ONLY, .dqpn = dqpn, .psn = psn & UR_PSN_MASK};
	uint8_t bth[UR_BTH_LEN];

	ur_bth_put(bth, &b);
	ur_tp_unreachable(h->n[0].tp, dst, bth, h->now);
}

static void say_truly(struct th *h)
{
	say(h, h->n[0].qp->dqpn, h->n[0].qp->req.una, &h->n[0].path.dgid);
}

static void post(struct th *h, uint64_t id)
{
	CU_ASSERT_EQUAL(th_post(h, 0, IBV_WR_RDMA_WRITE, id, 0, 3000, 0, IBV_SEND_SIGNALED), 0);
	th_pump(h);
}

static void told__fails_sooner(void)
{
	struct th_opt o = slow();
	struct th h;

	th_open(&h, &o);
	h.lose = lose_all;
	post(&h, 1);
	say_truly(&h);
	th_run(&h, 30 * UR_NS_PER_MS);
	th_expect_no_wc(h.n[0].scq); /* it is asked again first */
	th_run(&h, SOON);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 8);
	th_close(&h);
}

static void told__peer_that_answers_is_spared(void)
{
	struct th_opt o = slow();
	struct th h;

	th_open(&h, &o);
	h.lose = lose_all;
	post(&h, 1);
	for (int i = 0; i < 20; i++) { /* again and again, and by many */
		say_truly(&h);
		th_run(&h, 5 * UR_NS_PER_MS);
	}
	h.lose = lose_none;
	th_run(&h, SOON);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	h.lose = lose_all; /* the next request has all the time that it was given */
	post(&h, 2);
	th_run(&h, 5 * SOON);
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(ur_qp_st(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

static void told__lies(void)
{
	static const struct ur_gid nobody = {.raw = {1, 2, 3}};
	struct th_opt o = slow();
	struct ur_gid peer;
	struct th h;
	uint32_t qpn, una;

	th_open(&h, &o);
	h.lose = lose_all;
	post(&h, 1);
	peer = h.n[0].path.dgid;
	qpn = h.n[0].qp->dqpn;
	una = h.n[0].qp->req.una;
	for (int i = 0; i < 50; i++) {
		say(&h, qpn ^ 1, una, &peer);
		say(&h, qpn, una - 1, &peer); /* it has been acknowledged */
		say(&h, qpn, una + 3, &peer); /* it was never sent */
		say(&h, qpn, una, &nobody);
		th_run(&h, 20 * UR_NS_PER_MS);
	}
	th_expect_no_wc(h.n[0].scq);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 0);
	th_close(&h);
}

static void told__nothing_outstanding(void)
{
	struct th_opt o = slow();
	struct th h;
	uint32_t una;

	th_open(&h, &o);
	post(&h, 1);
	th_run(&h, SOON);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	una = h.n[0].qp->req.una;
	for (uint32_t i = 0; i < 8; i++) {
		say(&h, h.n[0].qp->dqpn, una - i, &h.n[0].path.dgid);
		th_run(&h, SOON);
	}
	CU_ASSERT_EQUAL(ur_qp_st(h.n[0].qp), IBV_QPS_RTS);
	post(&h, 2);
	th_run(&h, SOON);
	th_expect_wc(h.n[0].scq, 2, IBV_WC_SUCCESS);
	th_close(&h);
}

void ur_suite_unreachable(void)
{
	CU_pSuite s = CU_add_suite("unreachable", NULL, NULL);

	CU_ADD_TEST(s, told__fails_sooner);
	CU_ADD_TEST(s, told__peer_that_answers_is_spared);
	CU_ADD_TEST(s, told__lies);
	CU_ADD_TEST(s, told__nothing_outstanding);
}
