/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/loss/scoreboard.c and rack.c: what a requester sends again. Node 0 is the requester, which sends from PSN 100 on; its peer
 * is the test. Time stands still unless a test lets it pass.
 */
#include "calloc.h"
#include "sack_harness.h"
#include "transport/loss/scoreboard.h"
#include "transport/requester/completer.h"

void ur_suite_scoreboard(void);

static void open_requester(struct th *h, unsigned window)
{
	struct th_opt o = th_default;

	o.selective = true;
	o.window = window;
	o.access |= IBV_ACCESS_REMOTE_ATOMIC;
	th_open(h, &o);
}

static void expect_sent(struct th *h, uint32_t psn)
{
	struct th_pkt p;

	if (!th_pull(h, 0, &p)) {
		CU_FAIL("nothing is sent");
		return;
	}
	CU_ASSERT_EQUAL(p.p.bth.psn, psn);
}

static void expect_done(struct th *h, uint32_t from, uint32_t to)
{
	for (; from <= to; from++)
		th_expect_wc(h->n[0].scq, from, IBV_WC_SUCCESS);
	th_expect_no_wc(h->n[0].scq);
}

/* --- what is lost is sent again, and nothing else --- */

static void lost__any_but_the_last(void)
{
	for (uint32_t lost = FIRST; lost < FIRST + 9; lost++) {
		static struct th h;

		open_requester(&h, 0);
		send_writes(&h, 10);
		sack(&h, lost, lost + 1, FIRST + 9);
		expect_sent(&h, lost);
		th_expect_quiet(&h, 0);
		sack(&h, lost, lost + 1, FIRST + 9); /* says nothing new */
		th_expect_quiet(&h, 0);
		CU_ASSERT_EQUAL(req(&h)->scoreboard.gone, FIRST + 9 - lost);
		CU_ASSERT_EQUAL(req(&h)->retry_left, 7);
		CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_SACK_RCVD], 2);
		th_ack(&h, 0, FIRST + 9, ACK);
		expect_done(&h, FIRST, FIRST + 9);
		CU_ASSERT_FALSE(req(&h)->scoreboard.busy);
		CU_ASSERT_EQUAL(req(&h)->scoreboard.gone, 0);
		th_close(&h);
	}
}

/* Nothing overtook the last ones: a probe finds that they are lost, and all of them at once. */
static void lost__the_last_ones(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 102, 104, 105);
	expect_sent(&h, 102);
	expect_sent(&h, 103);
	th_expect_quiet(&h, 0);
	sack(&h, 106, 109, 109); /* 102 and 103 have come, and the newest as the probe sends it */
	expect_sent(&h, 106);
	expect_sent(&h, 107);
	expect_sent(&h, 108);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 109, ACK);
	expect_done(&h, 100, 109);
	th_close(&h);
}

static void lost__a_repeat(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 103, 104, 109);
	expect_sent(&h, 103);
	send_writes(&h, 2); /* 110 is sent after the repeat */
	sack(&h, 103, 104, 110);
	expect_sent(&h, 103);
	th_expect_quiet(&h, 0);
	sack(&h, 103, 104, 111); /* before the second repeat */
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 111, ACK);
	expect_done(&h, 100, 111);
	th_close(&h);
}

/* Of two repeats the later one has arrived. */
static void lost__the_earlier_repeat(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 103, 104, 105);
	expect_sent(&h, 103);
	sack(&h, 103, 104, 105);
	sack(&h, 103, 107, 109);
	expect_sent(&h, 106);
	sack(&h, 103, 104, 109);
	expect_sent(&h, 103);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 109, ACK);
	expect_done(&h, 100, 109);
	th_close(&h);
}

/*
 * A repeat waits in a queue behind what was sent before it, for ten times the shortest round trip. What is acknowledged meanwhile is the
 * original, which says nothing of the packets that have not come yet.
 */
static void lost__nothing_when_an_original_comes_late(void)
{
	static const struct ur_rtt rtt = {.mean = 200 * US, .var = 5 * US, .least = 20 * US};
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 20);
	req(&h)->rtt = rtt;
	sack(&h, 101, 102, 105);
	expect_sent(&h, 101);
	th_sleep(&h, 50 * US);
	th_ack(&h, 0, 105, ACK);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 119, ACK);
	expect_done(&h, 100, 119);
	th_close(&h);
}

