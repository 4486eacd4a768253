/* SPDX-License-Identifier: BSD-3-Clause */
/* Many durations in little memory: how many, the shortest and the longest, and how they are spread between these, to within 7 %. */
#ifndef UR_BETWEEN_SPREAD_H
#define UR_BETWEEN_SPREAD_H

#include "base/base.h"

#define UR_SPREAD_STEPS 8 /* of each power of two */
#define UR_SPREAD_OCTAVES 40
#define UR_SPREAD_BINS (UR_SPREAD_STEPS * (UR_SPREAD_OCTAVES - 2))

/* Zero is empty. */
struct ur_spread {
	uint64_t n;
	ur_time least, most;
	uint32_t bin[UR_SPREAD_BINS]; /* the last one has all from 2^40 ns on, which is 18 minutes */
};

void ur_spread_add(struct ur_spread *s, ur_time t);
/* What this number of a thousand of them do not exceed: 500 is the median, 1000 the longest. 0 when there are none. */
ur_time ur_spread_at(const struct ur_spread *s, unsigned permille);

#endif
