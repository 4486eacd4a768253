/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that peers must not be able to guess: a generator whose output reveals nothing about its earlier and later output (ChaCha20 of
 * RFC 8439 with fast key erasure: Bernstein, 2017), and a sequence of numbers in which each occurs once before any is repeated, in an
 * unpredictable order. Everything follows from the seed, which the caller provides and keeps secret. For random numbers that need not be
 * secret there is rng.h.
 */
#ifndef UR_RANDOM_H
#define UR_RANDOM_H

#include "base/base.h"

#define UR_CHACHA_BLOCK 64 /* bytes */
#define UR_RANDOM_POOL 256

struct ur_seed {
	uint8_t b[32];
};

struct ur_random {
	uint32_t key[8];
	unsigned left; /* bytes at the end of `pool` that have not been used */
	uint8_t pool[UR_RANDOM_POOL];
};

/* One block of the key stream: `at` is the block counter and the nonce, the last four words of the state. */
void ur_chacha20_block(const uint32_t key[8], const uint32_t at[4], uint8_t out[UR_CHACHA_BLOCK]);

/* SipHash-2-4 of the word's bytes, lowest first: without the key nobody can tell it from a random function. A tenth of a block's work. */
uint64_t ur_siphash(const uint64_t key[2], uint64_t word);

void ur_random_init(struct ur_random *r, const struct ur_seed *seed);
/* Bytes that were returned are no longer anywhere in *r. */
void ur_random_bytes(struct ur_random *r, void *to, unsigned n);
uint32_t ur_random_u32(struct ur_random *r);
uint64_t ur_random_u64(struct ur_random *r);

/* For simulations and tests: the same number gives the same run. */
static inline struct ur_seed ur_seed_of(uint64_t n)
{
	struct ur_seed s = {{0}};

	for (unsigned i = 0; i < 8; i++)
		s.b[i] = (uint8_t)(n >> 8 * i);
	return s;
}

/* All numbers of `bits` bits, one after another, round and round. */
struct ur_shuffle {
	uint64_t key[2];
	uint32_t next;
	unsigned bits;
};

/* `bits` is even, 2 to 24. */
void ur_shuffle_init(struct ur_shuffle *s, struct ur_random *r, unsigned bits);
uint32_t ur_shuffle_next(struct ur_shuffle *s);

#endif
