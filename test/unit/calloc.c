/* SPDX-License-Identifier: BSD-3-Clause */
/* What test/unit/meson.build has the linker put in place of calloc. */
#include "calloc.h"

#include <stddef.h>

bool no_calloc;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_calloc ? NULL : __real_calloc(n, size);
}
