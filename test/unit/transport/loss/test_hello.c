/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a requester says that it understands SACKs: doc/wire-extensions.md. Node 0 is the requester, its peer is the test. */
#include "sack_harness.h"

void ur_suite_hello(void);

static void open_requester(struct th *h)
{
	struct th_opt o = th_default;

	o.selective = true;
	th_open(h, &o);
}

static bool says_hello(struct th *h, uint32_t psn)
{
	struct th_pkt p;

	CU_ASSERT_TRUE_FATAL(th_pull(h, 0, &p));
	CU_ASSERT_EQUAL(p.p.bth.psn, psn);
	return ur_hello_is(p.p.data + p.p.bth_off);
}

static void hello__in_the_first_packets_alone(void)
{
	static struct th h;

	open_requester(&h);
	for (uint32_t i = 0; i < 70; i++) {
		post_writes(&h, 1);
		CU_ASSERT_EQUAL(says_hello(&h, FIRST + i), i < 64);
		th_ack(&h, 0, FIRST + i, ACK);
		th_expect_wc(h.n[0].scq, FIRST + i, IBV_WC_SUCCESS);
	}
	th_close(&h);
}

static void hello__never_in_a_repeat(void)
{
	static struct th h;

	open_requester(&h);
	send_writes(&h, 3);
	th_ack(&h, 0, 101, SEQ_NAK);
	CU_ASSERT_FALSE(says_hello(&h, 101));
	CU_ASSERT_FALSE(says_hello(&h, 102));
	post_writes(&h, 1);
	CU_ASSERT_TRUE(says_hello(&h, 103));
	th_close(&h);
}

/* All that said so may have been lost. */
static void hello__again_after_a_loss(void)
{
	static struct th h;
	struct ibv_wc wc[64];

	open_requester(&h);
	send_writes(&h, 60);
	th_ack(&h, 0, FIRST, SEQ_NAK);
	for (uint32_t i = 0; i < 60; i++)
		CU_ASSERT_FALSE(says_hello(&h, FIRST + i));
	th_ack(&h, 0, FIRST + 59, ACK);
	CU_ASSERT_EQUAL(ur_cq_poll(h.n[0].scq, 64, wc), 60);
	for (uint32_t i = 60; i < 520; i++) {
		post_writes(&h, 1);
		CU_ASSERT_EQUAL(says_hello(&h, FIRST + i), i < 512);
		th_ack(&h, 0, FIRST + i, ACK);
		CU_ASSERT_EQUAL(ur_cq_poll(h.n[0].scq, 64, wc), 1);
	}
	send_writes(&h, 1);
	th_ack(&h, 0, FIRST + 520, SEQ_NAK);
	th_drain(&h, 0);
	post_writes(&h, 1);
	CU_ASSERT_FALSE(says_hello(&h, FIRST + 521));
	th_close(&h);
}

static void hello__by_setting(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_writes(&h, 1);
	CU_ASSERT_FALSE(says_hello(&h, FIRST));
	th_close(&h);
}

/* Loses the second response of a READ once, and counts the responses that say hello. */
static unsigned hellos, responses;

static bool lose_response(struct th *h, unsigned from, const struct ur_pkt *p)
{
	(void)h;
	if (from != 1 || !(ur_opcode(p->bth.opcode)->flags & UR_OPF_PAYLOAD))
		return false;
	hellos += ur_hello_is(p->data + p->bth_off);
	return p->bth.psn == FIRST + 1 && responses++ == 0;
}

/* A peer that is only asked for READs misses nothing, and so sends no SACK. It says hello with what it sends again, if it has heard one. */
static void hello__in_a_repeated_response(void)
{
	for (unsigned selective = 0; selective < 2; selective++) {
		static struct th h;
		struct th_opt o = th_default;

		o.selective = selective;
		th_open(&h, &o);
		hellos = responses = 0;
		h.lose = lose_response;
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 8 * 1024, 0, IBV_SEND_SIGNALED), 0);
		th_run(&h, UR_NS_PER_S);
		th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(h.n[0].mem, h.n[1].mem, 8 * 1024), 0);
		CU_ASSERT_TRUE(responses >= 2); /* there may be reminders */
		CU_ASSERT_EQUAL(hellos, selective);
		CU_ASSERT_EQUAL(req(&h)->scoreboard.sacks, selective == 1);
		CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_SACK_RCVD], 0);
		th_close(&h);
	}
}

/* Who says no hello believes none, whatever a peer sends. */
static void hello__of_a_peer_that_heard_none(void)
{
	for (unsigned selective = 0; selective < 2; selective++) {
		const struct th_hdr aeth = {.syndrome = ACK};
		struct th_opt o = th_default;
		static struct th h;
		struct th_pkt p;

		o.selective = selective;
		th_open(&h, &o);
		CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 2 * 1024, 0, IBV_SEND_SIGNALED), 0);
		th_drain(&h, 0);
		th_make(&h, 0, &p, UR_OP_READ_RESP_LAST, FIRST + 1, false, &aeth, h.n[1].mem + 1024, 1024);
		ur_hello_put(p.p.data + p.p.bth_off);
		th_feed(&h, 0, &p);
		CU_ASSERT_EQUAL(req(&h)->scoreboard.sacks, selective == 1);
		th_close(&h);
	}
}

void ur_suite_hello(void)
{
	CU_pSuite s = CU_add_suite("hello", NULL, NULL);

	CU_ADD_TEST(s, hello__in_the_first_packets_alone);
	CU_ADD_TEST(s, hello__never_in_a_repeat);
	CU_ADD_TEST(s, hello__again_after_a_loss);
	CU_ADD_TEST(s, hello__by_setting);
	CU_ADD_TEST(s, hello__in_a_repeated_response);
	CU_ADD_TEST(s, hello__of_a_peer_that_heard_none);
}
