/* SPDX-License-Identifier: BSD-3-Clause */
/* A bound on how often something happens: `burst` times at once, and then once every `interval` (the generic cell rate algorithm). */
#ifndef UR_BUCKET_H
#define UR_BUCKET_H

#include "base/base.h"

struct ur_bucket {
	ur_time full; /* when it will be full again; zero to begin with */
};

/* Takes one out; false when it is empty. `burst` is at least 1. */
static inline bool ur_bucket_take(struct ur_bucket *b, unsigned burst, ur_time interval, ur_time now)
{
	ur_time full = b->full > now ? b->full : now;

	if (full - now > (burst - 1) * interval)
		return false;
	b->full = full + interval;
	return true;
}

#endif
