/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small random generator (splitmix64: Steele, Lea, Flood 2014), for simulations, delays and hashes. What peers must not guess comes from
 * random.h.
 */
#ifndef UR_RNG_H
#define UR_RNG_H

#include "base/base.h"

struct ur_rng {
	uint64_t state;
};

static inline uint64_t ur_rng_u64(struct ur_rng *r)
{
	uint64_t z = (r->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline uint32_t ur_rng_u32(struct ur_rng *r)
{
	return (uint32_t)(ur_rng_u64(r) >> 32);
}

/* Uniform in [0, n); n > 0. */
static inline uint32_t ur_rng_below(struct ur_rng *r, uint32_t n)
{
	return (uint32_t)(((uint64_t)ur_rng_u32(r) * n) >> 32);
}

#endif
