/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the ICRC's CRC-32 is, alone and while copying, by each kernel that this CPU can run, beside memcpy. Each figure is the best of
 * many short rounds, in GB/s, of data in the first cache; a call waits for the result of the one before, as the CRC of a payload does for
 * that of its headers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/crc/crc32_kernels.h"

#define ROUNDS 400
#define ROUND_BYTES 200000
#define ROOM 8192

static const size_t sizes[] = {8, 64, 256, 1040, 4112};
static uint8_t from[ROOM] __attribute__((aligned(64))), to[ROOM] __attribute__((aligned(64)));
static volatile uint32_t result; /* so that nothing is left out */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t copy_only(uint32_t crc, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return crc;
}

static uint32_t round_of(const struct ur_crc32_kernel *k, bool copy, size_t len, size_t calls)
{
	uint32_t crc = 0;

	for (size_t i = 0; i < calls; i++)
		crc = copy ? k->copy(crc, to, from, len) : k->crc(crc, from, len);
	return crc;
}

static void measure(const char *what, const struct ur_crc32_kernel *k, bool copy)
{
	printf("%-24s", what);
	for (unsigned s = 0; s < ur_array_size(sizes); s++) {
		size_t len = sizes[s], calls = ROUND_BYTES / (len + 50);
		double best = 1e9;

		for (unsigned i = 0; i < ROUNDS; i++) {
			double start = now();

			result = round_of(k, copy, len, calls);
			start = now() - start;
			if (start < best)
				best = start;
		}
		printf(" %7.2f", (double)(len * calls) / best * 1e-9);
	}
	printf("\n");
}

int main(void)
{
	const struct ur_crc32_kernel plain = {.name = "memcpy", .copy = copy_only}, *k;

	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 24);
	printf("%-24s", "GB/s, by bytes");
	for (unsigned s = 0; s < ur_array_size(sizes); s++)
		printf(" %7zu", sizes[s]);
	printf("\n");
	measure("memcpy", &plain, true);
	for (unsigned i = 0; (k = ur_crc32_kernel(i)); i++) {
		char what[64];

		if (!k->runs_here())
			continue;
		snprintf(what, sizeof(what), "%s%s", k->name, k == ur_crc32_chosen() ? " (in use)" : "");
		measure(what, k, false);
		snprintf(what, sizeof(what), k == &ur_crc32_isal ? "%s after memcpy" : "%s while copying", k->name);
		measure(what, k, true);
	}
	return 0;
}
