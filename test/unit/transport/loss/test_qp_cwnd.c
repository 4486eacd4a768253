/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/loss/qp_cwnd.c: what the window of a QP is told, and what it does to the requester. */
#include "losses.h"
#include "sack_harness.h"
#include "transport/loss/rewind.h"
#include "transport/state/req_state.h"

void ur_suite_qp_cwnd(void);

#define ONE UR_CWND_ONE

static struct th h;

static struct ur_requester *open_one(unsigned window)
{
	struct th_opt o = th_default;

	o.window = window;
	o.cc = true;
	o.cwnd = UR_CWND_ALWAYS;
	o.selective = true;
	o.wr = 256;
	th_open(&h, &o);
	return &h.n[0].qp->req;
}

static void write_packets(unsigned n)
{
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, n * 1024, 0, IBV_SEND_SIGNALED);
}

/* It begins with 64 KiB, and the first packet asks for an acknowledgement, so that it is timed. */
static void open__with_a_packet_that_is_timed(void)
{
	struct ur_requester *r = open_one(0);
	struct th_pkt p;

	CU_ASSERT_TRUE(r->cwnd.on);
	CU_ASSERT_EQUAL(r->window.size, 64);
	write_packets(300);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_TRUE(p.p.bth.ackreq);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 63);
	th_sleep(&h, 30 * US);
	th_ack(&h, 0, 100, ACK);
	CU_ASSERT_EQUAL(r->cwnd.w.base, 30 * US);
	CU_ASSERT_EQUAL(r->window.size, 65); /* it doubles with what is acknowledged */
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_close(&h);
}

static void open__not_where_a_setting_says_the_size(void)
{
	const struct ur_requester *r = open_one(100);

	CU_ASSERT_FALSE(r->cwnd.on);
	CU_ASSERT_EQUAL(r->window.size, 100);
	th_close(&h);
}

/* --- from the first loss on --- */

static struct ur_requester *open_lossless(bool selective)
{
	struct th_opt o = th_default;

	o.cc = true;
	o.cwnd = UR_CWND_LOSSES;
	o.selective = selective;
	o.wr = 256;
	th_open(&h, &o);
	return &h.n[0].qp->req;
}

/* The first transmission of a packet in the middle of a message is lost. */
static struct ur_requester *open_and_lose(bool selective)
{
	struct ur_requester *r = open_lossless(selective);
	struct loss losses[] = {{0, 500, 1}, END_OF_LOSSES};

	h.lose = lose_psn;
	h.arg = losses;
	write_packets(700);
	th_run(&h, UR_NS_PER_S);
	h.lose = NULL;
	h.arg = NULL;
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(losses[0].times, 0);
	return r;
}

/* It begins small and doubles, up to where others begin. */
static void losses__none(void)
{
	struct ur_requester *r = open_lossless(true);

	CU_ASSERT(!r->cwnd.on && r->window.size == 64 && r->window.slow_start);
	write_packets(700);
	th_run(&h, UR_NS_PER_S);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT(!r->cwnd.on && r->window.size >= 256 && !r->window.slow_start);
	th_inject(&h, 0, UR_OP_CNP, 0, false, NULL, NULL, 0);
	CU_ASSERT_TRUE(h.n[0].qp->cc.rate.active);
	th_close(&h);
}

static void losses__one(void)
{
	struct ur_requester *r = open_and_lose(true);

	CU_ASSERT_TRUE(r->cwnd.on);
	CU_ASSERT_TRUE(r->window.size >= 64);
	write_packets(300);
	th_drain(&h, 0);
	th_inject(&h, 0, UR_OP_CNP, 0, false, NULL, NULL, 0);
	CU_ASSERT(r->cwnd.w.marked && !h.n[0].qp->cc.rate.active);
	th_close(&h);
}

/* A peer that sends no SACK is treated as with dcqcn. */
static void losses__of_another_make(void)
{
	CU_ASSERT_FALSE(open_and_lose(false)->cwnd.on);
	th_close(&h);
}

/* A notification is obeyed by the window, not by a rate, as long as there is something in flight. */
static void marked__by_a_notification(void)
{
	struct ur_requester *r = open_one(0);

	write_packets(300);
	th_drain(&h, 0);
	th_sleep(&h, 30 * US);
	th_inject(&h, 0, UR_OP_CNP, 0, false, NULL, NULL, 0);
	CU_ASSERT_FALSE(h.n[0].qp->cc.rate.active);
	th_ack(&h, 0, 100, ACK);
	CU_ASSERT_EQUAL(r->window.size, 56);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_CNP_HANDLED], 1);
	th_ack(&h, 0, ur_psn_add(r->max, UR_PSN_MASK), ACK); /* all that was sent */
	th_inject(&h, 0, UR_OP_CNP, 0, false, NULL, NULL, 0);
	CU_ASSERT_TRUE(h.n[0].qp->cc.rate.active);
	th_close(&h);
}

