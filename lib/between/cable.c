/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>

#include "between/between.h"
#include "between/hold.h"
#include "between/line.h"
#include "fault/change.h"
#include "fault/conns.h"

#define NOT_ROCE (1ull << 40) /* the key of what is to no QP */

struct ur_between {
	struct ur_between_limit limit;
	struct ur_between_host host;
	struct ur_rng rng;
	struct ur_fault_flows *flows;
	struct ur_fault_conns *conns;
	struct ur_hold *hold; /* NULL: nothing has ever been to be held */
	struct ur_account account;
	struct ur_fault_origin origin;
	struct ur_line line[2]; /* by the end where frames leave */
	unsigned nrules, active, last_number;
	bool by_service; /* there has been a rule that asks for the service of packets */
	struct ur_between_rule rule[UR_BETWEEN_RULES];
};

/* A frame on its way through. */
struct passing {
	struct ur_fault_frame frame, left; /* as it came in; as trimming will have left it */
	struct ur_fault_pkt seen;
	struct ur_between_fate fate;
	const struct ur_fault_rule *change[UR_BETWEEN_CHANGES];
	unsigned nchanges;
	ur_time now;
	unsigned end; /* where it came in */
	uint8_t *bytes;
	uint32_t len, cut; /* bytes that will be cut off */
	const uint8_t *extra;
	bool spoiled; /* nobody could send it so that it arrives damaged: it is lost */
};

/* A frame that leaves: one that comes in, or that was held. */
struct leaving {
	unsigned to;
	const uint8_t *bytes;
	uint32_t len;
	const uint8_t *extra;
	uint64_t key;
	const struct ur_between_fate *fate;
	const struct ur_fault_place *place;
	struct ur_held *held; /* NULL: the bytes are the caller's */
};

struct ur_between *ur_between_create(uint64_t seed, const struct ur_between_host *host)
{
	struct ur_between *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->host = *host;
	b->rng.state = seed;
	b->flows = ur_fault_flows_create();
	b->conns = ur_fault_conns_create();
	if (b->flows && b->conns)
		return b;
	ur_between_destroy(b);
	return NULL;
}

