/* SPDX-License-Identifier: BSD-3-Clause */
#include "story.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void say(ur_time now, const char *fmt, va_list ap)
{
	fprintf(stderr, "%16.9f s: ", (double)(now - UR_NS_PER_S) / 1e9); /* time begins with the first second */
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void story_line(ur_time now, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(now, fmt, ap);
	va_end(ap);
}

void story_broke(const char *target, ur_time now, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s: ", target);
	say(now, fmt, ap);
	va_end(ap);
	abort();
}
