/* SPDX-License-Identifier: BSD-3-Clause */
/* How every subcommand says that it failed. */
#include <stdarg.h>
#include <stdio.h>

#include "apps/uroce/cli/cmd.h"

int ur_cmd_fail(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("uroce: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}
