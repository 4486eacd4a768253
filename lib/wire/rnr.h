/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a requester waits after an RNR NAK. */
#ifndef UR_RNR_H
#define UR_RNR_H

#include "base/base.h"

/* What the timer field of an RNR NAK means (IBTA volume 1, table 46). */
static inline ur_time ur_rnr_time(unsigned code)
{
	/* in units of 10 us; 0 is the longest */
	static const uint16_t table[32] = {0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
					   256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return (code & 31 ? table[code & 31] : 65536) * 10 * UR_NS_PER_US;
}

#endif