/* The same time, but all that was sent before the repeat has come, apart from a few. */
static void lost__what_a_repeat_overtakes(void)
{
	static const struct ur_rtt rtt = {.mean = 200 * US, .var = 5 * US, .least = 20 * US};
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 20);
	req(&h)->rtt = rtt;
	sack(&h, 101, 102, 117);
	expect_sent(&h, 101);
	th_sleep(&h, 50 * US);
	th_ack(&h, 0, 117, ACK);
	expect_sent(&h, 118);
	expect_sent(&h, 119);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 119, ACK);
	expect_done(&h, 100, 119);
	th_close(&h);
}

/* The next one says the same, and more; an old one that comes late changes nothing. */
static void lost__a_sack(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 102, 103, 104);
	expect_sent(&h, 102);
	sack(&h, 106, 108, 109);
	expect_sent(&h, 106);
	expect_sent(&h, 107);
	sack(&h, 102, 103, 104);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_GHOST_ACK], 1);
	expect_done(&h, 100, 105);
	th_close(&h);
}

/* --- the window --- */

static void window__counts_what_is_in_flight(void)
{
	static struct th h;

	open_requester(&h, 8);
	post_writes(&h, 20);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 8);
	sack(&h, 100, 101, 107);
	expect_sent(&h, 100); /* a repair goes first, and is in flight */
	CU_ASSERT_EQUAL(th_drain(&h, 0), 7);
	th_ack(&h, 0, 114, ACK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 5);
	expect_done(&h, 100, 114);
	th_close(&h);
}

/* --- packets that overtake one another --- */

static void overtaken__teaches_patience(void)
{
	static struct th h;

	static const struct ur_rtt rtt = {.mean = 100 * US, .var = 5 * US, .least = 80 * US};

	open_requester(&h, 0);
	send_writes(&h, 10);
	req(&h)->rtt = rtt;
	sack(&h, 102, 103, 104);
	expect_sent(&h, 102);
	th_sleep(&h, 10 * US);
	sack(&h, 106, 107, 107); /* 102 came, too soon for the repeat; and 107 before 106 */
	CU_ASSERT_EQUAL(req(&h)->scoreboard.reo_wnd, 20 * US);
	th_expect_quiet(&h, 0);
	th_sleep(&h, 10 * US);
	th_ack(&h, 0, 109, ACK); /* so 106 was not lost */
	expect_done(&h, 100, 109);
	send_writes(&h, 10);
	req(&h)->rtt = rtt;
	sack(&h, 112, 113, 119);
	th_expect_quiet(&h, 0);
	th_sleep(&h, 25 * US);
	expect_sent(&h, 112); /* that one was */
	th_expect_quiet(&h, 0);
	th_close(&h);
}

/* --- READs and atomics --- */

static void read__request_lost(void)
{
	static struct th h;
	struct ur_reth r;
	struct th_pkt p;

	open_requester(&h, 0);
	send_writes(&h, 1);
	th_post(&h, 0, IBV_WR_RDMA_READ, 7, 0, 3000, 64, IBV_SEND_SIGNALED); /* 101 to 103 */
	th_drain(&h, 0);
	send_writes(&h, 2);
	sack(&h, 101, 104, 105);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_REQ);
	ur_reth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &r);
	CU_ASSERT_EQUAL(r.len, 3000);
	th_expect_quiet(&h, 0);
	expect_done(&h, 100, 100);
	th_close(&h);
}

/* That a request has arrived, or been executed, is no answer. */
static void read__bits_are_no_answers(void)
{
	static struct th h;
	const struct th_hdr x = {.syndrome = ACK};

	open_requester(&h, 0);
	send_writes(&h, 1);
	th_post(&h, 0, IBV_WR_RDMA_READ, 7, 0, 2000, 64, IBV_SEND_SIGNALED); /* 101 and 102 */
	th_drain(&h, 0);
	send_writes(&h, 1);
	sack(&h, 100, 101, 103);
	expect_sent(&h, 100);
	th_expect_quiet(&h, 0);
	sack(&h, 104, 105, 104); /* all has been executed; the answers are on their way */
	expect_done(&h, 100, 100);
	th_expect_quiet(&h, 0);
	th_inject(&h, 0, UR_OP_READ_RESP_FIRST, 101, false, &x, h.n[1].mem, 1024);
	th_expect_no_wc(h.n[0].scq);
	th_inject(&h, 0, UR_OP_READ_RESP_LAST, 102, false, &x, h.n[1].mem + 1024, 976);
	th_expect_wc(h.n[0].scq, 7, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 103, IBV_WC_SUCCESS);
	th_close(&h);
}

