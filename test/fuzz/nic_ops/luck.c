/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/base/random.h for fuzz_nic: the linker takes these functions instead of those of lib/base/random.c, whose ChaCha20 took a fifth of
 * the time of an input. Numbers are as different from one another, but can be computed by anybody; the attacker here knows them anyway, and
 * test/unit/base/test_random.c has the real ones.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "base/rng.h"

/* The state of a splitmix64 is the first two words of the key. */
static uint64_t next(uint32_t key[8])
{
	struct ur_rng g = {.state = (uint64_t)key[1] << 32 | key[0]};
	uint64_t v = ur_rng_u64(&g);

	key[0] = (uint32_t)g.state;
	key[1] = (uint32_t)(g.state >> 32);
	return v;
}

void ur_random_init(struct ur_random *r, const struct ur_seed *seed)
{
	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < sizeof(seed->b); i += 4)
		r->key[i / 4 & 1] ^= ur_get_le32(seed->b + i);
}

void ur_random_bytes(struct ur_random *r, void *to, unsigned n)
{
	for (uint8_t *p = to; n;) {
		const uint64_t v = next(r->key);
		const unsigned k = ur_min_u32(n, sizeof(v));

		memcpy(p, &v, k);
		p += k;
		n -= k;
	}
}

uint32_t ur_random_u32(struct ur_random *r)
{
	return (uint32_t)next(r->key);
}

uint64_t ur_random_u64(struct ur_random *r)
{
	return next(r->key);
}

void ur_shuffle_init(struct ur_shuffle *s, struct ur_random *r, unsigned bits)
{
	memset(s, 0, sizeof(*s));
	s->key[0] = ur_random_u32(r);
	s->bits = bits;
}

/* A permutation, too: each step can be undone. */
uint32_t ur_shuffle_next(struct ur_shuffle *s)
{
	const uint32_t mask = (1u << s->bits) - 1;
	uint32_t n = s->next++;

	for (unsigned i = 0; i < 3; i++) {
		n = ((n ^ s->key[0]) * 0x9e3779b1u) & mask;
		n ^= n >> s->bits / 2;
	}
	return n;
}
