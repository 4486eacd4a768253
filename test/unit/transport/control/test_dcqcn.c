/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/control/dcqcn.c against steps computed by hand, and lib/transport/loss/congest.c: who notifies, and who is held back. */
#include "tp_harness.h"
#include "transport/state/req_state.h"

#define LINE 100000000u /* kbit/s */
#define STEP (55 * US)

static uint64_t count(const struct th *h, unsigned node, enum ur_counter c)
{
	return h->n[node].c.v[c];
}

/* --- the arithmetic --- */

static void rate__cuts_and_recovers_by_hand(void)
{
	struct ur_dcqcn c = {.active = false};

	ur_dcqcn_notified(&c, LINE, 1000 * US);
	CU_ASSERT_TRUE(c.active);
	CU_ASSERT_EQUAL(c.rate, 50000000);
	CU_ASSERT_EQUAL(c.target, LINE);
	CU_ASSERT_EQUAL(c.alpha, UR_DCQCN_ONE);
	ur_dcqcn_run(&c, 1000 * US + STEP - 1);
	CU_ASSERT_EQUAL(c.rate, 50000000);
	ur_dcqcn_run(&c, 1000 * US + STEP); /* half of the way back; alpha loses a 256th */
	CU_ASSERT_EQUAL(c.rate, 75000000);
	CU_ASSERT_EQUAL(c.alpha, 1044480);
	ur_dcqcn_notified(&c, LINE, 1060 * US); /* 75,000,000 * 1044480 / 2^21 = 37,353,515 */
	CU_ASSERT_EQUAL(c.target, 75000000);
	CU_ASSERT_EQUAL(c.rate, 75000000 - 37353515);
	CU_ASSERT_EQUAL(c.alpha, 1044496);
}

static void rate__fast_then_additive_then_hyper(void)
{
	struct ur_dcqcn c = {.active = false};
	ur_time t = 1000 * US;

	for (unsigned i = 0; i < 4; i++, t += 4 * US)
		ur_dcqcn_notified(&c, LINE, t); /* 1/16, but for what alpha loses: nothing, since no timer expires */
	t -= 4 * US;
	CU_ASSERT_EQUAL(c.rate, LINE / 16);
	CU_ASSERT_EQUAL(c.target, LINE / 8);
	ur_dcqcn_run(&c, t + 5 * STEP);
	CU_ASSERT_EQUAL(c.timer_stage, 5);
	CU_ASSERT_EQUAL(c.target, LINE / 8);
	CU_ASSERT_EQUAL(c.rate, 12304687); /* 12,500,000 less a 32nd of 6,250,000, rounded down on the way */
	ur_dcqcn_run(&c, t + 6 * STEP);
	CU_ASSERT_EQUAL(c.target, LINE / 8 + 40000);
	CU_ASSERT_EQUAL(c.rate, (12304687 + LINE / 8 + 40000) / 2);
	for (unsigned i = 0; i < 6; i++) /* bytes alone: the sixth has both counters past five */
		ur_dcqcn_sent(&c, 10000000);
	CU_ASSERT_EQUAL(c.byte_stage, 6);
	CU_ASSERT_EQUAL(c.target, LINE / 8 + 6 * 40000 + 400000);
}

static void rate__notifications_close_together_are_one(void)
{
	struct ur_dcqcn c = {.active = false};

	ur_dcqcn_notified(&c, LINE, 1000 * US);
	ur_dcqcn_notified(&c, LINE, 1003 * US);
	CU_ASSERT_EQUAL(c.rate, LINE / 2);
	ur_dcqcn_notified(&c, LINE, 1004 * US);
	CU_ASSERT_EQUAL(c.rate, LINE / 4);
}

static void rate__has_a_floor_and_an_end(void)
{
	struct ur_dcqcn c = {.active = false};
	ur_time t = 1000 * US, end;

	for (unsigned i = 0; i < 1000; i++, t += 50 * US)
		ur_dcqcn_notified(&c, LINE, t);
	CU_ASSERT_EQUAL(c.rate, ur_dcqcn_params.min);
	CU_ASSERT_EQUAL(ur_dcqcn_duration(&c, 1250), 1000 * US); /* 10,000 bits at 10 Mbit/s */
	for (end = t + 10 * UR_NS_PER_S; c.active && t < end; t += STEP)
		ur_dcqcn_run(&c, t);
	CU_ASSERT_FALSE(c.active);
	ur_dcqcn_notified(&c, LINE, t); /* a new beginning */
	CU_ASSERT_EQUAL(c.rate, LINE / 2);
	ur_dcqcn_run(&c, t + 3600 * UR_NS_PER_S);
	CU_ASSERT_FALSE(c.active);
}

