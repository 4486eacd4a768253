/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values over time with bounded memory: what is close together in time is merged when there are too many of them, the closer the longer
 * the recording. A merged point keeps the lowest and the highest of its values, so no extreme is lost.
 */
#ifndef UR_AN_CURVE_H
#define UR_AN_CURVE_H

#include "base/base.h"

struct ur_curve_point {
	ur_time from, to;
	uint64_t low, high;
	uint64_t n; /* values */
};

struct ur_curve {
	struct ur_curve_point *at;
	uint32_t n, room, most;
	ur_time width; /* points that lie in the same multiple of it are one; 0: none are */
	uint64_t lost; /* values that memory was too short for */
};

/* `most` points, 16 at least. */
void ur_curve_init(struct ur_curve *c, uint32_t most);
void ur_curve_fini(struct ur_curve *c);
/* Times that go back are taken for the newest. */
void ur_curve_add(struct ur_curve *c, ur_time when, uint64_t low, uint64_t high);

/* --- sums of intervals of one length, which doubles when they are too many --- */

#define UR_BINS 256

struct ur_bin {
	uint64_t bytes, again; /* payload for the first time, and what came again */
	uint64_t messages;
	uint64_t rtt_n, rtt_sum;
};

struct ur_bins {
	struct ur_bin at[UR_BINS];
	uint32_t n;
	bool begun;
	ur_time begin, width;
};

/* The interval of this time; what lies before the first one belongs to it. */
struct ur_bin *ur_bins_at(struct ur_bins *b, ur_time when);

#endif
