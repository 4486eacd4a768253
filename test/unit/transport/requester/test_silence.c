/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that says nothing for a while: the ACK timer of lib/transport/requester/ack_timer.c, and what a peer is asked that says what it
 * keeps. Node 0 is the requester, which sends from PSN 100 on; its peer is the test.
 */
#include "sack_harness.h"

void ur_suite_silence(void);

#define TIMEOUT (4096ull << 14)

static uint64_t count(const struct th *h, enum ur_counter c)
{
	return h->n[0].c.v[c];
}

static void open_requester(struct th *h, uint8_t retries)
{
	struct th_opt o = th_default;

	o.selective = true;
	o.timeout = 14;
	o.retry_cnt = retries;
	th_open(h, &o);
}

/* The peer shows what it is, and that a round trip takes 10 us. */
static void meet(struct th *h)
{
	send_writes(h, 3);
	th_sleep(h, 10 * US);
	sack(h, FIRST, FIRST + 1, FIRST + 2);
	CU_ASSERT_EQUAL(th_drain(h, 0), 1);
	th_sleep(h, 10 * US);
	th_ack(h, 0, FIRST + 2, ACK);
	for (uint32_t i = 0; i < 3; i++)
		th_expect_wc(h->n[0].scq, FIRST + i, IBV_WC_SUCCESS);
	th_drain(h, 0);
}

static void expect_failed(struct th *h, uint32_t from, uint32_t to)
{
	th_expect_wc(h->n[0].scq, from, IBV_WC_RETRY_EXC_ERR);
	while (from++ < to)
		th_expect_wc(h->n[0].scq, from, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h->n[0].qp), IBV_QPS_ERR);
}

/* What goes out while time passes, in steps of 10 us. */
static unsigned sent_within(struct th *h, ur_time d)
{
	const ur_time end = h->now + d;
	unsigned n = 0;

	while (h->now < end) {
		th_sleep(h, ur_min_time(end - h->now, 10 * US));
		n += th_drain(h, 0);
	}
	return n;
}

/* Each time that it expires is a retry, but the oldest and the newest packet are all that goes out, and what was there before goes on. */
static void silence__is_no_storm(void)
{
	static struct th h;
	uint32_t window;
	unsigned sent;

	open_requester(&h, 7);
	meet(&h);
	send_writes(&h, 50);
	window = req(&h)->window.size;
	sent = sent_within(&h, UR_NS_PER_S);
	CU_ASSERT_EQUAL(count(&h, UR_C_ACK_TIMEOUT), 5);                 /* after 67, 201, 436, 671 and 906 ms */
	CU_ASSERT_TRUE(sent <= 64 + 8 + 5 * 2); /* at once; in a second; when it expires */
	CU_ASSERT_TRUE(sent >= 2 + 5 + 17);     /* the oldest, and copies of the newest */
	CU_ASSERT_TRUE(count(&h, UR_C_PROBE_HELD) > 0);
	CU_ASSERT_EQUAL(req(&h)->window.size, window);
	CU_ASSERT_EQUAL(req(&h)->retry_left, 2);
	th_ack(&h, 0, 110, ACK);
	CU_ASSERT_EQUAL(req(&h)->retry_left, 7);
	CU_ASSERT_EQUAL(req(&h)->wait, TIMEOUT);
	sack(&h, 120, 122, 152); /* two of them were lost */
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_ack(&h, 0, 152, ACK);
	th_expect_quiet(&h, 0);
	for (uint32_t i = 103; i < 153; i++)
		th_expect_wc(h.n[0].scq, i, IBV_WC_SUCCESS);
	th_close(&h);
}

/* When we wake, one probe is sent, not all that would have been due meanwhile. */
static void silence__of_ourselves(void)
{
	static struct th h;

	open_requester(&h, 7);
	meet(&h);
	send_writes(&h, 5);
	h.now += 50 * UR_NS_PER_MS; /* nobody looks at the clock */
	ur_wheel_advance(h.wheel, h.now);
	ur_wheel_advance(h.wheel, h.now + 3 * UR_WHEEL_TICK_NS);
	CU_ASSERT_EQUAL(count(&h, UR_C_PROBE), 1);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_sleep(&h, UR_NS_PER_MS);
	CU_ASSERT_TRUE(count(&h, UR_C_PROBE) > 1);
	th_close(&h);
}

