/* SPDX-License-Identifier: BSD-3-Clause */
/* Index to object. Free indices form a queue threaded through free_next. */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"

#define FIRST_SIZE 64u
#define NONE UINT32_MAX

void ur_idtab_init(struct ur_idtab *t, uint32_t first, uint32_t limit)
{
	*t = (struct ur_idtab){.first = first, .limit = limit, .free_head = NONE, .free_tail = NONE};
}

void ur_idtab_fini(struct ur_idtab *t)
{
	free(t->slot);
	free(t->free_next);
	ur_idtab_init(t, t->first, t->limit);
}

static void push_free(struct ur_idtab *t, uint32_t id)
{
	t->free_next[id] = NONE;
	if (t->free_tail == NONE)
		t->free_head = id;
	else
		t->free_next[t->free_tail] = id;
	t->free_tail = id;
}

static uint32_t next_size(const struct ur_idtab *t)
{
	uint64_t n = t->size ? (uint64_t)t->size * 2 : FIRST_SIZE;

	while (n <= t->first)
		n *= 2;
	return n < t->limit ? (uint32_t)n : t->limit;
}

static int grow(struct ur_idtab *t)
{
	uint32_t n = next_size(t), old = t->size;
	void **slot;
	uint32_t *links;

	if (n <= old || n <= t->first)
		return ENOSPC;
	slot = realloc(t->slot, (size_t)n * sizeof(*slot));
	if (!slot)
		return ENOMEM;
	t->slot = slot;
	links = realloc(t->free_next, (size_t)n * sizeof(*links));
	if (!links)
		return ENOMEM;
	t->free_next = links;
	t->size = n;
	for (uint32_t i = old; i < n; i++) {
		t->slot[i] = NULL;
		if (i >= t->first)
			push_free(t, i);
	}
	return 0;
}

/*
 * Growing while a quarter of the indices is still free keeps the queue long: with only one index free, that one would be handed out
 * again right after it was given back.
 */
static bool want_growth(const struct ur_idtab *t)
{
	uint32_t usable = t->size > t->first ? t->size - t->first : 0;

	return usable - t->used <= usable / 4;
}

int ur_idtab_alloc(struct ur_idtab *t, void *obj, uint32_t *id)
{
	if (want_growth(t)) {
		int rc = grow(t);

		if (rc && t->free_head == NONE)
			return rc;
	}
	*id = t->free_head;
	t->free_head = t->free_next[*id];
	if (t->free_head == NONE)
		t->free_tail = NONE;
	t->slot[*id] = obj;
	t->used++;
	return 0;
}

void ur_idtab_free(struct ur_idtab *t, uint32_t id)
{
	if (!ur_idtab_get(t, id))
		return;
	t->slot[id] = NULL;
	t->used--;
	push_free(t, id);
}
