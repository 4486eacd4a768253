/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where data lies. A slot belongs to one message at a time. A board is written and read by peers at will, and keeps the list of versions
 * that each of its bytes may be of: a version that was surely written after another was over is the end of that other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/prog.h"

#define RED_BYTE 0xdb
#define POISON 0xa5
#define ARENA (24u << 20)

/* --- contents: a function of a tag and a position --- */

static uint64_t word(uint64_t tag, uint64_t i)
{
	uint64_t z = (tag + i) * 0x9e3779b97f4a7c15ull;

	return z ^ (z >> 29) ^ tag;
}

static uint8_t byte_of(uint64_t tag, uint32_t pos)
{
	return (uint8_t)(word(tag, pos / 8) >> (pos % 8 * 8));
}

static void pattern(uint8_t *to, uint64_t tag, uint32_t pos, uint32_t len)
{
	for (; len && pos % 8; len--)
		*to++ = byte_of(tag, pos++);
	for (; len >= 8; len -= 8, pos += 8, to += 8) {
		uint64_t w = word(tag, pos / 8);

		memcpy(to, &w, 8);
	}
	for (; len; len--)
		*to++ = byte_of(tag, pos++);
}

/* --- the arena --- */

static uint8_t *put_red(uint8_t *at)
{
	memset(at, RED_BYTE, RED);
	return at + RED;
}

static void board_init(struct prog *p, struct board *b, uint8_t *mem, uint32_t size)
{
	*b = (struct board){.mem = mem, .size = size, .stale = p->f.one.host || fabric_has_lanes(&p->f)};
	b->damaged = p->f.tx[0].corrupt || p->f.tx[1].corrupt ? p->mtu_bytes : 0;
	b->v[0] = (struct version){.tag = ur_rng_u64(&p->rng), .to = size, .sure = true, .used = true};
	pattern(mem, b->v[0].tag, 0, size);
}

void memory_init(struct prog *p, unsigned host)
{
	static uint8_t *arena[WORLD_HOSTS];
	struct memory *m = &p->host[host].m;
	uint32_t board_size = (p->max_len + 63) & ~63u;
	uint8_t *at;

	if (!arena[host])
		arena[host] = aligned_alloc(64, ARENA);
	if (!arena[host])
		exit(2);
	*m = (struct memory){.base = arena[host], .slot_size = (p->max_len + GRH + 64 + UR_MAX_SGE * 16 + 63) & ~63u};
	at = put_red(m->base);
	for (unsigned i = 0; i < BOARDS; i++) {
		board_init(p, &m->board[i], at, board_size);
		at = put_red(at + board_size);
	}
	for (unsigned i = 0; i < CELLS; i++) {
		m->cell[i] = (struct cell){.mem = (uint64_t *)(void *)at, .swaps = i % 2, .first = ur_rng_u64(&p->rng)};
		*m->cell[i].mem = m->cell[i].value[0] = m->cell[i].first;
		at = put_red(at + RED);
	}
	m->slots = at;
	m->nslots = (ARENA - (uint32_t)(at - m->base)) / (m->slot_size + RED);
	m->nslots = ur_min_u32(m->nslots, SLOTS_MAX);
	for (unsigned i = m->nslots; i--; m->freelist[m->nfree++] = (int16_t)i)
		put_red(at + (size_t)i * (m->slot_size + RED) + m->slot_size);
	m->size = (size_t)(at - m->base) + (size_t)m->nslots * (m->slot_size + RED);
}

static bool red_ok(const uint8_t *p)
{
	for (unsigned i = 0; i < RED; i++)
		if (p[i] != RED_BYTE)
			return false;
	return true;
}

const char *memory_red(const struct memory *m)
{
	if (!red_ok(m->base))
		return "before the first board";
	for (unsigned i = 0; i < BOARDS; i++)
		if (!red_ok(m->board[i].mem + m->board[i].size))
			return "behind a board";
	for (unsigned i = 0; i < CELLS; i++)
		if (!red_ok((const uint8_t *)m->cell[i].mem + RED))
			return "behind a cell";
	for (unsigned i = 0; i < m->nslots; i++)
		if (!red_ok(m->slots + (size_t)i * (m->slot_size + RED) + m->slot_size))
			return "behind a slot";
	return NULL;
}

/* --- slots --- */

int slot_take(struct memory *m)
{
	return m->nfree ? m->freelist[--m->nfree] : -1;
}

void slot_give(struct memory *m, struct buf *b)
{
	if (b->slot < 0)
		return;
	memset(b->mem, 0xee, b->extent); /* who reads or sends it from now on is found out */
	m->freelist[m->nfree++] = (int16_t)b->slot;
	b->slot = -1;
}

