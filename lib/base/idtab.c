/* SPDX-License-Identifier: BSD-3-Clause */
/* Id to object. */
#include <errno.h>
#include <stdlib.h>

#include "base/idtab.h"

#define FIRST_SIZE 64u

/* What a table has before its first object: one place, which is never written. */
static struct ur_idtab_entry nothing;

void ur_idtab_init(struct ur_idtab *t, uint32_t limit)
{
	*t = (struct ur_idtab){.slot = &nothing, .limit = limit};
}

void ur_idtab_fini(struct ur_idtab *t)
{
	if (t->slot != &nothing)
		free(t->slot);
	ur_idtab_init(t, t->limit);
}

static int grow(struct ur_idtab *t)
{
	uint32_t size = t->slot == &nothing ? FIRST_SIZE : 2 * (t->mask + 1);
	struct ur_idtab old = *t;

	t->slot = calloc(size, sizeof(*t->slot));
	if (!t->slot) {
		t->slot = old.slot;
		return ENOMEM;
	}
	t->mask = size - 1;
	for (uint32_t i = 0; i <= old.mask; i++)
		if (old.slot[i].obj)
			*ur_idtab_find(t, old.slot[i].id) = old.slot[i];
	if (old.slot != &nothing)
		free(old.slot);
	return 0;
}

int ur_idtab_add(struct ur_idtab *t, uint32_t id, void *obj)
{
	int err = 0;

	if (t->used >= t->limit)
		return ENOSPC;
	if (t->used >= (t->mask + 1) / 2)
		err = grow(t);
	if (err)
		return err;
	if (ur_idtab_find(t, id)->obj)
		return EEXIST;
	*ur_idtab_find(t, id) = (struct ur_idtab_entry){.obj = obj, .id = id};
	t->used++;
	return 0;
}

void ur_idtab_free(struct ur_idtab *t, uint32_t id)
{
	if (!ur_idtab_get(t, id))
		return;
	*ur_idtab_find(t, id) = (struct ur_idtab_entry){.obj = NULL};
	t->used--;
}
