/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets ask for an acknowledgement: those that somebody waits for. What is sent last is acknowledged, whatever comes next. */
#include <CUnit/CUnit.h>

#include "tp_harness.h"
#include "transport/control/window.h"
#include "transport/state/qp_priv.h"

void ur_suite_ackreq(void);

/* Packets to come, a letter each: 'A' asks, '.' does not, '?' is a READ request. At most 64. */
static const char *pattern(struct th *h)
{
	static char text[65];
	struct th_pkt p;
	unsigned n = 0;

	while (n < 64 && th_pull(h, 0, &p))
		text[n++] = p.p.bth.opcode == UR_OP_READ_REQ ? '?' : p.p.bth.ackreq ? 'A' : '.';
	text[n] = 0;
	return text;
}

static void post_many(struct th *h, unsigned n, unsigned signalled)
{
	for (unsigned i = 0; i < n; i++)
		th_post(h, 0, IBV_WR_RDMA_WRITE, i, 0, 8, 0, i == signalled ? IBV_SEND_SIGNALED : 0);
}

static void asks__signalled_and_last(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_many(&h, 5, 1);
	CU_ASSERT_STRING_EQUAL(pattern(&h), ".A..A");
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 5, 0, 3000, 0, 0); /* of its packets, the last */
	CU_ASSERT_STRING_EQUAL(pattern(&h), "..A");
	th_close(&h);
}

static void asks__before_the_window_closes(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.window = 16;
	th_open(&h, &o);
	post_many(&h, 30, 30);
	CU_ASSERT_STRING_EQUAL(pattern(&h), "...A...A...A...A");
	th_close(&h);
}

/* A queue whose places all come back with one acknowledgement would stand still until then. */
static void asks__four_times_a_queue(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.wr = 32;
	o.window = 1024;
	th_open(&h, &o);
	post_many(&h, 32, 32);
	CU_ASSERT_STRING_EQUAL(pattern(&h), ".......A.......A.......A.......A");
	th_close(&h);
}

/* The next request sends nothing for now. */
static void asks__when_the_next_one_waits(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.max_rd = 1;
	for (unsigned fence = 0; fence < 2; fence++) {
		th_open(&h, &o);
		th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, 8, 0, IBV_SEND_SIGNALED);
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0);
		if (fence)
			th_post(&h, 0, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, IBV_SEND_FENCE);
		else
			th_post(&h, 0, IBV_WR_RDMA_READ, 3, 0, 8, 0, IBV_SEND_SIGNALED);
		CU_ASSERT_STRING_EQUAL(pattern(&h), "?A");
		th_close(&h);
	}
}

/* Nor does a READ whose first piece is longer than what is left of a window in slow start: nothing else would be acknowledged before it. */
static void asks__when_a_read_finds_no_room(void)
{
	static struct th h;

	for (uint32_t packets = 15; packets <= 16; packets++) {
		struct ur_requester *r;

		th_open(&h, &th_default);
		r = &h.n[0].qp->req;
		ur_window_begin_small(&r->window, 16, r->una);
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0);
		th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, packets * 1024, 0, IBV_SEND_SIGNALED);
		CU_ASSERT_STRING_EQUAL(pattern(&h), packets == 15 ? ".?" : "A");
		th_ack(&h, 0, 100, ACK);
		CU_ASSERT_STRING_EQUAL(pattern(&h), packets == 15 ? "" : "?");
		th_close(&h);
	}
}

/* The next request fails, and may say so when those before it are complete; without an ACK timer nothing else would ask. */
static void asks_again__before_one_that_fails(void)
{
	static struct th h;
	struct th_opt o = th_default;
	struct ibv_sge s;

	for (unsigned timeout = 0; timeout < 2; timeout++) {
		o.timeout = timeout ? 14 : 0;
		th_open(&h, &o);
		s = (struct ibv_sge){(uintptr_t)h.n[0].mem, 8, h.n[0].mr->lkey + 1}; /* no such key */
		th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0);
		th_post_sge(&h, 0, IBV_WR_RDMA_WRITE, 2, &s, 1, 0, 0, IBV_SEND_SIGNALED);
		CU_ASSERT_STRING_EQUAL(pattern(&h), ".A"); /* the same packet twice */
		th_ack(&h, 0, 100, ACK);
		th_expect_wc(h.n[0].scq, 2, IBV_WC_LOC_PROT_ERR);
		th_close(&h);
	}
}

