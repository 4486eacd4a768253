/* SPDX-License-Identifier: BSD-3-Clause */
/* The sentence that says why a call failed, of each thread. */
#include <stdarg.h>
#include <stdio.h>

#include "engine/internal.h"

static __thread char last_error[512];

void ur_engine_set_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
}

const char *ur_engine_error(void)
{
	return last_error;
}
