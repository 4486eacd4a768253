/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/violation.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static char wrong[600];

void violation(const char *format, ...)
{
	va_list ap;

	if (wrong[0])
		return;
	va_start(ap, format);
	vsnprintf(wrong, sizeof(wrong), format, ap);
	va_end(ap);
}

const char *violated(void)
{
	return wrong[0] ? wrong : NULL;
}

void violation_forget(void)
{
	wrong[0] = 0;
}
