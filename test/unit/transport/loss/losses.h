/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that get lost, named by PSN. */
#ifndef LOSSES_H
#define LOSSES_H

#include "tp_harness.h"

struct loss { /* the first `times` packets that a node sends with this PSN */
	unsigned from;
	uint32_t psn;
	unsigned times;
};

static inline uint64_t count(const struct th *h, unsigned node, enum ur_counter c)
{
	return h->n[node].c.v[c];
}

static inline bool lose_psn(struct th *h, unsigned from, const struct ur_pkt *p)
{
	for (struct loss *l = h->arg; l->times != UINT32_MAX; l++)
		if (l->times && l->from == from && l->psn == p->bth.psn) {
			l->times--;
			return true;
		}
	return false;
}

/* Open, after one request that gave node 0 a round trip to go by, on a path that loses packets: PSN 100 is used up. */
static inline void open_warm(struct th *h, const struct th_opt *o, struct loss *losses)
{
	th_open(h, o);
	th_post(h, 0, IBV_WR_RDMA_WRITE, 0, 0, 8, 0, IBV_SEND_SIGNALED);
	th_pump(h);
	th_expect_wc(h->n[0].scq, 0, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(h->n[0].qp->req.rtt.mean > 0);
	h->n[0].qp->req.probe.loss_at = h->now;
	h->lose = lose_psn;
	h->arg = losses;
}

#define END_OF_LOSSES                                                                                                                      \
	{                                                                                                                                  \
		0, 0, UINT32_MAX                                                                                                           \
	}

#endif
