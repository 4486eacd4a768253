/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 by carry-less multiplication of two blocks at a time, for CPUs with AVX2 and VPCLMULQDQ: AMD since Zen 3, Intel's clients since
 * Alder Lake. crc32_fold.h explains the arithmetic.
 */
#include <immintrin.h>

#include "wire/crc/crc32_fold.h"
#include "wire/crc/crc32_kernels.h"

#define TARGET __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define INLINE static inline __attribute__((always_inline)) TARGET

/* From here on a loop over 128 bytes is faster than to weigh each block. */
#define LONG 16

INLINE __m128i load(const void *p)
{
	return _mm_loadu_si128(p);
}

INLINE __m256i load2(const void *p)
{
	return _mm256_loadu_si256(p);
}

/* A block of the message; its copy is written where it is wanted. */
INLINE __m128i take(uint8_t *to, const uint8_t *from, size_t at, bool copy)
{
	__m128i v = load(from + at);

	if (copy)
		_mm_storeu_si128((__m128i *)(to + at), v);
	return v;
}

INLINE __m256i take2(uint8_t *to, const uint8_t *from, size_t at, bool copy)
{
	__m256i v = load2(from + at);

	if (copy)
		_mm256_storeu_si256((__m256i *)(to + at), v);
	return v;
}

INLINE __m128i fold(__m128i v, __m128i k)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_clmulepi64_si128(v, k, 0x11));
}

INLINE __m256i fold2(__m256i v, __m256i k)
{
	return _mm256_xor_si256(_mm256_clmulepi64_epi128(v, k, 0x00), _mm256_clmulepi64_epi128(v, k, 0x11));
}

/* Two blocks, of which the second has `after` blocks after it. */
INLINE __m256i weigh2(__m256i v, size_t after)
{
	return fold2(v, load2(UR_CRC32_WEIGHT(after + 1)));
}

INLINE __m128i weigh(__m128i v, size_t after)
{
	return fold(v, load(UR_CRC32_WEIGHT(after)));
}

/* Barrett's reduction: A in the lower 64 bits, B in the next 32. */
INLINE uint32_t reduce(__m128i ab)
{
	__m128i k = _mm_set_epi64x((long long)UR_CRC32_POLYNOMIAL, (long long)UR_CRC32_QUOTIENT);
	__m128i q = _mm_clmulepi64_si128(ab, k, 0x00);

	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(_mm_clmulepi64_si128(q, k, 0x10), ab), 2);
}

INLINE uint32_t of_short(uint32_t state, uint8_t *to, const uint8_t *from, size_t len, bool copy)
{
	struct ur_crc32_short s = ur_crc32_load_short(state, to, from, len, copy);

	if (len <= 8)
		return reduce(_mm_set_epi64x(s.beyond, (long long)s.last));
	return reduce(_mm_srli_si128(weigh(_mm_set_epi64x((long long)s.last, (long long)s.first), 0), 4));
}

INLINE uint32_t run(uint32_t crc, uint8_t *to, const uint8_t *from, size_t len, bool copy)
{
	size_t rest = len % 16, n = len / 16, at = rest;
	__m128i head, state, sum;
	__m256i sum2;

	if (len == 0)
		return crc;
	if (n == 0)
		return ~of_short(~crc, to, from, len, copy);

	/* What is more than whole blocks becomes the end of a block that begins with zeros. The state may end in the block after it. */
	state = _mm_cvtsi32_si128((int)~crc);
	head = _mm_shuffle_epi8(_mm_xor_si128(take(to, from, 0, copy), state), load(ur_crc32_slide + rest));
	state = _mm_shuffle_epi8(state, load(ur_crc32_slide + 16 + rest));
	if (n < LONG) {
		sum = _mm_xor_si128(weigh(head, n), weigh(_mm_xor_si128(take(to, from, at, copy), state), n - 1));
		sum2 = _mm256_setzero_si256();
		at += 16;
		n -= 1;
	} else {
		sum = _mm_setzero_si128();
		const __m256i over = _mm256_broadcastsi128_si256(load(ur_crc32_over_8));
		__m256i a = _mm256_xor_si256(take2(to, from, at, copy), _mm256_zextsi128_si256(state));
		__m256i b = take2(to, from, at + 32, copy), c = take2(to, from, at + 64, copy), d = take2(to, from, at + 96, copy);

		/* The block before these weighs as the last of them, folded over eight. */
		d = _mm256_xor_si256(d, fold2(_mm256_inserti128_si256(_mm256_setzero_si256(), head, 1), over));
		for (at += 128, n -= 8; n >= 8; at += 128, n -= 8) {
			a = _mm256_xor_si256(fold2(a, over), take2(to, from, at, copy));
			b = _mm256_xor_si256(fold2(b, over), take2(to, from, at + 32, copy));
			c = _mm256_xor_si256(fold2(c, over), take2(to, from, at + 64, copy));
			d = _mm256_xor_si256(fold2(d, over), take2(to, from, at + 96, copy));
		}
		sum2 = _mm256_xor_si256(_mm256_xor_si256(weigh2(a, n + 6), weigh2(b, n + 4)),
					_mm256_xor_si256(weigh2(c, n + 2), weigh2(d, n)));
	}
	for (; n >= 2; at += 32, n -= 2)
		sum2 = _mm256_xor_si256(sum2, weigh2(take2(to, from, at, copy), n - 2));
	if (len >= 48)
		sum = _mm_xor_si128(sum, _mm_xor_si128(_mm256_castsi256_si128(sum2), _mm256_extracti128_si256(sum2, 1)));
	if (n)
		sum = _mm_xor_si128(sum, weigh(take(to, from, at, copy), 0));
	return ~reduce(_mm_srli_si128(sum, 4));
}

TARGET static uint32_t crc_avx2(uint32_t crc, const void *data, size_t len)
{
	return run(crc, NULL, data, len, false);
}

TARGET static uint32_t copy_avx2(uint32_t crc, void *dst, const void *src, size_t len)
{
	return run(crc, dst, src, len, true);
}

static bool runs_here(void)
{
	__builtin_cpu_init(); /* of constructors, this may be the first */
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("vpclmulqdq");
}

/* CPUs with this part of AVX-512 have all of it that ISA-L's kernel for 512 bits asks for; the two have not been compared yet. */
static bool is_faster(void)
{
	return !__builtin_cpu_supports("avx512vbmi2");
}

const struct ur_crc32_kernel ur_crc32_avx2 = {"AVX2", runs_here, is_faster, crc_avx2, copy_avx2};
