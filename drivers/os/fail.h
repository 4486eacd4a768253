/* SPDX-License-Identifier: BSD-3-Clause */
/* How a driver says why it could not open. */
#ifndef UR_FAIL_H
#define UR_FAIL_H

#include <errno.h>
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

/* The one sentence for an interface that is not there; returns ENODEV. */
__attribute__((unused)) static int ur_port_fail_no_interface(char *err, size_t errlen, const char *name)
{
	return ur_port_fail(err, errlen, ENODEV, "interface '%s' does not exist: 'ip link' shows the ones that do", name);
}

/* After if_nametoindex(3), which needs a descriptor for a moment; glibc says ENOENT where there is none. */
__attribute__((unused)) static int ur_port_fail_index(char *err, size_t errlen, const char *name)
{
	if (errno == EMFILE || errno == ENFILE || errno == ENOENT)
		return ur_port_fail(err, errlen, EMFILE,
				    "no file descriptors are left to find interface '%s': raise the limit with 'ulimit -n'", name);
	return ur_port_fail_no_interface(err, errlen, name);
}

#endif
