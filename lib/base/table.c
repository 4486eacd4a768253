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

static void grow(struct ur_table *t)
{
	struct ur_table_node **old = t->bucket, **bucket;
	uint32_t n = t->size;

	if (n >= LAST_SIZE)
		return;
	bucket = calloc((size_t)n * 2, sizeof(*bucket));
	if (!bucket)
		return;
	t->bucket = bucket;
	t->size = n * 2;
	for (uint32_t i = 0; i < n; i++) {
		while (old[i]) {
			struct ur_table_node *node = old[i], **head = bucket_of(t, node->hash);

			old[i] = node->next;
			node->next = *head;
			*head = node;
		}
	}
	free(old);
}

void ur_table_add(struct ur_table *t, struct ur_table_node *n, uint64_t hash)
{
	struct ur_table_node **head;

	if (t->used >= t->size)
		grow(t);
	head = bucket_of(t, hash);
	n->hash = hash;
	n->next = *head;
	n->in = true;
	*head = n;
	t->used++;
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
	return same_hash(*bucket_of(t, hash), hash);
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
