/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/pending/reorder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/psn.h"
#include "transport/state/tp_priv.h"
#include "wire/bulk.h"
#include "wire/hdr.h"

#define ROW 64                     /* PSNs of a row, and bits of a word */
#define RING (2 * UR_REORDER_SPAN) /* PSNs of a buffer: twice the span, so that its end does not meet its beginning in one row */
#define ROWS (RING / ROW)

/* What a QP keeps. A row holds its copies in the order of their PSNs. */
struct ur_reorder {
	struct ur_list link; /* in the arena's list */
	struct ur_qp *qp;
	ur_time news_at; /* when something was last kept, or a hole was filled */
	unsigned n;      /* copies */
	uint32_t hi;     /* the PSN after the last that has arrived */
	uint32_t news;   /* what has to be reported begins here, before `hi` if there is any */
	uint64_t arrived[ROWS];
	struct ur_reordered *first[ROWS], *last[ROWS];
};

/* Sizes of copies, with the shares of the memory that they get; and buffers. */
#define SHARES 16
enum { COPY_SIZES = 3, BUFFERS = COPY_SIZES, KINDS };
static const struct {
	uint32_t bytes, share;
} kinds[KINDS] = {
	{320, 1},   /* short messages, and those of an MTU of 256 */
	{1088, 2},  /* an MTU of 1024 */
	{4160, 12}, /* and of 4096 */
	[BUFFERS] = {sizeof(struct ur_reorder), 1},
};

/*
 * The memory comes in pieces, when it is needed: where a program has locked its memory (MCL_FUTURE of mlockall(2)) a piece is resident from
 * then on. None is returned before the end.
 */
#define PIECE (1u << 20)
struct piece {
	struct piece *next;
	_Alignas(64) uint8_t objects[];
};

struct ur_reorder_arena {
	struct {
		struct ur_pool pool;
		uint32_t left;  /* objects that may be taken */
		uint32_t ahead; /* of them, those that have no memory yet */
	} of[KINDS];
	struct ur_list buffers; /* those in use, in the order of `news_at` */
	struct piece *pieces;
};

int ur_reorder_open(struct ur_reorder_arena **out, size_t bytes)
{
	struct ur_reorder_arena *a = calloc(1, sizeof(*a));

	if (!a)
		return ENOMEM;
	for (unsigned i = 0; i < KINDS; i++) {
		a->of[i].pool.size = kinds[i].bytes; /* and nothing is in it */
		a->of[i].left = a->of[i].ahead = (uint32_t)(bytes / SHARES * kinds[i].share / kinds[i].bytes);
	}
	ur_list_init(&a->buffers);
	*out = a;
	return 0;
}

void ur_reorder_close(struct ur_reorder_arena *a)
{
	struct piece *p;

	while (a && (p = a->pieces)) {
		a->pieces = p->next;
		free(p);
	}
	free(a);
}

static bool add_piece(struct ur_reorder_arena *a, unsigned kind)
{
	const uint32_t n = ur_min_u32(a->of[kind].ahead, (PIECE - sizeof(struct piece)) / kinds[kind].bytes);
	struct piece *p = n ? aligned_alloc(64, (sizeof(*p) + (size_t)n * kinds[kind].bytes + 63) / 64 * 64) : NULL;

	if (!p)
		return false;
	p->next = a->pieces;
	a->pieces = p;
	a->of[kind].ahead -= n;
	a->of[kind].pool.fresh = p->objects;
	a->of[kind].pool.end = p->objects + (size_t)n * kinds[kind].bytes;
	return true;
}

/* NULL when there is none left, or no memory. */
static void *take_object(struct ur_reorder_arena *a, unsigned kind)
{
	void *obj = ur_pool_take(&a->of[kind].pool);

	if (ur_unlikely(!obj) && add_piece(a, kind))
		obj = ur_pool_take(&a->of[kind].pool);
	if (obj)
		a->of[kind].left--;
	return obj;
}

static void give_object(struct ur_reorder_arena *a, unsigned kind, void *obj)
{
	ur_pool_give(&a->of[kind].pool, obj);
	a->of[kind].left++;
}

