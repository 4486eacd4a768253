/* SPDX-License-Identifier: BSD-3-Clause */
/* Node 0 is a requester that begins with PSN 100, and its peer, which sends SACKs, is the test. */
#ifndef UR_TEST_SACK_HARNESS_H
#define UR_TEST_SACK_HARNESS_H

#include "tp_harness.h"
#include "wire/sack.h"

#define FIRST 100

static inline struct ur_requester *req(struct th *h)
{
	return &h->n[0].qp->req;
}

/* `n` WRITEs of one packet each, with their PSN as number where all that was posted before has been sent. */
static inline void post_writes(struct th *h, unsigned n)
{
	const uint32_t from = req(h)->max;

	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL(th_post(h, 0, IBV_WR_RDMA_WRITE, from + i, 0, 8, 0, IBV_SEND_SIGNALED), 0);
}

static inline void send_writes(struct th *h, unsigned n)
{
	post_writes(h, n);
	CU_ASSERT_EQUAL(th_drain(h, 0), n);
}

/* A SACK that reports, beyond `expected`, the PSNs from `from` to `to`, and no others. */
static inline void sack(struct th *h, uint32_t expected, uint32_t from, uint32_t to)
{
	static const uint8_t none[UR_SACK_BITS / 8];
	const struct th_hdr x = {.syndrome = ACK};
	struct ur_sack s = {.expected = expected, .base = expected, .n = 256};
	struct th_pkt p;

	for (uint32_t psn = from; psn <= to; psn++)
		ur_sack_set(&s, psn - s.base);
	th_make(h, 0, &p, UR_OP_SACK, expected - 1, false, &x, none, ur_sack_len(&s));
	ur_sack_put(p.p.data + p.p.payload_off - UR_SACKETH_LEN, &s);
	th_feed(h, 0, &p);
}

#endif
