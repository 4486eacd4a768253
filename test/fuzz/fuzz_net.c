/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: addresses, neighbours and groups under attack, see net/net_fuzz.h. The first byte of an input chooses the instance, the rest
 * is steps. With FUZZ_NET_TRACE in the environment it says what it does.
 */
#include <stdlib.h>

#include "net/net_fuzz.h"

#define STEPS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
