/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/packet/bulk.h"

#include "base/touch.h"
#include "transport/memory/memory.h"
#include "transport/memory/sge.h"
#include "transport/packet/ackreq.h"
#include "transport/packet/read_req.h"
#include "transport/packet/txbuf.h"
#include "transport/state/req_sent.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#define END 64u     /* the last bytes of a run, at which programs look: they are written when all is known to be right */
#define CHUNK 4096u /* of what goes to memory that is not simply there */

void ur_bulk_revoke(struct ur_qp *qp)
{
	ur_token_renew(qp->tp, ur_qp_token_at(qp));
}

/* --- to send --- */

struct ur_pkt *ur_bulk_begin(struct ur_qp *qp, const struct ur_bth *bth, uint32_t npkts, uint32_t len)
{
	struct ur_tp *tp = qp->tp;
	struct ur_pkt *p = tp->tx.filling ? NULL : ur_tp_pkt(tp);
	struct ur_bulk *b;

	if (ur_unlikely(!p))
		return NULL;
	p->flags = UR_PKT_LOCAL | UR_PKT_COMPLETE | UR_PKT_BULK;
	p->kind = UR_PKT_ROCE;
	p->slot = tp->c.slot;
	p->bth = *bth;
	p->bth.pad = 0;
	p->bth.pkey = UR_PKEY_DEFAULT;
	p->bth.migreq = true;
	p->bth.dqpn = qp->dqpn;
	p->payload_len = len;
	b = ur_bulk_of(p);
	memset(b, 0, offsetof(struct ur_bulk, seg));
	ur_bth_put(b->headers, &p->bth);
	b->npkts = npkts;
	b->len = len;
	b->sqpn = qp->qpn;
	b->hdr_len = qp->path->hdr_len;
	ur_txbuf_close(&tp->tx);
	return p;
}

uint8_t *ur_bulk_ext(struct ur_pkt *p)
{
	return ur_bulk_of(p)->headers + UR_BTH_LEN;
}

bool ur_bulk_add(struct ur_pkt *p, const struct ur_mr *mr, const uint8_t *at, uint32_t len)
{
	struct ur_bulk *b = ur_bulk_of(p);

	if (b->nseg == UR_BULK_SEGS)
		return false;
	b->seg[b->nseg++] = (struct ur_bulk_seg){(uintptr_t)at, len, mr->number, (uintptr_t)mr->addr, mr->length};
	return true;
}

/* All of the payload of `p`, from the list at *pos on, and moves *pos. False: it has to go as packets. */
static bool add_list(const struct ur_qp *qp, const struct ur_swqe *w, struct ur_sge_pos *pos, struct ur_pkt *p)
{
	for (uint32_t len = p->payload_len, n; len; len -= n, pos->off += n) {
		const uint8_t *from;
		struct ur_mr *mr;

		n = len;
		from = ur_sge_run(qp->tp, qp->pd, w->sge, w->nsge, pos, 0, 0, &n, &mr);
		if (!from || !ur_bulk_add(p, mr, from, n))
			return false;
	}
	return true;
}

void ur_bulk_end(struct ur_qp *qp, struct ur_pkt *p, const struct ur_mr *mr)
{
	struct ur_txbuf *tx = &qp->tp->tx;
	struct ur_bulk *b = ur_bulk_of(p);

	b->token_at = mr ? ur_region_token_at(mr->number) : ur_qp_token_at(qp);
	b->token = ur_token_of(qp->tp, b->token_at);
	p->len = ur_bulk_bytes(b->nseg);
	tx->pkts[tx->n++] = p;
	qp->n.tx_packets += b->npkts - 1; /* and one as any other */
	qp->n.tx_bytes += b->len;
	ur_count(qp->tp->c.counters, UR_C_TX_BULK);
}

/*
 * A run of packets of a SEND or WRITE to a QP of this host, as a bulk packet. It takes no buffers of the peer's, so one that has begun
 * within the window may end beyond it. False: it has to go as packets.
 */
