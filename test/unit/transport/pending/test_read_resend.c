/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/pending/read_resend.c: node 1 answers READs of a peer that is the test, and of another make. */
#include "tp_harness.h"
#include "transport/failure/qp_end.h"
#include "wire/sack.h"

void ur_suite_read_resend(void);

#define MS UR_NS_PER_MS
#define SILENCE (10 * MS)

static uint64_t reminders(const struct th *h)
{
	return h->n[1].c.v[UR_C_REMINDER];
}

static void read_from(struct th *h, uint32_t psn, uint32_t len)
{
	const struct th_hdr ext = th_reth(h, 1, 0, len);

	th_inject(h, 1, UR_OP_READ_REQ, psn, true, &ext, NULL, 0);
}

/* A READ of two responses from PSN 100 on, and its repetition. */
static void open_asked_again(struct th *h)
{
	th_open(h, &th_default);
	read_from(h, 100, 2000);
	CU_ASSERT_EQUAL(th_drain(h, 1), 2);
	read_from(h, 100, 2000);
	CU_ASSERT_EQUAL(th_drain(h, 1), 2);
}

static void expect_responses(struct th *h, uint32_t from, unsigned n)
{
	struct th_pkt p;

	for (unsigned i = 0; i < n; i++) {
		CU_ASSERT_TRUE_FATAL(th_pull(h, 1, &p));
		CU_ASSERT_EQUAL(p.p.bth.psn, from + i);
		CU_ASSERT_EQUAL(p.p.bth.opcode, i + 1 < n ? UR_OP_READ_RESP_FIRST : UR_OP_READ_RESP_LAST);
	}
	th_expect_quiet(h, 1);
}

/* What goes out within `d`. */
static unsigned sent_within(struct th *h, ur_time d)
{
	unsigned n = 0;

	for (ur_time end = h->now + d; h->now < end;) {
		th_sleep(h, ur_min_time(end - h->now, 10 * US));
		n += th_drain(h, 1);
	}
	return n;
}

static void remind__twice(void)
{
	static struct th h;

	open_asked_again(&h);
	/* The responses left after the timer was armed, so it is armed once more. */
	CU_ASSERT_EQUAL(sent_within(&h, 2 * SILENCE - 20 * US), 0);
	th_sleep(&h, 60 * US);
	expect_responses(&h, 100, 2);
	CU_ASSERT_EQUAL(sent_within(&h, 7 * SILENCE), 2);
	CU_ASSERT_EQUAL(sent_within(&h, 2000 * MS), 0);
	CU_ASSERT_EQUAL(reminders(&h), 2);
	th_close(&h);
}

static void remind__none_who_never_asked_again(void)
{
	static struct th h;

	th_open(&h, &th_default);
	read_from(&h, 100, 2000);
	read_from(&h, 102, 2000);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 4);
	CU_ASSERT_EQUAL(sent_within(&h, 100 * MS), 0);
	th_close(&h);
}

/* The next READ makes it wait anew, and is part of what is sent then: of a READ that was asked for in part, that part. */
static void remind__of_all_that_is_remembered(void)
{
	static struct th h;
	struct th_hdr ext;
	struct th_pkt p;

	open_asked_again(&h);
	ext = th_reth(&h, 1, 1024, 2000 - 1024);
	th_inject(&h, 1, UR_OP_READ_REQ, 101, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
	th_sleep(&h, SILENCE - 10 * US);
	read_from(&h, 102, 2000);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 2);
	CU_ASSERT_EQUAL(sent_within(&h, SILENCE + 10 * US), 0);
	th_sleep(&h, SILENCE + 20 * US);
	CU_ASSERT_TRUE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_READ_RESP_ONLY);
	expect_responses(&h, 102, 2);
	th_close(&h);
}

/* A peer that has spoken needs none: what has not left yet does not, and a new READ is answered at once. */
static void remind__gives_way(void)
{
	static struct th h;
	struct th_pkt p;

	open_asked_again(&h);
	CU_ASSERT_EQUAL(sent_within(&h, SILENCE + 20 * US), 0);
	th_sleep(&h, SILENCE);
	CU_ASSERT_TRUE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	read_from(&h, 102, 2000);
	expect_responses(&h, 102, 2);
	th_close(&h);
}

