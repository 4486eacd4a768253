/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "wire/frame.h"

#define FAULT_HELD_MAX 64
#define FAULT_HOLD_NS (200 * UR_NS_PER_US) /* a reordered frame waits this long at the most */

struct held {
	struct ur_pkt *p;
	ur_time due;
	ur_fault_forward forward;
};

struct ur_faults {
	struct ur_fault_spec spec;
	struct ur_fault_row row[UR_FAULT_RULES];
	struct ur_fault_host host;
	ur_time now; /* of the current call */
	struct ur_rng rng;
	struct held held[FAULT_HELD_MAX];
	unsigned held_n;
};

/* --- the injector --- */

int ur_faults_create(const struct ur_fault_spec *s, const struct ur_fault_host *host, struct ur_faults **out)
{
	struct ur_faults *f = calloc(1, sizeof(*f));

	if (!f)
		return ENOMEM;
	f->spec = *s;
	f->host = *host;
	f->rng.state = s->seed;
	for (unsigned i = 0; i < s->nrules; i++)
		f->row[i].rule = s->rules[i];
	*out = f;
	return 0;
}

void ur_faults_destroy(struct ur_faults *f)
{
	for (unsigned i = 0; i < f->held_n; i++)
		ur_pkts_release(&f->held[i].p, 1);
	free(f);
}

static bool chance(struct ur_faults *f, uint32_t ppm, enum ur_counter c)
{
	if (!ppm || ur_rng_below(&f->rng, 1000000) >= ppm)
		return false;
	ur_count(f->host.counters, c);
	return true;
}

/* Never touches segments: they are the user's memory. */
static void corrupt(struct ur_faults *f, struct ur_pkt *p)
{
	if (p->len > UR_ETH_LEN)
		p->data[UR_ETH_LEN + ur_rng_below(&f->rng, p->len - UR_ETH_LEN)] ^= (uint8_t)(1u << ur_rng_below(&f->rng, 8));
}

static bool hold(struct ur_faults *f, struct ur_pkt *p, ur_time due, ur_fault_forward forward)
{
	if (f->held_n == FAULT_HELD_MAX)
		return false;
	f->held[f->held_n++] = (struct held){.p = p, .due = due, .forward = forward};
	return true;
}

static ur_time soon(struct ur_faults *f)
{
	return f->now + 1 + ur_rng_below(&f->rng, FAULT_HOLD_NS);
}

/* --- rules --- */

/* The BTH of a packet to send, or of one that has been received and not been parsed; NULL: it has none. */
static const struct ur_bth *bth_of(const struct ur_pkt *p, enum ur_fault_dir dir, struct ur_bth *to)
{
	bool bare = dir == UR_FAULT_RX && p->flags & UR_PKT_BARE, built = dir == UR_FAULT_TX && p->kind == UR_PKT_ROCE;

	if (built)
		return &p->bth;
	if (!bare)
		return ur_fault_find_bth(p->data, p->len, to) ? to : NULL;
	if (p->len < UR_BTH_LEN)
		return NULL;
	ur_bth_get(p->data, to);
	return to;
}

static void mark(struct ur_pkt *p)
{
	if (p->flags & UR_PKT_BARE)
		p->tos |= 3;
	else
		ur_fault_set_ce(p->data, p->len, true);
}

static const enum ur_counter counter_of[] = {[UR_FAULT_DROP] = UR_C_FAULT_DROP,
					     [UR_FAULT_DUPLICATE] = UR_C_FAULT_DUP,
					     [UR_FAULT_DELAY] = UR_C_FAULT_DELAY,
					     [UR_FAULT_CORRUPT] = UR_C_FAULT_CORRUPT,
					     [UR_FAULT_MARK] = UR_C_FAULT_MARK};

/* True when the packet is gone, or waits. */
static bool act(struct ur_faults *f, const struct ur_fault_rule *r, struct ur_pkt *p, ur_fault_forward forward)
{
	struct ur_pkt *d;

	ur_count(f->host.counters, counter_of[r->action]);
	switch (r->action) {
	case UR_FAULT_DROP: ur_pkts_release(&p, 1); return true;
	case UR_FAULT_DUPLICATE:
		d = f->host.copy(f->host.ctx, p);
		if (d)
			forward(f->host.ctx, &d, 1);
		return false;
	case UR_FAULT_DELAY: return hold(f, p, f->now + r->delay, forward);
	case UR_FAULT_CORRUPT: corrupt(f, p); return false;
	case UR_FAULT_MARK: mark(p); return false;
	}
	return false;
}

/* Every rule sees every packet that an earlier one has left. */
static bool apply_rules(struct ur_faults *f, enum ur_fault_dir dir, struct ur_pkt *p, ur_fault_forward forward)
{
	struct ur_bth room;
	const struct ur_bth *bth = bth_of(p, dir, &room);

	for (unsigned i = 0; i < f->spec.nrules; i++) {
		if (!ur_fault_row_acts(&f->row[i], dir, bth))
			continue;
		ur_count(f->host.counters, (enum ur_counter)(UR_C_FAULT_RULE1 + i));
		if (act(f, &f->row[i].rule, p, forward))
			return true;
	}
	return false;
}

/* --- chance --- */

static void apply_chance(struct ur_faults *f, struct ur_pkt *p, ur_fault_forward forward)
{
	struct ur_pkt *d;

	if (chance(f, f->spec.drop, UR_C_FAULT_DROP)) {
		ur_pkts_release(&p, 1);
		return;
	}
	if (chance(f, f->spec.dup, UR_C_FAULT_DUP) && (d = f->host.copy(f->host.ctx, p)))
		forward(f->host.ctx, &d, 1);
	if (chance(f, f->spec.corrupt, UR_C_FAULT_CORRUPT))
		corrupt(f, p);
	if (chance(f, f->spec.reorder, UR_C_FAULT_REORDER) && f->held_n < FAULT_HELD_MAX && hold(f, p, soon(f), forward))
		return;
	forward(f->host.ctx, &p, 1);
}

void ur_faults_apply(struct ur_faults *f, ur_time now, enum ur_fault_dir dir, struct ur_pkt **pkts, unsigned n, ur_fault_forward forward)
{
	f->now = now;
	if (!(f->spec.dir & dir) && !f->spec.nrules) {
		forward(f->host.ctx, pkts, n);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		if (f->spec.nrules && apply_rules(f, dir, pkts[i], forward))
			continue;
		if (f->spec.dir & dir)
			apply_chance(f, pkts[i], forward);
		else
			forward(f->host.ctx, &pkts[i], 1);
	}
}

void ur_faults_release(struct ur_faults *f, ur_time now)
{
	for (unsigned i = 0; i < f->held_n;) {
		struct held h = f->held[i];

		if (h.due > now) {
			i++;
			continue;
		}
		f->held[i] = f->held[--f->held_n];
		h.forward(f->host.ctx, &h.p, 1);
	}
}

ur_time ur_faults_next(const struct ur_faults *f)
{
	ur_time next = UR_TIME_NEVER;

	for (unsigned i = 0; i < f->held_n; i++)
		next = ur_min_time(next, f->held[i].due);
	return next;
}