bool ur_bulk_build(struct ur_qp *qp, struct ur_swqe *w)
{
	struct ur_requester *r = &qp->req;
	const uint32_t k = ur_req_packet_index(r, w), left = w->npkts - k, all = w->length - (k << qp->mtu_shift);
	const uint32_t n = ur_min_u32(left, qp->tp->c.bulk_most >> qp->mtu_shift);
	const bool last = n == left;
	struct ur_sge_pos pos = r->pos;
	struct ur_bth bth = {.psn = r->next};
	const struct ur_opcode_info *op;
	struct ur_pkt *p;

	/* One that cannot be read costs a retry. */
	if (ur_psn_diff(r->next, r->packets_until) < 0 || w->flags & IBV_SEND_INLINE || !r->retry_cnt || !ur_bulk_may(qp, all))
		return false;
	bth.opcode = ur_wr_opcode(ur_swqe_op(w), !k, last) | qp->service;
	op = ur_opcode(bth.opcode);
	bth.se = last && w->flags & IBV_SEND_SOLICITED && op->flags & UR_OPF_RWQE;
	bth.ackreq = ur_req_asks(qp, w, last) || r->since_ack + n >= r->window.ack_every;
	p = ur_bulk_begin(qp, &bth, n, last ? all : n << qp->mtu_shift);
	if (!p)
		return false;
	if (!add_list(qp, w, &pos, p)) {
		ur_tp_pkt_drop(qp->tp, p);
		return false;
	}
	ur_req_put_ext(ur_bulk_ext(p), op, w);
	ur_bulk_end(qp, p, NULL);
	r->pos = pos;
	ur_req_note_asking(qp, ur_psn_add(r->next, n - 1), bth.ackreq, bth.ackreq ? 0 : r->since_ack + n);
	if (ur_unlikely(ur_psn_diff(r->max, r->next) > 1))
		ur_qp_count_many(qp, UR_C_RETRANSMIT, ur_min_u32((uint32_t)ur_psn_diff(r->max, r->next), n) - 1); /* and one as any other */
	ur_req_sent(qp, w, n, p);
	return true;
}

/* --- received --- */

/* Where the next bytes of the payload are. */
struct source {
	struct ur_tp *tp;
	const struct ur_bulk *b;
	unsigned i;
	uint32_t off;
	enum ur_fetched_by by; /* the last bytes of it */
};

/* The next `len` bytes as pieces; returns how many. */
static unsigned next_segs(struct source *s, uint32_t len, struct ur_bulk_seg *out)
{
	unsigned n = 0;

	while (len) {
		const struct ur_bulk_seg *g = &s->b->seg[s->i];
		const uint32_t part = ur_min_u32(g->len - s->off, len);

		if (part)
			out[n++] = (struct ur_bulk_seg){g->at + s->off, part, g->region, g->start, g->size};
		s->off += part;
		len -= part;
		if (s->off == g->len) {
			s->i++;
			s->off = 0;
		}
	}
	return n;
}

static bool is_own(const struct source *s)
{
	return ur_slot_of(s->b->sqpn) == s->tp->c.slot;
}

/*
 * What this process has sent to itself stands for what it should or does not, and that does not change while it is copied: it is known
 * beforehand, and nothing wrong is written.
 */
static bool is_over(const struct source *s)
{
	return is_own(s) && ur_token_of(s->tp, s->b->token_at) != s->b->token;
}

/* The next bytes of the payload, as many as `to` has. */
static bool fetch(struct source *s, const struct ur_piece *to, unsigned nto, uint32_t len)
{
	struct ur_bulk_seg from[UR_BULK_SEGS];
	unsigned n = next_segs(s, len, from);

	if (is_own(s))
		return ur_bulk_copy(to, nto, from, n);
	s->by = s->tp->c.fetch ? s->tp->c.fetch(s->tp->c.ctx, ur_slot_of(s->b->sqpn), to, nto, from, n) : UR_FETCHED_NOT;
	return s->by != UR_FETCHED_NOT;
}

/*
 * All has been fetched: did it stand for what it should until then? The sender stores the new token before anything else may be stored
 * where the payload was (ur_token_renew). The fence keeps the load of the token behind the loads of the payload, whoever made them: so if
 * they brought anything newer, the token is the new one.
 */
static bool is_right(const struct source *s)
{
	atomic_thread_fence(memory_order_acquire);
	if (is_own(s))
		return true;
	if (!s->tp->c.token || s->tp->c.token(s->tp->c.ctx, ur_slot_of(s->b->sqpn), s->b->token_at) != s->b->token)
		return false;
	s->tp->c.counters->v[UR_C_BULK_MAPPED] += s->by == UR_FETCHED_MAPPED;
	return true;
}

_Static_assert(UR_MAX_SGE + 1 <= UR_FETCH_PIECES, "a list, and the last bytes");

