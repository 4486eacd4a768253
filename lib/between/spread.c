/* SPDX-License-Identifier: BSD-3-Clause */
#include "between/spread.h"

#define EXACT 8 /* shorter ones have a bin each */

static unsigned bin_of(ur_time t)
{
	unsigned power;

	if (t < EXACT)
		return (unsigned)t;
	if (t >> UR_SPREAD_OCTAVES)
		return UR_SPREAD_BINS - 1;
	power = 63 - (unsigned)__builtin_clzll(t);
	return (power - 2) * UR_SPREAD_STEPS + (t >> (power - 3) & (UR_SPREAD_STEPS - 1));
}

/* Its middle. */
static ur_time time_of(unsigned bin)
{
	const unsigned shift = bin < EXACT ? 0 : bin / UR_SPREAD_STEPS - 1;
	const ur_time first = bin < EXACT ? bin : (ur_time)(UR_SPREAD_STEPS + bin % UR_SPREAD_STEPS) << shift;

	return first + ((1ull << shift) >> 1);
}

void ur_spread_add(struct ur_spread *s, ur_time t)
{
	uint32_t *bin = &s->bin[bin_of(t)];

	s->least = s->n ? ur_min_time(s->least, t) : t;
	s->most = ur_max_time(s->most, t);
	s->n++;
	*bin += *bin != UINT32_MAX;
}

ur_time ur_spread_at(const struct ur_spread *s, unsigned permille)
{
	const uint64_t rank = s->n / 1000 * permille + (s->n % 1000 * permille + 999) / 1000;
	uint64_t seen = 0;

	if (rank >= s->n)
		return s->most;
	for (unsigned i = 0; i < UR_SPREAD_BINS - 1; i++) {
		seen += s->bin[i];
		if (seen >= rank && seen)
			return ur_min_time(ur_max_time(time_of(i), s->least), s->most);
	}
	return s->most;
}
