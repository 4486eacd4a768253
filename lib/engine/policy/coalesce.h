/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether what an application posts waits for more to travel with. A small message costs little but its system call, so posts in a row are
 * sent together when the application polls: the first leaves at once, those close after it wait. Only an application that always polled
 * soon after its posts is trusted to do so again. When it does not, the progress thread sends what waits half a millisecond later; and
 * unless the application was held up because it had no CPU, nothing waits for a while after that, for longer each time it happens.
 *
 * Each thread that posts has rows of its own: it does not poll for another. A few places are enough; threads that share one by chance are
 * taken for one. Posting threads call without the NIC's lock: the fields are atomic and each call reads and writes each once; what a race
 * loses is a post counted or not.
 */
#ifndef UR_COALESCE_H
#define UR_COALESCE_H

#include <stdatomic.h>

#include "engine/policy/costs.h"
#include "engine/policy/trust.h"

#define UR_COALESCE_PLACES 8

struct ur_coalesce {
	_Alignas(64) _Atomic ur_time posted; /* the last post, or about the end of its sending */
	_Atomic ur_time takes;               /* what sending took lately */
	atomic_uint sent;                    /* how often that was done */
	atomic_uint row;                     /* posts since the last poll, each close after the one before it */
	atomic_uint waiting;                 /* of them, not sent yet */
	atomic_bool forgotten;               /* others had to send what waited */
	struct ur_trust polls;               /* soon after its rows; in doubt since it did not and something waited */
};

/* The place of a thread, for which any number stands that no other thread has. */
static inline unsigned ur_coalesce_place(uintptr_t thread)
{
	return (unsigned)(thread * 0x9e3779b97f4a7c15ull >> 61);
}

/* A post at `now`; `driven` is when the application last polled, 0: never, or it said that it would block. True when it waits. */
bool ur_coalesce_posted(struct ur_coalesce *c, const struct ur_costs *costs, ur_time now, ur_time driven);
/*
 * What waited has been sent by the thread that posted, which began at `began`. When that ended is mostly estimated. True when it is to be
 * measured once more: then ur_coalesce_took follows.
 */
bool ur_coalesce_sent(struct ur_coalesce *c, ur_time began);
void ur_coalesce_took(struct ur_coalesce *c, struct ur_costs *costs, unsigned packets, ur_time began, ur_time ended);
/* The progress thread, or a control call, sends what waits. */
void ur_coalesce_flushed(struct ur_coalesce *c, const struct ur_costs *costs, ur_time now);
/* The application has posted several requests since its last poll: only then ur_coalesce_polled has something to learn. */
static inline bool ur_coalesce_is_row(const struct ur_coalesce *c)
{
	return atomic_load_explicit(&c->row, memory_order_relaxed) > 1;
}
/* The application polls, which sends what waits. True when that was to be expected earlier: ur_coalesce_late wants to know why. */
bool ur_coalesce_polled(struct ur_coalesce *c, const struct ur_costs *costs, ur_time now);
/* `held_up`: other threads had its CPU meanwhile. */
void ur_coalesce_late(struct ur_coalesce *c, ur_time now, bool held_up);

#endif
