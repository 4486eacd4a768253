/* SPDX-License-Identifier: BSD-3-Clause */
/* What can happen in a state, and lets it happen: step.c of transport/ for the transport, of cm/ for the connection manager. */
#ifndef UR_EXPLORE_STEP_H
#define UR_EXPLORE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/explore/scenario.h"
#include "test/explore/violation.h"

#define CHOICES 40

struct choice {
	uint8_t kind; /* of those in step.c of transport/ or cm/ */
	uint8_t node; /* where it happens; of frames: who sent it */
	uint8_t q;    /* of posts: the connection */
};

/* Sets up what is explored, in the arena, and seals that. */
void step_open(const struct scenario *s);
/* All that can happen, the harmless first; returns how many. */
unsigned step_choices(struct choice *c, unsigned faults);
void step(struct choice c);
bool step_is_fault(struct choice c);
/* Nothing can happen any more: is everything complete? */
void step_check_end(void);

/* "arrive:0", "post:1.0" (connection 0, from node 1) and so on, as the command line has them. */
void step_name(struct choice c, char *text, size_t size);
bool step_parse(const char *text, struct choice *c);
/* Says what it is, before it happens. */
void step_describe(struct choice c, char *text, size_t size);

#endif
