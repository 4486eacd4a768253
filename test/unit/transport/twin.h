/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two worlds of two nodes each (tp_harness.h), in which the same happens: in the first, ports send trains, and nodes receive them in one
 * piece; in the second each packet is alone. What they send, what is in their memory, and their state has to be the same at each step.
 */
#ifndef UR_TEST_TWIN_H
#define UR_TEST_TWIN_H

#include <stdlib.h>

#include "tp_harness.h"
#include "transport/packet/rx_walk.h"
#include "wire/row.h"

#define TWIN_BURST 32
#define TWIN_IOVA 0x100000u /* where a node's memory begins for requests: the same in both worlds */

struct twin {
	struct th w[2];
	struct ur_mr *mr[2][2];
	struct ur_rng rng;
	unsigned long runs, in_runs, trains; /* received runs and the packets in them; trains sent */
	unsigned long moves;                 /* every second one brings packets, not trains */
	struct th_pkt pkts[2][TWIN_BURST];
	unsigned n[2], requests[2];
};

static inline void twin_open(struct twin *t, const struct th_opt *opt, uint64_t seed)
{
	memset(t, 0, sizeof(*t));
	t->rng.state = seed;
	for (unsigned w = 0; w < 2; w++) {
		struct th_opt o = *opt;

		o.train = w ? 0 : opt->train;
		th_open(&t->w[w], &o);
		for (unsigned i = 0; i < 2; i++) {
			struct th_node *n = &t->w[w].n[i];

			CU_ASSERT_EQUAL_FATAL(ur_mr_reg(n->tp, n->pd, n->mem, TH_MEM, TWIN_IOVA, TH_MR_ACCESS, &t->mr[w][i]), 0);
			n->tp->quantum = t->w[0].n[i].tp->quantum; /* trains lengthen it */
		}
	}
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(t->mr[0][i]->rkey, t->mr[1][i]->rkey);
}

static inline void twin_close(struct twin *t)
{
	for (unsigned w = 0; w < 2; w++) {
		for (unsigned i = 0; i < 2; i++)
			CU_ASSERT_EQUAL(ur_mr_dereg(t->mr[w][i]), 0);
		th_close(&t->w[w]);
	}
}

/* --- requests --- */

/* A list of `nsge` elements with `len` bytes in all, one after another from `off` on, with gaps of `gap` bytes. */
static inline void twin_list(struct twin *t, unsigned w, unsigned node, struct ibv_sge *s, const uint32_t *len, unsigned nsge, uint32_t off,
			     uint32_t gap)
{
	for (unsigned i = 0; i < nsge; i++) {
		s[i] = (struct ibv_sge){TWIN_IOVA + off, len[i], t->mr[w][node]->lkey};
		off += len[i] + gap;
	}
}

static inline void twin_post(struct twin *t, unsigned node, enum ibv_wr_opcode op, uint64_t wr_id, const uint32_t *len, unsigned nsge,
			     uint32_t off, uint32_t roff, unsigned flags)
{
	int rc[2];

	for (unsigned w = 0; w < 2; w++) {
		struct ibv_sge s[4];

		twin_list(t, w, node, s, len, nsge, off, 64);
		rc[w] = th_post_sge(&t->w[w], node, op, wr_id, s, (int)nsge, TWIN_IOVA + roff, t->mr[w][!node]->rkey, flags);
	}
	CU_ASSERT_EQUAL(rc[0], rc[1]);
}

static inline void twin_recv(struct twin *t, unsigned node, uint64_t wr_id, const uint32_t *len, unsigned nsge, uint32_t off)
{
	for (unsigned w = 0; w < 2; w++) {
		struct ur_qp *qp = t->w[w].n[node].qp;
		struct ibv_recv_wr wr = {.wr_id = wr_id, .num_sge = (int)nsge}, *bad;
		struct ibv_sge s[4];

		twin_list(t, w, node, s, len, nsge, off, 64);
		wr.sg_list = s;
		ur_qp_post_recv(qp, &wr, &bad); /* full in both, or in none: the completions tell */
		if (ur_qp_doorbell(qp))
			ur_qp_answer(qp, t->w[w].now);
	}
}