static void modify_state(struct th *h, enum ibv_qp_state st, int mask)
{
	struct ibv_qp_attr a = {.qp_state = st, .en_sqd_async_notify = 1};

	CU_ASSERT_EQUAL(ur_qp_modify(h->n[0].qp, &a, IBV_QP_STATE | mask, NULL, h->now), 0);
}

/* `before` packets leave, then the QP drains: the rest of what was begun, and nothing after it, and all of it is acknowledged. */
static void drain(uint32_t len, unsigned before, const char *rest)
{
	static struct th h;
	struct th_opt o = th_default;
	struct th_pkt p;

	o.timeout = 0;
	th_open(&h, &o);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 1, 0, len, 0, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0);
	for (unsigned i = 0; i < before; i++)
		CU_ASSERT_TRUE_FATAL(th_pull(&h, 0, &p));
	modify_state(&h, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	CU_ASSERT_STRING_EQUAL(pattern(&h), rest);
	th_ack(&h, 0, 100 + (len - 1) / 1024, ACK);
	CU_ASSERT_EQUAL(h.n[0].nevents, 1);
	CU_ASSERT_EQUAL(h.n[0].event[0], IBV_EVENT_SQ_DRAINED);
	th_close(&h);
}

static void asks_again__to_drain(void)
{
	drain(8, 1, "A");     /* it had left without asking */
	drain(3000, 1, ".A"); /* it was in the middle of its message */
	drain(3000, 3, "A");
}

static void asks_not__when_all_is_answered(void)
{
	static struct th h;

	th_open(&h, &th_default);
	post_many(&h, 2, 1);
	CU_ASSERT_STRING_EQUAL(pattern(&h), ".A");
	modify_state(&h, IBV_QPS_SQD, 0);
	CU_ASSERT_STRING_EQUAL(pattern(&h), "");
	th_close(&h);
}

/* A request that was sent again, because nothing had asked, is answered with all that has been executed, even if an ACK of less waits. */
static void answer__of_a_duplicate(void)
{
	static struct th h;

	th_open(&h, &th_default);
	th_recv(&h, 0, 1, 0, 64);
	th_recv(&h, 0, 2, 0, 64);
	th_inject(&h, 0, UR_OP_SEND_ONLY, 200, true, NULL, "abcd", 4);
	th_inject(&h, 0, UR_OP_SEND_ONLY, 201, false, NULL, "abcd", 4);
	th_inject(&h, 0, UR_OP_SEND_ONLY, 201, true, NULL, "abcd", 4);
	th_expect_ack(&h, 0, 201, ACK);
	th_expect_ack(&h, 0, 201, ACK); /* the peer sees that it was too soon */
	th_expect_quiet(&h, 0);
	for (unsigned i = 0; i < 100; i++)
		th_inject(&h, 0, UR_OP_SEND_ONLY, 201, true, NULL, "abcd", 4);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 5); /* no more than that, however often it came */
	th_close(&h);
}

void ur_suite_ackreq(void)
{
	CU_pSuite s = CU_add_suite("ackreq", NULL, NULL);

	CU_ADD_TEST(s, asks__signalled_and_last);
	CU_ADD_TEST(s, asks__before_the_window_closes);
	CU_ADD_TEST(s, asks__four_times_a_queue);
	CU_ADD_TEST(s, asks__when_the_next_one_waits);
	CU_ADD_TEST(s, asks__when_a_read_finds_no_room);
	CU_ADD_TEST(s, asks_again__before_one_that_fails);
	CU_ADD_TEST(s, asks_again__to_drain);
	CU_ADD_TEST(s, asks_not__when_all_is_answered);
	CU_ADD_TEST(s, answer__of_a_duplicate);
}
