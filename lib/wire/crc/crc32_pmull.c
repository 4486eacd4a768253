/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 by the polynomial multiplication of aarch64 CPUs, eight blocks at a time. crc32_fold.h explains the arithmetic.
 *
 * The two instructions are written out: clang before 16 has their intrinsics only where the whole file may use them, and the two compilers
 * do not agree on how a function asks for them.
 */
#include <arm_neon.h>
#include <sys/auxv.h>

#include "wire/crc/crc32_fold.h"
#include "wire/crc/crc32_kernels.h"

#define INLINE static inline __attribute__((always_inline))

/* asm/hwcap.h, which older systems have without it. */
#ifndef HWCAP_PMULL
#define HWCAP_PMULL (1 << 4)
#endif

/* From here on a loop over 128 bytes is faster than to weigh each block. */
#define LONG 16

INLINE uint64x2_t multiply(uint64x2_t a, uint64x2_t b)
{
	uint64x2_t product;

	__asm__(".arch_extension aes\n\tpmull %0.1q, %1.1d, %2.1d" : "=w"(product) : "w"(a), "w"(b));
	return product;
}

INLINE uint64x2_t multiply_high(uint64x2_t a, uint64x2_t b)
{
	uint64x2_t product;

	__asm__(".arch_extension aes\n\tpmull2 %0.1q, %1.2d, %2.2d" : "=w"(product) : "w"(a), "w"(b));
	return product;
}

/* A block of the message; its copy is written where it is wanted. */
INLINE uint64x2_t take(uint8_t *to, const uint8_t *from, size_t at, bool copy)
{
	uint8x16_t v = vld1q_u8(from + at);

	if (copy)
		vst1q_u8(to + at, v);
	return vreinterpretq_u64_u8(v);
}

INLINE uint64x2_t fold(uint64x2_t v, uint64x2_t k)
{
	return veorq_u64(multiply(v, k), multiply_high(v, k));
}

/* A block with `after` blocks after it. */
INLINE uint64x2_t weigh(uint64x2_t v, size_t after)
{
	return fold(v, vld1q_u64(UR_CRC32_WEIGHT(after)));
}

INLINE uint64x2_t shuffle(uint64x2_t v, const uint8_t *indices)
{
	return vreinterpretq_u64_u8(vqtbl1q_u8(vreinterpretq_u8_u64(v), vld1q_u8(indices)));
}

INLINE uint64x2_t pair(uint64_t low, uint64_t high)
{
	return vcombine_u64(vcreate_u64(low), vcreate_u64(high));
}

/* Barrett's reduction: A in the lower 64 bits, B in the next 32. */
INLINE uint32_t reduce(uint64x2_t ab)
{
	uint64x2_t q = multiply(ab, pair(UR_CRC32_QUOTIENT, 0));

	return vgetq_lane_u32(vreinterpretq_u32_u64(veorq_u64(multiply(q, pair(UR_CRC32_POLYNOMIAL, 0)), ab)), 2);
}

/* Of a sum of weighed blocks, whose first 32 bits are zeros. */
INLINE uint32_t reduce_sum(uint64x2_t sum)
{
	return reduce(vreinterpretq_u64_u8(vextq_u8(vreinterpretq_u8_u64(sum), vdupq_n_u8(0), 4)));
}

INLINE uint32_t of_short(uint32_t state, uint8_t *to, const uint8_t *from, size_t len, bool copy)
{
	struct ur_crc32_short s = ur_crc32_load_short(state, to, from, len, copy);

	return len <= 8 ? reduce(pair(s.last, s.beyond)) : reduce_sum(weigh(pair(s.first, s.last), 0));
}

INLINE uint32_t run(uint32_t crc, uint8_t *to, const uint8_t *from, size_t len, bool copy)
{
	size_t rest = len % 16, n = len / 16, at = rest;
	uint64x2_t head, state, sum;

	if (len == 0)
		return crc;
	if (n == 0)
		return ~of_short(~crc, to, from, len, copy);

	/* What is more than whole blocks becomes the end of a block that begins with zeros. The state may end in the block after it. */
	state = pair(~crc, 0);
	head = shuffle(veorq_u64(take(to, from, 0, copy), state), ur_crc32_slide + rest);
	state = shuffle(state, ur_crc32_slide + 16 + rest);
	if (n < LONG) {
		sum = veorq_u64(weigh(head, n), weigh(veorq_u64(take(to, from, at, copy), state), n - 1));
		at += 16;
		n -= 1;
	} else {
		const uint64x2_t over = vld1q_u64(ur_crc32_over_8);
		uint64x2_t v[8];

#pragma GCC unroll 8
		for (unsigned i = 0; i < 8; i++)
			v[i] = take(to, from, at + 16 * i, copy);
		v[0] = veorq_u64(v[0], state);
		/* The block before these weighs as the last of them, folded over eight. */
		v[7] = veorq_u64(v[7], fold(head, over));
		for (at += 128, n -= 8; n >= 8; at += 128, n -= 8) {
#pragma GCC unroll 8
			for (unsigned i = 0; i < 8; i++)
				v[i] = veorq_u64(fold(v[i], over), take(to, from, at + 16 * i, copy));
		}
		sum = weigh(v[0], n + 7);
#pragma GCC unroll 8
		for (unsigned i = 1; i < 8; i++)
			sum = veorq_u64(sum, weigh(v[i], n + 7 - i));
	}
	for (; n; at += 16, n--)
		sum = veorq_u64(sum, weigh(take(to, from, at, copy), n - 1));
	return ~reduce_sum(sum);
}

static uint32_t crc_pmull(uint32_t crc, const void *data, size_t len)
{
	return run(crc, NULL, data, len, false);
}

static uint32_t copy_pmull(uint32_t crc, void *dst, const void *src, size_t len)
{
	return run(crc, dst, src, len, true);
}

static bool runs_here(void)
{
	return getauxval(AT_HWCAP) & HWCAP_PMULL;
}

static bool is_faster(void)
{
	return true;
}

const struct ur_crc32_kernel ur_crc32_pmull = {"PMULL", runs_here, is_faster, crc_pmull, copy_pmull};
