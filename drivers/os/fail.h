/* SPDX-License-Identifier: BSD-3-Clause */
/* How a driver says why it could not open. */
#ifndef UR_FAIL_H
#define UR_FAIL_H

#include <stdarg.h>
#include <stdio.h>

/* Writes the sentence and returns `code`. */
__attribute__((format(printf, 4, 5), unused)) static int ur_port_fail(char *err, size_t errlen, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (errlen)
		vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return code;
}

#endif
