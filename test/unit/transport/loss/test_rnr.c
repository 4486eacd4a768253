/* SPDX-License-Identifier: BSD-3-Clause */
/* After an RNR NAK (rnr.c): one packet asks whether the peer is ready, the rest follows, and how long a requester waits in between. */
#include "losses.h"
#include "transport/loss/rnr.h"
#include "transport/requester/requester.h"
#include "transport/state/req_state.h"
#include "wire/rnr.h"

void ur_suite_rnr(void);

#define RNR(code) ur_syndrome(UR_AETH_RNR, code)
#define SOON 1 /* the timer of 10 us */
#define ASKED (10 * US)

static struct th h;

static uint64_t repeats(void)
{
	return count(&h, 0, UR_C_RETRANSMIT);
}

static void open_node(uint8_t rnr_retry)
{
	struct th_opt o = th_default;

	o.rnr_retry = rnr_retry;
	th_open(&h, &o);
}

static void expect_psns(uint32_t from, uint32_t n)
{
	static struct th_pkt p;

	for (uint32_t i = 0; i < n; i++) {
		CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
		CU_ASSERT_EQUAL(p.p.bth.psn, from + i);
	}
	th_expect_quiet(&h, 0);
}

/* The wait after the RNR NAK of PSN `psn` is over: that packet goes, asks for an acknowledgement, and nothing follows it. */
static void expect_ask(uint32_t psn)
{
	static struct th_pkt p;

	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_RNR_WAIT);
	th_expect_quiet(&h, 0);
	th_sleep(&h, 3 * UR_NS_PER_MS);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	CU_ASSERT_TRUE(p.p.bth.ackreq);
	CU_ASSERT_EQUAL(ur_req_next(h.n[0].qp), UR_REQ_RNR_WAIT);
	th_expect_quiet(&h, 0);
}

/* Three SENDs of three packets each are refused eight times, at the first packet, and then taken. */
static void ask__one_packet_and_then_the_rest(void)
{
	open_node(7);
	for (uint64_t i = 0; i < 3; i++)
		th_post(&h, 0, IBV_WR_SEND, i, 0, 3000, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 9);
	for (uint64_t k = 1; k <= 8; k++) {
		th_ack(&h, 0, 100, RNR(SOON));
		expect_ask(100);
		CU_ASSERT_EQUAL(repeats(), k);
		th_post(&h, 0, IBV_WR_SEND, 2 + k, 0, 8, 0, IBV_SEND_SIGNALED); /* a doorbell changes nothing */
		th_expect_quiet(&h, 0);
	}
	th_ack(&h, 0, 100, ACK);
	expect_psns(101, 2);
	th_ack(&h, 0, 102, ACK);
	expect_psns(103, 3); /* one message was taken, and one follows */
	th_ack(&h, 0, 105, ACK);
	expect_psns(106, 3 + 1); /* two */
	th_ack(&h, 0, 109, ACK);
	expect_psns(110, 7); /* what was sent in vain has been taken: as before */
	CU_ASSERT_EQUAL(repeats(), 8 + 8);
	CU_ASSERT_EQUAL(h.n[0].qp->req.stops.rnr, UR_RNR_NONE);
	th_ack(&h, 0, 116, ACK);
	for (uint64_t i = 0; i < 3 + 8; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	th_close(&h);
}

/* A WRITE with immediate takes its receive with its last packet; what is before that was executed. */
static void ask__where_the_message_ends(void)
{
	open_node(7);
	th_post(&h, 0, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 3000, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 4);
	th_ack(&h, 0, 102, RNR(SOON));
	expect_ask(102);
	th_ack(&h, 0, 102, ACK);
	expect_psns(103, 1);
	CU_ASSERT_EQUAL(repeats(), 2);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

/* NICs refuse READs and atomics as well, where memory is not there: what asks is the request. */
static void ask__with_a_request_that_is_answered(void)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < ur_array_size(ops); i++) {
		const bool read = ops[i] == IBV_WR_RDMA_READ;

		open_node(7);
		th_post(&h, 0, ops[i], 1, 0, read ? 3000 : 8, 0, IBV_SEND_SIGNALED);
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, IBV_SEND_SIGNALED);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
		for (unsigned k = 0; k < 3; k++) {
			th_ack(&h, 0, 100, RNR(SOON));
			expect_ask(100);
		}
		if (read) {
			static const uint8_t data[1024];
			const struct th_hdr x = {.syndrome = ACK};

			th_inject(&h, 0, UR_OP_READ_RESP_FIRST, 100, false, &x, data, 1024);
			th_expect_quiet(&h, 0);
			th_inject(&h, 0, UR_OP_READ_RESP_MIDDLE, 101, false, NULL, data, 1024);
			th_inject(&h, 0, UR_OP_READ_RESP_LAST, 102, false, &x, data, 3000 - 2048);
			th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
			expect_psns(103, 1);
		} else {
			const struct th_hdr x = {.syndrome = ACK, .original = 5};

			th_inject(&h, 0, UR_OP_ATOMIC_ACK, 100, false, &x, NULL, 0);
			th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
			expect_psns(101, 1);
		}
		CU_ASSERT_EQUAL(repeats(), 3 + 1);
		th_close(&h);
	}
}

