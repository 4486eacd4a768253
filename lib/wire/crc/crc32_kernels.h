/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways to compute a CRC-32: for crc32.c, which chooses, and for tests and benchmarks, which try all that this CPU can do. */
#ifndef UR_CRC32_KERNELS_H
#define UR_CRC32_KERNELS_H

#include "base/base.h"

struct ur_crc32_kernel {
	const char *name;
	bool (*runs_here)(void);
	bool (*is_faster)(void); /* where it runs: than those after it */
	uint32_t (*crc)(uint32_t crc, const void *data, size_t len);
	uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t len);
};

extern const struct ur_crc32_kernel ur_crc32_isal;  /* runs everywhere */
extern const struct ur_crc32_kernel ur_crc32_avx2;  /* x86_64: AVX2 and VPCLMULQDQ */
extern const struct ur_crc32_kernel ur_crc32_pmull; /* aarch64: PMULL */

/* In the order in which they are asked; the last is ISA-L's, NULL after it. */
const struct ur_crc32_kernel *ur_crc32_kernel(unsigned i);
/* The one that ur_crc32 and ur_crc32_copy use. */
const struct ur_crc32_kernel *ur_crc32_chosen(void);

#endif
