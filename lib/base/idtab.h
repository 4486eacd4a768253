/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Maps ids to objects, for ids that a packet carries and that must not be guessable: they are random, and the table is indexed by their
 * low bits. An id whose place is taken is refused, and the caller chooses another; so each id has a place of its own, and a lookup is one
 * comparison. The table doubles when more than half of it is used; ids that differ in fewer bits differ in more bits as well.
 */
#ifndef UR_IDTAB_H
#define UR_IDTAB_H

#include "base/base.h"

struct ur_idtab_entry {
	void *obj; /* NULL: free */
	uint32_t id;
};

struct ur_idtab {
	struct ur_idtab_entry *slot;
	uint32_t mask; /* size - 1; the size is a power of two */
	uint32_t used, limit;
};

/* For at most `limit` objects. Allocates nothing yet. */
void ur_idtab_init(struct ur_idtab *t, uint32_t limit);
void ur_idtab_fini(struct ur_idtab *t);
/* 0; EEXIST when the place of that id is taken: try another; ENOSPC at the limit; ENOMEM. `obj` must not be NULL. */
int ur_idtab_add(struct ur_idtab *t, uint32_t id, void *obj);
/* Harmless for an id that is not there. */
void ur_idtab_free(struct ur_idtab *t, uint32_t id);

static inline struct ur_idtab_entry *ur_idtab_find(const struct ur_idtab *t, uint32_t id)
{
	return &t->slot[id & t->mask];
}

/* NULL when there is none. */
static inline void *ur_idtab_get(const struct ur_idtab *t, uint32_t id)
{
	const struct ur_idtab_entry *e = ur_idtab_find(t, id);

	return ur_likely(e->id == id) ? e->obj : NULL;
}

/* `obj` takes the place of the object with that id, which is there. */
static inline void ur_idtab_replace(struct ur_idtab *t, uint32_t id, void *obj)
{
	ur_idtab_find(t, id)->obj = obj;
}

/* The objects in the order of their places, from 0 to `mask`; NULL for a free one. */
static inline void *ur_idtab_at(const struct ur_idtab *t, uint32_t place)
{
	return t->slot[place].obj;
}

#endif
