/* SPDX-License-Identifier: BSD-3-Clause */
/* What is different for a peer that is known to go back. Node 0 is the requester, its peer is the test. */
#include "sack_harness.h"
#include "transport/loss/rewind.h"
#include "transport/loss/tail_probe.h"

void ur_suite_goback(void);

#define KNOWN 512 /* PSNs that could say hello */
#define RTT (20 * UR_NS_PER_US)

/* `n` WRITEs have been acknowledged, a round trip after each. Returns the next PSN. */
static uint32_t open_with(struct th *h, struct th_opt o, uint32_t n)
{
	struct ibv_wc wc;

	o.selective = true;
	th_open(h, &o);
	for (uint32_t i = 0; i < n; i++) {
		send_writes(h, 1);
		th_sleep(h, RTT);
		th_ack(h, 0, FIRST + i, ACK);
		CU_ASSERT_EQUAL(ur_cq_poll(h->n[0].scq, 1, &wc), 1);
	}
	return FIRST + n;
}

static uint32_t open_after(struct th *h, uint32_t n)
{
	return open_with(h, th_default, n);
}

/* After a NAK the window is tight if the peer has acknowledged all that could say hello, and has said nothing of that kind. */
static void known__by_what_it_does_not_say(void)
{
	static const struct {
		uint32_t acknowledged;
		bool hello, tight;
	} t[] = {{KNOWN, false, true}, {KNOWN - 1, false, false}, {KNOWN, true, false}};
	static struct th h;

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		const uint32_t psn = open_after(&h, t[i].acknowledged);

		h.n[0].qp->resp.peer_sacks = t[i].hello;
		send_writes(&h, 20);
		th_ack(&h, 0, psn, SEQ_NAK);
		CU_ASSERT_EQUAL(h.n[0].qp->req.window.tight, t[i].tight);
		CU_ASSERT_EQUAL(h.n[0].qp->req.probe.eager, t[i].tight);
		CU_ASSERT_EQUAL(th_drain(&h, 0), t[i].tight ? 16 : 20);
		th_close(&h);
	}
}

/* Its NAK, or what was sent again, has been lost: all is sent again after one and a half round trips, which costs no retry; then probes. */
static void overdue__sends_all_again_once(void)
{
	static struct th h;
	const uint32_t psn = open_after(&h, KNOWN);
	const struct ur_requester *r = &h.n[0].qp->req;
	uint8_t left;

	send_writes(&h, 8);
	th_ack(&h, 0, psn, SEQ_NAK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 8);
	left = r->retry_left;
	th_sleep(&h, RTT);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_sleep(&h, RTT);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 8);
	CU_ASSERT_EQUAL(r->retry_left, left);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_PROBE], 1);
	th_sleep(&h, 4 * RTT);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2); /* the oldest and the newest */
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_PROBE], 2);
	CU_ASSERT_EQUAL(h.n[0].c.v[UR_C_ACK_TIMEOUT], 0);
	th_close(&h);
}

/* Whom nobody knows gets probes alone. */
static void overdue__probes_others(void)
{
	static struct th h;
	const uint32_t psn = open_after(&h, 20);

	send_writes(&h, 8);
	th_ack(&h, 0, psn, SEQ_NAK);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 8);
	th_sleep(&h, 4 * RTT);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
	th_close(&h);
}

/* A repetition is timed after a NAK, but not where a probe has sent it before: an answer to that would be too short a round trip. */
static void timed__what_was_sent_once_since(void)
{
	for (unsigned probed = 0; probed < 2; probed++) {
		static struct th h;
		const uint32_t psn = open_after(&h, 20);
		struct ur_requester *r = &h.n[0].qp->req;

		send_writes(&h, 8);
		th_ack(&h, 0, psn, SEQ_NAK);
		th_drain(&h, 0);
		if (probed) {
			th_sleep(&h, 4 * RTT);
			CU_ASSERT_EQUAL(th_drain(&h, 0), 2);
			th_ack(&h, 0, psn, ACK); /* the next oldest is sent as well */
			th_ack(&h, 0, psn + 1, SEQ_NAK);
			th_drain(&h, 0);
		}
		CU_ASSERT_EQUAL(r->rtt.at != 0, !probed);
		th_sleep(&h, 2 * UR_NS_PER_US);
		th_ack(&h, 0, psn + 7, ACK);
		CU_ASSERT_EQUAL(r->rtt.least, probed ? RTT : 2 * UR_NS_PER_US);
		th_close(&h);
	}
}

