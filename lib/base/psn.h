/* SPDX-License-Identifier: BSD-3-Clause */
/* 24-bit packet sequence numbers (IBTA volume 1, 9.7.2): arithmetic modulo 2^24, order within a window of 2^23. */
#ifndef UR_PSN_H
#define UR_PSN_H

#include "base/base.h"

#define UR_PSN_MASK 0xffffffu

static inline uint32_t ur_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & UR_PSN_MASK;
}

/* a - b as a signed number in [-2^23, 2^23): negative when `a` comes before `b`. */
static inline int32_t ur_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t ur_psn_later(uint32_t a, uint32_t b)
{
	return ur_psn_diff(a, b) > 0 ? a : b;
}

static inline uint32_t ur_psn_earlier(uint32_t a, uint32_t b)
{
	return ur_psn_diff(a, b) < 0 ? a : b;
}

#endif
