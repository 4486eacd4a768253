/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a wake-up and a send cost on this machine, as measured, and how long whoever polls, posts, replies or sleeps is waited for: a small
 * multiple of that. So the same policy fits machines that differ in speed; until something is measured, it has typical costs.
 *
 * A wake-up is measured by sleeps that a timer ended: how much later than asked the thread ran again. A send is measured by posts that
 * sent a packet or two: a request, perhaps with an acknowledgement. Both are estimated low, because who is held up by others says nothing
 * of what it costs.
 *
 * No clock, no lock. Several threads tell and ask: the fields are atomic, and what a race loses is one measurement.
 */
#ifndef UR_COSTS_H
#define UR_COSTS_H

#include <stdatomic.h>

#include "base/base.h"

#define UR_COSTS_WAKE (10 * UR_NS_PER_US) /* until something is measured, and the bounds of what is */
#define UR_COSTS_WAKE_MIN (2 * UR_NS_PER_US)
#define UR_COSTS_WAKE_MAX (50 * UR_NS_PER_US)
#define UR_COSTS_SEND (6 * UR_NS_PER_US)
#define UR_COSTS_SEND_MIN (2 * UR_NS_PER_US)
#define UR_COSTS_SEND_MAX (30 * UR_NS_PER_US)

struct ur_costs {
	_Atomic ur_time wake, send;
};

/*
 * How long something is waited for, in halves of a wake-up, which is what a sleep costs when the CPU need not leave an idle state. All are
 * shorter than UR_POLLER_ASIDE_NS, within which what waits is sent, on the slowest machine.
 */
enum ur_wait {
	UR_WAIT_MOMENT = 1, /* a sleep as short is not worth while, and who comes back within it was not away */
	UR_WAIT_REPLY = 2,  /* answers, for a reply: two frames of one burst are up to a moment apart when a kernel carries them */
	UR_WAIT_AWAKE = 4,  /* before the CPU is lent to others; the shortest nap of a port that cannot wake us */
	UR_WAIT_GLANCE = 6, /* between two looks whether an application in doubt is there */
	UR_WAIT_LATE = 10,  /* then who was expected does something else, or has lost the CPU */
};

static inline ur_time ur_costs_wait(const struct ur_costs *c, enum ur_wait halves)
{
	return atomic_load_explicit(&c->wake, memory_order_relaxed) / 2 * halves;
}

/* Between two posts of a row, and between its last one and the poll: half of the send that waiting saves. */
static inline ur_time ur_costs_close(const struct ur_costs *c)
{
	return atomic_load_explicit(&c->send, memory_order_relaxed) / 2;
}

void ur_costs_init(struct ur_costs *c);
/*
 * A sleep that began at `began` was to last until `until`, and its thread ran again at `now`, woken by nothing else. Long ones do not
 * count: the CPU goes into a deeper idle state, which says nothing of the short ones to be decided on.
 */
void ur_costs_woke(struct ur_costs *c, ur_time began, ur_time until, ur_time now);
/* Sending so many packets took so long. Only a few count: what many take is mostly copying, which waiting would not save. */
void ur_costs_sent(struct ur_costs *c, unsigned packets, ur_time took);

/* An estimate moves by a part of the way to what was measured, and so by that part of itself at most. */
static inline ur_time ur_costs_follow(ur_time estimate, ur_time measured, unsigned part)
{
	return estimate - estimate / part + ur_min_time(measured, 2 * estimate) / part;
}

#endif
