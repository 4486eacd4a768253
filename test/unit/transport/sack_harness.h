/* SPDX-License-Identifier: BSD-3-Clause */
/* Node 0 is a requester, and its peer, which sends SACKs, is the test. */
#ifndef UR_TEST_SACK_HARNESS_H
#define UR_TEST_SACK_HARNESS_H

#include "tp_harness.h"
#include "wire/sack.h"

static inline struct ur_requester *req(struct th *h)
{
	return &h->n[0].qp->req;
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
