/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fault/flows.h"
#include "wire/frame.h"

#define FAULT_HELD_MAX 64
#define FAULT_HOLD_NS (200 * UR_NS_PER_US) /* a reordered frame waits this long at the most */

struct held {
	struct ur_pkt *p;
	ur_time due;
	uint32_t qpn;     /* of the packets that have to pass it first, */
	unsigned to_pass; /* how many more; 0: it does not wait for them */
	int rule;         /* which holds it until its packet passes; -1: none does */
	enum ur_fault_dir dir;
	ur_fault_forward forward;
};

struct ur_faults {
	struct ur_fault_spec spec;
	struct ur_fault_row row[UR_FAULT_RULES];
	unsigned holds[UR_FAULT_RULES]; /* how many frames each holds */
	struct ur_fault_host host;
	struct ur_fault_flows *flows; /* NULL while no rule asks where packets stand */
	ur_time now;                  /* of the current call */
	struct ur_fault_origin origin;
	struct ur_rng rng;
	struct held held[FAULT_HELD_MAX];
	unsigned held_n, to_be_passed; /* of them, how many wait for packets */
};

/* --- the injector --- */

static int open_flows(struct ur_faults *f)
{
	for (unsigned i = 0; i < f->spec.nrules && !f->flows; i++)
		if (ur_fault_rule_needs_place(&f->spec.rules[i]) && !(f->flows = ur_fault_flows_create()))
			return ENOMEM;
	return 0;
}

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
	if (open_flows(f)) {
		free(f);
		return ENOMEM;
	}
	*out = f;
	return 0;
}

void ur_faults_destroy(struct ur_faults *f)
{
	for (unsigned i = 0; i < f->held_n; i++)
		ur_pkts_release(&f->held[i].p, 1);
	ur_fault_flows_destroy(f->flows);
	free(f);
}

static bool chance(struct ur_faults *f, uint32_t ppm, enum ur_counter c)
{
	if (!ppm || ur_rng_below(&f->rng, UR_FAULT_PPM) >= ppm)
		return false;
	ur_count(f->host.counters, c);
	return true;
}

/* Never touches segments: they are the user's memory. */
static void corrupt(struct ur_faults *f, struct ur_pkt *p)
{
	ur_fault_flip_bit(p->data, p->len, &f->rng);
}

static bool hold(struct ur_faults *f, struct held h)
{
	if (f->held_n == FAULT_HELD_MAX)
		return false;
	f->held[f->held_n++] = h;
	f->to_be_passed += h.to_pass > 0;
	if (h.rule >= 0)
		f->holds[h.rule]++;
	return true;
}

/* UINT32_MAX of what is not RoCEv2. */
static uint32_t qpn_of(const struct ur_fault_pkt *seen)
{
	return seen->bth ? seen->bth->dqpn : UINT32_MAX;
}

/* Has given it away. */
static void let_go(struct ur_faults *f, unsigned i)
{
	struct held h = f->held[i];

	f->to_be_passed -= h.to_pass > 0;
	if (h.rule >= 0)
		f->holds[h.rule]--;
	memmove(&f->held[i], &f->held[i + 1], (--f->held_n - i) * sizeof(h));
	h.forward(f->host.ctx, &h.p, 1);
}

/* This packet has gone its way. */
static void passed(struct ur_faults *f, const struct ur_fault_pkt *seen)
{
	for (unsigned i = f->held_n; i-- > 0;) {
		struct held *h = &f->held[i];

		if (!h->to_pass || h->dir != seen->dir || h->qpn != qpn_of(seen))
			continue;
		if (h->to_pass == 1)
			let_go(f, i);
		else
			h->to_pass--;
	}
}

/* It has gone its way: what waits for it follows, in the order in which it came. */
static void ends_holds(struct ur_faults *f, const struct ur_fault_pkt *seen)
{
	for (unsigned r = 0; r < f->spec.nrules; r++) {
		struct held mine[FAULT_HELD_MAX];
		unsigned n = 0, left = 0;

		if (!f->holds[r] || f->row[r].rule.ends != UR_FAULT_UNTIL_PACKET || !ur_fault_matches(&f->row[r].rule.until, seen))
			continue;
		for (unsigned i = 0; i < f->held_n; i++)
			if (f->held[i].rule == (int)r)
				mine[n++] = f->held[i];
			else
				f->held[left++] = f->held[i];
		f->held_n = left;
		f->holds[r] = 0;
		for (unsigned i = 0; i < n; i++)
			mine[i].forward(f->host.ctx, &mine[i].p, 1);
	}
}

