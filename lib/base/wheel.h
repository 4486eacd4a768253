/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hierarchical timing wheel: arming, re-arming and cancelling a timer take constant time. Expiry never comes early and at
 * most one tick (UR_WHEEL_TICK_NS) late relative to the `now` that the caller hands in. Single threaded.
 */
#ifndef UR_WHEEL_H
#define UR_WHEEL_H

#include "base/list.h"

#define UR_WHEEL_TICK_SHIFT 10 /* one tick is 1024 ns */
#define UR_WHEEL_TICK_NS (1ull << UR_WHEEL_TICK_SHIFT)

struct ur_timer;
typedef void (*ur_timer_fn)(struct ur_timer *t, ur_time now);

struct ur_timer {
	struct ur_list link;
	ur_time when; /* UR_TIME_NEVER when not armed */
	ur_timer_fn fn;
};

struct ur_wheel;

/* Returns NULL when memory is short. `now` is the time of the first tick. */
struct ur_wheel *ur_wheel_create(ur_time now);
/* Timers still armed are forgotten, not called. */
void ur_wheel_destroy(struct ur_wheel *w);

void ur_timer_init(struct ur_timer *t, ur_timer_fn fn);
static inline bool ur_timer_armed(const struct ur_timer *t)
{
	return t->when != UR_TIME_NEVER;
}

/* Arms `t` for `when`, moving it if it is armed already; a time in the past expires at the next advance. */
void ur_timer_arm(struct ur_wheel *w, struct ur_timer *t, ur_time when);
void ur_timer_cancel(struct ur_wheel *w, struct ur_timer *t);

/* Calls every timer that is due at `now`; a callback may arm and cancel any timer, its own too. Returns how many it called. */
unsigned ur_wheel_advance(struct ur_wheel *w, ur_time now);
/* A time not later than the next expiry at which to call ur_wheel_advance; UR_TIME_NEVER when nothing is armed. */
ur_time ur_wheel_next(const struct ur_wheel *w);

#endif
