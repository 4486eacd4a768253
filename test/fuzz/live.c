/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts allocations; the linker (--wrap) brings every call of the program here. */
#include <stdlib.h>

#include "driver.h"

static long live;

long live_allocations(void)
{
	return live;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);

static void *counted(void *p)
{
	live += p != NULL;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return counted(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return counted(__real_aligned_alloc(align, n));
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q = __real_realloc(p, n);

	live += !p && q;
	return q;
}

char *__wrap_strdup(const char *s)
{
	return counted(__real_strdup(s));
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}
