/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of live handles: a hash table under UR_FORK_LIVE, which is held for a few instructions and is the innermost lock of all. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/fork.h"
#include "verbs/live.h"

#define BUCKET_BITS 12

static struct ur_live *table[1u << BUCKET_BITS];

/* The link that leads to it, or to NULL; under the lock. */
static struct ur_live **find(const void *handle)
{
	struct ur_live **at = &table[(uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u >> (64 - BUCKET_BITS)];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

void ur_live_add(struct ur_live *l, const void *handle)
{
	struct ur_live **at;

	ur_fork_lock(UR_FORK_LIVE);
	at = find(handle);
	*l = (struct ur_live){.next = *at, .handle = handle};
	*at = l;
	ur_fork_unlock(UR_FORK_LIVE);
}

bool ur_live_has(const void *handle)
{
	bool has;

	ur_fork_lock(UR_FORK_LIVE);
	has = *find(handle) != NULL;
	ur_fork_unlock(UR_FORK_LIVE);
	return has;
}

int ur_live_claim(const void *handle)
{
	struct ur_live *l;
	int err = 0;

	ur_fork_lock(UR_FORK_LIVE);
	l = *find(handle);
	if (!l)
		err = EINVAL;
	else if (l->going)
		err = EBUSY;
	else
		l->going = true;
	ur_fork_unlock(UR_FORK_LIVE);
	return err;
}

void ur_live_keep(const void *handle)
{
	struct ur_live *l;

	ur_fork_lock(UR_FORK_LIVE);
	l = *find(handle);
	if (l)
		l->going = false;
	ur_fork_unlock(UR_FORK_LIVE);
}

struct ur_live *ur_live_del(const void *handle)
{
	struct ur_live **at, *l;

	ur_fork_lock(UR_FORK_LIVE);
	at = find(handle);
	l = *at;
	if (l) {
		*at = l->next;
		l->handle = NULL;
	}
	ur_fork_unlock(UR_FORK_LIVE);
	return l;
}
