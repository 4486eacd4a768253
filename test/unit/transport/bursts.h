/* SPDX-License-Identifier: BSD-3-Clause */
/* What one call of ur_tp_tx gives, cut into packets; a second QP, and memory with a hole, for tests of lib/transport/packet/txbuf.c. */
#ifndef UR_TEST_BURSTS_H
#define UR_TEST_BURSTS_H

#include <sys/mman.h>

#include "engine/catch.h"
#include "tp_harness.h"

#define MTU 1024u
#define MOST 512 /* packets of one burst here */

struct built {
	unsigned entry; /* of the array that was given */
	uint8_t opcode, tos;
	bool ackreq;
	uint32_t psn, len, dqpn;
};

struct burst {
	unsigned entries, trains, n;
	unsigned count[MOST]; /* packets of each entry */
	struct built p[MOST];
};

/* At most n packets, and with `fill` as many more as the last train has room for. */
static inline struct burst take_more(struct th *h, unsigned node, unsigned n, bool fill)
{
	static struct ur_pkt *pkts[MOST];
	struct burst b = {.entries = ur_tp_tx(h->n[node].tp, pkts, n, h->now)};
	const unsigned more = fill ? ur_tp_fill(h->n[node].tp) : 0;

	for (unsigned i = 0; i < b.entries; i++) {
		struct ur_train_cursor at = {0};
		struct th_pkt one;

		b.count[i] = ur_train_count(pkts[i]);
		b.trains += pkts[i]->stride > 0;
		CU_ASSERT_TRUE(!pkts[i]->stride || (pkts[i]->flags & UR_PKT_COMPLETE && b.count[i] > 1));
		CU_ASSERT_TRUE(!pkts[i]->stride || pkts[i]->len - pkts[i]->bth_off <= h->n[node].tp->train_bytes);
		while (th_wire(pkts[i], &at, &one)) {
			CU_ASSERT_FATAL(b.n < MOST);
			b.p[b.n++] = (struct built){.entry = i,
						    .opcode = one.p.bth.opcode,
						    .tos = one.p.tos,
						    .ackreq = one.p.bth.ackreq,
						    .psn = one.p.bth.psn,
						    .len = one.p.payload_len,
						    .dqpn = one.p.bth.dqpn};
		}
	}
	CU_ASSERT_TRUE(b.n <= n + more);
	th_free(h, node, pkts, b.entries);
	return b;
}

static inline struct burst take(struct th *h, unsigned node, unsigned n)
{
	return take_more(h, node, n, false);
}

static inline void open(struct th *h, unsigned train, uint32_t bytes)
{
	struct th_opt o = th_default;

	o.train = train;
	o.train_bytes = bytes;
	o.window = 1024;
	th_open(h, &o);
}

static inline void expect_counts(const struct burst *b, const unsigned *count, unsigned n)
{
	CU_ASSERT_EQUAL_FATAL(b->entries, n);
	for (unsigned i = 0; i < n; i++)
		CU_ASSERT_EQUAL(b->count[i], count[i]);
}

#define TO_RTR                                                                                                                             \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT)

/* A second QP of node 0 whose path has another source port, or is the same. */
static inline struct ur_qp *second_qp(struct th *h, struct ur_path *path, unsigned sport_more)
{
	struct th_node *n = &h->n[0];
	struct ur_qp_init init = {
		.type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}, .pd = n->pd, .send_cq = n->scq, .recv_cq = n->rcq, .context = n};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = 0x20777, .sq_psn = 500};
	struct ur_qp *qp;

	init.event = n->qp->event;
	a.timeout = 8;
	*path = n->path;
	ur_put16(path->hdr + path->hdr_len - UR_UDP_LEN, (uint16_t)(0xc123 + sport_more));
	CU_ASSERT_EQUAL_FATAL(ur_qp_create(n->tp, &init, &qp), 0);
	CU_ASSERT_EQUAL_FATAL(ur_qp_modify(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, NULL, h->now), 0);
	a.qp_state = IBV_QPS_RTR;
	CU_ASSERT_EQUAL_FATAL(ur_qp_modify(qp, &a, TO_RTR, path, h->now), 0);
	a.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL_FATAL(ur_qp_modify(qp, &a, TO_RTS, NULL, h->now), 0);
	return qp;
}

static inline void send_on(struct th *h, struct ur_qp *qp, uint32_t len)
{
	struct ibv_sge s = {(uintptr_t)h->n[0].mem, len, h->n[0].mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	CU_ASSERT_EQUAL(ur_qp_post_send(qp, &wr, &bad), 0);
	if (ur_qp_doorbell(qp))
		ur_qp_answer(qp, h->now);
}

#define HOLED (32 * MTU)

/* Memory of HOLED bytes without its pages from `from` on. */
static inline uint8_t *holed(uint32_t from)
{
	uint8_t *at = mmap(NULL, HOLED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
	memset(at, 0x3c, HOLED);
	CU_ASSERT_EQUAL(mprotect(at + from, HOLED - from, PROT_NONE), 0);
	CU_ASSERT_TRUE_FATAL(ur_catch_start());
	ur_catch_again();
	ur_catch_admit();
	return at;
}

#endif
