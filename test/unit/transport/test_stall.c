/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What cannot move now is not work: a responder that a peer has brought into a state in which nothing can leave serves others, rests, and
 * goes on when it can. Node 1 is the responder, paced by its peer's notifications; the peer is the test.
 */
#include "reorder_harness.h"

void ur_suite_stall(void);

static void open_paced(struct th *h, uint8_t max_rd)
{
	struct th_opt o = th_default;

	o.mtu = IBV_MTU_256;
	o.selective = o.cc = true;
	o.max_rd = max_rd;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	th_open(h, &o);
	h->n[1].qp->resp.shown = UR_REORDER_SPAN;
	ur_tp_set_speed(h->n[1].tp, 20); /* Mbit/s: the pace of one packet is 200 us */
	th_inject(h, 1, UR_OP_CNP, 0, false, NULL, NULL, 0);
	CU_ASSERT_TRUE(h->n[1].qp->cc.rate.active);
}

/* It says that nothing is to be sent, and so sends nothing, and has not been caught at saying otherwise. */
static void expect_rest(struct th *h)
{
	CU_ASSERT_TRUE(h->n[1].qp->req.stops.blocked);
	CU_ASSERT_FALSE(ur_tp_tx_pending(h->n[1].tp));
	CU_ASSERT_EQUAL(th_drain(h, 1), 0);
	CU_ASSERT_FALSE(ur_tp_tx_pending(h->n[1].tp));
	CU_ASSERT_FALSE(ur_tp_tx_worthwhile(h->n[1].tp));
	CU_ASSERT_EQUAL(count(h, UR_C_TX_STALLED), 0);
}

static void read_at(struct th *h, uint32_t psn, uint32_t len)
{
	const struct th_hdr x = th_reth(h, 1, 0, len);

	th_inject(h, 1, UR_OP_READ_REQ, psn, true, &x, NULL, 0);
}

/* A WRITE of nothing: it needs no key. */
static void write_nothing(struct th *h, uint32_t psn, bool ackreq)
{
	const struct th_hdr none = {.len = 0};

	th_inject(h, 1, UR_OP_WRITE_ONLY, psn, ackreq, &none, NULL, 0);
}

/* Lets time pass until the responses of READs have left that have `end` as the PSN after their last. */
static void expect_responses(struct th *h, uint32_t psn, uint32_t end)
{
	struct th_pkt p;

	for (unsigned i = 0; i < 2000 && psn != end; i++) {
		while (th_pull(h, 1, &p)) {
			if (!(ur_opcode(p.p.bth.opcode)->flags & UR_OPF_PAYLOAD))
				continue;
			CU_ASSERT_EQUAL(p.p.bth.psn, psn);
			psn = ur_psn_add(p.p.bth.psn, 1);
		}
		CU_ASSERT_EQUAL(count(h, UR_C_TX_STALLED), 0);
		th_sleep(h, 10 * US);
	}
	CU_ASSERT_EQUAL(psn, end);
}

/* The table of READs is full, its responses are held back by the pace, and what is kept, a READ, is the next to be executed. */
static void stall__kept_read_and_full_table(void)
{
	static const struct {
		uint8_t max_rd;
		uint32_t first, kept; /* bytes of the READs that fill the table, and of the kept one */
	} t[] = {{1, 2 * MTU, MTU}, {1, 2 * MTU, 0}, {1, 2 * MTU, 5 * MTU}, {2, MTU, 0}, {2, 0, 0}, {1, 0, 0}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint32_t psn = 100;
		struct th_pkt p;

		open_paced(&fixture, t[i].max_rd);
		read_at(&fixture, psn++, MTU);
		CU_ASSERT_TRUE(th_pull(&fixture, 1, &p)); /* and now the pace holds */
		expect_rest(&fixture);
		for (unsigned k = 0; k < t[i].max_rd; k++, psn += t[i].first ? t[i].first / MTU : 1)
			read_at(&fixture, psn, t[i].first);
		expect_rest(&fixture);
		read_at(&fixture, psn + 1, t[i].kept);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT), 1);
		th_drain(&fixture, 1); /* a NAK */
		write_nothing(&fixture, psn, false);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_WRITE), 1);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), 1u + t[i].max_rd);
		CU_ASSERT_TRUE(fixture.n[1].qp->resp.slow_path & UR_RESP_CATCHES_UP);
		expect_rest(&fixture);
		write_nothing(&fixture, psn, true); /* a duplicate changes nothing of that */
		expect_rest(&fixture);
		expect_responses(&fixture, 101, psn);
		CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), 2u + t[i].max_rd);
		CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
		expect_responses(&fixture, psn + 1, psn + 1 + (t[i].kept ? t[i].kept / MTU : 1));
		CU_ASSERT_EQUAL(ur_qp_state(fixture.n[1].qp), IBV_QPS_RTS);
		th_close(&fixture);
	}
}

