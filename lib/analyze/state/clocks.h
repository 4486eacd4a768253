/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two clocks, from packets that both have stamped. What goes one way shows the offset plus the delay, what goes the other way the offset
 * minus it; the shortest delays of an interval are taken for equal, and a line through the intervals is the offset at any time.
 */
#ifndef UR_AN_CLOCKS_H
#define UR_AN_CLOCKS_H

#include "base/base.h"

#define AN_INTERVALS 64

struct an_interval {
	int64_t low, high; /* the least difference of what goes forth, and the greatest of what goes back */
	bool forth, back;
};

struct an_clocks {
	struct an_interval at[AN_INTERVALS];
	unsigned n;
	ur_time begin, length; /* of the first clock; intervals double when they are too many */
	bool begun;
	/* the line */
	double offset, drift; /* ns at `begin`, and ns for each ns */
	bool both_ways;
};

/* A packet was stamped `a` by the first clock and `b` by the second; `forth`: it passed the first place first. */
void an_clocks_pair(struct an_clocks *c, ur_time a, ur_time b, bool forth);
/* Computes the line again from what is known. */
void an_clocks_fit(struct an_clocks *c);
/* What the second clock is ahead by when the first shows `a`. */
int64_t an_clocks_offset(const struct an_clocks *c, ur_time a);
/* The sum of the shortest delays in both directions: how far the offset may be wrong. */
uint64_t an_clocks_slack(const struct an_clocks *c);

#endif
