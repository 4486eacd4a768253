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

struct ur_bins {
	uint64_t *at; /* rows of `columns` sums; NULL: memory is short, and nothing is summed up */
	uint32_t n, most, columns;
	bool begun;
	ur_time begin, width;
};

/* `most` intervals, an even number. */
void ur_bins_init(struct ur_bins *b, uint32_t most, uint32_t columns);
void ur_bins_fini(struct ur_bins *b);
/* Adds to the interval of this time; what lies before the first one belongs to it. */
void ur_bins_add(struct ur_bins *b, ur_time when, uint32_t column, uint64_t v);
/* Adds the nanoseconds from `from` to `to`, each to its interval. */
void ur_bins_span(struct ur_bins *b, ur_time from, ur_time to, uint32_t column);
uint64_t ur_bins_get(const struct ur_bins *b, uint32_t i, uint32_t column);

#endif
