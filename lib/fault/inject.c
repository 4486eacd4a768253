/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fault/flows.h"
#include "wire/frame.h"

#define FAULT_HELD_MAX 64
#define FAULT_MORE (FAULT_HELD_MAX + UR_FAULT_RULES + 3) /* that one packet lets go: itself, copies of it, those before it in its train */
#define FAULT_HOLD_NS (200 * UR_NS_PER_US)               /* a reordered frame waits this long at the most */

struct held {
	struct ur_pkt *p;
	ur_time due;
	uint32_t qpn;     /* of the packets that have to pass it first, */
	unsigned to_pass; /* how many more; 0: it does not wait for them */
	int rule;         /* which holds it until its packet passes; -1: none does */
	enum ur_fault_dir dir;
	ur_fault_forward forward;
};

/* What goes on, and where. */
struct gone {
	struct ur_pkt *p;
	ur_fault_forward forward;
};

/* Packets of a train to which nothing was done, and which have not gone on yet. */
struct run {
	const struct ur_pkt *t;
	struct ur_train_cursor from;
	unsigned n;
	enum ur_fault_dir dir;
	ur_fault_forward forward;
};

/*
 * What one call lets go on, in its order. Each has its own, for a packet that is forwarded may be answered at once: then faults are applied
 * to the answer, in the middle of forwarding, and the rest of what goes on here has to wait for its turn.
 */
struct output {
	struct gone gone[2 * UR_FAULT_BURST + FAULT_MORE]; /* from gone[at] to gone[n] */
	unsigned at, n;
	struct run run;
};

/* What may be done to a packet, in this order: by a rule, by its number, or by chance. */
enum step { BY_CHANCE = UR_FAULT_RULES, DROPS = BY_CHANCE, DUPLICATES, CORRUPTS, REORDERS, NOTHING };

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
	struct output *out;            /* of the current call */
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

/* --- what goes on --- */

/* Those of the same way as the first one, up to a burst. They have left before they are forwarded: that may let others follow. */
static void forward_some(struct ur_faults *f)
{
	struct output *o = f->out;
	const ur_fault_forward forward = o->gone[o->at].forward;
	struct ur_pkt *pkts[UR_FAULT_BURST];
	unsigned n = 0;

	while (o->at < o->n && n < UR_FAULT_BURST && o->gone[o->at].forward == forward)
		pkts[n++] = o->gone[o->at++].p;
	if (o->at == o->n)
		o->at = o->n = 0;
	forward(f->host.ctx, pkts, n);
}

static void forward_all(struct ur_faults *f)
{
	while (f->out->at < f->out->n)
		forward_some(f);
}

/* Begins a call, maybe inside of another one, whose output is returned for end_call. */
static struct output *begin_call(struct ur_faults *f, struct output *o, ur_time now)
{
	struct output *outer = f->out;

	o->at = o->n = o->run.n = 0;
	f->out = o;
	f->now = now;
	return outer;
}

static void end_call(struct ur_faults *f, struct output *outer)
{
	forward_all(f);
	f->out = outer;
}

/* Nothing is forwarded while a packet is dealt with: there has to be room for all that it may let go. */
static void make_room(struct ur_faults *f)
{
	if (f->out->n + FAULT_MORE > ur_array_size(f->out->gone))
		forward_all(f);
}

static void add(struct ur_faults *f, struct ur_pkt *p, ur_fault_forward forward)
{
	f->out->gone[f->out->n++] = (struct gone){p, forward};
}

static void end_run(struct ur_faults *f)
{
	const struct run r = f->out->run;
	struct ur_pkt *p;

	if (!r.n)
		return;
	f->out->run.n = 0;
	p = f->host.part(f->host.ctx, r.dir, r.t, r.from, r.n);
	if (p)
		add(f, p, r.forward);
}

/* After all that has gone on before it. */
static void go_on(struct ur_faults *f, struct ur_pkt *p, ur_fault_forward forward)
{
	end_run(f);
	add(f, p, forward);
}

