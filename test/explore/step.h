/* SPDX-License-Identifier: BSD-3-Clause */
/* What can happen in a state, and lets it happen. */
#ifndef UR_EXPLORE_STEP_H
#define UR_EXPLORE_STEP_H

#include "world.h"

#define CHOICES 40

/* In the order in which things happen where there is no choice: what has been sent arrives, what is left is posted, then time passes. */
enum step_kind {
	STEP_SEND,    /* what a node has to send leaves it; otherwise that happens at once */
	STEP_ARRIVE,  /* the first frame of a way arrives */
	STEP_BURST,   /* all of them do, at once */
	STEP_RECEIVE, /* a receive is posted, */
	STEP_POST,    /* or a message */
	STEP_EXPIRE,  /* the next timer of a node expires, when nothing is on the wire */
	STEP_FAULTS,  /* from here on: what costs a fault */
	STEP_LOSE = STEP_FAULTS,
	STEP_TWICE,    /* the first frame arrives, and will once more, as the next of its way */
	STEP_COPY,     /* a copy of it becomes the last of its way */
	STEP_OVERTAKE, /* the second frame arrives before the first */
	STEP_DELAY,    /* the first becomes the last */
	STEP_EARLY,    /* a timer expires though frames are on the wire, or an earlier timer of the other node has not expired */
	STEP_KINDS,
};

struct choice {
	uint8_t kind; /* enum step_kind */
	uint8_t node; /* where it happens; of frames: who sent it */
	uint8_t q;    /* of posts: the connection */
};

/* All that can happen, the harmless first; returns how many. */
unsigned step_choices(struct choice *c, unsigned faults);
void step(struct choice c);
static inline bool step_is_fault(struct choice c)
{
	return c.kind >= STEP_FAULTS;
}

/* "arrive:0", "post:1.0" (connection 0, from node 1) and so on, as the command line has them. */
void step_name(struct choice c, char *text, size_t size);
bool step_parse(const char *text, struct choice *c);
/* Says what it is, before it happens. */
void step_describe(struct choice c, char *text, size_t size);

#endif
