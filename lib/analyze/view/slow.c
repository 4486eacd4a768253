/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/view/slow.h"

#include <stdlib.h>

#include "base/base.h"

#define GAP_LEAST (2 * UR_NS_PER_US)     /* what is shorter is no wait: clocks of recorders are not better */
#define GAP_TIMES 4                      /* a wait is so many times longer than what lies between packets that follow one another */
#define SLOWED_NS (10 * UR_NS_PER_MS)    /* so long a sender that got a CNP may be slower for it */
#define FULL(most) ((most) - (most) / 8) /* of a window: packets are sent and answered in groups */

const char *const ur_slow_names[UR_SLOW_COUNT] = {
#define NAME(id, name, text) name,
	UR_SLOW_CAUSES(NAME)
#undef NAME
};
const char *const ur_slow_texts[UR_SLOW_COUNT] = {
#define TEXT(id, name, text) text,
	UR_SLOW_CAUSES(TEXT)
#undef TEXT
};

static uint64_t since(ur_time now, ur_time then)
{
	return now > then ? now - then : 0;
}

/* --- how close together packets are that nothing holds up --- */

static unsigned bits_of(uint64_t ns)
{
	return ns ? 64 - (unsigned)__builtin_clzll(ns) : 0;
}

static void note_gap(struct ur_slow *s, uint64_t ns)
{
	const unsigned bits = bits_of(ns);

	s->gaps[bits < 63 ? bits : 63]++;
	if (++s->ngaps < 1u << 20)
		return;
	s->ngaps = 0; /* older ones count less */
	for (unsigned i = 0; i < ur_array_size(s->gaps); i++)
		s->ngaps += s->gaps[i] /= 2;
}

/* A quarter of the packets of messages follow one another as closely as this, or closer; what is several times longer is a wait. */
static uint64_t wait_least(const struct ur_slow *s)
{
	uint32_t n = 0;
	unsigned i = 0;

	for (; i < 40 && n + s->gaps[i] < (s->ngaps + 3) / 4; i++)
		n += s->gaps[i];
	return (uint64_t)GAP_TIMES << i > GAP_LEAST ? (uint64_t)GAP_TIMES << i : GAP_LEAST;
}

/* --- charging --- */

static void charge(struct ur_slow *s, enum ur_slow_cause cause, ur_time from, ur_time to)
{
	if (to <= from)
		return;
	s->ns[cause] += to - from;
	ur_bins_span(&s->bins, from, to, cause);
}

static void charge_wait(struct ur_slow *s, enum ur_slow_cause cause, ur_time from, ur_time to)
{
	struct ur_slow_level *l = &s->level[cause];

	charge(s, cause, from, to);
	s->waits[cause]++;
	l->n++;
	l->sum += s->flight;
	l->most = s->flight > l->most ? s->flight : l->most;
}

/* Notifications slow a sender down in itself; marks alone show that its window became smaller. */
static bool is_slowed(const struct ur_slow *s, ur_time now)
{
	const bool smaller = s->flight < s->most - s->most / 4, cnp = s->cnps && since(now, s->cnp_at) < SLOWED_NS,
		   mark = s->marks && since(now, s->mark_at) < SLOWED_NS;

	return (cnp && (smaller || !s->answered)) || (mark && smaller);
}

/* The sender stopped within a message: it had something to send. */
static enum ur_slow_cause why_within(struct ur_slow *s, ur_time now)
{
	if (is_slowed(s, now))
		return UR_SLOW_CONGESTION;
	if (!s->answered)
		return UR_SLOW_SENDER;
	s->window = s->flight;
	return UR_SLOW_WINDOW;
}

/* It stopped between two messages while something was in flight, and went on after an answer. */
static enum ur_slow_cause why_between(const struct ur_slow *s, const struct ur_an_event *e)
{
	const uint32_t flags = ur_opcode(e->opcode)->flags;

