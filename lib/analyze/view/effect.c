/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/view/effect.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_NS (UR_EFFECT_NS / UR_EFFECT_SLOTS)

const char *const ur_effect_names[UR_EFFECT_COUNT] = {
#define NAME(id, name) name,
	UR_EFFECTS(NAME)
#undef NAME
};

static void move_on(struct ur_effects *e, ur_time when)
{
	const uint64_t slot = when / SLOT_NS;

	if (slot <= e->slot)
		return;
	if (slot - e->slot >= UR_EFFECT_SLOTS)
		memset(e->slots, 0, sizeof(e->slots));
	else
		while (e->slot < slot)
			e->slots[++e->slot % UR_EFFECT_SLOTS] = 0;
	e->slot = slot;
}

/* Once the millisecond after it is over. */
static void close_series(struct ur_effect *f, ur_time when)
{
	if (!f->open || when < f->at + UR_EFFECT_NS)
		return;
	f->open = false;
	f->series++;
	f->before += f->now_before;
	f->before_ns += f->now_before_ns;
	f->after += f->now_after;
	f->after_ns += UR_EFFECT_NS;
}

void ur_effects_sent(struct ur_effects *e, ur_time when, uint32_t bytes)
{
	if (!e->begun) {
		e->begun = true;
		e->first = when;
		e->slot = when / SLOT_NS;
	}
	move_on(e, when);
	e->slots[e->slot % UR_EFFECT_SLOTS] += bytes;
	for (unsigned k = 0; k < UR_EFFECT_COUNT; k++) {
		close_series(&e->of[k], when);
		if (e->of[k].open)
			e->of[k].now_after += bytes;
	}
}

void ur_effects_slowed(struct ur_effects *e, enum ur_effect_kind kind, ur_time when)
{
	struct ur_effect *f = &e->of[kind];
	const bool again = f->newest && when < f->newest + UR_EFFECT_NS;

	close_series(f, when);
	f->newest = when > f->newest ? when : f->newest;
	if (again || f->open || !e->begun || when < e->first + UR_EFFECT_NS || when / SLOT_NS < e->slot)
		return;
	move_on(e, when);
	f->open = true;
	f->at = when;
	f->now_before = f->now_after = 0;
	for (unsigned i = 0; i < UR_EFFECT_SLOTS; i++)
		f->now_before += e->slots[i];
	f->now_before_ns = when - (e->slot - (UR_EFFECT_SLOTS - 1)) * SLOT_NS;
}

void ur_effects_event(struct ur_effects *e, const struct ur_an_event *ev)
{
	switch (ev->kind) {
	case UR_AN_EV_REQUEST:
	case UR_AN_EV_AGAIN:
	case UR_AN_EV_RESPONSE:
		if (ev->pause_began > e->pause_began)
			ur_effects_slowed(e, UR_EFFECT_PAUSE, ev->pause_began);
		e->pause_began = ev->pause_began;
		if (ev->kind == UR_AN_EV_RESPONSE ||
		    !(ur_opcode(ev->opcode)->flags & UR_OPF_READ)) /* what a READ asks for is not sent with it */
			ur_effects_sent(e, ev->when, ev->len);
		break;
	case UR_AN_EV_CNP: ur_effects_slowed(e, UR_EFFECT_CNP, ev->when); break;
	case UR_AN_EV_MARKED: ur_effects_slowed(e, UR_EFFECT_MARK, ev->when); break;
	default: break;
	}
}

/* --- the result --- */

bool ur_effects_any(const struct ur_effects *e)
{
	for (unsigned k = 0; e && k < UR_EFFECT_COUNT; k++)
		if (e->of[k].series)
			return true;
	return false;
}

static uint64_t bits_a_second(uint64_t bytes, uint64_t ns)
{
	return ns ? (uint64_t)(8 * ((double)bytes * 1e9 / (double)ns)) : 0;
}

uint64_t ur_effect_before(const struct ur_effect *f)
{
	return bits_a_second(f->before, f->before_ns);
}

uint64_t ur_effect_after(const struct ur_effect *f)
{
	return bits_a_second(f->after, f->after_ns);
}

/* --- all halves --- */

static struct ur_effects_half *half_of(struct ur_effects_all *all, struct ur_an_half *h)
{
	struct ur_effects_half *e = h->mine;

	if (e || all->n >= UR_EFFECTS_HALVES)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->next = all->first;
	all->first = e;
	all->n++;
	h->mine = e;
	return e;
}

void ur_effects_observe(void *ctx, const struct ur_an_event *e)
{
	struct ur_effects_half *h = half_of(ctx, e->half);

	if (h)
		ur_effects_event(&h->effects, e);
}

void ur_effects_free(struct ur_effects_all *all)
{
	while (all->first) {
		struct ur_effects_half *h = all->first;

		all->first = h->next;
		free(h);
	}
	*all = (struct ur_effects_all){0};
}