static void read__response_lost_behind_a_sack(void)
{
	static struct th h;
	const struct th_hdr x = {.syndrome = ACK};
	struct ur_reth r;
	struct th_pkt p;

	open_requester(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_READ, 7, 0, 4096, 64, IBV_SEND_SIGNALED); /* 100 to 103 */
	th_drain(&h, 0);
	send_writes(&h, 3);
	sack(&h, 104, 105, 106);
	expect_sent(&h, 104);
	th_inject(&h, 0, UR_OP_READ_RESP_FIRST, 100, false, &x, h.n[1].mem, 1024);
	th_inject(&h, 0, UR_OP_READ_RESP_LAST, 103, false, &x, h.n[1].mem, 1024);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	ur_reth_get(p.p.data + p.p.bth_off + UR_BTH_LEN, &r);
	CU_ASSERT_EQUAL(r.len, 2048);
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	th_close(&h);
}

static void atomic__lost_and_early(void)
{
	static struct th h;
	const struct th_hdr x = {.syndrome = ACK, .original = 5};

	open_requester(&h, 0);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_sge sge = {(uintptr_t)h.n[0].mem + 64 + 8 * i, 8, h.n[0].mr->lkey};
		struct ibv_send_wr wr = {.wr_id = 100 + i,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					 .send_flags = IBV_SEND_SIGNALED};

		wr.wr.atomic.remote_addr = (uintptr_t)h.n[1].mem;
		wr.wr.atomic.rkey = h.n[1].mr->rkey;
		CU_ASSERT_EQUAL(th_post_wr(&h, 0, &wr), 0);
	}
	CU_ASSERT_EQUAL(th_drain(&h, 0), 3);
	sack(&h, 100, 101, 102); /* the first has not arrived */
	expect_sent(&h, 100);
	th_expect_quiet(&h, 0);
	th_inject(&h, 0, UR_OP_ATOMIC_ACK, 101, false, &x, NULL, 0); /* all executed; the first answer got lost */
	expect_sent(&h, 100);
	th_inject(&h, 0, UR_OP_ATOMIC_ACK, 100, false, &x, NULL, 0);
	th_expect_wc(h.n[0].scq, 100, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 101, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[0].scq);
	th_inject(&h, 0, UR_OP_ATOMIC_ACK, 102, false, &x, NULL, 0);
	th_expect_wc(h.n[0].scq, 102, IBV_WC_SUCCESS);
	th_close(&h);
}

/* --- what takes it back, and what nobody believes --- */

static void rnr__takes_back_what_was_reported(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 102, 103, 109);
	expect_sent(&h, 102);
	th_ack(&h, 0, 104, ur_syndrome(UR_AETH_RNR, 1));
	CU_ASSERT_EQUAL(req(&h)->scoreboard.gone, 0);
	expect_done(&h, 100, 103);
	th_expect_quiet(&h, 0);
	th_sleep(&h, 20 * US);
	expect_sent(&h, 104);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 104, ACK);
	expect_sent(&h, 105);
	th_expect_quiet(&h, 0);
	th_ack(&h, 0, 105, ACK);
	for (uint32_t psn = 106; psn < 108; psn++)
		expect_sent(&h, psn);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

/* A repeat is not timed where the peer may have kept what was sent first: the acknowledgement may be of that. */
static void nak__times_no_repeat_to_a_peer_that_keeps(void)
{
	static struct th h;

	for (unsigned keeps = 0; keeps < 2; keeps++) {
		struct ur_requester *r;

		open_requester(&h, 0);
		r = &h.n[0].qp->req;
		r->scoreboard.sacks = keeps;
		send_writes(&h, 3);
		th_ack(&h, 0, 101, SEQ_NAK);
		th_drain(&h, 0);
		CU_ASSERT_EQUAL(r->rtt.at == 0, keeps);
		th_close(&h);
	}
}