	if (s->no_credit && flags & (UR_OPF_SEND | UR_OPF_RWQE))
		return UR_SLOW_CREDITS;
	if (flags & (UR_OPF_READ | UR_OPF_ATOMIC) && s->depth_most && s->depth >= s->depth_most)
		return UR_SLOW_DEPTH;
	if (s->window && s->flight >= FULL(s->window))
		return UR_SLOW_WINDOW;
	return is_slowed(s, e->when) ? UR_SLOW_CONGESTION : UR_SLOW_ANSWERS;
}

static void charge_between(struct ur_slow *s, const struct ur_an_event *e, uint64_t least)
{
	ur_time until = s->answered_at;

	if (!s->flight || (!s->answered && !is_slowed(s, e->when))) {
		charge_wait(s, UR_SLOW_IDLE, s->at, e->when);
		return;
	}
	if (!s->answered) {
		charge_wait(s, UR_SLOW_CONGESTION, s->at, e->when);
		return;
	}
	/* After the last answer nothing is in flight any more: the program takes its time. */
	if (since(e->when, until) <= least || e->next - e->n > e->acked)
		until = e->when;
	charge_wait(s, why_between(s, e), s->at, until);
	if (until < e->when)
		charge_wait(s, UR_SLOW_IDLE, until, e->when);
}

static void charge_response(struct ur_slow *s, const struct ur_an_event *e)
{
	const bool first = ur_opcode(e->opcode)->flags & UR_OPF_FIRST;

	if (!first)
		charge_wait(s, is_slowed(s, e->when) ? UR_SLOW_CONGESTION : UR_SLOW_RESPONDER, s->at, e->when);
	else
		charge_wait(s, s->depth_most && s->depth >= s->depth_most ? UR_SLOW_DEPTH : UR_SLOW_ANSWERS, s->at, e->when);
}

/* From the packet before to this one. */
static void charge_gap(struct ur_slow *s, const struct ur_an_event *e)
{
	const uint64_t gap = since(e->when, s->at), least = wait_least(s);
	const bool again = e->kind == UR_AN_EV_AGAIN;

	if (s->rnr || (again && e->cause == UR_AN_RNR)) {
		const ur_time from = s->rnr && s->rnr_at > s->at ? s->rnr_at : s->at;

		if (from > s->at)
			charge(s, UR_SLOW_ANSWERS, s->at, from);
		charge_wait(s, UR_SLOW_RNR, from, e->when);
	} else if (again || (gap > least && s->repair_to > e->acked)) {
		charge_wait(s, UR_SLOW_LOSS, s->at, e->when);
	} else if (gap <= least) {
		charge(s, UR_SLOW_SENDING, s->at, e->when);
	} else if (s->paused_at && s->paused_at >= s->at) {
		charge_wait(s, UR_SLOW_PAUSE, s->at, e->when);
	} else if (e->kind == UR_AN_EV_RESPONSE) {
		charge_response(s, e);
	} else if (s->within) {
		charge_wait(s, why_within(s, e->when), s->at, e->when);
	} else {
		charge_between(s, e, least);
	}
}

/* --- events --- */

static struct ur_slow *slow_of(struct ur_slow_all *all, struct ur_an_half *h)
{
	struct ur_slow *s = h->mine;

	if (s)
		return s;
	s = all->n < UR_SLOW_HALVES ? calloc(1, sizeof(*s)) : NULL;
	if (!s) {
		all->untold++;
		return NULL;
	}
	ur_bins_init(&s->bins, UR_SLOW_BINS, UR_SLOW_SUMS);
	s->half = h;
	s->next = all->first;
	all->first = s;
	all->n++;
	h->mine = s;
	return s;
}