/* --- what is held --- */

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
	go_on(f, h.p, h.forward);
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
			go_on(f, mine[i].p, mine[i].forward);
	}
}

static ur_time soon(struct ur_faults *f)
{
	return f->now + 1 + ur_rng_below(&f->rng, FAULT_HOLD_NS);
}

/* --- what a packet is --- */

/* Of what is built, a packet or a train, whose headers need not be looked for. */
static void read_headers(const struct ur_pkt *p, struct ur_fault_frame *to)
{
	const uint8_t *ip = p->data + p->l3_off, *udp = p->data + p->bth_off - UR_UDP_LEN;

	if (p->ip_version == 4 && p->len >= p->l3_off + (uint32_t)UR_IP4_LEN) {
		to->src = ur_gid_from_v4_at(ip + 12);
		to->dst = ur_gid_from_v4_at(ip + 16);
	} else if (p->ip_version != 4 && p->len >= p->l3_off + (uint32_t)UR_IP6_LEN) {
		memcpy(to->src.raw, ip + 8, 16);
		memcpy(to->dst.raw, ip + 24, 16);
	}
	if (p->bth_off >= UR_UDP_LEN && p->len >= p->bth_off)
		to->sport = ur_get16(udp);
}

/* Of what is bare, or has been parsed. */
static void read_fields(const struct ur_pkt *p, struct ur_fault_frame *to)
{
	to->src = p->src;
	to->dst = p->dst;
	to->sport = p->sport;
}

/* False: it is not RoCEv2. */
static bool read_bth(const uint8_t *bth, uint32_t len, struct ur_fault_frame *to)
{
	if (len < UR_BTH_LEN)
		return false;
	ur_bth_get(bth, &to->bth);
	to->syndrome = ur_fault_syndrome(bth, len);
	return true;
}

/* A packet to send, or one that has been received and not been parsed. False: it is not RoCEv2. */
static bool read_packet(const struct ur_pkt *p, enum ur_fault_dir dir, struct ur_fault_frame *to)
{
	*to = (struct ur_fault_frame){.syndrome = -1};
	if (dir == UR_FAULT_TX && p->kind == UR_PKT_ROCE) {
		to->bth = p->bth;
		read_headers(p, to);
		if (p->bth_off >= UR_UDP_LEN && p->len >= p->bth_off + (uint32_t)UR_BTH_LEN)
			to->syndrome = ur_fault_syndrome(p->data + p->bth_off, p->len - p->bth_off);
		return true;
	}
	if (!(dir == UR_FAULT_RX && p->flags & UR_PKT_BARE))
		return ur_fault_find_frame(p->data, p->len, to);
	read_fields(p, to);
	return read_bth(p->data, p->len, to);
}

/* `frame` is NULL for what is not RoCEv2. */
static void describe(struct ur_faults *f, struct ur_fault_frame *frame, struct ur_fault_pkt *seen)
{
	seen->frame = frame;
	seen->bth = frame ? &frame->bth : NULL;
	seen->since = ur_fault_since(&f->origin, f->now);
	if (f->flows && frame)
		ur_fault_flows_see(f->flows, seen->dir, seen->bth, &frame->dst, &seen->place);
}

/* --- what is done to it --- */