void ur_between_destroy(struct ur_between *b)
{
	if (!b)
		return;
	ur_fault_flows_destroy(b->flows);
	ur_fault_conns_destroy(b->conns);
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
static struct ur_between_rule *new_rule(struct ur_between *b)
{
	for (unsigned i = 0; b->nrules == UR_BETWEEN_RULES && i < b->nrules; i++)
		if (b->rule[i].deleted)
			memmove(&b->rule[i], &b->rule[i + 1], (--b->nrules - i) * sizeof(b->rule[0]));
	return b->nrules < UR_BETWEEN_RULES ? &b->rule[b->nrules++] : NULL;
}

unsigned ur_between_add(struct ur_between *b, ur_time now, const struct ur_fault_rule *r, const char *text)
{
	const bool holds = r->delay; /* so has one that reorders, or holds until something comes */
	struct ur_between_rule *to = holds && !can_hold(b) ? NULL : new_rule(b);

	if (!to)
		return 0;
	*to = (struct ur_between_rule){.row.rule = *r, .number = ++b->last_number, .base = now};
	strncpy(to->text, text, sizeof(to->text) - 1);
	b->active++;
	b->by_service |= r->on.service || r->until.service;
	return to->number;
}

/* One that has not been deleted. */
static struct ur_between_rule *rule_of(struct ur_between *b, unsigned number)
{
	for (unsigned i = 0; i < b->nrules; i++)
		if (b->rule[i].number == number && !b->rule[i].deleted)
			return &b->rule[i];
	return NULL;
}

bool ur_between_delete(struct ur_between *b, ur_time now, unsigned number)
{
	struct ur_between_rule *row = rule_of(b, number);

	if (!row)
		return false;
	row->deleted = true;
	b->active--;
	ur_between_release(b, now, number);
	return true;
}

const struct ur_between_rule *ur_between_rule(const struct ur_between *b, unsigned i)
{
	return i < b->nrules ? &b->rule[i] : NULL;
}

unsigned ur_between_release(struct ur_between *b, ur_time now, unsigned number)
{
	return b->hold && ur_hold_parked(b->hold, 0) ? ur_hold_release(b->hold, now, number) : 0;
}

static void send_pause(struct ur_between *b, unsigned end, const uint8_t *frame)
{
	static const uint8_t extra[UR_BETWEEN_EXTRA];

	b->host.send(b->host.ctx, end, frame, UR_BETWEEN_PAUSE_FRAME, extra);
}

/* The host whose frames leave at `to`. */
static void tell_to_pause(struct ur_between *b, ur_time now, unsigned to)
{
	uint8_t frame[UR_BETWEEN_PAUSE_FRAME];

	if (ur_line_pauses(&b->line[to], &b->limit, now, frame))
		send_pause(b, !to, frame);
}

void ur_between_unpause(struct ur_between *b)
{
	uint8_t frame[UR_BETWEEN_PAUSE_FRAME];

	for (unsigned to = 0; to < 2; to++)
		if (ur_line_unpauses(&b->line[to], &b->limit, frame))
			send_pause(b, !to, frame);
}

const struct ur_between_pauses *ur_between_pauses(const struct ur_between *b, unsigned end)
{
	return &b->line[!end].pauses;
}

int ur_between_set_limit(struct ur_between *b, ur_time now, const struct ur_between_limit *l)
{
	if (l->rate && !can_hold(b))
		return ENOMEM;
	ur_between_unpause(b);
	for (unsigned to = 0; to < 2; to++)
		ur_line_change(&b->line[to], now, &b->limit, l);
	b->limit = *l;
	for (unsigned to = 0; to < 2; to++)
		tell_to_pause(b, now, to);
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

	p->seen = (struct ur_fault_pkt){.dir = p->end ? UR_FAULT_RX : UR_FAULT_TX,
					.bth = roce ? &p->frame.bth : NULL,
					.frame = roce ? &p->frame : NULL,
					.since = ur_fault_since(&b->origin, p->now)};
	if (roce) {
		ur_fault_flows_see(b->flows, p->seen.dir, &p->frame.bth, &p->frame.dst, &p->seen.place);
		ur_fault_conns_see(b->conns, p->bytes, &p->frame);
		if (b->by_service)
			p->frame.service = ur_fault_conns_service(b->conns, &p->frame.dst, p->frame.bth.dqpn);
	}
	ur_account_packet(&b->account, p->now, p->end, roce ? &p->frame : NULL, &p->seen.place, b->flows, p->bytes, p->len, whole);
}

static bool changes(const struct ur_fault_rule *r)
{
	return r->action == UR_FAULT_CORRUPT || r->action == UR_FAULT_MARK || r->action == UR_FAULT_TRIM;
}

/* Is there no room for what the rule would do? */
static bool is_full(const struct ur_between *b, const struct passing *p, const struct ur_between_rule *row)
{
	const struct ur_fault_rule *r = &row->row.rule;

	if (r->action != UR_FAULT_HOLD)
		return changes(r) && p->nchanges == UR_BETWEEN_CHANGES;
	return p->fate.did & UR_DID_HOLD || (ur_hold_parked(b->hold, 0) >= r->most && ur_hold_parked(b->hold, row->number) >= r->most);
}

/* Later rules see what will be left. */
static void plan_trim(struct passing *p, const struct ur_fault_rule *r)
{
	if (p->seen.frame != &p->left)
		p->left = p->frame;
	p->cut = p->len - (p->left.end - (p->left.payload - r->keep));
	p->left.end -= p->left.payload - r->keep;
	p->left.payload = r->keep;
	p->seen.frame = &p->left;
}

static void note_rule(struct passing *p, const struct ur_between_rule *row)
{
	static const unsigned did[UR_FAULT_ACTIONS] = {[UR_FAULT_DROP] = UR_DID_DROP,       [UR_FAULT_DUPLICATE] = UR_DID_DUPLICATE,
						       [UR_FAULT_DELAY] = UR_DID_DELAY,     [UR_FAULT_REORDER] = UR_DID_REORDER,
						       [UR_FAULT_CORRUPT] = UR_DID_CORRUPT, [UR_FAULT_MARK] = UR_DID_MARK,
						       [UR_FAULT_TRIM] = UR_DID_TRIM,       [UR_FAULT_HOLD] = UR_DID_HOLD};
	const struct ur_fault_rule *r = &row->row.rule;
	struct ur_between_fate *fate = &p->fate;

	fate->did |= r->action == UR_FAULT_CORRUPT && r->fix ? UR_DID_ALTER : did[r->action];
	if (!fate->rule)
		fate->rule = row->number;
	if (changes(r))
		p->change[p->nchanges++] = r;
	if (r->action == UR_FAULT_DELAY)
		fate->delay += r->delay;
	if (r->action == UR_FAULT_DUPLICATE)
		fate->twin = r->delay;
	if (r->action == UR_FAULT_TRIM)
		plan_trim(p, r);
	if (r->action == UR_FAULT_REORDER) {
		fate->by = r->by;
		fate->patience = r->delay;
	}
	if (r->action == UR_FAULT_HOLD) {
		fate->holder = row->number;
		fate->held_for = r->delay;
	}
}

/* Every rule sees what an earlier one has left. */
static void apply_rules(struct ur_between *b, struct passing *p)
{
	for (unsigned i = 0; i < b->nrules && !(p->fate.did & UR_DID_DROP); i++) {
		struct ur_between_rule *row = &b->rule[i];

		p->seen.since = p->now - ur_min_time(row->base ? row->base : b->origin.began, p->now);
		if (!row->deleted && !is_full(b, p, row) && ur_fault_row_acts(&row->row, &p->seen, &b->rng))
			note_rule(p, row);
	}
}

/* Has it to wait for the line? What waits since there was a limit is not overtaken. */
static bool waits(struct ur_between *b, struct passing *p)
{
	const struct ur_line *w = &b->line[!p->end];

	return (b->limit.rate || w->first) && !(p->fate.did & UR_DID_LOSE);
}

static void judge_by_queue(struct ur_between *b, struct passing *p)
{
	const uint64_t depth = ur_line_depth(&b->line[!p->end], &b->limit, p->now);

	if (b->limit.rate && depth + p->len - p->cut > b->limit.queue)
		p->fate.did |= UR_DID_OVERFLOW;
	else if (ur_line_marks(&b->limit, depth, &b->rng) && ur_fault_set_ce(p->bytes, p->len, false))
		p->fate.did |= UR_DID_QUEUE_MARK;
}

/* --- what is done --- */

/* What is released by it leaves with the run that follows. */
static void release_by(struct ur_between *b, ur_time now, const struct leaving *v)
{
	struct ur_fault_frame frame;
	const bool roce = ur_fault_find_frame(v->bytes, v->len, &frame);
	const struct ur_fault_pkt seen = {.dir = v->to ? UR_FAULT_TX : UR_FAULT_RX,
					  .bth = roce ? &frame.bth : NULL,
					  .frame = roce ? &frame : NULL,
					  .place = *v->place};

	if (roce && b->by_service)
		frame.service = ur_fault_conns_service(b->conns, &frame.dst, frame.bth.dqpn);
	for (unsigned i = 0; i < b->nrules; i++) {
		const struct ur_fault_rule *r = &b->rule[i].row.rule;

		if (r->ends == UR_FAULT_UNTIL_PACKET && !b->rule[i].deleted && ur_fault_matches(&r->until, &seen))
			ur_hold_release(b->hold, now, b->rule[i].number);
	}
}

static void deliver(struct ur_between *b, ur_time now, const struct leaving *v)
{
	b->host.send(b->host.ctx, v->to, v->bytes, v->len, v->extra);
	if (b->hold && ur_hold_parked(b->hold, 0))
		release_by(b, now, v);
}

static struct ur_held *own(struct ur_between *b, const struct leaving *v)
{
	struct ur_held *f = v->held ? v->held : ur_hold_copy(b->hold, v->to, v->bytes, v->len, v->extra);

	if (!f)
		return NULL;
	f->fate = *v->fate;
	f->place = *v->place;
	f->key = v->key;
	return f;
}

/* The second one of two. There may be no room for it. */
static void twin(struct ur_between *b, ur_time now, const struct leaving *v)
{
	struct leaving copy = *v;
	struct ur_held *f;

	copy.held = NULL;
	if (!v->fate->twin) {
		deliver(b, now, v);
		if (b->hold)
			ur_hold_passes(b->hold, v->key);
	} else if ((f = own(b, &copy))) {
		ur_hold_until(b->hold, now + v->fate->twin, f);
	}
}

/* False: it has to wait, and there is no room. */
static bool wait_further(struct ur_between *b, ur_time now, const struct leaving *v)
{
	const struct ur_between_fate *fate = v->fate;
	struct ur_held *f = own(b, v);
	bool ok = f;

	if (ok && fate->did & UR_DID_HOLD)
		ok = ur_hold_park(b->hold, now + fate->held_for, f);
	else if (ok && fate->did & UR_DID_REORDER)
		ok = ur_hold_passed(b->hold, now + fate->delay + fate->patience, fate->by, f);
	else if (ok)
		ur_hold_until(b->hold, now + fate->delay, f);
	if (!ok && f && !v->held)
		ur_hold_give(b->hold, f);
	return ok;
}

/* It has left the bottleneck, if there is one. False: there is no room for it; one that was held leaves at once then. */
static bool let_out(struct ur_between *b, ur_time now, const struct leaving *v)
{
	const bool further = v->fate->delay || v->fate->did & (UR_DID_HOLD | UR_DID_REORDER);

	if (v->fate->did & UR_DID_DUPLICATE)
		twin(b, now, v);
	if (further && wait_further(b, now, v)) {
		if (!(v->fate->did & (UR_DID_HOLD | UR_DID_REORDER)))
			ur_hold_passes(b->hold, v->key);
		return true;
	}
	if (further && !v->held)
		return false;
	deliver(b, now, v);
	if (b->hold)
		ur_hold_passes(b->hold, v->key);
	if (v->held)
		ur_hold_give(b->hold, v->held);
	return true;
}

static const uint8_t complete[UR_BETWEEN_EXTRA];

/*
 * Who computes the checksums that a corrupted frame still lacks would make them right, and nobody would see the damage. A RoCEv2 packet has
 * its ICRC; another frame leaves as it is, with what stands there in place of a checksum, and a train of them, which has to be cut, does
 * not.
 */
static void corrupt(struct ur_between *b, struct passing *p, const struct ur_fault_rule *r)
{
	struct virtio_net_hdr vnet;

	if (ur_fault_corrupt(p->bytes, p->len, &p->frame, r, &b->rng)) {
		p->extra = complete;
	} else if (!p->seen.bth) {
		memcpy(&vnet, p->extra, sizeof(vnet));
		p->spoiled |= vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE;
		p->extra = complete;
	}
}

static void change(struct ur_between *b, struct passing *p)
{
	for (unsigned i = 0; i < p->nchanges; i++) {
		const struct ur_fault_rule *r = p->change[i];

		if (r->action == UR_FAULT_MARK) {
			ur_fault_set_ce(p->bytes, p->len, true);
		} else if (r->action == UR_FAULT_TRIM) {
			p->len = ur_fault_trim(p->bytes, p->len, &p->frame, r);
			p->extra = complete;
		} else {
			corrupt(b, p, r);
		}
	}
}

static void act(struct ur_between *b, struct passing *p, bool queued)
{
	const uint64_t key = (uint64_t)p->end << 32 | (p->seen.bth ? p->frame.bth.dqpn : NOT_ROCE);
	struct ur_held *f;
	struct leaving v;

	if (p->fate.did & UR_DID_LOSE)
		return;
	change(b, p);
	if (p->spoiled)
		return;
	v = (struct leaving){
		.to = !p->end, .bytes = p->bytes, .len = p->len, .extra = p->extra, .key = key, .fate = &p->fate, .place = &p->seen.place};
	if (!queued) {
		if (!let_out(b, p->now, &v))
			p->fate.did |= UR_DID_NO_ROOM;
		return;
	}
	f = own(b, &v);
	if (f)
		ur_line_put(&b->line[v.to], &b->limit, p->now, f);
	else
		p->fate.did |= UR_DID_NO_ROOM;
	tell_to_pause(b, p->now, v.to);
}

void ur_between_in(struct ur_between *b, ur_time now, unsigned end, uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	struct passing p = {.now = now, .end = end, .bytes = frame, .len = len, .extra = extra};
	bool queued;

	if (b->hold)
		ur_between_run(b, now);
	describe(b, &p, len);
	if (ur_line_obeys(&b->line[end], &b->limit, now, frame, len)) {
		b->line[!end].pauses.obeyed++;
		return;
	}
	apply_rules(b, &p);
	queued = waits(b, &p);
	if (queued)
		judge_by_queue(b, &p);
	if (b->host.judged)
		b->host.judged(b->host.ctx, now, end, frame, len, &p.fate);
	act(b, &p, queued);
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

/* What has waited long enough. */
static void let_held_out(struct ur_between *b, ur_time due, ur_time now)
{
	struct ur_held *f;

	while ((f = ur_hold_take(b->hold, due))) {
		if (f->due)
			ur_account_left(&b->account, now, f->due, false);
		deliver(b, due, &(struct leaving){.to = f->end, .bytes = f->bytes, .len = f->len, .extra = f->extra, .place = &f->place});
		ur_hold_give(b->hold, f);
	}
}

static void let_line_out(struct ur_between *b, ur_time now, unsigned to)
{
	const ur_time due = b->line[to].due;
	struct ur_held *f = ur_line_take(&b->line[to], &b->limit, now);
	struct ur_between_fate fate;
	struct ur_fault_place place;

	if (!f)
		return;
	fate = f->fate;
	place = f->place;
	if (fate.did & UR_DID_HOLD && !rule_of(b, fate.holder)) /* it was deleted meanwhile */
		fate.did &= ~(unsigned)UR_DID_HOLD;
	ur_account_left(&b->account, now, due, true);
	let_out(b, due,
		&(struct leaving){.to = to,
				  .bytes = f->bytes,
				  .len = f->len,
				  .extra = f->extra,
				  .key = f->key,
				  .fate = &fate,
				  .place = &place,
				  .held = f});
	tell_to_pause(b, due, to);
}

/* In the order in which it is due. */
void ur_between_run(struct ur_between *b, ur_time now)
{
	while (b->hold) {
		const ur_time line[2] = {ur_line_next(&b->line[0]), ur_line_next(&b->line[1])};
		const unsigned to = line[1] < line[0];
		const ur_time held = ur_hold_next(b->hold);

		if (ur_min_time(held, line[to]) > now)
			break;
		if (line[to] <= held)
			let_line_out(b, now, to);
		else
			let_held_out(b, held, now);
	}
	for (unsigned to = 0; b->hold && to < 2; to++)
		if (ur_line_pause_next(&b->line[to]) <= now)
			tell_to_pause(b, now, to);
}

ur_time ur_between_next(const struct ur_between *b)
{
	ur_time next = b->hold ? ur_hold_next(b->hold) : UR_TIME_NEVER;

	for (unsigned to = 0; to < 2; to++)
		next = ur_min_time(next, ur_min_time(ur_line_next(&b->line[to]), ur_line_pause_next(&b->line[to])));
	return next;
}

bool ur_between_acts(const struct ur_between *b)
{
	return b->active || b->limit.rate || ur_between_next(b) != UR_TIME_NEVER;
}

const struct ur_account *ur_between_account(const struct ur_between *b)
{
	return &b->account;
}
