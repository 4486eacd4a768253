/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/arena.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES (4u << 20)
#define COLD_BYTES (1u << 20)
#define CHUNK 256u /* what a snapshot holds or does not */
#define SIZES 64   /* different sizes of what has been freed */

/* Stands before each piece of memory; 64 bytes, as far as anything here is aligned. */
struct piece {
	size_t size;
	struct piece *next; /* of those that are free */
	uint8_t align[48];
};

/* The beginning of the arena, so that it is part of a snapshot. */
struct head {
	size_t used; /* bytes of the arena */
	struct {
		size_t size;
		struct piece *free;
	} of[SIZES];
};

struct arena_snap {
	size_t used;
	uint32_t n, room;
	uint32_t *at;
	uint8_t *bytes;
};

static uint8_t *arena, *sealed, *cold;
static size_t cold_used, cold_size, sealed_used;
static bool is_cold;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *p);

static void short_of_memory(void)
{
	fprintf(stderr, "explore: out of memory\n");
	exit(2);
}

void *arena_outside(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		short_of_memory();
	return p;
}

void arena_open(void)
{
	arena = arena_outside(ARENA_BYTES);
	sealed = arena_outside(ARENA_BYTES);
	cold = arena_outside(COLD_BYTES);
	((struct head *)(void *)arena)->used = (sizeof(struct head) + 63) & ~(size_t)63;
}

void arena_cold(bool yes)
{
	is_cold = yes;
}

void arena_cold_size(size_t size)
{
	cold_size = size;
}

/* --- malloc and its kin --- */

static struct head *head(void)
{
	return (struct head *)(void *)arena;
}

static bool is_ours(const void *p)
{
	return (const uint8_t *)p >= arena && (const uint8_t *)p < arena + ARENA_BYTES;
}

static unsigned place_of(struct head *h, size_t size)
{
	unsigned i = 0;

	while (i < SIZES && h->of[i].size && h->of[i].size != size)
		i++;
	if (i == SIZES)
		short_of_memory();
	h->of[i].size = size;
	return i;
}

static void *take(size_t size)
{
	struct head *h = head();
	struct piece *p;
	unsigned i;

	size = (size + 63) & ~(size_t)63;
	if (is_cold || size == cold_size) {
		if (cold_used + size > COLD_BYTES)
			short_of_memory();
		cold_used += size;
		return cold + cold_used - size;
	}
	i = place_of(h, size);
	p = h->of[i].free;
	if (p) {
		h->of[i].free = p->next;
	} else {
		if (h->used + sizeof(*p) + size > ARENA_BYTES)
			short_of_memory();
		p = (struct piece *)(void *)(arena + h->used);
		h->used += sizeof(*p) + size;
		p->size = size;
	}
	memset(p + 1, 0, size);
	return p + 1;
}

void *__wrap_malloc(size_t size)
{
	return arena ? take(size) : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return arena ? take(n * size) : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	if (!arena)
		return __real_aligned_alloc(align, size);
	if (align > 64)
		short_of_memory();
	return take(size);
}

void __wrap_free(void *ptr)
{
	struct piece *p = ptr;
	unsigned i;

	if (!arena || (!is_ours(ptr) && ((uint8_t *)ptr < cold || (uint8_t *)ptr >= cold + COLD_BYTES))) {
		__real_free(ptr);
		return;
	}
	if (!is_ours(ptr))
		return;
	p--;
	i = place_of(head(), p->size);
	p->next = head()->of[i].free;
	head()->of[i].free = p;
}

void *__wrap_realloc(void *ptr, size_t size)
{
	void *p;

	if (!arena || (ptr && !is_ours(ptr)))
		return __real_realloc(ptr, size);
	p = take(size);
	if (ptr) {
		const size_t old = ((struct piece *)ptr - 1)->size;

		memcpy(p, ptr, old < size ? old : size);
		__wrap_free(ptr);
	}
	return p;
}

/* --- snapshots --- */

void arena_seal(void)
{
	sealed_used = head()->used;
	memcpy(sealed, arena, sealed_used);
}

static void add_chunk(struct arena_snap *s, uint32_t i)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 128;
		s->at = __real_realloc(s->at, s->room * sizeof(*s->at));
		s->bytes = __real_realloc(s->bytes, (size_t)s->room * CHUNK);
		if (!s->at || !s->bytes)
			short_of_memory();
	}
	s->at[s->n] = i;
	memcpy(s->bytes + (size_t)s->n++ * CHUNK, arena + (size_t)i * CHUNK, CHUNK);
}

struct arena_snap *arena_save(struct arena_snap *s)
{
	uint32_t chunks;

	if (!s)
		s = __real_calloc(1, sizeof(*s));
	if (!s)
		short_of_memory();
	s->used = head()->used;
	s->n = 0;
	chunks = (uint32_t)((s->used + CHUNK - 1) / CHUNK);
	for (uint32_t i = 0; i < chunks; i++)
		if (memcmp(arena + (size_t)i * CHUNK, sealed + (size_t)i * CHUNK, CHUNK) != 0)
			add_chunk(s, i);
	return s;
}

/* What was allocated since has the zeros of `sealed` again. */
static void load_sealed(size_t used)
{
	const size_t now = head()->used;

	memcpy(arena, sealed, now > used ? now : used);
}

void arena_load(const struct arena_snap *s)
{
	load_sealed(s->used);
	for (uint32_t k = 0; k < s->n; k++)
		memcpy(arena + (size_t)s->at[k] * CHUNK, s->bytes + (size_t)k * CHUNK, CHUNK);
}

void arena_reset(void)
{
	load_sealed(sealed_used);
}