/* Never touches segments: they are the user's memory. */
static void corrupt(struct ur_faults *f, struct ur_pkt *p)
{
	ur_fault_flip_bit(p->data, p->len, &f->rng);
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
static bool act_by_rule(struct ur_faults *f, unsigned rule, struct ur_pkt *p, const struct ur_fault_pkt *seen, ur_fault_forward forward)
{
	const struct ur_fault_rule *r = &f->row[rule].rule;
	struct held h = {.p = p, .due = f->now + r->delay, .qpn = qpn_of(seen), .rule = -1, .dir = seen->dir, .forward = forward};

	ur_count(f->host.counters, (enum ur_counter)(UR_C_FAULT_RULE1 + rule));
	ur_count(f->host.counters, counter_of[r->action]);
	switch (r->action) {
	case UR_FAULT_DUPLICATE:
		h.p = f->host.copy(f->host.ctx, p);
		if (h.p && !r->delay)
			go_on(f, h.p, forward);
		else if (h.p && !hold(f, h))
			ur_pkts_release(&h.p, 1);
		return false;
	case UR_FAULT_REORDER: h.to_pass = r->by; return hold(f, h);
	case UR_FAULT_DELAY: return hold(f, h);
	case UR_FAULT_CORRUPT: corrupt(f, p); return false;
	case UR_FAULT_MARK: mark(p); return false;
	case UR_FAULT_HOLD: h.rule = (int)rule; return hold(f, h);
	case UR_FAULT_DROP: /* drops() */
	case UR_FAULT_TRIM: /* refused by the parser: ur_fault_rule_of_cables */
	case UR_FAULT_ACTIONS: break;
	}
	return false;
}

static bool act_by_chance(struct ur_faults *f, enum step s, struct ur_pkt *p, ur_fault_forward forward)
{
	struct held h = {.p = p, .rule = -1, .forward = forward};
	struct ur_pkt *d;

	switch (s) {
	case DUPLICATES:
		ur_count(f->host.counters, UR_C_FAULT_DUP);
		d = f->host.copy(f->host.ctx, p);
		if (d)
			go_on(f, d, forward);
		return false;
	case CORRUPTS:
		ur_count(f->host.counters, UR_C_FAULT_CORRUPT);
		corrupt(f, p);
		return false;
	default:
		ur_count(f->host.counters, UR_C_FAULT_REORDER);
		h.due = f->held_n < FAULT_HELD_MAX ? soon(f) : 0;
		return hold(f, h);
	}
}

static bool rule_acts(struct ur_faults *f, unsigned i, const struct ur_fault_pkt *seen)
{
	struct ur_fault_row *row = &f->row[i];

	return !(row->rule.action == UR_FAULT_HOLD && f->holds[i] >= row->rule.most) && ur_fault_row_acts(row, seen, &f->rng);
}

/* The next thing that is done to the packet, from `s` on: every rule sees every packet that an earlier one has left. Counts and draws. */
static unsigned next_step(struct ur_faults *f, unsigned s, const struct ur_fault_pkt *seen)
{
	const uint32_t ppm[] = {f->spec.drop, f->spec.dup, f->spec.corrupt, f->spec.reorder};

	for (; s < f->spec.nrules; s++)
		if (rule_acts(f, s, seen))
			return s;
	if (!(f->spec.dir & seen->dir))
		return NOTHING;
	for (s = s < BY_CHANCE ? BY_CHANCE : s; s < NOTHING; s++)
		if (ppm[s - BY_CHANCE] && ur_rng_below(&f->rng, UR_FAULT_PPM) < ppm[s - BY_CHANCE])
			return s;
	return NOTHING;
}

/* Does step `s` drop the packet? Counts it: the packet is the caller's to release, who needs no copy of it. */
static bool drops(struct ur_faults *f, unsigned s)
{
	const bool by_rule = s < BY_CHANCE;

	if (by_rule ? f->row[s].rule.action != UR_FAULT_DROP : s != DROPS)
		return false;
	if (by_rule)
		ur_count(f->host.counters, (enum ur_counter)(UR_C_FAULT_RULE1 + s));
	ur_count(f->host.counters, UR_C_FAULT_DROP);
	return true;
}

/* Step `s` and those after it. False: it does not pass now. */
static bool apply_steps(struct ur_faults *f, unsigned s, struct ur_pkt *p, const struct ur_fault_pkt *seen, ur_fault_forward forward)
{
	for (; s != NOTHING; s = next_step(f, s + 1, seen)) {
		if (drops(f, s)) {
			ur_pkts_release(&p, 1);
			return false;
		}
		if (s < BY_CHANCE ? act_by_rule(f, s, p, seen, forward) : act_by_chance(f, s, p, forward))
			return false;
	}
	go_on(f, p, forward);
	return true;
}

/* It has passed: so do those that waited for it. */
static void follow(struct ur_faults *f, const struct ur_fault_pkt *seen)
{
	if (f->to_be_passed)
		passed(f, seen);
	if (f->held_n)
		ends_holds(f, seen);
}

static void apply(struct ur_faults *f, enum ur_fault_dir dir, struct ur_pkt *p, ur_fault_forward forward)
{
	struct ur_fault_pkt seen = {.dir = dir};
	struct ur_fault_frame frame;

	make_room(f);
	if (f->spec.nrules)
		describe(f, read_packet(p, dir, &frame) ? &frame : NULL, &seen);
	if (apply_steps(f, next_step(f, 0, &seen), p, &seen, forward))
		follow(f, &seen);
}

/* --- trains --- */

/* The packet at `at` passes as it is. */
static void join_run(struct ur_faults *f, const struct ur_pkt *t, struct ur_train_cursor at, enum ur_fault_dir dir,
		     ur_fault_forward forward)
{
	struct run *r = &f->out->run;

	if (!r->n)
		*r = (struct run){.t = t, .from = at, .dir = dir, .forward = forward};
	r->n++;
}

/* The packet at `at`, of which `seen` tells. */
static void apply_in_train(struct ur_faults *f, const struct ur_pkt *t, struct ur_train_cursor at, const struct ur_fault_pkt *seen,
			   ur_fault_forward forward)
{
	const unsigned s = next_step(f, 0, seen);
	struct ur_pkt *one;

	if (ur_likely(s == NOTHING)) {
		join_run(f, t, at, seen->dir, forward);
		follow(f, seen);
		return;
	}
	end_run(f);
	if (drops(f, s))
		return;
	one = f->host.part(f->host.ctx, seen->dir, t, at, 1);
	if (one && apply_steps(f, s, one, seen, forward))
		follow(f, seen);
}

static void apply_to_train(struct ur_faults *f, enum ur_fault_dir dir, struct ur_pkt *t, ur_fault_forward forward)
{
	struct ur_train_cursor at = {.place = dir == UR_FAULT_RX ? t->place : 0}, next = at;
	struct ur_fault_frame frame = {.syndrome = -1};
	const uint8_t *bth;
	uint32_t len;

	end_run(f);
	if (dir == UR_FAULT_TX)
		read_headers(t, &frame);
	else
		read_fields(t, &frame);
	for (; (bth = ur_train_next(t, &next, &len)); at = next) {
		struct ur_fault_pkt seen = {.dir = dir};

		make_room(f);
		if (f->spec.nrules)
			describe(f, read_bth(bth, len, &frame) ? &frame : NULL, &seen);
		apply_in_train(f, t, at, &seen, forward);
	}
	if (f->out->run.n == ur_train_count(t)) {
		f->out->run.n = 0;
		add(f, t, forward);
		return;
	}
	end_run(f);
	ur_pkts_release(&t, 1);
}

void ur_faults_apply(struct ur_faults *f, ur_time now, enum ur_fault_dir dir, struct ur_pkt **pkts, unsigned n, ur_fault_forward forward)
{
	struct output o, *outer;

	if (!(f->spec.dir & dir) && !f->spec.nrules) {
		forward(f->host.ctx, pkts, n);
		return;
	}
	outer = begin_call(f, &o, now);
	for (unsigned i = 0; i < n; i++)
		if (pkts[i]->stride)
			apply_to_train(f, dir, pkts[i], forward);
		else
			apply(f, dir, pkts[i], forward);
	end_call(f, outer);
}

void ur_faults_release(struct ur_faults *f, ur_time now)
{
	struct output o, *outer = begin_call(f, &o, now);

	for (unsigned i = 0; i < f->held_n;) {
		if (f->held[i].due > now)
			i++;
		else
			let_go(f, i);
	}
	end_call(f, outer);
}

ur_time ur_faults_next(const struct ur_faults *f)
{
	ur_time next = UR_TIME_NEVER;

	for (unsigned i = 0; i < f->held_n; i++)
		next = ur_min_time(next, f->held[i].due);
	return next;
}