/* All that was in flight got lost, as where the receiver's buffer is full: it goes again once, and without a NAK. */
static void silence__after_it_all_is_missing(void)
{
	static struct th h;

	open_requester(&h, 7);
	meet(&h);
	send_writes(&h, 50);
	sent_within(&h, 100 * UR_NS_PER_MS);
	sack(&h, 104, 152, 152); /* it has the two packets of a probe */
	CU_ASSERT_EQUAL(th_drain(&h, 0), 48);
	th_expect_quiet(&h, 0);
	CU_ASSERT_EQUAL(req(&h)->retry_left, 7);
	th_ack(&h, 0, 152, ACK);
	th_expect_quiet(&h, 0);
	th_close(&h);
}

/* To a peer of another make all is sent again each time, as far as the window still goes. */
static void silence__of_another_make(void)
{
	static struct th h;
	uint64_t probes;

	open_requester(&h, 7);
	send_writes(&h, 50);
	CU_ASSERT_EQUAL(sent_within(&h, TIMEOUT + 100 * US), 50 + 2 * count(&h, UR_C_PROBE));
	probes = count(&h, UR_C_PROBE);
	CU_ASSERT_EQUAL(probes, 2); /* after 20 ms and 40 */
	CU_ASSERT_EQUAL(sent_within(&h, 2 * TIMEOUT), 50 + 2 * (count(&h, UR_C_PROBE) - probes));
	CU_ASSERT_EQUAL(req(&h)->window.size, 64);
	th_close(&h);
}

/* It is as long as so many retries are with an ACK timer of 67 ms. */
static void silence__has_an_end(void)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		const ur_time end = (ur_time)(TH_TIMES_SILENT(retries) * TIMEOUT);
		static struct th h;

		open_requester(&h, retries);
		meet(&h);
		send_writes(&h, 5);
		sent_within(&h, end - 100 * US);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[0].qp), IBV_QPS_RTS);
		sent_within(&h, 300 * US);
		expect_failed(&h, 103, 107);
		CU_ASSERT_EQUAL(ur_wheel_next(h.wheel), UR_TIME_NEVER);
		th_close(&h);
	}
}

/* A NAK says that the peer is there: the next interval is as long as the program asked. */
static void silence__ends_with_a_nak(void)
{
	static struct th h;

	open_requester(&h, 7);
	send_writes(&h, 5);
	sent_within(&h, 4 * TIMEOUT);
	CU_ASSERT_EQUAL(req(&h)->wait, TIMEOUT * 7 / 2);
	th_ack(&h, 0, FIRST, SEQ_NAK);
	CU_ASSERT_EQUAL(req(&h)->wait, TIMEOUT);
	CU_ASSERT_EQUAL(req(&h)->deadline, h.now + TIMEOUT);
	CU_ASSERT_EQUAL(req(&h)->retry_left, 4);
	th_close(&h);
}

