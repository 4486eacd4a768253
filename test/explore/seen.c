/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/seen.h"

#include <sys/mman.h>

#include "test/explore/arena.h"

#define FIRST_BITS 18
#define FAULTS 7u /* in an entry: one more than the faults left; 0: an empty entry */
#define MARK 8u
#define BITS 0xffu /* not of the key */

static uint64_t *entries, used;
static unsigned bits;

void seen_open(void)
{
	if (entries)
		munmap(entries, sizeof(*entries) << bits);
	bits = FIRST_BITS;
	used = 0;
	entries = arena_outside(sizeof(*entries) << bits);
}

/* Where it is, or would be. */
static uint64_t *find(uint64_t key)
{
	const uint64_t mask = (1ull << bits) - 1;
	uint64_t i = key >> 8 & mask;

	while (entries[i] && (entries[i] ^ key) & ~(uint64_t)BITS)
		i = (i + 1) & mask;
	return &entries[i];
}

static void grow(void)
{
	uint64_t *old = entries;
	const uint64_t n = 1ull << bits++;

	entries = arena_outside(sizeof(*entries) << bits);
	for (uint64_t i = 0; i < n; i++)
		if (old[i])
			*find(old[i]) = old[i];
	munmap(old, n * sizeof(*old));
}

bool seen_add(uint64_t key, unsigned faults, uint64_t *n)
{
	uint64_t *e = find(key);

	if (!*e) {
		*e = (key & ~(uint64_t)BITS) | (faults + 1);
		++*n;
		if (++used > (1ull << bits) / 2)
			grow();
		return true;
	}
	if ((*e & FAULTS) > faults)
		return false;
	*e = (*e & ~(uint64_t)FAULTS) | (faults + 1);
	return true;
}

void seen_mark(uint64_t key)
{
	*find(key) |= MARK;
}

bool seen_marked(uint64_t key)
{
	return *find(key) & MARK;
}

bool seen_write(FILE *f)
{
	return fwrite(&bits, sizeof(bits), 1, f) == 1 && fwrite(&used, sizeof(used), 1, f) == 1 &&
	       fwrite(entries, sizeof(*entries) << bits, 1, f) == 1;
}

bool seen_read(FILE *f)
{
	unsigned b;

	if (fread(&b, sizeof(b), 1, f) != 1 || b < FIRST_BITS || b > 40 || fread(&used, sizeof(used), 1, f) != 1)
		return false;
	munmap(entries, sizeof(*entries) << bits);
	bits = b;
	entries = arena_outside(sizeof(*entries) << bits);
	return fread(entries, sizeof(*entries) << bits, 1, f) == 1;
}