static void nak__goes_back(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 102, 104, 109);
	th_ack(&h, 0, 102, SEQ_NAK);
	for (uint32_t psn = 102; psn < 110; psn++)
		expect_sent(&h, psn);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

static void nak__fatal_behind_holes(void)
{
	static struct th h;

	open_requester(&h, 0);
	send_writes(&h, 10);
	sack(&h, 102, 104, 109);
	th_ack(&h, 0, 105, NAK(UR_NAK_REM_ACCESS));
	for (uint32_t i = 100; i < 105; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	th_expect_wc(h.n[0].scq, 105, IBV_WC_REM_ACCESS_ERR);
	for (uint32_t i = 106; i < 110; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_FALSE(req(&h)->scoreboard.busy);
	th_close(&h);
}

/* A READ that was answered beyond a hole before it was known that the peer has SACKs leaves its place to another from then on, too. */
static void reads__early_before_the_first_sack(void)
{
	const struct th_hdr x = {.syndrome = ACK};
	static struct th h;
	struct th_opt o = th_default;

	o.selective = true;
	o.max_rd = 2;
	th_open(&h, &o);
	for (unsigned i = 0; i < 4; i++)
		th_post(&h, 0, IBV_WR_RDMA_READ, FIRST + i, 8 * i, 8, 64, IBV_SEND_SIGNALED);
	expect_sent(&h, FIRST);
	expect_sent(&h, FIRST + 1);
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, FIRST + 1, false, &x, h.n[1].mem + 64, 8);
	expect_sent(&h, FIRST); /* once more */
	th_expect_quiet(&h, 0); /* it may be a peer that remembers no more than two */
	sack(&h, FIRST + 2, FIRST + 3, FIRST + 2);
	expect_sent(&h, FIRST + 2);
	th_expect_quiet(&h, 0);
	for (uint32_t psn = FIRST; psn <= FIRST + 2; psn += 2)
		th_inject(&h, 0, UR_OP_READ_RESP_ONLY, psn, false, &x, h.n[1].mem + 64, 8);
	expect_sent(&h, FIRST + 3);
	expect_done(&h, FIRST, FIRST + 2);
	CU_ASSERT_EQUAL(req(&h)->scoreboard.rd_early, 0);
	CU_ASSERT_EQUAL(req(&h)->rd_out, 1);
	th_close(&h);
}

/* There is no memory for notes: a SACK is as good as a NAK then, and a READ response beyond a lost one is asked for again. */
static void memory__is_short(void)
{
	static struct th h;
	const struct th_hdr x = {.syndrome = ACK};

	open_requester(&h, 0);
	send_writes(&h, 10);
	no_calloc = true;
	sack(&h, 102, 104, 109);
	no_calloc = false;
	CU_ASSERT_PTR_NULL(req(&h)->scoreboard.maps);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_PACKET_SEQ_ERR], 1);
	for (uint32_t psn = 102; psn < 110; psn++)
		expect_sent(&h, psn);
	th_ack(&h, 0, 109, ACK);
	expect_done(&h, 100, 109);
	th_post(&h, 0, IBV_WR_RDMA_READ, 110, 0, 2000, 64, IBV_SEND_SIGNALED);
	expect_sent(&h, 110);
	no_calloc = true;
	th_inject(&h, 0, UR_OP_READ_RESP_LAST, 111, false, &x, h.n[1].mem, 976);
	no_calloc = false;
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_IMPLIED_NAK], 1);
	expect_sent(&h, 110);
	th_inject(&h, 0, UR_OP_READ_RESP_FIRST, 110, false, &x, h.n[1].mem, 1024);
	th_inject(&h, 0, UR_OP_READ_RESP_LAST, 111, false, &x, h.n[1].mem, 976);
	expect_done(&h, 110, 110);
	th_close(&h);
}