static ur_time soon(struct ur_faults *f)
{
	return f->now + 1 + ur_rng_below(&f->rng, FAULT_HOLD_NS);
}

/* --- rules --- */

/* Of a packet that is built, whose headers need not be looked for. */
static void read_built(const struct ur_pkt *p, struct ur_fault_frame *to)
{
	const uint8_t *ip = p->data + p->l3_off, *udp = p->data + p->bth_off - UR_UDP_LEN;

	to->bth = p->bth;
	if (p->ip_version == 4 && p->len >= p->l3_off + (uint32_t)UR_IP4_LEN) {
		to->src = ur_gid_from_v4_at(ip + 12);
		to->dst = ur_gid_from_v4_at(ip + 16);
	} else if (p->ip_version != 4 && p->len >= p->l3_off + (uint32_t)UR_IP6_LEN) {
		memcpy(to->src.raw, ip + 8, 16);
		memcpy(to->dst.raw, ip + 24, 16);
	}
	if (p->bth_off < UR_UDP_LEN || p->len < p->bth_off + (uint32_t)UR_BTH_LEN)
		return;
	to->sport = ur_get16(udp);
	to->syndrome = ur_fault_syndrome(p->data + p->bth_off, p->len - p->bth_off);
}

/* A packet to send, or one that has been received and not been parsed. False: it is not RoCEv2. */
static bool read_packet(const struct ur_pkt *p, enum ur_fault_dir dir, struct ur_fault_frame *to)
{
	const bool bare = dir == UR_FAULT_RX && p->flags & UR_PKT_BARE, built = dir == UR_FAULT_TX && p->kind == UR_PKT_ROCE;

	*to = (struct ur_fault_frame){.syndrome = -1};
	if (built) {
		read_built(p, to);
		return true;
	}
	if (!bare)
		return ur_fault_find_frame(p->data, p->len, to);
	if (p->len < UR_BTH_LEN)
		return false;
	ur_bth_get(p->data, &to->bth);
	to->src = p->src;
	to->dst = p->dst;
	to->sport = p->sport;
	to->syndrome = ur_fault_syndrome(p->data, p->len);
	return true;
}

static void describe(struct ur_faults *f, const struct ur_pkt *p, struct ur_fault_frame *room, struct ur_fault_pkt *seen)
{
	seen->frame = read_packet(p, seen->dir, room) ? room : NULL;
	seen->bth = seen->frame ? &room->bth : NULL;
	seen->since = ur_fault_since(&f->origin, f->now);
	if (f->flows && seen->bth)
		ur_fault_flows_see(f->flows, seen->dir, seen->bth, &room->dst, &seen->place);
}

static void mark(struct ur_pkt *p)
{
	if (p->flags & UR_PKT_BARE)
		p->tos |= 3;
	else
		ur_fault_set_ce(p->data, p->len, true);
}

static const enum ur_counter counter_of[UR_FAULT_ACTIONS] = {
	[UR_FAULT_DROP] = UR_C_FAULT_DROP,       [UR_FAULT_DUPLICATE] = UR_C_FAULT_DUP,   [UR_FAULT_DELAY] = UR_C_FAULT_DELAY,
	[UR_FAULT_REORDER] = UR_C_FAULT_REORDER, [UR_FAULT_CORRUPT] = UR_C_FAULT_CORRUPT, [UR_FAULT_MARK] = UR_C_FAULT_MARK,
	[UR_FAULT_HOLD] = UR_C_FAULT_DELAY};

