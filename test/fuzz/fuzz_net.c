/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: addresses, neighbours and groups under attack, see net/net_fuzz.h. The first byte of an input chooses the instance, the rest
 * is steps. With FUZZ_NET_TRACE in the environment it says what it does.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/net_fuzz.h"

#define STEPS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void say(struct fuzz *f, const char *fmt, va_list ap)
{
	fprintf(stderr, "%14.6f s: ", (double)(f->now - UR_NS_PER_S) / 1e9);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void broke(struct fuzz *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("fuzz_net: ", stderr);
	say(f, fmt, ap);
	va_end(ap);
	abort();
}

void trace(struct fuzz *f, const char *fmt, ...)
{
	va_list ap;

	if (ur_likely(!f->tracing))
		return;
	va_start(ap, fmt);
	say(f, fmt, ap);
	va_end(ap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;

	memset(&f, 0, sizeof(f));
	f.in = (struct input){data, size};
	f.tracing = getenv("FUZZ_NET_TRACE");
	stage_open(&f, take(&f.in));
	for (unsigned i = 0; i < STEPS_MAX && step(&f); i++)
		;
	the_end(&f);
	stage_close(&f);
	return 0;
}