/* Also those that lie behind what is asked for. */
static void remind__gives_way_to_a_replay(void)
{
	static struct th h;
	struct th_pkt p;

	open_asked_again(&h);
	read_from(&h, 102, 2000);
	read_from(&h, 104, 2000);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 4);
	CU_ASSERT_EQUAL(sent_within(&h, SILENCE + 20 * US), 0);
	th_sleep(&h, SILENCE);
	CU_ASSERT_TRUE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	read_from(&h, 102, 2000);
	expect_responses(&h, 102, 2);
	th_close(&h);
}

/* What is said of other requests does not wait for what nobody has asked for. */
static void remind__after_acknowledgements(void)
{
	static struct th h;
	struct th_hdr ext;
	struct th_pkt p;

	open_asked_again(&h);
	CU_ASSERT_EQUAL(sent_within(&h, SILENCE + 20 * US), 0);
	th_sleep(&h, SILENCE);
	CU_ASSERT_TRUE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 100);
	ext = th_reth(&h, 1, 0, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 102, true, &ext, NULL, 0);
	th_expect_ack(&h, 1, 102, ACK);
	CU_ASSERT_TRUE(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 101);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

/* Nobody has asked, so nobody is refused; and what can be sent is sent: a READ of nothing. */
static void remind__of_memory_that_has_gone(void)
{
	static struct th h;
	struct th_pkt p;

	open_asked_again(&h);
	read_from(&h, 102, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
	CU_ASSERT_EQUAL(ur_mr_dereg(h.n[1].mr), 0);
	h.n[1].mr = NULL;
	CU_ASSERT_EQUAL(sent_within(&h, SILENCE - 20 * US), 0);
	th_sleep(&h, 60 * US);
	CU_ASSERT_TRUE_FATAL(th_pull(&h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, 102);
	CU_ASSERT_EQUAL(sent_within(&h, 7 * SILENCE), 1);
	CU_ASSERT_EQUAL(h.n[1].c.v[UR_C_REMOTE_ACCESS], 0);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
	th_close(&h);
}

/* The peer may read no longer, and has what it read while it might. */
static void remind__not_without_the_right_to_read(void)
{
	static struct th h;
	struct ibv_qp_attr a = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	open_asked_again(&h);
	CU_ASSERT_EQUAL(ur_qp_modify(h.n[1].qp, &a, IBV_QP_ACCESS_FLAGS, NULL, h.now), 0);
	CU_ASSERT_EQUAL(sent_within(&h, 7 * SILENCE), 0);
	CU_ASSERT_EQUAL(reminders(&h), 0);
	th_close(&h);
}

static void remind__bounded_in_bytes(void)
{
	static struct th h;
	struct th_opt o = th_default;
	const uint32_t most = 4, n = TH_MEM >> 10;

	o.max_rd = 8;
	th_open(&h, &o);
	for (uint32_t i = 0; i < 6; i++) {
		read_from(&h, 100 + i * n, TH_MEM);
		CU_ASSERT_EQUAL(th_drain(&h, 1), n);
	}
	read_from(&h, 100 + 5 * n, TH_MEM);
	CU_ASSERT_EQUAL(th_drain(&h, 1), n);
	CU_ASSERT_EQUAL(sent_within(&h, 3 * SILENCE), most * n);
	CU_ASSERT_EQUAL(reminders(&h), 1);
	th_close(&h);
}

/* READs from these PSNs on, of two responses each, which are answered. */
static void read_row(struct th *h, uint32_t from, uint32_t to)
{
	for (uint32_t psn = from; psn <= to; psn += 2) {
		read_from(h, psn, 2000);
		CU_ASSERT_EQUAL(th_drain(h, 1), 2);
	}
}

/* A peer that goes back to a response has those before it. Where its newest request for one was lost, only those behind that have come. */
static void remind__from_where_it_went_back_to(void)
{
	static struct th h;
	struct th_hdr ext;
	struct th_pkt p;
	struct th_opt o = th_default;

	o.max_rd = 16;
	th_open(&h, &o);
	read_row(&h, 100, 114);
	ext = th_reth(&h, 1, 1024, 2000 - 1024);
	th_inject(&h, 1, UR_OP_READ_REQ, 105, true, &ext, NULL, 0);
	CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
	read_row(&h, 106, 116); /* the last one is new */
	CU_ASSERT_EQUAL(sent_within(&h, SILENCE), 0);
	read_row(&h, 112, 116); /* 110 was lost */
	CU_ASSERT_EQUAL(sent_within(&h, 2 * SILENCE - 20 * US), 0);
	th_sleep(&h, 60 * US);
	for (uint32_t psn = 105; psn <= 117; psn++) {
		CU_ASSERT_TRUE_FATAL(th_pull(&h, 1, &p));
		CU_ASSERT_EQUAL(p.p.bth.psn, psn);
		CU_ASSERT_EQUAL(p.p.bth.opcode, psn == 105     ? UR_OP_READ_RESP_ONLY
						: psn % 2 == 0 ? UR_OP_READ_RESP_FIRST
							       : UR_OP_READ_RESP_LAST);
	}
	th_expect_quiet(&h, 1);
	read_row(&h, 112, 112);
	read_row(&h, 116, 118); /* the request between them was lost; 118 is new */
	read_row(&h, 116, 118);
	CU_ASSERT_EQUAL(sent_within(&h, 2 * SILENCE + 60 * US), 8); /* from 112 on */
	th_close(&h);
}

static void remind__no_longer_than_a_second(void)
{
	static struct th h;

	open_asked_again(&h);
	CU_ASSERT_EQUAL(sent_within(&h, 7 * SILENCE), 4);
	CU_ASSERT_EQUAL(sent_within(&h, 1000 * MS), 0);
	read_from(&h, 102, 2000); /* the first to find out */
	CU_ASSERT_EQUAL(th_drain(&h, 1), 2);
	CU_ASSERT_EQUAL(sent_within(&h, 100 * MS), 0);
	CU_ASSERT_EQUAL(reminders(&h), 2);
	th_close(&h);
}

/* A uroce host asks for what it lacks, and says that it is one. */
static void remind__no_host_that_says_hello(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_pkt p;

	o.selective = true;
	th_open(&h, &o);
	th_make(&h, 1, &p, UR_OP_WRITE_ONLY, 100, false, NULL, NULL, 0);
	ur_hello_put(p.p.data + p.p.bth_off);
	th_feed(&h, 1, &p);
	read_from(&h, 101, 2000);
	th_drain(&h, 1);
	read_from(&h, 101, 2000);
	th_drain(&h, 1);
	CU_ASSERT_EQUAL(sent_within(&h, 100 * MS), 0);
	th_close(&h);
}

static void remind__ends_with_the_connection(void)
{
	static struct th h;

	open_asked_again(&h);
	ur_qp_to_err(h.n[1].qp);
	CU_ASSERT_EQUAL(sent_within(&h, 100 * MS), 0);
	CU_ASSERT_EQUAL(reminders(&h), 0);
	th_close(&h);
}

void ur_suite_read_resend(void)
{
	CU_pSuite s = CU_add_suite("read_resend", NULL, NULL);

	CU_ADD_TEST(s, remind__twice);
	CU_ADD_TEST(s, remind__none_who_never_asked_again);
	CU_ADD_TEST(s, remind__of_all_that_is_remembered);
	CU_ADD_TEST(s, remind__gives_way);
	CU_ADD_TEST(s, remind__gives_way_to_a_replay);
	CU_ADD_TEST(s, remind__after_acknowledgements);
	CU_ADD_TEST(s, remind__of_memory_that_has_gone);
	CU_ADD_TEST(s, remind__not_without_the_right_to_read);
	CU_ADD_TEST(s, remind__bounded_in_bytes);
	CU_ADD_TEST(s, remind__from_where_it_went_back_to);
	CU_ADD_TEST(s, remind__no_longer_than_a_second);
	CU_ADD_TEST(s, remind__no_host_that_says_hello);
	CU_ADD_TEST(s, remind__ends_with_the_connection);
}
