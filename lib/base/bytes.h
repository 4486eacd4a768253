/* SPDX-License-Identifier: BSD-3-Clause */
/* Big-endian integers at any address, and a copy whose last bytes are written last. */
#ifndef UR_BYTES_H
#define UR_BYTES_H

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"

static inline uint16_t ur_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t ur_get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t ur_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return __builtin_bswap32(v);
}

static inline uint32_t ur_get_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline void ur_put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static inline uint64_t ur_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return __builtin_bswap64(v);
}

static inline void ur_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void ur_put24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static inline void ur_put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static inline void ur_put64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, 8);
}

/* As memcpy, for few bytes whose number is not known when this is compiled: mostly 16 to 32. */
static inline void ur_copy_few(uint8_t *to, const uint8_t *from, size_t n)
{
	if (ur_likely(n >= 16 && n <= 32)) {
		uint8_t begin[16], end[16];

		memcpy(begin, from, 16);
		memcpy(end, from + n - 16, 16);
		memcpy(to, begin, 16);
		memcpy(to + n - 16, end, 16);
	} else {
		memcpy(to, from, n);
	}
}

/*
 * For memory that another thread polls: a thread that sees the last byte sees those before it, and an aligned word at the end comes whole.
 * memcpy(3) promises neither, and stores the ends of some lengths first.
 */
static inline void ur_copy_end_last(uint8_t *to, const uint8_t *from, size_t len)
{
	if (ur_likely(len > 8)) {
		memcpy(to, from, len - 8);
		to += len - 8;
		from += len - 8;
		len = 8;
		atomic_thread_fence(memory_order_release);
	}
	if (ur_likely(len == 8)) {
		memcpy(to, from, 8);
	} else if (len == 4) {
		memcpy(to, from, 4);
	} else {
		for (size_t i = 0; i < len; i++) {
			to[i] = from[i];
			atomic_thread_fence(memory_order_release);
		}
	}
}

#endif