/* --- copies --- */

static struct ur_reordered *take_copy(struct ur_reorder_arena *a, const struct ur_reorder *k, uint32_t len)
{
	const uint32_t need = (uint32_t)offsetof(struct ur_reordered, bytes) + len;

	for (unsigned i = 0; i < COPY_SIZES; i++)
		if (need <= kinds[i].bytes && k->n < (uint64_t)UR_REORDER_SHARE * a->of[i].left) {
			struct ur_reordered *c = take_object(a, i);

			if (!c)
				continue;
			c->size = (uint8_t)i;
			return c;
		}
	return NULL;
}

/* --- buffers --- */

static unsigned row_of(uint32_t psn)
{
	return psn / ROW % ROWS;
}

static void mark(struct ur_reorder *k, uint32_t psn, uint32_t n, bool arrived)
{
	while (n) {
		const unsigned at = psn % ROW, part = ur_min_u32(n, ROW - at);
		const uint64_t bits = (part == ROW ? ~0ull : (1ull << part) - 1) << at;
		uint64_t *word = &k->arrived[row_of(psn)];

		*word = arrived ? *word | bits : *word & ~bits;
		psn = ur_psn_add(psn, part);
		n -= part;
	}
}

static bool has(const struct ur_reorder *k, uint32_t psn)
{
	return k->arrived[row_of(psn)] >> psn % ROW & 1;
}

/* The 64 bits from that PSN on. */
static uint64_t word_at(const struct ur_reorder *k, uint32_t psn)
{
	const unsigned at = psn % ROW;
	const uint64_t low = k->arrived[row_of(psn)] >> at;

	return at ? low | k->arrived[row_of(ur_psn_add(psn, ROW))] << (ROW - at) : low;
}

static void has_news(struct ur_qp *qp)
{
	struct ur_reorder *k = qp->resp.reorder;

	k->news_at = qp->tp->now;
	ur_list_del(&k->link);
	ur_list_add_tail(&qp->tp->reorder->buffers, &k->link);
}

static bool is_older(const struct ur_reorder *k, ur_time age)
{
	return k->qp->tp->now > k->news_at + age;
}

struct ur_qp *ur_reorder_idlest(const struct ur_qp *qp, ur_time age)
{
	const struct ur_list *buffers = &qp->tp->reorder->buffers, *l = buffers->next;

	if (qp->resp.reorder && l == &qp->resp.reorder->link)
		l = l->next;
	return l != buffers && is_older(ur_container_of(l, struct ur_reorder, link), age) ? ur_container_of(l, struct ur_reorder, link)->qp
											  : NULL;
}

static struct ur_reorder *buffer(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (r->reorder)
		return r->reorder;
	r->reorder = take_object(qp->tp->reorder, BUFFERS);
	if (!r->reorder)
		return NULL;
	memset(r->reorder, 0, sizeof(*r->reorder));
	ur_list_init(&r->reorder->link);
	r->reorder->qp = qp;
	r->reorder->hi = r->reorder->news = r->epsn;
	r->slow_path |= UR_RESP_REORDERING;
	has_news(qp);
	return r->reorder;
}

ur_time ur_reorder_news_at(const struct ur_qp *qp)
{
	return qp->resp.reorder->news_at;
}

bool ur_reorder_is_old(const struct ur_qp *qp)
{
	return is_older(qp->resp.reorder, UR_REORDER_OLD);
}

static void release_if_empty(struct ur_qp *qp)
{
	struct ur_responder *r = &qp->resp;

	if (r->reorder->n)
		return;
	ur_list_del(&r->reorder->link);
	give_object(qp->tp->reorder, BUFFERS, r->reorder);
	r->reorder = NULL;
	r->slow_path &= ~(UR_RESP_REORDERING | UR_RESP_CATCHES_UP);
}

