/* SPDX-License-Identifier: BSD-3-Clause */
/* ChaCha20 by the vectors of RFC 8439, SipHash by that of its authors, the generator by what it leaves, and the shuffled numbers. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "base/random.h"

void ur_suite_random(void);

/* 2.3.2, and the second one of A.1. */
static void chacha20__vectors(void)
{
	static const uint8_t want[][16] = {
		{0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20, 0x71, 0xc4},
		{0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a, 0x98, 0xba, 0x97, 0x7c, 0x73, 0x2d, 0x08, 0x0d},
	};
	static const uint8_t last[] = {0xb5, 0x12, 0x9c, 0xd1, 0xde, 0x16, 0x4e, 0xb9, 0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e};
	const uint32_t at[][4] = {{1, 0x09000000, 0x4a000000, 0}, {1, 0, 0, 0}};
	uint8_t out[UR_CHACHA_BLOCK];
	uint32_t key[8];

	for (unsigned i = 0; i < 8; i++)
		key[i] = 0x03020100 + 0x04040404 * i;
	ur_chacha20_block(key, at[0], out);
	CU_ASSERT_EQUAL(memcmp(out, want[0], 16), 0);
	CU_ASSERT_EQUAL(memcmp(out + 48, last, 16), 0);
	memset(key, 0, sizeof(key));
	ur_chacha20_block(key, at[1], out);
	CU_ASSERT_EQUAL(memcmp(out, want[1], 16), 0);
}

/* Key and message count up from 0. */
static void siphash__vector(void)
{
	static const uint64_t key[] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

	CU_ASSERT_EQUAL(ur_siphash(key, 0x0706050403020100), 0x93f5f5799a932462);
}

static void random__the_seed_decides(void)
{
	uint8_t a[1000], b[1000], c[1000];
	struct ur_random r;
	struct ur_seed seed = ur_seed_of(7);
	unsigned ones = 0;

	ur_random_init(&r, &seed);
	ur_random_bytes(&r, a, sizeof(a));
	ur_random_init(&r, &seed);
	for (unsigned i = 0, n = 1; i < sizeof(b); i += n, n = n % 7 + 1) /* the same in pieces */
		ur_random_bytes(&r, b + i, n < sizeof(b) - i ? n : (unsigned)(sizeof(b) - i));
	CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
	seed.b[31] ^= 1;
	ur_random_init(&r, &seed);
	ur_random_bytes(&r, c, sizeof(c));
	for (unsigned i = 0; i < sizeof(a); i++)
		ones += (unsigned)__builtin_popcount(a[i] ^ c[i]);
	CU_ASSERT_TRUE(ones > 3700 && ones < 4300); /* of 8000 bits: they have nothing in common */
}

/* Whoever reads the generator's memory learns nothing of what it gave: neither the bytes nor the key that made them are there. */
static void random__forgets(void)
{
	struct ur_random r;
	struct ur_seed seed = ur_seed_of(0x0123456789abcdef);
	uint8_t got[100];

	ur_random_init(&r, &seed);
	ur_random_bytes(&r, got, sizeof(got));
	CU_ASSERT_PTR_NULL(memmem(&r, sizeof(r), got, 8));
	CU_ASSERT_PTR_NULL(memmem(&r, sizeof(r), got + sizeof(got) - 8, 8));
	CU_ASSERT_PTR_NULL(memmem(&r, sizeof(r), seed.b, 8));
	for (unsigned i = 0; i < UR_RANDOM_POOL - r.left; i++)
		CU_ASSERT_EQUAL(r.pool[i], 0);
}

static void shuffle__each_number_once(void)
{
	static uint8_t seen[1 << 16];
	struct ur_random r;
	struct ur_seed seed = ur_seed_of(3);

	ur_random_init(&r, &seed);
	for (unsigned bits = 2; bits <= 16; bits += 2) {
		struct ur_shuffle s;
		unsigned wrong = 0;
		uint32_t first;

		ur_shuffle_init(&s, &r, bits);
		memset(seen, 0, sizeof(seen));
		first = ur_shuffle_next(&s);
		seen[first] = 1;
		for (uint32_t i = 1; i < 1u << bits; i++) {
			uint32_t n = ur_shuffle_next(&s);

			wrong += n >> bits || seen[n];
			seen[n] = 1;
		}
		CU_ASSERT_EQUAL(wrong, 0);
		CU_ASSERT_EQUAL(ur_shuffle_next(&s), first); /* and round again */
	}
}

/* Neither the difference nor the XOR of neighbours says anything, and another key makes another order. */
static void shuffle__neighbours_have_nothing_in_common(void)
{
	struct ur_random r;
	struct ur_seed seed = ur_seed_of(4);
	struct ur_shuffle s[2];
	unsigned same_step = 0, same = 0, ones = 0;
	uint32_t before[2], step = 0;

	ur_random_init(&r, &seed);
	for (unsigned i = 0; i < 2; i++) {
		ur_shuffle_init(&s[i], &r, 24);
		before[i] = ur_shuffle_next(&s[i]);
	}
	for (unsigned i = 0; i < 1000; i++) {
		uint32_t n = ur_shuffle_next(&s[0]);

		same_step += n - before[0] == step;
		step = n - before[0];
		ones += (unsigned)__builtin_popcount(n ^ before[0]);
		same += n == (before[1] = ur_shuffle_next(&s[1]));
		before[0] = n;
	}
	CU_ASSERT_EQUAL(same_step, 0);
	CU_ASSERT_TRUE(same < 2);
	CU_ASSERT_TRUE(ones > 11600 && ones < 12400); /* of 24000 bits */
}

void ur_suite_random(void)
{
	CU_pSuite s = CU_add_suite("random", NULL, NULL);

	CU_ADD_TEST(s, chacha20__vectors);
	CU_ADD_TEST(s, siphash__vector);
	CU_ADD_TEST(s, random__the_seed_decides);
	CU_ADD_TEST(s, random__forgets);
	CU_ADD_TEST(s, shuffle__each_number_once);
	CU_ADD_TEST(s, shuffle__neighbours_have_nothing_in_common);
}
