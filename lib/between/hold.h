/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait: for their time, in its order, for others to pass them, or until they are released. */
#ifndef UR_BETWEEN_HOLD_H
#define UR_BETWEEN_HOLD_H

#include "base/base.h"
#include "between/between.h"

#define UR_HOLD_SHORT 16384 /* frames of up to UR_HOLD_SHORT_LEN bytes, */
#define UR_HOLD_SHORT_LEN 4608
#define UR_HOLD_LONG 1024   /* and longer ones; only those in use cost memory */
#define UR_HOLD_PASSED 64   /* that wait for others */
#define UR_HOLD_PARKED 1024 /* that wait to be released */

struct ur_held {
	struct ur_held *next; /* in a queue of the caller's */
	struct ur_between_fate fate;
	struct ur_fault_place place;
	uint64_t key; /* of the packets that it passes, or that have to pass it */
	uint8_t extra[UR_BETWEEN_EXTRA];
	uint8_t end; /* where it leaves */
	bool is_long;
	ur_time due; /* of ur_hold_until; 0 of others */
	uint32_t len;
	uint8_t bytes[];
};

struct ur_hold;

struct ur_hold *ur_hold_create(void); /* NULL: out of memory */
void ur_hold_destroy(struct ur_hold *h);

/* A copy that is to leave at `end`, which the caller hands on to one of the next, or gives back. NULL when there is no room. */
struct ur_held *ur_hold_copy(struct ur_hold *h, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra);
void ur_hold_give(struct ur_hold *h, struct ur_held *f);

void ur_hold_until(struct ur_hold *h, ur_time due, struct ur_held *f);
/* Holds it until `n` packets with its key have passed it. False when there is no room: it stays the caller's. */
bool ur_hold_passed(struct ur_hold *h, ur_time due, unsigned n, struct ur_held *f);
void ur_hold_passes(struct ur_hold *h, uint64_t key);
/* Holds it until its holder (in its fate) is released. False when there is no room: it stays the caller's. */
bool ur_hold_park(struct ur_hold *h, ur_time due, struct ur_held *f);
/* How many frames that holder has; with 0 all holders. */
unsigned ur_hold_parked(const struct ur_hold *h, unsigned holder);
/* Releases them at `now` in the order in which they came; with 0 those of all holders. Returns how many. */
unsigned ur_hold_release(struct ur_hold *h, ur_time now, unsigned holder);

ur_time ur_hold_next(const struct ur_hold *h); /* UR_TIME_NEVER: nothing waits */
/* The first frame that is due, or NULL. It is the caller's. */
struct ur_held *ur_hold_take(struct ur_hold *h, ur_time now);

#endif
