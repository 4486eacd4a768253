/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash table. */
#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/table.h"

#define FIRST_SIZE 64u
#define LAST_SIZE (1u << 20)

int ur_table_init(struct ur_table *t, uint64_t salt)
{
	*t = (struct ur_table){.size = FIRST_SIZE, .salt = salt};
	t->bucket = calloc(FIRST_SIZE, sizeof(*t->bucket));
	return t->bucket ? 0 : ENOMEM;
}

void ur_table_clear(struct ur_table *t, void (*gone)(struct ur_table_node *n))
{
	for (uint32_t i = 0; i < t->size; i++)
		for (struct ur_table_node *n = t->bucket[i], *next; n; n = next) {
			next = n->next;
			gone(n);
		}
	ur_table_fini(t);
}

void ur_table_fini(struct ur_table *t)
{
	free(t->bucket);
	t->bucket = NULL;
	t->size = t->used = 0;
}

static struct ur_table_node **bucket_of(const struct ur_table *t, uint64_t hash)
{
	return &t->bucket[hash & (t->size - 1)];
}

/* Divides each bucket between two, in which its nodes keep their order. */
static void grow(struct ur_table *t)
{
	struct ur_table_node **bucket;
	const uint32_t n = t->size;

	if (n >= LAST_SIZE)
		return;
	bucket = calloc((size_t)n * 2, sizeof(*bucket));
	if (!bucket)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct ur_table_node **end[2] = {&bucket[i], &bucket[i + n]};

		for (struct ur_table_node *node = t->bucket[i]; node; node = node->next) {
			const bool high = node->hash & n;

			*end[high] = node;
			end[high] = &node->next;
		}
		*end[0] = *end[1] = NULL;
	}
	free(t->bucket);
	t->bucket = bucket;
	t->size = n * 2;
}

bool ur_table_add(struct ur_table *t, struct ur_table_node *n, uint64_t hash)
{
	struct ur_table_node **head;

	if (!t->bucket && ur_table_init(t, t->salt))
		return false;
	if (t->used >= t->size)
		grow(t);
	head = bucket_of(t, hash);
	n->hash = hash;
	n->next = *head;
	n->in = true;
	*head = n;
	t->used++;
	return true;
}

void ur_table_del(struct ur_table *t, struct ur_table_node *n)
{
	struct ur_table_node **p;

	if (!n->in)
		return;
	for (p = bucket_of(t, n->hash); *p != n; p = &(*p)->next)
		;
	*p = n->next;
	n->next = NULL;
	n->in = false;
	t->used--;
}

static struct ur_table_node *same_hash(struct ur_table_node *n, uint64_t hash)
{
	while (n && n->hash != hash)
		n = n->next;
	return n;
}

struct ur_table_node *ur_table_first(const struct ur_table *t, uint64_t hash)
{
	return t->bucket ? same_hash(*bucket_of(t, hash), hash) : NULL;
}

struct ur_table_node *ur_table_next(const struct ur_table_node *n)
{
	return same_hash(n->next, n->hash);
}

uint64_t ur_table_hash(uint64_t salt, uint64_t a, uint64_t b)
{
	struct ur_rng r = {.state = salt ^ a};

	r.state = ur_rng_u64(&r) ^ b;
	return ur_rng_u64(&r);
}
