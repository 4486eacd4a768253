/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/policy/trust.h"

#define KEPT 4 /* times what is enough: halved twice, that still is */

#define get(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define set(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

void ur_trust_keep(struct ur_trust *t, unsigned enough)
{
	unsigned turns = get(t->turns);

	if (turns < KEPT * enough)
		set(t->turns, turns + 1);
}

void ur_trust_halve(struct ur_trust *t)
{
	set(t->turns, get(t->turns) / 2);
}

void ur_trust_doubt(struct ur_trust *t, ur_time now, ur_time cost)
{
	ur_time until = get(t->until), lasts = get(t->lasts);

	set(t->turns, 0);
	if (now >= until) { /* was that too soon? */
		lasts = now - until < lasts ? ur_min_time(2 * lasts, UR_TRUST_MAX_NS) : ur_trust_lasts(cost);
		set(t->lasts, lasts);
	}
	set(t->until, now + lasts);
}
