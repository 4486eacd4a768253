/* SPDX-License-Identifier: BSD-3-Clause */
/* What test/unit/meson.build has the linker put in place of calloc and aligned_alloc. */
#include "calloc.h"

bool no_calloc;
_Thread_local size_t bytes_asked_for;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	bytes_asked_for += n * size;
	return no_calloc ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	bytes_asked_for += size;
	return __real_aligned_alloc(alignment, size);
}