static void insert(struct ur_reorder *k, struct ur_reordered *c)
{
	const unsigned row = row_of(c->psn);
	struct ur_reordered **at = &k->first[row];

	if (k->last[row] && ur_psn_diff(c->psn, k->last[row]->psn) > 0)
		at = &k->last[row]->next;
	while (*at && ur_psn_diff((*at)->psn, c->psn) < 0)
		at = &(*at)->next;
	c->next = *at;
	*at = c;
	if (!c->next)
		k->last[row] = c;
	k->n++;
}

static void remove_first(struct ur_qp *qp, unsigned row)
{
	struct ur_reorder *k = qp->resp.reorder;
	struct ur_reordered *c = k->first[row];

	k->first[row] = c->next;
	if (!c->next)
		k->last[row] = NULL;
	k->n--;
	give_object(qp->tp->reorder, c->size, c);
}

/* --- keeping --- */

/* A longer path holds more: it is measured for a round trip, as far as that is known. */
void ur_reorder_note_pace_now(struct ur_qp *qp)
{
	const struct ur_rtt *t = &qp->req.rtt;
	struct ur_responder *r = &qp->resp;

	if (qp->tp->now - r->paced_at < ur_max_u32(t->mean, t->handshake))
		return;
	r->shown = ur_max_u32(r->shown, (r->epsn - r->paced_from) & UR_PSN_MASK);
	r->paced_from = r->epsn;
	r->paced_at = qp->tp->now;
}

/* PSNs that the request has, as far as the span goes. */
static uint32_t psns(const struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t d)
{
	struct ur_reth h;

	if (!(op->flags & UR_OPF_READ))
		return 1;
	ur_reth_get(ur_bth_ext(p) + op->off_reth, &h);
	return h.len <= UR_MAX_MSG ? ur_min_u32(ur_qp_npkts(qp, h.len), UR_REORDER_SPAN - d) : 1;
}

/* How far beyond the expected PSN something is kept (reorder.h). */
static uint32_t reach(const struct ur_qp *qp)
{
	const struct ur_responder *r = &qp->resp;
	const uint32_t shown = ur_max_u32(r->shown, (r->epsn - r->paced_from) & UR_PSN_MASK);

	return ur_max_u32(UR_REORDER_LEAST, 4 * ur_min_u32(shown, UR_REORDER_SPAN / 4));
}

static uint32_t psns_of(const struct ur_qp *qp, const struct ur_reordered *c)
{
	struct ur_pkt view;

	ur_reorder_view(c, &view);
	return psns(qp, &view, ur_opcode(view.bth.opcode), c->beyond);
}

#define LOOKS 128 /* copies of which one packet may make us look at the headers */
#define WIDE 1024 /* PSNs */

/* The copy that has that PSN, or a READ whose answer has it; NULL: that was given up, or it is a READ with too many others within. */
static struct ur_reordered *holder(const struct ur_qp *qp, uint32_t psn)
{
	const struct ur_reorder *k = qp->resp.reorder;
	unsigned looks = 0;

	for (unsigned row = row_of(psn);; row = (row + ROWS - 1) % ROWS) {
		for (struct ur_reordered *c = k->first[row]; c && looks < LOOKS; c = c->next, looks++)
			if (c->psn == psn || (ur_psn_diff(psn, c->psn) > 0 && ((psn - c->psn) & UR_PSN_MASK) < psns_of(qp, c)))
				return c;
		if (row == row_of(qp->resp.epsn) || looks == LOOKS)
			return NULL;
	}
}

#define SE_AND_PAD 0xb0u /* of UR_BTH_FLAGS */

/* What a repetition may not change: flags beside these, and what the reserved bits say, it may (wire/sack.h). */
static bool is_same(const struct ur_reordered *c, const struct ur_pkt *p, uint32_t off)
{
	const uint8_t *b = p->data + p->bth_off;

	return c->payload_off == off && c->payload_len == p->payload_len && c->bytes[UR_BTH_OPCODE] == b[UR_BTH_OPCODE] &&
	       !((c->bytes[UR_BTH_FLAGS] ^ b[UR_BTH_FLAGS]) & SE_AND_PAD) &&
	       !memcmp(c->bytes + UR_BTH_LEN, b + UR_BTH_LEN, off - UR_BTH_LEN + p->payload_len);
}

