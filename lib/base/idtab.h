/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Index to object: a table that grows by doubling up to a fixed limit. A freed index is handed out again as late as possible
 * (first in, first out), so that a stale number from the wire seldom meets a new object.
 */
#ifndef UR_IDTAB_H
#define UR_IDTAB_H

#include "base/base.h"

struct ur_idtab {
	void **slot;
	uint32_t *free_next; /* links of the free list, valid for free indices */
	uint32_t size, limit, used;
	uint32_t free_head, free_tail;
	uint32_t first; /* the lowest index ever handed out */
};

/* Indices run from `first` to `limit` - 1. Allocates nothing yet. */
void ur_idtab_init(struct ur_idtab *t, uint32_t first, uint32_t limit);
void ur_idtab_fini(struct ur_idtab *t);
/* 0 and the index in *id; ENOSPC at the limit; ENOMEM. `obj` must not be NULL. */
int ur_idtab_alloc(struct ur_idtab *t, void *obj, uint32_t *id);
void ur_idtab_free(struct ur_idtab *t, uint32_t id);

/* `obj` takes the place of the object at an index that is in use. */
static inline void ur_idtab_replace(struct ur_idtab *t, uint32_t id, void *obj)
{
	t->slot[id] = obj;
}

/* NULL for an index that is free or out of range. */
static inline void *ur_idtab_get(const struct ur_idtab *t, uint32_t id)
{
	return ur_likely(id < t->size) ? t->slot[id] : NULL;
}

#endif
