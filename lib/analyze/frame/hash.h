/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hashes of hosts and a number. an_hash has no secret: whoever makes a recording can choose as many hosts and numbers as they like that
 * have one hash, so what is found by it alone must not be looked for in a list. Tables go by an_key.
 */
#ifndef UR_AN_HASH_H
#define UR_AN_HASH_H

#include <string.h>

#include "base/table.h"

static inline uint64_t an_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

/* Copies that `uroce pcap rewrite` makes with one seed depend on it: it stays as it is. */
static inline uint64_t an_hash(const struct ur_gid *a, const struct ur_gid *b, uint64_t c)
{
	uint64_t w[4];

	memcpy(w, a->raw, 16);
	memcpy(w + 2, b->raw, 16);
	c = an_mix(c ^ w[0]) + w[1];
	c = an_mix(c ^ w[2]) + w[3];
	return an_mix(an_mix(c));
}

/* The hash of a table whose salt nobody knows who makes recordings. */
static inline uint64_t an_key(uint64_t salt, const struct ur_gid *a, const struct ur_gid *b, uint64_t c)
{
	uint64_t w[4];

	memcpy(w, a->raw, 16);
	memcpy(w + 2, b->raw, 16);
	salt = ur_table_hash(salt, w[0], w[1]);
	salt = ur_table_hash(salt, w[2], w[3]);
	return ur_table_hash(salt, c, 0);
}

#endif