bool buf_lay(struct prog *p, struct memory *m, struct buf *b, uint32_t len, unsigned max)
{
	uint32_t at = 0, left = len;

	b->n = 1 + below(p, max);
	b->slot = slot_take(m);
	if (b->slot < 0)
		return false;
	b->mem = m->slots + (size_t)b->slot * (m->slot_size + RED);
	for (unsigned i = 0; i < b->n; i++) {
		uint32_t part = i + 1 == b->n ? left : below(p, 2 * left / (b->n - i) + 1);

		part = ur_min_u32(part, left);
		b->piece[i] = (struct piece){b->mem + at, part};
		left -= part;
		at += part + (one_in(p, 2) ? below(p, 16) : 0);
	}
	b->extent = (at + 16) & ~15u;
	return true;
}

void buf_fill(const struct buf *b, uint64_t tag, uint32_t pos)
{
	for (unsigned i = 0; i < b->n; pos += b->piece[i++].len)
		pattern(b->piece[i].p, tag, pos, b->piece[i].len);
}

void buf_poison(const struct buf *b)
{
	memset(b->mem, POISON, b->extent);
}

static uint8_t scratch[SCRATCH], wanted[SCRATCH];

void buf_peek(const struct buf *b, void *to, uint32_t n)
{
	for (unsigned i = 0; i < b->n && n; i++) {
		uint32_t part = ur_min_u32(n, b->piece[i].len);

		memcpy(to, b->piece[i].p, part);
		to = (uint8_t *)to + part;
		n -= part;
	}
}

/* What one piece should look like, at scratch: `skip` bytes as they are, `len` of the pattern, and the rest untouched or (loose) as it is.
 */
static void expect_piece(const struct buf *b, const struct piece *pc, uint64_t tag, uint32_t pos, uint32_t skip, uint32_t len, bool loose)
{
	uint8_t *to = scratch + (pc->p - b->mem);

	memcpy(to, pc->p, loose ? pc->len : skip);
	pattern(to + skip, tag, pos, len);
}

bool buf_holds(const struct buf *b, uint64_t tag, uint32_t pos, uint32_t skip, uint32_t len, bool loose)
{
	memset(scratch, POISON, b->extent);
	for (unsigned i = 0; i < b->n; i++) {
		uint32_t head = ur_min_u32(skip, b->piece[i].len), part = ur_min_u32(len, b->piece[i].len - head);

		expect_piece(b, &b->piece[i], tag, pos, head, part, loose);
		skip -= head;
		pos += part;
		len -= part;
	}
	return memcmp(scratch, b->mem, b->extent) == 0;
}

/* --- boards --- */

struct view { /* who looks when */
	uint64_t t0, t1;
	const struct sim_op *op; /* or NULL */
};

static bool same_qp(const struct version *a, const struct sim_qp *q, unsigned epoch)
{
	return a->qp && a->qp == q && a->epoch == epoch;
}

/* Had v surely been executed, all of it, before anything of the view was seen? */
static bool was_whole(const struct version *v, const struct view *w)
{
	return v->sure && (v->done <= w->t0 || (w->op && same_qp(v, w->op->qp, w->op->epoch) && v->seq < w->op->seq));
}

/* Is it certain that v stands where u stood, before anything of the view was seen? */
static bool ends(const struct version *v, const struct version *u, const struct view *w)
{
	if (v == u || !v->used || !was_whole(v, w))
		return false;
	return v->posted > u->done || (u->qp && same_qp(v, u->qp, u->epoch) && v->seq > u->seq);
}

static bool may_be(const struct board *bd, const struct version *u, uint32_t from, uint32_t to, const struct view *w)
{
	if (!u->used || u->posted > w->t1 || u->from > from || u->to < to)
		return false;
	/* What stands behind a fence waits for READs and atomics before it. */
	if (w->op && same_qp(u, w->op->qp, w->op->epoch) && u->fence > w->op->seq + 1)
		return false;
	for (unsigned i = 0; i < VERSIONS; i++)
		if (bd->v[i].from <= from && bd->v[i].to >= to && ends(&bd->v[i], u, w))
			return false;
	return true;
}

static uint32_t bad_at;

uint32_t board_bad(void)
{
	return bad_at;
}

#define STALE_RIGHT 64 /* END of transport/packet/bulk.c */

/*
 * Payload in the middle of a message is written before its ICRC is known (transport/packet/rx_walk.h). When it was corrupted, anything may
 * be there until the right packet comes: for ever, if the WRITE was given up. Of one that was executed, a READ that was answered meanwhile
 * may have brought it, even one posted before the WRITE, without a fence between them. Never in the first packet nor in the last.
 */
