/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which kernel is used: ISA-L's, which knows all CPUs, unless one of ours is faster. The choice is made in the first call; several threads
 * that come first make the same one.
 */
#include <isa-l/crc.h>
#include <stdatomic.h>
#include <string.h>

#include "wire/crc/crc32.h"
#include "wire/crc/crc32_kernels.h"

static bool everywhere(void)
{
	return true;
}

static uint32_t crc_isal(uint32_t crc, const void *data, size_t len)
{
	return crc32_gzip_refl(crc, data, len);
}

static uint32_t copy_isal(uint32_t crc, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return crc32_gzip_refl(crc, src, len);
}

const struct ur_crc32_kernel ur_crc32_isal = {"ISA-L", everywhere, everywhere, crc_isal, copy_isal};

static const struct ur_crc32_kernel *const kernels[] = {
#if defined(__x86_64__)
	&ur_crc32_avx2,
#elif defined(__aarch64__)
	&ur_crc32_pmull,
#endif
	&ur_crc32_isal,
};

const struct ur_crc32_kernel *ur_crc32_kernel(unsigned i)
{
	return i < ur_array_size(kernels) ? kernels[i] : NULL;
}

static uint32_t first_crc(uint32_t crc, const void *data, size_t len);
static uint32_t first_copy(uint32_t crc, void *dst, const void *src, size_t len);

static _Atomic(__typeof__(&first_crc)) use_crc = first_crc;
static _Atomic(__typeof__(&first_copy)) use_copy = first_copy;

const struct ur_crc32_kernel *ur_crc32_chosen(void)
{
	for (unsigned i = 0; i < ur_array_size(kernels); i++)
		if (kernels[i]->runs_here() && kernels[i]->is_faster())
			return kernels[i];
	return &ur_crc32_isal;
}

static void choose(void)
{
	const struct ur_crc32_kernel *k = ur_crc32_chosen();

	/* Relaxed: what they point to was there before main. */
	atomic_store_explicit(&use_crc, k->crc, memory_order_relaxed);
	atomic_store_explicit(&use_copy, k->copy, memory_order_relaxed);
}

static uint32_t first_crc(uint32_t crc, const void *data, size_t len)
{
	choose();
	return ur_crc32(crc, data, len);
}

static uint32_t first_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	choose();
	return ur_crc32_copy(crc, dst, src, len);
}

uint32_t ur_crc32(uint32_t crc, const void *data, size_t len)
{
	return atomic_load_explicit(&use_crc, memory_order_relaxed)(crc, data, len);
}

uint32_t ur_crc32_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	return atomic_load_explicit(&use_copy, memory_order_relaxed)(crc, dst, src, len);
}
