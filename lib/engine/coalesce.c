/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/coalesce.h"

#define CLOSE_NS (3 * UR_NS_PER_US)  /* between two posts of a row, and between its last one and the poll */
#define DRIVES_NS (50 * UR_NS_PER_US) /* whose last poll is longer ago does something else as well */
#define MANY 32                       /* posts that wait; then all are sent: the peer should have something to do, too */
#define MEASURE_EVERY 16 /* sendings of which one is measured: a clock costs as much as the rest of a small post */
#define TRUST_ENOUGH 16
#define TRUST_MAX 64
#define LATE_NS (50 * UR_NS_PER_US) /* posts that wait so long were forgotten */
#define SHY_MIN_NS (10 * UR_NS_PER_MS) /* doubled each time that its end was too soon */
#define SHY_MAX_NS (2000 * UR_NS_PER_MS)

#define get(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define set(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static ur_time since(ur_time now, ur_time then)
{
	return now > then ? now - then : 0;
}

bool ur_coalesce_posted(struct ur_coalesce *c, ur_time now, ur_time driven)
{
	unsigned waiting = get(c->waiting);

	if (since(now, get(c->posted)) >= CLOSE_NS && !waiting) { /* who was waited for keeps the others company */
		set(c->posted, now);
		set(c->row, 1);
		return false;
	}
	set(c->posted, now);
	set(c->row, get(c->row) + 1);
	if (get(c->trust) < TRUST_ENOUGH || !driven || since(now, driven) >= DRIVES_NS || now < get(c->shy_until) || waiting >= MANY)
		return false;
	set(c->waiting, waiting + 1);
	return true;
}

bool ur_coalesce_sent(struct ur_coalesce *c, ur_time began)
{
	unsigned sent = get(c->sent);

	set(c->posted, began + get(c->takes));
	set(c->waiting, 0);
	set(c->sent, sent + 1);
	return sent % MEASURE_EVERY == 0;
}

/* One that lost the CPU meanwhile says little. */
void ur_coalesce_took(struct ur_coalesce *c, ur_time began, ur_time ended)
{
	ur_time before = get(c->takes), took = since(ended, began);

	if (before)
		took = before - before / 4 + ur_min_time(took, 2 * before + CLOSE_NS) / 4;
	set(c->takes, took);
	set(c->posted, ended);
}

void ur_coalesce_flushed(struct ur_coalesce *c, ur_time now)
{
	if (!get(c->waiting))
		return;
	if (since(now, get(c->posted)) >= LATE_NS)
		set(c->forgotten, true);
	set(c->waiting, 0);
}

bool ur_coalesce_polled(struct ur_coalesce *c, ur_time now)
{
	bool soon = since(now, get(c->posted)) < CLOSE_NS;

	if (!ur_coalesce_is_row(c))
		return false;
	set(c->row, 0);
	set(c->waiting, 0);
	if (soon && get(c->trust) < TRUST_MAX)
		set(c->trust, get(c->trust) + 1);
	return !soon;
}

void ur_coalesce_late(struct ur_coalesce *c, ur_time now, bool held_up)
{
	ur_time until = get(c->shy_until), shy = get(c->shy_for);
	bool forgotten = get(c->forgotten);

	set(c->forgotten, false);
	if (held_up)
		return;
	set(c->trust, get(c->trust) / 2);
	if (!forgotten)
		return;
	shy = !shy || since(now, until) > shy ? SHY_MIN_NS : ur_min_time(2 * shy, SHY_MAX_NS);
	set(c->shy_for, shy);
	set(c->shy_until, now + shy);
	set(c->trust, 0);
}