/* More kept packets than are executed at once, the last of each part a READ, whose response is held back: each call executes a part. */
static void stall__parts_without_a_packet(void)
{
	enum { N = 600 };
	unsigned calls = 0;
	struct th_pkt p;

	open_paced(&fixture, 16);
	read_at(&fixture, 100, MTU);
	CU_ASSERT_TRUE(th_pull(&fixture, 1, &p));
	for (uint32_t i = 1; i < N; i++)
		if (i % 128)
			write_nothing(&fixture, 101 + i, false);
		else
			read_at(&fixture, 101 + i, 0);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_KEPT), N - 1);
	th_drain(&fixture, 1);
	write_nothing(&fixture, 101, false);
	for (; ur_tp_tx_pending(fixture.n[1].tp) && calls < 100; calls++)
		th_pull(&fixture, 1, &p);
	CU_ASSERT_TRUE(calls >= N / 128 - 1 && calls < 20);
	CU_ASSERT_EQUAL(fixture.n[1].qp->resp.epsn, 101 + N);
	expect_rest(&fixture);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_RX_READ), 1 + (N - 1) / 128);
	th_close(&fixture);
}

/* A SACK is owed, and then nothing is missing any more while responses wait: the acknowledgement follows them in the same call. */
static void stall__sack_that_is_not_needed_any_more(void)
{
	struct th_pkt p;

	open_kept(&fixture, 100, 0);
	write_one(&fixture, 100, 0, true); /* hello */
	th_drain(&fixture, 1);
	write_one(&fixture, 100, 3, true); /* a SACK is owed */
	read_at(&fixture, 101, MTU);
	write_one(&fixture, 100, 2, true);
	CU_ASSERT_PTR_NULL(fixture.n[1].qp->resp.reorder);
	CU_ASSERT_TRUE(th_pull(&fixture, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_ONLY);
	th_expect_ack(&fixture, 1, 103, ACK);
	th_expect_quiet(&fixture, 1);
	CU_ASSERT_EQUAL(count(&fixture, UR_C_TX_STALLED), 0);
	th_close(&fixture);
}

/* One that stalls all the same is counted, keeps nobody else from sending, does not keep the NIC awake, and is asked again. */
static void stall__costs_nobody_else(void)
{
	struct ur_tp *tp;
	struct th_pkt p;

	open_kept(&fixture, 100, 0);
	tp = fixture.n[1].tp;
	write_one(&fixture, 100, 1, false);
	th_drain(&fixture, 1);
	/* What no call may bring about: a response that is to be sent, of a table that has forgotten which. */
	fixture.n[1].qp->resp.slow_path |= UR_RESP_CATCHES_UP;
	ur_list_add_tail(&tp->stalled, &fixture.n[1].qp->stalled);
	CU_ASSERT_FALSE(ur_tp_tx_pending(tp));
	CU_ASSERT_TRUE(ur_tp_tx_worthwhile(tp));
	CU_ASSERT_FALSE(th_pull(&fixture, 1, &p));
	CU_ASSERT_FALSE(ur_tp_tx_worthwhile(tp));
	CU_ASSERT_FALSE(fixture.n[1].qp->resp.slow_path & UR_RESP_CATCHES_UP);
	write_one(&fixture, 100, 0, false);
	th_expect_ack(&fixture, 1, 101, ACK);
	ur_list_add_tail(&tp->stalled, &fixture.n[1].qp->stalled);
	th_close(&fixture); /* with one that is on the list */
}

void ur_suite_stall(void)
{
	CU_pSuite s = CU_add_suite("stall", NULL, NULL);

	CU_ADD_TEST(s, stall__kept_read_and_full_table);
	CU_ADD_TEST(s, stall__parts_without_a_packet);
	CU_ADD_TEST(s, stall__sack_that_is_not_needed_any_more);
	CU_ADD_TEST(s, stall__costs_nobody_else);
}
