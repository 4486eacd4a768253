/* SPDX-License-Identifier: BSD-3-Clause */
/* FNV-1a: names what has no number. Not for tables that a peer fills. */
#ifndef UR_HASH_H
#define UR_HASH_H

#include <stddef.h>
#include <stdint.h>

#define UR_HASH_BEGIN 0xcbf29ce484222325ull

static inline uint64_t ur_hash_bytes(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

#endif