/* Where it stops, somebody has to say that it may go on: of requests that are not signalled, too. */
static void rest__asks_where_it_stops(void)
{
	static struct th_pkt p;
	uint32_t psn = 100;

	open_node(7);
	for (uint64_t i = 0; i < 16; i++)
		th_post(&h, 0, i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 0, 8, 0, i == 15 ? IBV_SEND_SIGNALED : 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 16);
	th_ack(&h, 0, 100, RNR(SOON));
	expect_ask(100);
	for (uint32_t n = 1; psn + n < 116; n = psn - 100) { /* as many as have been taken */
		th_ack(&h, 0, psn + n - 1, ACK);
		psn += n;
		for (uint32_t i = 0; i < ur_min_u32(psn - 100, 116 - psn); i++) {
			CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
			CU_ASSERT_EQUAL(p.p.bth.psn, psn + i);
		}
		CU_ASSERT_TRUE(p.p.bth.ackreq);
		th_expect_quiet(&h, 0);
	}
	CU_ASSERT_EQUAL(repeats(), 16);
	th_close(&h);
}

/* What asks, or its answer, is lost: that packet is sent again, alone, however that is found out. */
static void ask__lost(void)
{
	for (unsigned how = 0; how < 2; how++) {
		open_node(7);
		for (uint64_t i = 0; i < 4; i++)
			th_post(&h, 0, IBV_WR_SEND, i, 0, 8, 0, IBV_SEND_SIGNALED);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 4);
		th_ack(&h, 0, 100, RNR(SOON));
		expect_ask(100);
		if (how)
			th_ack(&h, 0, 100, SEQ_NAK); /* rdma_rxe sends one for what followed the refused request */
		else
			th_sleep(&h, 3 * UR_NS_PER_MS); /* the ACK timer, twice */
		expect_psns(100, 1);
		th_ack(&h, 0, 100, ACK);
		expect_psns(101, 1);
		th_ack(&h, 0, 101, ACK);
		expect_psns(102, 2);
		th_close(&h);
	}
}