/* --- is everything the same? --- */

static inline uint64_t twin_bytes(const struct ibv_sge *sge, struct ur_sge_pos pos)
{
	uint64_t n = pos.off;

	for (uint32_t i = 0; i < pos.i; i++)
		n += sge[i].length;
	return n;
}

#define TWIN_SAME(member)                                                                                                                  \
	do {                                                                                                                               \
		if (memcmp(&a->member, &b->member, sizeof(a->member))) {                                                                   \
			CU_FAIL("differs: " #member);                                                                                      \
			same = false;                                                                                                      \
		}                                                                                                                          \
	} while (0)

static inline bool twin_requester_same(const struct ur_qp *qa, const struct ur_qp *qb)
{
	const struct ur_requester *a = &qa->req, *b = &qb->req;
	bool same = true;

	TWIN_SAME(head);
	TWIN_SAME(cur);
	TWIN_SAME(fresh);
	TWIN_SAME(tail);
	TWIN_SAME(una);
	TWIN_SAME(next);
	TWIN_SAME(max);
	TWIN_SAME(since_ack);
	TWIN_SAME(restart);
	TWIN_SAME(rd_out);
	TWIN_SAME(rd_wqes);
	TWIN_SAME(retry_left);
	TWIN_SAME(rnr_left);
	TWIN_SAME(stops.any);
	TWIN_SAME(hole);
	TWIN_SAME(reseek);
	TWIN_SAME(deadline);
	TWIN_SAME(window.size);
	TWIN_SAME(probe.times);
	TWIN_SAME(scoreboard.busy);
	TWIN_SAME(scoreboard.gone);
	if (same && a->cur != a->tail && a->next != a->una)
		same = twin_bytes(ur_sq_at(qa, a->cur)->sge, a->pos) == twin_bytes(ur_sq_at(qb, b->cur)->sge, b->pos);
	return same;
}

static inline bool twin_responder_same(const struct ur_qp *qa, const struct ur_qp *qb)
{
	const struct ur_responder *a = &qa->resp, *b = &qb->resp;
	bool same = true;

	TWIN_SAME(epsn);
	TWIN_SAME(msn);
	TWIN_SAME(head);
	TWIN_SAME(expect);
	TWIN_SAME(nak_sent);
	TWIN_SAME(dying);
	TWIN_SAME(slow_path);
	TWIN_SAME(ack_pending);
	TWIN_SAME(got);
	TWIN_SAME(rkey);
	TWIN_SAME(va);
	TWIN_SAME(left);
	TWIN_SAME(rd_cur);
	TWIN_SAME(rd_tail);
	TWIN_SAME(rd_count);
	if (a->ack_pending) {
		TWIN_SAME(ack_psn);
		TWIN_SAME(ack_syndrome);
		TWIN_SAME(ack_msn);
	}
	if (same && a->expect == UR_OPF_SEND)
		same = twin_bytes(a->w->sge, a->pos) == twin_bytes(b->w->sge, b->pos);
	return same;
}

static inline bool twin_node_same(const struct twin *t, unsigned i)
{
	const struct th_node *a = &t->w[0].n[i], *b = &t->w[1].n[i];
	bool same = twin_requester_same(a->qp, b->qp);

	same = twin_responder_same(a->qp, b->qp) && same;
	TWIN_SAME(c);
	TWIN_SAME(nevents);
	TWIN_SAME(notified);
	TWIN_SAME(qp->n);
	TWIN_SAME(qp->heard);
	TWIN_SAME(qp->broken);
	return same && ur_qp_st(a->qp) == ur_qp_st(b->qp);
}

static inline bool twin_memory_same(const struct twin *t, unsigned i)
{
	return memcmp(t->w[0].n[i].mem, t->w[1].n[i].mem, TH_MEM) == 0;
}

/* Takes what has completed; the same in both. Returns how many. */
static inline unsigned twin_completions(struct twin *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 2; i++)
		for (unsigned side = 0; side < 2; side++) {
			struct ibv_wc wc[2];
			int got[2];

			do {
				for (unsigned w = 0; w < 2; w++) {
					struct th_node *node = &t->w[w].n[i];

					memset(&wc[w], 0, sizeof(wc[w]));
					got[w] = ur_cq_poll(side ? node->rcq : node->scq, 1, &wc[w]);
				}
				CU_ASSERT_EQUAL(got[0], got[1]);
				CU_ASSERT_TRUE(wc[0].wr_id == wc[1].wr_id && wc[0].status == wc[1].status);
				CU_ASSERT_TRUE(!got[0] || wc[0].status || wc[0].byte_len == wc[1].byte_len);
				n += got[0] > 0;
			} while (got[0] > 0 && got[1] > 0);
		}
	return n;
}