/* --- notification point --- */

/* A WRITE of 8 bytes to node 1, with the given ECN bits. */
static void marked_as(struct th *h, uint8_t opcode, uint32_t psn, uint8_t ecn)
{
	struct th_hdr ext = th_reth(h, 1, 0, 8);
	struct th_pkt p;

	th_make(h, 1, &p, opcode, psn, false, &ext, "12345678", 8);
	p.p.tos = ecn;
	th_feed(h, 1, &p);
}

static void marked(struct th *h, uint32_t psn, uint8_t ecn)
{
	marked_as(h, UR_OP_WRITE_ONLY, psn, ecn);
}

static unsigned cnps(struct th *h)
{
	struct th_pkt p;
	unsigned n = 0;

	while (th_pull(h, 1, &p))
		n += p.p.bth.opcode == UR_OP_CNP;
	return n;
}

static void cnp__as_the_annex_has_it(void)
{
	static const uint8_t zero[16];

	for (unsigned v6 = 0; v6 < 2; v6++) {
		static struct th h;
		struct th_opt o = th_default;
		struct th_pkt p;

		o.cc = true;
		o.v6 = v6;
		th_open(&h, &o);
		marked(&h, 100, 3);
		CU_ASSERT_TRUE_FATAL(th_pull(&h, 1, &p));
		CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_CNP);
		CU_ASSERT_TRUE(p.p.bth.becn);
		CU_ASSERT_EQUAL(p.p.bth.dqpn, ur_qp_num(h.n[0].qp));
		CU_ASSERT_EQUAL(p.p.tos, 0xc2);
		CU_ASSERT_EQUAL(p.p.len, p.p.bth_off + 12u + 16 + 4);
		CU_ASSERT_EQUAL(memcmp(p.p.data + p.p.bth_off + 12, zero, 16), 0);
		th_expect_quiet(&h, 1);
		th_feed(&h, 0, &p);
		CU_ASSERT_EQUAL(count(&h, 0, UR_C_CNP_HANDLED), 1);
		CU_ASSERT_TRUE(h.n[0].qp->cc.rate.active);
		th_close(&h);
	}
}

static void cnp__one_in_fifty_microseconds(void)
{
	static struct th h;
	struct th_opt o = th_default;
	unsigned n = 0;

	o.cc = true;
	th_open(&h, &o);
	for (uint32_t i = 0; i < 1000; i++) { /* one packet a microsecond */
		marked(&h, 100 + i, 3);
		n += cnps(&h);
		th_sleep(&h, US);
	}
	CU_ASSERT_EQUAL(n, 20);
	CU_ASSERT_EQUAL(count(&h, 1, UR_C_CNP_SENT), 20);
	th_close(&h);
}

static void cnp__only_for_marks_and_when_on(void)
{
	for (unsigned on = 0; on < 2; on++)
		for (uint8_t ecn = 0; ecn < 4; ecn++) {
			static struct th h;
			struct th_opt o = th_default;

			o.cc = on;
			th_open(&h, &o);
			marked(&h, 100, ecn);
			CU_ASSERT_EQUAL(cnps(&h), on && ecn == 3);
			th_inject(&h, 0, UR_OP_CNP, 0, false, NULL, NULL, 0);
			CU_ASSERT_EQUAL(h.n[0].qp->cc.rate.active, on);
			CU_ASSERT_EQUAL(count(&h, 0, UR_C_CNP_IGNORED), !on);
			th_close(&h);
		}
}

/* A mark on a packet that nobody waited for, with a PSN guessed or a P_Key of another partition. */
static void cnp__not_for_forged_marks(void)
{
	static const struct {
		uint32_t psn;
		uint16_t pkey;
		uint8_t opcode;
	} t[] = {
		{5000100, UR_PKEY_DEFAULT, UR_OP_WRITE_ONLY}, {101, UR_PKEY_DEFAULT, UR_OP_WRITE_ONLY},
		{50, UR_PKEY_DEFAULT, UR_OP_WRITE_ONLY},      {100, 0x1234, UR_OP_WRITE_ONLY},
		{200, UR_PKEY_DEFAULT, UR_OP_ACK},            {77777, UR_PKEY_DEFAULT, UR_OP_READ_RESP_ONLY},
	};
	static struct th h;
	struct th_opt o = th_default;

	o.cc = true;
	th_open(&h, &o);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		struct th_hdr ext = th_reth(&h, 1, 0, 8);
		struct th_pkt p;

		th_make(&h, 1, &p, t[i].opcode, t[i].psn, false, &ext, "12345678", t[i].opcode == UR_OP_ACK ? 0 : 8);
		p.p.tos = 3;
		p.p.bth.pkey = t[i].pkey;
		th_feed(&h, 1, &p);
		CU_ASSERT_EQUAL(cnps(&h), 0);
	}
	marked(&h, 100, 3);
	CU_ASSERT_EQUAL(cnps(&h), 1);
	th_close(&h);
}