/* A NAK overtakes a response, so all is sent again from its READ on; then it comes, and says nothing of how long that took. */
static void nak__before_a_response_that_is_late(void)
{
	static struct th h;
	const struct th_hdr x = {.syndrome = ACK};

	open_requester(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_READ, 7, 0, 1000, 64, IBV_SEND_SIGNALED);
	th_drain(&h, 0);
	send_writes(&h, 2);
	th_sleep(&h, 50 * US);
	th_ack(&h, 0, 101, SEQ_NAK);
	expect_sent(&h, 100);
	th_sleep(&h, 2 * US);
	th_inject(&h, 0, UR_OP_READ_RESP_ONLY, 100, false, &x, h.n[1].mem, 1000);
	th_expect_wc(h.n[0].scq, 7, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(req(&h)->rtt.samples, 0);
	th_close(&h);
}

static void hostile__is_believed_only_of_what_was_sent(void)
{
	static struct th h;

	open_requester(&h, 0);
	sack(&h, 100, 101, 105); /* of nothing */
	send_writes(&h, 3);
	sack(&h, 104, 105, 106); /* expects what was never sent */
	sack(&h, 99, 100, 102);
	sack(&h, 0x800000, 0x800001, 0x800005);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_DROP_GHOST_ACK], 4);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_SACK_RCVD], 0);
	th_expect_quiet(&h, 0);
	th_expect_no_wc(h.n[0].scq);
	sack(&h, 100, 103, 300); /* beyond the newest */
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(req(&h)->scoreboard.gone, 0);
	send_writes(&h, 2);
	th_ack(&h, 0, 104, ACK);
	expect_done(&h, 100, 104);
	th_close(&h);
}

/* Whatever lies say, nothing completes but by acknowledgement, and all that is sent was posted. */
static void hostile__at_random(void)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		static struct th h;
		struct ur_rng rng = {seed};
		unsigned sent = 0;

		open_requester(&h, 16);
		post_writes(&h, 60);
		for (unsigned i = 0; i < 200; i++) {
			const uint32_t una = req(&h)->una, expected = una - ur_rng_below(&rng, 3) + ur_rng_below(&rng, 4);
			const uint32_t from = expected + ur_rng_below(&rng, 100);
			struct ibv_wc wc;

			sack(&h, expected, from, from + ur_rng_below(&rng, 50));
			th_sleep(&h, ur_rng_below(&rng, 30) * US);
			sent += th_drain(&h, 0);
			while (ur_cq_poll(h.n[0].scq, 1, &wc) > 0)
				CU_ASSERT_TRUE(wc.wr_id < req(&h)->una || req(&h)->una == 160);
			CU_ASSERT_TRUE(((req(&h)->next - req(&h)->una) & UR_PSN_MASK) <= 60);
			CU_ASSERT_TRUE(req(&h)->scoreboard.gone <= ((req(&h)->next - req(&h)->una) & UR_PSN_MASK));
		}
		CU_ASSERT_TRUE(sent >= 16);
		th_close(&h);
	}
}

void ur_suite_scoreboard(void)
{
	CU_pSuite s = CU_add_suite("scoreboard", NULL, NULL);

	CU_ADD_TEST(s, nak__times_no_repeat_to_a_peer_that_keeps);
	CU_ADD_TEST(s, lost__any_but_the_last);
	CU_ADD_TEST(s, lost__the_last_ones);
	CU_ADD_TEST(s, lost__a_repeat);
	CU_ADD_TEST(s, lost__the_earlier_repeat);
	CU_ADD_TEST(s, lost__nothing_when_an_original_comes_late);
	CU_ADD_TEST(s, lost__what_a_repeat_overtakes);
	CU_ADD_TEST(s, lost__a_sack);
	CU_ADD_TEST(s, window__counts_what_is_in_flight);
	CU_ADD_TEST(s, overtaken__teaches_patience);
	CU_ADD_TEST(s, read__request_lost);
	CU_ADD_TEST(s, read__bits_are_no_answers);
	CU_ADD_TEST(s, read__response_lost_behind_a_sack);
	CU_ADD_TEST(s, atomic__lost_and_early);
	CU_ADD_TEST(s, rnr__takes_back_what_was_reported);
	CU_ADD_TEST(s, nak__goes_back);
	CU_ADD_TEST(s, nak__fatal_behind_holes);
	CU_ADD_TEST(s, nak__before_a_response_that_is_late);
	CU_ADD_TEST(s, reads__early_before_the_first_sack);
	CU_ADD_TEST(s, memory__is_short);
	CU_ADD_TEST(s, hostile__is_believed_only_of_what_was_sent);
	CU_ADD_TEST(s, hostile__at_random);
}