/* --- packets --- */

static inline bool twin_is_request(const struct ur_pkt *p)
{
	return !(ur_opcode(p->bth.opcode)->flags & UR_OPF_RESPONSE);
}

/* From the BTH to the ICRC, which covers identifications that differ. */
static inline bool twin_pkt_same(const struct ur_pkt *a, const struct ur_pkt *b)
{
	return a->len == b->len && a->bth_off == b->bth_off && a->tos == b->tos &&
	       memcmp(a->data + a->bth_off, b->data + b->bth_off, a->len - a->bth_off - UR_ICRC_LEN) == 0;
}

/* A burst of one world's node, requests before responses. */
static inline void twin_take(struct twin *t, unsigned w, unsigned from, unsigned n)
{
	static struct th_pkt responses[TWIN_BURST];
	struct th *h = &t->w[w];
	struct ur_pkt *p[TWIN_BURST];
	unsigned got = ur_tp_tx(h->n[from].tp, p, n, h->now), nresp = 0, nreq = 0;

	for (unsigned i = 0; i < got; i++) {
		struct ur_train_cursor at = {0};
		struct th_pkt one;

		t->trains += p[i]->stride > 0;
		while (th_wire(p[i], &at, &one)) {
			struct th_pkt *to;

			CU_ASSERT_FATAL(nreq + nresp < n);
			to = twin_is_request(&one.p) ? &t->pkts[w][nreq++] : &responses[nresp++];
			*to = one;
			to->p.data = to->buf;
		}
	}
	th_free(h, from, p, got);
	t->requests[w] = nreq;
	t->n[w] = nreq + nresp;
	for (unsigned i = 0; i < nresp; i++) {
		t->pkts[w][nreq + i] = responses[i];
		t->pkts[w][nreq + i].p.data = t->pkts[w][nreq + i].buf;
	}
}

/* A train as a socket gives it of packets that one way has brought: as many of the `n` as follow one another; returns how many. */
static inline unsigned twin_join(struct ur_pkt *train, struct th_pkt *pkts, unsigned n)
{
	const struct ur_pkt *first = &pkts[0].p;
	unsigned k = 0;

	ur_pkt_copy_fields(train, first);
	train->bth_off = 0;
	train->flags = UR_PKT_BARE;
	train->place = 0;
	train->len = 0;
	train->stride = first->len - first->bth_off;
	for (; k < n && k < 255; k++) {
		struct ur_pkt *p = &pkts[k].p;
		const uint32_t len = p->len - p->bth_off;

		if (len > train->stride || train->len % train->stride || p->tos != first->tos)
			break;
		ur_train_move(p, (uint8_t)k);
		memcpy(train->data + train->len, p->data + p->bth_off, len);
		train->len += len;
	}
	if (k == 1)
		train->stride = 0;
	return k;
}

/* As the NIC does with it; from *at on. */
static inline void twin_receive_from(struct twin *t, unsigned w, unsigned to, struct ur_pkt *train, struct ur_train_cursor *at)
{
	struct th *h = &t->w[w];
	struct ur_pkt view = {.data = NULL};
	struct ur_counters c = {{0}};

	for (;;) {
		if (!w && train->stride) {
			const struct ur_row row = ur_row_of_train(train, at);
			const unsigned run = ur_tp_rx_run(h->n[to].tp, &row, h->now);

			ur_row_passed(&row, run, at);
			t->runs += run > 0;
			t->in_runs += run;
		}
		if (!ur_train_view(train, at, &view))
			return;
		if (ur_frame_parse(&view, &c))
			ur_tp_rx(h->n[to].tp, &view, h->now);
	}
}

