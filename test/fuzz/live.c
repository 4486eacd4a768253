/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts allocations; the linker (--wrap) brings every call of the program here. And serves them, because an input makes and frees hundreds
 * of pieces of the same few sizes: a piece that was freed waits for the next one of its size, and none goes back to the kernel, which would
 * have to clear its pages and map them again. A piece that is freed twice, or whose head was overwritten, ends the process.
 *
 * AddressSanitizer has to see each piece, so with it memory comes from the C library.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define PLAIN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(PLAIN)
#define SERVES false
#else
#define SERVES true
#endif

#define ROOM (1ull << 30) /* of addresses: what is not used is not there */

#define ALIGN 64u
#define CLASSES 256
#define USED 0x5ad0f00du
#define FREED 0xdeadd00du

struct piece {              /* stands before its bytes */
	struct piece *next; /* of those that are free */
	size_t size;
	uint32_t class, state;
	uint8_t align[ALIGN - 24];
};

static long live;
static uint8_t *room;
static size_t used;
static struct piece *free_pieces[CLASSES];

long live_allocations(void)
{
	return live;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);

/* --- pieces --- */

/* Sizes up to 1024 in steps of 64; above, eight steps for each doubling. Returns the class, and rounds the size up. */
static unsigned class_of(size_t *size)
{
	size_t n = *size ? *size : 1;
	unsigned shift = 6;

	if (n > 1024)
		shift = 60 - (unsigned)__builtin_clzll(n - 1);
	n = (n + ((size_t)1 << shift) - 1) >> shift;
	*size = n << shift;
	return (shift - 6) * 8 + (unsigned)n;
}

static bool is_ours(const void *p)
{
	return room && (const uint8_t *)p - room >= 0 && (uint64_t)((const uint8_t *)p - room) < ROOM;
}

static struct piece *piece_of(void *p)
{
	struct piece *b = (struct piece *)p - 1;

	if (b->state != USED) {
		fprintf(stderr, "memory was freed twice, or what lies before it was overwritten\n");
		abort();
	}
	return b;
}

static bool open_room(void)
{
	void *p;

	if (room)
		return true;
	p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	room = p == MAP_FAILED ? NULL : p;
	return room != NULL;
}

/* NULL when the room is full. */
static void *piece_take(size_t size)
{
	struct piece *b;
	unsigned class;

	if (!SERVES || size >= ROOM || !open_room())
		return NULL;
	class = class_of(&size);
	b = free_pieces[class];
	if (b) {
		free_pieces[class] = b->next;
	} else {
		if (used + sizeof(*b) + size > ROOM)
			return NULL;
		b = (struct piece *)(void *)(room + used);
		used += sizeof(*b) + size;
		b->size = size;
		b->class = class;
	}
	b->state = USED;
	return b + 1;
}

static void piece_give(void *p)
{
	struct piece *b = piece_of(p);

	b->state = FREED;
	b->next = free_pieces[b->class];
	free_pieces[b->class] = b;
}

/* --- malloc and its kin --- */

static void *counted(void *p)
{
	live += p != NULL;
	return p;
}

void *__wrap_malloc(size_t n)
{
	void *p = piece_take(n);

	return counted(p ? p : __real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p;
	size_t sum;

	if (__builtin_mul_overflow(n, size, &sum))
		return NULL;
	p = piece_take(sum);
	return counted(p ? memset(p, 0, sum) : __real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	void *p = align <= ALIGN ? piece_take(n) : NULL;

	return counted(p ? p : __real_aligned_alloc(align, n));
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q;

	if (p && is_ours(p)) {
		const size_t had = piece_of(p)->size;

		if (n && n <= had && n >= had / 2)
			return p;
		q = piece_take(n);
		q = q ? q : __real_malloc(n);
		if (!q)
			return NULL;
		memcpy(q, p, n < had ? n : had);
		piece_give(p);
		return q;
	}
	q = p ? NULL : piece_take(n);
	q = q ? q : __real_realloc(p, n);
	live += !p && q;
	return q;
}

char *__wrap_strdup(const char *s)
{
	const size_t n = strlen(s) + 1;
	char *p = __wrap_malloc(n);

	return p ? memcpy(p, s, n) : NULL;
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	if (p && is_ours(p))
		piece_give(p);
	else
		__real_free(p);
}