/* A READ, asked for in smaller pieces than before. */
static bool is_part(const struct ur_qp *qp, const struct ur_reordered *c, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const uint8_t *ext = ur_bth_ext(p), *kept = c->bytes + UR_BTH_LEN;
	const uint64_t at = (uint64_t)((p->bth.psn - c->psn) & UR_PSN_MASK) << qp->mtu_shift;
	struct ur_reth h, whole;

	if (!(op->flags & UR_OPF_READ) || c->bytes[UR_BTH_OPCODE] != p->bth.opcode || memcmp(ext, kept, op->off_reth))
		return false;
	ur_reth_get(ext + op->off_reth, &h);
	ur_reth_get(kept + op->off_reth, &whole);
	return h.rkey == whole.rkey && h.va == whole.va + at && at + h.len <= whole.len;
}

/* Takes a copy off the buffer, wherever it stands. Others that share PSNs with it stay. */
static void give_up(struct ur_qp *qp, struct ur_reordered *gone)
{
	struct ur_reorder *k = qp->resp.reorder;
	const unsigned row = row_of(gone->psn);
	const uint32_t from = gone->psn, n = psns_of(qp, gone);
	struct ur_reordered **at = &k->first[row], *before = NULL;

	for (; *at != gone; at = &(*at)->next)
		before = *at;
	*at = gone->next;
	if (!gone->next)
		k->last[row] = before;
	k->n--;
	give_object(qp->tp->reorder, gone->size, gone);
	mark(k, from, n, false);
	for (unsigned i = row;; i = (i + 1) % ROWS) {
		for (const struct ur_reordered *c = k->first[i]; c; c = c->next)
			mark(k, c->psn, psns_of(qp, c), true);
		if (i == row_of(ur_psn_add(from, n)))
			break;
	}
}

/*
 * There is a packet with that PSN. Where the two are not the same, one of them is not the peer's, and nobody knows which: neither is kept,
 * and the peer will send its own again. (A program that changes what it is sending has a peer that contradicts itself; it loses no more.)
 */
__attribute__((noinline)) static enum ur_reorder_result meet(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op,
							     uint32_t off)
{
	struct ur_reordered *c = holder(qp, p->bth.psn);

	if (!c || is_part(qp, c, p, op) || (c->psn == p->bth.psn && is_same(c, p, off)))
		return UR_REORDER_DUPLICATE;
	if (psns_of(qp, c) > WIDE) { /* what else is kept of these PSNs is not worth looking for */
		ur_reorder_drop(qp);
		return UR_REORDER_DIFFERS;
	}
	give_up(qp, c);
	release_if_empty(qp);
	return UR_REORDER_DIFFERS;
}

enum ur_reorder_result ur_reorder_add(struct ur_qp *qp, const struct ur_pkt *p, const struct ur_opcode_info *op, uint32_t d)
{
	const uint32_t off = (uint32_t)p->payload_off - p->bth_off, len = off + p->payload_len;
	const uint32_t psn = p->bth.psn;
	struct ur_reordered *c;
	struct ur_reorder *k;
	uint32_t n;

	if (!qp->tp->reorder || !ur_qp_acked(qp) || p->flags & (UR_PKT_BULK | UR_PKT_SLIM) || d >= reach(qp) || len > UR_PKT_ROOM)
		return UR_REORDER_NOT;
	k = buffer(qp);
	if (!k)
		return UR_REORDER_FULL;
	if (has(k, psn))
		return meet(qp, p, op, off);
	c = take_copy(qp->tp->reorder, k, len);
	if (!c) {
		release_if_empty(qp);
		return UR_REORDER_FULL;
	}
	c->psn = psn;
	c->beyond = (uint16_t)d;
	c->payload_off = (uint16_t)off;
	c->payload_len = (uint16_t)p->payload_len;
	memcpy(c->bytes, p->data + p->bth_off, len);
	insert(k, c);
	has_news(qp);
	n = psns(qp, p, op, d);
	mark(k, psn, n, true);
	if (ur_psn_diff(ur_psn_add(psn, n), k->hi) > 0)
		k->hi = ur_psn_add(psn, n);
	return UR_REORDER_KEPT;
}