static bool may_be_damaged(const struct board *bd, const struct version *u, uint32_t at, const struct view *w)
{
	const uint32_t off = at - u->from, len = u->to - u->from;

	/* A process whose WRITE was given up has other things where the payload was, of which the last bytes alone wait for the token. */
	if (bd->stale && u->ended && !u->sure && u->qp && u->qp->svc == RC && off + STALE_RIGHT < len)
		return true;
	return bd->damaged && !was_whole(u, w) && u->qp && u->qp->svc == RC && off >= bd->damaged &&
	       off < (len - 1) / bd->damaged * bd->damaged;
}

static bool mixed(const struct board *bd, const uint8_t *got, const struct version *const *may, unsigned n, uint32_t from, uint32_t to,
		  const struct view *w)
{
	for (uint32_t p = from; p < to; p++) {
		bool found = false;

		for (unsigned i = 0; i < n && !found; i++)
			found = byte_of(may[i]->tag, p) == got[p - from] || may_be_damaged(bd, may[i], p, w);
		if (!found) {
			bad_at = p;
			return false;
		}
	}
	return true;
}

/* [from, to) is covered by the same versions throughout. */
static bool segment_ok(const struct board *bd, const uint8_t *got, uint32_t from, uint32_t to, const struct view *w)
{
	const struct version *may[VERSIONS];
	unsigned n = 0;

	for (unsigned i = 0; i < VERSIONS; i++)
		if (may_be(bd, &bd->v[i], from, to, w))
			may[n++] = &bd->v[i];
	for (unsigned i = 0; i < n; i++) {
		pattern(wanted, may[i]->tag, from, to - from);
		if (!memcmp(wanted, got, to - from))
			return true;
	}
	return mixed(bd, got, may, n, from, to, w);
}

static bool view_ok(const struct board *bd, const uint8_t *got, uint32_t pos, uint32_t len, const struct view *w)
{
	uint32_t end = pos + len, next;

	for (uint32_t from = pos; from < end; from = next) {
		next = end;
		for (unsigned i = 0; i < VERSIONS; i++) {
			const struct version *v = &bd->v[i];

			if (v->used && v->from > from)
				next = ur_min_u32(next, v->from);
			if (v->used && v->to > from)
				next = ur_min_u32(next, v->to);
		}
		if (!segment_ok(bd, got + (from - pos), from, next, w))
			return false;
	}
	return true;
}

bool board_ok(const struct board *bd, uint32_t pos, uint32_t len, uint64_t now)
{
	const struct view w = {now, now, NULL};

	return view_ok(bd, bd->mem + pos, pos, len, &w);
}

bool buf_holds_board(const struct buf *b, const struct board *bd, uint32_t pos, uint32_t len, uint64_t t0, uint64_t t1,
		     const struct sim_op *op)
{
	const struct view w = {t0, t1, op};
	uint32_t at = 0;

	for (unsigned i = 0; i < b->n; at += b->piece[i++].len) {
		memcpy(scratch + at, b->piece[i].p, b->piece[i].len);
		memset(b->piece[i].p, POISON, b->piece[i].len);
	}
	return view_ok(bd, scratch, pos, len, &w) && buf_holds(b, 0, 0, 0, 0, false);
}

static void forget_ended(struct board *bd, uint64_t now)
{
	const struct view w = {now, now, NULL};

	for (unsigned i = 0; i < VERSIONS; i++)
		for (unsigned k = 0; k < VERSIONS && bd->v[i].used; k++)
			if (bd->v[k].from <= bd->v[i].from && bd->v[k].to >= bd->v[i].to && ends(&bd->v[k], &bd->v[i], &w))
				bd->v[i].used = false;
}

struct version *board_write(struct board *bd, const struct sim_op *op, uint64_t now)
{
	if (!bd->readers)
		forget_ended(bd, now);
	for (unsigned i = 0; i < VERSIONS; i++) {
		struct version *v = &bd->v[i];

		if (v->used)
			continue;
		*v = (struct version){.tag = op->tag,
				      .from = op->at,
				      .to = op->at + op->len,
				      .posted = now,
				      .done = NEVER,
				      .qp = op->qp,
				      .epoch = op->epoch,
				      .seq = op->seq,
				      .used = true};
		v->fence = op->fence ? op->seq + 1 : op->qp->fence;
		return v;
	}
	return NULL;
}

void boards_quiet(struct memory *m, uint64_t now)
{
	for (unsigned i = 0; i < BOARDS; i++)
		for (unsigned k = 0; k < VERSIONS; k++)
			if (m->board[i].v[k].ended && m->board[i].v[k].done == NEVER)
				m->board[i].v[k].done = now;
}
