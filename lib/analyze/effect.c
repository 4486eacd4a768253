/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyze/effect.h"

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