/* Destinations, in order, of which none is memory that may not simply be written to. */
struct target {
	struct ur_piece piece[UR_FETCH_PIECES];
	unsigned n;
	uint8_t end[END];
	struct source from;
};

/* All of the payload; the last bytes last. */
static enum ur_fetched fetch_to(struct ur_tp *tp, const struct ur_bulk *b, struct target *t)
{
	struct ur_piece *last = &t->piece[t->n - 1];
	uint32_t nend = last->len < END ? (uint32_t)last->len : END;
	uint8_t *end_at = (uint8_t *)last->at + last->len - nend;

	t->from = (struct source){.tp = tp, .b = b};
	if (is_over(&t->from))
		return UR_FETCH_LOST;
	last->len -= nend;
	if (!last->len)
		t->n--;
	t->piece[t->n++] = (struct ur_piece){t->end, nend};
	if (!fetch(&t->from, t->piece, t->n, b->len) || !is_right(&t->from))
		return UR_FETCH_LOST;
	return ur_touch_copy_end_last(end_at, t->end, nend) ? UR_FETCHED : UR_FETCH_LOST;
}

/* For memory that is not simply there: by way of a buffer. `put` returns false when it is not there at all. */
static enum ur_fetched fetch_through(struct ur_tp *tp, const struct ur_bulk *b, bool (*put)(void *arg, const uint8_t *data, uint32_t len),
				     void *arg)
{
	struct source s = {.tp = tp, .b = b};
	uint8_t buf[CHUNK];

	if (is_over(&s))
		return UR_FETCH_LOST;
	for (uint32_t done = 0, n; done < b->len; done += n) {
		const struct ur_piece to = {buf, n = ur_min_u32(b->len - done, CHUNK)};

		if (!fetch(&s, &to, 1, n) || (done + n == b->len && !is_right(&s)))
			return UR_FETCH_LOST;
		if (!put(arg, buf, n))
			return UR_FETCH_PROT;
	}
	return UR_FETCHED;
}

struct region {
	const struct ur_tp *tp;
	struct ur_mr *mr;
	uint8_t *to;
};

static bool put_region(void *arg, const uint8_t *data, uint32_t len)
{
	struct region *r = arg;
	bool ok = ur_mr_write(r->tp, r->mr, r->to, data, len);

	r->to += len;
	return ok;
}

enum ur_fetched ur_bulk_write(struct ur_qp *qp, const struct ur_pkt *p, struct ur_mr *mr, uint8_t *to)
{
	const struct ur_bulk *b = ur_bulk_of(p);
	struct target t = {.n = 1};
	struct region r = {qp->tp, mr, to};

	if (ur_mr_unusual(mr))
		return fetch_through(qp->tp, b, put_region, &r);
	t.piece[0] = (struct ur_piece){to, b->len};
	return fetch_to(qp->tp, b, &t);
}

struct list {
	const struct ur_tp *tp;
	const struct ur_pd *pd;
	const struct ibv_sge *sge;
	unsigned nsge;
	struct ur_sge_pos pos;
};

static bool put_list(void *arg, const uint8_t *data, uint32_t len)
{
	struct list *l = arg;

	return !ur_sge_scatter_in(l->tp, l->pd, l->sge, l->nsge, &l->pos, data, len);
}

/* The next `len` bytes of the list as pieces. False: they are not all memory that may simply be written to. */
static bool list_pieces(struct list *l, uint32_t len, struct target *t)
{
	for (uint32_t n; len; len -= n, l->pos.off += n) {
		struct ur_mr *mr;
		uint8_t *to;

		n = len;
		to = ur_sge_run(l->tp, l->pd, l->sge, l->nsge, &l->pos, IBV_ACCESS_LOCAL_WRITE, 0, &n, &mr);
		if (!to)
			return false;
		t->piece[t->n++] = (struct ur_piece){to, n};
	}
	return true;
}

enum ur_fetched ur_bulk_scatter(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_pd *pd, const struct ibv_sge *sge, unsigned nsge,
				struct ur_sge_pos *pos)
{
	const struct ur_bulk *b = ur_bulk_of(p);
	struct list l = {qp->tp, pd, sge, nsge, *pos};
	struct target t = {.n = 0};
	enum ur_fetched f;

	if (list_pieces(&l, b->len, &t)) {
		f = fetch_to(qp->tp, b, &t);
	} else {
		l.pos = *pos;
		f = fetch_through(qp->tp, b, put_list, &l);
	}
	if (f == UR_FETCHED)
		*pos = l.pos;
	return f;
}
