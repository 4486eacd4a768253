/* SPDX-License-Identifier: BSD-3-Clause */
/* Node 1 is a responder that keeps packets; its peer is the test. The path MTU is 256. */
#ifndef REORDER_HARNESS_H
#define REORDER_HARNESS_H

#include "tp_harness.h"
#include "transport/pending/reorder.h"
#include "wire/sack.h"

#define MTU 256

static struct th fixture;
static uint8_t data[64 * 1024];

static inline void open_kept(struct th *h, uint32_t psn, size_t bytes)
{
	struct th_opt o = th_default;

	o.mtu = IBV_MTU_256;
	o.selective = true;
	o.reorder_bytes = bytes;
	o.psn[0] = psn;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	th_open(h, &o);
	h->n[1].qp->resp.shown = UR_REORDER_SPAN; /* as of a peer that had so much in flight before */
}

static inline uint64_t count(const struct th *h, enum ur_counter c)
{
	return h->n[1].c.v[c];
}

/* A WRITE of 64 bytes, which differ with the place. */
static inline void write_one_at(struct th *h, uint32_t first, unsigned i, unsigned place, bool hello)
{
	const struct th_hdr x = th_reth(h, 1, place * 64, 64);
	struct th_pkt p;

	th_make(h, 1, &p, UR_OP_WRITE_ONLY, ur_psn_add(first, i), false, &x, data + place * 64, 64);
	if (hello)
		ur_hello_put(p.p.data + p.p.bth_off);
	th_feed(h, 1, &p);
}

/* To a place of its own. */
static inline void write_one(struct th *h, uint32_t first, unsigned i, bool hello)
{
	write_one_at(h, first, i, i, hello);
}

static inline bool written(const struct th *h, unsigned i)
{
	return memcmp(h->n[1].mem + i * 64, data + i * 64, 64) == 0;
}

/* The next packet is a SACK. */
static inline void expect_sack(struct th *h, struct ur_sack *s, uint32_t acked)
{
	struct th_pkt p;

	memset(s, 0, sizeof(*s));
	CU_ASSERT_FATAL(th_pull(h, 1, &p));
	CU_ASSERT_EQUAL(p.p.bth.opcode, UR_OP_SACK);
	CU_ASSERT_EQUAL(p.p.bth.psn, acked & UR_PSN_MASK);
	CU_ASSERT_TRUE_FATAL(ur_sack_get(&p.p, s));
}

#endif
