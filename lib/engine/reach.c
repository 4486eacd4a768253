/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages in memory without faulting: madvise(2) with MADV_POPULATE_READ and MADV_POPULATE_WRITE says what a fault would not survive. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/reach.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define TRIES 16 /* when a signal came, or the kernel was short of something */

static uintptr_t page_size(void)
{
	static _Atomic uintptr_t known;
	uintptr_t p = known;

	if (ur_unlikely(!p))
		known = p = (uintptr_t)sysconf(_SC_PAGESIZE);
	return p;
}

bool ur_reach(void *at, uint64_t len, bool write)
{
	uintptr_t page = page_size(), from = (uintptr_t)at & ~(page - 1), end = (uintptr_t)at + len;

	if (end < (uintptr_t)at || end > UINTPTR_MAX - page)
		return false;
	end = (end + page - 1) & ~(page - 1);
	for (unsigned i = 0; i < TRIES; i++) {
		if (!madvise((void *)from, end - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
			return true;
		if (errno != EINTR && errno != EAGAIN)
			return false;
	}
	return false;
}

bool ur_reach_supported(void)
{
	char here = 0;

	return ur_reach(&here, 1, true);
}