/* What is kept beyond a gap has met congestion when it comes, and what fills the gap as well, though more than itself is executed then. */
static void cnp__around_a_gap(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.cc = o.selective = true;
	th_open(&h, &o);
	marked(&h, 102, 3);
	CU_ASSERT_EQUAL(cnps(&h), 1);
	th_sleep(&h, 60 * US);
	marked(&h, 102, 3); /* again: it was there */
	CU_ASSERT_EQUAL(cnps(&h), 0);
	marked(&h, 100, 0);
	CU_ASSERT_EQUAL(cnps(&h), 0);
	marked(&h, 101, 3);
	CU_ASSERT_EQUAL(cnps(&h), 1);
	CU_ASSERT_EQUAL(h.n[1].qp->resp.epsn, 103);
	th_sleep(&h, 60 * US);
	marked(&h, 102, 3); /* a duplicate */
	CU_ASSERT_EQUAL(cnps(&h), 0);
	th_close(&h);
}

/* A message that begins after others were lost. */
static void cnp__after_a_gap_of_unreliable_ones(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.type = IBV_QPT_UC;
	o.cc = true;
	th_open(&h, &o);
	marked_as(&h, UR_UC | UR_OP_WRITE_ONLY, 105, 3);
	CU_ASSERT_EQUAL(cnps(&h), 1);
	th_sleep(&h, 60 * US);
	marked_as(&h, UR_UC | UR_OP_WRITE_MIDDLE, 109, 3); /* of no message */
	CU_ASSERT_EQUAL(cnps(&h), 0);
	th_close(&h);
}

/* Its responses have PSNs of their own. */
static void cnp__for_a_read(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_hdr ext;
	struct th_pkt p;

	o.cc = true;
	th_open(&h, &o);
	ext = th_reth(&h, 1, 0, 3000);
	th_make(&h, 1, &p, UR_OP_READ_REQ, 100, false, &ext, NULL, 0);
	p.p.tos = 3;
	th_feed(&h, 1, &p);
	CU_ASSERT_EQUAL(h.n[1].qp->resp.epsn, 103);
	CU_ASSERT_EQUAL(cnps(&h), 1);
	th_close(&h);
}

/* READ responses that are under way have marks as well, in whatever order they come. */
static void cnp__for_responses(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_pkt p;
	unsigned n = 0;

	o.cc = true;
	th_open(&h, &o);
	th_post(&h, 1, IBV_WR_RDMA_READ, 1, 0, 3000, 0, 0);
	while (th_pull(&h, 1, &p))
		th_feed(&h, 0, &p);
	while (th_pull(&h, 0, &p)) {
		p.p.tos = 3;
		if (n++) /* the first is lost */
			th_feed(&h, 1, &p);
	}
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_EQUAL(cnps(&h), 1);
	th_run(&h, UR_NS_PER_S);
	th_close(&h);
}

/* --- reaction point --- */

static void cnp__of_another_partition(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_pkt p;

	o.cc = true;
	th_open(&h, &o);
	th_make(&h, 0, &p, UR_OP_CNP, 0, false, NULL, NULL, 0);
	p.p.bth.pkey = 0x1234;
	th_feed(&h, 0, &p);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_DROP_PKEY), 1);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_CNP_HANDLED), 0);
	CU_ASSERT_FALSE(h.n[0].qp->cc.rate.active);
	th_close(&h);
}

/* Bytes of frames that a node sends within `span`, looking every microsecond. */
static uint64_t sent_within(struct th *h, unsigned node, ur_time span)
{
	ur_time end = h->now + span;
	uint64_t bytes = 0;
	struct th_pkt p;

	while (h->now < end) {
		while (th_pull(h, node, &p))
			bytes += p.p.len;
		th_sleep(h, US);
	}
	return bytes;
}

/* To 1/64 of 100 Gbit/s. */
static void congest(struct th *h, unsigned node)
{
	for (unsigned i = 0; i < 6; i++) {
		th_inject(h, node, UR_OP_CNP, 0, false, NULL, NULL, 0);
		th_sleep(h, 4096);
	}
}

