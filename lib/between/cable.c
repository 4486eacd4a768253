/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "between/between.h"
#include "between/hold.h"

#define NOT_ROCE (1ull << 40) /* the key of what is to no QP */

struct ur_between {
	struct ur_between_limit limit;
	struct ur_between_host host;
	struct ur_rng rng;
	struct ur_fault_flows *flows;
	struct ur_hold *hold; /* NULL: nothing has ever been to be held */
	struct ur_account account;
	struct ur_fault_origin origin;
	/* by the end where frames leave: */
	ur_time busy_until[2]; /* how long what waits takes at the rate of now */
	ur_time last_due[2];   /* when the last frame of the queue leaves, perhaps by an earlier rate */
	unsigned nrules, active, last_number;
	struct ur_between_rule rule[UR_BETWEEN_RULES];
};

/* A frame on its way through. */
struct passing {
	struct ur_fault_frame frame;
	struct ur_fault_pkt seen;
	struct ur_between_fate fate;
	ur_time now, leaves; /* the bottleneck, or now */
	unsigned end;        /* where it came in */
	uint8_t *bytes;
	uint32_t len;
	const uint8_t *extra;
};

struct ur_between *ur_between_create(uint64_t seed, const struct ur_between_host *host)
{
	struct ur_between *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->host = *host;
	b->rng.state = seed;
	b->flows = ur_fault_flows_create();
	if (b->flows)
		return b;
	free(b);
	return NULL;
}

void ur_between_destroy(struct ur_between *b)
{
	if (!b)
		return;
	ur_fault_flows_destroy(b->flows);
	ur_hold_destroy(b->hold);
	free(b);
}

/* --- what is to become of frames --- */

static bool can_hold(struct ur_between *b)
{
	if (!b->hold)
		b->hold = ur_hold_create();
	return b->hold;
}

/* The oldest one that was deleted makes room, if need be. */
static struct ur_between_rule *place(struct ur_between *b)
{
	for (unsigned i = 0; b->nrules == UR_BETWEEN_RULES && i < b->nrules; i++)
		if (b->rule[i].deleted)
			memmove(&b->rule[i], &b->rule[i + 1], (--b->nrules - i) * sizeof(b->rule[0]));
	return b->nrules < UR_BETWEEN_RULES ? &b->rule[b->nrules++] : NULL;
}

unsigned ur_between_add(struct ur_between *b, ur_time now, const struct ur_fault_rule *r, const char *text)
{
	const bool holds = r->delay; /* one that reorders has patience */
	struct ur_between_rule *to = holds && !can_hold(b) ? NULL : place(b);

	if (!to)
		return 0;
	*to = (struct ur_between_rule){.row.rule = *r, .number = ++b->last_number, .base = now};
	strncpy(to->text, text, sizeof(to->text) - 1);
	b->active++;
	return to->number;
}

bool ur_between_delete(struct ur_between *b, unsigned number)
{
	for (unsigned i = 0; i < b->nrules; i++) {
		if (b->rule[i].number != number || b->rule[i].deleted)
			continue;
		b->rule[i].deleted = true;
		b->active--;
		return true;
	}
	return false;
}

const struct ur_between_rule *ur_between_rule(const struct ur_between *b, unsigned i)
{
	return i < b->nrules ? &b->rule[i] : NULL;
}

static uint64_t scale(uint64_t n, uint64_t by, uint64_t to)
{
	return (uint64_t)((unsigned __int128)n * by / to);
}

int ur_between_set_limit(struct ur_between *b, ur_time now, const struct ur_between_limit *l)
{
	if (l->rate && !can_hold(b))
		return ENOMEM;
	for (unsigned i = 0; i < 2; i++)
		if (b->busy_until[i] > now)
			b->busy_until[i] = now + (l->rate ? scale(b->busy_until[i] - now, b->limit.rate, l->rate) : 0);
	b->limit = *l;
	return 0;
}

const struct ur_between_limit *ur_between_limit(const struct ur_between *b)
{
	return &b->limit;
}

/* --- what becomes of a frame --- */

static void describe(struct ur_between *b, struct passing *p, uint32_t whole)
{
	const bool roce = ur_fault_find_frame(p->bytes, p->len, &p->frame);

	p->seen = (struct ur_fault_pkt){
		.dir = p->end ? UR_FAULT_RX : UR_FAULT_TX, .bth = roce ? &p->frame.bth : NULL, .since = ur_fault_since(&b->origin, p->now)};
	if (roce)
		ur_fault_flows_see(b->flows, p->seen.dir, &p->frame.bth, &p->frame.dst, &p->seen.place);
	ur_account_packet(&b->account, p->now, p->end, roce ? &p->frame : NULL, &p->seen.place, p->bytes, p->len, whole);
}