/* A marked READ response is a mark for the one who reads, and no notification goes out. */
static void marked__by_a_response(void)
{
	struct ur_requester *r = open_one(0);
	const struct th_hdr ext = {.syndrome = ACK};
	struct th_pkt p;

	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	th_sleep(&h, 30 * US);
	th_make(&h, 0, &p, UR_OP_READ_RESP_ONLY, 100, false, &ext, "12345678", 8);
	p.p.tos = 3;
	th_feed(&h, 0, &p);
	th_expect_quiet(&h, 0);
	CU_ASSERT_TRUE(r->cwnd.w.marked);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_CNP_SENT], 0);
	th_close(&h);
}

/* Less than a packet: one, and the next after the interval, though the first was acknowledged before. */
static void paced__below_one_packet(void)
{
	struct ur_requester *r = open_one(0);

	write_packets(1);
	th_drain(&h, 0);
	th_sleep(&h, 100 * US);
	r->cwnd.w.size = ONE / 4;
	r->cwnd.w.growth = UR_CWND_ADD;
	th_ack(&h, 0, 100, ACK);
	CU_ASSERT_EQUAL(r->cwnd.w.size, ONE / 4 + ONE / 16);
	CU_ASSERT_TRUE(r->cwnd.slow);
	write_packets(3);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	CU_ASSERT_TRUE(r->stops.paused);
	th_sleep(&h, 100 * US);
	th_ack(&h, 0, 101, ACK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_sleep(&h, 200 * US);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_sleep(&h, 50 * US); /* a round trip of 100 us and 5/16 of a packet: 320 us */
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_close(&h);
}

/* A request is posted while a repair waits for room in the window, and then it turns out that nothing was lost: no timer runs any more. */
static void repair__waits_and_a_request_behind_it(void)
{
	struct ur_requester *r = open_one(0);

	send_writes(&h, 10);
	th_sleep(&h, 30 * US);
	r->cwnd.w.size = ONE;
	r->cwnd.w.growth = UR_CWND_ADD;
	sack(&h, FIRST, FIRST + 6, FIRST + 9);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1); /* the oldest, and then the window is full */
	CU_ASSERT_TRUE(r->stops.lost);
	post_writes(&h, 1);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, FIRST + 9, ACK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	th_ack(&h, 0, FIRST + 10, ACK);
	for (uint32_t psn = FIRST; psn <= FIRST + 10; psn++)
		th_expect_wc(h.n[0].scq, psn, IBV_WC_SUCCESS);
	th_close(&h);
}

/* A READ is asked for in pieces that the window holds, also when it has become smaller since the READ began. */
static void read__in_smaller_pieces(void)
{
	struct ur_requester *r = open_one(0);
	struct th_pkt p;
	struct ur_reth reth;

	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 300 * 1024, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	ur_reth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &reth);
	CU_ASSERT_EQUAL(reth.len, 32 * 1024);
	th_drain(&h, 0);
	r->cwnd.w.size = 4 * ONE;
	ur_cwnd_expired(&r->cwnd.w, h.now);
	th_run(&h, 100 * UR_NS_PER_MS); /* what was asked for is lost; all goes on with a window of 2 and 1 */
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, 300 * 1024), 0);
	CU_ASSERT_TRUE(h.n[1].c.v[UR_C_RX_READ] > 10);
	th_close(&h);
}

/* The same after going back, while responses to what was asked for before are still on their way. */
static void read__in_smaller_pieces_than_responses_have(void)
{
	struct ur_requester *r = open_one(0);
	const struct th_hdr ext = {.syndrome = ACK};
	static uint8_t data[1024];
	struct th_pkt p;

	th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 16 * 1024, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
	ur_req_rewind(h.n[0].qp);
	r->cwnd.w.size = 8 * ONE;
	ur_window_set(&r->window, 8, r->una);
	ur_req_schedule(h.n[0].qp);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p)); /* the first four of the sixteen */
	CU_ASSERT_EQUAL(ur_get32(p.p.data + p.p.bth_off + UR_BTH_LEN + 12), 4 * 1024);
	for (uint32_t k = 0; k < 16; k++) {
		const uint8_t opcode = k == 0 ? UR_OP_READ_RESP_FIRST : k == 15 ? UR_OP_READ_RESP_LAST : UR_OP_READ_RESP_MIDDLE;

		th_inject(&h, 0, opcode, 100 + k, false, &ext, data, 1024);
	}
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

void ur_suite_qp_cwnd(void)
{
	CU_pSuite s = CU_add_suite("qp_cwnd", NULL, NULL);

	CU_ADD_TEST(s, open__with_a_packet_that_is_timed);
	CU_ADD_TEST(s, open__not_where_a_setting_says_the_size);
	CU_ADD_TEST(s, losses__none);
	CU_ADD_TEST(s, losses__one);
	CU_ADD_TEST(s, losses__of_another_make);
	CU_ADD_TEST(s, marked__by_a_notification);
	CU_ADD_TEST(s, marked__by_a_response);
	CU_ADD_TEST(s, paced__below_one_packet);
	CU_ADD_TEST(s, repair__waits_and_a_request_behind_it);
	CU_ADD_TEST(s, read__in_smaller_pieces);
	CU_ADD_TEST(s, read__in_smaller_pieces_than_responses_have);
}