/* The answers to a piece of a READ, slowly. */
static void answer_piece(struct th *h, const struct th_pkt *request)
{
	const struct th_hdr x = {.syndrome = ACK};
	static const uint8_t data[256];
	struct ur_reth reth;
	uint32_t n;

	ur_reth_get(request->p.data + request->p.bth_off + UR_BTH_LEN, &reth);
	n = reth.len / sizeof(data);
	for (uint32_t k = 0; k < n; k++) {
		const uint8_t opcode = k + 1 == n ? UR_OP_READ_RESP_LAST : k ? UR_OP_READ_RESP_MIDDLE : UR_OP_READ_RESP_FIRST;

		th_sleep(h, RTT);
		th_inject(h, 0, opcode, request->p.bth.psn + k, false, &x, data, sizeof(data));
	}
}

/* A READ goes on when the path has become so slow that its window does not hold a piece any more. */
static void read__in_pieces_that_the_window_held(void)
{
	enum { PACKETS = 2048 };
	struct th_opt o = th_default;
	struct ur_requester *r;
	static struct th h;
	struct th_pkt p;
	uint32_t psn, most = 0;

	o.mtu = IBV_MTU_256;
	o.timeout = 14;
	psn = open_with(&h, o, KNOWN);
	r = &h.n[0].qp->req;
	send_writes(&h, 8);
	th_ack(&h, 0, psn, SEQ_NAK);
	th_drain(&h, 0);
	for (psn += 8; psn < FIRST + KNOWN + 100; psn += 16) {
		th_sleep(&h, RTT);
		th_ack(&h, 0, psn - 1, ACK);
		send_writes(&h, 16);
	}
	th_sleep(&h, RTT);
	th_ack(&h, 0, psn - 1, ACK);
	while (ur_cq_poll(h.n[0].scq, 1, &(struct ibv_wc){0}))
		;
	CU_ASSERT_EQUAL(th_post(&h, 0, IBV_WR_RDMA_READ, 1, 0, PACKETS * 256, 0, IBV_SEND_SIGNALED), 0);
	while (th_pull(&h, 0, &p)) {
		most = ur_psn_later(most, p.p.bth.psn);
		answer_piece(&h, &p);
	}
	CU_ASSERT_EQUAL(r->una, ur_psn_add(psn, PACKETS));
	CU_ASSERT(r->window.size < 128 && most == ur_psn_add(psn, PACKETS - 128));
	th_expect_wc(h.n[0].scq, 1, IBV_WC_SUCCESS);
	th_close(&h);
}

/* All that a probe was about is there, and more than what has been sent since it began anew: there is nothing to ask for. */
static void answered__beyond_what_is_sent_again(void)
{
	static struct th h;
	const uint32_t psn = open_after(&h, 8);
	struct ur_requester *r = &h.n[0].qp->req;
	const ur_time at = h.now;

	send_writes(&h, 4);
	r->probe.times = 1;
	r->probe.sent = true;
	r->probe.since = r->probe.sent_at = at;
	ur_req_rewind(h.n[0].qp);
	CU_ASSERT_EQUAL(r->next, r->una);
	th_sleep(&h, RTT);
	th_ack(&h, 0, psn + 3, ACK);
	CU_ASSERT_EQUAL(r->una, psn + 4);
	CU_ASSERT_EQUAL(r->next, psn + 4);
	CU_ASSERT_EQUAL(r->probe.sent_at, at);
	CU_ASSERT_EQUAL(th_drain(&h, 0), 0);
	th_close(&h);
}

void ur_suite_goback(void)
{
	CU_pSuite s = CU_add_suite("goback", NULL, NULL);

	CU_ADD_TEST(s, known__by_what_it_does_not_say);
	CU_ADD_TEST(s, overdue__sends_all_again_once);
	CU_ADD_TEST(s, overdue__probes_others);
	CU_ADD_TEST(s, timed__what_was_sent_once_since);
	CU_ADD_TEST(s, answered__beyond_what_is_sent_again);
	CU_ADD_TEST(s, read__in_pieces_that_the_window_held);
}
