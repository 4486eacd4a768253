/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash of hosts and a number. Copies that `uroce pcap rewrite` makes with one seed depend on it: it stays as it is. */
#ifndef UR_AN_HASH_H
#define UR_AN_HASH_H

#include <string.h>

#include "base/base.h"

static inline uint64_t an_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

static inline uint64_t an_hash(const struct ur_gid *a, const struct ur_gid *b, uint64_t c)
{
	uint64_t w[4];

	memcpy(w, a->raw, 16);
	memcpy(w + 2, b->raw, 16);
	c = an_mix(c ^ w[0]) + w[1];
	c = an_mix(c ^ w[2]) + w[3];
	return an_mix(an_mix(c));
}

#endif
