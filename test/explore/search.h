/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Depth first through all states that can be reached with a number of faults. A state that was seen with as many faults left leads to
 * nothing new. The first thing that can happen in a state is never a fault, so going on with the first thing again and again shows whether
 * everything completes from there: that chain has to end.
 */
#ifndef UR_EXPLORE_SEARCH_H
#define UR_EXPLORE_SEARCH_H

#include "test/explore/step.h"

#define DEPTH 1000
#define CHAIN 400 /* steps without a fault or another choice, within which everything completes */

struct search_result {
	uint64_t states, steps, ends; /* different states; steps taken; ends at which everything was complete */
	unsigned depth;               /* the longest way to a state */
	bool finished;
	bool found; /* a violation, after these: */
	unsigned n;
	struct choice trace[DEPTH];
};

struct search_options {
	unsigned faults;
	double seconds;       /* of CPU time; 0: until it is finished */
	const char *progress; /* a file: where it goes on, if this program wrote it, and what it writes in the end; NULL: none */
};

/* The world is open and sealed. */
void search(const struct search_options *o, struct search_result *r);
/* Takes those steps from the beginning and then the first that can be taken until the end; false when one of them cannot be taken. */
bool search_replay(const struct choice *trace, unsigned n, bool say);
/* Leaves out of the trace what is not needed for its violation. */
void search_shorten(struct search_result *r);
/* Steps taken, as long as the search goes on. */
uint64_t search_steps(void);
/* The way to where the search is, for a crash. */
unsigned search_where(struct choice *trace);

#endif