/* A QP without an ACK timer asks again by itself. */
static void ask__lost_without_an_ack_timer(void)
{
	struct th_opt o = th_default;

	o.rnr_retry = 7;
	o.timeout = 0;
	th_open(&h, &o);
	for (uint64_t i = 0; i < 4; i++)
		th_post(&h, 0, IBV_WR_SEND, i, 0, 8, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 4);
	th_ack(&h, 0, 100, RNR(SOON));
	expect_ask(100);
	for (unsigned i = 0; i < 3; i++) {
		th_sleep(&h, 101 * UR_NS_PER_MS);
		expect_psns(100, 1);
	}
	th_ack(&h, 0, 100, ACK);
	expect_psns(101, 1);
	th_ack(&h, 0, 101, ACK);
	expect_psns(102, 2);
	th_ack(&h, 0, 103, ACK);
	th_sleep(&h, UR_NS_PER_S);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

/* The peer had kept what followed, and has executed it with what asked. */
static void ask__answered_with_all(void)
{
	open_node(7);
	for (uint64_t i = 0; i < 4; i++)
		th_post(&h, 0, IBV_WR_SEND, i, 0, 8, 0, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	th_ack(&h, 0, 100, RNR(SOON));
	expect_ask(100);
	th_ack(&h, 0, 103, ACK);
	for (uint64_t i = 0; i < 4; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(repeats(), 1);
	th_close(&h);
}

/* --- how long it waits --- */

static void wait__bounds(void)
{
	for (unsigned code = 0; code < 32; code++) {
		const ur_time asked = ur_rnr_time(code);

		CU_ASSERT_EQUAL(ur_rnr_wait(asked, 0), asked);
		for (ur_time refused = 1; refused < 100 * UR_NS_PER_S; refused *= 3) {
			const ur_time wait = ur_rnr_wait(asked, refused);

			CU_ASSERT_TRUE(wait >= asked);
			CU_ASSERT_TRUE(wait == asked || wait <= refused / 4);
			CU_ASSERT_TRUE(wait == asked || wait <= 10 * UR_NS_PER_MS);
			CU_ASSERT_TRUE(wait <= 128 * asked);
		}
	}
}

/* A receiver that is late by a second, with the shortest timer. Before there was a bound it refused some 50,000 times. */
static void wait__grows_where_retries_have_no_end(void)
{
	open_node(7);
	for (uint64_t i = 0; i < 20; i++)
		th_post(&h, 0, IBV_WR_SEND, i, 0, 3000, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	CU_ASSERT_TRUE(count(&h, 0, UR_C_RNR_NAK_RCVD) > 100);
	CU_ASSERT_TRUE(count(&h, 0, UR_C_RNR_NAK_RCVD) < 1000);
	CU_ASSERT_EQUAL(repeats(), count(&h, 0, UR_C_RNR_NAK_RCVD) - 1);
	for (uint64_t i = 0; i < 20; i++)
		th_recv(&h, 1, i, 100000, 3000);
	th_run(&h, 128 * ASKED + 20 * US);
	for (uint64_t i = 0; i < 20; i++) {
		th_expect_wc(h.n[1].rcq, i, IBV_WC_SUCCESS);
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	}
	th_close(&h);
}

/* After progress the next refusal begins with the timer again. */
static void wait__begins_anew(void)
{
	open_node(7);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_post(&h, 0, IBV_WR_SEND, 2, 0, 8, 0, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	for (unsigned k = 0; k < 10; k++) {
		th_ack(&h, 0, 100, RNR(SOON));
		expect_ask(100);
	}
	th_ack(&h, 0, 100, RNR(SOON));
	th_sleep(&h, 2 * ASKED);
	th_expect_quiet(&h, 0);        /* it waits longer by now */
	th_ack(&h, 0, 101, RNR(SOON)); /* a copy found a receive, and the next one none */
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_sleep(&h, 2 * ASKED);
	expect_psns(101, 1);
	th_close(&h);
}

/* With a counter a request fails when the program expects that. */
static void wait__is_exact_where_retries_are_counted(void)
{
	static struct th_pkt p;

	open_node(6);
	th_post(&h, 0, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	for (unsigned k = 0; k < 6; k++) {
		th_ack(&h, 0, 100, RNR(10)); /* 320 us */
		th_sleep(&h, 320 * US - US);
		th_expect_quiet(&h, 0);
		th_sleep(&h, US + 2 * UR_WHEEL_TICK_NS);
		CU_ASSERT_TRUE(th_pull(&h, 0, &p));
	}
	th_ack(&h, 0, 100, RNR(10));
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	th_close(&h);
}

/* Four SENDs of one packet each, of a QP that has no retries. */
static void send_without_retries(uint8_t timeout)
{
	struct th_opt o = th_default;

	o.retry_cnt = 0;
	o.timeout = timeout;
	th_open(&h, &o);
	for (uint64_t i = 0; i < 4; i++)
		th_post(&h, 0, IBV_WR_SEND, i, 0, 8, 0, IBV_SEND_SIGNALED);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 4);
}

/*
 * A request is taken at last, before its RNR NAK is heard, and what was sent behind it meanwhile makes the peer ask for what it has thrown
 * away. That is no loss, of which a QP without retries would fail; a NAK too many is.
 */
static void nak__of_what_was_thrown_away(void)
{
	send_without_retries(th_default.timeout);
	th_ack(&h, 0, 100, RNR(SOON));
	expect_ask(100);
	th_ack(&h, 0, 100, ACK);
	th_expect_wc(h.n[0].scq, 0, IBV_WC_SUCCESS);
	th_drain(&h, 0);
	th_ack(&h, 0, 101, SEQ_NAK);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	expect_psns(101, 1);
	th_ack(&h, 0, 101, SEQ_NAK); /* a copy */
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	th_sleep(&h, 100 * UR_NS_PER_MS);
	th_drain(&h, 0);
	th_ack(&h, 0, 101, SEQ_NAK);
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	th_close(&h);
}

/* The same where the RNR NAK was never heard: a probe was taken. */
static void nak__after_a_probe(void)
{
	send_without_retries(16);
	th_sleep(&h, 25 * UR_NS_PER_MS);
	CU_ASSERT_EQUAL(count(&h, 0, UR_C_PROBE), 1);
	th_drain(&h, 0);
	th_ack(&h, 0, 101, SEQ_NAK);
	th_expect_wc(h.n[0].scq, 0, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
	expect_psns(101, 3);
	th_sleep(&h, 100 * UR_NS_PER_MS);
	th_drain(&h, 0);
	th_ack(&h, 0, 101, SEQ_NAK); /* of what was sent again */
	th_expect_wc(h.n[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	th_close(&h);
}

void ur_suite_rnr(void)
{
	CU_pSuite s = CU_add_suite("rnr", NULL, NULL);

	CU_ADD_TEST(s, ask__one_packet_and_then_the_rest);
	CU_ADD_TEST(s, ask__where_the_message_ends);
	CU_ADD_TEST(s, ask__with_a_request_that_is_answered);
	CU_ADD_TEST(s, rest__asks_where_it_stops);
	CU_ADD_TEST(s, ask__lost);
	CU_ADD_TEST(s, ask__lost_without_an_ack_timer);
	CU_ADD_TEST(s, ask__answered_with_all);
	CU_ADD_TEST(s, wait__bounds);
	CU_ADD_TEST(s, wait__grows_where_retries_have_no_end);
	CU_ADD_TEST(s, wait__begins_anew);
	CU_ADD_TEST(s, wait__is_exact_where_retries_are_counted);
	CU_ADD_TEST(s, nak__of_what_was_thrown_away);
	CU_ADD_TEST(s, nak__after_a_probe);
}