/* Every rule sees what an earlier one has left. */
static void apply_rules(struct ur_between *b, struct passing *p)
{
	static const unsigned did[] = {
		[UR_FAULT_DROP] = UR_DID_DROP,       [UR_FAULT_DUPLICATE] = UR_DID_DUPLICATE, [UR_FAULT_DELAY] = UR_DID_DELAY,
		[UR_FAULT_REORDER] = UR_DID_REORDER, [UR_FAULT_CORRUPT] = UR_DID_CORRUPT,     [UR_FAULT_MARK] = UR_DID_MARK};

	for (unsigned i = 0; i < b->nrules && !(p->fate.did & UR_DID_DROP); i++) {
		struct ur_between_rule *row = &b->rule[i];
		const struct ur_fault_rule *r = &row->row.rule;

		p->seen.since = p->now - (row->base ? row->base : b->origin.began);
		if (row->deleted || !ur_fault_row_acts(&row->row, &p->seen, &b->rng))
			continue;
		p->fate.did |= did[r->action];
		if (!p->fate.rule)
			p->fate.rule = row->number;
		p->fate.delay += r->action == UR_FAULT_DELAY ? r->delay : 0;
		p->fate.twin = r->action == UR_FAULT_DUPLICATE ? r->delay : p->fate.twin;
		if (r->action != UR_FAULT_REORDER)
			continue;
		p->fate.by = r->by;
		p->fate.patience = r->delay;
	}
}

/* A queue in front of a slower line. */
static void enter_queue(struct ur_between *b, struct passing *p)
{
	ur_time *busy = &b->busy_until[!p->end];
	uint64_t depth;

	p->leaves = ur_max_time(b->last_due[!p->end], p->now); /* what waits since there was another limit is not overtaken */
	if (!b->limit.rate || p->fate.did & UR_DID_LOSE)
		return;
	*busy = ur_max_time(*busy, p->now);
	depth = scale(*busy - p->now, b->limit.rate, 8 * UR_NS_PER_S);
	if (depth + p->len > b->limit.queue) {
		p->fate.did |= UR_DID_OVERFLOW;
		return;
	}
	if (b->limit.mark_at && depth > b->limit.mark_at && ur_fault_set_ce(p->bytes, p->len, false))
		p->fate.did |= UR_DID_QUEUE_MARK;
	*busy += p->len * 8 * UR_NS_PER_S / b->limit.rate;
	p->leaves = b->last_due[!p->end] = ur_max_time(*busy, p->leaves);
}

/* --- what is done --- */

/* `twin`: the second one of two. */
static bool let_out(struct ur_between *b, struct passing *p, bool twin)
{
	const uint64_t key = (uint64_t)p->end << 32 | (p->seen.bth ? p->frame.bth.dqpn : NOT_ROCE);
	const unsigned to = !p->end;
	const ur_time due = p->leaves + (twin ? p->fate.twin : p->fate.delay);

	if (!twin && p->fate.did & UR_DID_REORDER)
		return ur_hold_passed(b->hold, due + p->fate.patience, p->fate.by, key, to, p->bytes, p->len, p->extra);
	if (due > p->now) {
		if (!ur_hold_until(b->hold, due, to, p->bytes, p->len, p->extra))
			return false;
	} else {
		b->host.send(b->host.ctx, to, p->bytes, p->len, p->extra);
	}
	if (b->hold && !(twin && p->fate.twin))
		ur_hold_passes(b->hold, key);
	return true;
}

static void act(struct ur_between *b, struct passing *p)
{
	if (p->fate.did & UR_DID_LOSE)
		return;
	if (p->fate.did & UR_DID_CORRUPT)
		ur_fault_flip_bit(p->bytes, p->len, &b->rng);
	if (p->fate.did & UR_DID_MARK)
		ur_fault_set_ce(p->bytes, p->len, true);
	if (p->fate.did & UR_DID_DUPLICATE)
		let_out(b, p, true);
	if (!let_out(b, p, false))
		p->fate.did |= UR_DID_NO_ROOM;
}

void ur_between_in(struct ur_between *b, ur_time now, unsigned end, uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	struct passing p = {.now = now, .end = end, .bytes = frame, .len = len, .extra = extra};

	describe(b, &p, len);
	apply_rules(b, &p);
	enter_queue(b, &p);
	if (b->host.judged)
		b->host.judged(b->host.ctx, now, end, frame, len, &p.fate);
	act(b, &p);
	if (p.seen.place.known && !(p.fate.did & UR_DID_HARM))
		ur_fault_flows_arrived(b->flows, &p.seen.place, p.frame.bth.psn);
	ur_account_fate(&b->account, now, end, p.seen.bth ? &p.frame : NULL, &p.seen.place, &p.fate);
	ur_between_run(b, now);
}

void ur_between_note(struct ur_between *b, ur_time now, unsigned end, const uint8_t *frame, uint32_t have, uint32_t len)
{
	const struct ur_between_fate none = {.did = 0};
	struct passing p = {.now = now, .end = end, .bytes = (uint8_t *)(uintptr_t)frame, .len = have};

	describe(b, &p, len);
	if (b->host.judged)
		b->host.judged(b->host.ctx, now, end, frame, have, &none);
	if (p.seen.place.known)
		ur_fault_flows_arrived(b->flows, &p.seen.place, p.frame.bth.psn);
}

void ur_between_run(struct ur_between *b, ur_time now)
{
	struct ur_held *f;

	while (b->hold && (f = ur_hold_take(b->hold, now))) {
		b->host.send(b->host.ctx, f->end, f->bytes, f->len, f->extra);
		ur_hold_give(b->hold, f);
	}
}

ur_time ur_between_next(const struct ur_between *b)
{
	return b->hold ? ur_hold_next(b->hold) : UR_TIME_NEVER;
}

bool ur_between_acts(const struct ur_between *b)
{
	return b->active || b->limit.rate || ur_between_next(b) != UR_TIME_NEVER;
}

const struct ur_account *ur_between_account(const struct ur_between *b)
{
	return &b->account;
}