const struct ur_reordered *ur_reorder_at(const struct ur_qp *qp, uint32_t psn)
{
	const struct ur_reordered *c = qp->resp.reorder->first[row_of(psn)];

	while (c && c->psn != psn)
		c = c->next;
	return c;
}

/* What is before it is not kept any longer, so it is the first of its row. */
const struct ur_reordered *ur_reorder_next(const struct ur_qp *qp)
{
	const struct ur_reordered *c = qp->resp.reorder->first[row_of(qp->resp.epsn)];

	return c && c->psn == qp->resp.epsn ? c : NULL;
}

void ur_reorder_view(const struct ur_reordered *k, struct ur_pkt *view)
{
	ur_pkt_clear(view);
	view->data = (uint8_t *)k->bytes;
	view->len = view->room = (uint32_t)k->payload_off + k->payload_len;
	view->kind = UR_PKT_ROCE;
	view->payload_off = k->payload_off;
	view->payload_len = k->payload_len;
	ur_bth_get(k->bytes, &view->bth);
}

void ur_reorder_forget(struct ur_qp *qp)
{
	mark(qp->resp.reorder, qp->resp.epsn, 1, false);
	remove_first(qp, row_of(qp->resp.epsn));
	release_if_empty(qp);
}

void ur_reorder_pass(struct ur_qp *qp, uint32_t from)
{
	struct ur_reorder *k = qp->resp.reorder;
	const uint32_t to = qp->resp.epsn, n = (to - from) & UR_PSN_MASK;

	if (n >= UR_REORDER_SPAN) { /* a long READ */
		ur_reorder_drop(qp);
		return;
	}
	mark(k, from, n, false);
	for (unsigned row = row_of(from);; row = (row + 1) % ROWS) {
		while (k->first[row] && ur_psn_diff(k->first[row]->psn, to) < 0)
			remove_first(qp, row);
		if (row == row_of(to))
			break;
	}
	has_news(qp);
	release_if_empty(qp);
}

void ur_reorder_drop(struct ur_qp *qp)
{
	struct ur_reorder *k = qp->resp.reorder;

	if (!k)
		return;
	for (unsigned row = 0; row < ROWS && k->n; row++)
		while (k->first[row])
			remove_first(qp, row);
	release_if_empty(qp);
}

/* --- reporting --- */

void ur_reorder_report(struct ur_qp *qp, uint32_t psn)
{
	struct ur_reorder *k = qp->resp.reorder;

	if (ur_psn_diff(psn, k->news) < 0)
		k->news = psn;
}

/* Everything, as long as it has room: a lost SACK costs nothing then. Otherwise what is new, and as much before it as has room. */
bool ur_reorder_sack(struct ur_qp *qp, struct ur_sack *s)
{
	struct ur_reorder *k = qp->resp.reorder;
	uint32_t all;

	*s = (struct ur_sack){.expected = qp->resp.epsn, .base = qp->resp.epsn};
	all = (k->hi - s->base) & UR_PSN_MASK;
	if (all > UR_SACK_BITS) {
		uint32_t newest = ur_psn_add(k->hi, -(uint32_t)UR_SACK_BITS);

		if (ur_psn_diff(k->news, s->base) > 0)
			s->base = ur_psn_earlier(k->news, newest);
		all = (k->hi - s->base) & UR_PSN_MASK;
	}
	s->n = ur_min_u32((all + UR_SACK_STEP - 1) / UR_SACK_STEP * UR_SACK_STEP, UR_SACK_BITS);
	for (unsigned i = 0; i < s->n / 64; i++)
		s->bits[i] = word_at(k, ur_psn_add(s->base, i * 64));
	k->news = all > s->n ? ur_psn_add(s->base, s->n) : k->hi;
	return all > s->n;
}
