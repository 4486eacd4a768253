/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernels that fold have in common (Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction",
 * Intel 2009). A message is a polynomial M over GF(2) whose first bit has the highest power of x; its CRC is M * x^32 mod P. Bits are
 * reflected: of a register of n bits, bit i is the coefficient of x^(n-1-i), so bytes are loaded as they stand in memory.
 *
 * A carry-less product of two registers of 64 bits has bit i+j for bits i and j. Read as a register of 128 bits it is the product times x:
 * each constant here has one power less than one expects.
 *
 * Blocks. The 16 bytes with d blocks after them weigh x^(128*d). With their first 8 bytes L and their last 8 bytes H they are worth
 *
 *     (L * x^64 + H) * x^(128*d) * x^32  =  L * x^(128*d+96) + H * x^(128*d+32)
 *
 * so each block is multiplied by the two powers mod P for its distance, and all products are added: none waits for another. Long messages
 * first fold the front over by a fixed distance D, L * x^(D+64) + H * x^D, until few blocks are left. The sum has 96 bits, as powers mod P
 * have 32.
 *
 * The last step is Barrett's, once for all 96 bits: A * x^32 + B, where A are the upper 64, is congruent to q * P + B in its lower 32 bits,
 * where q = floor(A * x^32 / P) = floor(A * floor(x^96 / P) / x^64), which is exact since A has fewer than 65 bits.
 *
 * Lengths that are no multiple of 16 are filled with zeros in front, which change nothing. The state that is continued is added to the
 * first four bytes of the message.
 */
#ifndef UR_CRC32_FOLD_H
#define UR_CRC32_FOLD_H

#include <string.h>

#include "base/base.h"

/* {x^(128*d+95), x^(128*d+31)} mod P, the farthest block first: the constants of blocks in a row stand in a row. */
#define UR_CRC32_BLOCKS 32
extern const uint64_t ur_crc32_weights[UR_CRC32_BLOCKS][2];
/* Of the block that has `after` blocks after it. */
#define UR_CRC32_WEIGHT(after) ur_crc32_weights[UR_CRC32_BLOCKS - 1 - (after)]

/* {x^(D+63), x^(D-1)} mod P, to fold over so many blocks, of 128 bits each. */
extern const uint64_t ur_crc32_over_8[2];

/* floor(x^96 / P) without its lowest coefficient, which cannot reach the quotient; and P. Bit i is the coefficient of x^(64-i) and
 * x^(32-i). */
#define UR_CRC32_QUOTIENT 0xb4e5b025f7011641ull
#define UR_CRC32_POLYNOMIAL 0x1db710641ull

/*
 * Indices for byte shuffles, where an index with its top bit set yields 0: the 16 from `n` on move the first n bytes of a register to its
 * end and clear the rest; the 16 from 16 + n on move all but the first n to its start.
 */
extern const uint8_t ur_crc32_slide[48];

/* --- messages of fewer than 16 bytes: aligned to the end of 16, the state added --- */

struct ur_crc32_short {
	uint64_t first; /* with more than 8 bytes: all but the last 8 */
	uint64_t last;
	uint32_t beyond; /* what of the state reaches beyond a message of fewer than 4 bytes */
};

static inline __attribute__((always_inline)) struct ur_crc32_short ur_crc32_load_short(uint32_t state, uint8_t *to, const uint8_t *from,
										       size_t len, bool copy)
{
	struct ur_crc32_short s = {0};

	if (len > 8) {
		memcpy(&s.first, from, 8);
		memcpy(&s.last, from + len - 8, 8);
		if (copy) {
			memcpy(to, &s.first, 8);
			memcpy(to + len - 8, &s.last, 8);
		}
		s.first = (s.first ^ state) << (128 - 8 * len);
		s.last ^= (uint64_t)state >> (8 * len - 64);
		return s;
	}
	if (len >= 4) {
		uint32_t a, b;

		memcpy(&a, from, 4);
		memcpy(&b, from + len - 4, 4);
		if (copy) {
			memcpy(to, &a, 4);
			memcpy(to + len - 4, &b, 4);
		}
		s.last = a | (uint64_t)b << (8 * len - 32);
	} else {
		uint8_t a = from[0], b = from[len / 2], c = from[len - 1];

		if (copy) {
			to[0] = a;
			to[len / 2] = b;
			to[len - 1] = c;
		}
		s.last = a | (uint64_t)b << (len / 2 * 8) | (uint64_t)c << (8 * len - 8);
		s.beyond = state >> (8 * len);
	}
	s.last = (s.last ^ state) << (64 - 8 * len);
	return s;
}

#endif
