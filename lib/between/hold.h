/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that wait: for their time, in its order, or for others to pass them. */
#ifndef UR_BETWEEN_HOLD_H
#define UR_BETWEEN_HOLD_H

#include "base/base.h"
#include "between/between.h"

#define UR_HOLD_SHORT 16384 /* frames of up to UR_HOLD_SHORT_LEN bytes, */
#define UR_HOLD_SHORT_LEN 4608
#define UR_HOLD_LONG 1024 /* and longer ones; only those in use cost memory */
#define UR_HOLD_PASSED 64 /* that wait for others */

struct ur_held {
	uint8_t extra[UR_BETWEEN_EXTRA];
	uint8_t end; /* where it leaves */
	bool is_long;
	uint32_t len;
	uint8_t bytes[];
};

struct ur_hold;

struct ur_hold *ur_hold_create(void); /* NULL: out of memory */
void ur_hold_destroy(struct ur_hold *h);

/* A copy, that leaves at `end` when it is due. False when there is no room. */
bool ur_hold_until(struct ur_hold *h, ur_time due, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra);
/* One that is due as soon as `n` packets with this key have passed it. */
bool ur_hold_passed(struct ur_hold *h, ur_time due, unsigned n, uint64_t key, unsigned end, const uint8_t *frame, uint32_t len,
		    const uint8_t *extra);
void ur_hold_passes(struct ur_hold *h, uint64_t key);

ur_time ur_hold_next(const struct ur_hold *h); /* UR_TIME_NEVER: nothing waits */
/* The first frame that is due, or NULL. The caller gives it back. */
struct ur_held *ur_hold_take(struct ur_hold *h, ur_time now);
void ur_hold_give(struct ur_hold *h, struct ur_held *f);

#endif