static void packet(struct ur_slow *s, const struct ur_an_event *e)
{
	const uint32_t flags = ur_opcode(e->opcode)->flags;
	const bool response = e->kind == UR_AN_EV_RESPONSE, read = !response && flags & UR_OPF_READ;

	s->paused_at = e->paused > s->paused_at ? e->paused : s->paused_at;
	s->depth_most = e->depth_most;
	if (s->begun) {
		charge_gap(s, e);
		/* Who stops there does not wait for the program; but who is slowed down always does. */
		if ((response ? !(flags & UR_OPF_FIRST) : s->within) && !(s->cnps && since(e->when, s->cnp_at) < SLOWED_NS))
			note_gap(s, since(e->when, s->at));
	} else {
		s->begin = e->when;
	}
	s->begun = true;
	s->at = e->when > s->at ? e->when : s->at;
	s->end = s->at;
	s->rnr = s->rnr && response;
	s->answered = false;
	if (e->kind == UR_AN_EV_REQUEST) {
		s->within = !(flags & UR_OPF_LAST);
		s->psns += e->n;
		s->messages += !s->within;
		ur_bins_add(&s->bins, e->when, UR_SLOW_MESSAGES, !s->within);
	}
	if (e->kind != UR_AN_EV_AGAIN && !read)
		ur_bins_add(&s->bins, e->when, UR_SLOW_BYTES, e->len);
}

static void note_state(struct ur_slow *s, const struct ur_an_event *e)
{
	s->flight = e->next > e->acked && e->service != UR_UC ? e->next - e->acked : 0;
	s->most = s->flight > s->most ? s->flight : s->most;
	s->depth = e->depth;
	s->no_credit = e->no_credit;
}

void ur_slow_event(void *ctx, const struct ur_an_event *e)
{
	struct ur_slow *s = slow_of(ctx, e->half);

	if (!s)
		return;
	ur_effects_event(&s->effects, e);
	switch (e->kind) {
	case UR_AN_EV_REQUEST:
	case UR_AN_EV_AGAIN:
	case UR_AN_EV_RESPONSE:
		packet(s, e);
		note_state(s, e);
		break;
	case UR_AN_EV_ACKED:
		if (s->begun && e->when <= s->at) { /* the response that was the newest packet says so itself */
			note_state(s, e);
			break;
		}
		s->answered = true;
		s->answered_at = e->when;
		break;
	case UR_AN_EV_REPAIR:
		s->repairs[e->cause]++;
		if (e->cause != UR_AN_RNR)
			s->repair_to = e->next;
		break;
	case UR_AN_EV_RNR:
		s->rnrs++;
		s->rnr_at = s->rnr ? s->rnr_at : e->when;
		s->rnr = true;
		break;
	case UR_AN_EV_NAK: s->repair_to = e->next; break;
	case UR_AN_EV_CNP:
		s->cnps++;
		s->cnp_at = e->when;
		break;
	case UR_AN_EV_MARKED:
		s->marks++;
		s->mark_at = e->when;
		break;
	case UR_AN_EV_RTT:
		ur_bins_add(&s->bins, e->when, UR_SLOW_RTT_N, 1);
		ur_bins_add(&s->bins, e->when, UR_SLOW_RTT_SUM, e->wait);
		break;
	case UR_AN_EV_HAS:
	case UR_AN_EV_ICMP:
	case UR_AN_EV_FATAL:
	case UR_AN_EV_COUNT: break;
	}
}

void ur_slow_free(struct ur_slow_all *all)
{
	while (all->first) {
		struct ur_slow *s = all->first;

		all->first = s->next;
		ur_bins_fini(&s->bins);
		free(s);
	}
	*all = (struct ur_slow_all){0};
}

/* --- the result --- */

uint64_t ur_slow_total(const struct ur_slow *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < UR_SLOW_COUNT; i++)
		sum += s->ns[i];
	return sum;
}

enum ur_slow_cause ur_slow_limit(const struct ur_slow *s)
{
	enum ur_slow_cause most = UR_SLOW_SENDING;

	for (unsigned i = 0; i < UR_SLOW_COUNT; i++)
		most = s->ns[i] > s->ns[most] ? i : most;
	return most;
}