static void pace__requests_keep_to_the_rate(void)
{
	static struct th h;
	struct th_opt o = th_default;
	uint64_t bytes;

	o.cc = true;
	o.mtu = IBV_MTU_1024;
	o.window = 1000;
	o.timeout = 14;
	th_open(&h, &o);
	congest(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 900000, 0, IBV_SEND_SIGNALED);
	bytes = sent_within(&h, 0, 50 * US); /* before the rate rises: 1.56 Gbit/s are 9766 bytes, and a burst of two packets */
	CU_ASSERT_TRUE(bytes > 8600 && bytes < 12000);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_PACED);
	CU_ASSERT_STRING_EQUAL(ur_req_state_name(UR_REQ_PACED), "PACED");
	th_run(&h, UR_NS_PER_S);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_close(&h);
}

static void pace__read_responses_too_but_not_acknowledgements(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_hdr ext;
	uint64_t bytes;

	o.cc = true;
	th_open(&h, &o);
	congest(&h, 1);
	ext = th_reth(&h, 1, 0, 500000);
	th_inject(&h, 1, UR_OP_READ_REQ, 100, false, &ext, NULL, 0);
	bytes = sent_within(&h, 1, 50 * US);
	CU_ASSERT_TRUE(bytes > 8600 && bytes < 12000);
	CU_ASSERT_TRUE(h.n[1].qp->req.stops.blocked);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 50, true, &ext, NULL, 0); /* a duplicate: its ACK is of what comes before the READ's end */
	CU_ASSERT_EQUAL(count(&h, 1, UR_C_DUPLICATE), 1);
	th_expect_quiet(&h, 1); /* it may not overtake the responses */
	CU_ASSERT_EQUAL(sent_within(&h, 1, 20 * UR_NS_PER_MS) / 500000, 1);
	CU_ASSERT_FALSE(ur_tp_tx_pending(h.n[1].tp));
	th_close(&h);
}

static void pace__ends_when_the_line_is_reached(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.cc = true;
	th_open(&h, &o);
	th_inject(&h, 0, UR_OP_CNP, 0, false, NULL, NULL, 0);
	CU_ASSERT_TRUE(h.n[0].qp->cc.rate.active);
	th_sleep(&h, 12 * STEP); /* half of the way each time: 2^-10 of the line are left after ten */
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_FALSE(h.n[0].qp->cc.rate.active);
	th_close(&h);
}

static void pace__reset_forgets(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

	o.cc = true;
	th_open(&h, &o);
	congest(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 100000, 0, 0);
	th_drain(&h, 0);
	CU_ASSERT_TRUE(h.n[0].qp->req.stops.blocked);
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[0].qp, &a, IBV_QP_STATE, NULL, h.now), 0);
	CU_ASSERT_FALSE(h.n[0].qp->req.stops.blocked);
	CU_ASSERT_FALSE(h.n[0].qp->cc.rate.active);
	CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
	th_close(&h);
}

void ur_suite_dcqcn(void);

void ur_suite_dcqcn(void)
{
	CU_pSuite s = CU_add_suite("dcqcn", NULL, NULL);

	CU_ADD_TEST(s, rate__cuts_and_recovers_by_hand);
	CU_ADD_TEST(s, rate__fast_then_additive_then_hyper);
	CU_ADD_TEST(s, rate__notifications_close_together_are_one);
	CU_ADD_TEST(s, rate__has_a_floor_and_an_end);
	CU_ADD_TEST(s, cnp__as_the_annex_has_it);
	CU_ADD_TEST(s, cnp__one_in_fifty_microseconds);
	CU_ADD_TEST(s, cnp__only_for_marks_and_when_on);
	CU_ADD_TEST(s, cnp__not_for_forged_marks);
	CU_ADD_TEST(s, cnp__around_a_gap);
	CU_ADD_TEST(s, cnp__after_a_gap_of_unreliable_ones);
	CU_ADD_TEST(s, cnp__for_a_read);
	CU_ADD_TEST(s, cnp__for_responses);
	CU_ADD_TEST(s, cnp__of_another_partition);
	CU_ADD_TEST(s, pace__requests_keep_to_the_rate);
	CU_ADD_TEST(s, pace__read_responses_too_but_not_acknowledgements);
	CU_ADD_TEST(s, pace__ends_when_the_line_is_reached);
	CU_ADD_TEST(s, pace__reset_forgets);
}
