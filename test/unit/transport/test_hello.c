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

void ur_suite_hello(void)
{
	CU_pSuite s = CU_add_suite("hello", NULL, NULL);

	CU_ADD_TEST(s, hello__in_the_first_packets_alone);
	CU_ADD_TEST(s, hello__never_in_a_repeat);
	CU_ADD_TEST(s, hello__again_after_a_loss);
	CU_ADD_TEST(s, hello__by_setting);
}
