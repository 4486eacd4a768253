/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What drives a fuzz target where there is no libFuzzer. driver.c has processes, inputs one after another and findings; mutate.c makes
 * inputs from a corpus; live.c counts what is allocated.
 */
#ifndef UR_FUZZ_DRIVER_H
#define UR_FUZZ_DRIVER_H

#include "base/rng.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX 1024 /* bytes of an input that the driver makes */

struct corpus {
	struct seed {
		uint8_t *data;
		size_t size;
	} *seed;
	unsigned n;
};

/* Adds a file, or all files of a directory. False when it cannot be read. */
bool corpus_add(struct corpus *c, const char *path);
/* A new input, of at most `max` bytes, made of one of the corpus and some luck. Returns its length. */
size_t mutate(const struct corpus *c, struct ur_rng *rng, uint8_t *out, size_t max);

/* Pieces of memory that the target has allocated and not freed. */
long live_allocations(void);

#endif
