/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: a whole NIC under attack, see nic_ops/nic.h. The first byte of an input chooses the fabric, the rest is steps. With
 * FUZZ_NIC_TRACE in the environment it says what it does.
 */
#include <stdlib.h>

#include "nic_ops/nic.h"

#define STEPS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;

	f.in = (struct input){data, size};
	f.tracing = getenv("FUZZ_NIC_TRACE");
	stage_open(&f, take(&f.in));
	for (unsigned i = 0; i < STEPS_MAX && step(&f); i++)
		;
	the_end(&f);
	stage_close(&f);
	return 0;
}
