/* SPDX-License-Identifier: BSD-3-Clause */
/* Search by PSN in what is in the order of PSNs, as the requests in a send queue are. */
#ifndef UR_PSN_FIND_H
#define UR_PSN_FIND_H

#include "base/psn.h"

/* The PSN with which `i` begins. */
typedef uint32_t ur_psn_of(const void *arg, uint32_t i);

/*
 * Of the indices [from, end), which may wrap, the last one that begins at `psn` or before it; `end` for none. Their PSNs do not descend,
 * and lie within 2^23 of one another and of `psn`. It looks at no more than 2 log2(d + 1) + 2 of them, d being how far the one found is
 * from `from`: at two where it is `from` itself.
 */
__attribute__((always_inline)) static inline uint32_t ur_psn_find(uint32_t from, uint32_t end, uint32_t psn, ur_psn_of *at, const void *arg)
{
	uint32_t low = from, step = 1, high;

	if (from == end || ur_psn_diff(psn, at(arg, from)) < 0)
		return end;
	while (step < end - low && ur_psn_diff(psn, at(arg, low + step)) >= 0) {
		low += step;
		step *= 2;
	}
	high = low + ur_min_u32(step, end - low);
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (ur_psn_diff(psn, at(arg, middle)) >= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

#endif