static inline void twin_receive(struct twin *t, unsigned w, unsigned to, struct ur_pkt *train)
{
	struct ur_train_cursor at = {.place = train->place};

	twin_receive_from(t, w, to, train, &at);
}

/* As the NIC does with packets of one burst, in buffers of their own. */
static inline void twin_receive_burst(struct twin *t, unsigned w, unsigned to, struct ur_pkt *const *pkts, unsigned n)
{
	struct th *h = &t->w[w];
	struct ur_counters c = {{0}};

	for (unsigned i = 0; i < n;) {
		struct ur_pkt *p = pkts[i++];
		struct ur_row row;
		unsigned run;

		if (!ur_frame_parse(p, &c))
			continue;
		ur_tp_rx(h->n[to].tp, p, h->now);
		run = !w && ur_row_of_burst(&row, p, pkts + i, n - i) ? ur_tp_rx_run(h->n[to].tp, &row, h->now) : 0;
		t->runs += run > 0;
		t->in_runs += run;
		i += run;
	}
}

/* What one way has brought, as trains or (world 1 always) packets. */
static inline void twin_bring(struct twin *t, unsigned w, unsigned to, struct th_pkt *pkts, unsigned n, bool apart)
{
	static uint8_t bytes[TWIN_BURST * UR_PKT_ROOM];
	struct ur_pkt *p[TWIN_BURST];

	for (unsigned i = 0; i < n; i++) {
		p[i] = &pkts[i].p;
		p[i]->flags = 0; /* no longer to be sent */
	}
	if (apart) {
		twin_receive_burst(t, w, to, p, n);
		return;
	}
	for (unsigned i = 0, k; i < n; i += k) {
		struct ur_pkt train = {.data = bytes, .room = sizeof(bytes)};

		k = twin_join(&train, &pkts[i], w ? 1 : n - i);
		twin_receive(t, w, to, &train);
	}
}

/*
 * Lets one node of both send up to `n` packets, loses some of them (chances in 65536), and brings the others to its peer. Returns how many
 * were sent.
 */
static inline unsigned twin_move(struct twin *t, unsigned from, unsigned n, uint32_t loss)
{
	const bool apart = t->moves++ & 1;
	unsigned kept[2] = {0}, sent;

	for (unsigned w = 0; w < 2; w++)
		twin_take(t, w, from, n);
	CU_ASSERT_EQUAL_FATAL(t->n[0], t->n[1]);
	CU_ASSERT_EQUAL_FATAL(t->requests[0], t->requests[1]);
	sent = t->n[0];
	for (unsigned i = 0; i < sent; i++) {
		bool lost = ur_rng_below(&t->rng, 65536) < loss;

		CU_ASSERT_TRUE_FATAL(twin_pkt_same(&t->pkts[0][i].p, &t->pkts[1][i].p));
		for (unsigned w = 0; w < 2; w++) {
			struct th_pkt *to = &t->pkts[w][kept[w]];

			if (lost)
				continue;
			*to = t->pkts[w][i];
			to->p.data = to->buf;
			kept[w]++;
		}
	}
	for (unsigned w = 0; w < 2; w++)
		twin_bring(t, w, !from, t->pkts[w], kept[w], apart);
	CU_ASSERT_TRUE_FATAL(twin_node_same(t, from));
	CU_ASSERT_TRUE_FATAL(twin_node_same(t, !from));
	return sent;
}

/* Lets time pass until the next timer expires; false when there is none. */
static inline bool twin_wait(struct twin *t)
{
	ur_time next = ur_wheel_next(t->w[0].wheel);

	CU_ASSERT_EQUAL(next, ur_wheel_next(t->w[1].wheel));
	if (next == UR_TIME_NEVER)
		return false;
	for (unsigned w = 0; w < 2; w++) {
		t->w[w].now = next > t->w[w].now ? next : t->w[w].now + 1;
		ur_wheel_advance(t->w[w].wheel, t->w[w].now);
	}
	return true;
}

#endif
