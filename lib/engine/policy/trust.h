/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether somebody is trusted to do again what it did before: to poll soon after its posts, to reply, to be there when a packet comes, not
 * to block just after a poll. Good turns earn trust where it must be earned; a bad turn that cost little halves what was earned. One that
 * cost much, such as the half a millisecond for which packets may wait, begins a doubt. It ends some time after its last cause; that time
 * doubles each time that its end was too soon, so that mistakes cost little of the time in the long run.
 *
 * No clock, no lock. Several threads may use one: the fields are atomic, and what a race loses is one turn.
 */
#ifndef UR_TRUST_H
#define UR_TRUST_H

#include <stdatomic.h>

#include "base/base.h"

#define UR_TRUST_TIMES 4                     /* a doubt lasts so many times what its cause cost at first ... */
#define UR_TRUST_MAX_NS (256 * UR_NS_PER_MS) /* ... and no longer than this: half a millisecond each time is a fifth of a percent */

struct ur_trust {
	atomic_uint turns;            /* good ones, up to a bound */
	_Atomic ur_time until, lasts; /* in doubt; for how long after its last cause */
};

static inline bool ur_trust_is_earned(const struct ur_trust *t, unsigned enough)
{
	return atomic_load_explicit(&t->turns, memory_order_relaxed) >= enough;
}

static inline bool ur_trust_is_in_doubt(const struct ur_trust *t, ur_time now)
{
	return now < atomic_load_explicit(&t->until, memory_order_relaxed);
}

/* A good turn, where `enough` of them earn trust: it counts until two bad ones in a row can be forgiven. */
void ur_trust_keep(struct ur_trust *t, unsigned enough);
/* A bad turn that cost little. */
void ur_trust_halve(struct ur_trust *t);
/* A bad turn that cost much, `cost`: what was earned is lost, and it is in doubt. */
void ur_trust_doubt(struct ur_trust *t, ur_time now, ur_time cost);

/* How long to do without what has just cost so much. */
static inline ur_time ur_trust_lasts(ur_time cost)
{
	return ur_min_time(UR_TRUST_TIMES * cost, UR_TRUST_MAX_NS);
}

#endif