/* True when the packet is gone, or waits. */
static bool act(struct ur_faults *f, unsigned rule, struct ur_pkt *p, const struct ur_fault_pkt *seen, ur_fault_forward forward)
{
	const struct ur_fault_rule *r = &f->row[rule].rule;
	struct held h = {.p = p, .due = f->now + r->delay, .qpn = qpn_of(seen), .rule = -1, .dir = seen->dir, .forward = forward};

	ur_count(f->host.counters, counter_of[r->action]);
	switch (r->action) {
	case UR_FAULT_DROP: ur_pkts_release(&p, 1); return true;
	case UR_FAULT_DUPLICATE:
		h.p = f->host.copy(f->host.ctx, p);
		if (h.p && !r->delay)
			forward(f->host.ctx, &h.p, 1);
		else if (h.p && !hold(f, h))
			ur_pkts_release(&h.p, 1);
		return false;
	case UR_FAULT_REORDER: h.to_pass = r->by; return hold(f, h);
	case UR_FAULT_DELAY: return hold(f, h);
	case UR_FAULT_CORRUPT: corrupt(f, p); return false;
	case UR_FAULT_MARK: mark(p); return false;
	case UR_FAULT_HOLD: h.rule = (int)rule; return hold(f, h);
	case UR_FAULT_TRIM: /* refused by the parser: ur_fault_rule_of_cables */
	case UR_FAULT_ACTIONS: break;
	}
	return false;
}

/* Every rule sees every packet that an earlier one has left. */
static bool apply_rules(struct ur_faults *f, const struct ur_fault_pkt *seen, struct ur_pkt *p, ur_fault_forward forward)
{
	for (unsigned i = 0; i < f->spec.nrules; i++) {
		const bool full = f->row[i].rule.action == UR_FAULT_HOLD && f->holds[i] >= f->row[i].rule.most;

		if (full || !ur_fault_row_acts(&f->row[i], seen, &f->rng))
			continue;
		ur_count(f->host.counters, (enum ur_counter)(UR_C_FAULT_RULE1 + i));
		if (act(f, i, p, seen, forward))
			return true;
	}
	return false;
}

/* --- chance --- */

/* False: it does not pass now. */
static bool apply_chance(struct ur_faults *f, struct ur_pkt *p, ur_fault_forward forward)
{
	struct ur_pkt *d;

	if (chance(f, f->spec.drop, UR_C_FAULT_DROP)) {
		ur_pkts_release(&p, 1);
		return false;
	}
	if (chance(f, f->spec.dup, UR_C_FAULT_DUP) && (d = f->host.copy(f->host.ctx, p)))
		forward(f->host.ctx, &d, 1);
	if (chance(f, f->spec.corrupt, UR_C_FAULT_CORRUPT))
		corrupt(f, p);
	if (chance(f, f->spec.reorder, UR_C_FAULT_REORDER) && f->held_n < FAULT_HELD_MAX &&
	    hold(f, (struct held){.p = p, .due = soon(f), .rule = -1, .forward = forward}))
		return false;
	forward(f->host.ctx, &p, 1);
	return true;
}

static void apply(struct ur_faults *f, enum ur_fault_dir dir, struct ur_pkt *p, ur_fault_forward forward)
{
	struct ur_fault_pkt seen = {.dir = dir};
	struct ur_fault_frame room;

	if (f->spec.nrules) {
		describe(f, p, &room, &seen);
		if (apply_rules(f, &seen, p, forward))
			return;
	}
	if (!(f->spec.dir & dir))
		forward(f->host.ctx, &p, 1);
	else if (!apply_chance(f, p, forward))
		return;
	if (f->to_be_passed)
		passed(f, &seen);
	if (f->held_n)
		ends_holds(f, &seen);
}

void ur_faults_apply(struct ur_faults *f, ur_time now, enum ur_fault_dir dir, struct ur_pkt **pkts, unsigned n, ur_fault_forward forward)
{
	f->now = now;
	if (!(f->spec.dir & dir) && !f->spec.nrules) {
		forward(f->host.ctx, pkts, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		apply(f, dir, pkts[i], forward);
}

void ur_faults_release(struct ur_faults *f, ur_time now)
{
	for (unsigned i = 0; i < f->held_n;) {
		if (f->held[i].due > now)
			i++;
		else
			let_go(f, i);
	}
}

ur_time ur_faults_next(const struct ur_faults *f)
{
	ur_time next = UR_TIME_NEVER;

	for (unsigned i = 0; i < f->held_n; i++)
		next = ur_min_time(next, f->held[i].due);
	return next;
}