/* What a probe cannot send again ends its request then, not after all retries. */
static void probe__memory_has_gone(void)
{
	static struct th h;

	open_requester(&h, 7);
	meet(&h);
	send_writes(&h, 2);
	CU_ASSERT_EQUAL(ur_mr_dereg(h.n[0].mr), 0);
	h.n[0].mr = NULL;
	sent_within(&h, 2 * TIMEOUT);
	th_expect_wc(h.n[0].scq, FIRST + 3, IBV_WC_LOC_PROT_ERR);
	th_expect_wc(h.n[0].scq, FIRST + 4, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(count(&h, UR_C_ACK_TIMEOUT), 0);
	CU_ASSERT_EQUAL(count(&h, UR_C_PROBE), 1);
	th_close(&h);
}

/* A burst of losses ends when packets have been sent: the second and later probes have copies of the newest packet, or of the only one. */
static void probe__has_copies(void)
{
	static const struct {
		unsigned writes, sent[4];
	} cases[] = {{1, {1, 4, 16, 16}}, {2, {2, 5, 17, 17}}, {5, {2, 5, 17, 17}}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		static struct th h;
		struct th_pkt p;

		open_requester(&h, 7);
		meet(&h);
		send_writes(&h, cases[i].writes);
		for (unsigned k = 0; k < 4; k++) {
			const uint64_t probes = count(&h, UR_C_PROBE);
			unsigned n = 0;

			while (count(&h, UR_C_PROBE) == probes)
				th_sleep(&h, US);
			for (; th_pull(&h, 0, &p); n++)
				CU_ASSERT_EQUAL(p.p.bth.psn, cases[i].writes > 1 && !n ? req(&h)->una : req(&h)->max - 1);
			CU_ASSERT_EQUAL(n, cases[i].sent[k]);
		}
		th_ack(&h, 0, req(&h)->max - 1, ACK);
		send_writes(&h, 5); /* and begins anew */
		while (!req(&h)->probe.times)
			th_sleep(&h, US);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
		th_close(&h);
	}
}

/* To a peer other than uroce each probe is two packets, and its READs say nothing that it does not know. */
static void probe__has_none_for_others(void)
{
	static struct th h;
	struct th_pkt p;

	open_requester(&h, 7);
	req(&h)->rtt = (struct ur_rtt){.mean = 10 * US, .var = US, .least = 10 * US};
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	for (unsigned k = 0; k < 2; k++) {
		unsigned n = 0;

		while (count(&h, UR_C_PROBE) <= k)
			th_sleep(&h, US);
		for (; th_pull(&h, 0, &p); n++)
			CU_ASSERT_EQUAL(p.p.data[p.p.bth_off + UR_HELLO_AT] & UR_HELLO_MASK, 0);
		CU_ASSERT_EQUAL(n, 2);
	}
	th_close(&h);
}

/* The READ requests of one probe say the same, and those of the next something else. */
static void probe__says_which_it_is(void)
{
	static struct th h;
	struct th_pkt p;
	uint8_t last = 0;

	open_requester(&h, 7);
	meet(&h);
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 8, 0, IBV_SEND_SIGNALED), 0);
	th_drain(&h, 0);
	for (unsigned k = 0; k < 6; k++) {
		const uint64_t probes = count(&h, UR_C_PROBE);
		uint8_t turn = 0;

		while (count(&h, UR_C_PROBE) == probes)
			th_sleep(&h, US);
		for (unsigned n = 0; th_pull(&h, 0, &p); n++) {
			const uint8_t said = ur_turn_get(p.p.data + p.p.bth_off);

			CU_ASSERT(said && said != last && (!n || said == turn));
			turn = said;
		}
		last = turn;
	}
	th_close(&h);
}

/* The answer to a probe comes a little sooner than those that were measured, which had others before them. */
static void probe__finds_that_the_path_loses(void)
{
	static const struct ur_rtt rtt = {.mean = 100 * US, .var = US, .least = 100 * US};
	static const struct {
		ur_time after;
		bool lost;
	} cases[] = {{50 * US, false}, {95 * US, true}, {100 * US, true}, {128 * US, true}, {200 * US, false}};

	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		static struct th h;

		open_requester(&h, 7);
		req(&h)->rtt = rtt;
		send_writes(&h, 1);
		th_sleep(&h, 10 * UR_NS_PER_MS + 5 * US);
		CU_ASSERT_EQUAL(count(&h, UR_C_PROBE), 1);
		CU_ASSERT_EQUAL(th_drain(&h, 0), 1);
		th_sleep(&h, req(&h)->probe.sent_at + cases[i].after - h.now);
		th_ack(&h, 0, FIRST, ACK);
		CU_ASSERT_EQUAL(req(&h)->probe.loss_at != 0, cases[i].lost);
		th_close(&h);
	}
}

void ur_suite_silence(void)
{
	CU_pSuite s = CU_add_suite("silence", NULL, NULL);

	CU_ADD_TEST(s, silence__is_no_storm);
	CU_ADD_TEST(s, silence__of_ourselves);
	CU_ADD_TEST(s, silence__after_it_all_is_missing);
	CU_ADD_TEST(s, silence__of_another_make);
	CU_ADD_TEST(s, silence__has_an_end);
	CU_ADD_TEST(s, silence__ends_with_a_nak);
	CU_ADD_TEST(s, probe__memory_has_gone);
	CU_ADD_TEST(s, probe__has_copies);
	CU_ADD_TEST(s, probe__has_none_for_others);
	CU_ADD_TEST(s, probe__says_which_it_is);
	CU_ADD_TEST(s, probe__finds_that_the_path_loses);
}
