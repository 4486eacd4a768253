/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/policy/coalesce.h"

#include "engine/policy/poller.h"

#define MANY 32          /* posts that wait; then all are sent: the peer should have something to do, too */
#define MEASURE_EVERY 16 /* sendings of which one is measured: a clock costs as much as the rest of a small post */
#define QUICKLY 4        /* the part of `takes` that one of these counts: the next messages are mostly as long as it */
#define ENOUGH 16        /* rows: what waits in vain waits for a hundred times what it could have saved */

#define get(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define set(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static ur_time since(ur_time now, ur_time then)
{
	return now > then ? now - then : 0;
}

bool ur_coalesce_posted(struct ur_coalesce *c, const struct ur_costs *costs, ur_time now, ur_time driven)
{
	unsigned waiting = get(c->waiting);

	if (since(now, get(c->posted)) >= ur_costs_close(costs) && !waiting) { /* who was waited for keeps the others company */
		set(c->posted, now);
		set(c->row, 1);
		return false;
	}
	set(c->posted, now);
	set(c->row, get(c->row) + 1);
	if (!ur_trust_is_earned(&c->polls, ENOUGH) || !driven || since(now, driven) >= ur_costs_wait(costs, UR_WAIT_LATE) ||
	    ur_trust_is_in_doubt(&c->polls, now) || waiting >= MANY)
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

/* One that lost the CPU meanwhile counts little. */
void ur_coalesce_took(struct ur_coalesce *c, struct ur_costs *costs, unsigned packets, ur_time began, ur_time ended)
{
	ur_time before = get(c->takes), took = since(ended, began);

	set(c->takes, before ? ur_costs_follow(before, took, QUICKLY) : took);
	set(c->posted, ended);
	ur_costs_sent(costs, packets, took);
}

void ur_coalesce_flushed(struct ur_coalesce *c, const struct ur_costs *costs, ur_time now)
{
	if (!get(c->waiting))
		return;
	if (since(now, get(c->posted)) >= ur_costs_wait(costs, UR_WAIT_LATE))
		set(c->forgotten, true);
	set(c->waiting, 0);
}

bool ur_coalesce_polled(struct ur_coalesce *c, const struct ur_costs *costs, ur_time now)
{
	bool soon = since(now, get(c->posted)) < ur_costs_close(costs);

	if (!ur_coalesce_is_row(c))
		return false;
	set(c->row, 0);
	set(c->waiting, 0);
	if (soon)
		ur_trust_keep(&c->polls, ENOUGH);
	return !soon;
}

void ur_coalesce_late(struct ur_coalesce *c, ur_time now, bool held_up)
{
	bool forgotten = get(c->forgotten);

	set(c->forgotten, false);
	if (held_up)
		return;
	if (forgotten)
		ur_trust_doubt(&c->polls, now, UR_POLLER_ASIDE_NS);
	else
		ur_trust_halve(&c->polls);
}
