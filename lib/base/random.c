/* SPDX-License-Identifier: BSD-3-Clause */
/* ChaCha20, the generator that erases its key, SipHash, and the shuffled numbers. */
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"

/* --- ChaCha20 (RFC 8439, 2.3) --- */

static inline uint32_t rotl(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

static inline void quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
	*a += *b;
	*d = rotl(*d ^ *a, 16);
	*c += *d;
	*b = rotl(*b ^ *c, 12);
	*a += *b;
	*d = rotl(*d ^ *a, 8);
	*c += *d;
	*b = rotl(*b ^ *c, 7);
}

/* Columns, then diagonals. Written out: with indices known to the compiler the state stays in registers. */
static inline void double_round(uint32_t s[16])
{
	quarter(&s[0], &s[4], &s[8], &s[12]);
	quarter(&s[1], &s[5], &s[9], &s[13]);
	quarter(&s[2], &s[6], &s[10], &s[14]);
	quarter(&s[3], &s[7], &s[11], &s[15]);
	quarter(&s[0], &s[5], &s[10], &s[15]);
	quarter(&s[1], &s[6], &s[11], &s[12]);
	quarter(&s[2], &s[7], &s[8], &s[13]);
	quarter(&s[3], &s[4], &s[9], &s[14]);
}

void ur_chacha20_block(const uint32_t key[8], const uint32_t at[4], uint8_t out[UR_CHACHA_BLOCK])
{
	uint32_t in[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}; /* "expand 32-byte k" */
	uint32_t s[16];

	memcpy(in + 4, key, 32);
	memcpy(in + 12, at, 16);
	memcpy(s, in, sizeof(s));
	for (unsigned i = 0; i < 10; i++)
		double_round(s);
	for (unsigned i = 0; i < 16; i++)
		ur_put_le32(out + 4 * i, s[i] + in[i]);
}

/* --- the generator --- */

static void set_key(uint32_t key[8], const uint8_t *bytes)
{
	for (unsigned i = 0; i < 8; i++)
		key[i] = ur_get_le32(bytes + 4 * i);
}

void ur_random_init(struct ur_random *r, const struct ur_seed *seed)
{
	memset(r, 0, sizeof(*r));
	set_key(r->key, seed->b);
}

/* The first bytes of the new pool are the next key: the one that made them is gone. */
static void refill(struct ur_random *r)
{
	uint32_t at[4] = {0};

	for (; at[0] < UR_RANDOM_POOL / UR_CHACHA_BLOCK; at[0]++)
		ur_chacha20_block(r->key, at, r->pool + at[0] * UR_CHACHA_BLOCK);
	set_key(r->key, r->pool);
	memset(r->pool, 0, sizeof(r->key));
	r->left = UR_RANDOM_POOL - sizeof(r->key);
}

void ur_random_bytes(struct ur_random *r, void *to, unsigned n)
{
	for (uint8_t *p = to; n;) {
		unsigned k;
		uint8_t *from;

		if (!r->left)
			refill(r);
		k = ur_min_u32(n, r->left);
		from = r->pool + UR_RANDOM_POOL - r->left;
		memcpy(p, from, k);
		memset(from, 0, k);
		r->left -= k;
		p += k;
		n -= k;
	}
}

uint32_t ur_random_u32(struct ur_random *r)
{
	uint8_t b[4];

	ur_random_bytes(r, b, sizeof(b));
	return ur_get_le32(b);
}

uint64_t ur_random_u64(struct ur_random *r)
{
	uint64_t high = ur_random_u32(r);

	return high << 32 | ur_random_u32(r);
}

/* --- SipHash-2-4 (Aumasson, Bernstein 2012) of eight bytes --- */

static inline uint64_t rotl64(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl64(v[1], 13) ^ v[0];
	v[0] = rotl64(v[0], 32);
	v[2] += v[3];
	v[3] = rotl64(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl64(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl64(v[1], 17) ^ v[2];
	v[2] = rotl64(v[2], 32);
}

static inline void sip_absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

uint64_t ur_siphash(const uint64_t key[2], uint64_t word)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
			 key[1] ^ 0x7465646279746573};

	sip_absorb(v, word);
	sip_absorb(v, (uint64_t)sizeof(word) << 56);
	v[2] ^= 0xff;
	for (unsigned i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* --- shuffled numbers --- */

#define ROUNDS 8 /* four make a random permutation of many numbers (Luby, Rackoff 1988); these are few */

void ur_shuffle_init(struct ur_shuffle *s, struct ur_random *r, unsigned bits)
{
	s->key[0] = ur_random_u64(r);
	s->key[1] = ur_random_u64(r);
	s->next = 0;
	s->bits = bits;
}

/* A Feistel network over the two halves of a counter. */
uint32_t ur_shuffle_next(struct ur_shuffle *s)
{
	unsigned half = s->bits / 2;
	uint32_t mask = (1u << half) - 1, n = s->next++, left = n >> half & mask, right = n & mask;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint32_t swap = right;

		right = left ^ ((uint32_t)ur_siphash(s->key, round << 32 | right) & mask);
		left = swap;
	}
	return left << half | right;
}
